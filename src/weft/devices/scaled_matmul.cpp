// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/scaled_matmul.h"

#include "weft/array/ops.h"
#include "weft/base/text.h"
#include "weft/devices/warp_specialized.h"

namespace weft {

namespace {

/// As a column that is multiplied by rows, or as a row.
NDArray shaped(const NDArray& x, bool rows) {
  return x.reshape(rows ? Dims{x.size(), 1} : Dims{1, x.size()});
}

void check(const NDArray& a, const NDArray& b, const ProductScales& s) {
  if (!is_float8(a.elem()) || !is_float8(b.elem()))
    throw Error(ErrorKind::dtype, "array.scaled_matmul.dtype",
                cat("scaled_mm got operands of ", name_of(a.elem()), " and ", name_of(b.elem())))
        .note("legal: float8_e4m3fn and float8_e5m2")
        .help("x.astype(weft.float8_e4m3fn) after a division by its scale");
  if (a.ndim() != 2 || b.ndim() != 2 || a.shape()[1] != b.shape()[0])
    throw Error(ErrorKind::shape, "array.scaled_matmul.shape",
                cat("scaled_mm got ", describe(a), " and ", describe(b)))
        .note("rule: [m, k] by [k, n] gives [m, n]");
  auto fits = [](const NDArray& x, std::string_view name, std::int64_t extent, bool number) {
    if (!x.defined() ||
        (x.elem() == Elem::float32 && (x.size() == extent || (number && x.size() == 1))))
      return;
    throw Error(ErrorKind::shape, "array.scaled_matmul.scale",
                cat("scaled_mm got ", name, " as ", describe(x)))
        .note(cat("legal: float32, ", number ? "one number or " : "", extent, " numbers"));
  };
  fits(s.a, "scale_a", a.shape()[0], true);
  fits(s.b, "scale_b", b.shape()[1], true);
  fits(s.bias, "bias", b.shape()[1], false);
}

}  // namespace

NDArray apply_scales(NDArray value, const ProductScales& s) {
  if (s.a.defined()) value = apply(Op::multiply, value, shaped(s.a, true));
  if (s.b.defined()) value = apply(Op::multiply, value, shaped(s.b, false));
  if (s.bias.defined()) value = apply(Op::add, value, shaped(s.bias, false));
  return value;
}

NDArray scaled_matmul(const NDArray& a, const NDArray& b, const ProductScales& scales, Elem elem) {
  check(a, b, scales);
  if (!is_real_float(elem))
    throw Error(ErrorKind::dtype, "array.scaled_matmul.dtype",
                cat("scaled_mm was asked for a result of ", name_of(elem)))
        .note("legal: real floats");
  const Dims shape{a.shape()[0], b.shape()[1]};
  const bool tiles = !a.on_host() && a.shape()[1] > 0 && shape[0] * shape[1] > 0 &&
                     device::has_scaled_product(a.device());
  if (tiles && elem_bytes(elem) <= 4) {
    NDArray out = NDArray::empty(a.device(), elem, shape);
    if (device::warp_specialized_product(out, a, b, nullptr, &scales)) return out;
  }
  const NDArray sums = matmul(a.astype(Elem::float32), b.astype(Elem::float32));
  return apply_scales(sums, scales).astype(elem);
}

}  // namespace weft
