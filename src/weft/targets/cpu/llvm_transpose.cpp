// SPDX-License-Identifier: Apache-2.0
// The functions of transpose_rows as LLVM text: pieces of 128 bits are loaded side by side, then
// interleaved, which every level has instructions for.

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/target/transpose_rows.h"
#include "weft/targets/cpu/llvm_function.h"

namespace weft::cpu {

std::string transpose_helper(const std::string& function) {
  const TransposeShape* shape = find_transpose(function);
  if (!shape) {
    throw Error(ErrorKind::emit, "cpu.emit.call",
                cat("the cpu target has no instruction \"", function, "\""));
  }
  const int piece = shape->piece(), pieces = shape->side / piece, side = shape->side;
  const std::string element = cat("i", shape->bits), whole = cat("<", side, " x ", element, ">"),
                    part = cat("<", piece, " x ", element, ">"),
                    align = std::to_string(shape->bits / 8);
  std::string text = cat("define internal void @", function,
                         "(ptr %out, i64 %os, ptr %in, i64 %is) alwaysinline {\n");
  auto line = [&](const std::string& s) { text += cat("  ", s, "\n"); };
  auto mask = [](const std::vector<int>& list) {
    std::string out;
    for (int m : list) out += cat(out.empty() ? "" : ", ", "i32 ", m);
    return cat("<", list.size(), " x i32> <", out, ">");
  };
  auto row = [&](const char* to, const char* base, const char* step, int r, int column) {
    line(cat(to, r, "_", column, "o = mul i64 ", step, ", ", r));
    line(cat(to, r, "_", column, "p = getelementptr ", element, ", ptr ", base, ", i64 ", to, r,
             "_", column, "o"));
    line(cat(to, r, "_", column, " = getelementptr ", element, ", ptr ", to, r, "_", column,
             "p, i64 ", column));
  };
  for (int h = 0; h < pieces; ++h) {
    for (int r = 0; r < side; ++r) {
      row("%f", "%in", "%is", r, h * piece);
      line(
          cat("%l", h, "_", r, " = load ", part, ", ptr %f", r, "_", h * piece, ", align ", align));
    }
    std::vector<int> both;
    for (int e = 0; e < side; ++e) both.push_back(e);
    for (int k = 0; k < piece; ++k) {
      line(pieces == 1 ? cat("%v", h, "_0_", k, " = shufflevector ", part, " %l", h, "_", k, ", ",
                             part, " poison, ", mask(both))
                       : cat("%v", h, "_0_", k, " = shufflevector ", part, " %l", h, "_", k, ", ",
                             part, " %l", h, "_", k + piece, ", ", mask(both)));
    }
  }
  const auto steps = interleave_steps(piece);
  for (int h = 0; h < pieces; ++h) {
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (std::size_t k = 0; k < steps[s].size(); ++k) {
        const Interleave& x = steps[s][k];
        line(cat("%v", h, "_", s + 1, "_", k, " = shufflevector ", whole, " %v", h, "_", s, "_",
                 x.a, ", ", whole, " %v", h, "_", s, "_", x.b, ", ",
                 mask(interleave_mask(piece, pieces, x.upper))));
      }
    }
  }
  for (int r = 0; r < side; ++r) {
    row("%t", "%out", "%os", r, 0);
    line(cat("store ", whole, " %v", r / piece, "_", steps.size(), "_", r % piece, ", ptr %t", r,
             "_0, align ", align));
  }
  return text + "  ret void\n}\n\n";
}

}  // namespace weft::cpu
