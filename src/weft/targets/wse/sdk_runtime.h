// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host's view of a compiled program, with the names of the Cerebras SDK's runtime: symbols,
// copies, streams, launches, non-blocking operations. Everything runs on the fabric simulator;
// there is no hardware behind it. Operations start in the order in which they are issued; a copy or
// launch waits until every PE has unblocked its command stream, a stream only until what was issued
// before it has started.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weft/targets/wse/fabric.h"

namespace weft::wse {

enum class MemcpyDataType : std::uint8_t { MEMCPY_16BIT, MEMCPY_32BIT };
enum class MemcpyOrder : std::uint8_t { ROW_MAJOR, COL_MAJOR };

/// Which PEs, relative to the program rectangle, and how many elements each.
struct Region {
  std::int32_t px = 0, py = 0, w = 1, h = 1;
  std::int64_t l = 0;
};

/// What varies between PEs in a copy to the device.
enum class Broadcast : std::uint8_t {
  none,
  row,
  column
};  // row: source [h][l]; column: source [w][l]

inline constexpr int kMostRouterDepth = 12;  // what the simulator has places for

struct RuntimeOptions {
  std::string cmaddr;  // must be empty
  bool timed = true;
  int threads = 1;
  bool memcpy_required = true;
  Engine engine = Engine::automatic;
  TaskOrder task_order = TaskOrder::round_robin;
  std::uint64_t seed = 0;
  int router_depth = 0;          // wavelets a router holds of a color and side; 0: the model's
  std::int64_t cycle_limit = 0;  // 0: FabricOptions'; beyond it: fault wse.limit.cycles
  bool check_bounds = false;     // see FabricOptions
  bool trace_links = false;      // see FabricOptions
  bool timeline = false;         // Fabric::keep_timeline
};

using TaskHandle = std::int64_t;

class SdkRuntime {
 public:
  /// Reads an artifact directory. A non-empty cmaddr throws Error(device, "wse.runtime.hardware").
  SdkRuntime(const std::string& directory, RuntimeOptions options = {});
  SdkRuntime(Layout layout, RuntimeOptions options = {});
  ~SdkRuntime();

  void load();
  void run();
  /// Finishes everything that was issued. Throws the fault of a program that is stuck.
  void stop();

  /// Throws Error(value, "wse.symbol.unknown") with near misses.
  std::int64_t get_id(std::string_view name) const;
  const Layout& layout() const { return layout_; }
  Fabric& fabric() { return *fabric_; }

  /// `data` holds 32-bit words, one per element, in the given order; it must live until the task is
  /// done.
  TaskHandle memcpy_h2d(std::int64_t dest, const std::uint32_t* data, std::int64_t count,
                        Region region, bool streaming, MemcpyDataType type, MemcpyOrder order,
                        bool nonblock, Broadcast broadcast = Broadcast::none);
  TaskHandle memcpy_d2h(std::uint32_t* data, std::int64_t count, std::int64_t src, Region region,
                        bool streaming, MemcpyDataType type, MemcpyOrder order, bool nonblock);
  /// Arguments are canonical register bits, one per parameter; `types` as the caller has them.
  TaskHandle launch(std::int64_t id, const std::vector<std::uint64_t>& args,
                    const std::vector<Ty>& types, bool nonblock);
  /// Streams of SdkLayout ports.
  TaskHandle send(std::string_view port, const std::uint32_t* data, std::int64_t count,
                  bool nonblock);
  TaskHandle receive(std::string_view port, std::uint32_t* data, std::int64_t count, bool nonblock);

  /// Keeps a trace of operations, and of links when the options say so, from now on.
  void start_trace() {
    trace_ = std::make_unique<runtime::TraceSink>();
    fabric().trace_to(trace_.get());
  }
  runtime::TraceSink* trace() { return trace_.get(); }

  bool is_task_done(TaskHandle task);  // lets the fabric run a little
  void task_wait(TaskHandle task);

  /// Fills an exported array on every PE in no time, as loading the program does.
  void place(std::string_view name, const std::vector<std::uint32_t>& words, MemcpyDataType type);
  /// Lets time pass while the fabric runs.
  void pass(Cycle cycles);

  /// Memory of a symbol of the program at fabric coordinates (offsets included).
  std::string read_symbol(std::int32_t x, std::int32_t y, std::string_view name) const;
  const Symbol& symbol(std::int32_t x, std::int32_t y, std::string_view name) const;
  /// Lines printed by <simprint> so far: "@cycle text".
  std::string sim_log();
  /// Copies that went past an object's end by less than a word more.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Task;
  void start_now();
  TaskHandle add(std::unique_ptr<Task> task, bool nonblock);
  bool start(Task& task);
  /// Runs the fabric to `until`, or to the end of a copy before it.
  Stop advance(Cycle until);
  /// Words that the busiest channel carries for a copy, and the cycles from its start to its end.
  std::int32_t channel_rows() const;
  std::int64_t channel_words(const Task& task) const;
  Cycle transfer_cycles(const Task& task) const;
  /// When, after the first word of a stream, the channel has the first word of a PE, and the time
  /// from one of its words to the next.
  struct Turn {
    Cycle from = 0, gap = 0;
  };
  Turn turn_of(const Task& task, std::int32_t x, std::int32_t y, bool by_pes) const;
  bool finished(const Task& task) const;
  /// Starts what can start; true when something changed.
  bool pump();
  void drive(const Task* until);
  void check_region(const Region& region, std::int64_t count, std::string_view what,
                    Broadcast broadcast) const;
  const Export& var_export(std::int64_t id, bool write) const;
  void warn_of_width(const Export& e, MemcpyDataType type);
  std::uint32_t data_address(const Export& e, std::int64_t id, std::int32_t x, std::int32_t y,
                             std::int64_t bytes);
  void copy(Task& task);
  void check_extents(const Task& task);
  const PortStream& port(std::string_view name, bool to_device) const;

  Layout layout_;
  std::unique_ptr<runtime::TraceSink> trace_;
  RuntimeOptions options_;
  std::unique_ptr<Fabric> fabric_;
  std::deque<std::unique_ptr<Task>> queue_;    // issued, not started
  std::vector<std::unique_ptr<Task>> active_;  // started, not finished
  TaskHandle last_ = 0;
  int quiet_polls_ = 0;
  bool loaded_ = false, running_ = false, stopped_ = false;
  std::string log_;
  void check_issued(TaskHandle task) const;
  std::vector<std::string> warnings_;
};

}  // namespace weft::wse
