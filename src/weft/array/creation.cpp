// SPDX-License-Identifier: Apache-2.0
// Arrays from nothing and from several: evenly spaced numbers, joined arrays.

#include <string>

#include "weft/array/device_kernel.h"
#include "weft/array/loop_kernels.h"
#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/array/program_cache.h"
#include "weft/operators/steps.h"
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
  if (device::grid_of(device).present) {
    ProgramCall call(device);
    call.array(out);
    if (integral) call.integer(from).integer(by);
    else call.real(start).real(step);
    call.integer(count).integer((count + operators::kStepsThreads - 1) / operators::kStepsThreads);
    call.run({"steps", {static_cast<int>(elem)}},
             [&] { return operators::steps_program(std::string(name_of(elem)), integral); });
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
