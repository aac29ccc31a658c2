// SPDX-License-Identifier: Apache-2.0
// The matrix product for one processor level (WEFT_LEVEL). Blocks as in Goto's scheme: a KC x NR
// panel of B stays in the first cache, an MC x KC block of A in the second, a register tile of MR x
// NR accumulates.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

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
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kNr = 2 * kLanes;
  static constexpr std::int64_t kKc = 384 * 4 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kMc = kMr * 24;
  static constexpr std::int64_t kNc = 2048;
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

template <typename T>
inline __attribute__((always_inline)) void tile(std::int64_t kc, const T* __restrict a,
                                                const T* __restrict b, T* c, std::int64_t ldc,
                                                bool add) {
  using V = typename Shape<T>::Vector;
  constexpr int lanes = Shape<T>::kLanes;
  V acc[kMr][2];
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) acc[i][0] = acc[i][1] = V{};
  for (std::int64_t p = 0; p < kc; ++p) {
    V b0, b1;
    std::memcpy(&b0, b, sizeof(V));
    std::memcpy(&b1, b + lanes, sizeof(V));
#pragma GCC unroll 16
    for (int i = 0; i < kMr; ++i) {
      V x = V{} + a[i];
      acc[i][0] += x * b0;
      acc[i][1] += x * b1;
    }
    a += kMr;
    b += 2 * lanes;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kMr; ++i) {
    T* row = c + i * ldc;
    V old[2] = {};
    if (add) std::memcpy(old, row, sizeof(old));
    old[0] += acc[i][0];
    old[1] += acc[i][1];
    std::memcpy(row, old, sizeof(old));
  }
}

template <typename T>
void pack_a(std::int64_t m, std::int64_t k, const T* a, std::int64_t row, std::int64_t col,
            T* out) {
  for (std::int64_t i = 0; i < m; i += kMr) {
    std::int64_t rows = std::min<std::int64_t>(kMr, m - i);
    for (std::int64_t r = 0; r < kMr; ++r) {
      if (r < rows) {
        const T* in = a + (i + r) * row;
        for (std::int64_t p = 0; p < k; ++p) out[p * kMr + r] = in[p * col];
      } else {
        for (std::int64_t p = 0; p < k; ++p) out[p * kMr + r] = T(0);
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
    } else if (col == 1 || row != 1) {
      for (std::int64_t p = 0; p < k; ++p) {
        const T* in = b + p * row + j * col;
        for (std::int64_t c = 0; c < nr; ++c) out[p * nr + c] = c < cols ? in[c * col] : T(0);
      }
    } else {
      for (std::int64_t c = 0; c < nr; ++c) {
        const T* in = b + (j + c) * col;
        for (std::int64_t p = 0; p < k; ++p) out[p * nr + c] = c < cols ? in[p] : T(0);
      }
    }
    out += nr * k;
  }
}

template <typename T>
void block(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, const T* b, T* c,
           std::int64_t ldc, bool add) {
  constexpr std::int64_t nr = Shape<T>::kNr;
  for (std::int64_t j = 0; j < n; j += nr) {
    for (std::int64_t i = 0; i < m; i += kMr) {
      const T* ap = a + i * k;
      const T* bp = b + j * k;
      std::int64_t rows = std::min<std::int64_t>(kMr, m - i), cols = std::min(nr, n - j);
      if (rows == kMr && cols == nr) {
        tile<T>(k, ap, bp, c + i * ldc + j, ldc, add);
      } else {
        alignas(64) T edge[kMr * nr];
        tile<T>(k, ap, bp, edge, nr, false);
        for (std::int64_t r = 0; r < rows; ++r) {
          T* out = c + (i + r) * ldc + j;
          for (std::int64_t q = 0; q < cols; ++q)
            out[q] = add ? out[q] + edge[r * nr + q] : edge[r * nr + q];
        }
      }
    }
  }
}

template <typename T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_row,
          std::int64_t a_col, const T* b, std::int64_t b_row, std::int64_t b_col, T* c,
          std::int64_t ldc) {
  using S = Shape<T>;
  auto up = [](std::int64_t v, std::int64_t to) { return (v + to - 1) / to * to; };
  const std::int64_t kc_max = std::min(k, S::kKc), nc_max = std::min(up(n, S::kNr), S::kNc);
  const bool parallel = m * n * k > 64 * 64 * 64;
  const std::int64_t threads = parallel ? runtime::Pool::shared().threads() : 1;
  const std::int64_t mc = std::min(S::kMc, up((m + threads - 1) / threads, kMr));
  // Small products pack on the stack.
  constexpr std::int64_t kStack = 4096;
  alignas(64) T small[kStack];
  const std::int64_t a_size = up(std::min(m, mc), kMr) * kc_max, b_size = nc_max * kc_max;
  std::unique_ptr<T[], Free> heap;
  T* b_pack = small;
  const bool on_stack = a_size + b_size <= kStack && m <= mc;
  if (!on_stack) {
    heap = aligned<T>(b_size);
    b_pack = heap.get();
  }
  for (std::int64_t j = 0; j < n; j += S::kNc) {
    std::int64_t nc = std::min(S::kNc, n - j);
    for (std::int64_t p = 0; p < k; p += S::kKc) {
      std::int64_t kc = std::min(S::kKc, k - p);
      const T* b_at = b + p * b_row + j * b_col;
      if (on_stack) {
        pack_b(kc, nc, b_at, b_row, b_col, b_pack);
        T* a_pack = small + b_size;
        pack_a(m, kc, a + p * a_col, a_row, a_col, a_pack);
        block(m, nc, kc, a_pack, b_pack, c + j, ldc, p > 0);
        continue;
      }
      const std::int64_t panels = (nc + S::kNr - 1) / S::kNr;
      auto pack = [&](std::int64_t begin, std::int64_t end) {
        pack_b(kc, std::min(nc, end * S::kNr) - begin * S::kNr, b_at + begin * S::kNr * b_col,
               b_row, b_col, b_pack + begin * S::kNr * kc);
      };
      const std::int64_t blocks = (m + mc - 1) / mc;
      auto multiply = [&](std::int64_t begin, std::int64_t end) {
        auto a_pack = aligned<T>(up(mc, kMr) * kc);
        for (; begin < end; ++begin) {
          std::int64_t i = begin * mc, rows = std::min(mc, m - i);
          pack_a(rows, kc, a + i * a_row + p * a_col, a_row, a_col, a_pack.get());
          block(rows, nc, kc, a_pack.get(), b_pack, c + i * ldc + j, ldc, p > 0);
        }
      };
      if (parallel) {
        runtime::Pool::shared().parallel_for(panels, 16, pack);
        runtime::Pool::shared().parallel_for(blocks, 1, multiply);
      } else {
        pack(0, panels);
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
