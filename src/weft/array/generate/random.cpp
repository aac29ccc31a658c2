// SPDX-License-Identifier: Apache-2.0
// Random numbers: Philox 4x32-10 (Salmon and others, SC 2011) of counters first, first + 1, ..., a
// lane each, and what is made of the four words of a counter.

#include "weft/array/generate/builder.h"
#include "weft/array/generate/kernels.h"

namespace weft::generate {

namespace {

using Words = std::vector<Expr>;

Expr word(std::uint32_t v) { return ir::make_const(static_cast<std::int64_t>(v), dtypes::uint32); }
Expr exclusive(const Expr& a, const Expr& b) { return ir::call("bitwise_xor", {a, b}); }
Expr shifted(const Expr& x, int by) {
  return ir::call("shift_right", {x, ir::make_const(by, x->dtype)});
}

Stmt rounds(const Words& c, const Expr& k0, const Expr& k1, int round,
            const std::function<Stmt(const Words&)>& then) {
  if (round == 10) return then(c);
  const auto steps = static_cast<std::uint32_t>(round);
  const Expr m0 = word(0xD2511F53), m1 = word(0xCD9E8D57);
  const Words next = {
      exclusive(exclusive(ir::call("mulhi", {m1, c[2]}), c[1]), k0 + word(steps * 0x9E3779B9)),
      m1 * c[2],
      exclusive(exclusive(ir::call("mulhi", {m0, c[0]}), c[3]), k1 + word(steps * 0xBB67AE85)),
      m0 * c[0]};
  return with_values(next, [&](const Words& w) { return rounds(w, k0, k1, round + 1, then); });
}

Expr real(double v) { return ir::make_const(v, dtypes::float32); }

/// 24 bits of a word as a number in [0, 1).
Expr unit(const Expr& w) { return ir::cast(dtypes::float32, shifted(w, 8)) * real(0x1p-24); }

/// 53 bits of two.
Expr unit(const Expr& low, const Expr& high) {
  auto wide = [](const Expr& x) { return ir::cast(dtypes::float64, x); };
  auto number64 = [](double v) { return ir::make_const(v, dtypes::float64); };
  return (wide(high) * number64(0x1p21) + wide(shifted(low, 11))) * number64(0x1p-53);
}

/// Two numbers with the normal distribution from two words (Box and Muller): a radius from one, an
/// angle from the other, whose quarter turns are taken off exactly. The polynomials are Taylor's of
/// sine and cosine in quarter turns r, -0.5 <= r <= 0.5; what they leave out is below 4e-9.
Stmt box_muller(const Expr& a, const Expr& b,
                const std::function<Stmt(const Expr&, const Expr&)>& then) {
  const Expr radius = ir::call("sqrt", {real(-2) * ir::call("log", {real(1) - unit(a)})});
  const Expr turns = unit(b) * real(4);
  return with_values({radius, turns, ir::call("floor", {turns + real(0.5)})}, [&](const Words& v) {
    return with_values({v[1] - v[2], ir::cast(dtypes::int32, v[2])}, [&](const Words& q) {
      return with_values({q[0] * q[0]}, [&](const Words& s) {
        auto series = [&](std::initializer_list<double> terms) {
          Expr sum;
          for (double t : terms) sum = sum ? sum * s[0] + real(t) : real(t);
          return sum;
        };
        // (pi / 2)^k / k!, the highest first.
        const Expr sine =
            series({1.6044118478735982e-4, -4.6817541353186883e-3, 7.9692626246167046e-2,
                    -6.4596409750624625e-1, 1.5707963267948966}) *
            q[0];
        const Expr cosine =
            series({-2.5202042373060605e-5, 9.1926027483942659e-4, -2.0863480763352957e-2,
                    2.5366950790104802e-1, -1.2337005501361698, 1.0});
        return with_values({sine, cosine}, [&](const Words& t) {
          auto bit = [&](const Expr& x, int of) {
            return ir::ne(ir::call("bitwise_and", {x, ir::make_const(of, dtypes::int32)}),
                          ir::make_const(0, dtypes::int32));
          };
          auto signed_by = [&](const Expr& x, const Expr& quarter) {
            return ir::select(bit(quarter, 2), real(0) - x, x);
          };
          const Expr odd = bit(q[1], 1), one = ir::make_const(1, dtypes::int32);
          return then(v[0] * signed_by(ir::select(odd, t[0], t[1]), q[1] + one),
                      v[0] * signed_by(ir::select(odd, t[1], t[0]), q[1]));
        });
      });
    });
  });
}

ir::PrimFunc function(RandomKernel kind) {
  const bool wide = kind == RandomKernel::uniform64;
  const std::int64_t each = wide ? 2 : 4;
  const DType type = kind == RandomKernel::bits ? dtypes::uint32
                     : wide                     ? dtypes::float64
                                                : dtypes::float32;
  Program p;
  const Expr seed = p.scalar("seed", dtypes::uint64), first = p.scalar("first", dtypes::uint64);
  ir::Buffer out = p.buffer("out", type, Expr(p.n) * number(each));
  auto narrow = [](const Expr& x) { return ir::cast(dtypes::uint32, x); };
  auto upper = [&](const Expr& x) { return narrow(shifted(x, 32)); };
  return p.finish(with_values({narrow(seed), upper(seed)}, [&](const Words& key) {
    return vectors("g", p.n, [&](const Expr& g) {
      return with_values({first + ir::cast(dtypes::uint64, g)}, [&](const Words& counter) {
        return with_values({narrow(counter[0]), upper(counter[0])}, [&](const Words& c) {
          return rounds({c[0], c[1], word(0), word(0)}, key[0], key[1], 0, [&](const Words& w) {
            auto put = [&](int k, const Expr& value) {
              return ir::store(out, value, {g * number(each) + number(k)});
            };
            if (kind == RandomKernel::normal) {
              auto pair = [&](int k) {
                return box_muller(w[static_cast<std::size_t>(k)],
                                  w[static_cast<std::size_t>(k + 1)],
                                  [&](const Expr& x, const Expr& y) {
                                    return ir::seq({put(k, x), put(k + 1, y)});
                                  });
              };
              return ir::seq({pair(0), pair(2)});
            }
            if (wide) return ir::seq({put(0, unit(w[0], w[1])), put(1, unit(w[2], w[3]))});
            std::vector<Stmt> all;
            for (std::size_t k = 0; k < 4; ++k)
              all.push_back(
                  put(static_cast<int>(k), kind == RandomKernel::bits ? w[k] : unit(w[k])));
            return ir::seq(std::move(all));
          });
        });
      });
    });
  }));
}

}  // namespace

std::vector<Kernel> random_kernels() {
  static constexpr const char* names[] = {"bits", "uniform", "normal", "uniform64"};
  std::vector<Kernel> out;
  for (int k = 0; k < kRandomKernels; ++k)
    out.push_back({entry(KernelEntry::random, k, Elem::float32), cat("w_random_", names[k]),
                   function(static_cast<RandomKernel>(k))});
  return out;
}

}  // namespace weft::generate
