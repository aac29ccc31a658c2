// SPDX-License-Identifier: Apache-2.0
// Cycles of the hand-written kernels that bench/machines/quality.py compares default schedules
// with: one line of JSON with a number for each argument ("qpu gemv 100 4096"), exact, the same in
// every run.

#include <array>
#include <cstdio>
#include <sstream>
#include <string>

#include "weft/targets/qpu/kernels/kernels.h"
#include "weft/targets/vta/execute.h"
#include "weft/targets/vta/schedules.h"
#include "weft/targets/vta/timing.h"

namespace {

using Sizes = std::array<int, 6>;

/// -1: there is no such kernel.
std::int64_t qpu_cycles(const std::string& what, const Sizes& s) {
  using namespace weft::qpu::kernels;
  auto floats = [](std::int64_t n) { return Floats(static_cast<std::size_t>(n)); };
  const int m = s[0], n = s[1], k = s[2];
  if (what == "gemv")
    return gemv(floats(m * n), floats(n), floats(m), floats(12 * ((m + 15) / 16 * 16)), m, n);
  if (what == "gemm") return gemm(floats(m * k), floats(k * n), floats(m * n), m, n, k);
  if (what == "conv")
    return conv3x3_relu(floats(m * n), floats(9), floats((m - 2) * (n - 2)), m, n);
  if (what == "window") return window_sum(floats(m), floats(m), m, n);
  if (what == "reduction") return sum(floats(m), floats(16 * 13), m);
  if (what == "softmax") return softmax(floats(m * n), floats(m * n), m, n);
  return -1;
}

/// gemm: rows, columns, depth; conv: image, channels in and out, kernel, stride.
std::int64_t vta_cycles(const std::string& what, const Sizes& s) {
  using namespace weft::vta;
  const Config config;
  const int block = 16;
  auto cycles = [&](const Program& p) {
    return estimate(Prepared(p.kernels[0].stream), config, TimingParams{}).cycles;
  };
  Epilogue e{8, what == "conv", true, 0, 127};
  if (what == "gemm") {
    MatmulShape shape;
    shape.o = s[0], shape.m = s[1] / block, shape.n = s[2] / block;
    return cycles(matmul(config, shape, default_tiles(config, shape, e), e));
  }
  if (what != "conv") return -1;
  ConvShape shape;
  shape.h = shape.w = s[0], shape.ci = s[1] / block, shape.co = s[2] / block;
  shape.kernel = s[3], shape.stride = s[4], shape.pad = s[3] / 2;
  return cycles(conv2d(config, shape, default_tiles(config, shape, e), e));
}

}  // namespace

int main(int count, char** rows) {
  for (int i = 1; i < count; ++i) {
    std::istringstream row(rows[i]);
    std::string machine, what;
    Sizes sizes{};
    row >> machine >> what;
    for (int& n : sizes) row >> n;
    const std::int64_t cycles =
        machine == "qpu" ? qpu_cycles(what, sizes) : vta_cycles(what, sizes);
    std::printf("%s\"%s\": %lld", i == 1 ? "{" : ", ", rows[i], static_cast<long long>(cycles));
  }
  std::puts(count > 1 ? "}" : "{}");
}
