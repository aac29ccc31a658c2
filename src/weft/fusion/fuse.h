// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels of a Lazy graph: chains of element-wise nodes become one kernel each, with a reduction at
// their end where there is one. Views and products between them run as the eager operations. A plan
// is made for given types and shapes; kernels are built at the first call, for the device and the
// layouts that come.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/fusion/lazy.h"

namespace weft {

/// One row of the table over inputs of one shape and of its kernel's type: the kernel for arrays of
/// the host without gaps.
struct LoneRow {
  ElementwiseFn function = nullptr;
  Elem result{};
  int count = 0, slots[2] = {};
};

class FusedPlan {
 public:
  /// `contract`: on the host a product and a sum may become one rounding; without, every element is
  /// rounded as the eager operations round it. `device`: where the plan will run; none: the host.
  explicit FusedPlan(std::vector<Lazy> outputs, bool contract = false,
                     const Ref<Device>& device = {});
  ~FusedPlan();
  FusedPlan(FusedPlan&&) noexcept;
  /// The inputs' types and shapes must be those of the graph; all on one device.
  std::vector<NDArray> run(std::span<const NDArray* const> inputs);
  /// Whether the plan is one eager operation, or one short expression over few elements, whose
  /// result is the plan's; `run_alone` then takes the shortest way to it.
  bool alone() const;
  /// Whether all steps are eager operations, none of them a view; whether they are or run as such,
  /// since they have few elements. Nothing is compiled then.
  bool eager() const;
  bool brief() const;
  NDArray run_alone(std::span<const NDArray* const> inputs);
  /// Of other plans without a function.
  LoneRow lone_row() const;
  /// Kernels of one call: fused ones, and operations that stand alone; all launched steps, views
  /// aside.
  int kernels() const;
  int steps() const;
  /// Whether some kernel joins several operations; else the plan is the eager operations.
  bool joins() const;
  /// One line for each step.
  std::string describe() const;
  /// The text of the kernels built so far, as their target says it.
  std::string source() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
