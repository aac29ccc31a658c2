// SPDX-License-Identifier: Apache-2.0
// Where truth values are set, on devices with a grid.

#include "weft/operators/select.h"
#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"

namespace weft {

namespace {

/// Places that are set, and how many are up to the end of each tile.
class MarkedTiles {
 public:
  /// The elements of x that are not 0.
  explicit MarkedTiles(const NDArray& x)
      : MarkedTiles(x.elem() == Elem::boolean ? x.contiguous() : x.astype(Elem::boolean), x.shape(),
                    false) {}
  /// Where the runs of x begin; `behind`: and the place behind its last element.
  static MarkedTiles runs(const NDArray& x, bool behind) {
    return {x.contiguous(), Dims{x.size() + (behind ? 1 : 0)}, true};
  }
  std::int64_t total() const { return total_; }

  void elements(const NDArray& out, const NDArray& x) const {
    const int bytes = elem_bytes(x.elem());
    operators::SelectSpec spec = spec_;
    spec.element = runs_ ? spec.runs : cat("uint", 8 * bytes);
    ProgramCall call = start();
    if (!runs_) call.array(x);
    sizes(call.array(out));
    call.run({"select.elements", {bytes, run_type(), spec.narrow}},
             [&] { return operators::select_marked(spec); });
  }
  void positions(std::span<const NDArray> out) const {
    ProgramCall call = start();
    for (const NDArray& axis : out) call.array(axis);
    sizes(call);
    for (std::int64_t extent : shape_) call.integer(extent);
    call.run({"select.positions", {spec_.rank, run_type(), spec_.narrow}},
             [&] { return operators::select_marked(spec_); });
  }

 private:
  MarkedTiles(NDArray from, Dims shape, bool runs)
      : from_(std::move(from)), shape_(std::move(shape)), runs_(runs) {
    for (std::int64_t extent : shape_) marks_ *= extent;
    spec_.rank = static_cast<int>(shape_.size());
    spec_.narrow = device::fits_narrow(marks_);
    if (runs_) spec_.runs = std::string(name_of(from_.elem()));
    if (from_.size() == 0) return;
    tiles_ = ceil_div(marks_, operators::kSelectTile);
    const Elem count = spec_.narrow ? Elem::int32 : Elem::int64;
    const NDArray counts = NDArray::empty(from_.device(), count, Dims{1, tiles_});
    ProgramCall call(from_.device());
    sizes(call.array(from_).array(counts));
    call.run({"select.count", {run_type(), spec_.narrow}},
             [&] { return operators::select_count(spec_); });
    ends_ = NDArray::empty(from_.device(), count, counts.shape());
    grid_scan_rows(ends_, counts, false);
    std::int64_t wide = 0;
    std::int32_t small = 0;
    ends_.read_element(tiles_ - 1, spec_.narrow ? static_cast<void*>(&small) : &wide);
    total_ = spec_.narrow ? small : wide;
  }
  ProgramCall start() const {
    ProgramCall call(from_.device());
    call.array(from_).array(ends_);
    return call;
  }
  void sizes(ProgramCall& call) const {
    call.integer(tiles_).integer(marks_);
    if (runs_) call.integer(from_.size());
  }
  /// For keys of programs.
  int run_type() const { return runs_ ? static_cast<int>(from_.elem()) : -1; }

  NDArray from_, ends_;  // marks, or the array with runs
  Dims shape_;           // of the marks
  bool runs_;
  operators::SelectSpec spec_;
  std::int64_t marks_ = 1, tiles_ = 0, total_ = 0;
};

}  // namespace

std::vector<NDArray> grid_nonzero(const NDArray& x) {
  const MarkedTiles marks(x);
  std::vector<NDArray> out;
  for (int axis = 0; axis < x.ndim(); ++axis)
    out.push_back(NDArray::empty(x.device(), Elem::int64, Dims{marks.total()}));
  if (marks.total() > 0) marks.positions(out);
  return out;
}

NDArray grid_select(const NDArray& x, const NDArray& mask) {
  const MarkedTiles marks(mask);
  NDArray out = NDArray::empty(x.device(), x.elem(), Dims{marks.total()});
  if (marks.total() > 0) marks.elements(out, x.contiguous());
  return out;
}

NDArray grid_run_values(const NDArray& x) {
  const MarkedTiles marks = MarkedTiles::runs(x, false);
  NDArray out = NDArray::empty(x.device(), x.elem(), Dims{marks.total()});
  if (marks.total() > 0) marks.elements(out, x);
  return out;
}

NDArray grid_run_bounds(const NDArray& x) {
  if (x.size() == 0) return full(x.device(), Elem::int64, Dims{1}, Scalar(0));
  const MarkedTiles marks = MarkedTiles::runs(x, true);
  const NDArray out = NDArray::empty(x.device(), Elem::int64, Dims{marks.total()});
  marks.positions({&out, 1});
  return out;
}

NDArray grid_run_starts(const NDArray& x) {
  if (x.size() == 0) return full(x.device(), Elem::boolean, Dims{1}, Scalar(1));
  const NDArray given = x.contiguous();
  const NDArray out = NDArray::empty(x.device(), Elem::boolean, Dims{x.size() + 1});
  const bool narrow = device::fits_narrow(out.size());
  ProgramCall call(x.device());
  call.array(given).array(out).integer(ceil_div(out.size(), operators::kStartsTile));
  call.integer(x.size());
  call.run({"select.run_starts", {static_cast<int>(x.elem()), narrow}},
           [&] { return operators::run_starts(std::string(name_of(x.elem())), narrow); });
  return out;
}

}  // namespace weft
