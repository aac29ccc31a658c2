// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/small_matrix.h"

#include "weft/base/error.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

constexpr int kIndent = 16;

/// Threads that look for a pivot before all compare what they found.
int searchers(int capacity) { return capacity <= 16 ? 4 : capacity <= 64 ? 8 : 16; }

std::string element_of(const char* first, const char* second) {
  return cat("base + T.Cast(\"int64\", row) * ", first, " + T.Cast(\"int64\", ", "col) * ", second);
}

/// The matrix in W; columns from n on and rows from n on are zeros.
void load_matrix(SmallMatrixText& t, const SmallMatrix& s) {
  t.line("base: T.int64 = T.Cast(\"int64\", matrix) * a0");
  t.elements(0, s.capacity, [&] {
    t.store("W", "row, col",
            t.choose("row < n and col < n", t.in_memory("a", element_of("a1", "a2")), t.number(0)));
  });
}

/// Elimination of columns `j` < n of W with row exchanges. `pivot` gets the names of the pivot and
/// of what it is divided by, and whether rows were exchanged is `p != j`.
void eliminate(SmallMatrixText& t, const SmallMatrix& s,
               const std::function<void(const Number&)>& pivot) {
  const int n = s.capacity, wide = n + s.columns, group = searchers(n);
  t.for_("j", "n", [&] {
    auto start = [&] {
      t.line("BEST[0] = ", t.constant(-1));
      t.line("AT[0] = j");
    };
    auto better = [&](const std::string& size, const std::string& row) {
      t.line("BEST[0] = ", size);
      t.line("AT[0] = ", row);
    };
    start();
    t.if_(cat("t < ", group), [&] {
      t.unroll("i", n / group, [&] {
        t.integer("row", cat("i * ", group, " + t"));
        const Number w = t.at("W", "row, j");
        t.let_real("size", w.im.empty() ? cat("T.abs(", w.re, ")")
                                        : cat("T.abs(", w.re, ") + T.abs(", w.im, ")"));
        t.if_("row >= j and row < n and size > BEST[0]", [&] { better("size", "row"); });
      });
      t.line("FOUND[t] = BEST[0]");
      t.line("ROW[t] = AT[0]");
    });
    start();
    t.unroll("g", group,
             [&] { t.if_("FOUND[g] > BEST[0]", [&] { better("FOUND[g]", "ROW[g]"); }); });
    t.integer("p", cat("T.bitwise_and(AT[0], ", n - 1, ")"));
    const Number d = t.let("d", t.at("W", "p, j"));
    t.line("zero: T.bool = ", d.re, " == ", t.constant(0),
           d.im.empty() ? "" : cat(" and ", d.im, " == ", t.constant(0)));
    const Number safe = t.let("safe", t.choose("zero", t.number(1), d));
    const Number r = t.let_reciprocal("r", safe);
    t.places("c", wide, [&] {
      t.store("R", "c", t.at("W", "p, c"));
      t.store("Q", "c", t.at("W", "j, c"));
    });
    t.places("c", n, [&] {
      t.store("C", "c", t.choose("c == p", t.at("W", "j, j"), t.at("W", "c, j")) * r);
    });
    pivot(d);
    // Row p gets row j, and row j row p, on the way.
    t.elements(0, wide, [&] {
      t.if_("row > j and col > j", [&] {
        const Number w = t.choose("row == p", t.at("Q", "col"), t.at("W", "row, col"));
        t.store("W", "row, col", w - t.at("C", "row") * t.at("R", "col"));
      });
      t.if_("row == j and col >= j", [&] { t.store("W", "row, col", t.at("R", "col")); });
    });
  });
}

void allocate_elimination(SmallMatrixText& t, const SmallMatrix& s) {
  const int wide = s.capacity + s.columns, group = searchers(s.capacity);
  t.allocate("W", t.shape(s.capacity, wide), "shared");
  t.allocate("R", cat(wide), "shared");
  t.allocate("Q", cat(wide), "shared");
  t.allocate("C", cat(s.capacity), "shared");
  t.allocate_real("FOUND", cat(group), "shared");
  t.allocate_integer("ROW", cat(group), "shared");
  t.allocate_real("BEST", "1", "local");
  t.allocate_integer("AT", "1", "local");
}

ProgramText head(const char* name, const SmallMatrix& s,
                 std::initializer_list<const char*> numbers) {
  ProgramText out(name);
  for (const char* array : numbers) out.buffer(array, s.real);
  return out;
}

void scalars(ProgramText& p, const char* type, std::initializer_list<const char*> names) {
  for (const char* name : names) p.scalar(name, type);
}

}  // namespace

int small_capacity(std::int64_t n) {
  int capacity = 8;
  while (capacity < n && capacity < 128) capacity *= 2;
  return capacity < n ? 0 : capacity;
}

std::int64_t small_solve_bytes(const SmallMatrix& s) {
  const std::int64_t number = (s.real == "float64" ? 8 : 4) * (s.complex ? 2 : 1);
  const std::int64_t wide = s.capacity + s.columns;
  return (s.capacity * (wide + 1) + 2 * wide + s.capacity) * number + 16 * 12 + 256;
}

SmallMatrixText::SmallMatrixText(const SmallMatrix& spec, int rows, int columns)
    : NumberText(spec.real, spec.complex, kIndent), spec_(spec), rows_(rows) {
  WEFT_CHECK(columns % spec.lanes() == 0 && rows % spec.rows_at_once() == 0, "a matrix of ", rows,
             " x ", columns, " does not divide among ", spec.lanes(), " x ", spec.rows_at_once(),
             " threads");
}

void SmallMatrixText::elements(int first, int columns, const std::function<void()>& body) {
  unroll("i", rows_ / spec_.rows_at_once(), [&] {
    unroll("c", columns / spec_.lanes(), [&] {
      integer("row", cat("i * ", spec_.rows_at_once(), " + ty"));
      integer("col", cat(first, " + c * ", spec_.lanes(), " + tx"));
      body();
    });
  });
}

void SmallMatrixText::places(std::string_view e, int count, const std::function<void()>& body) {
  const int threads = spec_.threads(), rounds = (count + threads - 1) / threads;
  auto guarded = [&] {
    if (count % threads == 0) body();
    else if_(cat(e, " < ", count), body);
  };
  unroll("turn_of_thread", rounds, [&] {
    integer(e, cat("turn_of_thread * ", threads, " + t"));
    guarded();
  });
}

void SmallMatrixText::allocate_largest() {
  allocate_real("RED", cat(spec_.threads()), "shared");
  allocate_real("FOUND", cat(groups()), "shared");
  allocate_real("MOST", "1", "local");
}

void SmallMatrixText::largest(std::string_view buffer) {
  auto take = [&](const std::string& value) { line("MOST[0] = T.max(MOST[0], ", value, ")"); };
  line("MOST[0] = ", constant(0));
  elements(0, spec_.capacity, [&] {
    const Number w = at(buffer, "row, col");
    take(cat("T.abs(", w.re, ")"));
    if (complex()) take(cat("T.abs(", w.im, ")"));
  });
  line("RED[t] = MOST[0]");
  if_(cat("t < ", groups()), [&] {
    suite(cat("for part in T.serial(T.int32(", spec_.threads() / groups(), "))"),
          [&] { take(cat("RED[part * ", groups(), " + t]")); });
    line("FOUND[t] = MOST[0]");
  });
  unroll("g", groups(), [&] { take("FOUND[g]"); });
}

void SmallMatrixText::let_factor() {
  const double far = real() == "float64" ? 1e120 : 1e12;
  line("fits: T.bool = MOST[0] == ", constant(0), " or (MOST[0] > ", constant(1 / far),
       " and MOST[0] < ", constant(far), ")");
  let_real("BACK", cat("T.if_then_else(fits, ", constant(1), ", MOST[0])"));
  let_real("FACTOR", cat(constant(1), " / BACK"));
}

void SmallMatrixText::column_sums(std::string_view lines, const std::function<Number()>& term) {
  const int columns = spec_.capacity / spec_.lanes();
  const std::string sums = cat("OF_", lines);
  unroll("c", columns, [&] {
    integer("col", cat("c * ", spec_.lanes(), " + tx"));
    store(sums, "0", number(0));
    unroll("i", rows_ / spec_.rows_at_once(), [&] {
      integer("row", cat("i * ", spec_.rows_at_once(), " + ty"));
      store(sums, "0", at(sums, "0") + term());
    });
    store(lines, "ty, col", at(sums, "0"));
  });
}

Number SmallMatrixText::column_sum(std::string_view name, std::string_view lines,
                                   std::string_view col) {
  Number sum = at(lines, cat("0, ", col));
  for (int k = 1; k < spec_.rows_at_once(); ++k) sum = sum + at(lines, cat(k, ", ", col));
  return let(name, sum);
}

std::string SmallMatrixText::program() const {
  return cat("    for b in T.thread_binding(blocks, thread=\"blockIdx.x\"):\n",
             "        for ty in T.thread_binding(T.int32(", spec_.rows_at_once(),
             "), thread=\"threadIdx.y\"):\n", "            for tx in T.thread_binding(T.int32(",
             spec_.lanes(), "), thread=\"threadIdx.x\"):\n", "                t: T.int32 = ty * ",
             spec_.lanes(), " + tx\n", text());
}

ir::PrimFunc small_solve(const SmallMatrix& s) {
  const int n = s.capacity, wide = n + s.columns;
  SmallMatrixText t(s, n, wide);
  allocate_elimination(t, s);
  t.allocate_integer("BAD", "1", "local");
  t.integer("matrix", "b // parts");
  t.integer("first", cat("b % parts * ", s.columns));
  load_matrix(t, s);
  t.line("base_b: T.int64 = T.Cast(\"int64\", matrix) * b0");
  t.elements(n, s.columns, [&] {
    t.integer("side", cat("first + col - ", n));
    t.store("W", "row, col",
            t.choose("row < n and side < k",
                     t.in_memory("rhs",
                                 "base_b + T.Cast(\"int64\", row) * b1 + T.Cast(\"int64\", side) * "
                                 "b2"),
                     t.number(0)));
  });
  t.line("BAD[0] = 0");
  eliminate(t, s, [&](const Number&) {
    t.if_("zero and BAD[0] == 0", [&] { t.line("BAD[0] = j + 1"); });
  });
  t.for_("back", "n", [&] {
    t.integer("j", "n - 1 - back");
    const Number d = t.let("d", t.at("W", "j, j"));
    t.line("zero: T.bool = ", d.re, " == ", t.constant(0),
           d.im.empty() ? "" : cat(" and ", d.im, " == ", t.constant(0)));
    const Number safe = t.let("safe", t.choose("zero", t.number(1), d));
    const Number r = t.let_reciprocal("r", safe);
    t.places("c", s.columns, [&] { t.store("R", "c", t.at("W", cat("j, ", n, " + c")) * r); });
    t.places("c", n, [&] { t.store("C", "c", t.at("W", "c, j")); });
    t.elements(n, s.columns, [&] {
      const Number x = t.at("R", cat("col - ", n));
      t.if_("row < j",
            [&] { t.store("W", "row, col", t.at("W", "row, col") - t.at("C", "row") * x); });
      t.if_("row == j", [&] { t.store("W", "row, col", x); });
    });
  });
  t.elements(n, s.columns, [&] {
    t.integer("side", cat("first + col - ", n));
    t.if_("row < n and side < k", [&] {
      t.store_in_memory("x",
                        "(T.Cast(\"int64\", matrix) * T.Cast(\"int64\", n) + T.Cast(\"int64\", "
                        "row)) * T.Cast(\"int64\", k) + T.Cast(\"int64\", side)",
                        t.at("W", "row, col"));
    });
  });
  t.if_("t == 0 and first == 0", [&] { t.line("status[matrix] = BAD[0]"); });
  ProgramText p = head("matrix.solve", s, {"a", "rhs", "x"});
  p.buffer("status", "int32");
  scalars(p, "int32", {"blocks", "parts", "n", "k"});
  scalars(p, "int64", {"a0", "a1", "a2", "b0", "b1", "b2"});
  return p.distinct().parse(t.program(), {});
}

ir::PrimFunc small_determinant(const SmallMatrix& s) {
  SmallMatrixText t(s, s.capacity, s.capacity);
  allocate_elimination(t, s);
  t.allocate("DET", "1", "local");
  t.allocate("SIGN", "1", "local");
  t.allocate_real("LOG", "1", "local");
  t.integer("matrix", "b");
  load_matrix(t, s);
  t.store("DET", "0", t.number(1));
  t.store("SIGN", "0", t.number(1));
  t.line("LOG[0] = ", t.constant(0));
  eliminate(t, s, [&](const Number& d) {
    t.let_real("turn", cat("T.Select(p != j, ", t.constant(-1), ", ", t.constant(1), ")"));
    t.store("DET", "0", scaled(t.at("DET", "0") * d, "turn"));
    if (t.complex()) {
      t.let_real("most", cat("T.max(T.abs(", d.re, "), T.abs(", d.im, "))"));
      t.let_real("some", cat("T.Select(zero, ", t.constant(1), ", most)"));
      const Number unit = t.let("unit", {cat(d.re, " / some"), cat(d.im, " / some")});
      t.let_real("length", cat("T.sqrt(", square(unit), ")"));
      t.let_real("size", "some * length");
      t.let_real("along", cat("turn / T.Select(zero, ", t.constant(1), ", length)"));
      t.store("SIGN", "0", scaled(t.at("SIGN", "0") * unit, "along"));
      t.line("LOG[0] = LOG[0] + T.Select(zero, ", t.constant(0), " - T.", t.real(),
             "(\"inf\"), T.log(size))");
    } else {
      t.line("SIGN[0] = SIGN[0] * turn * T.Select(d > ", t.constant(0), ", ", t.constant(1),
             ", T.Select(d < ", t.constant(0), ", ", t.constant(-1), ", d))");
      t.line("LOG[0] = LOG[0] + T.log(T.abs(d))");
    }
  });
  t.if_("t == 0", [&] {
    t.store_in_memory("sign", "T.Cast(\"int64\", matrix)", t.at("SIGN", "0"));
    t.store_in_memory("det", "T.Cast(\"int64\", matrix)", t.at("DET", "0"));
    t.line("log[matrix] = LOG[0]");
  });
  ProgramText p = head("matrix.determinant", s, {"a", "sign", "log", "det"});
  scalars(p, "int32", {"blocks", "n"});
  scalars(p, "int64", {"a0", "a1", "a2"});
  return p.distinct().parse(t.program(), {});
}

ir::PrimFunc small_cholesky(const SmallMatrix& s, bool upper) {
  const int n = s.capacity;
  SmallMatrixText t(s, n, n);
  t.allocate("W", t.shape(n, n), "shared");
  t.allocate("C", cat(n), "shared");
  t.allocate_integer("BAD", "1", "local");
  t.integer("matrix", "b");
  t.line("base: T.int64 = T.Cast(\"int64\", matrix) * a0");
  // The upper factor is the adjoint of the lower one of the adjoint.
  t.elements(0, n, [&] {
    const Number a = t.in_memory("a", upper ? element_of("a2", "a1") : element_of("a1", "a2"));
    t.store("W", "row, col", t.choose("row < n and col < n", upper ? conj(a) : a, t.number(0)));
  });
  t.line("BAD[0] = 0");
  t.for_("j", "n", [&] {
    t.let_real("d", t.at("W", "j, j").re);
    t.line("good: T.bool = d > ", t.constant(0));
    t.if_("not good and BAD[0] == 0", [&] { t.line("BAD[0] = j + 1"); });
    t.let_real("root", cat("T.sqrt(T.Select(good, d, ", t.constant(1), "))"));
    t.let_real("r", cat(t.constant(1), " / root"));
    t.places("c", n, [&] {
      const Number root{"root", t.complex() ? t.constant(0) : ""};
      t.store("C", "c", t.choose("c == j", root, scaled(t.at("W", "c, j"), "r")));
    });
    t.elements(0, n, [&] {
      t.if_("row >= col and col > j", [&] {
        t.store("W", "row, col", t.at("W", "row, col") - t.at("C", "row") * conj(t.at("C", "col")));
      });
      t.if_("row >= j and col == j", [&] { t.store("W", "row, col", t.at("C", "row")); });
    });
  });
  t.elements(0, n, [&] {
    t.if_("row < n and col < n", [&] {
      const Number w = upper ? conj(t.at("W", "col, row")) : t.at("W", "row, col");
      t.store_in_memory("out",
                        "(T.Cast(\"int64\", matrix) * T.Cast(\"int64\", n) + T.Cast(\"int64\", "
                        "row)) * T.Cast(\"int64\", n) + T.Cast(\"int64\", col)",
                        t.choose(upper ? "row <= col" : "row >= col", w, t.number(0)));
    });
  });
  t.if_("t == 0", [&] { t.line("status[matrix] = BAD[0]"); });
  ProgramText p = head("matrix.cholesky", s, {"a", "out"});
  p.buffer("status", "int32");
  scalars(p, "int32", {"blocks", "n"});
  scalars(p, "int64", {"a0", "a1", "a2"});
  return p.distinct().parse(t.program(), {});
}

}  // namespace weft::operators
