// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/emulator.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <optional>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "weft/base/interrupt.h"
#include "weft/sim/delays.h"
#include "weft/sim/fault.h"
#include "weft/targets/qpu/abi.h"
#include "weft/targets/qpu/debug.h"
#include "weft/targets/qpu/engine/decoupled_timing.h"
#include "weft/targets/qpu/engine/translate.h"
#include "weft/targets/qpu/isa_names.h"
#include "weft/targets/qpu/past_launches.h"

namespace weft::qpu::hw {

namespace {
constexpr int kAnyShare = -2;  // two threads, whoever does more

/// Of this thread's work or, where several work, of the time that passes.
std::int64_t nanoseconds(bool passes) {
  timespec t;
  clock_gettime(passes ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
}  // namespace

struct Emulator::Loaded {
  Program program;
  std::unique_ptr<FastProgram> fast;
  Engine engine = Engine::oracle;  // that `fast` is of
  bool counted = false;
  bool ahead = false;  // QPUs may run ahead of each other on several threads
  PastLaunches past;
  Abi abi;
  std::vector<runtime::KernelSignature> kernels;
  struct Print {
    std::uint32_t pc;
    std::string kind, text;
  };
  std::vector<Print> prints;
  std::vector<std::int64_t> debugged;          // executions per instruction under the debugger
  std::vector<std::unique_ptr<Loaded>> parts;  // kernels beyond the first
};

Emulator::Emulator(EmulatorOptions options)
    : options_(options),
      machine_(options.qpus, options.memory_bytes),
      qpu_instructions_(static_cast<std::size_t>(options.qpus)),
      qpu_idle_(static_cast<std::size_t>(options.qpus)),
      qpu_stall_(static_cast<std::size_t>(options.qpus)) {}

Emulator::~Emulator() = default;

std::unique_ptr<Emulator::Loaded> Emulator::load_one(const runtime::Binary& binary) {
  auto loaded = std::make_unique<Loaded>();
  loaded->program = make_program(words_of(binary), binary.debug);
  loaded->abi = parse_abi(binary);
  loaded->kernels = binary.kernels;
  if (binary.metadata.is_object()) {
    if (const Json* prints = binary.metadata.find("prints")) {
      for (const Json& p : prints->as_array()) {
        loaded->prints.push_back({static_cast<std::uint32_t>(p.at("pc").as_int()),
                                  p.at("kind").as_string(), p.at("text").as_string()});
      }
    }
  }
  make_ready(*loaded);
  loaded->ahead = may_run_ahead(loaded->program);
  return loaded;
}

std::size_t Emulator::load(const runtime::Binary& binary) {
  std::unique_ptr<Loaded> loaded;
  for (const runtime::Binary& one : kernels_of(binary)) {
    std::unique_ptr<Loaded> next = load_one(one);
    if (loaded) loaded->parts.push_back(std::move(next));
    else loaded = std::move(next);
  }
  sim::hand_over();
  std::lock_guard lock(programs_mutex_);
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    if (!programs_[i]) {
      programs_[i] = std::move(loaded);
      return i;
    }
  }
  programs_.push_back(std::move(loaded));
  return programs_.size() - 1;
}

Emulator::Loaded& Emulator::part(Loaded& loaded, std::size_t kernel) {
  check_kernel(kernel, loaded.parts.size() + 1);
  if (kernel == 0) return loaded;
  return *loaded.parts[kernel - 1];
}

void Emulator::make_ready(Loaded& loaded) {
  if (!loaded.program.clean || options_.engine == Engine::oracle) return;
  if (loaded.fast && loaded.engine == options_.engine &&
      loaded.counted == options_.count_instructions)
    return;
  if (loaded.fast) {
    std::lock_guard lock(programs_mutex_);
    count(loaded, unloaded_);
  }
  if (options_.engine == Engine::interpreted) {
    loaded.fast = make_fast(loaded.program, options_.count_instructions, options_.keep_registers);
  } else {
    TranslateOptions how;
    how.count = options_.count_instructions;
    how.keep = options_.keep_registers;
    how.optimisation = options_.optimisation;
    how.file_cache = options_.file_cache;
    loaded.fast = make_translated(loaded.program, how);
  }
  loaded.engine = options_.engine;
  loaded.counted = options_.count_instructions;
}

void Emulator::unload(std::size_t program) {
  std::unique_ptr<Loaded> gone;
  sim::hand_over();
  std::lock_guard lock(programs_mutex_);
  gone.swap(programs_.at(program));
  if (!gone) return;
  count(*gone, unloaded_);
  for (const auto& more : gone->parts) count(*more, unloaded_);
}

void Emulator::count(const Loaded& loaded, Mix& mix) {
  if (!loaded.fast || !loaded.counted) return;
  mix.counted = true;
  const std::vector<std::int64_t>& counts = loaded.fast->counts();
  for (std::size_t i = 0; i < loaded.program.instrs.size(); ++i) {
    const Instr& x = loaded.program.instrs[i];
    const bool alu = x.kind == kAlu || x.kind == kAluImm, a = alu && x.op_add, m = alu && x.op_mul;
    (a && m              ? mix.both
     : a                 ? mix.add
     : m                 ? mix.mul
     : alu               ? mix.idle
     : x.kind == kBranch ? mix.branches
                         : mix.add) +=
        counts[i] + (i < loaded.debugged.size() ? loaded.debugged[i] : 0);
  }
}

Emulator::Loaded& Emulator::loaded(std::size_t program) {
  std::lock_guard lock(programs_mutex_);
  return *programs_.at(program);
}

std::vector<std::uint32_t> Emulator::prepare(const Loaded& loaded, const sim::Launch& launch,
                                             bool may_divide) {
  active_ = 0;
  std::int64_t wanted = launch.extents.empty() ? 1 : launch.extents[0];
  std::vector<std::uint32_t> words =
      fill_uniforms(loaded.abi, launch.pointers, launch.scalars, wanted, options_.qpus);
  active_ = static_cast<int>(wanted);
  spill_ = loaded.abi.spill_bytes
               ? machine_.memory.allocate(
                     loaded.abi.spill_bytes * static_cast<std::uint64_t>(active_), 64)
               : 0;
  uniforms_ = words.empty() ? 0 : machine_.memory.allocate(words.size() * 4, 64);
  machine_.outside_reads = options_.outside_reads;
  machine_.check_races = options_.check_races;
  const std::uint64_t key = PastLaunches::key(active_, launch.scalars);
  const bool may = may_divide && this->may_divide(loaded),
             judged = options_.division == Division::judged;
  way_ = !may                                    ? PastLaunches::kOneThread
         : judged                                ? loaded.past.way(key)
         : options_.division == Division::always ? kAnyShare
                                                 : PastLaunches::kOneThread;
  divided_ = way_ != PastLaunches::kOneThread;
  watched_ = may && !divided_ && loaded.fast->divided()->may_be_joined &&
             !(judged && loaded.past.knows(key));
  begin_qpus(loaded, words);
  return words;
}

bool Emulator::may_divide(const Loaded& loaded) const {
  return options_.threads > 1 && options_.engine != Engine::oracle && loaded.fast &&
         loaded.fast->divided() && active_ > 1 && loaded.ahead && !options_.count_instructions &&
         options_.check_races && !machine_.trace;
}

void Emulator::note_way(Loaded& loaded, const sim::Launch& launch, std::int64_t took) const {
  const std::uint64_t key = PastLaunches::key(active_, launch.scalars);
  if (!divided_) return loaded.past.note(key, PastLaunches::kOneThread, took);
  const DividedProgram& program = *loaded.fast->divided();
  const int most = Ahead::most_share(program, active_);
  loaded.past.note(key, std::min(way_, most), took, std::max(program.own_share, 0), most);
}

std::int64_t Emulator::executed() const {
  std::int64_t instructions = 0;
  for (int i = 0; i < active_; ++i)
    instructions += machine_.qpus[static_cast<std::size_t>(i)].instructions;
  return instructions;
}

void Emulator::begin_qpus(const Loaded& loaded, const std::vector<std::uint32_t>& words) {
  std::size_t per = loaded.abi.uniforms.size();
  std::fill(machine_.uniforms.begin(), machine_.uniforms.end(), std::pair(0u, 0u));
  for (int q = 0; q < active_; ++q) {
    for (std::size_t u = 0; u < per; ++u) {
      std::uint32_t value = words[static_cast<std::size_t>(q) * per + u];
      if (loaded.abi.uniforms[u].kind == UniformKind::spill)
        value = static_cast<std::uint32_t>(spill_ +
                                           loaded.abi.spill_bytes * static_cast<std::uint64_t>(q));
      machine_.memory.store<std::uint32_t>(uniforms_ + (static_cast<std::size_t>(q) * per + u) * 4,
                                           value);
    }
    if (per) {
      auto begin = static_cast<std::uint32_t>(uniforms_ + static_cast<std::size_t>(q) * per * 4);
      machine_.uniforms[static_cast<std::size_t>(q)] = {
          begin, begin + static_cast<std::uint32_t>(per * 4)};
    }
  }
  machine_.begin_launch(loaded.program, active_, !divided_);
}

void Emulator::print(const Loaded& loaded, const Qpu& q) {
  for (const Loaded::Print& p : loaded.prints) {
    if (p.pc != q.pc) continue;
    if (!on_print) return;
    if (p.kind == "text") {
      on_print(p.text);
      return;
    }
    std::string out = "<";
    char buffer[64];
    for (unsigned i = 0; i < 16; ++i) {
      std::uint32_t lane = q.slot[kSlotRa][i];  // the compiler puts what is printed into ra0
      if (p.kind == "float")
        std::snprintf(buffer, sizeof buffer, "%f", static_cast<double>(std::bit_cast<float>(lane)));
      else if (p.kind == "uint") std::snprintf(buffer, sizeof buffer, "%u", lane);
      else std::snprintf(buffer, sizeof buffer, "%i", static_cast<int>(lane));
      out += cat(i ? "," : "", static_cast<const char*>(buffer));
    }
    on_print(out + ">");
    return;
  }
  machine_.fail(q, "qpu.breakpoint", cat("software breakpoint at instruction ", q.pc), "remove it");
}

void Emulator::account(bool clean) {
  std::int64_t end = 0;
  for (int i = 0; i < active_; ++i)
    end = std::max(end, machine_.qpus[static_cast<std::size_t>(i)].time);
  cycles_ += end;
  ++launches_;
  for (std::size_t i = 0; i < machine_.qpus.size(); ++i) {
    Qpu& q = machine_.qpus[i];
    machine_.settle_requests(q);
    qpu_instructions_[i] += q.instructions;
    machine_.shared.counters.uniforms += q.counts.uniforms,
        machine_.shared.counters.sfu += q.counts.sfu;
    machine_.shared.counters.vpm_reads += q.counts.vpm_reads;
    machine_.shared.counters.vpm_writes += q.counts.vpm_writes;
    instructions_ += q.instructions;
    std::int64_t used = q.instructions * timing::kIssue;
    for (std::size_t s = 0; s < kStallReasons; ++s)
      qpu_stall_[i][s] += q.stall[s], used += q.stall[s];
    qpu_idle_[i] += end - used;
    if (machine_.trace && q.instructions) {
      machine_.trace->span(machine_.trace->track("qpu", cat("qpu ", i)), "run", 0,
                           static_cast<double>(q.time) / timing::kClockHz * 1e6);
    }
  }
  for (std::size_t u = 0; u < 6; ++u) {
    const auto requests = static_cast<std::int64_t>(machine_.shared.tmus[u].requests);
    tmu_busy_[u] += requests * timing::kTmuVector;
    machine_.shared.counters.tmu_requests += requests;
  }
  vdr_busy_ += machine_.shared.vdr.busy();
  vdw_busy_ += machine_.shared.vdw.busy();
  sdram_busy_ += machine_.shared.sdram.busy();
  if (clean) note_semaphores();
  machine_.end_launch(clean);
  if (uniforms_) machine_.memory.release(uniforms_);
  if (spill_) machine_.memory.release(spill_);
  uniforms_ = spill_ = 0;
}

void Emulator::note_semaphores() {
  for (unsigned n = 0; n < std::size(machine_.semaphores); ++n) {
    const unsigned value = machine_.semaphores[n];
    if (value == 0) continue;
    std::string message = cat("semaphore ", n, " is ", value,
                              " at the end of the launch, and the next launch begins with that");
    auto same = [&](const Finding& f) { return f.message == message; };
    auto found = std::find_if(machine_.findings.begin(), machine_.findings.end(), same);
    if (found != machine_.findings.end()) ++found->count;
    else machine_.findings.push_back({"qpu.semaphore.left", 0, 0, std::move(message), "", 1});
  }
}

void Emulator::stuck() {
  std::string who;
  const Qpu* first = nullptr;
  std::vector<std::string> finished, notes;
  for (int i = 0; i < active_; ++i) {
    const Qpu& q = machine_.qpus[static_cast<std::size_t>(i)];
    if (q.finished) {
      finished.push_back(std::to_string(i));
      continue;
    }
    if (!first) first = &q;
    const bool mutex = q.wait == Wait::mutex;
    const unsigned n = q.wait_semaphore, value = machine_.semaphores[n];
    who += cat(who.empty() ? "" : ", ", "qpu ", i,
               mutex ? " for the mutex" : cat(" for semaphore ", n));
    const std::string source = machine_.source_of(q.pc);
    notes.push_back(
        cat("qpu ", i, " at pc ", hex(std::uint64_t{q.pc} * 8),
            source.empty() ? "" : cat(" (", source, ")"), ": ",
            mutex   ? cat("the mutex is held by qpu ", machine_.mutex_owner)
            : value ? cat("semaphore ", n, " is ", value, ", its most, and nobody takes it down")
                    : cat("semaphore ", n, " is 0, and nobody takes it up")));
  }
  Error error = machine_.fault(*first, "qpu.deadlock", cat("nothing can go on: waiting are ", who),
                               "match every acquire with a release");
  for (std::string& note : notes) error.note(std::move(note));
  if (!finished.empty()) error.note(cat("finished: qpu ", weft::join(finished, ", ")));
  throw error;
}

Ahead* Emulator::ahead() {
  if (ahead_ && ahead_process_ != getpid()) static_cast<void>(ahead_.release());
  try {
    if (!ahead_) ahead_ = std::make_unique<Ahead>(machine_);
    ahead_process_ = getpid();
  } catch (const std::system_error&) {  // one thread does it all
  }
  return ahead_.get();
}

bool Emulator::run_ahead(Loaded& loaded, const std::vector<std::uint32_t>& words,
                         std::int64_t limit_cycles) {
  if (!divided_) return false;
  if (ahead() && ahead_->run(*loaded.fast, active_, limit_cycles, way_)) return true;
  loaded.ahead = divided_ = false;  // the next launch would go the same way
  begin_qpus(loaded, words);
  return false;
}

bool Emulator::join(Loaded& loaded, const std::vector<std::uint32_t>& words,
                    std::int64_t limit_cycles, std::int64_t window) {
  watched_ = false;
  if (!ahead_->may_join(active_)) return false;
  divided_ = true;
  if (ahead_->join(*loaded.fast, active_, limit_cycles, window)) return true;
  divided_ = false;
  begin_qpus(loaded, words);
  return false;
}

void Emulator::run_alone(Loaded& loaded, const std::vector<std::uint32_t>& words,
                         std::int64_t limit_cycles, DebugRun* debug) {
  const bool fast = loaded.fast && options_.engine != Engine::oracle && !debug;
  std::optional<Turns> turns(std::in_place, fast ? loaded.fast.get() : nullptr);
  if (watched_ && ahead()) ahead_->watch(active_);
  else watched_ = false;
  std::int64_t window = 0;
  while (true) {
    poll_interrupt();
    if (watched_ && executed() >= options_.join_after) {
      turns.reset();  // it may translate the program
      if (join(loaded, words, limit_cycles, window)) return;
      if (executed() == 0) window = 0;
      turns.emplace(loaded.fast.get());
    }
    window += timing::kQuantum;
    std::int64_t stop = limit_cycles < window ? limit_cycles + 1 : window,
                 earliest = std::numeric_limits<std::int64_t>::max();
    bool running = false, moved = false;
    for (int i = 0; i < active_; ++i) {
      Qpu& q = machine_.qpus[static_cast<std::size_t>(i)];
      if (q.finished) continue;
      running = true;
      if (q.wait != Wait::none && !machine_.wake(q)) continue;
      if (q.time < stop) {
        if (fast) loaded.fast->run(machine_, q, stop);
        else if (debug) debug->run(q, stop);
        else run_oracle(machine_, q, stop);
      }
      moved = true;  // it ran, or will once the window reaches it
      if (q.time > limit_cycles) {
        q.now = q.time;
        machine_.fail(q, "qpu.limit.cycles",
                      cat("the launch ran longer than ", limit_cycles, " cycles"),
                      "raise the limit, or look for a loop without end");
      }
      if (!q.finished && q.wait == Wait::none) earliest = std::min(earliest, q.time);
    }
    if (!running) return;
    if (!moved) stuck();
    if (earliest != std::numeric_limits<std::int64_t>::max())
      window = std::max(window, earliest / timing::kQuantum * timing::kQuantum);
  }
}

sim::RunResult Emulator::run(std::size_t handle, const sim::Launch& launch,
                             const sim::RunLimits& limits) {
  Loaded& loaded = part(this->loaded(handle), launch.kernel);
  make_ready(loaded);
  sim::Debugger* debugger = options_.debugged ? sim::debugger() : nullptr;
  std::vector<std::uint32_t> words = prepare(loaded, launch, !debugger);
  machine_.on_breakpoint = [this, &loaded](const Qpu& q) { print(loaded, q); };
  std::int64_t finish = 0;
  const bool divided = divided_;
  const std::int64_t began = nanoseconds(divided_);
  std::optional<DebugRun> debug;
  try {
    if (debugger) {
      debug.emplace(*debugger, machine_, loaded.program,
                    loaded.kernels.empty() ? nullptr : &loaded.kernels[0], launch, active_);
    }
    if (!run_ahead(loaded, words, limits.cycles))
      run_alone(loaded, words, limits.cycles, debug ? &*debug : nullptr);
    for (int i = 0; i < active_; ++i)
      finish = std::max(finish, machine_.qpus[static_cast<std::size_t>(i)].time);
    if (debug) debug->ended(finish);
  } catch (...) {
    std::exception_ptr reason = std::current_exception();
    if (debug) reason = debug->show_failure(reason);
    count_debugged(loaded, debug ? &*debug : nullptr);
    account(false);
    std::rethrow_exception(reason);
  }
  count_debugged(loaded, debug ? &*debug : nullptr);
  if (divided == divided_ && way_ != kAnyShare)  // else others have joined it, or could not end it
    note_way(loaded, launch, nanoseconds(divided_) - began);
  account(true);
  return {finish, sim::StopReason::finished};
}

void Emulator::count_debugged(Loaded& loaded, const DebugRun* debug) {
  if (!debug) return;
  loaded.debugged.resize(debug->counts().size());
  for (std::size_t i = 0; i < loaded.debugged.size(); ++i) loaded.debugged[i] += debug->counts()[i];
}

void Emulator::begin(std::size_t program, const sim::Launch& launch) {
  if (running_) account(true);
  running_ = &part(loaded(program), launch.kernel);
  prepare(*running_, launch, false);
  machine_.on_breakpoint = [this](const Qpu& q) { print(*running_, q); };
}

bool Emulator::step() {
  bool any = false;
  for (int i = 0; i < active_; ++i) {
    Qpu& q = machine_.qpus[static_cast<std::size_t>(i)];
    if (q.finished || (q.wait != Wait::none && !machine_.wake(q))) continue;
    any = true;
    if (!q.finished) step_oracle(machine_, q);
  }
  if (any) return true;
  const bool finished = std::all_of(machine_.qpus.begin(), machine_.qpus.end(),
                                    [](const Qpu& q) { return q.finished; });
  running_ = nullptr;
  if (!finished) {
    try {
      stuck();
    } catch (...) {
      account(false);
      throw;
    }
  }
  account(true);
  return false;
}

std::vector<sim::NamedValue> Emulator::state() const {
  std::vector<sim::NamedValue> out;
  for (const Qpu& q : machine_.qpus) {
    if (q.finished) continue;
    auto vector = [&](std::string name, const Vec& v) {
      std::string text;
      for (std::uint32_t lane : v.lane) text += cat(text.empty() ? "" : " ", hex(lane, 8));
      out.push_back({cat("qpu", q.id, ".", name), text});
    };
    out.push_back({cat("qpu", q.id, ".pc"), hex(static_cast<std::uint64_t>(q.pc) * 8)});
    for (std::size_t r = 0; r < 32; ++r) vector(cat("ra", r), q.slot[kSlotRa + r]);
    for (std::size_t r = 0; r < 32; ++r) vector(cat("rb", r), q.slot[kSlotRb + r]);
    for (std::size_t r = 0; r < 6; ++r) vector(cat("r", r), q.slot[kSlotAcc + r]);
  }
  return out;
}

std::vector<Finding> Emulator::take_findings() { return std::exchange(machine_.findings, {}); }

runtime::StatReport Emulator::stats() const {
  runtime::StatReport r;
  const Counters& c = machine_.shared.counters;
  r.add("cycles", "cycles", "simulated V3D clocks, all launches", cycles_);
  r.add("launches", "1", "kernel launches", launches_);
  r.add("instructions", "1", "QPU instructions executed", instructions_);
  static constexpr const char* kStall[] = {"tmu", "dma_load", "dma_store", "semaphore", "mutex"};
  for (std::size_t i = 0; i < machine_.qpus.size(); ++i) {
    std::string unit = cat("qpu", i);
    r.add(cat("instructions.", unit), "1", "instructions of this QPU", qpu_instructions_[i]);
    r.add(cat("busy.", unit), "cycles", "issuing instructions",
          qpu_instructions_[i] * timing::kIssue);
    for (std::size_t s = 0; s < kStallReasons; ++s)
      r.add(cat("stall.", unit, ".", kStall[s]), "cycles", "waiting", qpu_stall_[i][s]);
    r.add(cat("idle.", unit), "cycles", "not started or finished", qpu_idle_[i]);
  }
  auto unit = [&](std::string name, std::string meaning, std::int64_t busy) {
    r.add(cat("busy.", name), "cycles", std::move(meaning), busy);
    r.add(cat("idle.", name), "cycles", "nothing to do", cycles_ - busy);
  };
  for (std::size_t u = 0; u < 6; ++u) unit(cat("tmu", u), "serving requests", tmu_busy_[u]);
  unit("vdr", "DMA loads", vdr_busy_);
  unit("vdw", "DMA stores", vdw_busy_);
  unit("sdram", "transferring", sdram_busy_ + c.memory_lines * timing::kLineClocks);
  r.add("tmu.requests", "1", "vectors asked of the TMUs", c.tmu_requests);
  r.add("tmu.hits", "1", "lines found in a TMU cache", c.tmu_hits);
  r.add("l2.hits", "1", "lines found in the L2 cache", c.l2_hits());
  r.add("l2.misses", "1", "lines fetched from memory", c.memory_lines);
  r.add("bytes.memory.read", "bytes", "from memory by TMU lines and DMA loads",
        c.memory_lines * timing::kLine + c.dma_bytes_read);
  r.add("bytes.memory.written", "bytes", "to memory by DMA stores", c.dma_bytes_written);
  r.add("dma.loads", "1", "DMA loads", c.dma_loads);
  r.add("dma.stores", "1", "DMA stores", c.dma_stores);
  r.add("vpm.reads", "1", "vectors read from the VPM", c.vpm_reads);
  r.add("vpm.writes", "1", "vectors written to the VPM", c.vpm_writes);
  r.add("uniforms", "1", "uniforms read", c.uniforms);
  r.add("sfu", "1", "SFU operations", c.sfu);
  // Instruction mix, from executions per instruction.
  std::lock_guard lock(programs_mutex_);
  Mix mix = unloaded_;
  for (const auto& p : programs_) {
    if (!p) continue;
    count(*p, mix);
    for (const auto& more : p->parts) count(*more, mix);
  }
  if (mix.counted) {
    r.add("mix.add", "1", "instructions with an ADD operation or a load alone", mix.add);
    r.add("mix.mul", "1", "instructions with a MUL operation alone", mix.mul);
    r.add("mix.both", "1", "instructions with both", mix.both);
    r.add("mix.idle", "1", "instructions without an operation", mix.idle);
    r.add("mix.branch", "1", "branches", mix.branches);
  }
  return r;
}

void Emulator::clear_stats() {
  cycles_ = instructions_ = launches_ = vdr_busy_ = vdw_busy_ = sdram_busy_ = 0;
  std::fill(std::begin(tmu_busy_), std::end(tmu_busy_), 0);
  std::fill(qpu_instructions_.begin(), qpu_instructions_.end(), 0);
  std::fill(qpu_idle_.begin(), qpu_idle_.end(), 0);
  for (auto& s : qpu_stall_) s.fill(0);
  machine_.shared.counters = {};
  std::lock_guard lock(programs_mutex_);
  unloaded_ = {};
  for (const auto& p : programs_) {
    if (!p) continue;
    if (p->fast) p->fast->clear_counts();
    p->debugged.clear();
    for (const auto& more : p->parts) {
      if (more->fast) more->fast->clear_counts();
      more->debugged.clear();
    }
  }
}

EmulatorOptions parse_options(std::string_view name) {
  EmulatorOptions out;
  std::size_t colon = name.find(':');
  if (colon == name.npos) return out;
  for (const std::string& item : split(name.substr(colon + 1), ',')) {
    std::size_t equals = item.find('=');
    std::string key = item.substr(0, equals),
                value = equals == item.npos ? "" : item.substr(equals + 1);
    auto bad = [&](std::string_view legal) {
      throw Error(ErrorKind::value, "qpu.device.option",
                  cat("device option \"", item, "\" is not understood"))
          .note(cat("legal: ", legal))
          .help(did_you_mean(key,
                             {"qpus", "races", "reads", "memory", "engine", "counts", "threads"}));
    };
    int n = 0;
    bool numeric = std::from_chars(value.data(), value.data() + value.size(), n).ptr ==
                       value.data() + value.size() &&
                   !value.empty();
    if (key == "qpus") {
      if (!numeric || n < 1 || n > kMaxQpus) bad("qpus=1 to qpus=12");
      out.qpus = n;
    } else if (key == "memory") {
      if (!numeric || n < 1 || n > 1024) bad("memory=1 to memory=1024 (MiB)");
      out.memory_bytes = static_cast<std::uint64_t>(n) << 20;
    } else if (key == "races" && (value == "on" || value == "off")) {
      out.check_races = value == "on";
    } else if (key == "reads" && (value == "fault" || value == "report")) {
      out.outside_reads = value == "fault" ? OutsideReads::fault : OutsideReads::report;
    } else if (key == "engine" &&
               (value == "oracle" || value == "interpreted" || value == "translated")) {
      out.engine = value == "oracle"        ? Engine::oracle
                   : value == "interpreted" ? Engine::interpreted
                                            : Engine::translated;
    } else if (key == "counts" && (value == "on" || value == "off")) {
      out.count_instructions = value == "on";
    } else if (key == "threads") {
      if (!numeric || n < 1 || n > kMaxQpus) bad("threads=1 to threads=12");
      out.threads = n;
    } else {
      bad("qpus=1..12, memory=MiB, races=on|off, reads=fault|report, counts=on|off, "
          "engine=oracle|interpreted|translated, threads=1..12");
    }
  }
  return out;
}

Ref<runtime::Device> make_device(std::string_view name) {
  return make_device(name, parse_options(name));
}

Ref<runtime::Device> make_device(std::string_view name, const EmulatorOptions& options) {
  runtime::DeviceInfo info;
  info.name = std::string(name);
  info.description = cat(options.qpus, " emulated VideoCore IV QPUs");
  info.clock_hz = timing::kClockHz;
  info.dl_type = 14;  // an extension device: not addressable by the host
  info.limits = {{"qpus", options.qpus}, {"lanes", 16}, {"vpm_rows", 64}, {"semaphores", 16}};
  return make_ref<sim::SimDevice>(std::make_unique<Emulator>(options), info, "qpu");
}

}  // namespace weft::qpu::hw
