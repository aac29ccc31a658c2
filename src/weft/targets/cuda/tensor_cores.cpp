// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/cuda/tensor_cores.h"

#include <cstdio>
#include <map>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/targets/cuda/roles.h"

namespace weft::cuda {

using namespace ir;

namespace {

/// Operand types of 16 bits; sums are float32.
constexpr const char* kFence = "weft_fence_async";
constexpr const char* kTypes[] = {"float16", "bfloat16"};

InstructionInfo row(const std::string& name, const std::string& operands,
                    const std::string& extents, const std::string& meaning,
                    const std::string& implementation) {
  InstructionInfo out;
  out.name = name;
  out.meaning =
      parse_func(cat("@T.prim_func\ndef tile(", operands, "):\n    for i, j, k in T.grid(", extents,
                     "):\n        with T.block(\"tile\"):\n            vi, vj, vk = "
                     "T.axis.remap(\"SSR\", [i, j, k])\n            ",
                     meaning, "\n"),
                 cat("<", name, ">"));
  out.implementation = parse_func(cat("@T.prim_func\ndef tile(", operands, "):\n", implementation),
                                  cat("<", name, ">"));
  return out;
}

std::string buffer(const char* name, const std::string& shape, const char* type,
                   const char* scope) {
  return cat(name, ": T.Buffer((", shape, "), \"", type, "\", scope=\"", scope, "\")");
}

/// 32 threads: A[m, 16] and B[16, n] row by row in shared memory.
InstructionInfo mma(int m, int n, const char* type) {
  const std::string a = cat("T.cast(A[vi, vk], \"float32\") * T.cast(B[vk, vj], \"float32\")");
  const std::string c = "C[vi % 8 * 4 + vj % 8 // 2, vi // 8, vj // 8, vj % 2]";
  return row(
      cat("cuda.mma.m", m, "n", n, "k16.", type),
      join({buffer("A", cat(m, ", 16"), type, "shared"),
            buffer("B", cat("16, ", n), type, "shared"),
            buffer("C", cat("32, ", m / 8, ", ", n / 8, ", 2"), "float32", "local")}),
      cat(m, ", ", n, ", 16"), cat(c, " = ", c, " + ", a),
      cat("    for t in T.thread_binding(32, thread=\"threadIdx.x\"):\n        for i in T.serial(",
          m / 16,
          ", annotations={\"instruction\": \"mma\"}):\n            for j, h, e, k in T.grid(",
          n / 8,
          ", 2, 2, 16):\n                C[t, i * 2 + h, j, e] = C[t, i * 2 + h, j, e] + "
          "T.cast(A[i * 16 + h * 8 + t // 4, k], \"float32\") * T.cast(B[k, j * 8 + t % 4 * 2 + "
          "e], \"float32\")\n"));
}

/// 128 threads: rows of 128 bytes, swizzled ("128B swizzle mode").
InstructionInfo wgmma(int n, const char* type) {
  const std::string c =
      "C[vi // 16 * 32 + vi % 8 * 4 + vj % 8 // 2, vj // 8, vi % 16 // 8, vj % 2]";
  const std::string row_of_t = "t // 32 * 16 + t % 32 // 4 + h * 8";
  return row(
      cat("cuda.wgmma.m64n", n, "k64.", type),
      join({buffer("A", "64, 8, 8", type, "shared"),
            buffer("B", cat(n / 64, ", 64, 8, 8"), type, "shared"),
            buffer("C", cat("128, ", n / 8, ", 2, 2"), "float32", "local")}),
      cat("64, ", n, ", 64"),
      cat(c, " = ", c,
          " + T.cast(A[vi, vk // 8 ^ vi % 8, vk % 8], \"float32\") * T.cast(B[vj // 64, vk, vj % "
          "64 "
          "// 8 ^ vk % 8, vj % 8], \"float32\")"),
      cat("    for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n        for j in T.serial(",
          n / 8,
          ", annotations={\"instruction\": \"wgmma\"}):\n            for h, e, k in T.grid(2, 2, "
          "64):\n                C[t, j, h, e] = C[t, j, h, e] + T.cast(A[",
          row_of_t,
          ", k // 8 ^ t % 32 // 4, k % 8], \"float32\") * T.cast(B[j // 8, k, j % 8 ^ k % 8, t % 4 "
          "* 2 + e], \"float32\")\n"));
}

/// What a loop annotated "instruction" adds up: C[c] += A[a] * B[b], with the nest's variables.
struct Nest {
  std::map<std::string, Var> vars;  // by the names of the implementation
  std::map<std::string, std::int64_t> extents;
  Var lane;  // the thread among those that work together; null: no index mentions it
  Var warp;  // where more than one of them is among the threads of the axis: their number
  const StoreNode* store = nullptr;
  const LoadNode *a = nullptr, *b = nullptr;
  VarMap lets;
};

[[noreturn]] void misplaced(const Buffer& b, const std::string& why) {
  throw Error(ErrorKind::emit, "cuda.instruction.layout",
              cat("\"", b->name, "\" does not lie as the tensor cores need: ", why))
      .help(
          "give the buffer the layout of the instruction by sch.transform_layout, and tiles whose "
          "rows begin at multiples of 16 bytes");
}

const LoadNode* operand(Expr e) {
  while (const auto* c = as<CastNode>(e)) e = c->value;
  return as<LoadNode>(e);
}

Nest read(const ForNode* loop, const char* names) {
  Nest out;
  Stmt s = loop->body;
  std::vector<const ForNode*> loops{loop};
  while (!out.store) {
    if (const auto* f = as<ForNode>(s)) loops.push_back(f), s = f->body;
    else if (const auto* l = as<LetStmtNode>(s))
      out.lets[l->var.get()] = substitute(l->value, out.lets), s = l->body;
    else if (const auto* t = as<StoreNode>(s)) out.store = t;
    else WEFT_CHECK(false, "a nest annotated \"instruction\" holds more than loops and one sum");
  }
  const std::string_view list(names);
  WEFT_CHECK(loops.size() == list.size(), "a nest annotated \"instruction\" lost a loop");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string key(1, list[i]);
    out.vars[key] = loops[i]->var;
    is_const_int(loops[i]->extent, &out.extents[key]);
  }
  const Expr value = substitute(out.store->value, out.lets);
  const auto* sum = as<BinaryNode>(value);
  const auto* product = sum ? as<BinaryNode>(sum->b) : nullptr;
  WEFT_CHECK(product && product->kind == ExprKind::mul, "a tensor core adds a product");
  out.a = operand(product->a), out.b = operand(product->b);
  WEFT_CHECK(out.a && out.b, "operands of a tensor core lie in memory");
  for (const LoadNode* l : {out.a, out.b}) {
    for (const VarNode* v : used_vars(l->indices[0]))
      if (v->name == "threadIdx.x") out.lane = Var(v);
  }
  return out;
}

/// The flat index of one operand, as a function of the nest's variables.
class Place {
 public:
  Place(const Nest& nest, const Buffer& b, const Expr& index)
      : nest_(nest), buffer_(b), index_(substitute(index, nest.lets)) {}

  Expr at(const std::map<std::string, std::int64_t>& values, std::int64_t lane = 0) const {
    VarMap map;
    for (const auto& [name, var] : nest_.vars) {
      auto found = values.find(name);
      map[var.get()] = make_const(found == values.end() ? 0 : found->second, var->dtype);
    }
    if (nest_.lane) {
      Expr thread = make_const(lane, nest_.lane->dtype);
      if (nest_.warp) thread = Expr(nest_.warp) * make_const(32, thread->dtype) + thread;
      map[nest_.lane.get()] = thread;
    }
    return arith::simplify(substitute(index_, map));
  }
  /// Elements from the first one to that at the given values.
  std::int64_t distance(const std::map<std::string, std::int64_t>& values,
                        std::int64_t lane = 0) const {
    std::int64_t out = 0;
    if (!is_const_int(arith::simplify(at(values, lane) - at({})), &out))
      misplaced(buffer_, cat("its index ", print(index_), " has strides known only at run time"));
    return out;
  }
  void expect(const std::map<std::string, std::int64_t>& values, std::int64_t lane,
              std::int64_t elements, const char* what) const {
    const std::int64_t found = distance(values, lane);
    if (found != elements)
      misplaced(buffer_, cat(what, " is ", found, " elements on, not ", elements));
  }
  Expr pointer() const {
    Expr first = at({});
    if (nest_.warp) {
      const Expr lane(nest_.lane);
      first = substitute(first,
                         VarMap{{nest_.warp.get(), floordiv(lane, make_const(32, lane->dtype))}});
    }
    return call("address_of", {load(buffer_, {first})});
  }
  /// The first element lies at a multiple of so many.
  void expect_multiple(std::int64_t elements) const {
    const Expr first = at({});
    if (!is_const_int_value(arith::simplify(floormod(first, make_int(elements, first->dtype))), 0))
      misplaced(buffer_, cat("its index ", print(first), " is no multiple of ", elements));
  }
  void expect_aligned(std::int64_t elements, const char* what) const {
    if (elements % 8)
      misplaced(buffer_, cat(what, " is ", elements, " elements, no multiple of 8"));
  }

 private:
  const Nest& nest_;
  Buffer buffer_;
  Expr index_;
};

/// "%0, %1, …" for operands begin … begin+count-1.
std::string percents(int begin, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += cat(i ? ", " : "", "%", begin + i);
  return out;
}

std::string short_type(const Buffer& b) {
  return to_string(b->dtype) == "float16" ? "f16" : "bf16";
}

std::string mma_helper(const std::string& name, int m, int n, const std::string& type) {
  std::string out = cat("static __device__ __forceinline__ void ", name,
                        "(float* c, const void* a, int lda, const void* b, int ldb) {\n"
                        "  const unsigned int lane = threadIdx.x;\n"
                        "  const unsigned int from_a = (unsigned int)__cvta_generic_to_shared(a) + "
                        "((lane & 15) * lda "
                        "+ (lane >> 4) * 8) * 2;\n"
                        "  const unsigned int from_b = (unsigned int)__cvta_generic_to_shared(b) + "
                        "((lane & 15) * ldb "
                        "+ (lane >> 4) * 8) * 2;\n  unsigned int fa[",
                        m / 16, "][4], fb[", n / 16, "][4];\n");
  const char* load =
      ".shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(f[0]), \"=r\"(f[1]), \"=r\"(f[2]), "
      "\"=r\"(f[3]) : \"r\"(";
  out += cat("#pragma unroll\n  for (int i = 0; i < ", m / 16,
             "; ++i) { unsigned int* f = fa[i]; asm volatile(\"ldmatrix.sync.aligned.m8n8.x4", load,
             "from_a + i * 32 * lda)); }\n");
  out += cat("#pragma unroll\n  for (int j = 0; j < ", n / 16,
             "; ++j) { unsigned int* f = fb[j]; asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans",
             load, "from_b + j * 32)); }\n");
  out +=
      cat("#pragma unroll\n  for (int i = 0; i < ", m / 16,
          "; ++i)\n#pragma unroll\n    for (int "
          "j = 0; j < ",
          n / 8, "; ++j) {\n      float* u = c + i * ", n / 2,
          " + j * 2;\n"
          "      float* v = u + ",
          n / 4,
          ";\n      const unsigned int* f = fb[j >> 1] + (j & 1) * 2;\n      asm("
          "\"mma.sync.aligned.m16n8k16.row.col.f32.",
          type, ".", type,
          ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" : \"+f\"(u[0]), "
          "\"+f\"(u[1]), \"+f\"(v[0]), \"+f\"(v[1]) : \"r\"(fa[i][0]), \"r\"(fa[i][1]), "
          "\"r\"(fa[i][2]), \"r\"(fa[i][3]), \"r\"(f[0]), \"r\"(f[1]));\n    }\n}\n");
  return out;
}

/// A function of instruction_definition on the first elements of a tile's operands.
Stmt instruction(const std::string& name, const Place& a, std::int64_t step_a, const Place& b,
                 std::int64_t step_b, const Place& c) {
  return evaluate(call("instruction", {make_string(name), c.pointer(), a.pointer(),
                                       make_int(step_a), b.pointer(), make_int(step_b)}));
}

Stmt mma_call(const ForNode* loop) {
  const Nest nest = read(loop, "ijhek");
  const int m = static_cast<int>(nest.extents.at("i")) * 16;
  const int n = static_cast<int>(nest.extents.at("j")) * 8;
  const Place a(nest, nest.a->buffer, nest.a->indices[0]),
      b(nest, nest.b->buffer, nest.b->indices[0]),
      c(nest, nest.store->buffer, nest.store->indices[0]);
  const std::int64_t lda = a.distance({}, 4), ldb = b.distance({{"k", 1}});
  a.expect({{"k", 1}}, 0, 1, "the next k");
  a.expect({{"h", 1}}, 0, 8 * lda, "the eighth row");
  a.expect({{"i", 1}}, 0, 16 * lda, "the sixteenth row");
  b.expect({{"e", 1}}, 0, 1, "the next column");
  b.expect({{"j", 1}}, 0, 8, "the eighth column");
  c.expect({{"e", 1}}, 0, 1, "the next column");
  c.expect({{"j", 1}}, 0, 2, "the eighth column");
  c.expect({}, 1, 0, "the next thread's part");
  c.expect({{"h", 1}}, 0, n / 4, "the eighth row");
  a.expect_aligned(lda, "a row");
  b.expect_aligned(ldb, "a row");
  return instruction(cat("weft_mma_m", m, "n", n, "_", short_type(nest.a->buffer)), a, lda, b, ldb,
                     c);
}

/// Fragments of m16n8k8, or of m8n8k4 before sm_90: a thread's k is its place among four, so that
/// every read of four k by eight rows falls on other banks where a line is 4 elements longer than a
/// multiple of 16, whichever axis lies along lines: that of k for the operands in `lines`.
std::string double_helper(const std::string& name, int m, int n, int k, std::string_view lines) {
  auto step = [&](const char* operand, bool along_k) {
    const bool contiguous = lines.find(operand[0]) != std::string_view::npos;
    return contiguous == along_k ? std::string() : cat(" * ld", operand);
  };
  std::string out = cat("static __device__ __forceinline__ void ", name,
                        "(double* c, const double* a, int lda, const double* b, int ldb) {\n"
                        "  const int lane = threadIdx.x & 31;\n");
  for (const char* x : {"a", "b"})
    out += cat("  ", x, " += (lane >> 2)", step(x, false), " + (lane & 3)", step(x, true), ";\n");
  out += cat("#pragma unroll\n  for (int k = 0; k < ", k, "; k += 8) {\n    double fa[", m / 8,
             "][2], fb[", n / 8, "][2];\n");
  auto fragments = [&](const char* x, int count) {
    out += cat("#pragma unroll\n    for (int i = 0; i < ", count, "; ++i) {");
    for (int h = 0; h < 2; ++h)
      out += cat(" f", x, "[i][", h, "] = ", x, "[(k + ", 4 * h, ")", step(x, true), " + i * 8",
                 step(x, false), "];");
    out += " }\n";
  };
  fragments("a", m / 8);
  fragments("b", n / 8);
  out += cat(
      "#pragma unroll\n    for (int i = 0; i < ", m / 8,
      "; i += 2)\n#pragma unroll\n      for (int j = 0; j < ", n / 8,
      "; ++j) {\n        double* u = c + i * ", n / 4, " + j * 2;\n        double* v = u + ", n / 4,
      ";\n#if __CUDA_ARCH__ >= 900\n        asm(\"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" : \"+d\"(u[0]), "
      "\"+d\"(u[1]), \"+d\"(v[0]), \"+d\"(v[1]) : \"d\"(fa[i][0]), \"d\"(fa[i + 1][0]), "
      "\"d\"(fa[i][1]), \"d\"(fa[i + 1][1]), \"d\"(fb[j][0]), \"d\"(fb[j][1]));\n#else\n");
  for (const char* h : {"0", "1"}) {
    for (const char* row : {"u", "v"}) {
      out +=
          cat("        asm(\"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, "
              "{%3}, {%0, %1};\" : \"+d\"(",
              row, "[0]), \"+d\"(", row, "[1]) : \"d\"(fa[i", row[0] == 'v' ? " + 1" : "", "][", h,
              "]), \"d\"(fb[j][", h, "]));\n");
    }
  }
  return out + "#endif\n      }\n  }\n}\n";
}

Stmt double_call(const ForNode* loop) {
  Nest nest = read(loop, "ijek");
  if (nest.lane) nest.warp = make_var("warp", nest.lane->dtype);
  const std::int64_t rows = nest.extents.at("i"), pairs = nest.extents.at("j"),
                     depth = nest.extents.at("k");
  const Place a(nest, nest.a->buffer, nest.a->indices[0]),
      b(nest, nest.b->buffer, nest.b->indices[0]),
      c(nest, nest.store->buffer, nest.store->indices[0]);
  std::string lines;
  auto leading = [&](const Place& x, const char* name, std::int64_t next) {
    const std::int64_t k = x.distance({{"k", 1}});
    if (k != 1) return k;
    lines += name;
    return next;
  };
  const std::int64_t lda = leading(a, "a", a.distance({}, 4)),
                     ldb = leading(b, "b", b.distance({{"e", 1}}));
  const std::int64_t row = a.distance({}, 4), column = b.distance({{"e", 1}});
  a.expect({{"i", 1}}, 0, 8 * row, "the eighth row");
  a.expect({}, 1, 0, "the next thread's row");
  if (lines.find('a') == std::string::npos) a.expect({}, 4, 1, "the fourth thread's row");
  if (lines.find('b') == std::string::npos) b.expect({{"e", 1}}, 0, 1, "the next column");
  b.expect({{"j", 1}}, 0, 8 * column, "the eighth column");
  b.expect({}, 1, 2 * column, "the next thread's column");
  b.expect({}, 4, 0, "the fourth thread's column");
  c.expect({{"e", 1}}, 0, 1, "the next column");
  c.expect({{"j", 1}}, 0, 2, "the eighth column");
  c.expect({{"i", 1}}, 0, 2 * pairs, "the eighth row");
  c.expect({}, 1, 0, "the next thread's part");
  WEFT_CHECK(rows % 2 == 0 && depth % 8 == 0, "no instruction for ", rows * 8, " rows and ", depth,
             " terms of float64");
  return instruction(cat("weft_mma_m", rows * 8, "n", pairs * 8, "k", depth, "_f64", lines), a, lda,
                     b, ldb, c);
}

/// Descriptors: address >> 4, LBO at bit 16, SBO at bit 32, 128-byte swizzle at bit 62. 16 further
/// k are 32 bytes of A's rows and 16 rows of B.
std::string wgmma_helper(const std::string& name, int n, const std::string& type) {
  const int registers = n / 2;
  std::string out =
      cat("static __device__ __forceinline__ void ", name,
          "(float* c, const void* a, int next_rows, const void* b, int next_columns) {\n"
          "  const unsigned long long swizzled = 1ull << 62 | 64ull << 32;\n"
          "  unsigned long long da = swizzled | (((unsigned int)__cvta_generic_to_shared(a) & "
          "0x3ffff) >> 4) | 1ull << 16;\n"
          "  unsigned long long db = swizzled | (((unsigned int)__cvta_generic_to_shared(b) & "
          "0x3ffff) >> 4) | (unsigned long long)(next_columns >> 4) << 16;\n"
          "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n");
  std::string sums;
  for (int i = 0; i < registers; ++i) sums += cat(i ? ", " : "", "\"+f\"(c[", i, "])");
  out +=
      cat("#pragma unroll\n  for (int k = 0; k < 4; ++k)\n    asm "
          "volatile(\"wgmma.mma_async.sync.aligned.m64n",
          n, "k16.f32.", type, ".", type, " {", percents(0, registers), "}, %", registers, ", %",
          registers + 1, ", 1, 1, 1, 0, 1;\" : ", sums,
          " : \"l\"(da + (unsigned long long)k * 2), \"l\"(db + (unsigned long long)k * 128));\n"
          "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n"
          "  asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");\n}\n");
  return out;
}

Stmt wgmma_call(const ForNode* loop) {
  const Nest nest = read(loop, "jhek");
  const int n = static_cast<int>(nest.extents.at("j")) * 8;
  const Place a(nest, nest.a->buffer, nest.a->indices[0]),
      b(nest, nest.b->buffer, nest.b->indices[0]),
      c(nest, nest.store->buffer, nest.store->indices[0]);
  const std::int64_t next_columns = n > 64 ? b.distance({{"j", 8}}) : 64 * 64;
  for (int k : {0, 1, 2, 4, 8, 16, 32}) {
    for (int t : {0, 1, 2, 4, 8, 16, 32, 64}) {
      for (int h : {0, 1}) {
        const int r = t / 32 * 16 + t % 32 / 4 + h * 8;
        a.expect({{"h", h}, {"k", k}}, t, r * 64 + ((k / 8) ^ (r % 8)) * 8 + k % 8,
                 "its swizzled row");
      }
    }
    for (int j : {0, 1, 2, 4}) {
      for (int e : {0, 1})
        b.expect({{"j", j}, {"e", e}, {"k", k}}, 1, k * 64 + ((j % 8) ^ (k % 8)) * 8 + 2 + e,
                 "its swizzled row");
    }
  }
  for (int j = 8; j < n / 8; j += 8)
    b.expect({{"j", j}}, 0, j / 8 * next_columns, "its next 64 columns");
  c.expect({{"e", 1}}, 0, 1, "the next column");
  c.expect({}, 1, 0, "the next thread's part");
  c.expect({{"h", 1}}, 0, 2, "the eighth row");
  c.expect({{"j", 1}}, 0, 4, "the eighth column");
  a.expect_multiple(512);
  b.expect_multiple(512);
  b.expect_aligned(next_columns, "the step to 64 further columns");
  return instruction(cat("weft_wgmma_n", n, "k64_", short_type(nest.a->buffer)), a, 0, b,
                     next_columns * 2, c);
}

}  // namespace

const std::vector<InstructionInfo>& tensor_core_rows() {
  static const std::vector<InstructionInfo> rows = [] {
    std::vector<InstructionInfo> out;
    for (const char* type : kTypes) {
      for (int m : {16, 32, 64})
        for (int n : {32, 64}) out.push_back(mma(m, n, type));
      for (int n : {64, 128, 256}) out.push_back(wgmma(n, type));
    }
    return out;
  }();
  return rows;
}

int double_product_sums(int capability) {
  return capability == 80 ? 64 : capability >= 90 && capability < 120 ? 128 : 0;
}

PrimFunc select_tensor_cores(const PrimFunc& f) {
  class Select final : public Rewriter {
   public:
    bool groups = false;  // wgmma is used
    BufferMap aligned;    // its operands, at multiples of the swizzle's 1024 bytes

   protected:
    Stmt rewrite_for(const Stmt& s) override {
      const Json* name = find_annotation(as<ForNode>(s)->annotations, "instruction");
      if (!name) return Rewriter::rewrite_for(s);
      if (name->as_string() == "mma") return mma_call(as<ForNode>(s));
      if (name->as_string() == "mma.float64") return double_call(as<ForNode>(s));
      groups = true;
      const Nest nest = read(as<ForNode>(s), "jhek");
      for (const LoadNode* l : {nest.a, nest.b}) {
        auto moved = edit(l->buffer);
        moved->align = 1024;
        aligned[l->buffer.get()] = moved;
      }
      return wgmma_call(as<ForNode>(s));
    }
  } select;
  /// wgmma reads shared memory by another way than stores write it: writers say so before they meet
  /// the readers. Not later: the fence also waits for copies that were started since.
  class Fence final : public Rewriter {
   protected:
    Stmt rewrite_default(const Stmt& s) override {
      const auto* e = as<EvaluateNode>(s);
      const auto* c = e ? as<CallNode>(e->value) : nullptr;
      if (!c || c->op != "sync") return Rewriter::rewrite_default(s);
      return seq({evaluate(call("instruction", {make_string(kFence)})), s});
    }
  };
  Stmt body = select.rewrite(f->body);
  if (body == f->body) return f;
  if (select.groups) body = replace_buffers(Fence().rewrite(body), select.aligned);
  auto out = edit(f);
  out->body = std::move(body);
  return out;
}

std::string instruction_definition(std::string_view name) {
  int m = 0, n = 0;
  char type[8] = "";
  const std::string text(name);
  if (std::string role = role_definition(name); !role.empty()) return role;
  if (name == kFence)
    return cat("static __device__ __forceinline__ void ", name,
               "() { asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\"); }\n");
  int k = 0;
  if (std::sscanf(text.c_str(), "weft_mma_m%dn%dk%d_%7s", &m, &n, &k, type) == 4)
    return double_helper(text, m, n, k, std::string_view(type).substr(3));
  if (std::sscanf(text.c_str(), "weft_mma_m%dn%d_%7s", &m, &n, type) == 3)
    return mma_helper(text, m, n, type);
  const int found = std::sscanf(text.c_str(), "weft_wgmma_n%dk64_%7s", &n, type);
  WEFT_CHECK(found == 2, "no instruction ", name);
  return wgmma_helper(text, n, type);
}

}  // namespace weft::cuda
