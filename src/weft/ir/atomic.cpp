// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/atomic.h"

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::ir {

bool can_add_atomically(DType type) {
  return type.is_scalar() && (type.bits == 32 || type.bits == 64) &&
         (type.is_integral() || (type.is_float() && !type.is_bfloat()));
}

Stmt atomic_add(const Buffer& buffer, const Exprs& indices, Expr value) {
  Expr element = load(buffer, indices);
  if (!can_add_atomically(element->dtype)) {
    throw Error(
        ErrorKind::dtype, "ir.atomic.type",
        cat("an atomic addition to \"", buffer->name, "\" is one of ", to_string(element->dtype)))
        .note("legal: int32, int64, uint32, uint64, float32, float64; one element, no vector")
        .help("keep the sums in a buffer of one of these types and convert them afterwards");
  }
  if (value->dtype != element->dtype) {
    throw Error(ErrorKind::dtype, "ir.atomic.value",
                cat("\"", buffer->name, "\" holds ", to_string(element->dtype), ", but ",
                    to_string(value->dtype), " is added"))
        .help(cat("cast the value to ", to_string(element->dtype)));
  }
  const DType type = element->dtype;
  Expr sum = call_typed(type, "atomic_add", {std::move(element), std::move(value)});
  return make_ref<const StoreNode>(buffer, std::move(sum), indices);
}

const CallNode* as_atomic(const StoreNode* s) {
  const auto* c = s ? as<CallNode>(s->value) : nullptr;
  return c && c->op == "atomic_add" ? c : nullptr;
}

bool adds_atomically(const Stmt& s, const BufferNode* buffer) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) {
    const auto* store = as<StoreNode>(t);
    found = found || (as_atomic(store) && (!buffer || store->buffer.get() == buffer));
  });
  return found;
}

}  // namespace weft::ir
