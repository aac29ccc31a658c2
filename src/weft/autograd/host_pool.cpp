// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/host_pool.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/array/nest.h"
#include "weft/elements/with_type.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;

/// Taps of a window that lie inside an axis: [from, to), of which the first is at `at`.
struct Taps {
  I from, to, at;
  Taps(const PoolWindows& w, std::size_t axis, I window) {
    const I start = window * w.stride[axis] - w.padding[axis], d = w.dilation[axis];
    from = start < 0 ? (-start + d - 1) / d : 0;
    to = std::min(w.kernel[axis], (w.extents[axis] - start + d - 1) / d);
    at = start + from * d;
  }
};

/// The largest of one window, without a branch on values.
template <typename T>
void largest(const PoolWindows& w, const T* plane, const Taps& z, const Taps& y, const Taps& x,
             T& value, I& place) {
  const I width = w.extents[2], area = w.extents[1] * width;
  I here = z.at * area + y.at * width + x.at;
  I at = here;
  for (I i = z.from; i < z.to; ++i) {
    for (I j = y.from; j < y.to; ++j) {
      here = (z.at + (i - z.from) * w.dilation[0]) * area +
             (y.at + (j - y.from) * w.dilation[1]) * width + x.at;
      for (I k = x.from; k < x.to; ++k, here += w.dilation[2]) {
        const T v = plane[here], best = plane[at];
        const bool better = (v > best) | ((v != v) & (best == best));
        at += (here - at) & -static_cast<I>(better);  // a branch would be missed every other time
      }
    }
  }
  value = plane[at];
  place = at;
}

template <typename T>
void pool_max(const PoolWindows& w, const T* x, T* out, I* at) {
  const I size = w.extents[0] * w.extents[1] * w.extents[2];
  const I results = w.windows[0] * w.windows[1] * w.windows[2];
  const I taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
  std::vector<Taps> across;
  for (I k = 0; k < w.windows[2]; ++k) across.emplace_back(w, 2, k);
  runtime::Pool::shared().parallel_for(
      w.planes, std::max<I>(1, kParallelGrain / std::max<I>(1, results * taps)), [&](I p, I end) {
        for (; p < end; ++p) {
          I to = p * results;
          for (I z = 0; z < w.windows[0]; ++z) {
            for (I y = 0; y < w.windows[1]; ++y) {
              const Taps deep(w, 0, z), high(w, 1, y);
              for (const Taps& wide : across) {
                largest(w, x + p * size, deep, high, wide, out[to], at[to]);
                ++to;
              }
            }
          }
        }
      });
}

/// fn(a plane's number) for all planes.
template <typename F>
void each_plane(const PoolWindows& w, const F& fn) {
  const I size = w.extents[0] * w.extents[1] * w.extents[2];
  runtime::Pool::shared().parallel_for(w.planes, std::max<I>(1, kParallelGrain / size),
                                       [&](I p, I end) {
                                         for (; p < end; ++p) fn(p);
                                       });
}

/// Types without comparisons or sums of their own are computed in float32.
bool narrow(const NDArray& a) { return a.elem() != arithmetic_elem(a.elem()); }

template <typename T>
T* data(const NDArray& a) {
  return reinterpret_cast<T*>(a.host());
}

}  // namespace

void host_pool_max(const PoolWindows& w, const NDArray& x, const NDArray& out, const NDArray& at) {
  if (narrow(x)) {
    const NDArray wide = NDArray::empty(x.device(), Elem::float32, out.shape());
    host_pool_max(w, x.astype(Elem::float32), wide, at);
    return assign(out, wide);
  }
  with_type(x.elem(),
            [&]<typename T>(T) { pool_max<T>(w, data<T>(x), data<T>(out), data<I>(at)); });
}

void host_pool_spread(const PoolWindows& w, const NDArray& g, const NDArray& at,
                      const NDArray& out) {
  if (narrow(g)) {
    const NDArray wide = NDArray::empty(g.device(), Elem::float32, out.shape());
    host_pool_spread(w, g.astype(Elem::float32), at, wide);
    return assign(out, wide);
  }
  const I size = w.extents[0] * w.extents[1] * w.extents[2];
  const I results = w.windows[0] * w.windows[1] * w.windows[2];
  with_type(g.elem(), [&]<typename T>(T) {
    each_plane(w, [&](I p) {
      T* to = data<T>(out) + p * size;
      const T* from = data<T>(g) + p * results;
      const I* places = data<I>(at) + p * results;
      std::memset(to, 0, static_cast<std::size_t>(size) * sizeof(T));
      for (I i = 0; i < results; ++i) to[places[i]] = static_cast<T>(to[places[i]] + from[i]);
    });
  });
}

void host_pool_pick(const PoolWindows& w, const NDArray& x, const NDArray& at, const NDArray& out) {
  const I size = w.extents[0] * w.extents[1] * w.extents[2];
  const I results = w.windows[0] * w.windows[1] * w.windows[2];
  const auto bytes = static_cast<std::size_t>(elem_bytes(x.elem()));
  each_plane(w, [&](I p) {
    const char* from = x.host() + static_cast<std::size_t>(p * size) * bytes;
    char* to = out.host() + static_cast<std::size_t>(p * results) * bytes;
    const I* places = data<I>(at) + p * results;
    for (I i = 0; i < results; ++i, to += bytes)
      std::memcpy(to, from + static_cast<std::size_t>(places[i]) * bytes, bytes);
  });
}

}  // namespace weft
