// SPDX-License-Identifier: Apache-2.0
#include "weft/array/truth_values.h"

namespace weft {

std::optional<NDArray> without_imaginary_part(Op op, const NDArray& x) {
  if (op == Op::imag) return full(x.device(), x.elem(), x.shape(), Scalar(0));
  if (x.elem() != Elem::boolean) return std::nullopt;
  switch (op) {
    case Op::abs:
    case Op::ceil:
    case Op::conj:
    case Op::floor:
    case Op::positive:
    case Op::real:
    case Op::round:
    case Op::sign:
    case Op::square:
    case Op::trunc: return x.copy();
    default: return std::nullopt;
  }
}

std::optional<NDArray> compare_truth_values(Op op, const NDArray& x, const NDArray& y) {
  switch (op) {
    case Op::greater: return apply(Op::logical_and, x, apply(Op::logical_not, y));
    case Op::less: return apply(Op::logical_and, y, apply(Op::logical_not, x));
    case Op::greater_equal: return apply(Op::logical_or, x, apply(Op::logical_not, y));
    case Op::less_equal: return apply(Op::logical_or, y, apply(Op::logical_not, x));
    default: return std::nullopt;
  }
}

}  // namespace weft
