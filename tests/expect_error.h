// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one check of an error: its kind, its slug and what its text must name.

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "weft/base/error.h"

namespace weft::testing {

/// What was thrown, for tests that look at several places of it.
struct Refused {
  std::string code, text;
};
template <typename F>
Refused refused(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {"nothing was refused", ""};
}

template <typename F>
void expect_error(ErrorKind kind, std::string_view code,
                  std::initializer_list<std::string_view> parts, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(to_string(error.kind()), to_string(kind)) << error.what();
    for (std::string_view part : parts)
      EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
          << "\"" << part << "\" is not in\n"
          << error.what();
    return;
  }
  ADD_FAILURE() << code << ": nothing was refused";
}

}  // namespace weft::testing
