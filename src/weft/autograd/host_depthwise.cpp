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

/// Channels beside each other: planes that are small leave most of a vector along their rows empty.
template <typename T>
class Beside {
 public:
  static constexpr I kLanes = 64 / static_cast<I>(sizeof(T));
  struct alignas(64) Vector {
    T v[kLanes];
  };

  /// Whether rows are too short for vectors along them; those with steps are cut into phases first,
  /// which takes as long again.
  static bool suits(const Depthwise& s) {
    const I most = s.stride[1] > 1 ? kLanes : kLanes / 2;
    return s.o == s.c && s.c >= kLanes && s.ow <= most;
  }

  explicit Beside(const Depthwise& s)
      : s_(s),
        rows_(std::max(s.h + std::max<I>(s.padding[0], 0), reach(0, s.oh, s.kh))),
        width_(std::max(s.w + std::max<I>(s.padding[1], 0), reach(1, s.ow, s.kw))) {}

  I blocks() const { return (s_.c + kLanes - 1) / kLanes; }
  I lanes(I block) const { return std::min(kLanes, s_.c - block * kLanes); }
  /// Zeros for a plane with its border, for results and for weights.
  std::vector<Vector> planes() const { return make(rows_ * width_); }
  std::vector<Vector> results() const { return make(s_.oh * s_.ow); }
  std::vector<Vector> weights() const { return make(s_.kh * s_.kw); }

  /// The planes of a block of channels with zeros around them, and back.
  void load(const T* x, I image, I block, std::vector<Vector>& to) const {
    const T* from = x + (image * s_.c + block * kLanes) * s_.h * s_.w;
    for (I l = 0; l < lanes(block); ++l, from += s_.h * s_.w)
      each_place([&](I inside, I at) { to[static_cast<std::size_t>(at)].v[l] = from[inside]; });
  }
  void store(T* x, I image, I block, const std::vector<Vector>& from) const {
    T* to = x + (image * s_.c + block * kLanes) * s_.h * s_.w;
    for (I l = 0; l < lanes(block); ++l, to += s_.h * s_.w) {
      std::fill(to, to + s_.h * s_.w, T(0));  // what no window reaches
      each_place([&](I inside, I at) { to[inside] = from[static_cast<std::size_t>(at)].v[l]; });
    }
  }
  /// Rows of `count` elements of a channel each, those of a block beside each other, and back.
  static void turn(const T* from, I lanes, I count, std::vector<Vector>& to) {
    for (I l = 0; l < lanes; ++l)
      for (I i = 0; i < count; ++i) to[static_cast<std::size_t>(i)].v[l] = from[l * count + i];
  }
  static void turn_back(const std::vector<Vector>& from, I lanes, I count, T* to) {
    for (I l = 0; l < lanes; ++l)
      for (I i = 0; i < count; ++i) to[l * count + i] = from[static_cast<std::size_t>(i)].v[l];
  }
  /// fn(result, tap, place of the plane) for all taps of each result.
  template <typename F>
  void each_tap(const F& fn) const {
    for (I y = 0; y < s_.oh; ++y)
      for (I x = 0; x < s_.ow; ++x)
        for (I i = 0; i < s_.kh; ++i) {
          const I row = (y * s_.stride[0] + i * s_.dilation[0]) * width_ + x * s_.stride[1];
          for (I j = 0; j < s_.kw; ++j)
            fn(static_cast<std::size_t>(y * s_.ow + x), static_cast<std::size_t>(i * s_.kw + j),
               static_cast<std::size_t>(row + j * s_.dilation[1]));
        }
  }
  static void add(Vector& sum, const Vector& a, const Vector& b) {
    for (I l = 0; l < kLanes; ++l) sum.v[l] += a.v[l] * b.v[l];
  }

 private:
  static std::vector<Vector> make(I count) {
    return std::vector<Vector>(static_cast<std::size_t>(count));
  }
  I reach(std::size_t axis, I out, I kernel) const {
    return (out - 1) * s_.stride[axis] + (kernel - 1) * s_.dilation[axis] + 1;
  }
  /// fn(place in the plane, place with the border) for all places that have both.
  template <typename F>
  void each_place(const F& fn) const {
    const I first_row = std::max<I>(0, -s_.padding[0]), first = std::max<I>(0, -s_.padding[1]);
    const I last_row = std::min(s_.h, rows_ - s_.padding[0]);
    const I last = std::min(s_.w, width_ - s_.padding[1]);
    for (I y = first_row; y < last_row; ++y)
      for (I x = first; x < last; ++x)
        fn(y * s_.w + x, (y + s_.padding[0]) * width_ + x + s_.padding[1]);
  }

  const Depthwise& s_;
  const I rows_, width_;
};

template <typename T>
void beside_forward(const Depthwise& s, const T* x, const T* weight, T* out) {
  using B = Beside<T>;
  const B b(s);
  const I taps = s.kh * s.kw, places = s.oh * s.ow;
  const I grain = std::max<I>(1, kGrain / (s.n * places * taps * B::kLanes));
  runtime::Pool::shared().parallel_for(b.blocks(), grain, [&](I block, I end) {
    auto plane = b.planes(), sums = b.results(), w = b.weights();
    for (; block < end; ++block) {
      const I lanes = b.lanes(block), channel = block * B::kLanes;
      B::turn(weight + channel * taps, lanes, taps, w);
      for (I image = 0; image < s.n; ++image) {
        b.load(x, image, block, plane);
        std::fill(sums.begin(), sums.end(), typename B::Vector{});
        b.each_tap([&](std::size_t result, std::size_t tap, std::size_t at) {
          B::add(sums[result], plane[at], w[tap]);
        });
        B::turn_back(sums, lanes, places, out + (image * s.o + channel) * places);
      }
    }
  });
}

/// The gradients for x and for the weights: each where its pointer is set.
template <typename T>
void beside_backward(const Depthwise& s, const T* g, const T* x, const T* weight, T* dx, T* dw) {
  using B = Beside<T>;
  const B b(s);
  const I taps = s.kh * s.kw, places = s.oh * s.ow;
  const I grain = std::max<I>(1, kGrain / (s.n * places * taps * B::kLanes));
  // A thread has whole channels, images in order: sums do not depend on the threads.
  runtime::Pool::shared().parallel_for(b.blocks(), grain, [&](I block, I end) {
    auto plane = b.planes(), from = b.results(), w = b.weights();
    for (; block < end; ++block) {
      const I lanes = b.lanes(block), channel = block * B::kLanes;
      if (dx) B::turn(weight + channel * taps, lanes, taps, w);
      else std::fill(w.begin(), w.end(), typename B::Vector{});
      for (I image = 0; image < s.n; ++image) {
        B::turn(g + (image * s.o + channel) * places, lanes, places, from);
        if (dx) {
          std::fill(plane.begin(), plane.end(), typename B::Vector{});
          b.each_tap([&](std::size_t result, std::size_t tap, std::size_t at) {
            B::add(plane[at], from[result], w[tap]);
          });
          b.store(dx, image, block, plane);
        } else {
          b.load(x, image, block, plane);
          b.each_tap([&](std::size_t result, std::size_t tap, std::size_t at) {
            B::add(w[tap], from[result], plane[at]);
          });
        }
      }
      if (dw) B::turn_back(w, lanes, taps, dw + channel * taps);
    }
  });
}

}  // namespace

template <typename T>
void depthwise_forward(const Depthwise& s, const T* x, const T* weight, T* out) {
  if (Beside<T>::suits(s)) return beside_forward<T>(s, x, weight, out);
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
  if (Beside<T>::suits(s)) return beside_backward<T>(s, g, nullptr, weight, x, nullptr);
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
  if (Beside<T>::suits(s)) return beside_backward<T>(s, g, x, nullptr, nullptr, weight);
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
