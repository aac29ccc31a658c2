// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much a host plan may allocate. A server that runs plans of others sets it for its thread;
// without it the device's memory is the limit.

#include <utility>

#include "weft/runtime/device.h"

namespace weft::runtime {

/// While it lives, plans that this thread runs may hold `most` bytes at a time in buffers of their
/// own; one that wants more throws Error(memory, "call.limit.bytes").
class AllocationLimit {
 public:
  explicit AllocationLimit(Bytes most) : outer_(std::exchange(current(), most)) {}
  ~AllocationLimit() { current() = outer_; }
  AllocationLimit(const AllocationLimit&) = delete;
  /// Of this thread.
  static Bytes& current() {
    static thread_local Bytes bytes = ~Bytes{0};
    return bytes;
  }

 private:
  Bytes outer_;
};

}  // namespace weft::runtime
