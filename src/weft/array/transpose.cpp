// SPDX-License-Identifier: Apache-2.0
#include "weft/array/transpose.h"

#include <algorithm>
#include <cstdlib>

#include "weft/array/nest.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// out[i * out_step + j] = in[j * in_step + i] for i in [0, m), j in [0, n); steps in elements.
struct Plane {
  const char* in;
  char* out;
  std::int64_t in_step, out_step, m, n;
};

TransposeFn choose(int bytes, bool stream) {
  const Elem e = bytes == 1   ? Elem::uint8
                 : bytes == 2 ? Elem::uint16
                 : bytes == 4 ? Elem::uint32
                              : Elem::uint64;
  return vector_kernels().get<TransposeFn>(
      stream ? VectorKernel::transpose_stream : VectorKernel::transpose, e);
}

}  // namespace

bool transpose_copy(const NDArray& dst, const NDArray& src) {
  const int bytes = elem_bytes(src.elem());
  if (bytes > 8 || src.elem() != dst.elem() || !(src.shape() == dst.shape())) return false;
  // Axes of extent 1 do not matter; find the contiguous axis of either side.
  int inner_dst = -1, inner_src = -1;
  Dims others, step_dst, step_src;
  for (int i = 0; i < dst.ndim(); ++i) {
    if (dst.shape()[i] == 1) continue;
    if (dst.strides()[i] == 1 && inner_dst < 0) inner_dst = i;
    // Backwards, too: rows are written from the last one on.
    if (std::abs(src.strides()[i]) == 1 && inner_src < 0) inner_src = i;
  }
  if (inner_dst < 0 || inner_src < 0 || inner_dst == inner_src) return false;
  const std::int64_t m = dst.shape()[inner_src], n = dst.shape()[inner_dst];
  if (m < 8 || n < 8) return false;
  std::int64_t planes = 1;
  for (int i = 0; i < dst.ndim(); ++i) {
    if (i == inner_dst || i == inner_src) continue;
    others.push_back(dst.shape()[i]);
    step_dst.push_back(dst.strides()[i]);
    step_src.push_back(src.strides()[i]);
    planes *= dst.shape()[i];
  }
  Plane base{src.host(), dst.host(), src.strides()[inner_dst], dst.strides()[inner_src], m, n};
  if (src.strides()[inner_src] < 0) {
    base.in -= (m - 1) * bytes;
    base.out += (m - 1) * base.out_step * bytes;
    base.out_step = -base.out_step;
  }
  // Past the caches when the result is larger than a cache and every row starts on a vector.
  const bool aligned = reinterpret_cast<std::uintptr_t>(base.out) % 32 == 0 &&
                       base.out_step * bytes % 32 == 0 && [&] {
                         for (std::int64_t s : step_dst) {
                           if (s * bytes % 32) return false;
                         }
                         return true;
                       }();
  const bool stream = aligned && dst.nbytes() >= (std::int64_t{8} << 20);
  const TransposeFn block = choose(bytes, stream);
  const std::int64_t unit = stream ? vector_kernels().shape.side(bytes) : 1;
  // Two lines of memory of each source row at a time: the rows that are written are then few enough
  // streams for a processor to fetch ahead, and the source's lines stay in the first-level cache.
  // What is stored past the caches needs no such care.
  constexpr std::int64_t kLines = 128, kRun = 2048;  // bytes
  const std::int64_t tall = stream ? 128 : kLines / bytes, wide = stream ? n : kRun / bytes;
  const std::int64_t strips = (m + tall - 1) / tall;
  runtime::Pool::shared().parallel_for(
      planes * strips, std::max<std::int64_t>(1, kParallelGrain / (tall * n)),
      [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) {
          Plane p = base;
          std::int64_t rest = begin / strips;
          for (int i = others.size() - 1; i >= 0; --i) {
            std::int64_t x = rest % others[i];
            rest /= others[i];
            p.in += x * step_src[i] * bytes;
            p.out += x * step_dst[i] * bytes;
          }
          const std::int64_t i0 = begin % strips * tall, rows = std::min(m - i0, tall);
          p.in += i0 * bytes, p.out += i0 * p.out_step * bytes;
          for (std::int64_t j = 0; j < n; j += wide)
            block(p.in + j * p.in_step * bytes, p.out + j * bytes, rows, std::min(n - j, wide),
                  p.in_step, p.out_step / unit);
        }
      });
  return true;
}

}  // namespace weft
