// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/convert_blocks.h"

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/execution.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"
#include "weft/pass/with_body.h"

namespace weft::pass {

using namespace ir;

namespace {

/// Calls of roles reach from an address on, whatever the block's regions say.
bool takes_addresses(const Block& block) {
  bool found = false, roles = false;
  for_each_expr(block->body, [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    if (c) found = found || c->op == "address_of", roles = roles || role_addresses(c->op) > 0;
  });
  return found && !roles;
}

bool hides_addresses(const Block& block) {
  return !block->match_buffers.empty() || takes_addresses(block);
}

/// Whether nothing in the block depends on where its views lie before it is known.
bool is_plain(const Block& block) {
  for (const MatchBuffer& m : block->match_buffers) {
    if (!m.buffer->strides.empty() || m.buffer->elem_offset) return false;
    for (const Expr& e : m.buffer->shape)
      if (!is_const_int(e)) return false;
  }
  return !takes_addresses(block);
}

class ConvertBlocks final : public Rewriter {
 protected:
  /// Neighbours that run on parts of one axis that do not meet are the branches of one choice.
  Stmt rewrite_seq(const Stmt& s) override {
    const auto* all = as<SeqNode>(s);
    std::vector<Stmt> out;
    for (std::size_t i = 0; i < all->stmts.size();) {
      std::size_t end = i;
      while (end < all->stmts.size() && apart(all->stmts, i, end)) ++end;
      if (end < i + 2) {
        out.push_back(rewrite(all->stmts[i++]));
        continue;
      }
      Stmt chain;
      for (std::size_t k = end; k-- > i;) {
        Stmt one = rewrite(all->stmts[k]);
        std::vector<const AllocateNode*> memory;  // of this branch alone
        const Stmt whole = one;
        while (const auto* a = as<AllocateNode>(one)) memory.push_back(a), one = a->body;
        const auto* branch = as<IfNode>(one);
        WEFT_CHECK(branch, "a part of an axis without a condition");
        Stmt body = branch->then_case;
        for (std::size_t m = memory.size(); m-- > 0;)
          body = allocate(memory[m]->buffer, body, memory[m]->annotations);
        chain = if_then(branch->condition, body, chain);
      }
      out.push_back(chain);
      i = end;
    }
    return seq(std::move(out));
  }

  Stmt rewrite_block_realize(const Stmt& s) override {
    const auto* realize = as<BlockRealizeNode>(s);
    const Block& block = realize->block;
    WEFT_CHECK(!block->init, "block ", block->name, " still has an init");
    WEFT_CHECK(block->alloc_buffers.empty(), "block ", block->name, " still allocates");
    const Expr chosen = block->execution.axis.empty() ? make_bool(true) : execution(block);
    VarMap map;
    for (std::size_t i = 0; i < block->iters.size(); ++i) {
      map[block->iters[i].var.get()] = cast(block->iters[i].var->dtype, realize->iter_values[i]);
    }
    bool leaf = true;  // only the innermost block keeps its regions
    for_each_stmt(block->body,
                  [&](const Stmt& t) { leaf = leaf && t->kind != StmtKind::block_realize; });
    Stmt out;
    const bool role = !block->execution.axis.empty();
    if (!block->match_buffers.empty() || (leaf && !role && hides_addresses(block))) {
      auto copy = edit(block);
      copy->iters.clear();
      for (BufferRegion& r : copy->reads) r = substitute(r, map);
      for (BufferRegion& r : copy->writes) r = substitute(r, map);
      for (MatchBuffer& m : copy->match_buffers) m.source = substitute(m.source, map);
      copy->body = rewrite(substitute(block->body, map));
      out = block_realize({}, nullptr, copy);
    } else {
      out = rewrite(substitute(block->body, map));
    }
    if (const Json* registers = find_annotation(block->annotations, "registers"); role && registers)
      out = seq({evaluate(call("registers", {make_int(registers->as_int())})), out});
    const Expr runs = logical_and(chosen, realize->predicate);
    return is_const_int_value(runs, 1) ? out : if_then(runs, out);
  }

  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    const bool bound = loop->for_kind == ForKind::bound;
    if (bound) around_.push_back(loop);
    Stmt out = Rewriter::rewrite_for(s);
    if (bound) around_.pop_back();
    return out;
  }

 private:
  static const Execution* part(Stmt s) {
    while (const auto* a = as<AllocateNode>(s)) s = a->body;
    const auto* r = as<BlockRealizeNode>(s);
    const bool role = r && !r->block->execution.axis.empty() && is_const_int_value(r->predicate, 1);
    return role ? &r->block->execution : nullptr;
  }
  /// Whether the statement at `at` runs on a part of the axis of those from `begin` on, and on no
  /// point of theirs.
  static bool apart(const std::vector<Stmt>& all, std::size_t begin, std::size_t at) {
    const Execution* mine = part(all[at]);
    if (!mine) return false;
    for (std::size_t i = begin; i < at; ++i) {
      const Execution* other = part(all[i]);
      if (other->axis != mine->axis || (mine->begin < other->end && other->begin < mine->end))
        return false;
    }
    return true;
  }

  /// The condition under which a point runs a block that only a part of an axis executes.
  Expr execution(const Block& block) const {
    const Execution& e = block->execution;
    std::vector<std::string> axes;
    std::int64_t extent = 0;
    for (std::size_t i = around_.size(); i-- > 0;) {
      const ForNode* loop = around_[i];
      axes.push_back(loop->axis);
      if (loop->axis != e.axis) continue;
      if (is_const_int(loop->extent, &extent) && e.end > extent) break;
      return executes_at(e, loop);
    }
    Error error(ErrorKind::lower, "lower.execution",
                cat("block \"", block->name, "\" asks for points ", e.begin, " to ", e.end,
                    " of axis ", e.axis,
                    extent ? cat(", which has ", extent, " here")
                           : std::string(", to which no loop around it is bound")));
    error.note(cat("axes bound around it: ", axes.empty() ? "none" : join(axes)));
    throw error.help(extent ? "choose a part of the axis" : "bind a loop around the block to it");
  }

  std::vector<const ForNode*> around_;  // bound loops, outermost first
};

class LowerMatchBuffers final : public Rewriter {
 public:
  explicit LowerMatchBuffers(bool plain_only) : plain_only_(plain_only) {}

 protected:
  Stmt rewrite_block_realize(const Stmt& s) override {
    const auto* realize = as<BlockRealizeNode>(s);
    const Block& block = realize->block;
    if (plain_only_ && !is_plain(block)) return Rewriter::rewrite_block_realize(s);
    auto saved = matches_;
    VarMap vars;
    for (const MatchBuffer& m : block->match_buffers) bind(m, vars);
    Stmt body = rewrite(vars.empty() ? block->body : substitute(block->body, vars));
    matches_ = std::move(saved);
    return is_const_int_value(realize->predicate, 1) ? body
                                                     : if_then(rewrite(realize->predicate), body);
  }

  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    bool changed = false;
    Exprs indices = rewrite_all(l->indices, &changed);
    Buffer buffer = l->buffer;
    changed |= redirect(&buffer, &indices);
    return changed ? load(std::move(buffer), std::move(indices)) : e;
  }

  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    bool changed = false;
    Exprs indices = rewrite_all(t->indices, &changed);
    Expr value = rewrite(t->value);
    Buffer buffer = t->buffer;
    changed |= redirect(&buffer, &indices);
    return changed || !(value == t->value) ? store(std::move(buffer), value, std::move(indices))
                                           : s;
  }

  BufferRegion rewrite_region(const BufferRegion& region) override {
    BufferRegion out{region.buffer, {}};
    Exprs mins, extents;
    for (const Range& r : region.region) {
      mins.push_back(rewrite(r.min));
      extents.push_back(rewrite(r.extent));
    }
    redirect(&out.buffer, &mins);
    while (extents.size() < mins.size()) extents.insert(extents.begin(), make_int(1));
    for (std::size_t i = 0; i < mins.size(); ++i) out.region.push_back({mins[i], extents[i]});
    return out;
  }

 private:
  struct Match {
    Buffer source;
    Exprs mins;
  };

  void bind(const MatchBuffer& m, VarMap& vars) {
    BufferRegion source =
        rewrite_region(m.source);  // a source may itself be a match of an outer block
    std::size_t skip = source.region.size() - m.buffer->ndim();
    if (m.buffer->ndim() > source.region.size()) {
      throw Error(ErrorKind::lower, "lower.match_buffer.rank",
                  cat("\"", m.buffer->name, "\" has ", m.buffer->ndim(),
                      " dimensions but matches a region of ", source.region.size(), " of \"",
                      source.buffer->name, "\""));
    }
    for (std::size_t i = 0; i < skip; ++i) {
      if (!is_const_int_value(source.region[i].extent, 1)) {
        throw Error(ErrorKind::lower, "lower.match_buffer.rank",
                    cat("\"", m.buffer->name, "\" drops dimension ", i, " of \"",
                        source.buffer->name, "\", whose extent is not 1"));
      }
    }
    Match match{source.buffer, {}};
    for (const Range& r : source.region) match.mins.push_back(r.min);
    auto define = [&](const Expr& symbol, const Expr& value) {
      if (const auto* v = as<VarNode>(symbol)) vars.emplace(v, cast(v->dtype, value));
    };
    Exprs strides = strides_of(source.buffer);
    for (std::size_t i = 0; i < m.buffer->ndim(); ++i) {
      define(m.buffer->shape[i], source.region[skip + i].extent);
      if (!m.buffer->strides.empty()) define(m.buffer->strides[i], strides[skip + i]);
    }
    if (m.buffer->elem_offset) {
      Expr offset = make_int(0);
      for (std::size_t i = 0; i < strides.size(); ++i) offset = offset + match.mins[i] * strides[i];
      define(m.buffer->elem_offset, offset);
    }
    matches_[m.buffer.get()] = std::move(match);
  }

  bool redirect(Buffer* buffer, Exprs* indices) const {
    auto found = matches_.find(buffer->get());
    if (found == matches_.end()) return false;
    const Match& match = found->second;
    Exprs out = match.mins;
    std::size_t skip = out.size() - indices->size();
    for (std::size_t i = 0; i < indices->size(); ++i) out[skip + i] = out[skip + i] + (*indices)[i];
    *indices = std::move(out);
    *buffer = match.source;
    return true;
  }

  const bool plain_only_;
  std::unordered_map<const BufferNode*, Match> matches_;
};

}  // namespace

PrimFunc convert_blocks(const PrimFunc& f) {
  return with_body(f, ConvertBlocks().rewrite(f->body));
}

PrimFunc lower_plain_matches(const PrimFunc& f) {
  return with_body(f, LowerMatchBuffers(true).rewrite(f->body));
}

PrimFunc lower_match_buffers(const PrimFunc& f) {
  return with_body(f, LowerMatchBuffers(false).rewrite(f->body));
}

}  // namespace weft::pass
