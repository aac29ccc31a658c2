// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program that a rectangle of PEs holds from launch to launch: what its arrays were sent stays
// there, and results stay until somebody asks for them or the PEs need their place.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/stats.h"
#include "weft/targets/wse/distribution.h"
#include "weft/targets/wse/sdk_runtime.h"

namespace weft::wse {

/// A range of the memory beside the wafer, by address.
struct Range {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
  bool overlaps(const Range& r) const { return begin < r.end && r.begin < end; }
  bool covers(const Range& r) const { return begin <= r.begin && r.end <= end; }
};

/// A result that lies on the PEs: the memory at `range` does not hold it yet.
struct Left {
  std::uint64_t id = 0;
  Range range;
  std::string array;  // where it lies; an input's where the next call has taken it
  Distribution how;
  std::int64_t bytes = 4;  // of an element
  std::vector<std::int64_t> shape;
  bool boxes = false;  // it lies in an array that a program reads, whole boxes of it
  void put_back(const std::vector<std::uint32_t>& words) const {
    if (boxes) how.put_boxes_back(words, buffer());
    else how.put_back(words, buffer());
  }
  PlanBuffer buffer() const { return {reinterpret_cast<char*>(range.begin), bytes, shape}; }
};

struct Resident {
  std::mutex busy;  // held by who launches or copies; before the device's mutex
  std::uint64_t executable = 0;
  std::size_t kernel = 0;
  bool checked = false;  // that results lie inside their buffers
  std::unique_ptr<SdkRuntime> runtime;
  std::map<std::string, std::vector<std::uint32_t>> sent;
  std::vector<Left> left;  // guarded by the device's mutex
  // Arrays that hold results of the program before this one, and the time it takes to move them.
  std::set<std::string> taken_over;
  Cycle taking_over = 0;
  // Of the last launch, for its statistics.
  runtime::StatReport before;
  std::vector<std::pair<std::string, Cycle>> stages;

  /// The words of a result, copied in the wafer's time.
  std::vector<std::uint32_t> copy_back(const Left& left);
  /// The same without the program's help, and in no time: after a fault.
  std::vector<std::uint32_t> peek(const Left& left) const;
  /// What has happened since the last launch began.
  runtime::StatReport report() const;
};

}  // namespace weft::wse
