// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "weft/base/error.h"

namespace weft::wse {

namespace {
constexpr std::size_t kPage = std::size_t{2} << 20;  // a large page
constexpr std::size_t kMost = std::size_t{16} << 20;
}  // namespace

Arena::~Arena() {
  for (void* chunk : chunks_) std::free(chunk);
}

void* Arena::do_allocate(std::size_t bytes, std::size_t align) {
  std::lock_guard lock(mutex_);
  auto place = [&] {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(at_) + align - 1) /
                                        align * align);
  };
  if (at_ == nullptr || place() + bytes > end_) {
    // Small fabrics take little; from a large page on, chunks are made of them.
    chunk_ = std::min(kMost, chunk_ * 2);
    std::size_t size = std::max(chunk_, bytes + align);
    const bool large = size >= kPage;
    if (large) size = (size + kPage - 1) / kPage * kPage;
    else size = (size + 63) / 64 * 64;
    void* chunk = std::aligned_alloc(large ? kPage : 64, size);
    if (chunk == nullptr)
      throw Error(ErrorKind::memory, "wse.memory.host",
                  cat("the host has no ", size, " bytes left for the PEs"));
    if (large) madvise(chunk, size, MADV_HUGEPAGE);  // a wish: without it pages are small
    chunks_.push_back(chunk);
    at_ = static_cast<std::byte*>(chunk);
    end_ = at_ + size;
    bytes_ += size;
  }
  std::byte* p = place();
  at_ = p + bytes;
  return p;
}

}  // namespace weft::wse
