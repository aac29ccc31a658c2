// SPDX-License-Identifier: Apache-2.0
#pragma once
// What models of products have chosen, by shape: a choice compares hundreds of candidates, which
// takes longer than most kernels that it is made for.

#include <cstdint>
#include <unordered_map>

#include "weft/devices/kernel.h"
#include "weft/rules/gemm_tiles.h"

namespace weft::device {

struct ProductAsked {
  const Grid* grid = nullptr;
  rules::GemmShape shape;
  double copied = 0;  // bytes that are copied for it
  bool operator==(const ProductAsked&) const = default;
};

/// Of one thread. The shapes of a step, forward and back, are kept side by side: those of a layer's
/// gradients are permutations of its own.
template <typename Choice>
class KeptChoices {
 public:
  template <typename Choose>
  const Choice& find(const ProductAsked& asked, Choose&& choose) {
    constexpr std::size_t kMost = 4096;
    if (const auto found = kept_.find(asked); found != kept_.end()) return found->second;
    if (kept_.size() >= kMost) kept_.clear();
    return kept_.emplace(asked, choose()).first->second;
  }

 private:
  struct Hash {
    std::size_t operator()(const ProductAsked& x) const {
      const rules::GemmShape& s = x.shape;
      auto h = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(x.grid));
      for (std::int64_t v : {s.m, s.n, s.k, s.batches, s.pitch_a, s.pitch_b,
                             std::int64_t{s.a_along_m}, std::int64_t{s.b_along_n}})
        h = (h ^ static_cast<std::uint64_t>(v)) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
      return h;
    }
  };
  std::unordered_map<ProductAsked, Choice, Hash> kept_;
};

}  // namespace weft::device
