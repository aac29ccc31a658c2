// SPDX-License-Identifier: Apache-2.0
// The workloads of VTA's own tests and tutorials, each against plain integer arithmetic.
#include <gtest/gtest.h>

#include "support.h"

namespace weft::vta {
namespace {

const std::vector<std::string> kThree{"sim", "4x8x8", "1x32x32"};

/// Runs a packed matmul of o x m x n blocks and compares all of it.
void expect_matmul(const Config& c, MatmulShape s, MatmulTiles t, const Epilogue& e,
                   std::uint64_t seed, SimOptions options = {}) {
  std::mt19937_64 rng(seed);
  auto B = static_cast<std::size_t>(c.batch()), K = static_cast<std::size_t>(c.block_in());
  auto O = static_cast<std::size_t>(s.o), M = static_cast<std::size_t>(s.m),
       N = static_cast<std::size_t>(s.n);
  auto a = random_values<std::int8_t>(rng, O * N * B * K, -128, 127),
       w = random_values<std::int8_t>(rng, M * N * K * K, -128, 127);
  auto bias = random_values<std::int32_t>(rng, M * B * K, -500, 500);
  if (e.bias) {
    for (std::size_t m = 0; m < M; ++m) {
      for (std::size_t b = 1; b < B; ++b)
        std::copy_n(bias.begin() + static_cast<std::ptrdiff_t>(m * B * K), K,
                    bias.begin() + static_cast<std::ptrdiff_t>((m * B + b) * K));
    }
  }
  Program program = matmul(c, s, t, e);
  expect_checked(program);
  Session run(c, std::move(options));
  run.argument(a);
  run.argument(w);
  if (e.bias) run.argument(bias);
  run.argument(Bytes8(O * M * B * K, 99));
  run(program);
  Bytes8 got = run.result<std::int8_t>(e.bias ? 3 : 2), want(got.size());
  for (std::size_t o = 0; o < O; ++o) {
    for (std::size_t m = 0; m < M; ++m) {
      for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t j = 0; j < K; ++j) {
          std::int64_t sum = 0;
          for (std::size_t n = 0; n < N; ++n) {
            for (std::size_t k = 0; k < K; ++k)
              sum += a[((o * N + n) * B + b) * K + k] * w[((m * N + n) * K + j) * K + k];
          }
          want[((o * M + m) * B + b) * K + j] = finish(sum, e, bias[(m * B + b) * K + j]);
        }
      }
    }
  }
  ASSERT_EQ(got, want);
  EXPECT_FALSE(run.device().stats().check_books());
}

const Epilogue kClip{8, false, true, 0, 127};
const Epilogue kBiasClip{8, true, true, 0, 127};

TEST(VtaWorkloads, t1_the_seeds_matrix_multiply) {
  for (const std::string& name : kThree) {
    Config c = Config::sample(name);
    expect_matmul(c, {1, 4, 4}, {1, 4, 1, 1}, {}, 1);
    expect_matmul(c, {1, 4, 4}, {1, 1, 1, 2}, {}, 2);
  }
}

TEST(VtaWorkloads, t2_its_sibling_of_16_by_16_blocks) {
  for (const std::string& name : kThree)
    expect_matmul(Config::sample(name), {1, 16, 16}, {1, 16, 1, 1}, {}, 3);
}

TEST(VtaWorkloads, t6_gemm_with_one_and_two_threads) {
  for (const std::string& name : kThree) {
    for (int threads : {1, 2})
      expect_matmul(Config::sample(name), {4, 4, 1}, {2, 2, 1, threads}, kClip, 4);
  }
}

TEST(VtaWorkloads, t11_t12_t13_dense_and_large_matmul) {
  Config c;
  expect_matmul(c, {128, 8, 8}, {64, 8, 8, 2}, kClip, 5);  // 128 x 128 x 128
  expect_matmul(c, {16, 63, 32}, default_tiles(c, MatmulShape{16, 63, 32}), kClip,
                6);                                         // 16 x 512 x 1008
  expect_matmul(c, {1, 64, 64}, {1, 16, 16, 2}, kClip, 7);  // 1 x 1024 x 1024
  expect_matmul(Config::sample("4x8x8"), {32, 16, 16}, {8, 8, 8, 2}, kBiasClip, 8);
  expect_matmul(Config::sample("1x32x32"), {128, 4, 4}, {32, 4, 4, 2}, kBiasClip, 9);
  expect_matmul(c, {7, 5, 3}, {3, 2, 2, 2}, kBiasClip, 10);  // tiles that do not divide
}

TEST(VtaWorkloads, t18_blocked_matmul_with_every_tiling) {
  for (int threads : {1, 2}) {
    for (std::int64_t o : {1, 4, 16}) {
      for (std::int64_t n : {1, 4})
        expect_matmul(Config(), {16, 4, 4}, {o, 4, n, threads}, kClip, 11);
    }
  }
}

TEST(VtaWorkloads, random_legal_matmuls) {
  std::mt19937_64 rng(12);
  for (int round = 0; round < 25; ++round) {
    Config c = Config::sample(kThree[rng() % 3]);
    auto pick = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + rng() % n); };
    MatmulShape s{pick(9), pick(9), pick(9)};
    expect_matmul(c, s, {pick(9), pick(9), pick(9), static_cast<int>(pick(2))},
                  {static_cast<int>(rng() % 12), rng() % 2 == 0, rng() % 2 == 0, -100, 100}, rng());
  }
}

std::size_t st(std::int64_t v) { return static_cast<std::size_t>(v); }

struct ConvData {
  Bytes8 x, w;
  std::vector<std::int32_t> bias;
};

ConvData conv_data(const Config& c, std::int64_t batch, std::int64_t ci, std::int64_t h,
                   std::int64_t w, std::int64_t co, std::int64_t ci_group, std::int64_t k,
                   std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  ConvData d;
  d.x =
      random_values<std::int8_t>(rng, st(batch * ci * h * w * c.batch() * c.block_in()), -128, 127);
  d.w = random_values<std::int8_t>(rng, st(co * ci_group * k * k * c.block_in() * c.block_out()),
                                   -128, 127);
  d.bias = random_values<std::int32_t>(rng, st(co * c.lanes()), -100, 100);
  return d;
}

/// Runs `program` and compares with taps(n, co block, oy, ox, callback(ci block in group, iy, ix,
/// ky, kx)).
template <typename Taps>
void expect_conv(const Config& c, const Program& program, const ConvData& d, const Epilogue& e,
                 std::int64_t batch, std::int64_t ci, std::int64_t h, std::int64_t w,
                 std::int64_t co, std::int64_t ci_group, std::int64_t k, std::int64_t oh,
                 std::int64_t ow, Taps&& taps) {
  expect_checked(program);
  Session run(c);
  run.argument(d.x);
  run.argument(d.w);
  if (e.bias) run.argument(d.bias);
  run.argument(Bytes8(st(batch * co * oh * ow * c.lanes()), 77));
  run(program);
  Bytes8 got = run.result<std::int8_t>(e.bias ? 3 : 2);
  const std::int64_t B = c.batch(), K = c.block_in();
  std::vector<std::int64_t> sum(st(c.lanes()));
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t o = 0; o < co; ++o) {
      for (std::int64_t y = 0; y < oh; ++y) {
        for (std::int64_t x = 0; x < ow; ++x) {
          std::fill(sum.begin(), sum.end(), 0);
          taps(o, y, x,
               [&](std::int64_t i, std::int64_t i_in_group, std::int64_t iy, std::int64_t ix,
                   std::int64_t ky, std::int64_t kx) {
                 if (iy < 0 || ix < 0 || iy >= h || ix >= w) return;
                 const std::int8_t* px = d.x.data() + (((n * ci + i) * h + iy) * w + ix) * B * K;
                 const std::int8_t* pw =
                     d.w.data() + (((o * ci_group + i_in_group) * k + ky) * k + kx) * K * K;
                 for (std::int64_t b = 0; b < B; ++b) {
                   for (std::int64_t j = 0; j < K; ++j) {
                     std::int32_t s = 0;
                     for (std::int64_t q = 0; q < K; ++q) s += px[b * K + q] * pw[j * K + q];
                     sum[st(b * K + j)] += s;
                   }
                 }
               });
          std::int64_t at = ((n * co + o) * oh + y) * ow + x;
          for (int l = 0; l < c.lanes(); ++l) {
            ASSERT_EQ(got[st(at * c.lanes() + l)],
                      finish(sum[st(l)], e, d.bias[st(o * c.lanes() + l)]))
                << "n " << n << " co " << o << " y " << y << " x " << x << " lane " << l;
          }
        }
      }
    }
  }
}

void expect_conv2d(const Config& c, const ConvShape& s, const ConvTiles& t, const Epilogue& e,
                   std::uint64_t seed) {
  std::int64_t ci_group = s.ci / s.groups, co_group = s.co / s.groups;
  ConvData d = conv_data(c, s.batch, s.ci, s.h, s.w, s.co, ci_group, s.kernel, seed);
  expect_conv(c, conv2d(c, s, t, e), d, e, s.batch, s.ci, s.h, s.w, s.co, ci_group, s.kernel,
              s.out_h(), s.out_w(),
              [&](std::int64_t o, std::int64_t y, std::int64_t x, auto&& tap) {
                for (std::int64_t i = 0; i < ci_group; ++i) {
                  for (std::int64_t ky = 0; ky < s.kernel; ++ky) {
                    for (std::int64_t kx = 0; kx < s.kernel; ++kx)
                      tap(o / co_group * ci_group + i, i, y * s.stride + ky * s.dilation - s.pad,
                          x * s.stride + kx * s.dilation - s.pad, ky, kx);
                  }
                }
              });
}

void expect_transpose(const Config& c, const ConvTransposeShape& s, const ConvTransposeTiles& t,
                      const Epilogue& e, std::uint64_t seed) {
  ConvData d = conv_data(c, s.batch, s.ci, s.h, s.w, s.co, s.ci, s.kernel, seed);
  expect_conv(c, conv2d_transpose(c, s, t, e), d, e, s.batch, s.ci, s.h, s.w, s.co, s.ci, s.kernel,
              s.out_h(), s.out_w(), [&](std::int64_t, std::int64_t y, std::int64_t x, auto&& tap) {
                for (std::int64_t i = 0; i < s.ci; ++i) {
                  for (std::int64_t ky = 0; ky < s.kernel; ++ky) {
                    for (std::int64_t kx = 0; kx < s.kernel; ++kx) {
                      std::int64_t ny = y + s.pad - ky, nx = x + s.pad - kx;
                      if (ny % s.stride == 0 && nx % s.stride == 0)
                        tap(i, i, ny / s.stride, nx / s.stride, ky, kx);
                    }
                  }
                }
              });
}

TEST(VtaWorkloads, t14_convolution_of_the_tutorial) {
  expect_conv2d(Config(), {1, 14, 14, 16, 16, 3, 1, 1, 1}, {7, 14, 1, 8, 2}, kClip, 20);
}

TEST(VtaWorkloads, t15_resnet_layers) {
  Config c;
  for (const ResnetLayer& layer : resnet18_layers()) {
    SCOPED_TRACE(layer.name);
    ConvShape s = shape_of(layer, c);
    expect_conv2d(c, s, default_tiles(c, s, kBiasClip), kBiasClip, 21);
  }
  for (const char* name : {"4x8x8", "1x32x32"}) {  // tiles by hand: what fits these machines
    Config other = Config::sample(name);
    for (const ResnetLayer& layer : resnet18_layers()) {
      SCOPED_TRACE(cat(name, " ", layer.name));
      ConvShape s = shape_of(layer, other);
      expect_conv2d(
          other, s,
          {std::min<std::int64_t>(s.out_h(), 7), std::min<std::int64_t>(s.out_w(), 28), 1, 2, 2},
          kBiasClip, 21);
    }
  }
}

TEST(VtaWorkloads, t16_transposed_convolution) {
  for (const std::string& name : kThree) {
    Config c = Config::sample(name);
    std::int64_t k = c.block_in();
    expect_transpose(c, {1, 4, 4, 1024 / k / 4, 512 / k / 4, 4, 2, 1}, {1, 4, 2}, kClip, 22);
    expect_transpose(c, {1, 8, 8, 64 / k, 64 / k, 4, 2, 1}, {1, 2, 2}, kBiasClip, 23);
    expect_transpose(c, {1, 5, 3, 2, 2, 3, 2, 1}, {2, 1, 1}, kClip, 24);
    expect_transpose(c, {1, 4, 5, 2, 2, 3, 1, 1}, {1, 2, 1}, kClip, 25);
  }
  expect_transpose(Config(), {1, 16, 16, 256 / 16, 128 / 16, 4, 2, 1}, {1, 1, 1}, kClip, 26);
}

TEST(VtaWorkloads, t17_grouped_convolution) {
  Config c;
  struct Row {
    std::int64_t size, channels, groups, stride;
  };
  for (Row r : {Row{112, 32, 2, 1}, Row{112, 64, 4, 2}, Row{56, 128, 8, 1}, Row{56, 128, 8, 2},
                Row{28, 256, 16, 1}, Row{28, 256, 16, 2}, Row{14, 512, 32, 1}, Row{14, 512, 32, 2},
                Row{7, 1024, 64, 1}}) {
    SCOPED_TRACE(r.channels);
    ConvShape s{1, r.size, r.size, r.channels / 16, r.channels / 16, 3, r.stride, 1, r.groups};
    expect_conv2d(c, s, default_tiles(c, s, kClip), kClip, 27);
  }
  expect_conv2d(Config::sample("4x8x8"), {1, 9, 9, 4, 4, 3, 1, 1, 2}, {3, 9, 2, 2, 2}, kBiasClip,
                28);
}

TEST(VtaWorkloads, t21_convolutions_on_other_configurations) {
  std::mt19937_64 rng(29);
  for (const std::string& name : kThree) {
    Config c = Config::sample(name);
    for (int round = 0; round < 8; ++round) {
      auto pick = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + rng() % n); };
      ConvShape s{pick(2), 2 + pick(9), 2 + pick(9), pick(3), pick(3), pick(3), pick(2), 0, 1};
      if (s.kernel > 1) s.pad = static_cast<std::int64_t>(rng() % 2);
      expect_conv2d(c, s, {pick(5), pick(5), pick(3), pick(3), static_cast<int>(pick(2))},
                    {static_cast<int>(rng() % 10), rng() % 2 == 0, true, -20, 90}, rng());
    }
  }
}

TEST(VtaWorkloads, tiles_that_do_not_fit_are_told_what_fits) {
  const Config c;  // 2048 input, 1024 weight and 2048 accumulator elements
  auto refusal = [](auto&& make) -> std::string {
    try {
      make();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "vta.schedule.capacity");
      return error.what();
    }
    return "accepted";
  };
  auto conv = [&](const ConvTiles& t) {
    return refusal([&] { conv2d(c, {1, 16, 16, 64, 64, 3, 1, 1}, t, kBiasClip); });
  };
  auto expect = [](const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  };
  // 2048 elements less 64 of the bias, for two threads.
  expect(conv({16, 32, 1, 2, 2}), {"a tile needs 1024 elements of acc, but 992 are there for each "
                                   "of 2 threads",
                                   "a tile with co 1 fits (now 2)"});
  expect(conv({64, 32, 1, 1, 1}), {"a tile with h 62 fits (now 64)"});
  expect(conv({8, 16, 16, 1, 1}), {"a tile needs 2880 elements of inp", "a tile with ci 11 fits"});
  expect(conv({64, 31, 1, 1, 1}), {"a tile with h 60 fits (now 64)"});
  expect(conv({2, 2, 16, 8, 1}), {"a tile needs 1152 elements of wgt", "a tile with ci 14 fits"});
  EXPECT_EQ(conv({2, 2, 14, 8, 1}), "accepted");
  expect(refusal([&] {
           matmul(c, {64, 64, 64}, {64, 33, 1, 1}, kClip);
         }),
         {"a tile needs 2112 elements of acc", "a tile with m 32 fits (now 33)"});
}

TEST(VtaWorkloads, a_tile_that_lies_in_the_padding) {
  for (const std::string& name : kThree) {
    Config c = Config::sample(name);
    for (int threads : {1, 2}) {
      expect_conv2d(c, {1, 3, 3, 1, 1, 1, 1, 1}, {1, 1, 1, 1, threads}, {}, 30);
      expect_conv2d(c, {1, 3, 3, 1, 1, 1, 1, 1}, {1, 5, 1, 1, threads}, {}, 31);
      expect_conv2d(c, {1, 3, 3, 1, 1, 1, 1, 1}, {5, 1, 1, 1, threads}, {}, 32);
      expect_conv2d(c, {1, 3, 3, 1, 1, 1, 2, 2}, {1, 1, 1, 1, threads}, {}, 33);
      expect_conv2d(c, {1, 20, 3, 1, 1, 1, 1, 4}, {20, 2, 1, 1, threads}, {}, 34);
    }
  }
}

/// Follows what refusals name until the tiles fit.
void make_fit(const Config& c, const ConvShape& s, const Epilogue& e, ConvTiles& t) {
  for (int refusals = 0; refusals <= 4; ++refusals) {
    try {
      conv2d(c, s, t, e);
      return;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), "vta.schedule.capacity");
      const std::string text = error.what();
      const std::size_t at = text.find("a tile with ");
      ASSERT_NE(at, std::string::npos) << text;
      char name[3];
      long n = 0;
      ASSERT_EQ(std::sscanf(text.c_str() + at, "a tile with %2s %ld", name, &n), 2) << text;
      const std::string_view which = name;
      (which == "co" ? t.co : which == "ci" ? t.ci : which == "h" ? t.h : t.w) = n;
    }
  }
  FAIL() << "four refusals, one for each extent, and the tiles still do not fit";
}

// WEFT_VTA_CONVOLUTIONS: how many, 500 where it is not set; WEFT_VTA_SEED: others.
TEST(VtaWorkloads, random_convolutions) {
  const char* wanted = std::getenv("WEFT_VTA_CONVOLUTIONS");
  const int rounds = wanted ? std::atoi(wanted) : 500;
  ASSERT_GT(rounds, 0);
  const char* seed = std::getenv("WEFT_VTA_SEED");
  std::mt19937_64 rng(seed ? std::strtoull(seed, nullptr, 10) : 35);
  auto pick = [&](std::uint64_t n) { return static_cast<std::int64_t>(1 + rng() % n); };
  for (int round = 0; round < rounds;) {
    const Config c = Config::sample(kThree[rng() % kThree.size()]);
    ConvShape s{pick(2), pick(11), pick(11), pick(3), pick(3), pick(4), pick(3)};
    s.pad = static_cast<std::int64_t>(rng() % 5), s.dilation = pick(3);
    if (rng() % 4 == 0) s.groups = pick(3), s.ci *= s.groups, s.co *= s.groups;
    if (s.out_h() < 1 || s.out_w() < 1 || s.reach() > s.h + 2 * s.pad ||
        s.reach() > s.w + 2 * s.pad)
      continue;
    const Epilogue e{static_cast<int>(rng() % 10), rng() % 2 == 0, rng() % 2 == 0, -20, 90};
    ConvTiles t{pick(5), pick(5), pick(3), pick(3), static_cast<int>(pick(2))};
    if (rng() % 5 == 0) t = default_tiles(c, s, e);
    ASSERT_NO_FATAL_FAILURE(make_fit(c, s, e, t));
    SCOPED_TRACE(cat("round ", round++, ": ", s.h, "x", s.w, " kernel ", s.kernel, " stride ",
                     s.stride, " pad ", s.pad, " dilation ", s.dilation, " groups ", s.groups,
                     " tiles ", t.h, "x", t.w, " ci ", t.ci, " co ", t.co));
    expect_conv2d(c, s, t, e, rng());
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void expect_chain(const Config& c, std::int64_t elements, const std::vector<AluStep>& chain,
                  std::int64_t low, std::int64_t high, std::uint64_t seed,
                  SimOptions options = {}) {
  std::mt19937_64 rng(seed);
  std::size_t n = st(elements * c.lanes());
  std::vector<std::vector<std::int32_t>> in{random_values<std::int32_t>(rng, n, low, high)};
  for (const AluStep& step : chain) {
    if (!step.use_imm)
      in.push_back(random_values<std::int32_t>(rng, n, step.op == AluOp::shr ? -31 : low,
                                               step.op == AluOp::shr ? 31 : high));
  }
  Program program = elementwise(c, elements, chain);
  expect_checked(program);
  Session run(c, std::move(options));
  for (const auto& v : in) run.argument(v);
  run.argument(Bytes8(n, 55));
  run(program);
  Bytes8 got = run.result<std::int8_t>(in.size());
  for (std::size_t i = 0; i < n; ++i) {
    std::int32_t v = in[0][i];
    std::size_t other = 1;
    for (const AluStep& step : chain) {
      std::int64_t y = step.use_imm ? step.imm : in[other++][i];
      switch (step.op) {
        case AluOp::min: v = static_cast<std::int32_t>(std::min<std::int64_t>(v, y)); break;
        case AluOp::max: v = static_cast<std::int32_t>(std::max<std::int64_t>(v, y)); break;
        case AluOp::add: v = wrap32(v + y); break;
        case AluOp::mul: v = wrap32(v * y); break;
        case AluOp::shr:
          v = y >= 0 ? v >> y : wrap32(std::int64_t{v} * (std::int64_t{1} << -y));
          break;
      }
    }
    ASSERT_EQ(got[i], static_cast<std::int8_t>(v & 0xff)) << i;
  }
}

TEST(VtaWorkloads, t3_t4_t10_vector_add_and_copies) {
  for (const std::string& name : kThree) {
    Config c = Config::sample(name);
    SimOptions strict;
    strict.strict = true;
    expect_chain(c, 64, {{AluOp::add, false, 0}}, -1000, 1000, 30, strict);
    expect_chain(c, 36, {}, -128, 127, 31, strict);  // save, load, out
    expect_chain(c, 100 * 100 / c.lanes() + 1, {}, -128, 127, 32, strict);
  }
}

TEST(VtaWorkloads, t7_t8_t9_alu_chains) {
  for (const std::string& name : kThree) {
    Config c = Config::sample(name);
    expect_chain(c, 64, {{AluOp::shr, true, -2}}, -100000, 100000, 33);
    expect_chain(c, 64, {{AluOp::max, true, 5}}, -100, 100, 34);
    expect_chain(c, 64, {{AluOp::max, false, 0}}, -100, 100, 35);
    expect_chain(c, 64, {{AluOp::add, true, -7}}, -100, 100, 36);
    expect_chain(c, 64, {{AluOp::add, false, 0}}, INT32_MIN, INT32_MAX, 37);
    expect_chain(c, 64, {{AluOp::shr, true, 3}}, INT32_MIN, INT32_MAX, 38);
    expect_chain(c, 80, {{AluOp::max, true, 0}, {AluOp::min, true, 127}}, -300, 300, 39);  // relu
    expect_chain(c, 16, {{AluOp::add, true, 100}, {AluOp::shr, true, 2}}, -300, 300,
                 40);  // shift and scale
    expect_chain(c, 16 * 128,
                 {{AluOp::mul, false, 0}, {AluOp::min, false, 0}, {AluOp::shr, false, 0}},
                 INT32_MIN, INT32_MAX, 41);
    expect_chain(c, 5000,
                 {{AluOp::mul, true, -77},
                  {AluOp::add, false, 0},
                  {AluOp::shr, true, 5},
                  {AluOp::max, true, -100},
                  {AluOp::min, true, 100}},
                 -3000, 3000, 42);
  }
}

void expect_padded_loads(const Config& c) {
  struct Pads {
    std::int64_t top, bottom, left, right;
  };
  for (Pads pad :
       {Pads{2, 0, 0, 0}, Pads{0, 2, 0, 0}, Pads{0, 0, 2, 0}, Pads{0, 0, 0, 2}, Pads{1, 1, 1, 1}}) {
    for (bool oracle : {false, true}) {
      const std::int64_t h = 3, w = 5, rows = h + pad.top + pad.bottom,
                         cols = w + pad.left + pad.right;
      Builder b(c, "pad");
      int x = b.param("x", dtypes::int32), y = b.param("y", dtypes::int8);
      b.load(MemType::acc, 0, x, 0, {h, w, w, pad.top, pad.bottom, pad.left, pad.right});
      b.alu_imm(AluOp::add, UopKernel::compress({{rows * cols, 1, 1, 0}}), 1);
      b.push(Stage::compute, Stage::store);
      b.pop(Stage::compute, Stage::store);
      b.store(0, y, 0, {rows, cols});
      SimOptions options;
      if (oracle) options.engine = EngineKind::oracle;
      Session run(c, options);
      std::mt19937_64 rng(43);
      const std::int64_t lanes = c.lanes();
      auto in = random_values<std::int32_t>(rng, st(h * w * lanes), -100, 100);
      run.argument(in);
      run.argument(Bytes8(st(rows * cols * lanes), 55));
      run(b.finish());
      Bytes8 got = run.result<std::int8_t>(1);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t q = 0; q < cols; ++q) {
          bool inside = r >= pad.top && r < pad.top + h && q >= pad.left && q < pad.left + w;
          for (std::int64_t l = 0; l < lanes; ++l) {
            std::int32_t want =
                1 + (inside ? in[st(((r - pad.top) * w + q - pad.left) * lanes + l)] : 0);
            ASSERT_EQ(got[st((r * cols + q) * lanes + l)], want);
          }
        }
      }
    }
  }
}

TEST(VtaWorkloads, t5_padded_loads) {
  for (const std::string& name : kThree) expect_padded_loads(Config::sample(name));
}

void expect_eviction(const Config& c) {
  // 90 distinct kernels of 100 micro-operations: 9000 > 8192. Kernel j adds j + 1 to every 90th
  // element.
  Builder b(c, "eviction");
  int x = b.param("x", dtypes::int32), y = b.param("y", dtypes::int8);
  b.load(MemType::acc, 0, x, 0, {1, 2000});
  std::mt19937_64 rng(44);
  const std::size_t lanes = st(c.lanes());
  std::vector<std::int32_t> in(2000 * lanes, 0), want(2000, 0);
  for (int j = 0; j < 90; ++j) {
    UopKernel k;
    for (int i = 0; i < 100; ++i) {
      std::uint32_t dst = static_cast<std::uint32_t>(rng() % 2000);
      k.uops.push_back({dst, 0, 0});
      want[dst] += j + 1;
    }
    b.alu_imm(AluOp::add, k, j + 1);
  }
  b.push(Stage::compute, Stage::store);
  b.pop(Stage::compute, Stage::store);
  b.store(0, y, 0, {1, 2000});
  Session run(c);
  run.argument(in);
  run.argument(Bytes8(2000 * lanes, 0));
  run(b.finish());
  Bytes8 got = run.result<std::int8_t>(1);
  for (std::size_t i = 0; i < 2000 * lanes; ++i)
    ASSERT_EQ(got[i], static_cast<std::int8_t>(want[i / lanes] & 0xff)) << i;
}

TEST(VtaWorkloads, t22_more_micro_operations_than_the_memory_holds) {
  for (const std::string& name : kThree) expect_eviction(Config::sample(name));
}

}  // namespace
}  // namespace weft::vta
