// SPDX-License-Identifier: Apache-2.0
// Values that points would have to exchange through memory of which each has its own copy.

#include <gtest/gtest.h>

#include "lower_kit.h"
#include "weft/base/error.h"
#include "weft/ir/text.h"
#include "weft/pass/check_private.h"
#include "weft/target/pipeline.h"

namespace weft {
namespace {

using namespace testing;

/// A program on 2 groups of 8 threads: L is written by `write` and read by `read`, where t is the
/// thread's variable of each nest (tx, ty) and r the serial loop of the reading one.
std::string two_nests(const std::string& write, const std::string& read,
                      const std::string& scope = "local") {
  return "@T.prim_func\n"
         "def main(A: T.Buffer((2, 8), \"float32\"), B: T.Buffer((2, 8), \"float32\")):\n"
         "    L = T.alloc_buffer((2, 8), \"float32\", scope=\"" +
         scope +
         "\")\n"
         "    for b in T.thread_binding(2, thread=\"blockIdx.x\"):\n"
         "        for tx in T.thread_binding(8, thread=\"threadIdx.x\"):\n"
         "            with T.block(\"L\"):\n"
         "                vb, vi = T.axis.remap(\"SS\", [b, tx])\n"
         "                L[vb, " +
         write +
         "] = A[vb, vi] * T.float32(2)\n"
         "        for ty in T.thread_binding(8, thread=\"threadIdx.x\"):\n"
         "            with T.block(\"B\"):\n"
         "                vb, vi = T.axis.remap(\"SS\", [b, ty])\n"
         "                B[vb, vi] = L[vb, " +
         read + "]\n";
}

std::string lower(const std::string& text) {
  try {
    PrimFunc f = parse_func(text);
    for (const pass::Pass& p : standard_pipeline(generic_target_info())) f = p.run(f);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "lower.private.exchanged") << e.what();
    return e.what();
  }
}

TEST(CheckPrivate, refuses_a_value_that_another_thread_wrote) {
  const std::string text = lower(two_nests("vi", "7 - vi"));
  for (const char* part :
       {"\"L\" of scope \"local\"", "threadIdx.x", "written at blockIdx.x = 0, threadIdx.x = 7",
        "read at blockIdx.x = 0, threadIdx.x = 0", "7 - ", "set_scope", "compute_at"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(lower(two_nests("vi", "(vi + 1) % 8")), "");
  EXPECT_NE(lower(two_nests("7 - vi", "vi")), "");
}

TEST(CheckPrivate, refuses_one_element_that_all_threads_write) {
  // Each reads its own copy, where the program means the last writer's value.
  EXPECT_NE(lower(two_nests("0", "0")), "");
}

TEST(CheckPrivate, accepts_what_stays_with_its_thread) {
  EXPECT_EQ(lower(two_nests("vi", "vi")), "");
  EXPECT_EQ(lower(two_nests("7 - vi", "7 - vi")), "");
  EXPECT_EQ(lower(two_nests("(vi + 3) % 8", "(vi + 3) % 8")), "");
}

TEST(CheckPrivate, leaves_programs_whose_points_run_together_alone) {
  PrimFunc f = parse_func(two_nests("vi", "7 - vi"));
  auto together = ir::edit(f);
  together->attrs = ir::with_annotation(f->attrs, pass::kPointsTogether, true);
  f = together;
  EXPECT_NO_THROW({
    for (const pass::Pass& p : standard_pipeline(generic_target_info())) f = p.run(f);
  });
}

TEST(CheckPrivate, shared_memory_is_what_threads_exchange_through) {
  EXPECT_EQ(lower(two_nests("vi", "7 - vi", "shared")), "");
  const std::string across = lower(
      "@T.prim_func\n"
      "def main(A: T.Buffer((4, 8), \"float32\"), B: T.Buffer((4, 8), \"float32\")):\n"
      "    S = T.alloc_buffer((4, 8), \"float32\", scope=\"shared\")\n"
      "    for b in T.thread_binding(4, thread=\"blockIdx.x\"):\n"
      "        for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n"
      "            with T.block(\"S\"):\n"
      "                vb, vi = T.axis.remap(\"SS\", [b, t])\n"
      "                S[vb, vi] = A[vb, vi]\n"
      "        for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n"
      "            with T.block(\"B\"):\n"
      "                vb, vi = T.axis.remap(\"SS\", [b, t])\n"
      "                B[vb, vi] = S[T.max(vb - 1, 0), vi]\n");
  EXPECT_NE(across.find("blockIdx.x"), std::string::npos) << across;
  EXPECT_NE(across.find("\"global\""), std::string::npos) << across;
}

TEST(CheckPrivate, an_exchange_inside_one_nest_is_seen) {
  // Iteration t reads what iteration t - 1 wrote: loops mean that, threads do not have it.
  const char* const program =
      "@T.prim_func\n"
      "def main(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")):\n"
      "    L = T.alloc_buffer((8,), \"float32\", scope=\"local\")\n"
      "    for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n"
      "        with T.block(\"L\"):\n"
      "            vi = T.axis.spatial(8, t)\n"
      "            L[vi] = A[vi]\n"
      "        with T.block(\"B\"):\n"
      "            vi = T.axis.spatial(8, t)\n"
      "            B[vi] = L[T.max(vi - 1, 0)]\n";
  EXPECT_NE(lower(program).find("threadIdx.x = 1"), std::string::npos) << lower(program);
}

TEST(CheckPrivate, per_thread_tiles_and_windows_pass) {
  // Each thread fills four elements and reads them in another order and another loop shape.
  EXPECT_EQ(lower("@T.prim_func\n"
                  "def main(A: T.Buffer((32,), \"float32\"), B: T.Buffer((32,), \"float32\")):\n"
                  "    L = T.alloc_buffer((32,), \"float32\", scope=\"local\")\n"
                  "    for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n"
                  "        for i in range(4):\n"
                  "            with T.block(\"L\"):\n"
                  "                vi = T.axis.spatial(32, t * 4 + i)\n"
                  "                L[vi] = A[vi]\n"
                  "        for i, j in T.grid(2, 2):\n"
                  "            with T.block(\"B\"):\n"
                  "                vi = T.axis.spatial(32, t * 4 + i * 2 + j)\n"
                  "                B[vi] = L[vi // 4 * 4 + (3 - vi % 4)]\n"),
            "");
  // Overlapping windows: every thread computes all that it reads.
  EXPECT_EQ(lower("@T.prim_func\n"
                  "def main(A: T.Buffer((34,), \"float32\"), B: T.Buffer((32,), \"float32\")):\n"
                  "    L = T.alloc_buffer((34,), \"float32\", scope=\"local\")\n"
                  "    for t in T.thread_binding(32, thread=\"threadIdx.x\"):\n"
                  "        for i in range(3):\n"
                  "            with T.block(\"L\"):\n"
                  "                vi = T.axis.spatial(34, t + i)\n"
                  "                L[vi] = A[vi]\n"
                  "        with T.block(\"B\"):\n"
                  "            vi = T.axis.spatial(32, t)\n"
                  "            B[vi] = L[vi] + L[vi + 1] + L[vi + 2]\n"),
            "");
}

TEST(CheckPrivate, a_reduction_in_a_private_accumulator_passes_and_virtual_threads_count) {
  const std::string head =
      "@T.prim_func\n"
      "def main(A: T.Buffer((8, 6), \"float32\"), B: T.Buffer((8,), \"float32\")):\n"
      "    L = T.alloc_buffer((8,), \"float32\", scope=\"local\")\n"
      "    for t in T.thread_binding(8, thread=\"";
  auto program = [&](const char* axis, const char* read) {
    return head + axis +
           "\"):\n"
           "        for k in range(6):\n"
           "            with T.block(\"L\"):\n"
           "                vi, vk = T.axis.remap(\"SR\", [t, k])\n"
           "                with T.init():\n"
           "                    L[vi] = T.float32(0)\n"
           "                L[vi] = L[vi] + A[vi, vk]\n"
           "        with T.block(\"B\"):\n"
           "            vi = T.axis.spatial(8, t)\n"
           "            B[vi] = L[" +
           read + "]\n";
  };
  EXPECT_EQ(lower(program("threadIdx.x", "vi")), "");
  EXPECT_EQ(lower(program("vthread", "vi")), "");
  EXPECT_NE(lower(program("vthread", "T.max(vi - 1, 0)")).find("vthread"), std::string::npos);
}

TEST(CheckPrivate, guards_of_several_conditions_are_followed) {
  // 31 is no multiple of 8: the last group fetches 7 columns, and element (0, 31), which is (1, 0)
  // when indices are flattened, is guarded away in both nests. Guards of several parts, of `or` and
  // of numbers made from them are followed like single ones.
  auto program = [](const std::string& fetched, const std::string& used) {
    return "@T.prim_func\n"
           "def main(A: T.Buffer((8, 31), \"float32\"), B: T.Buffer((31, 31), \"float32\")):\n"
           "    S = T.alloc_buffer((8, 31), \"float32\", scope=\"shared\")\n"
           "    for x in T.thread_binding(4, thread=\"blockIdx.x\"):\n"
           "        for y in T.thread_binding(4, thread=\"blockIdx.y\"):\n"
           "            for t in T.thread_binding(4, thread=\"threadIdx.x\"):\n"
           "                for r in range(4):\n"
           "                    for u in T.thread_binding(4, thread=\"threadIdx.x\"):\n"
           "                        for v in T.vectorized(4):\n"
           "                            with T.block(\"S\"):\n"
           "                                vr = T.axis.spatial(8, r * 2 + u // 2)\n"
           "                                vc = T.axis.spatial(31, y * 8 + v + u % 2 * 4)\n"
           "                                T.where(" +
           fetched +
           ")\n"
           "                                S[vr, vc] = A[vr, vc]\n"
           "                for i, j in T.grid(4, 4):\n"
           "                    with T.block(\"B\"):\n"
           "                        vi = T.axis.spatial(31, x * 8 + t // 2 * 4 + i)\n"
           "                        vj = T.axis.spatial(31, y * 8 + t % 2 * 4 + j)\n"
           "                        T.where(" +
           used +
           ")\n"
           "                        B[vi, vj] = S[vi % 8, vj]\n";
  };
  const std::string in = "y * 8 + v + u % 2 * 4 < 31", row = "x * 8 + t // 2 * 4 + i < 31",
                    column = "y * 8 + t % 2 * 4 + j < 31";
  EXPECT_EQ(lower(program(in, column)), "");
  EXPECT_EQ(lower(program(in, row + " and " + column)), "");
  EXPECT_EQ(lower(program(in, "not (31 <= y * 8 + t % 2 * 4 + j or " + row + " and x < 0)")), "");
  EXPECT_EQ(lower(program(in, "T.cast(" + column + ", \"int32\") == 1")), "");
  // A guard of two parts that lets the element through is an exchange between groups.
  const std::string across = lower(program(in, row + " and y * 8 + t % 2 * 4 + j < 32"));
  EXPECT_NE(across.find("written at blockIdx.x = 0, blockIdx.y = 0"), std::string::npos) << across;
}

}  // namespace
}  // namespace weft
