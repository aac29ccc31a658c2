// SPDX-License-Identifier: Apache-2.0
// Running sums and products.

#include <algorithm>
#include <cstring>

#include "weft/array/feed.h"
#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/host/kernel_lists.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Elements that one running sum of floats adds up before it joins what came before: the error
/// grows with the number of blocks, not of elements.
constexpr std::int64_t kSummed = 512;

/// A line of running sums of floats: each block from nothing, then plus the blocks before it.
template <typename T>
void scan_blocks(ScanFn fn, std::int64_t n, const T* from, T* to) {
  const ElementwiseFn add = one_kernel(1, Op::add, sizeof(T) == 4 ? Elem::float32 : Elem::float64);
  double before = 0;
  for (std::int64_t first = 0; first < n; first += kSummed) {
    const std::int64_t m = std::min(kSummed, n - first);
    T state = to[first] = from[first];
    if (m > 1) fn(m - 1, from + first + 1, to + first + 1, &state);
    const double sum = to[first + m - 1];
    if (first > 0) {
      const T base = static_cast<T>(before);
      const void* in[2] = {to + first, &base};
      add(m, in, to + first);
    }
    before = first > 0 ? before + sum : sum;
  }
}

}  // namespace

NDArray scan(ReduceOp op, const NDArray& x, int axis, std::optional<Elem> dtype) {
  axis = normalize_axis(axis, x.ndim(), "cumulative");
  Elem acc = reduced_elem(op, x.elem(), dtype);
  Elem kernel = kernel_elem(acc);
  if (!x.on_host()) {
    NDArray out = on_device().scan(op, x, axis, kernel);
    return acc == kernel ? out : out.astype(acc);
  }
  const bool sums = op == ReduceOp::sum && is_real_float(kernel) && x.shape()[axis] > kSummed;
  if (sums && kernel == Elem::float32 && x.size() / x.shape()[axis] > 1 && axis != x.ndim() - 1)
    return scan(op, x, axis, Elem::float64).astype(acc);
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.shape()[i];
  // Lines of another type are converted a piece at a time.
  const CastFn cast = x.elem() != kernel && inner == 1 && !sums
                          ? kernels().cast[static_cast<int>(x.elem())][static_cast<int>(kernel)]
                          : nullptr;
  const NDArray in = cast || x.elem() == kernel ? x.contiguous() : x.astype(kernel);
  NDArray out = NDArray::empty(x.device(), kernel, x.shape());
  if (out.size() == 0) return acc == kernel ? out : out.astype(acc);
  const std::int64_t n = x.shape()[axis], bytes = elem_bytes(kernel);
  const auto e = static_cast<int>(kernel);
  ScanFn fn = kernels().scan[static_cast<int>(op)][e];
  runtime::Pool& pool = runtime::Pool::shared();
  if (inner == 1) {
    pool.parallel_for(outer, std::max<std::int64_t>(1, kParallelGrain / n),
                      [&](std::int64_t b, std::int64_t end) {
                        for (; b < end; ++b) {
                          alignas(16) char state[16];
                          const std::int64_t step = elem_bytes(in.elem());
                          const char* from = in.host() + b * n * step;
                          char* to = out.host() + b * n * bytes;
                          if (cast) {
                            cast(1, from, state);
                            std::memcpy(to, state, static_cast<std::size_t>(bytes));
                            Slot piece;
                            for (std::int64_t at = 1; at < n; at += kChunk) {
                              const std::int64_t m = std::min(kChunk, n - at);
                              cast(m, from + at * step, piece.data);
                              fn(m, piece.data, to + at * bytes, state);
                            }
                            continue;
                          }
                          if (sums && kernel == Elem::float32) {
                            scan_blocks(fn, n, reinterpret_cast<const float*>(from),
                                        reinterpret_cast<float*>(to));
                            continue;
                          }
                          if (sums) {
                            scan_blocks(fn, n, reinterpret_cast<const double*>(from),
                                        reinterpret_cast<double*>(to));
                            continue;
                          }
                          std::memcpy(state, from, static_cast<std::size_t>(bytes));
                          std::memcpy(to, from, static_cast<std::size_t>(bytes));
                          if (n > 1) fn(n - 1, from + bytes, to + bytes, state);
                        }
                      });
    return acc == kernel ? out : out.astype(acc);
  }
  // Rows behind the axis are combined with the row before, a strip of columns at a time.
  const std::int64_t width = 16 * kChunk / bytes, strips = (inner + width - 1) / width;
  AccumulateFn join = kernels().accumulate[static_cast<int>(op)][e];
  const Op both = op == ReduceOp::sum ? Op::add : Op::multiply;
  const ElementwiseFn next = op == ReduceOp::sum || op == ReduceOp::prod
                                 ? kernels().elementwise[static_cast<int>(both)][e]
                                 : nullptr;
  pool.parallel_for(
      outer * strips, std::max<std::int64_t>(1, kParallelGrain / (n * std::min(width, inner))),
      [&](std::int64_t t, std::int64_t end) {
        for (; t < end; ++t) {
          const std::int64_t at = t % strips * width, m = std::min(width, inner - at);
          const std::int64_t first = (t / strips * n * inner + at) * bytes, step = inner * bytes;
          const auto row = static_cast<std::size_t>(m * bytes);
          std::memcpy(out.host() + first, in.host() + first, row);
          for (std::int64_t r = 1; r < n; ++r) {
            char* to = out.host() + first + r * step;
            const void* rows[2] = {to - step, in.host() + first + r * step};
            if (next) {
              next(m, rows, to);
              continue;
            }
            std::memcpy(to, to - step, row);
            join(m, rows[1], to);
          }
        }
      });
  return acc == kernel ? out : out.astype(acc);
}

}  // namespace weft
