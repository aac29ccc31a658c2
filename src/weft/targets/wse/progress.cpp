// SPDX-License-Identifier: Apache-2.0
// DSD operations in progress: they advance by elements as wavelets come and go, share the PE's
// issue slot by priority and turn, and say so when they end.
#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/targets/wse/arith.h"
#include "weft/targets/wse/bulk_loops.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

void Fabric::pop_queue(Worker& w, Pe& pe, std::size_t queue, Cycle at, Cycle now) {
  InQueue& q = pe.in[queue];
  if (q.count) {
    q.pop();
    if (q.count == 0) pe.busy_in &= ~(1u << queue);
    pe.freed = true;
    return;
  }
  q.channel->pop(at, now);
  if (q.channel->starved.load(std::memory_order_seq_cst) && q.channel->starved.exchange(false)) {
    notify(w, *pes_[q.channel->from].load(std::memory_order_relaxed), now + 1, -1);
  }
}

namespace {
/// Where a control wavelet lies in memory that .control_transform has received: in the two highest
/// bits.
constexpr std::uint32_t kTransformed = 3u << 30;

bool sends_control(const Cursor& c, std::uint32_t& value) {
  if (c.flags & Dsd::kControl) return true;
  if (!(c.flags & Dsd::kControlTransform) || (value & kTransformed) != kTransformed) return false;
  value &= ~kTransformed;
  return true;
}
}  // namespace

std::uint32_t Fabric::read_cursor(Worker& w, Pe& pe, Cursor& c, Cycle now) {
  switch (c.kind) {
    case Cursor::none: return 0;
    case Cursor::value: return c.value_bits;
    case Cursor::mem: {
      std::uint32_t v = load_bits(span(pe, c.address, c.bytes), c.bytes);
      c.address = static_cast<std::uint16_t>(c.address + c.stride);
      return v;
    }
    case Cursor::mem4: {
      std::uint32_t v = load_bits(span(pe, mem4_address(c), c.bytes), c.bytes);
      mem4_step(c);
      return v;
    }
    case Cursor::fabin: {
      InQueue& q = pe.in[c.queue];
      Wavelet head;
      peek_queue(pe, q, now, head);
      std::uint32_t data = head.data;
      if (c.bytes == 2) {
        if (c.flags & Dsd::kSimd32) {
          if (!q.half) {
            q.half = true;
            return data & 0xffffu;
          }
          q.half = false;
          data >>= 16;
        }
        data &= 0xffffu;
      }
      if ((c.flags & Dsd::kControlTransform) && c.bytes == 4 && head.control & 1u)
        data = (data ^ static_cast<std::uint32_t>(pe.core->transform_mask) << 16) | kTransformed;
      pop_queue(w, pe, c.queue, pe.op_time, now);
      return data;
    }
    case Cursor::fifo: {
      FifoState& f = pe.core->fifos[c.queue];
      const Fifo& info = pe.program->fifos[c.queue];
      std::uint32_t v = load_bits(
          span(pe, info.base + std::uint32_t{f.read} * info.elem_bytes, c.bytes), c.bytes);
      f.read = static_cast<std::uint16_t>(f.read + 1 == f.capacity ? 0 : f.read + 1);
      --f.count;
      if (f.hit_full) {
        f.hit_full = false;
        complete(pe, info.on_pop, clock(pe));
      }
      return v;
    }
    case Cursor::fabout: return 0;
  }
  return 0;
}

void Fabric::write_cursor(Pe& pe, Cursor& c, std::uint32_t value, std::uint16_t,
                          std::uint32_t index_high, Cycle now) {
  switch (c.kind) {
    case Cursor::mem:
      store_bits(span(pe, c.address, c.bytes), c.bytes, value);
      c.address = static_cast<std::uint16_t>(c.address + c.stride);
      return;
    case Cursor::mem4:
      store_bits(span(pe, mem4_address(c), c.bytes), c.bytes, value);
      mem4_step(c);
      return;
    case Cursor::fabout: {
      OutQueue& q = pe.out[c.queue];
      if (c.flags & Dsd::kIndexOffset) value = (value & 0xffffu) | index_high << 16;
      if (express_of(pe, q, c.color)) {
        const bool is_control = sends_control(c, value);
        if (is_control && (value >> 22 & 3u) == 3u) {
          throw pe_fault(
              pe, "wse.task.teardown_unbound",
              cat("colour ", static_cast<int>(c.color), " enters teardown and has no handler"));
        }
        const auto channels = q.channels();
        ++channels[0]->sent;
        if (is_control && (value >> 24 & 1u)) return;  // no CE wants it
        for (Channel* ch : channels) ch->push(value, is_control ? 1u : 0u, pe.op_time, now);
        if (channels[0]->unannounced < 0) channels[0]->unannounced = pe.op_time;
        return;
      }
      std::uint32_t at = (q.head + q.count) % 8u;
      const std::uint32_t control = sends_control(c, value) ? 1u : 0u;
      q.slot[at] = {{value, control, now + 1}, c.color};
      ++q.count;
      pe.busy_out |= 1u << c.queue;
      return;
    }
    case Cursor::fifo: {
      FifoState& f = pe.core->fifos[c.queue];
      const Fifo& info = pe.program->fifos[c.queue];
      store_bits(span(pe, info.base + std::uint32_t{f.write} * info.elem_bytes, info.elem_bytes),
                 info.elem_bytes, value);
      f.write = static_cast<std::uint16_t>(f.write + 1 == f.capacity ? 0 : f.write + 1);
      ++f.count;
      if (f.hit_empty) {
        f.hit_empty = false;
        complete(pe, info.on_push, now);
      }
      return;
    }
    default: return;
  }
}

void Fabric::complete(Pe& pe, const Completion& c, Cycle) {
  if (c.kind == Completion::none) return;
  task_bit(pe, c.kind == Completion::activate ? Op::activate : Op::unblock, c.space, c.id);
}

Cycle Fabric::cursor_time(Pe& pe, Cursor& c, bool output, Cycle now) {
  switch (c.kind) {
    case Cursor::fabin: {
      Wavelet head;
      return peek_queue(pe, pe.in[c.queue], now, head) ? head.ready : -1;
    }
    case Cursor::fabout: {
      OutQueue& q = pe.out[c.queue];
      if (express_of(pe, q, c.color)) {
        Cycle t = 0;
        for (Channel* ch : q.channels()) {
          Cycle room = ch->room(now, pe.again);
          if (room < 0) return -1;
          t = std::max(t, room);
        }
        return t;
      }
      int depth = (c.flags & Dsd::kAdvanceSwitch) ? std::min<int>(q.depth, 7)
                                                  : q.depth;  // the advance needs a place, too
      return q.count < depth ? 0 : -1;
    }
    case Cursor::fifo: {
      FifoState& f = pe.core->fifos[c.queue];
      if (output) {
        if (f.count < f.capacity) return 0;
        f.hit_full = true;
        return -1;
      }
      if (f.count > 0) return 0;
      f.hit_empty = true;
      return -1;
    }
    default: return 0;
  }
}

FifoAction Fabric::fifo_action(const Pe& pe, const Cursor& c, bool output) const {
  if (c.kind != Cursor::fifo) return FifoAction::test_or_suspend;
  const Fifo& fifo = pe.program->fifos[c.queue];
  return output ? fifo.on_full : fifo.on_empty;
}

std::optional<FifoAction> Fabric::held_by_fifo(Pe& pe, Running& run, Cycle now) {
  std::optional<FifoAction> out;
  for (auto [c, output] : {std::pair(&run.a, false), {&run.b, false}, {&run.dst, true}}) {
    const Cycle t = cursor_time(pe, *c, output, now);
    if (t >= 0 && (t <= now || !options_.timed)) continue;
    if (c->kind != Cursor::fifo) return {};
    if (out) continue;
    out = fifo_action(pe, *c, output);
    if (*out != FifoAction::fault) continue;
    const std::string name = cat("FIFO ", static_cast<int>(c->queue));
    if (output)
      throw pe_fault(pe, "wse.fifo.full", name + " is full, and its full_action is a fault");
    throw pe_fault(pe, "wse.fifo.empty", name + " is empty, and its empty_action is a fault");
  }
  return out;
}

// Whether a FIFO that is empty or full has ended the operation.
bool Fabric::ends_at_fifo(Worker& w, Pe& pe, Running& run, Cycle now) {
  const std::optional<FifoAction> action = held_by_fifo(pe, run, now);
  if (!action || *action == FifoAction::suspend) return false;
  if (*action == FifoAction::test_or_suspend) {
    if (!run.main) return false;
    const Insn& insn = pe.program->functions[run.function].code[run.pc];
    if (insn.a != kNone16) pe.core->regs[pe.core->frames.back().reg + insn.a] = 0;
  }
  finish(w, pe, run, now, true);
  return true;
}

// Of an operation with one source both settings mean that one.
void Fabric::zero_source(Pe& pe, const Running& run, Cycle now) {
  const bool second = run.b.kind != Cursor::none && (run.dst.flags & Dsd::kZeroSecond) != 0;
  Cursor c = second ? run.b : run.a;
  Mem4 walk;
  if (c.kind == Cursor::mem4) {
    walk = *c.walk;
    walk.at = {};
    c.walk = &walk;
  } else if (c.kind != Cursor::mem) {
    return;
  }
  if (c.kind == Cursor::mem)
    c.address = static_cast<std::uint16_t>(c.address - std::int64_t{c.stride} * run.done);
  for (std::uint32_t n = 0; n < run.done; ++n) write_cursor(pe, c, 0, 0, 0, now);
}

void Fabric::finish(Worker& w, Pe& pe, Running& run, Cycle now, bool) {
  Core& k = *pe.core;
  if (run.dst.kind == Cursor::fabout && run.dst.flags & (Dsd::kZeroFirst | Dsd::kZeroSecond))
    zero_source(pe, run, now);
  auto save = [&](const Operand& o, const Cursor& c) {
    if (o.kind != Operand::dsr) return;
    Dsr& r = k.dsrs[static_cast<std::size_t>(o.file) * 32u + (o.index & 31u)];
    keep_place(r, c);
  };
  save(run.op->dst, run.dst);
  save(run.op->src0, run.a);
  save(run.op->src1, run.b);
  for (const Cursor* c : {&run.a, &run.b}) {
    if (c->kind != Cursor::fabin || pe.in[c->queue].reader != run.slot) continue;
    pe.in[c->queue].reader = kNone8;
    pe.reading &= ~(1u << (c->queue & 31u));
  }
  if (run.dst.kind == Cursor::fabout && pe.out[run.dst.queue].writer == run.slot) {
    pe.out[run.dst.queue].writer = kNone8;
    pe.writing = static_cast<std::uint8_t>(pe.writing & ~(1u << (run.dst.queue & 7u)));
  }
  if (run.dst.kind == Cursor::fabout && pe.out[run.dst.queue].express)
    announce(w, pe.out[run.dst.queue], now);
  run.live = false;
  pe.live_ops &= ~(1u << run.slot);
  std::uint16_t& level = pe.at_priority[static_cast<std::size_t>(run.settings.priority)];
  level = static_cast<std::uint16_t>(level & ~(1u << run.slot));
  k.ops.end(run);
  complete(pe, run.settings.done, now);
  if (run.main) {
    pe.main = MainState::running;
    pe.main_ready = now;  // the next instruction follows the last element
  } else if (pe.main == MainState::idle && run.settings.done.kind != Completion::none &&
             options_.timed) {
    pe.main_ready = std::max(pe.main_ready, now + timing_.completion);
  }
  if (trace_) {
    int track = trace_->track(cat("pe ", pe.x, ",", pe.y),
                              run.main ? "main" : cat("microthread ", static_cast<int>(run.slot)));
    double us = 1e6 / timing_.clock_hz;
    trace_->span(track, cat("@", to_string(run.op->code)), static_cast<double>(run.since) * us,
                 static_cast<double>(now - run.since) * us);
  }
}

// The first cycle in which an idle main thread may begin a task that is no completion of an
// operation in progress. An operation that is alone has its elements up to there to itself,
// whatever the visit: those of that cycle come before the task.
Cycle Fabric::next_task(Pe& pe, Cycle now) {
  const Cycle free = std::max(now, pe.main_ready);
  if ((pe.local_pending & ~pe.local_blocked) || pe.flush_wait || pe.busy_in) return free;
  Cycle at = kNever;
  if (pe.command_function != kNone16) at = std::max(free, pe.command_ready);
  const TaskTable& tasks = table(pe);
  if (!tasks.by_wavelets) return at;
  for (std::uint32_t mask = pe.express_in; mask; mask &= mask - 1) {
    const std::uint8_t q = pe.color_queue[static_cast<std::size_t>(std::countr_zero(mask))];
    if (q == kNone8) continue;
    InQueue& in = pe.in[q];
    const Channel* channel = channel_of(pe, in);
    const int id = wse3_ ? q : in.color;
    if (!channel || (pe.color_blocked >> id & 1u)) continue;
    const bool data = in.reader == kNone8 && tasks.data[static_cast<std::size_t>(id)] != kNone16;
    if (!data && !channel->controls.load(std::memory_order_relaxed)) continue;
    if (const Channel::Entry* e = channel->peek())
      at = std::min(at, std::max<Cycle>(free, e->when));
  }
  return std::min(at, std::max(free, now + reach_of(pe)));  // what is under way and not seen yet
}

// The first wavelet of a message: as many more follow as it says.
int Fabric::take_header(Worker& w, Pe& pe, Running& run, Cursor& c, Cycle now, Cycle& next) {
  Wavelet head;
  if (!peek_queue(pe, pe.in[c.queue], now, head)) {
    run.stalled = true;
    return 0;
  }
  const Cycle at = std::max(run.ready, head.ready);
  if (at > now && options_.timed) {
    next = std::min(next, at);
    return 0;
  }
  run.stalled = false;
  pop_queue(w, pe, c.queue, now, now);
  if (!run.endless && head.data > run.left)
    throw pe_fault(
        pe, "wse.message.length",
        cat("a message of ", head.data, " elements arrives where ", run.left, " are received"))
        .help("legal are messages of at most the length that recv_message names, or none named");
  run.left = head.data;
  run.header = run.endless = false;
  if (options_.timed) run.ready = now + 1;
  next = std::min(next, now + 1);
  return 0;
}

// One element if possible: 0 nothing now, 1 an element, 2 finished or about to be. Elements up to
// the cycle `limit` may be done before their cycle has come.
int Fabric::try_element(Worker& w, Pe& pe, Running& run, Cycle now, Cycle& next, Cycle limit) {
  if (run.finishing) {
    if (run.ready > now && options_.timed) {
      next = std::min(next, run.ready);
      return 0;
    }
    finish(w, pe, run, now, false);
    return 2;
  }
  // A control wavelet at the head of an input ends or pauses the stream.
  for (Cursor* c : {&run.a, &run.b}) {
    if (c->kind != Cursor::fabin) continue;
    Wavelet head;
    if (c->flags & Dsd::kControl) {
      if (run.header) return take_header(w, pe, run, *c, now, next);
      continue;
    }
    const bool reacts =
        run.settings.terminate_on_control || run.settings.on_control.kind != Completion::none;
    if (c->flags & Dsd::kControlTransform && !reacts) continue;
    if (!peek_queue(pe, pe.in[c->queue], now, head) || !head.control) continue;
    if (head.ready > now && options_.timed) {
      next = std::min(next, head.ready);
      return 0;
    }
    if (reacts) {
      pop_queue(w, pe, c->queue, now, now);
      complete(pe, run.settings.on_control, now);
      if (run.settings.terminate_on_control) {
        take_turn(pe, run, now);
        finish(w, pe, run, now, true);
        return 2;
      }
      next = std::min(next, now + 1);
    }
    return 0;  // a control task takes it
  }
  Cycle at = std::max(run.ready, now);
  for (Cycle t : {cursor_time(pe, run.a, false, now), cursor_time(pe, run.b, false, now),
                  cursor_time(pe, run.dst, true, now)}) {
    if (t < 0) {
      if ((run.b.kind == Cursor::fifo || run.a.kind == Cursor::fifo ||
           run.dst.kind == Cursor::fifo) &&
          ends_at_fifo(w, pe, run, now))
        return 2;
      run.stalled = true;
      return 0;
    }
    at = std::max(at, t);
  }
  if (!options_.timed) at = now;
  if (at > limit) {
    next = std::min(next, at);
    return 0;
  }
  run.stalled = false;
  pe.op_time = at;
  const BulkOp& op = *run.op;
  int times = 1;
  if (run.dst.bytes == 2 && ((run.dst.flags | run.a.flags | run.b.flags) & Dsd::kSimd32)) times = 2;
  for (int t = 0; t < times && run.left; ++t) {
    if (t > 0 &&
        (cursor_time(pe, run.a, false, now) < 0 || cursor_time(pe, run.b, false, now) < 0 ||
         cursor_time(pe, run.dst, true, now) < 0))
      break;
    std::uint32_t a = read_cursor(w, pe, run.a, now), b = read_cursor(w, pe, run.b, now);
    std::uint32_t v;
    switch (op.code) {  // the commonest, without the call
      case Bulk::mov32:
      case Bulk::fmovs: v = a; break;
      case Bulk::fadds: v = static_cast<std::uint32_t>(bits_of(f32_of(a) + f32_of(b))); break;
      case Bulk::addc16: {
        std::uint32_t sum = (a & 0xffffu) + (b & 0xffffu) + run.carry;
        run.carry = sum >> 16;
        v = sum & 0xffffu;
        break;
      }
      default: v = bulk_element(op.code, half_type(*pe.program, op), a, b, run.scalar);
    }
    if (run.a.kind == Cursor::value && op.dst.kind == Operand::pointer &&
        op.src1.kind != Operand::none)
      run.a.value_bits = v;
    if (run.dst.kind == Cursor::fabout && times == 2 && (run.dst.flags & Dsd::kSimd32)) {
      if (!run.half_out && run.left > 1) {
        run.packed = v & 0xffffu;
        run.half_out = true;
      } else {
        write_cursor(pe, run.dst, run.half_out ? run.packed | v << 16 : v & 0xffffu, run.index,
                     run.index, now);
        run.half_out = false;
      }
    } else {
      write_cursor(pe, run.dst, v, run.index, run.index, now);
    }
    ++pe.count.elements;
    if (t == 0) {
      mark_work(pe, at, 1);
      take_turn(pe, run, at);
    }
    if (op.src1.kind != Operand::none) pe.count.flops += bulk_info(op.code).scalar ? 2 : 1;
    ++run.done;
    if (!run.endless) --run.left;
  }
  if (run.left == 0) {
    // An odd number of elements: the second half of the last wavelet belongs to nobody.
    for (const Cursor* c : {&run.a, &run.b}) {
      if (c->kind != Cursor::fabin || !pe.in[c->queue].half) continue;
      pe.in[c->queue].half = false;
      pop_queue(w, pe, c->queue, pe.op_time, now);
    }
  }
  bool express = run.dst.kind == Cursor::fabout && pe.out[run.dst.queue].express;
  if (run.dst.kind == Cursor::fabout && !express)
    next = std::min(next, now + 1);  // the ramp takes it
  if (run.left == 0) {
    if (run.dst.kind == Cursor::fabout && (run.dst.flags & Dsd::kAdvanceSwitch) && !express) {
      OutQueue& q = pe.out[run.dst.queue];
      // The advance rides behind the last element: a control wavelet that the CE ignores.
      if (q.count < 8) {
        std::uint32_t last = (q.head + q.count) % 8u;
        q.slot[last] = {{1u << 22 | 1u << 24 | 31u << 16, 1u, now + 1}, run.dst.color};
        ++q.count;
        pe.busy_out |= 1u << run.dst.queue;
      }
    }
    if (at > now) {  // done ahead of time: the end comes when it is due
      run.finishing = true;
      run.ready = at;
      next = std::min(next, at);
      return 2;
    }
    finish(w, pe, run, now, false);
    return 2;
  }
  if (options_.timed) run.ready = at + 1;
  return 1;
}

// The first cycle from `from` on in which `run` may have an element; kNever where a wavelet or a
// free place must come first, which wakes the PE. Wavelets and places count that the PE does not
// see in this visit: their cycle is later. Not for operations with a FIFO.
Cycle Fabric::next_element(Pe& pe, Running& run, Cycle from) {
  Cycle at = std::max(from, run.ready);
  if (run.finishing) return at;
  for (Cursor* c : {&run.a, &run.b}) {
    if (c->kind != Cursor::fabin) continue;
    InQueue& q = pe.in[c->queue];
    if (q.count) {
      at = std::max(at, q.front().ready);
      continue;
    }
    Channel* channel = channel_of(pe, q);
    const Channel::Entry* e = channel ? channel->peek() : nullptr;
    if (!e) return kNever;
    at = std::max<Cycle>(at, e->when);
  }
  if (run.dst.kind == Cursor::fabout) {
    OutQueue& q = pe.out[run.dst.queue];
    if (!express_of(pe, q, run.dst.color)) return q.count < q.depth ? at : from;
    for (Channel* channel : q.channels()) {
      const Cycle room = channel->next_room();
      if (room < 0) return kNever;
      at = std::max(at, room);
    }
  }
  return at;
}

void Fabric::run_ops(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  Core& k = *pe.core;
  bool issued = false;
  // Where operations share the PE, a visit in which none has an element changes nothing: the next
  // one is that of the next element. An operation alone may work ahead, hence looks every cycle.
  const bool sparse = options_.timed && !pe.ut_blocked && !pe.busy_out && k.fifos.empty() &&
                      (!pe.io || pe.io->sources.empty());
  auto shared = [&] { return sparse && !alone(pe.live_ops); };
  auto look_again = [&](Running& run) {
    next = std::min(next, shared() ? next_element(pe, run, now + 1) : now + 1);
    w.asleep_until = std::max(w.asleep_until, now + 1);
  };
  const std::uint32_t above = ~0u << pe.rr_op;
  for (std::size_t level = 4; level-- > 0;) {  // high, medium, low, unset
    if (!pe.at_priority[level]) continue;
    for (std::uint32_t part : {above, ~above}) {
      for (std::uint32_t mask = pe.at_priority[level] & part; mask; mask &= mask - 1) {
        int s = std::countr_zero(mask);
        Running& run = k.ops[static_cast<std::size_t>(s)];
        if (!run.live || (pe.ut_blocked >> s & 1u)) continue;
        if (run.since >= now && options_.timed) {  // begun by a main thread that is ahead
          next = std::min(next, std::max(run.since + 1, run.ready));
          continue;
        }
        if (issued && options_.timed) {
          look_again(run);
          continue;
        }
        if (shared()) {
          if (const Cycle t = next_element(pe, run, now); t > now) {
            next = std::min(next, t);
            continue;
          }
        }
        // Alone and with channels or memory at every end, an operation may work ahead: as far as
        // nothing else can begin in the PE, so that it does not matter when it is visited.
        auto free_end = [&](const Cursor& c) {
          if (c.kind == Cursor::fifo || c.kind == Cursor::mem4) return c.kind == Cursor::mem4;
          if (c.kind == Cursor::fabin && c.flags & Dsd::kControl) return false;
          if (c.kind == Cursor::fabin)
            return channel_of(pe, pe.in[c.queue]) != nullptr && pe.in[c.queue].count == 0;
          if (c.kind == Cursor::fabout) return express_of(pe, pe.out[c.queue], c.color);
          return true;
        };
        const bool beside = pe.main == MainState::running && !run.main;
        bool ahead = options_.timed && pe.timer_at == kNever && alone(pe.live_ops) &&
                     (run.main || pe.main == MainState::idle || (beside && pe.main_ready > now)) &&
                     free_end(run.a) && free_end(run.b) && free_end(run.dst);
        // While the main thread works, nothing begins before it goes on.
        const Cycle until = !ahead ? now : run.main ? kNever : beside ? 0 : next_task(pe, now);
        const Cycle& limit = ahead && beside ? pe.main_ready : until;
        std::uint32_t many =
            ahead && !run.finishing && options_.fast ? run_ahead(w, pe, run, now, limit) : 0;
        int r = try_element(w, pe, run, now, next, limit);
        int done = many ? 1 : r;
        if (ahead) {
          while (r == 1) r = try_element(w, pe, run, now, next, limit);
          if (done == 0) continue;
          if (run.dst.kind == Cursor::fabout && pe.out[run.dst.queue].express)
            announce(w, pe.out[run.dst.queue], now);
          issued = true;
          if (beside) pe.rr_op = static_cast<std::uint8_t>((s + 1) % 16);
          if (!run.live) next = std::min(next, now + 1);
          continue;
        }
        while (r == 1 && !options_.timed) r = try_element(w, pe, run, now, next, now);
        if (done == 0) continue;
        if (run.dst.kind == Cursor::fabout && pe.out[run.dst.queue].express)
          announce(w, pe.out[run.dst.queue], now);
        issued = true;
        pe.rr_op = static_cast<std::uint8_t>((s + 1) % 16);
        if (run.live) look_again(run);
        else if (!sparse || pe.live_ops) next = std::min(next, now + 1);
        else w.asleep_until = std::max(w.asleep_until, now + 1);
      }
    }
    if (pe.live_ops == 0) break;
  }
}

}  // namespace weft::wse
