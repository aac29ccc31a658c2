// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/facts.h"

#include "weft/base/hash.h"

namespace weft::schedule {

Facts::Key key_of(std::initializer_list<const Leaf*> leaves,
                  std::initializer_list<const ir::BufferRegion*> regions) {
  Facts::Key key;
  key.reserve(64);
  for (const Leaf* leaf : leaves) {
    key.push_back(leaf->realize);
    for (const ir::ForNode* loop : leaf->loops)
      key.insert(key.end(), {loop->var.get(), loop->min.get(), loop->extent.get()});
    key.push_back(nullptr);
  }
  key.insert(key.end(), regions.begin(), regions.end());  // inside the blocks of the nests
  return key;
}

std::size_t Facts::Hash::operator()(const Key& key) const {
  std::uint64_t h = key.size();
  for (const void* p : key) h = (h ^ reinterpret_cast<std::uintptr_t>(p)) * 0x9e3779b97f4a7c15ull;
  return mix64(h);
}

std::optional<bool> Facts::find(const Key& key) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second.value);
}

void Facts::insert(Key key, Owners owners, bool value) {
  constexpr std::size_t kMostFacts = 4096;
  std::lock_guard lock(mutex_);
  if (entries_.size() >= kMostFacts) entries_.clear();
  entries_.insert_or_assign(std::move(key), Entry{std::move(owners), value});
}

}  // namespace weft::schedule
