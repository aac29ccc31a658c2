// SPDX-License-Identifier: Apache-2.0
// Blocks that branch to themselves: registers, clock and queues stay in registers of the host from
// one round to the next, and are stored when the loop is left.

#include <cstddef>

#include "weft/targets/qpu/engine/emit.h"

namespace weft::qpu::hw {

bool Emitter::loops(std::size_t index) const {
  const FlowBlock& b = flow_.blocks[index];
  if (b.end != BlockEnd::branches || b.target != static_cast<std::int32_t>(index) || b.in_slots)
    return false;
  Live live;
  for (std::uint32_t at = b.last + 1; at-- > b.first;) {
    const Instr& i = program_.instrs[at];
    if (needs_literal(i) || i.kind == kSem || (i.kind == kAlu && i.sig == kSigBreak)) return false;
    Live reads, writes;
    uses_of(i, &reads, &writes);
    live = (live & ~writes) | reads;
  }
  return !(live[kFlagZ] || live[kFlagN] || live[kFlagC]);
}

void Emitter::open_loop(std::size_t index) {
  const FlowBlock& b = flow_.blocks[index];
  loop_id_ = t_.fresh();
  carried_.clear();
  Live live, written;
  bool asks[2] = {};
  for (std::uint32_t at = b.last + 1; at-- > b.first;) {
    const Instr& i = program_.instrs[at];
    Live reads, writes;
    uses_of(i, &reads, &writes);
    live = (live & ~writes) | reads;
    for (std::uint8_t to :
         {plain_slot(add_file_b(i), i.waddr_add), plain_slot(mul_file_b(i), i.waddr_mul)})
      if (to < kTracked) written.set(to);
    written |= writes;
    for (unsigned unit : {0u, 1u}) {
      unsigned asked = unit ? kWTmu1S : kWTmu0S, signal = unit ? kSigLoadTmu1 : kSigLoadTmu0;
      if (i.kind != kBranch &&
          (i.waddr_add == asked || i.waddr_mul == asked || (i.kind == kAlu && i.sig == signal)))
        asks[unit] = true;
    }
  }
  const bool values = role_ != Role::clocks, clocks = role_ != Role::values;
  if (values)
    for (unsigned s = 0; s < kTracked; ++s) {
      if (!live[s]) continue;
      read(s);
      if (written[s]) carried_.push_back(s);
    }
  if (clocks) kept(kTime);
  for (unsigned unit : {0u, 1u}) {
    if (!asks[unit]) continue;
    const int waiting = waiting_[unit];
    if (values) kept(unit ? kHead1 : kHead0);
    if (values || waiting < 0) kept(unit ? kCount1 : kCount0);
    for (int k = 0; !values && k < waiting; ++k)
      kept(static_cast<Kept>((unit ? kReady1 : kReady0) + k));
  }
  if (role_ != Role::alone) entry(), record_bytes_ = 0;
  const std::string from = label_;
  label_ = cat("L", loop_id_);
  t_.line("br label %", label_);
  t_.label(label_);
  auto carry = [&](std::string_view type, const std::string& first, const std::string& name) {
    return t_.def("phi ", type, " [ ", first, ", %", from, " ], [ %", name, ", %c", loop_id_, " ]");
  };
  for (unsigned s : carried_) {
    const Value entry = at(now_[s]);
    std::string name = cat("n", loop_id_, ".", s);
    Value v;
    v.loaded = true;
    if (entry.affine()) {
      v.stride = entry.stride;
      v.scalar = carry("i32", entry.scalar, name);
    } else {
      v.as_int.lo = carry(kInt8, entry.as_int.lo, name + "l");
      v.as_int.hi = carry(kInt8, entry.as_int.hi, name + "h");
    }
    now_[s] = add(std::move(v));
  }
  for (std::size_t w = 0; w < kKeptWords; ++w) {
    carries_[w] = !kept_[w].value.empty();
    if (carries_[w]) kept_[w] = {carry("i64", kept_[w].value, cat("n", loop_id_, ".k", w)), true};
  }
  for (unsigned unit : {0u, 1u})
    if (!values && asks[unit] && waiting_[unit] >= 0)
      keep(unit ? kCount1 : kCount0, std::to_string(waiting_[unit]));
  if (role_ != Role::alone) record_ = carry("ptr", record_, cat("n", loop_id_, ".r"));
}

void Emitter::close_loop(std::size_t index) {
  const FlowBlock& b = flow_.blocks[index];
  // Values made on one way out are not there on the other.
  auto out = [&](auto goes_on) {
    std::vector<Value> values = values_;
    Flag flags[3] = {flags_[0], flags_[1], flags_[2]};
    Halves inverse[3] = {inverse_[0], inverse_[1], inverse_[2]};
    std::vector<bool> dirty = dirty_;
    if (role_ != Role::clocks) flush(b.live_out);
    save();
    if (role_ != Role::alone)
      t_.line("store ptr ", record_, ", ptr ", address(offsetof(Qpu, record)));
    goes_on();
    values_ = std::move(values), dirty_ = std::move(dirty);
    for (int f = 0; f < 3; ++f) flags_[f] = flags[f], inverse_[f] = inverse[f];
  };
  const unsigned id = loop_id_;
  if (b.next >= 0) {
    t_.usually(taken_, cat("t", id), cat("x", id));
    t_.label("x", id);
    out([&] { t_.line("br label %b", b.next); });
    t_.label("t", id);
  }
  std::string stop;
  if (role_ != Role::values) stop = t_.def("icmp sge i64 ", kept(kTime), ", %limit");
  if (role_ != Role::alone) {
    std::string full = t_.def("icmp uge ptr ", record_, ", %full");
    stop = stop.empty() ? full : t_.def("or i1 ", stop, ", ", full);
  }
  t_.rarely(stop, cat("y", id), cat("c", id));
  t_.label("y", id);
  out([&] {
    t_.line("store i32 ", b.first, ", ptr ", address(offsetof(Qpu, pc)));
    t_.line("ret void");
  });
  label_ = cat("c", id);
  t_.label(label_);
  auto next = [&](std::string_view type, const std::string& value, const std::string& name) {
    t_.line("%", name, " = bitcast ", type, " ", value, " to ", type);
  };
  for (unsigned s : carried_) {
    std::string name = cat("n", id, ".", s);
    // As the loop was entered: by lane 0, or as a whole.
    if (flow_.blocks[index].shapes[s].known()) {
      next("i32", first_lane(now_[s]), name);
    } else {
      Halves h = ints(now_[s]);
      next(kInt8, h.lo, name + "l");
      next(kInt8, h.hi, name + "h");
    }
  }
  for (std::size_t w = 0; w < kKeptWords; ++w)
    if (carries_[w]) next("i64", kept(static_cast<Kept>(w)), cat("n", id, ".k", w));
  if (role_ != Role::alone) next("ptr", record_, cat("n", id, ".r"));
  t_.line("br label %L", id);
}

}  // namespace weft::qpu::hw
