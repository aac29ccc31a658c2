// SPDX-License-Identifier: Apache-2.0
// Programs and targets that lowering and the C-like emitters must refuse, each by slug and text.
// The target is metal where a kernel language is meant: it needs no compiler and no card.

#include <gtest/gtest.h>

#include <functional>

#include "../../unit/lower_kit.h"
#include "weft/base/error.h"
#include "weft/ir/text.h"
#include "weft/pass/check_races.h"
#include "weft/schedule/schedule.h"
#include "weft/target/backend.h"
#include "weft/target/emit_c.h"
#include "weft/target/pipeline.h"

namespace weft {
namespace {

using namespace testing;

void expect_error(const std::function<void()>& f, const std::string& code,
                  const std::vector<std::string>& parts) {
  try {
    f();
    ADD_FAILURE() << "not refused, expected " << code;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << part << "\n" << e.what();
  }
}

void refuses(const std::string& target, const std::string& text, const std::string& code,
             const std::vector<std::string>& parts) {
  SCOPED_TRACE(code);
  expect_error([&] { build(make_module(parse_func(text)), target); }, code, parts);
}

/// A kernel of 8 threads in lowered form.
std::string kernel(const std::string& body, const std::string& axes = "\"threadIdx.x\": 8",
                   const std::string& params = "A: T.Buffer((8,), \"float32\")") {
  std::string out = "@T.prim_func(lowered=True)\ndef main(" + params +
                    "):\n    with T.launch(\"k\", {" + axes + "}) as t:\n";
  std::size_t at = 0;
  while (at < body.size()) {
    std::size_t end = std::min(body.find('\n', at), body.size());
    out += "        " + body.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

/// One bound loop around a block that copies A to B.
std::string bound(const std::string& axis, const std::string& extent, const std::string& more = "",
                  const std::string& scope = "global") {
  return "@T.prim_func\n"
         "def main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\"), n: T.int64):\n"
         "    L = T.alloc_buffer((64,), \"float32\", scope=\"" +
         scope + "\")\n" + more + "    for i in T.thread_binding(" + extent + ", thread=\"" + axis +
         "\"):\n"
         "        with T.block(\"B\"):\n"
         "            vi = T.axis.spatial(64, i)\n"
         "            B[vi] = A[vi]" +
         (more.empty() ? "" : " + L[vi]") + "\n";
}

TEST(LowerErrors, axes_and_scopes_that_the_target_lacks) {
  refuses("metal", bound("pe.x", "64"), "target.axis", {"\"pe.x\"", "metal", "threadIdx.x"});
  refuses("metal", bound("threadIdx.x", "64", "", "vta.inp"), "target.scope",
          {"\"L\"", "vta.inp", "shared"});
  refuses("metal", bound("vthread", "n"), "lower.virtual.extent", {"vthread", "constant extent"});
  refuses("metal",
          "@T.prim_func\n"
          "def main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n"
          "    for b in T.thread_binding(1, thread=\"blockIdx.x\"):\n"
          "        for i in T.thread_binding(64, thread=\"threadIdx.x\"):\n"
          "            with T.block(\"A\"):\n"
          "                vi = T.axis.spatial(64, i)\n"
          "                A[vi] = T.float32(1)\n"
          "        for i in T.thread_binding(32, thread=\"threadIdx.x\"):\n"
          "            with T.block(\"B\"):\n"
          "                vi = T.axis.spatial(64, i)\n"
          "                B[vi] = T.float32(2)\n",
          "lower.axis.extent", {"must agree", "64", "32"});
}

TEST(LowerErrors, one_axis_has_one_position) {
  const std::string nest =
      "@T.prim_func\n"
      "def main(A: T.Buffer((8, 8), \"float32\")):\n"
      "    for i in T.thread_binding(8, thread=\"threadIdx.x\"):\n";
  const std::string inner = "for j in T.thread_binding(8, thread=\"threadIdx.x\"):\n";
  refuses("metal",
          cat(nest, "        ", inner,
              "            with T.block(\"A\"):\n"
              "                vi, vj = T.axis.remap(\"SS\", [i, j])\n"
              "                A[vi, vj] = T.float32(1)\n"),
          "lower.axis.twice", {"\"A\"", "\"i\" and \"j\"", "threadIdx.x", "fuse"});
  // A condition decides as an index does.
  refuses("metal",
          cat(nest, "        if i < 3:\n            ", inner,
              "                with T.block(\"A\"):\n"
              "                    vj = T.axis.spatial(8, j)\n"
              "                    A[0, vj] = T.float32(1)\n"),
          "lower.axis.twice", {"\"A\"", "threadIdx.x"});
}

TEST(LowerErrors, memory_that_cannot_be_where_it_is_asked) {
  const std::string fill =
      "    for i in T.thread_binding(64, thread=\"blockIdx.x\"):\n"
      "        with T.block(\"L\"):\n"
      "            vi = T.axis.spatial(64, i)\n"
      "            L[vi] = A[vi]\n";
  refuses("metal", bound("blockIdx.x", "64", fill, "shared"), "lower.scope.host",
          {"\"L\"", "more than one kernel", "\"global\""});
  refuses("metal",
          kernel("L = T.allocate((8,), \"float32\", scope=\"global\")\nL[t] = A[t]\nA[t] = "
                 "L[7 - t]"),
          "emit.allocate", {"\"L\"", "inside kernel", "local"});
  refuses(
      "metal",
      kernel("L = T.allocate((n,), \"float32\", scope=\"local\")\nfor i in range(n):\n    L[i] = "
             "A[t]\nA[t] = L[n - 1]",
             "\"threadIdx.x\": 8", "A: T.Buffer((8,), \"float32\"), n: T.int64"),
      "emit.allocate", {"\"L\"", "not constant"});
}

TEST(LowerErrors, kernels_that_cannot_be_spelled) {
  refuses("metal", kernel("A[t] = A[t] * T.float32(2)", "\"pe.x\": 8"), "emit.axis",
          {"pe.x", "metal"});
  refuses("metal", kernel("assert A[t] > T.float32(0), \"positive\""), "emit.assert",
          {"\"positive\"", "metal"});
  refuses("metal", kernel("A[t] = T.erf(A[t])"), "emit.intrinsic", {"\"erf\"", "metal"});
  refuses("metal",
          kernel("with T.launch(\"inner\", {\"threadIdx.y\": 2}) as u:\n    A[t] = T.float32(1)"),
          "emit.statement", {"metal"});
  refuses("cuda:arch=sm_90",
          kernel("with T.async_(\"cp.async\", done):\n    A[t] = T.float32(1)\nT.wait(done, n)",
                 "\"threadIdx.x\": 8", "A: T.Buffer((8,), \"float32\"), n: T.int64"),
          "emit.wait", {"run time", "cuda"});
}

TEST(LowerErrors, barriers_and_races) {
  // Points that read each other's data under a condition on data would have to wait there.
  refuses("metal",
          kernel("S = T.allocate((8,), \"float32\", scope=\"shared\")\n"
                 "if A[t] > T.float32(0):\n"
                 "    S[t] = A[t]\n"
                 "    A[t] = S[7 - t]"),
          "lower.barrier.divergent", {"a condition on memory"});
  // One element for all points, but some may read it after others have written it.
  refuses("metal",
          kernel("S = T.allocate((8,), \"float32\", scope=\"shared\")\n"
                 "if A[0] > T.float32(0):\n"
                 "    S[t] = A[t]\n"
                 "    A[t] = S[7 - t]"),
          "lower.barrier.divergent", {"a condition on memory"});
  refuses("metal",
          kernel("S = T.allocate((1,), \"float32\", scope=\"shared\")\nS[0] = A[t]\nA[t] = S[0]"),
          "verify.race", {"race on shared memory", "write/write", "\"S\""});
}

TEST(LowerErrors, what_only_lowering_can_know) {
  refuses("metal",
          "@T.prim_func\n"
          "def main(A: T.Buffer((64,), \"float32\")):\n"
          "    for i in T.thread_binding(64, thread=\"threadIdx.x\"):\n"
          "        with T.block(\"A\"):\n"
          "            vi = T.axis.spatial(64, i)\n"
          "            T.execution(\"threadIdx.x\", 0, 96)\n"
          "            A[vi] = T.float32(1)\n",
          "lower.execution", {"\"A\"", "0 to 96", "which has 64 here", "threadIdx.x"});
  refuses("metal",
          "@T.prim_func\n"
          "def main(A: T.Buffer((64,), \"float32\")):\n"
          "    for i in T.thread_binding(64, thread=\"threadIdx.x\"):\n"
          "        with T.block(\"A\"):\n"
          "            vi = T.axis.spatial(64, i)\n"
          "            T.execution(\"threadIdx.y\", 0, 32)\n"
          "            A[vi] = T.float32(1)\n",
          "lower.execution", {"threadIdx.y, to which no loop around it is bound", "threadIdx.x"});
  refuses("c",
          "@T.prim_func\n"
          "def main(A: T.Buffer((4, 8), \"float32\")):\n"
          "    for i in range(2):\n"
          "        with T.block(\"A\"):\n"
          "            vi = T.axis.spatial(2, i)\n"
          "            P = T.match_buffer(A[vi * 2:vi * 2 + 2, 0:8], (8,), \"float32\")\n"
          "            P[0] = T.float32(1)\n",
          "lower.match_buffer.rank", {"\"P\"", "\"A\"", "not 1"});
  refuses("metal",
          "@T.prim_func(lowered=True)\n"
          "def main(A: T.Buffer((8,), \"float32\")):\n"
          "    while A[0] > T.float32(0):\n"
          "        with T.launch(\"k\", {\"threadIdx.x\": 8}) as t:\n"
          "            A[t] = A[t] - T.float32(1)\n",
          "lower.host.statement", {"outside every kernel"});
}

TEST(LowerErrors, options_of_targets) {
  const std::string f = bound("threadIdx.x", "64");
  refuses("metal:speed=9", f, "metal.option.unknown", {"\"speed\"", "share_storage"});
  refuses("opencl:speed=9", f, "opencl.option.unknown",
          {"\"speed\"", "common_subexpression_elimination"});
  refuses("c:speed=9", f, "c.option.unknown", {"\"speed\"", "flags"});
  refuses("ref:speed=9", f, "ref.option.unknown", {"\"speed\""});
  refuses("metal:max_threads_per_block=many", f, "target.option.integer",
          {"max_threads_per_block", "\"many\""});
  expect_error([] { build(make_ref<IRModuleNode>(), "c"); }, "build.empty", {"no functions"});
}

TEST(LowerErrors, a_store_that_the_machine_lacks_is_an_ordinary_one_and_says_so) {
  Schedule sch(parse_func(bound("threadIdx.x", "64")));
  sch.annotate(sch.get_loops(sch.get_block("B"))[0], "nontemporal", Json(true));
  const std::string text = build(sch.mod(), "metal")->source();
  EXPECT_NE(text.find("/* nontemporal: metal has no such store, an ordinary one */"),
            std::string::npos)
      << text;
}

TEST(LowerErrors, switches_of_lowering_reach_the_pipeline) {
  const auto names = [](const std::string& text) {
    const Target target = Target::parse(text);
    std::vector<std::string> out;
    for (const pass::Pass& p : find_backend(target.name).pipeline(target)) out.push_back(p.name);
    return out;
  };
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  EXPECT_TRUE(has(names("cpu"), "share_storage"));
  EXPECT_TRUE(has(names("cpu"), "common_subexpression_elimination"));
  EXPECT_FALSE(has(names("cpu:share_storage=0"), "share_storage"));
  EXPECT_FALSE(
      has(names("metal:common_subexpression_elimination=0"), "common_subexpression_elimination"));
  EXPECT_FALSE(has(names("metal:merge_expressions=0"), "common_subexpression_elimination"));
}

TEST(LowerErrors, the_emitter_on_nodes_that_lowering_never_leaves) {
  CSpelling spelling;
  spelling.target = "test";
  spelling.types = {{"float32", "float"}, {"int64", "long"}};
  auto emit = [&](Stmt body, std::vector<Param> params) {
    auto f = edit(make_func("k", std::move(params), std::move(body)));
    emit_c({f}, spelling);
  };
  Buffer a = make_buffer("A", dtypes::float32, {make_int(4)}),
         h = make_buffer("H", dtypes::float64, {make_int(4)}),
         v = make_buffer("V", dtypes::float32.with_lanes(4), {make_int(4)});
  expect_error(
      [&] { emit(store(h, make_const(1.0, dtypes::float64), {make_int(0)}), {buffer_param(h)}); },
      "emit.dtype", {"test", "float64"});
  expect_error(
      [&] {
        emit(store(a, call("vector_reduce_add", {load(v, {make_int(0)})}), {make_int(0)}),
             {buffer_param(a), buffer_param(v)});
      },
      "emit.vector_buffer", {"\"V\"", "float32x4"});
}

TEST(LowerErrors, index_maps_and_foreign_references) {
  expect_error([] { schedule::IndexMap::parse("i, j: (j, i)"); }, "schedule.index_map.syntax",
               {"lambda", "form: lambda i, j"});
  Schedule one(parse_func(bound("threadIdx.x", "64"))),
      other(parse_func(bound("threadIdx.x", "64")));
  const auto loops = one.get_loops(one.get_block("B"));
  Schedule copy(one.mod());
  copy.unroll(loops[0]);
  expect_error([&] { copy.trace().as_python(); }, "schedule.trace.foreign", {"loop", "get_loops"});
}

}  // namespace
}  // namespace weft
