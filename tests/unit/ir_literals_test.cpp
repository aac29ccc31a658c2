// SPDX-License-Identifier: Apache-2.0
// Arithmetic of literals in T-script is Python's: values worked out by hand.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/ir/interpret.h"
#include "weft/ir/text.h"

namespace weft::ir {
namespace {

/// What `O[0] = expression` stores.
template <typename T>
T stored(const std::string& expression, const char* dtype) {
  const PrimFunc f = parse_func("@T.prim_func\ndef main(O: T.Buffer((1,), \"" + std::string(dtype) +
                                "\")):\n    O[0] = " + expression + "\n");
  T out = 77;
  std::vector<InterpretArg> args = {{&out, {1}, {}, 0, 0}};
  interpret(f, args, 1000);
  return out;
}

TEST(IrLiterals, IntegersFollowPython) {
  struct Row {
    const char* text;
    std::int64_t value;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"7 + 2", 9},
           {"7 - 9", -2},
           {"-7 * 3", -21},
           {"7 // 2", 3},
           {"-7 // 2", -4},
           {"7 // -2", -4},
           {"-7 // -2", 3},
           {"-8 // 2", -4},
           {"8 // -2", -4},
           {"7 % 3", 1},
           {"-7 % 3", 2},
           {"7 % -3", -2},
           {"-7 % -3", -1},
           {"-6 % 3", 0},
           {"1 << 0", 1},
           {"1 << 62", std::int64_t{1} << 62},
           {"3 << 4", 48},
           {"-16 >> 2", -4},
           {"17 >> 3", 2},
           {"12 & 10", 8},
           {"12 | 10", 14},
           {"12 ^ 10", 6},
           {"-1 & 255", 255},
           {"9223372036854775806 + 1", INT64_MAX},
           {"2 + 3 * 4 - 6 // 4", 13},
       })
    EXPECT_EQ(stored<std::int64_t>(row.text, "int64"), row.value) << row.text;
}

TEST(IrLiterals, NumbersWithAPointFollowPython) {
  struct Row {
    const char* text;
    double value;
  };
  for (const Row& row : std::initializer_list<Row>{{"1.5 + 2", 3.5},
                                                   {"1.5 - 2", -0.5},
                                                   {"1.5 * -2", -3},
                                                   {"7 / 2", 3.5},
                                                   {"-7 / 2", -3.5},
                                                   {"3.0 / 2.0", 1.5},
                                                   {"-7.5 // 2", -4},
                                                   {"7.5 // 2", 3}})
    EXPECT_EQ(stored<double>(row.text, "float64"), row.value) << row.text;
}

TEST(IrLiterals, WhatHasNoValueIsRefused) {
  for (const char* text :
       {"1 // 0", "1 % 0", "1 / 0", "1 << 64", "1 << -1", "1 >> 64", "9223372036854775807 + 1",
        "-9223372036854775807 - 2", "9223372036854775807 * 2", "1.5 & 2", "1.5 << 2"}) {
    try {
      const auto value = stored<std::int64_t>(text, "int64");
      ADD_FAILURE() << text << " gave " << value;
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == "parse.literal" || e.code() == "parse.types") << text << e.what();
    }
  }
}

}  // namespace
}  // namespace weft::ir
