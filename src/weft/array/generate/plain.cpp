// SPDX-License-Identifier: Apache-2.0
// Rows of products of the types that have no register tile (integers, truth values, complex
// numbers), four rows of the second matrix at a time, and additions between two steps.

#include "weft/array/generate/kernels.h"
#include "weft/base/text.h"
#include "weft/ir/text.h"

namespace weft::generate {

namespace {

ir::PrimFunc row_product(Elem e, bool unit) {
  const bool two = is_complex(e), truth = e == Elem::boolean;
  const std::string type(truth ? "uint8" : name_of(two ? real_of(e) : e));
  const int words = two ? 2 : 1;
  std::string text = cat(
      "@T.prim_func\ndef main(a: T.handle, b: T.handle, c: T.handle, n: T.int64, k: T.int64, "
      "a_step: T.int64, b_row: T.int64, b_col: T.int64):\n    T.func_attr({\"noalias\": True})\n"
      "    A = T.match_buffer(a, (k,), \"",
      type, "\")\n    B = T.match_buffer(b, (k,), \"", type,
      "\")\n    C = T.match_buffer(c, (n,), \"", type, "\")\n    for j in T.vectorized(n * ", words,
      "):\n        C[j] = T.", type, "(0)\n");
  auto pass = [&](const std::string& range, int rows) {
    text += cat("    for p in T.serial(", range, "):\n");
    for (int q = 0; q < rows; ++q) {
      for (int w = 0; w < words; ++w)
        text += cat("        x", q, w, ": T.", type, " = A[(p * ", rows, " + ", q, ") * a_step * ",
                    words, " + ", w, "]\n");
    }
    text += "        for j in T.vectorized(n):\n";
    auto at = [&](int q, int w) {
      return cat("B[((p * ", rows, " + ", q, ") * b_row + j", unit ? "" : " * b_col", ") * ", words,
                 " + ", w, "]");
    };
    std::string sums[2];
    for (int w = 0; w < words; ++w) {
      sums[w] = cat("C[j * ", words, " + ", w, "]");
      for (int q = 0; q < rows; ++q) {
        const std::string x = cat("x", q, "0"), y = cat("x", q, "1");
        const std::string term = truth  ? cat("T.bitwise_and(", x, ", ", at(q, 0), ")")
                                 : !two ? cat(x, " * ", at(q, 0))
                                 : w ? cat("(", x, " * ", at(q, 1), " + ", y, " * ", at(q, 0), ")")
                                     : cat("(", x, " * ", at(q, 0), " - ", y, " * ", at(q, 1), ")");
        sums[w] = truth ? cat("T.bitwise_or(", sums[w], ", ", term, ")")
                        : cat("(", sums[w], " + ", term, ")");
      }
      text += cat("            s", w, ": T.", type, " = ", sums[w], "\n");
    }
    for (int w = 0; w < words; ++w)
      text += cat("            C[j * ", words, " + ", w, "] = s", w, "\n");
  };
  pass("k // 4", 4);
  pass("k // 4 * 4, k", 1);
  return ir::parse_func(text, "<row product>");
}

ir::PrimFunc add_function(Elem e) {
  const std::string type(name_of(e));
  return ir::parse_func(
      cat("@T.prim_func\ndef main(a: T.handle, o: T.handle, n: T.int64, to: T.int64):\n    "
          "T.func_attr({\"noalias\": True})\n    A = T.match_buffer(a, (n,), \"",
          type, "\")\n    O = T.match_buffer(o, (n,), \"", type,
          "\")\n    for i in T.serial(n):\n        O[i * to] = O[i * to] + A[i]\n"),
      "<add>");
}

}  // namespace

std::vector<Kernel> plain_kernels() {
  std::vector<Kernel> out;
  auto add = [&](int row, Elem e, const std::string& name, const char* frame, ir::PrimFunc f) {
    Kernel k{entry(KernelEntry::product, row, e), cat("p_", name, "_", name_of(e)), std::move(f)};
    k.parameters = frame;
    out.push_back(std::move(k));
  };
  for (Elem e : {Elem::boolean, Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64,
                 Elem::complex64, Elem::complex128}) {
    for (bool unit : {false, true})
      add(unit, e, unit ? "row_unit" : "row",
          "const void* A, const void* B, void* C, int64_t n, int64_t k, int64_t a_step, int64_t "
          "b_row, int64_t b_col",
          row_product(e, unit));
  }
  for (Elem e : {Elem::float32, Elem::float64})
    add(2, e, "add", "const void* A, void* O, int64_t n, int64_t to", add_function(e));
  return out;
}

}  // namespace weft::generate
