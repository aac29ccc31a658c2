// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/chain.h"

#include <algorithm>

#include "weft/targets/vta/value_of.h"

namespace weft::vta {

namespace {

class Compiler {
 public:
  explicit Compiler(const Task& s) : s_(s) {}

  ChainProgram run() {
    bool elementwise = s_.kind == Task::Kind::elementwise;
    for (std::size_t i = 0; i < s_.chain.size(); ++i) {
      const Segment& segment = s_.chain[i];
      bool last = i + 1 == s_.chain.size();
      int bytes = segment.store ? segment.store->dtype.bytes() : 4;
      ValuePtr v = segment.value;
      if (last && segment.store) v = without_narrowing(v, bytes * 8);
      int uses = uses_of_self(v);
      int into = self_;
      if (uses > 1 || (uses == 0 && !elementwise)) into = take();
      place(v, into);
      if (into != self_) release(self_);
      self_ = into;
      elementwise = false;
      if (!segment.store) continue;
      int from = self_;
      if (bytes > 1 && !last) {
        from = take();
        push({ChainStep::Kind::copy, AluOp::add, from, 0, false, self_});
      }
      for (int byte = 0; byte < bytes; ++byte) {
        if (byte) push({ChainStep::Kind::imm, AluOp::shr, from, 8});
        ChainStep step{ChainStep::Kind::store, AluOp::add, from};
        step.segment = i, step.byte = byte;
        push(step);
      }
      if (from != self_) release(from);
    }
    return std::move(out_);
  }

 private:
  void push(ChainStep step) { out_.steps.push_back(step); }

  int take() {
    if (free_.empty()) return out_.buffers++;
    int b = free_.back();
    free_.pop_back();
    return b;
  }
  void release(int b) { free_.push_back(b); }

  static bool immediate(const Value& v) {
    return v.kind == Value::Kind::constant && v.number >= -32768 && v.number <= 32767;
  }
  bool leaf(const Value& v, int into) const {
    return v.kind == Value::Kind::operand || (v.kind == Value::Kind::self && into != self_);
  }
  void combine(AluOp op, int into, const Value& b) {
    bool operand = b.kind == Value::Kind::operand;
    push({ChainStep::Kind::acc, op, into, 0, operand,
          operand ? static_cast<int>(b.operand) : self_});
  }

  /// Leaves the value in buffer `into`. When that is the chain's own, the value uses self at most
  /// once.
  void place(const ValuePtr& v, int into) {
    switch (v->kind) {
      case Value::Kind::constant: return push({ChainStep::Kind::set, AluOp::add, into, v->number});
      case Value::Kind::self:
        if (into != self_) push({ChainStep::Kind::copy, AluOp::add, into, 0, false, self_});
        return;
      case Value::Kind::operand:
        return push(
            {ChainStep::Kind::copy, AluOp::add, into, 0, true, static_cast<int>(v->operand)});
      case Value::Kind::op: break;
    }
    ValuePtr a = v->a, b = v->b;
    bool commutes = v->op != AluOp::shr;
    if (immediate(*b)) {
      place(a, into);
      return push({ChainStep::Kind::imm, v->op, into, b->number});
    }
    bool self_in_b = into == self_ && uses_of_self(b) > 0;
    if (commutes && (self_in_b || (leaf(*a, into) && !leaf(*b, into)))) {
      std::swap(a, b);
      self_in_b = false;
    }
    if (self_in_b) {  // the amount of a shift: aside, then back
      int t = take();
      place(v, t);
      push({ChainStep::Kind::copy, AluOp::add, into, 0, false, t});
      return release(t);
    }
    if (leaf(*b, into)) {
      place(a, into);
      return combine(v->op, into, *b);
    }
    place(a, into);
    int t = take();
    place(b, t);
    push({ChainStep::Kind::acc, v->op, into, 0, false, t});
    release(t);
  }

  const Task& s_;
  ChainProgram out_;
  int self_ = 0;
  std::vector<int> free_;
};

}  // namespace

std::int64_t ChainProgram::cycles(std::int64_t imm, std::int64_t acc) const {
  std::int64_t out = 0;
  for (const ChainStep& s : steps) {
    switch (s.kind) {
      case ChainStep::Kind::set: out += 1 + imm; break;
      case ChainStep::Kind::copy: out += 1 + acc; break;
      case ChainStep::Kind::imm: out += imm; break;
      case ChainStep::Kind::acc: out += acc; break;
      case ChainStep::Kind::store: break;
    }
  }
  return out;
}

ChainProgram compile_chain(const Task& s) { return Compiler(s).run(); }

}  // namespace weft::vta
