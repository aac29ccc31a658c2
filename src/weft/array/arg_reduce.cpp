// SPDX-License-Identifier: Apache-2.0
// Positions of extremes: the extreme comes from the reduction's kernels, block by block, and its
// first place is looked up in the block that has it. NaN counts as the extreme.

#include <algorithm>
#include <cstring>

#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/array/ops/device_structured.h"
#include "weft/array/with_type.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Four blocks are looked through at once; those of a short row are short.
constexpr std::int64_t kBlock = 4096, kShortBlock = 512, kPiece = kBlock * 64;

constexpr std::int32_t kStep = 64;

template <typename T>
bool is_it(T x, T wanted) {
  return x == wanted || (wanted != wanted && x != x);
}

/// The first step of 64 that has what `hit` asks for, else where no whole step is left.
template <typename T, typename F>
std::int64_t step_of(const T* x, std::int64_t n, F hit) {
  std::int64_t at = 0;
  for (; at + kStep <= n; at += kStep) {
    int found = 0;
    for (std::int64_t i = 0; i < kStep; ++i) found |= hit(x[at + i]);
    if (found) break;
  }
  return at;
}

/// The first place of a value that is there; in the step that has it, the least of all places.
template <typename T>
std::int64_t first_of(const T* x, std::int64_t n, T wanted) {
  const bool nan = wanted != wanted;
  std::int64_t at = nan ? step_of(x, n, [](T v) { return v != v; })
                        : step_of(x, n, [wanted](T v) { return v == wanted; });
  if (n < kStep) {
    while (at + 1 < n && !is_it(x[at], wanted)) ++at;
    return at;
  }
  at = std::min(at, n - kStep);  // what the last step has of the one before was looked through
  std::int32_t least = kStep;
  auto places = [&](auto hit) {
    for (std::int32_t i = 0; i < kStep; ++i) {
      const std::int32_t here = hit(x[at + i]) ? i : kStep;
      least = here < least ? here : least;
    }
  };
  if (nan) places([](T v) { return v != v; });
  else places([wanted](T v) { return v == wanted; });
  return at + least;
}

/// Is `a` to be preferred to `b`, which stands before it?
template <typename T>
bool better(T a, T b, bool largest) {
  if (b != b) return false;
  return a != a || (largest ? a > b : a < b);
}

template <typename T>
struct Best {
  T value;
  std::int64_t at;
};

template <typename T>
class Finder {
 public:
  Finder(ReduceFn reduce, ReduceFourFn four, bool largest)
      : reduce_(reduce), four_(four), largest_(largest) {}
  Best<T> best(const T* x, std::int64_t n) const {
    const std::int64_t size = n < 4 * kBlock ? kShortBlock : kBlock;
    T value{};
    std::int64_t block = 0;
    auto take = [&](std::int64_t at, T one) {
      if (at && !better(one, value, largest_)) return;
      value = one;
      block = at;
    };
    std::int64_t at = 0;
    for (; at + 4 * size <= n; at += 4 * size) {
      T each[4];
      four(x + at, size, size, each);
      for (int k = 0; k < 4; ++k) take(at + k * size, each[k]);
    }
    for (; at < n; at += size) {
      T one;
      reduce_(std::min(size, n - at), x + at, &one);
      take(at, one);
    }
    return {value, block + first_of(x + block, std::min(size, n - block), value)};
  }
  /// Rows of n, contiguous; one long row is shared by threads in pieces.
  void rows(const T* x, std::int64_t count, std::int64_t n, std::int64_t* out) const {
    runtime::Pool& pool = runtime::Pool::shared();
    if (count == 1 && n > kPiece) {
      std::vector<Best<T>> parts(static_cast<std::size_t>((n + kPiece - 1) / kPiece));
      pool.parallel_for(static_cast<std::int64_t>(parts.size()), 1,
                        [&](std::int64_t p, std::int64_t end) {
                          for (; p < end; ++p) {
                            const std::int64_t from = p * kPiece;
                            Best<T> b = best(x + from, std::min(kPiece, n - from));
                            parts[static_cast<std::size_t>(p)] = {b.value, from + b.at};
                          }
                        });
      Best<T> all = parts[0];
      for (const Best<T>& b : parts) {
        if (better(b.value, all.value, largest_)) all = b;
      }
      *out = all.at;
      return;
    }
    pool.parallel_for(count, std::max<std::int64_t>(1, kParallelGrain / n),
                      [&](std::int64_t r, std::int64_t end) {
                        for (; n <= kBlock && r + 4 <= end; r += 4) {
                          T each[4];
                          four(x + r * n, n, n, each);
                          for (int k = 0; k < 4; ++k)
                            out[r + k] = first_of(x + (r + k) * n, n, each[k]);
                        }
                        for (; r < end; ++r) out[r] = best(x + r * n, n).at;
                      });
  }

 private:
  /// The extremes of four runs of n, `step` apart.
  void four(const T* x, std::int64_t n, std::int64_t step, T* out) const {
    const void* in[4] = {x, x + step, x + 2 * step, x + 3 * step};
    four_(n, in, out);
  }

  ReduceFn reduce_;
  ReduceFourFn four_;
  bool largest_;
};

/// Blocks of n rows of m columns: the last row from below that has its column's extreme.
template <typename T>
void columns(const T* x, const T* extreme, std::int64_t outer, std::int64_t n, std::int64_t m,
             std::int64_t* out) {
  constexpr std::int64_t kStrip = 512;
  const std::int64_t strips = (m + kStrip - 1) / kStrip;
  runtime::Pool::shared().parallel_for(
      outer * strips, std::max<std::int64_t>(1, kParallelGrain / (n * std::min(m, kStrip))),
      [&](std::int64_t t, std::int64_t end) {
        std::int32_t at[kStrip];
        for (; t < end; ++t) {
          const std::int64_t o = t / strips, from = t % strips * kStrip,
                             width = std::min(kStrip, m - from);
          const T* top = extreme + o * m + from;
          std::fill_n(at, width, 0);
          for (std::int64_t r = n; r-- > 0;) {
            const T* row = x + (o * n + r) * m + from;
            const auto here = static_cast<std::int32_t>(r);
            for (std::int64_t i = 0; i < width; ++i) {
              // A column of NaN is told by its extreme, which equals nothing.
              const bool hit = (row[i] == top[i]) | ((top[i] != top[i]) & (row[i] != row[i]));
              at[i] = hit ? here : at[i];
            }
          }
          for (std::int64_t i = 0; i < width; ++i) out[o * m + from + i] = at[i];
        }
      });
}

}  // namespace

NDArray arg_reduce(bool largest, const NDArray& x, std::optional<int> axis, bool keepdims) {
  std::string_view name = largest ? "argmax" : "argmin";
  if (is_complex(x.elem())) {
    throw Error(ErrorKind::dtype, cat("array.", name, ".dtype"),
                cat(name, " is not defined for ", name_of(x.elem())));
  }
  const int a = axis ? normalize_axis(*axis, x.ndim(), name) : -1;
  Dims shape;
  for (int i = 0; i < x.ndim(); ++i) {
    if (axis && i != a) shape.push_back(x.shape()[i]);
    else if (keepdims) shape.push_back(1);
  }
  const bool narrow = x.elem() == Elem::float16 || x.elem() == Elem::bfloat16;
  const Elem kernel = narrow ? Elem::float32 : x.elem();
  NDArray flat = axis ? x : x.reshape(Dims{x.size()});
  const int at = axis ? a : 0;
  const std::int64_t n = flat.shape()[at];
  NDArray out = NDArray::empty(x.device(), Elem::int64, shape);
  if (out.size() == 0) return out;
  if (n == 0) {
    throw Error(ErrorKind::value, cat("array.", name, ".empty"),
                cat(name, " of no elements: shape ", to_string(x.shape()), " has an empty axis"));
  }
  auto result = [&] { return reinterpret_cast<std::int64_t*>(out.host()); };
  const ReduceOp op = largest ? ReduceOp::max : ReduceOp::min;
  std::int64_t inner = 1;
  for (int i = at + 1; i < flat.ndim(); ++i) inner *= flat.shape()[i];
  if (x.on_host() && inner >= 16 && flat.is_contiguous() && flat.elem() == kernel &&
      n <= INT32_MAX) {
    Axes axes;
    axes.all = false;
    axes.axes.push_back(at);
    const NDArray extreme = reduce(op, flat, axes, false);
    with_type(kernel, [&]<typename T>(T) {
      columns(reinterpret_cast<const T*>(flat.host()), reinterpret_cast<const T*>(extreme.host()),
              flat.size() / (n * inner), n, inner, result());
    });
    return out;
  }
  std::vector<int> order;
  for (int i = 0; i < flat.ndim(); ++i) {
    if (i != at) order.push_back(i);
  }
  order.push_back(at);
  NDArray moved = flat.permute(order);
  moved = moved.elem() == kernel ? moved.contiguous() : moved.astype(kernel);
  if (!x.on_host()) return device_arg_reduce(largest, moved).reshape(shape);
  const auto o = static_cast<int>(op), e = static_cast<int>(kernel);
  const ReduceFn fn = kernels().reduce[o][e];
  const ReduceFourFn four = kernels().reduce_four[o][e];
  with_type(kernel, [&]<typename T>(T) {
    Finder<T>(fn, four, largest)
        .rows(reinterpret_cast<const T*>(moved.host()), out.size(), n, result());
  });
  return out;
}

}  // namespace weft
