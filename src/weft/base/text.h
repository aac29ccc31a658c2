// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text helpers that everyone needs: concatenation without format strings, joining, near misses.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

namespace detail {
inline void append(std::string& out, std::string_view text) { out.append(text); }
inline void append(std::string& out, const char* text) { out.append(text); }
inline void append(std::string& out, char c) { out.push_back(c); }
inline void append(std::string& out, bool value) { out.append(value ? "true" : "false"); }
void append(std::string& out, double value);
template <std::integral T>
requires(!std::same_as<T, bool> && !std::same_as<T, char>) void append(std::string& out, T value) {
  out.append(std::to_string(value));
}
}  // namespace detail

/// cat("loop ", name, " has extent ", 10): strings, characters, integers, bool, double.
template <typename... Ts>
std::string cat(const Ts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

/// The shortest decimal text that reads back as the same double ("0.1", "1e+30", "nan", "inf").
std::string shortest(double value);
/// Same for float.
std::string shortest(float value);

/// "0x1f", with at least `digits` hexadecimal digits.
std::string hex(std::uint64_t value, int digits = 1);

/// "a, b, c".
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// Levenshtein distance; for "did you mean".
int edit_distance(std::string_view a, std::string_view b);

/// "did you mean \"x\"?" or "" when nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

/// `line` of `source` (1-based) with a caret under `column` (1-based).
std::string caret_line(std::string_view source, int line, int column, int width = 1);

/// "1.5 MiB".
std::string human_bytes(std::uint64_t bytes);

}  // namespace weft
