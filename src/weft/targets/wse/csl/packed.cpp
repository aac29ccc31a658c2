// SPDX-License-Identifier: Apache-2.0
// Bits: fields of packed types in memory, unions at compile time, bytes of initial values.
#include <bit>
#include <cstring>

#include "weft/base/text.h"
#include "weft/targets/wse/csl/analyzer.h"

namespace weft::wse::csl {
namespace {

bool signed_field(TypeRef type) {
  return (type->kind == T::enum_ ? type->elem : type)->is_signed();
}

}  // namespace

void Analyzer::refuse_packed_address(Pos pos) {
  fail(pos, "wse.csl.type.packed", "a field of a packed type has no address of its own",
       "copy it to a variable, or take the address of the whole");
}

/// The smallest unsigned integer in memory around a field of a packed object.
Analyzer::Window Analyzer::window(const Operand& field, Pos pos) {
  Window w;
  w.bits = field.type->packed_bits();
  const auto bit = static_cast<std::uint32_t>(field.bit);
  std::uint32_t at = bit / 8;
  const std::uint32_t bytes = std::bit_ceil(std::max((bit % 8 + w.bits + 7) / 8, 1u));
  if (w.bits > 64 || bytes > 8)
    fail(pos, "wse.csl.type.packed",
         cat("this field has ", w.bits, " bits from bit ", bit,
             " on, and no integer of 64 holds it"),
         "legal are fields of at most 64 bits; of more than 56 at a multiple of 8 bits");
  if (at + bytes > field.whole) at = field.whole - bytes;
  w.shift = bit - at * 8;
  w.mem = field;
  w.mem.bit = -1;
  w.mem.offset += static_cast<std::int32_t>(at);
  w.mem.type = types_.integer(static_cast<int>(bytes * 8), false);
  w.exact = w.shift == 0 && w.bits == bytes * 8;
  return w;
}

/// r = its `bits` bits from `shift` on, as a number.
void Analyzer::extend(std::uint16_t r, std::uint32_t shift, std::uint32_t bits, bool is_signed,
                      Pos pos) {
  const auto ty = static_cast<std::uint8_t>(is_signed ? Ty::i64 : Ty::u64);
  std::uint16_t count = new_reg(pos);
  load_constant(count, 64 - shift - bits, types_.u16, pos);
  emit({Op::shl, ty, r, r, count}, pos);
  if (shift) {
    count = new_reg(pos);
    load_constant(count, 64 - bits, types_.u16, pos);
  }
  emit({Op::shr, ty, r, r, count}, pos);
}

Operand Analyzer::load_field(const Operand& field, Pos pos) {
  TypeRef type = field.type;
  Window w = window(field, pos);
  if (w.exact && type->is_scalar() && type->size * 8 == w.bits) {
    w.mem.type = type;
    return in_reg(type, to_new_reg(w.mem, pos));
  }
  const std::uint16_t r = to_new_reg(w.mem, pos);
  if (!w.exact || signed_field(type)) extend(r, w.shift, w.bits, signed_field(type), pos);
  if (type->is_scalar()) return in_reg(type, r);
  Operand slot = frame_slot(type, pos);
  Operand number = slot;
  number.type = types_.integer(static_cast<int>(type->size * 8), false);
  store_memory(number, in_reg(number.type, r), pos);
  return slot;
}

void Analyzer::store_field(const Operand& field, Operand v, Pos pos) {
  TypeRef type = field.type;
  Window w = window(field, pos);
  const TypeRef u64 = types_.get(T::u64);
  const auto ty = static_cast<std::uint8_t>(Ty::u64);
  std::uint16_t r;
  if (type->is_scalar()) {
    r = to_reg(v, pos);
  } else {
    Operand number = materialize(std::move(v), pos);
    number.type = types_.integer(static_cast<int>(type->size * 8), false);
    r = to_reg(number, pos);
  }
  if (w.exact && type->size * 8 == w.bits) {
    if (type->is_scalar()) w.mem.type = type;
    return store_memory(w.mem, in_reg(w.mem.type, r), pos);
  }
  const std::uint64_t ones = w.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << w.bits) - 1;
  auto step = [&](Op op, std::uint16_t x, std::uint64_t y) {
    const std::uint16_t out = new_reg(pos), c = new_reg(pos);
    load_constant(c, y, u64, pos);
    emit({op, ty, out, x, c}, pos);
    return out;
  };
  const std::uint16_t fresh = step(Op::shl, step(Op::band, r, ones), w.shift);
  const std::uint16_t old = step(Op::band, to_new_reg(w.mem, pos), ~(ones << w.shift));
  const std::uint16_t both = new_reg(pos);
  emit({Op::bor, ty, both, fresh, old}, pos);
  store_memory(w.mem, in_reg(w.mem.type, both), pos);
}

/// Element or field k of a known aggregate. A union keeps the field that was written last: `i` is
/// its number.
Value Analyzer::known_part(const Value& v, std::int64_t k, Pos pos) {
  if (!v.type->is_union) return aggregate(v).at(k);
  const Value& held = aggregate(v).at(0);
  if (v.i == k) return held;
  auto has_bits = [](TypeRef t) {
    return t->is_packed() || (t->is_scalar() && t->kind != T::pointer);
  };
  TypeRef wanted = v.type->fields[static_cast<std::size_t>(k)].type;
  if (!has_bits(wanted) || !has_bits(held.type) || wanted->bits() > held.type->bits())
    fail(pos, "wse.csl.union.comptime",
         cat("at compile time the union holds a ", text(held.type), ", which cannot be read as ",
             text(wanted)),
         "read the field that was written, or make the union a var of the PE");
  std::string bytes(static_cast<std::size_t>(held.type->size) + 8, '\0');
  write_bits(bytes, 0, held, pos);
  return read_bits(bytes, 0, wanted);
}

// ---- bytes of initial values ----

void Analyzer::write_bits(std::string& out, std::uint64_t at, const Value& v, Pos pos) {
  if (v.type->is_packed()) {
    for (std::int64_t k = 0; k < aggregate(v).count; ++k)
      write_bits(out, at + v.type->offsets[v.type->is_union ? 0 : static_cast<std::size_t>(k)],
                 aggregate(v).at(k), pos);
    return;
  }
  const std::uint64_t bits = scalar_bits(v, pos);
  for (std::uint32_t k = 0; k < v.type->packed_bits() && (at + k) / 8 < out.size(); ++k) {
    auto byte = static_cast<unsigned char>(out[(at + k) / 8]);
    const auto mask = static_cast<unsigned char>(1u << ((at + k) % 8));
    byte = static_cast<unsigned char>(bits >> k & 1 ? byte | mask : byte & ~mask);
    out[(at + k) / 8] = static_cast<char>(byte);
  }
}

Value Analyzer::read_bits(const std::string& bytes, std::uint64_t at, TypeRef type) {
  Value out;
  out.type = type;
  if (type->is_packed()) {
    Ref<Aggregate> a(new Aggregate);
    for (std::size_t k = 0; k < (type->is_union ? 1 : type->fields.size()); ++k)
      a->items.push_back(read_bits(bytes, at + type->offsets[k], type->fields[k].type));
    a->count = static_cast<std::int64_t>(a->items.size());
    out.obj = a;
    return out;
  }
  std::uint64_t bits = 0;
  for (std::uint32_t k = 0; k < type->packed_bits(); ++k)
    bits |= std::uint64_t{static_cast<unsigned char>(bytes[(at + k) / 8]) >> ((at + k) % 8) & 1u}
            << k;
  if (type->is_float()) out.f = float_from_bits(type, static_cast<std::uint32_t>(bits));
  else out.i = wrap_to(type, static_cast<Int128>(bits));
  return out;
}

void Analyzer::write_bytes(std::string& out, std::uint32_t at, const Value& v, Pos pos) {
  TypeRef t = v.type;
  if (t->kind == T::void_) return;
  if (t->is_packed()) return write_bits(out, std::uint64_t{at} * 8, v, pos);
  if (t->is_scalar()) {
    std::uint64_t bits = scalar_bits(v, pos);
    for (std::uint32_t k = 0; k < t->size && at + k < out.size(); ++k)
      out[at + k] = static_cast<char>(bits >> (8 * k));
    return;
  }
  if (t->is_dsd()) {
    Dsd d = static_cast<DsdValue*>(v.obj.get())->dsd;
    if (Global* g = static_cast<DsdValue*>(v.obj.get())->global)
      d.base = static_cast<std::uint16_t>(address(g, pos) + d.base);
    if (at + sizeof d <= out.size()) std::memcpy(out.data() + at, &d, sizeof d);
    return;
  }
  if (!t->is_aggregate() || !v.obj)
    fail(pos, "wse.csl.type.runtime", cat("a value of type ", text(t), " cannot lie in memory"));
  const Aggregate& a = aggregate(v);
  for (std::int64_t k = 0; k < a.count; ++k) {
    std::uint32_t offset = t->kind == T::array ? static_cast<std::uint32_t>(k) * t->elem->size
                                               : t->offsets[static_cast<std::size_t>(k)];
    write_bytes(out, at + offset, a.at(k), pos);
  }
}

}  // namespace weft::wse::csl
