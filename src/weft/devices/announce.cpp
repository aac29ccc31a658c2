// SPDX-License-Identifier: Apache-2.0
// What arrays ask of devices (array/on_device.h), answered by programs for grids of threads and,
// for devices without one, by those of machines.

#include "weft/array/on_device.h"
#include "weft/devices/complex.h"
#include "weft/devices/dispatch.h"
#include "weft/devices/grid.h"
#include "weft/devices/machine.h"
#include "weft/devices/operators.h"
#include "weft/devices/pending_checks.h"
#include "weft/devices/program_cache.h"
#include "weft/devices/reduce_program.h"
#include "weft/devices/structured.h"
#include "weft/operators/steps.h"

namespace weft {

namespace {

class Operators final : public DeviceOperators {
 public:
  bool has_grid(const Ref<Device>& device) const override {
    return device::grid_of(device).present();
  }
  bool packs(const Ref<Device>& device, Elem elem) const override {
    return machine_of(device).packs(elem);
  }
  void settle(const Ref<Device>& device) const override { settle_pending(device); }

  void elementwise(Op op, Elem compute, const NDArray& out,
                   std::span<const Arg> args) const override {
    device_elementwise(op, compute, out, args);
  }
  bool fill(const NDArray& out, const Scalar& value) const override {
    return device_fill(out, value);
  }
  bool select(const NDArray& out, const NDArray& condition, const Arg& a,
              const Arg& b) const override {
    return device_select(out, condition, a, b);
  }
  void where(const NDArray& out, const NDArray& condition, const Arg& a,
             const Arg& b) const override {
    if (!device_select(out, condition, a, b)) device_where(out, condition, a, b);
  }
  void copy(const NDArray& dst, const NDArray& src) const override { device_copy(dst, src); }
  bool concat(const NDArray& out, std::span<const NDArray> arrays, int axis) const override {
    return grid_concat(out, arrays, axis);
  }
  void steps(const NDArray& out, double start, double step) const override {
    const bool integral = kind_of(out.elem()) <= Kind::integer;
    ProgramCall call(out.device());
    call.array(out);
    if (integral) {
      call.integer(static_cast<std::int64_t>(start)).integer(static_cast<std::int64_t>(step));
    } else {
      call.real(start).real(step);
    }
    call.integer(out.size())
        .integer((out.size() + operators::kStepsThreads - 1) / operators::kStepsThreads);
    call.run({"steps", {static_cast<int>(out.elem())}},
             [&] { return operators::steps_program(std::string(name_of(out.elem())), integral); });
  }
  NDArray random(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                 std::int64_t count, Elem elem, operators::RandomNumbers numbers) const override {
    NDArray out = NDArray::empty(device, elem, Dims{count});
    if (count == 0) return out;
    const std::int64_t per = operators::random_each(numbers) * operators::kRandomThreads;
    ProgramCall call(device);
    call.array(out)
        .integer(static_cast<std::int64_t>(seed))
        .integer(static_cast<std::int64_t>(first))
        .integer(count)
        .integer((count + per - 1) / per);
    call.run({"random", {static_cast<int>(numbers)}},
             [&] { return operators::random_program(numbers); });
    return out;
  }

  void reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
              std::uint64_t mask) const override {
    device_reduce(op, kernel, out, x, mask);
  }
  NDArray scan(ReduceOp op, const NDArray& x, int axis, Elem elem) const override {
    if (is_complex(elem)) return complex_scan(op, x, axis, elem);
    return weft::has_grid(x) ? grid_scan(op, x, axis, elem) : device_scan(op, x, axis, elem);
  }
  void extreme_positions(bool largest, const NDArray& out, const NDArray& x,
                         std::uint64_t mask) const override {
    arg_reduce_program(largest, out, x, mask);
  }
  NDArray extreme_positions(bool largest, const NDArray& x) const override {
    return device_arg_reduce(largest, x);
  }
  void logsumexp(const NDArray& out, const NDArray& x, std::uint64_t mask) const override {
    logsumexp_program(out, x, mask);
  }
  bool has_rows(const Ref<Device>& device, std::int64_t columns) const override {
    return device::row_kernel_fits(device, columns);
  }
  void rows(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in,
            double eps) const override {
    device::grid_rows(kind, out, in, eps);
  }
  void rows_along(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in,
                  int axis) const override {
    device::grid_rows_along(kind, out, in, axis);
  }

  bool has_products(const NDArray& x) const override { return device_has_contraction(x); }
  void matmul(const NDArray& out, const NDArray& a, const NDArray& b) const override {
    device_matmul(out, a, b);
  }

  NDArray gather(const NDArray& x, std::span<const NDArray> indices, int outer) const override {
    return weft::has_grid(x) ? grid_gather(x, indices, outer) : device_gather(x, indices);
  }
  NDArray take_along(const NDArray& x, const NDArray& indices, int axis) const override {
    return weft::has_grid(x) ? grid_take_along(x, indices, axis)
                             : device_take_along(x, indices, axis);
  }
  void scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
               bool accumulate, Checked checked) const override {
    if (weft::has_grid(x)) grid_scatter(x, indices, value, accumulate, checked);
    else device_scatter(x, indices, value, accumulate);
  }
  std::vector<NDArray> nonzero(const NDArray& x) const override {
    return weft::has_grid(x) ? grid_nonzero(x) : device_nonzero(x);
  }
  NDArray select_marked(const NDArray& x, const NDArray& mask) const override {
    return grid_select(x, mask);
  }
  NDArray sort(const NDArray& x, bool descending, bool positions) const override {
    return weft::has_grid(x) ? grid_sort(x, descending, positions)
                             : device_sort(x, descending, positions);
  }
  std::optional<NDArray> best(const NDArray& x, std::int64_t k, bool largest) const override {
    return weft::has_grid(x) ? grid_best(x, k, largest) : std::nullopt;
  }
  NDArray searchsorted(const NDArray& x, const NDArray& values, bool right) const override {
    return weft::has_grid(x) ? grid_searchsorted(x, values, right)
                             : device_searchsorted(x, values, right);
  }
};

int announced() {
  static const Operators operators;
  announce(operators);
  return 1;
}

}  // namespace
}  // namespace weft

/// Named by the linker's command (CMakeLists.txt), so that archives give this object away.
extern "C" {
extern const int weft_devices_announced;
const int weft_devices_announced = weft::announced();
}
