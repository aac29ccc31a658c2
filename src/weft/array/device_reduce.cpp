// SPDX-License-Identifier: Apache-2.0
// Reductions on a grid that the rules do not take: columns, and few results. Where the kept axis is
// the contiguous one, neighbouring threads keep neighbouring columns; else the threads of a row
// share its elements. Long reductions with few results are cut into parts, whose results a second
// launch combines.

#include <algorithm>
#include <bit>

#include "weft/array/device_grid.h"
#include "weft/array/nest.h"
#include "weft/array/row_ir.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

constexpr std::int64_t kUnroll = 8;

constexpr int kMost = 12;  // arrays of a map

/// One group of axes with the steps of every array; merged where all allow it, at least one axis.
struct Group {
  Dims shape, steps[kMost];
  std::int64_t size = 1;
  int rank() const { return shape.size(); }
  void collapse(int count) {
    int kept = 0;
    for (int i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      bool joins = kept > 0;
      for (int k = 0; joins && k < count; ++k) joins = steps[k][kept - 1] == steps[k][i] * shape[i];
      if (joins) --kept;
      shape[kept] = joins ? shape[kept] * shape[i] : shape[i];
      for (int k = 0; k < count; ++k) steps[k][kept] = steps[k][i];
      ++kept;
    }
    if (kept == 0) {
      shape = Dims{1};
      for (int k = 0; k < count; ++k) steps[k] = Dims{1};
      return;
    }
    shape.resize(kept);
    for (int k = 0; k < count; ++k) steps[k].resize(kept);
  }
  /// The smallest step of the innermost axis that moves at all.
  std::int64_t inner(int count) const {
    std::int64_t least = INT64_MAX;
    for (int k = 0; k < count; ++k) {
      std::int64_t step = std::abs(steps[k][shape.size() - 1]);
      if (step != 0) least = std::min(least, step);
    }
    return least;
  }
};

struct Shape {
  Group kept, gone;
  std::int64_t reach = 0;
  int count = 0;
};

struct Plan {
  bool columns = false;
  std::int64_t x = 1, y = 1;  // threads of a block: along rows: x share a row, y rows
  std::int64_t parts = 1;
};

Plan plan_of(const Shape& s, const Grid& grid) {
  Plan plan;
  const std::int64_t wide = std::min<std::int64_t>(256, grid.threads);
  plan.columns = s.kept.size >= 16 && s.kept.inner(s.count) < s.gone.inner(s.count);
  // Few summands for many columns: a thread for each column, without shared memory's detour.
  const bool flat = plan.columns && s.gone.size <= 64 && s.kept.size >= wide * grid.processors / 2;
  if (flat) {
    plan.x = wide;
    plan.y = 1;
    return plan;
  }
  if (plan.columns) {
    plan.x = 32;
    plan.y = wide / 32;
  } else {
    plan.x = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(s.gone.size + 3) / 4)),
        1, wide);
    plan.y = wide / plan.x;
  }
  // Enough blocks for every processor several times over, each with enough to do.
  constexpr std::int64_t kBlocks = 1056;
  std::int64_t blocks =
      plan.columns ? (s.kept.size + plan.x - 1) / plan.x : (s.kept.size + plan.y - 1) / plan.y;
  std::int64_t share = (plan.columns ? plan.y : plan.x) * kUnroll;  // of a block in one sweep
  if (blocks < kBlocks / 4)
    plan.parts =
        std::clamp<std::int64_t>(std::min(kBlocks / blocks, s.gone.size / (4 * share)), 1, 4096);
  return plan;
}

}  // namespace

void grid_reduce_bound(ReduceOp op, Elem kernel, const NDArray& out, const Map& map,
                       const Dims& shape, std::uint64_t mask) {
  Shape s;
  s.count = static_cast<int>(map.arrays.size());
  WEFT_CHECK(s.count > 0 && s.count < kMost, "a reduction of ", s.count, " arrays");
  const Ref<Device>& device = out.device();
  std::vector<Dims> strides;
  for (const NDArray* a : map.arrays) strides.push_back(broadcast_strides(*a, shape));
  for (int i = 0; i < shape.size(); ++i) {
    Group& group = mask >> i & 1 ? s.gone : s.kept;
    group.shape.push_back(shape[i]);
    group.size *= shape[i];
    for (int k = 0; k < s.count; ++k)
      group.steps[k].push_back(strides[static_cast<std::size_t>(k)][i]);
  }
  for (const Dims& steps : strides) {
    std::int64_t reach = 0;
    for (int i = 0; i < shape.size(); ++i) reach += std::abs(steps[i]) * shape[i];
    s.reach = std::max(s.reach, reach);
  }
  s.kept.collapse(s.count);
  s.gone.collapse(s.count);
  Plan plan = plan_of(s, grid_of(device));
  // Parts begin where whole sweeps end, so that a warp's loads stay on their lines.
  const std::int64_t sweep_size = (plan.columns ? plan.y : plan.x) * kUnroll;
  std::int64_t part = (s.gone.size + plan.parts - 1) / plan.parts;
  if (plan.parts > 1) part = (part + sweep_size - 1) / sweep_size * sweep_size;
  plan.parts = (s.gone.size + part - 1) / part;
  NDArray target = out;
  if (plan.parts > 1) target = NDArray::empty(device, kernel, Dims{plan.parts, s.kept.size});
  const int kept_rank = s.kept.rank(), gone_rank = s.gone.rank();
  const bool narrow =
      fits_narrow(std::max({s.reach, s.gone.size + part, s.kept.size + 4096, target.size()}) +
                  plan.x * kUnroll * 2);
  const std::int64_t groups =
      (s.kept.size + (plan.columns ? plan.x : plan.y) - 1) / (plan.columns ? plan.x : plan.y);
  auto word = [](auto v) { return static_cast<std::uint64_t>(v); };
  Key key{2,
          word(op) | word(kernel) << 16 | word(map.compute) << 20 | word(narrow) << 24 |
              word(plan.columns) << 25 | word(s.count) << 26 | map.key << 32,
          word(plan.x) | word(plan.y) << 16 | word(kept_rank) << 32 | word(gone_rank) << 36 |
              word(map.numbers.size()) << 40 | word(target.elem()) << 56,
          0};
  for (int k = 0; k < s.count; ++k)
    key[3] |= word(map.arrays[static_cast<std::size_t>(k)]->elem()) << (5 * k);
  Call call(device);
  call.array(target);
  for (const NDArray* a : map.arrays) call.array(*a);
  call.integer(groups).integer(plan.parts).integer(part).integer(s.kept.size);
  call.integer(s.gone.size);
  for (const Group* g : {&s.kept, &s.gone}) {
    for (std::int64_t v : g->shape) call.integer(v);
    for (int k = 0; k < s.count; ++k) {
      for (std::int64_t v : g->steps[k]) call.integer(v);
    }
  }
  for (const Scalar& number : map.numbers) call.number(number, map.compute);
  call.run(key, [&] {
    Builder p(narrow);
    ir::Buffer result = p.buffer("out", target.elem());
    std::vector<ir::Buffer> in;
    for (int k = 0; k < s.count; ++k)
      in.push_back(p.buffer(cat("a", k), map.arrays[static_cast<std::size_t>(k)]->elem()));
    Expr group_count = p.integer("groups"), parts = p.integer("parts"), length = p.integer("part"),
         kept_size = p.integer("kept"), gone_size = p.integer("gone");
    std::vector<Expr> kept = p.integers("k", kept_rank);
    std::vector<std::vector<Expr>> kept_steps, gone_steps;
    for (int k = 0; k < s.count; ++k)
      kept_steps.push_back(p.integers(cat("ks", k, "_"), kept_rank));
    std::vector<Expr> gone = p.integers("g", gone_rank);
    for (int k = 0; k < s.count; ++k)
      gone_steps.push_back(p.integers(cat("gs", k, "_"), gone_rank));
    std::vector<Expr> numbers;
    for (std::size_t k = 0; k < map.numbers.size(); ++k)
      numbers.push_back(p.number(cat("c", k), map.compute));
    const DType type = dtype_of(kernel);
    // Points along the reduction, and the others of the block.
    const std::int64_t along = plan.columns ? plan.y : plan.x,
                       across = plan.columns ? plan.x : plan.y;
    ir::Buffer acc = local("acc", type, kUnroll);
    ir::Buffer tree = shared("tree", type, {across, along});
    Combine combine = [&](const Expr& a, const Expr& b) { return reduce_value(op, a, b); };
    auto body = [&](const Expr& group, const Expr& which, const Expr& tx, const Expr& ty) {
      const Expr& lane = plan.columns ? ty : tx;
      const Expr& row = plan.columns ? tx : ty;
      Expr k = group * p.at(across) + row;
      std::vector<ir::Var> base;
      for (int i = 0; i < s.count; ++i) base.push_back(p.var(cat("base", i)));
      ir::Var begin = p.var("begin"), end = p.var("end");
      auto take = [&](const Expr& i, const Expr& slot) {
        std::vector<Expr> at = positions(i, gone, gone_steps), loads;
        for (std::size_t a = 0; a < in.size(); ++a)
          loads.push_back(ir::load(in[a], {Expr(base[a]) + at[a]}));
        Expr v = convert_value(map.value(loads, numbers), kernel);
        return ir::store(acc, combine(ir::load(acc, {slot}), v), {slot});
      };
      std::vector<Stmt> steps;
      for (std::int64_t u = 0; u < kUnroll; ++u)
        steps.push_back(ir::store(acc, reduce_identity(op, kernel), {p.at(u)}));
      Expr sweep = p.at(along * kUnroll);
      ir::Var whole = p.var("whole");
      std::vector<Stmt> inner;
      ir::Var q = p.var("q"), r = p.var("r");
      for (std::int64_t u = 0; u < kUnroll; ++u)
        inner.push_back(take(Expr(begin) + Expr(q) * sweep + p.at(u * along) + lane, p.at(u)));
      Stmt main = ir::make_for(q, p.at(0), whole, ir::seq(std::move(inner)));
      Expr at = Expr(begin) + Expr(whole) * sweep + Expr(r) * p.at(along) + lane;
      Stmt rest =
          ir::make_for(r, p.at(0), p.at(kUnroll), ir::if_then(ir::lt(at, end), take(at, p.at(0))));
      Stmt sums =
          ir::let_stmt(whole, ir::div(Expr(end) - Expr(begin), sweep), ir::seq({main, rest}));
      sums = ir::let_stmt(end, ir::min(Expr(begin) + length, gone_size), sums);
      sums = ir::let_stmt(begin, which * length, sums);
      std::vector<Expr> starts = positions(k, kept, kept_steps);
      for (std::size_t i = base.size(); i-- > 0;) sums = ir::let_stmt(base[i], starts[i], sums);
      steps.push_back(ir::if_then(ir::lt(k, kept_size), sums));
      // Joined step by step: a combination may name its operands several times.
      for (std::int64_t half = kUnroll / 2; half >= 1; half /= 2) {
        for (std::int64_t u = 0; u < half; ++u)
          steps.push_back(ir::store(
              acc, combine(ir::load(acc, {p.at(u)}), ir::load(acc, {p.at(u + half)})), {p.at(u)}));
      }
      steps.push_back(
          join_points(p, tree, row, lane, along, ir::load(acc, {p.at(0)}), combine, acc, p.at(0)));
      Expr to = which * kept_size + k;
      steps.push_back(ir::if_then(
          ir::logical_and(ir::eq(lane, p.at(0)), ir::lt(k, kept_size)),
          ir::store(result, convert_value(ir::load(acc, {p.at(0)}), target.elem()), {to})));
      return ir::allocate(tree, ir::allocate(acc, ir::seq(std::move(steps))));
    };
    return p.finish(p.bound("blockIdx.x", group_count, [&](const Expr& group) {
      return p.bound("blockIdx.y", parts, [&](const Expr& which) {
        return p.bound("threadIdx.x", p.at(plan.x), [&](const Expr& tx) {
          return p.bound("threadIdx.y", p.at(plan.y),
                         [&](const Expr& ty) { return body(group, which, tx, ty); });
        });
      });
    }));
  });
  if (plan.parts > 1) grid_reduce(op, kernel, out.reshape(Dims{s.kept.size}), target, 1);
}

}  // namespace weft::device
