// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/check_races.h"

#include <algorithm>
#include <utility>

#include "weft/base/hash.h"
#include "weft/base/text.h"
#include "weft/ir/attributes.h"
#include "weft/ir/build.h"
#include "weft/ir/interpret.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"
#include "weft/pass/race_run.h"

namespace weft::pass {

using namespace ir;
using races::Buffers;
using races::Crossings;
using races::Setup;

namespace {

using Symbols = std::unordered_map<const VarNode*, std::int64_t>;

constexpr std::int64_t kSize = 272;  // a size known only at run time: some tiles, and a rest
constexpr std::int64_t kGroups = 1 << 16, kIterations = 1 << 12;  // whose distances are covered
// Numbers few enough for all of them; more of points that no barrier joins than of groups.
constexpr std::int64_t kAllOf = 16, kAllPoints = 256;
constexpr std::size_t kMostWalks = 32;                     // through a host function
constexpr std::int64_t kAcross = 200'000, kHost = 32'000;  // accesses of a run

/// A value for every integer parameter: a size when it decides how often something runs, else (a
/// stride, an offset) a large number that has no simple ratio to the others: small multiples of
/// several of them do not meet.
Symbols symbols_of(const PrimFunc& f) {
  std::unordered_set<const VarNode*> sizes;
  auto size = [&](const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* v = as<VarNode>(x)) sizes.insert(v);
    });
  };
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* t = as<ForNode>(s)) size(t->min), size(t->extent);
    if (const auto* t = as<IfNode>(s)) size(t->condition);
    if (const auto* t = as<LetStmtNode>(s)) size(t->value);
    if (const auto* t = as<AssertNode>(s)) size(t->condition);
    if (const auto* t = as<LaunchNode>(s)) {
      for (const LaunchAxis& axis : t->axes) size(axis.extent);
    }
  });
  Symbols out;
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 44;
  std::uint64_t count = 0;
  for (const Param& p : f->params) {
    if (p.buffer || !p.var || !p.var->dtype.is_integral() || !p.var->dtype.is_scalar()) continue;
    const auto large = static_cast<std::int64_t>(kLarge + (mix64(count++) % kLarge | 1));
    out[p.var.get()] = sizes.count(p.var.get()) ? kSize : large;
  }
  return out;
}

/// Some of n numbers such that every distance up to `reach` lies between two of them: the first
/// ones, then every step-th; and the last. Of few numbers all.
std::vector<std::int64_t> samples(std::int64_t n, std::int64_t reach, std::int64_t all = kAllOf) {
  const std::int64_t within = std::min(n, reach);
  std::int64_t step = n <= all ? n : 1;
  while (step * step < within) ++step;
  std::vector<std::int64_t> out;
  for (std::int64_t k = 0; k < std::min(step, n); ++k) out.push_back(k);
  for (std::int64_t k = step; k < within; k += step) out.push_back(k);
  if (out.back() != n - 1) out.push_back(n - 1);
  return out;
}

std::int64_t value_of(const Expr& e, const Symbols& symbols) {
  std::int64_t n = -1;
  if (is_const_int(e, &n)) return n;
  PointValues values(1);
  for (const auto& [var, value] : symbols) {
    Numbers number;
    number.known = true;
    number.value = value;
    values.set(var, {0}, std::move(number));
  }
  const Numbers out = values.eval(e, {0});
  return out.all_known() ? out.at(0) : -1;
}

Buffers stored_in(const Stmt& s) {
  Buffers out, inside;
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* store = as<StoreNode>(t)) out.insert(store->buffer.get());
    if (const auto* a = as<AllocateNode>(t)) inside.insert(a->buffer.get());
  });
  std::erase_if(out, [&](const BufferNode* b) { return inside.count(b) > 0; });
  return out;
}

class Kernel {
 public:
  Kernel(const LaunchNode* launch, const TargetInfo& machine, const Symbols& symbols,
         RaceReport& report, std::int64_t budget)
      : launch_(launch),
        machine_(machine),
        symbols_(symbols),
        report_(report),
        budget_(budget),
        crossings_(launch->name, of_everybody(), report) {}

  void check() {
    for (const LaunchAxis& axis : launch_->axes) {
      const AxisInfo* row = machine_.axis(axis.axis);
      joined_.push_back(row && row->barrier);
      std::int64_t n = value_of(axis.extent, symbols_);
      if (!is_const_int(axis.extent)) {
        note(cat("the extent of ", axis.axis, " is known only at run time"));
        if (n < 0 && joined_.back()) return;
      }
      extents_.push_back(n < 0 ? 2 : n);
      (joined_.back() ? threads_ : groups_) *= extents_.back();
    }
    if (threads_ <= 0 || groups_ <= 0) return;
    Coordinates first(extents_.size(), 0), last;
    for (std::int64_t n : extents_) last.push_back(n - 1);
    if (threads_ > 1) together(first, true);
    if (threads_ > 1) together(last, true);
    if (!crossings_.any() || groups_ <= 1) return;
    if (threads_ <= 1) together(first, false);
    for (std::size_t a = 0; a < extents_.size(); ++a) {
      if (joined_[a] || extents_[a] <= 1) continue;
      Coordinates next = first;
      next[a] = 1;
      together(next, false);
    }
    across(0);
    if (threads_ > 1) across(threads_ - 1);
  }

 private:
  using Coordinates = std::vector<std::int64_t>;

  Buffers of_everybody() const {
    Buffers out = stored_in(launch_->body);
    std::erase_if(out, [&](const BufferNode* b) {
      const MemoryInfo* row = machine_.memory(b->scope);
      return !row || !row->private_to.empty();
    });
    return out;
  }

  Setup setup() const {
    Setup s;
    s.name = launch_->name;
    s.body = launch_->body;
    for (const LaunchAxis& axis : launch_->axes) {
      s.axes.push_back(axis.axis);
      s.vars.push_back(axis.var);
    }
    s.at.resize(extents_.size());
    return s;
  }

  std::int64_t number_of(const Coordinates& group) const {
    std::int64_t out = 0;
    for (std::size_t a = extents_.size(); a-- > 0;) {
      if (!joined_[a]) out = out * extents_[a] + group[a];
    }
    return out;
  }

  /// The coordinate along each axis of the p-th of the points (joined) or groups (not joined).
  Coordinates unpack(std::int64_t p, bool joined) const {
    Coordinates out(extents_.size(), 0);
    for (std::size_t a = 0; a < extents_.size(); ++a) {
      if (joined_[a] != joined) continue;
      out[a] = p % extents_[a];
      p /= extents_[a];
    }
    return out;
  }

  /// All points of one group; its own memory and barriers only when asked.
  void together(const Coordinates& group, bool judge) {
    Setup s = setup();
    s.together = judge;
    s.budget = judge ? budget_ : std::min(budget_, kAcross);
    const std::int64_t number = number_of(group);
    for (std::int64_t p = 0; p < threads_; ++p) {
      const Coordinates at = unpack(p, true);
      for (std::size_t a = 0; a < extents_.size(); ++a)
        s.at[a].push_back(joined_[a] ? at[a] : group[a]);
      s.group.push_back(number);
    }
    races::Run(s, machine_, crossings_, report_, symbols_).run();
  }

  /// One point of each of many groups.
  void across(std::int64_t thread) {
    Setup s = setup();
    s.brief = true;
    s.budget = std::min(budget_, kAcross);
    const Coordinates mine = unpack(thread, true);
    for (const std::int64_t g : samples(groups_, kGroups, threads_ <= 1 ? kAllPoints : kAllOf)) {
      const Coordinates at = unpack(g, false);
      for (std::size_t a = 0; a < extents_.size(); ++a)
        s.at[a].push_back(joined_[a] ? mine[a] : at[a]);
      s.group.push_back(number_of(at));
    }
    races::Run(s, machine_, crossings_, report_, symbols_).run();
  }

  void note(const std::string& what) {
    report_.unchecked.push_back(cat(launch_->name, ": ", what));
  }

  const LaunchNode* launch_;
  const TargetInfo& machine_;
  const Symbols& symbols_;
  RaceReport& report_;
  std::int64_t budget_;
  Crossings crossings_;
  std::vector<bool> joined_;
  Coordinates extents_;
  std::int64_t threads_ = 1, groups_ = 1;
};

/// The launches and parallel loops of a host function, with each loop around them at one iteration:
/// all at their first, then, for what depends on them, combinations of first, last, middle and
/// second ones and of those where conditions turn.
class HostPlan final : public Visitor {
 public:
  HostPlan(const PrimFunc& f, const TargetInfo& machine, RaceReport& report, std::int64_t budget)
      : name_(f->name),
        symbols_(symbols_of(f)),
        machine_(machine),
        report_(report),
        budget_(budget) {
    do {
      visit(f->body);
    } while (report_.clean() && report_.accesses < budget_ && ++walk_ < walks_);
  }
  using Visitor::visit;
  void visit(const Expr&) override {}
  void visit(const Stmt& s) override {
    const auto* let = as<LetStmtNode>(s);
    if (let && let->value->dtype.is_integral() && let->value->dtype.is_scalar()) {
      const std::int64_t n = value_of(let->value, symbols_);
      if (n >= 0) symbols_[let->var.get()] = n;
      if (uses(let->value)) around_.insert(let->var.get());
    }
    Visitor::visit(s);
  }

 protected:
  void visit_launch(const LaunchNode* launch) override {
    if (uses_tokens(launch->body)) return;  // ordered by tokens, which interpret_order judges
    bool varies = uses(launch->body);
    for (const LaunchAxis& axis : launch->axes) varies = varies || uses(axis.extent);
    if (news(varies)) Kernel(launch, machine_, symbols_, report_, budget_).check();
  }
  void visit_for(const ForNode* loop) override {
    const std::int64_t low = std::max<std::int64_t>(value_of(loop->min, symbols_), 0),
                       n = value_of(loop->extent, symbols_);
    if (loop->for_kind == ForKind::parallel &&
        news(uses(loop->body) || uses(loop->min) || uses(loop->extent)))
      check(loop, low);
    const std::vector<std::int64_t> all = iterations(loop, low, n);
    symbols_[loop->var.get()] = chosen(all, combinations_);
    if (n != 1) around_.insert(loop->var.get());
    const std::size_t outside =
        std::exchange(combinations_, std::min(combinations_ * all.size(), kMostWalks));
    most_ = std::max(most_, combinations_);
    Visitor::visit_for(loop);
    combinations_ = outside;
    around_.erase(loop->var.get());
    symbols_.erase(loop->var.get());
  }

 private:
  /// Where walks look at what is in a loop of n iterations.
  static std::vector<std::int64_t> iterations(const ForNode* loop, std::int64_t low,
                                              std::int64_t n) {
    if (n <= 1) return {low};
    std::vector<std::int64_t> out{low};
    auto add = [&](std::int64_t at) {
      if (at > low && at < low + n && std::find(out.begin(), out.end(), at) == out.end())
        out.push_back(at);
    };
    for (const std::int64_t k : {n - 1, n / 2, std::int64_t{1}}) add(low + k);
    for (const std::int64_t k : races::turning_points(loop->body, loop->var.get())) add(k);
    return out;
  }
  /// The walk at hand's: of all combinations where they are few, else of some.
  std::int64_t chosen(const std::vector<std::int64_t>& all, std::size_t stride) const {
    const std::size_t place = most_ < kMostWalks || walk_ == 0
                                  ? walk_ / stride
                                  : static_cast<std::size_t>(mix64(walk_ * kMostWalks + stride));
    return all[place % all.size()];
  }
  /// Whether the walk at hand finds anything that earlier ones did not.
  bool news(bool varies) {
    if (varies) walks_ = most_;
    return varies || walk_ == 0;
  }
  template <typename T>
  bool uses(const T& code) const {
    bool out = false;
    for_each_expr(code, [&](const Expr& e) { out = out || around_.count(as<VarNode>(e)) > 0; });
    return out;
  }
  void check(const ForNode* loop, std::int64_t low) {
    Buffers watched = stored_in(loop->body);
    const std::int64_t n = value_of(loop->extent, symbols_);
    if (n < 0) {
      report_.unchecked.push_back(
          cat(name_, ": loop \"", loop->var->name, "\" has a range known only at run time"));
    }
    if (n <= 1 || watched.empty()) return;
    Setup s;
    s.name = name_;
    s.body = loop->body;
    s.axes = {loop->var->name};
    s.vars = {loop->var};
    s.at.resize(1);
    s.brief = true;
    s.budget = kHost;
    std::vector<std::int64_t> all = samples(n, kIterations);
    for (const std::int64_t k : races::turning_points(loop->body, loop->var.get()))
      if (k >= low && k - low < n) all.push_back(k - low);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (const std::int64_t i : all) {
      s.at[0].push_back(low + i);
      s.group.push_back(i);
    }
    Crossings crossings(name_, std::move(watched), report_);
    races::Run(s, machine_, crossings, report_, symbols_).run();
  }

  std::string name_;
  Symbols symbols_;
  const TargetInfo& machine_;
  RaceReport& report_;
  std::int64_t budget_;
  std::unordered_set<const VarNode*> around_;  // of loops around, and what is made of them
  // Walks through the function: one, unless something in a loop is another thing each time.
  std::size_t walk_ = 0, walks_ = 1, most_ = 1;
  std::size_t combinations_ = 1;  // of iterations of the loops around
};

}  // namespace

std::string RaceReport::text() const {
  std::string out;
  for (const Race& r : races) {
    out += cat(r.kernel, ": ", r.what);
    if (!r.buffer.empty()) {
      out += cat(" on \"", r.buffer, "\" (", r.scope, ")");
      if (r.element >= 0) out += cat(" element ", r.element);
    }
    out += cat(": ", r.first_use, " and ", r.second_use, "\n");
  }
  for (const std::string& u : unchecked) out += cat("unchecked: ", u, "\n");
  return out + cat(accesses, " accesses, ", same_value_writes,
                   " writes of a value that another point also wrote");
}

RaceReport check_races(const PrimFunc& f, const TargetInfo& machine, std::int64_t max_accesses) {
  RaceReport report;
  HostPlan(f, machine, report, max_accesses);
  if (has_flag(f->attrs, kDistinctElements))
    std::erase_if(report.races, [](const Race& r) { return r.element < 0 && !r.buffer.empty(); });
  std::vector<std::string> once;
  for (std::string& u : report.unchecked) {
    if (std::find(once.begin(), once.end(), u) == once.end()) once.push_back(std::move(u));
  }
  report.unchecked = std::move(once);
  return report;
}

}  // namespace weft::pass
