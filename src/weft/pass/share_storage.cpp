// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/share_storage.h"

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

struct Life {
  const AllocateNode* node = nullptr;
  std::int64_t count = 0;           // elements
  std::size_t first = 0, last = 0;  // statements of the sequence
};

/// One buffer for several allocations.
struct Slot {
  std::vector<Life> items;
  std::int64_t count = 0;
  std::size_t last = 0;
};

bool eligible(const AllocateNode* a, std::int64_t* count) {
  const Buffer& b = a->buffer;
  if (b->ndim() != 1 || !is_const_int(b->shape[0], count) || *count <= 0) return false;
  return b->scope.starts_with("shared") || *count * b->dtype.bytes() >= kLargeBytes;
}

/// Allocations below a statement that are one at a time: each iteration of a parallel loop has its
/// own of those inside it, and iterations run side by side.
class Serial final : public Visitor {
 public:
  std::vector<const AllocateNode*> found;

 protected:
  void visit_for(const ForNode* s) override {
    if (s->for_kind != ForKind::parallel) Visitor::visit_for(s);
  }
  void visit_allocate(const AllocateNode* s) override {
    found.push_back(s);
    Visitor::visit_allocate(s);
  }
};

class Share final : public Rewriter {
 public:
  using Rewriter::rewrite;

 protected:
  Stmt rewrite_allocate(const Stmt& s) override {
    std::vector<const AllocateNode*> chain;
    Stmt at = s;
    while (const auto* a = as<AllocateNode>(at)) {
      chain.push_back(a);
      at = a->body;
    }
    if (at->kind != StmtKind::seq) return Rewriter::rewrite_allocate(s);
    return sequence(chain, as<SeqNode>(at));
  }

  Stmt rewrite_seq(const Stmt& s) override { return sequence({}, as<SeqNode>(s)); }

 private:
  Stmt sequence(const std::vector<const AllocateNode*>& chain, const SeqNode* q) {
    std::vector<Life> items;
    std::vector<std::unordered_set<const BufferNode*>> used;
    for (const Stmt& child : q->stmts) used.push_back(used_buffers(child));
    for (const AllocateNode* a : chain) {
      Life item{a, 0, q->stmts.size(), 0};
      for (std::size_t i = 0; i < used.size(); ++i) {
        if (!used[i].count(a->buffer.get())) continue;
        item.first = std::min(item.first, i);
        item.last = i;
      }
      if (item.first < q->stmts.size() && eligible(a, &item.count)) items.push_back(item);
    }
    for (std::size_t i = 0; i < q->stmts.size(); ++i) {
      Serial below;
      below.visit(q->stmts[i]);
      for (const AllocateNode* a : below.found) {
        Life item{a, 0, i, i};
        if (eligible(a, &item.count)) items.push_back(item);
      }
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const Life& a, const Life& b) { return a.first < b.first; });
    std::vector<Slot> slots;
    for (const Life& item : items) place(item, slots);
    std::erase_if(slots, [](const Slot& s) { return s.items.size() < 2; });
    BufferMap map;
    std::unordered_set<const AllocateNode*> gone;
    std::vector<std::pair<Buffer, Annotations>> merged;
    for (const Slot& slot : slots) {
      merged.push_back(merge(slot));
      for (const Life& item : slot.items) {
        map[item.node->buffer.get()] = merged.back().first;
        gone.insert(item.node);
      }
    }
    std::vector<Stmt> out;
    for (const Stmt& child : q->stmts) {
      Stmt now = gone.empty() ? child : replace_buffers(Remove(gone).rewrite(child), map);
      out.push_back(rewrite(now));
    }
    Stmt body = seq(std::move(out));
    for (std::size_t i = chain.size(); i-- > 0;) {
      if (!gone.count(chain[i])) body = allocate(chain[i]->buffer, body, chain[i]->annotations);
    }
    for (std::size_t i = merged.size(); i-- > 0;)
      body = allocate(merged[i].first, body, merged[i].second);
    return body;
  }

  static void place(const Life& item, std::vector<Slot>& slots) {
    Slot* best = nullptr;
    for (Slot& slot : slots) {
      const Buffer &held = slot.items[0].node->buffer, &b = item.node->buffer;
      if (slot.last >= item.first || held->scope != b->scope || held->dtype != b->dtype) continue;
      // The nearest size wastes least.
      if (!best || std::abs(slot.count - item.count) < std::abs(best->count - item.count))
        best = &slot;
    }
    if (!best) best = &slots.emplace_back();
    best->items.push_back(item);
    best->count = std::max(best->count, item.count);
    best->last = item.last;
  }

  static std::pair<Buffer, Annotations> merge(const Slot& slot) {
    const AllocateNode* first = slot.items[0].node;
    auto buffer = edit(first->buffer);
    buffer->shape = {make_int(slot.count)};
    Json names = Json::array();
    std::int64_t total = 0;
    if (const Json* before = find_annotation(first->annotations, "holds")) names = *before;
    for (const Life& item : slot.items) {
      buffer->align = std::max(buffer->align, item.node->buffer->align);
      total += item.count * buffer->dtype.bytes();
      if (item.node != first) names.push_back(item.node->buffer->name);
    }
    std::int64_t saved = total - slot.count * buffer->dtype.bytes();
    if (const Json* before = find_annotation(first->annotations, "saved_bytes"))
      saved += before->as_int();
    Annotations notes = with_annotation(first->annotations, "holds", std::move(names));
    return {buffer, with_annotation(std::move(notes), "saved_bytes", Json(saved))};
  }

  /// Drops the Allocate nodes that the sequence now makes itself.
  class Remove final : public Rewriter {
   public:
    explicit Remove(const std::unordered_set<const AllocateNode*>& gone) : gone_(gone) {}

   protected:
    Stmt rewrite_allocate(const Stmt& s) override {
      const auto* a = as<AllocateNode>(s);
      return gone_.count(a) ? Rewriter::rewrite(a->body) : Rewriter::rewrite_allocate(s);
    }

   private:
    const std::unordered_set<const AllocateNode*>& gone_;
  };
};

class StorageOfKernels final : public Rewriter {
 protected:
  Stmt rewrite_default(const Stmt& s) override {
    const auto* launch = as<LaunchNode>(s);
    if (!launch) return Rewriter::rewrite_default(s);
    // Roles run side by side: where a statement stands says nothing about when.
    if (uses_tokens(launch->body)) return s;
    Stmt body = Share().rewrite(launch->body);
    return body == launch->body ? s : make_ref<const LaunchNode>(launch->name, launch->axes, body);
  }
};

}  // namespace

PrimFunc share_storage(const PrimFunc& f) {
  bool launches = false, allocates = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    launches |= s->kind == StmtKind::launch;
    allocates |= s->kind == StmtKind::allocate;
  });
  if (!allocates) return f;
  Stmt body = launches ? StorageOfKernels().rewrite(f->body) : Share().rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

std::vector<SharedStorage> shared_storage(const PrimFunc& f) {
  std::vector<SharedStorage> out;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* a = as<AllocateNode>(s);
    const Json* holds = a ? find_annotation(a->annotations, "holds") : nullptr;
    if (!holds) return;
    SharedStorage row;
    row.buffer = a->buffer->name;
    for (const Json& name : holds->as_array()) row.holds.push_back(name.as_string());
    if (const Json* saved = find_annotation(a->annotations, "saved_bytes"))
      row.saved_bytes = saved->as_int();
    out.push_back(std::move(row));
  });
  return out;
}

}  // namespace weft::pass
