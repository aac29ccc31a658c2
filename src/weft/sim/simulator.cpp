// SPDX-License-Identifier: Apache-2.0
#include "weft/sim/simulator.h"

#include <algorithm>

#include "weft/base/patient_lock.h"
#include "weft/sim/delays.h"
#include "weft/sim/measure.h"

namespace weft::sim {

namespace {
class SimExecutable final : public runtime::Executable {
 public:
  SimExecutable(Ref<runtime::Device> device, runtime::Binary binary, Simulator& simulator,
                std::size_t program)
      : Executable(std::move(device), std::move(binary)),
        simulator_(simulator),
        program_(program) {}
  ~SimExecutable() override { simulator_.unload(program_); }
  std::size_t program() const { return program_; }

 private:
  Simulator& simulator_;
  std::size_t program_;
};
}  // namespace

void Simulator::begin(std::size_t, const Launch&) {
  throw Error(ErrorKind::value, "sim.step.unsupported",
              cat("\"", memory().name(), "\" cannot be single-stepped"));
}

bool Simulator::step() {
  throw Error(ErrorKind::value, "sim.step.unsupported",
              cat("\"", memory().name(), "\" cannot be single-stepped"));
}

SimDevice::SimDevice(std::unique_ptr<Simulator> simulator, runtime::DeviceInfo info,
                     std::string binary_format)
    : simulator_(std::move(simulator)), info_(std::move(info)), format_(std::move(binary_format)) {
  info_.kind = runtime::DeviceKind::simulator;
  info_.memory_bytes = simulator_->memory().size();
}

Ref<runtime::Storage> SimDevice::allocate(runtime::Bytes bytes, runtime::Bytes align,
                                          std::string_view space) {
  if (auto least = info_.limits.find("allocation_align"); least != info_.limits.end()) {
    align = std::max(align, static_cast<runtime::Bytes>(least->second));
  }
  std::uint64_t address = simulator_->memory().allocate(bytes, align);
  return make_ref<runtime::Storage>(Ref<runtime::Device>(this), address, bytes, space);
}

void SimDevice::free_storage(std::uint64_t address, runtime::Bytes, std::string_view) {
  simulator_->memory().release(address);
}

void SimDevice::upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
                       runtime::Bytes bytes) {
  runtime::check_range(dst, offset, bytes);
  if (bytes) std::memcpy(simulator_->memory().at(dst.address() + offset, bytes), src, bytes);
}

void SimDevice::download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                         runtime::Bytes bytes) {
  runtime::check_range(src, offset, bytes);
  if (bytes) std::memcpy(dst, simulator_->memory().at(src.address() + offset, bytes), bytes);
}

Ref<runtime::Executable> SimDevice::load(runtime::Binary binary) {
  if (binary.format != format_) {
    throw Error(
        ErrorKind::emit, "device.binary.format",
        cat(info_.name, " runs binaries of format \"", format_, "\", not \"", binary.format, "\""))
        .note(cat("the binary was built for target \"", binary.target, "\""));
  }
  std::size_t program = simulator_->load(binary);
  return make_ref<SimExecutable>(Ref<runtime::Device>(this), std::move(binary), *simulator_,
                                 program);
}

runtime::Event SimDevice::launch(runtime::Executable& executable, std::size_t kernel,
                                 std::span<const runtime::KernelArg> args,
                                 std::span<const std::int64_t> extents) {
  return launch_within(limits, executable, kernel, args, extents);
}

runtime::Event SimDevice::launch_within(const RunLimits& bounds, runtime::Executable& executable,
                                        std::size_t kernel,
                                        std::span<const runtime::KernelArg> args,
                                        std::span<const std::int64_t> extents) {
  Launch launch;
  launch.kernel = kernel;
  for (const runtime::KernelArg& arg : args) {
    if (arg.storage) {
      launch.pointers.push_back(arg.storage->address() + arg.offset);
    } else {
      launch.scalars.push_back(arg.scalar);
    }
  }
  launch.extents.assign(extents.begin(), extents.end());
  hand_over();
  const auto lock = patient_lock(mutex_);
  const std::int64_t cycles =
      simulator_->run(static_cast<SimExecutable&>(executable).program(), launch, bounds).cycles;
  count_cycles(*this, cycles);
  return {};
}

runtime::StatReport SimDevice::stats() const {
  hand_over();
  const auto lock = patient_lock(mutex_);
  return simulator_->stats();
}

void SimDevice::clear_stats() {
  const auto lock = patient_lock(mutex_);
  simulator_->clear_stats();
}

void SimDevice::trace_to(runtime::TraceSink* sink) {
  const auto lock = patient_lock(mutex_);
  simulator_->trace_to(sink);
}

runtime::Span SimDevice::measure(const std::function<void()>& work) {
  return measure_cycles(*this, info_.clock_hz, work);
}

}  // namespace weft::sim
