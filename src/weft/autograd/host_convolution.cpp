// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/host_convolution.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "weft/array/strided_copy.h"
#include "weft/autograd/host_depthwise.h"
#include "weft/host/copy_kernels.h"
#include "weft/host/gemm.h"
#include "weft/host/kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;
using runtime::Pool;

/// Bytes of laid out windows at once: they stay in the caches while they are multiplied.
constexpr I kWindowBytes = I{2} << 20;

/// Space of a thread, kept between products: fresh pages cost more than laying out. The first for
/// windows, the second for images side by side.
template <typename T>
T* scratch(int which, I count) {
  struct Space {
    std::unique_ptr<T[]> data;
    I size = 0;
  };
  static thread_local Space spaces[2];
  Space& space = spaces[which];
  if (space.size < count) {
    space.data = nullptr;
    space.size = 0;
    space.data = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count));
    space.size = count;
  }
  return space.data.get();
}

struct Geometry {
  I n, c, h, w, o, cg, og, groups, kh, kw, oh, ow, k, places;
  Pair stride, padding, dilation;

  Geometry(const Dims& x, const Dims& weight, const Conv& conv, const Window& win)
      : n(x[0]),
        c(x[1]),
        h(x[2]),
        w(x[3]),
        o(weight[0]),
        cg(weight[1]),
        og(weight[0] / conv.groups),
        groups(conv.groups),
        kh(weight[2]),
        kw(weight[3]),
        oh(win.out[0]),
        ow(win.out[1]),
        k(cg * kh * kw),
        places(oh * ow),
        stride(conv.stride),
        padding(conv.padding),
        dilation(conv.dilation) {}
  Depthwise depthwise() const { return {n, c, h, w, o, kh, kw, oh, ow, stride, padding, dilation}; }
  /// The image itself is its windows.
  bool plain() const { return kh == 1 && kw == 1 && stride == Pair{1, 1} && padding == Pair{0, 0}; }
};

/// Output rows [first, first + rows) of images [image, image + images); several images only whole.
struct Piece {
  I image, images, first, rows;
};

/// Pieces of one group; at most `most` images in each.
std::vector<Piece> pieces(const Geometry& s, I bytes, I most) {
  std::vector<Piece> out;
  const I columns = std::max<I>(1, kWindowBytes / (s.k * bytes));
  const I images = std::clamp<I>(columns / s.places, 1, std::max<I>(1, most));
  const I rows = columns >= s.places ? s.oh : std::max<I>(1, columns / s.ow);
  for (I image = 0; image < s.n; image += images) {
    for (I first = 0; first < s.oh; first += rows)
      out.push_back({image, std::min(images, s.n - image), first, std::min(rows, s.oh - first)});
  }
  return out;
}

/// Where output columns meet image columns, for window column j: [from, to) of the row.
void overlap(const Geometry& s, I j, I& from, I& to) {
  const I shift = s.padding[1] - j * s.dilation[1];  // image column = x * stride - shift
  from = shift > 0 ? (shift + s.stride[1] - 1) / s.stride[1] : 0;
  const I last = s.w - 1 + shift;
  to = last < 0 ? 0 : std::min(s.ow, last / s.stride[1] + 1);
  from = std::min(from, to);
}

/// Rows [begin, end) of the k rows of laid out windows, each of `step` columns.
template <typename T>
void lay_out(const Geometry& s, const T* x, const Piece& p, I begin, I end, T* out, I step) {
  for (I row = begin; row < end; ++row) {
    const I channel = row / (s.kh * s.kw), i = row / s.kw % s.kh, j = row % s.kw;
    I from, to;
    overlap(s, j, from, to);
    T* to_row = out + row * step;
    for (I image = 0; image < p.images; ++image) {
      const T* plane = x + ((p.image + image) * s.c + channel) * s.h * s.w;
      for (I y = p.first; y < p.first + p.rows; ++y, to_row += s.ow) {
        const I at = y * s.stride[0] - s.padding[0] + i * s.dilation[0];
        if (at < 0 || at >= s.h || from == to) {
          std::fill(to_row, to_row + s.ow, T(0));
          continue;
        }
        const T* in = plane + at * s.w + j * s.dilation[1] - s.padding[1];
        std::fill(to_row, to_row + from, T(0));
        if (s.stride[1] == 1) {
          std::memcpy(to_row + from, in + from, static_cast<std::size_t>(to - from) * sizeof(T));
        } else {
          copy_run(sizeof(T), reinterpret_cast<char*>(to_row + from), 1,
                   reinterpret_cast<const char*>(in + from * s.stride[1]), s.stride[1], to - from);
        }
        std::fill(to_row + to, to_row + s.ow, T(0));
      }
    }
  }
}

/// The transpose: laid out windows of channels [begin, end) are added to the image.
template <typename T>
void add_back(const Geometry& s, T* x, const Piece& p, I begin, I end, const T* in, I step) {
  constexpr int e = static_cast<int>(sizeof(T) == 4 ? Elem::float32 : Elem::float64);
  const AccumulateFn add = kernels().accumulate[static_cast<int>(ReduceOp::sum)][e];
  const CopyFn step_add =
      copy_kernels().function[static_cast<int>(CopyKernel::add)][sizeof(T) == 4 ? 2 : 3];
  for (I row = begin * s.kh * s.kw; row < end * s.kh * s.kw; ++row) {
    const I channel = row / (s.kh * s.kw), i = row / s.kw % s.kh, j = row % s.kw;
    I from, to;
    overlap(s, j, from, to);
    const T* from_row = in + row * step;
    for (I image = 0; image < p.images; ++image) {
      T* plane = x + ((p.image + image) * s.c + channel) * s.h * s.w;
      for (I y = p.first; y < p.first + p.rows; ++y, from_row += s.ow) {
        const I at = y * s.stride[0] - s.padding[0] + i * s.dilation[0];
        if (at < 0 || at >= s.h) continue;
        T* out = plane + at * s.w + j * s.dilation[1] - s.padding[1];
        if (s.stride[1] == 1) {
          add(to - from, from_row + from, out + from);
        } else {
          step_add(from_row + from, out + from * s.stride[1], to - from, s.stride[1], 1);
        }
      }
    }
  }
}

/// (rows, images * places) from or to (images, stride of an image, rows, places).
template <bool kGather, typename T>
void side_by_side(I images, I rows, I places, T* apart, I image_step, T* together) {
  for (I image = 0; image < images; ++image) {
    for (I r = 0; r < rows; ++r) {
      T* a = apart + image * image_step + r * places;
      T* b = together + (r * images + image) * places;
      if (kGather) std::memcpy(b, a, static_cast<std::size_t>(places) * sizeof(T));
      else std::memcpy(a, b, static_cast<std::size_t>(places) * sizeof(T));
    }
  }
}

/// A piece of the result's gradient as a matrix of og rows, and their step: in place, or its images
/// side by side.
template <typename T>
std::pair<const T*, I> channels(const Geometry& s, const T* g, const Piece& p, I group) {
  const I image_step = s.o * s.places, columns = p.images * p.rows * s.ow;
  const T* in = g + p.image * image_step + group * s.og * s.places + p.first * s.ow;
  if (p.images == 1) return {in, s.places};
  T* gathered = scratch<T>(1, s.og * columns);
  // Only read; side_by_side has one signature for both directions.
  side_by_side<true>(p.images, s.og, s.places, const_cast<T*>(in), image_step, gathered);
  return {gathered, columns};
}

/// fn(piece) for all pieces: shared by the threads, or one after the other with threads inside.
template <typename F>
void each(const std::vector<Piece>& list, F&& fn) {
  const I count = static_cast<I>(list.size());
  if (count >= Pool::shared().threads()) {
    Pool::shared().parallel_for(count, 1, [&](I begin, I end) {
      for (; begin < end; ++begin) fn(list[static_cast<std::size_t>(begin)]);
    });
  } else {
    for (const Piece& p : list) fn(p);
  }
}

I share(I n) {
  const I threads = std::max(1, Pool::shared().threads());
  return (n + threads - 1) / threads;
}

template <typename T>
void forward(const Geometry& s, const T* x, const T* weight, T* out) {
  if (s.cg == 1 && s.groups > 1) return depthwise_forward<T>(s.depthwise(), x, weight, out);
  const std::vector<Piece> list = pieces(s, sizeof(T), share(s.n));
  for (I group = 0; group < s.groups; ++group) {
    const T* w = weight + group * s.og * s.k;
    each(list, [&](const Piece& p) {
      const I columns = p.images * p.rows * s.ow, image_step = s.o * s.places;
      const T* in = x + group * s.cg * s.h * s.w;
      T* to = out + p.image * image_step + group * s.og * s.places + p.first * s.ow;
      if (s.plain() && p.images == 1) {
        gemm<T>(s.og, columns, s.k, w, s.k, 1, in + p.image * s.c * s.places + p.first * s.ow,
                s.places, 1, to, s.places, false);
        return;
      }
      T* windows = scratch<T>(0, s.k * columns);
      Pool::shared().parallel_for(s.k, std::max<I>(1, 16384 / columns), [&](I begin, I end) {
        lay_out(s, in, p, begin, end, windows, columns);
      });
      T* c = p.images > 1 ? scratch<T>(1, s.og * columns) : to;
      gemm<T>(s.og, columns, s.k, w, s.k, 1, windows, columns, 1, c,
              p.images > 1 ? columns : s.places, false);
      if (p.images > 1) side_by_side<false>(p.images, s.og, s.places, to, image_step, c);
    });
  }
}

template <typename T>
void backward_input(const Geometry& s, const T* g, const T* weight, T* x) {
  if (s.cg == 1 && s.groups > 1) return depthwise_input<T>(s.depthwise(), g, weight, x);
  // Rows of one image overlap: its pieces go one after the other.
  std::vector<Piece> list = pieces(s, sizeof(T), share(s.n));
  std::vector<std::vector<Piece>> tasks;
  for (const Piece& p : list) {
    if (tasks.empty() || tasks.back().front().image != p.image) tasks.emplace_back();
    tasks.back().push_back(p);
  }
  for (I group = 0; group < s.groups; ++group) {
    const T* w = weight + group * s.og * s.k;
    T* out = x + group * s.cg * s.h * s.w;
    auto one = [&](const Piece& p) {
      const I columns = p.images * p.rows * s.ow;
      const auto [in, step] = channels(s, g, p, group);
      if (s.plain() && p.images == 1) {
        gemm<T>(s.k, columns, s.og, w, 1, s.k, in, step, 1,
                out + p.image * s.c * s.places + p.first * s.ow, s.places, false);
        return;
      }
      T* windows = scratch<T>(0, s.k * columns);
      gemm<T>(s.k, columns, s.og, w, 1, s.k, in, step, 1, windows, columns, false);
      Pool::shared().parallel_for(
          s.cg, 1, [&](I begin, I end) { add_back(s, out, p, begin, end, windows, columns); });
    };
    const I count = static_cast<I>(tasks.size());
    auto run = [&](I begin, I end) {
      for (; begin < end; ++begin) {
        for (const Piece& p : tasks[static_cast<std::size_t>(begin)]) one(p);
      }
    };
    if (count >= Pool::shared().threads()) Pool::shared().parallel_for(count, 1, run);
    else run(0, count);
  }
}

template <typename T>
void backward_weight(const Geometry& s, const T* g, const T* x, T* weight) {
  if (s.cg == 1 && s.groups > 1) return depthwise_weight<T>(s.depthwise(), g, x, weight);
  // One piece after the other, cut by size alone, so that sums have one order.
  const std::vector<Piece> list = pieces(s, sizeof(T), s.n);
  for (I group = 0; group < s.groups; ++group) {
    T* out = weight + group * s.og * s.k;
    const T* in = x + group * s.cg * s.h * s.w;
    bool add = false;
    for (const Piece& p : list) {
      const I columns = p.images * p.rows * s.ow;
      const auto [from, step] = channels(s, g, p, group);
      const T* b = in + p.image * s.c * s.places + p.first * s.ow;
      I b_step = s.places;
      if (!s.plain() || p.images > 1) {
        T* windows = scratch<T>(0, s.k * columns);
        Pool::shared().parallel_for(s.k, std::max<I>(1, 16384 / columns), [&](I begin, I end) {
          lay_out(s, in, p, begin, end, windows, columns);
        });
        b = windows;
        b_step = columns;
      }
      gemm<T>(s.og, s.k, columns, from, step, 1, b, 1, b_step, out, s.k, add);
      add = true;
    }
  }
}

template <typename T>
T* at(const NDArray& a) {
  return reinterpret_cast<T*>(a.host());
}

/// fn<float> or fn<double>, for three arrays without gaps.
#define WEFT_OF_TYPE(fn, s, a, b, out)                                                     \
  (out).elem() == Elem::float32 ? fn<float>(s, at<float>(a), at<float>(b), at<float>(out)) \
                                : fn<double>(s, at<double>(a), at<double>(b), at<double>(out))

/// 16-bit floats are computed in float32 and rounded once: f of both operands.
template <typename F>
NDArray widened(const NDArray& a, const NDArray& b, const F& f) {
  return f(a.astype(Elem::float32), b.astype(Elem::float32)).astype(a.elem());
}
bool narrow(const NDArray& a) { return elem_bytes(a.elem()) == 2; }

}  // namespace

bool host_has_convolution(const NDArray& x, const NDArray& weight) {
  return x.on_host() && weight.on_host() && x.elem() == weight.elem() && is_real_float(x.elem());
}

NDArray host_conv2d(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w) {
  if (narrow(x)) {
    return widened(x, weight,
                   [&](const NDArray& a, const NDArray& b) { return host_conv2d(a, b, conv, w); });
  }
  const Geometry s(x.shape(), weight.shape(), conv, w);
  NDArray out = NDArray::empty(x.device(), x.elem(), Dims{s.n, s.o, s.oh, s.ow});
  if (out.size() == 0) return out;
  if (s.k == 0) return full(x.device(), x.elem(), out.shape(), Scalar(0));
  const NDArray a = x.contiguous(), b = weight.contiguous();
  WEFT_OF_TYPE(forward, s, a, b, out);
  return out;
}

NDArray host_conv2d_input(const NDArray& g, const NDArray& weight, const Conv& conv,
                          const Window& w, std::int64_t h, std::int64_t width) {
  if (narrow(g)) {
    return widened(g, weight, [&](const NDArray& a, const NDArray& b) {
      return host_conv2d_input(a, b, conv, w, h, width);
    });
  }
  const Dims shape{g.shape()[0], weight.shape()[1] * conv.groups, h, width};
  const Geometry s(shape, weight.shape(), conv, w);
  NDArray out = full(g.device(), g.elem(), shape, Scalar(0));
  if (out.size() == 0 || g.size() == 0) return out;
  const NDArray a = g.contiguous(), b = weight.contiguous();
  WEFT_OF_TYPE(backward_input, s, a, b, out);
  return out;
}

NDArray host_conv2d_weight(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                           const Window& w) {
  if (narrow(g)) {
    return widened(g, x, [&](const NDArray& a, const NDArray& b) {
      return host_conv2d_weight(a, b, shape, conv, w);
    });
  }
  const Geometry s(x.shape(), shape, conv, w);
  NDArray out = full(g.device(), g.elem(), shape, Scalar(0));
  if (out.size() == 0 || g.size() == 0) return out;
  const NDArray a = g.contiguous(), b = x.contiguous();
  WEFT_OF_TYPE(backward_weight, s, a, b, out);
  return out;
}

}  // namespace weft
