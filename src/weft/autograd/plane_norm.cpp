// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/plane_norm.h"

#include "weft/autograd/gpu/batch_norm.h"
#include "weft/autograd/host_plane_norm.h"

namespace weft {

namespace {

/// The same of tensors, for gradients of the gradient.
std::vector<Tensor> composed_gradients(const GradientCall& c, const PlaneNorm& norm, bool weighted,
                                       bool shifted) {
  const Tensor& in = c.x[0];
  const std::int64_t channels = in.shape()[1];
  Dims along{1, channels};
  Axes rest{false, Dims{}};
  for (int i = 2; i < in.ndim(); ++i) along.push_back(1);
  const Tensor gs = weighted ? c.g * reshape(c.x[1], along) : c.g;
  // Groups of channels become an axis, whose statistics are over all that follow.
  Dims shape = in.shape();
  if (norm.groups) {
    shape = Dims{in.shape()[0], norm.groups, in.size() / in.shape()[0] / norm.groups};
    rest.axes = Dims{2};
  } else {
    rest.axes.push_back(0);
    for (int i = 2; i < in.ndim(); ++i) rest.axes.push_back(i);
  }
  const Tensor x = reshape(in, shape), g = reshape(gs, shape);
  const Tensor centred = x - mean(x, rest, true);
  const Tensor spread = rsqrt(mean(centred * centred, rest, true) + norm.eps);
  const Tensor normal = centred * spread;
  std::vector<Tensor> out(c.x.size());
  out[0] = reshape((g - mean(g, rest, true) - normal * mean(g * normal, rest, true)) * spread,
                   in.shape());
  std::size_t next = 1;
  const Dims flat{channels};
  if (weighted) out[next++] = reshape(sum_to(c.g * reshape(normal, in.shape()), along), flat);
  if (shifted) out[next] = reshape(sum_to(c.g, along), flat);
  return out;
}

}  // namespace

bool has_plane_norm(const NDArray& x, const PlaneNorm& norm) {
  return host_has_plane_norm(x) || (norm.groups == 0 && device::has_batch_norm(x));
}

Tensor plane_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const PlaneNorm& norm,
                  NDArray* mean, NDArray* variance) {
  const bool weighted = weight.defined(), shifted = bias.defined(), host = x.data().on_host();
  const NDArray w = weighted ? weight.data() : NDArray(), b = shifted ? bias.data() : NDArray();
  NDArray y;
  if (host) {
    HostNorm found = host_plane_norm(x.data(), w, b, norm);
    y = found.y, *mean = found.mean, *variance = found.variance;
  } else {
    device::BatchNorm found = device::batch_norm(x.data(), w, b, norm.eps);
    y = found.y, *mean = found.mean, *variance = found.variance;
  }
  std::vector<Tensor> inputs = {x};
  if (weighted) inputs.push_back(weight);
  if (shifted) inputs.push_back(bias);
  auto gradient = [=, m = *mean, v = *variance](const GradientCall& c) {
    bool linked = c.g.requires_grad();
    for (std::size_t i = 0; i < 1u + weighted; ++i) linked |= c.x[i].requires_grad();
    if (linked) return composed_gradients(c, norm, weighted, shifted);
    const NDArray &g = c.g.data(), &in = c.x[0].data();
    const NDArray scale = weighted ? c.x[1].data() : NDArray();
    NDArray dx, dw, db;
    if (host) {
      HostNormGradient d = host_plane_norm_gradient(g, in, m, v, scale, norm);
      dx = d.x, dw = d.weight, db = d.bias;
    } else {
      device::BatchNormGradient d = device::batch_norm_gradient(g, in, m, v, scale, norm.eps);
      dx = d.x, dw = d.weight, db = d.bias;
    }
    std::vector<Tensor> out = {Tensor(dx)};
    if (weighted) out.emplace_back(dw.astype(c.x[1].elem()));
    if (shifted) out.emplace_back(db.astype(c.x.back().elem()));
    return out;
  };
  return make_tensor("plane_norm", y, std::move(inputs), gradient, weighted ? 3 : 1);
}

}  // namespace weft
