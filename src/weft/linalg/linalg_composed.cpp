// SPDX-License-Identifier: Apache-2.0
// Factorisations as compositions of array operations: a column (or a round of rotations) of all
// matrices of a stack at a time. The host waits for nothing but the sweeps of Jacobi's method.

#include <cmath>
#include <vector>

#include "weft/array/ops.h"
#include "weft/linalg/linalg_device.h"

namespace weft::linalg {

namespace {

NDArray operator*(const NDArray& a, const NDArray& b) { return apply(Op::multiply, a, b); }
NDArray operator-(const NDArray& a, const NDArray& b) { return apply(Op::subtract, a, b); }
NDArray operator+(const NDArray& a, const NDArray& b) { return apply(Op::add, a, b); }
NDArray operator/(const NDArray& a, const NDArray& b) { return apply(Op::divide, a, b); }
NDArray conj(const NDArray& a) { return is_complex(a.elem()) ? apply(Op::conj, a) : a; }
NDArray real(const NDArray& a) { return is_complex(a.elem()) ? apply(Op::real, a) : a; }
NDArray from(const NDArray& a, int axis, std::int64_t first) {
  return a.slice(axis, first, a.shape()[axis] - first, 1);
}
NDArray until(const NDArray& a, int axis, std::int64_t end) { return a.slice(axis, 0, end, 1); }
NDArray sum(const NDArray& a, int axis) {
  return reduce(ReduceOp::sum, a, {false, Dims{axis}}, true);
}
NDArray squares(const NDArray& a) {
  if (!is_complex(a.elem())) return apply(Op::square, a);
  return apply(Op::square, apply(Op::abs, a));
}
void subtract_from(const NDArray& x, const NDArray& y) { apply_into(Op::subtract, x, x, y); }
/// Numbers 0, 1, ... along one of the last two axes of matrices.
NDArray numbers(const Ref<Device>& device, std::int64_t n, bool rows) {
  return arange(device, Elem::int32, 0, 1, n).reshape(rows ? Dims{1, n, 1} : Dims{1, 1, n});
}
NDArray one(const NDArray& like, Elem elem) { return full(like.device(), elem, Dims{}, Scalar(1)); }
NDArray status_of(const NDArray& bad) { return bad.astype(Elem::int32); }
NDArray any(const NDArray& marks) { return reduce(ReduceOp::any, marks, {false, Dims{1}}, false); }

/// Gauss's elimination with row exchanges of (count, n, w), w >= n: the first n columns become LU.
struct Eliminated {
  NDArray work, parity, status;
};
Eliminated eliminate(const NDArray& a) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1];
  NDArray w = a.copy();
  const Ref<Device> device = a.device();
  NDArray parity = full(device, real_of(w.elem()), Dims{count}, Scalar(1.0)),
          bad = full(device, Elem::boolean, Dims{count, n}, Scalar(false));
  const NDArray rows = arange(device, Elem::int64, 0, 1, n).reshape(Dims{1, n, 1});
  for (std::int64_t j = 0; j < n; ++j) {
    const NDArray size = apply(Op::abs, w.select(2, j).slice(1, j, n - j, 1));
    if (j + 1 < n) {
      NDArray pivot = apply(Op::add, arg_reduce(true, size, 1, false), Scalar(j));
      const NDArray there = pivot.reshape(Dims{count, 1, 1});
      const NDArray mask = apply(Op::equal, rows, there);
      // The pivot's row is the one term of the sum that is not zero.
      const NDArray chosen = sum(where(mask, w, full(device, w.elem(), Dims{}, Scalar(0))), 1),
                    moved = w.slice(1, j, 1, 1).copy();
      w = where(mask, moved, w);
      assign(w.slice(1, j, 1, 1), chosen);
      const NDArray exchanged = apply(Op::not_equal, pivot, Scalar(j));
      parity = where(exchanged, apply(Op::negative, parity), parity);
    }
    const NDArray diagonal = w.slice(1, j, 1, 1).slice(2, j, 1, 1);
    const NDArray zero = apply(Op::equal, diagonal, Scalar(0)).reshape(Dims{count});
    assign(bad.select(1, j), zero);
    if (j + 1 == n) break;
    const NDArray safe = where(zero.reshape(Dims{count, 1, 1}), one(w, w.elem()), diagonal);
    const NDArray below = from(w, 1, j + 1), column = below.slice(2, j, 1, 1);
    assign(column, column / safe);
    if (j + 1 < w.shape()[2])
      subtract_from(from(below, 2, j + 1), column * from(w.slice(1, j, 1, 1), 2, j + 1));
  }
  return {w, parity, status_of(any(bad))};
}

}  // namespace

NDArray triangle(const NDArray& a, bool upper) {
  const NDArray rows = numbers(a.device(), a.shape()[1], true),
                columns = numbers(a.device(), a.shape()[2], false);
  const NDArray kept = apply(upper ? Op::less_equal : Op::greater_equal, rows, columns);
  return where(kept, a, full(a.device(), a.elem(), Dims{}, Scalar(0)));
}

NDArray identities(const Ref<Device>& device, Elem elem, std::int64_t count, std::int64_t n) {
  const NDArray same = apply(Op::equal, numbers(device, n, true), numbers(device, n, false));
  return same.astype(elem).broadcast_to(Dims{count, n, n}).copy();
}

NDArray adjoint(const NDArray& a) {
  const NDArray t = a.transpose(a.ndim() - 2, a.ndim() - 1);
  return is_complex(a.elem()) ? apply(Op::conj, t) : t;
}

namespace composed {

Factors lu(const NDArray& a) {
  const Eliminated e = eliminate(a);
  return {e.work, e.parity, e.status};
}

Solved solve(const NDArray& a, const NDArray& b) {
  const std::int64_t n = a.shape()[1], k = b.shape()[2];
  const NDArray both[2] = {a, b};
  const Eliminated e = eliminate(concat(both, 2));
  const NDArray x = from(e.work, 2, n).copy();
  for (std::int64_t j = n; j-- > 0;) {
    const NDArray row = x.slice(1, j, 1, 1);
    assign(row, row / e.work.slice(1, j, 1, 1).slice(2, j, 1, 1));
    if (j > 0 && k > 0) subtract_from(until(x, 1, j), until(e.work, 1, j).slice(2, j, 1, 1) * row);
  }
  return {x, e.status};
}

Definite cholesky(const NDArray& a) {
  const std::int64_t count = a.shape()[0], n = a.shape()[1];
  const NDArray w = a.copy();
  NDArray bad = full(a.device(), Elem::boolean, Dims{count, n}, Scalar(false));
  for (std::int64_t j = 0; j < n; ++j) {
    const NDArray diagonal = real(w.slice(1, j, 1, 1).slice(2, j, 1, 1));
    const NDArray good = apply(Op::greater, diagonal, Scalar(0));
    assign(bad.select(1, j), apply(Op::logical_not, good).reshape(Dims{count}));
    const NDArray root = apply(Op::sqrt, where(good, diagonal, one(w, diagonal.elem())));
    const NDArray column = from(w, 1, j).slice(2, j, 1, 1);
    assign(column, column / root);
    if (j + 1 == n) break;
    const NDArray below = from(column, 1, 1);
    subtract_from(from(from(w, 1, j + 1), 2, j + 1), below * adjoint(below));
  }
  // The diagonal has no imaginary part.
  const NDArray lower = triangle(w, false);
  return {lower, status_of(any(bad))};
}

Qr qr(const NDArray& a, bool complete) {
  const std::int64_t count = a.shape()[0], m = a.shape()[1], n = a.shape()[2], k = std::min(m, n);
  const NDArray r = a.copy();
  struct Reflector {
    NDArray v, scale;  // I - scale v v'
  };
  std::vector<Reflector> all;
  const NDArray none = full(a.device(), a.elem(), Dims{}, Scalar(0)), unit = one(a, a.elem());
  for (std::int64_t j = 0; j < k; ++j) {
    const NDArray rest = from(from(r, 1, j), 2, j);
    const NDArray v = rest.slice(2, 0, 1, 1).copy(), first = v.slice(1, 0, 1, 1);
    const NDArray phase = apply(Op::sign, first),
                  norm = apply(Op::sqrt, sum(squares(v), 1)).astype(a.elem());
    const NDArray turned = where(apply(Op::equal, first, Scalar(0)), unit, phase) * norm;
    assign(first, first + turned);
    const NDArray length = sum(squares(v), 1);
    const NDArray flat = apply(Op::equal, length, Scalar(0));
    const NDArray two = full(a.device(), length.elem(), Dims{}, Scalar(2.0));
    const NDArray scale = where(flat, full(a.device(), length.elem(), Dims{}, Scalar(0)),
                                two / where(flat, one(length, length.elem()), length))
                              .astype(a.elem());
    subtract_from(rest, (v * scale) * matmul(adjoint(v), rest));
    all.push_back({v, scale});
  }
  const std::int64_t columns = complete ? m : k;
  NDArray q = until(identities(a.device(), a.elem(), count, m), 2, columns).copy();
  for (std::int64_t j = k; j-- > 0;) {
    const Reflector& h = all[static_cast<std::size_t>(j)];
    const NDArray rest = from(q, 1, j);
    subtract_from(rest, (h.v * h.scale) * matmul(adjoint(h.v), rest));
  }
  return {q, triangle(until(r, 1, columns), true)};
}

namespace {

/// Pairs of columns that are rotated at once: in n - 1 rounds (n even) each meets each other one.
std::vector<std::int64_t> partners(std::int64_t n, std::int64_t round) {
  const std::int64_t even = n + n % 2;
  std::vector<std::int64_t> ring(static_cast<std::size_t>(even)), out(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < even; ++i)
    ring[static_cast<std::size_t>(i)] = i == 0 ? 0 : 1 + (i - 1 + round) % (even - 1);
  for (std::int64_t i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = i;
  for (std::int64_t i = 0; i < even / 2; ++i) {
    const std::int64_t a = ring[static_cast<std::size_t>(i)],
                       b = ring[static_cast<std::size_t>(even - 1 - i)];
    if (a >= n || b >= n) continue;
    out[static_cast<std::size_t>(a)] = b, out[static_cast<std::size_t>(b)] = a;
  }
  return out;
}

/// What one round needs to know of its pairs.
struct Round {
  NDArray mask;   // (1, n, n): the partner of each column
  NDArray later;  // (1, 1, n): whether a column comes behind its partner
};
std::vector<Round> rounds_of(const Ref<Device>& device, std::int64_t n) {
  std::vector<Round> out;
  const NDArray rows = arange(device, Elem::int64, 0, 1, n).reshape(Dims{1, n, 1}),
                columns = arange(device, Elem::int64, 0, 1, n).reshape(Dims{1, 1, n});
  for (std::int64_t r = 0; r < n + n % 2 - 1; ++r) {
    const std::vector<std::int64_t> other = partners(n, r);
    NDArray at = NDArray::empty(device, Elem::int64, Dims{1, 1, n});
    device->upload(*at.handle(), 0, other.data(), other.size() * sizeof(std::int64_t));
    const NDArray met = apply(Op::equal, rows, at);
    out.push_back({apply(Op::logical_and, met, apply(Op::not_equal, rows, columns)),
                   apply(Op::greater, columns, at)});
  }
  return out;
}

/// The rotations of one round as matrices: `own`, `other` (count, 1, n) are the real diagonal
/// entries of a column and of its partner, `off` the entries (partner, column).
NDArray rotations(const Round& round, const NDArray& own, const NDArray& other, const NDArray& off,
                  const NDArray& identity) {
  const Ref<Device>& device = own.device();
  const Elem elem = off.elem(), real_elem = own.elem();
  const NDArray size = apply(Op::abs, off), zero = apply(Op::equal, size, Scalar(0));
  const NDArray safe = where(zero, one(own, real_elem), size);
  const NDArray tau = (own - other) / apply(Op::add, safe, safe);
  const NDArray up = full(device, real_elem, Dims{}, Scalar(1.0)),
                down = full(device, real_elem, Dims{}, Scalar(-1.0));
  const NDArray level = apply(Op::equal, tau, Scalar(0)),
                positive = apply(Op::greater, tau, Scalar(0));
  const NDArray side = where(level, where(round.later, up, down), where(positive, up, down));
  const NDArray root = apply(Op::sqrt, apply(Op::add, apply(Op::square, tau), Scalar(1.0)));
  const NDArray none = full(device, real_elem, Dims{}, Scalar(0));
  const NDArray t = where(zero, none, side / (apply(Op::abs, tau) + root));
  const NDArray c =
      apply(Op::reciprocal, apply(Op::sqrt, apply(Op::add, apply(Op::square, t), Scalar(1.0))));
  const NDArray s = ((t * c) / safe).astype(elem) * off;
  const NDArray outside = full(device, elem, Dims{}, Scalar(0));
  return where(round.mask, s, outside) + identity * c.astype(elem);
}

NDArray masked(const NDArray& mask, const NDArray& x) {
  return sum(where(mask, x, full(x.device(), x.elem(), Dims{}, Scalar(0))), 1);
}

double number(const NDArray& x) {
  double out = 0;
  x.astype(Elem::float64).read_element(0, &out);
  return out;
}
double largest(const NDArray& x) { return number(reduce(ReduceOp::max, x)); }
double epsilon(Elem real_elem) { return real_elem == Elem::float64 ? 0x1p-52 : 0x1p-23; }
constexpr int kSweeps = 30;

NDArray along_last(const NDArray& x, const NDArray& order) {
  // x[..., order] of matrices (count, m, n) and positions (count, n).
  const std::int64_t count = x.shape()[0];
  const NDArray which = arange(x.device(), Elem::int64, 0, 1, count).reshape(Dims{count, 1});
  const NDArray turned = x.transpose(1, 2);
  const NDArray indices[2] = {which.broadcast_to(order.shape()), order};
  return gather(turned, indices).transpose(1, 2);
}

}  // namespace

Eigen eigh(const NDArray& in) {
  const std::int64_t count = in.shape()[0], n = in.shape()[1];
  const Ref<Device>& device = in.device();
  const Elem elem = in.elem(), real_elem = real_of(elem);
  // The lower triangle counts.
  const NDArray lower = triangle(in, false), identity = identities(device, elem, 1, n);
  NDArray a = lower + adjoint(lower) - lower * identity;
  if (is_complex(elem)) {
    const NDArray diagonal = a * identity;
    a = a - diagonal + real(diagonal).astype(elem);
  }
  NDArray v = identities(device, elem, count, n);
  const std::vector<Round> rounds = n > 1 ? rounds_of(device, n) : std::vector<Round>();
  const NDArray same = apply(Op::not_equal, identity, Scalar(0));
  for (int sweep = 0; sweep < kSweeps && !rounds.empty() && count > 0; ++sweep) {
    for (const Round& round : rounds) {
      const NDArray own = real(masked(same, a)),
                    other = sum(where(round.mask, own.transpose(1, 2),
                                      full(device, real_elem, Dims{}, Scalar(0))),
                                1);
      const NDArray j = rotations(round, own, other, masked(round.mask, a), identity);
      a = matmul(adjoint(j), matmul(a, j));
      v = matmul(v, j);
    }
    const NDArray outside = apply(Op::abs, a - a * identity);
    const double all = largest(apply(Op::abs, a));
    if (largest(outside) <= epsilon(real_elem) * all) break;
  }
  NDArray values = real(masked(same, a)).reshape(Dims{count, n});
  if (count == 0 || n == 0) return {values, v};
  const NDArray order = argsort(values, 1, false);
  return {sort(values, 1, false), along_last(v, order)};
}

namespace {

/// (count, 1, n): which singular values, descending, are no more than rounding errors of the first.
NDArray negligible(const NDArray& s, std::int64_t extent) {
  const std::int64_t count = s.shape()[0], n = s.shape()[1];
  const NDArray scale = s.reshape(Dims{count, 1, n});
  const NDArray least = apply(Op::multiply, n > 0 ? until(scale, 2, 1) : scale,
                              Scalar(epsilon(s.elem()) * static_cast<double>(extent)));
  return apply(Op::less_equal, scale, least);
}

}  // namespace

Svd svd(const NDArray& in, SvdPart part) {
  const std::int64_t count = in.shape()[0], m = in.shape()[1], n = in.shape()[2];
  const Ref<Device>& device = in.device();
  const Elem elem = in.elem(), real_elem = real_of(elem);
  NDArray w = in.copy(), v = identities(device, elem, count, n);
  const NDArray identity = identities(device, elem, 1, n);
  const std::vector<Round> rounds = n > 1 ? rounds_of(device, n) : std::vector<Round>();
  for (int sweep = 0; sweep < kSweeps && !rounds.empty() && count > 0; ++sweep) {
    NDArray worst = full(device, real_elem, Dims{}, Scalar(0));
    for (const Round& round : rounds) {
      const NDArray exchange = round.mask.astype(elem);
      const NDArray met = matmul(w, exchange.broadcast_to(Dims{count, n, n}));
      const NDArray own = sum(squares(w), 1), other = sum(squares(met), 1);
      const NDArray off = sum(conj(met) * w, 1);
      // The cosine of the angle between two columns that are no zeros.
      const NDArray sizes = apply(Op::sqrt, own) * apply(Op::sqrt, other);
      const NDArray both = apply(Op::greater, sizes, Scalar(0));
      const NDArray cosine =
          where(both, apply(Op::abs, off) / where(both, sizes, one(sizes, real_elem)),
                full(device, real_elem, Dims{}, Scalar(0)));
      worst = apply(Op::maximum, worst, reduce(ReduceOp::max, cosine));
      const NDArray j = rotations(round, own, other, off, identity);
      w = matmul(w, j), v = matmul(v, j);
    }
    if (number(worst) <= 4 * epsilon(real_elem)) break;
  }
  NDArray s = apply(Op::sqrt, sum(squares(w), 1)).reshape(Dims{count, n});
  if (count > 0 && n > 0) {
    const NDArray order = argsort(s, 1, true);
    s = sort(s, 1, true);
    w = along_last(w, order), v = along_last(v, order);
  }
  if (part == SvdPart::values) return {{}, s, {}};
  // Columns over their lengths.
  const NDArray scale = s.reshape(Dims{count, 1, n});
  const NDArray zero = negligible(s, std::max(m, n));
  const NDArray safe = where(zero, one(scale, real_elem), scale).astype(elem);
  const NDArray u = where(zero, full(device, elem, Dims{}, Scalar(0)), w / safe);
  return {completed(u, s, part == SvdPart::full), s, adjoint(v)};
}

NDArray completed(const NDArray& u, const NDArray& s, bool whole) {
  const std::int64_t count = u.shape()[0], m = u.shape()[1], n = u.shape()[2];
  const Ref<Device>& device = u.device();
  const Elem elem = u.elem();
  const NDArray zero = negligible(s, std::max(m, n));
  const Qr q = small::fits(small::Program::qr, u) ? small::qr(u, whole) : qr(u, whole);
  const NDArray same = apply(Op::not_equal, identities(device, elem, 1, n), Scalar(0));
  NDArray phase =
      n > 0 ? masked(same, until(q.r, 1, n)) : full(device, elem, Dims{count, 1, 0}, Scalar(0));
  phase = where(zero, one(u, elem), phase);
  if (n > 0 && count > 0) {
    const NDArray some = until(q.q, 2, n);
    assign(some, some * apply(Op::sign, phase));
  }
  return q.q;
}

}  // namespace composed

}  // namespace weft::linalg
