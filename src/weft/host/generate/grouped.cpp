// SPDX-License-Identifier: Apache-2.0
// Kernels that take elements in groups of fixed length: truth values, which are packed a group at a
// time, and remainders of floats, which have a quick way that a group either takes as a whole or
// not at all.

#include <limits>

#include "weft/elements/row_ir.h"
#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"
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

/// fmod by the quotient, of operands for which that is exact (`close`).
struct Near {
  Expr left, close;
};
Expr float64_number(double v) { return ir::make_const(v, dtypes::float64); }

/// Of float32: while the quotient in float64 is below 2^28 it does not reach an integer by
/// rounding, its product with y has 53 bits at most, and what is left is exact. Infinite and NaN
/// are far too.
Near near_of_float(const Expr& x, const Expr& y, const Expr& quotient) {
  auto wide = [](const Expr& v) { return ir::cast(dtypes::float64, v); };
  const Expr left = wide(x) - ir::call("trunc", {quotient}) * wide(y);
  const Expr finite =
      ir::lt(ir::call("abs", {wide(y)}), float64_number(std::numeric_limits<double>::infinity()));
  return {ir::cast(dtypes::float32, left),
          ir::call("bitwise_and",
                   {finite, ir::lt(ir::call("abs", {quotient}), float64_number(268435456.0))})};
}

/// Of float64: the product of the whole quotient with y as a sum of two (Dekker), which is taken
/// from x exactly. A quotient that reached an integer by rounding is one too large: what is left
/// has the other sign then, and y more is right.
Near near_of_double(const Expr& x, const Expr& y, const Expr& quotient) {
  const Expr t = ir::call("trunc", {quotient}), p = t * y, size = ir::call("abs", {y});
  auto high = [](const Expr& v) {
    const Expr c = v * float64_number(134217729.0);
    return c - (c - v);
  };
  const Expr th = high(t), yh = high(y), tl = t - th, yl = y - yh;
  const Expr low = ((th * yh - p) + th * yl + tl * yh) + tl * yl, left = (x - p) - low;
  const Expr over = ir::lt(left * ir::call("copysign", {float64_number(1), x}), float64_number(0));
  const Expr range = ir::call("bitwise_and", {ir::lt(float64_number(0x1p-900), size),
                                              ir::lt(size, float64_number(0x1p990))});
  return {ir::select(over, left + ir::call("copysign", {size, x}), left),
          ir::call("bitwise_and",
                   {range, ir::lt(ir::call("abs", {quotient}), float64_number(0x1p52))})};
}

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

ir::PrimFunc half_cast_function(Elem from, Elem to, const RowValue& value) {
  constexpr std::int64_t kGroup = 32;
  Program p;
  const bool widens = from == Elem::float16;
  ir::Buffer x = p.buffer("a0", from), out = p.buffer("out", to),
             wide = local("wide", dtypes::float32, kGroup);
  const bool direct = (widens ? to : from) == Elem::float32;
  const Expr whole = ir::floordiv(p.n, number(kGroup));
  auto address = [](const ir::Buffer& b, const Expr& at) {
    return ir::call("address_of", {ir::load(b, {at})});
  };
  auto group = [&](const char* name, const ir::Buffer& in, const Expr& at, const ir::Buffer& to_b,
                   const Expr& to_at) {
    return ir::evaluate(
        ir::call_typed(dtypes::int32, "call_extern",
                       {ir::make_string(name), address(in, at), address(to_b, to_at)}));
  };
  Stmt groups = loop("i", whole, [&](const Expr& i) {
    const Expr at = i * number(kGroup);
    const char* name = widens ? "weft_halves_to_floats" : "weft_floats_to_halves";
    if (direct) return group(name, x, at, out, at);
    Stmt rest = vectors("l", number(kGroup), [&](const Expr& l) {
      if (widens) return ir::store(out, value({ir::load(wide, {l})}), {at + l});
      return ir::store(wide, value({ir::load(x, {at + l})}), {l});
    });
    return ir::allocate(wide, widens ? ir::seq({group(name, x, at, wide, number(0)), rest})
                                     : ir::seq({rest, group(name, wide, number(0), out, at)}));
  });
  Stmt rest = loop("r", Expr(p.n) - whole * number(kGroup), [&](const Expr& r) {
    const Expr at = whole * number(kGroup) + r, one = ir::load(x, {at});
    return ir::store(
        out,
        widens ? value({ir::cast(dtypes::float32, one)}) : ir::cast(dtype_of(to), value({one})),
        {at});
  });
  return p.finish(ir::seq({groups, rest}));
}

ir::PrimFunc remainder_function(Elem e, int layout, const RowValue& value) {
  constexpr std::int64_t kGroup = 64;
  const DType t = dtype_of(e), word = elem_bytes(e) == 8 ? dtypes::int64 : dtypes::int32;
  Program p;
  const Operands in = operands_of(p, 2, e, layout);
  ir::Buffer out = p.buffer("out", e), near = local("near", t, kGroup),
             far = local("far", word, kGroup), any = local("any", word, 1);
  const Expr whole = ir::floordiv(p.n, number(kGroup)), zero = ir::make_const(0, word);
  auto wide = [](const Expr& x) { return ir::cast(dtypes::float64, x); };
  Stmt groups = loop("i", whole, [&](const Expr& i) {
    const Expr from = i * number(kGroup);
    std::vector<Stmt> all;
    all.push_back(vectors("l", number(kGroup), [&](const Expr& l) {
      return in.at(from + l, [&](const std::vector<Expr>& v) {
        return with_values({ir::div(wide(v[0]), wide(v[1]))}, [&](const std::vector<Expr>& q) {
          const Near by = e == Elem::float32 ? near_of_float(v[0], v[1], q[0])
                                             : near_of_double(v[0], v[1], q[0]);
          return with_shared({by.left}, [&](const std::vector<Expr>& m) {
            return with_value("left", m[0], [&](const Expr& left) {
              return ir::seq(
                  {ir::store(near, NearRemainder(left).rewrite(value(v)), {l}),
                   ir::store(far, ir::select(by.close, zero, ir::make_const(1, word)), {l})});
            });
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
