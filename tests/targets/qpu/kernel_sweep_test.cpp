// SPDX-License-Identifier: Apache-2.0
// Every kernel of the library on every number of QPUs, at lengths around those of a vector and of a
// row of vectors, against plain loops: what lies behind the results stays as it was, and nothing
// is read outside the arrays.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "weft/targets/qpu/kernels/kernels.h"

namespace weft::qpu::kernels {
namespace {

constexpr int kBehind = 5;  // words behind the results

class QpuKernelSweep : public ::testing::TestWithParam<int> {
 protected:
  const int qpus = GetParam();
  std::mt19937 rng{static_cast<unsigned>(GetParam())};

  std::vector<int> lengths() const {
    std::vector<int> out{0, 1, 2, 15, 16, 17, 31, 33, 16 * qpus - 1, 16 * qpus, 16 * qpus + 1, 209};
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  Floats floats(int n) {
    std::uniform_real_distribution<float> d(-1, 1);
    Floats f(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < f.size(); ++i) f[i] = d(rng);
    return f;
  }
  template <typename T>
  static SharedArray<T> results(int n) {
    SharedArray<T> out(static_cast<std::size_t>(n + kBehind));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(-77);
    return out;
  }
  template <typename T>
  void expect_behind(const SharedArray<T>& out, int n, const char* what) const {
    for (int i = n; i < n + kBehind; ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(i)], static_cast<T>(-77))
          << what << " of " << n << " on " << qpus << " QPUs writes behind its results";
  }
  void TearDown() override {
    for (const Note& n : takeNotes())
      ADD_FAILURE() << n.code << " " << n.message << " " << n.source << " on " << qpus;
  }
};

std::size_t at(int i) { return static_cast<std::size_t>(i); }

TEST_P(QpuKernelSweep, elementwise_and_sums) {
  for (int n : lengths()) {
    Floats x = floats(n), y = floats(n);
    double dots = 0, total = 0;
    for (int i = 0; i < n; ++i) dots += double{x[at(i)]} * y[at(i)], total += x[at(i)];
    for (int which = 0; which < 3; ++which) {
      Floats out = results<float>(n);
      if (which == 0) add(x, y, out, n, qpus);
      else if (which == 1) mul(x, y, out, n, qpus);
      else saxpy(-1.25f, x, y, out, n, qpus);
      for (int i = 0; i < n; ++i) {
        const float a = x[at(i)], b = y[at(i)];
        ASSERT_NEAR(out[at(i)],
                    which == 0   ? a + b
                    : which == 1 ? a * b
                                 : -1.25f * a + b,
                    4e-7f)
            << which << ", " << n << " on " << qpus;
      }
      expect_behind(out, n, "an elementwise kernel");
    }
    const int words = 16 * (qpus + 1);
    Floats parts = results<float>(words);
    dot(x, y, parts, n, qpus);
    ASSERT_NEAR(parts[0], dots, 1e-4) << n << " on " << qpus;
    sum(x, parts, n, qpus);
    ASSERT_NEAR(parts[0], total, 1e-4) << n << " on " << qpus;
    expect_behind(parts, words, "a sum");
    for (int w : {1, 3, 17}) {
      if (w > n) continue;
      Floats out = results<float>(n - w + 1);
      window_sum(x, out, n, w, qpus);
      for (int i = 0; i + w <= n; ++i) {
        double want = 0;
        for (int k = 0; k < w; ++k) want += x[at(i + k)];
        ASSERT_NEAR(out[at(i)], want, 1e-4) << n << " " << w << " on " << qpus;
      }
      expect_behind(out, n - w + 1, "the window sum");
    }
  }
}

TEST_P(QpuKernelSweep, matrices) {
  for (auto [m, n, k] : {std::tuple{1, 1, 1}, {2, 17, 3}, {13, 15, 31}, {33, 31, 17}}) {
    Floats a = floats(m * k), b = floats(k * n), c = results<float>(m * n), x = floats(k),
           y = results<float>(m), scratch(at((m + 15) / 16 * 16 * qpus));
    gemm(a, b, c, m, n, k, qpus);
    gemv(a, x, y, scratch, m, k, qpus);
    for (int i = 0; i < m; ++i) {
      double row = 0;
      for (int q = 0; q < k; ++q) row += double{a[at(i * k + q)]} * x[at(q)];
      ASSERT_NEAR(y[at(i)], row, 1e-4) << m << " x " << k << " on " << qpus;
      for (int j = 0; j < n; ++j) {
        double want = 0;
        for (int q = 0; q < k; ++q) want += double{a[at(i * k + q)]} * b[at(q * n + j)];
        ASSERT_NEAR(c[at(i * n + j)], want, 1e-4) << m << " " << n << " " << k << " on " << qpus;
      }
    }
    expect_behind(c, m * n, "gemm"), expect_behind(y, m, "gemv");
    Floats soft = results<float>(m * k);
    softmax(a, soft, m, k, qpus);
    for (int i = 0; i < m; ++i) {
      double total = 0;
      for (int q = 0; q < k; ++q) total += std::exp(double{a[at(i * k + q)]});
      for (int q = 0; q < k; ++q)
        ASSERT_NEAR(soft[at(i * k + q)] * total / std::exp(double{a[at(i * k + q)]}), 1, 2e-3)
            << m << " x " << k << " on " << qpus;
    }
    expect_behind(soft, m * k, "softmax");
  }
}

TEST_P(QpuKernelSweep, pictures) {
  for (auto [h, w] : {std::pair{3, 3}, {3, 18}, {4, 19}, {19, 35}}) {
    Floats x = floats(h * w), k = floats(9), out = results<float>((h - 2) * (w - 2));
    conv3x3_relu(x, k, out, h, w, qpus);
    for (int i = 0; i < h - 2; ++i)
      for (int j = 0; j < w - 2; ++j) {
        double want = 0;
        for (int a = 0; a < 9; ++a) want += double{k[at(a)]} * x[at((i + a / 3) * w + j + a % 3)];
        ASSERT_NEAR(out[at(i * (w - 2) + j)], std::max(want, 0.0), 1e-5)
            << h << " x " << w << " on " << qpus;
      }
    expect_behind(out, (h - 2) * (w - 2), "the convolution");
  }
  for (auto [w, h] : {std::pair{1, 1}, {15, 2}, {17, 5}, {33, 13}}) {
    constexpr int kMost = 24;
    const float dx = 3.0f / static_cast<float>(w), dy = 2.0f / static_cast<float>(h);
    Ints out = results<int>(w * h);
    mandelbrot(out, w, h, -2, -1, dx, dy, kMost, qpus);
    int differ = 0;
    for (int r = 0; r < h; ++r)
      for (int c = 0; c < w; ++c) {
        float cr = -2 + static_cast<float>(c) * dx, ci = -1 + static_cast<float>(r) * dy, zr = 0,
              zi = 0;
        int count = 0;
        for (; count < kMost && zr * zr + zi * zi <= 4; ++count) {
          float t = zr * zr - zi * zi + cr;
          zi = zr * zi * 2 + ci, zr = t;
        }
        differ += out[at(r * w + c)] != count;  // rounding may move a border point
      }
    ASSERT_LE(differ, 3) << w << " x " << h << " on " << qpus;
    expect_behind(out, w * h, "Mandelbrot");
  }
}

/// One block of SHA-256 from its first state on (FIPS 180-4).
void digest(const unsigned* block, unsigned* out) {
  auto constant = [](int root,
                     int n) {  // first 32 bits of the fractional part of a root of a prime
    int prime = 1;
    for (int found = -1; found < n;) {
      ++prime;
      bool good = true;
      for (int d = 2; d * d <= prime; ++d) good = good && prime % d;
      found += good;
    }
    const long double r = root == 2 ? std::sqrt(static_cast<long double>(prime))
                                    : std::cbrt(static_cast<long double>(prime));
    return static_cast<unsigned>((r - std::floor(r)) * 4294967296.0L);
  };
  unsigned w[64], s[8];
  for (int i = 0; i < 8; ++i) s[i] = out[i] = constant(2, i);
  for (int i = 0; i < 64; ++i) {
    if (i < 16) {
      w[i] = block[i];
    } else {
      const unsigned a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    const unsigned e = s[4], a = s[0];
    const unsigned t = s[7] + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                       ((e & s[5]) ^ (~e & s[6])) + constant(3, i) + w[i];
    const unsigned u = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) +
                       ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    std::copy_backward(s, s + 7, s + 8);
    s[4] += t, s[0] = t + u;
  }
  for (int i = 0; i < 8; ++i) out[i] += s[i];
}

TEST_P(QpuKernelSweep, transforms_digests_and_sorting) {
  for (int n : {1, 2, 3, 15, 16, 17, 37, 64}) {
    Floats re = floats(n), im = floats(n);
    std::vector<double> xr(re.data(), re.data() + n), xi(im.data(), im.data() + n);
    fft(re, im, n, qpus);
    for (int k = 0; k < n; ++k) {
      double wr = 0, wi = 0;
      for (int t = 0; t < n; ++t) {
        const double angle = -2 * std::acos(-1.0) * (double{1} * k * t) / n;
        wr += xr[at(t)] * std::cos(angle) - xi[at(t)] * std::sin(angle);
        wi += xr[at(t)] * std::sin(angle) + xi[at(t)] * std::cos(angle);
      }
      ASSERT_NEAR(re[at(k)], wr, 2e-4) << n << " " << k << " on " << qpus;
      ASSERT_NEAR(im[at(k)], wi, 2e-4) << n << " " << k << " on " << qpus;
    }
  }
  for (int messages : {1, 15, 17}) {
    Words blocks(at(16 * messages)), digests = results<unsigned>(8 * messages);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<unsigned>(rng());
    sha256(blocks, digests, messages, qpus);
    for (int m = 0; m < messages; ++m) {
      unsigned want[8];
      digest(blocks.data() + 16 * m, want);
      for (int i = 0; i < 8; ++i)
        ASSERT_EQ(digests[at(8 * m + i)], want[i]) << m << " of " << messages << " on " << qpus;
    }
    expect_behind(digests, 8 * messages, "SHA-256");
  }
  for (int n : lengths()) {
    const int size = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(n, 16))));
    Ints x = results<int>(n), a(at(size)), b(at(size));
    for (int i = 0; i < n; ++i) x[at(i)] = static_cast<int>(rng());
    std::vector<int> want(x.data(), x.data() + n);
    std::sort(want.begin(), want.end());
    sort(x, a, b, n, qpus);
    for (int i = 0; i < n; ++i) ASSERT_EQ(x[at(i)], want[at(i)]) << n << " on " << qpus;
    expect_behind(x, n, "sort");
  }
}

INSTANTIATE_TEST_SUITE_P(On, QpuKernelSweep, ::testing::Range(1, 13));

}  // namespace
}  // namespace weft::qpu::kernels
