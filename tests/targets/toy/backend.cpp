// SPDX-License-Identifier: Apache-2.0
// The toy machine of docs/guide/new-target.md: one processor that runs whole float32 programs and
// takes a cycle for every element that it writes. Small enough to copy: the five functions of a
// back end and a device.

#include <bit>

#include "weft/ir/build.h"
#include "weft/ir/interpret.h"
#include "weft/ir/text.h"
#include "weft/runtime/host_device.h"
#include "weft/target/accepts.h"
#include "weft/target/backend.h"
#include "weft/target/whole_function.h"

namespace weft::toy {

namespace {

constexpr double kClock = 1e6;  // Hz; one element a microsecond

class ToyExecutable final : public runtime::Executable {
 public:
  ToyExecutable(Ref<runtime::Device> device, runtime::Binary binary, ir::IRModule module)
      : Executable(std::move(device), std::move(binary)), module(std::move(module)) {}
  ir::IRModule module;
};

class ToyDevice final : public runtime::HostDevice {
 public:
  explicit ToyDevice(std::string name) : HostDevice(std::move(name), "a toy machine", "toy") {
    info_ = HostDevice::info();
    info_.kind = runtime::DeviceKind::simulator;
    info_.clock_hz = kClock;
  }
  const runtime::DeviceInfo& info() const override { return info_; }

  Ref<runtime::Executable> load(runtime::Binary binary) override {
    if (binary.format != "toy") {
      throw Error(ErrorKind::emit, "device.binary.format",
                  cat("toy loads \"toy\", not \"", binary.format, "\""))
          .note(cat("the module was built for ", binary.target));
    }
    ir::IRModule module = ir::parse_module(binary.bytes, "<module for toy>");
    return make_ref<ToyExecutable>(Ref<runtime::Device>(this), std::move(binary),
                                   std::move(module));
  }

  runtime::Event launch(runtime::Executable& executable, std::size_t kernel,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t>) override {
    auto& ready = static_cast<ToyExecutable&>(executable);
    ir::PrimFunc f = ready.module->find(executable.binary().kernels.at(kernel).name);
    std::vector<ir::InterpretArg> actual;
    std::size_t extent = f->params.size();  // all are tensors; their extents follow
    for (std::size_t i = 0; i < f->params.size(); ++i) {
      ir::InterpretArg arg;
      arg.data = static_cast<char*>(args[i].storage->host()) + args[i].offset;
      std::int64_t elements = 1;
      for (std::size_t d = 0; d < f->params[i].buffer->ndim(); ++d) {
        arg.shape.push_back(args[extent++].scalar);
        elements *= arg.shape.back();
      }
      if (i + 1 == f->params.size()) cycles_ += elements;  // the last tensor is the result
      actual.push_back(std::move(arg));
    }
    ir::interpret(f, actual);
    return {};
  }

  runtime::Span measure(const std::function<void()>& work) override {
    std::int64_t before = cycles_;
    runtime::Span span = Device::measure(work);
    span.cycles = cycles_ - before;
    span.seconds = static_cast<double>(span.cycles) / kClock;
    return span;
  }
  runtime::StatReport stats() const override {
    runtime::StatReport out = HostDevice::stats();
    out.add("cycles", "cycles", "one for each element written", cycles_);
    return out;
  }
  void clear_stats() override {
    HostDevice::clear_stats();
    cycles_ = 0;
  }

 private:
  runtime::DeviceInfo info_;
  std::int64_t cycles_ = 0;
};

class ToyBackend final : public Backend {
 public:
  std::string_view name() const override { return "toy"; }

  TargetInfo info(const Target& target) const override {
    for (const auto& [key, value] : target.options) {
      throw Error(ErrorKind::value, "toy.option.unknown",
                  cat("target toy takes no options, not \"", key.empty() ? value : key, "\""));
    }
    TargetInfo out = generic_target_info();
    out.name = "toy";
    out.dtypes = {dtypes::float32};
    out.limits["whole_functions"] = 1;  // a kernel is a whole function
    return out;
  }

  Verdict accepts(const ir::PrimFunc& f, const Target& target) const override {
    for (const ir::Param& p : f->params) {
      if (p.buffer) continue;
      Refusal refusal;
      refusal.code = "toy.accepts.scalar";
      refusal.message =
          cat("\"", p.var->name, "\" of ", f->name, " is a scalar; toy takes tensors");
      return refusal;
    }
    return accepts_rows(f, info(target));
  }

  pass::Pipeline pipeline(const Target&) const override { return {}; }

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    std::vector<std::pair<std::string, ir::PrimFunc>> functions;
    runtime::Binary binary;
    for (const ir::PrimFunc& f : kernels) {
      functions.emplace_back(f->name, f);
      binary.kernels.push_back(whole_signature(f));
    }
    binary.target = target.text();
    binary.format = "toy";
    binary.bytes = ir::print(ir::make_module(std::move(functions)));
    binary.source = binary.bytes;
    return binary;
  }

  std::vector<DeviceStatus> devices() const override {
    return {{"toy", runtime::DeviceKind::simulator, true, "", "a toy machine"}};
  }

  Ref<runtime::Device> open(const Target& target) const override {
    info(target);
    return make_ref<ToyDevice>(target.text());
  }
};

}  // namespace

Backend& backend() {
  static ToyBackend instance;
  return instance;
}

}  // namespace weft::toy
