// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "../expect_error.h"
#include "lower_kit.h"
#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/interpret.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_races.h"
#include "weft/pass/compact_buffers.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/flatten_buffers.h"
#include "weft/pass/insert_barriers.h"
#include "weft/pass/lower_cross_thread_reduction.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/place_allocations.h"
#include "weft/pass/unify_thread_binding.h"
#include "weft/target/pipeline.h"

namespace weft {
namespace {

using namespace testing;

const TargetInfo& grid() { return generic_target_info(); }

std::vector<float> random_floats(std::int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(-1, 1);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) x = d(rng);
  return out;
}

/// Runs f on random data of its constant shapes; the last argument is the output.
std::vector<float> interpret_random(const PrimFunc& f) {
  std::vector<std::vector<float>> data;
  std::vector<InterpretArg> args;
  for (const Param& p : f->params) {
    std::vector<std::int64_t> shape;
    std::int64_t count = 1;
    for (const Expr& e : p.buffer->shape) {
      std::int64_t n = 0;
      EXPECT_TRUE(is_const_int(e, &n));
      shape.push_back(n);
      count *= n;
    }
    data.push_back(random_floats(count, static_cast<unsigned>(data.size()) + 1));
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    InterpretArg arg;
    arg.data = data[i].data();
    for (const Expr& e : f->params[i].buffer->shape) {
      std::int64_t n = 0;
      is_const_int(e, &n);
      arg.shape.push_back(n);
    }
    args.push_back(std::move(arg));
  }
  interpret(f, args);
  return data.back();
}

/// Every pass of the pipeline keeps the meaning and the form.
void keeps_meaning(const PrimFunc& f, const LoweringOptions& options, bool grid_axes = true) {
  std::vector<float> want = interpret_random(f);
  TargetInfo info = generic_target_info();
  if (!grid_axes) info.axes.clear();
  PrimFunc now = f;
  bool open = false;
  for (const pass::Pass& p : standard_pipeline(info, options)) {
    now = p.run(now);
    Verdict bad = verify(now);
    ASSERT_FALSE(bad) << p.name << ": " << render(*bad) << "\n" << print(now);
    // Between launches and barriers the points would have to run in step: only the form is checked
    // there.
    open = p.name == "insert_barriers" ? false : open || p.name == "unify_thread_binding";
    if (open) continue;
    try {
      std::vector<float> got = interpret_random(now);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-5) << p.name << " element " << i << "\n" << print(now);
    } catch (const Error& e) {
      FAIL() << p.name << ": " << e.what() << "\n" << print(now);
    }
  }
}

TEST(Pipeline, keeps_the_meaning_after_every_pass) {
  LoweringOptions vectors;
  vectors.vector_lanes = 4;
  keeps_meaning(vector_add(100, 8, ForKind::bound, "blockIdx.x", ForKind::bound, "threadIdx.x"),
                vectors);
  keeps_meaning(vector_add(96, 4, ForKind::bound, "blockIdx.x", ForKind::vectorized), vectors);
  keeps_meaning(vector_add(97, 4, ForKind::serial, "", ForKind::vectorized), vectors, false);
  keeps_meaning(vector_add(97, 8, ForKind::serial, "", ForKind::unrolled), vectors, false);
  keeps_meaning(matmul(make_int(7), make_int(5), make_int(9), false), vectors, false);
  keeps_meaning(matmul(make_int(7), make_int(8), make_int(9), true), vectors, false);
  keeps_meaning(window_sum_shared(false), vectors);
  keeps_meaning(window_sum_shared(true), vectors);
}

Buffer allocated(const PrimFunc& f, const std::string& name) {
  Buffer out;
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* a = as<AllocateNode>(s); a && a->buffer->name == name) out = a->buffer;
  });
  return out;
}

PrimFunc until_compact(const PrimFunc& f) {
  TargetInfo m = grid();
  return pass::compact_buffers(
      pass::convert_blocks(pass::place_allocations(pass::lower_init(f), m)), m);
}

TEST(CompactBuffers, window_sum_needs_exactly_130_floats) {
  for (bool cooperative : {false, true}) {
    Buffer b = allocated(until_compact(window_sum_shared(cooperative)), "A_shared");
    ASSERT_TRUE(b);
    EXPECT_TRUE(is_const_int_value(b->shape[0], 130)) << print(b->shape[0]);
  }
}

/// T[i] = A[i * step] for a row of `count`, used by one loop nest under a serial loop of `rows`.
PrimFunc strided_copy(std::int64_t rows, std::int64_t count, std::int64_t step,
                      std::int64_t limit) {
  std::int64_t n = rows * count * step + 1;
  Buffer A = make_buffer("A", dtypes::float32, {make_int(n)}),
         B = make_buffer("B", dtypes::float32, {make_int(rows * count)});
  Buffer T = make_buffer("T", dtypes::float32, {make_int(n)});
  Var r = make_var("r"), i = make_var("i"), j = make_var("j");
  IterVar v = iter("v", make_int(n)), w = iter("w", make_int(rows * count));
  Expr at = Expr(r) * (count * step) + Expr(i) * step;
  Stmt fill = make_for(i, make_int(0), make_int(count),
                       block("T", {v}, {at}, {point_region(A, {v.var})}, {point_region(T, {v.var})},
                             store(T, load(A, {v.var}), {v.var}), nullptr,
                             limit < count ? lt(i, make_int(limit)) : nullptr));
  Expr from = Expr(w.var) * step;
  Stmt use = make_for(j, make_int(0), make_int(count),
                      block("B", {w}, {Expr(r) * count + j}, {point_region(T, {from})},
                            {point_region(B, {w.var})}, store(B, load(T, {from}), {w.var}), nullptr,
                            limit < count ? lt(j, make_int(limit)) : nullptr));
  return make_func("main", {buffer_param(A), buffer_param(B)},
                   root_block(make_for(r, make_int(0), make_int(rows), seq({fill, use})), {T}));
}

TEST(CompactBuffers, strided_and_guarded_accesses_keep_only_what_they_touch) {
  Buffer b = allocated(until_compact(strided_copy(3, 5, 4, 5)), "T");
  ASSERT_TRUE(b);
  EXPECT_TRUE(is_const_int_value(b->shape[0], 17)) << print(b->shape[0]);  // 4 * 4 + 1
  b = allocated(until_compact(strided_copy(3, 5, 4, 3)), "T");
  EXPECT_TRUE(is_const_int_value(b->shape[0], 9)) << print(b->shape[0]);  // 2 * 4 + 1
  LoweringOptions none;
  keeps_meaning(strided_copy(3, 5, 4, 5), none, false);
}

PrimFunc lowered(const PrimFunc& f, bool barriers) {
  PrimFunc now = f;
  for (const pass::Pass& p : standard_pipeline(generic_target_info())) {
    if (!barriers && p.name == "insert_barriers") continue;
    now = p.run(now);
  }
  return now;
}

TEST(LowerCrossThreadReduction, an_axis_that_joins_gets_one_instruction_others_a_tree) {
  PrimFunc f = parse_func(
      "@T.prim_func\ndef main(A: T.Buffer((4, 16), \"float32\"), B: T.Buffer((4,), \"float32\")):\n"
      "    for i in range(4):\n        for k in T.thread_binding(16, thread=\"lane\"):\n"
      "            with T.block(\"B\"):\n                vi, vk = T.axis.remap(\"SR\", [i, k])\n"
      "                with T.init():\n                    B[vi] = T.float32(0)\n"
      "                B[vi] = B[vi] + A[vi, vk]\n");
  TargetInfo m;
  m.name = "vector machine";
  m.axes = {{"lane", AxisKind::lockstep, 16, "", 0, 0, false, true, {"reduce"}}};
  m.memories = {{"global", 0, 1, {}, "load_store"},
                {"shared", 0, 1, {}, "load_store"},
                {"local", 0, 1, {"lane"}, "load_store"}};
  std::string joined = print(pass::lower_cross_thread_reduction(f, m));
  EXPECT_NE(joined.find("reduce.add"), std::string::npos) << joined;
  EXPECT_EQ(joined.find("B_tree"), std::string::npos) << joined;
  m.axes[0].collectives = {};
  std::string tree = print(pass::lower_cross_thread_reduction(f, m));
  EXPECT_EQ(tree.find("reduce.add"), std::string::npos) << tree;
  EXPECT_NE(tree.find("B_tree"), std::string::npos) << tree;
}

TEST(LowerCrossThreadReduction, refuses_what_points_cannot_join) {
  struct Program {
    std::string loops, iters = "vi, vk = T.axis.remap(\"SR\", [i, k])",
                       init = "B[vi] = T.float32(0)", update = "B[vi] + A[vi, vk]";
  };
  auto lower = [](const Program& p) {
    std::string text =
        "@T.prim_func\ndef main(a: T.handle, B: T.Buffer((4,), \"float32\")):\n"
        "    n = T.int32()\n    A = T.match_buffer(a, (4, n), \"float32\")\n" +
        p.loops + "            with T.block(\"B\"):\n                " + p.iters + "\n";
    if (!p.init.empty())
      text += "                with T.init():\n                    " + p.init + "\n";
    TargetInfo m;
    m.axes = {{"lane", AxisKind::lockstep, 16, "", 0, 0, false, true, {"reduce"}},
              {"row", AxisKind::lockstep, 16, "", 0, 0, false, true, {"reduce"}}};
    m.memories = {{"global", 0, 1, {}, "load_store"},
                  {"shared", 0, 1, {}, "load_store"},
                  {"local", 0, 1, {"lane"}, "load_store"}};
    return pass::lower_cross_thread_reduction(
        parse_func(text + "                B[vi] = " + p.update + "\n"), m);
  };
  const std::string bound = "T.thread_binding(16, thread=\"lane\")";
  const std::string usual = "    for i in range(4):\n        for k in " + bound + ":\n";
  EXPECT_TRUE(lower({usual}));
  auto refuse = [&](const char* slug, const char* words, const Program& p) {
    testing::expect_error(ErrorKind::lower, slug,
                          {words, "block \"B\" cannot be reduced across points"},
                          [&] { lower(p); });
  };
  Program p{usual};
  p.init = "";
  refuse("lower.cross_thread.init", "its initial value is not stored beside the update", p);
  p = {usual};
  p.update = "A[vi, vk] - B[vi]";
  refuse("lower.cross_thread.reducer", "its update is not out = combine(out, value)", p);
  refuse("lower.cross_thread.order", "spatial loop \"i\" lies inside a reduction loop",
         {"    for k in " + bound + ":\n        for i in range(4):\n"});
  refuse("lower.cross_thread.extent", "the extent of \"k\" is not constant",
         {"    for i in range(4):\n        for k in T.thread_binding(n, thread=\"lane\"):\n"});
  p = {"    for k in " + bound + ":\n        for j in T.thread_binding(2, thread=\"row\"):\n"};
  p.iters = "vi = T.axis.spatial(4, 0)\n                vk = T.axis.reduce(32, k * 2 + j)";
  refuse("lower.cross_thread.axes", "two reduction loops are bound: \"k\" and \"j\"", p);
}

TEST(CheckRaces, finds_the_missing_barrier_and_accepts_the_inserted_one) {
  pass::RaceReport good = pass::check_races(lowered(window_sum_shared(true), true), grid());
  EXPECT_TRUE(good.clean()) << good.text();
  EXPECT_TRUE(good.unchecked.empty()) << good.text();
  EXPECT_GT(good.accesses, 128 * 3);
  pass::RaceReport bad = pass::check_races(lowered(window_sum_shared(true), false), grid());
  ASSERT_FALSE(bad.clean());
  EXPECT_EQ(bad.races[0].buffer, "A_shared");
  EXPECT_EQ(bad.races[0].what, "write/read");
}

TEST(CheckRaces, several_writers_of_one_value_are_legal_and_counted) {
  pass::RaceReport report = pass::check_races(lowered(window_sum_shared(false), true), grid());
  EXPECT_TRUE(report.clean()) << report.text();
  EXPECT_GT(report.same_value_writes, 130 * 100);
}

/// 64 points run one store to "S" of shared memory, whose value `make` builds from the point.
pass::RaceReport races_of(
    const std::function<Stmt(const Buffer& a, const Buffer& s, Expr t)>& make) {
  Buffer a = make_buffer("A", dtypes::float32, {make_int(64)}),
         s = make_buffer("S", dtypes::float32, {make_int(64)}, "shared");
  Var t = make_var("t");
  std::vector<LaunchAxis> axes{{"threadIdx.x", t, make_int(64)}};
  Stmt body = allocate(s, make(a, s, t));
  PrimFunc f = make_func("main", {buffer_param(a)},
                         make_ref<const LaunchNode>("main_kernel0", std::move(axes), body));
  return pass::check_races(f, grid());
}

TEST(CheckRaces, points_meet_within_one_statement) {
  auto shifted = [](const Expr& at) {
    return races_of([&](const Buffer&, const Buffer& s, const Expr& t) {
      return store(s, load(s, {floormod(t + at, make_int(64))}) + 1, {t});
    });
  };
  EXPECT_TRUE(shifted(make_int(0)).clean());
  const pass::RaceReport bad = shifted(make_int(1));
  ASSERT_FALSE(bad.clean());
  EXPECT_EQ(bad.races[0].buffer, "S");
  EXPECT_EQ(bad.races[0].what, "read/write");
}

TEST(CheckRaces, values_from_data_are_equal_only_where_they_come_from_one_element) {
  auto through_let = [](const std::function<Expr(const Expr&)>& from) {
    return races_of([&](const Buffer& a, const Buffer& s, const Expr& t) {
      Var v = make_var("v", dtypes::float32);
      return let_stmt(v, load(a, {from(t)}), store(s, Expr(v) * make_float(2), {make_int(0)}));
    });
  };
  const pass::RaceReport same = through_let([](const Expr&) { return make_int(3); });
  EXPECT_TRUE(same.clean()) << same.text();
  EXPECT_EQ(same.same_value_writes, 2 * 63);  // the first and the last group
  const pass::RaceReport bad = through_let([](const Expr& t) { return t; });
  ASSERT_FALSE(bad.clean()) << bad.text();
  EXPECT_EQ(bad.races[0].what, "write/write");
}

TEST(CheckRaces, lanes_and_lazy_arms_count) {
  auto wide = [](std::int64_t step) {
    return races_of([&](const Buffer&, const Buffer& s, const Expr& t) {
      Expr first = floormod(t * step, make_int(60)), at = ramp(first, make_int(1), 4);
      return if_then(lt(t, make_int(15)), store(s, broadcast(cast(dtypes::float32, t), 4), {at}));
    });
  };
  EXPECT_TRUE(wide(4).clean()) << wide(4).text();
  EXPECT_FALSE(wide(3).clean());
  // Only odd points read their neighbour's element: what even points write is their own.
  auto lazy = [](bool odd_reads) {
    return races_of([&](const Buffer&, const Buffer& s, const Expr& t) {
      Expr odd = eq(floormod(t, make_int(2)), make_int(odd_reads ? 1 : 2));
      Expr value = if_then_else(odd, load(s, {t - 1}), make_float(0));
      return if_then(lt(t, make_int(63)), store(s, value, {t}));
    });
  };
  EXPECT_FALSE(lazy(true).clean());
  EXPECT_TRUE(lazy(false).clean());
}

/// One store to "G" of global memory by every point of a grid of 5 groups of 8.
pass::RaceReport grid_races(const std::function<Stmt(const Buffer& g, Expr group, Expr t)>& make) {
  Buffer g = make_buffer("G", dtypes::int32, {make_int(64)});
  Var b = make_var("b"), t = make_var("t");
  std::vector<LaunchAxis> axes{{"blockIdx.x", b, make_int(5)}, {"threadIdx.x", t, make_int(8)}};
  PrimFunc f =
      make_func("main", {buffer_param(g)},
                make_ref<const LaunchNode>("main_kernel0", std::move(axes), make(g, b, t)));
  return pass::check_races(f, grid());
}

TEST(CheckRaces, groups_are_told_apart_in_memory_that_all_see) {
  auto number = [](const Expr& e) { return cast(dtypes::int32, e); };
  auto at = [&](const std::function<Expr(Expr, Expr)>& index,
                const std::function<Expr(Expr, Expr)>& value) {
    return grid_races([&](const Buffer& g, const Expr& b, const Expr& t) {
      return store(g, number(value(b, t)), {index(b, t)});
    });
  };
  auto own = [](const Expr& b, const Expr& t) { return b * 8 + t; };
  EXPECT_TRUE(at(own, own).clean());
  const auto narrow = at([](Expr b, Expr t) { return b * 7 + t; }, own);
  ASSERT_EQ(narrow.races.size(), 1u) << narrow.text();
  EXPECT_EQ(narrow.races[0].what, "write/write");
  EXPECT_EQ(narrow.races[0].scope, "global");
  EXPECT_EQ(narrow.races[0].element, 7);
  EXPECT_NE(narrow.races[0].first_use.find("blockIdx.x = 0, threadIdx.x = 7"), std::string::npos);
  EXPECT_NE(narrow.races[0].second_use.find("blockIdx.x = 1, threadIdx.x = 0"), std::string::npos);
  // Groups 0 and 3 meet, neighbours do not.
  EXPECT_FALSE(at([](Expr b, Expr t) { return floormod(b, make_int(3)) * 8 + t; }, own).clean());
  // One value for all.
  EXPECT_TRUE(at([](Expr, Expr t) { return t; }, [](Expr, Expr) { return make_int(4); }).clean());
  EXPECT_FALSE(at([](Expr, Expr t) { return t; }, [](Expr b, Expr) { return b; }).clean());
}

TEST(CheckRaces, loops_around_are_looked_at_beyond_their_first_iteration) {
  // Parallel or a launch; what the iteration of the loop around lets in.
  auto races = [](bool launch, const std::function<Expr(Expr, Expr)>& when) {
    Buffer g = make_buffer("G", dtypes::int32, {make_int(64)});
    Var i = make_var("i"), p = make_var("p");
    Stmt body = if_then(when(i, p), store(g, cast(dtypes::int32, p), {i}));
    if (launch) {
      std::vector<LaunchAxis> axes{{"blockIdx.x", p, make_int(12)}};
      body = make_ref<const LaunchNode>("main_kernel0", std::move(axes), body);
    } else {
      body = make_for(p, make_int(0), make_int(12), body, ForKind::parallel);
    }
    PrimFunc f = make_func("main", {buffer_param(g)}, make_for(i, make_int(0), make_int(20), body));
    return !pass::check_races(f, grid()).clean();
  };
  for (bool launch : {false, true}) {
    EXPECT_TRUE(races(launch, [](Expr i, Expr p) { return lt(p, i + 1); }));        // the last
    EXPECT_TRUE(races(launch, [](Expr i, Expr p) { return lt(i - 12, p - 10); }));  // the first
    EXPECT_TRUE(
        races(launch, [](Expr i, Expr p) { return logical_and(eq(i, make_int(10)), lt(p, i)); }));
    EXPECT_TRUE(races(
        launch, [](Expr i, Expr p) { return logical_and(eq(i, make_int(1)), lt(p, i + 1)); }));
    EXPECT_FALSE(races(launch, [](Expr i, Expr p) { return eq(p, floormod(i, make_int(12))); }));
  }
}

TEST(CheckRaces, what_a_group_keeps_to_itself_is_not_one_value) {
  const auto report = grid_races([](const Buffer& g, const Expr& b, const Expr& t) {
    Buffer own = make_buffer("own", dtypes::int32, {make_int(1)}, "local");
    return allocate(own, seq({store(own, cast(dtypes::int32, b), {make_int(0)}),
                              store(g, load(own, {make_int(0)}), {t})}));
  });
  ASSERT_FALSE(report.clean());
  EXPECT_EQ(report.races[0].what, "write/write");
}

TEST(CheckRaces, atomic_additions_meet_without_a_race) {
  auto sum = [](bool atomic, bool read) {
    return grid_races([&](const Buffer& g, const Expr&, const Expr& t) {
      const Expr zero = make_int(0), one = make_int(1, dtypes::int32);
      Stmt add = atomic ? atomic_add(g, {zero}, one) : store(g, load(g, {zero}) + one, {zero});
      return read ? seq({add, store(g, load(g, {zero}), {t + 1})}) : add;
    });
  };
  EXPECT_TRUE(sum(true, false).clean()) << sum(true, false).text();
  const auto plain = sum(false, false);
  ASSERT_FALSE(plain.clean());
  EXPECT_TRUE(plain.races[0].adds);
  EXPECT_FALSE(sum(true, true).clean());  // somebody looks while others add
}

TEST(CheckRaces, what_data_decides_is_left_alone_unless_it_adds) {
  auto chosen = [](bool adds) {
    return grid_races([&](const Buffer& g, const Expr&, const Expr& t) {
      Expr at = cast(dtypes::int64, load(g, {t + 32}));
      Expr one = make_int(1, dtypes::int32);
      return store(g, adds ? load(g, {at}) + one : one, {at});
    });
  };
  EXPECT_TRUE(chosen(false).clean()) << chosen(false).text();
  EXPECT_FALSE(chosen(false).unchecked.empty());
  const auto bad = chosen(true);
  ASSERT_FALSE(bad.clean());
  EXPECT_EQ(bad.races[0].element, -1);
}

/// out[i] = sum over k of A[i, k], the reduction over the points of threadIdx.x.
PrimFunc row_sums(std::int64_t rows, std::int64_t columns, std::int64_t threads) {
  Buffer A = make_buffer("A", dtypes::float32, {make_int(rows), make_int(columns)}),
         B = make_buffer("B", dtypes::float32, {make_int(rows)});
  IterVar vi = iter("vi", make_int(rows)), vk = iter("vk", make_int(columns), IterKind::reduce);
  Var i = make_var("i"), o = make_var("k_0"), t = make_var("k_1");
  Expr k = Expr(o) * threads + t;
  Stmt body = store(B, load(B, {vi.var}) + load(A, {vi.var, vk.var}), {vi.var});
  Stmt realize = block("B", {vi, vk}, {i, k}, {point_region(A, {vi.var, vk.var})},
                       {point_region(B, {vi.var})}, body, store(B, make_float(0), {vi.var}),
                       columns % threads ? lt(k, make_int(columns)) : nullptr);
  Stmt inner =
      make_for(o, make_int(0), make_int((columns + threads - 1) / threads),
               make_for(t, make_int(0), make_int(threads), realize, ForKind::bound, "threadIdx.x"));
  return make_func(
      "main", {buffer_param(A), buffer_param(B)},
      root_block(make_for(i, make_int(0), make_int(rows), inner, ForKind::bound, "blockIdx.x")));
}

TEST(LowerCrossThreadReduction, sums_rows_over_the_points) {
  for (std::int64_t threads : {8, 6}) {
    keeps_meaning(row_sums(3, 29, threads), {});
    pass::RaceReport report = pass::check_races(lowered(row_sums(3, 29, threads), true), grid());
    EXPECT_TRUE(report.clean()) << report.text();
  }
}

/// A sum over blocks of 16 that see S through a matched buffer; `use` is the innermost statement.
PrimFunc matched_sum(const std::string& use) {
  return parse_func(cat(R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((16,), "float32")):
    S = T.alloc_buffer((64,), "float32")
    for k in range(4):
        for i in range(16):
            with T.block("copy"):
                v = T.axis.spatial(64, k * 16 + i)
                T.reads(A[v])
                T.writes(S[v])
                S[v] = A[v]
        with T.block("sum"):
            vk = T.axis.reduce(4, k)
            T.reads(S[vk * 16:vk * 16 + 16], B[0:16])
            T.writes(B[0:16])
            M = T.match_buffer(S[vk * 16:vk * 16 + 16], (16,), "float32", offset_factor=16)
            for j in range(16):
                )",
                        use, "\n"),
                    "<matched>");
}

TEST(PlaceAllocations, a_matched_buffer_that_is_only_read_lives_inside_the_reduction) {
  auto inside_loop = [](const PrimFunc& f) {
    bool found = false;
    for_each_stmt(pass::place_allocations(f, grid())->body, [&](const Stmt& s) {
      const auto* loop = as<ForNode>(s);
      const auto* a = loop ? as<AllocateNode>(loop->body) : nullptr;
      found = found || (a && a->buffer->name == "S");
    });
    return found;
  };
  EXPECT_TRUE(inside_loop(matched_sum("B[j] = B[j] + M[j]")));
  // What one step writes there the next may read.
  EXPECT_FALSE(inside_loop(matched_sum("M[j] = M[j] + B[j]")));
}

/// Blocks "b0", "b1", ..., each `to[i] = from[i] + 1`; buffers other than A and Z are local.
PrimFunc steps(const std::vector<std::pair<std::string, std::string>>& copies) {
  std::set<std::string> locals;
  std::string body;
  int n = 0;
  for (const auto& [from, to] : copies) {
    for (const std::string& name : {from, to}) {
      if (name != "A" && name != "Z") locals.insert(name);
    }
    body += cat("    for i in range(8):\n        with T.block(\"b", n++,
                "\"):\n            v = T.axis.spatial(8, i)\n            ", to, "[v] = ", from,
                "[v] + 1.0\n");
  }
  std::string text =
      "@T.prim_func\ndef main(A: T.Buffer((8,), \"float32\"), Z: T.Buffer((8,), \"float32\")):\n";
  for (const std::string& name : locals)
    text += cat("    ", name, " = T.alloc_buffer((8,), \"float32\")\n");
  return parse_func(text + body, "<steps>");
}

/// Allocations and blocks in order, with their nesting: "S(b0 U(b1 b2) b3)".
std::string outline(const PrimFunc& f) {
  std::string out;
  std::function<void(const Stmt&)> walk = [&](const Stmt& s) {
    if (const auto* a = as<AllocateNode>(s)) {
      out += a->buffer->name + "(";
      walk(a->body);
      out += ")";
    } else if (const auto* q = as<SeqNode>(s)) {
      for (const Stmt& t : q->stmts) walk(t);
    } else if (const auto* loop = as<ForNode>(s)) {
      walk(loop->body);
    } else if (const auto* r = as<BlockRealizeNode>(s)) {
      if (r->block->name != "root") out += r->block->name + " ";
      walk(r->block->body);
    }
  };
  walk(f->body);
  return out;
}

TEST(PlaceAllocations, spans_are_side_by_side_or_nested_and_crossing_ones_share_a_place) {
  auto placed = [](const PrimFunc& f) {
    PrimFunc out = pass::place_allocations(f, grid());
    EXPECT_EQ(interpret_random(f), interpret_random(out));
    return outline(out);
  };
  EXPECT_EQ(placed(steps({{"A", "S"}, {"S", "Z"}, {"A", "U"}, {"U", "Z"}})), "S(b0 b1 )U(b2 b3 )");
  EXPECT_EQ(placed(steps({{"A", "U"}, {"A", "S"}, {"S", "Z"}, {"U", "Z"}})), "U(b0 S(b1 b2 )b3 )");
  EXPECT_EQ(placed(steps({{"A", "S"}, {"S", "U"}, {"U", "V"}, {"V", "Z"}})),
            "S(U(V(b0 b1 b2 b3 )))");
  // W ends where U begins inside S, which crosses Y: all but the inner pair stand at one place.
  EXPECT_EQ(placed(steps({{"A", "S"}, {"A", "W"}, {"W", "Z"}, {"A", "Y"}, {"S", "Z"}, {"Y", "Z"}})),
            "S(Y(b0 W(b1 b2 )b3 b4 b5 ))");
  EXPECT_EQ(placed(steps({{"A", "S"}, {"S", "S"}, {"A", "Z"}})), "S(b0 b1 )b2 ");
}

TEST(PlaceAllocations, thousands_of_buffers_are_placed_in_one_walk) {
  std::vector<std::pair<std::string, std::string>> copies{{"A", "t0"}};
  for (int i = 0; i < 2000; ++i) copies.push_back({cat("t", i), cat("t", i + 1)});
  copies.push_back({"t2000", "Z"});
  PrimFunc f = pass::place_allocations(steps(copies), grid());
  int count = 0;
  for_each_stmt(f->body, [&](const Stmt& s) { count += s->kind == StmtKind::allocate; });
  EXPECT_EQ(count, 2001);
}

TEST(UnifyThreadBinding, refuses_unequal_extents_and_unknown_axes) {
  PrimFunc f = vector_add(100, 8, ForKind::bound, "warp.x", ForKind::serial);
  try {
    pass::unify_thread_binding(
        pass::convert_blocks(pass::lower_init(pass::place_allocations(f, grid()))), grid());
    FAIL() << "axis warp.x was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "lower.axis.unknown");
    EXPECT_NE(std::string(e.what()).find("warp.x"), std::string::npos);
  }
}

}  // namespace
}  // namespace weft
