// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that choose: sample_categorical, sample_perfect_tile, sample_partitioned_tile,
// sample_compute_location. The choice is the argument
// `decision`; without it the schedule's random numbers make one, and the trace keeps it.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct SampleCategorical {
  static constexpr std::string_view kName = "sample_categorical";
  static constexpr std::string_view kDoc = "One of the candidates, with the given probabilities.";
  using Result = IntRef;
  std::vector<std::int64_t> candidates;
  std::vector<double> probs;
  Factor decision;
  static void fields(auto&& f) {
    f("candidates", &SampleCategorical::candidates, "the values to choose from");
    f("probs", &SampleCategorical::probs, "the probability of each");
    f("decision", &SampleCategorical::decision, "index of the choice; None: draw one",
      Field::optional);
  }
  Verdict decide(const State&, std::uint64_t& random);
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct SamplePerfectTile {
  static constexpr std::string_view kName = "sample_perfect_tile";
  static constexpr std::string_view kDoc =
      "n factors whose product is a loop's extent; the last is at most max_innermost_factor.";
  using Result = std::vector<IntRef>;
  LoopRef loop;
  std::int64_t n = 2;
  std::int64_t max_innermost_factor = 16;
  std::vector<std::int64_t> decision;
  static void fields(auto&& f) {
    f("loop", &SamplePerfectTile::loop, "the loop");
    f("n", &SamplePerfectTile::n, "how many factors");
    f("max_innermost_factor", &SamplePerfectTile::max_innermost_factor, "largest last factor",
      Field::optional);
    f("decision", &SamplePerfectTile::decision, "the factors; empty: draw them", Field::optional);
  }
  Verdict decide(const State&, std::uint64_t& random);
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct SamplePartitionedTile {
  static constexpr std::string_view kName = "sample_partitioned_tile";
  static constexpr std::string_view kDoc =
      "n factors whose product is a loop's extent, those from partition_pos on together a multiple "
      "of innerpart_factor (of an instruction's tile, say). Where the extent is none: that part is "
      "the whole extent. Example: `f = sch.sample_partitioned_tile(i, 4, 2, 16)`.";
  using Result = std::vector<IntRef>;
  LoopRef loop;
  std::int64_t n = 2;
  std::int64_t partition_pos = 1;
  std::int64_t innerpart_factor = 1;
  std::vector<std::int64_t> decision;
  static void fields(auto&& f) {
    f("loop", &SamplePartitionedTile::loop, "the loop");
    f("n", &SamplePartitionedTile::n, "how many factors");
    f("partition_pos", &SamplePartitionedTile::partition_pos, "the first factor of the inner part",
      Field::optional);
    f("innerpart_factor", &SamplePartitionedTile::innerpart_factor,
      "what divides the product of the inner part", Field::optional);
    f("decision", &SamplePartitionedTile::decision, "the factors; empty: draw them",
      Field::optional);
  }
  Verdict decide(const State&, std::uint64_t& random);
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct SampleComputeLocation {
  static constexpr std::string_view kName = "sample_compute_location";
  static constexpr std::string_view kDoc =
      "One of the loops at which compute_at of the block would succeed, outermost first. Example: "
      "`sch.compute_at(b, sch.sample_compute_location(b))`.";
  using Result = LoopRef;
  BlockRef block;
  Factor decision;
  static void fields(auto&& f) {
    f("block", &SampleComputeLocation::block, "the producer to be moved");
    f("decision", &SampleComputeLocation::decision, "index of the choice; None: draw one",
      Field::optional);
  }
  Verdict decide(const State&, std::uint64_t& random);
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
