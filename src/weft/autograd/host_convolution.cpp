// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/host_convolution.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "weft/autograd/convolution_sizes.h"
#include "weft/autograd/host_depthwise.h"
#include "weft/autograd/host_last_convolution.h"
#include "weft/host/copy_kernels.h"
#include "weft/host/gemm.h"
#include "weft/host/kernels.h"
#include "weft/host/tile_gemm.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

using I = std::int64_t;
using runtime::Pool;
using Word = std::uint16_t;

/// Bytes of the images of a piece: they stay in the caches while they are multiplied. Places of a
/// piece of several images.
constexpr I kPieceBytes = I{1} << 20, kPiecePlaces = 4096;

/// Space of a thread, kept between products: fresh pages cost more than copying. The first for
/// images or windows, the second for images side by side, the third for windows of a panel.
template <typename T>
T* scratch(int which, I count) {
  struct Space {
    std::unique_ptr<T[]> data;
    I size = 0;
  };
  static thread_local Space spaces[3];
  Space& space = spaces[which];
  if (space.size < count) {
    space.data = nullptr;
    space.size = 0;
    space.data = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count));
    space.size = count;
  }
  return space.data.get();
}

struct Geometry : ConvolutionSizes {
  using ConvolutionSizes::ConvolutionSizes;
  I places = oh * ow;
  I weight_row = k, weight_column = 1;  // steps of the weights as a matrix of og rows

  Depthwise depthwise() const {
    return {{h, w, kh, kw, oh, ow, stride, padding, dilation}, n, c, o};
  }
  /// Channels of the image that few results read are not worth windows in a product's panels.
  bool by_planes() const { return cg == 1 && (groups > 1 || og <= 2); }
  /// Each image is a product long enough, and nothing has to be copied for it.
  bool in_place() const { return plain() && places >= 32; }
  /// All images of one place each are the rows of one matrix.
  bool rows() const { return plain() && places == 1 && groups == 1; }
};

/// Output rows [first, first + rows) of images [image, image + images); several images only whole.
struct Piece {
  I image, images, first, rows;
};

/// Pieces of so many output rows, or of whole images where these are all.
std::vector<Piece> cut_pieces(const Geometry& s, I rows, I images) {
  std::vector<Piece> out;
  images = rows < s.oh ? 1 : std::max<I>(1, images);
  for (I image = 0; image < s.n; image += images) {
    for (I first = 0; first < s.oh; first += rows)
      out.push_back({image, std::min(images, s.n - image), first, std::min(rows, s.oh - first)});
  }
  return out;
}

/// Pieces of one group whose channels, with borders, take at most kPieceBytes; at most `most`
/// images in each, and no more of them than a product needs to be a long one.
std::vector<Piece> pieces(const Geometry& s, I bytes, I most) {
  const I row = s.cg * (s.w + 2 * std::max<I>(s.padding[1], 0)) * s.stride[0] * bytes;
  const I halo = (s.kh - 1) * s.dilation[0] / s.stride[0];
  const I rows = std::clamp<I>(kPieceBytes / row - halo, 1, s.oh);
  const I images = std::min(kPieceBytes / (row * (s.oh + halo)), kPiecePlaces / s.places);
  return cut_pieces(s, rows, std::min(images, most));
}

/// The windows of a piece. What it reads is cut into phases (phases.h), in which a tap of a window
/// lies at one distance from all places, borders included: windows are copied to a product's panels
/// from there, and never laid out in memory.
template <typename T>
class Windows {
 public:
  /// `x`: the first channel of the group.
  Windows(const Geometry& s, const Piece& p, const T* x)
      : s_(s),
        piece_(p),
        phases_({s.h,
                 s.w,
                 s.kh,
                 s.kw,
                 p.rows,
                 s.ow,
                 s.stride,
                 {s.padding[0] - p.first * s.stride[0], s.padding[1]},
                 s.dilation}) {
    const I plane = phases_.count() * phases_.size();
    T* data = scratch<T>(0, p.images * s.cg * plane + kAhead);
    Pool::shared().parallel_for(
        p.images * s.cg, std::max<I>(1, 16384 / plane), [&](I begin, I end) {
          for (; begin < end; ++begin) {
            const I image = p.image + begin / s.cg, channel = begin % s.cg;
            phases_.cut(x + (image * s.c + channel) * s.h * s.w, data + begin * plane);
          }
        });
    std::fill_n(data + p.images * s.cg * plane, kAhead, T(0));
    data_ = data;
    taps_.resize(static_cast<std::size_t>(s.k));
    for (I channel = 0; channel < s.cg; ++channel) {
      for (const Phases::Taps& t : phases_.taps) {
        for (I q = 0; q < t.count; ++q) {
          const I at = (channel * s.kh + t.window_row) * s.kw + t.first + q * t.stride;
          taps_[static_cast<std::size_t>(at)] =
              channel * plane + phases_.phase(t) * phases_.size() + phases_.offset(t) + q * t.step;
        }
      }
    }
    image_step_ = s.cg * plane;
  }
  I columns() const { return piece_.images * piece_.rows * s_.ow; }
  const T* tap(I k) const { return data_ + taps_[static_cast<std::size_t>(k)]; }
  /// fn(at, distance, length): places [from, from + count) as runs, the one at `at` behind `from`
  /// lies at that distance from a tap.
  template <typename F>
  void runs(I from, I count, const F& fn) const {
    I x = from % s_.ow, row = from / s_.ow, y = row % piece_.rows, image = row / piece_.rows;
    for (I at = 0; at < count;) {
      const I length = std::min(s_.ow - x, count - at);
      fn(at, image * image_step_ + y * phases_.width + x, length);
      at += length;
      x = 0;
      if (++y == piece_.rows) y = 0, ++image;
    }
  }
  /// Elements that may be read behind the last one.
  static constexpr I kAhead = 128;

 private:
  const Geometry& s_;
  Piece piece_;
  Phases phases_;
  const T* data_;
  I image_step_;
  std::vector<I> taps_;
};

/// `bytes` from one place to the other, and up to the next multiple of 32.
inline void copy_blocks(void* to, const void* from, I bytes) {
  for (I at = 0; at < bytes; at += 32)
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, 32);
}

/// Windows as a right operand: a row for each tap, a column for each place.
template <typename T>
class WindowColumns final : public ColumnPanels<T> {
 public:
  explicit WindowColumns(const Windows<T>& windows) : windows_(windows) {}
  void fill(I column, I columns, I from, I depth, T* out) const override {
    struct Run {
      I at, distance;
    };
    Run runs[kMostWidth];
    I count = 0;
    windows_.runs(column, columns, [&](I at, I distance, I) { runs[count++] = {at, distance}; });
    const I width = this->width();
    constexpr I bytes = sizeof(T);
    for (I p = 0; p < depth; ++p) {
      const T* tap = windows_.tap(from + p);
      T* row = out + p * width;
      // A run is copied to the end of the row, which the next one overwrites from where it begins.
      for (I i = 0; i < count; ++i) {
        const T* in = tap + runs[i].distance;
        T* to = row + runs[i].at;
        if (p + 1 < depth) copy_blocks(to, in, (width - runs[i].at) * bytes);
        else std::memcpy(to, in, static_cast<std::size_t>((width - runs[i].at) * bytes));
      }
    }
  }
  static constexpr I kMostWidth = 64;

 private:
  const Windows<T>& windows_;
};

/// The transpose: a row for each place, a column for each tap.
template <typename T>
class WindowRows final : public ColumnPanels<T> {
 public:
  explicit WindowRows(const Windows<T>& windows) : windows_(windows) {}
  void fill(I column, I columns, I from, I depth, T* out) const override {
    const I step = depth + 32 / static_cast<I>(sizeof(T));
    T* rows = scratch<T>(2, step * columns);
    windows_.runs(from, depth, [&](I at, I distance, I length) {
      for (I r = 0; r < columns; ++r)
        copy_blocks(rows + r * step + at, windows_.tap(column + r) + distance,
                    length * static_cast<I>(sizeof(T)));
    });
    StridedPanels<T>(rows, 1, step).fill(0, columns, 0, depth, out);
  }

 private:
  const Windows<T>& windows_;
};

/// Where output columns meet image columns, for window column j: [from, to) of the row.
void overlap(const Geometry& s, I j, I& from, I& to) {
  const I shift = s.padding[1] - j * s.dilation[1];  // image column = x * stride - shift
  from = shift > 0 ? (shift + s.stride[1] - 1) / s.stride[1] : 0;
  const I last = s.w - 1 + shift;
  to = last < 0 ? 0 : std::min(s.ow, last / s.stride[1] + 1);
  from = std::min(from, to);
}

/// Pieces whose windows take at most kWindowBytes.
std::vector<Piece> window_pieces(const Geometry& s, I bytes, I most) {
  constexpr I kWindowBytes = I{2} << 20;
  const I columns = std::max<I>(1, kWindowBytes / (s.k * bytes));
  return cut_pieces(s, columns >= s.places ? s.oh : std::max<I>(1, columns / s.ow),
                    std::min(columns / s.places, most));
}

/// Windows of channels [begin, end), a row of `step` elements for each tap, are added to the image.
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
  if (s.by_planes()) return depthwise_forward<T>(s.depthwise(), x, weight, out);
  if (s.rows())
    return gemm<T>(s.n, s.o, s.k, x, s.k, 1, weight, s.weight_column, s.weight_row, out, s.o,
                   false);
  const std::vector<Piece> list = pieces(s, sizeof(T), s.in_place() ? 1 : share(s.n));
  for (I group = 0; group < s.groups; ++group) {
    const T* w = weight + group * s.og * s.k;
    each(list, [&](const Piece& p) {
      const I columns = p.images * p.rows * s.ow, image_step = s.o * s.places;
      const T* in = x + group * s.cg * s.h * s.w;
      T* to = out + p.image * image_step + group * s.og * s.places + p.first * s.ow;
      if (s.plain() && p.images == 1) {
        gemm<T>(s.og, columns, s.k, w, s.weight_row, s.weight_column,
                in + p.image * s.c * s.places + p.first * s.ow, s.places, 1, to, s.places, false);
        return;
      }
      const Windows<T> windows(s, p, in);
      T* c = p.images > 1 ? scratch<T>(1, s.og * columns) : to;
      gemm<T>(s.og, columns, s.k, w, s.weight_row, s.weight_column, WindowColumns<T>(windows), c,
              p.images > 1 ? columns : s.places, false);
      if (p.images > 1) side_by_side<false>(p.images, s.og, s.places, to, image_step, c);
    });
  }
}

/// bfloat16 where the processor multiplies pairs: the windows of a piece are laid out.
template <>
void forward(const Geometry& s, const Word* x, const Word* weight, Word* out) {
  for (I group = 0; group < s.groups; ++group) {
    const Word* w = weight + group * s.og * s.k;
    each(window_pieces(s, 2 * sizeof(Word), share(s.n)), [&](const Piece& p) {
      const I columns = p.images * p.rows * s.ow, image_step = s.o * s.places;
      const Word* in = x + group * s.cg * s.h * s.w;
      Word* to = out + p.image * image_step + group * s.og * s.places + p.first * s.ow;
      if (s.plain() && p.images == 1) {
        tile_gemm(s.og, columns, s.k, w, s.weight_row, s.weight_column,
                  in + p.image * s.c * s.places + p.first * s.ow, s.places, 1, to, s.places);
        return;
      }
      const Windows<Word> windows(s, p, in);
      Word* const laid = scratch<Word>(2, s.k * columns);
      windows.runs(0, columns, [&](I at, I distance, I length) {
        for (I k = 0; k < s.k; ++k)
          std::memcpy(laid + k * columns + at, windows.tap(k) + distance,
                      static_cast<std::size_t>(length) * sizeof(Word));
      });
      Word* c = p.images > 1 ? scratch<Word>(1, s.og * columns) : to;
      tile_gemm(s.og, columns, s.k, w, s.weight_row, s.weight_column, laid, columns, 1, c,
                p.images > 1 ? columns : s.places);
      if (p.images > 1) side_by_side<false>(p.images, s.og, s.places, to, image_step, c);
    });
  }
}
/// Fewer results or shorter sums leave most of a product of pairs empty.
bool by_pairs(const Geometry& s, Elem e) {
  return e == Elem::bfloat16 && s.k >= 16 && s.og >= 8 && !s.by_planes() && tile_products();
}

/// With steps of one the gradient is a convolution of the result's gradient with the weights turned
/// round, as many zeros around it as the window is wide less what the image had.
Geometry turned(const Geometry& s) {
  Geometry t = s;
  t.c = s.o, t.o = s.c, t.cg = s.og, t.og = s.cg;
  t.h = s.oh, t.w = s.ow, t.oh = s.h, t.ow = s.w;
  t.k = t.cg * s.kh * s.kw, t.places = t.oh * t.ow;
  t.weight_row = t.k;
  t.padding = {(s.kh - 1) * s.dilation[0] - s.padding[0],
               (s.kw - 1) * s.dilation[1] - s.padding[1]};
  return t;
}
template <typename T>
void turned_convolution(const Geometry& s, const T* g, const T* weight, T* x) {
  if (s.plain()) {  // the transposed matrix of the weights, where it lies
    Geometry t = turned(s);
    t.weight_row = 1, t.weight_column = s.k;
    return forward<T>(t, g, weight, x);
  }
  std::vector<T> held(static_cast<std::size_t>(s.o * s.k));
  const I taps = s.kh * s.kw;
  for (I o = 0; o < s.o; ++o) {
    for (I c = 0; c < s.cg; ++c) {
      const T* from = weight + o * s.k + c * taps;
      T* to = held.data() + o / s.og * s.og * s.k + (c * s.og + o % s.og) * taps;
      std::reverse_copy(from, from + taps, to);
    }
  }
  forward<T>(turned(s), g, held.data(), x);
}

/// Whether the gradient towards the image is a convolution itself: not with few channels of the
/// image, since each window would be copied for few sums.
bool turns(const Geometry& s) { return s.stride == Pair{1, 1} && (s.cg >= 8 || s.plain()); }

template <typename T>
void backward_input(const Geometry& s, const T* g, const T* weight, T* x) {
  if (s.by_planes()) return depthwise_input<T>(s.depthwise(), g, weight, x);
  if (turns(s)) return turned_convolution<T>(s, g, weight, x);
  std::memset(x, 0, static_cast<std::size_t>(s.n * s.c * s.h * s.w) * sizeof(T));
  // Rows of one image overlap: its pieces go one after the other.
  std::vector<std::vector<Piece>> tasks;
  for (const Piece& p : window_pieces(s, sizeof(T), share(s.n))) {
    if (tasks.empty() || tasks.back().front().image != p.image) tasks.emplace_back();
    tasks.back().push_back(p);
  }
  for (I group = 0; group < s.groups; ++group) {
    const T* w = weight + group * s.og * s.k;
    T* out = x + group * s.cg * s.h * s.w;
    auto one = [&](const Piece& p) {
      const I columns = p.images * p.rows * s.ow;
      const auto [in, step] = channels(s, g, p, group);
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
  if (s.by_planes()) return depthwise_weight<T>(s.depthwise(), g, x, weight);
  if (s.rows()) return gemm<T>(s.o, s.k, s.n, g, 1, s.o, x, s.k, 1, weight, s.k, false);
  // One piece after the other, cut by size alone, so that sums have one order.
  const std::vector<Piece> list = pieces(s, sizeof(T), s.in_place() ? 1 : s.n);
  for (I group = 0; group < s.groups; ++group) {
    T* out = weight + group * s.og * s.k;
    const T* in = x + group * s.cg * s.h * s.w;
    bool add = false;
    for (const Piece& p : list) {
      const I columns = p.images * p.rows * s.ow;
      const auto [from, step] = channels(s, g, p, group);
      if (s.plain() && p.images == 1) {
        gemm<T>(s.og, s.k, columns, from, step, 1, in + p.image * s.c * s.places + p.first * s.ow,
                1, s.places, out, s.k, add);
      } else {
        const Windows<T> windows(s, p, in);
        gemm<T>(s.og, s.k, columns, from, step, 1, WindowRows<T>(windows), out, s.k, add);
      }
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
  const Geometry s(x.shape(), weight.shape(), conv, w);
  const bool pairs = by_pairs(s, x.elem());
  if (!pairs && is_channels_last(x)) return last_conv2d(x, weight, conv, w);
  if (narrow(x) && !pairs) {
    return widened(x, weight,
                   [&](const NDArray& a, const NDArray& b) { return host_conv2d(a, b, conv, w); });
  }
  NDArray out = NDArray::empty(x.device(), x.elem(), Dims{s.n, s.o, s.oh, s.ow});
  if (out.size() == 0) return out;
  if (s.k == 0) return full(x.device(), x.elem(), out.shape(), Scalar(0));
  const NDArray a = x.contiguous(), b = weight.contiguous();
  if (pairs) forward<Word>(s, at<Word>(a), at<Word>(b), at<Word>(out));
  else WEFT_OF_TYPE(forward, s, a, b, out);
  return out;
}

NDArray host_conv2d_input(const NDArray& g, const NDArray& weight, const Conv& conv,
                          const Window& w, std::int64_t h, std::int64_t width) {
  const Dims shape{g.shape()[0], weight.shape()[1] * conv.groups, h, width};
  const Geometry s(shape, weight.shape(), conv, w);
  const bool pairs = turns(s) && !s.by_planes() && by_pairs(turned(s), g.elem());
  if (!pairs && is_channels_last(g)) return last_conv2d_input(g, weight, conv, w, h, width);
  if (narrow(g) && !pairs) {
    return widened(g, weight, [&](const NDArray& a, const NDArray& b) {
      return host_conv2d_input(a, b, conv, w, h, width);
    });
  }
  if (g.size() == 0) return full(g.device(), g.elem(), shape, Scalar(0));
  NDArray out = NDArray::empty(g.device(), g.elem(), shape);
  if (out.size() == 0) return out;
  const NDArray a = g.contiguous(), b = weight.contiguous();
  if (pairs) turned_convolution<Word>(s, at<Word>(a), at<Word>(b), at<Word>(out));
  else WEFT_OF_TYPE(backward_input, s, a, b, out);
  return out;
}

NDArray host_conv2d_weight(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                           const Window& w) {
  if (g.size() > 0 && (is_channels_last(x) || is_channels_last(g)))
    return last_conv2d_weight(g, x, shape, conv, w);
  if (narrow(g)) {
    return widened(g, x, [&](const NDArray& a, const NDArray& b) {
      return host_conv2d_weight(a, b, shape, conv, w);
    });
  }
  const Geometry s(x.shape(), shape, conv, w);
  if (g.size() == 0) return full(g.device(), g.elem(), shape, Scalar(0));
  NDArray out = NDArray::empty(g.device(), g.elem(), shape);
  if (out.size() == 0) return out;
  const NDArray a = g.contiguous(), b = x.contiguous();
  WEFT_OF_TYPE(backward_weight, s, a, b, out);
  return out;
}

}  // namespace weft
