// SPDX-License-Identifier: Apache-2.0
#include "weft/target/join_points.h"

#include "weft/ir/roles.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/place_allocations.h"
#include "weft/pass/unify_thread_binding.h"
#include "weft/target/pipeline.h"

namespace weft {

ir::PrimFunc join_points(const ir::PrimFunc& f) {
  if (!ir::uses_tokens(f->body)) return f;
  const pass::Machine machine = machine_of(generic_target_info(), "ref");
  ir::PrimFunc out = pass::place_allocations(pass::lower_init(f), machine);
  out = pass::lower_match_buffers(pass::convert_blocks(out));
  return pass::unify_thread_binding(out, machine);
}

}  // namespace weft
