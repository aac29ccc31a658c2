// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images in the order that tiles of convolutions read them: channels of a pixel side by side.

#include "weft/devices/whole_call.h"

namespace weft::device {

/// Four axes, and planes of pieces where `plane`, the elements from one to the next, is not 0.
WholeTensor tensor_in_planes(const NDArray& x, std::initializer_list<std::int64_t> extents,
                             std::initializer_list<std::int64_t> strides, std::int64_t plane);

/// Images [n, y, x, channel] with pixels at multiples of 16 bytes; `channels` of them count. Of
/// pieces: the first plane.
struct Last {
  NDArray data;
  std::int64_t channels = 0, plane = 0;

  std::int64_t images() const { return data.shape()[0]; }
  std::int64_t height() const { return data.shape()[1]; }
  std::int64_t width() const { return data.shape()[2]; }
  WholeTensor tensor() const;
  /// [places, channels]; not defined where places do not lie at equal steps.
  NDArray matrix() const;
};
/// Room for results of these extents.
Last empty_last(const NDArray& like, std::int64_t n, std::int64_t h, std::int64_t w,
                std::int64_t channels);

/// Upstream gradients in channels-last order, brought there once for all that read them.
class Upper {
 public:
  explicit Upper(const NDArray& g) : g_(g) {}
  const Last& last();

 private:
  const NDArray& g_;
  Last last_;
};

/// From [n, c, y, x] of any layout; of float32 in pieces.
Last channels_last(const NDArray& x);
/// Into [n, c, y, x] of any layout.
void from_channels_last(const NDArray& out, const Last& x);

/// [n, c, y, x] as [n, c, places], where that is a view.
bool as_planes(const NDArray& x, NDArray& out);

}  // namespace weft::device
