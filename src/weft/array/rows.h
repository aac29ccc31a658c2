// SPDX-License-Identifier: Apache-2.0
// What algorithms over rows of a matrix on the host have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "weft/runtime/pool.h"

namespace weft {

template <typename T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}

/// f(first, end) for parts of the rows, which threads share; one row stays with the caller, who
/// may share it inside.
template <typename F>
void for_rows(std::int64_t rows, std::int64_t n, const F& f) {
  if (rows == 1) return f(std::int64_t{0}, std::int64_t{1});
  runtime::Pool::shared().parallel_for(rows, std::max<std::int64_t>(1, 4096 / n), f);
}

}  // namespace weft
