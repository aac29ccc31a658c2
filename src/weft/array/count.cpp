// SPDX-License-Identifier: Apache-2.0
#include "weft/array/count.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "weft/array/ops.h"
#include "weft/array/repeat.h"
#include "weft/elements/rows.h"
#include "weft/elements/with_type.h"

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

/// Of integers of one type; those of a byte need no look at the largest.
template <typename T>
std::optional<NDArray> counts_of_type(const NDArray& x, const T* at, std::int64_t least) {
  const std::int64_t n = x.size();
  constexpr bool byte = sizeof(T) == 1;
  std::int64_t bins = byte ? 256 : 0;
  if (!byte && n > 0) {
    const auto e = static_cast<std::size_t>(x.elem());
    T low = 0, high = 0;
    if (std::is_signed_v<T>) kernels().reduce[row_of(ReduceOp::min)][e](n, at, &low);
    kernels().reduce[row_of(ReduceOp::max)][e](n, at, &high);
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() - 1;
    if (low < 0 || static_cast<std::uint64_t>(high) > kMost) return std::nullopt;
    bins = static_cast<std::int64_t>(high) + 1;
  }
  // Neighbours count in tables of their own: of equal ones each would wait for the one before.
  constexpr std::int64_t kTables = 4, kMostBins = 4096;
  const bool apart = bins <= kMostBins && n >= 4 * bins;
  const std::int64_t step = apart ? bins : 0;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(apart ? kTables * bins : bins));
  std::int64_t* const table = counts.data();
  const auto bin = [](T v) { return static_cast<std::size_t>(std::make_unsigned_t<T>(v)); };
  std::int64_t i = 0;
  for (; i + kTables <= n; i += kTables)
    for (std::int64_t t = 0; t < kTables; ++t)
      ++table[t * step + static_cast<std::int64_t>(bin(at[i + t]))];
  for (; i < n; ++i) ++table[bin(at[i])];
  for (std::int64_t t = 1; apart && t < kTables; ++t)
    for (std::int64_t k = 0; k < bins; ++k) table[k] += table[t * bins + k];
  if (byte) {
    while (bins > 0 && table[bins - 1] == 0) --bins;
    if (std::is_signed_v<T> && bins > 128) return std::nullopt;  // the upper half is negative
  }
  const NDArray out = NDArray::empty(x.device(), Elem::int64, Dims{std::max(bins, least)});
  auto* const to = reinterpret_cast<std::int64_t*>(out.host());
  std::fill(std::copy_n(table, bins, to), to + out.size(), 0);
  return out;
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
  if (!is_integer(x_in.elem()) || is_narrow_float(x_in.elem())) return std::nullopt;
  const NDArray x = x_in.contiguous();
  return with_type(x.elem(), [&]<typename T>(T) -> std::optional<NDArray> {
    if constexpr (std::is_floating_point_v<T>) return std::nullopt;
    else return counts_of_type(x, reinterpret_cast<const T*>(x.host()), least);
  });
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
