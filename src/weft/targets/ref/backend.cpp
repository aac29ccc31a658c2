// SPDX-License-Identifier: Apache-2.0
// The oracle: the IR's interpreter as a device. Its binary is the program's text; nothing is
// lowered.

#include <algorithm>
#include <bit>

#include "weft/ir/build.h"
#include "weft/ir/interpret.h"
#include "weft/ir/text.h"
#include "weft/pass/init_empty_reductions.h"
#include "weft/pass/join_points.h"
#include "weft/runtime/host_device.h"
#include "weft/runtime/signature.h"
#include "weft/target/backend.h"
#include "weft/target/whole_function.h"

namespace weft::ref {

namespace {

using runtime::KernelArg;

class RefExecutable final : public runtime::Executable {
 public:
  RefExecutable(Ref<runtime::Device> device, runtime::Binary binary, ir::IRModule module)
      : Executable(std::move(device), std::move(binary)), module(std::move(module)) {}
  ir::IRModule module;
};

/// The interpreter checks each access against the extents that it is told; here those are checked
/// against the memory behind them.
void check_reach(const ir::Buffer& buffer, const ir::InterpretArg& arg, const KernelArg& a) {
  if (std::find(arg.shape.begin(), arg.shape.end(), 0) != arg.shape.end()) return;
  std::int64_t low = 0, high = 0, step = 1;
  bool outside = false;
  for (std::size_t d = arg.shape.size(); d-- > 0;) {
    const std::int64_t extent = arg.shape[d];
    const std::int64_t stride = arg.strides.empty() ? step : arg.strides[d];
    std::int64_t reach = 0;
    outside = outside || extent < 0 || __builtin_mul_overflow(stride, extent - 1, &reach);
    std::int64_t& end = reach < 0 ? low : high;
    outside = outside || __builtin_add_overflow(end, reach, &end) ||
              __builtin_mul_overflow(step, extent, &step);
  }
  const std::int64_t width = buffer->dtype.total_bytes();
  const auto bytes = static_cast<std::int64_t>(a.storage->bytes());
  const auto offset = static_cast<std::int64_t>(a.offset);
  outside = outside || offset < 0 || offset > bytes || low < -(offset / width) ||
            high >= (bytes - offset) / width;
  if (!outside) return;
  throw Error(ErrorKind::index, "ref.bounds",
              cat("buffer \"", buffer->name, "\" reaches elements ", low, " to ", high,
                  " from byte ", a.offset, " of a storage of ", bytes, " bytes"))
      .help("build the module again: its file was changed");
}

class RefDevice final : public runtime::HostDevice {
 public:
  RefDevice() : HostDevice("ref", "interpreter of the tensor program language", "ir") {
    info_ = HostDevice::info();
    info_.kind = runtime::DeviceKind::interpreter;
  }
  const runtime::DeviceInfo& info() const override { return info_; }

  Ref<runtime::Executable> load(runtime::Binary binary) override {
    if (binary.format != "ir") {
      throw Error(
          ErrorKind::emit, "device.binary.format",
          cat("ref loads \"ir\", not \"", binary.format, "\" (built for ", binary.target, ")"));
    }
    ir::IRModule module = ir::parse_module(binary.bytes, "<module for ref>");
    for (const runtime::KernelSignature& k : binary.kernels) {
      const ir::PrimFunc f = module->find(k.name);
      if (!f || runtime::pointer_arguments(whole_signature(f)) != runtime::pointer_arguments(k))
        throw Error(
            ErrorKind::io, "ref.binary.signature",
            cat("kernel \"", k.name, "\" ",
                f ? "takes other arguments than its program says" : "has no program in the module"))
            .note(cat("stated: ", k.params.size(), " arguments"))
            .help("build the module again: its file was changed");
    }
    return make_ref<RefExecutable>(Ref<runtime::Device>(this), std::move(binary),
                                   std::move(module));
  }

  runtime::Event launch(runtime::Executable& executable, std::size_t kernel,
                        std::span<const KernelArg> args, std::span<const std::int64_t>) override {
    auto& ready = static_cast<RefExecutable&>(executable);
    ir::PrimFunc f = ready.module->find(executable.binary().kernels.at(kernel).name);
    std::size_t tensors = 0, scalars = 0;
    for (const ir::Param& p : f->params) ++(p.buffer ? tensors : scalars);
    std::vector<ir::InterpretArg> actual;
    std::size_t pointer = 0, scalar = tensors, extent = tensors + scalars;
    for (const ir::Param& p : f->params) {
      ir::InterpretArg arg;
      if (p.buffer) {
        const KernelArg& a = args[pointer++];
        arg.data = static_cast<char*>(a.storage->host()) + a.offset;
        for (std::size_t d = 0; d < p.buffer->ndim(); ++d)
          arg.shape.push_back(args[extent++].scalar);
        for (std::size_t d = 0; d < p.buffer->strides.size(); ++d)
          arg.strides.push_back(args[extent++].scalar);
        check_reach(p.buffer, arg, a);
      } else {
        arg.int_value = args[scalar].scalar;
        arg.float_value = std::bit_cast<double>(args[scalar].scalar);
        ++scalar;
      }
      actual.push_back(std::move(arg));
    }
    ir::interpret(f, actual);
    return {};
  }

 private:
  runtime::DeviceInfo info_;
};

class RefBackend final : public Backend {
 public:
  std::string_view name() const override { return "ref"; }
  TargetInfo info(const Target& target) const override {
    for (const auto& [key, value] : target.options) {
      throw Error(ErrorKind::value, "ref.option.unknown",
                  cat("target ref takes no options, not \"", key.empty() ? value : key, "\""));
    }
    TargetInfo out = generic_target_info();
    out.name = "ref";
    out.limits[limits::kWholeFunctions] = 1;
    return out;
  }
  Verdict accepts(const ir::PrimFunc&, const Target&) const override { return {}; }
  pass::Pipeline pipeline(const Target& target) const override {
    return {{"init_empty_reductions", pass::init_empty_reductions},
            {"join_points", [machine = info(target)](const ir::PrimFunc& f) {
               return pass::join_points(f, machine);
             }}};
  }
  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    std::vector<std::pair<std::string, ir::PrimFunc>> functions;
    runtime::Binary binary;
    for (const ir::PrimFunc& f : kernels) {
      functions.emplace_back(f->name, f);
      binary.kernels.push_back(whole_signature(f));
    }
    binary.target = target.text();
    binary.format = "ir";
    binary.bytes = ir::print(ir::make_module(std::move(functions)));
    binary.source = binary.bytes;
    return binary;
  }
  std::vector<DeviceStatus> devices() const override {
    return {{"ref", runtime::DeviceKind::interpreter, true, "",
             "interpreter of the tensor program language"}};
  }
  Ref<runtime::Device> open(const Target& target) const override {
    info(target);
    return make_ref<RefDevice>();
  }
};

}  // namespace

Backend& backend() {
  static RefBackend instance;
  return instance;
}

}  // namespace weft::ref
