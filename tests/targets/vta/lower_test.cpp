// SPDX-License-Identifier: Apache-2.0
// Tensor programs, scheduled with the public primitives, lowered, run and compared with plain
// integers.
#include "weft/targets/vta/lower.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support.h"
#include "weft/ir/text.h"
#include "weft/runtime/module.h"
#include "weft/schedule/schedule.h"
#include "weft/target/backend.h"
#include "weft/target/host_plan.h"
#include "weft/targets/vta/default_schedule.h"
#include "weft/targets/vta/execute.h"
#include "weft/targets/vta/pack.h"

namespace weft::vta {

Backend& backend();

namespace {

Ref<runtime::Module> build_here(ir::PrimFunc f, std::string_view text) {
  Target target = Target::parse(text);
  Backend& b = backend();
  if (Verdict no = b.accepts(f, target)) throw Error(ErrorKind::lower, std::move(*no));
  f = b.default_schedule(f, target);
  SplitFunction parts = split_host_device(f, pass::run_pipeline(b.pipeline(target), f, {}), {});
  return make_ref<runtime::Module>(b.emit(parts.kernels, target), std::vector{parts.plan});
}

std::shared_ptr<const TargetInfo> table_of(std::string_view text) {
  auto out = std::make_shared<TargetInfo>(*schedule_target_info());
  out->merge(backend().info(Target::parse(text)));
  return out;
}

/// The seed's program: packed product, then the epilogue `last` of C_buf[i, j, b, c].
std::string seed(const Config& c, int o, int m, int n,
                 std::string_view last = "T.cast(C_buf[i, j, b, c], \"int8\")") {
  auto text = [](auto... parts) { return cat(parts...); };
  int B = c.batch(), K = c.block_in(), O = c.block_out();
  return text("@T.prim_func\ndef main(A: T.Buffer((", o, ", ", n, ", ", B, ", ", K,
              "), \"int8\"), B: T.Buffer((", m, ", ", n, ", ", O, ", ", K,
              "), \"int8\"), C: T.Buffer((", o, ", ", m, ", ", B, ", ", O,
              "), \"int8\")):\n    C_buf = T.alloc_buffer((", o, ", ", m, ", ", B, ", ", O,
              "), \"int32\")\n", "    for bo, co, bi, ci, ko, ki in T.grid(", o, ", ", m, ", ", B,
              ", ", O, ", ", n, ", ", K, "):\n        with T.block(\"C_buf\"):\n",
              "            i, j, b, c, k, q = T.axis.remap(\"SSSSRR\", [bo, co, bi, ci, ko, ki])\n "
              "           with T.init():\n                C_buf[i, j, b, c] = T.int32(0)\n",
              "            C_buf[i, j, b, c] = C_buf[i, j, b, c] + T.cast(A[i, k, b, q], "
              "\"int32\") * T.cast(B[j, k, c, q], \"int32\")\n",
              "    for bo, co, bi, ci in T.grid(", o, ", ", m, ", ", B, ", ", O,
              "):\n        with T.block(\"C\"):\n            i, j, b, c = T.axis.remap(\"SSSS\", "
              "[bo, co, bi, ci])\n            C[i, j, b, c] = ",
              last, "\n");
}

struct Result {
  Bytes8 got, want;
  std::int64_t cycles = 0;
};

Result run_matmul(const Config& c, const Ref<runtime::Module>& module, int o, int m, int n,
                  std::uint64_t random, SimOptions options = {}) {
  std::mt19937_64 rng(random);
  auto B = static_cast<std::size_t>(c.batch()), K = static_cast<std::size_t>(c.block_in());
  auto O = static_cast<std::size_t>(o), M = static_cast<std::size_t>(m),
       N = static_cast<std::size_t>(n);
  auto a = random_values<std::int8_t>(rng, O * N * B * K, -128, 127),
       w = random_values<std::int8_t>(rng, M * N * K * K, -128, 127);
  Ref<runtime::Device> device = open_simulator(c, options);
  auto function = make_ref<runtime::Function>(module, module->plans()[0].name, device);
  auto make = [&](const Bytes8& data, std::vector<std::int64_t> shape) {
    runtime::CallArg arg;
    Ref<runtime::Storage> s = device->allocate(data.size(), 4096);
    device->upload(*s, 0, data.data(), data.size());
    arg.storage = s.release();  // kept until the test ends
    arg.dtype = dtypes::int8, arg.shape = std::move(shape);
    return arg;
  };
  std::vector<runtime::CallArg> args{
      make(a, {o, n, c.batch(), c.block_in()}), make(w, {m, n, c.block_out(), c.block_in()}),
      make(Bytes8(O * M * B * K, 77), {o, m, c.batch(), c.block_out()})};
  Result r;
  r.cycles = device->measure([&] { function->call(args).wait(); }).cycles;
  r.got.resize(O * M * B * K);
  device->download(r.got.data(), *args[2].storage, 0, r.got.size());
  for (auto& arg : args) arg.storage->drop_ref();
  r.want.resize(r.got.size());
  for (std::size_t i = 0; i < O; ++i) {
    for (std::size_t j = 0; j < M; ++j) {
      for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t q = 0; q < K; ++q) {
          std::int64_t sum = 0;
          for (std::size_t k = 0; k < N * K; ++k)
            sum +=
                a[((i * N + k / K) * B + b) * K + k % K] * w[((j * N + k / K) * K + q) * K + k % K];
          r.want[((i * M + j) * B + b) * K + q] = static_cast<std::int8_t>(sum & 0xff);
        }
      }
    }
  }
  return r;
}

TEST(VtaLower, the_seeds_program_by_its_default_schedule) {
  for (const char* name : {"sim", "4x8x8", "1x32x32"}) {
    Config c = Config::sample(name);
    for (auto [o, m, n] : {std::array{1, 4, 4}, std::array{1, 16, 16}, std::array{5, 3, 7}}) {
      SCOPED_TRACE(cat(name, " ", o, " ", m, " ", n));
      Ref<runtime::Module> module = build_here(ir::parse_func(seed(c, o, m, n)), cat("vta:", name));
      Result r = run_matmul(c, module, o, m, n, 3);
      ASSERT_EQ(r.got, r.want);
      EXPECT_GT(r.cycles, 100);
    }
  }
}

TEST(VtaLower, the_seeds_own_schedule_step_by_step) {
  Config c;
  schedule::Schedule sch(ir::parse_func(seed(c, 1, 4, 4)), table_of("vta"));
  BlockRef sum = sch.get_block("C_buf");
  sch.set_scope(sum, 0, "vta.acc");                   // s[C_buf].set_scope(env.acc_scope)
  BlockRef a = sch.cache_read(sum, 0, "vta.inp");     // A_buf, s[A_buf].set_scope(env.inp_scope)
  BlockRef b = sch.cache_read(sum, 1, "vta.wgt");     // B_buf, s[B_buf].set_scope(env.wgt_scope)
  std::vector<LoopRef> l = sch.get_loops(sum);        // bo, co, bi, ci, ko, ki
  sch.reorder({l[4], l[0], l[1], l[2], l[3], l[5]});  // s[C_buf].reorder(ko, ...)
  sch.compute_at(a, l[4]);                            // s[A_buf].compute_at(s[C_buf], ko)
  sch.compute_at(b, l[4]);
  for (BlockRef copy : {a, b, sch.get_block("C")})
    sch.annotate(sch.get_loops(copy).back(), "dma_copy", 1);
  sch.decompose_reduction(sum, l[4]);
  sch.tensorize(l[2], "vta.gemm");  // s[C_buf].tensorize(bi, env.gemm)
  Ref<runtime::Module> module = build_here(sch.func(), "vta");
  Result r = run_matmul(c, module, 1, 4, 4, 4);
  EXPECT_EQ(r.got, r.want);
  const std::string& text = module->source();
  for (const char* part :
       {"gemm reset", "gemm run", "load inp", "load wgt", "store out", "push=", "finish"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(VtaLower, a_buffer_that_does_not_fit_names_the_loop_and_what_fits) {
  Config c;  // 2048 input, 1024 weight and 2048 accumulator elements
  auto scheduled = [&](int m, int n, bool whole_weights) {
    schedule::Schedule sch(ir::parse_func(seed(c, 1, m, n)), table_of("vta"));
    BlockRef sum = sch.get_block("C_buf");
    sch.set_scope(sum, 0, "vta.acc");
    BlockRef a = sch.cache_read(sum, 0, "vta.inp");
    BlockRef b = sch.cache_read(sum, 1, "vta.wgt");
    std::vector<LoopRef> l = sch.get_loops(sum);
    sch.reorder({l[4], l[0], l[1], l[2], l[3], l[5]});
    sch.compute_at(a, l[4]);
    if (!whole_weights) sch.compute_at(b, l[4]);
    sch.decompose_reduction(sum, l[4]);
    sch.tensorize(l[2], "vta.gemm");
    return sch.func();
  };
  // 40 x 30 weights at once; 1024 of them fit, which is 34 rows.
  Refused weights = refused([&] { build_here(scheduled(40, 30, true), "vta"); });
  EXPECT_EQ(weights.code, "vta.lower.capacity") << weights.text;
  for (const char* part : {"of 1200 elements does not fit into vta.wgt",
                           "fills it in 40 steps, and 34 fit", "split that loop by 34"})
    EXPECT_NE(weights.text.find(part), std::string::npos) << part << " in\n" << weights.text;
  EXPECT_EQ(refused([&] { build_here(scheduled(34, 30, true), "vta"); }).code,
            "nothing was refused");
  // Sums of 2100 columns.
  Refused sums = refused([&] { build_here(scheduled(2100, 1, false), "vta"); });
  EXPECT_EQ(sums.code, "vta.lower.capacity") << sums.text;
  EXPECT_NE(sums.text.find("in 2100 steps, and 2048 fit"), std::string::npos) << sums.text;
}

TEST(VtaLower, epilogues_become_alu_instructions) {
  Config c;
  std::string text = seed(c, 2, 4, 4);
  // C_buf -> R (shift, clip) -> C
  std::string stage =
      "    for bo, co, bi, ci in T.grid(2, 4, 1, 16):\n        with T.block(\"R\"):\n            "
      "i, j, b, c = T.axis.remap(\"SSSS\", [bo, co, bi, ci])\n"
      "            R[i, j, b, c] = T.min(T.max(T.shift_right(C_buf[i, j, b, c], 8), 0), 127)\n";
  text.insert(text.rfind("    for bo, co"), stage);
  text.insert(text.find("    for bo, co"), "    R = T.alloc_buffer((2, 4, 1, 16), \"int32\")\n");
  text.replace(text.rfind("C_buf[i, j, b, c]"), 17, "R[i, j, b, c]");
  Ref<runtime::Module> module = build_here(ir::parse_func(text), "vta");
  Result r = run_matmul(c, module, 2, 4, 4, 5);
  for (const char* part : {"alu shr imm 8", "alu max imm 0", "alu min imm 127"})
    EXPECT_NE(module->source().find(part), std::string::npos) << module->source();
  // Recompute with the epilogue.
  Bytes8 want(r.got.size());
  std::mt19937_64 rng(5);
  auto a = random_values<std::int8_t>(rng, 2 * 4 * 16, -128, 127),
       w = random_values<std::int8_t>(rng, 16 * 256, -128, 127);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 64; ++j) {
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < 64; ++k)
        sum += a[i * 64 + k] * w[((j / 16 * 4 + k / 16) * 16 + j % 16) * 16 + k % 16];
      want[i * 64 + j] = static_cast<std::int8_t>(std::clamp(sum >> 8, 0, 127));
    }
  }
  EXPECT_EQ(r.got, want);
}

TEST(VtaLower, refusals_name_the_statement_and_the_rule) {
  Config c;
  auto refusal = [&](const std::string& text) {
    return refused([&] { build_here(ir::parse_func(text), "vta"); });
  };
  Refused plain = refusal(
      "@T.prim_func\ndef main(A: T.Buffer((64,), \"int32\"), C: T.Buffer((64,), \"int8\")):\n    "
      "for i in T.grid(64):\n        with T.block(\"C\"):\n            v = T.axis.remap(\"S\", "
      "[i])\n"
      "            C[v] = T.cast(A[v], \"int8\")\n");
  EXPECT_EQ(plain.code, "nothing was refused") << plain.text;
  Refused dtype = refusal(
      "@T.prim_func\ndef main(A: T.Buffer((64,), \"float32\")):\n    for i in T.grid(64):\n        "
      "with T.block(\"C\"):\n            v = T.axis.remap(\"S\", [i])\n            A[v] = A[v]\n");
  EXPECT_EQ(dtype.code, "target.dtype") << dtype.text;
  auto chain = [&](const std::string& body, const std::string& scope = "vta.acc",
                   const std::string& type = "int32") {
    return refusal(cat(
        "@T.prim_func\ndef main(A: T.Buffer((64,), \"", type,
        "\"), C: T.Buffer((64,), \"int8\")):\n    X = T.alloc_buffer((64,), \"int32\", scope=\"",
        scope, "\")\n",
        "    for i in T.grid(64):\n        with T.block(\"X\"):\n            v = "
        "T.axis.remap(\"S\", [i])\n            X[v] = A[v]\n",
        body,
        "    for i in T.grid(64):\n        with T.block(\"C\"):\n            v = "
        "T.axis.remap(\"S\", [i])\n            C[v] = T.cast(X[v], \"int8\")\n"));
  };
  auto step = [](const char* value) {
    return cat(
        "    for i in T.grid(64):\n        with T.block(\"S\"):\n            v = "
        "T.axis.remap(\"S\", [i])\n            X[v] = ",
        value, "\n");
  };
  EXPECT_EQ(chain(step("T.max(X[v], 3)")).code, "nothing was refused");
  Refused division = chain(step("T.floordiv(X[v], 3)"));
  EXPECT_EQ(division.code, "vta.lower.operation") << division.text;
  EXPECT_NE(division.text.find("X[i] // 3"), std::string::npos) << division.text;
  EXPECT_EQ(chain(step("X[v] + A[v]")).code, "vta.lower.operand");
  EXPECT_EQ(chain(step("X[63 - v]")).code, "vta.lower.alias");
  EXPECT_EQ(chain(step("T.max(X[v], 100000)")).code, "vta.build.constant");
}

/// A block over `grid` that assigns `value` at `index`.
std::string block(const char* name, const char* grid, const char* index, const char* value) {
  std::string vars;
  std::size_t n = 1 + static_cast<std::size_t>(std::count(grid, grid + strlen(grid), ','));
  std::string loops, iters, kinds;
  for (std::size_t i = 0; i < n; ++i) {
    loops += cat(i ? ", " : "", name, "_", i);
    iters += cat(i ? ", " : "", "v", i);
    kinds += 'S';
  }
  if (n == 1) iters += "";
  return cat("    for ", loops, " in T.grid(", grid, "):\n        with T.block(\"", name,
             "\"):\n            ", iters, " = T.axis.remap(\"", kinds, "\", [", loops,
             "])\n            ", name, "[", index, "] = ", value, "\n");
}

TEST(VtaLower, padded_copies_become_padded_loads) {
  Config c;
  struct Pads {
    int top, bottom, left, right;
  };
  for (Pads p : {Pads{2, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 2, 0}, {0, 0, 0, 2}, {1, 2, 3, 4}}) {
    SCOPED_TRACE(cat(p.top, " ", p.bottom, " ", p.left, " ", p.right));
    int h = 3, w = 5, H = h + p.top + p.bottom, W = w + p.left + p.right;
    std::string grid = cat(H, ", ", W, ", 1, 16"), shape = cat("(", grid, ")");
    std::string text = cat(
        "@T.prim_func\ndef main(A: T.Buffer((", h, ", ", w, ", 1, 16), \"int32\"), C: T.Buffer(",
        shape, ", \"int8\")):\n    X = T.alloc_buffer(", shape, ", \"int32\", scope=\"vta.acc\")\n",
        block("X", grid.c_str(), "v0, v1, v2, v3",
              cat("T.if_then_else(v0 >= ", p.top, " and v0 < ", p.top + h, " and v1 >= ", p.left,
                  " and v1 < ", p.left + w, ", A[v0 - ", p.top, ", v1 - ", p.left, ", v2, v3], 0)")
                  .c_str()),
        block("C", grid.c_str(), "v0, v1, v2, v3", "T.cast(X[v0, v1, v2, v3], \"int8\")"));
    Ref<runtime::Module> module = build_here(ir::parse_func(text), "vta");
    // One LOAD with the padding in its fields.
    Program program = from_binary(module->binary());
    int loads = 0;
    for (const Insn& n : program.kernels.at(0).stream.insns) {
      if (n.op != Opcode::load || n.mem != MemType::acc) continue;
      ++loads;
      EXPECT_EQ(n.y_pad_0, static_cast<std::uint32_t>(p.top));
      EXPECT_EQ(n.y_pad_1, static_cast<std::uint32_t>(p.bottom));
      EXPECT_EQ(n.x_pad_0, static_cast<std::uint32_t>(p.left));
      EXPECT_EQ(n.x_pad_1, static_cast<std::uint32_t>(p.right));
    }
    EXPECT_EQ(loads, 1);
    Ref<runtime::Device> device = open_simulator(c, {});
    auto function = make_ref<runtime::Function>(module, "main", device);
    std::mt19937_64 rng(11);
    auto a = random_values<std::int32_t>(rng, static_cast<std::size_t>(h * w * 16), -128, 127);
    Ref<runtime::Storage> sa = device->allocate(a.size() * 4, 4096),
                          sc = device->allocate(static_cast<std::size_t>(H * W * 16), 4096);
    device->upload(*sa, 0, a.data(), a.size() * 4);
    runtime::CallArg x, y;
    x.storage = sa.get(), x.dtype = dtypes::int32, x.shape = {h, w, 1, 16};
    y.storage = sc.get(), y.dtype = dtypes::int8, y.shape = {H, W, 1, 16};
    std::vector<runtime::CallArg> args{x, y};
    function->call(args).wait();
    Bytes8 got(static_cast<std::size_t>(H * W * 16)), want(got.size(), 0);
    device->download(got.data(), *sc, 0, got.size());
    for (int i = 0; i < h; ++i) {
      for (int j = 0; j < w; ++j) {
        for (int k = 0; k < 16; ++k)
          want[static_cast<std::size_t>(((i + p.top) * W + j + p.left) * 16 + k)] =
              static_cast<std::int8_t>(a[static_cast<std::size_t>((i * w + j) * 16 + k)]);
      }
    }
    EXPECT_EQ(got, want);
  }
}

TEST(VtaLower, host_parts_of_scheduled_programs_are_copies_only) {
  auto refusal = [&](const std::string& body, const char* extra = "") {
    return refused([&] {
      build_here(ir::parse_func(cat("@T.prim_func\ndef main(A: T.Buffer((64,), \"int32\"), C: "
                                    "T.Buffer((64,), \"int8\")):\n    X = T.alloc_buffer((64,), "
                                    "\"int32\", scope=\"vta.acc\")\n",
                                    extra, body)),
                 "vta");
    });
  };
  std::string in = block("X", "64", "v0", "A[v0]"),
              out = block("C", "64", "v0", "T.cast(X[v0], \"int8\")");
  const char* more = "    B = T.alloc_buffer((64,), \"int32\")\n";
  // Global to global: the host does it when it is a copy.
  EXPECT_EQ(
      refusal(block("B", "64", "v0", "A[63 - v0]") + block("X", "64", "v0", "B[v0]") + out, more)
          .code,
      "nothing was refused");
  Refused sum =
      refusal(block("B", "64", "v0", "A[v0] + 1") + block("X", "64", "v0", "B[v0]") + out, more);
  EXPECT_EQ(sum.code, "vta.host.statement") << sum.text;
  EXPECT_NE(sum.text.find("the host copies and joins bytes"), std::string::npos) << sum.text;
  Refused survives = refusal(
      in + block("B", "64", "v0", "A[63 - v0]") + block("X", "64", "v0", "X[v0] + 1") + out, more);
  EXPECT_EQ(survives.code, "vta.lower.stages") << survives.text;
  EXPECT_NE(survives.text.find("\"X\""), std::string::npos) << survives.text;
  Refused pad = refusal(block("X", "64", "v0", "T.if_then_else(v0 < 8, A[v0], 0)") + out);
  EXPECT_EQ(pad.code, "vta.lower.pad") << pad.text;
  EXPECT_NE(pad.text.find("divides an element"), std::string::npos) << pad.text;
}

TEST(VtaLower, kernels_that_are_neither_copies_nor_arrays_are_refused) {
  // Statements of the host that are no copies.
  std::string branch =
      "@T.prim_func\ndef main(A: T.Buffer((64,), \"int32\"), C: T.Buffer((64,), \"int32\")):\n    "
      "for i in T.grid(64):\n        if i < 4:\n            C[i] = A[i]\n        else:\n           "
      " "
      "C[i] = A[0]\n";
  Refused loop = refused([&] { lower({ir::parse_func(branch)}, Config()); });
  EXPECT_EQ(loop.code, "vta.host.loop") << loop.text;
  EXPECT_NE(loop.text.find("no copy"), std::string::npos) << loop.text;
  // Scalars are refused before any lowering, and by it.
  std::string scalar =
      "@T.prim_func\ndef main(A: T.Buffer((64,), \"int32\"), n: T.int32, C: T.Buffer((64,), "
      "\"int32\")):\n    for i in T.grid(64):\n        C[i] = A[i]\n";
  Refused wanted = refused([&] { lower({ir::parse_func(scalar)}, Config()); });
  EXPECT_EQ(wanted.code, "vta.lower.scalar") << wanted.text;
  EXPECT_NE(wanted.text.find("\"n\""), std::string::npos) << wanted.text;
  EXPECT_EQ(refused([&] { build_here(ir::parse_func(scalar), "vta"); }).code, "vta.accepts.static");
}

TEST(VtaHostCopy, contradictory_copies_are_refused_before_they_write_outside) {
  HostCopy copy;
  copy.extents = {4, 4};
  copy.to = {0, {4, 1}};
  copy.from = {{0, {1, 4}}};
  copy.dst = 1, copy.src = {0};
  std::vector<std::byte> a(16), b(16);
  for (std::size_t i = 0; i < 16; ++i) a[i] = static_cast<std::byte>(i);
  run(copy, {{a.data(), 16}, {b.data(), 16}});
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(b[i], static_cast<std::byte>(i % 4 * 4 + i / 4));
  EXPECT_EQ(refused([&] { run(copy, {{a.data(), 16}, {b.data(), 15}}); }).code, "vta.host.bounds");
  Refused outside = refused([&] { run(copy, {{a.data(), 12}, {b.data(), 16}}); });
  EXPECT_EQ(outside.code, "vta.host.bounds");
  EXPECT_NE(outside.text.find("of 12"), std::string::npos) << outside.text;
  // Every field of the serialised form is checked.
  Json good = to_json(copy);
  EXPECT_EQ(to_json(host_copy_from_json(good, 2)).dump(), good.dump());
  for (auto [key, value] : {std::pair<const char*, Json>{"dst", 2},
                            {"src", Json::array()},
                            {"src", Json::parse("[-1]", "<test>")},
                            {"src", Json::parse("[2]", "<test>")},
                            {"dst_bytes", 3},
                            {"to", Json::array()},
                            {"from", Json::array()}}) {
    Json bad = good;
    bad[key] = value;
    EXPECT_EQ(refused([&] { host_copy_from_json(bad, 2); }).code, "vta.binary.damaged") << key;
  }
  // Guards fill or skip.
  copy.guards = {{{0, {0, 1}}, 1, 3}};
  copy.fill = true, copy.otherwise = 99;
  run(copy, {{a.data(), 16}, {b.data(), 16}});
  EXPECT_EQ(b[0], static_cast<std::byte>(99));
  EXPECT_EQ(b[1], static_cast<std::byte>(4));
  EXPECT_EQ(b[3], static_cast<std::byte>(99));
}

TEST(VtaBackend, options_are_checked) {
  auto open = [](std::string_view text) {
    return refused([&] { backend().open(Target::parse(text)); }).code;
  };
  EXPECT_EQ(open("vta"), "nothing was refused");
  EXPECT_EQ(open("vta:4x8x8"), "nothing was refused");
  EXPECT_EQ(open("vta:hw"), "vta.absent");
  EXPECT_EQ(open("vta:pink"), "vta.config.sample");
  EXPECT_EQ(open("vta:engine=slow"), "vta.option.engine");
  EXPECT_EQ(open("vta:mode=none"), "vta.option.mode");
  EXPECT_EQ(open("vta:memory=1"), "vta.option.memory");
  EXPECT_EQ(open("vta:colour=red"), "vta.option.unknown");
}

/// A convolution over packed arrays, >> 8, + bias.
std::string convolution(int size, int ci, int co, int kernel, int stride) {
  const int pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  std::string at = cat("y * ", stride, " + p - ", pad, ", z * ", stride, " + q - ", pad);
  std::string read = cat("X[c, ", at, ", k]");
  if (pad)
    read = cat("T.if_then_else(y * ", stride, " + p >= ", pad, " and y * ", stride, " + p < ",
               size + pad, " and z * ", stride, " + q >= ", pad, " and z * ", stride, " + q < ",
               size + pad, ", ", read, ", T.int8(0))");
  return cat(
      "@T.prim_func\ndef main(X: T.Buffer((", ci, ", ", size, ", ", size,
      ", 16), \"int8\"), W: T.Buffer((", co, ", ", ci, ", ", kernel, ", ", kernel,
      ", 16, 16), \"int8\"), B: T.Buffer((", co, ", 16), \"int32\"), Y: T.Buffer((", co, ", ", out,
      ", ", out, ", 16), \"int8\")):\n    S = T.alloc_buffer((", co, ", ", out, ", ", out,
      ", 16), \"int32\")\n    for i0, i1, i2, i3, r0, r1, r2, r3 in T.grid(", co, ", ", out, ", ",
      out, ", 16, ", ci, ", ", kernel, ", ", kernel,
      ", 16):\n        with T.block(\"S\"):\n            o, y, z, m, c, p, q, k = "
      "T.axis.remap(\"SSSSRRRR\", [i0, i1, i2, i3, r0, r1, r2, r3])\n            with "
      "T.init():\n                S[o, y, z, m] = 0\n            S[o, y, z, m] = S[o, y, "
      "z, m] + ",
      "T.cast(", read,
      ", \"int32\") * T.cast(W[o, c, p, q, m, k], \"int32\")\n    for i0, i1, i2, i3 in T.grid(",
      co, ", ", out, ", ", out,
      ", 16):\n        with T.block(\"Y\"):\n            o, y, z, m = "
      "T.axis.remap(\"SSSS\", [i0, i1, i2, i3])\n            Y[o, y, z, m] = "
      "T.cast(T.shift_right(S[o, y, z, m], 8) + B[o, m], \"int8\")\n");
}

/// Cycles of everything that the machine does, in the cycle model.
std::int64_t modelled(const schedule::Schedule& sch, const Config& c) {
  ir::PrimFunc f = sch.func();
  SplitFunction parts =
      split_host_device(f, pass::run_pipeline(backend().pipeline(Target::parse("vta")), f, {}), {});
  std::int64_t cycles = 0;
  for (const Kernel& kernel : lower(parts.kernels, c).kernels) {
    if (kernel.host.empty()) cycles += estimate(Prepared(kernel.stream), c, {}).cycles;
  }
  return cycles;
}

TEST(VtaLower, estimates_of_tiles_are_those_of_the_cycle_model) {
  const Config c;
  const std::shared_ptr<const TargetInfo> machine = table_of("vta");
  struct Layer {
    int size, ci, co, kernel, stride;
  };
  for (const Layer& l : {Layer{28, 4, 8, 3, 1}, Layer{14, 16, 32, 1, 2}, Layer{14, 8, 8, 3, 1},
                         Layer{14, 32, 16, 1, 1}, Layer{7, 16, 32, 3, 1}}) {
    ir::PrimFunc f = ir::parse_func(convolution(l.size, l.ci, l.co, l.kernel, l.stride));
    const Packed packed = pack(f, c);
    ASSERT_EQ(packed.stages.size(), 1u);
    const PackedStage& stage = packed.stages[0];
    const std::vector<Tiles> ranked = rank_tiles(stage.task, stage.laid, c, {});
    ASSERT_GT(ranked.size(), 60u);
    for (std::size_t rank : {0u, 7u, 25u, 60u}) {
      ScheduleOptions given;
      for (std::size_t a = 0; a < stage.task.axes.size(); ++a)
        given.tiles[stage.task.axes[a].var->name] = ranked[rank].tile[a];
      const auto cycles = static_cast<double>(modelled(default_schedule(f, c, machine, given), c));
      EXPECT_NEAR(ranked[rank].cycles / cycles, 1, rank ? 0.08 : 0.015)
          << l.size << " " << l.ci << " " << l.kernel << ", rank " << rank << ": " << cycles;
    }
  }
}

}  // namespace
}  // namespace weft::vta
