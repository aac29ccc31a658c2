// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/fused_function.h"

#include <atomic>
#include <mutex>
#include <set>

#include "weft/base/fork_safe_mutex.h"
#include "weft/devices/grid.h"
#include "weft/elements/row_ir.h"
#include "weft/fusion/lazy_tensors.h"
#include "weft/fusion/lazy_value.h"

namespace weft {

namespace {

/// A graph, and the inputs that it reads.
struct Part {
  Lazy root;
  std::vector<int> reads;
  std::vector<const LazyNode*> leaves;
  std::uint32_t serial = 0;  // of all parts of the process: programs are kept by it

  explicit Part(const Lazy& value) : root(value) {
    static std::atomic<std::uint32_t> last{0};
    serial = ++last;
    for (const Lazy& x : topological({root})) {
      if (x->kind != LazyKind::input) continue;
      reads.push_back(x->index);
      leaves.push_back(x.node());
    }
  }
};

NDArray run(const Part& part, Elem compute, Elem result, std::span<const NDArray* const> in,
            bool total = false) {
  std::vector<const NDArray*> arrays;
  std::vector<const Dims*> shapes;
  for (const NDArray* a : in) shapes.push_back(&a->shape());
  for (int i : part.reads) arrays.push_back(in[static_cast<std::size_t>(i)]);
  const Dims shape = broadcast_shapes(shapes, "fused");
  NDArray out = NDArray::empty(in[0]->device(), result, total ? Dims{} : shape);
  device::Map map;
  map.family = "fused function";
  map.key = part.serial;
  map.arrays = arrays;
  map.compute = compute;
  map.value = [&](const std::vector<ir::Expr>& loads, const std::vector<ir::Expr>&) {
    std::vector<ir::Expr> values;
    for (const ir::Expr& x : loads) values.push_back(convert_value(x, compute));
    return lazy_value(part.root, part.leaves, values);
  };
  if (total) {
    map.family = "fused total";
    device::grid_reduce(ReduceOp::sum, compute, out, map, shape,
                        (std::uint64_t{1} << shape.size()) - 1);
  } else {
    device::grid_map(out, map);
  }
  return out;
}

/// Nodes of graphs name their operation by a literal.
const char* literal(const std::string& name) {
  static ForkSafeMutex mutex;
  static auto& names = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

}  // namespace

struct FusedFunction::Shared {
  const char* name;
  Elem compute;
  int inputs;
  bool total;
  Part value;
  std::vector<std::optional<Part>> gradients;  // of each input; absent: zero almost everywhere
};

FusedFunction::FusedFunction(const std::string& name, const Lazy& value, int inputs, bool total) {
  const Elem compute = value.elem();
  const Part whole(value);
  std::vector<Lazy> wanted(static_cast<std::size_t>(inputs));
  for (int k = 0; k < inputs; ++k)
    wanted[static_cast<std::size_t>(k)] = Lazy::input(k, compute, Dims{});
  for (const Lazy& x : topological({value})) {
    if (x->kind == LazyKind::input) wanted[static_cast<std::size_t>(x->index)] = x;
  }
  auto shared = std::make_shared<Shared>(Shared{literal(name), compute, inputs, total, whole, {}});
  const Lazy incoming = Lazy::input(inputs, compute, Dims{});
  for (const Lazy& g : weft::gradients({value}, {incoming}, wanted)) {
    if (g.defined()) shared->gradients.emplace_back(Part(g));
    else shared->gradients.emplace_back();
  }
  shared_ = std::move(shared);
}

std::optional<Elem> FusedFunction::compute_elem(std::span<const NDArray* const> in) {
  const NDArray& first = *in[0];
  if (first.on_host() || !is_real_float(first.elem()) || !device::grid_of(first.device()).present())
    return std::nullopt;
  for (const NDArray* a : in) {
    if (a->elem() != first.elem() || a->device().get() != first.device().get()) return std::nullopt;
  }
  return device::sum_elem(first.elem());
}

NDArray FusedFunction::operator()(std::span<const NDArray* const> in) const {
  return run(shared_->value, shared_->compute, in[0]->elem(), in, shared_->total);
}

Tensor FusedFunction::operator()(const std::vector<Tensor>& in) const {
  std::vector<const NDArray*> arrays;
  for (const Tensor& t : in) arrays.push_back(&t.data());
  NDArray out = (*this)(arrays);
  auto gradient = [shared = shared_](const GradientCall& c) {
    std::vector<Tensor> gradients, all = c.x;
    all.push_back(c.g);
    bool linked = false;
    for (const Tensor& t : all) linked = linked || t.requires_grad();
    for (std::size_t k = 0; k < c.x.size(); ++k) {
      const std::optional<Part>& part = shared->gradients[k];
      Tensor g;
      if (part && linked) {
        std::vector<Tensor> wide;
        for (const Tensor& t : all) wide.push_back(astype(t, shared->compute));
        g = astype(evaluate({part->root}, wide)[0], c.x[k].elem());
      } else if (part) {
        std::vector<const NDArray*> operands;
        for (const Tensor& t : all) operands.push_back(&t.data());
        g = Tensor(run(*part, shared->compute, c.x[k].elem(), operands));
      }
      gradients.push_back(g.defined() ? sum_to(g, c.x[k].shape()) : g);
    }
    return gradients;
  };
  // Gradients read inputs alone.
  const Reads reads = (Reads{1} << in.size()) - 1;
  return make_tensor(shared_->name, std::move(out), in, std::move(gradient), reads);
}

}  // namespace weft
