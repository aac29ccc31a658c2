// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/cuda/spelling.h"

#include "weft/targets/cuda/roles.h"
#include "weft/targets/cuda/tensor_cores.h"

namespace weft::cuda {

const CSpelling& spelling() {
  static const CSpelling table = [] {
    CSpelling s;
    s.target = "cuda";
    s.prelude = "// CUDA C written by weft; it needs no header.\n";
    s.infinity = "__int_as_float(0x7f800000)";
    s.nan = "__int_as_float(0x7fffffff)";
    s.function_prefix = "static __device__ __forceinline__ ";
    s.kernel_prefix = "extern \"C\" __global__ void ";
    s.launch_bounds = "__launch_bounds__(%) ";
    s.types = {{"bool", "int"},
               {"int8", "signed char"},
               {"int16", "short"},
               {"int32", "int"},
               {"int64", "long long"},
               {"uint8", "unsigned char"},
               {"uint16", "unsigned short"},
               {"uint32", "unsigned int"},
               {"uint64", "unsigned long long"},
               {"float32", "float"},
               {"float64", "double"}};
    for (const char* lanes : {"2", "4"}) {
      std::string n = lanes;
      s.types["int8x" + n] = "char" + n;
      s.types["uint8x" + n] = "uchar" + n;
      s.types["int16x" + n] = "short" + n;
      s.types["uint16x" + n] = "ushort" + n;
      s.types["int32x" + n] = "int" + n;
      s.types["uint32x" + n] = "uint" + n;
      s.types["int64x" + n] = "longlong" + n;
      s.types["uint64x" + n] = "ulonglong" + n;
      s.types["float32x" + n] = "float" + n;
      s.types["float64x" + n] = "double" + n;
    }
    // Copied whole; their lanes have no names.
    for (const char* t : {"int8x16", "uint8x16", "int16x8", "uint16x8"}) s.types[t] = "uint4";
    for (const char* t : {"int8x8", "uint8x8"}) s.types[t] = "uint2";
    s.shared = "__shared__ ";
    s.restrict_word = "__restrict__ ";
    s.static_shared_bytes = 49152;
    for (const char* axis :
         {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"}) {
      s.axes[axis] = std::string("((int)") + axis + ")";
    }
    s.barrier_shared = s.barrier_global = "__syncthreads()";
    s.vectors = VectorStyle::members;
    for (const char* name :
         {"exp",   "exp2", "expm1", "log",   "log2",  "log10",    "log1p",     "sqrt",
          "rsqrt", "sin",  "cos",   "tan",   "asin",  "acos",     "atan",      "sinh",
          "cosh",  "tanh", "asinh", "acosh", "atanh", "erf",      "floor",     "ceil",
          "trunc", "pow",  "atan2", "fmod",  "hypot", "copysign", "nextafter", "fma"}) {
      s.functions[name] = {std::string(name) + "f", name};
    }
    s.functions["round"] = {"rintf", "rint"};
    s.functions["abs"] = {"fabsf", "fabs"};
    s.half_helpers =
        R"([[maybe_unused]] static __device__ __forceinline__ float weft_half_to_float(unsigned short h) { float v; asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h)); return v; }
[[maybe_unused]] static __device__ __forceinline__ unsigned short weft_float_to_half(float v) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }
)";
    // PTX ISA, cvt: bfloat16 from sm_80 on. NaN keeps its sign, as by the bits.
    s.bfloat_helpers =
        R"([[maybe_unused]] static __device__ __forceinline__ float weft_bfloat_to_float(unsigned short v) { return __int_as_float((int)v << 16); }
[[maybe_unused]] static __device__ __forceinline__ unsigned short weft_float_to_bfloat(float v) {
  const unsigned int b = (unsigned int)__float_as_int(v);
#if __CUDA_ARCH__ >= 800
  unsigned short rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(v));
#else
  const unsigned short rounded = (unsigned short)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
#endif
  return v != v ? (unsigned short)(b >> 16 | 0x40u) : rounded;
}
)";
    for (int bytes : {4, 8, 16}) {
      s.async_copies[bytes] = "weft_copy_" + std::to_string(bytes);
      s.async_guarded[bytes] = "weft_copy_if_" + std::to_string(bytes);
    }
    // PTX ISA: cp.async; only 16 bytes may pass by the first-level cache (.cg). The last operand
    // is the number of bytes to read; zeros fill the rest.
    s.async_helpers = R"(
static __device__ __forceinline__ void weft_copy_4(void* to, const void* from) { asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from) : "memory"); }
static __device__ __forceinline__ void weft_copy_8(void* to, const void* from) { asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from) : "memory"); }
static __device__ __forceinline__ void weft_copy_16(void* to, const void* from) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from) : "memory"); }
static __device__ __forceinline__ void weft_copy_if_4(void* to, const void* from, int some) { asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from), "r"(some ? 4 : 0) : "memory"); }
static __device__ __forceinline__ void weft_copy_if_8(void* to, const void* from, int some) { asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from), "r"(some ? 8 : 0) : "memory"); }
static __device__ __forceinline__ void weft_copy_if_16(void* to, const void* from, int some) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from), "r"(some ? 16 : 0) : "memory"); }
)";
    s.async_commit = "asm volatile(\"cp.async.commit_group;\" ::: \"memory\")";
    s.async_wait = "asm volatile(\"cp.async.wait_group %;\" ::: \"memory\")";
    // CUDA C programming guide, "atomicAdd": no signed 64 bits; the sum's bits are the same.
    for (const char* t : {"int32", "uint32", "uint64", "float32", "float64"})
      s.atomic_add[t] = {"atomicAdd", ""};
    s.atomic_add["int64"] = {
        "weft_atomic_add_int64",
        "static __device__ __forceinline__ void weft_atomic_add_int64(long long* p, long long v) { "
        "atomicAdd((unsigned long long*)p, (unsigned long long)v); }\n"};
    for (const char* t : {"int32", "uint32"}) s.atomic_max[t] = {"atomicMax", ""};
    s.stream = "__stcs";
    s.instruction = instruction_definition;
    // wgmma: registers are read from here on; groups of bulk copies: until memory may be written.
    s.queues["wgmma"] = {"asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\")",
                         "asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\")",
                         "asm volatile(\"wgmma.wait_group.sync.aligned %;\" ::: \"memory\")"};
    s.queues["bulk"] = {"", "asm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\")",
                        "asm volatile(\"cp.async.bulk.wait_group.read %;\" ::: \"memory\")"};
    s.tensor_param = kTensorParam, s.tensor_helpers = kTensorHelpers;
    s.alone_bounds = "__launch_bounds__(%, 1) ";  // else setmaxnreg is ignored
    s.cluster_bounds = "__cluster_dims__(%, 1, 1) ";
    s.trap = "__trap();";
    return s;
  }();
  return table;
}

}  // namespace weft::cuda
