// SPDX-License-Identifier: Apache-2.0
// Blocks as in Goto's scheme: a KC x NR panel of B stays in the first cache, an MC x KC block of A
// in the second, a register tile of MR x NR accumulates.

#include "weft/host/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {
namespace {

using I = std::int64_t;

// Elements of the widest level: rows and columns of a tile.
constexpr I kMostRows = kShapeAvx512.rows;
constexpr I kNc = 1024;
constexpr I kDeep = 8;      // parts of k that are packed at once
constexpr I kFewRows = 64;  // of A, so that packing B costs more than multiplying
constexpr I kFewBytes = 1 << 18;
constexpr I kSlack = 16;     // elements that packing may write too far
constexpr I kDirectK = 256;  // rows of A of unit step up to here are read where they stand

/// The kernels of one type, by what gemm asks.
template <typename T>
struct Kernels {
  I mr, nr;
  I kc = sizeof(T) == 8 ? 256 : 352;  // a panel of B and one of A fit the first cache together
  TileFn tile[2][2];                  // [in place][add]
  EdgeFn edge[2], low, middle;
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
    out.low = edge(K::edge_low), out.middle = edge(K::edge_middle);
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
    const T* const from = in + i * across;
    I done = 0;
    if (along != 1 && across == 1) {
      // Of a panel that is not full whole vectors are copied as long as the matrix goes on behind.
      const I beyond = std::max<I>(0, width - left);
      done = along > 0 ? std::max<I>(0, k - (beyond + along - 1) / along) : beyond ? 0 : k;
      if (done > 0) with.copy[side](from, out, width, done, across, along);
    }
    // What stood there before may be numbers that are slow to multiply.
    if (left < width) std::fill(out + done * width, out + width * k, T(0));
    const PackFn rest = along == 1 ? with.interleave[side] : with.gather[side];
    if (done < k) rest(from + done * along, out + done * width, left, k - done, across, along);
    out += width * k;
  }
}

/// Of no tile is the place below the diagonal of interest.
constexpr I kWhole = INT64_MIN / 2;

/// `direct`: A is read where it stands, rows of unit step `row` apart, but for the last ones that
/// do not fill a tile, which are packed at `rest`. `down`: how many rows the block's first row lies
/// below the diagonal's place in its first column; tiles below the diagonal are left out.
template <typename T>
void block(I m, I n, I k, const T* a, bool direct, I row, const T* rest, const T* b, T* c, I ldc,
           bool add, I down) {
  const Kernels<T>& with = kernels_of<T>();
  const I mr = with.mr, nr = with.nr, line = 64 / sizeof(T);
  const I tiles = (m + mr - 1) / mr;
  const I share = (nr * k / tiles + line) / line;  // lines
  const TileFn tile = with.tile[direct][add];
  const I step = direct ? row : k;
  auto one = [&](I i, I j, const T* next, I lines) {
    if (j + nr <= i + down) return;
    const I rows = std::min(mr, m - i), columns = std::min(nr, n - j);
    const T* bp = b + j * k;
    T* out = c + i * ldc + j;
    if (rows == mr && columns == nr) {
      tile(a + i * step, bp, out, next, k, row, ldc, lines);
    } else if (direct && rows == mr) {
      with.edge[1](a + i * row, bp, out, k, row, ldc, rows, columns, add);
    } else {
      const I low = vector_kernels().shape.low();
      const EdgeFn edge = rows <= low ? with.low : rows <= 2 * low ? with.middle : with.edge[0];
      edge(direct ? rest : a + i * k, bp, out, k, 0, ldc, rows, columns, add);
    }
  };
  // A few terms: C is most of what is moved, so its rows are written from one end to the other.
  constexpr I kFewTerms = 64;
  if (k <= kFewTerms) {
    for (I i = 0; i < m; i += mr) {
      for (I j = 0; j < n; j += nr)
        one(i, j, b + (j + nr) * k, j + nr < n ? (nr * k + line - 1) / line : 0);
    }
    return;
  }
  for (I j = 0; j < n; j += nr) {
    const T* next = b + (j + nr) * k;  // of B: brought in while this one is used
    I lines = j + nr < n ? (nr * k + line - 1) / line : 0;
    for (I i = 0; i < m; i += mr) {
      const I now = std::min(lines, share);
      one(i, j, next, now);
      next += now * line;
      lines -= now;
    }
  }
}

/// Short rows of unit step need no packing: a register tile reads a few of them side by side.
template <typename T>
void block_direct(I m, I n, I k, const T* a, I row, const T* b, T* c, I ldc, bool add, I down) {
  alignas(64) T rest[kMostRows * kDirectK + kSlack];
  const I mr = kernels_of<T>().mr, whole = m / mr * mr;
  if (whole < m) pack<T>(0, m - whole, k, a + whole * row, row, 1, rest);
  block<T>(m, n, k, a, true, row, rest, b, c, ldc, add, down);
}

I up(I v, I to) { return (v + to - 1) / to * to; }

/// How the columns and the depth of a product are cut.
template <typename T>
struct Cuts {
  I n, k, parts, kc;    // parts of k of about equal length; most of one
  I strip = kNc, deep;  // columns and depth that are packed at once
  /// With `few` rows of A what is packed is used once, soon: it stays in the second cache.
  Cuts(I columns, I depth, bool few) : n(columns), k(depth) {
    const Kernels<T>& with = kernels_of<T>();
    parts = (k + with.kc - 1) / with.kc;
    kc = std::min(k, up((k + parts - 1) / parts, 4));
    deep = (few ? 1 : std::min(parts, kDeep)) * kc;
    if (few)
      strip = std::max(with.nr, kFewBytes / static_cast<I>(sizeof(T)) / kc / with.nr * with.nr);
  }
  I columns(I j) const { return std::min(strip, n - j); }
  I depth(I from) const { return std::min(deep, k - from); }
  I panels(I j) const { return (columns(j) + kernels_of<T>().nr - 1) / kernels_of<T>().nr; }
  /// Elements between parts of k, and of all that is packed at once.
  I part() const { return std::min(up(n, kernels_of<T>().nr), strip) * kc; }
  I size() const { return deep / kc * part(); }
  /// Panels of columns from `j` on and depth from `from` on: all of one part of k, then the next.
  I count(I j, I from) const { return (depth(from) + kc - 1) / kc * panels(j); }
  void pack(I j, I from, const ColumnPanels<T>& b, T* out, I begin, I end) const {
    const I nr = kernels_of<T>().nr;
    for (; begin < end; ++begin) {
      const I which = begin / panels(j), panel = begin % panels(j) * nr;
      const I here = std::min(kc, depth(from) - which * kc);
      b.fill(j + panel, std::min(columns(j) - panel, nr), from + which * kc, here,
             out + which * part() + panel * here);
    }
  }
};

/// Blocks of rows of A with a packed piece of B; each runs through all parts of the depth, so that
/// its piece of C stays in the caches.
template <typename T>
class Rows {
 public:
  /// `upper`: what lies below the diagonal is left out, but for tiles that meet it.
  Rows(const Cuts<T>& cuts, I m, const T* a, I a_row, I a_col, T* c, I ldc, bool add, bool upper)
      : cuts_(cuts),
        m_(m),
        a_(a),
        a_row_(a_row),
        a_col_(a_col),
        c_(c),
        ldc_(ldc),
        add_(add),
        upper_(upper) {
    const I mr = kernels_of<T>().mr, mc_most = mr * 24;
    parallel_ = m * cuts.n * cuts.k > 64 * 64 * 64;
    const I threads = parallel_ ? runtime::Pool::shared().threads() : 1;
    // Blocks of equal height, a multiple of the threads in number where there are several.
    I blocks = (m + mc_most - 1) / mc_most;
    if (threads > 1) blocks = up(blocks, threads);
    mc_ = up((m + blocks - 1) / blocks, mr);
    direct_ = a_col == 1 && cuts.k <= kDirectK;
  }
  bool parallel() const { return parallel_; }
  bool direct() const { return direct_; }
  I height() const { return mc_; }
  I blocks() const { return (m_ + mc_ - 1) / mc_; }

  /// All blocks, shared by threads.
  void multiply(I j, I from, const T* packed) const {
    auto some = [&](I begin, I end) { multiply(j, from, packed, begin, end); };
    if (parallel_) runtime::Pool::shared().parallel_for(blocks(), 1, some);
    else some(0, blocks());
  }
  void multiply(I j, I from, const T* packed, I begin, I end) const {
    T* a_pack = direct_ ? nullptr : scratch<T>(1, up(mc_, kernels_of<T>().mr) * cuts_.kc + kSlack);
    for (; begin < end; ++begin) one(begin * mc_, j, from, packed, a_pack);
  }

 private:
  void one(I i, I j, I from, const T* packed, T* a_pack) const {
    const I rows = std::min(mc_, m_ - i), columns = cuts_.columns(j), depth = cuts_.depth(from);
    const I down = upper_ ? i - j : kWhole;
    if (columns <= down) return;
    T* out = c_ + i * ldc_ + j;
    if (direct_) {
      block_direct<T>(rows, columns, depth, a_ + i * a_row_, a_row_, packed, out, ldc_, add_, down);
      return;
    }
    for (I p = 0; p < depth; p += cuts_.kc) {
      const I kc = std::min(cuts_.kc, depth - p);
      pack<T>(0, rows, kc, a_ + i * a_row_ + (from + p) * a_col_, a_row_, a_col_, a_pack);
      block<T>(rows, columns, kc, a_pack, false, 0, nullptr, packed + p / cuts_.kc * cuts_.part(),
               out, ldc_, add_ || from + p > 0, down);
    }
  }

  const Cuts<T>& cuts_;
  I m_;
  const T* a_;
  I a_row_, a_col_;
  T* c_;
  I ldc_, mc_;
  bool add_, upper_, parallel_, direct_;
};

}  // namespace

template <typename T>
std::int64_t ColumnPanels<T>::width() {
  return kernels_of<T>().nr;
}

template <typename T>
void StridedPanels<T>::fill(I column, I columns, I from, I depth, T* out) const {
  pack<T>(1, columns, depth, b_ + from * row_ + column * column_, column_, row_, out);
}

template <typename T>
void gemm(I m, I n, I k, const T* a, I a_row, I a_col, const T* b, I b_row, I b_col, T* c, I ldc,
          bool add) {
  gemm<T>(m, n, k, a, a_row, a_col, StridedPanels<T>(b, b_row, b_col), c, ldc, add);
}

namespace {

template <typename T>
void product(I m, I n, I k, const T* a, I a_row, I a_col, const ColumnPanels<T>& b, T* c, I ldc,
             bool add, bool upper) {
  const bool few = m <= kFewRows;
  const Cuts<T> cuts(n, k, few);
  const Rows<T> rows(cuts, m, a, a_row, a_col, c, ldc, add, upper);
  // Small products pack on the stack.
  constexpr I kStack = 4096 + 16;
  alignas(64) T small[kStack];
  const I mr = kernels_of<T>().mr, nr = kernels_of<T>().nr;
  const I a_size = up(std::min(m, rows.height()), mr) * cuts.kc + kSlack;
  if (const I b_size = up(cuts.part() + kSlack, 16);
      a_size + b_size <= kStack && m <= rows.height() && n <= cuts.strip) {
    for (I p = 0; p < k; p += cuts.kc) {
      const I kc = std::min(cuts.kc, k - p);
      for (I j = 0; j < n; j += nr) b.fill(j, std::min(nr, n - j), p, kc, small + j * kc);
      if (rows.direct()) {
        block_direct<T>(m, n, kc, a, a_row, small, c, ldc, add, upper ? 0 : kWhole);
        continue;
      }
      pack<T>(0, m, kc, a + p * a_col, a_row, a_col, small + b_size);
      block<T>(m, n, kc, small + b_size, false, 0, nullptr, small, c, ldc, add || p > 0,
               upper ? 0 : kWhole);
    }
    return;
  }
  auto strip = [&](I j, bool shared) {
    T* b_pack = scratch<T>(0, cuts.size() + kSlack);
    for (I from = 0; from < k; from += cuts.deep) {
      const I count = cuts.count(j, from);
      auto some = [&](I begin, I end) { cuts.pack(j, from, b, b_pack, begin, end); };
      if (shared) runtime::Pool::shared().parallel_for(count, 16, some);
      else some(0, count);
      if (shared) rows.multiply(j, from, b_pack);
      else rows.multiply(j, from, b_pack, 0, rows.blocks());
    }
  };
  const I strips = (n + cuts.strip - 1) / cuts.strip;
  auto some = [&](I begin, I end) {
    for (; begin < end; ++begin) strip(begin * cuts.strip, false);
  };
  if (rows.parallel() && few) return runtime::Pool::shared().parallel_for(strips, 1, some);
  for (I j = 0; j < n; j += cuts.strip) strip(j, rows.parallel());
}

/// What lies above the diagonal becomes what lies below it too, by blocks of whole cache lines.
template <typename T>
void mirror(I n, T* c, I ldc) {
  constexpr I kSide = 32;
  const I blocks = (n + kSide - 1) / kSide;
  runtime::Pool::shared().parallel_for(
      blocks, std::max<I>(1, 65536 / (n * kSide)), [&](I b, I end) {
        for (; b < end; ++b) {
          const I first = b * kSide, last = std::min(n, first + kSide);
          for (I j = 0; j < last; j += kSide) {
            for (I r = first; r < last; ++r) {
              for (I s = j, stop = std::min(j + kSide, r); s < stop; ++s)
                c[r * ldc + s] = c[s * ldc + r];
            }
          }
        }
      });
}

}  // namespace

template <typename T>
void gemm(I m, I n, I k, const T* a, I a_row, I a_col, const ColumnPanels<T>& b, T* c, I ldc,
          bool add) {
  product<T>(m, n, k, a, a_row, a_col, b, c, ldc, add, false);
}

template <typename T>
void gram(I m, I k, const T* a, I a_row, I a_col, T* c, I ldc) {
  product<T>(m, m, k, a, a_row, a_col, StridedPanels<T>(a, a_col, a_row), c, ldc, false, true);
  mirror<T>(m, c, ldc);
}

template <typename T>
struct PackedMatrix<T>::Panels {
  Cuts<T> cuts;
  std::unique_ptr<T[], Free> data;
};

template <typename T>
PackedMatrix<T>::PackedMatrix(I n, I k, const T* b, I b_row, I b_col)
    : panels_(std::make_unique<Panels>(Panels{Cuts<T>(n, k, false), nullptr})) {
  const Cuts<T>& cuts = panels_->cuts;
  const I pieces = (n + cuts.strip - 1) / cuts.strip * ((k + cuts.deep - 1) / cuts.deep);
  panels_->data = aligned<T>(pieces * cuts.size() + kSlack);
  const StridedPanels<T> panels(b, b_row, b_col);
  T* out = panels_->data.get();
  for (I j = 0; j < n; j += cuts.strip) {
    for (I from = 0; from < k; from += cuts.deep, out += cuts.size())
      cuts.pack(j, from, panels, out, 0, cuts.count(j, from));
  }
}
template <typename T>
PackedMatrix<T>::~PackedMatrix() = default;
template <typename T>
PackedMatrix<T>::PackedMatrix(PackedMatrix&&) noexcept = default;

template <typename T>
void PackedMatrix<T>::multiply(I m, const T* a, I a_row, I a_col, T* c, I ldc) const {
  const Cuts<T>& cuts = panels_->cuts;
  const Rows<T> rows(cuts, m, a, a_row, a_col, c, ldc, false, false);
  const T* packed = panels_->data.get();
  for (I j = 0; j < cuts.n; j += cuts.strip) {
    for (I from = 0; from < cuts.k; from += cuts.deep, packed += cuts.size())
      rows.multiply(j, from, packed);
  }
}

template void gemm(I, I, I, const float*, I, I, const float*, I, I, float*, I, bool);
template void gemm(I, I, I, const double*, I, I, const double*, I, I, double*, I, bool);
template void gemm(I, I, I, const float*, I, I, const ColumnPanels<float>&, float*, I, bool);
template void gemm(I, I, I, const double*, I, I, const ColumnPanels<double>&, double*, I, bool);
template void gram(I, I, const float*, I, I, float*, I);
template void gram(I, I, const double*, I, I, double*, I);
template class StridedPanels<float>;
template class StridedPanels<double>;
template std::int64_t ColumnPanels<float>::width();
template std::int64_t ColumnPanels<double>::width();
template class PackedMatrix<float>;
template class PackedMatrix<double>;

}  // namespace weft
