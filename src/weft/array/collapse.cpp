// SPDX-License-Identifier: Apache-2.0
#include "weft/array/collapse.h"

#include <algorithm>

namespace weft {

void collapse_axes(Dims& shape, std::vector<Dims>& strides) {
  Dims merged;
  std::vector<Dims> steps(strides.size());
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool joins = merged.size() > 0;
    for (std::size_t k = 0; joins && k < strides.size(); ++k)
      joins = steps[k][merged.size() - 1] == strides[k][i] * shape[i];
    if (joins) {
      merged[merged.size() - 1] *= shape[i];
      for (std::size_t k = 0; k < strides.size(); ++k) steps[k][merged.size() - 1] = strides[k][i];
    } else {
      merged.push_back(shape[i]);
      for (std::size_t k = 0; k < strides.size(); ++k) steps[k].push_back(strides[k][i]);
    }
  }
  if (merged.empty()) {
    merged.push_back(1);
    for (Dims& s : steps) s.push_back(0);
  }
  shape = merged;
  strides = steps;
}

bool shared_order(const Dims& shape, const Arg* args, int count, std::vector<int>& order) {
  const NDArray* first = nullptr;
  for (int k = 0; k < count; ++k) {
    const NDArray* a = args[k].array;
    if (!a || !(a->shape() == shape)) continue;
    if (a->is_contiguous()) return false;
    const Dims& steps = a->strides();
    if (std::all_of(steps.begin(), steps.end(), [](std::int64_t s) { return s == 0; })) continue;
    if (first && !(a->strides() == first->strides())) return false;
    first = a;
  }
  if (!first || shape.size() < 2) return false;
  order.resize(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return first->strides()[a] > first->strides()[b]; });
  return first->permute(order).is_contiguous();
}

std::vector<int> inverse_order(const std::vector<int>& order) {
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  return back;
}

}  // namespace weft
