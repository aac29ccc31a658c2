// SPDX-License-Identifier: Apache-2.0

#include "weft/fusion/fuse.h"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include "weft/array/collapse.h"
#include "weft/array/feed.h"
#include "weft/array/moments.h"
#include "weft/array/nest.h"
#include "weft/devices/grid.h"
#include "weft/devices/machine_integers.h"
#include "weft/devices/machine_program.h"
#include "weft/elements/row_ir.h"
#include "weft/fusion/fuse_host.h"
#include "weft/fusion/fuse_steps.h"
#include "weft/target/backend.h"

namespace weft {

using ir::Expr;

namespace {

constexpr std::size_t kMostInputs = 11;
constexpr std::size_t kMostOperands = 4;    // of an eager operation
constexpr std::size_t kMostOperations = 3;  // that take the place of a kernel
using Operands = std::span<const NDArray* const>;

std::uint32_t next_serial() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

bool has_complex(const Lazy& x) {
  bool found = is_complex(x.elem());
  for (const Lazy& i : x->in) found |= is_complex(i.elem());
  return found;
}

/// Element-wise nodes that the eager kernels do better, or that the IR has no value for: complex
/// numbers, powers of integers, and on the host what has no vector form in compiled code.
bool stays_eager(const Lazy& x, bool grid) {
  if (has_complex(x)) return x->kind != LazyKind::number;
  if (x->kind != LazyKind::row) return false;
  if (x->op == Op::pow && !is_inexact(x->compute)) return true;
  return !grid && (x->op == Op::remainder || x->op == Op::floor_divide || x->op == Op::nextafter);
}

/// The IR value of an expression, given its leaves' values (loaded, of their own types).
class Writer {
 public:
  Writer(const std::vector<const LazyNode*>& leaves, const std::vector<Expr>& values) {
    for (std::size_t i = 0; i < leaves.size(); ++i) known_[leaves[i]] = values[i];
  }
  Expr value(const Lazy& x) {
    if (auto it = known_.find(x.node()); it != known_.end()) return it->second;
    Expr out;
    switch (x->kind) {
      case LazyKind::number:
        out = x->number.kind <= Kind::integer && !is_inexact(x.elem())
                  ? ir::make_int(x->number.i, dtype_of(x.elem()))
                  : ir::make_const(x->number.z.real(), dtype_of(x.elem()));
        break;
      case LazyKind::spread: return value(x->in[0]);
      case LazyKind::cast: out = convert_value(value(x->in[0]), x.elem()); break;
      case LazyKind::where:
        out = ir::select(value(x->in[0]), value(x->in[1]), value(x->in[2]));
        break;
      default: {
        std::vector<Expr> in;
        for (const Lazy& i : x->in) in.push_back(convert_value(value(i), x->compute));
        out = row_value(x->op, in);
      }
    }
    known_[x.node()] = out;
    return out;
  }

 private:
  std::unordered_map<const LazyNode*, Expr> known_;
};

}  // namespace

std::vector<Expr> lazy_values(const std::vector<Lazy>& roots,
                              const std::vector<const LazyNode*>& leaves,
                              const std::vector<Expr>& values) {
  Writer writer(leaves, values);
  std::vector<Expr> out;
  for (const Lazy& x : roots) out.push_back(writer.value(x));
  return out;
}

Expr lazy_value(const Lazy& x, const std::vector<const LazyNode*>& leaves,
                const std::vector<Expr>& values) {
  return Writer(leaves, values).value(x);
}

namespace {

/// Whether kernels take the number as an argument: shapes make such numbers (a mean's count), and
/// kernels of other shapes differ in nothing else. Zero and powers of two stay in the program,
/// which computes with them for less.
bool is_argument(const Lazy& x) {
  if (x->kind != LazyKind::number || x.elem() != Elem::float32) return false;
  const double v = x->number.z.real();
  int exponent = 0;
  return std::isfinite(v) && v != 0 && std::abs(std::frexp(v, &exponent)) != 0.5;
}
bool is_arithmetic(const Lazy& x) {
  return x->kind == LazyKind::row && (x->op == Op::add || x->op == Op::subtract ||
                                      x->op == Op::multiply || x->op == Op::divide);
}

/// The numbers beside values that a step adds, multiplies or divides.
void collect_numbers(const Lazy& x, Step& step, std::set<const LazyNode*>& seen) {
  constexpr std::size_t kMost = 8;
  if (!seen.insert(x.node()).second ||
      std::find(step.leaves.begin(), step.leaves.end(), x.node()) != step.leaves.end())
    return;
  for (const Lazy& i : x->in) {
    const Lazy* number = &i;
    while ((*number)->kind == LazyKind::spread) number = &(*number)->in[0];
    if (is_arithmetic(x) && is_argument(*number)) {
      if (step.numbers.size() < kMost && seen.insert(number->node()).second)
        step.numbers.push_back(number->node());
    } else {
      collect_numbers(i, step, seen);
    }
  }
}

/// What a step's kernel computes of its arrays and numbers.
void set_value(device::Map& map, const Step& s, std::vector<Scalar>& numbers) {
  for (const LazyNode* n : s.numbers) numbers.push_back(n->number);
  map.numbers = numbers;
  map.value = [&s](const std::vector<Expr>& loads, const std::vector<Expr>& given) {
    return step_value(s, loads, given);
  };
}

}  // namespace

Expr step_value(const Step& s, const std::vector<Expr>& loads, const std::vector<Expr>& numbers) {
  std::vector<const LazyNode*> nodes = s.leaves;
  std::vector<Expr> values = loads;
  nodes.insert(nodes.end(), s.numbers.begin(), s.numbers.end());
  values.insert(values.end(), numbers.begin(), numbers.end());
  return Writer(nodes, values).value(s.root);
}

struct FusedPlan::Impl {
  std::vector<Lazy> outputs;
  std::vector<int> output_slots;
  std::vector<Step> steps;
  std::unordered_map<const LazyNode*, int> slots;  // materialised nodes
  int inputs = 0, count = 0;
  bool grid = false, host = true;
  std::unordered_map<const LazyNode*, int> users;
  std::vector<std::string> sources;

  static NDArray by_operations(const Lazy& x, const Ref<Device>& device,
                               std::unordered_map<const LazyNode*, NDArray>& known);
  bool fuses(const Lazy& x) const {
    switch (x->kind) {
      case LazyKind::row:
      case LazyKind::where:
      case LazyKind::cast:
      case LazyKind::spread:
      case LazyKind::number: return !stays_eager(x, grid);
      default: return false;
    }
  }

  /// Is it an array before the step that reads it?
  bool is_leaf(const Lazy& x) const {
    return x->kind != LazyKind::number && (!fuses(x) || slots.count(x.node()) > 0);
  }
  /// One operation alone: the eager kernel is made for it, at every size.
  bool is_single(const Lazy& x) const {
    if (x->kind == LazyKind::cast) return is_leaf(x->in[0]);
    if (x->kind == LazyKind::where && !is_leaf(x->in[0])) return false;
    if (x->kind != LazyKind::row && x->kind != LazyKind::where) return false;
    return std::all_of(x->in.begin(), x->in.end(),
                       [&](const Lazy& i) { return i->kind == LazyKind::number || is_leaf(i); }) &&
           std::any_of(x->in.begin(), x->in.end(), [&](const Lazy& i) { return is_leaf(i); });
  }

  int materialise(const Lazy& x) {
    if (auto it = slots.find(x.node()); it != slots.end()) return it->second;
    Step step;
    step.elem = x.elem();
    step.node = x;
    step.shape = x.shape();
    switch (x->kind) {
      case LazyKind::reshape:
      case LazyKind::permute:
      case LazyKind::matmul:
        step.kind = x->kind == LazyKind::reshape   ? StepKind::reshape
                    : x->kind == LazyKind::permute ? StepKind::permute
                                                   : StepKind::matmul;
        for (const Lazy& i : x->in) step.in.push_back(materialise(i));
        break;
      case LazyKind::rows:
      case LazyKind::variance:
        step.kind = StepKind::eager;
        for (const Lazy& i : x->in) step.in.push_back(materialise(i));
        break;
      case LazyKind::reduce:
        step.single = host && is_leaf(x->in[0]) && !has_complex(x);
        if (has_complex(x) || step.single) {
          step.kind = StepKind::eager;
          step.in.push_back(materialise(x->in[0]));
          break;
        }
        step.kind = StepKind::reduce;
        step.root = x->in[0];
        step.shape = x->in[0].shape();
        collect(step.root, step);
        break;
      default:
        step.single = host && !stays_eager(x, grid) && is_single(x);
        if (stays_eager(x, grid) || step.single) {
          step.kind = StepKind::eager;
          for (const Lazy& i : x->in) {
            const bool number = i->kind == LazyKind::number &&
                                (x->kind == LazyKind::row || x->kind == LazyKind::where);
            step.in.push_back(number ? -1 : materialise(i));
          }
          break;
        }
        step.root = x;
        collect(x, step);
    }
    if (std::set<const LazyNode*> seen; grid && step.root.defined() && step.elem == Elem::float32)
      collect_numbers(step.root, step, seen);
    step.serial = next_serial();
    step.out = count++;
    slots[x.node()] = step.out;
    int out = step.out;
    steps.push_back(std::move(step));
    return out;
  }

  /// Size of a node's value as a kernel writes it. Kernels of the host name what is used twice. For
  /// other devices a value is a tree: rows that compare name their operands several times, and a
  /// node with several users is written for each.
  std::unordered_map<const LazyNode*, double> sizes;
  double size_of(const Lazy& x) {
    if (!fuses(x) || slots.count(x.node())) return 1;
    if (auto it = sizes.find(x.node()); it != sizes.end()) return it->second;
    double size = 1;
    for (const Lazy& i : x->in) {
      const double part = size_of(i);
      size += !grid && users[i.node()] > 1 ? 1 : part;
    }
    if (grid && x->kind == LazyKind::row) {
      switch (x->op) {
        case Op::maximum:
        case Op::minimum:
        case Op::sign:
        case Op::relu:
        case Op::square: size *= 3; break;
        case Op::logaddexp:
        case Op::remainder:
        case Op::floor_divide: size *= 8; break;
        default: break;
      }
    }
    // A value that would be written out too often becomes an array of its own.
    constexpr double kMost = 600;
    if (size > kMost) {
      size = 1;
      cuts.insert(x.node());
    }
    return sizes[x.node()] = size;
  }
  std::set<const LazyNode*> cuts;
  bool contract = false;

  /// Leaves of the fused expression x: what is not fused itself. A value that another step has made
  /// already is read, not computed again.
  std::vector<Lazy> leaves_of(const Lazy& x) {
    std::set<const LazyNode*> seen;
    std::vector<Lazy> stack = {x}, leaves;
    while (!stack.empty()) {
      Lazy at = stack.back();
      stack.pop_back();
      if (!seen.insert(at.node()).second) continue;
      bool made =
          at.node() != x.node() && (slots.count(at.node()) > 0 || cuts.count(at.node()) > 0);
      if (fuses(at) && !made) {
        for (const Lazy& i : at->in) stack.push_back(i);
      } else {
        leaves.push_back(at);
      }
    }
    return leaves;
  }

  /// Makes the part of x that reads most arrays, as far as a kernel can, an array of its own.
  void cut_widest(const Lazy& x) {
    Lazy widest;
    std::size_t most = 1;
    for (const Lazy& node : topological({x})) {
      if (node.node() == x.node() || !fuses(node) || slots.count(node.node()) ||
          cuts.count(node.node()))
        continue;
      const std::size_t n = leaves_of(node).size();
      if (n > most && n <= kMostInputs) widest = node, most = n;
    }
    WEFT_CHECK(widest.defined(), "a value of more than ", kMostInputs, " arrays has no parts");
    cuts.insert(widest.node());
  }

  void collect(const Lazy& x, Step& step) {
    for (const Lazy& node : topological({x})) size_of(node);
    std::vector<Lazy> leaves = leaves_of(x);
    while (leaves.size() > kMostInputs) {
      cut_widest(x);
      leaves = leaves_of(x);
    }
    for (const Lazy& leaf : leaves) {
      step.in.push_back(materialise(leaf));
      step.leaves.push_back(leaf.node());
    }
    if (host && !contract) set_brief(x, step);
  }

  /// Launching a kernel takes as long as three operations on a few elements.
  static void set_brief(const Lazy& x, Step& step) {
    std::unordered_map<const LazyNode*, int> place;
    for (std::size_t k = 0; k < step.leaves.size(); ++k)
      place[step.leaves[k]] = static_cast<int>(k);
    std::vector<BriefOperation> all;
    std::vector<std::pair<Lazy, std::size_t>> stack = {{x, 0}};
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      const bool known = place.count(at.node()) > 0;
      if (!known && at->kind != LazyKind::row && at->kind != LazyKind::where &&
          at->kind != LazyKind::cast)
        return;
      if (!known && next < at->in.size()) {
        const Lazy input = at->in[next++];
        const bool number =
            input->kind == LazyKind::number &&
            (at->kind == LazyKind::row || (at->kind == LazyKind::where && next > 1));
        if (!number) stack.emplace_back(input, 0);
        continue;
      }
      if (!known) {
        BriefOperation operation{at, {}};
        for (const Lazy& i : at->in)
          operation.in.push_back(i->kind == LazyKind::number ? BriefOperation::kNumber
                                                             : place.at(i.node()));
        if (std::all_of(operation.in.begin(), operation.in.end(),
                        [](int i) { return i == BriefOperation::kNumber; }) ||
            all.size() == kMostOperations)
          return;
        place[at.node()] = -1 - static_cast<int>(all.size());
        all.push_back(std::move(operation));
      }
      stack.pop_back();
    }
    step.brief = std::move(all);
  }

  /// `arrays`: null where the operand is a number.
  static NDArray run_eagerly(const Lazy& x, Operands arrays);
  static bool is_brief(const Step& s) {
    constexpr std::int64_t kMost = 1024;
    std::int64_t size = 1;
    for (const std::int64_t extent : s.shape) size *= extent;
    return !s.brief.empty() && size <= kMost;
  }
  static NDArray run_brief(const Step& s, Operands arrays);
  NDArray step_map(Step& s, Operands arrays, const Ref<Device>& device);
  NDArray step_reduce(Step& s, Operands arrays, const Ref<Device>& device);
  Ref<runtime::Function> host_function(Step& s, const std::string& layout, Operands arrays,
                                       const Ref<Device>& device,
                                       const std::function<ir::PrimFunc()>& make);
};

FusedPlan::FusedPlan(std::vector<Lazy> outputs, bool contract, const Ref<Device>& device)
    : impl_(std::make_unique<Impl>()) {
  impl_->contract = contract;
  impl_->grid = device && device::grid_of(device).present();
  impl_->host = !device || device->info().host_accessible;
  impl_->outputs = std::move(outputs);
  std::vector<Lazy> order = topological(impl_->outputs);
  for (const Lazy& x : order) {
    if (x->kind == LazyKind::input) impl_->inputs = std::max(impl_->inputs, x->index + 1);
    for (const Lazy& i : x->in) ++impl_->users[i.node()];
  }
  impl_->count = impl_->inputs;
  for (const Lazy& x : order) {
    if (x->kind == LazyKind::input) impl_->slots[x.node()] = x->index;
  }
  for (const Lazy& x : impl_->outputs) impl_->output_slots.push_back(impl_->materialise(x));
  if (impl_->grid) impl_->steps = join_rows(std::move(impl_->steps), impl_->output_slots, device);
}
FusedPlan::~FusedPlan() = default;
FusedPlan::FusedPlan(FusedPlan&&) noexcept = default;

int FusedPlan::kernels() const {
  int n = 0;
  for (const Step& s : impl_->steps)
    n += s.kind == StepKind::map || s.kind == StepKind::reduce || s.kind == StepKind::rows ||
         s.single;
  return n;
}
bool FusedPlan::joins() const {
  return std::any_of(impl_->steps.begin(), impl_->steps.end(), [](const Step& s) {
    return s.kind == StepKind::map || s.kind == StepKind::reduce || s.kind == StepKind::rows;
  });
}
int FusedPlan::steps() const {
  int n = 0;
  for (const Step& s : impl_->steps)
    n += s.kind != StepKind::reshape && s.kind != StepKind::permute;
  return n;
}

std::string FusedPlan::describe() const {
  static constexpr std::string_view names[] = {"fused map", "fused reduction", "reshape",
                                               "permute",   "matmul",          "eager"};
  std::string out;
  for (const Step& s : impl_->steps) {
    if (s.kind == StepKind::rows) {
      auto slots = [](const std::vector<int>& all) {
        std::vector<std::string> texts;
        for (int i : all) texts.push_back(cat("%", i));
        return join(texts);
      };
      const device::FusedRows& p = s.rows->program;
      out += cat(slots(s.rows->out), " = ", p.steps.size(), " steps over ", p.rows, " rows of ",
                 p.columns, " (", slots(s.in), ")\n");
      continue;
    }
    out += cat("%", s.out, " = ", names[static_cast<int>(s.kind)]);
    if (s.kind == StepKind::reduce) out += cat(" ", info(s.node->reduction).name);
    if (s.kind == StepKind::eager && s.node->kind == LazyKind::row)
      out += cat(" ", info(s.node->op).name);
    if (s.node->kind == LazyKind::rows) out += cat(" ", name_of(s.node->kernel));
    if (s.node->kind == LazyKind::variance) out += s.node->root ? " deviation" : " variance";
    std::vector<std::string> from;
    for (int i : s.in) from.push_back(i < 0 ? "number" : cat("%", i));
    out += cat(" (", join(from), ")");
    if (s.kind == StepKind::map || s.kind == StepKind::reduce) {
      std::vector<std::string> rows;
      for (const Lazy& x : topological({s.root})) {
        bool leaf = std::find(s.leaves.begin(), s.leaves.end(), x.node()) != s.leaves.end();
        if (!leaf && x->kind == LazyKind::row) rows.push_back(std::string(info(x->op).name));
      }
      if (!rows.empty()) out += cat(": ", join(rows));
    }
    out += cat(" -> ", name_of(s.node.elem()), to_string(s.node.shape()), "\n");
  }
  return out;
}

std::string FusedPlan::source() const { return join(impl_->sources, "\n"); }

Ref<runtime::Function> FusedPlan::Impl::host_function(Step& s, const std::string& layout,
                                                      Operands arrays, const Ref<Device>& device,
                                                      const std::function<ir::PrimFunc()>& make) {
  const bool compact = std::all_of(arrays.begin(), arrays.end(),
                                   [](const NDArray* a) { return a->is_contiguous(); });
  if (compact && s.compact && s.compact_device == device) return s.compact;
  std::string key = cat(device->info().name, layout);
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
NDArray launch(const Ref<runtime::Function>& function, const NDArray& out, Operands arrays) {
  std::vector<runtime::KernelArg> args;
  args.reserve(arrays.size() + 1);
  auto add = [&](const NDArray& a) {
    args.push_back(runtime::KernelArg::pointer(
        a.handle().get(), static_cast<runtime::Bytes>(a.offset() * elem_bytes(a.elem()))));
  };
  add(out);
  for (const NDArray* a : arrays) add(*a);
  function->launch(args).wait();
  return out;
}
}  // namespace

namespace {
/// Whether some value of the expression is of a type that the machine computes one operation at a
/// time, with a check of the values.
bool has_narrowed(const Lazy& x, const std::unordered_map<const LazyNode*, NDArray>& known,
                  const Ref<Device>& device) {
  if (narrows(device, x.elem())) return true;
  if (known.count(x.node()) || x->kind == LazyKind::number) return false;
  if (x->kind == LazyKind::row && narrows(device, x->compute)) return true;
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
      const bool number = x->in[k]->kind == LazyKind::number && !all &&
                          (x->kind == LazyKind::row || (x->kind == LazyKind::where && k > 0));
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
  NDArray out = NDArray::empty(device, s.elem, s.shape);
  if (out.size() == 0) return out;
  if (device::grid_of(device).present()) {
    std::vector<const NDArray*> in;
    for (const NDArray* a : arrays) in.push_back(a);
    device::Map map;
    map.family = "fused map";
    map.key = s.serial;
    map.arrays = in;
    map.compute = s.elem;
    std::vector<Scalar> numbers;
    set_value(map, s, numbers);
    device::grid_map(out, map);
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
      return Writer(s.leaves, loads).value(s.root);
    };
    device_run(out, shape, strides[0], p);
    return out;
  }
  auto make = [&] {
    fuse::HostMap map;
    map.shape = s.shape;
    map.steps = {out.strides()};
    map.elems = {s.elem};
    for (const NDArray* a : arrays) {
      map.steps.push_back(broadcast_strides(*a, s.shape));
      map.elems.push_back(a->elem());
    }
    map.value = [&](const std::vector<Expr>& loads) {
      return convert_value(Writer(s.leaves, loads).value(s.root), s.elem);
    };
    return fuse::host_map(std::move(map));
  };
  return launch(host_function(s, "", arrays, device, make), out, arrays);
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
  // Nothing to combine, or a number everywhere: the eager reduction has the rule.
  if (arrays.empty()) return reduced(full(device, s.elem, s.shape, s.root->number));
  if (size == 0) return reduced(NDArray::empty(device, s.elem, s.shape));
  if (is_brief(s)) return reduced(run_brief(s, arrays));
  // Without a grid, devices have one way to reduce; the terms are made before.
  if (!out.on_host() && !device::grid_of(device).present())
    return reduced(step_map(s, arrays, device));
  if (device::grid_of(device).present()) {
    std::vector<const NDArray*> in;
    for (const NDArray* a : arrays) in.push_back(a);
    device::Map map;
    map.family = "fused";
    map.key = s.serial;
    map.arrays = in;
    map.compute = s.elem;
    std::vector<Scalar> numbers;
    set_value(map, s, numbers);
    device::grid_reduce(node.reduction, s.elem, out, map, s.shape, node.mask);
    return out;
  }
  // 16-bit floats are combined in float32 and rounded once.
  const Elem kernel = kernel_elem(s.elem);
  const std::int64_t parts = fuse::host_reduce_parts(s.shape, node.mask);
  auto make = [&] {
    fuse::HostReduce r;
    r.op = node.reduction;
    r.kernel = kernel;
    r.shape = s.shape;
    r.mask = node.mask;
    r.parts = parts;
    for (const NDArray* a : arrays) {
      r.steps.push_back(broadcast_strides(*a, s.shape));
      r.elems.push_back(a->elem());
    }
    r.value = [&](const std::vector<Expr>& loads) {
      return convert_value(Writer(s.leaves, loads).value(s.root), kernel);
    };
    return fuse::host_reduce(std::move(r));
  };
  Ref<runtime::Function> function = host_function(s, " r", arrays, device, make);
  if (parts == 1 && kernel == s.elem) return launch(function, out, arrays);
  if (parts == 1)
    return launch(function, NDArray::empty(device, kernel, node.shape), arrays).astype(s.elem);
  NDArray partial = launch(function, NDArray::empty(device, kernel, Dims{parts}), arrays);
  return reduce(node.reduction, partial, {}, false, kernel).reshape(node.shape).astype(s.elem);
}

NDArray FusedPlan::Impl::run_eagerly(const Lazy& x, Operands arrays) {
  auto arg = [&](std::size_t k) { return arrays[k] ? Arg(*arrays[k]) : Arg(x->in[k]->number); };
  switch (x->kind) {
    case LazyKind::cast: return arrays[0]->astype(x.elem());
    case LazyKind::spread: return arrays[0]->broadcast_to(x.shape());
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

bool FusedPlan::alone() const {
  if (impl_->steps.size() != 1 || impl_->output_slots.size() != 1) return false;
  const Step& s = impl_->steps[0];
  return s.in.size() <= kMostOperands && impl_->output_slots[0] == s.out &&
         (s.kind == StepKind::eager || s.kind == StepKind::matmul ||
          (s.kind == StepKind::map && !is_complex(s.elem) && Impl::is_brief(s)));
}

bool FusedPlan::eager() const {
  const std::vector<Step>& steps = impl_->steps;
  return !steps.empty() && std::all_of(steps.begin(), steps.end(), [](const Step& s) {
    return s.kind == StepKind::eager || s.kind == StepKind::matmul;
  });
}

LoneRow FusedPlan::lone_row() const {
  return alone() ? weft::lone_row(impl_->steps[0]) : LoneRow{};
}

NDArray FusedPlan::run_alone(std::span<const NDArray* const> inputs) {
  const Step& s = impl_->steps[0];
  const NDArray* in[kMostOperands];
  std::size_t n = 0;
  for (const int slot : s.in) in[n++] = slot < 0 ? nullptr : inputs[static_cast<std::size_t>(slot)];
  return s.kind == StepKind::map ? Impl::run_brief(s, {in, n}) : Impl::run_eagerly(s.node, {in, n});
}

bool FusedPlan::brief() const {
  const std::vector<Step>& steps = impl_->steps;
  return !steps.empty() && std::all_of(steps.begin(), steps.end(), [](const Step& s) {
    const bool kernel = s.kind == StepKind::map || s.kind == StepKind::reduce;
    return s.kind != StepKind::rows && (!kernel || Impl::is_brief(s));
  });
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
      const std::vector<NDArray> results = step_rows(*s.rows, in, device);
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
