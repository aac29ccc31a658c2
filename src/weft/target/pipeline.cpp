// SPDX-License-Identifier: Apache-2.0
#include "weft/target/pipeline.h"

#include <algorithm>

#include "weft/pass/compact_buffers.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/flatten_buffers.h"
#include "weft/pass/inject_virtual_threads.h"
#include "weft/pass/insert_barriers.h"
#include "weft/pass/lower_cross_thread_reduction.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/narrow_indices.h"
#include "weft/pass/place_allocations.h"
#include "weft/pass/simplify.h"
#include "weft/pass/unify_thread_binding.h"
#include "weft/pass/vectorize_loops.h"

namespace weft {

using ir::PrimFunc;

pass::Machine machine_of(const TargetInfo& info, std::string name) {
  pass::Machine out;
  out.name = std::move(name);
  for (const AxisInfo& axis : info.axes) {
    bool joins = axis.kind == AxisKind::lockstep &&
                 std::find(axis.collectives.begin(), axis.collectives.end(), "reduce") !=
                     axis.collectives.end();
    out.axes.push_back({axis.name, axis.kind == AxisKind::virtual_, axis.limit, axis.group,
                        axis.group_limit, axis.barrier, axis.reduces, joins});
  }
  for (const MemoryInfo& memory : info.memories)
    out.memories.push_back({memory.scope, memory.bytes, memory.private_to});
  return out;
}

pass::Pipeline standard_pipeline(const TargetInfo& info, const std::string& target,
                                 const LoweringOptions& options) {
  pass::Machine machine = machine_of(info, target);
  pass::Pipeline p;
  auto add = [&](std::string name, std::function<PrimFunc(const PrimFunc&)> run) {
    p.push_back({std::move(name), std::move(run)});
  };
  add("lower_cross_thread_reduction",
      [machine](const PrimFunc& f) { return pass::lower_cross_thread_reduction(f, machine); });
  add("lower_init", pass::lower_init);
  add("place_allocations",
      [machine](const PrimFunc& f) { return pass::place_allocations(f, machine); });
  add("convert_blocks", pass::convert_blocks);
  add("compact_buffers",
      [machine](const PrimFunc& f) { return pass::compact_buffers(f, machine); });
  add("lower_match_buffers", pass::lower_match_buffers);
  add("unify_thread_binding",
      [machine](const PrimFunc& f) { return pass::unify_thread_binding(f, machine); });
  add("inject_virtual_threads",
      [machine](const PrimFunc& f) { return pass::inject_virtual_threads(f, machine); });
  add("unroll_loops",
      [options](const PrimFunc& f) { return pass::unroll_loops(f, options.unroll); });
  add("flatten_buffers", pass::flatten_buffers);
  add("simplify", pass::simplify);
  if (options.vector_lanes > 0) {
    add("vectorize_loops",
        [options](const PrimFunc& f) { return pass::vectorize_loops(f, options.vector_lanes); });
  } else {
    add("keep_vector_loops", pass::keep_vector_loops);
  }
  add("simplify", pass::simplify);
  add("insert_barriers",
      [machine](const PrimFunc& f) { return pass::insert_barriers(f, machine); });
  if (options.narrow) add("narrow_indices", pass::narrow_indices);
  add("lower_division", pass::lower_division);
  return p;
}

}  // namespace weft
