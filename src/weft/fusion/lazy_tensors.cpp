// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/lazy_tensors.h"

#include <unordered_map>

namespace weft {

std::vector<Tensor> evaluate(const std::vector<Lazy>& outputs, const std::vector<Tensor>& inputs) {
  std::unordered_map<const LazyNode*, Tensor> values;
  auto number = [](const Lazy& x) { return x->kind == LazyKind::number; };
  auto value = [&](const Lazy& x) { return values.at(x.node()); };
  for (const Lazy& x : topological(outputs)) {
    Tensor& out = values[x.node()];
    switch (x->kind) {
      case LazyKind::input: out = inputs.at(static_cast<std::size_t>(x->index)); break;
      case LazyKind::number:
        out = Tensor(full(inputs.at(0).device(), x.elem(), Dims{}, x->number));
        break;
      case LazyKind::broadcast:
        out = x->held ? value(x->in[0]).detach() : broadcast_to(value(x->in[0]), x.shape());
        break;
      case LazyKind::cast: out = astype(value(x->in[0]), x.elem()); break;
      case LazyKind::where: out = where(value(x->in[0]), value(x->in[1]), value(x->in[2])); break;
      case LazyKind::elementwise: {
        const Lazy& a = x->in[0];
        if (x->in.size() == 1) out = apply(x->op, value(a));
        else if (number(x->in[1]) && !number(a)) out = apply(x->op, value(a), x->in[1]->number);
        else if (number(a) && !number(x->in[1])) out = apply(x->op, a->number, value(x->in[1]));
        else out = apply(x->op, value(a), value(x->in[1]));
        break;
      }
      default: WEFT_CHECK(false, "only elementwise graphs are computed over tensors");
    }
  }
  std::vector<Tensor> out;
  for (const Lazy& x : outputs) out.push_back(value(x));
  return out;
}

}  // namespace weft
