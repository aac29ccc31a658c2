// SPDX-License-Identifier: Apache-2.0
#pragma once
// Distributions of hosts beside the uniform and the normal one. What one kernel after another makes
// of uniform numbers is made of blocks; what may reject a number is made one by one, with numbers
// from ziggurats. Each block has a part of the stream of its own, so that the number of threads
// changes nothing.

#include <string_view>

#include "weft/array/ndarray.h"

namespace weft {

/// A parameter for each element: at[i * step].
struct SampleParameter {
  const double* at = nullptr;
  std::int64_t step = 0;
};

/// Where a block's numbers come from, and their parameters.
struct SampleBlock {
  std::uint64_t seed, first;  // its stream
  std::int64_t n;
  SampleParameter parameter[3];
};

struct Sampler {
  static constexpr std::int64_t kBlock = 1024;
  static constexpr int kMost = 3;  // parameters

  const char* name;
  int parameters;
  const char* names[kMost];
  double defaults[kMost];  // NaN: it has to be given
  bool (*legal)(const double* parameters);
  /// Block to float32, float64 or int64; null: not of that type.
  void (*make32)(const SampleBlock&, float*);
  void (*make64)(const SampleBlock&, double*);
  void (*make_whole)(const SampleBlock&, std::int64_t*);
};
/// Null where there is none of this name.
const Sampler* sampler(std::string_view name);

/// `count` numbers of the key (seed, counter), which has one counter for all of them; the
/// parameters are legal. `elem`: float32 or float64, int64 where the distribution is of whole
/// numbers.
NDArray random_sample(const Sampler& sampler, const Ref<Device>& host, std::uint64_t seed,
                      std::uint64_t counter, std::int64_t count, Elem elem,
                      const SampleParameter* parameters);

}  // namespace weft
