// SPDX-License-Identifier: Apache-2.0
// Kernels as people bring them from processors and graphics cards, at odd sizes on 1, 5 and 12
// QPUs: a bank of biquad filters, nearest centres (k-means), a bitonic sort larger than the VPM.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <weft/qpu.h>

using namespace weft::qpu;

namespace {

/// x and y are samples by channels, coef five rows of channels: b0 b1 b2 a1 a2. A channel per lane.
void biquads(Int samples, Int channels, Ptr<Float> x, Ptr<Float> coef, Ptr<Float> y) {
  For(Int c = me() * 16, c < channels, c = c + numQPUs() * 16)
    Int at = min(c + index(), channels - 1);
    Float k[5], z1 = 0, z2 = 0;
    for (int i = 0; i < 5; i++) k[i] = fetch(coef + i * channels + at);
    Ptr<Float> in = x + at, out = y + c;
    For(Int i = 0, i < samples, i++)
      Float v = fetch(in);
      Float o = k[0] * v + z1;
      z1 = k[1] * v - k[3] * o + z2;
      z2 = k[2] * v - k[4] * o;
      store(o, out, channels - c);
      in = in + channels;
      out = out + channels;
    End
  End
}

TEST(QpuPorts, biquad_filter_bank) {
  constexpr int kSamples = 130, kChannels = 53;
  SharedArray<float> x(kSamples * kChannels), coef(5 * kChannels), y(kSamples * kChannels + 1);
  std::mt19937 rng(21);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(rng() % 2000) / 1000 - 1;
  for (int c = 0; c < kChannels; ++c) {
    const float row[5] = {0.2f, 0.1f, 0.05f, -0.5f + 0.01f * static_cast<float>(c), 0.1f};
    for (int i = 0; i < 5; ++i) coef[static_cast<std::size_t>(i * kChannels + c)] = row[i];
  }
  auto k = compile(biquads, "biquads");
  for (int qpus : {1, 5, 12}) {
    y[y.size() - 1] = -77;
    k.setNumQPUs(qpus);
    k(kSamples, kChannels, &x, &coef, &y);
    for (int c = 0; c < kChannels; ++c) {
      auto at = [&](int i) { return coef[static_cast<std::size_t>(i * kChannels + c)]; };
      double z1 = 0, z2 = 0;
      for (int i = 0; i < kSamples; ++i) {
        auto e = static_cast<std::size_t>(i * kChannels + c);
        double v = x[e], o = at(0) * v + z1;
        z1 = at(1) * v - at(3) * o + z2;
        z2 = at(2) * v - at(4) * o;
        ASSERT_NEAR(y[e], o, 1e-5) << "channel " << c << " sample " << i;
      }
    }
    EXPECT_EQ(y[y.size() - 1], -77);
    EXPECT_TRUE(takeNotes().empty());
  }
}

/// points: dimensions by n; centres: k by dimensions. A point per lane; the centres are the same
/// address in every lane.
void nearest(Int n, Int dims, Int k, Ptr<Float> points, Ptr<Float> centres, Ptr<Int> which) {
  For(Int i = me() * 16, i < n, i = i + numQPUs() * 16)
    Int at = min(i + index(), n - 1);
    Float best = 3e38f;
    Int found = 0;
    For(Int c = 0, c < k, c++)
      Float sum = 0;
      For(Int d = 0, d < dims, d++)
        Float apart = fetch(points + d * n + at) - fetch(centres + c * dims + d);
        sum = sum + apart * apart;
      End
      Where(sum < best)
        best = sum;
        found = c;
      End
    End
    store(found, which + i, n - i);
  End
}

TEST(QpuPorts, nearest_centres) {
  constexpr int kPoints = 307, kDims = 7, kCentres = 9;
  SharedArray<float> points(kPoints * kDims), centres(kCentres * kDims);
  SharedArray<int> which(kPoints + 1);
  std::mt19937 rng(22);
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = static_cast<float>(rng() % 2000);
  for (std::size_t i = 0; i < centres.size(); ++i) centres[i] = static_cast<float>(rng() % 2000);
  auto k = compile(nearest, "nearest");
  for (int qpus : {1, 5, 12}) {
    which[kPoints] = -77;
    k.setNumQPUs(qpus);
    k(kPoints, kDims, kCentres, &points, &centres, &which);
    for (int i = 0; i < kPoints; ++i) {
      auto distance = [&](int c) {
        double sum = 0;
        for (int d = 0; d < kDims; ++d) {
          double apart = points[static_cast<std::size_t>(d * kPoints + i)] -
                         centres[static_cast<std::size_t>(c * kDims + d)];
          sum += apart * apart;
        }
        return sum;
      };
      double best = distance(0);
      for (int c = 1; c < kCentres; ++c) best = std::min(best, distance(c));
      // Two centres as near as a float can tell are both right.
      EXPECT_NEAR(distance(which[static_cast<std::size_t>(i)]), best, best * 1e-5) << "point " << i;
    }
    EXPECT_EQ(which[kPoints], -77);
    EXPECT_TRUE(takeNotes().empty());
  }
}

/// One pass of a bitonic sort of n = 2^m elements, from a to b: a launch per pass, because the TMU
/// may not read what the same launch stored.
void bitonic_pass(Int n, Int block, Int apart, Ptr<Int> a, Ptr<Int> b) {
  For(Int i = me() * 16, i < n, i = i + numQPUs() * 16)
    Int at = i + index();
    Int other = at ^ apart;
    Int x = fetch(a + at), y = fetch(a + other);
    Int up = select((at & block) == 0, Int(1), Int(0));
    Int first = select(at < other, Int(1), Int(0));
    store(select(up == first, min(x, y), max(x, y)), b + i);
  End
}

TEST(QpuPorts, bitonic_sort) {
  constexpr int kN = 2048;  // the VPM holds 1024 words
  std::mt19937 rng(23);
  auto pass = compile(bitonic_pass, "bitonic");
  for (int qpus : {1, 5, 12}) {
    SharedArray<int> a(kN), b(kN);
    std::vector<int> want(kN);
    for (std::size_t i = 0; i < kN; ++i) want[i] = a[i] = static_cast<int>(rng());
    std::sort(want.begin(), want.end());
    SharedArray<int>*from = &a, *to = &b;
    pass.setNumQPUs(qpus);
    for (int block = 2; block <= kN; block *= 2) {
      for (int apart = block / 2; apart > 0; apart /= 2) {
        pass(kN, block, apart, from, to);
        std::swap(from, to);
      }
    }
    for (std::size_t i = 0; i < kN; ++i) ASSERT_EQ((*from)[i], want[i]) << "element " << i;
    EXPECT_TRUE(takeNotes().empty());
  }
}

}  // namespace
