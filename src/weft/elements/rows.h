// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which number a row of the tables has. To be included only by what expands the tables.

#include <algorithm>
#include <array>
#include <string_view>

#include "weft/elements/op.h"

namespace weft {

enum class Row : std::uint16_t {
#define UNARY(name, ...) name,
#define BINARY UNARY
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
  count_
};
inline constexpr int kOps = static_cast<int>(Row::count_);

enum class ReduceRow : std::uint16_t {
#define REDUCE(name, ...) name,
#include "weft/elements/reduce.def"
#undef REDUCE
  count_
};
inline constexpr int kReduceOps = static_cast<int>(ReduceRow::count_);

namespace row_numbers {

#define WEFT_TEXT(name) std::string_view(#name),
inline constexpr std::array kNamed = {WEFT_UNARY_OPS(WEFT_TEXT) WEFT_BINARY_OPS(WEFT_TEXT)};
inline constexpr std::array kNamedReduce = {WEFT_REDUCE_OPS(WEFT_TEXT)};
#undef WEFT_TEXT
#define UNARY(name, ...) std::string_view(#name),
#define BINARY UNARY
#define REDUCE UNARY
inline constexpr std::array kAll = {
#include "weft/elements/elementwise.def"
};
inline constexpr std::array kAllReduce = {
#include "weft/elements/reduce.def"
};
#undef UNARY
#undef BINARY
#undef REDUCE

/// The number of each row: of a name its place in the list of names, of others what follows.
template <std::size_t kRows, std::size_t kNames>
constexpr std::array<std::uint16_t, kRows> numbers(
    const std::array<std::string_view, kRows>& all,
    const std::array<std::string_view, kNames>& named) {
  std::array<std::uint16_t, kRows> out{};
  std::size_t next = kNames;
  for (std::size_t row = 0; row < kRows; ++row) {
    const auto found = std::find(named.begin(), named.end(), all[row]);
    out[row] = static_cast<std::uint16_t>(
        found == named.end() ? next++ : static_cast<std::size_t>(found - named.begin()));
  }
  return out;
}
/// A name without a row is an index out of range here, which does not compile.
template <std::size_t kRows>
constexpr std::array<std::uint16_t, kRows> inverse(
    const std::array<std::uint16_t, kRows>& numbers) {
  std::array<std::uint16_t, kRows> out{};
  for (std::size_t row = 0; row < kRows; ++row) out[numbers[row]] = static_cast<std::uint16_t>(row);
  return out;
}
inline constexpr auto kNumber = numbers(kAll, kNamed);
inline constexpr auto kRow = inverse(kNumber);
inline constexpr auto kReduceNumber = numbers(kAllReduce, kNamedReduce);
inline constexpr auto kReduceRow = inverse(kReduceNumber);

}  // namespace row_numbers

constexpr Op op_of(Row row) {
  return static_cast<Op>(row_numbers::kNumber[static_cast<std::size_t>(row)]);
}
constexpr ReduceOp op_of(ReduceRow row) {
  return static_cast<ReduceOp>(row_numbers::kReduceNumber[static_cast<std::size_t>(row)]);
}
/// Where the operation stands in arrays that a table is expanded into.
constexpr std::size_t row_of(Op op) { return row_numbers::kRow[static_cast<std::size_t>(op)]; }
constexpr std::size_t row_of(ReduceOp op) {
  return row_numbers::kReduceRow[static_cast<std::size_t>(op)];
}

static_assert(kOps <= kMostOps && kReduceOps <= kMostReduceOps);

}  // namespace weft
