// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fabric as the debugger sees it: one unit a PE, places are bytecode instructions. The main
// thread reports before each instruction, the calendar after each visit of a PE.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/sim/debug/debugger.h"
#include "weft/targets/wse/fabric.h"

namespace weft::wse {

class FabricDebug final : public sim::Debuggee {
 public:
  FabricDebug(sim::Debugger& debugger, const Fabric& fabric);
  ~FabricDebug() override { debugger_.forget(*this); }

  /// While the fabric runs.
  class Scope {
   public:
    explicit Scope(FabricDebug& debug) : debug_(debug) {
      const bool fresh = !debug.begun_;
      debug.begun_ = true;
      debug.debugger_.resume(debug, fresh);
    }
    ~Scope() { debug_.debugger_.pause(); }
    Scope(const Scope&) = delete;

   private:
    FabricDebug& debug_;
  };

  /// The main thread of `pe` executes an instruction next.
  void before(const Pe& pe, std::uint16_t function, std::uint32_t pc, Cycle cycle) {
    Reported& last = reported_[pe.index];
    if (last.instructions == pe.count.instructions && last.tasks == pe.count.tasks)
      return;  // it had to wait, and is tried again
    last = {pe.count.instructions, pe.count.tasks};
    at_unit_ = pe.index;
    at_cycle_ = cycle;
    debugger_.before(pe.index, place_of(pe, function, pc), cycle);
    at_unit_ = -1;
  }
  void visited(const Pe& pe, Cycle now) { debugger_.changed(pe.index, now); }
  /// Stops at a fault or deadlock that is thrown next.
  void failed(const Error& error);
  /// What runs next is a launch of its own, with the program that is there.
  void begin_launch();
  void ended();

  std::string describe() const override;
  std::string note() const override;
  std::int64_t unit_count() const override;
  std::string unit_name(std::int64_t unit) const override;
  std::int64_t find_unit(std::string_view text) const override;
  std::string legal_units() const override;
  std::vector<std::int64_t> busy_units() const override;
  sim::UnitState unit_state(std::int64_t unit) const override;
  std::size_t depth(std::int64_t unit) const override;
  std::string instruction(sim::CodePlace place) const override;
  std::int64_t number(sim::CodePlace place) const override;
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
  struct Code {
    std::size_t program;
    std::uint16_t function;
    std::uint32_t pc;
  };
  static Code split(sim::CodePlace place) {
    return {static_cast<std::size_t>(place >> 40), static_cast<std::uint16_t>(place >> 24),
            static_cast<std::uint32_t>(place & 0xffffff)};
  }
  static sim::CodePlace join_place(std::size_t program, std::size_t function, std::uint32_t pc) {
    return static_cast<sim::CodePlace>(program) << 40 |
           static_cast<sim::CodePlace>(function) << 24 | pc;
  }
  sim::CodePlace place_of(const Pe& pe, std::uint16_t function, std::uint32_t pc) const {
    return join_place(static_cast<std::size_t>(pe.program - fabric_.layout().programs.data()),
                      function, pc);
  }
  const Pe* pe_of(std::int64_t unit) const;
  const Program* program_of(std::int64_t unit) const;
  sim::SourceLine line_of(const Program& program, std::uint16_t function, std::uint32_t pc) const;
  void show_one(std::string_view topic, const Pe& pe, std::vector<std::string>& out) const;
  void show_tasks(const Pe& pe, std::vector<std::string>& out) const;
  void show_queues(const Pe& pe, std::vector<std::string>& out) const;
  void show_wavelets(const Pe& pe, std::vector<std::string>& out) const;
  void show_operations(const Pe& pe, std::vector<std::string>& out) const;
  void show_routes(const Pe& pe, std::vector<std::string>& out) const;

  struct Reported {
    std::int64_t instructions = -1, tasks = -1;
  };
  sim::Debugger& debugger_;
  const Fabric& fabric_;
  std::vector<Reported> reported_;
  std::int64_t at_unit_ = -1;
  Cycle at_cycle_ = 0;
  Cycle launch_at_ = 0;  // when the launch began
  bool begun_ = false, ended_ = false;
};

}  // namespace weft::wse
