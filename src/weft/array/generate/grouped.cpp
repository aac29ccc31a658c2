// SPDX-License-Identifier: Apache-2.0
// Kernels that take elements in groups of fixed length: truth values, which are packed a group at a
// time, and remainders of floats, which have a quick way that a group either takes as a whole or
// not at all.

#include "weft/array/generate/builder.h"
#include "weft/array/generate/kernels.h"
#include "weft/array/row_ir.h"
#include "weft/ir/visit.h"

namespace weft::generate {

namespace {

struct Operands {
  std::vector<ir::Buffer> buffers;
  int layout;
  /// then(elements at `at`), each in a variable.
  Stmt at(const Expr& at, const std::function<Stmt(const std::vector<Expr>&)>& then) const {
    std::vector<Expr> loads;
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      const bool one = layout == static_cast<int>(k) + 1;
      loads.push_back(ir::load(buffers[k], {one ? number(0) : at}));
    }
    return with_values(loads, then);
  }
};

Operands operands_of(Program& p, int arity, Elem e, int layout) {
  Operands out{{}, layout};
  for (int k = 0; k < arity; ++k)
    out.buffers.push_back(p.buffer(cat("a", k), e, layout == k + 1 ? number(1) : Expr(p.n)));
  return out;
}

/// fmod by the quotient in float64. While it is below 2^28 it does not reach an integer by
/// rounding, its product with y has 53 bits at most, and what is left is exact.
class NearRemainder final : public ir::Rewriter {
 public:
  explicit NearRemainder(Expr near) : near_(std::move(near)) {}

 protected:
  Expr rewrite_call(const Expr& e) override {
    return ir::as<ir::CallNode>(e)->op == "fmod" ? near_ : ir::Rewriter::rewrite_call(e);
  }

 private:
  Expr near_;
};

}  // namespace

ir::PrimFunc truth_function(int arity, Elem e, int layout, const RowValue& value) {
  constexpr std::int64_t kGroup = 32;
  Program p;
  const Operands in = operands_of(p, arity, e, layout);
  const bool wide = elem_bytes(e) == 8;
  const DType word = wide ? dtypes::int64 : dtypes::int32;
  ir::Buffer out = p.buffer("out", Elem::boolean), mask = local("mask", word, kGroup);
  const Expr whole = ir::floordiv(p.n, number(kGroup));
  auto address = [](const ir::Buffer& b, const Expr& at) {
    return ir::call("address_of", {ir::load(b, {at})});
  };
  Stmt groups = loop("i", whole, [&](const Expr& i) {
    const Expr from = i * number(kGroup);
    Stmt fill = vectors("l", number(kGroup), [&](const Expr& l) {
      return in.at(from + l, [&](const std::vector<Expr>& v) {
        return ir::store(
            mask, ir::select(value(v), ir::make_const(-1, word), ir::make_const(0, word)), {l});
      });
    });
    Stmt pack = ir::evaluate(
        ir::call_typed(dtypes::int32, "call_extern",
                       {ir::make_string(wide ? "weft_truth_bytes_64" : "weft_truth_bytes"),
                        address(mask, number(0)), address(out, from)}));
    return ir::allocate(mask, ir::seq({fill, pack}));
  });
  Stmt rest = loop("r", Expr(p.n) - whole * number(kGroup), [&](const Expr& r) {
    const Expr at = whole * number(kGroup) + r;
    return in.at(at, [&](const std::vector<Expr>& v) { return ir::store(out, value(v), {at}); });
  });
  return p.finish(ir::seq({groups, rest}));
}

ir::PrimFunc remainder_function(int layout, const RowValue& value) {
  constexpr std::int64_t kGroup = 64;
  Program p;
  const Operands in = operands_of(p, 2, Elem::float32, layout);
  ir::Buffer out = p.buffer("out", Elem::float32), near = local("near", dtypes::float32, kGroup),
             far = local("far", dtypes::int32, kGroup), any = local("any", dtypes::int32, 1);
  const Expr whole = ir::floordiv(p.n, number(kGroup)), zero = ir::make_const(0, dtypes::int32);
  auto wide = [](const Expr& x) { return ir::cast(dtypes::float64, x); };
  Stmt groups = loop("i", whole, [&](const Expr& i) {
    const Expr from = i * number(kGroup);
    std::vector<Stmt> all;
    all.push_back(vectors("l", number(kGroup), [&](const Expr& l) {
      return in.at(from + l, [&](const std::vector<Expr>& v) {
        return with_values({ir::div(wide(v[0]), wide(v[1]))}, [&](const std::vector<Expr>& q) {
          const Expr left = wide(v[0]) - ir::call("trunc", {q[0]}) * wide(v[1]);
          return with_values({ir::cast(dtypes::float32, left)}, [&](const std::vector<Expr>& m) {
            // NaN and infinite quotients are far too.
            const Expr close =
                ir::lt(ir::call("abs", {q[0]}), ir::make_const(268435456.0, dtypes::float64));
            return ir::seq(
                {ir::store(near, NearRemainder(m[0]).rewrite(value(v)), {l}),
                 ir::store(far, ir::select(close, zero, ir::make_const(1, zero->dtype)), {l})});
          });
        });
      });
    }));
    for (std::int64_t width = kGroup / 2; width; width /= 2) {
      all.push_back(vectors("l", number(width), [&](const Expr& l) {
        return ir::store(
            far, ir::call("bitwise_or", {ir::load(far, {l}), ir::load(far, {l + number(width)})}),
            {l});
      }));
    }
    all.push_back(ir::store(any, ir::load(far, {number(0)}), {number(0)}));
    Stmt keep = vectors("l", number(kGroup), [&](const Expr& l) {
      return ir::store(out, ir::load(near, {l}), {from + l});
    });
    Stmt slow = loop("s", number(kGroup), [&](const Expr& s) {
      return in.at(from + s, [&](const std::vector<Expr>& v) {
        return ir::store(out, value(v), {from + s});
      });
    });
    all.push_back(ir::if_then(ir::eq(ir::load(any, {number(0)}), zero), keep, slow));
    return ir::allocate(near, ir::allocate(far, ir::allocate(any, ir::seq(std::move(all)))));
  });
  Stmt rest = loop("r", Expr(p.n) - whole * number(kGroup), [&](const Expr& r) {
    const Expr at = whole * number(kGroup) + r;
    return in.at(at, [&](const std::vector<Expr>& v) { return ir::store(out, value(v), {at}); });
  });
  return p.finish(ir::seq({groups, rest}));
}

}  // namespace weft::generate
