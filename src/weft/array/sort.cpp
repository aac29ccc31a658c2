// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis, stable, NaN last in either direction; positions in sorted arrays.

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/array/ops/device_structured.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

template <typename T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}
template <typename T>
struct Before {
  bool descending;
  bool operator()(T a, T b) const {
    if (is_nan(a) || is_nan(b)) return !is_nan(a) && is_nan(b);
    return descending ? a > b : a < b;
  }
};

template <typename F>
auto with_type(Elem e, F&& f) {
  switch (e) {
    case Elem::boolean:
    case Elem::uint8: return f(std::uint8_t{});
    case Elem::int8: return f(std::int8_t{});
    case Elem::int16: return f(std::int16_t{});
    case Elem::int32: return f(std::int32_t{});
    case Elem::int64: return f(std::int64_t{});
    case Elem::uint16: return f(std::uint16_t{});
    case Elem::uint32: return f(std::uint32_t{});
    case Elem::uint64: return f(std::uint64_t{});
    case Elem::float64: return f(double{});
    default: return f(float{});
  }
}

NDArray rows_of(const NDArray& x, int axis, std::string_view name) {
  if (is_complex(x.elem())) {
    throw Error(ErrorKind::dtype, cat("array.", name, ".dtype"),
                cat(name, " is not defined for ", name_of(x.elem())));
  }
  NDArray moved = x.transpose(axis, -1);
  Elem kernel = x.elem() == Elem::float16 || x.elem() == Elem::bfloat16 ? Elem::float32 : x.elem();
  return kernel == x.elem() ? moved.copy() : moved.astype(kernel);
}

}  // namespace

NDArray sort(const NDArray& x, int axis, bool descending) {
  axis = normalize_axis(axis, x.ndim(), "sort");
  NDArray rows = rows_of(x, axis, "sort");
  std::int64_t n = x.shape()[axis];
  if (!x.on_host()) {
    NDArray out = rows.size() > 0 ? device_sort(rows, descending, false) : rows;
    return out.transpose(axis, -1).astype(x.elem());
  }
  if (rows.size() > 0) {
    with_type(rows.elem(), [&]<typename T>(T) {
      T* data = reinterpret_cast<T*>(rows.host());
      runtime::Pool::shared().parallel_for(rows.size() / n, std::max<std::int64_t>(1, 4096 / n),
                                           [&](std::int64_t r, std::int64_t end) {
                                             for (; r < end; ++r)
                                               std::stable_sort(data + r * n, data + (r + 1) * n,
                                                                Before<T>{descending});
                                           });
    });
  }
  NDArray out = rows.transpose(axis, -1);
  return rows.elem() == x.elem() ? out.contiguous() : out.astype(x.elem());
}

NDArray argsort(const NDArray& x, int axis, bool descending) {
  axis = normalize_axis(axis, x.ndim(), "argsort");
  NDArray rows = rows_of(x, axis, "argsort");
  if (!x.on_host()) {
    if (rows.size() == 0) return NDArray::empty(x.device(), Elem::int64, x.shape());
    return device_sort(rows, descending, true).transpose(axis, -1).contiguous();
  }
  NDArray order = NDArray::empty(x.device(), Elem::int64, rows.shape());
  std::int64_t n = x.shape()[axis];
  if (rows.size() > 0) {
    with_type(rows.elem(), [&]<typename T>(T) {
      const T* data = reinterpret_cast<const T*>(rows.host());
      auto* out = reinterpret_cast<std::int64_t*>(order.host());
      runtime::Pool::shared().parallel_for(
          rows.size() / n, std::max<std::int64_t>(1, 4096 / n),
          [&](std::int64_t r, std::int64_t end) {
            for (; r < end; ++r) {
              std::int64_t* line = out + r * n;
              const T* values = data + r * n;
              std::iota(line, line + n, 0);
              std::stable_sort(
                  line, line + n,
                  [values, before = Before<T>{descending}](std::int64_t a, std::int64_t b) {
                    return before(values[a], values[b]);
                  });
            }
          });
    });
  }
  return order.transpose(axis, -1).contiguous();
}

NDArray searchsorted(const NDArray& x, const NDArray& values, bool right) {
  if (x.ndim() != 1) {
    throw Error(ErrorKind::shape, "array.searchsorted.rank",
                cat("searchsorted needs a 1-d sorted array, got ", describe(x)));
  }
  check_same_device(x, values, "searchsorted");
  Elem e = promote(x.elem(), values.elem());
  Elem kernel = e == Elem::float16 || e == Elem::bfloat16 ? Elem::float32 : e;
  if (!x.on_host()) return device_searchsorted(x.astype(kernel), values.astype(kernel), right);
  NDArray sorted = x.astype(kernel), wanted = values.astype(kernel);
  NDArray out = NDArray::empty(x.device(), Elem::int64, values.shape());
  with_type(kernel, [&]<typename T>(T) {
    const T* begin = reinterpret_cast<const T*>(sorted.host());
    const T* end = begin + sorted.size();
    const T* v = reinterpret_cast<const T*>(wanted.host());
    auto* o = reinterpret_cast<std::int64_t*>(out.host());
    for (std::int64_t i = 0; i < wanted.size(); ++i) {
      o[i] = (right ? std::upper_bound(begin, end, v[i], Before<T>{false})
                    : std::lower_bound(begin, end, v[i], Before<T>{false})) -
             begin;
    }
  });
  return out;
}

}  // namespace weft
