// SPDX-License-Identifier: Apache-2.0
// Running the steps of a FusedPlan.

#include <algorithm>

#include "weft/array/collapse.h"
#include "weft/array/feed.h"
#include "weft/array/moments.h"
#include "weft/array/nest.h"
#include "weft/devices/grid.h"
#include "weft/devices/machine_integers.h"
#include "weft/devices/machine_program.h"
#include "weft/elements/row_ir.h"
#include "weft/fusion/fuse_host.h"
#include "weft/fusion/fuse_plan.h"
#include "weft/fusion/lazy_value.h"
#include "weft/target/backend.h"

namespace weft {

using ir::Expr;

Expr step_value(const Step& s, const std::vector<Expr>& loads, const std::vector<Expr>& numbers) {
  std::vector<const LazyNode*> nodes = s.leaves;
  std::vector<Expr> values = loads;
  nodes.insert(nodes.end(), s.numbers.begin(), s.numbers.end());
  values.insert(values.end(), numbers.begin(), numbers.end());
  return lazy_value(s.root, nodes, values);
}

namespace {

/// What a step's kernel on a grid computes of its arrays and of its numbers, which `numbers` gets.
device::Map map_of(std::string_view family, const Step& s, Operands arrays,
                   std::vector<Scalar>& numbers) {
  for (const LazyNode* n : s.numbers) numbers.push_back(n->number);
  device::Map map;
  map.family = family;
  map.key = s.serial;
  map.arrays = arrays;
  map.compute = s.elem;
  map.numbers = numbers;
  map.value = [&s](const std::vector<Expr>& loads, const std::vector<Expr>& given) {
    return step_value(s, loads, given);
  };
  return map;
}

}  // namespace

Ref<runtime::Function> FusedPlan::Impl::host_function(Step& s, Operands arrays,
                                                      const Ref<Device>& device,
                                                      const std::function<ir::PrimFunc()>& make) {
  const bool compact = std::all_of(arrays.begin(), arrays.end(),
                                   [](const NDArray* a) { return a->is_contiguous(); });
  if (compact && s.compact && s.compact_device == device) return s.compact;
  std::string key = device->info().name;
  for (const NDArray* a : arrays) {
    key += a->is_contiguous() ? std::string(";c") : cat(";", to_string(a->strides()));
  }
  Ref<runtime::Function>& function = s.built[key];
  if (!function) {
    try {
      auto kernel = ir::edit(make());
      kernel->attrs.push_back({"contract", Json(contract)});
      Ref<runtime::Module> module =
          build(ir::make_module(ir::PrimFunc(kernel)), device->info().name);
      sources.push_back(module->source());
      function = make_ref<runtime::Function>(module, "main", device);
    } catch (const RowUnsupported&) {
      internal_error(__FILE__, __LINE__, "every row of the table has a form in the IR",
                     cat("step %", s.out, " has none"));
    }
  }
  if (compact) s.compact = function, s.compact_device = device;
  return function;
}

namespace {
/// Steps over the shape of a compact array of what is left without the axes in the mask.
Dims compact_steps(const Dims& shape, std::uint64_t mask) {
  Dims steps = shape;
  std::int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    const bool gone = mask >> i & 1;
    steps[i] = gone ? 0 : step;
    if (!gone) step *= shape[i];
  }
  return steps;
}
}  // namespace

namespace {
/// The order of axes in which the operands of that shape lie, with or without gaps, where it is one
/// and not row-major; else empty.
std::vector<int> order_of(Operands arrays, const Dims& shape) {
  std::vector<int> order;
  for (const NDArray* a : arrays) {
    if (!(a->shape() == shape) || a->size() == 1) continue;
    const Dims& steps = a->strides();
    std::vector<int> own, longer;
    for (int i = 0; i < shape.size(); ++i) {
      own.push_back(i);
      if (shape[i] > 1) longer.push_back(i);
    }
    if (std::any_of(longer.begin(), longer.end(), [&](int i) { return steps[i] == 0; })) continue;
    std::stable_sort(longer.begin(), longer.end(),
                     [&](int i, int j) { return std::abs(steps[i]) > std::abs(steps[j]); });
    auto next = longer.begin();  // axes of one element stay where they are
    for (int& axis : own)
      if (shape[axis] > 1) axis = *next++;
    if (std::is_sorted(own.begin(), own.end()) || (!order.empty() && order != own)) return {};
    order = std::move(own);
  }
  return order;
}

/// Whether a value of a kernel has an element for each position of its shape.
bool is_whole(const Lazy& x, const Dims& shape) {
  return x->kind != LazyKind::reduce && x.shape() == shape;
}

Dims in_order(const Dims& dims, const std::vector<int>& order) {
  Dims out = dims;
  for (std::size_t i = 0; i < order.size(); ++i) out[static_cast<int>(i)] = dims[order[i]];
  return out;
}

/// An unset array whose axes lie in memory in that order; empty: row-major.
NDArray empty_in_order(const Ref<Device>& device, Elem elem, const Dims& shape,
                       const std::vector<int>& order) {
  const NDArray out = NDArray::empty(device, elem, in_order(shape, order));
  return order.empty() ? out : out.permute(inverse_order(order));
}

/// The axes of a kernel, in the order that results take from their operands.
void put_in_order(fuse::HostKernel& kernel, const std::vector<int>& order) {
  if (order.empty()) return;
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < order.size(); ++i) mask |= (kernel.mask >> order[i] & 1) << i;
  kernel.mask = mask;
  kernel.shape = in_order(kernel.shape, order);
  for (Dims& steps : kernel.out_steps) steps = in_order(steps, order);
  for (Dims& steps : kernel.steps) steps = in_order(steps, order);
}
}  // namespace

/// `kernel`: all but the operands' steps. `out`: those of the kernel's shape as order_of says, the
/// others compact.
void FusedPlan::Impl::run_on_host(Step& s, fuse::HostKernel kernel, std::span<NDArray> out,
                                  Operands arrays, const Ref<Device>& device) {
  auto make = [&] {
    const std::vector<int> order = order_of(arrays, kernel.shape);
    const Dims whole_steps =
        in_order(NDArray::compact_strides(in_order(kernel.shape, order)), inverse_order(order));
    for (std::size_t v = 0; v < kernel.values.size(); ++v) {
      if (!kernel.kept[v]) continue;
      kernel.out_steps.push_back(is_whole(kernel.values[v], kernel.shape)
                                     ? whole_steps
                                     : compact_steps(kernel.shape, kernel.mask));
    }
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      kernel.leaves.push_back(s.leaves[k]);
      kernel.steps.push_back(broadcast_strides(*arrays[k], kernel.shape));
    }
    put_in_order(kernel, order);
    return fuse::host_kernel(kernel);
  };
  std::vector<runtime::KernelArg> args;
  args.reserve(out.size() + arrays.size());
  auto add = [&](const NDArray& a) {
    args.push_back(runtime::KernelArg::pointer(
        a.handle().get(), static_cast<runtime::Bytes>(a.offset() * elem_bytes(a.elem()))));
  };
  for (const NDArray& a : out) add(a);
  for (const NDArray* a : arrays) add(*a);
  host_function(s, arrays, device, make)->launch(args).wait();
}

namespace {
/// Whether some value of the expression is of a type that the machine computes one operation at a
/// time, with a check of the values.
bool has_narrowed(const Lazy& x, const std::unordered_map<const LazyNode*, NDArray>& known,
                  const Ref<Device>& device) {
  if (narrows(device, x.elem())) return true;
  if (known.count(x.node()) || x->kind == LazyKind::number) return false;
  if (x->kind == LazyKind::elementwise && narrows(device, x->compute)) return true;
  return std::any_of(x->in.begin(), x->in.end(),
                     [&](const Lazy& i) { return has_narrowed(i, known, device); });
}
}  // namespace

/// The expression operation by operation.
NDArray FusedPlan::Impl::by_operations(const Lazy& x, const Ref<Device>& device,
                                       std::unordered_map<const LazyNode*, NDArray>& known) {
  if (auto it = known.find(x.node()); it != known.end()) return it->second;
  NDArray out;
  if (x->kind == LazyKind::number) {
    out = full(device, x.elem(), Dims{}, x->number);
  } else {
    std::vector<NDArray> in;
    std::vector<const NDArray*> operands;
    const bool all = std::all_of(x->in.begin(), x->in.end(),
                                 [](const Lazy& i) { return i->kind == LazyKind::number; });
    for (std::size_t k = 0; k < x->in.size(); ++k) {  // a number beside an array stays one
      const bool number =
          x->in[k]->kind == LazyKind::number && !all &&
          (x->kind == LazyKind::elementwise || (x->kind == LazyKind::where && k > 0));
      in.push_back(number ? NDArray() : by_operations(x->in[k], device, known));
    }
    for (const NDArray& a : in) operands.push_back(a.defined() ? &a : nullptr);
    out = run_eagerly(x, operands);
  }
  return known[x.node()] = out;
}

NDArray FusedPlan::Impl::run_brief(const Step& s, Operands arrays) {
  NDArray results[kMostOperations];
  std::size_t made = 0;
  for (const BriefOperation& operation : s.brief) {
    const NDArray* in[kMostOperands];
    for (std::size_t k = 0; k < operation.in.size(); ++k) {
      const int i = operation.in[k];
      in[k] = i == BriefOperation::kNumber ? nullptr
              : i < 0                      ? &results[static_cast<std::size_t>(-1 - i)]
                                           : arrays[static_cast<std::size_t>(i)];
    }
    results[made++] = run_eagerly(operation.node, {in, operation.in.size()});
  }
  return std::move(results[made - 1]);
}

NDArray FusedPlan::Impl::step_map(Step& s, Operands arrays, const Ref<Device>& device) {
  // Of complex numbers only a constant comes here, which the IR has no value for.
  if (is_complex(s.elem)) return full(device, s.elem, s.shape, s.root->number);
  if (is_brief(s)) return run_brief(s, arrays);
  const bool grid = device::grid_of(device).present();
  NDArray out = grid || !device->info().host_accessible
                    ? NDArray::empty(device, s.elem, s.shape)
                    : empty_in_order(device, s.elem, s.shape, order_of(arrays, s.shape));
  if (out.size() == 0) return out;
  if (grid) {
    std::vector<Scalar> numbers;
    device::grid_map(out, map_of("fused map", s, arrays, numbers));
    return out;
  }
  if (!out.on_host()) {
    std::unordered_map<const LazyNode*, NDArray> known;
    for (std::size_t k = 0; k < arrays.size(); ++k) known[s.leaves[k]] = *arrays[k];
    if (has_narrowed(s.root, known, device)) {
      assign(out, by_operations(s.root, device, known));
      return out;
    }
    Dims shape = s.shape;
    std::vector<Dims> strides = {out.strides()};
    for (const NDArray* a : arrays) strides.push_back(broadcast_strides(*a, s.shape));
    collapse_axes(shape, strides);
    DeviceProgram p;
    p.name = "compile";
    p.variant = cat("fused ", s.serial);
    for (std::size_t k = 0; k < arrays.size(); ++k)
      p.inputs.push_back({*arrays[k], strides[k + 1], false});
    p.value = [&](const DeviceScope& scope) {
      std::vector<Expr> loads;
      for (std::size_t k = 0; k < arrays.size(); ++k) loads.push_back(scope.load(k));
      return lazy_value(s.root, s.leaves, loads);
    };
    device_run(out, shape, strides[0], p);
    return out;
  }
  fuse::HostKernel kernel;
  kernel.shape = s.shape;
  kernel.values = {s.root};
  kernel.kept = {true};
  run_on_host(s, std::move(kernel), {&out, 1}, arrays, device);
  return out;
}

NDArray FusedPlan::Impl::step_reduce(Step& s, Operands arrays, const Ref<Device>& device) {
  const LazyNode& node = *s.node.node();
  NDArray out = NDArray::empty(device, s.elem, node.shape);
  if (out.size() == 0) return out;
  std::int64_t size = 1;
  for (std::int64_t d : s.shape) size *= d;
  auto reduced = [&](const NDArray& terms) {
    Axes axes{false, {}};
    for (int i = 0; i < s.shape.size(); ++i) {
      if (node.mask >> i & 1) axes.axes.push_back(i);
    }
    return reduce(node.reduction, terms, axes, false, s.elem).reshape(node.shape);
  };
  // Nothing to combine, or numbers alone: the eager reduction has the rule.
  if (arrays.empty()) {
    std::unordered_map<const LazyNode*, NDArray> known;
    return reduced(by_operations(s.root, device, known).broadcast_to(s.shape));
  }
  if (size == 0) return reduced(NDArray::empty(device, s.elem, s.shape));
  if (is_brief(s)) return reduced(run_brief(s, arrays));
  // Without a grid, devices have one way to reduce; the terms are made before.
  if (!out.on_host() && !device::grid_of(device).present())
    return reduced(step_map(s, arrays, device));
  if (device::grid_of(device).present()) {
    std::vector<Scalar> numbers;
    const device::Map map = map_of("fused", s, arrays, numbers);
    device::grid_reduce(node.reduction, s.elem, out, map, s.shape, node.mask);
    return out;
  }
  fuse::HostKernel kernel;
  kernel.shape = s.shape;
  kernel.mask = node.mask;
  kernel.values = {s.node};
  kernel.kept = {true};
  kernel.parts = fuse::host_reduce_parts(s.shape, node.mask);
  if (kernel.parts == 1) {
    run_on_host(s, std::move(kernel), {&out, 1}, arrays, device);
    return out;
  }
  const Elem sums = kernel_elem(s.elem);
  NDArray partial = NDArray::empty(device, sums, Dims{kernel.parts});
  run_on_host(s, std::move(kernel), {&partial, 1}, arrays, device);
  return reduce(node.reduction, partial, {}, false, sums).reshape(node.shape).astype(s.elem);
}

NDArray FusedPlan::Impl::run_eagerly(const Lazy& x, Operands arrays) {
  auto arg = [&](std::size_t k) { return arrays[k] ? Arg(*arrays[k]) : Arg(x->in[k]->number); };
  switch (x->kind) {
    case LazyKind::cast: return arrays[0]->astype(x.elem());
    case LazyKind::broadcast: return arrays[0]->broadcast_to(x.shape()).copy();
    case LazyKind::where: {
      NDArray out = weft::where(*arrays[0], arg(1), arg(2));
      return out.elem() == x.elem() ? out : out.astype(x.elem());
    }
    case LazyKind::rows:
      if (x->kernel == RowKernel::logsumexp)
        return weft::logsumexp(*arrays[0], Axes{false, {-1}}, true);
      return apply_rows(x->kernel, arrays, x->eps);
    case LazyKind::variance: {
      const Moment moment = x->root ? Moment::deviation : Moment::variance;
      NDArray out = host_moments(moment, *arrays[0], x->mask, x->eps);
      return out.shape() == x.shape() ? out : out.reshape(x.shape());
    }
    case LazyKind::reduce: {
      Axes axes{false, {}};
      for (int i = 0; i < arrays[0]->ndim(); ++i) {
        if (x->mask >> i & 1) axes.axes.push_back(i);
      }
      NDArray out = reduce(x->reduction, *arrays[0], axes, false, x.elem());
      return out.shape() == x.shape() ? out : out.reshape(x.shape());
    }
    case LazyKind::matmul: return weft::matmul(*arrays[0], *arrays[1]);
    default: return x->in.size() == 1 ? apply(x->op, arg(0)) : apply(x->op, arg(0), arg(1));
  }
}

NDArray FusedPlan::run_alone(std::span<const NDArray* const> inputs) {
  if (impl_->few) {
    const auto own = static_cast<std::size_t>(impl_->inputs);
    if (NDArray out = impl_->few->run_few(inputs.first(own)); out.defined()) return out;
  }
  const Step& s = impl_->steps[0];
  // Operation by operation each value goes through memory: of many elements the kernel is faster.
  if (s.kind == StepKind::map && !Impl::is_brief(s)) return std::move(run(inputs)[0]);
  const NDArray* in[kMostOperands];
  std::size_t n = 0;
  for (const int slot : s.in) in[n++] = slot < 0 ? nullptr : inputs[static_cast<std::size_t>(slot)];
  return s.kind == StepKind::map ? Impl::run_brief(s, {in, n}) : Impl::run_eagerly(s.node, {in, n});
}

std::vector<NDArray> FusedPlan::Impl::step_rows(Step& s, Operands operands,
                                                const Ref<Device>& device) {
  const RowKernelStep& rows = *s.rows;
  std::vector<NDArray> out;
  if (device::grid_of(device).present()) {
    for (std::size_t k = 0; k < rows.shapes.size(); ++k)
      out.push_back(NDArray::empty(device, rows.elems[k], rows.shapes[k]));
    std::vector<NDArray> in;
    for (const NDArray* a : operands) in.push_back(a->is_contiguous() ? *a : a->copy());
    device::run_fused_rows(rows.program, in, out);
    return out;
  }
  fuse::HostKernel kernel;
  kernel.shape = s.shape;
  kernel.mask = rows.mask;
  kernel.values = rows.values;
  kernel.kept = rows.kept;
  const std::vector<int> order = order_of(operands, s.shape);
  for (std::size_t v = 0; v < rows.values.size(); ++v) {
    if (!rows.kept[v]) continue;
    const std::size_t k = out.size();
    out.push_back(empty_in_order(device, rows.elems[k], rows.shapes[k],
                                 is_whole(rows.values[v], s.shape) ? order : std::vector<int>()));
  }
  run_on_host(s, std::move(kernel), out, operands, device);
  return out;
}

std::vector<NDArray> FusedPlan::run(std::span<const NDArray* const> inputs) {
  Impl& p = *impl_;
  WEFT_CHECK(static_cast<int>(inputs.size()) >= p.inputs, "a plan of ", p.inputs, " inputs got ",
             inputs.size());
  WEFT_CHECK(!inputs.empty(), "a plan without inputs has no device");
  const Ref<Device>& device = inputs[0]->device();
  for (std::size_t k = 1; k < inputs.size(); ++k)
    check_same_device(*inputs[0], *inputs[k], "compile");
  std::vector<NDArray> made(static_cast<std::size_t>(p.count - p.inputs));
  const auto place = [&](int slot) -> NDArray& {
    return made[static_cast<std::size_t>(slot - p.inputs)];
  };
  const auto array = [&](int slot) -> const NDArray& {
    return slot < p.inputs ? *inputs[static_cast<std::size_t>(slot)] : place(slot);
  };
  std::vector<const NDArray*> in;
  in.reserve(kMostInputs);
  for (Step& s : p.steps) {
    in.clear();
    for (const int i : s.in) in.push_back(i < 0 ? nullptr : &array(i));
    if (s.kind == StepKind::rows) {
      const std::vector<NDArray> results = p.step_rows(s, in, device);
      for (std::size_t k = 0; k < results.size(); ++k) place(s.rows->out[k]) = results[k];
      continue;
    }
    NDArray& out = place(s.out);
    switch (s.kind) {
      case StepKind::map: out = p.step_map(s, in, device); break;
      case StepKind::reduce: out = p.step_reduce(s, in, device); break;
      case StepKind::reshape: out = in[0]->reshape(s.node.shape()); break;
      case StepKind::permute: out = in[0]->permute(s.node->axes); break;
      case StepKind::matmul:
      case StepKind::eager: out = Impl::run_eagerly(s.node, in); break;
      case StepKind::rows: break;
    }
  }
  std::vector<NDArray> result;
  result.reserve(p.output_slots.size());
  for (const int slot : p.output_slots) result.push_back(array(slot));
  return result;
}

}  // namespace weft
