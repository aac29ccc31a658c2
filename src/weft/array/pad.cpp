// SPDX-License-Identifier: Apache-2.0
// On the host each element of the result is written once, a row at a time: a border of its own pass
// would write large results twice. Rows of a few elements are copied into a result that holds the
// value everywhere.
#include "weft/array/pad.h"

#include <algorithm>
#include <vector>

#include "weft/array/collapse.h"
#include "weft/array/nest.h"
#include "weft/array/strided_copy.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// A row of the result: `before` elements of the value, n of x, `after` of the value.
struct Line {
  std::int64_t before, n, after, step;
  std::int64_t size() const { return before + n + after; }
};

/// Axes of x that are walked one row after the other, and the row. Axes without a border at the end
/// are part of it where x has no gaps there.
Line line_of(const NDArray& x, std::span<const std::pair<std::int64_t, std::int64_t>> widths,
             int& outer) {
  int at = x.ndim() - 1;
  std::int64_t inner = 1;
  while (at > 0 &&
         widths[static_cast<std::size_t>(at)] == std::pair<std::int64_t, std::int64_t>() &&
         x.strides()[at] == inner && x.strides()[at - 1] == inner * x.shape()[at])
    inner *= x.shape()[at--];
  outer = at;
  const auto [before, after] = widths[static_cast<std::size_t>(at)];
  return {before * inner, x.shape()[at] * inner, after * inner, inner > 1 ? 1 : x.strides()[at]};
}

}  // namespace

NDArray pad(const NDArray& x, std::span<const std::pair<std::int64_t, std::int64_t>> widths,
            const Scalar& value) {
  using I = std::int64_t;
  std::vector<int> order;
  const Arg only(x);
  if (x.on_host() && shared_order(x.shape(), &only, 1, order)) {  // along memory
    std::vector<std::pair<I, I>> turned;
    for (int axis : order) turned.push_back(widths[static_cast<std::size_t>(axis)]);
    return pad(x.permute(order), turned, value).permute(inverse_order(order));
  }
  Dims shape = x.shape();
  for (int i = 0; i < x.ndim(); ++i) {
    const auto [before, after] = widths[static_cast<std::size_t>(i)];
    shape[i] += before + after;
  }
  constexpr I kShort = 64;  // elements of rows for which a call each costs more than writing twice
  int outer = 0;
  const bool rows = x.on_host() && x.size() > 0 && x.ndim() > 0;
  const Line line = rows ? line_of(x, widths, outer) : Line{};
  if (!rows || (line.size() <= kShort && x.ndim() > 1)) {
    const NDArray out = full(x.device(), x.elem(), shape, value);
    NDArray middle = out;
    for (int i = 0; i < x.ndim(); ++i)
      middle = middle.slice(i, widths[static_cast<std::size_t>(i)].first, x.shape()[i], 1);
    assign(middle, x);
    return out;
  }
  alignas(16) char one[16];
  write_scalar(value, x.elem(), one);
  const NDArray out = NDArray::empty(x.device(), x.elem(), shape);
  const int bytes = elem_bytes(x.elem());
  runtime::Pool::shared().parallel_for(
      out.size() / line.size(), std::max<I>(1, kParallelGrain / line.size()), [&](I row, I end) {
        I place[kMaxDims] = {};  // of the row along the axes before it, in the result
        I rest = row;
        for (int i = outer - 1; i >= 0; --i) {
          place[i] = rest % shape[i];
          rest /= shape[i];
        }
        for (; row < end; ++row) {
          char* to = out.host() + row * line.size() * bytes;
          I from = 0;
          bool inside = true;
          for (int i = 0; i < outer; ++i) {
            const I at = place[i] - widths[static_cast<std::size_t>(i)].first;
            inside = inside && at >= 0 && at < x.shape()[i];
            from += at * x.strides()[i];
          }
          if (inside) {
            copy_run(bytes, to, 1, one, 0, line.before);
            copy_run(bytes, to + line.before * bytes, 1, x.host() + from * bytes, line.step,
                     line.n);
            copy_run(bytes, to + (line.before + line.n) * bytes, 1, one, 0, line.after);
          } else {
            copy_run(bytes, to, 1, one, 0, line.size());
          }
          for (int i = outer - 1; i >= 0; --i) {
            if (++place[i] < shape[i]) break;
            place[i] = 0;
          }
        }
      });
  return out;
}

}  // namespace weft
