// SPDX-License-Identifier: Apache-2.0
// Jacobi's method for one matrix a block: each round turns disjoint pairs, in an order in which
// every pair meets once a sweep.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "weft/operators/program_text.h"
#include "weft/operators/small_matrix.h"

namespace weft::operators {

namespace {

/// What a sum of as many terms as a line has may be off by, as a share of its terms' size.
double noise(const SmallMatrix& s) { return std::max(4.0, std::sqrt(double(s.capacity))); }

std::string epsilon(const SmallMatrix& s, double factor) {
  char text[64];
  std::snprintf(text, sizeof text, "T.%s(%.17g)", s.real.c_str(),
                factor * (s.real == "float64" ? 2.220446049250313e-16 : 1.1920928955078125e-7));
  return text;
}

/// PAIR[c]: which index c meets in round `round` of even - 1; the circle method.
void pairs(SmallMatrixText& t, const SmallMatrix& s) {
  t.places("c", s.capacity, [&] {
    t.integer("turn", "even - 1");
    t.integer("met", "(round * 2 - c + turn) % T.max(turn, 1)");
    t.line(
        "PAIR[c] = T.Select(c >= even, c, T.Select(c == turn, round, T.Select(met == c, turn, "
        "met)))");
  });
}

/// COS[c] and SIN[c], with which index c becomes COS c + SIN of its pair, from `own` and `other`,
/// the diagonal at the lower and the upper index of the pair, and `off` between them. Pairs of
/// which `off` is below `least` stay.
void rotation(SmallMatrixText& t, const Number& off, const std::string& least) {
  t.let_real("size", t.complex() ? cat("T.sqrt(", square(off), ")") : cat("T.abs(", off.re, ")"));
  t.line("turns: T.bool = low < high and size > ", least);
  t.let_real("safe", cat("T.Select(turns, size, ", t.constant(1), ")"));
  t.let_real("ratio", cat("(other - own) / (", t.constant(2), " * safe)"));
  t.let_real("root", cat("T.sqrt(", t.constant(1), " + ratio * ratio)"));
  t.let_real("tangent", cat("T.Select(ratio < ", t.constant(0), ", ", t.constant(-1), ", ",
                            t.constant(1), ") / (T.abs(ratio) + root)"));
  t.let_real("cosine", cat(t.constant(1), " / T.sqrt(", t.constant(1), " + tangent * tangent)"));
  const Number phase =
      t.let("phase", {cat(off.re, " / safe"), t.complex() ? cat(off.im, " / safe") : ""});
  const Number sine = t.let("sine", scaled(phase, "(tangent * cosine)"));
  t.line("COS[c] = T.Select(turns, cosine, ", t.constant(1), ")");
  const Number minus = t.let("minus", scaled(conj(sine), t.constant(-1)));
  const Number mine = t.choose("c == low", minus, sine);
  t.store("SIN", "c", t.choose("turns", mine, t.number(0)));
  t.if_("turns", [&] { t.line("LATE[0] = sweep + 1"); });
}

/// buffer[row, col] = COS[col] buffer[row, col] + SIN[col] buffer[row, PAIR[col]].
Number turned(const SmallMatrixText& t, std::string_view buffer, std::string_view row) {
  return scaled(t.at(buffer, cat(row, ", col")), "COS[col]") +
         t.at("SIN", "col") * t.at(buffer, cat(row, ", PAIR[col]"));
}

std::string number_of_element(const SmallMatrix& s) {
  return cat("i * ", s.capacity / s.lanes(), " + c");
}

void allocate_rotations(SmallMatrixText& t, const SmallMatrix& s) {
  const int n = s.capacity;
  t.allocate("W", t.shape(n, n), "shared");
  t.allocate("V", t.shape(n, n), "shared");
  t.allocate_real("COS", cat(n), "shared");
  t.allocate("SIN", cat(n), "shared");
  t.allocate_integer("PAIR", cat(n), "shared");
  t.allocate_integer("RANK", cat(n), "shared");
  t.allocate_integer("LATE", "1", "shared");
  t.allocate_integer("BEFORE", "1", "local");
  const int each = n / s.lanes() * (n / s.rows_at_once());
  t.allocate("NEW", cat(each), "local");
  t.allocate("NEWV", cat(each), "local");
  t.allocate_largest();
  t.integer("even", "n + n % 2");
}

/// What the elements of `buffer` become stands in NEW or NEWV.
void store_turned(SmallMatrixText& t, const SmallMatrix& s, bool vectors) {
  t.elements(0, s.capacity, [&] {
    t.store("W", "row, col", t.at("NEW", number_of_element(s)));
    if (vectors) t.store("V", "row, col", t.at("NEWV", number_of_element(s)));
  });
}

/// RANK[c]: how many of the n numbers in RED come before number c.
void rank(SmallMatrixText& t, const SmallMatrix& s, const char* comes_before) {
  t.places("c", s.capacity, [&] {
    t.line("BEFORE[0] = 0");
    t.for_("other", "n", [&] {
      t.if_(cat("RED[other] ", comes_before, " RED[c] or (RED[other] == RED[c] and other < c)"),
            [&] { t.line("BEFORE[0] = BEFORE[0] + 1"); });
    });
    t.line("RANK[c] = BEFORE[0]");
  });
}

std::string place(const char* rows, const char* columns, const char* row, const char* column) {
  return cat("(T.Cast(\"int64\", b) * T.Cast(\"int64\", ", rows, ") + T.Cast(\"int64\", ", row,
             ")) * T.Cast(\"int64\", ", columns, ") + T.Cast(\"int64\", ", column, ")");
}

Number identity(const SmallMatrixText& t) {
  return {cat("T.Select(row == col, ", t.constant(1), ", ", t.constant(0), ")"),
          t.complex() ? t.constant(0) : ""};
}

}  // namespace

ir::PrimFunc small_eigh(const SmallMatrix& s) {
  const int n = s.capacity;
  SmallMatrixText t(s, n, n);
  allocate_rotations(t, s);
  t.line("base: T.int64 = T.Cast(\"int64\", b) * a0");
  t.elements(0, n, [&] {
    // The lower triangle and its adjoint; the diagonal is real.
    t.integer("down", "T.max(row, col)");
    t.integer("across", "T.min(row, col)");
    const Number a = t.let("lower", t.choose("down < n",
                                             t.in_memory("a",
                                                         "base + T.Cast(\"int64\", down) * a1 + "
                                                         "T.Cast(\"int64\", across) * a2"),
                                             t.number(0)));
    Number w = a;
    if (t.complex())
      w.im = cat("T.Select(row == col, ", t.constant(0), ", T.Select(row > col, ", a.im, ", -",
                 a.im, "))");
    t.store("W", "row, col", w);
    t.store("V", "row, col", identity(t));
  });
  t.largest("W");
  t.let_factor();
  t.let_real("least", cat("MOST[0] * FACTOR * ", epsilon(s, noise(s))));
  t.elements(0, n, [&] { t.store("W", "row, col", scaled(t.at("W", "row, col"), "FACTOR")); });
  t.if_("t == 0", [&] { t.line("LATE[0] = 0"); });
  t.for_("sweep", "sweeps", [&] {
    t.for_("round", "T.max(even - 1, 0)", [&] {
      pairs(t, s);
      t.places("c", n, [&] {
        t.integer("low", "T.min(c, PAIR[c])");
        t.integer("high", "T.max(c, PAIR[c])");
        t.let_real("own", t.at("W", "low, low").re);
        t.let_real("other", t.at("W", "high, high").re);
        const Number off = t.let("off", t.at("W", "low, high"));
        rotation(t, off, "least");
      });
      t.elements(0, n, [&] {
        const Number mine = t.let("mine", turned(t, "W", "row")),
                     met = t.let("met_row", turned(t, "W", "PAIR[row]"));
        const Number fresh =
            t.let("fresh", scaled(mine, "COS[row]") + conj(t.at("SIN", "row")) * met);
        t.store("NEW", number_of_element(s),
                t.complex() ? Number{fresh.re, cat("T.Select(row == col, ", t.constant(0), ", ",
                                                   fresh.im, ")")}
                            : fresh);
        t.store("NEWV", number_of_element(s), turned(t, "V", "row"));
      });
      store_turned(t, s, true);
    });
  });
  t.places("c", n, [&] { t.line("RED[c] = ", t.at("W", "c, c").re); });
  rank(t, s, "<");
  t.elements(0, n, [&] {
    t.if_("row < n and col < n", [&] {
      t.store_in_memory("vectors", place("n", "n", "row", "RANK[col]"), t.at("V", "row, col"));
    });
  });
  t.places("c", n,
           [&] { t.if_("c < n", [&] { t.line("values[b * n + RANK[c]] = RED[c] * BACK"); }); });
  t.if_("t == 0", [&] { t.line("status[b] = T.Cast(\"int32\", LATE[0] >= sweeps)"); });
  ProgramText p("matrix.eigh");
  for (const char* name : {"a", "values", "vectors"}) p.buffer(name, s.real);
  p.buffer("status", "int32");
  for (const char* name : {"blocks", "n", "sweeps"}) p.scalar(name, "int32");
  for (const char* name : {"a0", "a1", "a2"}) p.scalar(name, "int64");
  return p.distinct().parse(t.program(), {});
}

ir::PrimFunc small_svd(const SmallMatrix& s, bool vectors) {
  const int n = s.capacity;
  SmallMatrixText t(s, n, n);
  allocate_rotations(t, s);
  t.allocate("OWN", t.shape(s.rows_at_once(), n), "shared");
  t.allocate("OFF", t.shape(s.rows_at_once(), n), "shared");
  t.allocate("OF_OWN", "1", "local");
  t.allocate("OF_OFF", "1", "local");
  t.line("base: T.int64 = T.Cast(\"int64\", b) * a0");
  t.elements(0, n, [&] {
    t.store("W", "row, col",
            t.choose("row < m and col < n",
                     t.in_memory("a",
                                 "base + T.Cast(\"int64\", row) * a1 + T.Cast(\"int64\", col) * "
                                 "a2"),
                     t.number(0)));
    if (vectors) t.store("V", "row, col", identity(t));
  });
  t.largest("W");
  t.let_factor();
  t.elements(0, n, [&] { t.store("W", "row, col", scaled(t.at("W", "row, col"), "FACTOR")); });
  t.if_("t == 0", [&] { t.line("LATE[0] = 0"); });
  auto squares = [&] {
    t.column_sums("OWN", [&] {
      const Number w = t.at("W", "row, col");
      return Number{square(w), t.complex() ? t.constant(0) : ""};
    });
  };
  // Columns that are rounding errors of others: more of them than rows are never all orthogonal.
  t.let_real("error", cat("MOST[0] * FACTOR * ", epsilon(s, noise(s))));
  t.let_real("none", "error * error");
  t.for_("sweep", "sweeps", [&] {
    t.for_("round", "T.max(even - 1, 0)", [&] {
      pairs(t, s);
      squares();
      t.column_sums("OFF",
                    [&] { return conj(t.at("W", "row, PAIR[col]")) * t.at("W", "row, col"); });
      t.places("c", n, [&] {
        t.integer("low", "T.min(c, PAIR[c])");
        t.integer("high", "T.max(c, PAIR[c])");
        const std::string own = t.column_sum("own", "OWN", "low").re;
        const std::string other = t.column_sum("other", "OWN", "high").re;
        const Number off = t.column_sum("off", "OFF", "high");
        t.let_real("least",
                   cat("T.max(T.sqrt(own) * T.sqrt(other) * ", epsilon(s, noise(s)), ", none)"));
        rotation(t, off, "least");
      });
      t.elements(0, n, [&] {
        t.store("NEW", number_of_element(s), turned(t, "W", "row"));
        if (vectors) t.store("NEWV", number_of_element(s), turned(t, "V", "row"));
      });
      store_turned(t, s, vectors);
    });
  });
  squares();
  t.places("c", n, [&] {
    const std::string own = t.column_sum("own", "OWN", "c").re;
    t.line("RED[c] = T.sqrt(own)");
  });
  rank(t, s, ">");
  t.line("MOST[0] = ", t.constant(0));
  t.for_("c", "n", [&] { t.line("MOST[0] = T.max(MOST[0], RED[c])"); });
  t.let_real("least", cat("MOST[0] * ", epsilon(s, 1), " * T.Cast(\"", s.real, "\", m)"));
  t.line("BEFORE[0] = 0");
  t.for_("c", "n", [&] { t.if_("RED[c] <= least", [&] { t.line("BEFORE[0] = 1"); }); });
  if (vectors) {
    t.elements(0, n, [&] {
      t.if_("row < m and col < n", [&] {
        t.line("zero: T.bool = RED[col] <= least");
        t.let_real("by", cat("T.Select(zero, ", t.constant(0), ", ", t.constant(1),
                             " / T.Select(zero, ", t.constant(1), ", RED[col]))"));
        t.store_in_memory("u", place("m", "n", "row", "RANK[col]"),
                          scaled(t.at("W", "row, col"), "by"));
      });
      t.if_("row < n and col < n", [&] {
        t.store_in_memory("vh", place("n", "n", "RANK[col]", "row"), conj(t.at("V", "row, col")));
      });
    });
  }
  t.places("c", n,
           [&] { t.if_("c < n", [&] { t.line("values[b * n + RANK[c]] = RED[c] * BACK"); }); });
  t.if_("t == 0", [&] { t.line("status[b] = T.Select(LATE[0] >= sweeps, 2, BEFORE[0])"); });
  ProgramText p("matrix.svd");
  for (const char* name : {"a", "u", "values", "vh"}) p.buffer(name, s.real);
  p.buffer("status", "int32");
  for (const char* name : {"blocks", "m", "n", "sweeps"}) p.scalar(name, "int32");
  for (const char* name : {"a0", "a1", "a2"}) p.scalar(name, "int64");
  return p.distinct().parse(t.program(), {});
}

}  // namespace weft::operators
