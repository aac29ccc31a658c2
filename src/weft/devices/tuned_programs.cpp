// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/tuned_programs.h"

#include <atomic>
#include <mutex>

#include "weft/base/fork_safe_mutex.h"
#include "weft/rules/grid.h"
#include "weft/rules/nest.h"

namespace weft {

namespace {

struct Hooks {
  ForkSafeMutex mutex;
  std::shared_ptr<TunedPrograms> tuned;
  std::shared_ptr<const ProgramRecorder> recorder;
  std::atomic<bool> recording = false;
};
Hooks& hooks() {
  static auto& one = *new Hooks;
  return one;
}

}  // namespace

// What goes ends after the lock: ends of Python's objects may run any code.
void set_tuned_programs(std::shared_ptr<TunedPrograms> programs) {
  std::lock_guard lock(hooks().mutex);
  hooks().tuned.swap(programs);
  forget_decisions();
}

std::shared_ptr<TunedPrograms> tuned_programs() {
  std::lock_guard lock(hooks().mutex);
  return hooks().tuned;
}

void record_programs(ProgramRecorder recorder) {
  std::shared_ptr<const ProgramRecorder> next;
  if (recorder) next = std::make_shared<const ProgramRecorder>(std::move(recorder));
  std::lock_guard lock(hooks().mutex);
  hooks().recording = next != nullptr;
  hooks().recorder.swap(next);
}

bool recording_programs() { return hooks().recording; }

void record_call(const ProgramRequest& request, std::span<const runtime::KernelArg> args) {
  std::shared_ptr<const ProgramRecorder> recorder;
  {
    std::lock_guard lock(hooks().mutex);
    recorder = hooks().recorder;
  }
  const auto& params = request.program->params;
  if (!recorder || params.size() != args.size() || !rules::is_unscheduled(request.program)) return;
  rules::Sizes numbers;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (!params[i].buffer) numbers[params[i].var->name] = args[i].scalar;
  std::vector<RecordedArgument> out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    RecordedArgument& a = out.emplace_back();
    a.number = args[i].scalar;
    if (!params[i].buffer) continue;
    const ir::BufferNode& buffer = *params[i].buffer;
    const std::int64_t bytes = buffer.dtype.total_bytes();
    Storage* storage = args[i].storage;
    if (!storage || args[i].offset % static_cast<std::uint64_t>(bytes)) return;
    Dims shape;
    for (const ir::Expr& extent : buffer.shape) {
      const auto* v = ir::as<ir::VarNode>(extent);
      // An extent that no argument gives reaches to the end.
      const bool free = v && !numbers.count(v->name);
      shape.push_back(free ? static_cast<std::int64_t>(storage->bytes() - args[i].offset) / bytes
                           : rules::estimate(extent, numbers));
    }
    a.array = NDArray::make(Ref<Storage>(storage), elem_of(buffer.dtype), shape, nullptr,
                            static_cast<std::int64_t>(args[i].offset) / bytes);
  }
  (*recorder)(request, out);
}

}  // namespace weft
