// SPDX-License-Identifier: Apache-2.0
// Parts of matrix products: the register tile with its edges, panels packed by transposes in
// registers, products with a vector. Each is a program whose schedule is a few public steps.

#include "weft/host/generate/vectors.h"
#include "weft/ir/text.h"

namespace weft::generate {

namespace {

/// What is accumulated: S[mr, NR] over p. A is a panel, of which the first mr rows are read, or
/// rows where they stand.
std::string tile_text(const VectorShape& shape, Elem e, int mr, bool direct,
                      const std::string& more, const std::string& scalars,
                      const std::string& body) {
  const std::string type(name_of(e));
  const int nr = shape.columns(elem_bytes(e));
  const std::string a_strides = direct ? std::string("(row, 1)") : cat("(1, ", shape.rows, ")");
  return cat("@T.prim_func\ndef main(a: T.handle, b: T.handle, c: T.handle, ", more,
             "kc: T.int64, row: T.int64, ldc: T.int64, ", scalars, "):\n",
             "    A = T.match_buffer(a, (", mr, ", kc), \"", type, "\", strides=", a_strides,
             ")\n    B = T.match_buffer(b, (kc, ", nr, "), \"", type,
             "\")\n    C = T.match_buffer(c, (", mr, ", ", nr, "), \"", type,
             "\", strides=(ldc, 1))\n    S = T.alloc_buffer((", mr, ", ", nr, "), \"", type,
             "\")\n", body, "    for i, j, p in T.grid(", mr, ", ", nr,
             ", kc):\n        with T.block(\"sum\"):\n            vi, vj, vp = "
             "T.axis.remap(\"SSR\", [i, j, p])\n            with T.init():\n                "
             "S[vi, vj] = T.",
             type, "(0)\n            S[vi, vj] = S[vi, vj] + A[vi, vp] * B[vp, vj]\n",
             "    for i, j in T.grid(", mr, ", ", nr,
             "):\n        with T.block(\"out\"):\n            vi, vj = T.axis.remap(\"SS\", [i, "
             "j])\n            ");
}

/// Running sums in registers, p outside, rows and columns unrolled in vectors.
ir::PrimFunc scheduled_tile(const std::string& text, int lanes) {
  schedule::Schedule sch(ir::parse_func(text, "<tile>"));
  const schedule::BlockRef sum = sch.get_block("sum");
  sch.set_scope(sum, 0, "local");
  auto loops = sch.get_loops(sum);
  auto columns = sch.split(loops[1], {std::nullopt, lanes});
  sch.reorder({loops[2], loops[0], columns[0], columns[1]});
  sch.annotate(loops[2], "unroll_factor", 4);
  const schedule::BlockRef init = sch.decompose_reduction(sum, loops[2]);
  auto out = sch.get_loops(sch.get_block("out"));
  sch.split(out[1], {std::nullopt, lanes});
  for (const schedule::BlockRef& block : {init, sum, sch.get_block("out")}) {
    auto nest = sch.get_loops(block);
    sch.vectorize(nest.back());
    sch.unroll(nest[nest.size() - 2]);
    sch.unroll(nest[nest.size() - 3]);
  }
  return sch.func();
}

ir::PrimFunc tile_function(const VectorShape& shape, Elem e, bool direct, bool add) {
  const int line = 64 / elem_bytes(e);
  const std::string hints =
      cat("    N = T.match_buffer(next, (lines, ", line, "), \"", name_of(e),
          "\")\n    for l in T.serial(lines):\n        with T.block(\"ahead\"):\n            vl = "
          "T.axis.spatial(lines, l)\n            T.evaluate(T.prefetch(T.address_of(N[vl, 0]), 0, "
          "2))\n    for i in T.serial(",
          shape.rows, "):\n        with T.block(\"hint\"):\n            vi = T.axis.spatial(",
          shape.rows, ", i)\n            T.evaluate(T.prefetch(T.address_of(C[vi, 0]), 1, 3))\n");
  return scheduled_tile(
      cat(tile_text(shape, e, shape.rows, direct, "next: T.handle, ", "lines: T.int64", hints),
          add ? "C[vi, vj] = C[vi, vj] + S[vi, vj]\n" : "C[vi, vj] = S[vi, vj]\n"),
      shape.lanes(elem_bytes(e)));
}

ir::PrimFunc edge_function(const VectorShape& shape, Elem e, int mr, bool direct) {
  const int nr = shape.columns(elem_bytes(e));
  const std::string whole =
      cat("    E = T.alloc_buffer((", mr, ", ", nr, "), \"", name_of(e), "\", scope=\"local\")\n");
  return scheduled_tile(
      cat(tile_text(shape, e, mr, direct, "", "m: T.int64, n: T.int64, add: T.int64", whole),
          "E[vi, vj] = S[vi, vj]\n    for i, j in T.grid(m, n):\n        with T.block(\"part\"):\n"
          "            vi, vj = T.axis.remap(\"SS\", [i, j])\n            C[vi, vj] = "
          "T.if_then_else(add != 0, C[vi, vj] + E[vi, vj], E[vi, vj])\n"),
      shape.lanes(elem_bytes(e)));
}

std::string pack_head(Elem e, int width) {
  const std::string type(name_of(e));
  return cat(
      "@T.prim_func\ndef main(a: T.handle, out: T.handle, rows: T.int64, k: T.int64, "
      "across: T.int64, along: T.int64):\n    A = T.match_buffer(a, (rows, k), \"",
      type, "\", strides=(across, along))\n    O = T.match_buffer(out, (k * ", width, " + 16,), \"",
      type, "\")\n");
}

/// Rows of the panel element by element, for p from `first` on.
std::string gather_rows(int width, const std::string& first, const std::string& indent) {
  return cat(indent, "for p in T.serial(", first, ", k):\n", indent,
             "    for r in T.serial(T.min(rows, ", width, ")):\n", indent, "        O[p * ", width,
             " + r] = A[r, p]\n");
}

ir::PrimFunc gather_function(Elem e, int width) {
  return ir::parse_func(cat(pack_head(e, width), gather_rows(width, "0", "    ")), "<gather>");
}

ir::PrimFunc copy_function(Elem e, int width, int lanes) {
  std::string text = cat(pack_head(e, width), "    for p in T.serial(k):\n");
  for (int at = 0, n = lanes; at < width;) {
    while (n > width - at) n /= 2;
    text += cat("        for r in T.vectorized(", n, "):\n            O[p * ", width, " + ", at,
                " + r] = A[", at, " + r, p]\n");
    at += n;
  }
  std::string unit = text;
  const std::string steps = "strides=(across, along)";
  unit.replace(unit.find(steps), steps.size(), "strides=(1, along)");
  return ir::parse_func(unit, "<copy>");
}

/// Groups of rows are turned in registers. Of a panel that is not a multiple of them, or has fewer
/// rows, the last group ends with its last row and overlaps the one before.
ir::PrimFunc interleave_function(const VectorShape& shape, Elem e, int width) {
  const int side = shape.side(elem_bytes(e)), groups = (width + side - 1) / side;
  std::string text = pack_head(e, width), turns, stores;
  const std::string steps = "strides=(across, along)";
  text.replace(text.find(steps), steps.size(), "strides=(across, 1)");
  for (int g = 0; g < groups; ++g) {
    const std::string at =
        g == 0 ? std::string("0")
               : cat("T.max(0, T.min(", g * side, ", T.min(rows, ", width, ") - ", side, "))");
    text += cat("    t", g, " = T.alloc_buffer((", side, ", ", side, "), \"", name_of(e),
                "\", scope=\"local\")\n");
    turns += cat("            for i, j in T.grid(", side, ", ", side,
                 "):\n                with T.block(\"turn", g,
                 "\"):\n                    vp = T.axis.spatial(k // ", side,
                 ", p)\n                    vi, vj = T.axis.remap(\"SS\", [i, j])\n"
                 "                    t",
                 g, "[vi, vj] = A[vj + ", at, ", vi + vp * ", side, "]\n");
    stores += cat("                for r in T.vectorized(", side, "):\n                    O[(p * ",
                  side, " + i) * ", width, " + ", at, " + r] = t", g, "[i, r]\n");
  }
  text += cat("    if rows >= ", side, ":\n        for p in T.serial(k // ", side, "):\n", turns,
              "            for i in T.unroll(", side, "):\n", stores,
              gather_rows(width, cat("k // ", side, " * ", side), "        "), "    else:\n",
              gather_rows(width, "0", "        "));
  return turned(ir::parse_func(text, "<interleave>"), groups, side, e);
}

/// Sums of `rows` rows side by side, `sums` vectors for each, joined pairwise.
ir::PrimFunc dot_function(const VectorShape& shape, Elem e, int rows, int sums) {
  const int lanes = shape.lanes(elem_bytes(e)), step = sums * lanes;
  const std::string type(name_of(e)), over_rows = cat("for r in T.unroll(", rows, "):\n"),
                                      over_lanes = cat("for l in T.vectorized(", lanes, "):\n");
  std::string text = cat(
      "@T.prim_func\ndef main(a: T.handle, x: T.handle, y: T.handle, k: T.int64, row: T.int64):\n"
      "    A = T.match_buffer(a, (",
      rows, ", k), \"", type, "\", strides=(row, 1))\n    X = T.match_buffer(x, (k,), \"", type,
      "\")\n    Y = T.match_buffer(y, (", rows, ",), \"", type, "\")\n    S = T.alloc_buffer((",
      rows, ", ", sums, ", ", lanes, "), \"", type,
      "\", scope=\"local\")\n    P = T.alloc_buffer((", rows, ", ", lanes, "), \"", type,
      "\", scope=\"local\")\n    Q = T.alloc_buffer((", rows, ",), \"", type,
      "\", scope=\"local\")\n    R = T.alloc_buffer((", rows, ",), \"", type,
      "\", scope=\"local\")\n");
  text += cat("    ", over_rows, "        for u in T.unroll(", sums, "):\n            ", over_lanes,
              "                S[r, u, l] = T.", type, "(0)\n");
  text += cat("    for p in T.serial(k // ", step, "):\n        for u in T.unroll(", sums,
              "):\n            ", over_rows, "                ", over_lanes,
              "                    S[r, u, l] = S[r, u, l] + A[r, p * ", step, " + u * ", lanes,
              " + l] * X[p * ", step, " + u * ", lanes, " + l]\n");
  text += cat("    for p in T.serial(k // ", step, " * ", sums, ", k // ", lanes, "):\n        ",
              over_rows, "            ", over_lanes,
              "                S[r, 0, l] = S[r, 0, l] + A[r, p * ", lanes, " + l] * X[p * ", lanes,
              " + l]\n");
  for (int n = sums / 2; n > 0; n /= 2)
    text += cat("    ", over_rows, "        for u in T.unroll(", n, "):\n            ", over_lanes,
                "                S[r, u, l] = S[r, u, l] + S[r, u + ", n, ", l]\n");
  text += cat("    ", over_rows, "        ", over_lanes, "            P[r, l] = S[r, 0, l]\n");
  const bool turns = rows == 4 && lanes >= 4;
  int last = lanes;  // elements of the narrowest vector that the row's end is read by
  for (int n = lanes / 2; n >= (turns ? 4 : 1); n /= 2) {
    text += cat("    ", over_rows, "        for l in T.vectorized(", n,
                "):\n            P[r, l] = P[r, l] + P[r, l + ", n, "]\n");
    if (n < 4) continue;
    last = n;
    text +=
        cat("    for p in T.serial(k // ", 2 * n, " * 2, k // ", n, "):\n        ", over_rows,
            "            for l in T.vectorized(", n,
            "):\n                P[r, l] = P[r, l] + A[r, p * ", n, " + l] * X[p * ", n, " + l]\n");
  }
  if (turns)  // four rows of four sums: columns are added
    text += cat("    t0 = T.alloc_buffer((4, 4), \"", type,
                "\", scope=\"local\")\n    for i, j in T.grid(4, 4):\n        with "
                "T.block(\"turn0\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n       "
                "     t0[vi, vj] = P[vj, vi]\n    for r in T.vectorized(4):\n        Q[r] = (t0[0, "
                "r] + t0[2, r]) + (t0[1, r] + t0[3, r])\n");
  else text += cat("    ", over_rows, "        Q[r] = P[r, 0]\n");
  text += cat("    ", over_rows, "        R[r] = T.", type, "(0)\n    for q in T.serial(k // ",
              last, " * ", last, ", k):\n        ", over_rows,
              "            R[r] = R[r] + A[r, q] * X[q]\n    ", over_rows,
              "        Y[r] = Q[r] + R[r]\n");
  return turned(ir::parse_func(text, "<dot>"), turns ? 1 : 0, 4, e);
}

/// Eight columns a pass, of elements `held` as others, which are widened in registers.
ir::PrimFunc columns_function(const VectorShape& shape, Elem e, Elem held) {
  const int lanes = shape.lanes(elem_bytes(e));
  const std::string type(name_of(e));
  constexpr int kColumns = 8;
  const std::string wide = e == held ? "(" : cat("T.Cast(\"", type, "\", ");
  std::string text = cat(
      "@T.prim_func\ndef main(a: T.handle, x: T.handle, y: T.handle, m: T.int64, k: T.int64, col: "
      "T.int64):\n    A = T.match_buffer(a, (k, m), \"",
      name_of(held), "\", strides=(col, 1))\n    X = T.match_buffer(x, (k,), \"", type,
      "\")\n    Y = T.match_buffer(y, (m,), \"", type, "\")\n");
  auto pass = [&](const std::string& range, int columns) {
    std::string out = cat("    for p in T.serial(", range, "):\n");
    auto sum = [&](const std::string& at) {
      std::string terms = cat("Y[", at, "]");
      for (int q = 0; q < columns; ++q)
        terms += cat(" + ", wide, "A[p * ", columns, " + ", q, ", ", at, "]) * x", q);
      return cat("Y[", at, "] = ", terms, "\n");
    };
    for (int q = 0; q < columns; ++q)
      out += cat("        x", q, ": T.", type, " = X[p * ", columns, " + ", q, "]\n");
    out += cat("        for i in T.serial(m // ", lanes, "):\n            for l in T.vectorized(",
               lanes, "):\n                ", sum(cat("i * ", lanes, " + l")));
    return out + cat("        for i in T.serial(m // ", lanes, " * ", lanes, ", m):\n            ",
                     sum("i"));
  };
  text += pass(cat("k // ", kColumns), kColumns);
  text += pass(cat("k // ", kColumns, " * ", kColumns, ", k"), 1);
  return ir::parse_func(text, "<columns>");
}

/// Two or four rows of X by A: `wide` vectors of each row of Y are held while all rows of A pass.
ir::PrimFunc rows_function(const VectorShape& shape, Elem e, int rows) {
  const int lanes = shape.lanes(elem_bytes(e)), wide = (shape.bytes >= 64 ? 24 : 12) / rows;
  const std::string type(name_of(e)), row = cat("for r in T.unroll(", rows, "):\n"),
                                      lane = cat("for l in T.vectorized(", lanes, "):\n");
  std::string text = cat(
      "@T.prim_func\ndef main(a: T.handle, x: T.handle, y: T.handle, m: T.int64, k: T.int64, col: "
      "T.int64, xs: T.int64, ys: T.int64):\n    A = T.match_buffer(a, (k, m), \"",
      type, "\", strides=(col, 1))\n    X = T.match_buffer(x, (", rows, ", k), \"", type,
      "\", strides=(xs, 1))\n    Y = T.match_buffer(y, (", rows, ", m), \"", type,
      "\", strides=(ys, 1))\n");
  // Columns `range` of so many vectors, whose first column is i times `step`.
  auto block = [&](const std::string& range, int vectors, int step) {
    const std::string s = cat("S", vectors);
    text += cat("    ", s, " = T.alloc_buffer((", rows, ", ", vectors, ", ", lanes, "), \"", type,
                "\", scope=\"local\")\n    for i in T.serial(", range, "):\n");
    auto all = [&](const std::string& indent, const std::string& body) {
      text += cat(indent, row, indent, "    for u in T.unroll(", vectors, "):\n", indent,
                  "        ", lane, indent, "            ", body, "\n");
    };
    const std::string at = cat("i * ", step, " + u * ", lanes, " + l"), held = cat(s, "[r, u, l]");
    all("        ", cat(held, " = Y[r, ", at, "]"));
    text += "        for p in T.serial(k):\n";
    all("            ", cat(held, " = ", held, " + X[r, p] * A[p, ", at, "]"));
    all("        ", cat("Y[r, ", at, "] = ", held));
  };
  const int whole = wide * lanes;
  block(cat("m // ", whole), wide, whole);
  block(cat("m // ", whole, " * ", wide, ", m // ", lanes), 1, lanes);
  text += cat("    for i in T.serial(m // ", lanes, " * ", lanes,
              ", m):\n        for r in T.serial(", rows,
              "):\n            for p in T.serial(k):\n                Y[r, i] = Y[r, i] + X[r, p] "
              "* A[p, i]\n");
  return ir::parse_func(text, "<rows>");
}

/// Elements of rows of A by those of X: four vectors of Y are held while all rows pass.
ir::PrimFunc products_function(const VectorShape& shape, Elem e) {
  constexpr int kWide = 4;
  const int lanes = shape.lanes(elem_bytes(e));
  const std::string type(name_of(e));
  std::string text = cat(
      "@T.prim_func\ndef main(a: T.handle, x: T.handle, y: T.handle, m: T.int64, k: T.int64, as_: "
      "T.int64, xs: T.int64):\n    A = T.match_buffer(a, (k, m), \"",
      type, "\", strides=(as_, 1))\n    X = T.match_buffer(x, (k, m), \"", type,
      "\", strides=(xs, 1))\n    Y = T.match_buffer(y, (m,), \"", type, "\")\n");
  auto block = [&](const std::string& range, int vectors) {
    const std::string s = cat("S", vectors), held = cat(s, "[u, l]"),
                      at = cat("i * ", vectors * lanes, " + u * ", lanes, " + l");
    text += cat("    ", s, " = T.alloc_buffer((", vectors, ", ", lanes, "), \"", type,
                "\", scope=\"local\")\n    for i in T.serial(", range, "):\n");
    auto all = [&](const std::string& indent, const std::string& body) {
      text += cat(indent, "for u in T.unroll(", vectors, "):\n", indent,
                  "    for l in T.vectorized(", lanes, "):\n", indent, "        ", body, "\n");
    };
    all("        ", cat(held, " = Y[", at, "]"));
    text += "        for p in T.serial(k):\n";
    all("            ", cat(held, " = ", held, " + A[p, ", at, "] * X[p, ", at, "]"));
    all("        ", cat("Y[", at, "] = ", held));
  };
  block(cat("m // ", kWide * lanes), kWide);
  block(cat("m // ", kWide * lanes, " * ", kWide, ", m // ", lanes), 1);
  text += cat("    for i in T.serial(m // ", lanes, " * ", lanes,
              ", m):\n        for p in T.serial(k):\n            Y[i] = Y[i] + A[p, i] * X[p, "
              "i]\n");
  return ir::parse_func(text, "<products>");
}

}  // namespace

std::vector<Kernel> product_kernels(const VectorShape& shape) {
  std::vector<Kernel> out;
  for (Elem e : {Elem::float32, Elem::float64}) {
    const int columns = shape.columns(elem_bytes(e)), lanes = shape.lanes(elem_bytes(e));
    auto add = [&](VectorKernel k, const char* name, const char* frame, ir::PrimFunc f) {
      out.push_back(vector_kernel(k, e, cat("v_", name, "_", name_of(e)), frame, std::move(f)));
    };
    constexpr const char *kTile =
                             "const void* A, const void* B, void* C, const void* N, int64_t kc, "
                             "int64_t row, int64_t ldc, int64_t lines",
                         *kEdge =
                             "const void* A, const void* B, void* C, int64_t kc, int64_t row, "
                             "int64_t ldc, int64_t m, int64_t n, int64_t add",
                         *kPack =
                             "const void* A, void* O, int64_t rows, int64_t k, int64_t across, "
                             "int64_t along",
                         *kDot = "const void* A, const void* X, void* Y, int64_t k, int64_t row";
    using K = VectorKernel;
    add(K::tile, "tile", kTile, tile_function(shape, e, false, false));
    add(K::tile_add, "tile_add", kTile, tile_function(shape, e, false, true));
    add(K::tile_direct, "tile_direct", kTile, tile_function(shape, e, true, false));
    add(K::tile_direct_add, "tile_direct_add", kTile, tile_function(shape, e, true, true));
    add(K::edge, "edge", kEdge, edge_function(shape, e, shape.rows, false));
    add(K::edge_low, "edge_low", kEdge, edge_function(shape, e, shape.low(), false));
    add(K::edge_middle, "edge_middle", kEdge, edge_function(shape, e, 2 * shape.low(), false));
    add(K::edge_direct, "edge_direct", kEdge, edge_function(shape, e, shape.rows, true));
    add(K::interleave_rows, "interleave_rows", kPack, interleave_function(shape, e, shape.rows));
    add(K::interleave_columns, "interleave_columns", kPack, interleave_function(shape, e, columns));
    add(K::copy_rows, "copy_rows", kPack, copy_function(e, shape.rows, lanes));
    add(K::copy_columns, "copy_columns", kPack, copy_function(e, columns, lanes));
    add(K::gather_rows, "gather_rows", kPack, gather_function(e, shape.rows));
    add(K::gather_columns, "gather_columns", kPack, gather_function(e, columns));
    add(K::dot_four, "dot_four", kDot, dot_function(shape, e, 4, 2));
    add(K::dot_one, "dot_one", kDot, dot_function(shape, e, 1, 2));
    add(K::dot_long, "dot_long", kDot, dot_function(shape, e, 1, 8));
    add(K::columns, "columns",
        "const void* A, const void* X, void* Y, int64_t m, int64_t k, int64_t col",
        columns_function(shape, e, e));
    constexpr const char* kRows =
        "const void* A, const void* X, void* Y, int64_t m, int64_t k, int64_t col, int64_t xs, "
        "int64_t ys";
    add(K::columns_two, "columns_two", kRows, rows_function(shape, e, 2));
    add(K::columns_four, "columns_four", kRows, rows_function(shape, e, 4));
    add(K::products, "products",
        "const void* A, const void* X, void* Y, int64_t m, int64_t k, int64_t as_, int64_t xs",
        products_function(shape, e));
  }
  out.push_back(
      vector_kernel(VectorKernel::columns, Elem::bfloat16, "v_columns_bfloat16",
                    "const void* A, const void* X, void* Y, int64_t m, int64_t k, int64_t col",
                    columns_function(shape, Elem::float32, Elem::bfloat16)));
  return out;
}

}  // namespace weft::generate
