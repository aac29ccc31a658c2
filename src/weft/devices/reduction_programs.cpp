// SPDX-License-Identifier: Apache-2.0
// Reductions of arrays on devices with a grid, as programs: the table's, positions of extremes,
// moments and logsumexp.

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/array/moments.h"
#include "weft/array/nest.h"
#include "weft/base/integers.h"
#include "weft/devices/grid.h"
#include "weft/devices/operators.h"
#include "weft/devices/reduce_program.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/build.h"
#include "weft/ir/reducers.h"

namespace weft {

using ir::Expr;
using ir::Exprs;
using ir::Var;

namespace {

/// A reducer from a function of the accumulated and the joining components.
ir::Reducer reducer_of(const std::string& name, const std::vector<DType>& types, Exprs identity,
                       const std::function<Exprs(const Exprs&, const Exprs&)>& join) {
  std::vector<Var> left, right;
  for (const DType& t : types) {
    left.push_back(ir::make_var("x", t));
    right.push_back(ir::make_var("y", t));
  }
  Exprs result = join(Exprs(left.begin(), left.end()), Exprs(right.begin(), right.end()));
  return ir::make_reducer(name, left, right, std::move(result), std::move(identity));
}

/// All bits where the condition holds, else none. Conditions are combined as numbers: of choices
/// between values of 64 bits compilers make branches, which part the loads of unrolled steps.
Expr mask_of(const Expr& condition, DType word) {
  return ir::make_int(0, word) - ir::cast(word, condition);
}

/// The first extreme of (position, key), as the standard reducers argmax and argmin have it.
ir::Reducer extreme_reducer(bool largest, const std::vector<DType>& types) {
  auto flag = [](const Expr& e) { return ir::cast(dtypes::int32, e); };
  return reducer_of(
      largest ? "first_largest" : "first_least", types,
      {ir::max_value(types[0]), largest ? ir::min_value(types[1]) : ir::max_value(types[1])},
      [&](const Exprs& x, const Exprs& y) {
        const Expr better = largest ? ir::gt(x[1], y[1]) : ir::lt(x[1], y[1]),
                   first = ir::call("bitwise_and",
                                    {flag(ir::eq(x[1], y[1])), flag(ir::lt(x[0], y[0]))}),
                   kept = ir::ne(ir::call("bitwise_or", {flag(better), first}),
                                 ir::make_int(0, dtypes::int32));
        return Exprs{ir::select(kept, x[0], y[0]), ir::select(kept, x[1], y[1])};
      });
}

/// A value whose order as an integer is that of the elements, NaN at the end that wins.
Expr ordered(const Expr& x, bool largest) {
  const DType type = x->dtype;
  if (!type.is_float()) {
    const bool wide = type.bits == 64 || type == dtypes::uint32;
    return wide ? x : ir::cast(dtypes::int32, x);
  }
  const bool wide = type == dtypes::float64;
  const DType word = wide ? dtypes::int64 : dtypes::int32;
  const Expr real = wide ? x : ir::cast(dtypes::float32, x);
  const Expr bits = ir::call_typed(word, "reinterpret", {real});
  const Expr magnitude = ir::max_value(word);  // every bit but the sign's
  const Expr turned = ir::call(
      "bitwise_and",
      {ir::call("shift_right", {bits, ir::make_int(type.bits == 64 ? 63 : 31, word)}), magnitude});
  const Expr not_zero = mask_of(ir::ne(real, ir::make_const(0, real->dtype)), word),
             key = ir::call("bitwise_and", {ir::call("bitwise_xor", {bits, turned}), not_zero});
  const Expr nan = mask_of(ir::call("isnan", {real}), word),
             extreme = ir::call("bitwise_and", {nan, largest ? magnitude : ir::min_value(word)});
  return ir::call("bitwise_or",
                  {ir::call("bitwise_and", {key, ir::call("bitwise_not", {nan})}), extreme});
}

}  // namespace

void arg_reduce_program(bool largest, const NDArray& out, const NDArray& x, std::uint64_t mask) {
  std::int64_t count = 1;
  for (int i = 0; i < x.ndim(); ++i) {
    if (mask >> i & 1) count *= x.shape()[i];
  }
  // Padded positions stay below twice the number.
  const DType position_type = device::fits_narrow(2 * count) ? dtypes::int32 : dtypes::int64;
  ReductionProgram p;
  p.operation = "arg_reduce";
  p.variant = largest;
  p.inputs = {x};
  p.shape = x.shape();
  p.mask = mask;
  p.ordered = true;
  p.terms = [&](const Exprs& elements, const Exprs&, const Expr& position) {
    return Exprs{ir::cast(position_type, position), ordered(elements[0], largest)};
  };
  p.reducer = [&](const std::vector<DType>& types) { return extreme_reducer(largest, types); };
  p.outputs = {out, NDArray{}};
  if (position_type == dtypes::int32) {
    p.variant += 2;
    p.outputs = {out};
    p.finish = [](const FinishedReduction& f) {
      return Exprs{ir::cast(dtypes::int64, f.components[0])};
    };
  }
  run_reduction(p);
}

namespace {

ReductionProgram over(std::string_view operation, const NDArray& out, const NDArray& x,
                      std::uint64_t mask) {
  ReductionProgram p;
  p.operation = operation;
  p.inputs = {x};
  p.shape = x.shape();
  p.mask = mask;
  p.outputs = {out};
  return p;
}

/// What is divided by n - correction; NaN where nothing is left to divide by.
Expr scaled(Moment moment, Expr squares, const Expr& n, const Expr& correction) {
  const DType type = squares->dtype;
  const Expr zero = ir::make_const(0, type), left = ir::cast(type, n) - correction;
  squares = ir::select(ir::lt(squares, zero), zero, squares);
  const Expr value =
      ir::select(ir::le(left, zero), ir::make_float(std::nan(""), type), ir::div(squares, left));
  return moment == Moment::deviation ? ir::call("sqrt", {value}) : value;
}

}  // namespace

namespace {

/// Terms and reducer of an array's moments about its mean: sums and sums of squares in float64; of
/// float64 number, mean and squares about it (Chan, Golub and LeVeque).
void set_moments(ReductionProgram& p, Elem elem) {
  const DType wide = dtypes::float64;
  const Expr zero = ir::make_const(0, wide);
  if (elem != Elem::float64) {
    p.terms = [=](const Exprs& e, const Exprs&, const Expr&) {
      const Expr v = ir::cast(wide, e[0]);
      return Exprs{v, v * v};
    };
    p.reducer = sums_reducer;
    return;
  }
  p.terms = [=](const Exprs& e, const Exprs&, const Expr&) {
    return Exprs{ir::make_const(1, wide), e[0], zero};
  };
  p.reducer = [=](const std::vector<DType>& types) {
    return reducer_of(
        "running_moments", types, {zero, zero, zero}, [&](const Exprs& a, const Exprs& b) {
          const Expr n = a[0] + b[0], apart = b[1] - a[1];
          const Expr share = ir::div(b[0], ir::max(n, ir::make_const(1, wide)));
          return Exprs{n, a[1] + apart * share, a[2] + b[2] + apart * apart * a[0] * share};
        });
  };
}
/// The mean, and the squares about it, of what these components sum up.
std::pair<Expr, Expr> mean_and_squares(const Exprs& c, const Expr& n) {
  if (c.size() == 3) return {c[1], c[2]};
  const Expr count = ir::cast(dtypes::float64, n);
  return {ir::div(c[0], count), c[1] - ir::div(c[0] * c[0], count)};
}

/// The mean of a share of each result's elements, in x's shape with extents of 1 along the axes in
/// `mask`; null where few elements are reduced. Of so many elements as one launch takes, a share of
/// 1 / n, sums of squares about it are at most n + 1 times those about the mean, which are at least
/// the squares of these elements: five bits are lost at most, ten where very many are reduced.
NDArray mean_of_some(const NDArray& x, std::uint64_t mask) {
  // A running mean takes a division for each element: from here on another launch is faster.
  constexpr std::int64_t kLarge = 1 << 17, kOneLaunch = 1 << 13, kLeast = 32, kMost = 1024;
  int longest = -1;
  Dims kept = x.shape();
  std::int64_t results = 1;
  for (int i = 0; i < kept.size(); ++i) {
    if (!(mask >> i & 1)) {
      results *= kept[i];
      continue;
    }
    if (longest < 0 || x.shape()[i] > x.shape()[longest]) longest = i;
    kept[i] = 1;
  }
  if (x.size() < kLarge || longest < 0) return {};
  const NDArray mean = NDArray::empty(x.device(), Elem::float64, kept);
  const std::int64_t share = std::clamp(x.size() / results / kOneLaunch, kLeast, kMost);
  const std::int64_t some = ceil_div(x.shape()[longest], share);
  moments_program(Moment::mean, mean, x.slice(longest, 0, some, 1), mask, 0);
  return mean;
}

}  // namespace

void moments_program(Moment moment, const NDArray& out, const NDArray& x, std::uint64_t mask,
                     double correction) {
  ReductionProgram p = over("moments", out, x, mask);
  p.variant = static_cast<std::int64_t>(moment);
  const Elem elem = out.elem();
  const Scalar number[1] = {correction};
  if (moment == Moment::mean) {
    const Elem sum = x.elem() == Elem::float64 ? Elem::float64 : Elem::float32;
    p.terms = [=](const Exprs& e, const Exprs&, const Expr&) {
      return Exprs{convert_value(e[0], sum)};
    };
    p.reducer = [](const std::vector<DType>& types) { return ir::standard_reducer("sum", types); };
    p.finish = [=](const FinishedReduction& f) {
      const Expr& all = f.components[0];
      return Exprs{convert_value(ir::div(all, ir::cast(all->dtype, f.count)), elem)};
    };
    return run_reduction(p);
  }
  p.numbers = number;
  p.compute = Elem::float64;
  if (x.elem() == Elem::float64) {
    if (const NDArray about = mean_of_some(x, mask); about.handle()) {
      p.operation = "moments_about";
      p.inputs.push_back(about);
      p.terms = [](const Exprs& e, const Exprs&, const Expr&) {
        const Expr apart = e[0] - e[1];
        return Exprs{apart, apart * apart};
      };
      p.reducer = sums_reducer;
      p.finish = [=](const FinishedReduction& f) {
        const Exprs& c = f.components;
        const Expr squares = c[1] - ir::div(c[0] * c[0], ir::cast(dtypes::float64, f.count));
        return Exprs{convert_value(scaled(moment, squares, f.count, f.numbers[0]), elem)};
      };
      return run_reduction(p);
    }
  }
  set_moments(p, x.elem());
  p.finish = [=](const FinishedReduction& f) {
    const Expr squares = mean_and_squares(f.components, f.count).second;
    return Exprs{convert_value(scaled(moment, squares, f.count, f.numbers[0]), elem)};
  };
  run_reduction(p);
}

void normalising_program(const NDArray& mean, const NDArray& scale, const NDArray& x,
                         std::uint64_t mask, double eps) {
  ReductionProgram p = over("normalising", mean, x, mask);
  p.outputs.push_back(scale);
  const Elem elem = mean.elem();
  const Scalar number[1] = {eps};
  p.numbers = number;
  p.compute = Elem::float64;
  set_moments(p, x.elem());
  p.finish = [=](const FinishedReduction& f) {
    const auto [average, squares] = mean_and_squares(f.components, f.count);
    const Expr zero = ir::make_const(0, dtypes::float64);
    const Expr variance = ir::div(ir::select(ir::lt(squares, zero), zero, squares),
                                  ir::cast(dtypes::float64, f.count));
    const Expr root = ir::call("sqrt", {variance + f.numbers[0]});
    return Exprs{convert_value(average, elem),
                 convert_value(ir::div(ir::make_const(1, dtypes::float64), root), elem)};
  };
  run_reduction(p);
}

NDArray moments(Moment moment, const NDArray& x, const Axes& axes, bool keepdims,
                double correction) {
  if (x.size() == 0 || is_complex(x.elem()) || !(x.on_host() || has_grid(x))) return {};
  std::uint64_t mask = 0;
  for (int i = 0; axes.all && i < x.ndim(); ++i) mask |= std::uint64_t{1} << i;
  for (std::int64_t axis : axes.axes) {
    const std::int64_t a = axis < 0 ? axis + x.ndim() : axis;
    if (a < 0 || a >= x.ndim() || mask >> a & 1) return {};  // the composed form says what is wrong
    mask |= std::uint64_t{1} << a;
  }
  Dims shape;
  for (int i = 0; i < x.ndim(); ++i) {
    if (!(mask >> i & 1)) shape.push_back(x.shape()[i]);
    else if (keepdims) shape.push_back(1);
  }
  if (x.on_host()) {
    const NDArray out = host_moments(moment, x, mask, correction);
    return keepdims ? out.reshape(shape) : out;
  }
  NDArray out =
      NDArray::empty(x.device(), is_real_float(x.elem()) ? x.elem() : Elem::float32, shape);
  moments_program(moment, out, x, mask, correction);
  return out;
}

namespace {

/// Terms and reducer of the largest element so far and the sum of exponentials about it.
void set_exponentials(ReductionProgram& p, Elem compute) {
  const DType type = dtype_of(compute);
  auto larger = [](const Expr& a, const Expr& b) { return reduce_value(ReduceOp::max, a, b); };
  p.terms = [=](const Exprs& e, const Exprs&, const Expr&) {
    return Exprs{convert_value(e[0], compute), ir::make_const(1, type)};
  };
  p.reducer = [=](const std::vector<DType>& types) {
    // The least finite value: minus infinity less itself would be no number.
    const Expr least = compute == Elem::float64 ? ir::make_float(-1.7976931348623157e308, type)
                                                : ir::make_float(-3.4028234663852886e38, type);
    return reducer_of(
        "logsumexp", types, {least, ir::make_const(0, type)}, [=](const Exprs& a, const Exprs& b) {
          const Expr top = larger(a[0], b[0]);
          return Exprs{top,
                       a[1] * ir::call("exp", {a[0] - top}) + b[1] * ir::call("exp", {b[0] - top})};
        });
  };
}
Elem exponential_elem(Elem e) { return e == Elem::float64 ? e : Elem::float32; }
/// The logarithm of all exponentials, of the largest element and the sum about it.
Expr logarithm_of(const Exprs& c) {
  const Expr most = ir::make_float(std::numeric_limits<double>::infinity(), c[0]->dtype);
  return ir::select(ir::eq(c[0], most), most, c[0] + ir::call("log", {c[1]}));
}

}  // namespace

void logsumexp_program(const NDArray& out, const NDArray& x, std::uint64_t mask) {
  ReductionProgram p = over("logsumexp", out, x, mask);
  const Elem elem = out.elem(), compute = exponential_elem(x.elem());
  set_exponentials(p, compute);
  p.finish = [=](const FinishedReduction& f) {
    return Exprs{convert_value(logarithm_of(f.components), elem)};
  };
  run_reduction(p);
}

void label_losses_program(const NDArray& losses, const NDArray& sums, const NDArray& places,
                          const NDArray& x, const NDArray& labels, const NDArray& flag) {
  ReductionProgram p = over("label_losses", losses, x, 2);
  p.outputs = {losses, sums, places};
  p.beside = {labels};
  p.flag = flag;
  p.ordered = true;
  const Elem compute = exponential_elem(x.elem());
  set_exponentials(p, compute);
  p.finish = [&](const FinishedReduction& f) {
    const Expr label = ir::cast(dtypes::int64, f.beside[0]), zero = ir::make_int(0, dtypes::int64);
    const Expr wrong = ir::logical_or(ir::lt(label, zero), ir::ge(label, f.count));
    const Expr term = ir::select(wrong, zero, label);
    const Expr sum = logarithm_of(f.components);
    const Expr loss = ir::select(wrong, ir::make_float(std::nan(""), dtype_of(compute)),
                                 sum - convert_value(f.element(0, term), compute));
    Exprs out{convert_value(loss, losses.elem()), convert_value(sum, sums.elem()),
              ir::cast(dtype_of(places.elem()), f.result * f.count + term)};
    if (flag.handle()) out.push_back(wrong);
    return out;
  };
  run_reduction(p);
}

void exponentials_program(const NDArray& top, const NDArray& sum, const NDArray& x,
                          std::uint64_t mask) {
  ReductionProgram p = over("exponentials", top, x, mask);
  p.outputs.push_back(sum);
  set_exponentials(p, exponential_elem(x.elem()));
  run_reduction(p);
}

namespace device {

void grid_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                 std::uint64_t mask) {
  const NDArray* arrays[1] = {&x};
  Map map;
  map.family = "reduce";
  map.arrays = arrays;
  map.compute = kernel;
  map.value = [&](const std::vector<Expr>& loads, const std::vector<Expr>&) { return loads[0]; };
  grid_reduce(op, kernel, out, map, x.shape(), mask);
}

void grid_reduce(ReduceOp op, Elem kernel, const NDArray& out, const Map& map, const Dims& shape,
                 std::uint64_t mask) {
  ReductionProgram p;
  p.operation = map.family;
  p.variant = static_cast<std::int64_t>(map.key) * kMostReduceOps + static_cast<std::int64_t>(op);
  for (const NDArray* a : map.arrays) p.inputs.push_back(*a);
  p.numbers = map.numbers;
  p.compute = map.compute;
  p.shape = shape;
  p.mask = mask;
  p.terms = [&](const Exprs& e, const Exprs& numbers, const Expr&) {
    return Exprs{convert_value(map.value(e, numbers), kernel)};
  };
  p.reducer = [&](const std::vector<DType>& types) {
    return reducer_of(
        std::string(info(op).name), types, {reduce_identity(op, kernel)},
        [&](const Exprs& a, const Exprs& b) { return Exprs{reduce_value(op, a[0], b[0])}; });
  };
  if (out.elem() != kernel)
    p.finish = [&](const FinishedReduction& f) {
      return Exprs{convert_value(f.components[0], out.elem())};
    };
  p.outputs = {out};
  run_reduction(p);
}

}  // namespace device

}  // namespace weft
