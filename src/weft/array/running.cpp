// SPDX-License-Identifier: Apache-2.0
#include "weft/array/running.h"

#include <algorithm>
#include <type_traits>

#include "weft/array/ops.h"
#include "weft/array/rows.h"

namespace weft {

namespace {

template <typename T>
constexpr Elem running_elem() {
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? Elem::float32 : Elem::float64;
  return sizeof(T) == 4 ? Elem::int32 : Elem::int64;
}

template <typename T>
void extremes_of(const T* x, std::int64_t n, bool largest, T* values, std::int64_t* places) {
  constexpr std::int64_t kNear = 16, kBlock = 128;
  const ReduceFn extreme =
      kernels().reduce[static_cast<int>(largest ? ReduceOp::max : ReduceOp::min)]
                      [static_cast<int>(running_elem<T>())];
  // Up to the next better element all results are equal, which are stored at once. It is near, or
  // the extremes of blocks say which has it.
  const auto run = [&](const auto& better) {
    for (std::int64_t at = 0, end = 0; at < n; at = end) {
      const T best = x[at];
      const auto ends = [&](T v) { return better(v, best) || is_nan(v); };
      const auto first = [&](std::int64_t from, std::int64_t to) {
        while (from < to && !ends(x[from])) ++from;
        return from;
      };
      end = first(at + 1, std::min(n, at + kNear));
      if (end == at + kNear) {
        for (; end + kBlock <= n; end += kBlock) {
          T most;
          extreme(kBlock, x + end, &most);
          if (ends(most)) break;
        }
        end = first(end, n);
      }
      std::fill(values + at, values + end, best);
      std::fill(places + at, places + end, at);
    }
  };
  if (largest) run([](T a, T b) { return a >= b; });
  else run([](T a, T b) { return a <= b; });
}

}  // namespace

std::optional<std::pair<NDArray, NDArray>> running_extremes(const NDArray& x, int axis,
                                                            bool largest) {
  const Elem e = x.elem();
  if (e == Elem::uint64 || is_complex(e)) return std::nullopt;
  const Elem wide = is_narrow_float(e)  ? Elem::float32
                    : e == Elem::uint32 ? Elem::int64
                    : elem_bytes(e) < 4 ? Elem::int32
                                        : e;
  const NDArray turned = x.transpose(axis, -1);
  const NDArray rows = wide == e ? turned.contiguous() : turned.astype(wide);
  const NDArray values = NDArray::empty(x.device(), wide, rows.shape());
  const NDArray places = NDArray::empty(x.device(), Elem::int64, rows.shape());
  const std::int64_t n = x.shape()[axis];
  const auto run = [&]<typename T>(T) {
    if (x.size() == 0) return;
    const T* const from = reinterpret_cast<const T*>(rows.host());
    T* const to = reinterpret_cast<T*>(values.host());
    auto* const at = reinterpret_cast<std::int64_t*>(places.host());
    for_rows(x.size() / n, n, [&](std::int64_t r, std::int64_t end) {
      for (; r < end; ++r) extremes_of(from + r * n, n, largest, to + r * n, at + r * n);
    });
  };
  switch (wide) {
    case Elem::float32: run(float{}); break;
    case Elem::float64: run(double{}); break;
    case Elem::int32: run(std::int32_t{}); break;
    default: run(std::int64_t{});
  }
  const auto back = [&](const NDArray& y) { return y.transpose(axis, -1).contiguous(); };
  return std::pair{back(wide == e ? values : values.astype(e)), back(places)};
}

}  // namespace weft
