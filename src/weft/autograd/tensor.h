// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor: an array that remembers how it was made. Operations on tensors that require gradients
// link nodes into a graph, which stays visible (op, inputs) and is walked in topological order
// without recursion. Gradients are computed with the same operations, so with Graph::create they
// can be differentiated again. A Tensor is a handle: when the last one of a result goes and no
// gradient reads its values, these are released; its place, shape and type stay in the graph.

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/array/ops.h"

namespace weft {

class Tensor;
struct TensorNode;
/// The gradients for inputs, given the node's own tensors: inputs `x`, result `out`, incoming `g`.
struct GradientCall;
using GradientFn = std::function<std::vector<Tensor>(const GradientCall&)>;
struct GradientHook {
  std::uint64_t id = 0;
  std::function<Tensor(const Tensor&)> call;  // undefined: the gradient stays
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(NDArray data, bool requires_grad = false);
  explicit Tensor(Ref<TensorNode> node) : node_(std::move(node)) { hold(); }
  Tensor(const Tensor& other) : node_(other.node_) { hold(); }
  Tensor(Tensor&& other) noexcept : node_(std::move(other.node_)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Tensor() { let_go(); }

  bool defined() const { return static_cast<bool>(node_); }
  const Ref<TensorNode>& node() const { return node_; }
  /// Throws Error(value, "array.tensor.released") when the values were released.
  const NDArray& data() const;
  void set_data(NDArray data);
  bool released() const;
  const Ref<Device>& device() const;
  bool requires_grad() const;
  void set_requires_grad(bool value);
  const char* op() const;  // "" for leaves
  std::vector<Tensor> inputs() const;
  Tensor grad() const;  // undefined before backward
  void set_grad(Tensor grad);
  Tensor detach() const;
  /// Adds a hook to the tensor's gradient and gives its number. Throws Error(value,
  /// "array.backward.hook.constant") when the tensor requires none.
  std::uint64_t add_hook(std::function<Tensor(const Tensor&)> hook) const;
  void remove_hook(std::uint64_t id) const;
  /// weft::backward of this tensor.
  void backward(const Tensor& seed = {}) const;

  const Dims& shape() const;
  int ndim() const { return shape().size(); }
  std::int64_t size() const;
  Elem elem() const;
  bool operator==(const Tensor& other) const { return node_ == other.node_; }

 private:
  void hold() const;
  void let_go() const;
  Ref<TensorNode> node_;
};

struct TensorNode final : RefCounted {
  NDArray data;        // without storage once released
  Ref<Device> device;  // of released data
  bool requires_grad = false;
  bool needed = false;  // a gradient reads the data
  std::atomic<std::int32_t> handles{0};
  const char* op = "";
  std::vector<Ref<TensorNode>> inputs;
  GradientFn gradient;
  Tensor grad;
  bool retains = false;  // `grad` is kept though the tensor is no leaf
  /// Of leaves: called when a backward pass has added to `grad`.
  std::function<void(const Tensor&)> accumulated;
  /// Called in order with the whole gradient of the tensor in each pass; a result takes its place.
  std::vector<GradientHook> hooks;
  TensorNode() = default;
  /// Gives the data back where no handle and no gradient wants it.
  void forget();

 protected:
  void dispose() override;  // long chains are released in a loop, not by recursion
};

inline void Tensor::hold() const {
  if (node_) node_->handles.fetch_add(1, std::memory_order_relaxed);
}
inline void Tensor::let_go() const {
  if (node_ && node_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1 && node_->gradient)
    node_->forget();
}
inline const Dims& Tensor::shape() const { return node_->data.shape(); }
inline std::int64_t Tensor::size() const { return node_->data.size(); }
inline Elem Tensor::elem() const { return node_->data.elem(); }

struct GradientCall {
  std::vector<Tensor> x;
  Tensor out, g;
};

/// What becomes of graphs in a backward pass: `discard` makes none of the gradients, `create` makes
/// one, `release` makes none and gives back the values of each node that was passed, so that the
/// pass cannot be repeated.
enum class Graph : std::uint8_t { discard, create, release };

/// Gradients of `outputs` (weighted by `seeds`, ones when undefined) with respect to `wanted`;
/// undefined entries for tensors that do not matter. Throws Error(value, "array.backward.*").
std::vector<Tensor> gradients(std::span<const Tensor> outputs, std::span<const Tensor> seeds,
                              std::span<const Tensor> wanted, Graph graph);
/// Adds to .grad of every leaf that requires it.
void backward(const Tensor& output, const Tensor& seed = {}, Graph graph = Graph::discard);
inline void Tensor::backward(const Tensor& seed) const { weft::backward(*this, seed); }
/// Runs `f` once, when the backward pass of this thread that is under way ends; at once without
/// one.
void after_backward(std::function<void()> f);
/// Inputs before users, in the order of first need.
std::vector<Tensor> topological(std::span<const Tensor> outputs);

/// Whether operations of this thread link their results into a graph. They do from the start.
bool grad_enabled();
void set_grad_enabled(bool on);
/// No graph is made on this thread while one lives.
class NoGrad {
 public:
  NoGrad() : before_(grad_enabled()) { set_grad_enabled(false); }
  ~NoGrad() { set_grad_enabled(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

/// Whose values an operation's gradient reads: bit i for input i, kResult for its result. Shapes
/// and types may always be read.
using Reads = std::uint32_t;
constexpr Reads kResult = 1u << 31, kReadsNothing = 0, kReadsAll = ~0u;
/// A tensor made by an operation; linked only when an input requires gradients.
Tensor make_tensor(const char* op, NDArray data, std::vector<Tensor> inputs, GradientFn gradient,
                   Reads reads = kReadsAll);

// ---- operations; the elementwise rows are declared below
Tensor apply(Op op, const Tensor& x);
Tensor apply(Op op, const Tensor& x, const Tensor& y);
Tensor apply(Op op, const Tensor& x, const Scalar& y);
Tensor apply(Op op, const Scalar& x, const Tensor& y);
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
Tensor max(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
Tensor reshape(const Tensor& x, const Dims& shape);
Tensor permute(const Tensor& x, std::span<const int> axes);
Tensor transpose(const Tensor& x, int a, int b);
Tensor broadcast_to(const Tensor& x, const Dims& shape);
Tensor sum_to(const Tensor& x, const Dims& shape);  // inverse of broadcasting
Tensor flip(const Tensor& x, std::span<const int> axes);
Tensor matmul(const Tensor& a, const Tensor& b);
/// x weight + bias: (..., k) by (k, n) and (n).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
Tensor astype(const Tensor& x, Elem elem);
inline Tensor astype(const Tensor& x, const Tensor& like) { return astype(x, like.elem()); }
Tensor ones_like(const Tensor& x);
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor concat(std::span<const Tensor> xs, int axis);
Tensor pad(const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths);
/// `view` shows part of x's storage; its gradient is written into zeros of x's shape by
/// `same_view`.
Tensor slice_view(const Tensor& x, NDArray view, std::function<NDArray(const NDArray&)> same_view);
Tensor gather(const Tensor& x, std::vector<NDArray> indices);
/// (n, c, h, w) -> (n, c, oh, ow, kh, kw), windows of kh x kw at every stride.
Tensor windows(const Tensor& x, std::int64_t kh, std::int64_t kw, std::int64_t stride);
Tensor softmax(const Tensor& x, int axis);
Tensor log_softmax(const Tensor& x, int axis);
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keepdims = false);
/// Over the last axis; scale and shift hold one row, or are both undefined.
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps);
/// x (n, c, h, w), weight (o, c, kh, kw).
Tensor conv2d(const Tensor& x, const Tensor& weight, std::int64_t stride, std::int64_t padding);

#define WEFT_UNARY(name) \
  inline Tensor name(const Tensor& x) { return apply(Op::name, x); }
#define WEFT_BINARY(name)                                                                \
  inline Tensor name(const Tensor& x, const Tensor& y) { return apply(Op::name, x, y); } \
  inline Tensor name(const Tensor& x, double y) { return apply(Op::name, x, Scalar(y)); }
WEFT_UNARY_OPS(WEFT_UNARY)
WEFT_BINARY_OPS(WEFT_BINARY)
#undef WEFT_UNARY
#undef WEFT_BINARY

inline Tensor operator+(const Tensor& a, const Tensor& b) { return apply(Op::add, a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return apply(Op::subtract, a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return apply(Op::multiply, a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return apply(Op::divide, a, b); }
inline Tensor operator+(const Tensor& a, double b) { return apply(Op::add, a, Scalar(b)); }
inline Tensor operator-(const Tensor& a, double b) { return apply(Op::subtract, a, Scalar(b)); }
inline Tensor operator*(const Tensor& a, double b) { return apply(Op::multiply, a, Scalar(b)); }
inline Tensor operator/(const Tensor& a, double b) { return apply(Op::divide, a, Scalar(b)); }
inline Tensor operator+(double a, const Tensor& b) { return apply(Op::add, Scalar(a), b); }
inline Tensor operator-(double a, const Tensor& b) { return apply(Op::subtract, Scalar(a), b); }
inline Tensor operator*(double a, const Tensor& b) { return apply(Op::multiply, Scalar(a), b); }
inline Tensor operator/(double a, const Tensor& b) { return apply(Op::divide, Scalar(a), b); }
inline Tensor operator-(const Tensor& a) { return apply(Op::negative, a); }

}  // namespace weft
