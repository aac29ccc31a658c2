// SPDX-License-Identifier: Apache-2.0
// Arrays side by side on devices with a grid: one launch where copies of each would wait for
// theirs.

#include <algorithm>
#include <vector>

#include "weft/array/collapse.h"
#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/devices/operators.h"
#include "weft/devices/reciprocal.h"
#include "weft/operators/concat.h"

namespace weft {

namespace {

/// One array as rows of neighbours: how many elements they have, and how far apart they begin.
struct Part {
  const NDArray* array = nullptr;
  std::int64_t run = 1, step = 0;
};

/// False where the axes from `axis` on are no neighbours, or the rows no even steps apart.
bool read_part(const NDArray& a, int axis, Part& part) {
  part.array = &a;
  for (int i = a.ndim(); i-- > axis;) {
    if (a.shape()[i] == 1) continue;
    if (a.strides()[i] != part.run) return false;
    part.run *= a.shape()[i];
  }
  Dims rows;
  std::vector<Dims> steps(1);
  for (int i = 0; i < axis; ++i) {
    rows.push_back(a.shape()[i]);
    steps[0].push_back(a.strides()[i]);
  }
  if (rows.empty()) return true;
  collapse_axes(rows, steps);
  part.step = steps[0][0];
  return rows.size() == 1;
}

/// The largest word of which all rows of all parts and of the result have whole numbers.
std::int64_t word_bytes(const NDArray& out, std::int64_t width, const std::vector<Part>& parts) {
  const std::int64_t element = elem_bytes(out.elem());
  std::int64_t word = 8;
  auto whole = [&](std::int64_t elements) { return elements * element % word == 0; };
  auto fits = [&] {
    return begins_at(out, word) && whole(width) &&
           std::all_of(parts.begin(), parts.end(), [&](const Part& p) {
             return begins_at(*p.array, word) && whole(p.run) && whole(p.step);
           });
  };
  while (word > 1 && !fits()) word /= 2;
  return word;
}

void launch(const NDArray& out, std::int64_t at, std::int64_t rows, std::int64_t width,
            std::span<const Part> parts, std::int64_t word) {
  const std::int64_t element = elem_bytes(out.elem());
  auto words = [&](std::int64_t elements) { return elements * element / word; };
  std::int64_t taken = 0, reach = rows * words(width);
  for (const Part& p : parts) {
    taken += p.run;
    reach = std::max(reach, std::abs(p.step) * rows * element / word + words(p.run));
  }
  const std::int64_t count = rows * words(taken),
                     blocks = ceil_div(count, std::int64_t{operators::kConcatTile});
  operators::ConcatSpec spec;
  spec.bytes = static_cast<int>(word);
  spec.parts = static_cast<int>(parts.size());
  spec.one_row = rows == 1;
  spec.narrow = device::fits_narrow(reach + operators::kConcatTile);
  ProgramCall call(out.device());
  call.pointer(out.handle().get(), static_cast<std::uint64_t>((out.offset() + at) * element));
  for (const Part& p : parts) call.array(*p.array);
  call.integer(blocks).integer(count).integer(words(taken)).integer(words(width));
  std::int64_t end = 0;
  for (const Part& p : parts) call.integer(words(end += p.run)).integer(words(p.step));
  if (!spec.one_row && spec.narrow) {
    const device::Reciprocal r = device::reciprocal_of(words(taken));
    call.integer(r.factor).integer(r.shift);
  }
  call.run({"concat", {spec.bytes, spec.parts, spec.one_row, spec.narrow}},
           [&] { return operators::concat_rows(spec); });
}

}  // namespace

bool grid_concat(const NDArray& out, std::span<const NDArray> arrays, int axis) {
  // Larger ones whose long rows lie in vectors are copied one by one: a launch more is nothing
  // then.
  constexpr std::int64_t kLarge = 8 << 20, kVector = 16, kLongRow = 512;
  if (!device::grid_of(out.device()).present() || out.size() == 0) return false;
  std::vector<Part> parts;
  std::int64_t width = 0;
  bool in_vectors = true;
  for (const NDArray& a : arrays) {
    if (a.elem() != out.elem()) return false;
    if (a.size() == 0) continue;
    Part p;
    if (!read_part(a, axis, p)) return false;
    const std::int64_t bytes = elem_bytes(a.elem());
    in_vectors = in_vectors && begins_at(a, kVector) && p.run * bytes % kVector == 0 &&
                 p.step * bytes % kVector == 0 && p.run * bytes >= kLongRow;
    width += p.run;
    parts.push_back(p);
  }
  if (parts.size() < 2 || (in_vectors && out.nbytes() > kLarge)) return false;
  const std::int64_t rows = out.size() / width, word = word_bytes(out, width, parts);
  std::int64_t at = 0;
  for (std::size_t first = 0; first < parts.size(); first += operators::kMostConcatParts) {
    const std::size_t some =
        std::min<std::size_t>(operators::kMostConcatParts, parts.size() - first);
    const std::span<const Part> together = std::span(parts).subspan(first, some);
    launch(out, at, rows, width, together, word);
    for (const Part& p : together) at += p.run;
  }
  return true;
}

}  // namespace weft
