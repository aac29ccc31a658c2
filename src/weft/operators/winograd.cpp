// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/winograd.h"

#include <cmath>
#include <cstdio>
#include <vector>

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

using Matrix = std::vector<std::vector<double>>;

// Of the points 0, 1, -1, 2, -2 and infinity.
const Matrix kInput = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                       {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
const Matrix kWindow = {{1. / 4, 0, 0},
                        {-1. / 6, -1. / 6, -1. / 6},
                        {-1. / 6, 1. / 6, -1. / 6},
                        {1. / 24, 1. / 12, 1. / 6},
                        {1. / 24, -1. / 12, 1. / 6},
                        {0, 0, 1}};
const Matrix kOutput = {
    {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

Matrix turned(const Matrix& m) {
  Matrix out(m[0].size(), std::vector<double>(m.size()));
  for (std::size_t i = 0; i < m.size(); ++i)
    for (std::size_t j = 0; j < m[0].size(); ++j) out[j][i] = m[i][j];
  return out;
}

constexpr const char* kIn = "                ";

std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", v);
  return cat("T.float32(", text, ")");
}

/// The combination of from(j) with the factors of a row; factors 1 and -1 cost no multiplication.
template <typename From>
std::string combination(const std::vector<double>& row, From&& from) {
  std::string out;
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (row[j] == 0) continue;
    const double size = std::abs(row[j]);
    const std::string term = size == 1 ? from(j) : cat(number(size), " * ", from(j));
    if (out.empty()) out = row[j] < 0 ? cat("T.float32(0) - ", term) : term;
    else out += cat(row[j] < 0 ? " - " : " + ", term);
  }
  return out;
}

/// B = m A m' for the square A of `columns` columns in local memory; H holds the half of it.
std::string transform(const Matrix& m, const char* to, const char* from) {
  const std::size_t high = m.size(), wide = m[0].size();
  std::string text = cat(kIn, "for k in T.unroll(T.{I}(", wide, ")):\n");
  for (std::size_t i = 0; i < high; ++i)
    text += cat(kIn, "    H[", i * wide, " + k] = ",
                combination(m[i], [&](std::size_t j) { return cat(from, "[", j * wide, " + k]"); }),
                "\n");
  text += cat(kIn, "for k in T.unroll(T.{I}(", high, ")):\n");
  for (std::size_t i = 0; i < high; ++i)
    text += cat(
        kIn, "    ", to, "[k * ", high, " + ", i, "] = ",
        combination(m[i], [&](std::size_t j) { return cat("H[k * ", wide, " + ", j, "]"); }), "\n");
  return text;
}

ir::PrimFunc parse(ProgramText& text, std::initializer_list<const char*> scalars, bool narrow,
                   const std::string& body) {
  for (const char* name : scalars) text.scalar(name, index_type(narrow));
  std::string memory;
  for (const char* name : {"A", "H", "B"})
    memory += cat("            ", name, " = T.allocate((36,), \"float32\", scope=\"local\")\n");
  return text.parse(cat("    for b in T.thread_binding(blocks, thread=\"blockIdx.x\"):\n"
                        "        for t in T.thread_binding(T.{I}({threads}), "
                        "thread=\"threadIdx.x\"):\n",
                        memory,
                        "            e: T.{I} = b * {threads} + t\n"
                        "            if e < size:\n",
                        body),
                    {{"I", index_type(narrow)}, {"threads", cat(kWinogradThreads)}});
}

/// Names of a tile: c, tile, n, column, top, left.
std::string tile_text() {
  std::string out;
  for (const char* line :
       {"c: T.{I} = e // pitch", "tile: T.{I} = e - c * pitch", "line: T.{I} = tile // across",
        "n: T.{I} = line // down", "column: T.{I} = tile - line * across",
        "top: T.{I} = (line - n * down) * 4", "left: T.{I} = column * 4"})
    out += cat(kIn, line, "\n");
  return out;
}

}  // namespace

ir::PrimFunc winograd_weights(bool turned, bool narrow) {
  ProgramText text("winograd.weights");
  text.buffer("weight", "float32").buffer("out", "float32");
  return parse(text, {"blocks", "size", "results", "summed", "result_step", "summed_step"}, narrow,
               cat(kIn, "r: T.{I} = e // summed\n", kIn, "c: T.{I} = e - r * summed\n", kIn,
                   "for k in T.unroll(T.{I}(9)):\n", kIn,
                   "    A[k] = weight[r * result_step + c * summed_step + ", turned ? "8 - k" : "k",
                   "]\n", transform(kWindow, "B", "A"), kIn, "for k in T.unroll(T.{I}(36)):\n", kIn,
                   "    out[k * size + e] = B[k]\n"));
}

ir::PrimFunc winograd_input(bool upper, bool narrow) {
  ProgramText text(upper ? "winograd.upper" : "winograd.input");
  text.buffer("x", "float32").buffer("out", "float32");
  const int side = upper ? 4 : 6;
  return parse(text,
               {"blocks", "size", "pitch", "images", "across", "down", "channels", "h", "w",
                "before_y", "before_x", "x_n", "x_c", "x_y", "x_x"},
               narrow,
               cat(tile_text(), kIn, "for i in T.unroll(T.{I}(", side, ")):\n", kIn,
                   "    for j in T.unroll(T.{I}(", side, ")):\n", kIn,
                   "        y: T.{I} = top + i - before_y\n", kIn,
                   "        z: T.{I} = left + j - before_x\n", kIn, "        A[i * ", side,
                   " + j] = T.if_then_else(n < images and y >= 0 and y < h and z >= 0 and z < w, "
                   "x[n * x_n + c * x_c + y * x_y + z * x_x], T.float32(0))\n",
                   transform(upper ? turned(kOutput) : kInput, "B", "A"), kIn,
                   "for k in T.unroll(T.{I}(36)):\n", kIn, "    out[k * size + e] = B[k]\n"));
}

ir::PrimFunc winograd_windows(bool narrow) {
  ProgramText text("winograd.windows");
  text.buffer("sums", "float32").buffer("out", "float32");
  return parse(text, {"blocks", "size"}, narrow,
               cat(kIn, "for k in T.unroll(T.{I}(36)):\n", kIn, "    A[k] = sums[k * size + e]\n",
                   transform(turned(kWindow), "B", "A"), kIn, "for k in T.unroll(T.{I}(9)):\n", kIn,
                   "    out[e * 9 + k] = B[k]\n"));
}

ir::PrimFunc winograd_output(bool whole, bool narrow) {
  ProgramText text("winograd.output");
  text.buffer("sums", "float32").buffer("out", "float32");
  const std::string row = "(n * channels + c) * h + top + i";
  const std::string store =
      whole ? cat("        for j in T.vectorized(T.{I}(4)):\n", kIn, "            out[((", row,
                  ") * across + column) * 4 + j] = B[i * 4 + j]\n")
            : cat("        for j in T.unroll(T.{I}(4)):\n", kIn, "            if left + j < w:\n",
                  kIn, "                out[(", row, ") * w + left + j] = B[i * 4 + j]\n");
  return parse(text, {"blocks", "size", "pitch", "images", "across", "down", "channels", "h", "w"},
               narrow,
               cat(tile_text(), kIn, "for k in T.unroll(T.{I}(36)):\n", kIn,
                   "    A[k] = sums[k * size + e]\n", transform(kOutput, "B", "A"), kIn,
                   "for i in T.unroll(T.{I}(4)):\n", kIn, "    if n < images and top + i < h:\n",
                   kIn, store));
}

}  // namespace weft::operators
