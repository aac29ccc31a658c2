// SPDX-License-Identifier: Apache-2.0
// Convolutions of 16-bit floats as whole products without copies of windows: the copy engine reads
// a patch of 64 places of the images at the place of the window that a step of the sum belongs to;
// what lies outside is 0. Images are brought to channels-last order before; threads store results
// where they belong. Of float32 the same with planes of pieces.

#include <algorithm>
#include <array>
#include <cstdlib>

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

/// [o, c, i, j] as a view (i, j, c, o) of rows at multiples of 16 bytes: one transpose. Of float32
/// in pieces.
TileOperand by_place(const NDArray& weight) {
  const Dims& n = weight.shape();
  const std::int64_t pitch = ceil_div(n[0], 8) * 8, rows = n[1] * n[2] * n[3];
  const NDArray out = NDArray::empty(weight.device(), weight.elem(), Dims{n[1], n[2], n[3], pitch});
  grid_transpose(out.as_strided(Dims{1, rows, n[0]}, Dims{0, pitch, 1}, out.offset()),
                 weight.contiguous().reshape(Dims{1, n[0], rows}));
  const int order[] = {1, 2, 0, 3};
  const bool pieces = weight.elem() == Elem::float32;
  const NDArray planes = pieces ? piece_planes(out) : NDArray();
  const NDArray rows_of = pieces ? planes.select(0, 0) : out;
  return {rows_of.permute(order).slice(3, 0, n[0], 1), 3, pieces ? planes.strides()[0] : 0};
}

/// Where threads store results [n, c, y, x].
void store_at(WholeNumbers& v, const NDArray& out) {
  const Dims &n = out.shape(), &s = out.strides();
  v.m = n[0] * n[2] * n[3], v.n = n[1], v.wide = n[3], v.high = n[2], v.slab = out.size();
  v.to_image = s[0], v.to_channel = s[1], v.to_y = s[2], v.to_x = s[3];
}

/// A patch of 64 places that covers images of these extents with the least outside of them. Of
/// equal ones that of the fewest images and the most nearly square: its places share more of their
/// windows, and their results lie side by side.
void choose_patch(WholeProduct& spec, WholeNumbers& x, std::int64_t n, std::int64_t h,
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

/// Tiles of 64 columns and few steps: several blocks of a processor, so that one's stores overlap
/// another's products.
void share_processor(WholeProduct& spec, std::int64_t steps) {
  constexpr std::int64_t kFewSteps = 18;
  static const bool on = std::getenv("WEFT_TRY_RESIDENT") != nullptr;
  if (!on || spec.pieces || spec.columns != 64 || steps > kFewSteps) return;
  spec.groups = 1, spec.stages = 4, spec.resident = 3;
}

/// Rows of patches: images `x`, weights by place, to `out` [n, o, y, x] of any layout.
void patches(const NDArray& out, const Last& x, const TileOperand& placed, const Images& images,
             bool turned) {
  const NDArray& weight = placed.x;
  const Dims &to = out.shape(), &n = weight.shape(), &s = weight.strides();
  const bool pieces = x.plane > 0;
  WholeProduct spec;
  spec.mode = WholeProduct::Mode::patches;
  spec.type = x.data.dtype(), spec.pieces = pieces;
  spec.b_along_n = !turned;
  spec.step[0] = static_cast<int>(images.step[1]), spec.step[1] = static_cast<int>(images.step[0]);
  WholeNumbers v;
  choose_patch(spec, v, to[0], to[2], to[3]);
  const std::int64_t count = v.steps, places = n[0] * n[1];
  v.chunks = ceil_div(x.channels, 64), v.window = n[1];
  v.steps = v.chunks * places;
  rules::GemmShape shape = whole_shape();
  shape.m = count * 64, shape.n = to[1], shape.k = v.steps * 64;
  shape.pieces = shape.keeps_pieces = pieces, shape.result_bytes = elem_bytes(out.elem());
  shape.read_bytes = read_bytes(x) + (pieces ? rules::kPieces : 1) * 2 * weight.size();
  shape.divisible = out.is_contiguous();
  const rules::GemmDecisions choice = gemm_choice(grid_of(out.device()), shape);
  take(choice, spec);
  v.part = ceil_div(v.steps, choice.parts), v.parts = ceil_div(v.steps, v.part);
  if (v.parts == 1) share_processor(spec, v.steps);
  v.tiles_m = ceil_div(count, spec.groups), v.tiles_n = ceil_div(to[1], spec.columns);
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  v.turned = turned ? places : 0;
  const std::int64_t rows = turned ? n[3] : n[2], columns = turned ? n[2] : n[3];
  // The innermost axis is o, summed where the window is turned around.
  const WholeTensor a = x.tensor(),
                    b = tensor_in_planes(
                        weight, {turned ? rows : columns, turned ? columns : rows, n[1], n[0]},
                        {s[2], s[1], s[0]}, placed.plane);
  const bool split = v.parts > 1;
  spec.out = split || pieces ? WholeProduct::Out::partial : WholeProduct::Out::stored;
  const NDArray sums =
      split ? NDArray::empty(out.device(), Elem::float32, Dims{v.parts, out.size()}) : out;
  store_at(v, out);
  run_whole(out.device(), spec, {&a, &b}, sums, v);
  if (split) add_parts(out, sums);
}

/// Images whose pieces are in memory at a time, in equal lots.
std::int64_t lot_of(const NDArray& x, const NDArray& y) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 27;
  const std::int64_t images = x.shape()[0], bytes = 2 * kPiecePlanes * std::max(x.size(), y.size());
  return ceil_div(images, std::min(images, ceil_div(bytes, kMostBytes)));
}

void pieces_conv(const NDArray& out, const NDArray& x, const NDArray& weight,
                 const Images& images) {
  const TileOperand placed = by_place(weight);
  const std::int64_t count = x.shape()[0], lot = lot_of(x, x);
  for (std::int64_t i = 0; i < count; i += lot) {
    const std::int64_t some = std::min(lot, count - i);
    patches(out.slice(0, i, some, 1), channels_last(x.slice(0, i, some, 1)), placed, images, false);
  }
}

}  // namespace

void whole_conv(const NDArray& out, const NDArray& x, const NDArray& weight, const Images& images) {
  const Dims& n = out.shape();
  const bool one_place = of_one_place(weight, images);
  if (one_place && has_steps(images))
    return whole_conv(out, named_places(x, images.step, n[2], n[3]), weight, {});
  if (x.elem() == Elem::float32) return pieces_conv(out, x, weight, images);
  if (one_place && place_convolution(out, x, weight)) return;
  patches(out, channels_last(x), by_place(weight), images, false);
}

namespace {

/// The adjoint of a convolution with steps, for all remainders of places by the steps at once:
/// out[step * q + r - before] sums g[q - t] * weight[step * t + r]. `out` is [n, c, y, x] of any
/// layout.
void phases(const NDArray& out, const Last& g, const TileOperand& placed, const Images& images) {
  const Dims &n = out.shape(), &w = placed.x.shape(), &s = placed.x.strides();
  const bool pieces = g.plane > 0;
  WholeProduct spec;
  spec.mode = WholeProduct::Mode::patches;
  spec.out = pieces ? WholeProduct::Out::partial : WholeProduct::Out::stored;
  spec.type = g.data.dtype(), spec.pieces = pieces, spec.b_along_n = false;
  const std::int64_t *step = images.step, count = step[0] * step[1];
  spec.phases[0] = static_cast<int>(step[1]), spec.phases[1] = static_cast<int>(step[0]);
  WholeNumbers v;
  choose_patch(spec, v, n[0], ceil_div(n[2], step[0]), ceil_div(n[3], step[1]));
  const std::int64_t patches = v.steps, places = w[0] * w[1];
  v.chunks = ceil_div(g.channels, 64), v.window = w[1], v.turned = places, v.batches = count;
  rules::GemmShape shape = whole_shape();
  shape.batches = count, shape.m = patches * 64, shape.n = n[1];
  shape.k = v.chunks * ceil_div(places, count) * 64;
  shape.pieces = shape.keeps_pieces = pieces, shape.result_bytes = elem_bytes(out.elem());
  shape.read_bytes = read_bytes(g) + (pieces ? rules::kPieces : 1) * 2 * placed.x.size();
  take(gemm_choice(grid_of(out.device()), shape), spec);
  share_processor(spec, shape.k / 64);
  v.tiles_m = ceil_div(patches, spec.groups), v.tiles_n = ceil_div(n[1], spec.columns);
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  store_at(v, out);
  const WholeTensor a = g.tensor(), b = tensor_in_planes(placed.x, {w[3], w[2], w[1], w[0]},
                                                         {s[2], s[1], s[0]}, placed.plane);
  run_whole(out.device(), spec, {&a, &b}, out, v);
}

/// The adjoint at every place: a convolution with the windows turned around.
Images back_of(const Images& images, const NDArray& window) {
  Images back;
  for (int i = 0; i < 2; ++i) back.before[i] = window.shape()[i] - 1 - images.before[i];
  return back;
}
void adjoint(const NDArray& out, const Last& g, const TileOperand& placed, const Images& images) {
  if (has_steps(images)) return phases(out, g, placed, images);
  patches(out, g, placed, back_of(images, placed.x), true);
}

void input_gradient(const NDArray& out, const NDArray& g, Upper& last, const NDArray& weight,
                    const Images& images) {
  if (of_one_place(weight, images) && place_input_gradient(out, g, last, weight)) return;
  const TileOperand placed = by_place(weight);
  adjoint(out, last.last(), placed, images);
}

/// Towards compact weights [o, c, i, j]: columns of tiles are the window's places with all
/// channels each, so that a tile of several reads the gradient of the results once.
void weight_gradient(const NDArray& out, const Last& by, const Last& from, const Images& images) {
  const Dims& w = out.shape();
  const bool pieces = by.plane > 0;
  const std::int64_t places = w[2] * w[3];
  WholeProduct spec;
  spec.mode = WholeProduct::Mode::places;
  spec.type = from.data.dtype(), spec.pieces = pieces;
  spec.a_along_m = true;
  spec.step[0] = static_cast<int>(images.step[1]), spec.step[1] = static_cast<int>(images.step[0]);
  WholeNumbers v;
  choose_patch(spec, v, by.images(), by.height(), by.width());
  v.window = w[3], v.chunks = ceil_div(w[1], 64), v.m = w[0], v.n = places * v.chunks * 64;
  rules::GemmShape shape = whole_shape();
  shape.m = v.m, shape.n = v.n, shape.k = v.steps * 64;
  shape.pieces = shape.keeps_pieces = pieces, shape.result_bytes = elem_bytes(out.elem());
  shape.read_bytes = read_bytes(from) + read_bytes(by);
  shape.divisible = true;
  const rules::GemmDecisions choice = gemm_choice(grid_of(out.device()), shape);
  take(choice, spec);
  v.part = ceil_div(v.steps, choice.parts), v.parts = ceil_div(v.steps, v.part);
  v.tiles_m = ceil_div(v.m, 64 * spec.groups), v.tiles_n = ceil_div(v.n, spec.columns);
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  const bool whole = v.parts == 1 && !pieces;
  spec.out = whole ? WholeProduct::Out::copied : WholeProduct::Out::partial;
  const WholeTensor a = by.tensor(), b = from.tensor();
  const NDArray sums = NDArray::empty(out.device(), out.elem(), Dims{v.m, places, v.chunks * 64});
  if (whole) {
    const WholeTensor to = tensor_of(sums, {v.n, v.m, 1, 1}, {v.n, 8, 8});
    run_whole(out.device(), spec, {&a, &b, &to}, sums, v);
  } else {
    const bool apart = v.parts > 1 || !pieces;
    const NDArray parts =
        apart ? NDArray::empty(out.device(), Elem::float32, Dims{v.parts, v.m, v.n}) : sums;
    run_whole(out.device(), spec, {&a, &b}, parts, v);
    if (apart) add_parts(sums, parts);
  }
  // Channels before places.
  grid_transpose(out.reshape(Dims{v.m, w[1], places}), sums.slice(2, 0, w[1], 1));
}

void pieces_gradients(const NDArray* input, const NDArray* weights, const NDArray& g,
                      const NDArray& x, const NDArray& weight, const Images& images) {
  const std::int64_t count = g.shape()[0], lot = lot_of(weights ? x : g, g);
  const TileOperand placed = input ? by_place(weight) : TileOperand();
  const Dims& w = weight.shape();
  NDArray sums;  // of each lot, where there are several
  if (weights && lot < count)
    sums = NDArray::empty(g.device(), g.elem(), Dims{ceil_div(count, lot), w[0], w[1], w[2], w[3]});
  for (std::int64_t i = 0; i < count; i += lot) {
    const std::int64_t some = std::min(lot, count - i);
    const Last by = channels_last(g.slice(0, i, some, 1));
    if (input) adjoint(input->slice(0, i, some, 1), by, placed, images);
    if (weights)
      weight_gradient(sums.defined() ? sums.select(0, i / lot) : *weights, by,
                      channels_last(x.slice(0, i, some, 1)), images);
  }
  if (sums.defined()) add_parts(*weights, sums);
}

}  // namespace

void whole_conv_gradients(const NDArray* input, const NDArray* weights, const NDArray& g,
                          const NDArray& x, const NDArray& weight, const Images& images) {
  const bool one_place = of_one_place(weight, images);
  if (one_place && has_steps(images)) {
    const Dims& m = g.shape();
    NDArray named;
    if (input)
      named = NDArray::empty(g.device(), g.elem(), Dims{m[0], weight.shape()[1], m[2], m[3]});
    whole_conv_gradients(input ? &named : nullptr, weights, g,
                         weights ? named_places(x, images.step, m[2], m[3]) : x, weight, {});
    if (input) spread_places(*input, named, images.step);
    return;
  }
  if (g.elem() == Elem::float32) return pieces_gradients(input, weights, g, x, weight, images);
  Upper last(g);
  if (input) input_gradient(*input, g, last, weight, images);
  if (!weights || (one_place && place_weight_gradient(*weights, g, last, x))) return;
  weight_gradient(*weights, last.last(), channels_last(x), images);
}

bool prefers_pieces(const Ref<Device>& device, ConvolutionOf which, const ConvolutionSize& s,
                    const Images& images) {
  const Grid& grid = grid_of(device);
  if (!grid.whole_products()) return false;
  const auto wide = [](std::int64_t v) { return static_cast<double>(v); };
  const std::int64_t places = s.places[0] * s.places[1], taps = s.window[0] * s.window[1];
  const double sums = wide(s.images * places) * wide(s.channels * taps) * wide(s.results);
  constexpr double kWorthPieces = std::int64_t{1} << 27;  // multiply-adds, as of products
  if (sums < kWorthPieces) return false;
  auto steps = [](std::int64_t channels) { return ceil_div(channels, 64) * 64; };
  const std::int64_t of_x = s.images * s.channels * s.image[0] * s.image[1],
                     of_y = s.images * s.results * places;
  rules::GemmShape tiles = whole_shape();
  tiles.pieces = tiles.keeps_pieces = true, tiles.result_bytes = 4;
  rules::ProductSize threads{1, s.results, s.images * places, s.channels * taps};
  std::int64_t phases = 1, split = 0;  // elements that become pieces
  if (which == ConvolutionOf::weights) {
    tiles.m = s.results, tiles.n = taps * steps(s.channels), tiles.divisible = true;
    tiles.k = steps(s.images * places), tiles.read_bytes = 2 * rules::kPieces * (of_x + of_y);
    threads = {1, s.results, s.channels * taps, s.images * places};
    split = of_x + of_y;
  } else if (which == ConvolutionOf::results) {
    tiles.m = s.images * places, tiles.n = s.results, tiles.k = steps(s.channels) * taps;
    tiles.read_bytes = 2 * rules::kPieces * (of_x + s.channels * taps * s.results);
    split = of_x;
  } else {
    phases = images.step[0] * images.step[1];
    tiles.batches = phases;
    tiles.m = ceil_div(s.images * s.image[0] * s.image[1], phases), tiles.n = s.channels;
    tiles.k = steps(s.results) * ceil_div(taps, phases);
    tiles.read_bytes = 2 * rules::kPieces * (of_y + s.channels * taps * s.results);
    threads = {1, tiles.n, tiles.m, s.results * ceil_div(taps, phases)};
    split = of_y;
  }
  const double rate = grid.bytes_per_microsecond();
  const double clocks =
      rules::choose_tile(grid, 4, threads, rules::TileReads::no_vectors).clocks * wide(phases);
  // Threads read images with zeros around.
  const bool around = images.before[0] + images.before[1] > 0;
  const double zeros = around ? 12 * wide(of_x) / rate + 2 * kLaunchMicroseconds : 0;
  // Places of windows are tabulated and read one by one: on an H200 1.3 (3 x 3 with steps) to 2.8
  // (adjoints of 2 x 2) of what products in rows take, where pieces took 1.3 of their model's time.
  constexpr double kTabulated = 1.4;
  const double by_threads = kTabulated * clocks / grid.clocks_per_microsecond() + zeros;
  const double made = (4 + 2 * kPiecePlanes) * wide(split) / rate;
  const double by_tiles =
      rules::gemm_time(rules::gemm_machine(grid), tiles, gemm_choice(grid, tiles)) + made +
      5 * kLaunchMicroseconds;
  return by_tiles < by_threads;
}

}  // namespace weft::device
