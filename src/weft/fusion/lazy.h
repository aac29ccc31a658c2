// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lazy: what a function does to arrays, written down instead of done: the table's rows, casts,
// where, broadcasts, reductions, views and products over inputs of known type and shape. The
// gradient cells of the table give the gradient of such a graph as another one. fuse.h makes
// kernels of graphs.

#include <optional>
#include <vector>

#include "weft/array/ops.h"

namespace weft {

enum class LazyKind : std::uint8_t {
  input,
  number,
  elementwise,
  where,
  cast,
  broadcast,  // broadcast_to; with `held` gradients do not pass
  reduce,     // axes in `mask`; the shape says whether they are kept as ones
  rows,       // a row kernel along the last axis, as the eager operations run it
  variance,   // over the axes in `mask`, by count - eps, or its root: the host's pass over memory
  reshape,    // of a materialised array, as are the three below
  permute,
  matmul,
};

struct LazyNode;
class Lazy {
 public:
  Lazy() = default;
  explicit Lazy(Ref<LazyNode> node) : node_(std::move(node)) {}
  /// Input number `index` of the function.
  static Lazy input(int index, Elem elem, Dims shape);
  static Lazy number(const Scalar& value, Elem elem);

  bool defined() const { return static_cast<bool>(node_); }
  LazyNode* node() const { return node_.get(); }
  const LazyNode* operator->() const { return node_.get(); }
  Elem elem() const;
  const Dims& shape() const;
  int ndim() const { return shape().size(); }

 private:
  Ref<LazyNode> node_;
};

struct LazyNode final : RefCounted {
  LazyKind kind = LazyKind::input;
  Op op{};
  ReduceOp reduction{};
  Elem elem = Elem::float32;
  Elem compute = Elem::float32;  // row: the type of the row's arguments
  Dims shape;
  std::uint64_t mask = 0;
  Scalar number{0};
  RowKernel kernel{};     // rows
  double eps = 0;         // rows, variance
  std::vector<int> axes;  // permute
  int index = 0;          // input
  bool root = false;      // variance
  bool held = false;      // spread
  std::vector<Lazy> in;
};

// ---- operations; shapes and types as for arrays, with the same errors
Lazy apply(Op op, const Lazy& x);
Lazy apply(Op op, const Lazy& x, const Lazy& y);
Lazy apply(Op op, const Lazy& x, const Scalar& y);
Lazy apply(Op op, const Scalar& x, const Lazy& y);
Lazy astype(const Lazy& x, Elem elem);
Lazy where(const Lazy& condition, const Lazy& a, const Lazy& b);
Lazy broadcast_to(const Lazy& x, const Dims& shape);
/// The same value, which no gradient passes.
Lazy detach(const Lazy& x);
Lazy reduce(ReduceOp op, const Lazy& x, const Axes& axes = {}, bool keepdims = false,
            std::optional<Elem> dtype = std::nullopt);
/// `in`: as apply_rows takes them, of one real floating type.
Lazy rows(RowKernel kernel, std::vector<Lazy> in, double eps = 0);
/// The sum of squares about the mean by count - correction, or its root; of float32 or float64.
Lazy variance(const Lazy& x, const Axes& axes, bool keepdims, double correction, bool root);
Lazy reshape(const Lazy& x, Dims shape);
Lazy permute(const Lazy& x, std::vector<int> axes);
Lazy matmul(const Lazy& a, const Lazy& b);
/// The number as an operand like `like`.
Lazy constant(const Scalar& value, const Lazy& like);
/// Inverse of broadcasting.
Lazy sum_to(const Lazy& x, const Dims& shape);

/// Gradients of `outputs` weighted by `seeds` for the wanted ones (undefined where none reaches),
/// which are arguments of their own: nothing passes through one of them to another. Throws
/// Error(value, "compile.gradient.none") for a reduction without a rule.
std::vector<Lazy> gradients(const std::vector<Lazy>& outputs, const std::vector<Lazy>& seeds,
                            const std::vector<Lazy>& wanted);
/// Inputs before users.
std::vector<Lazy> topological(const std::vector<Lazy>& outputs);

}  // namespace weft
