// SPDX-License-Identifier: Apache-2.0
// Launches of convolutions by strips (operators/convolution.h): how many results and places a
// thread has, into how many parts a gradient's sum is cut.

#include <algorithm>
#include <vector>

#include "weft/autograd/gpu/convolution.h"
#include "weft/base/integers.h"
#include "weft/devices/grid.h"
#include "weft/operators/convolution.h"

namespace weft::device {

namespace {

using operators::ConvolutionSpec;

constexpr int kStrips[] = {8, 4, 2, 1};  // rows
constexpr std::int64_t kMostResults = 8;
constexpr std::int64_t kOccupied = 1024;  // threads that keep a processor busy

std::int64_t elements_reached(const NDArray& x) {
  std::int64_t most = 0;
  for (int i = 0; i < x.ndim(); ++i) most += (x.shape()[i] + 512) * std::abs(x.strides()[i]);
  return most;
}

ConvolutionSpec spec_of(const NDArray& from, const Pair& kernel, const Windows& w) {
  ConvolutionSpec s;
  s.type = std::string(name_of(from.elem())), s.sums = name_of(sum_elem(from.elem()));
  for (std::size_t a = 0; a < 2; ++a) {
    s.kernel[a] = static_cast<int>(kernel[a]), s.stride[a] = static_cast<int>(w.stride[a]);
    s.dilation[a] = static_cast<int>(w.dilation[a]);
  }
  return s;
}

ProgramKey key_of(std::string_view operation, const ConvolutionSpec& s, Elem elem) {
  return {operation,
          {static_cast<int>(elem), s.narrow, s.kernel[0], s.kernel[1], s.stride[0], s.stride[1],
           s.dilation[0], s.dilation[1], s.transposed, s.results, s.rows, s.threads, s.rolled}};
}

/// The strip of least expected time: long ones read less for each result, short ones occupy more
/// processors. 0: none fits a thread's registers.
int choose_rows(ConvolutionSpec s, const Grid& grid, std::int64_t lines, std::int64_t others) {
  int best = 0;
  std::int64_t least = 0;
  for (int rows : kStrips) {
    s.rows = rows;
    if (!operators::strips_fit(s)) continue;
    const std::int64_t threads = ceil_div(lines, rows) * others;
    constexpr std::int64_t kStart = 64;  // instructions besides
    std::int64_t read = 1, sums = static_cast<std::int64_t>(rows) * s.results;
    for (std::size_t a = 0; a < 2; ++a) {
      const int apart = (s.kernel[a] - 1) * s.dilation[a], places = a == 0 ? rows : 1;
      read *= s.transposed ? places + apart / s.stride[a] : (places - 1) * s.stride[a] + apart + 1;
      sums *= s.kernel[a];
    }
    const std::int64_t time =
        (kStart + 3 * read + sums) * std::max(threads, grid.processors() * kOccupied);
    if (best == 0 || time < least) best = rows, least = time;
  }
  return best;
}

/// One launch.
void strips_of(const NDArray& out, const NDArray& from, const NDArray& weight, std::int64_t groups,
               const Windows& w, bool transposed) {
  const Dims &n = out.shape(), &f = from.shape(), &k = weight.shape();
  const Grid& grid = grid_of(out.device());
  const std::int64_t outs = n[1] / groups, ins = f[1] / groups;
  ConvolutionSpec s = spec_of(from, {k[2], k[3]}, w);
  s.transposed = transposed;
  s.threads = static_cast<int>(std::min<std::int64_t>(128, grid.threads()));
  s.results = static_cast<int>(std::min(kMostResults, outs));
  // Rows and columns of strips; where a transposed one begins in `from`, and in its phase of out.
  std::int64_t lines = n[2], columns = n[3];
  Pair first{0, 0}, off{0, 0}, before = w.padding;
  if (transposed) {
    for (std::size_t a = 0; a < 2; ++a) {
      const std::int64_t extent = n[static_cast<int>(2 + a)], stride = w.stride[a];
      first[a] = w.padding[a] / stride, off[a] = w.padding[a] - stride * first[a];
      (a == 0 ? lines : columns) = (extent - 1 + w.padding[a]) / stride - first[a] + 1;
      before[a] = (s.kernel[a] - 1) * w.dilation[a] / stride - first[a];
    }
  }
  const std::int64_t chunks = ceil_div(outs, static_cast<std::int64_t>(s.results)),
                     lots = groups * chunks;
  s.rows = choose_rows(s, grid, lines, n[0] * columns * lots);
  if (s.rows == 0) {
    s.rolled = true, s.rows = 1;
    lines = n[2], columns = n[3], before = off = w.padding;
  }
  const std::int64_t strips = ceil_div(lines, static_cast<std::int64_t>(s.rows)),
                     size = n[0] * strips * columns;
  while (s.threads > 32 && s.threads / 2 >= size) s.threads /= 2;
  const std::int64_t lot_blocks = ceil_div(size, static_cast<std::int64_t>(s.threads)),
                     blocks = lot_blocks * lots;
  s.narrow = fits_narrow(std::max(
      {elements_reached(out), elements_reached(from), weight.size() * 8, blocks * s.threads}));
  ProgramCall call(out.device());
  call.array(from).array(weight).array(out);
  call.integer(blocks).integer(lot_blocks).integer(size).integer(columns).integer(strips);
  call.integer(groups).integer(chunks).integer(outs).integer(ins);
  call.integer(f[2]).integer(f[3]).integer(n[2]).integer(n[3]);
  call.integer(before[0]).integer(before[1]).integer(off[0]).integer(off[1]);
  for (std::int64_t v : from.strides()) call.integer(v);
  call.run(key_of("convolution.strips", s, from.elem()), [&] { return convolution_strips(s); });
}

}  // namespace

StripParts strip_parts(const Grid& grid, std::int64_t threads, std::int64_t summed,
                       std::int64_t groups) {
  constexpr std::int64_t kMostParts = 32, kLeastChannels = 8;
  const std::int64_t wanted =
      std::min({grid.processors() * kOccupied / std::max<std::int64_t>(threads, 1), kMostParts,
                summed / kLeastChannels});
  for (std::int64_t parts = wanted; parts > 1; --parts) {
    if (summed % parts == 0) return {parts, summed / parts, 0};
    if (groups == 1 && parts <= wanted / 2) break;
  }
  if (groups > 1 || wanted < 2) return {1, summed, 0};
  return {wanted, summed / wanted, summed % wanted};
}

// A part of the channels that are summed is a group, with results of its own.
void strip_convolution(const NDArray& out, const NDArray& from, const NDArray& weight,
                       std::int64_t groups, const Windows& w, bool transposed) {
  const Dims &n = out.shape(), &k = weight.shape();
  const std::int64_t outs = n[1] / groups, ins = from.shape()[1] / groups,
                     starts = transposed ? w.stride[0] * w.stride[1] : 1,
                     threads = groups * ceil_div(outs, kMostResults) *
                               ceil_div(n[0] * n[2] * n[3], starts);
  const Elem elem = out.elem();
  const StripParts parts = elem == sum_elem(elem)
                               ? strip_parts(grid_of(out.device()), threads, ins, groups)
                               : StripParts{1, ins, 0};
  if (parts.count == 1) return strips_of(out, from, weight, groups, w, transposed);
  const int channels = transposed ? 0 : 1;  // of weight
  const std::int64_t whole = parts.count * parts.each;
  auto first = [&](const NDArray& x, int axis) {
    return parts.rest ? x.slice(axis, 0, whole, 1) : x;
  };
  NDArray factor = first(weight, channels);
  if (!transposed) {
    factor = factor.contiguous()
                 .reshape(Dims{groups, outs, parts.count, parts.each, k[2], k[3]})
                 .permute(std::vector<int>{0, 2, 1, 3, 4, 5})
                 .contiguous()
                 .reshape(Dims{groups * parts.count * outs, parts.each, k[2], k[3]});
  }
  const NDArray sums =
      NDArray::empty(out.device(), elem, Dims{n[0], groups * parts.count * outs, n[2], n[3]});
  strips_of(sums, first(from, 1), factor, groups * parts.count, w, transposed);
  grid_reduce(ReduceOp::sum, elem, out.reshape(Dims{n[0], groups, outs, n[2], n[3]}),
              sums.reshape(Dims{n[0], groups, parts.count, outs, n[2], n[3]}), 4);
  if (!parts.rest) return;
  const NDArray more = NDArray::empty(out.device(), elem, n);
  strips_of(more, from.slice(1, whole, parts.rest, 1),
            weight.slice(channels, whole, parts.rest, 1).contiguous(), 1, w, transposed);
  apply_into(Op::add, out, Arg(out), Arg(more));
}

bool strip_weights(const NDArray& out, const NDArray& by, const NDArray& from, std::int64_t groups,
                   const Windows& w) {
  const Dims &k = out.shape(), &n = by.shape(), &f = from.shape();
  const Grid& grid = grid_of(out.device());
  ConvolutionSpec s = spec_of(from, {k[2], k[3]}, w);
  s.threads = static_cast<int>(std::min<std::int64_t>(128, grid.threads()));
  const std::int64_t outs = k[0] / groups, ins = k[1], lots = k[0] * ins;
  s.rows = choose_rows(s, grid, n[2], n[0] * n[3] * lots);
  if (s.rows == 0) return false;
  const std::int64_t strips = ceil_div(n[2], static_cast<std::int64_t>(s.rows)),
                     size = n[0] * strips * n[3];
  while (s.threads > 32 && s.threads / 2 >= size) s.threads /= 2;
  // A thread has a few strips before the block joins its sums.
  constexpr std::int64_t kEach = 4, kWaves = 8;
  const std::int64_t wanted = std::clamp<std::int64_t>(ceil_div(grid.processors() * kWaves, lots),
                                                       1, ceil_div(size, s.threads * kEach));
  const std::int64_t part = ceil_div(ceil_div(size, wanted), std::int64_t{s.threads}) * s.threads,
                     parts = ceil_div(size, part);
  const Elem sums = sum_elem(out.elem());
  const bool whole = parts == 1 && out.elem() == sums;
  const NDArray target = whole ? out : NDArray::empty(out.device(), sums, Dims{parts, out.size()});
  s.narrow = fits_narrow(
      std::max({elements_reached(by), elements_reached(from), target.size(), parts * part}));
  ProgramCall call(out.device());
  call.array(from).array(by).array(target);
  call.integer(lots * parts).integer(lots).integer(part).integer(size).integer(n[3]);
  call.integer(strips).integer(outs).integer(ins).integer(f[2]).integer(f[3]).integer(n[2]);
  call.integer(w.padding[0]).integer(w.padding[1]);
  for (const NDArray* x : {&from, &by}) {
    for (std::int64_t v : x->strides()) call.integer(v);
  }
  call.run(key_of("convolution.weights", s, from.elem()), [&] { return convolution_weights(s); });
  if (!whole) grid_reduce(ReduceOp::sum, sums, out.reshape(Dims{out.size()}), target, 1);
  return true;
}

NDArray window_rows(const NDArray& x, const Pair& kernel, const Pair& out, const Windows& w) {
  const Dims& n = x.shape();
  ConvolutionSpec s = spec_of(x, kernel, w);
  const std::int64_t places = out[0] * out[1], size = n[0] * n[1] * places,
                     blocks = ceil_div(size, static_cast<std::int64_t>(s.threads));
  const NDArray rows =
      NDArray::empty(x.device(), x.elem(), Dims{n[0], n[1] * kernel[0] * kernel[1], places});
  s.narrow = fits_narrow(std::max(elements_reached(x), rows.size() + blocks * s.threads));
  ProgramCall call(x.device());
  call.array(x).array(rows).integer(blocks).integer(size).integer(out[1]).integer(out[0]);
  call.integer(n[2]).integer(n[3]).integer(w.padding[0]).integer(w.padding[1]);
  for (std::int64_t v : x.strides()) call.integer(v);
  call.integer(n[1]);
  call.run(key_of("convolution.windows", s, x.elem()), [&] { return convolution_windows(s); });
  return rows;
}

}  // namespace weft::device
