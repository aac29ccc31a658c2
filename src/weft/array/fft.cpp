// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <vector>

#include "weft/array/linalg.h"
#include "weft/array/ops.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

__extension__ typedef unsigned __int128 Wide;
using Z = std::complex<double>;
constexpr double kTau = 6.283185307179586476925;
constexpr std::int64_t kLargestRadix = 31;

Z mul(Z a, Z b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// exp(-2 pi i k / n), with the angle reduced to the first octant for the last bit's sake.
Z root(std::int64_t k, std::int64_t n) {
  auto octant = [](std::int64_t num,
                   std::int64_t den) {  // angle tau * num / den, at most an eighth
    double angle = kTau * static_cast<double>(num) / static_cast<double>(den);
    return Z(std::cos(angle), std::sin(angle));
  };
  k %= n;
  bool lower = 2 * k > n;  // second half: the conjugate
  if (lower) k = n - k;
  bool left = 4 * k > n;  // second quadrant: mirrored; angles are counted in units of 1 / (2 n)
  std::int64_t u = left ? n - 2 * k : 2 * k;
  Z z = 4 * u > n ? octant(n - 2 * u, 4 * n) : octant(u, 2 * n);
  if (4 * u > n) z = Z(z.imag(), z.real());
  if (left) z = Z(-z.real(), z.imag());
  return lower ? z : std::conj(z);
}

class Plan {
 public:
  explicit Plan(std::int64_t n) : n_(n) {
    std::int64_t rest = n;
    for (std::int64_t p : {4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31}) {
      while (rest % p == 0 && rest > 1) {
        factors_.push_back(p);
        rest /= p;
      }
    }
    if (rest == 1) {
      roots_.resize(static_cast<std::size_t>(n));
      for (std::int64_t k = 0; k < n; ++k) roots_[static_cast<std::size_t>(k)] = root(k, n);
      return;
    }
    // Bluestein: a convolution of length m >= 2 n - 1, a power of two.
    std::int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    inner_ = std::make_unique<Plan>(m);
    chirp_.resize(static_cast<std::size_t>(n));
    kernel_.assign(static_cast<std::size_t>(m), Z(0));
    for (std::int64_t k = 0; k < n; ++k) {
      chirp_[static_cast<std::size_t>(k)] =
          root(static_cast<std::int64_t>(static_cast<Wide>(k) * static_cast<Wide>(k) %
                                         static_cast<Wide>(2 * n)),
               2 * n);
    }
    std::vector<Z> b(static_cast<std::size_t>(m), Z(0));
    for (std::int64_t k = 0; k < n; ++k) {
      b[static_cast<std::size_t>(k)] = std::conj(chirp_[static_cast<std::size_t>(k)]);
      if (k) b[static_cast<std::size_t>(m - k)] = b[static_cast<std::size_t>(k)];
    }
    inner_->forward(b.data(), kernel_.data());
  }

  /// out = transform of in; they may not overlap.
  void forward(const Z* in, Z* out) const {
    if (!inner_) {
      step(n_, in, 1, out, 0);
      return;
    }
    const auto m = kernel_.size();
    std::vector<Z> a(m, Z(0)), c(m);
    for (std::size_t k = 0; k < chirp_.size(); ++k) a[k] = mul(in[k], chirp_[k]);
    inner_->forward(a.data(), c.data());
    for (std::size_t k = 0; k < m; ++k) c[k] = std::conj(mul(c[k], kernel_[k]));
    inner_->forward(c.data(), a.data());
    for (std::size_t k = 0; k < chirp_.size(); ++k)
      out[k] = mul(std::conj(a[k]) / static_cast<double>(m), chirp_[k]);
  }

 private:
  void step(std::int64_t n, const Z* in, std::int64_t stride, Z* out, std::size_t level) const {
    if (n == 1) {
      out[0] = in[0];
      return;
    }
    const std::int64_t p = factors_[level], m = n / p;
    for (std::int64_t r = 0; r < p; ++r)
      step(m, in + r * stride, stride * p, out + r * m, level + 1);
    Z t[kLargestRadix];
    const std::int64_t turn = n_ / p;
    for (std::int64_t k = 0; k < m; ++k) {
      for (std::int64_t r = 0; r < p; ++r)
        t[r] = r && k ? mul(out[r * m + k], roots_[static_cast<std::size_t>(r * k * stride)])
                      : out[r * m + k];
      if (p == 2) {
        out[k] = t[0] + t[1];
        out[m + k] = t[0] - t[1];
      } else if (p == 4) {
        Z a = t[0] + t[2], b = t[0] - t[2], c = t[1] + t[3], d = t[1] - t[3];
        Z e(d.imag(), -d.real());  // -i d
        out[k] = a + c;
        out[m + k] = b + e;
        out[2 * m + k] = a - c;
        out[3 * m + k] = b - e;
      } else {
        for (std::int64_t q = 0; q < p; ++q) {
          Z sum = t[0];
          for (std::int64_t r = 1; r < p; ++r)
            sum += mul(t[r], roots_[static_cast<std::size_t>(r * q % p * turn)]);
          out[q * m + k] = sum;
        }
      }
    }
  }

  std::int64_t n_;
  std::vector<std::int64_t> factors_;
  std::vector<Z> roots_, chirp_, kernel_;
  std::unique_ptr<Plan> inner_;
};

}  // namespace

NDArray fft_last(const NDArray& x, std::int64_t n, bool inverse) {
  if (n < 1)
    throw Error(ErrorKind::value, "array.fft.length",
                cat("a transform of ", n, " points was asked for; at least 1 is needed"));
  if (x.ndim() == 0)
    throw Error(ErrorKind::shape, "array.fft.rank",
                cat("a transform needs at least one dimension, got ", describe(x)));
  const int last = x.ndim() - 1;
  Dims shape = x.shape();
  const std::int64_t have = std::min(n, shape[last]);
  shape[last] = n;
  NDArray in = full(x.device(), Elem::complex128, shape, Scalar(0));
  assign(in.slice(last, 0, have, 1), x.slice(last, 0, have, 1));
  NDArray out = NDArray::empty(x.device(), Elem::complex128, shape);
  if (out.size() > 0) {
    Plan plan(n);
    Z* a = reinterpret_cast<Z*>(in.host());
    Z* b = reinterpret_cast<Z*>(out.host());
    runtime::Pool::shared().parallel_for(out.size() / n, std::max<std::int64_t>(1, 8192 / n),
                                         [&](std::int64_t r, std::int64_t end) {
                                           for (; r < end; ++r) {
                                             Z* from = a + r * n;
                                             Z* to = b + r * n;
                                             if (inverse) {
                                               for (std::int64_t i = 0; i < n; ++i)
                                                 from[i] = std::conj(from[i]);
                                             }
                                             plan.forward(from, to);
                                             if (inverse) {
                                               for (std::int64_t i = 0; i < n; ++i)
                                                 to[i] = std::conj(to[i]);
                                             }
                                           }
                                         });
  }
  return out.astype(complex_of(x.elem()));
}

}  // namespace weft
