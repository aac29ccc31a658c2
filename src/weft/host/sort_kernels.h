// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels of sorting by digits (radix.h, sort.cpp), which the generator makes as programs: keys of
// values and back, items of a key and a position, the counting and the moving pass.

#include <cstdint>

#include "weft/elements/elem.h"

namespace weft {

/// In the order of the table's first index. The second is the type of the values, or the unsigned
/// integer of an item's size; items of 16 bytes, two words, stand at complex128.
enum class SortKernel : std::int16_t {
  keys,         // KeysFn: values to keys
  values,       // keys to values
  special,      // DigitCountsFn: how many values are -0 or NaN, how many are not finite (floats)
  items,        // ItemsFn: key << 32 | position, for keys of at most 4 bytes
  pairs,        // ItemsFn: the words key, position
  item_places,  // ItemPlacesFn, of `items`
  pair_places,
  digits,       // DigitCountsFn: all digits of keys, 256 counts each
  item_digits,  // of the keys in items of 8 bytes; the type is the key's
  digit,        // DigitFn: one
  move,         // MoveFn
  offsets,      // OffsetsFn, at uint8
  part,         // PartFn, at uint32 and uint64
  count_,
};
inline constexpr int kSortKernels = static_cast<int>(SortKernel::count_);

/// Keys of values: unsigned integers whose order is the values'; every NaN has the largest. `flip`
/// is 0, or -1 for the complement (descending), in which NaN stays last.
using KeysFn = void (*)(const void* in, void* out, std::int64_t n, std::int64_t flip);
/// Keys with positions from `first` on.
using ItemsFn = void (*)(const void* in, void* out, std::int64_t n, std::int64_t first,
                         std::int64_t flip);
using ItemPlacesFn = void (*)(const void* in, std::int64_t* out, std::int64_t n);
/// Adds to counts.
using DigitCountsFn = void (*)(const void* in, std::int64_t* counts, std::int64_t n);
using DigitFn = void (*)(const void* in, std::int64_t* counts, std::int64_t n, std::int64_t bit);
/// out[to[digit]++] = item for each item; its digit begins at a bit of the first word.
using MoveFn = void (*)(const void* in, void* out, std::int64_t* to, std::int64_t n,
                        std::int64_t bit);
/// Counts of blocks become where each block's items of a digit go; most[0]: the largest count of a
/// digit.
using OffsetsFn = void (*)(std::int64_t* counts, std::int64_t* most, std::int64_t blocks);

/// Keys below bounds[0] to `left`, from there to bounds[1] to `middle`, above it to `right`, each
/// in order; counts become those of the first two. counts[0] of 0: `middle` alone is written.
/// `left` may be `in`; parts have room for as many keys as a vector has behind their end.
using PartFn = void (*)(const void* in, const void* bounds, void* left, void* middle, void* right,
                        std::int64_t* counts, std::int64_t n);
/// Keys of the widest vector.
inline constexpr std::int64_t kPartRoom = 16;

struct SortTable {
  void (*function[kSortKernels][kElems])() = {};
  template <typename F>
  F get(SortKernel k, Elem e) const {
    return reinterpret_cast<F>(function[static_cast<int>(k)][static_cast<int>(e)]);
  }
};
const SortTable& sort_kernels();

}  // namespace weft
