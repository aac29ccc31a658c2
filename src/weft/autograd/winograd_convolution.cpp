// SPDX-License-Identifier: Apache-2.0
// Winograd's convolution: whether it is expected to pay, and its launches. Images go in lots, so
// that what is transformed stays within a bound.

#include <algorithm>

#include "weft/array/ops.h"
#include "weft/autograd/gpu/convolution.h"
#include "weft/base/integers.h"
#include "weft/devices/grid.h"
#include "weft/operators/winograd.h"

namespace weft::device {

namespace {

constexpr std::int64_t kProducts = operators::kWinogradProducts, kTile = operators::kWinogradTile;
constexpr std::int64_t kVector = 4;  // tiles of a channel are whole vectors
constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;  // of transformed images at once

struct Sizes {
  std::int64_t results, summed, across, down, images;
  std::int64_t tiles() const { return images * across * down; }
  std::int64_t pitch() const { return ceil_div(tiles(), kVector) * kVector; }
};

/// Microseconds by the products of tiles less those by the products of windows.
bool pays(const Grid& grid, const Sizes& s, const NDArray& out, const NDArray& from) {
  // A processor adds 128 products a clock, of which tiles of products reach a part.
  constexpr double kReached = 0.65;
  const double sums =
      kReached * 128 * grid.clocks_per_microsecond() * static_cast<double>(grid.processors());
  const auto pairs = static_cast<double>(s.results * s.summed),
             moved = static_cast<double>(kProducts * (s.pitch() * (s.results + s.summed))) +
                     static_cast<double>(kProducts) * pairs;
  const double plain = static_cast<double>(out.size() * s.summed * 9) / sums;
  const double turned = static_cast<double>(kProducts * s.pitch()) * pairs / sums +
                        4 * (2 * moved + static_cast<double>(out.size() + from.size())) /
                            grid.bytes_per_microsecond() +
                        3 * kLaunchMicroseconds;
  return turned < plain;
}

std::int64_t blocks_of(std::int64_t size) {
  return ceil_div(size, std::int64_t{operators::kWinogradThreads});
}

/// Images that are transformed at once: equal lots within the bound.
std::int64_t lot_of(const Sizes& s) {
  const std::int64_t of_image = kProducts * s.across * s.down * (s.results + s.summed) * 4,
                     most = std::clamp<std::int64_t>(kMostBytes / of_image, 1, s.images);
  return ceil_div(s.images, ceil_div(s.images, most));
}

/// Tiles of images x[n, channel, y, x], zeros around, as [36, channel, tile]. `upper`: tiles of the
/// result's gradient.
NDArray transformed(const NDArray& x, const Sizes& s, const Pair& before, bool upper) {
  const Dims& n = x.shape();
  const NDArray out = NDArray::empty(x.device(), Elem::float32, Dims{kProducts, n[1], s.pitch()});
  std::int64_t reach = out.size();
  for (int i = 0; i < 4; ++i) reach = std::max(reach, 4 * (n[i] + 16) * std::abs(x.strides()[i]));
  const bool narrow = fits_narrow(reach);
  ProgramCall call(x.device());
  call.array(x).array(out).integer(blocks_of(n[1] * s.pitch())).integer(n[1] * s.pitch());
  call.integer(s.pitch()).integer(s.images).integer(s.across).integer(s.down).integer(n[1]);
  call.integer(n[2]).integer(n[3]).integer(before[0]).integer(before[1]);
  for (std::int64_t v : x.strides()) call.integer(v);
  call.run({"winograd.input", {upper, narrow}},
           [&] { return operators::winograd_input(upper, narrow); });
  return out;
}

Sizes sizes_of(const NDArray& out, const NDArray& from) {
  const Dims& n = out.shape();
  return {n[1], from.shape()[1], ceil_div(n[3], kTile), ceil_div(n[2], kTile), n[0]};
}

}  // namespace

bool winograd_convolution(const NDArray& out, const NDArray& from, const NDArray& weight,
                          const Pair& before, bool turned) {
  const Dims& n = out.shape();
  Sizes s = sizes_of(out, from);
  if (!pays(grid_of(out.device()), s, out, from)) return false;
  const Ref<Device>& device = out.device();
  const NDArray windows = weight.contiguous();
  const NDArray factors =
      NDArray::empty(device, Elem::float32, Dims{kProducts, s.results, s.summed});
  const std::int64_t own = windows.strides()[0], other = windows.strides()[1],
                     pairs = s.results * s.summed;
  ProgramCall weights(device);
  weights.array(windows).array(factors).integer(blocks_of(pairs)).integer(pairs);
  weights.integer(s.results).integer(s.summed);
  weights.integer(turned ? other : own).integer(turned ? own : other);
  const bool few = fits_narrow(pairs * kProducts);
  weights.run({"winograd.weights", {turned, few}},
              [&] { return operators::winograd_weights(turned, few); });
  for (std::int64_t first = 0, lot = lot_of(s); first < n[0]; first += lot) {
    s.images = std::min(lot, n[0] - first);
    const NDArray y = out.slice(0, first, s.images, 1);
    const NDArray sums =
        matmul(factors, transformed(from.slice(0, first, s.images, 1), s, before, false));
    const bool whole = n[3] % kTile == 0, narrow = fits_narrow(std::max(4 * y.size(), sums.size()));
    ProgramCall call(device);
    call.array(sums).array(y).integer(blocks_of(s.results * s.pitch()));
    call.integer(s.results * s.pitch()).integer(s.pitch()).integer(s.images);
    call.integer(s.across).integer(s.down).integer(s.results).integer(n[2]).integer(n[3]);
    call.run({"winograd.output", {whole, narrow}},
             [&] { return operators::winograd_output(whole, narrow); });
  }
  return true;
}

bool winograd_weights(const NDArray& out, const NDArray& g, const NDArray& from,
                      const Pair& before) {
  Sizes s = sizes_of(g, from);
  if (!pays(grid_of(out.device()), s, g, from)) return false;
  const std::int64_t images = s.images;
  NDArray sums;
  for (std::int64_t first = 0, lot = lot_of(s); first < images; first += lot) {
    s.images = std::min(lot, images - first);
    const NDArray part =
        matmul(transformed(g.slice(0, first, s.images, 1), s, {0, 0}, true),
               transformed(from.slice(0, first, s.images, 1), s, before, false).transpose(1, 2));
    if (sums.defined()) apply_into(Op::add, sums, sums, part);
    else sums = part;
  }
  const std::int64_t pairs = s.results * s.summed;
  const bool narrow = fits_narrow(kProducts * pairs);
  ProgramCall call(out.device());
  call.array(sums).array(out).integer(blocks_of(pairs)).integer(pairs);
  call.run({"winograd.windows", {narrow}}, [&] { return operators::winograd_windows(narrow); });
  return true;
}

}  // namespace weft::device
