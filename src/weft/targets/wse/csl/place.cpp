// SPDX-License-Identifier: Apache-2.0
// Places: what can be read, written and pointed at, at compile time and in the memory of a PE.
#include "weft/base/text.h"
#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

Place Analyzer::place_of_operand(Operand op) const {
  Place p;
  p.type = op.type;
  p.kind = op.where == Operand::memory ? Place::memory : Place::value;
  p.is_const = op.is_const || p.kind == Place::value;
  p.operand = std::move(op);
  return p;
}

DeclaredAt Analyzer::declared_at(const Global& g) {
  return {static_cast<std::uint32_t>(g.module->serial), g.pos.file, g.pos.offset};
}

std::uint32_t& Analyzer::section_end(ProgramState& program, std::int32_t section) const {
  if (section < 0) return program.data_end;
  if (program.section_ends.empty())
    for (const auto& [name, at] : options_.sections) program.section_ends.push_back(at);
  return program.section_ends[static_cast<std::size_t>(section)];
}

int Analyzer::address(Global* g, Pos pos) {
  if (g->address >= 0) return g->address;
  need_program(pos, "the address of a variable");
  if (!g->type || !g->type->runtime) {
    fail(pos, "wse.csl.type.runtime",
         cat("\"", name(g->name), "\" of type ", text(g->type),
             " cannot lie in the memory of a PE"));
  }
  if (g->name && g->module && !program_->placed.empty()) {
    if (auto at = program_->placed.find(declared_at(*g)); at != program_->placed.end()) {
      g->address = at->second;
      program_->used.push_back(g);
      return g->address;
    }
  }
  std::uint32_t align = std::max(g->align, g->type->align);
  std::uint32_t& end = section_end(*program_, g->section);
  std::uint32_t at = (end + align - 1) / align * align;
  g->address = static_cast<std::int32_t>(std::min<std::uint32_t>(at, 0x7fffff));
  end = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t(at) + std::max(1u, g->type->size), 0x7fffff));
  program_->used.push_back(g);
  return g->address;
}

Global* Analyzer::anonymous_global(Value v, bool is_const, Pos pos) {
  need_program(pos, "an object in memory");
  program_->globals.emplace_back();
  Global* g = &program_->globals.back();
  g->type = v.type;
  g->init = std::move(v);
  g->is_const = is_const;
  g->pos = pos;
  return g;
}

Global* Analyzer::global_for_cell(Cell& cell, Pos pos) {
  if (!cell.global) cell.global = anonymous_global(cell.value, true, pos);
  return cell.global;
}

Operand Analyzer::frame_slot(TypeRef type, Pos pos) {
  if (!type->runtime)
    fail(pos, "wse.csl.type.runtime",
         cat("a value of type ", text(type), " cannot exist at run time"));
  Builder& f = b();
  std::uint32_t align = std::max<std::uint32_t>(type->align, 2);
  std::uint32_t at = (f.out.frame_bytes + align - 1) / align * align;
  if (at + type->size > static_cast<std::uint32_t>(kMemoryBytes)) {
    fail(pos, "wse.csl.memory.stack",
         cat("the local variables of this function take ", at + type->size,
             " bytes, more than the ", kMemoryBytes, " bytes of a PE"));
  }
  f.out.frame_bytes = static_cast<std::uint16_t>((at + type->size + 1) / 2 * 2);
  Operand op;
  op.where = Operand::memory;
  op.base = Operand::frame;
  op.offset = static_cast<std::int32_t>(at);
  op.type = type;
  return op;
}

std::uint16_t Analyzer::address_reg(const Operand& mem, Pos pos) {
  std::uint16_t r = kNoReg;
  switch (mem.base) {
    case Operand::absolute:
      r = new_reg(pos);
      load_constant(r, static_cast<std::uint64_t>(address(mem.global, pos) + mem.offset),
                    types_.u16, pos);
      break;
    case Operand::frame:
      r = new_reg(pos);
      emit(Insn::with_imm(Op::frame, static_cast<std::uint8_t>(Ty::u16), r, mem.offset), pos);
      break;
    case Operand::pointer:
      if (mem.offset == 0) {
        r = mem.r;
      } else {
        r = new_reg(pos);
        std::uint16_t c = new_reg(pos);
        load_constant(c, static_cast<std::uint16_t>(mem.offset), types_.u16, pos);
        emit({Op::add, static_cast<std::uint8_t>(Ty::u16), r, mem.r, c}, pos);
      }
      break;
  }
  if (mem.index != kNoReg) {
    std::uint16_t scale = new_reg(pos), sum = new_reg(pos);
    auto u16 = static_cast<std::uint8_t>(Ty::u16);
    load_constant(scale, mem.type->size, types_.u16, pos);
    emit({Op::mul, u16, scale, mem.index, scale}, pos);
    emit({Op::add, u16, sum, r, scale}, pos);
    r = sum;
  }
  return r;
}

Operand Analyzer::collapse(const Operand& mem, Pos pos) {
  if (mem.index == kNoReg) return mem;
  Operand out = mem;
  out.r = address_reg(mem, pos);
  out.base = Operand::pointer;
  out.offset = 0;
  out.index = kNoReg;
  return out;
}

void Analyzer::copy_memory(const Operand& to, const Operand& from, std::uint32_t bytes, Pos pos) {
  if (bytes == 0) return;
  if (bytes > 0xffff)
    fail(pos, "wse.csl.memory.copy", cat("a copy of ", bytes, " bytes exceeds the memory of a PE"));
  std::uint16_t t = address_reg(to, pos), s = address_reg(from, pos);
  emit({Op::copy, 0, t, s, static_cast<std::uint16_t>(bytes)}, pos);
}

/// A known aggregate, or one made of parts, as memory.
Operand Analyzer::materialize(Operand op, Pos pos) {
  if (op.where == Operand::memory) return op.bit < 0 ? op : load_field(op, pos);
  if (op.is_known()) {
    Operand mem;
    mem.where = Operand::memory;
    mem.base = Operand::absolute;
    mem.global = anonymous_global(op.value, true, pos);
    mem.type = op.type;
    mem.is_const = true;
    return mem;
  }
  Operand slot = frame_slot(op.type, pos);
  TypeRef type = op.type;
  store_memory(slot, std::move(op), pos);
  slot.type = type;
  return slot;
}

/// Element or field k of an aggregate operand.
Operand Analyzer::part(const Operand& op, std::size_t k, Pos pos) {
  TypeRef type = op.type->kind == T::array ? op.type->elem : op.type->fields[k].type;
  if (op.is_known()) return known_operand(known_part(op.value, static_cast<std::int64_t>(k), pos));
  if (op.where == Operand::parts) return (*op.fields)[k];
  Operand mem = collapse(op, pos);
  if (op.type->is_packed()) {
    if (mem.bit < 0) mem.whole = op.type->size;
    mem.bit = std::max(mem.bit, 0) + static_cast<std::int32_t>(op.type->offsets[k]);
  } else {
    mem.offset +=
        static_cast<std::int32_t>(op.type->kind == T::array ? k * type->size : op.type->offsets[k]);
  }
  mem.type = type;
  return mem;
}

void Analyzer::store_memory(const Operand& mem, Operand v, Pos pos) {
  TypeRef type = mem.type;
  if (type->kind == T::void_) return;
  if (mem.bit >= 0 && !(type->is_packed() && v.where == Operand::parts))
    return store_field(mem, std::move(v), pos);
  if (type->is_scalar()) {
    std::uint16_t r = to_reg(v, pos);
    auto ty = static_cast<std::uint8_t>(bytecode_type(type));
    if (mem.index != kNoReg) {
      Operand base = mem;
      base.index = kNoReg;
      emit({Op::stx, ty, r, address_reg(base, pos), mem.index}, pos);
    } else if (mem.base == Operand::absolute) {
      emit(Insn::with_imm(Op::stg, ty, r, address(mem.global, pos) + mem.offset), pos);
    } else if (mem.base == Operand::pointer && mem.offset >= -32768 && mem.offset <= 32767) {
      emit({Op::st, ty, r, mem.r, static_cast<std::uint16_t>(mem.offset)}, pos);
    } else {
      emit({Op::st, ty, r, address_reg(mem, pos), 0}, pos);
    }
    return;
  }
  if (type->is_dsd()) {
    std::uint16_t d = to_dreg(v, pos);
    emit({Op::dstore, 0, d, address_reg(mem, pos), 0}, pos);
    return;
  }
  if (!type->is_aggregate())
    fail(pos, "wse.csl.type.runtime", cat("a value of type ", text(type), " cannot be stored"));
  if (v.where == Operand::parts) {
    Operand to = collapse(mem, pos);
    for (std::size_t k = 0; k < v.fields->size(); ++k)
      store_memory(part(to, k, pos), (*v.fields)[k], pos);
    return;
  }
  if (v.is_known() && type->kind == T::array && aggregate(v.value).splat &&
      type->elem->is_scalar()) {
    std::uint64_t bits = scalar_bits(aggregate(v.value).at(0), pos);
    std::uint64_t low = bits & 0xff;
    bool uniform = true;
    for (std::uint32_t k = 0; k < type->elem->size; ++k)
      uniform = uniform && (bits >> (8 * k) & 0xff) == low;
    if (uniform && type->size <= 0xffff) {
      std::uint16_t r = new_reg(pos), a = address_reg(mem, pos);
      load_constant(r, low, types_.u8, pos);
      emit({Op::fill, 0, a, r, static_cast<std::uint16_t>(type->size)}, pos);
      return;
    }
  }
  copy_memory(mem, materialize(std::move(v), pos), type->size, pos);
}

Operand Analyzer::load_memory(const Operand& mem, Pos pos) {
  if (mem.bit >= 0) return load_field(mem, pos);
  if (mem.type->is_scalar()) return in_reg(mem.type, to_new_reg(mem, pos));
  if (mem.type->is_dsd()) return in_dreg(mem.type, to_dreg(mem, pos));
  return mem;
}

// ---- compile-time cells ----

Value* Analyzer::cell_slot(const Place& p, bool write, Pos pos) {
  Value* v = &p.cell_ref->value;
  for (std::int64_t k : p.path) {
    if (!v->obj || !v->type->is_aggregate())
      fail(pos, "wse.csl.comptime.path", "the value pointed to has changed its shape");
    if (v->type->is_union && v->i != k) {
      if (!write)
        fail(pos, "wse.csl.union.comptime",
             "at compile time only the field that was written last can be read");
      Value fresh;
      fresh.type = v->type->fields[static_cast<std::size_t>(k)].type;
      mutable_aggregate(*v).items[0] = fresh;
      v->i = k;
      v = &mutable_aggregate(*v).items[0];
    } else if (v->type->is_union) {
      v = write ? &mutable_aggregate(*v).items[0] : const_cast<Value*>(&aggregate(*v).at(0));
    } else if (write) {
      v = &mutable_aggregate(*v).items[static_cast<std::size_t>(k)];
    } else {
      v = const_cast<Value*>(&aggregate(*v).at(k));
    }
  }
  return v;
}

namespace {

/// Whether nothing of the program can write here: the object is constant, not only the way to it.
bool is_constant(const Operand& op) {
  return op.base == Operand::absolute && op.global && op.global->is_const;
}

/// The part of `v` of type `wanted` at byte `offset`, or null.
const Value* value_at(const Value& v, std::int64_t offset, TypeRef wanted) {
  if (offset == 0 && v.type == wanted) return &v;
  if (!v.type->is_aggregate() || v.type->packed || !v.obj || offset < 0 || offset >= v.type->size)
    return nullptr;
  const Aggregate& a = aggregate(v);
  if (v.type->kind == T::array) {
    std::int64_t size = v.type->elem->size;
    return size ? value_at(a.at(offset / size), offset % size, wanted) : nullptr;
  }
  if (v.type->is_union) return value_at(a.at(0), offset, wanted);
  for (std::size_t k = v.type->offsets.size(); k-- > 0;) {
    if (v.type->offsets[k] <= offset)
      return value_at(a.at(static_cast<std::int64_t>(k)), offset - v.type->offsets[k], wanted);
  }
  return nullptr;
}

}  // namespace

Operand Analyzer::load(const Place& p, Pos pos) {
  switch (p.kind) {
    case Place::cell: {
      Value* v = cell_slot(p, false, pos);
      WEFT_CHECK(v->defined(), "a compile-time variable without a value is read");
      return known_operand(*v);
    }
    case Place::reg: return in_reg(p.type, p.operand.r);
    case Place::dreg: return in_dreg(p.type, p.operand.r);
    case Place::memory:
      if (is_constant(p.operand) && p.operand.index == kNoReg && p.operand.global->init.defined() &&
          p.operand.bit < 0) {
        const Value* v = value_at(p.operand.global->init, p.operand.offset, p.type);
        if (v) return known_operand(*v);
      }
      if (known()) {
        fail(pos, "wse.csl.comptime.runtime_value",
             cat("this value",
                 p.operand.global ? cat(" of \"", name(p.operand.global->name), "\"")
                                  : std::string(),
                 " exists only at run time, but is needed at compile time"));
      }
      return load_memory(p.operand, pos);
    case Place::value: return p.operand;
  }
  return {};
}

void Analyzer::refuse_store(const Place& p, Pos pos) {
  const bool pointer = p.type && p.type->kind == T::pointer && !p.type->is_const;
  fail(pos, "wse.csl.assign.constant", "the left side cannot be assigned to: it is constant",
       pointer
           ? "it is a pointer: name.* is what it points to"
           : "parameters, const, param and the elements of a loop stay as they are: var copy = x;");
}

void Analyzer::store(const Place& p, Operand v, Pos pos) {
  if (p.is_const) refuse_store(p, pos);
  v = coerce(std::move(v), p.type, pos);
  switch (p.kind) {
    case Place::cell: {
      if (frame_->builder && frame_->known == 0 && frame_->runtime_branches > 0) {
        fail(pos, "wse.csl.comptime.runtime_branch",
             "a compile-time variable cannot be assigned under a condition or in a loop that is "
             "decided at run time");
      }
      Value value = need_known(v, pos, "a value assigned to a compile-time variable");
      *cell_slot(p, true, pos) = std::move(value);
      return;
    }
    case Place::reg: to_reg_at(v, p.operand.r, pos); return;
    case Place::dreg: to_dreg_at(v, p.operand.r, pos); return;
    case Place::memory:
      if (known())
        fail(pos, "wse.csl.comptime.runtime_store",
             "a run-time variable cannot be written at compile time");
      store_memory(p.operand, std::move(v), pos);
      return;
    case Place::value: fail(pos, "wse.csl.assign.value", "the left side is a value, not a place");
  }
}

Value Analyzer::read_path(const Value& v, const std::vector<std::int64_t>& path, std::size_t depth,
                          Pos pos) {
  if (depth == path.size()) return v;
  if (!v.obj || !v.type->is_aggregate())
    fail(pos, "wse.csl.comptime.path", "the value pointed to has changed its shape");
  return read_path(known_part(v, path[depth], pos), path, depth + 1, pos);
}

Place Analyzer::pointee(const Value& ptr, Pos pos) {
  Place p;
  p.type = ptr.type->elem;
  p.is_const = ptr.type->is_const;
  if (ptr.obj) {
    auto* cp = static_cast<CellPointer*>(ptr.obj.get());
    p.kind = Place::cell;
    p.cell_ref = cp->cell;
    p.path = cp->path;
    return p;
  }
  p.kind = Place::memory;
  p.operand.where = Operand::memory;
  p.operand.type = p.type;
  p.operand.is_const = p.is_const;
  if (ptr.p) {
    p.operand.base = Operand::absolute;
    p.operand.global = static_cast<Global*>(const_cast<void*>(ptr.p));
    p.operand.offset = static_cast<std::int32_t>(ptr.i);
    if (p.operand.global->is_const) p.is_const = p.operand.is_const = true;
    return p;
  }
  if (known())
    fail(pos, "wse.csl.comptime.runtime_value", "an absolute address can be read only at run time");
  p.operand.base = Operand::pointer;
  p.operand.r = new_reg(pos);
  load_constant(p.operand.r, static_cast<std::uint16_t>(ptr.i), types_.u16, pos);
  return p;
}

Place Analyzer::deref_place(Operand ptr, Pos pos) {
  if (!ptr.type || ptr.type->kind != T::pointer || ptr.type->elem->kind == T::fn) {
    fail(pos, "wse.csl.type.dereference",
         cat("only a pointer can be dereferenced, found ", text(ptr.type)));
  }
  if (ptr.is_known()) return pointee(ptr.value, pos);
  Place p;
  p.kind = Place::memory;
  p.type = ptr.type->elem;
  p.is_const = ptr.type->is_const;
  p.operand.where = Operand::memory;
  p.operand.base = Operand::pointer;
  p.operand.r = to_reg(ptr, pos);
  p.operand.type = p.type;
  p.operand.is_const = p.is_const;
  return p;
}

Operand Analyzer::address_of(const Place& p, Pos pos) {
  Value v;
  switch (p.kind) {
    case Place::cell: {
      Place around = p;
      if (!p.path.empty()) around.path.pop_back();
      if (!p.path.empty() && cell_slot(around, false, pos)->type->is_packed())
        refuse_packed_address(pos);
      v.type = types_.pointer(p.type, p.is_const, false);
      Ref<CellPointer> cp(new CellPointer);
      cp->cell = p.cell_ref;
      cp->path = p.path;
      v.obj = cp;
      return known_operand(v);
    }
    case Place::memory:
      if (p.operand.bit >= 0) refuse_packed_address(pos);
      if (p.operand.base == Operand::absolute && p.operand.index == kNoReg) {
        v.type = types_.pointer(p.type, p.is_const, false);
        v.p = p.operand.global;
        v.i = p.operand.offset;
        return known_operand(v);
      }
      return in_reg(types_.pointer(p.type, p.is_const, false), address_reg(p.operand, pos));
    case Place::value: {
      if (p.operand.is_known()) {
        if (p.type->kind == T::function) {
          Value f = p.operand.value;
          coerce_known(
              f, types_.pointer(function_type(static_cast<Decl*>(const_cast<void*>(f.p)), pos),
                                true, false));
          return known_operand(f);
        }
        Place cell;
        cell.kind = Place::cell;
        cell.type = p.type;
        cell.is_const = true;
        cell.cell_ref = Ref<Cell>(new Cell);
        cell.cell_ref->value = p.operand.value;
        return address_of(cell, pos);
      }
      Operand mem = p.operand.where == Operand::memory ? p.operand : frame_slot(p.type, pos);
      if (p.operand.where != Operand::memory) store_memory(mem, p.operand, pos);
      return in_reg(types_.pointer(p.type, true, false), address_reg(mem, pos));
    }
    default: WEFT_CHECK(false, "the address of a register");
  }
}

int Analyzer::field_index(TypeRef type, Symbol field) const {
  for (std::size_t k = 0; k < type->fields.size(); ++k) {
    if (type->fields[k].name == field && field != 0) return static_cast<int>(k);
  }
  return -1;
}

Place Analyzer::field_place(Place base, Symbol field, Pos pos) {
  if (base.type->kind == T::pointer && base.type->elem->kind == T::struct_)
    base = deref_place(load(base, pos), pos);
  if (base.type->kind != T::struct_) {
    fail(pos, "wse.csl.type.field",
         cat("a value of type ", text(base.type), " has no field \"", name(field), "\""));
  }
  int k = field_index(base.type, field);
  if (k < 0) {
    std::vector<std::string> known_fields;
    for (const FieldType& f : base.type->fields) {
      if (f.name) known_fields.push_back(name(f.name));
    }
    fail(pos, "wse.csl.type.field",
         cat("there is no field \"", name(field), "\" in ", text(base.type)),
         cat(known_fields.empty() ? "it has no named fields"
                                  : cat("its fields are ", join(known_fields)),
             "; ", did_you_mean(name(field), known_fields)));
  }
  TypeRef type = base.type->fields[static_cast<std::size_t>(k)].type;
  Place p = base;
  p.type = type;
  if (base.kind == Place::cell) {
    p.path.push_back(k);
    return p;
  }
  if (base.kind == Place::memory) {
    if (is_constant(base.operand)) {
      Operand whole = load(base, pos);
      if (whole.is_known()) return place_of_operand(part(whole, static_cast<std::size_t>(k), pos));
    }
    p.operand = part(base.operand, static_cast<std::size_t>(k), pos);
    p.operand.type = type;
    return p;
  }
  return place_of_operand(part(base.operand, static_cast<std::size_t>(k), pos));
}

Place Analyzer::index_place(Place base, const std::vector<Node*>& indices, Pos pos) {
  if (base.type->kind == T::pointer) {
    Operand pointer = load(base, pos);
    if (pointer.type->many) {
      if (indices.size() != 1)
        fail(pos, "wse.csl.index.rank", cat("[*] pointers take one index, found ", indices.size()));
      TypeRef elem = pointer.type->elem;
      Operand index = eval(indices[0]);
      if (!index.type->is_any_int())
        fail(pos, "wse.csl.index.type",
             cat("an index must be an integer, found ", text(index.type)));
      Place p = deref_place(pointer, pos);
      if (p.kind == Place::cell) {
        Int128 k = need_known(index, pos, "an index").i;
        if (p.path.empty() || p.path.back() + k < 0)
          fail(pos, "wse.csl.index.range", "the index lies outside the array");
        p.path.back() += static_cast<std::int64_t>(k);
        Place parent = p;
        parent.path.pop_back();
        if (cell_slot(parent, false, pos)->type->count() <= p.path.back())
          fail(pos, "wse.csl.index.range", "the index lies outside the array");
        return p;
      }
      p.operand.type = elem;
      if (index.is_known()) {
        p.operand.offset +=
            static_cast<std::int32_t>(wrap_to(types_.i32, index.value.i * elem->size));
      } else {
        p.operand.index = to_reg(index, pos);
        if (!elem->is_scalar() || (elem->size & (elem->size - 1)) != 0)
          p.operand = collapse(p.operand, pos);
      }
      return p;
    }
    base = deref_place(pointer, pos);
  }
  TypeRef type = base.type;
  if (type->kind == T::struct_) {
    if (indices.size() != 1) fail(pos, "wse.csl.index.rank", "a tuple takes one index");
    Int128 k = need_known(eval(indices[0]), pos, "the index of a tuple").i;
    if (k < 0 || k >= static_cast<Int128>(type->fields.size()) || (type->fields[0].name != 0)) {
      fail(pos, "wse.csl.index.range", cat("index ", to_text(k), " is outside ", text(type)));
    }
    Place p = base;
    p.type = type->fields[static_cast<std::size_t>(k)].type;
    if (base.kind == Place::cell) {
      p.path.push_back(static_cast<std::int64_t>(k));
      return p;
    }
    Place out = place_of_operand(part(base.operand, static_cast<std::size_t>(k), pos));
    out.is_const = base.is_const;
    return out;
  }
  if (type->kind == T::comptime_string && indices.size() == 1) {
    Int128 k = need_known(eval(indices[0]), pos, "the index of a string").i;
    const std::string& s = name(static_cast<Symbol>(load(base, pos).value.i));
    if (k < 0 || k >= static_cast<Int128>(s.size()))
      fail(pos, "wse.csl.index.range", "the index lies outside the string");
    return place_of_operand(known_operand(
        make_int(types_.u8, static_cast<unsigned char>(s[static_cast<std::size_t>(k)]))));
  }
  if (type->kind != T::array)
    fail(pos, "wse.csl.index.type", cat("a value of type ", text(type), " cannot be indexed"));
  if (indices.size() != type->dims.size()) {
    fail(pos, "wse.csl.index.rank",
         cat("expected ", type->dims.size(), " ", type->dims.size() == 1 ? "index" : "indices",
             " into ", text(type), ", found ", indices.size()));
  }
  std::vector<Operand> values;
  bool all_known = true;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    Operand index = eval(indices[d]);
    if (!index.type->is_any_int()) {
      fail(indices[d]->pos, "wse.csl.index.type",
           cat("an index must be an integer, found ", text(index.type)));
    }
    if (index.is_known()) {
      if (index.value.i < 0 || index.value.i >= type->dims[d]) {
        fail(indices[d]->pos, "wse.csl.index.range",
             cat("index ", to_text(index.value.i), " is outside the extent ", type->dims[d],
                 " of dimension ", d, " of ", text(type)));
      }
    } else {
      all_known = false;
    }
    values.push_back(std::move(index));
  }
  Place p = base;
  p.type = type->elem;
  if (all_known) {
    std::int64_t linear = 0;
    for (std::size_t d = 0; d < values.size(); ++d)
      linear = linear * type->dims[d] + static_cast<std::int64_t>(values[d].value.i);
    if (base.kind == Place::cell) {
      p.path.push_back(linear);
      return p;
    }
    if (base.kind == Place::memory) {
      if (is_constant(base.operand)) {
        Operand whole = load(base, pos);
        if (whole.is_known())
          return place_of_operand(part(whole, static_cast<std::size_t>(linear), pos));
      }
      p.operand = part(base.operand, static_cast<std::size_t>(linear), pos);
      return p;
    }
    Place out = place_of_operand(part(base.operand, static_cast<std::size_t>(linear), pos));
    out.is_const = true;
    return out;
  }
  if (known())
    fail(pos, "wse.csl.comptime.runtime_value",
         "the index exists only at run time, but is needed at compile time");
  auto i32 = static_cast<std::uint8_t>(Ty::i32);
  for (Operand& index : values) {  // untyped numbers beside an index that only run time knows
    if (index.is_known()) index = known_operand(make_int(types_.i32, index.value.i));
  }
  std::uint16_t linear = to_reg(values[0], pos);
  for (std::size_t d = 1; d < values.size(); ++d) {
    std::uint16_t scale = new_reg(pos), sum = new_reg(pos);
    load_constant(scale, static_cast<std::uint64_t>(type->dims[d]), types_.i32, pos);
    emit({Op::mul, i32, scale, linear, scale}, pos);
    emit({Op::add, i32, sum, scale, to_reg(values[d], pos)}, pos);
    linear = sum;
  }
  if (base.kind == Place::cell) {
    Operand mem;
    mem.where = Operand::memory;
    mem.global = global_for_cell(*base.cell_ref, pos);
    mem.type = mem.global->type;
    mem.is_const = true;
    p.is_const = true;
    if (!base.path.empty()) {
      mem = materialize(known_operand(*cell_slot(base, false, pos)), pos);
    }
    p.operand = mem;
  } else if (base.kind == Place::memory) {
    p.operand = collapse(base.operand, pos);
  } else {
    p.operand = materialize(base.operand, pos);
    p.is_const = true;
  }
  p.kind = Place::memory;
  p.operand.type = type->elem;
  p.operand.is_const = p.is_const;
  p.operand.index = linear;
  if (!type->elem->is_scalar()) p.operand = collapse(p.operand, pos);
  return p;
}

Place Analyzer::place(Node* node) {
  DepthGuard guard(*this, node->pos);
  switch (node->kind) {
    case Kind::ident: {
      for (std::size_t k = frame_->locals.size(); k-- > 0;) {
        if (frame_->locals[k].name == node->name) return frame_->locals[k].place;
      }
      if (Decl* d = find_decl(frame_->module, node->name)) return decl_place(d, node->pos);
      return place_of_operand(eval_ident(node));
    }
    case Kind::index: return index_place(place(node->a), node->list, node->pos);
    case Kind::field: {
      if (node->a->kind == Kind::ident || node->a->kind == Kind::field) {
        Place base = place(node->a);
        if (base.type->kind == T::imported_module) {
          Operand m = load(base, node->pos);
          auto* module = static_cast<Module*>(const_cast<void*>(m.value.p));
          if (!module)
            fail(node->pos, "wse.csl.module.member",
                 cat("\"", name(node->name), "\" of a module that is not known when compiling"),
                 "a const of @import_module");
          Decl* d = find_decl(module, node->name);
          if (d) {
            static constexpr std::pair<std::string_view, std::string_view> kAdded[] = {
                {"tile_config", "input_queue_config"},
                {"tile_config", "output_queue_config"},
                {"memcpy", "get_streaming_fabout_dsd"},
                {"directions", "dirToRxBits"},
                {"directions", "dirToTxBits"}};
            for (const auto& [file, member] : kAdded) {
              if (file == module->label && member == name(node->name))
                only_in(Sdk::v2, node->pos, cat("<", file, ">.", member), "leave it out");
            }
          }
          if (!d) {
            std::vector<std::string> names;
            for (auto& [symbol, decl] : module->decls) names.push_back(name(symbol));
            fail(node->pos, "wse.csl.module.member",
                 cat("module \"", module->label, "\" has no \"", name(node->name), "\""),
                 did_you_mean(name(node->name), names));
          }
          return decl_place(d, node->pos);
        }
        if (base.type->kind == T::struct_ ||
            (base.type->kind == T::pointer && base.type->elem->kind == T::struct_)) {
          return field_place(base, node->name, node->pos);
        }
        return place_of_operand(eval(node));
      }
      Place base = place(node->a);
      if (base.type->kind == T::struct_ ||
          (base.type->kind == T::pointer && base.type->elem->kind == T::struct_)) {
        return field_place(base, node->name, node->pos);
      }
      if (base.type->kind == T::imported_module) {
        Decl* d = find_decl(static_cast<Module*>(const_cast<void*>(load(base, node->pos).value.p)),
                            node->name);
        if (d) return decl_place(d, node->pos);
      }
      return place_of_operand(eval(node));
    }
    case Kind::deref: {
      Operand pointer = eval(node->a);
      if (pointer.type && pointer.type->kind == T::pointer && pointer.type->many)
        fail(node->pos, "wse.csl.type.dereference",
             cat(text(pointer.type), " points to any number of elements and is only indexed"),
             "write p[0] for the first");
      return deref_place(std::move(pointer), node->pos);
    }
    case Kind::builtin:
      if (name(node->name) == "field" && node->list.size() == 2) {  // it can be assigned to
        Symbol field = names_.intern(string_arg(node, 1));
        return field_place(place(node->list[0]), field, node->pos);
      }
      return place_of_operand(eval(node));
    default: return place_of_operand(eval(node));
  }
}

}  // namespace weft::wse::csl
