// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stable sorting by digits of unsigned keys. Every value type has a key whose order as an unsigned
// integer is the order of the values: -0 and 0 share one, every NaN has the largest. Passes whose
// digit is the same everywhere are left out, so small integers cost what they need.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "weft/runtime/pool.h"

namespace weft::radix {

template <int kBytes>
struct Word;
template <>
struct Word<1> {
  using type = std::uint8_t;
};
template <>
struct Word<2> {
  using type = std::uint16_t;
};
template <>
struct Word<4> {
  using type = std::uint32_t;
};
template <>
struct Word<8> {
  using type = std::uint64_t;
};
template <typename T>
using Key = typename Word<sizeof(T)>::type;

/// `descending`: the complement, but NaN stays last.
template <typename T>
Key<T> key_of(T x, bool descending) {
  using K = Key<T>;
  constexpr K top = static_cast<K>(K{1} << (8 * sizeof(T) - 1));
  K key;
  if constexpr (std::is_floating_point_v<T>) {
    const K bits = std::bit_cast<K>(x == 0 ? T{0} : x);
    key = bits & top ? ~bits : bits | top;
    if (descending) key = ~key;
    return x != x ? ~K{0} : key;
  } else {
    key = static_cast<K>(x);
    if constexpr (std::is_signed_v<T>) key = static_cast<K>(key ^ top);
    return descending ? static_cast<K>(~key) : key;
  }
}

/// The value of a key that is not NaN's.
template <typename T>
T value_of(Key<T> key, bool descending) {
  using K = Key<T>;
  constexpr K top = static_cast<K>(K{1} << (8 * sizeof(T) - 1));
  if (descending) key = static_cast<K>(~key);
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(key & top ? static_cast<K>(key ^ top) : static_cast<K>(~key));
  } else {
    if constexpr (std::is_signed_v<T>) key = static_cast<K>(key ^ top);
    return static_cast<T>(key);
  }
}

/// Items above which threads share one sort.
inline constexpr std::int64_t kShared = 1 << 17;

/// Sorts n items by key(item), an unsigned integer; `other` has room for as many. Returns where the
/// result is. The result does not depend on the number of threads.
template <typename Item, typename KeyFn>
Item* sort(Item* items, Item* other, std::int64_t n, const KeyFn& key) {
  using K = decltype(key(*items));
  constexpr int kDigits = static_cast<int>(sizeof(K));
  runtime::Pool& pool = runtime::Pool::shared();
  const std::int64_t blocks = n >= kShared ? pool.threads() : 1;
  const std::int64_t size = (n + blocks - 1) / blocks;
  auto digit = [](K k, int d) { return static_cast<std::size_t>(k >> (8 * d) & 255); };
  std::vector<std::int64_t> counts(static_cast<std::size_t>(blocks * 256)), all;
  if (blocks == 1) {  // all digits are counted in one pass
    all.assign(static_cast<std::size_t>(kDigits) * 256, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      const K k = key(items[i]);
      for (int d = 0; d < kDigits; ++d) ++all[static_cast<std::size_t>(d) * 256 + digit(k, d)];
    }
  }
  for (int d = 0; d < kDigits; ++d) {
    if (blocks == 1) {
      std::copy_n(all.begin() + d * 256, 256, counts.begin());
    } else {
      pool.parallel_for(blocks, 1, [&](std::int64_t b, std::int64_t end) {
        for (; b < end; ++b) {
          std::int64_t mine[256] = {};
          for (std::int64_t i = b * size, stop = std::min(n, i + size); i < stop; ++i)
            ++mine[digit(key(items[i]), d)];
          std::copy_n(mine, 256, counts.begin() + b * 256);
        }
      });
    }
    std::int64_t at = 0, most = 0;
    for (std::size_t v = 0; v < 256; ++v) {
      const std::int64_t before = at;
      for (std::int64_t b = 0; b < blocks; ++b) {
        std::int64_t& c = counts[static_cast<std::size_t>(b) * 256 + v];
        const std::int64_t held = c;
        c = at;
        at += held;
      }
      most = std::max(most, at - before);
    }
    if (most == n) continue;
    pool.parallel_for(blocks, 1, [&](std::int64_t b, std::int64_t end) {
      for (; b < end; ++b) {
        std::int64_t to[256];
        std::copy_n(counts.begin() + b * 256, 256, to);
        for (std::int64_t i = b * size, stop = std::min(n, i + size); i < stop; ++i) {
          const Item item = items[i];
          other[to[digit(key(item), d)]++] = item;
        }
      }
    });
    std::swap(items, other);
  }
  return items;
}

}  // namespace weft::radix
