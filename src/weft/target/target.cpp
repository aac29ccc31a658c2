// SPDX-License-Identifier: Apache-2.0
#include "weft/target/target.h"

#include <charconv>

#include "weft/base/error.h"

namespace weft {

namespace {

bool is_name(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_' || c == '-';
    if (!good) return false;
  }
  return true;
}

/// The same target in our form, where options come behind spaces, with or without dashes.
std::string with_colon(std::string_view text) {
  std::string out;
  int words = 0;
  for (const std::string& word : split(text, ' ')) {
    const std::size_t begin = words == 0 ? 0 : word.find_first_not_of('-');
    if (word.empty() || begin == std::string::npos) continue;
    out += cat(words == 0 ? "" : words == 1 ? ":" : ",", std::string_view(word).substr(begin));
    ++words;
  }
  return words > 1 ? out : "";
}

[[noreturn]] void bad(std::string_view text, std::string detail) {
  const std::string ours = with_colon(text);
  throw Error(ErrorKind::value, "target.parse", cat("target \"", text, "\" ", detail))
      .note("the form is NAME, NAME:VALUE or NAME:KEY=VALUE,KEY=VALUE")
      .help(ours.empty() ? "" : cat("write \"", ours, "\""));
}

}  // namespace

Target Target::parse(std::string_view text) {
  Target out;
  std::size_t colon = text.find(':');
  out.name = std::string(trim(text.substr(0, colon)));
  if (out.name.empty()) bad(text, "has no name");
  if (!is_name(out.name))
    bad(text, cat("begins with \"", out.name, "\", which is no name of letters, digits, _ and -"));
  if (colon == std::string_view::npos) return out;
  for (const std::string& item : split(text.substr(colon + 1), ',')) {
    std::string part(trim(item));
    std::size_t equals = part.find('=');
    std::string key = equals == std::string::npos ? "" : std::string(trim(part.substr(0, equals)));
    std::string value = equals == std::string::npos
                            ? part
                            : std::string(trim(std::string_view(part).substr(equals + 1)));
    if (equals != std::string::npos && !is_name(key))
      bad(text, cat("has an option without a key: \"", part, "\""));
    if (value.empty())
      bad(text, key.empty() ? "has an empty option" : cat("gives \"", key, "\" no value"));
    if (!out.options.emplace(key, value).second) {
      bad(text, key.empty() ? cat("has two bare values, the second is \"", value, "\"")
                            : cat("gives \"", key, "\" twice"));
    }
  }
  return out;
}

std::string Target::text() const {
  std::string out = name;
  bool first = true;
  for (const auto& [key, value] : options) {
    out += cat(first ? ":" : ",", key, key.empty() ? "" : "=", value);
    first = false;
  }
  return out;
}

std::int64_t Target::integer(std::string_view key, std::int64_t otherwise) const {
  auto found = options.find(key);
  if (found == options.end()) return otherwise;
  std::int64_t value = 0;
  const std::string& s = found->second;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc() || end != s.data() + s.size()) {
    throw Error(
        ErrorKind::value, "target.option.integer",
        cat("option \"", key, "\" of target ", name, " must be an integer, not \"", s, "\""));
  }
  return value;
}

std::string Target::option(std::string_view key, std::string_view otherwise) const {
  auto found = options.find(key);
  return found == options.end() ? std::string(otherwise) : found->second;
}

}  // namespace weft
