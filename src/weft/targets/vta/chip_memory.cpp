// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/chip_memory.h"

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::vta {

using namespace ir;

namespace {

constexpr const char* kPlaces = "vta.places";

class Keep final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const bool thread = as<ForNode>(s)->for_kind == ForKind::bound;
    depth_ += thread;
    Stmt out = Rewriter::rewrite_for(s);
    depth_ -= thread;
    const auto* loop = as<ForNode>(out);
    if (loop->for_kind != ForKind::unrolled) return out;
    return make_for(loop->var, loop->min, loop->extent, loop->body, ForKind::serial, "",
                    loop->annotations);
  }
  Stmt rewrite_allocate(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_allocate(s);
    const auto* a = as<AllocateNode>(inner);
    if (depth_ == 0 || !a->buffer->scope.starts_with("vta.")) return inner;
    Annotations notes = a->annotations;
    notes.emplace_back(kPlaces, Json(1));
    return allocate(a->buffer, a->body, std::move(notes));
  }

 private:
  int depth_ = 0;
};

}  // namespace

PrimFunc keep_places(const PrimFunc& f) {
  Stmt body = Keep().rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

std::int64_t ChipMemory::enter(const ir::AllocateNode* a, MemType mem, std::int64_t elements) {
  std::int64_t at = place(a, mem, elements);
  if (at >= 0) live_.push_back({a->buffer.get(), {mem, at, elements}});
  return at;
}

const ChipMemory::Placed* ChipMemory::find(const ir::BufferNode* b) const {
  for (auto it = live_.rbegin(); it != live_.rend(); ++it) {
    if (it->first == b) return &it->second;
  }
  return nullptr;
}

bool ChipMemory::free_at(MemType mem, std::int64_t at, std::int64_t elements, bool reserved) const {
  for (const auto& [buffer, p] : live_) {
    if (p.mem == mem && at < p.at + p.elements && p.at < at + elements) return false;
  }
  for (const auto& [node, s] : slots_) {
    if (!reserved || s.mem != mem) continue;
    for (std::int64_t other : s.at) {
      if (at < other + s.elements && other < at + elements) return false;
    }
  }
  return true;
}

std::int64_t ChipMemory::find_room(MemType mem, std::int64_t elements, bool reserved) const {
  std::vector<std::int64_t> candidates{0};
  for (const auto& [buffer, p] : live_) candidates.push_back(p.at + p.elements);
  for (const auto& [node, s] : slots_) {
    for (std::int64_t other : s.at) candidates.push_back(other + s.elements);
  }
  std::sort(candidates.begin(), candidates.end());
  for (std::int64_t at : candidates) {
    if (at + elements <= c_.depth(mem) && free_at(mem, at, elements, reserved)) return at;
  }
  return -1;
}

std::int64_t ChipMemory::place(const ir::AllocateNode* a, MemType mem, std::int64_t elements) {
  Slots& slots = slots_[a];
  slots.mem = mem;
  slots.elements = std::max(slots.elements, elements);
  const bool one = std::any_of(a->annotations.begin(), a->annotations.end(),
                               [](const auto& note) { return note.first == kPlaces; });
  const std::size_t places = one ? 1 : 2;
  auto wanted = static_cast<std::size_t>(slots.count++) % places;
  if (wanted < slots.at.size() && free_at(mem, slots.at[wanted], elements, false))
    return slots.at[wanted];
  std::int64_t at = find_room(mem, elements, true);
  if (at >= 0) {
    if (slots.at.size() < places) slots.at.push_back(at);
    return at;
  }
  for (std::int64_t old : slots.at) {
    if (free_at(mem, old, elements, false)) return old;
  }
  return find_room(mem, elements, false);  // over what is kept for buffers that may come again
}

}  // namespace weft::vta
