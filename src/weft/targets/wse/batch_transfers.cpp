// SPDX-License-Identifier: Apache-2.0
// The inner loop of operations that work ahead: channels and plain memory at their ends, many
// elements in one visit. It does what try_element does, element for element and cycle for cycle.
#include <algorithm>

#include "weft/sim/delays.h"
#include "weft/targets/wse/arith.h"
#include "weft/targets/wse/bulk_loops.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

namespace {

// The reading end of a channel during one visit; what it takes is made public at the end.
struct Reader {
  Channel* c = nullptr;
  std::uint32_t head = 0, tail = 0, first = 0;
  explicit Reader(Channel* channel) : c(channel) {
    if (c) {
      first = head = c->head.load(std::memory_order_relaxed);
      tail = c->tail.load(std::memory_order_acquire);
    }
  }
  Channel::Entry* front(Cycle now) {
    if (head == tail) return nullptr;
    Channel::Entry& e = c->at(head);
    if (!Channel::before(e.visit, now)) return nullptr;  // try_element says when to look again
    return e.control ? nullptr : &e;
  }
};

}  // namespace

// Elements done; 0 when this operation is not of the simple kind or cannot go on.
std::uint32_t Fabric::run_ahead(Worker& w, Pe& pe, Running& run, Cycle now, const Cycle& limit) {
  const BulkOp& op = *run.op;
  auto simple = [&](const Cursor& c) {
    return c.kind == Cursor::none || c.kind == Cursor::value || c.kind == Cursor::mem ||
           c.kind == Cursor::fabin;
  };
  if (!simple(run.a) || !simple(run.b) ||
      (run.dst.kind != Cursor::mem && run.dst.kind != Cursor::fabout))
    return 0;
  if ((run.a.flags | run.b.flags | run.dst.flags) & Dsd::kSimd32) return 0;
  if (run.dst.kind == Cursor::fabout &&
      (run.dst.flags & (Dsd::kControl | Dsd::kIndexOffset | Dsd::kControlTransform)))
    return 0;
  if (op.code == Bulk::addc16 || run.endless ||
      (run.a.kind == Cursor::value && op.dst.kind == Operand::pointer))
    return 0;
  const OutQueue* queue = run.dst.kind == Cursor::fabout ? &pe.out[run.dst.queue] : nullptr;
  if (queue && !queue->single) return 0;
  Channel* out = queue ? queue->only : nullptr;
  // Memory operands are checked once for all that is left; anything out of bounds takes the careful
  // way.
  for (const Cursor* c : {&run.a, &run.b, &run.dst}) {
    if (c->kind != Cursor::mem) continue;
    std::int64_t last = c->address + static_cast<std::int64_t>(run.left - 1) * c->stride;
    std::int64_t lo = std::min<std::int64_t>(c->address, last),
                 hi = std::max<std::int64_t>(c->address, last) + c->bytes;
    if (lo < 0 || hi > static_cast<std::int64_t>(pe.memory_bytes)) return 0;
  }
  Reader ra(run.a.kind == Cursor::fabin ? pe.in[run.a.queue].channel : nullptr),
      rb(run.b.kind == Cursor::fabin ? pe.in[run.b.queue].channel : nullptr);
  if (out) out->rewind(now);
  const std::uint32_t first = out ? out->first.load(std::memory_order_relaxed) : 0;
  std::uint32_t tail = out ? out->tail.load(std::memory_order_relaxed) : 0,
                taken = out ? out->head.load(std::memory_order_acquire) : 0;
  const auto stamp = static_cast<std::uint32_t>(now);
  const Ty half = half_type(*pe.program, op);
  constexpr Cycle step = 1;  // of an element, whatever the operation
  std::uint8_t* memory = pe.memory;
  std::uint32_t n = 0;
  Cycle at = 0, until = -1;
  auto word = [&](Cursor& c, Channel::Entry* entry) -> std::uint32_t {
    if (entry) return c.bytes == 2 ? entry->data & 0xffffu : entry->data;
    if (c.kind == Cursor::mem) {
      std::uint32_t v = load_bits(memory + c.address, c.bytes);
      c.address = static_cast<std::uint16_t>(c.address + c.stride);
      return v;
    }
    return c.value_bits;
  };
  while (run.left > 0) {
    Cycle t = std::max(run.ready, now);
    Channel::Entry *ea = nullptr, *eb = nullptr;
    if (ra.c) {
      if (!(ea = ra.front(now))) break;
      t = std::max<Cycle>(t, ea->when);
    }
    if (rb.c) {
      if (!(eb = rb.front(now))) break;
      t = std::max<Cycle>(t, eb->when);
    }
    if (out && tail - first >= out->capacity) {
      std::uint32_t old = tail - out->capacity;
      if (static_cast<std::int32_t>(taken - old) <= 0) break;  // try_element says that it starves
      const Channel::Entry& place = out->at(old);
      if (!Channel::before(place.visit, now)) break;
      t = std::max<Cycle>(t, place.when);
    }
    if (t > limit) break;  // try_element says when to go on
    at = t;
    take_turn(pe, run, at);
    if (at == until) {
      until += step;
    } else {
      pe.worked_until = std::max(pe.worked_until, until);
      mark_work(pe, at, step);
      until = pe.worked_until;
    }
    std::uint32_t a = word(run.a, ea), b = word(run.b, eb), v;
    switch (op.code) {
      case Bulk::mov32:
      case Bulk::fmovs: v = a; break;
      case Bulk::fadds: v = static_cast<std::uint32_t>(bits_of(f32_of(a) + f32_of(b))); break;
      default: v = bulk_element(op.code, half, a, b, run.scalar);
    }
    if (ea) {
      ea->when = at + 1;
      ea->visit = stamp;
      ++ra.head;
    }
    if (eb) {
      eb->when = at + 1;
      eb->visit = stamp;
      ++rb.head;
    }
    if (out) {
      Channel::Entry& place = out->at(tail);
      place.data = v;
      place.control = 0;
      place.when = at + out->latency;
      place.visit = stamp;
      ++tail;
      if (out->unannounced < 0) out->unannounced = at;
    } else {
      store_bits(memory + run.dst.address, run.dst.bytes, v);
      run.dst.address = static_cast<std::uint16_t>(run.dst.address + run.dst.stride);
    }
    ++n;
    --run.left;
    run.ready = at + step;
  }
  if (n == 0) return 0;
  pe.worked_until = std::max(pe.worked_until, until);
  pe.op_time = at;
  run.done += n;
  run.stalled = false;
  pe.count.elements += n;
  if (op.src1.kind != Operand::none) pe.count.flops += n * (bulk_info(op.code).scalar ? 2u : 1u);
  for (Reader* r : {&ra, &rb}) {
    if (!r->c || r->head == r->first) continue;
    sim::hand_over();
    r->c->head.store(r->head, std::memory_order_seq_cst);
    if (r->c->starved.load(std::memory_order_seq_cst) && r->c->starved.exchange(false))
      notify(w, *pes_[r->c->from].load(std::memory_order_relaxed), now + 1, -1);
  }
  if (out) {
    sim::hand_over();
    out->tail.store(tail, std::memory_order_release);
    out->sent += n;
  }
  if (run.left == 0) {  // the end comes when it is due
    run.finishing = true;
    run.ready = at;
  }
  return n;
}

}  // namespace weft::wse
