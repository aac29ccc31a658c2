// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/lower_float8.h"

#include <bit>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

/// A format by its bits: of the mantissa, the exponent's bias, the first bits that are no number.
struct Format {
  int mantissa, bias;
  std::uint32_t special, nan;
};
Format format_of(DType t) {
  return t.code == TypeCode::float8_e5m2 ? Format{2, 15, 0x7c, 0x7e} : Format{3, 7, 0x7f, 0x7f};
}

DType word_of(DType t) { return dtypes::uint32.with_lanes(t.lanes); }
DType byte_of(DType t) { return dtypes::uint8.with_lanes(t.lanes); }
DType wide_of(DType t) { return dtypes::float32.with_lanes(t.lanes); }

Expr word(std::uint32_t v, DType like) {
  const Expr one = make_int(static_cast<std::int64_t>(v), dtypes::uint32);
  return like.lanes == 1 ? one : broadcast(one, like.lanes);
}
Expr bits_and(Expr a, Expr b) { return call("bitwise_and", {std::move(a), std::move(b)}); }
Expr bits_or(Expr a, Expr b) { return call("bitwise_or", {std::move(a), std::move(b)}); }
Expr left(Expr a, int by) {
  const DType t = a->dtype;
  return call("shift_left", {std::move(a), word(static_cast<std::uint32_t>(by), t)});
}
Expr right(Expr a, int by) {
  const DType t = a->dtype;
  return call("shift_right", {std::move(a), word(static_cast<std::uint32_t>(by), t)});
}
Expr as_bits(const Expr& x) { return call_typed(word_of(x->dtype), "reinterpret", {x}); }
Expr as_float(const Expr& x) { return call_typed(wide_of(x->dtype), "reinterpret", {x}); }

using Lets = std::vector<std::pair<Var, Expr>>;

/// Names for values that are used more than once: around the statement where `outer` collects
/// those, else around the expression. Emitters may repeat the value of a name within an expression.
class Named {
 public:
  explicit Named(Lets* outer) : outer_(outer) {}
  Expr operator()(const char* name, Expr value) {
    Lets& list = outer_ ? *outer_ : own_;
    list.emplace_back(make_var(name, value->dtype), std::move(value));
    return list.back().first;
  }
  Expr around(Expr body) const {
    for (std::size_t i = own_.size(); i-- > 0;) body = let(own_[i].first, own_[i].second, body);
    return body;
  }

 private:
  Lets* outer_;
  Lets own_;
};

/// The float32 values of bytes.
Expr decode(DType t, const Expr& bytes, Lets* outer) {
  const Format f = format_of(t);
  const DType w = word_of(t);
  Named name(outer);
  const Expr b = name("bits8", cast(w, bytes));
  const Expr m = name("magnitude8", bits_and(b, word(0x7f, w)));
  const int top = f.mantissa == 2 ? 31 : 15;  // the largest exponent
  const Expr small =
      as_bits(cast(wide_of(t), m) * make_const(f.mantissa == 2 ? 0x1p-16 : 0x1p-9, wide_of(t)));
  const Expr bias =
      select(lt(m, word(f.special, w)), word(static_cast<std::uint32_t>(127 - f.bias) << 23, w),
             word(static_cast<std::uint32_t>(255 - top) << 23, w));
  const Expr large = left(m, 23 - f.mantissa) + bias;
  const Expr value = select(lt(m, word(1u << f.mantissa, w)), small, large);
  return name.around(as_float(bits_or(value, left(bits_and(b, word(0x80, w)), 24))));
}

/// The bytes of float32 values, rounded.
Expr encode(DType t, const Expr& x, Lets* outer) {
  const Format f = format_of(t);
  const DType w = word_of(t);
  Named name(outer);
  const Expr b = name("bits32", as_bits(x));
  const Expr m = name("magnitude32", bits_and(b, word(0x7fffffffu, w)));
  // A sum whose last place is the least number of the type is rounded as the type asks.
  const double unit = f.mantissa == 2 ? 0x1p7 : 0x1p14;
  const auto start = std::bit_cast<std::uint32_t>(static_cast<float>(unit));
  const Expr small = as_bits(as_float(m) + make_const(unit, wide_of(t))) - word(start, w);
  const int dropped = 23 - f.mantissa;
  const Expr odd = bits_and(right(m, dropped), word(1, w));
  const std::uint32_t bias = static_cast<std::uint32_t>(127 - f.bias) << 23;
  const Expr rounded = m + odd + word((1u << (dropped - 1)) - 1 - bias, w);
  const Expr large = min(right(rounded, dropped), word(f.special, w));
  const Expr value =
      select(gt(m, word(0x7f800000u, w)), word(f.nan, w),
             select(lt(m, word(static_cast<std::uint32_t>(128 - f.bias) << 23, w)), small, large));
  const Expr sign = bits_and(right(b, 24), word(0x80, w));
  return name.around(cast(byte_of(t), bits_or(value, sign)));
}

/// float32 numbers that round to float8 as the float64 numbers do: the odd one of two neighbours
/// where a number lies between them.
Expr narrowed(const Expr& x, Lets* outer) {
  Named name(outer);
  const DType wide = x->dtype, t = wide_of(wide), w = word_of(wide);
  const Expr from = name("exact", x);
  const Expr near = name("nearest", cast(t, from));
  const Expr back = name("back", cast(wide, near));
  const Expr b = name("nearest_bits", as_bits(near));
  const Expr beyond = gt(call("abs", {back}), call("abs", {from}));
  const Expr toward = b - select(beyond, word(1, w), word(0, w));
  // Infinity and NaN stay as they are.
  const Expr finite = lt(bits_and(b, word(0x7fffffffu, w)), word(0x7f800000u, w));
  const Expr odd = logical_and(ne(back, from), finite);
  return name.around(as_float(select(odd, bits_or(toward, word(1, w)), b)));
}

/// Whether the result of an operation on numbers of a type is one of the operands.
bool keeps(const std::string& op) {
  for (const char* name : {"if_then_else", "likely", "nontemporal", "abs", "vector_extract",
                           "vector_concat", "vector_reduce_max", "copysign"})
    if (op == name) return true;
  return false;
}

class LowerFloat8 final : public Rewriter {
 public:
  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    if (!e) return e;
    switch (e->kind) {
      case ExprKind::float_imm:
        return e->dtype.is_float8() ? make_float(as<FloatImmNode>(e)->value, dtypes::float32) : e;
      case ExprKind::cast: return rewrite_cast(e);
      case ExprKind::let: return rewrite_let(e);
      case ExprKind::and_:
      case ExprKind::or_: {
        const auto* b = as<BinaryNode>(e);
        const Expr x = rewrite(b->a), y = lazily(b->b);
        return x == b->a && y == b->b ? e : make_binary(e->kind, x, y);
      }
      case ExprKind::add:
      case ExprKind::sub:
      case ExprKind::mul:
      case ExprKind::div:
      case ExprKind::mod:
      case ExprKind::floordiv:
      case ExprKind::floormod: {
        const Expr out = Rewriter::rewrite(e);
        return e->dtype.is_float8() ? rounded(e->dtype, out) : out;
      }
      default: return Rewriter::rewrite(e);
    }
  }

  Buffer rewrite_buffer(const Buffer& b) override {
    if (!b->dtype.is_float8()) return b;
    Buffer& made = buffers_[b.get()];
    if (!made) {
      auto copy = edit(b);
      copy->dtype = byte_of(b->dtype);
      made = copy;
    }
    return made;
  }

 protected:
  Expr rewrite_var(const Expr& e) override {
    const auto found = vars_.find(as<VarNode>(e));
    return found == vars_.end() ? e : found->second;
  }

  Expr rewrite_load(const Expr& e) override {
    return e->dtype.is_float8() ? decode(e->dtype, bytes_of(e), lets_) : Rewriter::rewrite_load(e);
  }

  Expr rewrite_call(const Expr& e) override {
    const auto* c = as<CallNode>(e);
    if (c->op == "address_of") {
      const auto* l = as<LoadNode>(c->args[0]);
      return l && l->dtype.is_float8() ? call_typed(c->dtype, c->op, {bytes_of(c->args[0])})
                                       : Rewriter::rewrite_call(e);
    }
    if (c->op == "reinterpret") {
      const DType from = c->args[0]->dtype, to = c->dtype;
      if (to.is_float8()) return decode(to, bytes_as(from, c->args[0], byte_of(to)), lets_);
      if (from.is_float8()) {
        const Expr bytes = bytes_of(c->args[0]);
        return to == bytes->dtype ? bytes : call_typed(to, c->op, {bytes});
      }
    }
    if (!c->dtype.is_float8()) {
      if (c->op != "if_then_else") return Rewriter::rewrite_call(e);
      return if_then_else(rewrite(c->args[0]), lazily(c->args[1]), lazily(c->args[2]));
    }
    if (c->op == "nextafter")
      throw Error(ErrorKind::lower, "lower.float8.nextafter",
                  cat("\"nextafter\" of ", to_string(c->dtype)))
          .note("legal: float16, bfloat16, float32, float64")
          .help("reinterpret the number as uint8 and count");
    Exprs args;
    for (const Expr& a : c->args)
      args.push_back(c->op == "if_then_else" && !args.empty() ? lazily(a) : rewrite(a));
    const Expr out = call_typed(wide_of(c->dtype), c->op, std::move(args));
    return keeps(c->op) ? out : rounded(c->dtype, out);
  }

  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    if (!t->buffer->dtype.is_float8()) return named([&] { return Rewriter::rewrite_store(s); });
    return named([&]() -> Stmt {
      bool changed = false;
      Exprs indices = rewrite_all(t->indices, &changed);
      return make_ref<const StoreNode>(rewrite_buffer(t->buffer), bytes_of(t->value), indices);
    });
  }

  Stmt rewrite_default(const Stmt& s) override {
    const auto* l = as<LetStmtNode>(s);
    if (!l) return Rewriter::rewrite_default(s);
    return named([&] {
      const Expr value = rewrite(l->value);
      const Var v = l->var->dtype.is_float8() ? renamed(l->var) : l->var;
      lets_ = nullptr;
      return let_stmt(v, value, rewrite(l->body));
    });
  }

 private:
  Expr rounded(DType t, const Expr& x) { return decode(t, encode(t, x, lets_), lets_); }

  /// The statement that `make` gives, under the names that its expressions need.
  template <typename Make>
  Stmt named(Make&& make) {
    Lets list;
    Lets* const before = std::exchange(lets_, &list);
    Stmt out = make();
    lets_ = before;
    for (std::size_t i = list.size(); i-- > 0;) out = let_stmt(list[i].first, list[i].second, out);
    return out;
  }
  /// An expression that may not be evaluated: nothing of it moves out of its place.
  Expr lazily(const Expr& e) {
    Lets* const before = std::exchange(lets_, nullptr);
    const Expr out = rewrite(e);
    lets_ = before;
    return out;
  }

  Var renamed(const Var& v) {
    Var out = make_var(v->name, v->dtype.is_float8() ? wide_of(v->dtype) : v->dtype);
    vars_[v.get()] = out;
    return out;
  }

  Expr rewrite_let(const Expr& e) {
    const auto* l = as<LetNode>(e);
    const Expr value = rewrite(l->value);
    const Var v = renamed(l->var);  // the node may occur in several places
    // What is named around the statement may use this name.
    if (lets_) return lets_->emplace_back(v, value), rewrite(l->body);
    return let(v, value, rewrite(l->body));
  }

  Expr rewrite_cast(const Expr& e) {
    const Expr& from = as<CastNode>(e)->value;
    if (!e->dtype.is_float8()) {
      const Expr value = rewrite(from);
      return value == from ? e : cast(e->dtype, value);
    }
    if (from->dtype == e->dtype) return rewrite(from);
    return decode(e->dtype, bytes_of(e), lets_);
  }

  /// The bytes of a value of a float8 type: those that lie in memory where nothing was computed.
  Expr bytes_of(const Expr& e) {
    const DType t = e->dtype;
    if (const auto* l = as<LoadNode>(e)) {
      bool changed = false;
      Exprs indices = rewrite_all(l->indices, &changed);
      return make_ref<const LoadNode>(byte_of(t), rewrite_buffer(l->buffer), std::move(indices));
    }
    if (const auto* s = as<SelectNode>(e))
      return select(rewrite(s->condition), bytes_of(s->a), bytes_of(s->b));
    if (const auto* b = as<BroadcastNode>(e)) return broadcast(bytes_of(b->value), t.lanes);
    if (const auto* c = as<CastNode>(e)) {
      if (c->value->dtype == t) return bytes_of(c->value);
      const Expr value = rewrite(c->value);
      const bool exact = value->dtype.is_float() && value->dtype.bits == 64;
      return encode(t, exact ? narrowed(value, lets_) : cast(wide_of(t), value), lets_);
    }
    if (const auto* c = as<CallNode>(e)) {
      if (c->op == "if_then_else") return encode(t, rewrite(e), lets_);
      if (c->op == "reinterpret") return bytes_as(c->args[0]->dtype, c->args[0], byte_of(t));
    }
    return encode(t, rewrite(e), lets_);
  }

  Expr bytes_as(DType from, const Expr& e, DType bytes) {
    const Expr raw = from.is_float8() ? bytes_of(e) : rewrite(e);
    return raw->dtype == bytes ? raw : call_typed(bytes, "reinterpret", {raw});
  }

  Lets* lets_ = nullptr;
  BufferMap buffers_;
  VarMap vars_;
};

bool has_float8(const PrimFunc& kernel) {
  bool found = false;
  for (const Param& p : kernel->params) found = found || (p.buffer && p.buffer->dtype.is_float8());
  for_each_expr(kernel->body, [&](const Expr& e) { found = found || e->dtype.is_float8(); });
  return found;
}

}  // namespace

PrimFunc lower_float8(const PrimFunc& kernel) {
  if (!has_float8(kernel)) return kernel;
  LowerFloat8 lower;
  const Stmt body = lower.rewrite(kernel->body);
  std::vector<Param> params = kernel->params;
  for (Param& p : params)
    if (p.buffer) p.buffer = lower.rewrite_buffer(p.buffer);
  auto out = edit(kernel);
  out->body = body, out->params = std::move(params);
  return out;
}

}  // namespace weft::pass
