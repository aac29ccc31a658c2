// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/debug.h"

#include <algorithm>
#include <cstring>

#include "weft/targets/vta/checker.h"
#include "weft/targets/vta/tokens.h"

namespace weft::vta {

namespace {
constexpr const char* kUnits[] = {"fetch", "load", "compute", "store"};
}

DebugRun::DebugRun(sim::Debugger& debugger, const Isa& isa, const TimingParams& timing,
                   const Prepared& program, const runtime::KernelSignature& signature,
                   const sim::Launch& launch, std::uint64_t uop_base, sim::Memory& dram)
    : debugger_(debugger),
      isa_(isa),
      program_(program),
      signature_(signature),
      launch_(launch),
      uop_base_(uop_base),
      dram_(dram),
      engine_(make_oracle(isa)),
      done_(program.stream.insns.size()) {
  TimingOptions options;
  options.keep_order = true;
  options.times = &times_;
  std::exception_ptr reason;
  try {
    order_ = estimate(program, isa.config(), timing, options).order;
  } catch (...) {
    reason = std::current_exception();
  }
  if (reason) {  // everything that could run has run
    for (std::size_t i = 0; i < done_.size(); ++i) {
      done_[i] = times_.start[i] >= 0;
      cycle_ = std::max(cycle_, times_.end[i]);
    }
  } else {
    Kernel kernel;
    kernel.stream = program.stream;
    Program whole{isa.config(), {}, {}};
    whole.uops.resize(1);
    const auto* words = reinterpret_cast<const std::uint32_t*>(dram.raw(uop_base));
    whole.uops.assign(words, words + dram.allocation(uop_base).second / 4);
    kernel.signature = signature;
    whole.kernels.push_back(std::move(kernel));
    // The checker takes arrays to be apart.
    std::vector<std::uint64_t> starts;
    for (std::uint64_t p : launch.pointers) starts.push_back(dram.allocation(p).first);
    std::sort(starts.begin(), starts.end());
    const bool shared = std::adjacent_find(starts.begin(), starts.end()) != starts.end();
    if (shared || check(whole, 0)) order_.clear();
  }
  debugger_.resume(*this, true);
  if (!reason) return;
  reason = show_failure(reason);
  debugger_.forget(*this);
  debugger_.pause();
  std::rethrow_exception(reason);
}

DebugRun::~DebugRun() {
  debugger_.forget(*this);
  debugger_.pause();
}

void DebugRun::reach(std::uint32_t at) {
  // In another order than time's, a stage may be ahead.
  cycle_ = order_.empty() ? times_.start[at] : std::max(cycle_, times_.start[at]);
  debugger_.before(1 + static_cast<int>(insn(at).stage()), at, times_.start[at]);
  done_[at] = true;
}

void DebugRun::execute(ExecuteOptions options, Work& work) {
  options.order = order_;
  options.before = [this](std::uint32_t at) { reach(at); };
  std::exception_ptr reason;
  try {
    vta::execute(program_, launch_.pointers, uop_base_, *engine_, dram_, options, work);
  } catch (...) {
    reason = show_failure(std::current_exception());
  }
  if (reason) std::rethrow_exception(reason);
}

std::exception_ptr DebugRun::show_failure(std::exception_ptr reason) {
  try {
    try {
      std::rethrow_exception(reason);
    } catch (const Error& error) {
      debugger_.failed(error);
    }
  } catch (...) {
    return std::current_exception();
  }
  return reason;
}

std::string DebugRun::describe() const {
  return cat("stream \"", signature_.name, "\", ", program_.stream.insns.size(),
             " instructions: ", program_.queue[0].size(), " load, ", program_.queue[1].size(),
             " compute, ", program_.queue[2].size(), " store");
}

std::string DebugRun::note() const {
  return order_.empty()
             ? "the checker cannot prove that tokens order all accesses: instructions are shown in "
               "the order of execution, not of time"
             : "instructions are shown in the order of their start; their effect is seen at once";
}

std::string DebugRun::unit_name(std::int64_t unit) const { return kUnits[unit]; }

std::int64_t DebugRun::find_unit(std::string_view text) const {
  for (int u = 0; u < 4; ++u)
    if (text == kUnits[u]) return u;
  return -1;
}

std::optional<std::uint32_t> DebugRun::head(int stage) const {
  for (std::uint32_t at : program_.queue[stage])
    if (!done(at)) return at;
  return std::nullopt;
}

std::int64_t DebugRun::tokens(int counter) const {
  std::int64_t n = 0;
  for (std::uint32_t i = 0; i < done_.size(); ++i) {
    if (!done(i)) continue;
    const TokenUse use = token_use(insn(i));
    if (use.pops >> counter & 1) --n;
    if (use.pushes >> counter & 1 && (order_.empty() || times_.end[i] <= cycle_)) ++n;
  }
  return n;
}

std::string DebugRun::missing_tokens(std::uint32_t at) const {
  std::vector<std::string> out;
  const TokenUse use = token_use(insn(at));
  for (int t = 0; t < 4; ++t)
    if ((use.pops >> t & 1) && tokens(t) <= 0) out.emplace_back(kTokenNames[t]);
  return join(out, " and ");
}

std::vector<std::int64_t> DebugRun::busy_units() const {
  std::vector<std::int64_t> out;
  for (int s = 0; s < 3; ++s)
    if (head(s)) out.push_back(s + 1);
  if (std::any_of(times_.fetched.begin(), times_.fetched.end(),
                  [&](std::int64_t t) { return t > cycle_; }))
    out.insert(out.begin(), 0);
  // The stage whose instruction starts first is the one at hand.
  std::stable_sort(out.begin(), out.end(), [&](std::int64_t a, std::int64_t b) {
    auto start = [&](std::int64_t u) -> std::int64_t {
      if (u == 0) return INT64_MAX;
      const std::optional<std::uint32_t> at = head(static_cast<int>(u) - 1);
      return at && times_.start[*at] >= 0 ? times_.start[*at] : INT64_MAX - 1;
    };
    return start(a) < start(b);
  });
  return out;
}

sim::UnitState DebugRun::unit_state(std::int64_t unit) const {
  sim::UnitState out;
  out.cycle = cycle_;
  if (unit == 0) {
    for (std::uint32_t i = 0; i < done_.size(); ++i) {
      if (times_.fetched[i] >= 0 && times_.fetched[i] <= cycle_) continue;
      out.place = i;
      out.state = times_.fetched[i] < 0 ? "waits: the queue before it is full" : "running";
      return out;
    }
    out.state = "finished";
    return out;
  }
  const std::optional<std::uint32_t> at = head(static_cast<int>(unit) - 1);
  if (!at) {
    out.state = "finished";
    return out;
  }
  out.place = *at;
  for (std::uint32_t i : program_.queue[unit - 1]) {
    if (!done(i) || times_.end[i] <= cycle_) continue;
    out.state = cat("busy with *", i, " until cycle ", times_.end[i]);
    return out;
  }
  if (const std::string missing = missing_tokens(*at); !missing.empty())
    out.state = cat("waits for a token ", missing);
  else if (times_.fetched[*at] < 0 || times_.fetched[*at] > cycle_)
    out.state = "waits for an instruction";
  else out.state = "running";
  return out;
}

std::string DebugRun::instruction(sim::CodePlace place) const {
  return isa_.print(insn(static_cast<std::uint32_t>(place)));
}

std::optional<sim::CodePlace> DebugRun::numbered(std::int64_t number, std::int64_t) const {
  if (number < 0 || number >= static_cast<std::int64_t>(done_.size())) return std::nullopt;
  return static_cast<sim::CodePlace>(number);
}

sim::SourceLine DebugRun::source(sim::CodePlace) const { return {{}, 0, {}}; }
void DebugRun::each_line(const std::function<void(sim::CodePlace, const sim::SourceLine&)>&) const {
}
void DebugRun::each_function(
    const std::function<void(sim::CodePlace, const std::string&)>& f) const {
  if (!done_.empty()) f(0, signature_.name);
}
std::string DebugRun::source_text(const std::string&) const { return {}; }

std::vector<sim::Topic> DebugRun::topics() const {
  return {{"queues", "instructions that wait in front of each stage"},
          {"tokens", "the four counters of dependency tokens"},
          {"waiting", "stages that cannot go on, and what they wait for"},
          {"uops", "micro-operations of the stage's next instruction"}};
}

std::vector<std::string> DebugRun::show(std::string_view topic, std::int64_t unit) const {
  std::vector<std::string> out;
  if (topic == "tokens") {
    for (int t = 0; t < 4; ++t)
      out.push_back(
          cat("  ", kTokenNames[t], std::string(16 - std::strlen(kTokenNames[t]), ' '), tokens(t)));
    return out;
  }
  if (topic == "waiting") {
    for (int u = 1; u < 4; ++u) {
      const sim::UnitState s = unit_state(u);
      if (!s.place || s.state == "running") continue;
      out.push_back(
          cat("  ", kUnits[u], "  ", s.state, ", then *", *s.place, " ", instruction(*s.place)));
    }
    return out;
  }
  if (topic == "queues") {
    for (int s = 0; s < 3; ++s) {
      if (unit > 0 && unit != s + 1) continue;
      std::size_t held = 0;
      std::vector<std::string> lines;
      for (std::uint32_t at : program_.queue[s]) {
        if (done(at) || times_.fetched[at] < 0 || times_.fetched[at] > cycle_) continue;
        if (++held <= 6) lines.push_back(cat("    *", at, "  ", isa_.print(insn(at))));
      }
      out.push_back(cat("  ", kUnits[s + 1], "  ", held, " instructions"));
      for (std::string& l : lines) out.push_back(std::move(l));
      if (held > 6) out.push_back(cat("    and ", held - 6, " more"));
    }
    return out;
  }
  const std::optional<std::uint32_t> at = unit > 0 ? head(static_cast<int>(unit) - 1) : head(1);
  if (!at || insn(*at).is_dma() || insn(*at).op == Opcode::finish) return out;
  const Insn& n = insn(*at);
  std::uint32_t shown = 0;
  for (std::uint32_t u = n.uop_begin; u < n.uop_end && u < engine_->uop().size(); ++u) {
    if (++shown > 16) continue;
    out.push_back(cat("  ", u, "  ", isa_.print(isa_.decode_uop(engine_->uop()[u]))));
  }
  if (shown > 16) out.push_back(cat("  and ", shown - 16, " more"));
  return out;
}

std::optional<sim::Datum> DebugRun::find(std::string_view name, std::int64_t) const {
  sim::Datum d;
  d.name = std::string(name);
  std::size_t index = 0;
  for (const runtime::KernelParam& p : signature_.params) {
    const std::uint64_t address = launch_.pointers[index++];
    if (p.name != name) continue;
    const auto [start, bytes] = dram_.allocation(address);
    const int each = p.dtype.bytes();
    d.type = p.dtype;
    d.count = bytes ? static_cast<std::int64_t>(start + bytes - address) / each : 0;
    d.read = [this, address, each](std::int64_t first, std::int64_t n, void* out) {
      std::memcpy(out, dram_.raw(address + static_cast<std::uint64_t>(first * each)),
                  static_cast<std::size_t>(n * each));
    };
    return d;
  }
  auto on_chip = [&](auto span, DType type) {
    d.type = type;
    d.count = static_cast<std::int64_t>(span.size());
    d.read = [data = span.data()](std::int64_t first, std::int64_t n, void* out) {
      std::memcpy(out, data + first, static_cast<std::size_t>(n) * sizeof *data);
    };
    return d;
  };
  if (name == "inp") return on_chip(engine_->inp(), dtypes::int8);
  if (name == "wgt") return on_chip(engine_->wgt(), dtypes::int8);
  if (name == "acc") return on_chip(engine_->acc_lanes(), dtypes::int32);
  if (name == "uop") return on_chip(engine_->uop(), dtypes::uint32);
  return std::nullopt;
}

std::vector<std::string> DebugRun::names(std::int64_t) const {
  std::vector<std::string> out{"inp", "wgt", "acc", "uop"};
  for (const runtime::KernelParam& p : signature_.params) out.push_back(p.name);
  return out;
}

sim::Datum DebugRun::memory(std::uint64_t address, std::int64_t) const {
  sim::Datum d;
  d.name = cat("*", hex(address));
  if (dram_.contains(address, 4))
    d.count = static_cast<std::int64_t>((dram_.base() + dram_.size() - address) / 4);
  d.read = [this, address](std::int64_t first, std::int64_t n, void* out) {
    std::memcpy(out, dram_.raw(address + static_cast<std::uint64_t>(first) * 4),
                static_cast<std::size_t>(n) * 4);
  };
  return d;
}

}  // namespace weft::vta
