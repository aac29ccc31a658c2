// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/transpose.h"

#include <algorithm>

#include "weft/array/collapse.h"
#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/kernel.h"
#include "weft/operators/transpose.h"

namespace weft::device {

namespace {

constexpr std::int64_t kTile = operators::kTransposeTile;

}  // namespace

void grid_transpose(const NDArray& out, const NDArray& x) {
  WEFT_CHECK(
      out.ndim() == 3 && x.ndim() == 3 && out.elem() == x.elem() && elem_bytes(x.elem()) <= 8,
      "operands of a transpose");
  const std::int64_t batches = x.shape()[0], rows = x.shape()[1], columns = x.shape()[2];
  WEFT_CHECK(out.shape()[0] == batches && out.shape()[1] == columns && out.shape()[2] == rows &&
                 (x.strides()[2] == 1 || columns == 1) && (out.strides()[2] == 1 || rows == 1),
             "a transpose of other extents or strides");
  if (x.size() == 0) return;
  const std::int64_t blocks_r = ceil_div(rows, kTile), blocks_c = ceil_div(columns, kTile);
  auto reach = [](const NDArray& a) {
    std::int64_t most = 0;
    for (int i = 0; i < 3; ++i) most += (a.shape()[i] + 2 * kTile) * std::abs(a.strides()[i]);
    return most;
  };
  const bool narrow = fits_narrow(std::max(reach(out), reach(x)));
  // Two elements of 16 bits at once where every line has whole pairs at whole words.
  auto paired = [](const NDArray& a) {
    return elem_bytes(a.elem()) == 2 && a.shape()[2] % 2 == 0 && a.strides()[0] % 2 == 0 &&
           a.strides()[1] % 2 == 0 && a.offset() % 2 == 0 && a.handle()->address() % 4 == 0;
  };
  const std::int64_t lanes = paired(x) && paired(out) ? 2 : 1;
  const auto bytes = elem_bytes(out.elem());
  ProgramCall call(out.device());
  call.array(out).array(x).integer(blocks_r).integer(blocks_c).integer(batches);
  call.integer(rows).integer(columns);
  for (const NDArray* a : {&x, &out})
    call.integer(a->strides()[0] / lanes).integer(a->strides()[1] / lanes);
  call.run({"transpose", {bytes, narrow, lanes}}, [&] {
    return operators::transpose_program({cat("uint", 8 * bytes), narrow, lanes});
  });
}

namespace {
/// Of a source that runs backwards: turned first as it lies in memory, then reversed along dst.
bool turned_copy(const NDArray& dst, const NDArray& src) {
  std::vector<int> backwards;
  Dims steps = src.strides();
  std::int64_t offset = src.offset();
  if (!(src.shape() == dst.shape())) return false;
  for (int i = 0; i < src.ndim(); ++i) {
    if (steps[i] >= 0) continue;
    backwards.push_back(i);
    offset += steps[i] * (src.shape()[i] - 1);
    steps[i] = -steps[i];
  }
  if (backwards.empty()) return false;
  const NDArray turned = NDArray::empty(dst.device(), dst.elem(), dst.shape());
  if (!transpose_copy(turned, src.as_strided(src.shape(), steps, offset))) return false;
  assign(dst, turned.flip(backwards));
  return true;
}
}  // namespace

bool transpose_copy(const NDArray& dst, const NDArray& src) {
  constexpr std::int64_t kSmall = 1 << 16, kNarrow = 8;
  const std::int64_t bytes = elem_bytes(src.elem());
  if (dst.elem() != src.elem() || dst.size() < kSmall || bytes > 8 ||
      grid_of(dst.device()).shared_bytes() < kTile * operators::kTransposeLine * bytes)
    return false;
  Dims shape = dst.shape();
  std::vector<Dims> steps{dst.strides(), broadcast_strides(src, shape)};
  collapse_axes(shape, steps);
  const int rank = shape.size();
  if (rank != 2 && rank != 3) return false;
  int to = -1, from = -1;  // the axes of the unit steps
  for (int i = 0; i < rank; ++i) {
    if (steps[0][i] == 1) to = i;
    if (steps[1][i] == 1) from = i;
    if (steps[0][i] < 1 || steps[1][i] < 1) return turned_copy(dst, src);
  }
  if (to < 0 || from < 0 || to == from || shape[to] < kNarrow || shape[from] < kNarrow)
    return false;
  const int rest = rank == 3 ? 3 - to - from : -1;
  const std::int64_t batches = rest < 0 ? 1 : shape[rest];
  auto view = [&](const NDArray& a, const Dims& s, int rows, int columns) {
    return a.as_strided(Dims{batches, shape[rows], shape[columns]},
                        Dims{rest < 0 ? 0 : s[rest], s[rows], s[columns]}, a.offset());
  };
  grid_transpose(view(dst, steps[0], from, to), view(src, steps[1], to, from));
  return true;
}

NDArray transposed_for(const NDArray& out, const NDArray& operand) {
  const int rank = out.ndim();
  if (!(operand.shape() == out.shape()) || rank < 2 || operand.strides() == out.strides())
    return operand;
  NDArray transposed = NDArray::empty(out.device(), operand.elem(), out.shape());
  return transpose_copy(transposed, operand) ? transposed : operand;
}

}  // namespace weft::device
