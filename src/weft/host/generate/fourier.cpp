// SPDX-License-Identifier: Apache-2.0
// Parts of Fourier transforms (fourier.cpp around them): passes of Stockham's method, which sorts as
// it goes. Real and imaginary parts lie in planes of their own, in rows of many lines side by side,
// so that each step is one of whole vectors.

#include "weft/host/generate/vectors.h"
#include "weft/ir/text.h"
#include "weft/operators/fft.h"
#include "weft/operators/fft_butterfly.h"

namespace weft::generate {

namespace {

/// A function of flat buffers of a type, then integers.
std::string head(const std::string& type, const std::vector<std::string>& buffers,
                 const std::vector<std::string>& integers) {
  std::string parameters, lines;
  for (const std::string& b : buffers) {
    parameters += cat(b, "_: T.handle, ");
    lines += cat("    ", b, " = T.match_buffer(", b, "_, (1099511627776,), \"", type, "\")\n");
  }
  std::vector<std::string> rest;
  for (const std::string& i : integers) rest.push_back(cat(i, ": T.int64"));
  return cat("@T.prim_func\ndef main(", parameters, join(rest),
             "):\n    T.func_attr({\"noalias\": True})\n", lines);
}

/// y[(r p + j) s + q] = sum over k of x[(p + m k) s + q] exp(-2 pi i j k / r), turned by p j stride
/// places of the table of roots.
ir::PrimFunc pass_function(const VectorShape& shape, Elem e, int radix) {
  const int lanes = shape.lanes(elem_bytes(e));
  const std::string type(name_of(e)), indent(16, ' ');
  operators::Butterfly b(type, false, indent);
  std::vector<operators::Butterfly::Number> x;
  for (int k = 0; k < radix; ++k) {
    const std::string at = cat("[(p + m * ", k, ") * s + v * ", lanes, " + l]");
    x.push_back(b.named("XR" + at, "XI" + at));
  }
  x = b.transform(x);
  std::string roots, stores;
  for (int j = 0; j < radix; ++j) {
    auto y = x[static_cast<std::size_t>(j)];
    if (j > 0) {
      roots += cat("        c", j, ": T.", type, " = W[2 * (p * ", j, " * stride)]\n        s", j,
                   ": T.", type, " = W[2 * (p * ", j, " * stride) + 1]\n");
      y = b.named(cat(y.re, " * c", j, " - ", y.im, " * s", j),
                  cat(y.re, " * s", j, " + ", y.im, " * c", j));
    }
    const std::string at = cat("[(p * ", radix, " + ", j, ") * s + v * ", lanes, " + l] = ");
    stores += cat(indent, "YR", at, y.re, "\n", indent, "YI", at, y.im, "\n");
  }
  return ir::parse_func(
      cat(head(type, {"XR", "XI", "W", "YR", "YI"}, {"m", "s", "stride"}),
          "    for p in T.serial(m):\n", roots, "        for v in T.serial(s // ", lanes,
          "):\n            for l in T.vectorized(", lanes, "):\n", b.text, stores),
      "<fft>");
}

/// Pairs in memory to planes, rows of so many numbers.
ir::PrimFunc split_function(Elem e) {
  return ir::parse_func(
      cat(head(std::string(name_of(e)), {"X", "R", "I"}, {"rows", "n", "from_", "to"}),
          "    for r in T.serial(rows):\n        for i in T.serial(n):\n            R[r * to + i] = "
          "X[2 * (r * from_ + i)]\n            I[r * to + i] = X[2 * (r * from_ + i) + 1]\n"),
      "<split>");
}

/// And back, scaled by S[0].
ir::PrimFunc join_function(Elem e) {
  const std::string type(name_of(e));
  return ir::parse_func(
      cat(head(type, {"R", "I", "S", "O"}, {"rows", "n", "from_", "to"}), "    scale: T.", type,
          " = S[0]\n    for r in T.serial(rows):\n        for i in T.serial(n):\n            O[2 * "
          "(r * to + i)] = R[r * from_ + i] * scale\n            O[2 * (r * to + i) + 1] = I[r * "
          "from_ + i] * scale\n"),
      "<join>");
}

/// Rows k of s numbers times the k-th of W and their own roots: exp(-2 pi i k (c + l) / n) in parts.
ir::PrimFunc turn_function(const VectorShape& shape, Elem e) {
  const int lanes = shape.lanes(elem_bytes(e));
  const std::string type(name_of(e)), at = cat("[k * s + v * ", lanes, " + l]");
  return ir::parse_func(
      cat(head(type, {"R", "I", "TR", "TI", "W"}, {"n", "s"}), "    for k in T.serial(n):\n",
          "        c: T.", type, " = W[2 * k]\n        d: T.", type,
          " = W[2 * k + 1]\n        for v in T.serial(s // ", lanes,
          "):\n            for l in T.vectorized(", lanes, "):\n                a: T.", type,
          " = TR", at, " * c - TI", at, " * d\n                b: T.", type, " = TR", at,
          " * d + TI", at, " * c\n                x: T.", type, " = R", at,
          "\n                y: T.", type, " = I", at, "\n                R", at,
          " = x * a - y * b\n                I", at, " = x * b + y * a\n"),
      "<turn>");
}

/// Two real lines were one of complex numbers: Z = A + iB, forward, to the halves of A and B.
ir::PrimFunc part_function(const VectorShape& shape, Elem e) {
  const int lanes = shape.lanes(elem_bytes(e));
  const std::string type(name_of(e)), here = cat("[k * s + v * ", lanes, " + l]"),
                    there = cat("[(n - k) % n * s + v * ", lanes, " + l]");
  auto half = [&](const std::string& x) { return cat("(", x, ") * T.", type, "(0.5)\n"); };
  const std::string deep(16, ' ');
  return ir::parse_func(
      cat(head(type, {"ZR", "ZI", "AR", "AI", "BR", "BI"}, {"n", "s"}),
          "    for k in T.serial(n // 2 + 1):\n        for v in T.serial(s // ", lanes,
          "):\n            for l in T.vectorized(", lanes, "):\n", deep, "x: T.", type, " = ZR",
          here, "\n", deep, "y: T.", type, " = ZI", here, "\n", deep, "u: T.", type, " = ZR", there,
          "\n", deep, "w: T.", type, " = ZI", there, "\n", deep, "AR", here, " = ", half("x + u"),
          deep, "AI", here, " = ", half("y - w"), deep, "BR", here, " = ", half("y + w"), deep,
          "BI", here, " = ", half("u - x")),
      "<part>");
}

/// The halves of two spectra of real lines as one of complex numbers.
ir::PrimFunc pair_function(const VectorShape& shape, Elem e) {
  const int lanes = shape.lanes(elem_bytes(e));
  const std::string type(name_of(e)), here = cat("[k * s + v * ", lanes, " + l]"),
                    there = cat("[(n - k) % n * s + v * ", lanes, " + l]");
  const std::string deep(16, ' ');
  return ir::parse_func(
      cat(head(type, {"AR", "AI", "BR", "BI", "ZR", "ZI"}, {"n", "s"}),
          "    for k in T.serial(n // 2 + 1):\n        for v in T.serial(s // ", lanes,
          "):\n            for l in T.vectorized(", lanes, "):\n", deep, "x: T.", type, " = AR",
          here, "\n", deep, "y: T.", type, " = AI", here, "\n", deep, "u: T.", type, " = BR", here,
          "\n", deep, "w: T.", type, " = BI", here, "\n", deep, "ZR", there, " = x + w\n", deep,
          "ZI", there, " = u - y\n", deep, "ZR", here, " = x - w\n", deep, "ZI", here,
          " = y + u\n"),
      "<pair>");
}

}  // namespace

std::vector<Kernel> fourier_kernels(const VectorShape& shape) {
  std::vector<Kernel> out;
  using K = VectorKernel;
  for (Elem e : {Elem::float32, Elem::float64}) {
    auto add = [&](K k, const std::string& name, const char* frame, ir::PrimFunc f) {
      out.push_back(vector_kernel(k, e, cat("v_", name, "_", name_of(e)), frame, std::move(f)));
    };
    for (const int radix : operators::kFftRadices) {
      add(static_cast<K>(static_cast<int>(K::fft_pass) + radix), cat("fft_pass_", radix),
          "const void* XR, const void* XI, const void* W, void* YR, void* YI, int64_t m, "
          "int64_t s, int64_t stride",
          pass_function(shape, e, radix));
    }
    add(K::fft_split, "fft_split",
        "const void* X, void* R, void* I, int64_t rows, int64_t n, int64_t from_, int64_t to",
        split_function(e));
    add(K::fft_join, "fft_join",
        "const void* R, const void* I, const void* S, void* O, int64_t rows, int64_t n, "
        "int64_t from_, int64_t to",
        join_function(e));
    add(K::fft_turn, "fft_turn",
        "void* R, void* I, const void* TR, const void* TI, const void* W, int64_t n, "
        "int64_t s",
        turn_function(shape, e));
    add(K::fft_part, "fft_part",
        "const void* ZR, const void* ZI, void* AR, void* AI, void* BR, void* BI, int64_t n, "
        "int64_t s",
        part_function(shape, e));
    add(K::fft_pair, "fft_pair",
        "const void* AR, const void* AI, const void* BR, const void* BI, void* ZR, void* ZI, "
        "int64_t n, int64_t s",
        pair_function(shape, e));
  }
  return out;
}

}  // namespace weft::generate
