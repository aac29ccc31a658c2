// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/runtime/allocation_limit.h"
#include "weft/runtime/module.h"

namespace weft::runtime {

namespace {

std::string list(const std::vector<std::int64_t>& values) {
  std::string out = "(";
  for (std::size_t i = 0; i < values.size(); ++i) out += cat(i ? ", " : "", values[i]);
  return out + (values.size() == 1 ? ",)" : ")");
}

/// Bytes [low, high) that a view touches, relative to the start of its storage.
struct Extent {
  std::int64_t low = 0, high = 0;
};

struct Checker {
  const HostPlan& plan;
  const Device* device;
  std::span<const CallArg> args;
  std::vector<std::int64_t>& slots;
  std::vector<Extent> extents;  // one per tensor parameter

  std::string who(std::size_t i) const {
    const PlanParam& p = plan.params[i];
    return cat("argument ", i + 1, " (\"", p.is_tensor ? p.tensor.name : p.scalar.name, "\") of ",
               plan.name);
  }

  void run() {
    if (args.size() != plan.params.size()) {
      std::vector<std::string> names;
      for (const PlanParam& p : plan.params)
        names.push_back(p.is_tensor ? p.tensor.name : p.scalar.name);
      throw Error(ErrorKind::value, "call.count",
                  cat(plan.name, " takes ", plan.params.size(), " arguments and got ", args.size()))
          .note(cat("parameters: ", join(names)));
    }
    for (std::size_t i = 0; i < args.size(); ++i) bind(i);
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (plan.params[i].is_tensor) check(i);
    }
    if (plan.no_overlap) check_overlap();
  }

  void bind(std::size_t i) {
    const PlanParam& p = plan.params[i];
    const CallArg& a = args[i];
    if (p.is_tensor != (a.storage != nullptr)) {
      throw Error(ErrorKind::value, "call.kind",
                  cat(who(i), " is a ", p.is_tensor ? "tensor" : "scalar", " and got a ",
                      a.storage ? "tensor" : "scalar"))
          .note(
              cat("expected ", to_string(p.is_tensor ? p.tensor.dtype : p.scalar.dtype),
                  p.is_tensor ? cat(" of ", p.tensor.shape.size(), " dimensions") : std::string()));
    }
    if (!p.is_tensor) {
      const PlanScalar& s = p.scalar;
      auto& slot = slots[static_cast<std::size_t>(s.slot)];
      if (s.dtype.is_float()) {
        slot = std::bit_cast<std::int64_t>(a.dtype.is_float() ? a.float_value
                                                              : static_cast<double>(a.int_value));
        return;
      }
      if (a.dtype.is_float()) {
        throw Error(ErrorKind::dtype, "call.dtype",
                    cat(who(i), " is ", to_string(s.dtype), " and got the float ", a.float_value))
            .help("pass an integer");
      }
      if (s.dtype.bits < 64) {
        std::int64_t high =
            s.dtype.is_bool()
                ? 1
                : (std::int64_t{1} << (s.dtype.bits - (s.dtype.is_int() ? 1 : 0))) - 1;
        std::int64_t low = s.dtype.is_int() ? -high - 1 : 0;
        if (a.int_value < low || a.int_value > high) {
          throw Error(ErrorKind::value, "call.scalar",
                      cat(who(i), " is ", to_string(s.dtype), " and got ", a.int_value))
              .note(cat("legal: ", low, " to ", high));
        }
      }
      slot = a.int_value;
      return;
    }
    const PlanTensor& t = p.tensor;
    if (a.dtype != t.dtype) {
      throw Error(ErrorKind::dtype, "call.dtype",
                  cat(who(i), " is ", to_string(t.dtype), " and got ", to_string(a.dtype)))
          .help(cat("convert it to ", to_string(t.dtype)));
    }
    if (a.shape.size() != t.shape.size()) {
      throw Error(ErrorKind::shape, "call.rank",
                  cat(who(i), " has ", t.shape.size(), " dimensions and got ", a.shape.size(), ": ",
                      list(a.shape)));
    }
    if (!a.strides.empty() && a.strides.size() != a.shape.size()) {
      throw Error(
          ErrorKind::shape, "call.strides",
          cat(who(i), " got ", a.strides.size(), " strides for ", a.shape.size(), " dimensions"));
    }
    std::int64_t compact = 1;
    for (std::size_t d = a.shape.size(); d-- > 0;) {
      if (t.binds[d] >= 0) slots[static_cast<std::size_t>(t.binds[d])] = a.shape[d];
      if (t.strided)
        slots[static_cast<std::size_t>(t.stride_slots[d])] =
            a.strides.empty() ? compact : a.strides[d];
      // Shapes of remote clients may be anything; check() refuses those that no storage holds.
      static_cast<void>(__builtin_mul_overflow(compact, a.shape[d], &compact));
    }
  }

  void check(std::size_t i) {
    const PlanTensor& t = plan.params[i].tensor;
    const CallArg& a = args[i];
    std::vector<std::int64_t> expected;
    for (std::size_t d = 0; d < a.shape.size(); ++d) {
      expected.push_back(t.binds[d] >= 0 ? a.shape[d] : evaluate(t.shape[d], slots.data()));
    }
    if (expected != a.shape) {
      throw Error(ErrorKind::shape, "call.shape",
                  cat(who(i), " has shape ", list(expected), " and got ", list(a.shape)));
    }
    if (a.storage->device().get() != device &&
        !(shares_host_memory(*device) && shares_host_memory(*a.storage->device()))) {
      throw Error(ErrorKind::device, "call.device",
                  cat(who(i), " lies on ", a.storage->device()->info().name, " but ", plan.name,
                      " runs on ", device->info().name))
          .help(cat("copy it to ", device->info().name, " first"));
    }
    if (a.storage->space() != t.space) {
      throw Error(ErrorKind::device, "call.space",
                  cat(who(i), " must lie in memory \"", t.space, "\" and lies in \"",
                      a.storage->space(), "\""));
    }
    if (std::any_of(a.shape.begin(), a.shape.end(), [](std::int64_t n) { return n < 0; })) {
      throw Error(ErrorKind::shape, "call.shape",
                  cat(who(i), " has the shape ", list(a.shape), ": an extent is below 0"));
    }
    std::int64_t compact = 1, low = 0, high = 0;
    const bool empty = std::find(a.shape.begin(), a.shape.end(), 0) != a.shape.end();
    bool far = false;  // beyond what 64 bits count
    for (std::size_t d = a.shape.size(); d-- > 0;) {
      std::int64_t stride = a.strides.empty() ? compact : a.strides[d];
      if (!t.strided && stride != compact && a.shape[d] > 1 && !empty) {
        throw Error(ErrorKind::shape, "call.strides",
                    cat(who(i), " must be compact row-major and got strides ", list(a.strides),
                        " for shape ", list(a.shape)))
            .help("pass a compact copy, or declare the buffer with symbolic strides");
      }
      if (a.shape[d] > 1) {
        std::int64_t reach = 0, &end = stride < 0 ? low : high;
        far = far || __builtin_mul_overflow(stride, a.shape[d] - 1, &reach) ||
              __builtin_add_overflow(end, reach, &end);
      }
      far = __builtin_mul_overflow(compact, a.shape[d], &compact) || far;
    }
    int width = t.dtype.total_bytes();
    auto offset = static_cast<std::int64_t>(a.byte_offset);
    Extent extent{offset, offset};
    auto bytes = static_cast<std::int64_t>(a.storage->bytes());
    if (!empty) {
      far = far || __builtin_add_overflow(high, 1, &high) ||
            __builtin_mul_overflow(low, width, &low) ||
            __builtin_mul_overflow(high, width, &high) ||
            __builtin_add_overflow(offset, low, &extent.low) ||
            __builtin_add_overflow(offset, high, &extent.high);
      if (far) {
        throw Error(ErrorKind::index, "call.bounds",
                    cat(who(i), ", with shape ", list(a.shape), " and strides ", list(a.strides),
                        ", reaches beyond 2^63 bytes of a storage of ", bytes, " bytes"));
      }
    }
    if (extent.low < 0 || extent.high > bytes) {
      throw Error(ErrorKind::index, "call.bounds",
                  cat(who(i), " reaches bytes ", extent.low, " to ", extent.high,
                      " of a storage of ", bytes, " bytes"));
    }
    if (!empty &&
        (a.storage->address() + a.byte_offset) % static_cast<std::uint64_t>(t.align) != 0) {
      throw Error(ErrorKind::value, "call.alignment",
                  cat(who(i), " must be aligned to ", t.align, " bytes and lies at byte offset ",
                      a.byte_offset, " (address ", hex(a.storage->address() + a.byte_offset), ")"))
          .help("pass a copy; fresh arrays are aligned");
    }
    extents.push_back(extent);
  }

  void check_overlap() const {
    std::vector<std::size_t> tensors;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (plan.params[i].is_tensor) tensors.push_back(i);
    }
    for (std::size_t x = 0; x < tensors.size(); ++x) {
      if (!plan.params[tensors[x]].tensor.written) continue;
      for (std::size_t y = 0; y < tensors.size(); ++y) {
        if (x == y || args[tensors[x]].storage->address() != args[tensors[y]].storage->address())
          continue;
        if (extents[x].low < extents[y].high && extents[y].low < extents[x].high) {
          throw Error(ErrorKind::value, "call.overlap",
                      cat(who(tensors[x]), " is written and shares bytes with ", who(tensors[y])))
              .help(
                  "pass separate arrays, or build the function without the attribute \"noalias\"");
        }
      }
    }
  }
};

/// Where a kernel's pointer lies in its storage. A plan from a file may say anything; a pointer
/// never leaves what it points into.
Bytes place(const Storage& storage, Bytes base, std::int64_t extra, const HostPlan& plan,
            std::int32_t buffer) {
  std::int64_t at = 0;
  if (!__builtin_add_overflow(static_cast<std::int64_t>(base), extra, &at) && at >= 0 &&
      static_cast<Bytes>(at) <= storage.bytes())
    return static_cast<Bytes>(at);
  throw Error(ErrorKind::index, "plan.offset",
              cat("the host plan of ", plan.name, " places a pointer at byte ", base, " + ", extra,
                  " of buffer ", buffer, ", which has ", storage.bytes(), " bytes"))
      .help("build the module again: its file was changed");
}

struct Runner {
  const HostPlan& plan;
  Device& device;
  Executable& executable;
  std::vector<std::int64_t>& slots;
  std::vector<KernelArg> tensors;  // of the parameters, by buffer number
  std::vector<Ref<Storage>> own;   // by buffer number
  std::vector<Ref<Storage>> kept;  // released while work may still use them
  Event last;
  Bytes taken = 0;  // by its own buffers

  void run(const std::vector<PlanStep>& steps) {
    for (const PlanStep& s : steps) step(s);
  }

  /// The whole plan; the event keeps what the work still uses.
  Event finish() {
    if (static_cast<std::size_t>(plan.buffers) > tensors.size())
      own.resize(static_cast<std::size_t>(plan.buffers));
    run(plan.steps);
    if (last.complete()) return {};
    for (Ref<Storage>& storage : own) {
      if (storage) kept.push_back(std::move(storage));
    }
    if (kept.empty()) return std::move(last);
    return Event([done = std::move(last), alive = std::move(kept)]() mutable { done.wait(); });
  }

  void step(const PlanStep& s) {
    auto target = static_cast<std::size_t>(s.target);
    switch (s.kind) {
      case StepKind::set: slots[target] = evaluate(s.value, slots.data()); break;
      case StepKind::allocate: {
        const auto bytes =
            static_cast<Bytes>(std::max<std::int64_t>(evaluate(s.value, slots.data()), 0));
        release(target);
        const Bytes most = AllocationLimit::current();
        if (taken > most || bytes > most - taken)
          throw Error(ErrorKind::memory, "call.limit.bytes",
                      cat(plan.name, " would hold ", human_bytes(taken), " and ",
                          human_bytes(bytes), " in buffers of its own"))
              .note(cat("it may hold ", human_bytes(most)));
        own[target] = device.allocate(bytes, 64, s.text.empty() ? "global" : s.text);
        taken += bytes;
        break;
      }
      case StepKind::release: release(target); break;
      case StepKind::launch: launch(s); break;
      case StepKind::loop: {
        std::int64_t low = s.min.empty() ? 0 : evaluate(s.min, slots.data());
        std::int64_t extent = evaluate(s.value, slots.data());
        for (std::int64_t i = 0; i < extent; ++i) {
          poll_interrupt();
          slots[target] = low + i;
          run(s.body);
        }
        break;
      }
      case StepKind::branch: run(evaluate(s.value, slots.data()) ? s.body : s.otherwise); break;
      case StepKind::assert_:
        if (!evaluate(s.value, slots.data())) {
          throw Error(ErrorKind::value, "call.assert",
                      cat("an assertion of ", plan.name, " failed: ", s.text));
        }
        break;
    }
  }

  void release(std::size_t target) {
    if (!own[target]) return;
    // Work that was started may still use it, unless all of it is done.
    if (last.complete()) taken -= own[target]->bytes();
    else kept.push_back(std::move(own[target]));
    own[target] = nullptr;
  }

  void launch(const PlanStep& s) {
    const Binary& binary = executable.binary();
    std::size_t kernel = 0;
    while (kernel < binary.kernels.size() && binary.kernels[kernel].name != s.text) ++kernel;
    if (kernel == binary.kernels.size()) binary.kernel(s.text);
    std::vector<std::int64_t> extents;
    extents.reserve(s.extents.size());
    for (const PlanExpr& e : s.extents) {
      extents.push_back(evaluate(e, slots.data()));
      if (extents.back() <= 0) return;
    }
    std::vector<KernelArg> actual;
    actual.reserve(s.args.size());
    for (const PlanArg& a : s.args) {
      if (!a.is_pointer) {
        actual.push_back(KernelArg::integer(evaluate(a.scalar, slots.data())));
        continue;
      }
      auto buffer = static_cast<std::size_t>(a.buffer);
      const std::int64_t extra =
          a.offset_bytes.empty() ? 0 : evaluate(a.offset_bytes, slots.data());
      Storage* storage = buffer < tensors.size() ? tensors[buffer].storage : own[buffer].get();
      const Bytes base = buffer < tensors.size() ? tensors[buffer].offset : 0;
      if (!storage)
        throw Error(ErrorKind::io, "plan.buffer",
                    cat("the host plan of ", plan.name, " hands kernel \"", s.text, "\" buffer ",
                        a.buffer, " before it is allocated"))
            .help("build the module again: its file was changed");
      actual.push_back(KernelArg::pointer(storage, place(*storage, base, extra, plan, a.buffer)));
    }
    poll_interrupt();
    last = device.launch(executable, kernel, actual, extents);
  }
};

}  // namespace

Function::Function(Ref<Module> module, std::string_view name, Ref<Device> device,
                   Ref<Executable> executable)
    : module_(std::move(module)),
      plan_(&module_->plan(name)),
      device_(std::move(device)),
      executable_(std::move(executable)) {
  if (!executable_) executable_ = device_->load(module_->binary());
}

Event Function::call(std::span<const CallArg> args) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(plan_->slots), 0);
  Checker{*plan_, device_.get(), args, slots, {}}.run();
  Runner runner{*plan_, *device_, *executable_, slots, {}, {}, {}, {}};
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (plan_->params[i].is_tensor)
      runner.tensors.push_back(KernelArg::pointer(args[i].storage, args[i].byte_offset));
  }
  return runner.finish();
}

namespace {

constexpr std::size_t kFewSlots = 96, kFewArgs = 72, kFewAxes = 6;

/// A plan that is one launch of what it was given, small enough for arrays on the stack.
const PlanStep* single_launch(const HostPlan& plan) {
  if (plan.steps.size() != 1 || plan.steps[0].kind != StepKind::launch) return nullptr;
  const PlanStep& s = plan.steps[0];
  const bool few = static_cast<std::size_t>(plan.slots) <= kFewSlots && s.args.size() <= kFewArgs &&
                   s.extents.size() <= kFewAxes && plan.params.size() <= kFewArgs;
  return few ? &s : nullptr;
}

}  // namespace

Event Function::launch(std::span<const KernelArg> args) {
  WEFT_CHECK(args.size() == plan_->params.size(), "launch of ", plan_->name, " with ", args.size(),
             " arguments, not ", plan_->params.size());
  if (const PlanStep* s = single_launch(*plan_)) {
    std::int64_t slots[kFewSlots] = {};
    const KernelArg* tensors[kFewArgs];
    std::size_t count = 0;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const PlanParam& p = plan_->params[i];
      if (!p.is_tensor) {
        slots[p.scalar.slot] = args[i].scalar;
        continue;
      }
      tensors[count++] = &args[i];
      if (p.tensor.binds.size() == 1 && p.tensor.binds[0] >= 0)
        slots[p.tensor.binds[0]] =
            static_cast<std::int64_t>(args[i].storage->bytes() - args[i].offset) /
            p.tensor.dtype.total_bytes();
    }
    std::int64_t extents[kFewAxes];
    for (std::size_t i = 0; i < s->extents.size(); ++i) {
      extents[i] = evaluate(s->extents[i], slots);
      if (extents[i] <= 0) return {};
    }
    KernelArg actual[kFewArgs];
    for (std::size_t i = 0; i < s->args.size(); ++i) {
      const PlanArg& a = s->args[i];
      if (!a.is_pointer) {
        actual[i] = KernelArg::integer(evaluate(a.scalar, slots));
        continue;
      }
      auto buffer = static_cast<std::size_t>(a.buffer);
      WEFT_CHECK(buffer < count, "buffer ", a.buffer, " of a plan with ", count, " tensors");
      const std::int64_t extra = a.offset_bytes.empty() ? 0 : evaluate(a.offset_bytes, slots);
      Storage& storage = *tensors[buffer]->storage;
      actual[i] = KernelArg::pointer(
          &storage, place(storage, tensors[buffer]->offset, extra, *plan_, a.buffer));
    }
    const Binary& binary = executable_->binary();
    std::size_t kernel = 0;
    while (kernel < binary.kernels.size() && binary.kernels[kernel].name != s->text) ++kernel;
    if (kernel == binary.kernels.size()) binary.kernel(s->text);
    return device_->launch(*executable_, kernel, {actual, s->args.size()},
                           {extents, s->extents.size()});
  }
  std::vector<std::int64_t> slots(static_cast<std::size_t>(plan_->slots), 0);
  Runner runner{*plan_, *device_, *executable_, slots, {}, {}, {}, {}};
  runner.tensors.reserve(args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    const PlanParam& p = plan_->params[i];
    if (!p.is_tensor) {
      slots[static_cast<std::size_t>(p.scalar.slot)] = args[i].scalar;
      continue;
    }
    runner.tensors.push_back(args[i]);
    if (p.tensor.binds.size() == 1 && p.tensor.binds[0] >= 0)
      slots[static_cast<std::size_t>(p.tensor.binds[0])] =
          static_cast<std::int64_t>(args[i].storage->bytes() - args[i].offset) /
          p.tensor.dtype.total_bytes();
  }
  return runner.finish();
}

constexpr double kLongestTime = 3600;  // seconds of one sample

TimeResult Function::time(std::span<const CallArg> args, int number, int repeat,
                          double min_seconds) {
  if (number < 1 || repeat < 1) {
    throw Error(ErrorKind::value, "call.time",
                cat("number and repeat must be at least 1, got ", number, " and ", repeat));
  }
  if (!(min_seconds >= 0) || min_seconds > kLongestTime) {
    throw Error(ErrorKind::value, "call.time.seconds",
                cat("a sample of at least ", min_seconds, " seconds"))
        .note(cat("legal: 0 to ", kLongestTime));
  }
  call(args).wait();
  TimeResult out;
  auto sample = [&] {
    return device_->measure([&] {
      Event last;
      for (int i = 0; i < number; ++i) {
        poll_interrupt();
        last = call(args);
      }
      last.wait();
    });
  };
  Span span = sample();
  while (span.seconds < min_seconds && number < (1 << 30)) {
    double factor =
        span.seconds > 0 ? std::clamp(1.2 * min_seconds / span.seconds, 1.5, 10.0) : 10.0;
    number = static_cast<int>(std::min<double>(std::ceil(number * factor), 1 << 30));
    span = sample();
  }
  double cycles = 0, wall = 0;
  for (int r = 0; r < repeat; ++r) {
    if (r > 0) span = sample();
    out.results.push_back(span.seconds / number);
    cycles += static_cast<double>(span.cycles) / number;
    wall += span.wall / number;
  }
  std::vector<double> sorted = out.results;
  std::sort(sorted.begin(), sorted.end());
  for (double r : sorted) out.mean += r / repeat;
  for (double r : sorted) out.stddev += (r - out.mean) * (r - out.mean);
  out.stddev = repeat > 1 ? std::sqrt(out.stddev / (repeat - 1)) : 0;
  out.min = sorted.front();
  out.max = sorted.back();
  std::size_t mid = sorted.size() / 2;
  out.median = sorted.size() % 2 ? sorted[mid] : (sorted[mid - 1] + sorted[mid]) / 2;
  out.cycles = cycles / repeat;
  out.wall = wall / repeat;
  return out;
}

}  // namespace weft::runtime
