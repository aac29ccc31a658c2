// SPDX-License-Identifier: Apache-2.0
// Calls: at compile time, inlined, and emitted; function instances and their bodies.
#include <algorithm>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {
namespace {

bool only_known(TypeRef t) { return !t->runtime || t->kind == T::void_; }

}  // namespace

/// Keeps the registers of a result from being handed out again.
void Analyzer::protect(const Operand& op) {
  if (!frame_->builder) return;
  Builder& f = b();
  if (op.where == Operand::reg || (op.where == Operand::memory && op.base == Operand::pointer)) {
    if (op.r != kNoReg)
      f.next = std::max<std::uint16_t>(f.next, static_cast<std::uint16_t>(op.r + 1));
  }
  if (op.where == Operand::memory && op.index != kNoReg)
    f.next = std::max<std::uint16_t>(f.next, static_cast<std::uint16_t>(op.index + 1));
  if (op.where == Operand::dreg)
    f.dnext = std::max<std::uint16_t>(f.dnext, static_cast<std::uint16_t>(op.r + 1));
  if (op.where == Operand::parts) {
    for (const Operand& k : *op.fields) protect(k);
  }
}

Analyzer::Signature Analyzer::bind(Decl* d, const std::vector<Node*>* nodes,
                                   std::vector<Operand> given, Pos pos) {
  if (!nodes)
    return bind_each(
        d, given.size(), nullptr, [&](std::size_t k, TypeRef) { return std::move(given[k]); }, pos);
  auto give = [&](std::size_t k, TypeRef type) {
    if (d->node->list[k]->has(kComptime)) return known_operand(eval_known((*nodes)[k], type));
    return eval((*nodes)[k], type);
  };
  return bind_each(d, nodes->size(), nodes, give, pos);
}

Analyzer::Signature Analyzer::bind_each(Decl* d, std::size_t count, const std::vector<Node*>* nodes,
                                        const Giver& give, Pos pos) {
  Node* fn = d->node;
  if (count != fn->list.size()) {
    Diagnostic& diag =
        diagnostics_.add(Diagnostic::Level::error, pos, "wse.csl.call.arguments",
                         cat("\"", name(d->name), "\" takes ", fn->list.size(), " argument",
                             fn->list.size() == 1 ? "" : "s", ", found ", count));
    diag.notes.push_back({"it is declared here", fn->pos});
    throw Abandon{};
  }
  Signature sig;
  Frame types;
  types.module = d->module;
  types.parent = frame_;
  types.call_pos = pos;
  Frame* caller = frame_;
  struct Restore {
    ~Restore() { slot = frame; }
    Frame*& slot;
    Frame* frame;
  } restore{frame_, caller};
  for (std::size_t k = 0; k < count; ++k) {
    Node* p = fn->list[k];
    TypeRef type = nullptr;
    if (p->a) {
      frame_ = &types;
      type = eval_type(p->a);
      frame_ = caller;
    }
    bool at_compile_time = p->has(kComptime);
    Pos at = nodes ? (*nodes)[k]->pos : pos;
    Operand v = give(k, type);
    if (v.where == Operand::nothing || !v.type) v = void_operand();
    if (type) v = coerce(std::move(v), type, at, cat("argument \"", name(p->name), "\""));
    if (!type || type->kind == T::comptime_struct) type = v.type;
    if (at_compile_time || only_known(type)) {
      if (!v.is_known())
        v = known_operand(need_known(v, at, cat("argument \"", name(p->name), "\"")));
      at_compile_time = true;
    }
    // Later types may name this argument: its value when known, else its type.
    frame_ = &types;
    declare(p->name, place_of_operand(v), at);
    frame_ = caller;
    sig.known.push_back(at_compile_time);
    sig.types.push_back(type);
    sig.args.push_back(std::move(v));
  }
  frame_ = &types;
  sig.result = eval_type(fn->a);
  frame_ = caller;
  return sig;
}

TypeRef Analyzer::function_type(Decl* d, Pos pos) {
  Frame types;
  types.module = d->module;
  types.parent = frame_;
  Frame* caller = frame_;
  frame_ = &types;
  struct Restore {
    ~Restore() { slot = frame; }
    Frame*& slot;
    Frame* frame;
  } restore{frame_, caller};
  std::vector<TypeRef> params;
  for (Node* p : d->node->list) {
    if (!p->a || p->has(kComptime)) {
      fail(pos, "wse.csl.call.generic",
           cat("\"", name(d->name), "\" is generic and has no single type"));
    }
    params.push_back(eval_type(p->a));
  }
  return types_.function(std::move(params), eval_type(d->node->a), d->node->has(kTask));
}

Operand Analyzer::eval_call(Node* node, TypeRef) {
  Pos pos = node->pos;
  Operand callee;
  if (node->a->kind == Kind::deref) {  // p.*(x) calls what p points to, as p(x) does
    callee = eval(node->a->a);
    if (!callee.type || callee.type->kind != T::pointer || callee.type->elem->kind != T::fn)
      callee = load(deref_place(callee, pos), pos);
  } else {
    callee = eval(node->a);
  }
  if (!callee.type) fail(pos, "wse.csl.call.callee", "there is nothing to call");
  if (callee.is_known() &&
      (callee.type->kind == T::function || callee.type->kind == T::fn ||
       (callee.type->kind == T::pointer && callee.type->elem->kind == T::fn)) &&
      callee.value.p) {
    return call_decl(static_cast<Decl*>(const_cast<void*>(callee.value.p)), &node->list, {}, pos);
  }
  if (callee.type->kind == T::pointer && callee.type->elem->kind == T::fn) {
    TypeRef fn = callee.type->elem;
    if (fn->is_task) fail(pos, "wse.csl.call.task", "a task cannot be called; activate it");
    if (node->list.size() != fn->fields.size()) {
      fail(pos, "wse.csl.call.arguments",
           cat("the function takes ", fn->fields.size(), " arguments, found ", node->list.size()));
    }
    if (known()) need_known(callee, pos, "the function");
    std::vector<Operand> args;
    for (std::size_t k = 0; k < node->list.size(); ++k) {
      args.push_back(
          coerce(eval(node->list[k], fn->fields[k].type), fn->fields[k].type, node->list[k]->pos));
    }
    callee.temp = false;
    return emit_call(-1, to_reg(callee, pos), fn, args, pos);
  }
  TypeRef made = callee.is_known() && callee.type->kind == T::type
                     ? static_cast<TypeRef>(callee.value.p)
                     : nullptr;
  std::string note;
  if (made && made->kind == T::struct_ && !made->fields.empty() && made->fields[0].name)
    note =
        cat("a value of it is written ", text(made), "{ .", name(made->fields[0].name), " = ... }");
  else if (made && made->is_number()) note = cat("@as(", text(made), ", value) converts a number");
  fail(pos, "wse.csl.call.callee", cat("a value of type ", text(callee.type), " cannot be called"),
       note);
}

Operand Analyzer::call_decl(Decl* d, const std::vector<Node*>* nodes, std::vector<Operand> given,
                            Pos pos) {
  std::size_t count = nodes ? nodes->size() : given.size();
  if (count != d->node->list.size() && d->module && d->module->source &&
      d->module->source->path.starts_with("<")) {
    // A library function may have a form for another number of arguments, which is named so.
    auto form = d->module->decls.find(names_.intern(cat(name(d->name), "__", count)));
    if (form != d->module->decls.end()) d = form->second;
  }
  if (d->node->has(kTask)) {
    fail(pos, "wse.csl.call.task", cat("task \"", name(d->name), "\" cannot be called"),
         "activate it with @activate");
  }
  if (!d->node->b)
    fail(pos, "wse.csl.call.extern", cat("\"", name(d->name), "\" is extern and has no body here"));
  Signature sig = bind(d, nodes, std::move(given), pos);
  if (known()) return call_known(d, sig, pos);
  // What cannot exist at run time is computed now: floor(2.5) is a number like any other.
  if (sig.result->kind != T::void_ && only_known(sig.result) &&
      std::all_of(sig.args.begin(), sig.args.end(), [](auto& a) { return a.is_known(); })) {
    struct Known {
      explicit Known(Frame* f) : frame(f) { ++frame->known; }
      ~Known() { --frame->known; }
      Frame* frame;
    } scope(frame_);
    return call_known(d, sig, pos);
  }
  if (d->node->has(kInline)) return call_inline(d, sig, pos);
  refuse_arrays(*d, sig, nodes, pos);
  FunctionInstance* fn = instance(d, sig, pos);
  std::vector<Operand> args;
  for (std::size_t k = 0; k < sig.args.size(); ++k) {
    if (!sig.known[k]) args.push_back(std::move(sig.args[k]));
  }
  return emit_call(fn->index, kNoReg, fn->type, args, pos);
}

/// Functions that run on the PE take and return arrays by pointer. The library's are none of the
/// user's, and what is known at compile time may be computed there.
void Analyzer::refuse_arrays(const Decl& d, const Signature& sig, const std::vector<Node*>* nodes,
                             Pos pos) {
  if (d.module && d.module->source && d.module->source->path.starts_with("<")) return;
  bool all_known = true;
  for (std::size_t k = 0; k < sig.types.size(); ++k) {
    if (sig.known[k] || sig.args[k].is_known()) continue;
    all_known = false;
    if (sig.types[k]->kind != T::array) continue;
    const std::string elem = text(sig.types[k]->elem);
    fail(nodes ? (*nodes)[k]->pos : pos, "wse.csl.call.array",
         cat("argument \"", name(d.node->list[k]->name), "\" of \"", name(d.name),
             "\" is an array, ", text(sig.types[k]),
             "; a function that runs on the PE takes arrays by pointer"),
         cat("declare the parameter as *", text(sig.types[k]), " or [*]", elem,
             " and pass & of the array"));
  }
  if (sig.result->kind == T::array && !all_known)
    fail(pos, "wse.csl.call.array",
         cat("\"", name(d.name), "\" returns an array, ", text(sig.result),
             "; only functions that run at compile time do"),
         "let it fill an array through a pointer parameter, or call it with comptime");
}

Operand Analyzer::call_known(Decl* d, Signature& sig, Pos pos) {
  spend(pos);
  Frame f;
  f.module = d->module;
  f.parent = frame_;
  f.result_type = sig.result;
  f.call_pos = pos;
  for (std::size_t k = 0; k < sig.args.size(); ++k) {
    Value v =
        need_known(sig.args[k], pos,
                   cat("argument \"", name(d->node->list[k]->name), "\" of a compile-time call"));
    Place p = place_of_operand(known_operand(std::move(v)));
    f.locals.push_back({d->node->list[k]->name, std::move(p), false});
  }
  Frame* caller = frame_;
  struct Restore {
    ~Restore() { slot = frame; }
    Frame*& slot;
    Frame* frame;
  } restore{frame_, caller};
  frame_ = &f;
  Flow flow = exec_block(d->node->b);
  if (flow == Flow::ret) return f.result;
  if (sig.result->kind != T::void_) {
    fail(pos, "wse.csl.return.missing",
         cat("\"", name(d->name), "\" ends without returning ", text(sig.result)));
  }
  return void_operand();
}

Operand Analyzer::call_inline(Decl* d, Signature& sig, Pos pos) {
  DepthGuard guard(*this, pos);
  int nesting = 0;
  for (Frame* at = frame_; at; at = at->parent) nesting += at->inlined;
  if (nesting > 64)
    fail(pos, "wse.csl.inline.recursion", "inline functions call each other without end");
  Frame f;
  f.module = d->module;
  f.parent = frame_;
  f.builder = frame_->builder;
  f.inlined = true;
  f.result_type = sig.result;
  f.runtime_branches = f.inline_branches = frame_->runtime_branches;
  f.call_pos = pos;
  collect_addressed(d->node->b, b().addressed);
  for (std::size_t k = 0; k < sig.args.size(); ++k) {
    Operand v = sig.args[k];
    Symbol p = d->node->list[k]->name;
    if (v.where == Operand::reg) {
      v = in_reg(v.type, v.temp ? v.r : to_new_reg(v, pos));
      if (b().addressed.contains(p)) {
        Operand slot = frame_slot(v.type, pos);
        store_memory(slot, v, pos);
        slot.is_const = true;
        v = slot;
      }
    } else if (v.where == Operand::dreg) {
      std::uint16_t copy = new_dreg(pos);
      to_dreg_at(v, copy, pos);
      v = in_dreg(v.type, copy);
    }
    Place place = place_of_operand(v);
    place.is_const = true;
    f.locals.push_back({p, std::move(place), false});
  }
  if (sig.result->is_scalar()) f.result_reg = new_reg(pos);
  if (sig.result->is_dsd()) f.result_reg = new_dreg(pos);
  Frame* caller = frame_;
  struct Restore {
    ~Restore() { slot = frame; }
    Frame*& slot;
    Frame* frame;
  } restore{frame_, caller};
  frame_ = &f;
  Flow flow = exec_block(d->node->b);
  Operand result = f.result;
  if (!f.result_jumps.empty()) {
    if (flow == Flow::ret && f.result.where != Operand::nothing) {
      if (sig.result->is_scalar()) to_reg_at(f.result, f.result_reg, pos);
      else if (sig.result->is_dsd()) to_dreg_at(f.result, f.result_reg, pos);
    } else if (flow == Flow::normal && sig.result->kind != T::void_) {
      emit(Insn::with_imm(Op::trap, 0, 0,
                          string_index(cat(name(d->name), " ended without a result"))),
           pos);
    }
    for (std::size_t at : f.result_jumps) patch_here(at);
    result =
        sig.result->is_dsd() ? in_dreg(sig.result, f.result_reg) : in_reg(sig.result, f.result_reg);
  } else if (flow == Flow::normal && sig.result->kind != T::void_) {
    fail(pos, "wse.csl.return.missing",
         cat("\"", name(d->name), "\" ends without returning ", text(sig.result)));
  }
  frame_ = caller;
  if (sig.result->kind == T::void_) return void_operand();
  result.temp = false;
  protect(result);
  return result;
}

FunctionInstance* Analyzer::instance(Decl* d, const Signature& sig, Pos pos) {
  need_program(pos, "a function at run time");
  std::string key = hex(reinterpret_cast<std::uintptr_t>(d));
  for (std::size_t k = 0; k < sig.types.size(); ++k) {
    key += cat(",", hex(reinterpret_cast<std::uintptr_t>(sig.types[k])));
    if (sig.known[k]) key += cat("=", key_of(sig.args[k].value));
  }
  FunctionInstance*& slot = program_->by_key[key];
  if (slot) return slot;
  if (program_->functions.size() >= 30000)
    fail(pos, "wse.csl.call.instances", "more than 30,000 function instances");
  program_->functions.emplace_back();
  FunctionInstance* fn = slot = &program_->functions.back();
  fn->decl = d;
  fn->called = pos;
  fn->caller = compiling_;
  fn->index = static_cast<int>(program_->functions.size()) - 1;
  fn->types = sig.types;
  std::vector<TypeRef> runtime;
  for (std::size_t k = 0; k < sig.types.size(); ++k) {
    fn->known_args.push_back(sig.known[k] ? sig.args[k].value : Value());
    if (!sig.known[k]) runtime.push_back(sig.types[k]);
  }
  fn->type = types_.function(std::move(runtime), sig.result, d->node->has(kTask));
  return fn;
}

/// The instance of a function without compile-time parameters.
FunctionInstance* Analyzer::plain_instance(Decl* d, Pos pos) {
  TypeRef type = function_type(d, pos);
  Signature sig;
  sig.result = type->elem;
  for (const FieldType& f : type->fields) {
    if (only_known(f.type)) {
      fail(pos, "wse.csl.call.generic",
           cat("\"", name(d->name), "\" has a parameter of type ", text(f.type),
               ", which exists only at compile time"));
    }
    sig.types.push_back(f.type);
    sig.known.push_back(false);
    sig.args.emplace_back();
  }
  return instance(d, sig, pos);
}

std::uint16_t Analyzer::function_pointer(Decl* d, Pos pos) {
  FunctionInstance* fn = plain_instance(d, pos);
  program_->pointed.insert(fn->index);
  return static_cast<std::uint16_t>(fn->index + 1);
}

Operand Analyzer::emit_call(int index, std::uint16_t callee_reg, TypeRef fn,
                            const std::vector<Operand>& args, Pos pos) {
  if (known())
    fail(pos, "wse.csl.comptime.runtime_value",
         "this call happens at run time, but its result is needed at compile time");
  // Aggregates travel by address.
  std::vector<Operand> flat;
  Operand result_slot;
  if (fn->elem->is_aggregate()) {
    result_slot = frame_slot(fn->elem, pos);
    flat.push_back(in_reg(types_.u16, address_reg(result_slot, pos)));
  }
  for (const Operand& a : args) {
    if (a.type->is_aggregate()) {
      flat.push_back(in_reg(types_.u16, address_reg(materialize(a, pos), pos)));
    } else if (a.where == Operand::memory) {
      flat.push_back(load_memory(a, pos));
    } else {
      flat.push_back(a);
    }
  }
  Builder& f = b();
  std::uint16_t window = f.next, dwindow = f.dnext;
  for (Operand& a : flat) {
    a.temp = false;
    if (a.type->is_dsd()) {
      to_dreg_at(a, new_dreg(pos), pos);
    } else {
      to_reg_at(a, new_reg(pos), pos);
    }
  }
  f.calls.push_back({index, {window, dwindow}});
  if (index >= 0) {
    emit({Op::call, 0, window, dwindow, static_cast<std::uint16_t>(index)}, pos);
  } else {
    emit({Op::calli, 0, window, dwindow, callee_reg}, pos);
  }
  f.next = window;
  f.dnext = dwindow;
  if (fn->elem->is_aggregate()) return result_slot;
  if (fn->elem->is_dsd()) return in_dreg(fn->elem, new_dreg(pos));
  if (fn->elem->kind == T::void_) return void_operand();
  return in_reg(fn->elem, new_reg(pos));
}

void Analyzer::compile_function(FunctionInstance& fn) {
  Node* node = fn.decl->node;
  Builder builder;
  builder.index = fn.index;
  builder.out.name = name(fn.decl->name);
  if (!fn.decl->module->is_root)
    builder.out.name = cat(fn.decl->module->label, ".", builder.out.name);
  collect_addressed(node->b, builder.addressed);
  Frame f;
  f.module = fn.decl->module;
  f.builder = &builder;
  f.result_type = fn.type->elem;
  frame_ = &f;
  Pos pos = node->pos;
  if (f.result_type->is_aggregate()) {
    f.result_reg = new_reg(pos);
    builder.out.params.push_back(Ty::u16);
  }
  struct Param {
    std::size_t index;
    Operand op;
  };
  std::vector<Param> params;
  for (std::size_t k = 0; k < node->list.size(); ++k) {
    TypeRef t = fn.types[k];
    Operand op;
    if (fn.known_args[k].defined()) {
      op = known_operand(fn.known_args[k]);
    } else if (t->is_dsd()) {
      op = in_dreg(t, new_dreg(pos));
    } else if (t->is_aggregate()) {
      op.where = Operand::memory;
      op.base = Operand::pointer;
      op.r = new_reg(pos);
      op.type = t;
      op.is_const = true;
      builder.out.params.push_back(Ty::u16);
    } else {
      if (!t->is_scalar())
        fail(pos, "wse.csl.type.runtime",
             cat("a parameter of type ", text(t), " cannot exist at run time"));
      op = in_reg(t, new_reg(pos));
      builder.out.params.push_back(bytecode_type(t));
    }
    params.push_back({k, op});
  }
  for (Param& p : params) {
    Node* n = node->list[p.index];
    if (builder.addressed.contains(n->name) &&
        (p.op.where == Operand::reg || p.op.where == Operand::dreg)) {
      Operand slot = frame_slot(p.op.type, pos);
      store_memory(slot, p.op, pos);
      slot.is_const = true;
      p.op = slot;
    }
    Place place = place_of_operand(p.op);
    place.is_const = true;
    declare(n->name, std::move(place), n->pos);
  }
  Flow flow = exec_block(node->b);
  if (flow == Flow::normal) {
    if (f.result_type->kind == T::void_) {
      emit({Op::ret, 0, 0, 0, 0}, pos);
    } else if (f.result_type->kind != T::void_) {
      fail(pos, "wse.csl.return.missing",
           cat("\"", name(fn.decl->name), "\" can end without returning ", text(f.result_type)));
    }
  } else if (jump_lands_here_) {
    emit(Insn::with_imm(Op::trap, 0, 0, string_index("unreachable")), pos);
  }
  if (builder.out.regs == 0) builder.out.regs = 1;
  program_->builders[static_cast<std::size_t>(fn.index)] = std::move(builder);
}

void Analyzer::compile_pending() {
  for (std::size_t k = 0; k < program_->functions.size(); ++k) {
    FunctionInstance& fn = program_->functions[k];
    if (fn.done) continue;
    fn.done = true;
    while (program_->builders.size() < program_->functions.size())
      program_->builders.emplace_back();
    int depth = depth_;
    try {
      if (!fn.decl->node->b)
        fail(fn.decl->node->pos, "wse.csl.call.extern",
             cat("\"", name(fn.decl->name), "\" is extern and has no body here"));
      compiling_ = &fn;
      compile_function(fn);
    } catch (const Abandon&) {
      depth_ = depth;
      program_->broken = true;
    }
    frame_ = nullptr;
    compiling_ = nullptr;
    while (program_->builders.size() < program_->functions.size())
      program_->builders.emplace_back();
  }
}

}  // namespace weft::wse::csl
