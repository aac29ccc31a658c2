// SPDX-License-Identifier: Apache-2.0
#pragma once
// Schedules that a tuner found for programs of array operations, and the calls that it measures.
// Both are asked once for each program and device, or while somebody records; never on the launch
// path of a kernel that is built.

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "weft/devices/tuned_decisions.h"
#include "weft/ir/node.h"
#include "weft/runtime/device.h"

namespace weft {

/// A program without a schedule that is about to be built.
struct ProgramRequest {
  std::string_view operation;  // "reduce.sum"
  ir::PrimFunc program;
  Ref<Device> device;
};

/// Where tuned schedules come from; threads may ask at once.
class TunedPrograms {
 public:
  virtual ~TunedPrograms() = default;
  /// The program with its schedule, or null: the rules' schedule is the best that is known.
  virtual ir::PrimFunc find(const ProgramRequest& request) = 0;
  /// What `find` gave cannot be built; the rules' schedule is used.
  virtual void refused(const ProgramRequest& request, const Error& reason) = 0;
  /// The decision that was found, or an empty one (tuned_decisions.h).
  virtual Decision decide(const DecisionRequest& request) = 0;
};
/// Null: none are used. Programs that are built already stay until they are forgotten.
void set_tuned_programs(std::shared_ptr<TunedPrograms> programs);
std::shared_ptr<TunedPrograms> tuned_programs();
/// The next call of each program builds it again.
void forget_programs();

/// A program that was built for an operation's calls, and the text of its kernels.
struct BuiltProgram {
  ProgramRequest request;
  std::string source;
};
std::vector<BuiltProgram> built_programs();

/// An argument of a call: an array, compact and of the parameter's extents, or a number's bits.
struct RecordedArgument {
  NDArray array;
  std::int64_t number = 0;
};
using ProgramRecorder =
    std::function<void(const ProgramRequest&, const std::vector<RecordedArgument>&)>;
/// Sees each launch of a program without a schedule of its own, of all threads; null: none.
void record_programs(ProgramRecorder recorder);
bool recording_programs();
void record_call(const ProgramRequest& request, std::span<const runtime::KernelArg> args);

}  // namespace weft
