// SPDX-License-Identifier: Apache-2.0
// Rows, reductions and running combinations of complex numbers: pairs of reals, (re, im) after (re,
// im) in memory.

#include "weft/elements/complex_row.h"
#include "weft/elements/rows.h"
#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"
#include "weft/host/generate/steps.h"

namespace weft::generate {

namespace {

using complex_ir::Complex;
using namespace types;
constexpr int same = 0, real = 1, boolean = 2, widen = 0;

struct Row {
  std::string name;
  int arity, types, rule;
};
const Row kRows[] = {
#define UNARY(name, rule, types, ...) {#name, 1, types, rule},
#define BINARY(name, rule, types, ...) {#name, 2, types, rule},
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
};
const Row kReductions[] = {
#define REDUCE(name, rule, types, ...) {#name, 2, types, rule},
#include "weft/elements/reduce.def"
#undef REDUCE
};

Expr twice(const Expr& n) { return n * number(2); }

/// A buffer of complex numbers.
struct Numbers {
  ir::Buffer parts;
  Complex at(const Expr& i) const {
    return {ir::load(parts, {twice(i)}), ir::load(parts, {twice(i) + number(1)})};
  }
  Stmt put(const Expr& i, const Complex& z) const {
    return ir::seq(
        {ir::store(parts, z.re, {twice(i)}), ir::store(parts, z.im, {twice(i) + number(1)})});
  }
};
Numbers numbers(Program& p, const std::string& name, Elem e, const Expr& extent) {
  return {p.buffer(name, real_of(e), twice(extent))};
}
Numbers held(const std::string& name, Elem e, std::int64_t extent) {
  return {local(name, dtype_of(real_of(e)), 2 * extent)};
}

using Then = std::function<Stmt(const std::vector<Complex>&)>;
/// then(numbers in variables).
Stmt with_numbers(const std::vector<Complex>& values, const Then& then) {
  std::vector<Expr> parts;
  for (const Complex& z : values) parts.insert(parts.end(), {z.re, z.im});
  return with_values(parts, [&](const std::vector<Expr>& v) {
    std::vector<Complex> in;
    for (std::size_t k = 0; k < values.size(); ++k) in.push_back({v[2 * k], v[2 * k + 1]});
    return then(in);
  });
}

bool is_product(Op op) { return op == Op::multiply || op == Op::square; }

/// A row's value. Products are a difference beside a sum, which become one instruction for both;
/// their file is compiled without instructions that keep a product and a sum in one rounding
/// (complex_ir::mul_ says why).
Complex value_of(Op op, const std::vector<Complex>& x) {
  if (!is_product(op)) return row_value(op, x);
  const Complex &a = x.front(), &b = x.back();
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

ir::PrimFunc map_function(Op op, int arity, Elem e, Elem result, int layout, bool blocks) {
  Program p;
  const Expr extent = blocks ? number(kBlock) : Expr(p.n);
  std::vector<Numbers> in;
  for (int k = 0; k < arity; ++k)
    in.push_back(numbers(p, cat("a", k), e, layout == k + 1 ? number(1) : extent));
  ir::Buffer out = p.buffer("out", real_of(result), is_complex(result) ? twice(extent) : extent);
  auto loads = [&](const Expr& i) {
    std::vector<Complex> all;
    for (int k = 0; k < arity; ++k)
      all.push_back(in[static_cast<std::size_t>(k)].at(layout == k + 1 ? number(0) : i));
    return all;
  };
  auto parts = [](const Complex& z) {
    return z.im ? std::vector<Expr>{z.re, z.im} : std::vector<Expr>{z.re};
  };
  auto put = [&](const Expr& i, const std::vector<Expr>& v) {
    return v.size() == 1 ? ir::store(out, v[0], {i}) : Numbers{out}.put(i, {v[0], v[1]});
  };
  if (!blocks) {
    return p.finish(vectors("i", extent, [&](const Expr& i) {
      return with_numbers(loads(i), [&](const std::vector<Complex>& x) {
        return with_shared(parts(value_of(op, x)),
                           [&](const std::vector<Expr>& v) { return put(i, v); });
      });
    }));
  }
  const Var i = ir::make_var("i");
  std::vector<Complex> x;
  std::vector<std::pair<Var, Expr>> names;
  for (const Complex& z : loads(i)) {
    for (const Expr& part : {z.re, z.im})
      names.emplace_back(ir::make_var(cat("x", names.size()), part->dtype), part);
    x.push_back({names[names.size() - 2].first, names.back().first});
  }
  auto around = [&](Stmt body) {
    for (const auto& [name, part] : names) body = ir::let_stmt(name, part, body);
    return body;
  };
  return p.finish(in_steps(i, parts(row_value(op, x)), around,
                           [&](const std::vector<Expr>& v) { return put(i, v); }));
}

/// Sums and differences go part by part: no vector has to be taken apart.
ir::PrimFunc parts_function(Op op, Elem e) {
  Program p;
  const Expr extent = twice(p.n);
  ir::Buffer a = p.buffer("a0", real_of(e), extent), b = p.buffer("a1", real_of(e), extent),
             out = p.buffer("out", real_of(e), extent);
  return p.finish(vectors("i", extent, [&](const Expr& i) {
    const Expr x = ir::load(a, {i}), y = ir::load(b, {i});
    return ir::store(out, op == Op::add ? x + y : x - y, {i});
  }));
}

/// What a reduction's kernels are made of.
class Taking {
 public:
  Taking(ReduceOp op, Elem e) : op_(op), e_(e) {}
  Complex operator()(const Complex& a, const Complex& x) const { return reduce_value(op_, a, x); }
  /// to[i] = to[i] combined with z.
  Stmt into(const Numbers& to, const Expr& i, const Complex& z) const {
    return with_numbers({to.at(i), z}, [&](const std::vector<Complex>& v) {
      return to.put(i, (*this)(v[0], v[1]));
    });
  }
  /// to[i] = to[i] combined with four.
  Stmt into(const Numbers& to, const Expr& i, const std::vector<Complex>& four) const {
    return with_numbers(four, [&](const std::vector<Complex>& v) {
      return with_numbers(
          {(*this)(v[0], v[1]), (*this)(v[2], v[3])},
          [&](const std::vector<Complex>& w) { return into(to, i, (*this)(w[0], w[1])); });
    });
  }
  ReduceOp op() const { return op_; }
  Elem elem() const { return e_; }

 private:
  ReduceOp op_;
  Elem e_;
};

/// acc[0] = combination of x[0] to x[n-1], n > 0: `lanes` running results, joined pairwise, then
/// what is left one by one. Products take four elements at a time: a product waits for the last one
/// longer than a sum.
ir::PrimFunc reduce_function(const Taking& take) {
  const Elem e = take.elem();
  const std::int64_t lanes = 128 / elem_bytes(e);
  Program p;
  const Numbers x = numbers(p, "a0", e, p.n), acc = numbers(p, "acc", e, number(1));
  const Numbers part = held("part", e, lanes), result = held("result", e, 1);
  const Expr zero = number(0), groups = ir::floordiv(p.n, number(lanes)) - 1;
  const Expr fours = take.op() == ReduceOp::prod ? ir::floordiv(groups, number(4)) : zero;
  auto at = [&](const Expr& group, const Expr& l) { return x.at(group * number(lanes) + l); };
  auto over_lanes = [&](std::int64_t width, const Body& body) {
    return vectors("l", number(width), body);
  };
  auto copy = [](const Numbers& to, const Expr& i, const Complex& z) {
    return with_numbers({z}, [&](const std::vector<Complex>& v) { return to.put(i, v[0]); });
  };
  auto rest = [&](const Expr& from) {
    return loop("r", Expr(p.n) - from,
                [&](const Expr& r) { return take.into(result, zero, x.at(from + r)); });
  };
  std::vector<Stmt> wide;
  wide.push_back(over_lanes(lanes, [&](const Expr& l) { return copy(part, l, x.at(l)); }));
  wide.push_back(loop("i", fours, [&](const Expr& i) {
    return over_lanes(lanes, [&](const Expr& l) {
      const Expr g = i * number(4) + 1;
      return take.into(part, l, {at(g, l), at(g + 1, l), at(g + 2, l), at(g + 3, l)});
    });
  }));
  wide.push_back(loop("i", groups - fours * number(4), [&](const Expr& i) {
    return over_lanes(
        lanes, [&](const Expr& l) { return take.into(part, l, at(fours * number(4) + 1 + i, l)); });
  }));
  for (std::int64_t width = lanes / 2; width; width /= 2) {
    wide.push_back(over_lanes(
        width, [&](const Expr& l) { return take.into(part, l, part.at(l + number(width))); }));
  }
  wide.push_back(copy(result, zero, part.at(zero)));
  wide.push_back(rest((groups + 1) * number(lanes)));
  const Stmt brief = ir::seq({copy(result, zero, x.at(zero)), rest(number(1))});
  const Stmt any = ir::if_then(ir::ge(p.n, number(lanes)),
                               ir::allocate(part.parts, ir::seq(std::move(wide))), brief);
  return p.finish(ir::allocate(result.parts, ir::seq({any, copy(acc, zero, result.at(zero))})));
}

/// acc[i] = combination of acc[i] and of x[i] of one row, or of four.
ir::PrimFunc accumulate_function(const Taking& take, int rows) {
  Program p;
  std::vector<Numbers> x;
  for (int k = 0; k < rows; ++k) x.push_back(numbers(p, cat("a", k), take.elem(), p.n));
  const Numbers acc = numbers(p, "acc", take.elem(), p.n);
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    if (rows == 1) return take.into(acc, i, x[0].at(i));
    return take.into(acc, i, {x[0].at(i), x[1].at(i), x[2].at(i), x[3].at(i)});
  }));
}

ir::PrimFunc scan_function(const Taking& take) {
  const Elem e = take.elem();
  Program p;
  const Numbers x = numbers(p, "a0", e, p.n), out = numbers(p, "out", e, p.n),
                acc = numbers(p, "acc", e, number(1)), state = held("state", e, 1);
  const Expr zero = number(0);
  return p.finish(ir::allocate(
      state.parts,
      ir::seq({state.put(zero, acc.at(zero)),
               loop("i", p.n,
                    [&](const Expr& i) {
                      return ir::seq({take.into(state, zero, x.at(i)), out.put(i, state.at(zero))});
                    }),
               acc.put(zero, state.at(zero))})));
}

}  // namespace

std::vector<Kernel> complex_kernels(bool products) {
  std::vector<Kernel> out;
  using T = KernelEntry;
  for (Elem e : {Elem::complex64, Elem::complex128}) {
    const DType part = dtype_of(real_of(e));
    for (int k = 0; k < kOps; ++k) {
      const Row& row = kRows[row_of(static_cast<Op>(k))];
      if (!(row.types & C)) continue;
      const Op op = static_cast<Op>(k);
      if (is_product(op) != products) continue;
      const Elem result = row.rule == boolean ? Elem::boolean : row.rule == real ? real_of(e) : e;
      const Complex probe = {ir::make_var("x", part), ir::make_var("y", part)};
      const Complex z = row_value(op, {probe, probe});
      const bool blocks = calls_library(z.re) || (z.im && calls_library(z.im));
      const int layouts = row.arity == 2 && !blocks ? 3 : 1;
      for (int layout = 0; layout < layouts; ++layout) {
        static constexpr const char* suffix[] = {"", "_left", "_right"};
        const bool apart = layout == 0 && (op == Op::add || op == Op::subtract);
        out.push_back(
            {entry(T::elementwise, k, e, layout),
             cat("w_", row.name, "_", name_of(e), suffix[layout]),
             apart ? parts_function(op, e) : map_function(op, row.arity, e, result, layout, blocks),
             blocks, std::vector<Elem>(static_cast<std::size_t>(row.arity), e), result});
      }
    }
    for (int k = 0; k < kReduceOps && !products; ++k) {
      const Row& row = kReductions[row_of(static_cast<ReduceOp>(k))];
      if (!(row.types & C)) continue;
      const Taking take(static_cast<ReduceOp>(k), e);
      auto add = [&](T::Table table, const char* name, ir::PrimFunc f) {
        out.push_back(
            {entry(table, k, e), cat("w_", name, "_", row.name, "_", name_of(e)), std::move(f)});
      };
      add(T::reduce, "reduce", reduce_function(take));
      add(T::accumulate, "accumulate", accumulate_function(take, 1));
      add(T::fold, "fold", accumulate_function(take, 4));
      add(T::scan, "scan", scan_function(take));
    }
  }
  return out;
}

}  // namespace weft::generate
