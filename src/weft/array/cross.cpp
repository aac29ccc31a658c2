// SPDX-License-Identifier: Apache-2.0
#include "weft/array/cross.h"

#include <algorithm>

#include "weft/array/ops.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// n vectors whose parts lie `part` elements apart, and they `step`.
template <typename T>
void cross_run(std::int64_t n, const T* a, const T* b, T* __restrict__ out, std::int64_t part,
               std::int64_t step) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T *const u = a + i * step, *const v = b + i * step;
    T* const to = out + i * step;
    const T x = u[0], y = u[part], z = u[2 * part];
    const T r = v[0], s = v[part], t = v[2 * part];
    to[0] = y * t - z * s;
    to[part] = z * r - x * t;
    to[2 * part] = x * s - y * r;
  }
}

}  // namespace

std::optional<NDArray> cross(const NDArray& a_in, const NDArray& b_in, int axis) {
  const Elem e = a_in.elem();
  const bool plain = e == b_in.elem() && a_in.shape() == b_in.shape() && a_in.on_host() &&
                     b_in.on_host() && (e == Elem::float32 || e == Elem::float64);
  if (axis < 0) axis += a_in.ndim();
  if (!plain || axis < 0 || axis >= a_in.ndim() || a_in.shape()[axis] != 3) return std::nullopt;
  const NDArray a = a_in.contiguous(), b = b_in.contiguous();
  const NDArray out = NDArray::empty(a.device(), e, a.shape());
  std::int64_t inner = 1;
  for (int i = axis + 1; i < a.ndim(); ++i) inner *= a.shape()[i];
  if (a.size() == 0) return out;
  const std::int64_t outer = a.size() / (3 * inner);
  const auto run = [&]<typename T>(T) {
    const auto *x = reinterpret_cast<const T*>(a.host()), *y = reinterpret_cast<const T*>(b.host());
    auto* const to = reinterpret_cast<T*>(out.host());
    // Vectors one after the other, or planes of their parts.
    const std::int64_t runs = inner == 1 ? 1 : outer, each = inner == 1 ? outer : inner;
    const std::int64_t step = inner == 1 ? 3 : 1;
    runtime::Pool::shared().parallel_for(
        runs * each, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
          while (begin < end) {
            const std::int64_t r = begin / each, at = begin % each;
            const std::int64_t n = std::min(each - at, end - begin);
            const std::int64_t first = r * 3 * each + at * step;
            cross_run(n, x + first, y + first, to + first, inner, step);
            begin += n;
          }
        });
  };
  if (e == Elem::float64) run(double{});
  else run(float{});
  return out;
}

}  // namespace weft
