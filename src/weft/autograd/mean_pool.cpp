// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/mean_pool.h"

#include <algorithm>
#include <vector>

#include "weft/array/nest.h"
#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/devices/reciprocal.h"
#include "weft/operators/pool.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;
using operators::MeanOf;

/// The elements of one window along one axis, and what it counts in the divisor.
struct Span {
  I from, to, count;
};
std::vector<Span> spans(const MeanWindows& m, std::size_t axis) {
  const PoolWindows& w = m.windows;
  const I n = w.extents[axis], windows = w.windows[axis];
  std::vector<Span> out;
  for (I o = 0; o < windows; ++o) {
    if (m.adaptive) {
      const I from = o * n / windows, to = ceil_div((o + 1) * n, windows);
      out.push_back({from, to, to - from});
      continue;
    }
    const I start = o * w.stride[axis] - w.padding[axis], end = start + w.kernel[axis];
    const I from = std::max<I>(start, 0), to = std::min(end, n);
    out.push_back(
        {from, to,
         m.of == MeanOf::with_border ? std::min(end, n + w.padding[axis]) - start : to - from});
  }
  return out;
}

/// On the host: a row of sums over depth and height, then sums along it; back the other way.
template <typename T>
void on_host(const MeanWindows& m, const T* from, T* to, bool back) {
  const PoolWindows& w = m.windows;
  const std::vector<Span> deep = spans(m, 0), high = spans(m, 1), wide = spans(m, 2);
  const I width = w.extents[2], area = w.extents[1] * width, size = w.extents[0] * area;
  const I results = w.windows[0] * w.windows[1] * w.windows[2];
  runtime::Pool::shared().parallel_for(
      w.planes, std::max<I>(1, kParallelGrain / std::max<I>(1, size)), [&](I p, I end) {
        std::vector<T> row(static_cast<std::size_t>(width));
        for (; p < end; ++p) {
          const T* in = from + p * (back ? results : size);
          T* out = to + p * (back ? size : results);
          if (back) std::fill(out, out + size, T(0));
          for (const Span& z : deep) {
            for (const Span& y : high) {
              std::fill(row.begin(), row.end(), T(0));
              auto each_row = [&](auto&& fn) {
                for (I i = z.from; i < z.to; ++i)
                  for (I j = y.from; j < y.to; ++j) fn(i * area + j * width);
              };
              if (!back) {
                each_row([&](I at) {
                  const T* line = in + at;
                  for (I k = 0; k < width; ++k) row[static_cast<std::size_t>(k)] += line[k];
                });
              }
              for (const Span& x : wide) {
                const T count = static_cast<T>(m.of == MeanOf::number && !m.adaptive
                                                   ? m.divisor
                                                   : z.count * y.count * x.count);
                if (back) {
                  const T share = *in++ / count;
                  for (I k = x.from; k < x.to; ++k) row[static_cast<std::size_t>(k)] += share;
                } else {
                  T sum = 0;
                  for (I k = x.from; k < x.to; ++k) sum += row[static_cast<std::size_t>(k)];
                  *out++ = sum / count;
                }
              }
              if (back) {
                each_row([&](I at) {
                  T* line = out + at;
                  for (I k = 0; k < width; ++k) line[k] += row[static_cast<std::size_t>(k)];
                });
              }
            }
          }
        }
      });
}

void on_grid(const MeanWindows& m, const NDArray& from, const NDArray& out, bool back) {
  const PoolWindows& w = m.windows;
  operators::MeanPoolSpec spec;
  spec.type = std::string(name_of(out.elem()));
  spec.sums = std::string(name_of(device::sum_elem(out.elem())));
  spec.adaptive = m.adaptive;
  spec.of = m.of, spec.divisor = static_cast<int>(m.divisor);
  for (std::size_t a = 0; a < 3; ++a) {
    spec.kernel[a] = static_cast<int>(w.kernel[a]), spec.stride[a] = static_cast<int>(w.stride[a]);
    spec.padding[a] = static_cast<int>(w.padding[a]);
  }
  // Products of a window's number and an extent must fit, too.
  I largest = std::max(from.size(), out.size());
  for (std::size_t a = 0; a < 3; ++a)
    largest = std::max(largest, (w.extents[a] + 1) * (w.windows[a] + 1));
  spec.narrow = device::fits_narrow(largest);
  I places = 1;
  spec.whole = !m.adaptive;
  for (std::size_t a = 0; a < 3; ++a) {
    places *= spec.kernel[a];
    spec.whole = spec.whole && w.padding[a] == 0 &&
                 (w.windows[a] - 1) * w.stride[a] + w.kernel[a] <= w.extents[a];
  }
  spec.written = !m.adaptive && places <= operators::kWrittenPlaces && from.size() > 0;
  auto absent = [&](std::size_t a) {
    return w.extents[a] == 1 && w.windows[a] == 1 &&
           (m.adaptive || (w.kernel[a] == 1 && w.padding[a] == 0));
  };
  while (spec.first < 2 && absent(static_cast<std::size_t>(spec.first))) ++spec.first;
  ProgramCall call(out.device());
  call.array(from).array(out);
  call.integer(ceil_div(out.size(), operators::kPoolThreads)).integer(out.size());
  for (I n : w.extents) call.integer(n);
  for (I n : w.windows) call.integer(n);
  const auto& cut = back ? w.extents : w.windows;
  for (std::size_t a = static_cast<std::size_t>(spec.first); a < 3 && spec.narrow; ++a) {
    const device::Reciprocal r = device::reciprocal_of(cut[a]);
    call.integer(r.factor).integer(r.shift);
  }
  const auto &k = spec.kernel, &s = spec.stride, &p = spec.padding;
  const ProgramKey key(back ? "pool.mean_spread" : "pool.mean",
                       {static_cast<int>(out.elem()), spec.narrow, spec.adaptive,
                        static_cast<int>(spec.of), spec.divisor, spec.first, spec.whole,
                        spec.written, k[0], k[1], k[2], s[0], s[1], s[2], p[0], p[1], p[2]});
  call.run(key, [&] { return back ? mean_pool_spread(spec) : mean_pool(spec); });
}

Tensor apply_windows(const Tensor& x, const MeanWindows& m, const Dims& out_shape, bool back) {
  const NDArray in = x.data().contiguous();
  NDArray out = NDArray::empty(in.device(), in.elem(), out_shape);
  const Elem wide = device::sum_elem(in.elem());
  if (out.size() == 0) {
    // nothing to compute
  } else if (!in.on_host()) {
    on_grid(m, in, out, back);
  } else if (wide != in.elem()) {
    const NDArray result = NDArray::empty(in.device(), wide, out_shape);
    const NDArray given = in.astype(wide);
    on_host(m, reinterpret_cast<const float*>(given.host()),
            reinterpret_cast<float*>(result.host()), back);
    assign(out, result);
  } else if (wide == Elem::float64) {
    on_host(m, reinterpret_cast<const double*>(in.host()), reinterpret_cast<double*>(out.host()),
            back);
  } else {
    on_host(m, reinterpret_cast<const float*>(in.host()), reinterpret_cast<float*>(out.host()),
            back);
  }
  return make_tensor(
      back ? "mean_pool_spread" : "mean_pool", std::move(out), {x},
      [m, back, shape = x.shape()](const GradientCall& c) {
        return std::vector<Tensor>{apply_windows(c.g, m, shape, !back)};
      },
      kReadsNothing);
}

}  // namespace

Tensor mean_pool(const Tensor& x, const MeanWindows& windows, const Dims& out_shape) {
  return apply_windows(x, windows, out_shape, false);
}

}  // namespace weft
