// SPDX-License-Identifier: Apache-2.0
#pragma once
// Integer quotients by numbers that a call brings: a multiplication and a shift in the kernel.

#include <bit>
#include <cstdint>

namespace weft::device {

/// n / extent = n * factor >> shift for 0 <= n < 2^31 (Granlund and Montgomery).
struct Reciprocal {
  std::int64_t factor, shift;
};
inline Reciprocal reciprocal_of(std::int64_t extent) {
  const int shift = 31 + std::bit_width(static_cast<std::uint64_t>(extent - 1));
  const std::uint64_t power = std::uint64_t{1} << shift, n = static_cast<std::uint64_t>(extent);
  return {static_cast<std::int64_t>(power / n + (power % n != 0)), shift};
}

}  // namespace weft::device
