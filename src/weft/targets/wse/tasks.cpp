// SPDX-License-Identifier: Apache-2.0
// The task scheduler of a PE: task bits, the choice of the next task, the states of the main
// thread.
#include <bit>

#include "weft/base/error.h"
#include "weft/sim/fault.h"
#include "weft/targets/wse/arith.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

namespace {

/// "file:line (function)" of an instruction.
std::string source_of(const Program& program, const Function& fn, std::uint32_t pc) {
  for (auto it = fn.lines.rbegin(); it != fn.lines.rend(); ++it) {
    if (it->pc > pc) continue;
    const std::string& file =
        it->file < program.files.size() ? program.files[it->file] : program.name;
    return cat(file, ":", it->line, " (", fn.name, ")");
  }
  return fn.name;
}

/// Where a program activates a local task first; empty where only a comptime block does.
std::string first_activation(const Program& program, int id) {
  auto by = [&](const OpSettings& s) {
    auto is = [&](const Completion& c) {
      return c.kind == Completion::activate && c.space == TaskSpace::local && c.id == id;
    };
    return is(s.done) || is(s.on_control);
  };
  for (const Function& fn : program.functions) {
    for (std::uint32_t pc = 0; pc < fn.code.size(); ++pc) {
      const Insn& insn = fn.code[pc];
      const auto k = static_cast<std::size_t>(insn.imm());
      const bool here =
          insn.op == Op::activate
              ? static_cast<TaskSpace>(insn.ty) == TaskSpace::local && insn.imm() == id
          : insn.op == Op::bulk    ? by(program.bulks[k].settings)
          : insn.op == Op::map     ? by(program.maps[k].settings)
          : insn.op == Op::dsrload ? by(program.dsr_loads[k].settings)
                                   : false;
      if (here) return source_of(program, fn, pc);
    }
  }
  return {};
}

}  // namespace

Error Fabric::pe_fault(const Pe& pe, std::string_view code, std::string message) const {
  sim::FaultPlace place;
  place.unit = cat("pe (", pe.x, ", ", pe.y, ")");
  place.cycle = clock(pe);
  if (pe.core && !pe.core->frames.empty() && pe.program) {
    const Frame& f = pe.core->frames.back();
    const Function& fn = pe.program->functions[f.function];
    place.pc = static_cast<std::int64_t>(f.pc);
    if (f.pc < fn.code.size()) {
      const Insn& insn = fn.code[f.pc];
      place.instruction = cat(to_string(insn.op));
      if (insn.op == Op::bulk)
        place.instruction =
            cat("@", to_string(pe.program->bulks[static_cast<std::size_t>(insn.imm())].code));
    }
    place.source = source_of(*pe.program, fn, f.pc);
  }
  return sim::fault(code, std::move(message), place);
}

void Fabric::task_bit(Pe& pe, Op op, TaskSpace space, int id) {
  auto apply = [&](auto& bits) {
    using T = std::remove_reference_t<decltype(bits)>;
    T bit = static_cast<T>(T{1} << id);
    if (op == Op::block) bits = static_cast<T>(bits | bit);
    else bits = static_cast<T>(bits & static_cast<T>(~bit));
  };
  switch (space) {
    case TaskSpace::local:
      if (op == Op::activate) {
        pe.local_merged |= pe.local_pending & 1u << id;  // two activations, one run
        pe.local_pending |= 1u << id;
      } else apply(pe.local_blocked);
      break;
    case TaskSpace::color:
    case TaskSpace::queue:
      if (op != Op::activate) apply(pe.color_blocked);
      break;
    case TaskSpace::control:
      if (op != Op::activate) apply(pe.control_blocked);
      break;
    case TaskSpace::microthread:
      if (op != Op::activate) apply(pe.ut_blocked);
      pe.released = true;
      break;
  }
}

namespace {
/// The control task that a payload names; tables of queues lie `control_stride` entries apart.
int control_entry(const Pe& pe, const InQueue& in, std::uint32_t payload) {
  return static_cast<int>((payload >> 16) + in.control_table * pe.program->control_stride) & 63;
}
}  // namespace

namespace {
/// The control task that starts instead of a queue's data task, which counts its starts; -1: none.
int rotated_entry(Pe& pe, int queue) {
  const std::vector<Rotation>& rotations = pe.program->rotations;
  for (std::size_t k = 0; k < rotations.size(); ++k) {
    if (rotations[k].queue != queue) continue;
    std::uint32_t& count = pe.core->rotated[k];
    if (count == rotations[k].limit) {
      count = 0;
      return rotations[k].entry;
    }
    ++count;
  }
  return -1;
}
}  // namespace

void Fabric::enter(Pe& pe, std::uint16_t function, const std::vector<std::uint64_t>& args) {
  Core& k = core(pe);
  const Function& fn = pe.program->functions[function];
  k.frames.clear();
  pe.sp = 0;
  pe.sp = static_cast<std::uint16_t>(kMemoryBytes - fn.frame_bytes);
  Frame& f = k.frames.add(arena_);
  f.function = function;
  f.sp = static_cast<std::uint16_t>(kMemoryBytes);
  if (k.regs.size() < fn.regs + 8u) k.regs.resize(fn.regs + 8u, arena_);
  if (k.dsds.size() < fn.dsds + 2u) k.dsds.resize(fn.dsds + 2u, arena_);
  for (std::size_t i = 0; i < args.size(); ++i) k.regs[i] = args[i];
  pe.main = MainState::running;
  ++pe.count.tasks;
}

void Fabric::end_task(Worker&, Pe& pe) {
  pe.main = MainState::idle;
  pe.in_command = false;
  pe.current_task = kNone16;
}

// Where a ready task stands among those of its priority: the least goes first. The id of a data or
// control task is that of its colour, or of its queue on WSE-3.
int Fabric::task_rank(const Pe& pe, TaskSpace space, int id) const {
  const int other = space == TaskSpace::local ? 0 : 1;
  switch (options_.task_order) {
    case TaskOrder::local_first: return other * 64 + id;
    case TaskOrder::round_robin: return ((id - pe.last_task - 1) & 63) * 2 + other;
    case TaskOrder::highest_first: return (63 - id) * 2 + other;
    case TaskOrder::lowest_first: return id * 2 + other;
    case TaskOrder::random: break;
  }
  std::uint64_t h = options_.seed * 0x9e3779b97f4a7c15ull + pe.index;
  h = (h ^ static_cast<std::uint64_t>(pe.count.tasks) * 64u) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ h >> 29 ^ static_cast<std::uint64_t>(id * 2 + other)) * 0x94d049bb133111ebull;
  return static_cast<int>(h >> 55);
}

// Chooses what an idle main thread does next: high priority before low, then by task_rank().
bool Fabric::pick_task(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  const TaskTable& t = table(pe);
  constexpr int kLow = 1 << 10, kNone = 1 << 20;  // low priority is added to the rank
  int best = kNone, best_id = 0;
  TaskSpace space = TaskSpace::local;
  int queue = -1;
  std::uint32_t ready = pe.local_pending & ~pe.local_blocked;
  bool high_local = (ready & pe.high_tasks) != 0;
  if (high_local) ready &= pe.high_tasks;
  for (; ready; ready &= ready - 1) {
    int id = std::countr_zero(ready);
    if (t.local[static_cast<std::size_t>(id)] == kNone16 &&
        !(id == 29 && (pe.teardown_pending || pe.flush_pending))) {
      const std::string where = pe.program ? first_activation(*pe.program, id) : std::string();
      throw pe_fault(pe, "wse.task.unbound",
                     cat("local task ", id, " is activated but no task is bound to it"))
          .note(where.empty() ? "a comptime block or a timer activates it"
                              : cat("activated at ", where))
          .help("bind one with @bind_local_task");
    }
    int rank = task_rank(pe, TaskSpace::local, id) + (high_local ? 0 : kLow);
    if (rank < best) {
      best = rank;
      best_id = id;
    }
  }
  Wavelet chosen;
  auto consider = [&](int q) {
    InQueue& in = pe.in[static_cast<std::size_t>(q)];
    // What an operation reads is no task's, control wavelets apart.
    if (in.reader != kNone8 && in.count == 0 && in.channel &&
        !in.channel->controls.load(std::memory_order_relaxed))
      return in.channel->peek() != nullptr;
    Wavelet head;
    if (!peek_queue(pe, in, now, head)) return false;
    if (in.reader != kNone8 && !head.control) return true;
    int id = wse3_ ? q : in.color;
    if (pe.color_blocked >> id & 1u) return true;
    if (head.ready > now && options_.timed) {
      next = std::min(next, head.ready);
      return true;
    }
    if (head.control == kMessageEnd) {  // no data task takes it
      if (in.reader != kNone8) return true;
      pop_queue(w, pe, static_cast<std::size_t>(q), now, now);
      next = std::min(next, now + 1);
      return true;
    }
    if (head.control) {
      if (in.reader != kNone8) {
        const Running& reader = pe.core->ops[in.reader];
        const bool takes =
            (reader.a.kind == Cursor::fabin && reader.a.queue == q ? reader.a : reader.b).flags &
            Dsd::kControlTransform;
        if (takes || reader.settings.terminate_on_control ||
            reader.settings.on_control.kind != Completion::none)
          return true;
      }
      int entry = control_entry(pe, in, head.data);
      if (pe.control_blocked >> entry & 1u) return true;
      if (t.control[static_cast<std::size_t>(entry)] == kNone16) {
        if ((head.data >> 16 & 63u) == 31) {  // the payload names no task
          pop_queue(w, pe, static_cast<std::size_t>(q), now, now);
          next = std::min(next, now + 1);
          return true;
        }
        throw pe_fault(pe, "wse.task.control_unbound",
                       cat("a control wavelet of colour ", static_cast<int>(in.color),
                           " names control task ", entry, ", which is not bound"))
            .help("bind it with @bind_control_task, or let the wavelet ignore the CE");
      }
      int rank = task_rank(pe, TaskSpace::control, id) + (pe.high_control >> entry & 1u ? 0 : kLow);
      if (rank < best) {
        best = rank;
        best_id = id;
        space = TaskSpace::control;
        queue = q;
        chosen = head;
      }
      return true;
    }
    if (t.data[static_cast<std::size_t>(id)] == kNone16) return true;
    int rank = task_rank(pe, TaskSpace::queue, id) + (pe.high_data >> id & 1u ? 0 : kLow);
    if (rank < best) {
      best = rank;
      best_id = id;
      space = TaskSpace::queue;
      queue = q;
      chosen = head;
    }
    return true;
  };
  for (std::uint32_t mask = pe.busy_in; mask; mask &= mask - 1) consider(std::countr_zero(mask));
  for (std::uint32_t mask = pe.express_in; mask; mask &= mask - 1) {
    int c = std::countr_zero(mask);
    std::uint8_t q = pe.color_queue[static_cast<std::size_t>(c)];
    if (q == kNone8) continue;
    if (!consider(q)) {
      Channel* ch = channel_of(pe, pe.in[q]);
      if (!ch || ch->held() == 0) pe.express_in &= ~(1u << c);  // the next letter sets it again
      else next = std::min(next, now + 1);
    }
  }
  std::vector<std::uint64_t> args;
  std::uint16_t function = kNone16;
  if (best < kNone) {
    best = best_id;
    pe.last_task = static_cast<std::uint8_t>(best);
    if (queue >= 0) {
      std::uint32_t data = chosen.data;
      std::uint16_t task = space == TaskSpace::control
                               ? t.control[static_cast<std::size_t>(control_entry(
                                     pe, pe.in[static_cast<std::size_t>(queue)], data))]
                               : t.data[static_cast<std::size_t>(best)];
      if (space == TaskSpace::queue && !pe.program->rotations.empty()) {
        const int entry = rotated_entry(pe, queue);
        if (entry >= 0) task = t.control[static_cast<std::size_t>(entry)];
      }
      const TaskBinding& b = pe.program->tasks[task];
      pop_queue(w, pe, static_cast<std::size_t>(queue), now, now);
      function = b.function;
      if (b.args.size() == 1)
        args.push_back(canonical(b.args[0], size_of(b.args[0]) == 4 ? data : data & 0xffffu));
      if (b.args.size() >= 2) {
        args.push_back(canonical(b.args[0], data & 0xffffu));
        args.push_back(canonical(b.args[1], data >> 16));
      }
    } else {
      pe.local_pending &= ~(1u << best);
      if (best == 29 && (pe.teardown_pending || pe.flush_pending) && t.local[29] == kNone16) {
        for (const auto& [q, handler] : pe.program->empty_handlers) {
          if (function == kNone16 && (pe.flush_pending >> q & 1u)) {
            pe.flush_pending = static_cast<std::uint16_t>(pe.flush_pending & ~(1u << q));
            function = handler;
          }
        }
        if (function == kNone16 && !pe.teardown_pending) {
          throw pe_fault(pe, "wse.task.empty_unbound",
                         cat("queue ", std::countr_zero(pe.flush_pending) & 7,
                             " was flushed and has no handler"))
              .help("name one with @set_empty_queue_handler, or bind local task 29");
        }
        for (const auto& [color, handler] : pe.program->teardown_handlers) {
          if (function == kNone16 && (pe.teardown_pending >> color & 1u)) {
            pe.teardown_pending &= ~(1u << color);
            function = handler;
            break;
          }
        }
        if (function == kNone16) {
          throw pe_fault(pe, "wse.task.teardown_unbound",
                         cat("colour ", std::countr_zero(pe.teardown_pending),
                             " entered teardown and has no handler"))
              .help("name one with @set_teardown_handler");
        }
        if (pe.teardown_pending || pe.flush_pending) pe.local_pending |= 1u << 29;
      } else {
        function = pe.program->tasks[t.local[static_cast<std::size_t>(best)]].function;
      }
    }
    pe.current_task = static_cast<std::uint16_t>(best);
    pe.current_space = space;
  } else if (pe.command_function != kNone16) {
    if (pe.command_ready > now) {
      next = std::min(next, pe.command_ready);
      return false;
    }
    function = pe.command_function;
    args = std::move(pe.command_args);
    pe.command_function = kNone16;
    pe.in_command = true;
    pe.current_task = 100;
  } else {
    return false;
  }
  enter(pe, function, args);
  note_task(pe, function, now);
  return true;
}

void Fabric::run_main(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  while (true) {
    if (pe.main_ready > now) {
      // An idle main thread with nothing to do need not wake when its time is up.
      if (pe.main == MainState::idle && !(pe.local_pending & ~pe.local_blocked) && !pe.busy_in &&
          !pe.express_in && pe.command_function == kNone16 && !pe.released)
        w.asleep_until = std::max(w.asleep_until, pe.main_ready);
      else next = std::min(next, pe.main_ready);
      pe.released = false;
      return;
    }
    switch (pe.main) {
      case MainState::idle:
        if (!pick_task(w, pe, now, next)) return;
        if (options_.timed && timing_.task_start > 0) {
          pe.main_ready = now + timing_.task_start;
          if (pe.live_ops || pe.timer_at != kNever) continue;
          // Nothing else works in the PE: the main thread goes on in its own time.
          execute(w, pe, pe.main_ready, next);
          if (pe.main == MainState::in_bulk) return;
          continue;
        }
        break;
      case MainState::in_bulk: return;  // its operation advances in run_ops
      case MainState::in_map:
        if (!continue_map(w, pe, now, next)) {
          if (pe.main == MainState::in_map) return;
        }
        break;
      case MainState::running: break;
    }
    if (pe.main == MainState::running) execute(w, pe, now, next);
    if (pe.main == MainState::in_bulk) return;
    if (pe.main == MainState::running && pe.main_ready <= now) {
      // It waits for a microthread, which is free when an operation has ended, or for the calendar.
      pe.half_done = now > w.now && meets_calendar(pe);
      return;
    }
  }
}

}  // namespace weft::wse
