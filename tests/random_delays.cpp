// SPDX-License-Identifier: Apache-2.0
// In a test program with this source, WEFT_TEST_DELAYS=SEED makes every hand-over between host
// threads take a random time (weft/sim/delays.h): all that its tests say must hold then too.

#include "weft/sim/delays.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace {

class Delays final : public testing::Environment {
 public:
  void SetUp() override {
    if (const char* seed = std::getenv("WEFT_TEST_DELAYS"))
      delays_.emplace(std::strtoull(seed, nullptr, 10));
  }
  void TearDown() override {
    if (delays_) {
      EXPECT_GT(delays_->count(), 0);
    }
    delays_.reset();
  }

 private:
  std::optional<weft::sim::RandomDelays> delays_;
};

[[maybe_unused]] testing::Environment* const delays = testing::AddGlobalTestEnvironment(new Delays);

}  // namespace
