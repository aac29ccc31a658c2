// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/expected_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "weft/ir/visit.h"
#include "weft/rules/access_table.h"
#include "weft/rules/nest.h"

namespace weft::rules {

using namespace ir;

namespace {

constexpr double kStraight = 4096;  // iterations of constant loops that become straight code
constexpr double kLongest = 64;     // of one of these
constexpr double kOverhead = 24;    // registers for addresses and operands
constexpr double kMostRegisters = 255;
constexpr double kSpilled = 4;  // how much slower what does not fit is

/// Two resources that are used side by side hinder each other the more the closer their times are.
double hindered(double x, double y) {
  const double a = x * x, b = y * y;
  return std::sqrt(std::sqrt(a * a + b * b));
}

bool is_axis(const LoopCount& l, std::string_view prefix) {
  return l.loop->for_kind == ForKind::bound && l.loop->axis.starts_with(prefix);
}

/// The first of the innermost loops that are straight code.
std::size_t straight_from(const Leaf& leaf) {
  double product = 1;
  std::size_t at = leaf.loops.size();
  while (at > 0) {
    const LoopCount& l = leaf.loops[at - 1];
    if (l.loop->for_kind == ForKind::bound || l.loop->for_kind == ForKind::parallel ||
        !l.constant || l.extent > kLongest || product * l.extent > kStraight)
      break;
    product *= l.extent;
    --at;
  }
  return at;
}

/// Whether the function is of loops, blocks and stores alone.
bool is_read(const PrimFunc& f) {
  bool out = true;
  for_each_stmt(f->body, [&](const Stmt& s) {
    out = out && (as<ForNode>(s) || as<BlockRealizeNode>(s) || as<StoreNode>(s) || as<IfNode>(s) ||
                  as<SeqNode>(s));
  });
  return out;
}

/// One kernel: a statement of the body, whose loops are bound to groups and threads.
class Kernel {
 public:
  Kernel(const std::vector<Leaf>& leaves, const GridRates& rates, const Sizes& sizes)
      : leaves_(leaves), r_(rates), sizes_(sizes) {}

  double time() {
    read_launch();
    read_buffers();
    for (const Leaf& leaf : leaves_) count(leaf);
    const double warps = std::ceil(threads_ / r_.lanes);
    const double registers = std::min(kMostRegisters, kOverhead + private_words_);
    double resident = std::min(r_.threads / threads_, 32.0);
    resident = std::min(resident, r_.registers / (threads_ * registers));
    if (shared_bytes_ > 0) resident = std::min(resident, r_.memory_shared / (shared_bytes_ + 1024));
    resident = std::floor(resident);
    if (resident < 1) return 1e12;                           // such a group cannot run
    const double each = std::ceil(groups_ / r_.processors);  // groups of the busiest processor
    resident = std::min(resident, each);
    // Instructions of one group, and what hides how long each takes.
    double work =
        hindered(issued_ * warps / r_.issues, hindered(shared_clocks_, cache_clocks_) * warps);
    if (kOverhead + private_words_ > kMostRegisters) work *= kSpilled;
    const double hidden = std::min(1.0, resident * warps * std::min(4.0, parallel_) / 16);
    const double each_step = ahead_ > 0 ? r_.latency / (1 + ahead_ * 4) : r_.latency;
    // Operands that are used where they are loaded mostly come from the caches.
    const double waits = steps_ * (r_.barrier + each_step) + used_at_once_ * r_.latency / 2;
    const double clocks =
        hindered(each * work / hidden, (each / resident) * (waits + work)) + r_.latency;
    const double flight = resident * warps * r_.lanes * flight_bytes_;
    const double rate =
        std::min(r_.memory_bytes_per_microsecond, std::min(groups_, r_.processors) * flight /
                                                      r_.latency * r_.clocks_per_microsecond);
    return r_.launch + hindered(clocks / r_.clocks_per_microsecond, memory_bytes_ / rate);
  }

 private:
  void read_launch() {
    std::map<std::string, double> blocks, threads;
    for (const Leaf& leaf : leaves_) {
      double serial = 1;
      for (const LoopCount& l : leaf.loops) {
        if (l.loop->for_kind != ForKind::bound) continue;
        const bool thread = is_axis(l, "threadIdx");
        double& extent = (thread ? threads : blocks)[l.loop->axis];
        if (!thread && !is_axis(l, "blockIdx")) serial *= l.extent;
        extent = std::max(extent, l.extent);
      }
    }
    for (const auto& [axis, n] : blocks) groups_ *= n;
    for (const auto& [axis, n] : threads) threads_ *= n;
  }

  /// How many outer loops all leaves that use a buffer share: what lies inside is one lifetime.
  std::size_t common_of(const BufferNode* buffer) const {
    const std::vector<LoopCount>* first = nullptr;
    std::size_t common = 0;
    for (const Leaf& leaf : leaves_) {
      const bool uses = std::any_of(leaf.accesses.begin(), leaf.accesses.end(),
                                    [&](const Access& a) { return a.buffer == buffer; });
      if (!uses) continue;
      if (!first) first = &leaf.loops, common = leaf.loops.size();
      std::size_t same = 0;
      while (same < common && same < leaf.loops.size() &&
             leaf.loops[same].loop == (*first)[same].loop)
        ++same;
      common = std::min(common, same);
    }
    return common;
  }

  void read_buffers() {
    std::map<const BufferNode*, double> sizes;
    for (const Leaf& leaf : leaves_) {
      for (const Access& a : leaf.accesses) {
        const std::string& scope = a.buffer->scope;
        if (scope == "global") continue;
        const bool shared = scope.starts_with("shared");
        const std::size_t from = common_of(a.buffer);
        const double n = leaf.distinct(a, [&](std::size_t l) {
          const bool thread = is_axis(leaf.loops[l], "threadIdx");
          return thread ? shared : l >= from;
        });
        double& size = sizes[a.buffer];
        size = std::max(size, n * a.bytes());
        if (!shared || !a.store) continue;
        double steps = 1;
        for (std::size_t l = 0; l < from; ++l) {
          const LoopCount& loop = leaf.loops[l];
          if (loop.loop->for_kind == ForKind::bound) continue;
          steps *= loop.extent;
          const Json* stage = find_annotation(loop.loop->annotations, "software_pipeline_stage");
          if (!stage) continue;
          for (const Json& s : stage->as_array())
            ahead_ = std::max(ahead_, static_cast<double>(s.as_int()));
        }
        steps_ = std::max(steps_, steps);
      }
    }
    for (const auto& [buffer, bytes] : sizes) {
      if (buffer->scope.starts_with("shared")) shared_bytes_ += bytes * (1 + ahead_);
      else private_words_ += bytes / 4;
    }
  }

  /// Addresses of the threads that issue an access together, in bytes.
  std::vector<double> lanes_of(const Leaf& leaf, const Access& a) const {
    std::vector<double> out;
    const LoopCount *x = nullptr, *y = nullptr;
    for (const LoopCount& l : leaf.loops) {
      if (is_axis(l, "threadIdx.x")) x = &l;
      if (is_axis(l, "threadIdx.y")) y = &l;
    }
    const auto wide = static_cast<std::int64_t>(x ? x->extent : 1);
    for (std::int64_t lane = 0; lane < static_cast<std::int64_t>(r_.lanes); ++lane) {
      std::vector<std::pair<const VarNode*, std::int64_t>> at;
      if (x) at.emplace_back(x->loop->var.get(), lane % wide);
      if (y && lane / wide < static_cast<std::int64_t>(y->extent))
        at.emplace_back(y->loop->var.get(), lane / wide);
      out.push_back(address(a, leaf, sizes_, at) * a.bytes());
    }
    return out;
  }

  /// Clocks that shared memory takes for one instruction: threads that meet in a bank wait.
  double shared_passes(const std::vector<double>& lanes, double bytes) const {
    const double granule = std::max(4.0, bytes);
    const auto banks = static_cast<std::int64_t>(r_.shared_bytes / granule);
    std::map<std::int64_t, std::set<std::int64_t>> rows;
    for (double address : lanes) {
      const auto word = static_cast<std::int64_t>(address / granule);
      rows[word % banks].insert(word);
    }
    std::size_t worst = 1;
    for (const auto& [bank, words] : rows) worst = std::max(worst, words.size());
    return static_cast<double>(worst);
  }

  void count(const Leaf& leaf) {
    const std::size_t from = straight_from(leaf);
    double outer = 1, inner = 1, vector = 1;
    for (std::size_t l = 0; l < leaf.loops.size(); ++l) {
      if (leaf.loops[l].loop->for_kind == ForKind::bound) continue;
      (l < from ? outer : inner) *= leaf.loops[l].extent;
    }
    const LoopCount* last = leaf.loops.empty() ? nullptr : &leaf.loops.back();
    if (last && last->loop->for_kind == ForKind::vectorized) vector = last->extent;
    bool copies = leaf.operations <= 1;
    for (const Access& a : leaf.accesses) copies = copies && (a.store || leaf.accesses.size() == 2);
    issued_ += outer * (copies ? 0 : leaf.operations * inner) + outer * 2;
    if (!copies) parallel_ = std::max(parallel_, inner);
    for (const Access& a : leaf.accesses) {
      if (!(a.buffer->scope == "global" || a.buffer->scope.starts_with("shared"))) continue;
      double times = 1;
      for (std::size_t l = from; l < leaf.loops.size(); ++l)
        if (a.moves[l]) times *= leaf.loops[l].extent;
      const double most = 16.0 / a.bytes();
      double wide = 1;
      const bool global = a.buffer->scope == "global";
      if (global && vector > 1 && a.step.back() == 1) wide = std::clamp(vector, 1.0, most);
      // Compilers join neighbours of shared memory that straight code reads.
      for (std::size_t l = from; !global && l < leaf.loops.size(); ++l)
        if (a.step[l] == 1) wide = std::max(wide, std::min(leaf.loops[l].extent, most));
      times = std::max(1.0, times / wide);
      issued_ += outer * times;
      const std::vector<double> lanes = lanes_of(leaf, a);
      if (!global) {
        shared_clocks_ += outer * times * shared_passes(lanes, wide * a.bytes());
        continue;
      }
      std::set<std::int64_t> sectors;
      for (double at : lanes)
        for (double b = 0; b < wide * a.bytes(); b += 32)
          sectors.insert(static_cast<std::int64_t>((at + b) / 32));
      const double bytes = 32 * static_cast<double>(sectors.size());
      cache_clocks_ += outer * times * bytes / r_.cache_bytes;
      if (!a.store && !copies) used_at_once_ = std::max(used_at_once_, outer);
      if (!a.store) flight_bytes_ = std::max(flight_bytes_, times * wide * a.bytes());
      const double touched = leaf.distinct(a, [](std::size_t) { return true; }) * a.bytes();
      double& seen = touched_[a.buffer];
      memory_bytes_ += std::max(0.0, touched - seen);
      seen = std::max(seen, touched);
    }
  }

  const std::vector<Leaf>& leaves_;
  const GridRates& r_;
  const Sizes& sizes_;
  double groups_ = 1, threads_ = 1;
  double shared_bytes_ = 0, private_words_ = 0, steps_ = 0, ahead_ = 0;
  double issued_ = 0, shared_clocks_ = 0, cache_clocks_ = 0;  // of one warp
  double used_at_once_ = 0;
  double parallel_ = 1, flight_bytes_ = 4, memory_bytes_ = 0;
  std::map<const BufferNode*, double> touched_;
};

/// A limit of the table, where it has it.
void read_limit(const TargetInfo& info, const char* name, double& value, double unit = 1) {
  if (auto found = info.limits.find(name); found != info.limits.end())
    value = static_cast<double>(found->second) * unit;
}

}  // namespace

double expected_time(const PrimFunc& f, const GridRates& rates) {
  if (!is_read(f)) return 0;
  const Sizes sizes = sizes_of(f);
  double out = 0;
  for (const std::vector<Leaf>& leaves : read_accesses(f, sizes))
    if (!leaves.empty()) out += Kernel(leaves, rates, sizes).time();
  return out;
}

namespace {

/// What the straight loops of a leaf cost a host, and what its accesses bring from which cache.
class HostLeaf {
 public:
  HostLeaf(const Leaf& leaf, const HostRates& rates) : leaf_(leaf), r_(rates) {}

  /// Clocks of one processor.
  double clocks() const {
    return hindered(instructions(), transfers(r_.cache1, r_.cache2_bytes)) +
           transfers(r_.cache2, r_.memory_bytes);
  }

 private:
  /// The innermost unrolled and vectorized loops.
  std::size_t straight() const {
    std::size_t at = leaf_.loops.size();
    while (at > 0) {
      const ForKind kind = leaf_.loops[at - 1].loop->for_kind;
      if (kind != ForKind::unrolled && kind != ForKind::vectorized) break;
      --at;
    }
    return at;
  }

  double instructions() const {
    const std::size_t from = straight();
    double outer = 1, inner = 1, lanes = 1;
    for (std::size_t l = 0; l < leaf_.loops.size(); ++l) {
      (l < from ? outer : inner) *= leaf_.loops[l].extent;
      if (leaf_.loops[l].loop->for_kind == ForKind::vectorized) lanes = leaf_.loops[l].extent;
    }
    const double width = r_.vector_bytes / leaf_.accesses[0].bytes();
    // A short vector costs a whole one; without vectors each element costs one.
    const double elements = inner / lanes, vectors = lanes > 1 ? std::ceil(lanes / width) : 1;
    double loads = 0, held = 2;
    for (const Access& a : leaf_.accesses) {
      double times = 1, moving = 1;
      for (std::size_t l = from; l < leaf_.loops.size(); ++l) {
        if (!a.moves[l]) continue;
        const bool along = leaf_.loops[l].loop->for_kind == ForKind::vectorized;
        if (!along) times *= leaf_.loops[l].extent;
        else moving = a.step[l] == 1 ? vectors : leaf_.loops[l].extent;
      }
      const bool kept = a.buffer->scope == "local";
      if (kept) held = std::max(held, times * moving);
      else loads += times * moving * (a.store ? 2 : 1);
    }
    const double sums = leaf_.operations * elements * vectors;
    // Accumulators that do not fit are loaded and stored around each use.
    if (held + vectors + 1 > r_.registers) loads += 2 * sums;
    const double body = std::max({sums / 2, loads / 2, (sums + loads) / 4});
    return outer * (body + 1);
  }

  /// Clocks for what a cache of `bytes` does not hold.
  double transfers(double bytes, double rate) const {
    const std::size_t n = leaf_.loops.size();
    std::size_t inside = n;  // loops from here on work in the cache
    while (inside > 0 && footprint(inside - 1) <= bytes) --inside;
    if (inside == 0 && footprint(0) <= bytes) return 0;
    double moved = 0;
    for (const Access& a : leaf_.accesses) {
      if (a.buffer->scope == "local") continue;
      // A loop just outside along which the access stands still finds it again.
      double outer = 1;
      bool near = true;
      for (std::size_t l = inside; l-- > 0;) {
        near = near && !a.moves[l] && l + 1 == inside && lines(a, inside) <= bytes / 2;
        if (!near) outer *= leaf_.loops[l].extent;
      }
      moved += outer * lines(a, inside);
    }
    return moved / rate;
  }
  double footprint(std::size_t from) const {
    double out = 0;
    for (const Access& a : leaf_.accesses)
      if (a.buffer->scope != "local") out += lines(a, from);
    return out;
  }
  /// Bytes of the lines that an access meets while the loops from `from` on run.
  double lines(const Access& a, std::size_t from) const {
    double run = 1;
    for (std::size_t l = from; l < leaf_.loops.size(); ++l)
      if (a.step[l] > 0 && a.step[l] * a.bytes() < 64)
        run = std::max(run, a.step[l] * leaf_.loops[l].extent);
    const double n = leaf_.distinct(a, [&](std::size_t l) { return l >= from; });
    return n * std::max<double>(a.bytes(), 64 / std::max(1.0, run));
  }

  const Leaf& leaf_;
  const HostRates& r_;
};

}  // namespace

double expected_time(const PrimFunc& f, const HostRates& rates) {
  if (!is_read(f)) return 0;
  double clocks = 0;
  for (const std::vector<Leaf>& leaves : read_accesses(f, sizes_of(f))) {
    for (const Leaf& leaf : leaves) {
      double pieces = 1;
      for (const LoopCount& l : leaf.loops)
        if (l.loop->for_kind == ForKind::parallel) pieces *= l.extent;
      const double rounds = std::ceil(pieces / rates.processors) / pieces;
      clocks += HostLeaf(leaf, rates).clocks() * rounds;
    }
  }
  return clocks / rates.clocks_per_microsecond;
}

GridRates grid_rates(const TargetInfo& info) {
  GridRates out;
  read_limit(info, limits::kProcessors, out.processors),
      read_limit(info, limits::kLanes, out.lanes);
  read_limit(info, limits::kClockKhz, out.clocks_per_microsecond, 1e-3);
  read_limit(info, limits::kMemoryRate, out.memory_bytes_per_microsecond);
  if (info.group_bytes() > 0) out.memory_shared = static_cast<double>(info.group_bytes());
  return out;
}

HostRates host_rates(const TargetInfo& info) {
  HostRates out;
  read_limit(info, limits::kVectorBytes, out.vector_bytes);
  read_limit(info, limits::kRegisters, out.registers);
  read_limit(info, limits::kCache1Bytes, out.cache1),
      read_limit(info, limits::kCache2Bytes, out.cache2);
  read_limit(info, limits::kThreads, out.processors);
  return out;
}

}  // namespace weft::rules
