// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/emit.h"

#include <algorithm>
#include <map>
#include <vector>

#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/targets/qpu/compiler/compile.h"
#include "weft/targets/qpu/tensor/lowerer.h"

namespace weft::qpu::tensor {

using namespace ir;

namespace {

bool is_word(DType t) {
  return t.is_scalar() && (t == dtypes::float32 || t == dtypes::int32 || t == dtypes::uint32);
}

/// Index arithmetic is 64 bits wide in the IR and 32 on the machine, whose memory is smaller.
bool is_value(DType t) { return is_word(t) || t == dtypes::int64 || t.is_bool() || t.is_handle(); }

bool known(const std::string& op) {
  for (const char* name :
       {"likely", "reinterpret", "if_then_else", "instruction", "abs", "fma", "bitwise_and",
        "bitwise_or", "bitwise_xor", "bitwise_not", "clz", "shift_left", "shift_right", "signbit",
        "isnan", "isinf", "isfinite", "sync", "prefetch"}) {
    if (op == name) return true;
  }
  return has_math(op);
}

class Judge final : public Visitor {
 public:
  Verdict verdict;

  void visit(const Expr& e) override {
    if (!e || verdict) return;
    if (const auto* c = as<CallNode>(e); c && !known(c->op)) {
      refuse("intrinsic", cat("\"", c->op, "\" in ", print(e), " has no form on the QPU"));
    } else if (e->kind != ExprKind::string_imm && !is_value(e->dtype)) {
      refuse("dtype", cat("\"", print(e), "\" is ", to_string(e->dtype),
                          "; the QPU computes with float32 and int32"));
    } else if (const auto* l = as<LoadNode>(e); l && !is_word(l->dtype)) {
      refuse("dtype", cat("\"", print(e), "\" reads ", to_string(l->dtype),
                          "; the QPU reads words of 32 bits"));
    } else {
      Visitor::visit(e);
    }
  }
  void visit(const Stmt& s) override {
    if (!s || verdict) return;
    switch (s->kind) {
      case StmtKind::async:
      case StmtKind::wait:
      case StmtKind::collective:
        return refuse("statement", cat("a statement of kind ", static_cast<int>(s->kind),
                                       " (asynchrony or communication) has no form on the QPU"));
      default: Visitor::visit(s);
    }
  }
  void visit_region(const BufferRegion&) override {}
  void visit_block(const Block& block) override {
    std::string outer = std::exchange(block_, block->name);
    visit(block->init);
    visit(block->body);
    for (const Buffer& b : block->alloc_buffers) check(b);
    block_ = outer;
  }
  void check(const Buffer& b) {
    if (verdict) return;
    if (!is_word(b->dtype))
      refuse("dtype",
             cat("buffer \"", b->name, "\" holds ", to_string(b->dtype),
                 "; the QPU computes with float32 and int32"),
             nearest(b->dtype));
    else if (b->scope != "global" && b->scope != "local")
      refuse("scope", cat("buffer \"", b->name, "\" lies in scope \"", b->scope,
                          "\"; legal are \"global\" and \"local\""));
  }

 protected:
  void visit_for(const ForNode* s) override {
    std::int64_t n = 0;
    const bool counted = is_const_int(s->extent, &n) && n > 0;
    if (s->for_kind == ForKind::bound && s->axis == "lane" && !counted && !verdict)
      refuse("lanes",
             cat("loop \"", s->var->name, "\" is bound to \"lane\" and has extent ",
                 print(s->extent), "; legal are constants from 1 to 16"),
             "split it by 16 and bind the inner loop");
    loops_.push_back(s);
    Visitor::visit_for(s);
    loops_.pop_back();
  }
  void visit_block_realize(const BlockRealizeNode* s) override {
    std::map<std::string, const ForNode*> bound;
    for (const ForNode* loop : loops_) {
      if (loop->for_kind != ForKind::bound || is_const_int_value(loop->extent, 1)) continue;
      const bool used = std::any_of(s->iter_values.begin(), s->iter_values.end(),
                                    [&](const Expr& e) { return uses_var(e, loop->var.get()); });
      if (!used) continue;
      const auto [first, fresh] = bound.try_emplace(loop->axis, loop);
      if (!fresh && !verdict)
        refuse("axis",
               cat("loops \"", first->second->var->name, "\" and \"", loop->var->name,
                   "\" around block \"", s->block->name, "\" are both bound to \"", loop->axis,
                   "\", so only points with equal numbers would be visited"),
               "bind one of them to another axis, or fuse them");
    }
    for (const Expr& e : s->iter_values) visit(e);
    visit_block(s->block);
  }

 private:
  /// What turns values of another type into some that the QPU has.
  static std::string nearest(DType t) {
    return cat("convert it before, with .astype(\"", t.is_float() ? "float32" : "int32",
               "\"), or build the program for another target");
  }
  void refuse(std::string_view rule, std::string what,
              std::string repair =
                  "build the program for another target, or write this part with <weft/qpu.h>") {
    Refusal r;
    r.code = cat("qpu.accepts.", rule);
    r.message = std::move(what);
    if (!block_.empty() && block_ != "root") r.note(cat("in block \"", block_, "\""));
    r.repair(std::move(repair));
    verdict = std::move(r);
  }
  std::string block_;
  std::vector<const ForNode*> loops_;  // around the statement at hand
};

}  // namespace

Verdict accepts(const PrimFunc& f) {
  Judge judge;
  for (const Param& p : f->params) {
    if (p.buffer) judge.check(p.buffer);
  }
  judge.visit(f->body);
  return judge.verdict;
}

runtime::Binary emit(const std::vector<PrimFunc>& kernels, const std::string& target) {
  runtime::Binary out;
  out.target = target;
  out.format = "qpu";
  out.metadata = Json::object();
  out.metadata["programs"] = Json::array();
  for (const PrimFunc& f : kernels) {
    Compiled compiled;
    try {
      compiled = compile_program(*lower_kernel(f));
    } catch (Error& e) {
      throw e.context(cat("while lowering kernel ", f->name, " to the QPU"));
    }
    const runtime::Binary& one = compiled.binary;
    Json program = one.metadata;
    program["first"] = static_cast<std::int64_t>(out.bytes.size() / 8);
    program["words"] = static_cast<std::int64_t>(one.bytes.size() / 8);
    out.metadata["programs"].push_back(program);
    for (runtime::DebugEntry d : one.debug) {
      d.pc += out.bytes.size();
      out.debug.push_back(std::move(d));
    }
    out.source += cat("// kernel ", f->name, "\n", one.source);
    out.bytes += one.bytes;
    runtime::KernelSignature signature;
    signature.name = f->name;
    for (const Param& p : f->params) {
      if (p.buffer)
        signature.params.push_back(
            {p.buffer->name, runtime::ParamKind::pointer, p.buffer->dtype, "global"});
      else
        signature.params.push_back(
            {p.var->name, runtime::ParamKind::scalar, p.var->dtype, "global"});
    }
    signature.axes = {"qpu", "lane"};
    out.kernels.push_back(std::move(signature));
  }
  return out;
}

}  // namespace weft::qpu::tensor
