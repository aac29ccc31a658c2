// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "weft/devices/grid.h"

namespace weft::device {

/// One of the maps that `grid_maps` runs together: its results, and its inputs.
struct MapOfMany {
  std::vector<NDArray> outs;
  std::vector<const NDArray*> arrays;
};
/// The same values of several lists of compact arrays, each of its own size, a few lists a launch.
/// Arrays of one element count for all elements. Types are those of the first list; `map.arrays`
/// and `map.value` are not asked. A result may be an input of its list.
void grid_maps(std::span<const MapOfMany> maps, const Map& map, const MapValues& values);

}  // namespace weft::device
