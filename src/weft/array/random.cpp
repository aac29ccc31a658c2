// SPDX-License-Identifier: Apache-2.0
#include "weft/array/random.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "weft/runtime/pool.h"

namespace weft {

void philox(std::uint64_t seed, std::uint64_t counter, std::uint32_t out[4]) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(counter),
                        static_cast<std::uint32_t>(counter >> 32), 0, 0};
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0], p1 = std::uint64_t{0xCD9E8D57} * c[2];
    std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0;
    std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1;
    c[1] = static_cast<std::uint32_t>(p1);
    c[3] = static_cast<std::uint32_t>(p0);
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int i = 0; i < 4; ++i) out[i] = c[i];
}

namespace {

/// f(first element of a group, its words) for groups of `per` elements made of `words` words (4 or
/// 8).
template <typename T, typename F>
NDArray fill(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first, std::int64_t count,
             Elem elem, int per, F f) {
  std::vector<T> host;
  NDArray out = NDArray::empty(device, elem, Dims{count});
  T* data = nullptr;
  if (out.on_host()) {
    data = reinterpret_cast<T*>(out.host());
  } else {
    host.resize(static_cast<std::size_t>(count));
    data = host.data();
  }
  std::int64_t groups = (count + per - 1) / per;
  runtime::Pool::shared().parallel_for(groups, 4096, [&](std::int64_t g, std::int64_t end) {
    for (; g < end; ++g) {
      std::uint32_t words[4];
      T values[4] = {};
      philox(seed, first + static_cast<std::uint64_t>(g), words);
      f(words, values);
      for (int i = 0; i < per && g * per + i < count; ++i) data[g * per + i] = values[i];
    }
  });
  if (!host.empty())
    device->upload(*out.handle(), 0, host.data(), static_cast<runtime::Bytes>(out.nbytes()));
  return out;
}

float unit(std::uint32_t w) { return static_cast<float>(w >> 8) * 0x1p-24f; }
double unit(std::uint32_t a, std::uint32_t b) {
  return static_cast<double>(((static_cast<std::uint64_t>(b) << 32) | a) >> 11) * 0x1p-53;
}
template <typename T>
void box_muller(T u, T v, T* out) {
  T r = std::sqrt(T(-2) * std::log(T(1) - u)), angle = T(6.283185307179586) * v;
  out[0] = r * std::cos(angle);
  out[1] = r * std::sin(angle);
}

}  // namespace

NDArray random_bits(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                    std::int64_t count) {
  return fill<std::uint32_t>(device, seed, first, count, Elem::uint32, 4,
                             [](const std::uint32_t* w, std::uint32_t* out) {
                               for (int i = 0; i < 4; ++i) out[i] = w[i];
                             });
}

NDArray random_uniform(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                       std::int64_t count, Elem elem) {
  if (elem == Elem::float64) {
    return fill<double>(device, seed, first, count, elem, 2,
                        [](const std::uint32_t* w, double* out) {
                          out[0] = unit(w[0], w[1]);
                          out[1] = unit(w[2], w[3]);
                        });
  }
  return fill<float>(device, seed, first, count, Elem::float32, 4,
                     [](const std::uint32_t* w, float* out) {
                       for (int i = 0; i < 4; ++i) out[i] = unit(w[i]);
                     });
}

NDArray random_normal(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                      std::int64_t count, Elem elem) {
  if (elem == Elem::float64) {
    return fill<double>(device, seed, first, count, elem, 2,
                        [](const std::uint32_t* w, double* out) {
                          box_muller(unit(w[0], w[1]), unit(w[2], w[3]), out);
                        });
  }
  return fill<float>(device, seed, first, count, Elem::float32, 4,
                     [](const std::uint32_t* w, float* out) {
                       box_muller(unit(w[0]), unit(w[1]), out);
                       box_muller(unit(w[2]), unit(w[3]), out + 2);
                     });
}

}  // namespace weft
