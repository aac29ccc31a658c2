// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/tensor.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace weft {

namespace {
thread_local bool t_grad_enabled = true;

/// Backward passes of this thread that are under way, and what runs when the outermost ends.
struct Passes {
  int depth = 0;
  std::vector<std::function<void()>> after;
};
thread_local Passes t_passes;
}  // namespace

bool grad_enabled() { return t_grad_enabled; }
void set_grad_enabled(bool on) { t_grad_enabled = on; }

Tensor::Tensor(NDArray data, bool requires_grad) : node_(make_ref<TensorNode>()) {
  node_->data = std::move(data);
  node_->requires_grad = requires_grad;
  hold();
}

const NDArray& Tensor::data() const {
  if (node_->device) [[unlikely]] {
    throw Error(
        ErrorKind::value, "array.tensor.released",
        cat("the values of this result of ", node_->op, ", shape ", to_string(node_->data.shape()),
            ", were released: nothing held it, and no gradient reads them or a backward pass "
            "has been"))
        .help(
            "keep the tensor in a variable for as long as its values are wanted; to pass a graph "
            "twice, backward(retain_graph=True)");
  }
  return node_->data;
}
void Tensor::set_data(NDArray data) {
  node_->data = std::move(data);
  node_->device = nullptr;
}
bool Tensor::released() const { return static_cast<bool>(node_->device); }
const Ref<Device>& Tensor::device() const {
  return node_->device ? node_->device : node_->data.device();
}
bool Tensor::requires_grad() const { return node_->requires_grad; }
void Tensor::set_requires_grad(bool value) { node_->requires_grad = value; }
const char* Tensor::op() const { return node_->op; }
std::vector<Tensor> Tensor::inputs() const {
  return node_ ? std::vector<Tensor>(node_->inputs.begin(), node_->inputs.end())
               : std::vector<Tensor>();
}
Tensor Tensor::grad() const { return node_->grad; }
void Tensor::set_grad(Tensor grad) { node_->grad = std::move(grad); }
Tensor Tensor::detach() const {
  Tensor out(node_->data, false);
  out.node_->device = node_->device;
  return out;
}

void TensorNode::forget() {
  if (needed || device || !data.defined()) return;
  device = data.device();
  data = data.outline();
}

void TensorNode::dispose() {
  std::vector<Ref<TensorNode>> pending = std::move(inputs);
  if (grad.defined()) pending.push_back(grad.node());
  grad = Tensor();
  gradient = nullptr;
  while (!pending.empty()) {
    Ref<TensorNode> node = std::move(pending.back());
    pending.pop_back();
    if (node->ref_count() != 1) continue;
    for (Ref<TensorNode>& input : node->inputs) pending.push_back(std::move(input));
    node->inputs.clear();
    if (node->grad.defined()) pending.push_back(node->grad.node());
    node->grad = Tensor();
    node->gradient = nullptr;
  }
  delete this;
}

Tensor make_tensor(const char* op, NDArray data, std::vector<Tensor> inputs, GradientFn gradient,
                   Reads reads) {
  Tensor out(std::move(data), false);
  bool wanted = false;
  for (const Tensor& input : inputs) wanted |= input.requires_grad();
  if (wanted && grad_enabled() && is_inexact(out.elem())) {
    TensorNode& node = *out.node();
    node.requires_grad = true;
    node.op = op;
    node.needed = reads & kResult;
    node.inputs.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i > 30 || (reads >> i & 1)) inputs[i].node()->needed = true;
      node.inputs.push_back(inputs[i].node());
    }
    node.gradient = std::move(gradient);
  }
  return out;
}

std::vector<Tensor> topological(std::span<const Tensor> outputs) {
  std::vector<Tensor> order;
  std::unordered_set<const TensorNode*> seen;
  struct Frame {
    Tensor tensor;
    std::size_t next;
  };
  std::vector<Frame> stack;
  for (const Tensor& output : outputs) {
    if (!seen.insert(output.node().get()).second) continue;
    stack.push_back({output, 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const std::vector<Ref<TensorNode>>& inputs = frame.tensor.node()->inputs;
      if (frame.next < inputs.size()) {
        const Ref<TensorNode>& input = inputs[frame.next++];
        if (seen.insert(input.get()).second) stack.push_back({Tensor(input), 0});
      } else {
        order.push_back(frame.tensor);
        stack.pop_back();
      }
    }
  }
  return order;
}

namespace {

/// Runs the chain rule; `take(tensor, gradient)` gets every finished gradient in reverse order.
/// With `wanted`, only nodes from which one of these is reached pass gradients on.
template <typename F>
void run(std::span<const Tensor> outputs, std::span<const Tensor> seeds, Graph graph,
         std::span<const Tensor> wanted, F&& take) {
  std::unordered_map<const TensorNode*, Tensor> incoming;
  auto add = [&](const Tensor& t, const Tensor& g) {
    Tensor& slot = incoming[t.node().get()];
    slot = slot.defined() ? slot + g : g;
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    if (!output.requires_grad()) {
      if (const DType type = output.data().dtype(); !type.is_float() && !type.is_complex()) {
        throw Error(ErrorKind::value, "array.backward.constant",
                    cat("no gradient reaches ", describe(output.data()),
                        ": integers and truth values have none"))
            .help("give floats, x.astype(\"float32\"), to what the result is computed from");
      }
      throw Error(ErrorKind::value, "array.backward.constant",
                  cat("no gradient reaches ", describe(output.data()),
                      ": it was made without tensors that require one"));
    }
    Tensor seed = i < seeds.size() ? seeds[i] : Tensor();
    if (!seed.defined()) {
      seed = ones_like(output);
    } else if (!(seed.shape() == output.shape())) {
      throw Error(ErrorKind::shape, "array.backward.seed",
                  cat("backward of shape ", to_string(output.shape()), " got a gradient of shape ",
                      to_string(seed.shape())));
    }
    add(output, graph == Graph::create ? seed : seed.detach());
  }
  std::vector<Tensor> order = topological(outputs);
  std::unordered_set<const TensorNode*> goals, passes;
  for (const Tensor& t : wanted) goals.insert(t.node().get());
  for (const Tensor& t : order) {
    for (const Ref<TensorNode>& input : t.node()->inputs) {
      if (goals.empty() || goals.count(input.get()) || passes.count(input.get()))
        passes.insert(t.node().get());
    }
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    auto found = incoming.find(it->node().get());
    if (found == incoming.end()) continue;
    Tensor g = std::move(found->second);
    incoming.erase(found);
    const TensorNode& node = *it->node();
    if (node.watch && node.watch->change) g = node.watch->change(g);
    take(*it, g);
    if (!node.gradient || !passes.count(&node)) continue;
    GradientCall call;
    call.g = g;
    call.out = graph == Graph::create ? *it : it->detach();
    call.x.reserve(node.inputs.size());
    for (const Ref<TensorNode>& input : node.inputs)
      call.x.push_back(graph == Graph::create ? Tensor(input) : Tensor(input).detach());
    std::vector<Tensor> gs = node.gradient(call);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Tensor input(node.inputs[i]);
      if (!input.requires_grad() || i >= gs.size() || !gs[i].defined()) continue;
      Tensor part = gs[i].shape() == input.shape() ? gs[i] : sum_to(gs[i], input.shape());
      if (part.elem() != input.elem()) part = astype(part, input.elem());
      add(input, part);
    }
    if (graph == Graph::release) {  // all that use this node have been passed
      it->node()->needed = false;
      *it = Tensor();
    }
  }
}

}  // namespace

std::vector<Tensor> gradients(std::span<const Tensor> outputs, std::span<const Tensor> seeds,
                              std::span<const Tensor> wanted, Graph graph) {
  std::vector<Tensor> result(wanted.size());
  std::unordered_map<const TensorNode*, std::size_t> place;
  for (std::size_t i = 0; i < wanted.size(); ++i) place[wanted[i].node().get()] = i;
  run(outputs, seeds, graph, wanted, [&](const Tensor& t, const Tensor& g) {
    auto it = place.find(t.node().get());
    if (it != place.end()) result[it->second] = g;
  });
  return result;
}

void after_backward(std::function<void()> f) {
  if (t_passes.depth == 0) return f();
  t_passes.after.push_back(std::move(f));
}

void backward(const Tensor& output, const Tensor& seed, Graph graph) {
  const Tensor outputs[1] = {output}, seeds[1] = {seed};
  ++t_passes.depth;
  try {
    run(outputs, seeds, graph, {}, [&](const Tensor& t, const Tensor& g) {
      const bool kept_inside = t.node()->watch && t.node()->watch->keep;
      if ((t.node()->gradient && !kept_inside) || !t.requires_grad()) return;
      Tensor kept = t.grad();
      t.node()->grad = kept.defined() ? kept + g : g;
      if (t.node()->accumulated) t.node()->accumulated(t);
    });
  } catch (...) {
    if (--t_passes.depth == 0) t_passes.after.clear();
    throw;
  }
  if (--t_passes.depth > 0) return;
  for (const std::function<void()>& f : std::exchange(t_passes.after, {})) f();
}

}  // namespace weft
