// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fourier transforms of rows of complex numbers: Stockham's passes, which sort as they go, one for
// each factor of the length. Numbers are pairs (re, im) in memory.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr int kFftThreads = 256;

/// The lengths of the passes, whose product is n; empty where a prime factor of n is above 13.
std::vector<int> fft_radices(std::int64_t n);

struct FftSpec {
  std::string real;  // "float32" or "float64"
  int radix = 2;
  bool inverse = false;
};

/// (x, table, out, blocks, count, n, stride, scale): one pass over count / n rows of n numbers,
/// `stride` the product of the passes before. table[k] = exp(-2 pi i k / n). Results are multiplied
/// by `scale`. Transforms are exp(-...) forward and exp(+...) inverse sums.
ir::PrimFunc fft_pass(const FftSpec& spec);

}  // namespace weft::operators
