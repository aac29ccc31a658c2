// SPDX-License-Identifier: Apache-2.0
// Software pipelining, non-temporal stores, common subexpressions, storage sharing.

#include <gtest/gtest.h>

#include <random>

#include "../expect_error.h"
#include "lower_kit.h"
#include "weft/base/error.h"
#include "weft/ir/compare.h"
#include "weft/ir/interpret.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_races.h"
#include "weft/pass/narrow_indices.h"
#include "weft/pass/share_storage.h"
#include "weft/pass/validate.h"
#include "weft/target/pipeline.h"

namespace weft {
namespace {

using namespace testing;

TargetInfo with_queue() {
  TargetInfo info = generic_target_info();
  info.queues.push_back({"cp.async", true, "group", 0});
  return info;
}

TEST(Validate, a_pass_that_changes_a_result_is_named) {
  auto scaled = [](const char* value, const char* index = "v") {
    return ir::parse_func(cat(
        "@T.prim_func\ndef main(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")):\n"
        "    for i in range(8):\n        with T.block(\"B\"):\n            v = T.axis.spatial(8, "
        "i)\n"
        "            B[",
        index, "] = A[v] * T.float32(", value, ")\n"));
  };
  pass::Validator validator(scaled("2"), 1000);
  ASSERT_TRUE(validator.active());
  validator.check("same", scaled("2"));
  EXPECT_EQ(validator.checked(), 1);
  expect_error(ErrorKind::internal, "pass.changed",
               {"pass wrong changed what the function main computes", "of \"B\" is"},
               [&] { validator.check("wrong", scaled("3")); });
  expect_error(ErrorKind::internal, "pass.changed", {"after pass outside the function main faults"},
               [&] { validator.check("outside", scaled("2", "v + 1")); });
  EXPECT_FALSE(pass::Validator(scaled("2"), 3).active());  // more statements than allowed
  EXPECT_FALSE(pass::Validator(scaled("2"), 0).active());  // not asked for
  EXPECT_FALSE(pass::Validator(scaled("2", "v + 1"), 1000).active());  // has no result itself
  const pass::ValidationScope outer(7);
  {
    const pass::ValidationScope inner(0);
    EXPECT_EQ(pass::validation_steps(), 0);
  }
  EXPECT_EQ(pass::validation_steps(), 7);
}

/// C (32 sums over the steps): S is fetched by the threads, then used by all of them.
std::string staged(int steps, const std::string& annotations) {
  const std::string n = std::to_string(steps);
  return "@T.prim_func\n"
         "def main(A: T.Buffer((" +
         n +
         ", 32), \"float32\"), C: T.Buffer((32,), \"float32\")):\n"
         "    S = T.alloc_buffer((" +
         n +
         ", 32), \"float32\", scope=\"shared\")\n"
         "    for g in T.thread_binding(1, thread=\"blockIdx.x\"):\n"
         "        for t in T.thread_binding(32, thread=\"threadIdx.x\"):\n"
         "            with T.block(\"zero\"):\n"
         "                vi = T.axis.spatial(32, t)\n"
         "                C[vi] = T.float32(0)\n"
         "        for k in T.serial(0, " +
         n + ", annotations={" + annotations +
         "}):\n"
         "            for t in T.thread_binding(32, thread=\"threadIdx.x\"):\n"
         "                with T.block(\"S\"):\n"
         "                    vk, vi = T.axis.remap(\"SS\", [k, t])\n"
         "                    S[vk, vi] = A[vk, vi]\n"
         "            for t in T.thread_binding(32, thread=\"threadIdx.x\"):\n"
         "                with T.block(\"C\"):\n"
         "                    vi, vk = T.axis.remap(\"SR\", [t, k])\n"
         "                    C[vi] = C[vi] + S[vk, 31 - vi] * T.float32(2)\n";
}

struct Lowered {
  PrimFunc f;
  TargetInfo info;
};

Lowered lower(const std::string& text, const TargetInfo& info, LoweringOptions options = {}) {
  PrimFunc f = parse_func(text);
  for (const pass::Pass& p : standard_pipeline(info, options)) {
    f = p.run(f);
    Verdict bad = verify(f);
    EXPECT_FALSE(bad) << p.name << ": " << render(*bad) << "\n" << print(f);
  }
  return {f, info};
}

std::string refusal(const std::string& text, const TargetInfo& info = with_queue()) {
  try {
    lower(text, info);
    return "accepted";
  } catch (const Error& e) {
    return std::string(e.code()) + ": " + e.what();
  }
}

/// Parameters filled from one seed; the last one is what comes back.
std::vector<float> run(const PrimFunc& f, const PrimFunc& shapes) {
  std::vector<std::vector<float>> data;
  std::vector<InterpretArg> args;
  std::mt19937 rng(11);
  std::uniform_int_distribution<int> d(-4, 4);
  for (const Param& p : shapes->params) {
    std::int64_t count = 1, n = 0;
    for (const Expr& e : p.buffer->shape) {
      is_const_int(e, &n);
      count *= n;
    }
    data.emplace_back(static_cast<std::size_t>(count));
    for (float& x : data.back()) x = static_cast<float>(d(rng));
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    InterpretArg arg;
    arg.data = data[i].data();
    std::int64_t n = 0;
    for (const Expr& e : f->params[i].buffer->shape) {
      is_const_int(e, &n);
      arg.shape.push_back(n);
    }
    args.push_back(std::move(arg));
  }
  interpret(f, args);
  return data.back();
}

int count_of(const PrimFunc& f, StmtKind kind) {
  int n = 0;
  for_each_stmt(f->body, [&](const Stmt& s) { n += s->kind == kind; });
  return n;
}

int count_syncs(const PrimFunc& f) {
  int n = 0;
  for_each_expr(f->body, [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    n += c && c->op == "sync";
  });
  return n;
}

Buffer allocated(const PrimFunc& f, const std::string& name) {
  Buffer out;
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* a = as<AllocateNode>(s); a && a->buffer->name == name) out = a->buffer;
  });
  return out;
}

const char* const kDouble =
    "\"software_pipeline_stage\": [0, 1], \"software_pipeline_order\": [0, 1]";
const char* const kAsyncDouble =
    "\"software_pipeline_stage\": [0, 1], \"software_pipeline_order\": [0, 1], "
    "\"software_pipeline_async_stages\": [0]";
const char* const kAsyncDeep =
    "\"software_pipeline_stage\": [0, 2], \"software_pipeline_async_stages\": [0]";

TEST(PipelineLoops, keeps_results_and_is_free_of_races) {
  for (int steps : {1, 2, 3, 7, 20}) {
    const std::vector<float> want =
        run(parse_func(staged(steps, "")), parse_func(staged(steps, "")));
    for (const char* notes : {kDouble, kAsyncDouble, kAsyncDeep}) {
      const PrimFunc source = parse_func(staged(steps, notes));
      Lowered now = lower(staged(steps, notes), with_queue());
      EXPECT_EQ(run(now.f, source), want) << steps << " " << notes << "\n" << print(now.f);
      pass::RaceReport report = pass::check_races(now.f, now.info);
      EXPECT_TRUE(report.clean()) << steps << " " << notes << "\n" << report.text() << print(now.f);
      EXPECT_TRUE(report.unchecked.empty()) << report.text();
    }
  }
}

TEST(PipelineLoops, buffers_get_as_many_versions_as_iterations_are_alive) {
  EXPECT_TRUE(
      is_const_int_value(allocated(lower(staged(8, ""), with_queue()).f, "S")->shape[0], 32));
  EXPECT_TRUE(
      is_const_int_value(allocated(lower(staged(8, kDouble), with_queue()).f, "S")->shape[0], 64));
  EXPECT_TRUE(is_const_int_value(
      allocated(lower(staged(8, kAsyncDeep), with_queue()).f, "S")->shape[0], 96));
}

TEST(PipelineLoops, one_barrier_a_step_when_versions_are_apart) {
  // Without a pipeline a step fetches, meets, uses, meets.
  const PrimFunc plain = lower(staged(8, ""), with_queue()).f,
                 twice = lower(staged(8, kAsyncDouble), with_queue()).f;
  EXPECT_EQ(count_syncs(plain), 2) << print(plain);
  EXPECT_EQ(count_syncs(twice), 2) << print(twice);  // one in the steady loop, one in the epilogue
  EXPECT_EQ(count_of(twice, StmtKind::async), 2) << print(twice);
  EXPECT_EQ(count_of(twice, StmtKind::wait), 2) << print(twice);
  EXPECT_EQ(count_of(lower(staged(8, kAsyncDouble), generic_target_info()).f, StmtKind::async), 0)
      << "a machine without a queue runs the copies in order";
}

/// Without waits (or barriers) the race checker must see the unfinished copies.
class Drop final : public Rewriter {
 public:
  Drop(bool waits, bool syncs) : waits_(waits), syncs_(syncs) {}

 protected:
  Stmt rewrite_default(const Stmt& s) override {
    if (waits_ && s->kind == StmtKind::wait) return seq({});
    const auto* t = as<EvaluateNode>(s);
    const auto* c = t ? as<CallNode>(t->value) : nullptr;
    if (syncs_ && c && c->op == "sync") return seq({});
    return Rewriter::rewrite_default(s);
  }

 private:
  bool waits_, syncs_;
};

TEST(PipelineLoops, the_race_checker_sees_missing_waits_and_barriers) {
  for (const char* notes : {kAsyncDouble, kAsyncDeep}) {
    Lowered now = lower(staged(9, notes), with_queue());
    for (bool waits : {true, false}) {
      auto broken = edit(now.f);
      broken->body = Drop(waits, !waits).rewrite(now.f->body);
      pass::RaceReport report = pass::check_races(broken, now.info);
      ASSERT_FALSE(report.clean()) << notes << print(broken);
      EXPECT_EQ(report.races[0].buffer, "S");
      if (waits) {
        EXPECT_EQ(report.races[0].what, "read before the copy was waited for");
      }
    }
  }
}

TEST(PipelineLoops, a_copy_that_nobody_waits_for_is_reported) {
  const PrimFunc f = parse_func(
      "@T.prim_func(lowered=True)\n"
      "def main(A: T.Buffer((8,), \"float32\")):\n"
      "    with T.launch(\"k\", {\"threadIdx.x\": 8}) as t:\n"
      "        S = T.allocate((8,), \"float32\", scope=\"shared\")\n"
      "        with T.async_(\"cp.async\", done):\n"
      "            S[t] = A[t]\n"
      "        T.wait(done, 1)\n");
  pass::RaceReport report = pass::check_races(f, with_queue());
  ASSERT_EQ(report.races.size(), 1u) << report.text();
  EXPECT_EQ(report.races[0].what, "a copy that no wait finishes");
  EXPECT_EQ(report.races[0].buffer, "S");
}

TEST(PipelineLoops, refuses_what_would_change_the_result) {
  auto with = [](const std::string& notes) { return refusal(staged(8, notes)); };
  const std::string count = with("\"software_pipeline_stage\": [0, 1, 2]");
  EXPECT_NE(count.find("lower.pipeline.count"), std::string::npos) << count;
  EXPECT_NE(count.find("3 entries but the body has 2"), std::string::npos) << count;
  EXPECT_NE(with("\"software_pipeline_order\": [0, 1]").find("lower.pipeline.count"),
            std::string::npos);
  const std::string order =
      with("\"software_pipeline_stage\": [0, 1], \"software_pipeline_order\": [1, 1]");
  EXPECT_NE(order.find("lower.pipeline.order"), std::string::npos) << order;
  EXPECT_NE(order.find("no permutation of 0 to 1"), std::string::npos) << order;
  const std::string stage = with("\"software_pipeline_stage\": [0, -1]");
  EXPECT_NE(stage.find("lower.pipeline.stage"), std::string::npos) << stage;
  EXPECT_NE(stage.find("stage -1"), std::string::npos) << stage;
  const std::string raw = with("\"software_pipeline_stage\": [1, 0]");
  EXPECT_NE(raw.find("lower.pipeline.dependence"), std::string::npos) << raw;
  EXPECT_NE(raw.find("\"S\""), std::string::npos) << raw;
  std::string parallel = staged(8, kDouble);
  parallel.replace(parallel.find("T.serial(0"), 10, "T.parallel(0");
  const std::string kind = refusal(parallel);
  EXPECT_NE(kind.find("lower.pipeline.kind"), std::string::npos) << kind;
  // T is handed from one statement to the other across iterations: it is allocated outside.
  const std::string carried = refusal(
      "@T.prim_func\n"
      "def main(A: T.Buffer((8,), \"float32\"), D: T.Buffer((9,), \"float32\"), "
      "B: T.Buffer((8,), \"float32\")):\n"
      "    for k in T.serial(0, 8, annotations={\"software_pipeline_stage\": [0, 1]}):\n"
      "        with T.block(\"D\"):\n"
      "            vk = T.axis.scan(8, k)\n"
      "            D[vk + 1] = D[vk] + A[vk]\n"
      "        with T.block(\"B\"):\n"
      "            vk = T.axis.scan(8, k)\n"
      "            B[vk] = D[vk + 1]\n");
  EXPECT_NE(carried.find("lower.pipeline.carried"), std::string::npos) << carried;
  EXPECT_NE(carried.find("\"D\""), std::string::npos) << carried;
}

std::string annotated_copy(const std::string& annotation, const char* kind = "T.serial") {
  return std::string(
             "@T.prim_func\n"
             "def main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n"
             "    for i in T.serial(0, 8, annotations={") +
         annotation + "}):\n        for j in " + kind +
         "(0, 8):\n"
         "            with T.block(\"B\"):\n"
         "                vi = T.axis.spatial(64, i * 8 + j)\n"
         "                B[vi] = A[vi] + T.float32(1)\n";
}

TEST(MarkNontemporal, survives_every_pass_and_changes_no_value) {
  TargetInfo host = generic_target_info();
  host.axes.clear();
  for (const char* kind : {"T.serial", "T.vectorized", "T.unroll"}) {
    LoweringOptions options;
    options.vector_lanes = 8;
    const std::string text = annotated_copy("\"nontemporal\": True", kind);
    Lowered now = lower(text, host, options);
    int marked = 0;
    for_each_stmt(now.f->body, [&](const Stmt& s) {
      const auto* t = as<StoreNode>(s);
      const auto* c = t ? as<CallNode>(t->value) : nullptr;
      marked += c && c->op == "nontemporal";
    });
    EXPECT_EQ(marked, 1) << print(now.f);
    EXPECT_EQ(run(now.f, parse_func(text)), run(parse_func(text), parse_func(text)));
    EXPECT_TRUE(structural_equal(parse_func(print(now.f)), now.f)) << print(now.f);
  }
  EXPECT_EQ(print(lower(annotated_copy("\"nontemporal\": False"), host).f).find("nontemporal"),
            std::string::npos);
}

TEST(MarkNontemporal, refuses_odd_values_and_loops_that_store_nothing) {
  const std::string value = refusal(annotated_copy("\"nontemporal\": \"yes\""));
  EXPECT_NE(value.find("lower.nontemporal.value"), std::string::npos) << value;
  EXPECT_NE(value.find("neither True nor False"), std::string::npos) << value;
  const std::string nothing = refusal(
      "@T.prim_func\n"
      "def main(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")):\n"
      "    L = T.alloc_buffer((8,), \"float32\", scope=\"local\")\n"
      "    for i in T.serial(0, 8, annotations={\"nontemporal\": True}):\n"
      "        with T.block(\"L\"):\n"
      "            vi = T.axis.spatial(8, i)\n"
      "            L[vi] = A[vi]\n"
      "    for i in range(8):\n"
      "        with T.block(\"B\"):\n"
      "            vi = T.axis.spatial(8, i)\n"
      "            B[vi] = L[vi]\n");
  EXPECT_NE(nothing.find("lower.nontemporal.nothing"), std::string::npos) << nothing;
}

TEST(MergeExpressions, computes_equal_indices_once_and_keeps_the_meaning) {
  const std::string text =
      "@T.prim_func\n"
      "def main(A: T.Buffer((6, 40), \"float32\"), B: T.Buffer((6, 40), \"float32\")):\n"
      "    for i, j in T.grid(6, 40):\n"
      "        with T.block(\"B\"):\n"
      "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
      "            B[vi, vj] = (A[vi, vj // 3 * 3] + T.exp(A[vi, vj])) * "
      "(A[vi, vj // 3 * 3] + T.exp(A[vi, vj]))\n";
  TargetInfo host = generic_target_info();
  host.axes.clear();
  LoweringOptions off;
  off.common_subexpression_elimination = false;
  auto loads = [](const PrimFunc& f) {
    int n = 0;
    for_each_expr(f->body, [&](const Expr& e) { n += e->kind == ExprKind::load; });
    return n;
  };
  const PrimFunc plain = lower(text, host, off).f, merged = lower(text, host).f;
  EXPECT_EQ(loads(plain), 4) << print(plain);
  EXPECT_EQ(loads(merged), 2) << print(merged);
  EXPECT_GE(count_of(merged, StmtKind::let), 2) << print(merged);
  EXPECT_EQ(count_of(plain, StmtKind::let), 0) << print(plain);
  EXPECT_EQ(run(merged, parse_func(text)), run(plain, parse_func(text)));
}

TEST(MergeExpressions, moves_nothing_out_of_a_lazy_arm) {
  const std::string text =
      "@T.prim_func\n"
      "def main(A: T.Buffer((8,), \"float32\"), B: T.Buffer((16,), \"float32\")):\n"
      "    for i in range(16):\n"
      "        with T.block(\"B\"):\n"
      "            vi = T.axis.spatial(16, i)\n"
      "            B[vi] = T.if_then_else(vi < 8, A[vi] * A[vi] + A[vi], T.float32(0))\n";
  TargetInfo host = generic_target_info();
  host.axes.clear();
  const PrimFunc f = lower(text, host).f;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* t = as<LetStmtNode>(s);
    if (!t) return;
    for_each_expr(t->value, [&](const Expr& e) { EXPECT_NE(e->kind, ExprKind::load) << print(f); });
  });
  EXPECT_EQ(run(f, parse_func(text)), run(parse_func(text), parse_func(text)));
}

/// Two phases that need a shared tile each; the second starts when the first is over.
std::string two_phases(const char* use_again) {
  return std::string(
             "@T.prim_func\n"
             "def main(A: T.Buffer((64,), \"float32\"), D: T.Buffer((64,), \"float32\"), "
             "B: T.Buffer((64,), \"float32\")):\n"
             "    P = T.alloc_buffer((64,), \"float32\", scope=\"shared\")\n"
             "    Q = T.alloc_buffer((64,), \"float32\", scope=\"shared\")\n"
             "    for g in T.thread_binding(1, thread=\"blockIdx.x\"):\n"
             "        for t in T.thread_binding(64, thread=\"threadIdx.x\"):\n"
             "            with T.block(\"P\"):\n"
             "                vi = T.axis.spatial(64, t)\n"
             "                P[vi] = A[vi]\n"
             "        for t in T.thread_binding(64, thread=\"threadIdx.x\"):\n"
             "            with T.block(\"D\"):\n"
             "                vi = T.axis.spatial(64, t)\n"
             "                D[vi] = P[63 - vi]\n"
             "        for t in T.thread_binding(64, thread=\"threadIdx.x\"):\n"
             "            with T.block(\"Q\"):\n"
             "                vi = T.axis.spatial(64, t)\n"
             "                Q[vi] = A[vi] * T.float32(3)\n"
             "        for t in T.thread_binding(64, thread=\"threadIdx.x\"):\n"
             "            with T.block(\"B\"):\n"
             "                vi = T.axis.spatial(64, t)\n"
             "                B[vi] = Q[(vi + 5) % 64]") +
         use_again + "\n";
}

TEST(ShareStorage, disjoint_lifetimes_use_one_allocation_and_say_so) {
  const std::string text = two_phases("");
  Lowered now = lower(text, generic_target_info());
  EXPECT_EQ(count_of(now.f, StmtKind::allocate), 1) << print(now.f);
  const auto rows = pass::shared_storage(now.f);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].buffer, "P");
  EXPECT_EQ(rows[0].holds, std::vector<std::string>{"Q"});
  EXPECT_EQ(rows[0].saved_bytes, 256);
  EXPECT_EQ(run(now.f, parse_func(text)), run(parse_func(text), parse_func(text)));
  pass::RaceReport report = pass::check_races(now.f, now.info);
  EXPECT_TRUE(report.clean()) << report.text();
  LoweringOptions off;
  off.share_storage = false;
  EXPECT_EQ(count_of(lower(text, generic_target_info(), off).f, StmtKind::allocate), 2);
}

TEST(ConvertBlocks, matched_buffers_of_equal_rank_read_their_region) {
  const std::string text = R"(@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(3, 2):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4])
            T.writes(B[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4])
            M = T.match_buffer(A[vi * 2:vi * 2 + 2, vj * 4:vj * 4 + 4], (2, 4), "float32", strides=(8, 1), offset_factor=1)
            for x, y in T.grid(2, 4):
                B[vi * 2 + x, vj * 4 + y] = M[x, y] * T.float32(2)
)";
  Lowered now = lower(text, generic_target_info());
  EXPECT_EQ(run(now.f, parse_func(text)), run(parse_func(text), parse_func(text)));
}

TEST(InsertBarriers, atomic_additions_wait_for_stores_before_and_after_but_not_for_each_other) {
  const std::string text = R"(@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    H = T.alloc_buffer((64,), "float32", scope="shared")
    for g in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("zero"):
                vi = T.axis.spatial(64, t)
                H[vi] = T.float32(0)
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("one"):
                vi = T.axis.spatial(64, t)
                T.atomic_add(H[vi * 5 % 64], A[vi])
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("two"):
                vi = T.axis.spatial(64, t)
                T.atomic_add(H[vi * 7 % 64], A[vi])
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("read"):
                vi = T.axis.spatial(64, t)
                B[vi] = H[63 - vi]
)";
  const Lowered now = lower(text, generic_target_info());
  EXPECT_EQ(count_syncs(now.f), 2) << print(now.f);
  EXPECT_EQ(run(now.f, parse_func(text)), run(parse_func(text), parse_func(text)));
}

TEST(NarrowIndices, loops_are_as_wide_as_their_values) {
  const PrimFunc whole = parse_func(
      "@T.prim_func\ndef main(A: T.Buffer((T.int64(5000000000),), \"int8\")):\n"
      "    A[T.int64(0)] = T.int8(0)\n");
  Buffer a;
  for_each_stmt(whole->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) a = t->buffer;
  });
  ASSERT_TRUE(a);
  const auto bits = [&](std::int64_t min, std::int64_t extent, std::int64_t step) {
    const Var i = make_var("i", dtypes::int64);
    auto f = edit(whole);
    f->body = make_for(i, make_int(min, dtypes::int64), make_int(extent, dtypes::int64),
                       store(a, make_int(1, dtypes::int8), {Expr(i) * step}));
    int loop = 0, index = 0;
    for_each_stmt(pass::narrow_indices(f)->body, [&](const Stmt& s) {
      if (const auto* l = as<ForNode>(s)) loop = l->var->dtype.bits;
      if (const auto* t = as<StoreNode>(s)) index = t->indices[0]->dtype.bits;
    });
    return std::pair{loop, index};
  };
  EXPECT_EQ(bits(0, 100, 1), std::pair(32, 32));
  EXPECT_EQ(bits(0, INT32_MAX, 1), std::pair(32, 32));
  EXPECT_EQ(bits(0, std::int64_t{1} << 31, 1), std::pair(64, 64));
  EXPECT_EQ(bits(INT32_MAX - 10, 10, 1), std::pair(32, 32));
  EXPECT_EQ(bits(INT32_MAX - 10, 11, 1), std::pair(64, 64));
  EXPECT_EQ(bits(std::int64_t{1} << 32, 5, 1), std::pair(64, 64));
  EXPECT_EQ(bits(0, 1 << 20, 2047), std::pair(32, 32));
  EXPECT_EQ(bits(0, 1 << 20, 2049), std::pair(32, 64));
}

TEST(ShareStorage, the_joint_allocation_has_the_widest_alignment) {
  for (const char* name : {"P", "Q"}) {
    std::string text = two_phases("");
    const std::string plain = cat(name, " = T.alloc_buffer((64,), \"float32\", scope=\"shared\"");
    text.insert(text.find(plain) + plain.size(), ", align=256");
    const Lowered now = lower(text, generic_target_info());
    EXPECT_EQ(count_of(now.f, StmtKind::allocate), 1) << print(now.f);
    for_each_stmt(now.f->body, [&](const Stmt& s) {
      if (const auto* a = as<AllocateNode>(s)) EXPECT_EQ(a->buffer->align, 256) << name;
    });
  }
}

TEST(ShareStorage, overlapping_lifetimes_stay_apart) {
  const std::string text = two_phases(" + P[vi]");
  Lowered now = lower(text, generic_target_info());
  EXPECT_EQ(count_of(now.f, StmtKind::allocate), 2) << print(now.f);
  EXPECT_TRUE(pass::shared_storage(now.f).empty());
  EXPECT_EQ(run(now.f, parse_func(text)), run(parse_func(text), parse_func(text)));
}

/// Every kind of collective among the points of one axis (and of both) of a group of 3 by 8.
const char* const kCollectives =
    "@T.prim_func(lowered=True)\n"
    "def main(A: T.Buffer((3, 8, 2), \"float32\"), R: T.Buffer((3, 8, 8, 2), \"float32\")):\n"
    "    with T.launch(\"k\", {\"threadIdx.y\": 3, \"threadIdx.x\": 8}) as (y, x):\n"
    "        m = T.allocate((2,), \"float32\", scope=\"local\")\n"
    "        r = T.allocate((8, 2), \"float32\", scope=\"local\")\n"
    "        g = T.allocate((16,), \"float32\", scope=\"local\")\n"
    "        for i in range(8):\n"
    "            r[i, 0] = T.float32(-7)\n"
    "            r[i, 1] = T.float32(-8)\n"
    "        for i in range(16):\n"
    "            g[i] = T.float32(-9)\n"
    "        m[0] = A[y, x, 0]\n"
    "        m[1] = A[y, x, 1]\n"
    "        T.collective(\"all_reduce\", (\"threadIdx.x\",), r[0:1, 0:2], m[0:2], "
    "reducer=\"sum\")\n"
    "        T.collective(\"reduce\", (\"threadIdx.x\",), r[1:2, 0:2], m[0:2], reducer=\"max\", "
    "root=2)\n"
    "        T.collective(\"broadcast\", (\"threadIdx.x\",), r[2:3, 0:2], m[0:2], root=3)\n"
    "        T.collective(\"shift\", (\"threadIdx.x\",), r[3:4, 0:2], m[0:2], root=1)\n"
    "        T.collective(\"shift\", (\"threadIdx.y\", \"threadIdx.x\"), r[4:5, 0:2], m[0:2], "
    "root=-1)\n"
    "        T.collective(\"all_reduce\", (\"threadIdx.y\",), r[5:6, 0:2], m[0:2], "
    "reducer=T.comm_reducer(lambda a, b: a * T.float32(3) + b, [T.float32(0)]))\n"
    "        T.collective(\"gather\", (\"threadIdx.x\",), g[0:16], m[0:2], root=5)\n"
    "        T.collective(\"scatter\", (\"threadIdx.x\",), r[6:7, 0:2], g[0:16], root=5)\n"
    "        for i in range(8):\n"
    "            R[y, x, i, 0] = r[i, 0]\n"
    "            R[y, x, i, 1] = r[i, 1]\n";

TEST(LowerCollectives, exchange_through_shared_memory_as_the_interpreter_does) {
  const PrimFunc source = parse_func(kCollectives);
  Lowered now = lower(kCollectives, generic_target_info());
  EXPECT_EQ(count_of(now.f, StmtKind::collective), 0);
  EXPECT_EQ(run(now.f, source), run(source, source)) << print(now.f);
  pass::RaceReport report = pass::check_races(now.f, now.info);
  EXPECT_TRUE(report.clean()) << report.text();
  EXPECT_GE(count_syncs(now.f), 8);
}

TEST(LowerCollectives, refuses_with_target_and_rule) {
  auto one = [](const std::string& axis, const std::string& kind, const std::string& more) {
    return refusal(
        "@T.prim_func(lowered=True)\n"
        "def main(A: T.Buffer((8,), \"float32\"), n: T.int64):\n"
        "    with T.launch(\"k\", {\"blockIdx.x\": 2, \"threadIdx.x\": 8}) as (b, x):\n"
        "        m = T.allocate((4,), \"float32\", scope=\"local\")\n"
        "        r = T.allocate((4,), \"float32\", scope=\"local\")\n"
        "        m[0] = A[x]\n"
        "        T.collective(\"" +
        kind + "\", (\"" + axis + "\",), " + more +
        ")\n"
        "        A[x] = r[0]\n");
  };
  const std::string barrier = one("blockIdx.x", "broadcast", "r[0:1], m[0:1], root=0");
  EXPECT_NE(barrier.find("lower.collective.barrier"), std::string::npos) << barrier;
  EXPECT_NE(barrier.find("for grid: points of blockIdx.x cannot meet"), std::string::npos)
      << barrier;
  EXPECT_NE(one("threadIdx.y", "broadcast", "r[0:1], m[0:1], root=0").find("lower.collective.axis"),
            std::string::npos);
  EXPECT_NE(one("threadIdx.x", "shift", "r[0:n], m[0:n], root=1").find("lower.collective.extent"),
            std::string::npos);
  const std::string size = one("threadIdx.x", "shift", "r[0:2], m[0:1], root=1");
  EXPECT_NE(size.find("lower.collective.size"), std::string::npos) << size;
  EXPECT_NE(size.find("brings 1 elements and 2 are wanted"), std::string::npos) << size;
  TargetInfo host = generic_target_info();
  host.axes.clear();
  const std::string outside = refusal(
      "@T.prim_func\n"
      "def main(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")):\n"
      "    T.collective(\"broadcast\", (\"threadIdx.x\",), B[0:1], A[0:1], root=0)\n",
      host);
  EXPECT_NE(outside.find("lower.collective.outside"), std::string::npos) << outside;
}

}  // namespace
}  // namespace weft
