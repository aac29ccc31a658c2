// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inclusive running combinations along an axis of a compact array [outer, n, inner].
//
// A line is cut into parts. With several parts, `reduce` combines each, and `apply` scans each part
// from what came before it: blocks combine the few parts before theirs; of lines with a step those
// are scanned. Sums of floats are sums of short
// sums, so their error grows with the logarithm of the length.

#include <cstdint>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

enum class ScanOp : std::uint8_t { sum, prod, max, min };
/// What is combined. Running extremes with their positions are maxima of keys (sort_key), which are
/// unsigned: of keys of 32 bits with the positions below them, the last of equals winning; of
/// longer keys alone, and then of the positions of those elements whose key is the running one.
enum class ScanValue : std::uint8_t { element, packed, key, record };

struct ScanSpec {
  ScanOp op = ScanOp::sum;
  std::string from, type;  // element types of the input, and of the sums and the result
  bool narrow = true;      // positions are 32 bits wide
  int threads = 256;       // of a block; contiguous lines
  int items = 8;           // of a thread at once; contiguous lines
  bool cut = false;        // contiguous lines have several parts
  ScanValue value = ScanValue::element;
  std::string key, key_type;  // of a word `u` of x, for what is no element
  bool descending = false;    // keys are those of descending order
};

/// Lines are contiguous, a block takes a part: (x, sums, blocks, n, parts, per).
/// x [rows, n], sums [rows, parts]; per: elements of a part, a multiple of the tile.
ir::PrimFunc scan_reduce(const ScanSpec& spec);
/// (x, sums, out, blocks, n, parts, per). `sums`: the parts' combinations, read where a line is
/// cut. exclusive: out leaves the element itself out. Of positions (`packed`, `record`) out is
/// int64 and `values`, the elements there, follow it. Of records, the running keys follow x
/// everywhere.
ir::PrimFunc scan_apply(const ScanSpec& spec, bool exclusive = false);
/// Lines have a step, a thread takes a part: (x, sums, blocks, lines, n, inner, parts, per), where
/// lines = outer * parts * inner, sums [outer, parts, inner].
ir::PrimFunc scan_lines_reduce(const ScanSpec& spec);
/// (x, before, out, blocks, lines, n, inner, parts, per).
ir::PrimFunc scan_lines_apply(const ScanSpec& spec);

inline constexpr int kScanLineThreads = 256;

}  // namespace weft::operators
