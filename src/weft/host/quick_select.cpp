// SPDX-License-Identifier: Apache-2.0
// One pass parts a row at a key: smaller ones are packed at its front, behind what was read
// already, larger ones go to a room of their own and come back behind the equal ones. Lanes are
// packed in registers and stored whole, since some processors store packed lanes one by one.

#include "weft/host/quick_select.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define WEFT_HERE __attribute__((target("avx512f,popcnt")))
#define WEFT_INLINE __attribute__((target("avx512f,popcnt"), always_inline)) inline

namespace weft {

namespace {

using I = std::int64_t;

/// Rows that a comparison sort takes.
constexpr I kFew = 48;

WEFT_INLINE __m512i all(std::uint32_t v) { return _mm512_set1_epi32(static_cast<int>(v)); }
WEFT_INLINE __m512i all(std::uint64_t v) { return _mm512_set1_epi64(static_cast<long long>(v)); }
WEFT_INLINE __mmask16 below(__m512i a, __m512i b, std::uint32_t) {
  return _mm512_cmplt_epu32_mask(a, b);
}
WEFT_INLINE __mmask8 below(__m512i a, __m512i b, std::uint64_t) {
  return _mm512_cmplt_epu64_mask(a, b);
}
WEFT_INLINE __m512i packed(__mmask16 m, __m512i v, std::uint32_t) {
  return _mm512_maskz_compress_epi32(m, v);
}
WEFT_INLINE __m512i packed(__mmask8 m, __m512i v, std::uint64_t) {
  return _mm512_maskz_compress_epi64(m, v);
}

struct Parts {
  I less, more;
};

template <typename K>
WEFT_HERE Parts part(K* x, I n, K at, K* room) {
  constexpr I kLanes = 64 / sizeof(K);
  const __m512i bound = all(at);
  I less = 0, more = 0, i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m512i v = _mm512_loadu_si512(x + i);
    const auto smaller = below(v, bound, K{}), larger = below(bound, v, K{});
    _mm512_storeu_si512(x + less, packed(smaller, v, K{}));
    _mm512_storeu_si512(room + more, packed(larger, v, K{}));
    less += _mm_popcnt_u32(smaller);
    more += _mm_popcnt_u32(larger);
  }
  for (; i < n; ++i) {
    const K v = x[i];
    x[less] = room[more] = v;
    less += v < at;
    more += at < v;
  }
  std::fill(x + less, x + n - more, at);
  std::memcpy(x + n - more, room, static_cast<std::size_t>(more) * sizeof(K));
  return {less, more};
}

/// A key near `place` of the order: of some that lie evenly in the row, the one as far along.
template <typename K>
K near(const K* x, I n, I place) {
  constexpr I kMost = 63;
  const I count = n < 2048 ? 15 : kMost;
  K drawn[kMost];
  for (I k = 0; k < count; ++k) drawn[k] = x[(2 * k + 1) * n / (2 * count)];
  std::sort(drawn, drawn + count);
  return drawn[std::min(count - 1, place * count / n)];
}

/// `first`: the place of x[0] in the whole row; `rounds`: after which a sort ends it.
template <typename K>
void select(K* x, I n, std::span<const I> places, I first, K* room, int rounds) {
  while (!places.empty() && n > 1) {
    if (n <= kFew || rounds-- == 0) return std::sort(x, x + n);
    const Parts at = part(x, n, near(x, n, places[places.size() / 2] - first), room);
    const auto behind = std::lower_bound(places.begin(), places.end(), first + at.less);
    const auto larger = std::lower_bound(behind, places.end(), first + n - at.more);
    select<K>(x, at.less, {places.begin(), behind}, first, room, rounds);
    places = {larger, places.end()};
    x += n - at.more, first += n - at.more, n = at.more;
  }
}

template <typename K>
void select_row(K* x, I n, std::span<const I> places, K* room) {
  int rounds = 16;
  for (I m = n; m > 0; m /= 2) rounds += 2;
  select(x, n, places, 0, room, rounds);
}

}  // namespace

bool quick_select_runs() { return __builtin_cpu_supports("avx512f"); }

void quick_select(std::uint32_t* x, I n, std::span<const I> places, std::uint32_t* room) {
  select_row(x, n, places, room);
}
void quick_select(std::uint64_t* x, I n, std::span<const I> places, std::uint64_t* room) {
  select_row(x, n, places, room);
}

}  // namespace weft

#else

namespace weft {

bool quick_select_runs() { return false; }
void quick_select(std::uint32_t*, std::int64_t, std::span<const std::int64_t>, std::uint32_t*) {}
void quick_select(std::uint64_t*, std::int64_t, std::span<const std::int64_t>, std::uint64_t*) {}

}  // namespace weft

#endif
