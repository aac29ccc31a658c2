// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/lower.h"

#include "weft/ir/text.h"
#include "weft/targets/vta/capacity.h"
#include "weft/targets/vta/host_copy.h"
#include "weft/targets/vta/lowering.h"
#include "weft/targets/vta/split_stages.h"

namespace weft::vta {

using namespace ir;

bool memory_of_scope(std::string_view scope, MemType& out) {
  if (scope == "vta.inp") return out = MemType::inp, true;
  if (scope == "vta.wgt") return out = MemType::wgt, true;
  if (scope == "vta.acc") return out = MemType::acc, true;
  return false;
}

Lowering::Lowering(const PrimFunc& f, const Config& config)
    : f_(f), c_(config), b_(config, f->name), chip_(config) {
  for (const Param& p : f->params) {
    if (!p.buffer)
      throw refuse("scalar", cat("parameter \"", p.var->name, "\" is a scalar"), nullptr)
          .note("shapes and scalars must be constants on this machine");
    params_[p.buffer.get()] = b_.param(p.buffer->name, p.buffer->dtype);
  }
}

void Lowering::run_into(Program& program) {
  walk(f_->body);
  b_.finish_in_order(program);
}

Error Lowering::refuse(const char* slug, std::string message, const StmtNode* where) const {
  Error error(ErrorKind::lower, cat("vta.lower.", slug), std::move(message));
  if (where) error.at("statement", print(Stmt(where)));
  return error;
}

void Lowering::no_unit(const char* slug, std::string message, const StmtNode* where,
                       std::string note) const {
  Refusal r;
  r.code = cat("vta.lower.", slug);
  r.message = std::move(message);
  r.at("statement", print(Stmt(where)));
  if (!note.empty()) r.note(std::move(note));
  throw NoUnit{std::move(r)};
}

void Lowering::walk(const Stmt& s) {
  if (!s) return;
  switch (s->kind) {
    case StmtKind::seq:
      for (const Stmt& part : as<SeqNode>(s)->stmts) walk(part);
      return;
    case StmtKind::allocate: return allocation(as<AllocateNode>(s));
    case StmtKind::for_:
    case StmtKind::store: {
      if (std::optional<Nest> nest = nest_of(s, env_)) {
        unit_.clear();
        try {
          unit(*nest);
          for (const auto& instruction : unit_) instruction();
          return;
        } catch (NoUnit& no) {
          // Every loop around it has been fixed: this is the reason. Otherwise the outermost
          // reason is kept.
          if (!reason_) reason_ = std::move(no.refusal);
          if (s->kind == StmtKind::store) throw Error(ErrorKind::lower, *reason_);
        }
      }
      const auto* loop = as<ForNode>(s);
      if (!loop)
        throw refuse("statement", "this statement is none that the machine can do", s.get());
      std::optional<std::int64_t> min = constant(loop->min, env_),
                                  extent = constant(loop->extent, env_);
      if (!min || !extent)
        throw refuse("extent", cat("the extent of loop \"", loop->var->name, "\" is no constant"),
                     s.get());
      bool outermost = !reason_;
      for (std::int64_t i = 0; i < *extent; ++i) {
        env_[loop->var.get()] = *min + i;
        walk(loop->body);
      }
      env_.erase(loop->var.get());
      if (outermost) reason_.reset();
      return;
    }
    case StmtKind::if_: {
      const auto* i = as<IfNode>(s);
      std::optional<std::int64_t> value = constant(i->condition, env_);
      if (!value)
        throw refuse("condition",
                     cat("the condition ", print(i->condition), " is not known while recording"),
                     s.get());
      walk(*value ? i->then_case : i->else_case);
      return;
    }
    case StmtKind::let: {
      const auto* l = as<LetStmtNode>(s);
      std::optional<std::int64_t> value = constant(l->value, env_);
      if (!value)
        throw refuse("let", cat("the value of \"", l->var->name, "\" is not known while recording"),
                     s.get());
      env_[l->var.get()] = *value;
      walk(l->body);
      env_.erase(l->var.get());
      return;
    }
    case StmtKind::launch: return walk(as<LaunchNode>(s)->body);
    case StmtKind::evaluate: {
      if (is_const_int(as<EvaluateNode>(s)->value)) return;
      throw refuse("statement", "a call has no meaning on this machine", s.get());
    }
    default: throw refuse("statement", "this statement is none that the machine can do", s.get());
  }
}

void Lowering::allocation(const AllocateNode* a) {
  MemType mem;
  if (!memory_of_scope(a->buffer->scope, mem)) {
    throw refuse(
        "scope",
        cat("\"", a->buffer->name, "\" lies in scope \"", a->buffer->scope, "\" inside the kernel"),
        nullptr)
        .note("legal: vta.inp, vta.wgt and vta.acc for intermediate buffers")
        .help(cat("sch.set_scope(block, 0, \"vta.acc\") for the block that writes \"",
                  a->buffer->name, "\""));
  }
  DType want = mem == MemType::acc ? dtypes::int32 : dtypes::int8;
  // Bytes are widened on their way into the accumulator; unit() sees to it that nothing else writes
  // them.
  const bool widened = mem == MemType::acc && a->buffer->dtype == dtypes::int8;
  if (!(a->buffer->dtype == want) && !widened) {
    throw refuse(
        "dtype",
        cat("\"", a->buffer->name, "\" is ", to_string(a->buffer->dtype), " in ", a->buffer->scope),
        nullptr)
        .note(cat(a->buffer->scope, " holds ", to_string(want)));
  }
  std::int64_t scalars = 1;
  for (const Expr& e : a->buffer->shape) {
    std::optional<std::int64_t> n = constant(e, env_);
    if (!n)
      throw refuse("extent", cat("the shape of \"", a->buffer->name, "\" is no constant"), nullptr);
    scalars *= *n;
  }
  std::int64_t lanes = lanes_of(mem), elements = (scalars + lanes - 1) / lanes;
  if (chip_.enter(a, mem, elements) < 0) {
    Error error = refuse("capacity",
                         cat("\"", a->buffer->name, "\" of ", elements,
                             " elements does not fit into ", a->buffer->scope),
                         nullptr);
    error.note(cat(a->buffer->scope, " has ", c_.depth(mem), " elements of ", c_.elem_bytes(mem),
                   " bytes"));
    std::int64_t room = c_.depth(mem);
    for (const auto& [buffer, p] : chip_.live()) {
      error.note(cat("\"", buffer->name, "\" holds ", p.elements, " elements of ", buffer->scope));
      if (p.mem == mem) room -= p.elements;
    }
    if (const std::optional<FillingLoop> loop = filling_loop(*a, env_, lanes, room))
      throw error.help(cat("loop \"", loop->name, "\" fills it in ", loop->extent, " steps, and ",
                           loop->fits, " fit: split that loop by ", loop->fits,
                           " and compute the buffer inside the outer part"));
    throw error.help("smaller tiles: split the loops further out");
  }
  walk(a->body);
  chip_.leave();
}

std::int64_t Lowering::lanes_of(MemType mem) const {
  return mem == MemType::inp   ? std::int64_t{c_.batch()} * c_.block_in()
         : mem == MemType::wgt ? std::int64_t{c_.block_out()} * c_.block_in()
                               : c_.lanes();
}

Affine Lowering::index(const Exprs& indices, const Nest& nest, const StmtNode* where) const {
  if (indices.size() != 1) no_unit("index", "the buffer is not flat", where);
  std::optional<Affine> a = affine(indices[0], nest.loops, env_);
  if (!a)
    no_unit("index", cat("the index ", print(indices[0]), " is not affine in the loops around it"),
            where, "divisions must be exact over the loops' ranges");
  return *a;
}

void Lowering::narrow(Nest& nest, const Expr& guard) const {
  const auto* both = as<BinaryNode>(guard);
  if (both && both->kind == ExprKind::and_) {
    narrow(nest, both->a);
    return narrow(nest, both->b);
  }
  const auto* pair = as<CallNode>(guard);
  if (pair && pair->op == "bitwise_and") {
    narrow(nest, pair->args[0]);
    return narrow(nest, pair->args[1]);
  }
  auto differs = [&] {
    no_unit("guard", cat("the guard ", print(guard), " differs inside the nest"), nest.update,
            "a guard may bound each loop of a nest, or hold for all of it");
  };
  auto nothing = [&] {
    for (NestLoop& loop : nest.loops) loop.extent = 0;
    if (nest.loops.empty()) nest.never = true;
  };
  if (std::optional<Affine> value = affine(guard, nest.loops, env_); value && value->constant()) {
    if (!value->base) nothing();
    return;
  }
  std::optional<Affine> a, b;
  if (both) a = affine(both->a, nest.loops, env_), b = affine(both->b, nest.loops, env_);
  if (!a || !b) return differs();
  const ExprKind kind = guard->kind;
  if (kind == ExprKind::lt || kind == ExprKind::le) std::swap(a, b);
  else if (kind != ExprKind::gt && kind != ExprKind::ge) return differs();
  // Now the guard is room >= 0.
  std::int64_t room = a->base - b->base - (kind == ExprKind::lt || kind == ExprKind::gt ? 1 : 0);
  std::int64_t low = room, high = room;
  std::optional<std::size_t> one;
  bool several = false;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    std::int64_t step = a->coeff[i] - b->coeff[i];
    if (step == 0 || nest.loops[i].extent <= 1) continue;
    several = several || one;
    one = i;
    (step > 0 ? high : low) += step * (nest.loops[i].extent - 1);
  }
  if (low >= 0) return;
  if (high < 0) return nothing();
  if (several) return differs();
  NestLoop& loop = nest.loops[*one];
  std::int64_t step = a->coeff[*one] - b->coeff[*one];
  if (step > 0) {
    std::int64_t first = (-room + step - 1) / step;
    loop.min += first, loop.extent -= first;
  } else {
    loop.extent = std::min(loop.extent, room / -step + 1);
  }
}

void Lowering::unit(Nest nest) {
  const StoreNode* s = nest.update;
  if (nest.guard) narrow(nest, nest.guard);
  if (nest.never) return;
  for (const NestLoop& loop : nest.loops) {
    if (loop.extent <= 0) return;
  }
  const Placed* dst = placed(s->buffer.get());
  std::vector<Expr> conditions;
  // What is stored to global memory is cut to its bits there.
  const LoadNode* from = guarded_load(dst ? s->value : strip_casts(s->value), conditions);
  if (dst && from && params_.count(from->buffer.get()))
    return dma(nest, from, *dst, true, conditions);
  if (!conditions.empty()) from = nullptr;
  if (!dst) {
    if (!params_.count(s->buffer.get()))
      no_unit("scope", cat("\"", s->buffer->name, "\" is neither a parameter nor on chip"), s);
    const Placed* src = from ? placed(from->buffer.get()) : nullptr;
    if (!src) {
      no_unit("store",
              cat("only a copy of a buffer in vta.acc can be written to \"", s->buffer->name, "\""),
              s, "compute in vta.acc first (cache_write, set_scope), then copy");
    }
    return dma(nest, from, *src, false, {});
  }
  if (dst->mem != MemType::acc)
    no_unit("operand",
            cat("\"", s->buffer->name, "\" in ", s->buffer->scope,
                " can only be filled by a copy from global memory"),
            s);
  if (!(s->buffer->dtype == dtypes::int32))
    no_unit("dtype",
            cat("\"", s->buffer->name, "\" is ", to_string(s->buffer->dtype),
                " in vta.acc, and is computed"),
            s, "bytes there are copies from global memory; sums and chains are int32");
  if (product(nest, *dst)) return;
  if (nest.init) reset_for(nest, *dst);
  chain(nest, s->value, s, *dst);
}

Program lower(const std::vector<PrimFunc>& kernels, const Config& config) {
  Program program{config, {}, {}};
  for (const PrimFunc& f : kernels) {
    if (!is_host_kernel(f)) {
      Lowering(f, config).run_into(program);
      continue;
    }
    Kernel kernel;
    kernel.signature.name = f->name;
    for (const Param& p : f->params) {
      if (!p.buffer)
        throw Error(ErrorKind::lower, "vta.lower.scalar",
                    cat("parameter \"", p.var->name, "\" is a scalar"));
      kernel.signature.params.push_back(
          {p.buffer->name, runtime::ParamKind::pointer, p.buffer->dtype, "global"});
    }
    kernel.host = host_copies(f);
    program.kernels.push_back(std::move(kernel));
  }
  return program;
}

}  // namespace weft::vta
