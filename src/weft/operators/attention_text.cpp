// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/attention_text.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

using Mask = AttentionSpec::Mask;

std::string dropout_factor(std::string_view in, std::string_view query, std::string_view key,
                           std::string_view plane) {
  std::string out = cat(in, "p0: T.uint32 = T.Cast(\"uint32\", ", query, ")\n", in,
                        "q0: T.uint32 = T.Cast(\"uint32\", ", key, ")\n", in,
                        "k0: T.uint32 = T.bitwise_xor(seed0 + T.Cast(\"uint32\", ", plane,
                        ") * T.uint32(2246822507), seed1)\n");
  for (int i = 0; i < 7; ++i) {
    out += cat(in, "p", i + 1, ": T.uint32 = T.bitwise_xor(T.bitwise_xor(T.mulhi(p", i,
               ", T.uint32(3528905107)), k", i, "), q", i, ")\n", in, "q", i + 1, ": T.uint32 = p",
               i, " * T.uint32(3528905107)\n", in, "k", i + 1, ": T.uint32 = k", i,
               " + T.uint32(2654435769)\n");
  }
  return cat(out, in, "keep: T.float32 = T.if_then_else(p7 >= threshold, factor, T.float32(0))\n");
}

std::string indented(std::string_view text, int blanks) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += cat(std::string(static_cast<std::size_t>(blanks), ' '), text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string tile_map(const char* name, const char* strides, int width, const char* rows,
                     const char* heads, int box_rows) {
  return cat("    ", name, "_map: T.handle = T.tensor_map(T.address_of(", name, "[0]), 4, ", width,
             ", ", rows, ", ", heads, ", batches, ", strides, "r, ", strides, "h, ", strides,
             "b, 64, ", box_rows, ", 1, 1, 1, 1, 1, 1)\n");
}

void option_arrays(ProgramText& p, const AttentionTiles& s) {
  if (s.mask != Mask::none) p.buffer("mask", s.mask == Mask::allowed ? "bool" : s.mask_type);
  if (s.padding) p.buffer("padding", "bool");
  if (s.lengths) p.buffer("lengths", "int32");
}

void option_numbers(ProgramText& p, const AttentionTiles& s) {
  if (s.mask != Mask::none)
    p.scalar("mb", "int64").scalar("mh", "int64").scalar("mr", "int64").scalar("mc", "int32");
  if (s.band) p.scalar("low", "int32").scalar("high", "int32");
  p.scalar("scale", "float32");
  if (s.dropout)
    p.scalar("seed0", "uint32")
        .scalar("seed1", "uint32")
        .scalar("threshold", "uint32")
        .scalar("factor", "float32");
}

std::string masked_scores(const AttentionTiles& s, bool rows_are_queries, int groups,
                          std::string_view start, std::string_view outside) {
  const bool every = s.mask != Mask::none || s.padding;
  const char* query = rows_are_queries ? "row + i * 8" : "col";
  const char* key = rows_are_queries ? "col" : "row + i * 8";
  std::string seen = cat(key, " < visible");
  if (s.mask != Mask::none) seen += cat(" and ", query, " < T.Cast(\"int32\", n)");
  if (s.band)
    seen += cat(" and ", key, " >= ", query, " + low and ", key, " <= ", query, " + high");
  const std::string none = "T.float32(\"-inf\")";
  const std::string at =
      cat("mask[T.Cast(\"int64\", bat) * mb + T.Cast(\"int64\", h) * mh + T.Cast(\"int64\", ",
          query, ") * mr + T.Cast(\"int64\", ", key, ") * T.Cast(\"int64\", mc)]");
  std::string value = "S[j, i, e]";
  if (s.mask == Mask::added)
    value = cat(value, " + ", s.mask_type == "float32" ? at : cat("T.Cast(\"float32\", ", at, ")"),
                " * (T.float32(1) / scale)");
  if (s.mask == Mask::allowed) value = cat("T.if_then_else(", at, ", ", value, ", ", none, ")");
  if (s.padding)
    value = cat("T.if_then_else(padding[T.Cast(\"int64\", bat) * m + T.Cast(\"int64\", ", key,
                ")], ", value, ", ", none, ")");
  return fill(
      cat(every ? "if T.bool(True):\n" : "if {outside}:\n",
          "    for j in T.unroll(T.int32({groups})):\n"
          "        for i in T.unroll(T.int32(2)):\n"
          "            for e in T.unroll(T.int32(2)):\n"
          "                col: T.int32 = {start} + j * 8 + t % 4 * 2 + e\n"
          "                S[j, i, e] = T.if_then_else(",
          seen, ", ", value, ", ", none, ")\n"),
      {{"outside", std::string(outside)}, {"groups", cat(groups)}, {"start", std::string(start)}});
}

/// Statements after which S holds weights that are not divided by their sum, and LESS the factors
/// of what was summed before.
std::string tile_softmax(const AttentionTiles& s, std::string_view start, int blanks) {
  std::string outside = s.band
                            ? fill(
                                  "{start} + {columns} > visible or {start} < first + g * 64 + 63 "
                                  "+ low or {start} + {columns} - 1 > first + g * 64 + high",
                                  {{"start", std::string(start)}, {"columns", cat(s.columns)}})
                            : fill("{start} + {columns} > visible",
                                   {{"start", std::string(start)}, {"columns", cat(s.columns)}});
  const std::string drop =
      s.dropout ? cat("            col: T.int32 = ", start, " + j * 8 + t % 4 * 2 + e\n",
                      dropout_factor(std::string(12, ' '), "row + i * 8", "col", "z"),
                      "            S[j, i, e] = S[j, i, e] * keep\n")
                : std::string();
  const std::string text = fill(
      R"(T.tile_rows(NEW[0], S[0, 0, 0], {columns}, 1)
for i in T.unroll(T.int32(2)):
    NEW[i] = T.if_then_else(TOP[i] > NEW[i], TOP[i], NEW[i])
    base: T.float32 = T.if_then_else(NEW[i] == T.float32("-inf"), T.float32(0), NEW[i] * scale2)
    LESS[i] = T.exp2_flush(TOP[i] * scale2 - base)
    TOP[i] = NEW[i]
    SUM[0, i, 0] = SUM[0, i, 0] * LESS[i]
    SUM[0, i, 1] = SUM[0, i, 1] * LESS[i]
    for j in T.unroll(T.int32({groups})):
        for e in T.unroll(T.int32(2)):
            S[j, i, e] = T.exp2_flush(S[j, i, e] * scale2 - base)
            SUM[0, i, e] = SUM[0, i, e] + S[j, i, e]
{drop})",
      {{"groups", cat(s.columns / 8)}, {"columns", cat(s.columns)}, {"drop", drop}});
  return indented(cat(masked_scores(s, true, s.columns / 8, start, outside), text), blanks);
}

std::string tile_scores(const AttentionTiles& s, std::string_view slot, int blanks) {
  std::string out;
  for (int c = 0; c < pieces(s.width); ++c)
    out += cat(std::string(static_cast<std::size_t>(blanks), ' '),
               "T.tile_multiply(S[0, 0, 0], QS[", c, ", g * 64, 0], KS[", slot, ", ", c,
               ", 0, 0], ", s.columns, ", 0, 0, ", c > 0 ? 1 : 0, ")\n");
  return out;
}

/// OUT += the weights of `slot` times its values; `first`: whether they begin the sum.
std::string tile_values(const AttentionTiles& s, std::string_view slot, std::string_view first,
                        int blanks) {
  std::string out;
  for (int r = 0; r < s.columns / 64; ++r)
    out +=
        cat(std::string(static_cast<std::size_t>(blanks), ' '), "T.tile_multiply(OUT[0, 0, 0], P[",
            r * 8, ", 0, 0], VS[", slot, ", ", r, ", 0, 0, 0], ", pieces(s.value_width) * 64,
            ", 0, 1, ",
            r == 0 && !first.empty() ? cat("T.if_then_else(", first, ", 0, 1)") : std::string("1"),
            ")\n");
  return out;
}

}  // namespace weft::operators
