// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stable sorting by digits of unsigned keys, eight bits a pass: threads and order of the passes
// around the kernels of sort_kernels.h. Passes whose digit is the same everywhere are left out, so
// small integers cost what they need.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "weft/array/sort_kernels.h"
#include "weft/runtime/pool.h"

namespace weft::radix {

/// Items above which threads share one sort.
inline constexpr std::int64_t kShared = 1 << 17;

/// What is sorted: items of so many bytes, their keys' bytes from `first` on (of the least
/// significant digit; the next ones follow).
struct Layout {
  Elem item;    // names kernels: the unsigned integer of an item's size, complex128 for 16
  int digits;   // of a key
  int first;    // byte of the first digit
  CountFn all;  // counts all digits
};

/// Sorts n items; `other` has room for as many. Returns where the result is. The result does not
/// depend on the number of threads.
template <typename Item>
Item* sort(const Layout& layout, Item* items, Item* other, std::int64_t n) {
  static_assert(std::endian::native == std::endian::little, "digits are bytes, the lowest first");
  using I = std::int64_t;
  const SortTable& table = sort_kernels();
  const auto count = table.get<CountFn>(SortKernel::digit, layout.item);
  const auto move = table.get<MoveFn>(SortKernel::move, layout.item);
  const auto offsets = table.get<OffsetsFn>(SortKernel::offsets, Elem::uint8);
  runtime::Pool& pool = runtime::Pool::shared();
  const I blocks = n >= kShared ? pool.threads() : 1;
  const I size = (n + blocks - 1) / blocks;
  auto digit_of = [&](const Item* at, int d) {
    return reinterpret_cast<const std::uint8_t*>(at) + layout.first + d;
  };
  auto part = [&](I b) { return std::clamp<I>(n - b * size, 0, size); };
  std::vector<I> counts(static_cast<std::size_t>(blocks * 256)), all;
  if (blocks == 1) {  // all digits are counted in one pass
    all.assign(static_cast<std::size_t>(layout.digits) * 256, 0);
    layout.all(digit_of(items, 0), all.data(), n);
  }
  for (int d = 0; d < layout.digits; ++d) {
    if (blocks == 1) {
      std::copy_n(all.begin() + d * 256, 256, counts.begin());
    } else {
      std::fill(counts.begin(), counts.end(), 0);
      pool.parallel_for(blocks, 1, [&](I b, I end) {
        for (; b < end; ++b) count(digit_of(items + b * size, d), counts.data() + b * 256, part(b));
      });
    }
    I most = 0;
    offsets(counts.data(), &most, blocks);
    if (most == n) continue;
    pool.parallel_for(blocks, 1, [&](I b, I end) {
      for (; b < end; ++b) {
        I to[256];
        std::copy_n(counts.begin() + b * 256, 256, to);
        move(items + b * size, digit_of(items + b * size, d), other, to, part(b));
      }
    });
    std::swap(items, other);
  }
  return items;
}

}  // namespace weft::radix
