// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages to the VideoCore's firmware. Every answer is checked in all three places: the message's
// status, the tag's response bit, the value. Source: Raspberry Pi firmware wiki, "Mailbox property
// interface".

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "weft/targets/qpu/driver/board.h"

namespace weft::qpu::hw {

class Mailbox {
 public:
  explicit Mailbox(Board& board) : board_(board) {}

  std::uint32_t board_revision();
  /// Hz of a clock of the firmware: 4 core, 5 V3D.
  std::uint32_t clock_rate(std::uint32_t clock);
  /// Handle. Throws Error(memory, "qpu.hw.memory.exhausted").
  std::uint32_t allocate(std::uint32_t bytes, std::uint32_t align, std::uint32_t flags);
  /// Bus address of a locked block.
  std::uint32_t lock(std::uint32_t handle);
  void unlock(std::uint32_t handle);
  void release(std::uint32_t handle);
  /// Throws Error(device, "qpu.hw.enable") where another driver owns the QPUs.
  void enable(bool on);
  /// Starts `count` QPUs from a control block and waits for the host interrupt; caches are cleared
  /// first. Throws Error(fault, "qpu.hw.timeout").
  void execute(std::uint32_t count, std::uint32_t control, std::uint32_t timeout_ms);

 private:
  /// Sends one tag with `values` in a buffer of at least `room` words; returns the answer's values.
  std::vector<std::uint32_t> call(std::uint32_t tag, std::initializer_list<std::uint32_t> values,
                                  std::size_t room, const char* what);
  Board& board_;
};

/// "Permission denied (errno 13)".
std::string errno_text(int error);

}  // namespace weft::qpu::hw
