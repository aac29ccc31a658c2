// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is refused, and with which words.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "weft/base/error.h"

namespace weft::test {

/// The error's code and text.
inline std::pair<std::string, std::string> failure(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {"accepted", ""};
}

/// Fails unless `f` throws the error `code` with `text` in it.
inline void expect_refusal(const std::function<void()>& f, const std::string& code,
                           const std::string& text) {
  auto [got, what] = failure(f);
  EXPECT_EQ(got, code);
  EXPECT_NE(what.find(text), std::string::npos) << what;
}

}  // namespace weft::test
