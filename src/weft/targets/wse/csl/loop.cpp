// SPDX-License-Identifier: Apache-2.0
// Loops and what leaves them: executed at compile time, unrolled, or emitted.
#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

/// After one round of a compile-time or unrolled loop: whether to stop, and with what flow.
bool Analyzer::loop_step(Flow flow, Symbol label, Flow& out, bool& stop) {
  stop = false;
  if (flow == Flow::normal) return true;
  if (flow == Flow::brk || flow == Flow::cont) {
    bool ours = frame_->pending_label == 0 || frame_->pending_label == label;
    if (!ours) {
      out = flow;
      stop = true;
      return false;
    }
    frame_->pending = Flow::normal;
    if (flow == Flow::brk) {
      out = Flow::normal;
      stop = true;
      return false;
    }
    return true;
  }
  if (flow == Flow::ended && frame_->loops.back().unrolled) {
    // Both ways out of a run-time condition inside an unrolled body were jumps; later rounds may be
    // reached.
    return true;
  }
  out = flow;
  stop = true;
  return false;
}

/// A label names one loop or block of those around a place.
void Analyzer::check_label(Symbol label, Pos pos) {
  for (const LoopLabel& l : frame_->loops)
    if (label && l.name == label)
      fail(pos, "wse.csl.name.duplicate",
           cat("the label \"", name(label), "\" is that of a loop or block around this one"));
}

Flow Analyzer::exec_while(Node* node) {
  check_label(node->name, node->pos);
  bool unroll = node->has(kInline) || known();
  Pos pos = node->pos;
  std::size_t depth = frame_->loops.size();
  LoopLabel l;
  l.name = node->name;
  l.known = known();
  l.unrolled = unroll && !known();
  frame_->loops.push_back(l);
  Flow out = Flow::normal;
  if (unroll) {
    std::int64_t rounds = 0;
    for (;;) {
      spend(pos);
      if (l.unrolled && ++rounds > 100000)
        fail(pos, "wse.csl.comptime.unroll", "an inline loop has more than 100,000 rounds");
      Operand c = coerce(eval(node->a), types_.bool_, node->a->pos, "a condition");
      if (!need_known(c, node->a->pos, "the condition of a loop that runs at compile time").i)
        break;
      bool stop = false;
      loop_step(exec_body(node->c), node->name, out, stop);
      for (std::size_t at : frame_->loops.back().continues) patch_here(at);
      frame_->loops.back().continues.clear();
      if (stop) break;
      if (node->b) exec(node->b);
    }
    for (std::size_t at : frame_->loops.back().breaks) patch_here(at);
    frame_->loops.resize(depth);
    return out;
  }
  Operand c = coerce(eval(node->a), types_.bool_, node->a->pos, "a condition");
  if (c.is_known() && !c.value.i) {
    frame_->loops.resize(depth);
    return Flow::normal;
  }
  bool endless = c.is_known();
  std::size_t exit = 0;
  std::uint16_t next = b().next, dnext = b().dnext;
  if (!endless) exit = emit_jump(Op::jz, to_reg(c, pos), pos);
  b().next = next;
  std::size_t top = here();
  jump_lands_here_ = true;
  ++frame_->runtime_branches;
  exec_body(node->c);
  for (std::size_t at : frame_->loops.back().continues) patch_here(at);
  if (node->b) exec(node->b);
  if (endless) {
    patch_to(emit_jump(Op::jmp, 0, pos), top);
  } else {
    Operand again = coerce(eval(node->a), types_.bool_, node->a->pos, "a condition");
    patch_to(emit_jump(Op::jnz, to_reg(again, pos), pos), top);
    patch_here(exit);
  }
  b().next = next;
  b().dnext = dnext;
  --frame_->runtime_branches;
  bool reachable = !endless || !frame_->loops.back().breaks.empty();
  for (std::size_t at : frame_->loops.back().breaks) patch_here(at);
  frame_->loops.resize(depth);
  return reachable ? Flow::normal : Flow::ended;
}

Flow Analyzer::exec_for(Node* node) {
  check_label(node->name, node->pos);
  Pos pos = node->pos;
  Operand it = eval(node->a);
  if (!it.type) fail(node->a->pos, "wse.csl.for.iterable", "for needs an array, a tuple or @range");
  if (it.type->kind == T::pointer && it.type->elem->kind == T::array)
    it = load(deref_place(it, pos), pos);
  bool is_range = it.type->kind == T::range;
  bool is_array = it.type->kind == T::array;
  bool is_tuple =
      it.type->kind == T::struct_ && (it.type->fields.empty() || it.type->fields[0].name == 0);
  bool is_string = it.type->kind == T::comptime_string;
  if (!is_range && !is_array && !is_tuple && !is_string) {
    fail(node->a->pos, "wse.csl.for.iterable",
         cat("for needs an array, a tuple or @range, found ", text(it.type)));
  }
  bool unroll = known() || node->has(kInline) || is_tuple || is_string ||
                (is_array && !it.type->elem->runtime);
  std::size_t depth = frame_->loops.size(), mark = frame_->locals.size();
  LoopLabel l;
  l.name = node->name;
  l.known = known();
  l.unrolled = unroll && !known();
  frame_->loops.push_back(l);
  Flow out = Flow::normal;
  auto constant = [&](Operand op) {
    Place p = place_of_operand(std::move(op));
    p.is_const = true;
    return p;
  };
  if (unroll) {
    Int128 count = 0;
    RangeValue* range = nullptr;
    if (is_range) {
      if (!it.is_known())
        fail(node->a->pos, "wse.csl.comptime.runtime_value",
             "the bounds of an inline or compile-time loop must be known at compile time");
      range = static_cast<RangeValue*>(it.value.obj.get());
      Int128 span = range->step > 0 ? range->stop - range->start : range->start - range->stop;
      Int128 step = range->step > 0 ? range->step : -range->step;
      count = span > 0 ? (span + step - 1) / step : 0;
    } else {
      count = is_string  ? static_cast<Int128>(name(static_cast<Symbol>(it.value.i)).size())
              : is_array ? it.type->count()
                         : static_cast<Int128>(it.type->fields.size());
    }
    if (l.unrolled && count > 100000)
      fail(pos, "wse.csl.comptime.unroll", "an inline loop has more than 100,000 rounds");
    for (Int128 k = 0; k < count; ++k) {
      spend(pos);
      Operand element;
      if (range) element = known_operand(make_int(range->element, range->start + k * range->step));
      else if (is_string)
        element = known_operand(make_int(
            types_.u8, static_cast<unsigned char>(
                           name(static_cast<Symbol>(it.value.i))[static_cast<std::size_t>(k)])));
      else element = load(place_of_operand(part(it, static_cast<std::size_t>(k), pos)), pos);
      declare(node->name2, constant(element), pos);
      if (node->name3)
        declare(node->name3, constant(known_operand(make_int(types_.u16, wrap_to(types_.u16, k)))),
                pos);
      bool stop = false;
      Flow f = exec_body(node->c);
      frame_->locals.resize(mark);
      loop_step(f, node->name, out, stop);
      for (std::size_t at : frame_->loops.back().continues) patch_here(at);
      frame_->loops.back().continues.clear();
      if (stop) break;
    }
    for (std::size_t at : frame_->loops.back().breaks) patch_here(at);
    frame_->loops.resize(depth);
    return out;
  }
  // Run time. Counters are computed in 64 bits: no bound wraps.
  auto i64 = static_cast<std::uint8_t>(Ty::i64);
  std::uint16_t next = b().next, dnext = b().dnext;
  std::uint16_t counter = new_reg(pos), stop = new_reg(pos), step = new_reg(pos),
                test = new_reg(pos);
  TypeRef element = types_.u16;
  bool down = false, either = false;  // either: the step's sign is known at run time only
  Operand array;
  std::uint16_t index = kNoReg;
  if (is_range) {
    Operand start_op, stop_op, step_op;
    if (it.is_known()) {
      auto* r = static_cast<RangeValue*>(it.value.obj.get());
      element = r->element;
      start_op = known_operand(make_int(types_.get(T::i64), r->start));
      stop_op = known_operand(make_int(types_.get(T::i64), r->stop));
      step_op = known_operand(make_int(types_.get(T::i64), r->step));
      down = r->step < 0;
    } else {
      element = (*it.fields)[0].type;
      start_op = (*it.fields)[0];
      stop_op = (*it.fields)[1];
      step_op = (*it.fields)[2];
      if (step_op.is_known()) down = step_op.value.i < 0;
      else either = step_op.type->is_signed();
    }
    if (element->kind == T::comptime_int) {
      fail(node->a->pos, "wse.csl.for.range_type",
           "a loop at run time needs a @range over a run-time integer type");
    }
    start_op.temp = stop_op.temp = step_op.temp = false;
    to_reg_at(start_op, counter, pos);
    to_reg_at(stop_op, stop, pos);
    to_reg_at(step_op, step, pos);
  } else {
    array = collapse(materialize(it, pos), pos);
    if (array.base == Operand::pointer) array.r = to_new_reg(in_reg(types_.u16, array.r), pos);
    load_constant(counter, 0, types_.get(T::i64), pos);
    load_constant(stop, static_cast<std::uint64_t>(it.type->count()), types_.get(T::i64), pos);
    load_constant(step, 1, types_.get(T::i64), pos);
  }
  if (node->name3 && is_range) {
    index = new_reg(pos);
    load_constant(index, 0, types_.u16, pos);
  }
  std::uint16_t zero = kNoReg, other = kNoReg;
  if (either) {
    zero = new_reg(pos);
    other = new_reg(pos);
    load_constant(zero, 0, types_.get(T::i64), pos);
  }
  auto emit_test = [&] {
    if (!either) {
      emit({down ? Op::gt : Op::lt, i64, test, counter, stop}, pos);
      return;
    }
    // (step < 0 and counter > stop) or (step > 0 and counter < stop), without jumps.
    auto b1 = static_cast<std::uint8_t>(Ty::b1);
    emit({Op::lt, i64, test, step, zero}, pos);
    emit({Op::gt, i64, other, counter, stop}, pos);
    emit({Op::band, b1, other, other, test}, pos);
    std::uint16_t up = new_reg(pos);
    emit({Op::gt, i64, test, step, zero}, pos);
    emit({Op::lt, i64, up, counter, stop}, pos);
    emit({Op::band, b1, test, test, up}, pos);
    emit({Op::bor, b1, test, test, other}, pos);
  };
  emit_test();
  std::size_t exit = emit_jump(Op::jz, test, pos);
  std::size_t top = here();
  jump_lands_here_ = true;
  ++frame_->runtime_branches;
  if (is_range) {
    Place p = constant(in_reg(element, counter));
    if (b().addressed.contains(node->name2)) {
      Operand slot = frame_slot(element, pos);
      store_memory(slot, in_reg(element, counter), pos);
      slot.is_const = true;
      p = place_of_operand(slot);
    }
    declare(node->name2, p, pos);
    if (node->name3) declare(node->name3, constant(in_reg(types_.u16, index)), pos);
  } else {
    Operand e = array;
    e.type = it.type->elem;
    e.index = counter;
    e.is_const = true;
    if (!e.type->is_scalar()) e = collapse(e, pos);
    if (e.type->is_scalar() || e.type->is_dsd()) e = load_memory(e, pos);
    declare(node->name2, constant(e), pos);
    if (node->name3) declare(node->name3, constant(in_reg(types_.u16, counter)), pos);
  }
  exec_body(node->c);
  frame_->locals.resize(mark);
  for (std::size_t at : frame_->loops.back().continues) patch_here(at);
  emit({Op::add, i64, counter, counter, step}, pos);
  if (index != kNoReg) {
    std::uint16_t one = new_reg(pos);
    load_constant(one, 1, types_.u16, pos);
    emit({Op::add, static_cast<std::uint8_t>(Ty::u16), index, index, one}, pos);
  }
  emit_test();
  patch_to(emit_jump(Op::jnz, test, pos), top);
  patch_here(exit);
  --frame_->runtime_branches;
  for (std::size_t at : frame_->loops.back().breaks) patch_here(at);
  frame_->loops.resize(depth);
  b().next = next;
  b().dnext = dnext;
  return Flow::normal;
}

Flow Analyzer::exec_break(Node* node) {
  Frame& f = *frame_;
  Pos pos = node->pos;
  bool is_break = node->kind == Kind::break_;
  int target = -1;
  for (std::size_t k = f.loops.size(); k-- > 0;) {
    const LoopLabel& l = f.loops[k];
    if (node->name ? l.name == node->name : !l.is_block) {
      target = static_cast<int>(k);
      break;
    }
  }
  if (target < 0) {
    fail(pos, "wse.csl.break.target",
         node->name ? cat("there is no enclosing loop or block labelled \"", name(node->name), "\"")
                    : std::string("there is no enclosing loop"));
  }
  if (!is_break && f.loops[static_cast<std::size_t>(target)].is_block) {
    fail(pos, "wse.csl.break.target", "continue needs a loop; this label names a block");
  }
  Operand v;
  if (node->a) v = eval(node->a, f.loops[static_cast<std::size_t>(target)].hint);
  LoopLabel& l = f.loops[static_cast<std::size_t>(target)];
  if (known() && !l.known && f.builder) {
    fail(pos, "wse.csl.break.comptime", "a loop at run time cannot be left from inside comptime");
  }
  f.pending = is_break ? Flow::brk : Flow::cont;
  f.pending_label = l.name;
  f.break_value = v;
  if (!known()) {
    const bool has_value = v.where != Operand::nothing && v.type->kind != T::void_;
    const bool chosen = l.has_result || l.has_void || f.runtime_branches > l.branches;
    if (l.is_block && chosen && (has_value ? l.has_void : l.has_result))
      fail(pos, "wse.csl.type.mismatch",
           cat("expected ", has_value ? "void" : text(l.result.type),
               " as at another break of this block, found ", has_value ? text(v.type) : "void"));
    if (l.is_block && chosen && !has_value) l.has_void = true;
    if (l.is_block && chosen && has_value) {
      if (!l.has_result) {
        // A number takes the type that its place wants.
        if (l.hint && (v.type->kind == T::comptime_int || v.type->kind == T::comptime_float))
          v = coerce(v, l.hint, pos);
        l.result = v.type->kind == T::comptime_int ? in_reg(v.type, new_reg(pos))
                                                   : chosen_value(v.type, pos);
        l.has_result = true;
      }
      if (v.type->kind == T::comptime_int && l.result.type->kind == T::comptime_int) {
        // The type comes with a later break; an integer is the same in a register of any width.
        l.integers.push_back({v.value.i, pos});
        v = known_operand(make_int(types_.get(T::i64), v.value.i));
      } else if (l.result.type->kind == T::comptime_int) {
        if (!v.type->is_int())
          fail(pos, "wse.csl.type.mismatch",
               cat("expected an integer as at another break of this block, found ", text(v.type)));
        for (const auto& [value, where] : l.integers)
          coerce(known_operand(make_int(types_.comptime_int, value)), v.type, where);
        l.result.type = v.type;
      } else {
        v = coerce(v, l.result.type, pos);
      }
      choose(l.result, v, pos);
      f.break_value = Operand();
    }
    std::size_t jump = emit_jump(Op::jmp, 0, pos);
    (is_break ? l.breaks : l.continues).push_back(jump);
  }
  return f.pending;
}

}  // namespace weft::wse::csl
