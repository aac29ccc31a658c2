// SPDX-License-Identifier: Apache-2.0
// The kernel of whole products and convolutions is an ordinary program: here the interpreter runs
// it, thread by thread, against sums taken directly; and the compiler for cards makes each form of
// it a cubin that keeps its registers.

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <random>

#include "weft/base/error.h"
#include "weft/devices/pieces.h"
#include "weft/devices/warp_specialized_kernel.h"
#include "weft/ir/build.h"
#include "weft/ir/interpret.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

using device::kGemmParams;
using device::WarpSpecializedGemm;
using Mode = WarpSpecializedGemm::Mode;
using Out = WarpSpecializedGemm::Out;

float widen(std::uint16_t v) { return std::bit_cast<float>(std::uint32_t{v} << 16); }
std::uint16_t narrow(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Four axes, innermost first, as the copy engine sees an array; planes of them.
struct Array {
  std::array<std::int64_t, 5> extents{1, 1, 1, 1, 1};
  std::array<std::int64_t, 4> strides{};
  std::vector<std::uint16_t> data;

  Array(std::array<std::int64_t, 4> n, std::int64_t pitch, std::int64_t planes = 1)
      : extents{n[0], n[1], n[2], n[3], planes} {
    strides = {pitch, pitch * n[1], pitch * n[1] * n[2], pitch * n[1] * n[2] * n[3]};
    data.resize(static_cast<std::size_t>(strides[3] * planes), narrow(99));
  }
  std::uint16_t& at(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t w,
                    std::int64_t plane = 0) {
    return data[static_cast<std::size_t>(x + y * strides[0] + z * strides[1] + w * strides[2] +
                                         plane * strides[3])];
  }
  /// 0 outside.
  float read(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t w,
             std::int64_t plane = 0) {
    const std::int64_t i[] = {x, y, z, w};
    for (std::size_t d = 0; d < 4; ++d)
      if (i[d] < 0 || i[d] >= extents[d]) return 0;
    return widen(at(x, y, z, w, plane));
  }
  void fill(std::mt19937& rng) {  // few bits: sums are exact
    for (std::int64_t plane = 0; plane < extents[4]; ++plane)
      for (std::int64_t w = 0; w < extents[3]; ++w)
        for (std::int64_t z = 0; z < extents[2]; ++z)
          for (std::int64_t y = 0; y < extents[1]; ++y)
            for (std::int64_t x = 0; x < extents[0]; ++x)
              at(x, y, z, w, plane) =
                  narrow(static_cast<float>(static_cast<int>(rng() % 17) - 8) / 8);
  }
};

/// The sum of the products of an operand's elements: one, or those of pieces.
using Element = std::function<float(std::int64_t plane)>;
float product_of(bool pieces, const Element& a, const Element& b) {
  if (!pieces) return a(0) * b(0);
  float sum = 0;
  for (int pair = 0; pair < rules::kPieceProducts; ++pair)
    sum += a(device::kPieceOfA[pair]) * b(device::kPieceOfB[pair]);
  return sum;
}

using Numbers = std::map<std::string_view, std::int64_t>;

/// Points that run in turns, as the target ref has them.
ir::PrimFunc joined(const WarpSpecializedGemm& spec) {
  return pass::run_pipeline(find_backend("ref").pipeline(Target::parse("ref")),
                            device::warp_specialized_kernel(spec));
}

void run(const ir::PrimFunc& f, const WarpSpecializedGemm& spec, Array& a, Array& b, void* out,
         std::int64_t out_size, const Array* out_array, const Numbers& numbers) {
  std::vector<ir::InterpretArg> args;
  auto flat = [&](void* data, std::int64_t n) { args.push_back({data, {n}, {}, 0, 0}); };
  flat(a.data.data(), static_cast<std::int64_t>(a.data.size()));
  flat(b.data.data(), static_cast<std::int64_t>(b.data.size()));
  flat(out, out_size);
  auto number = [&](std::int64_t v) { args.push_back({nullptr, {}, {}, v, 0}); };
  std::vector<const Array*> maps = {&a, &b};
  if (spec.out == Out::copied) maps.push_back(out_array);
  for (const Array* x : maps) {
    const auto axes = static_cast<std::size_t>(spec.axes());
    for (std::size_t i = 0; i < axes; ++i) number(x->extents[i]);
    for (std::size_t i = 0; i + 1 < axes; ++i) number(x->strides[i]);
  }
  for (std::string_view name : kGemmParams) {
    auto found = numbers.find(name);
    number(found == numbers.end() ? 1 : found->second);
  }
  ir::interpret(f, args);
}

struct Layout {
  bool a_along_m, b_along_n;
  int groups, columns, stages;
  Out out;
};

/// `change`: applied to the joined program before it runs.
using Change = std::function<ir::PrimFunc(const ir::PrimFunc&)>;
std::int64_t product_errors(const Layout& layout, std::int64_t m, std::int64_t n, std::int64_t k,
                            std::int64_t parts, const Change& change = {}) {
  WarpSpecializedGemm spec;
  spec.type = dtypes::bfloat16, spec.out = layout.out;
  spec.a_along_m = layout.a_along_m, spec.b_along_n = layout.b_along_n;
  spec.groups = layout.groups, spec.columns = layout.columns, spec.stages = layout.stages;
  std::mt19937 rng(7);
  auto up = [](std::int64_t v, std::int64_t to) { return (v + to - 1) / to; };
  constexpr std::int64_t kInner = 2, kOuter = 2;  // a moves along the inner one, b along the outer
  Array a({layout.a_along_m ? m : k, layout.a_along_m ? k : m, kInner, 1},
          up(layout.a_along_m ? m : k, 8) * 8),
      b({layout.b_along_n ? n : k, layout.b_along_n ? k : n, 1, kOuter},
        up(layout.b_along_n ? n : k, 8) * 8);
  a.fill(rng), b.fill(rng);
  const std::int64_t batches = kInner * kOuter, steps = up(k, 64), part = up(steps, parts);
  Numbers x = {{"blocks", 3},
               {"tiles_m", up(m, 64 * spec.groups)},
               {"tiles_n", up(n, spec.columns)},
               {"batches", batches},
               {"parts", up(steps, part)},
               {"steps", steps},
               {"part", part},
               {"m", m},
               {"n", n},
               {"inner", kInner},
               {"move_a0", 1},
               {"move_a1", 0},
               {"move_b0", 0},
               {"move_b1", 1}};
  Array to({n, m, batches, 1}, n);
  std::vector<float> sums(static_cast<std::size_t>(x.at("parts") * batches * m * n), NAN);
  const ir::PrimFunc f = change ? change(joined(spec)) : joined(spec);
  if (spec.out == Out::partial) run(f, spec, a, b, sums.data(), std::ssize(sums), nullptr, x);
  else run(f, spec, a, b, to.data.data(), std::ssize(to.data), &to, x);
  std::int64_t wrong = 0;
  for (std::int64_t z = 0; z < batches; ++z) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        float want = 0, got = 0;
        for (std::int64_t r = 0; r < k; ++r) {
          const float u =
              layout.a_along_m ? a.read(i, r, z % kInner, 0) : a.read(r, i, z % kInner, 0);
          const float v =
              layout.b_along_n ? b.read(j, r, 0, z / kInner) : b.read(r, j, 0, z / kInner);
          want += u * v;
        }
        if (spec.out == Out::partial) {
          for (std::int64_t p = 0; p < x.at("parts"); ++p)
            got += sums[static_cast<std::size_t>(((p * batches + z) * m + i) * n + j)];
        } else {
          got = widen(to.at(j, i, z, 0)), want = widen(narrow(want));
        }
        wrong += !(got == want);
      }
    }
  }
  return wrong;
}

TEST(ArrayWhole, products_of_every_layout) {
  const Layout all[] = {
      {false, true, 2, 128, 3, Out::copied}, {true, false, 1, 64, 2, Out::copied},
      {true, true, 2, 64, 2, Out::stored},   {false, false, 1, 256, 2, Out::stored},
      {false, true, 1, 64, 4, Out::partial}, {true, true, 2, 256, 2, Out::copied}};
  for (const Layout& l : all) {
    SCOPED_TRACE(cat(l.a_along_m, l.b_along_n, " ", l.groups, " ", l.columns));
    EXPECT_EQ(product_errors(l, 150, 136, 200, 1), 0);
  }
  // Odd rows, and a sum in parts of which the last is shorter.
  EXPECT_EQ(product_errors({false, true, 1, 64, 2, Out::stored}, 70, 67, 70, 1), 0);
  EXPECT_EQ(product_errors({false, true, 2, 64, 3, Out::partial}, 70, 67, 330, 4), 0);
  EXPECT_EQ(product_errors({false, true, 2, 64, 3, Out::partial}, 70, 66, 330, 2), 0);
}

/// From one place of a window to the next; convolutions side by side.
struct Gaps {
  std::int64_t x = 1, y = 1, groups = 1;
};

/// Images [n, y, x, channel] and weights [place, channel, out]; places as rows or as steps.
std::int64_t convolution_errors(bool turned, int groups, int step_x, int step_y,
                                std::int64_t parts = 1, bool pieces = false,
                                const Gaps& gaps = {}) {
  constexpr std::int64_t kImages = 3, kHigh = 7, kWide = 6, kWindowX = 3, kWindowY = 2, kBefore = 1;
  const auto [gap_x, gap_y, groups_of] = gaps;
  // Of a group, odd ones: copies fill up what is missing to 8 and to 64.
  const std::int64_t kIn = groups_of > 1 ? 67 : 72, kOut = groups_of > 1 ? 5 : 72, pitch_in = 72,
                     pitch_out = groups_of > 1 ? 8 : 72;
  WarpSpecializedGemm spec;
  spec.type = dtypes::bfloat16, spec.mode = Mode::patches, spec.groups = groups;
  spec.columns = 64, spec.stages = 3, spec.b_along_n = !turned, spec.pieces = pieces;
  spec.patch[0] = 4, spec.patch[1] = 8, spec.patch[2] = 2;
  spec.step[0] = step_x, spec.step[1] = step_y;
  spec.grouped = groups_of > 1;
  std::mt19937 rng(11);
  const std::int64_t wide = (kWide + 2 * kBefore - (kWindowX - 1) * gap_x - 1) / step_x + 1,
                     high = (kHigh + 2 * kBefore - (kWindowY - 1) * gap_y - 1) / step_y + 1;
  const std::int64_t planes = pieces ? device::kPiecePlanes : groups_of;
  Array x({kIn, kWide, kHigh, kImages}, pitch_in, planes),
      y({kOut, wide, high, kImages}, pitch_out, groups_of);
  Array w = turned ? Array({kIn, kOut, kWindowX, kWindowY}, pitch_in, planes)
                   : Array({kOut, kIn, kWindowX, kWindowY}, pitch_out, planes);
  x.fill(rng), w.fill(rng);
  auto up = [](std::int64_t v, std::int64_t to) { return (v + to - 1) / to; };
  const std::int64_t across = up(wide, 4), down = up(high, 8),
                     count = across * down * up(kImages, 2);
  const std::int64_t steps = up(kIn, 64) * kWindowX * kWindowY;
  const std::int64_t pixels = wide * high * kImages;
  std::vector<float> sums(static_cast<std::size_t>(parts * pixels * kOut * groups_of), NAN);
  const bool by_threads = parts > 1 || pieces;
  if (by_threads) spec.out = Out::partial;
  void* to = by_threads ? static_cast<void*>(sums.data()) : y.data.data();
  run(joined(spec), spec, x, w, to, by_threads ? std::ssize(sums) : std::ssize(y.data), &y,
      {{"blocks", 2},
       {"parts", parts},
       {"wide", wide},
       {"high", high},
       {"tiles_m", up(count, groups)},
       {"tiles_n", up(kOut, 64)},
       {"batches", groups_of},
       {"gap_x", gap_x},
       {"gap_y", gap_y},
       {"steps", steps},
       {"part", up(steps, parts)},
       {"m", by_threads ? pixels : count * 64},
       {"n", kOut},
       {"patches_w", across},
       {"patches_h", down},
       {"before_x", kBefore},
       {"before_y", kBefore},
       {"window", kWindowX},
       {"chunks", up(kIn, 64)},
       {"turned", turned ? kWindowX * kWindowY : 0},
       {"slab", pixels * kOut},
       {"to_image", wide * high * kOut},
       {"to_y", wide},
       {"to_x", 1},
       {"to_channel", wide * high}});
  std::int64_t wrong = 0;
  for (std::int64_t image = 0; image < kImages * groups_of; ++image)
    for (std::int64_t i = 0; i < high; ++i)
      for (std::int64_t j = 0; j < wide; ++j)
        for (std::int64_t o = 0; o < kOut; ++o) {
          const std::int64_t n = image / groups_of, group = image % groups_of;
          float want = 0;
          for (std::int64_t p = 0; p < kWindowX * kWindowY; ++p)
            for (std::int64_t c = 0; c < kIn; ++c) {
              const std::int64_t at = turned ? kWindowX * kWindowY - 1 - p : p;
              want += product_of(
                  pieces,
                  [&](std::int64_t plane) {
                    return x.read(c, j * step_x - kBefore + p % kWindowX * gap_x,
                                  i * step_y - kBefore + p / kWindowX * gap_y, n, group + plane);
                  },
                  [&](std::int64_t plane) {
                    return w.read(turned ? c : o, turned ? o : c, at % kWindowX, at / kWindowX,
                                  group + plane);
                  });
            }
          if (!by_threads) {
            wrong += widen(y.at(o, j, i, n, group)) != widen(narrow(want));
            continue;
          }
          float got = 0;
          for (std::int64_t p = 0; p < parts; ++p)
            got += sums[static_cast<std::size_t>(
                pieces ? (((p * kImages + n) * kOut + o) * high + i) * wide + j
                       : (((p * kImages * groups_of + image) * high + i) * wide + j) * kOut + o)];
          wrong += !(got == want);
        }
  return wrong;
}

TEST(ArrayWhole, convolutions_read_windows_in_place) {
  EXPECT_EQ(convolution_errors(false, 2, 1, 1), 0);
  EXPECT_EQ(convolution_errors(false, 1, 2, 1), 0);
  EXPECT_EQ(convolution_errors(true, 2, 1, 1), 0);
  EXPECT_EQ(convolution_errors(false, 2, 1, 1, 3), 0);
  EXPECT_EQ(convolution_errors(true, 1, 1, 1, 2), 0);
}

TEST(ArrayWhole, convolutions_with_gaps_and_groups) {
  EXPECT_EQ(convolution_errors(false, 2, 1, 1, 1, false, {2, 3}), 0);
  EXPECT_EQ(convolution_errors(false, 1, 2, 1, 2, false, {1, 3}), 0);
  EXPECT_EQ(convolution_errors(true, 2, 1, 1, 1, false, {3, 2}), 0);
  EXPECT_EQ(convolution_errors(false, 2, 1, 1, 1, true, {2, 2}), 0);
  EXPECT_EQ(convolution_errors(true, 1, 1, 1, 3, true, {3, 1}), 0);
  EXPECT_EQ(convolution_errors(false, 2, 1, 1, 1, false, {1, 1, 2}), 0);
  EXPECT_EQ(convolution_errors(true, 1, 1, 1, 1, false, {2, 1, 7}), 0);
  EXPECT_EQ(convolution_errors(false, 1, 2, 2, 3, false, {2, 3, 3}), 0);
  EXPECT_EQ(convolution_errors(true, 2, 1, 1, 2, false, {1, 1, 8}), 0);
}

TEST(ArrayWhole, convolutions_of_pieces) {
  EXPECT_EQ(convolution_errors(false, 2, 1, 1, 1, true), 0);
  EXPECT_EQ(convolution_errors(false, 1, 2, 2, 1, true), 0);
  EXPECT_EQ(convolution_errors(true, 2, 1, 2, 1, true), 0);
  EXPECT_EQ(convolution_errors(true, 1, 1, 1, 3, true), 0);
}

/// The adjoint of a convolution with steps: every remainder of places in one launch, some without
/// places of the window.
std::int64_t phase_errors(bool pieces, int groups, int step_x, int step_y, std::int64_t before,
                          const Gaps& gaps = {}) {
  constexpr std::int64_t kImages = 3, kHigh = 4, kWide = 5, kWindowX = 3, kWindowY = 2;
  const auto [gap_x, gap_y, groups_of] = gaps;
  const std::int64_t kIn = groups_of > 1 ? 13 : 72, kOut = groups_of > 1 ? 67 : 70,
                     pitch = groups_of > 1 ? 16 : 72;
  WarpSpecializedGemm spec;
  spec.type = dtypes::bfloat16, spec.mode = Mode::patches, spec.groups = groups;
  spec.columns = 64, spec.stages = 3, spec.b_along_n = false, spec.pieces = pieces;
  spec.out = pieces ? Out::partial : Out::stored;
  spec.patch[0] = 4, spec.patch[1] = 8, spec.patch[2] = 2;
  spec.phases[0] = step_x, spec.phases[1] = step_y, spec.grouped = groups_of > 1;
  std::mt19937 rng(17);
  // One place behind the last window.
  const std::int64_t wide = (kWide - 1) * step_x + (kWindowX - 1) * gap_x - 2 * before + 2,
                     high = (kHigh - 1) * step_y + (kWindowY - 1) * gap_y - 2 * before + 2;
  const std::int64_t planes = pieces ? device::kPiecePlanes : groups_of;
  Array g({kIn, kWide, kHigh, kImages}, pitch, planes),
      w({kIn, kOut, kWindowX, kWindowY}, pitch, planes);
  g.fill(rng), w.fill(rng);
  auto up = [](std::int64_t v, std::int64_t to) { return (v + to - 1) / to; };
  const std::int64_t across = up(up(wide, step_x), 4), down = up(up(high, step_y), 8),
                     count = across * down * up(kImages, 2),
                     size = kImages * groups_of * kOut * wide * high;
  const std::int64_t common_x = std::gcd(gap_x, step_x), common_y = std::gcd(gap_y, step_y);
  const auto inverse = [](std::int64_t gap, std::int64_t rest) {
    for (std::int64_t v = 1; v < rest; ++v)
      if (gap * v % rest == 1) return v;
    return std::int64_t{0};
  };
  std::vector<float> sums(static_cast<std::size_t>(size), NAN);
  std::vector<std::uint16_t> rounded(static_cast<std::size_t>(size), narrow(99));
  void* to = pieces ? static_cast<void*>(sums.data()) : rounded.data();
  run(joined(spec), spec, g, w, to, size, nullptr,
      {{"blocks", 2},
       {"batches", step_x * step_y * groups_of},
       {"each", step_x * step_y},
       {"gap_x", gap_x / common_x},
       {"gap_y", gap_y / common_y},
       {"common_x", common_x},
       {"common_y", common_y},
       {"inverse_x", inverse(gap_x / common_x, step_x / common_x)},
       {"inverse_y", inverse(gap_y / common_y, step_y / common_y)},
       {"to_group", wide * high * kOut},
       {"wide", wide},
       {"high", high},
       {"tiles_m", up(count, groups)},
       {"tiles_n", up(kOut, 64)},
       {"m", kImages * wide * high},
       {"n", kOut},
       {"patches_w", across},
       {"patches_h", down},
       {"before_x", before},
       {"before_y", before},
       {"window", kWindowX},
       {"chunks", up(kIn, 64)},
       {"turned", kWindowX * kWindowY},
       {"slab", 0},
       {"to_image", wide * high * kOut * groups_of},
       {"to_y", wide},
       {"to_x", 1},
       {"to_channel", wide * high}});
  std::vector<float> want(static_cast<std::size_t>(size));
  auto at = [&](std::int64_t n, std::int64_t o, std::int64_t y, std::int64_t x) {
    return static_cast<std::size_t>(((n * kOut + o) * high + y) * wide + x);
  };
  for (std::int64_t n = 0; n < kImages * groups_of; ++n)
    for (std::int64_t i = 0; i < kHigh; ++i)
      for (std::int64_t j = 0; j < kWide; ++j)
        for (std::int64_t p = 0; p < kWindowX * kWindowY; ++p) {
          const std::int64_t y = i * step_y + p / kWindowX * gap_y - before,
                             x = j * step_x + p % kWindowX * gap_x - before, image = n / groups_of,
                             group = n % groups_of;
          if (y < 0 || y >= high || x < 0 || x >= wide) continue;
          for (std::int64_t o = 0; o < kOut; ++o)
            for (std::int64_t c = 0; c < kIn; ++c)
              want[at(n, o, y, x)] += product_of(
                  pieces, [&](std::int64_t plane) { return g.read(c, j, i, image, group + plane); },
                  [&](std::int64_t plane) {
                    return w.read(c, o, p % kWindowX, p / kWindowX, group + plane);
                  });
        }
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    wrong += !(pieces ? sums[i] == want[i] : widen(rounded[i]) == widen(narrow(want[i])));
  return wrong;
}

TEST(ArrayWhole, adjoints_of_convolutions_with_steps_gaps_and_groups) {
  EXPECT_EQ(phase_errors(false, 1, 2, 3, 1, {3, 2}), 0);
  EXPECT_EQ(phase_errors(false, 2, 4, 3, 0, {2, 3}), 0);  // what a step and a gap have in common
  EXPECT_EQ(phase_errors(false, 1, 5, 2, 2, {3, 2}), 0);
  EXPECT_EQ(phase_errors(true, 2, 3, 2, 1, {2, 3}), 0);
  EXPECT_EQ(phase_errors(false, 1, 2, 2, 1, {1, 1, 3}), 0);
  EXPECT_EQ(phase_errors(false, 2, 3, 2, 0, {2, 2, 2}), 0);
}

TEST(ArrayWhole, adjoints_of_convolutions_with_steps) {
  for (const bool pieces : {false, true}) {
    EXPECT_EQ(phase_errors(pieces, 1, 2, 2, 1), 0);
    EXPECT_EQ(phase_errors(pieces, 2, 4, 1, 0), 0);  // remainder 3 has no place of the window
  }
}

void gradients_towards_weights(bool pieces, const Gaps& gaps = {}, bool whole = false) {
  constexpr std::int64_t kImages = 3, kHigh = 5, kWide = 6, kIn = 72, kOut = 72, kWindow = 3,
                         kBefore = 1;
  const auto [gap_x, gap_y, groups_of] = gaps;
  WarpSpecializedGemm spec;
  spec.type = dtypes::bfloat16, spec.mode = Mode::places,
  spec.out = whole ? Out::copied : Out::partial;
  spec.grouped = groups_of > 1;
  spec.a_along_m = true, spec.columns = 64, spec.stages = 2, spec.groups = 1, spec.pieces = pieces;
  spec.patch[0] = 8, spec.patch[1] = 4, spec.patch[2] = 2;
  std::mt19937 rng(13);
  const std::int64_t planes = pieces ? device::kPiecePlanes : groups_of;
  Array x({kIn, kWide, kHigh, kImages}, 72, planes), g({kOut, kWide, kHigh, kImages}, 72, planes);
  x.fill(rng), g.fill(rng);
  const std::int64_t across = 1, down = 2, steps = across * down * 2, parts = whole ? 1 : 2,
                     taps = 9;
  std::vector<float> sums(static_cast<std::size_t>(parts * groups_of * taps * kIn * kOut), NAN);
  Array to({kOut, taps, kIn, groups_of}, kOut);
  Array turned({kOut, kIn, taps, groups_of}, kOut);  // the same with its rows apart
  turned.strides = {kOut * taps, kOut, kOut * taps * kIn, 8};
  void* out = whole ? static_cast<void*>(to.data.data()) : sums.data();
  run(joined(spec), spec, x, g, out, whole ? std::ssize(to.data) : std::ssize(sums), &turned,
      {{"blocks", 4},
       {"tiles_m", 2},
       {"tiles_n", 2},
       {"batches", taps * groups_of},
       {"each", taps},
       {"gap_x", gap_x},
       {"gap_y", gap_y},
       {"parts", parts},
       {"steps", steps},
       {"part", steps / parts},
       {"m", kIn},
       {"n", kOut},
       {"patches_w", across},
       {"patches_h", down},
       {"before_x", kBefore},
       {"before_y", kBefore},
       {"window", kWindow}});
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < taps * groups_of; ++at)
    for (std::int64_t c = 0; c < kIn; ++c)
      for (std::int64_t o = 0; o < kOut; ++o) {
        const std::int64_t p = at % taps, group = at / taps;
        float want = 0, got = 0;
        for (std::int64_t n = 0; n < kImages; ++n)
          for (std::int64_t i = 0; i < kHigh; ++i)
            for (std::int64_t j = 0; j < kWide; ++j)
              want += product_of(
                  pieces,
                  [&](std::int64_t plane) {
                    return x.read(c, j - kBefore + p % kWindow * gap_x,
                                  i - kBefore + p / kWindow * gap_y, n, group + plane);
                  },
                  [&](std::int64_t plane) { return g.read(o, j, i, n, group + plane); });
        for (std::int64_t part = 0; part < parts && !whole; ++part)
          got += sums[static_cast<std::size_t>(
              (((part * groups_of + group) * kIn + c) * taps + p) * kOut + o)];
        if (whole) got = widen(to.at(o, p, c, group)), want = widen(narrow(want));
        wrong += !(got == want);
      }
  EXPECT_EQ(wrong, 0);
}

TEST(ArrayWhole, gradients_towards_weights) {
  for (const bool pieces : {false, true}) gradients_towards_weights(pieces);
  gradients_towards_weights(false, {}, true);
  gradients_towards_weights(false, {2, 3});
  gradients_towards_weights(true, {3, 1});
  gradients_towards_weights(false, {1, 1, 2});
  gradients_towards_weights(false, {2, 1, 3}, true);
}

/// The program without the `which`-th call of `op`; all of a Wait's kind for "wait".
class Without final : public ir::Rewriter {
 public:
  Without(std::string op, int which) : op_(std::move(op)), which_(which) {}

 protected:
  ir::Stmt rewrite_default(const ir::Stmt& s) override {
    if (const auto* w = ir::as<ir::WaitNode>(s); w && op_ == "wait" && which_-- == 0)
      return make_ref<const ir::WaitNode>(w->token, ir::make_int(9), "");
    const auto* e = ir::as<ir::EvaluateNode>(s);
    const auto* c = e ? ir::as<ir::CallNode>(e->value) : nullptr;
    if (c && c->op == op_ && which_-- == 0) return ir::seq({});
    return Rewriter::rewrite_default(s);
  }

 private:
  std::string op_;
  int which_;
};

TEST(ArrayWhole, every_wait_and_signal_is_needed) {
  const Layout layout{false, true, 2, 64, 2, Out::copied};
  struct Fault {
    const char* op;
    int which;
  };
  // The tokens of both roles, the multiplication in flight, staged tiles before and after.
  for (const Fault& f : {Fault{"token_wait", 0}, Fault{"token_wait", 1}, Fault{"token_signal", 0},
                         Fault{"token_signal", 1}, Fault{"token_expect", 0}, Fault{"wait", 0},
                         Fault{"wait", 1}, Fault{"wait", 2}, Fault{"meet", 1}}) {
    SCOPED_TRACE(cat(f.op, " ", f.which));
    std::int64_t wrong = 0;
    try {
      wrong = product_errors(layout, 200, 136, 330, 1, [&](const ir::PrimFunc& whole) {
        auto out = ir::edit(whole);
        out->body = Without(f.op, f.which).rewrite(whole->body);
        return ir::PrimFunc(out);
      });
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == "interpret.token" || e.code() == "interpret.race") << e.what();
      wrong = 1;
    }
    EXPECT_GT(wrong, 0);
  }
  EXPECT_EQ(product_errors(layout, 200, 136, 330, 1), 0);
}

TEST(ArrayWhole, every_form_keeps_its_registers_on_a_card) {
  int kernels = 0;
  for (int groups : {1, 2}) {
    for (int columns : {64, 256}) {
      for (int which = 0; which < 13; ++which) {
        WarpSpecializedGemm p;
        p.pieces = which == 5 || which == 6 || which == 8;
        // Sums of steps are in registers beside those of the tile.
        const int most = p.pieces ? std::min(columns, 192) : columns;
        p.type = which % 2 ? dtypes::float16 : dtypes::bfloat16;
        p.groups = groups, p.columns = most, p.stages = 4;
        p.a_along_m = which == 1 || which == 4 || which == 6,
        p.b_along_n = which != 2 && (which < 7 || which == 9 || which == 11);
        p.grouped = which >= 9;  // patches with copied and partial sums, phases, places
        if (which == 7 || which == 8 || which == 12) p.phases[0] = p.phases[1] = 2;
        p.out = which == 1 || which == 7 || which == 12  ? Out::stored
                : which < 4 || which == 9 || which == 11 ? Out::copied
                                                         : Out::partial;
        if (p.pieces) p.type = dtypes::bfloat16;
        if (which >= 2) {
          p.mode = which == 4 || which == 6 || which == 11 ? Mode::places : Mode::patches;
          p.patch[0] = p.patch[1] = 8, p.step[0] = 2;
        }
        BuildOptions options;
        options.observer.verify = true;
        Ref<runtime::Module> built;
        try {
          built = build(ir::make_module(device::warp_specialized_kernel(p)), "cuda:arch=sm_90",
                        options);
        } catch (const Error& e) {
          if (e.code() == "cuda.nvrtc.absent") GTEST_SKIP() << e.what();
          throw;
        }
        const runtime::Binary& binary = built->binary();
        EXPECT_EQ(binary.metadata.at("arch").as_string(), "sm_90a");
        EXPECT_LE(binary.kernels[0].scratch_bytes, 232448);
        EXPECT_NE(binary.source.find("wgmma.mma_async"), std::string::npos);
        EXPECT_NE(binary.source.find(cat("cp.async.bulk.tensor.", p.axes(), "d")),
                  std::string::npos);
        if (const Json* log = binary.metadata.find("log")) {
          for (const char* bad : {"C7508", "C7515", "C7517", "C7519", "warning"})
            EXPECT_EQ(log->as_string().find(bad), std::string::npos) << log->as_string();
        }
        ++kernels;
      }
    }
  }
  EXPECT_EQ(kernels, 52);
}

}  // namespace
}  // namespace weft
