// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel of whole products and convolutions as a program of the IR: threads in roles that hand
// tiles to one another (docs/design/roles.md). out[m, n] = sum over k of a[m, k] * b[k, n], in
// tiles of 64 * groups rows and `columns` columns, 64 of k at a time; blocks stay and take one tile
// after another. Operands are arrays of four axes (five of pieces) as the copy engine sees them,
// innermost first; what lies outside of one is 0.
//
// Parameters: the buffers a, b, out; of each buffer that is copied in bulk (out: where it is
// `copied`) its extents and strides but the first, in elements; then kGemmParams in order. A sum
// in several parts is written as float32 for the caller to add up: products as [parts, batches, m,
// n], places as [parts, m, batches, n], patches as [parts, image, y, x, n] of `high` rows of `wide`
// places, `m` in all.

#include <array>
#include <cstdint>
#include <string_view>

#include "weft/base/dtype.h"
#include "weft/ir/node.h"

namespace weft::device {

struct WarpSpecializedGemm {
  /// product: a is [batch, batch, m, k], b [batch, batch, k, n]. patches: the rows of a are patches
  /// of 64 places of images [n, y, x, channel], its steps the window's places, 64 channels each; b
  /// is [row, column, k, n] of the window. places: the batches are the window's places, the steps
  /// patches of 64 places in the images a and b.
  enum class Mode : std::uint8_t { product, patches, places };
  /// copied: of the operands' type by the copy engine (rows at multiples of 16 bytes); stored: by
  /// threads; partial: float32 by threads.
  enum class Out : std::uint8_t { copied, stored, partial };

  Mode mode = Mode::product;
  Out out = Out::copied;
  DType type;                                  // of the operands
  bool a_along_m = false, b_along_n = true;    // the innermost axis; otherwise k
  int groups = 2, columns = 256;               // 1 or 2; 64, 128 or 256
  int stages = 4;                              // slots of the ring
  int patch[3] = {1, 1, 1}, step[2] = {1, 1};  // of patches and places: along x, y and images
  /// Of patches and places: operands are planes of pieces of float32 (devices/pieces.h), along an
  /// axis more, the outermost; `out` is partial.
  bool pieces = false;
  /// Of patches and places: operands (and a copied out) have groups along an axis more, the
  /// outermost; each is a convolution by itself, its batches follow those of the group before.
  bool grouped = false;

  std::int64_t threads() const { return 128 * (groups + 1); }
  int axes() const { return pieces || grouped ? 5 : 4; }  // of an operand
  /// Of patches, the adjoint of a convolution of these steps along x and y: batches are the
  /// remainders of places by the steps, each with its own places of the window. 0: none.
  int phases[2] = {0, 0};
  bool phased() const { return phases[0] > 0; }
  /// Whether results lie at the steps to_image, to_y, to_x and to_channel, parts `slab` apart.
  bool by_steps() const { return mode == Mode::patches && (pieces || phased()); }
};

/// blocks: of the launch. steps: of 64 summands, of the whole sum; part: steps of one part. inner:
/// extent of the inner of two batch axes; move_*: whether an operand moves along the inner (0) and
/// the outer (1) of them. patches_*: along x and y; before_*: what lies before an image; window:
/// its extent along x; chunks: of 64 channels; turned: how many places the window has if it is
/// turned around, else 0. slab and to_*: steps of results, where they are by steps. Of phases,
/// before_* is what lies before the results, wide and high are their extents. gap_*: from one place
/// of the window to the next. Of phases what this and the step have in common is divided out of it,
/// common_*; inverse_*: what it is multiplied by to be 1 modulo the rest of the step. each: batches
/// of one group.
inline constexpr std::array<std::string_view, 36> kGemmParams = {
    "blocks",   "tiles_m",  "tiles_n",   "batches",    "parts",    "steps",
    "part",     "m",        "n",         "inner",      "move_a0",  "move_a1",
    "move_b0",  "move_b1",  "patches_w", "patches_h",  "before_x", "before_y",
    "window",   "chunks",   "turned",    "wide",       "high",     "slab",
    "to_image", "to_y",     "to_x",      "to_channel", "gap_x",    "gap_y",
    "common_x", "common_y", "inverse_x", "inverse_y",  "each",     "to_group"};

ir::PrimFunc warp_specialized_kernel(const WarpSpecializedGemm& spec);

}  // namespace weft::device
