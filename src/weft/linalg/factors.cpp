// SPDX-License-Identifier: Apache-2.0
// Factors that report a failure in place of throwing it, and systems solved with factors that are
// at hand. On the host.
#include <algorithm>
#include <array>

#include "weft/linalg/lapack.h"
#include "weft/linalg/linalg.h"
#include "weft/linalg/small_lu.h"
#include "weft/linalg/triangular.h"

namespace weft::linalg {

namespace {

void need_host(const NDArray& a, std::string_view name) {
  if (a.on_host()) return;
  throw Error(ErrorKind::device, cat("array.", name, ".kernel"),
              cat("no kernel of ", name, " for ", describe(a), " on ", a.device()->info().name))
      .note("devices that have it: cpu")
      .help("move the array to the host's device with to(...)");
}

NDArray numbers(const NDArray& like, Dims shape) {
  NDArray out = NDArray::empty(like.device(), Elem::int32, shape);
  std::fill_n(data<Int>(out), out.size(), 0);
  return out;
}

/// The shapes that two stacks of matrices have after broadcasting, checked for equal rows.
struct Stacks {
  Dims a, b;
};
Stacks stacks(const NDArray& a, const NDArray& b, std::string_view name) {
  const std::int64_t n = a.shape()[a.ndim() - 1];
  if (b.ndim() < 2 || b.shape()[b.ndim() - 2] != n) {
    throw Error(ErrorKind::shape, cat("array.", name, ".extent"),
                cat(name, " with ", describe(a), " and ", describe(b), ": matrices of ", n,
                    " rows are needed"));
  }
  const Dims ba = batch_shape(a, {}), bb = batch_shape(b, {});
  const Dims* shapes[2] = {&ba, &bb};
  Stacks out;
  out.a = out.b = broadcast_shapes(shapes, name);
  out.a.push_back(n), out.a.push_back(n);
  out.b.push_back(n), out.b.push_back(b.shape()[b.ndim() - 1]);
  return out;
}

bool by_products(std::int64_t n, std::int64_t k) {
  return n >= kTriangularRows && k >= kTriangularColumns;
}

/// For solve_triangle.
NDArray negative_of(const NDArray& a) { return apply(Op::negative, a).contiguous(); }

}  // namespace

Elimination lu(const NDArray& a) {
  need_matrix(a, "lu", false);
  need_host(a, "lu");
  const std::int64_t rows = a.shape()[a.ndim() - 2], cols = a.shape()[a.ndim() - 1];
  const std::int64_t k = std::min(rows, cols);
  NDArray A = columns(a);
  Elimination out{A, numbers(A, batch_shape(a, {k})), numbers(A, batch_shape(a, {}))};
  const OneThread alone(A.shape()[A.ndim() - 1]);
  by_type(A.elem(), [&]<typename T>(T) {
    auto* getrf = routine<void(const Int*, const Int*, T*, const Int*, Int*, Int*)>(
        spelled<T>("getrf").c_str());
    const Int m = static_cast<Int>(rows), n = static_cast<Int>(cols), ld = std::max<Int>(1, m);
    for (std::int64_t i = 0, count = k > 0 ? batch_of(a) : 0; i < count; ++i) {
      getrf(&m, &n, data<T>(A) + i * rows * cols, &ld, data<Int>(out.pivots) + i * k,
            data<Int>(out.info) + i);
    }
  });
  out.lu = A.transpose(-2, -1);
  return out;
}

NDArray lu_solve(const NDArray& lu, const NDArray& pivots, const NDArray& b, bool adjoint) {
  need_matrix(lu, "lu_solve", true);
  need_host(lu, "lu_solve");
  const Stacks shapes = stacks(lu, b, "lu_solve");
  const std::int64_t n = shapes.b[shapes.b.size() - 2], k = shapes.b[shapes.b.size() - 1];
  Dims of_pivots(shapes.a.data(), static_cast<int>(shapes.a.size()) - 1);
  const NDArray A = columns(lu.broadcast_to(shapes.a));
  const NDArray P = pivots.broadcast_to(of_pivots).astype(Elem::int32);
  for (std::int64_t i = 0; i < P.size(); ++i) {
    const Int p = data<Int>(P)[i];
    if (p >= 1 && p <= n) continue;
    throw Error(ErrorKind::value, "array.lu_solve.pivot",
                cat("lu_solve: a pivot is ", p, ", legal: 1 to ", n));
  }
  if (by_products(n, k)) {
    // In the adjoint the factors come the other way round, and the rows go back where they were.
    const NDArray negative = negative_of(adjoint ? apply(Op::conj, A) : A.transpose(-2, -1));
    NDArray x = b.broadcast_to(shapes.b).astype(A.elem());
    by_type(A.elem(), [&]<typename T>(T) {
      for (std::int64_t i = 0, count = batch_of(x); i < count; ++i) {
        T* const rows = data<T>(x) + i * n * k;
        const T* const triangles = data<T>(negative) + i * n * n;
        const Int* const pivot = data<Int>(P) + i * n;
        const auto exchange = [&](std::int64_t r) {
          T* const row = rows + r * k;
          if (pivot[r] - 1 != r) std::swap_ranges(row, row + k, rows + (pivot[r] - 1) * k);
        };
        for (std::int64_t r = 0; !adjoint && r < n; ++r) exchange(r);
        for (const Side side : adjoint ? std::array{Side::lower, Side::unit_upper}
                                       : std::array{Side::unit_lower, Side::upper})
          solve_triangle<T>(side, n, k, triangles, rows);
        for (std::int64_t r = n; adjoint && r-- > 0;) exchange(r);
      }
    });
    return x;
  }
  NDArray X = columns(b.broadcast_to(shapes.b).astype(A.elem()));
  const OneThread alone(A.shape()[A.ndim() - 1]);
  by_type(A.elem(), [&]<typename T>(T) {
    auto* getrs = routine<void(const char*, const Int*, const Int*, const T*, const Int*,
                               const Int*, T*, const Int*, Int*)>(spelled<T>("getrs").c_str());
    const Int in = static_cast<Int>(n), ik = static_cast<Int>(k), ld = std::max<Int>(1, in);
    Int info = 0;
    for (std::int64_t i = 0, count = n && k ? batch_of(X) : 0; i < count; ++i) {
      getrs(adjoint ? "C" : "N", &in, &ik, data<T>(A) + i * n * n, &ld, data<Int>(P) + i * n,
            data<T>(X) + i * n * k, &ld, &info);
    }
  });
  return X.transpose(-2, -1);
}

NDArray solve_triangular(const NDArray& a, const NDArray& b, bool upper, bool unit) {
  need_matrix(a, "solve_triangular", true);
  need_host(a, "solve_triangular");
  const Stacks shapes = stacks(a, b, "solve_triangular");
  const std::int64_t n = shapes.b[shapes.b.size() - 2], k = shapes.b[shapes.b.size() - 1];
  if (by_products(n, k)) {
    const Elem wide = wide_of(a.elem());
    const NDArray negative = negative_of(a.broadcast_to(shapes.a).astype(wide));
    NDArray x = b.broadcast_to(shapes.b).astype(wide);
    const Side side = upper  ? unit ? Side::unit_upper : Side::upper
                      : unit ? Side::unit_lower
                             : Side::lower;
    by_type(wide, [&]<typename T>(T) {
      for (std::int64_t i = 0, count = batch_of(x); i < count; ++i)
        solve_triangle<T>(side, n, k, data<T>(negative) + i * n * n, data<T>(x) + i * n * k);
    });
    return x;
  }
  const NDArray A = columns(a.broadcast_to(shapes.a));
  NDArray X = columns(b.broadcast_to(shapes.b).astype(A.elem()));
  const OneThread alone(A.shape()[A.ndim() - 1]);
  by_type(A.elem(), [&]<typename T>(T) {
    auto* trsm =
        routine<void(const char*, const char*, const char*, const char*, const Int*, const Int*,
                     const T*, const T*, const Int*, T*, const Int*)>(spelled<T>("trsm").c_str());
    const Int in = static_cast<Int>(n), ik = static_cast<Int>(k), ld = std::max<Int>(1, in);
    const T one = 1;
    for (std::int64_t i = 0, count = n && k ? batch_of(X) : 0; i < count; ++i) {
      trsm("L", upper ? "U" : "L", "N", unit ? "U" : "N", &in, &ik, &one, data<T>(A) + i * n * n,
           &ld, data<T>(X) + i * n * k, &ld);
    }
  });
  return X.transpose(-2, -1);
}

TriangularFactor try_cholesky(const NDArray& a, bool upper) {
  need_matrix(a, "cholesky", true);
  need_host(a, "cholesky");
  const std::int64_t n = a.shape()[a.ndim() - 1];
  NDArray A = columns(a);
  TriangularFactor out{A, numbers(A, batch_shape(a, {}))};
  const OneThread alone(A.shape()[A.ndim() - 1]);
  by_type(A.elem(), [&]<typename T>(T) {
    const bool few = n <= kFewRows<T>;
    auto* potrf = few ? nullptr
                      : routine<void(const char*, const Int*, T*, const Int*, Int*)>(
                            spelled<T>("potrf").c_str());
    const Int in = static_cast<Int>(n), ld = std::max<Int>(1, in);
    for (std::int64_t m = 0, count = n > 0 ? batch_of(A) : 0; m < count; ++m) {
      T* c = data<T>(A) + m * n * n;
      Int* const info = data<Int>(out.info) + m;
      if (few) *info = small_cholesky(in, c, upper ? in : 1, upper ? 1 : in);
      else potrf(upper ? "U" : "L", &in, c, &ld, info);
      for (std::int64_t col = 0; col < n; ++col) {
        for (std::int64_t row = 0; row < n; ++row) {
          if (upper ? row > col : row < col) c[col * n + row] = T(0);
        }
      }
    }
  });
  out.factor = A.transpose(-2, -1);
  return out;
}

}  // namespace weft::linalg
