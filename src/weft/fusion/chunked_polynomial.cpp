// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/chunked_polynomial.h"

#include <algorithm>

namespace weft {

namespace {

/// A step below which a run of operations stays what it is.
constexpr std::size_t kFewest = 3;

bool is_row(const Lazy& x, Op op, Elem compute) {
  return x->kind == LazyKind::elementwise && x->op == op && x->compute == compute;
}

}  // namespace

LazyUses lazy_uses(const std::vector<Lazy>& outputs) {
  LazyUses uses;
  for (const Lazy& node : topological(outputs)) {
    for (const Lazy& in : node->in) ++uses[in.node()];
  }
  for (const Lazy& output : outputs) ++uses[output.node()];
  return uses;
}

std::optional<LazyPolynomial> polynomial_of(const Lazy& x, const LazyUses& uses) {
  const Elem compute = x->compute;
  const auto read_once = [&](const Lazy& y) { return uses.at(y.node()) == 1; };
  LazyPolynomial out;
  for (Lazy at = x; is_row(at, Op::add, compute);) {
    const int place = at->in[1]->kind == LazyKind::number ? 1 : 0;
    const Lazy& number = at->in[static_cast<std::size_t>(place)];
    const Lazy& product = at->in[static_cast<std::size_t>(1 - place)];
    if (number->kind != LazyKind::number || !is_row(product, Op::multiply, compute) ||
        !read_once(product))
      break;
    const Lazy &a = product->in[0], &b = product->in[1];
    if (!out.t.defined()) out.t = b->kind == LazyKind::number ? a : b;
    if (a.node() != out.t.node() && b.node() != out.t.node()) break;
    out.start = b.node() == out.t.node() ? a : b;
    out.numbers.push_back(number->number);
    at = out.start;
    if (at->kind == LazyKind::number || !read_once(at)) break;
  }
  if (out.numbers.size() < kFewest) return std::nullopt;
  std::reverse(out.numbers.begin(), out.numbers.end());
  return out;
}

}  // namespace weft
