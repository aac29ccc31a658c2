// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/lookup.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {
namespace {

using namespace ir;

void find_named(const Stmt& s, const std::string& name, std::vector<BlockRef>& out) {
  if (const auto* realize = as<BlockRealizeNode>(s); realize && realize->block->name == name) {
    out.push_back({realize->block->id});
  }
  for (const Stmt& child : children(s)) find_named(child, name, out);
}

void collect_names(const Stmt& s, std::vector<std::string>& out) {
  if (const auto* realize = as<BlockRealizeNode>(s)) out.push_back(realize->block->name);
  for (const Stmt& child : children(s)) collect_names(child, out);
}

std::vector<BlockRef> refs(const std::vector<Leaf>& scope, const std::vector<std::size_t>& which) {
  std::vector<BlockRef> out;
  for (std::size_t i : which) out.push_back({scope[i].block()->id});
  return out;
}

}  // namespace

Verdict GetBlock::transform(const State& s, Outcome<Result>& out) const {
  const auto& functions = s.mod->functions;
  std::string wanted = func_name.empty() ? s.func : func_name;
  if (func_name.empty() && functions.size() == 1) wanted = functions[0].first;
  const PrimFunc f = s.mod->find(wanted);
  if (!f) {
    std::vector<std::string> names;
    for (const auto& [name_, func] : functions) names.push_back(name_);
    Refusal r = refuse(s, "schedule.get_block.function",
                       cat("the module has no function \"", wanted, "\""));
    r.note(cat("functions: ", quoted(names)));
    r.help = did_you_mean(wanted, names);
    return r;
  }
  std::vector<BlockRef> found;
  find_named(f->body, name, found);
  if (found.size() == 1) {
    out.result = found[0];
    return std::nullopt;
  }
  std::vector<std::string> names;
  collect_names(f->body, names);
  if (found.empty()) {
    Refusal r = refuse(s, "schedule.get_block.unknown",
                       cat("function \"", wanted, "\" has no block \"", name, "\""));
    r.note(cat("blocks: ", quoted(names)));
    r.help = did_you_mean(name, names);
    return r;
  }
  Refusal r =
      refuse(s, "schedule.get_block.ambiguous",
             cat("function \"", wanted, "\" has ", found.size(), " blocks named \"", name, "\""));
  r.note(cat("blocks: ", quoted(names)));
  r.repair("walk to it with get_child_blocks, get_producers or get_consumers");
  return r;
}

Verdict GetLoops::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, block, path));
  for (const ForNode* loop : path.loops()) out.result.push_back({loop->var});
  return std::nullopt;
}

Verdict GetChildBlocks::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(std::visit([&](const auto& ref) { return locate(s, ref, path); }, block_or_loop));
  const Stmt body = path.realize() ? path.realize()->block->body : path.target();
  for (const Leaf& leaf : leaves(body)) out.result.push_back({leaf.block()->id});
  return std::nullopt;
}

Verdict GetProducers::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const auto scope = leaves(path.scope()->block->body);
  out.result = refs(scope, producers_of(scope, index_of(scope, path.realize()->block.get())));
  return std::nullopt;
}

Verdict GetConsumers::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const auto scope = leaves(path.scope()->block->body);
  out.result = refs(scope, consumers_of(scope, index_of(scope, path.realize()->block.get())));
  return std::nullopt;
}

Verdict GetOutputBlocks::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, scope_block, path));
  const auto& own = path.realize()->block->alloc_buffers;
  for (const Leaf& leaf : leaves(path.realize()->block->body)) {
    const auto& written = leaf.block()->writes;
    const bool outside = std::any_of(written.begin(), written.end(), [&](const BufferRegion& w) {
      return std::find(own.begin(), own.end(), w.buffer) == own.end();
    });
    if (outside) out.result.push_back({leaf.block()->id});
  }
  return std::nullopt;
}

}  // namespace weft::schedule
