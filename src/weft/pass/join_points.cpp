// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/join_points.h"

#include "weft/ir/roles.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/place_allocations.h"
#include "weft/pass/unify_thread_binding.h"

namespace weft::pass {

ir::PrimFunc join_points(const ir::PrimFunc& f, const TargetInfo& machine) {
  if (!ir::uses_tokens(f->body)) return f;
  ir::PrimFunc out = place_allocations(lower_init(f), machine);
  out = lower_match_buffers(convert_blocks(out));
  return unify_thread_binding(out, machine);
}

}  // namespace weft::pass
