// SPDX-License-Identifier: Apache-2.0
// Every form of the kernel of whole 16-bit products (array/device_whole_kernel.h) for a list of
// shapes and parts, beside what the choice by expected time takes:
//   whole_bench [DEVICE]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
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

/// Of one call among many; the smallest of some samples.
double seconds(const Ref& device, const std::function<void()>& work) {
  constexpr int kTimes = 40;
  double least = 1;
  work();
  for (int s = 0; s < 5; ++s) {
    least = std::min(least, device->measure([&] {
                                    for (int i = 0; i < kTimes; ++i) work();
                                  }).seconds /
                                kTimes);
  }
  return least;
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
  bool left_transposed, right_transposed;
};

NDArray operand(const Ref& device, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                bool transposed) {
  return transposed ? numbers(device, Dims{batch, columns, rows}).transpose(1, 2)
                    : numbers(device, Dims{batch, rows, columns});
}

void products(const Ref& device) {
  struct Form {
    int groups, columns, stages, resident;
  };
  const Form forms[] = {{2, 256, 4, 1}, {2, 128, 6, 1}, {1, 256, 5, 1}, {2, 64, 6, 1},
                        {1, 128, 6, 1}, {1, 64, 8, 1},  {1, 256, 2, 2}, {1, 128, 3, 2},
                        {1, 64, 5, 2},  {1, 64, 3, 3},  {1, 128, 2, 3}, {1, 64, 2, 4}};
  const std::int64_t processors = weft::device::grid_of(device).processors;
  for (const Case& c :
       {Case{1, 512, 512, 512, false, false}, Case{1, 1024, 1024, 1024, false, false},
        Case{1, 1000, 1001, 999, false, false}, Case{1, 256, 1024, 784, false, false},
        Case{1, 784, 1024, 256, true, false}, Case{1, 64, 64, 65536, false, false},
        Case{64, 256, 256, 256, false, false}, Case{192, 512, 512, 64, false, true},
        Case{1, 8192, 1024, 1024, false, true}, Case{1, 2048, 2048, 2048, false, false}}) {
    const NDArray a = operand(device, c.batch, c.m, c.k, c.left_transposed),
                  b = operand(device, c.batch, c.k, c.n, c.right_transposed);
    const NDArray out = NDArray::empty(device, Elem::bfloat16, Dims{c.batch, c.m, c.n});
    const std::int64_t steps = (c.k + 63) / 64;
    const GemmDecisions own = weft::rules::choose_gemm(processors, c.batch, c.m, c.n, steps, true);
    const double chosen = seconds(device, [&] { weft::device::whole_product(out, a, b); });
    std::printf("%lld of %lldx%lldx%lld: %.2f us by %lld x %lld, %lld slots, %lld parts\n",
                static_cast<long long>(c.batch), static_cast<long long>(c.m),
                static_cast<long long>(c.n), static_cast<long long>(c.k), chosen * 1e6,
                static_cast<long long>(own.rows), static_cast<long long>(own.columns),
                static_cast<long long>(own.slots), static_cast<long long>(own.parts));
    std::vector<std::pair<double, std::string>> results;
    for (const Form& f : forms) {
      const std::int64_t tiles = c.batch * ((c.m + 64 * f.groups - 1) / (64 * f.groups)) *
                                 ((c.n + f.columns - 1) / f.columns);
      for (std::int64_t parts = 1; parts <= 132 && steps >= parts;
           parts = parts < 8 ? parts + 1 : parts * 2) {
        if (parts > 1 && tiles * parts > 3 * processors) break;
        const GemmDecisions choice{64 * f.groups, f.columns, f.stages, parts,
                                   processors * f.resident};
        const double s = seconds(device, [&] { weft::device::whole_product(out, a, b, &choice); });
        char line[120];
        std::snprintf(line, sizeof line, "%.2f us %d x %d, %d stages, %lld parts, %d resident",
                      s * 1e6, f.groups, f.columns, f.stages, static_cast<long long>(parts),
                      f.resident);
        results.emplace_back(s, line);
      }
    }
    std::sort(results.begin(), results.end());
    for (std::size_t i = 0; i < std::min<std::size_t>(8, results.size()); ++i)
      std::printf("    %s\n", results[i].second.c_str());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    products(weft::open_device(count > 1 ? arguments[1] : "cuda:0"));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
