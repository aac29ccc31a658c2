// SPDX-License-Identifier: Apache-2.0
// Element-wise rows, choices and conversions.

#include <limits>
#include <set>

#include "weft/elements/row_ir.h"
#include "weft/elements/rows.h"
#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"
#include "weft/ir/regions.h"
#include "weft/ir/visit.h"
#include "weft/schedule/schedule.h"

namespace weft::generate {

namespace {

using namespace types;
constexpr bool same = false, real = false, boolean = true;

struct Row {
  std::string name;
  int arity, types;
  bool truth;  // the result is bool
};
const Row kRows[] = {
#define UNARY(name, rule, types, ...) {#name, 1, types, rule},
#define BINARY(name, rule, types, ...) {#name, 2, types, rule},
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
};

/// Division of integers that a float holds, rounded to the one below: processors divide floats in
/// vectors. The quotient is further from the next integer than rounding takes it, since x / y
/// misses an integer by 1 / y at least. Divisors 0 and -1 as in elements/value_ir.h.
Expr divided(Op op, const Expr& x, const Expr& y) {
  const DType type = x->dtype;
  const DType real = type.bits < 32 ? dtypes::float32 : dtypes::float64;
  const Expr zero = ir::make_const(0, type), one = ir::make_const(1, type);
  Expr none = ir::eq(y, zero), back = ir::make_bool(false);
  if (type.is_int()) back = ir::eq(y, ir::make_const(-1, type));
  const Expr safe = ir::select(ir::call("bitwise_or", {none, back}), one, y);
  // By way of int32: narrower integers have no conversions of their own.
  Expr whole = ir::call("floor", {ir::div(ir::cast(real, x), ir::cast(real, safe))});
  Expr q = ir::cast(type, ir::cast(dtypes::int32, whole));
  if (op == Op::remainder) return x - q * safe;
  if (type.is_int()) q = ir::select(back, zero - x, q);
  return ir::select(none, zero, q);
}

/// Products and the sums that they are part of are one operation where the processor has it.
class Contracted final : public ir::Rewriter {
 protected:
  Expr rewrite_default(const Expr& e) override {
    const Expr out = ir::Rewriter::rewrite_default(e);
    if (out->kind != ir::ExprKind::add) return out;
    const auto* sum = ir::as<ir::BinaryNode>(out);
    for (const auto& [term, rest] : {std::pair{sum->a, sum->b}, std::pair{sum->b, sum->a}}) {
      if (term->kind != ir::ExprKind::mul) continue;
      const auto* product = ir::as<ir::BinaryNode>(term);
      return ir::call("fma", {product->a, product->b, rest});
    }
    return out;
  }
};

Expr value_of(Op op, const std::vector<Expr>& in) {
  const DType type = in[0]->dtype;
  // A polynomial, which may be rounded in either way.
  if (kRows[row_of(op)].name == "gelu" && type == dtypes::float32)
    return Contracted().rewrite(row_value(op, in));
  if (op == Op::pow && type.is_integral()) {
    return ir::call_typed(
        type, "call_extern",
        {ir::make_string(cat("weft_pow_", type.is_int() ? "i" : "u", std::to_string(type.bits))),
         in[0], in[1]});
  }
  if (kRows[row_of(op)].name == "cbrt") {
    const char* name = type == dtypes::float32 ? "weft_cbrt_float" : "weft_cbrt_double";
    return ir::call_typed(type, "call_extern", {ir::make_string(name), in[0]});
  }
  // Of a number that a vector can hold, where the processor's own answer is one number at a time.
  if (op == Op::signbit)
    return ir::lt(ir::call("copysign", {ir::make_const(1, type), in[0]}), ir::make_const(0, type));
  if ((op == Op::floor_divide || op == Op::remainder) && (type.bits < 32 || type == dtypes::int32))
    return divided(op, in[0], in[1]);
  return row_value(op, in);
}

/// A block over `iters` that stores `value` at `at`; operands are read first.
Stmt point_block(const std::vector<Var>& loops, const std::vector<Expr>& extents,
                 const std::function<Stmt(const std::vector<Expr>&)>& body) {
  auto block = make_ref<ir::BlockNode>();
  block->id = ir::fresh_block_id();
  block->name = "point";
  std::vector<Expr> at, values;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    Var v = ir::make_var("v_" + loops[i]->name, loops[i]->dtype);
    block->iters.push_back({v, {number(0), extents[i]}, ir::IterKind::spatial});
    at.push_back(v);
    values.push_back(loops[i]);
  }
  block->body = body(at);
  auto regions = ir::detect_block_regions(*block);
  block->reads = regions.reads;
  block->writes = regions.writes;
  return ir::block_realize(values, ir::make_bool(true), block);
}

/// The loop of one block, in vectors.
ir::PrimFunc vectorized(const ir::PrimFunc& f) {
  schedule::Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("point"));
  sch.vectorize(loops.back());
  return sch.func();
}

struct Load {
  ir::Buffer buffer;
  bool one;    // the same element for all
  Var held{};  // it, read before the loop: compilers shift by a number known there for less
};

/// The loop with the elements that are the same for all read before it.
Stmt with_held(const std::vector<Load>& loads, Stmt loop) {
  for (const Load& l : loads)
    if (l.one) loop = ir::let_stmt(l.held, ir::load(l.buffer, {number(0)}), loop);
  return loop;
}
/// The loop with the first elements of a buffer read before it.
Stmt with_held(const std::vector<Var>& vars, const ir::Buffer& from, Stmt loop) {
  for (std::size_t k = vars.size(); k-- > 0;)
    loop = ir::let_stmt(vars[k], ir::load(from, {number(static_cast<std::int64_t>(k))}), loop);
  return loop;
}

Stmt pointwise(const std::vector<Load>& loads, const ir::Buffer& out, const Expr& at,
               const std::function<Expr(const std::vector<Expr>&)>& value) {
  std::vector<Var> vars;
  std::vector<Expr> in;
  for (std::size_t k = 0; k < loads.size(); ++k) {
    vars.push_back(loads[k].one ? loads[k].held
                                : ir::make_var(cat("x", k), loads[k].buffer->dtype));
    in.push_back(vars.back());
  }
  Stmt body = ir::store(out, value(in), {at});
  for (std::size_t k = loads.size(); k-- > 0;) {
    if (!loads[k].one) body = ir::let_stmt(vars[k], ir::load(loads[k].buffer, {at}), body);
  }
  return body;
}

ir::PrimFunc map_function(Op op, int arity, Elem e, Elem result, int layout) {
  Program p;
  const Expr extent = p.n;
  std::vector<Load> loads;
  for (int k = 0; k < arity; ++k) {
    const bool one = layout == k + 1;
    loads.push_back({p.buffer(cat("a", k), e, one ? number(1) : extent), one,
                     one ? ir::make_var(cat("held", k), dtype_of(e)) : Var()});
  }
  ir::Buffer out = p.buffer("out", result, extent);
  auto value = [&](const std::vector<Expr>& in) {
    return no_branches(convert_value(value_of(op, in), result));
  };
  return p.finish(with_held(
      loads, vectors("i", extent, [&](const Expr& i) { return pointwise(loads, out, i, value); })));
}

/// pow by a half is the square root but for -0 and minus infinity, and so are its neighbours.
Expr root_of(const Expr& x) {
  const Expr zero = ir::make_const(0, x->dtype),
             infinity = ir::make_const(std::numeric_limits<double>::infinity(), x->dtype);
  return ir::select(ir::eq(x, zero), zero,
                    ir::select(ir::eq(x, zero - infinity), infinity, ir::call("sqrt", {x})));
}

/// A row whose second operand is a known number; quotients read three constants instead of it.
ir::PrimFunc known_function(Known way, Elem e) {
  Program p;
  ir::Buffer x = p.buffer("a0", e), c, out;
  std::vector<Var> constants;
  const bool limits = way == Known::at_least || way == Known::at_most;
  if (limits || way == Known::quotient || way == Known::rest) {
    // Those of quotients of 8 bits are words.
    const DType type = !limits && elem_bytes(e) == 1 ? dtypes::uint16 : dtype_of(e);
    const int count = limits ? 1 : 3;
    c = p.buffer("a1", type, number(count));
    for (int k = 0; k < count; ++k) constants.push_back(ir::make_var(cat("c", k), type));
  }
  out = p.buffer("out", e);
  auto value = [&](const Expr& v) -> Expr {
    switch (way) {
      case Known::cube: return v * v * v;
      case Known::root: return root_of(v);
      case Known::at_least: return ir::select(ir::ge(Expr(constants[0]), v), constants[0], v);
      case Known::at_most: return ir::select(ir::le(Expr(constants[0]), v), constants[0], v);
      case Known::inverse_root: return ir::div(ir::make_const(1, v->dtype), root_of(v));
      default: break;
    }
    const std::string name =
        cat("weft_quotient_", v->dtype.is_int() ? "i" : "u", std::to_string(v->dtype.bits));
    Expr q = ir::call_typed(v->dtype, "call_extern",
                            {ir::make_string(name), v, constants[0], constants[1]});
    return way == Known::quotient ? q : v - q * ir::cast(v->dtype, Expr(constants[2]));
  };
  return p.finish(with_held(constants, c, vectors("i", p.n, [&](const Expr& i) {
                              return pointwise(
                                  {{x, false}}, out, i,
                                  [&](const std::vector<Expr>& in) { return value(in[0]); });
                            })));
}

/// A row of bfloat16, computed in float32 and rounded once.
ir::PrimFunc narrow_function(Op op, int arity, Elem e, Elem result) {
  Program p;
  std::vector<Load> loads;
  for (int k = 0; k < arity; ++k) loads.push_back({p.buffer(cat("a", k), e), false});
  ir::Buffer out = p.buffer("out", result);
  Var i = ir::make_var("i");
  Stmt body = point_block({i}, {p.n}, [&](const std::vector<Expr>& v) {
    return pointwise(loads, out, v[0], [&](const std::vector<Expr>& in) {
      std::vector<Expr> wide;
      for (const Expr& x : in) wide.push_back(ir::cast(dtypes::float32, x));
      return no_branches(convert_value(value_of(op, wide), result));
    });
  });
  return vectorized(p.finish(ir::make_for(i, number(0), p.n, body)));
}

/// The next float towards another is the next word: magnitudes with a sign count through 0.
ir::PrimFunc next_function(Elem e) {
  Program p;
  const int bits = 8 * elem_bytes(e);
  const DType word = bits == 16 ? dtypes::int16 : bits == 32 ? dtypes::int32 : dtypes::int64;
  const DType held = bits == 64 ? dtypes::int64 : dtypes::int32;  // what words are computed in
  ir::Buffer x = p.buffer("a0", word), y = p.buffer("a1", word), out = p.buffer("out", word);
  auto whole = [&](std::int64_t v) { return ir::make_int(v, held); };
  const int mantissa = e == Elem::float16 ? 10 : e == Elem::bfloat16 ? 7 : bits == 32 ? 23 : 52;
  const std::int64_t all = (std::int64_t{1} << (bits - 2)) - 1 + (std::int64_t{1} << (bits - 2));
  const std::int64_t exponents = all >> mantissa << mantissa;
  const Expr infinity = whole(exponents), zero = whole(0), least = whole(-all - 1);
  const Expr nan = whole(exponents | std::int64_t{1} << (mantissa - 1));
  Var i = ir::make_var("i");
  Stmt body = point_block({i}, {p.n}, [&](const std::vector<Expr>& v) {
    return pointwise({{x, false}, {y, false}}, out, v[0], [&](const std::vector<Expr>& in) {
      const Expr from = ir::cast(held, in[0]), to = ir::cast(held, in[1]);
      auto size = [&](const Expr& w) { return ir::call("bitwise_and", {w, whole(all)}); };
      // Bits instead of selections in each other, of which compilers make branches.
      auto ends = [&](const Expr& w) {
        return ir::call("shift_right", {w, whole(8 * held.bytes() - 1)});
      };
      auto turned = [&](const Expr& w, const Expr& sign) {
        return ir::call("bitwise_xor", {w, sign}) - sign;
      };
      const Expr a = turned(size(from), ends(from)), b = turned(size(to), ends(to));
      const Expr next = a + ir::select(ir::lt(a, b), whole(1), whole(-1));
      const Expr sign =
          ir::call("bitwise_and", {ir::select(ir::eq(next, zero), from, next), least});
      const Expr moved = ir::call("bitwise_or", {turned(next, ends(next)), sign});
      const Expr found = ir::select(ir::eq(a, b), to, moved);
      const Expr largest = ir::max(size(from), size(to));
      return ir::cast(word, ir::select(ir::gt(largest, infinity), nan, found));
    });
  });
  return vectorized(p.finish(ir::make_for(i, number(0), p.n, body)));
}

/// Magnitude and sign of a 16-bit float are bits of its word.
ir::PrimFunc sign_function(Op op) {
  Program p;
  std::vector<Load> from = {{p.buffer("a0", dtypes::uint16), false}};
  if (op == Op::copysign) from.push_back({p.buffer("a1", dtypes::uint16), false});
  ir::Buffer out = p.buffer("out", dtypes::uint16);
  Var i = ir::make_var("i");
  auto bits = [](const char* name, const Expr& x, int mask) {
    return ir::call(name, {x, ir::make_const(mask, dtypes::uint16)});
  };
  Stmt body = point_block({i}, {p.n}, [&](const std::vector<Expr>& v) {
    return pointwise(from, out, v[0], [&](const std::vector<Expr>& in) {
      if (op == Op::negative) return bits("bitwise_xor", in[0], 0x8000);
      const Expr size = bits("bitwise_and", in[0], 0x7fff);
      if (op == Op::abs) return size;
      return ir::call("bitwise_or", {size, bits("bitwise_and", in[1], 0x8000)});
    });
  });
  return vectorized(p.finish(ir::make_for(i, number(0), p.n, body)));
}

/// out[i] = condition[i] ? a[i] : b[i], with `width` numbers of `type` to an element.
ir::PrimFunc select_function(DType type, int width) {
  Program p;
  const Expr extent = Expr(p.n) * number(width);
  ir::Buffer c = p.buffer("condition", Elem::boolean);
  ir::Buffer a = p.buffer("a0", type, extent), b = p.buffer("a1", type, extent),
             out = p.buffer("out", type, extent);
  Var i = ir::make_var("i");
  Stmt body = point_block({i}, {p.n}, [&](const std::vector<Expr>& v) {
    std::vector<Stmt> all;
    for (int w = 0; w < width; ++w) {
      Expr at = v[0] * number(width) + number(w);
      all.push_back(with_value(cat("x", w), ir::load(a, {at}), [&](const Expr& x) {
        return with_value(cat("y", w), ir::load(b, {at}), [&](const Expr& y) {
          return ir::store(out, ir::select(ir::load(c, {v[0]}), x, y), {at});
        });
      }));
    }
    return ir::seq(std::move(all));
  });
  return vectorized(p.finish(ir::make_for(i, number(0), p.n, body)));
}

/// As float32; what that does not hold is rounded so that a second rounding to 16-bit floats is
/// right.
Expr to_float(const Expr& x) {
  const DType from = x->dtype;
  const bool wide = from == dtypes::float64 || (from.is_integral() && from.bits >= 32);
  if (!wide) return ir::cast(dtypes::float32, x);
  return ir::call_typed(dtypes::float32, "call_extern",
                        {ir::make_string("weft_odd_float"), ir::cast(dtypes::float64, x)});
}

/// What astype does to numbers out of range is the machine's; the same in vectors and alone.
Expr convert(const Expr& x, Elem to) {
  const DType from = x->dtype, t = dtype_of(to);
  if (from == t) return x;
  if (t.is_bool()) return ir::ne(x, ir::make_const(0, from));
  if (from.is_float() && t.is_integral()) {
    if (t.bits < 32) return ir::cast(t, ir::cast(dtypes::int32, x));
    if (t == dtypes::uint32) return ir::cast(t, ir::cast(dtypes::int64, x));
    if (t == dtypes::uint64) {
      const Expr half = ir::make_const(9223372036854775808.0, from);
      Expr high = ir::cast(t, ir::cast(dtypes::int64, x - half));
      high = ir::call("bitwise_xor", {high, ir::make_int(INT64_MIN, t)});
      return ir::select(ir::lt(x, half), ir::cast(t, ir::cast(dtypes::int64, x)), high);
    }
  }
  return t.is_float() && t.bits <= 16 ? ir::cast(t, to_float(x)) : ir::cast(t, x);
}

/// Complex numbers are pairs of reals.
ir::PrimFunc cast_function(Elem from, Elem to) {
  Program p;
  const Elem a = real_of(from), b = real_of(to);
  const int width_a = is_complex(from) ? 2 : 1, width_b = is_complex(to) ? 2 : 1;
  // Bits alone, where nothing is converted.
  const bool bits = from == to;
  const DType words[] = {dtypes::uint8, dtypes::uint16, dtypes::uint32, dtypes::uint64};
  auto word = [&](Elem e) {
    return words[elem_bytes(e) == 1 ? 0 : elem_bytes(e) == 2 ? 1 : elem_bytes(e) == 4 ? 2 : 3];
  };
  ir::Buffer x = p.buffer("a0", bits ? word(a) : dtype_of(a), Expr(p.n) * number(width_a));
  ir::Buffer out = p.buffer("out", bits ? word(b) : dtype_of(b), Expr(p.n) * number(width_b));
  Var i = ir::make_var("i");
  Stmt body = point_block({i}, {p.n}, [&](const std::vector<Expr>& v) {
    auto part = [&](int k) { return ir::load(x, {v[0] * number(width_a) + number(k)}); };
    auto put = [&](int k, const Expr& value) {
      return ir::store(out, value, {v[0] * number(width_b) + number(k)});
    };
    auto as = [&](const Expr& value) { return bits ? value : convert(value, b); };
    if (width_b == 2)
      return ir::seq({put(0, as(part(0))),
                      put(1, width_a == 2 ? as(part(1)) : ir::make_const(0, out->dtype))});
    if (width_a == 2 && to == Elem::boolean)
      return put(0, ir::call("bitwise_or", {convert(part(0), b), convert(part(1), b)}));
    return put(0, as(part(0)));
  });
  return vectorized(p.finish(ir::make_for(i, number(0), p.n, body)));
}

class LibraryCalls final : public ir::Visitor {
 public:
  bool found = false;
  using ir::Visitor::visit;
  void visit(const Expr& e) override {
    if (!seen_.insert(e.get()).second) return;
    found |= is_library_call(e);
    ir::Visitor::visit(e);
  }

 private:
  std::unordered_set<const ir::ExprNode*> seen_;
};

}  // namespace

bool is_library_call(const Expr& e) {
  static const std::set<std::string> names = {"exp",   "exp2", "expm1", "log",   "log2",  "log10",
                                              "log1p", "sin",  "cos",   "tan",   "asin",  "acos",
                                              "atan",  "sinh", "cosh",  "tanh",  "asinh", "acosh",
                                              "atanh", "erf",  "pow",   "atan2", "hypot"};
  const auto* c = ir::as<ir::CallNode>(e);
  if (!c || !names.count(c->op)) return false;
  static const std::set<std::string> own = {"exp",  "exp2", "log",   "log1p", "sinh",
                                            "cosh", "tanh", "expm1", "erf"};
  return e->dtype != dtypes::float32 || !own.count(c->op);
}

bool calls_library(const Expr& e) {
  LibraryCalls calls;
  calls.visit(e);
  return calls.found;
}

namespace {

/// The row of two operands whose code serves another: the signed type's where the sign is not seen,
/// the smaller side's for comparisons, and one side for both where the order is not seen.
struct Twin {
  Op op;
  Elem elem;
  int layout;
  bool swapped = false;
  bool shares(Op other_op, Elem other_elem, int other_layout) const {
    return op != other_op || elem != other_elem || layout != other_layout;
  }
};

Twin twin_of(Op op, Elem e, int layout) {
  Twin twin{op, e, layout};
  const bool equality = op == Op::equal || op == Op::not_equal;
  const bool bits =
      op == Op::bitwise_and || op == Op::bitwise_or || op == Op::bitwise_xor || equality;
  const bool products = op == Op::add || op == Op::multiply;
  if (bits || products || op == Op::subtract) twin.elem = signless(e);
  if (op == Op::greater || op == Op::greater_equal) {
    twin.op = op == Op::greater ? Op::less : Op::less_equal;
    twin.layout = layout == 0 ? 0 : 3 - layout;
    twin.swapped = true;
  }
  // Of two NaNs a float's sum is the first.
  const bool either = bits || op == Op::maximum || op == Op::minimum || products;
  if (layout == 2 && either && (equality || is_integer(e))) {
    twin.layout = 1;
    twin.swapped = true;
  }
  return twin;
}

}  // namespace

std::vector<Kernel> table_kernels(const std::vector<Elem>& elems) {
  std::vector<Kernel> out;
  auto add = [&](KernelEntry at, const std::string& name, ir::PrimFunc f) -> Kernel& {
    out.push_back({at, name, std::move(f), false, {}, Elem::boolean});
    return out.back();
  };
  using T = KernelEntry;
  for (Elem e : elems) {
    const std::string tail = cat("_", name_of(e));
    for (int k = 0; k < kOps; ++k) {
      const Row& row = kRows[row_of(static_cast<Op>(k))];
      if (!(row.types & type_bit(e))) continue;
      const Op op = static_cast<Op>(k);
      const Elem result = row.truth ? Elem::boolean : e;
      std::vector<Expr> probe(2, ir::make_var("x", dtype_of(e)));
      const bool blocks = calls_library(value_of(op, probe));
      const int layouts = row.arity == 2 && !blocks ? 3 : 1;
      for (int layout = 0; layout < layouts; ++layout) {
        static constexpr const char* suffix[] = {"", "_left", "_right"};
        const bool truth = row.truth && elem_bytes(e) >= 4 && !blocks;
        const bool left = (op == Op::floor_divide || op == Op::remainder) && dtype_of(e).is_float();
        auto value = [&](const std::vector<Expr>& in) { return no_branches(value_of(op, in)); };
        if (op == Op::nextafter && layout > 0) continue;
        const Twin twin = twin_of(op, e, layout);
        if (layouts == 3 && twin.shares(op, e, layout)) {
          Kernel& kernel = add(entry(T::elementwise, k, e, layout),
                               cat("w_", row.name, tail, suffix[layout]), nullptr);
          kernel.code =
              cat("w_", kRows[row_of(twin.op)].name, "_", name_of(twin.elem), suffix[twin.layout]);
          kernel.swapped = twin.swapped;
          continue;
        }
        ir::PrimFunc f = op == Op::nextafter ? next_function(e)
                         : truth             ? truth_function(row.arity, e, layout, value)
                         : left              ? remainder_function(e, layout, value)
                                             : map_function(op, row.arity, e, result, layout);
        Kernel& kernel = add(entry(T::elementwise, k, e, layout),
                             cat("w_", row.name, tail, suffix[layout]), std::move(f));
        kernel.blocks = blocks;
        kernel.operands.assign(static_cast<std::size_t>(row.arity), e);
        kernel.result = result;
      }
    }
    const bool whole = is_integer(e), real = is_real_float(e);
    auto known = [&](Known way, const char* name) {
      add(entry(T::known, static_cast<int>(way), e), cat("w_known_", name, tail),
          known_function(way, e));
    };
    if (whole || real) known(Known::cube, "cube");
    if (real) {
      known(Known::root, "root");
      known(Known::inverse_root, "inverse_root");
      known(Known::at_least, "at_least");
      known(Known::at_most, "at_most");
    }
    if (whole) {
      known(Known::quotient, "quotient");
      known(Known::rest, "rest");
    }
    for (Kernel& kernel : reduction_kernels(e)) out.push_back(std::move(kernel));
  }
  return out;
}

namespace {

ir::PrimFunc cast_program(Elem from, Elem to) {
  const bool widens = from == Elem::float16;
  if (widens == (to == Elem::float16) || is_complex(from) || is_complex(to))
    return cast_function(from, to);
  return half_cast_function(from, to, [=](const std::vector<Expr>& x) {
    return widens ? convert(x[0], to) : to_float(x[0]);
  });
}

/// The conversion whose code serves another: only widening sees the sign of integers, and none sees
/// that of its result (floats become narrow integers by way of int32).
std::pair<Elem, Elem> cast_code(Elem from, Elem to) {
  const bool widens = is_integer(to) && elem_bytes(to) > elem_bytes(from);
  if (is_integer(from))
    return {to == Elem::boolean || (is_integer(to) && !widens) ? signless(from) : from,
            signless(to)};
  if (from == Elem::boolean || elem_bytes(to) < 4) return {from, signless(to)};
  return {from, to};
}

class Calls final : public ir::Visitor {
 public:
  bool found = false;
  using ir::Visitor::visit;
  void visit(const Expr& e) override {
    static const std::set<std::string> quick = {"abs",  "ceil",     "floor", "trunc",    "round",
                                                "sqrt", "copysign", "isnan", "isfinite", "isinf"};
    const auto* c = ir::as<ir::CallNode>(e);
    found |= c && !quick.count(c->op);
    ir::Visitor::visit(e);
  }
};

/// Rows without calls of functions: beside those conversions in registers gain nothing, and
/// compilers make worse code of both together than of each.
void narrow_rows(Elem e, std::vector<Kernel>& out) {
  for (int k = 0; k < kOps; ++k) {
    const Row& row = kRows[row_of(static_cast<Op>(k))];
    const Op op = static_cast<Op>(k);
    const bool bits = op == Op::abs || op == Op::negative || op == Op::copysign ||
                      op == Op::nextafter ||
                      op == Op::signbit;  // of the word; GCC 12 stops at the last
    if (!(row.types & F) || bits || op == Op::floor_divide || op == Op::remainder) continue;
    const std::vector<Expr> probe(2, ir::make_var("x", dtypes::float32));
    Calls calls;
    calls.visit(value_of(op, probe));
    if (calls.found) continue;
    const Elem result = row.truth ? Elem::boolean : e;
    out.push_back({entry(KernelEntry::elementwise, k, e), cat("w_", row.name, "_", name_of(e)),
                   narrow_function(op, row.arity, e, result)});
  }
}

}  // namespace

std::vector<Kernel> cast_kernels() {
  std::vector<Kernel> out;
  for (int a = 0; a < kElems; ++a) {
    for (int b = 0; b < kElems; ++b) {
      const Elem from = static_cast<Elem>(a), to = static_cast<Elem>(b);
      const auto [code_from, code_to] = cast_code(from, to);
      const bool own = code_from == from && code_to == to;
      const std::string code = cat("w_cast_", name_of(code_from), "_", name_of(code_to));
      out.push_back({entry(KernelEntry::cast, a, to),
                     cat("w_cast_", name_of(from), "_", name_of(to)),
                     own ? cast_program(from, to) : nullptr,
                     false,
                     {},
                     to,
                     nullptr,
                     own ? std::string() : code});
    }
    const Elem e = static_cast<Elem>(a);
    if (is_float8(e)) continue;
    if (e == Elem::float16 || e == Elem::bfloat16) {
      for (Op op : {Op::abs, Op::negative, Op::copysign, Op::nextafter}) {
        out.push_back({entry(KernelEntry::elementwise, static_cast<int>(op), e),
                       cat("w_", kRows[row_of(op)].name, "_", name_of(e)),
                       op == Op::nextafter ? next_function(e) : sign_function(op),
                       false,
                       {},
                       e});
      }
      if (e == Elem::bfloat16) narrow_rows(e, out);
      continue;
    }
    out.push_back({entry(KernelEntry::select, 0, e),
                   cat("w_select_", name_of(e)),
                   select_function(dtype_of(real_of(e)), is_complex(e) ? 2 : 1),
                   false,
                   {},
                   e});
  }
  return out;
}

}  // namespace weft::generate
