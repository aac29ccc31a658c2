// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/default_schedule.h"

#include <algorithm>
#include <unordered_set>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/pass/flatten_buffers.h"
#include "weft/pass/simplify.h"
#include "weft/schedule/tree.h"
#include "weft/targets/vta/host_copy.h"
#include "weft/targets/vta/pack.h"

namespace weft::vta {

using namespace ir;

namespace {

/// One stage's steps.
class Steps {
 public:
  Steps(schedule::Schedule& sch, const PackedStage& stage, const Config& c,
        const ScheduleOptions& options)
      : sch_(sch), p_(stage), c_(c), options_(options) {}

  void run() {
    choose();
    anchor_ = sch_.get_block(p_.anchor);
    sch_.set_scope(anchor_, 0, "vta.acc");
    for (const PackedStep& s : p_.steps) {
      steps_.push_back(sch_.get_block(s.block));
      if (s.on_chip) sch_.set_scope(steps_.back(), 0, "vta.acc");
    }
    for (const PackedInput& in : p_.inputs) copies_.push_back(copy(in));
    tile();
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      if (!p_.inputs[i].operand) sch_.compute_at(copies_[i], outer_[*level(p_.inputs[i])]);
    }
    const LoopRef innermost = outer_[spatial_end_ - 1];
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!p_.steps[i].free) sch_.reverse_compute_at(steps_[i], innermost);
    }
    for (std::size_t i = steps_.size(); i-- > 0;) {
      if (p_.steps[i].free) sch_.compute_at(steps_[i], innermost);
    }
    // After their consumers are there; before the sums, while the port is not busy with the next
    // tile's.
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      if (p_.inputs[i].operand)
        sch_.compute_at(copies_[i], outer_[*level(p_.inputs[i])], false, kFirst);
    }
    for (BlockRef b : copies_) mark(b);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!p_.steps[i].on_chip) mark(steps_[i]);
    }
    if (thread_) sch_.bind(*thread_, "vthread");
    if (p_.task.kind == Task::Kind::elementwise) return;
    sch_.decompose_reduction(anchor_, first_inside_);
    if (p_.task.kind == Task::Kind::product) sch_.tensorize(lanes_[0], gemm());
  }

 private:
  static std::string name_of(const Axis& a) { return a.var->name; }

  void choose() {
    TileConstraints constraints;
    constraints.threads = options_.threads;
    constraints.tile.assign(p_.task.axes.size(), 0);
    for (const auto& [name, n] : options_.tiles) {
      for (std::size_t a = 0; a < p_.task.axes.size(); ++a) {
        if (name_of(p_.task.axes[a]) == name) constraints.tile[a] = n;
      }
    }
    try {
      t_ = options_.choose ? ask(constraints)
                           : choose_tiles(p_.task, p_.laid, c_, options_.timing, constraints);
    } catch (const Error& error) {
      if (error.code() != "vta.accepts.capacity" ||
          (options_.tiles.empty() && options_.threads == 1))
        throw;
      Error refusal(ErrorKind::schedule, "vta.schedule.default",
                    cat("no tiles of \"", p_.anchor, "\" fit with ",
                        options_.threads > 1 ? cat("a multiple of ", options_.threads, " of them")
                                             : std::string("those given")));
      for (const std::string& note : error.refusal().notes) refusal.note(note);
      throw refusal.help(
          error.refusal().help.empty()
              ? "smaller numbers in tiles=; those that it does not name are found here"
              : error.refusal().help);
    }
  }

  std::int64_t asked(const std::string& name, const std::vector<std::int64_t>& options) const {
    return options.size() > 1 ? options_.choose(cat(p_.anchor, ".", name), options) : options[0];
  }

  /// Tiles and their order by decisions, of which the first choices are the default schedule's.
  /// Each leaves only tiles that fit, so that no answer is refused.
  Tiles ask(TileConstraints& constraints) {
    constexpr std::size_t kMost = 1024;
    std::vector<Tiles> left = rank_tiles(p_.task, p_.laid, c_, options_.timing, constraints);
    constraints.all_orders = true;
    const std::vector<Tiles> more =
        rank_tiles(p_.task, p_.laid, c_, options_.timing, constraints, kMost);
    left.insert(left.end(), more.begin(), more.end());
    auto decide = [&](const std::string& name, auto&& value) {
      std::vector<std::int64_t> options;
      for (const Tiles& t : left) {
        if (std::find(options.begin(), options.end(), value(t)) == options.end())
          options.push_back(value(t));
      }
      const std::int64_t taken = asked(name, options);
      std::erase_if(left, [&](const Tiles& t) { return value(t) != taken; });
      WEFT_CHECK(!left.empty(), "an answer that was not offered: ", taken);
    };
    for (std::size_t a = 0; a < p_.task.axes.size(); ++a)
      decide(name_of(p_.task.axes[a]), [a](const Tiles& t) { return t.tile[a]; });
    // The order as one number: positions of the axes as digits.
    decide("order", [](const Tiles& t) {
      std::int64_t number = 0;
      for (std::size_t a : t.order) {
        if (t.count(a) > 1) number = number * 16 + static_cast<std::int64_t>(a) + 1;
      }
      return number;
    });
    return left.front();
  }

  std::string gemm() const {
    const auto known = [&](const std::string& name) {
      return sch_.state().machine->instruction(name);
    };
    std::string shaped = cat("vta.gemm.", c_.batch(), "x", c_.block_out(), "x", c_.block_in());
    const bool plain = c_.batch() == 1 && c_.block_out() == 16 && c_.block_in() == 16;
    return !plain && known(shaped) ? shaped : "vta.gemm";
  }

  /// A copy on chip of what the consumer reads, with its view folded in.
  BlockRef copy(const PackedInput& in) {
    BlockRef consumer = sch_.get_block(in.consumer);
    std::optional<schedule::Path> at = schedule::find_block(sch_.mod(), consumer);
    WEFT_CHECK(at, "block \"", in.consumer, "\" is gone");
    const std::vector<BufferRegion>& reads = at->realize()->block->reads;
    std::size_t i = 0;
    while (i < reads.size() && reads[i].buffer->name != in.array) ++i;
    WEFT_CHECK(i < reads.size(), "block \"", in.consumer, "\" does not read \"", in.array, "\"");
    BlockRef out = sch_.cache_read(consumer, static_cast<std::int64_t>(i), in.scope);
    if (!in.view.empty()) sch_.compute_inline(sch_.get_block(in.view));
    return out;
  }

  /// Tile loops outside, in the tiles' order; inside the sums, the spatial loops and the lanes.
  void tile() {
    std::vector<LoopRef> loops = sch_.get_loops(anchor_);
    const std::size_t axes = p_.task.axes.size();
    std::vector<std::optional<LoopRef>> outer(axes), inner(axes);
    std::size_t at = 0, spatial = 0;
    for (std::size_t a : p_.loops) {
      if (p_.task.axes[a].reduce && lanes_.empty()) {
        lanes_.assign(loops.begin() + static_cast<std::ptrdiff_t>(at),
                      loops.begin() + static_cast<std::ptrdiff_t>(at) + 2);
        at += 2;
      }
      if (!p_.task.axes[a].reduce) ++spatial;
      const LoopRef& loop = loops[at++];
      if (t_.count(a) == 1) {
        inner[a] = loop;
      } else if (t_.tile[a] == 1) {
        outer[a] = loop;
      } else {
        std::vector<LoopRef> parts = sch_.split(loop, {std::nullopt, schedule::IntRef(t_.tile[a])});
        outer[a] = parts[0], inner[a] = parts[1];
      }
    }
    while (at < loops.size()) lanes_.push_back(loops[at++]);
    bool bound = options_.threads <= 1;
    for (std::size_t a : t_.order) {
      if (!outer[a]) continue;
      if (!bound && !p_.task.axes[a].reduce && t_.count(a) % options_.threads == 0) {
        bound = true;
        std::vector<LoopRef> parts =
            sch_.split(*outer[a], {std::nullopt, schedule::IntRef(options_.threads)});
        outer_.push_back(parts[0]), axis_.push_back(a);
        thread_ = outer[a] = parts[1];
      }
      outer_.push_back(*outer[a]), axis_.push_back(a);
      if (!p_.task.axes[a].reduce) spatial_end_ = outer_.size();
    }
    std::vector<LoopRef> order = outer_;
    for (bool reduce : {true, false}) {
      for (std::size_t a : p_.loops) {
        if (p_.task.axes[a].reduce == reduce && inner[a]) order.push_back(*inner[a]);
      }
    }
    order.insert(order.end(), lanes_.begin(), lanes_.end());
    if (order.size() > 1) sch_.reorder(order);
    first_inside_ = order[spatial_end_];
    surround(order.front());
  }

  /// The innermost tile loop that changes what a copy holds.
  std::optional<std::size_t> level(const PackedInput& in) const {
    const bool whole = in.operand && kept_whole(in.index, p_.task, p_.laid.lanes, c_);
    std::optional<std::size_t> out;
    for (std::size_t i = 0; i < outer_.size(); ++i) {
      if (in.operand && i >= spatial_end_) break;
      if (!axis_[i] || (!whole && uses(in.index, p_.task.axes[*axis_[i]]))) out = i;
    }
    return out;
  }

  /// A loop around all of the stage, for copies that no tile loop changes.
  void surround(const LoopRef& outermost) {
    bool needed = spatial_end_ == 0;
    for (const PackedInput& in : p_.inputs) needed |= !level(in);
    if (!needed) return;
    outer_.insert(outer_.begin(), sch_.add_unit_loop(outermost));
    axis_.insert(axis_.begin(), std::nullopt);
    ++spatial_end_;
  }

  /// The copy's innermost own loop is marked as a transfer.
  void mark(BlockRef b) {
    std::vector<LoopRef> loops = sch_.get_loops(b);
    if (!loops.empty() && std::find(outer_.begin(), outer_.end(), loops.back()) == outer_.end())
      sch_.annotate(loops.back(), "dma_copy", 1);
  }

  static constexpr std::int64_t kFirst = -2;  // compute_at: the first legal place in the loop

  schedule::Schedule& sch_;
  const PackedStage& p_;
  const Config& c_;
  const ScheduleOptions& options_;
  Tiles t_;
  BlockRef anchor_;
  std::vector<BlockRef> steps_, copies_;
  std::vector<LoopRef> outer_, lanes_;            // tile loops, outermost first; the anchor's lanes
  std::vector<std::optional<std::size_t>> axis_;  // of each tile loop
  std::size_t spatial_end_ = 0;                   // tile loops before the reduced ones
  LoopRef first_inside_;
  std::optional<LoopRef> thread_;
};

}  // namespace

bool is_scheduled(const PrimFunc& f) {
  bool found = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* r = as<BlockRealizeNode>(s)) {
      for (const Buffer& b : r->block->alloc_buffers) found |= b->scope.starts_with("vta.");
    }
    if (const auto* a = as<AllocateNode>(s)) found |= a->buffer->scope.starts_with("vta.");
  });
  return found;
}

namespace {

/// A copy of global memory as the kernel that lowering makes of it.
PrimFunc copy_function(const PrimFunc& f, const Task& task) {
  auto out = edit(f);
  out->body = task.copy;
  out->params.clear();
  std::unordered_set<const BufferNode*> seen;
  auto add = [&](const Buffer& b) {
    if (seen.insert(b.get()).second) out->params.push_back({make_var(b->name), b});
  };
  for_each_stmt(task.copy, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) add(t->buffer);
  });
  for_each_expr(task.copy, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) add(l->buffer);
  });
  return pass::simplify(pass::flatten_buffers(out));
}

}  // namespace

Verdict accepts_default(const PrimFunc& f, const Config& c) {
  if (is_scheduled(f)) return std::nullopt;
  try {
    for (const Task& s : plan_stages(f).stages) {
      if (s.kind == Task::Kind::copy) host_copies(copy_function(f, s));
      else lay_out(s, c);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return error.refusal();
  }
  return std::nullopt;
}

schedule::Schedule default_schedule(const PrimFunc& f, const Config& c,
                                    std::shared_ptr<const TargetInfo> machine,
                                    const ScheduleOptions& options) {
  if (is_scheduled(f))
    throw Error(ErrorKind::schedule, "vta.schedule.scheduled",
                cat("\"", f->name, "\" has buffers in the machine's memories already"))
        .help("build it as it is, or begin from the function without steps");
  if (options.threads < 1)
    throw Error(ErrorKind::schedule, "vta.schedule.default",
                cat(options.threads, " virtual threads"))
        .note("legal: at least 1");
  Packed packed = pack(f, c);
  std::vector<std::string> names;
  for (const PackedStage& s : packed.stages) {
    for (const Axis& a : s.task.axes) names.push_back(a.var->name);
  }
  const auto known = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& [name, n] : options.tiles) {
    if (known(name + "_o") && known(name + "_i"))
      throw Error(ErrorKind::schedule, "vta.schedule.default",
                  cat("tiles name \"", name, "\", which \"", f->name, "\" reads as \"", name,
                      "_o\" and \"", name, "_i\", its quotient and remainder"))
          .note(cat("iterators: ", join(names)))
          .help(cat("name a part of it: tiles={\"", name, "_i\": ", n, "}"));
    if (!known(name))
      throw Error(ErrorKind::schedule, "vta.schedule.default",
                  cat("tiles name \"", name, "\", no iterator of \"", f->name, "\""))
          .note(cat("iterators: ", join(names)));
    if (n < 1)
      throw Error(ErrorKind::schedule, "vta.schedule.default",
                  cat("a tile of ", n, " whole elements along \"", name, "\""))
          .note("legal: at least 1");
  }
  schedule::Schedule sch(packed.func, std::move(machine));
  for (const PackedStage& s : packed.stages) Steps(sch, s, c, options).run();
  return sch;
}

}  // namespace weft::vta
