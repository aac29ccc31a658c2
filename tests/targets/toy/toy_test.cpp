// SPDX-License-Identifier: Apache-2.0
// The target of docs/guide/new-target.md: it is listed, builds, runs, counts, refuses; and the
// guide shows this code.
#include <gtest/gtest.h>

#include "../run_program.h"
#include "weft/base/file.h"
#include "weft/ir/build.h"

namespace weft {

namespace toy {
Backend& backend();
}

// This program's own list of back ends; weft_registry writes the same from targets.list.
const std::vector<Backend*>& backends() {
  static const std::vector<Backend*> all = {&toy::backend()};
  return all;
}

namespace {

using namespace testing;

std::string code_of(const std::function<void()>& f, std::string_view part) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    return error.code();
  }
  return "nothing was refused";
}

TEST(ToyTarget, is_listed_and_opened) {
  ASSERT_EQ(all_devices().size(), 1u);
  EXPECT_EQ(all_devices()[0].name, "toy");
  EXPECT_EQ(open_device("toy")->info().kind, runtime::DeviceKind::simulator);
  EXPECT_EQ(open_device("toy").get(), open_device("toy").get());
  EXPECT_EQ(code_of([] { open_device("toy:fast"); }, "\"fast\""), "toy.option.unknown");
}

TEST(ToyTarget, runs_programs_and_counts) {
  Program p = vector_add_program(100, 10);
  auto module = build(ir::make_module(p.meaning), "toy");
  Ref<runtime::Device> device = open_device("toy");
  device->clear_stats();
  EXPECT_LE(run_and_compare(p, module, device, 3), 1e-6);
  EXPECT_EQ(device->stats().get("cycles") % 100, 0);
  EXPECT_GE(device->stats().get("cycles"), 100);
  Program m = matmul_program(8, 8, 8, 1, 2, 2, 2, 2, 2);
  EXPECT_LE(run_and_compare(m, build(ir::make_module(m.meaning), "toy"), device, 4), 1e-5);
}

TEST(ToyTarget, refuses_what_it_cannot_do) {
  auto func = [](const char* params) {
    return ir::make_module(
        ir::parse_func(cat("@T.prim_func\ndef main(", params,
                           "):\n    for i in range(4):\n        with T.block(\"A\"):\n"
                           "            vi = T.axis.remap(\"S\", [i])\n"
                           "            A[vi] = A[vi]\n")));
  };
  EXPECT_EQ(
      code_of([&] { build(func("A: T.Buffer((4,), \"float32\"), n: T.int64"), "toy"); }, "scalar"),
      "toy.accepts.scalar");
  EXPECT_NE(code_of([&] { build(func("A: T.Buffer((4,), \"int8\")"), "toy"); }, "int8"),
            "nothing was refused");
}

TEST(ToyTarget, the_guide_shows_this_code) {
  std::string guide = read_file(WEFT_SOURCE_DIR "/docs/guide/new-target.md");
  std::string code = read_file(WEFT_SOURCE_DIR "/tests/targets/toy/backend.cpp");
  // Every block of C++ in the guide is a piece of the file, word for word.
  std::size_t blocks = 0;
  for (std::size_t at = guide.find("```cpp\n"); at != std::string::npos;
       at = guide.find("```cpp\n", at + 1)) {
    std::size_t begin = at + 7, end = guide.find("```", begin);
    std::string block = guide.substr(begin, end - begin);
    EXPECT_NE(code.find(block), std::string::npos) << "not in backend.cpp:\n" << block;
    ++blocks;
  }
  EXPECT_GE(blocks, 5u);
}

}  // namespace
}  // namespace weft
