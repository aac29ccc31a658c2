// SPDX-License-Identifier: Apache-2.0
// Indexing by arrays: gather, scatter, take, nonzero. Every index is checked before anything is
// moved.

#include <algorithm>
#include <cstring>

#include "weft/array/nest.h"
#include "weft/array/ops.h"
#include "weft/array/ops/device_structured.h"
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

/// Offsets, in elements of x, of the index tuples [begin, begin + n).
void offsets(const NDArray& x, const std::vector<Line>& lines, std::int64_t begin, std::int64_t n,
             std::int64_t* out) {
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const Line& line = lines[k];
    const std::int64_t* at = line.at + begin;
    const std::int64_t extent = line.extent, step = line.step;
    bool outside = false;
    // Of a position outside nothing is read: the check comes first.
    auto each = [&](auto&& put) {
      for (std::int64_t i = 0; i < n; ++i) {
        const auto p = static_cast<std::uint64_t>(at[i]);
        const std::uint64_t to = p + (at[i] < 0 ? static_cast<std::uint64_t>(extent) : 0);
        outside |= to >= static_cast<std::uint64_t>(extent);
        put(i, to);
      }
    };
    const auto by = static_cast<std::uint64_t>(step);
    if (k == 0 && step == 1)
      each([&](std::int64_t i, std::uint64_t to) { out[i] = static_cast<std::int64_t>(to); });
    else if (k == 0)
      each([&](std::int64_t i, std::uint64_t to) { out[i] = static_cast<std::int64_t>(to * by); });
    else
      each([&](std::int64_t i, std::uint64_t to) { out[i] += static_cast<std::int64_t>(to * by); });
    for (std::int64_t i = 0; outside && i < n; ++i)
      if (at[i] < -extent || at[i] >= extent) out_of_range(at[i], line, x);
  }
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

struct Wide {
  std::uint64_t a, b;
};
/// f with a value of the unsigned type of that many bytes.
template <typename F>
void with_width(int bytes, const F& f) {
  switch (bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: return f(Wide{});
  }
}

constexpr std::int64_t kMarkBlock = 4096;

/// How many of n < 2^16 truth values are set: bytes are added eight at a time.
std::int64_t count(const std::uint8_t* x, std::int64_t n) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kLow = 0x00ff00ff00ff00ff;
  std::int64_t total = 0, i = 0;
  while (i + 8 <= n) {
    std::uint64_t sums = 0, any = 0;
    for (const std::int64_t end = std::min(n - 7, i + 8 * 255); i < end; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, x + i, 8);
      any |= word;
      sums += word & kOnes;
    }
    if (any & ~kOnes) break;  // truth is not always 1
    sums = (sums & kLow) + (sums >> 8 & kLow);
    total += static_cast<std::int64_t>(sums * 0x0001000100010001 >> 48);
  }
  if (i + 8 <= n) i = total = 0;
  for (; i < n; ++i) total += x[i] != 0;
  return total;
}

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
            const std::int64_t n = count(data + b * kMarkBlock, end - b * kMarkBlock);
            before_[static_cast<std::size_t>(b) + 1] = n;
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
  if (!x.on_host()) return device_gather(x, indices);
  Dims shape = index_shape(indices);
  const std::vector<Line> lines = lines_of(x, indices, shape);
  const std::int64_t count = count_of(shape);
  Rest rest = rest_of(x, static_cast<int>(indices.size()));
  Dims result = shape;
  for (std::int64_t extent : rest.shape) result.push_back(extent);
  NDArray out = NDArray::empty(x.device(), x.elem(), result);
  const int bytes = elem_bytes(x.elem());
  if (rest.size == 1) {
    with_width(bytes, [&]<typename T>(T) {
      const T* in = reinterpret_cast<const T*>(x.host());
      T* to = reinterpret_cast<T*>(out.host());
      for_offsets(x, lines, count, kParallelGrain / 4,
                  [&](std::int64_t begin, std::int64_t n, const std::int64_t* at) {
                    for (std::int64_t i = 0; i < n; ++i) to[begin + i] = in[at[i]];
                  });
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
                for (std::int64_t i = 0; i < n && row > 0; ++i, to += row) {
                  if (whole_rows) {
                    std::memcpy(to, first.base + at[i] * bytes, static_cast<std::size_t>(row));
                    continue;
                  }
                  Nest nest = first;
                  nest.base += at[i] * bytes;
                  Walker(nest).gather(rest.size, to);
                }
              });
  return out;
}

void scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
             bool accumulate) {
  if (!x.on_host()) return device_scatter(x, indices, value, accumulate);
  Dims shape = index_shape(indices);
  const std::vector<Line> lines = lines_of(x, indices, shape);
  const std::int64_t count = count_of(shape);
  for_offsets(x, lines, count, kParallelGrain,
              [](std::int64_t, std::int64_t, const std::int64_t*) {});  // checks all
  Rest rest = rest_of(x, static_cast<int>(indices.size()));
  Dims full = shape;
  for (std::int64_t extent : rest.shape) full.push_back(extent);
  NDArray source = value;
  while (source.ndim() > full.size() && source.shape()[0] == 1) source = source.select(0, 0);
  NDArray packed = source;
  if (source.elem() != x.elem() || !(source.shape() == full) || !source.is_contiguous() ||
      may_overlap(source, x)) {
    packed = NDArray::empty(x.device(), x.elem(), full);
    assign(packed, source);
  }
  if (packed.size() == 0) return;
  const int bytes = elem_bytes(x.elem());
  ElementwiseFn add = kernels().elementwise[static_cast<int>(Op::add)][static_cast<int>(x.elem())];
  if (accumulate && !add) {
    throw Error(ErrorKind::dtype, "array.scatter.dtype",
                cat("cannot add up ", name_of(x.elem()), " at indices"));
  }
  // Of equal positions the last value stands: one thread, in order.
  const std::int64_t whole = std::max<std::int64_t>(count, 1);
  if (rest.size == 1 && !accumulate) {
    return with_width(bytes, [&]<typename T>(T) {
      T* to = reinterpret_cast<T*>(x.host());
      const T* from = reinterpret_cast<const T*>(packed.host());
      for_offsets(x, lines, count, whole,
                  [&](std::int64_t begin, std::int64_t n, const std::int64_t* at) {
                    // Stores that miss the caches wait in a short queue: lines are asked for ahead.
                    constexpr std::int64_t kAhead = 32;
                    for (std::int64_t i = 0; i < n; ++i) {
                      if (i + kAhead < n) __builtin_prefetch(to + at[i + kAhead], 1);
                      to[at[i]] = from[begin + i];
                    }
                  });
    });
  }
  const Nest first = make_nest(x.host(), rest.shape, rest.strides, bytes);
  const std::int64_t row = rest.size * bytes;
  const bool whole_rows = first.contiguous();
  std::string held(static_cast<std::size_t>(row), '\0');
  for_offsets(x, lines, count, whole,
              [&](std::int64_t begin, std::int64_t n, const std::int64_t* at) {
                const char* from = packed.host() + begin * row;
                for (std::int64_t i = 0; i < n; ++i, from += row) {
                  char* to = first.base + at[i] * bytes;
                  if (whole_rows) {
                    const void* in[2] = {to, from};
                    if (accumulate) add(rest.size, in, to);
                    else std::memcpy(to, from, static_cast<std::size_t>(row));
                    continue;
                  }
                  Nest nest = first;
                  nest.base = to;
                  const void* in[2] = {held.data(), from};
                  if (accumulate) {
                    Walker(nest).gather(rest.size, held.data());
                    add(rest.size, in, held.data());
                  }
                  Walker(nest).scatter(rest.size, accumulate ? held.data() : from);
                }
              });
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
      with_width(bytes, [&]<typename T>(T) {
        const T* in = reinterpret_cast<const T*>(x.host());
        T* to = reinterpret_cast<T*>(out.host());
        rows([&](std::int64_t o, std::int64_t end) {
          for (; o < end; ++o) {
            const T* line = in + o * block;
            T* row = to + o * count;
            for (std::int64_t i = 0; i < count; ++i) row[i] = line[at[static_cast<std::size_t>(i)]];
          }
        });
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
    with_width(elem_bytes(x.elem()), [&]<typename T>(T) {
      const T* in = reinterpret_cast<const T*>(lines.host());
      T* to = reinterpret_cast<T*>(out.host());
      runtime::Pool::shared().parallel_for(
          m ? out.size() / m : 0,
          std::max<std::int64_t>(1, kParallelGrain / std::max<std::int64_t>(m, 1)),
          [&](std::int64_t r, std::int64_t end) {
            std::int64_t where[kChunk];
            const std::vector<Line> one = {places};
            for (; r < end; ++r) {
              for (std::int64_t i = 0; i < m; i += kChunk) {
                const std::int64_t c = std::min(kChunk, m - i);
                offsets(x, one, r * m + i, c, where);
                for (std::int64_t j = 0; j < c; ++j) to[r * m + i + j] = in[r * n + where[j]];
              }
            }
          });
    });
    return out.transpose(axis, -1).contiguous();
  }
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
  if (!x.on_host()) return device_nonzero(x);
  const Marks marks(x);
  const std::int64_t total = marks.total();
  std::vector<NDArray> out;
  for (int axis = 0; axis < x.ndim(); ++axis)
    out.push_back(NDArray::empty(x.device(), Elem::int64, Dims{total}));
  const int last = x.ndim() - 1;
  const std::int64_t row = x.shape()[last];
  std::vector<std::int64_t*> to;
  for (NDArray& line : out) to.push_back(reinterpret_cast<std::int64_t*>(line.host()));
  marks.for_blocks([&](std::int64_t begin, std::int64_t end, std::int64_t at) {
    std::int64_t held[kMarkBlock + 1];
    std::int64_t n = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      held[n] = i;
      n += marks.data[i] != 0;
    }
    std::copy_n(held, n, to[static_cast<std::size_t>(last)] + at);
    if (last == 0) return;
    // Positions grow: a row's coordinates are worked out once.
    std::int64_t row_end = -1, row_begin = 0;
    std::vector<std::int64_t> place(static_cast<std::size_t>(last));
    for (std::int64_t k = 0; k < n; ++k) {
      if (held[k] >= row_end) {
        std::int64_t r = held[k] / row;
        row_begin = r * row;
        row_end = row_begin + row;
        for (int i = last - 1; i >= 0; --i) {
          place[static_cast<std::size_t>(i)] = r % x.shape()[i];
          r /= x.shape()[i];
        }
      }
      to[static_cast<std::size_t>(last)][at + k] = held[k] - row_begin;
      for (std::size_t i = 0; i < place.size(); ++i) to[i][at + k] = place[i];
    }
  });
  return out;
}

NDArray select_marked(const NDArray& x, const NDArray& mask) {
  for (int i = 0; i < mask.ndim(); ++i) {
    if (i < x.ndim() && mask.shape()[i] == x.shape()[i]) continue;
    throw Error(ErrorKind::index, "array.index.mask",
                cat("a mask of shape ", to_string(mask.shape()), " does not fit axes 0... of ",
                    describe(x)));
  }
  if (!x.on_host() || !mask.on_host()) return gather(x, nonzero(mask));
  const Marks marks(mask);
  const NDArray compact = x.contiguous();
  const Rest rest = rest_of(compact, mask.ndim());
  Dims shape{marks.total()};
  for (std::int64_t extent : rest.shape) shape.push_back(extent);
  NDArray out = NDArray::empty(x.device(), x.elem(), shape);
  const int bytes = elem_bytes(x.elem());
  if (rest.size == 1) {
    with_width(bytes, [&]<typename T>(T) {
      const T* in = reinterpret_cast<const T*>(compact.host());
      T* to = reinterpret_cast<T*>(out.host());
      marks.for_blocks([&](std::int64_t begin, std::int64_t end, std::int64_t at) {
        T held[kMarkBlock + 1];
        std::int64_t n = 0;
        for (std::int64_t i = begin; i < end; ++i) {
          held[n] = in[i];
          n += marks.data[i] != 0;
        }
        std::copy_n(held, n, to + at);
      });
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

std::int64_t count_marked(const NDArray& mask) { return Marks(mask).total(); }

}  // namespace weft
