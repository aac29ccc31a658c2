// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the host does around the accelerator: loops that rearrange global memory. Packing into
// elements, padding, unpacking, joining the bytes of wider results. Everything is affine, so a copy
// is a few numbers that travel in the binary and can be written as C.

#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/ir/node.h"
#include "weft/runtime/binary.h"

namespace weft::vta {

struct HostCopy {
  /// base + sum of step[i] * (loop i), in elements.
  struct Index {
    std::int64_t base = 0;
    std::vector<std::int64_t> step;
  };
  struct Guard {  // low <= value < high
    Index value;
    std::int64_t low = 0, high = 0;
    bool skip = false;  // outside it nothing is written, filled or not
  };
  std::vector<std::int64_t> extents;  // outermost first
  int dst = 0;                        // parameter
  std::vector<int> src;               // parameter of each part
  int dst_bytes = 1, src_bytes = 1;   // of an element
  bool src_signed = true;
  Index to;
  std::vector<Index> from;  // several: bytes of the result, lowest first
  std::vector<Guard> guards;
  bool fill = false;  // where a guard fails `otherwise` is written; else nothing
  std::int64_t otherwise = 0;

  std::int64_t points() const;
};

/// The copies of a kernel's body. Error(lower, "vta.host.*") naming the statement.
std::vector<HostCopy> host_copies(const ir::PrimFunc& kernel);

/// A parameter's memory.
struct HostSpan {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};
/// Error(value, "vta.host.bounds") before anything is written when an access would leave a span.
void run(const HostCopy& copy, const std::vector<HostSpan>& params);

/// Bytes read and written.
std::int64_t bytes_moved(const HostCopy& copy);

Json to_json(const HostCopy& copy);
/// Error(emit, "vta.binary.damaged") on anything that is no copy over `params` parameters.
HostCopy host_copy_from_json(const Json& json, std::size_t params);

/// The loops as C; parameters are p0, p1, ... of type `void*`.
std::string to_c(const HostCopy& copy, std::string_view indent);

}  // namespace weft::vta
