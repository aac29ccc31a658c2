// SPDX-License-Identifier: Apache-2.0
// Blocks that fit the first or second cache get their own mean and their squares about it; blocks
// are joined in order, in float64 (Chan, Golub and LeVeque). Their size depends on the shape alone,
// so the result does not depend on the number of threads.

#include "weft/array/moments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

constexpr std::int64_t kBlock = 4 * kChunk;      // elements of a row
constexpr std::int64_t kColumns = 256;           // of a strip of columns
constexpr std::int64_t kStripBytes = 64 * 1024;  // of a strip's rows
constexpr std::int64_t kPartBlocks = 16;         // blocks that one task joins

/// The kernels of a type.
template <typename T>
struct Steps {
  static constexpr Elem kElem = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
  static constexpr auto e = static_cast<std::size_t>(kElem);
  static constexpr auto kSum = static_cast<std::size_t>(ReduceOp::sum);
  ElementwiseFn subtract = kernels().elementwise[static_cast<std::size_t>(Op::subtract)][e];
  ElementwiseFn square = kernels().elementwise[static_cast<std::size_t>(Op::square)][e];
  PlaneFn moments = loop_kernels().plane[static_cast<int>(PlaneKernel::moments)][e];
  AccumulateFn add = kernels().accumulate[kSum][e];
};

/// A block of adjacent elements.
template <typename T>
void join_run(const Steps<T>& steps, Spread& out, const T* x, std::int64_t n) {
  const void* in[1] = {x};
  T found[2];
  steps.moments(n, in, found);
  out.join(static_cast<double>(n), static_cast<double>(found[0]), static_cast<double>(found[1]));
}

/// Rows of n adjacent elements each.
template <typename T>
void rows(const T* x, std::int64_t count, std::int64_t n, Spread* out) {
  const Steps<T> steps;
  const std::int64_t part = kPartBlocks * kBlock, parts = (n + part - 1) / part;
  std::vector<Spread> found(parts > 1 ? static_cast<std::size_t>(count * parts) : 0);
  Spread* const to = parts > 1 ? found.data() : out;
  runtime::Pool::shared().parallel_for(
      count * parts, std::max<std::int64_t>(1, kParallelGrain / std::min(n, part)),
      [&](std::int64_t t, std::int64_t end) {
        for (; t < end; ++t) {
          const std::int64_t row = t / parts, from = t % parts * part;
          const std::int64_t stop = std::min(n, from + part);
          Spread spread;
          for (std::int64_t at = from; at < stop; at += kBlock)
            join_run(steps, spread, x + row * n + at, std::min(kBlock, stop - at));
          to[t] = spread;
        }
      });
  if (parts == 1) return;
  for (std::int64_t t = 0; t < count * parts; ++t) {
    const Spread& s = found[static_cast<std::size_t>(t)];
    out[t / parts].join(s.count, s.mean, s.squares);
  }
}

/// A strip of columns, `width` of them, of n rows `step` elements apart.
template <typename T>
void join_strip(const Steps<T>& steps, Spread* out, const T* x, std::int64_t n, std::int64_t step,
                std::int64_t width) {
  alignas(64) T mean[kColumns], squares[kColumns], one[kColumns];
  const auto bytes = static_cast<std::size_t>(width) * sizeof(T);
  std::memcpy(mean, x, bytes);
  for (std::int64_t r = 1; r < n; ++r) steps.add(width, x + r * step, mean);
  for (std::int64_t j = 0; j < width; ++j) mean[j] /= static_cast<T>(n);
  std::memset(squares, 0, bytes);
  for (std::int64_t r = 0; r < n; ++r) {
    const void* in[2] = {x + r * step, mean};
    steps.subtract(width, in, one);
    const void* again[1] = {one};
    steps.square(width, again, one);
    steps.add(width, one, squares);
  }
  for (std::int64_t j = 0; j < width; ++j)
    out[j].join(static_cast<double>(n), static_cast<double>(mean[j]),
                static_cast<double>(squares[j]));
}

/// `count` matrices of n rows and `inner` columns, each column reduced.
template <typename T>
void columns(const T* x, std::int64_t count, std::int64_t n, std::int64_t inner, Spread* out) {
  const Steps<T> steps;
  const std::int64_t width = std::min(kColumns, inner), strips = (inner + width - 1) / width;
  const std::int64_t block =
      std::max<std::int64_t>(8, kStripBytes / static_cast<std::int64_t>(sizeof(T)) / width);
  const std::int64_t part = kPartBlocks * block, parts = (n + part - 1) / part;
  std::vector<Spread> found(parts > 1 ? static_cast<std::size_t>(count * parts * inner) : 0);
  Spread* const to = parts > 1 ? found.data() : out;
  runtime::Pool::shared().parallel_for(
      count * parts * strips,
      std::max<std::int64_t>(1, kParallelGrain / (width * std::min(n, part))),
      [&](std::int64_t t, std::int64_t end) {
        for (; t < end; ++t) {
          const std::int64_t j = t % strips * width, p = t / strips % parts,
                             matrix = t / strips / parts;
          const std::int64_t stop = std::min(n, (p + 1) * part);
          for (std::int64_t r = p * part; r < stop; r += block)
            join_strip(steps, to + (matrix * parts + p) * inner + j,
                       x + (matrix * n + r) * inner + j, std::min(block, stop - r), inner,
                       std::min(width, inner - j));
        }
      });
  if (parts == 1) return;
  for (std::size_t t = 0; t < found.size(); ++t) {
    const auto at = static_cast<std::int64_t>(t);
    out[at / inner / parts * inner + at % inner].join(found[t].count, found[t].mean,
                                                      found[t].squares);
  }
}

template <typename T>
void finish(Moment moment, const std::vector<Spread>& found, double correction, char* to) {
  T* out = reinterpret_cast<T*>(to);
  for (const Spread& s : found) {
    const double n = s.count - correction;
    double value = n > 0 ? s.squares / n : std::numeric_limits<double>::quiet_NaN();
    if (moment == Moment::deviation) value = std::sqrt(value);
    *out++ = static_cast<T>(value);
  }
}

/// Axes of extent above 1 in the order of memory, neighbours that are kept or reduced together as
/// one; kept[i] says which. True where x is dense in that order.
struct Order {
  std::vector<int> axes;
  Dims extents;
  std::vector<bool> kept;
  bool dense = true;

  Order(const NDArray& x, std::uint64_t mask) {
    for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
    std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) {
      return std::abs(x.strides()[a]) > std::abs(x.strides()[b]);
    });
    std::int64_t step = 1;
    for (std::size_t i = axes.size(); i-- > 0;) {
      const int a = axes[i];
      if (x.shape()[a] == 1) continue;
      dense = dense && x.strides()[a] == step;
      step *= x.shape()[a];
    }
    for (int a : axes) {
      if (x.shape()[a] == 1) continue;
      const bool keep = !(mask >> a & 1);
      if (!kept.empty() && kept.back() == keep) {
        extents[extents.size() - 1] *= x.shape()[a];
      } else {
        kept.push_back(keep);
        extents.push_back(x.shape()[a]);
      }
    }
  }
};

/// The extents around the reduced ones, where these are neighbours.
struct Around {
  std::int64_t outer = 1, gone = 1, inner = 1;
  bool possible = true;
  explicit Around(const Order& order) {
    bool seen = false, past = false;
    for (int i = 0; i < order.extents.size(); ++i) {
      const std::int64_t extent = order.extents[i];
      if (!order.kept[static_cast<std::size_t>(i)]) {
        possible = possible && !past && !seen;
        seen = true;
        gone = extent;
      } else if (seen) {
        past = true;
        inner *= extent;
      } else {
        outer *= extent;
      }
    }
  }
};

}  // namespace

NDArray host_moments(Moment moment, const NDArray& x, std::uint64_t mask, double correction) {
  const Elem elem = is_real_float(x.elem()) ? x.elem() : Elem::float32;
  const Elem wide = elem == Elem::float64 ? elem : Elem::float32;
  std::int64_t gone = 1;
  Axes axes{false, {}};
  std::vector<int> kept;
  for (int i = 0; i < x.ndim(); ++i) {
    if (mask >> i & 1) gone *= x.shape()[i], axes.axes.push_back(i);
    else kept.push_back(i);
  }
  if (moment == Moment::mean) {
    const NDArray sum = reduce(ReduceOp::sum, x, axes, false, wide);
    const NDArray mean = apply(Op::divide, sum, Scalar(static_cast<double>(gone)));
    return wide == elem ? mean : mean.astype(elem);
  }
  NDArray in = x.elem() == wide ? x : x.astype(wide);
  if (!Order(in, mask).dense) in = in.copy();
  Order order(in, mask);
  if (!Around(order).possible) {  // reduced axes go to the end
    std::vector<int> turned = kept;
    for (std::int64_t a : axes.axes) turned.push_back(static_cast<int>(a));
    in = in.permute(turned).copy();
    const std::uint64_t last = ((std::uint64_t{1} << axes.axes.size()) - 1) << kept.size();
    const NDArray out = host_moments(moment, in, last, correction);
    return wide == elem ? out : out.astype(elem);
  }
  const Around around(order);
  std::vector<Spread> found(static_cast<std::size_t>(around.outer * around.inner));
  auto run = [&]<typename T>(T) {
    const T* from = reinterpret_cast<const T*>(in.host());
    if (around.inner == 1) rows<T>(from, around.outer, around.gone, found.data());
    else columns<T>(from, around.outer, around.gone, around.inner, found.data());
  };
  Dims shape;
  std::vector<int> places;  // of the result's axes in the order of memory
  for (int a : order.axes) {
    if (mask >> a & 1) continue;
    shape.push_back(x.shape()[a]);
    places.push_back(static_cast<int>(std::find(kept.begin(), kept.end(), a) - kept.begin()));
  }
  const NDArray out = NDArray::empty(x.device(), wide, shape);
  if (wide == Elem::float64) {
    run(double{});
    finish<double>(moment, found, correction, out.host());
  } else {
    run(float{});
    finish<float>(moment, found, correction, out.host());
  }
  std::vector<int> back(places.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    back[static_cast<std::size_t>(places[i])] = static_cast<int>(i);
  NDArray result = std::is_sorted(back.begin(), back.end()) ? out : out.permute(back).copy();
  return wide == elem ? result : result.astype(elem);
}

}  // namespace weft
