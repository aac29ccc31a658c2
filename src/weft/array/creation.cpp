// SPDX-License-Identifier: Apache-2.0
// Arrays from nothing and from several: evenly spaced numbers, joined arrays.

#include <string>
#include <type_traits>

#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/runtime/pool.h"

namespace weft {

NDArray arange(const Ref<Device>& device, Elem elem, double start, double step,
               std::int64_t count) {
  NDArray out = NDArray::empty(device, elem, Dims{count});
  if (count == 0) return out;
  const int width = elem_bytes(elem);
  std::string held(out.on_host() ? 0 : static_cast<std::size_t>(out.nbytes()), '\0');
  char* memory = out.on_host() ? out.host() : held.data();
  // The last one tells whether all integers fit.
  alignas(16) char last[16];
  const bool integral = kind_of(elem) <= Kind::integer;
  const auto from = static_cast<std::int64_t>(start), by = static_cast<std::int64_t>(step);
  for (std::int64_t i : {std::int64_t{0}, count - 1}) {
    if (integral) write_scalar(Scalar(from + i * by), elem, last);
  }
  auto fill = [&]<typename T>(T, auto&& value) {
    T* to = reinterpret_cast<T*>(memory);
    runtime::Pool::shared().parallel_for(count, kParallelGrain,
                                         [&](std::int64_t i, std::int64_t end) {
                                           for (; i < end; ++i) to[i] = value(i);
                                         });
  };
  auto whole = [&]<typename T>(T zero) {
    // Wraps as the type does; the ends are known to fit.
    using W = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    fill(zero, [a = static_cast<W>(from), b = static_cast<W>(by)](std::int64_t i) {
      return static_cast<T>(a + static_cast<W>(i) * b);
    });
  };
  auto real = [start, step](std::int64_t i) { return start + static_cast<double>(i) * step; };
  switch (elem) {
    case Elem::int8:
    case Elem::uint8: whole(std::uint8_t{}); break;
    case Elem::int16:
    case Elem::uint16: whole(std::uint16_t{}); break;
    case Elem::int32:
    case Elem::uint32: whole(std::uint32_t{}); break;
    case Elem::int64:
    case Elem::uint64: whole(std::uint64_t{}); break;
    case Elem::float32:
      fill(float{}, [&](std::int64_t i) { return static_cast<float>(real(i)); });
      break;
    case Elem::float64: fill(double{}, real); break;
    default: {
      for (std::int64_t i = 0; i < count; ++i) {
        Scalar value = integral ? Scalar(from + i * by) : Scalar(real(i));
        write_scalar(value, elem, memory + i * width);
      }
    }
  }
  if (!out.on_host()) device->upload(*out.handle(), 0, held.data(), held.size());
  return out;
}

NDArray concat(std::span<const NDArray> arrays, int axis) {
  if (arrays.empty()) throw Error(ErrorKind::value, "array.concat.empty", "concat of 0 arrays");
  const NDArray& first = arrays[0];
  axis = normalize_axis(axis, first.ndim(), "concat");
  Elem e = first.elem();
  Dims shape = first.shape();
  for (std::size_t k = 1; k < arrays.size(); ++k) {
    const NDArray& a = arrays[k];
    check_same_device(first, a, "concat");
    e = promote(e, a.elem());
    bool fits = a.ndim() == first.ndim();
    for (int i = 0; fits && i < a.ndim(); ++i) fits = i == axis || a.shape()[i] == first.shape()[i];
    if (!fits) {
      throw Error(ErrorKind::shape, "array.concat.shape",
                  cat("concat along axis ", axis, " of shapes ", to_string(first.shape()), " and ",
                      to_string(a.shape())))
          .note("rule: all other extents are equal");
    }
    shape[axis] += a.shape()[axis];
  }
  NDArray out = NDArray::empty(first.device(), e, shape);
  std::int64_t at = 0;
  for (const NDArray& a : arrays) {
    assign(out.slice(axis, at, a.shape()[axis], 1), a);
    at += a.shape()[axis];
  }
  return out;
}

}  // namespace weft
