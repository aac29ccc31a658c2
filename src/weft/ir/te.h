// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tensor-expression front end: what to compute, point by point, without loops. create_prim_func
// turns the graph behind some tensors into one PrimFunc with a block per computation.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "weft/ir/node.h"

namespace weft::te {

using ir::Annotations;
using ir::Expr;
using ir::Exprs;
using ir::IterVar;
using ir::Reducer;
using ir::Var;

struct OperationNode;
using Operation = Ref<const OperationNode>;

/// One result of an operation; a handle. Reading it is `T(i, j)` or `T.at({i, j})`.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(ir::Buffer buffer) : buffer_(std::move(buffer)) {}
  explicit operator bool() const { return bool(buffer_); }
  bool operator==(const Tensor& other) const { return buffer_ == other.buffer_; }
  const Exprs& shape() const { return buffer_->shape; }
  DType dtype() const { return buffer_->dtype; }
  const std::string& name() const { return buffer_->name; }
  std::size_t ndim() const { return buffer_->ndim(); }
  /// The symbolic tensor that loads of this tensor mention.
  const ir::Buffer& buffer() const { return buffer_; }
  Operation op() const;
  /// Which result of its operation.
  int value_index() const;
  /// Throws Error(shape, "ir.load.rank") when the number of indices is not the rank.
  Expr at(Exprs indices) const;
  template <typename... Is>
  Expr operator()(const Is&... indices) const {
    return at(Exprs{Expr(indices)...});
  }

 private:
  ir::Buffer buffer_;
};

struct OperationNode final : RefCounted {
  std::string name;
  Exprs shape;
  std::vector<IterVar> axes;  // one per dimension; empty for placeholders
  Exprs body;                 // one per result; empty for placeholders
  Annotations attrs;
  bool is_placeholder() const { return body.empty(); }
};

/// An extent known only at run time.
Var var(std::string name = "n", DType type = dtypes::int64);
Tensor placeholder(Exprs shape, DType type = dtypes::float32, std::string name = "placeholder");

using Compute = std::function<Expr(const std::vector<Var>&)>;
using ComputeMany = std::function<Exprs(const std::vector<Var>&)>;
/// Throws Error(value, "te.compute.*") for reductions inside expressions, missing bodies, bad
/// shapes.
Tensor compute(Exprs shape, const Compute& body, std::string name = "compute",
               Annotations attrs = {}, const std::vector<std::string>& axis_names = {});
std::vector<Tensor> compute_many(Exprs shape, const ComputeMany& body, std::string name = "compute",
                                 Annotations attrs = {},
                                 const std::vector<std::string>& axis_names = {});

/// An axis to reduce over: [min, min + extent).
IterVar reduce_axis(Expr min, Expr extent, std::string name = "k");
IterVar reduce_axis(std::int64_t extent, std::string name = "k");

/// Reductions; only as the whole body of a compute. `where` false leaves a point out.
Expr sum(Expr source, std::vector<IterVar> axes, Expr where = nullptr);
Expr prod(Expr source, std::vector<IterVar> axes, Expr where = nullptr);
Expr min(Expr source, std::vector<IterVar> axes, Expr where = nullptr);
Expr max(Expr source, std::vector<IterVar> axes, Expr where = nullptr);
/// (index, value) pairs; the smaller index wins ties.
Exprs argmin(Expr index, Expr value, std::vector<IterVar> axes, Expr where = nullptr);
Exprs argmax(Expr index, Expr value, std::vector<IterVar> axes, Expr where = nullptr);
/// Any reducer over a tuple of sources.
Exprs reduce(const Reducer& reducer, Exprs source, std::vector<IterVar> axes, Expr where = nullptr);

/// A user's reducer: how to combine two tuples, and the identity for given types.
struct CommReducer {
  std::string name;
  std::function<Exprs(const std::vector<Var>& x, const std::vector<Var>& y)> combine;
  std::function<Exprs(const std::vector<DType>& types)> identity;
  Exprs operator()(Exprs source, std::vector<IterVar> axes, Expr where = nullptr) const;
};
CommReducer comm_reducer(decltype(CommReducer::combine) combine,
                         decltype(CommReducer::identity) identity, std::string name = "reduce");

/// Parameters in order: tensors (placeholders and results) and scalar variables.
using Arg = std::variant<Tensor, Var>;
/// Throws Error(value, "te.create_prim_func.*").
ir::PrimFunc create_prim_func(const std::vector<Arg>& args, std::string name = "main");

}  // namespace weft::te
