// SPDX-License-Identifier: Apache-2.0
// A convolution with a short vector: a strip of sums that stays in the cache. Floats take all terms
// of a sum at once, where it has all of them; elsewhere multiples of the long vector are added,
// shifted.

#include "weft/array/convolve.h"

#include <algorithm>
#include <cstring>

#include "weft/host/loop_kernels.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// acc[i] = acc[i] + x[0] * in[i], which the tables have of other types.
template <typename T>
void add_products(std::int64_t n, const void* x, const void* in, void* acc) {
  const T by = *static_cast<const T*>(x);
  const T* const from = static_cast<const T*>(in);
  T* const to = static_cast<T*>(acc);
  for (std::int64_t i = 0; i < n; ++i) to[i] += by * from[i];
}

AddProductsFn adding(Elem e) {
  if (e == Elem::float32) return add_products<float>;
  if (e == Elem::float64) return add_products<double>;
  return loop_kernels().add_products[static_cast<int>(e)];
}

}  // namespace

NDArray convolve(const NDArray& a_in, const NDArray& v_in) {
  const NDArray a = a_in.contiguous(), v = v_in.contiguous();
  const std::int64_t n = a.size(), m = v.size(), total = n + m - 1, size = elem_bytes(a.elem());
  const NDArray out = NDArray::empty(a.device(), a.elem(), Dims{total});
  const AddProductsFn add = adding(a.elem());
  const ColumnsFn columns = a.elem() == Elem::float32 || a.elem() == Elem::float64
                                ? vector_kernels().get<ColumnsFn>(VectorKernel::columns, a.elem())
                                : nullptr;
  const std::int64_t strip = 8192 / size, strips = (total + strip - 1) / strip;
  const auto shifted = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t k = 0; k < m; ++k) {  // a[i - k] of sums i
      const std::int64_t from = std::max(first, k), to = std::min(last, n + k);
      if (from < to)
        add(to - from, v.host() + k * size, a.host() + (from - k) * size, out.host() + from * size);
    }
  };
  runtime::Pool::shared().parallel_for(
      strips, std::max<std::int64_t>(1, 65536 / (strip * m)),
      [&](std::int64_t at, std::int64_t end) {
        for (; at < end; ++at) {
          const std::int64_t first = at * strip, last = std::min(first + strip, total);
          const std::int64_t from = std::max(first, m - 1), to = std::min(last, n);
          std::memset(out.host() + first * size, 0,
                      static_cast<std::size_t>((last - first) * size));
          if (!columns || from >= to) {
            shifted(first, last);
            continue;
          }
          shifted(first, from);
          columns(a.host() + from * size, v.host(), out.host() + from * size, to - from, m, -1);
          shifted(to, last);
        }
      });
  return out;
}

}  // namespace weft
