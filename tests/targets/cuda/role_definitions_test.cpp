// SPDX-License-Identifier: Apache-2.0
// The instructions of products by groups of warps: which operand is turned, and how far apart 16
// summands lie. PTX: the last two numbers of wgmma.mma_async say that an operand's rows run along
// the result; operands of eight bits have none, an operand in registers none of its own.

#include <gtest/gtest.h>

#include "weft/base/text.h"
#include "weft/targets/cuda/roles.h"

namespace weft::cuda {
namespace {

void has(const std::string& name, std::initializer_list<std::string_view> parts) {
  const std::string text = role_definition(name);
  for (const std::string_view part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(CudaRoles, products_turn_the_operands_that_lie_along_the_result) {
  const std::string_view a_sums = "\"l\"(from_a + (unsigned long long)(i * 2))",
                         a_turned = "\"l\"(from_a + (unsigned long long)(i * 128))",
                         b_sums = "\"l\"(from_b + (unsigned long long)(i * 2))",
                         b_turned = "\"l\"(from_b + (unsigned long long)(i * 128))";
  has("weft_tile_multiply_64_0_bf16",
      {"m64n64k16.f32.bf16.bf16", ", p, 1, 1, 0, 0;", a_sums, b_sums});
  has("weft_tile_multiply_64_1_bf16", {", p, 1, 1, 0, 1;", a_sums, b_turned, "512ull << 16"});
  has("weft_tile_multiply_64_10_bf16", {", p, 1, 1, 1, 0;", a_turned, b_sums});
  has("weft_tile_multiply_64_11_f16", {"k16.f32.f16.f16", ", p, 1, 1, 1, 1;", a_turned, b_turned});
}

TEST(CudaRoles, products_take_an_operand_from_registers) {
  has("weft_tile_multiply_64_20_bf16",
      {"{%32, %33, %34, %35}, %36, p, 1, 1, 0;", "\"r\"(from_a[i * 4]), \"r\"(from_a[i * 4 + 1])",
       "setp.ne.b32 p, %37, 0;"});
  has("weft_tile_multiply_64_21_bf16", {"%36, p, 1, 1, 1;"});
}

TEST(CudaRoles, products_of_eight_bits_have_32_summands_and_no_turn) {
  has("weft_tile_multiply_128_0_e4m3_e5m2",
      {"m64n128k32.f32.e4m3.e5m2", "%64, %65, p, 1, 1;", "setp.ne.b32 p, %66, 0;"});
}

}  // namespace
}  // namespace weft::cuda
