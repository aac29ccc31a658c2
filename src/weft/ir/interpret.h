// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meaning, executable: runs any PrimFunc, scheduled or lowered, sequentially and literally;
// checks every access against its buffer. It is the reference interpreter behind the target `ref`.

#include <cstdint>
#include <span>
#include <vector>

#include "weft/ir/node.h"

namespace weft::ir {

/// Attribute of functions whose author vouches that indices which depend on data name a different
/// element for every point: stores to such elements are then not refused. The interpreter checks
/// it ("interpret.distinct").
inline constexpr std::string_view kDistinctElements = "weft.distinct_elements";

/// One actual argument: a strided view of host memory, or a scalar.
struct InterpretArg {
  void* data = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements; empty: compact
  std::int64_t int_value = 0;         // scalar parameters
  double float_value = 0;
};

/// Throws Error(shape|dtype|value, "interpret.*") on arguments that do not fit and Error(fault,
/// "interpret.*") on out-of-bounds accesses, naming buffer, indices and the statement. Statement
/// limit guards endless loops.
void interpret(const PrimFunc& f, std::span<const InterpretArg> args, std::int64_t step_limit = -1);
/// Functions of `m` may call each other.
void interpret(const IRModule& m, const std::string& name, std::span<const InterpretArg> args,
               std::int64_t step_limit = -1);

/// Only what orders the points of launches with tokens, in their first and last group: no element
/// of an array is read or written (loads give 0) and tiles are not multiplied. Throws the faults of
/// roles: waits without end, signals too many, work that meets work in flight.
void interpret_order(const PrimFunc& f, std::int64_t step_limit);

/// Evaluates an expression over constants; used by folding and tests.
bool try_evaluate_int(const Expr& e, std::int64_t* out);

}  // namespace weft::ir
