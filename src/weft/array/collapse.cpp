// SPDX-License-Identifier: Apache-2.0
#include "weft/array/collapse.h"

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

}  // namespace weft
