// SPDX-License-Identifier: Apache-2.0
// Clocks and checksums of the kernel library on the emulator, one line a kernel. The same text must
// come out on every processor that weft is built for: tools/check_arm compares.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>

#include "weft/targets/qpu/kernels/kernels.h"

namespace {
using namespace weft::qpu;
using namespace weft::qpu::kernels;

Floats floats(int n, unsigned seed) {
  std::mt19937 rng(seed);
  Floats f(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < f.size(); ++i)
    f[i] = static_cast<float>(static_cast<std::int32_t>(rng()) >> 8) / 8388608.0f;
  return f;
}

template <typename T>
Ints ints(int n, unsigned seed, T make) {
  std::mt19937 rng(seed);
  Ints f(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < f.size(); ++i) f[i] = make(rng());
  return f;
}

template <typename A>
std::uint64_t checksum(const A& a) {
  std::uint64_t sum = 1469598103934665603u;  // FNV-1a over words
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, a.data() + i, 4);
    sum = (sum ^ bits) * 1099511628211u;
  }
  return sum;
}

template <typename A>
void line(const char* name, int qpus, std::int64_t cycles, const A& result) {
  std::printf("%-12s %2d QPUs %9lld clocks  %016llx\n", name, qpus, static_cast<long long>(cycles),
              static_cast<unsigned long long>(checksum(result)));
}

}  // namespace

int main() {
  try {
    for (int q : {1, 5, 12}) {
      constexpr int n = 1000;
      Floats x = floats(n, 1), y = floats(n, 2), out(n), parts(16 * 13);
      line("add", q, add(x, y, out, n, q), out);
      line("mul", q, mul(x, y, out, n, q), out);
      line("saxpy", q, saxpy(1.5f, x, y, out, n, q), out);
      line("dot", q, dot(x, y, parts, n, q), parts);
      line("sum", q, sum(x, parts, n, q), parts);
      line("window_sum", q, window_sum(x, out, n, 7, q), out);
      line("softmax", q, softmax(x, out, 8, 125, q), out);
      Floats a = floats(33 * 65, 3), v = floats(65, 4), w(33),
             scratch(48 * static_cast<std::size_t>(q)), b = floats(65 * 20, 5), c(33 * 20);
      line("gemv", q, gemv(a, v, w, scratch, 33, 65, q), w);
      line("gemm", q, gemm(a, b, c, 33, 20, 65, q), c);
      Floats weights = floats(9, 6), image = floats(20 * 37, 7), convolved(18 * 35);
      line("conv3x3", q, conv3x3_relu(image, weights, convolved, 20, 37, q), convolved);
      Ints fractal(37 * 20);
      line("mandelbrot", q, mandelbrot(fractal, 37, 20, -2, -1, 0.08f, 0.1f, 40, q), fractal);
      Floats re = floats(128, 8), im = floats(128, 9);
      line("fft", q, fft(re, im, 128, q), re);
      Words blocks(17 * 16), digests(17 * 8);
      std::mt19937 rng(10);
      for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<unsigned>(rng());
      line("sha256", q, sha256(blocks, digests, 17, q), digests);
      Ints keys = ints(200, 11, [](auto r) { return static_cast<int>(r); }), sa(256), sb(256);
      line("sort", q, sort(keys, sa, sb, 200, q), keys);
      Ints slots(16 * static_cast<std::size_t>(q)), sums(16 * static_cast<std::size_t>(q));
      line("barrier", q, barrier_rounds(slots, sums, 5, q), sums);
    }
  } catch (const weft::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
