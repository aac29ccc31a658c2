// SPDX-License-Identifier: Apache-2.0
#include "weft/linalg/linalg.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "weft/array/ops.h"
#include "weft/devices/operators.h"
#include "weft/linalg/lapack.h"
#include "weft/linalg/linalg_device.h"
#include "weft/linalg/small_lu.h"
#include "weft/linalg/triangular.h"

namespace weft::linalg {

namespace {

/// Refuses devices on which arrays have too few operations to compose `name` of.
void need_device(const NDArray& a, std::string_view name) {
  if (a.on_host() || has_grid(a)) return;
  throw Error(ErrorKind::device, cat("array.", name, ".kernel"),
              cat("no kernel of ", name, " for ", describe(a), " on ", a.device()->info().name))
      .note("devices that have it: cpu, and those with a grid of thread blocks")
      .help("move the array to the host's device with to(...)");
}

[[noreturn]] void failed(std::string_view name, std::string_view reason, const NDArray& a,
                         std::int64_t which) {
  throw Error(ErrorKind::value, cat("array.", name, ".", reason),
              cat(name, ": matrix ", which, " of ", describe(a), " is ", reason))
      .help(
          reason == "singular" ? "use weft.linalg.pinv, or add a small multiple of the identity"
          : reason == "indefinite"
              ? "give a symmetric matrix with positive eigenvalues, such as a @ a.mT + weft.eye(n)"
              : "scale the matrix, or convert it to float64");
}

/// Iterations do not end well with NaN or infinity: such matrices are refused before LAPACK sees
/// them.
void need_finite(const NDArray& a, std::string_view name) {
  const NDArray good = reduce(ReduceOp::all, apply(Op::isfinite, a), {false, {-2, -1}}, false);
  std::string each(static_cast<std::size_t>(good.size()), '\0');
  good.read(each.data());
  const std::size_t which = each.find('\0');
  if (which == std::string::npos) return;
  throw Error(ErrorKind::value, cat("array.", name, ".finite"),
              cat(name, ": matrix ", which, " of ", describe(a), " holds NaN or infinity"))
      .note("legal: matrices of finite numbers");
}

}  // namespace

namespace {

/// The solution in place of `b`.
template <typename T>
NDArray solve_few(const NDArray& a, const NDArray& b, std::string_view name, const NDArray& given) {
  const std::int64_t n = b.shape()[b.ndim() - 2], k = b.shape()[b.ndim() - 1];
  for (std::int64_t m = 0, count = batch_of(a); m < count && n > 0 && k > 0; ++m) {
    const Int info = small_solve(static_cast<Int>(n), static_cast<Int>(k), data<T>(a) + m * n * n,
                                 data<T>(b) + m * n * k);
    if (info > 0) failed(name, "singular", given, m);
  }
  return b;
}

/// Factors of a stack of matrices for solve_triangle, and where the rows of each went.
template <typename T>
struct StackFactors {
  NDArray negative;
  std::vector<std::int64_t> rows;

  StackFactors(const NDArray& a, std::string_view name, const NDArray& given) {
    const NDArray A = columns(a);
    const std::int64_t n = a.shape()[a.ndim() - 1], count = batch_of(A);
    auto* getrf = routine<void(const Int*, const Int*, T*, const Int*, Int*, Int*)>(
        spelled<T>("getrf").c_str());
    const OneThread alone(n);
    std::vector<Int> pivots(static_cast<std::size_t>(n));
    rows.resize(static_cast<std::size_t>(count * n));
    const Int in = static_cast<Int>(n);
    Int info = 0;
    for (std::int64_t m = 0; m < count; ++m) {
      getrf(&in, &in, data<T>(A) + m * n * n, &in, pivots.data(), &info);
      if (info > 0) failed(name, "singular", given, m);
      const auto from = rows.begin() + m * n;
      std::iota(from, from + n, 0);
      for (std::int64_t i = 0; i < n; ++i)
        std::swap(from[i], from[pivots[static_cast<std::size_t>(i)] - 1]);
    }
    negative = apply(Op::negative, A.transpose(-2, -1).contiguous());
  }
};

/// The solution of many rows and right sides.
template <typename T>
NDArray solve_by_products(const NDArray& a, const NDArray& b, std::string_view name,
                          const NDArray& given) {
  const std::int64_t n = b.shape()[b.ndim() - 2], k = b.shape()[b.ndim() - 1];
  const StackFactors<T> of(a, name, given);
  const NDArray out = NDArray::empty(b.device(), b.elem(), b.shape());
  for (std::int64_t m = 0, count = batch_of(a); m < count; ++m) {
    T* const x = data<T>(out) + m * n * k;
    for (std::int64_t i = 0; i < n; ++i) {
      const T* const row = data<T>(b) + (m * n + of.rows[static_cast<std::size_t>(m * n + i)]) * k;
      std::copy(row, row + k, x + i * k);
    }
    for (const Side side : {Side::unit_lower, Side::upper})
      solve_triangle<T>(side, n, k, data<T>(of.negative) + m * n * n, x);
  }
  return out;
}

/// The inverse of matrices of many rows.
template <typename T>
NDArray inverse_by_products(const NDArray& a, const NDArray& given) {
  const std::int64_t n = a.shape()[a.ndim() - 1];
  const StackFactors<T> of(a, "inv", given);
  const NDArray out = NDArray::empty(a.device(), a.elem(), a.shape());
  std::vector<T> turned(static_cast<std::size_t>(n));
  for (std::int64_t m = 0, count = batch_of(a); m < count; ++m) {
    T* const x = data<T>(out) + m * n * n;
    std::fill_n(x, n * n, T(0));
    for (std::int64_t i = 0; i < n; ++i) x[i * (n + 1)] = T(1);
    for (const Side side : {Side::unit_lower_inverse, Side::upper})
      solve_triangle<T>(side, n, n, data<T>(of.negative) + m * n * n, x);
    const std::int64_t* const to = of.rows.data() + m * n;
    for (T* row = x; row < x + n * n; row += n) {
      for (std::int64_t j = 0; j < n; ++j) turned[static_cast<std::size_t>(to[j])] = row[j];
      std::copy(turned.begin(), turned.end(), row);
    }
  }
  return out;
}

template <typename T>
NDArray solve_by_columns(const NDArray& a, const NDArray& b, std::string_view name,
                         const NDArray& given) {
  const NDArray A = columns(a), X = columns(b);
  const std::int64_t n = b.shape()[b.ndim() - 2], k = b.shape()[b.ndim() - 1];
  auto* gesv = routine<void(const Int*, const Int*, T*, const Int*, Int*, T*, const Int*, Int*)>(
      spelled<T>("gesv").c_str());
  const OneThread alone(n);
  std::vector<Int> pivots(static_cast<std::size_t>(n) + 1);
  Int in = static_cast<Int>(n), ik = static_cast<Int>(k), info = 0, ld = std::max<Int>(1, in);
  for (std::int64_t m = 0, count = batch_of(A); m < count && n > 0 && k > 0; ++m) {
    gesv(&in, &ik, data<T>(A) + m * n * n, &ld, pivots.data(), data<T>(X) + m * n * k, &ld, &info);
    if (info > 0) failed(name, "singular", given, m);
  }
  return X.transpose(-2, -1);
}

}  // namespace

bool available() { return lapack() != nullptr; }

NDArray solve(const NDArray& a_in, const NDArray& b_in, std::string_view name) {
  need_matrix(a_in, name, true);
  check_same_device(a_in, b_in, "solve");
  Elem e = promote(a_in.elem(), b_in.elem());
  const bool vector = b_in.ndim() == 1;
  NDArray b = vector ? b_in.expand_dims(1) : b_in;
  std::int64_t n = a_in.shape()[a_in.ndim() - 1], k = b.shape()[b.ndim() - 1];
  if (b.shape()[b.ndim() - 2] != n) {
    throw Error(
        ErrorKind::shape, "array.solve.extent",
        cat("solve with ", describe(a_in), " and ", describe(b_in), ": ", n, " rows are needed"));
  }
  Dims ba(a_in.shape().data(), a_in.ndim() - 2), bb(b.shape().data(), b.ndim() - 2);
  const Dims* shapes[2] = {&ba, &bb};
  Dims batch = broadcast_shapes(shapes, "solve"), sa = batch, sb = batch;
  sa.push_back(n), sa.push_back(n), sb.push_back(n), sb.push_back(k);
  Elem wide = wide_of(e);
  if (!a_in.on_host()) {
    need_device(a_in, name);
    NDArray x =
        device::solve(a_in.broadcast_to(sa).astype(e), b.broadcast_to(sb).astype(e), name, a_in);
    const int last[1] = {-1};
    return vector ? x.squeeze(last) : x;
  }
  const NDArray whole = a_in.broadcast_to(sa).astype(wide), right = b.broadcast_to(sb).astype(wide);
  NDArray out;
  by_type(wide, [&]<typename T>(T) {
    const bool large = n >= kTriangularRows && k >= kTriangularColumns;
    out = n <= kFewRows<T> ? solve_few<T>(whole, right, name, a_in)
          : large          ? solve_by_products<T>(whole, right, name, a_in)
                           : solve_by_columns<T>(whole, right, name, a_in);
  });
  out = out.elem() == e ? out.contiguous() : out.astype(e);
  if (vector) {
    const int axis[1] = {-1};
    out = out.squeeze(axis);
  }
  return out;
}

std::optional<NDArray> inverse(const NDArray& a) {
  need_matrix(a, "inv", true);
  if (!a.on_host() || a.shape()[a.ndim() - 1] < kTriangularRows || a.size() == 0)
    return std::nullopt;
  const Elem wide = wide_of(a.elem());
  NDArray out;
  by_type(wide, [&]<typename T>(T) { out = inverse_by_products<T>(a.astype(wide), a); });
  return out.elem() == a.elem() ? out : out.astype(a.elem());
}

SignedLog slogdet(const NDArray& a) {
  need_matrix(a, "slogdet", true);
  if (!a.on_host()) {
    need_device(a, "slogdet");
    return device::slogdet(a);
  }
  Elem e = a.elem(), wide = wide_of(e);
  std::int64_t n = a.shape()[a.ndim() - 1];
  const NDArray A = a.astype(wide);  // turned matrices have the same determinant
  SignedLog out{NDArray::empty(A.device(), wide, batch_shape(a, {})),
                NDArray::empty(A.device(), real_of(wide), batch_shape(a, {})),
                NDArray::empty(A.device(), wide, batch_shape(a, {}))};
  by_type(wide, [&]<typename T>(T) {
    const bool few = n <= kFewRows<T>;
    auto* getrf = few ? nullptr
                      : routine<void(const Int*, const Int*, T*, const Int*, Int*, Int*)>(
                            spelled<T>("getrf").c_str());
    const OneThread alone(n);
    std::vector<Int> pivots(static_cast<std::size_t>(n) + 1);
    Int in = static_cast<Int>(n), info = 0, ld = std::max<Int>(1, in);
    for (std::int64_t m = 0, count = out.sign.size(); m < count; ++m) {
      T* lu = data<T>(A) + m * n * n;
      T sign = 1, det = 1;
      Real<T> log = 0;
      if (few) small_lu(in, lu, pivots.data());
      else getrf(&in, &in, lu, &ld, pivots.data(), &info);
      for (std::int64_t i = 0; i < n; ++i) {
        T d = lu[i * n + i];
        const Real<T> magnitude = std::abs(d);
        if (pivots[static_cast<std::size_t>(i)] != i + 1) sign = -sign, det = -det;
        det *= d;
        sign = magnitude == 0 ? T(0) : sign * (d / magnitude);
        log += std::log(magnitude);
      }
      data<T>(out.sign)[m] = sign;
      data<Real<T>>(out.log)[m] = log;
      data<T>(out.determinant)[m] = det;
    }
  });
  return {out.sign.astype(e), out.log.astype(real_of(e)), out.determinant.astype(e)};
}

NDArray cholesky(const NDArray& a, bool upper) {
  need_matrix(a, "cholesky", true);
  if (!a.on_host()) {
    need_device(a, "cholesky");
    return device::cholesky(a, upper);
  }
  const TriangularFactor found = try_cholesky(a, upper);
  const Int* info = data<Int>(found.info);
  const std::int64_t count = found.info.size();
  const std::int64_t which = std::find_if(info, info + count, [](Int i) { return i > 0; }) - info;
  if (which < count) failed("cholesky", "indefinite", a, which);
  return found.factor.astype(a.elem());
}

Eigen eigh(const NDArray& a, bool vectors) {
  need_matrix(a, "eigh", true);
  need_device(a, "eigh");
  need_finite(a, "eigh");
  if (!a.on_host()) return device::eigh(a);
  std::int64_t n = a.shape()[a.ndim() - 1];
  NDArray A = columns(a);
  const char* job = vectors ? "V" : "N";
  NDArray W = NDArray::empty(A.device(), real_of(A.elem()), batch_shape(a, {n}));
  const OneThread alone(n);
  by_type(wide_of(a.elem()), [&]<typename T>(T) {
    Int in = static_cast<Int>(n), info = 0, ld = std::max<Int>(1, in), query = -1;
    for (std::int64_t m = 0, count = batch_of(A); m < count && n > 0; ++m) {
      T* v = data<T>(A) + m * n * n;
      using R = Real<T>;
      R* w = data<R>(W) + m * n;
      T work0;
      R rwork0 = 0;
      Int iwork0 = 0;
      if constexpr (kComplex<T>) {
        auto* f =
            routine<void(const char*, const char*, const Int*, T*, const Int*, R*, T*, const Int*,
                         R*, const Int*, Int*, const Int*, Int*)>(spelled<T>("heevd").c_str());
        f(job, "L", &in, v, &ld, w, &work0, &query, &rwork0, &query, &iwork0, &query, &info);
        Int lw = static_cast<Int>(work0.real()), lr = static_cast<Int>(rwork0), li = iwork0;
        std::vector<T> work(static_cast<std::size_t>(lw));
        std::vector<R> rwork(static_cast<std::size_t>(lr));
        std::vector<Int> iwork(static_cast<std::size_t>(li));
        f(job, "L", &in, v, &ld, w, work.data(), &lw, rwork.data(), &lr, iwork.data(), &li, &info);
      } else {
        auto* f = routine<void(const char*, const char*, const Int*, T*, const Int*, R*, T*,
                               const Int*, Int*, const Int*, Int*)>(spelled<T>("syevd").c_str());
        f(job, "L", &in, v, &ld, w, &work0, &query, &iwork0, &query, &info);
        Int lw = static_cast<Int>(work0), li = iwork0;
        std::vector<T> work(static_cast<std::size_t>(lw));
        std::vector<Int> iwork(static_cast<std::size_t>(li));
        f(job, "L", &in, v, &ld, w, work.data(), &lw, iwork.data(), &li, &info);
      }
      if (info > 0) failed("eigh", "divergent", a, m);
    }
  });
  const NDArray values = W.astype(real_of(a.elem()));
  if (!vectors) return {values, {}};
  return {values, A.transpose(-2, -1).astype(a.elem())};
}

/// Of a real matrix, column after column, which is written over. Pairs of complex eigenvalues are
/// conjugates to the last bit, and real ones have no imaginary part.
Int real_eig(double* x, Int n, Z* values, Z* vectors) {
  auto* f =
      routine<void(const char*, const char*, const Int*, double*, const Int*, double*, double*,
                   double*, const Int*, double*, const Int*, double*, const Int*, Int*)>("dgeev_");
  const std::size_t un = static_cast<std::size_t>(n);
  std::vector<double> re(un), im(un), v(un * un);
  const Int query = -1;
  double best = 0;
  Int info = 0;
  f("N", "V", &n, x, &n, re.data(), im.data(), nullptr, &n, v.data(), &n, &best, &query, &info);
  const Int size = static_cast<Int>(best);
  std::vector<double> work(static_cast<std::size_t>(size));
  f("N", "V", &n, x, &n, re.data(), im.data(), nullptr, &n, v.data(), &n, work.data(), &size,
    &info);
  for (std::size_t j = 0; j < un; ++j) {
    values[j] = Z(re[j], im[j]);
    const bool pair = im[j] > 0 && j + 1 < un;  // its vector is column j plus i times the next
    for (std::size_t i = 0; i < un; ++i) {
      const double first = v[j * un + i];
      vectors[j * un + i] = pair ? Z(first, v[(j + 1) * un + i]) : Z(first, 0);
      if (pair) vectors[(j + 1) * un + i] = std::conj(vectors[j * un + i]);
    }
    if (pair) values[j + 1] = Z(re[j + 1], im[j + 1]), ++j;
  }
  return info;
}

Eigen eig(const NDArray& a) {
  need_matrix(a, "eig", true);
  if (!a.on_host()) {
    throw Error(ErrorKind::device, "array.eig.kernel",
                cat("no kernel of eig for ", describe(a), " on ", a.device()->info().name))
        .note("devices that have it: cpu")
        .help("move the array to the host's device with to(...)");
  }
  need_finite(a, "eig");
  const std::int64_t n = a.shape()[a.ndim() - 1];
  const bool real = !is_complex(a.elem());
  NDArray A = columns(a.astype(real ? Elem::float64 : Elem::complex128));
  NDArray W = NDArray::empty(A.device(), Elem::complex128, batch_shape(a, {n}));
  NDArray V = NDArray::empty(A.device(), Elem::complex128, A.shape());
  auto* f = routine<void(const char*, const char*, const Int*, Z*, const Int*, Z*, Z*, const Int*,
                         Z*, const Int*, Z*, const Int*, double*, Int*)>("zgeev_");
  const Int in = static_cast<Int>(n), ld = std::max<Int>(1, in), query = -1;
  std::vector<double> rwork(static_cast<std::size_t>(2 * n + 1));
  for (std::int64_t m = 0, count = batch_of(A); m < count && n > 0; ++m) {
    Z* v = data<Z>(V) + m * n * n;
    Z* w = data<Z>(W) + m * n;
    Z best;
    Int info = 0;
    if (real) {
      info = real_eig(data<double>(A) + m * n * n, in, w, v);
      if (info > 0) failed("eig", "divergent", a, m);
      continue;
    }
    Z* x = data<Z>(A) + m * n * n;
    f("N", "V", &in, x, &ld, w, nullptr, &ld, v, &ld, &best, &query, rwork.data(), &info);
    const Int size = static_cast<Int>(best.real());
    std::vector<Z> work(static_cast<std::size_t>(size));
    f("N", "V", &in, x, &ld, w, nullptr, &ld, v, &ld, work.data(), &size, rwork.data(), &info);
    if (info > 0) failed("eig", "divergent", a, m);
  }
  const Elem out = elem_bytes(real_of(a.elem())) == 8 ? Elem::complex128 : Elem::complex64;
  return {W.astype(out), V.transpose(-2, -1).astype(out)};
}

Svd svd(const NDArray& a, SvdPart part) {
  need_matrix(a, "svd", false);
  need_device(a, "svd");
  need_finite(a, "svd");
  if (!a.on_host()) return device::svd(a, part);
  const bool full = part == SvdPart::full, vectors = part != SvdPart::values;
  const char* job = full ? "A" : vectors ? "S" : "N";
  std::int64_t rows = a.shape()[a.ndim() - 2], cols = a.shape()[a.ndim() - 1],
               k = std::min(rows, cols);
  std::int64_t uc = full ? rows : k, vr = full ? cols : k;
  Elem wide = wide_of(a.elem());
  NDArray A = columns(a);
  NDArray U = NDArray::empty(A.device(), wide, batch_shape(a, {vectors ? uc : 0, rows}));
  NDArray S = NDArray::empty(A.device(), real_of(wide), batch_shape(a, {k}));
  NDArray V = NDArray::empty(A.device(), wide, batch_shape(a, {cols, vectors ? vr : 0}));
  const OneThread alone(std::max(rows, cols));
  by_type(wide, [&]<typename T>(T) {
    using R = Real<T>;
    Int m = static_cast<Int>(rows), n = static_cast<Int>(cols), info = 0, query = -1;
    Int lda = std::max<Int>(1, m), ldv = std::max<Int>(1, static_cast<Int>(vr));
    std::vector<Int> iwork(static_cast<std::size_t>(8 * k + 1));
    std::vector<R> rwork(static_cast<std::size_t>(
        k * std::max(5 * k + 7, 2 * std::max(rows, cols) + 2 * k + 1) + 1));
    for (std::int64_t b = 0, count = batch_of(A); b < count && k > 0; ++b) {
      T* x = data<T>(A) + b * rows * cols;
      T* u = vectors ? data<T>(U) + b * uc * rows : nullptr;
      T* v = vectors ? data<T>(V) + b * cols * vr : nullptr;
      R* s = data<R>(S) + b * k;
      auto run = [&](T* work, Int* lwork) {
        if constexpr (kComplex<T>) {
          auto* f = routine<void(const char*, const Int*, const Int*, T*, const Int*, R*, T*,
                                 const Int*, T*, const Int*, T*, const Int*, R*, Int*, Int*)>(
              spelled<T>("gesdd").c_str());
          f(job, &m, &n, x, &lda, s, u, &lda, v, &ldv, work, lwork, rwork.data(), iwork.data(),
            &info);
        } else {
          auto* f = routine<void(const char*, const Int*, const Int*, T*, const Int*, R*, T*,
                                 const Int*, T*, const Int*, T*, const Int*, Int*, Int*)>(
              spelled<T>("gesdd").c_str());
          f(job, &m, &n, x, &lda, s, u, &lda, v, &ldv, work, lwork, iwork.data(), &info);
        }
      };
      T size;
      run(&size, &query);
      Int lwork = static_cast<Int>(std::abs(size));
      std::vector<T> work(static_cast<std::size_t>(lwork));
      run(work.data(), &lwork);
      if (info > 0) failed("svd", "divergent", a, b);
    }
    if (k == 0 && full) {  // orthogonal matrices of the non-empty side
      for (NDArray* q : {&U, &V}) {
        std::int64_t side = q->shape()[q->ndim() - 1];
        T* p = data<T>(*q);
        std::fill(p, p + q->size(), T(0));
        for (std::int64_t i = 0; i < q->size() && side > 0; i += side + 1) {
          p[i] = T(1);
          if ((i + 1) % (side * side) == 0) i -= side;
        }
      }
    }
  });
  return {U.transpose(-2, -1).astype(a.elem()), S.astype(real_of(a.elem())),
          V.transpose(-2, -1).astype(a.elem())};
}

Qr qr(const NDArray& a, bool complete) {
  need_matrix(a, "qr", false);
  if (!a.on_host()) {
    need_device(a, "qr");
    return device::qr(a, complete);
  }
  std::int64_t rows = a.shape()[a.ndim() - 2], cols = a.shape()[a.ndim() - 1],
               k = std::min(rows, cols);
  std::int64_t qc = complete ? rows : k;
  Elem wide = wide_of(a.elem());
  NDArray A = columns(a);
  NDArray Q = NDArray::empty(A.device(), wide, batch_shape(a, {qc, rows}));
  NDArray R = NDArray::empty(A.device(), wide, batch_shape(a, {qc, cols}));
  const OneThread alone(std::max(rows, cols));
  by_type(wide, [&]<typename T>(T) {
    auto* geqrf = routine<void(const Int*, const Int*, T*, const Int*, T*, T*, const Int*, Int*)>(
        spelled<T>("geqrf").c_str());
    auto* orgqr = routine<void(const Int*, const Int*, const Int*, T*, const Int*, const T*, T*,
                               const Int*, Int*)>(spelled<T>("orgqr", "ungqr").c_str());
    Int m = static_cast<Int>(rows), n = static_cast<Int>(cols), ik = static_cast<Int>(k),
        iq = static_cast<Int>(qc), info = 0;
    Int ld = std::max<Int>(1, m), lwork = std::max<Int>(1, 64 * std::max({m, n, iq}));
    std::vector<T> work(static_cast<std::size_t>(lwork)), tau(static_cast<std::size_t>(k) + 1);
    for (std::int64_t b = 0, count = batch_of(A); b < count; ++b) {
      T* x = data<T>(A) + b * rows * cols;
      T* q = data<T>(Q) + b * qc * rows;
      T* r = data<T>(R) + b * qc * cols;
      if (k > 0) geqrf(&m, &n, x, &ld, tau.data(), work.data(), &lwork, &info);
      for (std::int64_t i = 0; i < qc; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) r[i * cols + j] = i <= j ? x[j * rows + i] : T(0);
      }
      std::fill(q, q + qc * rows, T(0));
      if (k == 0) {
        for (std::int64_t i = 0; i < std::min(qc, rows); ++i) q[i * rows + i] = T(1);
        continue;
      }
      std::memcpy(static_cast<void*>(q), x, sizeof(T) * static_cast<std::size_t>(rows * k));
      orgqr(&m, &iq, &ik, q, &ld, tau.data(), work.data(), &lwork, &info);
    }
  });
  return {Q.transpose(-2, -1).astype(a.elem()), R.astype(a.elem())};
}

}  // namespace weft::linalg
