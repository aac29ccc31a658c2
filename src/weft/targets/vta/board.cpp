// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/board.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "weft/base/file.h"
#include "weft/runtime/programmable.h"

namespace weft::vta {

RegisterMap register_map_of(const Config& config) {
  const std::string& board = config.board().name;
  return board.starts_with("de10") ? RegisterMap::chisel : RegisterMap::hls;
}

namespace {

std::uint32_t low_word(std::uint64_t address) {
  if (address > 0xffffffffull)
    throw Error(ErrorKind::device, "vta.hw.range",
                cat("the physical address ", hex(address), " has more than 32 bits"))
        .note("the chip's registers and DMA address 4 GiB");
  return static_cast<std::uint32_t>(address);
}

template <typename Done>
void poll(Done done, const BoardOptions& options, std::uint64_t count) {
  for (std::int64_t i = 0; i < options.polls; ++i) {
    if (done()) return;
  }
  throw Error(ErrorKind::device, "vta.hw.timeout",
              cat("the chip has not finished ", count, " instructions after ", options.polls,
                  " looks at its done register"))
      .note("either its bitstream is of another configuration, or the tokens do not balance")
      .help("program the bitstream again; run the module on \"vta\" to see its tokens checked");
}

}  // namespace

std::int64_t run_on_board(BoardBus& bus, const Config& config, std::uint64_t address,
                          std::uint64_t count, const BoardOptions& options) {
  const auto& page = config.board().registers;
  std::uint32_t where = low_word(address), number = low_word(count);
  if (register_map_of(config) == RegisterMap::chisel) {
    std::uint64_t base = page[0];
    for (std::uint64_t r : {chisel::kUop, chisel::kInp, chisel::kWgt, chisel::kAcc, chisel::kOut})
      bus.write(base + r, 0);  // instructions carry whole addresses
    bus.write(base + chisel::kCount, number);
    bus.write(base + chisel::kAddress, where);
    bus.write(base + chisel::kControl, chisel::kStart);
    poll([&] { return (bus.read(base + chisel::kControl) & chisel::kFinished) != 0; }, options,
         count);
    return bus.read(base + chisel::kCycles);
  }
  auto [fetch, load, compute, store] = page;
  bus.write(fetch + hls::kFetchCount, number);
  bus.write(fetch + hls::kFetchAddress, where);
  bus.write(load + hls::kLoadInp, 0);
  bus.write(load + hls::kLoadWgt, 0);
  bus.write(compute + hls::kUop, 0);
  bus.write(compute + hls::kBias, 0);
  bus.write(store + hls::kStoreOut, 0);
  bus.write(compute + hls::kDoneWrite, 0);
  bus.write(fetch + hls::kControl, hls::kStart);
  for (std::uint64_t ip : {load, compute, store}) bus.write(ip + hls::kControl, hls::kStartAgain);
  poll([&, at = compute + hls::kDoneRead] { return bus.read(at) != 0; }, options, count);
  return 0;
}

namespace {

using runtime::Bytes;

class BoardExecutable final : public runtime::Executable {
 public:
  BoardExecutable(Ref<runtime::Device> device, runtime::Binary binary, Program p)
      : Executable(std::move(device), std::move(binary)), program(std::move(p)) {}
  Program program;
  Ref<runtime::Storage> uops;
};

class BoardDevice final : public runtime::Device, public runtime::Programmable {
 public:
  BoardDevice(const Config& config, std::unique_ptr<BoardBus> bus, BoardOptions options,
              std::string name)
      : config_(config), isa_(config), bus_(std::move(bus)), options_(std::move(options)) {
    info_.name = std::move(name);
    info_.kind = runtime::DeviceKind::hardware;
    info_.description = cat("VTA ", config_.model(), " on ", config_.board().device);
    info_.dl_type = 12;  // kDLExtDev
    info_.memory_bytes = bus_->memory().size();
    info_.limits = {{"allocation_align", kPage}};
    if (bus_->physical() % kPage)
      throw Error(ErrorKind::device, "vta.hw.range",
                  cat("the memory for DMA begins at ", hex(bus_->physical()), ", inside a page"));
  }

  const runtime::DeviceInfo& info() const override { return info_; }

  Ref<runtime::Storage> allocate(Bytes bytes, Bytes, std::string_view space) override {
    // First fit over whole pages: DRAM addresses count elements of any memory.
    std::lock_guard lock(memory_mutex_);
    Bytes size = std::max<Bytes>((bytes + kPage - 1) / kPage, 1) * kPage, at = 0;
    for (const auto& [start, length] : blocks_) {
      if (start - at >= size) break;
      at = start + length;
    }
    if (at + size > bus_->memory().size()) {
      Bytes used = 0;
      for (const auto& [start, length] : blocks_) used += length;
      throw Error(ErrorKind::memory, "vta.hw.memory",
                  cat("no ", size, " bytes in a row are left in the memory for DMA"))
          .note(cat(bus_->memory().size(), " bytes in all, ", used, " in use"))
          .help("give the board a larger contiguous region (cma= or u-dma-buf's size)");
    }
    blocks_[at] = size;
    return make_ref<runtime::Storage>(Ref<runtime::Device>(this), bus_->physical() + at, bytes,
                                      space);
  }

  void upload(runtime::Storage& dst, Bytes offset, const void* src, Bytes bytes) override {
    runtime::check_range(dst, offset, bytes);
    if (bytes) std::memcpy(host(dst.address() + offset), src, bytes);
  }
  void download(void* dst, const runtime::Storage& src, Bytes offset, Bytes bytes) override {
    runtime::check_range(src, offset, bytes);
    if (bytes) std::memcpy(dst, host(src.address() + offset), bytes);
  }

  Ref<runtime::Executable> load(runtime::Binary binary) override {
    if (binary.format != "vta")
      throw Error(ErrorKind::emit, "device.binary.format",
                  cat(info_.name, " runs binaries of format \"vta\", not \"", binary.format, "\""));
    Program program = from_binary(binary);
    if (!program.config.same_machine(config_))
      throw Error(
          ErrorKind::emit, "vta.binary.config",
          cat("the program was made for ", program.config.key(), ", the chip is ", config_.key()))
          .help("build it again for this configuration, or program another bitstream");
    for (const Kernel& kernel : program.kernels) {
      for (const Insn& n : kernel.stream.insns) {
        if (n.op == Opcode::load && n.mem == MemType::acc8)
          throw Error(ErrorKind::emit, "vta.hw.acc8",
                      cat("kernel \"", kernel.signature.name,
                          "\" loads signed bytes into the accumulator, which the chip cannot"))
              .note(cat("instruction: ", isa_.print(n)))
              .help("give that operand as int32, or run it on \"vta\"");
      }
    }
    auto out = make_ref<BoardExecutable>(Ref<runtime::Device>(this), std::move(binary),
                                         std::move(program));
    const auto& uops = out->program.uops;
    out->uops = allocate(uops.size() * 4, kPage, "global");
    if (!uops.empty()) upload(*out->uops, 0, uops.data(), uops.size() * 4);
    return out;
  }

  runtime::Event launch(runtime::Executable& executable, std::size_t index,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t>) override {
    auto& loaded = static_cast<BoardExecutable&>(executable);
    const Kernel& kernel = loaded.program.kernels.at(index);
    if (args.size() != kernel.signature.params.size())
      throw Error(ErrorKind::value, "vta.launch.arguments",
                  cat("\"", kernel.signature.name, "\" takes ", kernel.signature.params.size(),
                      " arrays, not ", args.size()));
    std::vector<std::uint64_t> base;
    for (const runtime::KernelArg& arg : args) base.push_back(arg.storage->address() + arg.offset);
    if (!kernel.host.empty()) {
      std::vector<HostSpan> spans;
      for (std::size_t i = 0; i < base.size(); ++i)
        spans.push_back({host(base[i]), args[i].storage->bytes() - args[i].offset});
      for (const HostCopy& copy : kernel.host) run(copy, spans);
      return {};
    }
    // The stream with physical addresses.
    std::vector<std::uint64_t> words;
    words.reserve(kernel.stream.insns.size() * 2);
    for (std::size_t i = 0; i < kernel.stream.insns.size(); ++i) {
      Insn n = kernel.stream.insns[i];
      std::uint16_t to = kernel.stream.base[i];
      if (n.is_dma() && to != kAbsolute) {
        std::uint64_t start = to == kUopArena ? loaded.uops->address() : base[to];
        auto element = static_cast<std::uint64_t>(config_.elem_bytes(n.mem));
        if (start % element)
          throw Error(ErrorKind::value, "vta.launch.alignment",
                      cat("argument \"", kernel.signature.params[to].name, "\" at ", hex(start),
                          " is not aligned to its elements of ", element, " bytes"));
        n.dram = low_word(start / element + n.dram);
      }
      isa::Word word = isa_.encode(n);
      words.push_back(word.lo);
      words.push_back(word.hi);
    }
    Ref<runtime::Storage> stream = allocate(words.size() * 8, kPage, "global");
    upload(*stream, 0, words.data(), words.size() * 8);
    std::lock_guard lock(chip_mutex_);
    cycles_ +=
        run_on_board(*bus_, config_, stream->address(), kernel.stream.insns.size(), options_);
    ++launches_;
    return {};
  }

  runtime::StatReport stats() const override {
    std::lock_guard lock(chip_mutex_);
    runtime::StatReport r;
    r.add("launches", "1", "kernels run", launches_);
    r.add("cycles", "cycles", "counted by the chip; 0 where the design has no counter", cycles_);
    return r;
  }
  void clear_stats() override {
    std::lock_guard lock(chip_mutex_);
    launches_ = cycles_ = 0;
  }

  void program(std::string_view bitstream) override {
    std::string own;
    if (bitstream.empty()) {
      if (options_.bitstream.empty()) return;  // the board runs its design already
      own = read_file(options_.bitstream);
      bitstream = own;
    }
    std::lock_guard lock(chip_mutex_);
    bus_->program(bitstream);
  }

 protected:
  void free_storage(std::uint64_t address, Bytes, std::string_view) override {
    std::lock_guard lock(memory_mutex_);
    blocks_.erase(address - bus_->physical());
  }

 private:
  static constexpr std::int64_t kPage = 4096;

  std::byte* host(std::uint64_t address) {
    return bus_->memory().data() + (address - bus_->physical());
  }

  Config config_;
  Isa isa_;
  std::unique_ptr<BoardBus> bus_;
  BoardOptions options_;
  runtime::DeviceInfo info_;
  std::mutex memory_mutex_;
  std::map<Bytes, Bytes> blocks_;  // offset -> bytes
  mutable std::mutex chip_mutex_;  // one launch at a time
  std::int64_t launches_ = 0, cycles_ = 0;
};

}  // namespace

Ref<runtime::Device> open_board(const Config& config, std::unique_ptr<BoardBus> bus,
                                BoardOptions options, std::string name) {
  return make_ref<BoardDevice>(config, std::move(bus), std::move(options), std::move(name));
}

}  // namespace weft::vta
