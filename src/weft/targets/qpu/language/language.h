// SPDX-License-Identifier: Apache-2.0
#pragma once
// The vocabulary of kernels: vectors of 16 lanes that look like C++ values, statements as macros.
// Names follow QPULib, so its programs compile after changing include and namespace.

#include <bit>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "weft/targets/qpu/language/builder.h"

namespace weft::qpu {

using Here = std::source_location;
struct Int;
struct Uint;
struct Float;
template <typename T>
struct Ptr;
template <typename T>
struct Deref;

namespace detail {
inline Builder& b(const char* what) { return Builder::current(what); }
inline Builder& literal(const Here& here) {
  Builder& builder = b("a constant");
  builder.at(here);
  return builder;
}
template <typename A>
concept Arithmetic = std::is_arithmetic_v<A>;
inline const ast::Expr* op(ast::Op o, const ast::Expr* x, const ast::Expr* y = nullptr) {
  return b("an operator").expr(o, x, y);
}
}  // namespace detail

/// Right-hand sides. Not variables: they are evaluated where they are used.
struct IntExpr {
  const ast::Expr* expr = nullptr;
  IntExpr() = default;
  template <detail::Arithmetic A>
  IntExpr(A x, Here here = Here::current())
      : expr(detail::literal(here).constant(
            static_cast<std::uint32_t>(static_cast<std::int64_t>(x)))) {}
  IntExpr(const Int& v, Here here = Here::current());
  IntExpr(const Deref<Int>& d);
  static IntExpr of(const ast::Expr* e) {
    IntExpr r;
    r.expr = e;
    return r;
  }
};
struct UintExpr {
  const ast::Expr* expr = nullptr;
  UintExpr() = default;
  template <detail::Arithmetic A>
  UintExpr(A x, Here here = Here::current())
      : expr(detail::literal(here).constant(
            static_cast<std::uint32_t>(static_cast<std::int64_t>(x)))) {}
  UintExpr(const Uint& v, Here here = Here::current());
  UintExpr(const Deref<Uint>& d);
  static UintExpr of(const ast::Expr* e) {
    UintExpr r;
    r.expr = e;
    return r;
  }
};
struct FloatExpr {
  const ast::Expr* expr = nullptr;
  FloatExpr() = default;
  template <detail::Arithmetic A>
  FloatExpr(A x, Here here = Here::current())
      : expr(detail::literal(here).constant(std::bit_cast<std::uint32_t>(static_cast<float>(x)))) {}
  FloatExpr(const Float& v, Here here = Here::current());
  FloatExpr(const Deref<Float>& d);
  static FloatExpr of(const ast::Expr* e) {
    FloatExpr r;
    r.expr = e;
    return r;
  }
};
template <typename T>
struct PtrExpr {
  const ast::Expr* expr = nullptr;
  PtrExpr() = default;
  PtrExpr(const Ptr<T>& v) : expr(v.expr) {}
  static PtrExpr of(const ast::Expr* e) {
    PtrExpr r;
    r.expr = e;
    return r;
  }
  Deref<T> operator*() const { return {expr}; }
  Deref<T> operator[](IntExpr i) const;
};

namespace detail {
template <typename T>
struct ExprOf;
template <>
struct ExprOf<Int> {
  using type = IntExpr;
};
template <>
struct ExprOf<Uint> {
  using type = UintExpr;
};
template <>
struct ExprOf<Float> {
  using type = FloatExpr;
};
template <typename T>
struct ExprOf<Ptr<T>> {
  using type = PtrExpr<T>;
};
template <typename T>
using expr_of = typename ExprOf<T>::type;

void assign(std::uint32_t var, const ast::Expr* value);
void store_to(const ast::Expr* address, const ast::Expr* value, const ast::Expr* count,
              const Here& here);

/// A variable that exists already, for another object to stand for.
struct Adopt {
  std::uint32_t var = 0;
  const ast::Expr* expr = nullptr;
};

/// What all variables share: a number, fresh at construction.
struct Variable {
  std::uint32_t var;
  const ast::Expr* expr;
  explicit Variable(const char* what)
      : var(b(what).fresh()), expr(b(what).expr(ast::Op::var, nullptr, nullptr, var)) {}
  explicit Variable(Adopt a) : var(a.var), expr(a.expr) {}
};
}  // namespace detail

#define WEFT_QPU_VARIABLE(Type, ExprType)                                  \
  struct Type : detail::Variable {                                         \
    Type() : Variable(#Type) {}                                            \
    explicit Type(detail::Adopt a) : Variable(a) {}                        \
    Type(const Type& v) : Variable(#Type) { detail::assign(var, v.expr); } \
    Type(ExprType v) : Variable(#Type) { detail::assign(var, v.expr); }    \
    Type(const Deref<Type>& v) : Type(ExprType(v)) {}                      \
    template <detail::Arithmetic A>                                        \
    Type(A v) : Type(ExprType(v)) {}                                       \
    Type& operator=(const Type& v) {                                       \
      detail::assign(var, v.expr);                                         \
      return *this;                                                        \
    }                                                                      \
    Type& operator=(ExprType v) {                                          \
      detail::assign(var, v.expr);                                         \
      return *this;                                                        \
    }                                                                      \
    template <detail::Arithmetic A>                                        \
    Type& operator=(A v) {                                                 \
      return *this = ExprType(v);                                          \
    }                                                                      \
    Type& operator=(const Deref<Type>& v) { return *this = ExprType(v); }  \
    Type& operator+=(ExprType v) { return *this = ExprType(*this) + v; }   \
    Type& operator-=(ExprType v) { return *this = ExprType(*this) - v; }   \
    Type& operator*=(ExprType v) { return *this = ExprType(*this) * v; }

/// An address of 16-lane arithmetic; steps count elements.
template <typename T>
struct Ptr : detail::Variable {
  Ptr() : Variable("Ptr") {}
  explicit Ptr(detail::Adopt a) : Variable(a) {}
  Ptr(const Ptr& v) : Variable("Ptr") { detail::assign(var, v.expr); }
  Ptr(PtrExpr<T> v) : Variable("Ptr") { detail::assign(var, v.expr); }
  Ptr& operator=(const Ptr& v) {
    detail::assign(var, v.expr);
    return *this;
  }
  Ptr& operator=(PtrExpr<T> v) {
    detail::assign(var, v.expr);
    return *this;
  }
  template <typename N>
  Ptr& operator+=(const N& n) {
    return *this = PtrExpr<T>(*this) + n;
  }
  Deref<T> operator*() const { return {expr}; }
  Deref<T> operator[](IntExpr i) const { return PtrExpr<T>(*this)[i]; }
};

/// *p or p[i]: 16 consecutive words from lane 0's address on; read through the TMU, written through
/// the VPM.
template <typename T>
struct Deref {
  const ast::Expr* address;
  const ast::Expr* read() const { return detail::op(ast::Op::deref, address); }
  const Deref& operator=(detail::expr_of<T> v) const {
    detail::store_to(address, v.expr, nullptr, Here::current());
    return *this;
  }
  Deref& operator=(const Deref& d) {
    detail::store_to(address, d.read(), nullptr, Here::current());
    return *this;
  }
  Deref(const Deref&) = default;
  Deref(const ast::Expr* a) : address(a) {}
};

#define WEFT_QPU_BINARY(E, symbol, code) \
  inline E operator symbol(E x, E y) { return E::of(detail::op(ast::Op::code, x.expr, y.expr)); }
WEFT_QPU_BINARY(IntExpr, +, add)
WEFT_QPU_BINARY(IntExpr, -, sub)
WEFT_QPU_BINARY(IntExpr, *, mul)
WEFT_QPU_BINARY(IntExpr, <<, shl)
WEFT_QPU_BINARY(IntExpr, >>, asr)
WEFT_QPU_BINARY(IntExpr, &, bit_and)
WEFT_QPU_BINARY(IntExpr, |, bit_or)
WEFT_QPU_BINARY(IntExpr, ^, bit_xor)
WEFT_QPU_BINARY(UintExpr, +, add)
WEFT_QPU_BINARY(UintExpr, -, sub)
WEFT_QPU_BINARY(UintExpr, *, mul)
WEFT_QPU_BINARY(UintExpr, <<, shl)
WEFT_QPU_BINARY(UintExpr, >>, shr)
WEFT_QPU_BINARY(UintExpr, &, bit_and)
WEFT_QPU_BINARY(UintExpr, |, bit_or)
WEFT_QPU_BINARY(UintExpr, ^, bit_xor)
WEFT_QPU_BINARY(FloatExpr, +, fadd)
WEFT_QPU_BINARY(FloatExpr, -, fsub)
WEFT_QPU_BINARY(FloatExpr, *, fmul)
#undef WEFT_QPU_BINARY

WEFT_QPU_VARIABLE(Int, IntExpr)
void operator++(int) { *this = IntExpr(*this) + IntExpr(1); }
void operator++() { *this = IntExpr(*this) + IntExpr(1); }
void operator--(int) { *this = IntExpr(*this) - IntExpr(1); }
};
WEFT_QPU_VARIABLE(Uint, UintExpr)
void operator++(int) { *this = UintExpr(*this) + UintExpr(1); }
void operator++() { *this = UintExpr(*this) + UintExpr(1); }
}
;
WEFT_QPU_VARIABLE(Float, FloatExpr)
}
;
#undef WEFT_QPU_VARIABLE

inline IntExpr::IntExpr(const Int& v, Here here) : expr(v.expr) { detail::b("an Int").at(here); }
inline UintExpr::UintExpr(const Uint& v, Here here) : expr(v.expr) { detail::b("a Uint").at(here); }
inline FloatExpr::FloatExpr(const Float& v, Here here) : expr(v.expr) {
  detail::b("a Float").at(here);
}
inline IntExpr::IntExpr(const Deref<Int>& d) : expr(d.read()) {}
inline UintExpr::UintExpr(const Deref<Uint>& d) : expr(d.read()) {}
inline FloatExpr::FloatExpr(const Deref<Float>& d) : expr(d.read()) {}

inline IntExpr operator-(IntExpr x) { return IntExpr(0) - x; }
inline FloatExpr operator-(FloatExpr x) { return FloatExpr(0) - x; }
inline IntExpr operator~(IntExpr x) { return IntExpr::of(detail::op(ast::Op::bit_not, x.expr)); }
inline UintExpr operator~(UintExpr x) { return UintExpr::of(detail::op(ast::Op::bit_not, x.expr)); }

// Addresses.
namespace detail {
template <typename T>
PtrExpr<T> step(const ast::Expr* p, IntExpr n, ast::Op o) {
  return PtrExpr<T>::of(op(o, p, (n << IntExpr(2)).expr));
}
template <typename N>
concept Index = std::convertible_to<N, IntExpr>;
}  // namespace detail
template <typename T, detail::Index N>
PtrExpr<T> operator+(PtrExpr<T> p, const N& n) {
  return detail::step<T>(p.expr, IntExpr(n), ast::Op::add);
}
template <typename T, detail::Index N>
PtrExpr<T> operator+(const Ptr<T>& p, const N& n) {
  return detail::step<T>(p.expr, IntExpr(n), ast::Op::add);
}
template <typename T, detail::Index N>
PtrExpr<T> operator-(PtrExpr<T> p, const N& n) {
  return detail::step<T>(p.expr, IntExpr(n), ast::Op::sub);
}
template <typename T, detail::Index N>
PtrExpr<T> operator-(const Ptr<T>& p, const N& n) {
  return detail::step<T>(p.expr, IntExpr(n), ast::Op::sub);
}
template <typename T>
Deref<T> PtrExpr<T>::operator[](IntExpr i) const {
  return {(*this + i).expr};
}

// Functions.
inline IntExpr index(Here here = Here::current()) {
  Builder& b = detail::b("index()");
  b.at(here);
  return IntExpr::of(b.expr(ast::Op::element));
}
inline IntExpr me(Here here = Here::current()) {
  Builder& b = detail::b("me()");
  b.at(here);
  return IntExpr::of(b.expr(ast::Op::uniform, nullptr, nullptr, 0));
}
inline IntExpr numQPUs(Here here = Here::current()) {
  Builder& b = detail::b("numQPUs()");
  b.at(here);
  return IntExpr::of(b.expr(ast::Op::uniform, nullptr, nullptr, 1));
}
inline IntExpr min(IntExpr x, IntExpr y) {
  return IntExpr::of(detail::op(ast::Op::min, x.expr, y.expr));
}
inline IntExpr max(IntExpr x, IntExpr y) {
  return IntExpr::of(detail::op(ast::Op::max, x.expr, y.expr));
}
inline UintExpr min(UintExpr x, UintExpr y) {
  return UintExpr::of(detail::op(ast::Op::umin, x.expr, y.expr));
}
inline UintExpr max(UintExpr x, UintExpr y) {
  return UintExpr::of(detail::op(ast::Op::umax, x.expr, y.expr));
}
inline FloatExpr min(FloatExpr x, FloatExpr y) {
  return FloatExpr::of(detail::op(ast::Op::fmin, x.expr, y.expr));
}
inline FloatExpr max(FloatExpr x, FloatExpr y) {
  return FloatExpr::of(detail::op(ast::Op::fmax, x.expr, y.expr));
}
inline IntExpr rotate(IntExpr x, IntExpr n) {
  return IntExpr::of(detail::op(ast::Op::rotate, x.expr, n.expr));
}
inline UintExpr rotate(UintExpr x, IntExpr n) {
  return UintExpr::of(detail::op(ast::Op::rotate, x.expr, n.expr));
}
inline FloatExpr rotate(FloatExpr x, IntExpr n) {
  return FloatExpr::of(detail::op(ast::Op::rotate, x.expr, n.expr));
}
/// Lane `lane` of x in all lanes.
inline IntExpr broadcast(IntExpr x, unsigned lane) {
  return IntExpr::of(detail::b("broadcast").expr(ast::Op::broadcast, x.expr, nullptr, lane & 15));
}
inline FloatExpr broadcast(FloatExpr x, unsigned lane) {
  return FloatExpr::of(detail::b("broadcast").expr(ast::Op::broadcast, x.expr, nullptr, lane & 15));
}
/// The sum of all lanes, in all lanes.
inline FloatExpr sumLanes(FloatExpr x) {
  for (int n : {8, 4, 2, 1}) x = x + rotate(x, n);
  return x;
}
inline IntExpr sumLanes(IntExpr x) {
  for (int n : {8, 4, 2, 1}) x = x + rotate(x, n);
  return x;
}
inline FloatExpr maxLanes(FloatExpr x) {
  for (int n : {8, 4, 2, 1}) x = max(x, rotate(x, n));
  return x;
}
inline IntExpr shr(IntExpr x, IntExpr n) {
  return IntExpr::of(detail::op(ast::Op::shr, x.expr, n.expr));
}
inline IntExpr ror(IntExpr x, IntExpr n) {
  return IntExpr::of(detail::op(ast::Op::ror, x.expr, n.expr));
}
inline UintExpr ror(UintExpr x, IntExpr n) {
  return UintExpr::of(detail::op(ast::Op::ror, x.expr, n.expr));
}
inline IntExpr clz(IntExpr x) { return IntExpr::of(detail::op(ast::Op::clz, x.expr)); }
inline IntExpr mul24(IntExpr x, IntExpr y) {
  return IntExpr::of(detail::op(ast::Op::mul24, x.expr, y.expr));
}
inline IntExpr toInt(FloatExpr x) { return IntExpr::of(detail::op(ast::Op::ftoi, x.expr)); }
inline FloatExpr toFloat(IntExpr x) { return FloatExpr::of(detail::op(ast::Op::itof, x.expr)); }
inline UintExpr toUint(IntExpr x) { return UintExpr::of(x.expr); }
inline IntExpr toInt(UintExpr x) { return IntExpr::of(x.expr); }
/// The same bits, read as another type.
inline IntExpr bitsOf(FloatExpr x) { return IntExpr::of(x.expr); }
inline FloatExpr floatOf(IntExpr x) { return FloatExpr::of(x.expr); }
/// The SFU's approximations, relative error about 1e-4.
inline FloatExpr recip(FloatExpr x) { return FloatExpr::of(detail::op(ast::Op::recip, x.expr)); }
inline FloatExpr rsqrt(FloatExpr x) { return FloatExpr::of(detail::op(ast::Op::rsqrt, x.expr)); }
inline FloatExpr exp2(FloatExpr x) { return FloatExpr::of(detail::op(ast::Op::exp2, x.expr)); }
inline FloatExpr log2(FloatExpr x) { return FloatExpr::of(detail::op(ast::Op::log2, x.expr)); }
/// Refined by Newton steps to about 23 bits.
FloatExpr recipFull(FloatExpr x);
FloatExpr operator/(FloatExpr x, FloatExpr y);
/// Exact quotients toward zero and remainders; a division by zero gives an unspecified value.
UintExpr operator/(UintExpr x, UintExpr y);
UintExpr operator%(UintExpr x, UintExpr y);
IntExpr operator/(IntExpr x, IntExpr y);
IntExpr operator%(IntExpr x, IntExpr y);

// Conditions.
struct BoolExpr {
  const ast::Bool* cond;
};
struct Cond {
  const ast::Bool* cond;
  bool all;
};
namespace detail {
inline BoolExpr compare(ast::Compare c, ast::Kind k, const ast::Expr* x, const ast::Expr* y) {
  return {b("a comparison").boolean({ast::Bool::Op::compare, c, k, x, y, nullptr, nullptr})};
}
}  // namespace detail
#define WEFT_QPU_COMPARE(E, k)                                              \
  inline BoolExpr operator==(E x, E y) {                                    \
    return detail::compare(ast::Compare::eq, ast::Kind::k, x.expr, y.expr); \
  }                                                                         \
  inline BoolExpr operator!=(E x, E y) {                                    \
    return detail::compare(ast::Compare::ne, ast::Kind::k, x.expr, y.expr); \
  }                                                                         \
  inline BoolExpr operator<(E x, E y) {                                     \
    return detail::compare(ast::Compare::lt, ast::Kind::k, x.expr, y.expr); \
  }                                                                         \
  inline BoolExpr operator<=(E x, E y) {                                    \
    return detail::compare(ast::Compare::le, ast::Kind::k, x.expr, y.expr); \
  }                                                                         \
  inline BoolExpr operator>(E x, E y) {                                     \
    return detail::compare(ast::Compare::gt, ast::Kind::k, x.expr, y.expr); \
  }                                                                         \
  inline BoolExpr operator>=(E x, E y) {                                    \
    return detail::compare(ast::Compare::ge, ast::Kind::k, x.expr, y.expr); \
  }
WEFT_QPU_COMPARE(IntExpr, integer)
WEFT_QPU_COMPARE(UintExpr, uinteger)
WEFT_QPU_COMPARE(FloatExpr, real)
#undef WEFT_QPU_COMPARE
inline BoolExpr operator!(BoolExpr x) {
  return {
      detail::b("!").boolean({ast::Bool::Op::negate, {}, {}, nullptr, nullptr, x.cond, nullptr})};
}
inline BoolExpr operator&&(BoolExpr x, BoolExpr y) {
  return {detail::b("&&").boolean({ast::Bool::Op::both, {}, {}, nullptr, nullptr, x.cond, y.cond})};
}
inline BoolExpr operator||(BoolExpr x, BoolExpr y) {
  return {
      detail::b("||").boolean({ast::Bool::Op::either, {}, {}, nullptr, nullptr, x.cond, y.cond})};
}
inline Cond any(BoolExpr x) { return {x.cond, false}; }
inline Cond all(BoolExpr x) { return {x.cond, true}; }
inline IntExpr select(BoolExpr c, IntExpr x, IntExpr y) {
  return IntExpr::of(detail::b("select").select(c.cond, x.expr, y.expr));
}
inline UintExpr select(BoolExpr c, UintExpr x, UintExpr y) {
  return UintExpr::of(detail::b("select").select(c.cond, x.expr, y.expr));
}
inline FloatExpr select(BoolExpr c, FloatExpr x, FloatExpr y) {
  return FloatExpr::of(detail::b("select").select(c.cond, x.expr, y.expr));
}

// Memory. gather/receive: per-lane reads in flight (at most four); store: 16 words from lane 0's
// address on.
namespace detail {
void gather_from(const ast::Expr* address, const Here& here);
void receive_into(std::uint32_t var, const Here& here);
}  // namespace detail
template <typename T>
void gather(PtrExpr<T> p, Here here = Here::current()) {
  detail::gather_from(p.expr, here);
}
template <typename T>
void gather(const Ptr<T>& p, Here here = Here::current()) {
  detail::gather_from(p.expr, here);
}
inline void receive(Int& v, Here here = Here::current()) { detail::receive_into(v.var, here); }
inline void receive(Uint& v, Here here = Here::current()) { detail::receive_into(v.var, here); }
inline void receive(Float& v, Here here = Here::current()) { detail::receive_into(v.var, here); }
template <typename T>
void receive(Ptr<T>& v, Here here = Here::current()) {
  detail::receive_into(v.var, here);
}
inline void store(IntExpr v, PtrExpr<Int> p, Here here = Here::current()) {
  detail::store_to(p.expr, v.expr, nullptr, here);
}
inline void store(UintExpr v, PtrExpr<Uint> p, Here here = Here::current()) {
  detail::store_to(p.expr, v.expr, nullptr, here);
}
inline void store(FloatExpr v, PtrExpr<Float> p, Here here = Here::current()) {
  detail::store_to(p.expr, v.expr, nullptr, here);
}
/// Exactly min(n, 16) words; nothing when n <= 0. n is taken from lane 0.
inline void store(IntExpr v, PtrExpr<Int> p, IntExpr n, Here here = Here::current()) {
  detail::store_to(p.expr, v.expr, n.expr, here);
}
inline void store(UintExpr v, PtrExpr<Uint> p, IntExpr n, Here here = Here::current()) {
  detail::store_to(p.expr, v.expr, n.expr, here);
}
inline void store(FloatExpr v, PtrExpr<Float> p, IntExpr n, Here here = Here::current()) {
  detail::store_to(p.expr, v.expr, n.expr, here);
}
/// Per-lane read through the TMU as an expression.
inline IntExpr fetch(PtrExpr<Int> p) { return IntExpr::of(detail::op(ast::Op::fetch, p.expr)); }
inline UintExpr fetch(PtrExpr<Uint> p) { return UintExpr::of(detail::op(ast::Op::fetch, p.expr)); }
inline FloatExpr fetch(PtrExpr<Float> p) {
  return FloatExpr::of(detail::op(ast::Op::fetch, p.expr));
}
/// 16 words through the VPM: coherent with stores of the same launch.
inline IntExpr vload(PtrExpr<Int> p) { return IntExpr::of(detail::op(ast::Op::vload, p.expr)); }
inline UintExpr vload(PtrExpr<Uint> p) { return UintExpr::of(detail::op(ast::Op::vload, p.expr)); }
inline FloatExpr vload(PtrExpr<Float> p) {
  return FloatExpr::of(detail::op(ast::Op::vload, p.expr));
}
void flush(Here here = Here::current());
/// Words left out between the elements of *p as a value (read) and as a target (write).
void setReadStride(IntExpr n, Here here = Here::current());
void setWriteStride(IntExpr n, Here here = Here::current());

void semaInc(int number, Here here = Here::current());
void semaDec(int number, Here here = Here::current());
void hostIRQ(Here here = Here::current());
/// All QPUs of the launch meet; uses semaphores 11 to 14. Outstanding stores are waited for.
void barrier(Here here = Here::current());
void Print(const char* text, Here here = Here::current());
void Print(IntExpr x, Here here = Here::current());
void Print(UintExpr x, Here here = Here::current());
void Print(FloatExpr x, Here here = Here::current());
inline void Print(const Int& x, Here here = Here::current()) { Print(IntExpr(x), here); }
inline void Print(const Uint& x, Here here = Here::current()) { Print(UintExpr(x), here); }
inline void Print(const Float& x, Here here = Here::current()) { Print(FloatExpr(x), here); }

// Statement tokens behind the macros.
void If_(Cond c, Here here = Here::current());
void While_(Cond c, Here here = Here::current());
void For_(Cond c, Here here = Here::current());
inline void If_(BoolExpr b, Here here = Here::current()) { If_(any(b), here); }
inline void While_(BoolExpr b, Here here = Here::current()) { While_(any(b), here); }
inline void For_(BoolExpr b, Here here = Here::current()) { For_(any(b), here); }
void ForBody_();
void Where_(BoolExpr b, Here here = Here::current());
void Else_(Here here = Here::current());
void End_(Here here = Here::current());

}  // namespace weft::qpu
