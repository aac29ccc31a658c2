// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the C++ examples share: random inputs, the comparison with plain loops, the printed line.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <weft/weft.h>

/// Machines whose schedules bind loops to blocks and threads.
inline bool has_threads(const std::string& target) {
  std::string name = target.substr(0, target.find(':'));
  return name == "cuda" || name == "opencl" || name == "metal";
}

inline std::vector<float> random_values(std::int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) x = uniform(rng);
  return out;
}

/// Prints program, device, time, rate and error; 1 when the result is wrong.
inline int report(const char* name, const std::string& target, const weft::TimeResult& t,
                  double flop, const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    error = std::max(error, std::abs(static_cast<double>(got[i]) - want[i]) /
                                std::max(1.0, std::abs(static_cast<double>(want[i]))));
  bool good = got.size() == want.size() && error <= 1e-4;
  std::printf("%-24s %-8s %10.3f us %9.2f GFLOP/s  error %.1e  %s\n", name, target.c_str(),
              t.median * 1e6, flop / t.median / 1e9, error, good ? "ok" : "WRONG");
  return good ? 0 : 1;
}

/// Runs `example` on the target of the command line; 77 when its device is absent.
template <typename Example>
int run_example(int argc, char** argv, Example&& example) {
  std::string target = argc > 1 ? argv[1] : "cpu";
  try {
    return example(target);
  } catch (const weft::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.kind() == weft::ErrorKind::device ? 77 : 1;
  }
}
