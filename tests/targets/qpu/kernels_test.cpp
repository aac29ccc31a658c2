// SPDX-License-Identifier: Apache-2.0
// The kernel library against plain loops, at odd sizes and numbers of QPUs, on a device that stops at any
// access outside an array and at any race.

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
  for (const Note& n : takeNotes()) ADD_FAILURE() << n.code << " " << n.message << " " << n.source;
}

TEST(QpuKernels, gemv) {
  for (auto [rows, cols] : {std::pair{1, 1}, {3, 15}, {8, 16}, {17, 33}, {100, 100}, {9, 1000}, {33, 257}, {1, 5000}}) {
    for (int qpus : {1, 5, 12}) {
      Floats a = random_floats(static_cast<std::size_t>(rows * cols), 1), x = random_floats(static_cast<std::size_t>(cols), 2), y(static_cast<std::size_t>(rows)), s(static_cast<std::size_t>((rows + 15) / 16 * 16 * qpus));
      gemv(a, x, y, s, rows, cols, qpus);
      for (int r = 0; r < rows; ++r) {
        double want = 0;
        for (int c = 0; c < cols; ++c) want += static_cast<double>(a[static_cast<std::size_t>(r * cols + c)]) * x[static_cast<std::size_t>(c)];
        ASSERT_NEAR(y[static_cast<std::size_t>(r)], want, 1e-5 * std::sqrt(cols) + 2e-6 * cols) << rows << " x " << cols << " on " << qpus << " row " << r;
      }
      expect_clean();
    }
  }
}

TEST(QpuKernels, gemm) {
  for (auto [m, n, k] : {std::tuple{1, 1, 1}, {8, 16, 16}, {9, 17, 18}, {20, 40, 33}, {33, 5, 64}, {64, 64, 64}, {7, 16, 0}}) {
    for (int qpus : {1, 7, 12}) {
      Floats a = random_floats(static_cast<std::size_t>(m * k), 3), b = random_floats(static_cast<std::size_t>(k * n), 4), c(static_cast<std::size_t>(m * n));
      gemm(a, b, c, m, n, k, qpus);
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          double want = 0;
          for (int q = 0; q < k; ++q) want += static_cast<double>(a[static_cast<std::size_t>(i * k + q)]) * b[static_cast<std::size_t>(q * n + j)];
          ASSERT_NEAR(c[static_cast<std::size_t>(i * n + j)], want, 1e-5 + 1e-6 * k) << m << " " << n << " " << k << " on " << qpus;
        }
      }
      expect_clean();
    }
  }
}

}  // namespace
}  // namespace weft::qpu::kernels
