// SPDX-License-Identifier: Apache-2.0
// The main thread of a PE: picks tasks and interprets their bytecode. Scalar code runs ahead of
// time until it does something that others can see; then the cycles it took must pass first.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "weft/base/error.h"
#include "weft/sim/fault.h"
#include "weft/targets/wse/arith.h"
#include "weft/targets/wse/bulk_loops.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

namespace {

constexpr Cycle kQuantum = 4096;        // cycles that scalar code may run ahead
constexpr std::size_t kMaxDepth = 512;  // calls

std::uint64_t load_scalar(Ty ty, const std::uint8_t* p) {
  switch (size_of(ty)) {
    case 1: return canonical(ty, *p);
    case 2: return canonical(ty, load_bits(p, 2));
    case 4: return canonical(ty, load_bits(p, 4));
    default: {
      std::uint64_t v;
      std::memcpy(&v, p, 8);
      return v;
    }
  }
}
void store_scalar(Ty ty, std::uint8_t* p, std::uint64_t v) {
  std::memcpy(p, &v, static_cast<std::size_t>(size_of(ty)));
}

bool compare(Op op, Ty ty, std::uint64_t a, std::uint64_t b) {
  if (is_float(ty)) {
    double x = to_double(ty, a), y = to_double(ty, b);
    switch (op) {
      case Op::eq: return x == y;
      case Op::ne: return x != y;
      case Op::lt: return x < y;
      case Op::le: return x <= y;
      case Op::gt: return x > y;
      default: return x >= y;
    }
  }
  if (is_signed(ty)) {
    auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
    switch (op) {
      case Op::eq: return x == y;
      case Op::ne: return x != y;
      case Op::lt: return x < y;
      case Op::le: return x <= y;
      case Op::gt: return x > y;
      default: return x >= y;
    }
  }
  switch (op) {
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    case Op::le: return a <= b;
    case Op::gt: return a > b;
    default: return a >= b;
  }
}

}  // namespace

Error Fabric::pe_fault(const Pe& pe, std::string_view code, std::string message) const {
  sim::FaultPlace place;
  place.unit = cat("pe (", pe.x, ", ", pe.y, ")");
  place.cycle = now_;
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
    place.source = fn.name;
    for (auto it = fn.lines.rbegin(); it != fn.lines.rend(); ++it) {
      if (it->pc <= f.pc) {
        std::string file =
            it->file < pe.program->files.size() ? pe.program->files[it->file] : pe.program->name;
        place.source = cat(file, ":", it->line, " (", fn.name, ")");
        break;
      }
    }
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
      if (op == Op::activate) pe.local_pending |= 1u << id;
      else apply(pe.local_blocked);
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
      break;
  }
}

void Fabric::enter(Pe& pe, std::uint16_t function, const std::vector<std::uint64_t>& args) {
  Core& k = core(pe);
  const Function& fn = pe.program->functions[function];
  k.frames.clear();
  pe.sp = 0;
  pe.sp = static_cast<std::uint16_t>(kMemoryBytes - fn.frame_bytes);
  Frame f;
  f.function = function;
  f.sp = static_cast<std::uint16_t>(kMemoryBytes);
  k.frames.push_back(f);
  if (k.regs.size() < fn.regs + 8u) k.regs.resize(fn.regs + 8u);
  if (k.dsds.size() < fn.dsds + 2u) k.dsds.resize(fn.dsds + 2u);
  for (std::size_t i = 0; i < args.size(); ++i) k.regs[i] = args[i];
  pe.main = MainState::running;
  ++pe.count.tasks;
}

void Fabric::end_task(Worker&, Pe& pe) {
  pe.main = MainState::idle;
  pe.in_command = false;
  pe.current_task = kNone16;
}

// Chooses what an idle main thread does next; lowest id first, high priority before low.
bool Fabric::pick_task(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  const TaskTable& t = table(pe);
  int best = 1 << 20;
  TaskSpace space = TaskSpace::local;
  int queue = -1;
  std::uint32_t ready = pe.local_pending & ~pe.local_blocked;
  if (std::uint32_t high = ready & pe.high_tasks) ready = high;
  for (; ready; ready &= ready - 1) {
    int id = std::countr_zero(ready);
    if (t.local[static_cast<std::size_t>(id)] == kNone16 && !(id == 29 && pe.teardown_pending)) {
      throw pe_fault(pe, "wse.task.unbound",
                     cat("local task ", id, " is activated but no task is bound to it"))
          .help("bind one with @bind_local_task");
    }
    best = id;
    break;
  }
  Wavelet chosen;
  auto consider = [&](int q) {
    InQueue& in = pe.in[static_cast<std::size_t>(q)];
    Wavelet head;
    if (!peek_queue(pe, in, now, head)) return false;
    if (in.reader != kNone8 && !head.control) return true;
    int id = wse3_ ? q : in.color;
    if (pe.color_blocked >> id & 1u) return true;
    if (head.ready > now && options_.timed) {
      next = std::min(next, head.ready);
      return true;
    }
    if (head.control) {
      if (in.reader != kNone8) {
        const Running& reader = pe.core->ops[in.reader];
        if (reader.settings.terminate_on_control ||
            reader.settings.on_control.kind != Completion::none)
          return true;
      }
      int entry = static_cast<int>(head.data >> 16 & 63u);
      if (pe.control_blocked >> entry & 1u) return true;
      if (t.control[static_cast<std::size_t>(entry)] == kNone16) {
        if (entry == 31) {  // the payload names no task
          pop_queue(w, pe, static_cast<std::size_t>(q), now, now);
          next = std::min(next, now + 1);
          return true;
        }
        throw pe_fault(pe, "wse.task.control_unbound",
                       cat("a control wavelet of colour ", static_cast<int>(in.color),
                           " names control task ", entry, ", which is not bound"))
            .help("bind it with @bind_control_task, or let the wavelet ignore the CE");
      }
      if (id < best || (id == best && space == TaskSpace::local)) {
        best = id;
        space = TaskSpace::control;
        queue = q;
        chosen = head;
      }
      return true;
    }
    if (t.data[static_cast<std::size_t>(id)] == kNone16) return true;
    if (id < best) {
      best = id;
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
  if (best < 1 << 20) {
    if (queue >= 0) {
      std::uint32_t data = chosen.data;
      bool is_control = space == TaskSpace::control;
      const TaskBinding& b = pe.program->tasks[is_control ? t.control[data >> 16 & 63u]
                                                          : t.data[static_cast<std::size_t>(best)]];
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
      if (best == 29 && pe.teardown_pending && t.local[29] == kNone16) {
        for (const auto& [color, handler] : pe.program->teardown_handlers) {
          if (pe.teardown_pending >> color & 1u) {
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
        if (pe.teardown_pending) pe.local_pending |= 1u << 29;
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
  return true;
}

void Fabric::run_main(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  while (true) {
    if (pe.main_ready > now) {
      // An idle main thread with nothing to do need not wake when its time is up.
      bool idle = pe.main == MainState::idle && !(pe.local_pending & ~pe.local_blocked) &&
                  !pe.busy_in && pe.command_function == kNone16;
      next = std::min(next, pe.main_ready);
      (void)idle;
      return;
    }
    switch (pe.main) {
      case MainState::idle:
        if (!pick_task(w, pe, now, next)) return;
        if (options_.timed && timing_.task_start > 0) {
          pe.main_ready = now + timing_.task_start;
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
    if (pe.main == MainState::running && pe.main_ready <= now) return;  // waits for a microthread
    if (pe.main == MainState::in_bulk) {
      next = std::min(next, now + 1);
      return;
    }
  }
}

bool Fabric::touches_fabric(Pe& pe, const BulkOp& op) const {
  const Core& k = *pe.core;
  const Frame& f = k.frames.back();
  for (const Operand* o : {&op.dst, &op.src0, &op.src1}) {
    DsdKind kind = DsdKind::none;
    if (o->kind == Operand::fifo) return true;
    if (o->kind == Operand::dsd) kind = k.dsds[f.dsd + o->index].kind;
    if (o->kind == Operand::dsr)
      kind = k.dsrs[static_cast<std::size_t>(o->file) * 32u + (o->index & 31u)].dsd.kind;
    if (kind == DsdKind::fabin || kind == DsdKind::fabout || kind == DsdKind::fifo) return true;
  }
  return false;
}

void Fabric::execute(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  Core& k = *pe.core;
  const Program& program = *pe.program;
  const bool timed = options_.timed;
  Cycle acc = 0;
  std::int64_t budget = kQuantum;
  Frame* f = nullptr;
  const Function* fn = nullptr;
  const Insn* code = nullptr;
  std::uint64_t* r = nullptr;
  Dsd* d = nullptr;
  std::uint32_t pc = 0;
  auto reload = [&] {
    f = &k.frames.back();
    fn = &program.functions[f->function];
    code = fn->code.data();
    r = k.regs.data() + f->reg;
    d = k.dsds.data() + f->dsd;
    pc = f->pc;
  };
  auto sleep = [&] {  // the cycles spent so far pass before pc goes on
    f->pc = pc;
    pe.main_ready = now + (timed ? acc : 0);
  };
  reload();
  while (true) {
    if (pc >= fn->code.size())
      throw(f->pc = pc, pe_fault(pe, "wse.code.end",
                                 cat("function ", fn->name, " runs past its ", fn->code.size(),
                                     " instructions")));
    const Insn& i = code[pc];
    const Ty ty = static_cast<Ty>(i.ty);
    ++pe.count.instructions;
    if (--budget < 0 || acc > kQuantum) {
      --pe.count.instructions;
      sleep();
      if (pe.main_ready <= now) pe.main_ready = now + 1;
      return;
    }
    switch (i.op) {
      case Op::nop: break;
      case Op::ldi:
        r[i.a] = static_cast<std::uint64_t>(static_cast<std::int64_t>(i.imm()));
        acc += timing_.alu;
        break;
      case Op::ldc:
        r[i.a] = program.constants[static_cast<std::size_t>(i.imm())];
        acc += timing_.alu;
        break;
      case Op::mov:
        r[i.a] = r[i.b];
        acc += timing_.alu;
        break;
      case Op::add:
        if (is_float(ty)) {
          r[i.a] = float_op(Op::add, ty, r[i.b], r[i.c]);
          acc += timing_.fp_dependent;
        } else {
          r[i.a] = canonical(ty, r[i.b] + r[i.c]);
          acc += timing_.alu;
        }
        break;
      case Op::sub:
        if (is_float(ty)) {
          r[i.a] = float_op(Op::sub, ty, r[i.b], r[i.c]);
          acc += timing_.fp_dependent;
        } else {
          r[i.a] = canonical(ty, r[i.b] - r[i.c]);
          acc += timing_.alu;
        }
        break;
      case Op::mul:
        if (is_float(ty)) {
          r[i.a] = float_op(Op::mul, ty, r[i.b], r[i.c]);
          acc += timing_.fp_dependent;
        } else {
          r[i.a] = canonical(ty, r[i.b] * r[i.c]);
          acc += timing_.alu;
        }
        break;
      case Op::div:
      case Op::rem:
        if (is_float(ty)) {
          r[i.a] = float_op(i.op, ty, r[i.b], r[i.c]);
        } else {
          if (r[i.c] == 0)
            throw(f->pc = pc,
                  pe_fault(pe, "wse.code.division",
                           cat("division of ", static_cast<std::int64_t>(r[i.b]), " by zero")));
          if (is_signed(ty)) {
            auto x = static_cast<std::int64_t>(r[i.b]), y = static_cast<std::int64_t>(r[i.c]);
            std::uint64_t v = y == -1 ? (i.op == Op::div ? 0 - r[i.b] : 0)
                                      : static_cast<std::uint64_t>(i.op == Op::div ? x / y : x % y);
            r[i.a] = canonical(ty, v);
          } else {
            r[i.a] = i.op == Op::div ? r[i.b] / r[i.c] : r[i.b] % r[i.c];
          }
        }
        acc += timing_.div;
        break;
      case Op::band:
        r[i.a] = r[i.b] & r[i.c];
        acc += timing_.alu;
        break;
      case Op::bor:
        r[i.a] = r[i.b] | r[i.c];
        acc += timing_.alu;
        break;
      case Op::bxor:
        r[i.a] = canonical(ty, r[i.b] ^ r[i.c]);
        acc += timing_.alu;
        break;
      case Op::shl: {
        std::uint64_t n = r[i.c];
        r[i.a] = n >= static_cast<std::uint64_t>(bits_of_type(ty)) ? 0 : canonical(ty, r[i.b] << n);
        acc += timing_.alu;
        break;
      }
      case Op::shr: {
        std::uint64_t n = r[i.c];
        auto width = static_cast<std::uint64_t>(bits_of_type(ty));
        if (is_signed(ty))
          r[i.a] = static_cast<std::uint64_t>(static_cast<std::int64_t>(r[i.b]) >>
                                              std::min<std::uint64_t>(n, 63));
        else r[i.a] = n >= width ? 0 : r[i.b] >> n;
        acc += timing_.alu;
        break;
      }
      case Op::neg:
        r[i.a] = is_float(ty) ? float_op(Op::neg, ty, r[i.b], 0) : canonical(ty, 0 - r[i.b]);
        acc += timing_.alu;
        break;
      case Op::bnot:
        r[i.a] = canonical(ty, ~r[i.b]);
        acc += timing_.alu;
        break;
      case Op::lnot:
        r[i.a] = r[i.b] == 0;
        acc += timing_.alu;
        break;
      case Op::eq:
      case Op::ne:
      case Op::lt:
      case Op::le:
      case Op::gt:
      case Op::ge:
        r[i.a] = compare(i.op, ty, r[i.b], r[i.c]);
        acc += timing_.alu;
        break;
      case Op::fma:
        r[i.a] = float_op(Op::fma, ty, r[i.a], r[i.b], r[i.c]);
        acc += timing_.fp_dependent;
        break;
      case Op::cvt:
        r[i.a] = convert(ty, static_cast<Ty>(i.c), r[i.b]);
        acc += timing_.alu;
        break;
      case Op::cast:
        r[i.a] = canonical(ty, r[i.b]);
        acc += timing_.alu;
        break;
      case Op::math1:
        r[i.a] = math_call(static_cast<MathFn>(i.c), ty, r[i.b], 0);
        acc += timing_.math;
        break;
      case Op::math2:
        r[i.a] = math_call(static_cast<MathFn>(i.c), ty, r[i.b], r[i.b + 1u]);
        acc += timing_.math;
        break;
      case Op::ld: {
        std::uint32_t at = static_cast<std::uint16_t>(r[i.b] + i.c);
        f->pc = pc;
        r[i.a] = load_scalar(ty, span(pe, at, static_cast<std::uint32_t>(size_of(ty))));
        acc += timing_.mem;
        break;
      }
      case Op::st: {
        std::uint32_t at = static_cast<std::uint16_t>(r[i.b] + i.c);
        f->pc = pc;
        store_scalar(ty, span(pe, at, static_cast<std::uint32_t>(size_of(ty))), r[i.a]);
        acc += timing_.mem;
        break;
      }
      case Op::ldx: {
        auto n = static_cast<std::uint32_t>(size_of(ty));
        std::uint32_t at = static_cast<std::uint16_t>(r[i.b] + r[i.c] * n);
        f->pc = pc;
        r[i.a] = load_scalar(ty, span(pe, at, n));
        acc += timing_.mem;
        break;
      }
      case Op::stx: {
        auto n = static_cast<std::uint32_t>(size_of(ty));
        std::uint32_t at = static_cast<std::uint16_t>(r[i.b] + r[i.c] * n);
        f->pc = pc;
        store_scalar(ty, span(pe, at, n), r[i.a]);
        acc += timing_.mem;
        break;
      }
      case Op::ldg:
        r[i.a] = load_scalar(ty, span(pe, static_cast<std::uint16_t>(i.imm()),
                                      static_cast<std::uint32_t>(size_of(ty))));
        acc += timing_.mem;
        break;
      case Op::stg:
        store_scalar(
            ty,
            span(pe, static_cast<std::uint16_t>(i.imm()), static_cast<std::uint32_t>(size_of(ty))),
            r[i.a]);
        acc += timing_.mem;
        break;
      case Op::copy:
        f->pc = pc;
        if (i.c) {
          span(pe, static_cast<std::uint16_t>(r[i.a]), i.c);
          span(pe, static_cast<std::uint16_t>(r[i.b]), i.c);
          std::memmove(pe.memory + static_cast<std::uint16_t>(r[i.a]),
                       pe.memory + static_cast<std::uint16_t>(r[i.b]), i.c);
        }
        acc += timing_.mem + i.c / 4;
        break;
      case Op::fill:
        f->pc = pc;
        if (i.c)
          std::memset(span(pe, static_cast<std::uint16_t>(r[i.a]), i.c),
                      static_cast<int>(r[i.b] & 0xffu), i.c);
        acc += timing_.mem + i.c / 4;
        break;
      case Op::frame:
        r[i.a] = static_cast<std::uint16_t>(pe.sp + i.imm());
        acc += timing_.alu;
        break;
      case Op::jmp:
        pc = static_cast<std::uint32_t>(i.imm());
        acc += timing_.branch_taken;
        continue;
      case Op::jz:
      case Op::jnz:
        if ((r[i.a] == 0) == (i.op == Op::jz)) {
          pc = static_cast<std::uint32_t>(i.imm());
          acc += timing_.branch_taken;
          continue;
        }
        acc += timing_.branch_not;
        break;
      case Op::call:
      case Op::calli: {
        std::uint32_t target = i.c;
        f->pc = pc;
        if (i.op == Op::calli) {
          if (r[i.c] == 0 || r[i.c] > program.functions.size())
            throw pe_fault(
                pe, "wse.code.pointer",
                cat("call through the pointer value ", r[i.c], ", which is no function"));
          target = static_cast<std::uint32_t>(r[i.c] - 1);
        }
        const Function& callee = program.functions[target];
        if (k.frames.size() >= kMaxDepth)
          throw pe_fault(pe, "wse.code.depth", cat("more than ", kMaxDepth, " nested calls"));
        if (pe.sp < program.data_bytes + callee.frame_bytes) {
          throw pe_fault(pe, "wse.memory.stack",
                         cat("the stack of ", callee.frame_bytes, " bytes for ", callee.name,
                             " runs into the data below ", program.data_bytes));
        }
        f->pc = pc + 1;
        Frame g;
        g.function = static_cast<std::uint16_t>(target);
        g.reg = f->reg + i.a;
        g.dsd = f->dsd + i.b;
        g.sp = pe.sp;
        pe.sp = static_cast<std::uint16_t>(pe.sp - callee.frame_bytes);
        if (k.regs.size() < g.reg + callee.regs + 8u) k.regs.resize(g.reg + callee.regs + 64u);
        if (k.dsds.size() < g.dsd + callee.dsds + 2u) k.dsds.resize(g.dsd + callee.dsds + 8u);
        k.frames.push_back(g);
        acc += timing_.call;
        reload();
        continue;
      }
      case Op::ret: {
        acc += timing_.call;
        pe.sp = f->sp;
        k.frames.pop_back();
        if (k.frames.empty()) {
          end_task(w, pe);
          pe.main_ready = now + (timed ? acc : 0);
          return;
        }
        if (k.map && k.map->in_call && k.frames.size() == k.map->depth) {
          pe.main = MainState::in_map;
          pe.main_ready = now + (timed ? acc : 0);
          if (!timed || acc == 0) {
            if (!continue_map(w, pe, now, next)) return;
            reload();
            continue;
          }
          return;
        }
        reload();
        continue;
      }
      case Op::trap:
        throw(f->pc = pc,
              pe_fault(pe, "wse.code.trap", program.strings[static_cast<std::size_t>(i.imm())]));
      case Op::check:
        acc += timing_.alu;
        if (r[i.a] == 0)
          throw(f->pc = pc, pe_fault(pe, "wse.code.assert",
                                     cat("@assert failed: ",
                                         program.strings[static_cast<std::size_t>(i.imm())])));
        break;
      case Op::activate:
      case Op::block:
      case Op::unblock:
        if (timed && acc > 0) return sleep();
        task_bit(pe, i.op, static_cast<TaskSpace>(i.ty), i.imm());
        acc += timing_.task_op;
        break;
      case Op::activater:
      case Op::blockr:
      case Op::unblockr:
        if (timed && acc > 0) return sleep();
        task_bit(pe,
                 i.op == Op::activater ? Op::activate
                 : i.op == Op::blockr  ? Op::block
                                       : Op::unblock,
                 static_cast<TaskSpace>(i.ty), static_cast<int>(r[i.a] & 63u));
        acc += timing_.task_op;
        break;
      case Op::dconst:
        d[i.a] = program.dsds[static_cast<std::size_t>(i.imm())];
        acc += timing_.alu;
        break;
      case Op::dmov:
        d[i.a] = d[i.b];
        acc += timing_.alu;
        break;
      case Op::dload: {
        f->pc = pc;
        std::memcpy(static_cast<void*>(&d[i.a]),
                    span(pe, static_cast<std::uint16_t>(r[i.b] + i.c), sizeof(Dsd)), sizeof(Dsd));
        acc += timing_.mem;
        break;
      }
      case Op::dstore: {
        f->pc = pc;
        std::memcpy(span(pe, static_cast<std::uint16_t>(r[i.b] + i.c), sizeof(Dsd)), &d[i.a],
                    sizeof(Dsd));
        acc += timing_.mem;
        break;
      }
      case Op::dset: {
        Dsd& x = d[i.a];
        auto v = static_cast<std::uint16_t>(r[i.b]);
        switch (static_cast<DsdField>(i.c)) {
          case DsdField::base: x.base = v; break;
          case DsdField::length: x.extent[3] = v; break;
          case DsdField::stride: x.stride[3] = static_cast<std::int16_t>(v); break;
          case DsdField::color: x.color = static_cast<std::uint8_t>(v); break;
          case DsdField::queue: x.queue = static_cast<std::uint8_t>(v); break;
          case DsdField::extent0: x.extent[0] = v; break;
          case DsdField::extent1: x.extent[1] = v; break;
          case DsdField::extent2: x.extent[2] = v; break;
          case DsdField::stride0: x.stride[0] = static_cast<std::int16_t>(v); break;
          case DsdField::stride1: x.stride[1] = static_cast<std::int16_t>(v); break;
          case DsdField::stride2: x.stride[2] = static_cast<std::int16_t>(v); break;
          case DsdField::element_stride:
            x.stride[3] = static_cast<std::int16_t>(static_cast<std::int16_t>(v) *
                                                    std::max<int>(1, x.elem_bytes));
            break;
        }
        acc += timing_.alu;
        break;
      }
      case Op::dget: {
        const Dsd& x = d[i.b];
        auto s = [](std::int16_t v) {
          return static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
        };
        std::uint64_t v = 0;
        switch (static_cast<DsdField>(i.c)) {
          case DsdField::base: v = x.base; break;
          case DsdField::length: v = x.extent[3]; break;
          case DsdField::stride: v = s(x.stride[3]); break;
          case DsdField::color: v = x.color; break;
          case DsdField::queue: v = x.queue; break;
          case DsdField::extent0: v = x.extent[0]; break;
          case DsdField::extent1: v = x.extent[1]; break;
          case DsdField::extent2: v = x.extent[2]; break;
          case DsdField::stride0: v = s(x.stride[0]); break;
          case DsdField::stride1: v = s(x.stride[1]); break;
          case DsdField::stride2: v = s(x.stride[2]); break;
          case DsdField::element_stride:
            v = s(static_cast<std::int16_t>(x.stride[3] / std::max<int>(1, x.elem_bytes)));
            break;
        }
        r[i.a] = v;
        acc += timing_.alu;
        break;
      }
      case Op::dadd:
        d[i.a].base =
            static_cast<std::uint16_t>(d[i.a].base + static_cast<std::int64_t>(r[i.b]) * i.c);
        acc += timing_.alu;
        break;
      case Op::dsrload: {
        const DsrLoad& load = program.dsr_loads[static_cast<std::size_t>(i.imm())];
        load_dsr(pe, load, d[load.dsd]);
        acc += timing_.dsr_load;
        break;
      }
      case Op::bulk: {
        const BulkOp& op = program.bulks[static_cast<std::size_t>(i.imm())];
        if (timed && acc > 0 && touches_fabric(pe, op)) return sleep();
        f->pc = pc;
        bool wait = false;
        bool started = start_bulk(w, pe, i, now, acc, wait);
        if (!started) {  // the microthread is taken: try again when something has moved
          if (pe.live_ops == 0) next = std::min(next, now + 1);
          return;
        }
        f->pc = pc + 1;
        if (pe.main == MainState::in_bulk) return;
        if (pe.live_ops) next = std::min(next, now + 1);
        if (pe.main_ready > now) {  // a synchronous operation of no elements
          return;
        }
        reload();
        continue;
      }
      case Op::map:
        if (timed && acc > 0) return sleep();
        f->pc = pc;
        start_map(pe, i);
        if (!continue_map(w, pe, now, next)) return;
        reload();
        continue;
      case Op::fiforead: {
        const Fifo& info = program.fifos[static_cast<std::size_t>(i.imm())];
        k.fifos[static_cast<std::size_t>(i.imm())].count = static_cast<std::uint16_t>(r[i.a]);
        (void)info;
        acc += timing_.alu;
        break;
      }
      case Op::fifowrite: {
        FifoState& s = k.fifos[static_cast<std::size_t>(i.imm())];
        s.count =
            static_cast<std::uint16_t>(s.capacity - std::min<std::uint64_t>(s.capacity, r[i.a]));
        acc += timing_.alu;
        break;
      }
      case Op::random16: {
        std::uint32_t x =
            pe.prng & 0x7fffffu;  // 23-bit LFSR, x^23 + x^18 + 1, Galois form, 128 steps a call
        for (int s = 0; s < 128; ++s) x = x >> 1 ^ (x & 1u ? 0x420000u : 0u);
        pe.prng = x ? x : 1u;
        r[i.a] = pe.prng & 0xffffu;
        acc += timing_.alu;
        break;
      }
      case Op::setprng:
        pe.prng = static_cast<std::uint32_t>(0xdeadbeefu ^ (r[i.a] * 0x9e3779b9u));
        acc += timing_.alu;
        break;
      case Op::tscread:
        if (timed && acc > 0) return sleep();
        r[i.a] = static_cast<std::uint64_t>(pe.tsc_on ? pe.tsc_value + (now - pe.tsc_base)
                                                      : pe.tsc_value) &
                 0xffffffffffffull;
        acc += timing_.alu;
        break;
      case Op::tscctl:
        if (timed && acc > 0) return sleep();
        if (i.imm() == 0 && pe.tsc_on) {
          pe.tsc_value += now - pe.tsc_base;
          pe.tsc_on = false;
        } else if (i.imm() == 1 && !pe.tsc_on) {
          pe.tsc_base = now;
          pe.tsc_on = true;
        } else if (i.imm() == 2) {
          pe.tsc_value = 0;
          pe.tsc_base = now;
        }
        acc += timing_.alu;
        break;
      case Op::coord:
        switch (i.imm()) {
          case 0: r[i.a] = static_cast<std::uint64_t>(pe.x); break;
          case 1: r[i.a] = static_cast<std::uint64_t>(pe.y); break;
          case 2: r[i.a] = static_cast<std::uint64_t>(width_); break;
          default: r[i.a] = static_cast<std::uint64_t>(height_); break;
        }
        acc += timing_.alu;
        break;
      case Op::print:
        if (timed && acc > 0) return sleep();
        print(w, pe, i,
              static_cast<PrintKind>(i.b) == PrintKind::text ||
                      static_cast<PrintKind>(i.b) == PrintKind::line
                  ? 0
                  : r[i.a],
              now);
        acc += timing_.task_op;
        break;
      case Op::nextcmd:
        if (timed && acc > 0) return sleep();
        if (!pe.command_free) {
          pe.command_free = true;
          if (commands_open_.fetch_sub(1) == 1) host_event_ = true;
        }
        acc += timing_.task_op;
        break;
      case Op::config: {
        if (timed && acc > 0) return sleep();
        f->pc = pc;
        std::uint64_t v = configure(pe, static_cast<ConfigFn>(i.c), r + i.b);
        r[i.a] = v;
        acc += timing_.task_op;
        break;
      }
      case Op::flush:
        if (timed && acc > 0) return sleep();
        if (static_cast<std::size_t>(i.imm()) < pe.out.size() &&
            pe.out[static_cast<std::size_t>(i.imm())].count) {
          f->pc = pc;
          pe.main_ready = now + 1;
          return;
        }
        acc += timing_.task_op;
        break;
    }
    ++pc;
  }
}

}  // namespace weft::wse
