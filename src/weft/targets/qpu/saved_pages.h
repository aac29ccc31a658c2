// SPDX-License-Identifier: Apache-2.0
#pragma once
// What memory held before a launch, by pages: each is saved before its first store of the launch.
// Several threads may save and store at once. A thread that finds a page saved may store to it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "weft/sim/memory.h"

namespace weft::qpu::hw {

class SavedPages {
 public:
  /// Of an address: its page. Small, so that a page mostly belongs to one QPU, and who saves it
  /// does not take lines from another thread's cache.
  static constexpr unsigned kShift = 12;
  /// Bytes from one page's stamp to the next one's: a line of the host each, for the same reason.
  static constexpr std::size_t kStampStep = 64;

  explicit SavedPages(sim::Memory& memory);

  /// What one thread has saved.
  class Hand {
   public:
    explicit Hand(SavedPages& all)
        : all_(all), pages_(std::make_unique_for_overwrite<std::uint32_t[]>(all.count_)) {}
    /// Saves the pages of [address, address + bytes), which lies inside the memory.
    void save(std::uint64_t address, std::uint64_t bytes) {
      for (std::uint64_t page = address >> kShift; page <= (address + bytes - 1) >> kShift; ++page)
        if (all_.stamp_of(page).load(std::memory_order_acquire) != all_.stamp_) add(page);
    }

   private:
    friend class SavedPages;
    void add(std::uint64_t page);

    SavedPages& all_;
    std::atomic<std::size_t> count_{0};       // of the pages: another thread may look at these
    std::unique_ptr<std::uint32_t[]> pages_;  // room for all
    std::vector<std::unique_ptr<std::byte[]>> copies_;  // of the pages; kept for other launches
  };
  /// By thread: 0, 1.
  Hand& hand(int thread) { return hands_[thread]; }

  /// Forgets all pages.
  void begin_launch();
  /// Brings back what was saved. Nobody stores meanwhile.
  void put_back();
  /// The pages saved so far.
  std::vector<std::uint32_t> pages() const;

  /// For code that looks by itself (engine/peripherals.cpp): page n is saved where the word at
  /// stamps() + n * kStampStep is stamp().
  const std::byte* stamps() const { return stamps_; }
  std::uint32_t stamp() const { return stamp_; }

 private:
  static constexpr std::size_t kPage = std::size_t{1} << kShift;
  std::atomic_ref<std::uint32_t> stamp_of(std::uint64_t page) {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(stamps_ + page * kStampStep));
  }
  /// The part of a page that the memory has.
  std::pair<std::uint64_t, std::size_t> part(std::uint64_t page) const;

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  sim::Memory& memory_;
  std::size_t count_;
  std::unique_ptr<std::byte, Free> room_;  // zeros that the host gives as they are touched
  std::byte* stamps_;                      // inside, at a line's beginning
  std::uint32_t stamp_ = 0;                // even; one less: somebody is saving the page
  Hand hands_[2];
};

}  // namespace weft::qpu::hw
