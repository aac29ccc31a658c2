// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host side of a compiled function, as data that the runtime interprets (decision 2): check
// arguments, compute integers, allocate, launch, loop. It needs neither LLVM nor the IR and travels
// over RPC.
//
// Integers live in slots. Slot numbers are fixed when the plan is made: extents, strides and scalar
// arguments first, loop variables and temporaries after. Expressions are postfix codes over slots.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/dtype.h"
#include "weft/base/json.h"

namespace weft::runtime {

enum class PlanOp : std::uint8_t {
  constant,
  slot,  // push
  add,
  sub,
  mul,
  floordiv,
  floormod,
  min,
  max,  // pop two
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  and_,
  or_,
  not_,
};
struct PlanCode {
  PlanOp op;
  std::int64_t value = 0;
};
using PlanExpr = std::vector<PlanCode>;

struct PlanTensor {  // a tensor parameter
  std::string name;
  DType dtype;
  std::vector<PlanExpr> shape;  // expected extents; a lone unbound slot binds it to the argument's
  std::vector<std::int32_t> binds;  // per dim: slot to bind from the argument, or -1: check
  bool strided = false;             // false: must be compact row-major; true: strides go to slots
  std::vector<std::int32_t> stride_slots;
  std::int32_t align = 1;  // bytes the data pointer must be aligned to
  bool written = false;
  std::string space = "global";
};
struct PlanScalar {
  std::string name;
  DType dtype;
  std::int32_t slot = 0;
};
struct PlanParam {
  bool is_tensor = true;
  PlanTensor tensor;
  PlanScalar scalar;
};

enum class StepKind : std::uint8_t { set, allocate, release, launch, loop, branch, assert_ };

/// A pointer with its byte offset, or a scalar. `is_float`: the slot holds the bits of a double.
struct PlanArg {
  bool is_pointer = true;
  std::int32_t buffer = 0;
  PlanExpr offset_bytes;
  PlanExpr scalar;
  bool is_float = false;
};

struct PlanStep {
  StepKind kind = StepKind::set;
  std::int32_t target = 0;        // set, loop: slot; allocate, release: buffer
  PlanExpr value;                 // set; allocate: bytes; loop: extent; branch, assert_: condition
  PlanExpr min;                   // loop
  std::string text;               // assert_: message; allocate: memory space; launch: kernel name
  std::vector<PlanArg> args;      // launch
  std::vector<PlanExpr> extents;  // launch, per axis of the kernel's signature
  std::vector<PlanStep> body, otherwise;
};

/// One function. Buffers 0..params-1 are the tensor parameters in order; allocations follow.
struct HostPlan {
  std::string name;
  std::vector<PlanParam> params;
  bool no_overlap = false;  // a written tensor may not share bytes with any other argument
  std::int32_t slots = 0, buffers = 0;
  std::vector<PlanStep> steps;
};

Json to_json(const HostPlan& plan);
HostPlan plan_from_json(const Json& json);
/// Evaluates a postfix expression.
std::int64_t evaluate(const PlanExpr& e, const std::int64_t* slots);

}  // namespace weft::runtime
