// SPDX-License-Identifier: Apache-2.0
// 16-bit products under every tile of the rule gemm_tensor_core, for a list of shapes: one line of
// numbers for each, from which the rates of rules/gemm_tiles are fitted. Each result is
// compared with that of the first tile.
//   whole_bench [DEVICE [SEED COUNT]]     SEED, COUNT: so many random shapes instead of the list

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "weft/array/device_grid.h"
#include "weft/array/device_whole.h"
#include "weft/array/ops.h"
#include "weft/target/backend.h"

namespace {

using weft::Dims;
using weft::Elem;
using weft::NDArray;
using weft::rules::GemmDecisions;
using Ref = weft::Ref<weft::Device>;

/// Of one call among many; the median of some samples.
double seconds(const Ref& device, const std::function<void()>& work, double expected) {
  const int times = std::clamp(static_cast<int>(600e-6 / expected), 2, 100);
  work();
  std::vector<double> samples;
  for (int s = 0; s < 5; ++s)
    samples.push_back(device
                          ->measure([&] {
                            for (int i = 0; i < times; ++i) work();
                          })
                          .seconds /
                      times);
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

NDArray numbers(const Ref& device, Dims shape) {
  NDArray out = NDArray::empty(device, Elem::float32, std::move(shape));
  std::vector<float> values(static_cast<std::size_t>(out.size()));
  std::uint32_t state = 12345;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
  }
  device->upload(*out.handle(), 0, values.data(), values.size() * 4);
  return out.astype(Elem::bfloat16);
}

struct Case {
  std::int64_t batch, m, n, k;
  bool left_transposed = false, right_transposed = false;
  std::int64_t pad = 0;  // elements between rows
};

NDArray operand(const Ref& device, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                bool transposed, std::int64_t pad) {
  if (transposed) return operand(device, batch, columns, rows, false, pad).transpose(1, 2);
  return numbers(device, Dims{batch, rows, columns + pad}).slice(2, 0, columns, 1);
}

std::vector<float> values(const NDArray& x) {
  const NDArray wide = x.astype(Elem::float32);
  std::vector<float> out(static_cast<std::size_t>(wide.size()));
  wide.device()->download(out.data(), *wide.handle(), 0, out.size() * 4);
  return out;
}
double difference(const std::vector<float>& x, const std::vector<float>& want) {
  double off = 0, all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    off += (static_cast<double>(x[i]) - want[i]) * (static_cast<double>(x[i]) - want[i]);
    all += static_cast<double>(want[i]) * want[i];
  }
  return std::sqrt(off / all);
}

const Case kCases[] = {
    {1, 512, 512, 512},
    {1, 1024, 1024, 1024},
    {1, 1536, 1536, 1536},
    {1, 2048, 2048, 2048},
    {1, 3072, 3072, 3072},
    {1, 4096, 4096, 4096},
    {1, 4096, 4096, 4096, false, false, 8},
    {1, 4096, 4096, 4096, false, false, 16},
    {1, 4096, 4096, 4096, false, false, 32},
    {1, 4096, 4096, 4096, false, false, 64},
    {1, 4096, 4096, 4096, false, true, 8},
    {1, 4000, 4056, 4072},
    {1, 8192, 96, 4096},
    {1, 8192, 160, 4096},
    {1, 8192, 8192, 64},
    {1, 8192, 8192, 128},
    {1, 4096, 8192, 256},
    {1, 1000, 1000, 1000},
    {1, 256, 1024, 784},
    {1, 256, 784, 1024},
    {1, 64, 64, 65536},
    {1, 128, 4096, 4096},
    {1, 64, 8192, 8192},
    {1, 304, 4096, 2048, false, true},
    {1, 2000, 3000, 1000},
    {1, 3000, 5000, 7000},
    {1, 1280, 1280, 5120},
    {1, 640, 2560, 640},
    {1, 6000, 704, 904},
    {1, 7168, 2048, 320},
    {1, 2504, 7000, 504},
    {1, 8192, 1024, 1024, false, true},
    {64, 256, 256, 256},
    {192, 512, 512, 64, false, true},
    {16, 1024, 1024, 128},
    {8, 700, 904, 512},
    {1, 8192, 8192, 8192},
};

std::vector<Case> random_cases(unsigned seed, int count) {
  std::mt19937 rng(seed);
  auto extent = [&] {
    const double u = static_cast<double>(rng() >> 8) / 16777216.0;
    return static_cast<std::int64_t>(256 * std::pow(32.0, u)) / 8 * 8;
  };
  std::vector<Case> out;
  for (int i = 0; i < count; ++i) {
    Case c{1, extent(), extent(), extent()};
    c.right_transposed = i % 2 != 0;
    out.push_back(c);
  }
  return out;
}

/// Residents: blocks that share a processor.
std::vector<std::pair<GemmDecisions, std::int64_t>> forms(std::int64_t processors) {
  std::vector<std::pair<GemmDecisions, std::int64_t>> out;
  for (std::int64_t rows : {128, 64})
    for (std::int64_t columns : {256, 224, 192, 160, 128, 96, 64}) {
      const std::int64_t slots = weft::rules::gemm_slots({}, rows, columns);
      out.push_back({{rows, columns, slots, 1, processors}, 1});
    }
  for (auto [columns, slots, resident] :
       {std::array{160, 3, 2}, {128, 4, 2}, {96, 4, 2}, {64, 5, 2}, {64, 3, 3}})
    out.push_back({{64, columns, slots, 1, processors * resident}, resident});
  return out;
}

void run(const Ref& device, const Case& c) {
  const std::int64_t processors = weft::device::grid_of(device).processors;
  const NDArray a = operand(device, c.batch, c.m, c.k, c.left_transposed, c.pad),
                b = operand(device, c.batch, c.k, c.n, c.right_transposed, c.pad);
  const NDArray out = NDArray::empty(device, Elem::bfloat16, Dims{c.batch, c.m, c.n});
  const std::int64_t steps = (c.k + 63) / 64;
  const double sums = static_cast<double>(c.batch * c.m * c.n * c.k), expected = 4e-6 + sums / 3e14;
  std::vector<float> want;
  auto line = [&](const char* kind, const GemmDecisions& d, std::int64_t resident, double s) {
    std::printf("%s %lld %lld %lld %lld %d%d %lld %lld %lld %lld %lld %lld %.3f\n", kind,
                static_cast<long long>(c.batch), static_cast<long long>(c.m),
                static_cast<long long>(c.n), static_cast<long long>(c.k), c.left_transposed,
                c.right_transposed, static_cast<long long>(c.pad), static_cast<long long>(d.rows),
                static_cast<long long>(d.columns), static_cast<long long>(d.slots),
                static_cast<long long>(d.parts), static_cast<long long>(resident), s * 1e6);
  };
  const bool plain = c.batch == 1 && !c.left_transposed && !c.right_transposed;
  for (const auto& [form, resident] : forms(processors)) {
    if (!plain && form.columns % 64 != 0) continue;
    const std::int64_t tiles =
        c.batch * ((c.m + form.rows - 1) / form.rows) * ((c.n + form.columns - 1) / form.columns);
    for (std::int64_t parts : {1, 2, 3, 4, 6, 8, 11, 16, 32, 64, 132}) {
      if (parts > 1 && (tiles * parts > processors * resident || steps < parts * 2)) break;
      GemmDecisions choice = form;
      choice.parts = parts;
      try {
        const double s = seconds(
            device, [&] { weft::device::whole_product(out, a, b, &choice); }, expected);
        line("form", choice, resident, s);
        if (sums > 4e10 || (parts > 1 && parts != 3)) continue;
        const std::vector<float> got = values(out);
        if (want.empty()) want = got;
        if (const double off = difference(got, want); !(off < 5e-3))
          std::printf("WRONG by %.2e\n", off);
      } catch (const std::exception& e) {
        std::printf("FAILED %lld x %lld: %s\n", static_cast<long long>(form.rows),
                    static_cast<long long>(form.columns), e.what());
      }
    }
  }
  weft::rules::GemmShape shape;
  shape.batches = c.batch, shape.m = c.m, shape.n = c.n, shape.k = c.k, shape.divisible = true;
  shape.b_along_n = !c.right_transposed;
  shape.pitch_a = 2 * (c.pad + (c.left_transposed ? c.m : c.k));
  shape.pitch_b = 2 * (c.pad + (c.right_transposed ? c.k : c.n));
  const auto machine = weft::device::gemm_machine(weft::device::grid_of(device));
  const GemmDecisions own = weft::rules::choose_gemm(machine, shape);
  line("chosen", own, (own.blocks + processors - 1) / processors,
       seconds(
           device, [&] { weft::device::whole_product(out, a, b); }, expected));
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Ref device = weft::open_device(count > 1 ? arguments[1] : "cuda:0");
    std::printf("# kind batch m n k transposed pad rows columns slots parts resident us\n");
    if (count > 3) {
      for (const Case& c :
           random_cases(static_cast<unsigned>(std::atoi(arguments[2])), std::atoi(arguments[3])))
        run(device, c);
      return 0;
    }
    for (const Case& c : kCases) {
      try {
        run(device, c);
      } catch (const std::exception& e) {
        std::printf("FAILED %s\n", e.what());
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
