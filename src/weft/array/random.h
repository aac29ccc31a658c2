// SPDX-License-Identifier: Apache-2.0
#pragma once
// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011). Word i of a stream depends on (seed, first + i / 4) alone, so any device and any number of
// threads give the same numbers; of normal numbers the last bits are those of the device's
// logarithm. Devices with a grid make them themselves; elsewhere the host does and copies them.

#include "weft/array/ndarray.h"

namespace weft {

/// `count` uint32 words.
NDArray random_bits(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                    std::int64_t count);
/// What hosts make of a number x: x * factor + shift, each rounded to the type.
struct RandomScale {
  double factor = 1, shift = 0;
};
/// Uniform in [0, 1): 24 bits of one word for float32, 53 bits of two for float64.
NDArray random_uniform(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                       std::int64_t count, Elem elem, RandomScale scale = {});
/// Standard normal by Box and Muller's method.
NDArray random_normal(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                      std::int64_t count, Elem elem, RandomScale scale = {});
/// uint64 numbers of two words each, on hosts and devices with a grid.
NDArray random_pairs(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                     std::int64_t count);
/// 0 to count - 1 in the order of as many pairs.
NDArray random_permutation(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                           std::int64_t count);
/// `count` different numbers of 0 to n - 1, at most n, each order of each choice as likely as any
/// other. Hosts only; takes two words for each number.
NDArray random_choice(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                      std::int64_t n, std::int64_t count);
/// int64 in [low, low + range), of hosts: low + the upper 64 bits of range times two words.
NDArray random_integers(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                        std::int64_t count, std::int64_t low, std::uint32_t range);

}  // namespace weft
