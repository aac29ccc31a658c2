// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a simulated machine tells the debugger about itself. A machine consists of units that
// execute instructions (processors, pipeline stages, processing elements); everything else is text
// that the machine formats. The debugger reads; it never changes a machine.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/dtype.h"

namespace weft::sim {

/// An instruction of the loaded program, as the machine numbers them. Equal numbers are equal code.
using CodePlace = std::uint64_t;

/// `line` 0: no source line is known.
struct SourceLine {
  std::string file;
  int line = 0;
  std::string function;
};

/// An array of elements that the commands print, watch and memory read.
struct Datum {
  std::string name;
  DType type = dtypes::uint32;
  std::int64_t count = 0;
  std::int64_t unit = -1;  // only this unit changes it; -1: any unit may
  /// Copies elements [first, first + count) to `out`.
  std::function<void(std::int64_t first, std::int64_t count, void* out)> read;
};

struct UnitState {
  std::string state;  // "running", "waits for semaphore 3", "finished"
  std::int64_t cycle = 0;
  std::optional<CodePlace> place;  // the instruction that it executes next
};

/// A command that prints part of the machine's state.
struct Topic {
  std::string name, help;
};

class Debuggee {
 public:
  virtual ~Debuggee() = default;
  /// One line: machine and program.
  virtual std::string describe() const = 0;
  /// Says in a new program how the machine's units keep time, where that is not cycle by cycle.
  virtual std::string note() const { return {}; }

  virtual std::int64_t unit_count() const = 0;
  virtual std::string unit_name(std::int64_t unit) const = 0;
  /// -1: there is no such unit.
  virtual std::int64_t find_unit(std::string_view text) const = 0;
  /// "qpu 0 to qpu 11".
  virtual std::string legal_units() const = 0;
  /// Units that do something; all others are idle.
  virtual std::vector<std::int64_t> busy_units() const = 0;
  virtual UnitState unit_state(std::int64_t unit) const = 0;
  /// Function calls in progress; 1 in a machine without calls.
  virtual std::size_t depth(std::int64_t) const { return 1; }

  virtual std::string instruction(CodePlace place) const = 0;
  /// The number that `*N` names within the unit's program.
  virtual std::int64_t number(CodePlace place) const = 0;
  /// The instruction with this number in the program of `unit`; nothing when there is none.
  virtual std::optional<CodePlace> numbered(std::int64_t number, std::int64_t unit) const = 0;
  virtual SourceLine source(CodePlace place) const = 0;
  /// Calls `f` for the first instruction of every run of instructions of one source line.
  virtual void each_line(const std::function<void(CodePlace, const SourceLine&)>& f) const = 0;
  /// Calls `f` for the first instruction of every function, task or kernel.
  virtual void each_function(const std::function<void(CodePlace, const std::string&)>& f) const = 0;
  /// The text of a source file; empty: it is not known.
  virtual std::string source_text(const std::string& file) const = 0;

  virtual std::vector<Topic> topics() const = 0;
  /// Lines of text about `unit`; of all units when it is -1.
  virtual std::vector<std::string> show(std::string_view topic, std::int64_t unit) const = 0;

  /// A register, symbol or argument, as `unit` sees it.
  virtual std::optional<Datum> find(std::string_view name, std::int64_t unit) const = 0;
  virtual std::vector<std::string> names(std::int64_t unit) const = 0;
  /// Bytes of memory from `address` on, as far as they are readable; count 0: none is.
  virtual Datum memory(std::uint64_t address, std::int64_t unit) const = 0;
};

}  // namespace weft::sim
