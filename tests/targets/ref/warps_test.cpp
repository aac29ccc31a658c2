// SPDX-License-Identifier: Apache-2.0
// Warp-specialized programs (docs/design/roles.md): specialize_warps makes products that are exact
// on the interpreter, tokens end their phases when all signals and bytes have come and not before,
// and what is out of step is refused when it is built.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"
#include "weft/schedule/schedule.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

using Bytes = std::vector<char>;

std::uint16_t narrow(float x) {  // to bfloat16, to nearest, ties to even
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float wide(std::uint16_t x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16); }

template <typename T>
Bytes bytes_of(const std::vector<T>& v) {
  const auto* p = reinterpret_cast<const char*>(v.data());
  return {p, p + v.size() * sizeof(T)};
}
std::vector<std::uint16_t> narrow(const std::vector<float>& v) {
  std::vector<std::uint16_t> out;
  for (float x : v) out.push_back(narrow(x));
  return out;
}

struct Array {
  DType type;
  std::vector<std::int64_t> shape;
  Bytes data;
};

/// Calls "main" of the program on `ref` and brings back what the arrays hold.
void run(const ir::PrimFunc& f, std::vector<Array>& arrays) {
  auto device = open_device("ref");
  auto function = make_ref<runtime::Function>(build(ir::make_module(f), "ref"), "main", device);
  std::vector<Ref<runtime::Storage>> held;
  std::vector<runtime::CallArg> args;
  for (const Array& a : arrays) {
    held.push_back(device->allocate(a.data.size()));
    device->upload(*held.back(), 0, a.data.data(), a.data.size());
    args.push_back({held.back().get(), 0, a.type, a.shape, {}, 0, 0});
  }
  function->call(args).wait();
  for (std::size_t i = 0; i < held.size(); ++i)
    device->download(arrays[i].data.data(), *held[i], 0, arrays[i].data.size());
}

// ---- products

struct Form {
  std::int64_t m, n, k;
  const char* layout;  // "T": stored transposed
  std::int64_t rows, columns, stages, blocks, group_rows, cluster;
  bool narrowed;            // the result is bfloat16 and leaves by the copy engine
  std::int64_t beside = 0;  // so many columns of the result's array before and after it
};

ir::PrimFunc product(const Form& f) {
  auto shape = [](std::int64_t a, std::int64_t b, bool turned) {
    return turned ? cat("(", b, ", ", a, ")") : cat("(", a, ", ", b, ")");
  };
  const bool across = f.layout[0] == 'T', along = f.layout[1] == 'T';
  const char* type = f.narrowed ? "bfloat16" : "float32";
  const std::string value = "C[vi, vj] + bias[vj]";
  return ir::parse_func(
      cat("@T.prim_func\ndef main(A: T.Buffer(", shape(f.m, f.k, across),
          ", \"bfloat16\"), B: T.Buffer(", shape(f.k, f.n, along),
          ", \"bfloat16\"), bias: T.Buffer((", f.n, ",), \"float32\"), D: T.Buffer((", f.m, ", ",
          f.n + 2 * f.beside, "), \"", type, "\")):\n    C = T.alloc_buffer((", f.m, ", ", f.n,
          "), \"float32\")\n    for i, j, k in T.grid(", f.m, ", ", f.n, ", ", f.k,
          "):\n        with T.block(\"C\"):\n            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, "
          "k])\n"
          "            with T.init():\n                C[vi, vj] = T.float32(0)\n"
          "            C[vi, vj] = C[vi, vj] + T.Cast(\"float32\", A[",
          across ? "vk, vi" : "vi, vk", "]) * T.Cast(\"float32\", B[", along ? "vj, vk" : "vk, vj",
          "])\n    for i, j in T.grid(", f.m, ", ", f.n,
          "):\n        with T.block(\"D\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
          "            D[vi, vj",
          f.beside ? cat(" + ", f.beside) : "",
          "] = ", f.narrowed ? cat("T.Cast(\"bfloat16\", ", value, ")") : value, "\n"));
}

/// The nest that specialize_warps takes, and the loop that it is asked for.
std::pair<schedule::Schedule, schedule::LoopRef> tiled(const Form& f, bool bound = true,
                                                       std::int64_t step = 64,
                                                       const std::string& stages = "") {
  schedule::Schedule s(product(f));
  const auto c = s.get_block("C"), d = s.get_block("D");
  const auto a = s.cache_read(c, 0, "shared"), b = s.cache_read(c, 1, "shared");
  s.set_scope(c, 0, "local");
  const auto loops = s.get_loops(c);
  const auto i = s.split(loops[0], {std::nullopt, f.rows});
  const auto j = s.split(loops[1], {std::nullopt, f.columns});
  const auto k = s.split(loops[2], {std::nullopt, step});
  s.reorder({i[0], j[0], k[0], i[1], j[1], k[1]});
  s.compute_at(a, k[0]);
  s.compute_at(b, k[0]);
  s.reverse_compute_at(d, j[0]);
  s.bind(i[0], "blockIdx.y");
  if (bound) s.bind(j[0], "blockIdx.x");
  s.annotate(k[0], "software_pipeline_stage",
             Json::parse(stages.empty() ? cat("[0, 0, ", f.stages - 1, "]") : stages));
  return {s, k[0]};
}

schedule::Schedule scheduled(const Form& f) {
  auto [s, loop] = tiled(f);
  s.specialize_warps(loop, f.blocks, f.group_rows, {40, 232}, f.cluster);
  return s;
}

TEST(Products, what_has_no_form_is_refused) {
  const Form f{128, 64, 128, "NN", 64, 64, 2, 1, 1, 1, true};
  auto said = [](std::pair<schedule::Schedule, schedule::LoopRef> made, std::int64_t blocks = 0,
                 std::int64_t cluster = 1) -> std::string {
    try {
      made.first.specialize_warps(made.second, blocks, 1, {40, 232}, cluster);
    } catch (const Error& e) {
      return cat(e.code(), ": ", e.message());
    }
    return "taken";
  };
  auto has = [](const std::string& text, std::string_view code, std::string_view words) {
    EXPECT_TRUE(text.starts_with(cat("schedule.specialize_warps.", code, ":"))) << text;
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  EXPECT_EQ(said(tiled(f)), "taken");
  EXPECT_EQ(said(tiled(f), 4, 2), "taken");
  has(said(tiled(f, false)), "loop", "neither parallel nor bound to blockIdx");
  has(said(tiled(f, true, 32)), "tile", "adds up 32 terms");
  has(said(tiled(f, true, 64, "[0, 1, 2]")), "pipeline", "has stages [0,1,2]");
  has(said(tiled({128, 96, 128, "NN", 32, 96, 2, 1, 1, 1, true})), "tile", "has 32 rows");
  has(said(tiled({128, 64, 128, "NN", 64, 24, 2, 1, 1, 1, true})), "tile", "has 24 columns");
  has(said(tiled({128, 100, 128, "NN", 64, 64, 2, 1, 1, 1, true})), "operand",
      "the stride 100 of axis 0");
  has(said(tiled(f), -1), "options", "");
  has(said(tiled(f), 3, 2), "options", "");
  has(said(tiled(f), 0, 3), "options", "");
}

class Warps : public ::testing::TestWithParam<Form> {};

TEST_P(Warps, products_are_exact) {
  const Form f = GetParam();
  const auto s = scheduled(f);
  const auto verdict = ir::verify(s.mod());
  EXPECT_FALSE(verdict) << render(*verdict);
  EXPECT_TRUE(ir::structural_equal(ir::parse_func(ir::print(s.func())), s.func()));
  std::mt19937 rng(static_cast<unsigned>(f.m * 31 + f.columns));
  auto few = [&](std::int64_t count) {  // few bits: sums are exact, so that both sides round once
    std::uniform_int_distribution<int> pick(-8, 8);
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& x : out) x = static_cast<float>(pick(rng)) / 8;
    return out;
  };
  const auto a = few(f.m * f.k), b = few(f.k * f.n), bias = few(f.n);
  const bool across = f.layout[0] == 'T', along = f.layout[1] == 'T';
  const std::int64_t across_all = f.n + 2 * f.beside;
  const std::size_t size = static_cast<std::size_t>(f.m * across_all);
  auto shape = [](std::int64_t x, std::int64_t y, bool turned) {
    return turned ? std::vector<std::int64_t>{y, x} : std::vector<std::int64_t>{x, y};
  };
  std::vector<Array> arrays = {
      {dtypes::bfloat16, shape(f.m, f.k, across), bytes_of(narrow(a))},
      {dtypes::bfloat16, shape(f.k, f.n, along), bytes_of(narrow(b))},
      {dtypes::float32, {f.n}, bytes_of(bias)},
      {f.narrowed ? dtypes::bfloat16 : dtypes::float32,
       {f.m, across_all},
       Bytes(size * (f.narrowed ? 2 : 4), static_cast<char>(0xff))}};  // not a number
  run(s.func(), arrays);
  for (std::int64_t i = 0; i < f.m; ++i) {
    for (std::int64_t place = 0; place < across_all; ++place) {
      const std::int64_t j = place - f.beside;
      const auto at = static_cast<std::size_t>(i * across_all + place);
      const float got = f.narrowed
                            ? wide(reinterpret_cast<std::uint16_t*>(arrays[3].data.data())[at])
                            : reinterpret_cast<float*>(arrays[3].data.data())[at];
      if (j < 0 || j >= f.n) {
        ASSERT_TRUE(std::isnan(got)) << i << ", " << place << " is beside the result";
        continue;
      }
      float want = bias[static_cast<std::size_t>(j)];
      for (std::int64_t k = 0; k < f.k; ++k)
        want += a[static_cast<std::size_t>(across ? k * f.m + i : i * f.k + k)] *
                b[static_cast<std::size_t>(along ? j * f.k + k : k * f.n + j)];
      ASSERT_EQ(got, f.narrowed ? wide(narrow(want)) : want) << i << ", " << j;
    }
  }
}

// m, n, k, layout, rows, columns, stages, blocks, group_rows, cluster, narrowed
INSTANTIATE_TEST_SUITE_P(Forms, Warps,
                         ::testing::Values(Form{72, 104, 136, "NT", 64, 64, 2, 0, 1, 1, true},
                                           Form{136, 72, 200, "TN", 128, 64, 3, 3, 1, 1, false},
                                           Form{200, 136, 72, "NN", 64, 64, 2, 2, 2, 1, true},
                                           Form{72, 96, 64, "TT", 64, 96, 2, 1, 1, 1, true},
                                           Form{136, 72, 136, "NN", 64, 64, 2, 4, 1, 2, true},
                                           Form{2, 8, 8, "NN", 64, 64, 2, 2, 16, 1, false},
                                           Form{200, 8, 8, "TT", 64, 64, 2, 0, 1, 2, true},
                                           Form{72, 40, 64, "NN", 64, 64, 2, 0, 1, 1, true, 8}));

// ---- tokens

/// A launch of one block of points with two tiles, two tokens and 64 x 64 numbers.
ir::PrimFunc launch(const std::string& body, int threads = 128) {
  std::string text =
      "@T.prim_func\ndef main(A: T.Buffer((64, 64), \"bfloat16\"), N: T.Buffer((64, 64), "
      "\"bfloat16\"), X: T.Buffer((128, 4), \"int32\")):\n"
      "    for thread in T.thread_binding(" +
      std::to_string(threads) +
      ", thread=\"threadIdx.x\"):\n"
      "        with T.block(\"block\"):\n"
      "            S = T.alloc_buffer((2, 64, 64), \"bfloat16\", scope=\"shared\")\n"
      "            C = T.alloc_buffer((8, 2, 2), \"float32\", scope=\"local\")\n"
      "            H = T.alloc_buffer((128,), \"int32\", scope=\"shared\")\n"
      "            token = T.alloc_buffer((2,), \"uint64\", scope=\"shared\")\n";
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find('\n', at);
    text += "            " + body.substr(at, end - at) + "\n";
    at = end == std::string::npos ? body.size() : end + 1;
  }
  return ir::parse_func(text);
}

std::vector<Array> numbers() {
  std::vector<float> a(64 * 64);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 129) - 64;
  return {{dtypes::bfloat16, {64, 64}, bytes_of(narrow(a))},
          {dtypes::bfloat16, {64, 64}, Bytes(64 * 64 * 2, '\0')},
          {dtypes::int32, {128, 4}, Bytes(128 * 4 * 4, '\xff')}};
}

TEST(Tokens, a_phase_ends_with_its_last_signal) {
  // Every point hands a number to another one, four times over two tokens in turn: who passes a
  // wait before the last signal reads what is not there yet, or what was there before.
  const ir::PrimFunc f = launch(
      "if thread == 0:\n    T.token_init(token[0], 128)\n    T.token_init(token[1], 128)\n"
      "T.evaluate(T.sync(\"shared\"))\n"
      "for round in range(4):\n"
      "    H[thread] = T.Cast(\"int32\", thread) * 10 + T.Cast(\"int32\", round)\n"
      "    T.token_signal(token[0])\n"
      "    T.token_wait(token[0], round % 2)\n"
      "    X[thread, round] = H[(thread * 37 + 101 + round) % 128]\n"
      "    T.token_signal(token[1])\n"
      "    T.token_wait(token[1], round % 2)\n");
  std::vector<Array> arrays = numbers();
  run(f, arrays);
  const auto* x = reinterpret_cast<const std::int32_t*>(arrays[2].data.data());
  for (int t = 0; t < 128; ++t)
    for (int r = 0; r < 4; ++r)
      ASSERT_EQ(x[t * 4 + r], (t * 37 + 101 + r) % 128 * 10 + r) << t << ", " << r;
}

const std::string kLoaded =
    "if thread == 0:\n    T.token_init(token[0], 1)\n    T.token_expect(token[0], 16384)\n"
    "    T.bulk_load(S[0, 0, 0], A[0, 0], token[0], 64, 64)\n"
    "    T.bulk_load(S[1, 0, 0], A[9, 0], token[0], 64, 64)\n"
    "T.evaluate(T.sync(\"shared\"))\n"
    "T.token_wait(token[0], 0)\n";

TEST(Tokens, a_phase_ends_with_its_last_byte) {
  // Of two loads the first is late, and of two more the second: both tiles are whole behind the
  // wait.
  for (int tile : {0, 1}) {
    const ir::PrimFunc f = launch(
        cat(kLoaded, "if thread == 0:\n    T.bulk_store(N[0, 0], S[", tile, ", 0, 0], 64, 64)\n"));
    std::vector<Array> arrays = numbers();
    run(f, arrays);
    const auto* a = reinterpret_cast<const std::uint16_t*>(arrays[0].data.data());
    const auto* n = reinterpret_cast<const std::uint16_t*>(arrays[1].data.data());
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j) {
        const int from = i + 9 * tile;
        ASSERT_EQ(n[i * 64 + j], from < 64 ? a[from * 64 + j] : 0)
            << tile << ": " << i << ", " << j;
      }
  }
}

TEST(Tokens, products_add_tiles_as_they_lie) {
  // C += S0 x S1, where rows of the second run along the columns; the tile is stored and sent.
  const ir::PrimFunc f =
      launch(kLoaded +
             "for turn in range(2):\n"
             "    with T.async_(\"wgmma\", multiplied):\n"
             "        T.tile_multiply(C[0, 0, 0], S[0, 0, 0], S[1, 0, 0], 64, 0, 1, turn > 0)\n"
             "    T.wait(multiplied, 0)\n"
             "T.meet(1, 128)\n"
             "T.tile_store(S[0, 0, 0], C[0, 0, 0])\n"
             "T.bulk_fence()\n"
             "T.meet(1, 128)\n"
             "if thread == 0:\n    T.bulk_store(N[0, 0], S[0, 0, 0], 64, 64)\n");
  std::vector<Array> arrays = numbers();
  try {
    run(f, arrays);
  } catch (const Error& e) {
    FAIL() << e.what();
  }
  const auto* a = reinterpret_cast<const std::uint16_t*>(arrays[0].data.data());
  const auto* n = reinterpret_cast<const std::uint16_t*>(arrays[1].data.data());
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) {
      float want = 0;  // whole numbers below 2^24: exact in any order
      for (int k = 0; k < 64; ++k)
        want += wide(a[i * 64 + k]) * (k + 9 < 64 ? wide(a[(k + 9) * 64 + j]) : 0);
      ASSERT_EQ(wide(n[i * 64 + j]), wide(narrow(2 * want))) << i << ", " << j;
    }
}

std::string said_of(const ir::PrimFunc& f) {
  try {
    build(ir::make_module(f), "ref");
  } catch (const Error& e) {
    return cat(e.code(), ": ", e.what());
  }
  return "built";
}

TEST(Tokens, what_is_out_of_step_is_refused) {
  struct Fault {
    std::string body, words;
  };
  const Fault faults[] = {
      {"T.token_wait(token[0], 0)\n", "no token yet"},
      {"if thread == 0:\n    T.token_init(token[0], 0)\n", "of 0 signals"},
      {"if thread == 0:\n    T.token_init(token[0], 1)\n    T.token_expect(token[0], 8)\n"
       "    T.token_signal(token[0])\n",
       "beyond the 1"},
      {"if thread == 0:\n    T.token_init(token[0], 2)\n    T.token_signal(token[0])\n"
       "T.evaluate(T.sync(\"shared\"))\nT.token_wait(token[0], 0)\n",
       "waits for ever"},
      {"if thread == 0:\n    T.token_init(token[0], 1)\n    T.token_signal(token[0])\n"
       "T.evaluate(T.sync(\"shared\"))\nT.token_wait(token[0], 1)\n",
       "waits for ever"},
      {"if thread < 96:\n    T.meet(1, 128)\nif thread == 0:\n    T.token_init(token[0], 1)\n",
       "waits for ever"}};
  EXPECT_EQ(said_of(launch(kLoaded)), "built");
  for (const Fault& f : faults) {
    const std::string said = said_of(launch(f.body));
    EXPECT_TRUE(said.starts_with("verify.token")) << f.body << said;
    EXPECT_NE(said.find(f.words), std::string::npos) << f.body << said;
  }
  // Changes of a program that is in step.
  struct Change {
    std::string old, now, words;
  };
  for (const Change& c :
       {Change{"16384", "16385", "waits for ever"}, Change{"16384", "16383", ""},
        Change{"T.token_wait(token[0], 0)\n", "T.token_wait(token[0], 1)\n", "in flight"},
        Change{"S[1, 0, 0]", "S[1, 8, 0]", "reaches beyond"},
        Change{"S[1, 0, 0]", "S[1, 4, 0]", "no multiple of 1024"}}) {
    std::string body = kLoaded +
                       "with T.async_(\"wgmma\", multiplied):\n"
                       "    T.tile_multiply(C[0, 0, 0], S[0, 0, 0], S[1, 0, 0], 64, 0, 0, False)\n"
                       "T.wait(multiplied, 0)\n";
    ASSERT_EQ(said_of(launch(body)), "built");
    body.replace(body.find(c.old), c.old.size(), c.now);
    const std::string said = said_of(launch(body));
    EXPECT_TRUE(said.starts_with("verify.token")) << body << said;
    EXPECT_NE(said.find(c.words), std::string::npos) << body << said;
  }
}

TEST(Tokens, tiles_of_another_group_are_met_first) {
  auto said = [](const std::string& between) {
    return said_of(launch(cat("if thread == 0:\n    T.token_init(token[0], 1)\n"
                              "if thread < 128:\n    T.tile_store(S[0, 0, 0], C[0, 0, 0])\n",
                              "    T.bulk_fence()\n", between,
                              "if thread == 128:\n    T.bulk_store(N[0, 0], S[0, 0, 0], 64, 64)\n"),
                          256));
  };
  EXPECT_EQ(said("T.meet(1, 256)\n"), "built");
  const std::string alone = said("");
  EXPECT_TRUE(alone.starts_with("verify.token")) << alone;
  EXPECT_NE(alone.find("another warp group has stored it"), std::string::npos) << alone;
}

TEST(Tokens, a_specialized_program_with_a_fault_is_refused) {
  const std::string text =
      ir::print(scheduled({256, 64, 192, "NN", 64, 64, 2, 1, 1, 1, true}).func());
  struct Fault {
    std::string old, now;
  };
  for (const Fault& f :
       {Fault{"== 2", "== 1"}, Fault{"= 1 - ring[1]", "= ring[1]"},
        Fault{"ring[1] = 1\n", "ring[1] = 0\n"},
        Fault{"T.wait(multiplied, 1)", "T.wait(multiplied, 2)"},
        Fault{"T.wait(multiplied, 0)", "T.wait(multiplied, 1)"},
        Fault{"T.wait(sent, 1)", "T.wait(sent, 2)"}, Fault{"T.bulk_fence()", "T.evaluate(0)"},
        Fault{"thread % 32 == 0", "thread % 128 == 0"}}) {
    std::string changed = text;
    const std::size_t at = changed.find(f.old);
    ASSERT_NE(at, std::string::npos) << f.old << " in\n" << text;
    changed.replace(at, f.old.size(), f.now);
    EXPECT_TRUE(said_of(ir::parse_func(changed)).starts_with("verify.token")) << f.old;
  }
  EXPECT_EQ(said_of(ir::parse_func(text)), "built");
}

}  // namespace
}  // namespace weft
