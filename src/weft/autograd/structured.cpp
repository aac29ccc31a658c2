// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/structured.h"

namespace weft {

Tensor take_along_axis(const Tensor& x, const NDArray& indices, int axis) {
  axis = normalize_axis(axis, x.ndim(), "take_along_axis");
  // The array operation checks shapes and indices; its places are then spelled out for gather.
  const Dims shape = take_along_axis(x.data(), indices, axis).shape();
  Dims grown = shape;
  grown[axis] = x.shape()[axis];
  std::vector<NDArray> places;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i == axis) {
      places.push_back(indices.broadcast_to(shape));
      continue;
    }
    Dims line(x.ndim(), 1);
    line[i] = shape[i];
    places.push_back(
        arange(x.device(), Elem::int64, 0, 1, shape[i]).reshape(line).broadcast_to(shape));
  }
  return gather(grown == x.shape() ? x : broadcast_to(x, grown), std::move(places));
}

Tensor sort(const Tensor& x, int axis, bool descending) {
  return take_along_axis(x, argsort(x.data(), axis, descending), axis);
}

Tensor cumulative_sum(const Tensor& x, int axis) {
  axis = normalize_axis(axis, x.ndim(), "cumulative");
  return make_tensor(
      "cumulative_sum", scan(ReduceOp::sum, x.data(), axis), {x},
      [axis](const GradientCall& c) {
        const int axes[] = {axis};
        return std::vector<Tensor>{flip(cumulative_sum(flip(c.g, axes), axis), axes)};
      },
      kReadsNothing);
}

Tensor scatter_add(const Tensor& x, std::vector<NDArray> indices, const Tensor& values) {
  NDArray out = x.data().copy();
  scatter(out, indices, values.data(), true);
  return make_tensor(
      "scatter_add", std::move(out), {x, values},
      [indices](const GradientCall& c) {
        return std::vector<Tensor>{c.g, gather(c.g, indices)};
      },
      kReadsNothing);
}

}  // namespace weft
