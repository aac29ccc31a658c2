// SPDX-License-Identifier: Apache-2.0
#include "weft/array/mersenne.h"

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"

namespace weft {

namespace {

constexpr int kShift = 397;
constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 53) - 1;

std::uint32_t twisted(std::uint32_t high, std::uint32_t low, std::uint32_t with) {
  const std::uint32_t y = (high & 0x80000000U) | (low & 0x7fffffffU);
  return with ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908b0dfU);
}

std::uint32_t tempered(std::uint32_t y) {
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680U;
  y ^= y << 15 & 0xefc60000U;
  return y ^ y >> 18;
}

/// The 53 bits that two words give.
std::uint64_t joined(const std::uint32_t* pair) {
  return (std::uint64_t{pair[0]} << 32 | pair[1]) & kMantissa;
}

}  // namespace

Mersenne::Mersenne(const std::uint32_t* words, int next) : next_(next) {
  WEFT_CHECK(next >= 0 && next <= kWords, "word ", next, " of ", kWords);
  std::copy_n(words, kWords, words_);
}

void Mersenne::refill() {
  std::uint32_t* const w = words_;
  // In two runs, in each of which no element reads what fewer than a vector's lanes before wrote.
  for (int i = 0; i < kWords - kShift; ++i) w[i] = twisted(w[i], w[i + 1], w[i + kShift]);
  std::uint32_t* const rest = w + (kWords - kShift);
  for (int i = 0; i < kShift - 1; ++i) rest[i] = twisted(rest[i], rest[i + 1], w[i]);
  w[kWords - 1] = twisted(w[kWords - 1], w[0], w[kShift - 1]);
  next_ = 0;
}

void Mersenne::take(std::int64_t count, std::uint32_t* to) {
  while (count > 0) {
    if (next_ == kWords) refill();
    const int n = static_cast<int>(std::min<std::int64_t>(count, kWords - next_));
    const std::uint32_t* __restrict from = words_ + next_;
    std::uint32_t* __restrict out = to;
    for (int i = 0; i < n; ++i) out[i] = tempered(from[i]);
    next_ += n, to += n, count -= n;
  }
}

template <int kPer, typename Finish>
void Mersenne::draw(std::int64_t count, const Finish& finish) {
  constexpr std::int64_t kBlock = 1024;  // stays in the nearest cache
  alignas(64) std::uint32_t words[kBlock * kPer];
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, count - first);
    take(n * kPer, words);
    finish(first, n, words);
  }
}

NDArray Mersenne::uniform(const Ref<Device>& host, std::int64_t count, Elem elem) {
  WEFT_CHECK(elem == Elem::float32 || elem == Elem::float64, "uniform numbers of such a type");
  NDArray out = NDArray::empty(host, elem, Dims{count});
  if (elem == Elem::float32) {
    float* const all = reinterpret_cast<float*>(out.host());
    draw<1>(count, [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
      float* __restrict to = all + first;
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = static_cast<float>(static_cast<std::int32_t>(words[i] & 0xffffffU)) * 0x1p-24F;
    });
  } else {
    double* const all = reinterpret_cast<double*>(out.host());
    draw<2>(count, [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
      double* __restrict to = all + first;
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = static_cast<double>(static_cast<std::int64_t>(joined(words + 2 * i))) * 0x1p-53;
    });
  }
  return out;
}

NDArray Mersenne::below(const Ref<Device>& host, std::int64_t count, double p) {
  NDArray out = NDArray::empty(host, Elem::boolean, Dims{count});
  // x 2^-53 < p is x < p 2^53 for whole x, and p 2^53 is exact.
  const double bound = std::ceil(std::clamp(p, 0.0, 1.0) * 0x1p53);
  const std::int64_t least = static_cast<std::int64_t>(bound);
  auto* const to = reinterpret_cast<std::uint8_t*>(out.host());
  draw<2>(count, [&](std::int64_t first, std::int64_t n, const std::uint32_t* words) {
    std::uint8_t* __restrict bits = to + first;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t x = static_cast<std::int64_t>(joined(words + 2 * i));
      bits[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(x - least) >> 63);
    }
  });
  return out;
}

}  // namespace weft
