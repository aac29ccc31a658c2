// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/pipeline_loops.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr const char* kStage = "software_pipeline_stage";
constexpr const char* kOrder = "software_pipeline_order";
constexpr const char* kAsync = "software_pipeline_async_stages";
constexpr std::int64_t kMostStages = 64;

using Buffers = std::unordered_set<const BufferNode*>;

/// One statement of the body and when it runs.
struct StagedPart {
  Stmt stmt;
  std::int64_t stage = 0, order = 0;
  bool async = false;
  Buffers reads, writes;
};

Buffers written_by(const Stmt& s) {
  Buffers out;
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* x = as<StoreNode>(t)) out.insert(x->buffer.get());
    if (const auto* x = as<CollectiveNode>(t)) out.insert(x->dst.buffer.get());
  });
  for_each_expr(s, [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    const auto* l = c && c->op == "address_of" ? as<LoadNode>(c->args[0]) : nullptr;
    if (l) out.insert(l->buffer.get());
  });
  return out;
}

Buffers read_by(const Stmt& s) {
  Buffers out;
  for_each_expr(s, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) out.insert(l->buffer.get());
  });
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* x = as<CollectiveNode>(t)) out.insert(x->src.buffer.get());
  });
  return out;
}

bool before(const StagedPart& a, const StagedPart& b) {
  return a.stage != b.stage ? a.stage < b.stage : a.order < b.order;
}

/// Replaces a buffer by one with a leading dimension of versions.
class Version final : public Rewriter {
 public:
  Version(const std::unordered_map<const BufferNode*, Buffer>& versions, Expr iteration)
      : versions_(versions), iteration_(std::move(iteration)) {}

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    auto found = versions_.find(l->buffer.get());
    if (found == versions_.end()) return Rewriter::rewrite_load(e);
    return load(found->second, indices(found->second, l->indices));
  }
  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    auto found = versions_.find(t->buffer.get());
    if (found == versions_.end()) return Rewriter::rewrite_store(s);
    return store(found->second, rewrite(t->value), indices(found->second, t->indices));
  }
  BufferRegion rewrite_region(const BufferRegion& region) override {
    BufferRegion out = Rewriter::rewrite_region(region);
    if (auto found = versions_.find(region.buffer.get()); found != versions_.end()) {
      out.buffer = found->second;
      out.region.insert(out.region.begin(), {slot(found->second), make_int(1)});
    }
    return out;
  }

 private:
  Expr slot(const Buffer& b) const { return floormod(iteration_, b->shape[0]); }
  Exprs indices(const Buffer& b, const Exprs& old) {
    Exprs out{slot(b)};
    for (const Expr& i : old) out.push_back(rewrite(i));
    return out;
  }

  const std::unordered_map<const BufferNode*, Buffer>& versions_;
  Expr iteration_;
};

class StagedLoop {
 public:
  StagedLoop(const ForNode* loop, const TargetInfo& machine) : loop_(loop), machine_(machine) {
    std::vector<Stmt> stmts;
    open(loop->body, stmts);
    std::vector<std::int64_t> stages = numbers(kStage, stmts.size()), order;
    if (find_annotation(loop->annotations, kOrder)) {
      order = numbers(kOrder, stmts.size());
      check_order(order);
    } else {
      order.resize(stmts.size());
      std::iota(order.begin(), order.end(), 0);
    }
    std::vector<std::int64_t> async_stages;
    if (const Json* list = find_annotation(loop->annotations, kAsync)) {
      for (const Json& n : list->as_array()) async_stages.push_back(n.as_int());
    }
    for (std::size_t i = 0; i < stmts.size(); ++i) {
      StagedPart p{stmts[i], stages[i], order[i], false, read_by(stmts[i]), written_by(stmts[i])};
      if (p.stage < 0 || p.stage > kMostStages)
        refuse("stage",
               cat("statement ", i, " has stage ", p.stage, "; stages are 0 to ", kMostStages));
      p.async = machine.copy_queue() &&
                std::find(async_stages.begin(), async_stages.end(), p.stage) != async_stages.end();
      last_stage_ = std::max(last_stage_, p.stage);
      parts_.push_back(std::move(p));
    }
    for (const AllocateNode* a : own_) mine_.insert(a->buffer.get());
    check_dependences();
    std::sort(parts_.begin(), parts_.end(),
              [](const StagedPart& a, const StagedPart& b) { return a.order < b.order; });
    for (const StagedPart& p : parts_) {
      if (p.async && !tokens_.count(p.stage))
        tokens_[p.stage] = make_var(cat("stage_", p.stage, "_done"), dtypes::int64);
    }
    make_versions();
  }

  Stmt run() {
    std::int64_t n = 0;
    const bool constant = is_const_int(loop_->extent, &n);
    std::vector<Stmt> out;
    const std::int64_t s = last_stage_;
    for (std::int64_t t = 0; t < s; ++t)
      out.push_back(step(make_int(t), t, constant ? n : -1, true, false));
    if (!constant || n > s) {
      Var var = make_var(loop_->var->name, loop_->var->dtype);
      // An extent known at run time only: the loop goes on until its last stage has ended, under
      // conditions, instead of a copy of the body for each of the last steps.
      Expr count = constant ? arith::simplify(loop_->extent - s) : loop_->extent;
      Expr at = cast(dtypes::int64, Expr(var)) + s;
      Annotations notes = loop_->annotations;
      for (const char* key : {kStage, kOrder, kAsync})
        notes = with_annotation(std::move(notes), key, nullptr);
      Stmt body = step(at, -1, constant ? n : -1, false, !constant);
      out.push_back(make_for(var, make_const(0, var->dtype), cast(var->dtype, count), body,
                             loop_->for_kind, "", std::move(notes)));
    }
    for (std::int64_t e = 0; e < s && constant; ++e)
      if (n + e >= s) out.push_back(step(make_int(n + e), n + e, n, true, true));
    // Groups that the last steps left empty; what was started is known to have ended behind this.
    for (const auto& [stage, token] : tokens_)
      if (!constant) out.push_back(wait(token, 0));
    Stmt body = seq(std::move(out));
    for (std::size_t i = own_.size(); i-- > 0;) {
      auto found = versions_.find(own_[i]->buffer.get());
      body = allocate(found == versions_.end() ? own_[i]->buffer : found->second, body,
                      own_[i]->annotations);
    }
    return body;
  }

 private:
  /// The statements of the body; allocations around some of them are the loop's own.
  void open(const Stmt& s, std::vector<Stmt>& stmts) {
    if (const auto* a = as<AllocateNode>(s)) {
      own_.push_back(a);
      open(a->body, stmts);
    } else if (const auto* q = as<SeqNode>(s)) {
      for (const Stmt& child : q->stmts) open(child, stmts);
    } else {
      stmts.push_back(s);
    }
  }

  [[noreturn]] void refuse(std::string_view reason, std::string why) const {
    throw Error(ErrorKind::lower, cat("lower.pipeline.", reason),
                cat("loop \"", loop_->var->name, "\" cannot be pipelined: ", why));
  }

  std::vector<std::int64_t> numbers(const char* key, std::size_t count) const {
    const Json* list = find_annotation(loop_->annotations, key);
    if (!list || !list->is_array())
      refuse("count", cat("\"", key, "\" is no list of numbers, one for each of its ", count,
                          " statements"));
    std::vector<std::int64_t> out;
    for (const Json& n : list->as_array()) {
      if (!n.is_int()) refuse("count", cat("\"", key, "\" holds ", n.dump(), ", not a number"));
      out.push_back(n.as_int());
    }
    if (out.size() != count)
      refuse("count", cat("\"", key, "\" has ", out.size(), " entries but the body has ", count,
                          " statements"));
    return out;
  }

  void check_order(std::vector<std::int64_t> order) const {
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] != static_cast<std::int64_t>(i))
        refuse("order", cat("\"", kOrder, "\" is no permutation of 0 to ", order.size() - 1));
    }
  }

  void check_dependences() const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      for (std::size_t j = i + 1; j < parts_.size(); ++j) {
        const StagedPart &a = parts_[i], &b = parts_[j];
        const BufferNode *own = nullptr, *other = nullptr;
        auto note = [&](const BufferNode* x) { (mine_.count(x) ? own : other) = x; };
        for (const BufferNode* x : a.writes) {
          if (b.reads.count(x) || b.writes.count(x)) note(x);
        }
        for (const BufferNode* x : a.reads) {
          if (b.writes.count(x)) note(x);
        }
        if ((own || other) && !before(a, b))
          refuse("dependence",
                 cat("statement ", j, " needs \"", (own ? own : other)->name, "\" of statement ", i,
                     " but runs before it (stage ", b.stage, " order ", b.order, " against stage ",
                     a.stage, " order ", a.order, ")"));
        const bool next_after = b.stage == a.stage || (b.stage == a.stage + 1 && b.order < a.order);
        if (other && !next_after)
          refuse("carried", cat("statements ", i, " and ", j, " hand \"", other->name,
                                "\" from iteration to iteration and must stay in one stage (",
                                a.stage, " and ", b.stage, " were asked)"));
      }
    }
  }

  void make_versions() {
    for (const AllocateNode* a : own_) {
      const StagedPart *first = nullptr, *last = nullptr;
      for (const StagedPart& p : parts_) {
        if (!p.reads.count(a->buffer.get()) && !p.writes.count(a->buffer.get())) continue;
        if (!first || before(p, *first)) first = &p;
        if (!last || before(*last, p)) last = &p;
      }
      if (!first) continue;
      // The next user of a version starts after the last one has ended.
      std::int64_t n = last->stage - first->stage + (first->order > last->order ? 0 : 1);
      if (n <= 1) continue;
      auto wide = edit(a->buffer);
      if (!wide->strides.empty())
        wide->strides.insert(wide->strides.begin(), wide->strides[0] * wide->shape[0]);
      wide->shape.insert(wide->shape.begin(), make_int(n));
      versions_[a->buffer.get()] = wide;
    }
  }

  /// All statements of step `at`; `t` is its number where that is constant, n the extent (-1: only
  /// known at run time). Edge steps leave out iterations that do not exist.
  Stmt step(const Expr& at, std::int64_t t, std::int64_t n, bool edge, bool tail) {
    std::vector<Stmt> out = waits(t, n, edge);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const StagedPart& p = parts_[i];
      std::vector<Stmt> run;
      std::size_t j = i;
      for (; j < parts_.size() && parts_[j].async == p.async &&
             (parts_[j].stage == p.stage || !p.async);
           ++j) {
        if (!p.async && wait_inside(parts_[j])) {
          if (Stmt w = instance_wait(parts_[j], at, t, n, edge)) run.push_back(w);
        }
        if (Stmt s = instance(parts_[j], at, t, n, tail)) run.push_back(s);
      }
      i = j - 1;
      if (run.empty()) continue;
      Stmt all = seq(std::move(run));
      out.push_back(p.async ? Stmt(make_ref<const AsyncNode>(machine_.copy_queue()->name,
                                                             tokens_.at(p.stage), all))
                            : all);
    }
    return seq(std::move(out));
  }

  bool consumes(const StagedPart& p, std::int64_t stage) const {
    for (const StagedPart& q : parts_) {
      if (!q.async || q.stage != stage) continue;
      for (const BufferNode* b : q.writes) {
        if (p.reads.count(b) || (p.writes.count(b) && !p.async)) return true;
      }
    }
    return false;
  }
  /// How many commits a step makes on the stage's token: runs of neighbouring statements.
  std::int64_t commits(std::int64_t stage) const {
    std::int64_t count = 0;
    bool open = false;
    for (const StagedPart& p : parts_) {
      const bool in = p.async && p.stage == stage;
      if (in && !open) ++count;
      open = in;
    }
    return count;
  }

  /// Waits that a step starts with: everything its later-stage statements need.
  std::vector<Stmt> waits(std::int64_t t, std::int64_t n, bool edge) {
    std::vector<Stmt> out;
    for (const auto& [stage, token] : tokens_) {
      std::int64_t soonest = -1;
      for (const StagedPart& p : parts_) {
        if (p.stage <= stage || !consumes(p, stage)) continue;
        if (t >= 0 && n >= 0 && (t < p.stage || t - p.stage >= n)) continue;
        if (t >= 0 && n < 0 && t < p.stage) continue;
        soonest = soonest < 0 ? p.stage : std::min(soonest, p.stage);
      }
      if (soonest < 0) continue;
      std::int64_t left = soonest - stage - 1;
      if (edge && t >= 0 && n >= 0) left = std::min(t - 1 - stage, n - 1) - (t - soonest);
      else if (edge) left = 0;
      out.push_back(wait(token, std::max<std::int64_t>(left, 0) * commits(stage)));
    }
    return out;
  }
  /// A consumer in the producer's own stage waits right before it runs.
  bool wait_inside(const StagedPart& p) const {
    for (const auto& [stage, token] : tokens_) {
      if (p.stage == stage && !p.async && consumes(p, stage)) return true;
    }
    return false;
  }
  Stmt instance_wait(const StagedPart& p, const Expr&, std::int64_t, std::int64_t, bool) {
    return wait(tokens_.at(p.stage), 0);
  }
  static Stmt wait(const Var& token, std::int64_t left) {
    return make_ref<const WaitNode>(token, make_int(left), "");
  }

  Stmt instance(const StagedPart& p, const Expr& at, std::int64_t t, std::int64_t n, bool tail) {
    Expr guard;
    if (t >= 0) {
      if (t < p.stage) return nullptr;
      if (n >= 0 && t - p.stage >= n) return nullptr;
      if (n < 0) guard = lt(make_int(t - p.stage), loop_->extent);
    } else if (tail && p.stage < last_stage_) {
      guard = lt(at - p.stage, loop_->extent);
    }
    Expr iteration = arith::simplify(at - p.stage);
    Expr value = arith::simplify(iteration + loop_->min);
    Stmt s = Version(versions_, iteration).rewrite(p.stmt);
    s = deep_copy(substitute(s, {{loop_->var.get(), cast(loop_->var->dtype, value)}}));
    return guard ? if_then(guard, s) : s;
  }

  const ForNode* loop_;
  const TargetInfo& machine_;
  std::vector<const AllocateNode*> own_;
  Buffers mine_;
  std::vector<StagedPart> parts_;
  std::int64_t last_stage_ = 0;
  std::map<std::int64_t, Var> tokens_;
  std::unordered_map<const BufferNode*, Buffer> versions_;
};

class PipelineLoops final : public Rewriter {
 public:
  explicit PipelineLoops(const TargetInfo& machine) : machine_(machine) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_for(s);
    const auto* loop = as<ForNode>(inner);
    if (!loop || !find_annotation(loop->annotations, kStage)) {
      if (loop && (find_annotation(loop->annotations, kOrder) ||
                   find_annotation(loop->annotations, kAsync))) {
        throw Error(
            ErrorKind::lower, "lower.pipeline.count",
            cat("loop \"", loop->var->name, "\" has pipeline annotations but no \"", kStage, "\""));
      }
      return inner;
    }
    if (loop->for_kind != ForKind::serial && loop->for_kind != ForKind::unrolled) {
      throw Error(ErrorKind::lower, "lower.pipeline.kind",
                  cat("loop \"", loop->var->name,
                      "\" cannot be pipelined: its iterations do not run one after the other"))
          .help("annotate a serial loop");
    }
    return StagedLoop(loop, machine_).run();
  }

 private:
  const TargetInfo& machine_;
};

}  // namespace

PrimFunc pipeline_loops(const PrimFunc& f, const TargetInfo& machine) {
  Stmt body = PipelineLoops(machine).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
