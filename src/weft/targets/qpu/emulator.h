// SPDX-License-Identifier: Apache-2.0
#pragma once
// The emulated chip as a sim::Simulator and as a runtime::Device. A binary of format "qpu" holds
// 64-bit words, low byte first; its metadata says what each uniform is ("uniforms": a list of "me",
// "count", "p<i>" for pointer i, "s<i>" for integer scalar i, "f<i>" for float scalar i, "spill",
// or a number). Binaries of several kernels list them in the metadata ("programs": first word,
// words, and the metadata of each); a launch's kernel number chooses.

#include <memory>
#include <mutex>

#include "weft/sim/simulator.h"
#include "weft/targets/qpu/engine.h"

namespace weft::qpu::hw {

class Ahead;
class DebugRun;

enum class Engine : std::uint8_t { oracle, interpreted, translated };

/// Which launches several threads run: those that they have run faster, and unknown ones from
/// EmulatorOptions::join_after on; all; all from there on.
enum class Division : std::uint8_t { judged, always, joined };

struct EmulatorOptions {
  int qpus = 12;
  std::uint64_t memory_bytes = 256ull << 20;
  Engine engine = Engine::interpreted;
  OutsideReads outside_reads = OutsideReads::fault;
  bool check_races = true;
  bool count_instructions = true;  // statistics per instruction
  bool keep_registers = false;     // what nobody reads any more keeps its last value (tests)
  int optimisation = 2;            // translated engine: LLVM's code generator, 0 to 3
  int threads = 1;                 // of the host; more than one with races checked, uncounted
  Division division = Division::judged;
  // Instructions that one thread does before others join it: as long as it takes to translate the
  // program for them.
  std::int64_t join_after = 20'000'000;
  bool file_cache = true;  // translated engine: machine code is kept for other processes
  bool debugged = true;    // runs are shown in the process' debugger, where one is attached
};

class Emulator final : public sim::Simulator {
 public:
  explicit Emulator(EmulatorOptions options = {});
  ~Emulator() override;
  sim::Memory& memory() override { return machine_.memory; }
  std::size_t load(const runtime::Binary& binary) override;
  void unload(std::size_t program) override;
  sim::RunResult run(std::size_t program, const sim::Launch& launch,
                     const sim::RunLimits& limits) override;
  runtime::StatReport stats() const override;
  void clear_stats() override;
  void trace_to(runtime::TraceSink* sink) override { machine_.trace = sink; }
  void begin(std::size_t program, const sim::Launch& launch) override;
  bool step() override;
  std::vector<sim::NamedValue> state() const override;

  Machine& machine() { return machine_; }
  EmulatorOptions& options() { return options_; }
  /// Whether several threads ran the last launch.
  bool divided() const { return divided_; }
  /// What a lenient machine noted since the last clear.
  std::vector<Finding> take_findings();
  /// Text that Print statements of the running kernel produce goes here; absent: prints are
  /// dropped.
  std::function<void(std::string_view)> on_print;

 private:
  struct Loaded;
  static Loaded& part(Loaded& loaded, std::size_t kernel);
  std::unique_ptr<Loaded> load_one(const runtime::Binary& binary);
  /// The program for the engine that the options ask for now.
  void make_ready(Loaded& loaded);
  /// Returns the values of the uniforms.
  std::vector<std::uint32_t> prepare(const Loaded& loaded, const sim::Launch& launch,
                                     bool may_divide);
  /// Whether several threads may run the launch at hand.
  bool may_divide(const Loaded& loaded) const;
  void begin_qpus(const Loaded& loaded, const std::vector<std::uint32_t>& words);
  /// Runs the launch on several threads; false: it is as if nothing had happened.
  bool run_ahead(Loaded& loaded, const std::vector<std::uint32_t>& words,
                 std::int64_t limit_cycles);
  /// The same for a launch that one thread has run up to clock `window`; false: none can join, and
  /// it is as it was, or at its beginning where they could not end it.
  bool join(Loaded& loaded, const std::vector<std::uint32_t>& words, std::int64_t limit_cycles,
            std::int64_t window);
  /// On one thread, unless others join it.
  void run_alone(Loaded& loaded, const std::vector<std::uint32_t>& words, std::int64_t limit_cycles,
                 DebugRun* debug);
  /// Null: the host does not grant another thread.
  Ahead* ahead();
  std::int64_t executed() const;
  /// Remembers what the launch at hand took.
  void note_way(Loaded& loaded, const sim::Launch& launch, std::int64_t took) const;
  void account(bool clean);
  static void count_debugged(Loaded& loaded, const DebugRun* debug);
  /// Notes the semaphores that a launch leaves above 0.
  void note_semaphores();
  /// Every QPU waits that has not finished: says for what.
  [[noreturn]] void stuck();
  void print(const Loaded& loaded, const Qpu& q);

  EmulatorOptions options_;
  Machine machine_;
  std::unique_ptr<Ahead> ahead_;
  pid_t ahead_process_ = 0;  // its thread is not there in a child that was forked
  bool divided_ = false;     // the launch at hand, between two threads
  bool watched_ = false;     // another thread may join it
  int way_ = 0;              // of PastLaunches, to run it
  Loaded& loaded(std::size_t program);

  /// Executions by what an instruction's two halves do.
  struct Mix {
    bool counted = false;  // some program was
    std::int64_t add = 0, mul = 0, both = 0, idle = 0, branches = 0;
  };
  static void count(const Loaded& loaded, Mix& mix);

  // Others load and unload while one runs or asks for statistics. Whoever looks at more programs
  // than its own holds it.
  mutable std::mutex programs_mutex_;
  std::vector<std::unique_ptr<Loaded>> programs_;
  Mix unloaded_;  // what programs that have been unloaded counted since clear
  Loaded* running_ = nullptr;
  std::uint64_t uniforms_ = 0, spill_ = 0;
  int active_ = 0;
  // Sums over launches since clear.
  std::int64_t cycles_ = 0, instructions_ = 0, launches_ = 0;
  std::vector<std::int64_t> qpu_instructions_, qpu_idle_;
  std::vector<std::array<std::int64_t, kStallReasons>> qpu_stall_;
  std::int64_t tmu_busy_[6] = {}, vdr_busy_ = 0, vdw_busy_ = 0, sdram_busy_ = 0;
};

/// "qpu", or "qpu:qpus=4,races=off,reads=report,memory=64" (MiB), as a device. "threads=2" has an
/// effect with "counts=off" and races checked, on programs without mutex and prints.
Ref<runtime::Device> make_device(std::string_view name = "qpu");
/// A device of that name, its options given.
Ref<runtime::Device> make_device(std::string_view name, const EmulatorOptions& options);
EmulatorOptions parse_options(std::string_view name);

}  // namespace weft::qpu::hw
