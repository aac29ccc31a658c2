// SPDX-License-Identifier: Apache-2.0
// Running combinations on devices with a grid: how a line is cut, and the launches.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/operators/radix_sort.h"
#include "weft/operators/scan.h"

namespace weft {

namespace {

using operators::ScanSpec;

operators::ScanOp scan_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return operators::ScanOp::sum;
    case ReduceOp::prod: return operators::ScanOp::prod;
    case ReduceOp::max:
    case ReduceOp::any: return operators::ScanOp::max;
    default: return operators::ScanOp::min;
  }
}

ScanSpec spec_for(operators::ScanOp op) {
  ScanSpec spec;
  spec.op = op;
  return spec;
}

struct Lines {
  std::int64_t outer = 1, n = 1, inner = 1;
  Lines(std::int64_t o, std::int64_t length, std::int64_t i) : outer(o), n(length), inner(i) {}
  Lines(const Dims& shape, int axis) : n(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  }
  std::int64_t size() const { return outer * n * inner; }
};

class GridScan {
 public:
  /// `from` and `type` are the elements of x and of what is combined.
  GridScan(ScanSpec spec, const Lines& lines, Elem from, Elem type, bool exclusive = false)
      : spec_(std::move(spec)), lines_(lines), from_(from), type_(type), exclusive_(exclusive) {
    if (spec_.value == operators::ScanValue::element) spec_.from = std::string(name_of(from));
    spec_.type = std::string(name_of(type));
    spec_.narrow = device::fits_narrow(lines.size());
    while (spec_.threads > 32 && spec_.threads * spec_.items / 2 >= lines.n) spec_.threads /= 2;
    if (lines.n <= 64) spec_.items = 2;
  }
  /// Running keys beside x, and the elements beside their positions, of the values that have them.
  GridScan& with(const NDArray& run, const NDArray& values) {
    run_ = run, values_ = values;
    return *this;
  }

  void run(const NDArray& out, const NDArray& x) {
    const std::int64_t processors = device::grid_of(out.device()).processors();
    // Enough parts to keep every processor busy; a line of a few tiles is one.
    const std::int64_t tile = by_blocks() ? spec_.threads * spec_.items : 1;
    const std::int64_t wanted =
        by_blocks() ? ceil_div(processors * 8, std::max<std::int64_t>(1, lines_.outer))
                    : ceil_div(processors * 1024, lines_.outer * lines_.inner);
    const std::int64_t least = !by_blocks() ? 64 : lines_.n <= 4 * tile ? 4 * tile : tile;
    std::int64_t per = std::max(ceil_div(lines_.n, wanted), least);
    if (!by_blocks()) per = std::min<std::int64_t>(per, 4096);  // a part is summed one by one
    per = ceil_div(per, tile) * tile;
    const std::int64_t parts = std::max<std::int64_t>(1, ceil_div(lines_.n, per));
    if (parts == 1) return launch(out, x, out, 1, per, true);
    NDArray sums = NDArray::empty(out.device(), type_, Dims{lines_.outer, parts, lines_.inner});
    launch(sums, x, sums, parts, per, false);
    if (by_blocks()) return launch(out, x, sums, parts, per, true);
    NDArray before = NDArray::empty(out.device(), type_, sums.shape());
    GridScan(spec_for(spec_.op), {lines_.outer, parts, lines_.inner}, type_, type_)
        .run(before, sums);
    launch(out, x, before, parts, per, true);
  }

 private:
  bool by_blocks() const { return lines_.inner == 1 && lines_.n > 8; }

  void launch(const NDArray& out, const NDArray& x, const NDArray& before, std::int64_t parts,
              std::int64_t per, bool apply) {
    spec_.cut = apply && parts > 1 && by_blocks();
    ProgramCall call(out.device());
    call.array(x);
    if (run_.defined()) call.array(run_);
    if (apply) call.array(before);
    call.array(out);
    if (apply && values_.defined()) call.array(values_);
    std::string_view name;
    if (by_blocks()) {
      name = apply ? "scan.apply" : "scan.reduce";
      call.integer(lines_.outer * parts).integer(lines_.n).integer(parts).integer(per);
    } else {
      name = apply ? "scan.lines_apply" : "scan.lines_reduce";
      const std::int64_t lines = lines_.outer * parts * lines_.inner;
      call.integer(ceil_div(lines, operators::kScanLineThreads)).integer(lines).integer(lines_.n);
      call.integer(lines_.inner).integer(parts).integer(per);
    }
    const bool exclusive = exclusive_ && apply;
    const ProgramKey key(
        name, {static_cast<int>(spec_.op), static_cast<int>(from_), static_cast<int>(type_),
               spec_.narrow, spec_.threads, spec_.items, spec_.cut, exclusive,
               static_cast<int>(spec_.value), spec_.descending});
    call.run(key, [&] {
      if (!by_blocks()) return apply ? scan_lines_apply(spec_) : scan_lines_reduce(spec_);
      return apply ? scan_apply(spec_, exclusive) : scan_reduce(spec_);
    });
  }

  ScanSpec spec_;
  Lines lines_;
  NDArray run_, values_;
  Elem from_, type_;
  bool exclusive_;
};

}  // namespace

NDArray grid_scan(ReduceOp op, const NDArray& x, int axis, Elem elem) {
  if (elem == Elem::boolean)
    return grid_scan(op, x.astype(Elem::boolean).astype(Elem::uint8), axis, Elem::uint8)
        .astype(elem);
  const bool converts = x.elem() != elem && x.elem() == Elem::boolean;
  const NDArray in = converts ? x.astype(elem) : x.contiguous();
  NDArray out = NDArray::empty(x.device(), elem, x.shape());
  if (out.size() == 0) return out;
  GridScan(spec_for(scan_op(op)), Lines(x.shape(), axis), in.elem(), elem).run(out, in);
  return out;
}

std::pair<NDArray, NDArray> grid_running_extremes(const NDArray& x, int axis, bool largest) {
  const int bits = 8 * elem_bytes(x.elem());
  if (bits == 8 && is_real_float(x.elem())) {
    const auto [values, at] = grid_running_extremes(x.astype(Elem::float32), axis, largest);
    return {values.astype(x.elem()), at};
  }
  const NDArray in = x.contiguous(), values = NDArray::empty(x.device(), x.elem(), x.shape()),
                at = NDArray::empty(x.device(), Elem::int64, x.shape());
  if (x.size() == 0) return {values, at};
  const Lines lines(x.shape(), axis);
  const operators::SortSpec keys = sort_spec_of(x.elem(), !largest, x.size());
  ScanSpec spec = spec_for(operators::ScanOp::max);
  spec.from = cat("uint", bits);
  spec.key = sort_key(keys, "u");
  spec.key_type = sort_key_type(keys);
  spec.descending = !largest;
  if (bits <= 32 && lines.n <= INT32_MAX) {
    spec.value = operators::ScanValue::packed;
    GridScan(spec, lines, x.elem(), Elem::uint64).with({}, values).run(at, in);
    return {values, at};
  }
  const NDArray run =
      NDArray::empty(x.device(), bits == 64 ? Elem::uint64 : Elem::uint32, x.shape());
  spec.value = operators::ScanValue::key;
  GridScan(spec, lines, x.elem(), run.elem()).run(run, in);
  spec.value = operators::ScanValue::record;
  const Elem position = device::fits_narrow(lines.size()) ? Elem::int32 : Elem::int64;
  GridScan(spec, lines, x.elem(), position).with(run, values).run(at, in);
  return {values, at};
}

void grid_scan_rows(const NDArray& out, const NDArray& x, bool exclusive) {
  if (out.size() == 0) return;
  const std::int64_t n = x.shape()[x.ndim() - 1];
  GridScan(spec_for(operators::ScanOp::sum), {x.size() / n, n, 1}, x.elem(), out.elem(), exclusive)
      .run(out, x);
}

}  // namespace weft
