// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/inline_calls.h"

#include <utility>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/attributes.h"
#include "weft/ir/build.h"
#include "weft/ir/instantiate.h"
#include "weft/ir/interpret.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/regions.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_private.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/index_values.h"
#include "weft/pass/lower_init.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::string_view kContract = "contract";

const CallNode* function_call(const Expr& e) {
  const auto* c = as<CallNode>(e);
  return c && !find_intrinsic(c->op) ? c : nullptr;
}

bool calls_functions(const PrimFunc& f) {
  bool found = false;
  for_each_expr(f->body, [&](const Expr& e) { found = found || function_call(e); });
  return found;
}

Expr product(const Exprs& extents) {
  Expr out = make_int(1);
  for (const Expr& e : extents) out = out * e;
  return out;
}

/// Row-major strides of a compact buffer of these extents.
Exprs compact_strides(const Exprs& shape) {
  Exprs out(shape.size());
  Expr step = make_int(1);
  for (std::size_t d = shape.size(); d-- > 0;) out[d] = step, step = step * shape[d];
  return out;
}

/// Where a parameter lies in the caller's buffer.
struct Part {
  Buffer source;
  Exprs start;  // aligned: indices of its first element
  bool aligned = false;
  Expr offset;  // otherwise: elements before its first one
};

/// Accesses of parameters become accesses of the caller's buffers.
class Redirect final : public Rewriter {
 public:
  explicit Redirect(const std::unordered_map<const BufferNode*, Part>& parts) : parts_(parts) {}

  BufferRegion rewrite_region(const BufferRegion& region) override {
    BufferRegion r = Rewriter::rewrite_region(region);
    const Part* part = find(r.buffer);
    if (!part) return r;
    if (!part->aligned) return full_region(part->source);
    Exprs mins;
    for (const Range& x : r.region) mins.push_back(x.min);
    mins = place(*part, r.buffer, std::move(mins));
    BufferRegion out{part->source, {}};
    const std::size_t lead = mins.size() - r.region.size();
    for (std::size_t d = 0; d < mins.size(); ++d)
      out.region.push_back({mins[d], d < lead ? make_int(1) : r.region[d - lead].extent});
    return out;
  }
  Block rewrite_block(const Block& block) override {
    for (const MatchBuffer& m : block->match_buffers) exact(m.source);
    return Rewriter::rewrite_block(block);
  }
  Stmt rewrite(const Stmt& s) override {
    if (const auto* c = as<CollectiveNode>(s)) exact(c->dst), exact(c->src);
    return Rewriter::rewrite(s);
  }
  using Rewriter::rewrite;

 protected:
  Expr rewrite_load(const Expr& e) override {
    Expr out = Rewriter::rewrite_load(e);
    const auto* l = as<LoadNode>(out);
    const Part* part = l ? find(l->buffer) : nullptr;
    return part ? load(part->source, place(*part, l->buffer, l->indices)) : out;
  }
  Stmt rewrite_store(const Stmt& s) override {
    Stmt out = Rewriter::rewrite_store(s);
    const auto* t = as<StoreNode>(out);
    const Part* part = find(t->buffer);
    return part ? store(part->source, t->value, place(*part, t->buffer, t->indices)) : out;
  }

 private:
  const Part* find(const Buffer& b) const {
    auto found = parts_.find(b.get());
    return found == parts_.end() ? nullptr : &found->second;
  }
  /// A region whose elements lie elsewhere in another shape is no region of the caller's buffer.
  void exact(const BufferRegion& r) const {
    const Part* part = find(r.buffer);
    if (!part || part->aligned) return;
    throw Error(ErrorKind::lower, "lower.call.region",
                cat("a region of \"", r.buffer->name, "\" is no region of \"", part->source->name,
                    "\", which is passed for it in another shape"))
        .help("pass a buffer whose trailing dimensions are those of the parameter");
  }
  static Exprs place(const Part& part, const Buffer& b, Exprs indices) {
    if (part.aligned) {
      Exprs out = part.start;
      const std::size_t lead = out.size() - indices.size();
      for (std::size_t d = 0; d < indices.size(); ++d) out[lead + d] = out[lead + d] + indices[d];
      return out;
    }
    const Exprs steps = compact_strides(b->shape);
    Expr at = part.offset;
    for (std::size_t d = 0; d < indices.size(); ++d) at = at + indices[d] * steps[d];
    const Exprs& shape = part.source->shape;
    const Exprs strides = compact_strides(shape);
    Exprs out;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      Expr i = floordiv(at, strides[d]);
      out.push_back(d == 0 ? i : floormod(i, shape[d]));
    }
    return out;
  }

  const std::unordered_map<const BufferNode*, Part>& parts_;
};

/// Memory of blocks as statements, so that convert_blocks can remove the blocks.
class AllocateInBlocks final : public Rewriter {
 public:
  Block rewrite_block(const Block& old) override {
    Block block = Rewriter::rewrite_block(old);
    if (block->alloc_buffers.empty()) return block;
    auto copy = edit(block);
    copy->alloc_buffers.clear();
    for (std::size_t i = block->alloc_buffers.size(); i-- > 0;)
      copy->body = allocate(block->alloc_buffers[i], copy->body);
    return copy;
  }
};

Stmt without_blocks(const Stmt& body) {
  PrimFunc f = lower_init(make_func("called", {}, body));
  return convert_blocks(make_func("called", {}, AllocateInBlocks().rewrite(f->body)))->body;
}

/// What a function declares of its own stores, points and roundings. A body that moves into a
/// function which does not declare the same would mean something else there.
void keep_declarations(const PrimFunc& called, const PrimFunc& caller) {
  auto demand = [&](std::string_view key, bool lost, const char* value) {
    if (!lost) return;
    throw Error(ErrorKind::lower, "lower.call.attribute",
                cat("\"", called->name, "\" declares ", key, ", but \"", caller->name,
                    "\", which calls it, does not"))
        .note(
            "the called body stands in place of the call, and attributes hold for a whole function")
        .help(cat("declare it in \"", caller->name, "\", for all of its body: T.func_attr({\"", key,
                  "\": ", value, "})"));
  };
  for (std::string_view key : {kDistinctElements, kPointsTogether})
    demand(key, has_flag(called->attrs, key) && !has_flag(caller->attrs, key), "True");
  auto exact = [](const PrimFunc& f) {
    return find_annotation(f->attrs, kContract) && !has_flag(f->attrs, kContract);
  };
  demand(kContract, exact(called) && !exact(caller), "False");
}

class Inliner;

/// The calls of one function.
class Caller final : public Rewriter {
 public:
  Caller(Inliner& inliner, const PrimFunc& f)
      : inliner_(inliner), function_(f), root_(f->body.get()) {
    const auto* root = as<BlockRealizeNode>(f->body);
    shared_ = root && root->block->iters.empty();
  }
  Stmt rewrite(const Stmt& s) override;
  using Rewriter::rewrite;
  std::vector<Buffer> hoisted;  // memory of called functions, for the root block

 protected:
  Expr rewrite_call(const Expr& e) override {
    if (const CallNode* c = function_call(e)) {
      throw Error(ErrorKind::lower, "lower.call.value",
                  cat("the call of \"", c->op, "\" is part of an expression"))
          .note(cat("functions of a module return nothing: ", print(e)))
          .help("write the result to a buffer of one element, and read that");
    }
    return Rewriter::rewrite_call(e);
  }
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    arith::Analyzer::Scope scope(known_);
    known_.bind(loop->var, Range{loop->min, loop->extent});
    inner_.insert(loop->var.get());
    const bool one = loop->for_kind == ForKind::serial || loop->for_kind == ForKind::unrolled;
    return within(one, [&] { return Rewriter::rewrite_for(s); });
  }
  Stmt rewrite_block_realize(const Stmt& s) override;

 private:
  /// What stands inside a statement, of which one or several points run at a time.
  template <typename Run>
  Stmt within(bool one, const Run& run) {
    const bool before = std::exchange(shared_, shared_ && one);
    Stmt out = run();
    shared_ = before;
    return out;
  }
  Stmt expand(const CallNode* call);
  Part part_of(const Buffer& b, const Exprs& shape, const LoadNode* at, std::vector<Stmt>& checks);

  Inliner& inliner_;
  const PrimFunc function_;
  const StmtNode* root_;
  arith::Analyzer known_;
  std::unordered_set<const VarNode*> inner_;  // variables of loops and lets
  bool shared_;  // whether nothing around runs at several points at a time
  int iterators_ = 0, calls_ = 0;
};

class Inliner {
 public:
  explicit Inliner(const IRModule& m) : module_(m) {}

  PrimFunc function(const std::string& name) {
    if (auto found = done_.find(name); found != done_.end()) return found->second;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_[i] != name) continue;
      std::vector<std::string> round(open_.begin() + static_cast<std::ptrdiff_t>(i), open_.end());
      round.push_back(name);
      throw Error(ErrorKind::lower, "lower.call.recursive", cat("\"", name, "\" calls itself"))
          .note(cat("calls: ", join(round, " -> ")))
          .help("write it as a loop; the target ref interprets recursion");
    }
    PrimFunc f = module_->find(name);
    if (!calls_functions(f)) return done_[name] = f;
    open_.push_back(name);
    Caller caller(*this, f);
    auto out = edit(f);
    out->body = caller.rewrite(f->body);
    if (!caller.hoisted.empty()) {
      const auto* realize = as<BlockRealizeNode>(out->body);
      auto root = edit(realize->block);
      root->alloc_buffers.insert(root->alloc_buffers.end(), caller.hoisted.begin(),
                                 caller.hoisted.end());
      out->body = block_realize(realize->iter_values, realize->predicate, root);
    }
    open_.pop_back();
    return done_[name] = out;
  }

 private:
  const IRModule& module_;
  std::unordered_map<std::string, PrimFunc> done_;
  std::vector<std::string> open_;  // functions that are being rewritten, outermost first
};

Stmt Caller::rewrite(const Stmt& s) {
  switch (s ? s->kind : StmtKind::seq) {
    case StmtKind::evaluate:
      if (const CallNode* call = function_call(as<EvaluateNode>(s)->value)) return expand(call);
      break;
    case StmtKind::let: inner_.insert(as<LetStmtNode>(s)->var.get()); break;
    case StmtKind::launch:
      for (const LaunchAxis& axis : as<LaunchNode>(s)->axes) inner_.insert(axis.var.get());
      [[fallthrough]];
    case StmtKind::async: return within(false, [&] { return Rewriter::rewrite(s); });
    default: break;
  }
  return Rewriter::rewrite(s);
}

Stmt Caller::rewrite_block_realize(const Stmt& s) {
  if (s.get() == root_) return Rewriter::rewrite_block_realize(s);
  const auto* realize = as<BlockRealizeNode>(s);
  const Block& block = realize->block;
  arith::Analyzer::Scope scope(known_);
  for (const IterVar& iter : block->iters) known_.bind(iter.var, iter.dom);
  const int before = calls_, iterators = block->iters.empty() ? 0 : 1;
  iterators_ += iterators;
  Stmt out = within(iterators == 0, [&] { return Rewriter::rewrite_block_realize(s); });
  iterators_ -= iterators;
  if (calls_ == before) return out;
  // The block touches what the called function touches.
  const auto* now = as<BlockRealizeNode>(out);
  auto copy = edit(now->block);
  AccessRegions found = detect_block_regions(*now->block);
  copy->reads = std::move(found.reads), copy->writes = std::move(found.writes);
  return block_realize(now->iter_values, now->predicate, copy);
}

Error misfit(const std::string& function, std::size_t k, std::string text) {
  return Error(ErrorKind::lower, "lower.call.argument",
               cat("argument ", k, " of the call of \"", function, "\" ", std::move(text)));
}

/// A number for a scalar parameter.
Expr scalar_argument(const std::string& function, std::size_t k, DType type, const Expr& given) {
  if (given->dtype == type) return given;
  if (std::int64_t n = 0; is_const_int(given, &n) && type.is_integral() && type.is_scalar()) {
    Expr fits = make_int(n, type);
    if (is_const_int_value(fits, n)) return fits;
  }
  throw misfit(function, k,
               cat("is ", to_string(given->dtype), ", but the parameter is ", to_string(type)))
      .help(cat("convert it: T.", to_string(type), "(value)"));
}

Part Caller::part_of(const Buffer& b, const Exprs& shape, const LoadNode* at,
                     std::vector<Stmt>& checks) {
  Part part{at->buffer, at->indices, false, nullptr};
  const Exprs& around = part.source->shape;
  auto zero = [&](const Expr& e) { return known_.prove_equal(e, make_int(0)); };
  if (shape.size() <= around.size()) {
    const std::size_t lead = around.size() - shape.size();
    part.aligned = true;
    for (std::size_t d = 1; d < shape.size(); ++d) {
      part.aligned = part.aligned && zero(part.start[lead + d]) &&
                     known_.prove_equal(shape[d], around[lead + d]);
    }
    if (!shape.empty())
      part.aligned = part.aligned && known_.prove(le(part.start[lead] + shape[0], around[lead]));
    if (part.aligned) return part;
  }
  const Exprs strides = compact_strides(around);
  for (std::size_t d = 0; d < part.source->strides.size(); ++d) {
    if (known_.prove_equal(part.source->strides[d], strides[d])) continue;
    throw Error(ErrorKind::lower, "lower.call.strides",
                cat("\"", part.source->name, "\", passed for \"", b->name,
                    "\" in another shape, is not known to be compact"))
        .help("pass a buffer whose trailing dimensions are those of the parameter");
  }
  part.offset = make_int(0);
  for (std::size_t d = 0; d < around.size(); ++d)
    part.offset = part.offset + part.start[d] * strides[d];
  const Expr need = product(shape), there = product(around) - part.offset;
  if (known_.prove(le(need, there))) return part;
  const std::string what = cat("\"", b->name, "\" needs ", print(known_.simplify(need)),
                               " elements of \"", part.source->name, "\", but ");
  if (known_.prove(gt(need, there))) {
    throw Error(ErrorKind::verify, "verify.bounds",
                cat(what, "only ", print(known_.simplify(there)), " follow"));
  }
  checks.push_back(assert_stmt(le(need, there), cat(what, "fewer follow")));
  return part;
}

Stmt Caller::expand(const CallNode* call) {
  ++calls_;
  const PrimFunc f = inliner_.function(call->op);
  keep_declarations(f, function_);
  std::vector<std::pair<Var, Expr>> lets;  // what is read from memory is read before the body runs
  auto settled = [&](const Expr& given) {
    Expr e = rewrite(given);
    if (!reads_memory(e)) return e;
    lets.emplace_back(make_var("argument", e->dtype), e);
    inner_.insert(lets.back().first.get());
    return Expr(lets.back().first);
  };
  VarMap vars;
  std::vector<Ref<const LoadNode>> addresses(f->params.size());
  bool outside = true;  // whether the arguments are known outside all loops
  for (std::size_t k = 0; k < f->params.size(); ++k) {
    const Param& p = f->params[k];
    const auto* c = as<CallNode>(call->args[k]);
    const auto* l = c && c->op == "address_of" ? as<LoadNode>(c->args[0]) : nullptr;
    if (bool(l) != bool(p.buffer)) {
      const std::string found =
          l ? std::string("an address") : cat("a value of type ", to_string(call->args[k]->dtype));
      throw misfit(f->name, k,
                   cat("is ", found, ", but \"", l ? p.var->name : p.buffer->name, "\" is a ",
                       l ? "number" : "tensor"));
    }
    if (!l) {
      Expr e = settled(scalar_argument(f->name, k, p.var->dtype, call->args[k]));
      outside = outside && !uses_any(e, inner_);
      vars[p.var.get()] = e;
      continue;
    }
    if (l->buffer->dtype != p.buffer->dtype) {
      throw misfit(f->name, k,
                   cat("holds ", to_string(l->buffer->dtype), ", but \"", p.buffer->name,
                       "\" holds ", to_string(p.buffer->dtype)));
    }
    Exprs indices;
    for (const Expr& e : l->indices) {
      indices.push_back(settled(e));
      outside = outside && !uses_any(indices.back(), inner_);
    }
    addresses[k] = make_ref<const LoadNode>(l->dtype, l->buffer, std::move(indices));
  }
  // Extents, strides and offsets that an argument defines.
  for (std::size_t k = 0; k < f->params.size(); ++k) {
    if (!addresses[k]) continue;
    const Buffer &b = f->params[k].buffer, &source = addresses[k]->buffer;
    bool whole = b->ndim() == source->ndim();
    for (const Expr& e : addresses[k]->indices) whole = whole && is_const_int_value(e, 0);
    const Exprs strides = strides_of(source);
    auto define = [&](const Exprs& list, const Exprs& values, std::string_view what) {
      for (std::size_t d = 0; d < list.size(); ++d) {
        const auto* v = as<VarNode>(list[d]);
        if (!v || vars.count(v)) continue;
        if (!whole) {
          throw misfit(f->name, k,
                       cat("is a part of \"", source->name, "\", which does not define the ", what,
                           " \"", v->name, "\" of \"", b->name, "\""))
              .help("pass a whole buffer of as many dimensions");
        }
        vars[v] = cast(v->dtype, values[d]);
      }
    };
    define(b->shape, source->shape, "extent");
    define(b->strides, strides, "stride");
    if (b->elem_offset) define({b->elem_offset}, {make_int(0)}, "offset");
  }
  std::vector<Stmt> checks;
  std::unordered_map<const BufferNode*, Part> parts;
  BufferMap same;
  std::vector<Buffer> kept;
  for (std::size_t k = 0; k < f->params.size(); ++k) {
    if (!addresses[k]) continue;
    const Buffer& b = f->params[k].buffer;
    auto placed = edit(b);
    for (Expr& e : placed->shape) e = substitute(e, vars);
    Part part = part_of(b, placed->shape, addresses[k].get(), checks);
    const Exprs own = strides_of(part.source), other = compact_strides(placed->shape);
    for (std::size_t d = 0; d < b->strides.size(); ++d) {
      const std::size_t lead =
          part.source->ndim() - (part.aligned ? b->ndim() : part.source->ndim());
      if (known_.prove_equal(substitute(b->strides[d], vars),
                             part.aligned ? own[lead + d] : other[d]))
        continue;
      throw misfit(f->name, k, cat("has other strides than \"", b->name, "\" declares"));
    }
    bool identical = part.aligned && b->ndim() == part.source->ndim();
    for (const Expr& e : part.start) identical = identical && is_const_int_value(e, 0);
    if (identical) {
      same[b.get()] = part.source;
      continue;
    }
    placed->strides.clear(), placed->elem_offset = nullptr;
    same[b.get()] = placed;
    parts.emplace(placed.get(), std::move(part));
    kept.emplace_back(placed);
  }
  Stmt body = Redirect(parts).rewrite(instantiate(f->body, vars, same));
  const auto* realize = as<BlockRealizeNode>(body);
  if (realize && realize->block->iters.empty() && realize->block->match_buffers.empty()) {
    // One memory does for all iterations, unless they run side by side.
    std::vector<Buffer> own = realize->block->alloc_buffers;
    bool lasts = shared_;
    for (const Buffer& b : own) {
      for (const Expr& e : b->shape) lasts = lasts && !uses_any(e, inner_);
    }
    if (lasts) hoisted.insert(hoisted.end(), own.begin(), own.end());
    if (lasts || own.empty()) body = realize->block->body;
  }
  if (!outside || iterators_ > 0) body = without_blocks(body);
  checks.push_back(std::move(body));
  Stmt out = seq(std::move(checks));
  for (std::size_t i = lets.size(); i-- > 0;) out = let_stmt(lets[i].first, lets[i].second, out);
  return out;
}

}  // namespace

IRModule inline_calls(const IRModule& m) {
  bool any = false;
  for (const auto& [name, f] : m->functions) any = any || (f && f->body && calls_functions(f));
  if (!any) return m;
  if (Verdict bad = verify(m)) throw Error(ErrorKind::verify, std::move(*bad));
  Inliner inliner(m);
  std::vector<std::pair<std::string, PrimFunc>> functions;
  for (const auto& [name, f] : m->functions) {
    try {
      functions.emplace_back(name, inliner.function(name));
    } catch (Error& e) {
      throw e.context(cat("while inlining the calls of function ", name));
    }
  }
  return make_module(std::move(functions));
}

}  // namespace weft::pass
