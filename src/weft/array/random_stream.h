// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers one by one, from the words of one stream.

#include <cmath>
#include <cstdint>

#include "weft/host/kernels.h"

namespace weft {

/// The strips of a ziggurat (Marsaglia and Tsang, 2000): of equal areas below a falling density.
/// Strip i reaches to edge[i]; where a number is below inside[i] of that it is below the density.
template <int kStrips>
struct Ziggurat {
  double edge[kStrips + 1], inside[kStrips];

  template <typename Density, typename Inverse>
  Ziggurat(double last, double area, const Density& density, const Inverse& inverse) {
    double height = density(last);
    edge[0] = area / height, edge[1] = last, edge[kStrips] = 0;
    for (int i = 2; i < kStrips; ++i) {
      edge[i] = inverse(area / edge[i - 1] + height);
      height = density(edge[i]);
    }
    for (int i = 0; i < kStrips; ++i) inside[i] = edge[i + 1] / edge[i];
  }
};
/// Of normal numbers (128 strips) and waiting times (256 strips).
const Ziggurat<128>& normal_strips();
const Ziggurat<256>& exponential_strips();

class RandomWords {
 public:
  /// `count`: about how many numbers will be asked for.
  RandomWords(std::uint64_t seed, std::uint64_t first, std::int64_t count)
      : seed_(seed), first_(first), counters_(count <= 8 ? kCounters / 4 : kCounters) {}

  /// 64 random bits.
  std::uint64_t bits() {
    if (next_ == held_) refill();
    const std::uint64_t out = words_[next_] | std::uint64_t{words_[next_ + 1]} << 32;
    next_ += 2;
    return out;
  }
  /// In [0, 1), and in (0, 1].
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double open() { return static_cast<double>((bits() >> 11) + 1) * 0x1p-53; }

  double normal() {
    const Ziggurat<128>& z = normal_strips_;
    for (;;) {
      const std::uint64_t b = bits();
      const int i = static_cast<int>(b & 127);
      const double u = static_cast<double>(b >> 11) * 0x1p-52 - 1, x = u * z.edge[i];
      if (std::abs(u) < z.inside[i]) return x;
      if (i == 0) return u < 0 ? -tail() : tail();
      const double outer = std::exp(-0.5 * (z.edge[i] * z.edge[i] - x * x));
      const double inner = std::exp(-0.5 * (z.edge[i + 1] * z.edge[i + 1] - x * x));
      if (inner + uniform() * (outer - inner) < 1) return x;
    }
  }
  /// Of mean 1.
  double exponential() {
    const Ziggurat<256>& z = exponential_strips_;
    for (;;) {
      const std::uint64_t b = bits();
      const int i = static_cast<int>(b & 255);
      const double u = static_cast<double>(b >> 11) * 0x1p-53, x = u * z.edge[i];
      if (u < z.inside[i]) return x;
      if (i == 0) return z.edge[1] - std::log(open());
      const double outer = std::exp(x - z.edge[i]), inner = std::exp(x - z.edge[i + 1]);
      if (inner + uniform() * (outer - inner) < 1) return x;
    }
  }

 private:
  static constexpr int kCounters = 64;

  void refill() {
    kernels().random[static_cast<int>(RandomKernel::bits)](counters_, seed_, first_, words_);
    first_ += static_cast<std::uint64_t>(counters_);
    next_ = 0, held_ = 4 * counters_;
  }
  /// Beyond the last strip of the normal numbers.
  double tail() {
    const double last = normal_strips_.edge[1];
    for (;;) {
      const double x = -std::log(open()) / last;
      if (-2 * std::log(open()) >= x * x) return last + x;
    }
  }

  const Ziggurat<128>& normal_strips_ = normal_strips();
  const Ziggurat<256>& exponential_strips_ = exponential_strips();
  std::uint64_t seed_, first_;
  int counters_, next_ = 0, held_ = 0;
  alignas(64) std::uint32_t words_[4 * kCounters];
};

}  // namespace weft
