// SPDX-License-Identifier: Apache-2.0
#pragma once
// Polynomials among the operations of a graph: special functions are made of them, and a step for
// several products and sums reads and writes memory once.

#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/fusion/lazy.h"

namespace weft {

/// How often each node is an operand or an output.
using LazyUses = std::unordered_map<const LazyNode*, int>;
LazyUses lazy_uses(const std::vector<Lazy>& outputs);

/// (...(start * t + numbers[0]) * t + ...) + numbers.back(), at least three numbers.
struct LazyPolynomial {
  Lazy start, t;  // start may be a number
  std::vector<Scalar> numbers;
};
/// The polynomial whose last sum is x, where nothing else reads what lies between. Operations are
/// those of the graph, in their order.
std::optional<LazyPolynomial> polynomial_of(const Lazy& x, const LazyUses& uses);

}  // namespace weft
