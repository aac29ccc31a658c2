// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels of one-pass copies between two layouts (strided_copy.cpp), made by the generator.

#include <cstdint>

#include "weft/elements/elem.h"

namespace weft {

/// Steps from one element to the next, of the result and of what is copied.
enum class CopyKernel : std::int16_t {
  gather_two,   // 1, 2
  scatter_two,  // 2, 1
  both_two,     // 2, 2
  reverse,      // 1, -1; `in` is the run's lowest address
  spread,       // 1, 0
  any,          // as given
  add,          // to, 1: added to what is there, float32 or float64
  count_,
};
inline constexpr int kCopyKernels = static_cast<int>(CopyKernel::count_);

/// n elements; to and from are steps in elements, which `any` alone reads.
using CopyFn = void (*)(const void* in, void* out, std::int64_t n, std::int64_t to,
                        std::int64_t from);

struct CopyTable {
  /// By kernel and the bytes of an element: 1, 2, 4, 8, 16 at their logarithm.
  CopyFn function[kCopyKernels][5] = {};
};
const CopyTable& copy_kernels();

}  // namespace weft
