// SPDX-License-Identifier: Apache-2.0
// Convolutions of 16-bit floats as whole products without copies of windows: the copy engine reads
// a patch of 64 places of the images at the place of the window that a step of the sum belongs to;
// what lies outside is 0. Images are brought to channels-last order before, and back afterwards.
// Of float32 the same with planes of pieces, whose results are written where they belong.

#include <algorithm>
#include <array>
#include <numeric>

#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/channels_last.h"
#include "weft/devices/pieces.h"
#include "weft/devices/place_convolution.h"
#include "weft/devices/transpose.h"
#include "weft/rules/product_choice.h"

namespace weft::device {

namespace {

bool has_steps(const Images& images) { return images.step[0] * images.step[1] > 1; }

/// What products read of it once.
std::int64_t read_bytes(const Last& x) {
  return (x.plane ? rules::kPieces : 1) * 2 * x.images() * x.height() * x.width() * x.channels;
}

/// Weights by place, (i, j, c, o), and what is outside of that.
struct Placed {
  NDArray x;
  Outermost outermost;
};

/// [group * o, c, i, j] as a view (i, j, c, o) of rows at multiples of 16 bytes: one transpose. Of
/// float32 in pieces.
Placed by_place(const NDArray& weight, std::int64_t groups) {
  const Dims& n = weight.shape();
  const std::int64_t o = n[0] / groups, pitch = ceil_div(o, 8) * 8, rows = n[1] * n[2] * n[3];
  const NDArray out =
      NDArray::empty(weight.device(), weight.elem(), Dims{groups, n[1], n[2], n[3], pitch});
  grid_transpose(out.as_strided(Dims{groups, rows, o}, Dims{rows * pitch, pitch, 1}, out.offset()),
                 weight.contiguous().reshape(Dims{groups, o, rows}));
  const int order[] = {1, 2, 0, 3};
  const NDArray first = out.select(0, 0);
  const bool pieces = weight.elem() == Elem::float32;
  const NDArray planes = pieces ? piece_planes(first) : NDArray();
  const NDArray rows_of = pieces ? planes.select(0, 0) : first;
  return {rows_of.permute(order).slice(3, 0, o, 1),
          pieces       ? Outermost{kPiecePlanes, planes.strides()[0]}
          : groups > 1 ? Outermost{groups, rows * pitch}
                       : Outermost{}};
}

/// Room for the results `out` in channels-last order.
Last room_for(const NDArray& out, std::int64_t groups) {
  const Dims& n = out.shape();
  Last room = empty_last(out, n[0] * groups, n[2], n[3], n[1] / groups);
  room.groups = groups;
  return room;
}

/// A patch of 64 places that covers images of these extents with the least outside of them. Of
/// equal ones that of the fewest images and the most nearly square: its places share more of their
/// windows, and their results lie side by side.
void choose_patch(WarpSpecializedGemm& spec, GemmParams& x, std::int64_t n, std::int64_t h,
                  std::int64_t w) {
  std::array<std::int64_t, 4> least{};
  for (int across = 1; across <= 64; across *= 2) {
    for (int down = 1; across * down <= 64; down *= 2) {
      if ((across - 1) * spec.step[0] >= 256 || (down - 1) * spec.step[1] >= 256) continue;
      const int images = 64 / (across * down);
      const std::int64_t wide = ceil_div(w, across), high = ceil_div(h, down),
                         count = wide * high * ceil_div(n, images);
      const std::array<std::int64_t, 4> cost{count, images, std::abs(across - down), -across};
      if (least[0] > 0 && cost >= least) continue;
      least = cost;
      spec.patch[0] = across, spec.patch[1] = down, spec.patch[2] = images;
      x.patches[0] = wide, x.patches[1] = high, x.steps = count;
    }
  }
}

/// Rows of patches: images `x`, weights by place, to `out` in channels-last order; of pieces to
/// float32 of any layout.
void patches(const Last& out, const Last& x, const Placed& placed, const Images& images,
             bool turned) {
  const NDArray& weight = placed.x;
  const bool pieces = x.plane > 0;
  WarpSpecializedGemm spec;
  spec.mode = WarpSpecializedGemm::Mode::patches;
  spec.type = x.data.dtype(), spec.pieces = pieces;
  spec.b_along_n = !turned, spec.grouped = images.groups > 1;
  spec.step[0] = static_cast<int>(images.step[1]), spec.step[1] = static_cast<int>(images.step[0]);
  GemmParams v;
  choose_patch(spec, v, out.images(), out.height(), out.width());
  const std::int64_t count = v.steps, places = weight.shape()[0] * weight.shape()[1];
  v.batches = images.groups;
  v.chunks = ceil_div(x.channels, 64), v.window = weight.shape()[1];
  v.steps = v.chunks * places;
  rules::GemmShape shape = warp_specialized_shape();
  shape.batches = images.groups;
  shape.m = count * 64, shape.n = out.channels, shape.k = v.steps * 64;
  shape.pieces = shape.keeps_pieces = pieces, shape.result_bytes = elem_bytes(out.data.elem());
  shape.read_bytes =
      read_bytes(x) + (pieces ? rules::kPieces : 1) * 2 * weight.size() * images.groups;
  const int planes_first[] = {0, 3, 1, 2};
  const NDArray ordered = pieces ? out.data.permute(planes_first) : out.data;
  shape.divisible = ordered.is_contiguous() && out.data.shape()[3] == out.channels;
  const rules::GemmDecisions choice = tuned_gemm(x.data.device(), shape);
  take(choice, spec);
  v.part = ceil_div(v.steps, choice.parts), v.parts = ceil_div(v.steps, v.part);
  v.tiles_m = ceil_div(count, spec.groups), v.tiles_n = ceil_div(out.channels, spec.columns);
  const bool by_threads = v.parts > 1 || pieces;
  v.m = by_threads ? out.images() * out.height() * out.width() : count * 64, v.n = out.channels;
  v.wide = out.width(), v.high = out.height();
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  v.gap[0] = images.gap[1], v.gap[1] = images.gap[0];
  v.turned = turned ? places : 0;
  const Dims &n = weight.shape(), &s = weight.strides();
  const std::int64_t rows = turned ? n[3] : n[2], columns = turned ? n[2] : n[3];
  const BulkTensor a = x.tensor(), to = out.tensor();
  // The innermost axis is o, summed where the window is turned around.
  const BulkTensor b =
      tensor_of(weight, {turned ? rows : columns, turned ? columns : rows, n[1], n[0]},
                {s[2], s[1], s[0]}, placed.outermost);
  if (!by_threads) return run_warp_specialized(x.data.device(), spec, {&a, &b, &to}, out.data, v);
  spec.out = WarpSpecializedGemm::Out::partial;
  const NDArray parts = v.parts > 1 ? NDArray::empty(x.data.device(), Elem::float32,
                                                     Dims{v.parts, images.groups * v.m, v.n})
                                    : ordered;
  const Dims& steps = out.data.strides();
  v.slab = v.m * v.n;
  v.to_image = steps[0], v.to_y = steps[1], v.to_x = steps[2], v.to_channel = steps[3];
  run_warp_specialized(x.data.device(), spec, {&a, &b}, parts, v);
  if (v.parts > 1) add_parts(ordered, parts);
}

/// Images whose pieces are in memory at a time, in equal lots.
std::int64_t lot_of(const NDArray& x, const NDArray& y) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 27;
  const std::int64_t images = x.shape()[0], bytes = 2 * kPiecePlanes * std::max(x.size(), y.size());
  return ceil_div(images, std::min(images, ceil_div(bytes, kMostBytes)));
}

void pieces_conv(const NDArray& out, const NDArray& x, const NDArray& weight,
                 const Images& images) {
  const Placed placed = by_place(weight, 1);
  const std::int64_t count = x.shape()[0], lot = lot_of(x, x);
  const int order[] = {0, 2, 3, 1};
  for (std::int64_t i = 0; i < count; i += lot) {
    const std::int64_t some = std::min(lot, count - i);
    const Last to{out.slice(0, i, some, 1).permute(order), out.shape()[1]};
    patches(to, channels_last(x.slice(0, i, some, 1)), placed, images, false);
  }
}

}  // namespace

void warp_specialized_conv(const NDArray& out, const NDArray& x, const NDArray& weight,
                           const Images& images) {
  const Dims& n = out.shape();
  const bool one_place = of_one_place(weight, images);
  if (one_place && has_steps(images))
    return warp_specialized_conv(out, named_places(x, images.step, n[2], n[3]), weight, {});
  if (x.elem() == Elem::float32) return pieces_conv(out, x, weight, images);
  if (one_place && place_convolution(out, x, weight)) return;
  const Last to = room_for(out, images.groups);
  patches(to, channels_last(x, images.groups), by_place(weight, images.groups), images, false);
  from_channels_last(out, to);
}

namespace {

/// What `v` is multiplied by to leave 1 modulo `by`, to which it is prime; 0 modulo 1.
std::int64_t inverse_of(std::int64_t v, std::int64_t by) {
  std::int64_t found = 0;
  while (by > 1 && v * found % by != 1) ++found;
  return found;
}

/// The adjoint of a convolution with steps, for all remainders of places by the steps at once:
/// out[step * q + r - before] sums g[q - t] * weight[step * t + r]. `out` is [n, c, y, x] of any
/// layout. Of windows with gaps a remainder has the places whose distances leave it: each at so
/// many from the one before.
void phases(const NDArray& out, const Last& g, const Placed& placed, const Images& images) {
  const Dims &n = out.shape(), &w = placed.x.shape(), &s = placed.x.strides();
  const bool pieces = g.plane > 0;
  WarpSpecializedGemm spec;
  spec.mode = WarpSpecializedGemm::Mode::patches;
  spec.out = pieces ? WarpSpecializedGemm::Out::partial : WarpSpecializedGemm::Out::stored;
  spec.type = g.data.dtype(), spec.pieces = pieces, spec.b_along_n = false;
  spec.grouped = images.groups > 1;
  const std::int64_t *step = images.step, count = step[0] * step[1],
                     channels = n[1] / images.groups;
  spec.phases[0] = static_cast<int>(step[1]), spec.phases[1] = static_cast<int>(step[0]);
  GemmParams v;
  choose_patch(spec, v, n[0], ceil_div(n[2], step[0]), ceil_div(n[3], step[1]));
  const std::int64_t patches = v.steps, places = w[0] * w[1];
  v.chunks = ceil_div(g.channels, 64), v.window = w[1], v.turned = places;
  v.batches = count * images.groups, v.each = count;
  for (int i = 0; i < 2; ++i) {
    const std::int64_t common = std::gcd(step[1 - i], images.gap[1 - i]);
    v.common[i] = common, v.gap[i] = images.gap[1 - i] / common;
    v.inverse[i] = inverse_of(v.gap[i], step[1 - i] / common);
  }
  rules::GemmShape shape = warp_specialized_shape();
  shape.batches = v.batches, shape.m = patches * 64, shape.n = channels;
  shape.k = v.chunks * ceil_div(places, count) * 64;
  shape.pieces = shape.keeps_pieces = pieces, shape.result_bytes = elem_bytes(out.elem());
  shape.read_bytes =
      read_bytes(g) + (pieces ? rules::kPieces : 1) * 2 * placed.x.size() * images.groups;
  take(tuned_gemm(out.device(), shape), spec);
  v.tiles_m = ceil_div(patches, spec.groups), v.tiles_n = ceil_div(channels, spec.columns);
  v.m = n[0] * n[2] * n[3], v.n = channels, v.wide = n[3], v.high = n[2];
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  const Dims& to = out.strides();
  v.to_image = to[0], v.to_channel = to[1], v.to_y = to[2], v.to_x = to[3];
  v.to_group = to[1] * channels;
  const BulkTensor a = g.tensor(), b = tensor_of(placed.x, {w[3], w[2], w[1], w[0]},
                                                 {s[2], s[1], s[0]}, placed.outermost);
  run_warp_specialized(out.device(), spec, {&a, &b}, out, v);
}

/// The adjoint at every place: a convolution with the windows turned around.
Images back_of(const Images& images, const NDArray& window) {
  Images back = images;
  for (int i = 0; i < 2; ++i)
    back.before[i] = (window.shape()[i] - 1) * images.gap[i] - images.before[i];
  return back;
}

void input_gradient(const NDArray& out, const NDArray& g, Upper& last, const NDArray& weight,
                    const Images& images) {
  if (of_one_place(weight, images) && place_input_gradient(out, g, last, weight)) return;
  const Placed placed = by_place(weight, images.groups);
  if (has_steps(images)) return phases(out, last.last(), placed, images);
  const Last to = room_for(out, images.groups);
  patches(to, last.last(), placed, back_of(images, placed.x), true);
  from_channels_last(out, to);
}

/// [group, c, place, o] of compact weights [group * o, c, i, j].
void weight_gradient(const NDArray& out, const Last& by, const Last& from, const Images& images) {
  const Dims& w = out.shape();
  const bool pieces = by.plane > 0;
  WarpSpecializedGemm spec;
  spec.mode = WarpSpecializedGemm::Mode::places;
  spec.type = from.data.dtype(), spec.pieces = pieces;
  spec.a_along_m = true, spec.grouped = images.groups > 1;
  spec.step[0] = static_cast<int>(images.step[1]), spec.step[1] = static_cast<int>(images.step[0]);
  GemmParams v;
  choose_patch(spec, v, by.images(), by.height(), by.width());
  const std::int64_t groups = images.groups;
  v.each = w[2] * w[3], v.batches = v.each * groups;
  v.window = w[3], v.m = w[1], v.n = w[0] / groups;
  v.gap[0] = images.gap[1], v.gap[1] = images.gap[0];
  rules::GemmShape shape = warp_specialized_shape();
  shape.batches = v.batches, shape.m = v.m, shape.n = v.n, shape.k = v.steps * 64;
  shape.pieces = shape.keeps_pieces = pieces, shape.result_bytes = elem_bytes(out.elem());
  shape.read_bytes = read_bytes(from) + read_bytes(by);
  shape.divisible = true;
  const rules::GemmDecisions choice = tuned_gemm(out.device(), shape);
  take(choice, spec);
  v.part = ceil_div(v.steps, choice.parts), v.parts = ceil_div(v.steps, v.part);
  v.tiles_m = ceil_div(v.m, 64 * spec.groups), v.tiles_n = ceil_div(v.n, spec.columns);
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  const bool whole = v.parts == 1 && v.n % 8 == 0 && !pieces;
  spec.out = whole ? WarpSpecializedGemm::Out::copied : WarpSpecializedGemm::Out::partial;
  const BulkTensor a = from.tensor(), b = by.tensor();
  // Channels before places: the weights' own order is one transpose away.
  NDArray turned = NDArray::empty(out.device(), out.elem(), Dims{groups, v.m, v.each, v.n});
  if (whole) {
    const BulkTensor to =
        tensor_of(turned, {v.n, v.m, v.each, groups}, {v.n * v.each, v.n, v.n * v.each * v.m},
                  groups > 1 ? Outermost{1, 8} : Outermost{});
    run_warp_specialized(out.device(), spec, {&a, &b, &to}, turned, v);
  } else {
    const bool sums = v.parts > 1 || !pieces;
    const NDArray parts =
        sums ? NDArray::empty(out.device(), Elem::float32, Dims{v.parts, groups, v.m, v.each, v.n})
             : turned;
    run_warp_specialized(out.device(), spec, {&a, &b}, parts, v);
    if (sums) add_parts(turned, parts);
  }
  const std::int64_t rows = v.m * v.each;
  grid_transpose(out.reshape(Dims{groups, v.n, rows}), turned.reshape(Dims{groups, rows, v.n}));
}

void pieces_gradients(const NDArray* input, const NDArray* weights, const NDArray& g,
                      const NDArray& x, const NDArray& weight, const Images& images) {
  const std::int64_t count = g.shape()[0], lot = lot_of(weights ? x : g, g);
  const Placed placed = input ? by_place(weight, 1) : Placed();
  const Dims& w = weight.shape();
  NDArray sums;  // of each lot, where there are several
  if (weights && lot < count)
    sums = NDArray::empty(g.device(), g.elem(), Dims{ceil_div(count, lot), w[0], w[1], w[2], w[3]});
  const int order[] = {0, 2, 3, 1};
  for (std::int64_t i = 0; i < count; i += lot) {
    const std::int64_t some = std::min(lot, count - i);
    const Last by = channels_last(g.slice(0, i, some, 1));
    if (input) {
      const NDArray part = input->slice(0, i, some, 1);
      const Last to{part.permute(order), input->shape()[1]};
      if (has_steps(images)) phases(part, by, placed, images);
      else patches(to, by, placed, back_of(images, placed.x), true);
    }
    if (weights)
      weight_gradient(sums.defined() ? sums.select(0, i / lot) : *weights, by,
                      channels_last(x.slice(0, i, some, 1)), images);
  }
  if (sums.defined()) add_parts(*weights, sums);
}

}  // namespace

void warp_specialized_conv_gradients(const NDArray* input, const NDArray* weights, const NDArray& g,
                                     const NDArray& x, const NDArray& weight,
                                     const Images& images) {
  const bool one_place = of_one_place(weight, images);
  if (one_place && has_steps(images)) {
    const Dims& m = g.shape();
    NDArray named;
    if (input)
      named = NDArray::empty(g.device(), g.elem(), Dims{m[0], weight.shape()[1], m[2], m[3]});
    warp_specialized_conv_gradients(input ? &named : nullptr, weights, g,
                                    weights ? named_places(x, images.step, m[2], m[3]) : x, weight,
                                    {});
    if (input) spread_places(*input, named, images.step);
    return;
  }
  if (g.elem() == Elem::float32) return pieces_gradients(input, weights, g, x, weight, images);
  Upper last(g, images.groups);
  if (input) input_gradient(*input, g, last, weight, images);
  if (!weights || (one_place && place_weight_gradient(*weights, g, last, x))) return;
  weight_gradient(*weights, last.last(), channels_last(x, images.groups), images);
}

bool prefers_tiles(const Ref<Device>& device, Elem elem, ConvolutionOf which,
                   const ConvolutionSize& s, const Images& images, double microseconds) {
  const Grid& grid = grid_of(device);
  if (!grid.whole_products()) return false;
  const bool pieces = elem == Elem::float32;
  const auto wide = [](std::int64_t v) { return static_cast<double>(v); };
  const std::int64_t places = s.places[0] * s.places[1], taps = s.window[0] * s.window[1],
                     groups = images.groups;
  const double sums = wide(s.images * places) * wide(s.channels * taps) * wide(s.results);
  constexpr double kWorthPieces = std::int64_t{1} << 27;  // multiply-adds, as of products
  if (pieces && sums < kWorthPieces) return false;
  auto steps = [](std::int64_t channels) { return ceil_div(channels, 64) * 64; };
  const std::int64_t of_x = groups * s.images * s.channels * s.image[0] * s.image[1],
                     of_y = groups * s.images * s.results * places,
                     of_w = groups * s.channels * taps * s.results;
  const std::int64_t element = pieces ? 2 * rules::kPieces : 2;
  rules::GemmShape tiles = warp_specialized_shape();
  tiles.pieces = tiles.keeps_pieces = pieces, tiles.result_bytes = pieces ? 4 : 2;
  rules::ProductSize threads{groups, s.results, s.images * places, s.channels * taps};
  std::int64_t phases = 1, brought = 0, taken = 0;  // elements in the order of tiles, and back
  if (which == ConvolutionOf::weights) {
    tiles.batches = taps * groups, tiles.m = s.channels, tiles.n = s.results;
    tiles.divisible = true;
    tiles.k = steps(s.images * places), tiles.read_bytes = element * (of_x + of_y);
    threads = {groups, s.results, s.channels * taps, s.images * places};
    brought = of_x + of_y;
  } else if (which == ConvolutionOf::results) {
    tiles.batches = groups;
    tiles.m = s.images * places, tiles.n = s.results, tiles.k = steps(s.channels) * taps;
    tiles.read_bytes = element * (of_x + of_w);
    brought = of_x, taken = of_y;
  } else {
    phases = images.step[0] * images.step[1];
    tiles.batches = phases * groups;
    tiles.m = ceil_div(s.images * s.image[0] * s.image[1], phases), tiles.n = s.channels;
    tiles.k = steps(s.results) * ceil_div(taps, phases);
    tiles.read_bytes = element * (of_y + of_w);
    threads = {groups, tiles.n, tiles.m, s.results * ceil_div(taps, phases)};
    brought = of_y, taken = phases == 1 ? of_x : 0;
  }
  const double rate = grid.bytes_per_microsecond();
  // Places of windows are tabulated and read one by one: on an H200 1.3 (3 x 3 with steps) to 2.8
  // (adjoints of 2 x 2) of what products in rows take, where pieces took 1.3 of their model's time.
  constexpr double kTabulated = 1.4;
  double by_threads = microseconds;
  if (by_threads == 0) {
    const double clocks =
        rules::choose_tile(grid, 4, threads, rules::TileReads::no_vectors).clocks * wide(phases);
    // Threads read images with zeros around, in float32.
    const bool around = images.before[0] + images.before[1] > 0 || !pieces;
    const double zeros = around ? 12 * wide(of_x) / rate + 2 * kLaunchMicroseconds : 0;
    by_threads = kTabulated * clocks / grid.clocks_per_microsecond() + zeros;
  }
  const double made =
      pieces ? (4 + 2 * kPiecePlanes) * wide(brought) / rate : 2 * 2 * wide(brought + taken) / rate;
  const double by_tiles =
      rules::gemm_time(rules::gemm_machine(grid), tiles, gemm_choice(grid, tiles)) + made +
      (pieces ? 5 : 3) * kLaunchMicroseconds;
  return by_tiles < by_threads + (pieces ? 0 : kLaunchMicroseconds);
}

}  // namespace weft::device
