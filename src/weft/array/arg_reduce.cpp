// SPDX-License-Identifier: Apache-2.0
// Positions of extremes: of a long run the extremes of blocks come from the reduction's kernels,
// and the first place is looked up in the block that has it. NaN counts as the extreme.

#include <algorithm>
#include <cstring>

#include "weft/array/complex_order.h"
#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// A run longer than kShort is cut into blocks, whose extremes are found first; four of them are
/// looked through at once.
constexpr std::int64_t kShort = 1024, kPiece = kShort * 256;

class Finder {
 public:
  Finder(bool largest, Elem e) : bytes_(elem_bytes(e)) {
    const auto op = static_cast<int>(largest ? ReduceOp::max : ReduceOp::min),
               at = static_cast<int>(e);
    reduce_ = kernels().reduce[op][at];
    four_ = kernels().reduce_four[op][at];
    find_ = loop_kernels().find[at];
  }
  /// The first place of a run's extreme, n <= kPiece.
  std::int64_t place(const char* x, std::int64_t n) const {
    if (n <= kShort) return of_quarters(x, n);
    // The last blocks may overlap: of equal extremes the first block has the first place.
    const std::int64_t blocks = (n + 4 * kShort - 1) / (4 * kShort) * 4,
                       size = (n + blocks - 1) / blocks;
    alignas(16) char extremes[kPiece / kShort * 8];
    for (std::int64_t b = 0; b < blocks; b += 4) {
      const void* in[4];
      for (std::int64_t k = 0; k < 4; ++k) in[k] = x + start(b + k, size, n) * bytes_;
      four_(size, in, extremes + b * bytes_);
    }
    const std::int64_t from = start(of_quarters(extremes, blocks), size, n);
    return from + of_quarters(x + from * bytes_, size);
  }
  /// Rows of n, contiguous; one long row is shared by threads in pieces.
  void rows(const char* x, std::int64_t count, std::int64_t n, std::int64_t* out) const {
    runtime::Pool& pool = runtime::Pool::shared();
    if (n <= kPiece) {
      pool.parallel_for(count, std::max<std::int64_t>(1, kParallelGrain / n),
                        [&](std::int64_t r, std::int64_t end) {
                          for (; n <= kShort && r + 4 <= end; r += 4) {
                            const void* in[4];
                            for (std::int64_t k = 0; k < 4; ++k) in[k] = x + (r + k) * n * bytes_;
                            alignas(16) char extremes[4 * 8];
                            four_(n, in, extremes);
                            find_(n, in, extremes, out + r);
                          }
                          for (; r < end; ++r) out[r] = place(x + r * n * bytes_, n);
                        });
      return;
    }
    const std::int64_t pieces = (n + kPiece - 1) / kPiece;
    std::vector<std::int64_t> at(static_cast<std::size_t>(pieces));
    std::vector<char> extremes(static_cast<std::size_t>(pieces * bytes_));
    for (std::int64_t r = 0; r < count; ++r) {
      const char* row = x + r * n * bytes_;
      pool.parallel_for(pieces, 1, [&](std::int64_t p, std::int64_t end) {
        for (; p < end; ++p) {
          const std::int64_t from = p * kPiece;
          const std::int64_t found = from + place(row + from * bytes_, std::min(kPiece, n - from));
          at[static_cast<std::size_t>(p)] = found;
          std::memcpy(&extremes[static_cast<std::size_t>(p * bytes_)], row + found * bytes_,
                      static_cast<std::size_t>(bytes_));
        }
      });
      out[r] = at[static_cast<std::size_t>(first(extremes.data(), pieces))];
    }
  }

 private:
  /// Where part b of size elements of a run begins; parts overlap at the end.
  static std::int64_t start(std::int64_t b, std::int64_t size, std::int64_t n) {
    return std::min(b * size, n - size);
  }
  /// place() of a short run, by its quarters.
  std::int64_t of_quarters(const char* x, std::int64_t n) const {
    const std::int64_t size = (n + 3) / 4;
    const void* in[4];
    for (std::int64_t k = 0; k < 4; ++k) in[k] = x + start(k, size, n) * bytes_;
    alignas(16) char each[4 * 8], wanted[4 * 8];
    four_(size, in, each);
    reduce_(4, each, wanted);
    for (std::int64_t k = 1; k < 4; ++k)
      std::memcpy(wanted + k * bytes_, wanted, static_cast<std::size_t>(bytes_));
    std::int64_t at[4];
    find_(size, in, wanted, at);
    std::int64_t k = 0;
    while (k < 3 && at[k] == size) ++k;
    return start(k, size, n) + at[k];
  }
  /// place() of a run of any length.
  std::int64_t first(const char* x, std::int64_t n) const {
    std::int64_t at = 0;
    if (n <= kPiece) return place(x, n);
    rows(x, 1, n, &at);
    return at;
  }

  std::int64_t bytes_;
  ReduceFn reduce_;
  ReduceFourFn four_;
  FindFn find_;
};

/// Rows of n truth values: the first one that is the extreme ends the search.
void marks(bool largest, const char* x, std::int64_t count, std::int64_t n, std::int64_t* out) {
  runtime::Pool::shared().parallel_for(
      count, std::max<std::int64_t>(1, kParallelGrain / n), [&](std::int64_t r, std::int64_t end) {
        for (; r < end; ++r) {
          const char* row = x + r * n;
          const void* found = std::memchr(row, largest ? 1 : 0, static_cast<std::size_t>(n));
          out[r] = found ? static_cast<const char*>(found) - row : 0;
        }
      });
}

/// Blocks of n rows of m columns: the last row from below that has its column's extreme.
void columns(PlaceFn place, std::int64_t bytes, const char* x, const char* extreme,
             std::int64_t outer, std::int64_t n, std::int64_t m, std::int64_t* out) {
  constexpr std::int64_t kStrip = 512;
  const std::int64_t strips = (m + kStrip - 1) / kStrip;
  const CastFn widen = kernels().cast[static_cast<int>(Elem::int32)][static_cast<int>(Elem::int64)];
  runtime::Pool::shared().parallel_for(
      outer * strips, std::max<std::int64_t>(1, kParallelGrain / (n * std::min(m, kStrip))),
      [&](std::int64_t t, std::int64_t end) {
        std::int32_t at[kStrip];
        for (; t < end; ++t) {
          const std::int64_t o = t / strips, from = t % strips * kStrip,
                             width = std::min(kStrip, m - from);
          const char* top = extreme + (o * m + from) * bytes;
          std::fill_n(at, width, 0);
          for (std::int64_t r = n; r-- > 0;)
            place(width, x + ((o * n + r) * m + from) * bytes, top, static_cast<std::int32_t>(r),
                  at);
          widen(width, at, out + o * m + from);
        }
      });
}

}  // namespace

NDArray arg_reduce(bool largest, const NDArray& x, std::optional<int> axis, bool keepdims) {
  std::string_view name = largest ? "argmax" : "argmin";
  const int a = axis ? normalize_axis(*axis, x.ndim(), name) : -1;
  Dims shape;
  for (int i = 0; i < x.ndim(); ++i) {
    if (axis && i != a) shape.push_back(x.shape()[i]);
    else if (keepdims) shape.push_back(1);
  }
  const Elem kernel = arithmetic_elem(x.elem());
  const std::int64_t n = axis ? x.shape()[a] : x.size();
  NDArray out = NDArray::empty(x.device(), Elem::int64, shape);
  if (out.size() == 0) return out;
  if (n == 0) {
    throw Error(ErrorKind::value, cat("array.", name, ".empty"),
                cat(name, " of no elements: shape ", to_string(x.shape()), " has an empty axis"));
  }
  if (is_complex(x.elem())) {
    const NDArray flat = axis ? x : x.reshape(Dims{x.size()});
    return complex_extreme_positions(largest, flat, axis ? a : 0).reshape(shape);
  }
  auto result = [&] { return reinterpret_cast<std::int64_t*>(out.host()); };
  if (has_grid(x)) {
    on_device().extreme_positions(largest, out, x,
                                  axis ? std::uint64_t{1} << a : ~std::uint64_t{0});
    return out;
  }
  auto rows = [&](const NDArray& lines) {
    if (kernel == Elem::boolean) return marks(largest, lines.host(), out.size(), n, result());
    Finder(largest, kernel).rows(lines.host(), out.size(), n, result());
  };
  if (x.on_host() && n == x.size() && x.elem() == kernel && x.is_contiguous()) {
    rows(x);
    return out;
  }
  NDArray flat = axis ? x : x.reshape(Dims{x.size()});
  const int at = axis ? a : 0;
  const ReduceOp op = largest ? ReduceOp::max : ReduceOp::min;
  std::int64_t inner = 1;
  for (int i = at + 1; i < flat.ndim(); ++i) inner *= flat.shape()[i];
  // Narrower blocks are turned: a call for each of their rows costs more.
  constexpr std::int64_t kWide = 96;
  if (x.on_host() && inner >= kWide && flat.is_contiguous() && flat.elem() == kernel &&
      n <= INT32_MAX) {
    Axes axes;
    axes.all = false;
    axes.axes.push_back(at);
    const NDArray extreme = reduce(op, flat, axes, false);
    columns(loop_kernels().place[static_cast<int>(kernel)], elem_bytes(kernel), flat.host(),
            extreme.host(), flat.size() / (n * inner), n, inner, result());
    return out;
  }
  std::vector<int> order;
  for (int i = 0; i < flat.ndim(); ++i) {
    if (i != at) order.push_back(i);
  }
  order.push_back(at);
  NDArray moved = flat.permute(order);
  moved = moved.elem() == kernel ? moved.contiguous() : moved.astype(kernel);
  if (!x.on_host()) return on_device().extreme_positions(largest, moved).reshape(shape);
  rows(moved);
  return out;
}

}  // namespace weft
