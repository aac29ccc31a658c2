// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps of a FusedPlan.

#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/devices/fused_rows.h"
#include "weft/fusion/fuse.h"
#include "weft/fusion/lazy.h"
#include "weft/ir/node.h"
#include "weft/runtime/module.h"

namespace weft {

enum class StepKind : std::uint8_t { map, reduce, reshape, permute, matmul, eager, rows };

/// Steps that become one kernel: their results, in the order of the kept ones.
struct RowKernelStep {
  device::FusedRows program;  // on a grid: steps over the rows of one matrix
  // On the host: values over the step's shape, of which axes in the mask are reduced.
  std::vector<Lazy> values;
  std::vector<bool> kept;
  std::uint64_t mask = 0;
  std::vector<int> out;
  std::vector<Elem> elems;
  std::vector<Dims> shapes;
};

/// An operation of a step's expression; operands: a leaf of the step, the result of operation k as
/// -1 - k, or a number of the node's.
struct BriefOperation {
  static constexpr int kNumber = std::numeric_limits<int>::min();
  Lazy node;
  std::vector<int> in;
};

/// One step of a plan; slots hold arrays: the inputs first, then results.
struct Step {
  StepKind kind = StepKind::map;
  Lazy root;                            // map, reduce: the expression
  std::vector<const LazyNode*> leaves;  // of the expression, in the order of `in`
  std::vector<int> in;
  std::vector<const LazyNode*> numbers;  // of the expression, that calls on grids bring
  int out = 0;                           // not for `rows`
  bool single = false;                   // eager, though `root` could be a kernel
  std::vector<BriefOperation> brief;  // few elements: the expression by eager operations, if short
  Elem elem = Elem::float32;
  Dims shape;                // map: of the result; reduce: before it; rows of hosts: of both
  Lazy node;                 // views and products: the node itself; reduce: the reduction
  std::uint32_t serial = 0;  // of all plans of the process: devices keep kernels by it
  std::map<std::string, Ref<runtime::Function>> built;  // host: by layout
  /// Of these, the last one for arrays without gaps, and its device.
  Ref<runtime::Function> compact;
  Ref<Device> compact_device;
  std::shared_ptr<RowKernelStep> rows;  // rows

  std::vector<int> results() const { return rows ? rows->out : std::vector<int>{out}; }
};

/// The row that is all of a plan's only step, if it is one.
LoneRow lone_row(const Step& s);
/// The value of a step's expression, given those of its leaves and of its numbers.
ir::Expr step_value(const Step& step, const std::vector<ir::Expr>& loads,
                    const std::vector<ir::Expr>& numbers);

/// The steps with those that reduce the same axes, and the maps around them, joined to one kernel
/// for each kind of row; on the host maps of one shape too. `outputs`: slots of the plan's results.
/// `device`: none, or the host's, or one with a grid, whose rows must fit its registers.
std::vector<Step> join_rows(std::vector<Step> steps, const std::vector<int>& outputs,
                            const Ref<Device>& device);

}  // namespace weft
