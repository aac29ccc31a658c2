// SPDX-License-Identifier: Apache-2.0
// Convolutions of 16-bit floats as whole products without copies of windows: the copy engine reads
// a patch of 64 places of the images at the place of the window that a step of the sum belongs to;
// what lies outside is 0. Images are brought to channels-last order before, and back afterwards.

#include <algorithm>

#include "weft/array/device_whole_call.h"
#include "weft/array/gpu/transpose.h"
#include "weft/array/ops.h"
#include "weft/base/integers.h"

namespace weft::device {

namespace {

/// Images [n, y, x, channel] with pixels at multiples of 16 bytes; `channels` of them count.
struct Last {
  NDArray data;
  std::int64_t channels = 0;

  std::int64_t images() const { return data.shape()[0]; }
  std::int64_t height() const { return data.shape()[1]; }
  std::int64_t width() const { return data.shape()[2]; }
  WholeTensor tensor() const {
    const Dims& s = data.strides();
    return tensor_of(data, {channels, width(), height(), images()}, {s[2], s[1], s[0]});
  }
};

NDArray empty_last(const NDArray& like, std::int64_t n, std::int64_t h, std::int64_t w,
                   std::int64_t channels) {
  return NDArray::empty(like.device(), like.elem(), Dims{n, h, w, ceil_div(channels, 8) * 8});
}

/// From [n, c, y, x] of any layout.
Last channels_last(const NDArray& x) {
  const Dims &n = x.shape(), &s = x.strides();
  Last out{x, n[1]};
  const int order[] = {0, 2, 3, 1};
  const NDArray turned = x.permute(order);
  const std::uint64_t address =
      x.handle()->address() + static_cast<std::uint64_t>(x.offset() * elem_bytes(x.elem()));
  bool fits = address % 16 == 0 && (s[1] == 1 || n[1] == 1);
  for (int i : {0, 2, 3}) fits = fits && (n[i] == 1 || (s[i] > 0 && s[i] % 8 == 0));
  if (fits) {
    out.data = turned;
    return out;
  }
  out.data = empty_last(x, n[0], n[2], n[3], n[1]);
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

/// Into [n, c, y, x] of any layout.
void from_channels_last(const NDArray& out, const Last& x) {
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

/// [o, c, i, j] as [i * j, c, o], rows at multiples of 16 bytes.
NDArray by_place(const NDArray& weight) {
  const Dims& n = weight.shape();
  const std::int64_t pitch = ceil_div(n[0], 8) * 8;
  NDArray out = NDArray::empty(weight.device(), weight.elem(), Dims{n[2], n[3], n[1], pitch});
  const int order[] = {2, 3, 1, 0};
  assign(out.slice(3, 0, n[0], 1), weight.permute(order));
  return out;
}

/// A patch of 64 places that covers images of these extents with the least outside of them.
void choose_patch(WholeProduct& spec, WholeNumbers& x, std::int64_t n, std::int64_t h,
                  std::int64_t w) {
  std::int64_t least = -1;
  for (int across = 1; across <= 64; across *= 2) {
    for (int down = 1; across * down <= 64; down *= 2) {
      if ((across - 1) * spec.step[0] >= 256 || (down - 1) * spec.step[1] >= 256) continue;
      const int images = 64 / (across * down);
      const std::int64_t wide = ceil_div(w, across), high = ceil_div(h, down),
                         count = wide * high * ceil_div(n, images);
      // Square ones share more of their windows.
      const std::int64_t cost = count * 128 + std::abs(across - down);
      if (least >= 0 && cost >= least) continue;
      least = cost;
      spec.patch[0] = across, spec.patch[1] = down, spec.patch[2] = images;
      x.patches[0] = wide, x.patches[1] = high, x.steps = count;
    }
  }
}

/// Rows of patches: images `x`, weights by place, to `out` in channels-last order.
void patches(const Last& out, const Last& x, const NDArray& weight, const Images& images,
             bool turned) {
  WholeProduct spec;
  spec.mode = WholeProduct::Mode::patches;
  spec.type = x.data.dtype();
  spec.b_along_n = !turned;
  spec.step[0] = static_cast<int>(images.step[1]), spec.step[1] = static_cast<int>(images.step[0]);
  WholeNumbers v;
  choose_patch(spec, v, out.images(), out.height(), out.width());
  const std::int64_t count = v.steps, places = weight.shape()[0] * weight.shape()[1];
  v.chunks = ceil_div(x.channels, 64), v.window = weight.shape()[1];
  v.steps = v.part = v.chunks * places;
  rules::GemmShape shape;
  shape.m = count * 64, shape.n = out.channels, shape.k = v.steps * 64, shape.column_unit = 64;
  const rules::GemmDecisions choice =
      rules::choose_gemm(gemm_machine(grid_of(x.data.device())), shape);
  take(choice, spec);
  v.tiles_m = ceil_div(count, spec.groups), v.tiles_n = ceil_div(out.channels, spec.columns);
  v.m = count * 64, v.n = out.channels;
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  v.turned = turned ? places : 0;
  const std::int64_t pitch = weight.strides()[2], plane = pitch * weight.shape()[2];
  const std::int64_t summed = x.channels, columns = out.channels;
  const WholeTensor a = x.tensor(), to = out.tensor();
  const WholeTensor b = turned ? tensor_of(weight, {summed, columns, places, 1}, {pitch, plane, 8})
                               : tensor_of(weight, {columns, summed, places, 1}, {pitch, plane, 8});
  run_whole(x.data.device(), spec, {&a, &b, &to}, out.data, v);
}

/// Windows of one place: each image is a product by itself, of planes as they lie.
bool plain(const NDArray& weight, const Images& images, const NDArray& y) {
  const Dims &w = weight.shape(), &n = y.shape();
  return w[2] * w[3] == 1 && images.step[0] * images.step[1] == 1 && images.before[0] == 0 &&
         images.before[1] == 0 && n[2] * n[3] % 8 == 0;
}
bool as_planes(const NDArray& x, NDArray& out) {
  const Dims& n = x.shape();
  return x.reshape_view(Dims{n[0], n[1], n[2] * n[3]}, out);
}
NDArray as_matrices(const NDArray& weight, std::int64_t count) {
  const Dims& w = weight.shape();
  return weight.reshape(Dims{1, w[0], w[1]}).broadcast_to(Dims{count, w[0], w[1]});
}

}  // namespace

void whole_conv(const NDArray& out, const NDArray& x, const NDArray& weight, const Images& images) {
  const Dims& n = out.shape();
  NDArray from, planes;
  if (plain(weight, images, out) && as_planes(x, from) && as_planes(out, planes) &&
      whole_product(planes, as_matrices(weight, n[0]), from))
    return;
  const Last to{empty_last(out, n[0], n[2], n[3], n[1]), n[1]};
  patches(to, channels_last(x), by_place(weight), images, false);
  from_channels_last(out, to);
}

void whole_conv_input(const NDArray& out, const NDArray& g, const NDArray& weight,
                      const Images& images) {
  const Dims &n = out.shape(), &w = weight.shape();
  NDArray upper, planes;
  if (plain(weight, images, g) && as_planes(g, upper) && as_planes(out, planes) &&
      whole_product(planes, as_matrices(weight, n[0]).transpose(1, 2), upper))
    return;
  const Last to{empty_last(out, n[0], n[2], n[3], n[1]), n[1]};
  const Last from = channels_last(g);
  // Places that are `step` apart read the same places of the window: out[step * q + r - before]
  // sums g[q - t] * weight[step * t + r].
  const std::int64_t *step = images.step, *before = images.before;
  struct Phase {
    std::int64_t place, count;   // in out, every step-th
    std::int64_t first, window;  // in the window, every step-th
    std::int64_t before;         // what lies before g
  };
  auto phases = [&](int axis, std::int64_t extent, std::int64_t window) {
    std::vector<Phase> all;
    for (std::int64_t r = 0; r < step[axis]; ++r) {
      const std::int64_t q = std::max<std::int64_t>(0, ceil_div(before[axis] - r, step[axis]));
      const std::int64_t place = step[axis] * q + r - before[axis];
      const std::int64_t taps = r < window ? ceil_div(window - r, step[axis]) : 0;
      if (place < extent)
        all.push_back({place, ceil_div(extent - place, step[axis]), r, taps, taps - 1 - q});
    }
    return all;
  };
  for (const Phase& y : phases(0, n[2], w[2])) {
    for (const Phase& x : phases(1, n[3], w[3])) {
      const Last part{
          to.data.slice(1, y.place, y.count, step[0]).slice(2, x.place, x.count, step[1]),
          to.channels};
      if (y.window == 0 || x.window == 0) {
        assign(part.data, full(g.device(), g.elem(), part.data.shape(), Scalar(0.0)));
        continue;
      }
      Images back;
      back.before[0] = y.before, back.before[1] = x.before;
      patches(part, from,
              by_place(
                  weight.slice(2, y.first, y.window, step[0]).slice(3, x.first, x.window, step[1])),
              back, true);
    }
  }
  from_channels_last(out, to);
}

void whole_conv_weight(const NDArray& out, const NDArray& g, const NDArray& x,
                       const Images& images) {
  const Dims& w = out.shape();
  NDArray planes_g, planes_x;
  // One sum for each image, added up afterwards, where that moves less than turning the images.
  if (plain(out, images, g) && w[0] * w[1] * 4 < (w[0] + w[1]) * g.shape()[2] * g.shape()[3] &&
      as_planes(g, planes_g) && as_planes(x, planes_x)) {
    NDArray sums = NDArray::empty(out.device(), Elem::float32, Dims{g.shape()[0], w[0], w[1]});
    NDArray target = out.is_contiguous() ? out : NDArray::empty(out.device(), out.elem(), w);
    if (whole_product(sums, planes_g, planes_x.transpose(1, 2))) {
      add_parts(target, sums);
      if (!out.is_contiguous()) assign(out, target);
      return;
    }
  }
  const Last from = channels_last(x), by = channels_last(g);
  WholeProduct spec;
  spec.mode = WholeProduct::Mode::places;
  spec.type = x.dtype();
  spec.a_along_m = true;
  spec.step[0] = static_cast<int>(images.step[1]), spec.step[1] = static_cast<int>(images.step[0]);
  WholeNumbers v;
  choose_patch(spec, v, by.images(), by.height(), by.width());
  v.batches = w[2] * w[3], v.window = w[3], v.m = w[1], v.n = w[0];
  rules::GemmShape shape;
  shape.batches = v.batches, shape.m = v.m, shape.n = v.n, shape.k = v.steps * 64;
  shape.column_unit = 64, shape.divisible = true;
  const rules::GemmDecisions choice = rules::choose_gemm(gemm_machine(grid_of(x.device())), shape);
  take(choice, spec);
  v.part = ceil_div(v.steps, choice.parts), v.parts = ceil_div(v.steps, v.part);
  v.tiles_m = ceil_div(v.m, 64 * spec.groups), v.tiles_n = ceil_div(v.n, spec.columns);
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  const bool whole = v.parts == 1 && v.n % 8 == 0;
  spec.out = whole ? WholeProduct::Out::copied : WholeProduct::Out::partial;
  const WholeTensor a = from.tensor(), b = by.tensor();
  NDArray turned = NDArray::empty(out.device(), out.elem(), Dims{w[2], w[3], w[1], w[0]});
  if (whole) {
    const WholeTensor to = tensor_of(turned, {v.n, v.m, v.batches, 1}, {v.n, v.m * v.n, 8});
    run_whole(out.device(), spec, {&a, &b, &to}, turned, v);
  } else {
    NDArray parts = NDArray::empty(out.device(), Elem::float32, Dims{v.parts, v.batches, v.m, v.n});
    run_whole(out.device(), spec, {&a, &b}, parts, v);
    add_parts(turned, parts);
  }
  const int back[] = {3, 2, 0, 1};
  assign(out, turned.permute(back));
}

}  // namespace weft::device
