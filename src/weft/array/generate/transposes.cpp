// SPDX-License-Identifier: Apache-2.0
// Copies that exchange the contiguous axis: tiles are turned by the instruction rows
// "transpose.*" and leave as whole cache lines, past the caches where asked.

#include "weft/array/generate/vectors.h"
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
          "T.int64, out_step: T.int64):\n    A = T.match_buffer(a, (n, m), \"",
          type, "\", strides=(in_step, 1))\n    O = T.match_buffer(out, (m, n), \"", type,
          "\", strides=(out_step, 1))\n");
  for (int t = 0; t < tiles; ++t)
    text += cat("    t", t, " = T.alloc_buffer((", side, ", ", side, "), \"", type,
                "\", scope=\"local\")\n");
  text += cat("    for ib in T.serial(m // ", side, "):\n        for jb in T.serial(n // ", wide,
              stream ? ", annotations={\"nontemporal\": True}" : "", "):\n");
  for (int t = 0; t < tiles; ++t) {
    text += cat("            for i, j in T.grid(", side, ", ", side,
                "):\n                with T.block(\"turn", t,
                "\"):\n                    vb = T.axis.spatial(m // ", side,
                ", ib)\n                    vc = T.axis.spatial(n // ", wide,
                ", jb)\n                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                "                    t",
                t, "[vi, vj] = A[vc * ", wide, " + ", t * side, " + vj, vb * ", side, " + vi]\n");
  }
  text += cat("            for i in T.unroll(", side, "):\n");
  for (int t = 0; t < tiles; ++t)
    text += cat("                for l in T.vectorized(", side, "):\n                    O[ib * ",
                side, " + i, jb * ", wide, " + ", t * side, " + l] = t", t, "[i, l]\n");
  text += cat("        for i in T.serial(", side, "):\n            for j in T.serial(n // ", wide,
              " * ", wide, ", n):\n                O[ib * ", side, " + i, j] = A[j, ib * ", side,
              " + i]\n    for i in T.serial(m // ", side, " * ", side,
              ", m):\n        for j in T.serial(n):\n            O[i, j] = A[j, i]\n");
  return turned(ir::parse_func(text, "<transpose>"), tiles, side, e);
}

}  // namespace

ir::PrimFunc turned(const ir::PrimFunc& f, int blocks, int side, Elem e) {
  const DType t = dtype_of(e);
  const std::string row = cat("transpose.", side, "x", side, ".",
                              t.is_uint()  ? "u"
                              : t.is_int() ? "i"
                                           : "f",
                              std::to_string(t.bits));
  schedule::Schedule sch(f, all_rules());
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
