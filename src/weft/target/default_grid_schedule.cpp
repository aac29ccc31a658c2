// SPDX-License-Identifier: Apache-2.0
#include "weft/target/default_grid_schedule.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_private.h"
#include "weft/pass/compact_buffers.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/lower_cross_thread_reduction.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/place_allocations.h"
#include "weft/schedule/schedule.h"
#include "weft/schedule/tree.h"
#include "weft/target/pipeline.h"
#include "weft/target/rules.h"

namespace weft {

using namespace ir;

namespace {

constexpr std::int64_t kThreads = 256;        // points of a group
constexpr std::int64_t kFewResults = 8192;    // below: one group reduces one result
constexpr std::int64_t kResultsPerTerm = 8;   // above: results alone keep the machine busy
constexpr std::int64_t kLongReduction = 64;   // from here on it is worth joining threads
constexpr std::int64_t kPrivateBytes = 4096;  // of an array that each thread has

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

/// Tuples stay in one thread: what their points exchange costs more than it saves.
bool joins_by_one_value(const BlockNode& block) {
  const auto pattern = match_reduction(&block);
  return pattern && pattern->updates.size() == 1;
}

class DefaultSchedule {
 public:
  DefaultSchedule(const PrimFunc& f, const TargetInfo& info)
      : sch_(f, std::make_shared<schedule::ScheduleRules>(rules_of(info))),
        machine_(machine_of(info, "grid")) {
    const AxisInfo* x = info.axis("threadIdx.x");
    threads_ = kThreads;
    if (x->limit > 0) threads_ = std::min(threads_, x->limit);
    if (x->group_limit > 0) threads_ = std::min(threads_, x->group_limit);
    sch_.set_detail(false);
  }

  PrimFunc run() {
    const BlockRef root = sch_.get_block(as<BlockRealizeNode>(sch_.func()->body)->block->name);
    for (BlockRef b : sch_.get_child_blocks(root)) inline_chain(b);
    for (const std::vector<BlockRef>& nest : nests()) {
      if (nest.size() > 1) {
        bind_together(nest);
      } else {
        keep_in_nest(nest[0]);
        bind_nest(nest[0]);
      }
    }
    return keep_in_blocks(bind_rest(sch_.func()));
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

  static const BlockRealizeNode* root_of(const PrimFunc& f) {
    return as<BlockRealizeNode>(f->body);
  }

  /// The blocks of each statement of the body.
  std::vector<std::vector<BlockRef>> nests() const {
    std::vector<std::vector<BlockRef>> out;
    for (const Stmt& s : schedule::statements(root_of(sch_.func())->block->body)) {
      std::vector<BlockRef> blocks;
      for (const schedule::Leaf& leaf : schedule::leaves(s)) blocks.push_back({leaf.block()->id});
      if (!blocks.empty()) out.push_back(std::move(blocks));
    }
    return out;
  }

  /// What only one nest uses need not leave its kernel. Whether anything was kept.
  bool keep_in_nest(BlockRef b) {
    const auto* root = root_of(sch_.func());
    const auto& own = root->block->alloc_buffers;
    const auto& writes = block(b).writes;
    bool kept = false;
    for (std::size_t w = 0; w < writes.size(); ++w) {
      const Buffer buffer = writes[w].buffer;
      if (buffer->scope != "global" || std::find(own.begin(), own.end(), buffer) == own.end())
        continue;
      int nests = 0;
      for (const Stmt& s : schedule::statements(root->block->body))
        nests += used_buffers(s).count(buffer.get()) > 0 ? 1 : 0;
      if (nests == 1)
        kept |= attempt([&] { sch_.set_scope(b, static_cast<std::int64_t>(w), "local"); });
      return kept;
    }
    return kept;
  }

  /// Whether what each thread keeps to itself is little and known.
  bool fits_threads() const {
    try {
      PrimFunc f = pass::lower_init(pass::lower_cross_thread_reduction(sch_.func(), machine_));
      f = pass::convert_blocks(pass::place_allocations(f, machine_));
      f = pass::compact_buffers(pass::check_private(f, machine_), machine_);
      bool fits = true;
      for_each_stmt(f->body, [&](const Stmt& s) {
        const auto* a = as<AllocateNode>(s);
        if (!a || a->buffer->scope != "local") return;
        std::int64_t bytes = a->buffer->dtype.total_bytes(), n = 0;
        for (const Expr& e : a->buffer->shape)
          bytes = is_const_int(e, &n) && bytes >= 0 && n <= kPrivateBytes ? bytes * n : -1;
        fits = fits && bytes >= 0 && bytes <= kPrivateBytes;
      });
      return fits;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::lower) throw;
      return false;
    }
  }

  /// Blocks under common loops: threads run through as many of those as are independent, and keep
  /// what the blocks hand to one another.
  void bind_together(const std::vector<BlockRef>& blocks) {
    std::vector<LoopRef> common = sch_.get_loops(blocks[0]);
    for (const BlockRef& b : blocks) {
      const std::vector<LoopRef> own = sch_.get_loops(b);
      std::size_t same = 0;
      while (same < common.size() && same < own.size() && own[same] == common[same]) ++same;
      common.resize(same);
    }
    for (std::size_t depth = common.size(); depth > 0; --depth) {
      const Schedule before = sch_;
      const std::vector<LoopRef> outer(common.begin(),
                                       common.begin() + static_cast<std::ptrdiff_t>(depth));
      const bool bound = attempt([&] {
        LoopRef all = outer[0];
        if (depth > 1) all = sch_.fuse(outer);
        block(blocks[0]);
        std::int64_t width = threads_;
        for (const ForNode* loop : path_->loops()) {
          const std::int64_t n = extent_of(loop);
          if (loop->var == all.var && n > 0) width = std::min(width, n);
        }
        const std::vector<LoopRef> parts = sch_.split(all, {std::nullopt, factor(width)});
        sch_.bind(parts[0], "blockIdx.x");
        sch_.bind(parts[1], "threadIdx.x");
      });
      if (bound) {
        for (const BlockRef& b : blocks) keep_in_nest(b);
        if (fits_threads()) return;
      }
      sch_ = before;
    }
  }

  /// What a block inside a nest allocates belongs to the thread that runs the block.
  static PrimFunc keep_in_blocks(const PrimFunc& f) {
    BufferMap map;
    for_each_stmt(f->body, [&](const Stmt& s) {
      const auto* realize = as<BlockRealizeNode>(s);
      if (!realize || realize == root_of(f)) return;
      for (const Buffer& b : realize->block->alloc_buffers) {
        if (b->scope != "global") continue;
        auto own = edit(b);
        own->scope = "local";
        map[b.get()] = own;
      }
    });
    if (map.empty()) return f;
    auto out = edit(f);
    out->body = replace_buffers(f->body, map);
    return out;
  }

  /// A statement that no step could bind runs in one thread.
  static PrimFunc bind_rest(const PrimFunc& f) {
    const auto* root = root_of(f);
    std::vector<Stmt> out;
    bool changed = false;
    for (const Stmt& s : schedule::statements(root->block->body)) {
      bool bound = false;
      for_each_stmt(s, [&](const Stmt& inner) {
        const auto* t = as<ForNode>(inner);
        bound = bound || (t && t->for_kind == ForKind::bound);
      });
      out.push_back(bound ? s
                          : make_for(make_var("one"), make_int(0), make_int(1), s, ForKind::bound,
                                     "threadIdx.x"));
      changed = changed || !bound;
    }
    if (!changed) return f;
    auto copy = edit(root->block);
    copy->body = seq(std::move(out));
    auto g = edit(f);
    g->body = block_realize(root->iter_values, root->predicate, copy);
    return g;
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
    const bool joins = joins_by_one_value(now);
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
  pass::Machine machine_;
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
