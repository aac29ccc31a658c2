// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "weft/base/file.h"
#include "weft/targets/vta/board.h"

namespace weft::vta {

namespace {

constexpr std::size_t kPageBytes = 4096;

/// Registers through /dev/mem, DMA memory through u-dma-buf, bitstreams through the FPGA manager.
class LinuxBus final : public BoardBus {
 public:
  LinuxBus(const Config& config, const std::string& root) : root_(root) {
    auto in_root = [&](const char* path) { return root + (root.ends_with("/") ? path + 1 : path); };
    std::string mem = in_root("/dev/mem"), buffer = in_root("/dev/udmabuf0"),
                about = in_root("/sys/class/u-dma-buf/udmabuf0");
    auto absent = [&](const std::string& what) {
      return Error(ErrorKind::device, "vta.absent",
                   cat("there is no VTA chip behind this process: cannot open ", what, " (",
                       std::strerror(errno), ")"))
          .note(cat("searched ", mem, ", ", buffer, ", ", about))
          .help("open \"vta\" for the simulator, or reach a board through weft serve on its host");
    };
    mem_ = ::open(mem.c_str(), O_RDWR | O_SYNC | O_CLOEXEC);
    if (mem_ < 0) throw absent(mem);
    int dma = ::open(buffer.c_str(), O_RDWR | O_CLOEXEC);
    if (dma < 0) {
      Error error = absent(buffer);
      ::close(mem_);
      throw error;
    }
    try {
      bytes_ = std::stoull(read_file(about + "/size"));
      physical_ = std::stoull(read_file(about + "/phys_addr"), nullptr, 0);
    } catch (const std::exception&) {
      ::close(dma);
      ::close(mem_);
      throw absent(about);
    }
    void* mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, dma, 0);
    ::close(dma);
    if (mapped == MAP_FAILED) {
      Error error = absent(buffer);
      ::close(mem_);
      throw error;
    }
    memory_ = static_cast<std::byte*>(mapped);
    for (std::uint64_t page : config.board().registers) {
      void* at = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, mem_,
                        static_cast<off_t>(page));
      if (at != MAP_FAILED) pages_[page] = at;
    }
  }

  ~LinuxBus() override {
    for (auto& [page, at] : pages_) ::munmap(at, kPageBytes);
    ::munmap(memory_, bytes_);
    ::close(mem_);
  }

  std::uint32_t read(std::uint64_t address) override { return *reg(address); }
  void write(std::uint64_t address, std::uint32_t value) override { *reg(address) = value; }
  std::span<std::byte> memory() override { return {memory_, bytes_}; }
  std::uint64_t physical() const override { return physical_; }

  void program(std::string_view bitstream) override {
    std::string name = "weft-vta.bin";
    try {
      write_file_atomic(root_ + "/lib/firmware/" + name, bitstream);
      std::ofstream manager(root_ + "/sys/class/fpga_manager/fpga0/firmware");
      manager << name << std::flush;  // the kernel reads the file of that name
      if (!manager)
        throw Error(ErrorKind::io, "file.write",
                    cat("the FPGA manager refused ", name, " (", std::strerror(errno), ")"));
    } catch (const Error& error) {
      throw Error(ErrorKind::device, "vta.hw.program",
                  cat("the bitstream of ", bitstream.size(),
                      " bytes could not be loaded: ", error.message()))
          .note("it goes to /lib/firmware and is named to /sys/class/fpga_manager/fpga0");
    }
  }

 private:
  volatile std::uint32_t* reg(std::uint64_t address) {
    auto page = pages_.find(address / kPageBytes * kPageBytes);
    if (page == pages_.end())
      throw Error(ErrorKind::device, "vta.hw.register",
                  cat("no register page is mapped at ", hex(address)));
    return reinterpret_cast<volatile std::uint32_t*>(static_cast<std::byte*>(page->second) +
                                                     address % kPageBytes);
  }

  std::string root_;
  int mem_ = -1;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t physical_ = 0;
  std::map<std::uint64_t, void*> pages_;
};

}  // namespace

std::unique_ptr<BoardBus> open_linux_bus(const Config& config, const std::string& root) {
  return std::make_unique<LinuxBus>(config, root);
}

}  // namespace weft::vta
