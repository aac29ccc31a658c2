// SPDX-License-Identifier: Apache-2.0
#include "weft/array/feed.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weft {

void prepare(Feed& feed, const NDArray& array, const Dims& shape, Elem kernel) {
  feed.bytes = elem_bytes(array.elem());
  feed.kernel_bytes = elem_bytes(kernel);
  feed.base = array.host();
  if (array.elem() != kernel) {
    feed.cast = kernels().cast[static_cast<int>(array.elem())][static_cast<int>(kernel)];
  }
  if (array.shape() == shape && array.is_contiguous()) {
    feed.mode = feed.cast ? Feed::Mode::cast : Feed::Mode::direct;
    return;
  }
  feed.nest = make_nest(array.host(), shape, broadcast_strides(array, shape), feed.bytes);
  feed.mode = feed.nest.constant()     ? Feed::Mode::constant
              : feed.nest.contiguous() ? (feed.cast ? Feed::Mode::cast : Feed::Mode::direct)
                                       : Feed::Mode::gather;
}

void fill_constant(const Feed& feed, std::int64_t n, char* to) {
  alignas(16) char one[16];
  if (feed.cast) {
    feed.cast(1, feed.base, one);
  } else {
    std::memcpy(one, feed.base, static_cast<std::size_t>(feed.kernel_bytes));
  }
  auto spread = [&]<typename T>(T) {
    T value;
    std::memcpy(&value, one, sizeof(T));
    T* out = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < n; ++i) out[i] = value;
  };
  struct Wide {
    std::uint64_t a, b;
  };
  switch (feed.kernel_bytes) {
    case 1: return spread(std::uint8_t{});
    case 2: return spread(std::uint16_t{});
    case 4: return spread(std::uint32_t{});
    case 8: return spread(std::uint64_t{});
    default: return spread(Wide{});
  }
}

const void* bring(const Feed& feed, Walker* walker, std::int64_t begin, std::int64_t n,
                  Slot& slot) {
  switch (feed.mode) {
    case Feed::Mode::direct: return feed.base + begin * feed.bytes;
    case Feed::Mode::constant: return slot.data;
    case Feed::Mode::single: return feed.base;
    case Feed::Mode::cast:
      feed.cast(n, feed.base + begin * feed.bytes, slot.data);
      return slot.data;
    case Feed::Mode::gather: break;
  }
  if (!feed.cast) {
    walker->gather(n, slot.data);
    return slot.data;
  }
  Slot raw;
  walker->gather(n, raw.data);
  feed.cast(n, raw.data, slot.data);
  return slot.data;
}

void stream_copy(char* out, const char* in, std::int64_t bytes) {
#if defined(__SSE2__)
  std::int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    for (int k = 0; k < 64; k += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + i + k),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(in + i + k)));
    }
  }
  std::memcpy(out + i, in + i, static_cast<std::size_t>(bytes - i));
#else
  std::memcpy(out, in, static_cast<std::size_t>(bytes));
#endif
}

void stream_end() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

Feed scalar_feed(const Scalar& scalar, Elem kernel, char* one) {
  write_scalar(scalar, kernel, one);
  Feed feed;
  feed.mode = Feed::Mode::constant;
  feed.base = one;
  feed.bytes = feed.kernel_bytes = elem_bytes(kernel);
  return feed;
}

}  // namespace weft
