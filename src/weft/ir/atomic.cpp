// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/atomic.h"

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::ir {

namespace {
constexpr std::string_view kAdd = "atomic_add", kMax = "atomic_max";
}  // namespace

bool is_atomic(std::string_view op) { return op == kAdd || op == kMax; }

bool can_update_atomically(std::string_view op, DType type) {
  if (!type.is_scalar()) return false;
  if (op == kMax) return type.bits == 32 && type.is_integral();
  return (type.bits == 32 || type.bits == 64) &&
         (type.is_integral() || (type.is_float() && !type.is_bfloat()));
}

Stmt atomic_update(std::string_view op, const Buffer& buffer, const Exprs& indices, Expr value) {
  const bool adds = op == kAdd;
  Expr element = load(buffer, indices);
  if (!can_update_atomically(op, element->dtype)) {
    throw Error(ErrorKind::dtype, "ir.atomic.type",
                cat(adds ? "an atomic addition to \"" : "an atomic maximum in \"", buffer->name,
                    "\" is one of ", to_string(element->dtype)))
        .note(adds ? "legal: int32, int64, uint32, uint64, float32, float64; one element, no vector"
                   : "legal: int32, uint32; one element, no vector")
        .help(
            adds ? "keep the sums in a buffer of one of these types and convert them afterwards"
                 : "keep the maxima in a buffer of one of these types and convert them afterwards");
  }
  if (value->dtype != element->dtype) {
    throw Error(ErrorKind::dtype, "ir.atomic.value",
                cat("\"", buffer->name, "\" holds ", to_string(element->dtype), ", but ",
                    to_string(value->dtype), adds ? " is added" : " is compared with it"))
        .help(cat("cast the value to ", to_string(element->dtype)));
  }
  const DType type = element->dtype;
  Expr updated = call_typed(type, std::string(op), {std::move(element), std::move(value)});
  return make_ref<const StoreNode>(buffer, std::move(updated), indices);
}

Stmt atomic_add(const Buffer& buffer, const Exprs& indices, Expr value) {
  return atomic_update(kAdd, buffer, indices, std::move(value));
}
Stmt atomic_max(const Buffer& buffer, const Exprs& indices, Expr value) {
  return atomic_update(kMax, buffer, indices, std::move(value));
}

const CallNode* as_atomic(const StoreNode* s) {
  const auto* c = s ? as<CallNode>(s->value) : nullptr;
  return c && is_atomic(c->op) ? c : nullptr;
}

bool updates_atomically(const Stmt& s, const BufferNode* buffer) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) {
    const auto* store = as<StoreNode>(t);
    found = found || (as_atomic(store) && (!buffer || store->buffer.get() == buffer));
  });
  return found;
}

}  // namespace weft::ir
