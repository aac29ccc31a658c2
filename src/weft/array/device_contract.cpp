// SPDX-License-Identifier: Apache-2.0
// Matrix products and everything that is one (convolutions by implicit windows): tiles in shared
// memory, a register tile for each thread, every group of axes decomposed at its own strides, so
// that views, windows and batches need no copies.

#include <algorithm>

#include "weft/array/device_grid.h"
#include "weft/array/row_ir.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

struct Tile {
  std::int64_t block_m, block_n, block_k, each_m, each_n;
  std::int64_t threads_x() const { return block_n / each_n; }
  std::int64_t threads_y() const { return block_m / each_m; }
  std::int64_t threads() const { return threads_x() * threads_y(); }
};
constexpr Tile kLarge{128, 128, 8, 8, 8}, kMedium{64, 64, 16, 4, 4}, kSmall{32, 32, 16, 2, 2},
    kTiny{16, 16, 16, 1, 1};

std::int64_t product(const Dims& d) {
  std::int64_t p = 1;
  for (std::int64_t v : d) p *= v;
  return p;
}
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Joins neighbouring axes of a group where both operands that have it allow it.
void collapse(Dims& shape, Dims& first, Dims& second) {
  int kept = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool joins = kept > 0 && first[kept - 1] == first[i] * shape[i] &&
                 second[kept - 1] == second[i] * shape[i];
    if (joins) --kept;
    shape[kept] = joins ? shape[kept] * shape[i] : shape[i];
    first[kept] = first[i];
    second[kept] = second[i];
    ++kept;
  }
  if (kept == 0) {
    shape = Dims{1};
    first = second = Dims{1};
    return;
  }
  shape.resize(kept);
  first.resize(kept);
  second.resize(kept);
}

std::int64_t reach(const Dims& shape, const Dims& steps) {
  std::int64_t r = 0;
  for (int i = 0; i < shape.size(); ++i) r += shape[i] * std::abs(steps[i]);
  return r;
}

}  // namespace

void grid_contract(const NDArray& out, const NDArray& a, const NDArray& b, const Contraction& in) {
  Contraction c = in;
  collapse(c.m, c.a.outer, c.out.outer);
  collapse(c.n, c.b.inner, c.out.inner);
  collapse(c.k, c.a.inner, c.b.outer);
  const std::int64_t m = product(c.m), n = product(c.n), k = product(c.k), batch = product(c.batch);
  const Grid& grid = grid_of(out.device());
  // The largest tile that still gives every processor a block; then parts of k.
  constexpr std::int64_t kProcessors = 132;
  Tile tile = kTiny;
  for (const Tile& t : {kLarge, kMedium, kSmall}) {
    if (t.threads() > grid.threads || (out.elem() == Elem::float64 && t.each_m > 4)) continue;
    std::int64_t blocks = ceil_div(m, t.block_m) * ceil_div(n, t.block_n) * batch;
    std::int64_t most = blocks * std::max<std::int64_t>(1, k / (16 * t.block_k));
    bool wide = m * 2 > t.block_m && n * 2 > t.block_n;
    if (wide && (t.each_m == 8 ? blocks >= kProcessors : most >= kProcessors)) {
      tile = t;
      break;
    }
    if (t.each_m == 2 && m > 8 && n > 8) tile = t;
  }
  const std::int64_t blocks_m = ceil_div(m, tile.block_m), blocks_n = ceil_div(n, tile.block_n);
  std::int64_t parts = 1;
  if (blocks_m * blocks_n * batch < kProcessors)
    parts = std::clamp<std::int64_t>(
        std::min(2 * kProcessors / (blocks_m * blocks_n * batch), k / (8 * tile.block_k)), 1, 64);
  const std::int64_t part = ceil_div(ceil_div(k, parts), tile.block_k) * tile.block_k;
  parts = ceil_div(k, part);
  NDArray target = out;
  Steps steps_out = c.out;
  if (parts > 1) {
    target = NDArray::empty(out.device(), out.elem(), Dims{parts, batch, m, n});
    steps_out.batch = NDArray::compact_strides(c.batch);
    for (std::int64_t& s : steps_out.batch) s *= m * n;
    steps_out.outer = NDArray::compact_strides(c.m);
    for (std::int64_t& s : steps_out.outer) s *= n;
    steps_out.inner = NDArray::compact_strides(c.n);
  }
  auto fastest = [](const Dims& steps) { return std::abs(steps[steps.size() - 1]); };
  const bool a_rows = fastest(c.a.inner) <= fastest(c.a.outer);  // neighbours along k
  const bool b_rows = fastest(c.b.outer) < fastest(c.b.inner);   // neighbours along k
  const bool narrow = fits_narrow(std::max(
      {reach(c.m, c.a.outer) + reach(c.k, c.a.inner) + reach(c.batch, c.a.batch),
       reach(c.k, c.b.outer) + reach(c.n, c.b.inner) + reach(c.batch, c.b.batch),
       reach(c.m, steps_out.outer) + reach(c.n, steps_out.inner) + reach(c.batch, steps_out.batch),
       target.size(), m + n + k + part}));
  const int rm = c.m.size(), rn = c.n.size(), rk = c.k.size(), rb = c.batch.size();
  auto word = [](auto v) { return static_cast<std::uint64_t>(v); };
  Key key{4,
          word(out.elem()) | word(a.elem()) << 4 | word(b.elem()) << 8 | word(narrow) << 12 |
              word(a_rows) << 13 | word(b_rows) << 14,
          word(rm) | word(rn) << 8 | word(rk) << 16 | word(rb) << 24,
          word(tile.block_m) | word(tile.block_k) << 16};
  Call call(out.device());
  call.array(target).array(a).array(b);
  call.integer(blocks_m).integer(blocks_n).integer(parts).integer(batch).integer(part);
  call.integer(m).integer(n).integer(k).integer(batch * m * n);
  for (const Dims* d :
       {&c.m, &c.n, &c.k, &c.batch, &c.a.outer, &c.a.inner, &c.a.batch, &c.b.outer, &c.b.inner,
        &c.b.batch, &steps_out.outer, &steps_out.inner, &steps_out.batch}) {
    for (std::int64_t v : *d) call.integer(v);
  }
  call.run(key, [&] {
    Builder p(narrow);
    ir::Buffer to = p.buffer("out", out.elem()), fa = p.buffer("a", a.elem()),
               fb = p.buffer("b", b.elem());
    Expr bm = p.integer("blocks_m"), bn = p.integer("blocks_n"), bp = p.integer("parts"),
         bb = p.integer("batches"), length = p.integer("part"), em = p.integer("m"),
         en = p.integer("n"), ek = p.integer("k"), slab = p.integer("slab");
    auto dm = p.integers("dm", rm), dn = p.integers("dn", rn), dk = p.integers("dk", rk),
         db = p.integers("db", rb);
    auto am = p.integers("am", rm), ak = p.integers("ak", rk), ab = p.integers("ab", rb);
    auto bk = p.integers("bk", rk), bnn = p.integers("bn", rn), bbb = p.integers("bb", rb);
    auto om = p.integers("om", rm), on = p.integers("on", rn), ob = p.integers("ob", rb);
    const DType type = dtype_of(out.elem());
    const Expr zero = ir::make_const(0, type);
    const std::int64_t threads = tile.threads(), pad = tile.each_m >= 4 ? 4 : 1;
    ir::Buffer sa = shared("tile_a", type, {tile.block_k, tile.block_m + pad}),
               sb = shared("tile_b", type, {tile.block_k, tile.block_n + pad});
    ir::Buffer acc = local("acc", type, tile.each_m * tile.each_n);
    ir::Buffer ra = local("ra", type, tile.each_m), rb_ = local("rb", type, tile.each_n);
    auto body = [&](const Expr& x, const Expr& y, const Expr& z, const Expr& tx, const Expr& ty) {
      ir::Var which = p.var("which"), first = p.var("first"), last = p.var("last");
      ir::Var oa = p.var("oa"), o_b = p.var("ob"), oo = p.var("oo");
      Expr id = ty * p.at(tile.threads_x()) + tx;
      auto mod = [](const Expr& e, const Expr& d) {
        return ir::make_binary(ir::ExprKind::mod, e, d);
      };
      // One tile of an operand: [block_k, extent] from positions (k, e).
      auto bring = [&](const ir::Buffer& tile_buffer, const ir::Buffer& from, std::int64_t extent,
                       bool along_k, const Expr& base, const Expr& start, const Expr& limit,
                       const std::vector<Expr>& de, const std::vector<Expr>& se,
                       const std::vector<Expr>& sk, const Expr& k0) {
        std::vector<Stmt> out_steps;
        for (std::int64_t e = 0; e < ceil_div(extent * tile.block_k, threads); ++e) {
          Expr at = id + p.at(e * threads);
          Expr kk = along_k ? mod(at, p.at(tile.block_k)) : ir::div(at, p.at(extent));
          Expr ee = along_k ? ir::div(at, p.at(tile.block_k)) : mod(at, p.at(extent));
          Expr pe = start + ee, pk = k0 + kk;
          Expr position = base + positions(pe, de, {se})[0] + positions(pk, dk, {sk})[0];
          Expr value = convert_value(ir::load(from, {position}), out.elem());
          Expr in_range = ir::logical_and(ir::lt(pe, limit), ir::lt(pk, last));
          Stmt put = ir::store(tile_buffer, ir::if_then_else(in_range, value, zero), {kk, ee});
          if ((e + 1) * threads > extent * tile.block_k)
            put = ir::if_then(ir::lt(at, p.at(extent * tile.block_k)), put);
          out_steps.push_back(put);
        }
        return ir::seq(std::move(out_steps));
      };
      auto compute = [&](const Expr& kk) {
        std::vector<Stmt> s;
        for (std::int64_t i = 0; i < tile.each_m; ++i)
          s.push_back(
              ir::store(ra, ir::load(sa, {kk, ty * p.at(tile.each_m) + p.at(i)}), {p.at(i)}));
        for (std::int64_t j = 0; j < tile.each_n; ++j)
          s.push_back(
              ir::store(rb_, ir::load(sb, {kk, tx * p.at(tile.each_n) + p.at(j)}), {p.at(j)}));
        for (std::int64_t i = 0; i < tile.each_m; ++i) {
          for (std::int64_t jj = 0; jj < tile.each_n; ++jj) {
            std::int64_t j = i % 2 ? tile.each_n - 1 - jj : jj;  // neighbours share an operand
            Expr slot = p.at(i * tile.each_n + j);
            s.push_back(ir::store(
                acc, ir::load(acc, {slot}) + ir::load(ra, {p.at(i)}) * ir::load(rb_, {p.at(j)}),
                {slot}));
          }
        }
        return ir::seq(std::move(s));
      };
      std::vector<Stmt> all;
      for (std::int64_t i = 0; i < tile.each_m * tile.each_n; ++i)
        all.push_back(ir::store(acc, zero, {p.at(i)}));
      Expr start_m = y * p.at(tile.block_m), start_n = x * p.at(tile.block_n);
      Expr tiles = ir::div(Expr(last) - Expr(first) + p.at(tile.block_k - 1), p.at(tile.block_k));
      all.push_back(p.loop("kt", tiles, [&](const Expr& kt) {
        Expr k0 = Expr(first) + kt * p.at(tile.block_k);
        std::vector<Stmt> inner = {
            bring(sa, fa, tile.block_m, a_rows, oa, start_m, em, dm, am, ak, k0),
            bring(sb, fb, tile.block_n, b_rows, o_b, start_n, en, dn, bnn, bk, k0)};
        inner.push_back(p.unrolled("kk", tile.block_k, compute));
        return ir::seq(std::move(inner));
      }));
      for (std::int64_t i = 0; i < tile.each_m; ++i) {
        Expr row = start_m + ty * p.at(tile.each_m) + p.at(i);
        std::vector<Stmt> stores;
        for (std::int64_t j = 0; j < tile.each_n; ++j) {
          Expr col = start_n + tx * p.at(tile.each_n) + p.at(j);
          Expr position = Expr(oo) + positions(row, dm, {om})[0] + positions(col, dn, {on})[0];
          stores.push_back(
              ir::if_then(ir::lt(col, en),
                          ir::store(to, ir::load(acc, {p.at(i * tile.each_n + j)}), {position})));
        }
        all.push_back(ir::if_then(ir::lt(row, em), ir::seq(std::move(stores))));
      }
      Stmt s = ir::seq(std::move(all));
      for (const ir::Buffer& buffer : {acc, ra, rb_, sa, sb}) s = ir::allocate(buffer, s);
      auto base = positions(ir::div(z, bp), db, {ab, bbb, ob});
      s = ir::let_stmt(oo, base[2] + Expr(which) * slab, s);
      s = ir::let_stmt(o_b, base[1], s);
      s = ir::let_stmt(oa, base[0], s);
      s = ir::let_stmt(last, ir::min(Expr(first) + length, ek), s);
      s = ir::let_stmt(first, Expr(which) * length, s);
      return ir::let_stmt(which, mod(z, bp), s);
    };
    // One axis of blocks: the others are limited to 65535.
    return p.finish(p.bound("blockIdx.x", bn * bm * bp * bb, [&](const Expr& block) {
      return p.bound("threadIdx.x", p.at(tile.threads_x()), [&](const Expr& tx) {
        return p.bound("threadIdx.y", p.at(tile.threads_y()), [&](const Expr& ty) {
          ir::Var x = p.var("x"), y = p.var("y"), z = p.var("z");
          Stmt s = body(x, y, z, tx, ty);
          s = ir::let_stmt(z, ir::div(block, bn * bm), s);
          s = ir::let_stmt(y, ir::make_binary(ir::ExprKind::mod, ir::div(block, bn), bm), s);
          return ir::let_stmt(x, ir::make_binary(ir::ExprKind::mod, block, bn), s);
        });
      });
    }));
  });
  if (parts == 1) return;
  // The parts are added up in their order; the result may have any layout.
  Dims shape = c.batch, steps = c.out.batch;
  for (std::int64_t v : c.m) shape.push_back(v);
  for (std::int64_t v : c.n) shape.push_back(v);
  for (std::int64_t v : c.out.outer) steps.push_back(v);
  for (std::int64_t v : c.out.inner) steps.push_back(v);
  NDArray view = out.as_strided(shape, steps, out.offset());
  if (view.is_contiguous()) {
    grid_reduce(ReduceOp::sum, out.elem(), view.reshape(Dims{batch * m * n}),
                target.reshape(Dims{parts, batch * m * n}), 1);
  } else {
    NDArray sum = NDArray::empty(out.device(), out.elem(), Dims{batch * m * n});
    grid_reduce(ReduceOp::sum, out.elem(), sum, target.reshape(Dims{parts, batch * m * n}), 1);
    assign(view, sum.reshape(shape));
  }
}

}  // namespace weft::device
