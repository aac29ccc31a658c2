// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/fuse_host.h"

#include <algorithm>

#include "weft/array/feed.h"
#include "weft/elements/elem.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/share.h"

namespace weft::fuse {

using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

constexpr std::int64_t kLanes = 16, kRow = 4096, kColumns = 128;

Expr number(std::int64_t v) { return ir::make_int(v); }
std::int64_t product(const Dims& d) {
  std::int64_t p = 1;
  for (std::int64_t v : d) p *= v;
  return p;
}

/// Neighbouring axes joined where every operand allows it; at least one axis is left.
void collapse(Dims& shape, std::vector<Dims>& steps) {
  int kept = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool joins = kept > 0;
    for (Dims& s : steps) joins = joins && s[kept - 1] == s[i] * shape[i];
    if (joins) --kept;
    shape[kept] = joins ? shape[kept] * shape[i] : shape[i];
    for (Dims& s : steps) s[kept] = s[i];
    ++kept;
  }
  if (kept == 0) {
    shape = Dims{1};
    for (Dims& s : steps) s = Dims{0};
    return;
  }
  shape.resize(kept);
  for (Dims& s : steps) s.resize(kept);
}

Stmt loop(const std::string& name, std::int64_t extent, ir::ForKind kind,
          const std::function<Stmt(const Expr&)>& body) {
  if (extent == 1 && kind != ir::ForKind::parallel) return body(number(0));
  Var v = ir::make_var(name);
  return ir::make_for(v, number(0), number(extent), body(v), kind);
}

/// Offsets of all operands at a row-major position among axes [0, axes).
std::vector<Expr> offsets(const Expr& linear, const Dims& shape, const std::vector<Dims>& steps,
                          int axes) {
  std::vector<Expr> out(steps.size(), number(0));
  Expr rest = linear;
  for (int i = axes - 1; i >= 0; --i) {
    Expr x = i > 0 ? ir::floormod(rest, number(shape[i])) : rest;
    if (i > 0) rest = ir::floordiv(rest, number(shape[i]));
    for (std::size_t k = 0; k < steps.size(); ++k) out[k] = out[k] + x * number(steps[k][i]);
  }
  return out;
}

struct Operands {
  std::vector<ir::Buffer> buffers;
  std::vector<ir::Param> params;
  void add(const std::string& name, Elem elem) {
    auto b = ir::edit(ir::make_buffer(name, dtype_of(elem), {ir::make_var("n_" + name)}));
    b->align = elem_bytes(elem);
    buffers.push_back(b);
    params.push_back(ir::buffer_param(buffers.back()));
  }
};

/// then(value(loads)), where each load and what the value uses more than once are computed once.
Stmt with_value(const std::vector<Expr>& loads,
                const std::function<Expr(const std::vector<Expr>&)>& value,
                const std::function<Stmt(const Expr&)>& then) {
  std::vector<Var> names;
  std::vector<Expr> named;
  for (std::size_t k = 0; k < loads.size(); ++k) {
    names.push_back(ir::make_var(cat("x", k), loads[k]->dtype));
    named.push_back(names.back());
  }
  Stmt body = ir::with_shared({value(named)}, [&](const ir::Exprs& v) { return then(v[0]); });
  for (std::size_t k = loads.size(); k-- > 0;) body = ir::let_stmt(names[k], loads[k], body);
  return body;
}

/// body(j) over [0, extent) in vectors, then the rest one by one.
Stmt vectors(std::int64_t extent, std::int64_t lanes,
             const std::function<Stmt(const Expr&)>& body) {
  std::vector<Stmt> all;
  const std::int64_t whole = extent / lanes;
  if (whole > 0) {
    all.push_back(loop("jo", whole, ir::ForKind::serial, [&](const Expr& jo) {
      Var v = ir::make_var("ji");
      return ir::make_for(v, number(0), number(lanes), body(jo * number(lanes) + Expr(v)),
                          ir::ForKind::vectorized);
    }));
  }
  if (extent % lanes)
    all.push_back(loop("jt", extent % lanes, ir::ForKind::serial,
                       [&](const Expr& j) { return body(j + number(whole * lanes)); }));
  return ir::seq(std::move(all));
}

ir::PrimFunc finish(Operands& operands, const Stmt& body) {
  return ir::make_func("main", operands.params, ir::root_block(body));
}

}  // namespace

ir::PrimFunc host_map(HostMap map) {
  collapse(map.shape, map.steps);
  Operands operands;
  operands.add("out", map.elems[0]);
  for (std::size_t k = 1; k < map.elems.size(); ++k) operands.add(cat("a", k - 1), map.elems[k]);
  const int last = map.shape.size() - 1;
  // What does not stay in the caches is stored past them.
  const int bytes = elem_bytes(map.elems[0]);
  const bool stream =
      last == 0 && bytes >= 4 && product(map.shape) * bytes >= kStreamBytes && map.steps[0][0] == 1;
  auto element = [&](const std::vector<Expr>& base, const Expr& j) {
    std::vector<Expr> loads;
    for (std::size_t k = 1; k < map.elems.size(); ++k)
      loads.push_back(ir::load(operands.buffers[k], {base[k] + j * number(map.steps[k][last])}));
    return with_value(loads, map.value, [&](const Expr& v) {
      return ir::store(operands.buffers[0], stream ? ir::call("nontemporal", {v}) : v,
                       {base[0] + j * number(map.steps[0][last])});
    });
  };
  std::vector<Stmt> all;
  const std::int64_t inner = map.shape[last],
                     rows = product(map.shape) / std::max<std::int64_t>(inner, 1);
  // One long row is cut so that threads share it.
  const std::int64_t cut = last == 0 && inner > kRow ? kRow : inner;
  const std::int64_t pieces = inner / cut;
  Var o = ir::make_var("o");
  Stmt body;
  if (last == 0) {
    std::vector<Expr> base;
    for (const Dims& s : map.steps) base.push_back(Expr(o) * number(cut * s[0]));
    body = vectors(cut, kLanes, [&](const Expr& j) { return element(base, j); });
    all.push_back(ir::make_for(o, number(0), number(pieces), body,
                               pieces > 1 ? ir::ForKind::parallel : ir::ForKind::serial));
    if (inner % cut) {
      std::vector<Expr> end;
      for (const Dims& s : map.steps) end.push_back(number(pieces * cut * s[0]));
      all.push_back(vectors(inner % cut, kLanes, [&](const Expr& j) { return element(end, j); }));
    }
  } else {
    // Several short rows to a task.
    const std::int64_t group = std::clamp<std::int64_t>(kRow / inner, 1, rows);
    std::int64_t per = group;
    while (rows % per) --per;
    Var r = ir::make_var("r");
    std::vector<Expr> base = offsets(Expr(o) * number(per) + Expr(r), map.shape, map.steps, last);
    body = vectors(inner, kLanes, [&](const Expr& j) { return element(base, j); });
    body = ir::make_for(r, number(0), number(per), body);
    all.push_back(ir::make_for(o, number(0), number(rows / per), body,
                               rows / per > 1 ? ir::ForKind::parallel : ir::ForKind::serial));
  }
  return finish(operands, ir::seq(std::move(all)));
}

std::int64_t host_reduce_parts(const Dims& shape, std::uint64_t mask) {
  std::int64_t kept = 1, gone = 1;
  for (int i = 0; i < shape.size(); ++i) (mask >> i & 1 ? gone : kept) *= shape[i];
  if (kept > 1 || gone < 1 << 16) return 1;
  for (std::int64_t parts = 64; parts > 1; parts /= 2) {
    for (int i = 0; i < shape.size(); ++i) {
      if ((mask >> i & 1) && shape[i] % parts == 0) return parts;
    }
  }
  return 1;
}

ir::PrimFunc host_reduce(HostReduce in) {
  Dims kept, gone;
  std::vector<Dims> ks(in.steps.size()), gs(in.steps.size());
  for (int i = 0; i < in.shape.size(); ++i) {
    bool away = in.mask >> i & 1;
    (away ? gone : kept).push_back(in.shape[i]);
    for (std::size_t k = 0; k < in.steps.size(); ++k) (away ? gs : ks)[k].push_back(in.steps[k][i]);
  }
  collapse(kept, ks);
  collapse(gone, gs);
  if (in.parts > 1) {
    // The parts become a kept axis in front; the longest reduced axis gives it where it divides.
    int axis = -1;
    for (int i = 0; i < gone.size() && axis < 0; ++i) {
      if (gone[i] % in.parts == 0) axis = i;
    }
    WEFT_CHECK(axis >= 0, "no axis of ", to_string(gone), " divides by ", in.parts);
    kept = Dims{in.parts};
    gone[axis] /= in.parts;
    for (std::size_t k = 0; k < gs.size(); ++k) ks[k] = Dims{gs[k][axis] * gone[axis]};
  }
  Operands operands;
  operands.add("out", in.kernel);
  for (std::size_t k = 0; k < in.elems.size(); ++k) operands.add(cat("a", k), in.elems[k]);
  const DType type = dtype_of(in.kernel);
  const std::int64_t kept_size = product(kept), gone_size = product(gone);
  // acc[j] = acc[j] combined with the value at these places.
  auto combine = [&](const ir::Buffer& acc, const Expr& j, const std::vector<Expr>& at) {
    std::vector<Expr> loads;
    for (std::size_t k = 0; k < in.elems.size(); ++k)
      loads.push_back(ir::load(operands.buffers[k + 1], {at[k]}));
    return with_value(loads, in.value, [&](const Expr& v) {
      return ir::store(acc, reduce_value(in.op, ir::load(acc, {j}), v), {j});
    });
  };
  auto sum = [](std::vector<Expr> a, const std::vector<Expr>& b) {
    for (std::size_t k = 0; k < a.size(); ++k) a[k] = a[k] + b[k];
    return a;
  };
  auto along = [](const std::vector<Dims>& steps, int axis, const Expr& x) {
    std::vector<Expr> out;
    for (const Dims& s : steps) out.push_back(x * number(s[axis]));
    return out;
  };
  auto least = [](const std::vector<Dims>& steps) {
    std::int64_t step = INT64_MAX;
    for (const Dims& s : steps) {
      if (std::int64_t v = std::abs(s[s.size() - 1])) step = std::min(step, v);
    }
    return step;
  };
  const int kl = kept.size() - 1, gl = gone.size() - 1;
  const Expr start = reduce_identity(in.op, in.kernel);
  if (kept[kl] >= kLanes && least(ks) < least(gs)) {
    // Columns: a strip of kept neighbours is accumulated over all reduced positions.
    const std::int64_t outer = kept_size / kept[kl];
    auto strip = [&](const Expr& o, const Expr& first, std::int64_t width) {
      ir::Buffer acc = ir::make_buffer("acc", type, {number(width)}, "local");
      std::vector<Expr> base = sum(offsets(o, kept, ks, kl), along(ks, kl, first));
      std::vector<Stmt> steps;
      steps.push_back(
          vectors(width, kLanes, [&](const Expr& j) { return ir::store(acc, start, {j}); }));
      steps.push_back(loop("g", gone_size, ir::ForKind::serial, [&](const Expr& g) {
        std::vector<Expr> at = sum(base, offsets(g, gone, gs, gl + 1));
        return vectors(width, kLanes,
                       [&](const Expr& j) { return combine(acc, j, sum(at, along(ks, kl, j))); });
      }));
      steps.push_back(vectors(width, kLanes, [&](const Expr& j) {
        return ir::store(operands.buffers[0], ir::load(acc, {j}),
                         {o * number(kept[kl]) + first + j});
      }));
      return ir::allocate(acc, ir::seq(std::move(steps)));
    };
    const std::int64_t width = std::min(kColumns, kept[kl]), strips = kept[kl] / width;
    std::vector<Stmt> all = {loop("o", outer * strips, ir::ForKind::parallel, [&](const Expr& o) {
      return strip(ir::floordiv(o, number(strips)), ir::floormod(o, number(strips)) * number(width),
                   width);
    })};
    if (kept[kl] % width)
      all.push_back(loop("o", outer, ir::ForKind::parallel, [&](const Expr& o) {
        return strip(o, number(strips * width), kept[kl] % width);
      }));
    return finish(operands, ir::seq(std::move(all)));
  }
  // Rows: the innermost reduced axis runs in vectors of running results, joined at the end.
  const std::int64_t inner = gone[gl], outer = gone_size / inner;
  const bool wide = inner >= 2 * kLanes;
  // Each sum waits for the one before it: long rows have more of them.
  const std::int64_t lanes = inner >= 16 * kLanes ? 4 * kLanes : wide ? 2 * kLanes : 1;
  std::int64_t per = std::clamp<std::int64_t>(kRow / gone_size, 1, kept_size);
  while (kept_size % per) --per;
  auto row = [&](const Expr& o) {
    ir::Buffer acc = ir::make_buffer("acc", type, {number(lanes)}, "local");
    ir::Buffer rest = ir::make_buffer("rest", type, {number(1)}, "local");
    std::vector<Expr> base = offsets(o, kept, ks, kl + 1);
    std::vector<Stmt> steps;
    if (wide)
      steps.push_back(
          vectors(lanes, kLanes, [&](const Expr& j) { return ir::store(acc, start, {j}); }));
    steps.push_back(ir::store(rest, start, {number(0)}));
    steps.push_back(loop("g", outer, ir::ForKind::serial, [&](const Expr& g) {
      std::vector<Expr> at = sum(base, offsets(g, gone, gs, gl));
      std::vector<Stmt> body;
      if (wide) {
        body.push_back(loop("c", inner / lanes, ir::ForKind::serial, [&](const Expr& c) {
          std::vector<Expr> from = sum(at, along(gs, gl, c * number(lanes)));
          return vectors(lanes, kLanes, [&](const Expr& j) {
            return combine(acc, j, sum(from, along(gs, gl, j)));
          });
        }));
      }
      const std::int64_t done = wide ? inner / lanes * lanes : 0;
      if (inner > done) {
        body.push_back(loop("t", inner - done, ir::ForKind::serial, [&](const Expr& t) {
          return combine(rest, number(0), sum(at, along(gs, gl, t + number(done))));
        }));
      }
      return ir::seq(std::move(body));
    }));
    if (wide)
      steps.push_back(loop("l", lanes, ir::ForKind::serial, [&](const Expr& l) {
        return ir::store(rest, reduce_value(in.op, ir::load(rest, {number(0)}), ir::load(acc, {l})),
                         {number(0)});
      }));
    steps.push_back(ir::store(operands.buffers[0], ir::load(rest, {number(0)}), {o}));
    Stmt s = ir::allocate(rest, ir::seq(std::move(steps)));
    return wide ? ir::allocate(acc, s) : s;
  };
  Stmt body = loop("o", kept_size / per, ir::ForKind::parallel, [&](const Expr& o) {
    return loop("r", per, ir::ForKind::serial,
                [&](const Expr& r) { return row(o * number(per) + r); });
  });
  return finish(operands, body);
}

}  // namespace weft::fuse
