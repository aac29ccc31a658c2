// SPDX-License-Identifier: Apache-2.0
#include "weft/array/transpose.h"

#include <algorithm>
#include <cstring>

#include "weft/array/nest.h"
#include "weft/runtime/pool.h"

#if defined(WEFT_X86_LEVELS)
#include <immintrin.h>
#endif

namespace weft {

namespace {

/// out[i * out_step + j] = in[j * in_step + i] for i in [0, m), j in [0, n); steps in elements.
struct Plane {
  const char* in;
  char* out;
  std::int64_t in_step, out_step, m, n;
};

template <typename T>
void plain(const Plane& p, std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) {
  const T* in = reinterpret_cast<const T*>(p.in);
  T* out = reinterpret_cast<T*>(p.out);
  for (std::int64_t i = i0; i < i1; ++i) {
    for (std::int64_t j = j0; j < j1; ++j) out[i * p.out_step + j] = in[j * p.in_step + i];
  }
}

#if defined(WEFT_X86_LEVELS)
#define WEFT_AVX2 __attribute__((target("avx2"), always_inline)) inline

WEFT_AVX2 void rows8(const float* in, std::int64_t step, __m256 r[8]) {
  __m256 a[8], b[8];
  for (int k = 0; k < 4; ++k) {  // halves of rows k and k + 4 side by side
    a[2 * k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(in + k * step)),
                                    _mm_loadu_ps(in + (k + 4) * step), 1);
    a[2 * k + 1] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(in + k * step + 4)),
                                        _mm_loadu_ps(in + (k + 4) * step + 4), 1);
  }
  for (int h = 0; h < 2; ++h) {
    b[h * 4 + 0] = _mm256_unpacklo_ps(a[0 + h], a[2 + h]);
    b[h * 4 + 1] = _mm256_unpackhi_ps(a[0 + h], a[2 + h]);
    b[h * 4 + 2] = _mm256_unpacklo_ps(a[4 + h], a[6 + h]);
    b[h * 4 + 3] = _mm256_unpackhi_ps(a[4 + h], a[6 + h]);
    r[h * 4 + 0] = _mm256_shuffle_ps(b[h * 4 + 0], b[h * 4 + 2], 0x44);
    r[h * 4 + 1] = _mm256_shuffle_ps(b[h * 4 + 0], b[h * 4 + 2], 0xee);
    r[h * 4 + 2] = _mm256_shuffle_ps(b[h * 4 + 1], b[h * 4 + 3], 0x44);
    r[h * 4 + 3] = _mm256_shuffle_ps(b[h * 4 + 1], b[h * 4 + 3], 0xee);
  }
}

/// 8 x 16 tiles: each row of the result gets a whole line. `stream`: 32-byte aligned, past the
/// caches.
template <bool kStream>
__attribute__((target("avx2"))) void block4(const Plane& p, std::int64_t i0, std::int64_t i1,
                                            std::int64_t j0, std::int64_t j1) {
  const float* in = reinterpret_cast<const float*>(p.in);
  float* out = reinterpret_cast<float*>(p.out);
  std::int64_t i = i0;
  for (; i + 8 <= i1; i += 8) {
    std::int64_t j = j0;
    for (; j + 16 <= j1; j += 16) {
      __m256 left[8], right[8];
      rows8(in + j * p.in_step + i, p.in_step, left);
      rows8(in + (j + 8) * p.in_step + i, p.in_step, right);
      for (int k = 0; k < 8; ++k) {
        float* to = out + (i + k) * p.out_step + j;
        if constexpr (kStream) {
          _mm256_stream_ps(to, left[k]);
          _mm256_stream_ps(to + 8, right[k]);
        } else {
          _mm256_storeu_ps(to, left[k]);
          _mm256_storeu_ps(to + 8, right[k]);
        }
      }
    }
    plain<float>(p, i, i + 8, j, j1);
  }
  plain<float>(p, i, i1, j0, j1);
}

WEFT_AVX2 void rows4(const double* in, std::int64_t step, __m256d r[4]) {
  __m256d a[4], b[4];
  for (int k = 0; k < 4; ++k) a[k] = _mm256_loadu_pd(in + k * step);
  b[0] = _mm256_unpacklo_pd(a[0], a[1]);
  b[1] = _mm256_unpackhi_pd(a[0], a[1]);
  b[2] = _mm256_unpacklo_pd(a[2], a[3]);
  b[3] = _mm256_unpackhi_pd(a[2], a[3]);
  r[0] = _mm256_permute2f128_pd(b[0], b[2], 0x20);
  r[1] = _mm256_permute2f128_pd(b[1], b[3], 0x20);
  r[2] = _mm256_permute2f128_pd(b[0], b[2], 0x31);
  r[3] = _mm256_permute2f128_pd(b[1], b[3], 0x31);
}

template <bool kStream>
__attribute__((target("avx2"))) void block8(const Plane& p, std::int64_t i0, std::int64_t i1,
                                            std::int64_t j0, std::int64_t j1) {
  const double* in = reinterpret_cast<const double*>(p.in);
  double* out = reinterpret_cast<double*>(p.out);
  std::int64_t i = i0;
  for (; i + 4 <= i1; i += 4) {
    std::int64_t j = j0;
    for (; j + 8 <= j1; j += 8) {
      __m256d left[4], right[4];
      rows4(in + j * p.in_step + i, p.in_step, left);
      rows4(in + (j + 4) * p.in_step + i, p.in_step, right);
      for (int k = 0; k < 4; ++k) {
        double* to = out + (i + k) * p.out_step + j;
        if constexpr (kStream) {
          _mm256_stream_pd(to, left[k]);
          _mm256_stream_pd(to + 4, right[k]);
        } else {
          _mm256_storeu_pd(to, left[k]);
          _mm256_storeu_pd(to + 4, right[k]);
        }
      }
    }
    plain<double>(p, i, i + 4, j, j1);
  }
  plain<double>(p, i, i1, j0, j1);
}
#endif

using Block = void (*)(const Plane&, std::int64_t, std::int64_t, std::int64_t, std::int64_t);

Block choose(int bytes, bool stream) {
#if defined(WEFT_X86_LEVELS)
  static const bool fast = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0;
  }();
  if (fast) {
    if (bytes == 4) return stream ? block4<true> : block4<false>;
    return stream ? block8<true> : block8<false>;
  }
#endif
  (void)stream;
  return bytes == 4 ? plain<std::uint32_t> : plain<std::uint64_t>;
}

}  // namespace

bool transpose_copy(const NDArray& dst, const NDArray& src) {
  const int bytes = elem_bytes(src.elem());
  if ((bytes != 4 && bytes != 8) || src.elem() != dst.elem() || !(src.shape() == dst.shape()))
    return false;
  // Axes of extent 1 do not matter; find the contiguous axis of either side.
  int inner_dst = -1, inner_src = -1;
  Dims others, step_dst, step_src;
  for (int i = 0; i < dst.ndim(); ++i) {
    if (dst.shape()[i] == 1) continue;
    if (dst.strides()[i] == 1 && inner_dst < 0) inner_dst = i;
    if (src.strides()[i] == 1 && inner_src < 0) inner_src = i;
  }
  if (inner_dst < 0 || inner_src < 0 || inner_dst == inner_src) return false;
  const std::int64_t m = dst.shape()[inner_src], n = dst.shape()[inner_dst];
  if (m < 8 || n < 8) return false;
  std::int64_t planes = 1;
  for (int i = 0; i < dst.ndim(); ++i) {
    if (i == inner_dst || i == inner_src) continue;
    others.push_back(dst.shape()[i]);
    step_dst.push_back(dst.strides()[i]);
    step_src.push_back(src.strides()[i]);
    planes *= dst.shape()[i];
  }
  Plane base{src.host(), dst.host(), src.strides()[inner_dst], dst.strides()[inner_src], m, n};
  // Past the caches when the result is larger than a cache and every row starts on a vector.
  const bool aligned = reinterpret_cast<std::uintptr_t>(base.out) % 32 == 0 &&
                       base.out_step * bytes % 32 == 0 && [&] {
                         for (std::int64_t s : step_dst) {
                           if (s * bytes % 32) return false;
                         }
                         return true;
                       }();
  const bool stream = aligned && dst.nbytes() >= (std::int64_t{8} << 20);
  const Block block = choose(bytes, stream);
  constexpr std::int64_t kTall = 128, kWide = 32;
  const std::int64_t strips = (m + kTall - 1) / kTall;
  runtime::Pool::shared().parallel_for(
      planes * strips, std::max<std::int64_t>(1, kParallelGrain / (kTall * n)),
      [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) {
          Plane p = base;
          std::int64_t rest = begin / strips;
          for (int i = others.size() - 1; i >= 0; --i) {
            std::int64_t x = rest % others[i];
            rest /= others[i];
            p.in += x * step_src[i] * bytes;
            p.out += x * step_dst[i] * bytes;
          }
          const std::int64_t i0 = begin % strips * kTall, i1 = std::min(m, i0 + kTall);
          for (std::int64_t j0 = 0; j0 < n; j0 += kWide)
            block(p, i0, i1, j0, std::min(n, j0 + kWide));
        }
#if defined(WEFT_X86_LEVELS)
        if (stream) _mm_sfence();
#endif
      });
  return true;
}

}  // namespace weft
