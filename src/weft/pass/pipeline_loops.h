// SPDX-License-Identifier: Apache-2.0
#pragma once
// Software pipelining. A loop annotated "software_pipeline_stage" (one number for each statement of
// its body) and "software_pipeline_order" (a permutation; default: as written) becomes a prologue,
// a steady loop and an epilogue in which iteration i of a statement of stage s runs at step i + s.
// What the loop allocates for itself gets as many versions as iterations are alive at once.
// Statements of the stages in "software_pipeline_async_stages" become Async work on the machine's
// queue, with a Wait before the step that needs them; a machine without a queue runs them in order.
// Runs while indices have their dimensions and threads are loops: after lower_match_buffers.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Throws Error(lower, "lower.pipeline.*") on annotations that do not fit the loop or would change
/// what it computes.
ir::PrimFunc pipeline_loops(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::pass
