// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/gpu/resample.h"

#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/operators/resample.h"

namespace weft {

namespace {

Tensor resampled(const Tensor& x, const std::vector<ResampleAxis>& axes, bool adjoint) {
  const NDArray in = x.data().contiguous();
  Dims shape = in.shape();
  std::int64_t planes = 1, from = 1, to = 1;
  for (int i = 0; i < shape.size(); ++i) {
    const int k = i - (shape.size() - static_cast<int>(axes.size()));
    if (k < 0) {
      planes *= shape[i];
      continue;
    }
    const ResampleAxis& axis = axes[static_cast<std::size_t>(k)];
    from *= shape[i];
    shape[i] = adjoint ? axis.extent : axis.size;
    to *= shape[i];
  }
  NDArray out = NDArray::empty(in.device(), in.elem(), shape);
  if (out.size() > 0) {
    operators::ResampleSpec spec;
    spec.type = std::string(name_of(in.elem()));
    spec.sums = std::string(name_of(device::sum_elem(in.elem())));
    spec.narrow = device::fits_narrow(planes * std::max(from, to));
    spec.adjoint = adjoint;
    const std::int64_t blocks = ceil_div(to, std::int64_t{operators::kResampleThreads});
    ProgramCall call(in.device());
    call.array(in).array(out);
    call.integer(blocks * ceil_div(planes, std::int64_t{operators::kResamplePlanes}));
    call.integer(blocks).integer(to).integer(planes);
    for (std::size_t k = 0; k < axes.size(); ++k) {
      spec.axes[k + 3 - axes.size()] = true;
      call.integer(axes[k].extent).integer(axes[k].size).real(axes[k].step).real(axes[k].bias);
    }
    call.run({"resample",
              {static_cast<int>(in.elem()), spec.narrow, static_cast<int>(axes.size()), adjoint}},
             [&] { return operators::resample_program(spec); });
  }
  return make_tensor(
      adjoint ? "resample_adjoint" : "resample", std::move(out), {x},
      [axes, adjoint](const GradientCall& c) {
        return std::vector<Tensor>{resampled(c.g, axes, !adjoint)};
      },
      kReadsNothing);
}

}  // namespace

Tensor grid_resample(const Tensor& x, const std::vector<ResampleAxis>& axes) {
  return resampled(x, axes, false);
}

}  // namespace weft
