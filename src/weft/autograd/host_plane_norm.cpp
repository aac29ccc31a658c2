// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/host_plane_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "weft/array/moments.h"
#include "weft/array/nest.h"
#include "weft/host/kernel_lists.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;

/// Elements of a plane that its kernels work on at once: they stay in the first cache.
constexpr I kPiece = 2 * kChunk;
/// Planes smaller than this one are not worth calls of their own.
constexpr I kLeastPlane = 16;

/// Which statistics and which weight a plane has.
struct Planes {
  I count, channels, size, statistics, each;  // elements of a plane; of statistics
  I groups;
  Planes(const NDArray& x, const PlaneNorm& norm)
      : count(x.shape()[0] * x.shape()[1]),
        channels(x.shape()[1]),
        size(x.size() / count),
        statistics(norm.groups ? x.shape()[0] * norm.groups : channels),
        each(x.size() / statistics),
        groups(norm.groups) {}
  I statistic(I plane) const {
    return groups ? plane / (channels / groups) : plane % channels;
  }
  I channel(I plane) const { return plane % channels; }
  I grain() const { return std::max<I>(1, kParallelGrain / size); }
};

template <typename T>
struct Steps {
  static constexpr Elem kElem = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
  ElementwiseFn minus = one_kernel(1, Op::subtract, kElem),
                times = one_kernel(1, Op::multiply, kElem), plus = one_kernel(1, Op::add, kElem);
  AccumulateFn add = kernels().accumulate[static_cast<int>(ReduceOp::sum)][static_cast<int>(kElem)];
  ReduceFn sum = kernels().reduce[static_cast<int>(ReduceOp::sum)][static_cast<int>(kElem)];
  DotFn dot = vector_kernels().get<DotFn>(VectorKernel::dot_long, kElem);
};
template <typename T>
void apply_one(ElementwiseFn f, I n, const T* x, T number, T* out) {
  const void* in[2] = {x, &number};
  f(n, in, out);
}

template <typename T>
const T* at(const NDArray& a) {
  return reinterpret_cast<const T*>(a.host());
}

/// Of a number for each channel, or none.
template <typename T>
std::vector<T> numbers(const NDArray& a, I count, T none) {
  if (!a.defined()) return std::vector<T>(static_cast<std::size_t>(count), none);
  const NDArray held = a.contiguous();
  return {at<T>(held), at<T>(held) + count};
}

template <typename T>
void normalize(const NDArray& x, const HostNorm& to, const NDArray& weight, const NDArray& bias,
               const PlaneNorm& norm) {
  const Planes p(x, norm);
  const Steps<T> steps;
  const std::vector<T> w = numbers<T>(weight, p.channels, 1), b = numbers<T>(bias, p.channels, 0);
  const T *mean = at<T>(to.mean), *variance = at<T>(to.variance), *in = at<T>(x);
  T* out = reinterpret_cast<T*>(to.y.host());
  runtime::Pool::shared().parallel_for(p.count, p.grain(), [&](I plane, I end) {
    for (; plane < end; ++plane) {
      const I s = p.statistic(plane), c = p.channel(plane);
      const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(variance[s]) + norm.eps)) *
                      w[static_cast<std::size_t>(c)];
      for (I from = 0; from < p.size; from += kPiece) {
        const I n = std::min(kPiece, p.size - from), first = plane * p.size + from;
        apply_one(steps.minus, n, in + first, mean[s], out + first);
        apply_one<T>(steps.times, n, out + first, scale, out + first);
        if (bias.defined())
          apply_one(steps.plus, n, out + first, b[static_cast<std::size_t>(c)], out + first);
      }
    }
  });
}

template <typename T>
HostNormGradient gradient(const NDArray& g_in, const NDArray& x_in, const NDArray& mean_of,
                          const NDArray& variance_of, const NDArray& weight,
                          const PlaneNorm& norm) {
  const Planes p(x_in, norm);
  const Steps<T> steps;
  const NDArray held_g = g_in.contiguous(), held_x = x_in.contiguous();
  const T *g = at<T>(held_g), *x = at<T>(held_x), *mean = at<T>(mean_of);
  const std::vector<T> w = numbers<T>(weight, p.channels, 1);
  auto index = [](I i) { return static_cast<std::size_t>(i); };
  std::vector<double> spread(index(p.statistics)), sums(index(p.count)), products(index(p.count));
  for (I s = 0; s < p.statistics; ++s)
    spread[index(s)] = 1 / std::sqrt(static_cast<double>(at<T>(variance_of)[s]) + norm.eps);
  auto& pool = runtime::Pool::shared();
  pool.parallel_for(p.count, p.grain(), [&](I plane, I end) {
    alignas(64) T centred[kPiece];
    for (; plane < end; ++plane) {
      for (I from = 0; from < p.size; from += kPiece) {
        const I n = std::min(kPiece, p.size - from), first = plane * p.size + from;
        apply_one(steps.minus, n, x + first, mean[p.statistic(plane)], centred);
        T sum, product;
        steps.sum(n, g + first, &sum);
        steps.dot(centred, g + first, &product, n, 0);
        sums[index(plane)] += static_cast<double>(sum);
        products[index(plane)] += static_cast<double>(product);
      }
    }
  });
  // Sums of each statistic, weighted; of each channel.
  std::vector<double> first(index(p.statistics)), second(index(p.statistics)),
      dw(index(p.channels)), db(index(p.channels));
  for (I plane = 0; plane < p.count; ++plane) {
    const I s = p.statistic(plane), c = p.channel(plane);
    const auto weighted = static_cast<double>(w[index(c)]);
    first[index(s)] += weighted * sums[index(plane)];
    second[index(s)] += weighted * products[index(plane)];
    dw[index(c)] += products[index(plane)] * spread[index(s)];
    db[index(c)] += sums[index(plane)];
  }
  HostNormGradient out;
  auto channels = [&](const std::vector<double>& from) {
    NDArray a = NDArray::empty(x_in.device(), Steps<T>::kElem, Dims{p.channels});
    std::transform(from.begin(), from.end(), reinterpret_cast<T*>(a.host()),
                   [](double v) { return static_cast<T>(v); });
    return a;
  };
  out.weight = channels(dw), out.bias = channels(db);
  out.x = NDArray::empty(x_in.device(), Steps<T>::kElem, x_in.shape());
  T* to = reinterpret_cast<T*>(out.x.host());
  pool.parallel_for(p.count, p.grain(), [&](I plane, I end) {
    alignas(64) T centred[kPiece];
    for (; plane < end; ++plane) {
      const I s = p.statistic(plane);
      const double r = spread[index(s)], share = 1 / static_cast<double>(p.each);
      const T of_g = static_cast<T>(r * static_cast<double>(w[index(p.channel(plane))])),
              of_x = static_cast<T>(-r * r * r * second[index(s)] * share),
              rest = static_cast<T>(-r * first[index(s)] * share);
      for (I from = 0; from < p.size; from += kPiece) {
        const I n = std::min(kPiece, p.size - from), at = plane * p.size + from;
        apply_one(steps.minus, n, x + at, mean[s], centred);
        apply_one(steps.times, n, static_cast<const T*>(centred), of_x, centred);
        apply_one(steps.times, n, g + at, of_g, to + at);
        steps.add(n, centred, to + at);
        apply_one<T>(steps.plus, n, to + at, rest, to + at);
      }
    }
  });
  return out;
}

}  // namespace

bool host_has_plane_norm(const NDArray& x) {
  return x.on_host() && x.ndim() >= 2 && x.size() > 0 &&
         (x.elem() == Elem::float32 || x.elem() == Elem::float64) &&
         x.size() >= kLeastPlane * x.shape()[0] * x.shape()[1];
}

HostNorm host_plane_norm(const NDArray& x_in, const NDArray& weight, const NDArray& bias,
                         const PlaneNorm& norm) {
  const NDArray x = x_in.contiguous();
  const Planes p(x, norm);
  HostNorm out;
  NDArray rows = norm.groups ? x.reshape(Dims{p.statistics, p.each})
                             : x.reshape(Dims{x.shape()[0], p.channels, p.size});
  const std::uint64_t over = norm.groups ? 2u : 5u;
  const Moments found = host_mean_and_variance(rows, over);
  out.mean = found.mean, out.variance = found.variance;
  out.y = NDArray::empty(x.device(), x.elem(), x.shape());
  if (x.elem() == Elem::float64) normalize<double>(x, out, weight, bias, norm);
  else normalize<float>(x, out, weight, bias, norm);
  return out;
}

HostNormGradient host_plane_norm_gradient(const NDArray& g, const NDArray& x, const NDArray& mean,
                                          const NDArray& variance, const NDArray& weight,
                                          const PlaneNorm& norm) {
  return x.elem() == Elem::float64 ? gradient<double>(g, x, mean, variance, weight, norm)
                                   : gradient<float>(g, x, mean, variance, weight, norm);
}

}  // namespace weft
