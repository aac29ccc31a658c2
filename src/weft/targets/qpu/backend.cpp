// SPDX-License-Identifier: Apache-2.0
// The QPU as a back end: its rows, tensor programs through the compiler of the kernel language
// (tensor/), and the emulated chip as a device.

#include "weft/target/backend.h"

#include "weft/target/accepts.h"
#include "weft/target/pipeline.h"
#include "weft/targets/qpu/driver/device.h"
#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/tensor/default_schedule.h"
#include "weft/targets/qpu/tensor/emit.h"
#include "weft/targets/qpu/tensor/prepare.h"

namespace weft::qpu {

namespace {

class QpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "qpu"; }

  TargetInfo info(const Target& target) const override {
    hw::EmulatorOptions options = options_of(target);
    TargetInfo out;
    out.name = "qpu";
    AxisInfo qpu;
    // QPUs can meet (semaphores), but what one stored another's TMU may not see before the next
    // launch: stages that depend on each other are launches of their own, so no barrier row.
    qpu.name = "qpu", qpu.kind = AxisKind::parallel, qpu.limit = options.qpus;
    AxisInfo lane;
    lane.name = "lane", lane.kind = AxisKind::lockstep, lane.limit = 16, lane.level = 1,
    lane.reduces = true, lane.collectives = {"reduce", "broadcast", "shift"};
    out.axes = {qpu, lane};
    MemoryInfo global;
    global.scope = "global", global.bytes = static_cast<std::int64_t>(options.memory_bytes),
    global.min_transfer_bytes = 4;
    MemoryInfo local;
    local.scope = "local", local.bytes = 64 * 64, local.private_to = {"qpu", "lane"};
    MemoryInfo vpm;
    vpm.scope = "vpm", vpm.bytes = 4096, vpm.min_transfer_bytes = 4, vpm.access = "dma";
    out.memories = {global, local, vpm};
    QueueInfo tmu;
    tmu.name = "tmu", tmu.sync = "counted", tmu.outstanding = 4;
    QueueInfo store;
    store.name = "store", store.sync = "counted", store.outstanding = 1;
    out.queues = {tmu, store};
    out.dtypes = {dtypes::float32, dtypes::int32, dtypes::uint32};
    out.limits = {
        {limits::kLanes, 16}, {"qpus", options.qpus}, {limits::kRegisters, 64}, {limits::kNan, 0}};
    return out;
  }

  Verdict accepts(const ir::PrimFunc& f, const Target& target) const override {
    if (Verdict no = tensor::accepts(f)) return no;
    return accepts_rows(f, info(target));
  }

  ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Target& target) const override {
    return tensor::default_schedule(f, info(target));
  }

  pass::Pipeline pipeline(const Target& target) const override {
    // prepare() and the kernel compiler look for accumulators and common values themselves, and
    // want indices whole; a buffer that stands for two would be stored and read in one kernel.
    LoweringOptions options;
    options.common_subexpression_elimination = options.share_storage = false;
    pass::Pipeline out = standard_pipeline(info(target), options);
    out.push_back({"prepare", tensor::prepare});
    return out;
  }

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    return tensor::emit(kernels, target.text());
  }

  void check_kernels(const std::vector<ir::PrimFunc>& kernels,
                     const Target& target) const override {
    tensor::emit(kernels, target.text());
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

  bool client_may_set(std::string_view key, std::string_view) const override {
    return key == "qpus" || key == "races" || key == "reads" || key == "engine" || key == "counts";
  }

  bool has_assembler() const override { return true; }

  std::string assemble(std::string_view text, std::string_view file, const Target&) const override {
    std::string out;
    for (const hw::Instr& instr : hw::assemble(text, file)) {
      hw::Code word = hw::encode(instr);
      for (unsigned at = 0; at < 64; at += 8) out.push_back(static_cast<char>(word >> at));
    }
    return out;
  }

  std::string disassemble(std::string_view words, const Target&) const override {
    if (words.size() % 8)
      throw Error(ErrorKind::value, "qpu.words.size",
                  cat(words.size(), " bytes are no whole number of instructions"))
          .note("an instruction has 8 bytes");
    std::string out;
    for (std::size_t at = 0; at < words.size(); at += 8) {
      hw::Code word = 0;
      for (unsigned i = 0; i < 8; ++i)
        word |= hw::Code{static_cast<unsigned char>(words[at + i])} << (8 * i);
      out += cat(hw::print(hw::decode(word)), "\n");
    }
    return out;
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
