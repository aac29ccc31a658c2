// SPDX-License-Identifier: Apache-2.0
// A stage as operations on descriptors.
#include "weft/targets/wse/emit_csl_vector.h"

#include <algorithm>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::wse {

using namespace ir;

namespace {

// Cycles of a point of a scalar loop, and of each operation in it.
constexpr double kScalarPoint = 30, kScalarNode = 4;
constexpr std::size_t kMostSegments = 27, kMostDimensions = 4, kMostIterators = 8;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/// Decides the conditions that hold everywhere or nowhere in the analyzer's ranges.
class Decide final : public Rewriter {
 public:
  explicit Decide(const arith::Analyzer& at) : at_(at) {}
  Expr rewrite(const Expr& e) override {
    Expr condition, yes, no;
    if (const auto* s = as<SelectNode>(e)) {
      condition = s->condition, yes = s->a, no = s->b;
    } else if (const auto* c = as<CallNode>(e); c && c->op == "if_then_else") {
      condition = c->args[0], yes = c->args[1], no = c->args[2];
    }
    if (condition) {
      if (at_.prove(condition)) return rewrite(yes);
      if (at_.prove(logical_not(condition))) return rewrite(no);
    }
    return Rewriter::rewrite(e);
  }

 private:
  const arith::Analyzer& at_;
};

}  // namespace

double cycles_per_element(const std::string& name) {
  static const std::map<std::string, int> kRates = {
#define WEFT_WSE_BULK(name, d, s, n, k, w2, w3) {#name, w2},
#include "weft/targets/wse/bulk.def"
#undef WEFT_WSE_BULK
  };
  return 1.0 / kRates.at(name);
}

VectorStage::VectorStage(CslEmitter& emitter, const Stage& stage)
    : e_(emitter),
      s_(stage),
      dtype_(emitter.p_.buffers[stage.output.buffer].dtype),
      value_(without_border_conditions(emitter.p_, stage, stage.value)) {}

void VectorStage::collect_cuts(const Expr& e) {
  std::vector<Var> vars;
  for (const StageIter& i : s_.iters) vars.push_back(i.var);
  for_each_expr(e, [&](const Expr& x) {
    switch (x->kind) {
      case ExprKind::lt:
      case ExprKind::le:
      case ExprKind::gt:
      case ExprKind::ge:
      case ExprKind::eq:
      case ExprKind::ne: break;
      default: return;
    }
    const auto* b = as<BinaryNode>(x);
    if (!b->a->dtype.is_int()) return;
    auto l = arith::detect_linear(make_binary(ExprKind::sub, b->a, b->b), vars);
    if (!l) return;
    Expr simple = arith::simplify(l->base);
    const auto* base = as<IntImmNode>(simple);
    std::size_t which = vars.size();
    for (std::size_t k = 0; k < vars.size(); ++k) {
      if (l->coeffs[k] == 0) continue;
      if (which != vars.size()) return;  // of two iterators: not decided by ranges
      which = k;
    }
    if (!base || which == vars.size()) return;
    // c * v + base crosses 0 between these two.
    const std::int64_t c = l->coeffs[which], at = floor_div(-base->value, c);
    const bool exact = -base->value % c == 0;
    const std::int64_t up = exact ? at : at + 1;  // the first one at or beyond the crossing
    const bool equal = x->kind == ExprKind::eq || x->kind == ExprKind::ne;
    const bool strict = x->kind == ExprKind::lt || x->kind == ExprKind::gt;
    const bool rising = x->kind == ExprKind::ge || x->kind == ExprKind::gt;  // of c * v + base
    const bool beyond = strict == (rising == (c > 0));  // the crossing itself is on the lower side
    std::vector<std::int64_t> cuts{beyond ? at + 1 : up};
    if (equal) cuts = {up, at + 1};
    for (std::int64_t cut : cuts) {
      auto& list = segments_[which];
      if (cut <= 0 || cut >= s_.iters[which].extent) continue;
      for (std::size_t k = 0; k < list.size(); ++k) {
        if (list[k].begin < cut && cut < list[k].end) {
          list.insert(list.begin() + static_cast<std::ptrdiff_t>(k) + 1, {cut, list[k].end});
          list[k].end = cut;
          break;
        }
      }
    }
  });
}

bool VectorStage::find_segments() {
  segments_.clear();
  for (const StageIter& i : s_.iters) segments_.push_back({{0, i.extent}});
  auto conditions = [&](const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* s = as<SelectNode>(x)) collect_cuts(s->condition);
      if (const auto* c = as<CallNode>(x); c && c->op == "if_then_else") collect_cuts(c->args[0]);
    });
  };
  conditions(value_);
  if (s_.guard) collect_cuts(s_.guard);
  std::size_t all = 1;
  for (const auto& list : segments_) all *= list.size();
  return all <= kMostSegments;
}

bool VectorStage::invariant(const Expr& e) const {
  bool same = true;
  for_each_expr(e, [&](const Expr& x) {
    for (std::size_t k : now_->over) same &= x.get() != s_.iters[k].var.get();
  });
  return same;
}

std::int64_t VectorStage::count() const {
  std::int64_t n = 1;
  for (std::size_t k : now_->over) n *= s_.iters[k].chunk;
  return n;
}

void VectorStage::add(std::string name, std::vector<Value> operands) {
  now_->steps.push_back({std::move(name), std::move(operands), count()});
}

std::string VectorStage::operation(const char* kind, DType t) const {
  if (t == dtypes::float32) return cat("f", kind, "s");
  if (t == dtypes::float16) return cat("f", kind, "h");
  const bool bits16 = t.bits == 16 && !t.is_bool();
  for (std::string_view known : {"add", "sub", "and", "or", "xor"}) {
    if (bits16 && known == kind) return cat(kind, "16");
  }
  if (std::string_view(kind) == "mov") return t.bits == 16 ? "mov16" : "mov32";
  return {};
}

std::optional<VectorStage::Value> VectorStage::temporary() {
  const std::string name = e_.temporary(temporaries_, count(), dtype_);
  if (name.empty()) return std::nullopt;
  ++temporaries_;
  return Value{false, name, "0", csl_type(dtype_), 0, true};
}

/// The descriptor of an access, moved to the point of the loops around it.
std::optional<VectorStage::Value> VectorStage::descriptor(const LocalArray& a,
                                                          const std::vector<std::int64_t>& at) {
  struct Dimension {
    std::int64_t extent, stride;
  };
  std::vector<Dimension> dims;
  for (std::size_t k : now_->over) {
    const std::int64_t stride = e_.factor_of(s_, a, k), extent = s_.iters[k].chunk;
    if (stride < 0) return std::nullopt;
    if (!dims.empty() && dims.back().stride == stride * extent)
      dims.back() = {dims.back().extent * extent, stride};
    else dims.push_back({extent, stride});
  }
  if (dims.size() > kMostDimensions) return std::nullopt;
  std::string name = a.name, variables, extents, place;
  for (std::size_t k = 0; k < dims.size(); ++k) {
    const char variable = static_cast<char>('i' + k);
    name += cat("_", dims[k].extent, "by", dims[k].stride);
    variables += cat(k ? ", " : "", std::string(1, variable));
    extents += cat(k ? ", " : "", dims[k].extent);
    place += cat(k ? " + " : "", std::string(1, variable), " * ", dims[k].stride);
  }
  name += "_d";
  now_->declarations[name] = cat("const ", name, " = @get_dsd(",
                                 dims.size() > 1 ? "mem4d" : "mem1d", "_dsd, .{ .tensor_access = |",
                                 variables, "|{", extents, "} -> ", a.name, "[", place, "] });\n");
  return Value{false,
               name,
               e_.index(s_, a, at, now_->over),
               csl_type(e_.p_.buffers[a.buffer].dtype),
               dims.back().stride,
               false};
}

/// A source: a scalar or a descriptor, of a temporary if need be; `to` may serve as one.
std::optional<VectorStage::Value> VectorStage::operand(const Expr& e, const Value* to) {
  if (invariant(e)) return Value{true, e_.expr(s_, e), {}, {}, 0, false};
  if (const auto* l = as<LoadNode>(e)) {
    std::vector<std::int64_t> at;
    const LocalArray* a = find_local(e_.p_, s_, *l, &at);
    if (!a) return std::nullopt;
    for (std::size_t d = 0; d < l->indices.size(); ++d) {
      if (a->along_data(d) && !invariant(l->indices[d])) return std::nullopt;
    }
    auto out = descriptor(*a, at);
    if (out) out->offset += e_.data_offset(s_, *a, *l);
    return out;
  }
  if (e->dtype.bits != dtype_.bits || e->dtype.is_bool()) return std::nullopt;
  if (to && (to->temporary || !reads_output_)) {  // nobody needs what it holds until the end
    if (!compute(e, *to)) return std::nullopt;
    return *to;
  }
  auto t = temporary();
  if (!t || !compute(e, *t)) return std::nullopt;
  return t;
}

/// x + y * scalar in one operation.
bool VectorStage::fused(const Expr& e, const Value& to) {
  const auto* sum = as<BinaryNode>(e);
  for (auto [x, y] : {std::pair{sum->a, sum->b}, std::pair{sum->b, sum->a}}) {
    const auto* product = as<BinaryNode>(y);
    if (!product || product->kind != ExprKind::mul || invariant(y)) continue;
    for (auto [vector, factor] :
         {std::pair{product->a, product->b}, std::pair{product->b, product->a}}) {
      if (!invariant(factor) || invariant(x)) continue;
      auto a = operand(x, &to);
      auto b = a ? operand(vector) : std::nullopt;
      if (!a || !b) return false;
      add(operation("mac", e->dtype), {to, *a, *b, *operand(factor)});
      return true;
    }
  }
  return false;
}

/// Steps that put the value into the descriptor `to`; their temporaries are free again afterwards.
bool VectorStage::compute(const Expr& e, const Value& to) {
  const int held = temporaries_;
  const bool good = compute_into(e, to);
  temporaries_ = held;
  return good;
}

bool VectorStage::compute_into(const Expr& e, const Value& to) {
  if (invariant(e) || as<LoadNode>(e)) {
    auto v = operand(e);
    if (!v) return false;
    add(operation("mov", e->dtype), {to, *v});
    return true;
  }
  const char* kind = nullptr;
  switch (e->kind) {
    case ExprKind::add: kind = "add"; break;
    case ExprKind::sub: kind = "sub"; break;
    case ExprKind::mul: kind = "mul"; break;
    case ExprKind::call: {
      const auto* c = as<CallNode>(e);
      if (c->op == "abs" && e->dtype.is_float()) {
        auto v = operand(c->args[0]);
        if (!v || operation("abs", e->dtype).empty()) return false;
        add(operation("abs", e->dtype), {to, *v});
        return true;
      }
      if (c->args.size() != 2) return false;
      kind = c->op == "bitwise_and"   ? "and"
             : c->op == "bitwise_or"  ? "or"
             : c->op == "bitwise_xor" ? "xor"
                                      : nullptr;
      break;
    }
    case ExprKind::cast: {
      const Expr& from = as<CastNode>(e)->value;
      const bool widens = e->dtype == dtypes::float32 && from->dtype == dtypes::float16,
                 narrows = e->dtype == dtypes::float16 && from->dtype == dtypes::float32;
      const auto* l = as<LoadNode>(from);
      if (!l || (!widens && !narrows)) return false;
      auto v = operand(from);
      if (!v) return false;
      add(widens ? "fh2s" : "fs2h", {to, *v});
      return true;
    }
    default: break;
  }
  if (!kind || operation(kind, e->dtype).empty()) return false;
  if (e->kind == ExprKind::add && e->dtype.is_float()) {
    const std::size_t steps = now_->steps.size();
    if (fused(e, to)) return true;
    if (now_->steps.size() != steps) return false;
  }
  Expr a, b;
  if (const auto* n = as<BinaryNode>(e)) a = n->a, b = n->b;
  else a = as<CallNode>(e)->args[0], b = as<CallNode>(e)->args[1];
  auto x = operand(a, &to);
  if (!x) return false;
  auto y = operand(b);
  if (!y) return false;
  add(operation(kind, e->dtype), {to, *x, *y});
  return true;
}

/// to = to op value.
bool VectorStage::accumulate(const Expr& e, const Value& to) {
  const char* kind = s_.combine == Combine::add   ? "add"
                     : s_.combine == Combine::mul ? "mul"
                                                  : nullptr;
  if (!kind || operation(kind, dtype_).empty()) return false;
  const auto* m = as<BinaryNode>(e);
  if (s_.combine == Combine::add && dtype_ == dtypes::float32 && m && m->kind == ExprKind::mul) {
    // Products of 16-bit numbers into a 32-bit sum.
    auto half = [](const Expr& x) -> Expr {
      const auto* c = as<CastNode>(x);
      return c && c->value->dtype == dtypes::float16 ? c->value : Expr();
    };
    for (auto [vector, factor] : {std::pair{half(m->a), half(m->b)}, {half(m->b), half(m->a)}}) {
      if (!vector || !factor || !as<LoadNode>(vector) || invariant(vector) || !invariant(factor))
        continue;
      auto v = operand(vector);
      if (!v) return false;
      add("fmachs", {to, to, *v, *operand(factor)});
      return true;
    }
  }
  if (s_.combine == Combine::add && dtype_.is_float() && m && m->kind == ExprKind::mul) {
    for (auto [vector, factor] : {std::pair{m->a, m->b}, std::pair{m->b, m->a}}) {
      if (!invariant(factor) || invariant(vector)) continue;
      auto v = operand(vector);
      if (!v) return false;
      add(operation("mac", dtype_), {to, to, *v, *operand(factor)});
      return true;
    }
  }
  auto v = operand(e);
  if (!v) return false;
  add(operation(kind, dtype_), {to, to, *v});
  return true;
}

/// The steps for one choice of iterators, with their cost; absent when some part has none.
std::optional<VectorStage::Plan> VectorStage::plan(const std::vector<std::size_t>& over,
                                                   const Expr& value) {
  Plan p;
  p.over = over;
  now_ = &p;
  temporaries_ = 0;
  for (std::size_t k : over) p.folds |= s_.iters[k].reduce;
  for (std::size_t k = 0; k < s_.iters.size(); ++k) {
    if (std::find(over.begin(), over.end(), k) == over.end()) p.loops *= s_.iters[k].chunk;
  }
  const std::vector<std::int64_t> at = e_.output_offset(s_);
  if (p.folds) {  // all elements into one: products first, then their sum
    if (s_.combine != Combine::add || !dtype_.is_float()) return std::nullopt;
    auto v = operand(value);
    if (!v || v->scalar) return std::nullopt;
    const std::string place = cat(s_.output.name, "[", e_.index(s_, s_.output, at), "]");
    add(operation("add", dtype_),
        {Value{true, cat("&", place), {}, {}, 0, false}, Value{true, place, {}, {}, 0, false}, *v});
  } else {
    auto to = descriptor(s_.output, at);
    if (!to) return std::nullopt;
    for (std::size_t k : over) {
      if (e_.factor_of(s_, s_.output, k) == 0) return std::nullopt;
    }
    const bool good = s_.combine == Combine::none ? compute(value, *to) : accumulate(value, *to);
    if (!good) return std::nullopt;
  }
  for (const Step& step : p.steps)
    p.cost += kVectorStart + static_cast<double>(step.elements) * cycles_per_element(step.name);
  p.cost *= static_cast<double>(p.loops);
  return p;
}

/// Sets of iterators that one descriptor can run over.
std::vector<std::vector<std::size_t>> VectorStage::choices() const {
  std::vector<std::size_t> spatial, reduce;
  for (std::size_t k = 0; k < s_.iters.size(); ++k) {
    if (s_.iters[k].chunk > 1) (s_.iters[k].reduce ? reduce : spatial).push_back(k);
  }
  // What is cut or ends early has a loop around it, unless it is the only one of the descriptor.
  auto fixed = [&](std::size_t k) {
    return segments_[k].size() == 1 &&
           (!s_.iters[k].reduce || s_.iters[k].partition == Partition::none);
  };
  std::vector<std::vector<std::size_t>> out;
  for (const auto& from : {spatial, reduce}) {
    if (from.size() > kMostIterators) continue;
    for (std::size_t set = 1; set < (std::size_t{1} << from.size()); ++set) {
      std::vector<std::size_t> over;
      for (std::size_t k = 0; k < from.size(); ++k) {
        if (set >> k & 1) over.push_back(from[k]);
      }
      if (over.size() > 1 && !std::all_of(over.begin(), over.end(), fixed)) continue;
      out.push_back(std::move(over));
    }
  }
  return out;
}

bool VectorStage::write(std::string& out) {
  for_each_expr(value_, [&](const Expr& x) {
    std::vector<std::int64_t> at;
    const auto* l = as<LoadNode>(x);
    const LocalArray* a = l ? find_local(e_.p_, s_, *l, &at) : nullptr;
    reads_output_ |= a && a->name == s_.output.name;
  });
  if (s_.panels || dtype_.is_bool() || !find_segments()) return false;
  std::size_t nodes = 0;
  for_each_expr(value_, [&](const Expr&) { ++nodes; });
  double points = 1;
  for (const StageIter& i : s_.iters) points *= static_cast<double>(i.chunk);
  // The segments share one choice: that of the least cost where no condition is left.
  std::vector<std::vector<IterRange>> boxes{{}};
  for (const auto& list : segments_) {
    std::vector<std::vector<IterRange>> next;
    for (const auto& box : boxes) {
      for (const IterRange& seg : list) {
        next.push_back(box);
        next.back().push_back(seg);
      }
    }
    boxes = std::move(next);
  }
  struct Part {
    std::vector<IterRange> box;
    Plan plan;
  };
  std::vector<Part> best;
  double best_cost = points * (kScalarPoint + kScalarNode * static_cast<double>(nodes));
  for (const auto& over : choices()) {
    std::vector<Part> parts;
    double cost = 0;
    bool good = true;
    for (const auto& box : boxes) {
      arith::Analyzer here;
      double share = 1;
      for (std::size_t k = 0; k < box.size(); ++k) {
        const Var& v = s_.iters[k].var;
        here.bind(
            v, {make_int(box[k].begin, v->dtype), make_int(box[k].end - box[k].begin, v->dtype)});
        share *= static_cast<double>(box[k].end - box[k].begin) /
                 static_cast<double>(s_.iters[k].extent);
      }
      if (s_.guard) {
        if (here.prove(logical_not(s_.guard))) continue;
        if (!here.prove(s_.guard)) {
          good = false;
          break;
        }
      }
      auto p = plan(over, Decide(here).rewrite(value_));
      if (!p) {
        good = false;
        break;
      }
      cost += p->cost * share;
      parts.push_back({box, std::move(*p)});
    }
    if (!good || cost >= best_cost) continue;
    best_cost = cost;
    best = std::move(parts);
  }
  if (best.empty()) return false;
  for (const Part& part : best) {
    for (const auto& [name, text] : part.plan.declarations) e_.dsds_ += text;
    out += text_of(part.plan, part.box);
  }
  return true;
}

std::string VectorStage::text_of(const Plan& p, const std::vector<IterRange>& box) {
  std::string out, indent = "  ", ends;
  std::string length, moved;  // of a descriptor over a part of its iterator
  for (std::size_t k = 0; k < s_.iters.size(); ++k) {
    const StageIter& i = s_.iters[k];
    const bool vector = std::find(p.over.begin(), p.over.end(), k) != p.over.end();
    const bool whole = segments_[k].size() == 1;
    if (i.extent == 1 || (i.chunk == 1 && whole && i.partition == Partition::none)) continue;
    std::string from = "0", to;
    if (whole) {
      const bool ends_early = i.reduce && i.partition != Partition::none;
      to = ends_early ? cat("n_", i.name) : cat(i.chunk);
      if (vector && !ends_early) continue;
    } else if (i.partition == Partition::none) {
      from = cat(box[k].begin);
      to = cat(box[k].end);
    } else {
      const std::string clamp =
          e_.helper("within",
                    "fn within(v: i32, n: i32) i32 { if (v < 0) { return 0; } if (v > "
                    "n) { return n; } return v; }\n");
      if (box[k].begin) from = cat(clamp, "(", box[k].begin, " - lo_", i.name, ", ", i.chunk, ")");
      to = cat(clamp, "(", box[k].end, " - lo_", i.name, ", ", i.chunk, ")");
    }
    if (!vector && whole && to == "1") {
      if (ends.empty()) {  // a block of its own: the stage's next part may name the iterator again
        out += cat(indent, "{\n");
        ends = cat(indent, "}\n");
        indent += "  ";
      }
      out += cat(indent, "const ", i.name, ": i32 = 0;\n");
      continue;
    }
    if (!vector) {
      out += cat(indent, "for (@range(i32, ", from == "0" ? "" : cat("@as(i32, ", from, "), "), to,
                 from == "0" ? "" : ", 1", ")) |", i.name, "| {\n");
      ends = cat(indent, "}\n", ends);
      indent += "  ";
      continue;
    }
    out += cat(indent, "{\n");
    ends = cat(indent, "}\n", ends);
    indent += "  ";
    length = cat("count_", i.name);
    if (from != "0") {
      moved = cat("from_", i.name);
      out += cat(indent, "const ", moved, ": i32 = ", from, ";\n");
    }
    out += cat(indent, "const ", length, ": u16 = @as(u16, ", to,
               moved.empty() ? "" : cat(" - ", moved), ");\n");
  }
  for (const Step& step : p.steps) {
    std::string list;
    for (const Value& v : step.operands) {
      std::string text = v.text;
      if (!v.scalar) {
        std::string offset = v.offset;
        if (v.stride && !moved.empty()) {
          const std::string by = v.stride == 1 ? moved : cat(moved, " * ", v.stride);
          offset = offset == "0" ? by : cat(offset, " + ", by);
        }
        if (offset != "0")
          text = cat("@increment_dsd_offset(", text, ", @as(i16, ", offset, "), ", v.type, ")");
        if (!length.empty()) text = cat("@set_dsd_length(", text, ", ", length, ")");
      }
      list += cat(list.empty() ? "" : ", ", text);
    }
    out += cat(indent, "@", step.name, "(", list, ");\n");
  }
  return out + ends;
}

}  // namespace weft::wse
