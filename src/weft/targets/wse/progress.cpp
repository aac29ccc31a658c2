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

void Fabric::finish(Worker& w, Pe& pe, Running& run, Cycle now, bool) {
  Core& k = *pe.core;
  auto save = [&](const Operand& o, const Cursor& c) {
    if (o.kind != Operand::dsr) return;
    Dsr& r = k.dsrs[static_cast<std::size_t>(o.file) * 32u + (o.index & 31u)];
    keep_place(r, c);
  };
  save(run.op->dst, run.dst);
  save(run.op->src0, run.a);
  save(run.op->src1, run.b);
  for (const Cursor* c : {&run.a, &run.b}) {
    if (c->kind == Cursor::fabin && pe.in[c->queue].reader == run.slot)
      pe.in[c->queue].reader = kNone8;
  }
  if (run.dst.kind == Cursor::fabout) {
    if (pe.out[run.dst.queue].writer == run.slot) pe.out[run.dst.queue].writer = kNone8;
  }
  if (run.dst.kind == Cursor::fabout && pe.out[run.dst.queue].express)
    announce(w, pe.out[run.dst.queue], now);
  run.live = false;
  pe.live_ops &= ~(1u << run.slot);
  k.ops.end(run);
  complete(pe, run.settings.done, now);
  if (run.main) {
    pe.main = MainState::running;
    pe.main_ready = now + (options_.timed ? 1 : 0);
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

// One element if possible: 0 nothing now, 1 an element, 2 finished or about to be. `ahead`:
// elements may be done before their cycle has come.
int Fabric::try_element(Worker& w, Pe& pe, Running& run, Cycle now, Cycle& next, bool ahead) {
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
    if (!peek_queue(pe, pe.in[c->queue], now, head) || !head.control) continue;
    if (head.ready > now && options_.timed) {
      next = std::min(next, head.ready);
      return 0;
    }
    if (run.settings.terminate_on_control || run.settings.on_control.kind != Completion::none) {
      pop_queue(w, pe, c->queue, now, now);
      complete(pe, run.settings.on_control, now);
      if (run.settings.terminate_on_control) {
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
      run.stalled = true;
      return 0;
    }
    at = std::max(at, t);
  }
  if (!options_.timed) at = now;
  if (at > now && !ahead) {
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
    if (t == 0) mark_work(pe, at, work_cycles(op));
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
  if (options_.timed) run.ready = at + work_cycles(op);
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
  for (int level = 3; level >= 0; --level) {  // high, medium, low, unset
    for (std::uint32_t part : {above, ~above}) {
      for (std::uint32_t mask = pe.live_ops & part & 0xffffu; mask; mask &= mask - 1) {
        int s = std::countr_zero(mask);
        Running& run = k.ops[static_cast<std::size_t>(s)];
        if (!run.live || static_cast<int>(run.settings.priority) != level ||
            (pe.ut_blocked >> s & 1u))
          continue;
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
        // Alone and with channels or memory at every end, an operation may work ahead.
        auto free_end = [&](const Cursor& c) {
          if (c.kind == Cursor::fifo || c.kind == Cursor::mem4) return c.kind == Cursor::mem4;
          if (c.kind == Cursor::fabin)
            return channel_of(pe, pe.in[c.queue]) != nullptr && pe.in[c.queue].count == 0;
          if (c.kind == Cursor::fabout) return express_of(pe, pe.out[c.queue], c.color);
          return true;
        };
        bool ahead = options_.timed && pe.timer_at == kNever && alone(pe.live_ops) &&
                     (run.main || pe.main == MainState::idle) && free_end(run.a) &&
                     free_end(run.b) && free_end(run.dst);
        std::uint32_t many =
            ahead && !run.finishing && options_.fast ? run_ahead(w, pe, run, now) : 0;
        int r = try_element(w, pe, run, now, next, ahead);
        int done = many ? 1 : r;
        if (ahead) {
          while (r == 1) r = try_element(w, pe, run, now, next, true);
          if (done == 0) continue;
          if (run.dst.kind == Cursor::fabout && pe.out[run.dst.queue].express)
            announce(w, pe.out[run.dst.queue], now);
          issued = true;
          if (!run.live) next = std::min(next, now + 1);
          continue;
        }
        while (r == 1 && !options_.timed) r = try_element(w, pe, run, now, next, false);
        if (done == 0) continue;
        if (run.dst.kind == Cursor::fabout && pe.out[run.dst.queue].express)
          announce(w, pe.out[run.dst.queue], now);
        issued = true;
        pe.rr_op = static_cast<std::uint8_t>((s + 1) % 16);
        if (pe.main_ready > now && !run.main && pe.main == MainState::running)
          ++pe.main_ready;  // took its turn
        if (run.live) look_again(run);
        else if (!sparse || pe.live_ops) next = std::min(next, now + 1);
        else w.asleep_until = std::max(w.asleep_until, now + 1);
      }
    }
    if (pe.live_ops == 0) break;
  }
}

}  // namespace weft::wse
