// SPDX-License-Identifier: Apache-2.0

#include "weft/fusion/fuse.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "weft/devices/grid.h"
#include "weft/fusion/fuse_plan.h"
#include "weft/fusion/lazy_value.h"

namespace weft {

using ir::Expr;

namespace {

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
  if (x->kind != LazyKind::elementwise) return false;
  if (x->op == Op::pow && !is_inexact(x->compute)) return true;
  return !grid && (x->op == Op::remainder || x->op == Op::floor_divide || x->op == Op::nextafter);
}

/// Terms that are converted to the reduction's type alone (truth values of `any` and `all`, wider
/// integers of sums): the eager reduction reads and converts the elements itself, a piece at a
/// time, and those of truth values end at the first one that decides.
bool converts_itself(const Lazy& x) {
  const Lazy& terms = x->in[0];
  const bool truth = info(x->reduction).rule == Rule::boolean;
  return terms->kind == LazyKind::cast && !has_complex(terms) &&
         (truth || (terms.elem() == x.elem() && arithmetic_elem(x.elem()) == x.elem()));
}

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
  return x->kind == LazyKind::elementwise && (x->op == Op::add || x->op == Op::subtract ||
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
    while ((*number)->kind == LazyKind::broadcast) number = &(*number)->in[0];
    if (is_arithmetic(x) && is_argument(*number)) {
      if (step.numbers.size() < kMost && seen.insert(number->node()).second)
        step.numbers.push_back(number->node());
    } else {
      collect_numbers(i, step, seen);
    }
  }
}

/// Launching a kernel takes as long as three operations on a few elements.
void set_brief(const Lazy& x, Step& step) {
  std::unordered_map<const LazyNode*, int> place;
  for (std::size_t k = 0; k < step.leaves.size(); ++k) place[step.leaves[k]] = static_cast<int>(k);
  std::vector<BriefOperation> all;
  std::vector<std::pair<Lazy, std::size_t>> stack = {{x, 0}};
  while (!stack.empty()) {
    auto& [at, next] = stack.back();
    const bool known = place.count(at.node()) > 0;
    if (!known && at->kind != LazyKind::elementwise && at->kind != LazyKind::where &&
        at->kind != LazyKind::cast)
      return;
    if (!known && next < at->in.size()) {
      const Lazy input = at->in[next++];
      const bool number =
          input->kind == LazyKind::number &&
          (at->kind == LazyKind::elementwise || (at->kind == LazyKind::where && next > 1));
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

}  // namespace

bool FusedPlan::Impl::fuses(const Lazy& x) const {
  switch (x->kind) {
    case LazyKind::elementwise:
    case LazyKind::where:
    case LazyKind::cast:
    case LazyKind::broadcast:
    case LazyKind::number: return !stays_eager(x, grid);
    default: return false;
  }
}

bool FusedPlan::Impl::is_leaf(const Lazy& x) const {
  return x->kind != LazyKind::number && (!fuses(x) || slots.count(x.node()) > 0);
}
bool FusedPlan::Impl::is_single(const Lazy& x) const {
  if (x->kind == LazyKind::cast || x->kind == LazyKind::broadcast) return is_leaf(x->in[0]);
  if (x->kind == LazyKind::where && !is_leaf(x->in[0])) return false;
  if (x->kind != LazyKind::elementwise && x->kind != LazyKind::where) return false;
  return std::all_of(x->in.begin(), x->in.end(),
                     [&](const Lazy& i) { return i->kind == LazyKind::number || is_leaf(i); }) &&
         std::any_of(x->in.begin(), x->in.end(), [&](const Lazy& i) { return is_leaf(i); });
}

int FusedPlan::Impl::materialise(const Lazy& x) {
  if (auto it = slots.find(x.node()); it != slots.end()) return it->second;
  // A copy of repeated elements: repeating them makes one.
  if (host && x->kind == LazyKind::elementwise && x->op == Op::positive &&
      x->in[0]->kind == LazyKind::broadcast && x.elem() == x->in[0].elem() &&
      users[x->in[0].node()] == 1 && is_single(x->in[0]))
    return slots[x.node()] = materialise(x->in[0]);
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
    case LazyKind::reduce: {
      Lazy terms = x->in[0];
      if (host && converts_itself(x) && is_leaf(terms->in[0])) terms = terms->in[0];
      step.single = host && is_leaf(terms) && !has_complex(x);
      step.root = terms;
      step.shape = terms.shape();
      if (has_complex(x) || step.single) {
        step.kind = StepKind::eager;
        step.in.push_back(materialise(terms));
        step.leaves.push_back(terms.node());
        break;
      }
      step.kind = StepKind::reduce;
      collect(step.root, step);
      break;
    }
    default:
      step.single = host && !stays_eager(x, grid) && is_single(x);
      if (stays_eager(x, grid) || step.single) {
        step.kind = StepKind::eager;
        for (const Lazy& i : x->in) {
          const bool number = i->kind == LazyKind::number &&
                              (x->kind == LazyKind::elementwise || x->kind == LazyKind::where);
          step.in.push_back(number ? -1 : materialise(i));
          step.leaves.push_back(number ? nullptr : i.node());
        }
        step.root = x;
        break;
      }
      step.root = x;
      collect(x, step);
  }
  if (std::set<const LazyNode*> seen;
      grid && step.kind != StepKind::eager && step.root.defined() && step.elem == Elem::float32)
    collect_numbers(step.root, step, seen);
  step.serial = next_serial();
  step.out = count++;
  slots[x.node()] = step.out;
  int out = step.out;
  steps.push_back(std::move(step));
  return out;
}

double FusedPlan::Impl::size_of(const Lazy& x) {
  if (!fuses(x) || slots.count(x.node())) return 1;
  if (auto it = sizes.find(x.node()); it != sizes.end()) return it->second;
  double size = 1;
  for (const Lazy& i : x->in) {
    const double part = size_of(i);
    size += !grid && users[i.node()] > 1 ? 1 : part;
  }
  if (grid && x->kind == LazyKind::elementwise) {
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

std::vector<Lazy> FusedPlan::Impl::leaves_of(const Lazy& x) {
  std::set<const LazyNode*> seen;
  std::vector<Lazy> stack = {x}, leaves;
  while (!stack.empty()) {
    Lazy at = stack.back();
    stack.pop_back();
    if (!seen.insert(at.node()).second) continue;
    bool made = at.node() != x.node() && (slots.count(at.node()) > 0 || cuts.count(at.node()) > 0);
    if (fuses(at) && !made) {
      for (const Lazy& i : at->in) stack.push_back(i);
    } else {
      leaves.push_back(at);
    }
  }
  return leaves;
}

void FusedPlan::Impl::cut_widest(const Lazy& x) {
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

void FusedPlan::Impl::collect(const Lazy& x, Step& step) {
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

bool FusedPlan::Impl::is_brief(const Step& s) {
  constexpr std::int64_t kMost = 1024;
  std::int64_t size = 1;
  for (const std::int64_t extent : s.shape) size *= extent;
  return !s.brief.empty() && size <= kMost;
}

/// A short expression over the plan's own inputs runs by chunks where these are few elements: one
/// array is made. So does any over so few that all steps take less than a launch. Narrow floats are
/// left out, which chunks round once.
void FusedPlan::Impl::make_few() {
  if (!host || contract || steps.size() != 1 || outputs.size() != 1) return;
  const Step& s = steps[0];
  if (s.kind != StepKind::map || s.brief.size() == 1 || output_slots[0] != s.out) return;
  constexpr std::int64_t kMost = 64;
  std::int64_t size = 1;
  for (const std::int64_t extent : s.shape) size *= extent;
  if (s.brief.empty() && (size > kMost || s.in.size() > kMostOperands)) return;
  for (const LazyNode* leaf : s.leaves)
    if (leaf->kind != LazyKind::input) return;
  for (const Lazy& x : topological({s.root}))
    if (arithmetic_elem(x.elem()) != x.elem() || is_complex(x.elem())) return;
  if (auto made = ChunkedMap::make({s.root}, inputs, false)) few.emplace(std::move(*made));
}

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
  if (impl_->grid || impl_->host)
    impl_->steps = join_rows(std::move(impl_->steps), impl_->output_slots, device);
  impl_->make_few();
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
      const RowKernelStep& r = *s.rows;
      out += cat(slots(r.out), " = ");
      if (r.values.empty())
        out += cat(r.program.steps.size(), " steps over ", r.program.rows, " rows of ",
                   r.program.columns);
      else out += cat(r.values.size(), " steps over ", to_string(s.shape));
      out += cat(" (", slots(s.in), ")\n");
      continue;
    }
    out += cat("%", s.out, " = ", names[static_cast<int>(s.kind)]);
    if (s.kind == StepKind::reduce) out += cat(" ", info(s.node->reduction).name);
    if (s.kind == StepKind::eager && s.node->kind == LazyKind::elementwise)
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
        if (!leaf && x->kind == LazyKind::elementwise)
          rows.push_back(std::string(info(x->op).name));
      }
      if (!rows.empty()) out += cat(": ", join(rows));
    }
    out += cat(" -> ", name_of(s.node.elem()), to_string(s.node.shape()), "\n");
  }
  return out;
}

std::string FusedPlan::source() const { return join(impl_->sources, "\n"); }

bool FusedPlan::alone() const {
  if (impl_->steps.size() != 1 || impl_->output_slots.size() != 1) return false;
  const Step& s = impl_->steps[0];
  return s.in.size() <= kMostOperands && impl_->output_slots[0] == s.out &&
         (s.kind == StepKind::eager || s.kind == StepKind::matmul ||
          (s.kind == StepKind::map && !is_complex(s.elem) && (Impl::is_brief(s) || impl_->few)));
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

bool FusedPlan::brief() const {
  const std::vector<Step>& steps = impl_->steps;
  return !steps.empty() && std::all_of(steps.begin(), steps.end(), [this](const Step& s) {
    const bool kernel = s.kind == StepKind::map || s.kind == StepKind::reduce;
    return s.kind != StepKind::rows && (!kernel || Impl::is_brief(s) || impl_->few);
  });
}

}  // namespace weft
