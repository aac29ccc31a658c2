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
            "legal: a cluster of 1, 2 or 4; blocks of at least 0, a multiple of the cluster; "
            "group_rows of at least 1; registers: two multiples of 8 from 24 to 240; promote of at "
            "least 0");
  };
  const std::int64_t cluster = step.cluster.value;
  if (cluster != 1 && cluster != 2 && cluster != 4)
    return refused(cat("clusters of ", cluster, " blocks"));
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

/// The blocks of a cluster differ in their rows alone.
Verdict check_cluster(const State& s, const WarpPipeline& p, std::int64_t cluster) {
  if (cluster == 1) return std::nullopt;
  const ForNode* rows = p.loop_of(p.row);
  bool shared = rows != nullptr;
  for (const Expr& e : p.b.first) shared = shared && !uses_var(e, rows->var.get());
  for (std::size_t d = 0; d < p.origin.size(); ++d)
    shared = shared && (d == p.row || !uses_var(p.origin[d], rows->var.get()));
  if (shared) return std::nullopt;
  return refuse(s, "schedule.specialize_warps.cluster",
                cat("specialize_warps: no loop of the grid moves the rows of the tile alone, as "
                    "the ",
                    cluster, " blocks of a cluster do"),
                p.steps)
      .note("legal: one loop for rows of tiles, on which the other operand does not depend")
      .repair("cluster=1");
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
  WEFT_TRY(check_cluster(s, found, cluster.value));
  const WarpProgram program = make_warp_program(
      found, {blocks.value, group_rows.value, registers[0], registers[1], cluster.value});
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
