// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables of compiled kernels: operation x element type -> function over contiguous runs. Filled
// once, from the best set that the processor can run. Everything about layout happens outside
// (nest.h).

#include <cstdint>

#include "weft/array/elem.h"

namespace weft {

enum class Op : std::uint16_t {
#define UNARY(name, ...) name,
#define BINARY(name, ...) name,
#include "weft/array/ops/elementwise.def"
#undef UNARY
#undef BINARY
  count_,
};
inline constexpr int kOps = static_cast<int>(Op::count_);

enum class ReduceOp : std::uint16_t {
#define REDUCE(name, ...) name,
#include "weft/array/ops/reduce.def"
#undef REDUCE
  count_,
};
inline constexpr int kReduceOps = static_cast<int>(ReduceOp::count_);

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

/// The longest run of the functions below that say so.
inline constexpr std::int64_t kRun = 4096;
/// *at = the first place of the extreme of n elements, 0 < n <= kRun; NaN is the extreme of all.
using PositionFn = void (*)(std::int64_t n, const void* in, std::int64_t* at);
/// at[i] = here where in[i] is top[i].
using PlaceFn = void (*)(std::int64_t n, const void* in, const void* top, std::int32_t here,
                         std::int32_t* at);
/// out[i] = step * (position in[i], counted from the end where it is negative); *outside is not 0
/// where one of them is not in [0, extent). The second of the two adds to what stands there.
using ResolveFn = void (*)(std::int64_t n, std::int64_t extent, std::int64_t step,
                           const std::int64_t* in, std::int64_t* out, std::int64_t* outside);
/// out[i] = in[step * position at[i]], checked likewise; in has an element to read.
using AlongFn = void (*)(std::int64_t n, std::int64_t extent, std::int64_t step, const void* in,
                         const std::int64_t* at, void* out, std::int64_t* outside);
/// out[i] = in[at[i]].
using PickFn = void (*)(std::int64_t n, const void* in, const std::int64_t* at, void* out);
/// out[at[i]] = in[i], in order.
using PutFn = PickFn;
/// *total = how many of n <= kRun truth values are not 0.
using CountFn = void (*)(std::int64_t n, const void* mask, std::int64_t* total);
/// out = elements of `in` whose truth value is set, *total of them; one place more is written.
using CompressFn = void (*)(std::int64_t n, const void* in, const void* mask, void* out,
                            std::int64_t* total);
/// out = first + places whose truth value is set; likewise.
using PlacesFn = void (*)(std::int64_t n, std::int64_t first, const void* mask, std::int64_t* out,
                          std::int64_t* total);
/// Elements of 1, 2, 4, 8 and 16 bytes, whatever their type.
inline constexpr int kWidths = 5;
constexpr int width_of(int bytes) {
  int w = 0;
  while (1 << w < bytes) ++w;
  return w;
}

/// c[j] = sum over p < k of a[p * a_step] * b[p * b_row + j * b_col] for j < n, in order of p.
using RowProductFn = void (*)(const void* a, const void* b, void* c, std::int64_t n, std::int64_t k,
                              std::int64_t a_step, std::int64_t b_row, std::int64_t b_col);
/// out[i * step] += in[i].
using StepAddFn = void (*)(const void* in, void* out, std::int64_t n, std::int64_t step);

struct KernelTable {
  ElementwiseFn elementwise[kOps][kElems] = {};
  ReduceFn reduce[kReduceOps][kElems] = {};
  AccumulateFn accumulate[kReduceOps][kElems] = {};
  ReduceFourFn reduce_four[kReduceOps][kElems] = {};  // null for complex numbers
  FoldFn fold[kReduceOps][kElems] = {};
  ScanFn scan[kReduceOps][kElems] = {};
  CastFn cast[kElems][kElems] = {};
  SelectFn select[kElems] = {};
  RowFn row[kRowKernels][kElems] = {};
  RandomFn random[kRandomKernels] = {};
  RowProductFn row_product[2][kElems] = {};  // [1]: b_col is 1; unsigned, bool and complex types
  StepAddFn step_add[kElems] = {};           // float32, float64
  PositionFn position[2][kElems] = {};       // smallest, largest; none of 16-bit floats
  PlaceFn place[kElems] = {};
  ResolveFn resolve[2] = {};
  AlongFn along[kWidths] = {};
  PickFn pick[kWidths] = {};
  PutFn put[kWidths] = {};
  CountFn count = nullptr;
  CompressFn compress[kWidths] = {};
  PlacesFn places = nullptr;
};

/// The table for this processor.
const KernelTable& kernels();

}  // namespace weft
