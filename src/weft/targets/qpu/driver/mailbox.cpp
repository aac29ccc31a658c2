// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/driver/mailbox.h"

#include <algorithm>
#include <system_error>

#include "weft/base/error.h"

namespace weft::qpu::hw {

namespace {
constexpr std::uint32_t kDone = 0x80000000u;
enum Tag : std::uint32_t {
  kBoardRevision = 0x00010002,
  kClockRate = 0x00030002,
  kAllocate = 0x0003000c,
  kLock = 0x0003000d,
  kUnlock = 0x0003000e,
  kRelease = 0x0003000f,
  kExecuteQpu = 0x00030011,
  kEnableQpu = 0x00030012
};
}  // namespace

std::string errno_text(int error) {
  return cat(std::system_category().message(error), " (errno ", error, ")");
}

std::vector<std::uint32_t> Mailbox::call(std::uint32_t tag,
                                         std::initializer_list<std::uint32_t> values,
                                         std::size_t room, const char* what) {
  alignas(16) std::uint32_t words[32] = {};
  std::size_t n = std::max(room, values.size());
  WEFT_CHECK(n + 6 <= 32, "a mailbox message of ", n, " values");
  words[0] = static_cast<std::uint32_t>((n + 6) * 4);
  words[2] = tag;
  words[3] = static_cast<std::uint32_t>(n * 4);
  words[4] = static_cast<std::uint32_t>(values.size() * 4);
  std::copy(values.begin(), values.end(), words + 5);
  if (int error = board_.property(words)) {
    throw Error(ErrorKind::device, "qpu.hw.mailbox.send",
                cat("the firmware cannot be asked to ", what, ": ", errno_text(error)))
        .note("through /dev/vcio")
        .help("run as root, or as a member of group \"video\"");
  }
  if (words[1] != kDone) {
    throw Error(
        ErrorKind::device, "qpu.hw.mailbox.status",
        cat("the firmware did not understand the request to ", what, ": status ", hex(words[1], 8)))
        .note(cat("tag ", hex(tag, 8), "; legal is ", hex(kDone, 8)));
  }
  if (!(words[4] & kDone)) {
    throw Error(ErrorKind::device, "qpu.hw.mailbox.tag",
                cat("this firmware does not know tag ", hex(tag, 8), ", which is to ", what))
        .help("update the firmware: apt-get install raspberrypi-bootloader");
  }
  return {words + 5, words + 5 + n};
}

std::uint32_t Mailbox::board_revision() { return call(kBoardRevision, {}, 1, "name the board")[0]; }

std::uint32_t Mailbox::clock_rate(std::uint32_t clock) {
  return call(kClockRate, {clock}, 2, "tell a clock's rate")[1];
}

std::uint32_t Mailbox::allocate(std::uint32_t bytes, std::uint32_t align, std::uint32_t flags) {
  std::uint32_t handle = call(kAllocate, {bytes, align, flags}, 3, "allocate memory")[0];
  if (handle == 0) {
    throw Error(ErrorKind::memory, "qpu.hw.memory.exhausted",
                cat("the VideoCore has no ", human_bytes(bytes), " of memory left"))
        .help(
            "raise gpu_mem in /boot/firmware/config.txt (/boot/config.txt before 2023) and restart "
            "the board");
  }
  return handle;
}

std::uint32_t Mailbox::lock(std::uint32_t handle) {
  std::uint32_t bus = call(kLock, {handle}, 1, "lock memory")[0];
  if (bus == 0)
    throw Error(ErrorKind::memory, "qpu.hw.memory.lock",
                cat("the firmware cannot lock the block with handle ", handle));
  return bus;
}

void Mailbox::unlock(std::uint32_t handle) {
  if (std::uint32_t status = call(kUnlock, {handle}, 1, "unlock memory")[0])
    throw Error(ErrorKind::device, "qpu.hw.memory.unlock",
                cat("unlocking handle ", handle, " gave status ", hex(status, 8)));
}

void Mailbox::release(std::uint32_t handle) {
  if (std::uint32_t status = call(kRelease, {handle}, 1, "release memory")[0])
    throw Error(ErrorKind::device, "qpu.hw.memory.release",
                cat("releasing handle ", handle, " gave status ", hex(status, 8)));
}

void Mailbox::enable(bool on) {
  std::uint32_t status =
      call(kEnableQpu, {on ? 1u : 0u}, 1, on ? "enable the QPUs" : "disable the QPUs")[0];
  if (status) {
    throw Error(ErrorKind::device, "qpu.hw.enable",
                cat("the firmware refuses to ", on ? "enable" : "disable", " the QPUs: status ",
                    hex(status, 8)))
        .note("the kernel's graphics driver (vc4-kms-v3d) owns them when it is loaded")
        .help(
            "remove \"dtoverlay=vc4-kms-v3d\" from /boot/firmware/config.txt (/boot/config.txt "
            "before 2023) and restart the board");
  }
}

void Mailbox::execute(std::uint32_t count, std::uint32_t control, std::uint32_t timeout_ms) {
  constexpr std::uint32_t kFlush = 0;  // "noflush" 0: caches are cleared before the launch
  std::uint32_t status =
      call(kExecuteQpu, {count, control, kFlush, timeout_ms}, 4, "run the QPUs")[0];
  if (status) {
    throw Error(ErrorKind::fault, "qpu.hw.timeout",
                cat("the kernel on ", count, " QPUs did not finish within ", timeout_ms,
                    " ms: status ", hex(status, 8)))
        .note("the QPUs may stay occupied until the board is restarted")
        .help("try the kernel on the emulator, \"qpu\", which names what went wrong");
  }
}

}  // namespace weft::qpu::hw
