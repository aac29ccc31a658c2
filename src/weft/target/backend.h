// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a target folder exports: one Backend. The list of back ends is joined at the final link
// (targets/registry.cpp), so nothing here names a target.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/pass/pass.h"
#include "weft/runtime/device.h"
#include "weft/runtime/module.h"
#include "weft/target/target.h"

namespace weft {

namespace schedule {
class Schedule;
}

struct DeviceStatus {
  std::string name;  // "cuda:0"
  runtime::DeviceKind kind = runtime::DeviceKind::hardware;
  bool available = false;
  std::string reason;  // what was searched, when not available
  std::string description;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Limits, memories, instructions under these options. Throws Error(value, "<target>.option.*").
  virtual TargetInfo info(const Target& target) const = 0;
  /// Can this be done here? Cheap and exact; before any lowering.
  virtual Verdict accepts(const ir::PrimFunc& f, const Target& target) const = 0;
  /// A default schedule for a function without one (unbound loops); default: f itself.
  virtual ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Target&) const { return f; }
  /// The same as steps that can be shown, edited and replayed on its `start()`, by back ends whose
  /// default schedules are made of public steps; others throw Error(value,
  /// "target.schedule.steps").
  virtual std::unique_ptr<schedule::Schedule> default_steps(const ir::PrimFunc& f,
                                                            const Target& target,
                                                            const Json& options) const;
  /// Which passes, in which order, ending with a function whose Launch statements are device
  /// kernels.
  virtual pass::Pipeline pipeline(const Target& target) const = 0;
  /// Kernels (params: flat buffers, then scalars; body without blocks) to bytes.
  virtual runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                               const Target& target) const = 0;
  /// Throws what `emit` would throw of kernels of a program that brings its own schedule: of those
  /// `accepts` tells by making their code. Default: every kernel that the passes leave has a form.
  virtual void check_kernels(const std::vector<ir::PrimFunc>&, const Target&) const {}
  /// What a module built for this target depends on beside the program and this library: the
  /// limits of the machine, the compiler behind. Absent: such modules are not kept on disk.
  virtual std::optional<std::string> facts(const Target&) const { return std::nullopt; }
  /// The target of modules that this process's device loads and nobody saves: what the device can
  /// compile itself when it loads, beside other work, may stay text.
  virtual Target for_device(const Target& target) const { return target; }
  /// Devices of this back end, present or not.
  virtual std::vector<DeviceStatus> devices() const = 0;
  /// Throws Error(device, "<target>.absent") with what was searched. Same options give the same
  /// device.
  virtual Ref<runtime::Device> open(const Target& target) const = 0;

  /// Whether the client of a served device may choose this option of it ("" is the bare value).
  /// Compilers, files and which chip is used are never a client's to choose.
  virtual bool client_may_set(std::string_view, std::string_view) const { return false; }

  /// Whether the target has an instruction set with a text of its own.
  virtual bool has_assembler() const { return false; }
  /// Words of the text, little-endian, and back; print and assemble are inverse. `file` names the
  /// text in errors. Default: Error(value, "target.assembler.none").
  virtual std::string assemble(std::string_view text, std::string_view file,
                               const Target& target) const;
  virtual std::string disassemble(std::string_view words, const Target& target) const;
};

/// All back ends of this build, in the order of targets.list.
const std::vector<Backend*>& backends();
/// Throws Error(value, "target.unknown") listing the known ones.
Backend& find_backend(std::string_view name);

/// The default schedule of a function for a target, as steps. Throws as Backend::default_steps.
std::unique_ptr<schedule::Schedule> default_steps(const ir::PrimFunc& f, std::string_view target,
                                                  const Json& options = {});

/// The device of a string ("cpu", "cuda:0", "qpu:qpus=12"); opened once per canonical text.
Ref<runtime::Device> open_device(std::string_view text);
std::vector<DeviceStatus> all_devices();

struct BuildOptions {
  pass::PassObserver observer;
  /// For the device of the target in this process alone, as Backend::for_device has it. The module
  /// is looked up on disk and kept there, where the back end has `facts`: a program is lowered,
  /// checked and compiled once for all processes. What an observer or a validation asks to see is
  /// built anew.
  bool keep = false;
};

/// Schedule-free or scheduled module -> compiled module: accepts, default schedule, pipeline, host
/// plan, emit. Throws Error with "while building ..." context.
Ref<runtime::Module> build(const ir::IRModule& m, std::string_view target,
                           const BuildOptions& options = {});

}  // namespace weft
