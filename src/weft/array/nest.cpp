// SPDX-License-Identifier: Apache-2.0
#include "weft/array/nest.h"

#include <algorithm>
#include <cstring>

#include "weft/array/strided_copy.h"

namespace weft {

Nest make_nest(char* base, const Dims& shape, const Dims& strides, int bytes) {
  Nest nest;
  nest.base = base;
  nest.bytes = bytes;
  for (int i = 0; i < shape.size(); ++i) {
    std::int64_t extent = shape[i], stride = strides[i] * bytes;
    if (extent == 1) continue;
    int last = nest.ndim - 1;
    if (last >= 0 && nest.stride[last] == stride * extent) {
      nest.shape[last] *= extent;
      nest.stride[last] = stride;
    } else {
      nest.shape[nest.ndim] = extent;
      nest.stride[nest.ndim++] = stride;
    }
  }
  return nest;
}

Dims broadcast_strides(const NDArray& array, const Dims& shape) {
  Dims out(shape.size(), 0);
  int shift = shape.size() - array.ndim();
  for (int i = 0; i < array.ndim(); ++i) {
    out[i + shift] = array.shape()[i] == 1 ? 0 : array.strides()[i];
  }
  return out;
}

void Walker::seek(std::int64_t linear) {
  at_ = nest_.base;
  for (int i = nest_.ndim - 1; i >= 0; --i) {
    count_[i] = linear % nest_.shape[i];
    linear /= nest_.shape[i];
    at_ += count_[i] * nest_.stride[i];
  }
}

void Walker::carry(int axis) {
  for (int i = axis; i > 0 && count_[i] == nest_.shape[i]; --i) {
    at_ += nest_.stride[i - 1] - nest_.shape[i] * nest_.stride[i];
    count_[i] = 0;
    ++count_[i - 1];
  }
}

template <typename T, bool kGather>
void Walker::move(std::int64_t n, T* run) {
  constexpr int size = sizeof(T);
  constexpr std::int64_t kLeastRun = 16;  // elements for which a call of vectors pays
  if (nest_.ndim == 0) {
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (kGather) run[i] = *reinterpret_cast<T*>(at_);
      else *reinterpret_cast<T*>(at_) = run[i];
    }
    return;
  }
  const int inner = nest_.ndim - 1;
  const std::int64_t stride = nest_.stride[inner], extent = nest_.shape[inner];
  // A short row that repeats along the axis before it is doubled until enough of it is there.
  const bool repeats = kGather && inner > 0 && stride == static_cast<std::int64_t>(sizeof(T)) &&
                       nest_.stride[inner - 1] == 0;
  while (n > 0) {
    if (repeats && count_[inner] == 0 && n >= 2 * extent) {
      const std::int64_t times = std::min(n / extent, nest_.shape[inner - 1] - count_[inner - 1]);
      const std::int64_t all = times * extent;
      std::memcpy(run, at_, static_cast<std::size_t>(extent) * sizeof(T));
      for (std::int64_t have = extent; have < all;) {
        const std::int64_t more = std::min(have, all - have);
        std::memcpy(run + have, run, static_cast<std::size_t>(more) * sizeof(T));
        have += more;
      }
      run += all;
      n -= all;
      count_[inner - 1] += times;
      carry(inner - 1);
      continue;
    }
    std::int64_t m = std::min(n, extent - count_[inner]);
    char* at = at_;
    if (stride == static_cast<std::int64_t>(sizeof(T))) {
      if constexpr (kGather) {
        std::memcpy(run, at, static_cast<std::size_t>(m) * sizeof(T));
      } else {
        std::memcpy(at, run, static_cast<std::size_t>(m) * sizeof(T));
      }
    } else if (kGather && stride == 0) {
      std::fill_n(run, m, *reinterpret_cast<T*>(at));
    } else if (const std::int64_t step = stride / size; m >= kLeastRun && step * size == stride) {
      if constexpr (kGather) copy_run(size, reinterpret_cast<char*>(run), 1, at, step, m);
      else copy_run(size, at, step, reinterpret_cast<const char*>(run), 1, m);
    } else {
      for (std::int64_t i = 0; i < m; ++i) {
        if constexpr (kGather) {
          run[i] = *reinterpret_cast<T*>(at + i * stride);
        } else {
          *reinterpret_cast<T*>(at + i * stride) = run[i];
        }
      }
    }
    run += m;
    n -= m;
    at_ += m * stride;
    count_[inner] += m;
    carry(inner);
  }
}

template <bool kGather>
void Walker::dispatch(std::int64_t n, void* run) {
  struct Wide {
    std::uint64_t a, b;
  };
  switch (nest_.bytes) {
    case 1: return move<std::uint8_t, kGather>(n, static_cast<std::uint8_t*>(run));
    case 2: return move<std::uint16_t, kGather>(n, static_cast<std::uint16_t*>(run));
    case 4: return move<std::uint32_t, kGather>(n, static_cast<std::uint32_t*>(run));
    case 8: return move<std::uint64_t, kGather>(n, static_cast<std::uint64_t*>(run));
    default: return move<Wide, kGather>(n, static_cast<Wide*>(run));
  }
}

void Walker::gather(std::int64_t n, void* out) { dispatch<true>(n, out); }
void Walker::scatter(std::int64_t n, const void* in) { dispatch<false>(n, const_cast<void*>(in)); }

}  // namespace weft
