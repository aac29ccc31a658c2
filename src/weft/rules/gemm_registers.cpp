// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/gemm_registers.h"

#include <algorithm>
#include <bit>

#include "weft/base/integers.h"
#include "weft/ir/build.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/visit.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using ir::IterKind;

namespace {

constexpr std::int64_t kLeastSide = 16, kLeastTerms = 8;  // below: a tile would be mostly padding
constexpr std::int64_t kTerms = 32;                       // of one tile
constexpr std::int64_t kMostEach = 16, kMostResults = 128, kMostTerms = 64;
constexpr std::int64_t kMostUnrolled = 1024;  // multiplications of one step in straight code

std::int64_t power_below(std::int64_t n) {
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(1, n))));
}

/// The spatial loops of a tile, innermost first: columns are those with which the same operands
/// move as with the innermost loop, rows those of the other operands, of several kinds the most.
/// Where these are few (a convolution to few results), both are loops of one operand.
struct Sides {
  std::vector<std::size_t> rows, columns;
};

std::int64_t length(const Nest& nest, const std::vector<std::size_t>& side) {
  std::int64_t out = 1;
  for (std::size_t i : side) out *= nest.spatial[i].extent;
  return out;
}

std::optional<Sides> sides_of(const Nest& nest) {
  std::vector<std::vector<std::size_t>> kinds;
  for (std::size_t i = nest.spatial.size(); i-- > 0;) {
    const std::vector<bool>& moves = nest.spatial[i].moves;
    if (nest.spatial[i].extent == 1 || std::count(moves.begin(), moves.end(), false) == 0) continue;
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
      return nest.spatial[kind[0]].moves == moves;
    });
    if (same == kinds.end()) kinds.push_back({i});
    else same->push_back(i);
  }
  if (kinds.empty()) return std::nullopt;
  const auto shorter = [&](const auto& a, const auto& b) {
    return length(nest, a) < length(nest, b);
  };
  if (kinds.size() > 1) {
    const auto rows = std::max_element(kinds.begin() + 1, kinds.end(), shorter);
    if (length(nest, *rows) >= kLeastSide && length(nest, kinds[0]) >= kLeastSide)
      return Sides{*rows, kinds[0]};
  }
  std::vector<std::vector<std::size_t>> loops;
  for (std::size_t i = nest.spatial.size(); i-- > 0;) {
    if (nest.spatial[i].extent >= kLeastSide) loops.push_back({i});
  }
  if (loops.size() < 2) return std::nullopt;
  return Sides{*std::max_element(loops.begin() + 1, loops.end(), shorter), loops[0]};
}

/// Threads and results of each along one side.
struct Cut {
  std::int64_t threads, each;
};

/// Of at most `most` along `extent`: powers of two; where these leave a remainder and `divisors`
/// are wanted, the divisors that make the largest tile, unless that is less than half of theirs.
Cut cut_of(std::int64_t extent, const Cut& most, bool divisors) {
  Cut powers{std::min(most.threads, power_below(extent)), 1};
  powers.each = std::min(most.each, power_below(extent / powers.threads));
  if (!divisors || extent % (powers.threads * powers.each) == 0) return powers;
  Cut best{1, 1};
  for (std::int64_t threads = std::min(most.threads * 3 / 2, extent); threads > 0; --threads) {
    if (extent % threads != 0) continue;
    for (std::int64_t each = std::min(most.each, extent / threads); each > 0; --each) {
      if (extent / threads % each == 0 && threads * each > best.threads * best.each)
        best = {threads, each};
    }
  }
  return 2 * best.threads * best.each < powers.threads * powers.each ? powers : best;
}

/// The loops of a side take what is left of `most`, as far as those inside them are covered; but
/// for the innermost one only divisors.
void cut_side(RegisterTile& tile, const Nest& nest, const std::vector<std::size_t>& side, Cut most,
              bool divisors) {
  for (std::size_t i : side) tile.threads[i] = tile.each[i] = 1;
  for (std::size_t i : side) {
    const std::int64_t extent = nest.spatial[i].extent;
    const Cut cut = cut_of(extent, most, divisors);
    if (i != side[0] && extent % (cut.threads * cut.each) != 0) return;
    tile.threads[i] = cut.threads, tile.each[i] = cut.each;
    most = {std::max<std::int64_t>(1, most.threads / cut.threads),
            std::max<std::int64_t>(1, most.each / cut.each)};
    if (cut.threads * cut.each != extent) return;
  }
}

std::int64_t product_of(const std::vector<std::int64_t>& all) {
  std::int64_t out = 1;
  for (std::int64_t n : all) out *= n;
  return out;
}

bool divides(const Nest& nest, const RegisterTile& tile) {
  bool out = true;
  for (std::size_t i = 0; i < nest.spatial.size(); ++i)
    out = out && nest.spatial[i].extent % (tile.threads[i] * tile.each[i]) == 0;
  for (std::size_t i = 0; i < nest.reduction.size(); ++i)
    out = out && nest.reduction[i].extent % tile.terms[i] == 0;
  return out;
}

/// Terms of a tile along one reduction loop. Of several loops, which become one, only divisors: a
/// remainder would be asked for in every term.
std::vector<std::int64_t> terms_options(const Nest& nest, std::size_t loop, std::int64_t most) {
  const std::int64_t extent = nest.reduction[loop].extent;
  std::vector<std::int64_t> out;
  for (std::int64_t n = 1; n <= std::min(extent, most); ++n) {
    const bool power = std::has_single_bit(static_cast<std::uint64_t>(n));
    if (extent % n == 0 ? power || n == extent || nest.reduction.size() > 1
                        : power && nest.reduction.size() == 1)
      out.push_back(n);
  }
  return out;
}

}  // namespace

std::optional<RegisterTile> match_gemm_registers(const Nest& nest, const Facts& facts,
                                                 bool remainders) {
  if (nest.mixed || nest.streams || nest.reduction.empty() || nest.spatial.size() < 2 ||
      !nest.node->init || nest.terms < kLeastTerms)
    return std::nullopt;
  const auto pattern = ir::match_reduction(nest.node);
  const auto sides = sides_of(nest);
  if (!pattern || pattern->updates.size() != 1 || !sides) return std::nullopt;
  for (const NestLoop& l : nest.spatial)
    if (!l.constant) return std::nullopt;
  for (const NestLoop& l : nest.reduction)
    if (!l.constant) return std::nullopt;
  RegisterTile out;
  out.threads.assign(nest.spatial.size(), 1);
  out.each.assign(nest.spatial.size(), 1);
  // The largest tile that gives processors one or two groups each; else the smallest.
  constexpr Cut kRows[] = {{16, 8}, {8, 8}, {8, 4}}, kColumns[] = {{16, 8}, {16, 4}, {16, 2}};
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    cut_side(out, nest, sides->rows, kRows[i], remainders);
    cut_side(out, nest, sides->columns, kColumns[i], remainders);
    if (product_of(out.threads) > facts.threads()) continue;
    std::int64_t groups = 1;
    for (std::size_t k = 0; k < nest.spatial.size(); ++k)
      groups *= ceil_div(nest.spatial[k].extent, out.threads[k] * out.each[k]);
    if (2 * groups >= 3 * facts.processors()) break;
  }
  if (product_of(out.threads) > facts.threads()) return std::nullopt;
  out.terms.assign(nest.reduction.size(), 1);
  std::int64_t rest = kTerms;
  for (std::size_t i = nest.reduction.size(); i-- > 0 && rest > 1;) {
    const std::int64_t extent = nest.reduction[i].extent;
    out.terms[i] = terms_options(nest, i, rest).back();
    rest = extent <= rest ? rest / extent : 1;
  }
  out.vector = std::clamp<std::int64_t>(facts.vector_bytes() / nest.widest_bytes, 1, 4);
  out.ahead = facts.copies_ahead() ? 2 : 0;
  out.unroll = divides(nest, out);
  if (!out.unroll && !remainders) return std::nullopt;
  // Copies by other numbers of threads, or of what lies within the edges, are not proved to hold
  // all that is read there.
  out.shared =
      out.unroll && std::has_single_bit(static_cast<std::uint64_t>(product_of(out.threads)));
  return out;
}

void open_gemm_registers(RegisterTile& tile, const Nest& nest, const Facts& facts,
                         const Questions& questions) {
  const auto sides = sides_of(nest);
  const auto of_side = [&](std::size_t i) {
    return std::count(sides->rows.begin(), sides->rows.end(), i) +
               std::count(sides->columns.begin(), sides->columns.end(), i) >
           0;
  };
  std::int64_t threads = facts.threads(), results = kMostResults;
  for (std::size_t i = nest.spatial.size(); i-- > 0;) {
    const bool side = of_side(i);
    const std::int64_t extent = nest.spatial[i].extent;
    if (extent == 1 || (!side && i + 2 < nest.spatial.size())) continue;
    const std::string k = std::to_string(i);
    questions.ask(("threads" + k).c_str(), tile.threads[i],
                  powers_up_to(std::min({threads, extent, side ? threads : 8})));
    tile.threads[i] = std::min(tile.threads[i], threads);
    threads /= tile.threads[i];
    const std::int64_t rest = power_below(extent / tile.threads[i]);
    questions.ask(("each" + k).c_str(), tile.each[i],
                  powers_up_to(std::min({results, rest, side ? kMostEach : 4})));
    tile.each[i] = std::min(tile.each[i], results);
    results /= tile.each[i];
  }
  std::int64_t terms = kMostTerms;
  for (std::size_t i = nest.reduction.size(); i-- > 0;) {
    questions.ask(("terms" + std::to_string(i)).c_str(), tile.terms[i],
                  terms_options(nest, i, terms));
    terms = std::max<std::int64_t>(1, terms / tile.terms[i]);
  }
  questions.ask("shared", tile.shared);
  if (divides(nest, tile)) questions.ask("unroll", tile.unroll);
  else tile.unroll = false;
  if (!tile.shared) return;
  questions.ask("vector", tile.vector, powers_up_to(tile.vector));
  questions.ask("ahead", tile.ahead,
                facts.copies_ahead() ? std::vector<std::int64_t>{0, 1, 2, 3, 4}
                                     : std::vector<std::int64_t>{0, 1});
}

namespace {

/// Whether the copied part has runs of whole vectors of `most` elements. A vector with elements of
/// two runs would be put together by reads that nothing runs beside, and copies by single elements
/// are not always proved to hold all that is read.
bool has_whole_vectors(const Schedule& sch, BlockRef copy, const std::vector<LoopRef>& axes,
                       std::int64_t most) {
  const ir::Buffer& from = schedule::find_block(sch.mod(), copy)->realize()->block->reads[0].buffer;
  std::int64_t run = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    std::int64_t extent = 0, whole = 0;
    if (!ir::is_const_int(schedule::find_loop(sch.mod(), axes[i])->loop()->extent, &extent))
      return false;
    run *= extent;
    const std::size_t axis = from->shape.size() - (axes.size() - i);
    if (axes.size() > from->shape.size() || !ir::is_const_int(from->shape[axis], &whole) ||
        whole != extent)
      break;
  }
  return run % most == 0;
}

/// False: shared memory does not hold the copies, or they are no vectors. Steps that are copied
/// ahead are as many as it holds.
bool take_steps(Schedule& sch, const Nest& nest, const RegisterTile& d, const Facts& facts,
                std::optional<BlockRef> finish) {
  std::int64_t bytes = 0;  // of the copies of one step
  const BlockRef block = nest.block;
  const std::size_t operands = nest.node->reads.size();
  if (finish) sch.set_scope(block, 0, "local");
  const BlockRef store = finish ? *finish : sch.cache_write(block, 0, "local");
  std::vector<LoopRef> grid, threads, each, steps, terms;
  for (std::size_t i = 0; i < nest.spatial.size(); ++i) {
    const auto cut =
        sch.split(nest.spatial[i].loop, {std::nullopt, factor(d.threads[i]), factor(d.each[i])});
    grid.push_back(cut[0]), threads.push_back(cut[1]), each.push_back(cut[2]);
  }
  for (std::size_t i = 0; i < nest.reduction.size(); ++i) {
    const auto cut = sch.split(nest.reduction[i].loop, {std::nullopt, factor(d.terms[i])});
    steps.push_back(cut[0]), terms.push_back(cut[1]);
  }
  std::vector<LoopRef> order = grid;
  for (const auto* part : {&threads, &steps, &terms, &each})
    order.insert(order.end(), part->begin(), part->end());
  sch.reorder(order);
  const LoopRef groups = sch.fuse(grid), together = sch.fuse(threads);
  const LoopRef step = steps.size() > 1 ? sch.fuse(steps) : steps[0];
  sch.bind(groups, "blockIdx.x");
  sch.bind(together, "threadIdx.x");
  sch.reverse_compute_at(store, together);
  if (d.shared) {
    for (std::size_t i = 0; i < operands; ++i) {
      // Other readers of the operand are outside of this tile: the copy is for this block alone.
      const BlockRef copy = sch.cache_read(block, static_cast<std::int64_t>(i), "shared", {block});
      sch.compute_at(copy, step, true);
      const std::vector<LoopRef> all = sch.get_loops(copy);
      const auto from = std::find(all.begin(), all.end(), step);
      const std::vector<LoopRef> axes(from + 1, all.end());
      if (!has_whole_vectors(sch, copy, axes, d.vector)) return false;
      const LoopRef fetch = axes.size() > 1 ? sch.fuse(axes) : axes[0];
      std::int64_t elements = 0;
      if (!ir::is_const_int(schedule::find_loop(sch.mod(), fetch)->loop()->extent, &elements))
        elements = facts.shared_bytes();
      bytes += elements * nest.node->reads[i].buffer->dtype.total_bytes();
      if (bytes > facts.shared_bytes()) return false;
      const auto cut =
          sch.split(fetch, {std::nullopt, factor(product_of(d.threads)), factor(d.vector)});
      sch.bind(cut[1], "threadIdx.x");
      if (d.vector > 1) sch.vectorize(cut[2]);
    }
  }
  if (d.unroll && product_of(d.terms) * product_of(d.each) <= kMostUnrolled)
    for (const LoopRef& l : terms) sch.unroll(l);
  sch.decompose_reduction(block, step);
  const std::int64_t ahead =
      d.shared ? std::min(d.ahead, facts.shared_bytes() / std::max<std::int64_t>(1, bytes) - 1) : 0;
  if (ahead > 0) {
    Json stages = Json::array(), copies = Json::array();
    for (std::size_t i = 0; i < operands; ++i) stages.push_back(std::int64_t{0});
    stages.push_back(ahead);
    copies.push_back(std::int64_t{0});
    sch.annotate(step, "software_pipeline_stage", std::move(stages));
    if (facts.copies_ahead())
      sch.annotate(step, "software_pipeline_async_stages", std::move(copies));
  }
  return true;
}

}  // namespace

bool schedule_gemm_registers(Schedule& sch, const Nest& nest, const RegisterTile& tile,
                             const Facts& facts, std::optional<BlockRef> finish) {
  const Schedule before = sch;
  RegisterTile fits = tile;
  auto taken = [&](std::optional<BlockRef> with) {
    // Windows of ragged images may reach further than shared memory does.
    if (take_steps(sch, nest, fits, facts, with)) return;
    sch = before;
    fits.shared = false;
    take_steps(sch, nest, fits, facts, with);
  };
  if (finish && attempt([&] { taken(finish); })) return true;
  sch = before;
  taken(std::nullopt);
  return false;
}

}  // namespace weft::rules
