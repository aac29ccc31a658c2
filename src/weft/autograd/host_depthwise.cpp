// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/host_depthwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;

template <typename T, typename F>
F kernel(VectorKernel k) {
  return vector_kernels().get<F>(k, sizeof(T) == 4 ? Elem::float32 : Elem::float64);
}

constexpr I kGrain = 1 << 15;

}  // namespace

template <typename T>
void depthwise_forward(const Depthwise& s, const T* x, const T* weight, T* out) {
  const Phases phases(s);
  const auto columns = kernel<T, ColumnsFn>(VectorKernel::columns);
  const I each = s.o / s.c, grain = std::max<I>(1, kGrain / (phases.run * s.kh * s.kw));
  runtime::Pool::shared().parallel_for(s.n * s.c, grain, [&](I plane, I end) {
    std::vector<T> cut(static_cast<std::size_t>(phases.count() * phases.size()));
    std::vector<T> sums(static_cast<std::size_t>(phases.run)), w(static_cast<std::size_t>(s.kw));
    for (; plane < end; ++plane) {
      phases.cut(x + plane * s.h * s.w, cut.data());
      for (I k = 0; k < each; ++k) {
        const I channel = plane % s.c * each + k;
        std::fill(sums.begin(), sums.end(), T(0));
        for (const Phases::Taps& t : phases.taps) {
          phases.weights(t, weight + channel * s.kh * s.kw, false, w.data());
          columns(cut.data() + phases.phase(t) * phases.size() + phases.offset(t), w.data(),
                  sums.data(), phases.run, t.count, t.step);
        }
        T* to = out + (plane / s.c * s.o + channel) * s.oh * s.ow;
        for (I y = 0; y < s.oh; ++y)
          std::memcpy(to + y * s.ow, sums.data() + y * phases.width,
                      static_cast<std::size_t>(s.ow) * sizeof(T));
      }
    }
  });
}

template <typename T>
void depthwise_input(const Depthwise& s, const T* g, const T* weight, T* x) {
  const Phases phases(s);
  const auto columns = kernel<T, ColumnsFn>(VectorKernel::columns);
  const I each = s.o / s.c, grain = std::max<I>(1, kGrain / (phases.run * s.kh * s.kw));
  runtime::Pool::shared().parallel_for(s.n * s.c, grain, [&](I plane, I end) {
    std::vector<T> cut(static_cast<std::size_t>(phases.count() * phases.size()));
    // Zeros before and behind: every place of a phase asks for the result at all distances.
    std::vector<T> from(static_cast<std::size_t>(2 * phases.before + phases.size()), T(0));
    std::vector<T> w(static_cast<std::size_t>(s.kw));
    for (; plane < end; ++plane) {
      std::fill(cut.begin(), cut.end(), T(0));
      for (I k = 0; k < each; ++k) {
        const I channel = plane % s.c * each + k;
        phases.spread(g + (plane / s.c * s.o + channel) * s.oh * s.ow, from.data() + phases.before);
        for (const Phases::Taps& t : phases.taps) {
          phases.weights(t, weight + channel * s.kh * s.kw, true, w.data());
          const I most = phases.offset(t) + (t.count - 1) * t.step;
          columns(from.data() + phases.before - most, w.data(),
                  cut.data() + phases.phase(t) * phases.size(), phases.size(), t.count, t.step);
        }
      }
      phases.join(cut.data(), x + plane * s.h * s.w);
    }
  });
}

template <typename T>
void depthwise_weight(const Depthwise& s, const T* g, const T* x, T* weight) {
  const Phases phases(s);
  const auto four = kernel<T, DotFn>(VectorKernel::dot_four);
  const auto one = kernel<T, DotFn>(VectorKernel::dot_one);
  const I each = s.o / s.c, taps = s.kh * s.kw;
  const I grain = std::max<I>(1, kGrain / (s.n * phases.run * taps));
  // A thread has whole channels, images in order: sums do not depend on the threads.
  runtime::Pool::shared().parallel_for(s.c, grain, [&](I c, I end) {
    std::vector<T> cut(static_cast<std::size_t>(phases.count() * phases.size()));
    std::vector<T> from(static_cast<std::size_t>(phases.run));
    for (; c < end; ++c) {
      T* out = weight + c * each * taps;
      std::fill(out, out + each * taps, T(0));
      for (I image = 0; image < s.n; ++image) {
        phases.cut(x + (image * s.c + c) * s.h * s.w, cut.data());
        for (I k = 0; k < each; ++k) {
          phases.spread(g + (image * s.o + c * each + k) * s.oh * s.ow, from.data());
          for (const Phases::Taps& t : phases.taps) {
            const T* a = cut.data() + phases.phase(t) * phases.size() + phases.offset(t);
            T* to = out + k * taps + t.window_row * s.kw + t.first;
            for (I p = 0; p < t.count;) {
              T found[4];
              const I many = t.count - p >= 4 ? 4 : 1;
              (many == 4 ? four : one)(a + p * t.step, from.data(), found, phases.run, t.step);
              for (I i = 0; i < many; ++i) to[(p + i) * t.stride] += found[i];
              p += many;
            }
          }
        }
      }
    }
  });
}

template void depthwise_forward(const Depthwise&, const float*, const float*, float*);
template void depthwise_forward(const Depthwise&, const double*, const double*, double*);
template void depthwise_input(const Depthwise&, const float*, const float*, float*);
template void depthwise_input(const Depthwise&, const double*, const double*, double*);
template void depthwise_weight(const Depthwise&, const float*, const float*, float*);
template void depthwise_weight(const Depthwise&, const double*, const double*, double*);

}  // namespace weft
