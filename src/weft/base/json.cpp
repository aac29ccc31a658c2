// SPDX-License-Identifier: Apache-2.0
#include "weft/base/json.h"

#include <charconv>
#include <cmath>

#include "weft/base/error.h"

namespace weft {

namespace {
std::string_view type_name(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  return value.is_array() ? "array" : "object";
}

[[noreturn]] void wrong_type(std::string_view wanted, const Json& found) {
  throw Error(
      ErrorKind::value, "json.type",
      cat("expected ", wanted, ", found ", type_name(found), " ", found.dump().substr(0, 60)));
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Json document() {
    Json out = value(0);
    blanks();
    if (pos_ != text_.size()) fail("expected the end of the text");
    return out;
  }

 private:
  [[noreturn]] void fail(std::string message) const {
    int line = 1, column = 1;
    for (std::size_t i = 0; i < pos_ && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++line;
        column = 1;
      } else {
        ++column;
      }
    }
    throw Error(ErrorKind::parse, "json.parse", cat(file_, ":", line, ":", column, ": ", message))
        .at("", caret_line(text_, line, column), line, column);
  }

  void blanks() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' ||
                                   text_[pos_] == '\t' || text_[pos_] == '\r')) {
      ++pos_;
    }
  }

  char peek() {
    blanks();
    if (pos_ == text_.size()) fail("the text ends too early");
    return text_[pos_];
  }

  void expect(char c) {
    if (peek() != c) fail(cat("expected '", c, "', found '", text_[pos_], "'"));
    ++pos_;
  }

  bool word(std::string_view w) {
    if (text_.substr(pos_, w.size()) != w) return false;
    pos_ += w.size();
    return true;
  }

  Json value(int depth) {
    if (depth > 256) fail("nesting is deeper than 256");
    char c = peek();
    if (c == '{') return object(depth);
    if (c == '[') return array(depth);
    if (c == '"') return Json(string());
    if (word("true")) return Json(true);
    if (word("false")) return Json(false);
    if (word("null")) return Json();
    if (word("NaN")) return Json(std::nan(""));
    if (word("Infinity")) return Json(HUGE_VAL);
    if (word("-Infinity")) return Json(-HUGE_VAL);
    return number();
  }

  Json object(int depth) {
    expect('{');
    Json::Object out;
    if (peek() == '}') {
      ++pos_;
      return Json(std::move(out));
    }
    while (true) {
      if (peek() != '"') fail("expected a member name in quotes");
      std::string key = string();
      expect(':');
      out.emplace_back(std::move(key), value(depth + 1));
      if (peek() == ',') {
        ++pos_;
        continue;
      }
      expect('}');
      return Json(std::move(out));
    }
  }

  Json array(int depth) {
    expect('[');
    Json::Array out;
    if (peek() == ']') {
      ++pos_;
      return Json(std::move(out));
    }
    while (true) {
      out.push_back(value(depth + 1));
      if (peek() == ',') {
        ++pos_;
        continue;
      }
      expect(']');
      return Json(std::move(out));
    }
  }

  unsigned hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      if (pos_ == text_.size()) fail("the text ends inside an escape");
      char c = text_[pos_++];
      unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                       : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                       : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10)
                                              : 16u;
      if (digit > 15) fail("expected four hexadecimal digits");
      code = code * 16 + digit;
    }
    return code;
  }

  static void utf8(std::string& out, unsigned code) {
    auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | (code >> 6));
      put(0x80 | (code & 63));
    } else if (code < 0x10000) {
      put(0xe0 | (code >> 12));
      put(0x80 | ((code >> 6) & 63));
      put(0x80 | (code & 63));
    } else {
      put(0xf0 | (code >> 18));
      put(0x80 | ((code >> 12) & 63));
      put(0x80 | ((code >> 6) & 63));
      put(0x80 | (code & 63));
    }
  }

  std::string string() {
    expect('"');
    std::string out;
    while (true) {
      if (pos_ == text_.size()) fail("the text ends inside a string");
      char c = text_[pos_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) fail("a control character inside a string");
      if (c != '\\') {
        out += c;
        continue;
      }
      if (pos_ == text_.size()) fail("the text ends inside an escape");
      char e = text_[pos_++];
      switch (e) {
        case '"':
        case '\\':
        case '/': out += e; break;
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'n': out += '\n'; break;
        case 'r': out += '\r'; break;
        case 't': out += '\t'; break;
        case 'u': {
          unsigned code = hex4();
          if (code >= 0xd800 && code < 0xdc00 && text_.substr(pos_, 2) == "\\u") {
            pos_ += 2;
            unsigned low = hex4();
            if (low < 0xdc00 || low > 0xdfff) fail("a surrogate pair is broken");
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          }
          utf8(out, code);
          break;
        }
        default: fail(cat("unknown escape '\\", e, "'"));
      }
    }
  }

  Json number() {
    const char* begin = text_.data() + pos_;
    const char* end = text_.data() + text_.size();
    std::int64_t integer = 0;
    auto as_int = std::from_chars(begin, end, integer);
    double real = 0;
    auto as_real = std::from_chars(begin, end, real);
    if (as_real.ec == std::errc::invalid_argument) fail("expected a value");
    if (as_int.ec == std::errc() && as_int.ptr == as_real.ptr) {
      pos_ += static_cast<std::size_t>(as_int.ptr - begin);
      return Json(integer);
    }
    if (as_real.ec != std::errc()) fail("the number is out of range");
    pos_ += static_cast<std::size_t>(as_real.ptr - begin);
    return Json(real);
  }

  std::string_view text_, file_;
  std::size_t pos_ = 0;
};

void dump_into(std::string& out, const Json& value, int indent, int level) {
  auto newline = [&](int depth) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent * depth), ' ');
  };
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    out += std::to_string(value.as_int());
  } else if (value.is_number()) {
    double real = value.as_double();
    std::string text = std::isnan(real)   ? "NaN"
                       : std::isinf(real) ? (real < 0 ? "-Infinity" : "Infinity")
                                          : shortest(real);
    if (std::isfinite(real) && text.find_first_of(".e") == std::string::npos) text += ".0";
    out += text;
  } else if (value.is_string()) {
    out += json_quote(value.as_string());
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : value.as_array()) {
      if (!first) out += indent < 0 ? "," : ",";
      newline(level + 1);
      dump_into(out, item, indent, level + 1);
      first = false;
    }
    if (!first) newline(level);
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : value.as_object()) {
      if (!first) out += ',';
      newline(level + 1);
      out += json_quote(key);
      out += indent < 0 ? ":" : ": ";
      dump_into(out, item, indent, level + 1);
      first = false;
    }
    if (!first) newline(level);
    out += '}';
  }
}
}  // namespace

bool Json::as_bool() const {
  if (auto* p = std::get_if<bool>(&value_)) return *p;
  wrong_type("bool", *this);
}

std::int64_t Json::as_int() const {
  if (auto* p = std::get_if<std::int64_t>(&value_)) return *p;
  wrong_type("integer", *this);
}

double Json::as_double() const {
  if (auto* p = std::get_if<double>(&value_)) return *p;
  if (auto* p = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*p);
  wrong_type("number", *this);
}

const std::string& Json::as_string() const {
  if (auto* p = std::get_if<std::string>(&value_)) return *p;
  wrong_type("string", *this);
}

const Json::Array& Json::as_array() const {
  if (auto* p = std::get_if<Array>(&value_)) return *p;
  wrong_type("array", *this);
}

Json::Array& Json::as_array() {
  if (auto* p = std::get_if<Array>(&value_)) return *p;
  wrong_type("array", *this);
}

const Json::Object& Json::as_object() const {
  if (auto* p = std::get_if<Object>(&value_)) return *p;
  wrong_type("object", *this);
}

Json::Object& Json::as_object() {
  if (auto* p = std::get_if<Object>(&value_)) return *p;
  wrong_type("object", *this);
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : as_object()) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (const Json* found = find(key)) return *found;
  std::vector<std::string> keys;
  for (const auto& [name, value] : as_object()) keys.push_back(name);
  throw Error(ErrorKind::value, "json.key", cat("there is no member \"", key, "\""))
      .note(cat("members: ", join(keys)))
      .help(did_you_mean(key, keys));
}

const Json& Json::at(std::size_t index) const {
  const Array& items = as_array();
  if (index >= items.size()) {
    throw Error(ErrorKind::index, "json.index",
                cat("index ", index, " in an array of ", items.size()));
  }
  return items[index];
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  Object& members = as_object();
  for (auto& [name, value] : members) {
    if (name == key) return value;
  }
  members.emplace_back(std::string(key), Json());
  return members.back().second;
}

std::size_t Json::size() const { return is_object() ? as_object().size() : as_array().size(); }

std::string Json::dump(int indent) const {
  std::string out;
  dump_into(out, *this, indent, 0);
  return out;
}

Json Json::parse(std::string_view text, std::string_view file) {
  return Parser(text, file).document();
}

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += cat("\\u00", hex(static_cast<unsigned char>(c), 2).substr(2));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

}  // namespace weft
