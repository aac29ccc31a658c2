// SPDX-License-Identifier: Apache-2.0
// Blocks as in Goto's scheme: a KC x NR panel of B stays in the first cache, an MC x KC block of A
// in the second, a register tile of MR x NR accumulates.

#include "weft/array/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "weft/array/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {
namespace {

using I = std::int64_t;

// Elements of the widest level: rows and columns of a tile.
constexpr I kMostRows = kShapeAvx512.rows;
constexpr I kNc = 1024;
constexpr I kDeep = 8;       // parts of k that are packed at once
constexpr I kSlack = 16;     // elements that packing may write too far
constexpr I kDirectK = 256;  // rows of A of unit step up to here are read where they stand

/// The kernels of one type, by what gemm asks.
template <typename T>
struct Kernels {
  I mr, nr;
  I kc = sizeof(T) == 8 ? 256 : 352;  // a panel of B and one of A fit the first cache together
  TileFn tile[2][2];                  // [in place][add]
  EdgeFn edge[2];
  PackFn interleave[2], copy[2], gather[2];  // rows of A, columns of B
};

template <typename T>
const Kernels<T>& kernels_of() {
  static const Kernels<T> all = [] {
    const VectorTable& t = vector_kernels();
    const Elem e = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
    using K = VectorKernel;
    auto tile = [&](K k) { return t.get<TileFn>(k, e); };
    auto edge = [&](K k) { return t.get<EdgeFn>(k, e); };
    auto pack = [&](K k) { return t.get<PackFn>(k, e); };
    Kernels<T> out{};
    out.mr = t.shape.rows;
    out.nr = t.shape.columns(sizeof(T));
    out.kc = sizeof(T) == 8 ? 256 : 352;
    out.tile[0][0] = tile(K::tile), out.tile[0][1] = tile(K::tile_add);
    out.tile[1][0] = tile(K::tile_direct), out.tile[1][1] = tile(K::tile_direct_add);
    out.edge[0] = edge(K::edge), out.edge[1] = edge(K::edge_direct);
    out.interleave[0] = pack(K::interleave_rows), out.interleave[1] = pack(K::interleave_columns);
    out.copy[0] = pack(K::copy_rows), out.copy[1] = pack(K::copy_columns);
    out.gather[0] = pack(K::gather_rows), out.gather[1] = pack(K::gather_columns);
    return out;
  }();
  return all;
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <typename T>
std::unique_ptr<T[], Free> aligned(I count) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, static_cast<std::size_t>(count) * sizeof(T)) != 0) p = nullptr;
  return std::unique_ptr<T[], Free>(static_cast<T*>(p));
}

/// Packing space of a thread, kept between products: fresh pages would cost
/// more than packing.
template <typename T>
T* scratch(int which, I count) {
  struct Space {
    std::unique_ptr<T[], Free> data;
    I size = 0;
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

/// Panels of A (side 0: rows) or B (side 1: columns) side by side: `count` rows or columns, each
/// `across` from the next, of k elements with steps `along`.
template <typename T>
void pack(int side, I count, I k, const T* in, I across, I along, T* out) {
  const Kernels<T>& with = kernels_of<T>();
  const I width = side ? with.nr : with.mr;
  for (I i = 0; i < count; i += width) {
    const I left = count - i;
    const PackFn fn = along == 1                     ? with.interleave[side]
                      : across == 1 && left >= width ? with.copy[side]
                                                     : with.gather[side];
    fn(in + i * across, out, left, k, across, along);
    out += width * k;
  }
}

/// `direct`: A is read where it stands, rows of unit step `row` apart, but for the last ones that
/// do not fill a tile, which are packed at `rest`.
template <typename T>
void block(I m, I n, I k, const T* a, bool direct, I row, const T* rest, const T* b, T* c, I ldc,
           bool add) {
  const Kernels<T>& with = kernels_of<T>();
  const I mr = with.mr, nr = with.nr, line = 64 / sizeof(T);
  const I tiles = (m + mr - 1) / mr;
  const I share = (nr * k / tiles + line) / line;  // lines
  const TileFn tile = with.tile[direct][add];
  const I step = direct ? row : k;
  for (I j = 0; j < n; j += nr) {
    const T* bp = b + j * k;
    const T* next = bp + nr * k;  // of B: brought in while this one is used
    I lines = j + nr < n ? (nr * k + line - 1) / line : 0;
    for (I i = 0; i < m; i += mr) {
      const I rows = std::min(mr, m - i), columns = std::min(nr, n - j),
              now = std::min(lines, share);
      T* out = c + i * ldc + j;
      if (rows == mr && columns == nr) {
        tile(a + i * step, bp, out, next, k, row, ldc, now);
      } else if (direct && rows == mr) {
        with.edge[1](a + i * row, bp, out, k, row, ldc, rows, columns, add);
      } else {
        with.edge[0](direct ? rest : a + i * k, bp, out, k, 0, ldc, rows, columns, add);
      }
      next += now * line;
      lines -= now;
    }
  }
}

/// Short rows of unit step need no packing: a register tile reads a few of them side by side.
template <typename T>
void block_direct(I m, I n, I k, const T* a, I row, const T* b, T* c, I ldc, bool add) {
  alignas(64) T rest[kMostRows * kDirectK + kSlack];
  const I mr = kernels_of<T>().mr, whole = m / mr * mr;
  if (whole < m) pack<T>(0, m - whole, k, a + whole * row, row, 1, rest);
  block<T>(m, n, k, a, true, row, rest, b, c, ldc, add);
}

I up(I v, I to) { return (v + to - 1) / to * to; }

}  // namespace

template <typename T>
void gemm(I m, I n, I k, const T* a, I a_row, I a_col, const T* b, I b_row, I b_col, T* c, I ldc,
          bool add) {
  const Kernels<T>& with = kernels_of<T>();
  const I mr = with.mr, nr = with.nr, mc_most = mr * 24;
  // Parts of k of about equal length.
  const I parts = (k + with.kc - 1) / with.kc;
  const I kc_max = std::min(k, up((k + parts - 1) / parts, 4)), nc_max = std::min(up(n, nr), kNc);
  const bool parallel = m * n * k > 64 * 64 * 64;
  const I threads = parallel ? runtime::Pool::shared().threads() : 1;
  // Blocks of equal height, a multiple of the threads in number where there are
  // several.
  I blocks_m = (m + mc_most - 1) / mc_most;
  if (threads > 1) blocks_m = up(blocks_m, threads);
  const I mc = up((m + blocks_m - 1) / blocks_m, mr);
  const bool direct = a_col == 1 && k <= kDirectK;
  // Small products pack on the stack.
  constexpr I kStack = 4096 + 16;
  alignas(64) T small[kStack];
  const I a_size = up(std::min(m, mc), mr) * kc_max + kSlack;
  if (const I b_size = up(nc_max * kc_max + kSlack, 16);
      a_size + b_size <= kStack && m <= mc && n <= kNc) {
    for (I p = 0; p < k; p += kc_max) {
      const I kc = std::min(kc_max, k - p);
      pack<T>(1, n, kc, b + p * b_row, b_col, b_row, small);
      if (direct) {
        block_direct<T>(m, n, kc, a, a_row, small, c, ldc, add);
        continue;
      }
      pack<T>(0, m, kc, a + p * a_col, a_row, a_col, small + b_size);
      block<T>(m, n, kc, small + b_size, false, 0, nullptr, small, c, ldc, add || p > 0);
    }
    return;
  }
  // All parts of k that fit are packed for some columns of B; then each block of rows runs through
  // them, so that its piece of C stays in the caches.
  const I deep = std::min(parts, kDeep) * kc_max, part_size = nc_max * kc_max;
  T* b_pack = scratch<T>(0, std::min(parts, kDeep) * part_size + kSlack);
  for (I j = 0; j < n; j += kNc) {
    const I nc = std::min(kNc, n - j), panels = (nc + nr - 1) / nr;
    for (I from = 0; from < k; from += deep) {
      const I depth = std::min(deep, k - from), here = (depth + kc_max - 1) / kc_max;
      auto pack_b = [&](I begin, I end) {
        for (; begin < end; ++begin) {
          const I part = begin / panels, panel = begin % panels * nr;
          const I kc = std::min(kc_max, depth - part * kc_max);
          pack<T>(1, std::min(nc - panel, nr), kc,
                  b + (from + part * kc_max) * b_row + (j + panel) * b_col, b_col, b_row,
                  b_pack + part * part_size + panel * kc);
        }
      };
      auto multiply = [&](I begin, I end) {
        T* a_pack = direct ? nullptr : scratch<T>(1, up(mc, mr) * kc_max + kSlack);
        for (; begin < end; ++begin) {
          const I i = begin * mc, rows = std::min(mc, m - i);
          T* out = c + i * ldc + j;
          if (direct) {
            block_direct<T>(rows, nc, depth, a + i * a_row, a_row, b_pack, out, ldc, add);
            continue;
          }
          for (I part = 0; part < here; ++part) {
            const I p = part * kc_max, kc = std::min(kc_max, depth - p);
            pack<T>(0, rows, kc, a + i * a_row + (from + p) * a_col, a_row, a_col, a_pack);
            block<T>(rows, nc, kc, a_pack, false, 0, nullptr, b_pack + part * part_size, out, ldc,
                     add || from + p > 0);
          }
        }
      };
      const I blocks = (m + mc - 1) / mc;
      if (parallel) {
        runtime::Pool::shared().parallel_for(here * panels, 16, pack_b);
        runtime::Pool::shared().parallel_for(blocks, 1, multiply);
      } else {
        pack_b(0, here * panels);
        multiply(0, blocks);
      }
    }
  }
}

template void gemm(I, I, I, const float*, I, I, const float*, I, I, float*, I, bool);
template void gemm(I, I, I, const double*, I, I, const double*, I, I, double*, I, bool);

}  // namespace weft
