// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stream under the debugger: the literal engine, instructions in the order of their start in the
// cycle model. Units: fetch, load, compute, store. Where the checker cannot prove that the tokens
// order all accesses, the order of a run without debugger is kept, so that results are the same.

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "weft/sim/debug/debugger.h"
#include "weft/sim/simulator.h"
#include "weft/targets/vta/execute.h"

namespace weft::vta {

class DebugRun final : public sim::Debuggee {
 public:
  /// Throws the fault of a stream that deadlocks, after a stop that shows it.
  DebugRun(sim::Debugger& debugger, const Isa& isa, const TimingParams& timing,
           const Prepared& program, const runtime::KernelSignature& signature,
           const sim::Launch& launch, std::uint64_t uop_base, sim::Memory& dram);
  ~DebugRun() override;
  DebugRun(const DebugRun&) = delete;

  void execute(ExecuteOptions options, Work& work);
  void ended(std::int64_t cycles) { debugger_.ended(cycles); }

  std::string describe() const override;
  std::string note() const override;
  std::int64_t unit_count() const override { return 4; }
  std::string unit_name(std::int64_t unit) const override;
  std::int64_t find_unit(std::string_view text) const override;
  std::string legal_units() const override { return "fetch, load, compute, store"; }
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
  const Insn& insn(std::uint32_t at) const { return program_.stream.insns[at]; }
  bool done(std::uint32_t at) const { return done_[at]; }
  /// The instruction that a stage executes next; nothing when it has done all.
  std::optional<std::uint32_t> head(int stage) const;
  /// Tokens that a counter holds now.
  std::int64_t tokens(int counter) const;
  std::string missing_tokens(std::uint32_t at) const;
  void reach(std::uint32_t at);
  std::exception_ptr show_failure(std::exception_ptr reason);

  sim::Debugger& debugger_;
  const Isa& isa_;
  const Prepared& program_;
  const runtime::KernelSignature& signature_;
  const sim::Launch& launch_;
  std::uint64_t uop_base_;
  sim::Memory& dram_;
  std::unique_ptr<LiteralEngine> engine_;
  StreamTimes times_;
  std::vector<std::uint32_t> order_;  // empty: that of a run without debugger
  std::vector<bool> done_;
  std::int64_t cycle_ = 0;
};

}  // namespace weft::vta
