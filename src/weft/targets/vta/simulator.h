// SPDX-License-Identifier: Apache-2.0
#pragma once
// The simulated VTA as sim::Simulator and, wrapped, as device "vta".

#include <map>
#include <memory>
#include <mutex>

#include "weft/sim/simulator.h"
#include "weft/targets/vta/execute.h"

namespace weft::vta {

enum class EngineKind : std::uint8_t { fast, oracle };
enum class Mode : std::uint8_t {
  full,    // results and cycles
  cycles,  // cycles only: nothing is computed, memory keeps its contents
};

struct SimOptions {
  EngineKind engine = EngineKind::fast;
  Mode mode = Mode::full;
  bool strict = false;                 // refuse what real VTA does not do; bounds tokens at 255
  const KernelSet* kernels = nullptr;  // null: the best of this host
  TimingParams timing;
  std::uint64_t memory_bytes = 1ull << 30;  // DRAM; pages cost nothing until touched
};

class VtaSimulator final : public sim::Simulator {
 public:
  VtaSimulator(const Config& config, SimOptions options);
  ~VtaSimulator() override;
  sim::Memory& memory() override { return memory_; }
  std::size_t load(const runtime::Binary& binary) override;
  void unload(std::size_t program) override;
  sim::RunResult run(std::size_t program, const sim::Launch& launch,
                     const sim::RunLimits& limits) override;
  runtime::StatReport stats() const override;
  void clear_stats() override;
  void trace_to(runtime::TraceSink* sink) override { trace_ = sink; }
  std::vector<sim::NamedValue> state() const override;

  const Config& config() const { return isa_.config(); }
  Engine& engine() { return *engine_; }
  /// Loads a program that is not in a binary.
  std::size_t load(const Program& program);

 private:
  struct Loaded;
  Isa isa_;
  SimOptions options_;
  sim::Memory memory_;
  std::unique_ptr<Engine> engine_;
  std::mutex programs_mutex_;  // others load and unload while one runs
  std::map<std::size_t, std::unique_ptr<Loaded>> programs_;
  std::size_t next_ = 1;
  Work work_;
  Timing total_;
  std::int64_t launches_ = 0, host_launches_ = 0, host_bytes_ = 0;
  runtime::TraceSink* trace_ = nullptr;
};

/// Device "vta". `name` is what the device is called in messages.
Ref<runtime::Device> open_simulator(const Config& config, SimOptions options = {},
                                    std::string name = "vta");

}  // namespace weft::vta
