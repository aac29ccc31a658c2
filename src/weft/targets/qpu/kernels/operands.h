// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands of the kernels: addresses by bytes, and arrays that are long enough.

#include <cstddef>
#include <cstdint>

#include "weft/base/error.h"
#include "weft/targets/qpu/language/language.h"

namespace weft::qpu::kernels {

template <typename T>
PtrExpr<T> bytes(const Ptr<T>& p, IntExpr n) {
  return PtrExpr<T>::of((IntExpr::of(p.expr) + n).expr);
}
template <typename T>
PtrExpr<T> bytes(PtrExpr<T> p, IntExpr n) {
  return PtrExpr<T>::of((IntExpr::of(p.expr) + n).expr);
}

inline void holds(std::size_t have, std::int64_t need, const char* what) {
  if (static_cast<std::int64_t>(have) < need)
    throw Error(ErrorKind::shape, "qpu.kernel.size",
                cat("array \"", what, "\" has ", have, " elements, and ", need, " are needed"));
}

}  // namespace weft::qpu::kernels
