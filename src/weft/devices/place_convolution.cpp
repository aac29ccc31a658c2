// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/place_convolution.h"

#include <bit>
#include <vector>

#include "weft/array/ops.h"
#include "weft/devices/grid.h"
#include "weft/ir/build.h"

namespace weft::device {

namespace {

/// Whether each image is a product by itself, of planes as they lie: rows in vectors of 16 bytes,
/// and tiles of 64 columns that are not empty for the most part. Otherwise all pixels are rows.
bool in_planes(const NDArray& y) {
  constexpr std::int64_t kVector = 8, kLeastPlaces = 32;
  const std::int64_t places = y.shape()[2] * y.shape()[3];
  return places % kVector == 0 && places >= kLeastPlaces;
}

NDArray as_matrix(const NDArray& weight) {
  return weight.reshape(Dims{weight.shape()[0], weight.shape()[1]});
}
NDArray as_matrices(const NDArray& weight, std::int64_t count) {
  const NDArray one = as_matrix(weight);
  return one.reshape(Dims{1, one.shape()[0], one.shape()[1]})
      .broadcast_to(Dims{count, one.shape()[0], one.shape()[1]});
}

/// Sums of pixels' products with `factor`, to [n, c, y, x].
bool of_pixels(const NDArray& out, const Last& x, const NDArray& factor) {
  const Dims& n = out.shape();
  const Last sums = empty_last(out, n[0], n[2], n[3], n[1]);
  const NDArray rows = x.matrix();
  if (!rows.defined() || !warp_specialized_product(sums.matrix(), rows, factor)) return false;
  from_channels_last(out, sums);
  return true;
}

}  // namespace

bool of_one_place(const NDArray& weight, const Images& images) {
  return weight.shape()[2] * weight.shape()[3] == 1 && images.before[0] == 0 &&
         images.before[1] == 0 && images.groups == 1;
}

bool place_convolution(const NDArray& out, const NDArray& x, const NDArray& weight) {
  NDArray from, to;
  if (in_planes(out) && as_planes(x, from) && as_planes(out, to) &&
      warp_specialized_product(to, as_matrices(weight, out.shape()[0]), from))
    return true;
  return of_pixels(out, channels_last(x), as_matrix(weight).transpose(0, 1));
}

bool place_input_gradient(const NDArray& out, const NDArray& g, Upper& last,
                          const NDArray& weight) {
  NDArray from, to;
  if (in_planes(g) && as_planes(g, from) && as_planes(out, to) &&
      warp_specialized_product(to, as_matrices(weight, g.shape()[0]).transpose(1, 2), from))
    return true;
  return of_pixels(out, last.last(), as_matrix(weight));
}

bool place_weight_gradient(const NDArray& out, const NDArray& g, Upper& last, const NDArray& x) {
  const Dims &w = out.shape(), &n = g.shape();
  NDArray by, from;
  // One sum for each image, added up afterwards, where that moves less than turning the images.
  if (in_planes(g) && w[0] * w[1] * 4 < (w[0] + w[1]) * n[2] * n[3] && as_planes(g, by) &&
      as_planes(x, from)) {
    const NDArray sums = NDArray::empty(out.device(), Elem::float32, Dims{n[0], w[0], w[1]});
    if (warp_specialized_product(sums, by, from.transpose(1, 2))) {
      add_parts(out, sums);
      return true;
    }
  }
  const NDArray rows = last.last().matrix(), columns = channels_last(x).matrix();
  return rows.defined() && columns.defined() &&
         warp_specialized_product(as_matrix(out), rows.transpose(0, 1), columns);
}

NDArray named_places(const NDArray& x, const std::int64_t (&step)[2], std::int64_t h,
                     std::int64_t w) {
  return x.slice(2, 0, h, step[0]).slice(3, 0, w, step[1]).contiguous();
}

namespace {

/// Of so many bytes; bool where there is none.
Elem word_of(std::int64_t bytes) {
  return bytes == 2 ? Elem::uint16 : bytes == 4 ? Elem::uint32 : bytes == 8 ? Elem::uint64 : Elem{};
}

}  // namespace

// An element and the zeros behind it are one word, whose first bytes are its lowest ones. So both
// sides are moved in vectors, and each line of zeros is written beside the line before it.
void spread_places(const NDArray& out, const NDArray& places, const std::int64_t (&step)[2]) {
  constexpr std::int64_t kMostLines = 8;  // that one map writes
  const Dims &n = out.shape(), &m = places.shape();
  const std::int64_t bytes = elem_bytes(out.elem());
  const Elem word = word_of(bytes * step[1]), part = word_of(bytes);
  const bool whole = n[2] == m[2] * step[0] && n[3] == m[3] * step[1] && out.is_contiguous() &&
                     out.offset() % step[1] == 0;
  if (!whole || word == Elem{} || part == Elem{} || step[0] > kMostLines) {
    assign(out, full(out.device(), out.elem(), Dims{1}, Scalar(0)).broadcast_to(n));
    return assign(out.slice(2, 0, m[2], step[0]).slice(3, 0, m[3], step[1]), places);
  }
  const NDArray words = NDArray::make(out.handle(), word, Dims{n[0], n[1], m[2], step[0], m[3]},
                                      nullptr, out.offset() / step[1]);
  const NDArray from = NDArray::make(places.handle(), part, m, &places.strides(), places.offset());
  std::vector<NDArray> lines;
  for (std::int64_t y = 0; y < step[0]; ++y) lines.push_back(words.select(3, y));
  const NDArray* arrays[] = {&from};
  Map map;
  map.family = "spread";
  map.arrays = arrays;
  map.compute = word;
  grid_map(lines, map, [&](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>&) {
    std::vector<ir::Expr> values(lines.size(), ir::make_const(0, dtype_of(word)));
    values[0] = ir::cast(dtype_of(word), x[0]);
    return values;
  });
}

}  // namespace weft::device
