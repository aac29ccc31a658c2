// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/place_allocations.h"

#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

bool lists(const Block& block, const BufferNode* buffer) {
  for (const BufferRegion& r : block->reads) {
    if (r.buffer.get() == buffer) return true;
  }
  for (const BufferRegion& r : block->writes) {
    if (r.buffer.get() == buffer) return true;
  }
  for (const MatchBuffer& m : block->match_buffers) {
    if (m.source.buffer.get() == buffer) return true;
  }
  return false;
}

bool writes_to(const Stmt& s, const BufferNode* buffer);

/// Whether a block may change the buffer: it lists it as written, or its body writes to what stands
/// for it there (a matched buffer that is only read changes nothing).
bool updates(const Block& block, const BufferNode* buffer) {
  for (const BufferRegion& r : block->writes) {
    if (r.buffer.get() == buffer) return true;
  }
  for (const MatchBuffer& m : block->match_buffers) {
    if (m.source.buffer.get() != buffer) continue;
    if (writes_to(block->init, m.buffer.get()) || writes_to(block->body, m.buffer.get()))
      return true;
  }
  return false;
}

/// Stores, blocks that update it, and calls that are given it: what those do to it is not known.
bool writes_to(const Stmt& s, const BufferNode* buffer) {
  if (!s) return false;
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* store = as<StoreNode>(t)) found = found || store->buffer.get() == buffer;
    if (const auto* realize = as<BlockRealizeNode>(t))
      found = found || updates(realize->block, buffer);
    if (t->kind == StmtKind::evaluate || t->kind == StmtKind::collective)
      found = found || used_buffers(t).count(buffer) > 0;
  });
  return found;
}

bool uses(const Stmt& s, const BufferNode* buffer) {
  if (!s) return false;
  bool found = used_buffers(s).count(buffer) > 0;
  if (!found) {
    for_each_stmt(s, [&](const Stmt& t) {
      if (const auto* realize = as<BlockRealizeNode>(t))
        found = found || lists(realize->block, buffer);
    });
  }
  return found;
}

bool uses(const Expr& e, const BufferNode* buffer) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* l = as<LoadNode>(x)) found = found || l->buffer.get() == buffer;
  });
  return found;
}

/// Whether iterations of a loop over `var` may hand values of `buffer` to each other: some access
/// stands outside every block, or a block that writes it has a non-spatial iterator that depends on
/// the loop.
bool carries(const Stmt& body, const VarNode* var, const BufferNode* buffer) {
  class Finder final : public Visitor {
   public:
    std::unordered_set<const VarNode*> tainted;
    const BufferNode* buffer = nullptr;
    bool found = false;
    int depth = 0;

   protected:
    void visit_block_realize(const BlockRealizeNode* s) override {
      bool serial = false;
      std::unordered_set<const VarNode*> before = tainted;
      for (std::size_t i = 0; i < s->iter_values.size(); ++i) {
        if (!uses_any(s->iter_values[i], tainted)) continue;
        tainted.insert(s->block->iters[i].var.get());
        serial |= s->block->iters[i].kind != IterKind::spatial;
      }
      if (serial && updates(s->block, buffer)) found = true;
      ++depth;
      Visitor::visit(s->block->init);
      Visitor::visit(s->block->body);
      --depth;
      tainted = std::move(before);
    }
    void visit_load(const LoadNode* e) override {
      if (e->buffer.get() == buffer && depth == 0) found = true;
      Visitor::visit_load(e);
    }
    void visit_store(const StoreNode* s) override {
      if (s->buffer.get() == buffer && depth == 0) found = true;
      Visitor::visit_store(s);
    }
  } finder;
  finder.tainted = {var};
  finder.buffer = buffer;
  static_cast<Visitor&>(finder).visit(body);
  return finder.found;
}

class Placer {
 public:
  Placer(const Machine& machine, Buffer buffer, Annotations annotations)
      : machine_(machine), buffer_(std::move(buffer)), annotations_(std::move(annotations)) {}

  Stmt place(const Stmt& s) {
    const BufferNode* b = buffer_.get();
    switch (s->kind) {
      case StmtKind::seq: {
        const auto& stmts = as<SeqNode>(s)->stmts;
        std::size_t first = stmts.size(), last = 0;
        for (std::size_t i = 0; i < stmts.size(); ++i) {
          if (!uses(stmts[i], b)) continue;
          first = std::min(first, i);
          last = i;
        }
        if (first == stmts.size()) return s;
        std::vector<Stmt> out(stmts.begin(), stmts.begin() + static_cast<std::ptrdiff_t>(first));
        if (first == last) {
          out.push_back(place(stmts[first]));
        } else {
          out.push_back(here(seq({stmts.begin() + static_cast<std::ptrdiff_t>(first),
                                  stmts.begin() + static_cast<std::ptrdiff_t>(last) + 1})));
        }
        out.insert(out.end(), stmts.begin() + static_cast<std::ptrdiff_t>(last) + 1, stmts.end());
        return seq(std::move(out));
      }
      case StmtKind::for_: {
        const auto* loop = as<ForNode>(s);
        const MemoryRow* row = machine_.memory(buffer_->scope);
        bool shared_by_all = loop->for_kind == ForKind::bound && (!row || row->private_to.empty());
        bool lanes = loop->for_kind == ForKind::vectorized;
        // Points of an axis with memory of their own hand nothing to each other.
        bool own = loop->for_kind == ForKind::bound && row && row->is_private_to(loop->axis);
        if (shared_by_all || lanes || uses(loop->min, b) || uses(loop->extent, b) ||
            (!own && carries(loop->body, loop->var.get(), b))) {
          return here(s);
        }
        return make_for(loop->var, loop->min, loop->extent, place(loop->body), loop->for_kind,
                        loop->axis, loop->annotations);
      }
      case StmtKind::if_: {
        const auto* branch = as<IfNode>(s);
        bool in_then = uses(branch->then_case, b), in_else = uses(branch->else_case, b);
        if (uses(branch->condition, b) || in_then == in_else) return here(s);
        return in_then ? if_then(branch->condition, place(branch->then_case), branch->else_case)
                       : if_then(branch->condition, branch->then_case, place(branch->else_case));
      }
      case StmtKind::let: {
        const auto* l = as<LetStmtNode>(s);
        return uses(l->value, b) ? here(s) : let_stmt(l->var, l->value, place(l->body));
      }
      case StmtKind::allocate: {
        const auto* a = as<AllocateNode>(s);
        return allocate(a->buffer, place(a->body), a->annotations);
      }
      case StmtKind::block_realize: {
        const auto* realize = as<BlockRealizeNode>(s);
        if (lists(realize->block, b) || uses(realize->block->init, b)) return here(s);
        auto copy = edit(realize->block);
        copy->body = place(copy->body);
        return block_realize(realize->iter_values, realize->predicate, copy);
      }
      default: return here(s);
    }
  }

 private:
  Stmt here(const Stmt& s) { return allocate(buffer_, s, annotations_); }

  const Machine& machine_;
  Buffer buffer_;
  Annotations annotations_;
};

class Place final : public Rewriter {
 public:
  Place(const Machine& machine, const Stmt& body) : machine_(machine) {
    for_each_stmt(body, [&](const Stmt& s) {
      const auto* realize = as<BlockRealizeNode>(s);
      if (!realize) return;
      const Json* rows = find_annotation(realize->block->annotations, "buffer_dim_align");
      if (!rows) return;
      for (const Json& row : rows->as_array()) {
        auto index = static_cast<std::size_t>(row.at(0).as_int());
        if (index >= realize->block->writes.size()) continue;
        const BufferNode* buffer = realize->block->writes[index].buffer.get();
        Json entry = Json::array();
        for (std::size_t i = 1; i < 4; ++i) entry.push_back(row.at(i));
        if (!align_.count(buffer)) align_[buffer] = Json::array();
        align_[buffer].push_back(std::move(entry));
      }
    });
  }

  Block rewrite_block(const Block& old) override {
    Block block = Rewriter::rewrite_block(old);
    if (block->alloc_buffers.empty()) return block;
    auto copy = edit(block);
    copy->alloc_buffers.clear();
    // Later buffers first, so that at one place the declarations keep their order.
    for (std::size_t i = block->alloc_buffers.size(); i-- > 0;) {
      const Buffer& buffer = block->alloc_buffers[i];
      if (!uses(copy->body, buffer.get()) && !uses(copy->init, buffer.get())) continue;
      Annotations notes;
      if (auto found = align_.find(buffer.get()); found != align_.end())
        notes.emplace_back("dim_align", found->second);
      copy->body = Placer(machine_, buffer, std::move(notes)).place(copy->body);
    }
    return copy;
  }

 private:
  const Machine& machine_;
  std::unordered_map<const BufferNode*, Json> align_;
};

}  // namespace

PrimFunc place_allocations(const PrimFunc& f, const Machine& machine) {
  Stmt body = Place(machine, f->body).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
