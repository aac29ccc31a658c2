// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/lower.h"

#include <algorithm>
#include <functional>
#include <map>

#include "weft/ir/text.h"
#include "weft/targets/vta/chip_memory.h"
#include "weft/targets/vta/nest.h"
#include "weft/targets/vta/split_stages.h"

namespace weft::vta {

using namespace ir;

bool memory_of_scope(std::string_view scope, MemType& out) {
  if (scope == "vta.inp") return out = MemType::inp, true;
  if (scope == "vta.wgt") return out = MemType::wgt, true;
  if (scope == "vta.acc") return out = MemType::acc, true;
  return false;
}

namespace {

using Loop = UopKernel::Loop;

/// Thrown inside, when a nest is no unit; outer loops may be run instead.
struct NoUnit {
  Refusal refusal;
};

class Lowering {
 public:
  Lowering(const PrimFunc& f, const Config& config)
      : f_(f), c_(config), b_(config, f->name), chip_(config) {
    for (const Param& p : f->params) {
      if (!p.buffer)
        throw refuse("scalar", cat("parameter \"", p.var->name, "\" is a scalar"), nullptr)
            .note("shapes and scalars must be constants on this machine");
      params_[p.buffer.get()] = b_.param(p.buffer->name, p.buffer->dtype);
    }
  }

  void run_into(Program& program) {
    walk(f_->body);
    b_.finish_in_order(program);
  }

 private:
  using Placed = ChipMemory::Placed;

  Error refuse(const char* slug, std::string message, const StmtNode* where) const {
    Error error(ErrorKind::lower, cat("vta.lower.", slug), std::move(message));
    if (where) error.at("statement", print(Stmt(where)));
    return error;
  }
  [[noreturn]] void no_unit(const char* slug, std::string message, const StmtNode* where,
                            std::string note = {}) const {
    Refusal r;
    r.code = cat("vta.lower.", slug);
    r.message = std::move(message);
    r.at("statement", print(Stmt(where)));
    if (!note.empty()) r.note(std::move(note));
    throw NoUnit{std::move(r)};
  }

  // ---- statements

  void walk(const Stmt& s) {
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
          throw refuse("let",
                       cat("the value of \"", l->var->name, "\" is not known while recording"),
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

  // ---- memory

  void allocation(const AllocateNode* a) {
    MemType mem;
    if (!memory_of_scope(a->buffer->scope, mem)) {
      throw refuse("scope",
                   cat("\"", a->buffer->name, "\" lies in scope \"", a->buffer->scope,
                       "\" inside the kernel"),
                   nullptr)
          .note("legal: vta.inp, vta.wgt and vta.acc for intermediate buffers")
          .help(cat("sch.set_scope(block, 0, \"vta.acc\") for the block that writes \"",
                    a->buffer->name, "\""));
    }
    DType want = mem == MemType::acc ? dtypes::int32 : dtypes::int8;
    if (!(a->buffer->dtype == want)) {
      throw refuse("dtype",
                   cat("\"", a->buffer->name, "\" is ", to_string(a->buffer->dtype), " in ",
                       a->buffer->scope),
                   nullptr)
          .note(cat(a->buffer->scope, " holds ", to_string(want)));
    }
    std::int64_t scalars = 1;
    for (const Expr& e : a->buffer->shape) {
      std::optional<std::int64_t> n = constant(e, env_);
      if (!n)
        throw refuse("extent", cat("the shape of \"", a->buffer->name, "\" is no constant"),
                     nullptr);
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
      for (const auto& [buffer, p] : chip_.live())
        error.note(
            cat("\"", buffer->name, "\" holds ", p.elements, " elements of ", buffer->scope));
      throw error.help("smaller tiles: split the loops further out");
    }
    walk(a->body);
    chip_.leave();
  }

  std::int64_t lanes_of(MemType mem) const {
    return mem == MemType::inp   ? std::int64_t{c_.batch()} * c_.block_in()
           : mem == MemType::wgt ? std::int64_t{c_.block_out()} * c_.block_in()
                                 : c_.lanes();
  }

  const Placed* placed(const BufferNode* b) const { return chip_.find(b); }

  // ---- units

  Affine index(const Exprs& indices, const Nest& nest, const StmtNode* where) const {
    if (indices.size() != 1) no_unit("index", "the buffer is not flat", where);
    std::optional<Affine> a = affine(indices[0], nest.loops, env_);
    if (!a)
      no_unit("index",
              cat("the index ", print(indices[0]), " is not affine in the loops around it"), where,
              "divisions must be exact over the loops' ranges");
    return *a;
  }

  void unit(const Nest& nest) {
    const StoreNode* s = nest.update;
    if (nest.guard) {
      std::optional<Affine> value = affine(nest.guard, nest.loops, env_);
      if (!value || !value->constant())
        no_unit("guard", cat("the guard ", print(nest.guard), " differs inside the nest"), s,
                "choose tiles that divide the extents");
      if (!value->base) return;
    }
    for (const NestLoop& loop : nest.loops) {
      if (loop.extent <= 0) return;
    }
    const Placed* dst = placed(s->buffer.get());
    std::vector<Expr> conditions;
    const LoadNode* from = guarded_load(s->value, conditions);
    if (dst && from && params_.count(from->buffer.get()))
      return dma(nest, from, *dst, true, conditions);
    if (!conditions.empty()) from = nullptr;
    if (!dst) {
      if (!params_.count(s->buffer.get()))
        no_unit("scope", cat("\"", s->buffer->name, "\" is neither a parameter nor on chip"), s);
      const Placed* src = from ? placed(from->buffer.get()) : nullptr;
      if (!src) {
        no_unit(
            "store",
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
    if (product(nest, *dst)) return;
    if (nest.init) reset_for(nest, *dst);
    chain(nest, s->value, s, *dst);
  }

  /// A loop nest over lanes and elements of one on-chip buffer: removes the loops that make up an
  /// element. `a` is the on-chip index in scalars; `others` must step alike inside an element.
  struct Dim {
    std::int64_t extent, on_chip, other;
    int loop = -1;                       // of the nest, when it is one whole
    std::int64_t before = 0, after = 0;  // of the extent: filled with zeros
  };

  std::vector<Dim> elements(const Nest& nest, const Affine& a, const Affine& other,
                            std::int64_t lanes, const StmtNode* where) const {
    std::vector<Dim> dims;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      if (nest.loops[i].extent > 1)
        dims.push_back({nest.loops[i].extent, a.coeff[i], other.coeff[i], static_cast<int>(i)});
    }
    std::sort(dims.begin(), dims.end(),
              [](const Dim& x, const Dim& y) { return x.on_chip < y.on_chip; });
    std::int64_t covered = 1;
    std::vector<Dim> out;
    for (Dim d : dims) {
      if (covered < lanes && d.on_chip == covered) {
        if (d.other != covered)
          no_unit("rectangle", "inside an element the two sides are laid out differently", where,
                  cat("an element is ", lanes, " neighbouring scalars on both sides"));
        if (d.extent * covered <= lanes) {
          if (lanes % (d.extent * covered))
            no_unit(
                "rectangle",
                cat("runs of ", d.extent * covered, " scalars do not make up elements of ", lanes),
                where);
          covered *= d.extent;
          continue;
        }
        if (d.extent % (lanes / covered))
          no_unit(
              "rectangle",
              cat("runs of ", d.extent * covered, " scalars do not make up elements of ", lanes),
              where);
        d = {d.extent / (lanes / covered), lanes, lanes, -1};
        covered = lanes;
      }
      if (d.on_chip % lanes || d.other % lanes)
        no_unit("rectangle",
                cat("a loop steps by ", d.on_chip, " and ", d.other,
                    " scalars, no whole elements of ", lanes),
                where);
      out.push_back({d.extent, d.on_chip / lanes, d.other / lanes, d.loop});
    }
    if (covered != lanes)
      no_unit("rectangle",
              cat("the nest moves ", covered, " neighbouring scalars, an element has ", lanes),
              where);
    if (a.base % lanes || other.base % lanes)
      no_unit("rectangle",
              cat("it begins at scalar ", other.base, ", inside an element of ", lanes), where);
    return out;
  }

  /// Which part of a loop the conditions leave; the rest is padding.
  void pad(const Nest& nest, const Expr& condition, std::vector<Dim>& dims) const {
    const StmtNode* s = nest.update;
    const auto* c = as<BinaryNode>(condition);
    if (c && c->kind == ExprKind::and_) {
      pad(nest, c->a, dims);
      pad(nest, c->b, dims);
      return;
    }
    if (const auto* call = as<CallNode>(condition);
        call && (call->op == "likely" || call->op == "bitwise_and")) {
      for (const Expr& part : call->args) pad(nest, part, dims);
      return;
    }
    auto refused = [&](const char* why) {
      no_unit("pad", cat("the condition ", print(condition), " of a padded copy ", why), s,
              "padding: comparisons of one loop of the copy with constants, joined by and");
    };
    std::optional<Affine> x, y;
    if (c && is_compare(c->kind))
      x = affine(c->a, nest.loops, env_), y = affine(c->b, nest.loops, env_);
    if (!x || !y) {
      std::optional<Affine> known = affine(condition, nest.loops, env_);
      if (known && known->constant() && known->base) return;
      refused("is not understood");
    }
    // As f >= 0.
    std::int64_t sign = 1, base = x->base - y->base;
    switch (c->kind) {
      case ExprKind::ge: break;
      case ExprKind::gt: base -= 1; break;
      case ExprKind::le: sign = -1; break;
      case ExprKind::lt: sign = -1, base += 1; break;
      default: refused("is an equality");
    }
    base *= sign;
    int loop = -1;
    std::int64_t step = 0;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      std::int64_t k = sign * (x->coeff[i] - y->coeff[i]);
      if (k == 0 || nest.loops[i].extent == 1) continue;
      if (loop >= 0) refused("mixes loops");
      loop = static_cast<int>(i), step = k;
    }
    if (loop < 0) {
      if (base < 0) refused("leaves nothing of the copy");
      return;
    }
    for (Dim& d : dims) {
      if (d.loop != loop) continue;
      if (step > 0) {  // i >= -base / step
        d.before = std::max(d.before, base >= 0 ? 0 : (-base + step - 1) / step);
      } else {  // i <= base / -step
        d.after = std::max(
            d.after, base < 0 ? d.extent : d.extent - 1 - std::min(base / -step, d.extent - 1));
      }
      if (d.before + d.after >= d.extent) refused("leaves nothing of a row or column");
      return;
    }
    refused("divides an element");
  }

  void dma(const Nest& nest, const LoadNode* from, const Placed& chip, bool load,
           const std::vector<Expr>& conditions) {
    const StoreNode* s = nest.update;
    if (nest.init) no_unit("copy", "a copy has no initial value", s);
    Affine dst = index(s->indices, nest, s), src = index(from->indices, nest, s);
    const BufferNode* global = load ? from->buffer.get() : s->buffer.get();
    const Affine& on_chip = load ? dst : src;
    const Affine& in_dram = load ? src : dst;
    MemType mem = chip.mem;
    if (load) {
      bool narrow = mem == MemType::acc && global->dtype == dtypes::int8;
      DType want = mem == MemType::acc && !narrow ? dtypes::int32 : dtypes::int8;
      if (!(global->dtype == want))
        no_unit("dtype",
                cat("\"", global->name, "\" is ", to_string(global->dtype), ", ", to_string(mem),
                    " takes ", to_string(want)),
                s);
      if (narrow) mem = MemType::acc8;
    } else {
      if (mem != MemType::acc)
        no_unit("store", cat("STORE reads vta.acc, not vta.", to_string(mem)), s);
      if (!global->dtype.is_integral() || global->dtype.bits != 8) {
        no_unit("dtype",
                cat("\"", global->name, "\" is ", to_string(global->dtype), "; STORE writes int8"),
                s, "cast to int8 (the low 8 bits are kept), after shifting and clipping");
      }
    }
    std::int64_t lanes = lanes_of(chip.mem);
    std::vector<Dim> dims = elements(nest, on_chip, in_dram, lanes, s);
    for (const Dim& d : dims) {
      if (d.on_chip < 0 || d.other < 0) no_unit("rectangle", "it runs backwards", s);
    }
    for (const Expr& c : conditions) pad(nest, c, dims);
    // x: neighbours on both sides. y: rows that follow one another on chip. The rest is one
    // transfer each. A padded loop ends its direction.
    Rect rect{1, 1, 0};
    std::int64_t skip = 0, width = 1, height = 1;  // width, height: with padding
    std::size_t used = 0;
    bool padded = false;
    // With one element left between the padding, its step in memory does not matter.
    auto single = [](const Dim& d) { return d.extent - d.before - d.after == 1; };
    while (!padded && used < dims.size() && dims[used].on_chip == width &&
           (dims[used].other == width || single(dims[used]))) {
      if (width > 1 && (dims[used].before || dims[used].after)) break;  // padded by whole rows
      const Dim& d = dims[used++];
      padded = d.before || d.after;
      rect.pad_left = d.before * width, rect.pad_right = d.after * width;
      skip += d.before * d.other;
      rect.x = (d.extent - d.before - d.after) * width;
      width *= d.extent;
    }
    rect.stride = rect.x;
    padded = false;
    while (!padded && used < dims.size() && dims[used].on_chip == width * height &&
           (dims[used].other > 0 || single(dims[used])) &&
           (height == 1 || dims[used].other == rect.stride * height)) {
      const Dim& d = dims[used++];
      if (height == 1) rect.stride = single(d) ? rect.x : d.other;
      padded = d.before || d.after;
      rect.pad_top = d.before * height, rect.pad_bottom = d.after * height;
      skip += d.before * d.other;
      rect.y = (d.extent - d.before - d.after) * height;
      height *= d.extent;
    }
    for (std::int64_t p : {rect.pad_left, rect.pad_right, rect.pad_top, rect.pad_bottom}) {
      if (p > 15)
        no_unit("pad", cat("a copy is padded by ", p, " elements"), s,
                "LOAD pads up to 15 elements on each side of rows and columns");
    }
    for (std::size_t i = used; i < dims.size(); ++i) {
      if (dims[i].before || dims[i].after)
        no_unit("pad", "a copy is padded in its third dimension", s,
                "LOAD pads rows and columns only");
    }
    transfers(dims, used, chip.at + on_chip.base / lanes, in_dram.base / lanes + skip, rect, mem,
              params_.at(global), load);
  }

  void transfers(const std::vector<Dim>& dims, std::size_t i, std::int64_t chip, std::int64_t dram,
                 const Rect& rect, MemType mem, int param, bool load) {
    if (i < dims.size()) {
      for (std::int64_t k = 0; k < dims[i].extent; ++k)
        transfers(dims, i + 1, chip + k * dims[i].on_chip, dram + k * dims[i].other, rect, mem,
                  param, load);
      return;
    }
    if (load) {
      emit([=, this] { b_.load(mem, chip, param, dram, rect); });
    } else {
      emit([=, this] { b_.store(chip, param, dram, rect); });
    }
  }

  /// acc += inp . wgt. False: the statement is no sum of products.
  bool product(const Nest& nest, const Placed& dst) {
    const StoreNode* s = nest.update;
    const auto* sum = as<BinaryNode>(s->value);
    if (!sum || sum->kind != ExprKind::add) return false;
    const LoadNode* self = as<LoadNode>(sum->a);
    Expr other = sum->b;
    if (!self || self->buffer.get() != s->buffer.get()) self = as<LoadNode>(sum->b), other = sum->a;
    const auto* mul = as<BinaryNode>(other);
    if (!self || self->buffer.get() != s->buffer.get() || !mul || mul->kind != ExprKind::mul)
      return false;
    const LoadNode *x = as<LoadNode>(strip_casts(mul->a)), *w = as<LoadNode>(strip_casts(mul->b));
    if (!x || !w) return false;
    const Placed *px = placed(x->buffer.get()), *pw = placed(w->buffer.get());
    if (px && pw && px->mem == MemType::wgt && pw->mem == MemType::inp)
      std::swap(x, w), std::swap(px, pw);
    if (!px || !pw || px->mem != MemType::inp || pw->mem != MemType::wgt) {
      no_unit("operand",
              cat("the product of \"", x->buffer->name, "\" (", x->buffer->scope, ") and \"",
                  w->buffer->name, "\" (", w->buffer->scope, ") cannot be summed"),
              s, "GEMM multiplies vta.inp by vta.wgt into vta.acc");
    }
    Affine d = index(s->indices, nest, s), a = index(x->indices, nest, s),
           b = index(w->indices, nest, s);
    if (index(self->indices, nest, s) != d)
      no_unit("alias", "the sum is read and written at different places", s);
    const std::int64_t B = c_.batch(), K = c_.block_in(), O = c_.block_out();
    bool batch = B == 1, in = K == 1, out = O == 1;
    std::vector<Loop> dims;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      std::int64_t n = nest.loops[i].extent;
      if (n == 1) continue;
      if (!batch && n == B && d.coeff[i] == O && a.coeff[i] == K && b.coeff[i] == 0) {
        batch = true;
      } else if (!out && n == O && d.coeff[i] == 1 && a.coeff[i] == 0 && b.coeff[i] == K) {
        out = true;
      } else if (!in && n == K && d.coeff[i] == 0 && a.coeff[i] == 1 && b.coeff[i] == 1) {
        in = true;
      } else {
        if (d.coeff[i] % (B * O) || a.coeff[i] % (B * K) || b.coeff[i] % (K * O) ||
            d.coeff[i] < 0 || a.coeff[i] < 0 || b.coeff[i] < 0) {
          no_unit(
              "gemm",
              cat("a loop of ", n, " steps by ", d.coeff[i], ", ", a.coeff[i], " and ", b.coeff[i],
                  " scalars of the sum, the input and the weights"),
              s, cat("GEMM works on elements of ", B * O, ", ", B * K, " and ", K * O, " scalars"));
        }
        dims.push_back({n, d.coeff[i] / (B * O), a.coeff[i] / (B * K), b.coeff[i] / (K * O)});
      }
    }
    if (!batch || !in || !out) {
      no_unit("gemm",
              cat("the innermost loops are not those of GEMM: ",
                  batch ? "" : cat("a batch of ", B, " "),
                  out ? "" : cat("an output block of ", O, " "), in ? "" : cat("a sum over ", K)),
              s,
              cat("needed: sum[", B, "][", O, "] += input[", B, "][", K, "] * weights[", O, "][", K,
                  "], the last index of each neighbouring in memory"));
    }
    if (d.base % (B * O) || a.base % (B * K) || b.base % (K * O))
      no_unit("gemm", "an operand does not begin at an element", s);
    if (nest.init) reset_for(nest, dst);
    Uop first{element(dst.at + d.base / (B * O)), element(px->at + a.base / (B * K)),
              element(pw->at + b.base / (K * O))};
    emit([this, k = UopKernel::compress(std::move(dims), first)] { b_.gemm(k); });
    return true;
  }

  /// Instructions of a unit are recorded once all of it is known to be one: a nest that is refused
  /// half way is tried again inside its outer loop, and must have left nothing.
  void emit(std::function<void()> instruction) { unit_.push_back(std::move(instruction)); }
  void emit_reset(std::vector<Loop> dims, std::uint32_t dst) {
    emit([this, k = UopKernel::compress(std::move(dims), {dst, 0, 0})] { b_.reset(k); });
  }
  void emit_alu(AluOp op, UopKernel kernel, std::int64_t number) {
    emit([this, op, number, k = std::move(kernel)] { b_.alu_imm(op, k, number); });
  }

  static std::uint32_t element(std::int64_t at) { return static_cast<std::uint32_t>(at); }

  /// Loops over whole accumulator elements; `keep` decides which loops count.
  std::vector<Loop> acc_dims(const Nest& nest, const Affine& d, const Affine* src, bool keep_sums,
                             const StmtNode* where) const {
    const std::int64_t lanes = c_.lanes();
    std::int64_t covered = 1;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      if (nest.loops[i].extent > 1) order.push_back(i);
    }
    std::vector<bool> lane(nest.loops.size(), false);
    std::vector<Loop> out;
    std::sort(order.begin(), order.end(),
              [&](std::size_t x, std::size_t y) { return d.coeff[x] < d.coeff[y]; });
    for (std::size_t i : order) {
      std::int64_t n = nest.loops[i].extent, step = d.coeff[i], other = src ? src->coeff[i] : step;
      if (step == 0 && !keep_sums) continue;
      if (step != 0 && covered < lanes && step == covered) {
        if (other != covered)
          no_unit("alu", "the operands' lanes are laid out differently", where,
                  cat("both must be elements of ", lanes, " lanes"));
        if (n * covered <= lanes) {
          covered *= n;
          continue;
        }
        if (n % (lanes / covered))
          no_unit("alu", cat("runs of ", n * covered, " lanes do not make up elements of ", lanes),
                  where);
        out.push_back({n / (lanes / covered), 1, 1, 0});
        covered = lanes;
        continue;
      }
      if (step % lanes || other % lanes || step < 0 || other < 0)
        no_unit(
            "alu",
            cat("a loop steps by ", step, " and ", other, " lanes, no whole elements of ", lanes),
            where);
      out.push_back({n, step / lanes, other / lanes, 0});
    }
    if (covered != lanes)
      no_unit("alu",
              cat("the nest covers ", covered, " neighbouring lanes, an element has ", lanes),
              where);
    if (d.base % lanes || (src && src->base % lanes))
      no_unit("alu", "it begins inside an element", where);
    std::reverse(out.begin(), out.end());
    return out;
  }

  /// The initial value of a sum: at the first step of its reduction loops.
  void reset_for(const Nest& nest, const Placed& dst) {
    const StoreNode* s = nest.init;
    if (!is_const_int_value(strip_casts(s->value), 0))
      no_unit("init", cat("a sum begins at ", print(s->value)), s,
              "GEMM's reset sets to 0; add another start with ALU");
    Affine d = index(s->indices, nest, s);
    if (nest.init_guard && !first_step(nest.init_guard, nest, d, s)) return;
    emit_reset(acc_dims(nest, d, nullptr, false, s), element(dst.at + d.base / c_.lanes()));
  }

  /// Whether the guard (a conjunction of "this reduction index is at its first value") holds for
  /// the nest's first step; false: for none of them.
  bool first_step(const Expr& guard, const Nest& nest, const Affine& d,
                  const StmtNode* where) const {
    if (const auto* both = as<BinaryNode>(guard); both && both->kind == ExprKind::and_) {
      return first_step(both->a, nest, d, where) && first_step(both->b, nest, d, where);
    }
    const auto* equal = as<BinaryNode>(guard);
    std::optional<Affine> x, y;
    if (equal && equal->kind == ExprKind::eq)
      x = affine(equal->a, nest.loops, env_), y = affine(equal->b, nest.loops, env_);
    if (!x || !y)
      no_unit("init",
              cat("the condition ", print(guard), " of the initial value is not understood"),
              where);
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
      x->coeff[i] -= y->coeff[i];
      if (x->coeff[i] == 0) continue;
      if (d.coeff[i] != 0 || x->coeff[i] < 0)
        no_unit(
            "init",
            cat("the condition ", print(guard), " of the initial value differs between results"),
            where);
    }
    return x->base == y->base;
  }

  // ---- ALU

  void chain(const Nest& nest, const Expr& value, const StoreNode* s, const Placed& dst) {
    Affine d = index(s->indices, nest, s);
    int steps = 0;
    std::vector<Loop> in_place = acc_dims(nest, d, nullptr, true, s);
    Uop here{element(dst.at + d.base / c_.lanes()), element(dst.at + d.base / c_.lanes()), 0};
    for (Loop& l : in_place) l.src = l.dst;
    bool sums = std::any_of(in_place.begin(), in_place.end(),
                            [](const Loop& l) { return l.dst == 0 && l.extent > 1; });
    evaluate(nest, value, s, dst, d, in_place, here, steps);
    if (sums && steps > 1)
      no_unit("alu", "a chain of operations inside a reduction has no order on this machine", s,
              "one operation per reduction");
  }

  /// Leaves the value of `e` in the destination.
  void evaluate(const Nest& nest, const Expr& e, const StoreNode* s, const Placed& dst,
                const Affine& d, const std::vector<Loop>& in_place, const Uop& here, int& steps) {
    Expr v = strip_widening(e);
    auto reset = [&] {
      std::vector<Loop> dims = in_place;
      for (Loop& l : dims) l.src = 0;
      emit_reset(std::move(dims), here.dst);
    };
    std::int64_t number;
    if (is_const_int(v, &number)) {
      reset();
      UopKernel all = UopKernel::compress(in_place, here);
      auto low = static_cast<std::int16_t>(number & 0xffff);
      std::int64_t high = (number - low) >> 16;
      if (high) {  // more than 16 bits: in two halves
        emit_alu(AluOp::add, all, high == 32768 ? -32768 : high);
        emit_alu(AluOp::shr, all, -16);
      }
      if (low) emit_alu(AluOp::add, all, low);
      return;
    }
    if (const auto* c = as<CastNode>(v)) {  // keeps fewer bits: up and down again
      if (!c->dtype.is_int()) unsupported(v, s);
      evaluate(nest, c->value, s, dst, d, in_place, here, steps);
      steps += 2;
      UopKernel all = UopKernel::compress(in_place, here);
      emit_alu(AluOp::shr, all, c->dtype.bits - 32);
      emit_alu(AluOp::shr, all, 32 - c->dtype.bits);
      return;
    }
    if (const auto* load = as<LoadNode>(v)) {
      if (load->buffer.get() == s->buffer.get()) {
        if (index(load->indices, nest, s) != d)
          no_unit("alias",
                  cat("\"", s->buffer->name, "\" is read at another place than it is written"), s);
        return;
      }
      reset();  // there is no move: zero, then add
      operand(AluOp::add, nest, load, s, dst, d, here, steps);
      return;
    }
    AluOp op = AluOp::add;
    Expr a, b;
    bool negate = false;
    if (const auto* bin = as<BinaryNode>(v)) {
      a = bin->a, b = bin->b;
      switch (bin->kind) {
        case ExprKind::add: op = AluOp::add; break;
        case ExprKind::sub: op = AluOp::add, negate = true; break;
        case ExprKind::mul: op = AluOp::mul; break;
        case ExprKind::min: op = AluOp::min; break;
        case ExprKind::max: op = AluOp::max; break;
        default: unsupported(v, s);
      }
    } else if (const auto* call = as<CallNode>(v);
               call && call->args.size() == 2 &&
               (call->op == "shift_right" || call->op == "shift_left")) {
      a = call->args[0], b = call->args[1], op = AluOp::shr, negate = call->op == "shift_left";
    } else {
      unsupported(v, s);
    }
    bool commutes = op != AluOp::shr && !negate;
    auto simple = [](const Expr& x) {
      return is_const_int(strip_widening(x)) || as<LoadNode>(strip_widening(x));
    };
    auto is_self = [&](const Expr& x) {
      const auto* l = as<LoadNode>(strip_widening(x));
      return l && l->buffer.get() == s->buffer.get();
    };
    if (commutes && (is_const_int(strip_widening(a)) || (simple(a) && !simple(b)) ||
                     (is_self(b) && !is_self(a))))
      std::swap(a, b);
    if (!simple(b))
      no_unit("alu", cat("both sides of ", print(v), " are expressions"), s,
              "give one of them a buffer of its own in vta.acc");
    if (is_self(b) && !is_self(a))
      no_unit("alias",
              cat("\"", s->buffer->name, "\" would be overwritten before ", print(v), " reads it"),
              s);
    evaluate(nest, a, s, dst, d, in_place, here, steps);
    ++steps;
    if (is_const_int(strip_widening(b), &number)) {
      emit_alu(op, UopKernel::compress(in_place, here), negate ? -number : number);
      return;
    }
    if (negate)
      no_unit("alu", cat("the machine cannot do ", print(v), " with two buffers"), s,
              "it subtracts and shifts left by constants only");
    operand(op, nest, as<LoadNode>(strip_widening(b)), s, dst, d, here, steps);
  }

  void operand(AluOp op, const Nest& nest, const LoadNode* load, const StoreNode* s, const Placed&,
               const Affine& d, const Uop& here, int&) {
    const Placed* src = placed(load->buffer.get());
    if (!src || src->mem != MemType::acc) {
      no_unit("operand",
              cat("ALU reads vta.acc, but \"", load->buffer->name, "\" lies in \"",
                  load->buffer->scope, "\""),
              s, cat("sch.cache_read(block, i, \"vta.acc\") brings it there"));
    }
    Affine x = index(load->indices, nest, s);
    if (load->buffer.get() == s->buffer.get() && x != d)
      no_unit("alias", cat("\"", s->buffer->name, "\" is read at another place than it is written"),
              s);
    emit([this, op,
          k = UopKernel::compress(acc_dims(nest, d, &x, true, s),
                                  {here.dst, element(src->at + x.base / c_.lanes()), 0})] {
      b_.alu(op, k);
    });
  }

  [[noreturn]] void unsupported(const Expr& v, const StoreNode* s) const {
    no_unit("operation", cat("the machine cannot compute ", print(v)), s,
            "ALU does min, max, +, * and shifts of int32; GEMM sums of int8 products");
  }

  const PrimFunc& f_;
  const Config& c_;
  Builder b_;
  Environment env_;
  std::map<const BufferNode*, int> params_;
  ChipMemory chip_;
  std::vector<std::function<void()>> unit_;
  std::optional<Refusal> reason_;  // why the outermost nest was no unit
};

}  // namespace

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
