// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operations on arrays: the rows of ops/*.def applied to strided operands, and the small structured
// ones. Each function allocates its result (compact; row-major, but element-wise results keep a
// layout that all operands share) unless it says "into".

#include <complex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/array/ndarray.h"
#include "weft/host/kernels.h"

namespace weft {

enum class Rule : std::uint8_t { same, boolean, real, widen };

struct OpInfo {
  std::string_view name;
  int arity = 1;
  Rule rule = Rule::same;
  std::uint8_t types = 0;  // bit 0 bool, 1 signed, 2 unsigned, 3 real, 4 complex
  bool differentiable = false;
  std::string_view value, gradient, domain, sentence;  // the row's own text
};
const OpInfo& info(Op op);
struct ReduceInfo {
  std::string_view name;
  Rule rule = Rule::same;
  std::uint8_t types = 0;
  bool has_identity = false;
  std::string_view sentence;
};
const ReduceInfo& info(ReduceOp op);

/// A number of Python's or C++'s: takes the array's type unless its kind is higher.
struct Scalar {
  Kind kind = Kind::integer;
  std::int64_t i = 0;          // boolean, integer
  bool large = false;          // integer: i holds the bits of an unsigned above INT64_MAX
  bool beyond = false;         // integer: outside of 64 bits; z is near it
  std::complex<double> z = 0;  // real, complex
  Scalar(bool v) : kind(Kind::boolean), i(v), z(v) {}
  Scalar(int v) : i(v), z(v) {}
  Scalar(std::int64_t v) : i(v), z(static_cast<double>(v)) {}
  Scalar(double v) : kind(Kind::real), i(0), z(v) {}
  Scalar(std::complex<double> v) : kind(Kind::complex), z(v) {}
};
/// Writes the scalar as one element. Throws Error(value, "array.scalar.range") when an integer does
/// not fit.
void write_scalar(const Scalar& value, Elem elem, void* out);
Elem elem_of(const Scalar& value);  // on its own: the defaults

/// An argument of an operation: an array or a scalar.
struct Arg {
  const NDArray* array = nullptr;
  Scalar scalar{0};
  Arg(const NDArray& a) : array(&a) {}
  Arg(Scalar s) : scalar(s) {}
  Arg(double v) : scalar(v) {}
};

/// What comparing an array of integers with an integer that its type cannot hold gives everywhere;
/// nothing where the type holds it and for other operations.
std::optional<bool> constant_comparison_result(Op op, const Arg& x, const Arg& y);

/// The real or imaginary part of complex numbers is a view of them.
NDArray apply(Op op, const Arg& x);
/// x as another element type, a copy; of an array that lies densely in another order of its axes
/// (a transposed one) the copy has that order too.
NDArray convert(const NDArray& x, Elem elem);
NDArray apply(Op op, const Arg& x, const Arg& y);
/// Writes to `out` (cast within its kind at most; Error(dtype, "array.<op>.inplace") else).
void apply_into(Op op, const NDArray& out, const Arg& x, const Arg& y);
/// The element type that the operation computes in for these operand types, and of its result.
struct Types {
  Elem compute, result;
};
Types resolve(Op op, std::span<const Arg> args);
Types resolve(Op op, std::span<const Elem> arrays, std::span<const Scalar> numbers);
/// The type in which a reduction of `x` accumulates, which is the result's.
Elem reduced_elem(ReduceOp op, Elem x, std::optional<Elem> dtype = std::nullopt);

/// axes empty with all = true: over everything. dtype: of accumulation and result.
struct Axes {
  bool all = true;
  Dims axes;
};
NDArray reduce(ReduceOp op, const NDArray& x, const Axes& axes = {}, bool keepdims = false,
               std::optional<Elem> dtype = std::nullopt);
/// Inclusive running sum or product along an axis.
NDArray scan(ReduceOp op, const NDArray& x, int axis, std::optional<Elem> dtype = std::nullopt);
/// argmax / argmin; first of equals; NaN wins. all: over the flattened array.
NDArray arg_reduce(bool largest, const NDArray& x, std::optional<int> axis, bool keepdims);

/// condition ? a : b, broadcast.
NDArray where(const NDArray& condition, const Arg& a, const Arg& b);

NDArray full(const Ref<Device>& device, Elem elem, Dims shape, const Scalar& value);
NDArray arange(const Ref<Device>& device, Elem elem, double start, double step, std::int64_t count);
NDArray concat(std::span<const NDArray> arrays, int axis);
/// Joined along a new axis; equal shapes.
NDArray stack(std::span<const NDArray> arrays, int axis);
/// Elements moved cyclically along an axis.
NDArray roll(const NDArray& x, std::int64_t shift, int axis);
/// Matrices on the host with zeros above diagonal k (`lower`) or below it.
NDArray triangle(const NDArray& x, std::int64_t k, bool lower);

// ---- indexing by arrays (index.cpp)
/// x at positions `indices` of one axis. Out-of-range raises Error(index, "array.index.range").
NDArray take(const NDArray& x, const NDArray& indices, int axis);
NDArray take_along_axis(const NDArray& x, const NDArray& indices, int axis);
/// x[i0, i1, ...]: index arrays for the leading axes, broadcast together.
NDArray gather(const NDArray& x, std::span<const NDArray> indices);
/// Whether a gather has checked the same indices of the same extents: its gradient need not wait.
enum class Checked : std::uint8_t { no, yes };
/// x[i0, i1, ...] = value, or += when accumulate.
void scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
             bool accumulate, Checked checked = Checked::no);
/// One int64 array for each axis: where x is not zero.
std::vector<NDArray> nonzero(const NDArray& x);
/// The mask's extents are those of x from `axis` on; an axis of extent 0 marks nothing anywhere, as
/// in NumPy. Throws Error(index, "array.index.mask").
void need_mask(const NDArray& x, const NDArray& mask, int axis = 0);
/// x where `mask` is set, along its leading axes that the mask has: x[mask].
NDArray select_marked(const NDArray& x, const NDArray& mask);
/// x[mask] = value for one value, everywhere; `mask` has x's leading axes.
void assign_marked(const NDArray& x, const NDArray& mask, const NDArray& value);
/// How many truth values of an array on the host are set.
std::int64_t count_marked(const NDArray& mask);

// ---- sorting (sort.cpp): stable, NaN last
NDArray sort(const NDArray& x, int axis, bool descending);
NDArray argsort(const NDArray& x, int axis, bool descending);
/// The first k of argsort(x, axis, largest), without sorting the others.
NDArray topk_places(const NDArray& x, std::int64_t k, int axis, bool largest);
/// Position i counts[i] times, for i = 0, 1, ...; counts: int64 from 0 on, of one axis, on the
/// host.
NDArray repeat_places(const NDArray& counts);
/// Positions of `values` in the sorted 1-d `x`.
NDArray searchsorted(const NDArray& x, const NDArray& values, bool right);

// ---- products (matmul.cpp)
/// The last two axes multiply, the others broadcast; 1-d operands as vectors.
NDArray matmul(const NDArray& a, const NDArray& b);

// ---- row kernels (rows.cpp); real floats
/// A kernel over the rows of the last axis; operands of x's shape, or one row.
std::string_view name_of(RowKernel kind);
NDArray apply_rows(RowKernel kind, std::span<const NDArray* const> operands, double eps = 0);
/// Softmax, log-softmax or a gradient of theirs along any axis.
NDArray apply_rows_along(RowKernel kind, std::span<const NDArray* const> operands, int axis);
NDArray softmax(const NDArray& x, int axis);
NDArray log_softmax(const NDArray& x, int axis);
NDArray logsumexp(const NDArray& x, const Axes& axes = {}, bool keepdims = false);
/// (x - mean) / sqrt(variance + eps) * scale + shift over the last axis; scale, shift: one row.
NDArray layer_norm(const NDArray& x, const NDArray& scale, const NDArray& shift, double eps);

namespace arrays {
#define WEFT_UNARY(name) \
  inline NDArray name(const NDArray& x) { return apply(Op::name, x); }
#define WEFT_BINARY(name) \
  inline NDArray name(const NDArray& x, const Arg& y) { return apply(Op::name, x, y); }
WEFT_UNARY_OPS(WEFT_UNARY)
WEFT_BINARY_OPS(WEFT_BINARY)
#undef WEFT_UNARY
#undef WEFT_BINARY
}  // namespace arrays

}  // namespace weft
