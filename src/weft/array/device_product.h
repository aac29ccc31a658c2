// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products by instructions that add whole tiles (tensor cores): rows of the target say how their
// operands lie.

#include "weft/array/device_grid.h"
#include "weft/array/device_kernel.h"

namespace weft::device {

/// Whether an instruction of the device fits operands of these types: 16-bit floats, summed in
/// float32.
bool has_product(const Ref<Device>& device, Elem a, Elem b);

/// What a kernel of products is specialised on.
struct ProductSpec {
  const InstructionInfo* row = nullptr;
  Elem out = Elem::float32, in = Elem::float16;
  bool narrow = true, pairs = true;  // positions fit 32 bits; columns are even and stored in pairs
  int rank_batch = 0;
  std::int64_t groups = 2, stages = 3;  // groups of the instruction's rows in a block; of copies
  std::string queue;
};
/// Parameters: out, a, b; blocks_m, blocks_n, batches, m, n, k, n / 2; the steps of a's and b's
/// rows in vectors of 16 bytes; the extents of the batch and the steps of a and b along it, in
/// vectors.
ir::PrimFunc product_kernel(const ProductSpec& spec);

/// The operand with rows of whole vectors of 16 bytes at multiples of them; else a copy of it, with
/// zeros behind each row where `zeros` asks for them.
NDArray in_vectors(const NDArray& x, bool zeros = true);

/// Whether the instruction, with the copies that its operands need, is expected to take less time
/// than multiplications by threads.
bool prefers_product(const NDArray& out, const NDArray& a, const NDArray& b);

/// out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n], all of one rank with equal leading extents
/// (strides of 0 for broadcast ones). `out` is compact, of the operands' type or float32.
void grid_product(const NDArray& out, const NDArray& a, const NDArray& b);

}  // namespace weft::device
