// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/saved_pages.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>

#include "weft/sim/delays.h"

namespace weft::qpu::hw {

SavedPages::SavedPages(sim::Memory& memory)
    : memory_(memory),
      count_(static_cast<std::size_t>((memory.base() + memory.size()) >> kShift) + 1),
      room_(static_cast<std::byte*>(std::calloc(count_ + 1, kStampStep))),
      hands_{Hand(*this), Hand(*this)} {
  if (!room_) throw std::bad_alloc();
  const auto at = reinterpret_cast<std::uintptr_t>(room_.get());
  stamps_ = room_.get() + (kStampStep - at % kStampStep) % kStampStep;
}

void SavedPages::begin_launch() {
  for (Hand& hand : hands_) hand.count_ = 0;
  if ((stamp_ += 2) != 0) return;
  for (std::size_t page = 0; page < count_; ++page)
    stamp_of(page).store(0, std::memory_order_relaxed);
  stamp_ = 2;
}

std::pair<std::uint64_t, std::size_t> SavedPages::part(std::uint64_t page) const {
  const std::uint64_t begin = std::max(page << kShift, memory_.base());
  const std::uint64_t end = std::min((page + 1) << kShift, memory_.base() + memory_.size());
  return {begin, static_cast<std::size_t>(end - begin)};
}

void SavedPages::Hand::add(std::uint64_t page) {
  const std::size_t n = count_.load(std::memory_order_relaxed);
  if (copies_.size() == n)  // first: where memory is exhausted nobody may wait for the page
    copies_.push_back(std::make_unique_for_overwrite<std::byte[]>(kPage));
  const std::atomic_ref<std::uint32_t> stamp = all_.stamp_of(page);
  std::uint32_t seen = stamp.load(std::memory_order_acquire);
  while (seen != all_.stamp_) {
    if (seen == all_.stamp_ - 1) {  // the other thread is at it
      std::this_thread::yield();
      seen = stamp.load(std::memory_order_acquire);
    } else if (stamp.compare_exchange_weak(seen, all_.stamp_ - 1)) {
      const auto [begin, bytes] = all_.part(page);
      std::memcpy(copies_[n].get(), all_.memory_.raw(begin), bytes);
      pages_[n] = static_cast<std::uint32_t>(page);
      count_.store(n + 1, std::memory_order_release);
      sim::hand_over();
      stamp.store(all_.stamp_, std::memory_order_release);
      return;
    }
  }
}

void SavedPages::put_back() {
  for (const Hand& hand : hands_) {
    for (std::size_t k = 0; k < hand.count_; ++k) {
      const auto [begin, bytes] = part(hand.pages_[k]);
      std::memcpy(memory_.raw(begin), hand.copies_[k].get(), bytes);
    }
  }
}

std::vector<std::uint32_t> SavedPages::pages() const {
  std::vector<std::uint32_t> all;
  for (const Hand& hand : hands_) {
    const std::uint32_t* first = hand.pages_.get();
    all.insert(all.end(), first, first + hand.count_.load(std::memory_order_acquire));
  }
  return all;
}

}  // namespace weft::qpu::hw
