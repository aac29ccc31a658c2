// SPDX-License-Identifier: Apache-2.0
#include "weft/target/host_plan.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/attributes.h"
#include "weft/ir/build.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/pass/narrow_indices.h"

namespace weft {

using namespace ir;
using runtime::HostPlan;
using runtime::PlanArg;
using runtime::PlanCode;
using runtime::PlanExpr;
using runtime::PlanOp;
using runtime::PlanStep;
using runtime::StepKind;

namespace {

class Splitter {
 public:
  Splitter(const PrimFunc& original, const PrimFunc& lowered, const SplitOptions& options)
      : original_(original), lowered_(lowered), options_(options) {}

  SplitFunction run() {
    out_.plan.name = original_->name;
    for_each_stmt(lowered_->body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s)) written_.insert(t->buffer.get());
    });
    find_opaque_writes();
    declared_ = has_flag(original_->attrs, kDeclaredLayout);
    for (const Param& p : original_->params)
      if (declared_ && !p.buffer) bound_.insert(p.var.get());
    for (std::size_t i = 0; i < original_->params.size(); ++i)
      param(original_->params[i], lowered_->params[i]);
    check_strides();
    check_positions();
    bool launches = false;
    for_each_stmt(lowered_->body, [&](const Stmt& s) { launches |= s->kind == StmtKind::launch; });
    alone_ = has_flag(original_->attrs, "noalias") || has_flag(original_->attrs, "tir.noalias");
    bool any_written = false;
    for (const auto& p : out_.plan.params) any_written |= p.is_tensor && p.tensor.written;
    out_.plan.no_overlap = alone_ && any_written;
    if (options_.whole) {
      warp_specialized_kernel();
    } else if (launches) {
      steps(lowered_->body, out_.plan.steps);
    } else {
      kernel(cat(original_->name, "_kernel0"), {}, lowered_->body, out_.plan.steps);
    }
    out_.plan.slots = slots_;
    out_.plan.buffers = static_cast<std::int32_t>(std::max(buffers_, tensors_));
    return std::move(out_);
  }

 private:
  // ---- arguments

  std::int32_t slot(const VarNode* v) {
    auto [it, fresh] = slot_of_.try_emplace(v, slots_);
    if (fresh) ++slots_;
    return it->second;
  }

  void find_opaque_writes() {
    // What a tensor map describes is written when a bulk copy stores to it.
    std::unordered_set<const VarNode*> stored;
    std::unordered_set<const ExprNode*> only_described;
    for_each_expr(lowered_->body, [&](const Expr& e) {
      const auto* c = as<CallNode>(e);
      if (c && c->op == "bulk_store") stored.insert(as<VarNode>(c->args[0]));
    });
    for_each_stmt(lowered_->body, [&](const Stmt& s) {
      const auto* l = as<LetStmtNode>(s);
      const auto* map = l ? as<CallNode>(l->value) : nullptr;
      if (map && map->op == "tensor_map" && !stored.count(l->var.get()))
        only_described.insert(map->args[0].get());
    });
    for_each_expr(lowered_->body, [&](const Expr& e) {
      const auto* c = as<CallNode>(e);
      if (!c || c->op != "address_of" || only_described.count(c)) return;
      if (const auto* l = as<LoadNode>(c->args[0])) written_.insert(l->buffer.get());
    });
    for_each_stmt(lowered_->body, [&](const Stmt& s) {
      if (const auto* c = as<CollectiveNode>(s)) written_.insert(c->dst.buffer.get());
    });
  }

  int alignment(const BufferNode* flat, const Buffer& declared) const {
    int align = flat->dtype.element().bytes();
    if (options_.vector_align <= 1) return std::max(1, std::min(align, 16));
    auto consider = [&](const Expr& index) {
      const auto* r = as<RampNode>(index);
      if (!r || !is_const_int_value(r->stride, 1)) return;
      auto bytes = std::bit_floor(static_cast<unsigned>(r->dtype.lanes * flat->dtype.bytes()));
      align = std::max(align, std::min(static_cast<int>(bytes), options_.vector_align));
    };
    for_each_expr(lowered_->body, [&](const Expr& e) {
      if (const auto* l = as<LoadNode>(e); l && l->buffer.get() == flat) consider(l->indices[0]);
    });
    for_each_stmt(lowered_->body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s); t && t->buffer.get() == flat) consider(t->indices[0]);
    });
    (void)declared;
    return align;
  }

  void param(const Param& p, const Param& flat) {
    runtime::PlanParam out;
    if (!p.buffer) {
      out.is_tensor = false;
      out.scalar = {p.var->name, p.var->dtype, slot(p.var.get())};
      if (p.var->dtype.is_float()) floats_.insert(p.var.get());
      bound_.insert(p.var.get());
      out_.plan.params.push_back(std::move(out));
      return;
    }
    runtime::PlanTensor& t = out.tensor;
    t.name = p.buffer->name;
    t.dtype = p.buffer->dtype;
    t.space = p.buffer->scope;
    t.written = written_.count(flat.buffer.get()) > 0;
    t.align = alignment(flat.buffer.get(), p.buffer);
    for (const Expr& e : p.buffer->shape) {
      const auto* v = as<VarNode>(e);
      bool binds = v && bound_.insert(v).second;
      t.binds.push_back(binds ? slot(v) : -1);
      t.shape.push_back(expr(e));
    }
    if (!p.buffer->strides.empty() && !declared_) {
      t.strided = true;
      for (std::size_t d = 0; d < p.buffer->strides.size(); ++d) {
        const Expr& e = p.buffer->strides[d];
        const auto* v = as<VarNode>(e);
        if (v && bound_.insert(v).second) {
          t.stride_slots.push_back(slot(v));
        } else {  // a stated stride: received in a slot of its own and compared
          t.stride_slots.push_back(slots_++);
          stated_.push_back({t.stride_slots.back(), e,
                             cat("stride ", d, " of \"", t.name, "\" is the declared one")});
        }
      }
    }
    if (const auto* v = as<VarNode>(p.buffer->elem_offset)) {
      if (bound_.insert(v).second) {  // the offset is folded into the pointer
        PlanStep set;
        set.kind = StepKind::set;
        set.target = slot(v);
        set.value = {{PlanOp::constant, 0}};
        out_.plan.steps.push_back(std::move(set));
      }
    } else if (p.buffer->elem_offset && !is_const_int_value(p.buffer->elem_offset, 0)) {
      offsets_[flat.buffer.get()] = expr(p.buffer->elem_offset * p.buffer->dtype.total_bytes());
    }
    buffer_of_[flat.buffer.get()] = tensors_++;
    buffers_ = tensors_;
    out_.plan.params.push_back(std::move(out));
  }

  void check_strides() {
    for (const auto& s : stated_) {
      PlanStep check;
      check.kind = StepKind::assert_;
      check.value = {{PlanOp::slot, s.slot}};
      PlanExpr wanted = expr(s.value);
      check.value.insert(check.value.end(), wanted.begin(), wanted.end());
      check.value.push_back({PlanOp::eq, 0});
      check.text = s.text;
      out_.plan.steps.push_back(std::move(check));
    }
  }

  /// What the attribute vouches for, as far as the arguments tell: room for tiles beyond an edge.
  void check_positions() {
    if (!has_flag(original_->attrs, pass::kNarrowPositions)) return;
    constexpr std::int64_t kMost = (std::int64_t{1} << 31) - (1 << 16);
    for (const Param& p : original_->params) {
      if (!p.buffer) continue;
      Expr elements = make_int(1);
      for (const Expr& n : p.buffer->shape) elements = elements * n;
      std::int64_t known = 0;
      if (is_const_int(elements, &known) && known < kMost) continue;
      PlanStep check;
      check.kind = StepKind::assert_;
      check.value = expr(elements);
      check.value.push_back({PlanOp::constant, kMost});
      check.value.push_back({PlanOp::lt, 0});
      check.text = cat("\"", p.buffer->name, "\" has fewer than ", kMost,
                       " elements, as the attribute ", pass::kNarrowPositions, " promises");
      out_.plan.steps.push_back(std::move(check));
    }
  }

  // ---- expressions

  PlanExpr expr(const Expr& e) {
    PlanExpr out;
    push(e, out);
    return out;
  }

  void push(const Expr& e, PlanExpr& out) {
    switch (e->kind) {
      case ExprKind::int_imm: out.push_back({PlanOp::constant, as<IntImmNode>(e)->value}); return;
      case ExprKind::var: out.push_back({PlanOp::slot, slot(as<VarNode>(e))}); return;
      case ExprKind::cast:
        if (e->dtype.is_integral() && as<CastNode>(e)->value->dtype.is_integral())
          return push(as<CastNode>(e)->value, out);
        break;
      case ExprKind::not_:
        push(as<NotNode>(e)->a, out);
        out.push_back({PlanOp::not_, 0});
        return;
      case ExprKind::call:
        if (as<CallNode>(e)->op == "likely") return push(as<CallNode>(e)->args[0], out);
        if (as<CallNode>(e)->op ==
            "shift_right") {  // a power of two: the simplifier's spelling of floordiv
          std::int64_t n = 0;
          if (is_const_int(as<CallNode>(e)->args[1], &n) && n >= 0 && n < 63) {
            push(as<CallNode>(e)->args[0], out);
            out.push_back({PlanOp::constant, std::int64_t{1} << n});
            out.push_back({PlanOp::floordiv, 0});
            return;
          }
        }
        if (as<CallNode>(e)->op == "bitwise_and") {
          std::int64_t n = 0;
          if (is_const_int(as<CallNode>(e)->args[1], &n) && n > 0 &&
              std::has_single_bit(static_cast<std::uint64_t>(n + 1))) {
            push(as<CallNode>(e)->args[0], out);
            out.push_back({PlanOp::constant, n + 1});
            out.push_back({PlanOp::floormod, 0});
            return;
          }
        }
        break;
      default:
        if (is_binary(e->kind) && !as<BinaryNode>(e)->a->dtype.is_float()) {
          push(as<BinaryNode>(e)->a, out);
          push(as<BinaryNode>(e)->b, out);
          out.push_back({op_of(e->kind), 0});
          return;
        }
    }
    throw Error(ErrorKind::lower, "lower.host.expression",
                cat("function ", original_->name,
                    " needs a value on the host that only the device can compute: ", print(e)))
        .help("move the statement into a kernel by binding a loop around it");
  }

  static PlanOp op_of(ExprKind kind) {
    switch (kind) {
      case ExprKind::add: return PlanOp::add;
      case ExprKind::sub: return PlanOp::sub;
      case ExprKind::mul: return PlanOp::mul;
      case ExprKind::div:
      case ExprKind::floordiv: return PlanOp::floordiv;
      case ExprKind::mod:
      case ExprKind::floormod: return PlanOp::floormod;
      case ExprKind::min: return PlanOp::min;
      case ExprKind::max: return PlanOp::max;
      case ExprKind::eq: return PlanOp::eq;
      case ExprKind::ne: return PlanOp::ne;
      case ExprKind::lt: return PlanOp::lt;
      case ExprKind::le: return PlanOp::le;
      case ExprKind::gt: return PlanOp::gt;
      case ExprKind::ge: return PlanOp::ge;
      case ExprKind::and_: return PlanOp::and_;
      default: return PlanOp::or_;
    }
  }

  // ---- statements

  void steps(const Stmt& s, std::vector<PlanStep>& out) {
    if (!s) return;
    PlanStep step;
    switch (s->kind) {
      case StmtKind::seq:
        for (const Stmt& child : as<SeqNode>(s)->stmts) steps(child, out);
        return;
      case StmtKind::for_: {
        const auto* t = as<ForNode>(s);
        step.kind = StepKind::loop;
        step.min = expr(t->min);
        step.value = expr(t->extent);
        step.target = slot(t->var.get());
        steps(t->body, step.body);
        break;
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        step.kind = StepKind::branch;
        step.value = expr(t->condition);
        steps(t->then_case, step.body);
        steps(t->else_case, step.otherwise);
        break;
      }
      case StmtKind::let: {
        const auto* t = as<LetStmtNode>(s);
        if (const auto* c = as<CallNode>(t->value); c && c->op == "tensor_map") {
          tensor_maps_.emplace_back(t->var.get(), c);
          return steps(t->body, out);
        }
        step.kind = StepKind::set;
        step.value = expr(t->value);
        step.target = slot(t->var.get());
        out.push_back(std::move(step));
        return steps(t->body, out);
      }
      case StmtKind::assert_:
        step.kind = StepKind::assert_;
        step.value = expr(as<AssertNode>(s)->condition);
        step.text = as<AssertNode>(s)->message;
        break;
      case StmtKind::evaluate:
        if (is_pure(as<EvaluateNode>(s)->value)) return;
        refuse(s);
      case StmtKind::allocate: {
        const auto* t = as<AllocateNode>(s);
        step.kind = StepKind::allocate;
        step.target = buffers_++;
        step.text = t->buffer->scope;
        Expr count = t->buffer->shape.empty() ? make_int(1) : t->buffer->shape[0];
        step.value = expr(count * t->buffer->dtype.total_bytes());
        buffer_of_[t->buffer.get()] = step.target;
        PlanStep release;
        release.kind = StepKind::release;
        release.target = step.target;
        out.push_back(std::move(step));
        steps(t->body, out);
        out.push_back(std::move(release));
        return;
      }
      case StmtKind::launch: {
        const auto* t = as<LaunchNode>(s);
        kernel(t->name, t->axes, s, out);
        return;
      }
      default: refuse(s);
    }
    out.push_back(std::move(step));
  }

  [[noreturn]] void refuse(const Stmt& s) {
    throw Error(ErrorKind::lower, "lower.host.statement",
                cat("function ", original_->name,
                    " has a statement outside every kernel that only a kernel can run: ",
                    print(s).substr(0, 200)))
        .note(
            "loops that are bound to an axis of the target make kernels; what stands outside them "
            "runs on the host, which only loops, branches, allocates and launches")
        .help(
            "bind a loop around it, for example sch.bind(sch.add_unit_loop(block), "
            "\"threadIdx.x\")");
  }

  void kernel(const std::string& name, const std::vector<LaunchAxis>& axes, const Stmt& body,
              std::vector<PlanStep>& out) {
    PlanStep launch;
    launch.kind = StepKind::launch;
    launch.text = name;
    std::vector<Param> params;
    std::unordered_set<const BufferNode*> used = used_buffers(body);
    std::unordered_set<const VarNode*> vars = free_vars(body);
    Json tensors = Json::array();
    for (const auto& [var, map] : tensor_maps_) {
      if (vars.count(var)) tensors.push_back(tensor(var, map, launch.args, params));
    }
    auto pointer = [&](const Buffer& flat) {
      if (!used.count(flat.get())) return;
      PlanArg arg;
      arg.buffer = buffer_of_.at(flat.get());
      if (auto found = offsets_.find(flat.get()); found != offsets_.end())
        arg.offset_bytes = found->second;
      launch.args.push_back(std::move(arg));
      params.push_back(buffer_param(flat));
      for (const Expr& e : flat->shape) {
        for (const VarNode* v : used_vars(e)) vars.insert(v);
      }
    };
    for (std::size_t i = 0; i < original_->params.size(); ++i) {
      if (lowered_->params[i].buffer) pointer(lowered_->params[i].buffer);
    }
    for_each_stmt(lowered_->body, [&](const Stmt& s) {  // intermediate buffers of the host
      const auto* t = as<AllocateNode>(s);
      if (t && buffer_of_.count(t->buffer.get())) pointer(t->buffer);
    });
    for (const LaunchAxis& axis : axes) {
      launch.extents.push_back(expr(axis.extent));
      for (const VarNode* v : used_vars(axis.extent)) vars.insert(v);
    }
    std::vector<const VarNode*> scalars(vars.begin(), vars.end());
    std::sort(scalars.begin(), scalars.end(),
              [&](const VarNode* a, const VarNode* b) { return slot(a) < slot(b); });
    for (const VarNode* v : scalars) {
      if (v->dtype.is_handle()) continue;
      WEFT_CHECK(slot_of_.count(v), "variable ", v->name, " of ", name, " has no value");
      PlanArg arg;
      arg.is_pointer = false;
      arg.scalar = {{PlanOp::slot, slot(v)}};
      arg.is_float = v->dtype.is_float();
      launch.args.push_back(std::move(arg));
      params.push_back({Var(v), nullptr});
    }
    Annotations attrs;
    if (alone_) attrs.emplace_back("noalias", true);
    if (!tensors.as_array().empty()) attrs.emplace_back("tensors", std::move(tensors));
    for (const char* key : {"contract", "aligned_arguments", kBlocksPerProcessor}) {
      if (const Json* value = find_annotation(original_->attrs, key))
        attrs.emplace_back(key, *value);
    }
    out_.kernels.push_back(make_func(name, std::move(params), body, std::move(attrs)));
    out.push_back(std::move(launch));
  }

  /// A tensor map's arguments: the pointer, extents, strides (runtime::ParamKind::tensor). Returns
  /// what the kernel's signature says of it.
  Json tensor(const VarNode* var, const CallNode* map, std::vector<PlanArg>& args,
              std::vector<Param>& params) {
    const auto* first = as<LoadNode>(as<CallNode>(map->args[0])->args[0]);
    std::int64_t rank = 0;
    is_const_int(map->args[1], &rank);
    const auto at = static_cast<std::size_t>(rank);
    if (rank < 1 || rank > 5 || map->args.size() != 1 + 4 * at ||
        !buffer_of_.count(first->buffer.get()))
      throw Error(ErrorKind::lower, "lower.tensor_map",
                  cat("the tensor map \"", var->name, "\" has rank ", rank, " and ",
                      map->args.size() - 2, " numbers"))
          .note(
              "legal: an array of the host, a constant rank from 1 to 5, and 4 * rank - 1 numbers");
    PlanArg pointer;
    pointer.buffer = buffer_of_.at(first->buffer.get());
    pointer.offset_bytes = expr(first->indices[0] * first->dtype.total_bytes());
    if (auto found = offsets_.find(first->buffer.get()); found != offsets_.end()) {
      pointer.offset_bytes.insert(pointer.offset_bytes.end(), found->second.begin(),
                                  found->second.end());
      pointer.offset_bytes.push_back({PlanOp::add, 0});
    }
    args.push_back(std::move(pointer));
    for (std::size_t i = 2; i < 1 + 2 * at; ++i) {
      PlanArg number;
      number.is_pointer = false;
      number.scalar = expr(map->args[i]);
      args.push_back(std::move(number));
    }
    Json out = Json::object(), box = Json::array(), apart = Json::array();
    for (std::size_t i = 0; i < at; ++i) {
      std::int64_t extent = 0, step = 0;
      if (!is_const_int(map->args[1 + 2 * at + i], &extent) ||
          !is_const_int(map->args[1 + 3 * at + i], &step))
        throw Error(ErrorKind::lower, "lower.tensor_map",
                    cat("the box of the tensor map \"", var->name, "\" is known only at run time"));
      box.push_back((extent - 1) * step + 1), apart.push_back(step);
    }
    out["box"] = std::move(box);
    out["steps"] = std::move(apart);
    out["dtype"] = to_string(first->dtype);
    params.push_back({Var(var), nullptr});
    return out;
  }

  void warp_specialized_kernel() {
    PlanStep launch;
    launch.kind = StepKind::launch;
    launch.text = cat(original_->name, "_kernel0");
    auto scalar = [&](PlanExpr value, bool is_float) {
      PlanArg arg;
      arg.is_pointer = false;
      arg.scalar = std::move(value);
      arg.is_float = is_float;
      launch.args.push_back(std::move(arg));
    };
    std::int32_t buffer = 0;
    for (const auto& p : out_.plan.params) {
      if (!p.is_tensor) continue;
      PlanArg arg;
      arg.buffer = buffer++;
      launch.args.push_back(std::move(arg));
    }
    for (const auto& p : out_.plan.params) {
      if (!p.is_tensor) scalar({{PlanOp::slot, p.scalar.slot}}, p.scalar.dtype.is_float());
    }
    for (const auto& p : out_.plan.params) {
      if (!p.is_tensor) continue;
      for (std::size_t d = 0; d < p.tensor.shape.size(); ++d) {
        scalar(p.tensor.binds[d] >= 0 ? PlanExpr{{PlanOp::slot, p.tensor.binds[d]}}
                                      : p.tensor.shape[d],
               false);
      }
      for (std::int32_t s : p.tensor.stride_slots) scalar({{PlanOp::slot, s}}, false);
    }
    auto f = edit(lowered_);
    f->name = launch.text;
    out_.kernels.push_back(f);
    out_.plan.steps.push_back(std::move(launch));
  }

  struct Stated {
    std::int32_t slot;
    Expr value;
    std::string text;
  };

  const PrimFunc& original_;
  const PrimFunc& lowered_;
  SplitOptions options_;
  SplitFunction out_;
  bool alone_ = false;
  std::int32_t slots_ = 0, tensors_ = 0, buffers_ = 0;
  std::unordered_map<const VarNode*, std::int32_t> slot_of_;
  std::unordered_map<const BufferNode*, std::int32_t> buffer_of_;
  std::unordered_map<const BufferNode*, PlanExpr> offsets_;
  bool declared_ = false;  // kDeclaredLayout
  std::unordered_set<const VarNode*> bound_, floats_;
  std::unordered_set<const BufferNode*> written_;
  std::vector<Stated> stated_;
  std::vector<std::pair<const VarNode*, const CallNode*>> tensor_maps_;
};

}  // namespace

SplitFunction split_host_device(const PrimFunc& original, const PrimFunc& lowered,
                                const SplitOptions& options) {
  return Splitter(original, lowered, options).run();
}

}  // namespace weft
