// SPDX-License-Identifier: Apache-2.0
// FIFOs: @allocate_fifo with its settings, lengths.
#include <algorithm>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

// What an operation does that finds a FIFO empty or full.
FifoAction Analyzer::fifo_action(const Operand& v, const std::string& setting, Pos pos) {
  static constexpr std::string_view kNames[] = {"test_or_suspend", "terminate", "suspend", "fault"};
  const Value action = need_known(v, pos, setting);
  const bool wse2 = options_.arch == Arch::wse2;
  for (std::size_t k = 0; k < std::size(kNames); ++k) {
    const Value* chosen = field_of(action, kNames[k]);
    if (!chosen || !chosen->i) continue;
    only_in(Sdk::v2, pos, setting, "leave it out");
    if (wse2 && k && (k > 1 || setting == "full_action")) break;
    return static_cast<FifoAction>(k);
  }
  fail(pos, "wse.csl.fifo.action",
       cat(setting, " is ", show(action), "; legal are .{ .test_or_suspend = true }",
           !wse2                      ? ", terminate, suspend and fault"
           : setting == "full_action" ? ", the default, on WSE-2"
                                      : " and terminate on WSE-2"));
}

Operand Analyzer::bi_allocate_fifo(Node* node, TypeRef) {
  need_program(node->pos, "@allocate_fifo");
  if (!known()) fail(node->pos, "wse.csl.builtin.context", "a FIFO is a module-level const");
  Place p = place(node->list[0]);
  Pos pos = node->pos;
  if (p.type->kind == T::pointer)
    p = pointee(need_known(load(p, pos), pos, "the buffer of a FIFO"), pos);
  if (p.kind != Place::memory || !p.operand.global || p.type->kind != T::array || p.is_const) {
    fail(node->list[0]->pos, "wse.csl.fifo.buffer",
         "the buffer of a FIFO is a module-level var array");
  }
  if (p.type->elem->size != 2 && p.type->elem->size != 4)
    fail(node->list[0]->pos, "wse.csl.fifo.buffer",
         cat("the elements of a FIFO have 16 or 32 bits, found ", text(p.type->elem)));
  if (const std::uint32_t align = p.operand.global->align; align > 1 && align < 4)
    fail(node->list[0]->pos, "wse.csl.fifo.buffer",
         cat("the buffer of a FIFO is aligned to 4 bytes at least, and this one to ", align),
         "leave align out, or write align(4)");
  if (p.type->size == 0)
    fail(node->list[0]->pos, "wse.csl.fifo.buffer",
         "the buffer of a FIFO has no elements: whatever is pushed finds it full");
  if (program_->out.fifos.size() >= 255) fail(pos, "wse.csl.fifo.count", "more than 255 FIFOs");
  Fifo f;
  f.base = static_cast<std::uint16_t>(address(p.operand.global, pos));
  f.bytes = static_cast<std::uint16_t>(std::min<std::uint32_t>(p.type->size, 0xffff));
  f.elem_bytes = static_cast<std::uint8_t>(p.type->elem->size);
  std::size_t index = program_->out.fifos.size();
  program_->out.fifos.push_back(f);
  if (node->list.size() > 1) {
    Operand config = arg(node, 1);
    if (config.type->kind != T::struct_)
      fail(node->list[1]->pos, "wse.csl.type.mismatch",
           cat("expected a struct, found ", text(config.type)));
    program_->deferred.push_back([this, index, config, pos] {
      for (std::size_t k = 0; k < config.type->fields.size(); ++k) {
        const std::string& g = name(config.type->fields[k].name);
        Operand v = part(config, k, pos);
        Fifo& fifo = program_->out.fifos[index];
        if (g == "activate_push") fifo.on_push = completion(v, Completion::activate, pos);
        else if (g == "activate_pop") fifo.on_pop = completion(v, Completion::activate, pos);
        else if (g == "empty_action") fifo.on_empty = fifo_action(v, g, pos);
        else if (g == "full_action") fifo.on_full = fifo_action(v, g, pos);
        else if (g == "priority") fifo.priority = priority_from(need_known(v, pos, g), pos);
        else if (g != "simd_mode" && g != "dest" && g != "src" && g != "xdsr")
          fail(pos, "wse.csl.settings.unknown", cat("a FIFO has no setting \"", g, "\""),
               "legal are activate_push, activate_pop, priority, empty_action, full_action, "
               "simd_mode, dest, src and xdsr");
      }
    });
  }
  return known_operand(make_int(types_.get(T::fifo), static_cast<Int128>(index)));
}

Operand Analyzer::set_fifo_length(Node* node, Op op, const char* builtin) {
  need_runtime(node->pos, builtin);
  const Value fifo = known_arg(node, 0);
  if (fifo.type->kind != T::fifo)
    fail(node->pos, "wse.csl.type.mismatch", cat("expected a FIFO, found ", text(fifo.type)));
  const Operand length = coerce(arg(node, 1), types_.u16, node->pos);
  emit(Insn::with_imm(op, 0, to_reg(length, node->pos), static_cast<std::int32_t>(fifo.i)),
       node->pos);
  return void_operand();
}

Operand Analyzer::bi_set_fifo_read_length(Node* node, TypeRef) {
  return set_fifo_length(node, Op::fiforead, "@set_fifo_read_length");
}

Operand Analyzer::bi_set_fifo_write_length(Node* node, TypeRef) {
  return set_fifo_length(node, Op::fifowrite, "@set_fifo_write_length");
}

}  // namespace weft::wse::csl
