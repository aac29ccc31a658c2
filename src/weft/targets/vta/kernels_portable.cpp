// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "weft/targets/vta/kernels.h"

namespace weft::vta {
namespace {
#include "weft/targets/vta/kernels_common.inl"

void pack_inp(std::byte* packed, const std::int8_t* raw, std::size_t rows, int block) {
  std::memcpy(packed, raw, rows * static_cast<std::size_t>(block));
}

std::size_t packed_wgt_bytes(int block) {
  return static_cast<std::size_t>(block) * static_cast<std::size_t>(block);
}

/// [o][k] -> [k][o], so that the loop over o runs over neighbours.
void pack_wgt(std::byte* packed, const std::int8_t* raw, int block) {
  for (int o = 0; o < block; ++o) {
    for (int k = 0; k < block; ++k)
      packed[k * block + o] = static_cast<std::byte>(raw[o * block + k]);
  }
}

template <int kBlock>
void gemm_block(const GemmCall& call) {
  const int block = kBlock ? kBlock : call.block;
  for (std::size_t r = 0; r < call.row_count; ++r) {
    std::uint32_t sum[64] = {};
    for (std::size_t s = 0; s < call.step_count; ++s) {
      const std::int8_t* x =
          reinterpret_cast<const std::int8_t*>(call.inp + call.rows[r].inp + call.steps[s].inp);
      const std::int8_t* w = reinterpret_cast<const std::int8_t*>(call.wgt + call.steps[s].wgt);
      for (int k = 0; k < block; ++k, w += block) {
        for (int o = 0; o < block; ++o) sum[o] += static_cast<std::uint32_t>(x[k] * w[o]);
      }
    }
    std::int32_t* acc = call.acc + call.rows[r].acc;
    for (int o = 0; o < block; ++o)
      acc[o] = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc[o]) + sum[o]);
  }
}

void gemm(const GemmCall& call) {
  switch (call.block) {
    case 8: return gemm_block<8>(call);
    case 16: return gemm_block<16>(call);
    case 32: return gemm_block<32>(call);
    default: return gemm_block<0>(call);
  }
}
}  // namespace

const KernelSet& portable_kernels() {
  static constexpr KernelSet set{"portable", 8,    1,   packed_wgt_bytes, std::byte{0}, pack_inp,
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
