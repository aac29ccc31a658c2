// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/gpu/convolution.h"

#include <algorithm>
#include <numeric>

#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/dispatch.h"
#include "weft/devices/grid.h"
#include "weft/devices/pieces.h"
#include "weft/devices/place_convolution.h"
#include "weft/devices/warp_specialized.h"
#include "weft/devices/warp_specialized_call.h"

namespace weft {

namespace {

constexpr std::int64_t kFewResults = 8;  // of a group, that a thread keeps itself
constexpr std::int64_t kFewTiled = 8;    // channels that would leave tiles of 16-bit products empty
constexpr std::int64_t kMostWritten = 64;  // places of a window that are written out
constexpr std::int64_t kFewPairs = 32;     // of a group: a block has one
constexpr std::int64_t kFewChannels = 4;   // that are summed: images rather than features

/// Whether threads compute it by strips: tiles of a product would be empty for the most part.
bool by_strips(std::int64_t groups, std::int64_t results, std::int64_t channels,
               const Pair& window) {
  const std::int64_t places = window[0] * window[1];
  return (results <= kFewResults && (groups > 1 || places > 1)) ||
         (channels <= kFewChannels && places > 1 && places <= kMostWritten);
}

/// Windows of 3 x 3 at every place, in float32.
bool is_plain(const NDArray& weight, const Conv& conv) {
  const Dims& n = weight.shape();
  return weight.elem() == Elem::float32 && n[2] == 3 && n[3] == 3 && conv.groups == 1 &&
         conv.stride == Pair{1, 1} && conv.dilation == Pair{1, 1};
}

/// Windows of one place, which make a convolution a product of matrices.
bool is_product(const Dims& window, const Conv& conv) {
  return window[2] == 1 && window[3] == 1 && conv.groups == 1 && conv.padding == Pair{0, 0};
}
/// Images [n, c, y, x] as matrices [n, c, y x].
NDArray as_matrices(const NDArray& x) {
  const Dims& n = x.shape();
  return x.contiguous().reshape(Dims{n[0], n[1], n[2] * n[3]});
}
/// Windows [o, c, 1, 1] as a matrix for each of `images`.
NDArray as_matrices(const NDArray& weight, std::int64_t images) {
  const Dims& n = weight.shape();
  return weight.reshape(Dims{1, n[0], n[1]}).broadcast_to(Dims{images, n[0], n[1]});
}
/// The places that windows of one place name.
NDArray named(const NDArray& x, const Conv& conv, const Window& w) {
  return device::named_places(x, images_of(conv).step, w.out[0], w.out[1]);
}

/// Sums over few channels where the device multiplies whole tiles: windows laid out as rows of
/// matrices, which products over whole steps pad once and not for every place of the window.
bool lays_out_windows(const NDArray& x, const NDArray& weight, const Conv& conv) {
  return conv.groups == 1 && weight.shape()[1] < kFewTiled &&
         weight.shape()[2] * weight.shape()[3] > 1 &&
         device::has_warp_specialized_product(x.device(), x.elem());
}

/// With zeros around, in the type of the sums: copies beside the arithmetic do not convert.
NDArray padded(const NDArray& x, const Pair& before, const Pair& after) {
  const Elem sum = device::sum_elem(x.elem());
  if (before == Pair{0, 0} && after == Pair{0, 0}) return x.elem() == sum ? x : x.astype(sum);
  const Dims& n = x.shape();
  NDArray out =
      full(x.device(), sum,
           Dims{n[0], n[1], n[2] + before[0] + after[0], n[3] + before[1] + after[1]}, Scalar(0));
  assign(out.slice(2, before[0], n[2], 1).slice(3, before[1], n[3], 1), x);
  return out;
}

/// (g * o, c, i, j) as (g, o, c, i, j).
NDArray by_group(const NDArray& weight, std::int64_t groups) {
  const Dims &n = weight.shape(), &s = weight.strides();
  return weight.as_strided(Dims{groups, n[0] / groups, n[1], n[2], n[3]},
                           Dims{s[0] * (n[0] / groups), s[0], s[1], s[2], s[3]}, weight.offset());
}

/// out[n, g, o, y, x] = sum over c, i, j of from[n, g, c, y * step + i * gap, ...] *
/// weight[g, o, c, i, j] by the contraction; `from` has all elements that windows name.
void contract(const NDArray& out, const NDArray& from, const NDArray& weight, const Pair& step,
              const Pair& gap) {
  const Dims &n = out.shape(), &so = out.strides(), &s = from.strides(), &w = weight.shape(),
             &sw = weight.strides();
  device::Contraction c;
  c.batch = Dims{w[0]};
  c.m = Dims{w[1]};
  c.n = Dims{n[0], n[2], n[3]};
  c.k = Dims{w[2], w[3], w[4]};
  c.a = {Dims{sw[0]}, Dims{sw[1]}, Dims{sw[2], sw[3], sw[4]}};
  c.b = {Dims{s[1] * w[2]}, Dims{s[1], s[2] * gap[0], s[3] * gap[1]},
         Dims{s[0], s[2] * step[0], s[3] * step[1]}};
  c.out = {Dims{so[1] * w[1]}, Dims{so[1]}, Dims{so[0], so[2], so[3]}};
  device::grid_contract(out, weight, from, c);
}

/// Places of the input whose distance from the first window is `rest` modulo the stride: which taps
/// of the window reach them, and which results of the convolution.
struct Phase {
  std::int64_t place = 0, count = 0;             // in the input, every stride-th
  std::int64_t tap = 0, taps = 0, tap_step = 1;  // of the window
  std::int64_t from = 0, gap = 1;  // the first result for the last tap; between those of two taps
};
std::vector<Phase> phases(std::int64_t extent, std::int64_t window, std::int64_t stride,
                          std::int64_t dilation, std::int64_t padding) {
  std::vector<Phase> out;
  const std::int64_t common = std::gcd(stride, dilation);
  for (std::int64_t rest = 0; rest < stride; ++rest) {
    const std::int64_t first = std::max<std::int64_t>(0, ceil_div(padding - rest, stride));
    Phase p;
    p.place = stride * first + rest - padding;
    if (p.place >= extent) continue;
    p.count = ceil_div(extent - p.place, stride);
    p.tap_step = stride / common, p.gap = dilation / common;
    while (p.tap < window && p.tap * dilation % stride != rest) {
      if (++p.tap >= p.tap_step) p.tap = window;
    }
    if (p.tap < window) {
      p.taps = ceil_div(window - p.tap, p.tap_step);
      p.from = first + (rest - p.tap * dilation) / stride - (p.taps - 1) * p.gap;
    }
    out.push_back(p);
  }
  return out;
}

/// The gradient towards the images of windows that lie side by side, by one contraction: every
/// place of out belongs to one window at most, and those of none are 0.
NDArray side_by_side(const NDArray& out, const NDArray& g, const NDArray& weight,
                     const Conv& conv) {
  const Dims &n = out.shape(), &m = g.shape(), &k = weight.shape();
  const NDArray from = padded(g, {0, 0}, {0, 0}), by = padded(weight, {0, 0}, {0, 0});
  const std::int64_t h = m[2] * k[2], wide = m[3] * k[3];
  const bool all = conv.padding == Pair{0, 0} && n[2] == h && n[3] == wide;
  const NDArray to =
      all ? out : NDArray::empty(out.device(), out.elem(), Dims{n[0], n[1], h, wide});
  const Dims &s = from.strides(), &sw = by.strides(), &so = to.strides();
  const std::int64_t outs = k[0] / conv.groups;
  device::Contraction c;
  c.batch = Dims{conv.groups};
  c.m = Dims{k[1], k[2], k[3]};
  c.n = Dims{m[0], m[2], m[3]};
  c.k = Dims{outs};
  c.a = {Dims{sw[0] * outs}, Dims{sw[1], sw[2], sw[3]}, Dims{sw[0]}};
  c.b = {Dims{s[1] * outs}, Dims{s[1]}, Dims{s[0], s[2], s[3]}};
  c.out = {Dims{so[1] * k[1]}, Dims{so[1], so[2], so[3]}, Dims{so[0], so[2] * k[2], so[3] * k[3]}};
  device::grid_contract(to, by, from, c);
  if (all) return out;
  assign(out, full(out.device(), out.elem(), Dims{1}, Scalar(0)).broadcast_to(n));
  const Pair& p = conv.padding;
  const std::int64_t rows = std::min(n[2], h - p[0]), columns = std::min(n[3], wide - p[1]);
  if (rows > 0 && columns > 0)
    assign(out.slice(2, 0, rows, 1).slice(3, 0, columns, 1),
           to.slice(2, p[0], rows, 1).slice(3, p[1], columns, 1));
  return out;
}

/// Whether kernels of whole tiles (devices/warp_specialized.h) know windows of weights of this
/// shape. `image`: extents of what they are taken of.
bool fits_tiles(const Dims& weight, const Dims& image, const Conv& conv, const Window& w) {
  constexpr std::int64_t kMostStep = 8, kMostPlaces = std::int64_t{1} << 31;  // of the copy engine
  const std::int64_t places = image[0] * w.out[0] * w.out[1],
                     taken = image[0] * image[1] * image[2] * image[3];
  return weight[1] > 0 && weight[0] > 0 && conv.stride[0] <= kMostStep &&
         conv.stride[1] <= kMostStep && taken > 0 && taken < kMostPlaces && places > 0 &&
         places * 64 < kMostPlaces && places * conv.groups < kMostPlaces;
}

/// Microseconds of a convolution by strips (operators/convolution.h): what a thread does for one of
/// the channels summed, strips of up to four rows sharing the start. `parted`: these may be cut. An
/// H200 took 0.8 to 1.6 of it.
double strip_time(const device::Grid& grid, std::int64_t threads, std::int64_t sums,
                  std::int64_t summed, std::int64_t groups, bool parted) {
  if (parted) {
    const device::StripParts parts = device::strip_parts(grid, threads, summed, groups);
    threads *= parts.count, summed = parts.each + parts.rest;
  }
  constexpr double kStart = 64, kEach = 3, kMostRows = 4, kOccupied = 512, kLanes = 128;
  const auto processors = static_cast<double>(grid.processors());
  const double occupied = processors * kOccupied, all = static_cast<double>(threads),
               rows = std::clamp(all / occupied, 1.0, kMostRows);
  return static_cast<double>(summed) * (kStart / rows + kEach * static_cast<double>(sums)) *
         std::max(all, occupied) / (processors * kLanes * grid.clocks_per_microsecond());
}

/// Whether tiles multiply it. `like`: of the type and the device; `image`: extents of what the
/// windows are taken of.
bool by_tiles(device::ConvolutionOf which, const NDArray& like, const Dims& weight,
              const Dims& image, const Window& w, const Conv& conv) {
  // Fewer channels leave most of a step of 64 summands empty.
  constexpr std::int64_t kLeastChannels = 8;
  using device::ConvolutionOf;
  const bool pieces = like.elem() == Elem::float32;
  if ((pieces && (conv.groups > 1 || weight[1] < kLeastChannels)) ||
      !(pieces || device::has_warp_specialized_product(like.device(), like.elem())) ||
      !fits_tiles(weight, image, conv, w))
    return false;
  const std::int64_t groups = conv.groups, ins = weight[1], outs = weight[0] / groups,
                     taps = weight[2] * weight[3];
  if (!pieces && groups == 1) {
    if (ins >= kLeastChannels) return true;
    if (which != ConvolutionOf::images || outs < kLeastChannels) return false;
  }
  const device::ConvolutionSize size{
      image[0], ins, outs, {image[2], image[3]}, {weight[2], weight[3]}, {w.out[0], w.out[1]}};
  double threads = 0;  // expected, where it is not a contraction
  const auto few = [](std::int64_t results) { return std::min(results, kFewResults); };
  const auto lots = [&](std::int64_t results) { return groups * ceil_div(results, kFewResults); };
  const device::Grid& grid = device::grid_of(like.device());
  if (which == ConvolutionOf::results && by_strips(groups, outs, ins, w.kernel)) {
    threads = strip_time(grid, image[0] * w.out[0] * w.out[1] * lots(outs), taps * few(outs), ins,
                         groups, pieces);
  } else if (which == ConvolutionOf::images && by_strips(groups, ins, outs, w.kernel)) {
    threads = strip_time(grid, image[0] * image[2] * image[3] * lots(ins),
                         ceil_div(taps, conv.stride[0] * conv.stride[1]) * few(ins), outs, groups,
                         pieces);
  } else if (which == ConvolutionOf::weights && groups > 1 && outs * ins <= kFewPairs) {
    return false;
  }
  return device::prefers_tiles(like.device(), like.elem(), which, size, images_of(conv), threads);
}
/// The same of 16-bit floats alone.
bool halves_by_tiles(device::ConvolutionOf which, const NDArray& like, const Dims& weight,
                     const Dims& image, const Window& w, const Conv& conv) {
  return like.elem() != Elem::float32 && by_tiles(which, like, weight, image, w, conv);
}

}  // namespace

device::Images images_of(const Conv& conv) {
  device::Images images;
  for (std::size_t i = 0; i < 2; ++i) {
    images.step[i] = conv.stride[i], images.before[i] = conv.padding[i];
    images.gap[i] = conv.dilation[i];
  }
  images.groups = conv.groups;
  return images;
}

bool card_has_convolution(const NDArray& x, const NDArray& weight) {
  return device_has_contraction(x) && x.elem() == weight.elem() && is_real_float(x.elem());
}

NDArray card_conv2d(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w) {
  const Dims& n = weight.shape();
  NDArray out = NDArray::empty(x.device(), x.elem(), Dims{x.shape()[0], n[0], w.out[0], w.out[1]});
  if (out.size() == 0) return out;
  if (weight.size() == 0) return full(x.device(), x.elem(), out.shape(), Scalar(0));
  if (halves_by_tiles(device::ConvolutionOf::results, x, n, x.shape(), w, conv)) {
    device::warp_specialized_conv(out, x, weight, images_of(conv));
    return out;
  }
  const device::Windows windows{conv.stride, conv.dilation, conv.padding};
  if (is_product(n, conv)) {
    const NDArray from = as_matrices(named(x, conv, w)), factor = as_matrices(weight, x.shape()[0]),
                  to = as_matrices(out);
    if (device::prefers_pieces(to, factor, from) &&
        device::warp_specialized_product(to, factor, from))
      return out;
  }
  if (lays_out_windows(x, weight, conv)) {
    const NDArray rows = device::window_rows(x, w.kernel, w.out, windows);
    return matmul(weight.reshape(Dims{n[0], rows.shape()[1]}), rows).reshape(out.shape());
  }
  if (by_strips(conv.groups, n[0] / conv.groups, n[1], w.kernel)) {
    device::strip_convolution(out, x, weight.contiguous(), conv.groups, windows, false);
  } else if (is_plain(weight, conv) &&
             device::winograd_convolution(out, x, weight, conv.padding, false)) {
  } else if (by_tiles(device::ConvolutionOf::results, x, n, x.shape(), w, conv)) {
    device::warp_specialized_conv(out, x, weight, images_of(conv));
  } else {
    contract(out, padded(x, conv.padding, conv.padding),
             by_group(padded(weight, {0, 0}, {0, 0}), conv.groups), conv.stride, conv.dilation);
  }
  return out;
}

NDArray card_conv2d_input(const NDArray& g, const NDArray& weight, const Conv& conv,
                          const Window& w, std::int64_t h, std::int64_t width) {
  const std::int64_t channels = weight.shape()[1];
  NDArray out =
      NDArray::empty(g.device(), g.elem(), Dims{g.shape()[0], channels * conv.groups, h, width});
  if (out.size() == 0) return out;
  if (g.size() == 0) return full(g.device(), g.elem(), out.shape(), Scalar(0));
  if (halves_by_tiles(device::ConvolutionOf::images, g, weight.shape(), out.shape(), w, conv)) {
    device::warp_specialized_conv_gradients(&out, nullptr, g, out, weight, images_of(conv));
    return out;
  }
  if (by_strips(conv.groups, channels, weight.shape()[0] / conv.groups, w.kernel)) {
    device::strip_convolution(out, g, weight.contiguous(), conv.groups,
                              {conv.stride, conv.dilation, conv.padding}, true);
    return out;
  }
  if (is_product(weight.shape(), conv)) {
    const bool all = conv.stride == Pair{1, 1};
    const NDArray to = all ? out
                           : NDArray::empty(g.device(), g.elem(),
                                            Dims{out.shape()[0], channels, w.out[0], w.out[1]});
    const NDArray from = as_matrices(g), factor = as_matrices(weight, g.shape()[0]).transpose(1, 2),
                  sums = as_matrices(to);
    if (device::prefers_pieces(sums, factor, from) &&
        device::warp_specialized_product(sums, factor, from)) {
      if (all) return out;
      device::spread_places(out, to, images_of(conv).step);
      return out;
    }
  }
  if (is_plain(weight, conv) &&
      device::winograd_convolution(out, g, weight, {2 - conv.padding[0], 2 - conv.padding[1]},
                                   true))
    return out;
  if (by_tiles(device::ConvolutionOf::images, g, weight.shape(), out.shape(), w, conv)) {
    device::warp_specialized_conv_gradients(&out, nullptr, g, out, weight, images_of(conv));
    return out;
  }
  if (conv.stride == w.kernel && conv.dilation == Pair{1, 1})
    return side_by_side(out, g, weight, conv);
  const std::vector<Phase> rows = phases(h, w.kernel[0], conv.stride[0], conv.dilation[0],
                                         conv.padding[0]),
                           columns = phases(width, w.kernel[1], conv.stride[1], conv.dilation[1],
                                            conv.padding[1]);
  // What all phases together read beside g.
  Pair before{0, 0}, after{0, 0};
  for (int axis = 0; axis < 2; ++axis) {
    const std::size_t i = static_cast<std::size_t>(axis);
    for (const Phase& p : axis == 0 ? rows : columns) {
      if (p.taps == 0) continue;
      before[i] = std::max(before[i], -p.from);
      after[i] = std::max(after[i], p.from + (p.taps - 1) * p.gap + p.count - g.shape()[2 + axis]);
    }
  }
  const NDArray from = padded(g, before, after);
  const NDArray groups =
      by_group(padded(weight, {0, 0}, {0, 0}), conv.groups).transpose(1, 2);  // (g, c, o, i, j)
  for (const Phase& y : rows) {
    for (const Phase& x : columns) {
      const NDArray part =
          out.slice(2, y.place, y.count, conv.stride[0]).slice(3, x.place, x.count, conv.stride[1]);
      if (y.taps == 0 || x.taps == 0) {
        assign(part, full(g.device(), g.elem(), Dims{1}, Scalar(0)).broadcast_to(part.shape()));
        continue;
      }
      const int window[2] = {3, 4};
      const NDArray taps = groups.slice(3, y.tap, y.taps, y.tap_step)
                               .slice(4, x.tap, x.taps, x.tap_step)
                               .flip(window);
      const std::int64_t top = y.from + before[0], left = x.from + before[1];
      contract(
          part,
          from.slice(2, top, from.shape()[2] - top, 1).slice(3, left, from.shape()[3] - left, 1),
          taps, {1, 1}, {y.gap, x.gap});
    }
  }
  return out;
}

void card_conv2d_gradients(NDArray& dx, NDArray& dw, const NDArray& g, const NDArray& x,
                           const NDArray& weight, const Conv& conv) {
  const Dims &n = x.shape(), &k = weight.shape(), &m = g.shape();
  const Window w{{k[2], k[3]}, conv.stride, conv.dilation, {m[2], m[3]}};
  using device::ConvolutionOf;
  // Both read g in the order of tiles, which is made once; what is asked before pieces goes its own
  // way.
  const bool pieces_first = !is_plain(weight, conv) && !is_product(k, conv) &&
                            !by_strips(conv.groups, k[1], k[0], w.kernel);
  if ((g.elem() != Elem::float32 || pieces_first) &&
      by_tiles(ConvolutionOf::images, g, k, n, w, conv) &&
      by_tiles(ConvolutionOf::weights, g, k, n, w, conv)) {
    dx = NDArray::empty(g.device(), g.elem(), n), dw = NDArray::empty(g.device(), g.elem(), k);
    return device::warp_specialized_conv_gradients(&dx, &dw, g, x, weight, images_of(conv));
  }
  dx = card_conv2d_input(g, weight, conv, w, n[2], n[3]);
  dw = card_conv2d_weight(g, x, k, conv, w);
}

NDArray card_conv2d_weight(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                           const Window& w) {
  NDArray out = NDArray::empty(g.device(), g.elem(), shape);
  if (out.size() == 0) return out;
  if (g.size() == 0) return full(g.device(), g.elem(), shape, Scalar(0));
  const std::int64_t groups = conv.groups, outs = shape[0] / groups, ins = shape[1];
  if (halves_by_tiles(device::ConvolutionOf::weights, g, shape, x.shape(), w, conv)) {
    device::warp_specialized_conv_gradients(nullptr, &out, g, x, out, images_of(conv));
    return out;
  }
  if (groups > 1 && outs * ins <= kFewPairs &&
      device::strip_weights(out, g, x, groups, {conv.stride, conv.dilation, conv.padding}))
    return out;
  const device::Windows windows{conv.stride, conv.dilation, conv.padding};
  if (is_product(shape, conv)) {
    const NDArray from = as_matrices(named(x, conv, w)).transpose(1, 2), by = as_matrices(g),
                  sums = NDArray::empty(x.device(), Elem::float32,
                                        Dims{g.shape()[0], shape[0], shape[1]});
    if (device::prefers_pieces(sums, by, from) &&
        device::warp_specialized_product(sums, by, from)) {
      device::add_parts(out, sums);
      return out;
    }
  }
  if (lays_out_windows(x, out, conv)) {
    const NDArray rows = device::window_rows(x, w.kernel, w.out, windows);
    const Dims& n = g.shape();
    const NDArray sums =
        NDArray::empty(x.device(), Elem::float32, Dims{n[0], n[1], rows.shape()[1]});
    if (device::warp_specialized_product(sums, g.reshape(Dims{n[0], n[1], n[2] * n[3]}),
                                         rows.transpose(1, 2))) {
      device::add_parts(out, sums);
      return out;
    }
  }
  if (is_plain(out, conv) && device::winograd_weights(out, g, x, conv.padding)) return out;
  if (by_tiles(device::ConvolutionOf::weights, g, shape, x.shape(), w, conv)) {
    device::warp_specialized_conv_gradients(nullptr, &out, g, x, out, images_of(conv));
    return out;
  }
  const NDArray from = padded(x, conv.padding, conv.padding);
  const NDArray by = padded(g, {0, 0}, {0, 0});
  const Dims &s = from.strides(), &sg = by.strides(), &so = out.strides();
  device::Contraction c;
  c.batch = Dims{groups};
  c.m = Dims{outs};
  c.n = Dims{ins, shape[2], shape[3]};
  c.k = Dims{g.shape()[0], w.out[0], w.out[1]};
  c.a = {Dims{sg[1] * outs}, Dims{sg[1]}, Dims{sg[0], sg[2], sg[3]}};
  c.b = {Dims{s[1] * ins}, Dims{s[0], s[2] * conv.stride[0], s[3] * conv.stride[1]},
         Dims{s[1], s[2] * conv.dilation[0], s[3] * conv.dilation[1]}};
  c.out = {Dims{so[0] * outs}, Dims{so[0]}, Dims{so[1], so[2], so[3]}};
  device::grid_contract(out, by, from, c);
  return out;
}

}  // namespace weft
