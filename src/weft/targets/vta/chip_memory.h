// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where buffers lie in the chip's memories while a program is recorded. A buffer that comes again
// gets two places in turn, so that filling one overlaps with using the other.

#include <map>
#include <utility>
#include <vector>

#include "weft/ir/node.h"
#include "weft/targets/vta/config.h"

namespace weft::vta {

/// Buffers under virtual threads get a place for each thread and no other: the user's threads are
/// the double buffering. Marks their allocations, before the threads are expanded; loops marked as
/// unrolled mean nothing here and become serial, so that unrolled loops are copies for threads.
ir::PrimFunc keep_places(const ir::PrimFunc& f);

class ChipMemory {
 public:
  struct Placed {
    MemType mem;
    std::int64_t at, elements;
  };

  explicit ChipMemory(const Config& config) : c_(config) {}
  /// The first element for a buffer whose life begins; -1: it does not fit beside those that live.
  std::int64_t enter(const ir::AllocateNode* a, MemType mem, std::int64_t elements);
  void leave() { live_.pop_back(); }
  /// Null when the buffer is not on chip.
  const Placed* find(const ir::BufferNode* b) const;
  const std::vector<std::pair<const ir::BufferNode*, Placed>>& live() const { return live_; }

 private:
  struct Slots {
    MemType mem = MemType::acc;
    std::int64_t elements = 0;
    int count = 0;
    std::vector<std::int64_t> at;
  };
  std::int64_t place(const ir::AllocateNode* a, MemType mem, std::int64_t elements);
  bool free_at(MemType mem, std::int64_t at, std::int64_t elements, bool reserved) const;
  std::int64_t find_room(MemType mem, std::int64_t elements, bool reserved) const;

  const Config& c_;
  std::vector<std::pair<const ir::BufferNode*, Placed>> live_;
  std::map<const ir::AllocateNode*, Slots> slots_;
};

}  // namespace weft::vta
