// SPDX-License-Identifier: Apache-2.0
#pragma once
// The inner loops of the fast engine, once per instruction set of the host. All give the same bits;
// which one runs is chosen once from the processor's features. A "row" is one batch row of an
// element: block_in input bytes or block_out accumulators. Weights and inputs are kept in the
// layout that a kernel set wants, packed when LOAD brings them in.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weft::vta {

/// One term of a row's sum: byte offsets of an input row (from the row's base) and of a packed
/// weight tile.
struct GemmStep {
  std::uint32_t inp, wgt;
};

/// A row of the product, relative to the bases of GemmCall: accumulators, bytes of packed input.
struct GemmRow {
  std::uint32_t acc, inp;
};

struct GemmCall {
  std::int32_t* acc;
  const std::byte* inp;  // packed inputs
  const std::byte* wgt;  // packed weights
  const GemmRow* rows;
  std::size_t row_count;
  const GemmStep* steps;
  std::size_t step_count;
  int block;
};

struct KernelSet {
  std::string_view name;
  int rows;                             // rows that are summed together: those must be distinct
  int inp_scale;                        // packed bytes per byte of input
  std::size_t (*wgt_bytes)(int block);  // of a packed weight tile
  std::byte inp_zero;                   // every byte of packed zeros; packed zero weights are zeros
  /// n rows of block_in bytes.
  void (*pack_inp)(std::byte* packed, const std::int8_t* raw, std::size_t rows, int block);
  void (*pack_wgt)(std::byte* packed, const std::int8_t* raw, int block);
  /// acc[row] += sum over steps of inp[row + step] . wgt[step], `rows` rows at a time from the
  /// first.
  void (*gemm)(const GemmCall& call);
  /// lanes is a multiple of 4. Elements in order: acc[dst + i * dst_step] op= acc[src + i *
  /// src_step] or imm. op: AluOp. Returns false when a shift amount of a lane lies outside -31
  /// .. 31.
  bool (*alu)(int op, bool use_imm, std::int32_t imm, std::int32_t* acc, int lanes,
              std::uint32_t dst, std::uint32_t dst_step, std::uint32_t src, std::uint32_t src_step,
              std::size_t n);
  void (*narrow)(std::int8_t* dst, const std::int32_t* src, std::size_t n);  // n is a multiple of 4
  void (*widen)(std::int32_t* dst, const std::int8_t* src, std::size_t n);
};

const KernelSet& portable_kernels();
/// Null when this build or the host's processor lacks it.
const KernelSet* avx2_kernels();
const KernelSet* avxvnni_kernels();
const KernelSet* vnni_kernels();
/// Those usable here, best first; the portable one is last.
std::vector<const KernelSet*> usable_kernels();

}  // namespace weft::vta
