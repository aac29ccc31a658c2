// SPDX-License-Identifier: Apache-2.0
#pragma once
// Enough of the Metal shading language for Clang to check the syntax and types of generated kernels
// as C++. Address space words vanish; attributes on parameters are C++ attributes, unknown and
// ignored.
#define kernel extern "C"
#define device
#define threadgroup
#define thread
#define constant const
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
using half = __fp16;
struct uint3 {
  uint x, y, z;
};
template <typename T>
struct vec2 {
  T x, y;
  vec2(T a, T b) : x(a), y(b) {}
};
template <typename T>
struct vec4 {
  T x, y, z, w;
  vec4(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
};
using float2 = vec2<float>;
using float4 = vec4<float>;
using int2 = vec2<int>;
using int4 = vec4<int>;
namespace metal {
enum class mem_flags { mem_threadgroup = 1, mem_device = 2 };
constexpr mem_flags operator|(mem_flags a, mem_flags) { return a; }
inline void threadgroup_barrier(mem_flags) {}
enum memory_order { memory_order_relaxed };
template <typename T>
struct atomic {
  T value;
};
using atomic_int = atomic<int>;
using atomic_uint = atomic<unsigned int>;
using atomic_float = atomic<float>;
template <typename T>
T atomic_fetch_add_explicit(volatile atomic<T>* a, T v, memory_order) {
  T old = a->value;
  a->value = old + v;
  return old;
}
template <typename T, typename F>
T as_type(F f) {
  return __builtin_bit_cast(T, f);
}
float exp(float);
float sqrt(float);
float fabs(float);
float rint(float);
float tanh(float);
}  // namespace metal
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
