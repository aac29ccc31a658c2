// SPDX-License-Identifier: Apache-2.0
#pragma once
// How arrays lie in memory for this machine: outer dimensions, then the two lanes of an element.
// Lanes are parts of two axes of the stage; which axes is chosen so that little is padded and
// arrays that already lie right stay as they are.

#include <array>

#include "weft/targets/vta/config.h"
#include "weft/targets/vta/stages.h"

namespace weft::vta {

/// A dimension of the packed form: an axis by itself, or (window) a dimension of the array as it
/// is, read at a sum of axes.
struct PackedDim {
  bool window = false;
  std::size_t axis = 0;                // of the stage
  std::size_t dim = 0;                 // of the array (window)
  std::int64_t extent = 1, shift = 0;  // window: packed index = (array's index - shift) / step
  std::int64_t step = 1;               // of an array as it is: other rows are not fetched
  /// What a stage's axis adds to the packed index, given what it adds to the array's.
  std::int64_t coeff(std::int64_t c) const { return c % step ? 0 : c / step; }
};

struct Layout {
  std::vector<PackedDim> dims;
  std::array<int, 2> lane_axis{-1, -1};  // -1: none, one lane holds data
  std::array<std::int64_t, 2> lanes{1, 1};
  std::array<bool, 2> replicate{false, false};  // the array does not depend on the lane
  bool identity = false;                        // the array itself is in this form
  bool guard = false;                           // reads outside the array's bounds: padded by DMA
  std::int64_t elements = 1;                    // of the packed form
};

/// Which axes make up an element.
struct Lanes {
  int batch = -1, out = -1, in = -1;
  bool swapped = false;  // the stage's factors change places: w is the input
};

/// Whether the axis occurs in the operand.
bool uses(const Operand& o, const Axis& a);

/// Number of whole elements along an axis.
std::int64_t outer_extent(const Task& s, const Lanes& l, const Config& c, std::size_t axis);

/// The packed form with these lanes (sizes from the machine); nothing when a lane's axis is mixed
/// with others in the array's index.
std::optional<Layout> layout_of(const Operand& o, const Task& s, std::array<int, 2> lane_axis,
                                std::array<std::int64_t, 2> lanes, bool may_replicate,
                                bool dma_pads);

/// The choice that wastes least; axes that are no lanes at all always fit.
Lanes choose_lanes(const Task& s, const Config& c);

/// The operand that a store of the chain writes.
Operand target_of(const Segment& segment);

}  // namespace weft::vta
