// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/program_cache.h"

#include <cctype>
#include <future>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include <unistd.h>

#include "weft/base/fork_safe_mutex.h"
#include "weft/base/patient_lock.h"
#include "weft/base/text.h"
#include "weft/devices/tuned_programs.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/rules/grid.h"
#include "weft/target/backend.h"

namespace weft {

ProgramKey::ProgramKey(std::string_view name, std::initializer_list<std::int64_t> values)
    : operation(name) {
  for (std::int64_t v : values) add(v);
}

void ProgramKey::add(std::int64_t v) {
  WEFT_CHECK(count < kMost, "a program is specialised on more than ", kMost, " facts");
  WEFT_CHECK(v >= std::numeric_limits<std::int32_t>::min() &&
                 v <= std::numeric_limits<std::int32_t>::max(),
             "a fact of ", operation, " is ", v, ", beyond 32 bits");
  facts[count++] = static_cast<std::int32_t>(v);
}

namespace {

using FunctionRef = Ref<runtime::Function>;

/// Functions hold their device, so that an address is no other device's later.
struct FrontKey {
  const Device* device;
  ProgramKey key;
  bool operator==(const FrontKey&) const = default;
};
struct FrontHash {
  std::size_t operator()(const FrontKey& k) const {
    std::uint64_t h =
        reinterpret_cast<std::uintptr_t>(k.device) ^ std::hash<std::string_view>()(k.key.operation);
    for (std::size_t i = 0; i < k.key.count; ++i)
      h = (h ^ static_cast<std::uint32_t>(k.key.facts[i])) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
    return h;
  }
};

struct Entry {
  const Device* device;
  ir::PrimFunc program;
  FunctionRef function;
  Ref<runtime::Module> module;
};

/// A program that a thread builds now. The future gets null where the build failed.
struct Building {
  const Device* device;
  ir::PrimFunc program;
  pid_t process;  // a forked child has the entry but not the thread
  std::shared_future<FunctionRef> function;
};

struct Cache {
  ForkSafeMutex mutex;
  std::unordered_map<FrontKey, FunctionRef, FrontHash> front;
  std::unordered_multimap<std::uint64_t, Entry> programs;  // by structural hash
  std::list<Building> building;

  FunctionRef find(const Device* device, std::uint64_t hash, const ir::PrimFunc& program) {
    auto [at, end] = programs.equal_range(hash);
    for (; at != end; ++at) {
      const Entry& e = at->second;
      if (e.device == device && ir::structural_equal(e.program, program)) return e.function;
    }
    return nullptr;
  }
  const Building* find_building(const Device* device, const ir::PrimFunc& program) const {
    for (const Building& b : building)
      if (b.device == device && b.process == getpid() && ir::structural_equal(b.program, program))
        return &b;
    return nullptr;
  }
  /// Null where it is none of these.
  ir::PrimFunc program_of(const FunctionRef& function) {
    std::lock_guard lock(mutex);
    for (const auto& [hash, entry] : programs)
      if (entry.function == function) return entry.program;
    return nullptr;
  }
};

Cache& cache() {
  static auto& one = *new Cache;
  return one;
}

/// What profilers and debuggers show of an operation's kernels: "fft.pass" is "fft_pass".
std::string function_name(std::string_view operation) {
  std::string name(operation);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
ir::IRModule module_of(const ir::PrimFunc& program, std::string_view operation) {
  const auto named = ir::edit(program);
  named->name = function_name(operation);
  return ir::make_module({{named->name, named}});
}

/// With the schedule that a tuner found, else with the rules'.
Ref<runtime::Module> built(const ProgramRequest& request,
                           const std::shared_ptr<TunedPrograms>& tuned) {
  const std::string& device = request.device->info().name;
  BuildOptions options;
  options.keep = true;
  if (tuned && rules::is_unscheduled(request.program)) {
    if (const ir::PrimFunc scheduled = tuned->find(request)) {
      try {
        return build(module_of(scheduled, request.operation), device, options);
      } catch (const Error& reason) {
        if (reason.kind() == ErrorKind::internal) throw;
        tuned->refused(request, reason);
      }
    }
  }
  return build(module_of(request.program, request.operation), device, options);
}

FunctionRef build_alone(const ProgramRequest& request, std::uint64_t hash,
                        const std::shared_ptr<TunedPrograms>& tuned) {
  const Device* device = request.device.get();
  const Ref<runtime::Module> module = built(request, tuned);
  auto function =
      make_ref<runtime::Function>(module, function_name(request.operation), request.device);
  Cache& all = cache();
  std::lock_guard lock(all.mutex);
  if (FunctionRef first = all.find(device, hash, request.program)) return first;
  all.programs.emplace(hash, Entry{device, request.program, function, module});
  return function;
}

/// Threads that ask for a program which one of them builds wait for that one. Not where a tuner is
/// asked: it may be the caller's code, and need a lock that a waiting thread holds.
FunctionRef build_once(const ProgramRequest& request) {
  Cache& all = cache();
  const auto tuned = tuned_programs();
  const std::uint64_t hash = ir::structural_hash(request.program);
  std::promise<FunctionRef> promise;
  std::list<Building> own;
  own.push_back({request.device.get(), request.program, getpid(), promise.get_future().share()});
  const auto at = own.begin();
  std::shared_future<FunctionRef> other;
  {
    std::lock_guard lock(all.mutex);
    if (FunctionRef known = all.find(at->device, hash, request.program)) return known;
    if (!tuned) {
      if (const Building* b = all.find_building(at->device, request.program)) other = b->function;
      else all.building.splice(all.building.begin(), own);
    }
  }
  if (tuned) return build_alone(request, hash, tuned);
  if (other.valid()) {
    const FunctionRef function = other.get();
    return function ? function : build_alone(request, hash, tuned);  // which says why it failed
  }
  struct End {
    Cache& all;
    std::list<Building>::iterator at;
    std::promise<FunctionRef>& promise;
    FunctionRef function;
    ~
End
() {
  {
    std::lock_guard lock(all.mutex);
    all.building.erase(at);
  }
  promise.set_value(function);
}
}
end{all, at, promise, nullptr};
end.function = build_alone(request, hash, tuned);
return end.function;
}

}  // namespace

std::vector<BuiltProgram> built_programs() {
  std::lock_guard lock(cache().mutex);
  std::vector<BuiltProgram> out;
  for (const auto& [key, function] : cache().front)
    for (const auto& [hash, e] : cache().programs)
      if (e.function == function)
        out.push_back(
            {{key.key.operation, e.program, function->device()}, e.module->binary().source});
  return out;
}

void forget_programs() {
  forget_decisions();
  std::lock_guard lock(cache().mutex);
  cache().front.clear();
  cache().programs.clear();
}

Ref<runtime::Function> built_program(const Ref<Device>& device, const ProgramKey& key,
                                     const std::function<ir::PrimFunc()>& make) {
  Cache& all = cache();
  const FrontKey front{device.get(), key};
  {
    std::lock_guard lock(all.mutex);
    if (auto it = all.front.find(front); it != all.front.end()) return it->second;
  }
  try {
    // Long: an embedder's other threads go on meanwhile.
    FunctionRef function;
    wait_patiently([&] { function = build_once({key.operation, make(), device}); });
    std::lock_guard lock(all.mutex);
    return all.front.emplace(front, function).first->second;
  } catch (Error& error) {
    throw error.context(cat("building ", key.operation, " for arrays on ", device->info().name));
  }
}

ProgramCall& ProgramCall::pointer(Storage* storage, std::uint64_t offset) {
  WEFT_CHECK(count_ < kMost, "a program has more than ", kMost, " arguments");
  args_[count_++] = runtime::KernelArg::pointer(storage, offset);
  return *this;
}
ProgramCall& ProgramCall::integer(std::int64_t value) {
  WEFT_CHECK(count_ < kMost, "a program has more than ", kMost, " arguments");
  args_[count_++] = runtime::KernelArg::integer(value);
  return *this;
}
ProgramCall& ProgramCall::real(double value) {
  WEFT_CHECK(count_ < kMost, "a program has more than ", kMost, " arguments");
  args_[count_++] = runtime::KernelArg::real(value);
  return *this;
}
ProgramCall& ProgramCall::number(const Scalar& value, Elem elem) {
  if (is_real_float(elem))
    return real(value.kind <= Kind::integer ? static_cast<double>(value.i) : value.z.real());
  return integer(value.kind <= Kind::integer ? value.i : static_cast<std::int64_t>(value.z.real()));
}

void ProgramCall::run(const ProgramKey& key, const std::function<ir::PrimFunc()>& make) {
  const Ref<runtime::Function> function = built_program(device_, key, make);
  if (recording_programs()) {
    const ir::PrimFunc program = cache().program_of(function);
    if (program) record_call({key.operation, program, device_}, {args_, count_});
  }
  launch(*function);
}

void ProgramCall::launch(runtime::Function& function) {
  runtime::Event event = function.launch({args_, count_});
  if (device_->info().kind != runtime::DeviceKind::hardware) event.wait();
}

}  // namespace weft
