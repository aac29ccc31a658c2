// SPDX-License-Identifier: Apache-2.0
#pragma once
// "vta:hw": the chip on a board, driven through its registers. Everything that touches the board is
// behind BoardBus: 32-bit registers by physical address, one range of memory that the chip's DMA
// sees, and the loader of bitstreams. The driver is the same over /dev/mem and over a test's fake.

#include <memory>
#include <span>
#include <string>

#include "weft/runtime/device.h"
#include "weft/targets/vta/program.h"

namespace weft::vta {

class BoardBus {
 public:
  virtual ~BoardBus() = default;
  virtual std::uint32_t read(std::uint64_t address) = 0;
  virtual void write(std::uint64_t address, std::uint32_t value) = 0;
  /// The host's view of the memory for DMA, and its physical address.
  virtual std::span<std::byte> memory() = 0;
  virtual std::uint64_t physical() const = 0;
  /// Throws Error(device, "vta.hw.program").
  virtual void program(std::string_view bitstream) = 0;
};

/// How a design lays out its registers.
enum class RegisterMap : std::uint8_t {
  hls,     // Pynq, Ultra96: four IPs of the HLS design, each with a page of registers
  chisel,  // DE10 and the RTL simulation: one block
};
RegisterMap register_map_of(const Config& config);

/// Where registers are, in bytes from a page's start.
namespace hls {
inline constexpr std::uint64_t kControl = 0x00, kFetchCount = 0x10, kFetchAddress = 0x18,
                               kLoadInp = 0x10, kLoadWgt = 0x18, kDoneWrite = 0x10,
                               kDoneRead = 0x18, kUop = 0x20, kBias = 0x28, kStoreOut = 0x10;
inline constexpr std::uint32_t kStart = 0x1, kStartAgain = 0x81;
}  // namespace hls
namespace chisel {
inline constexpr std::uint64_t kControl = 0x00, kCycles = 0x04, kCount = 0x08, kAddress = 0x0c,
                               kUop = 0x10, kInp = 0x14, kWgt = 0x18, kAcc = 0x1c, kOut = 0x20;
inline constexpr std::uint32_t kStart = 0x1, kFinished = 0x2;
}  // namespace chisel

struct BoardOptions {
  std::int64_t polls = 10'000'000;  // reads of the done register before giving up
  std::string bitstream;            // file for program({}); empty: what the board runs already
};

/// Starts `count` instructions at a physical address and waits for FINISH. Cycles where the design
/// counts them, else 0. Throws Error(device, "vta.hw.timeout" | "vta.hw.range").
std::int64_t run_on_board(BoardBus& bus, const Config& config, std::uint64_t address,
                          std::uint64_t count, const BoardOptions& options);

/// The device over a bus.
Ref<runtime::Device> open_board(const Config& config, std::unique_ptr<BoardBus> bus,
                                BoardOptions options = {}, std::string name = "vta:hw");

/// The board this process runs on. Throws Error(device, "vta.absent") with what was searched under
/// `root` ("/": the real one).
std::unique_ptr<BoardBus> open_linux_bus(const Config& config, const std::string& root = "/");

}  // namespace weft::vta
