// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/fallback.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_private.h"
#include "weft/pass/compact_buffers.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/lower_cross_thread_reduction.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/place_allocations.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

constexpr std::int64_t kFewResults = 8192;   // below: one group reduces one result
constexpr std::int64_t kResultsPerTerm = 8;  // above: results alone keep the machine busy
constexpr std::int64_t kLongReduction = 64;  // from here on it is worth joining threads

/// Trip count, or -1 when it is known only at run time.
std::int64_t extent_of(const Schedule& sch, const LoopRef& loop) {
  std::int64_t n = -1;
  const auto path = schedule::find_loop(sch.mod(), loop);
  return is_const_int(path->loop()->extent, &n) ? n : -1;
}

std::int64_t width_of(const Schedule& sch, const LoopRef& loop, std::int64_t threads) {
  const std::int64_t n = extent_of(sch, loop);
  return n > 0 ? std::min(threads, n) : threads;
}

/// Whether what each thread keeps to itself is little and known.
bool fits_threads(const Schedule& sch, const TargetInfo& machine) {
  constexpr std::int64_t most = kPrivateBytes;
  try {
    PrimFunc f = pass::lower_init(pass::lower_cross_thread_reduction(sch.func(), machine));
    f = pass::convert_blocks(pass::place_allocations(f, machine));
    f = pass::compact_buffers(pass::check_private(f, machine), machine);
    bool fits = true;
    for_each_stmt(f->body, [&](const Stmt& s) {
      const auto* a = as<AllocateNode>(s);
      if (!a || a->buffer->scope != "local") return;
      std::int64_t bytes = a->buffer->dtype.total_bytes(), n = 0;
      for (const Expr& e : a->buffer->shape)
        bytes = is_const_int(e, &n) && bytes >= 0 && n <= most ? bytes * n : -1;
      fits = fits && bytes >= 0 && bytes <= most;
    });
    return fits;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::lower) throw;
    return false;
  }
}

/// Digits of a fused loop that are cut across are no affine binding, which reductions need: the
/// last loop is split alone.
void bind_last(Schedule& sch, std::vector<LoopRef> spatial, std::int64_t threads) {
  const std::int64_t width = width_of(sch, spatial.back(), threads);
  attempt([&] {
    const std::vector<LoopRef> parts = sch.split(spatial.back(), {std::nullopt, factor(width)});
    spatial.back() = parts[0];
    sch.bind(sch.fuse(spatial), "blockIdx.x");
    sch.bind(parts[1], "threadIdx.x");
  });
}

bool across_threads(Schedule& sch, const LoopRef& results, const std::vector<LoopRef>& reduction,
                    std::int64_t terms, std::int64_t threads) {
  LoopRef all = reduction[0];
  if (reduction.size() > 1 && !attempt([&] { all = sch.fuse(reduction); })) return false;
  const auto width = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::min(threads, terms))));
  std::vector<LoopRef> parts;
  if (!attempt([&] { parts = sch.split(all, {std::nullopt, factor(width)}); })) return false;
  if (!attempt([&] { sch.bind(parts[1], "threadIdx.x"); })) return false;
  attempt([&] { sch.bind(results, "blockIdx.x"); });
  return true;
}

bool uses_buffer(const Stmt& nest, const BufferNode* buffer) {
  const std::vector<schedule::Leaf> blocks = schedule::leaves(nest);
  return std::any_of(blocks.begin(), blocks.end(), [&](const schedule::Leaf& leaf) {
    return schedule::reads(leaf.block(), buffer) || schedule::writes(leaf.block(), buffer);
  });
}

}  // namespace

bool keep_in_nest(Schedule& sch, BlockRef b) {
  const auto* root = as<BlockRealizeNode>(sch.func()->body);
  const auto own = root->block->alloc_buffers;
  const auto writes = schedule::find_block(sch.mod(), b)->realize()->block->writes;
  bool kept = false;
  for (std::size_t w = 0; w < writes.size(); ++w) {
    const Buffer buffer = writes[w].buffer;
    if (buffer->scope != "global" || std::find(own.begin(), own.end(), buffer) == own.end())
      continue;
    int nests = 0;
    for (const Stmt& s : schedule::statements(root->block->body))
      nests += uses_buffer(s, buffer.get()) ? 1 : 0;
    if (nests == 1)
      kept |= attempt([&] { sch.set_scope(b, static_cast<std::int64_t>(w), "local"); });
    return kept;
  }
  return kept;
}

void schedule_fallback(Schedule& sch, BlockRef b, std::int64_t threads) {
  std::vector<LoopRef> loops = sch.get_loops(b), spatial, reduction;
  if (loops.empty()) attempt([&] { sch.add_unit_loop(b); });
  const Nest nest = read_nest(sch, b, {});
  if (nest.mixed) return;
  std::int64_t results = 1, terms = 1;  // -1: not known
  for (const NestLoop& l : nest.spatial) {
    spatial.push_back(l.loop);
    results = results < 0 || !l.constant ? -1 : results * l.extent;
  }
  for (const NestLoop& l : nest.reduction) {
    reduction.push_back(l.loop);
    terms = terms < 0 || !l.constant ? -1 : terms * l.extent;
  }
  const auto pattern = match_reduction(nest.node);
  const bool joins = pattern && pattern->updates.size() == 1;
  if (spatial.empty() && !attempt([&] { spatial = {sch.add_unit_loop(sch.get_loops(b)[0])}; }))
    return;
  std::vector<LoopRef> order = spatial;
  order.insert(order.end(), reduction.begin(), reduction.end());
  if (order.size() > 1 && !reduction.empty() && !attempt([&] { sch.reorder(order); })) return;
  const bool across = joins && results > 0 && results <= kFewResults && terms >= kLongReduction &&
                      terms * kResultsPerTerm >= results;
  if (!across && !reduction.empty() && spatial.size() > 1) return bind_last(sch, spatial, threads);
  LoopRef all = spatial[0];
  if (spatial.size() > 1 && !attempt([&] { all = sch.fuse(spatial); })) return;
  if (across && across_threads(sch, all, reduction, terms, threads)) return;
  attempt([&] {
    const auto width = results > 0 ? std::min(threads, results) : threads;
    const std::vector<LoopRef> parts = sch.split(all, {std::nullopt, factor(width)});
    sch.bind(parts[0], "blockIdx.x");
    sch.bind(parts[1], "threadIdx.x");
  });
}

void schedule_together(Schedule& sch, const std::vector<BlockRef>& blocks, const Facts& facts) {
  std::vector<LoopRef> common = sch.get_loops(blocks[0]);
  for (const BlockRef& b : blocks) {
    const std::vector<LoopRef> own = sch.get_loops(b);
    std::size_t same = 0;
    while (same < common.size() && same < own.size() && own[same] == common[same]) ++same;
    common.resize(same);
  }
  for (std::size_t depth = common.size(); depth > 0; --depth) {
    const Schedule before = sch;
    const std::vector<LoopRef> outer(common.begin(),
                                     common.begin() + static_cast<std::ptrdiff_t>(depth));
    const bool bound = attempt([&] {
      LoopRef all = outer[0];
      if (depth > 1) all = sch.fuse(outer);
      const std::int64_t width = width_of(sch, all, facts.group());
      const std::vector<LoopRef> parts = sch.split(all, {std::nullopt, factor(width)});
      sch.bind(parts[0], "blockIdx.x");
      sch.bind(parts[1], "threadIdx.x");
    });
    if (bound) {
      for (const BlockRef& b : blocks) keep_in_nest(sch, b);
      if (fits_threads(sch, facts.table())) return;
    }
    sch = before;
  }
}

}  // namespace weft::rules
