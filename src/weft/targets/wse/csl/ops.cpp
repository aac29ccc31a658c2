// SPDX-License-Identifier: Apache-2.0
// Arithmetic, comparison and conversion: folding, peer types, coercion, instructions.
#include <bit>
#include <cmath>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {
namespace {

bool is_comparison(Tok op) {
  return op == Tok::eq || op == Tok::ne || op == Tok::lt || op == Tok::le || op == Tok::gt ||
         op == Tok::ge;
}
bool is_shift(Tok op) { return op == Tok::shl || op == Tok::shr; }
bool is_bitwise(Tok op) { return op == Tok::amp || op == Tok::pipe || op == Tok::caret; }

Op opcode(Tok op) {
  switch (op) {
    case Tok::plus: return Op::add;
    case Tok::minus: return Op::sub;
    case Tok::star: return Op::mul;
    case Tok::slash: return Op::div;
    case Tok::percent: return Op::rem;
    case Tok::amp: return Op::band;
    case Tok::pipe: return Op::bor;
    case Tok::caret: return Op::bxor;
    case Tok::shl: return Op::shl;
    case Tok::shr: return Op::shr;
    case Tok::eq: return Op::eq;
    case Tok::ne: return Op::ne;
    case Tok::lt: return Op::lt;
    case Tok::le: return Op::le;
    case Tok::gt: return Op::gt;
    default: return Op::ge;
  }
}

bool add_overflow(Int128 a, Int128 b, Int128* out) { return __builtin_add_overflow(a, b, out); }
bool sub_overflow(Int128 a, Int128 b, Int128* out) { return __builtin_sub_overflow(a, b, out); }
bool mul_overflow(Int128 a, Int128 b, Int128* out) { return __builtin_mul_overflow(a, b, out); }

template <typename V>
bool compare(Tok op, const V& a, const V& b) {
  switch (op) {
    case Tok::eq: return a == b;
    case Tok::ne: return a != b;
    case Tok::lt: return a < b;
    case Tok::le: return a <= b;
    case Tok::gt: return a > b;
    default: return a >= b;
  }
}

}  // namespace

/// `a op b` at compile time; the operands have one type (shifts excepted).
Value Analyzer::fold(Pos pos, Tok op, const Value& a, const Value& b) {
  TypeRef t = a.type;
  if (is_comparison(op)) {
    if (t->is_any_float()) return make_bool(compare(op, a.f, b.f));
    if (t->kind == T::type) return make_bool((a.p == b.p) == (op == Tok::eq));
    if (t->kind == T::function || t->is_aggregate() || t->kind == T::pointer ||
        t->kind == T::void_) {
      return make_bool((key_of(a) == key_of(b)) == (op == Tok::eq));
    }
    return make_bool(compare(op, a.i, b.i));
  }
  if (t->is_any_float()) {
    double r = 0;
    switch (op) {
      case Tok::plus: r = a.f + b.f; break;
      case Tok::minus: r = a.f - b.f; break;
      case Tok::star: r = a.f * b.f; break;
      case Tok::slash: r = a.f / b.f; break;
      default: r = std::fmod(a.f, b.f); break;
    }
    return make_float(t, r);
  }
  Int128 r = 0;
  bool overflow = false;
  switch (op) {
    case Tok::plus: overflow = add_overflow(a.i, b.i, &r); break;
    case Tok::minus: overflow = sub_overflow(a.i, b.i, &r); break;
    case Tok::star: overflow = mul_overflow(a.i, b.i, &r); break;
    case Tok::slash:
    case Tok::percent:
      if (b.i == 0) fail(pos, "wse.csl.comptime.division", "division by zero");
      if (b.i == -1) {
        overflow = op == Tok::slash && sub_overflow(0, a.i, &r);
      } else {
        r = op == Tok::slash ? a.i / b.i : a.i % b.i;
      }
      break;
    case Tok::amp: r = a.i & b.i; break;
    case Tok::pipe: r = a.i | b.i; break;
    case Tok::caret: r = a.i ^ b.i; break;
    case Tok::shl: {
      if (b.i < 0) fail(pos, "wse.csl.comptime.shift", "a shift count cannot be negative");
      int width = t->kind == T::comptime_int ? 127 : t->bits();
      if (b.i >= width) {
        if (t->kind == T::comptime_int && a.i != 0) overflow = true;
        r = 0;
      } else {
        r = static_cast<Int128>(static_cast<UInt128>(a.i) << static_cast<int>(b.i));
        if (t->kind == T::comptime_int && (r >> static_cast<int>(b.i)) != a.i) overflow = true;
      }
      break;
    }
    case Tok::shr: {
      if (b.i < 0) fail(pos, "wse.csl.comptime.shift", "a shift count cannot be negative");
      int width = t->kind == T::comptime_int ? 127 : t->bits();
      if (b.i >= width) {
        // A logical shift by the width gives 0, an arithmetic one the sign.
        r = t->kind == T::comptime_int || t->is_signed() ? (a.i < 0 ? -1 : 0) : 0;
      } else {
        r = a.i >> static_cast<int>(b.i);
      }
      break;
    }
    default: fail(pos, "wse.csl.type.operator", cat("operator not defined for ", text(t)));
  }
  if (overflow && t->kind == T::comptime_int)
    fail(pos, "wse.csl.comptime.overflow",
         "the result exceeds the 128 bits of compile-time integers");
  return make_int(t, wrap_to(t, r));
}

namespace {

/// Whether `to` represents every value of `from`, another fixed-width type.
bool widens(TypeRef from, TypeRef to) {
  if (from->is_int() && to->is_int())
    return to->bits() > from->bits() && (to->is_signed() || !from->is_signed());
  return from->is_float() && to->is_float() && to->size > from->size;
}

/// *T to *[1]T.
bool one_element(TypeRef target, TypeRef from) {
  return !from->many && !target->many && target->elem->kind == T::array &&
         target->elem->count() == 1 && target->elem->elem == from->elem;
}

}  // namespace

TypeRef Analyzer::peer_type(Pos pos, const Operand& a, const Operand& b) {
  TypeRef x = a.type, y = b.type;
  if (x == y) return x;
  if (x->kind == T::noreturn) return y;
  if (y->kind == T::noreturn) return x;
  auto number = [](TypeRef t) { return t->is_number(); };
  if (number(x) && number(y)) {
    if (x->kind == T::comptime_int) return y;
    if (y->kind == T::comptime_int) return x;
    if (x->kind == T::comptime_float && y->is_float()) return y;
    if (y->kind == T::comptime_float && x->is_float()) return x;
    if (x->is_int() && y->is_int()) {
      // Values known at compile time may change their width when they fit.
      if (b.is_known() && fits(x, b.value.i)) return x;
      if (a.is_known() && fits(y, a.value.i)) return y;
    }
    if (widens(x, y)) return y;
    if (widens(y, x)) return x;
  }
  if (x->kind == T::pointer && y->kind == T::pointer) {
    Value probe;
    if (x->elem == y->elem && x->many == y->many) return x->is_const ? x : y;
    if (x->elem->kind == T::array && y->many && x->elem->elem == y->elem) return y;
    if (y->elem->kind == T::array && x->many && y->elem->elem == x->elem) return x;
  }
  if (a.is_known()) {
    Value v = a.value;
    if (coerce_known(v, y)) return y;
  }
  if (b.is_known()) {
    Value v = b.value;
    if (coerce_known(v, x)) return x;
  }
  fail(pos, "wse.csl.type.mismatch",
       cat("types ", text(x), " and ", text(y), " do not go together"),
       number(x) && number(y) ? "a run-time number becomes one of another type by itself where "
                                "that has all its values; "
                                "otherwise use @as(T, value)"
       : number(x) != number(y) && (x->kind == T::bool_ || y->kind == T::bool_)
           ? cat("a bool is no number; @as(", text(x->kind == T::bool_ ? y : x),
                 ", value) makes 0 or 1 of it")
           : std::string());
}

/// Quotient or remainder by a constant as shifts and a product, as compilers have them; no type
/// where the instruction is needed: 64 bits, u32 by no power of two, divisors below 2.
Operand Analyzer::divide_by_constant(Pos pos, Tok op, const Operand& a, Int128 divisor) {
  const int bits = a.type->is_any_int() && a.type->is_scalar() ? a.type->bits() : 64;
  const bool is_signed = a.type->is_signed();
  if (bits > 32 || divisor < 2 || divisor >= (Int128{1} << (bits - is_signed))) return {};
  const auto c = static_cast<std::uint64_t>(divisor);
  const bool power = std::has_single_bit(c);
  if (!power && !is_signed && bits > 16) return {};
  const TypeRef i64 = types_.get(T::i64);
  const auto ty = static_cast<std::uint8_t>(Ty::i64);
  auto constant = [&](std::uint64_t v) {
    const std::uint16_t r = new_reg(pos);
    load_constant(r, v, i64, pos);
    return r;
  };
  auto step = [&](Op code, std::uint16_t x, std::uint16_t y) {
    const std::uint16_t r = new_reg(pos);
    emit({code, ty, r, x, y}, pos);
    return r;
  };
  const std::uint16_t x = to_reg(a, pos);
  // All bits of `below` are those of the sign: -1 where x is negative.
  const std::uint16_t below = is_signed ? step(Op::shr, x, constant(63)) : kNoReg;
  std::uint16_t quotient;
  if (power) {
    std::uint16_t from = x;
    if (is_signed) from = step(Op::add, x, step(Op::band, below, constant(c - 1)));
    quotient = step(Op::shr, from, constant(static_cast<std::uint64_t>(std::countr_zero(c))));
  } else {
    // ceil(2^s / c) with s beyond the width by the divisor's bits: exact for every value of the
    // type.
    const int s = bits - is_signed + std::bit_width(c);
    const std::uint64_t factor = (std::uint64_t{1} << s) / c + 1;
    quotient =
        step(Op::shr, step(Op::mul, x, constant(factor)), constant(static_cast<std::uint64_t>(s)));
    if (is_signed) quotient = step(Op::sub, quotient, below);
  }
  const std::uint16_t result =
      op == Tok::slash ? quotient : step(Op::sub, x, step(Op::mul, quotient, constant(c)));
  Operand out = in_reg(a.type, result);
  out.temp = false;
  return out;
}

Operand Analyzer::arithmetic(Pos pos, Tok op, Operand a, Operand b2) {
  if (!a.type || !b2.type) fail(pos, "wse.csl.type.operator", "an operand has no value");
  if (is_shift(op)) {
    if (!a.type->is_any_int() || !b2.type->is_any_int()) {
      fail(pos, "wse.csl.type.operator",
           cat("shifts take integers, found ", text(a.type), " and ", text(b2.type)));
    }
    if (a.is_known() && b2.is_known()) return known_operand(fold(pos, op, a.value, b2.value));
    if (a.type->kind == T::comptime_int) a = coerce(a, b2.type, pos);
    if (b2.type->kind == T::comptime_int) b2 = coerce(b2, types_.u16, pos);
    if (b2.is_known() && b2.value.i < 0)
      fail(pos, "wse.csl.comptime.shift", "a shift count cannot be negative");
    if (b2.type->is_signed() && !b2.is_known())
      fail(pos, "wse.csl.shift.signed",
           cat("the count of ", describe(op), " is unsigned, found ", text(b2.type)),
           cat("convert it: @as(u", b2.type->bits(), ", count)"));
  } else {
    TypeRef peer = peer_type(pos, a, b2);
    a = coerce(std::move(a), peer, pos);
    b2 = coerce(std::move(b2), peer, pos);
    bool ok = is_comparison(op) ? true
              : is_bitwise(op)  ? (peer->is_any_int() || peer->kind == T::bool_)
                                : peer->is_number();
    if (is_comparison(op) && op != Tok::eq && op != Tok::ne) ok = peer->is_number();
    if (!ok)
      fail(pos, "wse.csl.type.operator",
           cat("operator ", describe(op), " is not defined for ", text(peer)));
    if (a.is_known() && b2.is_known()) {
      if (peer->kind == T::bool_ && is_bitwise(op)) {
        bool x = a.value.i != 0, y = b2.value.i != 0;
        return known_operand(make_bool(op == Tok::amp    ? (x && y)
                                       : op == Tok::pipe ? (x || y)
                                                         : x != y));
      }
      return known_operand(fold(pos, op, a.value, b2.value));
    }
    if ((op == Tok::slash || op == Tok::percent) && peer->is_any_int() && b2.is_known() &&
        b2.value.i == 0)
      fail(pos, "wse.csl.comptime.division", "division by zero");
  }
  if (known()) {
    need_known(a, pos, "the left operand");
    need_known(b2, pos, "the right operand");
  }
  if (!a.type->is_scalar()) {
    fail(pos, "wse.csl.type.operator",
         cat("operator ", describe(op), " is not defined for run-time values of type ",
             text(a.type)));
  }
  if ((op == Tok::slash || op == Tok::percent) && b2.is_known()) {
    if (Operand q = divide_by_constant(pos, op, a, b2.value.i); q.type) return q;
  }
  std::uint16_t x = to_reg(a, pos), y = to_reg(b2, pos), r = new_reg(pos);
  emit({opcode(op), static_cast<std::uint8_t>(bytecode_type(a.type)), r, x, y}, pos);
  if (is_comparison(op)) return in_reg(types_.bool_, r);  // not `temp`: of its operands' type
  return computed(a.type, r, pos);
}

Operand Analyzer::eval_binary(Node* node, TypeRef hint) {
  if (node->op == Tok::k_and || node->op == Tok::k_or) return eval_logic(node);
  TypeRef down = hint && hint->is_number() && !is_comparison(node->op) ? hint : nullptr;
  Operand a = eval(node->a, down);
  Operand b2 = eval(node->b, is_shift(node->op) ? nullptr : down);
  // A left operand in a variable's register must keep its value while the right one is computed.
  return arithmetic(node->pos, node->op, std::move(a), std::move(b2));
}

Operand Analyzer::eval_logic(Node* node) {
  bool is_and = node->op == Tok::k_and;
  Operand a = coerce(eval(node->a), types_.bool_, node->a->pos);
  if (a.is_known()) {
    if ((a.value.i != 0) != is_and) return a;
    return coerce(eval(node->b), types_.bool_, node->b->pos);
  }
  if (known()) need_known(a, node->pos, "a condition");
  std::uint16_t r = new_reg(node->pos);
  to_reg_at(a, r, node->pos);
  std::size_t jump = emit_jump(is_and ? Op::jz : Op::jnz, r, node->pos);
  ++frame_->runtime_branches;
  Operand b2 = coerce(eval(node->b), types_.bool_, node->b->pos);
  --frame_->runtime_branches;
  to_reg_at(b2, r, node->pos);
  patch_here(jump);
  return in_reg(types_.bool_, r);
}

Operand Analyzer::eval_unary(Node* node, TypeRef hint) {
  Operand a = eval(node->a, node->op == Tok::bang ? nullptr : hint);
  Pos pos = node->pos;
  if (node->op == Tok::bang) {
    a = coerce(a, types_.bool_, pos);
    if (a.is_known()) return known_operand(make_bool(a.value.i == 0));
    std::uint16_t x = to_reg(a, pos), r = new_reg(pos);
    emit({Op::lnot, static_cast<std::uint8_t>(Ty::b1), r, x, 0}, pos);
    return in_reg(types_.bool_, r);
  }
  if (node->op == Tok::minus) {
    if (!a.type->is_number())
      fail(pos, "wse.csl.type.operator", cat("operator - is not defined for ", text(a.type)));
    if (a.is_known()) {
      if (a.type->is_any_float()) return known_operand(make_float(a.type, -a.value.f));
      Int128 r = 0;
      if (sub_overflow(0, a.value.i, &r))
        fail(pos, "wse.csl.comptime.overflow",
             "the result exceeds the 128 bits of compile-time integers");
      return known_operand(make_int(a.type, wrap_to(a.type, r)));
    }
  } else {
    if (!a.type->is_any_int())
      fail(pos, "wse.csl.type.operator", cat("operator ~ is not defined for ", text(a.type)));
    if (a.is_known()) return known_operand(make_int(a.type, wrap_to(a.type, ~a.value.i)));
  }
  std::uint16_t x = to_reg(a, pos), r = new_reg(pos);
  emit({node->op == Tok::minus ? Op::neg : Op::bnot,
        static_cast<std::uint8_t>(bytecode_type(a.type)), r, x, 0},
       pos);
  return computed(a.type, r, pos);
}

/// The result of the last instruction, wrapped to the bits of an integer that has fewer than its
/// storage.
Operand Analyzer::computed(TypeRef type, std::uint16_t r, Pos pos) {
  Operand out = in_reg(type, r);
  out.temp = type->width < 0;
  if (type->width >= 0)
    extend(r, 0, static_cast<std::uint32_t>(type->width),
           (type->kind == T::enum_ ? type->elem : type)->is_signed(), pos);
  return out;
}

/// Implicit conversion of a known value, in place. False when there is none.
bool Analyzer::coerce_known(Value& v, TypeRef target, std::string* why) {
  TypeRef from = v.type;
  if (from == target) return true;
  if (from->is_any_int() && target->is_int()) {
    if (!fits(target, v.i)) {
      if (why) *why = cat(to_text(v.i), " does not fit ", text(target));
      return false;
    }
    v.type = target;
    return true;
  }
  if (target->kind == T::comptime_int && from->is_int()) {
    v.type = target;
    return true;
  }
  if (target->is_any_float() && from->kind == T::comptime_int) {
    v.f = round_to(target, static_cast<double>(v.i));
    v.i = 0;
    v.type = target;
    return true;
  }
  if (target->is_any_float() && from->kind == T::comptime_float) {
    v.f = round_to(target, v.f);
    v.type = target;
    return true;
  }
  if (target->kind == T::comptime_float && from->is_float()) {
    v.type = target;
    return true;
  }
  if (widens(from, target)) {  // floats; known integers only have to fit
    v.type = target;
    return true;
  }
  if (target->kind == T::comptime_struct && from->kind == T::struct_) return true;
  if (from->kind == T::pointer && target->kind == T::pointer) {
    if (from->is_const && !target->is_const) {
      if (why) *why = "a pointer to constant data cannot become a pointer to mutable data";
      return false;
    }
    if ((from->elem == target->elem && from->many == target->many) ||
        target->elem->kind == T::anyopaque || one_element(target, from)) {
      if (v.obj && one_element(target, from)) {
        if (why) *why = "a compile-time variable is no array";
        return false;
      }
      v.type = target;
      return true;
    }
    if (target->many && !from->many && from->elem->kind == T::array &&
        from->elem->elem == target->elem) {
      if (v.obj) {
        Ref<CellPointer> cp(new CellPointer(*static_cast<CellPointer*>(v.obj.get())));
        cp->path.push_back(0);
        v.obj = cp;
      }
      v.type = target;
      return true;
    }
    return false;
  }
  if (from->kind == T::function) {
    TypeRef fn = target->kind == T::pointer ? target->elem : target;
    if (fn->kind != T::fn) return false;
    Decl* d = static_cast<Decl*>(const_cast<void*>(v.p));
    TypeRef own = function_type(d, d->node->pos);
    if (own != fn) {
      if (why) *why = cat("\"", name(d->name), "\" has type ", text(own));
      return false;
    }
    v.type = target;
    return true;
  }
  if (from->kind == T::fn && target->kind == T::pointer && target->elem == from) {
    v.type = target;
    return true;
  }
  if (from->kind == T::array && target->kind == T::array && from->dims == target->dims && v.obj) {
    Value out = v;
    Ref<Aggregate> a(new Aggregate(aggregate(v)));
    for (Value& item : a->items) {
      if (!coerce_known(item, target->elem, why)) return false;
    }
    out.obj = a;
    out.type = target;
    v = out;
    return true;
  }
  if (target->is_union) {
    if (from->kind != T::struct_ || from->named || from->fields.size() != 1) {
      if (why) *why = "a union is made of exactly one of its fields";
      return false;
    }
    int k = from->fields[0].name ? field_index(target, from->fields[0].name) : -1;
    if (k < 0) {
      if (why) *why = "the union has no such field";
      return false;
    }
    Value held = aggregate(v).at(0);
    if (!coerce_known(held, target->fields[static_cast<std::size_t>(k)].type, why)) return false;
    Ref<Aggregate> one(new Aggregate);
    one->items.push_back(std::move(held));
    one->count = 1;
    v.obj = one;
    v.i = k;
    v.type = target;
    return true;
  }
  if (from->kind == T::struct_ && v.obj &&
      (target->kind == T::struct_ || target->kind == T::array)) {
    const Aggregate& a = aggregate(v);
    bool tuple = from->fields.empty() || from->fields[0].name == 0;
    Ref<Aggregate> out(new Aggregate);
    if (target->kind == T::array) {
      if (!tuple || from->named || a.count != target->count()) {
        if (why) *why = cat("expected ", target->count(), " elements, found ", a.count);
        return false;
      }
      for (const Value& item : a.items) {
        Value e = item;
        if (!coerce_known(e, target->elem, why)) return false;
        out->items.push_back(std::move(e));
      }
    } else {
      if (from->named) return false;
      if (std::string problem = tuple ? std::string() : field_problem(from, target);
          !problem.empty() || from->fields.size() != target->fields.size()) {
        if (why) *why = problem;
        return false;
      }
      for (std::size_t k = 0; k < target->fields.size(); ++k) {
        int from_index = tuple ? static_cast<int>(k) : field_index(from, target->fields[k].name);
        if (tuple != (target->fields[k].name == 0) || from_index < 0) {
          if (why && target->fields[k].name)
            *why = cat("field \"", name(target->fields[k].name), "\" is missing");
          return false;
        }
        Value e = a.at(from_index);
        const TypeRef given = e.type;
        if (!coerce_known(e, target->fields[k].type, why)) {
          if (why && target->fields[k].name)
            *why = cat("field \"", name(target->fields[k].name), "\": ",
                       why->empty()
                           ? cat("expected ", text(target->fields[k].type), ", found ", text(given))
                           : *why);
          return false;
        }
        out->items.push_back(std::move(e));
      }
    }
    out->count = static_cast<std::int64_t>(out->items.size());
    v.obj = out;
    v.type = target;
    return true;
  }
  return false;
}

/// Why the named fields of one struct do not make the other: "" if they do, or are not named.
std::string Analyzer::field_problem(TypeRef from, TypeRef target) {
  std::vector<std::string> fields;
  for (const FieldType& f : target->fields) {
    if (!f.name) return {};
    if (field_index(from, f.name) < 0) return cat("field \"", name(f.name), "\" is missing");
    fields.push_back(name(f.name));
  }
  for (const FieldType& f : from->fields) {
    if (f.name && field_index(target, f.name) < 0)
      return cat("it has no field \"", name(f.name), "\"; its fields are ", join(fields));
  }
  return {};
}

Operand Analyzer::coerce(Operand op, TypeRef target, Pos pos, std::string_view what) {
  if (!target || op.type == target) return op;
  if (op.where == Operand::nothing || !op.type) {
    if (target->kind == T::void_) return void_operand();
    fail(pos, "wse.csl.type.mismatch",
         cat(what, what.empty() ? "" : ": ", "expected ", text(target), ", found nothing"));
  }
  if (op.type->kind == T::noreturn) return op;
  std::string why;
  if (op.is_known()) {
    if (coerce_known(op.value, target, &why)) {
      op.type = op.value.type;
      return op;
    }
  } else if (widens(op.type, target)) {
    only_in(Sdk::v2, pos, cat(text(op.type), " as ", text(target), " without @as"),
            cat("write @as(", text(target), ", value)"));
    return convert(pos, target, std::move(op));
  } else if (op.type->kind == T::pointer && target->kind == T::pointer) {
    bool constness = target->is_const || !op.type->is_const;
    bool same = op.type->elem == target->elem && op.type->many == target->many;
    same |= target->elem->kind == T::anyopaque || one_element(target, op.type);
    bool decay = target->many && !op.type->many && op.type->elem->kind == T::array &&
                 op.type->elem->elem == target->elem;
    if (constness && (same || decay)) {
      op.type = target;
      return op;
    }
  } else if (op.where == Operand::parts && target->is_union) {
    int k = op.type->fields.size() == 1 && op.type->fields[0].name
                ? field_index(target, op.type->fields[0].name)
                : -1;
    if (k >= 0) {
      const auto field = static_cast<std::size_t>(k);
      Operand slot = frame_slot(target, pos);
      Operand v = coerce((*op.fields)[0], target->fields[field].type, pos, what);
      store_memory(part(slot, field, pos), std::move(v), pos);
      slot.type = target;
      return slot;
    }
    why = "a union is made of exactly one of its fields";
  } else if (op.where == Operand::parts &&
             (target->kind == T::struct_ || target->kind == T::array)) {
    Operand out = op;
    out.type = target;
    out.fields = std::make_shared<std::vector<Operand>>();
    bool tuple =
        op.type->kind == T::array || op.type->fields.empty() || op.type->fields[0].name == 0;
    std::size_t wanted = target->kind == T::array ? static_cast<std::size_t>(target->count())
                                                  : target->fields.size();
    if (op.fields->size() == wanted) {
      bool ok = true;
      for (std::size_t k = 0; k < wanted && ok; ++k) {
        std::size_t from = k;
        TypeRef type = target->kind == T::array ? target->elem : target->fields[k].type;
        if (target->kind == T::struct_ && !tuple) {
          int index = field_index(op.type, target->fields[k].name);
          if (index < 0) {
            ok = false;
            break;
          }
          from = static_cast<std::size_t>(index);
        }
        out.fields->push_back(coerce((*op.fields)[from], type, pos, what));
      }
      if (ok) return out;
    }
  } else if (target->kind == T::comptime_struct && op.type->kind == T::struct_) {
    return op;
  }
  std::string note = why;
  if (note.empty() && op.where == Operand::parts && target->kind == T::struct_ &&
      op.type->kind == T::struct_)
    note = field_problem(op.type, target);
  if (note.empty() && op.type->is_number() && target->kind == T::enum_)
    note = cat("a number becomes a member by @as(", text(target), ", value)");
  if (note.empty() && op.type->kind == T::pointer && target->kind == T::pointer &&
      op.type->is_const && !target->is_const)
    note = "a pointer to constant data cannot become a pointer to mutable data";
  if (note.empty() && op.type->is_number() && target->kind == T::bool_)
    note = "a number is compared: x != 0";
  if (note.empty() && op.type->kind == T::pointer && target->kind == T::pointer &&
      op.type->elem->kind == T::array && op.type->elem->elem == target->elem && !target->many)
    note = cat("&a[0] points to one element; [*]", text(target->elem), " points to all of them");
  if (note.empty() && op.type->is_number() && target->is_number()) {
    note = cat("there is no implicit conversion here; @as(", text(target), ", value) converts");
  }
  fail(pos, "wse.csl.type.mismatch",
       cat(what, what.empty() ? "" : ": ", "expected ", text(target), ", found ", text(op.type)),
       note);
}

/// @as.
Operand Analyzer::convert(Pos pos, TypeRef target, Operand op) {
  TypeRef from = op.type;
  if (!from) fail(pos, "wse.csl.type.conversion", "there is no value to convert");
  if (from == target) return op;
  bool numeric_from = from->is_number() || from->kind == T::bool_ || from->kind == T::enum_;
  bool numeric_to = target->is_number() || target->kind == T::bool_ || target->kind == T::enum_;
  if (!numeric_from || !numeric_to) {
    if (op.is_known()) {
      Value v = op.value;
      if (coerce_known(v, target)) return known_operand(v);
    } else if (from->kind == T::pointer && target->kind == T::pointer) {
      return coerce(op, target, pos);
    }
    fail(pos, "wse.csl.type.conversion",
         cat("@as cannot convert ", text(from), " to ", text(target)));
  }
  if (op.is_known()) {
    const Value& v = op.value;
    bool from_float = from->is_any_float();
    if (target->kind == T::enum_) {
      if (from_float)
        fail(pos, "wse.csl.type.conversion",
             cat("@as cannot convert ", text(from), " to ", text(target)));
      for (auto& [symbol, value] : target->members) {
        if (value == v.i) return known_operand(make_int(target, v.i));
      }
      fail(pos, "wse.csl.type.conversion", cat(to_text(v.i), " is no member of ", text(target)));
    }
    if (target->kind == T::bool_) return known_operand(make_bool(from_float ? v.f != 0 : v.i != 0));
    if (target->is_any_float())
      return known_operand(make_float(target, from_float ? v.f : static_cast<double>(v.i)));
    Int128 i = v.i;
    if (from_float) {
      double whole = std::trunc(v.f);
      if (!(std::fabs(whole) < 1e38))
        fail(pos, "wse.csl.type.conversion", cat(shortest(v.f), " does not fit ", text(target)));
      i = static_cast<Int128>(whole);
    }
    if (from->kind == T::comptime_int && !fits(target, i)) {
      fail(pos, "wse.csl.type.range", cat(to_text(i), " does not fit ", text(target)));
    }
    return known_operand(make_int(target, wrap_to(target, i)));
  }
  if (target->kind == T::comptime_int || target->kind == T::comptime_float) {
    need_known(op, pos, cat("a value of type ", text(target)));
  }
  Ty from_ty = bytecode_type(from), to_ty = bytecode_type(target);
  std::uint16_t x = to_reg(op, pos);
  const bool wraps = target->width >= 0 && !widens(from, target);
  if (from_ty == to_ty && !wraps) return in_reg(target, x);
  std::uint16_t r = new_reg(pos);
  emit({Op::cvt, static_cast<std::uint8_t>(to_ty), r, x, static_cast<std::uint16_t>(from_ty)}, pos);
  if (wraps) return computed(target, r, pos);
  return in_reg(target, r);
}

}  // namespace weft::wse::csl
