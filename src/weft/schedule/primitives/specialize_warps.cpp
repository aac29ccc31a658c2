// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/specialize_warps.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/schedule/primitives/warp_pipeline.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Drops the allocations of buffers that nothing uses any more.
class DropUnused final : public Rewriter {
 public:
  explicit DropUnused(std::vector<Buffer> gone) : gone_(std::move(gone)) {}

 protected:
  Block rewrite_block(const Block& block) override {
    Block inner = Rewriter::rewrite_block(block);
    auto out = edit(inner);
    std::erase_if(out->alloc_buffers, [&](const Buffer& b) {
      return std::find(gone_.begin(), gone_.end(), b) != gone_.end();
    });
    return out->alloc_buffers.size() == inner->alloc_buffers.size() ? inner : Block(out);
  }

 private:
  std::vector<Buffer> gone_;
};

Verdict check_options(const State& s, const SpecializeWarps& step, const ForNode* loop) {
  auto refused = [&](std::string found) {
    return refuse(s, "schedule.specialize_warps.options", cat("specialize_warps got ", found), loop)
        .note(
            "legal: clusters of 1, 2, 4 or 8 rows and columns of blocks, at most 8 blocks; blocks "
            "of at least 0, a multiple of the cluster's; "
            "group_rows of at least 1; registers: two multiples of 8 from 24 to 240; promote of at "
            "least 0");
  };
  const std::int64_t down = step.cluster.value, across = step.cluster_columns.value;
  auto legal = [](std::int64_t n) { return n == 1 || n == 2 || n == 4 || n == 8; };
  if (!legal(down) || !legal(across) || down * across > 8)
    return refused(across == 1 ? cat("clusters of ", down, " blocks")
                               : cat("clusters of ", down, " x ", across, " blocks"));
  const std::int64_t cluster = down * across;
  if (step.blocks.value % cluster)
    return refused(cat(step.blocks.value, " blocks in clusters of ", cluster));
  if (step.blocks.value < 0) return refused(cat(step.blocks.value, " blocks"));
  if (step.group_rows.value < 1) return refused(cat(step.group_rows.value, " rows of a group"));
  if (step.promote.value < 0) return refused(cat("promote=", step.promote.value));
  bool fits = step.registers.size() == 2;
  for (std::int64_t n : step.registers) fits = fits && n >= 24 && n <= 240 && n % 8 == 0;
  if (fits) return std::nullopt;
  return refused(cat(step.registers.size(), " numbers of registers that do not fit"));
}

/// A processor has 512 registers for the threads of one number in all groups.
Verdict check_registers(const State& s, const WarpPipeline& p,
                        const std::vector<std::int64_t>& registers) {
  const std::int64_t groups = p.groups(), asked = registers[0] + groups * registers[1];
  if (groups == 1 || asked <= 512) return std::nullopt;
  return refuse(s, "schedule.specialize_warps.options",
                cat("specialize_warps got ", registers[0], " registers for threads that copy and ",
                    registers[1], " for those of ", groups, " groups that multiply"),
                p.steps)
      .note(cat("legal: the first and ", groups, " times the second are at most 512"))
      .repair(cat("registers=[32, ", (512 - 32) / groups / 8 * 8, "]"));
}

/// The blocks of a cluster differ in their rows, or columns, alone, and share the other operand's
/// tile in parts of whole pieces of 8 rows, in which it is swizzled.
Verdict check_cluster(const State& s, const WarpPipeline& p, std::int64_t blocks, bool rows) {
  if (blocks == 1) return std::nullopt;
  const char* option = rows ? "cluster" : "cluster_columns";
  const std::size_t axis = rows ? p.row : p.column;
  const PipelineOperand& operand = rows ? p.b : p.a;
  const ForNode* loop = p.loop_of(axis);
  bool shared = loop != nullptr;
  for (const Expr& e : operand.first) shared = shared && !uses_var(e, loop->var.get());
  for (std::size_t d = 0; d < p.origin.size(); ++d)
    shared = shared && (d == axis || !uses_var(p.origin[d], loop->var.get()));
  if (!shared)
    return refuse(s, "schedule.specialize_warps.cluster",
                  cat("specialize_warps: no loop of the grid moves the ", rows ? "rows" : "columns",
                      " of the tile alone, as the ", blocks, " blocks of a cluster do"),
                  p.steps)
        .note(cat("legal: one loop for ", rows ? "rows" : "columns",
                  " of tiles, on which the other operand does not depend"))
        .repair(cat(option, "=1"));
  const std::int64_t extent = rows ? p.columns : p.rows;
  if (!operand.rows_along_sum() || cluster_shares(extent, blocks)) return std::nullopt;
  return refuse(s, "schedule.specialize_warps.cluster",
                cat("specialize_warps: ", blocks, " blocks of a cluster cannot share the ", extent,
                    " rows of \"", operand.global->name, "\" in a tile"),
                p.steps)
      .note("legal: equal parts of a multiple of 8 rows")
      .repair(cat("tiles of ", (extent + 8 * blocks - 1) / (8 * blocks) * 8 * blocks, ", or ",
                  option, "=1"));
}

}  // namespace

Verdict SpecializeWarps::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  WEFT_TRY(check_options(s, *this, path.loop()));
  WarpPipeline found;
  found.promote = promote.value;
  WEFT_TRY(find_warp_pipeline(s, path, found));
  WEFT_TRY(check_registers(s, found, registers));
  WEFT_TRY(check_cluster(s, found, cluster.value, true));
  WEFT_TRY(check_cluster(s, found, cluster_columns.value, false));
  const WarpProgram program =
      make_warp_program(found, {blocks.value, group_rows.value, registers[0], registers[1],
                                cluster.value, cluster_columns.value});
  Stmt body = replace(path, program.nest, found.top);
  const auto used = used_buffers(body);
  for (const Buffer& b : found.gone) {
    if (!used.count(b.get())) continue;
    return refuse(s, "schedule.specialize_warps.store",
                  cat("specialize_warps: \"", b->name, "\" is used outside of the nest, too"),
                  path.loop())
        .note("legal: the sums and the copies in shared memory belong to one tile");
  }
  out.mod = with_body(s.mod, path.func, DropUnused(found.gone).rewrite(body));
  out.result = {{program.producer}, {program.consumer}};
  return std::nullopt;
}

}  // namespace weft::schedule
