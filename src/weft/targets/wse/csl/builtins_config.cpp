// SPDX-License-Identifier: Apache-2.0
// Built-ins about configuration registers, filters, queues that run empty, control task tables,
// values read from files, and the symbols that the host sees.
#include "weft/base/json.h"
#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

// ---- values from files ----

/// A built-in type, or a one-dimensional array of one, as "[8]u16".
TypeRef Analyzer::type_from_text(std::string_view text, Pos pos, const std::string& where) {
  auto trim = [](std::string_view v) {
    while (!v.empty() && v.front() == ' ') v.remove_prefix(1);
    while (!v.empty() && v.back() == ' ') v.remove_suffix(1);
    return v;
  };
  text = trim(text);
  std::int64_t count = -1;
  if (std::size_t end = text.find(']'); text.starts_with("[") && end != std::string_view::npos) {
    count = 0;
    for (char c : trim(text.substr(1, end - 1))) {
      if (c < '0' || c > '9' || count > 65536) count = 1 << 20;
      else count = count * 10 + (c - '0');
    }
    text = trim(text.substr(end + 1));
  }
  TypeRef type = types_.find(text);
  if (!type || count > 65536)
    fail(pos, "wse.csl.json.type", cat(where, " names the type \"", text, "\", which is none"),
         "legal are built-in types and one-dimensional arrays of them, as \"name:[8]u16\"");
  return count < 0 ? type : types_.array(type, {count});
}

Value Analyzer::value_from_json(const Json& json, TypeRef t, Pos pos, const std::string& where) {
  auto mismatch = [&](std::string_view found) {
    fail(pos, "wse.csl.json.type",
         cat(where, " holds ", found, " where a value of type ", text(t), " is wanted"));
  };
  auto kind_of = [](const Json& j) -> std::string_view {
    return j.is_null()     ? "null"
           : j.is_bool()   ? "a boolean"
           : j.is_number() ? "a number"
           : j.is_string() ? "a string"
           : j.is_array()  ? "a list"
                           : "an object";
  };
  if (t->kind == T::comptime_struct) {  // the shape is the file's
    if (json.is_bool()) return make_bool(json.as_bool());
    if (json.is_int()) return make_int(types_.comptime_int, json.as_int());
    if (json.is_number()) return make_float(types_.comptime_float, json.as_double());
    if (json.is_string()) return make_string(json.as_string());
    std::vector<FieldType> fields;
    std::vector<Value> items;
    if (json.is_object()) {
      for (const auto& [key, item] : json.as_object()) {
        // "name:type" says the type of the member.
        std::size_t colon = key.find(':');
        std::string member = key.substr(0, colon);
        TypeRef type = colon == std::string::npos
                           ? t
                           : type_from_text(std::string_view(key).substr(colon + 1), pos, where);
        items.push_back(value_from_json(item, type, pos, cat(where, ".", member)));
        fields.push_back({names_.intern(member), items.back().type});
      }
    } else if (json.is_array()) {
      for (std::size_t k = 0; k < json.size(); ++k) {
        items.push_back(value_from_json(json.at(k), t, pos, cat(where, "[", k, "]")));
        fields.push_back({0, items.back().type});
      }
    } else {
      mismatch(kind_of(json));
    }
    return make_struct(std::move(fields), std::move(items));
  }
  if (t->kind == T::bool_) {
    if (!json.is_bool()) mismatch(kind_of(json));
    return make_bool(json.as_bool());
  }
  if (t->is_any_int()) {
    if (!json.is_int()) mismatch(json.is_number() ? "a fraction" : kind_of(json));
    if (t->is_int() && !fits(t, json.as_int()))
      fail(pos, "wse.csl.json.type",
           cat(where, " holds ", json.as_int(), ", which does not fit ", text(t)));
    return make_int(t, json.as_int());
  }
  if (t->is_any_float()) {
    if (!json.is_number()) mismatch(kind_of(json));
    return make_float(t, json.as_double());
  }
  if (t->kind == T::comptime_string) {
    if (!json.is_string()) mismatch(kind_of(json));
    return make_string(json.as_string());
  }
  if (t->kind == T::array) {
    // Rows of a multi-dimensional array may be nested lists or one flat list.
    std::vector<const Json*> flat;
    auto collect = [&](auto&& self, const Json& j, int depth) -> void {
      spend(pos);
      if (!j.is_array()) {
        flat.push_back(&j);
        return;
      }
      if (depth > 8) mismatch("lists nested too deeply");
      for (const Json& item : j.as_array()) self(self, item, depth + 1);
    };
    if (!json.is_array()) mismatch(kind_of(json));
    collect(collect, json, 0);
    if (static_cast<std::int64_t>(flat.size()) != t->count())
      fail(pos, "wse.csl.json.type",
           cat(where, " holds ", flat.size(), " elements; ", text(t), " has ", t->count()));
    Value out;
    out.type = t;
    Ref<Aggregate> a(new Aggregate);
    a->count = t->count();
    for (std::size_t k = 0; k < flat.size(); ++k)
      a->items.push_back(value_from_json(*flat[k], t->elem, pos, cat(where, "[", k, "]")));
    out.obj = a;
    return out;
  }
  if (t->kind == T::struct_) {
    if (!json.is_object()) mismatch(kind_of(json));
    Value out;
    out.type = t;
    Ref<Aggregate> a(new Aggregate);
    a->count = static_cast<std::int64_t>(t->fields.size());
    for (const FieldType& f : t->fields) {
      const Json* item = json.find(name(f.name));
      if (!item)
        fail(pos, "wse.csl.json.type", cat(where, " has no member \"", name(f.name), "\""));
      a->items.push_back(value_from_json(*item, f.type, pos, cat(where, ".", name(f.name))));
    }
    out.obj = a;
    return out;
  }
  fail(pos, "wse.csl.json.type", cat("a value of type ", text(t), " cannot be read from a file"),
       "legal are numbers, bool, comptime_string, arrays, structs and comptime_struct");
}

Operand Analyzer::bi_import_comptime_value(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  std::string path = resolve_import(string_arg(node, 1), node->pos);
  const Source* source = load(path, node->list[1]->pos, true);
  Json json;
  try {
    json = Json::parse(source->text, path);
  } catch (const Error& e) {
    fail(node->list[1]->pos, "wse.csl.json.parse",
         cat("\"", path, "\" is not JSON: ", e.message()));
  }
  return known_operand(value_from_json(json, t, node->pos, cat("\"", path, "\"")));
}

// ---- configuration registers ----

Operand Analyzer::emit_config(ConfigFn fn, std::vector<Operand> args, TypeRef result, Pos pos) {
  for (Operand& v : args) {
    if (v.type->kind == T::comptime_int) v = coerce(v, types_.u16, pos);
  }
  std::uint16_t first = b().next;
  for (Operand& v : args) {
    v.temp = false;
    to_reg_at(v, new_reg(pos), pos);
  }
  std::uint16_t r = new_reg(pos);
  emit({Op::config, static_cast<std::uint8_t>(Ty::u32), r, first, static_cast<std::uint16_t>(fn)},
       pos);
  return in_reg(result, r);
}

namespace {
bool modelled(Int128 address) {
  return (address >= kRegRoutes && address < kRegRoutes + kColors) ||
         (address >= kRegSwitch && address < kRegSwitch + kColors) ||
         (address >= kRegCounter && address < kRegCounter + kColors) || address == kRegTeardown ||
         address == kRegTeardown + 1;
}
}  // namespace

// One inclusive range of addresses, or several, that the address is said to lie in.
void Analyzer::check_ranges(Node* node, std::size_t k, const Operand& address) {
  if (node->list.size() <= k) return;
  Value ranges = known_arg(node, k);
  Pos pos = node->list[k]->pos;
  auto fields = [&](const Value& v) {
    return v.type->kind == T::struct_ ? v.type->fields.size() : 0;
  };
  std::vector<std::pair<Int128, Int128>> all;
  auto add = [&](const Value& range) {
    if (fields(range) != 2 || !aggregate(range).at(0).type->is_any_int() ||
        !aggregate(range).at(1).type->is_any_int())
      fail(pos, "wse.csl.config.range",
           cat("a range of addresses is .{first, last}, found ", text(range.type)));
    all.push_back({aggregate(range).at(0).i, aggregate(range).at(1).i});
    if (all.back().first > all.back().second)
      fail(pos, "wse.csl.config.range",
           cat("the range from ", to_text(all.back().first), " to ", to_text(all.back().second),
               " is empty"));
  };
  if (fields(ranges) > 0 && aggregate(ranges).at(0).type->kind == T::struct_) {
    for (std::size_t j = 0; j < fields(ranges); ++j)
      add(aggregate(ranges).at(static_cast<std::int64_t>(j)));
  } else {
    add(ranges);
  }
  if (!address.is_known()) return;
  for (auto& [low, high] : all) {
    if (address.value.i >= low && address.value.i <= high) return;
  }
  fail(pos, "wse.csl.config.range",
       cat("address ", to_text(address.value.i), " lies in none of the ", all.size(), " ranges"));
}

Operand Analyzer::bi_get_config(Node* node, TypeRef) {
  need_program(node->pos, "@get_config");
  Operand address = coerce(arg(node, 0), types_.u16, node->list[0]->pos, "the address");
  check_ranges(node, 1, address);
  if (known()) {
    auto a = static_cast<std::uint16_t>(need_known(address, node->pos, "the address").i);
    for (auto& [at, value] : program_->out.registers) {
      if (at == a) return known_operand(make_int(types_.u16, value));
    }
    fail(node->pos, "wse.csl.config.unset",
         cat("register ", a, " has no value at compile time; @set_config gives it one"));
  }
  return emit_config(ConfigFn::get_register, {address}, types_.u16, node->pos);
}

Operand Analyzer::bi_get_config_unchecked(Node* node, TypeRef hint) {
  return bi_get_config(node, hint);  // nothing is checked that would differ
}

Operand Analyzer::set_config(Node* node, bool checked) {
  Pos pos = node->pos;
  need_program(pos, "@set_config");
  Operand address = coerce(arg(node, 0), types_.u16, node->list[0]->pos, "the address");
  Operand value = coerce(arg(node, 1), types_.u16, node->list[1]->pos, "the value");
  check_ranges(node, 2, address);
  if (checked && address.is_known() && modelled(address.value.i)) {
    fail(pos, "wse.csl.config.managed",
         cat("register ", to_text(address.value.i),
             " belongs to the routes, switches, filters or teardown of a color"),
         "use @set_color_config or <tile_config>, or @set_config_unchecked");
  }
  if (!known()) {
    emit_config(ConfigFn::set_register, {address, value}, types_.u16, pos);
    return void_operand();
  }
  auto a = static_cast<std::uint16_t>(need_known(address, pos, "the address").i);
  auto v = static_cast<std::uint16_t>(need_known(value, pos, "the value").i);
  for (auto& [old, was] : program_->out.registers) {
    if (old != a) continue;
    was = v;
    return void_operand();
  }
  program_->out.registers.push_back({a, v});
  return void_operand();
}

Operand Analyzer::bi_set_config(Node* node, TypeRef) { return set_config(node, true); }
Operand Analyzer::bi_set_config_unchecked(Node* node, TypeRef) { return set_config(node, false); }

Operand Analyzer::bi_get_filter_id(Node* node, TypeRef) {
  need_runtime(node->pos, "@get_filter_id");
  Operand c = arg(node, 0);
  if (!c.type || c.type->kind != T::color)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@get_filter_id takes a color, found ", text(c.type)));
  return emit_config(ConfigFn::filter_id, {c}, types_.u16, node->pos);
}

// ---- queues that run empty ----

void Analyzer::need_wse3(Pos pos, std::string_view what) {
  if (options_.arch != Arch::wse3)
    fail(pos, "wse.csl.builtin.wse3", cat(what, " exists on WSE-3 only; this is WSE-2"),
         "ask @is_arch(\"wse3\") first");
}

std::uint16_t Analyzer::queue_number(const Value& q, Pos pos) {
  if (q.type->kind != T::input_queue && q.type->kind != T::output_queue)
    fail(pos, "wse.csl.type.mismatch", cat("expected a queue, found ", text(q.type)));
  return static_cast<std::uint16_t>(q.i + (q.type->kind == T::output_queue ? 8 : 0));
}

Operand Analyzer::bi_queue_flush(Node* node, TypeRef) {
  need_wse3(node->pos, "@queue_flush");
  need_runtime(node->pos, "@queue_flush");
  std::uint16_t q = queue_number(known_arg(node, 0), node->list[0]->pos);
  emit_config(ConfigFn::flush, {known_operand(make_int(types_.u16, q))}, types_.u16, node->pos);
  return void_operand();
}

Operand Analyzer::bi_set_empty_queue_handler(Node* node, TypeRef) {
  need_wse3(node->pos, "@set_empty_queue_handler");
  need_program(node->pos, "@set_empty_queue_handler");
  Value fn = known_arg(node, 0);
  Pos pos = node->pos;
  if ((fn.type->kind != T::function && fn.type->kind != T::fn) || !fn.p)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("expected a function, found ", text(fn.type)));
  auto q = static_cast<std::uint8_t>(queue_number(known_arg(node, 1), node->list[1]->pos));
  for (auto& [old, handler] : program_->out.empty_handlers) {
    if (old == q)
      fail(pos, "wse.csl.queue.handler_twice",
           cat(q >= 8 ? "output" : "input", " queue ", q & 7, " already has a handler"));
  }
  FunctionInstance* f = plain_instance(static_cast<Decl*>(const_cast<void*>(fn.p)), pos);
  if (!f->type->fields.empty())
    fail(node->list[0]->pos, "wse.csl.task.arguments",
         cat("the handler of an empty queue takes no arguments, found ", f->type->fields.size()));
  program_->out.empty_handlers.push_back({q, static_cast<std::uint16_t>(f->index)});
  return void_operand();
}

Operand Analyzer::bi_set_control_task_table(Node* node, TypeRef) {
  need_wse3(node->pos, "@set_control_task_table");
  need_program(node->pos, "@set_control_task_table");
  Pos pos = node->pos;
  if (!known())
    fail(pos, "wse.csl.builtin.context", "@set_control_task_table belongs into a comptime block");
  if (program_->out.control_stride != 0)
    fail(pos, "wse.csl.task.table", "@set_control_task_table is called twice");
  Int128 instructions = 4, stride = 1;
  if (!node->list.empty()) {
    Value config = known_arg(node, 0);
    if (config.type->kind != T::struct_)
      fail(node->list[0]->pos, "wse.csl.type.mismatch",
           cat("expected a struct, found ", text(config.type)));
    for (std::size_t k = 0; k < config.type->fields.size(); ++k) {
      const std::string& f = name(config.type->fields[k].name);
      const Value& v = aggregate(config).at(static_cast<std::int64_t>(k));
      if (f != "instructions" && f != "stride")
        fail(node->list[0]->pos, "wse.csl.settings.unknown",
             cat("a control task table has no setting \"", f, "\""),
             "legal are instructions and stride");
      if (!v.type->is_any_int())
        fail(node->list[0]->pos, "wse.csl.type.mismatch",
             cat(f, " is an integer, found ", text(v.type)));
      (f == "stride" ? stride : instructions) = v.i;
    }
  }
  if (instructions != 2 && instructions != 4 && instructions != 8)
    fail(pos, "wse.csl.task.table",
         cat("a control task table has 2, 4 or 8 instructions an entry, found ",
             to_text(instructions)));
  if (stride < 1 || stride > 7)
    fail(pos, "wse.csl.task.table",
         cat("the stride of a control task table is 1 to 7, found ", to_text(stride)));
  program_->out.control_stride = static_cast<std::uint8_t>(stride);
  return void_operand();
}

/// Tasks of all kinds share one table of entry points, unless control tasks were given their own.
void Analyzer::check_task_ids() {
  for (std::size_t i = 0; i < program_->tasks.size(); ++i) {
    const BoundTask& a = program_->tasks[i];
    for (std::size_t j = 0; j < i; ++j) {
      const BoundTask& b = program_->tasks[j];
      bool control = a.space == TaskSpace::control || b.space == TaskSpace::control;
      if (a.id != b.id || a.space == b.space || (control && program_->out.control_stride != 0))
        continue;
      // What our library binds need not be what the original binds: its ids are no clash.
      if (a.decl->module->source->path.starts_with("<") ||
          b.decl->module->source->path.starts_with("<"))
        continue;
      report(a.decl->node->pos, "wse.csl.task.clash",
             cat("tasks \"", name(b.decl->name), "\" and \"", name(a.decl->name),
                 "\" are both bound to entry point ", a.id,
                 control && options_.arch == Arch::wse3
                     ? "; @set_control_task_table gives control tasks a table of their own"
                     : ""));
      program_->broken = true;
    }
  }
}

// ---- the host's symbols ----

Operand Analyzer::bi_rpc(Node* node, TypeRef) {
  need_program(node->pos, "@rpc");
  if (!known()) fail(node->pos, "wse.csl.builtin.context", "@rpc belongs into a comptime block");
  if (!node->list.empty()) {
    Value id = known_arg(node, 0);
    if (id.type->kind != T::color && id.type->kind != T::data_task_id &&
        id.type->kind != T::local_task_id && id.type->kind != T::input_queue)
      fail(node->list[0]->pos, "wse.csl.type.mismatch",
           cat("@rpc takes the color or the task id on which commands arrive, found ",
               text(id.type)));
  }
  if (program_->has_rpc) fail(node->pos, "wse.csl.rpc.twice", "@rpc is called twice by a program");
  program_->has_rpc = true;  // commands arrive natively: there is no table to build
  return void_operand();
}

int Analyzer::export_id(Node* node, std::string_view what) {
  Value v = known_arg(node, 0);
  int id = -1;
  if (v.type->kind == T::comptime_string) {
    for (std::size_t k = 0; k < layout_->exports.size(); ++k) {
      if (layout_->exports[k].name == name(static_cast<Symbol>(v.i))) id = static_cast<int>(k);
    }
  } else if (v.type->is_any_int()) {
    id =
        v.i >= 0 && v.i < static_cast<Int128>(layout_->exports.size()) ? static_cast<int>(v.i) : -1;
  } else {
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat(what, " takes a name or an id, found ", text(v.type)));
  }
  if (id < 0)
    fail(node->pos, "wse.csl.export.unknown", cat("the layout exports no symbol ", show(v)));
  if (!program_->export_places.contains(id)) {
    fail(node->pos, "wse.csl.export.unbound",
         cat("this program does not export \"", layout_->exports[static_cast<std::size_t>(id)].name,
             "\""),
         "add @export_symbol to a comptime block");
  }
  return id;
}

Operand Analyzer::bi_get_symbol_value(Node* node, TypeRef) {
  need_runtime(node->pos, "@get_symbol_value");
  if (node->list.size() == 2) {  // type and an id that only run time knows
    Pos pos = node->pos;
    TypeRef t = type_arg(node, 0);
    Operand v = coerce(arg(node, 1), types_.u16, pos, "the id");
    std::uint16_t id = to_new_reg(v, pos), out = new_reg(pos), k = new_reg(pos),
                  same = new_reg(pos);
    bool any = false;
    for (auto& [n, place] : program_->export_places) {
      if (layout_->export_types[static_cast<std::size_t>(n)] != t) continue;
      if (!any) load_constant(out, 0, t, pos);
      any = true;
      load_constant(k, static_cast<std::uint64_t>(n), types_.u16, pos);
      emit({Op::eq, static_cast<std::uint8_t>(Ty::u16), same, id, k}, pos);
      std::size_t skip = emit_jump(Op::jz, same, pos);
      Operand value = load(place, pos);
      if (value.type != t) value = load(deref_place(value, pos), pos);  // behind its pointer
      to_reg_at(value, out, pos);
      patch_here(skip);
    }
    if (!any)
      fail(pos, "wse.csl.export.type", cat("this program exports no symbol of type ", text(t)));
    return in_reg(t, out);
  }
  int id = export_id(node, "@get_symbol_value");
  return load(program_->export_places.at(id), node->pos);
}

Operand Analyzer::bi_get_tensor_ptr(Node* node, TypeRef) {
  need_runtime(node->pos, "@get_tensor_ptr");
  Pos pos = node->pos;
  Operand v = arg(node, 0);
  if (v.is_known()) {
    int id = export_id(node, "@get_tensor_ptr");
    if (layout_->exports[static_cast<std::size_t>(id)].kind != Export::var)
      fail(pos, "wse.csl.export.type",
           cat("\"", layout_->exports[static_cast<std::size_t>(id)].name, "\" is no tensor"));
    return load(program_->export_places.at(id), pos);
  }
  // An id known at run time only: the pointer has no element type of its own; 0 for another id.
  TypeRef result = types_.pointer(types_.u16, false, true);
  v = coerce(v, types_.u16, pos, "the id");
  std::uint16_t id = to_new_reg(v, pos), out = new_reg(pos), k = new_reg(pos), same = new_reg(pos);
  load_constant(out, 0, types_.u16, pos);
  for (auto& [n, place] : program_->export_places) {
    if (layout_->exports[static_cast<std::size_t>(n)].kind != Export::var) continue;
    load_constant(k, static_cast<std::uint64_t>(n), types_.u16, pos);
    emit({Op::eq, static_cast<std::uint8_t>(Ty::u16), same, id, k}, pos);
    std::size_t skip = emit_jump(Op::jz, same, pos);
    to_reg_at(load(place, pos), out, pos);
    patch_here(skip);
  }
  return in_reg(result, out);
}

}  // namespace weft::wse::csl
