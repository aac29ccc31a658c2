// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/fused_function.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "weft/array/turned.h"
#include "weft/autograd/gpu/gradients.h"
#include "weft/autograd/gpu/row_gradients.h"
#include "weft/base/fork_safe_mutex.h"
#include "weft/elements/row_ir.h"
#include "weft/fusion/lazy_value.h"
#include "weft/ir/share.h"

namespace weft {

using ir::Expr;

namespace {

/// Graphs, and the inputs that they read.
struct Part {
  std::vector<Lazy> roots;
  std::vector<int> reads;
  std::vector<const LazyNode*> leaves;
  std::uint32_t serial = 0;  // of all parts of the process: programs are kept by it

  explicit Part(std::vector<Lazy> values) : roots(std::move(values)) {
    static std::atomic<std::uint32_t> last{0};
    serial = ++last;
    for (const Lazy& x : topological(roots)) {
      if (x->kind != LazyKind::input) continue;
      reads.push_back(x->index);
      leaves.push_back(x.node());
    }
  }

  /// `scale`: what the input of that number is multiplied by, if any.
  std::vector<Expr> values(const std::vector<Expr>& loads, const std::vector<Expr>& scale = {},
                           int scaled = -1) const {
    std::vector<Expr> wide;
    for (std::size_t k = 0; k < loads.size(); ++k) {
      wide.push_back(convert_value(loads[k], arithmetic_elem(leaves[k]->elem)));
      if (!scale.empty() && reads[k] == scaled)
        wide[k] = row_value(Op::multiply, {wide[k], scale[0]});
    }
    LazyWriter writer(leaves, wide, true);
    std::vector<Expr> out;
    for (const Lazy& x : roots) out.push_back(writer.value(x));
    return out;
  }
  /// The same of variables, to see whether there are such values, and how long they are.
  std::vector<Expr> sample() const {
    std::vector<Expr> loads;
    for (const LazyNode* x : leaves)
      loads.push_back(ir::make_var(cat("x", x->index), dtype_of(x->elem)));
    return values(loads);
  }
  device::Map map(std::string_view family, std::span<const NDArray* const> arrays) const {
    device::Map out;
    out.family = family;
    out.key = serial;
    out.arrays = arrays;
    return out;
  }
};

constexpr std::int64_t kLongValue = 1000;  // places of a value's tree
constexpr std::size_t kMostFusedArrays = 20;

bool is_elementwise(const Lazy& x) {
  switch (x->kind) {
    case LazyKind::input:
    case LazyKind::number:
    case LazyKind::cast:
    case LazyKind::where:
    case LazyKind::broadcast: return true;
    case LazyKind::elementwise: return !(x->op == Op::nextafter && is_narrow_float(x->compute));
    default: return false;
  }
}

Dims broadcast_of(std::span<const Dims* const> shapes) { return broadcast_shapes(shapes, "fused"); }

using Total = FusedFunction::Total;

Dims shape_of(std::span<const NDArray* const> in) {
  std::vector<const Dims*> shapes;
  for (const NDArray* a : in) shapes.push_back(&a->shape());
  return broadcast_of(shapes);
}

std::vector<NDArray> run(const Part& part, std::span<const NDArray* const> in, Total total,
                         bool short_value) {
  std::vector<const NDArray*> arrays;
  for (int i : part.reads) arrays.push_back(in[static_cast<std::size_t>(i)]);
  const Dims shape = shape_of(in);
  const Ref<Device>& device = in[0]->device();
  if (total != Total::none) {
    const Elem elem = part.roots[0].elem(), sums = device::sum_elem(elem);
    const NDArray out = NDArray::empty(device, elem, Dims{});
    const std::uint64_t all = (std::uint64_t{1} << shape.size()) - 1;
    device::Map map = part.map("fused total", arrays);
    const Scalar share[] = {1 / static_cast<double>(checked_size(shape))};
    if (total == Total::mean) map.numbers = share;
    map.compute = sums;
    map.value = [&](const std::vector<Expr>& loads, const std::vector<Expr>& numbers) {
      const Expr value = convert_value(part.values(loads)[0], sums);
      return numbers.empty() ? value : row_value(Op::multiply, {value, numbers[0]});
    };
    if (short_value) {
      device::grid_reduce(ReduceOp::sum, sums, out, map, shape, all);
    } else {
      const NDArray terms = NDArray::empty(device, sums, shape);
      device::grid_map(terms, map);
      device::grid_reduce(ReduceOp::sum, sums, out, terms, all);
    }
    return {out};
  }
  std::vector<NDArray> out;
  for (const Lazy& x : part.roots) out.push_back(NDArray::empty(device, x.elem(), shape));
  device::grid_map(
      out, part.map("fused function", arrays),
      [&](const std::vector<Expr>& loads, const std::vector<Expr>&) { return part.values(loads); });
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

/// The gradients of a result towards some of the inputs: of all inputs and the incoming one.
struct FusedFunction::Derivative {
  std::vector<std::size_t> which;  // inputs; none: zero almost everywhere
  std::optional<Part> part;
  bool is_short = true;
  Reads reads = 0;
  std::optional<FusedFunction> function;  // for gradients that have gradients

  std::vector<Tensor> operator()(const GradientCall& c, Total total) const;
};

struct FusedFunction::Shared {
  const char* name;
  int inputs;
  Total total;
  Part values;
  bool is_short = true;
  mutable ForkSafeMutex mutex;
  mutable std::map<std::pair<std::size_t, Reads>, std::shared_ptr<const Derivative>> derivatives;

  Shared(const std::string& of, std::vector<Lazy> graphs, int count, Total sum)
      : name(literal(of)), inputs(count), total(sum), values(std::move(graphs)) {}
  std::shared_ptr<const Derivative> derivative(std::size_t result, Reads wanted) const;
};

std::shared_ptr<const FusedFunction::Derivative> FusedFunction::Shared::derivative(
    std::size_t result, Reads wanted) const {
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Derivative>& known = derivatives[{result, wanted}];
  if (known) return known;
  auto made = std::make_shared<Derivative>();
  const Lazy& value = values.roots[result];
  std::vector<Lazy> leaves;
  std::vector<std::size_t> places;
  for (const Lazy& x : topological({value})) {
    if (x->kind != LazyKind::input || !(wanted >> x->index & 1)) continue;
    leaves.push_back(x);
    places.push_back(static_cast<std::size_t>(x->index));
  }
  std::vector<Lazy> graphs;
  const Lazy incoming = Lazy::input(inputs, value.elem(), Dims{});
  const std::vector<Lazy> found = weft::gradients({value}, {incoming}, leaves);
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (!found[k].defined()) continue;
    made->which.push_back(places[k]);
    graphs.push_back(found[k]);
  }
  if (!graphs.empty()) {
    made->part.emplace(graphs);
    for (const Expr& e : made->part->sample())
      made->is_short = made->is_short && ir::tree_size(e) <= kLongValue;
    for (int i : made->part->reads)
      if (i < inputs) made->reads |= Reads{1} << i;
    made->function = make(cat(name, "_gradient"), graphs, inputs + 1, Total::none);
    WEFT_CHECK(made->function, "the gradient of ", name, " is no kernel");
  }
  return known = std::move(made);
}

std::vector<Tensor> FusedFunction::Derivative::operator()(const GradientCall& c,
                                                          Total total) const {
  std::vector<Tensor> out(c.x.size());
  std::vector<const Dims*> shapes;
  for (const Tensor& x : c.x) shapes.push_back(&x.shape());
  const Dims shape = total == Total::none ? c.g.shape() : broadcast_of(shapes);
  const double share = 1 / static_cast<double>(std::max<std::int64_t>(checked_size(shape), 1));
  if (gradient_is_linked(c)) {
    std::vector<Tensor> all = c.x;
    all.push_back(total == Total::mean ? c.g * share : c.g);
    std::vector<Tensor> found = (*function)(all);
    for (std::size_t k = 0; k < which.size(); ++k) out[which[k]] = std::move(found[k]);
    return out;
  }
  std::vector<const NDArray*> arrays;
  for (int i : part->reads) {
    const auto at = static_cast<std::size_t>(i);
    arrays.push_back(at < c.x.size() ? &c.x[at].data() : &c.g.data());
  }
  std::vector<device::Operand> operands;
  for (std::size_t k : which) operands.push_back({c.x[k].shape(), c.x[k].elem()});
  device::Map map = part->map("fused gradients", arrays);
  const Scalar shares[] = {share};
  if (total == Total::mean) map.numbers = shares;
  map.compute = device::sum_elem(c.g.elem());
  const auto incoming = static_cast<int>(c.x.size());
  const auto found = device::grid_gradients(
      c.g.data().device(), map, shape, operands,
      [&](const std::vector<Expr>& loads, const std::vector<Expr>& numbers) {
        return part->values(loads, numbers, incoming);
      },
      is_short);
  for (std::size_t k = 0; k < which.size(); ++k) out[which[k]] = Tensor(found[k]);
  return out;
}

std::optional<FusedFunction> FusedFunction::make(const std::string& name, std::vector<Lazy> values,
                                                 int inputs, Total total) {
  if (static_cast<std::size_t>(inputs) + values.size() > kMostFusedArrays) return std::nullopt;
  for (const Lazy& x : topological(values)) {
    if (is_complex(x.elem()) || !is_elementwise(x)) return std::nullopt;
    if (x->kind != LazyKind::number) continue;
    if (x->number.large) return std::nullopt;
    alignas(16) char checked[16];
    write_scalar(x->number, arithmetic_elem(x.elem()), checked);  // refuses what does not fit
  }
  auto shared = std::make_shared<Shared>(name, std::move(values), inputs, total);
  if (shared->values.reads.empty()) return std::nullopt;
  try {
    for (const Expr& e : shared->values.sample())
      shared->is_short = shared->is_short && ir::tree_size(e) <= kLongValue;
  } catch (const RowUnsupported&) {
    return std::nullopt;
  }
  FusedFunction out;
  out.shared_ = std::move(shared);
  return out;
}

bool FusedFunction::suits(std::span<const NDArray* const> in) {
  const NDArray& first = *in[0];
  if (first.on_host() || !device::grid_of(first.device()).present()) return false;
  for (const NDArray* a : in) {
    if (a->size() == 0 || is_complex(a->elem()) || a->device().get() != first.device().get())
      return false;
  }
  return true;
}

std::vector<NDArray> FusedFunction::operator()(std::span<const NDArray* const> in) const {
  const Dims shape = shape_of(in);
  const Turned turned(in, shape);
  std::vector<NDArray> out =
      run(shared_->values, turned.arrays(), shared_->total, shared_->is_short);
  if (shared_->total == Total::none)
    for (NDArray& x : out) x = turned.back(x, shape);
  return out;
}

std::vector<Tensor> FusedFunction::operator()(const std::vector<Tensor>& in) const {
  std::vector<const NDArray*> arrays;
  Reads wanted = 0;
  for (std::size_t k = 0; k < in.size(); ++k) {
    arrays.push_back(&in[k].data());
    if (in[k].requires_grad() && grad_enabled()) wanted |= Reads{1} << k;
  }
  std::vector<NDArray> results = (*this)(arrays);
  std::vector<Tensor> out;
  for (std::size_t k = 0; k < results.size(); ++k) {
    std::shared_ptr<const Derivative> d;
    if (wanted && is_inexact(results[k].elem())) d = shared_->derivative(k, wanted);
    if (!d || d->which.empty()) {
      out.emplace_back(std::move(results[k]));
      continue;
    }
    out.push_back(make_tensor(
        shared_->name, std::move(results[k]), in,
        [d, total = shared_->total](const GradientCall& c) { return (*d)(c, total); }, d->reads));
  }
  return out;
}

}  // namespace weft
