// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/hoist_reads.h"

#include <algorithm>
#include <unordered_set>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"
#include "weft/stages/conditions.h"

namespace weft::qpu::tensor {

using namespace ir;

namespace {
constexpr std::size_t kRegisters = 12;  // that such reads may keep at one place of a kernel

struct Read {
  Buffer buffer;
  Expr index;
  Buffer reg;
};

class Hoist final : public Rewriter {
 public:
  Hoist(const Stmt& body, const std::vector<LaunchAxis>& axes) {
    for (const LaunchAxis& a : axes) analyzer_.bind(a.var, {make_int(0), a.extent});
    for_each_stmt(body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s)) stored_.insert(t->buffer.get());
    });
  }

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    const std::size_t before = reads_.size();
    if (loop->for_kind == ForKind::serial && !is_const_int_value(loop->extent, 1)) find(loop);
    Stmt out;
    {
      const arith::Analyzer::Scope inside(analyzer_);
      analyzer_.bind(loop->var, Range{loop->min, loop->extent});
      out = Rewriter::rewrite_for(s);
    }
    for (std::size_t i = reads_.size(); i-- > before;) {
      const Read& r = reads_[i];
      const Stmt read = store(r.reg, load(r.buffer, {r.index}), {make_int(0)});
      out = allocate(r.reg, seq({read, out}));
    }
    reads_.resize(before);
    return out;
  }

  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    for (std::size_t i = 0; i < reads_.size() && l->indices.size() == 1; ++i)
      if (reads_[i].buffer == l->buffer && same_expr(reads_[i].index, l->indices[0]))
        return load(reads_[i].reg, {make_int(0)});
    return Rewriter::rewrite_load(e);
  }

 private:
  void find(const ForNode* loop) {
    std::unordered_set<const VarNode*> bound{loop->var.get()};
    for_each_stmt(loop->body, [&](const Stmt& s) {
      if (const auto* t = as<ForNode>(s)) bound.insert(t->var.get());
      if (const auto* t = as<LetStmtNode>(s)) bound.insert(t->var.get());
    });
    for_each_expr(loop->body, [&](const Expr& e) {
      if (const auto* t = as<LetNode>(e)) bound.insert(t->var.get());
    });
    std::vector<Read> found;
    for_each_expr(loop->body, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (!l || l->buffer->scope == "local" || stored_.count(l->buffer.get()) ||
          l->indices.size() != 1 || l->buffer->shape.size() != 1 || !l->dtype.is_scalar() ||
          stages::has_loads(l->indices[0]) || uses_any(l->indices[0], bound) ||
          !analyzer_.prove_at_least(l->indices[0], 0) ||
          !analyzer_.prove(lt(l->indices[0], l->buffer->shape[0])))
        return;
      auto same = [&](const Read& r) {
        return r.buffer == l->buffer && same_expr(r.index, l->indices[0]);
      };
      if (std::none_of(found.begin(), found.end(), same) &&
          std::none_of(reads_.begin(), reads_.end(), same))
        found.push_back({l->buffer, l->indices[0], nullptr});
    });
    if (reads_.size() + found.size() > kRegisters) return;
    for (Read& r : found) {
      r.reg = make_buffer(r.buffer->name + "_kept", r.buffer->dtype, {make_int(1)}, "local");
      reads_.push_back(r);
    }
  }

  arith::Analyzer analyzer_;
  std::unordered_set<const BufferNode*> stored_;
  std::vector<Read> reads_;
};
}  // namespace

Stmt hoist_reads(const Stmt& body, const std::vector<LaunchAxis>& axes) {
  return static_cast<Rewriter&&>(Hoist(body, axes)).rewrite(body);
}

}  // namespace weft::qpu::tensor
