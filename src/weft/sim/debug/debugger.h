// SPDX-License-Identifier: Apache-2.0
#pragma once
// The debugger for simulated machines: breakpoints, watches, steps and the commands that a console
// sends. A machine reports what its units are about to do; the debugger decides whether to stop,
// and while it is stopped, which is inside that report, it answers commands. A machine therefore
// keeps its own order of events, and its clocks cannot differ from those of a run without debugger.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/sim/debug/machine.h"
#include "weft/sim/debug/value.h"

namespace weft::sim {

/// Where commands come from and answers go to.
class Console {
 public:
  virtual ~Console() = default;
  /// The next command line; nothing: there are no more.
  virtual std::optional<std::string> read() = 0;
  virtual void write(std::string_view text) = 0;
};

/// A breakpoint or a watch. The text fields are as given: they hold for later programs, too, where
/// they name what exists there.
struct StopPoint {
  enum Kind : std::uint8_t { line, function, instruction, cycle, unit, launch, end, watch };
  int number = 0;
  Kind kind = line;
  std::string text;        // the command's argument
  std::string name;        // file or function; watch: the expression
  std::int64_t value = 0;  // line, instruction, cycle
  std::string unit_name;   // empty: any
  std::int64_t hits = 0;
  // In the program at hand:
  bool active = false;
  std::int64_t on = -1;
  std::vector<CodePlace> places;  // sorted
  Datum datum;
  ValueFormat format;
  std::int64_t first = 0;
  std::string last;  // bytes
};

class Debugger {
 public:
  explicit Debugger(std::unique_ptr<Console> console);

  /// A machine goes on; `fresh`: with a program that has not run yet. Until `pause` no other
  /// thread's machine is debugged.
  void resume(Debuggee& machine, bool fresh);
  void pause();
  /// The machine, or its program, is no more.
  void forget(Debuggee& machine);
  /// A unit is about to execute an instruction.
  void before(std::int64_t unit, CodePlace place, std::int64_t cycle) {
    if (alert_ || (filter_[place / 64 % kFilter] >> place % 64 & 1)) [[unlikely]]
      consider(unit, place, cycle);
  }
  /// A unit may have changed memory or registers in another way.
  void changed(std::int64_t unit, std::int64_t cycle) {
    if (alert_) [[unlikely]]
      consider_change(unit, cycle);
  }
  /// Work ends with an error: stops where it happened. The caller throws it afterwards.
  void failed(const Error& error);
  /// A launch has ended.
  /// `remark`: what the machine adds, as one line.
  void ended(std::int64_t cycles, const std::string& remark = {});

 private:
  enum class Go : std::uint8_t { freely, line, over, out, instruction, cycles };
  struct Command;
  struct Arguments;
  struct Selection {
    std::optional<Datum> datum;
    ValueFormat format;
    std::int64_t first = 0, count = 0;
  };

  void consider(std::int64_t unit, CodePlace place, std::int64_t cycle);
  void consider_change(std::int64_t unit, std::int64_t cycle);
  void look_at_watches(std::int64_t unit, std::vector<std::string>& why);
  bool arrived(std::int64_t unit, CodePlace place, std::int64_t cycle);
  void stop(std::int64_t unit, const std::vector<std::string>& why);
  void interact();
  void quit_if_asked() const;
  void say(std::string_view text);
  void say_place(std::int64_t unit);
  void resolve(StopPoint& point);
  void resolve_all();
  void look_for_points();
  void watch_from_now_on(StopPoint& point);
  std::string read_bytes(const Selection& s) const;

  // commands.cpp
  bool execute(std::string_view line);  // true: the machine goes on
  static const std::vector<Command>& commands();
  bool step(Arguments& a, Go how);
  bool go_on(Arguments& a);
  bool add_break(Arguments& a);
  bool add_watch(Arguments& a);
  bool remove(Arguments& a);
  bool show_points(Arguments& a);
  bool print(Arguments& a);
  bool show_memory(Arguments& a);
  bool where(Arguments& a);
  bool list(Arguments& a);
  bool code(Arguments& a);
  bool units(Arguments& a);
  bool choose_unit(Arguments& a);
  bool help(Arguments& a);
  bool quit(Arguments& a);
  void show_topic(const Topic& topic, Arguments& a);
  std::int64_t unit_of(const Arguments& a) const;
  Selection select(std::string_view text, std::int64_t unit) const;
  void list_around(const std::string& file, int line, int from, int to);

  static constexpr std::size_t kFilter = 64;
  bool alert_ = false;
  std::array<std::uint64_t, kFilter> filter_{};  // a bit by place: perhaps a breakpoint
  std::recursive_mutex mutex_;
  std::unique_ptr<Console> console_;
  Debuggee* machine_ = nullptr;
  Debuggee* known_ = nullptr;  // whose program the stop points have been looked up in
  std::vector<StopPoint> points_;
  int next_number_ = 1;
  Go go_ = Go::instruction;  // stops where the first program begins
  bool at_launch_ = true;    // stop where the next program begins
  std::int64_t go_unit_ = -1, go_count_ = 1, go_cycle_ = 0;
  SourceLine go_from_;
  std::size_t go_depth_ = 0;
  std::int64_t unit_ = 0, cycle_ = 0;
  std::optional<std::pair<std::int64_t, CodePlace>> previous_;
  // The instruction that a stop at a program's beginning has shown: its report is no second stop.
  std::optional<std::pair<std::int64_t, CodePlace>> shown_;
  int launches_ = 0;
  bool quitting_ = false;
  int list_line_ = 0;
  std::string list_file_;
};

/// The debugger of this process; null: none is attached.
Debugger* debugger();
/// Every later run of a simulated machine in this process is debugged.
void attach_debugger(std::unique_ptr<Console> console);

/// A machine's part in a run: between construction and destruction its reports are taken.
class DebugScope {
 public:
  DebugScope(Debugger* debugger, Debuggee& machine, bool fresh) : debugger_(debugger) {
    if (debugger_) debugger_->resume(machine, fresh);
  }
  ~DebugScope() {
    if (debugger_) debugger_->pause();
  }
  DebugScope(const DebugScope&) = delete;
  DebugScope& operator=(const DebugScope&) = delete;

 private:
  Debugger* debugger_;
};

}  // namespace weft::sim

extern "C" {
/// For other languages: `read` fills `line` with a command of at most `capacity` bytes and returns
/// its length, negative: there are no more. Both must stay callable while the process lives.
struct weft_debug_console {
  std::int32_t (*read)(char* line, std::int32_t capacity);
  void (*write)(const char* text);
};
[[gnu::visibility("default")]] void weft_debug_attach(const weft_debug_console* console);
}
