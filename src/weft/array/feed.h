// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands of any layout and type as chunks of the linear index space of a result, ready for the
// kernels of contiguous runs.

#include <algorithm>

#include "weft/array/nest.h"
#include "weft/array/ops.h"

namespace weft {

/// Narrow floats have no kernels of their own: they are widened on the way in and rounded on the
/// way out.
inline Elem kernel_elem(Elem e) { return arithmetic_elem(e); }
/// A row that is read next: processors fetch ahead inside a row, not across the gap between two.
inline void prefetch_row(const char* row, std::int64_t bytes) {
  constexpr std::int64_t kLine = 64, kMost = 4096;
  for (std::int64_t at = 0; at < std::min(bytes, kMost); at += kLine) __builtin_prefetch(row + at);
}

/// One operand ready for chunks of the linear index space.
struct Feed {
  /// single: one element of the kernel's type for a kernel that takes one.
  enum class Mode : std::uint8_t { direct, constant, single, cast, gather } mode = Mode::direct;
  const char* base = nullptr;
  int bytes = 1, kernel_bytes = 1;
  CastFn cast = nullptr;  // null: same type
  Nest nest;
};

struct Slot {
  alignas(64) char data[kChunk * 16];
};

/// The array as seen from a shape, to which it must broadcast, in the kernel's type.
void prepare(Feed& feed, const NDArray& array, const Dims& shape, Elem kernel);
/// A number as a constant; `one` holds an element.
Feed scalar_feed(const Scalar& scalar, Elem kernel, char* one);
/// n times the element of a constant.
void fill_constant(const Feed& feed, std::int64_t n, char* out);
/// Brings elements [begin, begin + n) as kernel type; returns where they are: in `slot`, or where
/// they stand. A walker is at `begin` already.
const void* bring(const Feed& feed, Walker* walker, std::int64_t begin, std::int64_t n, Slot& slot);

/// A result above this size does not stay in the caches: it is stored past them.
inline constexpr std::int64_t kStreamBytes = std::int64_t{32} << 20;
/// Copies whole lines past the caches where the machine can; `out` stands on a line's start.
void stream_copy(char* out, const char* in, std::int64_t bytes);
/// Before the end of a task that streamed.
void stream_end();

}  // namespace weft
