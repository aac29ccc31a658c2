// SPDX-License-Identifier: Apache-2.0
// The device that accepts everything, computes nothing and records the calls: how often each kernel
// was launched, what was allocated and copied. It keeps the interfaces honest and lets other layers
// be tested anywhere.

#include <atomic>

#include "weft/runtime/host_device.h"
#include "weft/sim/measure.h"
#include "weft/target/backend.h"
#include "weft/target/whole_function.h"

namespace weft::null {

namespace {

class NullDevice final : public runtime::HostDevice {
 public:
  NullDevice() : HostDevice("null", "computes nothing; records calls", "null") {
    info_ = HostDevice::info();
    info_.kind = runtime::DeviceKind::simulator;
    info_.clock_hz = 1e9;
  }
  const runtime::DeviceInfo& info() const override { return info_; }

  void upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
              runtime::Bytes bytes) override {
    HostDevice::upload(dst, offset, src, bytes);
    uploaded_ += static_cast<std::int64_t>(bytes);
  }
  void download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                runtime::Bytes bytes) override {
    HostDevice::download(dst, src, offset, bytes);
    downloaded_ += static_cast<std::int64_t>(bytes);
  }
  Ref<runtime::Executable> load(runtime::Binary binary) override {
    return make_ref<runtime::Executable>(Ref<runtime::Device>(this),
                                         std::move(binary));  // any format
  }
  runtime::Event launch(runtime::Executable& executable, std::size_t kernel,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t> extents) override {
    const runtime::KernelSignature& k = executable.binary().kernels.at(kernel);
    WEFT_CHECK(args.size() == k.params.size() && extents.size() == k.axes.size(), "kernel ", k.name,
               " got ", args.size(), " arguments");
    ++launches_;
    sim::count_cycles(*this, 1);  // one each
    return {};
  }
  runtime::Span measure(const std::function<void()>& work) override {
    return sim::measure_cycles(*this, info_.clock_hz, work);
  }
  runtime::StatReport stats() const override {
    runtime::StatReport out = HostDevice::stats();
    out.add("cycles", "cycles", "one per launch", launches_);
    out.add("instructions", "1", "launches", launches_);
    out.add("bytes.global.written", "bytes", "copied to the device", uploaded_);
    out.add("bytes.global.read", "bytes", "copied from the device", downloaded_);
    return out;
  }
  void clear_stats() override {
    HostDevice::clear_stats();
    launches_ = uploaded_ = downloaded_ = 0;
  }

 private:
  runtime::DeviceInfo info_;
  std::atomic<std::int64_t> launches_{0}, uploaded_{0}, downloaded_{0};
};

class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }
  TargetInfo info(const Target&) const override {
    TargetInfo out = generic_target_info();
    out.name = "null";
    out.limits[limits::kWholeFunctions] = 1;
    return out;
  }
  Verdict accepts(const ir::PrimFunc&, const Target&) const override { return {}; }
  pass::Pipeline pipeline(const Target&) const override { return {}; }
  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    runtime::Binary binary;
    binary.target = target.text();
    binary.format = "null";
    for (const ir::PrimFunc& f : kernels) {
      binary.kernels.push_back(whole_signature(f));
      binary.source += f->name + "\n";
    }
    binary.bytes = binary.source;
    return binary;
  }
  std::vector<DeviceStatus> devices() const override {
    return {{"null", runtime::DeviceKind::simulator, true, "", "computes nothing; records calls"}};
  }
  Ref<runtime::Device> open(const Target&) const override { return make_ref<NullDevice>(); }
};

}  // namespace

Backend& backend() {
  static NullBackend instance;
  return instance;
}

}  // namespace weft::null
