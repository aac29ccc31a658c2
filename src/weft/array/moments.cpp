// SPDX-License-Identifier: Apache-2.0
// One pass: a chunk's differences and squares stay in the first cache. Chunks are summed in order
// within blocks of fixed length, so that the result does not depend on the number of threads.

#include "weft/array/moments.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/array/kernel_lists.h"
#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/runtime/pool.h"

namespace weft {

NDArray squares_about(const NDArray& x, const NDArray& mean) {
  const Elem elem = x.elem();
  WEFT_CHECK((elem == Elem::float32 || elem == Elem::float64) && mean.elem() == elem &&
                 x.is_contiguous() && mean.is_contiguous() && mean.size() > 0 &&
                 x.size() % mean.size() == 0 && x.size() > 0,
             "squares_about of ", describe(x), " and ", describe(mean));
  const auto e = static_cast<std::size_t>(elem);
  const ElementwiseFn subtract = one_kernel(1, Op::subtract, elem),
                      square = kernels().elementwise[static_cast<std::size_t>(Op::square)][e];
  const ReduceFn sum = kernels().reduce[static_cast<std::size_t>(ReduceOp::sum)][e];
  const std::int64_t rows = mean.size(), n = x.size() / rows, bytes = elem_bytes(elem);
  constexpr std::int64_t kBlock = 64 * kChunk;
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  NDArray parts = NDArray::empty(x.device(), elem, Dims{rows, blocks});
  runtime::Pool::shared().parallel_for(
      rows * blocks, std::max<std::int64_t>(1, kParallelGrain / std::min(n, kBlock)),
      [&](std::int64_t t, std::int64_t end) {
        alignas(64) char differences[kChunk * 8], sums[64 * 8];
        for (; t < end; ++t) {
          const std::int64_t row = t / blocks, from = t % blocks * kBlock,
                             stop = std::min(n, from + kBlock);
          std::int64_t chunks = 0;
          for (std::int64_t at = from; at < stop; at += kChunk, ++chunks) {
            const std::int64_t m = std::min(kChunk, stop - at);
            const void* in[2] = {x.host() + (row * n + at) * bytes, mean.host() + row * bytes};
            subtract(m, in, differences);
            const void* again[1] = {differences};
            square(m, again, differences);
            sum(m, differences, sums + chunks * bytes);
          }
          sum(chunks, sums, parts.host() + t * bytes);
        }
      });
  if (blocks == 1) return parts.reshape(Dims{rows});
  return reduce(ReduceOp::sum, parts, Axes{false, Dims{1}}, false);
}

}  // namespace weft
