// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel of a contraction: tiles of both operands go to shared memory a few steps ahead of
// their use, on the device's copy queue where it has one; each thread keeps its part of the result
// in registers.

#include "weft/devices/tile.h"
#include "weft/operators/product.h"

namespace weft::device {

/// How a tile of an operand is read: neighbouring threads along the summed axis, along the other
/// one, along the other one with whole vectors of 16 bytes, or along the summed one with vectors
/// (for an instruction, whose tiles may lie either way).
enum class Read : std::uint8_t { summed, rows, wide, terms };

struct ContractSpec {
  Elem out, a, b;      // out is what is computed in
  Elem store;          // what is written: out or a 16-bit float
  bool narrow = true;  // positions fit 32 bits
  Read read_a = Read::rows, read_b = Read::rows;
  int rank_m = 1, rank_n = 1, rank_k = 1, rank_batch = 0;
  Tile tile;
  std::int64_t stages = 1;
  bool early = false;       // TileChoice::early
  bool wide_store = false;  // results are stored in vectors of 16 bytes
  bool spread = false;      // neighbouring threads have neighbouring columns: Tile's along_columns
  bool bias = false;        // sums begin with a number of their column
  std::string queue;        // "": copies are done where they stand
};

/// Parameters: out, a, b, the columns' numbers where there are such; blocks_m, blocks_n, parts,
/// batches, length of a part, m, n, k, elements of a part's result; the extents of m, n, k, batch;
/// the steps of a along m, k, batch, of b along k, n, batch, of out along m, n, batch. An operand
/// that is read in vectors has its other steps in vectors; so has a result that is stored in
/// vectors.
ir::PrimFunc contract_kernel(const ContractSpec& spec);
/// Which of the two: for comparisons.
inline bool products_by_hand = true;
operators::ProductSpec product_spec(const ContractSpec& spec);
/// As a program of nests (operators/product.h) with the schedule of the rules; its parameters are
/// those of product_program.
ir::PrimFunc product_kernel(const ContractSpec& spec);

/// Elements in a vector of 16 bytes.
inline std::int64_t vector_of(Elem elem) { return 16 / elem_bytes(elem); }

}  // namespace weft::device
