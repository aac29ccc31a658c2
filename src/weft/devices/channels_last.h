// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images in the order that tiles of convolutions read them: channels of a pixel side by side.

#include "weft/devices/warp_specialized_call.h"

namespace weft::device {

/// What lies outside of four axes: planes of pieces or groups. 0 elements from one to the next:
/// there is none.
struct Outermost {
  std::int64_t count = 1, step = 0;
};
/// Four axes and the outermost one.
BulkTensor tensor_of(const NDArray& x, std::initializer_list<std::int64_t> extents,
                     std::initializer_list<std::int64_t> strides, const Outermost& outermost);

/// Images [n, y, x, channel] with pixels at multiples of 16 bytes; `channels` of them count. Of
/// pieces: the first plane. Of groups the images are [n, group].
struct Last {
  NDArray data;
  std::int64_t channels = 0, plane = 0, groups = 1;

  std::int64_t images() const { return data.shape()[0] / groups; }
  std::int64_t height() const { return data.shape()[1]; }
  std::int64_t width() const { return data.shape()[2]; }
  BulkTensor tensor() const;
  /// [places, channels]; not defined where places do not lie at equal steps.
  NDArray matrix() const;
};
/// Room for results of these extents.
Last empty_last(const NDArray& like, std::int64_t n, std::int64_t h, std::int64_t w,
                std::int64_t channels);

/// Upstream gradients in channels-last order, brought there once for all that read them.
class Upper {
 public:
  explicit Upper(const NDArray& g, std::int64_t groups = 1) : g_(g), groups_(groups) {}
  const Last& last();

 private:
  const NDArray& g_;
  std::int64_t groups_;
  Last last_;
};

/// [n, group * c, y, x] as images [n * group, c, y, x].
NDArray by_groups(const NDArray& x, std::int64_t groups);
/// From [n, c, y, x] of any layout; of float32 in pieces, without groups.
Last channels_last(const NDArray& x, std::int64_t groups = 1);
/// Into [n, c, y, x] of any layout; compact where there are groups.
void from_channels_last(const NDArray& out, const Last& x);

/// [n, c, y, x] as [n, c, places], where that is a view.
bool as_planes(const NDArray& x, NDArray& out);

}  // namespace weft::device
