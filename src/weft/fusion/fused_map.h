// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several element-wise results of some arrays in one pass: by chunks on the host, one kernel on a
// grid.

#include <optional>
#include <span>
#include <vector>

#include "weft/fusion/chunked.h"

namespace weft {

class FusedMap {
 public:
  /// Of graphs over inputs [0, inputs) of no axes and one real floating type.
  FusedMap(std::vector<Lazy> outputs, int inputs);
  /// Whether arrays of this type have such a pass on their device: real floats on the host and on
  /// machines with a grid.
  static bool suits(const NDArray& x);
  /// Which inputs the outputs read.
  const std::vector<int>& reads() const { return reads_; }
  std::size_t outputs() const { return outputs_.size(); }
  /// Into arrays of one shape of two axes, which overlap no input; `in` are all inputs, which
  /// broadcast to it. Inputs that are not read may be undefined.
  void operator()(std::span<const NDArray> out, std::span<const NDArray> in) const;

 private:
  std::vector<Lazy> outputs_;
  std::vector<int> reads_;
  std::vector<const LazyNode*> leaves_;
  std::uint32_t serial_ = 0;  // programs are kept by it
  std::optional<ChunkedMap> chunks_;
};

}  // namespace weft
