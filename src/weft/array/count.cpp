// SPDX-License-Identifier: Apache-2.0
// Counts. Neighbours count in tables of their own: of equal ones each would wait for the one
// before. What lies outside is counted behind a table's end.

#include "weft/array/count.h"

#include <algorithm>
#include <vector>

#include "weft/array/ops.h"
#include "weft/elements/with_type.h"
#include "weft/host/kernels.h"

namespace weft {

namespace {

constexpr std::int64_t kTables = 4;

/// Counts of place(i) for i in [0, n), to int64 numbers; places from bins on do not count.
template <typename F>
void count(std::int64_t n, std::int64_t bins, std::int64_t* total, const F& place) {
  constexpr std::int64_t kMostBins = 4096;
  const std::int64_t width = bins + 1,
                     tables = bins <= kMostBins && n >= 4 * bins ? kTables : 1;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(tables * width));
  const std::int64_t step = tables == 1 ? 0 : width;
  const auto last = static_cast<std::uint64_t>(bins);
  std::int64_t i = 0;
  for (; i + kTables <= n; i += kTables) {
    for (std::int64_t t = 0; t < kTables; ++t)
      ++counts[static_cast<std::size_t>(t * step) + std::min(place(i + t), last)];
  }
  for (; i < n; ++i) ++counts[std::min(place(i), last)];
  std::copy_n(counts.begin(), bins, total);
  for (std::int64_t t = 1; t < tables; ++t) {
    for (std::int64_t k = 0; k < bins; ++k)
      total[k] += counts[static_cast<std::size_t>(t * width + k)];
  }
}

template <typename T>
void count_integers(const T* at, std::int64_t n, std::int64_t bins, std::int64_t* total) {
  count(n, bins, total, [&](std::int64_t i) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(at[i]));
  });
}

/// The place in proportion, put right where rounding took it beyond an end.
template <typename T>
void count_in_bins(const T* x, std::int64_t n, const T* edges, std::int64_t bins,
                   std::int64_t* total) {
  const T low = edges[0], high = edges[bins];
  const T scale = static_cast<T>(static_cast<double>(bins) /
                                 (static_cast<double>(high) - static_cast<double>(low)));
  count(n, bins, total, [&](std::int64_t i) {
    const T v = x[i];
    const bool inside = v >= low && v <= high;
    std::int64_t at = std::min(static_cast<std::int64_t>(inside ? (v - low) * scale : T(0)),
                               bins - 1);
    at -= v < edges[at];
    at += at < bins - 1 && v >= edges[at + 1];
    return static_cast<std::uint64_t>(inside ? at : bins);
  });
}

template <typename W, typename T>
void add_weights(const T* at, std::int64_t n, const NDArray& weights, const NDArray& out) {
  const auto* w = reinterpret_cast<const W*>(weights.host());
  auto* total = reinterpret_cast<W*>(out.host());
  std::fill_n(total, out.size(), W(0));
  for (std::int64_t i = 0; i < n; ++i) total[at[i]] += w[i];
}

}  // namespace

NDArray counts_of(const NDArray& places, std::int64_t bins) {
  const NDArray x = places.contiguous();
  const NDArray out = NDArray::empty(x.device(), Elem::int64, Dims{bins});
  count_integers(reinterpret_cast<const std::int64_t*>(x.host()), x.size(), bins,
                 reinterpret_cast<std::int64_t*>(out.host()));
  return out;
}

std::optional<NDArray> counts_from_zero(const NDArray& x_in, std::int64_t least,
                                        const std::optional<NDArray>& weights) {
  const NDArray x = x_in.contiguous();
  const Elem e = x.elem() == Elem::boolean ? Elem::uint8 : x.elem();
  NDArray out;
  const bool done = with_type(e, [&]<typename T>(T) {
    const auto* at = reinterpret_cast<const T*>(x.host());
    std::int64_t bins = least;
    if (x.size() > 0) {
      const auto extreme = [&](ReduceOp op) {
        T value = 0;
        kernels().reduce[static_cast<int>(op)][static_cast<int>(e)](x.size(), at, &value);
        return value;
      };
      if (extreme(ReduceOp::min) < T(0)) return false;
      const auto most = static_cast<std::int64_t>(extreme(ReduceOp::max));
      if (most < 0) return false;
      bins = std::max(bins, most + 1);
    }
    out = NDArray::empty(x.device(), weights ? weights->elem() : Elem::int64, Dims{bins});
    if constexpr (std::is_integral_v<T>) {
      const NDArray w = weights ? weights->contiguous() : NDArray();
      if (!weights)
        count_integers(at, x.size(), bins, reinterpret_cast<std::int64_t*>(out.host()));
      else if (w.elem() == Elem::float64) add_weights<double>(at, x.size(), w, out);
      else add_weights<float>(at, x.size(), w, out);
    }
    return true;
  });
  return done ? std::optional(out) : std::nullopt;
}

NDArray counts_in_bins(const NDArray& x_in, const NDArray& edges_in) {
  const NDArray x = x_in.contiguous(), edges = edges_in.contiguous();
  const std::int64_t bins = edges.size() - 1;
  const NDArray out = NDArray::empty(x.device(), Elem::int64, Dims{bins});
  const auto run = [&]<typename T>(T) {
    count_in_bins(reinterpret_cast<const T*>(x.host()), x.size(),
                  reinterpret_cast<const T*>(edges.host()), bins,
                  reinterpret_cast<std::int64_t*>(out.host()));
  };
  if (x.elem() == Elem::float64) run(double{});
  else run(float{});
  return out;
}

}  // namespace weft
