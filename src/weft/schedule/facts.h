// SPDX-License-Identifier: Apache-2.0
#pragma once
// What was proved of nests, for as long as steps leave them alone.

#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/schedule/tree.h"

namespace weft::schedule {

/// Remembered answers about nests. A key is the nodes that an answer depends on: a step that leaves
/// them alone leaves the answer true, whatever it did around them.
class Facts {
 public:
  using Key = std::vector<const void*>;
  /// What keeps the nodes of a key alive.
  struct Owners {
    std::vector<ir::Stmt> stmts;
    ir::Exprs exprs;
  };
  /// Null when nothing is known.
  std::optional<bool> find(const Key& key) const;
  void insert(Key key, Owners owners, bool value);

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Entry {
    Owners owners;
    bool value;
  };
  mutable std::mutex mutex_;  // copies of a schedule share their facts
  std::unordered_map<Key, Entry, Hash> entries_;
};

/// The nodes on which an answer about these nests and regions of theirs depends.
Facts::Key key_of(std::initializer_list<const Leaf*> leaves,
                  std::initializer_list<const ir::BufferRegion*> regions);

/// The answer that is known, or that `ask` finds.
template <typename Ask>
bool recall(Facts* facts, std::initializer_list<const Leaf*> leaves,
            std::initializer_list<const ir::BufferRegion*> regions, const Ask& ask) {
  if (!facts) return ask();
  Facts::Key key = key_of(leaves, regions);
  if (const auto known = facts->find(key)) return *known;
  const bool answer = ask();
  Facts::Owners owners;
  for (const Leaf* leaf : leaves) {
    owners.stmts.emplace_back(leaf->realize);
    for (const ir::ForNode* loop : leaf->loops)
      owners.exprs.insert(owners.exprs.end(), {loop->var, loop->min, loop->extent});
  }
  facts->insert(std::move(key), std::move(owners), answer);
  return answer;
}

}  // namespace weft::schedule
