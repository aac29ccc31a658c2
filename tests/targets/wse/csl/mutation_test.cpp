// SPDX-License-Identifier: Apache-2.0
// A short run of source mutations: the compiler answers every input with a layout or an Error.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "csl_run.h"
#include "mutate.h"

namespace weft::wse::testing {
namespace {

// A text that is refused as it is leaves nothing of the compiler behind that error to its mutants.
TEST(Mutations, ProgramsOfTheCorpusCompile) {
  int programs = 0;
  for (const std::string& text : corpus()) {
    if (text.find("@export_symbol(go)") == std::string::npos &&
        text.find("@set_rectangle") == std::string::npos)
      continue;  // a module of the library
    ++programs;
    try {
      csl::compile(fuzz_options(text));
    } catch (const Error& e) {
      ADD_FAILURE() << e.what() << "\n" << text;
    }
  }
  EXPECT_GE(programs, 3);
}

TEST(Mutations, EveryInputIsAnswered) {
  constexpr unsigned kSeed = 20261121;
  std::printf("seed %u\n", kSeed);
  std::mt19937 rng(kSeed);
  int compiled = 0, refused = 0;
  for (int k = 0; k < 4000; ++k) {
    std::string text = mutate(rng);
    try {
      csl::compile(fuzz_options(text));
      ++compiled;
    } catch (const Error& e) {
      ASSERT_NE(e.kind(), ErrorKind::internal) << e.what() << "\n" << text;
      ++refused;
    }
  }
  std::printf("%d compiled, %d refused\n", compiled, refused);
  EXPECT_GT(compiled, 50);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace weft::wse::testing
