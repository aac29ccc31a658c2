// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/saved_pages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::qpu::hw {

SavedPages::SavedPages(sim::Memory& memory)
    : memory_(memory),
      count_(static_cast<std::size_t>((memory.base() + memory.size()) >> kShift) + 1),
      stamps_(std::make_unique<std::atomic<std::uint32_t>[]>(count_)) {}

void SavedPages::begin_launch() {
  pages_.clear();
  if (++stamp_ != 0) return;
  for (std::size_t page = 0; page < count_; ++page) stamps_[page] = 0;
  stamp_ = 1;
}

std::pair<std::uint64_t, std::size_t> SavedPages::part(std::uint64_t page) const {
  const std::uint64_t begin = std::max(page << kShift, memory_.base());
  const std::uint64_t end = std::min((page + 1) << kShift, memory_.base() + memory_.size());
  return {begin, static_cast<std::size_t>(end - begin)};
}

void SavedPages::add(std::uint64_t page) {
  std::lock_guard lock(mutex_);
  if (stamps_[page].load(std::memory_order_relaxed) == stamp_) return;
  if (copies_.size() == pages_.size())
    copies_.push_back(std::make_unique_for_overwrite<std::byte[]>(kPage));
  const auto [begin, bytes] = part(page);
  std::memcpy(copies_[pages_.size()].get(), memory_.raw(begin), bytes);
  pages_.push_back(static_cast<std::uint32_t>(page));
  stamps_[page].store(stamp_, std::memory_order_release);
}

void SavedPages::put_back() {
  for (std::size_t k = 0; k < pages_.size(); ++k) {
    const auto [begin, bytes] = part(pages_[k]);
    std::memcpy(memory_.raw(begin), copies_[k].get(), bytes);
  }
}

std::vector<std::uint32_t> SavedPages::pages() const {
  std::lock_guard lock(mutex_);
  return pages_;
}

}  // namespace weft::qpu::hw
