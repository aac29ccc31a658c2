// SPDX-License-Identifier: Apache-2.0
#pragma once
// A compiled module: one device binary plus the host plans of its functions. Loaded on a device it
// becomes callable. One file format for every target: magic, version, length-checked JSON header,
// payloads, checksum.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/runtime/device.h"
#include "weft/runtime/plan.h"

namespace weft::runtime {

/// A tensor or scalar argument as the host hands it over. Strides in elements; empty: compact.
struct CallArg {
  Storage* storage = nullptr;  // null: scalar
  Bytes byte_offset = 0;
  DType dtype;
  std::vector<std::int64_t> shape, strides;
  std::int64_t int_value = 0;
  double float_value = 0;
};

struct TimeResult {  // seconds per call
  double mean = 0, median = 0, min = 0, max = 0, stddev = 0;
  std::vector<double> results;  // one per repeat
  double cycles = 0;            // mean cycles of the simulated machine; 0 on hardware
  double wall = 0;              // mean host seconds
};

class Module : public RefCounted {
 public:
  Module(Binary binary, std::vector<HostPlan> plans)
      : binary_(std::move(binary)), plans_(std::move(plans)) {}
  const Binary& binary() const { return binary_; }
  const std::vector<HostPlan>& plans() const { return plans_; }
  const std::string& source() const { return binary_.source; }
  /// What the compiler decided on its own: default schedules, storage shared, loops not vectorized.
  std::vector<std::string> notes() const;
  /// Throws Error(value, "module.function.unknown") listing the functions.
  const HostPlan& plan(std::string_view name) const;
  /// Atomic. `load` throws Error(io, "module.file.*") on damage, a foreign file or another version.
  void save(const std::string& path) const;
  std::string serialize() const;
  static Ref<Module> load(const std::string& path);
  static Ref<Module> deserialize(std::string_view bytes, std::string_view name);

 private:
  Binary binary_;
  std::vector<HostPlan> plans_;
};

/// A function of a module on one device, ready to be called many times.
class Function : public RefCounted {
 public:
  Function(Ref<Module> module, std::string_view name, Ref<Device> device,
           Ref<Executable> executable = nullptr);
  const HostPlan& plan() const { return *plan_; }
  const Ref<Device>& device() const { return device_; }
  /// Checks arguments (kind, dtype, rank, extents, strides, device, alignment, bounds), then runs
  /// the plan. Destination passing: outputs are arguments. Throws Error(shape|dtype|device|value,
  /// "call.*").
  Event call(std::span<const CallArg> args);
  /// As call for callers that made the function themselves: nothing is checked, tensors are given
  /// by storage and byte offset in the order of the parameters. One-dimensional tensors of unknown
  /// extent reach to the end of their storage; other extents must not be symbolic.
  Event launch(std::span<const KernelArg> args);
  /// One warm-up, then `repeat` samples of `number` calls; number grows until a sample lasts
  /// min_seconds.
  TimeResult time(std::span<const CallArg> args, int number = 10, int repeat = 3,
                  double min_seconds = 0);

 private:
  Ref<Module> module_;
  const HostPlan* plan_;
  Ref<Device> device_;
  Ref<Executable> executable_;
};

}  // namespace weft::runtime
