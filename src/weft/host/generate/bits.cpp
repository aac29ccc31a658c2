// SPDX-License-Identifier: Apache-2.0
// Bits of bytes and bytes of bits, eight at a time in a word; bits that are set; the parts of
// floats.

#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"

namespace weft::generate {

namespace {

constexpr std::int64_t kOnes = 0x0101010101010101;

Expr word(std::uint64_t v, DType t) { return ir::make_int(static_cast<std::int64_t>(v), t); }
Expr right(const Expr& x, std::int64_t by) {
  return ir::call("shift_right", {x, ir::make_int(by, x->dtype)});
}
Expr left(const Expr& x, std::int64_t by) {
  return ir::call("shift_left", {x, ir::make_int(by, x->dtype)});
}
Expr both(const Expr& x, const Expr& y) { return ir::call("bitwise_and", {x, y}); }
Expr either(const Expr& x, const Expr& y) { return ir::call("bitwise_or", {x, y}); }

/// out[i] = value(a0[i]), the value made in steps.
using WordSteps = std::vector<std::function<Expr(const Expr&)>>;
ir::PrimFunc in_order(DType from, DType to, const WordSteps& steps) {
  Program p;
  ir::Buffer in = p.buffer("a0", from), out = p.buffer("out", to);
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    const std::function<Stmt(std::size_t, const Expr&)> next = [&](std::size_t k, const Expr& x) {
      if (k == steps.size()) return Stmt(ir::store(out, x, {i}));
      return with_value(cat("x", k), x, [&](const Expr& v) { return next(k + 1, steps[k](v)); });
    };
    return next(0, ir::load(in, {i}));
  }));
}

/// A byte of each word of eight bytes that are 0 or 1: a product brings all of them to its highest.
ir::PrimFunc pack_function(bool big) {
  const std::uint64_t moved = big ? 0x8040201008040201 : 0x0102040810204080;
  return in_order(dtypes::uint64, dtypes::uint8, {[&](const Expr& x) {
                    const Expr all = x * word(moved, dtypes::uint64);
                    return ir::cast(dtypes::uint8, right(all, 56));
                  }});
}

/// A word of eight bytes that are 0 or 1 of each byte. The byte is repeated by shifts: processors
/// have no products of vectors of 64 bits.
ir::PrimFunc unpack_function(bool big) {
  const std::uint64_t bits = big ? 0x0102040810204080 : 0x8040201008040201;
  const auto repeat = [](std::int64_t by) {
    return [by](const Expr& x) { return either(x, left(x, by)); };
  };
  const DType t = dtypes::uint64;
  return in_order(dtypes::uint8, t,
                  {[&](const Expr& x) { return ir::cast(t, x); }, repeat(8), repeat(16), repeat(32),
                   [&](const Expr& x) {
                     const Expr one = both(x, word(bits, t)) + word(0x7f * kOnes, t);
                     return both(right(one, 7), word(kOnes, t));
                   }});
}

/// Bits that are set in pairs, in fours, in bytes, whose sum is the element's. Bytes are counted
/// eight to a word.
ir::PrimFunc count_bits_function(Elem e) {
  const DType t = e == Elem::uint8 ? dtypes::uint64 : dtype_of(e);
  const auto mask = [t](std::uint64_t byte) {
    const std::uint64_t all = byte * kOnes;
    return word(t.bits == 64 ? all : all & ((std::uint64_t{1} << t.bits) - 1), t);
  };
  WordSteps steps = {
      [&](const Expr& x) { return x - both(right(x, 1), mask(0x55)); },
      [&](const Expr& x) { return both(x, mask(0x33)) + both(right(x, 2), mask(0x33)); },
      [&](const Expr& x) { return both(x + right(x, 4), mask(0x0f)); },
  };
  if (e == Elem::uint8) return in_order(t, t, steps);
  for (int by = 8; by < t.bits; by *= 2)
    steps.push_back([by](const Expr& x) { return x + right(x, by); });
  steps.push_back([&](const Expr& x) { return ir::cast(dtypes::uint8, both(x, word(0xff, t))); });
  return in_order(t, dtypes::uint8, steps);
}

/// acc[i] and out[i]: the exponent e and the m of 0.5 <= |m| < 1 with m 2^e = a0[i]; 0, infinities
/// and NaN stay, with e = 0. The fraction of a subnormal number is a whole number, which becomes a
/// float by way of 2^(its bits).
ir::PrimFunc frexp_function(Elem e) {
  const DType real = dtype_of(e), t = e == Elem::float32 ? dtypes::int32 : dtypes::int64;
  const int shift = e == Elem::float32 ? 23 : 52;
  const std::int64_t bias = e == Elem::float32 ? 127 : 1023, most = 2 * bias + 1;
  const std::int64_t fraction = (std::int64_t{1} << shift) - 1;
  const auto whole = [t](std::int64_t v) { return ir::make_int(v, t); };
  Program p;
  ir::Buffer in = p.buffer("a0", t), out = p.buffer("out", t), acc = p.buffer("acc", dtypes::int32);
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    return with_values({ir::load(in, {i})}, [&](const std::vector<Expr>& w) {
      const Expr low = both(w[0], whole(fraction)), found = both(right(w[0], shift), whole(most));
      const Expr lifted = either(low, whole((bias + shift) << shift));
      const Expr size = ir::call_typed(real, "reinterpret", {lifted}) -
                        ir::make_const(static_cast<double>(std::int64_t{1} << shift), real);
      const Expr bits = ir::call_typed(t, "reinterpret", {size});
      return with_values({low, found, bits}, [&](const std::vector<Expr>& v) {
        const Expr small = both(ir::eq(v[1], whole(0)), ir::ne(v[0], whole(0)));
        const Expr usual = both(ir::gt(v[1], whole(0)), ir::lt(v[1], whole(most)));
        const Expr part = ir::select(small, both(v[2], whole(fraction)), v[0]);
        const Expr sign = both(w[0], whole(t.bits == 32 ? INT32_MIN : INT64_MIN));
        const Expr m = either(either(part, sign), whole((bias - 1) << shift));
        const Expr exponent = ir::select(
            usual, v[1] - whole(bias - 1),
            ir::select(small, right(v[2], shift) - whole(2 * bias - 2 + shift), whole(0)));
        return ir::seq({ir::store(out, ir::select(either(usual, small), m, w[0]), {i}),
                        ir::store(acc, ir::cast(dtypes::int32, exponent), {i})});
      });
    });
  }));
}

}  // namespace

std::vector<Kernel> bit_kernels() {
  std::vector<Kernel> out;
  const auto add = [&](BitKernel row, Elem e, const std::string& name, ir::PrimFunc f) {
    out.push_back({entry(KernelEntry::bits, static_cast<int>(row), e), name, std::move(f)});
  };
  add(BitKernel::pack_big, Elem::uint8, "w_pack_big", pack_function(true));
  add(BitKernel::pack_little, Elem::uint8, "w_pack_little", pack_function(false));
  add(BitKernel::unpack_big, Elem::uint8, "w_unpack_big", unpack_function(true));
  add(BitKernel::unpack_little, Elem::uint8, "w_unpack_little", unpack_function(false));
  for (Elem e : {Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64})
    add(BitKernel::count_bits, e, cat("w_count_bits_", name_of(e)), count_bits_function(e));
  for (Elem e : {Elem::float32, Elem::float64}) {
    out.push_back(
        {entry(KernelEntry::frexp, 0, e), cat("w_frexp_", name_of(e)), frexp_function(e)});
    out.back().parameters = "int64_t n, const void* a0, void* out, void* acc";
  }
  return out;
}

}  // namespace weft::generate
