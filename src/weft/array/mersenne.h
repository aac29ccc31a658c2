// SPDX-License-Identifier: Apache-2.0
#pragma once
// The generator MT19937 (Matsumoto and Nishimura, "Mersenne Twister", TOMACS 1998) at the state of
// another library: its next numbers, as that library would draw them, and the state behind them.

#include <cstdint>

#include "weft/array/ndarray.h"

namespace weft {

class Mersenne {
 public:
  static constexpr int kWords = 624;

  /// `next`: which of the words comes next, kWords where all of them are used.
  Mersenne(const std::uint32_t* words, int next);
  const std::uint32_t* words() const { return words_; }
  int next() const { return next_; }

  /// `count` numbers in [0, 1): 24 bits of a word for float32, 53 bits of two for float64.
  NDArray uniform(const Ref<Device>& host, std::int64_t count, Elem elem);
  /// `count` truth values: whether the next float64 of uniform is below p.
  NDArray below(const Ref<Device>& host, std::int64_t count, double p);

 private:
  template <int kPer, typename Finish>
  void draw(std::int64_t count, const Finish& finish);
  void take(std::int64_t count, std::uint32_t* to);
  void refill();

  alignas(64) std::uint32_t words_[kWords];
  int next_;
};

}  // namespace weft
