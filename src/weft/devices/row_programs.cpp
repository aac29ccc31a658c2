// SPDX-License-Identifier: Apache-2.0
// Softmax, layer norm and their gradients on devices with a grid. Rows that fit the registers of a
// group are one program (operators/rows.h). Of longer ones, what a row needs is reduced in one
// pass, shared by as many groups as keep the machine busy, and a map writes the results.

#include "weft/devices/grid.h"
#include "weft/devices/reduce_program.h"
#include "weft/elements/row_ir.h"
#include "weft/ir/build.h"
#include "weft/ir/reducers.h"
#include "weft/operators/rows.h"
#include "weft/rules/row.h"

namespace weft::device {

using ir::Expr;
using ir::Exprs;

namespace {

class LongRows {
 public:
  /// `shape`: two axes, rows along the second, or three, rows along the middle one.
  LongRows(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in,
           const Dims& shape)
      : kind_(kind),
        out_(out.reshape(shape)),
        compute_(out.elem() == Elem::float64 ? out.elem() : Elem::float32) {
    for (const NDArray* a : in) in_.push_back(a->size() == out.size() ? a->reshape(shape) : *a);
  }

  void run(double eps) {
    const NDArray &x = in_[0], a = one_each(), b = one_each();
    auto exp = [](const Expr& v) { return ir::call("exp", {v}); };
    switch (kind_) {
      case RowKernel::softmax:
        exponentials_program(a, b, x, kColumns);
        return write({x, a, b}, [&](const Exprs& v) { return ir::div(exp(v[0] - v[1]), v[2]); });
      case RowKernel::log_softmax:
        exponentials_program(a, b, x, kColumns);
        return write({x, a, b},
                     [&](const Exprs& v) { return v[0] - v[1] - ir::call("log", {v[2]}); });
      case RowKernel::softmax_gradient:
        sums(kColumns, {x, in_[1]}, {a}, [](const Exprs& v) { return Exprs{v[0] * v[1]}; });
        return write({x, in_[1], a}, [&](const Exprs& v) { return v[0] * (v[1] - v[2]); });
      case RowKernel::log_softmax_gradient:
        sums(kColumns, {in_[1]}, {a}, [](const Exprs& v) { return Exprs{v[0]}; });
        return write({x, in_[1], a}, [&](const Exprs& v) { return v[1] - exp(v[0]) * v[2]; });
      case RowKernel::layer_norm:
        normalising_program(a, b, x, kColumns, eps);
        if (in_.size() == 1)
          return write({x, a, b}, [](const Exprs& v) { return (v[0] - v[1]) * v[2]; });
        return write({x, a, b, in_[1], in_[2]},
                     [](const Exprs& v) { return (v[0] - v[1]) * v[2] * v[3] + v[4]; });
      case RowKernel::layer_norm_gradient: {
        const NDArray c = one_each(), d = one_each();
        const bool weighted = in_.size() == 3;
        normalising_program(a, b, x, kColumns, eps);
        std::vector<NDArray> arrays = {x, in_[1], a, b};
        if (weighted) arrays.push_back(in_[2]);
        sums(kColumns, arrays, {c, d}, with_normal);
        arrays.insert(arrays.begin() + 4, {c, d});
        const Scalar count[1] = {static_cast<double>(out_.shape()[1])};
        return write(
            arrays,
            [weighted](const Exprs& v) {
              const Expr normal = (v[0] - v[2]) * v[3], &n = v.back();
              const Expr g = weighted ? v[1] * v[6] : v[1];
              return v[3] * (g - ir::div(v[4], n) - normal * ir::div(v[5], n));
            },
            count);
      }
      default: WEFT_CHECK(false, "row kernel ", static_cast<int>(kind_));
    }
  }

  /// Of layer_norm_gradient: the sums over all rows of the second operand, and of it times the
  /// normalised first one.
  std::array<NDArray, 2> columns(double eps) {
    const NDArray mean = one_each(), scale = one_each();
    normalising_program(mean, scale, in_[0], kColumns, eps);
    auto each = [&] { return NDArray::empty(out_.device(), compute_, Dims{out_.shape()[1]}); };
    std::array<NDArray, 2> out{each(), each()};
    sums(kRows, {in_[0], in_[1], mean, scale}, {out[0], out[1]}, with_normal);
    return out;
  }

 private:
  static constexpr std::uint64_t kRows = 1, kColumns = 2;  // the axis that is reduced
  using Values = std::function<Exprs(const Exprs&)>;

  NDArray one_each() const {
    Dims shape = out_.shape();
    shape[1] = 1;
    return NDArray::empty(out_.device(), compute_, shape);
  }
  Exprs converted(const Exprs& elements, const Exprs& numbers) const {
    Exprs out;
    for (const Expr& e : elements) out.push_back(convert_value(e, compute_));
    out.insert(out.end(), numbers.begin(), numbers.end());
    return out;
  }
  /// Of x, g, its mean and its scale, and a factor of g, if any: g, and g times the normalised x.
  static Exprs with_normal(const Exprs& v) {
    const Expr g = v.size() > 4 ? v[1] * v[4] : v[1];
    return {g, g * ((v[0] - v[2]) * v[3])};
  }
  /// results = the sums of the values along an axis.
  void sums(std::uint64_t axis, const std::vector<NDArray>& arrays,
            const std::vector<NDArray>& results, const Values& values) {
    ReductionProgram p;
    p.operation = axis == kRows ? "long_rows.column_sums" : "long_rows.sums";
    p.variant = static_cast<std::int64_t>(kind_) * 8 + static_cast<std::int64_t>(arrays.size());
    p.inputs = arrays;
    p.compute = compute_;
    p.shape = out_.shape();
    p.mask = axis;
    p.terms = [&](const Exprs& e, const Exprs&, const Expr&) { return values(converted(e, {})); };
    p.reducer = sums_reducer;
    p.outputs = results;
    run_reduction(p);
  }
  void write(const std::vector<NDArray>& arrays, const std::function<Expr(const Exprs&)>& value,
             std::span<const Scalar> numbers = {}) {
    std::vector<const NDArray*> operands;
    for (const NDArray& a : arrays) operands.push_back(&a);
    Map map;
    map.family = "long_rows";
    map.key = static_cast<std::uint64_t>(kind_) * 8 + arrays.size();
    map.arrays = operands;
    map.numbers = numbers;
    map.compute = compute_;
    map.value = [&](const Exprs& e, const Exprs& n) { return value(converted(e, n)); };
    grid_map(out_, map);
  }

  RowKernel kind_;
  NDArray out_;
  Elem compute_;
  std::vector<NDArray> in_;
};

/// Elements of a row that can move together: rows and addresses of all operands are multiples.
std::int64_t lanes_of(const NDArray& out, std::span<const NDArray* const> in,
                      std::int64_t columns) {
  const std::int64_t bytes = elem_bytes(out.elem()), lanes = std::min<std::int64_t>(8, 16 / bytes);
  bool all = columns % lanes == 0 && begins_at(out, lanes * bytes);
  for (const NDArray* a : in) all = all && begins_at(*a, lanes * bytes);
  return all ? lanes : 1;
}

operators::RowOperator operator_of(RowKernel kind) {
  switch (kind) {
    case RowKernel::softmax: return operators::RowOperator::softmax;
    case RowKernel::log_softmax: return operators::RowOperator::log_softmax;
    case RowKernel::softmax_gradient: return operators::RowOperator::softmax_gradient;
    case RowKernel::log_softmax_gradient: return operators::RowOperator::log_softmax_gradient;
    case RowKernel::layer_norm: return operators::RowOperator::layer_norm;
    case RowKernel::layer_norm_gradient: return operators::RowOperator::layer_norm_gradient;
    default: WEFT_CHECK(false, "row kernel ", static_cast<int>(kind));
  }
}

}  // namespace

std::array<NDArray, 2> grid_column_sums(const NDArray& x, const NDArray& g, double eps) {
  const NDArray a = x.contiguous(), b = g.contiguous();
  const NDArray* in[2] = {&a, &b};
  const std::int64_t columns = x.shape()[x.ndim() - 1];
  return LongRows(RowKernel::layer_norm_gradient, a, in, Dims{x.size() / columns, columns})
      .columns(eps);
}

bool row_kernel_fits(const Ref<Device>& device, std::int64_t columns) {
  return columns >= 1 && grid_of(device).present();
}

void grid_rows(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in, double eps) {
  if (out.size() == 0) return;
  const std::int64_t columns = out.shape()[out.ndim() - 1], rows = out.size() / columns;
  const std::int64_t lanes = lanes_of(out, in, columns);
  constexpr std::int64_t kMostArrays = 3;  // that operators/rows.cpp holds of a row
  const auto tile = rules::row_tile(columns, lanes, grid_of(out.device()).threads(), kMostArrays);
  if (!tile) return LongRows(kind, out, in, Dims{rows, columns}).run(eps);
  operators::RowSpec spec;
  spec.op = operator_of(kind);
  spec.type = std::string(name_of(out.elem()));
  spec.sums = std::string(name_of(sum_elem(out.elem())));
  spec.width = tile->width();
  spec.lanes = lanes;
  spec.full = columns == spec.width;
  const bool gradient = kind == RowKernel::layer_norm_gradient;
  spec.weighted = in.size() == (gradient || kind == RowKernel::layer_norm ? 3u : 0u);
  spec.narrow = fits_narrow(out.size() + spec.width * (tile->beside + 1));
  ProgramCall call(out.device());
  call.array(out);
  for (const NDArray* a : in) call.array(*a);
  call.integer(rows).integer(columns / lanes);
  call.real(1.0 / static_cast<double>(columns)).real(eps);
  call.run({"rows",
            {static_cast<int>(kind), static_cast<int>(out.elem()), spec.narrow, spec.full,
             spec.width, lanes, spec.weighted}},
           [&] { return operators::row_program(spec); });
}

void grid_rows_along(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in,
                     int axis) {
  Dims shape{1, out.shape()[axis], 1};
  for (int i = 0; i < out.ndim(); ++i)
    if (i != axis) shape[i < axis ? 0 : 2] *= out.shape()[i];
  LongRows(kind, out, in, shape).run(0);
}

}  // namespace weft::device
