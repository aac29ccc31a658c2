// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor cores as instructions for tensorize. An instruction works on a tile of C whose elements
// lie in the registers of the threads that execute it together; which thread holds which element
// is a layout that transform_layout gives the accumulator's buffer ("local", one thread's part
// each):
//
//   cuda.mma.m{16,32,64}n{32,64}k16.{float16,bfloat16}   32 threads of threadIdx.x, from sm_80 on
//     C[i, j] at (i % 8 * 4 + j % 8 // 2, i // 8, j // 8, j % 2), A[i, k] and B[k, j] as they are
//   cuda.wgmma.m64n{64,128,256}k64.{float16,bfloat16}   128 threads, sm_90a
//     C[i, j] at (i // 16 * 32 + i % 8 * 4 + j % 8 // 2, j // 8, i % 16 // 8, j % 2),
//     A[i, k] at (i, k // 8 ^ i % 8, k % 8), B[k, j] at (j // 64, k, j % 64 // 8 ^ k % 8, j % 8):
//     rows of 128 bytes, whose pieces of 16 bytes are swizzled by the row
//
// Meaning and implementation are ordinary programs: the interpreter runs them, the race checker
// proves them. The loop annotated "instruction" is what the machine's instruction stands for.
// A loop annotated "mma.float64" is a nest over rows of 8, pairs of columns of 8, two columns and
// terms, whose operands are tiles of float64 with either index contiguous (from sm_80 on).
// Source: PTX ISA, "Matrix fragments" of mma.m16n8k16, ldmatrix, wgmma and its matrix descriptor.

#include <string>
#include <string_view>
#include <vector>

#include "weft/target/target.h"

namespace weft::cuda {

const std::vector<InstructionInfo>& tensor_core_rows();

/// Puts calls of the intrinsic "instruction" for annotated loops. Throws
/// Error(emit, "cuda.instruction.layout") when an operand does not lie as the instruction needs.
ir::PrimFunc select_tensor_cores(const ir::PrimFunc& f);

/// The device function that such a call names.
std::string instruction_definition(std::string_view name);

/// Products of float64 that a processor adds in a clock by mma; 0: mma is slower than its threads.
int double_product_sums(int capability);

}  // namespace weft::cuda
