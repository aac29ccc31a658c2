// SPDX-License-Identifier: Apache-2.0
#include "weft/target/emit_c.h"

#include <algorithm>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/target/emit_c_internal.h"

namespace weft {

using namespace ir;
using emit::Lane;

namespace {

bool flag(const PrimFunc& f, std::string_view key) {
  const Json* v = find_annotation(f->attrs, key);
  return v && ((v->is_bool() && v->as_bool()) || (v->is_int() && v->as_int() != 0));
}

bool reads(const Expr& e, const BufferNode* b) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* l = as<LoadNode>(x)) found = found || l->buffer.get() == b;
  });
  return found;
}

/// One kernel as text.
class KernelText {
 public:
  KernelText(const CSpelling& spelling, emit::Helpers& helpers, const PrimFunc& f)
      : spelling_(spelling), expr_(spelling, helpers), f_(f) {}

  std::string functions;  // outlined bodies of parallel loops
  std::vector<std::string> assertions;
  runtime::KernelSignature signature;

  std::string run() {
    signature.name = f_->name;
    const auto* launch = as<LaunchNode>(f_->body);
    for_each_stmt(f_->body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s)) written_.insert(t->buffer.get());
    });
    for_each_expr(f_->body, [&](const Expr& e) {
      const auto* c = as<CallNode>(e);
      if (c && c->op == "instruction") instructions_ = true;
      if (!c || c->op != "address_of") return;
      if (const auto* l = as<LoadNode>(c->args[0])) written_.insert(l->buffer.get());
    });
    bool alone = flag(f_, "noalias") || flag(f_, "tir.noalias");
    std::vector<std::string> params;
    for (const Param& p : f_->params) params.push_back(param(p, alone));
    std::string head;
    if (launch) {
      for (const LaunchAxis& axis : launch->axes) {
        signature.axes.push_back(axis.axis);
        auto found = spelling_.axes.find(axis.axis);
        if (found == spelling_.axes.end()) {
          throw Error(ErrorKind::emit, "emit.axis",
                      cat("axis ", axis.axis, " cannot be spelled on ", spelling_.target));
        }
        bool wide = axis.var->dtype.bits == 64;
        expr_.define(
            axis.var.get(),
            wide ? cat("((", expr_.type(axis.var->dtype), ")", found->second, ")") : found->second);
        analyzer_.bind(axis.var, {make_int(0), axis.extent});
      }
    }
    indent_ = 1;
    stmt(launch ? launch->body : f_->body);
    if (spelling_.host_entry) return host_text(params);
    std::string bounds;
    if (launch && !spelling_.launch_bounds.empty()) bounds = launch_bounds(launch);
    std::string out = cat(spelling_.kernel_prefix, bounds, f_->name, "(", join(params),
                          spelling_.extra_parameters.empty() ? "" : extra_tail(), ") {\n");
    out += offsets_;
    out += shared_declarations();
    return out + text_ + "}\n";
  }

 private:
  // ---- the frame

  std::string param(const Param& p, bool alone) {
    if (p.buffer) {
      signature.params.push_back(
          {p.buffer->name, runtime::ParamKind::pointer, p.buffer->dtype, p.buffer->scope});
      std::string id = expr_.name(p.buffer.get(), p.buffer->name);
      std::string constant = written_.count(p.buffer.get()) ? "" : "const ";
      std::string text = cat(spelling_.global, constant, expr_.storage_type(p.buffer->dtype), "* ",
                             alone ? spelling_.restrict_word : "", id);
      if (spelling_.pointer_offsets) {
        std::string base = expr_.fresh(id + "_base"), offset = expr_.fresh(id + "_offset");
        offsets_ += cat("  ", text, " = ", base, " + ", offset, ";\n");
        text = cat(spelling_.global, constant, expr_.storage_type(p.buffer->dtype), "* ",
                   alone ? spelling_.restrict_word : "", base, ", ", spelling_.types.at("int64"),
                   " ", offset);
      }
      pointers_.push_back(
          {cat(spelling_.global, constant, expr_.storage_type(p.buffer->dtype), "*"), id});
      if (spelling_.indexed_parameters) text += cat(" [[buffer(", pointers_.size() - 1, ")]]");
      return text;
    }
    signature.params.push_back({p.var->name, runtime::ParamKind::scalar, p.var->dtype, "global"});
    std::string id = expr_.name(p.var.get(), p.var->name);
    std::string type =
        p.var->dtype.is_bool() ? spelling_.types.at("int32") : expr_.type(p.var->dtype);
    scalars_.push_back({type, id, p.var->dtype});
    if (spelling_.indexed_parameters) {
      return cat("constant ", type, "& ", id, " [[buffer(", pointers_.size() + scalars_.size() - 1,
                 ")]]");
    }
    return cat(type, " ", id);
  }

  std::string extra_tail() const {
    std::string tail = pointers_.empty() && scalars_.empty() ? "" : ", ";
    return tail + spelling_.extra_parameters;
  }

  std::string launch_bounds(const LaunchNode* launch) const {
    std::int64_t threads = 1;
    for (const LaunchAxis& axis : launch->axes) {
      std::int64_t n = 0;
      if (!axis.axis.starts_with("threadIdx")) continue;
      if (!is_const_int(axis.extent, &n)) return "";
      threads *= n;
    }
    std::string out = spelling_.launch_bounds;
    std::size_t at = out.find('%');
    std::string numbers = std::to_string(threads);
    // Groups that should fit a processor at once: a limit of a point's registers.
    if (const Json* groups = find_annotation(f_->attrs, kGroupsTogether))
      numbers += cat(", ", groups->as_int());
    return out.replace(at, 1, numbers);
  }

  /// What orders streamed stores before the end of a host function.
  std::string stream_end() const {
    return streams_ && !spelling_.stream_end.empty() ? cat("  ", spelling_.stream_end, ";\n") : "";
  }

  /// The typed function, and the entry of the host ABI that unpacks its arguments.
  std::string host_text(std::vector<std::string> params) {
    params.push_back("const weft_context* ctx");
    std::string out = cat(spelling_.kernel_prefix, f_->name, "(", join(params), ") {\n");
    if (!uses_ctx_) out += "  (void)ctx;\n";
    out += text_ + stream_end() + "  return 0;\n}\n\n";
    if (!spelling_.unpacks) return out;
    out +=
        cat("int32_t ", f_->name,
            "_entry(void* const* pointers, const int64_t* scalars, const weft_context* ctx) {\n");
    if (pointers_.empty()) out += "  (void)pointers;\n";
    if (scalars_.empty()) out += "  (void)scalars;\n";
    std::vector<std::string> args;
    for (std::size_t i = 0; i < scalars_.size(); ++i) {
      if (!scalars_[i].dtype.is_float()) continue;
      out += cat("  union { int64_t bits; double value; } s", i, ";\n  s", i, ".bits = scalars[", i,
                 "];\n");
    }
    std::size_t pointer = 0, scalar = 0;
    for (const Param& p : f_->params) {
      if (p.buffer) {
        args.push_back(cat("(", pointers_[pointer].type, ")pointers[", pointer, "]"));
        ++pointer;
      } else {
        const auto& s = scalars_[scalar];
        args.push_back(s.dtype.is_float() ? cat("(", s.type, ")s", scalar, ".value")
                                          : cat("(", s.type, ")scalars[", scalar, "]"));
        ++scalar;
      }
    }
    args.push_back("ctx");
    return out + cat("  return ", f_->name, "(", join(args), ");\n}\n");
  }

  std::string shared_declarations() {
    std::int64_t total = 0, most = 16;
    const auto place = [&](std::int64_t at, const Shared& b) {
      const std::int64_t unit = std::max(b.align, 16);
      most = std::max(unit, most);
      return (at + unit - 1) / unit * unit;
    };
    for (const auto& b : shared_) total = place(total, b) + b.bytes;
    std::string out;
    if (spelling_.static_shared_bytes > 0 && total > spelling_.static_shared_bytes) {
      signature.scratch_bytes = total;
      out += cat("  extern ", spelling_.shared, "__align__(", most,
                 ") unsigned char weft_shared[];\n");
      std::int64_t at = 0;
      for (const auto& b : shared_) {
        at = place(at, b);
        out += cat("  ", b.type, "* ", b.name, " = (", b.type, "*)(weft_shared + ", at, ");\n");
        at += b.bytes;
      }
      return out;
    }
    shared_bytes_ = total;
    for (const auto& b : shared_) {
      out += cat("  ", spelling_.shared, b.align > b.width ? align_word(b.align) : "", b.type, " ",
                 b.name, "[", b.count, "];\n");
    }
    return out;
  }

  std::string align_word(int bytes) const {
    switch (spelling_.vectors) {
      case VectorStyle::loops: return cat("_Alignas(", bytes, ") ");
      case VectorStyle::members: return cat("__align__(", bytes, ") ");
      case VectorStyle::load_store: return "";
      case VectorStyle::casts: return cat("alignas(", bytes, ") ");
    }
    return "";
  }

  // ---- statements

  void line(const std::string& text) {
    text_ += std::string(static_cast<std::size_t>(indent_) * 2, ' ') + text + "\n";
  }

  void body(const Stmt& s) {
    ++indent_;
    stmt(s);
    --indent_;
  }

  void stmt(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::store: store_stmt(as<StoreNode>(s)); break;
      case StmtKind::seq:
        for (const Stmt& child : as<SeqNode>(s)->stmts) stmt(child);
        break;
      case StmtKind::for_: for_stmt(as<ForNode>(s)); break;
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        line(cat("if (", expr_.bare(t->condition), ") {"));
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
        line(cat("while (", expr_.bare(t->condition), ") {"));
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

  /// Copies that the machine makes by itself are started; what it cannot copy so is done here.
  void async_text(const AsyncNode* t) {
    if (spelling_.async_commit.empty()) return stmt(t->body);
    copies_ = true;
    const bool before = std::exchange(copying_, true);
    stmt(t->body);
    copying_ = before;
    line(cat(spelling_.async_commit, ";"));
  }

  void wait_text(const WaitNode* t) {
    if (spelling_.async_commit.empty()) return;
    std::int64_t left = 0;
    if (!is_const_int(t->outstanding, &left)) {
      throw Error(ErrorKind::emit, "emit.wait",
                  cat("a wait for a number of groups known only at run time cannot be spelled on ",
                      spelling_.target));
    }
    std::string text = spelling_.async_wait;
    text.replace(text.find('%'), 1, std::to_string(left));
    line(cat(text, ";"));
  }

  /// Whether the store is a copy of whole elements from global to shared memory, or of zeros in
  /// their place, that was started.
  bool started_copy(const StoreNode* t) {
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

  void for_stmt(const ForNode* t) {
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
    if (find_annotation(t->annotations, "vectorize") && spelling_.host_entry && independent(t))
      line("#pragma GCC ivdep");
    Expr end = arith::simplify(t->min + t->extent);
    line(cat("for (", type, " ", var, " = ", expr_.bare(t->min), "; ", var, " < ", expr_.bare(end),
             "; ++", var, ") {"));
    body(t->body);
    line("}");
  }

  /// Lanes of a vectorized loop touch distinct memory only if pointers are known not to overlap.
  bool independent(const ForNode*) const { return flag(f_, "noalias") || flag(f_, "tir.noalias"); }

  void parallel_text(const ForNode* t) {
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
        buffers.emplace_back(cat(constant, expr_.storage_type(p.buffer->dtype), "*"),
                             p.buffer.get());
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
    decl += cat("static int32_t ", tag,
                "(int64_t begin, int64_t end, void* closure) {\n  const struct ", tag,
                "_args* args = (const struct ", tag,
                "_args*)closure;\n  const weft_context* ctx = args->ctx;\n  (void)ctx;\n");
    bool alone = flag(f_, "noalias") || flag(f_, "tir.noalias");
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

  void let_stmt_text(const LetStmtNode* t) {
    if (t->value->dtype.lanes == 1) {
      bool integer = t->value->dtype.is_integral();
      if (integer) analyzer_.bind(t->var, t->value);
      line(cat("const ", expr_.type(t->value->dtype), " ", expr_.name(t->var.get(), t->var->name),
               " = ", expr_.bare(t->value), ";"));
    } else {
      hoist_vectors(t->value, nullptr);
      std::string id = expr_.name(t->var.get(), t->var->name);
      for (int i = 0; i < t->value->dtype.lanes; ++i) {
        Lane lane{true, i, {}};
        line(cat("const ", expr_.type(t->value->dtype), " ", id, "_", i, " = ",
                 expr_.bare(t->value, &lane), ";"));
      }
      expr_.vectors.clear();
    }
    stmt(t->body);
  }

  void assert_text(const AssertNode* t) {
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

  void evaluate_text(const Expr& e) {
    const auto* c = as<CallNode>(e);
    if (!c) return;
    if (c->op == "sync") {
      const auto* scope = as<StringImmNode>(c->args[0]);
      bool global = scope && scope->value == "global";
      line(cat(global ? spelling_.barrier_global : spelling_.barrier_shared, ";"));
      return;
    }
    if (c->op == "prefetch") return;  // a hint
    line(cat(expr_.bare(e), ";"));
  }

  void allocate_text(const AllocateNode* t) {
    const Buffer& b = t->buffer;
    std::string id = expr_.name(b.get(), b->name), type = expr_.storage_type(b->dtype);
    std::int64_t count = 0;
    Expr size = arith::simplify(b->shape.empty() ? make_int(1) : b->shape[0]);
    bool constant = is_const_int(size, &count);
    int width = b->dtype.bytes();
    bool shared = b->scope.starts_with("shared");
    bool gpu = !spelling_.host_entry;
    declared_[b.get()] = type + "*";
    if (!constant && gpu) {
      throw Error(ErrorKind::emit, "emit.allocate",
                  cat("the size of \"", b->name, "\" in scope \"", b->scope, "\" is not constant"));
    }
    if (gpu && shared) {
      bool moved = emit::has_vector_access(t->body, b.get());
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
      line(cat(moved && count * width >= 16 && emit::has_vector_access(t->body, b.get())
                   ? align_word(16)
                   : "",
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

  // ---- stores and vectors

  /// Target and value as a statement; under a nontemporal store with the machine's function for it.
  std::string assign(const std::string& target, const std::string& value) const {
    return streaming_ ? cat(spelling_.stream, "(&", target, ", ", value, ");")
                      : cat(target, " = ", value, ";");
  }

  void store_stmt(const StoreNode* t) {
    if (const auto* c = as<CallNode>(t->value); c && c->op == "nontemporal") {
      Stmt plain = store(t->buffer, c->args[0], t->indices);
      streaming_ = !spelling_.stream.empty();
      if (streaming_) streams_ = true;
      else
        line(cat("/* nontemporal: ", spelling_.target, " has no such store, an ordinary one */"));
      store_stmt(as<StoreNode>(plain));
      streaming_ = false;
      return;
    }
    if (copying_ && started_copy(t)) return;
    std::string array = expr_.name(t->buffer.get(), t->buffer->name);
    DType element = t->buffer->dtype;
    const Expr& at = t->indices[0];
    if (t->value->dtype.lanes == 1) {
      line(assign(cat(array, "[", expr_.bare(at), "]"), bare_store(element, expr_.bare(t->value))));
      return;
    }
    int lanes = t->value->dtype.lanes;
    if (spelling_.vectors == VectorStyle::loops) return store_lanes_loop(t, array, lanes);
    if (const auto* from = as<LoadNode>(t->value); from && from->buffer->dtype == element) {
      const auto *to = as<RampNode>(at), *r = as<RampNode>(from->indices[0]);
      if (to && r && copyable(t->buffer, to) && copyable(from->buffer, r)) {
        line(move_out(t->buffer, to, lanes, move_in(from, r)));
        return;
      }
    }
    hoist_vectors(t->value, t);
    const auto* r = as<RampNode>(at);
    if (r && movable(t->buffer, r)) {
      std::string value;
      if (auto held = expr_.vectors.find(t->value.get());
          held != expr_.vectors.end() && element == as<LoadNode>(t->value)->buffer->dtype) {
        value = held->second;
      } else {
        value = construct(element, lanes);
        for (int i = 0; i < lanes; ++i) {
          Lane lane{true, i, {}};
          value += (i ? ", " : "") + bare_store(element, expr_.bare(t->value, &lane));
        }
        value += ")";
      }
      line(move_out(t->buffer, r, lanes, value));
    } else {
      // All lanes are evaluated before any is stored.
      std::vector<std::string> values;
      bool hazard = lanes > 1 && reads(t->value, t->buffer.get());
      for (int i = 0; i < lanes; ++i) {
        Lane lane{true, i, {}};
        std::string v = bare_store(element, expr_.bare(t->value, &lane));
        if (hazard) {
          std::string id = expr_.fresh("lane");
          line(cat("const ", expr_.storage_type(element), " ", id, " = ", v, ";"));
          v = id;
        }
        values.push_back(std::move(v));
      }
      for (int i = 0; i < lanes; ++i) {
        Lane lane{true, i, {}};
        line(assign(cat(array, "[", expr_.bare(at, &lane), "]"),
                    values[static_cast<std::size_t>(i)]));
      }
    }
    expr_.vectors.clear();
  }

  std::string bare_store(DType element, const std::string& value) {
    return expr_.store_value(element, value);
  }

  bool needs_constant_lanes(const Expr& e) const {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* c = as<CallNode>(x)) found = found || c->op == "vector_concat";
      if (const auto* v = as<VarNode>(x)) found = found || v->dtype.lanes > 1;
    });
    return found;
  }

  void store_lanes_loop(const StoreNode* t, const std::string& array, int lanes) {
    DType element = t->buffer->dtype;
    bool hazard = reads(t->value, t->buffer.get());
    if (needs_constant_lanes(t->value) || needs_constant_lanes(t->indices[0])) {
      line("{");
      ++indent_;
      std::string id = expr_.fresh("lanes");
      line(cat(expr_.storage_type(element), " ", id, "[", lanes, "];"));
      for (int i = 0; i < lanes; ++i) {
        Lane lane{true, i, {}};
        line(cat(id, "[", i, "] = ", bare_store(element, expr_.bare(t->value, &lane)), ";"));
      }
      for (int i = 0; i < lanes; ++i) {
        Lane lane{true, i, {}};
        line(assign(cat(array, "[", expr_.bare(t->indices[0], &lane), "]"), cat(id, "[", i, "]")));
      }
      --indent_;
      line("}");
      return;
    }
    std::string id = expr_.fresh("l");
    Lane lane{false, 0, id};
    std::string head = cat("for (int32_t ", id, " = 0; ", id, " < ", lanes, "; ++", id, ") ");
    std::string value = bare_store(element, expr_.bare(t->value, &lane)),
                at = expr_.bare(t->indices[0], &lane);
    if (!hazard) {
      line(head + assign(cat(array, "[", at, "]"), value));
      return;
    }
    std::string temp = expr_.fresh("lanes");
    line("{");
    ++indent_;
    line(cat(expr_.storage_type(element), " ", temp, "[", lanes, "];"));
    line(cat(head, temp, "[", id, "] = ", value, ";"));
    line(head + assign(cat(array, "[", at, "]"), cat(temp, "[", id, "]")));
    --indent_;
    line("}");
  }

  /// Whether consecutive elements can move as one vector: a vector type exists and the address is
  /// aligned.
  bool movable(const Buffer& b, const RampNode* r) const {
    int lanes = r->dtype.lanes, bytes = lanes * b->dtype.bytes();
    if (!is_const_int_value(r->stride, 1) || b->dtype.lanes != 1 || b->dtype.is_bool())
      return false;
    bool scalar16 = b->dtype.is_float() && b->dtype.bits == 16;
    if (scalar16 && spelling_.vectors == VectorStyle::casts) return false;
    if (spelling_.vectors == VectorStyle::load_store)
      return lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16;
    if ((lanes != 2 && lanes != 4) || bytes > 16) return false;
    arith::Modular m = analyzer_.modular(r->base);
    return (m.coeff == 0 || m.coeff % lanes == 0) && m.base % lanes == 0;
  }

  /// Whether consecutive elements can be copied as one vector, though no lane of it has a name.
  bool copyable(const Buffer& b, const RampNode* r) const {
    if (movable(b, r)) return true;
    const int lanes = r->dtype.lanes;
    if (spelling_.vectors != VectorStyle::members || !is_const_int_value(r->stride, 1) ||
        b->dtype.is_bool() || !spelling_.types.count(vector_name(b->dtype, lanes)))
      return false;
    arith::Modular m = analyzer_.modular(r->base);
    return (m.coeff == 0 || m.coeff % lanes == 0) && m.base % lanes == 0;
  }

  static std::string vector_name(DType element, int lanes) {
    DType t = element.is_float() && element.bits == 16 ? DType{TypeCode::uint_, 16, 1} : element;
    return to_string(t.with_lanes(lanes));
  }

  std::string vector_type(DType element, int lanes) const {
    auto found = spelling_.types.find(vector_name(element, lanes));
    if (found != spelling_.types.end()) return found->second;
    return cat(expr_.storage_type(element), lanes);
  }

  std::string construct(DType element, int lanes) const {
    std::string type = vector_type(element, lanes);
    if (spelling_.vectors == VectorStyle::members) return cat("make_", type, "(");
    return spelling_.vectors == VectorStyle::load_store ? cat("(", type, ")(") : cat(type, "(");
  }

  std::string address(const Buffer& b, const RampNode* r, bool constant) {
    std::string array = expr_.name(b.get(), b->name), type = vector_type(b->dtype, r->dtype.lanes);
    std::string where = cat(array, " + ", expr_.text(r->base));
    if (spelling_.vectors == VectorStyle::load_store) return where;
    std::string space =
        spelling_.vectors == VectorStyle::casts ? expr_.address_space(b->scope) : "";
    return cat("*(", space,
               constant && b->scope == "global" && !written_.count(b.get()) ? "const " : "", type,
               "*)(", where, ")");
  }

  std::string move_in(const LoadNode* l, const RampNode* r) {
    if (spelling_.vectors == VectorStyle::load_store)
      return cat("vload", r->dtype.lanes, "(0, ", address(l->buffer, r, true), ")");
    return address(l->buffer, r, true);
  }

  std::string move_out(const Buffer& b, const RampNode* r, int lanes, const std::string& value) {
    if (spelling_.vectors == VectorStyle::load_store)
      return cat("vstore", lanes, "(", value, ", 0, ", address(b, r, false), ");");
    return assign(address(b, r, false), value);
  }

  /// Whole vectors are loaded once, before the statement. Not those under a lazy condition.
  void hoist_vectors(const Expr& value, const StoreNode* direct) {
    if (spelling_.vectors == VectorStyle::loops) return;
    for (const LoadNode* l : emit::certain_vector_loads(value)) {
      const auto* r = as<RampNode>(l->indices[0]);
      if (expr_.vectors.count(l) || !movable(l->buffer, r)) continue;
      if (direct && direct->value.get() == l && as<RampNode>(direct->indices[0]) &&
          movable(direct->buffer, as<RampNode>(direct->indices[0])) &&
          direct->buffer->dtype == l->buffer->dtype) {
        expr_.vectors[l] = move_in(l, r);  // a plain copy needs no temporary
        continue;
      }
      std::string id = expr_.fresh("vector");
      line(cat("const ", vector_type(l->buffer->dtype, l->dtype.lanes), " ", id, " = ",
               move_in(l, r), ";"));
      expr_.vectors[l] = id;
    }
  }

  struct Pointer {
    std::string type, name;
  };
  struct Scalar {
    std::string type, name;
    DType dtype;
  };
  struct Shared {
    std::string type, name;
    std::int64_t count, bytes;
    int align, width;
  };

  const CSpelling& spelling_;
  emit::Expressions expr_;
  PrimFunc f_;
  arith::Analyzer analyzer_;
  std::string text_, offsets_;
  int indent_ = 0;
  bool in_parallel_ = false, uses_ctx_ = false;
  bool instructions_ = false;                   // tiles go to instructions of the machine
  bool copying_ = false, copies_ = false;       // under Async; anywhere in the kernel
  bool streaming_ = false;                      // the store at hand bypasses the caches
  bool streams_ = false, any_streams_ = false;  // in this function; in an outlined one
  std::vector<Pointer> pointers_;
  std::vector<Scalar> scalars_;
  std::vector<Shared> shared_;
  std::int64_t shared_bytes_ = 0;
  std::unordered_set<const BufferNode*> written_;
  std::unordered_map<const BufferNode*, std::string> declared_;  // C pointer type

 public:
  bool copies() const { return copies_; }
  bool streams() const { return streams_ || any_streams_; }
  std::int64_t shared_bytes() const { return shared_bytes_ + signature.scratch_bytes; }
};

}  // namespace

void check_shared_bytes(const EmittedSource& source, std::int64_t limit,
                        const std::string& target) {
  for (const auto& [name, bytes] : source.metadata.at("shared_bytes").as_object()) {
    if (bytes.as_int() <= limit) continue;
    throw Error(ErrorKind::lower, "lower.shared.limit",
                cat("kernel \"", name, "\" needs ", bytes.as_int(), " bytes of shared memory but ",
                    target, " has ", limit, " for one group"))
        .help("cache smaller tiles");
  }
}

EmittedSource emit_c(const std::vector<PrimFunc>& kernels, const CSpelling& spelling) {
  emit::Helpers helpers(spelling);
  EmittedSource out;
  std::string text;
  out.metadata = Json::object();
  bool streams = false, copies = false;
  Json assertions = Json::object(), shared = Json::object();
  for (const PrimFunc& f : kernels) {
    KernelText kernel(spelling, helpers, f);
    std::string body = kernel.run();
    text += "\n" + kernel.functions + body;
    streams |= kernel.streams();
    copies |= kernel.copies();
    if (!kernel.assertions.empty()) {
      Json list = Json::array();
      for (const std::string& message : kernel.assertions) list.push_back(message);
      assertions[f->name] = std::move(list);
    }
    shared[f->name] = kernel.shared_bytes();
    out.kernels.push_back(std::move(kernel.signature));
  }
  out.metadata["assertions"] = std::move(assertions);
  out.metadata["shared_bytes"] = std::move(shared);
  std::string used = helpers.text();
  out.text = spelling.prelude + (streams ? spelling.stream_helpers : "") +
             (copies ? spelling.async_helpers : "") + (used.empty() ? "" : "\n" + used) + text;
  return out;
}

}  // namespace weft
