// SPDX-License-Identifier: Apache-2.0
// The call `dot`: the processor's instruction where it has one for the types at this width, else
// products and sums of vectors.

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/machine/dot_limits.h"
#include "weft/targets/cpu/dot_instructions.h"
#include "weft/targets/cpu/llvm_function.h"

namespace weft::cpu {

using namespace ir;

DotInstructions DotInstructions::of_host(int vector_bytes) {
  DotInstructions out;
  out.bytes = vector_bytes;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (vector_bytes == 64) {
    out.vnni = __builtin_cpu_supports("avx512vnni");
    out.words = __builtin_cpu_supports("avx512bw");
    out.bfloat16 = out.words && __builtin_cpu_supports("avx512bf16");
    // Intel's processors begin a product of pairs every other clock or less often (Emerald Rapids:
    // half the rate of float32), AMD's as often as one of float32.
    out.bfloat16_pays = out.bfloat16 && !__builtin_cpu_is("intel");
  } else {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool seven = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0;
    out.vnni = vector_bytes == 32 && seven && (a >> 4 & 1) != 0;  // AVX-VNNI
    out.words = true;
  }
#elif defined(__aarch64__) && defined(__linux__)
  out.arm_bytes = (getauxval(AT_HWCAP) & (1ul << 20)) != 0;  // HWCAP_ASIMDDP
#endif
  return out;
}

void DotInstructions::state(TargetInfo& table) const {
  if (vnni) table.limits[limits::kDotMixedBytes] = 4;
  if (arm_bytes) table.limits[limits::kDotEqualBytes] = 4;
  if (words) table.limits[limits::kDotWords] = 2;
  if (bfloat16_pays) table.limits[limits::kDotBfloat16] = 2;
}

std::string DotInstructions::function(DType sums, DType a, DType b, bool* adds,
                                      bool* swapped) const {
  *adds = true, *swapped = false;
  if (bytes == 0 || sums.lanes * sums.bits != bytes * 8 || sums.bits != 32) return "";
  const std::string width = std::to_string(bytes * 8);
  if (a.is_bfloat())
    return bfloat16 && a.lanes == 2 ? cat("llvm.x86.avx512bf16.dpbf16ps.", width) : "";
  if (a.bits == 8 && a.lanes == 4) {
    if (vnni && a.is_uint() != b.is_uint()) {
      *swapped = a.is_int();
      return cat("llvm.x86.avx512.vpdpbusd.", width);
    }
    if (arm_bytes && a.is_uint() == b.is_uint())
      return cat("llvm.aarch64.neon.", a.is_uint() ? "udot" : "sdot", ".v4i32.v16i8");
  }
  if (a.bits == 16 && a.lanes == 2 && a.is_int() && b.is_int()) {
    if (vnni) return cat("llvm.x86.avx512.vpdpwssd.", width);
    *adds = false;
    if (words)
      return bytes == 64   ? "llvm.x86.avx512.pmaddw.d.512"
             : bytes == 32 ? "llvm.x86.avx2.pmadd.wd"
                           : "llvm.x86.sse2.pmadd.wd";
  }
  return "";
}

std::string FunctionEmitter::neighbours(const Expr& e) {
  const auto* l = as<LoadNode>(e);
  const std::string p = address(l->buffer.get(), expr(as<RampNode>(l->indices[0])->base));
  return let(
      cat("load ", memory_type(l->dtype), ", ptr ", p, ", align ", l->buffer->dtype.bytes()));
}

std::string FunctionEmitter::dot(const CallNode* e) {
  module_.explicit_vectors = true;
  const DType t = e->dtype, ta = e->args[1]->dtype, tb = e->args[2]->dtype;
  const std::string sums = expr(e->args[0]), a = neighbours(e->args[1]), b = neighbours(e->args[2]),
                    type = value_type(t);
  bool adds = true, swapped = false;
  const std::string function = module_.dots.function(t, ta, tb, &adds, &swapped);
  if (!function.empty()) {
    const bool arm = function.starts_with("llvm.aarch64");
    const DType word = dtypes::int32.with_lanes(t.lanes);
    const DType parts = arm || !adds ? tb : word;  // as the function takes its operands
    const std::string all = value_type(word), part = memory_type(parts);
    const std::string one = let(cat("bitcast ", memory_type(ta), " ", a, " to i32"));
    const auto as_parts = [&](const std::string& from, const std::string& v) {
      return from == part ? v : let(cat("bitcast ", from, " ", v, " to ", part));
    };
    const std::string x = as_parts(all, splat(word, one)), y = as_parts(memory_type(tb), b);
    module_.declarations.insert(
        cat("declare ", type, " @", function, "(", adds ? type + ", " : "", part, ", ", part, ")"));
    const std::string v =
        let(cat("call ", type, " @", function, "(", adds ? cat(type, " ", sums, ", ") : "", part,
                " ", swapped ? y : x, ", ", part, " ", swapped ? x : y, ")"));
    return adds ? v : let(cat("add ", type, " ", sums, ", ", v));
  }
  std::string out = sums;
  for (int k = 0; k < ta.lanes; ++k) {
    std::string mask;
    for (int i = 0; i < t.lanes; ++i) mask += cat(i ? ", i32 " : "i32 ", i * ta.lanes + k);
    const DType one = ta.element(), many = tb.element().with_lanes(t.lanes);
    const std::string x = let(cat("extractelement ", memory_type(ta), " ", a, ", i32 ", k));
    const std::string y = let(cat("shufflevector ", memory_type(tb), " ", b, ", ", memory_type(tb),
                                  " poison, <", t.lanes, " x i32> <", mask, ">"));
    const std::string wide = splat(t, cast(one, t.element(), from_memory(one, x)));
    const std::string lanes = cast(many, t, from_memory(many, y));
    const char* const contract = t.is_float() && module_.contract ? "contract " : "";
    const std::string product =
        let(cat(t.is_float() ? "fmul " : "mul ", contract, type, " ", wide, ", ", lanes));
    out = let(cat(t.is_float() ? "fadd " : "add ", contract, type, " ", out, ", ", product));
  }
  return out;
}

/// Halves are joined until one is left.
std::string FunctionEmitter::interleave(const CallNode* e) {
  module_.explicit_vectors = true;
  const DType part = e->args[0]->dtype, whole = e->dtype;
  const int n = static_cast<int>(e->args.size()), lanes = part.lanes;
  std::vector<std::string> parts;
  for (const Expr& a : e->args) parts.push_back(expr(a));
  // All parts one behind the other, then each lane from its place.
  std::string joined = parts[0];
  DType type = part;
  for (int k = 1; k < n; ++k) {
    std::string grown = parts[static_cast<std::size_t>(k)], mask;
    if (k > 1) {
      for (int i = 0; i < type.lanes; ++i)
        mask += cat(i ? ", i32 " : "i32 ", std::min(i, lanes - 1));
      grown = let(cat("shufflevector ", value_type(part), " ", grown, ", ", value_type(part),
                      " poison, <", type.lanes, " x i32> <", mask, ">"));
      mask.clear();
    }
    const DType longer = part.with_lanes(lanes * (k + 1));
    for (int i = 0; i < longer.lanes; ++i) mask += cat(i ? ", i32 " : "i32 ", i);
    joined = let(cat("shufflevector ", value_type(type), " ", joined, ", ", value_type(type), " ",
                     grown, ", <", longer.lanes, " x i32> <", mask, ">"));
    type = longer;
  }
  std::string mask;
  for (int i = 0; i < whole.lanes; ++i) mask += cat(i ? ", i32 " : "i32 ", i % n * lanes + i / n);
  return let(cat("shufflevector ", value_type(whole), " ", joined, ", ", value_type(whole),
                 " poison, <", whole.lanes, " x i32> <", mask, ">"));
}

}  // namespace weft::cpu
