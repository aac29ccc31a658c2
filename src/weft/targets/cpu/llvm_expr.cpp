// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/base/vector_math.h"
#include "weft/ir/build.h"
#include "weft/ir/float_cast.h"
#include "weft/ir/text.h"
#include "weft/targets/cpu/llvm_function.h"

namespace weft::cpu {

using namespace ir;

namespace {
std::string scalar_type(DType t) {
  if (t.is_bool()) return "i1";
  if (t.is_integral()) return cat("i", static_cast<int>(t.bits));
  if (t.is_handle()) return "ptr";
  if (t.is_bfloat()) return "float";
  if (t.is_float()) return t.bits == 16 ? "half" : t.bits == 32 ? "float" : "double";
  throw Error(ErrorKind::emit, "cpu.emit.type",
              cat("the cpu target has no values of type ", to_string(t)));
}

std::string with_lanes(const std::string& scalar, int lanes) {
  return lanes == 1 ? scalar : cat("<", lanes, " x ", scalar, ">");
}

std::string float_literal(DType t, double value) {
  // Hexadecimal doubles: exact for float, half and bfloat, whose constants are widened.
  if (t.bits == 16 && !t.is_bfloat()) return cat("0xH", hex(double_to_half(value), 4).substr(2));
  double wide = t.bits == 64 ? value : static_cast<double>(static_cast<float>(value));
  return hex(std::bit_cast<std::uint64_t>(wide), 16);
}

std::string suffix(DType t) {  // of an overloaded intrinsic
  std::string s = t.is_bool()                      ? "i1"
                  : t.is_integral()                ? cat("i", static_cast<int>(t.bits))
                  : t.bits == 16 && !t.is_bfloat() ? "f16"
                  : t.bits == 64                   ? "f64"
                                                   : "f32";
  return t.lanes == 1 ? s : cat("v", t.lanes, s);
}

/// Lanes so far apart come out of vectors of neighbours; others are loaded one by one.
constexpr std::int64_t kMostStep = 4;

}  // namespace

std::string value_type(DType t) { return with_lanes(scalar_type(t), t.lanes); }

std::string memory_type(DType t) {
  return with_lanes(t.is_bool() ? "i8" : t.is_bfloat() ? "i16" : scalar_type(t), t.lanes);
}

std::string FunctionEmitter::splat(DType t, const std::string& scalar) {
  if (t.lanes == 1) return scalar;
  std::string v = value_type(t);
  std::string first =
      let(cat("insertelement ", v, " poison, ", scalar_type(t), " ", scalar, ", i32 0"));
  return let(cat("shufflevector ", v, " ", first, ", ", v, " poison, <", t.lanes,
                 " x i32> zeroinitializer"));
}

std::string FunctionEmitter::lane(DType t, const std::string& vector, int i) {
  return let(cat("extractelement ", value_type(t), " ", vector, ", i32 ", i));
}

/// A comparison of floats. Processors compare vectors of halves one by one, and of floats at once.
std::string FunctionEmitter::compared(const char* how, DType t, const std::string& a,
                                      const std::string& b) {
  const bool half = t.bits == 16 && !t.is_bfloat();
  const DType wide = half ? dtypes::float32.with_lanes(t.lanes) : t;
  const std::string x = half ? cast(t, wide, a) : a, y = !half ? b : b == a ? x : cast(t, wide, b);
  return let(cat("fcmp ", how, " ", value_type(wide), " ", x, ", ", y));
}

/// Elements of `a` where the condition holds, of `b` elsewhere; those of halves as words.
std::string FunctionEmitter::chosen(DType condition, const std::string& c, DType t,
                                    const std::string& a, const std::string& b) {
  const bool half = t.is_float() && t.bits == 16 && !t.is_bfloat();
  const std::string ty = value_type(t), word = with_lanes("i16", t.lanes), held = half ? word : ty;
  auto bits = [&](const std::string& v) {
    return half ? let(cat("bitcast ", ty, " ", v, " to ", word)) : v;
  };
  const std::string x = bits(a), y = bits(b);
  const std::string out =
      let(cat("select ", value_type(condition), " ", c, ", ", held, " ", x, ", ", held, " ", y));
  return half ? let(cat("bitcast ", word, " ", out, " to ", ty)) : out;
}

/// Rounds float lanes to bfloat16 precision, to nearest even.
std::string FunctionEmitter::round_bfloat(DType t, const std::string& value) {
  return from_memory(t, to_memory(t, value));
}

std::string FunctionEmitter::to_memory(DType t, const std::string& value) {
  if (t.is_bool()) return let(cat("zext ", value_type(t), " ", value, " to ", memory_type(t)));
  if (!t.is_bfloat()) return value;
  std::string f = value_type(t), i = with_lanes("i32", t.lanes);
  auto c = [&](int v) { return splat({TypeCode::int_, 32, t.lanes}, std::to_string(v)); };
  std::string bits = let(cat("bitcast ", f, " ", value, " to ", i));
  std::string top = let(cat("lshr ", i, " ", bits, ", ", c(16)));
  std::string odd = let(cat("and ", i, " ", top, ", ", c(1)));
  std::string bias = let(cat("add ", i, " ", odd, ", ", c(0x7fff)));
  std::string sum = let(cat("add ", i, " ", bits, ", ", bias));
  std::string rounded = let(cat("lshr ", i, " ", sum, ", ", c(16)));
  std::string quiet = let(cat("or ", i, " ", top, ", ", c(0x40)));
  std::string nan = let(cat("fcmp uno ", f, " ", value, ", ", value));
  std::string chosen = let(cat("select ", with_lanes("i1", t.lanes), " ", nan, ", ", i, " ", quiet,
                               ", ", i, " ", rounded));
  return let(cat("trunc ", i, " ", chosen, " to ", with_lanes("i16", t.lanes)));
}

std::string FunctionEmitter::from_memory(DType t, const std::string& value) {
  if (t.is_bool()) return let(cat("trunc ", memory_type(t), " ", value, " to ", value_type(t)));
  if (!t.is_bfloat()) return value;
  std::string i = with_lanes("i32", t.lanes);
  std::string wide = let(cat("zext ", with_lanes("i16", t.lanes), " ", value, " to ", i));
  std::string bits =
      let(cat("shl ", i, " ", wide, ", ", splat({TypeCode::int_, 32, t.lanes}, "16")));
  return let(cat("bitcast ", i, " ", bits, " to ", value_type(t)));
}

std::string FunctionEmitter::address(const BufferNode* b, const std::string& index) {
  auto found = buffers.find(b);
  WEFT_CHECK(found != buffers.end(), "buffer \"", b->name, "\" is not known to the emitter");
  return let(cat("getelementptr inbounds ", memory_type(b->dtype), ", ptr ", found->second.pointer,
                 ", i64 ", index));
}

std::string FunctionEmitter::expr(const Expr& e) {
  switch (e->kind) {
    case ExprKind::var: {
      auto found = vars.find(as<VarNode>(e));
      WEFT_CHECK(found != vars.end(), "variable \"", as<VarNode>(e)->name,
                 "\" is not known to the emitter");
      return found->second;
    }
    case ExprKind::int_imm:
      if (e->dtype.is_bool()) return as<IntImmNode>(e)->value ? "true" : "false";
      return std::to_string(as<IntImmNode>(e)->value);
    case ExprKind::float_imm: return float_literal(e->dtype, as<FloatImmNode>(e)->value);
    case ExprKind::cast:
      return cast(as<CastNode>(e)->value->dtype, e->dtype, expr(as<CastNode>(e)->value));
    case ExprKind::not_: {
      std::string v = expr(as<NotNode>(e)->a);
      return let(cat("xor ", value_type(e->dtype), " ", v, ", ", splat(e->dtype, "true")));
    }
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      const std::string c = expr(s->condition), a = expr(s->a), b = expr(s->b);
      return chosen(s->condition->dtype, c, e->dtype, a, b);
    }
    case ExprKind::call: return call(as<CallNode>(e));
    case ExprKind::load: return load(as<LoadNode>(e));
    case ExprKind::ramp: {
      const auto* r = as<RampNode>(e);
      module_.explicit_vectors = true;
      std::string base = splat(e->dtype, expr(r->base)), step = splat(e->dtype, expr(r->stride));
      std::string t = value_type(e->dtype), lanes = "<";
      for (int i = 0; i < e->dtype.lanes; ++i)
        lanes += cat(i ? ", " : "", scalar_type(e->dtype), " ", i);
      std::string scaled = let(cat("mul ", t, " ", step, ", ", lanes, ">"));
      return let(cat("add ", t, " ", base, ", ", scaled));
    }
    case ExprKind::broadcast: return splat(e->dtype, expr(as<BroadcastNode>(e)->value));
    case ExprKind::let: {
      const auto* l = as<LetNode>(e);
      vars[l->var.get()] = expr(l->value);
      return expr(l->body);
    }
    case ExprKind::string_imm:
    case ExprKind::reduce:
      throw Error(ErrorKind::emit, "cpu.emit.expression",
                  cat("the cpu target has no value for ", print(e)))
          .note("texts are arguments of calls; reductions of te become blocks first");
    default: return binary(as<BinaryNode>(e));
  }
}

namespace {
/// A divisor for which the processor's own division is right.
bool plain_divisor(const Expr& e) {
  std::int64_t c = 0;
  const Expr& divisor = e->kind == ExprKind::broadcast ? as<BroadcastNode>(e)->value : e;
  return is_const_int(divisor, &c) && c != 0 && c != -1;
}
}  // namespace

/// Quotient or remainder of integers `a` and `b`, of which `b` is neither 0 nor -1 where that
/// matters.
std::string FunctionEmitter::divided(const BinaryNode* e, const std::string& a,
                                     const std::string& b) {
  const DType t = e->a->dtype;
  const std::string ty = value_type(t);
  const bool is_unsigned = t.is_uint() || t.is_bool();
  const bool quotient = e->kind == ExprKind::div || e->kind == ExprKind::floordiv;
  auto op = [&](const char* name) { return let(cat(name, " ", ty, " ", a, ", ", b)); };
  if (e->kind == ExprKind::div) return op(is_unsigned ? "udiv" : "sdiv");
  if (e->kind == ExprKind::mod) return op(is_unsigned ? "urem" : "srem");
  if (is_unsigned) return op(quotient ? "udiv" : "urem");
  std::int64_t c;
  const Expr& divisor = e->b->kind == ExprKind::broadcast ? as<BroadcastNode>(e->b)->value : e->b;
  if (is_const_int(divisor, &c) && c > 0 && (c & (c - 1)) == 0) {
    if (!quotient) return let(cat("and ", ty, " ", a, ", ", splat(t, std::to_string(c - 1))));
    return let(cat("ashr ", ty, " ", a, ", ",
                   splat(t, std::to_string(std::countr_zero(static_cast<std::uint64_t>(c))))));
  }
  std::string r = op("srem"), zero = "zeroinitializer", i1 = with_lanes("i1", t.lanes);
  if (t.lanes == 1) zero = "0";
  std::string nonzero = let(cat("icmp ne ", ty, " ", r, ", ", zero));
  std::string mixed = let(cat("xor ", ty, " ", r, ", ", b));
  std::string negative = let(cat("icmp slt ", ty, " ", mixed, ", ", zero));
  std::string adjust = let(cat("and ", i1, " ", nonzero, ", ", negative));
  if (quotient) {
    std::string q = op("sdiv");
    std::string one = let(cat("zext ", i1, " ", adjust, " to ", ty));
    return let(cat("sub ", ty, " ", q, ", ", one));
  }
  std::string add = let(cat("select ", i1, " ", adjust, ", ", ty, " ", b, ", ", ty, " ", zero));
  return let(cat("add ", ty, " ", r, ", ", add));
}

namespace {
/// A float that is known, and no NaN.
bool is_number(const Expr& e) {
  const auto* imm =
      as<FloatImmNode>(e->kind == ExprKind::broadcast ? as<BroadcastNode>(e)->value : e);
  return imm && !std::isnan(imm->value);
}
}  // namespace

std::string FunctionEmitter::binary(const BinaryNode* e) {
  DType t = e->a->dtype;
  std::string a = expr(e->a), b = expr(e->b), ty = value_type(t);
  bool fp = t.is_float(), is_unsigned = t.is_uint() || t.is_bool();
  auto op = [&](const char* name) { return let(cat(name, " ", ty, " ", a, ", ", b)); };
  auto rounded = [&](std::string v) { return t.is_bfloat() ? round_bfloat(t, v) : v; };
  auto real = [&](const char* name) {
    return rounded(op(module_.contract ? cat(name, " contract").c_str() : name));
  };
  const bool divides = e->kind == ExprKind::div || e->kind == ExprKind::floordiv;
  if (!fp && (divides || e->kind == ExprKind::mod || e->kind == ExprKind::floormod) &&
      !plain_divisor(e->b)) {
    // The processor traps on 0 and on the quotient that overflows; the language has values there.
    const std::string i1 = with_lanes("i1", t.lanes), asked = b;
    auto is = [&](const char* value) {
      return let(cat("icmp eq ", ty, " ", asked, ", ", splat(t, value)));
    };
    auto choose = [&](const std::string& c, const std::string& x, const std::string& y) {
      return let(cat("select ", i1, " ", c, ", ", ty, " ", x, ", ", ty, " ", y));
    };
    const std::string zero = is("0"), minus = is_unsigned ? "" : is("-1");
    const std::string bad = is_unsigned ? zero : let(cat("or ", i1, " ", zero, ", ", minus));
    b = choose(bad, splat(t, "1"), asked);
    std::string value = divided(e, a, b);
    if (!divides) return value;  // 0, as by 1
    if (!is_unsigned) {
      const std::string negated = let(cat("sub ", ty, " ", splat(t, "0"), ", ", a));
      value = choose(minus, negated, value);
    }
    return choose(zero, splat(t, "0"), value);
  }
  switch (e->kind) {
    case ExprKind::add: return fp ? real("fadd") : op("add");
    case ExprKind::sub: return fp ? real("fsub") : op("sub");
    case ExprKind::mul: return fp ? real("fmul") : op("mul");
    case ExprKind::div: return fp ? rounded(op("fdiv")) : divided(e, a, b);
    case ExprKind::mod: return divided(e, a, b);
    case ExprKind::floordiv:
    case ExprKind::floormod: return divided(e, a, b);
    case ExprKind::min:
    case ExprKind::max: {
      const bool is_min = e->kind == ExprKind::min;
      const DType truth = dtypes::boolean.with_lanes(t.lanes);
      // Beside a number that is no NaN, what is not ordered is the other one.
      if (fp && (is_number(e->a) || is_number(e->b))) {
        const std::string &limit = is_number(e->b) ? b : a, &x = is_number(e->b) ? a : b;
        return chosen(truth, compared(is_min ? "ole" : "oge", t, limit, x), t, limit, x);
      }
      const std::string c = fp ? compared(is_min ? "olt" : "ogt", t, a, b)
                               : op(is_min ? (is_unsigned ? "icmp ult" : "icmp slt")
                                           : (is_unsigned ? "icmp ugt" : "icmp sgt"));
      const std::string either = chosen(truth, c, t, a, b);
      // A NaN on either side is the result: b on unordered, then a if a is NaN.
      return fp ? chosen(truth, compared("uno", t, a, a), t, a, either) : either;
    }
    case ExprKind::eq: return fp ? compared("oeq", t, a, b) : op("icmp eq");
    case ExprKind::ne: return fp ? compared("une", t, a, b) : op("icmp ne");
    case ExprKind::lt:
      return fp ? compared("olt", t, a, b) : op(is_unsigned ? "icmp ult" : "icmp slt");
    case ExprKind::le:
      return fp ? compared("ole", t, a, b) : op(is_unsigned ? "icmp ule" : "icmp sle");
    case ExprKind::gt:
      return fp ? compared("ogt", t, a, b) : op(is_unsigned ? "icmp ugt" : "icmp sgt");
    case ExprKind::ge:
      return fp ? compared("oge", t, a, b) : op(is_unsigned ? "icmp uge" : "icmp sge");
    case ExprKind::and_: return op("and");
    case ExprKind::or_: return op("or");
    default: WEFT_CHECK(false, "no such binary kind");
  }
  return {};
}

/// float64 as float32, inexact values rounded to the neighbour whose last bit is 1: rounding that
/// to 16 bits gives what one rounding from float64 would (and needs no function of a library).
std::string FunctionEmitter::rounded_to_odd(DType from, const std::string& value) {
  const DType single = dtypes::float32.with_lanes(from.lanes);
  const DType word = dtypes::int32.with_lanes(from.lanes);
  const std::string d = value_type(from), f = value_type(single), i = value_type(word);
  const std::string b = with_lanes("i1", from.lanes);
  const std::string zero = from.lanes > 1 ? "zeroinitializer" : float_literal(from, 0);
  const std::string near = let(cat("fptrunc ", d, " ", value, " to ", f));
  const std::string back = let(cat("fpext ", f, " ", near, " to ", d));
  const std::string inexact = let(cat("fcmp one ", d, " ", back, ", ", value));
  const std::string above = let(cat("fcmp ogt ", d, " ", back, ", ", value));
  const std::string negative = let(cat("fcmp olt ", d, " ", value, ", ", zero));
  const std::string away = let(cat("xor ", b, " ", above, ", ", negative));
  const std::string bits = let(cat("bitcast ", f, " ", near, " to ", i));
  const std::string last = let(cat("and ", i, " ", bits, ", ", splat(word, "1")));
  const std::string even = let(cat("icmp eq ", i, " ", last, ", ", splat(word, "0")));
  const std::string moved = let(cat("and ", b, " ", inexact, ", ", even));
  const std::string step = let(cat("select ", b, " ", away, ", ", i, " ", splat(word, "-1"), ", ",
                                   i, " ", splat(word, "1")));
  const std::string odd = let(cat("add ", i, " ", bits, ", ", step));
  const std::string chosen =
      let(cat("select ", b, " ", moved, ", ", i, " ", odd, ", ", i, " ", bits));
  return let(cat("bitcast ", i, " ", chosen, " to ", f));
}

std::string FunctionEmitter::cast(DType from, DType to, std::string value) {
  if (from == to) return value;
  std::string f = value_type(from), t = value_type(to);
  auto zero = [&](DType type) {
    return type.lanes > 1    ? std::string("zeroinitializer")
           : type.is_float() ? float_literal(type, 0)
                             : std::string("0");
  };
  auto conv = [&](const char* op) { return let(cat(op, " ", f, " ", value, " to ", t)); };
  if (to.is_bool())
    return from.is_float() ? compared("une", from, value, zero(from))
                           : let(cat("icmp ne ", f, " ", value, ", ", zero(from)));
  if (from.is_bool()) return to.is_float() ? conv("uitofp") : conv("zext");
  if (from.is_integral() && to.is_integral()) {
    if (from.bits == to.bits) return value;
    return conv(from.bits > to.bits ? "trunc" : from.is_uint() ? "zext" : "sext");
  }
  if (from.is_integral()) {
    std::string v = conv(from.is_uint() ? "uitofp" : "sitofp");
    return to.is_bfloat() ? round_bfloat(to, v) : v;
  }
  if (to.is_integral()) {
    if (const DType carrier = ir::carrier_of_float(to); carrier != to)
      return cast(carrier, to, cast(from, carrier, value));
    return conv(to.is_uint() ? "fptoui" : "fptosi");
  }
  // Between floats; bfloat16 values are floats already.
  if (from.bits == 64 && to.bits == 16) {
    value = rounded_to_odd(from, value);
    from = dtypes::float32.with_lanes(from.lanes);
    f = value_type(from);
  }
  int from_bits = from.is_bfloat() ? 32 : from.bits, to_bits = to.is_bfloat() ? 32 : to.bits;
  std::string v = from_bits == to_bits ? value : conv(from_bits > to_bits ? "fptrunc" : "fpext");
  return to.is_bfloat() ? round_bfloat(to, v) : v;
}

std::string FunctionEmitter::load(const LoadNode* e) {
  WEFT_CHECK(e->indices.size() == 1, "buffer \"", e->buffer->name, "\" is not flat");
  DType element = e->buffer->dtype, t = e->dtype;
  const Expr& index = e->indices[0];
  std::string align = std::to_string(element.bytes());
  if (t.lanes == 1) {
    std::string p = address(e->buffer.get(), expr(index));
    return from_memory(t, let(cat("load ", memory_type(t), ", ptr ", p, ", align ", align)));
  }
  module_.explicit_vectors = true;
  if (const auto* r = as<RampNode>(index); r && is_const_int_value(r->stride, 1)) {
    std::string p = address(e->buffer.get(), expr(r->base));
    return from_memory(t, let(cat("load ", memory_type(t), ", ptr ", p, ", align ", align)));
  }
  const auto* r = as<RampNode>(index);
  std::int64_t step = 0;
  if (r && is_const_int(r->stride, &step) && step > 1 && step <= kMostStep && t.lanes >= 2 * step)
    return from_memory(t, strided(e, r->base, static_cast<int>(step)));
  std::string at = expr(index), out = "poison";
  if (module_.vector_bytes >= 64 && index->dtype.bits == 64 && !t.is_bool() &&
      (element.bits == 32 || element.bits == 64) && t.lanes * element.bytes() >= 32) {
    const std::string places =
        let(cat("getelementptr inbounds ", memory_type(element), ", ptr ",
                buffers.at(e->buffer.get()).pointer, ", ", value_type(index->dtype), " ", at));
    const std::string name = cat("llvm.masked.gather.", suffix(t), ".v", t.lanes, "p0"),
                      m = memory_type(t), all = with_lanes("i1", t.lanes);
    module_.declarations.insert(cat("declare ", m, " @", name, "(", with_lanes("ptr", t.lanes),
                                    ", i32, ", all, ", ", m, ")"));
    return from_memory(
        t, let(cat("call ", m, " @", name, "(", with_lanes("ptr", t.lanes), " ", places, ", i32 ",
                   align, ", ", all, " ", splat(dtypes::boolean.with_lanes(t.lanes), "true"), ", ",
                   m, " poison)")));
  }
  for (int i = 0; i < t.lanes; ++i) {
    std::string p = address(e->buffer.get(), lane(index->dtype, at, i));
    std::string v = let(cat("load ", memory_type(element), ", ptr ", p, ", align ", align));
    out = let(cat("insertelement ", memory_type(t), " ", out, ", ", memory_type(element), " ", v,
                  ", i32 ", i));
  }
  return from_memory(t, out);
}

/// Lanes a few elements apart: vectors of neighbours, of which each gives its share. The last one
/// ends with the last lane, so nothing beyond it is read.
std::string FunctionEmitter::strided(const LoadNode* e, const Expr& base, int step) {
  const DType t = e->dtype, element = e->buffer->dtype;
  const std::string type = memory_type(t), first = expr(base), index_type = value_type(base->dtype);
  const int lanes = t.lanes, share = (lanes + step - 1) / step;
  std::string out = "poison";
  for (int from = 0; from < lanes; from += share) {
    const bool last = from + share >= lanes;
    const int start = last ? step * (lanes - 1) - (lanes - 1) : step * from;
    const std::string p =
        address(e->buffer.get(), let(cat("add ", index_type, " ", first, ", ", start)));
    const std::string v = let(cat("load ", type, ", ptr ", p, ", align ", element.bytes()));
    std::string mask;
    for (int i = 0; i < lanes; ++i) {
      const bool here = i >= from && i < from + share;
      mask += cat(i ? ", i32 " : "i32 ", here ? lanes + step * i - start : i);
    }
    out = let(cat("shufflevector ", type, " ", out, ", ", type, " ", v, ", <", lanes, " x i32> <",
                  mask, ">"));
  }
  return out;
}

std::string FunctionEmitter::lanewise(DType t, const std::string& function,
                                      const std::vector<std::string>& args,
                                      const std::vector<DType>& types) {
  std::string scalar = value_type(t.element()), parameters;
  for (std::size_t i = 0; i < types.size(); ++i)
    parameters += cat(i ? ", " : "", value_type(types[i].element()));
  module_.declarations.insert(cat("declare ", scalar, " @", function, "(", parameters, ")"));
  std::string out = "poison";
  for (int k = 0; k < t.lanes; ++k) {
    std::string list;
    for (std::size_t i = 0; i < args.size(); ++i) {
      std::string v = t.lanes == 1 ? args[i] : lane(types[i], args[i], k);
      list += cat(i ? ", " : "", value_type(types[i].element()), " ", v);
    }
    std::string v = let(cat("call ", scalar, " @", function, "(", list, ")"));
    if (t.lanes == 1) return v;
    out = let(cat("insertelement ", value_type(t), " ", out, ", ", scalar, " ", v, ", i32 ", k));
  }
  return out;
}

std::string FunctionEmitter::library_vectors(const std::string& op, DType t,
                                             const std::vector<std::string>& args) {
  // The vector ABI's letters of the three widths.
  static constexpr std::pair<int, const char*> kWidths[] = {{64, "e"}, {32, "d"}, {16, "b"}};
  if (t.lanes == 1 || !t.is_float() || (t.bits != 32 && t.bits != 64)) return {};
  int lanes = 0;
  std::string function;
  for (const auto& [bytes, letter] : kWidths) {
    const int n = bytes * 8 / t.bits;
    if (bytes > module_.vector_bytes || t.lanes % n) continue;
    function = cat("_ZGV", letter, "N", n, std::string(args.size(), 'v'), "_", op,
                   t.bits == 32 ? "f" : "");
    if (vector_function(function)) {
      lanes = n;
      break;
    }
  }
  if (lanes == 0) return {};
  const DType part = t.with_lanes(lanes);
  const std::string ty = value_type(part), whole = value_type(t);
  std::string parameters;
  for (std::size_t i = 0; i < args.size(); ++i) parameters += cat(i ? ", " : "", ty);
  module_.declarations.insert(cat("declare ", ty, " @", function, "(", parameters, ")"));
  std::string out = "poison";
  for (int at = 0; at < t.lanes; at += lanes) {
    std::string list;
    for (std::size_t i = 0; i < args.size(); ++i) {
      std::string v = args[i];
      if (lanes < t.lanes) {
        const std::string name = cat("llvm.vector.extract.", suffix(part), ".", suffix(t));
        module_.declarations.insert(cat("declare ", ty, " @", name, "(", whole, ", i64)"));
        v = let(cat("call ", ty, " @", name, "(", whole, " ", v, ", i64 ", at, ")"));
      }
      list += cat(i ? ", " : "", ty, " ", v);
    }
    std::string v = let(cat("call ", ty, " @", function, "(", list, ")"));
    if (lanes == t.lanes) return v;
    const std::string name = cat("llvm.vector.insert.", suffix(t), ".", suffix(part));
    module_.declarations.insert(cat("declare ", whole, " @", name, "(", whole, ", ", ty, ", i64)"));
    out = let(
        cat("call ", whole, " @", name, "(", whole, " ", out, ", ", ty, " ", v, ", i64 ", at, ")"));
  }
  return out;
}

std::string FunctionEmitter::math(const std::string& op, DType t,
                                  const std::vector<std::string>& args) {
  static const std::map<std::string, std::string> native = {
      {"sqrt", "sqrt"},  {"floor", "floor"},       {"ceil", "ceil"}, {"trunc", "trunc"},
      {"round", "rint"}, {"copysign", "copysign"}, {"fma", "fma"}};
  if (op == "exp2_flush") return math("exp2", t, args);
  if (t.bits == 16) {  // compute in float, round once
    DType wide = dtypes::float32.with_lanes(t.lanes);
    std::vector<std::string> widened;
    for (const std::string& a : args) widened.push_back(cast(t, wide, a));
    return cast(wide, t, math(op, wide, widened));
  }
  std::string ty = value_type(t);
  auto intrinsic = [&](const std::string& name) {
    std::string full = cat("llvm.", name, ".", suffix(t)), parameters, list;
    for (std::size_t i = 0; i < args.size(); ++i) {
      parameters += cat(i ? ", " : "", ty);
      list += cat(i ? ", " : "", ty, " ", args[i]);
    }
    module_.declarations.insert(cat("declare ", ty, " @", full, "(", parameters, ")"));
    return let(cat("call ", ty, " @", full, "(", list, ")"));
  };
  auto found = native.find(op);
  if (found != native.end()) return intrinsic(found->second);
  std::string one = splat(t, float_literal(t.element(), 1.0));
  if (op == "rsqrt") {
    std::string root = math("sqrt", t, args);
    return let(cat("fdiv ", ty, " ", one, ", ", root));
  }
  if (op == "sigmoid") {
    std::string negated = let(cat("fneg ", ty, " ", args[0]));
    std::string power = math("exp", t, {negated});
    std::string sum = let(cat("fadd ", ty, " ", one, ", ", power));
    return let(cat("fdiv ", ty, " ", one, ", ", sum));
  }
  if (has_math_helper(op, t)) {
    std::string name = math_helper(module_, op, t);
    return let(cat("call ", ty, " @", name, "(", ty, " ", args[0], ")"));
  }
  if (std::string v = library_vectors(op, t, args); !v.empty()) return v;
  if (const auto wider = module_.vector_lanes.find({op, t.bits});
      t.lanes == 1 && wider != module_.vector_lanes.end()) {
    const DType vector = t.with_lanes(wider->second);
    std::vector<std::string> splats;
    for (const std::string& a : args) splats.push_back(splat(vector, a));
    if (std::string v = library_vectors(op, vector, splats); !v.empty()) return lane(vector, v, 0);
  }
  std::vector<DType> types(args.size(), t);
  return lanewise(t, t.bits == 64 ? op : op + "f", args, types);
}

std::string FunctionEmitter::call(const CallNode* e) {
  const std::string& op = e->op;
  DType t = e->dtype;
  if (op == "if_then_else") {
    std::string yes = label(), no = label(), done = label();
    line(cat("br i1 ", expr(e->args[0]), ", label %", yes, ", label %", no));
    begin_block(yes);
    std::string a = expr(e->args[1]), from_a = block_;
    line(cat("br label %", done));
    begin_block(no);
    std::string b = expr(e->args[2]), from_b = block_;
    line(cat("br label %", done));
    begin_block(done);
    return let(
        cat("phi ", value_type(t), " [ ", a, ", %", from_a, " ], [ ", b, ", %", from_b, " ]"));
  }
  if (op == "likely" || op == "nontemporal") return expr(e->args[0]);
  if (op == "dot") return dot(e);
  if (op == "vector_interleave") return interleave(e);
  if (op == "address_of") {
    const auto* l = as<LoadNode>(e->args[0]);
    const auto* r = as<RampNode>(l->indices[0]);
    return address(l->buffer.get(), expr(r ? r->base : l->indices[0]));
  }
  if (op == "prefetch") {
    std::int64_t rw = 0, locality = 3;
    if (e->args.size() > 1) is_const_int(e->args[1], &rw);
    if (e->args.size() > 2) is_const_int(e->args[2], &locality);
    module_.declarations.insert("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)");
    line(cat("call void @llvm.prefetch.p0(ptr ", expr(e->args[0]), ", i32 ", rw, ", i32 ", locality,
             ", i32 1)"));
    return "0";
  }
  if (op == "instruction") {  // a tile of transpose_rows
    const auto* callee = e->args.size() == 5 ? as<StringImmNode>(e->args[0]) : nullptr;
    const std::string function = callee ? callee->value : print(e->args.at(0));
    std::string definition = transpose_helper(function);
    if (module_.helpers.insert(function).second) module_.helper_text += definition;
    module_.explicit_vectors = true;
    const std::string to = expr(e->args[1]), to_step = expr(e->args[2]), from = expr(e->args[3]),
                      from_step = expr(e->args[4]);
    line(cat("call void @", function, "(ptr ", to, ", i64 ", to_step, ", ptr ", from, ", i64 ",
             from_step, ")"));
    return "0";
  }
  if (op == "masked_load") {
    const auto* l = as<LoadNode>(e->args[0]);
    const auto* r = as<RampNode>(l->indices[0]);
    WEFT_CHECK(r && is_const_int_value(r->stride, 1), "a masked load needs consecutive lanes");
    std::string m = memory_type(t), p = address(l->buffer.get(), expr(r->base)),
                mask = expr(e->args[1]);
    std::string name = cat("llvm.masked.load.",
                           suffix(t.is_bfloat() ? DType{TypeCode::int_, 16, t.lanes} : t), ".p0");
    module_.declarations.insert(
        cat("declare ", m, " @", name, "(ptr, i32, <", t.lanes, " x i1>, ", m, ")"));
    return from_memory(
        t, let(cat("call ", m, " @", name, "(ptr ", p, ", i32 ", l->buffer->dtype.bytes(), ", <",
                   t.lanes, " x i1> ", mask, ", ", m, " zeroinitializer)")));
  }
  std::vector<std::string> args;
  for (const Expr& a : e->args) args.push_back(expr(a));
  DType at = e->args.empty() ? t : e->args[0]->dtype;
  std::string ty = value_type(at);
  if (op == "reinterpret") {
    if (at.is_bfloat())
      return let(
          cat("bitcast ", memory_type(at), " ", to_memory(at, args[0]), " to ", value_type(t)));
    if (t.is_bfloat())
      return from_memory(t, let(cat("bitcast ", ty, " ", args[0], " to ", memory_type(t))));
    return value_type(t) == ty ? args[0]
                               : let(cat("bitcast ", ty, " ", args[0], " to ", value_type(t)));
  }
  if (op == "vector_extract") {
    std::int64_t i;
    if (!is_const_int(e->args[1], &i))
      return let(cat("extractelement ", ty, " ", args[0], ", ", value_type(e->args[1]->dtype), " ",
                     args[1]));
    return lane(at, args[0], static_cast<int>(i));
  }
  if (op == "vector_concat") {
    std::string out = "poison";
    int k = 0;
    for (std::size_t i = 0; i < args.size(); ++i) {
      DType part = e->args[i]->dtype;
      for (int j = 0; j < part.lanes; ++j) {
        std::string v = part.lanes == 1 ? args[i] : lane(part, args[i], j);
        out = let(cat("insertelement ", value_type(t), " ", out, ", ", value_type(t.element()), " ",
                      v, ", i32 ", k++));
      }
    }
    return out;
  }
  if (op.starts_with("vector_reduce_")) {
    std::string how = op.substr(14);
    bool fp = at.is_float();
    std::string name = fp             ? (how == "add"   ? "fadd"
                                         : how == "max" ? "fmax"
                                                        : "fmin")
                       : how == "add" ? "add"
                                      : cat(at.is_uint() ? "u" : "s", how);
    std::string full = cat("llvm.vector.reduce.", name, ".", suffix(at)),
                s = value_type(at.element());
    if (fp && how == "add") {
      module_.declarations.insert(cat("declare ", s, " @", full, "(", s, ", ", ty, ")"));
      return let(cat("call reassoc ", s, " @", full, "(", s, " ", float_literal(at.element(), -0.0),
                     ", ", ty, " ", args[0], ")"));
    }
    module_.declarations.insert(cat("declare ", s, " @", full, "(", ty, ")"));
    return let(cat("call ", s, " @", full, "(", ty, " ", args[0], ")"));
  }
  auto two = [&](const char* name) { return let(cat(name, " ", ty, " ", args[0], ", ", args[1])); };
  if (op == "bitwise_and") return two("and");
  if (op == "bitwise_or") return two("or");
  if (op == "bitwise_xor") return two("xor");
  if (op == "bitwise_not")
    return let(cat("xor ", ty, " ", args[0], ", ", splat(at, at.is_bool() ? "true" : "-1")));
  if (op == "shift_left" || op == "shift_right") {
    // Shifts by the width or more are defined here and poison in LLVM.
    std::int64_t k;
    const Expr& amount =
        e->args[1]->kind == ExprKind::broadcast ? as<BroadcastNode>(e->args[1])->value : e->args[1];
    const char* name = op == "shift_left" ? "shl" : at.is_uint() ? "lshr" : "ashr";
    if (is_const_int(amount, &k) && k >= 0 && k < at.bits) return two(name);
    std::string limit = splat(at, std::to_string(at.bits - 1)), i1 = with_lanes("i1", at.lanes);
    std::string beyond = let(cat("icmp ugt ", ty, " ", args[1], ", ", limit));
    std::string safe =
        let(cat("select ", i1, " ", beyond, ", ", ty, " ", limit, ", ", ty, " ", args[1]));
    std::string shifted = let(cat(name, " ", ty, " ", args[0], ", ", safe));
    if (std::string_view(name) == "ashr") return shifted;
    return let(cat("select ", i1, " ", beyond, ", ", ty, " ",
                   at.lanes == 1 ? "0" : "zeroinitializer", ", ", ty, " ", shifted));
  }
  if (op == "popcount" || op == "clz") {
    std::string name = cat("llvm.", op == "clz" ? "ctlz" : "ctpop", ".", suffix(at));
    module_.declarations.insert(
        cat("declare ", ty, " @", name, "(", ty, op == "clz" ? ", i1" : "", ")"));
    return let(
        cat("call ", ty, " @", name, "(", ty, " ", args[0], op == "clz" ? ", i1 false" : "", ")"));
  }
  if (op == "mulhi") {
    std::string wide = with_lanes(cat("i", at.bits * 2), at.lanes);
    const char* extend = at.is_uint() ? "zext" : "sext";
    std::string a = let(cat(extend, " ", ty, " ", args[0], " to ", wide)),
                b = let(cat(extend, " ", ty, " ", args[1], " to ", wide));
    std::string product = let(cat("mul ", wide, " ", a, ", ", b));
    std::string by = std::to_string(static_cast<int>(at.bits));
    if (at.lanes > 1)
      throw Error(ErrorKind::emit, "cpu.emit.call", cat("\"", op, "\" has no vector form"));
    std::string high = let(cat("lshr ", wide, " ", product, ", ", by));
    return let(cat("trunc ", wide, " ", high, " to ", ty));
  }
  if (op == "abs") {
    if (at.is_uint() || at.is_bool()) return args[0];
    if (at.is_float()) {
      std::string name = cat("llvm.fabs.", suffix(at));
      module_.declarations.insert(cat("declare ", ty, " @", name, "(", ty, ")"));
      return let(cat("call ", ty, " @", name, "(", ty, " ", args[0], ")"));
    }
    std::string name = cat("llvm.abs.", suffix(at));
    module_.declarations.insert(cat("declare ", ty, " @", name, "(", ty, ", i1)"));
    return let(cat("call ", ty, " @", name, "(", ty, " ", args[0], ", i1 false)"));
  }
  if (op == "isnan") return compared("uno", e->args[0]->dtype, args[0], args[0]);
  if (op == "isinf" || op == "isfinite") {
    std::string name = cat("llvm.fabs.", suffix(at));
    module_.declarations.insert(cat("declare ", ty, " @", name, "(", ty, ")"));
    std::string magnitude = let(cat("call ", ty, " @", name, "(", ty, " ", args[0], ")"));
    std::string infinity = splat(at, float_literal(at.element(), HUGE_VAL));
    return compared(op == "isinf" ? "oeq" : "olt", at, magnitude, infinity);
  }
  if (op == "signbit") {
    DType bits{TypeCode::int_, static_cast<std::uint8_t>(at.is_bfloat() ? 32 : at.bits), at.lanes};
    std::string raw = let(cat("bitcast ", ty, " ", args[0], " to ", value_type(bits)));
    return let(cat("icmp slt ", value_type(bits), " ", raw, ", ",
                   at.lanes == 1 ? "0" : "zeroinitializer"));
  }
  if (t.is_float() && (op == "fma" || args.size() <= 2) && op != "instruction" &&
      op != "call_extern")
    return math(op, t, args);
  throw Error(ErrorKind::emit, "cpu.emit.call", cat("the cpu target has no \"", op, "\""));
}

}  // namespace weft::cpu
