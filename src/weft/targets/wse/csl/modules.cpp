// SPDX-License-Identifier: Apache-2.0
// Files, module instances and the lazy resolution of module-level names.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "weft/targets/wse/csl/depth.h"
#include "weft/targets/wse/csl/library.h"

namespace weft::wse::csl {
namespace {

constexpr std::size_t kMaxSourceBytes = 16u << 20;

bool read_text(const std::string& path, std::string& out) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) return false;
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  std::ostringstream text;
  text << in.rdbuf();
  out = std::move(text).str();
  return true;
}

}  // namespace

const Source* Analyzer::load(const std::string& path, Pos pos, bool required) {
  auto found = source_by_path_.find(path);
  if (found != source_by_path_.end()) return found->second;
  std::string content;
  bool ok = false;
  if (path.size() > 2 && path.front() == '<') {
    std::string_view inside = std::string_view(path).substr(1, path.size() - 2);
    if (const std::string_view* text = library_text(inside)) {
      content = std::string(*text);
      ok = true;
    }
    for (const std::string& directory : options_.import_paths) {
      if (!ok && options_.read_disk) ok = read_text(cat(directory, "/", inside, ".csl"), content);
    }
  } else {
    auto it = options_.files.find(path);
    if (it != options_.files.end()) {
      content = it->second;
      ok = true;
    } else if (options_.read_disk) {
      ok = read_text(path, content);
    }
  }
  if (!ok) {
    if (!required) return nullptr;
    if (path.front() == '<') {
      if (path == "<kernels/fft/fft3d>" || path == "<kernels/fft/get_params>")
        fail(pos, "wse.csl.module.library",
             cat(path, " is not there: its parameters are in no public document"),
             "<kernels/fft/fft3d_layout> lays the whole transform out");
      fail(pos, "wse.csl.module.library", cat("there is no library module ", path),
           did_you_mean(path, library_names()));
    }
    fail(pos, "wse.csl.file.missing", cat("cannot read \"", path, "\""));
  }
  if (content.size() > kMaxSourceBytes)
    fail(pos, "wse.csl.file.size", cat("\"", path, "\" is larger than 16 MiB"));
  if (sources_.size() >= 4000)
    fail(pos, "wse.csl.file.count", "more than 4,000 files are imported");
  sources_.emplace_back();
  Source& s = sources_.back();
  s.id = static_cast<int>(sources_.size()) - 1;
  s.path = path;
  s.text = std::move(content);
  s.index_lines();
  return source_by_path_[path] = &s;
}

Node* Analyzer::parse_file(const Source* source) {
  auto found = asts_.find(source);
  if (found != asts_.end()) return found->second.root;
  int before = diagnostics_.error_count();
  Ast& ast = asts_[source] = parse(*source, names_, diagnostics_);
  if (diagnostics_.error_count() > before) throw Abandon{};
  return ast.root;
}

std::string Analyzer::resolve_import(const std::string& spec, Pos pos) {
  if (spec.empty()) fail(pos, "wse.csl.module.name", "the name of a module cannot be empty");
  if (spec.front() == '<') return spec;
  if (spec.front() == '/') return spec;
  const std::string& from = sources_[pos.file].path;
  std::size_t slash = from.rfind('/');
  std::string path = slash == std::string::npos ? spec : cat(from.substr(0, slash + 1), spec);
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  for (const std::string& candidate : {normal, cat(normal, ".csl")}) {
    if (options_.files.contains(candidate)) return candidate;
    std::error_code ec;
    if (options_.read_disk && std::filesystem::is_regular_file(candidate, ec)) return candidate;
  }
  for (const std::string& directory : options_.import_paths) {
    std::error_code ec;
    std::string candidate = cat(directory, "/", spec);
    if (options_.read_disk && std::filesystem::is_regular_file(candidate, ec)) return candidate;
  }
  // Older programs name files of sub-folders from the root file's folder.
  const std::string root = std::filesystem::path(sources_.front().path).parent_path().string();
  const std::string beside_root = root.empty() ? spec : cat(root, "/", spec);
  if (options_.files.contains(beside_root)) return beside_root;
  std::error_code ec;
  if (options_.read_disk && std::filesystem::is_regular_file(beside_root, ec)) return beside_root;
  return normal;
}

bool Analyzer::mentions_import(const Node* node) const {
  if (!node) return false;
  if (node->kind == Kind::builtin && name(node->name) == "import_module") return true;
  if (node->kind == Kind::if_ || node->kind == Kind::switch_ || node->kind == Kind::switch_arm) {
    for (const Node* n : node->list) {
      if (mentions_import(n)) return true;
    }
    return mentions_import(node->a) || mentions_import(node->b) || mentions_import(node->c);
  }
  return false;
}

Module* Analyzer::instantiate(const Source* source, const Value* params, Pos pos, bool is_root) {
  DepthGuard guard(*this, pos);
  Node* root = parse_file(source);
  auto& modules = program_ ? program_->modules : layout_->modules;
  auto& decls = program_ ? program_->decls : layout_->decls;
  if (modules.size() > 20000)
    fail(pos, "wse.csl.module.count", "more than 20,000 modules are instantiated");
  modules.emplace_back();
  Module* m = &modules.back();
  m->source = source;
  m->root = root;
  m->is_root = is_root;
  m->imported = pos;
  m->serial = static_cast<int>(modules.size()) - 1;
  std::string path = source->path;
  if (path.size() > 2 && path.front() == '<') path = path.substr(1, path.size() - 2);
  std::size_t slash = path.rfind('/');
  if (slash != std::string::npos) path = path.substr(slash + 1);
  if (path.size() > 4 && path.ends_with(".csl")) path = path.substr(0, path.size() - 4);
  m->label = path;
  for (Node* item : root->list) {
    if (item->kind != Kind::var_decl && item->kind != Kind::param_decl &&
        item->kind != Kind::fn_decl)
      continue;
    decls.emplace_back();
    Decl* d = &decls.back();
    d->name = item->name;
    d->node = item;
    d->module = m;
    auto [it, fresh] = m->decls.emplace(item->name, d);
    if (!fresh) {
      Diagnostic& diag =
          diagnostics_.add(Diagnostic::Level::error, item->pos, "wse.csl.name.duplicate",
                           cat("\"", name(item->name), "\" is declared twice in this file"));
      diag.notes.push_back({"the first declaration is here", it->second->node->pos});
    }
  }
  // Modules of the library say by a param of ours which structs they may be given.
  const bool whole = m->decls.contains(names_.intern("weft_others"));
  const bool opens = m->decls.contains(names_.intern("weft_structs"));
  auto bind = [&](auto& self, const Value& all, bool nested) -> void {
    for (std::size_t k = 0; k < all.type->fields.size(); ++k) {
      Symbol field = all.type->fields[k].name;
      auto it = m->decls.find(field);
      if (it == m->decls.end() || it->second->node->kind != Kind::param_decl) {
        const Value& inner = aggregate(all).at(static_cast<std::int64_t>(k));
        if (!nested && opens && inner.type->kind == T::struct_) self(self, inner, true);
        if (field && !whole) {
          warn(pos, "wse.csl.param.unknown",
               cat("\"", m->label, "\" has no param \"", name(field), "\"; the value is not used"));
        }
        continue;
      }
      it->second->bound = true;
      it->second->value = aggregate(all).at(static_cast<std::int64_t>(k));
    }
  };
  if (params && params->type->kind == T::struct_) bind(bind, *params, false);
  return m;
}

/// Evaluates what a module does by being instantiated: imports, exported variables, comptime
/// blocks.
void Analyzer::run_module(Module* m, bool layout) {
  Frame frame;
  frame.module = m;
  frame.parent = frame_;
  Frame* saved = frame_;
  frame_ = &frame;
  auto guarded = [&](auto&& action) {
    try {
      action();
    } catch (const Abandon&) {
      frame_ = &frame;
      frame.locals.clear();
      frame.loops.clear();
    } catch (...) {
      frame_ = saved;
      throw;
    }
  };
  for (Node* item : m->root->list) {
    if (item->kind == Kind::var_decl && item->has(kConst) && mentions_import(item->b)) {
      guarded([&] { resolve(m->decls[item->name], item->pos); });
    }
  }
  for (Node* item : m->root->list) {
    if (item->kind == Kind::param_decl && m->decls[item->name]->bound) {
      guarded([&] { resolve(m->decls[item->name], item->pos); });
    }
    if (item->kind == Kind::comptime_block && (program_ || !m->is_root)) {
      guarded([&] {
        exec(item->a);
        frame.locals.clear();
        frame.loops.clear();
      });
    }
    if (item->kind == Kind::layout_block && layout && m->is_root) {
      guarded([&] {
        exec(item->a);
        frame.locals.clear();
        frame.loops.clear();
      });
    }
    if (program_ && item->has(kExport)) {
      guarded([&] {
        Decl* d = m->decls[item->name];
        resolve(d, item->pos);
        if (item->kind == Kind::var_decl && d->global) {
          d->global->exported = true;
          address(d->global, item->pos);
        } else if (item->kind == Kind::fn_decl) {
          plain_instance(d, item->pos);
        }
      });
    }
  }
  frame_ = saved;
}

Decl* Analyzer::find_decl(Module* m, Symbol symbol) {
  if (!m) return nullptr;  // a value of the type of modules that is no module: undefined
  auto it = m->decls.find(symbol);
  return it == m->decls.end() ? nullptr : it->second;
}

void Analyzer::resolve(Decl* d, Pos use) {
  if (d->state == Decl::ready) return;
  if (d->state == Decl::failed) throw Abandon{};
  if (d->state == Decl::busy) {
    fail(use, "wse.csl.name.cycle", cat("the value of \"", name(d->name), "\" depends on itself"));
  }
  DepthGuard guard(*this, use);
  Node* node = d->node;
  Frame frame;
  frame.module = d->module;
  frame.parent = nullptr;
  Frame* saved = frame_;
  frame_ = &frame;
  d->state = Decl::busy;
  try {
    switch (node->kind) {
      case Kind::fn_decl: {
        d->value.type = types_.get(T::function);
        // An extern function that a module of this program exports is that function.
        Decl* target = node->has(kExtern) ? find_export(d) : nullptr;
        d->value.p = target && target->node->b ? target : d;
        break;
      }
      case Kind::param_decl: {
        TypeRef type = node->a ? eval_type(node->a) : nullptr;
        Operand v;
        if (d->bound) {
          v = known_operand(d->value);
          if (!type && v.type->kind == T::struct_ && !d->module->source->path.starts_with("<"))
            result_.like_v2 = true;  // SDK 1.4 writes comptime_struct
        } else if (node->b) {
          v = known_operand(eval_known(node->b, type));
        } else {
          Diagnostic& diag = diagnostics_.add(
              Diagnostic::Level::error, use, "wse.csl.param.missing",
              cat("param \"", name(d->name), "\" of \"", d->module->label, "\" has no value"));
          diag.notes.push_back({"it is declared here, without a default", node->pos});
          if (!d->module->is_root)
            diag.notes.push_back({"the module is imported here", d->module->imported});
          throw Abandon{};
        }
        // SdkLayout gives programs of SDK 2 their colors as numbers.
        if (type && type->is_int() && d->bound && !options_.tiles.empty() &&
            v.type->kind == T::color) {
          v = known_operand(make_int(types_.comptime_int, v.value.i));
          result_.like_v2 = true;
        }
        if (type) v = coerce(v, type, node->pos, cat("param \"", name(d->name), "\""));
        d->value = need_known(v, node->pos, "a param");
        break;
      }
      default: {  // var_decl
        if (node->has(kExtern)) {
          resolve_extern(d, use);
          break;
        }
        TypeRef type = node->a ? eval_type(node->a) : nullptr;
        auto& globals = program_ ? program_->globals : layout_->globals;
        if (node->has(kConst)) {
          if (!node->b) {
            fail(node->pos, "wse.csl.const.value",
                 cat("const \"", name(d->name), "\" needs a value"));
          }
          Operand v = known_operand(eval_known(node->b, type));
          if (type) v = coerce(v, type, node->b->pos, cat("const \"", name(d->name), "\""));
          d->value = need_known(v, node->pos, "a module-level const");
          if (d->value.type->kind == T::type)
            types_.give_name(static_cast<TypeRef>(d->value.p), name(d->name));
        } else {
          Value init;
          if (node->b) {
            Operand v = known_operand(eval_known(node->b, type));
            if (type) v = coerce(v, type, node->b->pos, cat("var \"", name(d->name), "\""));
            init = need_known(v, node->pos, "the initial value of a module-level var");
            if (init.type->kind == T::comptime_int || init.type->kind == T::comptime_float) {
              fail(node->pos, "wse.csl.var.type",
                   cat("var \"", name(d->name), "\" needs a type: ", text(init.type),
                       " exists only at compile time"));
            }
            if (!type) type = init.type;
          } else if (!type) {
            fail(node->pos, "wse.csl.var.type",
                 cat("var \"", name(d->name), "\" needs a type or a value"));
          }
          d->value = init;
        }
        if (!node->has(kConst) || d->value.type->runtime) {
          globals.emplace_back();
          Global* g = &globals.back();
          g->name = d->name;
          g->type = type ? type : d->value.type;
          if (node->has(kConst)) g->type = d->value.type;
          g->init = d->value;
          g->is_const = node->has(kConst);
          if (node->has(kExport) && narrow(g->type)) refuse_narrow(g->type, node->pos);
          g->module = d->module;
          g->pos = node->pos;
          if (node->c) {
            Int128 align = eval_known(node->c).i;
            if (align < 1 || align > 4096 || (align & (align - 1)) != 0) {
              fail(node->c->pos, "wse.csl.var.align",
                   cat("align takes a power of two up to 4096, found ", to_text(align)));
            }
            g->align = static_cast<std::uint32_t>(align);
          }
          if (node->d) g->link_name = link_symbol(d);
          if (!node->list.empty()) g->section = link_section(node->list[0]);
          d->global = g;
        }
        break;
      }
    }
    d->state = Decl::ready;
  } catch (...) {
    d->state = Decl::failed;
    frame_ = saved;
    throw;
  }
  frame_ = saved;
}

Place Analyzer::decl_place(Decl* d, Pos use) {
  resolve(d, use);
  if (d->global) {
    Place p;
    p.kind = Place::memory;
    p.type = d->global->type;
    p.is_const = d->global->is_const;
    p.operand.where = Operand::memory;
    p.operand.global = d->global;
    p.operand.type = p.type;
    p.operand.is_const = p.is_const;
    return p;
  }
  return place_of_operand(known_operand(d->value));
}

}  // namespace weft::wse::csl
