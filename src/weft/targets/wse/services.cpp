// SPDX-License-Identifier: Apache-2.0
// What a running task asks of its PE beyond arithmetic: @map, printing, run-time tile
// configuration.
#include <algorithm>
#include <bit>
#include <cstdio>

#include "weft/base/error.h"
#include "weft/targets/wse/arith.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

namespace {

std::string real_text(double v) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", v);
  return buffer;
}

}  // namespace

void Fabric::start_map(Pe& pe, const Insn& insn) {
  Core& k = *pe.core;
  const MapOp& op = pe.program->maps[static_cast<std::size_t>(insn.imm())];
  k.map = std::make_unique<MapRun>();
  MapRun& m = *k.map;
  m.op = &op;
  if (op.inputs.size() > m.in.size())
    throw pe_fault(pe, "wse.map.operands",
                   cat("@map with ", op.inputs.size(), " inputs; at most 8"));
  OpSettings ignored;
  std::uint32_t left = ~0u, len = 0;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    bool shaped = make_cursor(pe, op.inputs[i].operand, size_of(op.inputs[i].ty), m.in[i],
                              m.walks[i], ignored, len);
    if (shaped) left = std::min(left, len);
  }
  bool shaped = make_cursor(pe, op.out, size_of(op.out_ty), m.out, m.walks.back(), ignored, len);
  if (shaped) left = std::min(left, len);  // the shortest operand ends it
  m.left = left == ~0u ? 1 : left;
  m.depth = k.frames.size();
  pe.main = MainState::in_map;
}

bool Fabric::continue_map(Worker& w, Pe& pe, Cycle now, Cycle& next) {
  Core& k = *pe.core;
  MapRun& m = *k.map;
  const MapOp& op = *m.op;
  Frame& f = k.frames.back();
  if (m.in_call) {  // an element has come back
    if (m.out.kind != Cursor::none) {
      if (!cursor_ready(pe, m.out, true, now, next)) return false;
      std::uint64_t v = k.regs[f.reg + op.window];
      pe.op_time = now;
      write_cursor(pe, m.out, static_cast<std::uint32_t>(v), 0, 0, now);
      if (m.out.kind == Cursor::fabout) {
        if (pe.out[m.out.queue].express) announce(w, pe.out[m.out.queue], now);
        else next = std::min(next, now + 1);
      }
    }
    m.in_call = false;
    ++pe.count.elements;
    mark_work(pe, now, 1);
  }
  if (m.left == 0) {
    k.map.reset();
    pe.main = MainState::running;
    ++f.pc;
    return true;
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!cursor_ready(pe, m.in[i], false, now, next)) return false;
  }
  if (m.left != kUnboundedLength) --m.left;
  const Function& fn = pe.program->functions[op.function];
  std::uint32_t base = f.reg + op.window;
  if (k.regs.size() < base + fn.regs + 8u) k.regs.resize(base + fn.regs + 64u, arena_);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    std::uint32_t bits = m.in[i].kind == Cursor::value
                             ? m.in[i].value_bits
                             : (pe.op_time = now, read_cursor(w, pe, m.in[i], now));
    k.regs[base + i] = canonical(op.inputs[i].ty, bits);
  }
  m.in_call = true;
  const std::uint32_t dsd = f.dsd + pe.program->functions[f.function].dsds;
  Frame& g = k.frames.add(arena_);  // f may move
  g.function = op.function;
  g.reg = base;
  g.dsd = dsd;
  g.sp = pe.sp;
  pe.sp = static_cast<std::uint16_t>(pe.sp - fn.frame_bytes);
  if (k.dsds.size() < dsd + fn.dsds + 2u) k.dsds.resize(dsd + fn.dsds + 8u, arena_);
  pe.main = MainState::running;
  return true;
}

void Fabric::print(Worker& w, Pe& pe, const Insn& insn, std::uint64_t value, Cycle now) {
  std::string& line = pe.core->line;
  auto flush = [&] {
    w.log.push_back({now, pe.x, pe.y, line});
    line.clear();
  };
  Ty ty = static_cast<Ty>(insn.ty);
  switch (static_cast<PrintKind>(insn.b)) {
    case PrintKind::text:
      for (char c : pe.program->strings[insn.c]) {
        if (c == '\n') flush();
        else line.push_back(c);
      }
      break;
    case PrintKind::character:
      if (value == '\n') flush();
      else line.push_back(static_cast<char>(value));
      break;
    case PrintKind::decimal:
      line += is_float(ty)    ? real_text(to_double(ty, value))
              : is_signed(ty) ? cat(static_cast<std::int64_t>(value))
                              : cat(value);
      break;
    case PrintKind::hex:
    case PrintKind::binary: {
      bool four = static_cast<PrintKind>(insn.b) == PrintKind::hex;
      for (int k = bits_of_type(ty); k > 0;) {
        k -= four ? 4 : 1;
        line.push_back("0123456789ABCDEF"[value >> k & (four ? 15u : 1u)]);
      }
      break;
    }
    case PrintKind::real: line += real_text(to_double(ty, value)); break;
    case PrintKind::line: flush(); break;
  }
}

bool Fabric::flushed(Pe& pe) {
  bool any = false;
  for (std::uint16_t bits = pe.flush_wait; bits;
       bits = static_cast<std::uint16_t>(bits & (bits - 1))) {
    auto q = static_cast<std::size_t>(std::countr_zero(bits));
    Wavelet head;
    bool full = q >= 8 ? q - 8 < pe.out.size() && pe.out[q - 8].count != 0
                       : q < pe.in.size() && peek_queue(pe, pe.in[q], clock(pe), head);
    if (full) continue;
    auto bit = static_cast<std::uint16_t>(1u << q);
    pe.flush_wait = static_cast<std::uint16_t>(pe.flush_wait & ~bit);
    pe.flush_pending |= bit;
    pe.local_pending |= 1u << 29;
    any = true;
  }
  return any;
}

std::uint64_t Fabric::configure(Pe& pe, ConfigFn fn, const std::uint64_t* a) {
  auto color_of = [&]() -> ColorState& {
    if (a[0] >= kColors)
      throw pe_fault(pe, "wse.config.color",
                     cat("colour ", a[0], " does not exist; there are ", kColors));
    return add_color(pe, static_cast<std::uint8_t>(a[0]));
  };
  auto wake = [&] { pe.freed = true; };
  switch (fn) {
    case ConfigFn::reset_routes: {
      ColorState& cs = color_of();
      cs.route.rx = static_cast<std::uint8_t>(a[1]);
      cs.route.tx = static_cast<std::uint8_t>(a[2]);
      cs.configured = true;
      enforce(cs);
      wake();
      return 0;
    }
    case ConfigFn::clear_position: {
      ColorState& cs = color_of();
      cs.position = 0;
      enforce(cs);
      wake();
      return 0;
    }
    case ConfigFn::invalidate_positions: {
      ColorState& cs = color_of();
      for (SwitchPosition& p : cs.route.positions) p = {};
      cs.position = 0;
      enforce(cs);
      wake();
      return 0;
    }
    case ConfigFn::set_rx_position:
    case ConfigFn::set_tx_position: {
      ColorState& cs = color_of();
      if (a[1] < 1 || a[1] > 3)
        throw pe_fault(pe, "wse.config.position",
                       cat("switch position ", a[1], "; legal are 1 to 3"));
      SwitchPosition& p = cs.route.positions[a[1] - 1];
      p.valid = true;
      (fn == ConfigFn::set_rx_position ? p.rx : p.tx) = static_cast<std::uint8_t>(a[2]);
      enforce(cs);
      wake();
      return 0;
    }
    case ConfigFn::set_ring: color_of().route.ring = a[1] != 0; return 0;
    case ConfigFn::set_pop: color_of().route.pop = static_cast<PopMode>(a[1]); return 0;
    case ConfigFn::teardown_pending: {
      std::uint32_t bits = 0;
      for (auto& cs : pe.colors) bits |= cs->pending_teardown ? 1u << cs->color : 0u;
      return bits;
    }
    case ConfigFn::teardown_is_pending: return color_of().pending_teardown;
    case ConfigFn::teardown_exit: {
      ColorState& cs = color_of();
      cs.down = cs.pending_teardown = false;
      pe.teardown_pending &= ~(1u << cs.color);
      pe.busy_colors |= 1u << cs.color;
      wake();
      return 0;
    }
    case ConfigFn::teardown_enter: {
      ColorState& cs = color_of();
      cs.down = cs.pending_teardown = true;
      pe.teardown_pending |= 1u << cs.color;
      pe.local_pending |= 1u << 29;
      return 0;
    }
    case ConfigFn::set_task_priority:
      if (auto space = static_cast<TaskSpace>(a[0]); space == TaskSpace::control) {
        std::uint64_t bit = std::uint64_t{1} << (a[1] & 63u);
        pe.high_control = a[2] ? pe.high_control | bit : pe.high_control & ~bit;
      } else if (space != TaskSpace::microthread) {
        std::uint32_t& high = space == TaskSpace::local ? pe.high_tasks : pe.high_data;
        std::uint32_t bit = 1u << (a[1] & 31u);
        high = a[2] ? high | bit : high & ~bit;
      }
      return 0;
    case ConfigFn::set_timer:
      pe.timer_at = a[0] ? clock(pe) + static_cast<Cycle>(a[0]) : kNever;
      return 0;
    case ConfigFn::timer_left:
      return pe.timer_at == kNever ? 0 : static_cast<std::uint64_t>(pe.timer_at - clock(pe));
    case ConfigFn::set_main_priority: pe.cluster_high_main = a[0] >= 2; return 0;
    case ConfigFn::set_queue_color:
      if ((a[1] & 0xffu) >= (a[0] && !wse3_ ? 6u : 8u) || a[2] >= kColors)
        throw pe_fault(
            pe, "wse.config.queue",
            cat(a[0] ? "output" : "input", " queue ", a[1] & 0xffu, " cannot take colour ", a[2],
                "; queues are 0 to ", a[0] && !wse3_ ? 5 : 7, ", colours 0 to ", kColors - 1));
      if (a[0] == 0) {
        bind_queue(pe, static_cast<std::uint8_t>(a[1]), static_cast<std::uint8_t>(a[2]));
        if (a[1] & 0x100u)
          add_color(pe, static_cast<std::uint8_t>(a[2])).filter_disabled = !(a[1] & 0x200u);
      } else {
        if (pe.out.size() <= a[1]) pe.out.resize(a[1] + 1, arena_);
        pe.out[a[1]].color = static_cast<std::uint8_t>(a[2]);
      }
      wake();
      return 0;
    case ConfigFn::set_counter: color_of().counter = static_cast<std::uint16_t>(a[1]); return 0;
    case ConfigFn::get_register:
    case ConfigFn::set_register: {
      auto address = static_cast<std::uint16_t>(a[0]);
      bool write = fn == ConfigFn::set_register;
      auto value = static_cast<std::uint16_t>(write ? a[1] : 0);
      auto in = [&](std::uint16_t base) { return address >= base && address < base + kColors; };
      if (in(kRegRoutes) || in(kRegSwitch) || in(kRegCounter)) {
        ColorState& cs = add_color(pe, static_cast<std::uint8_t>(address % 32));
        if (in(kRegRoutes)) {
          if (!write) return static_cast<std::uint64_t>(cs.rx & 31) | (cs.tx & 31u) << 5;
          cs.route.rx = value & 31;
          cs.route.tx = value >> 5 & 31;
          cs.configured = true;
        } else if (in(kRegSwitch)) {
          if (!write)
            return cs.position | (cs.route.ring ? 4u : 0u) |
                   static_cast<unsigned>(cs.route.pop) << 3;
          cs.position = value & 3;
          cs.route.ring = (value & 4) != 0;
          cs.route.pop = static_cast<PopMode>(value >> 3 & 3);
        } else {
          if (!write) return cs.counter;
          cs.counter = value;
        }
        enforce(cs);
        wake();
        return 0;
      }
      if (address == kRegTeardown || address == kRegTeardown + 1) {
        std::uint32_t bits = 0;
        for (auto& cs : pe.colors) bits |= cs->down ? 1u << cs->color : 0u;
        return address == kRegTeardown ? bits & 0xffffu : bits >> 16;
      }
      auto& registers = core(pe).registers;
      for (auto& [at, held] : registers) {
        if (at != address) continue;
        if (write) held = value;
        return held;
      }
      if (write) registers.push_back({address, value});
      return 0;
    }
    case ConfigFn::filter_id: {
      ColorState& cs = color_of();
      if (cs.route.filter.kind == Filter::none)
        throw pe_fault(pe, "wse.config.filter", cat("colour ", a[0], " has no filter here"));
      std::uint64_t id = 0;
      for (auto& other : pe.colors)
        id += other->color < cs.color && other->route.filter.kind != Filter::none;
      return id;
    }
    case ConfigFn::set_filter: {
      std::vector<ColorState*> filtered;
      for (auto& cs : pe.colors) {
        if (cs->route.filter.kind != Filter::none) filtered.push_back(cs.get());
      }
      std::sort(filtered.begin(), filtered.end(),
                [](ColorState* x, ColorState* y) { return x->color < y->color; });
      if (a[0] >= filtered.size())
        throw pe_fault(pe, "wse.config.filter",
                       cat("filter ", a[0], " does not exist; this PE has ", filtered.size()));
      ColorState& cs = *filtered[a[0]];
      auto v = static_cast<std::uint16_t>(a[2]);
      switch (a[1]) {
        case 0: cs.counter = v; break;
        case 1: cs.limit = cs.route.filter.limit1 = v; break;
        case 2: cs.route.filter.limit2 = v; break;
        default: cs.route.filter.max_counter = v; break;
      }
      return 0;
    }
    case ConfigFn::flush:
      pe.flush_wait = static_cast<std::uint16_t>(pe.flush_wait | 1u << (a[0] & 15u));
      wake();
      return 0;
    case ConfigFn::flush_pending: return pe.flush_pending >> (a[0] & 15u) & 1u;
    case ConfigFn::flush_exit:
      pe.flush_pending = static_cast<std::uint16_t>(pe.flush_pending & ~(1u << (a[0] & 15u)));
      return 0;
    case ConfigFn::change_route: {
      ColorState& cs = color_of();
      std::uint8_t& ports = a[2] < 5 ? cs.route.rx : cs.route.tx;
      auto bit = static_cast<std::uint8_t>(1u << a[2] % 5);
      ports = static_cast<std::uint8_t>(a[1] == 0   ? ports | bit
                                        : a[1] == 1 ? ports ^ bit
                                                    : ports & ~bit);
      cs.configured = true;
      enforce(cs);
      wake();
      return 0;
    }
    case ConfigFn::set_position: {
      ColorState& cs = color_of();
      if (a[1] > 3)
        throw pe_fault(pe, "wse.config.position",
                       cat("switch position ", a[1], "; legal are 0 to 3"));
      cs.position = static_cast<std::uint8_t>(a[1]);
      enforce(cs);
      wake();
      return 0;
    }
    case ConfigFn::queue_bits: {
      std::uint64_t bits = 0;
      for (std::size_t q = 0; q < (a[0] && !wse3_ ? 6u : 8u); ++q) {
        Wavelet head;
        std::size_t count = 0, depth = 1;
        if (a[0] == 0 && q < pe.in.size()) {
          count = pe.in[q].channel ? peek_queue(pe, pe.in[q], clock(pe), head) : pe.in[q].count;
          depth = pe.in[q].channel ? 2 : pe.in[q].depth;
        } else if (a[0] && q < pe.out.size()) {
          count = pe.out[q].count;
          depth = pe.out[q].depth;
        }
        if (a[1] == 0 ? count == 0 : count >= depth) bits |= 1u << q;
      }
      return bits;
    }
    case ConfigFn::transform_mask:
      core(pe).transform_mask = static_cast<std::uint8_t>(a[0] & 63u);
      return 0;
    case ConfigFn::queue_empty: return a[0] >= pe.in.size() || pe.in[a[0]].count == 0;
  }
  return 0;
}

}  // namespace weft::wse
