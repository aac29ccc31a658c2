// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/reduce_program.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "weft/array/collapse.h"
#include "weft/array/nest.h"
#include "weft/devices/kernel.h"
#include "weft/devices/program_cache.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/build.h"
#include "weft/ir/reducers.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/regions.h"
#include "weft/rules/facts.h"

namespace weft {

using ir::Expr;
using ir::Exprs;
using ir::Var;

namespace {

constexpr std::size_t kMostInputs = 11;
constexpr int kFewOrder = 2;
constexpr std::int64_t kFar = 4096;  // the expected distance of what does not lie side by side
constexpr std::int64_t kVectorBytes = 16, kMostLanes = 8;

/// How an input moves along the innermost axis of a group.
enum class Stride : std::uint8_t { none, one, any };

/// One group of axes, merged, with the steps of every input.
struct AxisGroup {
  Dims shape;
  std::vector<Dims> steps;
  std::int64_t size = 1;

  std::int64_t step(std::size_t input) const {
    return steps[input][static_cast<int>(shape.size()) - 1];
  }
  /// A step of 0 is part of the program only beside an input that moves: rules see what streams.
  Stride stride(std::size_t input) const {
    if (step(input) == 1) return Stride::one;
    bool moves = false;
    for (std::size_t a = 0; a < steps.size(); ++a) moves = moves || step(a) != 0;
    return step(input) == 0 && moves ? Stride::none : Stride::any;
  }
  bool moves(std::size_t input) const {
    return std::any_of(steps[input].begin(), steps[input].end(), [](auto s) { return s != 0; });
  }
  /// The smallest step of the innermost axis among the inputs that move along `other` too: what
  /// stands still there is read again and again, and matters less.
  std::int64_t inner(const AxisGroup& other) const {
    std::int64_t least = INT64_MAX, of_any = INT64_MAX;
    for (std::size_t a = 0; a < steps.size(); ++a) {
      if (step(a) == 0) continue;
      of_any = std::min(of_any, std::abs(step(a)));
      if (other.moves(a)) least = std::min(least, std::abs(step(a)));
    }
    return least == INT64_MAX ? of_any : least;
  }
};

/// What the program of a reduction is specialised on.
struct Specialisation {
  bool narrow = false;   // positions fit 32 bits
  bool columns = false;  // results lie nearer to each other than terms
  /// Elements along the innermost axis that are read at once: its extent and the other steps of
  /// the inputs that move along it are multiples, and so are the addresses.
  std::int64_t vector = 1;
  std::vector<Stride> kept, gone;  // of every input, along the innermost axes
  int kept_rank = 1, term_rank = 1;
  int kept_order = 0, term_order = 0;  // sizes are at most 2 to the power of these
};

/// Axes in the order of memory, that of the first input that moves: terms may come in any order.
void sort_axes(AxisGroup& group) {
  const int rank = group.shape.size();
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
    for (const Dims& steps : group.steps) {
      const std::int64_t a = std::abs(steps[i]), b = std::abs(steps[j]);
      if (a != b) return a > b;
    }
    return false;
  });
  const AxisGroup before = group;
  for (int i = 0; i < rank; ++i) {
    const int from = order[static_cast<std::size_t>(i)];
    group.shape[i] = before.shape[from];
    for (std::size_t a = 0; a < group.steps.size(); ++a) group.steps[a][i] = before.steps[a][from];
  }
}

int order_of(std::int64_t n) {
  return static_cast<int>(
      std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(1, n) - 1)));
}

/// The program under construction: buffers, then numbers, extents and steps.
class ReductionWriter {
 public:
  ReductionWriter(const ReductionProgram& p, const Specialisation& s)
      : program_(p), s_(s), index_(s.narrow ? dtypes::int32 : dtypes::int64) {}

  ir::PrimFunc write() {
    std::vector<ir::Buffer> inputs;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      inputs.push_back(
          buffer(cat("a", i), program_.inputs[i].dtype(), {ir::make_var(cat("n_a", i))}));
    }
    std::vector<ir::Buffer> beside;
    for (std::size_t i = 0; i < program_.beside.size(); ++i)
      beside.push_back(
          buffer(cat("b", i), program_.beside[i].dtype(), {ir::make_var(cat("n_b", i))}));
    results_ = scalar("m");
    terms_ = scalar("n");
    row_ = ir::make_var("row", index_);
    term_ = ir::make_var("term", index_);
    lane_ = ir::make_var("lane", index_);
    const Axes kept = axes("k", s_.kept_rank, s_.kept, s_.columns),
               gone = axes("t", s_.term_rank, s_.gone, !s_.columns);
    auto element = [&](std::size_t i, const Expr& term, const Expr& lane) {
      const Expr row_part = place(kept, i, row_, lane_), term_part = place(gone, i, term, lane);
      const Expr at = row_part && term_part ? row_part + term_part
                      : row_part            ? row_part
                                            : term_part;
      return ir::load(inputs[i], {at ? at : ir::make_int(0, index_)});
    };
    Exprs elements, numbers;
    for (std::size_t i = 0; i < inputs.size(); ++i) elements.push_back(element(i, term_, lane_));
    for (std::size_t i = 0; i < program_.numbers.size(); ++i) {
      const Var v = ir::make_var(cat("c", i), dtype_of(program_.compute));
      scalars_.push_back({v, nullptr});
      numbers.push_back(v);
    }
    Expr position = term_;
    if (s_.vector > 1 && !s_.columns) position = position * s_.vector + Expr(lane_);
    const Exprs sources = program_.terms(elements, numbers, ir::cast(dtypes::int64, position));
    std::vector<DType> types;
    for (const Expr& e : sources) types.push_back(e->dtype);
    const ir::Reducer reducer = program_.reducer(types);
    Exprs extents{results_};
    at_ = {row_};
    if (across()) {
      extents.push_back(ir::make_int(s_.vector, index_));
      at_.push_back(lane_);
    }
    std::vector<ir::Buffer> own, components, outputs;
    Exprs held;
    for (std::size_t c = 0; c < types.size(); ++c) {
      const bool wanted = !program_.finish && program_.outputs[c].handle() != nullptr;
      components.push_back(wanted ? buffer(cat("out", c), types[c], extents)
                                  : ir::make_buffer(cat("part", c), types[c], extents));
      if (!wanted) own.push_back(components.back());
      held.push_back(ir::load(components[c], at_));
    }
    std::vector<ir::Stmt> body{reduction(sources, *reducer, components, held)};
    if (program_.finish) {
      FinishedReduction f{
          held, numbers, ir::cast(dtypes::int64, terms_), ir::cast(dtypes::int64, row_), {}, {}};
      const bool lanes = s_.vector > 1 && !s_.columns;  // of terms
      if (lanes) f.count = f.count * s_.vector;
      const Expr number = across() ? row_ * s_.vector + Expr(lane_) : Expr(row_);
      f.result = ir::cast(dtypes::int64, number);
      for (const ir::Buffer& b : beside) f.beside.push_back(ir::load(b, {number}));
      f.element = [&](std::size_t i, const Expr& term) {
        const Expr at = ir::cast(index_, term);
        const Expr vector = ir::make_int(s_.vector, index_);
        return lanes ? element(i, ir::floordiv(at, vector), ir::floormod(at, vector))
                     : element(i, at, lane_);
      };
      Exprs values = program_.finish(f);
      std::vector<ir::Stmt> stores;
      if (program_.flag.handle()) {
        const ir::Buffer flag = buffer("flag", dtypes::int32, {ir::make_int(1, index_)});
        stores.push_back(ir::if_then(values.back(), ir::store(flag, ir::make_int(1, dtypes::int32),
                                                              {ir::make_int(0, index_)})));
        values.pop_back();
      }
      Exprs shape = extents, to = at_;
      const std::size_t share =
          program_.interleaved ? values.size() / program_.outputs.size() : std::size_t{1};
      auto whole = [&](std::size_t v) {
        return ir::make_int(static_cast<std::int64_t>(v), index_);
      };
      if (program_.interleaved) shape.push_back(whole(share)), to.emplace_back();
      ir::Buffer out;
      for (std::size_t c = 0; c < values.size(); ++c) {
        if (c % share == 0) out = buffer(cat("out", c / share), values[c]->dtype, shape);
        if (program_.interleaved) to.back() = whole(c % share);
        stores.push_back(ir::store(out, values[c], to));
      }
      body.push_back(nest("finish", false, nullptr, ir::seq(std::move(stores))));
    }
    return function(ir::seq(std::move(body)), own);
  }

 private:
  /// Whether an input moves along the axis whose neighbours are read at once.
  bool moves(std::size_t input) const {
    return (s_.columns ? s_.kept : s_.gone)[input] == Stride::one;
  }
  bool across() const { return s_.vector > 1 && s_.columns; }
  ir::Buffer buffer(const std::string& name, DType type, const Exprs& shape) {
    auto b = ir::edit(ir::make_buffer(name, type, shape));
    b->align = type.total_bytes();
    buffers_.push_back(ir::buffer_param(b));
    return b;
  }
  Var scalar(const std::string& name) {
    const Var v = ir::make_var(name, index_);
    scalars_.push_back({v, nullptr});
    return v;
  }
  /// One group of axes: its extents, and the steps of every input (null: it does not move).
  struct Axes {
    Exprs extents;
    std::vector<Exprs> steps;
    std::vector<bool> by_lanes;  // an input's innermost step is one, along the axis of vectors
  };
  /// In vectors the innermost extent, and the other steps of what moves along it, count whole ones.
  Axes axes(const std::string& prefix, int rank, const std::vector<Stride>& strides, bool near) {
    Axes out;
    out.extents.resize(static_cast<std::size_t>(rank));
    for (int i = rank; i-- > 0;) {
      // At least one, so that quotients may be computed ahead of conditions.
      out.extents[static_cast<std::size_t>(i)] =
          ir::max(scalar(cat(prefix, i)), ir::make_int(1, index_));
    }
    for (std::size_t a = 0; a < strides.size(); ++a) {
      const std::int64_t unit = moves(a) ? s_.vector : 1;
      Exprs steps;
      for (int i = 0; i < rank; ++i) {
        const bool innermost = i + 1 == rank;
        const std::string name = cat(prefix, "s", a, "_", i);
        const Var step = scalar(name);
        if (innermost) hints_[name] = near ? 1 : kFar;
        if (!innermost || strides[a] == Stride::any) steps.push_back(Expr(step) * unit);
        else if (strides[a] == Stride::one) steps.push_back(ir::make_int(unit, index_));
        else steps.emplace_back();
      }
      out.steps.push_back(std::move(steps));
      out.by_lanes.push_back(strides[a] == Stride::one && near && unit > 1);
    }
    return out;
  }
  /// Where an input lies at `linear`, which counts through the axes; null: it does not move.
  Expr place(const Axes& axes, std::size_t input, const Expr& linear, const Expr& lane) const {
    Expr at, rest = linear;
    for (std::size_t i = axes.extents.size(); i-- > 0;) {
      const Expr& extent = axes.extents[i];
      const Expr x = i > 0 ? ir::floormod(rest, extent) : rest;
      if (i > 0) rest = ir::floordiv(rest, extent);
      if (!axes.steps[input][i]) continue;
      Expr term = x * axes.steps[input][i];
      if (axes.by_lanes[input] && i + 1 == axes.extents.size()) term = term + lane;
      at = at ? term + at : term;
    }
    return at;
  }
  /// A block over the results, and over the terms where `reduces`.
  ir::Stmt nest(const std::string& name, bool reduces, ir::Stmt init, ir::Stmt body) {
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = name;
    const Expr zero = ir::make_int(0, index_);
    Exprs values;
    std::vector<std::pair<Var, Expr>> loops;
    auto axis = [&](const Var& v, const char* loop, const Expr& extent, ir::IterKind kind) {
      block->iters.push_back({v, {zero, extent}, kind});
      loops.emplace_back(ir::make_var(loop, index_), extent);
      values.push_back(loops.back().first);
    };
    const Expr lanes = ir::make_int(s_.vector, index_);
    axis(row_, "i", results_, ir::IterKind::spatial);
    if (across()) axis(lane_, "v", lanes, ir::IterKind::spatial);
    if (reduces) axis(term_, "k", terms_, ir::IterKind::reduce);
    if (reduces && s_.vector > 1 && !across()) axis(lane_, "v", lanes, ir::IterKind::reduce);
    block->init = std::move(init);
    block->body = std::move(body);
    if (reduces) block->annotations = ir::with_annotation({}, ir::kCommutative, true);
    ir::AccessRegions found = ir::detect_block_regions(*block);
    block->reads = std::move(found.reads);
    block->writes = std::move(found.writes);
    ir::Stmt out = ir::block_realize(values, ir::make_bool(true), block);
    for (std::size_t i = loops.size(); i-- > 0;)
      out = ir::make_for(loops[i].first, zero, loops[i].second, out);
    return reduces ? out : ir::deep_copy(out);  // iterators are the block's own
  }
  ir::Stmt reduction(const Exprs& sources, const ir::ReducerNode& reducer,
                     const std::vector<ir::Buffer>& components, const Exprs& held) {
    std::vector<ir::Stmt> starts;
    for (std::size_t c = 0; c < components.size(); ++c)
      starts.push_back(ir::store(components[c], reducer.identity[c], at_));
    return nest("reduce", true, ir::seq(std::move(starts)),
                ir::store_joined(reducer, components, held, sources, at_));
  }
  ir::PrimFunc function(const ir::Stmt& body, const std::vector<ir::Buffer>& own) {
    std::vector<ir::Param> params = buffers_;
    params.insert(params.end(), scalars_.begin(), scalars_.end());
    Json hints = Json::object();
    hints["m"] = std::int64_t{1} << s_.kept_order;
    hints["n"] = std::int64_t{1} << s_.term_order;
    for (const auto& [name, value] : hints_) hints[name] = value;
    return ir::make_func("main", std::move(params), ir::root_block(body, own),
                         ir::with_annotation({}, rules::kSizeHints, std::move(hints)));
  }

  const ReductionProgram& program_;
  const Specialisation& s_;
  DType index_;
  Var results_, terms_, row_, term_, lane_;
  Exprs at_;  // where a result lies
  std::vector<ir::Param> buffers_, scalars_;
  std::map<std::string, std::int64_t> hints_;
};

/// How many neighbours along the innermost axis of `inner` can be read at once.
std::int64_t vector_of(const ReductionProgram& program, const AxisGroup& inner,
                       const AxisGroup& other) {
  int widest = 1;
  bool some = false;
  for (const NDArray& a : program.inputs) widest = std::max(widest, elem_bytes(a.elem()));
  const std::int64_t lanes = std::min(kMostLanes, kVectorBytes / widest);
  const int last = inner.shape.size() - 1;
  if (lanes < 2 || inner.shape[last] % lanes != 0 || inner.shape[last] == lanes) return 1;
  for (std::size_t a = 0; a < program.inputs.size(); ++a) {
    if (inner.stride(a) == Stride::any) return 1;
    if (inner.stride(a) == Stride::none) continue;
    some = true;
    const NDArray& x = program.inputs[a];
    if (!begins_at(x, lanes * elem_bytes(x.elem()))) return 1;
    for (int i = 0; i < last; ++i) {
      if (inner.steps[a][i] % lanes != 0) return 1;
    }
    for (std::int64_t step : other.steps[a]) {
      if (step % lanes != 0) return 1;
    }
  }
  return some ? lanes : 1;
}

}  // namespace

ir::Reducer sums_reducer(const std::vector<DType>& types) {
  std::vector<Var> left, right;
  Exprs sums, zeros;
  for (const DType& t : types) {
    left.push_back(ir::make_var("x", t));
    right.push_back(ir::make_var("y", t));
    sums.push_back(Expr(left.back()) + Expr(right.back()));
    zeros.push_back(ir::make_const(0, t));
  }
  return ir::make_reducer("sums", left, right, std::move(sums), std::move(zeros));
}

void run_reduction(const ReductionProgram& program) {
  WEFT_CHECK(!program.inputs.empty() && program.inputs.size() <= kMostInputs, "a reduction of ",
             program.inputs.size(), " arrays");
  AxisGroup kept, gone;
  kept.steps.resize(program.inputs.size());
  gone.steps.resize(program.inputs.size());
  std::int64_t reach = 0;
  for (std::size_t a = 0; a < program.inputs.size(); ++a) {
    const Dims steps = broadcast_strides(program.inputs[a], program.shape);
    std::int64_t most = 0;
    for (int i = 0; i < program.shape.size(); ++i) {
      AxisGroup& group = program.mask >> i & 1 ? gone : kept;
      if (a == 0) group.shape.push_back(program.shape[i]), group.size *= program.shape[i];
      group.steps[a].push_back(steps[i]);
      most += std::abs(steps[i]) * program.shape[i];
    }
    reach = std::max(reach, most);
  }
  if (!program.ordered) sort_axes(gone);
  collapse_axes(kept.shape, kept.steps);
  collapse_axes(gone.shape, gone.steps);
  Specialisation s;
  // Room for what rounding up to whole groups of threads adds.
  s.narrow = device::fits_narrow(2 * std::max({reach, kept.size, gone.size}) + (1 << 24));
  s.columns = kept.size > 1 && kept.inner(gone) < gone.inner(kept);
  s.vector = vector_of(program, s.columns ? kept : gone, s.columns ? gone : kept);
  for (std::size_t a = 0; a < program.inputs.size(); ++a) {
    s.kept.push_back(kept.stride(a));
    s.gone.push_back(gone.stride(a));
  }
  s.kept_rank = kept.shape.size();
  s.term_rank = gone.shape.size();
  if (s.vector > 1) {
    AxisGroup& inner = s.columns ? kept : gone;
    inner.shape[inner.shape.size() - 1] /= s.vector;
    inner.size /= s.vector;
  }
  s.kept_order = order_of(kept.size);
  s.term_order = std::max(kFewOrder, order_of(gone.size));
  std::int64_t kept_strides = 0, term_strides = 0;
  for (std::size_t a = 0; a < program.inputs.size(); ++a) {
    kept_strides = kept_strides * 3 + static_cast<std::int64_t>(s.kept[a]);
    term_strides = term_strides * 3 + static_cast<std::int64_t>(s.gone[a]);
  }
  ProgramKey key(program.operation, {program.variant, static_cast<std::int64_t>(program.compute),
                                     s.narrow, s.vector, s.columns, kept_strides, term_strides,
                                     s.kept_rank, s.term_rank, s.kept_order, s.term_order});
  for (const NDArray& a : program.inputs) key.add(static_cast<std::int64_t>(a.elem()));
  for (const NDArray& b : program.beside) key.add(static_cast<std::int64_t>(b.elem()));
  for (const NDArray& o : program.outputs)
    key.add(o.handle() ? static_cast<std::int64_t>(o.elem()) : -1);
  if (program.flag.handle()) key.add(1);
  const Ref<Device>& device = program.inputs[0].device();
  ProgramCall call(device);
  for (const NDArray& a : program.inputs) call.array(a);
  for (const NDArray& b : program.beside) call.array(b);
  if (program.flag.handle()) call.array(program.flag);
  for (const NDArray& o : program.outputs) {
    if (o.handle()) call.array(o);
  }
  call.integer(kept.size).integer(gone.size);
  for (const AxisGroup* group : {&kept, &gone}) {
    const bool vectors = (group == &kept) == s.columns;
    for (int i = group->shape.size(); i-- > 0;) call.integer(group->shape[i]);
    for (std::size_t a = 0; a < group->steps.size(); ++a) {
      const Dims& steps = group->steps[a];
      const bool moves = (s.columns ? s.kept : s.gone)[a] == Stride::one;
      for (int i = 0; i < steps.size(); ++i) {
        const bool innermost = vectors && i + 1 == steps.size();
        call.integer(moves && !innermost ? steps[i] / s.vector : steps[i]);
      }
    }
  }
  for (const Scalar& n : program.numbers) call.number(n, program.compute);
  call.run(key, [&] { return ReductionWriter(program, s).write(); });
}

}  // namespace weft
