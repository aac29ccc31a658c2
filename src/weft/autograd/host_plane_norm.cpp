// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/host_plane_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "weft/array/moments.h"
#include "weft/array/nest.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;

/// Elements that the kernels work on at once.
constexpr I kPlanePiece = 2 * kChunk;
/// Smaller planes are not worth calls of their own.
constexpr I kLeastPlane = 16;
/// Pieces of a run that one task joins.
constexpr I kTaskPieces = 16;

std::size_t place(I i) { return static_cast<std::size_t>(i); }

Elem computed_with(const NDArray& x) {
  return x.elem() == Elem::float64 ? Elem::float64 : Elem::float32;
}

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
  I statistic(I plane) const { return groups ? plane / (channels / groups) : plane % channels; }
  I channel(I plane) const { return plane % channels; }
  /// Neighbours in memory that have the same statistics, and whose they are.
  I run() const { return groups ? each : size; }
  I statistic_of_run(I r) const { return groups ? r : r % channels; }
};

/// An array's memory as numbers of T: where they lie, or widened into a piece of the caller's.
template <typename T>
class Memory {
 public:
  static constexpr Elem kElem = sizeof(T) == 8 ? Elem::float64 : Elem::float32;
  explicit Memory(const NDArray& a) : base_(a.host()), bytes_(elem_bytes(a.elem())) {
    if (a.elem() == kElem) return;
    const auto own = static_cast<int>(a.elem()), wide = static_cast<int>(kElem);
    widen_ = kernels().cast[own][wide], narrow_ = kernels().cast[wide][own];
  }
  const T* read(I first, I n, T* piece) const {
    char* const at = base_ + first * bytes_;
    if (!widen_) return reinterpret_cast<const T*>(at);
    widen_(n, at, piece);
    return piece;
  }
  /// Where to write numbers that `done` takes.
  T* to(I first, T* piece) const {
    return widen_ ? piece : reinterpret_cast<T*>(base_ + first * bytes_);
  }
  void done(I first, I n, const T* piece) const {
    if (narrow_) narrow_(n, piece, base_ + first * bytes_);
  }

 private:
  char* base_;
  int bytes_;
  CastFn widen_ = nullptr, narrow_ = nullptr;
};

template <typename T>
PlaneFn plane_kernel(PlaneKernel k) {
  return loop_kernels().plane[static_cast<int>(k)][static_cast<int>(Memory<T>::kElem)];
}

/// f(plane, first element, how many) for pieces of all planes.
template <typename F>
void for_plane_pieces(const Planes& p, const F& f) {
  runtime::Pool::shared().parallel_for(
      p.count, std::max<I>(1, kParallelGrain / p.size), [&](I plane, I end) {
        for (; plane < end; ++plane) {
          for (I from = 0; from < p.size; from += kPlanePiece)
            f(plane, plane * p.size + from, std::min(kPlanePiece, p.size - from));
        }
      });
}

/// Of each statistic. What is joined, and in what order, depends on the shape alone.
template <typename T>
std::vector<Spread> spreads(const Memory<T>& x, const Planes& p) {
  const I run = p.run(), runs = p.count * p.size / run, part = kTaskPieces * kPlanePiece;
  const I parts = (run + part - 1) / part;
  std::vector<Spread> found(place(runs * parts)), out(place(p.statistics));
  const PlaneFn moments = plane_kernel<T>(PlaneKernel::moments);
  runtime::Pool::shared().parallel_for(
      runs * parts, std::max<I>(1, kParallelGrain / std::min(run, part)), [&](I t, I end) {
        alignas(64) T piece[kPlanePiece];
        for (; t < end; ++t) {
          const I from = t % parts * part, stop = std::min(run, from + part);
          for (I at = from; at < stop; at += kPlanePiece) {
            const I n = std::min(kPlanePiece, stop - at);
            const void* in[1] = {x.read(t / parts * run + at, n, piece)};
            T m[2];
            moments(n, in, m);
            found[place(t)].join(static_cast<double>(n), static_cast<double>(m[0]),
                                 static_cast<double>(m[1]));
          }
        }
      });
  for (I t = 0; t < runs * parts; ++t) {
    const Spread& s = found[place(t)];
    out[place(p.statistic_of_run(t / parts))].join(s.count, s.mean, s.squares);
  }
  return out;
}

/// Of a number for each channel, or none.
template <typename T>
std::vector<T> numbers(const NDArray& a, I count, T none) {
  if (!a.defined()) return std::vector<T>(place(count), none);
  const NDArray held = a.astype(Memory<T>::kElem).contiguous();
  const T* const from = reinterpret_cast<const T*>(held.host());
  return {from, from + count};
}

template <typename T>
NDArray vector_of(const NDArray& like, const std::vector<double>& from) {
  NDArray a = NDArray::empty(like.device(), Memory<T>::kElem, Dims{static_cast<I>(from.size())});
  std::transform(from.begin(), from.end(), reinterpret_cast<T*>(a.host()),
                 [](double v) { return static_cast<T>(v); });
  return a;
}

template <typename T>
HostNorm normalised(const NDArray& x, const NDArray& weight, const NDArray& bias,
                    const PlaneNorm& norm) {
  const Planes p(x, norm);
  const Memory<T> in(x);
  const std::vector<Spread> found = spreads<T>(in, p);
  const std::vector<T> w = numbers<T>(weight, p.channels, 1), b = numbers<T>(bias, p.channels, 0);
  std::vector<double> mean, variance;
  for (const Spread& s : found) mean.push_back(s.mean), variance.push_back(s.squares / s.count);
  HostNorm out{NDArray::empty(x.device(), x.elem(), x.shape()), vector_of<T>(x, mean),
               vector_of<T>(x, variance)};
  const Memory<T> y(out.y);
  const PlaneFn normalise = plane_kernel<T>(PlaneKernel::normalise);
  for_plane_pieces(p, [&](I plane, I first, I n) {
    alignas(64) T piece[kPlanePiece];
    const std::size_t s = place(p.statistic(plane)), c = place(p.channel(plane));
    const T of[3] = {static_cast<T>(mean[s]),
                     static_cast<T>(static_cast<double>(w[c]) / std::sqrt(variance[s] + norm.eps)),
                     b[c]};
    const void* operands[2] = {in.read(first, n, piece), of};
    T* const to = y.to(first, piece);
    normalise(n, operands, to);
    y.done(first, n, to);
  });
  return out;
}

template <typename T>
HostNormGradient gradient(const NDArray& g_in, const NDArray& x_in, const NDArray& mean_of,
                          const NDArray& variance_of, const NDArray& weight,
                          const PlaneNorm& norm) {
  const Planes p(x_in, norm);
  const NDArray held_g = g_in.astype(x_in.elem()).contiguous();
  const Memory<T> g(held_g), x(x_in);
  const std::vector<T> w = numbers<T>(weight, p.channels, 1),
                       mean = numbers<T>(mean_of, p.statistics, 0);
  std::vector<double> spread, sums(place(p.count)), products(place(p.count));
  for (const T v : numbers<T>(variance_of, p.statistics, 0))
    spread.push_back(1 / std::sqrt(static_cast<double>(v) + norm.eps));
  const PlaneFn add = plane_kernel<T>(PlaneKernel::sums);
  for_plane_pieces(p, [&](I plane, I first, I n) {
    alignas(64) T of_x[kPlanePiece], of_g[kPlanePiece];
    const void* operands[3] = {x.read(first, n, of_x), g.read(first, n, of_g),
                               &mean[place(p.statistic(plane))]};
    T found[2];
    add(n, operands, found);
    sums[place(plane)] += static_cast<double>(found[0]);
    products[place(plane)] += static_cast<double>(found[1]);
  });
  // Sums of each statistic, weighted; of each channel.
  std::vector<double> first(place(p.statistics)), second(first), dw(place(p.channels)), db(dw);
  for (I plane = 0; plane < p.count; ++plane) {
    const std::size_t s = place(p.statistic(plane)), c = place(p.channel(plane));
    first[s] += static_cast<double>(w[c]) * sums[place(plane)];
    second[s] += static_cast<double>(w[c]) * products[place(plane)];
    dw[c] += products[place(plane)] * spread[s];
    db[c] += sums[place(plane)];
  }
  HostNormGradient out{NDArray::empty(x_in.device(), x_in.elem(), x_in.shape()),
                       vector_of<T>(x_in, dw), vector_of<T>(x_in, db)};
  const Memory<T> dx(out.x);
  const PlaneFn differentiate = plane_kernel<T>(PlaneKernel::gradient);
  const double share = 1 / static_cast<double>(p.each);
  for_plane_pieces(p, [&](I plane, I from, I n) {
    alignas(64) T of_x[kPlanePiece], of_g[kPlanePiece];
    const std::size_t s = place(p.statistic(plane));
    const double r = spread[s];
    const T of[4] = {mean[s], static_cast<T>(r * static_cast<double>(w[place(p.channel(plane))])),
                     static_cast<T>(-r * r * r * second[s] * share),
                     static_cast<T>(-r * first[s] * share)};
    const void* operands[3] = {x.read(from, n, of_x), g.read(from, n, of_g), of};
    T* const to = dx.to(from, of_x);
    differentiate(n, operands, to);
    dx.done(from, n, to);
  });
  return out;
}

}  // namespace

bool host_has_plane_norm(const NDArray& x) {
  return x.on_host() && x.ndim() >= 2 && x.size() > 0 && is_real_float(x.elem()) &&
         !is_float8(x.elem()) && x.size() >= kLeastPlane * x.shape()[0] * x.shape()[1];
}

HostNorm host_plane_norm(const NDArray& x_in, const NDArray& weight, const NDArray& bias,
                         const PlaneNorm& norm) {
  const NDArray x = x_in.contiguous();
  return computed_with(x) == Elem::float64 ? normalised<double>(x, weight, bias, norm)
                                           : normalised<float>(x, weight, bias, norm);
}

HostNormGradient host_plane_norm_gradient(const NDArray& g, const NDArray& x_in,
                                          const NDArray& mean, const NDArray& variance,
                                          const NDArray& weight, const PlaneNorm& norm) {
  const NDArray x = x_in.contiguous();
  return computed_with(x) == Elem::float64 ? gradient<double>(g, x, mean, variance, weight, norm)
                                           : gradient<float>(g, x, mean, variance, weight, norm);
}

}  // namespace weft
