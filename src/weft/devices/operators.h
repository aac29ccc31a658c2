// SPDX-License-Identifier: Apache-2.0
#pragma once
// Structured operations on devices with a grid of groups of threads: launches of the programs of
// weft/operators, which hold the algorithms. Workspaces are arrays: when one cannot be had, nothing
// has been written and the others are freed.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/array/on_device.h"

namespace weft {

namespace operators {
struct SortSpec;
}

/// Inclusive running combination in `elem`.
NDArray grid_scan(ReduceOp op, const NDArray& x, int axis, Elem elem);
/// Running extremes of real numbers along an axis and their positions (int64): the last of equals,
/// NaN once it is met.
std::pair<NDArray, NDArray> grid_running_extremes(const NDArray& x, int axis, bool largest);
/// Running sums of the rows of a compact array of integers.
void grid_scan_rows(const NDArray& out, const NDArray& x, bool exclusive);

/// How the elements of a type are made keys; `size`: of the whole array.
operators::SortSpec sort_spec_of(Elem elem, bool descending, std::int64_t size);
/// Greatest common divisors of integers, or least common multiples, in their common type.
NDArray grid_divisors(const NDArray& a, const NDArray& b, bool multiple);

/// Along the last axis, stable, NaN last: elements, or their positions.
NDArray grid_sort(const NDArray& x, bool descending, bool positions);
/// The places of the k first elements of each row (the last axis), largest or smallest first,
/// stable, NaN last; nothing where sorting the rows is as fast, or for elements of more than 32
/// bits.
std::optional<NDArray> grid_best(const NDArray& x, std::int64_t k, bool largest);
/// Positions that sort compact int64 places in [0, limit], stable.
NDArray grid_order(const NDArray& places, std::int64_t limit);
/// One element type, x sorted.
NDArray grid_searchsorted(const NDArray& x, const NDArray& values, bool right);

/// One array for each axis. The host waits for their number.
std::vector<NDArray> grid_nonzero(const NDArray& x);
/// x where a mask of its size is set.
NDArray grid_select(const NDArray& x, const NDArray& mask);

/// The first element of each run of equal ones; where the runs begin, then how many elements there
/// are (int64). The host waits for their number.
NDArray grid_run_values(const NDArray& x);
NDArray grid_run_bounds(const NDArray& x);
/// n + 1 truth values for n elements: whether one differs from the one before it. So does the
/// first, and what lies behind the last.
NDArray grid_run_starts(const NDArray& x);

/// out = the arrays side by side along the axis, in one launch; false, and nothing written, where
/// copies of each are as fast or their elements are others than out's.
bool grid_concat(const NDArray& out, std::span<const NDArray> arrays, int axis);

/// How often each of 0, ..., bins - 1 occurs among compact int64 numbers of that range.
NDArray grid_histogram(const NDArray& x, std::int64_t bins);

/// Sums of floats at equal indices in one order (slower): every run gives the same bits. Off at the
/// beginning. The host always does so.
void set_deterministic(bool on);
bool is_deterministic();
/// x[indices]; x[indices] = value or += value. Positions outside raise before anything is written.
/// `outer`: so many of the axes behind the positions come before them in what is read.
NDArray grid_gather(const NDArray& x, std::span<const NDArray> indices, int outer = 0);
/// Elements of x along the axis at `indices`, whose other extents are x's.
NDArray grid_take_along(const NDArray& x, const NDArray& indices, int axis);
/// The flat position row * classes + label of each label of any integer type (int64). The host
/// throws `outside` when it next waits where a label was none of the classes.
NDArray grid_label_positions(const NDArray& labels, std::int64_t classes, const Error& outside);
/// Of a program that has been launched and sets the pending flag where a label is no class.
void add_label_check(const NDArray& labels, std::int64_t classes, const Error& outside);
void grid_scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
                  bool accumulate, Checked checked = Checked::no);

}  // namespace weft
