// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators as data: arrays with named axes, and nests that compute one array from others. They
// name no thread and no schedule, so every target builds them: grids and processors by the rules,
// machines by their default schedules. An operator is one file of the folder plain, named after it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/ir/node.h"

namespace weft::operators {

/// "x" over "m k". Extents of equal names are equal.
struct PlainArray {
  std::string_view name, axes;
};

std::vector<std::string> axes_of(std::string_view axes);

/// array[axes] = value, or its sum over `sums` where there are such axes. The value is T-script
/// that reads arrays by names of axes: "x[m, k] * y[n, k]"; {C} is the type of the arithmetic.
struct PlainNest {
  PlainArray to;
  std::string_view sums, value;
};

struct PlainOperator {
  const char* name;
  std::vector<PlainArray> operands;
  std::vector<PlainNest> nests;  // the last one makes the result
  /// For each operand the nests that make its gradient, from the operands, the result ("out") and
  /// its gradient ("g").
  std::vector<std::vector<PlainNest>> gradients;
};

/// Throws Error(internal) for a name without a file.
const PlainOperator& plain_operator(std::string_view name);

struct PlainSpec {
  std::string type = "float32";  // of operands and result
  std::string sums = "float32";  // of the arithmetic
  bool batch = false;            // all arrays have one more axis in front
  /// Of machines without run-time shapes: every axis ("" is the batch); else empty.
  std::vector<std::pair<std::string, std::int64_t>> extents;
};
/// main(operands..., result).
ir::PrimFunc plain_program(const std::vector<PlainArray>& operands,
                           const std::vector<PlainNest>& nests, const PlainSpec& spec);

}  // namespace weft::operators
