// SPDX-License-Identifier: Apache-2.0
#pragma once
// Limits of machines whose instructions add products of neighbouring narrow numbers to sums of 32
// bits: how many products one lane gets.

namespace weft::limits {
inline constexpr const char* kDotMixedBytes =
    "dot_mixed_bytes";  // bytes with a sign by those without
inline constexpr const char* kDotEqualBytes = "dot_equal_bytes";  // both have a sign, or none has
inline constexpr const char* kDotWords = "dot_words";             // int16
inline constexpr const char* kDotBfloat16 = "dot_bfloat16";
}  // namespace weft::limits
