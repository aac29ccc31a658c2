// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/part.h"

#include <algorithm>

#include "weft/ir/build.h"

namespace weft::schedule {

using namespace ir;

namespace {

using Buffers = std::vector<const BufferNode*>;

const BlockRealizeNode* root_of(const Schedule& s) { return as<BlockRealizeNode>(s.func()->body); }

bool meet(const Buffers& a, const Buffers& b) {
  return std::any_of(a.begin(), a.end(), [&](const BufferNode* x) {
    return std::find(b.begin(), b.end(), x) != b.end();
  });
}
/// Whether two statements must stay in their order.
bool conflict(const Accesses::Of& a, const Accesses::Of& b) {
  return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

bool holds(const Stmt& s, std::uint64_t block) { return find_block(s, block).has_value(); }

// Marks are told by what no program has: a number evaluated beside nests, a buffer without a name.
Stmt stmt_mark(std::size_t at) { return evaluate(make_int(static_cast<std::int64_t>(at))); }
Buffer buffer_mark(std::size_t at) {
  return make_buffer("", dtypes::int32, {make_int(static_cast<std::int64_t>(at))});
}
std::optional<std::size_t> mark_of(const Stmt& s) {
  std::int64_t at = 0;
  const auto* e = as<EvaluateNode>(s);
  return e && is_const_int(e->value, &at) ? std::optional(static_cast<std::size_t>(at))
                                          : std::nullopt;
}
std::optional<std::size_t> mark_of(const Buffer& b) {
  std::int64_t at = 0;
  return b->name.empty() && is_const_int(b->shape[0], &at)
             ? std::optional(static_cast<std::size_t>(at))
             : std::nullopt;
}

/// What is kept of a list, with a mark for each run of the rest.
template <typename T, typename Kept, typename Mark>
void divide(const std::vector<T>& all, const Kept& kept, const Mark& mark, std::vector<T>& part,
            std::vector<std::vector<T>>& rest, Part::Key& key) {
  bool open = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const T& t = all[i];
    if (kept(i)) {
      part.push_back(t);
      key.push_back(t.get());
      open = false;
      continue;
    }
    if (!open) {
      part.push_back(mark(rest.size()));
      key.push_back(nullptr);
      rest.emplace_back();
      open = true;
    }
    rest.back().push_back(t);
  }
}

template <typename T>
std::vector<T> together(const std::vector<T>& part, const std::vector<std::vector<T>>& rest) {
  std::vector<T> out;
  for (const T& t : part) {
    if (const auto at = mark_of(t)) out.insert(out.end(), rest[*at].begin(), rest[*at].end());
    else out.push_back(t);
  }
  return out;
}

IRModule with_root(const Schedule& s, std::vector<Stmt> stmts, std::vector<Buffer> buffers) {
  const PrimFunc f = s.func();
  const auto* root = as<BlockRealizeNode>(f->body);
  auto block = edit(root->block);
  block->body = seq(std::move(stmts));
  block->alloc_buffers = std::move(buffers);
  const auto named = std::find_if(s.mod()->functions.begin(), s.mod()->functions.end(),
                                  [&](const auto& each) { return each.second == f; });
  return with_body(s.mod(), named->first, with_block(root, std::move(block)));
}

}  // namespace

const Accesses::Of& Accesses::of(const Stmt& s) {
  const auto found = known_.find(s.get());
  if (found != known_.end()) return found->second;
  Of& out = known_[s.get()];
  out.stmt = s;
  for_each_stmt(s, [&](const Stmt& inner) {
    const auto* realize = as<BlockRealizeNode>(inner);
    if (!realize) return;
    for (const BufferRegion& r : realize->block->reads) out.reads.push_back(r.buffer.get());
    for (const BufferRegion& w : realize->block->writes) out.writes.push_back(w.buffer.get());
  });
  for (Buffers* list : {&out.reads, &out.writes}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return out;
}

Part::Part(const Schedule& whole, BlockRef block, Accesses& accesses) {
  const BlockRealizeNode* root = root_of(whole);
  const std::vector<Stmt> all = statements(root->block->body);
  const auto own = static_cast<std::size_t>(
      std::find_if(all.begin(), all.end(), [&](const Stmt& s) { return holds(s, block.id); }) -
      all.begin());
  std::vector<const Accesses::Of*> of;
  for (const Stmt& s : all) of.push_back(&accesses.of(s));
  std::vector<bool> kept(all.size());
  std::vector<std::size_t> users;
  for (std::size_t i = 0; i < all.size(); ++i) {
    kept[i] =
        i == own || meet(of[own]->writes, of[i]->reads) || meet(of[own]->writes, of[i]->writes);
    if (kept[i] && i != own) users.push_back(i);
  }
  for (const std::size_t u : users) {
    for (std::size_t i = std::min(u, own) + 1; i < std::max(u, own); ++i)
      if (conflict(*of[i], *of[u]) || conflict(*of[i], *of[own])) kept[i] = true;
  }
  // What a caller's buffer holds before a nest of the function writes it is part of the program.
  const std::vector<Buffer>& buffers = root->block->alloc_buffers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const BufferNode* w : of[i]->writes)
      kept[i] = kept[i] || (std::binary_search(of[own]->reads.begin(), of[own]->reads.end(), w) &&
                            std::none_of(buffers.begin(), buffers.end(),
                                         [&](const Buffer& b) { return b.get() == w; }));
  }
  Buffers used;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!kept[i]) continue;
    used.insert(used.end(), of[i]->reads.begin(), of[i]->reads.end());
    used.insert(used.end(), of[i]->writes.begin(), of[i]->writes.end());
  }
  key_.push_back(all[own].get());
  divide(
      all, [&](std::size_t i) { return static_cast<bool>(kept[i]); }, stmt_mark, stmts_, between_,
      key_);
  divide(
      buffers,
      [&](std::size_t i) {
        return std::find(used.begin(), used.end(), buffers[i].get()) != used.end();
      },
      buffer_mark, buffers_, apart_, key_);
}

Schedule Part::begin(const Schedule& whole) const {
  Schedule out;
  out.state_ = whole.state_;
  out.state_.mod = with_root(whole, stmts_, buffers_);
  out.start_ = out.state_.mod;
  out.random_ = whole.random_;
  return out;
}

void Part::join(Schedule& whole, const Schedule& made) const {
  const auto* root = root_of(made);
  whole.state_.mod = with_root(whole, together(statements(root->block->body), between_),
                               together(root->block->alloc_buffers, apart_));
  for (const TraceEntry& e : made.trace().entries()) whole.trace_.append(e);
}

}  // namespace weft::schedule
