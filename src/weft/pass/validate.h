// SPDX-License-Identifier: Apache-2.0
#pragma once
// Translation validation: the function before lowering and after each pass is interpreted on the
// same random arrays; a pass that changes a result is refused with its name.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/ir/node.h"

namespace weft::pass {

/// How many statements the interpreter may run for one function; 0: builds are not validated. The
/// innermost ValidationScope of the thread says so, else the environment variable WEFT_VALIDATE.
std::int64_t validation_steps();

class ValidationScope {
 public:
  explicit ValidationScope(std::int64_t steps);
  ~ValidationScope();
  ValidationScope(const ValidationScope&) = delete;

 private:
  std::int64_t outer_;
};

class Validator {
 public:
  /// Interprets `f` on random arrays. Without effect where `steps` is 0, where `f` needs more
  /// statements, or where it has no result on such arrays (a fault, strided parameters).
  Validator(const ir::PrimFunc& f, std::int64_t steps);
  /// Throws Error(internal, "pass.changed") where `f` computes anything else. Functions that need
  /// more than 16 times the statements, and instructions that only a machine has, are left out.
  /// Of functions that run points side by side the passes from compact_buffers to insert_barriers
  /// are checked as one.
  void check(std::string_view pass, const ir::PrimFunc& f);
  bool active() const { return active_; }
  int checked() const { return checked_; }

 private:
  struct Value {
    std::string name;
    DType type;
    std::vector<std::int64_t> shape;
    std::string bytes;  // an array's elements; empty: a scalar
    std::int64_t number = 0;
  };
  bool fill(const ir::PrimFunc& f);
  static void run(const ir::PrimFunc& f, std::vector<Value>& values, std::int64_t steps);

  std::vector<Value> inputs_, wanted_;
  std::int64_t steps_;
  bool active_ = false, unordered_ = false;
  int checked_ = 0;
};

}  // namespace weft::pass
