// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stable sorting by digits of unsigned keys, eight bits a pass: threads and order of the passes
// around the kernels of sort_kernels.h. Passes whose digit is the same everywhere are left out, so
// small integers cost what they need.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "weft/host/sort_kernels.h"
#include "weft/runtime/pool.h"

namespace weft::radix {

/// Items above which threads share one sort.
inline constexpr std::int64_t kShared = 1 << 17;

/// What is sorted.
struct Layout {
  Elem item;          // names kernels: the unsigned integer of an item's size, complex128 for 16
  int digits;         // of a key
  int first;          // bit of the lowest digit in an item's first word
  DigitCountsFn all;  // counts all digits
  int used = digits;  // so many low ones differ; the others are not looked at
};

/// Sorts n items; `other` has room for as many. Returns where the result is. The result does not
/// depend on the number of threads.
template <typename Item>
Item* sort(const Layout& layout, Item* items, Item* other, std::int64_t n) {
  using I = std::int64_t;
  const SortTable& table = sort_kernels();
  const auto count = table.get<DigitFn>(SortKernel::digit, layout.item);
  const auto move = table.get<MoveFn>(SortKernel::move, layout.item);
  const auto offsets = table.get<OffsetsFn>(SortKernel::offsets, Elem::uint8);
  runtime::Pool& pool = runtime::Pool::shared();
  const I blocks = n >= kShared ? pool.threads() : 1;
  const I size = (n + blocks - 1) / blocks;
  auto part = [&](I b) { return std::clamp<I>(n - b * size, 0, size); };
  std::vector<I> counts(static_cast<std::size_t>(blocks * 256)), all;
  if (blocks == 1) {  // digits are counted in one pass, but for a few of them
    all.assign(static_cast<std::size_t>(layout.digits) * 256, 0);
    const bool few = layout.used * 2 <= layout.digits;
    for (int d = 0; few && d < layout.used; ++d)
      count(items, all.data() + d * 256, n, layout.first + 8 * d);
    if (!few) layout.all(items, all.data(), n);
  }
  for (int d = 0; d < layout.used; ++d) {
    const int bit = layout.first + 8 * d;
    if (blocks == 1) {
      std::copy_n(all.begin() + d * 256, 256, counts.begin());
    } else {
      std::fill(counts.begin(), counts.end(), 0);
      pool.parallel_for(blocks, 1, [&](I b, I end) {
        for (; b < end; ++b) count(items + b * size, counts.data() + b * 256, part(b), bit);
      });
    }
    I most = 0;
    offsets(counts.data(), &most, blocks);
    if (most == n) continue;
    pool.parallel_for(blocks, 1, [&](I b, I end) {
      for (; b < end; ++b) {
        I to[256];
        std::copy_n(counts.begin() + b * 256, 256, to);
        move(items + b * size, other, to, part(b), bit);
      }
    });
    std::swap(items, other);
  }
  return items;
}

}  // namespace weft::radix
