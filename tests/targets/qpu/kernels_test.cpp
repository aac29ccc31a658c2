// SPDX-License-Identifier: Apache-2.0
// The kernel library against plain loops, at odd sizes and numbers of QPUs, on a device that stops
// at any access outside an array and at any race.

#include "weft/targets/qpu/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace weft::qpu::kernels {
namespace {

Floats random_floats(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(-1, 1);
  Floats f(n);
  for (std::size_t i = 0; i < n; ++i) f[i] = d(rng);
  return f;
}

void expect_clean() {
  for (const weft::qpu::Note& n : takeNotes())
    ADD_FAILURE() << n.code << " " << n.message << " " << n.source;
}

TEST(QpuKernels, gemv) {
  for (auto [rows, cols] :
       {std::pair{1, 1}, {3, 15}, {8, 16}, {17, 33}, {100, 100}, {9, 1000}, {33, 257}, {1, 5000}}) {
    for (int qpus : {1, 5, 12}) {
      Floats a = random_floats(static_cast<std::size_t>(rows * cols), 1),
             x = random_floats(static_cast<std::size_t>(cols), 2),
             y(static_cast<std::size_t>(rows)),
             s(static_cast<std::size_t>((rows + 15) / 16 * 16 * qpus));
      gemv(a, x, y, s, rows, cols, qpus);
      for (int r = 0; r < rows; ++r) {
        double want = 0;
        for (int c = 0; c < cols; ++c)
          want += static_cast<double>(a[static_cast<std::size_t>(r * cols + c)]) *
                  x[static_cast<std::size_t>(c)];
        ASSERT_NEAR(y[static_cast<std::size_t>(r)], want, 1e-5 * std::sqrt(cols) + 2e-6 * cols)
            << rows << " x " << cols << " on " << qpus << " row " << r;
      }
      expect_clean();
    }
  }
}

TEST(QpuKernels, gemm) {
  for (auto [m, n, k] : {std::tuple{1, 1, 1},
                         {8, 16, 16},
                         {9, 17, 18},
                         {20, 40, 33},
                         {33, 5, 64},
                         {64, 64, 64},
                         {7, 16, 0}}) {
    for (int qpus : {1, 7, 12}) {
      Floats a = random_floats(static_cast<std::size_t>(m * k), 3),
             b = random_floats(static_cast<std::size_t>(k * n), 4),
             c(static_cast<std::size_t>(m * n));
      gemm(a, b, c, m, n, k, qpus);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          double want = 0;
          for (int q = 0; q < k; ++q)
            want += static_cast<double>(a[static_cast<std::size_t>(i * k + q)]) *
                    b[static_cast<std::size_t>(q * n + j)];
          ASSERT_NEAR(c[static_cast<std::size_t>(i * n + j)], want, 1e-5 + 1e-6 * k)
              << m << " " << n << " " << k << " on " << qpus;
        }
      }
      expect_clean();
    }
  }
}

const int kLengths[] = {0, 1, 15, 16, 17, 100, 191, 192, 193, 1000};

TEST(QpuKernels, elementwise_at_any_length) {
  for (int n : kLengths) {
    for (int qpus : {1, 3, 12}) {
      auto size = static_cast<std::size_t>(n);
      Floats x = random_floats(size, 5), y = random_floats(size, 6), out(size + 16);
      for (int which = 0; which < 3; ++which) {
        for (std::size_t i = 0; i < size + 16; ++i) out[i] = -7;
        if (which == 0) add(x, y, out, n, qpus);
        else if (which == 1) mul(x, y, out, n, qpus);
        else saxpy(1.5f, x, y, out, n, qpus);
        for (std::size_t i = 0; i < size; ++i) {
          float want = which == 0 ? x[i] + y[i] : which == 1 ? x[i] * y[i] : 1.5f * x[i] + y[i];
          ASSERT_NEAR(out[i], want, 4e-7f) << which << " " << n << " on " << qpus;
        }
        for (std::size_t i = size; i < size + 16; ++i)
          ASSERT_EQ(out[i], -7) << "written past the end: " << n << " on " << qpus;
      }
      expect_clean();
    }
  }
}

TEST(QpuKernels, reductions) {
  for (int n : kLengths) {
    for (int qpus : {1, 4, 12}) {
      auto size = static_cast<std::size_t>(n);
      Floats x = random_floats(size, 7), y = random_floats(size, 8), out(16 * 13);
      double d = 0, s = 0;
      for (std::size_t i = 0; i < size; ++i) d += static_cast<double>(x[i]) * y[i], s += x[i];
      dot(x, y, out, n, qpus);
      ASSERT_NEAR(out[0], d, 1e-4) << n;
      sum(x, out, n, qpus);
      ASSERT_NEAR(out[0], s, 1e-4) << n;
      expect_clean();
    }
  }
}

TEST(QpuKernels, window_sum) {
  for (auto [n, w] : {std::pair{1, 1}, {20, 3}, {100, 100}, {333, 7}}) {
    for (int qpus : {1, 12}) {
      Floats x = random_floats(static_cast<std::size_t>(n), 9), out(static_cast<std::size_t>(n));
      window_sum(x, out, n, w, qpus);
      for (int i = 0; i + w <= n; ++i) {
        double want = 0;
        for (int k = 0; k < w; ++k) want += x[static_cast<std::size_t>(i + k)];
        ASSERT_NEAR(out[static_cast<std::size_t>(i)], want, 1e-4);
      }
      expect_clean();
    }
  }
}

TEST(QpuKernels, softmax) {
  for (auto [rows, cols] : {std::pair{1, 1}, {5, 17}, {13, 100}}) {
    Floats x = random_floats(static_cast<std::size_t>(rows * cols), 10),
           out(static_cast<std::size_t>(rows * cols));
    softmax(x, out, rows, cols, 5);
    for (int r = 0; r < rows; ++r) {
      double total = 0;
      for (int c = 0; c < cols; ++c) total += std::exp(x[static_cast<std::size_t>(r * cols + c)]);
      for (int c = 0; c < cols; ++c) {
        double want = std::exp(x[static_cast<std::size_t>(r * cols + c)]) / total;
        ASSERT_NEAR(out[static_cast<std::size_t>(r * cols + c)] / want, 1, 2e-3);
      }
    }
    expect_clean();
  }
}

TEST(QpuKernels, convolution) {
  for (auto [h, w] : {std::pair{3, 3}, {5, 18}, {9, 35}, {20, 64}}) {
    Floats x = random_floats(static_cast<std::size_t>(h * w), 11), k = random_floats(9, 12),
           out(static_cast<std::size_t>((h - 2) * (w - 2)));
    conv3x3_relu(x, k, out, h, w, 7);
    for (int i = 0; i < h - 2; ++i) {
      for (int j = 0; j < w - 2; ++j) {
        double want = 0;
        for (int a = 0; a < 9; ++a)
          want += static_cast<double>(k[static_cast<std::size_t>(a)]) *
                  x[static_cast<std::size_t>((i + a / 3) * w + j + a % 3)];
        ASSERT_NEAR(out[static_cast<std::size_t>(i * (w - 2) + j)], std::max(want, 0.0), 1e-5);
      }
    }
    expect_clean();
  }
}

TEST(QpuKernels, mandelbrot) {
  constexpr int kWidth = 37, kHeight = 20, kMost = 50;
  Ints out(kWidth * kHeight);
  mandelbrot(out, kWidth, kHeight, -2.0f, -1.0f, 3.0f / kWidth, 2.0f / kHeight, kMost, 12);
  int differ = 0;
  for (int r = 0; r < kHeight; ++r) {
    for (int c = 0; c < kWidth; ++c) {
      float cr = -2.0f + static_cast<float>(c) * (3.0f / kWidth),
            ci = -1.0f + static_cast<float>(r) * (2.0f / kHeight), zr = 0, zi = 0;
      int count = 0;
      for (; count < kMost && zr * zr + zi * zi <= 4; ++count) {
        float t = zr * zr - zi * zi + cr;
        zi = zr * zi * 2 + ci, zr = t;
      }
      differ += out[static_cast<std::size_t>(r * kWidth + c)] !=
                count;  // rounding may move a border point
    }
  }
  EXPECT_LE(differ, 5);
  expect_clean();
}

TEST(QpuKernels, wrong_sizes_are_refused) {
  Floats x(10), y(10), out(9);
  auto code = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.code();
    }
    return "accepted";
  };
  EXPECT_EQ(code([&] { add(x, y, out, 10); }), "qpu.kernel.size");
  EXPECT_EQ(code([&] { add(x, y, out, -1); }), "qpu.kernel.extent");
  EXPECT_EQ(code([&] { add(x, y, out, 9, 13); }), "qpu.launch.qpus");
  EXPECT_EQ(code([&] { window_sum(x, out, 10, 11); }), "qpu.kernel.extent");
  EXPECT_EQ(code([&] { add(x, y, out, 9); }), "accepted");
}

TEST(QpuKernels, fft) {
  for (int n : {16, 32, 256, 1024}) {
    auto size = static_cast<std::size_t>(n);
    Floats re = random_floats(size, 13), im = random_floats(size, 14), sr(size), si(size),
           c(size / 2), s(size / 2);
    std::vector<double> xr(re.data(), re.data() + n), xi(im.data(), im.data() + n);
    const double tau = 2 * std::acos(-1.0);
    for (std::size_t k = 0; k < size / 2; ++k)
      c[k] = static_cast<float>(std::cos(tau * static_cast<double>(k) / n)),
      s[k] = static_cast<float>(-std::sin(tau * static_cast<double>(k) / n));
    fft(re, im, sr, si, c, s, n, 5);
    for (int k = 0; k < n; ++k) {
      double wr = 0, wi = 0;
      for (int t = 0; t < n; ++t) {
        double angle = -tau * k * t / n, cr = std::cos(angle), ci = std::sin(angle);
        wr += xr[static_cast<std::size_t>(t)] * cr - xi[static_cast<std::size_t>(t)] * ci;
        wi += xr[static_cast<std::size_t>(t)] * ci + xi[static_cast<std::size_t>(t)] * cr;
      }
      ASSERT_NEAR(re[static_cast<std::size_t>(k)], wr, 2e-5 * std::sqrt(n) * 4) << n << " " << k;
      ASSERT_NEAR(im[static_cast<std::size_t>(k)], wi, 2e-5 * std::sqrt(n) * 4) << n << " " << k;
    }
    expect_clean();
  }
}

TEST(QpuKernels, fft_of_any_length) {
  for (auto [n, qpus] : {std::pair{1, 1}, {2, 3}, {5, 12}, {15, 2}, {16, 1}, {17, 12}, {100, 7}}) {
    auto size = static_cast<std::size_t>(n);
    Floats re = random_floats(size, 23), im = random_floats(size, 24);
    std::vector<double> xr(re.data(), re.data() + n), xi(im.data(), im.data() + n);
    fft(re, im, n, qpus);
    const double tau = 2 * std::acos(-1.0);
    for (int k = 0; k < n; ++k) {
      double wr = 0, wi = 0;
      for (int t = 0; t < n; ++t) {
        double angle = -tau * (static_cast<double>(k) * t) / n;
        auto at = static_cast<std::size_t>(t);
        wr += xr[at] * std::cos(angle) - xi[at] * std::sin(angle);
        wi += xr[at] * std::sin(angle) + xi[at] * std::cos(angle);
      }
      ASSERT_NEAR(re[static_cast<std::size_t>(k)], wr, 2e-4) << n << " " << k;
      ASSERT_NEAR(im[static_cast<std::size_t>(k)], wi, 2e-4) << n << " " << k;
    }
    expect_clean();
  }
}

TEST(QpuKernels, semaphore_barrier_on_every_number_of_qpus) {
  for (int qpus = 1; qpus <= 12; ++qpus) {
    auto words = static_cast<std::size_t>(16 * qpus);
    Ints slots(words), sums(words);
    barrier_rounds(slots, sums, 5, qpus);
    for (std::size_t i = 0; i < words; ++i) ASSERT_EQ(sums[i], qpus * 15) << qpus;
    expect_clean();
  }
}

TEST(QpuKernels, every_kernel_on_every_number_of_qpus) {
  for (int qpus = 1; qpus <= 12; ++qpus) {
    const int n = 17 * qpus + 5, rows = 19, cols = 33;
    auto size = static_cast<std::size_t>(n);
    Floats x = random_floats(size, 31), y = random_floats(size, 32), out(size), parts(16 * 13);
    saxpy(2, x, y, out, n, qpus);
    double d = 0;
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_NEAR(out[i], 2 * x[i] + y[i], 1e-6) << qpus;
      d += static_cast<double>(x[i]) * y[i];
    }
    dot(x, y, parts, n, qpus);
    ASSERT_NEAR(parts[0], d, 1e-4) << qpus;
    Floats a = random_floats(rows * cols, 33), v = random_floats(cols, 34), w(rows),
           scratch(32 * static_cast<std::size_t>(qpus)), b = random_floats(cols * 7, 35),
           c(rows * 7);
    gemv(a, v, w, scratch, rows, cols, qpus);
    gemm(a, b, c, rows, 7, cols, qpus);
    Floats soft(rows * cols);
    softmax(a, soft, rows, cols, qpus);
    for (std::size_t r = 0; r < rows; ++r) {
      double dot_row = 0, first = 0, total = 0;
      for (std::size_t k = 0; k < cols; ++k) {
        dot_row += static_cast<double>(a[r * cols + k]) * v[k];
        first += static_cast<double>(a[r * cols + k]) * b[k * 7];
        total += soft[r * cols + k];
      }
      ASSERT_NEAR(w[r], dot_row, 1e-4) << qpus;
      ASSERT_NEAR(c[r * 7], first, 1e-4) << qpus;
      ASSERT_NEAR(total, 1, 1e-3) << qpus;
    }
    expect_clean();
  }
}

TEST(QpuKernels, sha256_of_known_messages) {
  // "abc" and the empty message, padded; digests of FIPS 180-4.
  for (int messages : {1, 2, 17, 40}) {
    auto count = static_cast<std::size_t>(messages);
    Words blocks(count * 16), digests(count * 8 + 16);
    for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = 0xdeadbeef;
    for (std::size_t m = 0; m < count; ++m) {
      blocks[m * 16] = m % 2 ? 0x80000000u : 0x61626380u;
      blocks[m * 16 + 15] = m % 2 ? 0 : 24;
    }
    sha256(blocks, digests, messages, 3);
    const unsigned abc[8] = {0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                             0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad};
    const unsigned empty[8] = {0xe3b0c442, 0x98fc1c14, 0x9afbf4c8, 0x996fb924,
                               0x27ae41e4, 0x649b934c, 0xa495991b, 0x7852b855};
    for (std::size_t m = 0; m < count; ++m)
      for (std::size_t i = 0; i < 8; ++i)
        ASSERT_EQ(digests[m * 8 + i], (m % 2 ? empty : abc)[i]) << m << " " << i;
    for (std::size_t i = count * 8; i < digests.size(); ++i) ASSERT_EQ(digests[i], 0xdeadbeef);
    expect_clean();
  }
}

TEST(QpuKernels, sort) {
  std::mt19937 rng(15);
  for (int n : {0, 1, 15, 17, 100, 512}) {
    auto count = static_cast<std::size_t>(n);
    std::size_t size = 16;
    while (size < count) size *= 2;
    Ints x(count), a(size), b(size);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<int>(rng());
    std::vector<int> want(x.data(), x.data() + n);
    std::sort(want.begin(), want.end());
    sort(x, a, b, n, 7);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(x[i], want[i]) << n;
    expect_clean();
  }
}

}  // namespace
}  // namespace weft::qpu::kernels
