// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/cuda/roles.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/roles.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::cuda {

using namespace ir;

const char* const kTensorParam = "const __grid_constant__ weft_tensor %";
const char* const kTensorHelpers =
    "struct alignas(64) weft_tensor { unsigned char bytes[128]; };\n";

namespace {

constexpr std::int64_t kRegisters = 65536;  // of a multiprocessor
constexpr const char *kWait = "weft_wait_for_earlier", *kPrefetch = "weft_prefetch_map";

const char* type_name(DType t) {
  return t == dtypes::float8_e4m3fn ? "e4m3"
         : t == dtypes::float8_e5m2 ? "e5m2"
         : t == dtypes::float16     ? "f16"
                                    : "bf16";
}
bool is_narrow(DType t) { return t == dtypes::float16 || t == dtypes::bfloat16; }

const LoadNode* element(const Expr& e) {
  const auto* c = as<CallNode>(e);
  return c && c->op == "address_of" ? as<LoadNode>(c->args[0]) : nullptr;
}

class Spell final : public Rewriter {
 public:
  Spell(std::int64_t threads, const PrimFunc& kernel)
      : threads_(threads), tokens_(uses_tokens(kernel->body)) {
    for (const Param& p : kernel->params)
      if (!p.buffer && p.var->dtype.is_handle()) maps_.emplace_back(p.var);
  }
  BufferMap aligned;

  /// The kernel's body, which waits before its first access to memory.
  Stmt whole(const Stmt& body) {
    const Stmt spelled = rewrite(body);
    const auto* launch = as<LaunchNode>(spelled);
    if (waits_ || !launch) return spelled;
    return Stmt(make_ref<LaunchNode>(launch->name, launch->axes, seq({wait(), launch->body})));
  }

 protected:
  Stmt rewrite_default(const Stmt& s) override {
    const auto* e = as<EvaluateNode>(s);
    const auto* c = e ? as<CallNode>(e->value) : nullptr;
    if (!c) return Rewriter::rewrite_default(s);
    const std::string& op = c->op;
    // Fresh tokens are seen by copies that start after the barrier.
    if ((op == "sync" || op == "cluster_meet") && tokens_)
      return begun(seq({instruction("weft_token_fence", {}),
                        op == "sync" ? s : instruction("weft_cluster_meet", {})}));
    if (op == "cluster_meet") return instruction("weft_cluster_meet", {});
    if (op.starts_with("token_") || op == "bulk_fence" || op == "meet")
      return instruction(cat("weft_", op), c->args);
    if (op == "bulk_load" || op == "bulk_load_each") {
      tile(c->args[0]);
      const auto numbers = static_cast<std::ptrdiff_t>(bulk_numbers(op));
      Exprs args = c->args;
      // What receives the box comes last.
      if (numbers > 3) std::rotate(args.begin() + 3, args.begin() + numbers, args.end());
      return instruction(cat("weft_", op, "_", c->args.size() - bulk_numbers(op)), args);
    }
    if (op == "bulk_store") {
      tile(c->args[1]);
      return instruction(cat("weft_bulk_store_", c->args.size() - 2), c->args);
    }
    if (op == "tile_store") {
      const DType type = tile(c->args[0]);
      if (!is_narrow(type)) refuse(c, cat("tiles of ", to_string(type)));
      return instruction(cat("weft_tile_store_", type_name(type)), c->args);
    }
    if (op == "tile_store_turned") {
      const DType type = tile(c->args[0]);
      if (!is_narrow(type)) refuse(c, cat("tiles of ", to_string(type)));
      return instruction(cat("weft_tile_store_turned_", number(c, 2), "_", type_name(type)),
                         {c->args[0], c->args[1]});
    }
    if (op == "tile_multiply") return multiply(c);
    if (op == "tile_round") {
      const DType type = registers(c->args[0]);
      if (!is_narrow(type)) refuse(c, cat("numbers of ", to_string(type)));
      return instruction(cat("weft_tile_round_", number(c, 2), "_", type_name(type)),
                         {c->args[0], c->args[1]});
    }
    if (op == "tile_add") {
      if (element(c->args[0])->buffer->dtype != dtypes::float32)
        refuse(c, cat("sums of ", to_string(element(c->args[0])->buffer->dtype)));
      return instruction(cat("weft_tile_add_", number(c, 2)), {c->args[0], c->args[1]});
    }
    if (op == "bulk_add") {
      const DType to = element(c->args[0])->buffer->dtype,
                  from = element(c->args[1])->buffer->dtype;
      if (to != dtypes::float32 || from != to)
        refuse(c, cat("numbers of ", to_string(to), " and ", to_string(from)));
      shared_row(c->args[1]);
      return instruction("weft_bulk_add", c->args);
    }
    if (op == "tile_rows")
      return instruction(cat("weft_tile_rows_", number(c, 2), "_", number(c, 3) ? 1 : 0),
                         {c->args[0], c->args[1]});
    if (op == "registers") {
      std::int64_t n = 0;
      if (!is_const_int(c->args[0], &n) || n < 24 || n > 256 || n % 8)
        refuse(c, "a number of registers that is no multiple of 8 from 24 to 256");
      // At the entry a thread has its share of all.
      const bool more = n > kRegisters / threads_ / 8 * 8;
      return instruction(cat("weft_registers_", more ? "inc_" : "dec_", n), {});
    }
    return s;
  }
  Expr rewrite_load(const Expr& e) override {
    touched_ = touched_ || as<LoadNode>(e)->buffer->scope == "global";
    return Rewriter::rewrite_load(e);
  }
  Expr rewrite_call(const Expr& e) override {
    const auto* c = as<CallNode>(e);
    if (c->op != "exp2_flush" || e->dtype != dtypes::float32) return Rewriter::rewrite_call(e);
    return call_typed(e->dtype, "instruction",
                      {make_string("weft_exp2_flush"), rewrite(c->args[0])});
  }

 private:
  [[noreturn]] static void refuse(const CallNode* c, const std::string& found) {
    throw Error(ErrorKind::emit, "cuda.instruction.form", cat("\"", c->op, "\" was given ", found))
        .note(
            "legal: tiles of float16, bfloat16 or, along the sum, float8, additions of float32; 8 "
            "to "
            "256 columns, in multiples of 8; 24 to 256 "
            "registers, in multiples of 8")
        .at("", print(evaluate(Expr(c))));
  }

  /// Tokens are made while the launches before this one end; nothing else may come before the wait.
  Stmt begun(Stmt s) {
    std::vector<Stmt> all;
    for (const Expr& map : std::exchange(maps_, {})) all.push_back(instruction(kPrefetch, {map}));
    all.push_back(std::move(s));
    if (!touched_) all.push_back(wait());
    touched_ = true;
    return seq(std::move(all));
  }

  Stmt wait() {
    waits_ = true;
    return instruction(kWait, {});
  }

  static Stmt instruction(const std::string& name, const Exprs& args) {
    Exprs all{make_string(name)};
    all.insert(all.end(), args.begin(), args.end());
    return evaluate(call("instruction", std::move(all)));
  }

  DType tile(const Expr& e) {
    const Buffer& b = element(e)->buffer;
    auto moved = edit(b);
    moved->align = 1024;
    aligned[b.get()] = moved;
    return b->dtype;
  }

  void shared_row(const Expr& e) {
    const Buffer& b = element(e)->buffer;
    auto moved = edit(b);
    moved->align = 128;
    aligned[b.get()] = moved;
  }

  /// Pairs of 16-bit floats are registers.
  DType registers(const Expr& e) {
    const Buffer& b = element(e)->buffer;
    auto moved = edit(b);
    moved->align = 16;
    aligned[b.get()] = moved;
    return b->dtype;
  }
  static std::int64_t number(const CallNode* c, std::size_t i) {
    std::int64_t n = 0;
    if (!is_const_int(c->args[i], &n)) refuse(c, "a number known only at run time");
    return n;
  }

  Stmt multiply(const CallNode* c) {
    const bool held = element(c->args[1])->buffer->scope == "local";
    const DType a = held ? registers(c->args[1]) : tile(c->args[1]), b = tile(c->args[2]);
    std::int64_t columns = 0, m = 0, n = 0;
    const bool bytes = a.is_float8() && b.is_float8() && !held;
    if (!bytes && (!is_narrow(a) || a != b))
      refuse(c, cat("tiles of ", to_string(a), " and ", to_string(b)));
    if (!is_const_int(c->args[3], &columns) || !is_const_int(c->args[4], &m) ||
        !is_const_int(c->args[5], &n) || columns < 8 || columns > 256 || columns % 8 != 0)
      refuse(c, cat(columns, " columns"));
    if (bytes && (m || n))
      refuse(c, cat("tiles of ", to_string(a), " that do not run along the sum"));
    return instruction(cat("weft_tile_multiply_", columns, "_",
                           held ? 2
                           : m  ? 1
                                : 0,
                           n ? 1 : 0, "_", type_name(a), a == b ? "" : cat("_", type_name(b))),
                       {c->args[0], c->args[1], c->args[2], c->args[6]});
  }

  std::int64_t threads_;
  bool tokens_;
  bool waits_ = false;
  bool touched_ = false;    // arrays in memory, or the wait has been written
  std::vector<Expr> maps_;  // that have not been asked for
};

std::string function(std::string_view name, const std::string& params, const std::string& body) {
  return cat("static __device__ __forceinline__ void ", name, "(", params, ") {\n", body, "}\n");
}

std::string coordinates(int rank, int first) {
  std::string out = "{";
  for (int i = 0; i < rank; ++i) out += cat(i ? ", " : "", "%", first + i);
  return out + "}";
}

std::string list(int rank, const char* before, const char* after) {
  std::string out;
  for (int i = 0; i < rank; ++i) out += cat(", ", before, "c", i, after);
  return out;
}

/// Descriptors: address >> 4, the step to 64 further places along the rows (where rows run along
/// the result's axis) at bit 16, to 8 further rows at bit 32, rows of 128 bytes swizzled at bit 62.
/// 16 further summands, of float8 32, are 32 bytes of rows along them, and 16 rows otherwise.
/// `from`: 0 where rows of a run along the summands, 1 along m, 2 where a lies in registers.
std::string multiply_definition(std::string_view name, int columns, int from, bool along_n,
                                const std::string& types) {
  const std::size_t two = types.find('_');
  const std::string type = types.substr(0, two),
                    other = two == std::string::npos ? type : types.substr(two + 1);
  const bool bytes = type.starts_with("e");
  const bool along_m = from == 1, held = from == 2;
  const int registers = columns / 2;
  std::string places, sums;
  for (int i = 0; i < registers; ++i) {
    places += cat(i ? ", " : "", "%", i);
    sums += cat(i ? ", " : "", "\"+f\"(c[", i, "])");
  }
  const int more = held ? 3 : 0;  // operands of a beyond the first
  return function(
      name, "float* c, const void* a, const void* b, int add",
      cat("  const unsigned long long rows = 1ull << 62 | 64ull << 32;\n",
          held ? "  const unsigned int* from_a = (const unsigned int*)a;\n"
               : "  const unsigned long long from_a = rows | 1ull << 16 | "
                 "(((unsigned int)__cvta_generic_to_shared(a) & 0x3ffff) >> 4);\n",
          "  const unsigned long long from_b = rows | ", along_n ? 8192 / 16 : 1, "ull << 16 | ",
          "(((unsigned int)__cvta_generic_to_shared(b) & 0x3ffff) >> 4);\n"
          "#pragma unroll\n  for (int i = 0; i < 4; ++i)\n"
          "    asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %",
          registers + 2 + more, ", 0;\\nwgmma.mma_async.sync.aligned.m64n", columns,
          bytes ? "k32.f32." : "k16.f32.", type, ".", other, " {", places, "}, ",
          held ? cat("{%", registers, ", %", registers + 1, ", %", registers + 2, ", %",
                     registers + 3, "}")
               : cat("%", registers),
          ", %", registers + 1 + more, ", p, 1, 1",
          bytes     ? ""
          : held    ? ", "
          : along_m ? ", 1, "
                    : ", 0, ",
          bytes     ? ""
          : along_n ? "1"
                    : "0",
          ";\\n}\\n\" : ", sums, " : ",
          held ? std::string("\"r\"(from_a[i * 4]), \"r\"(from_a[i * 4 + 1]), "
                             "\"r\"(from_a[i * 4 + 2]), \"r\"(from_a[i * 4 + 3])")
               : cat("\"l\"(from_a + (unsigned long long)(i * ", along_m ? 128 : 2, "))"),
          ", \"l\"(from_b + (unsigned long long)(i * ", along_n ? 128 : 2,
          ")), \"r\"(i ? 1 : add));\n"));
}

/// Points 4 i to 4 i + 3 hold a row.
std::string rows_definition(std::string_view name, int columns, bool largest) {
  const char* both = largest ? "fmaxf(v, w)" : "v + w";
  return function(
      name, "float* r, const float* c",
      cat("#pragma unroll\n  for (int h = 0; h < 2; ++h) {\n    float v = ",
          largest ? "__int_as_float(0xff800000)" : "0.0f",
          ", w;\n#pragma unroll\n    for (int j = 0; j < ", columns / 8,
          "; ++j) {\n      w = c[j * 4 + h * 2]; v = ", both,
          ";\n      w = c[j * 4 + h * 2 + 1]; v = ", both,
          ";\n    }\n    w = __shfl_xor_sync(0xffffffffu, v, 1); v = ", both,
          ";\n    w = __shfl_xor_sync(0xffffffffu, v, 2); v = ", both, ";\n    r[h] = v;\n  }\n"));
}

constexpr const char* kAddress = "(unsigned int)__cvta_generic_to_shared";
constexpr const char* kToken = "unsigned long long* token";

std::string token_definition(std::string_view name) {
  if (name == "weft_token_init")
    return function(name, cat(kToken, ", int count"),
                    cat("  asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\" :: \"r\"(",
                        kAddress, "(token)), \"r\"(count) : \"memory\");\n"));
  if (name == "weft_token_fence")
    return function(name, "",
                    "  asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");\n");
  if (name == "weft_token_signal")
    return function(name, kToken,
                    cat("  asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" :: \"r\"(",
                        kAddress, "(token)) : \"memory\");\n"));
  // The same offset in the shared memory of another block of the cluster. It orders what this block
  // has read: with ".release.cluster" each signal would wait for all of the thread's memory
  // traffic.
  if (name == "weft_token_signal_in")
    return function(
        name, cat(kToken, ", unsigned int block"),
        cat("  asm volatile(\"{\\n.reg .b32 far;\\nmapa.shared::cluster.u32 far, %0, %1;\\n"
            "mbarrier.arrive.shared::cluster.b64 _, [far];\\n}\\n\" :: \"r\"(",
            kAddress, "(token)), \"r\"(block) : \"memory\");\n"));
  if (name == "weft_token_expect")
    return function(
        name, cat(kToken, ", int bytes"),
        cat("  asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\" :: \"r\"(",
            kAddress, "(token)), \"r\"(bytes) : \"memory\");\n"));
  return function(
      name, cat(kToken, ", unsigned int parity"),
      cat("  asm volatile(\"{\\n.reg .pred p;\\nAGAIN:\\nmbarrier.try_wait.parity."
          "shared::cta.b64 p, [%0], %1;\\n@p bra DONE;\\nbra AGAIN;\\nDONE:\\n}\\n\" :: \"r\"(",
          kAddress, "(token)), \"r\"(parity) : \"memory\");\n"));
}

/// A matrix of 8 x 8 for each 8 lanes, which hold the addresses of its rows; of 16 columns at a
/// time. Turned, its rows are columns of the sums.
std::string store_definition(std::string_view name, const std::string& type, int columns,
                             bool turned) {
  const char* places =
      turned ? "  const unsigned int lane = threadIdx.x % 32, row = (lane >> 4) * 8 + (lane & 7), "
               "piece = threadIdx.x / 32 % 4 * 2 + (lane >> 3 & 1), from = "
             : "  const unsigned int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + "
               "(lane & 15), from = ";
  return function(
      name, "void* to, const float* c",
      cat(places, kAddress, "(to) + row * 128;\n#pragma unroll\n  for (int q = 0; q < ",
          columns / 16,
          "; ++q) {\n"
          "    unsigned int v[4];\n#pragma unroll\n    for (int i = 0; i < 4; ++i) asm(\"cvt.rn.",
          type,
          "x2.f32 %0, %1, %2;\" : \"=r\"(v[i]) : \"f\"(c[q * 8 + i * 2 + 1]), \"f\"(c[q * 8 + i "
          "* 2]));\n"
          "    asm volatile(\"stmatrix.sync.aligned.m8n8.x4",
          turned ? ".trans" : "", ".shared.b16 [%0], {%1, %2, %3, %4};\" :: \"r\"(from + ",
          turned ? "q * 2048 + ((piece ^ (row & 7)) << 4))"
                 : "(((q * 2 + (lane >> 4)) ^ (row & 7)) << 4))",
          ", \"r\"(v[0]), \"r\"(v[1]), "
          "\"r\"(v[2]), \"r\"(v[3]) : \"memory\");\n  }\n"));
}

}  // namespace

PrimFunc spell_roles(const PrimFunc& kernel) {
  std::int64_t threads = 1;
  if (const auto* launch = as<LaunchNode>(kernel->body)) {
    for (const LaunchAxis& axis : launch->axes) {
      std::int64_t n = 0;
      if (axis.axis.starts_with("threadIdx") && is_const_int(axis.extent, &n)) threads *= n;
    }
  }
  const std::int64_t cluster = cluster_blocks(kernel->body);
  Spell spell(threads, kernel);
  Stmt body = spell.whole(kernel->body);
  auto out = edit(kernel);
  if (cluster > 1) out->attrs = with_annotation(out->attrs, kClusterBlocks, cluster);
  out->body = replace_buffers(body, spell.aligned);
  return out;
}

bool waits_for_earlier(std::string_view source, std::string_view kernel) {
  const std::size_t begin = source.find(cat(" ", kernel, "(")),
                    end = source.find("__global__", std::min(begin, source.size()));
  return begin < source.size() && source.substr(begin, end - begin).find(cat(kWait, "(")) < end;
}

std::string role_definition(std::string_view name) {
  const std::string text(name);
  if (name.starts_with("weft_token_")) return token_definition(name);
  if (name == kPrefetch)
    return function(name, "const weft_tensor* map",
                    "  if (threadIdx.x == 0) asm volatile(\"prefetch.tensormap [%0];\" :: "
                    "\"l\"(map) : \"memory\");\n");
  if (name == kWait)
    return function(name, "",
                    "#if __CUDA_ARCH__ >= 900\n"
                    "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
                    "  asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");\n"
                    "#endif\n");
  if (name == "weft_bulk_fence")
    return function(name, "",
                    "  asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n");
  if (name == "weft_meet")
    return function(
        name, "int which, int count",
        "  asm volatile(\"bar.sync %0, %1;\" :: \"r\"(which), \"r\"(count) : \"memory\");\n");
  if (name == "weft_cluster_meet")
    return function(name, "",
                    "  asm volatile(\"barrier.cluster.arrive;\\nbarrier.cluster.wait;\" ::: "
                    "\"memory\");\n");
  int rank = 0, columns = 0, along = 0;
  char type[16] = "";
  if (std::sscanf(text.c_str(), "weft_bulk_load_each_%d", &rank) == 1)
    return function(
        name,
        cat("void* to, const weft_tensor* map, unsigned long long* token", list(rank, "int ", ""),
            ", int blocks"),
        cat("  asm volatile(\"cp.async.bulk.tensor.", rank,
            "d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, ",
            coordinates(rank, 3), "], [%2], %", rank + 3, ";\" :: \"r\"(", kAddress,
            "(to)), \"l\"(map), \"r\"(", kAddress, "(token))", list(rank, "\"r\"(", ")"),
            ", \"h\"((unsigned short)blocks) : \"memory\");\n"));
  if (std::sscanf(text.c_str(), "weft_bulk_load_%d", &rank) == 1)
    return function(
        name,
        cat("void* to, const weft_tensor* map, unsigned long long* token", list(rank, "int ", "")),
        cat("  asm volatile(\"cp.async.bulk.tensor.", rank,
            "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, ",
            coordinates(rank, 3), "], [%2];\" :: \"r\"(", kAddress, "(to)), \"l\"(map), \"r\"(",
            kAddress, "(token))", list(rank, "\"r\"(", ")"), " : \"memory\");\n"));
  if (std::sscanf(text.c_str(), "weft_bulk_store_%d", &rank) == 1)
    return function(
        name, cat("const weft_tensor* map, const void* from", list(rank, "int ", "")),
        cat("  asm volatile(\"cp.async.bulk.tensor.", rank, "d.global.shared::cta.bulk_group [%0, ",
            coordinates(rank, 2), "], [%1];\" :: \"l\"(map), \"r\"(", kAddress, "(from))",
            list(rank, "\"r\"(", ")"), " : \"memory\");\n"));
  if (name.starts_with("weft_registers_"))
    return function(name, "",
                    cat("  asm volatile(\"setmaxnreg.", text.substr(15, 3), ".sync.aligned.u32 ",
                        text.substr(19), ";\");\n"));
  if (std::sscanf(text.c_str(), "weft_tile_store_turned_%d_%7s", &columns, type) == 2)
    return store_definition(name, type, columns, true);
  if (std::sscanf(text.c_str(), "weft_tile_store_%7s", type) == 1)
    return store_definition(name, type, 64, false);
  if (std::sscanf(text.c_str(), "weft_tile_multiply_%d_%d_%15s", &columns, &along, type) == 3)
    return multiply_definition(name, columns, along / 10, along % 10 != 0, type);
  if (std::sscanf(text.c_str(), "weft_tile_round_%d_%7s", &columns, type) == 2)
    return function(
        name, "void* a, const float* c",
        cat("#pragma unroll\n  for (int i = 0; i < ", columns / 4, "; ++i) asm(\"cvt.rn.", type,
            "x2.f32 %0, %1, %2;\" : \"=r\"(((unsigned int*)a)[i]) : \"f\"(c[i * 2 + 1]), "
            "\"f\"(c[i * 2]));\n"));
  if (std::sscanf(text.c_str(), "weft_tile_rows_%d_%d", &columns, &along) == 2)
    return rows_definition(name, columns, along != 0);
  if (std::sscanf(text.c_str(), "weft_tile_add_%d", &columns) == 1)
    return function(
        name, "float* to, const float* c",
        cat("  float* at = to + threadIdx.x % 128 * 4;\n#pragma unroll\n  for (int j = 0; j < ",
            columns / 8,
            "; ++j)\n    asm volatile(\"red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, "
            "%4};\" "
            ":: \"l\"(at + j * 512), \"f\"(c[j * 4]), \"f\"(c[j * 4 + 1]), \"f\"(c[j * 4 + 2]), "
            "\"f\"(c[j * 4 + 3]) : \"memory\");\n"));
  if (name == "weft_bulk_add")
    return function(
        name, "float* to, const float* from, int count",
        cat("  asm volatile(\"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
            "[%0], [%1], %2;\" :: \"l\"(to), \"r\"(",
            kAddress, "(from)), \"r\"(count * 4) : \"memory\");\n"));
  if (name == "weft_exp2_flush")
    return "static __device__ __forceinline__ float weft_exp2_flush(float x) { float y; "
           "asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x)); return y; }\n";
  return "";
}

}  // namespace weft::cuda
