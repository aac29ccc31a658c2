// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/target/emit_c_kernel.h"

namespace weft::emit {

void KernelText::line(const std::string& text) {
  text_ += std::string(static_cast<std::size_t>(indent_) * 2, ' ') + text + "\n";
}

void KernelText::body(const Stmt& s) {
  ++indent_;
  stmt(s);
  --indent_;
}

void KernelText::stmt(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::store: store_stmt(as<StoreNode>(s)); break;
    case StmtKind::seq:
      for (const Stmt& child : as<SeqNode>(s)->stmts) stmt(child);
      break;
    case StmtKind::for_: for_stmt(as<ForNode>(s)); break;
    case StmtKind::if_: {
      const auto* t = as<IfNode>(s);
      line(cat("if (", expr_.bare_value(t->condition), ") {"));
      body(t->then_case);
      if (t->else_case) {
        line("} else {");
        body(t->else_case);
      }
      line("}");
      break;
    }
    case StmtKind::while_: {
      const auto* t = as<WhileNode>(s);
      line(cat("while (", expr_.bare_value(t->condition), ") {"));
      body(t->body);
      line("}");
      break;
    }
    case StmtKind::let: let_stmt_text(as<LetStmtNode>(s)); break;
    case StmtKind::assert_: assert_text(as<AssertNode>(s)); break;
    case StmtKind::evaluate: evaluate_text(as<EvaluateNode>(s)->value); break;
    case StmtKind::allocate: allocate_text(as<AllocateNode>(s)); break;
    case StmtKind::async: async_text(as<AsyncNode>(s)); break;
    case StmtKind::wait: wait_text(as<WaitNode>(s)); break;
    default:
      throw Error(ErrorKind::emit, "emit.statement",
                  cat("a statement of kind ", static_cast<int>(s->kind), " in ", f_->name,
                      " cannot be spelled on ", spelling_.target));
  }
}

void KernelText::async_text(const AsyncNode* t) {
  if (auto queue = spelling_.queues.find(t->queue); queue != spelling_.queues.end()) {
    if (!queue->second.begin.empty()) line(cat(queue->second.begin, ";"));
    stmt(t->body);
    return line(cat(queue->second.commit, ";"));
  }
  if (spelling_.async_commit.empty()) return stmt(t->body);
  copies_ = true;
  const bool before = std::exchange(copying_, true);
  stmt(t->body);
  copying_ = before;
  line(cat(spelling_.async_commit, ";"));
}

void KernelText::wait_text(const WaitNode* t) {
  auto queue = spelling_.queues.find(queue_of_[t->token.get()]);
  const bool own = queue != spelling_.queues.end();
  if (!own && spelling_.async_commit.empty()) return;
  std::int64_t left = 0;
  if (!is_const_int(t->outstanding, &left)) {
    throw Error(ErrorKind::emit, "emit.wait",
                cat("a wait for a number of groups known only at run time cannot be spelled on ",
                    spelling_.target));
  }
  std::string text = own ? queue->second.wait : spelling_.async_wait;
  text.replace(text.find('%'), 1, std::to_string(left));
  line(cat(text, ";"));
}

bool KernelText::started_copy(const StoreNode* t) {
  const auto* l = as<LoadNode>(t->value);
  const CallNode* guard = as<CallNode>(t->value);
  if (guard && guard->op == "if_then_else" && guard->args[0]->dtype.is_scalar() &&
      same_expr(guard->args[2], make_const(0, guard->dtype)))
    l = as<LoadNode>(guard->args[1]);
  else guard = nullptr;
  if (!l || !t->buffer->scope.starts_with("shared") || l->buffer->scope != "global" ||
      l->buffer->dtype != t->buffer->dtype || l->buffer->dtype.is_bool())
    return false;
  const auto* to = as<RampNode>(t->indices[0]);
  const auto* from = as<RampNode>(l->indices[0]);
  const int lanes = t->value->dtype.lanes;
  if (lanes > 1 && !(to && from && copyable(t->buffer, to) && copyable(l->buffer, from)))
    return false;
  const auto& copies = guard ? spelling_.async_guarded : spelling_.async_copies;
  auto copy = copies.find(lanes * t->buffer->dtype.bytes());
  if (copy == copies.end()) return false;
  auto at = [&](const Buffer& b, const Expr& index, const RampNode* r) {
    return cat(expr_.name(b.get(), b->name), " + ", expr_.text(r ? r->base : index));
  };
  line(cat(copy->second, "(", at(t->buffer, t->indices[0], to), ", ",
           at(l->buffer, l->indices[0], from), guard ? cat(", ", expr_.bare(guard->args[0])) : "",
           ");"));
  return true;
}

void KernelText::for_stmt(const ForNode* t) {
  analyzer_.bind(t->var, {t->min, t->extent});
  if (t->for_kind == ForKind::parallel && spelling_.host_entry && !in_parallel_)
    return parallel_text(t);
  if (const Json* why = find_annotation(t->annotations, "scalarised"))
    line(cat("/* not vectorized: ", why->as_string(), " */"));
  std::string var = expr_.name(t->var.get(), t->var->name), type = expr_.type(t->var->dtype);
  if (t->for_kind == ForKind::unrolled && !spelling_.unroll.empty()) {
    std::int64_t n = 0;
    std::string word = spelling_.unroll;
    std::size_t at = word.find('%');
    bool constant = is_const_int(t->extent, &n);
    if (at != std::string::npos && constant && n <= 64)
      word.replace(at, 1, std::to_string(std::max<std::int64_t>(n, 1)));
    if (word.find('%') == std::string::npos) line(word);
  }
  if (const Json* by = find_annotation(t->annotations, "unroll_factor");
      by && by->is_int() && !spelling_.unroll.empty() && t->for_kind != ForKind::unrolled) {
    std::string word = spelling_.unroll;
    const std::size_t at = word.find('%');
    if (at == std::string::npos) word += " %";
    word.replace(word.find('%'), 1, std::to_string(by->as_int()));
    line(word);
  }
  if (find_annotation(t->annotations, "vectorize") && spelling_.host_entry && independent(t))
    line("#pragma GCC ivdep");
  Expr end = arith::simplify(t->min + t->extent);
  // Sums and products bind closer than <, masks and choices do not.
  const bool closer =
      end->kind == ExprKind::add || end->kind == ExprKind::sub || end->kind == ExprKind::mul;
  line(cat("for (", type, " ", var, " = ", expr_.bare(t->min), "; ", var, " < ",
           closer ? expr_.bare(end) : expr_.text(end), "; ++", var, ") {"));
  body(t->body);
  line("}");
}

void KernelText::parallel_text(const ForNode* t) {
  uses_ctx_ = true;
  std::string tag = expr_.fresh(cat(f_->name, "_parallel"));
  struct Field {
    std::string type, name;
  };
  std::vector<Field> fields;
  // Everything visible that the body uses: buffers as pointers, variables by value.
  std::vector<std::pair<std::string, const BufferNode*>> buffers;
  for (const BufferNode* b : used_buffers(t->body)) {
    if (auto it = declared_.find(b); it != declared_.end()) buffers.emplace_back(it->second, b);
  }
  for (const Param& p : f_->params) {
    if (p.buffer && used_buffers(t->body).count(p.buffer.get())) {
      std::string constant = written_.count(p.buffer.get()) ? "" : "const ";
      buffers.emplace_back(cat(constant, expr_.storage_type(p.buffer->dtype), "*"), p.buffer.get());
    }
  }
  for (const auto& [type, b] : buffers) fields.push_back({type, expr_.name(b, b->name)});
  std::unordered_set<const VarNode*> vars = free_vars(t->body);
  for (const VarNode* v : used_vars(t->min)) vars.insert(v);
  vars.erase(t->var.get());
  for (const VarNode* v : vars) {
    if (v->dtype.is_handle() || v->dtype.lanes != 1) continue;
    fields.push_back({expr_.type(v->dtype), expr_.name(v, v->name)});
  }
  std::sort(fields.begin(), fields.end(),
            [](const Field& a, const Field& b) { return a.name < b.name; });
  std::string decl = cat("struct ", tag, "_args {\n  const weft_context* ctx;\n");
  for (const Field& f : fields) decl += cat("  ", f.type, " ", f.name, ";\n");
  decl += "};\n\n";
  // The body is printed into a function of its own.
  std::string outer = std::exchange(text_, {});
  int indent = std::exchange(indent_, 1);
  bool nested = std::exchange(in_parallel_, true), streams = std::exchange(streams_, false);
  std::string var = expr_.name(t->var.get(), t->var->name), type = expr_.type(t->var->dtype);
  line(cat("for (", type, " ", var, " = (", type, ")begin; ", var, " < (", type, ")end; ++", var,
           ") {"));
  Stmt shifted = is_const_int_value(t->min, 0)
                     ? t->body
                     : substitute(t->body, {{t->var.get(), t->min + Expr(t->var)}});
  body(shifted);
  line("}");
  std::string inner = std::exchange(text_, std::move(outer));
  indent_ = indent;
  in_parallel_ = nested;
  decl +=
      cat("static int32_t ", tag, "(int64_t begin, int64_t end, void* closure) {\n  const struct ",
          tag, "_args* args = (const struct ", tag,
          "_args*)closure;\n  const weft_context* ctx = args->ctx;\n  (void)ctx;\n");
  bool alone = has_flag(f_->attrs, "noalias") || has_flag(f_->attrs, "tir.noalias");
  for (const Field& f : fields) {
    bool pointer = f.type.back() == '*';
    decl +=
        cat("  ", f.type, pointer && alone ? cat(" ", spelling_.restrict_word) : std::string(" "),
            f.name, " = args->", f.name, ";\n");
  }
  decl += inner + stream_end() + "  return 0;\n}\n\n";
  any_streams_ |= std::exchange(streams_, streams);
  functions += decl;
  line(cat("struct ", tag, "_args ", tag, "_closure;"));
  line(cat(tag, "_closure.ctx = ctx;"));
  for (const Field& f : fields) line(cat(tag, "_closure.", f.name, " = ", f.name, ";"));
  line("{");
  line(cat("  int32_t status = ctx->parallel_for(ctx, ", expr_.bare(t->extent), ", ", tag, ", &",
           tag, "_closure);"));
  line("  if (status != 0) return status;");
  line("}");
}

void KernelText::let_stmt_text(const LetStmtNode* t) {
  if (expr_.touches_data(t->value)) expr_.hold_data(t->var.get());
  if (t->value->dtype.lanes == 1) {
    bool integer = t->value->dtype.is_integral();
    if (integer) analyzer_.bind(t->var, t->value);
    if (integer) expr_.integers[t->var.get()] = substitute(t->value, expr_.integers);
    line(cat("const ", expr_.type(t->value->dtype), " ", expr_.name(t->var.get(), t->var->name),
             " = ", expr_.bare_value(t->value), ";"));
  } else if (spelling_.vectors == VectorStyle::gnu && expr_.speaks_whole(t->value)) {
    expr_.whole_vars.insert(t->var.get());
    line(cat("const ", expr_.whole_type(t->value->dtype), " ",
             expr_.name(t->var.get(), t->var->name), " = ", expr_.whole(t->value), ";"));
  } else {
    hoist_vectors(t->value, nullptr);
    std::string id = expr_.name(t->var.get(), t->var->name);
    for (int i = 0; i < t->value->dtype.lanes; ++i) {
      Lane lane{true, i, {}};
      line(cat("const ", expr_.type(t->value->dtype), " ", id, "_", i, " = ",
               expr_.bare_value(t->value, &lane), ";"));
    }
    expr_.vectors.clear();
    expr_.backwards.clear();
  }
  stmt(t->body);
}

void KernelText::assert_text(const AssertNode* t) {
  assertions.push_back(t->message);
  if (spelling_.host_entry) {
    line(cat("if (!(", expr_.bare(t->condition), ")) return ", assertions.size(), ";"));
  } else if (!spelling_.trap.empty()) {
    line(cat("if (!(", expr_.bare(t->condition), ")) { ", spelling_.trap, " }"));
  } else {
    throw Error(ErrorKind::emit, "emit.assert",
                cat("an assertion (\"", t->message, "\") inside a kernel cannot be spelled on ",
                    spelling_.target));
  }
}

void KernelText::evaluate_text(const Expr& e) {
  const auto* c = as<CallNode>(e);
  if (!c) return;
  if (c->op == "sync") {
    const auto* scope = as<StringImmNode>(c->args[0]);
    bool global = scope && scope->value == "global";
    line(cat(global ? spelling_.barrier_global : spelling_.barrier_shared, ";"));
    return;
  }
  if (c->op == "prefetch") {  // a hint
    if (spelling_.prefetch.empty()) return;
    expr_.define_helper(spelling_.prefetch, spelling_.prefetch_helper);
    std::string list = expr_.bare(c->args.at(0));
    for (std::size_t i = 1; i < 3; ++i)
      list += cat(", ", i < c->args.size() ? expr_.bare(c->args[i]) : i == 1 ? "0" : "3");
    return line(cat(spelling_.prefetch, "(", list, ");"));
  }
  line(cat(expr_.bare(e), ";"));
}

void KernelText::allocate_text(const AllocateNode* t) {
  const Buffer& b = t->buffer;
  std::string id = expr_.name(b.get(), b->name), type = expr_.storage_type(b->dtype);
  std::int64_t count = 0;
  Expr size = arith::simplify(b->shape.empty() ? make_int(1) : b->shape[0]);
  bool constant = is_const_int(size, &count);
  int width = b->dtype.bytes();
  bool shared = b->scope.starts_with("shared");
  bool gpu = !spelling_.host_entry;
  declared_[b.get()] = type + "*";
  if (const int lanes = constant ? register_lanes(t) : 0) {
    expr_.registers[b.get()] = lanes;
    line(cat(expr_.whole_type(b->dtype.with_lanes(lanes)), " ", id, "[", count / lanes, "];"));
    return stmt(t->body);
  }
  if (!constant && gpu) {
    throw Error(ErrorKind::emit, "emit.allocate",
                cat("the size of \"", b->name, "\" in scope \"", b->scope, "\" is not constant"));
  }
  if (gpu && shared) {
    bool moved = has_vector_access(t->body, b.get());
    const int align = b->align > 64 ? b->align : moved || instructions_ ? 16 : width;
    shared_.push_back({type, id, count, count * width, align, width});
  } else if (gpu) {
    if (b->scope == "global") {
      throw Error(
          ErrorKind::emit, "emit.allocate",
          cat("\"", b->name, "\" of scope \"global\" is allocated inside kernel ", f_->name))
          .help("set its scope to \"local\" or \"shared\"");
    }
    bool moved =
        spelling_.vectors == VectorStyle::members || spelling_.vectors == VectorStyle::casts;
    line(cat(
        moved && count * width >= 16 && has_vector_access(t->body, b.get()) ? align_word(16) : "",
        spelling_.local, type, " ", id, "[", count, "];"));
  } else if (constant && count * width <= 32768) {
    line(cat("_Alignas(64) ", type, " ", id, "[", std::max<std::int64_t>(count, 1), "];"));
  } else {
    uses_ctx_ = true;
    line(cat(type, "* ", id, " = (", type, "*)ctx->workspace_alloc(ctx, (uint64_t)(",
             expr_.bare(size), ") * ", width, ", 64);"));
    line(cat("if (!", id, ") return -1;"));
    stmt(t->body);
    line(cat("ctx->workspace_free(ctx, ", id, ");"));
    return;
  }
  stmt(t->body);
}

}  // namespace weft::emit
