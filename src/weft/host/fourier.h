// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fourier transforms on the host, of lengths whose prime factors have passes (operators/fft.h).

#include <cstdint>

namespace weft {

enum class FourierKind { complex, real_forward, real_inverse };

/// Transforms along the middle axis of (outer, n, inner) numbers without gaps: exp(-...) sums, or
/// exp(+...) ones where `inverse` (always so of real_inverse), times `scale`. Complex numbers are
/// pairs; a real kind's complex side has n / 2 + 1 of them.
struct Fourier {
  FourierKind kind;
  bool inverse;
  std::int64_t outer, n, inner;
  double scale;
};

/// Elements of T that `space` needs.
template <typename T>
std::int64_t fourier_space(const Fourier& f);
template <typename T>
void fourier(const Fourier& f, const T* in, T* out, T* space);

extern template std::int64_t fourier_space<float>(const Fourier&);
extern template std::int64_t fourier_space<double>(const Fourier&);
extern template void fourier(const Fourier&, const float*, float*, float*);
extern template void fourier(const Fourier&, const double*, double*, double*);

}  // namespace weft
