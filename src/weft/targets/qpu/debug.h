// SPDX-License-Identifier: Apache-2.0
#pragma once
// A launch under the debugger: the literal engine, one report before each instruction. It gives way
// where the other engines do, so clocks and statistics are theirs.

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "weft/sim/debug/debugger.h"
#include "weft/sim/simulator.h"
#include "weft/targets/qpu/abi.h"
#include "weft/targets/qpu/machine.h"

namespace weft::qpu::hw {

class DebugRun final : public sim::Debuggee {
 public:
  DebugRun(sim::Debugger& debugger, Machine& machine, const Program& program,
           const runtime::KernelSignature* kernel, const sim::Launch& launch, int active);
  ~DebugRun() override;
  DebugRun(const DebugRun&) = delete;

  /// As run_oracle, with reports.
  void run(Qpu& q, std::int64_t limit);
  /// Stops where the launch has failed, before its state is cleared; what is to be thrown then.
  std::exception_ptr show_failure(std::exception_ptr reason);
  void ended(std::int64_t cycles) { debugger_.ended(cycles); }
  /// Executions per instruction.
  const std::vector<std::int64_t>& counts() const { return counts_; }

  std::string describe() const override;
  std::string note() const override;
  std::int64_t unit_count() const override { return active_; }
  std::string unit_name(std::int64_t unit) const override { return cat("qpu ", unit); }
  std::int64_t find_unit(std::string_view text) const override;
  std::string legal_units() const override;
  std::vector<std::int64_t> busy_units() const override;
  sim::UnitState unit_state(std::int64_t unit) const override;
  std::string instruction(sim::CodePlace place) const override;
  std::int64_t number(sim::CodePlace place) const override {
    return static_cast<std::int64_t>(place);
  }
  std::optional<sim::CodePlace> numbered(std::int64_t number, std::int64_t unit) const override;
  sim::SourceLine source(sim::CodePlace place) const override;
  void each_line(
      const std::function<void(sim::CodePlace, const sim::SourceLine&)>& f) const override;
  void each_function(
      const std::function<void(sim::CodePlace, const std::string&)>& f) const override;
  std::string source_text(const std::string& file) const override;
  std::vector<sim::Topic> topics() const override;
  std::vector<std::string> show(std::string_view topic, std::int64_t unit) const override;
  std::optional<sim::Datum> find(std::string_view name, std::int64_t unit) const override;
  std::vector<std::string> names(std::int64_t unit) const override;
  sim::Datum memory(std::uint64_t address, std::int64_t unit) const override;

 private:
  const Qpu& qpu(std::int64_t unit) const { return machine_.qpus[static_cast<std::size_t>(unit)]; }
  void show_one(std::string_view topic, const Qpu& q, std::vector<std::string>& out) const;

  sim::Debugger& debugger_;
  Machine& machine_;
  const Program& program_;
  const runtime::KernelSignature* kernel_;
  const sim::Launch& launch_;
  int active_;
  std::vector<std::int64_t> counts_;
  std::vector<bool> tried_;  // the instruction at hand has been reported and had to wait
};

}  // namespace weft::qpu::hw
