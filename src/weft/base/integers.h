// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace weft {

/// a / b, rounded up. Neither is negative, b is not zero, and their sum is no overflow.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace weft
