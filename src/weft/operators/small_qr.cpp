// SPDX-License-Identifier: Apache-2.0
// Householder's method for one matrix a block.

#include "weft/operators/program_text.h"
#include "weft/operators/small_matrix.h"

namespace weft::operators {

namespace {

/// Applies the reflector V with the factor `tau` from the left: elements of W for which `condition`
/// holds.
void reflect(SmallMatrixText& t, const SmallMatrix& s, const Number& tau,
             std::string_view condition) {
  t.column_sums("LINES", [&] { return conj(t.at("V", "row")) * t.at("W", "row, col"); });
  t.unroll("c", s.capacity / s.lanes(), [&] {
    t.integer("col", cat("c * ", s.lanes(), " + tx"));
    const Number sum = t.column_sum("sum", "LINES", "col");
    const Number share = t.let("share", tau * sum);
    t.unroll("i", s.capacity / s.rows_at_once(), [&] {
      t.integer("row", cat("i * ", s.rows_at_once(), " + ty"));
      t.if_(condition,
            [&] { t.store("W", "row, col", t.at("W", "row, col") - t.at("V", "row") * share); });
    });
  });
}

}  // namespace

std::int64_t small_orthogonal_bytes(const SmallMatrix& s) {
  const std::int64_t number = (s.real == "float64" ? 8 : 4) * (s.complex ? 2 : 1);
  const std::int64_t n = s.capacity;
  return (2 * n * (n + 1) + 2 * s.rows_at_once() * (n + 1) + 4 * n) * number + s.threads() * 8 +
         1024;
}

std::int64_t small_qr_bytes(const SmallMatrix& s) {
  const std::int64_t number = (s.real == "float64" ? 8 : 4) * (s.complex ? 2 : 1);
  const std::int64_t n = s.capacity;
  return ((n + s.rows_at_once()) * (n + 1) + 2 * n) * number + s.threads() * 8 + 1024;
}

ir::PrimFunc small_qr(const SmallMatrix& s) {
  const int n = s.capacity;
  SmallMatrixText t(s, n, n);
  t.allocate("W", t.shape(n, n), "shared");
  t.allocate("LINES", t.shape(s.rows_at_once(), n), "shared");
  t.allocate("V", cat(n), "shared");
  t.allocate("TAU", cat(n), "shared");
  t.allocate("OF_LINES", "1", "local");
  t.allocate_largest();
  t.line("base: T.int64 = T.Cast(\"int64\", b) * a0");
  t.elements(0, n, [&] {
    t.store("W", "row, col",
            t.choose("row < m and col < n",
                     t.in_memory("a",
                                 "base + T.Cast(\"int64\", row) * a1 + T.Cast(\"int64\", col) * "
                                 "a2"),
                     t.number(0)));
  });
  t.largest("W");
  t.let_factor();
  t.elements(0, n, [&] { t.store("W", "row, col", scaled(t.at("W", "row, col"), "FACTOR")); });
  t.for_("j", "steps", [&] {
    t.if_(cat("t < ", t.groups()), [&] {
      t.line("MOST[0] = ", t.constant(0));
      t.unroll("i", n / t.groups(), [&] {
        t.integer("row", cat("i * ", t.groups(), " + t"));
        t.if_("row > j", [&] { t.line("MOST[0] = MOST[0] + ", square(t.at("W", "row, j"))); });
      });
      t.line("FOUND[t] = MOST[0]");
    });
    t.line("MOST[0] = ", t.constant(0));
    t.unroll("g", t.groups(), [&] { t.line("MOST[0] = MOST[0] + FOUND[g]"); });
    // The reflector of LAPACK's larfg.
    const Number alpha = t.let("alpha", t.at("W", "j, j"));
    t.line("plain: T.bool = MOST[0] == ", t.constant(0),
           t.complex() ? cat(" and ", alpha.im, " == ", t.constant(0)) : "");
    t.let_real("length", cat("T.sqrt(MOST[0] + ", square(alpha), ")"));
    t.let_real("beta", cat("T.Select(plain, ", alpha.re, ", T.Select(", alpha.re, " > ",
                           t.constant(0), ", -length, length))"));
    t.let_real("over", cat("T.Select(plain, ", t.constant(1), ", beta)"));
    const Number less =
        t.let("less", {cat("T.Select(plain, ", t.constant(1), ", ", alpha.re, " - beta)"),
                       t.complex() ? alpha.im : ""});
    const Number scale = t.let_reciprocal("scale", less);
    const Number tau =
        t.let("tau", {cat("T.Select(plain, ", t.constant(0), ", (beta - ", alpha.re, ") / over)"),
                      t.complex() ? cat("-", alpha.im, " / over") : ""});
    t.places("c", n, [&] {
      const Number below = t.choose("c > j and not plain", t.at("W", "c, j") * scale, t.number(0));
      t.store("V", "c", t.choose("c == j", t.number(1), below));
    });
    t.if_("t == 0", [&] { t.store("TAU", "j", tau); });
    reflect(t, s, conj(tau), "col > j and row >= j");
    t.places("c", n, [&] {
      const Number first{"beta", t.complex() ? t.constant(0) : ""};
      t.if_("c >= j", [&] { t.store("W", "c, j", t.choose("c == j", first, t.at("V", "c"))); });
    });
  });
  auto place = [](const char* rows, const char* columns) {
    return cat("(T.Cast(\"int64\", b) * T.Cast(\"int64\", ", rows,
               ") + T.Cast(\"int64\", row)) * T.Cast(\"int64\", ", columns,
               ") + T.Cast(\"int64\", col)");
  };
  // Columns of Q take the places of those of R and of the reflectors, from the last one on.
  t.elements(0, n, [&] {
    t.if_("row < wide and col < n", [&] {
      t.store_in_memory("r", place("wide", "n"),
                        t.choose("row <= col", scaled(t.at("W", "row, col"), "BACK"), t.number(0)));
    });
    t.if_("col >= steps",
          [&] { t.store("W", "row, col", t.choose("row == col", t.number(1), t.number(0))); });
  });
  t.for_("back", "steps", [&] {
    t.integer("j", "steps - 1 - back");
    t.places("c", n, [&] {
      t.store("V", "c",
              t.choose("c == j", t.number(1), t.choose("c > j", t.at("W", "c, j"), t.number(0))));
    });
    const Number tau = t.let("tau", t.at("TAU", "j"));
    reflect(t, s, tau, "col > j and row >= j");
    t.places("c", n, [&] {
      t.store("W", "c, j", t.choose("c == j", t.number(1), t.number(0)) - tau * t.at("V", "c"));
    });
  });
  t.elements(0, n, [&] {
    t.if_("row < m and col < wide",
          [&] { t.store_in_memory("q", place("m", "wide"), t.at("W", "row, col")); });
  });
  ProgramText p("matrix.qr");
  for (const char* name : {"a", "q", "r"}) p.buffer(name, s.real);
  for (const char* name : {"blocks", "m", "n", "steps", "wide"}) p.scalar(name, "int32");
  for (const char* name : {"a0", "a1", "a2"}) p.scalar(name, "int64");
  return p.distinct().parse(t.program(), {});
}

}  // namespace weft::operators
