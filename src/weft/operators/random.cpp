// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/random_words.h"

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/share.h"

namespace weft::operators {

namespace {

using ir::Expr;
using ir::Stmt;
using ir::with_values;
using Words = ir::Exprs;

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
  // 21 bits: the conversion of signed numbers, which processors have.
  const Expr lowest = wide(ir::cast(dtypes::int32, shifted(low, 11)));
  return (wide(high) * number64(0x1p21) + lowest) * number64(0x1p-53);
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

/// As above in float64, by the functions of the device.
Stmt box_muller64(const Expr& u, const Expr& v,
                  const std::function<Stmt(const Expr&, const Expr&)>& then) {
  auto wide = [](double x) { return ir::make_const(x, dtypes::float64); };
  return with_values(
      {ir::call("sqrt", {wide(-2) * ir::call("log", {wide(1) - u})}), v * wide(6.283185307179586)},
      [&](const Words& p) {
        return then(p[0] * ir::call("cos", {p[1]}), p[0] * ir::call("sin", {p[1]}));
      });
}

}  // namespace

Stmt random_of_words(RandomNumbers kind, const ir::Exprs& w,
                     const std::function<Stmt(const ir::Exprs&)>& then) {
  switch (kind) {
    case RandomNumbers::bits: return then(w);
    case RandomNumbers::uniform: return then({unit(w[0])});
    case RandomNumbers::uniform64: return then({unit(w[0], w[1])});
    case RandomNumbers::normal64:
      return with_values({unit(w[0], w[1]), unit(w[2], w[3])}, [&](const Words& u) {
        return box_muller64(u[0], u[1], [&](const Expr& x, const Expr& y) { return then({x, y}); });
      });
    default:
      return box_muller(w[0], w[1], [&](const Expr& a, const Expr& b) {
        return with_values({a, b}, then);
      });
  }
}

Stmt random_values(RandomNumbers kind, const Expr& seed, const Expr& counter,
                   const std::function<Stmt(const ir::Exprs&)>& then) {
  auto narrow = [](const Expr& x) { return ir::cast(dtypes::uint32, x); };
  auto upper = [&](const Expr& x) { return narrow(shifted(x, 32)); };
  const auto width = static_cast<std::ptrdiff_t>(random_words(kind));
  std::function<Stmt(const Words&, const Words&)> made = [&](const Words& words,
                                                             const Words& numbers) {
    if (words.empty()) return then(numbers);
    const Words rest(words.begin() + width, words.end());
    return random_of_words(kind, Words(words.begin(), words.begin() + width),
                           [&](const Words& values) {
                             Words all = numbers;
                             all.insert(all.end(), values.begin(), values.end());
                             return made(rest, all);
                           });
  };
  return with_values({narrow(seed), upper(seed), narrow(counter), upper(counter)},
                     [&](const Words& k) {
                       return rounds({k[2], k[3], word(0), word(0)}, k[0], k[1], 0,
                                     [&](const Words& w) { return made(w, {}); });
                     });
}

DType random_type(RandomNumbers kind) {
  switch (kind) {
    case RandomNumbers::bits: return dtypes::uint32;
    case RandomNumbers::uniform:
    case RandomNumbers::normal: return dtypes::float32;
    default: return dtypes::float64;
  }
}

ir::PrimFunc random_program(RandomNumbers kind) {
  const DType type = random_type(kind);
  const std::int64_t each = random_each(kind);
  const ir::Var n = ir::make_var("n_out"), seed = ir::make_var("seed", dtypes::uint64),
                first = ir::make_var("first", dtypes::uint64), count = ir::make_var("count"),
                blocks = ir::make_var("blocks"), b = ir::make_var("b"), t = ir::make_var("t");
  auto buffer = ir::edit(ir::make_buffer("out", type, {n}));
  buffer->align = type.bytes();
  const ir::Buffer out = buffer;
  const Expr threads = ir::make_int(kRandomThreads), width = ir::make_int(each);
  const ir::Var g = ir::make_var("g");
  auto put = [&](const ir::Exprs& values) {
    return ir::with_values(values, [&](const ir::Exprs& v) {
      std::vector<Stmt> whole, part;
      for (std::size_t k = 0; k < v.size(); ++k) {
        const Expr at = Expr(g) * width + ir::make_int(static_cast<std::int64_t>(k));
        whole.push_back(ir::store(out, v[k], {at}));
        part.push_back(ir::if_then(ir::lt(at, count), ir::store(out, v[k], {at})));
      }
      return ir::if_then(ir::le(Expr(g) * width + width, count), ir::seq(std::move(whole)),
                         ir::seq(std::move(part)));
    });
  };
  Stmt body = random_values(kind, seed, Expr(first) + ir::cast(dtypes::uint64, g), put);
  body = ir::let_stmt(g, Expr(b) * threads + t, ir::if_then(ir::lt(Expr(g) * width, count), body));
  body = ir::make_for(t, ir::make_int(0), threads, body, ir::ForKind::bound, "threadIdx.x");
  body = ir::make_for(b, ir::make_int(0), blocks, body, ir::ForKind::bound, "blockIdx.x");
  return ir::make_func("main",
                       {ir::buffer_param(out),
                        {seed, nullptr},
                        {first, nullptr},
                        {count, nullptr},
                        {blocks, nullptr}},
                       ir::root_block(body));
}

}  // namespace weft::operators
