// SPDX-License-Identifier: Apache-2.0
// Built-ins of the layout: rectangle, tiles, routes, exported names; and the run of a layout.
#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

Operand Analyzer::bi_get_rectangle(Node* node, TypeRef) {
  if (!layout_->has_rectangle)
    fail(node->pos, "wse.csl.layout.rectangle", "@set_rectangle has not been called yet");
  auto pair = [&](int a, int b, const char* x, const char* y) {
    return make_struct({{names_.intern(x), types_.u16}, {names_.intern(y), types_.u16}},
                       {make_int(types_.u16, a), make_int(types_.u16, b)});
  };
  Value fabric = pair(options_.fabric_width, options_.fabric_height, "width", "height");
  Value offsets = pair(options_.offset_x, options_.offset_y, "width", "height");
  Value w = make_int(types_.u16, layout_->width), h = make_int(types_.u16, layout_->height);
  return known_operand(make_struct({{names_.intern("width"), types_.u16},
                                    {names_.intern("height"), types_.u16},
                                    {names_.intern("fabric"), fabric.type},
                                    {names_.intern("offsets"), offsets.type}},
                                   {w, h, fabric, offsets}));
}

Operand Analyzer::bi_set_rectangle(Node* node, TypeRef) {
  need_layout(node->pos, "@set_rectangle");
  Int128 w = int_arg(node, 0, "the width"), h = int_arg(node, 1, "the height");
  if (layout_->has_rectangle)
    fail(node->pos, "wse.csl.layout.rectangle", "@set_rectangle is called twice");
  if (w < 1 || h < 1 || w > 2000 || h > 2000) {
    fail(node->pos, "wse.csl.layout.rectangle",
         cat("a rectangle of ", to_text(w), " x ", to_text(h),
             " PEs is not possible; each side is 1..2000"));
  }
  if (options_.fabric_width > 0 && options_.fabric_height > 0) {
    if (options_.memcpy && (options_.offset_x < 4 || options_.offset_y < 1))
      fail(node->pos, "wse.csl.layout.fabric",
           cat("with --memcpy the rectangle begins at 4,1 or further on, and --fabric-offsets is ",
               options_.offset_x, ",", options_.offset_y));
    // Infrastructure columns: 3 to the west (inside the offset) and 2 to the east with memcpy, and
    // the halo.
    int east = options_.memcpy ? 3 : 0, south = options_.memcpy ? 1 : 0;
    int need_w = options_.offset_x + static_cast<int>(w) + east,
        need_h = options_.offset_y + static_cast<int>(h) + south;
    if (need_w > options_.fabric_width || need_h > options_.fabric_height) {
      fail(node->pos, "wse.csl.layout.fabric",
           cat("the rectangle of ", to_text(w), " x ", to_text(h), " PEs at offset ",
               options_.offset_x, ",", options_.offset_y, " needs a fabric of at least ", need_w,
               " x ", need_h, ", but --fabric-dims gives ", options_.fabric_width, " x ",
               options_.fabric_height));
    }
  }
  layout_->has_rectangle = true;
  layout_->width = static_cast<int>(w);
  layout_->height = static_cast<int>(h);
  std::size_t count = static_cast<std::size_t>(w * h);
  layout_->tile_program.assign(count, 0);
  layout_->tile_routes.assign(count, 0);
  return void_operand();
}

/// @set_rectangle, unless the program has called it; then the sizes must agree.
Operand Analyzer::bi_weft_rectangle(Node* node, TypeRef hint) {
  if (!layout_->has_rectangle) return bi_set_rectangle(node, hint);
  Int128 w = int_arg(node, 0, "the width"), h = int_arg(node, 1, "the height");
  if (w != layout_->width || h != layout_->height)
    fail(node->pos, "wse.csl.layout.rectangle",
         cat("the rectangle is ", layout_->width, " x ", layout_->height, ", but ", to_text(w),
             " x ", to_text(h), " is needed here"));
  return void_operand();
}

namespace {
std::string at(Int128 x, Int128 y) { return cat("(", to_text(x), ", ", to_text(y), ")"); }
}  // namespace

Operand Analyzer::bi_set_tile_code(Node* node, TypeRef) {
  need_layout(node->pos, "@set_tile_code");
  if (!layout_->has_rectangle)
    fail(node->pos, "wse.csl.layout.rectangle", "@set_rectangle must come before @set_tile_code");
  Int128 x = int_arg(node, 0, "x"), y = int_arg(node, 1, "y");
  if (x < 0 || y < 0 || x >= layout_->width || y >= layout_->height) {
    fail(node->pos, "wse.csl.layout.position",
         cat("PE ", at(x, y), " lies outside the rectangle of ", layout_->width, " x ",
             layout_->height));
  }
  const Source* source = nullptr;
  Value params;
  std::size_t next = 2;
  if (node->list.size() > 2) {
    Value v = known_arg(node, 2);
    if (v.type->kind == T::comptime_string) {
      source =
          load(resolve_import(name(static_cast<Symbol>(v.i)), node->pos), node->list[2]->pos, true);
      next = 3;
    }
  }
  if (!source) source = &sources_[node->pos.file];
  if (node->list.size() > next) {
    params = known_arg(node, next);
    if (params.type->kind != T::struct_)
      fail(node->list[next]->pos, "wse.csl.type.mismatch",
           cat("the params of a tile are a struct, found ", text(params.type)));
  }
  std::size_t index = static_cast<std::size_t>(y) * static_cast<std::size_t>(layout_->width) +
                      static_cast<std::size_t>(x);
  if (layout_->tile_program[index])
    fail(node->pos, "wse.csl.layout.tile_twice", cat("PE ", at(x, y), " has code already"));
  std::string key = cat(source->id, "|", key_of(params));
  auto [it, fresh] = layout_->by_key.emplace(key, static_cast<int>(layout_->programs.size()));
  if (fresh) layout_->programs.push_back({source, params, key, node->pos});
  layout_->tile_program[index] = static_cast<std::uint32_t>(it->second) + 1;
  return void_operand();
}

Operand Analyzer::bi_set_color_config(Node* node, TypeRef) {
  need_layout(node->pos, "@set_color_config");
  if (!layout_->has_rectangle)
    fail(node->pos, "wse.csl.layout.rectangle",
         "@set_rectangle must come before @set_color_config");
  Int128 x = int_arg(node, 0, "x"), y = int_arg(node, 1, "y");
  if (x < 0 || y < 0 || x >= layout_->width || y >= layout_->height) {
    fail(node->pos, "wse.csl.layout.position",
         cat("PE ", at(x, y), " lies outside the rectangle of ", layout_->width, " x ",
             layout_->height));
  }
  Value c = known_arg(node, 2), config = known_arg(node, 3);
  int color = color_of(c, node->list[2]->pos);
  warn_reserved(node->pos, "color", color, {21, 22, 23});
  std::size_t index = static_cast<std::size_t>(y) * static_cast<std::size_t>(layout_->width) +
                      static_cast<std::size_t>(x);
  std::uint32_t old = layout_->tile_routes[index];
  if (layout_->route_sets.empty()) layout_->route_sets.emplace_back();
  auto [step, fresh] =
      layout_->route_step.emplace(std::make_pair(old, cat(color, "|", key_of(config))), 0u);
  if (fresh) {
    ColorRoute route;
    route.color = static_cast<std::uint8_t>(color);
    try {
      route_from(config, route.route, color, node->pos);
    } catch (...) {
      layout_->route_step.erase(step);
      throw;
    }
    RouteSet set = layout_->route_sets[old];
    for (const ColorRoute& r : set) {
      if (r.color == route.color) {
        layout_->route_step.erase(step);
        fail(node->pos, "wse.csl.route.twice",
             cat("color ", color, " of PE ", at(x, y), " is configured twice"));
      }
    }
    set.push_back(route);
    step->second = static_cast<std::uint32_t>(layout_->route_sets.size());
    layout_->route_sets.push_back(std::move(set));
  }
  layout_->tile_routes[index] = step->second;
  return void_operand();
}

Operand Analyzer::bi_set_local_color_config(Node* node, TypeRef) {
  need_program(node->pos, "@set_local_color_config");
  if (!known())
    fail(node->pos, "wse.csl.builtin.context",
         "@set_local_color_config belongs into a comptime block");
  Value c = known_arg(node, 0), config = known_arg(node, 1);
  ColorRoute route;
  route.color = static_cast<std::uint8_t>(color_of(c, node->list[0]->pos));
  warn_reserved(node->pos, "color", route.color, {21, 22, 23});
  route_from(config, route.route, route.color, node->pos);
  if (!program_->configured_colors.emplace(route.color, node->pos).second) {
    fail(node->pos, "wse.csl.route.twice", cat("color ", route.color, " is configured twice"));
  }
  program_->out.routes.push_back(route);
  return void_operand();
}

Operand Analyzer::bi_export_name(Node* node, TypeRef) {
  need_layout(node->pos, "@export_name");
  std::string n = string_arg(node, 0);
  TypeRef t = type_arg(node, 1);
  Export e;
  e.name = n;
  for (const Export& old : layout_->exports) {
    if (old.name == n)
      fail(node->pos, "wse.csl.export.twice", cat("\"", n, "\" is exported twice"));
  }
  if (t->kind == T::fn) {
    e.kind = Export::func;
    if (t->fields.size() > 15)
      fail(node->pos, "wse.csl.export.type", "an exported function takes at most 15 arguments");
    for (const FieldType& f : t->fields) {
      if (!f.type->is_scalar() || f.type->size > 4 || narrow(f.type))
        fail(node->pos, "wse.csl.export.type",
             cat("an exported function cannot take ", text(f.type)));
      e.inputs.push_back(bytecode_type(f.type));
    }
    if (node->list.size() > 2)
      fail(node->list[2]->pos, "wse.csl.export.type", "a function has no mutability");
  } else if (t->kind == T::color) {
    e.kind = Export::stream;
  } else {
    e.kind = Export::var;
    TypeRef elem = t->kind == T::pointer ? t->elem : t;
    if (elem->kind == T::array) elem = elem->elem;
    if (narrow(elem)) refuse_narrow(t, node->list[1]->pos);
    if (!elem->is_scalar() && !(elem->kind == T::struct_ && elem->runtime && elem->size > 0))
      fail(node->list[1]->pos, "wse.csl.export.type",
           cat("a symbol of type ", text(t), " cannot be exported"));
    // The host moves structs word by word.
    const std::size_t unit = elem->is_scalar() ? elem->size : elem->size % 4 == 0 ? 4 : 2;
    e.elem_bytes = static_cast<std::uint8_t>(unit);
    if (node->list.size() > 2) {
      Value m = known_arg(node, 2);
      e.mutable_ = m.i != 0;
    }
  }
  e.type = text(t);
  layout_->exports.push_back(e);
  layout_->export_types.push_back(t);
  return void_operand();
}

/// What identifies a symbol: its function, its place in memory, or what a constant pointer points
/// to.
const void* Analyzer::exported_symbol(const Place& p, Pos pos) {
  if (p.kind == Place::memory && p.operand.global) return p.operand.global;
  if (p.type->kind != T::pointer && p.type->kind != T::function && p.type->kind != T::fn)
    return nullptr;
  Operand v = load(p, pos);
  if (!v.is_known()) return nullptr;
  return v.value.obj
             ? static_cast<const void*>(static_cast<CellPointer*>(v.value.obj.get())->cell.get())
             : v.value.p;
}

Operand Analyzer::bi_export_symbol(Node* node, TypeRef) {
  need_program(node->pos, "@export_symbol");
  if (!known())
    fail(node->pos, "wse.csl.builtin.context", "@export_symbol belongs into a comptime block");
  Place p = place(node->list[0]);
  std::string n;
  Pos pos = node->pos;
  if (node->list.size() > 1) n = string_arg(node, 1);
  else if (node->list[0]->kind == Kind::ident || node->list[0]->kind == Kind::field)
    n = name(node->list[0]->name);
  else
    fail(pos, "wse.csl.export.name", "this symbol needs a name: @export_symbol(value, \"name\")");
  int id = -1;
  for (std::size_t k = 0; k < layout_->exports.size(); ++k) {
    if (layout_->exports[k].name == n) id = static_cast<int>(k);
  }
  if (id < 0) {
    std::vector<std::string> names;
    for (const Export& e : layout_->exports) names.push_back(e.name);
    if (!options_.tiles.empty()) return void_operand();
    fail(pos, "wse.csl.export.unknown", cat("the layout exports no name \"", n, "\""),
         names.empty() ? "add @export_name to the layout block" : cat("it exports ", join(names)));
  }
  const Export& e = layout_->exports[static_cast<std::size_t>(id)];
  TypeRef wanted = layout_->export_types[static_cast<std::size_t>(id)];
  ExportBinding binding;
  binding.id = static_cast<std::uint16_t>(id);
  for (const ExportBinding& old : program_->out.exports) {
    if (old.id == binding.id)
      fail(pos, "wse.csl.export.twice", cat("\"", n, "\" is exported twice by this program"));
  }
  if (e.kind == Export::func) {
    Value f = need_known(load(p, pos), pos, "an exported function");
    if ((f.type->kind != T::function && f.type->kind != T::fn) || !f.p)
      fail(pos, "wse.csl.export.type",
           cat("\"", n, "\" is exported as ", e.type, ", but this is ", text(f.type)));
    Decl* d = static_cast<Decl*>(const_cast<void*>(f.p));
    FunctionInstance* fn = plain_instance(d, pos);
    if (fn->type != wanted)
      fail(pos, "wse.csl.export.type",
           cat("\"", n, "\" is exported as ", e.type, ", but \"", name(d->name), "\" has type ",
               text(fn->type)));
    binding.function = static_cast<std::uint16_t>(fn->index);
    program_->export_places[id] = p;
    program_->export_ids.emplace(d, id);
  } else {
    if (const void* symbol = exported_symbol(p, pos)) program_->export_ids.emplace(symbol, id);
    bool var_pointer = p.kind == Place::memory && p.type->kind == T::pointer;
    Global* g = nullptr;
    if (var_pointer && p.operand.global && p.operand.base == Operand::absolute) {
      g = p.operand.global;
      Value probe;
      probe.type = p.type;
      TypeRef a = p.type, w = wanted;
      bool same = a->elem == w->elem && a->many == w->many;
      bool decay = w->kind == T::pointer && w->many && !a->many && a->elem->kind == T::array &&
                   a->elem->elem == w->elem;
      if (!same && !decay)
        fail(
            pos, "wse.csl.export.type",
            cat("\"", n, "\" is exported as ", e.type, ", but the symbol has type ", text(p.type)));
    } else if (p.kind == Place::memory && p.operand.global) {
      // An array or scalar itself: the host reaches it through a pointer made here.
      TypeRef elem = p.type->kind == T::array ? p.type->elem : p.type;
      TypeRef w = wanted->kind == T::pointer ? wanted->elem : wanted;
      if (elem != w && p.type != w)
        fail(
            pos, "wse.csl.export.type",
            cat("\"", n, "\" is exported as ", e.type, ", but the symbol has type ", text(p.type)));
      Value pointer;
      pointer.type = types_.pointer(elem, p.is_const, true);
      pointer.p = p.operand.global;
      pointer.i = p.operand.offset;
      g = anonymous_global(pointer, true, pos);
    } else {
      Value v = need_known(load(p, pos), pos, "an exported symbol");
      if (v.type->kind != T::pointer)
        fail(pos, "wse.csl.export.type",
             cat("\"", n, "\" is exported as ", e.type, ", but this is ", text(v.type)));
      g = anonymous_global(v, true, pos);
    }
    binding.address = static_cast<std::uint16_t>(address(g, pos));
    Operand pointer_variable;
    pointer_variable.where = Operand::memory;
    pointer_variable.type = g->type;
    pointer_variable.global = g;
    program_->export_places[id] = place_of_operand(pointer_variable);
  }
  program_->out.exports.push_back(binding);
  return void_operand();
}

Operand Analyzer::bi_has_exported_tensors(Node*, TypeRef) {
  bool any = false;
  for (const Export& e : layout_->exports) any = any || e.kind == Export::var;
  return known_operand(make_bool(any));
}
Operand Analyzer::bi_get_symbol_id(Node* node, TypeRef) {
  if (layout_ && program_ && node->list[0]->kind != Kind::string) {
    Place p = place(node->list[0]);
    if (p.type->kind != T::comptime_string) {
      auto id = program_->export_ids.find(exported_symbol(p, node->pos));
      if (id != program_->export_ids.end())
        return known_operand(make_int(types_.u16, static_cast<Int128>(id->second)));
      fail(node->pos, "wse.csl.export.unbound", "this program does not export that symbol",
           "add @export_symbol to a comptime block");
    }
  }
  std::string n = string_arg(node, 0);
  for (std::size_t k = 0; k < layout_->exports.size(); ++k) {
    if (layout_->exports[k].name == n)
      return known_operand(make_int(types_.u16, static_cast<Int128>(k)));
  }
  fail(node->pos, "wse.csl.export.unknown", cat("the layout exports no name \"", n, "\""));
}
// ---- the run ----

void Analyzer::run_layout() {
  layout_ = std::make_unique<LayoutState>();
  layout_->route_sets.emplace_back();
  Layout& out = result_.layout;
  Pos nowhere{0, 0xffff, 1};
  std::vector<Value> tile_params;
  if (!options_.tiles.empty()) {
    layout_->has_rectangle = true;
    layout_->width = options_.width;
    layout_->height = options_.height;
    if (static_cast<std::size_t>(options_.width) * static_cast<std::size_t>(options_.height) !=
        options_.tiles.size()) {
      fail(nowhere, "wse.csl.layout.tiles", "the number of tiles is not width times height");
    }
    for (const TileSpec& tile : options_.tiles) {
      if (tile.file.empty()) {
        layout_->tile_program.push_back(0);
        layout_->tile_routes.push_back(0);
        continue;
      }
      const Source* source = load(tile.file, nowhere, true);
      std::vector<FieldType> fields;
      std::vector<Value> items;
      for (auto& [n, v] : tile.params) {
        fields.push_back({names_.intern(n), types_.comptime_int});
        items.push_back(make_int(types_.comptime_int, v));
      }
      for (auto& [n, v] : tile.colors) {
        fields.push_back({names_.intern(n), types_.get(T::color)});
        items.push_back(make_int(types_.get(T::color), v));
      }
      Value params = make_struct(std::move(fields), std::move(items));
      std::string key = cat(source->id, "|", key_of(params));
      auto [it, fresh] = layout_->by_key.emplace(key, static_cast<int>(layout_->programs.size()));
      if (fresh) layout_->programs.push_back({source, params, key, nowhere});
      layout_->tile_program.push_back(static_cast<std::uint32_t>(it->second) + 1);
      std::uint32_t routes = 0;
      if (!tile.routes.empty()) {
        std::string route_key;
        for (const ColorRoute& r : tile.routes) {
          route_key += cat(r.color, ":");
          route_key.append(reinterpret_cast<const char*>(&r.route), sizeof r.route);
        }
        auto [set, added] = layout_->route_set_by_key.emplace(
            route_key, static_cast<std::uint32_t>(layout_->route_sets.size()));
        if (added) layout_->route_sets.push_back(tile.routes);
        routes = set->second;
      }
      layout_->tile_routes.push_back(routes);
    }
  } else {
    const Source* source = load(options_.root, nowhere, true);
    std::vector<FieldType> fields;
    std::vector<Value> items;
    for (auto& [n, v] : options_.params) {
      fields.push_back({names_.intern(n), types_.comptime_int});
      items.push_back(make_int(types_.comptime_int, v));
    }
    for (auto& [n, v] : options_.colors) {
      fields.push_back({names_.intern(n), types_.get(T::color)});
      items.push_back(make_int(types_.get(T::color), v));
    }
    Value params = make_struct(std::move(fields), std::move(items));
    Module* m = instantiate(source, &params, {0, static_cast<std::uint16_t>(source->id), 1}, true);
    bool has_layout = false;
    for (Node* n : m->root->list) has_layout = has_layout || n->kind == Kind::layout_block;
    if (!has_layout)
      fail({0, static_cast<std::uint16_t>(source->id), 1}, "wse.csl.layout.none",
           cat("\"", source->path, "\" has no layout block"));
    run_module(m, true);
    if (diagnostics_.error_count() > 0) return;
    if (!layout_->has_rectangle)
      fail(m->root->pos, "wse.csl.layout.rectangle",
           "the layout block does not call @set_rectangle");
  }
  for (std::size_t k = 0; k < layout_->tile_program.size(); ++k) {
    if (!layout_->tile_program[k] && options_.tiles.empty()) {
      std::size_t missing = 0;
      for (std::uint32_t t : layout_->tile_program) missing += t == 0;
      Pos pos{0, 0, 1};
      fail(pos, "wse.csl.layout.tile_missing",
           cat("PE ",
               at(static_cast<Int128>(k) % layout_->width, static_cast<Int128>(k) / layout_->width),
               " has no code",
               missing > 1 ? cat(" (nor have ", missing - 1, " others)") : std::string()),
           "every PE of the rectangle needs @set_tile_code");
    }
  }
  out.arch = options_.arch;
  out.width = layout_->width;
  out.height = layout_->height;
  out.fabric_width = options_.fabric_width ? options_.fabric_width : layout_->width;
  out.fabric_height = options_.fabric_height ? options_.fabric_height : layout_->height;
  out.offset_x = options_.offset_x;
  out.offset_y = options_.offset_y;
  out.channels = options_.channels;
  out.memcpy = options_.memcpy;
  for (auto& [n, v] : options_.params) out.params.push_back({n, std::to_string(v)});
  for (auto& [n, v] : options_.colors) {
    out.params.push_back({n, std::to_string(v)});
    out.colors.push_back({n, std::to_string(v)});
  }
  out.exports = layout_->exports;
  for (std::size_t k = 0; k < layout_->programs.size(); ++k) {
    compile_program(k);
    WEFT_CHECK(!program_->broken || diagnostics_.error_count() > 0,
               "a program failed without a diagnostic");
    out.programs.push_back(std::move(program_->out));
    program_.reset();
    frame_ = nullptr;
  }
  report_unprepared();
  out.route_sets = layout_->route_sets;
  for (std::size_t k = 0; k < layout_->tile_program.size(); ++k) {
    out.tiles.push_back({layout_->tile_program[k] ? layout_->tile_program[k] - 1 : kNoProgram,
                         layout_->tile_routes[k]});
  }
}

}  // namespace weft::wse::csl
