// SPDX-License-Identifier: Apache-2.0
// For any processor: vectors of 16 bytes as compilers know them. Where SSE2 is the baseline
// (x86-64) its pmaddwd does a pair of products; elsewhere the halves are multiplied and added
// apart.
#include <cstring>

#include "weft/targets/vta/kernels.h"

namespace weft::vta {
namespace {
#include "weft/targets/vta/kernels_common.inl"
#include "weft/targets/vta/kernels_pairs.inl"

struct Vector {
  typedef std::int32_t Register __attribute__((vector_size(16)));
  typedef std::int16_t Halves __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;
  static Register load(const void* p) {
    Register v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(void* p, Register v) { std::memcpy(p, &v, sizeof v); }
  static Register pair(const void* p) {
    std::int32_t two;
    std::memcpy(&two, p, sizeof two);
    return Register{two, two, two, two};
  }
  static void multiply_add(Register& acc, Register x, Register w) {
#if defined(__SSE2__) && !defined(WEFT_VTA_PLAIN_VECTORS)
    // In place; compilers otherwise gather products first and run out of registers.
    Register product = x;
    __asm__("pmaddwd %1, %0" : "+x"(product) : "x"(w));
    acc += product;
#else
    constexpr bool kLittle = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    static_assert(kLittle, "pairs are read as the low and the high half of a lane");
    const Register low = ((x << 16) >> 16) * ((w << 16) >> 16), high = (x >> 16) * (w >> 16);
    acc += low + high;
#endif
  }
};

void pack_inp(std::byte* packed, const std::int8_t* raw, std::size_t rows, int block) {
  const std::size_t n = rows * static_cast<std::size_t>(block);
  std::int16_t* out = reinterpret_cast<std::int16_t*>(packed);
  for (std::size_t i = 0; i < n; ++i) out[i] = raw[i];
}

/// Pairs are moved as they are, then widened.
void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  std::int8_t turned[64 * 64];
  for (int o = 0; o < block; ++o) {
    for (int k = 0; k < block; k += 2)
      std::memcpy(turned + k * block + 2 * o, raw + o * block + k, 2);
  }
  std::int16_t* out = reinterpret_cast<std::int16_t*>(packed);
  const int n = block * block;
  for (int i = 0; i < n; ++i) out[i] = turned[i];
}

void gemm(const GemmCall& call) {
  switch (call.block) {
    case 4: return gemm_count<Vector, 4, 1, 4>(call);
    case 8: return gemm_count<Vector, 4, 2, 8>(call);
    case 16: return gemm_count<Vector, 4, 2, 16>(call);
    case 32: return gemm_count<Vector, 2, 4, 32>(call);
    default: return gemm_count<Vector, 2, 4, 64>(call);
  }
}
}  // namespace

const KernelSet& portable_kernels() {
  static constexpr KernelSet set{"portable", 4,    2,   packed_wgt_bytes, std::byte{0}, pack_inp,
                                 pack_wgt,   gemm, alu, narrow,           widen};
  return set;
}

std::vector<const KernelSet*> usable_kernels() {
  std::vector<const KernelSet*> out;
  for (const KernelSet* set : {vnni_kernels(), avxvnni_kernels(), avx2_kernels()}) {
    if (set) out.push_back(set);
  }
  out.push_back(&portable_kernels());
  return out;
}

#if !defined(__x86_64__)
const KernelSet* avx2_kernels() { return nullptr; }
const KernelSet* avxvnni_kernels() { return nullptr; }
const KernelSet* vnni_kernels() { return nullptr; }
#endif

}  // namespace weft::vta
