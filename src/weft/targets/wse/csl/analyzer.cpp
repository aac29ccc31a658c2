// SPDX-License-Identifier: Apache-2.0
// Diagnostics, values and the run of one compilation.
#include "weft/targets/wse/csl/analyzer.h"

#include <algorithm>

#include "weft/base/hash.h"

#include "weft/base/text.h"
#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

Analyzer::Analyzer(const CompileOptions& options, CompileResult& result)
    : options_(options), result_(result), types_(names_), diagnostics_(sources_) {
  diagnostics_.limit = std::max(1, options.max_errors);
  sym_tensor_access_ = names_.intern("tensor_access");
  const char* directions[] = {"EAST", "WEST", "NORTH", "SOUTH", "RAMP"};
  for (int k = 0; k < 5; ++k)
    builtin_names_[names_.intern(directions[k])] = make_int(types_.direction, k);
}

Analyzer::~Analyzer() = default;

void Analyzer::fail(Pos pos, std::string_view code, std::string message) {
  report(pos, code, std::move(message));
  throw Abandon{};
}

void Analyzer::fail(Pos pos, std::string_view code, std::string message, std::string note) {
  Diagnostic& d = diagnostics_.add(Diagnostic::Level::error, pos, code, std::move(message));
  if (!note.empty()) d.notes.push_back({std::move(note), Pos{0xffffffffu, 0, 1}});
  add_callers(d, pos);
  throw Abandon{};
}

void Analyzer::report(Pos pos, std::string_view code, std::string message) {
  add_callers(diagnostics_.add(Diagnostic::Level::error, pos, code, std::move(message)), pos);
}

void Analyzer::add_callers(Diagnostic& d, Pos pos) const {
  auto in_library = [&](Pos p) {
    return p.file < sources_.size() && sources_[p.file].path.starts_with("<");
  };
  int notes = 0;
  auto add = [&](Pos from) {
    if (from.offset == 0xffffffffu) return;
    d.notes.push_back({"called from here", from});
    pos = from;
    ++notes;
  };
  for (const Frame* f = frame_; f && notes < 4; f = f->parent) {
    if (f->parent) add(f->call_pos);
  }
  for (const FunctionInstance* fn = compiling_; fn && notes < 4 && in_library(pos); fn = fn->caller)
    add(fn->called);
  if (!in_library(d.pos)) return;
  for (auto& [text, at] : d.notes) {  // the user's call is the place, ours a note
    if (at.offset == 0xffffffffu || in_library(at)) continue;
    std::swap(d.pos, at);
    text = "found here";
    return;
  }
}

void Analyzer::warn(Pos pos, std::string_view code, std::string message) {
  diagnostics_.add(
      options_.warnings_as_errors ? Diagnostic::Level::error : Diagnostic::Level::warning, pos,
      code, std::move(message));
}

void Analyzer::warn_reserved(Pos pos, std::string_view what, std::int64_t id,
                             std::initializer_list<std::int64_t> reserved) {
  if (!options_.memcpy || std::find(reserved.begin(), reserved.end(), id) == reserved.end()) return;
  if (pos.file < sources_.size() && sources_[pos.file].path.starts_with("<")) return;  // ours
  std::string text = cat(what, " ", id, " is taken by memcpy on the machine; here it is free");
  if (reserved_.insert(text).second) warn(pos, "wse.csl.reserved", std::move(text));
}

void Analyzer::only_in(Sdk sdk, Pos pos, std::string_view what, std::string_view instead) {
  if (pos.file < sources_.size() && sources_[pos.file].path.starts_with("<")) return;  // ours
  (sdk == Sdk::v1 ? result_.uses_v1 : result_.uses_v2) = true;
  if (options_.sdk == Sdk::detect || options_.sdk == sdk) return;
  report(pos, "wse.csl.version",
         cat(what, " exists in SDK ", sdk == Sdk::v1 ? "1.4" : "2.10",
             " only, and this is compiled for ", sdk == Sdk::v1 ? "2.10" : "1.4", ": ", instead));
}

void Analyzer::spend(Pos pos) {
  if (++steps_ > options_.comptime_steps) {
    steps_ = 0;
    report(pos, "wse.csl.comptime.limit",
           cat("compile-time evaluation takes more than ", options_.comptime_steps,
               " steps; is there a loop without end?"));
    throw TooManyErrors{};
  }
}

Value Analyzer::make_int(TypeRef type, Int128 v) const {
  Value out;
  out.type = type;
  out.i = v;
  return out;
}

Value Analyzer::make_float(TypeRef type, double v) const {
  Value out;
  out.type = type;
  out.f = round_to(type, v);
  return out;
}

Value Analyzer::make_type(TypeRef t) const {
  Value out;
  out.type = types_.type;
  out.p = t;
  return out;
}

Value Analyzer::make_string(std::string_view s) {
  Value out;
  out.type = types_.comptime_string;
  out.i = names_.intern(s);
  return out;
}

Value Analyzer::make_struct(std::vector<FieldType> fields, std::vector<Value> items) {
  Value out;
  out.type = types_.structure(std::move(fields));
  Ref<Aggregate> a(new Aggregate);
  a->count = static_cast<std::int64_t>(items.size());
  a->items = std::move(items);
  out.obj = a;
  return out;
}

Value Analyzer::void_value() const {
  Value out;
  out.type = types_.void_;
  return out;
}

Value Analyzer::zero_of(TypeRef type, Pos pos) {
  Value out;
  out.type = type;
  if (type->kind == T::array) {
    Ref<Aggregate> a(new Aggregate);
    a->count = type->count();
    a->splat = true;
    a->items.push_back(zero_of(type->elem, pos));
    out.obj = a;
  } else if (type->kind == T::struct_) {
    Ref<Aggregate> a(new Aggregate);
    a->count = static_cast<std::int64_t>(type->fields.size());
    for (const FieldType& f : type->fields) a->items.push_back(zero_of(f.type, pos));
    out.obj = a;
  } else if (type->is_dsd()) {
    out.obj = Ref<DsdValue>(new DsdValue);
  } else if (!type->is_scalar() && type->kind != T::comptime_int &&
             type->kind != T::comptime_float && type->kind != T::void_ &&
             type->kind != T::comptime_string) {
    fail(pos, "wse.csl.type.zero", cat("a value of type ", text(type), " has no zero"));
  }
  return out;
}

Operand Analyzer::known_operand(Value v) const {
  Operand op;
  op.where = Operand::known;
  op.type = v.type;
  op.value = std::move(v);
  return op;
}

const Value* Analyzer::field_of(const Value& v, std::string_view field) const {
  if (!v.defined() || v.type->kind != T::struct_ || !v.obj) return nullptr;
  for (std::size_t k = 0; k < v.type->fields.size(); ++k) {
    if (v.type->fields[k].name && name(v.type->fields[k].name) == field && !v.type->is_union)
      return &aggregate(v).at(static_cast<std::int64_t>(k));
  }
  return nullptr;
}

std::string Analyzer::show(const Value& v, int depth) const {
  if (!v.defined()) return "undefined";
  TypeRef t = v.type;
  switch (t->kind) {
    case T::void_: return "{}";
    case T::bool_: return v.i ? "true" : "false";
    case T::type: return text(static_cast<TypeRef>(v.p));
    case T::comptime_string: return name(static_cast<Symbol>(v.i));
    case T::direction: {
      constexpr const char* names[] = {"EAST", "WEST", "NORTH", "SOUTH", "RAMP"};
      return v.i >= 0 && v.i < 5 ? names[static_cast<int>(v.i)] : "?";
    }
    case T::enum_:
      for (auto& [symbol, value] : t->members) {
        if (value == v.i) return cat(text(t), ".", name(symbol));
      }
      return cat(text(t), "(", to_text(v.i), ")");
    case T::function: return name(static_cast<const Decl*>(v.p)->name);
    case T::imported_module: return cat("module ", static_cast<const Module*>(v.p)->label);
    case T::struct_:
    case T::array: {
      if (depth > 3 || !v.obj) return "...";
      std::string out = t->kind == T::array ? cat(text(t), " {") : ".{";
      const Aggregate& a = aggregate(v);
      for (std::int64_t k = 0; k < a.count && k < 16; ++k) {
        out += k ? ", " : " ";
        const auto field =
            static_cast<std::size_t>(t->is_union ? static_cast<std::int64_t>(v.i) : k);
        if (t->kind == T::struct_ && t->fields[field].name) {
          out += cat(".", name(t->fields[field].name), " = ");
        }
        out += show(a.at(k), depth + 1);
      }
      return out + (a.count > 16 ? ", ... }" : " }");
    }
    default: break;
  }
  if (t->kind == T::comptime_float || t->is_float()) return shortest(v.f);
  if (t->is_any_int() || t->is_id()) return to_text(v.i);
  return text(t);
}

/// Bytes that are equal exactly for equal values; they identify programs and function instances.
std::string Analyzer::key_of(const Value& v) const {
  std::string out;
  append_key(out, v);
  return out;
}

void Analyzer::append_key(std::string& out, const Value& v) const {
  auto raw = [&](const auto& x) { out.append(reinterpret_cast<const char*>(&x), sizeof x); };
  raw(v.type);
  if (!v.defined()) return;
  TypeRef t = v.type;
  if (t->is_aggregate() && v.obj) {
    const Aggregate& a = aggregate(v);
    raw(a.count);
    if (t->is_union) raw(v.i);
    // A splat equals the same array written out.
    bool splat = a.splat;
    if (!splat && t->kind == T::array && a.count > 64) {
      std::string first;
      append_key(first, a.at(0));
      splat = true;
      for (std::int64_t k = 1; k < a.count && splat; ++k) splat = key_of(a.at(k)) == first;
    }
    out += splat && a.count > 64 ? '*' : '{';
    if (splat && a.count > 64) {
      append_key(out, a.at(0));
    } else {
      for (std::int64_t k = 0; k < a.count; ++k) append_key(out, a.at(k));
    }
    return;
  }
  if (t->is_dsd() && v.obj) {
    auto* d = static_cast<DsdValue*>(v.obj.get());
    raw(d->dsd);
    raw(d->global);
    raw(d->element);
    return;
  }
  if (t->kind == T::range && v.obj) {
    auto* r = static_cast<RangeValue*>(v.obj.get());
    raw(r->element);
    raw(r->start);
    raw(r->stop);
    raw(r->step);
    return;
  }
  if (v.obj && t->kind == T::pointer) {
    auto* c = static_cast<CellPointer*>(v.obj.get());
    raw(c->cell.get());
    raw(c->path.size());
    for (std::int64_t k : c->path) raw(k);
    return;
  }
  raw(v.p);
  if (t->is_any_float()) {
    raw(v.f);
  } else {
    raw(v.i);
  }
}

Value Analyzer::need_known(const Operand& op, Pos pos, std::string_view what) {
  if (op.is_known()) return op.value;
  if (op.where == Operand::nothing) return void_value();
  if (op.where == Operand::parts) {
    Value out;
    out.type = op.type;
    Ref<Aggregate> a(new Aggregate);
    for (const Operand& f : *op.fields) a->items.push_back(need_known(f, pos, what));
    a->count = static_cast<std::int64_t>(a->items.size());
    out.obj = a;
    return out;
  }
  fail(pos, "wse.csl.comptime.runtime_value",
       cat(what, " must be known at compile time, but this value of type ", text(op.type),
           " is computed at run time"));
}

void Analyzer::run() {
  try {
    if (options_.tiles.empty() && options_.root.empty()) {
      fail({0, 0xffff, 1}, "wse.csl.file.none", "no layout file was given");
    }
    run_layout();
  } catch (const Abandon&) {
  } catch (const TooManyErrors&) {
    Diagnostic& d = const_cast<Diagnostic&>(diagnostics_.list().back());
    d.notes.push_back({"compilation stopped here", Pos{0xffffffffu, 0, 1}});
  }
  for (const Diagnostic& d : diagnostics_.list()) {
    if (d.level == Diagnostic::Level::warning) result_.warnings += diagnostics_.render(d);
  }
  diagnostics_.throw_if_errors();
  const bool v2 = options_.sdk == Sdk::v2 || (options_.sdk == Sdk::detect && !result_.uses_v1 &&
                                              (result_.uses_v2 || result_.like_v2));
  for (Program& p : result_.layout.programs) p.pairs = v2;
}

CompileResult compile_program(const CompileOptions& options) {
  CompileResult result;
  Analyzer(options, result).run();
  return result;
}

Layout compile(const CompileOptions& options) { return compile_program(options).layout; }

}  // namespace weft::wse::csl
