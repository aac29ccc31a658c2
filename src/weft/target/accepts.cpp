// SPDX-License-Identifier: Apache-2.0
#include "weft/target/accepts.h"

#include <algorithm>
#include <unordered_set>

#include "weft/ir/visit.h"

namespace weft {

using namespace ir;

Verdict accepts_rows(const PrimFunc& f, const TargetInfo& info) {
  Verdict out;
  std::unordered_set<const BufferNode*> seen;
  auto refuse = [&](std::string_view slug, std::string message,
                    const std::vector<std::string>& legal) {
    if (out) return;
    Refusal r;
    r.code = slug;
    r.message = std::move(message);
    r.note(cat("legal: ", legal.empty() ? "none" : join(legal)));
    out = std::move(r);
  };
  auto check = [&](const Buffer& b) {
    if (!b || !seen.insert(b.get()).second) return;
    if (std::find(info.dtypes.begin(), info.dtypes.end(), b->dtype.element()) ==
        info.dtypes.end()) {
      std::vector<std::string> legal;
      for (DType t : info.dtypes) legal.push_back(to_string(t));
      refuse("target.dtype",
             cat("buffer \"", b->name, "\" is ", to_string(b->dtype), ", which ", info.name,
                 " cannot compute with"),
             legal);
    }
    if (!info.memory(b->scope)) {
      std::vector<std::string> legal;
      for (const MemoryInfo& m : info.memories) legal.push_back(m.scope);
      refuse("target.scope",
             cat("buffer \"", b->name, "\" lies in scope \"", b->scope, "\", which ", info.name,
                 " does not have"),
             legal);
    }
  };
  for (const Param& p : f->params) check(p.buffer);
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) check(t->buffer);
    if (const auto* t = as<AllocateNode>(s)) check(t->buffer);
    if (const auto* t = as<BlockRealizeNode>(s)) {
      for (const Buffer& b : t->block->alloc_buffers) check(b);
    }
    const auto* loop = as<ForNode>(s);
    if (loop && loop->for_kind == ForKind::bound && !info.axis(loop->axis)) {
      std::vector<std::string> legal;
      for (const AxisInfo& a : info.axes) legal.push_back(a.name);
      refuse("target.axis",
             cat("loop \"", loop->var->name, "\" is bound to \"", loop->axis, "\", which ",
                 info.name, " does not have"),
             legal);
    }
  });
  return out;
}

}  // namespace weft
