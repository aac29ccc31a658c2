// SPDX-License-Identifier: Apache-2.0
#include "selection.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "array_type.h"
#include "weft/array/bits.h"
#include "weft/array/convolve.h"
#include "weft/array/count.h"
#include "weft/array/select.h"

namespace weft::py {

void bind_selection(nb::module_& m) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.def("_counts_from_zero", &counts_from_zero, Unlocked());
  m.def("_sums_from_zero", &sums_from_zero, Unlocked());
  m.def("_counts_in_bins", &counts_in_bins, Unlocked());
  m.def("_packed_bits", &packed_bits, Unlocked());
  m.def("_unpacked_bits", &unpacked_bits, Unlocked());
  m.def("_counted_bits", &counted_bits, Unlocked());
  m.def("_parts_of_floats", &parts_of_floats, Unlocked());
  m.def("_convolve", &convolve, Unlocked());
  m.def(
      "_quantiles",
      [](const NDArray& x, const std::vector<double>& q, int axis, int between, bool skip_nan) {
        return quantiles(x, q, axis, static_cast<Between>(between), skip_nan);
      },
      Unlocked());
  m.def(
      "_partition",
      [](const NDArray& x, const std::vector<std::int64_t>& places, int axis) {
        return partition(x, places, axis);
      },
      Unlocked());
  m.def(
      "_argpartition",
      [](const NDArray& x, const std::vector<std::int64_t>& places, int axis) {
        return argpartition(x, places, axis);
      },
      Unlocked());
}

}  // namespace weft::py
