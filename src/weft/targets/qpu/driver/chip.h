// SPDX-License-Identifier: Apache-2.0
#pragma once
// The QPUs of a Raspberry Pi: which board this is, memory that both sides see, and two ways to
// start kernels. Everything taken is given back on every path. Source: architecture guide, sections
// 10 and 11 of the fact sheet's registers (V3D), and the firmware's interface.

#include <cstdint>
#include <memory>
#include <string>

#include "weft/targets/qpu/driver/mailbox.h"

namespace weft::qpu::hw {

/// What was found where the driver runs.
struct Found {
  bool usable = false;
  std::string reason;  // when not usable: what was looked for, and what was there
  std::string model;
  std::uint64_t peripherals = 0;  // physical base: 0x20000000 or 0x3f000000
  bool first_generation = false;  // BCM2835: the processor reaches memory through the GPU's L2
};
Found find_chip(Board& board);

enum class LaunchBy : std::uint8_t { mailbox, registers };

/// A block of the VideoCore's memory, locked and mapped; given back when destroyed.
class GpuMemory {
 public:
  GpuMemory(Board& board, Mailbox& mailbox, const Found& found, std::uint64_t bytes);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  std::uint32_t bus() const { return bus_; }
  std::size_t bytes() const { return bytes_; }
  volatile void* host() const { return host_; }
  void put(std::size_t offset, const void* from, std::size_t bytes);
  void get(std::size_t offset, void* to, std::size_t bytes) const;

 private:
  Board& board_;
  Mailbox& mailbox_;
  std::size_t bytes_ = 0, mapped_ = 0;
  std::uint32_t handle_ = 0, bus_ = 0;
  volatile void* host_ = nullptr;
};

/// The chip, enabled while this lives.
class Chip {
 public:
  Chip(std::shared_ptr<Board> board, LaunchBy by);
  ~Chip();
  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;
  const Found& found() const { return found_; }
  std::uint32_t clock_hz() const { return clock_hz_; }
  std::unique_ptr<GpuMemory> allocate(std::uint64_t bytes);
  /// Runs `count` QPUs: pairs of uniforms' and code's bus addresses lie in `control`.
  void run(std::uint32_t count, const GpuMemory& control, std::uint32_t timeout_ms);

 private:
  void run_by_registers(std::uint32_t count, const GpuMemory& control, std::uint32_t timeout_ms);

  std::shared_ptr<Board> board_;
  Mailbox mailbox_;
  LaunchBy by_;
  Found found_;
  std::uint32_t clock_hz_ = 0;
  volatile void* v3d_ = nullptr;  // registers, when launching by them
};

}  // namespace weft::qpu::hw
