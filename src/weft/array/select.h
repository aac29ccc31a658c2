// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements at places of the order along an axis, without the whole order. Arrays on the host, no
// complex numbers.

#include <cstdint>
#include <optional>
#include <span>

#include "weft/array/ndarray.h"

namespace weft {

/// What a quantile between two neighbours is.
enum class Between : std::uint8_t { linear, lower, higher, midpoint, nearest };

/// The quantiles q (0 to 1) along an axis that is not empty, as a first axis; x is real floats. A
/// line with NaN gives NaN; with skip_nan one of NaN alone does, and others leave them out.
NDArray quantiles(const NDArray& x, std::span<const double> q, int axis, Between between,
                  bool skip_nan);
/// A copy with the elements at these places along an axis as in order, no larger ones before and no
/// smaller ones behind them. NaN is last.
NDArray partition(const NDArray& x, std::span<const std::int64_t> places, int axis);
/// Positions that arrange x like this, those of equal elements in order where they are at a place
/// named. Empty where elements have more than 4 bytes and there are several places: argsort is as
/// fast.
std::optional<NDArray> argpartition(const NDArray& x, std::span<const std::int64_t> places,
                                    int axis);

}  // namespace weft
