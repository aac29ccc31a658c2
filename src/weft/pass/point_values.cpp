// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/point_values.h"

#include <algorithm>
#include <bit>

#include "weft/base/hash.h"

namespace weft::pass {

using namespace ir;

namespace {

std::int64_t floordiv(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

Numbers number(std::int64_t value) {
  Numbers out;
  out.value = value;
  out.known = true;
  return out;
}

bool divides(ExprKind kind) {
  return kind == ExprKind::div || kind == ExprKind::mod || kind == ExprKind::floordiv ||
         kind == ExprKind::floormod;
}

/// out[i] = f(x[i], y[i]) where uniform operands do not move.
template <typename F>
void each(const Numbers& x, const Numbers& y, std::size_t n, std::vector<std::int64_t>& out, F f) {
  const std::int64_t* a = x.uniform ? &x.value : x.values.data();
  const std::int64_t* b = y.uniform ? &y.value : y.values.data();
  std::int64_t* to = out.data();
  if (x.uniform) {
    for (std::size_t i = 0; i < n; ++i) to[i] = f(*a, b[i]);
  } else if (y.uniform) {
    const std::int64_t only = *b;
    for (std::size_t i = 0; i < n; ++i) to[i] = f(a[i], only);
  } else {
    for (std::size_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]);
  }
}

using I = std::int64_t;

/// Values where both are known and no divisor is 0.
void combine(ExprKind kind, const Numbers& x, const Numbers& y, std::size_t n,
             std::vector<std::int64_t>& out) {
  if (y.uniform && y.value > 0 && std::has_single_bit(static_cast<std::uint64_t>(y.value))) {
    const int bits = std::countr_zero(static_cast<std::uint64_t>(y.value));
    if (kind == ExprKind::floordiv) return each(x, y, n, out, [bits](I u, I) { return u >> bits; });
    if (kind == ExprKind::floormod) return each(x, y, n, out, [](I u, I v) { return u & (v - 1); });
  }
  switch (kind) {
    case ExprKind::add: return each(x, y, n, out, [](I u, I v) { return u + v; });
    case ExprKind::sub: return each(x, y, n, out, [](I u, I v) { return u - v; });
    case ExprKind::mul: return each(x, y, n, out, [](I u, I v) { return u * v; });
    case ExprKind::div: return each(x, y, n, out, [](I u, I v) { return v ? u / v : 0; });
    case ExprKind::mod: return each(x, y, n, out, [](I u, I v) { return v ? u % v : 0; });
    case ExprKind::floordiv:
      return each(x, y, n, out, [](I u, I v) { return v ? floordiv(u, v) : 0; });
    case ExprKind::floormod:
      return each(x, y, n, out, [](I u, I v) { return v ? u - floordiv(u, v) * v : 0; });
    case ExprKind::min: return each(x, y, n, out, [](I u, I v) { return std::min(u, v); });
    case ExprKind::max: return each(x, y, n, out, [](I u, I v) { return std::max(u, v); });
    case ExprKind::eq: return each(x, y, n, out, [](I u, I v) -> I { return u == v; });
    case ExprKind::ne: return each(x, y, n, out, [](I u, I v) -> I { return u != v; });
    case ExprKind::lt: return each(x, y, n, out, [](I u, I v) -> I { return u < v; });
    case ExprKind::le: return each(x, y, n, out, [](I u, I v) -> I { return u <= v; });
    case ExprKind::gt: return each(x, y, n, out, [](I u, I v) -> I { return u > v; });
    case ExprKind::ge: return each(x, y, n, out, [](I u, I v) -> I { return u >= v; });
    case ExprKind::and_: return each(x, y, n, out, [](I u, I v) -> I { return u && v; });
    default: return each(x, y, n, out, [](I u, I v) -> I { return u || v; });
  }
}

/// A varying result becomes a uniform one where it can: unknown everywhere.
Numbers finish(Numbers out) {
  if (!out.ok.empty() && std::all_of(out.ok.begin(), out.ok.end(), [](auto k) { return k != 0; }))
    out.ok.clear();
  return out;
}

Numbers joined(ExprKind kind, const Numbers& x, const Numbers& y, std::size_t n) {
  if (x.uniform && y.uniform) n = 1;
  Numbers out;
  out.uniform = false;
  out.values.resize(n);
  combine(kind, x, y, n, out.values);
  const bool zero = divides(kind) && !(y.uniform && y.value != 0);
  if (!x.all_known() || !y.all_known() || zero) {
    out.ok.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const bool kx = x.known_at(i), ky = y.known_at(i);
      bool known = kx && ky && !(divides(kind) && y.at(i) == 0);
      if (kind == ExprKind::and_ && ((kx && !x.at(i)) || (ky && !y.at(i)))) {
        out.values[i] = 0;
        known = true;
      } else if (kind == ExprKind::or_ && kx && x.at(i)) {
        out.values[i] = 1;
        known = true;
      }
      out.ok[i] = known;
    }
  }
  if (x.uniform && y.uniform) {
    Numbers one;
    one.value = out.values[0];
    one.known = out.ok.empty() || out.ok[0] != 0;
    return one;
  }
  return finish(std::move(out));
}

/// x where the condition holds, y where it does not; unknown where it is unknown.
Numbers chosen(const Numbers& c, const Numbers& x, const Numbers& y, std::size_t n) {
  if (c.uniform) return !c.known ? Numbers{} : c.value ? x : y;
  Numbers out;
  out.uniform = false;
  out.values.resize(n);
  out.ok.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Numbers& from = c.at(i) ? x : y;
    out.values[i] = from.at(i);
    out.ok[i] = c.known_at(i) && from.known_at(i);
  }
  return finish(std::move(out));
}

Hashes mixed(const Hashes& a, const Hashes& b, std::size_t n) {
  Hashes out;
  out.uniform = a.uniform && b.uniform;
  if (out.uniform) {
    out.value = hash_combine(a.value, b.value);
    return out;
  }
  out.values.resize(n);
  for (std::size_t i = 0; i < n; ++i) out.values[i] = hash_combine(a.at(i), b.at(i));
  return out;
}

Hashes hash_of(std::uint64_t value) {
  Hashes out;
  out.value = value;
  return out;
}

}  // namespace

void PointValues::set(const VarNode* v, const Points& active, Numbers numbers) {
  Slot& slot = slots_[v];
  if (numbers.uniform) {
    slot.of_active = std::move(numbers);
    return;
  }
  slot.of_active.uniform = false;
  slot.values.resize(points_);
  slot.ok.resize(points_);
  for (std::size_t i = 0; i < active.size(); ++i) {
    const auto p = static_cast<std::size_t>(active[i]);
    slot.values[p] = numbers.at(i);
    slot.ok[p] = numbers.known_at(i);
  }
}

void PointValues::bind(const VarNode* v, const Points& active, const Expr& value,
                       const std::unordered_set<const BufferNode*>& own) {
  Numbers numbers = eval(value, active);
  if (numbers.all_known()) return set(v, active, std::move(numbers));
  const Hashes hashes = signature(value, active, 0, own);
  set(v, active, std::move(numbers));
  Slot& slot = slots_[v];
  slot.hashes.resize(points_);
  for (std::size_t i = 0; i < active.size(); ++i)
    slot.hashes[static_cast<std::size_t>(active[i])] = hashes.at(i);
}

Numbers PointValues::eval(const Expr& e, const Points& active, int lane) const {
  const std::size_t n = active.size();
  switch (e->kind) {
    case ExprKind::int_imm: return number(as<IntImmNode>(e)->value);
    case ExprKind::var: {
      auto found = slots_.find(as<VarNode>(e));
      if (found == slots_.end()) return {};
      const Slot& slot = found->second;
      if (slot.of_active.uniform) return slot.of_active;
      Numbers out;
      out.uniform = false;
      out.values.resize(n);
      bool all = true;
      for (std::size_t i = 0; i < n; ++i) {
        const auto p = static_cast<std::size_t>(active[i]);
        out.values[i] = slot.values[p];
        all = all && slot.ok[p];
      }
      if (!all) {
        for (std::size_t i = 0; i < n; ++i)
          out.ok.push_back(slot.ok[static_cast<std::size_t>(active[i])]);
      }
      return out;
    }
    case ExprKind::cast:
      return e->dtype.is_float() || as<CastNode>(e)->value->dtype.is_float()
                 ? Numbers{}
                 : eval(as<CastNode>(e)->value, active, lane);
    case ExprKind::not_: {
      const Numbers x = eval(as<NotNode>(e)->a, active, lane);
      return joined(ExprKind::eq, x, number(0), n);
    }
    case ExprKind::ramp: {
      const Numbers step =
          joined(ExprKind::mul, eval(as<RampNode>(e)->stride, active), number(lane), n);
      return joined(ExprKind::add, eval(as<RampNode>(e)->base, active), step, n);
    }
    case ExprKind::broadcast: return eval(as<BroadcastNode>(e)->value, active);
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      return chosen(eval(s->condition, active, lane), eval(s->a, active, lane),
                    eval(s->b, active, lane), n);
    }
    case ExprKind::call: return call(as<CallNode>(e), active, lane);
    default: break;
  }
  if (!is_binary(e->kind)) return {};
  const auto* b = as<BinaryNode>(e);
  if (b->a->dtype.is_float()) return {};
  return joined(e->kind, eval(b->a, active, lane), eval(b->b, active, lane), n);
}

Numbers PointValues::call(const CallNode* c, const Points& active, int lane) const {
  const std::size_t n = active.size();
  if (c->op == "likely") return eval(c->args[0], active, lane);
  if (c->op == "if_then_else")
    return chosen(eval(c->args[0], active, lane), eval(c->args[1], active, lane),
                  eval(c->args[2], active, lane), n);
  if (c->args.size() != 2) return {};
  I (*f)(I, I) = nullptr;
  if (c->op == "shift_right") f = [](I a, I b) { return a >> std::min<I>(b, 63); };
  if (c->op == "shift_left")
    f = [](I a, I b) { return static_cast<I>(static_cast<std::uint64_t>(a) << (b & 63)); };
  if (c->op == "bitwise_and") f = [](I a, I b) { return a & b; };
  if (c->op == "bitwise_or") f = [](I a, I b) { return a | b; };
  if (c->op == "bitwise_xor") f = [](I a, I b) { return a ^ b; };
  if (!f) return {};
  const Numbers a = eval(c->args[0], active, lane), b = eval(c->args[1], active, lane);
  Numbers out;
  if (a.uniform && b.uniform) {
    out.known = a.known && b.known;
    if (out.known) out.value = f(a.value, b.value);
    return out;
  }
  out.uniform = false;
  out.values.resize(n);
  each(a, b, n, out.values, f);
  if (!a.all_known() || !b.all_known()) {
    for (std::size_t i = 0; i < n; ++i) out.ok.push_back(a.known_at(i) && b.known_at(i));
  }
  return out;
}

Hashes PointValues::signature(const Expr& e, const Points& active, int lane,
                              const std::unordered_set<const BufferNode*>& own) const {
  const std::size_t n = active.size();
  auto inner = [&](const Expr& x, int which) { return signature(x, active, which, own); };
  const Numbers v = eval(e, active, lane);
  Hashes known;
  known.uniform = v.uniform;
  if (v.uniform) {
    known.value = hash_combine(1, static_cast<std::uint64_t>(v.value));
  } else {
    for (std::size_t i = 0; i < n; ++i)
      known.values.push_back(hash_combine(1, static_cast<std::uint64_t>(v.values[i])));
  }
  if (v.all_known()) return known;
  Hashes out = hash_of(hash_combine(static_cast<std::uint64_t>(e->kind) + 100,
                                    static_cast<std::uint64_t>(e->dtype.bits)));
  switch (e->kind) {
    case ExprKind::float_imm:
      out = mixed(out, hash_of(std::bit_cast<std::uint64_t>(as<FloatImmNode>(e)->value)), n);
      break;
    case ExprKind::var: {
      auto found = slots_.find(as<VarNode>(e));
      if (found == slots_.end() || found->second.hashes.empty()) {  // a scalar parameter
        out = mixed(out, hash_of(reinterpret_cast<std::uintptr_t>(e.get())), n);
        break;
      }
      out.uniform = false;
      for (std::int64_t p : active)
        out.values.push_back(found->second.hashes[static_cast<std::size_t>(p)]);
      break;
    }
    case ExprKind::load: {
      const auto* l = as<LoadNode>(e);
      const Numbers at = eval(l->indices[0], active, l->indices[0]->dtype.lanes > 1 ? lane : 0);
      const bool private_copy = own.count(l->buffer.get()) > 0;
      Hashes element;
      element.uniform = false;
      for (std::size_t i = 0; i < n; ++i)
        element.values.push_back(static_cast<std::uint64_t>(
            at.known_at(i) && !private_copy ? at.at(i) : -1 - active[i]));
      out = mixed(mixed(out, hash_of(reinterpret_cast<std::uintptr_t>(l->buffer.get())), n),
                  element, n);
      break;
    }
    case ExprKind::cast: out = mixed(out, inner(as<CastNode>(e)->value, lane), n); break;
    case ExprKind::not_: out = mixed(out, inner(as<NotNode>(e)->a, lane), n); break;
    case ExprKind::broadcast: out = inner(as<BroadcastNode>(e)->value, 0); break;
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      for (const Expr& part : {s->condition, s->a, s->b}) out = mixed(out, inner(part, lane), n);
      break;
    }
    case ExprKind::call:
      out = mixed(out, hash_of(hash_text(as<CallNode>(e)->op)), n);
      for (const Expr& a : as<CallNode>(e)->args) out = mixed(out, inner(a, lane), n);
      break;
    default:
      if (is_binary(e->kind)) {
        out = mixed(mixed(out, inner(as<BinaryNode>(e)->a, lane), n),
                    inner(as<BinaryNode>(e)->b, lane), n);
      } else {  // nothing is known of it: every point has its own
        Hashes point;
        point.uniform = false;
        for (std::int64_t p : active) point.values.push_back(static_cast<std::uint64_t>(p));
        out = mixed(out, point, n);
      }
  }
  if (v.uniform) return out;
  Hashes both;
  both.uniform = false;
  for (std::size_t i = 0; i < n; ++i)
    both.values.push_back(v.known_at(i) ? known.at(i) : out.at(i));
  return both;
}

}  // namespace weft::pass
