// SPDX-License-Identifier: Apache-2.0
// Factorisations by the vendor's library, a matrix at a time. Matrices lie column by column there:
// the transpose of a compact array.

#include <algorithm>
#include <limits>
#include <vector>

#include "weft/array/ops.h"
#include "weft/linalg/linalg_device.h"

namespace weft::linalg::library {

namespace {

using Number = MathLibrary::Number;
using Place = MathLibrary::Place;

Number number_of(Elem e) {
  switch (e) {
    case Elem::float32: return Number::float32;
    case Elem::float64: return Number::float64;
    case Elem::complex64: return Number::complex64;
    default: return Number::complex128;
  }
}

/// Compact matrices (count, rows, columns) of a stack, or vectors, by number.
Place item(const NDArray& stack, std::int64_t k) {
  if (!stack.defined() || stack.size() == 0) return {};
  const std::int64_t each = stack.size() / stack.shape()[0];
  return {stack.handle().get(), (stack.offset() + k * each) * elem_bytes(stack.elem())};
}
/// A new stack of transposed matrices: what the library calls matrices.
NDArray columns(const NDArray& a) { return a.transpose(1, 2).copy(); }
NDArray made(const NDArray& like, Elem elem, Dims shape) {
  return NDArray::empty(like.device(), elem, std::move(shape));
}
NDArray statuses(const NDArray& a) {
  return full(a.device(), Elem::int32, Dims{a.shape()[0]}, Scalar(0));
}

/// Several matrices that are not large: one after the other would leave the card idle.
bool at_once(MathLibrary& lib, const NDArray& a) {
  constexpr std::int64_t kSeveral = 4, kLarge = 512;
  return lib.batches() && a.shape()[0] >= kSeveral && a.shape()[1] <= kLarge;
}
Place whole(const NDArray& x) { return {x.handle().get(), x.offset() * elem_bytes(x.elem())}; }
/// Where each matrix of a compact stack begins.
NDArray addresses(const NDArray& stack) {
  const std::int64_t count = stack.shape()[0],
                     step = stack.size() / count * elem_bytes(stack.elem());
  return arange(stack.device(), Elem::int64, static_cast<std::int64_t>(whole(stack).address()),
                step, count);
}

/// Elimination of all matrices of `lu`, in place.
void eliminate(MathLibrary& lib, const NDArray& lu, const NDArray& pivots, const NDArray& status) {
  const std::int64_t count = lu.shape()[0], n = lu.shape()[1];
  if (at_once(lib, lu)) {
    return lib.lu_of_all(number_of(lu.elem()), n, count, whole(addresses(lu)), whole(pivots),
                         whole(status));
  }
  for (std::int64_t i = 0; i < count; ++i)
    lib.lu(number_of(lu.elem()), n, item(lu, i), item(pivots, i), item(status, i));
}

}  // namespace

MathLibrary* of(const NDArray& a) {
  MathLibrary* lib = runtime::math_library_of(*a.device());
  if (!lib || !lib->factorisations()) return nullptr;
  // Many small matrices are done side by side by programs, one after the other by the library.
  constexpr std::int64_t kMany = 16, kSmall = 32;
  const bool many = a.shape()[0] >= kMany && a.shape()[1] <= kSmall && a.shape()[2] <= kSmall;
  const bool beyond = std::max(a.shape()[1], a.shape()[2]) > std::numeric_limits<int>::max();
  return many || beyond ? nullptr : lib;
}

Solved solve(MathLibrary& lib, const NDArray& a, const NDArray& b) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1], k = b.shape()[2];
  const NDArray lu = columns(a), x = columns(b), status = statuses(a), second = statuses(a),
                pivots = made(a, Elem::int32, Dims{count, n});
  eliminate(lib, lu, pivots, status);
  if (k > 0 && at_once(lib, lu)) {
    lib.lu_solve_all(number_of(a.elem()), n, k, count, whole(addresses(lu)), whole(pivots),
                     whole(addresses(x)));
    return {x.transpose(1, 2), status};
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (k > 0)
      lib.lu_solve(number_of(a.elem()), n, k, item(lu, i), item(pivots, i), item(x, i),
                   item(second, i));
  }
  return {x.transpose(1, 2), status};
}

Factors lu(MathLibrary& lib, const NDArray& a) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1];
  const NDArray lu = columns(a), status = statuses(a),
                pivots = made(a, Elem::int32, Dims{count, n});
  eliminate(lib, lu, pivots, status);
  const NDArray kept = arange(a.device(), Elem::int32, 1, 1, n).reshape(Dims{1, n});
  const NDArray exchanged = apply(Op::not_equal, pivots, kept);
  const NDArray odd =
      apply(Op::remainder, reduce(ReduceOp::sum, exchanged.astype(Elem::int64), {false, Dims{1}}),
            Scalar(2));
  const Elem real_elem = real_of(a.elem());
  const NDArray parity = apply(Op::subtract, full(a.device(), real_elem, Dims{}, Scalar(1.0)),
                               apply(Op::multiply, odd.astype(real_elem), Scalar(2.0)));
  return {lu.transpose(1, 2), parity, status};
}

Definite cholesky(MathLibrary& lib, const NDArray& a) {
  const NDArray lower = columns(a), status = statuses(a);
  if (at_once(lib, a)) {
    lib.cholesky_of_all(number_of(a.elem()), a.shape()[1], a.shape()[0], whole(addresses(lower)),
                        whole(status));
    return {triangle(lower.transpose(1, 2), false), status};
  }
  for (std::int64_t i = 0; i < a.shape()[0]; ++i)
    lib.cholesky(number_of(a.elem()), a.shape()[1], item(lower, i), item(status, i));
  return {triangle(lower.transpose(1, 2), false), status};
}

Qr qr(MathLibrary& lib, const NDArray& a, bool complete) {
  const std::int64_t count = a.shape()[0], m = a.shape()[1], n = a.shape()[2], k = std::min(m, n),
                     wide = complete ? m : k;
  const NDArray work = columns(a), status = statuses(a), tau = made(a, a.elem(), Dims{count, k});
  for (std::int64_t i = 0; i < count; ++i)
    lib.qr(number_of(a.elem()), m, n, item(work, i), item(tau, i), item(status, i));
  const NDArray factored = work.transpose(1, 2);
  const NDArray r = triangle(factored.slice(1, 0, wide, 1), true);
  NDArray q = full(a.device(), a.elem(), Dims{count, wide, m}, Scalar(0));
  assign(q.slice(1, 0, k, 1), work.slice(1, 0, k, 1));
  for (std::int64_t i = 0; i < count; ++i)
    lib.orthogonal(number_of(a.elem()), m, wide, k, item(q, i), item(tau, i), item(status, i));
  return {q.transpose(1, 2), r};
}

Decomposed eigh(MathLibrary& lib, const NDArray& a) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1];
  const NDArray vectors = columns(a), status = statuses(a),
                values = made(a, real_of(a.elem()), Dims{count, n});
  for (std::int64_t i = 0; i < count; ++i)
    lib.eigh(number_of(a.elem()), true, n, item(vectors, i), item(values, i), item(status, i));
  return {values, vectors.transpose(1, 2), {}, status};
}

Decomposed svd(MathLibrary& lib, const NDArray& a, SvdPart part) {
  const std::int64_t count = a.shape()[0], m = a.shape()[1], n = a.shape()[2];
  const bool full = part == SvdPart::full, vectors = part != SvdPart::values;
  const NDArray status = statuses(a), s = made(a, real_of(a.elem()), Dims{count, n});
  NDArray u, vh;
  if (vectors) {
    u = made(a, a.elem(), Dims{count, full ? m : n, m});
    vh = made(a, a.elem(), Dims{count, n, n});
  }
  // Of matrices that are not small rotations find the values sooner than a bidiagonal form.
  constexpr std::int64_t kBidiagonal = 32;
  if (part == SvdPart::thin || (part == SvdPart::values && n > kBidiagonal)) {
    const NDArray work = columns(a);
    for (std::int64_t i = 0; i < count; ++i)
      lib.svd_jacobi(number_of(a.elem()), m, n, item(work, i), item(s, i), item(u, i), item(vh, i),
                     item(status, i));
    std::vector<std::int32_t> all(static_cast<std::size_t>(count));
    status.read(all.data());
    const bool ended =
        std::all_of(all.begin(), all.end(), [](std::int32_t code) { return code == 0; });
    if (ended && !vectors) return {s, {}, {}, status};
    if (ended)
      return {s, u.transpose(1, 2), is_complex(vh.elem()) ? apply(Op::conj, vh) : vh, status};
  }
  const NDArray work = columns(a);
  for (std::int64_t i = 0; i < count; ++i)
    lib.svd(number_of(a.elem()), m, n, full, item(work, i), item(s, i), item(u, i), item(vh, i),
            item(status, i));
  if (!vectors) return {s, {}, {}, status};
  return {s, u.transpose(1, 2), vh.transpose(1, 2), status};
}

}  // namespace weft::linalg::library
