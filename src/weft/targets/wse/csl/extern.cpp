// SPDX-License-Identifier: Apache-2.0
// Declarations with `extern`: what another module of the program exports.
#include <utility>

#include "weft/targets/wse/csl/analyzer.h"

namespace weft::wse::csl {

Symbol Analyzer::link_symbol(const Decl* d) {
  if (!d->node->d) return d->name;
  Value link = eval_known(d->node->d);
  if (link.type->kind != T::comptime_string)
    fail(d->node->d->pos, "wse.csl.var.linkname",
         cat("linkname takes a string, found ", text(link.type)));
  return static_cast<Symbol>(link.i);
}

std::int32_t Analyzer::link_section(Node* node) {
  const Value section = eval_known(node);
  if (section.type->kind != T::comptime_string)
    fail(node->pos, "wse.csl.var.linksection",
         cat("linksection takes a string, found ", text(section.type)));
  const std::string& wanted = name(static_cast<Symbol>(section.i));
  for (std::size_t k = 0; k < options_.sections.size(); ++k)
    if (options_.sections[k].first == wanted) return static_cast<std::int32_t>(k);
  return -1;
}

/// What a module of this program exports under the name of an `extern` declaration, or null.
Decl* Analyzer::find_export(const Decl* d) {
  const Symbol wanted = link_symbol(d);
  auto& modules = program_ ? program_->modules : layout_->modules;
  for (Module& m : modules) {
    for (Node* item : m.root->list) {
      if (!item->has(kExport) || item->kind != d->node->kind) continue;
      Decl* target = m.decls[item->name];
      Module* here = std::exchange(frame_->module, &m);
      const Symbol found = link_symbol(target);
      frame_->module = here;
      if (found == wanted) return target;
    }
  }
  return nullptr;
}

void Analyzer::resolve_extern(Decl* d, Pos use) {
  Node* node = d->node;
  if (node->b)
    fail(node->b->pos, "wse.csl.extern.value",
         cat("\"", name(d->name), "\" is extern and cannot have a value here"),
         "the value stands in the export declaration");
  if (!node->a)
    fail(node->pos, "wse.csl.extern.type", cat("extern \"", name(d->name), "\" needs a type"));
  TypeRef type = eval_type(node->a);
  Decl* target = find_export(d);
  if (!target)
    fail(use, "wse.csl.extern.undefined",
         cat("\"", name(d->name), "\" is extern, and no module of this program exports it"),
         "define it with export in this program or in a module that it imports");
  resolve(target, use);
  TypeRef found = target->global ? target->global->type : target->value.type;
  if (found != type) {
    Diagnostic& diag =
        diagnostics_.add(Diagnostic::Level::error, node->pos, "wse.csl.extern.mismatch",
                         cat("extern \"", name(d->name), "\" has type ", text(type),
                             ", the exported one ", text(found)));
    diag.notes.push_back({"the export is here", target->node->pos});
    throw Abandon{};
  }
  d->value = target->value;
  d->global = target->global;
}

}  // namespace weft::wse::csl
