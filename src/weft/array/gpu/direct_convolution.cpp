// SPDX-License-Identifier: Apache-2.0
// Convolutions whose groups have few results: a thread has all results of a group at a few places
// of the image. Gradients towards their weights: a block has the window of one pair of channels.

#include <algorithm>
#include <bit>

#include "weft/array/device_grid.h"
#include "weft/array/device_kernel.h"
#include "weft/array/gpu/convolution.h"
#include "weft/array/row_ir.h"
#include "weft/base/integers.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr std::int64_t kUnrolled = 16;  // taps in a row of the window that are written out

std::int64_t power_above(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}
Expr mod(const Expr& a, const Expr& b) { return ir::make_binary(ir::ExprKind::mod, a, b); }
Expr inside(const Expr& i, const Expr& extent, const Builder& p) {
  return ir::logical_and(ir::le(p.at(0), i), ir::lt(i, extent));
}
std::int64_t reach(const NDArray& x, std::int64_t beyond) {
  std::int64_t most = 0;
  for (int i = 0; i < x.ndim(); ++i) most += (x.shape()[i] + beyond) * std::abs(x.strides()[i]);
  return most;
}

/// Names for values around a statement.
class Lets {
 public:
  explicit Lets(const Builder& p) : p_(p) {}
  Expr operator()(const char* name, const Expr& value) {
    vars_.emplace_back(p_.var(name), value);
    return vars_.back().first;
  }
  Stmt around(Stmt s) const {
    for (std::size_t i = vars_.size(); i-- > 0;)
      s = ir::let_stmt(vars_[i].first, vars_[i].second, s);
    return s;
  }

 private:
  const Builder& p_;
  std::vector<std::pair<ir::Var, Expr>> vars_;
};

/// What both kernels are specialised on.
struct Spec {
  Elem store, sum, a, b;
  bool narrow = true;
  std::int64_t threads = 256;
  std::int64_t rows = 1, columns = 1;  // of the window that are written out
  std::int64_t results = 1;            // of a group that a thread has at once
  std::int64_t places = 1;             // of the image that it has
};

ProgramKey key_of(std::string_view operation, const Spec& s) {
  return {operation,
          {static_cast<int>(s.store), static_cast<int>(s.sum), static_cast<int>(s.a),
           static_cast<int>(s.b), s.narrow, s.threads, s.rows, s.columns, s.results, s.places}};
}

/// A row of the window: written out where it is short.
Stmt taps(const Builder& p, const Spec& s, const Expr& extent, const Builder::Body& body) {
  return s.columns > 0 ? p.unrolled("j", s.columns, body) : p.loop("j", extent, body);
}

ir::PrimFunc forward_kernel(const Spec& s) {
  Builder p(s.narrow);
  auto at = [&](std::int64_t v) { return p.at(v); };
  const ir::Buffer to = p.buffer("out", s.store), from = p.buffer("from", s.a),
                   weight = p.buffer("weight", s.b);
  const Expr blocks = p.integer("blocks"), threads_all = p.integer("all"), run = p.integer("run");
  const Expr groups = p.integer("groups"), chunks = p.integer("chunks"), outs = p.integer("outs");
  const Expr ins = p.integer("ins"), kh = p.integer("kh"), kw = p.integer("kw");
  const Expr oh = p.integer("oh"), ow = p.integer("ow"), h = p.integer("h"), w = p.integer("w");
  const std::vector<Expr> step = p.integers("step", 2), gap = p.integers("gap", 2),
                          before = p.integers("before", 2);
  const std::vector<Expr> so = p.integers("so", 4), sf = p.integers("sf", 4),
                          sw = p.integers("sw", 5);
  const ir::Buffer acc = local("acc", dtype_of(s.sum), s.places * s.results),
                   taken = local("taken", dtype_of(s.sum), s.places),
                   top = local("top", p.index_type, s.places),
                   left = local("left", p.index_type, s.places),
                   base = local("base", p.index_type, s.places);
  const Expr zero = ir::make_const(0, dtype_of(s.sum));
  auto body = [&](const Expr& block, const Expr& thread) {
    Lets let(p);
    const Expr index = let("index", block * at(s.threads) + thread);
    const Expr r = let("r", mod(index, run)), q = let("q", ir::div(index, run));
    const Expr lot = let("lot", mod(q, groups * chunks)), n = let("n", ir::div(q, groups * chunks));
    const Expr group = let("group", ir::div(lot, chunks)),
               first = let("first", mod(lot, chunks) * at(s.results));
    const Expr base_w = let("base_w", group * sw[0]);
    const Expr plane = let("plane", n * sf[0] + group * ins * sf[1]);
    std::vector<Stmt> all;
    all.push_back(p.unrolled("p", s.places, [&](const Expr& place) {
      const Expr pixel = r + place * run;
      return ir::seq(
          {ir::store(top, ir::div(pixel, ow) * step[0] - before[0], {place}),
           ir::store(left, mod(pixel, ow) * step[1] - before[1], {place}),
           ir::store(base, ir::load(top, {place}) * sf[2] + ir::load(left, {place}) * sf[3],
                     {place})});
    }));
    all.push_back(p.unrolled("a", s.places * s.results,
                             [&](const Expr& i) { return ir::store(acc, zero, {i}); }));
    auto tap = [&](const Expr& c, const Expr& i, const Expr& j) {
      Stmt take = p.unrolled("p", s.places, [&](const Expr& place) {
        const Expr y = ir::load(top, {place}) + i * gap[0],
                   x = ir::load(left, {place}) + j * gap[1];
        const Expr where = plane + c * sf[1] + ir::load(base, {place}) + i * (gap[0] * sf[2]) +
                           j * (gap[1] * sf[3]);
        return ir::store(taken,
                         ir::if_then_else(ir::logical_and(inside(y, h, p), inside(x, w, p)),
                                          convert_value(ir::load(from, {where}), s.sum), zero),
                         {place});
      });
      Stmt add = p.unrolled("o", s.results, [&](const Expr& o) {
        Lets value(p);
        // Results behind the last take the last one's weights.
        const Expr line = value("line", ir::min(first + o, outs - at(1)) * sw[1]);
        return value.around(p.unrolled("p", s.places, [&](const Expr& place) {
          const Expr slot = place * at(s.results) + o;
          return ir::store(acc,
                           ir::load(acc, {slot}) +
                               ir::load(taken, {place}) *
                                   convert_value(ir::load(weight, {base_w + line + c * sw[2] +
                                                                   i * sw[3] + j * sw[4]}),
                                                 s.sum),
                           {slot});
        }));
      });
      return ir::seq({take, add});
    };
    all.push_back(p.loop("c", ins, [&](const Expr& c) {
      return p.loop("i", kh, [&](const Expr& i) {
        return taps(p, s, kw, [&](const Expr& j) { return tap(c, i, j); });
      });
    }));
    all.push_back(p.unrolled("p", s.places, [&](const Expr& place) {
      const Expr pixel = r + place * run;
      return p.unrolled("o", s.results, [&](const Expr& o) {
        const Expr where = n * so[0] + (group * outs + first + o) * so[1] +
                           ir::div(pixel, ow) * so[2] + mod(pixel, ow) * so[3];
        return ir::if_then(
            ir::logical_and(ir::lt(pixel, oh * ow), ir::lt(first + o, outs)),
            ir::store(to, convert_value(ir::load(acc, {place * at(s.results) + o}), s.store),
                      {where}));
      });
    }));
    Stmt whole = ir::if_then(ir::lt(index, threads_all), ir::seq(std::move(all)));
    for (const ir::Buffer& b : {acc, taken, top, left, base}) whole = ir::allocate(b, whole);
    return let.around(whole);
  };
  return p.finish(p.bound("blockIdx.x", blocks,
                          [&](const Expr& block) {
                            return p.bound("threadIdx.x", at(s.threads),
                                           [&](const Expr& thread) { return body(block, thread); });
                          }),
                  true);
}

constexpr std::int64_t kJoinedBytes = 16384, kFolded = 8;

ir::PrimFunc weights_kernel(const Spec& s) {
  Builder p(s.narrow);
  auto at = [&](std::int64_t v) { return p.at(v); };
  const ir::Buffer to = p.buffer("out", s.store), by = p.buffer("by", s.a),
                   from = p.buffer("from", s.b);
  const Expr lots = p.integer("lots"), parts = p.integer("parts"), part = p.integer("part");
  const Expr all_places = p.integer("places"), outs = p.integer("outs"), ins = p.integer("ins");
  const Expr kh = p.integer("kh"), oh = p.integer("oh"), ow = p.integer("ow");
  const Expr h = p.integer("h"), w = p.integer("w");
  const std::vector<Expr> step = p.integers("step", 2), gap = p.integers("gap", 2),
                          before = p.integers("before", 2);
  const std::vector<Expr> sb = p.integers("sb", 4), sf = p.integers("sf", 4);
  const std::int64_t count = s.rows * s.columns;
  const DType type = dtype_of(s.sum);
  const std::int64_t joined =
      std::min(count, std::max<std::int64_t>(1, kJoinedBytes / (s.threads * elem_bytes(s.sum))));
  const ir::Buffer acc = local("acc", type, count),
                   tree = shared("tree", type, {s.threads, joined});
  const Expr zero = ir::make_const(0, type);
  auto body = [&](const Expr& block, const Expr& thread) {
    Lets let(p);
    const Expr which = let("which", ir::div(block, lots)), lot = let("lot", mod(block, lots));
    const Expr bands = let("bands", ir::div(kh, at(s.rows)));
    const Expr band = let("band", mod(lot, bands)), pair = let("pair", ir::div(lot, bands));
    const Expr c = let("c", mod(pair, ins)), result = let("result", ir::div(pair, ins));
    const Expr group = let("group", ir::div(result, outs));
    const Expr begin = let("begin", which * part),
               end = let("end", ir::min(begin + part, all_places));
    const Expr plane = let("plane", (group * ins + c) * sf[1]);
    std::vector<Stmt> all;
    all.push_back(p.unrolled("a", count, [&](const Expr& i) { return ir::store(acc, zero, {i}); }));
    const Expr sweeps = let("sweeps", ir::div(end - begin + at(s.threads - 1), at(s.threads)));
    all.push_back(p.loop("q", sweeps, [&](const Expr& q) {
      Lets in(p);
      const Expr k = in("k", begin + q * at(s.threads) + thread);
      const Expr line = in("line", ir::div(k, ow)), x = in("x", mod(k, ow));
      const Expr n = in("n", ir::div(line, oh)), y = in("y", mod(line, oh));
      const Expr top = in("top", y * step[0] - before[0] + band * at(s.rows) * gap[0]),
                 left = in("left", x * step[1] - before[1]);
      const Expr base = in("base", plane + n * sf[0] + top * sf[2] + left * sf[3]);
      const ir::Var g = ir::make_var("g", type);
      Stmt sums = p.unrolled("i", s.rows, [&](const Expr& i) {
        return p.unrolled("j", s.columns, [&](const Expr& j) {
          const Expr ok =
              ir::logical_and(inside(top + i * gap[0], h, p), inside(left + j * gap[1], w, p));
          const Expr where = base + i * (gap[0] * sf[2]) + j * (gap[1] * sf[3]);
          const Expr slot = i * at(s.columns) + j;
          return ir::store(
              acc,
              ir::load(acc, {slot}) +
                  g * ir::if_then_else(ok, convert_value(ir::load(from, {where}), s.sum), zero),
              {slot});
        });
      });
      sums = ir::let_stmt(
          g,
          convert_value(ir::load(by, {n * sb[0] + result * sb[1] + y * sb[2] + x * sb[3]}), s.sum),
          sums);
      return in.around(ir::if_then(ir::lt(k, end), sums));
    }));
    const Expr place = block * at(count);  // [parts, pairs, bands, rows, columns]
    for (std::int64_t start = 0; start < count; start += joined) {
      const std::int64_t now = std::min(joined, count - start);
      all.push_back(p.unrolled("i", now, [&](const Expr& i) {
        return ir::store(tree, ir::load(acc, {at(start) + i}), {thread, i});
      }));
      for (std::int64_t width = s.threads; width > 1;) {
        const std::int64_t folded = std::min(kFolded, width);
        width /= folded;
        Stmt fold = p.unrolled("i", now, [&](const Expr& i) {
          Expr sum = ir::load(tree, {thread, i});
          for (std::int64_t f = 1; f < folded; ++f)
            sum = sum + ir::load(tree, {thread + at(f * width), i});
          return ir::store(tree, sum, {thread, i});
        });
        all.push_back(ir::if_then(ir::lt(thread, at(width)), fold));
      }
      all.push_back(ir::if_then(ir::eq(thread, at(0)), p.unrolled("i", now, [&](const Expr& i) {
        return ir::store(to, convert_value(ir::load(tree, {thread, i}), s.store),
                         {place + at(start) + i});
      })));
    }
    Stmt whole = ir::allocate(acc, ir::allocate(tree, ir::seq(std::move(all))));
    return let.around(whole);
  };
  return p.finish(p.bound("blockIdx.x", lots * parts,
                          [&](const Expr& block) {
                            return p.bound("threadIdx.x", at(s.threads),
                                           [&](const Expr& thread) { return body(block, thread); });
                          }),
                  true);
}

void add_geometry(ProgramCall& call, const DirectConvolution& d) {
  for (const Pair* pair : {&d.step, &d.gap, &d.before}) {
    for (std::int64_t v : *pair) call.integer(v);
  }
}

}  // namespace

void direct_convolution(const NDArray& out, const NDArray& from, const NDArray& weight,
                        const DirectConvolution& d) {
  const Dims &n = out.shape(), &w = weight.shape(), &f = from.shape();
  Spec s;
  s.store = out.elem(), s.sum = sum_elem(out.elem()), s.a = from.elem(), s.b = weight.elem();
  s.threads = std::min<std::int64_t>(256, grid_of(out.device()).threads);
  s.columns = w[4] <= kUnrolled ? w[4] : 0;
  s.results = std::min<std::int64_t>(8, power_above(w[1]));
  // Weights are shared by places.
  s.places = w[1] > 1 ? 4 : 1;
  const std::int64_t run = ceil_div(n[2] * n[3], s.places), chunks = ceil_div(w[1], s.results),
                     all = run * n[0] * w[0] * chunks, blocks = ceil_div(all, s.threads);
  const std::int64_t beyond = 4096 + d.before[0] + d.before[1];
  s.narrow = fits_narrow(std::max({reach(out, beyond), reach(from, beyond), reach(weight, 8),
                                   blocks * s.threads, s.places * run}));
  ProgramCall call(out.device());
  call.array(out).array(from).array(weight);
  call.integer(blocks).integer(all).integer(run).integer(w[0]).integer(chunks).integer(w[1]);
  call.integer(w[2]).integer(w[3]).integer(w[4]);
  call.integer(n[2]).integer(n[3]).integer(f[2]).integer(f[3]);
  add_geometry(call, d);
  for (const NDArray* x : {&out, &from, &weight}) {
    for (std::int64_t v : x->strides()) call.integer(v);
  }
  call.run(key_of("convolution.direct", s), [&] { return forward_kernel(s); });
}

void direct_weights(const NDArray& out, const NDArray& by, const NDArray& from,
                    const DirectConvolution& d) {
  const Dims &w = out.shape(), &n = by.shape(), &f = from.shape();
  const Grid& grid = grid_of(out.device());
  Spec s;
  s.sum = sum_elem(out.elem()), s.a = by.elem(), s.b = from.elem();
  s.threads = std::min<std::int64_t>(256, grid.threads);
  constexpr std::int64_t kSums = 32;  // of a thread, in registers
  s.columns = w[4], s.rows = w[3] * w[4] <= kSums ? w[3] : 1;
  const std::int64_t places = n[0] * n[2] * n[3], lots = w[0] * w[1] * w[2] * (w[3] / s.rows);
  while (s.threads > 32 && s.threads * 2 > places) s.threads /= 2;
  const std::int64_t wanted = ceil_div(grid.processors * 4, lots),
                     part =
                         ceil_div(ceil_div(places, std::clamp<std::int64_t>(
                                                       wanted, 1, ceil_div(places, s.threads * 4))),
                                  s.threads) *
                         s.threads,
                     parts = ceil_div(places, part), size = out.size();
  NDArray target = parts == 1 ? out : NDArray::empty(out.device(), s.sum, Dims{parts, size});
  s.store = target.elem();
  const std::int64_t beyond = 4096 + d.before[0] + d.before[1];
  s.narrow = fits_narrow(std::max(
      {reach(by, beyond), reach(from, beyond), parts * size, lots * parts, places + part}));
  ProgramCall call(out.device());
  call.array(target).array(by).array(from);
  call.integer(lots).integer(parts).integer(part).integer(places).integer(w[1]).integer(w[2]);
  call.integer(w[3]).integer(n[2]).integer(n[3]).integer(f[2]).integer(f[3]);
  add_geometry(call, d);
  for (const NDArray* x : {&by, &from}) {
    for (std::int64_t v : x->strides()) call.integer(v);
  }
  call.run(key_of("convolution.direct_weights", s), [&] { return weights_kernel(s); });
  if (parts > 1) grid_reduce(ReduceOp::sum, s.sum, out.reshape(Dims{size}), target, 1);
}

}  // namespace weft::device
