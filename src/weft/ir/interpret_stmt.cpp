// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/execution.h"
#include "weft/ir/interpret_internal.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::ir::interp {

namespace {

constexpr std::int64_t kMaxStorageBytes = std::int64_t{1} << 36;

struct StoreCode : Code {
  const StoreNode* node = nullptr;
  Access access;
  ExpPtr value;
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    if (!access.vector) {
      Lane v = value->scalar(fr);
      std::int64_t o = access.offset(fr);
      DType t = access.buffer->dtype;
      write_element(fr.views[at(access.view)].data + o * t.bytes(), t, v);
      return;
    }
    Lanes v(value->type.lanes);
    value->v(fr, v);
    store_lanes(fr, access, v);
  }
};

template <typename T>
struct FastStore final : StoreCode {
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    T v;
    if constexpr (std::is_floating_point_v<T>) v = static_cast<T>(value->f(fr));
    else v = static_cast<T>(value->i(fr));
    std::int64_t o = access.offset(fr);
    std::memcpy(fr.views[at(access.view)].data + o * static_cast<std::int64_t>(sizeof(T)), &v,
                sizeof v);
  }
};

struct SeqCode final : Code {
  std::vector<CodePtr> list;
  void run(Frame& fr) const override {
    for (const CodePtr& c : list) c->run(fr);
  }
  void reads(Frame& fr, std::vector<Reach>& out) const override {
    for (const CodePtr& c : list) c->reads(fr, out);
  }
};

struct ForCode final : Code {
  const ForNode* node = nullptr;
  int slot = 0;
  ExpPtr min, extent;
  CodePtr body;
  void run(Frame& fr) const override {
    fr.current = node;
    std::int64_t lo = min->i(fr), n = extent->i(fr);
    for (std::int64_t k = 0; k < n; ++k) {
      fr.slots[at(slot)].i = lo + k;
      fr.machine->tick(node);
      body->run(fr);
    }
  }
};

struct IfCode final : Code {
  const StmtNode* node = nullptr;
  ExpPtr condition;
  CodePtr then_case, else_case;
  void run(Frame& fr) const override {
    fr.current = node;
    if (condition->i(fr)) then_case->run(fr);
    else if (else_case) else_case->run(fr);
  }
  void reads(Frame& fr, std::vector<Reach>& out) const override {
    if (condition->i(fr)) then_case->reads(fr, out);
    else if (else_case) else_case->reads(fr, out);
  }
};

struct WhileCode final : Code {
  const StmtNode* node = nullptr;
  ExpPtr condition;
  CodePtr body;
  void run(Frame& fr) const override {
    while (true) {
      fr.current = node;
      fr.machine->tick(node);
      if (!condition->i(fr)) return;
      body->run(fr);
    }
  }
};

struct LetCode final : Code {
  const StmtNode* node = nullptr;
  int slot = 0;
  ExpPtr value;
  CodePtr body;
  void run(Frame& fr) const override {
    fr.current = node;
    value->v(fr, &fr.slots[at(slot)]);
    body->run(fr);
  }
};

struct AssertCode final : Code {
  const AssertNode* node = nullptr;
  ExpPtr condition;
  void run(Frame& fr) const override {
    fr.current = node;
    if (!condition->i(fr))
      fault(fr, "assert",
            cat("assertion failed: ",
                node->message.empty() ? print(node->condition) : node->message));
  }
};

struct EvaluateCode final : Code {
  const StmtNode* node = nullptr;
  ExpPtr value;
  void run(Frame& fr) const override {
    fr.current = node;
    Lanes out(value->type.lanes);
    value->v(fr, out);
  }
};

struct Nothing final : Code {
  void run(Frame&) const override {}
};

/// In kernels with tokens the work is done at the wait for it, elsewhere where it starts.
struct AsyncCode final : Code {
  const StmtNode* node = nullptr;
  int token = 0;
  CodePtr body;
  void run(Frame& fr) const override {
    if (!fr.group || !fr.group->tokens) return body->run(fr);
    Started work{token, body.get(), fr.slots, fr.views, {}};
    body->reads(fr, work.reads);
    fr.started.push_back(std::move(work));
  }
};

struct WaitCode final : Code {
  const StmtNode* node = nullptr;
  int token = 0;
  ExpPtr outstanding;
  void run(Frame& fr) const override {
    fr.current = node;
    std::int64_t n = outstanding->i(fr);
    if (n < 0) fault(fr, "wait", cat("a wait for at most ", n, " outstanding signals"));
    fr.finish(token, static_cast<std::size_t>(n));
  }
};

struct SyncCode final : Code {
  const StmtNode* node = nullptr;
  bool bound = false;
  void run(Frame& fr) const override {
    fr.current = node;
    if (fr.group) {
      fr.meeting = kOwnBlock,
      fr.expected = static_cast<std::int64_t>(fr.group->frames.size() / fr.group->blocks);
      fr.group->arrive(fr, this), fr.met = fr.group->clock;
    } else if (bound)
      fault(
          fr, "sync",
          "a barrier under a bound loop has no meaning before the loops are joined into a launch");
  }
  /// Of one block of a cluster, in which others may stand elsewhere.
  std::int64_t meeting(const Frame& fr) const override {
    return fr.group && fr.group->blocks > 1 ? fr.meeting : -1;
  }
  static constexpr std::int64_t kOwnBlock = 1 << 20;  // beyond the numbers of other barriers
};

struct CallCode final : Code {
  const StmtNode* node = nullptr;
  PrimFunc callee;
  struct Arg {
    ExpPtr scalar;
    bool tensor = false;
    Access access;
    std::size_t rank = 0;
  };
  std::vector<Arg> args;
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    std::vector<Actual> actual(args.size());
    for (std::size_t k = 0; k < args.size(); ++k) {
      actual[k].tensor = args[k].tensor;
      if (!args[k].tensor) {
        actual[k].scalar = args[k].scalar->scalar(fr);
        continue;
      }
      actual[k].inner = true;
      actual[k].offset = args[k].access.offset(fr);
      actual[k].view = fr.views[at(args[k].access.view)];
      actual[k].rank = args[k].rank;
      actual[k].source = args[k].access.buffer;
    }
    if (++fr.machine->depth > 100)
      fault(fr, "depth", cat("functions call each other deeper than 100: \"", callee->name, "\""));
    fr.machine->call(callee, actual);
    --fr.machine->depth;
  }
};

// ---- storage

/// Which threads share an allocation.
enum class Sharing : std::uint8_t { thread, group, launch };

struct AllocCode final : Code {
  const BufferNode* buffer = nullptr;
  int view = 0;
  std::size_t site = 0;
  Sharing sharing = Sharing::thread;
  std::vector<ExpPtr> shape, strides;
  CodePtr body;
  void run(Frame& fr) const override {
    View& w = fr.views[at(view)];
    std::int64_t span = 1, step = 1;
    bool empty = false;
    for (std::size_t d = shape.size(); d-- > 0;) {
      std::int64_t n = shape[d]->i(fr);
      if (n < 0) fault(fr, "allocate", cat("dimension ", d, " of \"", buffer->name, "\" is ", n));
      std::int64_t s = strides.empty() ? step : strides[d]->i(fr);
      w.shape[d] = n, w.strides[d] = s;
      empty = empty || n == 0;
      std::int64_t reach;
      if (__builtin_mul_overflow(step, std::max<std::int64_t>(n, 1), &step) ||
          __builtin_mul_overflow(std::max<std::int64_t>(n - 1, 0), s, &reach) || reach < 0 ||
          span > kMaxStorageBytes - reach) {
        fault(fr, "memory", cat("\"", buffer->name, "\" is too large"));
      }
      span += reach;
    }
    std::int64_t bytes = empty ? 1 : span * buffer->dtype.total_bytes();
    if (bytes > kMaxStorageBytes)
      fault(fr, "memory", cat("\"", buffer->name, "\" needs ", bytes, " bytes"));
    auto* common = sharing == Sharing::group    ? fr.shared
                   : sharing == Sharing::launch ? fr.global
                                                : nullptr;
    std::vector<char>& bytes_of = common ? (*common)[site] : fr.storage[site];
    // Storage begins as NaN, -1 or true: what is read before it is written shows.
    if (!common || bytes_of.empty()) bytes_of.assign(static_cast<std::size_t>(bytes), '\xff');
    else if (bytes_of.size() != static_cast<std::size_t>(bytes))
      fault(fr, "allocate", cat("threads disagree on the size of \"", buffer->name, "\""));
    w.data = bytes_of.data();
    if (sharing == Sharing::group && fr.group && fr.group->blocks > 1) in_cluster(fr, w, bytes);
    body->run(fr);
  }

  /// Every block of a cluster has the buffer, whether or not it has come here: others reach it.
  void in_cluster(Frame& fr, const View& own, std::int64_t bytes) const {
    Group& g = *fr.group;
    const std::size_t size = g.frames.size() / g.blocks;
    for (std::size_t t = fr.thread % size; t < g.frames.size(); t += size) {
      std::vector<char>& storage = (*g.frames[t].shared)[site];
      if (storage.empty()) storage.assign(static_cast<std::size_t>(bytes), '\xff');
      View& w = g.frames[t].views[at(view)];
      w = own, w.data = storage.data();
    }
  }
};

// ---- blocks

struct MatchCode {
  const MatchBuffer* match = nullptr;
  int source_view = 0, view = 0, offset_slot = -1;
  std::vector<ExpPtr> mins, extents;
  std::vector<int> shape_slots, stride_slots;  // -1: an expression to check
  std::vector<ExpPtr> shape, strides;

  void bind(Frame& fr) const {
    const View& s = fr.views[at(source_view)];
    const std::string& name = match->buffer->name;
    std::int64_t offset = 0;
    std::int64_t size[kMaxRank];
    std::size_t rank = mins.size(), want = match->buffer->ndim();
    for (std::size_t d = 0; d < rank; ++d) {
      std::int64_t lo = mins[d]->i(fr);
      size[d] = extents[d]->i(fr);
      if (lo < 0 || size[d] < 0 || lo + size[d] > s.shape[d]) {
        fault(fr, "bounds",
              cat("\"", name, "\" matches [", lo, ", ", lo + size[d], ") of dimension ", d,
                  " of \"", match->source.buffer->name, "\", which has ", s.shape[d]));
      }
      offset += lo * s.strides[d];
    }
    if (want > rank)
      fault(fr, "match", cat("\"", name, "\" has ", want, " dimensions, its source ", rank));
    std::size_t skip = rank - want;
    for (std::size_t d = 0; d < skip; ++d) {
      if (size[d] != 1)
        fault(fr, "match",
              cat("\"", name, "\" has ", want, " dimensions, but the ", rank - want,
                  " dimensions it leaves out are not all 1"));
    }
    View out;
    out.data = s.data + offset * match->buffer->dtype.total_bytes();
    for (std::size_t d = 0; d < want; ++d) {
      out.shape[d] = size[d + skip];
      out.strides[d] = s.strides[d + skip];
      if (shape_slots[d] >= 0) fr.slots[at(shape_slots[d])].i = out.shape[d];
      if (!stride_slots.empty() && stride_slots[d] >= 0)
        fr.slots[at(stride_slots[d])].i = out.strides[d];
    }
    if (offset_slot >= 0) fr.slots[at(offset_slot)].i = offset;
    for (std::size_t d = 0; d < want; ++d) {
      if (shape[d] && shape[d]->i(fr) != out.shape[d])
        fault(fr, "match",
              cat("dimension ", d, " of \"", name, "\" is ", shape[d]->i(fr), ", its source has ",
                  out.shape[d]));
      if (!strides.empty() && strides[d] && out.shape[d] > 1 &&
          strides[d]->i(fr) != out.strides[d]) {
        fault(fr, "match",
              cat("stride ", d, " of \"", name, "\" is ", strides[d]->i(fr), ", its source has ",
                  out.strides[d]));
      }
    }
    fr.views[at(view)] = out;
  }
};

struct BlockCode final : Code {
  struct Iter {
    int slot = 0;
    ExpPtr value, min, extent;
    const VarNode* var = nullptr;
  };  // value null: shares the loop's slot
  const BlockRealizeNode* node = nullptr;
  ExpPtr predicate;  // null: always
  std::vector<Iter> iters;
  std::vector<std::pair<int, ExpPtr>> first;  // reducing iterators and their minimum
  std::vector<MatchCode> matches;
  CodePtr init, body;
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    if (predicate && !predicate->i(fr)) return;
    // All bindings speak of the outside, so they are evaluated before any is set.
    std::int64_t values[32];
    std::size_t n = std::min<std::size_t>(iters.size(), 32);
    for (std::size_t k = 0; k < n; ++k)
      values[k] = iters[k].value ? iters[k].value->i(fr) : fr.slots[at(iters[k].slot)].i;
    for (std::size_t k = 0; k < n; ++k) {
      const Iter& iter = iters[k];
      if (iter.min) {
        std::int64_t lo = iter.min->i(fr), extent = iter.extent->i(fr);
        if (values[k] < lo || values[k] >= lo + extent) {
          fault(fr, "domain",
                cat("the iterator \"", iter.var->name, "\" of block \"", node->block->name,
                    "\" is ", values[k], ", outside [", lo, ", ", lo + extent, ")"));
        }
      }
      if (iter.value) fr.slots[at(iter.slot)].i = values[k];
    }
    for (const MatchCode& m : matches) m.bind(fr);
    if (init) {
      bool at_first = true;
      for (const auto& [slot, lo] : first) at_first = at_first && fr.slots[at(slot)].i == lo->i(fr);
      if (at_first) init->run(fr);
    }
    body->run(fr);
  }
};

}  // namespace

void Frame::finish(int token, std::size_t left) {
  auto mine = [&](const Started& s) { return s.token == token; };
  auto count = static_cast<std::size_t>(std::count_if(started.begin(), started.end(), mine));
  for (; count > left; --count) {
    auto first = std::find_if(started.begin(), started.end(), mine);
    Started work = std::move(*first);
    started.erase(first);
    std::swap(slots, work.slots), std::swap(views, work.views);
    work.body->run(*this);
    std::swap(slots, work.slots), std::swap(views, work.views);
  }
}

// ---- compiling

int Compiler::slot(const VarNode* v) {
  auto [it, fresh] = slot_of_.emplace(v, static_cast<int>(slots_));
  if (fresh) slots_ += v->dtype.lanes;
  return it->second;
}

int Compiler::view(const BufferNode* b) {
  if (b->ndim() > kMaxRank)
    throw Error(
        ErrorKind::verify, "interpret.rank",
        cat("\"", b->name, "\" has ", b->ndim(), " dimensions; at most ", kMaxRank, " are run"));
  auto [it, fresh] = view_of_.emplace(b, static_cast<int>(views_));
  if (fresh) ++views_;
  return it->second;
}

CodePtr Compiler::store(const StoreNode* s) {
  if (machine_.order_only && s->buffer->scope == "global") return std::make_unique<Nothing>();
  DType t = s->buffer->dtype;
  Access a = access(s->buffer, s->indices);
  std::unique_ptr<StoreCode> out;
  if (!a.vector && t == dtypes::float32) out = std::make_unique<FastStore<float>>();
  else if (!a.vector && t == dtypes::float64) out = std::make_unique<FastStore<double>>();
  else if (!a.vector && (t == dtypes::int32 || t == dtypes::uint32))
    out = std::make_unique<FastStore<std::int32_t>>();
  else if (!a.vector && (t == dtypes::int64 || t == dtypes::uint64))
    out = std::make_unique<FastStore<std::int64_t>>();
  else out = std::make_unique<StoreCode>();
  out->node = s;
  out->access = std::move(a);
  out->value = expr(s->value);
  return out;
}

CodePtr Compiler::stmt(const Stmt& s) {
  return point_loop(s, [&] { return any_stmt(s); });
}

CodePtr Compiler::any_stmt(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::store: return checked_store(as<StoreNode>(s));
    case StmtKind::seq: {
      auto out = std::make_unique<SeqCode>();
      for (const Stmt& child : as<SeqNode>(s)->stmts) out->list.push_back(stmt(child));
      return out;
    }
    case StmtKind::for_: {
      const auto* f = as<ForNode>(s);
      auto out = make<ForCode>(f);
      out->min = expr(f->min), out->extent = expr(f->extent);
      out->slot = slot(f->var.get());
      ranges_[f->var.get()] = {f->min, f->extent};
      bool outer = std::exchange(in_bound_, in_bound_ || f->for_kind == ForKind::bound);
      if (f->for_kind == ForKind::bound) bound_loops_.push_back(f);
      out->body = stmt(f->body);
      if (f->for_kind == ForKind::bound) bound_loops_.pop_back();
      in_bound_ = outer;
      return out;
    }
    case StmtKind::if_: {
      const auto* t = as<IfNode>(s);
      auto out = make<IfCode>(t);
      out->condition = expr(t->condition);
      out->then_case = stmt(t->then_case);
      if (t->else_case) out->else_case = stmt(t->else_case);
      return out;
    }
    case StmtKind::while_: {
      auto out = make<WhileCode>(s.get());
      out->condition = expr(as<WhileNode>(s)->condition);
      out->body = stmt(as<WhileNode>(s)->body);
      return out;
    }
    case StmtKind::let: {
      const auto* l = as<LetStmtNode>(s);
      auto out = make<LetCode>(l);
      out->value = expr(l->value);
      out->slot = slot(l->var.get());
      out->body = stmt(l->body);
      return out;
    }
    case StmtKind::assert_: {
      auto out = make<AssertCode>(s.get());
      out->condition = expr(as<AssertNode>(s)->condition);
      return out;
    }
    case StmtKind::evaluate: return evaluate(as<EvaluateNode>(s));
    case StmtKind::allocate:
      return allocation(as<AllocateNode>(s)->buffer, stmt(as<AllocateNode>(s)->body));
    case StmtKind::block_realize: return block(as<BlockRealizeNode>(s));
    case StmtKind::launch: return launch(as<LaunchNode>(s));
    case StmtKind::async: {
      auto out = make<AsyncCode>(s.get());
      out->token = slot(as<AsyncNode>(s)->token.get());
      out->body = stmt(as<AsyncNode>(s)->body);
      return out;
    }
    case StmtKind::wait: {
      auto out = make<WaitCode>(s.get());
      out->outstanding = expr(as<WaitNode>(s)->outstanding);
      out->token = slot(as<WaitNode>(s)->token.get());
      return out;
    }
    case StmtKind::collective: return collective(as<CollectiveNode>(s));
  }
  return nullptr;
}

CodePtr Compiler::evaluate(const EvaluateNode* s) {
  const auto* c = as<CallNode>(s->value);
  const Intrinsic* row = c ? find_intrinsic(c->op) : nullptr;
  if (c && c->op == "sync") {
    auto out = make<SyncCode>(s);
    out->bound = in_bound_ && !in_launch_;
    return out;
  }
  if (CodePtr part = c ? role(s, c) : nullptr) return part;
  if (c && (c->op == "prefetch" || c->op == "address_of")) return std::make_unique<Nothing>();
  if (c && (!row || row->effect == IntrinsicEffect::effect)) {
    // A function of the module: by its own name, or as the meaning of a foreign function or an
    // instruction.
    std::size_t first = row ? 1 : 0;
    const auto* named = row && !c->args.empty() ? as<StringImmNode>(c->args[0]) : nullptr;
    std::string name = row ? (named ? named->value : "") : c->op;
    PrimFunc f = machine_.find(name);
    if (!f)
      throw Error(ErrorKind::lower, "interpret.unsupported",
                  cat("the interpreter knows no function \"", name, "\""))
          .at("", print(s->value));
    if (f->params.size() != c->args.size() - first) {
      throw Error(ErrorKind::verify, "interpret.arity",
                  cat("\"", name, "\" takes ", f->params.size(), " arguments, not ",
                      c->args.size() - first));
    }
    auto out = make<CallCode>(s);
    out->callee = f;
    for (std::size_t k = first; k < c->args.size(); ++k) {
      CallCode::Arg a;
      const auto* address = as<CallNode>(c->args[k]);
      const auto* l =
          address && address->op == "address_of" ? as<LoadNode>(address->args[0]) : nullptr;
      a.tensor = l != nullptr;
      if (bool(f->params[k - first].buffer) != a.tensor) {
        throw Error(ErrorKind::verify, "interpret.arity",
                    cat("argument ", k - first, " of \"", name, "\" must be ",
                        a.tensor ? "a number" : "the address of a buffer's element"));
      }
      if (l) {
        a.access = access(l->buffer, l->indices);
        a.rank = l->indices.size();
      } else {
        a.scalar = expr(c->args[k]);
      }
      out->args.push_back(std::move(a));
    }
    return out;
  }
  auto out = make<EvaluateCode>(s);
  out->value = expr(s->value);
  return out;
}

CodePtr Compiler::allocation(const Buffer& b, CodePtr body) {
  auto out = std::make_unique<AllocCode>();
  out->buffer = b.get();
  out->view = view(b.get());
  out->site = sites_++;
  if (in_launch_)
    out->sharing = b->scope.starts_with("shared") ? Sharing::group
                   : b->scope == "global"         ? Sharing::launch
                                                  : Sharing::thread;
  for (const Expr& e : b->shape) out->shape.push_back(expr(e));
  for (const Expr& e : b->strides) out->strides.push_back(expr(e));
  out->body = std::move(body);
  return out;
}

CodePtr Compiler::block(const BlockRealizeNode* r) {
  const BlockNode& b = *r->block;
  auto out = make<BlockCode>(r);
  Expr runs = r->predicate;
  if (!b.execution.axis.empty()) {
    auto loop = std::find_if(bound_loops_.rbegin(), bound_loops_.rend(),
                             [&](const ForNode* l) { return l->axis == b.execution.axis; });
    if (loop == bound_loops_.rend())
      throw Error(ErrorKind::lower, "interpret.unsupported",
                  cat("block \"", b.name, "\" asks for a part of axis ", b.execution.axis,
                      ", to which no loop around it is bound"));
    runs = logical_and(executes_at(b.execution, *loop), runs);
  }
  if (!is_const_int_value(runs, 1)) out->predicate = expr(runs);
  if (b.iters.size() > 32)
    throw Error(
        ErrorKind::verify, "interpret.rank",
        cat("block \"", b.name, "\" has ", b.iters.size(), " iterators; at most 32 are run"));
  std::vector<BlockCode::Iter> iters;
  for (std::size_t k = 0; k < b.iters.size(); ++k) {
    const IterVar& v = b.iters[k];
    BlockCode::Iter iter;
    iter.var = v.var.get();
    const auto* loop = as<VarNode>(r->iter_values[k]);
    auto range = loop ? ranges_.find(loop) : ranges_.end();
    bool inside = range != ranges_.end() && same_expr(range->second.min, v.dom.min) &&
                  same_expr(range->second.extent, v.dom.extent);
    if (!inside) iter.min = expr(v.dom.min), iter.extent = expr(v.dom.extent);
    if (loop) {
      iter.slot = slot(loop);  // the iterator is the loop variable by another name
    } else {
      iter.value = expr(r->iter_values[k]);
      iter.slot = fresh_slot();
    }
    iters.push_back(std::move(iter));
  }
  for (std::size_t k = 0; k < b.iters.size(); ++k) {
    slot_of_[b.iters[k].var.get()] = iters[k].slot;
    ranges_[b.iters[k].var.get()] = b.iters[k].dom;
    if (b.iters[k].kind == IterKind::reduce)
      out->first.emplace_back(iters[k].slot, expr(b.iters[k].dom.min));
  }
  out->iters = std::move(iters);
  for (const MatchBuffer& m : b.match_buffers) {
    MatchCode code;
    code.match = &m;
    code.source_view = view(m.source.buffer.get());
    for (const Range& x : m.source.region)
      code.mins.push_back(expr(x.min)), code.extents.push_back(expr(x.extent));
    code.view = view(m.buffer.get());
    auto bind = [&](const Expr& e, std::vector<int>& slots, std::vector<ExpPtr>& checks) {
      const auto* v = as<VarNode>(e);
      bool fresh = v && !slot_of_.count(v);
      slots.push_back(fresh ? slot(v) : -1);
      checks.push_back(fresh ? nullptr : expr(e));
    };
    for (const Expr& e : m.buffer->shape) bind(e, code.shape_slots, code.shape);
    for (const Expr& e : m.buffer->strides) bind(e, code.stride_slots, code.strides);
    if (const auto* v = as<VarNode>(m.buffer->elem_offset); v && !slot_of_.count(v))
      code.offset_slot = slot(v);
    out->matches.push_back(std::move(code));
  }
  if (b.init) out->init = stmt(b.init);
  out->body = stmt(b.body);
  if (b.alloc_buffers.empty()) return out;
  // Allocations stand between the bindings, which their extents may use, and everything that uses
  // them.
  auto inner = make<BlockCode>(r);
  inner->first = std::move(out->first);
  inner->matches = std::move(out->matches);
  inner->init = std::move(out->init);
  inner->body = std::move(out->body);
  CodePtr code = std::move(inner);
  for (std::size_t k = b.alloc_buffers.size(); k-- > 0;)
    code = allocation(b.alloc_buffers[k], std::move(code));
  out->body = std::move(code);
  return out;
}

}  // namespace weft::ir::interp
