// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/state.h"

#include "weft/base/text.h"
#include "weft/ir/text.h"

namespace weft::schedule {
namespace {

using namespace ir;

void collect_loop_names(const Stmt& s, std::vector<std::string>& out) {
  if (const auto* loop = as<ForNode>(s)) out.push_back(loop->var->name);
  for (const Stmt& child : children(s)) collect_loop_names(child, out);
}

void collect_block_names(const Stmt& s, std::vector<std::string>& out) {
  if (const auto* realize = as<BlockRealizeNode>(s)) out.push_back(realize->block->name);
  for (const Stmt& child : children(s)) collect_block_names(child, out);
}

}  // namespace

Refusal refuse(const State& s, std::string_view code, std::string message, const void* culprit) {
  Refusal r;
  r.code = code;
  r.message = std::move(message);
  if (s.detail && culprit) {
    PrintOptions options;
    options.culprit = culprit;
    options.header = false;
    options.context = 6;
    r.at("program", print(s.mod, options));
  }
  return r;
}

Verdict locate(const State& s, BlockRef block, Path& out) {
  if (auto path = find_block(s.mod, block)) {
    out = std::move(*path);
    return std::nullopt;
  }
  Refusal r = refuse(s, "schedule.block.gone",
                     block.id == 0 ? std::string("the block argument is an empty reference (id 0)")
                                   : cat("block #", block.id,
                                         " is not in the program: a step has removed it, or it is "
                                         "another schedule's"));
  r.note(cat("blocks now: ", quoted(block_names(s.mod))));
  return r;
}

Verdict locate(const State& s, const LoopRef& loop, Path& out) {
  if (auto path = find_loop(s.mod, loop)) {
    out = std::move(*path);
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const auto& [name, f] : s.mod->functions) collect_loop_names(f->body, names);
  Refusal r = refuse(s, "schedule.loop.gone",
                     loop.var ? cat("loop \"", loop.var->name,
                                    "\" is not in the program: a step has replaced it, or it is "
                                    "another schedule's")
                              : cat("the loop argument is an empty reference"));
  r.note(cat("loops now: ", quoted(names)));
  r.repair("ask for the loops again with get_loops");
  return r;
}

Verdict locate_inner(const State& s, BlockRef block, std::string_view step, Path& out) {
  WEFT_TRY(locate(s, block, out));
  if (out.scope()) return std::nullopt;
  Refusal r = refuse(
      s, cat("schedule.", step, ".root"),
      cat(step, " cannot work on the function's root block ", name_of(out.realize()->block.get())));
  r.note(cat("blocks inside it: ", quoted(block_names(s.mod))));
  return r;
}

std::vector<std::string> block_names(const IRModule& m) {
  std::vector<std::string> out;
  for (const auto& [name, f] : m->functions) collect_block_names(f->body, out);
  return out;
}

std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) out.push_back(cat("\"", name, "\""));
  return out.empty() ? "none" : join(out);
}

std::vector<std::string> loop_names(const std::vector<const ForNode*>& loops) {
  std::vector<std::string> out;
  for (const ForNode* loop : loops) out.push_back(loop->var->name);
  return out;
}

std::string name_of(const ForNode* loop) { return cat("\"", loop->var->name, "\""); }
std::string name_of(const BlockNode* block) { return cat("\"", block->name, "\""); }

Verdict check_scope(const State& s, std::string_view step, const std::string& scope) {
  if (s.machine->memory(scope)) return std::nullopt;
  Refusal r = refuse(s, cat("schedule.", step, ".scope"),
                     cat(step, " got the memory scope \"", scope, "\", which no target has"));
  r.note(cat("legal: ", quoted(names_of(s.machine->memories))));
  r.help = did_you_mean(scope, names_of(s.machine->memories));
  return r;
}

}  // namespace weft::schedule
