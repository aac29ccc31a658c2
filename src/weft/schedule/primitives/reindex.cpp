// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/reindex.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/annotate.h"
#include "weft/schedule/primitives/cache_parts.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// What is asked, and what the checks have found so far.
struct Relocation {
  const State& s;
  std::string_view step;
  Path path;
  Buffer buffer;
  bool write = false;
  Exprs indices{};                  // the block's one index of the buffer
  std::vector<std::size_t> used{};  // iterators in it
  const BlockNode* block() const { return path.realize()->block.get(); }
  std::string slug(std::string_view reason) const { return cat("schedule.", step, ".", reason); }
  Refusal refusal(std::string_view reason, std::string why) const {
    return refuse(s, slug(reason),
                  cat(step, " of \"", buffer->name, "\" in block ", name_of(block()), ": ", why),
                  path.target().get());
  }
};

/// The iterators of the block that a map asks for, or that indices are made of.
std::vector<std::size_t> iterators_of(const BlockNode* block, const Exprs& indices) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < block->iters.size(); ++i) {
    const bool uses = std::any_of(indices.begin(), indices.end(), [&](const Expr& e) {
      return uses_var(e, block->iters[i].var.get());
    });
    if (uses) out.push_back(i);
  }
  return out;
}

std::vector<std::size_t> iterators_of(const IndexMap& map) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < map.inputs.size(); ++i) {
    const bool uses = std::any_of(map.outputs.begin(), map.outputs.end(),
                                  [&](const Expr& e) { return uses_var(e, map.inputs[i].get()); });
    if (uses) out.push_back(i);
  }
  return out;
}

bool same_indices(const Exprs& a, const Exprs& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_expr);
}

/// The one index at which the block accesses the buffer, made of its iterators. Of several that are
/// read, the one that is made of the map's iterators.
Verdict find_access(Relocation& r, const IndexMap* map) {
  const BlockNode* block = r.block();
  bool nested = !block->match_buffers.empty();
  for_each_stmt(block->body, [&](const Stmt& x) { nested |= x->kind == StmtKind::block_realize; });
  if (nested)
    return r.refusal("leaf", "the block holds others or takes views")
        .note("legal: blocks without blocks inside; reindex before blockize and tensorize");
  bool one = true;
  std::vector<Exprs> found;
  const auto seen = [&](const Exprs& indices) {
    for (const Exprs& known : found)
      if (same_indices(known, indices)) return;
    found.push_back(indices);
  };
  for (const Stmt& part : {block->init, block->body}) {
    if (!part) continue;
    for_each_expr(part, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (l && l->buffer == r.buffer) seen(l->indices);
      const auto* c = as<CallNode>(e);
      if (c && c->op == "address_of") one = false;
    });
    for_each_stmt(part, [&](const Stmt& x) {
      const auto* t = as<StoreNode>(x);
      if (t && t->buffer == r.buffer) seen(t->indices);
    });
  }
  if (found.size() > 1 && map && !r.write && map->inputs.size() == block->iters.size()) {
    const std::vector<std::size_t> asked = iterators_of(*map);
    std::erase_if(found, [&](const Exprs& e) { return iterators_of(block, e) != asked; });
  }
  one = one && found.size() == 1;
  if (!found.empty()) r.indices = found[0];
  std::unordered_set<const VarNode*> iters;
  for (const IterVar& iter : block->iters) iters.insert(iter.var.get());
  for (const Expr& e : r.indices) {
    for (const VarNode* v : used_vars(e)) one = one && iters.count(v) > 0;
    for_each_expr(e, [&](const Expr& x) { one = one && x->kind != ExprKind::load; });
  }
  if (!one || r.indices.empty())
    return r
        .refusal("access",
                 "it is accessed at several indices, or at one that is not made of "
                 "the block's iterators")
        .note(
            "legal: one index, such as A[vn, vh + vr]; of several reads the one that is made of "
            "the map's iterators");
  for (std::size_t i : iterators_of(block, r.indices)) {
    if (!is_const_int_value(block->iters[i].dom.min, 0))
      return r
          .refusal("start",
                   cat("the iterator \"", block->iters[i].var->name, "\" does not start at 0"))
          .note("legal: iterators from 0");
    r.used.push_back(i);
  }
  return std::nullopt;
}

Verdict check_reach(const Relocation& r) {
  arith::Analyzer analyzer;
  bind_iters(analyzer, r.block());
  for (std::size_t d = 0; d < r.indices.size(); ++d) {
    if (analyzer.prove(ge(r.indices[d], make_zero(r.indices[d]->dtype))) &&
        analyzer.prove(lt(r.indices[d], r.buffer->shape[d])))
      continue;
    return r
        .refusal("bounds", cat("a copy over all iterations would leave the buffer along axis ", d,
                               ", or not provably stay inside"))
        .note(
            "legal: accesses that stay inside for all values of the iterators; pad the buffer "
            "in a block of its own first");
  }
  return std::nullopt;
}

/// The index map's outputs as expressions of the block's iterators, and the shape they span.
Verdict apply_map(const Relocation& r, const IndexMap& map, Exprs& at, Exprs& shape) {
  const BlockNode* block = r.block();
  if (map.inputs.size() != block->iters.size() || map.outputs.empty())
    return r
        .refusal("rank", cat("the block has ", block->iters.size(), " iterators, the map takes ",
                             map.inputs.size()))
        .note(cat("legal: maps of ", block->iters.size(), " indices to at least one"));
  VarMap values;
  for (std::size_t i = 0; i < map.inputs.size(); ++i)
    values[map.inputs[i].get()] = block->iters[i].var;
  for (const Expr& e : map.outputs) at.push_back(substitute(e, values));
  std::vector<IterVar> loops;
  for (std::size_t i : r.used) {
    IterVar iter = block->iters[i];
    iter.kind = IterKind::spatial;
    loops.push_back(std::move(iter));
  }
  arith::Analyzer analyzer;
  bind_iters(analyzer, block);
  const auto found =
      arith::detect_iter_map(at, loops, make_bool(true), arith::MapLevel::bijective, analyzer);
  std::string error = found.error;
  for (const Expr& e : at) {
    for (const VarNode* v : used_vars(e)) {
      const bool known = std::any_of(loops.begin(), loops.end(),
                                     [&](const IterVar& l) { return l.var.get() == v; });
      if (!known) error = cat("the map uses \"", v->name, "\", which the access does not");
    }
  }
  for (const arith::IterSum& sum : found.indices) {
    if (!is_const_int_value(sum.base, 0)) error = "an index has an offset";
  }
  if (!error.empty()) {
    std::vector<std::string> names;
    for (const IterVar& l : loops) names.push_back(l.var->name);
    return r
        .refusal("map",
                 cat(map.text(), " is not one to one on the iterators of the access: ", error))
        .note(cat("iterators of the access: ", quoted(names)));
  }
  for (const arith::IterSum& sum : found.indices) {
    Expr extent = make_const(1, dtypes::int64);
    for (const auto& split : sum.splits) extent = extent + (split.extent - 1) * split.scale;
    shape.push_back(analyzer.simplify(extent));
  }
  return std::nullopt;
}

/// One axis for each iterator of the access.
void plain_map(const Relocation& r, Exprs& at, Exprs& shape) {
  for (std::size_t i : r.used) {
    at.push_back(r.block()->iters[i].var);
    shape.push_back(r.block()->iters[i].dom.extent);
  }
  if (!at.empty()) return;
  at.push_back(make_int(0));
  shape.push_back(make_int(1));
}

/// for all iterators of the access: block name: one side of the copy.
Stmt copy_of(const Relocation& r, const Buffer& copy, const Exprs& at, std::uint64_t& id) {
  auto block = make_ref<BlockNode>();
  block->id = id = fresh_block_id();
  block->name = copy->name;
  VarMap iters;
  Exprs values;
  std::vector<std::pair<Var, Expr>> nest;
  for (std::size_t i : r.used) {
    const IterVar& old = r.block()->iters[i];
    const Var iter = make_var(cat("v", nest.size()), old.var->dtype);
    const Var loop = make_var(cat("ax", nest.size()), old.var->dtype);
    block->iters.push_back({iter, old.dom, IterKind::spatial});
    iters[old.var.get()] = iter;
    values.push_back(loop);
    nest.push_back({loop, old.dom.extent});
  }
  Exprs there, here;
  for (const Expr& e : r.indices) there.push_back(substitute(e, iters));
  for (const Expr& e : at) here.push_back(substitute(e, iters));
  block->body =
      r.write ? store(r.buffer, load(copy, here), there) : store(copy, load(r.buffer, there), here);
  block->reads = {r.write ? point_region(copy, here) : point_region(r.buffer, there)};
  block->writes = {r.write ? point_region(r.buffer, there) : point_region(copy, here)};
  Stmt s = block_realize(std::move(values), make_bool(true), block);
  for (std::size_t i = nest.size(); i-- > 0;)
    s = make_for(nest[i].first, make_zero(nest[i].first->dtype), nest[i].second, std::move(s));
  return s;
}

class UseCopy final : public Rewriter {
 public:
  UseCopy(Buffer from, Exprs indices, Buffer to, Exprs at)
      : from_(std::move(from)),
        indices_(std::move(indices)),
        to_(std::move(to)),
        at_(std::move(at)) {}

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    return l->buffer == from_ && same_indices(l->indices, indices_) ? load(to_, at_)
                                                                    : Rewriter::rewrite_load(e);
  }
  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    return t->buffer == from_ ? store(to_, rewrite(t->value), at_) : Rewriter::rewrite_store(s);
  }

 private:
  Buffer from_;
  Exprs indices_;
  Buffer to_;
  Exprs at_;
};

/// A copy before (after) the scope's statement that holds the block needs the buffer finished
/// there.
Verdict check_place(const Relocation& r, const std::vector<Stmt>& stmts, std::size_t at) {
  const BufferNode* b = r.buffer.get();
  if (!r.write) {
    for (std::size_t k = at; k < stmts.size(); ++k) {
      if (!touches(stmts[k], b, false, true)) continue;
      return r
          .refusal("place", k == at ? "it is written in the nest of the block"
                                    : "it is overwritten afterwards")
          .note(
              "legal: buffers that are finished before the statement that holds the block; "
              "reindex before compute_at");
    }
    return std::nullopt;
  }
  std::size_t users = 0;
  for (const Leaf& leaf : leaves(stmts[at]))
    users += reads(leaf.block(), b) || writes(leaf.block(), b) ? 1 : 0;
  bool elsewhere = false;
  for (std::size_t k = 0; k < stmts.size(); ++k)
    elsewhere |= k != at && (touches(stmts[k], b, false, true) ||
                             (k < at && touches(stmts[k], b, true, false)));
  if (users > 1 || elsewhere)
    return r
        .refusal("place", users > 1 ? "other blocks of its nest use the buffer"
                                    : "other statements of the scope write it or read it before")
        .note("legal: the block is the only writer, and others use the buffer after its nest");
  return std::nullopt;
}

Verdict relocate(Relocation r, const std::string& scope, const IndexMap* map,
                 Outcome<BlockRef>& out) {
  const BlockNode* block = r.block();
  if (r.write ? reads(block, r.buffer.get()) : writes(block, r.buffer.get()))
    return r.refusal("accumulates", "the block reads and writes it")
        .note("legal: buffers that a block only reads or only writes; before decompose_reduction");
  WEFT_TRY(find_access(r, map));
  WEFT_TRY(check_reach(r));
  Exprs at, shape;
  if (map) WEFT_TRY(apply_map(r, *map, at, shape));
  else plain_map(r, at, shape);
  arith::Analyzer analyzer;
  bind_path(analyzer, r.path);
  if (r.write) {
    std::vector<IterVar> loops;
    for (std::size_t i : r.used) {
      if (block->iters[i].kind != IterKind::spatial)
        return r
            .refusal("iterator",
                     cat("the reduction iterator \"", block->iters[i].var->name, "\" indexes it"))
            .note("legal: writes at spatial iterators");
      loops.push_back(block->iters[i]);
    }
    const auto found = arith::detect_iter_map(r.indices, loops, make_bool(true),
                                              arith::MapLevel::bijective, analyzer);
    const auto scope_leaves = leaves(r.path.scope()->block->body);
    if (!found.ok() || !covers_domain(scope_leaves[index_of(scope_leaves, block)], analyzer))
      return r
          .refusal("inexact", found.ok()
                                  ? "the block does not provably run its whole domain"
                                  : cat("its elements are not written once each: ", found.error))
          .note("legal: one element for each value of the iterators, all of which run");
  }
  auto stmts = statements(r.path.scope()->block->body);
  const std::size_t top = top_statement(stmts, r.path);
  WEFT_TRY(check_place(r, stmts, top));

  auto copy = edit(r.buffer);
  std::string suffix = map ? scope : std::string("reindex");
  std::replace(suffix.begin(), suffix.end(), '.', '_');
  copy->name = cat(r.buffer->name, "_", suffix);
  copy->shape = shape;
  copy->scope = scope;
  copy->strides.clear();
  copy->elem_offset = nullptr;
  std::uint64_t id = 0;
  const Stmt nest = copy_of(r, copy, at, id);
  auto changed = edit(r.path.realize()->block);
  UseCopy use(r.buffer, r.indices, copy, at);
  changed->body = use.rewrite(block->body);
  if (block->init) changed->init = use.rewrite(block->init);
  AccessRegions regions = detect_block_regions(*changed);
  changed->reads = std::move(regions.reads);
  changed->writes = std::move(regions.writes);
  const Stmt whole = replace(r.path, with_block(r.path.realize(), changed));
  const auto inner = find_block(whole, block->id);
  stmts = statements(inner->scope()->block->body);
  stmts.insert(stmts.begin() + static_cast<std::ptrdiff_t>(top + (r.write ? 1 : 0)), nest);
  Path place = *inner;
  place.func = r.path.func;
  out.mod = add_to_scope(r.s, place, {copy}, seq(std::move(stmts)));
  out.result = {id};
  return std::nullopt;
}

}  // namespace

Verdict Reindex::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  Buffer chosen;
  WEFT_TRY(choose_buffer(s, kName, path.realize(), buffer, chosen));
  const bool write = buffer.kind == "write" ||
                     (buffer.kind == "name" && writes(path.realize()->block.get(), chosen.get()));
  return relocate({s, kName, path, chosen, write}, chosen->scope, nullptr, out);
}

Verdict ReindexCacheRead::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const auto& list = path.realize()->block->reads;
  WEFT_TRY(check_buffer_index(s, kName, path, list, read_buffer_index, "reads"));
  WEFT_TRY(check_scope(s, kName, storage_scope));
  const Buffer& buffer = list[static_cast<std::size_t>(read_buffer_index)].buffer;
  return relocate({s, kName, path, buffer, false}, storage_scope, &index_map, out);
}

Verdict ReindexCacheWrite::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const auto& list = path.realize()->block->writes;
  WEFT_TRY(check_buffer_index(s, kName, path, list, write_buffer_index, "writes"));
  WEFT_TRY(check_scope(s, kName, storage_scope));
  const Buffer& buffer = list[static_cast<std::size_t>(write_buffer_index)].buffer;
  return relocate({s, kName, path, buffer, true}, storage_scope, &index_map, out);
}

}  // namespace weft::schedule
