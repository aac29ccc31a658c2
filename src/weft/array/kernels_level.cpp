// SPDX-License-Identifier: Apache-2.0
// The kernels of one group of element types for one processor level. Compiled once for each pair
// (WEFT_GROUP: 0 integers, 1 reals, 2 bool and complex, 3 casts; WEFT_LEVEL: a name).

#include <cstring>

#include "weft/array/kernels.h"
#include "weft/array/ops/value.h"

#define WEFT_JOIN2(a, b) a##_##b
#define WEFT_JOIN(a, b) WEFT_JOIN2(a, b)
#define WEFT_FILL(group) WEFT_JOIN(WEFT_JOIN(fill, group), WEFT_LEVEL)

namespace weft {
namespace {

constexpr int B = 1, I = 2, U = 4, F = 8, C = 16;

template <typename T>
constexpr int category() {
  if constexpr (std::is_same_v<T, bool>) return B;
  else if constexpr (is_cx<T>) return C;
  else if constexpr (is_fl<T>) return F;
  else if constexpr (std::is_signed_v<T>) return I;
  else return U;
}

#define UNARY(name, rule, types, value, grad, domain, sentence) \
  struct Row_##name {                                           \
    static constexpr int kTypes = types, kArity = 1;            \
    template <typename T>                                       \
    WEFT_INLINE auto f(T x) {                                   \
      return value;                                             \
    }                                                           \
  };
#define BINARY(name, rule, types, value, gx, gy, domain, sentence) \
  struct Row_##name {                                              \
    static constexpr int kTypes = types, kArity = 2;               \
    template <typename T>                                          \
    WEFT_INLINE auto f(T x, T y) {                                 \
      return value;                                                \
    }                                                              \
  };
#include "weft/array/ops/elementwise.def"
#undef UNARY
#undef BINARY
#define REDUCE(name, rule, types, value, identity, sentence) \
  struct Reduce_##name {                                     \
    static constexpr int kTypes = types;                     \
    template <typename T>                                    \
    WEFT_INLINE T f(T a, T x) {                              \
      return value;                                          \
    }                                                        \
  };
#include "weft/array/ops/reduce.def"
#undef REDUCE

// Reals go through one function of 16 elements, tails as a padded copy, so that an element's result
// does not depend on where in the array it stands (vector and scalar mathematics may differ in the
// last bit, and so may two widths of vector).
constexpr std::int64_t kBlock = 16;

template <typename Row, typename T, typename R>
__attribute__((noinline)) void block(const T* x, R* out) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < kBlock; ++i) out[i] = Row::template f<T>(x[i]);
}

template <typename Row, typename T>
void unary(std::int64_t n, const void* const* in, void* out_) {
  using R = decltype(Row::template f<T>(T{}));
  const T* x = static_cast<const T*>(in[0]);
  R* out = static_cast<R*>(out_);
  if constexpr (!is_fl<T>) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) out[i] = Row::template f<T>(x[i]);
  } else {
    std::int64_t whole = n / kBlock * kBlock;
    for (std::int64_t i = 0; i < whole; i += kBlock) block<Row, T, R>(x + i, out + i);
    std::int64_t rest = n - whole;
    if (rest == 0) return;
    alignas(64) T buffer[kBlock];
    alignas(64) R result[kBlock];
    for (std::int64_t i = 0; i < kBlock; ++i) buffer[i] = i < rest ? x[whole + i] : T(1);
    block<Row, T, R>(buffer, result);
    for (std::int64_t i = 0; i < rest; ++i) out[whole + i] = result[i];
  }
}

template <typename Row, typename T>
void binary(std::int64_t n, const void* const* in, void* out_) {
  using R = decltype(Row::template f<T>(T{}, T{}));
  const T* x = static_cast<const T*>(in[0]);
  const T* y = static_cast<const T*>(in[1]);
  R* out = static_cast<R*>(out_);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = Row::template f<T>(x[i], y[i]);
}

template <typename Row, typename T>
void reduce(std::int64_t n, const void* in, void* acc_) {
  const T* x = static_cast<const T*>(in);
  T* acc = static_cast<T*>(acc_);
  constexpr int kLanes =
      128 / static_cast<int>(sizeof(T)) < 16 ? 16 : 128 / static_cast<int>(sizeof(T));
  std::int64_t i = 0;
  if (n >= 2 * kLanes) {
    T lanes[kLanes];
    for (int l = 0; l < kLanes; ++l) lanes[l] = x[l];
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] = Row::template f<T>(lanes[l], x[i + l]);
    }
    for (int width = kLanes / 2; width; width /= 2) {
      for (int l = 0; l < width; ++l) lanes[l] = Row::template f<T>(lanes[l], lanes[l + width]);
    }
    *acc = Row::template f<T>(*acc, lanes[0]);
  }
  T value = *acc;
  for (; i < n; ++i) value = Row::template f<T>(value, x[i]);
  *acc = value;
}

template <typename Row, typename T>
void accumulate(std::int64_t n, const void* in, void* acc_) {
  const T* x = static_cast<const T*>(in);
  T* acc = static_cast<T*>(acc_);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) acc[i] = Row::template f<T>(acc[i], x[i]);
}

template <typename Row, typename T>
void scan(std::int64_t n, const void* in, void* out_, void* acc_) {
  const T* x = static_cast<const T*>(in);
  T* out = static_cast<T*>(out_);
  T acc = *static_cast<T*>(acc_);
  for (std::int64_t i = 0; i < n; ++i) out[i] = acc = Row::template f<T>(acc, x[i]);
  *static_cast<T*>(acc_) = acc;
}

template <typename T>
void select(std::int64_t n, const bool* condition, const void* a_, const void* b_, void* out_) {
  const T* a = static_cast<const T*>(a_);
  const T* b = static_cast<const T*>(b_);
  T* out = static_cast<T*>(out_);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = condition[i] ? a[i] : b[i];
}

#if WEFT_GROUP == 1
// ---- rows. Sums run in kLane running sums joined pairwise, so they vectorise and keep their
// order.
constexpr int kLane = 32;

template <typename T, typename F>
WEFT_INLINE T row_sum(std::int64_t n, F term) {
  T lanes[kLane] = {};
  std::int64_t i = 0;
  for (; i + kLane <= n; i += kLane) {
    for (int l = 0; l < kLane; ++l) lanes[l] += term(i + l);
  }
  for (int l = 0; i < n; ++i, ++l) lanes[l] += term(i);
  for (int width = kLane / 2; width; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  return lanes[0];
}
/// Largest element; NaN if there is one.
template <typename T>
WEFT_INLINE T row_max(std::int64_t n, const T* x) {
  T lanes[kLane];
  for (int l = 0; l < kLane; ++l) lanes[l] = -std::numeric_limits<T>::infinity();
  std::int64_t i = 0;
  for (; i + kLane <= n; i += kLane) {
    for (int l = 0; l < kLane; ++l) lanes[l] = max_(x[i + l], lanes[l]);
  }
  for (int l = 0; i < n; ++i, ++l) lanes[l] = max_(x[i], lanes[l]);
  for (int width = kLane / 2; width; width /= 2) {
    for (int l = 0; l < width; ++l) lanes[l] = max_(lanes[l], lanes[l + width]);
  }
  return lanes[0];
}
/// out[i] = exp(x[i] - m) through the function of 16 elements; `out` may be x.
template <typename T>
struct ExpShifted {
  T m;
  __attribute__((noinline)) static void block(const T* x, T m, T* out) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < kBlock; ++i) out[i] = exp_(x[i] - m);
  }
  void operator()(std::int64_t n, const T* x, T* out) const {
    std::int64_t i = 0;
    for (; i + kBlock <= n; i += kBlock) block(x + i, m, out + i);
    if (i == n) return;
    alignas(64) T tail[kBlock] = {};
    for (std::int64_t j = 0; i + j < n; ++j) tail[j] = x[i + j];
    block(tail, m, tail);
    for (std::int64_t j = 0; i + j < n; ++j) out[i + j] = tail[j];
  }
};

template <typename T>
void softmax_row(std::int64_t n, const void* const* in, void* out_, double) {
  const T* x = static_cast<const T*>(in[0]);
  T* out = static_cast<T*>(out_);
  ExpShifted<T>{row_max(n, x)}(n, x, out);
  const T scale = T(1) / row_sum<T>(n, [&](std::int64_t i) { return out[i]; });
  for (std::int64_t i = 0; i < n; ++i) out[i] *= scale;
}
/// Sum of exp(x - m) over a row, through a buffer in the first cache.
template <typename T>
T exp_sum(std::int64_t n, const T* x, T m) {
  constexpr std::int64_t kPiece = 512;
  alignas(64) T piece[kPiece];
  T total = 0;
  for (std::int64_t i = 0; i < n; i += kPiece) {
    std::int64_t c = n - i < kPiece ? n - i : kPiece;
    ExpShifted<T>{m}(c, x + i, piece);
    total += row_sum<T>(c, [&](std::int64_t j) { return piece[j]; });
  }
  return total;
}
template <typename T>
T logsumexp_of(std::int64_t n, const T* x, T& m) {
  m = row_max(n, x);
  if (m == -std::numeric_limits<T>::infinity() || m == std::numeric_limits<T>::infinity() || m != m)
    return 0;
  return log_(exp_sum(n, x, m));
}
template <typename T>
void log_softmax_row(std::int64_t n, const void* const* in, void* out_, double) {
  const T* x = static_cast<const T*>(in[0]);
  T* out = static_cast<T*>(out_);
  const T m = row_max(n, x), rest = log_(exp_sum(n, x, m));
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] - m - rest;
}
template <typename T>
void logsumexp_row(std::int64_t n, const void* const* in, void* out_, double) {
  T m, rest = logsumexp_of(n, static_cast<const T*>(in[0]), m);
  *static_cast<T*>(out_) = m + rest;
}
template <typename T>
void softmax_gradient_row(std::int64_t n, const void* const* in, void* out_, double) {
  const T *y = static_cast<const T*>(in[0]), *g = static_cast<const T*>(in[1]);
  T* out = static_cast<T*>(out_);
  const T s = row_sum<T>(n, [&](std::int64_t i) { return g[i] * y[i]; });
  for (std::int64_t i = 0; i < n; ++i) out[i] = y[i] * (g[i] - s);
}
template <typename T>
void log_softmax_gradient_row(std::int64_t n, const void* const* in, void* out_, double) {
  const T *y = static_cast<const T*>(in[0]), *g = static_cast<const T*>(in[1]);
  T* out = static_cast<T*>(out_);
  const T s = row_sum<T>(n, [&](std::int64_t i) { return g[i]; });
  constexpr std::int64_t kPiece = 512;
  alignas(64) T piece[kPiece];
  for (std::int64_t i = 0; i < n; i += kPiece) {
    std::int64_t c = n - i < kPiece ? n - i : kPiece;
    ExpShifted<T>{T(0)}(c, y + i, piece);
    for (std::int64_t j = 0; j < c; ++j) out[i + j] = g[i + j] - piece[j] * s;
  }
}
template <typename T>
WEFT_INLINE void moments(std::int64_t n, const T* x, double eps, T& mean, T& scale) {
  const T m = row_sum<T>(n, [&](std::int64_t i) { return x[i]; }) / static_cast<T>(n);
  const T v = row_sum<T>(n, [&](std::int64_t i) { return (x[i] - m) * (x[i] - m); });
  mean = m;
  scale = T(1) / sqrt_(v / static_cast<T>(n) + static_cast<T>(eps));
}
template <typename T>
void layer_norm_row(std::int64_t n, const void* const* in, void* out_, double eps) {
  const T *x = static_cast<const T*>(in[0]), *w = static_cast<const T*>(in[1]),
          *b = static_cast<const T*>(in[2]);
  T* out = static_cast<T*>(out_);
  T mean, scale;
  moments(n, x, eps, mean, scale);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * scale * w[i] + b[i];
}
template <typename T>
void layer_norm_gradient_row(std::int64_t n, const void* const* in, void* out_, double eps) {
  const T *x = static_cast<const T*>(in[0]), *g = static_cast<const T*>(in[1]);
  T* out = static_cast<T*>(out_);
  T mean, scale;
  moments(n, x, eps, mean, scale);
  const T share = T(1) / static_cast<T>(n);
  const T a = row_sum<T>(n, [&](std::int64_t i) { return g[i]; }) * share;
  const T b =
      row_sum<T>(n, [&](std::int64_t i) { return g[i] * (x[i] - mean); }) * share * scale * scale;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = scale * (g[i] - a - (x[i] - mean) * b);
}

template <typename T>
void fill_rows(KernelTable& table, Elem elem) {
  const int e = static_cast<int>(elem);
  auto put = [&](RowKernel k, RowFn fn) { table.row[static_cast<int>(k)][e] = fn; };
  put(RowKernel::softmax, softmax_row<T>);
  put(RowKernel::log_softmax, log_softmax_row<T>);
  put(RowKernel::softmax_gradient, softmax_gradient_row<T>);
  put(RowKernel::log_softmax_gradient, log_softmax_gradient_row<T>);
  put(RowKernel::layer_norm, layer_norm_row<T>);
  put(RowKernel::layer_norm_gradient, layer_norm_gradient_row<T>);
  put(RowKernel::logsumexp, logsumexp_row<T>);
}
#endif

template <typename T>
void fill(KernelTable& table, Elem elem) {
  const int e = static_cast<int>(elem);
#define UNARY(name, ...)                                   \
  if constexpr ((Row_##name::kTypes & category<T>()) != 0) \
    table.elementwise[static_cast<int>(Op::name)][e] = unary<Row_##name, T>;
#define BINARY(name, ...)                                  \
  if constexpr ((Row_##name::kTypes & category<T>()) != 0) \
    table.elementwise[static_cast<int>(Op::name)][e] = binary<Row_##name, T>;
#include "weft/array/ops/elementwise.def"
#undef UNARY
#undef BINARY
#define REDUCE(name, ...)                                                                 \
  if constexpr ((Reduce_##name::kTypes & category<T>()) != 0) {                           \
    table.reduce[static_cast<int>(ReduceOp::name)][e] = reduce<Reduce_##name, T>;         \
    table.accumulate[static_cast<int>(ReduceOp::name)][e] = accumulate<Reduce_##name, T>; \
    table.scan[static_cast<int>(ReduceOp::name)][e] = scan<Reduce_##name, T>;             \
  }
#include "weft/array/ops/reduce.def"
#undef REDUCE
  table.select[e] = select<T>;
}

#if WEFT_GROUP == 3
// ---- casts
struct Half {
  _Float16 v;
};
struct Brain {
  std::uint16_t bits;
};

WEFT_INLINE float widen(Half x) { return static_cast<float>(x.v); }
WEFT_INLINE float widen(Brain x) {
  std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
WEFT_INLINE Brain to_brain(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  std::uint32_t quiet = (bits >> 16) | 0x40u;
  return {static_cast<std::uint16_t>(x != x ? quiet : rounded)};
}

template <typename To, typename From>
WEFT_INLINE To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, Brain>) {
    return convert<To>(widen(x));
  } else if constexpr (is_cx<From>) {
    if constexpr (is_cx<To>)
      return To(static_cast<typename To::value_type>(x.real()),
                static_cast<typename To::value_type>(x.imag()));
    else if constexpr (std::is_same_v<To, bool>) return x.real() != 0 || x.imag() != 0;
    else return convert<To>(x.real());
  } else if constexpr (is_cx<To>) {
    return To(static_cast<typename To::value_type>(x), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_same_v<To, Half>) {
    return {static_cast<_Float16>(x)};
  } else if constexpr (std::is_same_v<To, Brain>) {
    if constexpr (std::is_same_v<From, double> || (is_int<From> && sizeof(From) >= 4)) {
      // Round to odd at 24 bits first: rounding twice would be wrong for halves.
      double d = static_cast<double>(x);
      float f = static_cast<float>(d);
      if (static_cast<double>(f) != d && f == f &&
          std::fabs(f) < std::numeric_limits<float>::infinity()) {
        std::uint32_t bits;
        std::memcpy(&bits, &f, 4);
        if ((std::fabs(static_cast<double>(f)) > std::fabs(d))) bits -= 1;
        bits |= 1;
        std::memcpy(&f, &bits, 4);
      }
      return to_brain(f);
    } else {
      return to_brain(static_cast<float>(x));
    }
  } else if constexpr (is_fl<From> && is_int<To>) {
    if constexpr (sizeof(To) < 4) return static_cast<To>(static_cast<std::int32_t>(x));
    else if constexpr (std::is_same_v<To, std::uint64_t>)
      return x < From(9223372036854775808.0)
                 ? static_cast<To>(static_cast<std::int64_t>(x))
                 : static_cast<To>(static_cast<std::int64_t>(x - From(9223372036854775808.0))) ^
                       (To{1} << 63);
    else if constexpr (std::is_same_v<To, std::uint32_t>)
      return static_cast<To>(static_cast<std::int64_t>(x));
    else return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void cast(std::int64_t n, const void* in, void* out_) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(out_, in, static_cast<std::size_t>(n) * sizeof(To));
  } else {
    const From* x = static_cast<const From*>(in);
    To* out = static_cast<To*>(out_);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) out[i] = convert<To>(x[i]);
  }
}

template <typename From>
void fill_casts(KernelTable& table, Elem from) {
  CastFn* row = table.cast[static_cast<int>(from)];
  int e = 0;
  row[e++] = cast<From, bool>;
  row[e++] = cast<From, std::int8_t>;
  row[e++] = cast<From, std::int16_t>;
  row[e++] = cast<From, std::int32_t>;
  row[e++] = cast<From, std::int64_t>;
  row[e++] = cast<From, std::uint8_t>;
  row[e++] = cast<From, std::uint16_t>;
  row[e++] = cast<From, std::uint32_t>;
  row[e++] = cast<From, std::uint64_t>;
  row[e++] = cast<From, Half>;
  row[e++] = cast<From, Brain>;
  row[e++] = cast<From, float>;
  row[e++] = cast<From, double>;
  row[e++] = cast<From, cfloat>;
  row[e++] = cast<From, cdouble>;
}
#endif

}  // namespace

#if WEFT_GROUP == 0
void WEFT_FILL(integers)(KernelTable& table) {
  fill<std::int8_t>(table, Elem::int8);
  fill<std::int16_t>(table, Elem::int16);
  fill<std::int32_t>(table, Elem::int32);
  fill<std::int64_t>(table, Elem::int64);
  fill<std::uint8_t>(table, Elem::uint8);
  fill<std::uint16_t>(table, Elem::uint16);
  fill<std::uint32_t>(table, Elem::uint32);
  fill<std::uint64_t>(table, Elem::uint64);
}
#elif WEFT_GROUP == 1
void WEFT_FILL(reals)(KernelTable& table) {
  fill<float>(table, Elem::float32);
  fill<double>(table, Elem::float64);
  fill_rows<float>(table, Elem::float32);
  fill_rows<double>(table, Elem::float64);
}
#elif WEFT_GROUP == 2
void WEFT_FILL(others)(KernelTable& table) {
  fill<bool>(table, Elem::boolean);
  fill<cfloat>(table, Elem::complex64);
  fill<cdouble>(table, Elem::complex128);
}
#else
void WEFT_FILL(casts)(KernelTable& table) {
  fill_casts<bool>(table, Elem::boolean);
  fill_casts<std::int8_t>(table, Elem::int8);
  fill_casts<std::int16_t>(table, Elem::int16);
  fill_casts<std::int32_t>(table, Elem::int32);
  fill_casts<std::int64_t>(table, Elem::int64);
  fill_casts<std::uint8_t>(table, Elem::uint8);
  fill_casts<std::uint16_t>(table, Elem::uint16);
  fill_casts<std::uint32_t>(table, Elem::uint32);
  fill_casts<std::uint64_t>(table, Elem::uint64);
  fill_casts<Half>(table, Elem::float16);
  fill_casts<Brain>(table, Elem::bfloat16);
  fill_casts<float>(table, Elem::float32);
  fill_casts<double>(table, Elem::float64);
  fill_casts<cfloat>(table, Elem::complex64);
  fill_casts<cdouble>(table, Elem::complex128);
}
#endif

}  // namespace weft
