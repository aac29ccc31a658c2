// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar meaning of the functions that table rows are written in. Everything has internal
// linkage: this header is compiled several times for different processors, and the linker must not
// join the copies.

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <cmath>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__FAST_MATH__)
// glibc's vector mathematics: declaring the variants lets the compiler use them in loops.
#define WEFT_SIMD1(name)                                                               \
  extern "C" __attribute__((simd("notinbranch"), const)) double name(double) noexcept; \
  extern "C" __attribute__((simd("notinbranch"), const)) float name##f(float) noexcept;
WEFT_SIMD1(exp)
WEFT_SIMD1(log)
WEFT_SIMD1(sin)
WEFT_SIMD1(cos)
WEFT_SIMD1(tan)
WEFT_SIMD1(asin)
WEFT_SIMD1(acos)
WEFT_SIMD1(atan)
WEFT_SIMD1(sinh)
WEFT_SIMD1(cosh)
WEFT_SIMD1(tanh)
WEFT_SIMD1(asinh)
WEFT_SIMD1(acosh)
WEFT_SIMD1(atanh)
WEFT_SIMD1(exp2)
WEFT_SIMD1(expm1)
WEFT_SIMD1(log2)
WEFT_SIMD1(log10)
WEFT_SIMD1(log1p)
WEFT_SIMD1(erf)
#undef WEFT_SIMD1
#endif

#define WEFT_INLINE static inline __attribute__((always_inline))

namespace {

using cfloat = std::complex<float>;
using cdouble = std::complex<double>;

template <typename T>
constexpr bool is_cx = false;
template <>
constexpr bool is_cx<cfloat> = true;
template <>
constexpr bool is_cx<cdouble> = true;
template <typename T>
constexpr bool is_fl = std::is_floating_point_v<T>;
template <typename T>
constexpr bool is_int = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// Functions of libm on reals, of the C++ library on complex numbers.
#define WEFT_MATH(name)                                             \
  template <typename T>                                             \
  WEFT_INLINE T name##_(T x) {                                      \
    if constexpr (std::is_same_v<T, float>) return ::name##f(x);    \
    else if constexpr (std::is_same_v<T, double>) return ::name(x); \
    else return std::name(x);                                       \
  }
WEFT_MATH(acos)
WEFT_MATH(acosh)
WEFT_MATH(asin)
WEFT_MATH(asinh)
WEFT_MATH(atan)
WEFT_MATH(atanh)
WEFT_MATH(cos)
WEFT_MATH(cosh)
WEFT_MATH(log10)
WEFT_MATH(sin)
WEFT_MATH(sinh)
WEFT_MATH(tan)
WEFT_MATH(sqrt)
WEFT_MATH(exp)
WEFT_MATH(log)
template <typename T>
WEFT_INLINE T tanh_(T x) {
  if constexpr (std::is_same_v<T, float>) return ::tanhf(x);
  else if constexpr (std::is_same_v<T, double>) return ::tanh(x);
  else {
    using R = typename T::value_type;
    if (std::isinf(x.real()) && std::isfinite(x.imag()))
      return T(std::copysign(R(1), x.real()), std::copysign(R(0), x.imag()));
    return std::tanh(x);
  }
}
#define WEFT_MATH_REAL(name)                                     \
  template <typename T>                                          \
  WEFT_INLINE T name##_(T x) {                                   \
    if constexpr (std::is_same_v<T, float>) return ::name##f(x); \
    else return ::name(x);                                       \
  }
WEFT_MATH_REAL(erf)
WEFT_MATH_REAL(exp2)

template <typename T>
WEFT_INLINE T one_(T) {
  return T(1);
}
template <typename T>
WEFT_INLINE T lit_(double v) {
  return static_cast<T>(v);
}

template <typename T>
WEFT_INLINE auto abs_(T x) {
  if constexpr (is_cx<T>) return std::hypot(x.real(), x.imag());
  else if constexpr (is_fl<T>) return std::fabs(x);
  else if constexpr (std::is_signed_v<T>) return static_cast<T>(x < 0 ? -x : x);
  else return x;
}
template <typename T>
WEFT_INLINE T expm1_(T x) {
  if constexpr (std::is_same_v<T, float>) return ::expm1f(x);
  else if constexpr (std::is_same_v<T, double>) return ::expm1(x);
  else {
    using R = typename T::value_type;
    if (x.imag() == 0 || !(std::fabs(x.real()) < std::numeric_limits<R>::infinity()) ||
        !(std::fabs(x.imag()) < std::numeric_limits<R>::infinity())) {
      if (x.imag() == 0) return T(x.real() == 0 ? R(0) : std::expm1(x.real()), x.imag());
      T z = std::exp(x);
      return T(z.real() - 1, z.imag());
    }
    R s = std::sin(x.imag() / 2);
    return T(std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s,
             std::exp(x.real()) * std::sin(x.imag()));
  }
}
template <typename T>
WEFT_INLINE T log1p_(T x) {
  if constexpr (std::is_same_v<T, float>) return ::log1pf(x);
  else if constexpr (std::is_same_v<T, double>) return ::log1p(x);
  else {
    using R = typename T::value_type;
    R re = x.real(), im = x.imag();
    // |1 + x|^2 - 1 = re * (2 + re) + im^2 keeps the small numbers.
    if (std::fabs(re) < R(0.5) && std::fabs(im) < R(0.5)) {
      return T(R(0.5) * std::log1p(re * (2 + re) + im * im), std::atan2(im, 1 + re));
    }
    return std::log(T(1 + re, im));
  }
}
template <typename T>
WEFT_INLINE T log2_(T x) {
  if constexpr (std::is_same_v<T, float>) return ::log2f(x);
  else if constexpr (std::is_same_v<T, double>) return ::log2(x);
  else return std::log(x) * T(typename T::value_type(1.4426950408889634073599));
}
template <typename T>
WEFT_INLINE T invert_(T x) {
  if constexpr (std::is_same_v<T, bool>) return !x;
  else return static_cast<T>(~x);
}
#define WEFT_ROUNDING(name, call)                                                \
  template <typename T>                                                          \
  WEFT_INLINE T name##_(T x) {                                                   \
    if constexpr (std::is_same_v<T, float>) return __builtin_##call##f(x);       \
    else if constexpr (std::is_same_v<T, double>) return __builtin_##call(x);    \
    else if constexpr (is_cx<T>) return T(name##_(x.real()), name##_(x.imag())); \
    else return x;                                                               \
  }
WEFT_ROUNDING(ceil, ceil)
WEFT_ROUNDING(floor, floor)
WEFT_ROUNDING(trunc, trunc)
WEFT_ROUNDING(round, rint)  // the default rounding mode is to nearest, ties to even
template <typename T>
WEFT_INLINE T conj_(T x) {
  if constexpr (is_cx<T>) return T(x.real(), -x.imag());
  else return x;
}
template <typename T>
WEFT_INLINE auto real_(T x) {
  if constexpr (is_cx<T>) return x.real();
  else return x;
}
template <typename T>
WEFT_INLINE auto imag_(T x) {
  if constexpr (is_cx<T>) return x.imag();
  else return T(0);
}
template <typename T>
WEFT_INLINE bool isnan_(T x) {
  if constexpr (is_cx<T>) return (x.real() != x.real()) | (x.imag() != x.imag());
  else if constexpr (is_fl<T>) return x != x;
  else return false;
}
template <typename T>
WEFT_INLINE bool isinf_(T x) {
  if constexpr (is_cx<T>) return isinf_(x.real()) | isinf_(x.imag());
  else if constexpr (is_fl<T>) return std::fabs(x) == std::numeric_limits<T>::infinity();
  else return false;
}
template <typename T>
WEFT_INLINE bool isfinite_(T x) {
  if constexpr (is_cx<T>) return isfinite_(x.real()) & isfinite_(x.imag());
  else if constexpr (is_fl<T>) return std::fabs(x) < std::numeric_limits<T>::infinity();
  else return true;
}
template <typename T>
WEFT_INLINE T neg_(T x) {
  return static_cast<T>(-x);
}
template <typename T>
WEFT_INLINE T relu_(T x) {
  return x < T(0) ? T(0) : x;
}  // NaN passes
template <typename T>
WEFT_INLINE bool signbit_(T x) {
  return std::signbit(x);
}
template <typename T>
WEFT_INLINE T sigmoid_(T x) {
  return T(1) / (T(1) + exp_(-x));
}
template <typename T>
WEFT_INLINE T sign_(T x) {
  if constexpr (is_cx<T>) {
    auto m = abs_(x);
    return m == 0 ? T(0) : T(x.real() / m, x.imag() / m);
  } else if constexpr (is_fl<T>) {
    return x != x ? x : static_cast<T>((x > 0) - (x < 0));
  } else {
    return static_cast<T>((x > 0) - (x < T(0)));
  }
}

template <typename T>
WEFT_INLINE T add_(T x, T y) {
  return static_cast<T>(x + y);
}
template <typename T>
WEFT_INLINE T sub_(T x, T y) {
  return static_cast<T>(x - y);
}
template <typename T>
WEFT_INLINE T mul_(T x, T y) {
  if constexpr (is_cx<T>) {
    return T(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
  } else if constexpr (is_int<T> && sizeof(T) < 4) {
    return static_cast<T>(static_cast<unsigned>(x) * static_cast<unsigned>(y));
  } else {
    return static_cast<T>(x * y);
  }
}
template <typename T>
WEFT_INLINE T divide_(T x, T y) {
  if constexpr (is_cx<T>) {  // Smith's method: no overflow in between
    using R = typename T::value_type;
    R a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
    if (std::fabs(c) >= std::fabs(d)) {
      if (c == 0 && d == 0) return T(a / c, b / c);
      R r = d / c, m = c + d * r;
      return T((a + b * r) / m, (b - a * r) / m);
    }
    R r = c / d, m = d + c * r;
    return T((a * r + b) / m, (b * r - a) / m);
  } else {
    return x / y;
  }
}
template <typename T>
WEFT_INLINE T and_(T x, T y) {
  return static_cast<T>(x & y);
}
template <typename T>
WEFT_INLINE T or_(T x, T y) {
  return static_cast<T>(x | y);
}
template <typename T>
WEFT_INLINE T xor_(T x, T y) {
  return static_cast<T>(x ^ y);
}
template <typename T>
WEFT_INLINE T shl_(T x, T y) {
  using U = std::make_unsigned_t<T>;
  constexpr U bits = sizeof(T) * 8;
  return static_cast<U>(y) >= bits ? T(0) : static_cast<T>(static_cast<U>(x) << y);
}
template <typename T>
WEFT_INLINE T shr_(T x, T y) {
  using U = std::make_unsigned_t<T>;
  constexpr U bits = sizeof(T) * 8;
  return static_cast<U>(y) >= bits ? static_cast<T>(x < T(0) ? -1 : 0) : static_cast<T>(x >> y);
}
template <typename T>
WEFT_INLINE bool eq_(T x, T y) {
  return x == y;
}
template <typename T>
WEFT_INLINE bool ne_(T x, T y) {
  return x != y;
}
template <typename T>
WEFT_INLINE bool gt_(T x, T y) {
  return x > y;
}
template <typename T>
WEFT_INLINE bool ge_(T x, T y) {
  return x >= y;
}
template <typename T>
WEFT_INLINE T max_(T x, T y) {
  if constexpr (is_fl<T>) return (x > y || x != x) ? x : y;
  else return x > y ? x : y;
}
template <typename T>
WEFT_INLINE T min_(T x, T y) {
  if constexpr (is_fl<T>) return (x < y || x != x) ? x : y;
  else return x < y ? x : y;
}
template <typename T>
WEFT_INLINE T atan2_(T x, T y) {
  return std::atan2(x, y);
}
template <typename T>
WEFT_INLINE T copysign_(T x, T y) {
  return std::copysign(x, y);
}
template <typename T>
WEFT_INLINE T hypot_(T x, T y) {
  return std::hypot(x, y);
}
template <typename T>
WEFT_INLINE T nextafter_(T x, T y) {
  return std::nextafter(x, y);
}
template <typename T>
WEFT_INLINE T logaddexp_(T x, T y) {
  T m = max_(x, y), d = std::fabs(x - y);
  return d != d ? (x == y ? x : x + y)
                : m + log1p_(exp_(-d));  // equal infinities have no difference
}
template <typename T>
WEFT_INLINE T remainder_(T x, T y) {
  if constexpr (is_fl<T>) {
    T m = std::fmod(x, y);
    if (m == 0) return std::copysign(T(0), y);
    return ((m < 0) != (y < 0)) ? m + y : m;
  } else {
    if (y == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (y == T(-1)) return 0;
      T m = static_cast<T>(x % y);
      return static_cast<T>(m != 0 && ((m < 0) != (y < 0)) ? m + y : m);
    } else {
      return static_cast<T>(x % y);
    }
  }
}
template <typename T>
WEFT_INLINE T floor_divide_(T x, T y) {
  if constexpr (is_fl<T>) {
    T q = x / y;
    if (y == 0 || !(std::fabs(x) < std::numeric_limits<T>::infinity()) || q == 0) return floor_(q);
    T m = std::fmod(x, y);
    T d = (x - m) / y;
    if (m != 0 && ((m < 0) != (y < 0))) d -= 1;
    if (d == 0) return std::copysign(T(0), q);
    T f = floor_(d);
    return d - f > T(0.5) ? f + 1 : f;
  } else {
    if (y == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (y == T(-1)) return static_cast<T>(-x);
      T q = static_cast<T>(x / y);
      return static_cast<T>(q - ((x % y != 0) && ((x < 0) != (y < 0))));
    } else {
      return static_cast<T>(x / y);
    }
  }
}
template <typename T>
WEFT_INLINE T pow_(T x, T y) {
  if constexpr (std::is_same_v<T, float>) {
    return ::powf(x, y);
  } else if constexpr (std::is_same_v<T, double>) {
    return ::pow(x, y);
  } else if constexpr (is_cx<T>) {
    return std::pow(x, y);
  } else {
    if (y < T(0))
      return x == T(1) ? T(1)
                       : (x == static_cast<T>(-1) ? ((y & 1) ? static_cast<T>(-1) : T(1)) : T(0));
    T result = 1;
    while (y) {
      if (y & 1) result = mul_(result, x);
      x = mul_(x, x);
      y = static_cast<T>(y >> 1);
    }
    return result;
  }
}

}  // namespace
