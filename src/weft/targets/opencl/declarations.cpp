// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/opencl/declarations.h"

#include <utility>

#include "weft/base/text.h"

namespace weft::opencl {

namespace {

std::string of_floats(const std::string& t) {
  std::string out;
  for (const char* f :
       {"exp",   "exp2",  "expm1", "log",  "log2",  "log10", "log1p", "sqrt", "rsqrt",
        "sin",   "cos",   "tan",   "asin", "acos",  "atan",  "sinh",  "cosh", "tanh",
        "asinh", "acosh", "atanh", "erf",  "floor", "ceil",  "trunc", "rint", "fabs"})
    out += cat(t, " W_PURE ", f, "(", t, ");\n");
  for (const char* f : {"pow", "atan2", "fmod", "hypot", "copysign", "nextafter"})
    out += cat(t, " W_PURE ", f, "(", t, ", ", t, ");\n");
  out += cat(t, " W_PURE fma(", t, ", ", t, ", ", t, ");\n");
  for (const char* f : {"isnan", "isinf", "isfinite", "signbit"})
    out += cat("int W_PURE ", f, "(", t, ");\n");
  return out;
}

std::string of_vectors(const std::string& t) {
  std::string out;
  for (const char* n : {"2", "3", "4", "8", "16"}) {
    for (const char* space : {"__global", "__local", "__private", "__constant"}) {
      out += cat(t, n, " W_READS vload", n, "(size_t, const ", space, " ", t, "*);\n");
      if (space[2] != 'c')
        out += cat("void W_OVER vstore", n, "(", t, n, ", size_t, ", space, " ", t, "*);\n");
    }
  }
  return out;
}

std::string of_atomics() {
  std::string out;
  for (const char* space : {"__global", "__local"}) {
    for (const auto& [t, word] : {std::pair{"int", "atomic"}, std::pair{"uint", "atomic"},
                                  std::pair{"long", "atom"}, std::pair{"ulong", "atom"}}) {
      const std::string at = cat("(volatile ", space, " ", t, "*, ", t);
      out += cat(t, " W_OVER ", word, "_add", at, ");\n");
      if (std::string_view(word) == "atomic") out += cat(t, " W_OVER atomic_max", at, ");\n");
      out += cat(t, " W_OVER ", word, "_cmpxchg", at, ", ", t, ");\n");
    }
  }
  return out;
}

}  // namespace

const std::string& declarations() {
  static const std::string text = [] {
    std::string out =
        "#define W_OVER __attribute__((overloadable))\n"
        "#define W_PURE __attribute__((overloadable, const))\n"
        "#define W_READS __attribute__((overloadable, pure))\n"
        "size_t W_PURE get_group_id(uint);\n"
        "size_t W_PURE get_local_id(uint);\n"
        "void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);\n";
    out += of_floats("float") + of_atomics();
    for (const char* t :
         {"char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float"})
      out += of_vectors(t);
    out += "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    out += of_floats("double") + of_vectors("double") + "#endif\n";
    return out + "#line 1\n";  // places in errors are those of our text
  }();
  return text;
}

}  // namespace weft::opencl
