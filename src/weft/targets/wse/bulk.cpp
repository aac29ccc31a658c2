// SPDX-License-Identifier: Apache-2.0
// DSD operations begin: operands become cursors; operations on memory alone run at once and cost
// time, operations with a fabric operand go on in progress.cpp.
#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/targets/wse/arith.h"
#include "weft/targets/wse/bulk_loops.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

namespace {
constexpr std::uint8_t kMainSlot = 15;

int source_bytes(Bulk code, int which) {
  const BulkInfo& info = bulk_info(code);
  if (which == 0 && (code == Bulk::faddhs || code == Bulk::fmachs)) return 4;
  if (which == 1 && (code == Bulk::fscales)) return 2;
  return info.src_bytes;
}

bool uses_dsrs(const Program& p) {
  auto dsr = [](const Operand& o) { return o.kind == Operand::dsr; };
  auto in_map = [&](const MapOp& m) {
    return dsr(m.out) ||
           std::any_of(m.inputs.begin(), m.inputs.end(), [&](auto& in) { return dsr(in.operand); });
  };
  return !p.dsr_loads.empty() || !p.initial_dsrs.empty() ||
         std::any_of(p.bulks.begin(), p.bulks.end(),
                     [&](auto& b) { return dsr(b.dst) || dsr(b.src0) || dsr(b.src1); }) ||
         std::any_of(p.maps.begin(), p.maps.end(), in_map);
}

bool is_fabric(const Cursor& c) { return c.kind == Cursor::fabin || c.kind == Cursor::fabout; }
}  // namespace

Core& Fabric::core(Pe& pe) { return *pe.core; }

// What visits read lies in one piece behind the core, which fetch.h asks for at once; registers, of
// which most tasks use few, lie behind that.
void Fabric::make_home(Pe& pe) {
  const Program& program = *pe.program;
  std::size_t in = 0, out = 0;  // queues that the program names
  for (const QueueInit& q : program.queues) {
    std::size_t& n = q.output ? out : in;
    n = std::max(n, q.queue + std::size_t{1});
  }
  for (const Dsd& d : program.dsds) {
    if ((d.kind != DsdKind::fabin && d.kind != DsdKind::fabout) || d.queue >= 8) continue;
    std::size_t& n = d.kind == DsdKind::fabout ? out : in;
    n = std::max(n, d.queue + std::size_t{1});
  }
  pe.core.reset(arena_.make<Core>());
  Core& k = *pe.core;
  pe.in.reserve(in, arena_);
  pe.out.reserve(out, arena_);
  k.frames.reserve(4, arena_);
  k.dsds.resize(4, arena_);
  const std::uint32_t bytes =
      std::min<std::uint32_t>(std::max<std::uint32_t>(program.data_bytes, 16), kMemoryBytes);
  pe.memory = static_cast<std::uint8_t*>(arena_.allocate(bytes, 64));
  std::memset(pe.memory, 0, bytes);
  pe.memory_bytes = bytes;
  std::size_t regs = 8;  // of a task and a function that it calls
  for (const Function& f : program.functions) regs = std::max<std::size_t>(regs, 2u * f.regs + 8u);
  k.regs.resize(std::min<std::size_t>(regs, 32), arena_);
  k.ops.reserve(arena_);
  k.fifos.resize(program.fifos.size(), arena_);
  for (std::size_t i = 0; i < k.fifos.size(); ++i) {
    const Fifo& fifo = program.fifos[i];
    k.fifos[i].capacity =
        static_cast<std::uint16_t>(fifo.bytes / std::max<int>(1, fifo.elem_bytes));
  }
  if (uses_dsrs(program)) k.dsrs.resize(96);
  for (const DsrLoad& load : program.initial_dsrs) load_dsr(pe, load, program.dsds[load.dsd]);
  pe.home = &k + 1;
  const auto home = reinterpret_cast<std::uintptr_t>(pe.home);
  const auto end = reinterpret_cast<std::uintptr_t>(pe.memory) + std::min(bytes, kHotMemory);
  // Zero where a new chunk of the arena lies between.
  pe.home_bytes = static_cast<std::uint16_t>(end > home && end - home < kHomeMost ? end - home : 0);
}

// Objects are the module-level variables; the stack and constants without a name are not judged.
void Fabric::check_operand(const Pe& pe, const Cursor& c, const BulkOp& op, std::uint32_t n) const {
  if ((c.kind != Cursor::mem && c.kind != Cursor::mem4) || n == 0) return;
  const Symbol* object = nullptr;
  std::int32_t low = c.address, high = c.address;
  if (c.kind == Cursor::mem) {
    const std::int32_t span = static_cast<std::int32_t>(n - 1) * c.stride;
    (span < 0 ? low : high) += span;
  } else {
    for (std::size_t k = 0; k < 4; ++k) {
      const std::int32_t count =
          static_cast<std::int32_t>(std::min<std::uint32_t>(n, c.walk->extent[k]));
      const std::int32_t span = (count - 1) * c.walk->strides[k];
      (span < 0 ? low : high) += span;
    }
  }
  high += c.bytes;
  for (const Symbol& s : pe.program->symbols) {
    if (s.address <= c.address && c.address < s.address + static_cast<std::int32_t>(s.bytes))
      object = &s;
  }
  if (!object) return;
  const std::int32_t first = object->address,
                     end = object->address + static_cast<std::int32_t>(object->bytes);
  if (low >= first && high <= end) return;
  throw pe_fault(
      pe, "wse.dsd.outside",
      cat("@", to_string(op.code), " of ", n, " elements begins at byte ",
          static_cast<int>(c.address) - first, " of \"", object->name, "\" and covers bytes ",
          low - first, " to ", high - first, "; it has ", object->bytes))
      .help("check the descriptor's length, offset and stride");
}

/// The tasks of completions that only the run knows.
void Fabric::name_tasks(const Core& k, const Frame& f, const SettingRegs& regs,
                        OpSettings& settings) const {
  auto id = [&](std::uint16_t reg) { return static_cast<std::uint16_t>(k.regs[f.reg + reg]); };
  if (regs.done != kNone16) settings.done.id = id(regs.done);
  if (regs.on_control != kNone16) settings.on_control.id = id(regs.on_control);
}

void Fabric::load_dsr(Pe& pe, const DsrLoad& load, const Dsd& dsd) {
  Dsr& r = core(pe).dsrs[static_cast<std::size_t>(load.file) * 32u + (load.index & 31u)];
  r.dsd = dsd;
  r.settings = load.settings;
  if (load.regs.done != kNone16 || load.regs.on_control != kNone16)
    name_tasks(core(pe), core(pe).frames.back(), load.regs, r.settings);
  r.loaded = true;
}

std::uint8_t Fabric::bind_queue(Pe& pe, std::uint8_t queue, std::uint8_t color) {
  if (pe.in.size() <= queue) pe.in.resize(queue + 1u, arena_);
  InQueue& q = pe.in[queue];
  if (q.color == color) return queue;
  if (q.color != kNone8) {
    if (q.count > 0) {
      throw pe_fault(
          pe, "wse.queue.rebound",
          cat("input queue ", static_cast<int>(queue), " still holds ", static_cast<int>(q.count),
              " wavelets of colour ", static_cast<int>(q.color), " and cannot take colour ",
              static_cast<int>(color)));
    }
    if (pe.color_queue[q.color] == queue) pe.color_queue[q.color] = kNone8;
  }
  q.color = color;
  q.channel = nullptr;
  q.depth = static_cast<std::uint8_t>(std::clamp(timing_.in_depth[queue & 7u], 1, 8));
  pe.color_queue[color] = queue;
  pe.freed = true;
  return queue;
}

// WSE-2: a descriptor without a queue gets one for its colour. Numbers from 8 on are never named by
// a program; the low bits are the microthread, so one that no other queue of the PE uses is taken.
std::uint8_t Fabric::free_input_queue(const Pe& pe) const {
  auto used = [&](std::size_t q) { return q < pe.in.size() && pe.in[q].color != kNone8; };
  std::size_t k = 8 + 7;
  while (k > 8 && (used(k) || used(k & 7u))) --k;
  // There are as many numbers from 8 on as colours.
  if (used(k)) k = 16;
  while (used(k)) ++k;
  return static_cast<std::uint8_t>(k);
}

std::uint8_t Fabric::output_queue_for(const Pe& pe, std::uint8_t color) const {
  if (wse3_) return 0;
  for (std::size_t q = 0; q < pe.out.size(); ++q)
    if (pe.out[q].color == color) return static_cast<std::uint8_t>(q);
  auto named = [&](std::size_t q) {
    return std::ranges::any_of(
        pe.program->queues, [q](const QueueInit& init) { return init.output && init.queue == q; });
  };
  for (std::uint8_t q = 5; q > 0; --q)
    if (!named(q) && (q >= pe.out.size() || pe.out[q].color == kNone8)) return q;
  return 0;
}

bool Fabric::make_cursor(Pe& pe, const Operand& operand, int bytes, Cursor& out, Mem4& walk,
                         OpSettings& settings, std::uint32_t& length) {
  Core& k = *pe.core;
  const Frame& f = k.frames.back();
  length = 0;
  out = Cursor{};
  out.bytes = static_cast<std::uint8_t>(bytes & 15);
  const Dsd* d = nullptr;
  switch (operand.kind) {
    case Operand::none: return false;
    case Operand::value:
      out.kind = Cursor::value;
      out.value_bits = static_cast<std::uint32_t>(k.regs[f.reg + operand.index]);
      return false;
    case Operand::pointer:
      out.kind = Cursor::mem;
      out.address = static_cast<std::uint16_t>(k.regs[f.reg + operand.index]);
      return false;
    case Operand::fifo:
      out.kind = Cursor::fifo;
      out.queue = static_cast<std::uint8_t>(operand.index);
      return false;
    case Operand::dsd: d = &k.dsds[f.dsd + operand.index]; break;
    case Operand::dsr: {
      Dsr& r = k.dsrs[static_cast<std::size_t>(operand.file) * 32u + (operand.index & 31u)];
      if (!r.loaded) {
        throw pe_fault(pe, "wse.dsr.empty",
                       cat("DSR ", static_cast<int>(operand.index), " of file ",
                           static_cast<int>(operand.file), " is used before @load_to_dsr"));
      }
      d = &r.dsd;
      settings.async |= r.settings.async;
      settings.terminate_on_control |= r.settings.terminate_on_control;
      if (r.settings.done.kind != Completion::none) settings.done = r.settings.done;
      if (r.settings.on_control.kind != Completion::none)
        settings.on_control = r.settings.on_control;
      if (r.settings.ut_id != kNone8) settings.ut_id = r.settings.ut_id;
      if (r.settings.priority != Priority::unset) settings.priority = r.settings.priority;
      break;
    }
  }
  out.flags = d->flags;
  switch (d->kind) {
    case DsdKind::none:
      throw pe_fault(
          pe, "wse.dsd.empty",
          cat("operand ", static_cast<int>(operand.index), " is a descriptor that was never set"));
    case DsdKind::mem1d:
      out.kind = Cursor::mem;
      out.address = d->base;
      out.stride = static_cast<std::int16_t>(d->stride[3] * bytes);
      length = d->extent[3];
      break;
    case DsdKind::mem4d:
      out.kind = Cursor::mem4;
      out.address = d->base;
      walk = {d->extent, {}, {}};
      out.walk = &walk;
      for (std::size_t n = 0; n < 4; ++n)
        walk.strides[n] = static_cast<std::int16_t>(d->stride[n] * bytes);
      length = 1;
      for (std::uint16_t e : d->extent) length *= e;
      break;
    case DsdKind::circbuf:
      out.kind = Cursor::mem4;
      out.address = d->base;
      walk = {{1, 1, 0xffff, d->extent[2]}, {}, {}};
      out.walk = &walk;
      walk.strides[3] = static_cast<std::int16_t>(d->stride[3] * bytes);
      walk.at[3] = static_cast<std::uint16_t>(d->stride[2]);
      length = d->extent[3];
      break;
    case DsdKind::fabin:
      out.kind = Cursor::fabin;
      out.color = d->color;
      length = d->extent[3];
      out.queue = d->queue;
      if (out.queue == kNone8) {
        out.queue = d->color < kColors ? pe.color_queue[d->color] : kNone8;
        if (out.queue == kNone8 && d->color < kColors && !wse3_)
          out.queue = bind_queue(pe, free_input_queue(pe), d->color);
        if (out.queue == kNone8)
          throw pe_fault(pe, "wse.queue.none",
                         cat("no input queue takes colour ", static_cast<int>(d->color)));
      } else if (out.color == kNone8) {
        out.color = pe.in.size() > out.queue ? pe.in[out.queue].color : kNone8;
      }
      if (out.color != kNone8) {
        if (pe.color_queue[out.color] != kNone8 &&
            pe.color_queue[out.color] >= 8) {  // a data task's own queue
          out.queue = pe.color_queue[out.color];
        } else if (!wse3_ || pe.in.size() <= out.queue || pe.in[out.queue].color != out.color) {
          if (wse3_) {
            throw pe_fault(pe, "wse.queue.color",
                           cat("input queue ", static_cast<int>(out.queue),
                               " is not initialised with colour ", static_cast<int>(out.color)))
                .help("call @initialize_queue on it");
          }
          bind_queue(pe, out.queue, out.color);
        }
      }
      break;
    case DsdKind::fabout:
      out.kind = Cursor::fabout;
      out.color = d->color;
      out.queue = d->queue == kNone8 ? output_queue_for(pe, d->color) : d->queue;
      if (wse3_) check_output_queue(pe, out.queue, d->color);
      if (pe.out.size() <= out.queue) pe.out.resize(out.queue + 1u, arena_);
      if (out.color == kNone8) out.color = pe.out[out.queue].color;
      if (pe.out[out.queue].color == kNone8)
        pe.out[out.queue].depth = static_cast<std::uint8_t>(timing_.out_depth[out.queue & 7u]);
      pe.out[out.queue].color = out.color;
      length = d->extent[3];
      break;
    case DsdKind::fifo:
      out.kind = Cursor::fifo;
      out.queue = d->queue;
      return false;
  }
  return true;
}

/// WSE-3: an output queue has the color that @initialize_queue or a run-time setting gave it.
void Fabric::check_output_queue(const Pe& pe, std::uint8_t queue, std::uint8_t color) const {
  const std::uint8_t has = pe.out.size() > queue ? pe.out[queue].color : kNone8;
  if (has != kNone8 && (color == kNone8 || color == has)) return;
  throw pe_fault(
      pe, "wse.queue.color",
      has == kNone8
          ? cat("output queue ", static_cast<int>(queue), " is not initialised")
          : cat("output queue ", static_cast<int>(queue), " has colour ", static_cast<int>(has),
                ", the descriptor names colour ", static_cast<int>(color)))
      .help("call @initialize_queue(queue, .{ .color = c }) in a comptime block");
}

namespace {

/// SDK 2.10: 16-bit elements travel two in a wavelet, unless one of the operation's descriptors
/// says otherwise or needs the high half for an index.
void pair_halves(Running& run) {
  constexpr std::uint8_t kAlone = Dsd::kSimdOff | Dsd::kIndexOffset | Dsd::kControl;
  bool pairs = true;
  for (const Cursor* c : {&run.dst, &run.a, &run.b}) {
    if (c->kind == Cursor::fabin || c->kind == Cursor::fabout)
      pairs = pairs && !(c->flags & kAlone);
  }
  for (Cursor* c : {&run.dst, &run.a, &run.b}) {
    if ((c->kind != Cursor::fabin && c->kind != Cursor::fabout) || c->bytes != 2) continue;
    c->flags = static_cast<std::uint8_t>(pairs ? c->flags | Dsd::kSimd32
                                               : c->flags & ~unsigned{Dsd::kSimd32});
  }
}

/// Whether what the two sources read in a cycle lies in a common bank. A PE's memory has 8 banks
/// of 16 bits, the last address bits choose one. An operation of several elements a cycle reads
/// that many neighbours of each source: two sources of 16 bytes always meet. The sources keep
/// their distance where they take the same steps; where they do not, nothing is said.
bool banks_meet(const Cursor& a, const Cursor& b, int simd) {
  constexpr int kBankBytes = 16;
  auto step = [](const Cursor& c) {
    return c.kind == Cursor::mem ? c.stride : c.kind == Cursor::mem4 ? c.walk->strides[3] : 0;
  };
  const int stride = step(a);
  if (stride == 0 || stride != step(b)) return false;
  const int width = stride == a.bytes ? simd * a.bytes : a.bytes;
  const int apart = (a.address - b.address) & (kBankBytes - 1);
  return apart < width || kBankBytes - apart < width;
}

}  // namespace

// The whole of an operation without fabric operands; returns elements done.
std::uint32_t Fabric::run_memory(Worker& w, Pe& pe, Running& run, Cycle& cost) {
  const BulkInfo& info = bulk_info(run.op->code);
  Ty half = half_type(*pe.program, *run.op);
  std::uint32_t n = run.left;
  bool fifo =
      run.dst.kind == Cursor::fifo || run.a.kind == Cursor::fifo || run.b.kind == Cursor::fifo;
  bool running_sum =
      run.op->dst.kind == Operand::pointer && run.a.kind == Cursor::value && info.sources == 2;
  std::uint32_t done = 0;
  auto linear = [](const Cursor& c) {
    return c.kind == Cursor::mem || c.kind == Cursor::value || c.kind == Cursor::none;
  };
  if (n == 0) {
    done = 0;
  } else if (!fifo && linear(run.dst) && linear(run.a) && linear(run.b) &&
             run.op->code != Bulk::addc16) {
    // Check the outermost addresses once, then run on host pointers.
    auto host = [&](const Cursor& c) -> std::uint8_t* {
      if (c.kind != Cursor::mem) return nullptr;
      std::int32_t last = c.address + static_cast<std::int32_t>(n - 1) * c.stride;
      std::int32_t lo = std::min<std::int32_t>(c.address, last),
                   hi = std::max<std::int32_t>(c.address, last) + c.bytes;
      if (lo < 0 || hi > kMemoryBytes) {
        throw pe_fault(pe, "wse.memory.bounds",
                       cat("a descriptor of ", n, " elements from address ",
                           static_cast<int>(c.address), " in steps of ", static_cast<int>(c.stride),
                           " bytes leaves the ", kMemoryBytes, " bytes of the PE's memory"));
      }
      span(pe, static_cast<std::uint32_t>(lo), static_cast<std::uint32_t>(hi - lo));
      return nullptr;
    };
    host(run.dst);
    host(run.a);
    host(run.b);
    auto side = [&](const Cursor& c) {
      return LoopSide{c.kind == Cursor::mem ? pe.memory + c.address : nullptr, c.stride,
                      c.value_bits};
    };
    bulk_loop(run.op->code, half, side(run.dst), side(run.a), side(run.b), run.scalar, n,
              running_sum);
    run.dst.address =
        static_cast<std::uint16_t>(run.dst.address + static_cast<std::int32_t>(n) * run.dst.stride);
    run.a.address =
        static_cast<std::uint16_t>(run.a.address + static_cast<std::int32_t>(n) * run.a.stride);
    run.b.address =
        static_cast<std::uint16_t>(run.b.address + static_cast<std::int32_t>(n) * run.b.stride);
    done = n;
  } else {
    Cycle ignored = kNever;
    for (; done < n; ++done) {
      if (!cursor_ready(pe, run.a, false, clock(pe), ignored) ||
          !cursor_ready(pe, run.b, false, clock(pe), ignored) ||
          !cursor_ready(pe, run.dst, true, clock(pe), ignored))
        break;
      std::uint32_t a = read_cursor(w, pe, run.a, clock(pe)),
                    b = read_cursor(w, pe, run.b, clock(pe));
      std::uint32_t v = bulk_element(run.op->code, half, a, b, run.scalar);
      if (run.op->code == Bulk::addc16) {
        std::uint32_t sum = (a & 0xffffu) + (b & 0xffffu) + run.carry;
        run.carry = sum >> 16;
        v = sum & 0xffffu;
      }
      write_cursor(pe, run.dst, v, run.index, run.index, clock(pe));
      if (running_sum) run.a.value_bits = v;
    }
  }
  int simd = wse3_ ? info.simd3 : info.simd2;
  Cycle body = (done + static_cast<std::uint32_t>(simd) - 1) / static_cast<std::uint32_t>(simd);
  // Word strides of 0 mod 8 hit one bank.
  auto strided = [](const Cursor& c) {
    return c.kind == Cursor::mem && c.stride != 0 && c.stride % 16 == 0;
  };
  if ((timing_.stride_conflicts && (strided(run.a) || strided(run.b))) ||
      (timing_.bank_conflicts && banks_meet(run.a, run.b, simd)))
    body *= 2;
  cost += timing_.bulk_setup + body;
  pe.count.elements += done;
  if (info.sources == 2) pe.count.flops += done * (info.scalar ? 2 : 1);
  return done;
}

// Descriptors that an operation names itself are loaded into registers before it begins; one that
// is both its destination and its first source is loaded once.
int Fabric::operand_loads(const Core& k, const Frame& f, const BulkOp& op) const {
  auto at = [&](const Operand& o) {
    return o.kind == Operand::dsd && !o.loaded ? &k.dsds[f.dsd + o.index] : nullptr;
  };
  const Dsd *dst = at(op.dst), *a = at(op.src0), *b = at(op.src1);
  const bool both = dst && a && (dst == a || std::memcmp(dst, a, sizeof(Dsd)) == 0);
  return (dst != nullptr) + (a != nullptr && !both) + (b != nullptr);
}

// Cycles from `at` until the registers of an operation's operands are loaded.
Cycle Fabric::operands_ready(const Core& k, const Frame& f, const BulkOp& op, Cycle at) const {
  if (const int loads = operand_loads(k, f, op))
    return loads * timing_.dsr_load + std::max(0, timing_.dsr_use - 1);
  const bool registers =
      op.dst.kind == Operand::dsr || op.src0.kind == Operand::dsr || op.src1.kind == Operand::dsr;
  return registers ? std::max<Cycle>(0, k.dsr_loaded + timing_.dsr_use - at) : 0;
}

// Returns false when the instruction must wait for a microthread (sync_wait) and be tried again.
bool Fabric::start_bulk(Worker& w, Pe& pe, const Insn& insn, Cycle now, Cycle& cost,
                        bool& sync_wait) {
  Core& k = *pe.core;
  const BulkOp& op = pe.program->bulks[static_cast<std::size_t>(insn.imm())];
  const BulkInfo& info = bulk_info(op.code);
  const Frame& f = k.frames.back();
  Running run = fresh_;
  run.op = &op;
  run.settings = op.settings;
  name_tasks(k, f, op.regs, run.settings);
  run.function = f.function;
  run.pc = f.pc;
  std::uint32_t len[3];
  bool shaped = false;
  Mem4 walk_a, walk_b, walk_dst;
  shaped |= make_cursor(pe, op.src0, source_bytes(op.code, 0), run.a, walk_a, run.settings, len[0]);
  shaped |= make_cursor(pe, op.src1, source_bytes(op.code, 1), run.b, walk_b, run.settings, len[1]);
  shaped |= make_cursor(pe, op.dst, info.dst_bytes, run.dst, walk_dst, run.settings, len[2]);
  run.left = len[0] ? len[0] : len[1] ? len[1] : len[2] ? len[2] : shaped ? 0u : 1u;
  run.endless = run.left == kUnboundedLength;
  for (const Cursor* c : {&run.a, &run.b})
    run.header |= c->kind == Cursor::fabin && (c->flags & Dsd::kControl);
  if (op.scalar.kind == Operand::value)
    run.scalar = static_cast<std::uint32_t>(k.regs[f.reg + op.scalar.index]);
  else if (op.scalar.kind == Operand::pointer)
    run.scalar = load_bits(
        span(pe, static_cast<std::uint16_t>(k.regs[f.reg + op.scalar.index]), info.src_bytes),
        info.src_bytes);
  if (op.regs.index != kNone16)
    run.index = static_cast<std::uint16_t>(k.regs[f.reg + op.regs.index]);
  if (pe.program->pairs) pair_halves(run);
  if ((run.dst.flags | run.a.flags | run.b.flags) & Dsd::kIndexOffset) {
    for (Cursor* c : {&run.dst, &run.a, &run.b}) {
      if ((c->kind == Cursor::mem || c->kind == Cursor::mem4) && (c->flags & Dsd::kIndexOffset))
        c->address = static_cast<std::uint16_t>(c->address + 2 * run.index);
    }
  }
  if (options_.check_bounds && !run.endless) {
    for (const Cursor* c : {&run.dst, &run.a, &run.b}) check_operand(pe, *c, op, run.left);
  }
  // A synchronous operation that a FIFO suspends has its elements one by one, too.
  const bool waits =
      !run.settings.async && (fifo_action(pe, run.dst, true) == FifoAction::suspend ||
                              fifo_action(pe, run.a, false) == FifoAction::suspend ||
                              fifo_action(pe, run.b, false) == FifoAction::suspend);
  bool fabric = is_fabric(run.dst) || is_fabric(run.a) || is_fabric(run.b) || waits;
  auto save = [&](const Operand& o, const Cursor& c) {
    if (o.kind != Operand::dsr) return;
    Dsr& r = k.dsrs[static_cast<std::size_t>(o.file) * 32u + (o.index & 31u)];
    keep_place(r, c);
  };
  if (!fabric) {
    if (run.settings.async && run.dst.kind != Cursor::fifo && run.a.kind != Cursor::fifo &&
        run.b.kind != Cursor::fifo && op.settings.async) {
      throw pe_fault(pe, "wse.bulk.async",
                     cat("@", info.name, " is asynchronous but has no fabric operand"));
    }
    std::uint32_t want = run.left;
    cost += operands_ready(k, f, op, now + cost);
    std::uint32_t done = run_memory(w, pe, run, cost);
    save(op.dst, run.dst);
    save(op.src0, run.a);
    save(op.src1, run.b);
    const bool ended = done == want || held_by_fifo(pe, run, clock(pe)) == FifoAction::terminate;
    if (insn.a != kNone16) k.regs[f.reg + insn.a] = ended;
    complete(pe, run.settings.done, now);
    return true;
  }
  // Where it runs: a microthread, or the main thread itself.
  std::uint8_t slot = kMainSlot;
  if (run.settings.async) {
    slot = run.settings.ut_id;
    if (slot == kNone8) {
      slot = run.dst.kind == Cursor::fabout ? run.dst.queue
             : run.a.kind == Cursor::fabin  ? run.a.queue
                                            : run.b.queue;
      slot &= 7u;
    }
  }
  if (pe.live_ops >> slot & 1u) {
    k.wanted = slot;
    sync_wait = true;
    return false;
  }
  if (insn.a != kNone16) k.regs[f.reg + insn.a] = 1;
  run.live = true;
  run.main = !run.settings.async;
  run.slot = slot;
  run.since = now;
  const Cycle loads = operands_ready(k, f, op, now);
  run.ready = now + loads + std::max(0, timing_.fabric_setup - 1 - timing_.ramp_out);
  if (!options_.timed) run.ready = now;
  for (Cursor* c : {&run.a, &run.b}) {
    if (c->kind != Cursor::fabin) continue;
    pe.in[c->queue].reader = slot;
    pe.reading |= 1u << (c->queue & 31u);
  }
  if (run.dst.kind == Cursor::fabout) {
    pe.out[run.dst.queue].writer = slot;
    pe.writing = static_cast<std::uint8_t>(pe.writing | 1u << (run.dst.queue & 7u));
  }
  k.ops.begin(slot, run, arena_);
  pe.live_ops |= 1u << slot;
  std::uint16_t& level = pe.at_priority[static_cast<std::size_t>(run.settings.priority)];
  level = static_cast<std::uint16_t>(level | 1u << slot);
  if (run.main) pe.main = MainState::in_bulk;
  else cost += loads + timing_.main_async;
  if (run.left == 0) finish(w, pe, k.ops[slot], now, false);
  return true;
}

}  // namespace weft::wse
