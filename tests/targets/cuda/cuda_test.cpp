// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../run_program.h"
#include "weft/base/error.h"

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
    EXPECT_NE(text.find("__shared__ float A_shared[130];"), std::string::npos) << text;
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
                              {"cuda:arch=gfx90", "cuda.option.arch"}}) {
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
