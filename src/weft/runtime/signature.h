// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a kernel's signature says of the arguments of a launch.

#include <vector>

#include "weft/runtime/binary.h"

namespace weft::runtime {

/// Per argument of a launch, whether it is a pointer; a tensor is a pointer, extents and strides.
inline std::vector<bool> pointer_arguments(const KernelSignature& k) {
  std::vector<bool> out;
  for (const KernelParam& p : k.params) {
    out.push_back(p.kind != ParamKind::scalar);
    if (p.kind == ParamKind::tensor) out.insert(out.end(), 2 * p.box.size() - 1, false);
  }
  return out;
}

}  // namespace weft::runtime
