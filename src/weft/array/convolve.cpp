// SPDX-License-Identifier: Apache-2.0
// A convolution with a short vector: multiples of the long one, shifted, to a strip of sums that
// stays in the cache.

#include "weft/array/convolve.h"

#include <algorithm>
#include <cstring>

#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

NDArray convolve(const NDArray& a_in, const NDArray& v_in) {
  const NDArray a = a_in.contiguous(), v = v_in.contiguous();
  const std::int64_t n = a.size(), m = v.size(), total = n + m - 1, size = elem_bytes(a.elem());
  const NDArray out = NDArray::empty(a.device(), a.elem(), Dims{total});
  const AddProductsFn add = loop_kernels().add_products[static_cast<int>(a.elem())];
  std::memset(out.host(), 0, static_cast<std::size_t>(out.nbytes()));
  const std::int64_t strip = 8192 / size, strips = (total + strip - 1) / strip;
  runtime::Pool::shared().parallel_for(
      strips, std::max<std::int64_t>(1, 65536 / (strip * m)),
      [&](std::int64_t at, std::int64_t end) {
        for (; at < end; ++at) {
          const std::int64_t first = at * strip, last = std::min(first + strip, total);
          for (std::int64_t k = 0; k < m; ++k) {  // a[i - k] of sums i in the strip
            const std::int64_t from = std::max(first, k), to = std::min(last, n + k);
            if (from < to)
              add(to - from, v.host() + k * size, a.host() + (from - k) * size,
                  out.host() + from * size);
          }
        }
      });
  return out;
}

}  // namespace weft
