// SPDX-License-Identifier: Apache-2.0
#include "weft/sim/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "weft/sim/delays.h"

namespace weft::sim {

Memory::Memory(std::string name, std::uint64_t size_bytes, std::uint64_t base)
    : name_(std::move(name)), size_(size_bytes), base_(base) {
  void* data = MAP_FAILED;
  if (size_ <= SIZE_MAX)  // where addresses have 32 bits, it may be more
    data = ::mmap(nullptr, std::max<std::uint64_t>(size_, 1), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    throw Error(ErrorKind::memory, "sim.memory.map",
                cat("the host cannot reserve ", human_bytes(size_), " for \"", name_, "\""));
  }
  data_ = static_cast<std::byte*>(data);
  // A wish: machines stream through many places of a large memory at once.
  constexpr std::uint64_t kLarge = 32 << 20;
  if (size_ >= kLarge) ::madvise(data, size_, MADV_HUGEPAGE);
}

Memory::~Memory() { ::munmap(data_, std::max<std::uint64_t>(size_, 1)); }

std::uint64_t Memory::allocate(std::uint64_t bytes, std::uint64_t align) {
  hand_over();
  std::lock_guard lock(mutex_);
  std::uint64_t want = std::max<std::uint64_t>(bytes, 1);
  std::uint64_t cursor = base_, largest = 0;
  auto aligned = [&](std::uint64_t a) { return (a + align - 1) / align * align; };
  auto fits = [&](std::uint64_t limit) {
    largest = std::max(largest, limit - std::min(limit, cursor));
    std::uint64_t start = aligned(cursor);
    return start <= limit && want <= limit - start;
  };
  for (const auto& [address, size] : blocks_) {
    if (fits(address - std::min(guard_, address - base_))) break;
    cursor = address + size + guard_;
  }
  if (!fits(base_ + size_) || !(aligned(cursor) + want <= base_ + size_)) {
    throw Error(ErrorKind::memory, "sim.memory.exhausted",
                cat("\"", name_, "\" cannot hold ", human_bytes(bytes), " more"))
        .note(cat("size ", human_bytes(size_), ", in use ", human_bytes(used_),
                  ", largest free block ", human_bytes(largest)));
  }
  std::uint64_t start = aligned(cursor);
  blocks_.emplace(start, want);
  used_ += want;
  return start;
}

std::uint64_t Memory::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

void Memory::release(std::uint64_t address) {
  hand_over();
  std::lock_guard lock(mutex_);
  auto found = blocks_.find(address);
  if (found == blocks_.end()) {
    throw Error(ErrorKind::value, "sim.memory.free",
                cat("nothing is allocated at ", hex(address), " of \"", name_, "\""));
  }
  used_ -= found->second;
  blocks_.erase(found);
}

bool Memory::inside(std::uint64_t address, std::uint64_t bytes) const {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return false;
  auto [start, size] = *std::prev(next);
  return address - start <= size && bytes <= size - (address - start);
}

bool Memory::allocated(std::uint64_t address, std::uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  return inside(address, bytes);
}

std::pair<std::uint64_t, std::uint64_t> Memory::allocation(std::uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return {0, 0};
  auto [start, size] = *std::prev(next);
  return address - start < size ? std::pair{start, size}
                                : std::pair<std::uint64_t, std::uint64_t>{0, 0};
}

std::string Memory::describe(std::uint64_t address, std::uint64_t bytes) const {
  if (!contains(address, bytes)) {
    return cat("outside \"", name_, "\", which spans ", hex(base_), " to ", hex(base_ + size_));
  }
  std::lock_guard lock(mutex_);
  if (inside(address, bytes)) return "inside an allocation";
  auto next = blocks_.upper_bound(address);
  if (next != blocks_.begin()) {
    auto [start, size] = *std::prev(next);
    return cat(address + bytes - (start + size), " bytes past the end of the ", size,
               "-byte allocation at ", hex(start));
  }
  return cat("in no allocation of \"", name_, "\"");
}

std::byte* Memory::at(std::uint64_t address, std::uint64_t bytes) {
  if (!contains(address, bytes)) {
    throw Error(ErrorKind::fault, "sim.memory.bounds",
                cat("an access of ", bytes, " bytes at ", hex(address), " leaves \"", name_, "\""))
        .note(cat("the memory spans ", hex(base_), " to ", hex(base_ + size_)));
  }
  return raw(address);
}

}  // namespace weft::sim
