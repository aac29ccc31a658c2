// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/ir/interpret_internal.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/text.h"

namespace weft::ir::interp {

// ---- storage

template <typename T>
static T get(const char* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

template <typename T>
static void put(char* at, T v) {
  std::memcpy(at, &v, sizeof v);
}

Lane read_element(const char* at, DType t) {
  Lane l;
  switch (t.code) {
    case TypeCode::float_:
      l.f = t.bits == 64   ? get<double>(at)
            : t.bits == 32 ? get<float>(at)
                           : half_to_float(get<std::uint16_t>(at));
      break;
    case TypeCode::bfloat: l.f = bfloat_to_float(get<std::uint16_t>(at)); break;
    case TypeCode::float8_e4m3fn:
    case TypeCode::float8_e5m2: l.f = float8_to_float(t, get<std::uint8_t>(at)); break;
    case TypeCode::bool_: l.i = *at != 0; break;
    case TypeCode::uint_:
      l.i = t.bits == 64   ? static_cast<std::int64_t>(get<std::uint64_t>(at))
            : t.bits == 32 ? get<std::uint32_t>(at)
            : t.bits == 16 ? get<std::uint16_t>(at)
                           : get<std::uint8_t>(at);
      break;
    default:
      l.i = t.bits == 64   ? get<std::int64_t>(at)
            : t.bits == 32 ? get<std::int32_t>(at)
            : t.bits == 16 ? get<std::int16_t>(at)
                           : get<std::int8_t>(at);
  }
  return l;
}

void write_element(char* at, DType t, Lane v) {
  switch (t.code) {
    case TypeCode::float_:
      if (t.bits == 64) put(at, v.f);
      else if (t.bits == 32) put(at, static_cast<float>(v.f));
      else put(at, double_to_half(v.f));
      break;
    case TypeCode::bfloat: put(at, double_to_bfloat(v.f)); break;
    case TypeCode::float8_e4m3fn:
    case TypeCode::float8_e5m2: put(at, double_to_float8(t, v.f)); break;
    case TypeCode::bool_: *at = v.i != 0; break;
    default:
      if (t.bits == 64) put(at, v.i);
      else if (t.bits == 32) put(at, static_cast<std::int32_t>(v.i));
      else if (t.bits == 16) put(at, static_cast<std::int16_t>(v.i));
      else put(at, static_cast<std::int8_t>(v.i));
  }
}

std::int64_t Access::offset(Frame& fr) const {
  const View& w = fr.views[static_cast<std::size_t>(view)];
  std::int64_t out = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const Exp& e = *index[d];
    std::int64_t x = e.slot >= 0 ? fr.slots[static_cast<std::size_t>(e.slot)].i : e.i(fr);
    if (static_cast<std::uint64_t>(x) >= static_cast<std::uint64_t>(w.shape[d]))
      out_of_bounds(fr, d, x);
    out += x * w.strides[d];
  }
  return out;
}

void Access::out_of_bounds(Frame& fr, std::size_t dim, std::int64_t value) const {
  const View& w = fr.views[static_cast<std::size_t>(view)];
  std::string indices, extents;
  for (std::size_t d = 0; d < index.size(); ++d) {
    std::string x = index[d]->type.lanes > 1 ? (d == dim ? cat(value) : "…") : cat(index[d]->i(fr));
    indices += cat(d ? ", " : "", x);
    extents += cat(d ? ", " : "", w.shape[d]);
  }
  if (!w.data) fault(fr, "uninitialized", cat("\"", buffer->name, "\" has no storage here"));
  fault(fr, "bounds",
        cat("\"", buffer->name, "\"[", indices, "] is outside (", extents, "): index ", dim, " is ",
            value));
}

namespace {

/// Quotient and remainder of a division by zero are 0, as on every machine.
std::int64_t int_binary(ExprKind kind, DType t, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return eval_int_binary(kind, t, a, b, &out) ? out : 0;
}

// ---- scalars

struct Constant final : Exp {
  Lane value;
  std::int64_t i(Frame&) const override { return value.i; }
  double f(Frame&) const override { return value.f; }
};

struct Variable final : Exp {
  std::int64_t i(Frame& fr) const override { return fr.slots[at(slot)].i; }
  double f(Frame& fr) const override { return fr.slots[at(slot)].f; }
  void v(Frame& fr, Lane* out) const override { std::copy_n(&fr.slots[at(slot)], type.lanes, out); }
};

struct Pair : Exp {
  ExpPtr a, b;
};

/// int64 without a wrap: the index arithmetic.
template <ExprKind K>
struct Int64Op final : Pair {
  std::int64_t i(Frame& fr) const override {
    std::int64_t x = a->i(fr), y = b->i(fr);
    auto ux = static_cast<std::uint64_t>(x), uy = static_cast<std::uint64_t>(y);
    if constexpr (K == ExprKind::add) return static_cast<std::int64_t>(ux + uy);
    if constexpr (K == ExprKind::sub) return static_cast<std::int64_t>(ux - uy);
    if constexpr (K == ExprKind::mul) return static_cast<std::int64_t>(ux * uy);
    if constexpr (K == ExprKind::lt) return x < y;
    if constexpr (K == ExprKind::le) return x <= y;
    if constexpr (K == ExprKind::eq) return x == y;
    if constexpr (K == ExprKind::floordiv || K == ExprKind::floormod) {
      if (y > 0) {
        std::int64_t q = x / y, m = x % y;
        if (m < 0) q -= 1, m += y;
        return K == ExprKind::floordiv ? q : m;
      }
    }
    return int_binary(K, dtypes::int64, x, y);
  }
};

struct IntOp final : Pair {
  ExprKind kind;
  DType operand;
  std::int64_t i(Frame& fr) const override {
    std::int64_t x = a->i(fr);
    if (kind == ExprKind::and_) return x ? b->i(fr) : 0;  // what is not needed is not evaluated
    if (kind == ExprKind::or_) return x ? 1 : b->i(fr);
    return int_binary(kind, operand, x, b->i(fr));
  }
};

template <ExprKind K, typename T>
struct FloatOp final : Pair {
  double f(Frame& fr) const override {
    double x = a->f(fr), y = b->f(fr);
    if constexpr (K == ExprKind::add) return static_cast<T>(x + y);
    if constexpr (K == ExprKind::sub) return static_cast<T>(x - y);
    if constexpr (K == ExprKind::mul) return static_cast<T>(x * y);
    if constexpr (K == ExprKind::div) return static_cast<T>(x / y);
    if constexpr (K == ExprKind::min) return x < y || x != x ? x : y;  // a NaN is the result
    return x > y || x != x ? x : y;
  }
};

struct SlowFloatOp final : Pair {
  ExprKind kind;
  double f(Frame& fr) const override {
    double x = a->f(fr);
    return eval_float_binary(kind, type, x, b->f(fr));
  }
};

struct FloatCompare final : Pair {
  ExprKind kind;
  std::int64_t i(Frame& fr) const override {
    double x = a->f(fr);
    return eval_float_compare(kind, x, b->f(fr));
  }
};

struct Cast final : Exp {
  ExpPtr a;
  Lane get(Frame& fr) const { return eval_cast(a->scalar(fr), a->type, type); }
  std::int64_t i(Frame& fr) const override { return get(fr).i; }
  double f(Frame& fr) const override { return get(fr).f; }
};

struct Reinterpret final : Exp {
  ExpPtr a;
  Lane get(Frame& fr) const { return eval_reinterpret(a->scalar(fr), a->type, type); }
  std::int64_t i(Frame& fr) const override { return get(fr).i; }
  double f(Frame& fr) const override { return get(fr).f; }
};

struct Not final : Exp {
  ExpPtr a;
  std::int64_t i(Frame& fr) const override { return !a->i(fr); }
};

/// select evaluates both arms, if_then_else one.
struct Choose final : Exp {
  ExpPtr c, a, b;
  bool lazy = false;
  Lane get(Frame& fr) const {
    if (lazy) return c->i(fr) ? a->scalar(fr) : b->scalar(fr);
    Lane x = a->scalar(fr), y = b->scalar(fr);
    return c->i(fr) ? x : y;
  }
  std::int64_t i(Frame& fr) const override { return get(fr).i; }
  double f(Frame& fr) const override { return get(fr).f; }
  void v(Frame& fr, Lane* out) const override {
    if (type.lanes == 1) {
      *out = get(fr);
      return;
    }
    int n = type.lanes;
    if (c->type.lanes == 1) {
      if (lazy) return c->i(fr) ? a->v(fr, out) : b->v(fr, out);
      Lanes other(n);
      a->v(fr, out), b->v(fr, other);
      if (!c->i(fr)) std::copy_n(static_cast<Lane*>(other), n, out);
      return;
    }
    Lanes cond(n), other(n);
    c->v(fr, cond);
    if (!lazy) {
      a->v(fr, out), b->v(fr, other);
    } else {  // each arm sees only the lanes that choose it
      const std::uint8_t* outer = fr.mask;
      std::vector<std::uint8_t> mask(at(n));
      for (int arm = 0; arm < 2; ++arm) {
        for (int k = 0; k < n; ++k)
          mask[at(k)] = (cond[k].i != 0) == (arm == 0) && (!outer || outer[k]);
        fr.mask = mask.data();
        (arm == 0 ? a : b)->v(fr, arm == 0 ? out : static_cast<Lane*>(other));
      }
      fr.mask = outer;
    }
    for (int k = 0; k < n; ++k) {
      if (!cond[k].i) out[k] = other[k];
    }
  }
};

struct LetExp final : Exp {
  ExpPtr value, body;
  int target = 0;
  void set(Frame& fr) const { value->v(fr, &fr.slots[at(target)]); }
  std::int64_t i(Frame& fr) const override { return set(fr), body->i(fr); }
  double f(Frame& fr) const override { return set(fr), body->f(fr); }
  void v(Frame& fr, Lane* out) const override { set(fr), body->v(fr, out); }
};

template <typename C>
struct ScalarLoad final : Exp {
  Access access;
  const char* element(Frame& fr) const {
    std::int64_t o = access.offset(fr);
    return fr.views[at(access.view)].data + o * static_cast<std::int64_t>(sizeof(C));
  }
  std::int64_t i(Frame& fr) const override {
    if constexpr (std::is_integral_v<C>) return static_cast<std::int64_t>(get<C>(element(fr)));
    return 0;
  }
  double f(Frame& fr) const override {
    if constexpr (std::is_floating_point_v<C>) return get<C>(element(fr));
    return 0;
  }
};

struct SlowLoad final : Exp {  // 16-bit floats and bools
  Access access;
  Lane get(Frame& fr) const {
    std::int64_t o = access.offset(fr);
    return read_element(fr.views[at(access.view)].data + o * type.bytes(), type);
  }
  std::int64_t i(Frame& fr) const override { return get(fr).i; }
  double f(Frame& fr) const override { return get(fr).f; }
};

struct Intrinsic1 final : Exp {
  IntrinsicId id;
  DType operand;
  std::vector<ExpPtr> args;
  Lane get(Frame& fr) const {
    Lane in[3], out;
    for (std::size_t k = 0; k < args.size(); ++k) in[k] = args[k]->scalar(fr);
    eval_intrinsic(id, operand, {in, args.size()}, &out);
    return out;
  }
  std::int64_t i(Frame& fr) const override { return get(fr).i; }
  double f(Frame& fr) const override { return get(fr).f; }
};

/// vector_extract and vector_reduce_*.
struct FromVector final : Exp {
  ExpPtr vec, index;
  std::string how;
  Lane get(Frame& fr) const {
    const std::uint8_t* outer = std::exchange(fr.mask, nullptr);
    int n = vec->type.lanes;
    Lanes in(n);
    vec->v(fr, in);
    Lane* l = in;
    if (index) {
      std::int64_t k = index->i(fr);
      if (k < 0 || k >= n) fault(fr, "bounds", cat("lane ", k, " of a vector of ", n));
      fr.mask = outer;
      return l[k];
    }
    ExprKind kind = how == "vector_reduce_add"   ? ExprKind::add
                    : how == "vector_reduce_max" ? ExprKind::max
                                                 : ExprKind::min;
    for (int m = n; m > 1; m = (m + 1) / 2) {  // pairwise: (0,1) (2,3) ...
      for (int k = 0; k < m / 2; ++k) {
        if (type.is_float()) l[k].f = eval_float_binary(kind, type, l[2 * k].f, l[2 * k + 1].f);
        else l[k].i = int_binary(kind, type, l[2 * k].i, l[2 * k + 1].i);
      }
      if (m % 2) l[m / 2] = l[m - 1];
    }
    fr.mask = outer;
    return l[0];
  }
  std::int64_t i(Frame& fr) const override { return get(fr).i; }
  double f(Frame& fr) const override { return get(fr).f; }
};

// ---- vectors

struct VectorBinary final : Pair {
  ExprKind kind;
  void v(Frame& fr, Lane* out) const override {
    int n = type.lanes;
    Lanes x(n), y(n);
    a->v(fr, x), b->v(fr, y);
    DType t = a->type.element();
    for (int k = 0; k < n; ++k) {
      if (fr.mask && !fr.mask[k]) continue;
      if (!t.is_float()) out[k].i = int_binary(kind, t, x[k].i, y[k].i);
      else if (is_compare(kind)) out[k].i = eval_float_compare(kind, x[k].f, y[k].f);
      else out[k].f = eval_float_binary(kind, t, x[k].f, y[k].f);
    }
  }
};

struct VectorMap final : Exp {  // casts, not, reinterpret, elementwise intrinsics
  enum class Op : std::uint8_t { cast, reinterpret, not_, intrinsic } op;
  IntrinsicId id = IntrinsicId::likely_;
  std::vector<ExpPtr> args;
  void v(Frame& fr, Lane* out) const override {
    int n = type.lanes;
    Lanes in0(n), in1(args.size() > 1 ? n : 0), in2(args.size() > 2 ? n : 0);
    Lane* in[3] = {in0, in1, in2};
    for (std::size_t k = 0; k < args.size(); ++k) args[k]->v(fr, in[k]);
    DType from = args[0]->type.element(), to = type.element();
    for (int k = 0; k < n; ++k) {
      Lane x[3];
      for (std::size_t m = 0; m < args.size(); ++m) x[m] = in[m][k];
      switch (op) {
        case Op::cast: out[k] = eval_cast(x[0], from, to); break;
        case Op::reinterpret: out[k] = eval_reinterpret(x[0], from, to); break;
        case Op::not_: out[k].i = !x[0].i; break;
        case Op::intrinsic: eval_intrinsic(id, from, {x, args.size()}, &out[k]); break;
      }
    }
  }
};

struct RampExp final : Pair {
  void v(Frame& fr, Lane* out) const override {
    std::int64_t x = a->i(fr), s = b->i(fr);
    for (int k = 0; k < type.lanes; ++k) out[k].i = wrap_int(x + k * s, type.element());
  }
};

struct BroadcastExp final : Exp {
  ExpPtr a;
  void v(Frame& fr, Lane* out) const override {
    Lane x = a->scalar(fr);
    for (int k = 0; k < type.lanes; ++k) out[k] = x;
  }
};

struct Concat final : Exp {
  std::vector<ExpPtr> args;
  void v(Frame& fr, Lane* out) const override {
    const std::uint8_t* outer = std::exchange(fr.mask, nullptr);
    for (const ExpPtr& e : args) {
      e->v(fr, out);
      out += e->type.lanes;
    }
    fr.mask = outer;
  }
};

struct Interleave final : Exp {
  std::vector<ExpPtr> args;
  void v(Frame& fr, Lane* out) const override {
    const std::uint8_t* outer = std::exchange(fr.mask, nullptr);
    const std::size_t n = args.size();
    for (std::size_t k = 0; k < n; ++k) {
      Lanes in(args[k]->type.lanes);
      args[k]->v(fr, in);
      for (std::size_t i = 0; i < static_cast<std::size_t>(args[k]->type.lanes); ++i)
        out[i * n + k] = in[i];
    }
    fr.mask = outer;
  }
};

struct DotExp final : Exp {
  ExpPtr sums, a, b;
  void v(Frame& fr, Lane* out) const override {
    const std::uint8_t* outer = std::exchange(fr.mask, nullptr);
    const int n = a->type.lanes;
    Lanes x(n), y(b->type.lanes);
    sums->v(fr, out), a->v(fr, x), b->v(fr, y);
    const DType t = type.element();
    for (int i = 0; i < type.lanes; ++i) {
      for (int e = 0; e < n; ++e) {
        const Lane p = x[e], q = y[i * n + e];
        if (t.is_float()) {
          out[i].f = round_float(out[i].f + round_float(p.f * q.f, t), t);
        } else {
          out[i].i = int_binary(ExprKind::add, t, out[i].i, int_binary(ExprKind::mul, t, p.i, q.i));
        }
      }
    }
    fr.mask = outer;
  }
};

struct VectorLoad final : Exp {
  Access access;
  ExpPtr mask, other;  // masked_load; null: an ordinary load
  void v(Frame& fr, Lane* out) const override;
};

}  // namespace

/// Calls f(lane of the index, element offset) for the active lanes of a vector access.
template <typename F>
static void each_lane(Frame& fr, const Access& access, const Lane* mask, F&& f) {
  const View& w = fr.views[at(access.view)];
  std::int64_t base = 0;
  for (std::size_t d = 0; d + 1 < access.index.size(); ++d) {
    std::int64_t x = access.index[d]->i(fr);
    if (static_cast<std::uint64_t>(x) >= static_cast<std::uint64_t>(w.shape[d]))
      access.out_of_bounds(fr, d, x);
    base += x * w.strides[d];
  }
  int n = access.index.empty() ? 1 : access.index.back()->type.lanes;
  Lanes last(n);
  if (!access.index.empty()) access.index.back()->v(fr, last);
  std::size_t d = access.index.empty() ? 0 : access.index.size() - 1;
  for (int k = 0; k < n; ++k) {
    if ((mask && !mask[k].i) || (fr.mask && n > 1 && !fr.mask[k])) continue;
    std::int64_t o = base;
    if (!access.index.empty()) {
      if (static_cast<std::uint64_t>(last[k].i) >= static_cast<std::uint64_t>(w.shape[d]))
        access.out_of_bounds(fr, d, last[k].i);
      o += last[k].i * w.strides[d];
    }
    f(k, o);
  }
}

void VectorLoad::v(Frame& fr, Lane* out) const {
  int per = access.buffer->dtype.lanes;  // lanes of one element
  DType t = access.buffer->dtype.element();
  int n = type.lanes;
  Lanes m(mask ? n : 0);
  if (mask) {
    mask->v(fr, m);
    other->v(fr, out);
  } else {
    for (int k = 0; k < n; ++k) out[k].i = 0;  // inactive lanes
  }
  each_lane(fr, access, mask ? static_cast<Lane*>(m) : nullptr, [&](int k, std::int64_t o) {
    const char* p = fr.views[at(access.view)].data + o * access.buffer->dtype.total_bytes();
    for (int e = 0; e < per; ++e) out[k * per + e] = read_element(p + e * t.bytes(), t);
  });
}

void store_lanes(Frame& fr, const Access& access, const Lane* values) {
  int per = access.buffer->dtype.lanes;
  DType t = access.buffer->dtype.element();
  each_lane(fr, access, nullptr, [&](int k, std::int64_t o) {
    char* p = fr.views[at(access.view)].data + o * access.buffer->dtype.total_bytes();
    for (int e = 0; e < per; ++e) write_element(p + e * t.bytes(), t, values[k * per + e]);
  });
}

// ---- compiling

Access Compiler::access(const Buffer& b, const Exprs& indices) {
  Access a;
  a.view = view(b.get());
  a.buffer = b.get();
  if (indices.size() != b->ndim() || indices.size() > kMaxRank)
    throw Error(
        ErrorKind::verify, "interpret.rank",
        cat("\"", b->name, "\" has ", b->ndim(), " dimensions, but ", indices.size(), " indices"));
  for (const Expr& e : indices) {
    a.index.push_back(expr(e));
    a.vector = a.vector || e->dtype.lanes > 1;
  }
  a.vector = a.vector || b->dtype.lanes > 1;
  return a;
}

namespace {

template <typename T, typename... Set>
ExpPtr typed(DType t, Set&&... set) {
  auto p = std::make_unique<T>();
  p->type = t;
  (set(*p), ...);
  return p;
}

template <ExprKind K>
ExpPtr pair64(DType t, ExpPtr a, ExpPtr b) {
  return typed<Int64Op<K>>(t, [&](Pair& p) { p.a = std::move(a), p.b = std::move(b); });
}

template <typename T>
ExpPtr float_pair(ExprKind kind, DType t, ExpPtr& a, ExpPtr& b) {
  auto fill = [&](Pair& p) { p.a = std::move(a), p.b = std::move(b); };
  switch (kind) {
    case ExprKind::add: return typed<FloatOp<ExprKind::add, T>>(t, fill);
    case ExprKind::sub: return typed<FloatOp<ExprKind::sub, T>>(t, fill);
    case ExprKind::mul: return typed<FloatOp<ExprKind::mul, T>>(t, fill);
    case ExprKind::div: return typed<FloatOp<ExprKind::div, T>>(t, fill);
    case ExprKind::min: return typed<FloatOp<ExprKind::min, T>>(t, fill);
    case ExprKind::max: return typed<FloatOp<ExprKind::max, T>>(t, fill);
    default: return nullptr;
  }
}

}  // namespace

ExpPtr Compiler::scalar_binary(const BinaryNode* e) {
  ExpPtr a = expr(e->a), b = expr(e->b);
  DType t = e->a->dtype;
  auto fill = [&](auto& p) { p.a = std::move(a), p.b = std::move(b), p.kind = e->kind; };
  if (t.is_float()) {
    if (is_compare(e->kind)) return typed<FloatCompare>(e->dtype, fill);
    ExpPtr out = t.bits == 32   ? float_pair<float>(e->kind, e->dtype, a, b)
                 : t.bits == 64 ? float_pair<double>(e->kind, e->dtype, a, b)
                                : nullptr;
    return out ? std::move(out) : typed<SlowFloatOp>(e->dtype, fill);
  }
  if (t == dtypes::int64) {
    switch (e->kind) {
      case ExprKind::add: return pair64<ExprKind::add>(e->dtype, std::move(a), std::move(b));
      case ExprKind::sub: return pair64<ExprKind::sub>(e->dtype, std::move(a), std::move(b));
      case ExprKind::mul: return pair64<ExprKind::mul>(e->dtype, std::move(a), std::move(b));
      case ExprKind::floordiv:
        return pair64<ExprKind::floordiv>(e->dtype, std::move(a), std::move(b));
      case ExprKind::floormod:
        return pair64<ExprKind::floormod>(e->dtype, std::move(a), std::move(b));
      case ExprKind::lt: return pair64<ExprKind::lt>(e->dtype, std::move(a), std::move(b));
      case ExprKind::le: return pair64<ExprKind::le>(e->dtype, std::move(a), std::move(b));
      case ExprKind::eq: return pair64<ExprKind::eq>(e->dtype, std::move(a), std::move(b));
      default: break;
    }
  }
  return typed<IntOp>(e->dtype, fill, [&](IntOp& p) { p.operand = t; });
}

ExpPtr Compiler::load(const LoadNode* e) {
  if (machine_.order_only && e->buffer->scope == "global" && e->dtype.lanes == 1)
    return typed<Constant>(e->dtype, [](Constant& p) { p.value.i = 0; });
  Access a = access(e->buffer, e->indices);
  auto fill = [&](auto& p) { p.access = std::move(a); };
  if (a.vector) return typed<VectorLoad>(e->dtype, fill);
  DType t = e->dtype;
  if (t == dtypes::float32) return typed<ScalarLoad<float>>(t, fill);
  if (t == dtypes::float64) return typed<ScalarLoad<double>>(t, fill);
  if (t == dtypes::int64 || t == dtypes::uint64) return typed<ScalarLoad<std::int64_t>>(t, fill);
  if (t == dtypes::int32) return typed<ScalarLoad<std::int32_t>>(t, fill);
  if (t == dtypes::int8) return typed<ScalarLoad<std::int8_t>>(t, fill);
  return typed<SlowLoad>(t, fill);
}

ExpPtr Compiler::expr(const Expr& e) {
  DType t = e->dtype;
  switch (e->kind) {
    case ExprKind::var:
      return typed<Variable>(t, [&](Variable& p) { p.slot = slot(as<VarNode>(e)); });
    case ExprKind::int_imm:
      return typed<Constant>(t, [&](Constant& p) { p.value.i = as<IntImmNode>(e)->value; });
    case ExprKind::float_imm:
      return typed<Constant>(
          t, [&](Constant& p) { p.value.f = round_float(as<FloatImmNode>(e)->value, t); });
    case ExprKind::string_imm: return typed<Constant>(t, [&](Constant& p) { p.value.i = 0; });
    case ExprKind::cast:
      if (t.lanes == 1) return typed<Cast>(t, [&](Cast& p) { p.a = expr(as<CastNode>(e)->value); });
      return typed<VectorMap>(t, [&](VectorMap& p) {
        p.op = VectorMap::Op::cast, p.args.push_back(expr(as<CastNode>(e)->value));
      });
    case ExprKind::not_:
      if (t.lanes == 1) return typed<Not>(t, [&](Not& p) { p.a = expr(as<NotNode>(e)->a); });
      return typed<VectorMap>(t, [&](VectorMap& p) {
        p.op = VectorMap::Op::not_, p.args.push_back(expr(as<NotNode>(e)->a));
      });
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      return typed<Choose>(
          t, [&](Choose& p) { p.c = expr(s->condition), p.a = expr(s->a), p.b = expr(s->b); });
    }
    case ExprKind::call: return call(as<CallNode>(e));
    case ExprKind::load: return load(as<LoadNode>(e));
    case ExprKind::ramp:
      return typed<RampExp>(t, [&](RampExp& p) {
        p.a = expr(as<RampNode>(e)->base), p.b = expr(as<RampNode>(e)->stride);
      });
    case ExprKind::broadcast:
      return typed<BroadcastExp>(t,
                                 [&](BroadcastExp& p) { p.a = expr(as<BroadcastNode>(e)->value); });
    case ExprKind::let: {
      const auto* l = as<LetNode>(e);
      return typed<LetExp>(t, [&](LetExp& p) {
        p.value = expr(l->value);
        p.target = slot(l->var.get());
        p.body = expr(l->body);
      });
    }
    case ExprKind::reduce:
      throw Error(ErrorKind::verify, "interpret.reduce",
                  cat("a reduction of the front end is no part of a program: ", print(e)));
    default: break;
  }
  const auto* b = as<BinaryNode>(e);
  if (t.lanes == 1) return scalar_binary(b);
  return typed<VectorBinary>(
      t, [&](VectorBinary& p) { p.a = expr(b->a), p.b = expr(b->b), p.kind = b->kind; });
}

ExpPtr Compiler::call(const CallNode* e) {
  const Intrinsic* row = find_intrinsic(e->op);
  DType t = e->dtype;
  auto unsupported = [&] {
    return Error(ErrorKind::lower, "interpret.unsupported",
                 cat("the interpreter cannot evaluate \"", e->op, "\" inside an expression"));
  };
  if (e->op == "tensor_map") return tensor_map(e);
  if (!row || row->effect == IntrinsicEffect::effect || e->op == "address_of") throw unsupported();
  if (e->op == "if_then_else") {
    return typed<Choose>(t, [&](Choose& p) {
      p.c = expr(e->args[0]), p.a = expr(e->args[1]), p.b = expr(e->args[2]), p.lazy = true;
    });
  }
  if (e->op == "likely" || e->op == "nontemporal") return expr(e->args[0]);
  if (e->op == "reinterpret") {
    if (t.lanes != e->args[0]->dtype.lanes || t.bits != e->args[0]->dtype.bits) throw unsupported();
    if (t.lanes == 1) return typed<Reinterpret>(t, [&](Reinterpret& p) { p.a = expr(e->args[0]); });
    return typed<VectorMap>(t, [&](VectorMap& p) {
      p.op = VectorMap::Op::reinterpret, p.args.push_back(expr(e->args[0]));
    });
  }
  if (e->op == "vector_concat") {
    return typed<Concat>(t, [&](Concat& p) {
      for (const Expr& a : e->args) p.args.push_back(expr(a));
    });
  }
  if (e->op == "vector_interleave") {
    return typed<Interleave>(t, [&](Interleave& p) {
      for (const Expr& a : e->args) p.args.push_back(expr(a));
    });
  }
  if (e->op == "dot") {
    return typed<DotExp>(t, [&](DotExp& p) {
      p.sums = expr(e->args[0]), p.a = expr(e->args[1]), p.b = expr(e->args[2]);
    });
  }
  if (e->op == "vector_extract" || e->op.starts_with("vector_reduce")) {
    return typed<FromVector>(t, [&](FromVector& p) {
      p.how = e->op;
      p.vec = expr(e->args[0]);
      if (e->args.size() > 1) p.index = expr(e->args[1]);
    });
  }
  if (e->op == "masked_load") {
    const auto* l = as<LoadNode>(e->args[0]);
    if (!l) throw unsupported();
    return typed<VectorLoad>(t, [&](VectorLoad& p) {
      p.access = access(l->buffer, l->indices);
      p.mask = expr(e->args[1]);
      p.other = expr(e->args[2]);
    });
  }
  auto id = static_cast<IntrinsicId>(row - intrinsics().data());
  DType operand = e->args[0]->dtype.element();
  Lane probe[3] = {}, out;
  if (!eval_intrinsic(id, operand, {probe, e->args.size()}, &out)) throw unsupported();
  if (t.lanes == 1) {
    return typed<Intrinsic1>(t, [&](Intrinsic1& p) {
      p.id = id, p.operand = operand;
      for (const Expr& a : e->args) p.args.push_back(expr(a));
    });
  }
  return typed<VectorMap>(t, [&](VectorMap& p) {
    p.op = VectorMap::Op::intrinsic, p.id = id;
    for (const Expr& a : e->args) p.args.push_back(expr(a));
  });
}

}  // namespace weft::ir::interp
