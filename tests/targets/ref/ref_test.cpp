// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../run_program.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"

namespace weft {
namespace {

using namespace testing;

TEST(RefTarget, runs_the_tour_scheduled_or_not) {
  auto device = open_device("ref");
  for (const Program& p : {vector_add_program(100, 16), window_sum_program(96, 32, 2),
                           matmul_program(16, 16, 16, 1, 4, 4)}) {
    EXPECT_LE(run_and_compare(p, build(ir::make_module(p.meaning), "ref"), device, 3), 1e-5)
        << p.name;
  }
}

TEST(RefTarget, modules_survive_the_file_and_damage_is_found) {
  Program p = vector_add_program(100, 16);
  auto module = build(ir::make_module(p.meaning), "ref");
  std::string bytes = module->serialize();
  auto again = runtime::Module::deserialize(bytes, "copy");
  EXPECT_LE(run_and_compare(p, again, open_device("ref"), 4), 1e-5);
  auto code = [&](std::string text) {
    try {
      runtime::Module::deserialize(text, "damaged");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::io);
      return e.code();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(code("hello"), "module.file.foreign");
  EXPECT_EQ(code(bytes.substr(0, 20)), "module.file.truncated");
  EXPECT_EQ(code(bytes.substr(0, bytes.size() - 9)), "module.file.checksum");
  std::string other = bytes;
  other[8] = 99;
  EXPECT_EQ(code(other), "module.file.version");
  for (std::size_t at = 30; at < bytes.size(); at += 37) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_EQ(code(flipped), "module.file.checksum") << at;
  }
}

TEST(NullTarget, keeps_the_books) {
  auto device = open_device("null");
  device->clear_stats();
  Program p = vector_add_program(100, 16);
  auto module = build(p.scheduled, "null");
  auto f = make_ref<runtime::Function>(module, "main", device);
  Arrays a = random_arrays(p, device, 1);
  for (int i = 0; i < 5; ++i) f->call(a.args);
  EXPECT_EQ(device->stats().get("cycles"), 5);
  EXPECT_EQ(device->stats().get("bytes.global.written"), 3 * 400);
}

TEST(Calls, refuse_wrong_arguments_naming_them) {
  auto device = open_device("ref");
  Program p = vector_add_program(100, 16);
  auto f = make_ref<runtime::Function>(build(ir::make_module(p.meaning), "ref"), "main", device);
  auto refused = [&](auto change) {
    Arrays a = random_arrays(p, device, 1);
    change(a.args);
    try {
      f->call(a.args);
    } catch (const Error& e) {
      return e.code() + " " + e.message();
    }
    return std::string("accepted");
  };
  using Args = std::vector<runtime::CallArg>;
  auto has = [](const std::string& text, std::string_view code, std::string_view part) {
    EXPECT_TRUE(text.starts_with(code)) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refused([](Args& a) { a.pop_back(); }), "call.count", "3 arguments and got 2");
  has(refused([](Args& a) { a[1].dtype = dtypes::int32; }), "call.dtype",
      "argument 2 (\"B\") of main is float32 and got int32");
  has(refused([](Args& a) { a[1].shape = {10, 10}; }), "call.rank", "1 dimensions and got 2");
  has(refused([](Args& a) { a[2].shape = {99}; }), "call.shape", "(100,) and got (99,)");
  has(refused([](Args& a) { a[0].strides = {2}; }), "call.strides", "compact");
  has(refused([](Args& a) { a[0].byte_offset = 8; }), "call.bounds", "reaches bytes 8 to 408");
  has(refused([](Args& a) { a[0].byte_offset = 2; }), "call.bounds", "storage of 400");
  has(refused([](Args& a) { a[0].byte_offset = ~std::uint64_t{0} - 399; }), "call.bounds",
      "reaches bytes -400 to 0");
  has(refused([](Args& a) { a[2] = a[0]; }), "call.overlap", "shares bytes");
  has(refused([](Args& a) { a[0].storage = nullptr; }), "call.kind", "is a tensor");
  auto other = open_device("null");
  auto s = other->allocate(400);
  has(refused([&](Args& a) { a[0].storage = s.get(); }), "call.device", "lies on null");
}

TEST(Targets, unknown_names_and_bad_strings_are_refused) {
  for (auto [text, code] : {std::pair{"cudda", "target.unknown"},
                            {"c:cc=", "target.parse"},
                            {"", "target.parse"},
                            {"c:1,2", "target.parse"}}) {
    try {
      open_device(text);
      FAIL() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
    }
  }
  EXPECT_EQ(Target::parse("cuda: arch = sm_90a , 0").text(), "cuda:0,arch=sm_90a");
}

}  // namespace
}  // namespace weft
