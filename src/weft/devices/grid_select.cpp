// SPDX-License-Identifier: Apache-2.0
// Where truth values are set, on devices with a grid.

#include "weft/base/integers.h"
#include "weft/devices/grid_operators.h"
#include "weft/devices/kernel.h"
#include "weft/operators/scan.h"
#include "weft/operators/select.h"

namespace weft {

namespace {

using operators::SelectSpec;

/// A compact array of truth values and how many are set up to the end of each tile.
class MarkedTiles {
 public:
  explicit MarkedTiles(const NDArray& x)
      : mask_(x.elem() == Elem::boolean ? x.contiguous() : x.astype(Elem::boolean)),
        narrow_(device::fits_narrow(x.size())) {
    if (x.size() == 0) return;
    const Elem count = narrow_ ? Elem::int32 : Elem::int64;
    tiles_ = ceil_div(x.size(), operators::kSelectTile);
    operators::ScanSpec spec;
    spec.from = "bool", spec.type = std::string(name_of(count));
    spec.narrow = narrow_;
    const NDArray counts = NDArray::empty(x.device(), count, Dims{1, tiles_});
    ProgramCall call(x.device());
    call.array(mask_).array(counts).integer(tiles_).integer(x.size()).integer(tiles_);
    call.integer(operators::kSelectTile);
    call.run({"select.count", {narrow_}}, [&] { return scan_reduce(spec); });
    ends_ = NDArray::empty(x.device(), count, counts.shape());
    grid_scan_rows(ends_, counts, false);
    std::int64_t wide = 0;
    std::int32_t small = 0;
    ends_.read_element(tiles_ - 1, narrow_ ? static_cast<void*>(&small) : &wide);
    total_ = narrow_ ? small : wide;
  }
  std::int64_t total() const { return total_; }

  void elements(const NDArray& out, const NDArray& x) const {
    const int bytes = elem_bytes(x.elem());
    start(x)
        .array(x)
        .array(out)
        .integer(tiles_)
        .integer(mask_.size())
        .run({"select.elements", {bytes, narrow_}}, [&] {
          return operators::select_marked({cat("uint", 8 * bytes), 1, narrow_});
        });
  }
  void positions(std::span<const NDArray> out) const {
    ProgramCall call = start(mask_);
    for (const NDArray& axis : out) call.array(axis);
    call.integer(tiles_).integer(mask_.size());
    for (std::int64_t extent : mask_.shape()) call.integer(extent);
    const int rank = mask_.ndim();
    call.run({"select.positions", {rank, narrow_}}, [&] {
      return operators::select_marked({"", rank, narrow_});
    });
  }

 private:
  ProgramCall start(const NDArray& on) const {
    ProgramCall call(on.device());
    call.array(mask_).array(ends_);
    return call;
  }
  NDArray mask_, ends_;
  bool narrow_;
  std::int64_t tiles_ = 0, total_ = 0;
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
