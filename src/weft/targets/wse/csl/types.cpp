// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/csl/types.h"

#include <bit>

#include "weft/base/hash.h"
#include "weft/base/text.h"

namespace weft::wse::csl {
namespace {

struct Basic {
  T kind;
  std::string_view name;
  std::uint32_t size, align;
  bool runtime;
};
constexpr Basic kBasic[] = {
    {T::void_, "void", 0, 1, true},
    {T::bool_, "bool", 1, 1, true},
    {T::i8, "i8", 1, 1, true},
    {T::i16, "i16", 2, 2, true},
    {T::i32, "i32", 4, 4, true},
    {T::i64, "i64", 8, 4, true},
    {T::u8, "u8", 1, 1, true},
    {T::u16, "u16", 2, 2, true},
    {T::u32, "u32", 4, 4, true},
    {T::u64, "u64", 8, 4, true},
    {T::f16, "f16", 2, 2, true},
    {T::bf16, "bf16", 2, 2, true},
    {T::cb16, "cb16", 2, 2, true},
    {T::f32, "f32", 4, 4, true},
    {T::comptime_int, "comptime_int", 0, 1, false},
    {T::comptime_float, "comptime_float", 0, 1, false},
    {T::comptime_string, "comptime_string", 0, 1, false},
    {T::type, "type", 0, 1, false},
    {T::imported_module, "imported_module", 0, 1, false},
    {T::function, "function", 0, 1, false},
    {T::comptime_struct, "comptime_struct", 0, 1, false},
    {T::range, "range", 0, 1, false},
    {T::noreturn, "noreturn", 0, 1, false},
    {T::color, "color", 2, 2, true},
    {T::input_queue, "input_queue", 2, 2, true},
    {T::output_queue, "output_queue", 2, 2, true},
    {T::ut_id, "ut_id", 2, 2, true},
    {T::local_task_id, "local_task_id", 2, 2, true},
    {T::data_task_id, "data_task_id", 2, 2, true},
    {T::control_task_id, "control_task_id", 2, 2, true},
    {T::direction, "direction", 2, 2, true},
    {T::mem1d_dsd, "mem1d_dsd", 24, 2, true},
    {T::mem4d_dsd, "mem4d_dsd", 24, 2, true},
    {T::circbuf_dsd, "circbuf_dsd", 24, 2, true},
    {T::fabin_dsd, "fabin_dsd", 24, 2, true},
    {T::fabout_dsd, "fabout_dsd", 24, 2, true},
    {T::fifo, "fifo", 0, 1, false},
    {T::dsr_dest, "dsr_dest", 0, 1, false},
    {T::dsr_src0, "dsr_src0", 0, 1, false},
    {T::dsr_src1, "dsr_src1", 0, 1, false},
    {T::xdsr, "xdsr", 0, 1, false},
    {T::sr, "sr", 0, 1, false},
    {T::anyopaque, "anyopaque", 0, 1, false},
    {T::access, "tensor access", 0, 1, false},
    {T::error_, "<error>", 0, 1, false},
};

}  // namespace

std::string_view basic_name(T kind) {
  for (const Basic& b : kBasic) {
    if (b.kind == kind) return b.name;
  }
  return "?";
}

std::int64_t Type::count() const {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

Types::Types(Names& names) : names_(names) {
  basic_.resize(static_cast<std::size_t>(T::error_) + 1);
  for (const Basic& b : kBasic) {
    Type t;
    t.kind = b.kind;
    t.size = b.size;
    t.align = b.align;
    t.runtime = b.runtime;
    storage_.push_back(t);
    basic_[static_cast<std::size_t>(b.kind)] = &storage_.back();
  }
  void_ = get(T::void_);
  bool_ = get(T::bool_);
  i8 = get(T::i8);
  u8 = get(T::u8);
  i16 = get(T::i16);
  i32 = get(T::i32);
  u16 = get(T::u16);
  u32 = get(T::u32);
  f16 = get(T::f16);
  f32 = get(T::f32);
  comptime_int = get(T::comptime_int);
  comptime_float = get(T::comptime_float);
  comptime_string = get(T::comptime_string);
  type = get(T::type);
  noreturn = get(T::noreturn);
  direction = get(T::direction);
}

namespace {
/// Of an integer of `bits` bits in memory.
std::uint32_t storage_bytes(int bits) {
  if (bits > 64) return static_cast<std::uint32_t>((std::int64_t{bits} + 31) / 32 * 4);
  return std::bit_ceil(static_cast<std::uint32_t>(std::max(bits, 1) + 7) / 8);
}
}  // namespace

TypeRef Types::integer(int bits, bool is_signed) {
  constexpr T kinds[2][4] = {{T::u8, T::u16, T::u32, T::u64}, {T::i8, T::i16, T::i32, T::i64}};
  TypeRef storage = get(kinds[is_signed][std::countr_zero(storage_bytes(bits))]);
  if (storage->bits() == bits) return storage;
  Type t = *storage;
  t.width = bits;
  t.name = cat(is_signed ? "i" : "u", bits);
  std::string key = t.name;
  return intern(std::move(t), std::move(key));
}

void Types::lay_out(Type& t) const {
  auto round = [](std::uint64_t n, std::uint64_t a) { return (n + a - 1) / a * a; };
  switch (t.kind) {
    case T::array:
      t.align = t.elem->align;
      t.runtime = t.elem->runtime;
      t.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(
          static_cast<std::uint64_t>(t.count()) * round(t.elem->size, t.elem->align), 0x7fffffff));
      break;
    case T::pointer:
      t.size = 2;
      t.align = 2;
      t.runtime = true;
      break;
    case T::struct_: {
      std::uint64_t at = 0, end = 0;
      t.runtime = true;
      if (t.packed) {
        for (const FieldType& f : t.fields) {
          t.offsets.push_back(static_cast<std::uint32_t>(at));
          end = std::max(end, at + f.type->packed_bits());
          if (!t.is_union) at = end;
        }
        t.width = static_cast<int>(std::min<std::uint64_t>(end, 0x7fffffff));
        t.size = storage_bytes(t.width);
        t.align = std::min(t.size, 4u);
        break;
      }
      for (const FieldType& f : t.fields) {
        if (!f.type->runtime) t.runtime = false;
        at = round(at, f.type->align);
        t.align = std::max(t.align, f.type->align);
        t.offsets.push_back(static_cast<std::uint32_t>(at));
        end = std::max(end, at + f.type->size);
        if (!t.is_union) at += f.type->size;
      }
      at = end;
      t.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(round(at, t.align), 0x7fffffff));
      break;
    }
    case T::enum_:
      t.size = t.elem->size;
      t.align = t.elem->align;
      t.runtime = t.elem->runtime;
      t.width = t.elem->width;
      break;
    default: break;
  }
}

TypeRef Types::intern(Type t, std::string key) {
  auto found = interned_.find(key);
  if (found != interned_.end()) return found->second;
  lay_out(t);
  storage_.push_back(std::move(t));
  return interned_[std::move(key)] = &storage_.back();
}

namespace {
std::string id_of(TypeRef t) { return hex(reinterpret_cast<std::uintptr_t>(t)); }
}  // namespace

std::size_t Types::FieldsHash::operator()(const std::vector<FieldType>& fields) const {
  std::uint64_t h = fields.size();
  for (const FieldType& f : fields)
    h = hash_combine(h, f.name ^ reinterpret_cast<std::uintptr_t>(f.type));
  return h;
}

bool Types::FieldsEqual::operator()(const std::vector<FieldType>& a,
                                    const std::vector<FieldType>& b) const {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k].name != b[k].name || a[k].type != b[k].type) return false;
  }
  return true;
}

TypeRef Types::array(TypeRef elem, std::vector<std::int64_t> dims) {
  std::string key = cat("a", id_of(elem));
  for (std::int64_t d : dims) key += cat(",", d);
  Type t;
  t.kind = T::array;
  t.elem = elem;
  t.dims = std::move(dims);
  return intern(std::move(t), std::move(key));
}

TypeRef Types::pointer(TypeRef elem, bool is_const, bool many) {
  Type t;
  t.kind = T::pointer;
  t.elem = elem;
  t.is_const = is_const;
  t.many = many;
  return intern(std::move(t), cat(many ? "m" : "p", is_const ? "c" : "v", id_of(elem)));
}

TypeRef Types::structure(std::vector<FieldType> fields) {
  auto found = structures_.find(fields);
  if (found != structures_.end()) return found->second;
  Type t;
  t.kind = T::struct_;
  t.fields = fields;
  lay_out(t);
  storage_.push_back(std::move(t));
  return structures_[std::move(fields)] = &storage_.back();
}

TypeRef Types::named_structure(std::string name, std::vector<FieldType> fields, bool is_union,
                               bool packed) {
  Type t;
  t.kind = T::struct_;
  t.named = true;
  t.is_union = is_union;
  t.packed = packed;
  t.name = name;
  t.fields = std::move(fields);
  return intern(std::move(t), cat("S", storage_.size()));
}

void Types::give_name(TypeRef type, const std::string& name) {
  if ((type->named || type->kind == T::enum_) && type->name.empty())
    const_cast<Type*>(type)->name = name;  // of storage_
}

TypeRef Types::enumeration(std::string name, TypeRef underlying,
                           std::vector<std::pair<Symbol, std::int64_t>> members) {
  Type t;
  t.kind = T::enum_;
  t.elem = underlying;
  t.name = std::move(name);
  t.members = std::move(members);
  return intern(std::move(t), cat("E", storage_.size()));
}

TypeRef Types::function(std::vector<TypeRef> params, TypeRef result, bool task) {
  std::string key = task ? "t" : "f";
  Type t;
  t.kind = T::fn;
  t.is_task = task;
  for (TypeRef p : params) {
    key += cat(id_of(p), ",");
    t.fields.push_back({0, p});
  }
  t.elem = result;
  return intern(std::move(t), cat(key, ">", id_of(result)));
}

std::string Types::text(TypeRef t) const {
  if (!t) return "?";
  switch (t->kind) {
    case T::array: {
      std::string out = "[";
      for (std::size_t i = 0; i < t->dims.size(); ++i) out += cat(i ? "," : "", t->dims[i]);
      return cat(out, "]", text(t->elem));
    }
    case T::pointer: return cat(t->many ? "[*]" : "*", t->is_const ? "const " : "", text(t->elem));
    case T::struct_: {
      if (t->named)
        return !t->name.empty() ? t->name
                                : cat(t->packed ? "packed " : "", t->is_union ? "union" : "struct");
      std::string out = "struct {";
      for (std::size_t i = 0; i < t->fields.size() && i < 8; ++i) {
        const FieldType& f = t->fields[i];
        out += cat(i ? ", " : "", f.name ? cat(names_.text(f.name), ": ") : std::string(),
                   text(f.type));
      }
      return out + (t->fields.size() > 8 ? ", ...}" : "}");
    }
    case T::enum_: return t->name.empty() ? cat("enum(", text(t->elem), ")") : t->name;
    case T::fn: {
      std::string out = t->is_task ? "task(" : "fn(";
      for (std::size_t i = 0; i < t->fields.size(); ++i)
        out += cat(i ? "," : "", text(t->fields[i].type));
      return cat(out, ")", text(t->elem));
    }
    default: return t->name.empty() ? std::string(basic_name(t->kind)) : t->name;
  }
}

TypeRef Types::find(std::string_view name) const {
  for (const Basic& b : kBasic) {
    if (b.name == name && b.kind != T::error_ && b.kind != T::access && b.kind != T::function &&
        b.kind != T::range && b.kind != T::noreturn && b.kind != T::fifo) {
      return get(b.kind);
    }
  }
  if (name == "dsr_fifo_dest") return get(T::dsr_dest);
  if (name == "dsr_fifo_src1") return get(T::dsr_src1);
  return nullptr;
}

Ty bytecode_type(TypeRef t) {
  switch (t->kind) {
    case T::bool_: return Ty::b1;
    case T::i8: return Ty::i8;
    case T::i16: return Ty::i16;
    case T::i32: return Ty::i32;
    case T::i64: return Ty::i64;
    case T::u8: return Ty::u8;
    case T::u32: return Ty::u32;
    case T::u64: return Ty::u64;
    case T::f16: return Ty::f16;
    case T::bf16: return Ty::bf16;
    case T::cb16: return Ty::cb16;
    case T::f32: return Ty::f32;
    case T::enum_: return bytecode_type(t->elem);
    default: return Ty::u16;
  }
}

}  // namespace weft::wse::csl
