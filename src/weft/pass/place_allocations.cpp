// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/place_allocations.h"

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

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

/// Where the buffers of one block are used below it: statements have numbers, parents before
/// children, so that a statement's own numbers are one range.
class Uses final : public Visitor {
 public:
  Uses(const std::vector<Buffer>& buffers, const Stmt& s) {
    for (const Buffer& b : buffers) at_[b.get()];
    if (s) visit(s);
  }

  /// How many numbers the statement takes.
  std::size_t size(const Stmt& s) const { return s ? sizes_.at(s.get()) : 0; }

  bool any(const BufferNode* b) const { return !at_.at(b).empty(); }

  /// Whether the buffer is used at a number of [first, first + count).
  bool within(const BufferNode* b, std::size_t first, std::size_t count) const {
    const std::vector<std::size_t>& at = at_.at(b);
    auto found = std::lower_bound(at.begin(), at.end(), first);
    return found != at.end() && *found < first + count;
  }

  /// First and last use in [first, first + count), of which there must be one.
  std::pair<std::size_t, std::size_t> ends(const BufferNode* b, std::size_t first,
                                           std::size_t count) const {
    const std::vector<std::size_t>& at = at_.at(b);
    auto end = std::lower_bound(at.begin(), at.end(), first + count);
    return {*std::lower_bound(at.begin(), at.end(), first), *(end - 1)};
  }

  void visit(const Expr& e) override { Visitor::visit(e); }

  void visit(const Stmt& s) override {
    if (!s) return;
    const std::size_t first = next_++, outer = std::exchange(now_, first);
    if (const auto* c = as<CollectiveNode>(s)) note(c->dst.buffer.get()), note(c->src.buffer.get());
    if (const auto* r = as<BlockRealizeNode>(s)) {
      for (const BufferRegion& x : r->block->reads) note(x.buffer.get());
      for (const BufferRegion& x : r->block->writes) note(x.buffer.get());
      for (const MatchBuffer& m : r->block->match_buffers) note(m.source.buffer.get());
    }
    Visitor::visit(s);
    sizes_[s.get()] = next_ - first;
    now_ = outer;
  }

 protected:
  void visit_load(const LoadNode* e) override {
    note(e->buffer.get());
    Visitor::visit_load(e);
  }
  void visit_store(const StoreNode* s) override {
    note(s->buffer.get());
    Visitor::visit_store(s);
  }

 private:
  // What stands in a statement itself counts at the statement's number, also when it is found after
  // its children: hence the sorted insertion, at the end in nearly every case.
  void note(const BufferNode* b) {
    auto found = at_.find(b);
    if (found == at_.end()) return;
    std::vector<std::size_t>& at = found->second;
    auto place = std::lower_bound(at.begin(), at.end(), now_);
    if (place == at.end() || *place != now_) at.insert(place, now_);
  }

  std::size_t next_ = 0, now_ = 0;
  std::unordered_map<const BufferNode*, std::vector<std::size_t>> at_;
  std::unordered_map<const StmtNode*, std::size_t> sizes_;
};

/// A buffer to place and what its declaration carries.
struct Item {
  const Buffer* buffer;
  Annotations annotations;
};

using Items = std::vector<const Item*>;  // in the order of their declarations

/// Allocates all of them around s, the first outermost.
Stmt around(const Items& items, Stmt s) {
  for (std::size_t i = items.size(); i-- > 0;)
    s = allocate(*items[i]->buffer, s, items[i]->annotations);
  return s;
}

/// Moves declarations down to the smallest statement that holds all uses; all buffers of a block in
/// one walk, as programs of thousands of blocks have thousands of buffers.
class Placer {
 public:
  Placer(const TargetInfo& machine, const Uses& uses) : machine_(machine), uses_(uses) {}

  /// s, whose numbers begin at `first`, with the declarations of `items`, which are used in it.
  Stmt place(const Stmt& s, std::size_t first, const Items& items) {
    if (items.empty()) return s;
    switch (s->kind) {
      case StmtKind::seq: return place_seq(as<SeqNode>(s)->stmts, first + 1, items);
      case StmtKind::for_: {
        const auto* loop = as<ForNode>(s);
        return split(
            s, items, [&](const Item& i) { return stays_outside(loop, first, i); },
            [&](const Items& in) {
              return make_for(loop->var, loop->min, loop->extent, place(loop->body, first + 1, in),
                              loop->for_kind, loop->axis, loop->annotations);
            });
      }
      case StmtKind::if_: return place_if(s, first, items);
      case StmtKind::let: {
        const auto* l = as<LetStmtNode>(s);
        return split(
            s, items, [&](const Item& i) { return itself(first, i); },
            [&](const Items& in) {
              return let_stmt(l->var, l->value, place(l->body, first + 1, in));
            });
      }
      case StmtKind::allocate: {
        const auto* a = as<AllocateNode>(s);
        return allocate(a->buffer, place(a->body, first + 1, items), a->annotations);
      }
      case StmtKind::block_realize: {
        const auto* realize = as<BlockRealizeNode>(s);
        const std::size_t init = uses_.size(realize->block->init);
        return split(
            s, items,
            [&](const Item& i) {
              return itself(first, i) || uses_.within(i.buffer->get(), first + 1, init);
            },
            [&](const Items& in) {
              auto copy = edit(realize->block);
              copy->body = place(copy->body, first + 1 + init, in);
              return block_realize(realize->iter_values, realize->predicate, copy);
            });
      }
      default: return around(items, s);
    }
  }

 private:
  template <class Here, class Inner>
  Stmt split(const Stmt& s, const Items& items, Here here, Inner inner) {
    Items outside, inside;
    for (const Item* i : items) (here(*i) ? outside : inside).push_back(i);
    return around(outside, inside.empty() ? s : inner(inside));
  }

  /// Whether the statement uses the buffer itself: in its extents, its condition, its regions.
  bool itself(std::size_t first, const Item& item) const {
    return uses_.within(item.buffer->get(), first, 1);
  }

  bool stays_outside(const ForNode* loop, std::size_t first, const Item& item) const {
    const BufferNode* b = item.buffer->get();
    const MemoryInfo* row = machine_.memory(b->scope);
    bool shared_by_all = loop->for_kind == ForKind::bound && (!row || row->private_to.empty());
    bool lanes = loop->for_kind == ForKind::vectorized;
    // Points of an axis with memory of their own hand nothing to each other.
    bool own = loop->for_kind == ForKind::bound && row && row->is_private_to(loop->axis);
    return shared_by_all || lanes || itself(first, item) ||
           (!own && carries(loop->body, loop->var.get(), b));
  }

  Stmt place_if(const Stmt& s, std::size_t first, const Items& items) {
    const auto* branch = as<IfNode>(s);
    const std::size_t then_first = first + 1, then_size = uses_.size(branch->then_case),
                      else_first = then_first + then_size,
                      else_size = uses_.size(branch->else_case);
    Items here, in_then, in_else;
    for (const Item* i : items) {
      const BufferNode* b = i->buffer->get();
      bool a = uses_.within(b, then_first, then_size), c = uses_.within(b, else_first, else_size);
      (itself(first, *i) || a == c ? here : a ? in_then : in_else).push_back(i);
    }
    Stmt then_case = place(branch->then_case, then_first, in_then);
    Stmt else_case = place(branch->else_case, else_first, in_else);
    bool same = then_case == branch->then_case && else_case == branch->else_case;
    return around(here, same ? s : if_then(branch->condition, then_case, else_case));
  }

  /// Statements of a sequence that one or more buffers span: these are declared around them.
  struct Span {
    std::size_t first, last;
    Items items;
    std::vector<Span> inner;  // one after another
  };

  Stmt place_seq(const std::vector<Stmt>& stmts, std::size_t first, const Items& items) {
    std::vector<std::size_t> starts;
    for (const Stmt& child : stmts) {
      starts.push_back(first);
      first += uses_.size(child);
    }
    std::vector<Items> single(stmts.size());
    std::vector<Span> spans;
    auto child_of = [&](std::size_t number) {
      return static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), number) -
                                      starts.begin() - 1);
    };
    for (const Item* i : items) {
      auto [from, to] = uses_.ends(i->buffer->get(), starts[0], first - starts[0]);
      const std::size_t a = child_of(from), b = child_of(to);
      if (a == b) single[a].push_back(i);
      else spans.push_back({a, b, {i}, {}});
    }
    std::vector<Stmt> placed;
    for (std::size_t i = 0; i < stmts.size(); ++i)
      placed.push_back(place(stmts[i], starts[i], single[i]));
    return nest(placed, 0, stmts.size(), laminar(std::move(spans), items));
  }

  /// Spans that lie side by side or in each other. Two that overlap otherwise become one: the
  /// declarations stand at one place, where storage can be shared by order of use.
  static std::vector<Span> laminar(std::vector<Span> spans, const Items& items) {
    std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.first != b.first ? a.first < b.first : a.last > b.last;
    });
    std::vector<Span> done, open;
    auto close = [&] {
      Span s = std::move(open.back());
      open.pop_back();
      (open.empty() ? done : open.back().inner).push_back(std::move(s));
    };
    for (Span& s : spans) {
      while (!open.empty() && open.back().last < s.first) close();
      if (open.empty() || (s.last <= open.back().last && !same(s, open.back()))) {
        open.push_back(std::move(s));
        continue;
      }
      while (open.size() > 1 && open[open.size() - 2].last < s.last) {
        Span crossed = std::move(open.back());
        open.pop_back();
        join(open.back(), std::move(crossed));
      }
      join(open.back(), std::move(s));
    }
    while (!open.empty()) close();
    std::unordered_map<const Item*, std::size_t> order;
    for (std::size_t i = 0; i < items.size(); ++i) order[items[i]] = i;
    sort_items(done, order);
    return done;
  }

  static bool same(const Span& a, const Span& b) { return a.first == b.first && a.last == b.last; }

  static void join(Span& into, Span s) {
    into.last = std::max(into.last, s.last);
    into.items.insert(into.items.end(), s.items.begin(), s.items.end());
    for (Span& i : s.inner) into.inner.push_back(std::move(i));
  }

  static void sort_items(std::vector<Span>& spans,
                         const std::unordered_map<const Item*, std::size_t>& order) {
    for (Span& s : spans) {
      std::sort(s.items.begin(), s.items.end(),
                [&](const Item* a, const Item* b) { return order.at(a) < order.at(b); });
      sort_items(s.inner, order);
    }
  }

  static Stmt nest(const std::vector<Stmt>& stmts, std::size_t from, std::size_t to,
                   const std::vector<Span>& spans) {
    std::vector<Stmt> out;
    for (const Span& s : spans) {
      for (; from < s.first; ++from) out.push_back(stmts[from]);
      out.push_back(around(s.items, nest(stmts, s.first, s.last + 1, s.inner)));
      from = s.last + 1;
    }
    for (; from < to; ++from) out.push_back(stmts[from]);
    return seq(std::move(out));
  }

  const TargetInfo& machine_;
  const Uses& uses_;
};

class Place final : public Rewriter {
 public:
  Place(const TargetInfo& machine, const Stmt& body) : machine_(machine) {
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
    const Uses in_body(block->alloc_buffers, copy->body), in_init(block->alloc_buffers, copy->init);
    std::vector<Item> items;
    for (const Buffer& buffer : block->alloc_buffers) {
      if (!in_body.any(buffer.get()) && !in_init.any(buffer.get())) continue;
      Annotations notes;
      if (auto found = align_.find(buffer.get()); found != align_.end())
        notes.emplace_back("dim_align", found->second);
      items.push_back({&buffer, std::move(notes)});
    }
    Items here, inside;
    for (const Item& item : items)
      (in_body.any(item.buffer->get()) ? inside : here).push_back(&item);
    copy->body = around(here, Placer(machine_, in_body).place(copy->body, 0, inside));
    return copy;
  }

 private:
  const TargetInfo& machine_;
  std::unordered_map<const BufferNode*, Json> align_;
};

}  // namespace

PrimFunc place_allocations(const PrimFunc& f, const TargetInfo& machine) {
  Stmt body = Place(machine, f->body).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
