// SPDX-License-Identifier: Apache-2.0
#pragma once
// A 64-bit hash for structural hashes and content addresses. Not for secrets. The mixing step is
// the "splitmix64" finalizer (Steele, Lea, Flood, OOPSLA 2014), chosen because it is short and
// avalanches.

#include <cstdint>
#include <cstring>
#include <string_view>

namespace weft {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

constexpr std::uint64_t hash_combine(std::uint64_t seed, std::uint64_t value) {
  return mix64(seed ^ (mix64(value) + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2)));
}

inline std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed = 0) {
  const unsigned char* p = static_cast<const unsigned char*>(data);
  std::uint64_t h = mix64(seed ^ size);
  while (size >= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    h = hash_combine(h, word);
    p += 8;
    size -= 8;
  }
  std::uint64_t tail = 0;
  std::memcpy(&tail, p, size);
  return hash_combine(h, tail);
}

inline std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0) {
  return hash_bytes(text.data(), text.size(), seed);
}

}  // namespace weft
