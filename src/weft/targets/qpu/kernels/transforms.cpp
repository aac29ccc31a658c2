// SPDX-License-Identifier: Apache-2.0
// FFT (Stockham), SHA-256 (a message per lane) and bitonic sort. Stages that read what others
// stored are launches of their own: the TMU's caches are clean then.

#include <cmath>
#include <limits>

#include "weft/targets/qpu/kernels/kernels.h"
#include "weft/targets/qpu/kernels/operands.h"
#include "weft/targets/qpu/language/macros.h"

namespace weft::qpu::kernels {

namespace {
/// out[o] = in[l j + k] +- w^k in[l j + k + n / 2] with j = o / 2l, k = o mod l; `bits` = log2 l.
void fft_stage(Ptr<Float> re, Ptr<Float> im, Ptr<Float> to_re, Ptr<Float> to_im, Ptr<Float> cosine,
               Ptr<Float> sine, Int n, Int bits, Int twiddle) {
  Int l = Int(1) << bits, half = n << 1;  // half of n in bytes
  For(Int at = me() << 4, at < n, at = at + (numQPUs() << 4))
    Int o = at + index();
    Int k = o & (l - 1), j = shr(o, bits + 1);
    Int from = ((j << bits) + k) << 2, w = (k << twiddle) << 2;
    Float ar = fetch(bytes(re, from)), ai = fetch(bytes(im, from));
    Float br = fetch(bytes(re, from + half)), bi = fetch(bytes(im, from + half));
    Float wr = fetch(bytes(cosine, w)), wi = fetch(bytes(sine, w));
    Float tr = br * wr - bi * wi, ti = br * wi + bi * wr;
    Where((o & l) != 0)
      tr = Float(0) - tr;
      ti = Float(0) - ti;
    End
    store(ar + tr, bytes(to_re, at << 2));
    store(ai + ti, bytes(to_im, at << 2));
  End
}

/// c = a * b, its real part times s, its imaginary part times t.
void times_kernel(Ptr<Float> ar, Ptr<Float> ai, Ptr<Float> br, Ptr<Float> bi, Ptr<Float> cr,
                  Ptr<Float> ci, Float s, Float t, Int n) {
  For(Int at = me() << 4, at < n, at = at + (numQPUs() << 4))
    Int here = min(at + index(), n - 1) << 2;
    Float xr = fetch(bytes(ar, here)), xi = fetch(bytes(ai, here));
    Float yr = fetch(bytes(br, here)), yi = fetch(bytes(bi, here));
    store((xr * yr - xi * yi) * s, bytes(cr, at << 2), n - at);
    store((xr * yi + xi * yr) * t, bytes(ci, at << 2), n - at);
  End
}

void barrier_kernel(Ptr<Int> slots, Ptr<Int> sums, Int rounds) {
  Int total = 0;
  For(Int round = 1, round <= rounds, round++)
    store(round, slots + (me() << 4));
    barrier();
    For(Int q = 0, q < numQPUs(), q++)
      total = total + vload(slots + (q << 4));
    End
    barrier();
  End
  store(total, sums + (me() << 4));
}

constexpr unsigned kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
constexpr unsigned kStart[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

void sha256_kernel(Ptr<Uint> blocks, Ptr<Uint> digests, Int messages) {
  setWriteStride(7);  // a digest is 8 words: lane i's word goes to message i
  For(Int first = me() << 4, first < messages, first = first + (numQPUs() << 4))
    Int mine = min(first + index(), messages - 1);
    Uint w[16], s[8];
    for (int i = 0; i < 16; i++) w[i] = fetch(bytes(blocks, (mine << 6) + 4 * i));
    for (int i = 0; i < 8; i++) s[i] = kStart[i];
    for (int r = 0; r < 64; r++) {
      if (r >= 16) {
        Uint a = w[(r + 1) & 15], b = w[(r + 14) & 15];
        w[r & 15] = w[r & 15] + (ror(a, 7) ^ ror(a, 18) ^ (a >> 3)) + w[(r + 9) & 15] +
                    (ror(b, 17) ^ ror(b, 19) ^ (b >> 10));
      }
      Uint &a = s[(64 - r) & 7], &b = s[(65 - r) & 7], &c = s[(66 - r) & 7], &d = s[(67 - r) & 7];
      Uint &e = s[(68 - r) & 7], &f = s[(69 - r) & 7], &g = s[(70 - r) & 7], &h = s[(71 - r) & 7];
      Uint t =
          h + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) + ((e & f) ^ (~e & g)) + kRound[r] + w[r & 15];
      d = d + t;
      h = t + (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    }
    for (int i = 0; i < 8; i++)
      store(s[i] + kStart[i], bytes(digests, (first << 5) + 4 * i), messages - first);
  End
}

void bitonic_step(Ptr<Int> from, Ptr<Int> to, Int n, Int distance, Int run) {
  For(Int at = me() << 4, at < n, at = at + (numQPUs() << 4))
    Int o = at + index();
    Int x = fetch(bytes(from, o << 2)), y = fetch(bytes(from, (o ^ distance) << 2));
    // The lower of a pair keeps the smaller value where runs ascend.
    Int low = max(x, y);
    Where(((o & distance) == 0 && (o & run) == 0) || ((o & distance) != 0 && (o & run) != 0))
      low = min(x, y);
    End
    store(low, bytes(to, at << 2));
  End
}

}  // namespace

std::int64_t fft(const Floats& re, const Floats& im, const Floats& scratch_re,
                 const Floats& scratch_im, const Floats& cosine, const Floats& sine, int n,
                 int qpus) {
  if (n < 16 || (n & (n - 1)))
    throw Error(ErrorKind::value, "qpu.kernel.extent", cat("a transform of ", n))
        .note("legal: powers of two, at least 16");
  holds(re.size(), n, "re"), holds(im.size(), n, "im"), holds(scratch_re.size(), n, "scratch_re"),
      holds(scratch_im.size(), n, "scratch_im");
  holds(cosine.size(), n / 2, "cosine"), holds(sine.size(), n / 2, "sine");
  static auto kernel = compile(fft_stage, "fft");
  auto k = kernel;
  k.setNumQPUs(qpus);
  std::int64_t cycles = 0;
  int stages = 0;
  while ((1 << stages) < n) ++stages;
  const Floats *from_re = &re, *from_im = &im, *to_re = &scratch_re, *to_im = &scratch_im;
  for (int s = 0; s < stages; ++s) {
    k(from_re, from_im, to_re, to_im, &cosine, &sine, n, s, stages - 1 - s);
    cycles += k.cycles();
    std::swap(from_re, to_re), std::swap(from_im, to_im);
  }
  if (from_re != &re) {
    std::copy(from_re->data(), from_re->data() + n, re.data());
    std::copy(from_im->data(), from_im->data() + n, im.data());
  }
  return cycles;
}

std::int64_t fft(const Floats& re, const Floats& im, int n, int qpus) {
  if (n < 1)
    throw Error(ErrorKind::value, "qpu.kernel.extent", cat("a transform of ", n))
        .note("legal: at least 1");
  holds(re.size(), n, "re"), holds(im.size(), n, "im");
  const double pi = std::acos(-1.0);
  auto size = static_cast<std::size_t>(n);
  bool plain = n >= 16 && (n & (n - 1)) == 0;
  std::size_t m = 16;
  while (m < (plain ? size : 2 * size - 1)) m *= 2;
  Floats cosine(m / 2), sine(m / 2), sr(m), si(m);
  for (std::size_t k = 0; k < m / 2; ++k) {
    double angle = 2 * pi * static_cast<double>(k) / static_cast<double>(m);
    cosine[k] = static_cast<float>(std::cos(angle)), sine[k] = static_cast<float>(-std::sin(angle));
  }
  int length = static_cast<int>(m);
  if (plain) return fft(re, im, sr, si, cosine, sine, n, qpus);
  // w[k] = exp(-i pi k^2 / n); X = w (x w * conj w), the convolution through transforms of m.
  Floats wr(size), wi(size), conj(size), ar(m), ai(m), br(m), bi(m);
  for (std::size_t k = 0; k < size; ++k) {
    double angle = pi * static_cast<double>(k * k % (2 * size)) / static_cast<double>(n);
    wr[k] = static_cast<float>(std::cos(angle)), wi[k] = static_cast<float>(-std::sin(angle));
    conj[k] = -wi[k];
    br[k] = wr[k], bi[k] = conj[k];
    if (k > 0) br[m - k] = br[k], bi[m - k] = bi[k];
  }
  static auto kernel = compile(times_kernel, "times");
  auto times = kernel;
  times.setNumQPUs(qpus);
  std::int64_t cycles = 0;
  auto multiply = [&](const Floats& xr, const Floats& xi, const Floats& yr, const Floats& yi,
                      const Floats& zr, const Floats& zi, float s, float t, int count) {
    times(&xr, &xi, &yr, &yi, &zr, &zi, s, t, count);
    cycles += times.cycles();
  };
  multiply(re, im, wr, wi, ar, ai, 1, 1, n);
  cycles += fft(ar, ai, sr, si, cosine, sine, length, qpus);
  cycles += fft(br, bi, sr, si, cosine, sine, length, qpus);
  multiply(ar, ai, br, bi, ar, ai, 1, -1, length);  // conjugate: forward serves as inverse
  cycles += fft(ar, ai, sr, si, cosine, sine, length, qpus);
  float scale = 1.0f / static_cast<float>(length);
  multiply(ar, ai, wr, conj, re, im, scale, -scale, n);
  return cycles;
}

std::int64_t barrier_rounds(const Ints& slots, const Ints& sums, int rounds, int qpus) {
  if (rounds < 0) throw Error(ErrorKind::value, "qpu.kernel.extent", cat("rounds is ", rounds));
  holds(slots.size(), std::int64_t{16} * qpus, "slots");
  holds(sums.size(), std::int64_t{16} * qpus, "sums");
  static auto kernel = compile(barrier_kernel, "barrier");
  auto k = kernel;
  k.setNumQPUs(qpus);
  k(&slots, &sums, rounds);
  return k.cycles();
}

std::int64_t sha256(const Words& blocks, const Words& digests, int messages, int qpus) {
  if (messages < 0)
    throw Error(ErrorKind::value, "qpu.kernel.extent", cat("messages is ", messages));
  holds(blocks.size(), static_cast<std::int64_t>(messages) * 16, "blocks"),
      holds(digests.size(), static_cast<std::int64_t>(messages) * 8, "digests");
  static auto kernel = compile(sha256_kernel, "sha256");
  auto k = kernel;
  k.setNumQPUs(qpus);
  k(&blocks, &digests, messages);
  return k.cycles();
}

std::int64_t sort(const Ints& x, const Ints& scratch_a, const Ints& scratch_b, int n, int qpus) {
  if (n < 0) throw Error(ErrorKind::value, "qpu.kernel.extent", cat("n is ", n));
  int size = 16;
  while (size < n) size *= 2;
  holds(x.size(), n, "x"), holds(scratch_a.size(), size, "scratch_a"),
      holds(scratch_b.size(), size, "scratch_b");
  static auto kernel = compile(bitonic_step, "sort");
  auto k = kernel;
  k.setNumQPUs(qpus);
  std::copy(x.data(), x.data() + n, scratch_a.data());
  std::fill(scratch_a.data() + n, scratch_a.data() + size, std::numeric_limits<int>::max());
  const Ints *from = &scratch_a, *to = &scratch_b;
  std::int64_t cycles = 0;
  for (int run = 2; run <= size; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      k(from, to, size, distance, run == size ? 0 : run);
      cycles += k.cycles();
      std::swap(from, to);
    }
  }
  std::copy(from->data(), from->data() + n, x.data());
  return cycles;
}

}  // namespace weft::qpu::kernels
