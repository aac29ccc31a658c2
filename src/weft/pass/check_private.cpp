// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/check_private.h"

#include "weft/ir/attributes.h"
#include "weft/ir/build.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_private_parts.h"

namespace weft::pass {

using namespace ir;

bool is_axis(const ForNode* loop) {
  return loop->for_kind == ForKind::bound && !is_const_int_value(loop->extent, 1);
}

bool divides_points(const ForNode* loop, const Buffer& b, const TargetInfo& machine) {
  const MemoryInfo* row = machine.memory(b->scope);
  return is_axis(loop) && row && row->is_private_to(loop->axis);
}

PrimFunc check_private(const PrimFunc& f, const TargetInfo& machine, std::int64_t max_accesses) {
  if (has_flag(f->attrs, kPointsTogether) || uses_tokens(f->body)) return f;
  bool points = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* t = as<ForNode>(s)) points = points || is_axis(t);
  });
  if (!points) return f;
  PrivateBuffers open = unsettled_buffers(f->body, machine);
  if (!open.empty()) run_points(f->body, machine, std::move(open), max_accesses);
  return f;
}

}  // namespace weft::pass
