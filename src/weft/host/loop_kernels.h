// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels of the host that are no rows of the operation tables: places of values, index arrays,
// masks, evenly spaced numbers, rows of products. Made by the generator like the others; none
// checks what it can be called with.

#include <cstdint>

#include "weft/elements/elem.h"
#include "weft/host/kernels.h"

namespace weft {

/// The longest run of the functions below that say so.
inline constexpr std::int64_t kRun = 4096;

/// at[k] = the first place of wanted[k] in run k of four, of n < 2^31 elements each, NaN's where
/// that is NaN; n where there is none.
using FindFn = void (*)(std::int64_t n, const void* const* in, const void* wanted,
                        std::int64_t* at);
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
/// out[at[i]] = out[at[i]] + in[i], in order.
using PutAddFn = PickFn;
/// *total = how many of n <= kRun truth values are not 0.
using CountFn = void (*)(std::int64_t n, const void* mask, std::int64_t* total);
/// out = elements of `in` whose truth value is set, *total of them; one place more is written.
using CompressFn = void (*)(std::int64_t n, const void* in, const void* mask, void* out,
                            std::int64_t* total);
/// out[i] = the next of `in` where its truth value is set; one place more of `in` is read.
using ExpandFn = CompressFn;
/// out = first + places whose truth value is set; likewise.
using PlacesFn = void (*)(std::int64_t n, std::int64_t first, const void* mask, std::int64_t* out,
                          std::int64_t* total);
/// out[i] = start + (first + i) * step, which wraps in integers and is rounded once in floats.
using WholeStepsFn = void (*)(std::int64_t n, std::int64_t first, std::int64_t start,
                              std::int64_t step, void* out);
using RealStepsFn = void (*)(std::int64_t n, std::int64_t first, double start, double step,
                             void* out);
/// acc[i] = acc[i] + x[0] * in[i]; of booleans acc or (x and in).
using AddProductsFn = void (*)(std::int64_t n, const void* x, const void* in, void* acc);
/// Pairs of numbers in [0, 1) to pairs with the normal distribution; out may be in[0].
using NormalPairsFn = void (*)(std::int64_t n, const void* const* in, void* out);
/// Of n counters from `first` on, two int64 each: low + the upper 64 bits of range times 64 random
/// ones.
using RandomIntegersFn = void (*)(std::int64_t n, std::uint64_t seed, std::uint64_t first,
                                  std::uint32_t range, std::int64_t low, void* out);

/// Kernels of a run x of n > 0 elements with numbers of its own (float32, float64).
enum class PlaneKernel : std::uint8_t {
  moments,    // x: out[0] = mean, out[1] = sum of squares about it
  normalise,  // x, (mean, scale, shift): (x - mean) * scale + shift; out may be x
  sums,       // x, g, (mean): out[0] = sum of g, out[1] = sum of g * (x - mean)
  gradient,   // x, g, (mean, a, b, c): g * a + (x - mean) * b + c; out may be x or g
  count_,
};
inline constexpr int kPlaneKernels = static_cast<int>(PlaneKernel::count_);
using PlaneFn = ElementwiseFn;

/// out = (...(in[0] * in[1] + c[0]) * in[1] + ...) + c[n - 1] of n numbers c = in[2], each product
/// and each sum rounded; n is a power of two up to 32 (float32, float64). out may be in[0] or
/// in[1].
using PolynomialFn = ElementwiseFn;
inline constexpr int kPolynomials = 6;

/// Kernels of bits: out[i] of in[i].
enum class BitKernel : std::uint8_t {
  pack_big,     // a byte of a word of eight bytes that are 0 or 1, the first one its highest bit
  pack_little,  // or its lowest
  unpack_big,   // such a word of a byte
  unpack_little,
  count_bits,  // how many are set, uint8; of uint8 in words of eight of them (unsigned integers)
  count_,
};
inline constexpr int kBitKernels = static_cast<int>(BitKernel::count_);
using BitFn = CastFn;
/// Numbers m and e (int32) with in[i] = m 2^e, 0.5 <= |m| < 1; what has none is its own m, e is 0.
using FrexpFn = void (*)(std::int64_t n, const void* in, void* m, void* e);

/// Elements of 1, 2, 4, 8 and 16 bytes, whatever their type.
inline constexpr int kWidths = 5;
constexpr int width_of(int bytes) {
  int w = 0;
  while (1 << w < bytes) ++w;
  return w;
}

struct LoopTable {
  FindFn find[kElems] = {};    // none of 16-bit floats and complex numbers,
  PlaceFn place[kElems] = {};  // nor here
  ResolveFn resolve[2] = {};
  AlongFn along[kWidths] = {};
  PickFn pick[kWidths] = {};
  PutFn put[kWidths] = {};
  PutAddFn put_add[kElems] = {};  // integers, float32, float64
  CountFn count = nullptr;
  CompressFn compress[kWidths] = {};
  ExpandFn expand[kWidths] = {};
  PlacesFn places = nullptr;
  WholeStepsFn whole_steps[kElems] = {};    // integers
  RealStepsFn real_steps[kElems] = {};      // float32, float64
  AddProductsFn add_products[kElems] = {};  // booleans, integers, complex numbers
  NormalPairsFn normal_pairs = nullptr;     // of float64
  RandomIntegersFn random_integers = nullptr;
  PlaneFn plane[kPlaneKernels][kElems] = {};
  PolynomialFn polynomial[kPolynomials][kElems] = {};
  BitFn bits[kBitKernels][kElems] = {};
  FrexpFn frexp[kElems] = {};          // float32, float64
  ElementwiseFn between[kElems] = {};  // likewise: in[1] has the least and the largest result
};
/// The table for this processor.
const LoopTable& loop_kernels();

}  // namespace weft
