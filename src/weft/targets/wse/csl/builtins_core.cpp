// SPDX-License-Identifier: Apache-2.0
// Built-ins about types, values, strings, structs, modules and our library's natives.
#include <cmath>

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

Operand Analyzer::eval_builtin(Node* node, TypeRef hint) {
  const auto& rows = builtin_rows();
  constexpr int kBulkBase = 10000;
  if (node->cache < 0) {
    const std::string& n = name(node->name);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (rows[k].name == n) node->cache = static_cast<int>(k);
    }
    static constexpr std::string_view bulks[] = {
#define WEFT_WSE_BULK(name, d, s, count, k, w2, w3) #name,
#include "weft/targets/wse/bulk.def"
#undef WEFT_WSE_BULK
    };
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
                      : t->size == 1 ? types_.u8
                      : t->size == 2 ? types_.u16
                      : t->size == 8 ? types_.get(T::u64)
                                     : types_.u32;
    if (t->is_signed() && v.value.i < 0) carrier = t;
    v = coerce(v, carrier, pos);
  }
  if (!t->is_scalar() || !v.type || !v.type->is_scalar()) {
    fail(pos, "wse.csl.type.bitcast",
         cat("@bitcast cannot reinterpret ", text(v.type), " as ", text(t)));
  }
  if (t->size != v.type->size) {
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
  if (node->list.size() == 3)
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

Operand Analyzer::bi_range_start(Node* node, TypeRef) {
  Value v = known_arg(node, 0);
  RangeValue* r = range_of(v);
  if (!r) fail(node->pos, "wse.csl.type.mismatch", cat("expected a range, found ", text(v.type)));
  return known_operand(make_int(r->element, r->start));
}
Operand Analyzer::bi_range_stop(Node* node, TypeRef) {
  Value v = known_arg(node, 0);
  RangeValue* r = range_of(v);
  if (!r) fail(node->pos, "wse.csl.type.mismatch", cat("expected a range, found ", text(v.type)));
  return known_operand(make_int(r->element, r->stop));
}
Operand Analyzer::bi_range_step(Node* node, TypeRef) {
  Value v = known_arg(node, 0);
  RangeValue* r = range_of(v);
  if (!r) fail(node->pos, "wse.csl.type.mismatch", cat("expected a range, found ", text(v.type)));
  return known_operand(make_int(r->element, r->step));
}

/// The operand is analysed for its type only: nothing it emits is kept.
Operand Analyzer::bi_type_of(Node* node, TypeRef) {
  if (known()) {
    if (node->list[0]->kind == Kind::ident || node->list[0]->kind == Kind::field ||
        node->list[0]->kind == Kind::index) {
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

Operand Analyzer::bi_is_comptime(Node* node, TypeRef) {
  if (known()) return known_operand(make_bool(true));
  Builder saved = b();
  Operand v = arg(node, 0);
  b() = std::move(saved);
  return known_operand(make_bool(v.is_known()));
}

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
  TypeRef t = v.type->kind == T::enum_ ? v.type->elem : types_.u16;
  if (v.type->kind != T::enum_ && !v.type->is_id() && v.type->kind != T::direction) {
    fail(node->pos, "wse.csl.type.mismatch",
         cat("@get_int takes an enum, a color, a queue or a task id, found ", text(v.type)));
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
  out.type = types_.array(types_.u16, {static_cast<std::int64_t>(t->dims.size())});
  Ref<Aggregate> a(new Aggregate);
  for (std::int64_t d : t->dims) a->items.push_back(make_int(types_.u16, wrap_to(types_.u16, d)));
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
  return known_operand(make_int(types_.comptime_int, t->count()));
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

// ---- natives of the library ----

namespace {

struct MathRow {
  std::string_view name;
  MathFn fn;
  bool two;
};
constexpr MathRow kMath[] = {
    {"sqrt", MathFn::sqrt, false},        {"rsqrt", MathFn::rsqrt, false},
    {"inv", MathFn::inv, false},          {"sin", MathFn::sin, false},
    {"cos", MathFn::cos, false},          {"tan", MathFn::tan, false},
    {"asin", MathFn::asin, false},        {"acos", MathFn::acos, false},
    {"atan", MathFn::atan, false},        {"sinh", MathFn::sinh, false},
    {"cosh", MathFn::cosh, false},        {"tanh", MathFn::tanh, false},
    {"exp", MathFn::exp, false},          {"exp2", MathFn::exp2, false},
    {"log", MathFn::log, false},          {"log2", MathFn::log2, false},
    {"log10", MathFn::log10, false},      {"floor", MathFn::floor, false},
    {"ceil", MathFn::ceil, false},        {"round", MathFn::round, false},
    {"trunc", MathFn::trunc, false},      {"abs", MathFn::abs, false},
    {"sign", MathFn::sign, false},        {"is_nan", MathFn::is_nan, false},
    {"is_inf", MathFn::is_inf, false},    {"is_finite", MathFn::is_finite, false},
    {"erf", MathFn::erf, false},          {"cbrt", MathFn::cbrt, false},
    {"pow", MathFn::pow, true},           {"atan2", MathFn::atan2, true},
    {"fmin", MathFn::fmin, true},         {"fmax", MathFn::fmax, true},
    {"fscale", MathFn::fscale, true},     {"fmod", MathFn::fmod, true},
    {"copysign", MathFn::copysign, true},
};

double math_value(MathFn fn, double x, double y) {
  switch (fn) {
    case MathFn::sqrt: return std::sqrt(x);
    case MathFn::rsqrt: return 1 / std::sqrt(x);
    case MathFn::inv: return 1 / x;
    case MathFn::sin: return std::sin(x);
    case MathFn::cos: return std::cos(x);
    case MathFn::tan: return std::tan(x);
    case MathFn::asin: return std::asin(x);
    case MathFn::acos: return std::acos(x);
    case MathFn::atan: return std::atan(x);
    case MathFn::sinh: return std::sinh(x);
    case MathFn::cosh: return std::cosh(x);
    case MathFn::tanh: return std::tanh(x);
    case MathFn::exp: return std::exp(x);
    case MathFn::exp2: return std::exp2(x);
    case MathFn::log: return std::log(x);
    case MathFn::log2: return std::log2(x);
    case MathFn::log10: return std::log10(x);
    case MathFn::floor: return std::floor(x);
    case MathFn::ceil: return std::ceil(x);
    case MathFn::round: return std::nearbyint(x);
    case MathFn::trunc: return std::trunc(x);
    case MathFn::abs: return std::fabs(x);
    case MathFn::sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case MathFn::is_nan: return std::isnan(x);
    case MathFn::is_inf: return std::isinf(x);
    case MathFn::is_finite: return std::isfinite(x);
    case MathFn::erf: return std::erf(x);
    case MathFn::cbrt: return std::cbrt(x);
    case MathFn::pow: return std::pow(x, y);
    case MathFn::atan2: return std::atan2(x, y);
    case MathFn::fmin: return std::fmin(x, y);
    case MathFn::fmax: return std::fmax(x, y);
    case MathFn::fscale:
      return std::scalbn(x, static_cast<int>(std::fmax(-100000, std::fmin(100000, y))));
    case MathFn::fmod: return std::fmod(x, y);
    case MathFn::copysign: return std::copysign(x, y);
  }
  return 0;
}

}  // namespace

Operand Analyzer::bi_weft_math(Node* node, TypeRef) {
  std::string n = string_arg(node, 0);
  const MathRow* row = nullptr;
  for (const MathRow& r : kMath) {
    if (r.name == n) row = &r;
  }
  if (!row || node->list.size() != (row->two ? 3u : 2u))
    fail(node->pos, "wse.csl.builtin.native", cat("no native function \"", n, "\""));
  Operand x = arg(node, 1), y = row->two ? arg(node, 2) : Operand();
  if (!x.type->is_any_float())
    fail(node->pos, "wse.csl.type.mismatch",
         cat(n, " takes a floating-point number, found ", text(x.type)));
  bool logical =
      row->fn == MathFn::is_nan || row->fn == MathFn::is_inf || row->fn == MathFn::is_finite;
  if (row->two && row->fn != MathFn::fscale) y = coerce(y, x.type, node->pos);
  if (row->fn == MathFn::fscale) y = coerce(y, types_.i16, node->pos);
  if (x.is_known() && (!row->two || y.is_known())) {
    double second =
        row->two ? (y.type->is_any_float() ? y.value.f : static_cast<double>(y.value.i)) : 0;
    double v = math_value(row->fn, x.value.f, second);
    return known_operand(logical ? make_bool(v != 0) : make_float(x.type, v));
  }
  need_runtime(node->pos, n);
  auto ty = static_cast<std::uint8_t>(bytecode_type(x.type));
  std::uint16_t r = kNoReg, source = kNoReg;
  if (row->two) {
    source = new_reg(node->pos);
    std::uint16_t second = new_reg(node->pos);
    x.temp = y.temp = false;
    to_reg_at(x, source, node->pos);
    to_reg_at(y, second, node->pos);
  } else {
    source = to_reg(x, node->pos);
  }
  r = new_reg(node->pos);
  emit({row->two ? Op::math2 : Op::math1, ty, r, source, static_cast<std::uint16_t>(row->fn)},
       node->pos);
  return in_reg(logical ? types_.bool_ : x.type, r);
}

Operand Analyzer::bi_weft_coordinate(Node* node, TypeRef) {
  need_runtime(node->pos, "a PE's coordinate");
  std::uint16_t r = new_reg(node->pos);
  emit(Insn::with_imm(Op::coord, static_cast<std::uint8_t>(Ty::u16), r,
                      static_cast<std::int32_t>(int_arg(node, 0, "the axis"))),
       node->pos);
  return in_reg(types_.u16, r);
}
Operand Analyzer::bi_weft_next_command(Node* node, TypeRef) {
  need_runtime(node->pos, "unblock_cmd_stream");
  emit({Op::nextcmd, 0, 0, 0, 0}, node->pos);
  return void_operand();
}
Operand Analyzer::bi_weft_stream(Node* node, TypeRef) {
  Value c = known_arg(node, 0);
  bool to_device = known_arg(node, 1).i != 0;
  if (!layout_ || program_ || c.type->kind == T::void_) return void_operand();
  HostStream s;
  s.color = static_cast<std::uint8_t>(color_of(c, node->pos));
  s.to_device = to_device;
  for (const HostStream& old : result_.layout.streams) {
    if (old.color == s.color && old.to_device == to_device) return void_operand();
  }
  result_.layout.streams.push_back(s);
  return void_operand();
}
Operand Analyzer::bi_weft_tsc_read(Node* node, TypeRef) {
  need_runtime(node->pos, "reading the cycle counter");
  std::uint16_t r = new_reg(node->pos);
  emit({Op::tscread, static_cast<std::uint8_t>(Ty::u64), r, 0, 0}, node->pos);
  return in_reg(types_.get(T::u64), r);
}
Operand Analyzer::bi_weft_tsc_control(Node* node, TypeRef) {
  need_runtime(node->pos, "controlling the cycle counter");
  emit(Insn::with_imm(Op::tscctl, 0, 0, static_cast<std::int32_t>(int_arg(node, 0, "the command"))),
       node->pos);
  return void_operand();
}
Operand Analyzer::bi_weft_print_text(Node* node, TypeRef) {
  need_runtime(node->pos, "printing");
  std::string s = string_arg(node, 0);
  std::size_t begin = 0;
  while (begin <= s.size()) {
    std::size_t end = s.find('\n', begin);
    std::string piece = s.substr(begin, end == std::string::npos ? std::string::npos : end - begin);
    if (!piece.empty()) {
      int index = string_index(piece);
      if (index > 0xffff) fail(node->pos, "wse.csl.emit.strings", "more than 65,536 strings");
      emit({Op::print, 0, 0, static_cast<std::uint16_t>(PrintKind::text),
            static_cast<std::uint16_t>(index)},
           node->pos);
    }
    if (end == std::string::npos) break;
    emit({Op::print, 0, 0, static_cast<std::uint16_t>(PrintKind::line), 0}, node->pos);
    begin = end + 1;
  }
  return void_operand();
}
Operand Analyzer::bi_weft_print(Node* node, TypeRef) {
  need_runtime(node->pos, "printing");
  std::string kind = string_arg(node, 0);
  PrintKind k = kind == "hex"         ? PrintKind::hex
                : kind == "real"      ? PrintKind::real
                : kind == "character" ? PrintKind::character
                                      : PrintKind::decimal;
  Operand v = arg(node, 1);
  if (v.type->kind == T::comptime_int) v = coerce(v, types_.i32, node->pos);
  if (v.type->kind == T::comptime_float) v = coerce(v, types_.f32, node->pos);
  emit({Op::print, static_cast<std::uint8_t>(bytecode_type(v.type)), to_reg(v, node->pos),
        static_cast<std::uint16_t>(k), 0},
       node->pos);
  return void_operand();
}
Operand Analyzer::bi_weft_config(Node* node, TypeRef) {
  static constexpr std::string_view names[] = {"reset_routes",
                                               "clear_position",
                                               "invalidate_positions",
                                               "set_rx_position",
                                               "set_tx_position",
                                               "set_ring",
                                               "set_pop",
                                               "teardown_pending",
                                               "teardown_exit",
                                               "teardown_is_pending",
                                               "set_task_priority",
                                               "set_main_priority",
                                               "set_queue_color",
                                               "set_counter",
                                               "queue_empty",
                                               "teardown_enter",
                                               "get_register",
                                               "set_register",
                                               "filter_id",
                                               "set_filter",
                                               "flush",
                                               "flush_pending",
                                               "flush_exit"};
  std::string n = string_arg(node, 0);
  int fn = -1;
  for (std::size_t k = 0; k < std::size(names); ++k) {
    if (names[k] == n) fn = static_cast<int>(k);
  }
  if (fn < 0) fail(node->pos, "wse.csl.builtin.native", cat("no tile configuration \"", n, "\""));
  need_runtime(node->pos, n);
  std::vector<Operand> args;
  for (std::size_t k = 1; k < node->list.size(); ++k) {
    Operand v = arg(node, k);
    if (v.type->kind == T::comptime_int) v = coerce(v, types_.u16, node->pos);
    args.push_back(v);
  }
  std::uint16_t first = b().next;
  for (Operand& v : args) {
    v.temp = false;
    to_reg_at(v, new_reg(node->pos), node->pos);
  }
  std::uint16_t r = new_reg(node->pos);
  emit({Op::config, static_cast<std::uint8_t>(Ty::u32), r, first, static_cast<std::uint16_t>(fn)},
       node->pos);
  return in_reg(types_.u32, r);
}
Operand Analyzer::bi_weft_string_id(Node* node, TypeRef) {
  need_program(node->pos, "a string in a trace");
  return known_operand(make_int(types_.u16, string_index(string_arg(node, 0))));
}
/// Messages leave on the first color and come on the second.
Operand Analyzer::bi_weft_post(Node* node, TypeRef) {
  need_program(node->pos, "the post");
  program_->out.post_out = static_cast<std::uint8_t>(color_of(known_arg(node, 0), node->pos));
  program_->out.post_in = static_cast<std::uint8_t>(color_of(known_arg(node, 1), node->pos));
  return void_operand();
}
/// Bytes of what a pointer leads to, of an array's elements.
Operand Analyzer::bi_weft_element_bytes(Node* node, TypeRef) {
  Operand p = arg(node, 0);
  if (!p.type || p.type->kind != T::pointer)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("expected a pointer, found ", text(p.type)));
  TypeRef t = p.type->elem->kind == T::array ? p.type->elem->elem : p.type->elem;
  return known_operand(make_int(types_.u16, t->size));
}
Operand Analyzer::bi_weft_error(Node* node, TypeRef) {
  fail(node->pos, "wse.csl.library.error", string_arg(node, 0));
}

Operand Analyzer::bi_random16(Node* node, TypeRef) {
  need_runtime(node->pos, "@random16");
  std::uint16_t r = new_reg(node->pos);
  emit({Op::random16, static_cast<std::uint8_t>(Ty::u16), r, 0, 0}, node->pos);
  return in_reg(types_.u16, r);
}
Operand Analyzer::bi_set_active_prng(Node* node, TypeRef) {
  need_runtime(node->pos, "@set_active_prng");
  Operand v = coerce(arg(node, 0), types_.u16, node->pos);
  emit({Op::setprng, 0, to_reg(v, node->pos), 0, 0}, node->pos);
  return void_operand();
}

}  // namespace weft::wse::csl
