// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stage as operations on descriptors: private to emit_csl*.cpp.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/targets/wse/emit_csl.h"

namespace weft::wse {

/// Cycles to start an operation with the loop around it: a fact of the machine that decides between
/// plans.
constexpr double kVectorStart = 22;
/// Of an operation, by its name without '@'.
double cycles_per_element(const std::string& name);

/// A part of an iterator's range in which every condition has one value.
struct IterRange {
  std::int64_t begin = 0, end = 0;  // global
};

/// Chooses the iterators that a descriptor runs over, by cost, and writes the loops over the
/// others.
class VectorStage {
 public:
  VectorStage(CslEmitter& emitter, const Stage& stage);
  /// Appends the update's text; false (and nothing written) when some part has no operation.
  bool write(std::string& out);

 private:
  /// A scalar's text, or a descriptor's name and how far it moves from its first element.
  struct Value {
    bool scalar = false;
    std::string text, offset, type;
    std::int64_t stride = 0;  // along the innermost iterator
    bool temporary = false;
  };
  struct Step {
    std::string name;  // of the operation, without '@'
    std::vector<Value> operands;
    std::int64_t elements = 1;
  };
  /// One way to vectorize: `over` are the iterators of the descriptors, outermost first.
  struct Plan {
    std::vector<std::size_t> over;
    std::vector<Step> steps;
    std::map<std::string, std::string> declarations;  // name to text
    std::int64_t loops = 1;                           // how often `steps` run
    double cost = 0;
    bool folds = false;  // the vector's elements are added up
  };

  bool find_segments();
  void collect_cuts(const ir::Expr& e);
  bool invariant(const ir::Expr& e) const;
  std::int64_t count() const;
  std::optional<Plan> plan(const std::vector<std::size_t>& over, const ir::Expr& value);
  std::optional<Value> operand(const ir::Expr& e, const Value* to = nullptr);
  bool compute(const ir::Expr& e, const Value& to);
  bool compute_into(const ir::Expr& e, const Value& to);
  bool fused(const ir::Expr& e, const Value& to);
  bool accumulate(const ir::Expr& e, const Value& to);
  void add(std::string name, std::vector<Value> operands);
  std::optional<Value> descriptor(const LocalArray& a, const std::vector<std::int64_t>& at);
  std::optional<Value> temporary();
  std::string operation(const char* kind, DType t) const;
  std::string text_of(const Plan& p, const std::vector<IterRange>& at);
  std::vector<std::vector<std::size_t>> choices() const;

  CslEmitter& e_;
  const Stage& s_;
  DType dtype_;
  ir::Expr value_;
  std::vector<std::vector<IterRange>> segments_;  // per iterator
  Plan* now_ = nullptr;
  int temporaries_ = 0;
  bool reads_output_ = false;
};

}  // namespace weft::wse
