// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/config.h"

#include "../../expect_error.h"

namespace weft::vta {
namespace {

using testing::refused;
using testing::Refused;

TEST(VtaConfig, the_default_has_the_documented_numbers) {
  Config c;
  EXPECT_EQ(c.key(), "1x16_i8w8a32_15_15_18_17");
  EXPECT_EQ(c.model(), "sim_1x16_i8w8a32_15_15_18_17");
  EXPECT_EQ(c.elem_bytes(MemType::inp), 16);
  EXPECT_EQ(c.elem_bytes(MemType::wgt), 256);
  EXPECT_EQ(c.elem_bytes(MemType::acc), 64);
  EXPECT_EQ(c.elem_bytes(MemType::out), 16);
  EXPECT_EQ(c.elem_bytes(MemType::acc8), 16);
  EXPECT_EQ(c.depth(MemType::uop), 8192);
  EXPECT_EQ(c.depth(MemType::inp), 2048);
  EXPECT_EQ(c.depth(MemType::wgt), 1024);
  EXPECT_EQ(c.depth(MemType::acc), 2048);
  EXPECT_EQ(c.out_buff_log(), 15);
  EXPECT_NEAR(c.peak_gops(), 51.2, 1e-9);
  EXPECT_NEAR(Config::sample("ultra96").peak_gops(), 170.496, 1e-6);
  EXPECT_EQ(c.board().registers[2], 0x43C02000u);
}

TEST(VtaConfig, batching_keeps_the_depths) {
  for (const char* name : {"4x8x8", "1x32x32"}) {
    Config c = Config::sample(name);
    EXPECT_EQ(c.depth(MemType::uop), 8192) << name;
    EXPECT_EQ(c.depth(MemType::inp), 2048) << name;
    EXPECT_EQ(c.depth(MemType::wgt), 1024) << name;
    EXPECT_EQ(c.depth(MemType::acc), 2048) << name;
  }
  EXPECT_EQ(Config::sample("4x8x8").batch(), 4);
  EXPECT_EQ(Config::sample("1x32x32").lanes(), 32);
}

TEST(VtaConfig, every_sample_survives_its_own_json) {
  for (const std::string& name : Config::samples()) {
    Config c = Config::sample(name);
    EXPECT_EQ(Config::parse(c.to_json().dump(2)).values(), c.values()) << name;
  }
  EXPECT_EQ(refused([] { Config::sample("pink"); }).code, "vta.config.sample");
}

TEST(VtaConfig, the_seeds_lines) {
  EXPECT_EQ(describe(Config()),
            "Weights are 16 by 16, of type int8\nInput activations are 1 by 16, of type "
            "int8\nOutput activations are 1 by 16, of type int32\n"
            "Weight buffer requires 2048 bits per cycle of read xput\nInput buffer requires 128 "
            "bits per cycle of read xput\n"
            "Register file requires 512 bits per cycle of read & write xput\n");
}

TEST(VtaConfig, refuses_values_that_make_no_machine) {
  struct Case {
    int ConfigValues::*member;
    int value;
    const char* code;
    const char* text;
  };
  const Case cases[] = {
      {&ConfigValues::log_uop_buff, 16, "vta.config.uop_depth", "at most 15"},
      {&ConfigValues::log_acc_buff, 18, "vta.config.acc_depth", "at most 17"},
      {&ConfigValues::log_wgt_buff, 19, "vta.config.uop_width", "11 + 11 + 11"},
      {&ConfigValues::log_inp_buff, 16, "vta.config.uop_width", "11 + 12 + 10"},
      {&ConfigValues::log_inp_width, 2, "vta.config.width", "int8 x int8 into int32"},
      {&ConfigValues::log_acc_width, 4, "vta.config.width", "LOG_ACC_WIDTH 5"},
      {&ConfigValues::log_block, 7, "vta.config.block", "2 to 6"},
      {&ConfigValues::log_batch, 9, "vta.config.batch", "0 to 6"},
      {&ConfigValues::log_batch, 31, "vta.config.range", "LOG_BATCH is 31"},
      {&ConfigValues::log_wgt_buff, 7, "vta.config.buffer", "at least 9"},
  };
  for (const Case& c : cases) {
    ConfigValues v;
    v.*c.member = c.value;
    Refused r = refused([&] { Config::make(v); });
    EXPECT_EQ(r.code, c.code);
    EXPECT_NE(r.text.find(c.text), std::string::npos) << r.text;
  }
  ConfigValues big;
  big.log_batch = 6, big.log_block = 6, big.log_acc_buff = 24, big.log_inp_buff = 22;
  EXPECT_EQ(refused([&] { Config::make(big); }).code, "vta.config.element");
  ConfigValues board;
  board.target = "pnyq";
  Refused r = refused([&] { Config::make(board); });
  EXPECT_EQ(r.code, "vta.config.target");
  EXPECT_NE(r.text.find("did you mean \"pynq\"?"), std::string::npos) << r.text;
}

TEST(VtaConfig, refuses_text_that_is_no_configuration) {
  auto with = [](const char* key, const char* value) {
    std::string text = Config().to_json().dump();
    return text.substr(0, text.size() - 1) + ",\"" + key + "\":" + value + "}";
  };
  EXPECT_EQ(refused([&] { Config::parse("{"); }).code, "json.parse");
  EXPECT_EQ(refused([&] { Config::parse("[]"); }).code, "vta.config.object");
  EXPECT_EQ(refused([&] { Config::parse("{\"TARGET\":\"sim\"}"); }).code, "vta.config.missing");
  EXPECT_EQ(refused([&] { Config::parse(with("LOG_BLOK", "4")); }).code, "vta.config.key");
  EXPECT_EQ(refused([&] { Config::parse(with("LOG_BLOCK_IN", "\"x\"")); }).code, "vta.config.type");
  EXPECT_EQ(refused([&] { Config::parse(with("LOG_BLOCK_IN", "5")); }).code,
            "vta.config.contradiction");
  EXPECT_NO_THROW(Config::parse(with("LOG_BLOCK_IN", "4")));
  EXPECT_EQ(refused([&] { Config::parse(with("LOG_BLOCK", "4")); }).code, "vta.config.key");
  EXPECT_EQ(refused([&] { Config::load("/nonexistent/vta_config.json"); }).code, "file.read");
}

}  // namespace
}  // namespace weft::vta
