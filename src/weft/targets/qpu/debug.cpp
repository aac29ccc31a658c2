// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/debug.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "weft/base/file.h"
#include "weft/targets/qpu/isa_names.h"

namespace weft::qpu::hw {

DebugRun::DebugRun(sim::Debugger& debugger, Machine& machine, const Program& program,
                   const runtime::KernelSignature* kernel, const sim::Launch& launch, int active)
    : debugger_(debugger),
      machine_(machine),
      program_(program),
      kernel_(kernel),
      launch_(launch),
      active_(active),
      counts_(program.instrs.size()),
      tried_(static_cast<std::size_t>(active)) {
  debugger_.resume(*this, true);
}

DebugRun::~DebugRun() {
  debugger_.forget(*this);
  debugger_.pause();
}

void DebugRun::run(Qpu& q, std::int64_t limit) {
  const auto id = static_cast<std::size_t>(q.id);
  while (!q.finished) {
    if (!tried_[id] && q.pc < program_.instrs.size()) debugger_.before(q.id, q.pc, q.time);
    const bool last_slot = q.slots_left == 1 && q.taken;
    const std::uint32_t pc = q.pc;
    tried_[id] = !step_oracle(machine_, q);
    if (tried_[id]) return;
    ++counts_[pc];
    if (last_slot && q.time >= limit) return;
  }
}

std::exception_ptr DebugRun::show_failure(std::exception_ptr reason) {
  try {
    try {
      std::rethrow_exception(reason);
    } catch (const Error& error) {
      debugger_.failed(error);
    }
  } catch (...) {
    return std::current_exception();  // quit, or what is no error of ours
  }
  return reason;
}

std::string DebugRun::describe() const {
  return cat("kernel \"", kernel_ ? kernel_->name : std::string("main"), "\", ",
             program_.instrs.size(), " instructions on ", active_, active_ == 1 ? " QPU" : " QPUs");
}

std::string DebugRun::note() const {
  return cat("a QPU runs up to ", timing::kQuantum,
             " clocks ahead of the others, or until it waits");
}

std::int64_t DebugRun::find_unit(std::string_view text) const {
  text = trim(text);
  if (text.starts_with("qpu")) text = trim(text.substr(3));
  int n = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (status != std::errc() || end != text.data() + text.size() || n < 0 || n >= active_) return -1;
  return n;
}

std::string DebugRun::legal_units() const {
  return active_ == 1 ? "qpu 0" : cat("qpu 0 to qpu ", active_ - 1);
}

std::vector<std::int64_t> DebugRun::busy_units() const {
  std::vector<std::int64_t> out;
  for (int i = 0; i < active_; ++i)
    if (!qpu(i).finished) out.push_back(i);
  return out;
}

sim::UnitState DebugRun::unit_state(std::int64_t unit) const {
  const Qpu& q = qpu(unit);
  sim::UnitState out;
  out.cycle = q.time;
  out.state = q.finished                  ? "finished"
              : q.wait == Wait::mutex     ? "waits for the mutex"
              : q.wait == Wait::semaphore ? cat("waits for semaphore ", q.wait_semaphore)
                                          : "running";
  if (!q.finished && q.pc < program_.instrs.size()) out.place = q.pc;
  return out;
}

std::string DebugRun::instruction(sim::CodePlace place) const {
  return print(program_.instrs[static_cast<std::size_t>(place)]);
}

std::optional<sim::CodePlace> DebugRun::numbered(std::int64_t number, std::int64_t) const {
  if (number < 0 || number >= static_cast<std::int64_t>(program_.instrs.size()))
    return std::nullopt;
  return static_cast<sim::CodePlace>(number);
}

sim::SourceLine DebugRun::source(sim::CodePlace place) const {
  const runtime::DebugEntry* best = nullptr;
  for (const runtime::DebugEntry& e : program_.debug) {
    if (e.pc > place * 8) break;
    best = &e;
  }
  if (!best) return {{}, 0, kernel_ ? kernel_->name : std::string()};
  return {best->file, best->line, best->block};
}

void DebugRun::each_line(
    const std::function<void(sim::CodePlace, const sim::SourceLine&)>& f) const {
  for (const runtime::DebugEntry& e : program_.debug)
    if (e.line) f(e.pc / 8, {e.file, e.line, e.block});
}

void DebugRun::each_function(
    const std::function<void(sim::CodePlace, const std::string&)>& f) const {
  if (kernel_) f(0, kernel_->name);
}

std::string DebugRun::source_text(const std::string& file) const {
  try {
    return read_file(file);
  } catch (const Error&) {
    return {};
  }
}

std::vector<sim::Topic> DebugRun::topics() const {
  return {{"registers", "accumulators, register files A and B, flags"},
          {"queues", "what the TMUs, the VPM and the DMA hold for the unit"},
          {"uniforms", "uniforms that are still to be read"},
          {"semaphores", "the 16 semaphores and the mutex"},
          {"waiting", "units that cannot go on, and what they wait for"},
          {"stalls", "clocks that the unit has waited, by cause"}};
}

void DebugRun::show_one(std::string_view topic, const Qpu& q, std::vector<std::string>& out) const {
  if (topic == "registers") {
    auto row = [&](const std::string& name, const Vec& v) {
      const bool same = std::all_of(v.lane, v.lane + 16, [&](auto x) { return x == v.lane[0]; });
      if (same) {
        out.push_back(cat("  ", name, "  all ", hex(v.lane[0], 8)));
        return;
      }
      for (int half = 0; half < 2; ++half) {
        std::string text = cat("  ", half ? std::string(name.size(), ' ') : name, " ");
        for (int l = 0; l < 8; ++l) text += " " + hex(v.lane[half * 8 + l], 8).substr(2);
        out.push_back(std::move(text));
      }
    };
    for (std::size_t r = 0; r < 6; ++r) row(cat("r", r), q.slot[kSlotAcc + r]);
    std::string zero;
    for (int file = 0; file < 2; ++file) {
      for (std::size_t r = 0; r < 32; ++r) {
        const Vec& v = q.slot[(file ? kSlotRb : kSlotRa) + r];
        const std::string name = cat(file ? "rb" : "ra", r);
        if (std::all_of(v.lane, v.lane + 16, [](auto x) { return x == 0; })) zero += " " + name;
        else row(name, v);
      }
    }
    if (!zero.empty()) out.push_back("  zero:" + zero);
    for (const auto& [cond, name] :
         {std::pair(kZs, "Z"), std::pair(kNs, "N"), std::pair(kCs, "C")}) {
      std::string text = cat("  flag ", name, "  ");
      for (std::uint32_t lane : q.mask[cond].lane) text += lane ? '1' : '0';
      out.push_back(std::move(text));
    }
  } else if (topic == "queues") {
    for (unsigned t = 0; t < 2; ++t)
      out.push_back(cat(
          "  tmu", t, "  ", q.fifo[t].count, " of ", assume::kTmuFifoDepth, " requests under way",
          q.fifo[t].count ? cat(", the next is there at cycle ", q.fifo[t].ready[q.fifo[t].first()])
                          : std::string()));
    out.push_back(cat(
        "  vpm   ", q.vpm_reads, " reads set up",
        q.vpm_reads ? cat(", ", q.vpm_read[0].left, " vectors left of the first") : std::string()));
    out.push_back(cat("  dma load   ", q.load_pending ? cat("until cycle ", q.load_done) : "none"));
    out.push_back(
        cat("  dma store  ", q.store_pending ? cat("until cycle ", q.store_done) : "none"));
  } else if (topic == "uniforms") {
    std::string text = cat("  ", (q.uniform_end - q.uniform) / 4, " left:");
    for (std::uint32_t at = q.uniform; at + 4 <= q.uniform_end && at < q.uniform + 64; at += 4)
      text += " " + hex(machine_.memory.load<std::uint32_t>(at), 8);
    out.push_back(std::move(text));
  } else if (topic == "waiting") {
    if (q.wait != Wait::none)
      out.push_back(cat("  qpu ", q.id, "  ", unit_state(q.id).state, " since cycle ", q.time));
  } else if (topic == "stalls") {
    static constexpr const char* kNames[] = {"tmu", "dma load", "dma store", "semaphore", "mutex"};
    for (std::size_t s = 0; s < kStallReasons; ++s)
      out.push_back(cat("  ", kNames[s], "  ", q.stall[s]));
  }
}

std::vector<std::string> DebugRun::show(std::string_view topic, std::int64_t unit) const {
  std::vector<std::string> out;
  if (topic == "semaphores") {
    for (int s = 0; s < 16; s += 8) {
      std::string text = cat("  ", s, " to ", s + 7, ":");
      for (int k = s; k < s + 8; ++k) text += cat(" ", static_cast<int>(machine_.semaphores[k]));
      out.push_back(std::move(text));
    }
    out.push_back(machine_.mutex_owner < 0 ? "  mutex: free"
                                           : cat("  mutex: qpu ", machine_.mutex_owner));
    return out;
  }
  for (int i = 0; i < active_; ++i) {
    if (unit >= 0 && i != unit) continue;
    if (unit < 0 && topic != "waiting") out.push_back(cat("qpu ", i));
    show_one(topic, qpu(i), out);
  }
  return out;
}

std::optional<sim::Datum> DebugRun::find(std::string_view name, std::int64_t unit) const {
  sim::Datum d;
  d.name = std::string(name);
  d.type = dtypes::int32;
  auto vectors = [&](const std::uint32_t* at, std::int64_t count) {
    d.count = count;
    d.read = [at](std::int64_t first, std::int64_t n, void* out) {
      std::memcpy(out, at + first, static_cast<std::size_t>(n) * 4);
    };
    return d;
  };
  auto number = [&](std::string_view prefix, std::size_t least, std::size_t count) -> std::int64_t {
    if (!name.starts_with(prefix)) return -1;
    std::size_t n = 0;
    const char* end = name.data() + name.size();
    const auto [at, status] = std::from_chars(name.data() + prefix.size(), end, n);
    return status == std::errc() && at == end && n >= least && n < count
               ? static_cast<std::int64_t>(n)
               : -1;
  };
  const Qpu& q = qpu(unit);
  // An argument's name wins over a register's.
  if (kernel_) {
    std::size_t pointer = 0, scalar = 0;
    for (const runtime::KernelParam& p : kernel_->params) {
      if (p.kind == runtime::ParamKind::pointer) {
        if (pointer >= launch_.pointers.size()) break;
        const std::uint64_t address = launch_.pointers[pointer++];
        if (p.name != name) continue;
        const auto [start, bytes] = machine_.memory.allocation(address);
        d.type = p.dtype;
        d.count = bytes ? static_cast<std::int64_t>(start + bytes - address) / p.dtype.bytes() : 0;
        d.read = [this, address, each = p.dtype.bytes()](std::int64_t first, std::int64_t n,
                                                         void* out) {
          std::memcpy(out, machine_.memory.raw(address + static_cast<std::uint64_t>(first * each)),
                      static_cast<std::size_t>(n * each));
        };
        return d;
      }
      if (scalar >= launch_.scalars.size()) break;
      const std::int64_t value = launch_.scalars[scalar++];
      if (p.name != name) continue;
      d.type = p.dtype.is_float() ? dtypes::float64 : dtypes::int64;
      d.count = 1;
      d.read = [value](std::int64_t, std::int64_t, void* out) { std::memcpy(out, &value, 8); };
      return d;
    }
  }
  if (name == "vpm") return vectors(&machine_.vpm[0][0], 64 * 16);
  d.unit = unit;
  if (std::int64_t n = number("ra", 0, 32); n >= 0)
    return vectors(q.slot[kSlotRa + static_cast<std::size_t>(n)].lane, 16);
  if (std::int64_t n = number("rb", 0, 32); n >= 0)
    return vectors(q.slot[kSlotRb + static_cast<std::size_t>(n)].lane, 16);
  if (std::int64_t n = number("r", 0, 6); n >= 0)
    return vectors(q.slot[kSlotAcc + static_cast<std::size_t>(n)].lane, 16);
  return std::nullopt;
}

std::vector<std::string> DebugRun::names(std::int64_t) const {
  std::vector<std::string> out;
  if (kernel_)
    for (const runtime::KernelParam& p : kernel_->params) out.push_back(p.name);
  for (const char* n : {"r0 to r5", "ra0 to ra31", "rb0 to rb31", "vpm"}) out.emplace_back(n);
  return out;
}

sim::Datum DebugRun::memory(std::uint64_t address, std::int64_t) const {
  sim::Datum d;
  d.name = cat("*", hex(address));
  d.type = dtypes::uint32;
  if (machine_.memory.contains(address, 4))
    d.count =
        static_cast<std::int64_t>((machine_.memory.base() + machine_.memory.size() - address) / 4);
  d.read = [this, address](std::int64_t first, std::int64_t n, void* out) {
    std::memcpy(out, machine_.memory.raw(address + static_cast<std::uint64_t>(first) * 4),
                static_cast<std::size_t>(n) * 4);
  };
  return d;
}

}  // namespace weft::qpu::hw
