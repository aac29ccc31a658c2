// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/trial.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/runtime/module.h"
#include "weft/target/backend.h"
#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/tensor/lane_choice.h"

namespace weft::qpu::tensor {

using namespace ir;
using schedule::Schedule;

namespace {

constexpr double kMostClocks = 200e3;         // estimated, of a sum that is run
constexpr std::int64_t kBudget = 1 << 22;     // clocks of all trials of a nest
constexpr double kNear = 2.5;                 // estimates are off by less
constexpr std::int64_t kMostWords = 1 << 24;  // of all tensors
constexpr std::size_t kMostTrials = 7, kMostShared = 2;

/// Elements of a tensor; 0: known at run time only.
std::int64_t elements(const Buffer& b) {
  std::int64_t out = 1;
  for (const Expr& e : b->shape) {
    std::int64_t n = 0;
    out = is_const_int(e, &n) ? out * n : 0;
  }
  return out;
}

/// The nest as a function of its own. Null: it needs more than tensors of known, moderate sizes.
PrimFunc alone(const Nest& nest) {
  std::vector<Param> params;
  for (const auto* regions : {&nest.block->reads, &nest.block->writes}) {
    for (const BufferRegion& r : *regions) {
      const Buffer& b = r.buffer;
      if (std::any_of(params.begin(), params.end(), [&](const Param& p) { return p.buffer == b; }))
        continue;
      if (elements(b) == 0 || !b->strides.empty() || b->scope != "global") return nullptr;
      params.push_back(buffer_param(b));
    }
  }
  std::int64_t words = 0;
  for (const Param& p : params) words += elements(p.buffer);
  if (words > kMostWords) return nullptr;
  const Stmt body(nest.loops[0].node);
  if (!free_vars(body).empty()) return nullptr;
  return make_func("main", std::move(params), root_block(body));
}

/// An emulator with the tensors of a function, all of them zeros.
class Trial {
 public:
  Trial(const PrimFunc& f, std::int64_t qpus) : target_(cat("qpu:qpus=", qpus)) {
    constexpr std::int64_t kMegabyte = 1 << 20, kSpare = 4;  // for programs and their arguments
    std::int64_t bytes = 0;
    for (const Param& p : f->params) bytes += elements(p.buffer) * p.buffer->dtype.bytes();
    const std::string name =
        cat(target_, ",memory=", bytes / kMegabyte + kSpare, ",races=off,counts=off");
    hw::EmulatorOptions options = hw::parse_options(name);
    options.debugged = false;  // whoever debugs a program launches it, not its candidates
    device_ = hw::make_device(name, options);
    for (const Param& p : f->params) {
      runtime::CallArg arg;
      arg.dtype = p.buffer->dtype;
      for (const Expr& e : p.buffer->shape) is_const_int(e, &arg.shape.emplace_back());
      held_.push_back(device_->allocate(elements(p.buffer) * arg.dtype.bytes()));
      arg.storage = held_.back().get();
      args_.push_back(std::move(arg));
    }
  }
  /// Clocks of the function, scheduled.
  std::int64_t clocks(const PrimFunc& f) {
    BuildOptions options;
    options.observer.verify = false;  // the placement that is chosen is verified with its function
    runtime::Function function(build(make_module(f), target_, options), f->name, device_);
    return device_->measure([&] { function.call(args_).wait(); }).cycles;
  }

 private:
  std::string target_;
  Ref<runtime::Device> device_;
  std::vector<Ref<runtime::Storage>> held_;
  std::vector<runtime::CallArg> args_;
};

bool bound(const PrimFunc& f) {
  bool out = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* loop = as<ForNode>(s);
    out = out || (loop && loop->for_kind == ForKind::bound);
  });
  return out;
}

/// Beside the way that estimates take.
std::vector<Placement::Share> ways_to_share(const Nest& nest, std::size_t number) {
  const Loop& lane = nest.loops[number];
  const bool chunks = lane.iter->kind == IterKind::spatial && lane.extent > kLanes;
  const Loop* last = nullptr;  // of the other loops of results
  for (const Loop& l : nest.loops)
    if (l.iter->kind == IterKind::spatial && l.node != lane.node && l.extent != 1) last = &l;
  std::vector<Placement::Share> out = {{false, true, 1}};
  if (chunks) out.push_back({true, false, 1}), out.push_back({true, true, 1});
  for (std::int64_t height : {8, 4}) {
    if (!last || last->extent <= height) continue;
    out.push_back({false, false, height});
    if (chunks) out.push_back({true, true, height});
  }
  return out;
}

}  // namespace

Placement fastest_placement(const Nest& nest, const std::shared_ptr<const TargetInfo>& machine,
                            std::int64_t qpus) {
  const bool known = !nest.loops.empty() && std::all_of(nest.loops.begin(), nest.loops.end(),
                                                        [](const Loop& l) { return l.extent > 0; });
  const bool sums = std::any_of(nest.loops.begin(), nest.loops.end(),
                                [](const Loop& l) { return l.iter->kind == IterKind::reduce; });
  if (!nest.block || !known || (sums ? !joins(nest) : collapses(nest))) return {};
  const std::vector<Estimate> all = estimates(nest, qpus);
  if (all.empty() || all[0].clocks > kMostClocks) return {};
  const PrimFunc f = alone(nest);
  if (!f) return {};
  const std::vector<Nest> same = nests_of(f);
  Trial trial(f, qpus);
  std::int64_t spent = 0;
  /// 0: it cannot be had.
  auto clocks_of = [&](const Placement& placement) -> std::int64_t {
    if (spent > kBudget) return 0;
    Schedule sch(f, machine);
    sch.set_detail(false);
    const bool placed = attempt(sch, [&] {
      place(sch, same[0], qpus, placement);
      return true;
    });
    if (!placed || !bound(sch.func())) return 0;
    try {
      const std::int64_t clocks = trial.clocks(sch.func());
      spent += clocks;
      return clocks;
    } catch (const Error& refusal) {  // the machine has no form for this one
      if (refusal.kind() == ErrorKind::internal) throw;
      return 0;
    }
  };
  struct Tried {
    Placement placement;
    std::int64_t clocks = 0;
  };
  Tried best;
  std::vector<Tried> plain;  // without tiles
  auto attempt_one = [&](const Placement& placement) {
    const Tried tried{placement, clocks_of(placement)};
    if (tried.clocks > 0 && (best.clocks == 0 || tried.clocks < best.clocks)) best = tried;
    return tried;
  };
  std::size_t trials = 0;
  for (const Estimate& e : all) {
    // Without tiles there is more to try.
    const bool tiled = e.tiles && *e.tiles != Placement::kNoTiles, wanted = !tiled && plain.empty();
    const bool near = e.clocks <= kNear * all[0].clocks && trials < kMostTrials;
    if (!near && !wanted) continue;
    Placement placement;
    placement.lane = e.lane, placement.tiles = e.tiles;
    const Tried tried = attempt_one(placement);
    ++trials;
    if (!tiled && tried.clocks > 0) plain.push_back(tried);
  }
  // How results are shared out decides what QPUs that work side by side read together.
  std::stable_sort(plain.begin(), plain.end(),
                   [](const Tried& a, const Tried& b) { return a.clocks < b.clocks; });
  plain.resize(std::min(plain.size(), kMostShared));
  const auto most = static_cast<std::int64_t>(kNear * static_cast<double>(best.clocks));
  for (const Tried& tried : plain) {
    if (tried.clocks > most) break;
    for (const Placement::Share& way : ways_to_share(nest, *tried.placement.lane)) {
      Placement placement = tried.placement;
      placement.share = way;
      attempt_one(placement);
    }
  }
  return best.placement;
}

}  // namespace weft::qpu::tensor
