// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a FusedPlan holds: fuse.cpp makes its steps, fuse_run.cpp runs them.

#include <optional>
#include <set>
#include <unordered_map>

#include "weft/fusion/chunked.h"
#include "weft/fusion/fuse.h"
#include "weft/fusion/fuse_host.h"
#include "weft/fusion/fuse_steps.h"

namespace weft {

inline constexpr std::size_t kMostInputs = 11;     // of a step that is not joined with others
inline constexpr std::size_t kMostOperands = 4;    // of an eager operation
inline constexpr std::size_t kMostOperations = 3;  // that take the place of a kernel
using Operands = std::span<const NDArray* const>;

struct FusedPlan::Impl {
  std::vector<Lazy> outputs;
  std::vector<int> output_slots;
  std::vector<Step> steps;
  std::unordered_map<const LazyNode*, int> slots;  // materialised nodes
  int inputs = 0, count = 0;
  bool grid = false, host = true, contract = false;
  std::unordered_map<const LazyNode*, int> users;
  std::unordered_map<const LazyNode*, double> sizes;
  std::set<const LazyNode*> cuts;  // values that are arrays of their own
  std::vector<std::string> sources;
  std::optional<ChunkedMap> few;  // the one step, for a few elements

  // ---- steps
  bool fuses(const Lazy& x) const;
  /// Is it an array before the step that reads it?
  bool is_leaf(const Lazy& x) const;
  /// One operation alone: the eager kernel is made for it, at every size.
  bool is_single(const Lazy& x) const;
  int materialise(const Lazy& x);
  /// Size of a node's value as a kernel writes it. Kernels of the host name what is used twice. For
  /// other devices a value is a tree: rows that compare name their operands several times, and a
  /// node with several users is written for each.
  double size_of(const Lazy& x);
  /// Leaves of the fused expression x: what is not fused itself. A value that another step has made
  /// already is read, not computed again.
  std::vector<Lazy> leaves_of(const Lazy& x);
  /// Makes the part of x that reads most arrays, as far as a kernel can, an array of its own.
  void cut_widest(const Lazy& x);
  void collect(const Lazy& x, Step& step);
  void make_few();

  // ---- running; `arrays`: null where the operand is a number
  static NDArray by_operations(const Lazy& x, const Ref<Device>& device,
                               std::unordered_map<const LazyNode*, NDArray>& known);
  static NDArray run_eagerly(const Lazy& x, Operands arrays);
  static bool is_brief(const Step& s);
  static NDArray run_brief(const Step& s, Operands arrays);
  NDArray step_map(Step& s, Operands arrays, const Ref<Device>& device);
  NDArray step_reduce(Step& s, Operands arrays, const Ref<Device>& device);
  std::vector<NDArray> step_rows(Step& s, Operands operands, const Ref<Device>& device);
  void run_on_host(Step& s, fuse::HostKernel kernel, std::span<NDArray> out, Operands arrays,
                   const Ref<Device>& device);
  Ref<runtime::Function> host_function(Step& s, Operands arrays, const Ref<Device>& device,
                                       const std::function<ir::PrimFunc()>& make);
};

}  // namespace weft
