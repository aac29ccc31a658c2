// SPDX-License-Identifier: Apache-2.0
#include "weft/host/generate/steps.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "weft/host/generate/kernels.h"
#include "weft/ir/visit.h"

namespace weft::generate {

namespace {

using Call = const ir::CallNode*;
/// Calls of one function with the same operands are one.
using Key = std::pair<std::string, std::vector<const ir::ExprNode*>>;

Key key_of(Call c) {
  Key key{c->op, {}};
  for (const Expr& a : c->args) key.second.push_back(a.get());
  return key;
}

/// Library calls by how many are inside each other.
class Levels final : public ir::Visitor {
 public:
  std::vector<std::vector<Call>> levels;
  using ir::Visitor::visit;
  void visit(const Expr& e) override {
    auto found = depths_.find(e.get());
    if (found == depths_.end()) {
      const int outside = depth_;
      depth_ = 0;
      ir::Visitor::visit(e);
      if (is_library_call(e)) add(ir::as<ir::CallNode>(e));
      found = depths_.emplace(e.get(), depth_).first;
      depth_ = outside;
    }
    depth_ = std::max(depth_, found->second);
  }

 private:
  void add(Call c) {
    const auto level = static_cast<std::size_t>(depth_++);
    if (!known_.insert({key_of(c), true}).second) return;
    if (levels.size() <= level) levels.resize(level + 1);
    levels[level].push_back(c);
  }

  std::unordered_map<const ir::ExprNode*, int> depths_;
  std::map<Key, bool> known_;
  int depth_ = 0;  // of what was visited of the expression at hand
};

/// Calls that are done are read from where they were put.
class Reading final : public ir::Rewriter {
 public:
  explicit Reading(Expr at) : at_(std::move(at)) {}
  using ir::Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (auto found = done_.find(e.get()); found != done_.end()) return found->second;
    const auto* c = ir::as<ir::CallNode>(e);
    auto held = c ? results_.find(key_of(c)) : results_.end();
    const Expr out =
        held != results_.end() ? ir::load(held->second, {at_}) : ir::Rewriter::rewrite(e);
    return done_.emplace(e.get(), out).first->second;
  }
  void hold(Call c, const ir::Buffer& result) {
    results_[key_of(c)] = result;
    done_.clear();
  }

 private:
  Expr at_;
  std::map<Key, ir::Buffer> results_;
  std::unordered_map<const ir::ExprNode*, Expr> done_;
};

}  // namespace

Stmt in_steps(const Var& i, const std::vector<Expr>& values,
              const std::function<Stmt(const Stmt&)>& around,
              const std::function<Stmt(const std::vector<Expr>&)>& finish) {
  Levels found;
  for (const Expr& v : values) found.visit(v);
  Reading reading(i);
  std::vector<Stmt> all;
  std::vector<ir::Buffer> buffers;
  auto step = [&](const std::vector<Expr>& of,
                  const std::function<Stmt(const std::vector<Expr>&)>& then) {
    std::vector<Expr> now;
    for (const Expr& e : of) now.push_back(reading.rewrite(e));
    const Stmt body = around(with_shared(now, then));
    all.push_back(vectors("i", number(kBlock), [&](const Expr& at) {
      return ir::deep_copy(ir::substitute(body, {{i.get(), at}}));
    }));
  };
  for (const std::vector<Call>& level : found.levels) {
    std::vector<Expr> arguments;
    const std::size_t first = buffers.size();
    for (Call c : level) {
      for (const Expr& a : c->args) {
        arguments.push_back(a);
        buffers.push_back(local(cat("c", buffers.size()), a->dtype, kBlock));
      }
    }
    step(arguments, [&](const std::vector<Expr>& v) {
      std::vector<Stmt> stores;
      for (std::size_t k = 0; k < v.size(); ++k)
        stores.push_back(ir::store(buffers[first + k], v[k], {i}));
      return ir::seq(std::move(stores));
    });
    std::size_t slot = first;
    for (Call c : level) {
      all.push_back(vectors("l", number(kBlock), [&](const Expr& l) {
        ir::Exprs in;
        for (std::size_t k = 0; k < c->args.size(); ++k)
          in.push_back(ir::load(buffers[slot + k], {l}));
        return ir::store(buffers[slot], ir::call(c->op, in), {l});
      }));
      reading.hold(c, buffers[slot]);
      slot += c->args.size();
    }
  }
  step(values, finish);
  Stmt out = ir::seq(std::move(all));
  for (const ir::Buffer& b : buffers) out = ir::allocate(b, out);
  return out;
}

}  // namespace weft::generate
