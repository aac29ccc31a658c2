// SPDX-License-Identifier: Apache-2.0
// Cycles of the hand-written kernels that bench/machines.py compares default schedules with: one
// line of JSON, exact, the same in every run.

#include <cstdio>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/targets/qpu/kernels/kernels.h"
#include "weft/targets/vta/execute.h"
#include "weft/targets/vta/schedules.h"
#include "weft/targets/vta/timing.h"

namespace {

bool first = true;
void row(const std::string& name, std::int64_t cycles) {
  std::printf("%s\"%s\": %lld", first ? "{" : ", ", name.c_str(), static_cast<long long>(cycles));
  first = false;
}

void qpu_rows() {
  using namespace weft::qpu::kernels;
  auto floats = [](std::int64_t n) { return Floats(static_cast<std::size_t>(n)); };
  for (auto [rows, cols] : {std::pair{100, 4096}, {64, 1000}}) {
    Floats a = floats(rows * cols), x = floats(cols), y = floats(rows),
           s = floats(12 * ((rows + 15) / 16 * 16));
    row("qpu gemv " + std::to_string(rows) + " " + std::to_string(cols),
        gemv(a, x, y, s, rows, cols));
  }
  for (auto [m, n, k] : {std::tuple{512, 512, 512}, {256, 256, 256}, {128, 96, 200}}) {
    Floats a = floats(m * k), b = floats(k * n), c = floats(m * n);
    row("qpu gemm " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k),
        gemm(a, b, c, m, n, k));
  }
  {
    Floats x = floats(130 * 130), w = floats(9), y = floats(128 * 128);
    row("qpu conv 130 130", conv3x3_relu(x, w, y, 130, 130));
  }
  {
    Floats x = floats(65536), y = floats(65536);
    row("qpu window 65536 9", window_sum(x, y, 65536, 9));
    row("qpu reduction 65536", sum(x, y, 65536));
  }
  for (auto [rows, cols] : {std::pair{64, 512}, {96, 1000}}) {
    Floats x = floats(rows * cols), y = floats(rows * cols);
    row("qpu softmax " + std::to_string(rows) + " " + std::to_string(cols),
        softmax(x, y, rows, cols));
  }
}

void vta_rows() {
  using namespace weft::vta;
  const Config config;
  auto cycles = [&](const Program& p) {
    return estimate(Prepared(p.kernels[0].stream), config, TimingParams{}).cycles;
  };
  Epilogue e{8, false, true, 0, 127};
  for (auto [m, n, k] : {std::tuple{1, 1024, 1024}, {256, 256, 256}, {512, 512, 512}}) {
    MatmulShape s;
    s.o = m, s.m = n / 16, s.n = k / 16;
    row("vta gemm " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k),
        cycles(matmul(config, s, default_tiles(config, s, e), e)));
  }
  e.bias = true;
  for (const ResnetLayer& layer : resnet18_layers()) {
    const ConvShape s = shape_of(layer, config);
    row(std::string("vta conv ") + layer.name,
        cycles(conv2d(config, s, default_tiles(config, s, e), e)));
  }
}

}  // namespace

int main() {
  qpu_rows();
  vta_rows();
  std::puts("}");
}
