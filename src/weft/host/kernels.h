// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables of compiled kernels: operation x element type -> function over contiguous runs. Filled
// once, from the best set that the processor can run. Everything about layout happens outside
// (nest.h).

#include <cstdint>

#include "weft/elements/elem.h"
#include "weft/elements/op.h"

namespace weft {

/// out[i] = f(in[0][i], in[1][i]); `out` may be the same memory as an input.
using ElementwiseFn = void (*)(std::int64_t n, const void* const* in, void* out);
/// *acc = combination of in[0] to in[n-1], n > 0, in a fixed order that depends on n alone.
using ReduceFn = void (*)(std::int64_t n, const void* in, void* acc);
/// acc[k] = combination of in[k][0] to in[k][n-1] for four rows, n > 0, each in one order.
using ReduceFourFn = void (*)(std::int64_t n, const void* const* in, void* acc);
/// acc[i] = combine(acc[i], in[i]).
using AccumulateFn = void (*)(std::int64_t n, const void* in, void* acc);
/// acc[i] = combination of acc[i] and in[0][i] to in[3][i].
using FoldFn = void (*)(std::int64_t n, const void* const* in, void* acc);
/// Running combination, inclusive; `acc` carries over between calls.
using ScanFn = void (*)(std::int64_t n, const void* in, void* out, void* acc);
using CastFn = void (*)(std::int64_t n, const void* in, void* out);
using SelectFn = void (*)(std::int64_t n, const bool* condition, const void* a, const void* b,
                          void* out);

/// Kernels of one pass over a contiguous row of n elements; out may be the first input.
enum class RowKernel : std::uint8_t {
  softmax,               // x
  log_softmax,           // x
  softmax_gradient,      // y, g: y * (g - sum(g * y))
  log_softmax_gradient,  // y, g: g - exp(y) * sum(g)
  layer_norm,            // x, scale, shift: (x - mean) / sqrt(var + eps) * scale + shift
  layer_norm_gradient,   // x, g * scale: gradient for x
  logsumexp,             // x: one result
  count_,
};
inline constexpr int kRowKernels = static_cast<int>(RowKernel::count_);
using RowFn = void (*)(std::int64_t n, const void* const* in, void* out, double eps);

/// Random numbers of n counters from `first` on: four of 4 bytes to each, or two of 8.
enum class RandomKernel : std::uint8_t { bits, uniform, normal, uniform64, count_ };
inline constexpr int kRandomKernels = static_cast<int>(RandomKernel::count_);
using RandomFn = void (*)(std::int64_t n, std::uint64_t seed, std::uint64_t first, void* out);

struct KernelTable {
  ElementwiseFn elementwise[kMostOps][kElems] = {};
  ReduceFn reduce[kMostReduceOps][kElems] = {};
  AccumulateFn accumulate[kMostReduceOps][kElems] = {};
  ReduceFourFn reduce_four[kMostReduceOps][kElems] = {};  // null for complex numbers
  FoldFn fold[kMostReduceOps][kElems] = {};
  ScanFn scan[kMostReduceOps][kElems] = {};
  CastFn cast[kElems][kElems] = {};
  SelectFn select[kElems] = {};
  RowFn row[kRowKernels][kElems] = {};
  RandomFn random[kRandomKernels] = {};
};

/// The table for this processor.
const KernelTable& kernels();

}  // namespace weft
