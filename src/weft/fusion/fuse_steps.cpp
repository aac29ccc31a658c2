// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/fuse_steps.h"

namespace weft {

LoneRow lone_row(const Step& s) {
  if (s.kind != StepKind::eager && s.brief.size() != 1) return {};
  const bool brief = s.kind != StepKind::eager;
  const Lazy& x = brief ? s.brief[0].node : s.node;
  // Powers look at their exponents, and parts of complex numbers are views.
  if (x->kind != LazyKind::elementwise || x->op == Op::pow || x->op == Op::real ||
      x->op == Op::imag)
    return {};
  LoneRow out;
  out.function = kernels().elementwise[static_cast<int>(x->op)][static_cast<int>(x->compute)];
  out.result = x.elem();
  for (std::size_t k = 0; k < x->in.size(); ++k) {
    const Lazy& in = x->in[k];
    if (in->kind != LazyKind::input || in.elem() != x->compute || !(in.shape() == x.shape()))
      return {};
    out.slots[out.count++] = in->index;
  }
  return out;
}

}  // namespace weft
