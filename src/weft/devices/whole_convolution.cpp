// SPDX-License-Identifier: Apache-2.0
// Convolutions of 16-bit floats as whole products without copies of windows: the copy engine reads
// a patch of 64 places of the images at the place of the window that a step of the sum belongs to;
// what lies outside is 0. Images are brought to channels-last order before, and back afterwards.

#include <algorithm>

#include "weft/array/ops.h"
#include "weft/base/integers.h"
#include "weft/devices/transpose.h"
#include "weft/devices/whole_call.h"

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
  bool fits = begins_at(x, 16) && (s[1] == 1 || n[1] == 1);
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

/// [o, c, i, j] as a view (i, j, c, o) of rows at multiples of 16 bytes: one transpose.
NDArray by_place(const NDArray& weight) {
  const Dims& n = weight.shape();
  const std::int64_t pitch = ceil_div(n[0], 8) * 8, rows = n[1] * n[2] * n[3];
  const NDArray out = NDArray::empty(weight.device(), weight.elem(), Dims{n[1], n[2], n[3], pitch});
  grid_transpose(out.as_strided(Dims{1, rows, n[0]}, Dims{0, pitch, 1}, out.offset()),
                 weight.contiguous().reshape(Dims{1, n[0], rows}));
  const int order[] = {1, 2, 0, 3};
  return out.permute(order).slice(3, 0, n[0], 1);
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
  v.steps = v.chunks * places;
  rules::GemmShape shape;
  shape.m = count * 64, shape.n = out.channels, shape.k = v.steps * 64, shape.column_unit = 64,
  shape.most_rows = 128, shape.most_cluster = 1;
  shape.divisible = out.data.is_contiguous() && out.data.shape()[3] == out.channels;
  const rules::GemmDecisions choice =
      rules::choose_gemm(rules::gemm_machine(grid_of(x.data.device())), shape);
  take(choice, spec);
  v.part = ceil_div(v.steps, choice.parts), v.parts = ceil_div(v.steps, v.part);
  v.tiles_m = ceil_div(count, spec.groups), v.tiles_n = ceil_div(out.channels, spec.columns);
  v.m = v.parts > 1 ? out.images() * out.height() * out.width() : count * 64, v.n = out.channels;
  v.wide = out.width(), v.high = out.height();
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  v.turned = turned ? places : 0;
  const Dims &n = weight.shape(), &s = weight.strides();
  const std::int64_t rows = turned ? n[3] : n[2], columns = turned ? n[2] : n[3];
  const WholeTensor a = x.tensor(), to = out.tensor();
  // The innermost axis is o, summed where the window is turned around.
  const WholeTensor b = tensor_of(
      weight, {turned ? rows : columns, turned ? columns : rows, n[1], n[0]}, {s[2], s[1], s[0]});
  if (v.parts == 1) return run_whole(x.data.device(), spec, {&a, &b, &to}, out.data, v);
  spec.out = WholeProduct::Out::partial;
  const NDArray parts = NDArray::empty(x.data.device(), Elem::float32, Dims{v.parts, v.m, v.n});
  run_whole(x.data.device(), spec, {&a, &b}, parts, v);
  add_parts(out.data, parts);
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

namespace {

/// Upstream gradients in channels-last order, brought there once for all that read them.
class Upper {
 public:
  explicit Upper(const NDArray& g) : g_(g) {}
  const Last& last() {
    if (!last_.data.defined()) last_ = channels_last(g_);
    return last_;
  }

 private:
  const NDArray& g_;
  Last last_;
};

void input_gradient(const NDArray& out, const NDArray& g, Upper& last, const NDArray& weight,
                    const Images& images) {
  const Dims &n = out.shape(), &w = weight.shape();
  NDArray upper, planes;
  if (plain(weight, images, g) && as_planes(g, upper) && as_planes(out, planes) &&
      whole_product(planes, as_matrices(weight, n[0]).transpose(1, 2), upper))
    return;
  const Last to{empty_last(out, n[0], n[2], n[3], n[1]), n[1]};
  const Last& from = last.last();
  const NDArray turned = by_place(weight);
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
              turned.slice(0, y.first, y.window, step[0]).slice(1, x.first, x.window, step[1]),
              back, true);
    }
  }
  from_channels_last(out, to);
}

void weight_gradient(const NDArray& out, const NDArray& g, Upper& last, const NDArray& x,
                     const Images& images) {
  const Dims& w = out.shape();
  NDArray planes_g, planes_x;
  // One sum for each image, added up afterwards, where that moves less than turning the images.
  if (plain(out, images, g) && w[0] * w[1] * 4 < (w[0] + w[1]) * g.shape()[2] * g.shape()[3] &&
      as_planes(g, planes_g) && as_planes(x, planes_x)) {
    NDArray sums = NDArray::empty(out.device(), Elem::float32, Dims{g.shape()[0], w[0], w[1]});
    if (whole_product(sums, planes_g, planes_x.transpose(1, 2))) return add_parts(out, sums);
  }
  const Last from = channels_last(x);
  const Last& by = last.last();
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
  shape.column_unit = 64, shape.most_rows = 128, shape.most_cluster = 1;
  shape.divisible = true;
  const rules::GemmDecisions choice =
      rules::choose_gemm(rules::gemm_machine(grid_of(x.device())), shape);
  take(choice, spec);
  v.part = ceil_div(v.steps, choice.parts), v.parts = ceil_div(v.steps, v.part);
  v.tiles_m = ceil_div(v.m, 64 * spec.groups), v.tiles_n = ceil_div(v.n, spec.columns);
  v.before[0] = images.before[1], v.before[1] = images.before[0];
  const bool whole = v.parts == 1 && v.n % 8 == 0;
  spec.out = whole ? WholeProduct::Out::copied : WholeProduct::Out::partial;
  const WholeTensor a = from.tensor(), b = by.tensor();
  // Channels before places: the weights' own order is one transpose away.
  NDArray turned = NDArray::empty(out.device(), out.elem(), Dims{v.m, v.batches, v.n});
  if (whole) {
    const WholeTensor to = tensor_of(turned, {v.n, v.m, v.batches, 1}, {v.n * v.batches, v.n, 8});
    run_whole(out.device(), spec, {&a, &b, &to}, turned, v);
  } else {
    NDArray parts = NDArray::empty(out.device(), Elem::float32, Dims{v.parts, v.m, v.batches, v.n});
    run_whole(out.device(), spec, {&a, &b}, parts, v);
    add_parts(turned, parts);
  }
  const std::int64_t rows = v.m * v.batches;
  grid_transpose(out.reshape(Dims{1, v.n, rows}), turned.reshape(Dims{1, rows, v.n}));
}

}  // namespace

void whole_conv_gradients(const NDArray* input, const NDArray* weights, const NDArray& g,
                          const NDArray& x, const NDArray& weight, const Images& images) {
  Upper last(g);
  if (input) input_gradient(*input, g, last, weight, images);
  if (weights) weight_gradient(*weights, g, last, x, images);
}

}  // namespace weft::device
