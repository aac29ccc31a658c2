// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/atomic.h"
#include "weft/ir/attributes.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/targets/cpu/emit_llvm.h"
#include "weft/targets/cpu/llvm_function.h"

namespace weft::cpu {

using namespace ir;

namespace {
constexpr std::int64_t kStackBytes = 64 * 1024;  // a larger local buffer comes from the workspace
}

std::string FunctionEmitter::body(const Stmt& s) {
  stmt(s);
  return_code("0", frees_.size());
  return "entry:\n" + entry_allocas_ + text_;
}

void FunctionEmitter::return_code(const std::string& code, std::size_t n) {
  for (std::size_t i = n; i-- > 0;) {
    std::string slot = let("getelementptr i8, ptr %ctx, i64 24");
    std::string f = let(cat("load ptr, ptr ", slot));
    line(cat("call void ", f, "(ptr %ctx, ptr ", frees_[i], ")"));
  }
  if (streams_) {  // streamed stores become visible before whoever waits for this function goes on
#if defined(__x86_64__)
    module_.declarations.insert("declare void @llvm.x86.sse.sfence()");
    line("call void @llvm.x86.sse.sfence()");
#else
    line("fence release");
#endif
  }
  line(cat("ret i32 ", code));
}

void FunctionEmitter::stmt(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::store: return store(as<StoreNode>(s));
    case StmtKind::seq:
      for (const Stmt& child : as<SeqNode>(s)->stmts) stmt(child);
      return;
    case StmtKind::for_: {
      const auto* f = as<ForNode>(s);
      return f->for_kind == ForKind::parallel ? parallel(f) : loop(f);
    }
    case StmtKind::if_: {
      const auto* t = as<IfNode>(s);
      std::string yes = label(), no = t->else_case ? label() : "", done = label();
      line(
          cat("br i1 ", expr(t->condition), ", label %", yes, ", label %", no.empty() ? done : no));
      begin_block(yes);
      stmt(t->then_case);
      line(cat("br label %", done));
      if (t->else_case) {
        begin_block(no);
        stmt(t->else_case);
        line(cat("br label %", done));
      }
      return begin_block(done);
    }
    case StmtKind::while_: {
      const auto* t = as<WhileNode>(s);
      std::string head = label(), inside = label(), done = label();
      line(cat("br label %", head));
      begin_block(head);
      line(cat("br i1 ", expr(t->condition), ", label %", inside, ", label %", done));
      begin_block(inside);
      stmt(t->body);
      line(cat("br label %", head));
      return begin_block(done);
    }
    case StmtKind::let: {
      const auto* t = as<LetStmtNode>(s);
      vars[t->var.get()] = expr(t->value);
      return stmt(t->body);
    }
    case StmtKind::assert_: {
      const auto* t = as<AssertNode>(s);
      std::string good = label(), bad = label();
      line(cat("br i1 ", expr(t->condition), ", label %", good, ", label %", bad));
      begin_block(bad);
      assertions->push_back(t->message);
      return_code(std::to_string(assertions->size()), frees_.size());
      return begin_block(good);
    }
    case StmtKind::evaluate: {
      const Expr& e = as<EvaluateNode>(s)->value;
      if (const auto* c = as<CallNode>(e); c && c->op == "sync")
        return;  // one thread needs no barrier
      expr(e);
      return;
    }
    case StmtKind::allocate: return allocate(as<AllocateNode>(s));
    case StmtKind::async:  // work started is work done: one queue, in order
      vars[as<AsyncNode>(s)->token.get()] = "0";
      return stmt(as<AsyncNode>(s)->body);
    case StmtKind::wait: return;
    default:
      throw Error(ErrorKind::emit, "cpu.emit.statement",
                  "a statement reached the emitter of cpu that a pass should have lowered: " +
                      print(s).substr(0, 200));
  }
}

void FunctionEmitter::store(const StoreNode* s) {
  WEFT_CHECK(s->indices.size() == 1, "buffer \"", s->buffer->name, "\" is not flat");
  DType element = s->buffer->dtype, t = s->value->dtype;
  const Expr& index = s->indices[0];
  if (const CallNode* c = as_atomic(s)) {  // no order is asked of other memory
    const std::string added = expr(c->args[1]), at = address(s->buffer.get(), expr(index));
    const char* const step = c->op == "atomic_max" ? t.is_int() ? "max" : "umax"
                             : t.is_float()        ? "fadd"
                                                   : "add";
    let(cat("atomicrmw ", step, " ptr ", at, ", ", memory_type(t), " ", added, " monotonic, align ",
            t.bytes()));
    return;
  }
  std::string value = to_memory(t, expr(s->value)), align = std::to_string(element.bytes());
  if (const auto* c = as<CallNode>(s->value); c && c->op == "nontemporal") {
    const auto* r = as<RampNode>(index);
    bool whole = t.lanes == 1 || (r && is_const_int_value(r->stride, 1));
    if (whole) return stream(t, value, address(s->buffer.get(), expr(r ? r->base : index)));
  }
  if (t.lanes == 1) {
    line(cat("store ", memory_type(t), " ", value, ", ptr ", address(s->buffer.get(), expr(index)),
             ", align ", align));
    return;
  }
  module_.explicit_vectors = true;
  if (const auto* r = as<RampNode>(index); r && is_const_int_value(r->stride, 1)) {
    line(cat("store ", memory_type(t), " ", value, ", ptr ",
             address(s->buffer.get(), expr(r->base)), ", align ", align));
    return;
  }
  std::string at = expr(index);
  for (int i = 0; i < t.lanes; ++i) {
    std::string v = let(cat("extractelement ", memory_type(t), " ", value, ", i32 ", i));
    line(cat("store ", memory_type(element), " ", v, ", ptr ",
             address(s->buffer.get(), lane(index->dtype, at, i)), ", align ", align));
  }
}

/// A store past the caches. Vectors need a whole, aligned address for it: one that is not aligned
/// at run time is stored as usual.
void FunctionEmitter::stream(DType t, const std::string& value, const std::string& pointer) {
  const auto bytes = static_cast<int>(t.total_bytes());
  const std::string type = memory_type(t);
  streams_ = true;
  module_.nontemporal = true;
  if (t.lanes == 1) {
    line(
        cat("store ", type, " ", value, ", ptr ", pointer, ", align ", bytes, ", !nontemporal !0"));
    return;
  }
  module_.explicit_vectors = true;
  // Machine vectors: a longer one is written in pieces, the natural alignment of the widest is 64.
  const int align =
      static_cast<int>(std::min<unsigned>(std::bit_floor(static_cast<unsigned>(bytes)), 64));
  std::string number = let(cat("ptrtoint ptr ", pointer, " to i64"));
  std::string rest = let(cat("and i64 ", number, ", ", align - 1));
  std::string aligned = let(cat("icmp eq i64 ", rest, ", 0"));
  std::string fast = label(), slow = label(), done = label();
  line(cat("br i1 ", aligned, ", label %", fast, ", label %", slow));
  begin_block(fast);
  line(cat("store ", type, " ", value, ", ptr ", pointer, ", align ", align, ", !nontemporal !0"));
  line(cat("br label %", done));
  begin_block(slow);
  line(cat("store ", type, " ", value, ", ptr ", pointer, ", align ", t.element().bytes()));
  line(cat("br label %", done));
  begin_block(done);
}

void FunctionEmitter::allocate(const AllocateNode* s) {
  std::int64_t count = 1, extent;
  bool constant = true;
  Expr total = make_int(1);
  for (const Expr& e : s->buffer->shape) {
    constant = constant && is_const_int(e, &extent);
    if (constant) count *= extent;
    total = total * e;
  }
  std::string pointer = cat("%a", next_++);
  if (constant && count * s->buffer->dtype.bytes() <= kStackBytes) {
    entry_allocas_ += cat("  ", pointer, " = alloca [", std::max<std::int64_t>(count, 1), " x ",
                          memory_type(s->buffer->dtype), "], align 64\n");
    buffers[s->buffer.get()] = {pointer};
    return stmt(s->body);
  }
  std::string bytes = let(cat("mul i64 ", expr(total), ", ", s->buffer->dtype.bytes()));
  std::string slot = let("getelementptr i8, ptr %ctx, i64 16");
  std::string f = let(cat("load ptr, ptr ", slot));
  line(cat(pointer, " = call noalias ptr ", f, "(ptr %ctx, i64 ", bytes, ", i64 64)"));
  std::string none = let(cat("icmp eq ptr ", pointer, ", null")), bad = label(), good = label();
  line(cat("br i1 ", none, ", label %", bad, ", label %", good));
  begin_block(bad);
  assertions->push_back(cat("no memory for workspace \"", s->buffer->name, "\""));
  return_code(std::to_string(assertions->size()), frees_.size());
  begin_block(good);
  buffers[s->buffer.get()] = {pointer};
  frees_.push_back(pointer);
  stmt(s->body);
  frees_.pop_back();
  std::string free_slot = let("getelementptr i8, ptr %ctx, i64 24");
  std::string release = let(cat("load ptr, ptr ", free_slot));
  line(cat("call void ", release, "(ptr %ctx, ptr ", pointer, ")"));
}

void FunctionEmitter::loop_over(const Var& var, const std::string& low, const std::string& end,
                                bool runs, const Stmt& s) {
  std::string type = value_type(var->dtype), head = label(), done = label(), before = block_;
  if (runs) {
    line(cat("br label %", head));
  } else {
    std::string any = let(cat("icmp slt ", type, " ", low, ", ", end));
    line(cat("br i1 ", any, ", label %", head, ", label %", done));
  }
  std::string i = cat("%i", next_++), next = cat("%n", next_++), latch = label();
  // The latch's name is known before the body is written: the phi can be complete.
  begin_block(head);
  line(cat(i, " = phi ", type, " [ ", low, ", %", before, " ], [ ", next, ", %", latch, " ]"));
  vars[var.get()] = i;
  stmt(s);
  line(cat("br label %", latch));
  begin_block(latch);
  line(cat(next, " = add nsw ", type, " ", i, ", 1"));
  std::string more = let(cat("icmp slt ", type, " ", next, ", ", end));
  line(cat("br i1 ", more, ", label %", head, ", label %", done));
  begin_block(done);
}

void FunctionEmitter::loop(const ForNode* s) {
  std::int64_t extent = 0;
  bool constant = is_const_int(s->extent, &extent);
  if (constant && extent <= 0) return;
  std::string low = expr(s->min), end = expr(s->min + s->extent);
  loop_over(s->var, low, end, constant, s->body);
}

void FunctionEmitter::parallel(const ForNode* s) {
  // What the body uses from outside travels in a struct of 8-byte slots.
  std::unordered_set<const VarNode*> used = free_vars(s->body);
  std::unordered_set<const BufferNode*> touched = used_buffers(s->body);
  std::vector<std::pair<const VarNode*, std::string>> captured_vars;
  std::vector<std::pair<const BufferNode*, std::string>> captured_buffers;
  for (const auto& [v, value] : vars) {
    if (used.count(v)) captured_vars.emplace_back(v, value);
  }
  for (const auto& [b, value] : buffers) {
    if (touched.count(b)) captured_buffers.emplace_back(b, value.pointer);
  }
  std::sort(captured_vars.begin(), captured_vars.end(),
            [](auto& a, auto& b) { return a.second < b.second; });
  std::sort(captured_buffers.begin(), captured_buffers.end(),
            [](auto& a, auto& b) { return a.second < b.second; });
  std::size_t slots = captured_vars.size() + captured_buffers.size() + 2;
  std::string closure = cat("%c", next_++);
  entry_allocas_ += cat("  ", closure, " = alloca [", slots, " x i64], align 8\n");
  std::string function = cat(name_, ".par", module_.outlined++), low = expr(s->min);

  FunctionEmitter inner(module_, function);
  inner.assertions = assertions;
  std::size_t k = 0;
  auto slot = [&](FunctionEmitter& f, const std::string& base, std::size_t index) {
    return f.let(cat("getelementptr i64, ptr ", base, ", i64 ", index));
  };
  auto put = [&](const std::string& type, const std::string& value) {
    line(cat("store ", type, " ", value, ", ptr ", slot(*this, closure, k)));
    std::string p = slot(inner, "%closure", k++);
    return inner.let(cat("load ", type, ", ptr ", p));
  };
  std::string ctx_inside = put("ptr", "%ctx");
  inner.text_ += cat("  %ctx = getelementptr i8, ptr ", ctx_inside, ", i64 0\n");
  std::string low_inside = put(value_type(s->var->dtype), low);
  for (const auto& [v, value] : captured_vars) inner.vars[v] = put(value_type(v->dtype), value);
  for (const auto& [b, value] : captured_buffers) inner.buffers[b] = {put("ptr", value)};
  std::string begin = s->var->dtype.bits == 64
                          ? "%begin"
                          : inner.let(cat("trunc i64 %begin to ", value_type(s->var->dtype)));
  std::string end = s->var->dtype.bits == 64
                        ? "%end"
                        : inner.let(cat("trunc i64 %end to ", value_type(s->var->dtype)));
  std::string from =
      inner.let(cat("add ", value_type(s->var->dtype), " ", low_inside, ", ", begin));
  std::string to = inner.let(cat("add ", value_type(s->var->dtype), " ", low_inside, ", ", end));
  inner.loop_over(s->var, from, to, false, s->body);
  inner.return_code("0", inner.frees_.size());
  module_.functions += cat("define internal i32 @", function,
                           "(i64 %begin, i64 %end, ptr noalias %closure) {\nentry:\n",
                           inner.entry_allocas_, inner.text_, "}\n\n");

  std::string extent = expr(ir::cast(dtypes::int64, s->extent));
  std::string at = let("getelementptr i8, ptr %ctx, i64 8");
  std::string run = let(cat("load ptr, ptr ", at));
  std::string code = let(cat("call i32 ", run, "(ptr %ctx, i64 ", extent, ", ptr @", function,
                             ", ptr ", closure, ")"));
  std::string failed = let(cat("icmp ne i32 ", code, ", 0")), bad = label(), good = label();
  line(cat("br i1 ", failed, ", label %", bad, ", label %", good));
  begin_block(bad);
  return_code(code, frees_.size());
  begin_block(good);
}

LlvmText emit_llvm(const std::vector<PrimFunc>& kernels, int vector_bytes,
                   const DotInstructions& dots) {
  ModuleText module;
  module.dots = dots;
  module.vector_bytes = vector_bytes;
  LlvmText out;
  for (const PrimFunc& f : kernels) {
    FunctionEmitter emitter(module, f->name);
    emitter.assertions = &out.assertions[f->name];
    const Json* contract = find_annotation(f->attrs, "contract");
    module.contract = !contract || ir::has_flag(f->attrs, "contract");
    module.vector_lanes.clear();
    ir::for_each_expr(f->body, [&](const Expr& e) {
      const auto* call = as<CallNode>(e);
      if (!call || call->dtype.lanes == 1) return;
      const std::string op = call->op == "exp2_flush" ? "exp2" : call->op;
      int& lanes = module.vector_lanes[{op, std::max<int>(call->dtype.bits, 32)}];
      lanes = std::max<int>(lanes, call->dtype.lanes);
    });
    bool noalias = ir::has_flag(f->attrs, "noalias") || ir::has_flag(f->attrs, "tir.noalias");
    std::string parameters, unpack, list;
    int pointers = 0, scalars = 0;
    for (std::size_t i = 0; i < f->params.size(); ++i) {
      const Param& p = f->params[i];
      std::string name = cat("%p", i), separator = i ? ", " : "";
      if (p.buffer) {
        emitter.buffers[p.buffer.get()] = {name};
        parameters += cat(separator, noalias ? "ptr noalias " : "ptr ", name);
        unpack += cat("  %ps", i, " = getelementptr ptr, ptr %pointers, i64 ", pointers++, "\n  ",
                      name, " = load ptr, ptr %ps", i, "\n");
        list += cat(separator, "ptr ", name);
        continue;
      }
      emitter.vars[p.var.get()] = name;
      std::string type = value_type(p.var->dtype);
      parameters += cat(separator, type, " ", name);
      unpack += cat("  %ps", i, " = getelementptr i64, ptr %scalars, i64 ", scalars++, "\n");
      DType t = p.var->dtype;
      if (t.is_float()) {
        unpack += cat("  %pd", i, " = load double, ptr %ps", i, "\n");
        unpack += t.bits == 64 ? cat("  ", name, " = fadd double %pd", i, ", 0x8000000000000000\n")
                               : cat("  ", name, " = fptrunc double %pd", i, " to ", type, "\n");
      } else if (t.bits == 64) {
        unpack += cat("  ", name, " = load i64, ptr %ps", i, "\n");
      } else {
        unpack += cat("  %pd", i, " = load i64, ptr %ps", i, "\n  ", name, " = trunc i64 %pd", i,
                      " to ", type, "\n");
      }
      list += cat(separator, type, " ", name);
    }
    std::string separator = f->params.empty() ? "" : ", ";
    std::string text = emitter.body(f->body);
    module.functions += cat("define internal i32 @", f->name, ".body(", parameters, separator,
                            "ptr %ctx) {\n", text, "}\n\n");
    module.functions += cat("define i32 @", f->name, "(ptr %pointers, ptr %scalars, ptr %ctx) {\n",
                            unpack, "  %r = call i32 @", f->name, ".body(", list, separator,
                            "ptr %ctx)\n  ret i32 %r\n}\n\n");
  }
  for (const std::string& d : module.declarations) out.text += d + "\n";
  out.text += "\n" + module.helper_text + module.functions;
  if (module.nontemporal) out.text += "!0 = !{i32 1}\n";
  out.explicit_vectors = module.explicit_vectors;
  return out;
}

}  // namespace weft::cpu
