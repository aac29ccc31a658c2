// SPDX-License-Identifier: Apache-2.0
#pragma once
// A strided operand as a collapsed loop nest that is walked in row-major order. Kernels only know
// contiguous runs; a Walker moves between any layout and such runs, a chunk at a time, so that
// views need no compaction and chunks stay in the first-level cache.

#include <cstdint>

#include "weft/array/ndarray.h"

namespace weft {

struct Nest {
  char* base = nullptr;
  int ndim = 0;   // after merging; 0: one element
  int bytes = 1;  // of an element
  std::int64_t shape[kMaxDims];
  std::int64_t stride[kMaxDims];  // in bytes

  /// One run of adjacent elements?
  bool contiguous() const { return ndim == 0 || (ndim == 1 && stride[0] == bytes); }
  /// The same element everywhere?
  bool constant() const { return ndim == 0 || (ndim == 1 && stride[0] == 0); }
};

/// Merges dimensions that are walked as one and drops those of extent 1. `shape` has no zero.
Nest make_nest(char* base, const Dims& shape, const Dims& strides, int bytes);
/// The array's strides as seen from `shape`, to which it must broadcast.
Dims broadcast_strides(const NDArray& array, const Dims& shape);

class Walker {
 public:
  explicit Walker(const Nest& nest) : nest_(nest), at_(nest.base) {
    for (int i = 0; i < nest_.ndim; ++i) count_[i] = 0;
  }
  /// To the element with this row-major position.
  void seek(std::int64_t linear);
  /// To the first element, of a nest that lies there.
  void restart(char* base) {
    nest_.base = at_ = base;
    for (int i = 0; i < nest_.ndim; ++i) count_[i] = 0;
  }
  /// Copies the next n elements to / from a contiguous run and moves on.
  void gather(std::int64_t n, void* out);
  void scatter(std::int64_t n, const void* in);

 private:
  template <typename T, bool kGather>
  void move(std::int64_t n, T* run);
  template <bool kGather>
  void dispatch(std::int64_t n, void* run);
  /// Past whole runs along an axis: the next ones begin where the axes before it say.
  void carry(int axis);
  Nest nest_;
  char* at_;
  std::int64_t count_[kMaxDims];
};

/// Elements of a chunk: three float64 operands stay inside 32 KiB.
inline constexpr std::int64_t kChunk = 1024;
/// Elements below which work is not shared among threads.
inline constexpr std::int64_t kParallelGrain = 1 << 15;

}  // namespace weft
