// SPDX-License-Identifier: Apache-2.0
// Registers, constants and jumps of the function being emitted.
#include <bit>
#include <cstring>

#include "weft/base/text.h"
#include "weft/targets/wse/csl/analyzer.h"

namespace weft::wse::csl {

std::uint16_t Analyzer::new_reg(Pos pos) {
  Builder& f = b();
  if (f.next >= 0xfff0)
    fail(pos, "wse.csl.emit.registers", "the function needs more than 65,520 registers");
  std::uint16_t r = f.next++;
  f.out.regs = std::max<std::uint16_t>(f.out.regs, f.next);
  return r;
}

std::uint16_t Analyzer::new_dreg(Pos pos) {
  Builder& f = b();
  if (f.dnext >= 0xfff0)
    fail(pos, "wse.csl.emit.registers", "the function needs more than 65,520 descriptor registers");
  std::uint16_t r = f.dnext++;
  f.out.dsds = std::max<std::uint16_t>(f.out.dsds, f.dnext);
  return r;
}

std::size_t Analyzer::emit(Insn insn, Pos pos) {
  Builder& f = b();
  if (f.out.code.size() > 4'000'000)
    fail(pos, "wse.csl.emit.size", "the function has more than 4,000,000 instructions");
  const Source& s = sources_[pos.file];
  auto line = static_cast<std::uint32_t>(s.line_of(pos.offset));
  if (line != f.last_line || pos.file + 1u != f.last_file) {
    f.last_line = line;
    f.last_file = pos.file + 1u;
    auto [it, fresh] =
        program_->file_index.emplace(&s, static_cast<int>(program_->out.files.size()));
    if (fresh) program_->out.files.push_back(s.path);
    f.out.lines.push_back({static_cast<std::uint32_t>(f.out.code.size()),
                           static_cast<std::uint32_t>(it->second), line});
  }
  jump_lands_here_ = false;
  f.out.code.push_back(insn);
  return f.out.code.size() - 1;
}

std::size_t Analyzer::emit_jump(Op op, std::uint16_t reg, Pos pos) {
  return emit(Insn::with_imm(op, 0, reg, 0), pos);
}

void Analyzer::patch_to(std::size_t at, std::size_t target) {
  Insn& insn = b().out.code[at];
  insn = Insn::with_imm(insn.op, insn.ty, insn.a, static_cast<std::int32_t>(target));
}

void Analyzer::patch_here(std::size_t at) {
  patch_to(at, here());
  jump_lands_here_ = true;
}

Operand Analyzer::in_reg(TypeRef type, std::uint16_t reg) const {
  Operand op;
  op.where = Operand::reg;
  op.type = type;
  op.r = reg;
  return op;
}

Operand Analyzer::in_dreg(TypeRef type, std::uint16_t reg) const {
  Operand op;
  op.where = Operand::dreg;
  op.type = type;
  op.r = reg;
  return op;
}

std::uint64_t Analyzer::scalar_bits(const Value& v, Pos pos) {
  TypeRef t = v.type;
  if (t->is_float()) return float_bits(t, v.f);
  if (t->kind == T::pointer) {
    if (t->elem->kind == T::fn) {
      const Decl* d = static_cast<const Decl*>(v.p);
      return d ? function_pointer(const_cast<Decl*>(d), pos) : static_cast<std::uint16_t>(v.i);
    }
    if (v.p) {
      return static_cast<std::uint16_t>(address(static_cast<Global*>(const_cast<void*>(v.p)), pos) +
                                        static_cast<int>(v.i));
    }
    if (v.obj) {
      auto* cp = static_cast<CellPointer*>(v.obj.get());
      Global* g = global_for_cell(*cp->cell, pos);
      TypeRef at = g->type;
      std::int64_t offset = 0;
      for (std::int64_t k : cp->path) {
        if (at->kind == T::array) {
          at = at->elem;
          offset += k * at->size;
        } else {
          offset += at->offsets[static_cast<std::size_t>(k)];
          at = at->fields[static_cast<std::size_t>(k)].type;
        }
      }
      return static_cast<std::uint16_t>(address(g, pos) + offset);
    }
    return static_cast<std::uint16_t>(v.i);
  }
  return static_cast<std::uint64_t>(v.i);
}

void Analyzer::load_constant(std::uint16_t reg, std::uint64_t bits, TypeRef type, Pos pos) {
  auto ty = static_cast<std::uint8_t>(bytecode_type(type));
  auto as_signed = static_cast<std::int64_t>(bits);
  if (as_signed >= INT32_MIN && as_signed <= INT32_MAX) {
    emit(Insn::with_imm(Op::ldi, ty, reg, static_cast<std::int32_t>(as_signed)), pos);
    return;
  }
  std::string key = std::to_string(bits);
  auto [it, fresh] =
      program_->constants.emplace(key, static_cast<int>(program_->out.constants.size()));
  if (fresh) program_->out.constants.push_back(bits);
  emit(Insn::with_imm(Op::ldc, ty, reg, it->second), pos);
}

std::uint16_t Analyzer::to_reg(const Operand& op, Pos pos) {
  if (op.where == Operand::reg) return op.r;
  return to_new_reg(op, pos);
}

std::uint16_t Analyzer::to_new_reg(const Operand& op, Pos pos) {
  std::uint16_t r = new_reg(pos);
  to_reg_at(op, r, pos);
  return r;
}

void Analyzer::to_reg_at(const Operand& op, std::uint16_t reg, Pos pos) {
  if (!op.type || !op.type->is_scalar()) {
    fail(pos, "wse.csl.type.runtime",
         cat("a value of type ", text(op.type), " cannot exist at run time",
             op.type && op.type->kind == T::comptime_int ? "; give it a type with @as" : ""));
  }
  switch (op.where) {
    case Operand::known: load_constant(reg, scalar_bits(op.value, pos), op.type, pos); return;
    case Operand::reg: {
      if (op.r == reg) return;
      // An instruction that has just computed a temporary can write to the destination itself.
      Function& f = b().out;
      if (op.temp && !f.code.empty()) {
        Insn& last = f.code.back();
        bool writes_a =
            last.op >= Op::ldi && last.op <= Op::math2 && last.op != Op::fma && last.a == op.r;
        if ((writes_a ||
             ((last.op == Op::ld || last.op == Op::ldx || last.op == Op::ldg) && last.a == op.r)) &&
            last.ty == static_cast<std::uint8_t>(bytecode_type(op.type)) && last.op != Op::cvt &&
            !jump_lands_here_) {
          last.a = reg;
          return;
        }
      }
      emit({Op::mov, static_cast<std::uint8_t>(bytecode_type(op.type)), reg, op.r, 0}, pos);
      return;
    }
    case Operand::memory: {
      if (op.bit >= 0) return to_reg_at(load_field(op, pos), reg, pos);
      auto ty = static_cast<std::uint8_t>(bytecode_type(op.type));
      if (op.index != kNoReg) {
        Operand base = op;
        base.index = kNoReg;
        emit({Op::ldx, ty, reg, address_reg(base, pos), op.index}, pos);
      } else if (op.base == Operand::absolute) {
        emit(Insn::with_imm(Op::ldg, ty, reg, address(op.global, pos) + op.offset), pos);
      } else if (op.base == Operand::pointer && op.offset >= -32768 && op.offset <= 32767) {
        emit({Op::ld, ty, reg, op.r, static_cast<std::uint16_t>(op.offset)}, pos);
      } else {
        emit({Op::ld, ty, reg, address_reg(op, pos), 0}, pos);
      }
      return;
    }
    default:
      fail(pos, "wse.csl.type.runtime", cat("a value of type ", text(op.type), " is not a scalar"));
  }
}

std::uint16_t Analyzer::to_dreg(const Operand& op, Pos pos) {
  if (op.where == Operand::dreg) return op.r;
  std::uint16_t r = new_dreg(pos);
  to_dreg_at(op, r, pos);
  return r;
}

void Analyzer::to_dreg_at(const Operand& op, std::uint16_t reg, Pos pos) {
  switch (op.where) {
    case Operand::known:
      emit(Insn::with_imm(Op::dconst, 0, reg, dsd_index(op.value, pos)), pos);
      return;
    case Operand::dreg:
      if (op.r != reg) emit({Op::dmov, 0, reg, op.r, 0}, pos);
      return;
    case Operand::memory: emit({Op::dload, 0, reg, address_reg(op, pos), 0}, pos); return;
    default:
      fail(pos, "wse.csl.type.mismatch", cat("expected a descriptor, found ", text(op.type)));
  }
}

int Analyzer::string_index(const std::string& s) {
  auto [it, fresh] = program_->strings.emplace(s, static_cast<int>(program_->out.strings.size()));
  if (fresh) program_->out.strings.push_back(s);
  return it->second;
}

int Analyzer::dsd_row(const Dsd& d, Global* base) {
  std::string key(reinterpret_cast<const char*>(&d), sizeof d);
  key += hex(reinterpret_cast<std::uintptr_t>(base));
  auto [it, fresh] = program_->dsds.emplace(key, static_cast<int>(program_->out.dsds.size()));
  if (fresh) {
    program_->out.dsds.push_back(d);
    if (base)
      program_->out.dsds.back().base =
          static_cast<std::uint16_t>(address(base, base->pos) + d.base);
  }
  return it->second;
}

int Analyzer::dsd_index(const Value& v, Pos pos) {
  if (!v.obj || !v.type->is_dsd())
    fail(pos, "wse.csl.type.mismatch", cat("expected a descriptor, found ", text(v.type)));
  auto* d = static_cast<DsdValue*>(v.obj.get());
  return dsd_row(d->dsd, d->global);
}

}  // namespace weft::wse::csl
