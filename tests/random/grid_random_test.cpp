// SPDX-License-Identifier: Apache-2.0
// Random programs lowered for a grid of groups of threads and run by the interpreter, kernel by
// kernel: tiles smaller than what their threads fetch, tuples reduced across threads, and programs
// of many stages that no schedule, or only half a one, has touched. What is lowered must compute
// what the program meant and be free of races; here nothing may be refused.

#include <algorithm>
#include <cstdio>
#include <functional>

#include "programs.h"
#include "weft/ir/te.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_races.h"
#include "weft/target/backend.h"
#include "weft/target/host_plan.h"
#include "weft/target/pipeline.h"

namespace weft::schedule::testing {
namespace {

Tensors small_tensors(const ir::PrimFunc& f, std::uint32_t seed) {
  Tensors t = make_tensors(f, seed);
  for (auto& values : t.data) {
    for (float& v : values) v = std::trunc(v / 3);
  }
  return t;
}

/// What build does up to the emitter.
ir::PrimFunc lowered_for(const char* text, const ir::PrimFunc& f) {
  const Target target = Target::parse(text);
  Backend& backend = find_backend(target.name);
  if (Verdict no = backend.accepts(f, target)) throw Error(ErrorKind::lower, std::move(*no));
  const ir::PrimFunc scheduled = backend.default_schedule(f, target);
  pass::PassObserver observer;
  observer.verify = true;
  ir::PrimFunc out = pass::run_pipeline(backend.pipeline(target), scheduled, observer);
  const pass::RaceReport races = pass::check_races(out, backend.info(target));
  EXPECT_TRUE(races.clean()) << races.text() << ir::print(out);
  EXPECT_TRUE(races.unchecked.empty()) << races.text();
  EXPECT_FALSE(split_host_device(scheduled, out, {}).kernels.empty());
  backend.emit(split_host_device(scheduled, out, {}).kernels, target);
  return out;
}

/// Empty when the lowered function computes what the program means.
std::string difference(const ir::PrimFunc& meaning, const ir::PrimFunc& lowered,
                       std::uint32_t seed) {
  Tensors want = small_tensors(meaning, seed), got = want;
  ir::interpret(meaning, want.args());
  std::vector<ir::InterpretArg> flat;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    ir::InterpretArg a;
    a.data = got.data[i].data();
    a.shape = {static_cast<std::int64_t>(got.data[i].size())};
    flat.push_back(a);
  }
  ir::interpret(lowered, flat);
  for (std::size_t i = 0; i < want.data.size(); ++i) {
    for (std::size_t k = 0; k < want.data[i].size(); ++k) {
      const float x = want.data[i][k], y = got.data[i][k];
      if (x != y) return cat("parameter ", i, " element ", k, ": expected ", x, ", got ", y, "\n");
    }
  }
  return {};
}

bool attempt(const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::schedule) throw;
    return false;
  }
}

/// A matrix product whose tiles are fetched by threads in vectors, more of both than a tile needs.
void cut_fetch(std::uint32_t seed, int* cut) {
  Random random(seed);
  const int tile = random.between(1, 4), threads = random.pick(std::vector<int>{2, 3, 4}),
            depth = random.pick(std::vector<int>{1, 2, 3, 4, 8}),
            lanes = random.pick(std::vector<int>{1, 2, 4});
  const int m = tile * threads * random.between(1, 2), k = depth * random.between(1, 3);
  Schedule sch(parse(matmul(m, m, k)));
  const auto story = [&] {
    return cat("seed ", seed, ": m ", m, " k ", k, " tile ", tile, " threads ", threads, " depth ",
               depth, " lanes ", lanes, "\n", sch.show());
  };
  try {
    const BlockRef c = sch.get_block("C"), back = sch.cache_write(c, 0, "local");
    const auto l = sch.get_loops(c);
    const auto i = sch.split(l[0], {None, threads, tile}),
               j = sch.split(l[1], {None, threads, tile}), r = sch.split(l[2], {None, depth});
    sch.reorder({i[0], j[0], i[1], j[1], r[0], r[1], i[2], j[2]});
    sch.bind(i[0], "blockIdx.y");
    sch.bind(j[0], "blockIdx.x");
    sch.bind(i[1], "threadIdx.y");
    sch.bind(j[1], "threadIdx.x");
    sch.reverse_compute_at(back, j[1]);
    for (int side : {0, 1}) {
      const BlockRef fetch = sch.cache_read(c, side, "shared");
      sch.compute_at(fetch, r[0], true);
      const auto loops = sch.get_loops(fetch);
      const LoopRef all = sch.fuse({loops[loops.size() - 2], loops[loops.size() - 1]});
      const auto parts = sch.split(all, {None, threads, threads, lanes});
      if (sch.show().find("T.where") != std::string::npos) ++*cut;
      sch.bind(parts[1], "threadIdx.y");
      sch.bind(parts[2], "threadIdx.x");
      sch.vectorize(parts[3]);
    }
    sch.decompose_reduction(c, r[0]);
    const ir::PrimFunc lowered = lowered_for("metal", sch.func());
    ASSERT_EQ(difference(parse(matmul(m, m, k)), lowered, seed), "")
        << story() << ir::print(lowered);
  } catch (const Error& e) {
    FAIL() << e.what() << "\n" << story();
  }
}

TEST(grid_random, fetches_that_a_predicate_cuts) {
  int cut = 0;
  for (std::uint32_t seed = 1; seed <= 60; ++seed) cut_fetch(seed, &cut);
  std::printf("%d fetches were cut\n", cut);
  EXPECT_GE(cut, 40);
}

/// A sum of each row over bound threads.
TEST(grid_random, sums_across_threads) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const int rows = random.between(1, 5), n = random.between(1, 40),
              threads = random.pick(std::vector<int>{2, 3, 5, 8, 16, 32});
    te::Tensor a = te::placeholder({ir::make_int(rows), ir::make_int(n)}, dtypes::float32, "A");
    ir::IterVar k = te::reduce_axis(n, "k");
    auto out = te::compute_many(
        {ir::make_int(rows)},
        [&](const std::vector<ir::Var>& v) { return ir::Exprs{te::sum(a(v[0], k.var) + 1, {k})}; },
        "R");
    std::vector<te::Arg> args{a};
    for (const te::Tensor& t : out) args.emplace_back(t);
    const ir::PrimFunc f = te::create_prim_func(args);
    Schedule sch(f);
    try {
      const auto loops = sch.get_loops(sch.get_block("R"));
      const bool inner = random.chance(50);  // which of the two loops has `threads` iterations
      const auto parts =
          sch.split(loops[1], inner ? Factors{None, threads} : Factors{threads, None});
      sch.bind(loops[0], random.chance(70) ? "blockIdx.x" : "threadIdx.y");
      const bool other = n > threads && random.chance(50);  // bind the loop over the shares
      const LoopRef across = parts[inner != other ? 1 : 0], rest = parts[inner != other ? 0 : 1];
      if (random.chance(50)) attempt([&] { sch.reorder({rest, across}); });
      if (!attempt([&] { sch.bind(across, "threadIdx.x"); })) continue;
      const ir::PrimFunc lowered = lowered_for("metal", sch.func());
      ASSERT_EQ(difference(f, lowered, seed), "") << "seed " << seed << "\n"
                                                  << sch.show() << ir::print(lowered);
      ASSERT_EQ(difference(f, lowered_for("metal", f), seed), "") << "default, seed " << seed;
    } catch (const Error& e) {
      FAIL() << e.what() << "\nseed " << seed << "\n" << sch.show();
    }
  }
}

/// Stages moved into each other at random, and not one loop bound.
TEST(grid_random, stages_without_a_bound_loop) {
  int together = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const std::string program = random_program(random);
    const ir::PrimFunc meaning = parse(program);
    Schedule sch(meaning);
    Driver driver(sch, random, {{}, {"global"}});
    for (int steps = random.between(0, 8); steps > 0; --steps) attempt([&] { driver.step(); });
    const std::string text = sch.show();
    try {
      const ir::PrimFunc lowered = lowered_for("metal", sch.func());
      ASSERT_EQ(difference(meaning, lowered, seed), "") << "seed " << seed << "\n"
                                                        << program << text << ir::print(lowered);
      int allocations = 0;
      ir::for_each_stmt(lowered->body, [&](const ir::Stmt& s) {
        const auto* t = ir::as<ir::AllocateNode>(s);
        allocations += t && t->buffer->scope == "local";
      });
      together += allocations > 0;
    } catch (const Error& e) {
      FAIL() << e.what() << "\nseed " << seed << "\n" << program << text;
    }
  }
  std::printf("%d programs keep a stage in their threads\n", together);
  EXPECT_GE(together, 1);
}

/// The first points of a group fetch for all of them, and mark what they fetched.
TEST(grid_random, a_part_of_the_points_executes_a_block) {
  const ir::PrimFunc f = parse(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((24,), "float32"), M: T.Buffer((24,), "float32")):
    S = T.alloc_buffer((8,), "float32", scope="shared")
    for t in T.thread_binding(24, thread="threadIdx.x"):
        with T.block("S"):
            vi = T.axis.spatial(24, t)
            T.execution("threadIdx.x", 0, 8)
            S[vi] = A[vi]
            M[vi] = T.float32(1)
        with T.block("C"):
            vi = T.axis.spatial(24, t)
            C[vi] = S[vi % 8] * T.float32(3)
)");
  Tensors plain = small_tensors(f, 1);
  plain.data[1].assign(24, -1.0f);
  plain.data[2].assign(24, -1.0f);
  Tensors got = plain;
  ir::interpret(f, plain.args());
  const ir::PrimFunc lowered = lowered_for("metal", f);
  ir::interpret(lowered, got.args());
  for (std::size_t i = 0; i < 24; ++i) {
    for (const Tensors* t : {&plain, &got}) {
      EXPECT_EQ(t->data[1][i], 3 * t->data[0][i % 8]) << i;
      EXPECT_EQ(t->data[2][i], i < 8 ? 1.0f : -1.0f) << i;
    }
  }
}

}  // namespace
}  // namespace weft::schedule::testing
