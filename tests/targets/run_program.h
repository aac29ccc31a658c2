// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a function on a device and compares with an independent product of plain loops.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "seed_programs.h"
#include "weft/target/backend.h"

namespace weft::testing {

struct Arrays {
  std::vector<std::vector<float>> host;
  std::vector<Ref<runtime::Storage>> storages;
  std::vector<runtime::CallArg> args;
};

inline Arrays random_arrays(const Program& p, const Ref<runtime::Device>& device, unsigned seed) {
  Arrays out;
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(-1, 1);
  for (const auto& shape : p.shapes) {
    std::size_t count = 1;
    for (std::int64_t n : shape) count *= static_cast<std::size_t>(n);
    std::vector<float> data(count);
    for (float& x : data) x = d(rng);
    auto s = device->allocate(count * 4);
    device->upload(*s, 0, data.data(), count * 4);
    out.args.push_back({s.get(), 0, dtypes::float32, shape, {}, 0, 0});
    out.storages.push_back(s);
    out.host.push_back(std::move(data));
  }
  return out;
}

/// What the program means, by loops that share nothing with the compiler.
inline std::vector<double> expected(const Program& p, const Arrays& a) {
  std::vector<double> out(a.host.back().size());
  const auto& x = a.host[0];
  if (p.name.starts_with("vector")) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(x[i]) + a.host[1][i];
  } else if (p.name.starts_with("window")) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<double>(x[i]) + x[i + 1] + x[i + 2];
  } else {
    auto n = static_cast<std::size_t>(p.shapes[2][0]), m = static_cast<std::size_t>(p.shapes[2][1]),
         k = static_cast<std::size_t>(p.shapes[0][1]);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t r = 0; r < k; ++r) {
        for (std::size_t j = 0; j < m; ++j)
          out[i * m + j] += static_cast<double>(x[i * k + r]) * a.host[1][r * m + j];
      }
    }
  }
  return out;
}

/// Largest difference from the meaning after one call.
inline double run_and_compare(const Program& p, const Ref<runtime::Module>& module,
                              const Ref<runtime::Device>& device, unsigned seed) {
  auto function = make_ref<runtime::Function>(module, "main", device);
  Arrays a = random_arrays(p, device, seed);
  function->call(a.args).wait();
  std::vector<float> got(a.host.back().size());
  device->download(got.data(), *a.storages.back(), 0, got.size() * 4);
  std::vector<double> want = expected(p, a);
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    double error = std::abs(got[i] - want[i]);
    worst = error >= worst ? error : (std::isnan(error) ? 1e30 : worst);
  }
  return worst;
}

}  // namespace weft::testing
