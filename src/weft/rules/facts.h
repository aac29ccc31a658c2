// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the rules decide from: the table of a machine that runs groups of threads, and the sizes
// that a program is expected to meet.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "weft/machine/target_info.h"
#include "weft/rules/choices.h"

namespace weft::rules {

/// Rows of a machine's table as the rules ask for them. The table outlives it.
class Facts {
 public:
  explicit Facts(const TargetInfo& table) : table_(&table) {}
  const TargetInfo& table() const { return *table_; }

  /// Most threads of one group.
  std::int64_t threads() const {
    const AxisInfo* x = table().axis("threadIdx.x");
    const std::int64_t most = table().group_threads() > 0 ? table().group_threads() : 256;
    return x && x->limit > 0 ? std::min(most, x->limit) : most;
  }
  /// Threads of a group where nothing asks for another number.
  std::int64_t group() const { return std::min<std::int64_t>(threads(), 256); }
  /// Threads whose neighbouring accesses are one transfer.
  std::int64_t lanes() const { return table().limit(limits::kLanes, 32); }
  /// Groups run on so many at once.
  std::int64_t processors() const { return table().limit(limits::kProcessors, 64); }
  /// Groups from which on every processor's memory is busy.
  std::int64_t groups() const { return processors() * 8; }
  std::int64_t shared_bytes() const {
    return table().group_bytes() > 0 ? table().group_bytes() : 32768;
  }
  /// Widest move of one thread; 0: one element.
  std::int64_t vector_bytes() const { return table().limit(limits::kVectorBytes, 0); }
  /// A queue copies into shared memory while threads compute.
  bool copies_ahead() const { return table().copy_queue() != nullptr; }
  /// Bulk copies, and warp groups that multiply tiles of shared memory.
  bool warp_products() const { return table().queue("bulk") && table().queue("wgmma"); }

  /// An instruction multiplies tiles of float64.
  bool double_products() const { return table().limit(limits::kDoubleProductSums, 0) > 0; }
  /// The highest clock; that of a middling card where the table does not say.
  double clocks_per_microsecond() const {
    return static_cast<double>(table().limit(limits::kClockKhz, 1500000)) / 1e3;
  }
  /// What kernels reach of the memory's rate.
  double bytes_per_microsecond() const {
    return 0.8 * static_cast<double>(table().limit(limits::kMemoryRate, 600000));
  }
  /// What all processors reach with multiply-adds of 16-bit floats in tiles; 1: none.
  double tile_sums_per_microsecond() const {
    const std::int64_t sums = table().limit(limits::kProductSums, 0);
    return sums == 0 ? 1
                     : 0.6 * static_cast<double>(sums) * static_cast<double>(processors()) *
                           clocks_per_microsecond();
  }

 private:
  const TargetInfo* table_;
};

/// Bytes of an array that each thread has, at most.
inline constexpr std::int64_t kPrivateBytes = 4096;

/// Values that symbolic extents and strides are expected to have, by name: the function attribute
/// "size_hints". A program is right for all values; hints choose between schedules.
using Sizes = std::map<std::string, std::int64_t>;
inline constexpr const char* kSizeHints = "size_hints";
/// Taken for a symbol without a hint.
inline constexpr std::int64_t kUnknownSize = 65536;

}  // namespace weft::rules
