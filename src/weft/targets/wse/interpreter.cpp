// SPDX-License-Identifier: Apache-2.0
// The main thread of a PE: interprets the bytecode of its tasks. Scalar code runs ahead of
// time until it does something that others can see; then the cycles it took must pass first.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "weft/base/error.h"
#include "weft/sim/delays.h"
#include "weft/sim/fault.h"
#include "weft/targets/wse/arith.h"
#include "weft/targets/wse/bulk_loops.h"
#include "weft/targets/wse/debug.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

#ifdef __GNUC__
#define WEFT_WSE_INLINE __attribute__((always_inline))
#else
#define WEFT_WSE_INLINE
#endif

namespace weft::wse {

namespace {
// Whether these bytes of a PE's memory can be a descriptor. What is not would lead the simulator
// out of its own tables.
bool possible(const Program& program, const Dsd& d) {
  if (d.kind > DsdKind::circbuf) return false;
  if (d.color != kNone8 && d.color >= kColors) return false;
  if (d.kind == DsdKind::fifo) return d.queue < program.fifos.size();
  return d.queue == kNone8 || d.queue < 8;
}

constexpr Cycle kQuantum = 4096;         // cycles that scalar code may run ahead
constexpr std::int64_t kLong = 100'000;  // interpreted instructions after which native code pays
constexpr std::size_t kMaxDepth = 512;   // calls

template <class T>
std::uint64_t load_as(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  if constexpr (std::is_signed_v<T>) return static_cast<std::uint64_t>(std::int64_t{v});
  else return v;
}
inline std::uint64_t load_scalar(Ty ty, const std::uint8_t* p) {
  switch (ty) {
    case Ty::i8: return load_as<std::int8_t>(p);
    case Ty::i16: return load_as<std::int16_t>(p);
    case Ty::i32: return load_as<std::int32_t>(p);
    case Ty::u8: return load_as<std::uint8_t>(p);
    case Ty::b1: return *p & 1u;
    case Ty::u16:
    case Ty::f16:
    case Ty::bf16:
    case Ty::cb16: return load_as<std::uint16_t>(p);
    case Ty::u32:
    case Ty::f32: return load_as<std::uint32_t>(p);
    case Ty::i64:
    case Ty::u64: break;
  }
  return load_as<std::uint64_t>(p);
}
inline void store_scalar(Ty ty, std::uint8_t* p, std::uint64_t v) {
  switch (size_of(ty)) {
    case 1: *p = static_cast<std::uint8_t>(v); return;
    case 2: std::memcpy(p, &v, 2); return;
    case 4: std::memcpy(p, &v, 4); return;
    default: std::memcpy(p, &v, 8);
  }
}

bool compare_floats(Op op, Ty ty, std::uint64_t a, std::uint64_t b) {
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
/// Canonical integers compare as signed numbers of 64 bits, u64 apart.
inline bool less(Ty ty, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t flip = ty == Ty::u64 ? std::uint64_t{1} << 63 : 0;
  return static_cast<std::int64_t>(a ^ flip) < static_cast<std::int64_t>(b ^ flip);
}

/// The instructions that a run of the main thread may still do; what it has done is booked when it
/// ends or begins anew.
class Budget {
 public:
  Budget(Pe& pe, std::int64_t& left) : pe_(pe), out_(left), left_(left), from_(left) {}
  ~Budget() {
    book();
    out_ = left_;
  }
  Budget(const Budget&) = delete;
  std::int64_t left() const { return left_; }
  void set(std::int64_t left) { left_ = left; }
  void renew(std::int64_t n) {
    book();
    left_ = from_ = n;
  }
  void book() {
    pe_.count.instructions += from_ - left_;
    from_ = left_;
  }
  bool take() { return --left_ >= 0; }
  void give_back() { ++left_; }

 private:
  Pe& pe_;
  std::int64_t& out_;
  std::int64_t left_, from_;
};

}  // namespace

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

const NativeProgram* Fabric::make_native(const Pe& pe, NativeSlot& slot, std::int64_t ran) {
  std::int64_t total = slot.interpreted.fetch_add(ran, std::memory_order_relaxed) + ran;
  if (options_.engine == Engine::automatic && total < kLong) return nullptr;
  sim::hand_over();
  std::lock_guard lock(native_mutex_);
  if (slot.tried) return slot.code.load(std::memory_order_acquire);
  slot.tried = true;
  slot.closed.store(true, std::memory_order_relaxed);  // never asked again
  const jit::Availability& llvm = jit::llvm();
  if (!llvm.available) {
    native_reason_ = llvm.reason;
    return nullptr;
  }
  slot.owned = std::make_unique<NativeProgram>(
      compile_native(*pe.program, timing_, kQuantum, options_.engine == Engine::native));
  if (!slot.owned->code) return nullptr;  // nothing in it is worth it
  ++native_programs_;
  slot.code.store(slot.owned.get(), std::memory_order_release);
  return slot.owned.get();
}

void Fabric::execute(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  std::int64_t budget = kQuantum;
  interpret(w, pe, now, next, budget);
  native_of(pe, kQuantum - budget);
}

void Fabric::interpret(Worker& w, Pe& pe, Cycle now, Cycle& next, std::int64_t& budget) {
  if (debug_) interpret_as<true>(w, pe, now, next, budget);
  else interpret_as<false>(w, pe, now, next, budget);
}

template <bool kDebug>
void Fabric::interpret_as(Worker& w, Pe& pe, Cycle now, Cycle& next, std::int64_t& steps) {
  Budget budget(pe, steps);
  Core& k = *pe.core;
  const Program& program = *pe.program;
  const bool timed = options_.timed;
  Cycle acc = 0;
  const NativeProgram* native = native_of(pe, 0);
  Frame* f = nullptr;
  const Function* fn = nullptr;
  const Insn* code = nullptr;
  std::uint64_t* r = nullptr;
  Dsd* d = nullptr;
  std::uint32_t pc = 0, end = 0;
  auto reload = [&]() WEFT_WSE_INLINE {
    f = &k.frames.back();
    fn = &program.functions[f->function];
    code = fn->code.data();
    end = static_cast<std::uint32_t>(fn->code.size());
    r = k.regs.data() + f->reg;
    d = k.dsds.data() + f->dsd;
    pc = f->pc;
  };
  auto sleep = [&]() WEFT_WSE_INLINE {  // the cycles spent so far pass before pc goes on
    budget.give_back();                 // how often an instruction is put off depends on the visits
    f->pc = pc;
    pe.main_ready = now + (timed ? acc : 0);
  };
  // Whether the cycles spent so far must pass in the calendar. Where nothing else works in the PE
  // the main thread's own time goes on alone: what it starts carries the later cycle.
  struct OwnTime {
    Pe& pe;
    ~OwnTime() { pe.main_time = 0; }
  } own_time{pe};
  auto must_sleep = [&]() WEFT_WSE_INLINE {
    if (!timed || acc == 0) return false;
    if (pe.live_ops != 0 || pe.timer_at != kNever || now + acc - pe.accounted > kQuantum)
      return true;
    now += acc;
    acc = 0;
    budget.renew(kQuantum);
    pe.main_time = now;
    return false;
  };
  // Before what others can see: the calendar must have come to this cycle.
  auto must_meet = [&] { return timed && (acc > 0 || now > w.now); };
  reload();
  while (true) {
    if (pc >= end) [[unlikely]]
      throw(f->pc = pc, pe_fault(pe, "wse.code.end",
                                 cat("function ", fn->name, " runs past its ", fn->code.size(),
                                     " instructions")));
    if (!kDebug && native) {
      const NativeProgram::Entry& entry = native->functions[f->function];
      if (entry.run && entry.leader[pc]) {
        NativeState s;
        s.regs = r;
        s.memory = pe.memory;
        s.memory_bytes = pe.memory_bytes;
        s.pc = pc;
        s.cycles = acc;
        s.budget = budget.left();
        s.sp = pe.sp;
        s.place[0] = static_cast<std::uint64_t>(pe.x);
        s.place[1] = static_cast<std::uint64_t>(pe.y);
        s.place[2] = static_cast<std::uint64_t>(width_);
        s.place[3] = static_cast<std::uint64_t>(height_);
        entry.run(&s);
        pc = static_cast<std::uint32_t>(s.pc);
        acc = s.cycles;
        budget.set(s.budget);
        if (pc >= end) continue;
      }
    }
    const Insn& i = code[pc];
    const Ty ty = static_cast<Ty>(i.ty);
    if (!budget.take() || acc > kQuantum) {
      sleep();
      if (pe.main_ready <= now) pe.main_ready = now + 1;
      return;
    }
    if constexpr (kDebug) {
      budget.book();
      f->pc = pc;
      debug_->before(pe, f->function, pc, now + acc);
    }
    switch (i.op) {
      case Op::nop: break;
      case Op::ldi:
        r[i.a] = static_cast<std::uint64_t>(static_cast<std::int64_t>(i.imm()));
        acc += timing_.folded;
        break;
      case Op::ldc:
        r[i.a] = program.constants[static_cast<std::size_t>(i.imm())];
        acc += timing_.folded;
        break;
      case Op::mov:
        r[i.a] = r[i.b];
        acc += timing_.folded;
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
        r[i.a] = is_float(ty) ? compare_floats(i.op, ty, r[i.b], r[i.c]) : r[i.b] == r[i.c];
        acc += timing_.alu;
        break;
      case Op::ne:
        r[i.a] = is_float(ty) ? compare_floats(i.op, ty, r[i.b], r[i.c]) : r[i.b] != r[i.c];
        acc += timing_.alu;
        break;
      case Op::lt:
        r[i.a] = is_float(ty) ? compare_floats(i.op, ty, r[i.b], r[i.c]) : less(ty, r[i.b], r[i.c]);
        acc += timing_.alu;
        break;
      case Op::le:
        r[i.a] =
            is_float(ty) ? compare_floats(i.op, ty, r[i.b], r[i.c]) : !less(ty, r[i.c], r[i.b]);
        acc += timing_.alu;
        break;
      case Op::gt:
        r[i.a] = is_float(ty) ? compare_floats(i.op, ty, r[i.b], r[i.c]) : less(ty, r[i.c], r[i.b]);
        acc += timing_.alu;
        break;
      case Op::ge:
        r[i.a] =
            is_float(ty) ? compare_floats(i.op, ty, r[i.b], r[i.c]) : !less(ty, r[i.b], r[i.c]);
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
        const std::uint32_t reg = f->reg + i.a, dsd = f->dsd + i.b;
        Frame& g = k.frames.add(arena_);  // f may move
        g.function = static_cast<std::uint16_t>(target);
        g.reg = reg;
        g.dsd = dsd;
        g.sp = pe.sp;
        pe.sp = static_cast<std::uint16_t>(pe.sp - callee.frame_bytes);
        if (k.regs.size() < reg + callee.regs + 8u) k.regs.resize(reg + callee.regs + 64u, arena_);
        if (k.dsds.size() < dsd + callee.dsds + 2u) k.dsds.resize(dsd + callee.dsds + 8u, arena_);
        if (i.ty != kInlined) acc += timing_.call;
        reload();
        continue;
      }
      case Op::ret: {
        // A task ends with its last instruction.
        if (i.ty != kInlined && k.frames.size() > 1) acc += timing_.call;
        pe.sp = f->sp;
        k.frames.pop_back();
        if (k.frames.empty()) {
          end_task(w, pe);
          if (trace_) [[unlikely]]
            trace_task(pe, now + (timed ? acc : 0));
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
        if (must_sleep()) return sleep();
        task_bit(pe, i.op, static_cast<TaskSpace>(i.ty), i.imm());
        acc += timing_.task_op;
        break;
      case Op::activater:
      case Op::blockr:
      case Op::unblockr:
        if (must_sleep()) return sleep();
        task_bit(pe,
                 i.op == Op::activater ? Op::activate
                 : i.op == Op::blockr  ? Op::block
                                       : Op::unblock,
                 static_cast<TaskSpace>(i.ty), static_cast<int>(r[i.a] & 63u));
        acc += timing_.task_op;
        break;
      case Op::dconst:
        d[i.a] = program.dsds[static_cast<std::size_t>(i.imm())];
        acc += timing_.folded;
        break;
      case Op::dmov:
        d[i.a] = d[i.b];
        acc += timing_.folded;
        break;
      case Op::dload: {
        f->pc = pc;
        std::memcpy(static_cast<void*>(&d[i.a]),
                    span(pe, static_cast<std::uint16_t>(r[i.b] + i.c), sizeof(Dsd)), sizeof(Dsd));
        if (!possible(program, d[i.a]))
          throw pe_fault(pe, "wse.dsd.damaged",
                         cat("the bytes at address ", static_cast<std::uint16_t>(r[i.b] + i.c),
                             " are no descriptor: something has overwritten it"))
              .help("SdkRuntime(check_bounds=True) finds operations that leave their variable");
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
          case DsdField::color:
            f->pc = pc;
            if (v >= kColors)
              throw pe_fault(pe, "wse.color.range",
                             cat("a descriptor gets colour ", v, "; there are ", kColors));
            x.color = static_cast<std::uint8_t>(v);
            break;
          case DsdField::queue: x.queue = static_cast<std::uint8_t>(v); break;
          case DsdField::extent0: x.extent[0] = v; break;
          case DsdField::extent1: x.extent[1] = v; break;
          case DsdField::extent2: x.extent[2] = v; break;
          case DsdField::stride0: x.stride[0] = static_cast<std::int16_t>(v); break;
          case DsdField::stride1: x.stride[1] = static_cast<std::int16_t>(v); break;
          case DsdField::stride2: x.stride[2] = static_cast<std::int16_t>(v); break;
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
        k.dsr_loaded = now + acc - 1;
        break;
      }
      case Op::bulk: {
        const BulkOp& op = program.bulks[static_cast<std::size_t>(i.imm())];
        const bool fabric = touches_fabric(pe, op);
        if (fabric && must_sleep()) return sleep();
        f->pc = pc;
        bool wait = false;
        const std::uint32_t live = pe.live_ops;
        Cycle cost = acc;  // a copy, so that `acc` stays in a register
        bool started = start_bulk(w, pe, i, now, cost, wait);
        acc = cost;
        if (!started) {  // the microthread is taken: try again when something has moved
          budget.give_back();
          if (pe.live_ops == 0) next = std::min(next, now + 1);
          if (now > pe.accounted) pe.main_ready = now;
          return;
        }
        f->pc = pc + 1;
        if (pe.main == MainState::in_bulk) {
          pe.main_ready = std::max(pe.main_ready, now);
          next = std::min(next, now + 1);
          return;
        }
        if (std::uint32_t fresh = pe.live_ops & ~live)
          next = std::min(
              next,
              std::max(now + 1, k.ops[static_cast<std::size_t>(std::countr_zero(fresh))].ready));
        else if (pe.live_ops && fabric) next = std::min(next, now + 1);  // a fifo has changed
        if (pe.main_ready > now) {  // a synchronous operation of no elements
          return;
        }
        reload();
        continue;
      }
      case Op::map:
        if (must_meet()) return sleep();
        f->pc = pc;
        start_map(pe, i);
        if (!continue_map(w, pe, now, next)) return;
        reload();
        continue;
      case Op::fiforead: {
        const Fifo& info = program.fifos[static_cast<std::size_t>(i.imm())];
        k.fifos[static_cast<std::size_t>(i.imm())].count = static_cast<std::uint16_t>(r[i.a]);
        (void)info;
        pe.released = true;
        acc += timing_.alu;
        break;
      }
      case Op::fifowrite: {
        FifoState& s = k.fifos[static_cast<std::size_t>(i.imm())];
        s.count =
            static_cast<std::uint16_t>(s.capacity - std::min<std::uint64_t>(s.capacity, r[i.a]));
        pe.released = true;
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
        if (must_sleep()) return sleep();
        r[i.a] = static_cast<std::uint64_t>(pe.tsc_on ? pe.tsc_value + (now - pe.tsc_base)
                                                      : pe.tsc_value) &
                 0xffffffffffffull;
        acc += timing_.alu;
        break;
      case Op::tscctl:
        if (must_sleep()) return sleep();
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
        if (must_meet()) return sleep();
        print(w, pe, i,
              static_cast<PrintKind>(i.b) == PrintKind::text ||
                      static_cast<PrintKind>(i.b) == PrintKind::line
                  ? 0
                  : r[i.a],
              now);
        acc += timing_.task_op;
        break;
      case Op::nextcmd:
        if (must_meet()) return sleep();
        if (!pe.command_free) {
          pe.command_free = true;
          if (commands_open_.fetch_sub(1) == 1) host_event_ = true;
        }
        acc += timing_.task_op;
        break;
      case Op::config: {
        if (must_meet()) return sleep();
        f->pc = pc;
        std::uint64_t v = configure(pe, static_cast<ConfigFn>(i.c), r + i.b);
        pe.released = true;
        r[i.a] = v;
        acc += timing_.task_op;
        break;
      }
    }
    ++pc;
  }
}

}  // namespace weft::wse
