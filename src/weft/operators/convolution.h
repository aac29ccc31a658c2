// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions whose groups have few results or few summands, where tiles of a product would be
// mostly empty. A thread has the results of one group at a strip of places, whose windows overlap:
// what it reads stays in registers for all of them. Weights of several results come through shared
// memory.

#include <array>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

struct ConvolutionSpec {
  std::string type;              // of the elements
  std::string sums = "float32";  // of the arithmetic
  bool narrow = true;            // positions fit 32 bits
  std::array<int, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  /// The adjoint of the convolution towards its input: image[y] reaches out[y * stride + i *
  /// dilation - padding].
  bool transposed = false;
  int results = 1;  // of a group that a thread has at once
  int rows = 4;     // of its strip: of out, or of the image where it is transposed
  int threads = 256;
  /// Windows that are not written out: one place a thread, and loops over the window.
  bool rolled = false;
};

/// Whether strips of `rows` fit a thread's registers.
bool strips_fit(const ConvolutionSpec& spec);

/// main(image, weight, out, blocks, lot_blocks, size, columns, strips, groups, chunks, outs, ins,
/// h, w, oh, ow, before_y, before_x, off_y, off_x, from_n, from_c, from_y, from_x): out[n, g * outs
/// + o, ...] = the sum over c and the window of image[n, g * ins + c, ...] times weight[g, o, c, i,
/// j], or weight[g, c, o, i, j] where transposed. Blocks go by group and chunk of `results`
/// results; lot_blocks of them share `size` = images * strips * columns strips of one. image is h x
/// w at its own strides (from_*), out oh x ow; out and weight are compact. Strip s of column x
/// begins at the row s * rows * stride - before_y, column x * stride - before_x of `image` (steps 1
/// where transposed), and has the results from row s * rows (* stride) - off_y on.
ir::PrimFunc convolution_strips(const ConvolutionSpec& spec);

/// main(image, by, out, blocks, lots, part, size, columns, strips, outs, ins, h, w, oh, ow,
/// before_y, before_x, from_n, from_c, from_y, from_x, by_n, by_c, by_y, by_x): the gradient
/// towards the weights, out[part, g, o, c, i, j] = the sum over the part's images and places of
/// by[n, g * outs + o, y, x] * image[n, g * ins + c, y * stride + i * dilation - before_y, ...].
/// A block has one pair of channels (`lots` of them) and `part` of the `size` = images * strips *
/// columns strips. out is of type `sums`.
ir::PrimFunc convolution_weights(const ConvolutionSpec& spec);

/// main(image, out, blocks, size, columns, lines, h, w, before_y, before_x, from_n, from_c, from_y,
/// from_x, channels): windows as rows, out[n, c, i, j, y, x] = image[n, c, y * stride + i *
/// dilation - before_y, ...] for `size` = images * channels * lines * columns; what lies outside is
/// 0. The window is written out.
ir::PrimFunc convolution_windows(const ConvolutionSpec& spec);

}  // namespace weft::operators
