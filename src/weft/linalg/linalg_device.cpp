// SPDX-License-Identifier: Apache-2.0
#include "weft/linalg/linalg_device.h"

#include <algorithm>
#include <vector>

#include "weft/array/ops.h"
#include "weft/devices/complex.h"

namespace weft::linalg::device {

namespace {

using library::MathLibrary;

Elem wide_of(Elem e) { return arithmetic_elem(e); }

Dims lead_of(const NDArray& a) { return Dims(a.shape().data(), a.ndim() - 2); }
Dims with(Dims lead, std::initializer_list<std::int64_t> tail) {
  for (std::int64_t n : tail) lead.push_back(n);
  return lead;
}

/// Matrices (count, m, n) of the type that is computed in.
NDArray stack(const NDArray& a) {
  std::int64_t count = 1;
  for (std::int64_t extent : lead_of(a)) count *= extent;
  const Elem wide = wide_of(a.elem());
  const NDArray x = a.elem() == wide ? a : a.astype(wide);
  return x.reshape(Dims{count, a.shape()[a.ndim() - 2], a.shape()[a.ndim() - 1]});
}
NDArray as_asked(const NDArray& x, const NDArray& a, std::initializer_list<std::int64_t> tail) {
  const Elem e = is_complex(x.elem()) || !is_complex(a.elem()) ? a.elem() : real_of(a.elem());
  const NDArray shaped = x.reshape(with(lead_of(a), tail));
  return shaped.elem() == e ? shaped : shaped.astype(e);
}

std::vector<std::int32_t> read_all(const NDArray& status) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(status.size()));
  if (!all.empty()) status.read(all.data());
  return all;
}

/// Refuses the first matrix whose status is `least` or more.
void refuse_from(std::int32_t least, const std::vector<std::int32_t>& all, const NDArray& a,
                 std::string_view name, const char* reason) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] < least && all[i] >= 0) continue;
    throw Error(ErrorKind::value, cat("array.", name, ".", reason),
                cat(name, ": matrix ", i, " of ", describe(a), " is ", reason));
  }
}

/// Waits, and refuses the first matrix whose status is not 0.
void check(const NDArray& status, const NDArray& a, std::string_view name, const char* reason) {
  if (status.defined()) refuse_from(1, read_all(status), a, name, reason);
}

/// Waits: whether some matrix has singular values that are rounding errors. Refuses the first one
/// for which Jacobi's method did not end.
bool deficient(const NDArray& status, const NDArray& a) {
  const std::vector<std::int32_t> all = read_all(status);
  refuse_from(2, all, a, "svd", "divergent");
  return std::find(all.begin(), all.end(), 1) != all.end();
}

}  // namespace

NDArray solve(const NDArray& a, const NDArray& b, std::string_view name, const NDArray& asked) {
  const NDArray x = stack(a), y = stack(b);
  const std::int64_t n = b.shape()[b.ndim() - 2], k = b.shape()[b.ndim() - 1];
  if (b.size() == 0) return NDArray::empty(b.device(), b.elem(), b.shape());
  MathLibrary* lib = library::of(x);
  const Solved s = small::fits(small::Program::elimination, x, k) ? small::solve(x, y)
                   : lib                                          ? library::solve(*lib, x, y)
                                                                  : composed::solve(x, y);
  check(s.status, asked, name, "singular");
  return as_asked(s.x, b, {n, k});
}

SignedLog slogdet(const NDArray& a) {
  const NDArray x = stack(a);
  const std::int64_t count = x.shape()[0], n = x.shape()[1];
  const Elem elem = x.elem();
  if (x.size() > 0 && small::fits(small::Program::elimination, x)) {
    const SignedLog d = small::slogdet(x);
    return {as_asked(d.sign, a, {}), as_asked(d.log, a, {}), as_asked(d.determinant, a, {})};
  }
  MathLibrary* lib = n > 0 ? library::of(x) : nullptr;
  const Factors f = lib ? library::lu(*lib, x) : composed::lu(x);
  const Dims kept{count};
  NDArray diagonal = NDArray::empty(x.device(), elem, Dims{count, n});
  if (n > 0 && count > 0) {
    const NDArray lu = f.lu.contiguous();
    assign(diagonal, lu.as_strided(Dims{count, n}, Dims{n * n, n + 1}, lu.offset()));
  }
  const NDArray magnitude = apply(Op::abs, diagonal);
  auto product = [](const NDArray& v) { return reduce(ReduceOp::prod, v, {false, Dims{1}}); };
  const NDArray parity = f.parity.astype(elem);
  return {as_asked(apply(Op::multiply, product(apply(Op::sign, diagonal)), parity), a, {}),
          as_asked(reduce(ReduceOp::sum, apply(Op::log, magnitude), {false, Dims{1}}), a, {}),
          as_asked(apply(Op::multiply, product(diagonal), parity), a, {})};
}

NDArray cholesky(const NDArray& a, bool upper) {
  const NDArray x = stack(a);
  const std::int64_t n = x.shape()[1];
  if (x.size() == 0) return a.copy();
  if (small::fits(small::Program::cholesky, x)) {
    const Definite d = small::cholesky(x, upper);
    check(d.status, a, "cholesky", "indefinite");
    return as_asked(d.lower, a, {n, n});
  }
  // The upper factor is the adjoint of the lower one of the adjoint.
  const NDArray in = upper ? adjoint(x) : x;
  MathLibrary* lib = library::of(x);
  const Definite d = lib ? library::cholesky(*lib, in) : composed::cholesky(in);
  check(d.status, a, "cholesky", "indefinite");
  return as_asked(upper ? adjoint(d.lower) : d.lower, a, {n, n});
}

Eigen eigh(const NDArray& a) {
  const NDArray x = stack(a);
  const std::int64_t n = x.shape()[1];
  Eigen e;
  if (x.size() > 0 && small::fits(small::Program::eigh, x)) {
    const library::Decomposed d = small::eigh(x);
    check(d.status, a, "eigh", "divergent");
    e = {d.values, d.left};
  } else if (MathLibrary* lib = x.size() > 0 ? library::of(x) : nullptr) {
    const library::Decomposed d = library::eigh(*lib, x);
    check(d.status, a, "eigh", "divergent");
    e = {d.values, d.left};
  } else {
    e = composed::eigh(x);
  }
  return {as_asked(e.values, a, {n}), as_asked(e.vectors, a, {n, n})};
}

Svd svd(const NDArray& a, SvdPart part) {
  NDArray x = stack(a);
  std::int64_t m = x.shape()[1], n = x.shape()[2];
  const bool turned = m < n, vectors = part != SvdPart::values;
  if (turned) x = adjoint(x), std::swap(m, n);
  if (m == n && vectors) part = SvdPart::thin;  // the same, for which there are faster ways
  Svd out;
  if (x.size() > 0 && small::fits(small::Program::svd, x)) {
    const library::Decomposed d = small::svd(x, part);
    const bool whole = !deficient(d.status, a);
    const bool full = part == SvdPart::full && m > n;
    out = {vectors && (full || !whole) ? composed::completed(d.left, d.values, full) : d.left,
           d.values, d.right};
  } else if (MathLibrary* lib = x.size() > 0 ? library::of(x) : nullptr) {
    const library::Decomposed d = library::svd(*lib, x, part);
    check(d.status, a, "svd", "divergent");
    out = {d.left, d.values, d.right};
  } else {
    out = composed::svd(x, part);
  }
  const NDArray s = as_asked(out.s, a, {n});
  if (!vectors) return {{}, s, {}};
  if (turned) {
    const NDArray u = adjoint(out.vh);
    out.vh = adjoint(out.u), out.u = u;
  }
  return {as_asked(out.u, a, {out.u.shape()[1], out.u.shape()[2]}), s,
          as_asked(out.vh, a, {out.vh.shape()[1], out.vh.shape()[2]})};
}

Qr qr(const NDArray& a, bool complete) {
  const NDArray x = stack(a);
  MathLibrary* lib = x.size() > 0 ? library::of(x) : nullptr;
  const bool fits = x.size() > 0 && small::fits(small::Program::qr, x);
  const Qr f = fits  ? small::qr(x, complete)
               : lib ? library::qr(*lib, x, complete)
                     : composed::qr(x, complete);
  return {as_asked(f.q, a, {f.q.shape()[1], f.q.shape()[2]}),
          as_asked(f.r, a, {f.r.shape()[1], f.r.shape()[2]})};
}

}  // namespace weft::linalg::device
