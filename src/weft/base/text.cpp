// SPDX-License-Identifier: Apache-2.0
#include "weft/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace weft {

namespace {
template <typename T>
std::string shortest_of(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string out(buffer, result.ptr);
  return out;
}
}  // namespace

std::string shortest(double value) { return shortest_of(value); }
std::string shortest(float value) { return shortest_of(value); }

Piece::Piece(float value) : Piece(static_cast<double>(value)) {}
Piece::Piece(double value) : data_(digits_) {
  const std::string text = shortest(value);  // at most 24 characters
  size_ = text.copy(digits_, sizeof digits_);
}
void Piece::write(long long value) {
  size_ = static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof digits_, value).ptr -
                                   digits_);
}
void Piece::write(unsigned long long value) {
  size_ = static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof digits_, value).ptr -
                                   digits_);
}

std::string detail::concatenate(std::initializer_list<const Piece*> pieces) {
  std::size_t size = 0;
  for (const Piece* p : pieces) size += p->text().size();
  std::string out;
  out.reserve(size);
  for (const Piece* p : pieces) out += p->text();
  return out;
}
std::string cat(const Piece& a) { return detail::concatenate({&a}); }
std::string cat(const Piece& a, const Piece& b) { return detail::concatenate({&a, &b}); }
std::string cat(const Piece& a, const Piece& b, const Piece& c) {
  return detail::concatenate({&a, &b, &c});
}
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d) {
  return detail::concatenate({&a, &b, &c, &d});
}
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e) {
  return detail::concatenate({&a, &b, &c, &d, &e});
}
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f) {
  return detail::concatenate({&a, &b, &c, &d, &e, &f});
}
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g) {
  return detail::concatenate({&a, &b, &c, &d, &e, &f, &g});
}
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g, const Piece& h) {
  return detail::concatenate({&a, &b, &c, &d, &e, &f, &g, &h});
}
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g, const Piece& h, const Piece& i) {
  return detail::concatenate({&a, &b, &c, &d, &e, &f, &g, &h, &i});
}
std::string cat(const Piece& a, const Piece& b, const Piece& c, const Piece& d, const Piece& e,
                const Piece& f, const Piece& g, const Piece& h, const Piece& i, const Piece& j) {
  return detail::concatenate({&a, &b, &c, &d, &e, &f, &g, &h, &i, &j});
}

std::string hex(std::uint64_t value, int digits) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "0x%0*llx", digits, static_cast<unsigned long long>(value));
  return buffer;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (true) {
    std::size_t end = text.find(separator, begin);
    if (end == std::string_view::npos) {
      out.emplace_back(text.substr(begin));
      return out;
    }
    out.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  const char* blanks = " \t\r\n";
  std::size_t begin = text.find_first_not_of(blanks);
  // Its end, not a view of nothing: who reports a column subtracts pointers.
  if (begin == std::string_view::npos) return text.substr(text.size());
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      int cost = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, cost});
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  int best = 1 + static_cast<int>(name.size()) / 3;
  std::string_view found;
  for (const std::string& candidate : known) {
    if (candidate == name) return {};  // the name is right: something else is wrong
    // A name cut short is the likeliest slip, however much is missing.
    const bool cut = name.size() >= 3 && candidate.starts_with(name);
    int distance = cut ? 1 : edit_distance(name, candidate);
    if (distance <= best && (found.empty() || distance < best)) {
      best = distance;
      found = candidate;
    }
  }
  return found.empty() ? std::string() : cat("did you mean \"", found, "\"?");
}

std::string caret_line(std::string_view source, int line, int column, int width) {
  std::size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    std::size_t next = source.find('\n', begin);
    if (next == std::string_view::npos) return {};
    begin = next + 1;
  }
  std::string_view text = source.substr(begin, source.find('\n', begin) - begin);
  std::string out(text);
  out += '\n';
  for (int i = 1; i < column; ++i) {
    std::size_t at = static_cast<std::size_t>(i - 1);
    out += at < text.size() && text[at] == '\t' ? '\t' : ' ';
  }
  out.append(static_cast<std::size_t>(std::max(width, 1)), '^');
  return out;
}

std::string human_bytes(std::uint64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer,
                unit == 0 || value == std::floor(value) ? "%.0f %s" : "%.1f %s", value,
                units[unit]);
  return buffer;
}

}  // namespace weft
