// SPDX-License-Identifier: Apache-2.0
#pragma once
// Selection of keys by parting at one of them, in vectors whose lanes move together (AVX-512).

#include <cstdint>
#include <span>

namespace weft {

/// Elements behind a row's end that `room` of quick_select must have.
inline constexpr std::int64_t kSelectRoom = 16;

/// Does this processor have the instructions?
bool quick_select_runs();

/// Puts the keys at `places`, ascending and less than n, where sorting would: smaller ones before
/// each, larger ones behind. `room`: n + kSelectRoom keys that change.
void quick_select(std::uint32_t* x, std::int64_t n, std::span<const std::int64_t> places,
                  std::uint32_t* room);
void quick_select(std::uint64_t* x, std::int64_t n, std::span<const std::int64_t> places,
                  std::uint64_t* room);

}  // namespace weft
