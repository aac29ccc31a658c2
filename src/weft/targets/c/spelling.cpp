// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/c/spelling.h"

#include <array>

#include "weft/target/transpose_rows.h"

namespace weft::c {

const CSpelling& spelling() {
  static const CSpelling table = [] {
    CSpelling s;
    s.target = "c";
    s.prelude = R"(#include <math.h>
#include <stdint.h>

/* Services of the host to a kernel (the kernel ABI). */
struct weft_context;
typedef int32_t (*weft_parallel_body)(int64_t begin, int64_t end, void* closure);
typedef struct weft_context {
  uint64_t size;
  int32_t (*parallel_for)(const struct weft_context* ctx, int64_t n, weft_parallel_body body, void* closure);
  void* (*workspace_alloc)(const struct weft_context* ctx, uint64_t bytes, uint64_t align);
  void (*workspace_free)(const struct weft_context* ctx, void* pointer);
  void* const* math;
  void* user;
} weft_context;
)";
    s.signed_wraps = true;
    s.function_prefix = "static inline ";
    s.kernel_prefix = "int32_t ";
    s.types = {{"bool", "int32_t"},    {"int8", "int8_t"},     {"int16", "int16_t"},
               {"int32", "int32_t"},   {"int64", "int64_t"},   {"uint8", "uint8_t"},
               {"uint16", "uint16_t"}, {"uint32", "uint32_t"}, {"uint64", "uint64_t"},
               {"float32", "float"},   {"float64", "double"}};
    s.restrict_word = "restrict ";
    s.shared_at_top = false;
    s.vectors = VectorStyle::loops;
    s.unroll = "#pragma GCC unroll %";
    for (const char* name :
         {"exp",  "exp2",  "expm1", "log",   "log2",     "log10",     "log1p", "sqrt",
          "sin",  "cos",   "tan",   "asin",  "acos",     "atan",      "sinh",  "cosh",
          "tanh", "asinh", "acosh", "atanh", "erf",      "floor",     "ceil",  "trunc",
          "pow",  "atan2", "fmod",  "hypot", "copysign", "nextafter", "fma"}) {
      s.functions[name] = {std::string(name) + "f", name};
    }
    s.functions["round"] = {"rintf", "rint"};
    s.functions["abs"] = {"fabsf", "fabs"};
    s.instruction = transpose_definition;
    s.prefetch = "WEFT_PREFETCH";
    s.prefetch_helper = R"(#if defined(__GNUC__)
#define WEFT_PREFETCH(p, writes, locality) __builtin_prefetch((p), (writes), (locality))
#else
#define WEFT_PREFETCH(p, writes, locality) ((void)(p))
#endif
)";
    s.half_helpers = R"(static inline float weft_half_to_float(uint16_t h) {
  union { uint32_t u; float f; } x, magic;
  magic.u = 113u << 23;
  x.u = ((uint32_t)h & 0x7fffu) << 13;
  uint32_t exponent = x.u & (0x7c00u << 13);
  x.u += (127u - 15u) << 23;
  if (exponent == (0x7c00u << 13)) x.u += (128u - 16u) << 23;
  else if (exponent == 0) { x.u += 1u << 23; x.f -= magic.f; }
  x.u |= ((uint32_t)h & 0x8000u) << 16;
  return x.f;
}
static inline uint16_t weft_float_to_half(float v) {
  union { uint32_t u; float f; } x, denormal;
  x.f = v;
  uint32_t sign = x.u & 0x80000000u;
  uint16_t h;
  x.u ^= sign;
  if (x.u >= (127u + 16u) << 23) h = x.u > 0x7f800000u ? 0x7e00u : 0x7c00u;
  else if (x.u < 113u << 23) {
    denormal.u = ((127u - 15u) + (23u - 10u) + 1u) << 23;
    x.f += denormal.f;
    h = (uint16_t)(x.u - denormal.u);
  } else {
    uint32_t odd = (x.u >> 13) & 1u;
    x.u += ((uint32_t)(15 - 127) << 23) + 0xfffu + odd;
    h = (uint16_t)(x.u >> 13);
  }
  return (uint16_t)(h | (sign >> 16));
}
)";
    s.stream = "WEFT_STREAM";
    s.stream_end = "WEFT_STREAM_END()";
    s.stream_helpers = R"(
/* Stores past the caches, where compiler and machine have them; ordinary ones elsewhere. */
#if defined(__clang__)
#define WEFT_STREAM(p, v) __builtin_nontemporal_store((v), (p))
#elif defined(__GNUC__) && defined(__x86_64__)
#define WEFT_STREAM(p, v) \
  do { \
    __typeof__(*(p)) weft_value = (v); \
    if (sizeof weft_value == 4) { \
      int weft_bits; \
      __builtin_memcpy(&weft_bits, &weft_value, 4 <= sizeof weft_value ? 4 : 1); \
      __builtin_ia32_movnti((int*)(p), weft_bits); \
    } else if (sizeof weft_value == 8) { \
      long long weft_bits; \
      __builtin_memcpy(&weft_bits, &weft_value, 8 <= sizeof weft_value ? 8 : 1); \
      __builtin_ia32_movnti64((long long*)(p), weft_bits); \
    } else { \
      *(p) = weft_value; \
    } \
  } while (0)
#else
#define WEFT_STREAM(p, v) (*(p) = (v))
#endif
#if defined(__x86_64__)
#define WEFT_STREAM_END() __builtin_ia32_sfence()
#elif defined(__GNUC__)
#define WEFT_STREAM_END() __atomic_thread_fence(__ATOMIC_RELEASE)
#else
#define WEFT_STREAM_END() ((void)0)
#endif
)";
    // A float is added to by comparing and exchanging its bits until nobody came between.
    for (const char* t : {"int32", "int64", "uint32", "uint64"}) {
      std::string type = t, name = "weft_atomic_add_" + type;
      s.atomic_add[t] = {name, "static inline void " + name + "(" + type + "_t* p, " + type +
                                   "_t v) { (void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED); }\n"};
    }
    for (const char* t : {"int32", "uint32"}) {
      std::string type = t, name = "weft_atomic_max_" + type;
      s.atomic_max[t] = {
          name, "static inline void " + name + "(" + type + "_t* p, " + type + "_t v) {\n  " +
                    type + "_t old = __atomic_load_n(p, __ATOMIC_RELAXED);\n" +
                    "  while (old < v && !__atomic_compare_exchange_n(p, &old, v, 1, " +
                    "__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}\n}\n"};
    }
    for (const auto& [t, word, bits] :
         {std::array{"float32", "float", "32"}, std::array{"float64", "double", "64"}}) {
      std::string type = word, name = std::string("weft_atomic_add_") + t,
                  whole = std::string("uint") + bits + "_t";
      s.atomic_add[t] = {
          name, "static inline void " + name + "(" + type + "* p, " + type + " v) {\n  union { " +
                    whole + " bits; " + type + " value; } old, sum;\n" +
                    "  __atomic_load(p, &old.value, __ATOMIC_RELAXED);\n  do {\n" +
                    "    sum.value = old.value + v;\n  } while (!__atomic_compare_exchange((" +
                    whole + "*)(void*)p, &old.bits, &sum.bits, 1, __ATOMIC_RELAXED, " +
                    "__ATOMIC_RELAXED));\n}\n"};
    }
    s.host_entry = true;
    return s;
  }();
  return table;
}

const CSpelling& vector_spelling(bool library, int bytes) {
  static const auto tables = [] {
    std::array<std::array<CSpelling, 4>, 2> out;
    for (std::size_t l = 0; l < 2; ++l) {
      for (std::size_t b = 0; b < 4; ++b) {
        CSpelling& s = out[l][b];
        s = l ? library_spelling() : spelling();
        if (!b) continue;
        s.vectors = VectorStyle::gnu;
        s.vector_bytes = 8 << b;
      }
    }
    return out;
  }();
  const std::size_t width = bytes == 64 ? 3 : bytes == 32 ? 2 : bytes == 16 ? 1 : 0;
  return tables[library ? 1 : 0][width];
}

}  // namespace weft::c
