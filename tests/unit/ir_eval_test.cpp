// SPDX-License-Identifier: Apache-2.0
// The scalar meaning of operations, against integers of 128 bits and against numbers computed
// elsewhere.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "weft/ir/eval.h"

namespace weft::ir {
namespace {

__extension__ using Wide = __int128;
__extension__ using Bits = unsigned __int128;
using K = ExprKind;
using I = IntrinsicId;

const std::vector<DType> kIntegers = {dtypes::int8,   dtypes::int16, dtypes::int32,
                                      dtypes::int64,  dtypes::uint8, dtypes::uint16,
                                      dtypes::uint32, dtypes::uint64};

DType float_of(int bits) {
  return bits == 64 ? dtypes::float64 : bits == 32 ? dtypes::float32 : dtypes::float16;
}

Wide two_to(int n) { return static_cast<Wide>(1) << n; }
Wide lowest(DType t) { return t.is_int() ? -two_to(t.bits - 1) : 0; }
Wide highest(DType t) { return two_to(t.is_int() ? t.bits - 1 : t.bits) - 1; }

/// The value of type t that equals v modulo 2^bits.
Wide wrapped(Wide v, DType t) {
  Wide m = two_to(t.bits), r = v % m;
  if (r < 0) r += m;
  return r > highest(t) ? r - m : r;
}

/// What a carried value means.
Wide value_of(std::int64_t carried, DType t) {
  return t.is_uint() ? static_cast<Wide>(static_cast<std::uint64_t>(carried)) : carried;
}

std::vector<std::int64_t> values(DType t) {
  std::vector<Wide> out = {lowest(t), lowest(t) + 1, highest(t), highest(t) - 1, 0, 1, 2, 3, 7};
  if (t.is_int()) out.insert(out.end(), {-1, -2, -3, -7});
  std::mt19937_64 random(static_cast<unsigned>(t.bits));
  for (int k = 0; k < 12; ++k) out.push_back(wrapped(static_cast<Wide>(random()), t));
  std::vector<std::int64_t> carried;
  for (Wide v : out) carried.push_back(static_cast<std::int64_t>(v));
  return carried;
}

Wide floored(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

Wide exact(K kind, Wide a, Wide b) {
  switch (kind) {
    case K::add: return a + b;
    case K::sub: return a - b;
    case K::mul: return a * b;
    case K::div: return a / b;
    case K::mod: return a % b;
    case K::floordiv: return floored(a, b);
    case K::floormod: return a - floored(a, b) * b;
    case K::min: return b < a ? b : a;
    case K::max: return b > a ? b : a;
    case K::eq: return a == b;
    case K::ne: return a != b;
    case K::lt: return a < b;
    case K::le: return a <= b;
    case K::gt: return a > b;
    case K::ge: return a >= b;
    case K::and_: return a != 0 && b != 0;
    default: return a != 0 || b != 0;
  }
}

TEST(IrEval, IntegersOfEveryTypeAndPairOfExtremes) {
  for (DType t : kIntegers) {
    for (K kind : {K::add, K::sub, K::mul, K::div, K::mod, K::floordiv, K::floormod, K::min, K::max,
                   K::eq, K::ne, K::lt, K::le, K::gt, K::ge, K::and_, K::or_}) {
      bool divides = kind == K::div || kind == K::mod || kind == K::floordiv || kind == K::floormod;
      for (std::int64_t a : values(t)) {
        for (std::int64_t b : values(t)) {
          std::int64_t out = 77;
          bool done = eval_int_binary(kind, t, a, b, &out);
          ASSERT_EQ(done, !(divides && b == 0));
          if (!done) continue;
          Wide wanted = wrapped(exact(kind, value_of(a, t), value_of(b, t)), t);
          ASSERT_TRUE(value_of(out, t) == wanted)
              << "kind " << static_cast<int>(kind) << " of " << a << " and " << b << ", " << t.bits
              << " bits: " << out;
        }
      }
    }
  }
  for (std::int64_t a : {0, 1})
    for (std::int64_t b : {0, 1})
      for (K kind : {K::add, K::mul, K::min, K::max, K::lt, K::ge, K::and_, K::or_}) {
        std::int64_t out = 77;
        ASSERT_TRUE(eval_int_binary(kind, dtypes::boolean, a, b, &out));
        EXPECT_EQ(out,
                  kind == K::add ? (a + b != 0) : static_cast<std::int64_t>(exact(kind, a, b)));
      }
}

TEST(IrEval, UnaryAndBitOperationsOfIntegers) {
  for (DType t : kIntegers) {
    auto call = [&](I id, std::int64_t a, std::int64_t b = 0) {
      Lane args[2], out;
      args[0].i = a, args[1].i = b;
      EXPECT_TRUE(eval_intrinsic(id, t, args, &out));
      return value_of(out.i, t);
    };
    for (std::int64_t a : values(t)) {
      Wide x = value_of(a, t), bits = x < 0 ? x + two_to(t.bits) : x;
      EXPECT_TRUE(call(I::abs_, a) == wrapped(x < 0 ? -x : x, t));
      EXPECT_TRUE(call(I::bitwise_not_, a) == wrapped(-x - 1, t));
      EXPECT_TRUE(call(I::likely_, a) == x);
      int ones = 0, leading = t.bits;
      for (int k = 0; k < t.bits; ++k)
        if (bits >> k & 1) ++ones, leading = t.bits - 1 - k;
      EXPECT_TRUE(call(I::popcount_, a) == ones);
      EXPECT_TRUE(call(I::clz_, a) == leading) << a << " of " << t.bits;
      for (int by : std::vector<int>{0, 1, t.bits - 1, t.bits, t.bits + 1, 100}) {
        Wide left = by >= t.bits ? 0 : wrapped(bits * two_to(by), t);
        Wide right = by >= t.bits ? (x < 0 ? -1 : 0) : floored(x, two_to(by));
        EXPECT_TRUE(call(I::shift_left_, a, by) == left) << a << " by " << by;
        EXPECT_TRUE(call(I::shift_right_, a, by) == right) << a << " by " << by;
      }
      for (std::int64_t b : values(t)) {
        Wide y = value_of(b, t);
        // A product of two numbers of 64 bits without sign needs all 128.
        auto high = static_cast<Bits>(x) * static_cast<Bits>(y);
        Wide wanted =
            t.is_uint() ? static_cast<Wide>(high >> t.bits) : floored(x * y, two_to(t.bits));
        EXPECT_TRUE(call(I::mulhi_, a, b) == wanted) << a << " times " << b << " of " << t.bits;
        EXPECT_TRUE(call(I::bitwise_and_, a, b) == value_of(a & b, t));
        EXPECT_TRUE(call(I::bitwise_or_, a, b) == value_of(a | b, t));
        EXPECT_TRUE(call(I::bitwise_xor_, a, b) == value_of(a ^ b, t));
        EXPECT_TRUE(call(I::atomic_add_, a, b) == wrapped(x + y, t));
      }
    }
  }
}

TEST(IrEval, CastsBetweenIntegersAndFloats) {
  for (DType from : kIntegers) {
    for (std::int64_t a : values(from)) {
      Lane in;
      in.i = a;
      Wide x = value_of(a, from);
      for (DType to : kIntegers)
        EXPECT_TRUE(value_of(eval_cast(in, from, to).i, to) == wrapped(x, to));
      EXPECT_EQ(eval_cast(in, from, dtypes::boolean).i, x != 0);
      EXPECT_EQ(eval_cast(in, from, dtypes::float64).f, static_cast<double>(x));
      EXPECT_EQ(eval_cast(in, from, dtypes::float32).f, static_cast<float>(x));
    }
  }
  const double inf = std::numeric_limits<double>::infinity();
  for (DType to : kIntegers) {
    for (double v :
         {0.0,    -0.0,    0.99,   -0.99, 1.5,          -1.5,         127.0,         128.0,
          -128.0, -129.0,  255.5,  256.0, 2147483647.0, 2147483648.0, -2147483649.0, 4294967296.0,
          9.3e18, -9.3e18, 1.9e19, inf,   -inf,         std::nan("")}) {
      Lane in;
      in.f = v;
      // A signed type takes it, at most its ends; the type itself has what is left of that.
      const DType carrier = to.bits < 32           ? dtypes::int32
                            : to == dtypes::uint32 ? dtypes::int64
                                                   : to;
      const double whole = std::trunc(v);
      const Wide carried = std::isnan(v)                                   ? 0
                           : whole <= static_cast<double>(lowest(carrier)) ? lowest(carrier)
                           : whole >= std::ldexp(1, carrier.bits - carrier.is_int())
                               ? highest(carrier)
                               : static_cast<Wide>(whole);
      const Wide wanted = wrapped(carried, to);
      EXPECT_TRUE(value_of(eval_cast(in, dtypes::float64, to).i, to) == wanted)
          << v << " to " << to.bits;
      EXPECT_EQ(eval_cast(in, dtypes::float64, dtypes::boolean).i, v != 0);
    }
  }
}

TEST(IrEval, BitsOfAnotherType) {
  for (float f : {0.f, -0.f, 1.f, -2.5f, 1e-42f, std::numeric_limits<float>::infinity()}) {
    Lane in, wide;
    in.f = f, wide.f = f;
    std::uint32_t bits;
    std::uint64_t bits64;
    double d = f;
    std::memcpy(&bits, &f, 4), std::memcpy(&bits64, &d, 8);
    Lane u = eval_reinterpret(in, dtypes::float32, dtypes::uint32);
    Lane s = eval_reinterpret(in, dtypes::float32, dtypes::int32);
    EXPECT_EQ(static_cast<std::uint64_t>(u.i), bits);
    EXPECT_EQ(s.i, static_cast<std::int32_t>(bits));
    EXPECT_EQ(std::signbit(eval_reinterpret(u, dtypes::uint32, dtypes::float32).f),
              std::signbit(f));
    EXPECT_EQ(eval_reinterpret(s, dtypes::int32, dtypes::float32).f, f);
    Lane w = eval_reinterpret(wide, dtypes::float64, dtypes::int64);
    EXPECT_EQ(static_cast<std::uint64_t>(w.i), bits64);
    EXPECT_EQ(eval_reinterpret(w, dtypes::int64, dtypes::float64).f, d);
  }
  Lane half;
  half.f = -1.5;
  EXPECT_EQ(eval_reinterpret(half, dtypes::float16, dtypes::uint16).i, 0xBE00);
  EXPECT_EQ(eval_reinterpret(half, dtypes::float16, dtypes::int16).i, 0xBE00 - 0x10000);
}

TEST(IrEval, ArithmeticOfFloats) {
  DType t = dtypes::float64;
  struct Row {
    K kind;
    double a, b, wanted;
  };
  for (Row r : std::initializer_list<Row>{{K::add, 1.5, 2, 3.5},
                                          {K::sub, 1.5, 2, -0.5},
                                          {K::mul, 1.5, -2, -3},
                                          {K::div, 3, -2, -1.5},
                                          {K::mod, -7.5, 2, -1.5},
                                          {K::floordiv, -7.5, 2, -4},
                                          {K::floormod, -7.5, 2, 0.5},
                                          {K::min, 1, 2, 1},
                                          {K::min, 2, 1, 1},
                                          {K::max, 1, 2, 2},
                                          {K::max, 2, 1, 2}})
    EXPECT_EQ(eval_float_binary(r.kind, t, r.a, r.b), r.wanted) << r.a << " " << r.b;
  const double nan = std::nan("");
  for (K kind : {K::min, K::max}) {
    EXPECT_TRUE(std::isnan(eval_float_binary(kind, t, nan, 1)));
    EXPECT_TRUE(std::isnan(eval_float_binary(kind, t, 1, nan)));
  }
  EXPECT_EQ(eval_float_binary(K::add, dtypes::float32, 1, 1e-9), 1);
  EXPECT_EQ(eval_float_binary(K::add, dtypes::float16, 2048, 1), 2048);
  EXPECT_EQ(eval_float_binary(K::mul, dtypes::float16, 256, 256), HUGE_VAL);
  for (auto [a, b] :
       {std::pair{1.0, 2.0}, {2.0, 1.0}, {1.0, 1.0}, {0.0, -0.0}, {nan, 1.0}, {1.0, nan}}) {
    EXPECT_EQ(eval_float_compare(K::eq, a, b), a == b);
    EXPECT_EQ(eval_float_compare(K::ne, a, b), a != b);
    EXPECT_EQ(eval_float_compare(K::lt, a, b), a < b);
    EXPECT_EQ(eval_float_compare(K::le, a, b), a <= b);
    EXPECT_EQ(eval_float_compare(K::gt, a, b), a > b);
    EXPECT_EQ(eval_float_compare(K::ge, a, b), a >= b);
  }
}

struct FloatRow {
  I id;
  std::vector<double> args;
  double wanted;
};

const std::vector<FloatRow> kFloats = {
    {I::exp_, {0.5}, 1.6487212707001282},
    {I::exp2_, {0.5}, 1.4142135623730951},
    {I::exp2_flush_, {3.0}, 8.0},
    {I::expm1_, {0.25}, 0.2840254166877415},
    {I::log_, {3.0}, 1.0986122886681098},
    {I::log2_, {3.0}, 1.584962500721156},
    {I::log10_, {3.0}, 0.47712125471966244},
    {I::log1p_, {0.25}, 0.22314355131420976},
    {I::sqrt_, {2.25}, 1.5},
    {I::rsqrt_, {4.0}, 0.5},
    {I::sin_, {0.5}, 0.479425538604203},
    {I::cos_, {0.5}, 0.8775825618903728},
    {I::tan_, {0.5}, 0.5463024898437905},
    {I::asin_, {0.5}, 0.5235987755982989},
    {I::acos_, {0.5}, 1.0471975511965979},
    {I::atan_, {0.5}, 0.4636476090008061},
    {I::sinh_, {0.5}, 0.5210953054937474},
    {I::cosh_, {0.5}, 1.1276259652063807},
    {I::tanh_, {0.5}, 0.46211715726000974},
    {I::asinh_, {0.5}, 0.48121182505960347},
    {I::atanh_, {0.5}, 0.5493061443340548},
    {I::erf_, {0.5}, 0.5204998778130465},
    {I::acosh_, {1.5}, 0.9624236501192069},
    {I::floor_, {-1.5}, -2.0},
    {I::floor_, {1.5}, 1.0},
    {I::ceil_, {-1.5}, -1.0},
    {I::ceil_, {1.5}, 2.0},
    {I::trunc_, {-1.5}, -1.0},
    {I::trunc_, {1.5}, 1.0},
    {I::round_, {-1.5}, -2.0},
    {I::round_, {2.5}, 2.0},
    {I::round_, {3.5}, 4.0},
    {I::round_, {0.75}, 1.0},
    {I::sigmoid_, {0.5}, 0.6224593312018546},
    {I::abs_, {-1.5}, 1.5},
    {I::pow_, {2.0, 3.0}, 8.0},
    {I::pow_, {2.0, -3.0}, 0.125},
    {I::atan2_, {1.0, -2.0}, 2.677945044588987},
    {I::fmod_, {-5.5, 2.0}, -1.5},
    {I::hypot_, {3.0, 4.0}, 5.0},
    {I::copysign_, {3.0, -0.0}, -3.0},
    {I::copysign_, {-3.0, 1.0}, 3.0},
    {I::nextafter_, {1.0, 2.0}, 1.0000000000000002},
    {I::nextafter_, {1.0, 0.0}, 0.9999999999999999},
    {I::fma_, {2.0, 3.0, 1.0}, 7.0},
    {I::likely_, {1.5}, 1.5},
    {I::nontemporal_, {-2.5}, -2.5},
    {I::atomic_add_, {1.5, 2.0}, 3.5},
};

TEST(IrEval, FunctionsOfFloats) {
  for (const FloatRow& row : kFloats) {
    for (int bits : {64, 32, 16}) {
      if (row.id == I::nextafter_ && bits != 64) continue;
      std::vector<Lane> args(3);
      for (std::size_t k = 0; k < row.args.size(); ++k) args[k].f = row.args[k];
      Lane out;
      ASSERT_TRUE(eval_intrinsic(row.id, float_of(bits), {args.data(), row.args.size()}, &out));
      double close = bits == 64 ? 1e-15 : bits == 32 ? 1.2e-7 : 1e-3;
      EXPECT_NEAR(out.f, row.wanted, close * std::abs(row.wanted))
          << static_cast<int>(row.id) << " of " << row.args[0] << ", " << bits << " bits";
      EXPECT_EQ(out.f, round_float(out.f, float_of(bits)));
    }
  }
}

TEST(IrEval, NextNumberOfEveryWidth) {
  const double least = std::ldexp(1, -24), inf = std::numeric_limits<double>::infinity();
  auto next = [](int bits, double x, double y) {
    Lane args[2], out;
    args[0].f = x, args[1].f = y;
    EXPECT_TRUE(eval_intrinsic(I::nextafter_, float_of(bits), args, &out));
    return out.f;
  };
  EXPECT_EQ(next(32, 1, 2), std::nextafter(1.f, 2.f));
  EXPECT_EQ(next(16, 1, 2), 1 + std::ldexp(1, -10));
  EXPECT_EQ(next(16, 1, 0), 1 - std::ldexp(1, -11));
  EXPECT_EQ(next(16, -1, 0), -1 + std::ldexp(1, -11));
  EXPECT_EQ(next(16, -1, -2), -1 - std::ldexp(1, -10));
  EXPECT_EQ(next(16, 0, 1), least);
  EXPECT_EQ(next(16, 0, -1), -least);
  EXPECT_EQ(next(16, 65504, inf), inf);
  EXPECT_EQ(next(16, 3, 3), 3);
  EXPECT_TRUE(std::isnan(next(16, std::nan(""), 1)) && std::isnan(next(16, 1, std::nan(""))));
}

TEST(IrEval, QuestionsAboutFloats) {
  const double inf = std::numeric_limits<double>::infinity();
  for (double v : {0.0, -0.0, 1.0, -1.0, inf, -inf, std::nan("")}) {
    auto ask = [&](I id) {
      Lane in, out;
      in.f = v;
      EXPECT_TRUE(eval_intrinsic(id, dtypes::float64, {&in, 1}, &out));
      return out.i;
    };
    EXPECT_EQ(ask(I::isnan_), v != v);
    EXPECT_EQ(ask(I::isinf_), v == inf || v == -inf);
    EXPECT_EQ(ask(I::isfinite_), v - v == 0);
    EXPECT_EQ(ask(I::signbit_), std::signbit(v));
  }
}

}  // namespace
}  // namespace weft::ir
