// SPDX-License-Identifier: Apache-2.0
#pragma once
// What memory held before a launch, by pages: each is saved before its first store of the launch.
// Several threads may save and store at once. A thread that finds a page saved may store to it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/sim/memory.h"

namespace weft::qpu::hw {

class SavedPages {
 public:
  static constexpr unsigned kShift =
      14;  // of an address: its page. Threads meet at each, so not smaller

  explicit SavedPages(sim::Memory& memory);

  /// Forgets all pages.
  void begin_launch();
  /// Saves the pages of [address, address + bytes), which lies inside the memory.
  void save(std::uint64_t address, std::uint64_t bytes) {
    for (std::uint64_t page = address >> kShift; page <= (address + bytes - 1) >> kShift; ++page)
      if (stamps_[page].load(std::memory_order_acquire) != stamp_) add(page);
  }
  /// Brings back what was saved. Nobody stores meanwhile.
  void put_back();
  /// The pages saved so far.
  std::vector<std::uint32_t> pages() const;

  /// For code that looks by itself (engine/peripherals.cpp): page n is saved where stamps()[n] is
  /// stamp().
  const std::atomic<std::uint32_t>* stamps() const { return stamps_.get(); }
  std::uint32_t stamp() const { return stamp_; }

 private:
  static constexpr std::size_t kPage = std::size_t{1} << kShift;
  void add(std::uint64_t page);
  /// The part of a page that the memory has.
  std::pair<std::uint64_t, std::size_t> part(std::uint64_t page) const;

  sim::Memory& memory_;
  std::size_t count_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> stamps_;
  std::uint32_t stamp_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> pages_;
  std::vector<std::unique_ptr<std::byte[]>> copies_;  // of pages_; kept from launch to launch
};

}  // namespace weft::qpu::hw
