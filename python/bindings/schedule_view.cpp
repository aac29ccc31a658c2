// SPDX-License-Identifier: Apache-2.0
// What a schedule's block or loop is, as plain Python values: for tuners and for people.

#include <nanobind/stl/string.h>

#include "program.h"
#include "shown.h"
#include "weft/schedule/schedule.h"

namespace weft::py {

namespace {

using schedule::BlockRef;
using schedule::LoopRef;
using schedule::Path;

nb::object extent_of(const ir::Expr& e) {
  std::int64_t value = 0;
  if (ir::is_const_int(e, &value)) return nb::int_(value);
  return nb::none();
}

nb::list regions(const std::vector<ir::BufferRegion>& list) {
  nb::list out;
  for (const ir::BufferRegion& region : list) {
    nb::list shape;
    for (const ir::Expr& e : region.buffer->shape) shape.append(extent_of(e));
    nb::dict row;
    row["buffer"] = region.buffer->name;
    row["shape"] = shape;
    row["dtype"] = to_string(region.buffer->dtype);
    row["scope"] = region.buffer->scope;
    out.append(row);
  }
  return out;
}

nb::dict loop_view(const ir::ForNode& loop) {
  nb::dict out;
  out["name"] = loop.var->name;
  out["extent"] = extent_of(loop.extent);
  out["axis"] = loop.axis;
  return out;
}

nb::dict block_view(const ir::BlockNode& block) {
  nb::dict out;
  out["name"] = block.name;
  nb::list iters;
  for (const ir::IterVar& iter : block.iters) {
    nb::dict row;
    row["name"] = iter.var->name;
    row["kind"] = iter.kind == ir::IterKind::reduce    ? "R"
                  : iter.kind == ir::IterKind::spatial ? "S"
                                                       : "O";
    row["extent"] = extent_of(iter.dom.extent);
    iters.append(row);
  }
  out["iters"] = iters;
  out["reads"] = regions(block.reads);
  out["writes"] = regions(block.writes);
  out["has_init"] = static_cast<bool>(block.init);
  return out;
}

}  // namespace

nb::object schedule_view(const schedule::Schedule& s, nb::handle what) {
  Path path;
  BlockRef* block = nullptr;
  if (nb::try_cast<BlockRef*>(what, block) && block) {
    if (Verdict refusal = locate(s.state(), *block, path))
      throw Error(ErrorKind::schedule, std::move(*refusal));
    return block_view(*path.realize()->block);
  }
  LoopRef* loop = nullptr;
  if (nb::try_cast<LoopRef*>(what, loop) && loop) {
    if (Verdict refusal = locate(s.state(), *loop, path))
      throw Error(ErrorKind::schedule, std::move(*refusal));
    return loop_view(*path.loop());
  }
  throw Error(ErrorKind::dtype, "schedule.get.type",
              cat("neither a block nor a loop: ", shown(what)));
}

}  // namespace weft::py
