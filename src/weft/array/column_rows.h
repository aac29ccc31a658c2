// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "weft/array/ops.h"

namespace weft {

/// What apply_rows(kind, operands) gives, by blocks of columns: where another axis than the last is
/// the one whose elements are neighbours in memory. Nothing where rows are the better way, or on
/// other devices.
std::optional<NDArray> rows_by_columns(RowKernel kind, std::span<const NDArray* const> operands);

}  // namespace weft
