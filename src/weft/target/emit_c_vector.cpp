// SPDX-License-Identifier: Apache-2.0
// Whole vectors of GCC and Clang (VectorStyle::gnu): values with operators, loads and stores
// anywhere in memory, local buffers as arrays of vectors, which the compiler keeps in registers.

#include <bit>

#include "weft/base/error.h"
#include "weft/ir/float_cast.h"
#include "weft/target/emit_c_kernel.h"

namespace weft::emit {

bool Expressions::is_whole(DType t) const {
  const DType e = t.element();
  const bool plain = e.is_integral() ? e.bits >= 8 : e.is_float() && e.bits >= 32;
  const auto lanes = static_cast<unsigned>(t.lanes);
  return plain && !e.is_bool() && t.lanes > 1 && std::has_single_bit(lanes) &&
         t.lanes * e.bytes() <= spelling_.vector_bytes;
}

std::string Expressions::whole_type(DType t, bool loose) {
  const DType e = t.element();
  const std::string lanes = std::to_string(static_cast<int>(t.lanes)),
                    name = cat("weft_", short_name(e), "x", lanes);
  const std::string bytes = std::to_string(t.lanes * e.bytes());
  helpers_.define(
      name, cat("typedef ", type(e), " ", name, " __attribute__((vector_size(", bytes, ")));\n"));
  if (!loose) return name;
  helpers_.define(name + "_loose",
                  cat("typedef ", type(e), " ", name, "_loose __attribute__((vector_size(", bytes,
                      "), aligned(", e.bytes(), "), may_alias));\n"));
  return name + "_loose";
}

bool Expressions::speaks_whole(const Expr& e) const {
  if (!is_whole(e->dtype)) return false;
  const DType t = e->dtype.element();
  if (ir::is_binary(e->kind)) {
    const auto* b = ir::as<ir::BinaryNode>(e);
    switch (e->kind) {
      case ir::ExprKind::add:
      case ir::ExprKind::sub:
      case ir::ExprKind::mul:
      case ir::ExprKind::min:
      case ir::ExprKind::max: break;
      case ir::ExprKind::div:
        if (t.is_float()) break;
        return false;
      default: return false;
    }
    return speaks_whole(b->a) && speaks_whole(b->b);
  }
  switch (e->kind) {
    case ir::ExprKind::var: return whole_vars.count(ir::as<ir::VarNode>(e)) != 0;
    case ir::ExprKind::broadcast: return ir::as<ir::BroadcastNode>(e)->value->dtype.is_scalar();
    case ir::ExprKind::load: {
      const auto* l = ir::as<ir::LoadNode>(e);
      const auto* r = l->indices.size() == 1 ? ir::as<ir::RampNode>(l->indices[0]) : nullptr;
      return r && ir::is_const_int_value(r->stride, 1) && l->buffer->dtype.is_scalar();
    }
    case ir::ExprKind::cast: {
      const Expr& v = ir::as<ir::CastNode>(e)->value;
      return speaks_whole(v);
    }
    case ir::ExprKind::select: {
      const auto* s = ir::as<ir::SelectNode>(e);
      return mask_bits(s->condition) == t.bits && speaks_whole(s->a) && speaks_whole(s->b);
    }
    case ir::ExprKind::call: {
      const auto* c = ir::as<ir::CallNode>(e);
      if (c->op == "reinterpret")
        return c->args[0]->dtype.bits == e->dtype.bits && speaks_whole(c->args[0]);
      if (c->op == "dot") return speaks_whole(c->args[0]) && t.bits == 32;
      if (c->op == "nontemporal" || c->op == "likely" || c->op == "bitwise_not")
        return speaks_whole(c->args[0]);
      if (c->op == "bitwise_and" || c->op == "bitwise_or" || c->op == "bitwise_xor")
        return speaks_whole(c->args[0]) && speaks_whole(c->args[1]);
      return false;
    }
    default: return false;
  }
}

int Expressions::mask_bits(const Expr& e) const {
  switch (e->kind) {
    case ir::ExprKind::eq:
    case ir::ExprKind::ne:
    case ir::ExprKind::lt:
    case ir::ExprKind::le:
    case ir::ExprKind::gt:
    case ir::ExprKind::ge: {
      const auto* b = ir::as<ir::BinaryNode>(e);
      return speaks_whole(b->a) && speaks_whole(b->b) ? b->a->dtype.bits : 0;
    }
    case ir::ExprKind::and_:
    case ir::ExprKind::or_: {
      const auto* b = ir::as<ir::BinaryNode>(e);
      const int bits = mask_bits(b->a);
      return bits == mask_bits(b->b) ? bits : 0;
    }
    case ir::ExprKind::not_: return mask_bits(ir::as<ir::NotNode>(e)->a);
    default: return 0;
  }
}

std::string Expressions::mask(const Expr& e) {
  if (e->kind == ir::ExprKind::not_) return cat("(~", mask(ir::as<ir::NotNode>(e)->a), ")");
  const auto* b = ir::as<ir::BinaryNode>(e);
  if (e->kind == ir::ExprKind::and_ || e->kind == ir::ExprKind::or_)
    return cat("(", mask(b->a), e->kind == ir::ExprKind::and_ ? " & " : " | ", mask(b->b), ")");
  const char* op = e->kind == ir::ExprKind::eq   ? " == "
                   : e->kind == ir::ExprKind::ne ? " != "
                   : e->kind == ir::ExprKind::lt ? " < "
                   : e->kind == ir::ExprKind::le ? " <= "
                   : e->kind == ir::ExprKind::gt ? " > "
                                                 : " >= ";
  return cat("(", whole(b->a), op, whole(b->b), ")");
}

/// C has no choice between vectors: their bits are combined.
std::string Expressions::choose(DType t, const std::string& mask, const std::string& a,
                                const std::string& b) {
  const std::string v = whole_type(t), m = whole_type(DType{TypeCode::int_, t.bits, t.lanes}),
                    name = cat("weft_choose_", v.substr(5));
  helpers_.define(name,
                  cat(spelling_.function_prefix, v, " ", name, "(", m, " mask, ", v, " a, ", v,
                      " b) { return (", v, ")(((", m, ")a & mask) | ((", m, ")b & ~mask)); }\n"));
  return cat(name, "((", m, ")", mask, ", ", a, ", ", b, ")");
}

std::string Expressions::whole_element(const ir::BufferNode* b, const ir::RampNode* r) {
  const std::string array = name(b, b->name);
  if (auto held = registers.find(b); held != registers.end()) {
    const Expr first = ir::substitute(r->base, integers);
    const Expr at =
        arith::simplify(ir::floordiv(first, ir::make_const(held->second, first->dtype)));
    return cat(array, "[", bare(at), "]");
  }
  return cat("(*(", whole_type(b->dtype.with_lanes(r->dtype.lanes), true), "*)(", array, " + ",
             text(r->base), "))");
}

std::string Expressions::whole(const Expr& e) {
  const std::string v = whole_type(e->dtype);
  switch (e->kind) {
    case ir::ExprKind::var: {
      const auto* x = ir::as<ir::VarNode>(e);
      return name(x, x->name);
    }
    case ir::ExprKind::broadcast: {
      const Expr& x = ir::as<ir::BroadcastNode>(e)->value;
      const std::string function = cat("weft_spread_", v.substr(5));
      std::string list;
      for (int i = 0; i < e->dtype.lanes; ++i) list += i ? ", x" : "x";
      helpers_.define(
          function, cat(spelling_.function_prefix, v, " ", function, "(", type(e->dtype.element()),
                        " x) { return (", v, "){", list, "}; }\n"));
      return cat(function, "(", bare(x), ")");
    }
    case ir::ExprKind::load: {
      const auto* l = ir::as<ir::LoadNode>(e);
      return whole_element(l->buffer.get(), ir::as<ir::RampNode>(l->indices[0]));
    }
    case ir::ExprKind::cast: {
      const Expr& x = ir::as<ir::CastNode>(e)->value;
      if (x->dtype == e->dtype) return whole(x);
      std::string value = whole(x);
      if (const DType carrier = ir::carrier_of_float(e->dtype);
          x->dtype.is_float() && carrier != e->dtype)
        value = cat("__builtin_convertvector(", value, ", ", whole_type(carrier), ")");
      return cat("__builtin_convertvector(", value, ", ", v, ")");
    }
    case ir::ExprKind::select: {
      const auto* s = ir::as<ir::SelectNode>(e);
      return choose(e->dtype, mask(s->condition), whole(s->a), whole(s->b));
    }
    case ir::ExprKind::call: {
      const auto* c = ir::as<ir::CallNode>(e);
      const std::string a = whole(c->args[0]);
      if (c->op == "dot") return whole_dot(c, a);
      if (c->op == "reinterpret") return cat("((", v, ")", a, ")");
      if (c->op == "bitwise_not") return cat("(~", a, ")");
      if (c->args.size() == 1) return a;
      const char* op = c->op == "bitwise_and" ? " & " : c->op == "bitwise_or" ? " | " : " ^ ";
      return cat("(", a, op, whole(c->args[1]), ")");
    }
    default: break;
  }
  const auto* b = ir::as<ir::BinaryNode>(e);
  WEFT_CHECK(b, "a vector that cannot be written whole");
  if (e->kind == ir::ExprKind::min || e->kind == ir::ExprKind::max) {
    const bool least = e->kind == ir::ExprKind::min, real = e->dtype.is_float();
    const std::string function = cat(least ? "weft_min_" : "weft_max_", v.substr(5));
    const char* sign = least ? "<" : ">";
    std::string body;
    if (real) {  // NaN wins
      body = cat("return ", choose(e->dtype, cat("((a ", sign, " b) | (a != a))"), "a", "b"), ";");
    } else {  // compilers know the instruction in this form, not in that of masks
      body = cat("for (int l = 0; l < ", e->dtype.lanes, "; ++l) b[l] = a[l] ", sign,
                 " b[l] ? a[l] : b[l]; return b;");
    }
    helpers_.define(function, cat(spelling_.function_prefix, v, " ", function, "(", v, " a, ", v,
                                  " b) { ", body, " }\n"));
    return cat(function, "(", whole(b->a), ", ", whole(b->b), ")");
  }
  const char* op = e->kind == ir::ExprKind::add   ? " + "
                   : e->kind == ir::ExprKind::sub ? " - "
                   : e->kind == ir::ExprKind::mul ? " * "
                                                  : " / ";
  return cat("(", whole(b->a), op, whole(b->b), ")");
}

/// The instruction of the processor that the compiler compiles for, or a loop over the lanes.
std::string Expressions::whole_dot(const ir::CallNode* c, const std::string& sums) {
  const DType t = c->dtype, a = c->args[1]->dtype, b = c->args[2]->dtype;
  const std::string v = whole_type(t), x = type(a.element()), y = type(b.element());
  const std::string function =
      cat("weft_dot_", short_name(a.element()), "_", short_name(b.element()), "_", v.substr(5));
  std::string fast;
  const bool mixed = a.bits == 8 && a.lanes == 4 && a.is_uint() != b.is_uint();
  const bool words = a.is_int() && b.is_int() && a.bits == 16 && a.lanes == 2;
  if (t.lanes == 8 && t.is_int() && (mixed || words)) {
    const char* const swap = mixed && a.is_int() ? "y, x" : "x, y";
    const char* const op = mixed ? "dpbusd" : "dpwssd";
    fast =
        cat("#if defined(__AVX512VNNI__) && defined(__AVX512VL__)\n  WEFT_DOT_OPERANDS\n  return (",
            v, ")_mm256_", op, "_epi32((__m256i)c, ", swap,
            ");\n#elif defined(__AVXVNNI__)\n  WEFT_DOT_OPERANDS\n  return (", v, ")_mm256_", op,
            "_avx_epi32((__m256i)c, ", swap, ");\n#elif defined(__AVX2__)\n");
    if (words) {
      fast += cat("  WEFT_DOT_OPERANDS\n  return c + (", v, ")_mm256_madd_epi16(x, y);\n#else\n");
    } else {
      const char *one = a.is_uint() ? "epu8" : "epi8", *many = a.is_uint() ? "epi8" : "epu8";
      fast += cat(
          "  int32_t four;\n  memcpy(&four, a, 4);\n  const __m256i x = _mm256_cvt", one,
          "_epi16(_mm_set1_epi32(four));\n  const __m256i low = _mm256_madd_epi16(x, _mm256_cvt",
          many,
          "_epi16(_mm_loadu_si128((const __m128i*)b))),\n                high = "
          "_mm256_madd_epi16(x, _mm256_cvt",
          many, "_epi16(_mm_loadu_si128((const __m128i*)b + 1)));\n  return c + (", v,
          ")_mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);\n#else\n");
    }
    helpers_.define("WEFT_DOT_OPERANDS",
                    "#include <string.h>\n#if defined(__AVX2__)\n#include <immintrin.h>\n"
                    "#define WEFT_DOT_OPERANDS \\\n  int32_t word; \\\n  memcpy(&word, a, 4); \\\n"
                    "  const __m256i x = _mm256_set1_epi32(word), y = _mm256_loadu_si256((const "
                    "__m256i*)b);\n#endif\n");
  }
  const auto value = [&](DType from, const char* array, const std::string& at) {
    return load_value(from.element(), cat(array, "[", at, "]"));
  };
  const std::string n = std::to_string(static_cast<int>(a.lanes)), sum = type(t.element());
  std::string loop =
      cat("  for (int l = 0; l < ", static_cast<int>(t.lanes), "; ++l)\n    for (int e = 0; e < ",
          n, "; ++e) c[l] += (", sum, ")", value(a, "a", "e"), " * (", sum, ")",
          value(b, "b", cat("l * ", n, " + e")), ";\n  return c;\n");
  helpers_.define(function, cat(spelling_.function_prefix, v, " ", function, "(", v, " c, const ",
                                storage_type(a.element()), "* a, const ", storage_type(b.element()),
                                "* b) {\n", fast, loop, fast.empty() ? "" : "#endif\n", "}\n"));
  const auto address = [&](const Expr& e) {
    const auto* l = ir::as<ir::LoadNode>(e);
    return cat(name(l->buffer.get(), l->buffer->name), " + ",
               text(ir::as<ir::RampNode>(l->indices[0])->base));
  };
  return cat(function, "(", sums, ", ", address(c->args[1]), ", ", address(c->args[2]), ")");
}

std::string Expressions::whole_stream(const ir::BufferNode* b, const ir::RampNode* r,
                                      const std::string& value, bool aligned) {
  const DType t = b->dtype.with_lanes(r->dtype.lanes);
  const std::string v = whole_type(t), loose = whole_type(t, true),
                    name = cat("weft_stream_", aligned ? "aligned_" : "", v.substr(5));
  const int bytes = t.lanes * t.element().bytes();
  std::string fast;
  if (bytes == 16 || bytes == 32 || bytes == 64) {
    const std::string floats = whole_type(dtypes::float32.with_lanes(bytes / 4));
    const char* level = bytes == 16 ? "__SSE__" : bytes == 32 ? "__AVX__" : "__AVX512F__";
    const char* width = bytes == 16 ? "" : bytes == 32 ? "256" : "512";
    const std::string when = aligned ? "  { " : cat("  if ((uintptr_t)p % ", bytes, " == 0) { ");
    fast =
        cat("#if defined(__clang__)\n", when, "__builtin_nontemporal_store(v, (", v,
            "*)p); return; }\n#elif defined(__GNUC__) && defined(", level, ")\n", when,
            "__builtin_ia32_movntps", width, "((float*)p, (", floats, ")v); return; }\n#endif\n");
  }
  helpers_.define(name, cat(spelling_.function_prefix, "void ", name, "(void* p, ", v, " v) {\n",
                            fast, "  *(", loose, "*)p = v;\n}\n"));
  return cat(name, "(", this->name(b, b->name), " + ", text(r->base), ", ", value, ");");
}

bool KernelText::store_whole(const StoreNode* t) {
  const auto* r = as<RampNode>(t->indices[0]);
  if (!r || !is_const_int_value(r->stride, 1) || t->value->dtype.element() != t->buffer->dtype ||
      !expr_.speaks_whole(t->value))
    return false;
  const std::string value = expr_.whole(t->value);
  if (streaming_ && !expr_.registers.count(t->buffer.get())) {
    const arith::Modular m = analyzer_.modular(substitute(r->base, expr_.integers));
    const int lanes = r->dtype.lanes, bytes = lanes * t->buffer->dtype.bytes();
    // Nobody else looks at the addresses that a program is called with.
    const bool aligned = has_flag(f_->attrs, "aligned_arguments") &&
                         t->buffer->align % bytes == 0 && (m.coeff == 0 || m.coeff % lanes == 0) &&
                         m.base % lanes == 0;
    line(expr_.whole_stream(t->buffer.get(), r, value, aligned));
    return true;
  }
  line(cat(expr_.whole_element(t->buffer.get(), r), " = ", value, ";"));
  return true;
}

int KernelText::register_lanes(const AllocateNode* t) const {
  const BufferNode* b = t->buffer.get();
  if (spelling_.vectors != VectorStyle::gnu || b->dtype.lanes != 1) return 0;
  // Vector variables are written whole when their values are, which their uses must know now.
  Expressions probe = expr_;
  int lanes = -1;
  auto meet = [&](const Expr& index) {
    const auto* r = as<RampNode>(index);
    int n = 0;
    if (r && is_const_int_value(r->stride, 1)) {
      const arith::Modular m = analyzer_.modular(substitute(r->base, probe.integers));
      n = r->dtype.lanes;
      if ((m.coeff != 0 && m.coeff % n != 0) || m.base % n != 0) n = 0;
    }
    lanes = lanes < 0 || lanes == n ? n : 0;
  };
  auto touches = [&](const Expr& e) {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      const auto* l = as<LoadNode>(x);
      found = found || (l && l->buffer.get() == b);
    });
    return found;
  };
  bool whole = true;
  for_each_stmt(t->body, [&](const Stmt& s) {
    if (const auto* let = as<LetStmtNode>(s)) {
      const bool speaks = probe.speaks_whole(let->value);
      if (let->value->dtype.lanes == 1 && let->value->dtype.is_integral())
        probe.integers[let->var.get()] = substitute(let->value, probe.integers);
      if (let->value->dtype.lanes > 1 && speaks) probe.whole_vars.insert(let->var.get());
      whole = whole && (speaks || !touches(let->value));
    } else if (const auto* st = as<StoreNode>(s)) {
      const auto* r = as<RampNode>(st->indices[0]);
      const bool speaks = r && is_const_int_value(r->stride, 1) &&
                          st->value->dtype.element() == st->buffer->dtype &&
                          probe.speaks_whole(st->value);
      if (st->buffer.get() == b) {
        whole = whole && speaks;
        meet(st->indices[0]);
      }
      whole = whole && (speaks || !touches(st->value)) && !touches(st->indices[0]);
    } else if (const auto* loop = as<ForNode>(s)) {
      if (loop->for_kind == ForKind::parallel && used_buffers(loop->body).count(b)) whole = false;
      whole = whole && !touches(loop->extent) && !touches(loop->min);
    } else if (const auto* condition = as<IfNode>(s)) {
      whole = whole && !touches(condition->condition);
    } else if (const auto* repeat = as<WhileNode>(s)) {
      whole = whole && !touches(repeat->condition);
    } else if (const auto* call = as<EvaluateNode>(s)) {
      whole = whole && !touches(call->value);
    } else if (const auto* assertion = as<AssertNode>(s)) {
      whole = whole && !touches(assertion->condition);
    }
  });
  for_each_expr(t->body, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e); l && l->buffer.get() == b) meet(l->indices[0]);
    // What a dot multiplies is read at its address.
    if (const auto* c = as<CallNode>(e); c && c->op == "dot")
      whole = whole && !touches(c->args[1]) && !touches(c->args[2]);
  });
  std::int64_t count = 0;
  if (!whole || lanes <= 1 ||
      !is_const_int(arith::simplify(b->shape.empty() ? make_int(1) : b->shape[0]), &count))
    return 0;
  return probe.is_whole(b->dtype.with_lanes(lanes)) && count % lanes == 0 ? lanes : 0;
}

}  // namespace weft::emit
