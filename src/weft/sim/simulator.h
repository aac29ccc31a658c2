// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every simulated machine offers, and the adapter that makes a Device of it. Function and time
// are separate (decision 9): run() computes exactly; cycles come from the machine's event model.
// Two runs of the same launch are bit-identical.

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "weft/runtime/device.h"
#include "weft/sim/memory.h"

namespace weft::sim {

/// A launch with arguments already resolved to machine addresses and scalars.
struct Launch {
  std::size_t kernel = 0;
  std::vector<std::uint64_t> pointers;  // addresses in Simulator::memory()
  std::vector<std::int64_t> scalars;    // floats as the bits of a double
  std::vector<std::int64_t> extents;    // per KernelSignature::axes
};

struct RunLimits {
  std::int64_t cycles =
      std::numeric_limits<std::int64_t>::max();  // exceeded: fault "<machine>.limit.cycles"
};

enum class StopReason : std::uint8_t { finished, cycle_limit, breakpoint };

struct RunResult {
  std::int64_t cycles = 0;
  StopReason reason = StopReason::finished;
};

struct NamedValue {
  std::string name;
  std::string value;
};

/// Of several threads, one runs, steps, or asks for statistics at a time: SimDevice sees to it.
/// load(), unload() and memory() may be called while another thread runs.
class Simulator {
 public:
  virtual ~Simulator() = default;
  /// Memory that kernels' pointers refer to.
  virtual Memory& memory() = 0;
  /// Makes a program ready; returns its handle. Throws Error(emit, ...) on a malformed binary.
  virtual std::size_t load(const runtime::Binary& binary) = 0;
  virtual void unload(std::size_t) {}
  /// Runs to the end. A machine error is thrown as a Fault (sim/fault.h) and leaves the machine
  /// usable.
  virtual RunResult run(std::size_t program, const Launch& launch, const RunLimits& limits) = 0;
  virtual runtime::StatReport stats() const = 0;
  virtual void clear_stats() = 0;
  virtual void trace_to(runtime::TraceSink*) {}
  /// For debuggers and tests: begin() readies a launch, step() advances one cycle (false:
  /// finished).
  virtual void begin(std::size_t program, const Launch& launch);
  virtual bool step();
  virtual std::vector<NamedValue> state() const { return {}; }
};

/// Makes a Device of a Simulator: storage in its memory, launches through run(), simulated time.
/// Any number of threads may use it: launches are done one after another.
class SimDevice : public runtime::Device {
 public:
  SimDevice(std::unique_ptr<Simulator> simulator, runtime::DeviceInfo info,
            std::string binary_format);
  const runtime::DeviceInfo& info() const override { return info_; }
  Ref<runtime::Storage> allocate(runtime::Bytes bytes, runtime::Bytes align,
                                 std::string_view space) override;
  void upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
              runtime::Bytes bytes) override;
  void download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                runtime::Bytes bytes) override;
  Ref<runtime::Executable> load(runtime::Binary binary) override;
  runtime::Event launch(runtime::Executable& executable, std::size_t kernel,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t> extents) override;
  /// The same with bounds of its own.
  runtime::Event launch_within(const RunLimits& bounds, runtime::Executable& executable,
                               std::size_t kernel, std::span<const runtime::KernelArg> args,
                               std::span<const std::int64_t> extents);
  runtime::Span measure(const std::function<void()>& work) override;
  runtime::StatReport stats() const override;
  void clear_stats() override;
  void trace_to(runtime::TraceSink* sink) override;
  Simulator& simulator() { return *simulator_; }
  RunLimits limits;

 protected:
  void free_storage(std::uint64_t address, runtime::Bytes bytes, std::string_view space) override;

 private:
  std::unique_ptr<Simulator> simulator_;
  runtime::DeviceInfo info_;
  std::string format_;
  mutable std::mutex mutex_;  // one launch at a time
};

}  // namespace weft::sim
