// SPDX-License-Identifier: Apache-2.0
// Arrays from nothing and from several: evenly spaced numbers, joined arrays.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "weft/array/collapse.h"
#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/array/repeat.h"
#include "weft/array/strided_copy.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

NDArray arange(const Ref<Device>& device, Elem elem, double start, double step,
               std::int64_t count) {
  NDArray out = NDArray::empty(device, elem, Dims{count});
  if (count == 0) return out;
  const bool integral = kind_of(elem) <= Kind::integer;
  const auto from = static_cast<std::int64_t>(start), by = static_cast<std::int64_t>(step);
  if (integral) {  // the last one tells whether all fit
    alignas(16) char end[16];
    for (std::int64_t i : {std::int64_t{0}, count - 1})
      write_scalar(Scalar(from + i * by), elem, end);
  }
  // Types without steps of their own are made of those that hold them.
  const Elem made = is_integer(elem) || elem == Elem::float32 || elem == Elem::float64 ? elem
                    : integral                                                         ? Elem::uint8
                               : Elem::float64;
  if (made != elem) return arange(device, made, start, step, count).astype(elem);
  if (has_grid(out)) {
    on_device().steps(out, start, step);
    return out;
  }
  std::string held(out.on_host() ? 0 : static_cast<std::size_t>(out.nbytes()), '\0');
  char* memory = out.on_host() ? out.host() : held.data();
  const auto e = static_cast<std::size_t>(elem);
  const std::int64_t width = elem_bytes(elem);
  runtime::Pool::shared().parallel_for(
      count, kParallelGrain, [&](std::int64_t i, std::int64_t end) {
        if (integral) loop_kernels().whole_steps[e](end - i, i, from, by, memory + i * width);
        else loop_kernels().real_steps[e](end - i, i, start, step, memory + i * width);
      });
  if (!out.on_host()) device->upload(*out.handle(), 0, held.data(), held.size());
  return out;
}

namespace {

/// Runs of bytes up to here are moved sooner by kernels for steps than by calls.
constexpr std::int64_t kShortRunBytes = 64;

/// Small compact arrays of one type are joined by copies of bytes.
bool copied_as_bytes(std::span<const NDArray> arrays, int axis, const NDArray& out) {
  constexpr std::int64_t kSmall = 1 << 18;
  if (!out.on_host() || out.nbytes() > kSmall) return false;
  for (const NDArray& a : arrays)
    if (a.elem() != out.elem() || !a.is_contiguous()) return false;
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= out.shape()[i];
  if (outer > 8 && out.nbytes() / outer <= kShortRunBytes) return false;
  char* to = out.host();
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const NDArray& a : arrays) {
      const std::int64_t bytes = a.nbytes() / outer;
      if (bytes > 0) std::memcpy(to, a.host() + i * bytes, static_cast<std::size_t>(bytes));
      to += bytes;
    }
  }
  return true;
}

/// One dense order of axes that all arrays have, other than row-major: the result takes it, too.
bool in_one_order(std::span<const NDArray> arrays, std::vector<int>& order) {
  if (!arrays[0].on_host() || arrays[0].is_contiguous()) return false;
  std::vector<Arg> args;
  for (const NDArray& a : arrays) {
    if (!(a.shape() == arrays[0].shape())) return false;
    args.push_back(Arg(a));
  }
  return shared_order(arrays[0].shape(), args.data(), static_cast<int>(args.size()), order);
}

}  // namespace

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
  if (std::vector<int> order; in_one_order(arrays, order)) {
    const std::vector<int> back = inverse_order(order);
    std::vector<NDArray> turned;
    for (const NDArray& a : arrays) turned.push_back(a.permute(order));
    return concat(turned, back[static_cast<std::size_t>(axis)]).permute(back);
  }
  NDArray out = NDArray::empty(first.device(), e, shape);
  if (copied_as_bytes(arrays, axis, out)) return out;
  if (!out.on_host() && on_device().concat(out, arrays, axis)) return out;
  std::int64_t at = 0;
  for (const NDArray& a : arrays) {
    assign(out.slice(axis, at, a.shape()[axis], 1), a);
    at += a.shape()[axis];
  }
  return out;
}

NDArray stack(std::span<const NDArray> arrays, int axis) {
  std::vector<NDArray> wide;
  wide.reserve(arrays.size());
  for (const NDArray& a : arrays) wide.push_back(a.expand_dims(axis));
  return concat(wide, axis);
}

NDArray repeat(const NDArray& x, std::int64_t times, int axis) {
  axis = normalize_axis(axis, x.ndim(), "repeat");
  Dims wide, shape = x.shape();  // `wide`: repetitions on an axis of their own
  for (int i = 0; i < x.ndim(); ++i) {
    wide.push_back(shape[i]);
    if (i == axis) wide.push_back(times);
  }
  checked_size(wide, elem_bytes(x.elem()));
  shape[axis] *= times;
  if (!x.on_host()) return x.expand_dims(axis + 1).broadcast_to(wide).reshape(shape);
  NDArray out = NDArray::empty(x.device(), x.elem(), shape);
  if (out.size() == 0) return out;
  const NDArray compact = x.contiguous();
  std::int64_t inner = 1;
  for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.shape()[i];
  const int bytes = elem_bytes(x.elem());
  const std::int64_t run = inner * bytes;
  const char* from = compact.host();
  char* to = out.host();
  // Few repetitions of single elements: a copy with steps for each, by pieces that stay in the
  // cache.
  constexpr std::int64_t kFew = 8, kPiece = 1024;
  runtime::Pool::shared().parallel_for(
      x.size() / inner, std::max<std::int64_t>(1, kParallelGrain / (inner * times)),
      [&](std::int64_t i, std::int64_t end) {
        if (inner == 1 && times <= kFew) {
          for (; i < end; i += kPiece) {
            for (std::int64_t k = 0; k < times; ++k)
              copy_run(bytes, to + (i * times + k) * bytes, times, from + i * bytes, 1,
                       std::min(kPiece, end - i));
          }
          return;
        }
        for (; i < end; ++i) {
          char* here = to + i * times * run;
          if (inner == 1) {
            copy_run(bytes, here, 1, from + i * bytes, 0, times);
            continue;
          }
          for (std::int64_t k = 0; k < times; ++k)
            std::memcpy(here + k * run, from + i * run, static_cast<std::size_t>(run));
        }
      });
  return out;
}

NDArray roll(const NDArray& x, std::int64_t shift, int axis) {
  axis = normalize_axis(axis, x.ndim(), "roll");
  const std::int64_t n = x.shape()[axis], s = n > 0 ? (shift % n + n) % n : 0;
  if (s == 0) return x.copy();
  const NDArray parts[2] = {x.slice(axis, n - s, s, 1), x.slice(axis, 0, n - s, 1)};
  return concat(parts, axis);
}

NDArray triangle(const NDArray& x, std::int64_t k, bool lower) {
  const int r = x.ndim();
  const std::int64_t rows = x.shape()[r - 2], n = x.shape()[r - 1], bytes = elem_bytes(x.elem());
  NDArray out = x.copy();
  if (out.size() == 0) return out;
  const std::int64_t count = out.size() / n;
  runtime::Pool::shared().parallel_for(
      count, std::max<std::int64_t>(1, (1 << 15) / n), [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) {
          // Row i keeps columns up to here, or from here on.
          const std::int64_t at = std::clamp<std::int64_t>(i % rows + k + (lower ? 1 : 0), 0, n);
          char* row = out.host() + i * n * bytes;
          if (lower) std::memset(row + at * bytes, 0, static_cast<std::size_t>((n - at) * bytes));
          else std::memset(row, 0, static_cast<std::size_t>(at * bytes));
        }
      });
  return out;
}

}  // namespace weft
