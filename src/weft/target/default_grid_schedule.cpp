// SPDX-License-Identifier: Apache-2.0
#include "weft/target/default_grid_schedule.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"
#include "weft/schedule/schedule.h"
#include "weft/schedule/tree.h"
#include "weft/target/rules.h"

namespace weft {

using namespace ir;

namespace {

constexpr std::int64_t kThreads = 256;       // points of a group
constexpr std::int64_t kFewResults = 8192;   // below: one group reduces one result
constexpr std::int64_t kResultsPerTerm = 8;  // above: results alone keep the machine busy
constexpr std::int64_t kLongReduction = 64;  // from here on it is worth joining threads

bool attempt(const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::schedule) throw;
    return false;  // the step left the program as it was
  }
}

/// Trip count, or -1 when it is known only at run time.
std::int64_t extent_of(const ForNode* loop) {
  std::int64_t n = -1;
  return is_const_int(loop->extent, &n) ? n : -1;
}

/// out = combine(out, value) by one operator, as reductions across threads need.
bool joins_across_threads(const BlockNode& block) {
  const auto* init = as<StoreNode>(block.init);
  const auto* update = as<StoreNode>(block.body);
  const auto* combine = update ? as<BinaryNode>(update->value) : nullptr;
  if (!init || !combine) return false;
  switch (combine->kind) {
    case ExprKind::add:
    case ExprKind::mul:
    case ExprKind::min:
    case ExprKind::max:
    case ExprKind::and_:
    case ExprKind::or_: break;
    default: return false;
  }
  auto is_self = [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || !(l->buffer == update->buffer)) return false;
    for (std::size_t i = 0; i < l->indices.size(); ++i) {
      if (!same_expr(l->indices[i], update->indices[i])) return false;
    }
    return true;
  };
  return is_self(combine->a) != is_self(combine->b);
}

class DefaultSchedule {
 public:
  DefaultSchedule(const PrimFunc& f, const TargetInfo& info)
      : sch_(f, std::make_shared<schedule::ScheduleRules>(rules_of(info))) {
    const AxisInfo* x = info.axis("threadIdx.x");
    threads_ = kThreads;
    if (x->limit > 0) threads_ = std::min(threads_, x->limit);
    if (x->group_limit > 0) threads_ = std::min(threads_, x->group_limit);
    sch_.set_detail(false);
  }

  PrimFunc run() {
    const BlockRef root = sch_.get_block(as<BlockRealizeNode>(sch_.func()->body)->block->name);
    for (BlockRef b : sch_.get_child_blocks(root)) inline_chain(b);
    for (BlockRef b : sch_.get_child_blocks(root)) keep_in_nest(b);
    for (BlockRef b : sch_.get_child_blocks(root)) bind_nest(b);
    return sch_.func();
  }

 private:
  const BlockNode& block(BlockRef b) {
    path_ = schedule::find_block(sch_.mod(), b);
    return *path_->realize()->block;
  }
  bool reduces(BlockRef b) {
    const auto& iters = block(b).iters;
    return std::any_of(iters.begin(), iters.end(),
                       [](const IterVar& v) { return v.kind != IterKind::spatial; });
  }

  /// Into element-wise consumers only: a reduction would compute the value again and again.
  void inline_chain(BlockRef b) {
    if (reduces(b)) return;
    bool all = true;
    attempt([&] {
      for (BlockRef c : sch_.get_consumers(b)) all = all && !reduces(c);
    });
    if (all) attempt([&] { sch_.compute_inline(b); });
  }

  /// What only one nest uses need not leave its kernel.
  void keep_in_nest(BlockRef b) {
    const auto* root = as<BlockRealizeNode>(sch_.func()->body);
    const auto& own = root->block->alloc_buffers;
    const auto& writes = block(b).writes;
    for (std::size_t w = 0; w < writes.size(); ++w) {
      const Buffer buffer = writes[w].buffer;
      if (buffer->scope != "global" || std::find(own.begin(), own.end(), buffer) == own.end())
        continue;
      int nests = 0;
      for (const Stmt& s : schedule::statements(root->block->body))
        nests += used_buffers(s).count(buffer.get()) > 0 ? 1 : 0;
      if (nests == 1) attempt([&] { sch_.set_scope(b, static_cast<std::int64_t>(w), "local"); });
      return;
    }
  }

  void bind_nest(BlockRef b) {
    std::vector<LoopRef> loops = sch_.get_loops(b), spatial, reduction;
    if (loops.empty()) {
      attempt([&] { loops = {sch_.add_unit_loop(b)}; });
    }
    const BlockNode& now = block(b);
    const auto* realize = path_->realize();
    bool mixed = false;
    std::int64_t results = 1, terms = 1;
    for (const LoopRef& l : loops) {
      bool s = false, r = false;
      for (std::size_t i = 0; i < now.iters.size(); ++i) {
        if (!uses_var(realize->iter_values[i], l.var.get())) continue;
        (now.iters[i].kind == IterKind::spatial ? s : r) = true;
      }
      mixed |= s && r;
      std::int64_t n = -1;
      for (const ForNode* loop : path_->loops()) {
        if (loop->var == l.var) n = extent_of(loop);
      }
      std::int64_t& product = r ? terms : results;
      product = product < 0 || n < 0 ? -1 : product * n;
      (r ? reduction : spatial).push_back(l);
    }
    if (mixed) return;
    const bool joins = joins_across_threads(now);
    if (spatial.empty()) {
      if (!attempt([&] { spatial = {sch_.add_unit_loop(loops[0])}; })) return;
    }
    std::vector<LoopRef> order = spatial;
    order.insert(order.end(), reduction.begin(), reduction.end());
    if (order.size() > 1 && !reduction.empty() && !attempt([&] { sch_.reorder(order); })) return;
    const bool across = joins && results > 0 && results <= kFewResults && terms >= kLongReduction &&
                        terms * kResultsPerTerm >= results;
    if (!across && !reduction.empty() && spatial.size() > 1) return bind_last(spatial);
    LoopRef all = spatial[0];
    if (spatial.size() > 1 && !attempt([&] { all = sch_.fuse(spatial); })) return;
    if (across && across_threads(all, reduction, terms)) return;
    attempt([&] {
      const auto width = results > 0 ? std::min(threads_, results) : threads_;
      const std::vector<LoopRef> parts = sch_.split(all, {std::nullopt, factor(width)});
      sch_.bind(parts[0], "blockIdx.x");
      sch_.bind(parts[1], "threadIdx.x");
    });
  }

  /// Digits of a fused loop that are cut across are no affine binding, which reductions need: the
  /// last loop is split alone.
  void bind_last(std::vector<LoopRef> spatial) {
    std::int64_t width = threads_;
    for (const ForNode* loop : path_->loops()) {
      const std::int64_t n = extent_of(loop);
      if (loop->var == spatial.back().var && n > 0) width = std::min(width, n);
    }
    attempt([&] {
      const std::vector<LoopRef> parts = sch_.split(spatial.back(), {std::nullopt, factor(width)});
      spatial.back() = parts[0];
      sch_.bind(sch_.fuse(spatial), "blockIdx.x");
      sch_.bind(parts[1], "threadIdx.x");
    });
  }

  bool across_threads(const LoopRef& results, const std::vector<LoopRef>& reduction,
                      std::int64_t terms) {
    LoopRef all = reduction[0];
    if (reduction.size() > 1 && !attempt([&] { all = sch_.fuse(reduction); })) return false;
    const auto width = static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(std::min(threads_, terms))));
    std::vector<LoopRef> parts;
    if (!attempt([&] { parts = sch_.split(all, {std::nullopt, factor(width)}); })) return false;
    if (!attempt([&] { sch_.bind(parts[1], "threadIdx.x"); })) return false;
    attempt([&] { sch_.bind(results, "blockIdx.x"); });
    return true;
  }

  static schedule::Factor factor(std::int64_t n) { return schedule::IntRef(n); }

  Schedule sch_;
  std::optional<schedule::Path> path_;
  std::int64_t threads_ = kThreads;
};

}  // namespace

PrimFunc default_grid_schedule(const PrimFunc& f, const TargetInfo& info) {
  const auto* root = as<BlockRealizeNode>(f->body);
  if (!root || !info.axis("blockIdx.x") || !info.axis("threadIdx.x")) return f;
  bool bound = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* t = as<ForNode>(s);
    bound = bound || s->kind == StmtKind::launch || (t && t->for_kind == ForKind::bound);
  });
  return bound ? f : DefaultSchedule(f, info).run();
}

}  // namespace weft
