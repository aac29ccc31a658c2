// SPDX-License-Identifier: Apache-2.0
#include "weft/array/count.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "weft/array/ops.h"
#include "weft/array/repeat.h"

namespace weft {

namespace {

/// The bin of each element, -1 for none: the place in proportion, put right by the ends of the
/// bins, which rounding may have missed by several. Where the range is too narrow or too wide for a
/// proportion, the ends are searched.
template <typename T>
void bins_of(const T* x, std::int64_t n, const T* edges, std::int64_t bins, std::int64_t* out) {
  const T low = edges[0], high = edges[bins];
  const T scale = static_cast<T>(static_cast<double>(bins) /
                                 (static_cast<double>(high) - static_cast<double>(low)));
  const bool searched = !(scale > 0 && scale <= std::numeric_limits<T>::max());
  for (std::int64_t i = 0; i < n; ++i) {
    const T v = x[i];
    const bool inside = v >= low && v <= high;
    if (!inside || searched) {
      out[i] =
          inside ? std::min(std::upper_bound(edges, edges + bins + 1, v) - edges, bins) - 1 : -1;
      continue;
    }
    const T place = (v - low) * scale;
    std::int64_t at = place < static_cast<T>(bins)
                          ? std::min(static_cast<std::int64_t>(place), bins - 1)
                          : bins - 1;
    while (v < edges[at]) --at;
    while (at < bins - 1 && v >= edges[at + 1]) ++at;
    out[i] = at;
  }
}

}  // namespace

namespace {

/// Places as int64 without gaps; `least` becomes the largest and one, if that is more (of the
/// largest integer that integer: no array is so long). False where one is negative.
bool places_from_zero(const NDArray& x_in, NDArray& x, std::int64_t& least) {
  x = x_in.elem() == Elem::int64 ? x_in.contiguous() : x_in.astype(Elem::int64);
  if (x.size() == 0) return true;
  const auto extreme = [&](ReduceOp op) {
    std::int64_t value = 0;
    kernels().reduce[static_cast<int>(op)][static_cast<int>(Elem::int64)](x.size(), x.host(),
                                                                          &value);
    return value;
  };
  if (extreme(ReduceOp::min) < 0) return false;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  least = std::max(least, std::min(extreme(ReduceOp::max), kMost - 1) + 1);
  return true;
}

/// sums[at[i]] += w[i]. Neighbours add to tables of their own: of equal places each would wait for
/// the one before.
template <typename T>
void add_up(const std::int64_t* at, const T* w, std::int64_t n, std::int64_t bins, T* sums) {
  constexpr std::int64_t kTables = 4, kMostBins = 4096;
  const std::int64_t tables = bins <= kMostBins && n >= 4 * bins ? kTables : 1;
  const std::int64_t step = tables == 1 ? 0 : bins;
  std::vector<T> all(static_cast<std::size_t>(tables * bins));
  T* const table = all.data();
  std::int64_t i = 0;
  for (; i + kTables <= n; i += kTables) {
    for (std::int64_t t = 0; t < kTables; ++t) table[t * step + at[i + t]] += w[i + t];
  }
  for (; i < n; ++i) table[at[i]] += w[i];
  for (std::int64_t k = 0; k < bins; ++k) {
    sums[k] = table[k];
    for (std::int64_t t = 1; t < tables; ++t) sums[k] += table[t * bins + k];
  }
}

}  // namespace

std::optional<NDArray> counts_from_zero(const NDArray& x_in, std::int64_t least) {
  NDArray x;
  if (!places_from_zero(x_in, x, least)) return std::nullopt;
  return counts_of(x, least);
}

std::optional<NDArray> sums_from_zero(const NDArray& x_in, const NDArray& weights,
                                      std::int64_t least) {
  NDArray x;
  if (!places_from_zero(x_in, x, least)) return std::nullopt;
  const NDArray w = weights.contiguous();
  const NDArray out = NDArray::empty(x.device(), w.elem(), Dims{least});
  const auto* const at = reinterpret_cast<const std::int64_t*>(x.host());
  const auto run = [&]<typename T>(T) {
    add_up(at, reinterpret_cast<const T*>(w.host()), x.size(), least,
           reinterpret_cast<T*>(out.host()));
  };
  if (w.elem() == Elem::float64) run(double{});
  else run(float{});
  return out;
}

NDArray counts_in_bins(const NDArray& x_in, const NDArray& edges_in) {
  const NDArray x = x_in.contiguous(), edges = edges_in.contiguous();
  const std::int64_t bins = edges.size() - 1;
  const NDArray places = NDArray::empty(x.device(), Elem::int64, Dims{x.size()});
  auto* const out = reinterpret_cast<std::int64_t*>(places.host());
  const auto run = [&]<typename T>(T) {
    bins_of(reinterpret_cast<const T*>(x.host()), x.size(),
            reinterpret_cast<const T*>(edges.host()), bins, out);
  };
  if (x.elem() == Elem::float64) run(double{});
  else run(float{});
  return counts_of(places, bins);
}

NDArray run_starts(const NDArray& ordered) {
  const std::int64_t n = ordered.size();
  const NDArray out = NDArray::empty(ordered.device(), Elem::boolean, Dims{n + 1});
  char* const starts = out.host();
  starts[0] = starts[n] = 1;
  if (n > 1) {
    const NDArray later = ordered.slice(0, 1, n - 1, 1), before = ordered.slice(0, 0, n - 1, 1);
    apply_into(Op::not_equal, out.slice(0, 1, n - 1, 1), Arg(later), Arg(before));
  }
  return out;
}

}  // namespace weft
