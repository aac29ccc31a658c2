// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/number_text.h"

#include <cstdio>

namespace weft::operators {

namespace {

std::string join(std::string_view a, const char* op, std::string_view b) {
  return cat("(", a, " ", op, " ", b, ")");
}

}  // namespace

Number operator+(const Number& a, const Number& b) {
  return {join(a.re, "+", b.re), a.im.empty() ? "" : join(a.im, "+", b.im)};
}
Number operator-(const Number& a, const Number& b) {
  return {join(a.re, "-", b.re), a.im.empty() ? "" : join(a.im, "-", b.im)};
}
Number operator*(const Number& a, const Number& b) {
  if (a.im.empty()) return {join(a.re, "*", b.re), ""};
  return {join(join(a.re, "*", b.re), "-", join(a.im, "*", b.im)),
          join(join(a.re, "*", b.im), "+", join(a.im, "*", b.re))};
}
Number conj(const Number& a) { return {a.re, a.im.empty() ? "" : cat("(-", a.im, ")")}; }
Number scaled(const Number& a, std::string_view factor) {
  return {join(a.re, "*", factor), a.im.empty() ? "" : join(a.im, "*", factor)};
}
std::string square(const Number& a) {
  const std::string re = join(a.re, "*", a.re);
  return a.im.empty() ? re : join(re, "+", join(a.im, "*", a.im));
}

void NumberText::suite(std::string_view head, const std::function<void()>& body) {
  line(head, ":");
  depth_ += 4;
  body();
  depth_ -= 4;
}

std::string NumberText::constant(double value) const {
  char text[64];
  std::snprintf(text, sizeof text, "T.%s(%.17g)", real_.c_str(), value);
  return text;
}

Number NumberText::number(double re) const {
  return {constant(re), complex_ ? constant(0) : std::string()};
}

Number NumberText::let(std::string_view name, const Number& value) {
  let_real(name, value.re);
  if (!complex_) return {std::string(name), ""};
  const std::string im = cat(name, "_im");
  let_real(im, value.im);
  return {std::string(name), im};
}

Number NumberText::choose(std::string_view condition, const Number& value,
                          const Number& other) const {
  auto one = [&](const std::string& a, const std::string& b) {
    return a.empty() ? a : cat("T.if_then_else(", condition, ", ", a, ", ", b, ")");
  };
  return {one(value.re, other.re), one(value.im, other.im)};
}

Number NumberText::let_reciprocal(std::string_view name, const Number& a) {
  if (!complex_) return let(name, {cat(constant(1), " / ", a.re), ""});
  const std::string size = cat(name, "_size"), re = cat(name, "_of"), im = cat(name, "_of_im"),
                    square_of = cat(name, "_square");
  let_real(size, cat("T.max(T.abs(", a.re, "), T.abs(", a.im, "))"));
  let_real(re, cat(a.re, " / ", size));
  let_real(im, cat(a.im, " / ", size));
  let_real(square_of, cat("(", re, " * ", re, " + ", im, " * ", im, ") * ", size));
  return let(name, {cat(re, " / ", square_of), cat("-", im, " / ", square_of)});
}

void NumberText::allocate(std::string_view name, std::string_view shape, std::string_view scope) {
  allocate_real(name, shape, scope);
  if (complex_) allocate_real(cat(name, "_im"), shape, scope);
}

Number NumberText::at(std::string_view buffer, std::string_view index) const {
  return {cat(buffer, "[", index, "]"), complex_ ? cat(buffer, "_im[", index, "]") : std::string()};
}

void NumberText::store(std::string_view buffer, std::string_view index, const Number& value) {
  if (!complex_) return line(buffer, "[", index, "] = ", value.re);
  // Both parts are known before the first is written.
  const Number v = let(cat("to", temporaries_++), value);
  line(buffer, "[", index, "] = ", v.re);
  line(buffer, "_im[", index, "] = ", v.im);
}

Number NumberText::in_memory(std::string_view array, std::string_view index) const {
  if (!complex_) return {cat(array, "[", index, "]"), ""};
  return {cat(array, "[2 * (", index, ")]"), cat(array, "[2 * (", index, ") + 1]")};
}

void NumberText::store_in_memory(std::string_view array, std::string_view index,
                                 const Number& value) {
  if (!complex_) return line(array, "[", index, "] = ", value.re);
  // One statement: barriers between two would be asked for where indices are not understood.
  const Number v = let(cat("to", temporaries_++), value);
  suite("for part in T.serial(T.int32(2))", [&] {
    line(array, "[2 * (", index, ") + T.Cast(\"int64\", part)] = T.Select(part == 0, ", v.re, ", ",
         v.im, ")");
  });
}

}  // namespace weft::operators
