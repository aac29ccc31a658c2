// SPDX-License-Identifier: Apache-2.0
// Selection, gather and scatter as programs of the IR. Scatter is turned round: every place looks
// for the indices that name it, so no two threads write one element and the result does not depend
// on their order.

#include <algorithm>

#include "weft/array/nest.h"
#include "weft/devices/dispatch.h"
#include "weft/devices/machine.h"
#include "weft/devices/machine_integers.h"
#include "weft/devices/structured.h"

namespace weft {

namespace {

using ir::Expr;

std::int64_t number_at(const NDArray& scalar) {
  if (scalar.elem() == Elem::int32) {
    std::int32_t v = 0;
    scalar.read_element(0, &v);
    return v;
  }
  std::int64_t v = 0;
  scalar.read_element(0, &v);
  return v;
}

/// Positions of one shape, negative ones wrapped, all checked against the axis.
NDArray positions(const NDArray& index, const NDArray& x, int axis, const Dims& shape) {
  if (!is_integer(index.elem())) {
    throw Error(ErrorKind::index, "array.index.dtype",
                cat("an array index must be of integers, not ", name_of(index.elem())));
  }
  const NDArray given = as_positions(index);
  NDArray wide = NDArray::empty(x.device(), given.elem(), shape);
  assign(wide, given);
  if (wide.size() == 0) return wide;
  const std::int64_t n = x.shape()[axis];
  const std::int64_t low = number_at(reduce(ReduceOp::min, wide)),
                     high = number_at(reduce(ReduceOp::max, wide));
  if (low < -n || high >= n) {
    throw Error(
        ErrorKind::index, "array.index.range",
        cat("index ", low < -n ? low : high, " is outside axis ", axis, " of ", describe(x)))
        .note(cat("legal: ", -n, " to ", n - 1));
  }
  if (low >= 0) return wide;
  NDArray negative = apply(Op::less, wide, Scalar(0));
  return where(negative, apply(Op::add, wide, Scalar(n)), wide);
}

Dims common_shape(std::span<const NDArray> indices) {
  std::vector<const Dims*> shapes;
  for (const NDArray& index : indices) shapes.push_back(&index.shape());
  return broadcast_shapes(shapes, "index");
}

Dims joined(const Dims& a, const Dims& b, int skip = 0) {
  Dims out = a;
  for (int i = skip; i < b.size(); ++i) out.push_back(b[i]);
  return out;
}

}  // namespace

void device_where(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b) {
  DeviceProgram p;
  p.name = "where";
  p.inputs.push_back({condition, broadcast_strides(condition, out.shape()), false});
  for (const Arg* arg : {&a, &b}) {
    NDArray array = arg->array ? *arg->array : full(out.device(), out.elem(), Dims{}, arg->scalar);
    Dims strides = broadcast_strides(array, out.shape());
    p.inputs.push_back({std::move(array), std::move(strides), false});
  }
  const Elem e = out.elem();
  p.value = [e](const DeviceScope& s) {
    return ir::select(device_cast(s.load(0), Elem::boolean), device_cast(s.load(1), e),
                      device_cast(s.load(2), e));
  };
  device_run(out, p);
}

namespace {

/// out[p] = the sum of x[j] over all places j that p names, one: for machines whose programs read
/// at places that are known when they are built. Work is places times indices.
NDArray gather_by_search(const NDArray& out, const NDArray& x, std::span<const NDArray> at) {
  const int used = static_cast<int>(at.size());
  DeviceProgram p;
  p.name = "index";
  p.variant = cat("search ", used);
  p.positions = true;
  Dims strides(at[0].ndim(), 0);
  for (int i = used; i < x.ndim(); ++i) strides.push_back(x.strides()[i]);
  for (int i = 0; i < used; ++i) {
    p.reduced.push_back(x.shape()[i]);
    strides.push_back(x.strides()[i]);
  }
  p.inputs.push_back({x, strides, false});
  for (const NDArray& index : at) {
    Dims along = index.strides();
    while (along.size() < strides.size()) along.push_back(0);
    p.inputs.push_back({index, along, false});
  }
  p.init = [](DType sum) { return ir::make_const(0, sum); };
  const Elem elem = x.elem();
  const auto first = static_cast<std::size_t>(out.ndim());
  p.value = [used, elem, first](const DeviceScope& s) {
    Expr here;
    for (std::size_t k = 0; k < static_cast<std::size_t>(used); ++k) {
      const Expr one = ir::eq(s.load(k + 1), ir::cast(dtypes::int32, s.axes[first + k]));
      here = here ? ir::logical_and(here, one) : one;
    }
    const Expr value = ir::cast(s.sum, device_cast(s.load(0), elem));
    return s.acc + ir::select(here, value, ir::make_const(0, s.sum));
  };
  device_run(out, p);
  return out;
}

}  // namespace

NDArray device_gather(const NDArray& x, std::span<const NDArray> indices) {
  const Dims shape = common_shape(indices);
  const int used = static_cast<int>(indices.size());
  NDArray out = NDArray::empty(x.device(), x.elem(), joined(shape, x.shape(), used));
  if (narrows(x.device(), x.elem())) {  // both words of what is read
    assign(words_of(out), device_gather(words_of(x), indices));
    return out;
  }
  if (machine_of(x.device()).transfers()) {
    std::vector<NDArray> at;
    for (int k = 0; k < used; ++k) {
      check_same_device(x, indices[static_cast<std::size_t>(k)], "index");
      at.push_back(positions(indices[static_cast<std::size_t>(k)], x, k, shape));
    }
    return gather_by_search(out, x, at);
  }
  DeviceProgram p;
  p.name = "index";
  p.variant = cat("gather ", used);
  Dims still(shape.size(), 0);
  p.inputs.push_back({x, joined(still, x.strides(), used), true});
  for (int k = 0; k < used; ++k) {
    check_same_device(x, indices[static_cast<std::size_t>(k)], "index");
    NDArray at = positions(indices[static_cast<std::size_t>(k)], x, k, shape);
    Dims strides = at.strides();
    while (strides.size() < out.ndim()) strides.push_back(0);
    p.inputs.push_back({std::move(at), std::move(strides), false});
    p.numbers.push_back({Scalar(x.strides()[k])});
  }
  p.value = [used](const DeviceScope& s) {
    Expr at;
    for (std::size_t k = 0; k < static_cast<std::size_t>(used); ++k) {
      const Expr step = ir::cast(dtypes::int64, s.load(k + 1)) * s.numbers[k];
      at = at ? at + step : step;
    }
    return s.load_at(0, at);
  };
  device_run(out, p);
  return out;
}

NDArray device_take_along(const NDArray& x, const NDArray& indices, int axis) {
  const Dims& shape = indices.shape();
  NDArray out = NDArray::empty(x.device(), x.elem(), shape);
  if (narrows(x.device(), x.elem())) {
    const NDArray words = words_of(x), to = words_of(out);
    for (const std::int64_t word : {0, 1})
      assign(to.select(x.ndim(), word),
             device_take_along(words.select(x.ndim(), word), indices, axis));
    return out;
  }
  check_same_device(x, indices, "index");
  const NDArray at = positions(indices, x, axis, shape);
  Dims still = x.strides();
  still[axis] = 0;
  const std::int64_t step = x.strides()[axis], n = x.shape()[axis];
  DeviceProgram p;
  p.name = "index";
  if (!machine_of(x.device()).transfers()) {
    p.variant = "take along";
    p.inputs.push_back({x, still, true});
    p.inputs.push_back({at, at.strides(), false});
    p.numbers.push_back({Scalar(step)});
    p.value = [](const DeviceScope& s) {
      return s.load_at(0, ir::cast(dtypes::int64, s.load(1)) * s.numbers[0]);
    };
    device_run(out, p);
    return out;
  }
  // Each place looks through its own line.
  p.variant = "search along";
  p.positions = true;
  p.reduced = {n};
  Dims along = at.strides();
  still.push_back(step), along.push_back(0);
  p.inputs.push_back({x, still, false});
  p.inputs.push_back({at, along, false});
  p.init = [](DType sum) { return ir::make_const(0, sum); };
  const Elem elem = x.elem();
  const auto line = static_cast<std::size_t>(out.ndim());
  p.value = [elem, line](const DeviceScope& s) {
    const Expr value = ir::cast(s.sum, device_cast(s.load(0), elem));
    const Expr here = ir::eq(s.load(1), ir::cast(dtypes::int32, s.axes[line]));
    return s.acc + ir::select(here, value, ir::make_const(0, s.sum));
  };
  device_run(out, p);
  return out;
}

NDArray device_pick(const NDArray& x, const NDArray& at) {
  NDArray out = NDArray::empty(x.device(), x.elem(), at.shape());
  if (narrows(x.device(), x.elem())) {
    for (const std::int64_t word : {0, 1})
      assign(words_of(out).select(out.ndim(), word), device_pick(words_of(x).select(1, word), at));
    return out;
  }
  if (machine_of(x.device()).transfers()) return gather_by_search(out, x, {&at, 1});
  DeviceProgram p;
  p.name = "index";
  p.variant = "pick";
  p.inputs.push_back({x, Dims(at.ndim(), 0), true});
  p.inputs.push_back({at, at.strides(), false});
  p.numbers.push_back({Scalar(x.strides()[0])});
  p.value = [](const DeviceScope& s) {
    return s.load_at(0, ir::cast(dtypes::int64, s.load(1)) * s.numbers[0]);
  };
  device_run(out, p);
  return out;
}

void device_scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
                    bool accumulate) {
  const Dims shape = common_shape(indices);
  const int used = static_cast<int>(indices.size());
  std::int64_t places = 1, count = 1, rest = 1;
  for (int i = 0; i < x.ndim(); ++i) (i < used ? places : rest) *= x.shape()[i];
  for (std::int64_t extent : shape) count *= extent;
  // One row-major place for each index tuple.
  NDArray place;
  for (int k = 0; k < used; ++k) {
    check_same_device(x, indices[static_cast<std::size_t>(k)], "index");
    NDArray at = positions(indices[static_cast<std::size_t>(k)], x, k, shape);
    place = k == 0 ? at : apply(Op::add, apply(Op::multiply, place, Scalar(x.shape()[k])), at);
  }
  NDArray source = value;
  const Dims all = joined(shape, x.shape(), used);
  while (source.ndim() > all.size() && source.shape()[0] == 1) source = source.select(0, 0);
  NDArray packed = NDArray::empty(x.device(), x.elem(), all);
  assign(packed, source);
  if (packed.size() == 0) return;
  place = place.reshape(Dims{count});
  packed = packed.reshape(Dims{count, rest});
  if (accumulate) {
    if (x.elem() == Elem::boolean) {
      throw Error(ErrorKind::dtype, "array.scatter.dtype",
                  cat("cannot add up ", name_of(x.elem()), " at indices"));
    }
    NDArray sums = NDArray::empty(x.device(), x.elem(), Dims{places, rest});
    DeviceProgram p;
    p.name = "index";
    p.variant = "add up";
    p.positions = true;
    p.reduced = Dims{count};
    p.inputs.push_back({place, Dims{0, 0, 1}, false});
    p.inputs.push_back({packed, Dims{0, 1, rest}, false});
    const Elem elem = x.elem();
    p.init = [](DType sum) { return ir::make_const(0, sum); };
    p.value = [elem](const DeviceScope& s) {
      const Expr here = ir::eq(ir::cast(dtypes::int64, s.load(0)), s.axes[0]);
      return s.acc + ir::select(here, device_cast(s.load(1), elem), ir::make_const(0, s.sum));
    };
    device_run(sums, p);
    apply_into(Op::add, x, x, sums.reshape(x.shape()));
    return;
  }
  NDArray last = NDArray::empty(x.device(), place.elem(), Dims{places});
  DeviceProgram p;
  p.name = "index";
  p.variant = "last";
  p.positions = true;
  p.reduced = Dims{count};
  p.inputs.push_back({place, Dims{0, 1}, false});
  p.init = [](DType sum) { return ir::make_int(-1, sum); };
  p.value = [](const DeviceScope& s) {
    const Expr here = ir::eq(ir::cast(dtypes::int64, s.load(0)), s.axes[0]);
    return ir::max(s.acc, ir::select(here, ir::cast(s.sum, s.axes[1]), ir::make_int(-1, s.sum)));
  };
  device_run(last, p);
  NDArray rows[1] = {apply(Op::maximum, last, Scalar(0))};
  NDArray chosen = device_gather(packed, rows).reshape(x.shape());
  Dims spread;
  for (int i = 0; i < x.ndim(); ++i) spread.push_back(i < used ? x.shape()[i] : 1);
  NDArray hit = apply(Op::greater_equal, last, Scalar(0)).reshape(spread);
  if (narrows(x.device(), x.elem())) {  // both words: what stays may be of any value
    spread.push_back(1);
    assign(words_of(x), where(hit.reshape(spread), words_of(chosen), words_of(x)));
    return;
  }
  assign(x, where(hit, chosen, x));
}

}  // namespace weft
