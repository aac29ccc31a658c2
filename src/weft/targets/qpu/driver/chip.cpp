// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/driver/chip.h"

#include <cerrno>
#include <cstring>

#include "weft/base/error.h"

namespace weft::qpu::hw {

namespace {
constexpr std::size_t kPage = 4096, kV3dBytes = 4096;
constexpr std::uint64_t kV3dOffset = 0xc00000;   // from the peripherals' base
constexpr std::uint32_t kBusMask = 0x3fffffffu;  // the alias is in the two bits above
// Memory flags: 4 is the alias that allocates in the VideoCore's L2 only (the processor of a Pi 2
// or 3 does not see that cache), 12 goes through the L2 that a Pi 1's processor shares.
constexpr std::uint32_t kFlagsShared = 0xc, kFlagsDirect = 0x4;
constexpr std::uint32_t kClockV3d = 5;

namespace v3d {  // offsets, architecture guide tables 48 to 95
constexpr std::size_t kIdent0 = 0x000, kL2Control = 0x020, kSliceControl = 0x024, kProgram = 0x430,
                      kUniforms = 0x434, kUniformsLength = 0x438, kStatus = 0x43c, kVpmBase = 0x504,
                      kDebug = 0xe00, kInterruptEnable = 0xe2c, kInterruptClear = 0xe30;
constexpr std::uint32_t kIdent = 0x02443356u;  // "V3D", version 2
constexpr std::uint32_t kResetStatus = 1u << 16 | 1u << 8 | 1u << 7 | 1u;
constexpr std::uint32_t kUnlimited = 1024, kVpmReserved = 16;  // x 256 bytes: all that users reach
}  // namespace v3d

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t v = 0;
  for (std::size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
  return v;
}
}  // namespace

Found find_chip(Board& board) {
  Found out;
  constexpr const char *kModel = "/proc/device-tree/model",
                       *kRanges = "/proc/device-tree/soc/ranges";
  std::optional<std::string> model = board.read_file(kModel);
  if (!model) {
    out.reason = cat("not on a Raspberry Pi: there is no ", kModel);
    return out;
  }
  out.model = model->c_str();  // without the closing zero
  if (out.model.find("Raspberry Pi") == std::string::npos) {
    out.reason = cat("not on a Raspberry Pi: ", kModel, " says \"", out.model, "\"");
    return out;
  }
  std::optional<std::string> ranges = board.read_file(kRanges);
  if (!ranges || ranges->size() < 12) {
    out.reason = cat("the peripherals of \"", out.model, "\" cannot be found: ", kRanges,
                     ranges ? " is too short" : " is missing");
    return out;
  }
  out.peripherals = big_endian(*ranges, 4);
  if (out.peripherals == 0) out.peripherals = big_endian(*ranges, 8);
  if (out.peripherals != 0x20000000u && out.peripherals != 0x3f000000u) {
    out.reason = cat("\"", out.model, "\" has its peripherals at ", hex(out.peripherals, 8),
                     "; a VideoCore IV has them at 0x20000000 (Raspberry Pi 1, Zero) or "
                     "0x3f000000 (2, 3, Zero 2)");
    return out;
  }
  out.first_generation = out.peripherals == 0x20000000u;
  for (const char* file : {"/dev/vcio", "/dev/mem"}) {
    if (int error = board.probe(file)) {
      out.reason = cat("\"", out.model, "\", but ", file, " cannot be opened: ", errno_text(error),
                       error == EACCES ? "; run as root" : "");
      return out;
    }
  }
  out.usable = true;
  return out;
}

GpuMemory::GpuMemory(Board& board, Mailbox& mailbox, const Found& found, std::uint64_t bytes)
    : board_(board), mailbox_(mailbox), bytes_(static_cast<std::size_t>(bytes)) {
  if (bytes > 0x3f000000u)
    throw Error(ErrorKind::memory, "qpu.hw.memory.exhausted",
                cat("the VideoCore cannot have ", human_bytes(bytes), " of memory"));
  mapped_ = (std::max<std::size_t>(bytes_, 1) + kPage - 1) / kPage * kPage;
  handle_ = mailbox_.allocate(static_cast<std::uint32_t>(mapped_), kPage,
                              found.first_generation ? kFlagsShared : kFlagsDirect);
  try {
    bus_ = mailbox_.lock(handle_);
    try {
      int error = 0;
      host_ = board_.map(bus_ & kBusMask, mapped_, &error);
      if (!host_) {
        throw Error(ErrorKind::device, "qpu.hw.memory.map",
                    cat("the block at bus address ", hex(bus_, 8),
                        " cannot be mapped: ", errno_text(error)))
            .help("run as root; kernels with STRICT_DEVMEM need iomem=relaxed");
      }
    } catch (...) {
      mailbox_.unlock(handle_);
      throw;
    }
  } catch (...) {
    try {
      mailbox_.release(handle_);
    } catch (const Error&) {
      // The first error is the one to tell.
    }
    throw;
  }
}

GpuMemory::~GpuMemory() {
  board_.unmap(host_, mapped_);
  try {
    mailbox_.unlock(handle_);
  } catch (const Error&) {
    // Nothing more can be done for this block, and releasing it may still work.
  }
  try {
    mailbox_.release(handle_);
  } catch (const Error&) {
    // As above: the firmware frees it when the board restarts.
  }
}

void GpuMemory::put(std::size_t offset, const void* from, std::size_t bytes) {
  // Word by word where possible: uncached mappings take no unaligned wide stores.
  auto* to = static_cast<volatile unsigned char*>(host_) + offset;
  const auto* src = static_cast<const unsigned char*>(from);
  std::size_t i = 0;
  if (offset % 4 == 0) {
    for (; i + 4 <= bytes; i += 4) {
      std::uint32_t word;
      std::memcpy(&word, src + i, 4);
      *reinterpret_cast<volatile std::uint32_t*>(to + i) = word;
    }
  }
  for (; i < bytes; ++i) to[i] = src[i];
}

void GpuMemory::get(std::size_t offset, void* to, std::size_t bytes) const {
  const auto* from = static_cast<volatile unsigned char*>(host_) + offset;
  auto* dst = static_cast<unsigned char*>(to);
  std::size_t i = 0;
  if (offset % 4 == 0) {
    for (; i + 4 <= bytes; i += 4) {
      std::uint32_t word = *reinterpret_cast<const volatile std::uint32_t*>(from + i);
      std::memcpy(dst + i, &word, 4);
    }
  }
  for (; i < bytes; ++i) dst[i] = from[i];
}

Chip::Chip(std::shared_ptr<Board> board, LaunchBy by)
    : board_(std::move(board)), mailbox_(*board_), by_(by), found_(find_chip(*board_)) {
  if (!found_.usable)
    throw Error(ErrorKind::device, "qpu.absent",
                cat("device \"qpu:hw\" is not available: ", found_.reason))
        .help("use the emulator: \"qpu\"");
  mailbox_.enable(true);
  try {
    clock_hz_ = mailbox_.clock_rate(kClockV3d);
    if (by_ == LaunchBy::registers) {
      int error = 0;
      v3d_ = board_->map(found_.peripherals + kV3dOffset, kV3dBytes, &error);
      if (!v3d_)
        throw Error(ErrorKind::device, "qpu.hw.registers.map",
                    cat("the V3D registers at ", hex(found_.peripherals + kV3dOffset, 8),
                        " cannot be mapped: ", errno_text(error)))
            .help("run as root, or start kernels by the mailbox: \"qpu:hw\"");
      std::uint32_t ident = board_->load(v3d_, v3d::kIdent0);
      if (ident != v3d::kIdent)
        throw Error(ErrorKind::device, "qpu.hw.registers.ident",
                    cat("no V3D answers at ", hex(found_.peripherals + kV3dOffset, 8),
                        ": its identity reads ", hex(ident, 8)))
            .note(cat("legal: ", hex(v3d::kIdent, 8), "; 0xdeadbeef: not powered"));
      board_->store(v3d_, v3d::kVpmBase, v3d::kVpmReserved);
    }
  } catch (...) {
    if (v3d_) board_->unmap(v3d_, kV3dBytes);
    try {
      mailbox_.enable(false);
    } catch (const Error&) {
      // The first error is the one to tell.
    }
    throw;
  }
}

Chip::~Chip() {
  if (v3d_) board_->unmap(v3d_, kV3dBytes);
  try {
    mailbox_.enable(false);
  } catch (const Error&) {
    // Left on, the QPUs cost power and nothing else.
  }
}

std::unique_ptr<GpuMemory> Chip::allocate(std::uint64_t bytes) {
  return std::make_unique<GpuMemory>(*board_, mailbox_, found_, bytes);
}

void Chip::run(std::uint32_t count, const GpuMemory& control, std::uint32_t timeout_ms) {
  if (by_ == LaunchBy::registers) run_by_registers(count, control, timeout_ms);
  else mailbox_.execute(count, control.bus(), timeout_ms);
}

void Chip::run_by_registers(std::uint32_t count, const GpuMemory& control,
                            std::uint32_t timeout_ms) {
  auto set = [&](std::size_t offset, std::uint32_t value) { board_->store(v3d_, offset, value); };
  set(v3d::kDebug, 0);
  set(v3d::kInterruptEnable, 0);
  set(v3d::kInterruptClear, ~0u);
  set(v3d::kL2Control, 1u << 2);
  set(v3d::kSliceControl, 0x0f0f0f0fu);
  set(v3d::kStatus, v3d::kResetStatus);
  for (std::uint32_t q = 0; q < count; ++q) {
    std::uint32_t pair[2];
    control.get(q * 8, pair, 8);
    set(v3d::kUniforms, pair[0]);
    set(v3d::kUniformsLength, v3d::kUnlimited);
    set(v3d::kProgram, pair[1]);
  }
  double end = board_->now() + timeout_ms * 1e-3;
  while (true) {
    std::uint32_t status = board_->load(v3d_, v3d::kStatus), done = status >> 16 & 255;
    if (done == count) return;
    if (status & 1u << 7) {
      set(v3d::kStatus, v3d::kResetStatus);
      throw Error(
          ErrorKind::fault, "qpu.hw.queue",
          cat("the V3D reports an error in its queue of programs: status ", hex(status, 8)));
    }
    if (board_->now() >= end) {
      set(v3d::kStatus, v3d::kResetStatus);
      throw Error(ErrorKind::fault, "qpu.hw.timeout",
                  cat("the kernel on ", count, " QPUs did not finish within ", timeout_ms,
                      " ms: ", done, " finished"))
          .note("the QPUs may stay occupied until the board is restarted")
          .help("try the kernel on the emulator, \"qpu\", which names what went wrong");
    }
    board_->rest();
  }
}

}  // namespace weft::qpu::hw
