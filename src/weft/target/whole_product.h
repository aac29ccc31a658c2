// SPDX-License-Identifier: Apache-2.0
#pragma once
// A product of 16-bit floats, summed in float32, or a convolution as one, as the only thing that a
// kernel does: what such a kernel is specialised on. A target may have kernels for it that no
// schedule reaches yet (threads in different roles, operands brought by a copy engine).
//
// out[m, n] = sum over k of a[m, k] * b[k, n], in tiles of 64 * groups rows and `columns` columns,
// 64 of k at a time. Operands are tensors of four axes (runtime::ParamKind::tensor), innermost
// first; what lies outside of one is 0. Parameters:
//   tensors a, b and, where out is `copied`, out; then a pointer to out;
//   tiles_m, tiles_n, batches, parts, steps (of 64 summands, of the whole sum), part (steps of one
//   part), m, n, inner (extent of the inner of two batch axes), whether a moves along the inner and
//   the outer batch axis, the same for b;
//   patches along x, patches along y, a patch's extents along x, y and images, the steps of windows
//   along x and y, what lies before an image along x and y, the window's extent along x, the number
//   of 64 channels, how many places the window has if it is turned around (else 0).
// All scalars are int32. Axes of the launch: blockIdx.x (any number), threadIdx.x (threads()).
// A sum in several parts is written as float32, [parts, batches, m, n], for the caller to add up.

#include <cstdint>

#include "weft/base/dtype.h"

namespace weft {

struct WholeProduct {
  /// product: a is [batch, batch, m, k], b [batch, batch, k, n]. patches: the rows of a are patches
  /// of 64 places of images [n, y, x, channel], its steps the window's places, 64 channels each; b
  /// is [place, k, n]. places: the batches are the window's places, the steps patches of 64 places
  /// in the images a and b.
  enum class Mode : std::uint8_t { product, patches, places };
  /// copied: of the operands' type by the copy engine (rows at multiples of 16 bytes); stored: by
  /// threads; partial: float32 by threads.
  enum class Out : std::uint8_t { copied, stored, partial };

  Mode mode = Mode::product;
  Out out = Out::copied;
  DType type;                                  // of the operands
  bool a_along_m = false, b_along_n = true;    // the innermost axis; otherwise k
  int groups = 2, columns = 256;               // 1 or 2; 64, 128 or 256
  int stages = 4;                              // copies of the operands' tiles
  int patch[3] = {1, 1, 1}, step[2] = {1, 1};  // of patches and places: along x, y and images

  std::int64_t threads() const { return 128 * (groups + 1); }
  std::int64_t shared_bytes() const {
    return std::int64_t{stages} * (groups * 8192 + columns * 128 + 16) +
           (out == Out::copied ? groups * 16384 : 0);
  }
};

}  // namespace weft
