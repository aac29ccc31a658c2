// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps of one direction of a recurrent layer: for each step one product with the weights of
// the states and one pass over the cells, forward and backward.

#include <memory>
#include <optional>
#include <vector>

#include "weft/fusion/fused_map.h"

namespace weft {

class Recurrence {
 public:
  /// The next states of a cell as graphs of no axes and one type over the inputs p0 .. (the sums of
  /// the inputs, one for each gate), q0 .. (those of the state), with `bias` b0 .. (added to q by
  /// the graph), and the states before. The first state is the layer's output and what is
  /// multiplied.
  Recurrence(std::vector<Lazy> next, int gates, bool bias);

  /// What a run leaves. `result` is (steps + states - 1, batch, hidden): all outputs, and the other
  /// states' last values behind them (before them with `reverse`). The rest is for the gradient.
  struct Run {
    NDArray result;
    NDArray before;                // (steps, batch, hidden): the first state before each step
    NDArray sums;                  // (steps, batch, gates * hidden): q of each step
    std::vector<NDArray> earlier;  // the other states before each step
  };
  /// p (steps, batch, gates * hidden), weight (hidden, gates * hidden), bias (gates * hidden) or
  /// undefined, states (batch, hidden); types for which FusedMap::suits. `keep`: for a gradient.
  Run forward(bool reverse, bool keep, const NDArray& p, const NDArray& weight, const NDArray& bias,
              const std::vector<NDArray>& states) const;

  struct Gradients {
    NDArray p, q;                 // like p; one array where the gradients are equal
    std::vector<NDArray> states;  // of the states before the first step
  };
  /// g is the gradient of `result`.
  Gradients backward(bool reverse, const NDArray& g, const NDArray& p, const NDArray& weight,
                     const NDArray& bias, const Run& run) const;

 private:
  std::size_t gates_, states_;
  bool bias_, apart_ = false, direct_ = false;
  FusedMap next_;
  std::optional<FusedMap> back_;
};

}  // namespace weft
