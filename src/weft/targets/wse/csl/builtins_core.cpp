// SPDX-License-Identifier: Apache-2.0
// Built-ins about types, values, strings, structs and modules.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

const std::vector<Analyzer::BuiltinRow>& Analyzer::builtin_rows() {
  static const std::vector<BuiltinRow> rows = {
#define WEFT_CSL_BUILTIN(name, fn, low, high) {#name, &Analyzer::fn, low, high},
#include "weft/targets/wse/csl/builtins.def"
#undef WEFT_CSL_BUILTIN
  };
  return rows;
}

namespace {
constexpr std::string_view bulks[] = {
#define WEFT_WSE_BULK(name, d, s, count, k, w2, w3) #name,
#include "weft/targets/wse/bulk.def"
#undef WEFT_WSE_BULK
};
}  // namespace

bool Analyzer::is_builtin(std::string_view word) {
  const auto& rows = builtin_rows();
  return std::find(std::begin(bulks), std::end(bulks), word) != std::end(bulks) ||
         std::any_of(rows.begin(), rows.end(), [&](const BuiltinRow& r) { return r.name == word; });
}

Operand Analyzer::eval_builtin(Node* node, TypeRef hint) {
  const auto& rows = builtin_rows();
  constexpr int kBulkBase = 10000;
  if (node->cache < 0) {
    const std::string& n = name(node->name);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (rows[k].name == n) node->cache = static_cast<int>(k);
    }
    for (std::size_t k = 0; k < std::size(bulks); ++k) {
      if (bulks[k] == n) node->cache = kBulkBase + static_cast<int>(k);
    }
    if (node->cache < 0) {
      std::vector<std::string> names;
      for (const BuiltinRow& r : rows) names.emplace_back(r.name);
      for (std::string_view b : bulks) names.emplace_back(b);
      fail(node->pos, "wse.csl.builtin.unknown", cat("there is no built-in @", n),
           did_you_mean(n, names));
    }
  }
  if (node->cache >= kBulkBase) return bulk(node, hint, static_cast<Bulk>(node->cache - kBulkBase));
  const BuiltinRow& row = rows[static_cast<std::size_t>(node->cache)];
  int count = static_cast<int>(node->list.size());
  if (count < row.low || count > row.high) {
    fail(node->pos, "wse.csl.builtin.arguments",
         cat("@", row.name, " takes ", row.low, row.low == row.high ? "" : cat(" to ", row.high),
             " argument", row.high == 1 ? "" : "s", ", found ", count));
  }
  return (this->*row.fn)(node, hint);
}

Operand Analyzer::arg(Node* node, std::size_t k, TypeRef hint) { return eval(node->list[k], hint); }
Value Analyzer::known_arg(Node* node, std::size_t k, TypeRef hint) {
  return eval_known(node->list[k], hint);
}

Int128 Analyzer::int_arg(Node* node, std::size_t k, std::string_view what) {
  Value v = known_arg(node, k);
  if (!v.type->is_any_int())
    fail(node->list[k]->pos, "wse.csl.type.mismatch",
         cat(what, " must be an integer, found ", text(v.type)));
  return v.i;
}

std::string Analyzer::string_arg(Node* node, std::size_t k) {
  Value v = known_arg(node, k);
  if (v.type->kind != T::comptime_string)
    fail(node->list[k]->pos, "wse.csl.type.mismatch",
         cat("expected a string, found ", text(v.type)));
  return name(static_cast<Symbol>(v.i));
}

TypeRef Analyzer::type_arg(Node* node, std::size_t k) { return eval_type(node->list[k]); }

void Analyzer::need_runtime(Pos pos, std::string_view what) {
  if (known())
    fail(pos, "wse.csl.builtin.context",
         cat(what, " happens at run time and is not legal at compile time"));
}
void Analyzer::need_program(Pos pos, std::string_view what) {
  if (!program_)
    fail(pos, "wse.csl.builtin.context",
         cat(what, " belongs to the code of a PE and is not legal in a layout"));
}
void Analyzer::need_layout(Pos pos, std::string_view what) {
  if (program_)
    fail(pos, "wse.csl.builtin.context",
         cat(what, " belongs to a layout block and is not legal in the code of a PE"));
}

Operand Analyzer::bi_as(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  Operand v = arg(node, 1, t->is_aggregate() ? t : nullptr);
  return convert(node->pos, t, std::move(v));
}

Operand Analyzer::bi_bitcast(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  Operand v = arg(node, 1);
  Pos pos = node->pos;
  if (v.type && (v.type->kind == T::comptime_int || v.type->kind == T::comptime_float)) {
    TypeRef carrier = v.type->kind == T::comptime_float
                          ? (t->size == 2 ? types_.get(static_cast<T>(fp16_kind())) : types_.f32)
                      : t->is_scalar() ? types_.integer(t->bits(), false)
                                       : types_.u32;
    if (t->is_signed() && v.value.i < 0) carrier = t;
    v = coerce(v, carrier, pos);
  }
  if (!t->is_scalar() || !v.type || !v.type->is_scalar()) {
    fail(pos, "wse.csl.type.bitcast",
         cat("@bitcast cannot reinterpret ", text(v.type), " as ", text(t)));
  }
  if (t->bits() != v.type->bits()) {
    fail(pos, "wse.csl.type.bitcast",
         cat("@bitcast needs equal widths: ", text(v.type), " has ", v.type->bits(), " bits, ",
             text(t), " has ", t->bits()));
  }
  if (v.is_known() && v.type->kind != T::pointer) {
    std::uint64_t bits = scalar_bits(v.value, pos);
    Value out;
    out.type = t;
    if (t->is_float()) out.f = float_from_bits(t, static_cast<std::uint32_t>(bits));
    else
      out.i = t->is_int() ? wrap_to(t, static_cast<Int128>(bits))
                          : static_cast<Int128>(bits & ((UInt128(1) << t->bits()) - 1));
    return known_operand(out);
  }
  std::uint16_t x = to_reg(v, pos);
  std::uint16_t r = new_reg(pos);
  emit({Op::cast, static_cast<std::uint8_t>(bytecode_type(t)), r, x,
        static_cast<std::uint16_t>(bytecode_type(v.type))},
       pos);
  if (t->width >= 0) return computed(t, r, pos);
  return in_reg(t, r);
}

Operand Analyzer::bi_ptrcast(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  Operand v = arg(node, 1);
  if (t->kind != T::pointer || !v.type || v.type->kind != T::pointer) {
    fail(node->pos, "wse.csl.type.ptrcast",
         cat("@ptrcast converts pointers, found ", text(v.type), " to ", text(t)));
  }
  if (v.is_known()) {
    if (v.value.obj) {
      auto* cp = static_cast<CellPointer*>(v.value.obj.get());
      if (!cp->path.empty() || known())
        fail(node->pos, "wse.csl.type.ptrcast",
             "a pointer into a compile-time variable cannot be reinterpreted");
      Global* g = global_for_cell(*cp->cell, node->pos);
      v.value.obj = nullptr;
      v.value.p = g;
      v.value.i = 0;
    }
    v.value.type = t;
  }
  v.type = t;
  return v;
}

Operand Analyzer::bi_zeros(Node* node, TypeRef) {
  return known_operand(zero_of(type_arg(node, 0), node->pos));
}

Operand Analyzer::bi_constants(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  if (t->kind != T::array)
    fail(node->pos, "wse.csl.type.mismatch", cat("@constants makes arrays, found ", text(t)));
  Operand e = coerce(arg(node, 1, t->elem), t->elem, node->list[1]->pos);
  if (!e.is_known()) {
    need_runtime(node->pos, "@constants of a run-time value");
    Operand slot = frame_slot(t, node->pos);
    std::uint16_t i = new_reg(node->pos), n = new_reg(node->pos), one = new_reg(node->pos),
                  c = new_reg(node->pos);
    std::uint16_t v = to_reg(e, node->pos), base = address_reg(slot, node->pos);
    auto i64 = static_cast<std::uint8_t>(Ty::i64);
    load_constant(i, 0, types_.get(T::i64), node->pos);
    load_constant(n, static_cast<std::uint64_t>(t->count()), types_.get(T::i64), node->pos);
    load_constant(one, 1, types_.get(T::i64), node->pos);
    if (t->count() == 0) return slot;
    std::size_t top = here();
    emit({Op::stx, static_cast<std::uint8_t>(bytecode_type(t->elem)), v, base, i}, node->pos);
    emit({Op::add, i64, i, i, one}, node->pos);
    emit({Op::lt, i64, c, i, n}, node->pos);
    patch_to(emit_jump(Op::jnz, c, node->pos), top);
    return slot;
  }
  Value out;
  out.type = t;
  Ref<Aggregate> a(new Aggregate);
  a->splat = true;
  a->count = t->count();
  a->items.push_back(e.value);
  out.obj = a;
  return known_operand(out);
}

Operand Analyzer::bi_range(Node* node, TypeRef) {
  if (node->list.size() == 1 || node->list.size() == 3)
    fail(node->pos, "wse.csl.builtin.arguments",
         "@range takes 2 or 4 arguments: (T, stop) or (T, start, stop, step)");
  TypeRef t = type_arg(node, 0);
  if (!t->is_any_int())
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@range counts in an integer type, found ", text(t)));
  bool four = node->list.size() == 4;
  auto bound = [&](std::size_t k) {
    return coerce(arg(node, k, t), t, node->list[k]->pos, "@range");
  };
  Operand start = four ? bound(1) : known_operand(make_int(t, 0));
  Operand stop = bound(four ? 2 : 1);
  Operand step = known_operand(make_int(t, 1));
  if (four) {
    // A step may be negative even over an unsigned type.
    step = arg(node, 3);
    if (step.is_known() && step.type->is_any_int()) step = known_operand(make_int(t, step.value.i));
    else step = coerce(step, t, node->list[3]->pos, "@range");
    if (step.is_known() && step.value.i == 0)
      fail(node->list[3]->pos, "wse.csl.for.step", "the step of @range cannot be 0");
  }
  if (start.is_known() && stop.is_known() && step.is_known()) {
    Value v;
    v.type = types_.get(T::range);
    Ref<RangeValue> r(new RangeValue);
    r->element = t;
    r->start = start.value.i;
    r->stop = stop.value.i;
    r->step = step.value.i;
    v.obj = r;
    return known_operand(v);
  }
  Operand out;
  out.where = Operand::parts;
  out.type = types_.get(T::range);
  out.fields = std::make_shared<std::vector<Operand>>(std::vector<Operand>{start, stop, step});
  return out;
}

namespace {
RangeValue* range_of(const Value& v) {
  return v.type->kind == T::range ? static_cast<RangeValue*>(v.obj.get()) : nullptr;
}
}  // namespace

Operand Analyzer::range_part(Node* node, std::size_t k) {
  Operand v = arg(node, 0);
  if (!v.type || v.type->kind != T::range)
    fail(node->pos, "wse.csl.type.mismatch", cat("expected a range, found ", text(v.type)));
  if (v.where == Operand::parts) return (*v.fields)[k];
  const RangeValue* r = range_of(v.value);
  return known_operand(make_int(r->element, k == 0 ? r->start : k == 1 ? r->stop : r->step));
}
Operand Analyzer::bi_range_start(Node* node, TypeRef) { return range_part(node, 0); }
Operand Analyzer::bi_range_stop(Node* node, TypeRef) { return range_part(node, 1); }
Operand Analyzer::bi_range_step(Node* node, TypeRef) { return range_part(node, 2); }

/// The operand is analysed for its type only: nothing it emits is kept.
Operand Analyzer::bi_type_of(Node* node, TypeRef) {
  if (known()) {
    if (node->list[0]->kind == Kind::ident || node->list[0]->kind == Kind::field ||
        node->list[0]->kind == Kind::index || node->list[0]->kind == Kind::deref) {
      Place p = place(node->list[0]);
      return known_operand(make_type(p.type));
    }
    return known_operand(make_type(arg(node, 0).type));
  }
  Builder saved = b();
  Operand v = arg(node, 0);
  b() = std::move(saved);
  return known_operand(make_type(v.type));
}

Operand Analyzer::bi_is_same_type(Node* node, TypeRef) {
  return known_operand(make_bool(type_arg(node, 0) == type_arg(node, 1)));
}

Operand Analyzer::bi_is_arch(Node* node, TypeRef) {
  std::string s = string_arg(node, 0);
  if (s != "wse2" && s != "wse3" && s != "wse1") {
    fail(node->list[0]->pos, "wse.csl.builtin.arch",
         cat("unknown architecture \"", s, "\"; known are \"wse2\" and \"wse3\""));
  }
  return known_operand(make_bool(s == (options_.arch == Arch::wse3 ? "wse3" : "wse2")));
}

Operand Analyzer::bi_is_comptime(Node*, TypeRef) { return known_operand(make_bool(known())); }

Operand Analyzer::bi_comptime_assert(Node* node, TypeRef) {
  Value v = need_known(coerce(known_operand(known_arg(node, 0)), types_.bool_, node->pos),
                       node->pos, "the condition of @comptime_assert");
  if (!v.i)
    fail(node->pos, "wse.csl.comptime.assert",
         cat("@comptime_assert failed",
             node->list.size() > 1 ? cat(": ", string_arg(node, 1)) : std::string()));
  return void_operand();
}

Operand Analyzer::bi_assert(Node* node, TypeRef hint) {
  if (known()) return bi_comptime_assert(node, hint);
  Operand v = coerce(arg(node, 0), types_.bool_, node->pos);
  const Source& s = sources_[node->pos.file];
  std::string message = cat("@assert failed at ", s.path, ":", s.line_of(node->pos.offset));
  if (node->list.size() > 1) message += cat(": ", string_arg(node, 1));
  emit(Insn::with_imm(Op::check, 0, to_reg(v, node->pos), string_index(message)), node->pos);
  return void_operand();
}

Operand Analyzer::bi_comptime_print(Node* node, TypeRef) {
  std::string line;
  for (std::size_t k = 0; k < node->list.size(); ++k)
    line += cat(k ? " " : "", show(known_arg(node, k)));
  if (result_.printed.size() < 10000) result_.printed.push_back(line);
  return void_operand();
}

Operand Analyzer::bi_concat_structs(Node* node, TypeRef) {
  only_in(Sdk::v1, node->pos, "@concat_structs", "write one struct with all fields");
  Operand a = arg(node, 0), c = arg(node, 1);
  if (a.type->kind != T::struct_ || c.type->kind != T::struct_) {
    fail(node->pos, "wse.csl.type.mismatch",
         cat("@concat_structs takes two structs, found ", text(a.type), " and ", text(c.type)));
  }
  std::vector<FieldType> fields = a.type->fields;
  for (const FieldType& f : c.type->fields) {
    if (f.name && field_index(a.type, f.name) >= 0) {
      fail(node->pos, "wse.csl.type.duplicate_field",
           cat("both structs have a field \"", name(f.name), "\""));
    }
    if (!fields.empty() && (fields[0].name == 0) != (f.name == 0)) {
      fail(node->pos, "wse.csl.type.mismatch",
           "@concat_structs cannot join a struct with named fields and a tuple");
    }
    fields.push_back(f);
  }
  if (a.is_known() && c.is_known()) {
    std::vector<Value> items;
    for (const Value& v : aggregate(a.value).items) items.push_back(v);
    for (const Value& v : aggregate(c.value).items) items.push_back(v);
    return known_operand(make_struct(std::move(fields), std::move(items)));
  }
  Operand out;
  out.where = Operand::parts;
  out.fields = std::make_shared<std::vector<Operand>>();
  for (std::size_t k = 0; k < a.type->fields.size(); ++k)
    out.fields->push_back(part(a, k, node->pos));
  for (std::size_t k = 0; k < c.type->fields.size(); ++k)
    out.fields->push_back(part(c, k, node->pos));
  out.type = types_.structure(std::move(fields));
  return out;
}

Operand Analyzer::bi_get_int(Node* node, TypeRef) {
  Operand v = arg(node, 0);
  if (v.type && v.type->is_any_int()) return v;
  TypeRef t = v.type->kind == T::enum_ ? v.type->elem : types_.u16;
  if (v.type->kind != T::enum_ && !v.type->is_id() && v.type->kind != T::direction &&
      !v.type->is_dsr() && v.type->kind != T::sr) {
    fail(node->pos, "wse.csl.type.mismatch",
         cat("@get_int takes an integer, an enum, a color, a queue, a task id or a DSR, found ",
             text(v.type)));
  }
  if (v.is_known()) return known_operand(make_int(t, v.value.i));
  v.type = t;
  return v;
}

int Analyzer::fp16_kind() const {
  switch (options_.fp16) {
    case Ty::bf16: return static_cast<int>(T::bf16);
    case Ty::cb16: return static_cast<int>(T::cb16);
    default: return static_cast<int>(T::f16);
  }
}

Operand Analyzer::bi_fp16(Node*, TypeRef) {
  return known_operand(make_type(types_.get(static_cast<T>(fp16_kind()))));
}

namespace {
TypeRef array_of(TypeRef t) { return t->kind == T::pointer ? t->elem : t; }
}  // namespace

Operand Analyzer::bi_dimensions(Node* node, TypeRef) {
  TypeRef t = array_of(type_arg(node, 0));
  if (t->kind != T::array)
    fail(node->pos, "wse.csl.type.mismatch",
         cat("@dimensions takes an array type, found ", text(t)));
  Value out;
  out.type = types_.array(types_.u32, {static_cast<std::int64_t>(t->dims.size())});
  Ref<Aggregate> a(new Aggregate);
  for (std::int64_t d : t->dims) a->items.push_back(make_int(types_.u32, wrap_to(types_.u32, d)));
  a->count = static_cast<std::int64_t>(t->dims.size());
  out.obj = a;
  return known_operand(out);
}
Operand Analyzer::bi_rank(Node* node, TypeRef) {
  TypeRef t = array_of(type_arg(node, 0));
  return known_operand(
      make_int(types_.u16, t->kind == T::array ? static_cast<Int128>(t->dims.size()) : 0));
}
Operand Analyzer::bi_element_count(Node* node, TypeRef) {
  TypeRef t = array_of(type_arg(node, 0));
  if (t->kind != T::array)
    fail(node->pos, "wse.csl.type.mismatch",
         cat("@element_count takes an array type, found ", text(t)));
  return known_operand(make_int(types_.u32, t->count()));
}
Operand Analyzer::bi_element_type(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  if (t->kind == T::pointer && t->elem->kind == T::array) t = t->elem;
  if (t->kind != T::array && t->kind != T::pointer)
    fail(node->pos, "wse.csl.type.mismatch",
         cat("@element_type takes an array type, found ", text(t)));
  return known_operand(make_type(t->elem));
}

Operand Analyzer::bi_field(Node* node, TypeRef) {
  Place p = place(node->list[0]);
  Symbol field = names_.intern(string_arg(node, 1));
  return load(field_place(std::move(p), field, node->pos), node->pos);
}
Operand Analyzer::bi_has_field(Node* node, TypeRef) {
  Place p = place(node->list[0]);
  TypeRef t = p.type;
  Symbol field = names_.intern(string_arg(node, 1));
  if (t->kind == T::type) t = static_cast<TypeRef>(load(p, node->pos).value.p);
  bool has = t->kind == T::struct_ && field_index(t, field) >= 0;
  if (t->kind == T::imported_module)
    has = find_decl(static_cast<Module*>(const_cast<void*>(load(p, node->pos).value.p)), field) !=
          nullptr;
  return known_operand(make_bool(has));
}

Operand Analyzer::bi_strcat(Node* node, TypeRef) {
  std::string out;
  for (std::size_t k = 0; k < node->list.size(); ++k) out += string_arg(node, k);
  if (out.size() > 1u << 20)
    fail(node->pos, "wse.csl.comptime.string", "the string is longer than 1 MiB");
  return known_operand(make_string(out));
}
Operand Analyzer::bi_strlen(Node* node, TypeRef) {
  return known_operand(
      make_int(types_.comptime_int, static_cast<Int128>(string_arg(node, 0).size())));
}
Operand Analyzer::bi_get_string_from_byte(Node* node, TypeRef) {
  Int128 byte = int_arg(node, 0, "the byte");
  if (byte < 0 || byte > 255)
    fail(node->list[0]->pos, "wse.csl.comptime.byte",
         cat(to_text(byte), " is no byte; legal are 0 to 255"));
  return known_operand(make_string(std::string(1, static_cast<char>(byte))));
}
Operand Analyzer::bi_get_array(Node* node, TypeRef) {
  std::string s = string_arg(node, 0);
  Value out;
  out.type = types_.array(types_.u8, {static_cast<std::int64_t>(s.size())});
  Ref<Aggregate> a(new Aggregate);
  for (char c : s) a->items.push_back(make_int(types_.u8, static_cast<unsigned char>(c)));
  a->count = static_cast<std::int64_t>(s.size());
  out.obj = a;
  return known_operand(out);
}

Operand Analyzer::bi_import_module(Node* node, TypeRef) {
  std::string spec = string_arg(node, 0);
  Value params;
  if (node->list.size() > 1) {
    params = known_arg(node, 1);
    if (params.type->kind != T::struct_) {
      fail(node->list[1]->pos, "wse.csl.type.mismatch",
           cat("the params of a module are a struct, found ", text(params.type)));
    }
  }
  struct Nesting {
    explicit Nesting(int& n) : count(n) { ++count; }
    ~Nesting() { --count; }
    int& count;
  } nesting(module_nesting_);
  if (module_nesting_ > 40)
    fail(node->pos, "wse.csl.module.recursion", "modules import each other without end");
  const Source* source = load(resolve_import(spec, node->pos), node->pos, true);
  Module* m = instantiate(source, params.defined() ? &params : nullptr, node->pos, false);
  run_module(m, !program_);
  Value v;
  v.type = types_.get(T::imported_module);
  v.p = m;
  return known_operand(v);
}

}  // namespace weft::wse::csl
