// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/sample.h"

#include <algorithm>

#include "weft/base/hash.h"
#include "weft/base/text.h"
#include "weft/schedule/primitives/compute_at.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// The next number of a counter passed through a mixing function.
std::uint64_t next(std::uint64_t& random) { return mix64(++random); }

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) out.push_back(d);
  }
  return out;
}

/// A uniformly drawn ordered factorisation is not needed: each factor is a uniformly drawn divisor
/// of what is left.
void draw(std::int64_t extent, std::int64_t n, std::int64_t limit, std::uint64_t& random,
          std::vector<std::int64_t>& out) {
  out.assign(static_cast<std::size_t>(n), 1);
  std::vector<std::int64_t> inner;
  for (std::int64_t d : divisors(extent)) {
    if (d <= limit) inner.push_back(d);
  }
  if (n > 1) out.back() = inner[next(random) % inner.size()];
  std::int64_t left = extent / out.back();
  for (std::size_t i = static_cast<std::size_t>(n) - 1; i-- > 1;) {
    const auto all = divisors(left);
    out[i] = all[next(random) % all.size()];
    left /= out[i];
  }
  out[0] = left;
}

}  // namespace

Verdict SampleCategorical::decide(const State& s, std::uint64_t& random) {
  if (candidates.empty() || probs.size() != candidates.size()) {
    return refuse(s, "schedule.sample_categorical.probs",
                  cat("sample_categorical got ", candidates.size(), " candidates and ",
                      probs.size(), " probabilities"))
        .note("legal: at least one candidate, as many probabilities");
  }
  if (decision) return std::nullopt;
  double total = 0;
  for (double p : probs) total += p;
  double at = static_cast<double>(next(random) >> 11) * 0x1p-53 * total;
  std::size_t i = 0;
  while (i + 1 < probs.size() && at >= probs[i]) at -= probs[i++];
  decision = IntRef(static_cast<std::int64_t>(i));
  return std::nullopt;
}

Verdict SampleCategorical::transform(const State& s, Outcome<Result>& out) const {
  const std::int64_t i = decision ? decision->value : 0;
  if (i < 0 || i >= static_cast<std::int64_t>(candidates.size())) {
    return refuse(s, "schedule.sample_categorical.decision",
                  cat("sample_categorical got the decision ", i, " among ", candidates.size(),
                      " candidates"))
        .note(cat("legal: 0 to ", static_cast<std::int64_t>(candidates.size()) - 1));
  }
  out.result = IntRef(candidates[static_cast<std::size_t>(i)], s.sampled + 1);
  return std::nullopt;
}

Verdict SamplePerfectTile::decide(const State& s, std::uint64_t& random) {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  std::int64_t extent = 0;
  if (!is_const_int(path.loop()->extent, &extent) || extent < 1) {
    return refuse(s, "schedule.sample_perfect_tile.extent",
                  cat("sample_perfect_tile needs a loop of constant extent, but ",
                      name_of(path.loop()), " has another"),
                  path.loop())
        .note("legal: loops with a positive constant extent");
  }
  if (n < 1 || max_innermost_factor < 1) {
    return refuse(s, "schedule.sample_perfect_tile.count",
                  cat("sample_perfect_tile got n = ", n,
                      " and max_innermost_factor = ", max_innermost_factor))
        .note("legal: both at least 1");
  }
  if (decision.empty()) {
    draw(extent, n, max_innermost_factor, random, decision);
    return std::nullopt;
  }
  // A decision made for another extent is repaired from the right: what does not divide takes the
  // rest.
  decision.resize(static_cast<std::size_t>(n), 1);
  for (std::size_t i = decision.size(); i-- > 1;) {
    if (decision[i] < 1 || extent % decision[i] != 0) decision[i] = extent;
    extent /= decision[i];
  }
  decision[0] = extent;
  return std::nullopt;
}

Verdict SamplePerfectTile::transform(const State& s, Outcome<Result>& out) const {
  std::int64_t id = s.sampled;
  for (std::int64_t f : decision) out.result.push_back(IntRef(f, ++id));
  return std::nullopt;
}

Verdict SamplePartitionedTile::decide(const State& s, std::uint64_t& random) {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  std::int64_t extent = 0;
  if (!is_const_int(path.loop()->extent, &extent) || extent < 1) {
    return refuse(s, "schedule.sample_partitioned_tile.extent",
                  cat("sample_partitioned_tile needs a loop of constant extent, but ",
                      name_of(path.loop()), " has another"),
                  path.loop())
        .note("legal: loops with a positive constant extent");
  }
  if (n < 2 || partition_pos < 1 || partition_pos >= n || innerpart_factor < 1) {
    return refuse(s, "schedule.sample_partitioned_tile.count",
                  cat("sample_partitioned_tile got n = ", n, ", partition_pos = ", partition_pos,
                      ", innerpart_factor = ", innerpart_factor))
        .note("legal: n at least 2, partition_pos from 1 to n - 1, innerpart_factor at least 1");
  }
  const auto first = static_cast<std::size_t>(partition_pos);
  const bool divides = extent % innerpart_factor == 0;
  const std::int64_t fixed = divides ? innerpart_factor : extent;
  std::int64_t product = 1, inner = 1;
  for (std::size_t i = 0; i < decision.size(); ++i) {
    product *= decision[i];
    if (i >= first) inner *= decision[i];
  }
  const bool fits =
      decision.size() == static_cast<std::size_t>(n) && product == extent && inner % fixed == 0;
  if (fits) return std::nullopt;  // a decision for another loop is drawn again
  std::vector<std::int64_t> outside, within;
  const auto all = divisors(extent / fixed);
  const std::int64_t more = all[next(random) % all.size()];
  draw(extent / fixed / more, partition_pos, extent, random, outside);
  draw(more * fixed, n - partition_pos, extent, random, within);
  decision = outside;
  decision.insert(decision.end(), within.begin(), within.end());
  return std::nullopt;
}

Verdict SamplePartitionedTile::transform(const State& s, Outcome<Result>& out) const {
  std::int64_t id = s.sampled;
  for (std::int64_t f : decision) out.result.push_back(IntRef(f, ++id));
  return std::nullopt;
}

namespace {

/// Loops of the block's scope at which compute_at would succeed.
Verdict locations(const State& s, BlockRef block, std::vector<LoopRef>& out) {
  Path path;
  WEFT_TRY(locate_inner(s, block, SampleComputeLocation::kName, path));
  State quiet = s;
  quiet.detail = false;
  std::vector<const ForNode*> seen;
  for (const Leaf& leaf : leaves(path.scope()->block->body)) {
    for (const ForNode* loop : leaf.loops) {
      if (std::find(seen.begin(), seen.end(), loop) != seen.end()) continue;
      seen.push_back(loop);
      Outcome<Done> ignored;
      if (!ComputeAt{block, {loop->var}}.transform(quiet, ignored)) out.push_back({loop->var});
    }
  }
  if (!out.empty()) return std::nullopt;
  Refusal r = refuse(
      s, "schedule.sample_compute_location.none",
      cat("sample_compute_location: no loop takes block ", name_of(path.realize()->block.get())),
      path.target().get());
  r.note("legal: producers that compute_at can move into a loop of their consumers");
  r.repair("sch.compute_at(block, loop) names the reason for each loop");
  return r;
}

}  // namespace

Verdict SampleComputeLocation::decide(const State& s, std::uint64_t& random) {
  std::vector<LoopRef> legal;
  WEFT_TRY(locations(s, block, legal));
  const auto count = static_cast<std::int64_t>(legal.size());
  // A decision made for another program falls back to the last candidate before it.
  if (decision) decision = IntRef(std::clamp<std::int64_t>(decision->value, 0, count - 1));
  else decision = IntRef(static_cast<std::int64_t>(next(random) % legal.size()));
  return std::nullopt;
}

Verdict SampleComputeLocation::transform(const State& s, Outcome<Result>& out) const {
  std::vector<LoopRef> legal;
  WEFT_TRY(locations(s, block, legal));
  const std::int64_t i = decision ? decision->value : 0;
  out.result = legal[static_cast<std::size_t>(
      std::clamp<std::int64_t>(i, 0, static_cast<std::int64_t>(legal.size()) - 1))];
  return std::nullopt;
}

}  // namespace weft::schedule
