// SPDX-License-Identifier: Apache-2.0
// The kernels of complex numbers for one processor level (WEFT_LEVEL), as templates over the
// table's rows: the IR has no complex numbers, so these cannot be generated with the others
// (generate/).

#include "weft/array/kernels.h"
#include "weft/array/ops/value.h"

#define WEFT_JOIN2(a, b) a##_##b
#define WEFT_JOIN(a, b) WEFT_JOIN2(a, b)

namespace weft {
namespace {

constexpr int B = 1, I = 2, U = 4, F = 8, C = 16;

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

template <typename Row, typename T>
void unary(std::int64_t n, const void* const* in, void* out_) {
  using R = decltype(Row::template f<T>(T{}));
  const T* x = static_cast<const T*>(in[0]);
  R* out = static_cast<R*>(out_);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = Row::template f<T>(x[i]);
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
  T lanes[kLanes];
  if (n >= 2 * kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = x[l];
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] = Row::template f<T>(lanes[l], x[i + l]);
    }
    for (int width = kLanes / 2; width; width /= 2) {
      for (int l = 0; l < width; ++l) lanes[l] = Row::template f<T>(lanes[l], lanes[l + width]);
    }
  }
  T value = i > 0 ? lanes[0] : x[i++];
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
void fill(KernelTable& table, Elem elem) {
  const int e = static_cast<int>(elem);
#define UNARY(name, ...)                       \
  if constexpr ((Row_##name::kTypes & C) != 0) \
    table.elementwise[static_cast<int>(Op::name)][e] = unary<Row_##name, T>;
#define BINARY(name, ...)                      \
  if constexpr ((Row_##name::kTypes & C) != 0) \
    table.elementwise[static_cast<int>(Op::name)][e] = binary<Row_##name, T>;
#include "weft/array/ops/elementwise.def"
#undef UNARY
#undef BINARY
#define REDUCE(name, ...)                                                                 \
  if constexpr ((Reduce_##name::kTypes & C) != 0) {                                       \
    table.reduce[static_cast<int>(ReduceOp::name)][e] = reduce<Reduce_##name, T>;         \
    table.accumulate[static_cast<int>(ReduceOp::name)][e] = accumulate<Reduce_##name, T>; \
    table.scan[static_cast<int>(ReduceOp::name)][e] = scan<Reduce_##name, T>;             \
  }
#include "weft/array/ops/reduce.def"
#undef REDUCE
}

}  // namespace

void WEFT_JOIN(fill_complex, WEFT_LEVEL)(KernelTable& table) {
  fill<cfloat>(table, Elem::complex64);
  fill<cdouble>(table, Elem::complex128);
}

}  // namespace weft
