// SPDX-License-Identifier: Apache-2.0
#pragma once
// Softmax, layer norm and their gradients over rows that a group of threads can hold: nests of one
// row loop and one loop along the row, which a schedule rule makes one kernel of.

#include <cstdint>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

enum class RowOperator : std::uint8_t {
  softmax,
  log_softmax,
  softmax_gradient,
  log_softmax_gradient,
  layer_norm,
  layer_norm_gradient
};

struct RowSpec {
  RowOperator op = RowOperator::softmax;
  std::string type = "float32";  // of elements
  std::string sums = "float32";  // of the arithmetic
  bool narrow = true;            // positions fit 32 bits
  std::int64_t width = 1;        // iterations along a row: its length, rounded up
  std::int64_t lanes = 1;        // every row begins and ends at a multiple of so many elements
  bool full = false;             // a row is exactly `width` long
  bool weighted = true;          // layer_norm and its gradient: with operands of one row
};

/// main(out, operands..., rows, moves, share, eps): rows of moves * lanes elements; share is the
/// reciprocal of that number. Operands of softmax and log_softmax: x; of their gradients: the
/// result and its gradient; of layer_norm: x, scale, shift; of its gradient: x, the gradient,
/// scale; scale and shift where `weighted`.
ir::PrimFunc row_program(const RowSpec& spec);

}  // namespace weft::operators
