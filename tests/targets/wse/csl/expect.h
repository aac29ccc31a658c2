// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tests of libraries and built-ins expect: words of "out", a refusal, a fault.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "csl_run.h"

namespace weft::wse::testing {

using Words = std::vector<std::uint32_t>;

inline Words run_words(const csl::CompileOptions& o, int x = 0, int y = 0) {
  Ran ran(o, x, y);
  return ran.read<std::uint32_t>("out");
}

inline void expect_error(const csl::CompileOptions& o, const char* code, const char* text) {
  try {
    csl::compile(o);
    FAIL() << "compiled; wanted " << code;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

inline void expect_fault(const csl::CompileOptions& o, const char* code, const char* text) {
  try {
    Ran ran(o);
    FAIL() << "ran; wanted " << code;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

}  // namespace weft::wse::testing
