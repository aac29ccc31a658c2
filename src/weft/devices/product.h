// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program of a product of arrays on cards: nests (operators/product.h) with the schedule of a
// rule (rules/product_tile.h), whose decisions are made at the call.

#include "weft/devices/kernel.h"
#include "weft/operators/product.h"
#include "weft/rules/product_choice.h"

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
  rules::RatedTile tile;
  std::int64_t stages = 1;
  bool wide_store = false;  // results are stored in vectors of 16 bytes
  bool spread = false;      // neighbouring threads have neighbouring columns: Tile's along_columns
  bool bias = false;        // sums begin with a number of their column
};

/// An operand that is read in vectors has its other steps in vectors; so has a result that is
/// stored in vectors. Parameters: those of product_program.
operators::ProductSpec product_spec(const ContractSpec& spec);
ir::PrimFunc product_kernel(const ContractSpec& spec);

/// Elements in a vector of 16 bytes.
inline std::int64_t vector_of(Elem elem) { return 16 / elem_bytes(elem); }

}  // namespace weft::device
