// SPDX-License-Identifier: Apache-2.0
// Indexing by arrays: gather, scatter, take, nonzero. Every index is checked before anything is
// moved.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>

#include "weft/array/combined_rows.h"
#include "weft/array/into.h"
#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/array/repeat.h"
#include "weft/host/kernel_lists.h"
#include "weft/host/loop_kernels.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Positions along one axis of x: checked and wrapped where they are used.
struct Line {
  NDArray held;
  const std::int64_t* at;
  std::int64_t extent, step;  // of the axis; step in elements
  int axis;
};

Line line_of(const NDArray& index, const NDArray& x, int axis, const Dims& shape) {
  if (!is_integer(index.elem())) {
    throw Error(ErrorKind::index, "array.index.dtype",
                cat("an array index must be of integers, not ", name_of(index.elem())));
  }
  NDArray wide = index;
  if (index.elem() != Elem::int64 || !(index.shape() == shape) || !index.is_contiguous()) {
    wide = NDArray::empty(x.device(), Elem::int64, shape);
    assign(wide, index);
  }
  const auto* at = reinterpret_cast<const std::int64_t*>(wide.host());
  return {std::move(wide), at, x.shape()[axis], x.strides()[axis], axis};
}

[[noreturn]] void out_of_range(std::int64_t at, const Line& line, const NDArray& x) {
  throw Error(ErrorKind::index, "array.index.range",
              cat("index ", at, " is outside axis ", line.axis, " of ", describe(x)))
      .note(cat("legal: ", -line.extent, " to ", line.extent - 1));
}

Dims index_shape(std::span<const NDArray> indices) {
  std::vector<const Dims*> shapes;
  for (const NDArray& index : indices) shapes.push_back(&index.shape());
  return broadcast_shapes(shapes, "index");
}

std::vector<Line> lines_of(const NDArray& x, std::span<const NDArray> indices, const Dims& shape) {
  std::vector<Line> lines;
  for (std::size_t k = 0; k < indices.size(); ++k)
    lines.push_back(line_of(indices[k], x, static_cast<int>(k), shape));
  return lines;
}

/// Which of n positions is outside? One is.
[[noreturn]] void refuse(const std::int64_t* at, std::int64_t n, const Line& line,
                         const NDArray& x) {
  std::int64_t i = 0;
  while (i + 1 < n && at[i] >= -line.extent && at[i] < line.extent) ++i;
  out_of_range(at[i], line, x);
}

/// Offsets, in elements of x, of the index tuples [begin, begin + n).
void offsets(const NDArray& x, const std::vector<Line>& lines, std::int64_t begin, std::int64_t n,
             std::int64_t* out) {
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const Line& line = lines[k];
    const std::int64_t* at = line.at + begin;
    std::int64_t outside = 0;
    loop_kernels().resolve[k ? 1 : 0](n, line.extent, line.step, at, out, &outside);
    if (outside) refuse(at, n, line, x);
  }
}

/// out = elements of `base` at n positions along a line, which are checked.
void along(AlongFn fn, const NDArray& x, const Line& line, const char* base, const std::int64_t* at,
           std::int64_t n, char* out) {
  std::int64_t outside = n > 0 && line.extent == 0;
  if (!outside) fn(n, line.extent, line.step, base, at, out, &outside);
  if (outside) refuse(at, n, line, x);
}

/// f(begin, n, offsets) over all index tuples in chunks; in order and alone, or shared by threads.
template <typename F>
void for_offsets(const NDArray& x, const std::vector<Line>& lines, std::int64_t count,
                 std::int64_t grain, const F& f) {
  runtime::Pool::shared().parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t at[kChunk];
    for (; begin < end; begin += kChunk) {
      const std::int64_t n = std::min(kChunk, end - begin);
      offsets(x, lines, begin, n, at);
      f(begin, n, at);
    }
  });
}

struct Rest {
  Dims shape, strides;
  std::int64_t size = 1;
};
Rest rest_of(const NDArray& x, int used) {
  Rest rest;
  for (int i = used; i < x.ndim(); ++i) {
    rest.shape.push_back(x.shape()[i]);
    rest.strides.push_back(x.strides()[i]);
    rest.size *= x.shape()[i];
  }
  return rest;
}

constexpr std::int64_t kMarkBlock = kRun;

/// The truth values of an array on the host, row-major, and how many are set before each block.
class Marks {
 public:
  explicit Marks(const NDArray& x)
      : held_(x.elem() == Elem::boolean ? x.contiguous() : x.astype(Elem::boolean)),
        before_(static_cast<std::size_t>((x.size() + kMarkBlock - 1) / kMarkBlock + 1)) {
    data = reinterpret_cast<const std::uint8_t*>(held_.host());
    const std::int64_t blocks = static_cast<std::int64_t>(before_.size()) - 1;
    runtime::Pool::shared().parallel_for(
        blocks, kParallelGrain / kMarkBlock, [&](std::int64_t b, std::int64_t stop) {
          for (; b < stop; ++b) {
            const std::int64_t end = std::min(held_.size(), (b + 1) * kMarkBlock);
            loop_kernels().count(end - b * kMarkBlock, data + b * kMarkBlock,
                                 &before_[static_cast<std::size_t>(b) + 1]);
          }
        });
    for (std::size_t b = 1; b < before_.size(); ++b) before_[b] += before_[b - 1];
  }
  std::int64_t total() const { return before_.back(); }
  /// f(begin, end, set before begin) over blocks of at most kMarkBlock, shared by threads.
  template <typename F>
  void for_blocks(const F& f) const {
    runtime::Pool::shared().parallel_for(
        static_cast<std::int64_t>(before_.size()) - 1, kParallelGrain / kMarkBlock,
        [&](std::int64_t b, std::int64_t stop) {
          for (; b < stop; ++b)
            f(b * kMarkBlock, std::min(held_.size(), (b + 1) * kMarkBlock),
              before_[static_cast<std::size_t>(b)]);
        });
  }
  const std::uint8_t* data;

 private:
  NDArray held_;
  std::vector<std::int64_t> before_;
};

std::int64_t count_of(const Dims& shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}

}  // namespace

NDArray gather(const NDArray& x, std::span<const NDArray> indices) {
  if (!x.on_host()) {
    if (is_complex(x.elem())) return as_complex(gather(as_reals(x), indices));
    return on_device().gather(x, indices);
  }
  Dims shape = index_shape(indices);
  const std::vector<Line> lines = lines_of(x, indices, shape);
  const std::int64_t count = count_of(shape);
  Rest rest = rest_of(x, static_cast<int>(indices.size()));
  Dims result = shape;
  for (std::int64_t extent : rest.shape) result.push_back(extent);
  NDArray out = NDArray::empty(x.device(), x.elem(), result);
  const int bytes = elem_bytes(x.elem());
  if (rest.size == 1 && lines.size() == 1) {
    const AlongFn fn = loop_kernels().along[width_of(bytes)];
    runtime::Pool::shared().parallel_for(count, kParallelGrain / 4,
                                         [&](std::int64_t begin, std::int64_t end) {
                                           along(fn, x, lines[0], x.host(), lines[0].at + begin,
                                                 end - begin, out.host() + begin * bytes);
                                         });
    return out;
  }
  if (rest.size == 1) {
    const PickFn pick = loop_kernels().pick[width_of(bytes)];
    for_offsets(x, lines, count, kParallelGrain / 4,
                [&](std::int64_t begin, std::int64_t n, const std::int64_t* at) {
                  pick(n, x.host(), at, out.host() + begin * bytes);
                });
    return out;
  }
  const Nest first = make_nest(x.host(), rest.shape, rest.strides, bytes);
  const std::int64_t row = rest.size * bytes;
  const bool whole_rows = first.contiguous();
  for_offsets(x, lines, count,
              std::max<std::int64_t>(1, kParallelGrain / std::max<std::int64_t>(1, rest.size)),
              [&](std::int64_t begin, std::int64_t n, const std::int64_t* at) {
                char* to = out.host() + begin * row;
                Walker walker(first);
                for (std::int64_t i = 0; i < n && row > 0; ++i, to += row) {
                  if (whole_rows) {
                    std::memcpy(to, first.base + at[i] * bytes, static_cast<std::size_t>(row));
                    continue;
                  }
                  walker.restart(first.base + at[i] * bytes);
                  walker.gather(rest.size, to);
                }
              });
  return out;
}

/// Positions whose offsets are kept between checking and use.
constexpr std::int64_t kKept = 1 << 18;

namespace {

/// x[indices] = value on the host, or `with` of what is there and the value, one by one in order.
void put(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
         std::optional<Op> with) {
  Dims shape = index_shape(indices);
  const std::vector<Line> lines = lines_of(x, indices, shape);
  const std::int64_t count = count_of(shape);
  // All are checked before anything is moved; those of short ones are kept.
  const bool keeps = count <= kKept;
  const auto kept =
      std::make_unique_for_overwrite<std::int64_t[]>(keeps ? static_cast<std::size_t>(count) : 0);
  if (keeps) {
    offsets(x, lines, 0, count, kept.get());
  } else {
    for_offsets(x, lines, count, kParallelGrain,
                [](std::int64_t, std::int64_t, const std::int64_t*) {});
  }
  Rest rest = rest_of(x, static_cast<int>(indices.size()));
  Dims full = shape;
  for (std::int64_t extent : rest.shape) full.push_back(extent);
  NDArray source = value;
  while (source.ndim() > full.size() && source.shape()[0] == 1) source = source.select(0, 0);
  // One row for all positions is not repeated.
  bool one = rest.size > 1 && count > 1 && source.ndim() <= rest.shape.size();
  for (int i = 1; one && i <= source.ndim(); ++i) {
    const std::int64_t given = source.shape()[source.ndim() - i];
    one = given == 1 || given == rest.shape[rest.shape.size() - i];
  }
  if (one) full = rest.shape;
  NDArray packed = source;
  if (source.elem() != x.elem() || !(source.shape() == full) || !source.is_contiguous() ||
      may_overlap(source, x)) {
    packed = NDArray::empty(x.device(), x.elem(), full);
    assign(packed, source);
  }
  if (packed.size() == 0) return;
  const int bytes = elem_bytes(x.elem());
  const ElementwiseFn join =
      with ? kernels().elementwise[static_cast<int>(*with)][static_cast<int>(x.elem())] : nullptr;
  if (with && (!join || x.elem() == Elem::boolean)) {
    throw Error(ErrorKind::dtype, "array.scatter.dtype",
                cat("cannot ", *with == Op::add ? "add up " : "combine ", name_of(x.elem()),
                    " at indices"));
  }
  // Of equal positions the last value stands: one thread, in order.
  const std::int64_t whole = std::max<std::int64_t>(count, 1);
  const PutFn one_by_one = !with              ? loop_kernels().put[width_of(bytes)]
                           : *with == Op::add ? loop_kernels().put_add[static_cast<int>(x.elem())]
                                              : nullptr;
  if (rest.size == 1 && one_by_one) {
    if (keeps) return one_by_one(count, packed.host(), kept.get(), x.host());
    return for_offsets(x, lines, count, whole,
                       [&](std::int64_t begin, std::int64_t n, const std::int64_t* at) {
                         one_by_one(n, packed.host() + begin * bytes, at, x.host());
                       });
  }
  const Nest first = make_nest(x.host(), rest.shape, rest.strides, bytes);
  const std::int64_t row = rest.size * bytes, next = one ? 0 : row;
  const bool whole_rows = first.contiguous();
  std::string held(static_cast<std::size_t>(row), '\0');
  for_offsets(x, lines, count, whole,
              [&](std::int64_t begin, std::int64_t n, const std::int64_t* at) {
                const char* from = packed.host() + begin * next;
                Walker walker(first);
                for (std::int64_t i = 0; i < n; ++i, from += next) {
                  char* to = first.base + at[i] * bytes;
                  if (whole_rows) {
                    const void* in[2] = {to, from};
                    if (join) join(rest.size, in, to);
                    else std::memcpy(to, from, static_cast<std::size_t>(row));
                    continue;
                  }
                  const void* in[2] = {held.data(), from};
                  if (join) {
                    walker.restart(to);
                    walker.gather(rest.size, held.data());
                    join(rest.size, in, held.data());
                  }
                  walker.restart(to);
                  walker.scatter(rest.size, join ? held.data() : from);
                }
              });
}

}  // namespace

void scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
             bool accumulate, Checked checked) {
  if (x.on_host())
    return put(x, indices, value, accumulate ? std::optional(Op::add) : std::nullopt);
  if (is_complex(x.elem())) {
    const NDArray z = value.elem() == x.elem() ? value : value.astype(x.elem());
    return scatter(as_reals(x), indices, as_reals(z), accumulate, checked);
  }
  on_device().scatter(x, indices, value, accumulate, checked);
}

void scatter_extreme(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
                     bool largest) {
  WEFT_CHECK(x.on_host(), "extremes at positions of an array on the host, not ", describe(x));
  put(x, indices, value, largest ? Op::maximum : Op::minimum);
}

void scatter_product(const NDArray& x, std::span<const NDArray> indices, const NDArray& value) {
  WEFT_CHECK(x.on_host(), "products at positions of an array on the host, not ", describe(x));
  put(x, indices, value, Op::multiply);
}

void add_rows(const NDArray& x, const NDArray& to, const NDArray& table, const NDArray& from) {
  const NDArray targets[1] = {to}, sources[1] = {from};
  const Rest rest = rest_of(x, 1);
  const ElementwiseFn add =
      kernels().elementwise[static_cast<int>(Op::add)][static_cast<int>(x.elem())];
  const bool direct = x.on_host() && table.on_host() && add && x.elem() == table.elem() &&
                      x.elem() != Elem::boolean && rest.size > 1 && x.is_contiguous() &&
                      table.is_contiguous() && rest.shape == rest_of(table, 1).shape &&
                      !may_overlap(x, table) && to.ndim() == 1 && to.shape() == from.shape();
  if (!direct) return scatter(x, targets, gather(table, sources), true);
  const Line into = line_of(to, x, 0, to.shape()), out_of = line_of(from, table, 0, from.shape());
  const std::int64_t count = to.size(), row = elem_bytes(x.elem());
  const auto at =
      std::make_unique_for_overwrite<std::int64_t[]>(static_cast<std::size_t>(2 * count));
  offsets(x, {into}, 0, count, at.get());
  offsets(table, {out_of}, 0, count, at.get() + count);
  for (std::int64_t i = 0; i < count; ++i) {
    char* here = x.host() + at[static_cast<std::size_t>(i)] * row;
    const void* in[2] = {here, table.host() + at[static_cast<std::size_t>(count + i)] * row};
    add(rest.size, in, here);
  }
}

NDArray take(const NDArray& x, const NDArray& indices, int axis) {
  axis = normalize_axis(axis, x.ndim(), "take");
  const int n = indices.ndim();
  if (x.on_host() && axis > 0 && x.is_contiguous()) {
    // Runs behind the axis are copied; positions are resolved once.
    Dims shape;
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) {
      shape.push_back(x.shape()[i]);
      outer *= x.shape()[i];
    }
    for (std::int64_t extent : indices.shape()) shape.push_back(extent);
    for (int i = axis + 1; i < x.ndim(); ++i) {
      shape.push_back(x.shape()[i]);
      inner *= x.shape()[i];
    }
    const std::vector<Line> lines = {line_of(indices, x, axis, indices.shape())};
    const std::int64_t count = indices.size(), block = x.shape()[axis] * inner;
    std::vector<std::int64_t> at(static_cast<std::size_t>(count));
    offsets(x, lines, 0, count, at.data());
    NDArray out = NDArray::empty(x.device(), x.elem(), shape);
    if (out.size() == 0) return out;
    const int bytes = elem_bytes(x.elem());
    auto rows = [&](auto&& copy) {
      runtime::Pool::shared().parallel_for(
          outer, std::max<std::int64_t>(1, kParallelGrain / (count * inner)), copy);
    };
    if (inner == 1) {
      const PickFn pick = loop_kernels().pick[width_of(bytes)];
      rows([&](std::int64_t o, std::int64_t end) {
        for (; o < end; ++o)
          pick(count, x.host() + o * block * bytes, at.data(), out.host() + o * count * bytes);
      });
      return out;
    }
    const std::int64_t run = inner * bytes;
    rows([&](std::int64_t o, std::int64_t end) {
      for (; o < end; ++o) {
        for (std::int64_t i = 0; i < count; ++i)
          std::memcpy(out.host() + (o * count + i) * run,
                      x.host() + (o * block + at[static_cast<std::size_t>(i)]) * bytes,
                      static_cast<std::size_t>(run));
      }
    });
    return out;
  }
  std::vector<int> order = {axis};
  for (int i = 0; i < x.ndim(); ++i) {
    if (i != axis) order.push_back(i);
  }
  NDArray list[1] = {indices};
  if (has_grid(x) && !is_complex(x.elem())) return on_device().gather(x.permute(order), list, axis);
  NDArray out = gather(x.permute(order), list);
  std::vector<int> back;
  for (int i = 0; i < axis; ++i) back.push_back(n + i);
  for (int i = 0; i < n; ++i) back.push_back(i);
  for (int i = axis + n; i < out.ndim(); ++i) back.push_back(i);
  return out.permute(back).contiguous();
}

NDArray take_along_axis(const NDArray& x, const NDArray& indices, int axis) {
  axis = normalize_axis(axis, x.ndim(), "take_along_axis");
  if (indices.ndim() != x.ndim()) {
    throw Error(ErrorKind::shape, "array.take_along_axis.rank",
                cat("take_along_axis needs as many dimensions in the indices, but ", describe(x),
                    " and ", describe(indices)));
  }
  Dims shape = indices.shape();
  for (int i = 0; i < x.ndim(); ++i) {
    if (i == axis || shape[i] == x.shape()[i]) continue;
    if (shape[i] != 1 && x.shape()[i] != 1) {
      throw Error(ErrorKind::shape, "array.take_along_axis.broadcast",
                  cat("take_along_axis of ", describe(x), " with ", describe(indices), ": axis ", i,
                      " differs"));
    }
    shape[i] = std::max(shape[i] == 0 ? 0 : shape[i], x.shape()[i]);
  }
  Dims grown = shape;
  grown[axis] = x.shape()[axis];
  NDArray wide = x.broadcast_to(grown);
  if (x.on_host()) {
    // Lines along the axis, last in memory.
    NDArray lines = wide.transpose(axis, -1).contiguous();
    NDArray at = indices.broadcast_to(shape).transpose(axis, -1);
    const int last = at.ndim() - 1;
    Line places = line_of(at, lines, last, at.shape());
    places.axis = axis;
    NDArray out = NDArray::empty(x.device(), x.elem(), at.shape());
    const std::int64_t n = lines.shape()[last], m = at.shape()[last];
    const int bytes = elem_bytes(x.elem());
    const AlongFn fn = loop_kernels().along[width_of(bytes)];
    runtime::Pool::shared().parallel_for(
        m ? out.size() / m : 0,
        std::max<std::int64_t>(1, kParallelGrain / std::max<std::int64_t>(m, 1)),
        [&](std::int64_t r, std::int64_t end) {
          for (; r < end; ++r)
            along(fn, x, places, lines.host() + r * n * bytes, places.at + r * m, m,
                  out.host() + r * m * bytes);
        });
    return out.transpose(axis, -1).contiguous();
  }
  if (!is_complex(x.elem())) return on_device().take_along(wide, indices.broadcast_to(shape), axis);
  std::vector<NDArray> all;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i == axis) {
      all.push_back(indices.broadcast_to(shape));
    } else {
      Dims line(x.ndim(), 1);
      line[i] = shape[i];
      all.push_back(
          arange(x.device(), Elem::int64, 0, 1, shape[i]).reshape(line).broadcast_to(shape));
    }
  }
  return gather(wide, all);
}

std::vector<NDArray> nonzero(const NDArray& x) {
  if (x.ndim() == 0) {
    throw Error(ErrorKind::value, "array.nonzero.rank",
                cat("nonzero of ", describe(x), ": a 0-d array has no positions"));
  }
  if (!x.on_host() && is_complex(x.elem())) return nonzero(apply(Op::not_equal, x, Scalar(0)));
  if (!x.on_host()) return on_device().nonzero(x);
  const Marks marks(x);
  const std::int64_t total = marks.total();
  std::vector<NDArray> out;
  for (int axis = 0; axis < x.ndim(); ++axis)
    out.push_back(NDArray::empty(x.device(), Elem::int64, Dims{total}));
  const int last = x.ndim() - 1;
  const std::int64_t row = x.shape()[last];
  std::vector<std::int64_t*> to;
  for (NDArray& line : out) to.push_back(reinterpret_cast<std::int64_t*>(line.host()));
  const ElementwiseFn less = one_kernel(1, Op::subtract, Elem::int64);
  marks.for_blocks([&](std::int64_t begin, std::int64_t end, std::int64_t at) {
    std::int64_t held[kMarkBlock + 1];
    std::int64_t n = 0;
    // One place more is written: in place only where no other thread has the next.
    const bool direct = last == 0 && x.size() <= kParallelGrain && at + end - begin < total;
    loop_kernels().places(end - begin, begin, marks.data + begin, direct ? to[0] + at : held, &n);
    if (!direct) std::copy_n(held, n, to[static_cast<std::size_t>(last)] + at);
    if (last == 0) return;
    // Positions grow: the coordinates of those in one row are worked out once.
    for (std::int64_t k = 0; k < n;) {
      std::int64_t r = held[k] / row;
      const std::int64_t row_begin = r * row;
      const std::int64_t next = std::lower_bound(held + k, held + n, row_begin + row) - held;
      const void* in[2] = {held + k, &row_begin};
      less(next - k, in, to[static_cast<std::size_t>(last)] + at + k);
      for (int i = last - 1; i >= 0; --i) {
        std::fill_n(to[static_cast<std::size_t>(i)] + at + k, next - k, r % x.shape()[i]);
        r /= x.shape()[i];
      }
      k = next;
    }
  });
  return out;
}

void need_mask(const NDArray& x, const NDArray& mask, int axis) {
  for (int i = 0; i < mask.ndim(); ++i) {
    if (axis + i < x.ndim() && (mask.shape()[i] == x.shape()[axis + i] || mask.shape()[i] == 0))
      continue;
    throw Error(ErrorKind::index, "array.index.mask",
                cat("a mask of shape ", to_string(mask.shape()), " does not fit axes ", axis,
                    "... of ", describe(x)));
  }
}

NDArray select_marked(const NDArray& x, const NDArray& mask) {
  need_mask(x, mask);
  if (has_grid(x) && mask.device() == x.device() && mask.shape() == x.shape() &&
      !is_complex(x.elem()))
    return on_device().select_marked(x, mask);
  if (!x.on_host() || !mask.on_host()) return gather(x, nonzero(mask));
  const Marks marks(mask);
  const NDArray compact = x.contiguous();
  const Rest rest = rest_of(compact, mask.ndim());
  Dims shape{marks.total()};
  for (std::int64_t extent : rest.shape) shape.push_back(extent);
  NDArray out = NDArray::empty(x.device(), x.elem(), shape);
  const int bytes = elem_bytes(x.elem());
  if (rest.size == 1) {
    const CompressFn compress = loop_kernels().compress[width_of(bytes)];
    marks.for_blocks([&](std::int64_t begin, std::int64_t end, std::int64_t at) {
      alignas(16) char held[(kMarkBlock + 1) * 16];
      std::int64_t n = 0;
      compress(end - begin, compact.host() + begin * bytes, marks.data + begin, held, &n);
      std::memcpy(out.host() + at * bytes, held, static_cast<std::size_t>(n * bytes));
    });
    return out;
  }
  const std::int64_t run = rest.size * bytes;
  marks.for_blocks([&](std::int64_t begin, std::int64_t end, std::int64_t at) {
    char* to = out.host() + at * run;
    for (std::int64_t i = begin; i < end && run > 0; ++i) {
      if (!marks.data[i]) continue;
      std::memcpy(to, compact.host() + i * run, static_cast<std::size_t>(run));
      to += run;
    }
  });
  return out;
}

bool put_marked(const NDArray& x, const NDArray& mask, const NDArray& values) {
  if (!x.on_host() || !mask.on_host() || !values.on_host() || values.ndim() != 1 ||
      mask.elem() != Elem::boolean || !(mask.shape() == x.shape()) || !x.is_contiguous())
    return false;
  const Marks marks(may_overlap(x, mask) ? mask.copy() : mask);
  if (marks.total() != values.size()) return false;
  const NDArray given = values.elem() != x.elem() ? values.astype(x.elem())
                        : may_overlap(x, values)  ? values.copy()
                                                  : values.contiguous();
  const int bytes = elem_bytes(x.elem());
  const ExpandFn expand = loop_kernels().expand[width_of(bytes)];
  marks.for_blocks([&](std::int64_t begin, std::int64_t end, std::int64_t at) {
    alignas(16) char held[(kMarkBlock + 1) * 16];
    std::memcpy(held, given.host() + at * bytes,
                static_cast<std::size_t>(std::min(end - begin, values.size() - at) * bytes));
    std::int64_t n = 0;
    expand(end - begin, held, marks.data + begin, x.host() + begin * bytes, &n);
  });
  return true;
}

std::int64_t count_marked(const NDArray& x) {
  const NDArray compact = x.contiguous();
  const int bytes = elem_bytes(x.elem());
  const CastFn cast =
      x.elem() == Elem::boolean
          ? nullptr
          : kernels().cast[static_cast<int>(x.elem())][static_cast<int>(Elem::boolean)];
  std::atomic<std::int64_t> total = 0;
  runtime::Pool::shared().parallel_for(x.size(), kParallelGrain,
                                       [&](std::int64_t begin, std::int64_t end) {
                                         std::int64_t count = 0;
                                         for (; begin < end; begin += kMarkBlock) {
                                           const std::int64_t n = std::min(kMarkBlock, end - begin);
                                           char held[kMarkBlock];
                                           const char* marks = compact.host() + begin * bytes;
                                           if (cast) cast(n, marks, held), marks = held;
                                           std::int64_t here = 0;
                                           loop_kernels().count(n, marks, &here);
                                           count += here;
                                         }
                                         total += count;
                                       });
  return total;
}

NDArray repeat_places(const NDArray& counts) {
  WEFT_CHECK(counts.on_host() && counts.elem() == Elem::int64 && counts.ndim() == 1,
             "counts of repetitions are int64 on the host, not ", describe(counts));
  const NDArray compact = counts.contiguous();
  const auto* times = reinterpret_cast<const std::int64_t*>(compact.host());
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < counts.size(); ++i) total += times[i];
  NDArray out = NDArray::empty(counts.device(), Elem::int64, Dims{total});
  auto* to = reinterpret_cast<std::int64_t*>(out.host());
  for (std::int64_t i = 0; i < counts.size(); ++i) to = std::fill_n(to, times[i], i);
  return out;
}

NDArray counts_of(const NDArray& places, std::int64_t bins) {
  const NDArray x = places.contiguous();
  const NDArray out = NDArray::empty(x.device(), Elem::int64, Dims{bins});
  const auto* at = reinterpret_cast<const std::uint64_t*>(x.host());
  // Neighbours count in tables of their own: of equal ones each would wait for the one before. What
  // lies outside is counted behind a table's end.
  constexpr std::int64_t kTables = 4, kMostBins = 4096;
  const std::int64_t width = bins + 1,
                     tables = bins <= kMostBins && x.size() >= 4 * bins ? kTables : 1;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(tables * width));
  const std::int64_t step = tables == 1 ? 0 : width;
  const auto last = static_cast<std::uint64_t>(bins);
  std::int64_t i = 0;
  for (; i + kTables <= x.size(); i += kTables) {
    for (std::int64_t t = 0; t < kTables; ++t)
      ++counts[static_cast<std::size_t>(t * step) + std::min(at[i + t], last)];
  }
  for (; i < x.size(); ++i) ++counts[std::min(at[i], last)];
  auto* total = reinterpret_cast<std::int64_t*>(out.host());
  std::copy_n(counts.begin(), bins, total);
  for (std::int64_t t = 1; t < tables; ++t) {
    for (std::int64_t k = 0; k < bins; ++k)
      total[k] += counts[static_cast<std::size_t>(t * width + k)];
  }
  return out;
}

}  // namespace weft
