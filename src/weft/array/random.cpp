// SPDX-License-Identifier: Apache-2.0
#include "weft/array/random.h"

#include <algorithm>
#include <vector>

#include "weft/array/on_device.h"
#include "weft/host/kernels.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

using operators::RandomNumbers;

namespace {

bool on_grid(const Ref<Device>& device) {
  return !device->info().host_accessible && on_device().has_grid(device);
}

/// Numbers of counters from `first` on, `per` to each; `finish` makes of a part's numbers what is
/// wanted.
template <typename T, typename F>
NDArray fill(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first, std::int64_t count,
             Elem elem, RandomKernel kind, F finish) {
  constexpr std::int64_t per = 16 / static_cast<std::int64_t>(sizeof(T));
  const RandomFn fn = kernels().random[static_cast<int>(kind)];
  std::vector<T> host;
  NDArray out = NDArray::empty(device, elem, Dims{count});
  T* data = nullptr;
  if (out.on_host()) {
    data = reinterpret_cast<T*>(out.host());
  } else {
    host.resize(static_cast<std::size_t>(count));
    data = host.data();
  }
  auto part = [&](std::int64_t g, std::int64_t groups, T* to) {
    fn(groups, seed, first + static_cast<std::uint64_t>(g), to);
    finish(to, groups * per);
  };
  const std::int64_t whole = count / per, rest = count % per;
  runtime::Pool::shared().parallel_for(
      whole, 4096, [&](std::int64_t g, std::int64_t end) { part(g, end - g, data + g * per); });
  if (rest) {
    T last[per];
    part(whole, 1, last);
    std::copy_n(last, rest, data + whole * per);
  }
  if (!host.empty())
    device->upload(*out.handle(), 0, host.data(), static_cast<runtime::Bytes>(out.nbytes()));
  return out;
}
constexpr auto as_they_are = [](auto*, std::int64_t) {};

}  // namespace

NDArray random_bits(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                    std::int64_t count) {
  if (on_grid(device))
    return on_device().random(device, seed, first, count, Elem::uint32, RandomNumbers::bits);
  return fill<std::uint32_t>(device, seed, first, count, Elem::uint32, RandomKernel::bits,
                             as_they_are);
}

NDArray random_uniform(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                       std::int64_t count, Elem elem) {
  if (on_grid(device)) {
    const bool wide = elem == Elem::float64;
    return on_device().random(device, seed, first, count, wide ? elem : Elem::float32,
                              wide ? RandomNumbers::uniform64 : RandomNumbers::uniform);
  }
  if (elem == Elem::float64)
    return fill<double>(device, seed, first, count, elem, RandomKernel::uniform64, as_they_are);
  return fill<float>(device, seed, first, count, Elem::float32, RandomKernel::uniform, as_they_are);
}

NDArray random_normal(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                      std::int64_t count, Elem elem) {
  if (on_grid(device)) {
    const bool wide = elem == Elem::float64;
    return on_device().random(device, seed, first, count, wide ? elem : Elem::float32,
                              wide ? RandomNumbers::normal64 : RandomNumbers::normal);
  }
  if (elem == Elem::float64) {
    return fill<double>(device, seed, first, count, elem, RandomKernel::uniform64,
                        [](double* x, std::int64_t n) {
                          const void* in[1] = {x};
                          loop_kernels().normal_pairs(n / 2, in, x);
                        });
  }
  return fill<float>(device, seed, first, count, Elem::float32, RandomKernel::normal, as_they_are);
}

}  // namespace weft
