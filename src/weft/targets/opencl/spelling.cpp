// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/opencl/spelling.h"

#include <array>

namespace weft::opencl {

const CSpelling& spelling() {
  static const CSpelling table = [] {
    CSpelling s;
    s.target = "opencl";
    s.prelude = "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n";
    s.function_prefix = "inline ";
    s.kernel_prefix = "__kernel void ";
    s.types = {{"bool", "int"},     {"int8", "char"},     {"int16", "short"},   {"int32", "int"},
               {"int64", "long"},   {"uint8", "uchar"},   {"uint16", "ushort"}, {"uint32", "uint"},
               {"uint64", "ulong"}, {"float32", "float"}, {"float64", "double"}};
    s.global = "__global ";
    s.shared = "__local ";
    s.restrict_word = "restrict ";
    s.pointer_offsets = true;
    for (int d = 0; d < 3; ++d) {
      std::string axis(1, static_cast<char>('x' + d)), n = std::to_string(d);
      s.axes["blockIdx." + axis] = "((int)get_group_id(" + n + "))";
      s.axes["threadIdx." + axis] = "((int)get_local_id(" + n + "))";
    }
    s.barrier_shared = "barrier(CLK_LOCAL_MEM_FENCE)";
    s.barrier_global = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)";
    s.vectors = VectorStyle::load_store;
    s.int64_suffix = "L";
    s.unroll = "#pragma unroll";
    for (const char* name :
         {"exp",   "exp2", "expm1", "log",   "log2",  "log10",    "log1p",     "sqrt",
          "rsqrt", "sin",  "cos",   "tan",   "asin",  "acos",     "atan",      "sinh",
          "cosh",  "tanh", "asinh", "acosh", "atanh", "erf",      "floor",     "ceil",
          "trunc", "pow",  "atan2", "fmod",  "hypot", "copysign", "nextafter", "fma"}) {
      s.functions[name] = {name, name};
    }
    s.functions["round"] = {"rint", "rint"};
    s.functions["abs"] = {"fabs", "fabs"};
    s.half_helpers = R"(inline float weft_half_to_float(ushort h) {
  uint x = ((uint)h & 0x7fffu) << 13, exponent = x & (0x7c00u << 13);
  x += (127u - 15u) << 23;
  if (exponent == (0x7c00u << 13)) x += (128u - 16u) << 23;
  else if (exponent == 0) x = as_uint(as_float(x + (1u << 23)) - as_float(113u << 23));
  return as_float(x | (((uint)h & 0x8000u) << 16));
}
inline ushort weft_float_to_half(float v) {
  uint x = as_uint(v), sign = x & 0x80000000u;
  ushort h;
  x ^= sign;
  if (x >= (127u + 16u) << 23) h = x > 0x7f800000u ? 0x7e00u : 0x7c00u;
  else if (x < 113u << 23) h = (ushort)(as_uint(as_float(x) + as_float(((127u - 15u) + (23u - 10u) + 1u) << 23)) - (((127u - 15u) + (23u - 10u) + 1u) << 23));
  else h = (ushort)((x + ((uint)(15 - 127) << 23) + 0xfffu + ((x >> 13) & 1u)) >> 13);
  return (ushort)(h | (sign >> 16));
}
)";
    // OpenCL C 1.2, 6.12.11: 32-bit integers everywhere; 64 bits are an extension. Floats are added
    // to by comparing and exchanging their bits until nobody came between.
    s.atomic_add["int32"] = s.atomic_add["uint32"] = {"atomic_add", ""};
    s.atomic_max["int32"] = s.atomic_max["uint32"] = {"atomic_max", ""};
    const std::string wide = "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n";
    for (const auto& [t, word] : {std::array{"int64", "long"}, std::array{"uint64", "ulong"}}) {
      for (const auto& [key, space] :
           {std::array{"", "__global"}, std::array{"@shared", "__local"}}) {
        std::string type = word,
                    name = std::string("weft_atomic_add_") + t + (*key ? "_local" : "");
        s.atomic_add[std::string(t) + key] = {name, wide + "inline void " + name + "(volatile " +
                                                        space + " " + type + "* p, " + type +
                                                        " v) { atom_add(p, v); }\n"};
      }
    }
    for (const auto& [t, word, whole] :
         {std::array{"float32", "float", "uint"}, std::array{"float64", "double", "ulong"}}) {
      for (const auto& [key, space] :
           {std::array{"", "__global"}, std::array{"@shared", "__local"}}) {
        std::string type = word, bits = whole,
                    name = std::string("weft_atomic_add_") + t + (*key ? "_local" : "");
        const bool single = bits == "uint";
        s.atomic_add[std::string(t) + key] = {
            name, (single ? "" : wide) + "inline void " + name + "(volatile " + space + " " + type +
                      "* p, " + type + " v) {\n  volatile " + space + " " + bits +
                      "* at = (volatile " + space + " " + bits + "*)p;\n  " + bits +
                      " old = *at, seen;\n" + "  while ((seen = " + (single ? "atomic" : "atom") +
                      "_cmpxchg(at, old, as_" + bits + "(as_" + type +
                      "(old) + v))) != old) old = seen;\n}\n"};
      }
    }
    return s;
  }();
  return table;
}

}  // namespace weft::opencl
