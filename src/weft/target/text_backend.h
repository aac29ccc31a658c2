// SPDX-License-Identifier: Apache-2.0
#pragma once
// A back end that writes C-like text, as a row: its name, its options, its lanes, its spelling.
// What is left to a target is its limits, what it makes of the text, and its devices.

#include <string>
#include <string_view>
#include <vector>

#include "weft/target/backend.h"
#include "weft/target/emit_c.h"
#include "weft/target/open_schedules.h"

namespace weft {

struct TextRow {
  std::string_view name{}, format{};        // of the target; of its binaries
  std::string_view number{};                // what a bare value names: "a card's number"; "": none
  std::vector<std::string_view> options{};  // beside those that all have
  bool grid = true;      // groups of threads: limits as options, a default schedule
  int vector_lanes = 0;  // 0: vectorized loops stay loops for the compiler behind
  const CSpelling& (*spelling)() = nullptr;
};

class TextBackend : public Backend, public OpenSchedules {
 public:
  explicit TextBackend(TextRow row) : row_(std::move(row)) {}
  std::string_view name() const final { return row_.name; }
  /// rows() after a look at the options. Throws Error(value, "<target>.option.unknown").
  TargetInfo info(const Target& target) const final;
  /// What machines of this kind share, without opening a driver to look for one.
  virtual TargetInfo kind() const;
  Verdict accepts(const ir::PrimFunc& f, const Target& target) const final;
  ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Target& target) const final;
  std::unique_ptr<const OpenedSchedule> open_schedule(const ir::PrimFunc& f,
                                                      const Target& target) const final;
  pass::Pipeline pipeline(const Target& target) const override;
  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels, const Target& target) const final;
  std::optional<std::string> facts(const Target& target) const final;

 protected:
  virtual TargetInfo rows(const Target& target) const = 0;
  /// The row's spelling, unless the target string chooses between several.
  virtual const CSpelling& spelling_for(const Target&) const { return row_.spelling(); }
  /// A kernel with the target's own functions for what only it knows; default: as it is.
  virtual ir::PrimFunc spell(const ir::PrimFunc& kernel) const { return kernel; }
  /// Turns a binary whose bytes are the text into what the device loads; default: the text itself.
  virtual void compile(runtime::Binary&, const Target&) const {}
  /// The compiler behind and what it is told, for facts(); default: none, the text is the result.
  virtual std::string compiler(const Target&) const { return ""; }
  /// The limits that the target string may lower or raise, over those of the device.
  static void read_limits(TargetInfo& info, const Target& target);

 private:
  TextRow row_;
};

}  // namespace weft
