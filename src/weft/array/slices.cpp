// SPDX-License-Identifier: Apache-2.0
#include "weft/array/slices.h"

#include <algorithm>

#include "weft/array/feed.h"
#include "weft/array/nest.h"
#include "weft/runtime/pool.h"

namespace weft {

NDArray reduce_slices(ReduceOp op, const NDArray& x, const NDArray& places) {
  const Elem result = reduced_elem(op, x.elem()), kernel = kernel_elem(result);
  const NDArray in = (x.elem() == kernel ? x : x.astype(kernel)).contiguous(),
                at = places.contiguous(), out = NDArray::empty(x.device(), kernel, places.shape());
  const ReduceFn reduce = kernels().reduce[static_cast<int>(op)][static_cast<int>(kernel)];
  WEFT_CHECK(reduce, "slices of ", describe(x));
  const auto* const begin = reinterpret_cast<const std::int64_t*>(at.host());
  const std::int64_t count = at.size(), n = in.size(), bytes = elem_bytes(kernel);
  const std::int64_t grain = kParallelGrain * count / std::max<std::int64_t>(n, 1);
  runtime::Pool::shared().parallel_for(
      count, std::max<std::int64_t>(grain, 1), [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) {
          const std::int64_t next = i + 1 < count ? begin[i + 1] : n;
          reduce(std::max<std::int64_t>(next - begin[i], 1), in.host() + begin[i] * bytes,
                 out.host() + i * bytes);
        }
      });
  return kernel == result ? out : out.astype(result);
}

}  // namespace weft
