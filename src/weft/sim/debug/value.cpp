// SPDX-License-Identifier: Apache-2.0
#include "weft/sim/debug/value.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::sim {

namespace {

template <typename T>
T load(const void* from) {
  T out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

constexpr std::string_view kTypes =
    "f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, hex";

}  // namespace

ValueFormat parse_format(std::string_view text, DType given) {
  if (text == "hex") return {given, true};
  struct Short {
    std::string_view name;
    DType type;
  };
  static constexpr Short kShort[] = {
      {"f16", dtypes::float16}, {"bf16", dtypes::bfloat16}, {"f32", dtypes::float32},
      {"f64", dtypes::float64}, {"i8", dtypes::int8},       {"i16", dtypes::int16},
      {"i32", dtypes::int32},   {"i64", dtypes::int64},     {"u8", dtypes::uint8},
      {"u16", dtypes::uint16},  {"u32", dtypes::uint32},    {"u64", dtypes::uint64}};
  for (const Short& s : kShort)
    if (s.name == text) return {s.type, false};
  DType type;
  if (try_parse_dtype(text, type) && type.is_scalar() && (type.is_integral() || type.is_float()))
    return {type, false};
  throw Error(ErrorKind::value, "debug.type", cat("\"", text, "\" is no type of a value"))
      .note(cat("legal: ", kTypes, " and the names of element types, such as float32"));
}

std::string value_text(const void* element, const ValueFormat& format) {
  const DType t = format.type;
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<std::size_t>(std::min(t.bytes(), 8)));
  if (format.hex) return hex(bits, t.bytes() * 2);
  if (t.is_bfloat()) return shortest(bfloat_to_float(static_cast<std::uint16_t>(bits)));
  if (t.is_float()) {
    if (t.bits == 16) return shortest(half_to_float(static_cast<std::uint16_t>(bits)));
    if (t.bits == 32) return shortest(load<float>(element));
    return shortest(load<double>(element));
  }
  if (t.is_bool()) return bits ? "true" : "false";
  if (t.is_int()) {
    const int shift = 64 - t.bits;
    return cat(static_cast<std::int64_t>(bits << shift) >> shift);
  }
  return cat(bits);
}

std::vector<std::string> value_lines(const std::string& bytes, const ValueFormat& format,
                                     std::int64_t first) {
  const auto each = static_cast<std::size_t>(format.type.bytes());
  std::vector<std::string> texts;
  std::size_t widest = 1;
  for (std::size_t at = 0; at + each <= bytes.size(); at += each) {
    texts.push_back(value_text(bytes.data() + at, format));
    widest = std::max(widest, texts.back().size());
  }
  const std::size_t label =
      cat(first + static_cast<std::int64_t>(texts.size())).size() + 5;  // "  [12] "
  std::size_t columns = std::max<std::size_t>(1, (kColumns - label) / (widest + 1));
  for (std::size_t round : {16u, 8u, 4u, 2u}) {
    if (columns >= round) {
      columns = round;
      break;
    }
  }
  std::vector<std::string> out;
  for (std::size_t k = 0; k < texts.size(); ++k) {
    if (k % columns == 0) {
      std::string name = cat("  [", first + static_cast<std::int64_t>(k), "]");
      out.push_back(name + std::string(label - name.size(), ' '));
    }
    out.back() += std::string(widest - texts[k].size() + (k % columns ? 1 : 0), ' ') + texts[k];
  }
  return out;
}

std::string wrapped(std::string_view line) {
  std::string out;
  std::size_t indent = line.find_first_not_of(' ');
  if (indent == line.npos) return {};
  indent = std::min<std::size_t>(indent + 4, 16);
  std::string lead;
  while (lead.size() + line.size() > kColumns) {
    const std::size_t room = kColumns - lead.size();
    std::size_t cut = line.rfind(' ', room);
    const std::size_t text = line.find_first_not_of(' ');
    if (cut == line.npos || cut <= text) cut = room;
    out += cat(lead, line.substr(0, cut), "\n");
    line.remove_prefix(cut);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    lead = std::string(indent, ' ');
  }
  if (!line.empty()) out += cat(lead, line);
  else if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace weft::sim
