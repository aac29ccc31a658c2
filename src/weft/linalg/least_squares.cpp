// SPDX-License-Identifier: Apache-2.0
#include "weft/linalg/least_squares.h"

#include <algorithm>
#include <vector>

#include "weft/linalg/lapack.h"

namespace weft::linalg {

namespace {

template <typename T>
void solve(const NDArray& a, const NDArray& b, double rcond, LeastSquares& out, Int columns_of_b) {
  const Int n = static_cast<Int>(a.shape()[0]), m = static_cast<Int>(a.shape()[1]);
  const Int lda = std::max<Int>(1, m), ldb = std::max<Int>({1, m, n}), query = -1;
  Int rank = 0, info = 0, least = 0;
  T size = 0, limit = static_cast<T>(rcond);
  auto* f = routine<void(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, T*,
                         const T*, Int*, T*, const Int*, Int*, Int*)>(spelled<T>("gelsd").c_str());
  T* const s = data<T>(out.singular_values);
  f(&m, &n, &columns_of_b, data<T>(a), &lda, data<T>(b), &ldb, s, &limit, &rank, &size, &query,
    &least, &info);
  const Int lwork = static_cast<Int>(size);
  std::vector<T> work(static_cast<std::size_t>(std::max<Int>(1, lwork)));
  std::vector<Int> whole(static_cast<std::size_t>(std::max<Int>(1, least)));
  f(&m, &n, &columns_of_b, data<T>(a), &lda, data<T>(b), &ldb, s, &limit, &rank, work.data(),
    &lwork, whole.data(), &info);
  out.rank = info > 0 ? -1 : rank;
  if (info > 0 || m <= n || rank < n) return;
  out.sums = NDArray::empty(a.device(), a.elem(), Dims{columns_of_b});
  for (Int k = 0; k < columns_of_b; ++k) {
    T total = 0;
    for (Int i = n; i < m; ++i) total += data<T>(b)[k * ldb + i] * data<T>(b)[k * ldb + i];
    data<T>(out.sums)[k] = total;
  }
}

}  // namespace

LeastSquares least_squares(const NDArray& a, const NDArray& b, double rcond) {
  const std::int64_t m = a.shape()[0], n = a.shape()[1], k = b.shape()[1];
  const NDArray columns_of_a = columns(a);
  // What is solved for replaces the right side, which has room for it.
  const NDArray right = NDArray::empty(a.device(), a.elem(), Dims{k, std::max(m, n)});
  assign(right.slice(1, 0, m, 1), b.transpose(0, 1));
  LeastSquares out;
  out.singular_values = NDArray::empty(a.device(), a.elem(), Dims{std::min(m, n)});
  out.sums = NDArray::empty(a.device(), a.elem(), Dims{0});
  const OneThread alone(std::max(m, n));
  const Int count = static_cast<Int>(k);
  if (a.elem() == Elem::float64) solve<double>(columns_of_a, right, rcond, out, count);
  else solve<float>(columns_of_a, right, rcond, out, count);
  out.solution = right.slice(1, 0, n, 1).transpose(0, 1).contiguous();
  return out;
}

}  // namespace weft::linalg
