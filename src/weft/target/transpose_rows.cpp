// SPDX-License-Identifier: Apache-2.0
#include "weft/target/transpose_rows.h"

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft {

using namespace ir;

namespace {

constexpr const char* kKey = "instruction";
constexpr const char* kName = "transpose";

struct TypeName {
  const char *type, *shorter;
  int bits;
};
constexpr TypeName kTypes[] = {
    {"int8", "i8", 8},     {"uint8", "u8", 8},     {"int16", "i16", 16},
    {"uint16", "u16", 16}, {"float16", "f16", 16}, {"bfloat16", "bf16", 16},
    {"int32", "i32", 32},  {"uint32", "u32", 32},  {"float32", "f32", 32},
    {"int64", "i64", 64},  {"uint64", "u64", 64},  {"float64", "f64", 64}};

InstructionInfo row(const TransposeShape& shape, const TypeName& type) {
  const std::string n = std::to_string(shape.side);
  const std::string head =
      cat("@T.prim_func\ndef tile(A: T.Buffer((", n, ", ", n, "), \"", type.type,
          "\"), B: T.Buffer((", n, ", ", n, "), \"", type.type, "\")):\n");
  InstructionInfo out;
  out.name = cat(kName, ".", n, "x", n, ".", type.shorter);
  out.meaning = parse_func(
      cat(head, "    for i, j in T.grid(", n, ", ", n,
          "):\n        with T.block(\"tile\"):\n            vi, vj = T.axis.remap(\"SS\", [i, "
          "j])\n            B[vi, vj] = A[vj, vi]\n"),
      cat("<", out.name, ">"));
  out.implementation =
      parse_func(cat(head, "    for i in T.serial(", n, ", annotations={\"", kKey, "\": \"", kName,
                     "\"}):\n        for j in T.serial(", n, "):\n            B[i, j] = A[j, i]\n"),
                 cat("<", out.name, ">"));
  return out;
}

class CallTransposes final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    const Json* name = find_annotation(t->annotations, kKey);
    if (!name || !name->is_string() || name->as_string() != kName) return Rewriter::rewrite_for(s);
    Stmt out;
    const std::string why = tile(t, out);
    if (why.empty()) return out;
    Annotations notes = with_annotation(t->annotations, kKey, nullptr);
    return make_for(t->var, t->min, t->extent, t->body, t->for_kind, "",
                    with_annotation(notes, "scalarised", why));
  }

 private:
  /// Why the nest cannot be one call; "": `out` is it.
  static std::string tile(const ForNode* outer, Stmt& out) {
    VarMap lets;
    auto skip = [&](Stmt s) {
      while (const auto* l = as<LetStmtNode>(s)) {
        lets[l->var.get()] = substitute(l->value, lets);
        s = l->body;
      }
      return s;
    };
    const Stmt middle = skip(outer->body);
    const auto* inner = as<ForNode>(middle);
    const Stmt last = inner ? skip(inner->body) : nullptr;
    const auto* store = last ? as<StoreNode>(last) : nullptr;
    const auto* from = store ? as<LoadNode>(store->value) : nullptr;
    std::int64_t side = 0, width = 0;
    if (!from || !is_const_int(outer->extent, &side) || !is_const_int(inner->extent, &width) ||
        side != width)
      return "it is no longer two loops around a copy";
    const TransposeShape* shape = nullptr;
    for (const TransposeShape& each : transpose_shapes()) {
      if (each.side == side && each.bits == store->buffer->dtype.bits) shape = &each;
    }
    if (!shape) return cat("there is no tile of ", side, " ", to_string(store->buffer->dtype));
    const Var i = outer->var, j = inner->var;
    arith::Analyzer analyzer;
    analyzer.bind(i, {outer->min, outer->extent});
    analyzer.bind(j, {inner->min, inner->extent});
    struct Side {
      Expr base, step;
    };
    // base + row * step + column, for a row of the one loop and a column of the other.
    auto read = [&](const Expr& index, const Var& r, const Var& c, Side& side_of) {
      const Expr flat = substitute(index, lets);
      auto at = [&](std::int64_t x, std::int64_t y) {
        return analyzer.simplify(
            substitute(flat, {{r.get(), make_int(x, r->dtype)}, {c.get(), make_int(y, c->dtype)}}));
      };
      side_of = {at(0, 0), analyzer.simplify(at(1, 0) - at(0, 0))};
      auto wide = [&](const Expr& e) { return cast(flat->dtype, e); };
      return analyzer.prove_equal(flat, side_of.base + wide(r) * side_of.step + wide(c));
    };
    Side to, of;
    if (!read(store->indices[0], i, j, to))
      return cat("rows of \"", store->buffer->name, "\" are not contiguous");
    if (!read(from->indices[0], j, i, of))
      return cat("rows of \"", from->buffer->name, "\" are not contiguous");
    auto address = [](const Buffer& b, const Expr& e) {
      return call("address_of", {load(b, {e})});
    };
    out = evaluate(
        call("instruction", {make_string(shape->function()), address(store->buffer, to.base),
                             cast(dtypes::int64, to.step), address(from->buffer, of.base),
                             cast(dtypes::int64, of.step)}));
    return "";
  }
};

/// The body of a tile of `pieces` pieces a row.
std::string vectors_text(const TransposeShape& shape, int pieces) {
  const int piece = shape.piece(), side = piece * pieces;
  const std::string element = cat("uint", shape.bits, "_t"),
                    bits = cat("b", std::to_string(shape.bits));
  std::string out;
  auto vector = [&](const char* name, int bytes, bool loose) {
    out += cat("  typedef ", element, " ", name, " __attribute__((vector_size(", bytes, ")",
               loose ? cat(", aligned(", shape.bits / 8, "), may_alias") : std::string(), "));\n");
  };
  vector("V", 16 * pieces, false);
  vector("L", 16 * pieces, true);
  vector("P", 16, true);
  out += cat("  typedef ", element, " E __attribute__((may_alias));\n  E* to = (E*)out;\n",
             "  const E* from = (const E*)in;\n");
  auto list = [](const std::vector<int>& mask) {
    std::string text;
    for (int m : mask) text += cat(", ", m);
    return text;
  };
  for (int h = 0; h < pieces; ++h) {
    for (int k = 0; k < piece; ++k) {
      auto at = [&](int r) {
        return cat("*(const P*)(from + ", r, " * in_step + ", h * piece, ")");
      };
      std::vector<int> both;
      for (int e = 0; e < 2 * piece; ++e) both.push_back(e);
      out += cat("  V v", h, "_0_", k, " = (V)",
                 pieces == 1
                     ? at(k)
                     : cat("__builtin_shufflevector(", at(k), ", ", at(k + piece), list(both), ")"),
                 ";\n");
    }
  }
  const auto steps = interleave_steps(piece);
  for (int h = 0; h < pieces; ++h) {
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (std::size_t k = 0; k < steps[s].size(); ++k) {
        const Interleave& x = steps[s][k];
        out +=
            cat("  V v", h, "_", s + 1, "_", k, " = __builtin_shufflevector(v", h, "_", s, "_", x.a,
                ", v", h, "_", s, "_", x.b, list(interleave_mask(piece, pieces, x.upper)), ");\n");
      }
    }
  }
  for (int r = 0; r < side; ++r) {
    out += cat("  *(L*)(to + ", r, " * out_step) = v", r / piece, "_", steps.size(), "_", r % piece,
               ";\n");
  }
  return out;
}

std::string function_text(const std::string& name, const std::string& body) {
  return cat("static inline __attribute__((always_inline)) void ", name,
             "(void* out, int64_t out_step, const void* in, int64_t in_step) {\n", body, "}\n");
}

}  // namespace

std::string TransposeShape::function() const {
  return cat("weft_transpose_", side, "x", side, "_b", bits);
}

const std::vector<TransposeShape>& transpose_shapes() {
  static const std::vector<TransposeShape> shapes = {{16, 8}, {8, 16}, {4, 32},
                                                     {8, 32}, {2, 64}, {4, 64}};
  return shapes;
}

const TransposeShape* find_transpose(std::string_view function) {
  for (const TransposeShape& shape : transpose_shapes()) {
    if (shape.function() == function) return &shape;
  }
  return nullptr;
}

// Each is read from text, and every question about the target asks for them.
const std::vector<InstructionInfo>& transpose_rows() {
  static const std::vector<InstructionInfo> rows = [] {
    std::vector<InstructionInfo> out;
    for (const TransposeShape& shape : transpose_shapes()) {
      for (const TypeName& type : kTypes) {
        if (type.bits == shape.bits) out.push_back(row(shape, type));
      }
    }
    return out;
  }();
  return rows;
}

PrimFunc call_transposes(const PrimFunc& f) {
  Stmt body = CallTransposes().rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = std::move(body);
  return out;
}

std::vector<std::vector<Interleave>> interleave_steps(int count) {
  std::vector<std::vector<Interleave>> out;
  for (int n = 1; n < count; n *= 2) {
    std::vector<Interleave> step;
    for (int i = 0; i < count / 2; ++i) {
      step.push_back({i, i + count / 2, false});
      step.push_back({i, i + count / 2, true});
    }
    out.push_back(std::move(step));
  }
  return out;
}

std::vector<int> interleave_mask(int piece, int pieces, bool upper) {
  std::vector<int> out;
  for (int p = 0; p < pieces; ++p) {
    for (int e = upper ? piece / 2 : 0; e < (upper ? piece : piece / 2); ++e) {
      out.push_back(p * piece + e);
      out.push_back((pieces + p) * piece + e);
    }
  }
  return out;
}

std::string transpose_definition(std::string_view function) {
  const TransposeShape* shape = find_transpose(function);
  if (!shape) return "";
  const std::string name(function);
  const int piece = shape->piece(), pieces = shape->side / piece;
  std::string out =
      "\n#if defined(__has_builtin)\n#if __has_builtin(__builtin_shufflevector)\n"
      "#define WEFT_SHUFFLES 1\n#endif\n#endif\n#if defined(WEFT_SHUFFLES)\n";
  if (pieces == 1) {
    out += function_text(name, vectors_text(*shape, 1));
  } else {  // a row of two pieces needs vectors of 32 bytes that shuffle in place
    const std::string quarter = name + "_quarter";
    out += cat("#if defined(__AVX2__)\n", function_text(name, vectors_text(*shape, pieces)),
               "#else\n", function_text(quarter, vectors_text(*shape, 1)),
               function_text(
                   name, cat("  for (int i = 0; i < ", shape->side, "; i += ", piece,
                             ")\n    for (int j = 0; j < ", shape->side, "; j += ", piece,
                             ")\n      ", quarter, "((char*)out + (i * out_step + j) * ",
                             shape->bits / 8, ", out_step, (const char*)in + (j * in_step + i) * ",
                             shape->bits / 8, ", in_step);\n")),
               "#endif\n");
  }
  const std::string bytes = std::to_string(shape->bits / 8);
  out += cat("#else\nstatic inline void ", name,
             "(void* out, int64_t out_step, const void* in, int64_t in_step) {\n",
             "  for (int i = 0; i < ", shape->side, "; ++i)\n    for (int j = 0; j < ", shape->side,
             "; ++j)\n      for (int b = 0; b < ", bytes,
             "; ++b)\n        ((char*)out)[(i * out_step + j) * ", bytes,
             " + b] = ((const char*)in)[(j * in_step + i) * ", bytes, " + b];\n}\n#endif\n");
  return out;
}

}  // namespace weft
