// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elements at positions that arrays name, along the leading axes of an array of any layout: reading
// them, adding to them, replacing them. `count` tuples of positions, each naming `rest` elements.
// Positions count from the end where they are negative. Those outside an axis set flag[0] and read
// the first element; `check_positions` finds them before anything is written.

#include <cstdint>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

enum class PositionUse : std::uint8_t {
  gather,      // out[c, r] = x[...]
  add,         // x[...] += value[c, r], each addition in one step, in no fixed order
  put,         // x[...] = value[c, r]; no element is named twice
  add_sorted,  // the additions of one element by one thread, in the order of c
  put_sorted,  // the last value of an element stands
  claim,       // x[...] becomes the largest c that names it
  put_claimed  // x[...] = value[claimed[...], r] where a tuple claimed it; x in row-major order
};

struct PositionSpec {
  PositionUse use = PositionUse::gather;
  std::string element;     // type of x and of the values
  std::string index_type;  // of the positions
  int indices = 1;
  int rest_rank = 0;   // axes of x behind those of the positions
  int outer_rank = 0;  // of a gather: axes of x before them, which come first in the result
  bool same = false;   // put: all tuples bring the same values, value[r]
  bool along = false;  // gather: every element of the result has a position of its own
  bool narrow = true;
};
inline constexpr int kPositionThreads = 256, kPositionItems = 4;

/// gather: (x, out, index0.., flag, scalars); others: (x, value, index0.., scalars), sorted ones
/// (x, value, index0.., order, place, scalars); claim: (x, index0.., flag, scalars) over places in
/// row-major order, int32; put_claimed: (x, value, claimed, scalars), size = places * rest. The
/// scalars: blocks, size = count * rest, rest,
/// then for each index the extent and the step of its axis, for each further axis both as well.
/// With outer axes: after these `inner` = the elements of the result for each outer place, then
/// extent and step of each. Of `along` those are all axes of the result, 0 the step of the one that
/// the positions are for.
ir::PrimFunc use_positions(const PositionSpec& spec);

/// (index0.., place, flag, blocks, count, then for each index the extent): place[c] is the
/// row-major place of the tuple. flag[0]: one lies outside; flag[1]: places do not ascend. Without
/// `places` neither they nor flag[1] are written.
ir::PrimFunc check_positions(const PositionSpec& spec, bool places);

}  // namespace weft::operators
