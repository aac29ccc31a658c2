// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is made of the words of a counter (random.h), for code that makes the words by itself.

#include "weft/operators/random.h"

namespace weft::operators {

/// Words that numbers are made of together: one; two for pairs of normal numbers and for float64.
inline std::int64_t random_words(RandomNumbers kind) {
  if (kind == RandomNumbers::normal64) return 4;
  return kind == RandomNumbers::bits || kind == RandomNumbers::uniform ? 1 : 2;
}
/// then(the numbers that `random_words` words give).
ir::Stmt random_of_words(RandomNumbers kind, const ir::Exprs& words,
                         const std::function<ir::Stmt(const ir::Exprs&)>& then);

}  // namespace weft::operators
