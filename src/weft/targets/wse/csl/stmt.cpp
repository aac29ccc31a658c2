// SPDX-License-Identifier: Apache-2.0
// Statements, executed at compile time or emitted.
#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

void Analyzer::declare(Symbol symbol, Place place, Pos pos) {
  if (frame_->locals.size() > 100000)
    fail(pos, "wse.csl.locals", "more than 100,000 local variables are alive");
  place.operand.temp = false;
  Local l;
  l.name = symbol;
  l.place = std::move(place);
  frame_->locals.push_back(std::move(l));
}

Flow Analyzer::exec(Node* node) {
  DepthGuard guard(*this, node->pos);
  return exec_inner(node);
}

Flow Analyzer::exec_inner(Node* node) {
  switch (node->kind) {
    case Kind::block: {
      if (node->name) {
        eval_block_value(node, nullptr);
        Flow f = expression_flow_;
        expression_flow_ = Flow::normal;
        return f;
      }
      return exec_block(node);
    }
    case Kind::var_decl: return exec_var(node);
    case Kind::assign: return exec_assign(node);
    case Kind::if_: return exec_if(node);
    case Kind::while_: return exec_while(node);
    case Kind::for_: return exec_for(node);
    case Kind::switch_: {
      Flow flow = Flow::normal;
      eval_switch(node, nullptr, true, &flow);
      return flow;
    }
    case Kind::return_: return exec_return(node);
    case Kind::break_:
    case Kind::continue_: return exec_break(node);
    case Kind::comptime_block: {
      ++frame_->known;
      struct Restore {
        ~Restore() { --f->known; }
        Frame* f;
      } restore{frame_};
      return exec(node->a);
    }
    default: {
      Operand v = eval(node);
      if (v.type && v.type->kind == T::noreturn) {
        Flow f = expression_flow_;
        expression_flow_ = Flow::normal;
        return f == Flow::normal ? Flow::ended : f;
      }
      if (node->kind == Kind::builtin && v.type && v.type->is_dsd())
        warn(node->pos, "wse.csl.dsd.unused",
             cat("@", name(node->name), " returns a new descriptor and changes none: write d = @",
                 name(node->name), "(d, ...);"));
      return Flow::normal;
    }
  }
}

/// A body that is no declaration scope of its own: single statement or block.
Flow Analyzer::exec_body(Node* node) {
  std::size_t mark = frame_->locals.size();
  Flow f = exec(node);
  frame_->locals.resize(std::min(mark, frame_->locals.size()));
  return f;
}

Flow Analyzer::exec_block(Node* node) {
  std::size_t mark = frame_->locals.size();
  bool code = !known();
  std::uint16_t next = code ? b().next : 0, dnext = code ? b().dnext : 0;
  Flow flow = Flow::normal;
  for (Node* s : node->list) {
    std::uint16_t r = code ? b().next : 0, d = code ? b().dnext : 0;
    if (code) {
      // One run reports the errors of several statements.
      int loops = static_cast<int>(frame_->loops.size());
      int branches = frame_->runtime_branches, known_depth = frame_->known, depth = depth_;
      Frame* frame = frame_;
      try {
        flow = exec(s);
      } catch (const Abandon&) {
        frame_ = frame;
        frame_->loops.resize(static_cast<std::size_t>(loops));
        frame_->runtime_branches = branches;
        frame_->known = known_depth;
        depth_ = depth;
        if (s->kind == Kind::var_decl) throw;  // what follows would complain about the missing name
        program_->broken = true;
        flow = s->kind == Kind::return_ ? Flow::ret : Flow::normal;
      }
    } else {
      flow = exec(s);
    }
    if (code && s->kind != Kind::var_decl) {
      b().next = r;
      b().dnext = d;
    }
    if (flow != Flow::normal) break;
  }
  frame_->locals.resize(std::min(mark, frame_->locals.size()));
  if (code) {
    b().next = next;
    b().dnext = dnext;
  }
  return flow;
}

Flow Analyzer::exec_var(Node* node) {
  Pos pos = node->pos;
  bool is_const = node->has(kConst);
  bool at_compile_time = known() || node->has(kComptime);
  TypeRef type = node->a ? eval_type(node->a) : nullptr;
  for (const Local& l : frame_->locals) {
    (void)l;
  }
  if (at_compile_time) {
    Value v;
    if (node->b) {
      ++frame_->known;
      struct Restore {
        ~Restore() { --f->known; }
        Frame* f;
      } restore{frame_};
      Operand op = eval(node->b, type);
      if (type) op = coerce(op, type, node->b->pos, cat("\"", name(node->name), "\""));
      v = need_known(op, node->b->pos, "the value of a compile-time variable");
      if (!type) type = v.type;
    } else {
      if (!type || is_const)
        fail(pos, "wse.csl.var.type", cat("\"", name(node->name), "\" needs a value"));
      v = zero_of(type, pos);
    }
    Place p;
    p.kind = Place::cell;
    p.type = type->kind == T::comptime_struct ? v.type : type;
    p.is_const = is_const;
    p.cell_ref = Ref<Cell>(new Cell);
    p.cell_ref->value = std::move(v);
    declare(node->name, std::move(p), pos);
    return Flow::normal;
  }
  std::uint16_t mark = b().next, dmark = b().dnext;
  Operand v;
  if (node->b) {
    v = eval(node->b, type);
    if (type) v = coerce(v, type, node->b->pos, cat("\"", name(node->name), "\""));
    if (v.type && v.type->kind == T::noreturn) {
      Flow f = expression_flow_;
      expression_flow_ = Flow::normal;
      return f == Flow::normal ? Flow::ended : f;
    }
    if (!type || type->kind == T::comptime_struct) type = v.type;
  } else if (!type || is_const) {
    fail(pos, "wse.csl.var.type", cat("\"", name(node->name), "\" needs a value"));
  }
  if (!type) fail(pos, "wse.csl.var.type", cat("\"", name(node->name), "\" has no value"));
  Place p;
  p.type = type;
  is_const |= type->kind == T::range;  // bounds are values; another range needs another name
  p.is_const = is_const;
  if (is_const && v.is_known()) {
    p.kind = Place::value;
    p.operand = v;
    declare(node->name, std::move(p), pos);
    return Flow::normal;
  }
  bool addressed = b().addressed.contains(node->name);
  if (!type->runtime) {
    if (is_const && v.where == Operand::parts) {
      p.kind = Place::value;
      p.operand = v;
      for (Operand& f : *p.operand.fields) {
        if (f.where == Operand::reg) f = in_reg(f.type, to_new_reg(f, pos));
      }
      declare(node->name, std::move(p), pos);
      return Flow::normal;
    }
    fail(pos, "wse.csl.var.type",
         cat("var \"", name(node->name), "\" needs a run-time type: ", text(type),
             " exists only at compile time"));
  }
  if (type->is_aggregate() || addressed) {
    if (is_const && v.where == Operand::parts && !addressed && type->kind == T::struct_) {
      // Fields that are variables must not follow later assignments.
      p.kind = Place::value;
      p.operand = v;
      p.operand.fields = std::make_shared<std::vector<Operand>>(*v.fields);
      for (Operand& f : *p.operand.fields) {
        if (f.where == Operand::reg) f = in_reg(f.type, to_new_reg(f, pos));
        else if (f.where == Operand::dreg) {
          std::uint16_t d = new_dreg(pos);
          to_dreg_at(f, d, pos);
          f = in_dreg(f.type, d);
        } else if (f.where == Operand::memory) {
          Operand slot = frame_slot(f.type, pos);
          store_memory(slot, f, pos);
          f = slot;
        }
      }
      declare(node->name, std::move(p), pos);
      return Flow::normal;
    }
    Operand slot = frame_slot(type, pos);
    store_memory(slot, node->b ? v : known_operand(zero_of(type, pos)), pos);
    b().next = mark;
    b().dnext = dmark;
    p.kind = Place::memory;
    p.operand = slot;
    p.operand.is_const = is_const;
    declare(node->name, std::move(p), pos);
    return Flow::normal;
  }
  if (type->is_dsd()) {
    b().next = mark;
    std::uint16_t d = dmark;
    if (!node->b) v = known_operand(zero_of(type, pos));
    b().dnext = dmark;
    new_dreg(pos);
    b().dnext = std::max<std::uint16_t>(b().dnext, dmark + 1);
    to_dreg_at(v, d, pos);
    b().dnext = static_cast<std::uint16_t>(dmark + 1);
    p.kind = Place::dreg;
    p.operand = in_dreg(type, d);
    declare(node->name, std::move(p), pos);
    return Flow::normal;
  }
  if (type->kind == T::void_) {
    p.kind = Place::value;
    p.operand = void_operand();
    declare(node->name, std::move(p), pos);
    return Flow::normal;
  }
  if (!node->b) v = known_operand(zero_of(type, pos));
  b().next = std::max<std::uint16_t>(b().next, mark);
  std::uint16_t saved = b().next;
  b().next = mark;
  new_reg(pos);
  b().next = std::max<std::uint16_t>(saved, static_cast<std::uint16_t>(mark + 1));
  to_reg_at(v, mark, pos);
  b().next = static_cast<std::uint16_t>(mark + 1);
  p.kind = Place::reg;
  p.operand = in_reg(type, mark);
  declare(node->name, std::move(p), pos);
  return Flow::normal;
}

Flow Analyzer::exec_assign(Node* node) {
  Place p = place(node->a);
  Pos pos = node->pos;
  if (node->op == Tok::assign) {
    if (p.kind == Place::memory && !known()) p.operand.temp = false;
    Operand v = eval(node->b, p.type);
    if (v.type && v.type->kind == T::noreturn) {
      Flow f = expression_flow_;
      expression_flow_ = Flow::normal;
      return f == Flow::normal ? Flow::ended : f;
    }
    store(p, std::move(v), pos);
    return Flow::normal;
  }
  if (p.is_const) refuse_store(p, pos);
  Tok op = Tok::plus;
  switch (node->op) {
    case Tok::minus_assign: op = Tok::minus; break;
    case Tok::star_assign: op = Tok::star; break;
    case Tok::slash_assign: op = Tok::slash; break;
    case Tok::percent_assign: op = Tok::percent; break;
    case Tok::shl_assign: op = Tok::shl; break;
    case Tok::shr_assign: op = Tok::shr; break;
    case Tok::amp_assign: op = Tok::amp; break;
    case Tok::pipe_assign: op = Tok::pipe; break;
    case Tok::caret_assign: op = Tok::caret; break;
    default: break;
  }
  Operand old = load(p, pos);
  TypeRef down = p.type->is_number() && op != Tok::shl && op != Tok::shr ? p.type : nullptr;
  Operand v = arithmetic(pos, op, std::move(old), eval(node->b, down));
  store(p, std::move(v), pos);
  return Flow::normal;
}

Flow Analyzer::exec_if(Node* node) {
  Operand c = coerce(eval(node->a), types_.bool_, node->a->pos, "a condition");
  if (c.is_known()) {
    if (c.value.i) return exec_body(node->b);
    return node->c ? exec_body(node->c) : Flow::normal;
  }
  if (known()) need_known(c, node->a->pos, "a condition");
  Pos pos = node->pos;
  std::size_t to_else = emit_jump(Op::jz, to_reg(c, pos), pos);
  ++frame_->runtime_branches;
  Flow a = exec_body(node->b);
  Flow e = Flow::normal;
  if (node->c) {
    std::size_t to_end = a == Flow::normal ? emit_jump(Op::jmp, 0, pos) : 0;
    patch_here(to_else);
    e = exec_body(node->c);
    if (a == Flow::normal) patch_here(to_end);
  } else {
    patch_here(to_else);
  }
  --frame_->runtime_branches;
  return a != Flow::normal && e != Flow::normal ? Flow::ended : Flow::normal;
}

Flow Analyzer::exec_return(Node* node) {
  Frame& f = *frame_;
  Pos pos = node->pos;
  if (!f.result_type)
    fail(pos, "wse.csl.return.outside", "return is legal only inside a function or task");
  Operand v = node->a ? eval(node->a, f.result_type) : void_operand();
  if (v.type && v.type->kind == T::noreturn) return Flow::ended;
  if (!node->a && f.result_type->kind != T::void_) {
    fail(pos, "wse.csl.return.value",
         cat("this function returns ", text(f.result_type), ", but return has no value"));
  }
  v = coerce(v, f.result_type, pos, "the result");
  if (!f.builder || f.known > 0) {
    if (f.builder && !f.inlined)
      fail(pos, "wse.csl.return.comptime",
           "a run-time function cannot return from inside comptime");
    f.result = known_operand(need_known(v, pos, "the result of a compile-time call"));
    return Flow::ret;
  }
  if (f.inlined) {
    if (f.runtime_branches == f.inline_branches && f.result_jumps.empty()) {
      f.result = v;
      return Flow::ret;
    }
    if (f.result_type->is_scalar()) {
      v.temp = false;
      to_reg_at(v, f.result_reg, pos);
    } else if (f.result_type->is_dsd()) {
      to_dreg_at(v, f.result_reg, pos);
    } else if (f.result_type->kind != T::void_) {
      fail(pos, "wse.csl.inline.result",
           cat("an inline function cannot return ", text(f.result_type),
               " under a run-time condition"));
    }
    f.result_jumps.push_back(emit_jump(Op::jmp, 0, pos));
    return Flow::ret;
  }
  if (f.result_type->is_scalar()) {
    to_reg_at(v, 0, pos);
  } else if (f.result_type->is_dsd()) {
    to_dreg_at(v, 0, pos);
  } else if (f.result_type->is_aggregate()) {
    Operand mem;
    mem.where = Operand::memory;
    mem.base = Operand::pointer;
    mem.r = f.result_reg;
    mem.type = f.result_type;
    store_memory(mem, v, pos);
  }
  emit({Op::ret, 0, 0, 0, 0}, pos);
  return Flow::ret;
}

/// Names whose address is taken somewhere in a body: they live in memory.
void Analyzer::collect_addressed(const Node* node, std::set<Symbol>& out) const {
  std::vector<const Node*> stack{node};
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (!n) continue;
    if (n->kind == Kind::address_of || n->kind == Kind::tensor_access) {
      const Node* at = n->a;
      while (at && (at->kind == Kind::index || at->kind == Kind::field)) at = at->a;
      if (at && at->kind == Kind::ident) out.insert(at->name);
    }
    stack.push_back(n->a);
    stack.push_back(n->b);
    stack.push_back(n->c);
    for (const Node* k : n->list) stack.push_back(k);
    for (const Node* k : n->list2) stack.push_back(k);
  }
}

}  // namespace weft::wse::csl
