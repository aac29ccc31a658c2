// SPDX-License-Identifier: Apache-2.0
// The QPU as a back end: its rows, and the emulated chip as a device. Kernels reach it as binaries
// made by <weft/qpu.h>; tensor programs are refused before any lowering, with the reason.

#include "weft/target/backend.h"

#include "weft/target/accepts.h"
#include "weft/targets/qpu/driver/device.h"
#include "weft/targets/qpu/emulator.h"

namespace weft::qpu {

namespace {

class QpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "qpu"; }

  TargetInfo info(const Target& target) const override {
    hw::EmulatorOptions options = options_of(target);
    TargetInfo out;
    AxisInfo qpu;
    qpu.name = "qpu", qpu.kind = AxisKind::parallel, qpu.limit = options.qpus, qpu.barrier = true;
    AxisInfo lane;
    lane.name = "lane", lane.kind = AxisKind::lockstep, lane.limit = 16, lane.level = 1,
    lane.reduces = true, lane.collectives = {"reduce", "broadcast", "shift"};
    out.axes = {qpu, lane};
    MemoryInfo global;
    global.scope = "global", global.bytes = static_cast<std::int64_t>(options.memory_bytes),
    global.min_transfer_bytes = 4;
    MemoryInfo local;
    local.scope = "local", local.bytes = 64 * 64, local.private_to = {"qpu"};
    MemoryInfo vpm;
    vpm.scope = "vpm", vpm.bytes = 4096, vpm.min_transfer_bytes = 4, vpm.access = "dma";
    out.memories = {global, local, vpm};
    QueueInfo tmu;
    tmu.name = "tmu", tmu.sync = "counted", tmu.outstanding = 4;
    QueueInfo store;
    store.name = "store", store.sync = "counted", store.outstanding = 1;
    out.queues = {tmu, store};
    out.dtypes = {dtypes::float32, dtypes::int32};
    out.limits = {{"lanes", 16}, {"qpus", options.qpus}, {"registers", 64}};
    return out;
  }

  Verdict accepts(const ir::PrimFunc&, const Target& target) const override {
    Refusal refusal;
    refusal.code = "qpu.accepts.lowering";
    refusal.message =
        cat("target ", target.text(),
            " runs kernels written with <weft/qpu.h>; tensor programs are not lowered to it");
    refusal.repair("write the kernel with <weft/qpu.h>, or build the program for another target");
    return refusal;
  }

  pass::Pipeline pipeline(const Target&) const override { return {}; }

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    throw Error(ErrorKind::lower, "qpu.accepts.lowering",
                cat(kernels.size(), " tensor kernels cannot be lowered for ", target.text()));
  }

  std::vector<DeviceStatus> devices() const override {
    DeviceStatus emulator;
    emulator.name = "qpu", emulator.kind = runtime::DeviceKind::simulator,
    emulator.available = true;
    emulator.description = "12 emulated VideoCore IV QPUs at 300 MHz";
    DeviceStatus chip;
    chip.name = "qpu:hw", chip.kind = runtime::DeviceKind::hardware;
    hw::Found found = hw::find_chip(*hw::this_board());
    chip.available = found.usable;
    chip.reason = found.reason;
    chip.description = found.usable ? cat("VideoCore IV of ", found.model) : "";
    return {emulator, chip};
  }

  Ref<runtime::Device> open(const Target& target) const override {
    if (hw::names_chip(target.text()))
      return make_ref<hw::HwDevice>(target.text(), hw::parse_hw_options(target.text()),
                                    hw::this_board());
    return hw::make_device(target.text());
  }

 private:
  static hw::EmulatorOptions options_of(const Target& target) {
    return hw::names_chip(target.text()) ? hw::EmulatorOptions{} : hw::parse_options(target.text());
  }
};

}  // namespace

Backend& backend() {
  static QpuBackend instance;
  return instance;
}

}  // namespace weft::qpu
