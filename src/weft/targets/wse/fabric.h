// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fabric: a rectangle of PEs and routers that runs a compiled layout. Event-driven: only PEs in
// which something can happen are visited. Function and time are separate: the untimed mode does the
// same work without waiting for cycles. The result does not depend on the number of host threads.

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/runtime/stats.h"
#include "weft/runtime/trace.h"
#include "weft/targets/wse/native.h"
#include "weft/targets/wse/state.h"
#include "weft/targets/wse/timeline.h"

namespace weft::wse {

class FabricDebug;

/// How scalar code runs: `automatic` makes native code of a program once it has proved long.
enum class Engine : std::uint8_t { automatic, bytecode, native };

struct FabricOptions {
  bool timed = true;
  int threads = 1;
  std::int64_t cycle_limit = std::int64_t{1} << 40;  // reached: fault wse.limit.cycles
  bool two_inputs_fault = true;
  bool fast = true;     // batches of elements ahead, and cores that go on ahead of the calendar
  bool express = true;  // false: every wavelet visits every router
  Engine engine = Engine::automatic;
  TaskOrder task_order = TaskOrder::round_robin;
  std::uint64_t seed = 0;     // of TaskOrder::random
  bool check_bounds = false;  // a memory operand stays within the object it begins in
  bool trace_links = false;   // a span per wavelet and link in the trace; visits every router
};

enum class Stop : std::uint8_t { quiet, host, limit };

/// One line that a PE printed with <simprint>.
struct LogLine {
  Cycle cycle = 0;
  std::int32_t x = 0, y = 0;
  std::string text;
};

/// What the statistics of a fabric are made of; all zero before anything ran.
struct FabricTotals {
  PeCounters sum;
  std::int64_t touched = 0, now = 0, native_programs = 0, steps = 0;
  std::string native_reason;  // why nothing is native; empty: it may be
};
runtime::StatReport report_of(const FabricTotals& totals);

class Fabric {
 public:
  Fabric(const Layout& layout, FabricOptions options);
  ~Fabric();
  Fabric(const Fabric&) = delete;

  /// Makes PEs whose programs begin by themselves runnable. Called once.
  void start();
  /// Runs until nothing moves (quiet), the host has something to look at (host) or `until` is
  /// reached.
  Stop run(Cycle until = kNever);
  Cycle now() const { return now_; }
  const Layout& layout() const { return layout_; }
  const Timing& timing() const { return timing_; }
  Timing& timing() { return timing_; }
  /// Lets time pass without events (modelled latencies of the host).
  void skip_to(Cycle cycle) {
    if (cycle > now_) now_ = cycle;
  }

  // Host side. Coordinates are relative to the program rectangle.
  Pe& touch(std::int32_t x, std::int32_t y);
  bool touched(std::int32_t x, std::int32_t y) const;
  void read_memory(std::int32_t x, std::int32_t y, std::uint32_t address, void* out,
                   std::uint32_t bytes);
  void write_memory(std::int32_t x, std::int32_t y, std::uint32_t address, const void* in,
                    std::uint32_t bytes);
  /// Memory without creating the PE: what its image says.
  void peek(std::int32_t x, std::int32_t y, std::uint32_t address, void* out,
            std::uint32_t bytes) const;
  void send(std::int32_t x, std::int32_t y, HostSource source);
  /// Takes up to `n` arrived wavelets; returns how many.
  std::size_t receive(std::int32_t x, std::int32_t y, std::uint8_t color, std::uint8_t port,
                      std::uint32_t* out, std::size_t n);
  /// Counts `left` down once `n` wavelets are there (at once when they already are); zero is a
  /// `host` stop.
  void expect(std::int32_t x, std::int32_t y, std::uint8_t color, std::uint8_t port, std::size_t n,
              std::atomic<std::int64_t>* left, Cycle from = 0, Cycle gap = 0);
  /// Runs function `function` of the PE's program as a command.
  void command(std::int32_t x, std::int32_t y, std::uint16_t function,
               std::vector<std::uint64_t> args, Cycle from);
  /// PEs that still run a command.
  std::int64_t commands_open() const { return commands_open_.load(); }

  std::vector<LogLine> take_log();
  runtime::StatReport stats();
  /// Books what express channels have carried; stats() and pictures call it.
  void settle();
  /// Where everything that waits waits: one line per PE and reason, at most `limit` lines.
  std::vector<std::string> waiting(std::size_t limit = 64) const;
  /// Whether, where nothing moves any more, a task waits for a microthread that an operation holds.
  bool jammed() const;
  /// A fault that says the fabric is stuck, with all waiting PEs.
  Error deadlock(std::string_view code, std::string message) const;
  /// To be called with what deadlock() has given, complete, before it is thrown; for the debugger.
  void report(const Error& error) const;
  /// A launch begins, of a program that stays for others, or has ended; or a program has run to its
  /// end. For the debugger.
  void report_begin() const;
  void report_end() const;
  void trace_to(runtime::TraceSink* sink);
  runtime::TraceSink* trace() const { return trace_; }
  /// Keeps what PEs and links do over time, from now on.
  void keep_timeline();
  /// What was kept, up to now; throws Error(value, "wse.api.timeline") where nothing is.
  Json timeline();
  std::size_t bytes_in_use() const;
  Pe* find(std::int32_t x, std::int32_t y) const;
  std::int64_t pe_steps() const;
  std::int64_t hops();
  /// Index after the last PE of each host thread's share, in row-major order.
  const std::vector<std::uint32_t>& shares() const { return share_end_; }
  /// Wavelets that left PE (x, y) to the east, west, north and south so far.
  std::array<std::int64_t, 4> link_traffic(std::int32_t x, std::int32_t y) const {
    const Pe* pe = find(x, y);
    if (!pe) return {};
    return {pe->count.sent[0], pe->count.sent[1], pe->count.sent[2], pe->count.sent[3]};
  }

 private:
  struct Worker;
  friend struct Worker;
  friend class FabricDebug;
  struct CommandBinding;

  // fabric.cpp
  Pe& make(std::uint32_t index);
  void make_home(Pe& pe);
  void setup_colors(Pe& pe);
  Ring& ring(ColorState& cs, int port) {
    Ring* r = cs.in[static_cast<std::size_t>(port)].load(std::memory_order_acquire);
    return r ? *r : make_ring(cs, port);
  }
  Ring& make_ring(ColorState& cs, int port);
  ColorState* color_state(Pe& pe, int color) {
    std::uint8_t s = pe.color_slot[static_cast<std::size_t>(color)];
    return s == kNone8 ? nullptr : pe.colors[s].get();
  }
  ColorState& add_color(Pe& pe, std::uint8_t color);
  /// The state of a colour that the PE sends from its ramp; makes the host's streams on demand.
  ColorState* ramp_color(Pe& pe, int color);
  HostSink* sink_of(Pe& pe, int color, int port);
  HostSink& make_sink(Pe& pe, std::uint8_t color, std::uint8_t port);
  void enforce(ColorState& cs);
  void schedule(Pe& pe, Cycle t);
  /// As schedule, for something that concerns more than the router.
  void schedule_core(Pe& pe, Cycle t);
  void wake(Pe& pe, Cycle t, int color);
  void notify(Worker& w, Pe& pe, Cycle t, int color);
  Cycle step(Worker& w, Pe& pe, Cycle now);
  /// The core's part of a visit: operations, the main thread, the ramp. When it is due again;
  /// `router`: when the router is, for what the core has sent.
  Cycle step_core(Worker& w, Pe& pe, Cycle now, Cycle& router);
  /// Whether the core may go on at `at` before the other PEs have come so far; `now`: of the visit.
  void book_mode(Pe& pe);
  void mark_work(Pe& pe, Cycle at, Cycle cycles);
  static void rethrow_deferred(Worker& w, std::uint32_t index);
  static bool meets_calendar(const Pe& pe);
  bool may_go_on(Worker& w, Pe& pe, Cycle now, Cycle at);
  Cycle reach_of(Pe& pe);
  void run_cycle(Worker& w, Cycle now, int parity);
  Stop run_to(Cycle until);
  Stop run_and_sample(Cycle until);
  void sample();
  /// A task has begun, ended; for the trace.
  void note_task(const Pe& pe, std::uint16_t function, Cycle now) {
    if (trace_) [[unlikely]]
      task_since_[pe.index] = {now, function};
  }
  void trace_task(const Pe& pe, Cycle now);
  Stop run_threads(Cycle until);
  /// Runs until something ends the run, or (true) until the threads' shares should be made anew.
  bool run_share(Cycle until, Stop& result);
  void rethrow_first();

  // balance.cpp: which thread visits which PE. Shares are runs of PEs in row-major order.
  void share_tiles();
  bool share_anew();
  std::uint16_t worker_of(std::uint32_t index) const {
    std::uint16_t w = 0;
    while (index >= share_end_[w]) ++w;
    return w;
  }
  void account(Pe& pe, Cycle now);
  static void book_gaps(Pe& pe, Cycle from, Cycle worked, Cycle now);
  /// The cycle of the visit in progress, on any thread (`now_` is brought up to date between runs).
  Cycle clock(const Pe& pe) const { return std::max({pe.accounted, now_, pe.main_time}); }
  int neighbor_index(const Pe& pe, int port) const;

  // express.cpp
  const Route* static_route(std::uint32_t index, int color) const;
  bool link_alone(std::uint32_t index, int color, int port) const;
  Express* make_express(Pe& pe, ColorState& cs);
  void announce(Worker& w, const OutQueue& queue, Cycle now);
  Channel* channel_of(Pe& pe, InQueue& q) {
    if (q.channel) return q.channel;
    ColorState* cs = q.color == kNone8 ? nullptr : color_state(pe, q.color);
    if (!cs) return nullptr;
    pe.reach = 0;
    return q.channel = cs->arriving.load(std::memory_order_acquire);
  }
  /// The wavelet at the head of a queue as this visit sees it; false when there is none.
  bool peek_queue(Pe& pe, InQueue& q, Cycle now, Wavelet& out) {
    if (q.count) {
      out = q.front();
      return true;
    }
    Channel* c = channel_of(pe, q);
    Channel::Entry* e = c ? c->front(now, pe.again) : nullptr;
    if (!e) return false;
    out = {e->data, static_cast<std::uint32_t>(e->control), e->when};
    return true;
  }
  void pop_queue(Worker& w, Pe& pe, std::size_t queue, Cycle at, Cycle now);
  /// Whether what the queue sends goes over channels.
  bool express_of(Pe& pe, OutQueue& q, std::uint8_t color) {
    if (q.express_color == color) return q.express != nullptr;
    q.express_color = color;
    ColorState* cs = color_state(pe, color);
    q.express = !cs ? nullptr : cs->express_known ? cs->express.get() : make_express(pe, *cs);
    q.single = q.express && q.express->to.size() == 1;
    if (q.single) q.only = q.express->to[0].get();
    return q.express != nullptr;
  }

  // router.cpp
  void route(Worker& w, Pe& pe, Cycle now, Cycle& next);
  ColorState* swapped(Pe& to, int o, std::uint8_t& color);
  bool route_color(Worker& w, Pe& pe, ColorState& cs, Cycle now, Cycle& next, std::uint8_t& links);
  bool pass_filter(ColorState& cs, const Wavelet& wavelet);
  void control(Pe& pe, ColorState& cs, std::uint32_t& payload, Cycle now);
  void inject(Pe& pe, Cycle now, Cycle& next);
  /// Sends on the messages that have come together at `pe`'s post; the first word of each is its
  /// destination (row, column), the second its length.
  void post(Worker& w, Pe& pe, HostSink& sink, Cycle now);
  void deliver(std::uint32_t index, HostSource message);
  void drain_out(Worker& w, Pe& pe, Cycle now, Cycle& next);
  InQueue* queue_for(Pe& pe, int color);

  // bulk.cpp
  Core& core(Pe& pe);
  /// `walk`: where the position of a cursor of several dimensions is kept.
  bool make_cursor(Pe& pe, const Operand& operand, int bytes, Cursor& out, Mem4& walk,
                   OpSettings& settings, std::uint32_t& length);
  int operand_loads(const Core& k, const Frame& f, const BulkOp& op) const;
  Cycle operands_ready(const Core& k, const Frame& f, const BulkOp& op, Cycle at) const;
  bool start_bulk(Worker& w, Pe& pe, const Insn& insn, Cycle now, Cycle& cost, bool& sync_wait);
  std::uint32_t run_memory(Worker& w, Pe& pe, Running& run, Cycle& cost);
  void zero_source(Pe& pe, const Running& run, Cycle now);
  void finish(Worker& w, Pe& pe, Running& run, Cycle now, bool terminated);
  void run_ops(Worker& w, Pe& pe, Cycle now, Cycle& next);
  int take_header(Worker& w, Pe& pe, Running& run, Cursor& c, Cycle now, Cycle& next);
  int try_element(Worker& w, Pe& pe, Running& run, Cycle now, Cycle& next, Cycle limit);
  Cycle next_task(Pe& pe, Cycle now);
  Cycle next_element(Pe& pe, Running& run, Cycle from);
  std::uint32_t run_ahead(Worker& w, Pe& pe, Running& run, Cycle now, const Cycle& limit);
  /// An element of an operation beside the main thread takes a cycle from it.
  static void take_turn(Pe& pe, const Running& run, Cycle at) {
    if (pe.main_ready > at && pe.main == MainState::running && !run.main) ++pe.main_ready;
  }
  std::uint32_t read_cursor(Worker& w, Pe& pe, Cursor& c, Cycle now);
  void write_cursor(Pe& pe, Cursor& c, std::uint32_t value, std::uint16_t index,
                    std::uint32_t index_high, Cycle now);
  void complete(Pe& pe, const Completion& completion, Cycle now);
  void start_map(Pe& pe, const Insn& insn);
  /// Feeds the next element to the mapped function; false: waits or has ended (pe.main says which).
  bool continue_map(Worker& w, Pe& pe, Cycle now, Cycle& next);
  /// From when on one more element can pass `c`; negative when something else must happen first.
  Cycle cursor_time(Pe& pe, Cursor& c, bool output, Cycle now);
  FifoAction fifo_action(const Pe& pe, const Cursor& c, bool output) const;
  /// The action of the FIFO that is empty or full, if that is all the operation waits for.
  std::optional<FifoAction> held_by_fifo(Pe& pe, Running& run, Cycle now);
  bool ends_at_fifo(Worker& w, Pe& pe, Running& run, Cycle now);
  bool cursor_ready(Pe& pe, Cursor& c, bool output, Cycle now, Cycle& next) {
    Cycle t = cursor_time(pe, c, output, now);
    if (t >= 0 && (t <= now || !options_.timed)) return true;
    if (t > now) next = std::min(next, t);
    return false;
  }
  void check_operand(const Pe& pe, const Cursor& c, const BulkOp& op, std::uint32_t n) const;
  void name_tasks(const Core& k, const Frame& f, const SettingRegs& regs,
                  OpSettings& settings) const;
  void load_dsr(Pe& pe, const DsrLoad& load, const Dsd& dsd);
  std::uint8_t bind_queue(Pe& pe, std::uint8_t queue, std::uint8_t color);
  std::uint8_t free_input_queue(const Pe& pe) const;
  std::uint8_t output_queue_for(const Pe& pe, std::uint8_t color) const;
  void check_output_queue(const Pe& pe, std::uint8_t queue, std::uint8_t color) const;

  // interpreter.cpp
  void run_main(Worker& w, Pe& pe, Cycle now, Cycle& next);
  int task_rank(const Pe& pe, TaskSpace space, int id) const;
  bool pick_task(Worker& w, Pe& pe, Cycle now, Cycle& next);
  void enter(Pe& pe, std::uint16_t function, const std::vector<std::uint64_t>& args);
  /// Runs the main thread until it ends, waits, or has spent cycles that must pass first.
  void execute(Worker& w, Pe& pe, Cycle now, Cycle& next);
  void interpret(Worker& w, Pe& pe, Cycle now, Cycle& next, std::int64_t& budget);
  /// `kDebug`: with a report before each instruction, and never by native code.
  template <bool kDebug>
  void interpret_as(Worker& w, Pe& pe, Cycle now, Cycle& next, std::int64_t& budget);
  /// The program's native code; null while there is none. `ran`: instructions just interpreted.
  const NativeProgram* native_of(const Pe& pe, std::int64_t ran) {
    if (options_.engine == Engine::bytecode) return nullptr;
    NativeSlot& slot = native_[static_cast<std::size_t>(pe.program - layout_.programs.data())];
    if (const NativeProgram* code = slot.code.load(std::memory_order_acquire)) return code;
    if (slot.closed.load(std::memory_order_relaxed) ||
        (ran == 0 && options_.engine == Engine::automatic))
      return nullptr;
    return make_native(pe, slot, ran);
  }
  struct NativeSlot;
  const NativeProgram* make_native(const Pe& pe, NativeSlot& slot, std::int64_t ran);
  bool touches_fabric(Pe& pe, const BulkOp& op) const;
  void end_task(Worker& w, Pe& pe);
  void task_bit(Pe& pe, Op op, TaskSpace space, int id);
  std::uint64_t configure(Pe& pe, ConfigFn fn, const std::uint64_t* args);
  /// Raises task 29 for queues that have run empty after @queue_flush; whether any has.
  bool flushed(Pe& pe);
  void print(Worker& w, Pe& pe, const Insn& insn, std::uint64_t value, Cycle now);

  std::uint8_t* span(Pe& pe, std::uint32_t address, std::uint32_t bytes) {
    if (address + bytes <= pe.memory_bytes) [[likely]]
      return pe.memory + address;
    return grow(pe, address, bytes);
  }
  std::uint8_t* grow(Pe& pe, std::uint32_t address, std::uint32_t bytes);
  Error pe_fault(const Pe& pe, std::string_view code, std::string message) const;

  Arena arena_;  // before all that lies in it
  const Layout& layout_;
  FabricOptions options_;
  Timing timing_;
  bool wse3_ = false, express_allowed_ = true;
  bool apart_ = false;  // the PEs' state exceeds the caches: it is asked for ahead
  std::int32_t width_ = 0, height_ = 0;
  std::vector<std::atomic<Pe*>> pes_;
  /// What an operation is before it begins. Not a constant: copying it takes a few moves, clearing
  /// one in place a loop in microcode.
  Running fresh_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::uint32_t> share_end_;  // index after the last PE of each worker's share
  std::int64_t share_period_ = 2048;      // cycles between looks at the balance
  std::mutex make_mutex_;
  Cycle now_ = 0;
  std::atomic<std::int64_t> commands_open_{0};
  std::atomic<bool> host_event_{false};
  std::atomic<std::int64_t> created_{0};
  runtime::TraceSink* trace_ = nullptr;
  std::vector<std::pair<Cycle, std::uint16_t>> task_since_;  // by PE, while there is a trace
  std::unique_ptr<Timeline> timeline_;
  /// Bound functions by task id, kNone16 where none; one table per program.
  struct TaskTable {
    std::array<std::uint16_t, 32> local;
    std::array<std::uint16_t, 32> data;  // by colour (WSE-2) or input queue (WSE-3)
    std::array<std::uint16_t, 64> control;
    bool by_wavelets = false;  // some are data or control tasks
  };
  std::vector<TaskTable> tables_;
  const TaskTable& table(const Pe& pe) const {
    return tables_[static_cast<std::size_t>(pe.program - layout_.programs.data())];
  }
  /// Native code by program: made once, by the thread that finds the program long enough.
  struct NativeSlot {
    std::atomic<const NativeProgram*> code{nullptr};
    std::atomic<std::int64_t> interpreted{0};
    std::atomic<bool> closed{false};  // it has been decided whether there is code
    std::unique_ptr<NativeProgram> owned;
    bool tried = false;
  };
  std::vector<NativeSlot> native_;
  std::mutex native_mutex_;
  std::string native_reason_;  // why there is no native code
  std::int64_t native_programs_ = 0;
  std::unique_ptr<FabricDebug> debug_;            // where a debugger is attached
  std::uint32_t stream_in_ = 0, stream_out_ = 0;  // bits of the host's streaming colours
};

}  // namespace weft::wse
