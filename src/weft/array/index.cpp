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

/// Compact int64 positions, negative ones wrapped, all checked against the axis.
NDArray positions(const NDArray& index, const NDArray& x, int axis, const Dims& shape) {
  if (!is_integer(index.elem())) {
    throw Error(ErrorKind::index, "array.index.dtype",
                cat("an array index must be of integers, not ", name_of(index.elem())));
  }
  NDArray wide = NDArray::empty(x.device(), Elem::int64, shape);
  assign(wide, index);
  auto* p = reinterpret_cast<std::int64_t*>(wide.host());
  const std::int64_t n = x.shape()[axis];
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    if (p[i] < -n || p[i] >= n) {
      throw Error(ErrorKind::index, "array.index.range",
                  cat("index ", p[i], " is outside axis ", axis, " of ", describe(x)))
          .note(cat("legal: ", -n, " to ", n - 1));
    }
    if (p[i] < 0) p[i] += n;
  }
  return wide;
}

Dims index_shape(std::span<const NDArray> indices) {
  std::vector<const Dims*> shapes;
  for (const NDArray& index : indices) shapes.push_back(&index.shape());
  return broadcast_shapes(shapes, "index");
}

/// Element offsets (in elements, from x's first) for each index tuple.
std::vector<std::int64_t> offsets(const NDArray& x, std::span<const NDArray> indices,
                                  const Dims& shape) {
  std::vector<std::int64_t> at;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    NDArray wide = positions(indices[k], x, static_cast<int>(k), shape);
    if (k == 0) at.resize(static_cast<std::size_t>(wide.size()), 0);
    auto* p = reinterpret_cast<const std::int64_t*>(wide.host());
    const std::int64_t step = x.strides()[static_cast<int>(k)];
    for (std::size_t i = 0; i < at.size(); ++i) at[i] += p[i] * step;
  }
  return at;
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

template <typename T>
void copy_single(const char* base, const std::vector<std::int64_t>& at, char* out) {
  const T* in = reinterpret_cast<const T*>(base);
  T* o = reinterpret_cast<T*>(out);
  for (std::size_t i = 0; i < at.size(); ++i) o[i] = in[at[i]];
}

}  // namespace

NDArray gather(const NDArray& x, std::span<const NDArray> indices) {
  if (!x.on_host()) return device_gather(x, indices);
  Dims shape = index_shape(indices);
  std::vector<std::int64_t> at = offsets(x, indices, shape);
  Rest rest = rest_of(x, static_cast<int>(indices.size()));
  Dims result = shape;
  for (std::int64_t extent : rest.shape) result.push_back(extent);
  NDArray out = NDArray::empty(x.device(), x.elem(), result);
  if (out.size() == 0) return out;
  const int bytes = elem_bytes(x.elem());
  if (rest.size == 1) {
    struct Wide {
      std::uint64_t a, b;
    };
    switch (bytes) {
      case 1: copy_single<std::uint8_t>(x.host(), at, out.host()); break;
      case 2: copy_single<std::uint16_t>(x.host(), at, out.host()); break;
      case 4: copy_single<std::uint32_t>(x.host(), at, out.host()); break;
      case 8: copy_single<std::uint64_t>(x.host(), at, out.host()); break;
      default: copy_single<Wide>(x.host(), at, out.host()); break;
    }
    return out;
  }
  runtime::Pool::shared().parallel_for(
      static_cast<std::int64_t>(at.size()), std::max<std::int64_t>(1, kParallelGrain / rest.size),
      [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) {
          Nest nest = make_nest(x.host() + at[static_cast<std::size_t>(i)] * bytes, rest.shape,
                                rest.strides, bytes);
          char* to = out.host() + i * rest.size * bytes;
          if (nest.contiguous()) {
            std::memcpy(to, nest.base, static_cast<std::size_t>(rest.size * bytes));
          } else {
            Walker(nest).gather(rest.size, to);
          }
        }
      });
  return out;
}

void scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
             bool accumulate) {
  if (!x.on_host()) return device_scatter(x, indices, value, accumulate);
  Dims shape = index_shape(indices);
  std::vector<std::int64_t> at = offsets(x, indices, shape);
  Rest rest = rest_of(x, static_cast<int>(indices.size()));
  Dims full = shape;
  for (std::int64_t extent : rest.shape) full.push_back(extent);
  NDArray source = value;
  while (source.ndim() > full.size() && source.shape()[0] == 1) source = source.select(0, 0);
  NDArray packed = NDArray::empty(x.device(), x.elem(), full);
  assign(packed, source);
  if (packed.size() == 0) return;
  const int bytes = elem_bytes(x.elem());
  ElementwiseFn add = kernels().elementwise[static_cast<int>(Op::add)][static_cast<int>(x.elem())];
  if (accumulate && !add) {
    throw Error(ErrorKind::dtype, "array.scatter.dtype",
                cat("cannot add up ", name_of(x.elem()), " at indices"));
  }
  std::string held(static_cast<std::size_t>(rest.size * bytes), '\0');
  for (std::size_t i = 0; i < at.size(); ++i) {
    Nest nest = make_nest(x.host() + at[i] * bytes, rest.shape, rest.strides, bytes);
    const char* from = packed.host() + static_cast<std::int64_t>(i) * rest.size * bytes;
    if (accumulate) {
      Walker(nest).gather(rest.size, held.data());
      const void* in[2] = {held.data(), from};
      add(rest.size, in, held.data());
      from = held.data();
    }
    Walker(nest).scatter(rest.size, from);
  }
}

NDArray take(const NDArray& x, const NDArray& indices, int axis) {
  axis = normalize_axis(axis, x.ndim(), "take");
  std::vector<int> order = {axis};
  for (int i = 0; i < x.ndim(); ++i) {
    if (i != axis) order.push_back(i);
  }
  NDArray list[1] = {indices};
  NDArray out = gather(x.permute(order), list);
  const int n = indices.ndim();
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
  std::vector<NDArray> all;
  Dims grown = shape;
  grown[axis] = x.shape()[axis];
  NDArray wide = x.broadcast_to(grown);
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
  NDArray mask = x.elem() == Elem::boolean ? x.contiguous() : x.astype(Elem::boolean);
  const char* p = mask.host();
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < mask.size(); ++i) {
    if (p[i]) found.push_back(i);
  }
  std::vector<NDArray> out;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    NDArray line =
        NDArray::empty(x.device(), Elem::int64, Dims{static_cast<std::int64_t>(found.size())});
    auto* o = reinterpret_cast<std::int64_t*>(line.host());
    std::int64_t step = 1;
    for (int i = axis + 1; i < x.ndim(); ++i) step *= x.shape()[i];
    for (std::size_t i = 0; i < found.size(); ++i) o[i] = found[i] / step % x.shape()[axis];
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace weft
