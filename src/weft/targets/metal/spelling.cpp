// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/metal/spelling.h"

#include <array>

namespace weft::metal {

const CSpelling& spelling() {
  static const CSpelling table = [] {
    CSpelling s;
    s.target = "metal";
    s.prelude = "#include <metal_stdlib>\nusing namespace metal;\n";
    s.function_prefix = "static inline ";
    s.kernel_prefix = "kernel void ";
    s.types = {{"bool", "int"},     {"int8", "char"},    {"int16", "short"},   {"int32", "int"},
               {"int64", "long"},   {"uint8", "uchar"},  {"uint16", "ushort"}, {"uint32", "uint"},
               {"uint64", "ulong"}, {"float32", "float"}};
    s.global = "device ";
    s.shared = "threadgroup ";
    s.local = "thread ";
    s.indexed_parameters = true;
    s.extra_parameters =
        "uint3 blockIdx [[threadgroup_position_in_grid]], uint3 threadIdx "
        "[[thread_position_in_threadgroup]]";
    for (const char* axis :
         {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z"}) {
      s.axes[axis] = std::string("((int)") + axis + ")";
    }
    s.barrier_shared = "threadgroup_barrier(mem_flags::mem_threadgroup)";
    s.barrier_global = "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)";
    s.vectors = VectorStyle::casts;
    s.int64_suffix = "L";
    s.unroll = "#pragma unroll";
    for (const char* name : {"exp",   "exp2", "log",   "log2",  "log10",    "sqrt",      "rsqrt",
                             "sin",   "cos",  "tan",   "asin",  "acos",     "atan",      "sinh",
                             "cosh",  "tanh", "asinh", "acosh", "atanh",    "floor",     "ceil",
                             "trunc", "pow",  "atan2", "fmod",  "copysign", "nextafter", "fma"}) {
      s.functions[name] = {name, ""};
    }
    s.functions["round"] = {"rint", ""};
    s.functions["abs"] = {"fabs", ""};
    s.half_helpers =
        "static inline float weft_half_to_float(ushort h) { return (float)as_type<half>(h); }\n"
        "static inline ushort weft_float_to_half(float v) { return as_type<ushort>((half)v); }\n";
    // Metal Shading Language specification 3, 6.15: 32-bit integers anywhere, float in device
    // memory.
    for (const auto& [t, word, atomic] :
         {std::array{"int32", "int", "atomic_int"}, std::array{"uint32", "uint", "atomic_uint"},
          std::array{"float32", "float", "atomic_float"}}) {
      for (const auto& [key, space] :
           {std::array{"", "device"}, std::array{"@shared", "threadgroup"}}) {
        std::string name = std::string("weft_atomic_add_") + t + (*key ? "_threadgroup" : "");
        s.atomic_add[std::string(t) + key] = {
            name, std::string("static inline void ") + name + "(" + space + " " + word + "* p, " +
                      word + " v) { atomic_fetch_add_explicit((" + space + " " + atomic +
                      "*)p, v, memory_order_relaxed); }\n"};
        if (std::string_view(t) == "float32") continue;
        name = std::string("weft_atomic_max_") + t + (*key ? "_threadgroup" : "");
        s.atomic_max[std::string(t) + key] = {
            name, std::string("static inline void ") + name + "(" + space + " " + word + "* p, " +
                      word + " v) { atomic_fetch_max_explicit((" + space + " " + atomic +
                      "*)p, v, memory_order_relaxed); }\n"};
      }
    }
    s.atomic_add["float32@shared"] = {"", ""};  // the language has none
    return s;
  }();
  return table;
}

}  // namespace weft::metal
