// SPDX-License-Identifier: Apache-2.0
#include "weft/target/emit_c.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/roles.h"
#include "weft/target/emit_c_kernel.h"
#include "weft/target/host_plan.h"

namespace weft {

namespace emit {

bool reads_buffer(const Expr& e, const BufferNode* b) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* l = as<LoadNode>(x)) found = found || l->buffer.get() == b;
  });
  return found;
}

std::string KernelText::run() {
  signature.name = f_->name;
  const auto* launch = as<LaunchNode>(f_->body);
  for_each_stmt(f_->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) written_.insert(t->buffer.get());
  });
  std::unordered_set<const ExprNode*> hints;  // addresses that nothing is written to
  for_each_expr(f_->body, [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    if (!c) return;
    if (c->op == "instruction") {
      instructions_ = true;
      const auto* name = as<StringImmNode>(c->args[0]);
      roles_ = roles_ || (name && name->value.starts_with("weft_registers"));
    }
    std::int64_t writes = 1;
    if (c->op == "prefetch" && c->args.size() > 1 && is_const_int(c->args[1], &writes) && !writes)
      hints.insert(c->args[0].get());
    if (c->op != "address_of" || hints.count(c)) return;
    if (const auto* l = as<LoadNode>(c->args[0])) written_.insert(l->buffer.get());
  });
  bool alone = has_flag(f_->attrs, "noalias") || has_flag(f_->attrs, "tir.noalias");
  std::vector<std::string> params;
  for_each_stmt(f_->body, [&](const Stmt& s) {
    if (const auto* a = as<AsyncNode>(s)) queue_of_[a->token.get()] = a->queue;
  });
  if (const Json* tensors = find_annotation(f_->attrs, "tensors")) tensors_ = tensors->as_array();
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

std::string KernelText::tensor_param(const Param& p) {
  if (spelling_.tensor_param.empty())
    throw Error(ErrorKind::emit, "emit.tensor",
                cat("kernel ", f_->name, " copies boxes of \"", p.var->name, "\", which ",
                    spelling_.target, " cannot"))
        .help("copy element by element");
  const std::size_t i = signature.params.size();
  WEFT_CHECK(i < tensors_.size(), "tensor ", p.var->name, " of ", f_->name, " has no box");
  runtime::KernelParam out{p.var->name, runtime::ParamKind::tensor,
                           parse_dtype(tensors_[i].at("dtype").as_string())};
  for (const Json& n : tensors_[i].at("box").as_array())
    out.box.push_back(static_cast<int>(n.as_int()));
  for (const Json& n : tensors_[i].at("steps").as_array())
    out.steps.push_back(static_cast<int>(n.as_int()));
  signature.params.push_back(std::move(out));
  const std::string id = expr_.fresh(p.var->name);
  expr_.define(p.var.get(), cat("&", id));
  std::string text = spelling_.tensor_param;
  return text.replace(text.find('%'), 1, id);
}

std::string KernelText::param(const Param& p, bool alone) {
  if (!p.buffer && p.var->dtype.is_handle()) return tensor_param(p);
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
                 alone ? spelling_.restrict_word : "", base, ", ", spelling_.types.at("int64"), " ",
                 offset);
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

std::string KernelText::extra_tail() const {
  std::string tail = pointers_.empty() && scalars_.empty() ? "" : ", ";
  return tail + spelling_.extra_parameters;
}

std::string KernelText::launch_bounds(const LaunchNode* launch) const {
  std::int64_t threads = 1;
  for (const LaunchAxis& axis : launch->axes) {
    std::int64_t n = 0;
    if (!axis.axis.starts_with("threadIdx")) continue;
    if (!is_const_int(axis.extent, &n)) return "";
    threads *= n;
  }
  std::string out =
      roles_ && !spelling_.alone_bounds.empty() ? spelling_.alone_bounds : spelling_.launch_bounds;
  const auto with = [](std::string text, const std::string& numbers) {
    return text.replace(text.find('%'), 1, numbers);
  };
  std::string counts = std::to_string(threads);
  const Json* resident = ir::find_annotation(f_->attrs, kBlocksPerProcessor);
  if (resident && !roles_ && !spelling_.alone_bounds.empty())
    counts += cat(", ", resident->as_int());
  out = with(out, counts);
  const Json* blocks = ir::find_annotation(f_->attrs, kClusterBlocks);
  return blocks ? with(spelling_.cluster_bounds, std::to_string(blocks->as_int())) + out : out;
}

std::string KernelText::stream_end() const {
  return streams_ && !spelling_.stream_end.empty() ? cat("  ", spelling_.stream_end, ";\n") : "";
}

std::string KernelText::host_text(std::vector<std::string> params) {
  params.push_back("const weft_context* ctx");
  std::string out = cat(spelling_.kernel_prefix, f_->name, "(", join(params), ") {\n");
  if (!uses_ctx_) out += "  (void)ctx;\n";
  out += text_ + stream_end() + "  return 0;\n}\n\n";
  if (!spelling_.unpacks) return out;
  out += cat("int32_t ", f_->name,
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

std::string KernelText::shared_declarations() {
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
    out +=
        cat("  extern ", spelling_.shared, "__align__(", most, ") unsigned char weft_shared[];\n");
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

std::string KernelText::align_word(int bytes) const {
  switch (spelling_.vectors) {
    case VectorStyle::loops:
    case VectorStyle::gnu: return cat("_Alignas(", bytes, ") ");
    case VectorStyle::members: return cat("__align__(", bytes, ") ");
    case VectorStyle::load_store: return "";
    case VectorStyle::casts: return cat("alignas(", bytes, ") ");
  }
  return "";
}

}  // namespace emit

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

EmittedSource emit_c(const std::vector<ir::PrimFunc>& kernels, const CSpelling& spelling) {
  emit::Helpers helpers(spelling);
  EmittedSource out;
  std::string text;
  out.metadata = Json::object();
  bool streams = false, copies = false, tensors = false;
  Json assertions = Json::object(), shared = Json::object();
  for (const ir::PrimFunc& f : kernels) {
    emit::KernelText kernel(spelling, helpers, f);
    std::string body = kernel.run();
    text += "\n" + kernel.functions + body;
    streams |= kernel.streams();
    copies |= kernel.copies(), tensors |= kernel.tensors();
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
             (copies ? spelling.async_helpers : "") + (tensors ? spelling.tensor_helpers : "") +
             (used.empty() ? "" : "\n" + used) + text;
  return out;
}

}  // namespace weft
