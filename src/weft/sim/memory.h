// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated flat memory: addresses from `base`, bounds always checked, allocations tracked so
// that a machine may ask whether an access stays inside one. Pages come into being on first use
// (mmap), so a large memory costs what is touched. Several threads may allocate, release and ask at
// once; the bytes are theirs to order.

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/error.h"

namespace weft::sim {

class Memory {
 public:
  /// Throws Error(memory, "sim.memory.map") when the host cannot reserve `size_bytes`.
  Memory(std::string name, std::uint64_t size_bytes, std::uint64_t base = 0);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t base() const { return base_; }
  std::uint64_t size() const { return size_; }

  /// Keeps at least so many bytes free after every later allocation, so that an access past its end
  /// is outside all allocations and not inside the neighbour.
  void set_guard(std::uint64_t bytes) { guard_ = bytes; }
  /// First fit. Throws Error(memory, "sim.memory.exhausted") with size, free and largest free
  /// block.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t align = 64);
  /// Throws Error(value, "sim.memory.free") when nothing was allocated at `address`.
  void release(std::uint64_t address);
  std::uint64_t used() const;

  bool contains(std::uint64_t address, std::uint64_t bytes) const {
    return address >= base_ && bytes <= size_ && address - base_ <= size_ - bytes;
  }
  /// Whether [address, address + bytes) lies inside one allocation.
  bool allocated(std::uint64_t address, std::uint64_t bytes) const;
  /// Start and size of the allocation that holds `address`; size 0: none does.
  std::pair<std::uint64_t, std::uint64_t> allocation(std::uint64_t address) const;
  /// "inside"/"3 bytes past the end of the 64-byte allocation at 0x40" ...: for fault texts.
  std::string describe(std::uint64_t address, std::uint64_t bytes) const;

  /// Host pointer to a range that `contains` has accepted; unchecked.
  std::byte* raw(std::uint64_t address) { return data_ + (address - base_); }
  const std::byte* raw(std::uint64_t address) const { return data_ + (address - base_); }
  /// Host pointer; throws Error(fault, "sim.memory.bounds") when outside the memory.
  std::byte* at(std::uint64_t address, std::uint64_t bytes);

  template <typename T>
  T load(std::uint64_t address) {
    T out;
    std::memcpy(&out, at(address, sizeof(T)), sizeof(T));
    return out;
  }
  template <typename T>
  void store(std::uint64_t address, const T& value) {
    std::memcpy(at(address, sizeof(T)), &value, sizeof(T));
  }

 private:
  bool inside(std::uint64_t address, std::uint64_t bytes) const;  // mutex_ is held

  std::string name_;
  std::uint64_t size_, base_, used_ = 0, guard_ = 0;
  std::byte* data_ = nullptr;
  mutable std::mutex mutex_;                       // of used_ and blocks_
  std::map<std::uint64_t, std::uint64_t> blocks_;  // address -> bytes of live allocations
};

}  // namespace weft::sim
