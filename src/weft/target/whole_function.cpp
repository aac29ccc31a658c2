// SPDX-License-Identifier: Apache-2.0
#include "weft/target/whole_function.h"

#include "weft/base/text.h"

namespace weft {

using runtime::ParamKind;

runtime::KernelSignature whole_signature(const ir::PrimFunc& f) {
  runtime::KernelSignature out;
  out.name = f->name;
  for (const ir::Param& p : f->params) {
    if (p.buffer)
      out.params.push_back({p.buffer->name, ParamKind::pointer, p.buffer->dtype, p.buffer->scope});
  }
  for (const ir::Param& p : f->params) {
    if (!p.buffer) out.params.push_back({p.var->name, ParamKind::scalar, p.var->dtype, "global"});
  }
  for (const ir::Param& p : f->params) {
    if (!p.buffer) continue;
    for (std::size_t d = 0; d < p.buffer->ndim(); ++d)
      out.params.push_back(
          {cat(p.buffer->name, ".shape.", d), ParamKind::scalar, dtypes::int64, "global"});
    for (std::size_t d = 0; d < p.buffer->strides.size(); ++d)
      out.params.push_back(
          {cat(p.buffer->name, ".stride.", d), ParamKind::scalar, dtypes::int64, "global"});
  }
  return out;
}

}  // namespace weft
