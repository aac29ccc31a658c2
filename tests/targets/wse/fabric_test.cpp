// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/fabric.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>

#include "fabric_builder.h"

namespace weft::wse::testing {
namespace {

TEST(Fabric, ScalarLoopStoresSquares) {
  Builder b;
  b.imm(Op::ldi, 0, 0).imm(Op::ldi, 1, 10).imm(Op::ldi, 2, 1).imm(Op::ldi, 3, 100);
  int loop = b.here();
  b.op(Op::mul, Ty::i16, 4, 0, 0)
      .op(Op::stx, Ty::i16, 4, 3, 0)
      .op(Op::add, Ty::i16, 0, 0, 2)
      .op(Op::lt, Ty::i16, 5, 0, 1);
  b.imm(Op::jnz, 5, loop);
  b.local_task(8, b.end("main"), true);
  LayoutBuilder l(1, 1);
  l.tile(0, 0, l.add(b.p));
  Fabric f(l.l, {});
  f.start();
  EXPECT_EQ(f.run(), Stop::quiet);
  for (int i = 0; i < 10; ++i) {
    std::int16_t v;
    f.read_memory(0, 0, static_cast<std::uint32_t>(100 + 2 * i), &v, 2);
    EXPECT_EQ(v, i * i);
  }
  EXPECT_FALSE(f.stats().check_books());
}

void run_chain(int pes, int n, FabricOptions options, std::vector<float>* result, Cycle* cycles) {
  Layout l = chain(pes, n, 0, 20000);
  Fabric f(l, options);
  std::mt19937 rng(7);
  std::vector<std::vector<float>> v(static_cast<std::size_t>(pes),
                                    std::vector<float>(static_cast<std::size_t>(n)));
  for (int x = 0; x < pes; ++x) {
    for (float& e : v[static_cast<std::size_t>(x)])
      e = std::uniform_real_distribution<float>(-1, 1)(rng);
    f.write_memory(x, 0, 0, v[static_cast<std::size_t>(x)].data(),
                   static_cast<std::uint32_t>(4 * n));
  }
  f.start();
  EXPECT_EQ(f.run(), Stop::quiet);
  EXPECT_TRUE(f.waiting().empty());
  result->resize(static_cast<std::size_t>(n));
  f.read_memory(0, 0, 20000, result->data(), static_cast<std::uint32_t>(4 * n));
  *cycles = f.now();
  for (int i = 0; i < n; ++i) {
    float want = v[static_cast<std::size_t>(pes) - 1][static_cast<std::size_t>(i)];
    for (int x = pes - 2; x >= 0; --x)
      want = want + v[static_cast<std::size_t>(x)][static_cast<std::size_t>(i)];
    ASSERT_EQ((*result)[static_cast<std::size_t>(i)], want) << i;
  }
  Verdict books = f.stats().check_books();
  EXPECT_FALSE(books) << books->message;
  if (options.timed && n > 500) {
    std::printf("%d PEs, %d elements: %lld cycles, %lld steps, %lld hops\n", pes, n,
                static_cast<long long>(f.now()), static_cast<long long>(f.pe_steps()),
                static_cast<long long>(f.hops()));
  }
}

TEST(Fabric, ChainReduction) {
  std::vector<float> r;
  Cycle c;
  run_chain(2, 1, {}, &r, &c);
  run_chain(5, 17, {}, &r, &c);
  run_chain(5, 17, {.timed = false}, &r, &c);
  auto t0 = std::chrono::steady_clock::now();
  run_chain(512, 4096, {}, &r, &c);
  double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
  std::printf("%.2f s, %.1f M tile-cycles/s\n", s, 512.0 * static_cast<double>(c) / s / 1e6);
}

TEST(Fabric, ThreadsGiveTheSame) {
  std::vector<float> a, b;
  Cycle ca, cb;
  run_chain(37, 200, {}, &a, &ca);
  for (int threads : {2, 3}) {
    run_chain(37, 200, {.threads = threads}, &b, &cb);
    EXPECT_EQ(a, b);
    EXPECT_EQ(ca, cb);
  }
}

TEST(Fabric, EveryWayOfCarryingWaveletsGivesTheSame) {
  // Hop by hop, through channels, and in batches: the same bits; without congestion also the same
  // cycles.
  for (auto [pes, n] : {std::pair{3, 5}, {9, 64}, {20, 333}}) {
    std::vector<float> a, b, c;
    Cycle ca, cb, cc;
    run_chain(pes, n, {.express = false}, &a, &ca);
    run_chain(pes, n, {.fast = false}, &b, &cb);
    run_chain(pes, n, {}, &c, &cc);
    EXPECT_EQ(a, b);
    EXPECT_EQ(a, c);
    EXPECT_EQ(ca, cb) << pes << " " << n;
    EXPECT_EQ(ca, cc) << pes << " " << n;
  }
}

}  // namespace
}  // namespace weft::wse::testing
