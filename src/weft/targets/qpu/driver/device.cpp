// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/driver/device.h"

#include <charconv>

#include "weft/targets/qpu/abi.h"
#include "weft/targets/qpu/isa.h"
#include "weft/targets/qpu/shadow.h"

namespace weft::qpu::hw {

namespace {
/// The uniform stream is read ahead by two words.
constexpr std::size_t kReadAhead = 2;

class HwExecutable final : public runtime::Executable {
 public:
  struct Kernel {
    Abi abi;
    std::uint32_t first = 0;  // byte in the code
  };
  HwExecutable(Ref<runtime::Device> device, runtime::Binary binary, std::vector<Kernel> kernels,
               std::unique_ptr<GpuMemory> code)
      : Executable(std::move(device), std::move(binary)),
        kernels_(std::move(kernels)),
        code_(std::move(code)) {}
  const Abi& abi(std::size_t kernel) const {
    check_kernel(kernel, kernels_.size());
    return kernels_[kernel].abi;
  }
  std::uint32_t code(std::size_t kernel) const { return code_->bus() + kernels_[kernel].first; }

 private:
  std::vector<Kernel> kernels_;
  std::unique_ptr<GpuMemory> code_;
};
}  // namespace

bool names_chip(std::string_view name) { return name == "qpu:hw" || name.starts_with("qpu:hw,"); }

HwOptions parse_hw_options(std::string_view name) {
  HwOptions out;
  if (name.size() <= 7) return out;
  for (const std::string& item : split(name.substr(7), ',')) {
    std::size_t equals = item.find('=');
    std::string key = item.substr(0, equals),
                value = equals == item.npos ? "" : item.substr(equals + 1);
    unsigned n = 0;
    const char* end = value.data() + value.size();
    bool numeric = !value.empty() && std::from_chars(value.data(), end, n).ptr == end;
    if (key == "launch" && (value == "mailbox" || value == "registers")) {
      out.launch = value == "mailbox" ? LaunchBy::mailbox : LaunchBy::registers;
    } else if (key == "timeout" && numeric && n >= 1 && n <= 3600000) {
      out.timeout_ms = n;
    } else if (key == "qpus" && numeric && n >= 1 && n <= kMaxQpus) {
      out.qpus = static_cast<int>(n);
    } else {
      throw Error(ErrorKind::value, "qpu.device.option",
                  cat("device option \"", item, "\" is not understood"))
          .note("legal: qpus=1..12, launch=mailbox|registers, timeout=ms")
          .help(did_you_mean(key, {"qpus", "launch", "timeout"}));
    }
  }
  return out;
}

HwDevice::HwDevice(std::string name, HwOptions options, std::shared_ptr<Board> board)
    : options_(options), chip_(std::move(board), options.launch) {
  info_.name = std::move(name);
  info_.kind = runtime::DeviceKind::hardware;
  info_.description = cat("VideoCore IV of ", chip_.found().model);
  info_.clock_hz = chip_.clock_hz();
  info_.dl_type = 14;  // an extension device
  info_.limits = {{"qpus", options_.qpus}, {"lanes", 16}, {"vpm_rows", 64}, {"semaphores", 16}};
}

HwDevice::~HwDevice() { blocks_.clear(); }

Ref<runtime::Storage> HwDevice::allocate(runtime::Bytes bytes, runtime::Bytes,
                                         std::string_view space) {
  std::unique_ptr<GpuMemory> memory = chip_.allocate(bytes);
  std::uint32_t bus = memory->bus();
  std::lock_guard lock(memory_mutex_);
  blocks_[bus] = std::move(memory);
  return make_ref<runtime::Storage>(Ref<runtime::Device>(this), bus, bytes, space);
}

void HwDevice::free_storage(std::uint64_t address, runtime::Bytes, std::string_view) {
  std::unique_ptr<GpuMemory> gone;
  std::lock_guard lock(memory_mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  gone = std::move(found->second);
  blocks_.erase(found);
}

GpuMemory& HwDevice::block(std::uint64_t address) {
  std::lock_guard lock(memory_mutex_);
  return *blocks_.at(address);
}

void* HwDevice::host(const runtime::Storage& storage) {
  return const_cast<void*>(block(storage.address()).host());
}

void HwDevice::upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
                      runtime::Bytes bytes) {
  runtime::check_range(dst, offset, bytes);
  block(dst.address()).put(offset, src, bytes);
}

void HwDevice::download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                        runtime::Bytes bytes) {
  runtime::check_range(src, offset, bytes);
  block(src.address()).get(offset, dst, bytes);
}

Ref<runtime::Executable> HwDevice::load(runtime::Binary binary) {
  if (binary.format != "qpu") {
    throw Error(ErrorKind::emit, "device.binary.format",
                cat(info_.name, " runs binaries of format \"qpu\", not \"", binary.format, "\""))
        .note(cat("the binary was built for target \"", binary.target, "\""));
  }
  std::vector<Code> words = words_of(binary);
  std::vector<HwExecutable::Kernel> kernels;
  std::uint32_t first = 0;
  for (const runtime::Binary& one : kernels_of(binary)) {
    kernels.push_back({parse_abi(one), first});
    first += static_cast<std::uint32_t>(one.bytes.size());  // they lie one after the other
  }
  const std::vector<Instr> instructions = decode_words(words);
  for (std::size_t n = 0; n < instructions.size(); ++n) {
    const Instr& i = instructions[n];
    if (i.kind == kAlu && i.sig == kSigBreak) {
      throw Error(ErrorKind::emit, "qpu.hw.breakpoint",
                  cat("instruction ", n, " is a software breakpoint, which stops a QPU for good"))
          .help("run kernels with Print on the emulator: \"qpu\"");
    }
  }
  std::unique_ptr<GpuMemory> code = chip_.allocate(binary.bytes.size());
  code->put(0, binary.bytes.data(), binary.bytes.size());
  return make_ref<HwExecutable>(Ref<runtime::Device>(this), std::move(binary), std::move(kernels),
                                std::move(code));
}

runtime::Event HwDevice::launch(runtime::Executable& executable, std::size_t kernel,
                                std::span<const runtime::KernelArg> args,
                                std::span<const std::int64_t> extents) {
  auto& program = static_cast<HwExecutable&>(executable);
  std::vector<std::uint64_t> pointers;
  std::vector<std::int64_t> scalars;
  for (const runtime::KernelArg& arg : args) {
    if (arg.storage && arg.storage->device().get() != this) {
      throw Error(ErrorKind::device, "qpu.launch.device",
                  cat("an argument of the kernel lies on ", arg.storage->device()->info().name,
                      ", the kernel runs on ", info_.name));
    }
    if (arg.storage) pointers.push_back(arg.storage->address() + arg.offset);
    else scalars.push_back(arg.scalar);
  }
  const Abi& abi = program.abi(kernel);
  std::int64_t active = extents.empty() ? 1 : extents[0];
  std::vector<std::uint32_t> words = fill_uniforms(abi, pointers, scalars, active, options_.qpus);
  auto count = static_cast<std::size_t>(active);
  std::size_t per = abi.uniforms.size();
  std::unique_ptr<GpuMemory> spill;
  if (abi.spill_bytes) spill = chip_.allocate(abi.spill_bytes * count);
  for (std::size_t q = 0; q < count; ++q) {
    for (std::size_t u = 0; u < per; ++u) {
      if (abi.uniforms[u].kind == UniformKind::spill)
        words[q * per + u] = spill->bus() + static_cast<std::uint32_t>(abi.spill_bytes * q);
    }
  }
  std::unique_ptr<GpuMemory> uniforms = chip_.allocate((words.size() + kReadAhead) * 4);
  uniforms->put(0, words.data(), words.size() * 4);
  std::unique_ptr<GpuMemory> control = chip_.allocate(count * 8);
  for (std::size_t q = 0; q < count; ++q) {
    std::uint32_t pair[] = {uniforms->bus() + static_cast<std::uint32_t>(q * per * 4),
                            program.code(kernel)};
    control->put(q * 8, pair, 8);
  }
  std::lock_guard lock(chip_mutex_);
  chip_.run(static_cast<std::uint32_t>(count), *control, options_.timeout_ms);
  return {};
}

}  // namespace weft::qpu::hw
