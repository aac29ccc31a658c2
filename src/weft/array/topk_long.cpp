// SPDX-License-Identifier: Apache-2.0
// The row is cut into pieces. The k-th of the pieces' extremes is a bound: k elements at least are
// as large, and of random ones few more. Those alone are sorted.
#include "weft/array/topk_long.h"

#include <algorithm>

#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/runtime/recording.h"

namespace weft {

namespace {
constexpr std::int64_t kLong = 1 << 16;     // a shorter row is sorted in as much time
constexpr std::int64_t kMostPieces = 4096;  // whose extremes one block sorts
constexpr std::int64_t kShare = 8;          // of the row, or of the pieces: more is no selection
}  // namespace

std::optional<NDArray> topk_of_long_row(const NDArray& x, std::int64_t k, bool largest) {
  const std::int64_t n = x.size();
  if (x.ndim() == 0 || x.shape()[x.ndim() - 1] != n || n < kLong || k < 1 || is_complex(x.elem()) ||
      !has_grid(x) || runtime::recording_on(x.device()))
    return std::nullopt;
  const std::int64_t length = ceil_div(n, kMostPieces), pieces = n / length;
  if (k * kShare > pieces) return std::nullopt;
  const NDArray row = x.contiguous().reshape(Dims{n});
  // A piece with NaN, which is the last in either direction, gives no bound.
  const NDArray extremes =
      reduce(largest ? ReduceOp::max : ReduceOp::min,
             row.slice(0, 0, pieces * length, 1).reshape(Dims{pieces, length}), Axes{false, {1}});
  const NDArray bound = sort(extremes, 0, largest).slice(0, k - 1, 1, 1);
  const NDArray near = nonzero(apply(largest ? Op::greater_equal : Op::less_equal, row, bound))[0];
  const std::int64_t found = near.size();
  if (found < k || found * kShare > n) return std::nullopt;
  const NDArray values = gather(row, {&near, 1});
  const NDArray order = argsort(values, 0, largest).slice(0, 0, k, 1);
  Dims shape = x.shape();
  shape[shape.size() - 1] = k;
  return gather(near, {&order, 1}).reshape(shape);
}

}  // namespace weft
