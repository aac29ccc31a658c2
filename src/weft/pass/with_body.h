// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "weft/ir/build.h"

namespace weft::pass {

/// The function with this body; itself where nothing changed.
inline ir::PrimFunc with_body(const ir::PrimFunc& f, ir::Stmt body) {
  if (body == f->body) return f;
  auto out = ir::edit(f);
  out->body = std::move(body);
  return out;
}

}  // namespace weft::pass
