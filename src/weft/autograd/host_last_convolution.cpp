// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/host_last_convolution.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "weft/autograd/convolution_sizes.h"
#include "weft/host/gemm.h"
#include "weft/host/vector_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace last_order {
namespace {

using I = std::int64_t;
using runtime::Pool;

/// Bytes of windows that are laid out at a time: they stay in a second-level cache.
constexpr I kLaidBytes = I{1} << 19;
/// Channels that a task of a depthwise gradient has; multiplications of a task.
constexpr I kChannels = 64, kWork = I{1} << 15;

/// Images are (n, h, w, c), weights (o, kh, kw, c / groups), or (kh, kw, c) of depthwise ones.
struct Sizes : ConvolutionSizes {
  using ConvolutionSizes::ConvolutionSizes;
  bool depthwise() const { return cg == 1 && og == 1; }
  I places() const { return n * oh * ow; }
  /// The row of the image that row i of the window of output row y reads; outside: not in [0, h).
  I row(I y, I i) const { return y * stride[0] - padding[0] + i * dilation[0]; }
  I column(I x, I j) const { return x * stride[1] - padding[1] + j * dilation[1]; }
  bool has_row(I at) const { return at >= 0 && at < h; }
  /// Columns of the window [first, second) of output column x that lie in the image.
  std::pair<I, I> columns(I x) const {
    const I left = column(x, 0), d = dilation[1];
    const I first = left < 0 ? std::min(kw, (-left + d - 1) / d) : 0;
    return {first, left >= w ? first : std::clamp((w - 1 - left) / d + 1, first, kw)};
  }
  /// Output columns [first, second) for which column j of the window lies in the image.
  std::pair<I, I> results(I j) const {
    const I shift = padding[1] - j * dilation[1], last = w - 1 + shift;
    const I first = shift > 0 ? (shift + stride[1] - 1) / stride[1] : 0;
    const I end = last < 0 ? 0 : std::min(ow, last / stride[1] + 1);
    return {std::min(first, end), end};
  }
};

/// With steps of one the gradient for the image is a convolution of the result's gradient with the
/// weights turned round.
Sizes turned(const Sizes& s) {
  Sizes t = s;
  t.c = s.o, t.o = s.c, t.cg = s.og, t.og = s.cg;
  t.h = s.oh, t.w = s.ow, t.oh = s.h, t.ow = s.w;
  t.k = t.cg * s.kh * s.kw;
  t.padding = {(s.kh - 1) * s.dilation[0] - s.padding[0],
               (s.kw - 1) * s.dilation[1] - s.padding[1]};
  return t;
}

template <typename T>
ProductsFn products_of() {
  return vector_kernels().get<ProductsFn>(VectorKernel::products,
                                          sizeof(T) == 4 ? Elem::float32 : Elem::float64);
}

template <typename T>
std::unique_ptr<T[]> room(I count) {
  return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count));
}

// ---- depthwise

template <typename T>
void depthwise(const Sizes& s, const T* x, const T* weight, T* out) {
  const ProductsFn products = products_of<T>();
  const I grain = std::max<I>(1, kWork / (s.ow * s.c * s.kh * s.kw));
  Pool::shared().parallel_for(s.n * s.oh, grain, [&](I row, I end) {
    for (; row < end; ++row) {
      T* to = out + row * s.ow * s.c;
      std::fill_n(to, s.ow * s.c, T(0));
      for (I i = 0; i < s.kh; ++i) {
        const I at = s.row(row % s.oh, i);
        if (!s.has_row(at)) continue;
        const T* from = x + (row / s.oh * s.h + at) * s.w * s.c;
        for (I place = 0; place < s.ow; ++place) {
          const auto [first, last] = s.columns(place);
          products(from + s.column(place, first) * s.c, weight + (i * s.kw + first) * s.c,
                   to + place * s.c, s.c, last - first, s.dilation[1] * s.c, s.c);
        }
      }
    }
  });
}

/// fn(image, first channel, channels), shared by the threads.
template <typename F>
void each_block(const Sizes& s, I images, const F& fn) {
  const I blocks = (s.c + kChannels - 1) / kChannels;
  const I grain = std::max<I>(1, kWork / (s.oh * s.ow * s.kh * s.kw * kChannels));
  Pool::shared().parallel_for(images * blocks, grain, [&](I task, I end) {
    for (; task < end; ++task) {
      const I first = task % blocks * kChannels;
      fn(task / blocks, first, std::min(kChannels, s.c - first));
    }
  });
}

template <typename T>
void depthwise_input(const Sizes& s, const T* g, const T* weight, T* x) {
  const ProductsFn products = products_of<T>();
  each_block(s, s.n, [&](I image, I channel, I count) {
    T* to = x + image * s.h * s.w * s.c + channel;
    for (I at = 0; at < s.h * s.w; ++at) std::fill_n(to + at * s.c, count, T(0));
    for (I y = 0; y < s.oh; ++y)
      for (I i = 0; i < s.kh; ++i) {
        const I row = s.row(y, i);
        if (!s.has_row(row)) continue;
        for (I place = 0; place < s.ow; ++place) {
          const T* from = g + ((image * s.oh + y) * s.ow + place) * s.c + channel;
          const auto [first, last] = s.columns(place);
          for (I j = first; j < last; ++j)
            products(from, weight + (i * s.kw + j) * s.c + channel,
                     to + (row * s.w + s.column(place, j)) * s.c, count, 1, 0, 0);
        }
      }
  });
}

template <typename T>
void depthwise_weight(const Sizes& s, const T* g, const T* x, T* weight) {
  const ProductsFn products = products_of<T>();
  std::fill_n(weight, s.kh * s.kw * s.c, T(0));
  // A task has whole channels, images in order: sums do not depend on the threads.
  each_block(s, 1, [&](I, I channel, I count) {
    for (I row = 0; row < s.n * s.oh; ++row)
      for (I i = 0; i < s.kh; ++i) {
        const I at = s.row(row % s.oh, i);
        if (!s.has_row(at)) continue;
        const T* from = x + (row / s.oh * s.h + at) * s.w * s.c + channel;
        for (I j = 0; j < s.kw; ++j) {
          const auto [first, last] = s.results(j);
          products(from + s.column(first, j) * s.c, g + (row * s.ow + first) * s.c + channel,
                   weight + (i * s.kw + j) * s.c + channel, count, last - first, s.stride[1] * s.c,
                   s.c);
        }
      }
  });
}

// ---- sums over channels

/// The windows of `rows` rows of results from `first` on, of one group: k elements for each place.
template <typename T>
void lay_out(const Sizes& s, const T* x, I first, I rows, T* out) {
  const bool joined = s.groups == 1 && s.dilation[1] == 1;
  const auto copy = [](T* to, const T* from, I count) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  };
  for (I row = first; row < first + rows; ++row)
    for (I place = 0; place < s.ow; ++place) {
      const auto [begin, end] = s.columns(place);
      for (I i = 0; i < s.kh; ++i, out += s.kw * s.cg) {
        const I at = s.row(row % s.oh, i);
        if (!s.has_row(at)) {
          std::fill_n(out, s.kw * s.cg, T(0));
          continue;
        }
        const T* from = x + (row / s.oh * s.h + at) * s.w * s.c;
        std::fill_n(out, begin * s.cg, T(0));
        std::fill(out + end * s.cg, out + s.kw * s.cg, T(0));
        if (joined) {
          copy(out + begin * s.cg, from + s.column(place, begin) * s.c, (end - begin) * s.cg);
        } else {
          for (I j = begin; j < end; ++j)
            copy(out + j * s.cg, from + s.column(place, j) * s.c, s.cg);
        }
      }
    }
}

/// The reverse: windows are added to the image at their places.
template <typename T>
void add_back(const Sizes& s, const T* in, I first, I rows, T* x) {
  for (I row = first; row < first + rows; ++row)
    for (I place = 0; place < s.ow; ++place, in += s.k) {
      const auto [begin, end] = s.columns(place);
      for (I i = 0; i < s.kh; ++i) {
        const I at = s.row(row % s.oh, i);
        if (!s.has_row(at)) continue;
        for (I j = begin; j < end; ++j) {
          const T* from = in + (i * s.kw + j) * s.cg;
          T* to = x + ((row / s.oh * s.h + at) * s.w + s.column(place, j)) * s.c;
          for (I q = 0; q < s.cg; ++q) to[q] += from[q];
        }
      }
    }
}

/// Rows of results whose windows take at most kLaidBytes, but so many that all threads have some.
template <typename T>
I rows_of_piece(const Sizes& s) {
  const I bytes = s.ow * s.k * static_cast<I>(sizeof(T));
  const I threads = std::max(1, Pool::shared().threads());
  return std::clamp<I>(kLaidBytes / bytes, 1, std::max<I>(1, s.n * s.oh / threads));
}

template <typename T>
void forward(const Sizes& s, const T* x, const T* weight, T* out) {
  for (I group = 0; group < s.groups; ++group) {
    const T *w = weight + group * s.og * s.k, *in = x + group * s.cg;
    T* to = out + group * s.og;
    if (s.plain()) {
      gemm<T>(s.places(), s.og, s.k, in, s.c, 1, w, 1, s.k, to, s.o, false);
      continue;
    }
    const PackedMatrix<T> packed(s.og, s.k, w, 1, s.k);
    const I all = s.n * s.oh, each = rows_of_piece<T>(s), pieces = (all + each - 1) / each;
    Pool::shared().parallel_for(pieces, 1, [&](I piece, I end) {
      const auto laid = room<T>(each * s.ow * s.k);
      for (; piece < end; ++piece) {
        const I first = piece * each, rows = std::min(each, all - first);
        lay_out(s, in, first, rows, laid.get());
        packed.multiply(rows * s.ow, laid.get(), s.k, 1, to + first * s.ow * s.o, s.o);
      }
    });
  }
}

/// Weights (c, kh, kw, og) for a convolution of the result's gradient.
template <typename T>
std::unique_ptr<T[]> turned_weights(const Sizes& s, const T* weight) {
  auto out = room<T>(s.o * s.k);
  const I taps = s.kh * s.kw;
  for (I o = 0; o < s.o; ++o)
    for (I tap = 0; tap < taps; ++tap)
      for (I q = 0; q < s.cg; ++q)
        out[static_cast<std::size_t>(((o / s.og * s.cg + q) * taps + taps - 1 - tap) * s.og +
                                     o % s.og)] = weight[(o * taps + tap) * s.cg + q];
  return out;
}

template <typename T>
void backward_input(const Sizes& s, const T* g, const T* weight, T* x) {
  if (!s.plain() && s.stride == Pair{1, 1})
    return forward<T>(turned(s), g, turned_weights(s, weight).get(), x);
  if (!s.plain()) std::fill_n(x, s.n * s.h * s.w * s.c, T(0));
  for (I group = 0; group < s.groups; ++group) {
    const T *w = weight + group * s.og * s.k, *from = g + group * s.og;
    T* to = x + group * s.cg;
    if (s.plain()) {
      gemm<T>(s.places(), s.cg, s.og, from, s.o, 1, w, s.k, 1, to, s.c, false);
      continue;
    }
    // Rows of one image overlap: a task has whole images.
    const PackedMatrix<T> packed(s.k, s.og, w, s.k, 1);
    const I each = std::min(s.oh, rows_of_piece<T>(s));
    Pool::shared().parallel_for(s.n, 1, [&](I image, I end) {
      const auto laid = room<T>(each * s.ow * s.k);
      for (; image < end; ++image)
        for (I y = 0; y < s.oh; y += each) {
          const I first = image * s.oh + y, rows = std::min(each, s.oh - y);
          packed.multiply(rows * s.ow, from + first * s.ow * s.o, s.o, 1, laid.get(), s.k);
          add_back(s, laid.get(), first, rows, to);
        }
    });
  }
}

template <typename T>
void backward_weight(const Sizes& s, const T* g, const T* x, T* weight) {
  for (I group = 0; group < s.groups; ++group) {
    const T *from = g + group * s.og, *in = x + group * s.cg;
    T* to = weight + group * s.og * s.k;
    if (s.plain()) {
      gemm<T>(s.og, s.k, s.places(), from, 1, s.o, in, s.c, 1, to, s.k, false);
      continue;
    }
    // One piece after the other, cut by size alone, so that sums have one order.
    const I all = s.n * s.oh, bytes = s.ow * s.k * static_cast<I>(sizeof(T));
    const I each = std::clamp<I>(4 * kLaidBytes / bytes, 1, all);
    const auto laid = room<T>(each * s.ow * s.k);
    for (I first = 0; first < all; first += each) {
      const I rows = std::min(each, all - first);
      Pool::shared().parallel_for(rows, 1, [&](I begin, I end) {
        lay_out(s, in, first + begin, end - begin, laid.get() + begin * s.ow * s.k);
      });
      gemm<T>(s.og, s.k, rows * s.ow, from + first * s.ow * s.o, 1, s.o, laid.get(), s.k, 1, to,
              s.k, first > 0);
    }
  }
}

/// (n, c, h, w) as a compact (n, h, w, c), and back.
NDArray laid(const NDArray& x) {
  const int order[] = {0, 2, 3, 1};
  return x.permute(order).contiguous();
}
NDArray named(const NDArray& x) {
  const int order[] = {0, 3, 1, 2};
  return x.permute(order);
}
/// Weights as Sizes has them, and back.
NDArray laid_weights(const Sizes& s, const NDArray& weight) {
  const int depthwise[] = {2, 3, 1, 0};
  return s.depthwise() ? weight.permute(depthwise).contiguous() : laid(weight);
}
NDArray named_weights(const Sizes& s, const NDArray& weight) {
  const int depthwise[] = {3, 2, 0, 1};
  return s.depthwise() ? weight.permute(depthwise) : named(weight);
}
NDArray empty_like(const NDArray& x, Dims shape) {
  return NDArray::empty(x.device(), x.elem(), std::move(shape));
}

/// f(float32 operands) for 16-bit floats, rounded once; orders stay.
template <typename F>
NDArray widened(const NDArray& a, const NDArray& b, const F& f) {
  return convert(f(convert(a, Elem::float32), convert(b, Elem::float32)), a.elem());
}
bool narrow(const NDArray& a) { return elem_bytes(a.elem()) == 2; }

template <typename T>
T* at(const NDArray& a) {
  return reinterpret_cast<T*>(a.host());
}

/// fn of the types of three compact arrays.
template <typename F>
void typed(const NDArray& a, const NDArray& b, const NDArray& out, const F& fn) {
  if (out.elem() == Elem::float32) fn(at<const float>(a), at<const float>(b), at<float>(out));
  else fn(at<const double>(a), at<const double>(b), at<double>(out));
}

NDArray result(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w) {
  if (narrow(x)) {
    return widened(x, weight,
                   [&](const NDArray& a, const NDArray& b) { return result(a, b, conv, w); });
  }
  const Sizes s(x.shape(), weight.shape(), conv, w);
  const NDArray out = empty_like(x, Dims{s.n, s.oh, s.ow, s.o});
  if (out.size() == 0) return named(out);
  typed(laid(x), laid_weights(s, weight), out, [&](auto* a, auto* b, auto* to) {
    s.depthwise() ? depthwise(s, a, b, to) : forward(s, a, b, to);
  });
  return named(out);
}

NDArray image_gradient(const NDArray& g, const NDArray& weight, const Conv& conv, const Window& w,
                       std::int64_t h, std::int64_t width) {
  if (narrow(g)) {
    return widened(g, weight, [&](const NDArray& a, const NDArray& b) {
      return image_gradient(a, b, conv, w, h, width);
    });
  }
  const Dims shape{g.shape()[0], weight.shape()[1] * conv.groups, h, width};
  const Sizes s(shape, weight.shape(), conv, w);
  const NDArray out = empty_like(g, Dims{s.n, h, width, s.c});
  if (out.size() == 0) return named(out);
  typed(laid(g), laid_weights(s, weight), out, [&](auto* a, auto* b, auto* to) {
    s.depthwise() ? depthwise_input(s, a, b, to) : backward_input(s, a, b, to);
  });
  return named(out);
}

NDArray weight_gradient(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                        const Window& w) {
  if (narrow(g)) {
    return widened(g, x, [&](const NDArray& a, const NDArray& b) {
      return weight_gradient(a, b, shape, conv, w);
    });
  }
  const Sizes s(x.shape(), shape, conv, w);
  const NDArray out = s.depthwise() ? empty_like(g, Dims{s.kh, s.kw, 1, s.c})
                                    : empty_like(g, Dims{s.o, s.kh, s.kw, s.cg});
  if (out.size() == 0) return named_weights(s, out);
  typed(laid(g), laid(x), out, [&](auto* a, auto* b, auto* to) {
    s.depthwise() ? depthwise_weight(s, a, b, to) : backward_weight(s, a, b, to);
  });
  return named_weights(s, out);
}

}  // namespace
}  // namespace last_order

bool is_channels_last(const NDArray& x) {
  const int order[] = {0, 2, 3, 1};
  return x.ndim() == 4 && x.on_host() && x.size() > 0 && !x.is_contiguous() &&
         x.permute(order).is_contiguous();
}

NDArray last_conv2d(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w) {
  return last_order::result(x, weight, conv, w);
}
NDArray last_conv2d_input(const NDArray& g, const NDArray& weight, const Conv& conv,
                          const Window& w, std::int64_t h, std::int64_t width) {
  return last_order::image_gradient(g, weight, conv, w, h, width);
}
NDArray last_conv2d_weight(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                           const Window& w) {
  return last_order::weight_gradient(g, x, shape, conv, w);
}

}  // namespace weft
