// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel library: written in the kernel language, any length, 1 to 12 QPUs, nothing read or
// written outside the arrays. Kernels are compiled at their first use and kept. Each call returns
// simulated clocks.

#include "weft/targets/qpu/language/kernel.h"

namespace weft::qpu::kernels {

using Floats = SharedArray<float>;
using Ints = SharedArray<int>;
using Words = SharedArray<unsigned>;

std::int64_t add(const Floats& x, const Floats& y, const Floats& out, int n, int qpus = 12);
std::int64_t mul(const Floats& x, const Floats& y, const Floats& out, int n, int qpus = 12);
/// out = a * x + y
std::int64_t saxpy(float a, const Floats& x, const Floats& y, const Floats& out, int n,
                   int qpus = 12);
/// out[0]; out holds at least 16 * (qpus + 1) words: the rest is scratch.
std::int64_t dot(const Floats& x, const Floats& y, const Floats& out, int n, int qpus = 12);
std::int64_t sum(const Floats& x, const Floats& out, int n, int qpus = 12);
/// out[rows] = a[rows x cols] . x[cols]; scratch holds at least qpus * round_up(rows, 16) words.
std::int64_t gemv(const Floats& a, const Floats& x, const Floats& out, const Floats& scratch,
                  int rows, int cols, int qpus = 12);
/// c[m x n] = a[m x k] . b[k x n]
std::int64_t gemm(const Floats& a, const Floats& b, const Floats& c, int m, int n, int k,
                  int qpus = 12);
/// out[i] = x[i] + ... + x[i + window - 1] for i in 0 .. n - window
std::int64_t window_sum(const Floats& x, const Floats& out, int n, int window, int qpus = 12);
/// Rows of cols values, each row to its softmax.
std::int64_t softmax(const Floats& x, const Floats& out, int rows, int cols, int qpus = 12);
/// out[h - 2][w - 2] = max(0, 3 x 3 correlation of x[h][w]); weights: 9 values.
std::int64_t conv3x3_relu(const Floats& x, const Floats& weights, const Floats& out, int height,
                          int width, int qpus = 12);
/// Iterations until |z| > 2, at most `most`, over [x0, x0 + dx * width) x [y0, y0 + dy * height).
std::int64_t mandelbrot(const Ints& out, int width, int height, float x0, float y0, float dx,
                        float dy, int most, int qpus = 12);
/// Discrete Fourier transform in place, n a power of two, at least 16; one launch per stage.
/// Scratch arrays as long as the data; cosine and sine hold cos and -sin of 2 pi k / n for k < n
/// / 2.
std::int64_t fft(const Floats& re, const Floats& im, const Floats& scratch_re,
                 const Floats& scratch_im, const Floats& cosine, const Floats& sine, int n,
                 int qpus = 12);
/// The same for any n from 1 on, with memory and tables of its own: a power of two as above, other
/// lengths as a convolution with a chirp (Bluestein 1970), three transforms of the next power of
/// two from 2 n - 1 on.
std::int64_t fft(const Floats& re, const Floats& im, int n, int qpus = 12);
/// Semaphore barriers: in each round every QPU stores its round into its own 16 words of `slots`
/// (16 * qpus words), all meet, and everybody adds up what everybody stored into its 16 words of
/// `sums`.
std::int64_t barrier_rounds(const Ints& slots, const Ints& sums, int rounds, int qpus = 12);
/// SHA-256 of messages of one block each, padded by the caller: 16 big-endian words in, 8 words
/// out.
std::int64_t sha256(const Words& blocks, const Words& digests, int messages, int qpus = 12);
/// Ascending, in place, any length; scratch: two arrays of the next power of two, at least 16.
std::int64_t sort(const Ints& x, const Ints& scratch_a, const Ints& scratch_b, int n,
                  int qpus = 12);

}  // namespace weft::qpu::kernels
