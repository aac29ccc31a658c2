// SPDX-License-Identifier: Apache-2.0
#include "weft/array/strided_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "weft/array/nest.h"
#include "weft/host/copy_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

void copy_run(int bytes, char* to, std::int64_t ts, const char* from, std::int64_t fs,
              std::int64_t n) {
  if (ts == 1 && fs == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n * bytes));
    return;
  }
  const CopyKernel kernel = ts == 1 && fs == 2    ? CopyKernel::gather_two
                            : ts == 2 && fs == 1  ? CopyKernel::scatter_two
                            : ts == 2 && fs == 2  ? CopyKernel::both_two
                            : ts == 1 && fs == -1 ? CopyKernel::reverse
                            : ts == 1 && fs == 0  ? CopyKernel::spread
                                                  : CopyKernel::any;
  if (kernel == CopyKernel::reverse) from -= (n - 1) * bytes;
  const int size = std::countr_zero(static_cast<unsigned>(bytes));
  copy_kernels().function[static_cast<int>(kernel)][size](from, to, n, ts, fs);
}

namespace {

/// Runs up to here cost more in calls than in moves.
constexpr std::int64_t kShortRun = 4;

/// Axes of both, merged where both allow it; steps in elements.
struct Pair {
  int ndim = 0;
  std::int64_t shape[kMaxDims], to[kMaxDims], from[kMaxDims];
};

Pair make_pair(const NDArray& dst, const NDArray& src) {
  Pair p;
  const Dims from = broadcast_strides(src, dst.shape());
  for (int i = 0; i < dst.ndim(); ++i) {
    const std::int64_t n = dst.shape()[i];
    if (n == 1) continue;
    const int last = p.ndim - 1;
    if (last >= 0 && p.to[last] == dst.strides()[i] * n && p.from[last] == from[i] * n) {
      p.shape[last] *= n;
      p.to[last] = dst.strides()[i];
      p.from[last] = from[i];
      continue;
    }
    p.shape[p.ndim] = n;
    p.to[p.ndim] = dst.strides()[i];
    p.from[p.ndim++] = from[i];
  }
  return p;
}

void copy(int bytes, const Pair& p, char* to, const char* from) {
  const int last = p.ndim - 1;
  const std::int64_t n = p.shape[last], ts = p.to[last], fs = p.from[last];
  std::int64_t rows = 1;
  for (int i = 0; i < last; ++i) rows *= p.shape[i];
  if (rows == 1) {
    runtime::Pool::shared().parallel_for(n, kParallelGrain, [&](std::int64_t i, std::int64_t end) {
      copy_run(bytes, to + i * ts * bytes, ts, from + i * fs * bytes, fs, end - i);
    });
    return;
  }
  runtime::Pool::shared().parallel_for(
      rows, std::max<std::int64_t>(1, kParallelGrain / n), [&](std::int64_t r, std::int64_t end) {
        std::int64_t count[kMaxDims], left = r, t = 0, f = 0;
        for (int i = last - 1; i >= 0; --i) {
          count[i] = left % p.shape[i];
          left /= p.shape[i];
          t += count[i] * p.to[i];
          f += count[i] * p.from[i];
        }
        for (; r < end; ++r) {
          copy_run(bytes, to + t * bytes, ts, from + f * bytes, fs, n);
          for (int i = last - 1; i >= 0; --i) {
            t += p.to[i];
            f += p.from[i];
            if (++count[i] < p.shape[i]) break;
            t -= p.to[i] * p.shape[i];
            f -= p.from[i] * p.shape[i];
            count[i] = 0;
          }
        }
      });
}

}  // namespace

bool strided_copy(const NDArray& dst, const NDArray& src) {
  if (src.elem() != dst.elem()) return false;
  const Pair p = make_pair(dst, src);
  if (p.ndim == 0 || (p.ndim == 1 && p.to[0] == 1 && p.from[0] == 1)) return false;
  const int last = p.ndim - 1, bytes = elem_bytes(dst.elem());
  if (last > 0 && p.shape[last] <= kShortRun && p.shape[last - 1] > p.shape[last]) {
    // Short runs along the last axis: each of its places is a copy along the one before.
    Pair outer = p;
    --outer.ndim;
    for (std::int64_t j = 0; j < p.shape[last]; ++j)
      copy(bytes, outer, dst.host() + j * p.to[last] * bytes,
           src.host() + j * p.from[last] * bytes);
    return true;
  }
  copy(bytes, p, dst.host(), src.host());
  return true;
}

}  // namespace weft
