// SPDX-License-Identifier: Apache-2.0
// Copies that exchange the contiguous axis: tiles are turned by the instruction rows
// "transpose.*" and leave as whole cache lines, past the caches where asked.

#include "weft/host/generate/vectors.h"
#include "weft/ir/text.h"
#include "weft/target/rules.h"

namespace weft::generate {

namespace {

ir::PrimFunc transpose_function(const VectorShape& shape, Elem e, bool stream) {
  const int side = shape.side(elem_bytes(e)), tiles = 64 / (side * elem_bytes(e)),
            wide = side * tiles;
  const std::string type(name_of(e));
  std::string text =
      cat("@T.prim_func\ndef main(a: T.handle, out: T.handle, m: T.int64, n: T.int64, in_step: "
          "T.int64, out_step: T.int64):\n    T.func_attr({\"aligned_arguments\": True})\n    A = "
          "T.match_buffer(a, (n, m), \"",
          type, "\", strides=(in_step, 1))\n    O = T.match_buffer(out, (m, n), \"", type,
          "\", strides=(out_step", stream ? cat(" * ", side) : std::string(), ", 1)",
          stream ? cat(", align=", side * elem_bytes(e)) : std::string(), ")\n");
  for (int t = 0; t < tiles; ++t)
    text += cat("    t", t, " = T.alloc_buffer((", side, ", ", side, "), \"", type,
                "\", scope=\"local\")\n");
  const std::string mark = stream ? ", annotations={\"nontemporal\": True}" : "";
  int blocks = 0;
  // Lines `at` of each result, down all rows; `domain` is that of the iterator bound to `value`.
  auto lines = [&](int depth, const std::string& domain, const std::string& value,
                   const std::string& at) {
    const std::string deep(static_cast<std::size_t>(depth) * 4, ' ');
    for (int t = 0; t < tiles; ++t) {
      text += cat(
          deep, "for i, j in T.grid(", side, ", ", side, "):\n", deep, "    with T.block(\"turn",
          blocks++, "\"):\n", deep, "        vb = T.axis.spatial(m // ", side, ", ib)\n", deep,
          "        vc = T.axis.spatial(", domain, ", ", value, ")\n", deep,
          "        vi, vj = T.axis.remap(\"SS\", [i, j])\n", deep, "        t", t, "[vi, vj] = A[(",
          at, " + vc) * ", wide, " + ", t * side, " + vj, vb * ", side, " + vi]\n");
    }
    text += cat(deep, "for i in T.unroll(", side, "):\n");
    for (int t = 0; t < tiles; ++t)
      text += cat(deep, "    for l in T.vectorized(", side, "):\n", deep, "        O[ib * ", side,
                  " + i, (", at, " + ", value, ") * ", wide, " + ", t * side, " + l] = t", t,
                  "[i, l]\n");
  };
  // Two at a time, so that what is written lies closer together.
  text +=
      cat("    for jc in T.serial(n // ", 2 * wide, mark, "):\n        for ib in T.serial(m // ",
          side, "):\n            for jb in T.serial(2):\n");
  lines(4, cat("n // ", 2 * wide, " * 2"), "jc * 2 + jb", "0");
  text += cat("    for jc in T.serial(n // ", wide, " % 2", mark,
              "):\n        for ib in T.serial(m // ", side, "):\n");
  lines(3, cat("n // ", wide, " % 2"), "jc", cat("n // ", 2 * wide, " * 2"));
  text += cat("    for j in T.serial(n // ", wide, " * ", wide,
              ", n):\n        for i in T.serial(m // ", side, " * ", side,
              "):\n            O[i, j] = A[j, i]\n    for j in T.serial(n):\n        for i in "
              "T.serial(m // ",
              side, " * ", side, ", m):\n            O[i, j] = A[j, i]\n");
  return turned(ir::parse_func(text, "<transpose>"), blocks, side, e);
}

}  // namespace

ir::PrimFunc turned(const ir::PrimFunc& f, int blocks, int side, Elem e) {
  const DType t = dtype_of(e);
  const std::string row = cat("transpose.", side, "x", side, ".",
                              t.is_uint()  ? "u"
                              : t.is_int() ? "i"
                                           : "f",
                              std::to_string(t.bits));
  schedule::Schedule sch(f, all_target_info());
  for (int b = 0; b < blocks; ++b) {
    auto loops = sch.get_loops(sch.get_block(cat("turn", b)));
    sch.tensorize(loops[loops.size() - 2], row);
  }
  return sch.func();
}

Kernel vector_kernel(VectorKernel kernel, Elem e, std::string name, const char* frame,
                     ir::PrimFunc f) {
  Kernel out{entry(KernelEntry::vector, static_cast<int>(kernel), e), std::move(name),
             std::move(f)};
  out.parameters = frame;
  return out;
}

std::vector<Kernel> transpose_kernels(const VectorShape& shape) {
  constexpr const char* kFrame =
      "const void* A, void* O, int64_t m, int64_t n, int64_t in_step, int64_t out_step";
  std::vector<Kernel> out;
  for (Elem e : {Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64}) {
    const std::string tail(name_of(e));
    out.push_back(vector_kernel(VectorKernel::transpose, e, "v_transpose_" + tail, kFrame,
                                transpose_function(shape, e, false)));
    out.push_back(vector_kernel(VectorKernel::transpose_stream, e, "v_transpose_stream_" + tail,
                                kFrame, transpose_function(shape, e, true)));
  }
  return out;
}

}  // namespace weft::generate
