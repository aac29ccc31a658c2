// SPDX-License-Identifier: Apache-2.0
// Four tiles of 16 x 16 running sums, two of A and two of B fill the eight tile registers. A step
// takes 32 elements of the depth: 16 rows of A, and of B 16 rows of pairs. Columns of B are packed
// for up to 4096 elements of the depth, during which sums do not leave their registers. Where a
// processor has the dot products of pairs in vectors only, eight rows by the columns of two tiles
// are summed in vectors.

#include "weft/host/tile_gemm.h"

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__linux__)

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "weft/elements/elem.h"
#include "weft/host/kernels.h"
#include "weft/runtime/pool.h"

namespace weft {
namespace {

using I = std::int64_t;
using Word = std::uint16_t;

constexpr I kSide = 16, kDeep = 32;  // of a tile: rows or columns, elements of the depth
constexpr I kTile = kSide * kDeep;   // elements
constexpr I kPacked = I{1} << 20;    // bytes of B that are packed at once
constexpr I kBlock = 2 * kSide;      // rows and columns whose sums are in registers

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <typename T>
T* scratch(int which, I count) {
  struct Space {
    std::unique_ptr<void, Free> data;
    I bytes = 0;
  };
  static thread_local Space spaces[3];
  Space& s = spaces[which];
  const I bytes = (count * static_cast<I>(sizeof(T)) + 63) / 64 * 64;
  if (s.bytes < bytes) {
    s.data.reset(std::aligned_alloc(64, static_cast<std::size_t>(bytes)));
    s.bytes = bytes;
  }
  return static_cast<T*>(s.data.get());
}

/// The registers' shapes: 16 rows of 64 bytes each. Given back at the end of a piece of work, since
/// tiles in use make switches between threads slow.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) {
      std::uint8_t palette = 1, start = 0, unused[14] = {};
      std::uint16_t bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shapes;
    for (int t = 0; t < 8; ++t) shapes.bytes[t] = 64, shapes.rows[t] = kSide;
    _tile_loadconfig(&shapes);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

/// A tile of 16 lines of 32 elements of the depth: line i at in + i * across, zeros beyond `lines`
/// and `depth`.
void pack_lines(const Word* in, I across, I along, I lines, I depth, Word* out) {
  const auto mask = static_cast<__mmask32>(depth >= 32 ? ~0u : (1u << depth) - 1);
  for (I i = 0; i < kSide; ++i) {
    Word* to = out + i * kDeep;
    if (i >= lines) {
      std::memset(to, 0, kDeep * sizeof(Word));
    } else if (along == 1) {
      _mm512_store_si512(to, _mm512_maskz_loadu_epi16(mask, in + i * across));
    } else {
      for (I p = 0; p < kDeep; ++p) to[p] = p < depth ? in[i * across + p * along] : Word{0};
    }
  }
}

/// 16 lines of 16 words of 32 bits, turned: pairs of the depth become rows.
void turn(const Word* in, Word* out) {
  __m512i r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(in + i * kDeep);
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
  for (int i = 0; i < 16; ++i) _mm512_store_si512(out + i * kDeep, r[i]);
}

/// A tile of B: 16 rows of pairs of 16 columns.
void pack_columns(const Word* b, I row, I col, I columns, I depth, Word* out) {
  if (col != 1) {
    alignas(64) Word lines[kTile];
    pack_lines(b, col, row, columns, depth, lines);
    return turn(lines, out);
  }
  const auto mask = static_cast<__mmask16>(columns >= 16 ? 0xffff : (1u << columns) - 1);
  for (I p = 0; p < kDeep; p += 2) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i even = p < depth ? _mm256_maskz_loadu_epi16(mask, b + p * row) : zero;
    const __m256i odd = p + 1 < depth ? _mm256_maskz_loadu_epi16(mask, b + (p + 1) * row) : zero;
    const __m512i low = _mm512_cvtepu16_epi32(even);
    const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16);
    _mm512_store_si512(out + p * kSide, _mm512_or_si512(low, high));
  }
}

I up(I v, I to) { return (v + to - 1) / to * to; }

/// Compilers do not know which memory the tile instructions read and write.
void memory_barrier() { __asm__ volatile("" ::: "memory"); }

struct Product {
  I m, n, k;
  const Word* a;
  I a_row, a_col;
  const Word* b;
  I b_row, b_col;
  Word* c;
  I ldc;
  I steps() const { return (k + kDeep - 1) / kDeep; }
};

/// Sums of up to 32 rows by the columns of two tiles, in tile registers.
void tile_sums(const Word* left, const Word* right, I steps, I rows, float* sums, I width) {
  _tile_zero(0);
  _tile_zero(1);
  if (rows > kSide) {
    _tile_zero(2);
    _tile_zero(3);
    for (I s = 0; s < steps; ++s, left += 2 * kTile, right += 2 * kTile) {
      _tile_loadd(4, left, 64);
      _tile_loadd(6, right, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, right + kTile, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, left + kTile, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(2, sums + kSide * width, width * 4);
    _tile_stored(3, sums + kSide * width + kSide, width * 4);
  } else {
    for (I s = 0; s < steps; ++s, left += 2 * kTile, right += 2 * kTile) {
      _tile_loadd(4, left, 64);
      _tile_loadd(6, right, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, right + kTile, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
  }
  _tile_stored(0, sums, width * 4);
  _tile_stored(1, sums + kSide, width * 4);
}

__m512bh pairs(__m512i words) { return reinterpret_cast<__m512bh>(words); }

/// The same in vectors, eight rows at a time.
void vector_sums(const Word* left, const Word* right, I steps, I rows, float* sums, I width) {
  constexpr int kRows = 8;
  for (I r = 0; r < rows; r += kRows) {
    const Word* a = left + r / kSide * kTile + r % kSide * kDeep;
    const Word* b = right;
    __m512 low[kRows], high[kRows];
    for (int q = 0; q < kRows; ++q) low[q] = high[q] = _mm512_setzero_ps();
    for (I s = 0; s < steps; ++s, a += 2 * kTile, b += 2 * kTile) {
      for (I p = 0; p < kDeep; p += 2) {
        const __m512bh first = pairs(_mm512_load_si512(b + p * kSide)),
                       second = pairs(_mm512_load_si512(b + kTile + p * kSide));
#pragma GCC unroll 8
        for (int q = 0; q < kRows; ++q) {
          std::int32_t both;
          std::memcpy(&both, a + q * kDeep + p, sizeof both);
          const __m512bh one = pairs(_mm512_set1_epi32(both));
          low[q] = _mm512_dpbf16_ps(low[q], one, first);
          high[q] = _mm512_dpbf16_ps(high[q], one, second);
        }
      }
    }
    for (int q = 0; q < kRows; ++q) {
      _mm512_storeu_ps(sums + (r + q) * width, low[q]);
      _mm512_storeu_ps(sums + (r + q) * width + kSide, high[q]);
    }
  }
}

bool have_tiles() {
  // arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA): tiles take room in a thread's saved state.
  constexpr int kRequest = 0x1023, kTileData = 18;
  static const bool have = __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("amx-bf16") &&
                           syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return have;
}

bool have_pairs() {
  static const bool have =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16");
  return have;
}

void round(I n, const float* from, Word* to) {
  static const CastFn cast =
      kernels().cast[static_cast<int>(Elem::float32)][static_cast<int>(Elem::bfloat16)];
  cast(n, from, to);
}

/// 32 rows of A from `i` on times packed columns from `j` on: rounded to C, or added to `into`,
/// rows of n sums.
void block(const Product& p, I i, I j, I columns, const Word* packed, float* into) {
  const I steps = p.steps(), rows = std::min(kBlock, p.m - i);
  Word* const lines = scratch<Word>(1, 2 * steps * kTile);
  for (I half = 0; half < 2; ++half) {
    for (I s = 0; s < steps; ++s)
      pack_lines(p.a + (i + half * kSide) * p.a_row + s * kDeep * p.a_col, p.a_row, p.a_col,
                 rows - half * kSide, p.k - s * kDeep, lines + (2 * s + half) * kTile);
  }
  const I width = up(columns, kBlock);
  memory_barrier();
  float* const sums = scratch<float>(2, kBlock * width);
  const auto add = have_tiles() ? tile_sums : vector_sums;
  for (I x = 0; x < columns; x += kBlock)
    add(lines, packed + x * steps * kDeep, steps, rows, sums + x, width);
  memory_barrier();
  for (I r = 0; r < rows; ++r) {
    if (!into) {
      round(columns, sums + r * width, p.c + (i + r) * p.ldc + j);
      continue;
    }
    float* const to = into + (i + r) * p.n + j;
    for (I x = 0; x < columns; ++x) to[x] += sums[r * width + x];
  }
}

void product(const Product& p, float* into) {
  const I n = p.n, steps = p.steps(), depth = steps * kDeep;
  const I strip = std::max(kBlock, kPacked / 2 / depth / kBlock * kBlock);
  runtime::Pool& pool = runtime::Pool::shared();
  const bool parallel = p.m * n * p.k > 128 * 128 * 128 && pool.threads() > 1;
  for (I j = 0; j < n; j += strip) {
    const I columns = std::min(strip, n - j), tiles = up(columns, kBlock) / kSide;
    Word* const packed = scratch<Word>(0, tiles * steps * kTile);
    auto one = [&](I t, I s) {
      const I x = t * kSide, left = std::max<I>(0, columns - x);
      pack_columns(p.b + s * kDeep * p.b_row + (j + (left ? x : 0)) * p.b_col, p.b_row, p.b_col,
                   left, p.k - s * kDeep, packed + (t / 2 * 2 * steps + t % 2 + 2 * s) * kTile);
    };
    // B is read along its rows or its columns, as they lie.
    const I outer = p.b_col == 1 ? steps : tiles, inner = p.b_col == 1 ? tiles : steps;
    auto pack = [&](I i, I end) {
      for (; i < end; ++i)
        for (I x = 0; x < inner; ++x) one(p.b_col == 1 ? x : i, p.b_col == 1 ? i : x);
    };
    auto multiply = [&](I i, I end) {
      std::optional<Tiles> held;
      if (have_tiles()) held.emplace();
      for (; i < end; ++i) block(p, i * kBlock, j, columns, packed, into);
    };
    const I blocks = (p.m + kBlock - 1) / kBlock;
    if (parallel) {
      pool.parallel_for(outer, std::max<I>(1, 65536 / (inner * kTile)), pack);
      pool.parallel_for(blocks, 1, multiply);
    } else {
      pack(0, outer);
      multiply(0, blocks);
    }
  }
}

}  // namespace

bool tile_products() { return have_tiles() || have_pairs(); }

bool pair_gemv(I m, I k, const Word* a, I row, const Word* x, float* y) {
  if (!have_pairs()) return false;
  constexpr int kRows = 4;
  const I whole = k / kDeep * kDeep;
  const auto mask = static_cast<__mmask32>((1u << (k - whole)) - 1);
  const I grain = (std::max<I>(8, 131072 / k) + kRows - 1) / kRows * kRows;
  runtime::Pool::shared().parallel_for(m, grain, [&](I i, I end) {
    for (; i < end; i += kRows) {
      const Word* rows[kRows];
      for (int q = 0; q < kRows; ++q) rows[q] = a + std::min(i + q, end - 1) * row;
      __m512 sums[kRows];
      for (auto& sum : sums) sum = _mm512_setzero_ps();
      for (I p = 0; p < whole; p += kDeep) {
        const __m512bh of_x = pairs(_mm512_loadu_si512(x + p));
        for (int q = 0; q < kRows; ++q)
          sums[q] = _mm512_dpbf16_ps(sums[q], pairs(_mm512_loadu_si512(rows[q] + p)), of_x);
      }
      if (mask) {
        const __m512bh of_x = pairs(_mm512_maskz_loadu_epi16(mask, x + whole));
        for (int q = 0; q < kRows; ++q)
          sums[q] = _mm512_dpbf16_ps(sums[q],
                                     pairs(_mm512_maskz_loadu_epi16(mask, rows[q] + whole)), of_x);
      }
      for (int q = 0; q < kRows && i + q < end; ++q) y[i + q] = _mm512_reduce_add_ps(sums[q]);
    }
  });
  return true;
}

void tile_gemm(I m, I n, I k, const Word* a, I a_row, I a_col, const Word* b, I b_row, I b_col,
               Word* c, I ldc) {
  // Deeper ones in parts, so that packed columns and rows stay in the caches.
  constexpr I kPart = 4096;
  if (k <= kPart) return product({m, n, k, a, a_row, a_col, b, b_row, b_col, c, ldc}, nullptr);
  const auto sums = std::make_unique<float[]>(static_cast<std::size_t>(m * n));
  for (I p = 0; p < k; p += kPart)
    product({m, n, std::min(kPart, k - p), a + p * a_col, a_row, a_col, b + p * b_row, b_row, b_col,
             c, ldc},
            sums.get());
  for (I r = 0; r < m; ++r) round(n, sums.get() + r * n, c + r * ldc);
}

}  // namespace weft

#else

namespace weft {

bool tile_products() { return false; }
bool pair_gemv(std::int64_t, std::int64_t, const std::uint16_t*, std::int64_t, const std::uint16_t*,
               float*) {
  return false;
}
void tile_gemm(std::int64_t, std::int64_t, std::int64_t, const std::uint16_t*, std::int64_t,
               std::int64_t, const std::uint16_t*, std::int64_t, std::int64_t, std::uint16_t*,
               std::int64_t) {}

}  // namespace weft

#endif
