// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "../run_program.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"

namespace weft {
namespace {

using namespace testing;

/// Clang's messages about the text as C++ under the shim; "" when it is well-formed.
std::string clang_says(std::string text) {
  for (std::string_view include : {"#include <metal_stdlib>\n"}) {
    if (std::size_t at = text.find(include); at != std::string::npos)
      text.replace(at, include.size(), "#include \"metal_shim.h\"\n");
  }
  std::string file = ::testing::TempDir() + "weft_metal_kernel.cpp";
  write_file_atomic(file, text);
  std::string command =
      cat(WEFT_CLANG, " -x c++ -std=c++20 -fsyntax-only -Wno-unknown-attributes -I",
          WEFT_METAL_SHIM, " ", file, " 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char room[512];
  while (pipe && fgets(room, sizeof(room), pipe)) out += room;
  int status = pipe ? pclose(pipe) : -1;
  return status == 0 ? "" : out + " (status " + std::to_string(status) + ")";
}

TEST(Metal, writes_kernels_that_clang_accepts) {
  std::vector<Program> all{vector_add_program(1000, 64)};
  for (int cache : {0, 1, 2}) all.push_back(window_sum_program(1024, 128, cache));
  for (int step : {1, 2, 3, 4, 5}) all.push_back(matmul_program(256, 256, 256, step));
  for (const Program& p : all) {
    std::string text = build(p.scheduled, "metal")->source();
    EXPECT_EQ(clang_says(text), "") << p.name << "\n" << text;
  }
}

TEST(Metal, writes_atomic_additions_that_clang_accepts) {
  for (std::string type : {"int32", "uint32", "float32"}) {
    const std::string text = cat(R"(
@T.prim_func
def main(X: T.Buffer((256,), "int32"), H: T.Buffer((8,), ")",
                                 type, R"(")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            T.atomic_add(H[X[b * 64 + t]], T.)",
                                 type, "(1))\n");
    const std::string out = build(ir::make_module(ir::parse_func(text)), "metal")->source();
    EXPECT_NE(out.find("atomic_fetch_add_explicit("), std::string::npos) << out;
    EXPECT_EQ(clang_says(out), "") << out;
  }
}

// The shim knows no attributes: a kernel whose parameters have no places is C++, and no Metal.
TEST(Metal, numbers_the_parameters_of_kernels) {
  const std::string out = build(ir::make_module(ir::parse_func(R"(
@T.prim_func
def main(X: T.Buffer((256,), "float32"), n: T.int32, Y: T.Buffer((256,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            Y[b * 64 + t] = X[b * 64 + t] + T.Cast("float32", n)
)")),
                                "metal")
                              ->source();
  std::size_t at = 0;
  for (const char* place : {" [[buffer(0)]]", " [[buffer(1)]]", " [[buffer(2)]]"}) {
    const std::size_t next = out.find(place, at);
    ASSERT_NE(next, std::string::npos) << place << " in its order:\n" << out;
    at = next;
  }
  EXPECT_NE(out.find("& n [[buffer(2)]]"), std::string::npos) << out;
  EXPECT_EQ(out.find("[[buffer(3)]]"), std::string::npos) << out;
  EXPECT_EQ(clang_says(out), "") << out;
}

TEST(Metal, the_check_can_fail) {
  std::string text = build(window_sum_program(1024, 128, 2).scheduled, "metal")->source();
  EXPECT_NE(text.find("threadgroup float A_shared[130];"), std::string::npos) << text;
  EXPECT_NE(text.find("threadgroup_barrier(mem_flags::mem_threadgroup);"), std::string::npos)
      << text;
  text.replace(text.find("A_shared[130]"), 13, "A_sharde[130]");
  EXPECT_NE(clang_says(text), "");
}

TEST(Metal, axes_have_the_limits_of_the_language) {
  const TargetInfo info = find_backend("metal").info(Target::parse("metal"));
  for (const char* letter : {"x", "y", "z"}) {
    ASSERT_NE(info.axis(cat("blockIdx.", letter)), nullptr);
    EXPECT_EQ(info.axis(cat("blockIdx.", letter))->limit, 2147483647) << letter;
    EXPECT_EQ(info.axis(cat("threadIdx.", letter))->limit, 1024) << letter;
  }
  EXPECT_EQ(info.group_bytes(), 32768);
  EXPECT_THROW(build(vector_add_program(4096, 2048).scheduled, "metal"), Error);
}

TEST(Metal, has_no_device_and_says_so) {
  try {
    open_device("metal:0");
    FAIL() << "a Metal device was opened";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "metal.absent");
    EXPECT_NE(std::string(e.what()).find("metal:0"), std::string::npos);
  }
}

}  // namespace
}  // namespace weft
