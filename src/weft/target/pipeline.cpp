// SPDX-License-Identifier: Apache-2.0
#include "weft/target/pipeline.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/pass/assert_bounds.h"
#include "weft/pass/bind_tensors.h"
#include "weft/pass/check_exchanges.h"
#include "weft/pass/check_private.h"
#include "weft/pass/common_subexpression_elimination.h"
#include "weft/pass/compact_buffers.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/flatten_buffers.h"
#include "weft/pass/hoist_conditions.h"
#include "weft/pass/hoist_guards.h"
#include "weft/pass/init_empty_reductions.h"
#include "weft/pass/inject_virtual_threads.h"
#include "weft/pass/insert_barriers.h"
#include "weft/pass/lower_collectives.h"
#include "weft/pass/lower_cross_thread_reduction.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/mark_nontemporal.h"
#include "weft/pass/narrow_indices.h"
#include "weft/pass/pipeline_loops.h"
#include "weft/pass/place_allocations.h"
#include "weft/pass/share_storage.h"
#include "weft/pass/simplify.h"
#include "weft/pass/unify_thread_binding.h"
#include "weft/pass/vectorize_loops.h"
#include "weft/rules/grid.h"
#include "weft/target/transpose_rows.h"

namespace weft {

using ir::PrimFunc;

void LoweringOptions::read(const Target& target) {
  share_storage = target.integer("share_storage", 1) != 0;
  common_subexpression_elimination = target.integer("common_subexpression_elimination", 1) != 0 &&
                                     target.integer("merge_expressions", 1) != 0;
  check_bounds = target.integer("check_bounds", 0) != 0;
}

bool is_lowering_option(std::string_view key) {
  return key == "share_storage" || key == "common_subexpression_elimination" ||
         key == "merge_expressions";  // its name before
}

void check_options(const Target& target, std::vector<std::string> legal, std::string_view bare) {
  for (const auto& [key, value] : target.options) {
    if (is_lowering_option(key)) continue;
    if (key.empty() ? !bare.empty() || value == "0"
                    : std::find(legal.begin(), legal.end(), key) != legal.end())
      continue;
    legal.insert(legal.end(), {"share_storage", "common_subexpression_elimination"});
    std::string given = key.empty() ? cat("takes no value \"", value, "\"")
                                    : cat("has no option \"", key, "\" (given: ", value, ")");
    throw Error(ErrorKind::value, cat(target.name, ".option.unknown"),
                cat("target ", target.name, " ", given))
        .note(cat("options: ", bare, bare.empty() ? "" : ", ", join(legal)))
        .help(did_you_mean(key, legal));
  }
}

pass::Pipeline standard_pipeline(TargetInfo info, const LoweringOptions& options) {
  const auto machine = std::make_shared<const TargetInfo>(std::move(info));
  pass::Pipeline p;
  auto add = [&](std::string name, std::function<PrimFunc(const PrimFunc&)> run) {
    p.push_back({std::move(name), std::move(run)});
  };
  add("init_empty_reductions", pass::init_empty_reductions);
  add("lower_cross_thread_reduction",
      [machine](const PrimFunc& f) { return pass::lower_cross_thread_reduction(f, *machine); });
  add("lower_init", pass::lower_init);
  add("place_allocations",
      [machine](const PrimFunc& f) { return pass::place_allocations(f, *machine); });
  add("convert_blocks", pass::convert_blocks);
  add("lower_plain_matches", pass::lower_plain_matches);
  add("mark_nontemporal",
      [machine](const PrimFunc& f) { return pass::mark_nontemporal(f, *machine); });
  add("check_private", [machine](const PrimFunc& f) { return pass::check_private(f, *machine); });
  add("check_exchanges",
      [machine](const PrimFunc& f) { return pass::check_exchanges(f, *machine); });
  add("compact_buffers",
      [machine](const PrimFunc& f) { return pass::compact_buffers(f, *machine); });
  add("lower_match_buffers", pass::lower_match_buffers);
  add("pipeline_loops", [machine](const PrimFunc& f) { return pass::pipeline_loops(f, *machine); });
  add("unify_thread_binding",
      [machine](const PrimFunc& f) { return pass::unify_thread_binding(f, *machine); });
  add("lower_collectives",
      [machine](const PrimFunc& f) { return pass::lower_collectives(f, *machine); });
  add("inject_virtual_threads",
      [machine](const PrimFunc& f) { return pass::inject_virtual_threads(f, *machine); });
  if (options.check_bounds) add("assert_bounds", pass::assert_bounds);
  if (options.hoist_guards) add("hoist_guards", pass::hoist_guards);
  add("unroll_loops",
      [options](const PrimFunc& f) { return pass::unroll_loops(f, options.unroll); });
  add("bind_tensors", pass::bind_tensors);
  add("flatten_buffers", pass::flatten_buffers);
  add("simplify", pass::simplify);
  if (options.vector_lanes > 0) {
    add("vectorize_loops", [options](const PrimFunc& f) {
      return pass::vectorize_loops(f, options.vector_lanes, options.vector_bytes,
                                   options.masked_loads);
    });
  } else {
    add("keep_vector_loops", pass::keep_vector_loops);
  }
  add("simplify", pass::simplify);
  if (options.share_storage) add("share_storage", pass::share_storage);
  add("insert_barriers",
      [machine](const PrimFunc& f) { return pass::insert_barriers(f, *machine); });
  if (options.narrow) add("narrow_indices", pass::narrow_indices);
  add("lower_division", pass::lower_division);
  if (options.transposes) add("call_transposes", call_transposes);
  // Kernels that people have written stay as they are.
  add("hoist_conditions", [](const PrimFunc& f) {
    return ir::find_annotation(f->attrs, rules::kAppliedRules) ? pass::hoist_conditions(f) : f;
  });
  if (options.common_subexpression_elimination)
    add("common_subexpression_elimination", pass::common_subexpression_elimination);
  return p;
}

}  // namespace weft
