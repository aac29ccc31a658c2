// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the parts of a stage's arrays lie on the PEs, as the plan of a kernel says: from a buffer
// to the words that all PEs are sent, and from words that come back into the buffer.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/json.h"

namespace weft::wse {

std::vector<std::int64_t> numbers(const Json& list);

/// The part of one stage's plan that moving data needs.
struct PlanIter {
  std::int64_t extent, chunk;
  bool reduce, travels;
  int spread;
  explicit PlanIter(const Json& j);
};

struct PlanArray {
  std::string name;
  std::size_t buffer;
  std::vector<std::vector<std::int64_t>> coef;
  std::vector<std::int64_t> base, extent, strides;
  bool kept = false;
  std::int64_t size = 1;
  explicit PlanArray(const Json& j);
  /// Where the array of the PE whose iterators begin at `low` starts in dimension d.
  std::int64_t origin(std::size_t d, const std::vector<std::int64_t>& low) const;
};

/// A buffer in the memory beside the wafer.
struct PlanBuffer {
  char* at = nullptr;
  std::int64_t bytes = 4;  // of an element
  std::vector<std::int64_t> shape;
};

/// How one array of one stage is divided over a rectangle.
struct Distribution {
  std::vector<PlanIter> iters;
  PlanArray array;
  std::int64_t width, height;

  /// The boxes of all PEs, one word an element; what lies outside the buffer is zero and is never
  /// used.
  std::vector<std::uint32_t> words_of(const PlanBuffer& from) const;
  /// Every point of the iterators comes from the PE that owns it, reductions from the chain's end.
  /// Throws Error(io, "wse.plan") where a point lies outside the buffer.
  void put_back(const std::vector<std::uint32_t>& words, const PlanBuffer& to) const;
  /// The same for an array that a program reads: all words of its boxes are the buffer's.
  void put_boxes_back(const std::vector<std::uint32_t>& words, const PlanBuffer& to) const;
  /// The word of each element of a buffer on each PE that holds it, as (PE, element, word) in
  /// order. `boxes`: of an array that is read; otherwise of a result.
  struct Place {
    std::int64_t pe, element;
    std::size_t word;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places(const std::vector<std::int64_t>& shape, bool boxes) const;
  /// Throws what put_back would.
  void check(const std::vector<std::int64_t>& shape) const;
  std::int64_t words() const { return width * height * array.size; }

 private:
  /// Calls f(word, element of the buffer) for each point that comes back.
  template <typename F>
  void for_each_in_boxes(const std::vector<std::int64_t>& shape, F&& f) const;
  template <typename F>
  void for_each_result(const std::vector<std::int64_t>& shape, F&& f) const;
  std::vector<std::int64_t> starts(std::int64_t x, std::int64_t y) const;
};

}  // namespace weft::wse
