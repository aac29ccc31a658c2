// SPDX-License-Identifier: Apache-2.0
#include "weft/base/vector_math.h"

#include <dlfcn.h>

#include <cmath>
#include <cstring>

#include "weft/base/vector_math_avx512.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace weft {

void* vector_function(const std::string& name) {
  if (void* own = own_vector_function(name)) return own;
  static void* library = ::dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  return library && name.starts_with("_ZGV") ? ::dlsym(library, name.c_str()) : nullptr;
}

}  // namespace weft

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__GNUC__) && defined(__GLIBC__)
#define WEFT_HIDDEN __attribute__((visibility("hidden")))
// A call goes through a pointer, as it would into a shared library. The pointer begins at a
// function that finds ours or libmvec's, or takes the loop over the lanes. Not compiled with
// -ffast-math: there the compiler would make of that loop a call of the very function.
namespace {

template <typename F>
F* found(void* function, F* otherwise) {
  return function ? reinterpret_cast<F*>(function) : otherwise;
}
template <typename F>
F* get(F** slot) {
  return __atomic_load_n(slot, __ATOMIC_RELAXED);
}
template <typename F>
F* set(F** slot, F* function) {
  __atomic_store_n(slot, function, __ATOMIC_RELAXED);
  return function;
}

}  // namespace

#ifdef __x86_64__
namespace {

template <typename S>
void unary_lanes(S (*f)(S), S* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = f(x[i]);
}
template <typename S>
void binary_lanes(S (*f)(S, S), S* x, const S* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = f(x[i], y[i]);
}

}  // namespace

#define WEFT_UNARY(symbol, scalar, S, V, features)                                         \
  namespace {                                                                              \
  features V symbol##_lanes(V x) {                                                         \
    S lanes[sizeof(V) / sizeof(S)];                                                        \
    std::memcpy(lanes, &x, sizeof x);                                                      \
    unary_lanes<S>(&::scalar, lanes, sizeof(V) / sizeof(S));                               \
    std::memcpy(&x, lanes, sizeof x);                                                      \
    return x;                                                                              \
  }                                                                                        \
  features V symbol##_first(V x);                                                          \
  V (*symbol##_slot)(V) = &symbol##_first;                                                 \
  features V symbol##_first(V x) {                                                         \
    return set(&symbol##_slot, found(weft::vector_function(#symbol), &symbol##_lanes))(x); \
  }                                                                                        \
  }                                                                                        \
  extern "C" {                                                                             \
  features WEFT_HIDDEN V symbol(V x);                                                      \
  features V symbol(V x) { return get(&symbol##_slot)(x); }                                \
  }
#define WEFT_BINARY(symbol, scalar, S, V, features)                                           \
  namespace {                                                                                 \
  features V symbol##_lanes(V x, V y) {                                                       \
    S left[sizeof(V) / sizeof(S)], right[sizeof(V) / sizeof(S)];                              \
    std::memcpy(left, &x, sizeof x);                                                          \
    std::memcpy(right, &y, sizeof y);                                                         \
    binary_lanes<S>(&::scalar, left, right, sizeof(V) / sizeof(S));                           \
    std::memcpy(&x, left, sizeof x);                                                          \
    return x;                                                                                 \
  }                                                                                           \
  features V symbol##_first(V x, V y);                                                        \
  V (*symbol##_slot)(V, V) = &symbol##_first;                                                 \
  features V symbol##_first(V x, V y) {                                                       \
    return set(&symbol##_slot, found(weft::vector_function(#symbol), &symbol##_lanes))(x, y); \
  }                                                                                           \
  }                                                                                           \
  extern "C" {                                                                                \
  features WEFT_HIDDEN V symbol(V x, V y);                                                    \
  features V symbol(V x, V y) { return get(&symbol##_slot)(x, y); }                           \
  }

#define WEFT_AVX2 __attribute__((target("avx2")))
#define WEFT_AVX512 __attribute__((target("avx512f")))
#define WEFT_UNARY_LEVELS(name)                                        \
  WEFT_UNARY(_ZGVbN4v_##name##f, name##f, float, __m128, )             \
  WEFT_UNARY(_ZGVbN2v_##name, name, double, __m128d, )                 \
  WEFT_UNARY(_ZGVdN8v_##name##f, name##f, float, __m256, WEFT_AVX2)    \
  WEFT_UNARY(_ZGVdN4v_##name, name, double, __m256d, WEFT_AVX2)        \
  WEFT_UNARY(_ZGVeN16v_##name##f, name##f, float, __m512, WEFT_AVX512) \
  WEFT_UNARY(_ZGVeN8v_##name, name, double, __m512d, WEFT_AVX512)
#define WEFT_BINARY_LEVELS(name)                                         \
  WEFT_BINARY(_ZGVbN4vv_##name##f, name##f, float, __m128, )             \
  WEFT_BINARY(_ZGVbN2vv_##name, name, double, __m128d, )                 \
  WEFT_BINARY(_ZGVdN8vv_##name##f, name##f, float, __m256, WEFT_AVX2)    \
  WEFT_BINARY(_ZGVdN4vv_##name, name, double, __m256d, WEFT_AVX2)        \
  WEFT_BINARY(_ZGVeN16vv_##name##f, name##f, float, __m512, WEFT_AVX512) \
  WEFT_BINARY(_ZGVeN8vv_##name, name, double, __m512d, WEFT_AVX512)

// The functions that the text of target c declares as vector functions (targets/c/library.cpp).
WEFT_UNARY_LEVELS(exp)
WEFT_UNARY_LEVELS(log)
WEFT_UNARY_LEVELS(sin)
WEFT_UNARY_LEVELS(cos)
WEFT_UNARY_LEVELS(tan)
WEFT_UNARY_LEVELS(asin)
WEFT_UNARY_LEVELS(acos)
WEFT_UNARY_LEVELS(atan)
WEFT_UNARY_LEVELS(sinh)
WEFT_UNARY_LEVELS(cosh)
WEFT_UNARY_LEVELS(tanh)
WEFT_UNARY_LEVELS(asinh)
WEFT_UNARY_LEVELS(acosh)
WEFT_UNARY_LEVELS(atanh)
WEFT_UNARY_LEVELS(exp2)
WEFT_UNARY_LEVELS(expm1)
WEFT_UNARY_LEVELS(log2)
WEFT_UNARY_LEVELS(log10)
WEFT_UNARY_LEVELS(log1p)
WEFT_UNARY_LEVELS(erf)
WEFT_BINARY_LEVELS(pow)
WEFT_BINARY_LEVELS(atan2)
WEFT_BINARY_LEVELS(hypot)
#endif

// glibc 2.35 has a new version of hypot, too.
#define WEFT_HYPOT(symbol, S, wide)                                                          \
  namespace {                                                                                \
  S symbol##_lanes(S x, S y) { return S(std::sqrt(wide(x) * wide(x) + wide(y) * wide(y))); } \
  S symbol##_first(S x, S y);                                                                \
  S (*symbol##_slot)(S, S) = &symbol##_first;                                                \
  S symbol##_first(S x, S y) {                                                               \
    void* library = ::dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);                            \
    void* function = library ? ::dlsym(library, #symbol) : nullptr;                          \
    return set(&symbol##_slot, found(function, &symbol##_lanes))(x, y);                      \
  }                                                                                          \
  }                                                                                          \
  extern "C" WEFT_HIDDEN S weft_##symbol(S, S) asm(#symbol);                                 \
  S weft_##symbol(S x, S y) { return get(&symbol##_slot)(x, y); }
WEFT_HYPOT(hypotf, float, double)
WEFT_HYPOT(hypot, double, (long double))
#endif
