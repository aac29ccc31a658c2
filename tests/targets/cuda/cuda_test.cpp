// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../run_program.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"

namespace weft {
namespace {

using namespace testing;

std::string source(const Program& p, std::string_view target = "cuda:arch=sm_90") {
  auto module = build(p.scheduled, target);
  EXPECT_GT(module->binary().bytes.size(), 1000u) << "no cubin";
  EXPECT_EQ(module->binary().bytes.substr(1, 3), "ELF");
  return module->source();
}

TEST(Cuda, compiles_every_tour_program_to_a_cubin_without_a_card) {
  source(vector_add_program(1024, 128));
  for (int cache : {0, 1, 2}) source(window_sum_program(1024, 128, cache));
  for (int step : {1, 2, 3, 4, 5}) source(matmul_program(1024, 1024, 1024, step));
}

TEST(Cuda, window_sum_caches_exactly_130_floats) {
  for (int cache : {1, 2}) {
    std::string text = source(window_sum_program(1024, 128, cache));
    EXPECT_NE(text.find("float A_shared[130];"), std::string::npos) << text;
    EXPECT_NE(text.find("__launch_bounds__(128)"), std::string::npos) << text;
    EXPECT_NE(text.find("__syncthreads()"), std::string::npos) << text;
  }
}

TEST(Cuda, the_shared_ladder_step_fetches_whole_vectors) {
  std::string text = source(matmul_program(1024, 1024, 1024, 4));
  EXPECT_NE(text.find("*(float4*)(A_shared + "), std::string::npos) << text;
  EXPECT_NE(text.find("*(const float4*)(A + "), std::string::npos) << text;
  EXPECT_NE(text.find("A_shared[512];"), std::string::npos) << text;
  EXPECT_NE(text.find("C_local[64];"), std::string::npos) << text;
  std::size_t barriers = 0;
  for (std::size_t at = 0; (at = text.find("__syncthreads()", at)) != std::string::npos; ++at)
    ++barriers;
  EXPECT_EQ(barriers, 2u) << text;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

Schedule shared_matmul(std::int64_t tile_k) {
  return Schedule(matmul_program(128, 128, 256, 5, 8, 8, 4, 4, tile_k).scheduled);
}

LoopRef tile_loop(Schedule& sch) {
  for (const LoopRef& l : sch.get_loops(sch.get_block("C_update"))) {
    if (l.var->name == "k_0") return l;
  }
  return {};
}

Json numbers(std::vector<int> list) {
  Json out = Json::array();
  for (int n : list) out.push_back(Json(n));
  return out;
}

TEST(Cuda, pipelines_fetch_with_asynchronous_copies) {
  for (int ahead : {1, 3}) {
    Schedule sch = shared_matmul(8);
    const LoopRef k = tile_loop(sch);
    sch.annotate(k, "software_pipeline_stage", numbers({0, 0, ahead}));
    sch.annotate(k, "software_pipeline_async_stages", numbers({0}));
    auto module = build(sch.mod(), "cuda:arch=sm_90");
    const std::string& text = module->source();
    EXPECT_NE(text.find("weft_copy_16(A_shared + "), std::string::npos) << text;
    EXPECT_NE(text.find(cat("cp.async.wait_group ", ahead - 1, ";")), std::string::npos) << text;
    EXPECT_EQ(count(text, "cp.async.commit_group"), static_cast<std::size_t>(ahead) + 1) << text;
    EXPECT_NE(text.find(cat("A_shared[", 256 * (ahead + 1), "];")), std::string::npos) << text;
    // One barrier in the steady loop, one before each step of the epilogue.
    EXPECT_EQ(count(text, "__syncthreads()"), static_cast<std::size_t>(ahead) + 1) << text;
    if (ahead > 1) continue;
    // Before compute capability 8.0 nothing copies by itself: the same versions, ordinary copies.
    const std::string old = build(sch.mod(), "cuda:arch=sm_75")->source();
    EXPECT_EQ(old.find("cp.async"), std::string::npos) << old;
  }
}

TEST(Cuda, shared_memory_above_48_kib_is_dynamic_and_stated_at_the_launch) {
  auto module = build(shared_matmul(256).mod(), "cuda:arch=sm_90");
  EXPECT_NE(module->source().find("extern __shared__ __align__(16) unsigned char weft_shared[];"),
            std::string::npos)
      << module->source();
  EXPECT_EQ(module->binary().kernels.at(0).scratch_bytes, 2 * 32 * 256 * 4);
  EXPECT_EQ(build(shared_matmul(8).mod(), "cuda:arch=sm_90")->binary().kernels.at(0).scratch_bytes,
            0);
  try {
    build(shared_matmul(256).mod(), "cuda:arch=sm_90,max_shared_memory_per_block=60000");
    FAIL() << "65536 bytes were accepted where 60000 exist";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "lower.shared.limit");
    EXPECT_NE(std::string(e.what()).find("65536 bytes"), std::string::npos) << e.what();
  }
}

TEST(Cuda, nontemporal_stores_are_streamed) {
  Program p = vector_add_program(4096, 128);
  Schedule sch(p.meaning);
  const auto parts = sch.split(sch.get_loops(sch.get_block("C"))[0], {std::nullopt, 128, 4});
  sch.bind(parts[0], "blockIdx.x");
  sch.bind(parts[1], "threadIdx.x");
  sch.vectorize(parts[2]);
  sch.annotate(parts[1], "nontemporal", Json(true));
  const std::string text = build(sch.mod(), "cuda:arch=sm_90")->source();
  EXPECT_NE(text.find("__stcs(&*(float4*)(C + "), std::string::npos) << text;
}

TEST(Cuda, a_function_without_bound_loops_gets_the_default_schedule_and_a_note) {
  auto module = build(ir::make_module(matmul_meaning(96, 80, 64)), "cuda:arch=sm_90");
  EXPECT_NE(module->source().find("__launch_bounds__(128)"), std::string::npos) << module->source();
  ASSERT_FALSE(module->notes().empty());
  EXPECT_NE(module->notes()[0].find("default schedule for grids"), std::string::npos)
      << module->notes()[0];
  EXPECT_TRUE(build(vector_add_program(1024, 128).scheduled, "cuda:arch=sm_90")->notes().empty());
}

TEST(Cuda, runs_the_tour_on_the_card) {
  for (const DeviceStatus& s : all_devices()) {
    if (s.name != "cuda:0") continue;
    if (!s.available) GTEST_SKIP() << s.reason;
    auto device = open_device("cuda:0");
    EXPECT_LE(run_and_compare(vector_add_program(1024, 128),
                              build(vector_add_program(1024, 128).scheduled, "cuda"), device, 1),
              1e-6);
    for (int step : {1, 2, 3, 4, 5}) {
      Program p = matmul_program(1024, 1024, 1024, step);
      EXPECT_LE(run_and_compare(p, build(p.scheduled, "cuda"), device, 2), 1e-3) << p.name;
    }
  }
}

TEST(Cuda, an_absent_card_is_an_error_that_says_what_was_searched) {
  try {
    open_device("cuda:77");
    FAIL() << "card 77 was opened";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "cuda.absent");
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_NE(std::string(e.what()).find("cuda:77"), std::string::npos) << e.what();
  }
}

TEST(Cuda, refuses_unknown_options_and_architectures) {
  auto p = vector_add_program(1024, 128);
  for (auto [target, code] : {std::pair{"cuda:speed=9", "cuda.option.unknown"},
                              {"cuda:arch=gfx90", "cuda.option.arch"},
                              {"cuda:arch=sm_90,code=wool", "cuda.option.code"}}) {
    try {
      build(p.scheduled, target);
      FAIL() << target;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
    }
  }
}

}  // namespace
}  // namespace weft
