// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fourier transforms: on the host by host/fourier.h, on devices with a grid by the vendor's library
// where the device has one, else by the passes of operators/fft.h, and where a prime factor of the
// length has none by Bluestein's method.

#include "weft/array/ops.h"
#include "weft/runtime/math_library.h"

namespace weft {

/// The sums exp(-+ 2 pi i j k / n) x[k] times `scale`; x is cut or filled up with zeros to n
/// elements. complex64, or complex128 of float64, complex128 and integers. Throws Error(device,
/// "array.fft.kernel") on devices without a grid.
NDArray fft(const NDArray& x, std::int64_t n, int axis, bool inverse, double scale);
/// The first n / 2 + 1 numbers of the transform of n real ones.
NDArray rfft(const NDArray& x, std::int64_t n, int axis, double scale);
/// The n real numbers of which x holds the first half of the transform.
NDArray irfft(const NDArray& x, std::int64_t n, int axis, double scale);

using FftKind = runtime::MathLibrary::Fft;
/// Over the last `count` axes, each whole; `n` points along the last one (of a real kind's real
/// side).
NDArray fft_last_axes(const NDArray& x, int count, FftKind kind, std::int64_t n, double scale);

}  // namespace weft
