// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON in and out, small, because the runtime and the CUDA path may depend on nothing but the
// standard library and fmt. Objects keep insertion order. Integers stay 64-bit integers.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  /// Any integer; a template, because which of long and long long is int64_t differs by system.
  template <std::integral T>
  Json(T value) : value_(static_cast<std::int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  static Json array() { return Json(Array{}); }
  static Json object() { return Json(Object{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  /// Each throws Error(value, "json.type") when the value is of another type.
  bool as_bool() const;
  std::int64_t as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  Array& as_array();
  const Object& as_object() const;
  Object& as_object();

  /// Member of an object; null pointer when absent.
  const Json* find(std::string_view key) const;
  /// Member of an object; throws Error(value, "json.key") listing the keys present.
  const Json& at(std::string_view key) const;
  const Json& at(std::size_t index) const;
  /// Inserts or finds.
  Json& operator[](std::string_view key);
  void push_back(Json value) { as_array().push_back(std::move(value)); }
  std::size_t size() const;
  bool operator==(const Json&) const = default;

  /// Compact when indent < 0.
  std::string dump(int indent = -1) const;
  /// Throws Error(parse, "json.parse") with line, column and a caret. Depth is limited to 256.
  static Json parse(std::string_view text, std::string_view file = "<json>");

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

/// `text` quoted and escaped as JSON.
std::string json_quote(std::string_view text);

}  // namespace weft
