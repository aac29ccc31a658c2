// SPDX-License-Identifier: Apache-2.0
#include "weft/array/turned.h"

#include <algorithm>
#include <utility>

#include "weft/array/collapse.h"

namespace weft {

Turned::Turned(std::span<const NDArray* const> in, const Dims& shape)
    : arrays_(in.begin(), in.end()) {
  if (std::all_of(in.begin(), in.end(), [](const NDArray* a) { return a->is_contiguous(); }))
    return;
  std::vector<Arg> args;
  for (const NDArray* a : in) args.emplace_back(*a);
  std::vector<int> order;
  if (!shared_order(shape, args.data(), static_cast<int>(args.size()), order)) return;
  order_ = std::move(order);
  for (const NDArray* a : in) views_.push_back(a->broadcast_to(shape).permute(order_));
  for (std::size_t k = 0; k < views_.size(); ++k) arrays_[k] = &views_[k];
}

Dims Turned::extents(const Dims& own) const {
  if (order_.empty()) return own;
  const int before = static_cast<int>(order_.size()) - own.size();
  Dims out;
  for (const int axis : order_) out.push_back(axis < before ? 1 : own[axis - before]);
  return out;
}

NDArray Turned::back(const NDArray& x, const Dims& own) const {
  return order_.empty() ? x : x.permute(inverse_order(order_)).reshape(own);
}

}  // namespace weft
