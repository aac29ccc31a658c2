// SPDX-License-Identifier: Apache-2.0
#pragma once
// Many short lines sorted at once, side by side: the exchanges of a sorting network are minima and
// maxima of whole vectors, one line to a lane.

#include <cstdint>
#include <vector>

#include "weft/elements/elem.h"

namespace weft {

/// (outer, n, inner) elements without gaps, of which the lines go along the middle axis.
struct Lines {
  std::int64_t outer, n, inner;
  std::int64_t count() const { return outer * inner; }
};

/// Is this faster than one line after the other? `items`: of positions (argsort).
bool suits_network(Elem e, const Lines& lines, bool items);
/// How many values have more than one form that sorting has to keep: -0 and NaN.
std::int64_t special_values(Elem e, const void* data, std::int64_t n);
/// In place; none of the values is special.
void sort_lines(Elem e, char* data, const Lines& lines, bool descending);
/// Positions of keys of 8 bytes are sorted in two steps: items of a key's upper half and its
/// position (`upper_items`), then runs of equal upper halves by items of the lower ones. `sort`
/// puts items in order. Where keys are less than 2^32 apart one step does (`whole_items`; false
/// elsewhere).
bool whole_items(const std::uint64_t* keys, std::int64_t n, std::uint64_t* items);
void upper_items(const std::uint64_t* keys, std::int64_t n, std::uint64_t* items);
void order_equal_uppers(const std::uint64_t* keys, std::int64_t n, std::uint64_t* items,
                        bool (*sort)(std::uint64_t* items, std::int64_t n));
/// Stable positions along lines that lie one after the other (`inner` is 1).
void argsort_lines(Elem e, const char* data, const Lines& lines, bool descending,
                   std::int64_t* out);

/// The k first positions of each line in the order of argsort, where lines lie one after the other.
class TopLines {
 public:
  TopLines(Elem e, const Lines& lines, std::int64_t k, bool descending);
  /// Is this faster than one line after the other?
  bool suits() const;
  void run(const char* data, std::int64_t* out) const;

 private:
  Elem elem_;
  Lines lines_;
  std::int64_t k_;
  bool descending_;
  std::vector<std::uint8_t> pairs_;  // exchanges whose results reach the places that are kept
};

}  // namespace weft
