// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/lower.h"

#include <algorithm>
#include <optional>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/stages/conditions.h"
#include "weft/stages/update.h"
#include "weft/targets/wse/lowering.h"

namespace weft::wse {

using namespace ir;

void refuse(std::string_view slug, std::string message, std::string help) {
  Error e(ErrorKind::lower, cat("wse.lower.", slug), std::move(message));
  if (!help.empty()) e.help(std::move(help));
  throw e;
}

namespace {
/// What is left of a reduction over no point: the init of every element. Absent where loops that
/// are no reduction's have no point either.
std::optional<stages::Leaf> init_alone(const stages::Leaf& leaf) {
  if (!leaf.block->init) return std::nullopt;
  stages::Leaf out = leaf;
  out.loops.clear(), out.iter_values.clear(), out.conditions.clear();
  auto block = edit(leaf.block);
  block->body = block->init, block->init = nullptr;
  block->iters.clear();
  for (std::size_t i = 0; i < leaf.block->iters.size(); ++i) {
    if (leaf.block->iters[i].kind == IterKind::reduce) continue;
    block->iters.push_back(leaf.block->iters[i]);
    out.iter_values.push_back(leaf.iter_values[i]);
  }
  out.block = Block(block);
  std::vector<const VarNode*> gone;
  for (std::size_t l = 0; l < leaf.loops.size(); ++l) {
    const ForNode* loop = leaf.loops[l];
    const VarNode* v = loop->var.get();
    const bool kept = std::any_of(out.iter_values.begin(), out.iter_values.end(),
                                  [&](const Expr& e) { return uses_var(e, v); });
    const bool reduces = std::any_of(leaf.iter_values.begin(), leaf.iter_values.end(),
                                     [&](const Expr& e) { return uses_var(e, v); });
    const bool around = l < leaf.around || !reduces;
    if (!kept && around && is_const_int_value(loop->extent, 0)) return std::nullopt;
    if (kept) out.loops.push_back(loop);
    else gone.push_back(v);
  }
  for (const Expr& condition : leaf.conditions) {
    for (const Expr& c : conjuncts(condition)) {
      if (std::none_of(gone.begin(), gone.end(), [&](const VarNode* v) { return uses_var(c, v); }))
        out.conditions.push_back(c);
    }
  }
  return out;
}
}  // namespace

StageProgram Lowering::run() {
  for (const Param& p : f_->params) {
    if (!p.buffer)
      refuse("scalar", cat("parameter ", p.var->name, " is a scalar; only tensors are accepted"),
             "pass it as an array of one element");
    add_buffer(p.buffer, true);
  }
  std::vector<Buffer> temporaries;
  std::vector<stages::Leaf> leaves = stages::collect_leaves(f_->body, &temporaries);
  for (const Buffer& b : temporaries) add_buffer(b, false);
  const std::vector<stages::BoundAxis> axes{{"pe.x", out_.width}, {"pe.y", out_.height}};
  for (const stages::Leaf& leaf : leaves) {
    const stages::Visits visits = stages::visits_of(leaf, axes);
    if (!visits.never) {
      stage(leaf, visits);
    } else if (const std::optional<stages::Leaf> init = init_alone(leaf)) {
      const stages::Visits elements = stages::visits_of(*init, axes);
      if (!elements.never) stage(*init, elements);
    }
  }
  std::vector<Stage> apart = out_.stages;
  keep_in_place(kGatherBytes);
  if (bytes_used() > free_bytes()) {  // rather through the memory beside the wafer than not at all
    out_.stages = std::move(apart);
    keep_in_place(0);
  }
  if (std::int64_t bytes = bytes_used(); bytes > free_bytes()) {
    refuse("capacity",
           cat("every PE would need ", bytes, " bytes for its parts of the buffers; ", free_bytes(),
               " of its 49152 are free"),
           cat("use more PEs than ", out_.width, " x ", out_.height));
  }
  for (Stage& s : out_.stages) order_inputs(s);
  find_takes();
  out_.scratch_bytes = std::min(kScratchBytes, free_bytes() - bytes_used());
  return std::move(out_);
}

std::int64_t Lowering::bytes_used() const {
  std::int64_t bytes = 0;
  for (const Stage& s : out_.stages) {
    auto count = [&](const LocalArray& a) {
      if (!a.kept) bytes += a.size() * out_.buffers[a.buffer].dtype.bytes();
    };
    for (const LocalArray& a : s.inputs) count(a);
    count(s.output);
    bytes += panel_bytes(s);
  }
  for (DType t : {dtypes::float32, dtypes::float16, dtypes::int32, dtypes::int16, dtypes::uint32,
                  dtypes::uint16})
    bytes += out_.gathered(t) * t.bytes();
  return bytes;
}

void Lowering::add_buffer(const Buffer& b, bool param) {
  if (!(b->dtype.is_scalar() &&
        (b->dtype == dtypes::float32 || b->dtype == dtypes::float16 || b->dtype == dtypes::int32 ||
         b->dtype == dtypes::int16 || b->dtype == dtypes::uint32 || b->dtype == dtypes::uint16))) {
    refuse("dtype",
           cat("buffer ", b->name, " has elements of ", to_string(b->dtype),
               "; a PE's arrays hold 16- and 32-bit numbers"),
           "use float32, float16, int32, int16, uint32 or uint16");
  }
  if (!b->strides.empty() ||
      (b->elem_offset && !arith::Analyzer().prove_equal(b->elem_offset, make_int(0))))
    refuse("strides", cat("buffer ", b->name,
                          " states strides or an offset; only compact buffers are accepted"));
  if (!b->spatial_axes.empty())
    refuse("layout",
           cat("buffer ", b->name, " is distributed over \"", b->spatial_axes[0],
               "\" by a layout of its own"),
           "leave out spatial_axes; the target distributes buffers itself");
  StageBuffer s;
  s.name = b->name;
  s.buffer = b;
  s.dtype = b->dtype;
  s.param = param;
  for (const Expr& e : b->shape)
    s.shape.push_back(stages::constant_of(e, cat("an extent of ", b->name)));
  out_.buffers.push_back(std::move(s));
}

std::size_t Lowering::buffer_index(const Buffer& b) const {
  for (std::size_t i = 0; i < out_.buffers.size(); ++i) {
    if (out_.buffers[i].buffer.get() == b.get()) return i;
  }
  refuse("buffer",
         cat("buffer ", b->name, " is neither a parameter nor allocated by the function"));
}

bool Lowering::conditions(Stage& s, const Exprs& all) {
  bool partial = false;
  auto add = [](Expr& to, const Expr& c) { to = to ? logical_and(to, c) : c; };
  VarMap first;  // where the init is stored: each reduction iterator at its minimum
  for (const StageIter& i : s.iters) {
    if (i.reduce) first[i.var.get()] = make_int(0, i.var->dtype);
  }
  arith::Analyzer points;
  for (const StageIter& i : s.iters)
    points.bind(i.var, {make_int(0, i.var->dtype), make_int(i.extent, i.var->dtype)});
  for (const Expr& c : all) {
    add(s.guard, c);
    const Expr at_first = points.simplify(substitute(c, first));
    const bool reduces = std::any_of(s.iters.begin(), s.iters.end(), [&](const StageIter& i) {
      return i.reduce && uses_var(c, i.var.get());
    });
    if (!reduces) add(s.init_guard, c);
    partial |= !reduces || !s.init;
    if (reduces && s.init && !points.prove(at_first))
      refuse("condition",
             cat("block ", s.name, " runs under the condition ", print(c),
                 ", which can skip the first step of its reduction, and with it the init"),
             "put the condition into the value: if_then_else(condition, value, 0)");
  }
  return partial;
}

void Lowering::check_own_reads(const Stage& s, const StoreNode& t) {
  arith::Analyzer points;
  for (const StageIter& i : s.iters)
    points.bind(i.var, {make_int(0, i.var->dtype), make_int(i.extent, i.var->dtype)});
  auto apart = [&](const LoadNode& l) {
    for (std::size_t d = 0; d < t.indices.size(); ++d) {
      arith::Bounds r = points.bounds(l.indices[d]), w = points.bounds(t.indices[d]);
      if (r.max < w.min || w.max < r.min) return true;
    }
    return false;
  };
  for (const Expr& e : {s.value, s.init, s.guard}) {
    if (!e) continue;
    for_each_expr(e, [&](const Expr& x) {
      const auto* l = as<LoadNode>(x);
      if (!l || l->buffer.get() != t.buffer.get() || stages::reads_element(t, x) || apart(*l))
        return;
      refuse("recurrence",
             cat("block ", s.name, " reads ", print(x), " and writes ", t.buffer->name,
                 " at other indices; elements that are computed side by side do not see each "
                 "other"),
             "store into another buffer");
    });
  }
  // Points that store into one element must not differ.
  for (const StageIter& i : s.iters) {
    if (i.reduce || i.extent == 1) continue;
    const VarNode* v = i.var.get();
    if (std::any_of(t.indices.begin(), t.indices.end(),
                    [&](const Expr& e) { return uses_var(e, v); }))
      continue;
    if (s.combine != Combine::none || uses_var(s.value, v) || (s.guard && uses_var(s.guard, v)))
      refuse("overwrite",
             cat("block ", s.name, " stores into the same elements of ", t.buffer->name,
                 " for every value of its spatial iterator ", i.var->name),
             "make it a reduction iterator");
  }
}

void Lowering::stage(const stages::Leaf& leaf, const stages::Visits& visits) {
  const BlockNode* block = leaf.block.get();
  Stage s;
  s.name = block->name;
  std::string prefix = cat("s", out_.stages.size(), "_");
  s.label = cat(prefix, "out");
  for (const IterVar& i : block->iters) {
    StageIter it;
    it.var = i.var;
    it.name = cat("i", s.iters.size());
    it.min = stages::constant_of(i.dom.min, cat("the start of iterator ", i.var->name));
    it.extent = it.chunk =
        stages::constant_of(i.dom.extent, cat("the extent of iterator ", i.var->name));
    it.reduce = i.kind == IterKind::reduce;
    if (i.kind != IterKind::spatial && !it.reduce)
      refuse("iterator", cat("iterator ", i.var->name, " of block ", block->name,
                             " is neither spatial nor a reduction"));
    if (it.min != 0)
      refuse("iterator",
             cat("iterator ", i.var->name, " begins at ", it.min, "; it must begin at 0"));
    s.iters.push_back(std::move(it));
  }
  const stages::Update update = stages::read_update(leaf.block);
  const StoreNode* store = update.store;
  const Expr& body_condition = update.condition;  // says nothing of the init
  if (update.init) s.init = update.init->value;
  s.combine = update.combine;
  s.value = update.value;
  if (update.reduces && s.combine == Combine::none) {
    refuse("reduction",
           cat("block ", block->name, " reduces, but its store is not ", store->buffer->name,
               "[...] = ", store->buffer->name, "[...] op value"),
           "op may be +, *, min or max");
  }
  bool partial = conditions(s, visits.conditions);
  if (body_condition) {
    partial |= !s.init;
    s.guard = s.guard ? logical_and(s.guard, body_condition) : body_condition;
  }
  bool reads_own = false;
  for_each_expr(s.value, [&](const Expr& x) { reads_own |= stages::reads_element(*store, x); });
  if (s.init && s.combine == Combine::none && (reads_own || body_condition)) {
    refuse("init",
           cat("block ", block->name,
               " has an init and then stores what is no "
               "combination of the element with a value"),
           "make the init a block of its own");
  }
  s.keeps = partial || (s.combine != Combine::none && !s.init);
  check_own_reads(s, *store);
  // What a chain has left in the first column is worked on there.
  bool after_chain = false;
  auto follows = [&](const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      const auto* l = as<LoadNode>(x);
      if (!l) return;
      for (const Stage& before : out_.stages) {
        after_chain |= out_.buffers[before.output.buffer].buffer.get() == l->buffer.get() &&
                       (before.reduced == Partition::x || before.after_chain);
      }
    });
  };
  follows(s.value);
  if (s.guard) follows(s.guard);
  s.after_chain = after_chain;
  const std::vector<BoundPart> parts = parts_of(leaf, visits, out_.width);
  if (!parts.empty()) place(s, parts);
  else if (!place_panels(s)) place(s, after_chain);
  Buffer target = store->buffer;
  Exprs places = store->indices;
  if (!linear(s, places)) target = view(s, target, &places, true);
  access(s, target, places, cat(prefix, "out"), &s.output);
  for (std::size_t d = 0; d < places.size(); ++d) {
    for (std::size_t k = 0; k < s.iters.size(); ++k) {
      if (s.iters[k].reduce && s.output.coef[d][k])
        refuse("reduction", cat("block ", block->name,
                                " writes to a place that depends on its reduction iterator ",
                                s.iters[k].var->name));
    }
  }
  auto reads = [&](const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = as<LoadNode>(x))
        access(s, l->buffer, l->indices, cat(prefix, "in"), nullptr);
    });
  };
  for (Expr* e : {&s.value, &s.init, &s.guard, &s.init_guard}) {
    if (!*e) continue;
    *e = with_views(s, *e);
    reads(*e);
  }
  out_.stages.push_back(std::move(s));
}

std::int64_t StageProgram::gathered(DType dtype) const {
  std::int64_t n = 0;
  for (const Stage& s : stages) {
    for (const LocalArray& a : s.inputs) {
      if (a.move.kind == Redistribution::Kind::gather && !a.move.here &&
          buffers[a.buffer].dtype == dtype)
        n = std::max(n, a.move.gathered());
    }
  }
  return n;
}

StageProgram lower_stages(const PrimFunc& f, std::int32_t width, std::int32_t height) {
  return Lowering(f, width, height).run();
}

}  // namespace weft::wse
