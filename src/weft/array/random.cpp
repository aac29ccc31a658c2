// SPDX-License-Identifier: Apache-2.0
#include "weft/array/random.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/base/error.h"
#include "weft/host/kernel_lists.h"
#include "weft/host/kernels.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

using operators::RandomNumbers;

namespace {

bool on_grid(const Ref<Device>& device) {
  return !device->info().host_accessible && on_device().has_grid(device);
}

/// Counters whose numbers stay in the nearest cache.
constexpr std::int64_t kBlock = 1024;

/// make(counters, first, to) for the numbers of counters from `first` on, a block at a time.
template <typename T, typename Make>
NDArray fill(const Ref<Device>& device, std::uint64_t first, std::int64_t count, Elem elem,
             const Make& make) {
  constexpr std::int64_t per = 16 / static_cast<std::int64_t>(sizeof(T));
  std::vector<T> host;
  NDArray out = NDArray::empty(device, elem, Dims{count});
  T* data = nullptr;
  if (out.on_host()) {
    data = reinterpret_cast<T*>(out.host());
  } else {
    host.resize(static_cast<std::size_t>(count));
    data = host.data();
  }
  const std::int64_t whole = count / per, rest = count % per;
  runtime::Pool::shared().parallel_for(whole, 4096, [&](std::int64_t g, std::int64_t end) {
    for (; g < end; g += kBlock)
      make(std::min(kBlock, end - g), first + static_cast<std::uint64_t>(g), data + g * per);
  });
  if (rest) {
    T last[per];
    make(std::int64_t{1}, first + static_cast<std::uint64_t>(whole), last);
    std::copy_n(last, rest, data + whole * per);
  }
  if (!host.empty())
    device->upload(*out.handle(), 0, host.data(), static_cast<runtime::Bytes>(out.nbytes()));
  return out;
}

/// x = x * factor + shift of n numbers.
template <typename T>
void rescale(const RandomScale& scale, T* x, std::int64_t n) {
  const Elem e = sizeof(T) == 4 ? Elem::float32 : Elem::float64;
  const T factor = static_cast<T>(scale.factor), shift = static_cast<T>(scale.shift);
  const void *times[2] = {x, &factor}, *plus[2] = {x, &shift};
  if (scale.factor != 1) one_kernel(1, Op::multiply, e)(n, times, x);
  if (scale.shift != 0) one_kernel(1, Op::add, e)(n, plus, x);
}

/// `finish` makes of a block's numbers what is wanted.
template <typename T, typename F>
NDArray reals(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
              std::int64_t count, Elem elem, RandomKernel kind, const RandomScale& scale,
              const F& finish) {
  const RandomFn fn = kernels().random[static_cast<int>(kind)];
  return fill<T>(device, first, count, elem, [&](std::int64_t n, std::uint64_t at, T* to) {
    fn(n, seed, at, to);
    const std::int64_t numbers = n * (16 / static_cast<std::int64_t>(sizeof(T)));
    finish(to, numbers);
    rescale(scale, to, numbers);
  });
}
constexpr auto as_they_are = [](auto*, std::int64_t) {};

bool on_grid(const Ref<Device>& device, const RandomScale& scale) {
  if (!on_grid(device)) return false;
  WEFT_CHECK(scale.factor == 1 && scale.shift == 0, "devices make plain random numbers");
  return true;
}

}  // namespace

NDArray random_bits(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                    std::int64_t count) {
  if (on_grid(device))
    return on_device().random(device, seed, first, count, Elem::uint32, RandomNumbers::bits);
  const RandomFn fn = kernels().random[static_cast<int>(RandomKernel::bits)];
  return fill<std::uint32_t>(
      device, first, count, Elem::uint32,
      [&](std::int64_t n, std::uint64_t at, std::uint32_t* to) { fn(n, seed, at, to); });
}

NDArray random_uniform(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                       std::int64_t count, Elem elem, RandomScale scale) {
  if (on_grid(device, scale)) {
    const bool wide = elem == Elem::float64;
    return on_device().random(device, seed, first, count, wide ? elem : Elem::float32,
                              wide ? RandomNumbers::uniform64 : RandomNumbers::uniform);
  }
  if (elem == Elem::float64)
    return reals<double>(device, seed, first, count, elem, RandomKernel::uniform64, scale,
                         as_they_are);
  return reals<float>(device, seed, first, count, Elem::float32, RandomKernel::uniform, scale,
                      as_they_are);
}

NDArray random_normal(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                      std::int64_t count, Elem elem, RandomScale scale) {
  if (on_grid(device, scale)) {
    const bool wide = elem == Elem::float64;
    return on_device().random(device, seed, first, count, wide ? elem : Elem::float32,
                              wide ? RandomNumbers::normal64 : RandomNumbers::normal);
  }
  if (elem == Elem::float64) {
    return reals<double>(device, seed, first, count, elem, RandomKernel::uniform64, scale,
                         [](double* x, std::int64_t n) {
                           const void* in[1] = {x};
                           loop_kernels().normal_pairs(n / 2, in, x);
                         });
  }
  return reals<float>(device, seed, first, count, Elem::float32, RandomKernel::normal, scale,
                      as_they_are);
}

NDArray random_permutation(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                           std::int64_t count) {
  WEFT_CHECK(device->info().host_accessible, "permutations of hosts only");
  const NDArray words = random_bits(device, seed, first, 2 * count);
  static_assert(std::endian::native == std::endian::little, "two words are one of 64 bits");
  const Dims step{1};
  return argsort(NDArray::make(words.handle(), Elem::uint64, Dims{count}, &step, 0), 0, false);
}

NDArray random_choice(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                      std::int64_t n, std::int64_t count) {
  WEFT_CHECK(device->info().host_accessible && count <= n, "choices of hosts only");
  const NDArray words = random_bits(device, seed, first, 2 * count);
  const NDArray out = NDArray::empty(device, Elem::int64, Dims{count});
  const auto* const from = reinterpret_cast<const std::uint64_t*>(words.host());
  auto* const to = reinterpret_cast<std::int64_t*>(out.host());
  __extension__ typedef unsigned __int128 Wide;
  // One of the places i to n - 1, all equally likely but for a share of n / 2^64.
  const auto place = [&](std::int64_t i) {
    const auto left = static_cast<std::uint64_t>(n - i);
    return i + static_cast<std::int64_t>((Wide{from[i]} * left) >> 64);
  };
  // Fisher and Yates: place i takes what is at a place behind it, which gets what was at i.
  if (n / 64 > count || n > UINT32_MAX) {  // of few among many the places that changed are kept
    std::unordered_map<std::int64_t, std::int64_t> moved;
    const auto at = [&](std::int64_t k) {
      const auto found = moved.find(k);
      return found == moved.end() ? k : found->second;
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t k = place(i);
      to[i] = at(k);
      moved[k] = at(i);
    }
    return out;
  }
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0u);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto k = static_cast<std::size_t>(place(i));
    to[i] = numbers[k];
    numbers[k] = numbers[static_cast<std::size_t>(i)];
  }
  return out;
}

NDArray random_integers(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                        std::int64_t count, std::int64_t low, std::uint32_t range) {
  WEFT_CHECK(!on_grid(device), "integers of hosts only");
  return fill<std::int64_t>(device, first, count, Elem::int64,
                            [&](std::int64_t n, std::uint64_t at, std::int64_t* to) {
                              loop_kernels().random_integers(n, seed, at, range, low, to);
                            });
}

}  // namespace weft
