// SPDX-License-Identifier: Apache-2.0
#pragma once
// A second opinion on every step: the interpreter runs the program before the first step and
// after each one on the same random data, and the results must agree. Legality rules prove a
// step right; this catches a rule that is wrong.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/ir/interpret.h"
#include "weft/ir/node.h"

namespace weft::schedule {

class RunCheck {
 public:
  /// Runs the program once. `step_limit` bounds the statements one run may execute, over which
  /// Error(schedule, "schedule.check.size") asks for a smaller instance; parameters of symbolic
  /// shape are refused with "schedule.check.symbolic".
  RunCheck(const ir::IRModule& program, std::uint64_t seed, std::int64_t step_limit);

  /// None when every function gives the same results as before: integers equal, floats within the
  /// rounding of a reordered sum. A step that gives a parameter another shape (transform_layout)
  /// cannot be compared: it becomes the program the next ones are compared with.
  Verdict compare(const ir::IRModule& now);

  std::int64_t compared() const { return compared_; }
  std::int64_t rebased() const { return rebased_; }

 private:
  struct Tensor {
    DType type;
    std::vector<std::int64_t> shape;
    std::vector<unsigned char> bytes;
  };
  struct Function {
    std::string name;
    std::vector<Tensor> before;  // parameters as they go in
    std::vector<Tensor> after;   // and as they come out
  };

  Function start(const ir::IRModule& program, const std::string& name) const;
  void run(const ir::IRModule& program, const std::string& name,
           std::vector<Tensor>& parameters) const;

  std::uint64_t seed_;
  std::int64_t step_limit_;
  std::int64_t compared_ = 0, rebased_ = 0;
  std::vector<Function> functions_;
};

}  // namespace weft::schedule
