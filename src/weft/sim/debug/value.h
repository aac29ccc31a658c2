// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements as text, lines of at most 80 columns.

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/dtype.h"

namespace weft::sim {

inline constexpr std::size_t kColumns = 80;

struct ValueFormat {
  DType type = dtypes::uint32;
  bool hex = false;
};

/// "f32", "i16", "bf16", "float32", "hex": `given` with what the text changes. Throws Error(value,
/// "debug.type").
ValueFormat parse_format(std::string_view text, DType given);
std::string value_text(const void* element, const ValueFormat& format);
/// Elements in columns, with the index of the first of each line.
std::vector<std::string> value_lines(const std::string& bytes, const ValueFormat& format,
                                     std::int64_t first);
/// Breaks lines longer than 80 columns at blanks; continued lines are indented.
std::string wrapped(std::string_view line);

}  // namespace weft::sim
