// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/target/emit_c_kernel.h"

namespace weft::emit {

std::string KernelText::assign(const std::string& target, const std::string& value) const {
  return streaming_ ? cat(spelling_.stream, "(&", target, ", ", value, ");")
                    : cat(target, " = ", value, ";");
}

void KernelText::atomic_text(const StoreNode* t, const CallNode* update) {
  const Buffer& b = t->buffer;
  const Expr& value = update->args[1];
  const bool adds = update->op == "atomic_add";
  const CSpelling::Atomics& known = adds ? spelling_.atomic_add : spelling_.atomic_max;
  const std::string type = to_string(b->dtype);
  auto found = b->scope.starts_with("shared") ? known.find(type + "@shared") : known.end();
  if (found == known.end()) found = known.find(type);
  if (found == known.end() || found->second.first.empty()) {
    std::vector<std::string> legal;
    for (const auto& [key, function] : known) {
      if (!function.first.empty() && key.find('@') == std::string::npos) legal.push_back(key);
    }
    throw Error(ErrorKind::emit, "emit.atomic",
                cat("T.", update->op, " of \"", b->name, "\" (", type, ", scope \"", b->scope,
                    "\") cannot be spelled on ", spelling_.target))
        .note(cat("in global memory ", spelling_.target,
                  adds ? " adds to: " : " has it for: ", legal.empty() ? "nothing" : join(legal)));
  }
  const bool own = b->scope != "global" && !b->scope.starts_with("shared");
  if (own && !spelling_.host_entry) {  // nobody else sees it
    const std::string element =
        cat(expr_.name(b.get(), b->name), "[", expr_.bare(t->indices[0]), "]");
    if (adds) return line(cat(element, " += ", expr_.bare_value(value), ";"));
    const std::string given = expr_.text(value);
    return line(cat("if (", given, " > ", element, ") ", element, " = ", given, ";"));
  }
  const auto& [function, definition] = found->second;
  if (!definition.empty()) expr_.define_helper(function, definition);
  line(cat(function, "(&", expr_.name(b.get(), b->name), "[", expr_.bare(t->indices[0]), "], ",
           expr_.bare_value(value), ");"));
}

void KernelText::store_stmt(const StoreNode* t) {
  if (const auto* c = as<CallNode>(t->value); c && c->op == "nontemporal") {
    Stmt plain = store(t->buffer, c->args[0], t->indices);
    streaming_ = !spelling_.stream.empty();
    if (streaming_) streams_ = true;
    else line(cat("/* nontemporal: ", spelling_.target, " has no such store, an ordinary one */"));
    store_stmt(as<StoreNode>(plain));
    streaming_ = false;
    return;
  }
  if (const CallNode* c = as_atomic(t)) return atomic_text(t, c);
  if (copying_ && started_copy(t)) return;
  std::string array = expr_.name(t->buffer.get(), t->buffer->name);
  DType element = t->buffer->dtype;
  const Expr& at = t->indices[0];
  if (t->value->dtype.lanes == 1) {
    line(assign(cat(array, "[", expr_.bare(at), "]"), bare_store(element, t->value)));
    return;
  }
  int lanes = t->value->dtype.lanes;
  if (spelling_.vectors == VectorStyle::gnu && store_whole(t)) return;
  if (spelling_.vectors == VectorStyle::loops || spelling_.vectors == VectorStyle::gnu)
    return store_lanes_loop(t, array, lanes);
  if (const auto* from = as<LoadNode>(t->value); from && from->buffer->dtype == element) {
    const auto *to = as<RampNode>(at), *r = as<RampNode>(from->indices[0]);
    if (to && r && copyable(t->buffer, to) && copyable(from->buffer, r)) {
      line(move_out(t->buffer, to, lanes, move_in(from, r)));
      return;
    }
  }
  hoist_vectors(t->value, t);
  const auto* r = as<RampNode>(at);
  if (r && movable(t->buffer, r)) {
    std::string value;
    if (auto held = expr_.vectors.find(t->value.get());
        held != expr_.vectors.end() && element == as<LoadNode>(t->value)->buffer->dtype &&
        !expr_.packs.count(held->second) && !expr_.backwards.count(t->value.get())) {
      value = held->second;
    } else {
      value = construct(element, lanes);
      for (int i = 0; i < lanes; ++i) {
        Lane lane{true, i, {}};
        value += (i ? ", " : "") + bare_store(element, t->value, &lane);
      }
      value += ")";
    }
    line(move_out(t->buffer, r, lanes, value));
  } else if (r && packed(t->buffer, r)) {
    const std::string id = pack(element, lanes);
    for (int i = 0; i < lanes; ++i) {
      Lane lane{true, i, {}};
      line(cat(id, "[", i, "] = ", bare_store(element, t->value, &lane), ";"));
    }
    line(move_out(t->buffer, r, lanes, unpacked(id, element, lanes)));
  } else {
    // All lanes are evaluated before any is stored.
    std::vector<std::string> values;
    bool hazard = lanes > 1 && reads_buffer(t->value, t->buffer.get());
    for (int i = 0; i < lanes; ++i) {
      Lane lane{true, i, {}};
      std::string v = bare_store(element, t->value, &lane);
      if (hazard) {
        std::string id = expr_.fresh("lane");
        line(cat("const ", expr_.storage_type(element), " ", id, " = ", v, ";"));
        v = id;
      }
      values.push_back(std::move(v));
    }
    for (int i = 0; i < lanes; ++i) {
      Lane lane{true, i, {}};
      line(
          assign(cat(array, "[", expr_.bare(at, &lane), "]"), values[static_cast<std::size_t>(i)]));
    }
  }
  expr_.vectors.clear();
  expr_.backwards.clear();
}

std::string KernelText::bare_store(DType element, const Expr& value, const Lane* lane) {
  // Storing rounds: a value that is rounded to the element's type is not rounded twice.
  const auto* c = as<CastNode>(value);
  if (c && element.is_float() && element.bits == 16 && c->dtype.element() == element.element() &&
      c->value->dtype.element() == dtypes::float32)
    return expr_.store_value(element, expr_.bare_value(c->value, lane));
  return expr_.store_value(element, expr_.bare_value(value, lane));
}

bool KernelText::needs_constant_lanes(const Expr& e) const {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* c = as<CallNode>(x))
      found = found || c->op == "vector_concat" || c->op == "vector_interleave";
    if (const auto* v = as<VarNode>(x))
      found = found || (v->dtype.lanes > 1 && !expr_.whole_vars.count(v));
  });
  return found;
}

void KernelText::store_lanes_loop(const StoreNode* t, const std::string& array, int lanes) {
  DType element = t->buffer->dtype;
  bool hazard = reads_buffer(t->value, t->buffer.get());
  if (needs_constant_lanes(t->value) || needs_constant_lanes(t->indices[0])) {
    line("{");
    ++indent_;
    std::string id = expr_.fresh("lanes");
    line(cat(expr_.storage_type(element), " ", id, "[", lanes, "];"));
    for (int i = 0; i < lanes; ++i) {
      Lane lane{true, i, {}};
      line(cat(id, "[", i, "] = ", bare_store(element, t->value, &lane), ";"));
    }
    for (int i = 0; i < lanes; ++i) {
      Lane lane{true, i, {}};
      line(assign(cat(array, "[", expr_.bare(t->indices[0], &lane), "]"), cat(id, "[", i, "]")));
    }
    --indent_;
    line("}");
    return;
  }
  std::string id = expr_.fresh("l");
  Lane lane{false, 0, id};
  std::string head = cat("for (int32_t ", id, " = 0; ", id, " < ", lanes, "; ++", id, ") ");
  std::string value = bare_store(element, t->value, &lane), at = expr_.bare(t->indices[0], &lane);
  if (!hazard) {
    line(head + assign(cat(array, "[", at, "]"), value));
    return;
  }
  std::string temp = expr_.fresh("lanes");
  line("{");
  ++indent_;
  line(cat(expr_.storage_type(element), " ", temp, "[", lanes, "];"));
  line(cat(head, temp, "[", id, "] = ", value, ";"));
  line(head + assign(cat(array, "[", at, "]"), cat(temp, "[", id, "]")));
  --indent_;
  line("}");
}

bool KernelText::movable(const Buffer& b, const RampNode* r) const {
  int lanes = r->dtype.lanes, bytes = lanes * b->dtype.bytes();
  if (!is_const_int_value(r->stride, 1) || b->dtype.lanes != 1 || b->dtype.is_bool()) return false;
  bool scalar16 = b->dtype.is_float() && b->dtype.bits == 16;
  if (scalar16 && spelling_.vectors == VectorStyle::casts) return false;
  if (spelling_.vectors == VectorStyle::load_store)
    return lanes == 2 || lanes == 4 || lanes == 8 || lanes == 16;
  if ((lanes != 2 && lanes != 4) || bytes > 16) return false;
  arith::Modular m = analyzer_.modular(r->base);
  return (m.coeff == 0 || m.coeff % lanes == 0) && m.base % lanes == 0;
}

bool KernelText::copyable(const Buffer& b, const RampNode* r) const {
  if (movable(b, r)) return true;
  const int lanes = r->dtype.lanes;
  if (spelling_.vectors != VectorStyle::members || !is_const_int_value(r->stride, 1) ||
      b->dtype.is_bool() || !spelling_.types.count(vector_name(b->dtype, lanes)))
    return false;
  arith::Modular m = analyzer_.modular(r->base);
  return (m.coeff == 0 || m.coeff % lanes == 0) && m.base % lanes == 0;
}

bool KernelText::packed(const Buffer& b, const RampNode* r) const {
  const int lanes = r->dtype.lanes;
  if (spelling_.vectors != VectorStyle::members || !is_const_int_value(r->stride, 1) ||
      b->dtype.lanes != 1 || b->scope != "global" || b->dtype.bytes() > 2 ||
      lanes * b->dtype.bytes() > 16 || !spelling_.types.count(vector_name(b->dtype, lanes)))
    return false;
  arith::Modular m = analyzer_.modular(r->base);
  return (m.coeff == 0 || m.coeff % lanes == 0) && m.base % lanes == 0;
}

std::string KernelText::pack(DType element, int lanes) {
  const std::string id = expr_.fresh("pack");
  line(cat(align_word(lanes * element.bytes()), expr_.storage_type(element), " ", id, "[", lanes,
           "];"));
  return id;
}

std::string KernelText::unpacked(const std::string& id, DType element, int lanes) const {
  return cat("*(", vector_type(element, lanes), "*)", id);
}

std::string KernelText::vector_name(DType element, int lanes) {
  DType t = element.is_float() && element.bits == 16 ? DType{TypeCode::uint_, 16, 1}
            : element.is_bool()                      ? dtypes::uint8
                                                     : element;
  return to_string(t.with_lanes(lanes));
}

std::string KernelText::vector_type(DType element, int lanes) const {
  auto found = spelling_.types.find(vector_name(element, lanes));
  if (found != spelling_.types.end()) return found->second;
  return cat(expr_.storage_type(element), lanes);
}

std::string KernelText::construct(DType element, int lanes) const {
  std::string type = vector_type(element, lanes);
  if (spelling_.vectors == VectorStyle::members) return cat("make_", type, "(");
  return spelling_.vectors == VectorStyle::load_store ? cat("(", type, ")(") : cat(type, "(");
}

std::string KernelText::address(const Buffer& b, const RampNode* r, bool constant) {
  std::string array = expr_.name(b.get(), b->name), type = vector_type(b->dtype, r->dtype.lanes);
  std::string where = cat(array, " + ", expr_.text(r->base));
  if (spelling_.vectors == VectorStyle::load_store) return where;
  std::string space = spelling_.vectors == VectorStyle::casts ? expr_.address_space(b->scope) : "";
  return cat("*(", space,
             constant && b->scope == "global" && !written_.count(b.get()) ? "const " : "", type,
             "*)(", where, ")");
}

std::string KernelText::move_in(const LoadNode* l, const RampNode* r) {
  if (spelling_.vectors == VectorStyle::load_store)
    return cat("vload", r->dtype.lanes, "(0, ", address(l->buffer, r, true), ")");
  return address(l->buffer, r, true);
}

std::string KernelText::move_out(const Buffer& b, const RampNode* r, int lanes,
                                 const std::string& value) {
  if (spelling_.vectors == VectorStyle::load_store)
    return cat("vstore", lanes, "(", value, ", 0, ", address(b, r, false), ");");
  return assign(address(b, r, false), value);
}

void KernelText::hoist_vectors(const Expr& value, const StoreNode* direct) {
  if (spelling_.vectors == VectorStyle::loops || spelling_.vectors == VectorStyle::gnu) return;
  for (const LoadNode* l : certain_vector_loads(value)) {
    const auto* r = as<RampNode>(l->indices[0]);
    if (expr_.vectors.count(l)) continue;
    Expr forwards;  // of neighbours that are read one before the other
    if (is_const_int_value(r->stride, -1)) {
      const DType type = r->base->dtype;
      forwards = ramp(arith::simplify(r->base - make_int(l->dtype.lanes - 1, type)),
                      make_int(1, type), l->dtype.lanes);
      r = as<RampNode>(forwards);
      if (movable(l->buffer, r) || packed(l->buffer, r)) expr_.backwards.insert(l);
    }
    if (!movable(l->buffer, r)) {
      if (!packed(l->buffer, r)) continue;
      const int lanes = l->dtype.lanes;
      const std::string id = pack(l->buffer->dtype, lanes);
      line(cat(unpacked(id, l->buffer->dtype, lanes), " = ", move_in(l, r), ";"));
      expr_.vectors[l] = id;
      expr_.packs.insert(id);
      continue;
    }
    if (!forwards && direct && direct->value.get() == l && as<RampNode>(direct->indices[0]) &&
        movable(direct->buffer, as<RampNode>(direct->indices[0])) &&
        direct->buffer->dtype == l->buffer->dtype) {
      expr_.vectors[l] = move_in(l, r);  // a plain copy needs no temporary
      continue;
    }
    std::string id = expr_.fresh("vector");
    line(cat("const ", vector_type(l->buffer->dtype, l->dtype.lanes), " ", id, " = ", move_in(l, r),
             ";"));
    expr_.vectors[l] = id;
  }
}

}  // namespace weft::emit
