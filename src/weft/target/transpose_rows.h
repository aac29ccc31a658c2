// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transposes in vector registers as instructions for tensorize, "transpose.8x8.f32" and its like:
// B[i, j] = A[j, i] for tiles whose rows are contiguous on both sides. A target that takes the rows
// runs the pass and defines the functions it calls.

#include <string>
#include <string_view>
#include <vector>

#include "weft/ir/node.h"
#include "weft/target/target.h"

namespace weft {

/// Sides of a tile that moves as whole vectors, by the bits of an element.
struct TransposeShape {
  int side = 0, bits = 0;
  /// Elements in 128 bits, which is what shuffles mix; a tile's row is one or two such pieces.
  int piece() const { return 128 / bits; }
  /// "weft_transpose_8x8_b32".
  std::string function() const;
};
/// 16x16 of 8 bits, 8x8 of 16, 4x4 and 8x8 of 32, 2x2 and 4x4 of 64.
const std::vector<TransposeShape>& transpose_shapes();
/// The shape whose function has this name; null: there is none.
const TransposeShape* find_transpose(std::string_view function);

/// Rows for every element type: "transpose.<side>x<side>.<f16|bf16|f32|f64|i8..u64>".
const std::vector<InstructionInfo>& transpose_rows();

/// On flat buffers: tiles of these rows become calls of the intrinsic "instruction" with (function,
/// address of B, elements between its rows, address of A, elements between its rows). A tile whose
/// rows are not contiguous stays a loop, which says so ("scalarised").
ir::PrimFunc call_transposes(const ir::PrimFunc& f);

/// The steps that interleave the `count` vectors of one piece: vectors (a, b) of the step before,
/// and whether their lower or upper halves are taken, in order of the results.
struct Interleave {
  int a, b;
  bool upper;
};
std::vector<std::vector<Interleave>> interleave_steps(int count);
/// Which elements of two vectors such a step takes, piece by piece.
std::vector<int> interleave_mask(int piece, int pieces, bool upper);

/// The function's definition in C with vectors of GCC and Clang, or plain loops where the compiler
/// has none; "": the name is not one of these.
std::string transpose_definition(std::string_view function);

}  // namespace weft
