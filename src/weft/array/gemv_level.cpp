// SPDX-License-Identifier: Apache-2.0
// Matrix times vector for one processor level (WEFT_LEVEL). Memory is read once in several streams:
// four rows at once where rows are contiguous, eight columns at once where columns are.

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/array/gemm.h"
#include "weft/runtime/pool.h"

#define WEFT_JOIN2(a, b) a##_##b
#define WEFT_JOIN(a, b) WEFT_JOIN2(a, b)

namespace weft {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename T>
struct Lane {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr int kCount = kVectorBytes / static_cast<int>(sizeof(T));
};

template <typename T>
inline __attribute__((always_inline)) typename Lane<T>::Vector load(const T* p) {
  typename Lane<T>::Vector v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}

/// A vector's elements, pairwise.
template <typename T>
inline T total(typename Lane<T>::Vector v) {
  T parts[Lane<T>::kCount];
  std::memcpy(parts, &v, sizeof(v));
  for (int n = Lane<T>::kCount / 2; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) parts[i] += parts[i + n];
  }
  return parts[0];
}

/// out[r] = sum of a[r * row + p] * x[p] for kRows rows; kSums running vectors for each row.
template <int kRows, int kSums, typename T>
inline __attribute__((always_inline)) void rows(std::int64_t k, const T* __restrict a,
                                                std::int64_t row, const T* __restrict x, T* out) {
  using V = typename Lane<T>::Vector;
  constexpr int lanes = Lane<T>::kCount;
  V sums[kRows][kSums];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int u = 0; u < kSums; ++u) sums[r][u] = V{};
  }
  std::int64_t p = 0;
  for (; p + kSums * lanes <= k; p += kSums * lanes) {
#pragma GCC unroll 16
    for (int u = 0; u < kSums; ++u) {
      const V in = load(x + p + u * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) sums[r][u] += load(a + r * row + p + u * lanes) * in;
    }
  }
  for (; p + lanes <= k; p += lanes) {
    const V in = load(x + p);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) sums[r][0] += load(a + r * row + p) * in;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int n = kSums / 2; n > 0; n /= 2) {
#pragma GCC unroll 16
      for (int u = 0; u < n; ++u) sums[r][u] += sums[r][u + n];
    }
    T tail = T(0);
    for (std::int64_t q = p; q < k; ++q) tail += a[r * row + q] * x[q];
    out[r] = total<T>(sums[r][0]) + tail;
  }
}

/// One long product of two vectors: parts of fixed length, shared by the threads, joined pairwise.
template <typename T>
T dot(std::int64_t k, const T* a, const T* x) {
  constexpr std::int64_t kPart = 8192;
  T out = T(0);
  if (k <= kPart) {
    rows<1, 8>(k, a, 0, x, &out);
    return out;
  }
  const std::int64_t parts = (k + kPart - 1) / kPart;
  std::vector<T> sums(static_cast<std::size_t>(parts));
  runtime::Pool::shared().parallel_for(parts, 8, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) {
      const std::int64_t from = begin * kPart;
      rows<1, 8>(std::min(kPart, k - from), a + from, 0, x + from,
                 &sums[static_cast<std::size_t>(begin)]);
    }
  });
  for (std::size_t n = sums.size(); n > 1; n = (n + 1) / 2) {
    for (std::size_t i = 0; i < n / 2; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    if (n % 2) sums[n / 2] = sums[n - 1];
  }
  return sums[0];
}

/// y[i] = sum of a[i + p * col] * x[p], eight columns a pass over a piece of y that stays in the
/// first cache.
template <typename T>
void columns(std::int64_t m, std::int64_t k, const T* __restrict a, std::int64_t col,
             const T* __restrict x, T* __restrict y) {
  using V = typename Lane<T>::Vector;
  constexpr int lanes = Lane<T>::kCount;
  constexpr std::int64_t kPiece = 8192 / sizeof(T);
  for (std::int64_t from = 0; from < m; from += kPiece) {
    const std::int64_t count = std::min(kPiece, m - from);
    T* out = y + from;
    std::memset(out, 0, static_cast<std::size_t>(count) * sizeof(T));
    for (std::int64_t p = 0; p < k; p += 8) {
      const T* in = a + from + p * col;
      const std::int64_t n = std::min<std::int64_t>(8, k - p);
      std::int64_t i = 0;
      if (n == 8) {
        for (; i + lanes <= count; i += lanes) {
          V sum = load(out + i);
#pragma GCC unroll 8
          for (int q = 0; q < 8; ++q) sum += load(in + q * col + i) * (x[p + q] - V{});
          std::memcpy(out + i, &sum, sizeof(sum));
        }
      }
      for (; i < count; ++i) {
        T sum = out[i];
        for (std::int64_t q = 0; q < n; ++q) sum += in[q * col + i] * x[p + q];
        out[i] = sum;
      }
    }
  }
}

template <typename T>
bool gemv(std::int64_t m, std::int64_t k, const T* a, std::int64_t row, std::int64_t col,
          const T* x, std::int64_t step, T* y) {
  if (col != 1 && row != 1 && m > 1 && k > 1) return false;
  std::vector<T> line;  // x without gaps
  if (step != 1 && k > 1) {
    line.resize(static_cast<std::size_t>(k));
    for (std::int64_t p = 0; p < k; ++p) line[static_cast<std::size_t>(p)] = x[p * step];
    x = line.data();
  }
  auto& pool = runtime::Pool::shared();
  if (col == 1 || k == 1) {
    if (m == 1) {
      y[0] = dot(k, a, x);
      return true;
    }
    const std::int64_t grain = (std::max<std::int64_t>(8, 65536 / k) + 3) / 4 * 4;
    pool.parallel_for(m, grain, [&](std::int64_t i, std::int64_t end) {
      for (; i + 4 <= end; i += 4) rows<4, 2>(k, a + i * row, row, x, y + i);
      for (; i < end; ++i) rows<1, 2>(k, a + i * row, row, x, y + i);
    });
    return true;
  }
  if (m == 1) {  // one row with gaps
    T sum = T(0);
    for (std::int64_t p = 0; p < k; ++p) sum += a[p * col] * x[p];
    y[0] = sum;
    return true;
  }
  const std::int64_t grain = (std::max<std::int64_t>(64, 65536 / k) + 63) / 64 * 64;
  pool.parallel_for(m, grain, [&](std::int64_t i, std::int64_t end) {
    columns(end - i, k, a + i, col, x, y + i);
  });
  return true;
}

}  // namespace

void WEFT_JOIN(fill_gemv, WEFT_LEVEL)(GemmTable& table) {
  table.v32 = gemv<float>;
  table.v64 = gemv<double>;
}

}  // namespace weft
