// SPDX-License-Identifier: Apache-2.0
// The matrix product for one processor level (WEFT_LEVEL). Blocks as in Goto's
// scheme: a KC x NR panel of B stays in the first cache, an MC x KC block of A
// in the second, a register tile of MR x NR accumulates.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "weft/array/gemm.h"
#include "weft/runtime/pool.h"

#define WEFT_JOIN2(a, b) a##_##b
#define WEFT_JOIN(a, b) WEFT_JOIN2(a, b)

namespace weft {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64, kMr = 12;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32, kMr = 6;
#else
constexpr int kVectorBytes = 16, kMr = 4;
#endif

template <typename T>
struct Shape {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  /// A vector anywhere in memory: memcpy of two would go through the stack.
  typedef T Loose __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kNr = 2 * kLanes;
  // A panel of B and one of A fit the first cache together.
  static constexpr std::int64_t kKc = sizeof(T) == 8 ? 256 : 352;
  static constexpr std::int64_t kMc = kMr * 24;
  static constexpr std::int64_t kNc = 1024;
  static constexpr std::int64_t kDeep = 8;  // parts of k that are packed at once
};

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <typename T>
std::unique_ptr<T[], Free> aligned(std::int64_t count) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, static_cast<std::size_t>(count) * sizeof(T)) != 0) p = nullptr;
  return std::unique_ptr<T[], Free>(static_cast<T*>(p));
}

/// Packing space of a thread, kept between products: fresh pages would cost
/// more than packing.
template <typename T>
T* scratch(int which, std::int64_t count) {
  struct Space {
    std::unique_ptr<T[], Free> data;
    std::int64_t size = 0;
  };
  static thread_local Space spaces[2];
  Space& s = spaces[which];
  if (s.size < count) {
    s.data.reset();
    s.data = aligned<T>(count);
    s.size = s.data ? count : 0;
  }
  return s.data.get();
}

/// c[i, j] (+)= sum over p of a[i * row + p * step] * b[p * NR + j].
template <typename T>
inline __attribute__((always_inline)) void tile(std::int64_t kc, const T* __restrict a,
                                                std::int64_t row, std::int64_t step,
                                                const T* __restrict b, T* c, std::int64_t ldc,
                                                bool add) {
  using V = typename Shape<T>::Vector;
  constexpr int lanes = Shape<T>::kLanes;
  V acc[kMr][2];
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    acc[i][0] = acc[i][1] = V{};
  }
#pragma GCC unroll 4
  for (std::int64_t p = 0; p < kc; ++p) {
    V b0, b1;
    std::memcpy(&b0, b, sizeof(V));
    std::memcpy(&b1, b + lanes, sizeof(V));
#pragma GCC unroll 16
    for (int i = 0; i < kMr; ++i) {
      V x = a[i * row] - V{};  // spread; + would add, because of signed zeros
      acc[i][0] += x * b0;
      acc[i][1] += x * b1;
    }
    a += step;
    b += 2 * lanes;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
    auto* out = reinterpret_cast<typename Shape<T>::Loose*>(c + i * ldc);
    if (add) {
      acc[i][0] += out[0];
      acc[i][1] += out[1];
    }
    out[0] = acc[i][0];
    out[1] = acc[i][1];
  }
}

#if defined(__AVX2__)
/// 8 x 8 floats: r[c] = column c of the rows at in, in + step, ...
inline __attribute__((always_inline)) void turn(const float* const* rows, std::int64_t p,
                                                __m256 r[8]) {
  __m256 a[8];
  for (int k = 0; k < 4; ++k) {
    a[2 * k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows[k] + p)),
                                    _mm_loadu_ps(rows[k + 4] + p), 1);
    a[2 * k + 1] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows[k] + p + 4)),
                                        _mm_loadu_ps(rows[k + 4] + p + 4), 1);
  }
  for (int h = 0; h < 2; ++h) {
    __m256 b0 = _mm256_unpacklo_ps(a[0 + h], a[2 + h]), b1 = _mm256_unpackhi_ps(a[0 + h], a[2 + h]);
    __m256 b2 = _mm256_unpacklo_ps(a[4 + h], a[6 + h]), b3 = _mm256_unpackhi_ps(a[4 + h], a[6 + h]);
    r[h * 4 + 0] = _mm256_shuffle_ps(b0, b2, 0x44);
    r[h * 4 + 1] = _mm256_shuffle_ps(b0, b2, 0xee);
    r[h * 4 + 2] = _mm256_shuffle_ps(b1, b3, 0x44);
    r[h * 4 + 3] = _mm256_shuffle_ps(b1, b3, 0xee);
  }
}
inline __attribute__((always_inline)) void turn(const double* const* rows, std::int64_t p,
                                                __m256d r[4]) {
  __m256d a0 = _mm256_loadu_pd(rows[0] + p), a1 = _mm256_loadu_pd(rows[1] + p),
          a2 = _mm256_loadu_pd(rows[2] + p), a3 = _mm256_loadu_pd(rows[3] + p);
  __m256d b0 = _mm256_unpacklo_pd(a0, a1), b1 = _mm256_unpackhi_pd(a0, a1),
          b2 = _mm256_unpacklo_pd(a2, a3), b3 = _mm256_unpackhi_pd(a2, a3);
  r[0] = _mm256_permute2f128_pd(b0, b2, 0x20);
  r[1] = _mm256_permute2f128_pd(b1, b3, 0x20);
  r[2] = _mm256_permute2f128_pd(b0, b2, 0x31);
  r[3] = _mm256_permute2f128_pd(b1, b3, 0x31);
}
struct EightColumns {
  __m256 r[8];
};
struct FourColumns {
  __m256d r[4];
};
inline void put(float* out, __m256 v) { _mm256_storeu_ps(out, v); }
inline void put(double* out, __m256d v) { _mm256_storeu_pd(out, v); }
#endif

/// out[p * kWidth + r] = row r at p, for `rows` rows with unit steps along p,
/// zeros beyond; whole vectors are stored in ascending order, so what a store
/// writes too far the next one overwrites. `out` has room for a vector more.
template <int kWidth, typename T>
void interleave(std::int64_t rows, std::int64_t k, const T* in, std::int64_t step, T* out) {
  std::int64_t p = 0;
#if defined(__AVX2__)
  constexpr int kSide = 32 / static_cast<int>(sizeof(T));
  constexpr int kGroups = (kWidth + kSide - 1) / kSide;
  alignas(64) static const T kZeros[kSide] = {};
  for (; p + kSide <= k; p += kSide) {
    std::conditional_t<sizeof(T) == 4, EightColumns, FourColumns> groups[kGroups];
    for (int g = 0; g < kGroups; ++g) {
      const T* at[kSide];
      for (int i = 0; i < kSide; ++i)
        at[i] = g * kSide + i < rows ? in + (g * kSide + i) * step : kZeros - p;
      turn(at, p, groups[g].r);
    }
    for (int c = 0; c < kSide; ++c) {
      for (int g = 0; g < kGroups; ++g) put(out + (p + c) * kWidth + g * kSide, groups[g].r[c]);
    }
  }
#endif
  for (; p < k; ++p) {
    for (std::int64_t r = 0; r < kWidth; ++r)
      out[p * kWidth + r] = r < rows ? in[r * step + p] : T(0);
  }
}

template <typename T>
void pack_a(std::int64_t m, std::int64_t k, const T* a, std::int64_t row, std::int64_t col,
            T* out) {
  for (std::int64_t i = 0; i < m; i += kMr) {
    std::int64_t rows = std::min<std::int64_t>(kMr, m - i);
    const T* in = a + i * row;
    if (col == 1) {
      interleave<kMr>(rows, k, in, row, out);
    } else if (row == 1 && rows == kMr) {
      for (std::int64_t p = 0; p < k; ++p)
        std::memcpy(out + p * kMr, in + p * col, sizeof(T) * kMr);
    } else {
      for (std::int64_t p = 0; p < k; ++p) {
        for (std::int64_t r = 0; r < kMr; ++r)
          out[p * kMr + r] = r < rows ? in[r * row + p * col] : T(0);
      }
    }
    out += kMr * k;
  }
}

template <typename T>
void pack_b(std::int64_t k, std::int64_t n, const T* b, std::int64_t row, std::int64_t col,
            T* out) {
  constexpr std::int64_t nr = Shape<T>::kNr;
  for (std::int64_t j = 0; j < n; j += nr) {
    std::int64_t cols = std::min(nr, n - j);
    if (cols == nr && col == 1) {
      for (std::int64_t p = 0; p < k; ++p)
        std::memcpy(out + p * nr, b + p * row + j, sizeof(T) * nr);
    } else if (row == 1) {
      interleave<Shape<T>::kNr>(cols, k, b + j * col, col, out);
    } else {
      for (std::int64_t p = 0; p < k; ++p) {
        const T* in = b + p * row + j * col;
        for (std::int64_t c = 0; c < nr; ++c) out[p * nr + c] = c < cols ? in[c * col] : T(0);
      }
    }
    out += nr * k;
  }
}

/// kDirect: A is read where it stands, rows of unit step `row` apart, but for
/// the last ones that do not fill a tile, which are packed at `rest`.
template <bool kDirect, typename T>
void block(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t row,
           const T* rest, const T* b, T* c, std::int64_t ldc, bool add) {
  constexpr std::int64_t nr = Shape<T>::kNr, line = 64 / sizeof(T);
  const std::int64_t tiles = (m + kMr - 1) / kMr;
  const std::int64_t share = (nr * k / tiles + line) / line * line;
  for (std::int64_t j = 0; j < n; j += nr) {
    const T* bp = b + j * k;
    const T* next = bp + nr * k;  // of B: brought in while this one is used
    const T* next_end = j + nr < n ? next + nr * k : next;
    for (std::int64_t i = 0; i < m; i += kMr) {
      for (const T* end = std::min(next + share, next_end); next < end; next += line)
        __builtin_prefetch(next, 0, 2);
      std::int64_t rows = std::min<std::int64_t>(kMr, m - i), cols = std::min(nr, n - j);
      if (rows == kMr && cols == nr) {
        if constexpr (kDirect) tile<T>(k, a + i * row, row, 1, bp, c + i * ldc + j, ldc, add);
        else tile<T>(k, a + i * k, 1, kMr, bp, c + i * ldc + j, ldc, add);
      } else {
        alignas(64) T edge[kMr * nr];
        if (kDirect && rows == kMr) tile<T>(k, a + i * row, row, 1, bp, edge, nr, false);
        else tile<T>(k, kDirect ? rest : a + i * k, 1, kMr, bp, edge, nr, false);
        for (std::int64_t r = 0; r < rows; ++r) {
          T* out = c + (i + r) * ldc + j;
          for (std::int64_t q = 0; q < cols; ++q)
            out[q] = add ? out[q] + edge[r * nr + q] : edge[r * nr + q];
        }
      }
    }
  }
}

/// Short rows of unit step need no packing: a register tile reads a few of them
/// side by side.
constexpr std::int64_t kDirectK = 256;
template <typename T>
void block_direct(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t row,
                  const T* b, T* c, std::int64_t ldc, bool add) {
  alignas(64) T rest[kMr * kDirectK + 16];
  const std::int64_t whole = m / kMr * kMr;
  if (whole < m) interleave<kMr>(m - whole, k, a + whole * row, row, rest);
  block<true>(m, n, k, a, row, rest, b, c, ldc, add);
}

template <typename T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
          std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col, T* c,
          std::int64_t ldc, bool add) {
  using S = Shape<T>;
  auto up = [](std::int64_t v, std::int64_t to) { return (v + to - 1) / to * to; };
  // Parts of k of about equal length.
  const std::int64_t parts = (k + S::kKc - 1) / S::kKc;
  const std::int64_t kc_max = std::min(k, up((k + parts - 1) / parts, 4)),
                     nc_max = std::min(up(n, S::kNr), S::kNc);
  const bool parallel = m * n * k > 64 * 64 * 64;
  const std::int64_t threads = parallel ? runtime::Pool::shared().threads() : 1;
  // Blocks of equal height, a multiple of the threads in number where there are
  // several.
  std::int64_t blocks_m = (m + S::kMc - 1) / S::kMc;
  if (threads > 1) blocks_m = up(blocks_m, threads);
  const std::int64_t mc = up((m + blocks_m - 1) / blocks_m, kMr);
  const bool direct = a_col == 1 && k <= kDirectK;
  // Small products pack on the stack.
  constexpr std::int64_t kStack = 4096 + 16;
  alignas(64) T small[kStack];
  const std::int64_t a_size = up(std::min(m, mc), kMr) * kc_max + 16;
  if (const std::int64_t b_size = up(nc_max * kc_max + 16, 16);
      a_size + b_size <= kStack && m <= mc && n <= S::kNc) {
    for (std::int64_t p = 0; p < k; p += kc_max) {
      const std::int64_t kc = std::min(kc_max, k - p);
      pack_b(kc, n, b + p * b_row, b_row, b_col, small);
      if (direct) {
        block_direct(m, n, kc, a, a_row, small, c, ldc, add);
        continue;
      }
      pack_a(m, kc, a + p * a_col, a_row, a_col, small + b_size);
      block<false, T>(m, n, kc, small + b_size, 0, nullptr, small, c, ldc, add || p > 0);
    }
    return;
  }
  // All parts of k that fit are packed for some columns of B; then each block of rows runs through
  // them, so that its piece of C stays in the caches.
  const std::int64_t deep = std::min(parts, S::kDeep) * kc_max, part_size = nc_max * kc_max;
  T* b_pack = scratch<T>(0, std::min(parts, S::kDeep) * part_size + 16);
  for (std::int64_t j = 0; j < n; j += S::kNc) {
    const std::int64_t nc = std::min(S::kNc, n - j), panels = (nc + S::kNr - 1) / S::kNr;
    for (std::int64_t from = 0; from < k; from += deep) {
      const std::int64_t depth = std::min(deep, k - from), here = (depth + kc_max - 1) / kc_max;
      auto pack = [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) {
          const std::int64_t part = begin / panels, panel = begin % panels * S::kNr;
          const std::int64_t kc = std::min(kc_max, depth - part * kc_max);
          pack_b(kc, std::min<std::int64_t>(nc - panel, S::kNr),
                 b + (from + part * kc_max) * b_row + (j + panel) * b_col, b_row, b_col,
                 b_pack + part * part_size + panel * kc);
        }
      };
      auto multiply = [&](std::int64_t begin, std::int64_t end) {
        T* a_pack = direct ? nullptr : scratch<T>(1, up(mc, kMr) * kc_max + 16);
        for (; begin < end; ++begin) {
          const std::int64_t i = begin * mc, rows = std::min(mc, m - i);
          T* out = c + i * ldc + j;
          if (direct) {
            block_direct(rows, nc, depth, a + i * a_row, a_row, b_pack, out, ldc, add);
            continue;
          }
          for (std::int64_t part = 0; part < here; ++part) {
            const std::int64_t p = part * kc_max, kc = std::min(kc_max, depth - p);
            pack_a(rows, kc, a + i * a_row + (from + p) * a_col, a_row, a_col, a_pack);
            block<false, T>(rows, nc, kc, a_pack, 0, nullptr, b_pack + part * part_size, out, ldc,
                            add || from + p > 0);
          }
        }
      };
      const std::int64_t blocks = (m + mc - 1) / mc;
      if (parallel) {
        runtime::Pool::shared().parallel_for(here * panels, 16, pack);
        runtime::Pool::shared().parallel_for(blocks, 1, multiply);
      } else {
        pack(0, here * panels);
        multiply(0, blocks);
      }
    }
  }
}

}  // namespace

void WEFT_JOIN(fill_gemm, WEFT_LEVEL)(GemmTable& table) {
  table.f32 = gemm<float>;
  table.f64 = gemm<double>;
}

}  // namespace weft
