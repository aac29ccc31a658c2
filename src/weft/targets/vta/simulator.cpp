// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/simulator.h"

#include <optional>

#include "weft/sim/delays.h"
#include "weft/targets/vta/debug.h"

namespace weft::vta {

struct VtaSimulator::Loaded {
  struct One {
    explicit One(const Kernel& k) : signature(k.signature), prepared(k.stream), host(k.host) {}
    runtime::KernelSignature signature;
    Prepared prepared;
    std::vector<HostCopy> host;
    std::optional<Timing> timing;
    std::vector<std::uint64_t> align;  // per parameter: bytes its address must be a multiple of
  };
  std::vector<One> kernels;
  std::uint64_t uop_base = 0;
};

VtaSimulator::VtaSimulator(const Config& config, SimOptions options)
    : isa_(config),
      options_(std::move(options)),
      memory_("vta dram", options_.memory_bytes, 4096),
      engine_(options_.engine == EngineKind::oracle ? make_oracle(isa_)
                                                    : make_fast_engine(isa_, options_.kernels)) {}

VtaSimulator::~VtaSimulator() = default;

std::size_t VtaSimulator::load(const runtime::Binary& binary) { return load(from_binary(binary)); }

std::size_t VtaSimulator::load(const Program& program) {
  if (!program.config.same_machine(config())) {
    throw Error(
        ErrorKind::emit, "vta.binary.config",
        cat("the program was made for ", program.config.key(), ", the device is ", config().key()))
        .help("build it again for this device's configuration, or reconfigure the device");
  }
  auto loaded = std::make_unique<Loaded>();
  for (const Kernel& kernel : program.kernels) {
    Loaded::One& one = loaded->kernels.emplace_back(kernel);
    one.align.assign(kernel.signature.params.size(), 1);
    for (std::size_t i = 0; i < kernel.stream.insns.size(); ++i) {
      std::uint16_t base = kernel.stream.base[i];
      const Insn& n = kernel.stream.insns[i];
      if (base >= kUopArena || !n.is_dma()) continue;
      one.align[base] =
          std::max(one.align[base], static_cast<std::uint64_t>(config().elem_bytes(n.mem)));
    }
  }
  loaded->uop_base = memory_.allocate(std::max<std::uint64_t>(program.uops.size() * 4, 4), 4096);
  std::memcpy(memory_.raw(loaded->uop_base), program.uops.data(), program.uops.size() * 4);
  sim::hand_over();
  std::lock_guard lock(programs_mutex_);
  programs_.emplace(next_, std::move(loaded));
  return next_++;
}

void VtaSimulator::unload(std::size_t program) {
  sim::hand_over();
  std::lock_guard lock(programs_mutex_);
  auto found = programs_.find(program);
  if (found == programs_.end()) return;
  memory_.release(found->second->uop_base);
  programs_.erase(found);
}

sim::RunResult VtaSimulator::run(std::size_t program, const sim::Launch& launch,
                                 const sim::RunLimits& limits) {
  Loaded* loaded = nullptr;
  {
    std::lock_guard lock(programs_mutex_);
    auto found = programs_.find(program);
    WEFT_CHECK(found != programs_.end(), "program ", program, " is not loaded");
    loaded = found->second.get();
  }
  Loaded::One& kernel = loaded->kernels.at(launch.kernel);
  if (launch.pointers.size() != kernel.signature.params.size()) {
    throw Error(ErrorKind::value, "vta.launch.arguments",
                cat("\"", kernel.signature.name, "\" takes ", kernel.signature.params.size(),
                    " arrays, not ", launch.pointers.size()));
  }
  if (!kernel.host.empty()) {
    std::vector<HostSpan> spans;
    for (std::uint64_t p : launch.pointers) {
      auto [start, bytes] = memory_.allocation(p);
      spans.push_back({memory_.raw(p), bytes ? start + bytes - p : 0});
    }
    for (const HostCopy& copy : kernel.host) {
      vta::run(copy, spans);
      host_bytes_ += bytes_moved(copy);
    }
    ++host_launches_;
    return {0, sim::StopReason::finished};
  }
  for (std::size_t i = 0; i < launch.pointers.size(); ++i) {
    if (launch.pointers[i] % kernel.align[i] == 0) continue;
    throw Error(
        ErrorKind::value, "vta.launch.alignment",
        cat("argument \"", kernel.signature.params[i].name, "\" at ", hex(launch.pointers[i]),
            " is not aligned to its elements of ", kernel.align[i], " bytes"))
        .note("DRAM addresses of instructions count whole elements");
  }
  sim::Debugger* debugger = options_.mode == Mode::full ? sim::debugger() : nullptr;
  std::optional<DebugRun> debug;
  if (debugger) {
    debug.emplace(*debugger, isa_, options_.timing, kernel.prepared, kernel.signature, launch,
                  loaded->uop_base, memory_);
  }
  if (!kernel.timing) kernel.timing = estimate(kernel.prepared, config(), options_.timing);
  const Timing& timing = *kernel.timing;
  if (timing.cycles > limits.cycles) {
    throw sim::fault("vta.limit.cycles",
                     cat("\"", kernel.signature.name, "\" takes ", timing.cycles, " cycles"),
                     {"vta", -1, timing.cycles, "", ""})
        .note(cat("the limit is ", limits.cycles));
  }
  if (options_.mode == Mode::full) {
    ExecuteOptions options;
    options.strict = options_.strict;
    options.token_limit = options_.strict ? 255 : 0;
    if (debug) {
      debug->execute(options, work_);
      debug->ended(timing.cycles);
    } else {
      engine_->clear();
      execute(kernel.prepared, launch.pointers, loaded->uop_base, *engine_, memory_, options,
              work_);
    }
  }
  if (trace_) {
    TimingOptions options;
    options.trace = trace_;
    options.clock_hz = config().board().clock_hz;
    options.start_cycle = total_.cycles;
    estimate(kernel.prepared, config(), options_.timing, options);
  }
  ++launches_;
  total_.cycles += timing.cycles;
  for (int s = 0; s < 3; ++s) {
    total_.stage[s].busy += timing.stage[s].busy;
    total_.stage[s].stall_token += timing.stage[s].stall_token;
    total_.stage[s].stall_bus += timing.stage[s].stall_bus;
    total_.stage[s].stall_fetch += timing.stage[s].stall_fetch;
    total_.stage[s].idle += timing.stage[s].idle;
  }
  total_.read_busy += timing.read_busy, total_.write_busy += timing.write_busy,
      total_.fetch_busy += timing.fetch_busy;
  total_.gemm_cycles += timing.gemm_cycles;
  return {timing.cycles, sim::StopReason::finished};
}

runtime::StatReport VtaSimulator::stats() const {
  runtime::StatReport r;
  r.add("cycles", "cycles", "simulated time", total_.cycles);
  r.add("launches", "1", "kernels run", launches_);
  r.add("instructions", "1", "instructions executed", work_.instructions);
  r.add("instructions.load", "1", "LOAD that moved data", work_.loads);
  r.add("instructions.store", "1", "STORE that moved data", work_.stores);
  r.add("instructions.gemm", "1", "GEMM", work_.gemms);
  r.add("instructions.alu", "1", "ALU", work_.alus);
  r.add("instructions.finish", "1", "FINISH", work_.finishes);
  r.add("instructions.nop", "1", "LOAD and STORE that only exchange tokens", work_.nops);
  r.add("uops.gemm", "1", "micro-operations of GEMM", work_.gemm_uops);
  r.add("uops.reset", "1", "micro-operations that set to zero", work_.reset_uops);
  r.add("uops.alu", "1", "micro-operations of ALU", work_.alu_uops);
  r.add("macs", "1", "multiply-accumulates", work_.macs);
  for (int s = 0; s < 3; ++s) {
    std::string unit(to_string(static_cast<Stage>(s)));
    r.add(cat("busy.", unit), "cycles", "executing, the DMA's latency included",
          total_.stage[s].busy);
    r.add(cat("stall.", unit, ".token"), "cycles", "waiting for another stage",
          total_.stage[s].stall_token);
    r.add(cat("stall.", unit, ".bus"), "cycles", "waiting for the memory port",
          total_.stage[s].stall_bus);
    r.add(cat("stall.", unit, ".fetch"), "cycles", "waiting for an instruction",
          total_.stage[s].stall_fetch);
    r.add(cat("idle.", unit), "cycles", "nothing left to do", total_.stage[s].idle);
  }
  r.add("active.gemm", "cycles", "the matrix unit took a micro-operation", total_.gemm_cycles);
  r.add("active.read_port", "cycles", "data came from DRAM", total_.read_busy);
  r.add("active.write_port", "cycles", "data went to DRAM", total_.write_busy);
  r.add("active.fetch", "cycles", "instructions came from DRAM", total_.fetch_busy);
  std::int64_t read = work_.bytes_fetched;
  for (int m = 0; m < 6; ++m) {
    if (m == 4) continue;
    r.add(cat("bytes.", to_string(static_cast<MemType>(m)), ".written"), "bytes",
          "loaded into this on-chip memory, counted in DRAM bytes", work_.bytes_read[m]);
    read += work_.bytes_read[m];
  }
  r.add("bytes.insn.fetched", "bytes", "instructions", work_.bytes_fetched);
  r.add("bytes.dram.read", "bytes", "loads and instructions", read);
  r.add("bytes.dram.written", "bytes", "stores", work_.bytes_written);
  r.add("host.launches", "1", "kernels of copies that the host made; they take no simulated time",
        host_launches_);
  r.add("host.bytes", "bytes", "read and written by them", host_bytes_);
  return r;
}

void VtaSimulator::clear_stats() {
  work_ = {};
  total_ = {};
  launches_ = host_launches_ = host_bytes_ = 0;
}

std::vector<sim::NamedValue> VtaSimulator::state() const {
  std::vector<sim::NamedValue> out;
  for (std::uint32_t e = 0; e < 4; ++e) {
    std::vector<std::string> lanes;
    for (std::int32_t v : engine_->acc(e)) lanes.push_back(std::to_string(v));
    out.push_back({cat("acc[", e, "]"), join(lanes, " ")});
  }
  return out;
}

Ref<runtime::Device> open_simulator(const Config& config, SimOptions options, std::string name) {
  runtime::DeviceInfo info;
  info.name = std::move(name);
  info.kind = runtime::DeviceKind::simulator;
  info.description = cat("simulated VTA ", config.model());
  info.clock_hz = config.board().clock_hz;
  info.dl_type = 12;  // kDLExtDev
  info.limits = {
      {"batch", config.batch()},
      {"block_in", config.block_in()},
      {"block_out", config.block_out()},
      {"uop_depth", config.depth(MemType::uop)},
      {"inp_depth", config.depth(MemType::inp)},
      {"wgt_depth", config.depth(MemType::wgt)},
      {"acc_depth", config.depth(MemType::acc)},
      {"allocation_align", 4096}};  // pages: DRAM addresses count whole elements of any memory
  return make_ref<sim::SimDevice>(std::make_unique<VtaSimulator>(config, std::move(options)),
                                  std::move(info), "vta");
}

}  // namespace weft::vta
