// SPDX-License-Identifier: Apache-2.0
// Every tile of matrix products on a device with a grid, for a list of shapes and parts, each
// beside what the choice by expected time takes and checked against it:
//   tile_bench [DEVICE] [--small] [--tiles 0,7,8] [--shapes 3] [--list FILE] [--all]
// --tiles: these tiles alone; --shapes: so many of the list; --list: other shapes, lines such as "1
// 4096 768 768 NT" (of transposed operands); --all: every timing, not the best twelve;
// --small times a small addition instead: the whole operation, and its launch and its result's
// storage by themselves.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "weft/devices/grid.h"
#include "weft/rules/product_choice.h"
#include "weft/target/backend.h"

namespace {

using weft::Dims;
using weft::Elem;
using weft::NDArray;
using Ref = weft::Ref<weft::Device>;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

double seconds(const Ref& device, const std::function<void()>& work, int times) {
  work();
  std::vector<double> samples;
  for (int s = 0; s < 5; ++s) {
    samples.push_back(device
                          ->measure([&] {
                            for (int i = 0; i < times; ++i) work();
                          })
                          .seconds /
                      times);
  }
  return median(samples);
}

NDArray numbers(const Ref& device, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  std::uint32_t state = 12345;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
  }
  NDArray out = NDArray::empty(device, Elem::float32, Dims{rows, columns});
  device->upload(*out.handle(), 0, values.data(), values.size() * 4);
  return out;
}

struct Case {
  std::int64_t batch, m, n, k;
  bool left_transposed, right_transposed;
};

/// batch x rows x columns.
NDArray operand(const Ref& device, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                bool transposed) {
  NDArray x = numbers(device, batch * (transposed ? columns : rows), transposed ? rows : columns);
  return transposed ? x.reshape(Dims{batch, columns, rows}).transpose(1, 2)
                    : x.reshape(Dims{batch, rows, columns});
}

struct Result {
  double seconds;
  std::string text;
};

const std::vector<Case> kCases = {
    {1, 2048, 2048, 2048, false, false}, {1, 256, 1024, 784, false, false},
    {1, 1000, 1001, 999, false, false},  {1, 2048, 2048, 2048, false, true},
    {1, 2048, 2048, 2048, true, false},  {1, 100000, 64, 64, false, false},
    {1, 4096, 4096, 4096, false, false}, {1, 256, 256, 256, false, false},
    {1, 512, 512, 512, false, false},    {1, 1024, 1024, 1024, false, false},
    {64, 256, 256, 256, false, false},   {1, 1024, 1024, 1024, false, true},
    {1, 1024, 1024, 1024, true, false},  {1, 1024, 784, 256, true, false},
    {1, 64, 64, 100000, false, false}};

std::vector<Case> cases_of(const std::string& file) {
  std::ifstream in(file);
  std::vector<Case> out;
  Case c{};
  std::string layout;
  while (in >> c.batch >> c.m >> c.n >> c.k >> layout) {
    c.left_transposed = layout.at(0) == 'T', c.right_transposed = layout.at(1) == 'T';
    out.push_back(c);
  }
  return out;
}

void products(const Ref& device, const std::vector<Case>& cases,
              const std::vector<std::size_t>& only, std::size_t shapes, std::size_t shown) {
  const weft::device::Grid& grid = weft::device::grid_of(device);
  auto all = weft::rules::rated_tiles(4);
  for (const Case& c : cases) {
    if (shapes-- == 0) break;
    const NDArray a = operand(device, c.batch, c.m, c.k, c.left_transposed),
                  b = operand(device, c.batch, c.k, c.n, c.right_transposed);
    weft::device::Contraction t;
    t.batch = Dims{c.batch}, t.m = Dims{c.m}, t.n = Dims{c.n}, t.k = Dims{c.k};
    t.a = {Dims{a.strides()[0]}, Dims{a.strides()[1]}, Dims{a.strides()[2]}};
    t.b = {Dims{b.strides()[0]}, Dims{b.strides()[1]}, Dims{b.strides()[2]}};
    t.out = {Dims{c.m * c.n}, Dims{c.n}, Dims{1}};
    const double flops = 2.0 * static_cast<double>(c.batch * c.m * c.n) * static_cast<double>(c.k);
    const int times = flops > 2e10 ? 3 : 30;
    using weft::rules::TileReads;
    const int vectors = c.m % 4 || c.n % 4 ? 0 : c.left_transposed + !c.right_transposed;
    const auto reads = !c.left_transposed && c.right_transposed ? TileReads::along_sum
                                                                : static_cast<TileReads>(vectors);
    const auto chosen = weft::rules::choose_tile(grid, 4, {c.batch, c.m, c.n, c.k}, reads);
    const NDArray want = NDArray::empty(device, Elem::float32, Dims{c.batch, c.m, c.n}),
                  out = NDArray::empty(device, Elem::float32, Dims{c.batch, c.m, c.n});
    weft::device::grid_contract(want, a, b, t);
    std::vector<float> expected(static_cast<std::size_t>(want.size())), got(expected.size());
    device->download(expected.data(), *want.handle(), 0, expected.size() * 4);
    const double own = seconds(
        device, [&] { weft::device::grid_contract(want, a, b, t); }, times);
    std::printf("%lld of %lldx%lldx%lld %c%c chosen tile %zu x %lld parts: %.1f us %.2f TFLOP/s\n",
                static_cast<long long>(c.batch), static_cast<long long>(c.m),
                static_cast<long long>(c.n), static_cast<long long>(c.k),
                c.left_transposed ? 'T' : 'N', c.right_transposed ? 'T' : 'N', chosen.tile,
                static_cast<long long>(chosen.parts), own * 1e6, flops / own / 1e12);
    std::vector<Result> results;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::int64_t blocks = c.batch * ((c.m + all[i].rows - 1) / all[i].rows) *
                                  ((c.n + all[i].columns - 1) / all[i].columns);
      if (blocks > 20000) continue;
      if (!only.empty() && std::find(only.begin(), only.end(), i) == only.end()) continue;
      for (const bool vectors : {false, true}) {
        if (vectors && (c.m % 4 != 0 || c.n % 4 != 0)) continue;
        if (!only.empty() && !vectors && c.m % 4 == 0 && c.n % 4 == 0) continue;
        for (std::int64_t parts = 1; parts <= 256; parts = parts < 4 ? parts + 1 : parts * 2) {
          if (parts > 1 && (blocks * parts > 1056 || c.k / parts < 32)) break;
          t.tile = static_cast<int>(i), t.parts = parts, t.variant = vectors ? 2 : 0;
          const double s = seconds(
              device, [&] { weft::device::grid_contract(out, a, b, t); }, times);
          device->download(got.data(), *out.handle(), 0, got.size() * 4);
          double error = 0;
          for (std::size_t e = 0; e < got.size(); ++e)
            error = std::max(error, std::abs(static_cast<double>(got[e] - expected[e])));
          const char* wrong = error > 1e-3 * std::sqrt(static_cast<double>(c.k)) ? " WRONG" : "";
          char line[160];
          std::snprintf(line, sizeof line, "tile %zu (%lldx%lldx%lld)%s /%lld %.1f us%s", i,
                        static_cast<long long>(all[i].rows), static_cast<long long>(all[i].columns),
                        static_cast<long long>(all[i].depth), vectors ? " in vectors" : "",
                        static_cast<long long>(parts), s * 1e6, wrong);
          results.push_back({*wrong ? 0 : s, line});
        }
      }
    }
    t.tile = -1;
    std::sort(results.begin(), results.end(),
              [](const Result& x, const Result& y) { return x.seconds < y.seconds; });
    for (std::size_t i = 0; i < std::min(shown, results.size()); ++i)
      std::printf("    %s\n", results[i].text.c_str());
    std::fflush(stdout);
  }
}

void small(const Ref& device) {
  constexpr int kTimes = 20000;
  NDArray x = numbers(device, 1, 16);
  auto per_call = [&](const char* what, const std::function<void()>& work) {
    std::vector<double> samples;
    for (int i = 0; i < 1000; ++i) work();
    for (int s = 0; s < 9; ++s) {
      device->synchronize();
      auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kTimes; ++i) work();
      device->synchronize();
      samples.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kTimes);
    }
    std::printf("%-40s %.3f us\n", what, median(samples) * 1e6);
  };
  per_call("a + a, 16 elements", [&] { weft::arrays::add(x, x); });
  NDArray out = NDArray::empty(device, Elem::float32, Dims{1, 16});
  per_call("the same into a result that exists",
           [&] { weft::apply_into(weft::Op::add, out, x, x); });
  per_call("a result's storage", [&] { NDArray::empty(device, Elem::float32, Dims{1, 16}); });
  per_call("what the device is", [&] { weft::device::grid_of(device); });
}

}  // namespace

int main(int count, char** arguments) {
  bool only_small = false;
  std::vector<std::size_t> tiles;
  std::size_t shapes = 100, shown = 12;
  std::vector<Case> cases = kCases;
  std::string name = "cuda:0";
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--small") == 0) only_small = true;
    else if (std::strcmp(arguments[i], "--shapes") == 0 && i + 1 < count)
      shapes = static_cast<std::size_t>(std::atoi(arguments[++i]));
    else if (std::strcmp(arguments[i], "--all") == 0) shown = 100000;
    else if (std::strcmp(arguments[i], "--list") == 0 && i + 1 < count)
      cases = cases_of(arguments[++i]);
    else if (std::strcmp(arguments[i], "--tiles") == 0 && i + 1 < count)
      for (const char* p = arguments[++i]; p;
           p = std::strchr(p, ',') ? std::strchr(p, ',') + 1 : nullptr)
        tiles.push_back(static_cast<std::size_t>(std::atoi(p)));
    else name = arguments[i];
  }
  try {
    Ref device = weft::open_device(name);
    if (only_small) small(device);
    else products(device, cases, tiles, shapes, shown);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
