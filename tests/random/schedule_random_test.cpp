// SPDX-License-Identifier: Apache-2.0
// Random programs under random steps, against the interpreter: whatever is accepted must keep the
// results, print and parse faithfully, and replay; whatever is refused must leave the program as it
// was. One seed per program; a failure prints it together with the trace.

#include <map>

#include "programs.h"
#include "weft/ir/visit.h"

namespace weft::schedule::testing {
namespace {

/// The program with every parallel, vectorized or bound loop run backwards: independent iterations
/// do not notice. Loops that feed a reduction (bound to an axis that reduces) keep their order,
/// which init needs.
class Backwards final : public ir::Rewriter {
 public:
  int turned = 0;

 protected:
  ir::Stmt rewrite_for(const ir::Stmt& s) override {
    const ir::Stmt changed = ir::Rewriter::rewrite_for(s);
    const auto* loop = ir::as<ir::ForNode>(changed);
    if (loop->for_kind == ir::ForKind::serial || loop->for_kind == ir::ForKind::unrolled)
      return changed;
    for (const Leaf& leaf : leaves(changed)) {
      for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
        if (leaf.block()->iters[i].kind != ir::IterKind::spatial &&
            ir::uses_var(leaf.realize->iter_values[i], loop->var.get()))
          return changed;
      }
    }
    ++turned;
    const ir::Expr mirrored = loop->extent - 1 - ir::Expr(loop->var);
    return with_body(loop, ir::substitute(loop->body, {{loop->var.get(), mirrored}}));
  }
};

TEST(schedule_random, random_schedules_keep_results) {
  constexpr std::uint32_t kFirst = 1, kCount = 4000;
  std::map<std::string, int> accepted, refused;
  int turned = 0;
  for (std::uint32_t seed = kFirst; seed < kFirst + kCount && !HasFailure(); ++seed) {
    Random random(seed);
    const std::string program = random_program(random);
    const ir::PrimFunc start = parse(program);
    Schedule sch(start);
    sch.set_verifying(true);
    Driver driver(sch, random);
    const int steps = random.between(4, 22);
    try {
      for (int i = 0; i < steps; ++i) {
        const std::uint64_t before = ir::structural_hash(sch.mod());
        try {
          const std::string name = driver.step();
          if (!name.empty()) ++accepted[name];
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::schedule) throw;
          ++refused[driver.last];
          ASSERT_EQ(ir::structural_hash(sch.mod()), before) << "seed " << seed << " " << e.what();
        }
      }
      ASSERT_TRUE(ir::structural_equal(ir::parse_func(ir::print(sch.func())), sch.func()))
          << "seed " << seed << "\n"
          << sch.show();
      expect_same_results(start, sch.func(), seed);
      Backwards backwards;
      auto mirrored = ir::edit(sch.func());
      mirrored->body = backwards.rewrite(mirrored->body);
      turned += backwards.turned;
      if (backwards.turned > 0) expect_same_results(start, mirrored, seed);
      expect_replays(sch, start);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
    if (HasFailure()) {
      std::string text;
      const Json json = sch.trace().to_json();
      for (const Json& step : json.at("steps").as_array()) {
        if (!step.at(0).as_string().starts_with("get_")) text += step.dump() + "\n";
      }
      FAIL() << "seed " << seed << "\n" << program << text << sch.show();
    }
  }
  EXPECT_GT(turned, 100);
  for (const char* name : {"split",
                           "fuse",
                           "reorder",
                           "parallel",
                           "vectorize",
                           "unroll",
                           "bind",
                           "cache_read",
                           "cache_write",
                           "compute_at",
                           "reverse_compute_at",
                           "compute_inline",
                           "reverse_compute_inline",
                           "decompose_reduction",
                           "rfactor",
                           "transform_layout",
                           "blockize",
                           "split_tail",
                           "loop_partition",
                           "merge",
                           "reorder_block_iter_var",
                           "transform_block_layout",
                           "reindex",
                           "read_at",
                           "write_at",
                           "pad_einsum"}) {
    EXPECT_GT(accepted[name], 10) << name;
    EXPECT_GT(refused[name], name == std::string("unroll") ? -1 : 0) << name;
    RecordProperty(std::string(name) + "_accepted", accepted[name]);
    RecordProperty(std::string(name) + "_refused", refused[name]);
  }
}

}  // namespace
}  // namespace weft::schedule::testing
