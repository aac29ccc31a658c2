// SPDX-License-Identifier: Apache-2.0
// The check that runs every step. No legal step changes a result, so wrong programs are handed to
// it directly: one planted fault for each kind a wrong rule might let through.
#include "weft/schedule/run_check.h"

#include "schedule_kit.h"
#include "weft/ir/build.h"

namespace weft::schedule::testing {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(RunCheck, PlantedFaultsAreFound) {
  const std::string right = matmul(6, 5, 7);
  RunCheck check(ir::make_module(parse(right)), 3, 1'000'000);
  EXPECT_FALSE(check.compare(ir::make_module(parse(right))));
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"T.grid(6, 5, 7)", "T.grid(6, 5, 6)"},             // a lost iteration
      {"A[vi, vk] * B[vk, vj]", "A[vi, vk] * B[vk, 0]"},  // a wrong element
      {"T.float32(0)", "T.float32(1)"},                   // a wrong start
      {"C[vi, vj] + A", "C[vi, vj] - A"},                 // a wrong operation
  };
  for (const auto& [from, to] : faults) {
    const Verdict found = check.compare(ir::make_module(parse(replaced(right, from, to))));
    ASSERT_TRUE(found) << to;
    EXPECT_EQ(found->code, "schedule.check.differs");
    EXPECT_NE(found->message.find("\"C\""), std::string::npos) << found->message;
  }
  EXPECT_EQ(check.compared(), 5);
}

TEST(RunCheck, RoundingOfAReorderedSumIsNoFault) {
  const std::string right = matmul(2, 2, 4);
  RunCheck check(ir::make_module(parse(right)), 3, 1'000'000);
  const std::string scaled =
      replaced(right, "A[vi, vk] * B", "A[vi, vk] * T.float32(1.0000001) * B");
  EXPECT_FALSE(check.compare(ir::make_module(parse(scaled))));
}

TEST(RunCheck, AScheduleUnderTheCheckGivesTheSameProgram) {
  const std::string text = matmul(9, 10, 11);
  Schedule plain = make(text), checked = make(text);
  checked.check_by_running(7);
  for (Schedule* sch : {&plain, &checked}) {
    const BlockRef block = sch->get_block("C");
    const auto loops = sch->get_loops(block);
    const auto i = sch->split(loops[0], {None, 4});
    sch->reorder({i[0], loops[1], loops[2], i[1]});
    sch->decompose_reduction(block, loops[2]);
    sch->unroll(i[1]);
  }
  EXPECT_TRUE(ir::structural_equal(plain.mod(), checked.mod()));
  ASSERT_TRUE(checked.run_check());
  EXPECT_EQ(checked.run_check()->compared(), 4);
  EXPECT_FALSE(plain.run_check());
}

}  // namespace
}  // namespace weft::schedule::testing
