// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/host_product.h"

#include <algorithm>
#include <bit>
#include <set>

#include "weft/base/integers.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/visit.h"
#include "weft/rules/host_dot.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

// What a processor with vectors of 32 bytes does in a clock, and the clocks of what surrounds a
// tile. Two multiply-adds or two loads; four clocks until a sum can be added to; a tile begins and
// ends; an element is copied into a panel, alone or in a vector, or into a longer buffer, stored in
// a vector, stored alone;
// a line that is not next to the one before comes from the second cache; a vector of narrow numbers
// joins a sum.
constexpr double kIssue = 2, kLatency = 4, kTile = 14, kPackElement = 1.2, kPackBeside = 0.3,
                 kPadElement = 0.8, kStoreVector = 1.5, kStoreElement = 2.5, kLine = 6,
                 kSumTerm = 3;
constexpr double kFirstCache = 24576, kSecondRate = 20;  // bytes; bytes in a clock
constexpr std::int64_t kPanelBytes = 1 << 18, kMostPanel = 4;

/// The loads of what joins the result, in the body's order.
std::vector<const LoadNode*> loads_of(const BlockNode* node) {
  std::vector<const LoadNode*> out;
  const auto pattern = match_reduction(node);
  if (!pattern || pattern->updates.size() != 1) return out;
  for_each_expr(pattern->rest[0], [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) out.push_back(l);
  });
  return out;
}

/// Positions of the loads that differ; empty where one lies in an index, or in memory of its own.
std::vector<std::size_t> operands_of(const Nest& nest, const std::vector<const LoadNode*>& loads) {
  std::vector<std::size_t> out;
  if (nest.reduction.empty() || nest.reduction.back().moves.size() != loads.size()) return out;
  for (std::size_t k = 0; k < loads.size(); ++k) {
    bool nested = loads[k]->buffer->scope != "global";
    for (const Expr& index : loads[k]->indices)
      for_each_expr(index, [&](const Expr& e) { nested = nested || e->kind == ExprKind::load; });
    if (nested) return {};
    const bool seen = std::any_of(out.begin(), out.end(), [&](std::size_t other) {
      const LoadNode* l = loads[other];
      if (l->buffer.get() != loads[k]->buffer.get()) return false;
      for (std::size_t d = 0; d < l->indices.size(); ++d)
        if (!structural_equal(l->indices[d], loads[k]->indices[d])) return false;
      return true;
    });
    if (!seen) out.push_back(k);
  }
  return out;
}

/// Which iterators a condition of the block's value asks for: their lanes would differ.
std::set<const VarNode*> asked_iterators(const BlockNode* node) {
  std::set<const VarNode*> out;
  const auto pattern = match_reduction(node);
  for_each_expr(pattern->rest[0], [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    const Expr condition = c && c->op == "if_then_else" ? c->args[0] : Expr();
    if (!condition) return;
    for (const VarNode* v : used_vars(condition)) out.insert(v);
  });
  return out;
}

/// Whether each index is one iterator or a constant, and each iterator one index.
bool is_plain_access(const LoadNode* l) {
  std::set<const void*> seen;
  for (const Expr& e : l->indices)
    if (e->kind != ExprKind::int_imm && (!as<VarNode>(e) || !seen.insert(e.get()).second))
      return false;
  return true;
}

/// Whether an operand's lines along the terms fill the first cache evenly, and a tile's fit.
bool odd_lines(const Nest& nest, const HostProduct& t) {
  const NestLoop& term = nest.reduction.back();
  return term.moves[t.operand] && term.step * nest.widest_bytes % 256 != 0 &&
         nest.terms * std::max<std::int64_t>(t.vectors * t.lanes * nest.widest_bytes, 64) <=
             static_cast<std::int64_t>(kFirstCache) * 4 / 3;
}

struct Costs {
  const Nest& nest;
  double terms, results;

  double elements(std::size_t operand) const {
    double n = 1;
    for (const auto* loops : {&nest.spatial, &nest.reduction})
      for (const NestLoop& l : *loops)
        if (l.moves[operand]) n *= static_cast<double>(l.extent);
    return n;
  }
  /// Results that differ in what they read of an operand.
  double sums(std::size_t operand) const {
    double n = 1;
    for (const NestLoop& l : nest.spatial)
      if (l.moves[operand]) n *= static_cast<double>(l.extent);
    return n;
  }
  /// `plain`: the columns' operand can be packed; `across`: operands that move with the columns.
  double cycles(const HostProduct& t, bool plain, std::int64_t across) const {
    const double v = static_cast<double>(t.vectors), r = static_cast<double>(t.rows);
    const NestLoop &column = nest.spatial[t.column], &row = nest.spatial[t.row];
    const double width = v * static_cast<double>(t.lanes);
    const std::int64_t tiles_across = ceil_div(column.extent, t.vectors * t.lanes);
    const std::int64_t tiles_down = t.row == t.column ? 1 : ceil_div(row.extent, t.rows);
    const double down = t.row == t.column ? 1 : static_cast<double>(row.extent);
    const double tiles = results / static_cast<double>(column.extent) / down *
                         static_cast<double>(tiles_across * tiles_down);
    const double bytes = width * (t.held ? t.held->bytes() : nest.widest_bytes);
    const double loads = r + v * static_cast<double>(across);
    const auto joined = static_cast<double>(t.terms);
    double term = std::max({r * v / kIssue, loads / kIssue, kLatency});
    if (terms * bytes > kFirstCache) term = std::max(term, joined * bytes / kSecondRate);
    const bool last = t.column + 1 == nest.spatial.size();
    double out = tiles * (terms / joined * (term + 0.2) + kTile);
    out += results * (last ? kStoreVector / static_cast<double>(t.lanes) : kStoreElement);
    const bool pads = column.extent % (t.vectors * t.lanes) != 0;
    // What is no one-to-one copy of the operand is longer than its elements by at most the windows.
    const double held =
        plain ? elements(t.operand) : elements(t.operand) / std::max(1.0, terms / 4);
    const bool beside = column.steps[t.operand] == 1;
    if (t.pack) out += held * (beside ? kPackBeside : kPackElement) / joined;
    else if (plain) out += held / width * std::max(1.0, bytes / 64) * kLine;
    if (pads)
      out +=
          (t.pack ? 0 : held * kPadElement) + results * kPadElement / static_cast<double>(t.lanes);
    if (t.terms > 1 || t.held) out += elements(1 - t.operand) * kPackBeside;
    if (t.shifted)
      out += elements(*t.shifted) * kPackBeside +
             sums(1 - *t.shifted) * terms * kSumTerm / static_cast<double>(t.lanes);
    return out;
  }
};

}  // namespace

void lay_out_results(Schedule& sch, BlockRef block, std::size_t row, std::size_t column) {
  const BlockNode* node = block_node(sch, block);
  const auto pattern = match_reduction(node);
  std::string names, before, rows, columns;
  bool plain = true, same = true;
  const Exprs& indices = pattern->updates[0]->indices;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    names += cat(d ? ", d" : "d", d);
    const auto is = [&](std::size_t iter) {
      return indices[d].get() == node->iters[iter].var.get();
    };
    plain = plain && (as<VarNode>(indices[d]) || indices[d]->kind == ExprKind::int_imm);
    const std::size_t from_end = indices.size() - d;
    if (is(column)) columns = cat("d", d), same = same && from_end == 1;
    else if (row != column && is(row)) rows = cat("d", d, ", "), same = same && from_end == 2;
    else before += cat("d", d, ", ");
  }
  if (same || !plain) return;
  sch.transform_layout(
      block, schedule::BufferChoice{"write", 0, {}},
      schedule::IndexMap::parse(cat("lambda ", names, ": (", before, rows, columns, ")")));
}

std::int64_t host_lanes(const Nest& nest, const TargetInfo& machine) {
  int widest = nest.widest_bytes;
  for (const BufferRegion& w : nest.node->writes)
    widest = std::max(widest, w.buffer->dtype.total_bytes());
  return machine.limit(limits::kVectorBytes, 16) / widest;
}

namespace {

/// Rows and vectors of a tile; the first of equals is taken. Those behind the first six are a
/// tuner's to try, where there are registers for them.
constexpr std::pair<std::int64_t, std::int64_t> kShapes[] = {
    {6, 2}, {4, 3}, {3, 4}, {11, 1}, {2, 6}, {2, 5}, {14, 2}, {9, 3}, {6, 4}, {5, 5}, {24, 1}};
constexpr std::size_t kRuleShapes = 6;

/// What the columns of a tile read: the operand that may be packed, and how many move with them.
struct Columns {
  std::size_t operand = 0;
  std::int64_t across = 0;  // operands in vectors
  bool plain = false;       // it can be packed
};

std::optional<Columns> columns_at(const Nest& nest, const NestLoop& column, const Costs& costs,
                                  const std::vector<const LoadNode*>& loads,
                                  const std::vector<std::size_t>& operands) {
  Columns out;
  std::size_t strided = 0;
  double most = 0;
  for (std::size_t o : operands) {
    if (!column.moves[o]) continue;
    ++out.across;
    const bool beside = column.steps[o] == 1;
    if (!beside) ++strided, out.operand = o;
    else if (!strided && costs.elements(o) > most) most = costs.elements(o), out.operand = o;
  }
  if (!out.across || out.across == static_cast<std::int64_t>(operands.size()) || strided > 1)
    return std::nullopt;
  // Of several reads of a buffer the loops that one moves with tell it from the others.
  const auto alike = [&](std::size_t o) {
    bool same = loads[o]->buffer.get() == loads[out.operand]->buffer.get();
    for (const auto* loops : {&nest.spatial, &nest.reduction})
      for (const NestLoop& l : *loops) same = same && l.moves[o] == l.moves[out.operand];
    return same;
  };
  out.plain = is_plain_access(loads[out.operand]) &&
              std::count_if(operands.begin(), operands.end(), alike) == 1;
  return out;
}

/// Whether a loop's results share what the columns read, and have something of their own: an
/// operand, or the answer to a condition.
bool makes_rows(const NestLoop& row, const NestLoop& column,
                const std::vector<std::size_t>& operands, bool own) {
  for (std::size_t o : operands) {
    if (row.moves[o] && column.moves[o]) return false;
    own = own || row.moves[o];
  }
  return own && row.extent >= 2;
}

std::vector<HostProduct> tiles_of(const Nest& nest, const TargetInfo& machine, bool open) {
  std::vector<HostProduct> out;
  const std::vector<const LoadNode*> loads = loads_of(nest.node);
  const std::vector<std::size_t> operands = operands_of(nest, loads);
  if (operands.size() < 2) return out;
  const std::set<const VarNode*> asked = asked_iterators(nest.node);
  const std::int64_t registers = machine.limit(limits::kVectorBytes, 16) >= 64 ? 32 : 16;
  const Costs costs{nest, static_cast<double>(nest.terms), static_cast<double>(nest.results)};
  const std::int64_t lanes = host_lanes(nest, machine);
  if (lanes < 2) return out;
  for (std::size_t k = nest.spatial.size(); k-- > 0;) {
    const NestLoop& column = nest.spatial[k];
    if (!column.constant || column.extent < 2 || asked.count(nest.node->iters[k].var.get()))
      continue;
    const auto columns = columns_at(nest, column, costs, loads, operands);
    if (!columns) continue;
    const bool beside = column.steps[columns->operand] == 1;
    HostProduct t;
    const auto dot = columns->plain && operands.size() == 2
                         ? match_dot(nest, machine, columns->across)
                         : std::nullopt;
    if (dot) t.terms = dot->terms, t.term_loop = dot->reduction, t.held = dot->held;
    if (dot && dot->shift) t.shifted = costs.sums(0) <= costs.sums(1) ? 1 : 0;
    t.column = k;
    t.lanes = lanes;
    t.operand = columns->operand;
    const std::int64_t wide = ceil_div(column.extent, t.lanes);
    for (std::size_t r = nest.spatial.size(); r-- > 0;) {
      const NestLoop& row = nest.spatial[r];
      if (!makes_rows(row, column, operands, asked.count(nest.node->iters[r].var.get()) > 0))
        continue;
      t.row = r;
      for (std::size_t s = 0; s < (open ? std::size(kShapes) : kRuleShapes); ++s) {
        const auto [most_rows, vectors] = kShapes[s];
        t.vectors = std::min<std::int64_t>(vectors, wide);
        for (std::int64_t rows = std::min<std::int64_t>(most_rows, row.extent); rows >= 2; --rows) {
          t.rows = rows;
          if (rows * t.vectors + std::min(rows, t.vectors * columns->across) + 1 > registers)
            continue;
          const auto add = [&](bool pack) {
            t.pack = pack;
            t.cycles = costs.cycles(t, columns->plain, columns->across);
            out.push_back(t);
          };
          if (columns->plain) add(true);
          else if (beside) add(false);
          // Few rows read a panel hardly more often than it is written.
          if (columns->plain && beside && !dot &&
              (open || (costs.results <= 8.0 * static_cast<double>(rows * column.extent) &&
                        odd_lines(nest, t))))
            add(false);
        }
      }
    }
  }
  return out;
}

/// Of tiles that are as good, that of six rows and two vectors, and rows as they lie.
const HostProduct& best_of(const std::vector<HostProduct>& tiles) {
  const HostProduct* best = &tiles[0];
  for (const HostProduct& t : tiles)
    if (t.cycles < 0.97 * best->cycles) best = &t;
  return *best;
}

/// Tiles of a panel. Few are one panel: the other operand is read once.
std::int64_t panel_of(const Nest& nest, const HostProduct& t) {
  if (!t.pack) return 1;  // rows read a tile again while the first cache holds it
  const std::int64_t bytes = t.vectors * t.lanes * nest.widest_bytes * nest.terms;
  const std::int64_t tiles = ceil_div(nest.spatial[t.column].extent, t.vectors * t.lanes);
  std::int64_t out = std::clamp<std::int64_t>(kPanelBytes / std::max<std::int64_t>(bytes, 1), 1,
                                              tiles <= 2 * kMostPanel ? tiles : kMostPanel);
  while (tiles % out) --out;  // a part of a panel would ask at every tile
  return out;
}

}  // namespace

std::optional<HostProduct> match_host_product(const Nest& nest, const TargetInfo& machine) {
  const std::vector<HostProduct> tiles = tiles_of(nest, machine, false);
  if (tiles.empty()) return std::nullopt;
  HostProduct best = best_of(tiles);
  best.panel = panel_of(nest, best);
  best.parallel = nest.results > kHostParallelWork / nest.terms;
  return best;
}

void open_host_product(HostProduct& tile, const Nest& nest, const TargetInfo& machine,
                       const Questions& questions) {
  if (!questions.open()) return;
  std::vector<HostProduct> left = tiles_of(nest, machine, true);
  bool own = true;  // the answers so far are the rule's
  const HostProduct rule = tile;
  const auto ask = [&](const char* name, const auto& field) {
    const std::int64_t first = field(own ? rule : best_of(left));
    std::int64_t value = first;
    std::vector<std::int64_t> options;
    for (const HostProduct& t : left) options.push_back(field(t));
    questions.ask(name, value, options);
    own = own && value == first;
    std::erase_if(left, [&](const HostProduct& t) { return field(t) != value; });
  };
  ask("column", [](const HostProduct& t) { return static_cast<std::int64_t>(t.column); });
  ask("row", [](const HostProduct& t) { return static_cast<std::int64_t>(t.row); });
  ask("vectors", [](const HostProduct& t) { return t.vectors; });
  ask("rows", [](const HostProduct& t) { return t.rows; });
  ask("pack", [](const HostProduct& t) { return static_cast<std::int64_t>(t.pack); });
  tile = left[0];
  tile.panel = panel_of(nest, tile);
  tile.parallel = rule.parallel;
  const std::int64_t tiles = ceil_div(nest.spatial[tile.column].extent, tile.vectors * tile.lanes);
  std::vector<std::int64_t> panels;
  for (std::int64_t n = 1; n <= std::min<std::int64_t>(tiles, 16); ++n)
    if (tiles % n == 0) panels.push_back(n);
  questions.ask("panel", tile.panel, panels);
  questions.ask("parallel", tile.parallel);
}

namespace {

/// The loop over a tile's columns as vectors that the machine has: a compiler makes other numbers
/// of them than powers of two into longer ones.
void vectorize_columns(Schedule& sch, const LoopRef& columns, const HostProduct& tile) {
  if (tile.terms == 1 && std::has_single_bit(static_cast<std::uint64_t>(tile.vectors)))
    return sch.vectorize(columns);
  const auto cut = sch.split(columns, {factor(tile.vectors), factor(tile.lanes)});
  sch.unroll(cut[0]);
  sch.vectorize(cut[1]);
}

/// Reads are in an order of their own.
std::int64_t read_of(const BlockNode* node, const Buffer& buffer) {
  std::int64_t read = 0;
  while (node->reads[static_cast<std::size_t>(read)].buffer.get() != buffer.get()) ++read;
  return read;
}

/// The operand that moves along the columns, copied in panels as wide as a tile.
BlockRef pack_operand(Schedule& sch, const Nest& nest, const HostProduct& tile) {
  const std::size_t axes = nest.node->iters.size(), results = nest.spatial.size();
  const std::int64_t columns = tile.vectors * tile.lanes;
  std::string names, lead, inside, neighbour;
  for (std::size_t i = 0; i < axes; ++i) {
    names += cat(i ? ", x" : "x", i);
    const NestLoop& l = i < results ? nest.spatial[i] : nest.reduction[i - results];
    if (i == tile.column || !l.moves[tile.operand]) continue;
    std::string& part = i < results ? lead : inside;
    if (tile.terms > 1 && i == results + tile.term_loop) {
      part += cat("x", i, " // ", tile.terms, ", ");
      neighbour = cat(", x", i, " % ", tile.terms);
    } else {
      part += cat("x", i, ", ");
    }
  }
  const std::string column = cat("x", tile.column);
  const std::int64_t read = read_of(nest.node, loads_of(nest.node)[tile.operand]->buffer);
  return sch.reindex_cache_read(
      nest.block, read, "global",
      schedule::IndexMap::parse(cat("lambda ", names, ": (", lead, column, " // ", columns, ", ",
                                    inside, column, " % ", columns, neighbour, ")")));
}

/// The loops of a panel's copy, of which the first `leading` and the one over panels are around it.
void schedule_panel(Schedule& sch, const Nest& nest, const HostProduct& tile, BlockRef packed,
                    std::size_t leading) {
  const std::int64_t columns = tile.vectors * tile.lanes;
  const std::vector<LoopRef> all = sch.get_loops(packed);
  if (all.size() <= leading + 1) return;
  const auto cut = sch.split(all[leading + 1], {std::nullopt, factor(columns)});
  std::vector<LoopRef> inner{cut[0]};
  if (tile.terms == 1) {
    inner.insert(inner.end(), all.begin() + static_cast<std::ptrdiff_t>(leading) + 2, all.end());
    inner.push_back(cut[1]);
    sch.reorder(inner);
    return vectorize_columns(sch, cut[1], tile);
  }
  std::size_t at = leading + 2;
  LoopRef neighbours;
  for (std::size_t r = 0; r < nest.reduction.size(); ++r) {
    // Loops of one iteration do not come along.
    if (!nest.reduction[r].moves[tile.operand] || nest.reduction[r].extent == 1) continue;
    if (r == tile.term_loop) {
      const auto terms = sch.split(all[at], {std::nullopt, factor(tile.terms)});
      inner.push_back(terms[0]);
      neighbours = terms[1];
    } else {
      inner.push_back(all[at]);
    }
    ++at;
  }
  const bool beside = nest.spatial[tile.column].steps[tile.operand] == 1;
  const auto lanes = sch.split(cut[1], {factor(tile.vectors), factor(tile.lanes)});
  for (const LoopRef& l : {lanes[0], lanes[1], neighbours}) inner.push_back(l);
  sch.reorder(inner);
  if (beside) {
    sch.annotate(neighbours, "neighbours", Json(true));
    sch.vectorize(lanes[1]);
  } else if (nest.reduction[tile.term_loop].steps[tile.operand] == 1) {
    sch.vectorize(neighbours);
  }
}

/// What was padded for the panels is read where they are packed; the operand of the rows is laid
/// out for the instruction.
void lay_out_operands(Schedule& sch, BlockRef block, const HostProduct& tile,
                      const std::vector<BlockRef>& longer) {
  const BlockNode* node = block_node(sch, block);
  const VarNode* column = node->iters[tile.column].var.get();
  std::vector<const BufferNode*> rows;  // operands that do not move with the columns
  for (const LoadNode* l : loads_of(node)) {
    const bool moves = std::any_of(l->indices.begin(), l->indices.end(),
                                   [&](const Expr& e) { return uses_var(e, column); });
    if (!moves) rows.push_back(l->buffer.get());
  }
  const bool laid_out = tile.terms > 1 || tile.held;
  std::optional<BlockRef> padded;
  for (const BlockRef& b : longer) {
    const BufferNode* made = block_node(sch, b)->writes[0].buffer.get();
    if (std::find(rows.begin(), rows.end(), made) != rows.end()) padded = b;
    else if (tile.pack) attempt([&] { sch.compute_inline(b); });
  }
  if (laid_out)
    lay_out_rows(sch, block, rows.at(0), DotTerms{tile.terms, tile.term_loop, tile.held}, padded);
}

/// The first loop that gives every thread something, or the longest.
LoopRef shared_loop(Schedule& sch, const std::vector<LoopRef>& outer) {
  LoopRef longest;
  std::int64_t most = 0;
  for (const LoopRef& l : outer) {
    std::int64_t extent = 0;
    if (!is_const_int(schedule::find_loop(sch.mod(), l)->loop()->extent, &extent)) return l;
    if (extent >= kHostPieces) return l;
    if (extent > most) most = extent, longest = l;
  }
  return longest;
}

}  // namespace

std::vector<BlockRef> schedule_host_product(Schedule& sch, const Nest& nest,
                                            const HostProduct& tile) {
  const BlockRef block = nest.block;
  const std::size_t axes = nest.node->iters.size(), results = nest.spatial.size();
  std::vector<BlockRef> apart;  // of a shifted operand: its copy, the sums of the other, the rest
  if (tile.shifted) {
    const Buffer& shifted = loads_of(nest.node)[*tile.shifted]->buffer;
    apart = sch.shift_factor(block, read_of(nest.node, shifted));
  }
  const std::int64_t columns = tile.vectors * tile.lanes;
  const std::int64_t missing = (columns - nest.spatial[tile.column].extent % columns) % columns;
  const bool has_rows = tile.row != tile.column;
  const std::int64_t lacking =
      tile.terms == 1 ? 0
                      : ceil_div(nest.reduction[tile.term_loop].extent, tile.terms) * tile.terms -
                            nest.reduction[tile.term_loop].extent;
  BlockRef store;
  std::vector<BlockRef> longer;  // operands that were padded
  if (missing || lacking) {
    std::vector<std::int64_t> padding(axes, 0);
    padding[tile.column] = missing;
    if (lacking) padding[results + tile.term_loop] = lacking;
    longer = sch.pad_einsum(block, padding);
    if (missing) store = longer.back(), longer.pop_back();
  }
  if (missing) sch.set_scope(block, 0, "local");
  else store = sch.cache_write(block, 0, "local");
  if (tile.shifted) {  // what is left to subtract is taken where results are stored
    sch.compute_inline(store);
    store = apart.back();
    apart.pop_back();
  }
  std::optional<BlockRef> packed;
  if (tile.pack) {
    Nest now = nest;  // buffers are others since
    now.node = block_node(sch, block);
    packed = pack_operand(sch, now, tile);
    if (tile.held) sch.unsafe_set_dtype(*packed, 0, to_string(*tile.held));
  }
  lay_out_operands(sch, block, tile, longer);
  if (tile.shifted) {
    // Read by what lays it out, it is no array of its own.
    const std::vector<BlockRef> readers = sch.get_consumers(apart[0]);
    if (std::none_of(readers.begin(), readers.end(),
                     [&](const BlockRef& b) { return b.id == block.id; }) &&
        attempt([&] { sch.compute_inline(apart[0]); }))
      apart.erase(apart.begin());
  }
  lay_out_results(sch, block, tile.row, tile.column);
  const std::vector<LoopRef> loops = sch.get_loops(block);
  const auto wide =
      sch.split(loops[tile.column], {std::nullopt, factor(tile.panel), factor(columns)});
  // Loops that move the operand of the columns stand outside of those that read it again.
  std::vector<LoopRef> order, again;
  for (std::size_t i = 0; i < results; ++i) {
    if (i == tile.column || (has_rows && i == tile.row)) continue;
    (nest.spatial[i].moves[tile.operand] ? order : again).push_back(loops[i]);
  }
  const std::size_t leading = order.size();
  order.push_back(wide[0]);
  order.insert(order.end(), again.begin(), again.end());
  LoopRef row;
  if (has_rows) {
    const auto cut = sch.split(loops[tile.row], {std::nullopt, factor(tile.rows)});
    order.push_back(cut[0]);
    row = cut[1];
  }
  const std::vector<LoopRef> outer = order;
  order.push_back(wide[1]);
  LoopRef first_term = loops[results], neighbours;
  for (std::size_t r = results; r < axes; ++r) {
    if (tile.terms == 1 || r != results + tile.term_loop) {
      order.push_back(loops[r]);
      continue;
    }
    const auto cut = sch.split(loops[r], {std::nullopt, factor(tile.terms)});
    if (r == results) first_term = cut[0];
    order.push_back(cut[0]);
    neighbours = cut[1];
  }
  if (row.var) order.push_back(row);
  order.push_back(wide[2]);
  if (neighbours.var) order.push_back(neighbours);
  sch.reorder(order);
  if (packed) {
    sch.compute_at(*packed, wide[0]);
    schedule_panel(sch, nest, tile, *packed, leading);
  }
  sch.reverse_compute_at(store, wide[1], true);
  const std::vector<LoopRef> stored = sch.get_loops(store);
  const BlockRef init = sch.decompose_reduction(block, first_term);
  if (neighbours.var) sch.annotate(neighbours, "neighbours", Json(true));
  const std::vector<LoopRef> first = sch.get_loops(init);
  if (row.var) sch.unroll(row), sch.unroll(first[first.size() - 2]);
  vectorize_columns(sch, wide[2], tile);
  vectorize_columns(sch, first.back(), tile);
  // Whole results are stored in vectors where they lie so, else one by one.
  const bool last = tile.column + 1 == results;
  for (std::size_t i = outer.size() + 1; i < stored.size(); ++i) {
    if (last && i + 1 == stored.size()) vectorize_columns(sch, stored[i], tile);
    else sch.unroll(stored[i]);
  }
  if (tile.parallel)
    if (const LoopRef l = shared_loop(sch, outer); l.var) sch.parallel(l);
  return apart;
}

bool cut_into_digits(Schedule& sch, BlockRef block) {
  const BlockNode* node = block_node(sch, block);
  std::size_t which = node->iters.size();
  std::int64_t digit = 0;
  for (const LoadNode* l : loads_of(node)) {
    for (const Expr& index : l->indices) {
      for_each_expr(index, [&](const Expr& e) {
        const auto* b = e->kind == ExprKind::floordiv ? as<BinaryNode>(e) : nullptr;
        std::int64_t by = 0, extent = 0;
        if (!b || !is_const_int(b->b, &by) || by < 2) return;
        for (std::size_t i = 0; i < node->iters.size(); ++i) {
          if (b->a.get() != node->iters[i].var.get() || node->iters[i].kind != IterKind::spatial ||
              !is_const_int(node->iters[i].dom.extent, &extent) || extent % by)
            continue;
          which = i;
          digit = by;
        }
      });
    }
  }
  if (!digit) return false;
  std::string from, to;
  for (std::size_t i = 0; i < node->iters.size(); ++i) {
    from += cat(i ? ", x" : "x", i);
    to += i == which ? cat(i ? ", x" : "x", i, " // ", digit, ", x", i, " % ", digit)
                     : cat(i ? ", x" : "x", i);
  }
  sch.transform_block_layout(block,
                             schedule::IndexMap::parse(cat("lambda ", from, ": (", to, ")")));
  for (std::int64_t k = 0; k < 2; ++k) {
    const BlockNode* now = block_node(sch, block);
    const std::vector<const LoadNode*> loads = loads_of(now);
    const Buffer read = now->reads[static_cast<std::size_t>(k)].buffer;
    const auto l = std::find_if(loads.begin(), loads.end(),
                                [&](const LoadNode* x) { return x->buffer.get() == read.get(); });
    // The window's weights: one element for each pair of iterators.
    const bool both = l != loads.end() &&
                      std::any_of((*l)->indices.begin(), (*l)->indices.end(), [&](const Expr& e) {
                        return uses_var(e, now->iters[which].var.get()) &&
                               uses_var(e, now->iters[which + 1].var.get());
                      });
    if (both) sch.reindex(block, schedule::BufferChoice{"read", k, {}});
  }
  sch.reindex(block, schedule::BufferChoice{"write", 0, {}});
  return true;
}

}  // namespace weft::rules
