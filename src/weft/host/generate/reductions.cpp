// SPDX-License-Identifier: Apache-2.0
// Reductions and running combinations.

#include <limits>

#include "weft/elements/row_ir.h"
#include "weft/elements/rows.h"
#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"

namespace weft::generate {

namespace {

using namespace types;

struct ReductionRow {
  std::string name;
  int types;
};
const ReductionRow kReductionRows[] = {
#define REDUCE(name, rule, types, ...) {#name, types},
#include "weft/elements/reduce.def"
#undef REDUCE
};

/// A reduction's combination as host kernels write it. For the extremes of floats the choice
/// between two is the processor's own instruction and NaN is asked for apart: three instructions,
/// not four.
struct Combination {
  ReduceOp op;
  bool extreme;  // of floats

  Combination(ReduceOp op, Elem e)
      : op(op), extreme(dtype_of(e).is_float() && (op == ReduceOp::max || op == ReduceOp::min)) {}
  Expr operator()(const Expr& a, const Expr& b) const {
    if (!extreme) return no_branches(reduce_value(op, a, b));
    return ir::select(ir::ne(a, a), a, choice(a, b));
  }
  /// b if either is NaN.
  Expr choice(const Expr& a, const Expr& b) const {
    return ir::select(op == ReduceOp::max ? ir::gt(a, b) : ir::lt(a, b), a, b);
  }
};

/// acc[0] = combination of x[0] to x[n-1], n > 0: `lanes` running results, joined pairwise.
ir::PrimFunc reduce_function(ReduceOp op, Elem e) {
  const DType t = dtype_of(e);
  const Combination take(op, e);
  const bool adds = op == ReduceOp::sum || op == ReduceOp::prod;
  const std::int64_t lanes = std::max<std::int64_t>(16, (adds ? 128 : 256) / elem_bytes(e));
  Program p;
  ir::Buffer x = p.buffer("a0", e), acc = p.buffer("acc", e, number(1));
  ir::Buffer part = local("part", t, lanes), result = local("result", t, 1);
  const ir::Exprs zero = {number(0)};
  const Expr whole = ir::floordiv(p.n, number(lanes));
  auto group = [&](const Expr& first, int count, const Expr& l) {
    std::vector<Expr> loads;
    for (int k = 0; k < count; ++k) loads.push_back(ir::load(x, {(first + k) * number(lanes) + l}));
    return loads;
  };
  // The running result of a lane takes in elements of one group, or of four.
  auto groups = [&](const Expr& first, int count) {
    return vectors("l", number(lanes), [&](const Expr& l) {
      std::vector<Expr> values = group(first, count, l);
      values.push_back(ir::load(part, {l}));
      return with_values(values, [&](const std::vector<Expr>& v) {
        if (count == 1) return ir::store(part, take(v[1], v[0]), {l});
        return with_values({take(v[0], v[1]), take(v[2], v[3])}, [&](const std::vector<Expr>& w) {
          return ir::store(part, take(v[4], take(w[0], w[1])), {l});
        });
      });
    });
  };
  std::vector<Stmt> joined;
  joined.push_back(vectors("l", number(lanes), [&](const Expr& l) {
    return with_values(group(number(0), 2, l), [&](const std::vector<Expr>& v) {
      return ir::store(part, take(v[0], v[1]), {l});
    });
  }));
  // Four at a time where that still vectorises: the running results are read and written a quarter
  // as often.
  const Expr fours = adds ? ir::floordiv(whole - 2, number(4)) : number(0);
  if (adds)
    joined.push_back(loop("i", fours, [&](const Expr& i) { return groups(i * number(4) + 2, 4); }));
  joined.push_back(loop("i", whole - 2 - fours * number(4),
                        [&](const Expr& i) { return groups(fours * number(4) + 2 + i, 1); }));
  for (std::int64_t width = lanes / 2; width; width /= 2) {
    joined.push_back(vectors("l", number(width), [&](const Expr& l) {
      return with_values(
          {ir::load(part, {l}), ir::load(part, {l + number(width)})},
          [&](const std::vector<Expr>& v) { return ir::store(part, take(v[0], v[1]), {l}); });
    }));
  }
  joined.push_back(ir::store(result, ir::load(part, zero), zero));
  auto rest = [&](const Expr& from) {
    return loop("r", Expr(p.n) - from, [&](const Expr& r) {
      return with_values(
          {ir::load(result, zero), ir::load(x, {from + r})},
          [&](const std::vector<Expr>& v) { return ir::store(result, take(v[0], v[1]), zero); });
    });
  };
  joined.push_back(rest(whole * number(lanes)));
  Stmt brief = ir::seq({ir::store(result, ir::load(x, zero), zero), rest(number(1))});
  Stmt any = ir::if_then(ir::ge(p.n, number(2 * lanes)),
                         ir::allocate(part, ir::seq(std::move(joined))), brief);
  return p.finish(
      ir::allocate(result, ir::seq({any, ir::store(acc, ir::load(result, zero), zero)})));
}

/// The extremes of four rows of floats, at least one vector long, in `result`: rows are asked for
/// NaN together, so that an element costs two instructions; where there is one, `otherwise` runs.
/// What is left of a row at the end is read as its last whole vector, since extremes count no
/// element twice.
Stmt extreme_of_four(const Program& p, const Combination& take, const std::vector<ir::Buffer>& x,
                     const std::vector<ir::Buffer>& part, const ir::Buffer& result,
                     const Stmt& otherwise) {
  const DType word = result->dtype.bits == 32 ? dtypes::int32 : dtypes::int64;
  const std::int64_t lanes = ir::as<ir::IntImmNode>(part[0]->shape[0])->value;
  const ir::Buffer odd = local("odd", word, lanes), any_odd = local("any_odd", word, 1);
  const Expr all_ones = ir::make_const(-1, word);
  auto vector_at = [&](const Expr& first, bool start) {
    return vectors("l", number(lanes), [&](const Expr& l) {
      std::vector<Expr> loads;
      for (const ir::Buffer& row : x) loads.push_back(ir::load(row, {first + l}));
      return with_values(loads, [&](const std::vector<Expr>& v) {
        std::vector<Stmt> all;
        for (std::size_t k = 0; k < v.size(); ++k) {
          all.push_back(
              ir::store(part[k], start ? v[k] : take.choice(v[k], ir::load(part[k], {l})), {l}));
        }
        Expr nan = ir::call("isnan", {v[0]});
        for (std::size_t k = 1; k < v.size(); ++k)
          nan = ir::call("bitwise_or", {nan, ir::call("isnan", {v[k]})});
        const Expr before = start ? ir::make_const(0, word) : Expr(ir::load(odd, {l}));
        all.push_back(ir::store(odd, ir::select(nan, all_ones, before), {l}));
        return ir::seq(std::move(all));
      });
    });
  };
  std::vector<Stmt> all = {vector_at(number(0), true)};
  all.push_back(loop("i", ir::floordiv(p.n, number(lanes)) - 1,
                     [&](const Expr& i) { return vector_at((i + 1) * number(lanes), false); }));
  all.push_back(vector_at(Expr(p.n) - number(lanes), false));
  for (std::int64_t width = lanes / 2; width; width /= 2) {
    all.push_back(vectors("l", number(width), [&](const Expr& l) {
      std::vector<Stmt> halves;
      for (const ir::Buffer& b : part) {
        halves.push_back(with_values({ir::load(b, {l}), ir::load(b, {l + number(width)})},
                                     [&](const std::vector<Expr>& v) {
                                       return ir::store(b, take.choice(v[0], v[1]), {l});
                                     }));
      }
      halves.push_back(ir::store(
          odd, ir::call("bitwise_or", {ir::load(odd, {l}), ir::load(odd, {l + number(width)})}),
          {l}));
      return ir::seq(std::move(halves));
    }));
  }
  for (std::size_t k = 0; k < part.size(); ++k)
    all.push_back(ir::store(result, ir::load(part[k], {number(0)}), {number(k)}));
  all.push_back(ir::store(any_odd, ir::load(odd, {number(0)}), {number(0)}));
  return ir::allocate(
      any_odd, ir::seq({ir::allocate(odd, ir::seq(std::move(all))),
                        ir::if_then(ir::ne(ir::load(any_odd, {number(0)}), ir::make_const(0, word)),
                                    otherwise)}));
}

/// acc[k] = combination of ak[0] to ak[n-1], n > 0, for four rows at once: a processor fetches four
/// streams ahead of their use where it would fetch one.
ir::PrimFunc reduce_four_function(ReduceOp op, Elem e) {
  constexpr int kRows = 4;
  const DType t = dtype_of(e);
  const Combination take(op, e);
  // A line of the cache, or two: GCC unrolls loops of eight before it makes vectors of them.
  const std::int64_t lanes = std::max(16, 64 / elem_bytes(e));
  Program p;
  std::vector<ir::Buffer> x, part;
  for (int k = 0; k < kRows; ++k) {
    x.push_back(p.buffer(cat("a", k), e));
    part.push_back(local(cat("part", k), t, lanes));
  }
  ir::Buffer acc = p.buffer("acc", e, number(kRows)), result = local("result", t, kRows);
  const Expr whole = ir::floordiv(p.n, number(lanes));
  auto each = [](const std::function<Stmt(std::size_t)>& one) {
    std::vector<Stmt> all;
    for (std::size_t k = 0; k < kRows; ++k) all.push_back(one(k));
    return ir::seq(std::move(all));
  };
  auto combine = [&](const ir::Buffer& to, const Expr& at, const Expr& more) {
    return with_values({ir::load(to, {at}), more}, [&](const std::vector<Expr>& v) {
      return ir::store(to, take(v[0], v[1]), {at});
    });
  };
  std::vector<Stmt> wide;
  wide.push_back(vectors("l", number(lanes), [&](const Expr& l) {
    return each([&](std::size_t k) { return ir::store(part[k], ir::load(x[k], {l}), {l}); });
  }));
  wide.push_back(loop("i", whole - 1, [&](const Expr& i) {
    return vectors("l", number(lanes), [&](const Expr& l) {
      const Expr at = (i + 1) * number(lanes) + l;
      return each([&](std::size_t k) { return combine(part[k], l, ir::load(x[k], {at})); });
    });
  }));
  for (std::int64_t width = lanes / 2; width; width /= 2) {
    wide.push_back(vectors("l", number(width), [&](const Expr& l) {
      return each([&](std::size_t k) {
        return combine(part[k], l, ir::load(part[k], {l + number(width)}));
      });
    }));
  }
  auto finish = [&](const std::function<Expr(std::size_t)>& start, const Expr& from) {
    return ir::seq({each([&](std::size_t k) { return ir::store(result, start(k), {number(k)}); }),
                    loop("r", Expr(p.n) - from, [&](const Expr& r) {
                      return each([&](std::size_t k) {
                        return combine(result, number(k), ir::load(x[k], {from + r}));
                      });
                    })});
  };
  wide.push_back(
      finish([&](std::size_t k) { return ir::load(part[k], {number(0)}); }, whole * number(lanes)));
  Stmt any = ir::seq(std::move(wide));
  if (take.extreme) any = extreme_of_four(p, take, x, part, result, any);
  for (const ir::Buffer& b : part) any = ir::allocate(b, any);
  any = ir::if_then(ir::ge(p.n, number(lanes)), any,
                    finish([&](std::size_t k) { return ir::load(x[k], {number(0)}); }, number(1)));
  return p.finish(ir::allocate(
      result, ir::seq({any, each([&](std::size_t k) {
                         return ir::store(acc, ir::load(result, {number(k)}), {number(k)});
                       })})));
}

/// acc[i] = combination of acc[i] and of x[i] of one row.
ir::PrimFunc accumulate_function(ReduceOp op, Elem e) {
  Program p;
  const Combination take(op, e);
  ir::Buffer x = p.buffer("a0", e), acc = p.buffer("acc", e);
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    return with_values({ir::load(acc, {i}), ir::load(x, {i})}, [&](const std::vector<Expr>& v) {
      return ir::store(acc, take(v[0], v[1]), {i});
    });
  }));
}

/// The same of four rows. Extremes of floats ask once for all five whether there is a NaN.
ir::PrimFunc fold_function(ReduceOp op, Elem e) {
  Program p;
  const Combination take(op, e);
  std::vector<ir::Buffer> x;
  for (int k = 0; k < 4; ++k) x.push_back(p.buffer(cat("a", k), e));
  ir::Buffer acc = p.buffer("acc", e);
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    std::vector<Expr> loads = {ir::load(acc, {i})};
    for (const ir::Buffer& row : x) loads.push_back(ir::load(row, {i}));
    return with_values(loads, [&](const std::vector<Expr>& v) {
      if (take.extreme) {
        Expr odd = ir::ne(v[0], v[0]);
        for (int k = 1; k <= 4; ++k) odd = ir::call("bitwise_or", {odd, ir::ne(v[k], v[k])});
        const Expr nan = ir::make_const(std::numeric_limits<double>::quiet_NaN(), acc->dtype);
        return with_value("b1", take.choice(v[0], v[1]), [&](const Expr& b1) {
          return with_value("b2", take.choice(b1, v[2]), [&](const Expr& b2) {
            return with_value("b3", take.choice(b2, v[3]), [&](const Expr& b3) {
              return ir::store(acc, ir::select(odd, nan, take.choice(b3, v[4])), {i});
            });
          });
        });
      }
      return with_values({take(v[1], v[2]), take(v[3], v[4])}, [&](const std::vector<Expr>& w) {
        return with_value("four", take(w[0], w[1]),
                          [&](const Expr& four) { return ir::store(acc, take(v[0], four), {i}); });
      });
    });
  }));
}

ir::PrimFunc scan_function(ReduceOp op, Elem e) {
  Program p;
  ir::Buffer x = p.buffer("a0", e), out = p.buffer("out", e), acc = p.buffer("acc", e, number(1));
  ir::Buffer state = local("state", dtype_of(e), 1);
  const ir::Exprs zero = {number(0)};
  std::vector<Stmt> all;
  all.push_back(ir::store(state, ir::load(acc, zero), zero));
  all.push_back(loop("i", p.n, [&](const Expr& i) {
    Expr value = no_branches(reduce_value(op, ir::load(state, zero), ir::load(x, {i})));
    return ir::seq({ir::store(state, value, zero), ir::store(out, ir::load(state, zero), {i})});
  }));
  all.push_back(ir::store(acc, ir::load(state, zero), zero));
  return p.finish(ir::allocate(state, ir::seq(std::move(all))));
}

}  // namespace

std::vector<Kernel> reduction_kernels(Elem e) {
  std::vector<Kernel> out;
  using T = KernelEntry;
  for (int k = 0; k < kReduceOps; ++k) {
    const ReductionRow& row = kReductionRows[row_of(static_cast<ReduceOp>(k))];
    if (!(row.types & type_bit(e))) continue;
    const auto op = static_cast<ReduceOp>(k);
    const bool signs = op != ReduceOp::sum && op != ReduceOp::prod;
    const Elem code = signs ? e : signless(e);
    auto add = [&](T::Table table, const char* name, ir::PrimFunc (*program)(ReduceOp, Elem)) {
      const std::string head = cat("w_", name, "_", row.name, "_");
      Kernel kernel = {entry(table, k, e), cat(head, name_of(e)), nullptr};
      if (code == e) kernel.func = program(op, e);
      else kernel.code = cat(head, name_of(code));
      out.push_back(std::move(kernel));
    };
    add(T::reduce, "reduce", reduce_function);
    add(T::reduce_four, "reduce_four", reduce_four_function);
    add(T::accumulate, "accumulate", accumulate_function);
    add(T::fold, "fold", fold_function);
    add(T::scan, "scan", scan_function);
  }
  return out;
}

}  // namespace weft::generate
