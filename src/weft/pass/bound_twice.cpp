// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/bound_twice.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

using Loops = std::vector<const ForNode*>;

void join_into(Loops& all, const Loops& more) {
  for (const ForNode* loop : more)
    if (std::find(all.begin(), all.end(), loop) == all.end()) all.push_back(loop);
}

class Twice {
 public:
  explicit Twice(const TargetInfo& machine) : machine_(machine) {}

  /// `around`: the bound loops that decide whether and how often the statement runs.
  void check(const Stmt& s, const Loops& around) {
    if (!s) return;
    if (const auto* loop = as<ForNode>(s)) return check_loop(loop, around);
    Loops inside = around;
    if (const auto* t = as<IfNode>(s)) {
      join_into(inside, used(t->condition));
      check(t->then_case, inside);
      return check(t->else_case, inside);
    }
    if (const auto* t = as<WhileNode>(s)) {
      join_into(inside, used(t->condition));
      return check(t->body, inside);
    }
    if (const auto* t = as<LetStmtNode>(s)) {
      depends_[t->var.get()] = used(t->value);
      return check(t->body, around);
    }
    if (const auto* t = as<SeqNode>(s)) {
      for (const Stmt& part : t->stmts) check(part, around);
      return;
    }
    if (const auto* t = as<AllocateNode>(s)) return check(t->body, around);
    if (const auto* t = as<AsyncNode>(s)) return check(t->body, around);
    for (const VarNode* v : free_vars(s)) join_into(inside, used(v));
    refuse_two(s, inside);
  }

 private:
  void check_loop(const ForNode* loop, const Loops& around) {
    Loops inside = around;
    join_into(inside, used(loop->min));
    join_into(inside, used(loop->extent));
    const AxisInfo* axis = loop->for_kind == ForKind::bound ? machine_.axis(loop->axis) : nullptr;
    if (axis && !axis->is_virtual() && !is_const_int_value(loop->extent, 1))
      depends_[loop->var.get()] = {loop};
    open_.push_back(loop);
    check(loop->body, inside);
    open_.pop_back();
  }

  Loops used(const VarNode* v) const {
    const auto found = depends_.find(v);
    return found == depends_.end() ? Loops{} : found->second;
  }
  Loops used(const Expr& e) const {
    Loops out;
    for (const VarNode* v : used_vars(e)) join_into(out, used(v));
    return out;
  }

  void refuse_two(const Stmt& s, const Loops& loops) const {
    const auto counts = [&](const ForNode* loop) {
      return std::find(loops.begin(), loops.end(), loop) != loops.end();
    };
    for (std::size_t j = 0; j < open_.size(); ++j)
      for (std::size_t i = j + 1; i < open_.size(); ++i) {
        if (open_[i]->axis != open_[j]->axis || !counts(open_[i]) || !counts(open_[j])) continue;
        const auto* store = as<StoreNode>(s);
        const std::string what = store ? cat("\"", store->buffer->name, "\"") : "a statement";
        throw Error(
            ErrorKind::lower, "lower.axis.twice",
            cat(what, " depends on loops \"", open_[j]->var->name, "\" and \"", open_[i]->var->name,
                "\", both bound to ", open_[i]->axis, ", which has one position at a time"))
            .help("fuse the two loops and bind the result, or bind one of them to another axis");
      }
  }

  const TargetInfo& machine_;
  Loops open_;  // around what is checked, the outermost first
  std::unordered_map<const VarNode*, Loops> depends_;
};

}  // namespace

void check_bound_twice(const Stmt& kernel, const TargetInfo& machine) {
  Twice(machine).check(kernel, {});
}

}  // namespace weft::pass
