// SPDX-License-Identifier: Apache-2.0
#include "weft/array/reduce_program.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "weft/array/collapse.h"
#include "weft/array/device_kernel.h"
#include "weft/array/nest.h"
#include "weft/array/program_cache.h"
#include "weft/array/row_ir.h"
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

constexpr std::size_t kMostInputs = 3;
constexpr int kFewOrder = 5;
constexpr std::int64_t kFar = 4096;  // the expected distance of what does not lie side by side

/// One group of axes, merged, with the steps of every input.
struct AxisGroup {
  Dims shape;
  std::vector<Dims> steps;
  std::int64_t size = 1;

  /// The smallest step of the innermost axis that moves at all.
  std::int64_t inner() const {
    std::int64_t least = INT64_MAX;
    for (const Dims& s : steps) {
      const std::int64_t step = std::abs(s[s.size() - 1]);
      if (step != 0) least = std::min(least, step);
    }
    return least;
  }
  /// Whether every input moves by one along the innermost axis.
  bool unit() const {
    return std::all_of(steps.begin(), steps.end(),
                       [](const Dims& s) { return s[s.size() - 1] == 1; });
  }
};

/// What the program of a reduction is specialised on.
struct Specialisation {
  bool narrow = false;     // positions fit 32 bits
  bool kept_unit = false;  // neighbouring results read neighbouring elements
  bool term_unit = false;  // neighbouring terms are neighbouring elements
  bool columns = false;    // results lie nearer to each other than terms
  int kept_rank = 1, term_rank = 1;
  int kept_order = 0, term_order = 0;  // sizes are at most 2 to the power of these
};

int order_of(std::int64_t n) {
  return static_cast<int>(
      std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(1, n) - 1)));
}

/// The program under construction: buffers, then extents, then steps.
class Writer {
 public:
  Writer(const ReductionProgram& p, const Specialisation& s)
      : program_(p), s_(s), index_(s.narrow ? dtypes::int32 : dtypes::int64) {}

  ir::PrimFunc write() {
    std::vector<ir::Buffer> inputs;
    for (std::size_t i = 0; i < program_.inputs.size(); ++i)
      inputs.push_back(buffer(cat("a", i), program_.inputs[i].dtype()));
    const Var results = scalar("m"), terms = scalar("n");
    const Var row = ir::make_var("row", index_), term = ir::make_var("term", index_);
    std::vector<Expr> at(inputs.size());
    place(at, row, "k", s_.kept_rank, s_.kept_unit, s_.columns);
    place(at, term, "t", s_.term_rank, s_.term_unit, !s_.columns);
    Exprs elements;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      elements.push_back(ir::load(inputs[i], {at[i]}));
    const Exprs sources = program_.terms(elements, ir::cast(dtypes::int64, term));
    std::vector<DType> types;
    for (const Expr& e : sources) types.push_back(e->dtype);
    const ir::Reducer reducer = program_.reducer(types);
    std::vector<ir::Buffer> outputs, own;
    for (std::size_t c = 0; c < types.size(); ++c) {
      const bool wanted = program_.outputs[c].handle() != nullptr;
      outputs.push_back(wanted ? buffer(cat("out", c), types[c], results)
                               : ir::make_buffer(cat("other", c), types[c], {results}));
      if (!wanted) own.push_back(outputs.back());
    }
    return finish(results, terms, row, term, sources, *reducer, outputs, own);
  }

 private:
  ir::Buffer buffer(const std::string& name, DType type, const Expr& extent = nullptr) {
    auto b =
        ir::edit(ir::make_buffer(name, type, {extent ? extent : Expr(ir::make_var("n_" + name))}));
    b->align = type.total_bytes();
    buffers_.push_back(ir::buffer_param(b));
    return b;
  }
  Var scalar(const std::string& name) {
    const Var v = ir::make_var(name, index_);
    scalars_.push_back({v, nullptr});
    return v;
  }
  /// Adds the position of `linear` among the axes `prefix`0... to each input's.
  void place(std::vector<Expr>& at, const Var& linear, const std::string& prefix, int rank,
             bool unit, bool near) {
    std::vector<Expr> coordinates(static_cast<std::size_t>(rank));
    Expr rest = linear;
    for (int i = rank; i-- > 0;) {
      const Expr extent = scalar(cat(prefix, i));
      coordinates[static_cast<std::size_t>(i)] = i > 0 ? ir::floormod(rest, extent) : rest;
      if (i > 0) rest = ir::floordiv(rest, extent);
    }
    for (std::size_t a = 0; a < at.size(); ++a) {
      for (int i = 0; i < rank; ++i) {
        const bool innermost = i + 1 == rank;
        const std::string name = cat(prefix, "s", a, "_", i);
        const Expr step = scalar(name);
        if (innermost) hints_[name] = near ? 1 : kFar;
        const Expr term = coordinates[static_cast<std::size_t>(i)] *
                          (innermost && unit ? ir::make_int(1, index_) : step);
        at[a] = at[a] ? at[a] + term : term;
      }
    }
  }
  ir::PrimFunc finish(const Var& results, const Var& terms, const Var& row, const Var& term,
                      const Exprs& sources, const ir::ReducerNode& reducer,
                      const std::vector<ir::Buffer>& outputs, const std::vector<ir::Buffer>& own) {
    auto block = make_ref<ir::BlockNode>();
    block->id = ir::fresh_block_id();
    block->name = "reduce";
    const Expr zero = ir::make_int(0, index_);
    block->iters.push_back({row, {zero, results}, ir::IterKind::spatial});
    block->iters.push_back({term, {zero, terms}, ir::IterKind::reduce});
    std::vector<ir::Stmt> starts;
    Exprs held;
    for (std::size_t c = 0; c < outputs.size(); ++c) {
      starts.push_back(ir::store(outputs[c], reducer.identity[c], {row}));
      held.push_back(ir::load(outputs[c], {row}));
    }
    block->init = ir::seq(std::move(starts));
    block->body = ir::store_joined(reducer, outputs, held, sources, {row});
    ir::AccessRegions found = ir::detect_block_regions(*block);
    block->reads = std::move(found.reads);
    block->writes = std::move(found.writes);
    const Var i = ir::make_var("i", index_), k = ir::make_var("k", index_);
    ir::Stmt body = ir::block_realize({i, k}, ir::make_bool(true), block);
    body = ir::make_for(i, zero, results, ir::make_for(k, zero, terms, body));
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
  std::vector<ir::Param> buffers_, scalars_;
  std::map<std::string, std::int64_t> hints_;
};

}  // namespace

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
  collapse_axes(kept.shape, kept.steps);
  collapse_axes(gone.shape, gone.steps);
  Specialisation s;
  // Room for what rounding up to whole groups of threads adds.
  s.narrow = device::fits_narrow(2 * std::max({reach, kept.size, gone.size}) + (1 << 24));
  s.kept_unit = kept.unit();
  s.term_unit = gone.unit();
  s.columns = kept.size > 1 && kept.inner() < gone.inner();
  s.kept_rank = kept.shape.size();
  s.term_rank = gone.shape.size();
  // The fallback cannot take tuples of symbolic extents, so few elements take the rule's smallest
  // shape.
  s.kept_order = std::max(kFewOrder, order_of(kept.size));
  s.term_order = std::max(kFewOrder, order_of(gone.size));
  std::int64_t elems[kMostInputs] = {-1, -1, -1};
  for (std::size_t a = 0; a < program.inputs.size(); ++a)
    elems[a] = static_cast<std::int64_t>(program.inputs[a].elem());
  const ProgramKey key(program.operation, {program.variant, elems[0], elems[1], elems[2], s.narrow,
                                           s.kept_unit, s.term_unit, s.columns, s.kept_rank,
                                           s.term_rank, s.kept_order, s.term_order});
  const Ref<Device>& device = program.inputs[0].device();
  ProgramCall call(device);
  for (const NDArray& a : program.inputs) call.array(a);
  for (const NDArray& o : program.outputs) {
    if (o.handle()) call.array(o);
  }
  call.integer(kept.size).integer(gone.size);
  for (const AxisGroup* group : {&kept, &gone}) {
    for (int i = group->shape.size(); i-- > 0;) call.integer(group->shape[i]);
    for (const Dims& steps : group->steps) {
      for (std::int64_t step : steps) call.integer(step);
    }
  }
  call.run(key, [&] { return Writer(program, s).write(); });
}

namespace {

/// A value whose order as an integer is that of the elements, NaN at the end that wins.
Expr ordered(const Expr& x, bool largest) {
  const DType type = x->dtype;
  if (!type.is_float()) {
    const bool wide = type.bits == 64 || type == dtypes::uint32;
    return wide ? x : ir::cast(dtypes::int32, x);
  }
  const bool wide = type == dtypes::float64;
  const DType word = wide ? dtypes::int64 : dtypes::int32;
  const Expr real = wide ? x : ir::cast(dtypes::float32, x);
  const Expr bits = ir::call_typed(word, "reinterpret", {real});
  const Expr magnitude = ir::max_value(word);  // every bit but the sign's
  const Expr turned = ir::call(
      "bitwise_and",
      {ir::call("shift_right", {bits, ir::make_int(type.bits == 64 ? 63 : 31, word)}), magnitude});
  const Expr key = ir::select(ir::eq(real, ir::make_const(0, real->dtype)), ir::make_int(0, word),
                              ir::call("bitwise_xor", {bits, turned}));
  return ir::select(ir::call("isnan", {real}), largest ? ir::max_value(word) : ir::min_value(word),
                    key);
}

}  // namespace

void arg_reduce_program(bool largest, const NDArray& out, const NDArray& x, std::uint64_t mask) {
  ReductionProgram p;
  p.operation = "arg_reduce";
  p.variant = largest;
  p.inputs = {x};
  p.shape = x.shape();
  p.mask = mask;
  p.terms = [&](const Exprs& elements, const Expr& position) {
    return Exprs{position, ordered(elements[0], largest)};
  };
  p.reducer = [&](const std::vector<DType>& types) {
    return ir::standard_reducer(largest ? "argmax" : "argmin", types);
  };
  p.outputs = {out, NDArray{}};
  run_reduction(p);
}

}  // namespace weft
