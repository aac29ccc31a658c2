// SPDX-License-Identifier: Apache-2.0
// Sums over a loop of which one factor is the same in all lanes (products of matrices): a word that
// all lanes want costs the TMU as much as a vector. So sixteen steps' words come as one vector, and
// each lane of it is broadcast from a register. Vectors for the next steps arrive meanwhile. Fewer
// than sixteen steps, alone or at the end, are written out.

#include <algorithm>
#include <numeric>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"
#include "weft/targets/qpu/tensor/lowerer.h"

namespace weft::qpu::tensor {

using namespace ir;
using ast::Compare;
using ast::Op;
using stages::has_loads;
using stages::linear_in;

namespace {
constexpr std::int64_t kRound = 16;  // steps: the words of a vector
constexpr std::int64_t kShort = 2;   // steps that are worth it
constexpr std::size_t kRequests = 4;
constexpr std::size_t kPerStep = 2;  // vectors of one step: more would need too many registers
constexpr std::size_t kSums = 8;     // and the vectors of sixteen steps that they want

/// What a load is replaced by: `lane` of `stream`'s vector, or the vector itself (-1). A vector of
/// sixteen steps takes the step's number as the lane.
struct Source {
  bool carried = false;
  std::size_t stream = 0;
  std::int64_t lane = -1;
};

struct Vectors {
  const LoadNode* node = nullptr;  // the first element
  std::int64_t coeff = 0;          // elements a step
  std::int64_t last = -1;          // lanes above it read what this one reads; -1: as the index says
  std::size_t last_use = 0;        // carried: the last sum that wants it
  std::uint32_t pointer = 0, value = 0;
  Value step = nullptr, last_step = nullptr;
};
}  // namespace

/// The loop as sums that do not depend on each other; nothing when it is another one.
struct Lowerer::Round {
  std::vector<const StoreNode*> sums;
  std::vector<Vectors> moving, carried;
  std::vector<std::pair<const LoadNode*, Source>> sources;
  std::vector<std::uint32_t> vectors;  // of two groups of steps
  std::size_t held = 0;                // vectors of one group
  std::size_t asked = 0;               // vectors of steps, since the round began

  bool knows(const LoadNode* l) const {
    return std::any_of(sources.begin(), sources.end(), [&](const auto& s) { return s.first == l; });
  }
};

namespace {
bool own_sums(const std::vector<const StoreNode*>& sums) {
  std::unordered_set<const BufferNode*> stored;
  for (const StoreNode* s : sums)
    if (!stored.insert(s->buffer.get()).second) return false;
  for (const StoreNode* s : sums) {
    bool good = true;
    for_each_expr(s->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (l && l->buffer->scope == "local" && l->buffer != s->buffer)
        good = good && !stored.count(l->buffer.get());
    });
    if (!good) return false;
  }
  return true;
}

/// Whether `e` names `v` outside of the indices of loads. Nothing is put in place of the loads:
/// a product with a constant 0 would be folded, and the variable with it.
bool value_uses(const Expr& e, const VarNode* v) {
  class Search final : public Visitor {
   public:
    explicit Search(const VarNode* v) : v_(v) {}
    bool found = false;

   protected:
    void visit_var(const VarNode* x) override { found = found || x == v_; }
    void visit_load(const LoadNode*) override {}

   private:
    const VarNode* v_;
  } search(v);
  search.visit(e);
  return search.found;
}
}  // namespace

bool Lowerer::read_round(const ForNode* s, Round& round) const {
  std::vector<Stmt> body;
  if (const auto* list = as<SeqNode>(s->body)) body = list->stmts;
  else body = {s->body};
  if (body.size() > kSums) return false;
  const VarNode* v = s->var.get();
  std::vector<const LoadNode*> equal;  // one word for all lanes, not side by side along the loop
  bool good = true;
  for (const Stmt& t : body) {
    const auto* st = as<StoreNode>(t);
    if (!st || st->buffer->scope != "local" || uses_var(st->indices[0], v) ||
        has_loads(st->indices[0]) || value_uses(st->value, v))
      return false;
    round.sums.push_back(st);
    for_each_expr(st->value, [&](const Expr& e) {
      const auto* c = as<CallNode>(e);
      good = good && e->kind != ExprKind::let && !(c && c->op == "if_then_else");
      const auto* l = as<LoadNode>(e);
      if (!l || l->buffer->scope == "local" || round.knows(l)) return;
      good = good && l->indices.size() == 1 && !has_loads(l->indices[0]) &&
             l->buffer->dtype.bits == 32 && !stored_.count(l->buffer.get());
      auto linear = good ? linear_in(l->indices[0], v) : std::nullopt;
      good = linear && linear->coeff.is_constant() && linear->coeff.constant != 0;
      if (!good) return;
      const bool varies = varying(l->indices[0]);
      const std::int64_t coeff = linear->coeff.constant;
      if (!varies && coeff != 1) {
        if (std::find(equal.begin(), equal.end(), l) == equal.end()) equal.push_back(l);
        return;
      }
      std::vector<Vectors>& list = varies ? round.moving : round.carried;
      std::size_t at = 0;
      while (at < list.size() && !(list[at].node->buffer == l->buffer &&
                                   same_expr(list[at].node->indices[0], l->indices[0])))
        ++at;
      if (at == list.size()) list.push_back({l, coeff});
      list[at].last_use = round.sums.size() - 1;
      round.sources.push_back({l, {!varies, at, -1}});
    });
    if (!good) return false;
  }
  // Words that lie side by side in one step, one for each sum: one vector.
  for (const LoadNode* l : equal) {
    std::int64_t distance = 0;
    std::size_t at = 0;
    for (; at < round.moving.size(); ++at) {
      Vectors& m = round.moving[at];
      if (m.last < 0 || !(m.node->buffer == l->buffer)) continue;
      if (is_const_int(analyzer_.simplify(l->indices[0] - m.node->indices[0]), &distance) &&
          distance >= 0 && distance < kRound)
        break;
    }
    if (at == round.moving.size()) {
      distance = 0;
      round.moving.push_back({l, linear_in(l->indices[0], v)->coeff.constant, 0});
    }
    round.moving[at].last = std::max(round.moving[at].last, distance);
    round.sources.push_back({l, {false, at, distance}});
  }
  // In the order in which they are done with, so that the next ones are asked for in that order.
  std::vector<std::size_t> order(round.carried.size()), place(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return round.carried[a].last_use < round.carried[b].last_use;
  });
  std::vector<Vectors> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.push_back(round.carried[order[i]]);
  }
  round.carried = std::move(sorted);
  for (auto& [node, source] : round.sources)
    if (source.carried) source.stream = place[source.stream];
  const bool together =
      !round.carried.empty() || std::any_of(round.moving.begin(), round.moving.end(),
                                            [](const Vectors& m) { return m.last > 0; });
  return together && !round.moving.empty() && round.moving.size() <= kPerStep &&
         round.carried.size() <= kSums && own_sums(round.sums);
}

bool Lowerer::rounds(const ForNode* s) {
  std::int64_t n = 0;
  const bool known = is_const_int(s->extent, &n);
  if ((known && n < kShort) || has_loads(s->min) || has_loads(s->extent) || lanes_ != kRound)
    return false;
  // Such is the tail of a loop whose length is not known: it would get a tail itself, without end.
  if (!known && analyzer_.prove(lt(s->extent, make_const(kRound, s->extent->dtype)))) return false;
  Round round;
  if (!read_round(s, round)) return false;

  Value begin = keep(eval(s->min));
  std::uint32_t left = fresh(known ? constant(n) : eval(s->extent));
  if (!known) open_if(compare(Compare::ge, var(left), constant(kRound)));
  vars_[s->var.get()] = begin;
  Value lane = b_.expr(Op::element);
  for (Vectors& m : round.moving) {
    Value at = address(m.node->buffer, m.node->indices[0]);
    if (m.last < 0) at = safe(at, m.node->indices[0], mask_);
    else at = op(Op::add, at, op(Op::shl, op(Op::min, lane, constant(m.last)), constant(2)));
    m.pointer = fresh(at);
    m.step = keep(constant(4 * m.coeff));
  }
  for (Vectors& c : round.carried) {
    Value at = address(c.node->buffer, c.node->indices[0]);
    c.pointer = fresh(op(Op::add, at, op(Op::shl, lane, constant(2))));
    c.value = b_.fresh();
  }
  const std::size_t ahead = round.moving.size() == 1 ? 4 : 2;  // steps whose vectors are held
  round.held = ahead * round.moving.size();
  for (std::size_t i = 0; i < 2 * round.held; ++i) round.vectors.push_back(b_.fresh());
  const bool whole = !known || n >= kRound;
  if (whole) {
    start_rounds(round);
    open_while(compare(Compare::ge, var(left), constant(kRound)));
    one_round(round, left);
    assign(left, op(Op::sub, var(left), constant(kRound)));
    b_.close();
    std::uint32_t drop = b_.fresh();
    for (std::size_t i = 0; i < kRequests; ++i) take(drop, false);
  }
  if (known) {
    if (n % kRound) short_round(round, n % kRound, whole);
    return true;
  }
  b_.close();

  DType type = s->extent->dtype;
  Expr rest = floormod(s->extent, make_const(kRound, type));
  Expr from = arith::simplify(s->min + cast(s->var->dtype, s->extent - rest));
  Var x = make_var(s->var->name, s->var->dtype);
  Stmt body = deep_copy(substitute(s->body, {{s->var.get(), Expr(x)}}));
  tails_.push_back(make_for(x, from, rest, body));
  statement(tails_.back());
  return true;
}

void Lowerer::ask(std::uint32_t pointer, bool second) {
  ast::Stmt& request = b_.append(ast::Stmt::Op::gather);
  request.address = var(pointer), request.all = second;
}

void Lowerer::take(std::uint32_t to, bool second) {
  ast::Stmt& result = b_.append(ast::Stmt::Op::receive);
  result.var = to, result.all = second;
}

/// Asks for the next vector of a step (TMU 0) and moves its pointer.
void Lowerer::ask_next(Round& round, bool stay) {
  const Vectors& m = round.moving[round.asked++ % round.moving.size()];
  ask(m.pointer, false);
  assign(m.pointer, op(Op::add, var(m.pointer), stay ? m.last_step : m.step));
}

/// The vectors of sixteen steps, those of the first steps, and the requests that are always ahead.
void Lowerer::start_rounds(Round& round) {
  const std::vector<Vectors>& carried = round.carried;
  std::size_t sent = 0;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    for (; sent < carried.size() && sent < i + kRequests; ++sent) ask(carried[sent].pointer, true);
    take(carried[i].value, true);
  }
  for (std::size_t i = 0; i < kRequests; ++i) ask_next(round, false);
  for (std::size_t i = 0; i < round.held; ++i) {
    take(round.vectors[i], false);
    ask_next(round, false);
  }
}

/// What the sums read in step `step` of sixteen, whose own vectors begin at number `first`.
void Lowerer::provide(const Round& round, std::size_t step, std::size_t first) {
  for (const auto& [node, source] : round.sources) {
    const Value v = source.carried ? var(round.carried[source.stream].value)
                                   : var(round.vectors[first + source.stream]);
    const std::size_t lane =
        source.carried ? step : static_cast<std::size_t>(std::max<std::int64_t>(source.lane, 0));
    const bool whole = !source.carried && round.moving[source.stream].last <= 0;
    loaded_[node] =
        whole ? v : b_.expr(Op::broadcast, v, nullptr, static_cast<std::uint32_t>(lane));
  }
}

/// Sixteen steps, a few at a time, sum after sum. The last round asks again for what exists instead
/// of moving on.
void Lowerer::one_round(Round& round, std::uint32_t left) {
  const std::size_t streams = round.moving.size(), count = round.sums.size(), held = round.held;
  const std::size_t ahead = held / streams, groups = kRound / ahead, all = kRound * streams;
  auto more = [&] { return compare(Compare::ge, var(left), constant(2 * kRound)); };
  Value hop = keep(b_.select(more(), constant(4 * kRound), constant(0)));
  for (Vectors& m : round.moving) m.last_step = keep(b_.select(more(), m.step, constant(0)));
  round.asked = kRequests + held;
  std::size_t requested = 0, received = 0;  // carried vectors of the next round
  for (std::size_t g = 0; g < groups; ++g) {
    std::size_t taken = 0;
    for (std::size_t r = 0; r < count; ++r) {
      for (; taken < (r + 1) * held / count; ++taken) {
        take(round.vectors[(g + 1) % 2 * held + taken], false);
        ask_next(round, round.asked + streams >= all);
      }
      for (std::size_t e = 0; e < ahead; ++e) {
        provide(round, g * ahead + e, g % 2 * held + e * streams);
        store(round.sums[r]);
      }
      while (g + 1 == groups && requested < round.carried.size() &&
             round.carried[requested].last_use <= r) {
        if (requested - received == kRequests) take(round.carried[received++].value, true);
        const Vectors& c = round.carried[requested++];
        assign(c.pointer, op(Op::add, var(c.pointer), hop));
        ask(c.pointer, true);
      }
    }
  }
  for (; received < round.carried.size(); ++received) take(round.carried[received].value, true);
}

/// What is left of the steps, all of them known. Behind whole rounds, pointers stand at the last
/// round's vectors and at the last step's.
void Lowerer::short_round(Round& round, std::int64_t steps, bool follows) {
  const std::size_t streams = round.moving.size(),
                    total = static_cast<std::size_t>(steps) * streams;
  if (follows)
    for (const Vectors& m : round.moving) assign(m.pointer, op(Op::add, var(m.pointer), m.step));
  std::size_t sent = 0;
  auto ask_one = [&] {
    if (sent == total) return;
    const Vectors& m = round.moving[sent % streams];
    ask(m.pointer, false);
    if (++sent + streams <= total) assign(m.pointer, op(Op::add, var(m.pointer), m.step));
  };
  while (sent < std::min(kRequests, total)) ask_one();
  const Value last = constant(steps - 1), lane = b_.expr(Op::element);
  const Value over = op(Op::max, op(Op::sub, lane, last), constant(0));  // lanes past the last step
  const Value hop =
      keep(op(Op::sub, constant(follows ? 4 * kRound : 0), op(Op::shl, over, constant(2))));
  std::size_t asked = 0;
  for (std::size_t i = 0; i < round.carried.size(); ++i) {
    for (; asked < round.carried.size() && asked < i + kRequests; ++asked) {
      const Vectors& c = round.carried[asked];
      assign(c.pointer, op(Op::add, var(c.pointer), hop));
      ask(c.pointer, true);
    }
    take(round.carried[i].value, true);
  }
  for (std::size_t e = 0; e < static_cast<std::size_t>(steps); ++e) {
    const std::size_t first = e % 2 * streams;
    for (std::size_t i = 0; i < streams; ++i) {
      take(round.vectors[first + i], false);
      ask_one();
    }
    for (const StoreNode* sum : round.sums) {
      provide(round, e, first);
      store(sum);
    }
  }
}

}  // namespace weft::qpu::tensor
