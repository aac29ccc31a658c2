// SPDX-License-Identifier: Apache-2.0
// Matrix kernels: GEMV split over columns, GEMM with operands broadcast from registers.

#include "weft/targets/qpu/kernels/kernels.h"
#include "weft/targets/qpu/kernels/operands.h"
#include "weft/targets/qpu/language/macros.h"

namespace weft::qpu::kernels {

namespace {
constexpr int kRows = 8;  // rows of the matrix that share one load of x

/// Every QPU takes a slice of the columns for all rows, eight rows at a time, four requests in
/// flight; partial sums meet in `scratch`.
void gemv_kernel(Ptr<Float> a, Ptr<Float> x, Ptr<Float> out, Ptr<Float> scratch, Int rows, Int cols,
                 Int slice) {
  Int lane = index();
  Int first = me() * slice, last = min(first + slice, cols);  // this QPU's columns
  Int pitch = cols << 2;
  Int padded = ((rows + 15) >> 4) << 4;
  Ptr<Float> mine = scratch + me() * padded;
  If(any(first < last))
    For(Int r = 0, r < rows, r = r + kRows)
      Ptr<Float> p[kRows];
      for (int k = 0; k < kRows; k++)
        p[k] = PtrExpr<Float>::of((IntExpr::of(a.expr) + min(r + k, rows - 1) * pitch).expr) +
               (first + lane);
      Ptr<Float> q = x + first + lane;
      Float acc[kRows];
      for (int k = 0; k < kRows; k++) acc[k] = 0;
      Int left = last - first;
      // The sequence of requests is x, row 0 .. row 7; the loop runs four requests ahead.
      auto request = [&](int k, bool next) {
        Ptr<Float>& from = k == 0 ? q : p[k - 1];
        if (next) gather(from + 16);
        else gather(from);
      };
      auto step = [&](bool more) {
        Float xv;
        for (int k = 0; k <= kRows; k++) {
          Float v;
          if (k == 0) receive(xv);
          else receive(v);
          if (k + 4 <= kRows) request(k + 4, false);
          else if (more) request(k + 4 - kRows - 1, true);
          if (k > 0) acc[k - 1] = acc[k - 1] + xv * v;
        }
        q = q + 16;
        for (int k = 0; k < kRows; k++) p[k] = p[k] + 16;
        left = left - 16;
      };
      If(any(left >= 16))
        for (int k = 0; k < 4; k++) request(k, false);
        While(any(left >= 32))
          step(true);
        End
        step(false);
      End
      If(any(left > 0))
        // The tail: lanes past the end read their row's last element and multiply it by zero.
        Int over = max(lane - left + 1, 0) << 2;
        Float xv = fetch(PtrExpr<Float>::of((IntExpr::of(q.expr) - over).expr));
        xv = select(lane < left, xv, Float(0));
        for (int k = 0; k < kRows; k++)
          acc[k] = acc[k] + xv * fetch(PtrExpr<Float>::of((IntExpr::of(p[k].expr) - over).expr));
      End
      Float sums = 0;
      for (int k = 0; k < kRows; k++) {
        Float s = sumLanes(acc[k]);
        Where(lane == k)
          sums = s;
        End
      }
      store(sums, mine + r, IntExpr(kRows));
    End
  End
  barrier();
  Int parts = min((cols + slice - 1) / slice, numQPUs());
  For(Int r = me() << 4, r < rows, r = r + (numQPUs() << 4))
    Float total = 0;
    For(Int part = 0, part < parts, part++)
      total = total + vload(scratch + part * padded + r);
    End
    store(total, out + r, rows - r);
  End
}

constexpr int kTile = 8, kStep = 4;

/// A tile of 8 rows by 16 columns stays in registers; rows of A come 16 at a time and are broadcast
/// lane by lane.
void gemm_kernel(Ptr<Float> a, Ptr<Float> b, Ptr<Float> c, Int m, Int n, Int k) {
  Int lane = index();
  Int a_pitch = k << 2, b_pitch = n << 2;
  // Along the rows of tiles: a tile's lines of A stay in the L2 for all tiles beside it.
  Int across = (n + 15) >> 4, tiles = ((m + kTile - 1) >> 3) * across;
  For(Int t = me(), t < tiles, t = t + numQPUs())
    Int ty = t / across;
    Int row = ty << 3, col = (t - ty * across) << 4;
    Int column = min(col + lane, n - 1);
    Float acc[kTile];
    for (int r = 0; r < kTile; r++) acc[r] = 0;
    Ptr<Float> pa[kTile];
    for (int r = 0; r < kTile; r++)
      pa[r] = PtrExpr<Float>::of((IntExpr::of(a.expr) + min(row + r, m - 1) * a_pitch).expr) + lane;
    Ptr<Float> pb = b + column;
    Int left = k;
    Float av[kTile], rows[2][kStep];  // of A: 16 columns a row; of B: some rows, and the next
    auto next_row = [&](const Int& pitch) {
      gather(pb);
      pb = PtrExpr<Float>::of((IntExpr::of(pb.expr) + pitch).expr);
    };
    // Sixteen steps of k a round, four by four: while some rows of B are used, the next arrive,
    // and in the last quarter, through the other TMU, the next vectors of A. Requests for B run
    // four ahead, over the end of a round too; the last round asks again for what exists.
    If(any(left >= 16))
      for (int r = 0; r < kTile; r++) av[r] = fetch(pa[r]);
      for (int e = 0; e < kStep; e++) next_row(b_pitch);
      for (int e = 0; e < kStep; e++) {
        receive(rows[0][e]);
        next_row(b_pitch);
      }
    End
    While(any(left >= 16))
      Int stay = 0, move_on = 64;  // apart: the order of a call's arguments differs by host
      Int hop = select(left >= 32, move_on, stay);
      Int pitch = select(left >= 32, b_pitch, Int(0));
      int received = 0;
      auto take = [&](Float& to) {
        receive(to);
        next_row(received++ + kStep < 11 ? b_pitch : pitch);  // the row after this round's last
      };
      for (int quarter = 0; quarter < 4; quarter++) {
        for (int r = 0; r < kTile; r++) {
          if (r % 2 == 0) take(rows[(quarter + 1) % 2][r / 2]);
          for (int e = 0; e < kStep; e++)
            acc[r] = acc[r] + rows[quarter % 2][e] *
                                  broadcast(av[r], static_cast<unsigned>(quarter * kStep + e));
          if (quarter < 3) continue;
          pa[r] = PtrExpr<Float>::of((IntExpr::of(pa[r].expr) + hop).expr);
          av[r] = fetch(pa[r]);
        }
      }
      left = left - 16;
    End
    If(any(k >= 16))
      for (int e = 0; e < kStep; e++) {
        Float drop;
        receive(drop);
      }
      // The last round did not move on.
      pb = b + (k - left) * n + column;
      for (int r = 0; r < kTile; r++) pa[r] = pa[r] + 16;
    End
    // What is left of k, one step at a time: every lane reads the same element of A.
    For(Int s = 0, s < left, s++)
      Float bv = fetch(pb);
      for (int r = 0; r < kTile; r++)
        acc[r] = acc[r] +
                 bv * fetch(PtrExpr<Float>::of((IntExpr::of(pa[r].expr) + ((s - lane) << 2)).expr));
      pb = PtrExpr<Float>::of((IntExpr::of(pb.expr) + b_pitch).expr);
    End
    Ptr<Float> pc = c + row * n + col;
    for (int r = 0; r < kTile; r++) {
      If(any(row + r < m))
        store(acc[r], pc, n - col);
      End
      pc = PtrExpr<Float>::of((IntExpr::of(pc.expr) + b_pitch).expr);
    }
  End
}

int check(int n, int least, const char* what) {
  if (n < least)
    throw Error(ErrorKind::value, "qpu.kernel.extent", cat(what, " is ", n))
        .note(cat("legal: at least ", least));
  return n;
}
}  // namespace

std::int64_t gemv(const Floats& a, const Floats& x, const Floats& out, const Floats& scratch,
                  int rows, int cols, int qpus) {
  check(rows, 0, "rows"), check(cols, 1, "cols");
  holds(a.size(), static_cast<std::int64_t>(rows) * cols, "a"), holds(x.size(), cols, "x"),
      holds(out.size(), rows, "out");
  holds(scratch.size(), static_cast<std::int64_t>(qpus) * ((rows + 15) / 16 * 16), "scratch");
  if (rows == 0) return 0;
  static auto kernel = compile(gemv_kernel, "gemv");
  auto k = kernel;
  k.setNumQPUs(qpus);
  int vectors = (cols + 15) / 16, slice = (vectors + qpus - 1) / qpus * 16;
  k(&a, &x, &out, &scratch, rows, cols, slice);
  return k.cycles();
}

std::int64_t gemm(const Floats& a, const Floats& b, const Floats& c, int m, int n, int k_extent,
                  int qpus) {
  check(m, 0, "m"), check(n, 0, "n"), check(k_extent, 0, "k");
  holds(a.size(), static_cast<std::int64_t>(m) * k_extent, "a"),
      holds(b.size(), static_cast<std::int64_t>(k_extent) * n, "b"),
      holds(c.size(), static_cast<std::int64_t>(m) * n, "c");
  if (m == 0 || n == 0) return 0;
  static auto kernel = compile(gemm_kernel, "gemm");
  auto k = kernel;
  k.setNumQPUs(qpus);
  k(&a, &b, &c, m, n, k_extent);
  return k.cycles();
}

}  // namespace weft::qpu::kernels
