// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a function without a schedule asks of this machine, read from its blocks: stages, each a sum
// of products, a reduction, or nothing, followed by a chain of elementwise operations; and copies
// that rearrange global memory (padding, reshaping, transposing), which are folded into the stages'
// reads where they are affine and done by the host otherwise. Only the structure of index
// expressions counts, never names or whole kernels.

#include <memory>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/stages/linear.h"
#include "weft/targets/vta/isa.h"

namespace weft::vta {

using stages::Axis;
using stages::Bounds;
using stages::Linear;
using stages::SplitWish;

/// buffer[index...]; outside the bounds it reads 0.
struct Operand {
  ir::Buffer buffer;
  std::vector<Linear> index;
  std::vector<Bounds> bounds;
  bool bounded = false;
  bool operator==(const Operand& other) const;
};

/// An int32 value on the accumulator.
struct Value {
  enum class Kind : std::uint8_t { self, constant, operand, op };
  Kind kind = Kind::self;
  AluOp op = AluOp::add;
  std::int64_t number = 0;  // constant
  std::size_t operand = 0;  // of Task::operands
  std::shared_ptr<const Value> a, b;
  std::int64_t low = INT32_MIN, high = INT32_MAX;  // what it lies between
};
using ValuePtr = std::shared_ptr<const Value>;

/// A point of the chain: the value so far becomes `value`; stored when a buffer is named.
struct Segment {
  ValuePtr value;
  ir::Buffer store;
  std::vector<Linear> index;  // of the store, over the stage's axes
};

struct Task {
  enum class Kind : std::uint8_t { product, reduction, elementwise, copy };
  Kind kind = Kind::elementwise;
  std::string name;               // of the first block
  std::vector<Axis> axes;         // spatial ones first, in the block's order
  Operand x, w;                   // product: the factors; reduction: x
  AluOp reducer = AluOp::add;     // reduction
  std::int64_t start = 0;         // product, reduction: the initial value
  std::vector<Operand> operands;  // of the chain
  std::vector<Segment> chain;
  ir::Stmt copy;  // Kind::copy: loops and a store, over global memory
};

struct StagePlan {
  std::vector<Task> stages;
  std::vector<ir::Buffer> temporaries;  // global buffers between stages
};

/// Error(lower, "vta.accepts.*" or "stages.*") naming the block, the statement and the rule.
StagePlan plan_stages(const ir::PrimFunc& f);

}  // namespace weft::vta
