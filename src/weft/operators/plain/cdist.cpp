// SPDX-License-Identifier: Apache-2.0
// The distance between each row of one matrix and each row of another. Where it is 0 its gradient
// is 0, too.
#include "weft/operators/plain.h"

namespace weft::operators {

const PlainOperator& cdist() {
  static const PlainNest share{
      {"share", "m n"}, "", "T.Select(out[m, n] > T.{C}(0), g[m, n] / out[m, n], T.{C}(0))"};
  static const PlainOperator op{
      "cdist",
      {{"x", "m k"}, {"y", "n k"}},
      {{{"squares", "m n"}, "k", "(x[m, k] - y[n, k]) * (x[m, k] - y[n, k])"},
       {{"out", "m n"}, "", "T.sqrt(squares[m, n])"}},
      {{share, {{"dx", "m k"}, "n", "share[m, n] * (x[m, k] - y[n, k])"}},
       {share, {{"dy", "n k"}, "m", "share[m, n] * (y[n, k] - x[m, k])"}}}};
  return op;
}

}  // namespace weft::operators
