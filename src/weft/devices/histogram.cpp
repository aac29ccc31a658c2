// SPDX-License-Identifier: Apache-2.0
// Counts of small integers, on devices with a grid.

#include <algorithm>

#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/operators/histogram.h"

namespace weft {

NDArray grid_histogram(const NDArray& x, std::int64_t bins) {
  constexpr std::int64_t kThreads = operators::kHistogramThreads;
  NDArray counts = full(x.device(), Elem::int64, Dims{bins}, Scalar(0));
  if (x.size() == 0 || bins == 0) return counts;
  if (bins > operators::kHistogramMostBins) {
    const NDArray places[1] = {x};
    grid_scatter(counts, places, full(x.device(), Elem::int64, Dims{}, Scalar(1)), true);
    return counts;
  }
  auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  std::int64_t capacity = kThreads;
  while (capacity < bins) capacity *= 4;
  // Blocks that a processor holds at once, each with enough numbers to pay for its own counts.
  constexpr std::int64_t kResident = 6, kLeast = 16;
  const std::int64_t most = device::grid_of(x.device()).processors() * kResident;
  const std::int64_t least = kLeast * std::max(kThreads, capacity / 4);
  std::int64_t per = std::max(least, ceil_div(x.size(), most));
  per = ceil_div(per, kThreads) * kThreads;
  ProgramCall call(x.device());
  call.array(x).array(counts).integer(ceil_div(x.size(), per)).integer(x.size()).integer(per);
  call.integer(bins).run({"histogram", {capacity}}, [&] { return operators::histogram(capacity); });
  return counts;
}

}  // namespace weft
