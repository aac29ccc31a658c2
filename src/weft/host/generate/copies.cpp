// SPDX-License-Identifier: Apache-2.0
// Runs of copies between two steps (array/copy_kernels.h). Steps that are known when the text is
// compiled become shuffles of vectors.

#include "weft/base/text.h"
#include "weft/host/copy_kernels.h"
#include "weft/host/generate/kernels.h"
#include "weft/ir/text.h"

namespace weft::generate {

namespace {

/// out[i * to] = in[i * from], elements of `words` numbers of a type.
ir::PrimFunc run_function(const std::string& type, int words, const std::string& to,
                          const std::string& from) {
  // Vectors of what is far apart are slower to put together than their elements to move.
  const bool known = from.find("from_") == std::string::npos;
  const std::string loop =
      known ? "T.vectorized(n)" : "T.serial(n, annotations={\"unroll_factor\": 4})";
  auto at = [&](const std::string& step, int w) {
    return words == 1 ? step : cat("(", step, ") * ", words, " + ", w);
  };
  std::string body;
  for (int w = 0; w < words; ++w)
    body += cat("        x", w, ": T.", type, " = A[", at(from, w), "]\n");
  for (int w = 0; w < words; ++w) body += cat("        O[", at(to, w), "] = x", w, "\n");
  return ir::parse_func(
      cat("@T.prim_func\ndef main(a: T.handle, o: T.handle, n: T.int64, to: T.int64, from_: "
          "T.int64):\n    T.func_attr({\"noalias\": True})\n    A = T.match_buffer(a, (n,), \"",
          type, "\")\n    O = T.match_buffer(o, (n,), \"", type, "\")\n    for i in ", loop, ":\n",
          body),
      "<copy>");
}

/// out[i] = in[0].
ir::PrimFunc spread_function(const std::string& type, int words) {
  std::string body =
      cat("@T.prim_func\ndef main(a: T.handle, o: T.handle, n: T.int64, to: T.int64, from_: "
          "T.int64):\n    T.func_attr({\"noalias\": True})\n    A = T.match_buffer(a, (2,), \"",
          type, "\")\n    O = T.match_buffer(o, (n,), \"", type, "\")\n");
  for (int w = 0; w < words; ++w) body += cat("    x", w, ": T.", type, " = A[", w, "]\n");
  body += "    for i in T.vectorized(n):\n";
  for (int w = 0; w < words; ++w) body += cat("        O[i * ", words, " + ", w, "] = x", w, "\n");
  return ir::parse_func(body, "<spread>");
}

/// out[i * to] += in[i].
ir::PrimFunc add_function(const std::string& type) {
  return ir::parse_func(
      cat("@T.prim_func\ndef main(a: T.handle, o: T.handle, n: T.int64, to: T.int64, from_: "
          "T.int64):\n    T.func_attr({\"noalias\": True})\n    A = T.match_buffer(a, (n,), \"",
          type, "\")\n    O = T.match_buffer(o, (n,), \"", type,
          "\")\n    for i in T.serial(n):\n        O[i * to] = O[i * to] + A[i]\n"),
      "<add>");
}

}  // namespace

std::vector<Kernel> copy_kernels() {
  struct Steps {
    CopyKernel kernel;
    const char *name, *to, *from;
  };
  constexpr Steps kSteps[] = {{CopyKernel::gather_two, "gather_two", "i", "i * 2"},
                              {CopyKernel::scatter_two, "scatter_two", "i * 2", "i"},
                              {CopyKernel::both_two, "both_two", "i * 2", "i * 2"},
                              {CopyKernel::reverse, "reverse", "i", "n - 1 - i"},
                              {CopyKernel::any, "any", "i * to", "i * from_"}};
  std::vector<Kernel> out;
  for (Elem e : {Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64, Elem::complex128}) {
    const bool wide = e == Elem::complex128;
    const std::string type(wide ? "uint64" : name_of(e));
    const int words = wide ? 2 : 1;
    auto add = [&](CopyKernel kernel, const char* name, ir::PrimFunc f) {
      Kernel k{entry(KernelEntry::copying, static_cast<int>(kernel), e),
               cat("c_", name, "_", name_of(e)), std::move(f)};
      k.parameters = "const void* A, void* O, int64_t n, int64_t to, int64_t from_";
      out.push_back(std::move(k));
    };
    for (const Steps& s : kSteps) add(s.kernel, s.name, run_function(type, words, s.to, s.from));
    add(CopyKernel::spread, "spread", spread_function(type, words));
  }
  for (Elem e : {Elem::float32, Elem::float64}) {
    Kernel k{entry(KernelEntry::copying, static_cast<int>(CopyKernel::add), e),
             cat("c_add_", name_of(e)), add_function(std::string(name_of(e)))};
    k.parameters = "const void* A, void* O, int64_t n, int64_t to, int64_t from_";
    out.push_back(std::move(k));
  }
  return out;
}

}  // namespace weft::generate
