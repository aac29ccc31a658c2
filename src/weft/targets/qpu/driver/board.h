// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the driver asks of the board it runs on: files of the device tree, the firmware's mailbox,
// physical memory. The real one uses ioctl and mmap; tests put a recording one in its place.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace weft::qpu::hw {

class Board {
 public:
  virtual ~Board() = default;
  /// Contents of a file, or nothing where there is none that can be read.
  virtual std::optional<std::string> read_file(const std::string& path) = 0;
  /// Whether a device file can be opened for reading and writing; otherwise errno.
  virtual int probe(const std::string& path) = 0;
  /// One message to the firmware and back, in place; the words are 16-byte aligned. Errno, 0: sent.
  virtual int property(std::uint32_t* words) = 0;
  /// Physical memory, page aligned; null with errno in *error.
  virtual volatile void* map(std::uint64_t physical, std::size_t bytes, int* error) = 0;
  virtual void unmap(volatile void* address, std::size_t bytes) = 0;
  /// A register of a mapped block.
  virtual std::uint32_t load(volatile void* block, std::size_t offset) = 0;
  virtual void store(volatile void* block, std::size_t offset, std::uint32_t value) = 0;
  /// Seconds of a clock that never goes back, and a short rest between two polls.
  virtual double now() = 0;
  virtual void rest() = 0;
};

/// The board that this process runs on.
std::shared_ptr<Board> this_board();

}  // namespace weft::qpu::hw
