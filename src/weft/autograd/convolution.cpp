// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/convolution.h"

#include <algorithm>

#include "weft/autograd/gpu/convolution.h"
#include "weft/autograd/host_convolution.h"
#include "weft/devices/dispatch.h"
#include "weft/devices/warp_specialized.h"

namespace weft {

namespace {

std::string text(const Pair& p) { return cat(p[0], " x ", p[1]); }

NDArray window_view(const NDArray& x, const Window& w) {
  const Dims &n = x.shape(), &s = x.strides();
  return x.as_strided(Dims{n[0], n[1], w.out[0], w.out[1], w.kernel[0], w.kernel[1]},
                      Dims{s[0], s[1], s[2] * w.stride[0], s[3] * w.stride[1], s[2] * w.dilation[0],
                           s[3] * w.dilation[1]},
                      x.offset());
}

/// Extent of one window along an axis.
std::int64_t span(const Window& w, std::size_t i) { return w.dilation[i] * (w.kernel[i] - 1) + 1; }

void check_options(std::string_view name, const Conv& conv) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (conv.stride[i] < 1 || conv.dilation[i] < 1 || conv.padding[i] < 0 ||
        conv.output_padding[i] < 0 ||
        conv.output_padding[i] >= std::max(conv.stride[i], conv.dilation[i]) || conv.groups < 1) {
      throw Error(ErrorKind::value, cat("array.", name, ".option"),
                  cat(name, " with stride ", text(conv.stride), ", padding ", text(conv.padding),
                      ", dilation ", text(conv.dilation), ", output_padding ",
                      text(conv.output_padding), ", groups ", conv.groups))
          .note(
              "rule: stride, dilation and groups at least 1, padding at least 0, output_padding "
              "below the stride or the dilation");
    }
  }
}

[[noreturn]] void refuse_shapes(std::string_view name, const Tensor& x, const Tensor& weight,
                                const Conv& conv, std::string_view rule) {
  throw Error(ErrorKind::shape, cat("array.", name, ".shape"),
              cat(name, " of ", describe(x.data()), " with weights ", describe(weight.data()),
                  ", groups ", conv.groups, ", padding ", text(conv.padding)))
      .note(cat("rule: ", rule));
}

/// (groups, n * rows, features) as the left operand of one product for each group.
Tensor grouped(const Tensor& x, std::span<const int> order, const Dims& split, const Dims& flat) {
  return reshape(permute(reshape(x, split), order), flat);
}

}  // namespace

Tensor windows(const Tensor& x, const Window& w) {
  const std::int64_t oh = w.out[0], ow = w.out[1];
  if (x.ndim() != 4 || w.kernel[0] < 1 || w.kernel[1] < 1 || w.stride[0] < 1 || w.stride[1] < 1 ||
      w.dilation[0] < 1 || w.dilation[1] < 1 || oh < 0 || ow < 0 ||
      (oh > 0 && (oh - 1) * w.stride[0] + span(w, 0) > x.shape()[2]) ||
      (ow > 0 && (ow - 1) * w.stride[1] + span(w, 1) > x.shape()[3])) {
    throw Error(ErrorKind::shape, "array.windows.shape",
                cat("windows of ", text(w.kernel), " with stride ", text(w.stride),
                    " and dilation ", text(w.dilation), " do not fit ", describe(x.data())))
        .note("rule: four dimensions (n, c, h, w) with h and w at least the window's");
  }
  return make_tensor(
      "windows", window_view(x.data(), w), {x},
      [w](const GradientCall& c) { return std::vector<Tensor>{fold(c.g, c.x[0].shape(), w)}; },
      kReadsNothing);
}

Tensor windows(const Tensor& x, std::int64_t kh, std::int64_t kw, std::int64_t stride) {
  Window w{{kh, kw}, {stride, stride}, {1, 1}, {-1, -1}};
  if (x.ndim() == 4 && stride >= 1 && x.shape()[2] >= kh && x.shape()[3] >= kw) {
    w.out = {(x.shape()[2] - kh) / stride + 1, (x.shape()[3] - kw) / stride + 1};
  }
  return windows(x, w);
}

Tensor fold(const Tensor& x, const Dims& shape, const Window& w) {
  NDArray out = full(x.data().device(), x.elem(), shape, Scalar(0));
  for (std::int64_t i = 0; i < w.kernel[0]; ++i) {
    for (std::int64_t j = 0; j < w.kernel[1]; ++j) {
      if (x.size() == 0) continue;
      NDArray part = x.data().select(5, j).select(4, i);
      NDArray target = out.slice(2, i * w.dilation[0], w.out[0], w.stride[0])
                           .slice(3, j * w.dilation[1], w.out[1], w.stride[1]);
      apply_into(Op::add, target, target, part);
    }
  }
  return make_tensor(
      "fold", std::move(out), {x},
      [w](const GradientCall& c) { return std::vector<Tensor>{windows(c.g, w)}; }, kReadsNothing);
}

namespace {

/// Of products over copied windows; differentiable any number of times, on any device.
Tensor composed_conv2d(const Tensor& x, const Tensor& weight, const Conv& conv, const Window& w) {
  const std::int64_t g = conv.groups;
  const Pair p = conv.padding;
  Tensor in = p[0] || p[1] ? pad(x, {{0, 0}, {0, 0}, {p[0], p[0]}, {p[1], p[1]}}) : x;
  const std::int64_t n = x.shape()[0], oh = w.out[0], ow = w.out[1], o = weight.shape()[0],
                     cg = weight.shape()[1], k = cg * w.kernel[0] * w.kernel[1];
  Tensor win = windows(in, w);
  if (g == 1) {
    const int order[] = {0, 2, 3, 1, 4, 5}, back[] = {0, 3, 1, 2};
    Tensor rows = reshape(permute(win, order), Dims{n * oh * ow, k});
    Tensor out = matmul(rows, transpose(reshape(weight, Dims{o, k}), 0, 1));
    return permute(reshape(out, Dims{n, oh, ow, o}), back);
  }
  const int order[] = {1, 0, 3, 4, 2, 5, 6}, back[] = {1, 0, 4, 2, 3};
  Tensor rows = grouped(win, order, Dims{n, g, cg, oh, ow, w.kernel[0], w.kernel[1]},
                        Dims{g, n * oh * ow, k});
  Tensor out = matmul(rows, transpose(reshape(weight, Dims{g, o / g, k}), 1, 2));
  return reshape(permute(reshape(out, Dims{g, n, oh, ow, o / g}), back), Dims{n, o, oh, ow});
}

/// A gradient that must itself be differentiable is composed of operations with gradients.
bool linked(const GradientCall& c) {
  return c.g.requires_grad() || c.x[0].requires_grad() || c.x[1].requires_grad();
}

/// The gradients of composed_conv2d, themselves with gradients.
std::vector<Tensor> composed_gradients(const GradientCall& c, const Conv& conv, const Window& w) {
  const Tensor y[1] = {composed_conv2d(c.x[0], c.x[1], conv, w)}, upper[1] = {c.g},
               wanted[2] = {c.x[0], c.x[1]};
  return gradients(y, upper, wanted, Graph::create);
}

/// Gradients do not read the convolution itself: where only they are asked it stays unset.
enum class Result { computed, unset };

Reads both(bool want_x, bool want_w) { return (want_w ? 1u : 0u) | (want_x ? 2u : 0u); }

/// A convolution and its gradients without copied windows.
struct Kernels {
  NDArray (*forward)(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w);
  NDArray (*input)(const NDArray& g, const NDArray& weight, const Conv& conv, const Window& w,
                   std::int64_t h, std::int64_t width);
  NDArray (*weight)(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                    const Window& w);
  /// Both gradients at once, where that saves work; null: one after the other.
  void (*gradients)(NDArray& dx, NDArray& dw, const NDArray& g, const NDArray& x,
                    const NDArray& weight, const Conv& conv) = nullptr;
};

constexpr Kernels kHost{host_conv2d, host_conv2d_input, host_conv2d_weight};
constexpr Kernels kCard{card_conv2d, card_conv2d_input, card_conv2d_weight, card_conv2d_gradients};

/// Null where the device has none: the convolution is composed of products then.
const Kernels* kernels_of(std::string_view name, const Tensor& x, const Tensor& weight) {
  if (host_has_convolution(x.data(), weight.data())) return &kHost;
  if (!card_has_convolution(x.data(), weight.data())) return nullptr;
  check_same_device(x.data(), weight.data(), name);
  return &kCard;
}

NDArray unset_result(const Tensor& x, const Tensor& weight, const Window& w) {
  return NDArray::empty(x.data().device(), x.elem(),
                        Dims{x.shape()[0], weight.shape()[0], w.out[0], w.out[1]});
}

Tensor kernel_node(const Kernels& k, const Tensor& x, const Tensor& weight, const Conv& conv,
                   const Window& w, Result result) {
  const bool want_x = x.requires_grad(), want_w = weight.requires_grad();
  return make_tensor(
      "conv2d",
      result == Result::computed ? k.forward(x.data(), weight.data(), conv, w)
                                 : unset_result(x, weight, w),
      {x, weight},
      [=, &k](const GradientCall& c) {
        if (linked(c)) return composed_gradients(c, conv, w);
        std::vector<Tensor> out(2);
        const Dims &in = c.x[0].shape(), &shape = c.x[1].shape();
        if (want_x && want_w && k.gradients) {
          NDArray dx, dw;
          k.gradients(dx, dw, c.g.data(), c.x[0].data(), c.x[1].data(), conv);
          out[0] = Tensor(std::move(dx)), out[1] = Tensor(std::move(dw));
          return out;
        }
        if (want_x) out[0] = Tensor(k.input(c.g.data(), c.x[1].data(), conv, w, in[2], in[3]));
        if (want_w) out[1] = Tensor(k.weight(c.g.data(), c.x[0].data(), shape, conv, w));
        return out;
      },
      both(want_x, want_w));
}

Tensor convolution(const Tensor& x, const Tensor& weight, const Conv& conv, Result result) {
  constexpr std::string_view rule =
      "(n, c, h, w) with (o, c / groups, kh, kw); o and c divide by groups; the padded image is at "
      "least as large as the window";
  check_options("conv2d", conv);
  const std::int64_t g = conv.groups;
  if (x.ndim() != 4 || weight.ndim() != 4 || weight.shape()[0] % g != 0 ||
      x.shape()[1] != weight.shape()[1] * g || weight.shape()[2] < 1 || weight.shape()[3] < 1) {
    refuse_shapes("conv2d", x, weight, conv, rule);
  }
  Window w{{weight.shape()[2], weight.shape()[3]}, conv.stride, conv.dilation, {0, 0}};
  for (std::size_t i = 0; i < 2; ++i) {
    std::int64_t room = x.shape()[static_cast<int>(2 + i)] + 2 * conv.padding[i] - span(w, i);
    if (room < 0) refuse_shapes("conv2d", x, weight, conv, rule);
    w.out[i] = room / conv.stride[i] + 1;
  }
  if (const Kernels* k = kernels_of("conv2d", x, weight))
    return kernel_node(*k, x, weight, conv, w, result);
  return composed_conv2d(x, weight, conv, w);
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv& conv) {
  return convolution(x, weight, conv, Result::computed);
}

Tensor conv2d(const Tensor& x, const Tensor& weight, std::int64_t stride, std::int64_t padding) {
  return conv2d(x, weight, Conv{{stride, stride}, {padding, padding}, {1, 1}, {0, 0}, 1});
}

namespace {

/// Of one product and a fold; `whole`: extents before the padding is cut off.
Tensor composed_transpose(const Tensor& x, const Tensor& weight, const Conv& conv, const Window& w,
                          const Pair& whole) {
  const std::int64_t g = conv.groups, n = x.shape()[0], h = x.shape()[2], wd = x.shape()[3],
                     cg = x.shape()[1] / g, og = weight.shape()[1];
  const std::int64_t k = og * w.kernel[0] * w.kernel[1];
  const int order[] = {1, 0, 3, 4, 2}, back[] = {1, 0, 4, 2, 3, 5, 6};
  Tensor rows = grouped(x, order, Dims{n, g, cg, h, wd}, Dims{g, n * h * wd, cg});
  Tensor spread = matmul(rows, reshape(weight, Dims{g, cg, k}));
  Tensor win =
      reshape(permute(reshape(spread, Dims{g, n, h, wd, og, w.kernel[0], w.kernel[1]}), back),
              Dims{n, g * og, h, wd, w.kernel[0], w.kernel[1]});
  Tensor out = fold(win, Dims{n, g * og, whole[0], whole[1]}, w);
  const Pair p = conv.padding;
  if (p[0] == 0 && p[1] == 0) return out;
  auto middle = [p, whole](const NDArray& a) {
    return a.slice(2, p[0], whole[0] - 2 * p[0], 1).slice(3, p[1], whole[1] - 2 * p[1], 1);
  };
  return slice_view(out, middle(out.data()), middle);
}

Tensor transposed_convolution(const Tensor& x, const Tensor& weight, const Conv& conv,
                              Result result) {
  constexpr std::string_view rule =
      "(n, c, h, w) with (c, o / groups, kh, kw); c divides by groups; padding leaves at least one "
      "row and column";
  check_options("conv_transpose2d", conv);
  const std::int64_t g = conv.groups;
  if (x.ndim() != 4 || weight.ndim() != 4 || x.shape()[1] != weight.shape()[0] ||
      x.shape()[1] % g != 0 || x.shape()[2] < 1 || x.shape()[3] < 1 || weight.shape()[2] < 1 ||
      weight.shape()[3] < 1) {
    refuse_shapes("conv_transpose2d", x, weight, conv, rule);
  }
  const std::int64_t h = x.shape()[2], wd = x.shape()[3];
  Window w{{weight.shape()[2], weight.shape()[3]}, conv.stride, conv.dilation, {h, wd}};
  Pair whole;  // before the padding is cut off
  for (std::size_t i = 0; i < 2; ++i) {
    whole[i] = (w.out[i] - 1) * conv.stride[i] + span(w, i) + conv.output_padding[i];
    if (whole[i] - 2 * conv.padding[i] < 1) {
      refuse_shapes("conv_transpose2d", x, weight, conv, rule);
    }
  }
  const Pair p = conv.padding, size{whole[0] - 2 * p[0], whole[1] - 2 * p[1]};
  if (const Kernels* k = kernels_of("conv_transpose2d", x, weight)) {
    const bool want_x = x.requires_grad(), want_w = weight.requires_grad();
    return make_tensor(
        "conv_transpose2d",
        result == Result::computed
            ? k->input(x.data(), weight.data(), conv, w, size[0], size[1])
            : NDArray::empty(x.data().device(), x.elem(),
                             Dims{x.shape()[0], weight.shape()[1] * g, size[0], size[1]}),
        {x, weight},
        [=](const GradientCall& c) {
          if (linked(c)) {
            const Tensor y[1] = {composed_transpose(c.x[0], c.x[1], conv, w, whole)},
                         upper[1] = {c.g}, wanted[2] = {c.x[0], c.x[1]};
            return gradients(y, upper, wanted, Graph::create);
          }
          std::vector<Tensor> out(2);
          if (want_x) out[0] = Tensor(k->forward(c.g.data(), c.x[1].data(), conv, w));
          if (want_w)
            out[1] = Tensor(k->weight(c.x[0].data(), c.g.data(), c.x[1].shape(), conv, w));
          return out;
        },
        both(want_x, want_w));
  }
  return composed_transpose(x, weight, conv, w, whole);
}

}  // namespace

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Conv& conv) {
  return transposed_convolution(x, weight, conv, Result::computed);
}

std::vector<Tensor> convolution_gradients(const Tensor& g, const Tensor& x, const Tensor& weight,
                                          const Conv& conv, bool transposed) {
  const Tensor y[1] = {transposed ? transposed_convolution(x, weight, conv, Result::unset)
                                  : convolution(x, weight, conv, Result::unset)},
               upper[1] = {g}, wanted[2] = {x, weight};
  if (g.shape() != y[0].shape()) {
    throw Error(ErrorKind::shape, "array.conv2d.shape",
                cat("gradients of a convolution for ", describe(g.data())))
        .note(cat("the convolution of ", describe(x.data()), " with weights ",
                  describe(weight.data()), " has shape ", to_string(y[0].shape())));
  }
  return gradients(y, upper, wanted, Graph::discard);
}

}  // namespace weft
