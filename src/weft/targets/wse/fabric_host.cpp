// SPDX-License-Identifier: Apache-2.0
// The host's side of the fabric: memory, streams, commands, statistics, and the account of who
// waits for what.
#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/sim/fault.h"
#include "weft/targets/wse/fabric.h"
#include "weft/targets/wse/worker.h"

namespace weft::wse {

void Fabric::read_memory(std::int32_t x, std::int32_t y, std::uint32_t address, void* out,
                         std::uint32_t bytes) {
  std::memcpy(out, span(touch(x, y), address, bytes), bytes);
}

void Fabric::write_memory(std::int32_t x, std::int32_t y, std::uint32_t address, const void* in,
                          std::uint32_t bytes) {
  std::memcpy(span(touch(x, y), address, bytes), in, bytes);
}

void Fabric::peek(std::int32_t x, std::int32_t y, std::uint32_t address, void* out,
                  std::uint32_t bytes) const {
  if (x < 0 || y < 0 || x >= width_ || y >= height_ ||
      address + bytes > static_cast<std::uint32_t>(kMemoryBytes)) {
    throw Error(ErrorKind::index, "wse.pe.outside",
                cat("PE (", x, ", ", y, ") with ", bytes, " bytes at ", address,
                    "; the rectangle is ", width_, " x ", height_));
  }
  std::memset(out, 0, bytes);
  auto overlap = [&](std::uint32_t at, const void* data, std::size_t n) {
    std::uint32_t lo = std::max(at, address),
                  hi = std::min<std::uint32_t>(at + static_cast<std::uint32_t>(n), address + bytes);
    if (lo < hi)
      std::memcpy(static_cast<char*>(out) + (lo - address),
                  static_cast<const char*>(data) + (lo - at), hi - lo);
  };
  if (const Pe* pe = find(x, y)) {
    if (pe->memory) overlap(0, pe->memory, pe->memory_bytes);
    return;
  }
  const Tile& tile = layout_.tiles[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                                   static_cast<std::size_t>(x)];
  if (tile.program == kNoProgram) return;
  for (const Segment& s : layout_.programs[tile.program].image)
    overlap(s.address, s.bytes.data(), s.bytes.size());
}

void Fabric::send(std::int32_t x, std::int32_t y, HostSource source) {
  Pe& pe = touch(x, y);
  if (source.data.empty()) {
    if (source.left) source.left->fetch_sub(1);
    return;
  }
  ColorState* cs = color_state(pe, source.color);
  if (source.port != kHostPort && (!cs || !((cs->route.rx | cs->rx) >> source.port & 1u))) {
    throw Error(ErrorKind::value, "wse.stream.route",
                cat("colour ", static_cast<int>(source.color), " takes nothing from ",
                    port_name(source.port), " at PE (", x, ", ", y, ")"));
  }
  if (!cs) {  // host streams end at the ramp
    cs = &add_color(pe, source.color);
    cs->rx = cs->route.rx = port_bit(kHostPort);
    cs->tx = cs->route.tx = port_bit(kRamp);
  }
  if (!pe.io) pe.io = std::make_unique<HostIo>();
  Cycle at = std::max(source.from, now_ + 1);
  pe.io->sources.push_back(std::move(source));
  schedule_core(pe, at);
}

std::size_t Fabric::receive(std::int32_t x, std::int32_t y, std::uint8_t color, std::uint8_t port,
                            std::uint32_t* out, std::size_t n) {
  Pe* pe = find(x, y);
  HostSink* sink = pe ? sink_of(*pe, color, port) : nullptr;
  if (!sink) return 0;
  std::size_t k = std::min(n, sink->got.size());
  std::copy_n(sink->got.begin(), k, out);
  sink->got.erase(sink->got.begin(), sink->got.begin() + static_cast<std::ptrdiff_t>(k));
  return k;
}

void Fabric::expect(std::int32_t x, std::int32_t y, std::uint8_t color, std::uint8_t port,
                    std::size_t n, std::atomic<std::int64_t>* left, Cycle from, Cycle gap) {
  Pe& pe = touch(x, y);
  if (port == kHostPort) ramp_color(pe, color);
  HostSink& sink = make_sink(pe, color, port);
  if (sink.got.size() >= n) {
    sink.wanted = 0;
    left->fetch_sub(1);
    return;
  }
  sink.from = from + static_cast<Cycle>(sink.got.size()) * gap;
  sink.gap = gap;
  sink.wanted = n - sink.got.size();
  sink.left = left;
  if (pe.busy_colors || pe.busy_out) schedule_core(pe, now_ + 1);
}

void Fabric::command(std::int32_t x, std::int32_t y, std::uint16_t function,
                     std::vector<std::uint64_t> args, Cycle from) {
  Pe& pe = touch(x, y);
  pe.command_function = function;
  pe.command_args = std::move(args);
  pe.command_ready = std::max(from, now_ + 1);
  pe.command_free = false;
  commands_open_.fetch_add(1);
  schedule_core(pe, pe.command_ready);
}

std::vector<LogLine> Fabric::take_log() {
  std::vector<LogLine> all;
  for (auto& w : workers_) {
    all.insert(all.end(), std::make_move_iterator(w->log.begin()),
               std::make_move_iterator(w->log.end()));
    w->log.clear();
  }
  std::stable_sort(all.begin(), all.end(), [](const LogLine& a, const LogLine& b) {
    return std::tie(a.cycle, a.y, a.x) < std::tie(b.cycle, b.y, b.x);
  });
  return all;
}

std::int64_t Fabric::pe_steps() const {
  std::int64_t n = 0;
  for (auto& w : workers_) n += w->steps;
  return n;
}

std::int64_t Fabric::hops() {
  settle();
  std::int64_t n = 0;
  for (auto& w : workers_) n += w->hops;
  return n;
}

std::size_t Fabric::bytes_in_use() const {
  std::size_t bytes = pes_.size() * (sizeof(void*) + sizeof(Tile)) + arena_.bytes();
  for (const auto& slot : pes_) {
    const Pe* pe = slot.load();
    if (!pe) continue;
    if (pe->memory_grown) bytes += pe->memory_bytes;
    if (pe->core) bytes += pe->core->dsrs.capacity() * sizeof(Dsr);
  }
  return bytes;
}

runtime::StatReport report_of(const FabricTotals& t) {
  runtime::StatReport report;
  const PeCounters& sum = t.sum;
  report.add("cycles", "cycles", "PEs touched times simulated cycles", t.touched * t.now);
  report.add("busy.pe", "cycles", "PE cycles in which the main thread or a microthread worked",
             sum.busy);
  report.add("stall.pe.wait", "cycles",
             "PE cycles in which an operation waited for wavelets, room or a microthread",
             sum.stall);
  report.add("idle.pe", "cycles", "PE cycles with nothing to do", sum.idle);
  report.add("fabric.cycles", "cycles", "simulated cycles", t.now);
  report.add("pes.touched", "1", "PEs that came into being", t.touched);
  report.add("instructions", "1", "bytecode instructions", sum.instructions);
  report.add("elements", "1", "elements of DSD operations", sum.elements);
  report.add("flops", "1", "floating or integer operations in DSD operations", sum.flops);
  report.add("tasks", "1", "tasks and commands started", sum.tasks);
  static constexpr const char* kNames[kAllPorts] = {"east",  "west", "north",
                                                    "south", "ramp", "host"};
  for (std::size_t p = 0; p < kAllPorts; ++p) {
    report.add(cat("wavelets.", kNames[p]), "1", cat("wavelets that routers sent to ", kNames[p]),
               sum.sent[p]);
  }
  report.add("engine.native", "1",
             t.native_reason.empty()
                 ? std::string("programs whose scalar code is native; others run as bytecode")
                 : cat("no native code, all programs run as bytecode: ", t.native_reason),
             t.native_programs);
  report.add("steps", "1", "visits of a PE by the simulator", t.steps);
  return report;
}

runtime::StatReport Fabric::stats() {
  settle();
  FabricTotals totals;
  PeCounters& sum = totals.sum;
  for (const auto& slot : pes_) {
    Pe* pe = slot.load();
    if (!pe) continue;
    ++totals.touched;
    account(*pe, now_);  // what has not been booked yet continues in the PE's last mode
    const PeCounters& c = pe->count;
    sum.instructions += c.instructions;
    sum.elements += c.elements;
    sum.flops += c.flops;
    sum.tasks += c.tasks;
    sum.busy += c.busy;
    sum.stall += c.stall;
    sum.idle += c.idle;
    for (std::size_t p = 0; p < c.sent.size(); ++p) sum.sent[p] += c.sent[p];
  }
  totals.now = now_;
  totals.native_reason = native_reason_;
  totals.native_programs = native_programs_;
  totals.steps = pe_steps();
  return report_of(totals);
}

void Fabric::trace_to(runtime::TraceSink* sink) {
  trace_ = sink;
  if (sink) task_since_.assign(pes_.size(), {});
}

void Fabric::trace_task(const Pe& pe, Cycle now) {
  const auto [since, function] = task_since_[pe.index];
  const double us = 1e6 / timing_.clock_hz;
  trace_->span(trace_->track(cat("pe ", pe.x, ",", pe.y), "main"),
               pe.program->functions[function].name, static_cast<double>(since) * us,
               static_cast<double>(now - since) * us);
}

void Fabric::keep_timeline() { timeline_ = std::make_unique<Timeline>(width_, height_); }

void Fabric::sample() {
  settle();
  timeline_->begin(now_);
  for (const auto& slot : pes_) {
    Pe* pe = slot.load();
    if (!pe) continue;
    account(*pe, now_);
    timeline_->add(pe->x, pe->y, pe->count);
  }
  timeline_->end();
}

Json Fabric::timeline() {
  if (!timeline_)
    throw Error(ErrorKind::value, "wse.api.timeline",
                cat("nothing was kept over the ", now_, " cycles so far"))
        .help("open the runtime with timeline=True");
  sample();
  return timeline_->to_json();
}

namespace {
/// "9 (main)", of the lowest task in `bits`.
std::string local_name(const Pe& pe, std::uint32_t bits) {
  const int id = std::countr_zero(bits);
  for (const TaskBinding& b : pe.program->tasks) {
    if (b.space == TaskSpace::local && b.id == id)
      return cat(id, " (", pe.program->functions[b.function].name, ")");
  }
  return cat(id);
}

// "@mov32 of f (pe.csl:3)"
std::string operation(const Pe& pe, const Running& run) {
  const Function& fn = pe.program->functions[run.function];
  const LineEntry* at = nullptr;
  for (const LineEntry& e : fn.lines) {
    if (e.pc <= run.pc) at = &e;
  }
  std::string where;
  if (at && at->line) {
    where = cat(" (", at->file < pe.program->files.size() ? pe.program->files[at->file] : "", ":",
                at->line, ")");
  }
  return cat("@", to_string(run.op->code), " of ", fn.name, where);
}
}  // namespace

std::vector<std::string> Fabric::waiting(std::size_t limit) const {
  std::vector<std::string> out;
  auto say = [&](const Pe& pe, std::string text) {
    if (out.size() < limit) out.push_back(cat("pe (", pe.x, ", ", pe.y, "): ", text));
  };
  auto side = [&](const Pe& pe, const Running& run, const Cursor& c, bool output) -> std::string {
    if (c.kind == Cursor::fabin && pe.in[c.queue].count == 0 &&
        !(pe.in[c.queue].channel && pe.in[c.queue].channel->held()))
      return cat("no wavelet of colour ", static_cast<int>(c.color), " in input queue ",
                 static_cast<int>(c.queue));
    if (c.kind == Cursor::fabout &&
        (pe.out[c.queue].express || pe.out[c.queue].count >= pe.out[c.queue].depth))
      return cat("output queue ", static_cast<int>(c.queue), " of colour ",
                 static_cast<int>(c.color), " is full");
    if (c.kind == Cursor::fifo) {
      const FifoState& f = pe.core->fifos[c.queue];
      if (output && f.count >= f.capacity)
        return cat("fifo ", static_cast<int>(c.queue), " is full");
      if (!output && f.count == 0) return cat("fifo ", static_cast<int>(c.queue), " is empty");
    }
    (void)run;
    return {};
  };
  for (const auto& slot : pes_) {
    const Pe* pe = slot.load();
    if (!pe || out.size() >= limit) continue;
    const std::size_t before = out.size();
    if (pe->core) {
      for (std::uint32_t mask = pe->live_ops; mask; mask &= mask - 1) {
        const Running& run = pe->core->ops[static_cast<std::size_t>(std::countr_zero(mask))];
        std::string why = side(*pe, run, run.a, false);
        if (why.empty()) why = side(*pe, run, run.b, false);
        if (why.empty()) why = side(*pe, run, run.dst, true);
        say(*pe, cat(run.main ? "main thread" : cat("microthread ", static_cast<int>(run.slot)),
                     " in ", operation(*pe, run), ": ", why.empty() ? "ready" : why, "; ", run.done,
                     " elements done", run.endless ? std::string() : cat(", ", run.left, " left")));
      }
      if (pe->main == MainState::in_map) say(*pe, "main thread in @map");
      if (pe->main == MainState::running) {
        const std::uint8_t unit = pe->core->wanted;
        const bool taken = unit != kNone8 && (pe->live_ops >> unit & 1u);
        say(*pe,
            cat("main thread in ", pe->program->functions[pe->core->frames.back().function].name,
                taken ? cat(" waits for microthread ", static_cast<int>(unit), ", which ",
                            operation(*pe, pe->core->ops[unit]),
                            " holds: input and output queues of one number share a microthread")
                      : std::string(" waits for a busy microthread")));
      }
    }
    for (std::size_t q = 0; q < pe->in.size(); ++q) {
      const InQueue& in = pe->in[q];
      std::uint32_t held = in.count + (in.channel ? in.channel->held() : 0);
      if (held == 0 || in.reader != kNone8) continue;
      int id = wse3_ ? static_cast<int>(q) : in.color;
      bool blocked = pe->color_blocked >> id & 1u;
      say(*pe, cat("input queue ", q, " holds ", held, " wavelets of colour ",
                   static_cast<int>(in.color),
                   blocked ? ", whose task is blocked" : ", which nothing consumes"));
    }
    for (const auto& cs : pe->colors) {
      Channel* ch = cs->arriving.load();
      if (ch && ch->held() && pe->color_queue[cs->color] == kNone8) {
        say(*pe, cat(ch->held(), " wavelets of colour ", static_cast<int>(cs->color),
                     " wait at the ramp: no input queue takes the colour"));
      }
      for (int p = 0; p < kAllPorts; ++p) {
        const Ring* r = cs->in[static_cast<std::size_t>(p)].load();
        if (!r || r->empty()) continue;
        std::string why = !((cs->rx | 1u << kHostPort) >> p & 1u)
                              ? "the switch does not admit that input"
                          : cs->down ? "the colour is in teardown"
                          : (cs->tx & port_bit(kRamp)) && pe->color_queue[cs->color] == kNone8
                              ? "no input queue takes the colour"
                              : "the way on is full";
        say(*pe, cat("router holds colour ", static_cast<int>(cs->color), " from ",
                     p < kPorts ? port_name(p) : "host", ": ", why));
      }
    }
    if (!pe->command_free) {
      say(*pe, pe->command_function != kNone16
                   ? "has not started its command (the main thread is taken)"
                   : "has not called unblock_cmd_stream");
    }
    // Where something waits, which tasks could go on and why they do not.
    if (!pe->program || (out.size() == before && !(pe->local_pending & pe->local_blocked)))
      continue;
    auto local = [&](std::uint32_t bits, std::string_view what) {
      std::string list;
      for (; bits; bits &= bits - 1) list += cat(list.empty() ? "" : ", ", local_name(*pe, bits));
      if (!list.empty()) say(*pe, cat(what, list));
    };
    std::uint32_t bound = 0;
    for (const TaskBinding& b : pe->program->tasks) {
      if (b.space == TaskSpace::local) bound |= 1u << b.id;
    }
    local(pe->local_pending & pe->local_blocked, "activated and blocked: local task ");
    local(pe->local_pending & ~pe->local_blocked, "activated: local task ");
    local(pe->local_blocked & ~pe->local_pending & bound, "blocked, not activated: local task ");
    local(pe->local_merged, "activated again before it ran, hence once for several: local task ");
    std::string data;
    for (const TaskBinding& b : pe->program->tasks) {
      if (b.space == TaskSpace::local || b.space == TaskSpace::control) continue;
      if (pe->color_blocked >> b.id & 1u)
        data +=
            cat(data.empty() ? "" : ", ", b.id, " (", pe->program->functions[b.function].name, ")");
    }
    if (!data.empty()) say(*pe, cat("blocked: data task ", data));
  }
  return out;
}

bool Fabric::jammed() const {
  return std::any_of(pes_.begin(), pes_.end(), [](const auto& slot) {
    const Pe* pe = slot.load();
    if (!pe || !pe->core || pe->main != MainState::running) return false;
    const std::uint8_t unit = pe->core->wanted;
    return unit != kNone8 && (pe->live_ops >> unit & 1u);
  });
}

Error Fabric::deadlock(std::string_view code, std::string message) const {
  sim::FaultPlace place;
  place.unit = "fabric";
  place.cycle = now_;
  Error e = sim::fault(code, std::move(message), place);
  std::vector<std::string> lines = waiting(65);
  for (std::size_t i = 0; i < lines.size() && i < 64; ++i) e.note(lines[i]);
  if (lines.size() > 64) e.note("... and more");
  if (lines.empty()) e.note("no PE waits for anything");
  return e;
}

}  // namespace weft::wse
