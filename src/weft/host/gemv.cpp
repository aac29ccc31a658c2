// SPDX-License-Identifier: Apache-2.0
// Matrix times vector: memory is read once in several streams, four rows at once where rows are
// contiguous, eight columns at once where columns are.

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/host/gemm.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {
namespace {

using I = std::int64_t;

template <typename T>
struct Dots {
  DotFn four, one, long_one;
  ColumnsFn columns;
};

template <typename T>
const Dots<T>& dots() {
  static const Dots<T> all = [] {
    const VectorTable& t = vector_kernels();
    const Elem e = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
    return Dots<T>{t.get<DotFn>(VectorKernel::dot_four, e), t.get<DotFn>(VectorKernel::dot_one, e),
                   t.get<DotFn>(VectorKernel::dot_long, e),
                   t.get<ColumnsFn>(VectorKernel::columns, e)};
  }();
  return all;
}

/// One long product of two vectors: parts of fixed length, shared by the threads, joined pairwise.
template <typename T>
T dot(I k, const T* a, const T* x) {
  constexpr I kPart = 8192;
  T out = T(0);
  if (k <= kPart) {
    dots<T>().long_one(a, x, &out, k, 0);
    return out;
  }
  const I parts = (k + kPart - 1) / kPart;
  std::vector<T> sums(static_cast<std::size_t>(parts));
  runtime::Pool::shared().parallel_for(parts, 8, [&](I begin, I end) {
    for (; begin < end; ++begin) {
      const I from = begin * kPart;
      dots<T>().long_one(a + from, x + from, &sums[static_cast<std::size_t>(begin)],
                         std::min(kPart, k - from), 0);
    }
  });
  for (std::size_t n = sums.size(); n > 1; n = (n + 1) / 2) {
    for (std::size_t i = 0; i < n / 2; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    if (n % 2) sums[n / 2] = sums[n - 1];
  }
  return sums[0];
}

/// y[i] = sum of a[i + p * col] * x[p], over pieces of y that stay in the first cache.
template <typename T>
void columns(I m, I k, const T* a, I col, const T* x, T* y) {
  constexpr I kPiece = 8192 / sizeof(T);
  for (I from = 0; from < m; from += kPiece) {
    const I count = std::min(kPiece, m - from);
    std::memset(y + from, 0, static_cast<std::size_t>(count) * sizeof(T));
    dots<T>().columns(a + from, x, y + from, count, k, col);
  }
}

/// x with step 1, in `line` where it had gaps.
template <typename T>
const T* without_gaps(I k, const T* x, I step, std::vector<T>& line) {
  if (step == 1 || k <= 1) return x;
  line.resize(static_cast<std::size_t>(k));
  for (I p = 0; p < k; ++p) line[static_cast<std::size_t>(p)] = x[p * step];
  return line.data();
}

}  // namespace

template <typename T>
bool gemv(I m, I k, const T* a, I row, I col, const T* x, I step, T* y) {
  if (col != 1 && row != 1 && m > 1 && k > 1) return false;
  std::vector<T> line;
  x = without_gaps(k, x, step, line);
  auto& pool = runtime::Pool::shared();
  if (col == 1 || k == 1) {
    if (m == 1) {
      y[0] = dot(k, a, x);
      return true;
    }
    const I grain = (std::max<I>(8, 65536 / k) + 3) / 4 * 4;
    pool.parallel_for(m, grain, [&](I i, I end) {
      for (; i + 4 <= end; i += 4) dots<T>().four(a + i * row, x, y + i, k, row);
      for (; i < end; ++i) dots<T>().one(a + i * row, x, y + i, k, row);
    });
    return true;
  }
  if (m == 1) {  // one row with gaps
    T sum = T(0);
    for (I p = 0; p < k; ++p) sum += a[p * col] * x[p];
    y[0] = sum;
    return true;
  }
  const I grain = (std::max<I>(64, 65536 / k) + 63) / 64 * 64;
  pool.parallel_for(m, grain, [&](I i, I end) { columns(end - i, k, a + i, col, x, y + i); });
  return true;
}

template <typename T>
void gemv_two(I m, I k, const T* a, I row, const T* x, const T* w, T* y, T* z) {
  const I grain = (std::max<I>(8, 32768 / k) + 3) / 4 * 4;
  runtime::Pool::shared().parallel_for(m, grain, [&](I i, I end) {
    for (; i < end; i += 4) {
      const bool four = i + 4 <= end;
      const DotFn rows = four ? dots<T>().four : dots<T>().one;
      for (I r = i, last = std::min(end, i + 4); r < last; r += four ? 4 : 1) {
        rows(a + r * row, x, y + r, k, row);
        rows(a + r * row, w, z + r, k, row);
      }
    }
  });
}

bool narrow_gemv(I m, I k, Elem held, const void* from, I row, I col, const float* x, I step,
                 float* y) {
  const auto* a = static_cast<const std::uint16_t*>(from);
  const CastFn widen = kernels().cast[static_cast<int>(held)][static_cast<int>(Elem::float32)];
  constexpr I kWide = 8192;  // elements of a block: half of the nearest cache
  const bool rows = col == 1 || k == 1;
  if (!rows && row != 1 && m > 1) return false;
  std::vector<float> line;
  x = without_gaps(k, x, step, line);
  auto& pool = runtime::Pool::shared();
  if (rows) {
    const I grain = (std::max<I>(8, 65536 / k) + 3) / 4 * 4;
    pool.parallel_for(m, grain, [&](I i, I end) {
      const I count = std::min(end - i, std::max<I>(4, kWide / k / 4 * 4));
      std::vector<float> wide(static_cast<std::size_t>(count * k));
      for (; i < end; i += count) {
        const I height = std::min(count, end - i);
        if (row == k || height == 1) {
          widen(height * k, a + i * row, wide.data());
        } else {
          for (I r = 0; r < height; ++r) widen(k, a + (i + r) * row, wide.data() + r * k);
        }
        I r = 0;
        for (; r + 4 <= height; r += 4) dots<float>().four(wide.data() + r * k, x, y + i + r, k, k);
        for (; r < height; ++r) dots<float>().one(wide.data() + r * k, x, y + i + r, k, k);
      }
    });
    return true;
  }
  // Columns: eight of a piece of y at a time, which are added to it.
  constexpr I kPiece = kWide / 8, kColumns = 8;
  const auto direct = vector_kernels().get<ColumnsFn>(VectorKernel::columns, held);
  const I grain = (std::max<I>(64, 65536 / k) + 63) / 64 * 64;
  pool.parallel_for(m, grain, [&](I at, I end) {
    std::vector<float> wide(static_cast<std::size_t>(direct ? 0 : kPiece * kColumns));
    for (; at < end; at += kPiece) {
      const I count = std::min(kPiece, end - at);
      std::memset(y + at, 0, static_cast<std::size_t>(count) * sizeof(float));
      if (direct) {
        direct(a + at, x, y + at, count, k, col);
        continue;
      }
      for (I p = 0; p < k; p += kColumns) {
        const I width = std::min(kColumns, k - p);
        for (I c = 0; c < width; ++c)
          widen(count, a + at + (p + c) * col, wide.data() + c * kPiece);
        dots<float>().columns(wide.data(), x + p, y + at, count, width, kPiece);
      }
    }
  });
  return true;
}

template bool gemv(I, I, const float*, I, I, const float*, I, float*);
template bool gemv(I, I, const double*, I, I, const double*, I, double*);
template void gemv_two(I, I, const float*, I, const float*, const float*, float*, float*);
template void gemv_two(I, I, const double*, I, const double*, const double*, double*, double*);

}  // namespace weft
