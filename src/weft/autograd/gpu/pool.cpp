// SPDX-License-Identifier: Apache-2.0
// The largest element of windows, with its gradients, on the host and on devices with a grid.

#include "weft/autograd/gpu/pool.h"
#include "weft/autograd/host_pool.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/operators/pool.h"

namespace weft {

namespace {

enum class Way { max, spread, pick };

operators::PoolSpec spec_of(const PoolWindows& w, Elem elem, bool narrow) {
  operators::PoolSpec spec;
  spec.type = std::string(name_of(elem));
  for (std::size_t a = 0; a < 3; ++a) {
    spec.kernel[a] = static_cast<int>(w.kernel[a]), spec.stride[a] = static_cast<int>(w.stride[a]);
    spec.padding[a] = static_cast<int>(w.padding[a]);
    spec.dilation[a] = static_cast<int>(w.dilation[a]);
  }
  spec.narrow = narrow;
  return spec;
}

bool is_narrow(const PoolWindows& w) {
  return device::fits_narrow(w.planes * w.extents[0] * w.extents[1] * w.extents[2]) &&
         device::fits_narrow(w.planes * w.windows[0] * w.windows[1] * w.windows[2]);
}

/// `third`: what the program writes last; elements are counted in `out`.
void run(Way way, const PoolWindows& w, const NDArray& first, const NDArray& second,
         const NDArray& third, const NDArray& out) {
  if (out.on_host()) {
    if (way == Way::max) return host_pool_max(w, first, second, third);
    return way == Way::spread ? host_pool_spread(w, first, second, out)
                              : host_pool_pick(w, first, second, out);
  }
  const bool narrow = is_narrow(w);
  ProgramCall call(out.device());
  call.array(first).array(second).array(third);
  call.integer((out.size() + operators::kPoolThreads - 1) / operators::kPoolThreads);
  call.integer(out.size());
  for (std::int64_t n : w.extents) call.integer(n);
  for (std::int64_t n : w.windows) call.integer(n);
  const int elem = static_cast<int>(out.elem());
  const auto &k = w.kernel, &s = w.stride, &p = w.padding, &d = w.dilation;
  const operators::PoolSpec spec = spec_of(w, out.elem(), narrow);
  switch (way) {
    case Way::max:
      return call.run({"pool.max",
                       {elem + 16 * narrow, k[0], k[1], k[2], s[0], s[1], s[2], p[0], p[1], p[2],
                        d[0], d[1], d[2]}},
                      [&] { return pool_max(spec); });
    case Way::spread:
      return call.run({"pool.spread",
                       {elem + 16 * narrow, k[0], k[1], k[2], s[0], s[1], s[2], p[0], p[1], p[2],
                        d[0], d[1], d[2]}},
                      [&] { return pool_spread(spec); });
    case Way::pick: return call.run({"pool.pick", {elem, narrow}}, [&] { return pool_pick(spec); });
  }
}

Tensor pick(const Tensor& x, const NDArray& at, const PoolWindows& w, const Dims& out_shape);

Tensor spread(const Tensor& g, const NDArray& at, const PoolWindows& w, const Dims& shape) {
  NDArray out = NDArray::empty(g.data().device(), g.data().elem(), shape);
  const NDArray in = g.data().contiguous();
  if (out.size() > 0) run(Way::spread, w, in, at, out, out);
  return make_tensor(
      "max_pool_spread", std::move(out), {g},
      [at, w, from = g.shape()](const GradientCall& c) {
        return std::vector<Tensor>{pick(c.g, at, w, from)};
      },
      kReadsNothing);
}

Tensor pick(const Tensor& x, const NDArray& at, const PoolWindows& w, const Dims& out_shape) {
  NDArray out = NDArray::empty(x.data().device(), x.data().elem(), out_shape);
  const NDArray in = x.data().contiguous();
  if (out.size() > 0) run(Way::pick, w, in, at, out, out);
  return make_tensor(
      "max_pool_pick", std::move(out), {x},
      [at, w, from = x.shape()](const GradientCall& c) {
        return std::vector<Tensor>{spread(c.g, at, w, from)};
      },
      kReadsNothing);
}

}  // namespace

Tensor max_pool(const Tensor& x, const PoolWindows& w, const Dims& out_shape) {
  const NDArray in = x.data().contiguous();
  NDArray out = NDArray::empty(in.device(), in.elem(), out_shape);
  const bool narrow = !in.on_host() && is_narrow(w);
  const NDArray at = NDArray::empty(in.device(), narrow ? Elem::int32 : Elem::int64, out_shape);
  if (out.size() > 0) run(Way::max, w, in, out, at, out);
  return make_tensor(
      "max_pool", std::move(out), {x},
      [at, w, shape = x.shape()](const GradientCall& c) {
        return std::vector<Tensor>{spread(c.g, at, w, shape)};
      },
      kReadsNothing);
}

}  // namespace weft
