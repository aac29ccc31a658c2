// SPDX-License-Identifier: Apache-2.0
#include "weft/array/interpolate.h"

#include <vector>

#include "weft/array/ops.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

template <typename T>
void follow_lines(const NDArray& x, const NDArray& xp, const NDArray& fp, T left, T right,
                  const NDArray& out) {
  const auto* const v = reinterpret_cast<const T*>(x.host());
  const auto *const p = reinterpret_cast<const T*>(xp.host()), *const f =
                                                                   reinterpret_cast<const T*>(
                                                                       fp.host());
  auto* const to = reinterpret_cast<T*>(out.host());
  const std::int64_t n = xp.size();
  // How many points are not right of an element is the number of its line.
  const NDArray lines = searchsorted(xp, x, true);
  const auto* const at = reinterpret_cast<const std::int64_t*>(lines.host());
  struct Line {
    T start, value, slope, end, last;
    T at(T x) const {
      if (x == start) return value;
      T found = slope * (x - start) + value;
      // With an infinity at one end, from the other end; between two equal ones it is that.
      if (found != found) found = slope * (x - end) + last;
      return found != found && value == last ? value : found;
    }
  };
  std::vector<Line> all = {{p[0], left, T{0}, p[0], left}};
  for (std::int64_t k = 0; k + 1 < n; ++k)
    all.push_back({p[k], f[k], (f[k + 1] - f[k]) / (p[k + 1] - p[k]), p[k + 1], f[k + 1]});
  all.push_back({p[n - 1], f[n - 1], T{0}, p[n - 1], f[n - 1]});
  runtime::Pool::shared().parallel_for(x.size(), 4096, [&](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) {
      const Line& line = all[static_cast<std::size_t>(at[i])];
      const T inside = v[i] < p[0] ? p[0] : v[i];
      to[i] = v[i] != v[i] ? v[i] : v[i] > p[n - 1] ? right : line.at(inside);
    }
  });
}

}  // namespace

NDArray interpolate(const NDArray& x, const NDArray& xp, const NDArray& fp, double left,
                    double right) {
  const NDArray in = x.contiguous(), points = xp.contiguous(), values = fp.contiguous();
  const NDArray out = NDArray::empty(x.device(), x.elem(), x.shape());
  if (x.elem() == Elem::float64) follow_lines<double>(in, points, values, left, right, out);
  else
    follow_lines<float>(in, points, values, static_cast<float>(left), static_cast<float>(right),
                        out);
  return out;
}

}  // namespace weft
