// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text helpers that everyone needs: concatenation without format strings, joining, near misses.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// One argument of cat(): a string, character, number or bool as text. Not a template over the
/// whole call: there are thousands of calls, and each would be compiled by itself.
class Piece {
 public:
  Piece(std::string_view text) : data_(text.data()), size_(text.size()) {}
  Piece(const std::string& text) : data_(text.data()), size_(text.size()) {}
  Piece(const char* text) : Piece(std::string_view(text)) {}
  Piece(char c) : data_(digits_), size_(1) { digits_[0] = c; }
  Piece(bool value) : Piece(std::string_view(value ? "true" : "false")) {}
  Piece(float value);
  Piece(double value);
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Piece(T value) : data_(digits_) {
    if constexpr (std::signed_integral<T>) write(static_cast<long long>(value));
    else write(static_cast<unsigned long long>(value));
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  std::string_view text() const { return {data_, size_}; }

 private:
  void write(long long value);
  void write(unsigned long long value);

  const char* data_;
  std::size_t size_;
  char digits_[32];
};

namespace detail {
std::string concatenate(std::initializer_list<const Piece*> pieces);
}

/// cat("loop ", name, " has extent ", 10): strings, characters, integers, bool, floating point.
inline std::string cat() { return {}; }
std::string cat(const Piece& a);
std::string cat(const Piece& a, const Piece& b);
std::string cat(const Piece& a, const Piece& b, const Piece& c);
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d);
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e);
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f);
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g);
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g, const Piece& h);
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g, const Piece& h, const Piece& i);
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g, const Piece& h, const Piece& i, const Piece& j);
template <typename... Ts>
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g, const Piece& h, const Piece& i, const Piece& j,
                const Ts&... rest) {
  return cat(cat(a.text(), b.text(), c.text(), d.text(), e.text(), f.text(), g.text(), h.text(),
                 i.text(), j.text()),
             rest...);
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
