// SPDX-License-Identifier: Apache-2.0
// Expressions: the dispatcher, literals, types, names, struct and array literals, if and switch as
// values.
#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

/// Evaluates in a compile-time context inside the current activation.
struct KnownScope {
  explicit KnownScope(Analyzer& a) : frame(a.frame_) { ++frame->known; }
  ~KnownScope() { --frame->known; }
  Frame* frame;
};

Operand Analyzer::eval(Node* node, TypeRef hint) {
  DepthGuard guard(*this, node->pos);
  return eval_inner(node, hint);
}

Value Analyzer::eval_known(Node* node, TypeRef hint) {
  KnownScope scope(*this);
  return need_known(eval(node, hint), node->pos, "this value");
}

Operand Analyzer::eval_inner(Node* node, TypeRef hint) {
  switch (node->kind) {
    case Kind::integer: return known_operand(make_int(types_.comptime_int, node->integer));
    case Kind::floating: return known_operand(make_float(types_.comptime_float, node->floating));
    case Kind::boolean: return known_operand(make_bool(node->integer != 0));
    case Kind::string: {
      Value v;
      v.type = types_.comptime_string;
      v.i = node->name;
      return known_operand(v);
    }
    case Kind::ident:
    case Kind::index:
    case Kind::deref: return load(place(node), node->pos);
    case Kind::field: {
      // Members of types; everything else is a place.
      Node* base = node->a;
      if (base->kind == Kind::ident || base->kind == Kind::field || base->kind == Kind::index ||
          base->kind == Kind::deref) {
        Place p = place(base);
        if (p.type && p.type->kind == T::imported_module) return load(place(node), node->pos);
        if (p.type && (p.type->kind == T::struct_ ||
                       (p.type->kind == T::pointer && p.type->elem->kind == T::struct_))) {
          return load(field_place(p, node->name, node->pos), node->pos);
        }
        return member_of(load(p, node->pos), node);
      }
      Operand v = eval(base);
      if (v.type && (v.type->kind == T::struct_ ||
                     (v.type->kind == T::pointer && v.type->elem->kind == T::struct_))) {
        return load(field_place(place_of_operand(v), node->name, node->pos), node->pos);
      }
      return member_of(v, node);
    }
    case Kind::binary: return eval_binary(node, hint);
    case Kind::unary: return eval_unary(node, hint);
    case Kind::address_of: return address_of(place(node->a), node->pos);
    case Kind::call: return eval_call(node, hint);
    case Kind::builtin: return eval_builtin(node, hint);
    case Kind::struct_lit: return eval_struct(node, hint);
    case Kind::typed_init: return eval_typed_init(node);
    case Kind::array_type:
    case Kind::pointer_type:
    case Kind::fn_type:
    case Kind::struct_type:
    case Kind::enum_type: return known_operand(make_type(eval_type(node)));
    case Kind::if_: return eval_if(node, hint);
    case Kind::switch_: return eval_switch(node, hint, false, nullptr);
    case Kind::block: return eval_block_value(node, hint);
    case Kind::comptime_expr: {
      KnownScope scope(*this);
      return eval(node->a, hint);
    }
    case Kind::tensor_access: return eval_access(node);
    case Kind::return_:
    case Kind::break_:
    case Kind::continue_:
    case Kind::assign: {
      Flow flow = exec(node);
      Operand op = void_operand();
      if (flow != Flow::normal) {
        expression_flow_ = flow;
        op.type = types_.noreturn;
        op.value.type = types_.noreturn;
      }
      return op;
    }
    default: fail(node->pos, "wse.csl.type.expression", "this is no expression");
  }
}

/// `.name` of a type or of a value that is neither struct nor module.
Operand Analyzer::member_of(const Operand& base, Node* node) {
  if (base.is_known() && base.type->kind == T::imported_module) {
    Decl* d = find_decl(static_cast<Module*>(const_cast<void*>(base.value.p)), node->name);
    if (d) return load(decl_place(d, node->pos), node->pos);
  }
  if (base.is_known() && base.type->kind == T::type) {
    TypeRef t = static_cast<TypeRef>(base.value.p);
    if (t->kind == T::enum_) {
      std::vector<std::string> members;
      for (auto& [symbol, value] : t->members) {
        if (symbol == node->name) return known_operand(make_int(t, value));
        members.push_back(name(symbol));
      }
      fail(node->pos, "wse.csl.type.field",
           cat(text(t), " has no member \"", name(node->name), "\""),
           cat("its members are ", join(members)));
    }
  }
  fail(node->pos, "wse.csl.type.field",
       cat("a value of type ", text(base.type), " has no field \"", name(node->name), "\""));
}

void Analyzer::refuse_narrow(TypeRef type, Pos pos) {
  fail(pos, "wse.csl.export.type", cat("a symbol of type ", text(type), " cannot be exported"),
       "legal are integers of 16 and 32 bits, or a packed struct of that many: @as(u16, x) in a "
       "variable of its own");
}

/// iN and uN of SDK 2.10; null for other words and names that the program declares.
TypeRef Analyzer::integer_named(const std::string& word, Pos pos) {
  if (word.size() < 2 || (word[0] != 'i' && word[0] != 'u') ||
      word.find_first_not_of("0123456789", 1) != std::string::npos ||
      (word[1] == '0' && word.size() > 2))
    return nullptr;
  if (word.size() > 3 || std::stoi(word.substr(1)) > 64)
    fail(pos, "wse.csl.type.width", cat("integers of ", word.substr(1), " bits are not there"),
         "legal are 0 to 64 bits; more are an array of u32");
  only_in(Sdk::v2, pos, word, "legal are 8, 16, 32 and 64 bits");
  return types_.integer(std::stoi(word.substr(1)), word[0] == 'i');
}

Operand Analyzer::eval_ident(Node* node) {
  auto it = builtin_names_.find(node->name);
  if (it != builtin_names_.end()) return known_operand(it->second);
  TypeRef t = types_.find(name(node->name));
  if (!t) t = integer_named(name(node->name), node->pos);
  if (t) {
    Value v = make_type(t);
    builtin_names_[node->name] = v;
    return known_operand(v);
  }
  std::vector<std::string> known_names;
  for (const Local& l : frame_->locals) known_names.push_back(name(l.name));
  for (auto& [symbol, decl] : frame_->module->decls) known_names.push_back(name(symbol));
  for (auto& [symbol, value] : builtin_names_) known_names.push_back(name(symbol));
  if (name(node->name) == "_")
    fail(node->pos, "wse.csl.name.unknown", "\"_\" is not declared",
         "a call whose result nobody needs is a statement by itself: f();");
  static constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
      {"undefined", "a variable without a value is written: var x: T;"},
      {"null", "there are no pointers or values that may be missing"},
      {"usize", "sizes and extents are u16"},
      {"isize", "indices are i16 or u16"},
      {"int", "integers are i16, u16, i32 and u32"},
      {"float", "floats are f16 and f32"},
      {"double", "floats are f16 and f32"},
      {"f64", "floats are f16 and f32"},
      {"char", "bytes are u8"},
      {"UP", "directions are EAST, WEST, NORTH, SOUTH and RAMP"},
      {"DOWN", "directions are EAST, WEST, NORTH, SOUTH and RAMP"},
      {"LEFT", "directions are EAST, WEST, NORTH, SOUTH and RAMP"},
      {"RIGHT", "directions are EAST, WEST, NORTH, SOUTH and RAMP"}};
  for (const auto& [word, here] : kElsewhere) {
    if (word == name(node->name))
      fail(node->pos, "wse.csl.name.unknown", cat("\"", word, "\" is not declared"),
           std::string(here));
  }
  fail(node->pos, "wse.csl.name.unknown", cat("\"", name(node->name), "\" is not declared"),
       is_builtin(name(node->name)) ? cat("did you mean the built-in @", name(node->name), "?")
                                    : did_you_mean(name(node->name), known_names));
}

TypeRef Analyzer::eval_type(Node* node) {
  switch (node->kind) {
    case Kind::array_type: {
      std::vector<std::int64_t> dims;
      Int128 total = 1;
      for (Node* e : node->list) {
        Value v = eval_known(e);
        if (!v.type->is_any_int())
          fail(e->pos, "wse.csl.type.extent",
               cat("an extent must be an integer, found ", text(v.type)));
        if (v.i < 0 || v.i > 100'000'000) {
          fail(e->pos, "wse.csl.type.extent",
               cat("an extent must lie in 0..100000000, found ", to_text(v.i)));
        }
        dims.push_back(static_cast<std::int64_t>(v.i));
        total *= v.i;
        if (total > 100'000'000)
          fail(e->pos, "wse.csl.type.extent", "the array has more than 100,000,000 elements");
      }
      TypeRef elem = eval_type(node->a);
      if (elem->kind == T::array) {
        fail(node->pos, "wse.csl.type.array",
             "the element of an array cannot be an array; write [N, M]T");
      }
      return types_.array(elem, std::move(dims));
    }
    case Kind::pointer_type:
      return types_.pointer(eval_type(node->a), node->has(kConst), node->has(kMany));
    case Kind::fn_type: {
      std::vector<TypeRef> params;
      for (Node* p : node->list) params.push_back(eval_type(p));
      return types_.function(std::move(params), eval_type(node->a), node->has(kTask));
    }
    case Kind::struct_type: return struct_type_of(node);
    case Kind::enum_type: return enum_type_of(node);
    default: {
      Value v = eval_known(node);
      if (v.type->kind != T::type)
        fail(node->pos, "wse.csl.type.expected",
             cat("expected a type, found a value of type ", text(v.type)));
      if (static_cast<TypeRef>(v.p)->kind == T::comptime_struct)
        only_in(Sdk::v1, node->pos, "comptime_struct", "leave the type of the param out");
      return static_cast<TypeRef>(v.p);
    }
  }
}

TypeRef Analyzer::struct_type_of(Node* node) {
  std::vector<FieldType> fields;
  std::string key;
  for (Node* f : node->list) {
    TypeRef t = eval_type(f->a);
    for (const FieldType& old : fields) {
      if (old.name == f->name)
        fail(f->pos, "wse.csl.type.duplicate_field",
             cat("field \"", name(f->name), "\" occurs twice"));
    }
    const bool has_bits = t->is_int() || t->is_float() || t->kind == T::enum_ ||
                          t->kind == T::bool_ || t->kind == T::pointer || t->is_packed();
    if (node->has(kPacked) && !has_bits)
      fail(f->pos, "wse.csl.type.packed",
           cat("field \"", name(f->name), "\" of a packed type is of type ", text(t)),
           "legal are integers, floats, bool, enums, pointers and packed types");
    if (node->has(kPacked) && node->has(kUnion) && !fields.empty() &&
        t->packed_bits() != fields[0].type->packed_bits())
      fail(f->pos, "wse.csl.type.packed",
           cat("field \"", name(f->name), "\" of a packed union has ", t->packed_bits(),
               " bits, \"", name(fields[0].name), "\" has ", fields[0].type->packed_bits()),
           "the fields of a packed union have the same number of bits");
    if (node->has(kUnion) && f->b)
      fail(f->pos, "wse.csl.type.union", "a field of a union has no value of its own");
    fields.push_back({f->name, t});
    key += cat(reinterpret_cast<std::uintptr_t>(t), ",");
  }
  if (node->has(kUnion) || node->has(kPacked))
    only_in(Sdk::v2, node->pos, node->has(kUnion) ? "union" : "packed", "write a struct");
  if (node->has(kUnion) && fields.empty())
    fail(node->pos, "wse.csl.type.union", "a union needs at least one field");
  TypeRef& slot = nominal_[{node, key}];
  if (!slot)
    slot = types_.named_structure({}, std::move(fields), node->has(kUnion), node->has(kPacked));
  return slot;
}

TypeRef Analyzer::enum_type_of(Node* node) {
  TypeRef underlying = node->a ? eval_type(node->a) : types_.u16;
  if (!underlying->is_int())
    fail(node->pos, "wse.csl.type.enum",
         cat("an enum is stored in an integer, not in ", text(underlying)));
  std::vector<std::pair<Symbol, std::int64_t>> members;
  std::set<std::int64_t> taken;
  std::string key = cat(reinterpret_cast<std::uintptr_t>(underlying));
  for (Node* f : node->list) {
    if (!f->a) continue;
    Value v = eval_known(f->a);
    if (!v.type->is_any_int() || !fits(underlying, v.i)) {
      fail(f->a->pos, "wse.csl.type.enum",
           cat("the value of a member must fit ", text(underlying)));
    }
    if (!taken.insert(static_cast<std::int64_t>(v.i)).second) {
      fail(f->a->pos, "wse.csl.type.enum",
           cat("the value ", to_text(v.i), " is taken by another member"));
    }
    f->integer = v.i;
  }
  std::int64_t next = 0;
  for (Node* f : node->list) {
    std::int64_t value = 0;
    if (f->a) {
      value = static_cast<std::int64_t>(f->integer);
    } else {
      while (taken.contains(next)) ++next;
      value = next;
      taken.insert(next);
      if (!fits(underlying, value))
        fail(f->pos, "wse.csl.type.enum",
             cat("member \"", name(f->name), "\" is ", value, ", which does not fit ",
                 text(underlying)));
    }
    for (auto& old : members) {
      if (old.first == f->name)
        fail(f->pos, "wse.csl.type.duplicate_field",
             cat("member \"", name(f->name), "\" occurs twice"));
    }
    members.push_back({f->name, value});
    key += cat(",", value);
  }
  TypeRef& slot = nominal_[{node, key}];
  if (!slot) slot = types_.enumeration({}, underlying, std::move(members));
  return slot;
}

Operand Analyzer::eval_struct(Node* node, TypeRef hint) {
  std::vector<FieldType> fields;
  std::vector<Operand> values;
  bool all_known = true;
  for (std::size_t k = 0; k < node->list.size(); ++k) {
    Node* f = node->list[k];
    TypeRef field_hint = nullptr;
    if (hint && hint->kind == T::struct_) {
      int index = f->name ? field_index(hint, f->name) : static_cast<int>(k);
      if (index >= 0 && static_cast<std::size_t>(index) < hint->fields.size())
        field_hint = hint->fields[static_cast<std::size_t>(index)].type;
    } else if (hint && hint->kind == T::array) {
      field_hint = hint->elem;
    }
    Operand v = eval(f->a, field_hint);
    if (v.where == Operand::nothing || !v.type) v = void_operand();
    if (f->name) {
      for (const FieldType& old : fields) {
        if (old.name == f->name)
          fail(f->pos, "wse.csl.type.duplicate_field",
               cat("field \"", name(f->name), "\" occurs twice"));
      }
    }
    fields.push_back({f->name, v.type});
    all_known = all_known && v.is_known();
    if (v.where == Operand::reg) v = in_reg(v.type, v.r);
    values.push_back(std::move(v));
  }
  if (all_known) {
    std::vector<Value> items;
    items.reserve(values.size());
    for (Operand& v : values) items.push_back(std::move(v.value));
    return known_operand(make_struct(std::move(fields), std::move(items)));
  }
  Operand out;
  out.where = Operand::parts;
  out.type = types_.structure(std::move(fields));
  out.fields = std::make_shared<std::vector<Operand>>(std::move(values));
  return out;
}

Operand Analyzer::eval_typed_init(Node* node) {
  TypeRef type = eval_type(node->a);
  if (type->kind == T::struct_) {
    Node literal = *node;
    literal.kind = Kind::struct_lit;
    if (type->is_union) return coerce(eval_struct(&literal, type), type, node->pos);
    // Defaults of fields that are not named.
    if (node->list.empty() || node->list[0]->name != 0) {
      Operand given = eval_struct(&literal, type);
      bool complete = given.type->fields.size() == type->fields.size();
      if (!complete) {
        Node* definition = nullptr;
        for (auto& [key, t] : nominal_) {
          if (t == type) definition = const_cast<Node*>(key.first);
        }
        std::vector<FieldType> fields = given.type->fields;
        auto parts = std::make_shared<std::vector<Operand>>();
        for (std::size_t k = 0; k < fields.size(); ++k) parts->push_back(part(given, k, node->pos));
        for (const FieldType& f : type->fields) {
          if (field_index(given.type, f.name) >= 0) continue;
          Node* field = nullptr;
          for (Node* n : definition ? definition->list : std::vector<Node*>{}) {
            if (n->name == f.name) field = n;
          }
          if (!field || !field->b)
            fail(node->pos, "wse.csl.type.missing_field",
                 cat("field \"", name(f.name), "\" needs a value"));
          fields.push_back(f);
          parts->push_back(coerce(known_operand(eval_known(field->b, f.type)), f.type, node->pos));
        }
        given = Operand();
        given.where = Operand::parts;
        given.type = types_.structure(fields);
        given.fields = parts;
        bool all_known = true;
        for (const Operand& p : *parts) all_known = all_known && p.is_known();
        if (all_known) given = known_operand(need_known(given, node->pos, "a field"));
      }
      return coerce(given, type, node->pos);
    }
    return coerce(eval_struct(&literal, type), type, node->pos);
  }
  if (type->kind != T::array)
    fail(node->pos, "wse.csl.type.initialiser", cat(text(type), " has no initialiser in braces"));
  if (static_cast<std::int64_t>(node->list.size()) != type->count()) {
    fail(node->pos, "wse.csl.type.initialiser",
         cat(text(type), " needs ", type->count(), " elements, found ", node->list.size()));
  }
  std::vector<Operand> values;
  bool all_known = true;
  for (Node* f : node->list) {
    if (f->name) fail(f->pos, "wse.csl.type.initialiser", "the elements of an array have no names");
    Operand v = coerce(eval(f->a, type->elem), type->elem, f->pos);
    all_known = all_known && v.is_known();
    values.push_back(std::move(v));
  }
  if (all_known) {
    Value out;
    out.type = type;
    Ref<Aggregate> a(new Aggregate);
    a->count = static_cast<std::int64_t>(values.size());
    for (Operand& v : values) a->items.push_back(std::move(v.value));
    out.obj = a;
    return known_operand(out);
  }
  Operand out;
  out.where = Operand::parts;
  out.type = type;
  out.fields = std::make_shared<std::vector<Operand>>(std::move(values));
  return out;
}

/// Where a value lies that is decided at run time.
Operand Analyzer::chosen_value(TypeRef type, Pos pos) {
  if (type->is_scalar()) return in_reg(type, new_reg(pos));
  if (type->is_dsd()) return in_dreg(type, new_dreg(pos));
  if (!type->runtime || !type->is_aggregate())
    fail(pos, "wse.csl.type.runtime",
         cat("a value of type ", text(type), " cannot be chosen at run time"));
  return frame_slot(type, pos);
}

void Analyzer::choose(const Operand& place, Operand v, Pos pos) {
  v.temp = false;
  if (place.where == Operand::reg) to_reg_at(v, place.r, pos);
  else if (place.where == Operand::dreg) to_dreg_at(v, place.r, pos);
  else store_memory(place, std::move(v), pos);
}

/// A branch as a value: an expression, or a block that breaks with one.
Operand Analyzer::eval_if(Node* node, TypeRef hint) {
  Operand c = coerce(eval(node->a), types_.bool_, node->a->pos, "a condition");
  if (c.is_known()) {
    if (c.value.i) return eval(node->b, hint);
    return node->c ? eval(node->c, hint) : void_operand();
  }
  if (known()) need_known(c, node->pos, "a condition");
  Pos pos = node->pos;
  std::size_t to_else = emit_jump(Op::jz, to_reg(c, pos), pos);
  ++frame_->runtime_branches;
  Operand a = eval(node->b, hint);
  if (!node->c && a.type && a.type->kind != T::void_ && a.type->kind != T::noreturn) {
    fail(pos, "wse.csl.if.else",
         cat("this if has a value of type ", text(a.type),
             ", but none where its condition is false"),
         "add an else with the other value");
  }
  Operand chosen;
  TypeRef type = hint && a.type && a.type->kind != T::noreturn ? hint : nullptr;
  // The type of the other side is found without emitting: numbers take it from the side that has
  // one.
  if (a.type && (a.type->kind == T::comptime_int || a.type->kind == T::comptime_float) && !type) {
    Builder& f = b();
    auto code = f.out.code.size();
    auto lines = f.out.lines.size();
    auto next = f.next, dnext = f.dnext;
    Operand probe = node->c ? eval(node->c, hint) : void_operand();
    f.out.code.resize(code);
    f.out.lines.resize(lines);
    f.last_line = 0;
    f.next = next;
    f.dnext = dnext;
    type = peer_type(pos, a, probe);
    if (type->kind == T::comptime_int || type->kind == T::comptime_float) {
      fail(pos, "wse.csl.type.runtime",
           "both values are compile-time numbers, but the condition is decided at run time; give "
           "one a type with @as");
    }
  }
  if (!type && a.type) type = a.type;
  if (a.type && a.type->kind != T::noreturn && a.type->kind != T::void_) {
    a = coerce(a, type, node->b->pos);
    chosen = chosen_value(type, pos);
    choose(chosen, a, pos);
  }
  std::size_t to_end = emit_jump(Op::jmp, 0, pos);
  patch_here(to_else);
  Operand e = node->c ? eval(node->c, hint) : void_operand();
  std::size_t to_wide = 0;  // where the first value, of a narrower type, becomes the second's
  if (e.type && e.type->kind != T::noreturn && e.type->kind != T::void_) {
    if (!type || type->kind == T::noreturn) type = hint ? hint : e.type;
    const TypeRef peer =
        chosen.where == Operand::reg && !hint && !e.is_known() ? peer_type(pos, chosen, e) : type;
    e = coerce(e, peer, node->c->pos);
    if (chosen.where == Operand::nothing) chosen = chosen_value(peer, pos);
    choose(chosen, e, pos);
    if (peer != type) {
      to_wide = emit_jump(Op::jmp, 0, pos);
      patch_here(to_end);
      to_reg_at(coerce(chosen, peer, node->b->pos), chosen.r, pos);
      chosen.type = peer;
    }
  }
  --frame_->runtime_branches;
  patch_here(to_wide ? to_wide : to_end);
  return chosen.where == Operand::nothing ? void_operand() : chosen;
}

Operand Analyzer::block_result(const LoopLabel& block, Pos pos) {
  if (block.result.type->kind == T::comptime_int)
    fail(pos, "wse.csl.type.runtime",
         "the values of this block are compile-time numbers, but which one is decided at run time; "
         "give one a type with @as");
  return block.result;
}

Operand Analyzer::eval_block_value(Node* node, TypeRef hint) {
  if (node->list.empty()) return void_operand();
  Symbol label = node->name;
  check_label(label, node->pos);
  std::size_t mark = frame_->locals.size();
  std::size_t depth = frame_->loops.size();
  LoopLabel l;
  l.name = label;
  l.is_block = true;
  l.hint = hint;
  l.known = known();
  l.branches = frame_->runtime_branches;
  frame_->loops.push_back(l);
  Flow flow = exec_block(node);
  frame_->locals.resize(std::min(mark, frame_->locals.size()));
  LoopLabel done = std::move(frame_->loops.back());
  frame_->loops.resize(depth);
  if (flow == Flow::brk && frame_->pending == Flow::brk && label &&
      frame_->pending_label == label) {
    frame_->pending = Flow::normal;
    Operand v = std::move(frame_->break_value);
    frame_->break_value = Operand();
    for (std::size_t at : done.breaks) patch_here(at);
    if (done.has_result) v = block_result(done, node->pos);
    protect(v);
    return v.where == Operand::nothing ? void_operand() : v;
  }
  // Where every path ends, those that break out of this block go on behind it.
  if (flow != Flow::normal && done.breaks.empty()) {
    expression_flow_ = flow;
    Operand op = void_operand();
    op.type = types_.noreturn;
    op.value.type = types_.noreturn;
    return op;
  }
  for (std::size_t at : done.breaks) patch_here(at);
  protect(done.result);
  if (done.has_result && flow == Flow::normal && !program_->broken)
    fail(node->pos, "wse.csl.type.mismatch",
         cat("a break of this block has a value of type ", text(done.result.type),
             ", but the block's end can be reached without one"));
  if (done.has_result) return block_result(done, node->pos);
  return void_operand();
}

Operand Analyzer::eval_switch(Node* node, TypeRef hint, bool is_statement, Flow* flow) {
  Operand subject = eval(node->a);
  Pos pos = node->pos;
  if (!subject.type || !(subject.type->is_any_int() || subject.type->kind == T::enum_ ||
                         subject.type->kind == T::bool_ || subject.type->is_id() ||
                         subject.type->kind == T::direction || subject.type->kind == T::type)) {
    fail(node->a->pos, "wse.csl.switch.subject",
         cat("switch takes an integer, an enum or a bool, found ", text(subject.type)));
  }
  Node* otherwise = nullptr;
  std::set<std::string> seen;
  for (Node* arm : node->list) {
    if (arm->has(kElse)) {
      if (otherwise) fail(arm->pos, "wse.csl.switch.duplicate", "switch has two else cases");
      otherwise = arm;
    }
  }
  auto run_arm = [&](Node* arm, Operand& out) {
    if (is_statement) {
      Flow f = exec_body(arm->a);
      if (flow) *flow = f;
      out = void_operand();
    } else {
      out = eval(arm->a, hint);
    }
  };
  if (subject.is_known()) {
    for (Node* arm : node->list) {
      for (Node* v : arm->list) {
        Value value = need_known(
            coerce(known_operand(eval_known(v)), subject.type, v->pos, "a case"), v->pos, "a case");
        if (key_of(value) == key_of(subject.value)) {
          Operand out;
          run_arm(arm, out);
          return out;
        }
      }
    }
    if (otherwise) {
      Operand out;
      run_arm(otherwise, out);
      return out;
    }
    fail(pos, "wse.csl.switch.exhaustive",
         cat("no case matches ", show(subject.value), " and there is no else"));
  }
  if (known()) need_known(subject, pos, "the subject of a switch");
  subject.temp = false;
  std::uint16_t s = to_reg(subject, pos);
  auto ty = static_cast<std::uint8_t>(bytecode_type(subject.type));
  std::vector<std::size_t> ends;
  Operand chosen;
  TypeRef type = hint;
  bool all_ended = true;
  std::size_t covered = 0;
  ++frame_->runtime_branches;
  auto body = [&](Node* arm) {
    Flow f = Flow::normal;
    if (is_statement) {
      f = exec_body(arm->a);
    } else {
      Operand v = eval(arm->a, hint);
      if (v.type && v.type->kind != T::noreturn && v.type->kind != T::void_) {
        if (!type) type = v.type;
        v = coerce(v, type, arm->a->pos);
        if (chosen.where == Operand::nothing) chosen = chosen_value(type, arm->pos);
        choose(chosen, v, pos);
      }
    }
    if (f == Flow::normal) {
      all_ended = false;
      ends.push_back(emit_jump(Op::jmp, 0, pos));
    }
  };
  for (Node* arm : node->list) {
    if (arm->has(kElse)) continue;
    std::vector<std::size_t> hits;
    for (Node* v : arm->list) {
      Value value = need_known(coerce(known_operand(eval_known(v)), subject.type, v->pos, "a case"),
                               v->pos, "a case");
      if (!seen.insert(key_of(value)).second)
        fail(v->pos, "wse.csl.switch.duplicate", cat("the case ", show(value), " occurs twice"));
      ++covered;
      std::uint16_t c = to_reg(known_operand(value), pos), t = new_reg(pos);
      emit({Op::eq, ty, t, s, c}, pos);
      hits.push_back(emit_jump(Op::jnz, t, pos));
    }
    std::size_t miss = emit_jump(Op::jmp, 0, pos);
    for (std::size_t h : hits) patch_here(h);
    body(arm);
    patch_here(miss);
  }
  if (otherwise) {
    body(otherwise);
  } else {
    bool exhaustive = (subject.type->kind == T::enum_ && covered == subject.type->members.size()) ||
                      (subject.type->kind == T::bool_ && covered == 2) ||
                      (subject.type->is_int() && subject.type->bits() <= 16 &&
                       covered == std::size_t{1} << subject.type->bits());
    if (!exhaustive)
      fail(pos, "wse.csl.switch.exhaustive",
           cat("the cases do not cover ", text(subject.type), "; add an else case"));
    if (subject.type->kind == T::enum_) {
      emit(Insn::with_imm(Op::trap, 0, 0,
                          string_index("switch on a value that is no member of its enum")),
           pos);
    }
  }
  --frame_->runtime_branches;
  for (std::size_t e : ends) patch_here(e);
  if (flow) *flow = all_ended ? Flow::ended : Flow::normal;
  return chosen.where == Operand::nothing ? void_operand() : chosen;
}

}  // namespace weft::wse::csl
