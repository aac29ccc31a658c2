// SPDX-License-Identifier: Apache-2.0
// rfactor of reductions over tuples and by users' combinations; layouts with padding.

#include "../expect_error.h"
#include "schedule_kit.h"

namespace weft::schedule::testing {
namespace {

/// The best of each row and where it stands; `better` decides between old (V) and new (A).
std::string arg_best(const std::string& better) {
  return "\n@T.prim_func\n"
         "def main(A: T.Buffer((3, 24), \"float32\"), J: T.Buffer((3, 24), \"float32\"), "
         "I: T.Buffer((3,), \"float32\"), V: T.Buffer((3,), \"float32\")):\n"
         "    for i, k in T.grid(3, 24):\n"
         "        with T.block(\"best\"):\n"
         "            vi, vk = T.axis.remap(\"SR\", [i, k])\n"
         "            with T.init():\n"
         "                I[vi] = T.float32(-1)\n"
         "                V[vi] = T.float32(-1000)\n"
         "            x: T.float32 = T.Select(" +
         better +
         ", I[vi], J[vi, vk])\n"
         "            y: T.float32 = T.Select(" +
         better +
         ", V[vi], A[vi, vk])\n"
         "            I[vi] = x\n"
         "            V[vi] = y\n";
}

TEST(schedule_reduction, rfactor_of_an_argmax) {
  for (const char* better : {"V[vi] >= A[vi, vk]", "V[vi] > A[vi, vk]", "A[vi, vk] < V[vi]",
                             "V[vi] > A[vi, vk] or (V[vi] == A[vi, vk] and I[vi] < J[vi, vk])"}) {
    const std::string text = arg_best(better);
    for (int half : {0, 1}) {
      // Distinct values leave no ties, so that every order of joining gives one answer.
      Schedule sch = make(text);
      const auto k = sch.split(sch.get_loops(sch.get_block("best"))[1], {None, 4});
      const BlockRef rf = sch.rfactor(k[static_cast<std::size_t>(half)], half);
      EXPECT_EQ(find_block(sch.mod(), rf)->realize()->block->writes.size(), 2u) << sch.show();
      EXPECT_TRUE(ir::structural_equal(ir::parse_func(ir::print(sch.func())), sch.func()));
      expect_replays(sch, parse(text));
      Tensors a = make_tensors(parse(text), 3);
      for (std::size_t i = 0; i < a.data[0].size(); ++i)
        a.data[0][i] = static_cast<float>(i * 29 % 73) - 40;  // 73 is prime: no two are equal
      Tensors b = a;
      ir::interpret(parse(text), a.args());
      ir::interpret(sch.func(), b.args());
      EXPECT_EQ(a.data[2], b.data[2]) << better << sch.show();
      EXPECT_EQ(a.data[3], b.data[3]) << better << sch.show();
    }
  }
}

TEST(schedule_reduction, rfactor_refuses_pairs_whose_parts_choose_differently) {
  const std::string text = arg_best("V[vi] >= A[vi, vk]");
  for (const auto& [old, other] : {std::pair{"I[vi], J[vi, vk])", "J[vi, vk], I[vi])"},
                                   std::pair{"V[vi], A[vi, vk])", "A[vi, vk], V[vi])"}}) {
    std::string mixed = text;
    mixed.replace(mixed.find(old), std::string(old).size(), other);
    Schedule sch = make(mixed);
    const BlockRef best = sch.get_block("best");
    weft::testing::expect_error(ErrorKind::schedule, "schedule.rfactor.combiner", {"best"},
                                [&] { sch.rfactor(sch.get_loops(best)[1], 0); });
  }
}

TEST(schedule_reduction, rfactor_of_pairs_of_sums_and_maxima) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((4, 12), "float32"), S: T.Buffer((4,), "float32"), M: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 12):
        with T.block("both"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
                M[vi] = T.float32(-1000)
            x: T.float32 = S[vi] + A[vi, vk] * T.float32(2)
            y: T.float32 = T.max(M[vi], A[vi, vk])
            S[vi] = x
            M[vi] = y
)";
  Schedule sch = make(text);
  const auto k = sch.split(sch.get_loops(sch.get_block("both"))[1], {None, 3});
  sch.rfactor(k[1], 0);
  expect_sound(sch, text);
}

const char* const kRowSums = R"(
@T.prim_func
def main(A: T.Buffer((3, 13), "float32"), S: T.Buffer((3,), "float32")):
    for i, k in T.grid(3, 13):
        with T.block("sums"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
)";

TEST(schedule_reduction, pad_reduction_lets_every_factor_divide) {
  Schedule sch = make(kRowSums);
  const LoopRef k = sch.get_loops(sch.get_block("sums"))[1];
  sch.pad_reduction(k, 8);
  EXPECT_NE(sch.show().find("T.grid(3, 16)"), std::string::npos) << sch.show();
  EXPECT_NE(sch.show().find("S[vi] + T.if_then_else(vk < 13, A[vi, vk], T.float32(0))"),
            std::string::npos)
      << sch.show();
  const auto parts = sch.split(k, {None, 4, 2});
  sch.rfactor(parts[2], 0);
  EXPECT_EQ(sch.show().find("T.where"), std::string::npos) << sch.show();
  expect_sound(sch, kRowSums);
  expect_replays(sch, parse(kRowSums));
}

TEST(schedule_reduction, pad_reduction_of_a_multiple_changes_nothing) {
  Schedule sch = make(kRowSums);
  const std::string before = sch.show();
  sch.pad_reduction(sch.get_loops(sch.get_block("sums"))[1], 1);
  EXPECT_EQ(sch.show(), before);
}

TEST(schedule_reduction, pad_reduction_of_an_argmax_never_finds_an_added_step) {
  const std::string text = arg_best("V[vi] >= A[vi, vk]");
  Schedule sch = make(text);
  const LoopRef k = sch.get_loops(sch.get_block("best"))[1];
  sch.pad_reduction(k, 7);
  sch.rfactor(sch.split(k, {None, 7})[1], 0);
  Tensors a = make_tensors(parse(text), 3);
  for (std::size_t i = 0; i < a.data[0].size(); ++i)
    a.data[0][i] = static_cast<float>(i * 29 % 73) - 90;  // all below zero, all distinct
  Tensors b = a;
  ir::interpret(parse(text), a.args());
  ir::interpret(sch.func(), b.args());
  EXPECT_EQ(a.data[2], b.data[2]) << sch.show();
  EXPECT_EQ(a.data[3], b.data[3]) << sch.show();
}

TEST(schedule_reduction, pad_reduction_refuses_what_it_cannot_fill) {
  Schedule sch = make(kRowSums);
  const auto loops = sch.get_loops(sch.get_block("sums"));
  expect_refused(sch, [&](Schedule& s) { s.pad_reduction(loops[0], 4); },
                 "schedule.pad_reduction.block",
                 {"a reduction with an init and a known combination", "\"i\""});
  expect_refused(sch, [&](Schedule& s) { s.pad_reduction(loops[1], 0); },
                 "schedule.pad_reduction.factor", {"got the factor 0"});
  const auto parts = sch.split(loops[1], {None, 2});
  expect_refused(sch, [&](Schedule& s) { s.pad_reduction(parts[1], 4); },
                 "schedule.pad_reduction.block", {"before they are split"});
}

/// (x + y + x*y) joins in any order: (1 + x)(1 + y) - 1.
std::string users(const std::string& vouched) {
  return "\n@T.prim_func\n"
         "def main(A: T.Buffer((3, 6), \"float32\"), P: T.Buffer((3,), \"float32\")):\n"
         "    for i, k in T.grid(3, 6):\n"
         "        with T.block(\"P\"):\n"
         "            vi, vk = T.axis.remap(\"SR\", [i, k])\n" +
         vouched +
         "            with T.init():\n"
         "                P[vi] = T.float32(0)\n"
         "            P[vi] = P[vi] + A[vi, vk] + P[vi] * A[vi, vk]\n";
}

TEST(schedule_reduction, a_users_reducer_is_taken_when_its_block_vouches_for_it) {
  const std::string text = users("            T.block_attr({\"commutative_reducer\": True})\n");
  Schedule sch = make(text);
  const auto k = sch.split(sch.get_loops(sch.get_block("P"))[1], {None, 2});
  sch.rfactor(k[1], 1);
  expect_sound(sch, text);

  // x + x * y starts from 0 and never leaves it: samples disprove the promise.
  std::string squares = users("            T.block_attr({\"commutative_reducer\": True})\n");
  const std::string from = "P[vi] + A[vi, vk] + P[vi] * A[vi, vk]";
  squares.replace(squares.find(from), from.size(), "P[vi] + A[vi, vk] * A[vi, vk] * P[vi]");
  Schedule wrong = make(squares);
  expect_refused(wrong, [](Schedule& s) { s.rfactor(s.get_loops(s.get_block("P"))[1], 0); },
                 "schedule.rfactor.combiner", {"\"P\""});

  Schedule unknown = make(users(""));
  expect_refused(unknown, [](Schedule& s) { s.rfactor(s.get_loops(s.get_block("P"))[1], 0); },
                 "schedule.rfactor.combiner", {"\"P\"", "commutative_reducer"});
}

TEST(schedule_reduction, blockize_joins_blocks_that_follow_each_other) {
  const std::string text = two_stages(6, 8);
  Schedule sch = make(text);
  const BlockRef b = sch.get_block("B"), c = sch.get_block("C");
  sch.compute_at(b, sch.get_loops(c)[0]);
  const BlockRef both = sch.blockize({b, c});
  const auto path = find_block(sch.mod(), both);
  EXPECT_EQ(path->realize()->block->iters.size(), 1u) << sch.show();
  EXPECT_EQ(sch.get_child_blocks(both).size(), 2u);
  EXPECT_EQ(sch.get_loops(both).size(), 1u);
  expect_sound(sch, text);

  Schedule apart = make(text);
  expect_refused(apart,
                 [](Schedule& s) {
                   s.blockize({s.get_block("C"), s.get_block("B")});
                 },
                 "schedule.blockize.siblings", {"\"C\", \"B\"", "one after the other"});
  expect_refused(apart, [](Schedule& s) { s.blockize(std::vector<BlockRef>{}); },
                 "schedule.blockize.empty", {"empty list"});
}

TEST(schedule_reduction, blockize_keeps_the_predicate_of_whole_tiles) {
  const std::string text = vector_add(24);
  Schedule sch = make(text);
  const auto i = sch.split(sch.get_loops(sch.get_block("C"))[0], {None, 2, 4});
  const auto again = sch.split(sch.fuse({i[0], i[1]}), {None, 4});  // 6 tiles by 4: a predicate
  const BlockRef tile = sch.blockize(i[2]);
  EXPECT_NE(sch.show().find("T.where("), std::string::npos) << sch.show();
  EXPECT_EQ(find_block(sch.mod(), tile)->realize()->block->iters.size(), 1u);
  EXPECT_EQ(again.size(), 2u);
  expect_sound(sch, text);
}

TEST(schedule_reduction, padding_is_filled_after_the_writer) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((10, 6), "float32"), C: T.Buffer((10, 6), "float32")):
    B = T.alloc_buffer((10, 6), "float32")
    for i, j in T.grid(10, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(10, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
)";
  Schedule sch = make(text);
  sch.transform_layout(sch.get_block("B"), {"write", 0, ""},
                       IndexMap::parse("lambda i, j: (j, i // 4, i % 4)"), Json(7));
  const std::string shown = sch.show();
  EXPECT_NE(shown.find("(6, 3, 4)"), std::string::npos) << shown;
  EXPECT_NE(shown.find("T.block(\"B_pad\")"), std::string::npos) << shown;
  EXPECT_NE(shown.find("T.float32(7"), std::string::npos) << shown;
  expect_sound(sch, text);

  Schedule plain = make(text);
  expect_refused(plain,
                 [](Schedule& s) {
                   s.transform_layout(s.get_block("B"), {"write", 0, ""},
                                      IndexMap::parse("lambda i, j: (j, i // 4, i % 4)"));
                 },
                 "schedule.transform_layout.bijective", {"not one to one", "pad_value"});
  expect_refused(plain,
                 [](Schedule& s) {
                   s.transform_layout(s.get_block("B"), {"write", 0, ""},
                                      IndexMap::parse("lambda i, j: (j, i // 4, i % 4)"),
                                      Json("seven"));
                 },
                 "schedule.transform_layout.pad_value", {"\"seven\"", "a number"});
}

TEST(schedule_reduction, the_padding_of_a_parameter_holds_the_value) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
    for i in range(10):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = A[vi] * T.float32(2)
)";
  Schedule sch = make(text);
  sch.transform_layout(sch.get_block("C"), {"write", 0, ""},
                       IndexMap::parse("lambda i: (i // 4, i % 4)"), Json(-5));
  std::vector<float> a(10), c(12, 99.0f);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i) - 3;
  ir::InterpretArg in, out;
  in.data = a.data();
  in.shape = {10};
  out.data = c.data();
  out.shape = {3, 4};
  std::vector<ir::InterpretArg> args{in, out};
  ir::interpret(sch.func(), args);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(c[i], a[i] * 2) << i;
  EXPECT_EQ(c[10], -5);
  EXPECT_EQ(c[11], -5);
}

// ---- decompose_reduction

TEST(schedule_reduction, a_loop_that_runs_once_leaves_the_predicate_of_the_initialisation) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((5, 1), "float32"), B: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 1):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(k < 1 and i * 2 < 7)
            with T.init():
                B[vi] = T.float32(1)
            B[vi] = B[vi] + A[vi, vk]
)";
  Schedule sch = make(text);
  sch.decompose_reduction(sch.get_block("B"), sch.get_loops(sch.get_block("B"))[0]);
  EXPECT_TRUE(ir::structural_equal(ir::parse_func(ir::print(sch.func())), sch.func()));
  expect_sound(sch, text);
}

// ---- compute_inline

TEST(schedule_reduction, a_buffer_that_is_only_said_to_be_read_can_be_inlined) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
    B = T.alloc_buffer((5,), "float32")
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            T.reads(A[vi], B[vi])
            T.writes(C[vi])
            C[vi] = A[vi]
)";
  Schedule sch(parse(text));
  sch.compute_inline(sch.get_block("B"));
  EXPECT_EQ(sch.show().find("B[vi]"), std::string::npos) << sch.show();
  expect_sound(sch, text);
}

}  // namespace
}  // namespace weft::schedule::testing
