// SPDX-License-Identifier: Apache-2.0
// Rows of the table computed into arrays that exist, in one pass where their types and shapes are
// the result's.

#include "weft/array/into.h"

#include <vector>

#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/elements/rows.h"
#include "weft/host/kernels.h"

namespace weft {

namespace {

/// Is `out` what the row over these operands gives, on the host or a device with a grid?
bool fits(Op op, const NDArray& out, const NDArray* mask, const Arg* args, int count) {
  std::vector<const Dims*> shapes;
  for (int k = 0; k < count; ++k) {
    if (!args[k].array) continue;
    if (args[k].array->device() != out.device()) return false;
    shapes.push_back(&args[k].array->shape());
  }
  if (!(out.on_host() || has_grid(out)) || shapes.empty()) return false;
  if (mask && (mask->elem() != Elem::boolean || !(mask->shape() == out.shape()) ||
               mask->device() != out.device()))
    return false;
  if (resolve(op, {args, static_cast<std::size_t>(count)}).result != out.elem()) return false;
  const bool one = shapes.size() == 1 || *shapes[0] == *shapes[1];
  return (one ? *shapes[0] : broadcast_shapes(shapes, info(op).name)) == out.shape();
}
/// out = found where the mask is true.
void put_where(const NDArray& out, const NDArray& mask, const NDArray& found) {
  if (!out.on_host() && on_device().select(out, mask, Arg(found), Arg(out))) return;
  assign(out, where(mask, Arg(found), Arg(out)));
}
/// Elements at one place in both, or none in common.
bool one_place(const NDArray& x, const NDArray& out) {
  return (x.handle() == out.handle() && x.offset() == out.offset() && x.elem() == out.elem() &&
          x.strides() == out.strides()) ||
         !may_overlap(x, out);
}

}  // namespace

bool compute_into(Op op, const NDArray& out, const NDArray* mask, const Arg& x) {
  if (!x.array || !fits(op, out, mask, &x, 1)) return false;
  const NDArray& a = *x.array;
  const Elem e = a.elem();
  const ElementwiseFn fn = kernels().elementwise[static_cast<int>(op)][static_cast<int>(e)];
  const bool part = (op == Op::real || op == Op::imag) && is_complex(e);
  if (!mask && fn && !part && out.on_host() && e == resolve(op, {&x, 1}).compute &&
      out.size() <= kParallelGrain && a.is_contiguous() && out.is_contiguous() &&
      one_place(a, out)) {
    const void* in[1] = {a.host()};
    if (out.size()) fn(out.size(), in, out.host());
    return true;
  }
  if (!mask && !out.on_host() && one_place(a, out)) {
    on_device().elementwise(op, resolve(op, {&x, 1}).compute, out, {&x, 1});
    return true;
  }
  const NDArray found = apply(op, x);
  if (mask) put_where(out, *mask, found);
  else assign(out, found);
  return true;
}

bool compute_into(Op op, const NDArray& out, const NDArray* mask, const Arg& x, const Arg& y) {
  const Arg args[2] = {x, y};
  if (!fits(op, out, mask, args, 2)) return false;
  if (!mask) {
    apply_into(op, out, x, y);
    return true;
  }
  put_where(out, *mask, apply(op, x, y));
  return true;
}

}  // namespace weft
