// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/channels_last.h"

#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/pieces.h"
#include "weft/devices/transpose.h"

namespace weft::device {

BulkTensor tensor_of(const NDArray& x, std::initializer_list<std::int64_t> extents,
                     std::initializer_list<std::int64_t> strides, const Outermost& outermost) {
  BulkTensor out = tensor_of(x, extents, strides);
  if (outermost.step)
    out.axes = 5, out.extents[4] = outermost.count, out.strides[3] = outermost.step;
  return out;
}

BulkTensor Last::tensor() const {
  const Dims& s = data.strides();
  return tensor_of(data, {channels, width(), height(), images()}, {s[2], s[1], s[0] * groups},
                   plane        ? Outermost{kPiecePlanes, plane}
                   : groups > 1 ? Outermost{groups, s[0]}
                                : Outermost{});
}

NDArray Last::matrix() const {
  NDArray out;
  data.slice(3, 0, channels, 1).reshape_view(Dims{images() * height() * width(), channels}, out);
  return out;
}

Last empty_last(const NDArray& like, std::int64_t n, std::int64_t h, std::int64_t w,
                std::int64_t channels) {
  const Dims shape{n, h, w, ceil_div(channels, 8) * 8};
  return {NDArray::empty(like.device(), like.elem(), shape), channels};
}

bool as_planes(const NDArray& x, NDArray& out) {
  const Dims& n = x.shape();
  return x.reshape_view(Dims{n[0], n[1], n[2] * n[3]}, out);
}

NDArray by_groups(const NDArray& x, std::int64_t groups) {
  const Dims& n = x.shape();
  return groups == 1 ? x : x.reshape(Dims{n[0] * groups, n[1] / groups, n[2], n[3]});
}

Last channels_last(const NDArray& x, std::int64_t groups) {
  if (groups > 1) {
    Last out = channels_last(by_groups(x, groups));
    out.groups = groups;
    return out;
  }
  const Dims &n = x.shape(), &s = x.strides();
  Last out{x, n[1]};
  const int order[] = {0, 2, 3, 1};
  const NDArray turned = x.permute(order);
  if (x.elem() == Elem::float32) {
    NDArray of_images;
    const bool lies = n[1] > 1 && s[1] != 1 && as_planes(x, of_images);
    const NDArray planes = lies ? turned_piece_planes(of_images) : piece_planes(turned);
    Dims shape{n[0], n[2], n[3], planes.shape()[planes.ndim() - 1]};
    const NDArray first = planes.select(0, 0);
    out.data = lies ? first.reshape(shape) : first, out.plane = planes.strides()[0];
    return out;
  }
  bool fits = begins_at(x, 16) && (s[1] == 1 || n[1] == 1);
  for (int i : {0, 2, 3}) fits = fits && (n[i] == 1 || (s[i] > 0 && s[i] % 8 == 0));
  if (fits) {
    out.data = turned;
    return out;
  }
  out = empty_last(x, n[0], n[2], n[3], n[1]);
  NDArray planes;
  if (n[1] > 1 && x.reshape_view(Dims{n[0], n[1], n[2] * n[3]}, planes) &&
      (planes.strides()[2] == 1 || n[2] * n[3] == 1)) {
    const std::int64_t pitch = out.data.shape()[3];
    grid_transpose(out.data.as_strided(Dims{n[0], n[2] * n[3], n[1]},
                                       Dims{n[2] * n[3] * pitch, pitch, 1}, out.data.offset()),
                   planes);
  } else {
    assign(out.data.slice(3, 0, n[1], 1), turned);
  }
  return out;
}

void from_channels_last(const NDArray& to, const Last& x) {
  const NDArray out = by_groups(to, x.groups);
  const Dims& n = out.shape();
  const Dims& s = x.data.strides();
  NDArray planes;
  if (n[1] > 1 && out.reshape_view(Dims{n[0], n[1], n[2] * n[3]}, planes) &&
      planes.strides()[2] == 1) {
    return grid_transpose(planes, x.data.as_strided(Dims{n[0], n[2] * n[3], n[1]},
                                                    Dims{s[0], s[2], 1}, x.data.offset()));
  }
  const int back[] = {0, 3, 1, 2};
  assign(out, x.data.slice(3, 0, n[1], 1).permute(back));
}

const Last& Upper::last() {
  if (!last_.data.defined()) last_ = channels_last(g_, groups_);
  return last_;
}

}  // namespace weft::device
