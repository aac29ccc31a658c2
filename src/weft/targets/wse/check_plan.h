// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plan of a kernel says what moves between buffers and PEs. It may come from a file or over the
// network, so that every index in it is checked before it is used.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/json.h"

namespace weft::wse {

/// Throws Error(io, "wse.plan") unless the plan is consistent in itself and takes `arrays` arrays.
void check_plan(const Json& plan, std::size_t arrays);

/// Bytes of a buffer of this shape; the plan was checked.
std::int64_t bytes_of(const std::vector<std::int64_t>& shape, std::int64_t element);

[[noreturn]] void damaged_plan(std::string what);

}  // namespace weft::wse
