// SPDX-License-Identifier: Apache-2.0
// Running combinations on devices with a grid: how a line is cut, and the launches.

#include <algorithm>

#include "weft/base/integers.h"
#include "weft/devices/grid_operators.h"
#include "weft/devices/kernel.h"
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

struct Lines {
  std::int64_t outer, n, inner;
  std::int64_t size() const { return outer * n * inner; }
};

class GridScan {
 public:
  GridScan(ReduceOp op, const Lines& lines, Elem from, Elem type, bool exclusive)
      : lines_(lines), from_(from), type_(type), exclusive_(exclusive) {
    spec_.op = scan_op(op);
    spec_.from = std::string(name_of(from));
    spec_.type = std::string(name_of(type));
    spec_.narrow = device::fits_narrow(lines.size());
    while (spec_.threads > 32 && spec_.threads * spec_.items / 2 >= lines.n) spec_.threads /= 2;
    if (lines.n <= 64) spec_.items = 2;
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
    GridScan(spec_.op, {lines_.outer, parts, lines_.inner}, type_).run(before, sums);
    launch(out, x, before, parts, per, true);
  }

 private:
  GridScan(operators::ScanOp op, const Lines& lines, Elem type)
      : GridScan(ReduceOp::sum, lines, type, type, false) {
    spec_.op = op;
  }
  bool by_blocks() const { return lines_.inner == 1 && lines_.n > 8; }

  void launch(const NDArray& out, const NDArray& x, const NDArray& before, std::int64_t parts,
              std::int64_t per, bool apply) {
    spec_.cut = apply && parts > 1 && by_blocks();
    ProgramCall call(out.device());
    call.array(x);
    if (apply) call.array(before);
    call.array(out);
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
               spec_.narrow, spec_.threads, spec_.items, spec_.cut, exclusive});
    call.run(key, [&] {
      if (!by_blocks()) return apply ? scan_lines_apply(spec_) : scan_lines_reduce(spec_);
      return apply ? scan_apply(spec_, exclusive) : scan_reduce(spec_);
    });
  }

  ScanSpec spec_;
  Lines lines_;
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
  Lines lines{1, x.shape()[axis], 1};
  for (int i = 0; i < axis; ++i) lines.outer *= x.shape()[i];
  for (int i = axis + 1; i < x.ndim(); ++i) lines.inner *= x.shape()[i];
  GridScan(op, lines, in.elem(), elem, false).run(out, in);
  return out;
}

void grid_scan_rows(const NDArray& out, const NDArray& x, bool exclusive) {
  if (out.size() == 0) return;
  const std::int64_t n = x.shape()[x.ndim() - 1];
  GridScan(ReduceOp::sum, {x.size() / n, n, 1}, x.elem(), out.elem(), exclusive).run(out, x);
}

}  // namespace weft
