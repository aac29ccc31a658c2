// SPDX-License-Identifier: Apache-2.0
#pragma once
// The list of passes that C-like targets share, with the switches in which they differ.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/pass/pass.h"
#include "weft/pass/unroll_loops.h"
#include "weft/target/target.h"

namespace weft {

struct LoweringOptions {
  int vector_lanes = 0;       // 0: vectorized loops stay loops for the compiler behind
  int vector_bytes = 0;       // of one vector at most; 0: only lanes count
  bool masked_loads = false;  // vectors may load some of their lanes
  bool narrow = true;         // int32 indices where proven
  bool transposes = false;    // the target has transpose_rows
  bool hoist_guards = false;  // loops run one after the other: whole tiles apart from cut ones
  bool share_storage = true, common_subexpression_elimination = true;
  bool check_bounds = false;  // assertions before accesses that are not provably inside
  /// Switches of the target string:
  /// "cpu:share_storage=0,common_subexpression_elimination=0,check_bounds=1".
  void read(const Target& target);
  pass::UnrollOptions unroll;
};

/// Whether an option of the target string is one of LoweringOptions::read that every target takes
/// ("check_bounds" is taken where a kernel can end with an error).
bool is_lowering_option(std::string_view key);

/// Throws Error(value, "<target>.option.unknown") for an option beside `legal` and those of the
/// lowering. `bare` says what a value without a key names ("a card's number"); "": only "0", the
/// first and only one.
void check_options(const Target& target, std::vector<std::string> legal, std::string_view bare);

/// Blocks -> loops -> launches -> flat memory -> vectors -> barriers.
pass::Pipeline standard_pipeline(TargetInfo info, const LoweringOptions& options = {});

}  // namespace weft
