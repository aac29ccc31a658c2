// SPDX-License-Identifier: Apache-2.0
#pragma once
// What arrays ask of devices whose memory the host cannot address. The component `devices` answers:
// it writes programs, has them built for the device and launches them. It announces itself where it
// is linked, so arrays of the host need none of it.

#include <optional>
#include <span>
#include <vector>

#include "weft/array/ops.h"
#include "weft/operators/random.h"

namespace weft {

class DeviceOperators {
 public:
  virtual ~DeviceOperators() = default;

  /// Programs run on a grid of blocks of threads.
  virtual bool has_grid(const Ref<Device>& device) const = 0;
  /// Elements are packed into words, so memory is whole words.
  virtual bool packs(const Ref<Device>& device, Elem elem) const = 0;
  /// Waits for nothing: throws what a finished check has found (devices/pending_checks.h).
  virtual void settle(const Ref<Device>& device) const = 0;

  /// out = row(args). Throws Error(device, "array.<op>.kernel") when there is no way.
  virtual void elementwise(Op op, Elem compute, const NDArray& out,
                           std::span<const Arg> args) const = 0;
  /// All elements become `value`; false where the device has no such kernel.
  virtual bool fill(const NDArray& out, const Scalar& value) const = 0;
  /// out = condition ? a : b, operands broadcast; out may be an operand. False where the device has
  /// no such kernel.
  virtual bool select(const NDArray& out, const NDArray& condition, const Arg& a,
                      const Arg& b) const = 0;
  /// The same for any device; out is no operand.
  virtual void where(const NDArray& out, const NDArray& condition, const Arg& a,
                     const Arg& b) const = 0;
  /// dst = src, converted, broadcast; not overlapping; one device.
  virtual void copy(const NDArray& dst, const NDArray& src) const = 0;
  /// out = the arrays side by side along the axis; false, and nothing written, where a copy of each
  /// is the way.
  virtual bool concat(const NDArray& out, std::span<const NDArray> arrays, int axis) const = 0;
  /// out[i] = start + i * step for compact `out` of a type with steps of its own; for devices with
  /// a grid.
  virtual void steps(const NDArray& out, double start, double step) const = 0;
  /// Random numbers of counters from `first` on; for devices with a grid.
  virtual NDArray random(const Ref<Device>& device, std::uint64_t seed, std::uint64_t first,
                         std::int64_t count, Elem elem, operators::RandomNumbers numbers) const = 0;

  /// out[kept] = combination over the axes in `mask`; out is compact in the order of x's kept axes.
  virtual void reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                      std::uint64_t mask) const = 0;
  virtual NDArray scan(ReduceOp op, const NDArray& x, int axis, Elem elem) const = 0;
  /// Positions of the first extreme, NaN before all else. With a grid: over the axes in `mask`, in
  /// their row-major order, `out` int64 and compact. Without: of x (..., n), n > 0.
  virtual void extreme_positions(bool largest, const NDArray& out, const NDArray& x,
                                 std::uint64_t mask) const = 0;
  virtual NDArray extreme_positions(bool largest, const NDArray& x) const = 0;
  /// log(sum(exp(x))) over the axes in `mask`, compact, of x's type; for devices with a grid.
  virtual void logsumexp(const NDArray& out, const NDArray& x, std::uint64_t mask) const = 0;
  /// Whether `rows` takes rows of so many elements.
  virtual bool has_rows(const Ref<Device>& device, std::int64_t columns) const = 0;
  virtual void rows(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in,
                    double eps) const = 0;
  /// Of compact arrays on a device with a grid, along another axis than the last.
  virtual void rows_along(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in,
                          int axis) const = 0;

  /// Whether products of arrays like this one have a kernel of their own.
  virtual bool has_products(const NDArray& x) const = 0;
  /// out (batch, m, n) = a (batch, m, k) times b (batch, k, n), any strides, out compact.
  virtual void matmul(const NDArray& out, const NDArray& a, const NDArray& b) const = 0;

  /// x at the indices, which stand for axes from `outer` on; with a grid only may `outer` be > 0.
  virtual NDArray gather(const NDArray& x, std::span<const NDArray> indices,
                         int outer = 0) const = 0;
  /// Elements of x along `axis`, at `indices` of x's other extents; real numbers.
  virtual NDArray take_along(const NDArray& x, const NDArray& indices, int axis) const = 0;
  /// Equal indices: the last value stands, or all are added when `accumulate`.
  virtual void scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
                       bool accumulate, Checked checked) const = 0;
  virtual std::vector<NDArray> nonzero(const NDArray& x) const = 0;
  /// x[mask] of equal shapes; for devices with a grid.
  virtual NDArray select_marked(const NDArray& x, const NDArray& mask) const = 0;
  /// Along the last axis, NaN last, stable; compact rows without a grid.
  virtual NDArray sort(const NDArray& x, bool descending, bool positions) const = 0;
  /// The places of the k first elements along the last axis in sorted order; nothing where sorting
  /// is as fast.
  virtual std::optional<NDArray> best(const NDArray& x, std::int64_t k, bool largest) const = 0;
  virtual NDArray searchsorted(const NDArray& x, const NDArray& values, bool right) const = 0;
};

/// The operators that are linked in.
const DeviceOperators& on_device();
/// They announce themselves; the object lives as long as the process.
void announce(const DeviceOperators& operators);

inline bool has_grid(const NDArray& x) { return !x.on_host() && on_device().has_grid(x.device()); }

}  // namespace weft
