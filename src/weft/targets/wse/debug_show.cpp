// SPDX-License-Identifier: Apache-2.0
// What the debugger prints about a PE: registers, tasks, queues, wavelets, operations, routes.
#include <bit>

#include "weft/targets/wse/debug.h"
#include "weft/targets/wse/express.h"

namespace weft::wse {

namespace {

constexpr std::size_t kMostLines = 400;

std::string color_name(int color) { return color == kNone8 ? "none" : cat(color); }

std::string wavelet_text(std::uint32_t data, bool control, Cycle ready) {
  return cat(hex(data, 8), control ? " control" : "", " from cycle ", ready);
}

}  // namespace

std::vector<sim::Topic> FabricDebug::topics() const {
  return {{"registers", "scalar registers of the function at hand"},
          {"tasks", "bound tasks: running, activated, blocked"},
          {"queues", "input and output queues, their colors and what they hold"},
          {"wavelets", "wavelets in the router, the queues and on the way to the PE"},
          {"operations", "fabric operations in progress"},
          {"routes", "the router's colors: inputs, outputs, switch positions"},
          {"stack", "the functions that are being called"},
          {"waiting", "why the PE does not go on; all: a list for every PE"}};
}

std::vector<std::string> FabricDebug::show(std::string_view topic, std::int64_t unit) const {
  std::vector<std::string> out;
  if (topic == "waiting") {
    const Pe* pe = unit < 0 ? nullptr : pe_of(unit);
    const std::string mine = pe ? cat("pe (", pe->x, ", ", pe->y, "): ") : std::string();
    if (unit >= 0 && !pe) return out;
    // The PE at hand does not wait: it is about to execute an instruction.
    const Pe* here = at_unit_ < 0 ? nullptr : pe_of(at_unit_);
    const std::string not_waiting =
        here ? cat("pe (", here->x, ", ", here->y, "): main thread in ") : std::string("pe :");
    for (const std::string& line : fabric_.waiting(100'000)) {
      if (line.starts_with(not_waiting) && here->main == MainState::running) continue;
      if (pe && !line.starts_with(mine)) continue;
      if (out.size() >= kMostLines) {
        out.emplace_back("  and more");
        break;
      }
      out.push_back("  " + (pe ? line.substr(mine.size()) : line));
    }
    return out;
  }
  for (std::int64_t u = unit < 0 ? 0 : unit; u < (unit < 0 ? unit_count() : unit + 1); ++u) {
    const Pe* pe = pe_of(u);
    if (!pe) continue;
    std::vector<std::string> lines;
    show_one(topic, *pe, lines);
    if (lines.empty()) continue;
    if (unit < 0) out.push_back(unit_name(u));
    out.insert(out.end(), lines.begin(), lines.end());
    if (out.size() >= kMostLines) {
      out.emplace_back("  and more: name a PE");
      break;
    }
  }
  return out;
}

void FabricDebug::show_one(std::string_view topic, const Pe& pe,
                           std::vector<std::string>& out) const {
  if (topic == "tasks") return show_tasks(pe, out);
  if (topic == "queues") return show_queues(pe, out);
  if (topic == "wavelets") return show_wavelets(pe, out);
  if (topic == "operations") return show_operations(pe, out);
  if (topic == "routes") return show_routes(pe, out);
  if (depth(pe.index) == 0) return;
  const auto& frames = pe.core->frames;
  if (topic == "stack") {
    for (std::size_t k = frames.size(); k-- > 0;) {
      // A caller's frame holds where it goes on, one after the call.
      const bool caller = k + 1 < frames.size() && frames[k].pc > 0;
      const sim::SourceLine l =
          line_of(*pe.program, frames[k].function, frames[k].pc - (caller ? 1 : 0));
      out.push_back(cat("  ", frames.size() - 1 - k, "  ", l.function,
                        l.line ? cat("  ", l.file, ":", l.line) : std::string()));
    }
    return;
  }
  const Frame& f = frames.back();
  const std::size_t regs = pe.program->functions[f.function].regs;
  for (std::size_t r = 0; r < regs && f.reg + r < pe.core->regs.size(); ++r) {
    const std::uint64_t v = pe.core->regs[f.reg + r];
    if (v == 0) continue;
    out.push_back(cat("  r", r, "  ", hex(v), "  ", static_cast<std::int64_t>(v)));
  }
  if (out.empty()) out.emplace_back("  all are zero");
}

void FabricDebug::show_tasks(const Pe& pe, std::vector<std::string>& out) const {
  if (!pe.program) return;
  if (pe.main != MainState::idle)
    out.push_back(pe.in_command ? "  running: the host's command"
                                : cat("  running: task ", pe.current_task));
  for (const TaskBinding& b : pe.program->tasks) {
    std::string state;
    auto say = [&](bool on, std::string_view word) {
      if (on) state += cat(state.empty() ? "" : ", ", word);
    };
    std::string_view space = "data task";
    const std::uint32_t bit = b.id < 32 ? 1u << b.id : 0;
    if (b.space == TaskSpace::local) {
      space = "local task";
      say(pe.local_pending & bit, "activated");
      say(pe.local_blocked & bit, "blocked");
      say(pe.local_merged & bit, "activated again before it ran");
    } else if (b.space == TaskSpace::control) {
      space = "control task";
      say(pe.control_blocked >> b.id & 1u, "blocked");
    } else {
      say(pe.color_blocked & bit, "blocked");
    }
    out.push_back(cat("  ", space, " ", b.id, "  ", pe.program->functions[b.function].name,
                      state.empty() ? "" : "  ", state));
  }
  if (pe.command_function != kNone16)
    out.push_back(
        cat("  command  ", pe.program->functions[pe.command_function].name, "  waits to begin"));
  if (!pe.command_free) out.emplace_back("  the command stream is blocked");
}

void FabricDebug::show_queues(const Pe& pe, std::vector<std::string>& out) const {
  for (std::size_t q = 0; q < pe.in.size(); ++q) {
    const InQueue& in = pe.in[q];
    if (in.color == kNone8 && !in.count) continue;
    const std::uint32_t held = in.count + (in.channel ? in.channel->held() : 0);
    out.push_back(cat("  input ", q, "  color ", color_name(in.color), "  holds ", held,
                      in.reader == kNone8
                          ? std::string()
                          : cat("  read by operation ", static_cast<int>(in.reader))));
  }
  for (std::size_t q = 0; q < pe.out.size(); ++q) {
    const OutQueue& o = pe.out[q];
    if (o.color == kNone8 && !o.count && o.writer == kNone8) continue;
    out.push_back(cat("  output ", q, "  color ", color_name(o.color), "  holds ",
                      static_cast<int>(o.count), " of ", static_cast<int>(o.depth),
                      o.writer == kNone8
                          ? std::string()
                          : cat("  written by operation ", static_cast<int>(o.writer))));
  }
  if (pe.core) {
    for (std::size_t k = 0; k < pe.core->fifos.size(); ++k)
      out.push_back(cat("  fifo ", k, "  holds ", pe.core->fifos[k].count, " of ",
                        pe.core->fifos[k].capacity));
  }
}

void FabricDebug::show_wavelets(const Pe& pe, std::vector<std::string>& out) const {
  constexpr std::uint32_t kMost = 8;
  for (const auto& cs : pe.colors) {
    const int color = cs->color;
    for (int p = 0; p < kAllPorts; ++p) {
      const Ring* r = cs->in[static_cast<std::size_t>(p)].load();
      if (!r) continue;
      for (std::uint32_t k = r->head(); k != r->tail.load(); ++k) {
        const Wavelet& w = r->slot[k % kRing];
        out.push_back(cat("  router, from ", p < kPorts ? port_name(p) : "host", "  color ", color,
                          "  ", wavelet_text(w.data, w.control != 0, w.ready)));
      }
    }
    const Channel* c = cs->arriving.load();
    if (!c) continue;
    std::uint32_t n = 0;
    const std::uint32_t tail = c->tail.load();
    for (std::uint32_t k = c->head.load(); k != tail; ++k) {
      const Channel::Entry& e = c->at(k);
      if (++n > kMost) continue;
      const auto from = static_cast<std::int32_t>(c->from), width = fabric_.width_;
      out.push_back(cat("  on the way from pe ", from % width, ",", from / width, "  color ", color,
                        "  ", wavelet_text(e.data, e.control != 0, e.when)));
    }
    if (n > kMost) out.push_back(cat("    and ", n - kMost, " more of color ", color));
  }
  for (std::size_t q = 0; q < pe.in.size(); ++q) {
    InQueue& in = const_cast<Pe&>(pe).in[q];  // slots are made at the first use
    for (std::uint8_t k = 0; k < in.count; ++k) {
      const Wavelet& w = in.slot[(in.head + k) % 8u];
      out.push_back(cat("  input queue ", q, "  color ", color_name(in.color), "  ",
                        wavelet_text(w.data, w.control != 0, w.ready)));
    }
  }
  for (std::size_t q = 0; q < pe.out.size(); ++q) {
    OutQueue& o = const_cast<Pe&>(pe).out[q];
    for (std::uint8_t k = 0; k < o.count; ++k) {
      const OutQueue::Slot& s = o.slot[(o.head + k) % 8u];
      out.push_back(cat("  output queue ", q, "  color ", static_cast<int>(s.color), "  ",
                        wavelet_text(s.wavelet.data, s.wavelet.control != 0, s.wavelet.ready)));
    }
  }
}

void FabricDebug::show_operations(const Pe& pe, std::vector<std::string>& out) const {
  if (!pe.core) return;
  for (std::uint32_t mask = pe.live_ops; mask; mask &= mask - 1) {
    const Running* run = pe.core->ops.find(static_cast<std::size_t>(std::countr_zero(mask)));
    if (!run) continue;
    const sim::SourceLine l = line_of(*pe.program, run->function, run->pc);
    out.push_back(cat(
        "  ", run->main ? "main thread" : cat("microthread ", static_cast<int>(run->slot)), "  @",
        to_string(run->op->code), "  ", run->done, " elements done",
        run->endless ? std::string() : cat(", ", run->left, " left"),
        run->stalled ? ", stalled" : "", l.line ? cat("  ", l.file, ":", l.line) : std::string()));
  }
}

void FabricDebug::show_routes(const Pe& pe, std::vector<std::string>& out) const {
  auto ports = [](std::uint8_t bits) {
    std::string text;
    for (int p = 0; p < kPorts; ++p)
      if (bits >> p & 1u) text += cat(text.empty() ? "" : " ", port_name(p));
    if (bits >> kHostPort & 1u) text += cat(text.empty() ? "" : " ", "host");
    return text.empty() ? std::string("nothing") : text;
  };
  for (const auto& cs : pe.colors) {
    if (!cs->rx && !cs->tx) continue;
    out.push_back(cat(
        "  color ", static_cast<int>(cs->color), "  from ", ports(cs->rx), "  to ", ports(cs->tx),
        cs->position ? cat("  position ", static_cast<int>(cs->position)) : std::string(),
        cs->down ? "  in teardown" : ""));
  }
}

}  // namespace weft::wse
