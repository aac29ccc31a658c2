// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/host.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "weft/base/integers.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/rules/grid.h"
#include "weft/rules/host_product.h"
#include "weft/rules/nest.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

// Vectors of partial sums of a row: as many additions are in flight as a unit of four cycles takes.
constexpr std::int64_t kRowVectors = 4;
// Elements so far apart are vectors of neighbours, of which some lanes are taken.
constexpr std::int64_t kNearSteps = 4;

/// So many vectors side by side: a compiler makes a power of two of other numbers.
std::int64_t vectors_of(std::int64_t most) {
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::clamp<std::int64_t>(most, 1, kRowVectors))));
}

constexpr std::string_view kWords[] = {"none", "host_map", "host_rows", "host_tile",
                                       "host_product"};
enum class Way { none, map, rows, tile, product };
std::string word_of(Way way) { return std::string(kWords[static_cast<std::size_t>(way)]); }

/// Whether threads are worth waking for a nest.
bool is_long(const Nest& nest) { return nest.results > kHostParallelWork / nest.terms; }

/// Numbers of vectors side by side that a tuner may try.
void ask_vectors(const Questions& questions, std::int64_t& value, std::int64_t most) {
  questions.ask("vectors", value, powers_up_to(std::clamp<std::int64_t>(most, 1, 2 * kRowVectors)));
}

struct HostAsked {
  const TargetInfo& machine;
  const Sizes& sizes;
  Questions questions;  // whose answers replace the rules' decisions
};

/// Whether all that moves with a loop moves by a few elements: vectors of neighbours hold it.
bool is_near(const NestLoop& l) {
  bool any = false;
  for (std::size_t a = 0; a < l.moves.size(); ++a) {
    if (!l.moves[a]) continue;
    if (l.steps[a] < 1 || l.steps[a] > kNearSteps) return false;
    any = true;
  }
  return any;
}

/// Whether all that moves with a loop lies side by side.
bool is_beside(const NestLoop& l) { return is_near(l) && l.every; }

/// Results that lie side by side, or nearly, wherever they are read, those that are stored so
/// first.
std::optional<std::size_t> columns_of(const Nest& nest, const TargetInfo& machine) {
  for (std::size_t k = nest.spatial.size(); k-- > 0;) {
    const NestLoop& l = nest.spatial[k];
    if (2 * l.extent >= host_lanes(nest, machine) && l.extent > 1 && is_near(l)) return k;
  }
  return std::nullopt;
}

/// Loops that pass over neighbours one after the other, up to and with one of them.
struct Run {
  std::size_t first = 0, last = 0;
  std::int64_t terms = 0;
};

/// The innermost loops of an element-wise block that pass over neighbours in all that is read and
/// written.
Run elements_of(const Nest& nest) {
  const std::vector<NestLoop>& loops = nest.spatial;
  Run run{loops.size() - 1, loops.size() - 1, loops.back().extent};
  const auto goes_on = [&](const NestLoop& outer) {
    if (!outer.constant) return false;
    for (std::size_t a = 0; a < outer.moves.size(); ++a) {
      const NestLoop& inner = loops[run.last];
      if (inner.moves[a] ? outer.steps[a] != inner.steps[a] * run.terms : outer.moves[a])
        return false;
    }
    return true;
  };
  while (loops[run.last].constant && run.first > 0 && goes_on(loops[run.first - 1]))
    run.terms *= loops[--run.first].extent;
  return run;
}

/// The run along which elements lie side by side.
std::optional<Run> terms_of(const Nest& nest, const TargetInfo& machine) {
  const std::vector<NestLoop>& loops = nest.reduction;
  for (std::size_t k = loops.size(); k-- > 0;) {
    if (loops[k].step != 1) continue;
    Run run{k, k, loops[k].extent};
    // A whole array, or a plane of one, is one row.
    while (loops[k].constant && run.first > 0 && loops[run.first].moves.size() == 1 &&
           loops[run.first - 1].constant && loops[run.first - 1].step == run.terms)
      run.terms *= loops[--run.first].extent;
    if (run.terms >= 2 * host_lanes(nest, machine)) return run;
  }
  return std::nullopt;
}

/// Whether a block reads at places that it looks up or computes from numbers: the compiler asks for
/// them at every element.
bool looks_up(const BlockNode* node) {
  bool found = false;
  for_each_expr(node->body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l) return;
    for (const Expr& index : l->indices)
      for_each_expr(index, [&](const Expr& x) {
        const auto* c = as<CastNode>(x);
        found = found || x->kind == ExprKind::load || (c && c->value->dtype.is_float());
      });
  });
  return found;
}

/// Whether a block calls functions of numbers, which vectors of the compiler's own do not have.
bool calls_functions(const BlockNode* node) {
  bool found = false;
  for_each_expr(node->body, [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    found = found || (c && c->op != "if_then_else" && c->op != "likely" && c->dtype.is_float());
  });
  return found;
}

/// Rules that fit, the best first.
std::vector<Way> ways_of(const Nest& nest, const TargetInfo& machine) {
  if (nest.mixed) return {};
  const std::int64_t lanes = host_lanes(nest, machine);
  if (lanes < 2) return {};
  if (nest.reduction.empty()) {
    const NestLoop* last = nest.spatial.empty() ? nullptr : &nest.spatial.back();
    const bool along = last && nest.node->writes.size() == 1 && elements_of(nest).terms >= lanes &&
                       last->steps.back() == 1 &&
                       (is_near(*last) || looks_up(nest.node) || calls_functions(nest.node));
    return along ? std::vector{Way::map} : std::vector<Way>{};
  }
  // Steps below take the loops of results to be the outer ones.
  for (std::size_t i = 0; i < nest.node->iters.size(); ++i)
    if ((nest.node->iters[i].kind == IterKind::spatial) != (i < nest.spatial.size())) return {};
  const auto pattern = match_reduction(nest.node);
  if (!pattern) return {};
  std::vector<Way> out;
  if (pattern->updates.size() == 1) {
    if (match_host_product(nest, machine)) out.push_back(Way::product);
    if (columns_of(nest, machine)) out.push_back(Way::tile);
  }
  if (terms_of(nest, machine)) out.push_back(Way::rows);
  return out;
}

/// A function with vectors of its own gets none from the compiler.
void schedule_map(Schedule& sch, const Nest& nest, const HostAsked& asked) {
  const std::int64_t lanes = asked.machine.limit(limits::kVectorBytes, 16) / nest.widest_bytes;
  const NestLoop& last = nest.spatial.back();
  const Run run = elements_of(nest);
  const bool joined = last.extent < lanes && run.first < run.last;  // lines shorter than a vector
  const std::int64_t extent = joined ? run.terms : last.extent;
  std::int64_t vectors = vectors_of(extent / lanes);
  const bool has_outer = joined ? run.first > 0 : nest.spatial.size() > 1;
  bool parallel = has_outer && is_long(nest);
  // A buffer of the function's own has room for whole vectors, where its readers' lines do not move
  // far apart: by default as many at once as divide them.
  const auto whole = [&](Schedule& s, std::int64_t width) {
    s.vectorize(s.split(last.loop, {std::nullopt, factor(width)}, true, false, "round_up")[1]);
  };
  const auto has_room = [&](std::int64_t width) {
    if (joined || !last.constant || extent % width == 0 ||
        4 * ceil_div(extent, width) * width > 5 * extent)
      return false;
    Schedule trial = sch;
    return attempt([&] { whole(trial, width); });
  };
  const bool divides = !joined && last.constant && extent % lanes == 0;
  if (extent % (lanes * vectors)) {
    const std::int64_t least = ceil_div(extent, lanes);
    // Vectors at once share the place of the last ones, which repeats elements: functions are
    // computed again for at most one element of eight, and loads and stores alone gain nothing.
    const bool whole_ones = divides || has_room(lanes), computed = calls_functions(nest.node);
    const auto fits = [&] {
      if (whole_ones) return least % vectors == 0;
      return computed && 8 * ceil_div(least, vectors) * vectors <= 9 * least;
    };
    while (vectors > 1 && !fits()) vectors /= 2;
  }
  ask_vectors(asked.questions, vectors, extent / lanes);
  if (has_outer) asked.questions.ask("parallel", parallel);
  const std::int64_t wide = lanes * vectors;
  const bool room = has_room(wide);
  if (parallel) sch.parallel(nest.spatial[0].loop);
  if (room) return whole(sch, wide);
  LoopRef inner = last.loop;
  if (joined) {
    std::vector<LoopRef> loops;
    for (std::size_t l = run.first; l <= run.last; ++l) loops.push_back(nest.spatial[l].loop);
    inner = sch.fuse(loops);
  }
  if (last.constant && extent == wide) return sch.vectorize(inner);
  // The last vector repeats elements of the one before it, unless that hides from readers what is
  // written.
  const auto cut = [&](Schedule& s, const char* tail) {
    return s.split(inner, {std::nullopt, factor(wide)}, true, false, tail)[1];
  };
  const bool repeats = (joined ? extent : last.multiple) % wide &&
                       sch.get_consumers(nest.block).empty() && attempt([&] {
                         Schedule trial = sch;
                         trial.vectorize(cut(trial, "shift_inwards"));
                       });
  sch.vectorize(cut(sch, repeats ? "shift_inwards" : "guard"));
}

/// Whether a block reads each element of a buffer where it writes its own, one for one.
bool reads_in_place(const BlockNode* node, const BufferNode* buffer) {
  bool in_place = true;
  for_each_expr(node->body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || l->buffer.get() != buffer) return;
    in_place = in_place && l->indices.size() == node->iters.size();
    for (std::size_t i = 0; in_place && i < l->indices.size(); ++i)
      in_place = l->indices[i].get() == node->iters[i].var.get() ||
                 (l->indices[i]->kind == ExprKind::int_imm &&
                  is_const_int_value(node->iters[i].dom.extent, 1));
  });
  return in_place;
}

/// Stages of a chain become one: an element-wise block that others read in place, where that
/// computes no function twice. Whether any did.
bool join_maps(Schedule& sch, const BlockRef& root) {
  bool joined = false;
  std::vector<BlockRef> blocks = sch.get_child_blocks(root);
  for (auto b = blocks.rbegin(); b != blocks.rend(); ++b) {
    const BlockNode* node = schedule::find_block(sch.mod(), *b)->realize()->block.get();
    const std::vector<BlockRef> consumers = sch.get_consumers(*b);
    if (node->init || node->writes.size() != 1 || consumers.empty() ||
        (consumers.size() > 1 && calls_functions(node)))
      continue;
    const bool fit = std::all_of(consumers.begin(), consumers.end(), [&](const BlockRef& c) {
      const BlockNode* reader = schedule::find_block(sch.mod(), c)->realize()->block.get();
      return !reader->init && reads_in_place(reader, node->writes[0].buffer.get());
    });
    if (fit && attempt([&] { sch.compute_inline(*b); })) joined = true;
  }
  return joined;
}

/// Loops around a block that feed iterators of one kind, known to the trace.
std::vector<LoopRef> known_loops(Schedule& sch, const BlockRef& block, IterKind kind) {
  sch.get_loops(block);
  return loops_of(sch, block, kind);
}

/// Joins `width` partial results of a block pairwise: vectors of half the width each time, where
/// one after the other would wait for itself. Returns the blocks in their order.
std::vector<BlockRef> halves_of(Schedule& sch, const BlockRef& block, std::int64_t width) {
  std::vector<BlockRef> out;
  for (; width > 2 && width % 2 == 0; width /= 2) {
    const LoopRef lane = known_loops(sch, block, IterKind::reduce)[0];
    out.push_back(sch.rfactor(sch.split(lane, {std::nullopt, factor(width / 2)})[1], 0));
  }
  return out;
}

/// Such a block has its vector innermost and its terms side by side.
void schedule_half(Schedule& sch, const BlockRef& half) {
  const std::vector<LoopRef> all = sch.get_loops(half);
  const LoopRef vector = all[all.size() - 2], pair = all.back();
  sch.reorder({pair, vector});
  const BlockRef init = sch.decompose_reduction(half, pair);
  sch.unroll(pair);
  sch.vectorize(vector);
  sch.vectorize(sch.get_loops(init).back());
}

/// The loops of a run as one iterator of the block.
void merge_terms(Schedule& sch, const Nest& nest, const Run& run) {
  const std::size_t first = nest.spatial.size() + run.first, last = nest.spatial.size() + run.last;
  std::string from, to, merged;
  for (std::size_t i = 0; i < nest.node->iters.size(); ++i) {
    from += cat(i ? ", x" : "x", i);
    if (i < first || i > last) {
      to += cat(to.empty() ? "x" : ", x", i);
      continue;
    }
    merged = i == first ? cat("x", i)
                        : cat("(", merged, ") * ", nest.reduction[i - nest.spatial.size()].extent,
                              " + x", i);
    if (i == last) to += cat(to.empty() ? "" : ", ", merged);
  }
  sch.transform_block_layout(nest.block,
                             schedule::IndexMap::parse(cat("lambda ", from, ": (", to, ")")));
}

/// Partial sums in the lanes of some vectors, which are joined when the row has ended.
void schedule_rows(Schedule& sch, const Nest& nest, const HostAsked& asked) {
  const BlockRef block = nest.block;
  const Run run = *terms_of(nest, asked.machine);
  const auto values = static_cast<std::int64_t>(nest.node->writes.size());
  const NestLoop& terms = nest.reduction[run.last];
  const std::int64_t lanes = host_lanes(nest, asked.machine);
  if (run.first < run.last && terms.multiple % lanes != 0) {
    merge_terms(sch, nest, run);
    sch.get_loops(block);
    return schedule_rows(sch, read_nest(sch, block, asked.sizes), asked);
  }
  std::int64_t vectors = vectors_of(terms.extent / (2 * lanes));
  bool parallel = !nest.spatial.empty() && is_long(nest);
  ask_vectors(asked.questions, vectors, terms.extent / (2 * lanes));  // two steps at least
  if (!nest.spatial.empty()) asked.questions.ask("parallel", parallel);
  const std::int64_t wide = lanes * vectors;
  LoopRef k = terms.loop;
  std::size_t which = run.last;
  if (run.first < run.last && run.terms % wide == 0) {
    std::vector<LoopRef> loops;
    for (std::size_t r = run.first; r <= run.last; ++r) loops.push_back(nest.reduction[r].loop);
    k = sch.fuse(loops);
    which = run.first;
  } else if (terms.multiple % wide) {
    sch.pad_reduction(k, wide);
  }
  const LoopRef lane = sch.split(k, {std::nullopt, factor(wide)})[1];
  const BlockRef partial = sch.rfactor(lane, 0);
  const std::vector<BlockRef> halves = halves_of(sch, block, wide);
  std::vector<LoopRef> spatial = known_loops(sch, block, IterKind::spatial);
  if (spatial.empty()) spatial.push_back(sch.add_unit_loop(sch.get_loops(block)[0]));
  const auto beside = [&](const BlockRef& shares) {
    sch.compute_at(shares, spatial.back());
    for (std::int64_t value = 0; value < values; ++value) sch.set_scope(shares, value, "local");
  };
  for (auto half = halves.rbegin(); half != halves.rend(); ++half) beside(*half);
  beside(partial);
  const std::vector<LoopRef> steps = known_loops(sch, partial, IterKind::reduce);
  const std::vector<LoopRef> all = sch.get_loops(partial);
  const LoopRef vector = all[spatial.size()];
  std::vector<LoopRef> order = steps;
  // Where compute_at has made the loops again, iterators of one value have none.
  const auto reduction = nest.reduction.begin();
  const bool without_units = steps.size() < nest.reduction.size() - (run.last - which);
  const auto at =
      static_cast<std::ptrdiff_t>(which) -
      (without_units ? std::count_if(reduction, reduction + static_cast<std::ptrdiff_t>(which),
                                     [](const NestLoop& l) { return l.constant && l.extent == 1; })
                     : 0);
  std::rotate(order.begin() + at, order.begin() + at + 1, order.end());
  order.push_back(vector);
  sch.reorder(order);
  const BlockRef init = sch.decompose_reduction(partial, order[0]);
  sch.vectorize(vector);
  sch.vectorize(sch.get_loops(init).back());
  for (const BlockRef& half : halves) schedule_half(sch, half);
  if (parallel) sch.parallel(spatial[0]);
}

/// Lanes of a tile whose rest is computed element by element: up to `most`, so that vectors, each
/// for four elements, and elements are fewest.
std::int64_t guarded_width(std::int64_t extent, std::int64_t lanes, std::int64_t most) {
  const auto cost = [&](std::int64_t w) {
    return extent / w * std::max<std::int64_t>(w / lanes, 1) * 4 + extent % w;
  };
  std::int64_t best = most;
  for (std::int64_t w = most; w >= 4; w /= 2)
    if (best > extent || cost(w) < cost(best)) best = w;
  return best;
}

// Sums in flight hide that each addition waits for the one before it.
constexpr std::int64_t kTileVectors = 8, kUnrolledTerms = 16;

/// Rows of a tile beside its vectors: those of the loop inside of which the columns lie.
struct TileRows {
  std::size_t loop = 0;
  std::int64_t rows = 1;
};

TileRows tile_rows(const Nest& nest, std::size_t column, std::int64_t vectors) {
  TileRows out;
  for (std::size_t k = nest.spatial.size(); k-- > 0;) {
    const NestLoop& l = nest.spatial[k];
    if (k == column || !l.constant || l.extent < 2) continue;
    out.loop = k;
    const std::int64_t most = std::min(l.extent, std::max<std::int64_t>(kTileVectors / vectors, 1));
    out.rows = most;
    for (std::int64_t rows = most; rows > most / 2; --rows) {
      if (l.extent % rows) continue;
      out.rows = rows;
      break;
    }
    return out;
  }
  return out;
}

/// A few vectors of results stay in registers while the terms pass.
void schedule_tile(Schedule& sch, const Nest& nest, const HostAsked& asked) {
  const BlockRef block = nest.block;
  const std::size_t results = nest.spatial.size(), column = *columns_of(nest, asked.machine);
  const std::int64_t lanes = host_lanes(nest, asked.machine);
  const std::int64_t extent = nest.spatial[column].extent;
  std::int64_t vectors = vectors_of(extent / lanes);
  bool parallel = is_long(nest);
  ask_vectors(asked.questions, vectors, extent / lanes);
  asked.questions.ask("parallel", parallel);
  std::int64_t width = lanes * vectors;
  // Lanes beyond the end add zeros that nobody stores: loads of neighbours are masked, unless
  // their places are looked up.
  const bool masked = is_beside(nest.spatial[column]) && !looks_up(nest.node);
  const BlockRef store = sch.cache_write(block, 0, "local");
  lay_out_results(sch, block, column, column);
  const std::vector<LoopRef> loops = sch.get_loops(block);
  const bool whole =
      nest.spatial[column].multiple % width == 0 || !masked || !attempt([&] {
        Schedule trial = sch;
        trial.split(loops[column], {std::nullopt, factor(width)}, true, false, "round_up");
      });
  if (whole) width = guarded_width(extent, lanes, width);
  const auto wide = sch.split(loops[column], {std::nullopt, factor(width)}, true, false,
                              whole ? "guard" : "round_up");
  TileRows tile = looks_up(nest.node) ? TileRows{} : tile_rows(nest, column, vectors);
  asked.questions.ask("rows", tile.rows, powers_up_to(tile.rows));
  std::vector<LoopRef> order;
  LoopRef row;
  for (std::size_t i = 0; i < results; ++i) {
    if (i == column) continue;
    if (i != tile.loop || tile.rows == 1) {
      order.push_back(loops[i]);
      continue;
    }
    const auto cut = sch.split(loops[i], {std::nullopt, factor(tile.rows)});
    order.push_back(cut[0]);
    row = cut[1];
  }
  order.push_back(wide[0]);
  const std::size_t around = order.size();
  order.insert(order.end(), loops.begin() + static_cast<std::ptrdiff_t>(results), loops.end());
  if (row.var) order.push_back(row);
  order.push_back(wide[1]);
  sch.reorder(order);
  sch.reverse_compute_at(store, wide[0], true);
  const BlockRef init = sch.decompose_reduction(block, loops[results]);
  for (const BlockRef& b : {block, init}) {
    const std::vector<LoopRef> all = sch.get_loops(b);
    if (row.var) sch.unroll(all[all.size() - 2]);
    sch.vectorize(all.back());
  }
  // The terms of a small window: rows share what they read.
  const bool small = row.var && nest.terms <= kUnrolledTerms &&
                     std::all_of(nest.reduction.begin(), nest.reduction.end(),
                                 [](const NestLoop& l) { return l.constant; });
  for (std::size_t i = results; small && i < loops.size(); ++i) sch.unroll(loops[i]);
  const std::vector<LoopRef> stored = sch.get_loops(store);
  const bool last = column + 1 == results;
  for (std::size_t i = around; i + (last ? 1 : 0) < stored.size(); ++i) sch.unroll(stored[i]);
  if (last) sch.vectorize(stored.back());
  if (parallel) sch.parallel(order[0]);
}

void schedule_as(Schedule& sch, const BlockRef& block, Way way, const HostAsked& asked) {
  if (way == Way::none) return;
  sch.get_loops(block);  // so that the trace knows the loops that rules read from the tree
  const Nest nest = read_nest(sch, block, asked.sizes);
  if (way == Way::map) return schedule_map(sch, nest, asked);
  if (way == Way::rows) return schedule_rows(sch, nest, asked);
  if (way == Way::tile) return schedule_tile(sch, nest, asked);
  HostProduct tile = *match_host_product(nest, asked.machine);
  open_host_product(tile, nest, asked.machine, asked.questions);
  for (const BlockRef& before : schedule_host_product(sch, nest, tile)) {
    sch.get_loops(before);
    const Nest part = read_nest(sch, before, asked.sizes);
    for (const Way each : ways_of(part, asked.machine)) {
      const Schedule untouched = sch;
      if (attempt([&] { schedule_as(sch, before, each, {asked.machine, asked.sizes, {}}); })) break;
      sch = untouched;
    }
  }
}

/// The first of the ways that is not refused.
bool schedule_nest(Schedule& sch, BlockRef block, const HostAsked& asked,
                   std::vector<std::string>* applied) {
  attempt([&] { cut_into_digits(sch, block); });
  const Nest nest = read_nest(sch, block, asked.sizes);
  const std::string name = nest.node->name;
  std::string refused;
  for (const Way way : ways_of(nest, asked.machine)) {
    const Schedule before = sch;
    std::string why;
    if (attempt([&] { schedule_as(sch, block, way, asked); }, &why)) {
      applied->push_back(cat(name, ": ", word_of(way), refused));
      return true;
    }
    sch = before;
    refused += cat("; ", word_of(way), " was refused: ", why);
  }
  if (!refused.empty()) applied->push_back(cat(name, ": none", refused));
  return false;
}

/// Whether a program is more than loops that the compiler makes vectors of.
bool needs_schedule(const Schedule& sch, const std::vector<BlockRef>& blocks, const Sizes& sizes) {
  return std::any_of(blocks.begin(), blocks.end(), [&](BlockRef b) {
    const Nest nest = read_nest(sch, b, sizes);
    return !nest.reduction.empty() || calls_functions(nest.node) || looks_up(nest.node);
  });
}

BlockRef root_of(Schedule& sch) {
  return sch.get_block(as<BlockRealizeNode>(sch.func()->body)->block->name);
}

}  // namespace

bool is_plain(const PrimFunc& f) {
  const auto* root = as<BlockRealizeNode>(f->body);
  if (!root || !root->block->annotations.empty()) return false;
  for (const Stmt& s : schedule::statements(root->block->body)) {
    Stmt at = s;
    std::vector<const ForNode*> loops;
    while (const auto* l = as<ForNode>(at)) {
      if (l->for_kind != ForKind::serial || !l->annotations.empty()) return false;
      loops.push_back(l);
      at = l->body;
    }
    const auto* realize = as<BlockRealizeNode>(at);
    // That a reducer may take its values in any order is part of the program.
    const auto is_schedule = [](const auto& note) { return note.first != kCommutative; };
    if (!realize ||
        std::any_of(realize->block->annotations.begin(), realize->block->annotations.end(),
                    is_schedule) ||
        (realize->predicate && !is_const_int_value(realize->predicate, 1)) ||
        realize->iter_values.size() != loops.size())
      return false;
    for (std::size_t i = 0; i < loops.size(); ++i)
      if (realize->iter_values[i].get() != loops[i]->var.get()) return false;
  }
  return true;
}

PrimFunc schedule_for_host(const PrimFunc& f, const TargetInfo& machine) {
  if (!is_plain(f)) return f;
  Schedule sch(f);
  sch.set_detail(false);
  const Sizes sizes = sizes_of(f);
  std::vector<std::string> applied;
  const BlockRef root = root_of(sch);
  if (join_maps(sch, root)) applied.push_back("stages of maps were joined");
  const std::vector<BlockRef> blocks = sch.get_child_blocks(root);
  const HostAsked asked{machine, sizes, {}};
  if (needs_schedule(sch, blocks, sizes))
    for (const BlockRef& b : blocks) schedule_nest(sch, b, asked, &applied);
  if (applied.empty()) return f;
  auto out = edit(sch.func());
  out->attrs = with_annotation(out->attrs, kAppliedRules, join(applied, "; "));
  return out;
}

HostStart::HostStart(const PrimFunc& f, TargetInfo table)
    : machine(std::move(table)), sizes(sizes_of(f)), stages(f) {
  stages.set_detail(false);
  const BlockRef root = root_of(stages);
  Schedule chains = stages;
  if (join_maps(chains, root)) joined = std::move(chains);
  for (Schedule* body : {joined ? &*joined : nullptr, &stages}) {
    if (!body) continue;
    const std::vector<BlockRef> blocks = body->get_child_blocks(root);
    const bool needed = needs_schedule(*body, blocks, sizes);
    schedule::Accesses accesses;
    for (const BlockRef& b : blocks) {
      Schedule cut = schedule::Part(*body, b, accesses).begin(*body);
      attempt([&] { cut_into_digits(cut, b); });
      const Nest nest = read_nest(cut, b, sizes);
      std::vector<std::string> words;
      for (const Way way : ways_of(nest, machine)) {
        Schedule trial = cut;
        if (attempt([&] { schedule_as(trial, b, way, HostAsked{machine, sizes, {}}); }))
          words.push_back(word_of(way));
      }
      words.insert(needed ? words.end() : words.begin(), word_of(Way::none));
      legal[body == &stages].push_back(std::move(words));
    }
  }
}

Schedule host_schedule(const HostStart& start, Choices& choices) {
  std::int64_t join = start.joined.has_value();
  if (start.joined) Questions(&choices, "").ask("join", join, {1, 0});
  Schedule sch = join ? *start.joined : start.stages;
  std::size_t at = 0;
  for (const BlockRef& b : sch.get_child_blocks(root_of(sch))) {
    const std::size_t nest = at++;
    const auto steps = [&](Schedule& part, const Questions& questions) {
      const std::string word = questions.word("rule", start.legal[!join][nest]);
      const auto way = static_cast<Way>(std::find(std::begin(kWords), std::end(kWords), word) -
                                        std::begin(kWords));
      if (way != Way::none) attempt([&] { cut_into_digits(part, b); });
      schedule_as(part, b, way, HostAsked{start.machine, start.sizes, questions});
      return NestForms::Notes();
    };
    start.forms->schedule(sch, b, &choices, cat("b", nest, "."), steps);
  }
  return sch;
}

}  // namespace weft::rules
