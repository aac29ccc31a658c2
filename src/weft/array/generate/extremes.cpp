// SPDX-License-Identifier: Apache-2.0
// Positions of extremes: of a short run, and of columns that are looked through row by row.

#include "weft/array/generate/builder.h"
#include "weft/array/generate/kernels.h"

namespace weft::generate {

namespace {

constexpr std::int64_t kFar = INT32_MAX;

/// What is compared: booleans as bytes.
DType compared(Elem e) { return e == Elem::boolean ? dtypes::uint8 : dtype_of(e); }

DType word_of(DType t) {
  return t.bits == 8    ? dtypes::int8
         : t.bits == 16 ? dtypes::int16
         : t.bits == 32 ? dtypes::int32
                        : dtypes::int64;
}

/// acc[0] = the first place of x's extreme, of n elements, 0 < n <= kRun; NaN is the extreme of
/// all. Lanes keep their best and the step at which they met it, counted in a word as wide as the
/// element; the last vector overlaps the one before, whose elements were met already.
ir::PrimFunc position_function(bool largest, Elem e) {
  const DType t = compared(e), word = word_of(t), place = dtypes::int32;
  const std::int64_t lanes = 128 / t.bytes();
  Program p;
  ir::Buffer x = p.buffer("a0", t), acc = p.buffer("acc", dtypes::int64, number(1));
  ir::Buffer best = local("best", t, lanes), step = local("step", word, lanes),
             odd = local("odd", word, lanes), top = local("top", t, lanes),
             least = local("least", place, lanes), result = local("result", dtypes::int64, 1),
             value = local("value", t, 1);
  const Expr zero = number(0), whole = ir::floordiv(p.n, number(lanes));
  auto better = [&](const Expr& a, const Expr& b) { return largest ? ir::gt(a, b) : ir::lt(a, b); };
  auto one = [](DType type, std::int64_t v) {
    return ir::make_const(static_cast<double>(v), type);
  };
  auto at = [&](const ir::Buffer& b, const Expr& i) { return ir::load(b, {i}); };
  auto is_nan = [&](const Expr& v) {
    return ir::select(ir::ne(v, v), one(word, -1), one(word, 0));
  };
  auto vector_at = [&](const Expr& first, const Expr& number_of_step) {
    return vectors("l", number(lanes), [&](const Expr& l) {
      return with_values({at(x, first + l), at(best, l)}, [&](const std::vector<Expr>& v) {
        std::vector<Stmt> all = {
            ir::store(step,
                      ir::select(better(v[0], v[1]), ir::cast(word, number_of_step), at(step, l)),
                      {l}),
            ir::store(best, ir::select(better(v[0], v[1]), v[0], v[1]), {l})};
        if (t.is_float())
          all.push_back(ir::store(odd, ir::call("bitwise_or", {at(odd, l), is_nan(v[0])}), {l}));
        return ir::seq(std::move(all));
      });
    });
  };
  auto halves = [&](const std::function<Stmt(const Expr& l, const Expr& other)>& join) {
    std::vector<Stmt> all;
    for (std::int64_t width = lanes / 2; width; width /= 2) {
      all.push_back(
          vectors("l", number(width), [&](const Expr& l) { return join(l, l + number(width)); }));
    }
    return ir::seq(std::move(all));
  };
  std::vector<Stmt> wide;
  wide.push_back(vectors("l", number(lanes), [&](const Expr& l) {
    return with_values({at(x, l)}, [&](const std::vector<Expr>& v) {
      return ir::seq({ir::store(best, v[0], {l}), ir::store(step, one(word, 0), {l}),
                      ir::store(odd, t.is_float() ? is_nan(v[0]) : one(word, 0), {l})});
    });
  }));
  wide.push_back(loop("i", whole - 1,
                      [&](const Expr& i) { return vector_at((i + 1) * number(lanes), i + 1); }));
  wide.push_back(vector_at(Expr(p.n) - number(lanes), whole));
  wide.push_back(
      vectors("l", number(lanes), [&](const Expr& l) { return ir::store(top, at(best, l), {l}); }));
  wide.push_back(halves([&](const Expr& l, const Expr& other) {
    return with_values({at(top, l), at(top, other)}, [&](const std::vector<Expr>& v) {
      return ir::store(top, ir::select(better(v[1], v[0]), v[1], v[0]), {l});
    });
  }));
  wide.push_back(vectors("l", number(lanes), [&](const Expr& l) {
    const Expr s = ir::cast(place, at(step, l)), lane = ir::cast(place, l);
    const Expr last = ir::eq(s, ir::cast(place, whole));
    const Expr here =
        ir::select(last, ir::cast(place, Expr(p.n) - number(lanes)), s * one(place, lanes)) + lane;
    return ir::store(least, ir::select(ir::eq(at(best, l), at(top, zero)), here, one(place, kFar)),
                     {l});
  }));
  wide.push_back(halves([&](const Expr& l, const Expr& other) {
    return with_values({at(least, l), at(least, other)}, [&](const std::vector<Expr>& v) {
      return ir::store(least, ir::select(ir::lt(v[1], v[0]), v[1], v[0]), {l});
    });
  }));
  wide.push_back(ir::store(result, ir::cast(dtypes::int64, at(least, zero)), {zero}));
  if (t.is_float()) {
    wide.push_back(halves([&](const Expr& l, const Expr& other) {
      return ir::store(odd, ir::call("bitwise_or", {at(odd, l), at(odd, other)}), {l});
    }));
    const Expr here = at(x, at(result, zero));
    const Stmt search =
        ir::seq({ir::store(result, zero, {zero}),
                 ir::while_loop(ir::eq(here, here),
                                ir::store(result, at(result, zero) + number(1), {zero}))});
    wide.push_back(ir::if_then(ir::ne(at(odd, zero), one(word, 0)), search));
  }
  Stmt many = ir::seq(std::move(wide));
  for (const ir::Buffer& b : {best, step, odd, top, least}) many = ir::allocate(b, many);
  const Stmt few = ir::seq(
      {ir::store(result, zero, {zero}), ir::store(value, at(x, zero), {zero}),
       loop("r", Expr(p.n) - 1, [&](const Expr& r) {
         return with_values({at(x, r + 1), at(value, zero)}, [&](const std::vector<Expr>& v) {
           // NaN is better than what is none.
           const Expr first = ir::call("bitwise_and", {ir::ne(v[0], v[0]), ir::eq(v[1], v[1])});
           const Expr taken = ir::call("bitwise_or", {better(v[0], v[1]), first});
           return ir::seq({ir::store(result, ir::select(taken, r + 1, at(result, zero)), {zero}),
                           ir::store(value, ir::select(taken, v[0], v[1]), {zero})});
         });
       })});
  const Stmt any = ir::if_then(ir::ge(p.n, number(lanes)), many, ir::allocate(value, few));
  return p.finish(ir::allocate(result, ir::seq({any, ir::store(acc, at(result, zero), {zero})})));
}

/// acc[i] = here where x[i] is top[i], both NaN included.
ir::PrimFunc place_function(Elem e) {
  const DType t = compared(e);
  Program p;
  const Expr here = p.scalar("here", dtypes::int32);
  ir::Buffer x = p.buffer("a0", t), top = p.buffer("a1", t), acc = p.buffer("acc", dtypes::int32);
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    return with_values(
        {ir::load(x, {i}), ir::load(top, {i}), ir::load(acc, {i})},
        [&](const std::vector<Expr>& v) {
          Expr hit = ir::eq(v[0], v[1]);
          if (t.is_float()) {
            const Expr none = ir::call("bitwise_and", {ir::ne(v[0], v[0]), ir::ne(v[1], v[1])});
            hit = ir::call("bitwise_or", {hit, none});
          }
          return ir::store(acc, ir::select(hit, here, v[2]), {i});
        });
  }));
}

}  // namespace

std::vector<Kernel> extreme_kernels() {
  std::vector<Kernel> out;
  for (int k = 0; k < kElems; ++k) {
    const Elem e = static_cast<Elem>(k);
    if (is_complex(e) || e == Elem::float16 || e == Elem::bfloat16) continue;
    for (bool largest : {true, false}) {
      out.push_back({entry(KernelEntry::position, largest ? 1 : 0, e),
                     cat(largest ? "w_argmax_" : "w_argmin_", name_of(e)),
                     position_function(largest, e)});
    }
    out.push_back(
        {entry(KernelEntry::place, 0, e), cat("w_place_", name_of(e)), place_function(e)});
  }
  return out;
}

}  // namespace weft::generate
