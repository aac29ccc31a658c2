// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text of programs whose elements are real or complex numbers. A complex number is two expressions,
// (re, im); a buffer of the program's own is two buffers, an array in memory holds pairs.

#include <functional>
#include <string>
#include <string_view>

#include "weft/base/text.h"

namespace weft::operators {

struct Number {
  std::string re, im;  // im is empty where numbers are real
};

Number operator+(const Number& a, const Number& b);
Number operator-(const Number& a, const Number& b);
Number operator*(const Number& a, const Number& b);
Number conj(const Number& a);
/// Times a real expression.
Number scaled(const Number& a, std::string_view factor);
/// |a|^2, real.
std::string square(const Number& a);

/// The statements of a body, line by line.
class NumberText {
 public:
  NumberText(std::string real, bool complex, int indent)
      : real_(std::move(real)), complex_(complex), depth_(indent) {}

  const std::string& text() const { return text_; }
  template <typename... Parts>
  void line(const Parts&... parts) {
    text_ += cat(std::string(static_cast<std::size_t>(depth_), ' '), parts..., "\n");
  }
  /// A statement with a suite: `head` ends before the colon.
  void suite(std::string_view head, const std::function<void()>& body);
  void if_(std::string_view condition, const std::function<void()>& body) {
    suite(cat("if ", condition), body);
  }
  void for_(std::string_view var, std::string_view count, const std::function<void()>& body) {
    suite(cat("for ", var, " in T.serial(", count, ")"), body);
  }
  void unroll(std::string_view var, int count, const std::function<void()>& body) {
    suite(cat("for ", var, " in T.unroll(T.int32(", count, "))"), body);
  }

  bool complex() const { return complex_; }
  const std::string& real() const { return real_; }
  /// A constant of the real type.
  std::string constant(double value) const;
  Number number(double re) const;

  void integer(std::string_view name, std::string_view value) { line(name, ": T.int32 = ", value); }
  void let_real(std::string_view name, std::string_view value) {
    line(name, ": T.", real_, " = ", value);
  }
  Number let(std::string_view name, const Number& value);
  /// `value` where the condition holds, else `other`; lazily.
  Number choose(std::string_view condition, const Number& value, const Number& other) const;
  /// 1 / a, without overflow on the way; a is a name.
  Number let_reciprocal(std::string_view name, const Number& a);

  void allocate(std::string_view name, std::string_view shape, std::string_view scope);
  void allocate_real(std::string_view name, std::string_view shape, std::string_view scope) {
    line(name, " = T.allocate((", shape, ",), \"", real_, "\", scope=\"", scope, "\")");
  }
  void allocate_integer(std::string_view name, std::string_view shape, std::string_view scope) {
    line(name, " = T.allocate((", shape, ",), \"int32\", scope=\"", scope, "\")");
  }
  /// An element of a buffer of the program's own.
  Number at(std::string_view buffer, std::string_view index) const;
  void store(std::string_view buffer, std::string_view index, const Number& value);
  /// An element of an array in memory.
  Number in_memory(std::string_view array, std::string_view index) const;
  void store_in_memory(std::string_view array, std::string_view index, const Number& value);

 private:
  std::string real_;
  bool complex_;
  int depth_;
  int temporaries_ = 0;
  std::string text_;
};

}  // namespace weft::operators
