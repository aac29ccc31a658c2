// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/grid.h"

#include <algorithm>
#include <optional>
#include <set>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/rules/elementwise.h"
#include "weft/rules/fallback.h"
#include "weft/rules/gemm_registers.h"
#include "weft/rules/gemm_tensor_core.h"
#include "weft/rules/product_tile.h"
#include "weft/rules/reduce.h"
#include "weft/rules/row.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

struct Asked {
  const Facts& facts;
  const Sizes& sizes;
  std::optional<BlockRef> finish;  // an element-wise block that the rule may schedule with the nest
  bool* inside;                    // whether it did
  const Questions& questions;
};

/// A rule of the table: whether it matches, and its steps, of which one may be refused.
struct Rule {
  std::string_view name;
  bool (*matches)(const Nest& nest, const Facts& facts, bool open);
  void (*apply)(Schedule& sch, const Nest& nest, const Asked& asked);
};

/// Products whose extents tiles do not divide have a rule of their own; other sums that share
/// operands (convolutions) take what tiles there are.
std::optional<RegisterTile> register_tile(const Nest& nest, const Facts& facts, bool open) {
  return match_gemm_registers(nest, facts, open || !match_product_tile(nest, facts));
}

constexpr Rule kRules[] = {
    {"gemm_tensor_core",
     [](const Nest& nest, const Facts& facts, bool) {
       return match_gemm_tensor_core(nest, facts).has_value();
     },
     [](Schedule& sch, const Nest& nest, const Asked& asked) {
       auto match = match_gemm_tensor_core(nest, asked.facts);
       open_gemm_tensor_core(*match, asked.facts, asked.questions);
       schedule_gemm_tensor_core(sch, nest.block, *match);
     }},
    {"elementwise",
     [](const Nest& nest, const Facts& facts, bool) {
       return match_elementwise(nest, facts).has_value();
     },
     [](Schedule& sch, const Nest& nest, const Asked& asked) {
       auto decisions = match_elementwise(nest, asked.facts);
       open_elementwise(*decisions, nest, asked.facts, asked.questions);
       schedule_elementwise(sch, nest, *decisions);
     }},
    {"reduce",
     [](const Nest& nest, const Facts& facts, bool) {
       return match_reduce(nest, facts).has_value();
     },
     [](Schedule& sch, const Nest& nest, const Asked& asked) {
       auto decisions = match_reduce(nest, asked.facts);
       open_reduce(*decisions, nest, asked.facts, asked.questions);
       *asked.inside =
           schedule_reduce(sch, nest, *decisions, asked.facts, asked.sizes, asked.finish);
     }},
    {"gemm_registers",
     [](const Nest& nest, const Facts& facts, bool open) {
       return register_tile(nest, facts, open) || match_product_tile(nest, facts);
     },
     [](Schedule& sch, const Nest& nest, const Asked& asked) {
       auto tile = register_tile(nest, asked.facts, asked.questions.open());
       if (!tile) {
         const auto any = match_product_tile(nest, asked.facts);
         *asked.inside = schedule_product(sch, nest, *any, asked.finish);
         return;
       }
       open_gemm_registers(*tile, nest, asked.facts, asked.questions);
       *asked.inside = schedule_gemm_registers(sch, nest, *tile, asked.facts, asked.finish);
     }},
    {"fallback", [](const Nest&, const Facts&, bool) { return true; },
     [](Schedule& sch, const Nest& nest, const Asked& asked) {
       std::int64_t threads = asked.facts.group();
       asked.questions.ask("threads", threads, {32, 64, 128});
       schedule_fallback(sch, nest.block, threads);
     }},
};

const BlockNode& node_of(const Schedule& sch, BlockRef b) {
  return *schedule::find_block(sch.mod(), b)->realize()->block;
}

bool reduces(const Schedule& sch, BlockRef b) {
  const auto& iters = node_of(sch, b).iters;
  return std::any_of(iters.begin(), iters.end(),
                     [](const IterVar& v) { return v.kind != IterKind::spatial; });
}

/// Into element-wise consumers only: a reduction would compute the value again and again.
void inline_chain(Schedule& sch, BlockRef b) {
  if (reduces(sch, b)) return;
  bool all = true;
  attempt([&] {
    for (BlockRef c : sch.get_consumers(b)) all = all && !reduces(sch, c);
  });
  if (all) attempt([&] { sch.compute_inline(b); });
}

/// The element-wise block that alone reads what a reduction writes; absent where there is none.
std::optional<BlockRef> finishing(const Schedule& sch, BlockRef block) {
  if (!reduces(sch, block)) return std::nullopt;
  const auto path = schedule::find_block(sch.mod(), block);
  const std::vector<schedule::Leaf> scope = schedule::leaves(path->scope()->block->body);
  const auto readers =
      schedule::consumers_of(scope, schedule::index_of(scope, path->realize()->block.get()));
  if (readers.size() != 1) return std::nullopt;
  const BlockRef reader{scope[readers[0]].block()->id};
  return reduces(sch, reader) ? std::nullopt : std::optional(reader);
}

/// The blocks of each statement of the body.
std::vector<std::vector<BlockRef>> nests_of(const Schedule& sch) {
  std::vector<std::vector<BlockRef>> out;
  const auto* root = as<BlockRealizeNode>(sch.func()->body);
  for (const Stmt& s : schedule::statements(root->block->body)) {
    std::vector<BlockRef> blocks;
    for (const schedule::Leaf& leaf : schedule::leaves(s)) blocks.push_back({leaf.block()->id});
    if (!blocks.empty()) out.push_back(std::move(blocks));
  }
  return out;
}

/// A body whose nests are all passes over the same rows becomes one kernel.
bool schedule_as_rows(Schedule& sch, const Facts& facts, std::vector<std::string>* applied) {
  std::vector<BlockRef> blocks;
  for (const std::vector<BlockRef>& nest : nests_of(sch)) {
    if (nest.size() > 1) return false;
    blocks.push_back(nest[0]);
  }
  const auto decisions = match_row(sch, blocks, facts);
  if (!decisions) return false;
  const Schedule before = sch;
  std::string why = "a nest needs other rows than its own";
  bool done = false;
  if (!attempt([&] { done = schedule_row(sch, *decisions); }, &why) || !done) {
    sch = before;
    applied->push_back(cat("row was refused: ", why));
    return false;
  }
  for (BlockRef b : blocks) applied->push_back(cat(node_of(sch, b).name, ": row"));
  return true;
}

/// What a block inside a nest allocates belongs to the thread that runs the block.
PrimFunc keep_in_blocks(const PrimFunc& f) {
  BufferMap map;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* realize = as<BlockRealizeNode>(s);
    if (!realize || realize == as<BlockRealizeNode>(f->body)) return;
    for (const Buffer& b : realize->block->alloc_buffers) {
      if (b->scope != "global") continue;
      auto own = edit(b);
      own->scope = "local";
      map[b.get()] = own;
    }
  });
  if (map.empty()) return f;
  auto out = edit(f);
  out->body = replace_buffers(f->body, map);
  return out;
}

/// A statement that no step could bind runs in one thread.
PrimFunc bind_rest(const PrimFunc& f) {
  const auto* root = as<BlockRealizeNode>(f->body);
  std::vector<Stmt> out;
  bool changed = false;
  for (const Stmt& s : schedule::statements(root->block->body)) {
    bool bound = false;
    for_each_stmt(s, [&](const Stmt& inner) {
      const auto* t = as<ForNode>(inner);
      bound = bound || (t && t->for_kind == ForKind::bound);
    });
    out.push_back(bound ? s
                        : make_for(make_var("one"), make_int(0), make_int(1), s, ForKind::bound,
                                   "threadIdx.x"));
    changed = changed || !bound;
  }
  if (!changed) return f;
  auto copy = edit(root->block);
  copy->body = seq(std::move(out));
  auto g = edit(f);
  g->body = block_realize(root->iter_values, root->predicate, copy);
  return g;
}

/// The rule that is asked for a statement, of those that match; "" where the table decides.
std::string chosen_rule(const Schedule& sch, BlockRef block, const Sizes& sizes, const Facts& facts,
                        const Questions& questions) {
  if (!questions.open()) return "";
  const Nest nest = read_nest(sch, block, sizes);
  std::vector<std::string> names;
  for (const Rule& rule : kRules)
    if (rule.matches(nest, facts, true)) names.emplace_back(rule.name);
  return questions.word("rule", names);
}

NestForms::Notes schedule_nest(const GridStart& start, Schedule& sch, BlockRef block,
                               const Questions& questions) {
  const Facts& facts = start.facts;
  const Sizes& sizes = start.sizes;
  keep_in_nest(sch, block);
  sch.get_loops(block);  // so that the trace knows the loops that rules read from the tree
  const std::string chosen = chosen_rule(sch, block, sizes, facts, questions);
  std::string refused;  // of rules that matched
  for (const Rule& rule : kRules) {
    if (!chosen.empty() && chosen != rule.name) continue;
    std::string why;
    const Nest read = read_nest(sch, block, sizes);
    const std::string name = read.node->name;
    if (!rule.matches(read, facts, questions.open())) continue;
    bool inside = false;
    const Asked asked{facts, sizes, finishing(sch, block), &inside, questions};
    if (questions.open()) {
      rule.apply(sch, read, asked);  // a refusal is the tuner's to hear
    } else {
      const Schedule before = sch;
      if (!attempt([&] { rule.apply(sch, read, asked); }, &why)) {
        refused += cat("; ", rule.name, " was refused: ", why);
        sch = before;
        continue;
      }
    }
    NestForms::Notes out{{cat(name, ": ", rule.name, refused)}, ""};
    if (inside) {
      out.with = node_of(sch, *asked.finish).name;
      out.applied.push_back(cat(out.with, ": with ", name));
    }
    return out;
  }
  return {};
}

}  // namespace

bool is_unscheduled(const PrimFunc& f) {
  if (!as<BlockRealizeNode>(f->body)) return false;
  bool bound = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* t = as<ForNode>(s);
    bound = bound || s->kind == StmtKind::launch || (t && t->for_kind == ForKind::bound);
  });
  return !bound;
}

GridStart::GridStart(const PrimFunc& f, std::shared_ptr<const TargetInfo> machine)
    : facts(*machine), sizes(sizes_of(f)), nests(f, std::move(machine)) {
  nests.set_detail(false);
  const BlockRef root = nests.get_block(as<BlockRealizeNode>(f->body)->block->name);
  for (BlockRef b : nests.get_child_blocks(root)) inline_chain(nests, b);
  Schedule made = nests;
  if (schedule_as_rows(made, facts, &applied)) rows = std::move(made);
}

GridSchedule grid_schedule(const GridStart& start, Choices* choices) {
  GridSchedule out{start.nests, start.applied};
  if (start.rows) {
    if (Questions(choices, "").word("body", {"row", "nests"}) == "row")
      return {*start.rows, start.applied};
    out.applied.clear();
  }
  Schedule& sch = out.schedule;
  std::set<std::string> taken;  // blocks that were scheduled with another
  std::int64_t at = -1;
  for (const std::vector<BlockRef>& nest : nests_of(sch)) {
    ++at;
    // A rule may have taken it into the nest of its producer.
    if (!schedule::find_block(sch.mod(), nest[0])) continue;
    if (nest.size() == 1 && taken.count(node_of(sch, nest[0]).name)) continue;
    const auto steps = [&](Schedule& part, const Questions& questions) {
      if (nest.size() == 1) return schedule_nest(start, part, nest[0], questions);
      schedule_together(part, nest, start.facts);
      return NestForms::Notes();
    };
    const NestForms::Notes notes =
        start.forms->schedule(sch, nest[0], choices, cat("b", at, "."), steps);
    out.applied.insert(out.applied.end(), notes.applied.begin(), notes.applied.end());
    if (!notes.with.empty()) taken.insert(notes.with);
  }
  return out;
}

PrimFunc schedule_for_grid(const PrimFunc& f, std::shared_ptr<const TargetInfo> machine) {
  if (!is_unscheduled(f)) return f;
  const GridSchedule made = grid_schedule(GridStart(f, std::move(machine)));
  const PrimFunc bound = keep_in_blocks(bind_rest(made.schedule.func()));
  auto out = edit(bound);
  out->attrs = with_annotation(out->attrs, kAppliedRules, join(made.applied, "; "));
  return out;
}

}  // namespace weft::rules
