// SPDX-License-Identifier: Apache-2.0
#pragma once
// What launches of a program took, to tell what the next one will take: those with the same number
// of QPUs and the same scalars do alike.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/hash.h"

namespace weft::qpu::hw {

class PastLaunches {
 public:
  static std::uint64_t key(int qpus, std::span<const std::int64_t> scalars) {
    return hash_bytes(scalars.data(), scalars.size_bytes(), static_cast<std::uint64_t>(qpus));
  }
  /// Whether one with this key is remembered.
  bool knows(std::uint64_t key) const { return find(key) != past_.end(); }
  /// Instructions of the last launch with this key, or else of the last one; 0: there was none.
  std::int64_t expected(std::uint64_t key) const {
    if (past_.empty()) return 0;
    const auto at = find(key);
    return (at == past_.end() ? past_.front() : *at).instructions;
  }
  void note(std::uint64_t key, std::int64_t instructions) {
    if (const auto at = find(key); at != past_.end()) past_.erase(at);
    if (past_.size() == kMost) past_.pop_back();
    past_.insert(past_.begin(), {key, instructions});
  }

 private:
  static constexpr std::size_t kMost = 16;
  struct Past {
    std::uint64_t key = 0;
    std::int64_t instructions = 0;
  };
  std::vector<Past>::const_iterator find(std::uint64_t key) const {
    return std::find_if(past_.begin(), past_.end(), [&](const Past& p) { return p.key == key; });
  }
  std::vector<Past> past_;  // the latest first
};

}  // namespace weft::qpu::hw
