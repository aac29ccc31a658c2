// SPDX-License-Identifier: Apache-2.0
// Evenly spaced numbers, rows of products, pairs of normal numbers, parts of polynomials.

#include "weft/elements/complex_row.h"
#include "weft/elements/row_ir.h"
#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"
#include "weft/host/generate/steps.h"

namespace weft::generate {

namespace {

/// out[i] = start + (first + i) * step.
ir::PrimFunc steps_function(Elem e) {
  const DType t = dtype_of(e), in = t.is_float() ? dtypes::float64 : dtypes::int64;
  Program p;
  const Expr first = p.scalar("first", dtypes::int64), start = p.scalar("start", in),
             step = p.scalar("step", in);
  ir::Buffer out = p.buffer("out", e);
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    if (t.is_float())
      return ir::store(out, ir::cast(t, start + ir::cast(in, first + i) * step), {i});
    // Wraps as the type does; the ends are known to fit.
    const DType word = t.bits == 64 ? dtypes::uint64 : dtypes::uint32;
    auto as = [&](const Expr& x) { return ir::cast(word, x); };
    return ir::store(out, ir::cast(t, as(start) + as(first + i) * as(step)), {i});
  }));
}

/// acc[i] = acc[i] + x[0] * in[i].
ir::PrimFunc add_products_function(Elem e) {
  Program p;
  const std::int64_t parts = is_complex(e) ? 2 : 1;
  const DType t = dtype_of(real_of(e));
  ir::Buffer x = p.buffer("x", t, number(parts)), in = p.buffer("in", t, Expr(p.n) * number(parts)),
             acc = p.buffer("acc", t, Expr(p.n) * number(parts));
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    std::vector<Expr> loads;
    for (std::int64_t k = 0; k < parts; ++k) {
      const Expr at = i * number(parts) + number(k);
      for (const Expr& v :
           {Expr(ir::load(x, {number(k)})), Expr(ir::load(in, {at})), Expr(ir::load(acc, {at}))})
        loads.push_back(v);
    }
    return with_values(loads, [&](const std::vector<Expr>& v) {
      if (parts == 1) {
        const Expr value =
            e == Elem::boolean
                ? ir::call("bitwise_or", {v[2], ir::call("bitwise_and", {v[0], v[1]})})
                : v[2] + v[0] * v[1];
        return ir::store(acc, value, {i});
      }
      const complex_ir::Complex z = complex_ir::mul_({v[0], v[3]}, {v[1], v[4]});
      return ir::seq({ir::store(acc, v[2] + z.re, {i * number(2)}),
                      ir::store(acc, v[5] + z.im, {i * number(2) + number(1)})});
    });
  }));
}

/// out[i] = a0[i] times a1[i] plus a number, `count` times.
ir::PrimFunc polynomial_function(Elem e, std::int64_t count) {
  Program p;
  ir::Buffer start = p.buffer("a0", e), at = p.buffer("a1", e),
             numbers = p.buffer("a2", e, number(count)), out = p.buffer("out", e);
  std::vector<Expr> loads;
  for (std::int64_t k = 0; k < count; ++k) loads.push_back(ir::load(numbers, {number(k)}));
  return p.finish(with_values(loads, [&](const std::vector<Expr>& c) {
    return vectors("i", p.n, [&](const Expr& i) {
      return with_value("t", ir::load(at, {i}), [&](const Expr& t) {
        Expr total = ir::load(start, {i});
        for (const Expr& v : c) total = total * t + v;
        return ir::store(out, total, {i});
      });
    });
  }));
}

/// out[i] = a0[i], at least a1[0] and at most a1[1], which are no NaN; NaN stays.
ir::PrimFunc between_function(Elem e) {
  Program p;
  ir::Buffer in = p.buffer("a0", e), limits = p.buffer("a1", e, number(2)),
             out = p.buffer("out", e);
  const std::vector<Expr> loads = {ir::load(limits, {number(0)}), ir::load(limits, {number(1)})};
  return p.finish(with_values(loads, [&](const std::vector<Expr>& c) {
    return vectors("i", p.n, [&](const Expr& i) {
      return with_value("x", ir::load(in, {i}), [&](const Expr& x) {
        return with_value("y", ir::select(ir::ge(c[0], x), c[0], x), [&](const Expr& y) {
          return ir::store(out, ir::select(ir::le(c[1], y), c[1], y), {i});
        });
      });
    });
  }));
}

/// Box and Muller's method: a radius from one number of a pair, an angle from the other.
ir::PrimFunc normal_pairs_function() {
  Program p;
  const Expr extent = number(2 * kBlock);
  ir::Buffer in = p.buffer("a0", dtypes::float64, extent),
             out = p.buffer("out", dtypes::float64, extent);
  auto real = [](double v) { return ir::make_const(v, dtypes::float64); };
  const Var i = ir::make_var("i"), u = ir::make_var("u", dtypes::float64),
            v = ir::make_var("v", dtypes::float64);
  const Expr radius = ir::call("sqrt", {real(-2) * ir::call("log", {real(1) - Expr(u)})});
  const Expr angle = Expr(v) * real(6.283185307179586);
  return p.finish(in_steps(
      i, {radius * ir::call("cos", {angle}), radius * ir::call("sin", {angle})},
      [&](const Stmt& body) {
        const Expr at = Expr(i) * number(2);
        return ir::let_stmt(u, ir::load(in, {at}),
                            ir::let_stmt(v, ir::load(in, {at + number(1)}), body));
      },
      [&](const std::vector<Expr>& z) {
        const Expr at = Expr(i) * number(2);
        return ir::seq({ir::store(out, z[0], {at}), ir::store(out, z[1], {at + number(1)})});
      }));
}

}  // namespace

std::vector<Kernel> loop_kernels() {
  std::vector<Kernel> out;
  using T = KernelEntry;
  auto add = [&](T::Table table, Elem e, const char* name, ir::PrimFunc f,
                 const char* parameters) -> Kernel& {
    out.push_back({entry(table, 0, e), cat("w_", name, "_", name_of(e)), std::move(f)});
    out.back().parameters = parameters;
    return out.back();
  };
  for (int k = 0; k < kElems; ++k) {
    const Elem e = static_cast<Elem>(k);
    const bool real = e == Elem::float32 || e == Elem::float64;
    if (is_integer(e))
      add(T::steps, e, "steps", steps_function(e),
          "int64_t n, int64_t first, int64_t start, int64_t step, void* out");
    if (real)
      add(T::steps, e, "steps", steps_function(e),
          "int64_t n, int64_t first, double start, double step, void* out");
    for (int row = 0; real && row < kPolynomials; ++row) {
      out.push_back({entry(T::polynomial, row, e), cat("w_polynomial_", row, "_", name_of(e)),
                     polynomial_function(e, std::int64_t{1} << row)});
    }
    if (real)
      out.push_back({entry(T::between, 0, e), cat("w_between_", name_of(e)), between_function(e)});
    if (!is_real_float(e))
      add(T::add_products, e, "add_products", add_products_function(e),
          "int64_t n, const void* x, const void* in, void* acc");
  }
  Kernel& pairs =
      add(T::normal_pairs, Elem::complex128, "normal_pairs", normal_pairs_function(), nullptr);
  pairs.blocks = true;
  pairs.operands = {Elem::complex128};
  pairs.result = Elem::complex128;
  return out;
}

}  // namespace weft::generate
