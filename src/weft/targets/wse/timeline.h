// SPDX-License-Identifier: Apache-2.0
#pragma once
// What PEs and links did over time: counters of cells of PEs, sampled at most 192 times a run. When
// there would be more samples, every other one goes and the interval doubles.

#include <array>
#include <cstdint>
#include <vector>

#include "weft/base/json.h"
#include "weft/targets/wse/state.h"

namespace weft::wse {

class Timeline {
 public:
  Timeline(std::int32_t width, std::int32_t height);
  /// The cycle in which the next sample is due.
  Cycle due() const { return due_; }
  /// PEs whose counters one cell adds up, to each side.
  std::int32_t step() const { return step_; }

  void begin(Cycle now);
  void add(std::int32_t x, std::int32_t y, const PeCounters& count);
  void end();

  /// {"width", "height", "step", "cycles", "busy", "stall", "sent"}: per interval between two of
  /// "cycles" two hexadecimal digits a cell, row by row; 255 is one a cycle and PE.
  Json to_json() const;

 private:
  struct Sample {
    Cycle at = 0;
    std::vector<std::array<std::int64_t, 3>> cells;  // busy, stalled, wavelets sent, so far
  };
  std::int32_t width_, height_, step_ = 1, columns_, rows_;
  Cycle interval_ = 16, due_ = 16;
  std::vector<Sample> samples_;
};

}  // namespace weft::wse
