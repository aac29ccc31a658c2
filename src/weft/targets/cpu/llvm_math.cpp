// SPDX-License-Identifier: Apache-2.0
// exp, log, log1p, tanh, expm1 and erf of float32 as vector code: LLVM would call libm once a lane.
// The code is that of target c (targets/c/library.cpp), within 2 ulp of the true value; both fuse
// products and sums where the processor can, so that both have the same bits.

#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "weft/base/text.h"
#include "weft/targets/cpu/llvm_function.h"

namespace weft::cpu {

namespace {

/// Writes straight-line vector code over float and i32 of some number of lanes.
class Writer {
 public:
  Writer(int lanes, bool contract) : lanes_(lanes), flag_(contract ? " contract " : " ") {}
  std::string f() const { return type("float"); }
  std::string i() const { return type("i32"); }
  std::string b() const { return type("i1"); }
  std::string fc(double v) const {
    return constant(
        "float", hex(std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(v))), 16));
  }
  std::string ic(std::int64_t v) const { return constant("i32", std::to_string(v)); }
  std::string let(const std::string& e) {
    std::string v = "%m" + std::to_string(next_++);
    text += "  " + v + " = " + e + "\n";
    return v;
  }
  std::string mul(const std::string& a, const std::string& c) {
    return let(cat("fmul", flag_, f(), " ", a, ", ", c));
  }
  std::string add(const std::string& a, const std::string& c) {
    return let(cat("fadd", flag_, f(), " ", a, ", ", c));
  }
  std::string sub(const std::string& a, const std::string& c) {
    return let(cat("fsub", flag_, f(), " ", a, ", ", c));
  }
  /// a * x + c, rounded once where the processor can.
  std::string fma(const std::string& a, const std::string& x, const std::string& c) {
    return let(cat("call", flag_, f(), " @", fused(), "(", f(), " ", a, ", ", f(), " ", x, ", ",
                   f(), " ", c, ")"));
  }
  std::string fused() const {
    return lanes_ == 1 ? std::string("llvm.fmuladd.f32") : cat("llvm.fmuladd.v", lanes_, "f32");
  }
  std::string iop(const char* op, const std::string& a, const std::string& c) {
    return let(cat(op, " ", i(), " ", a, ", ", c));
  }
  std::string compare(const char* how, const std::string& a, const std::string& c) {
    return let(cat("fcmp ", how, " ", f(), " ", a, ", ", c));
  }
  std::string select(const std::string& c, const std::string& x, const std::string& y) {
    return let(cat("select ", b(), " ", c, ", ", f(), " ", x, ", ", f(), " ", y));
  }
  std::string to_int(const std::string& a) {
    return let(cat("bitcast ", f(), " ", a, " to ", i()));
  }
  std::string to_float(const std::string& a) {
    return let(cat("bitcast ", i(), " ", a, " to ", f()));
  }
  /// Horner's rule, highest coefficient first.
  std::string poly(const std::string& x, const std::vector<double>& c) {
    std::string out = fc(c[0]);
    for (std::size_t k = 1; k < c.size(); ++k) out = fma(out, x, fc(c[k]));
    return out;
  }
  std::string text;

 private:
  std::string type(const char* s) const {
    return lanes_ == 1 ? std::string(s) : cat("<", lanes_, " x ", s, ">");
  }
  std::string constant(const char* s, const std::string& v) const {
    if (lanes_ == 1) return v;
    std::string out = "<";
    for (int k = 0; k < lanes_; ++k) out += cat(k ? ", " : "", s, " ", v);
    return out + ">";
  }
  int lanes_, next_ = 0;
  const char* flag_;
};

/// x = n ln 2 + r for x from `least` (if any) to `most`; NaN passes to r. The integer
/// n + 1.5 * 2^23 + bias has n + bias in its low bits.
struct Split {
  std::string n, r;
};
Split split_code(Writer& w, const std::string& x, std::optional<double> least, double most,
                 int bias) {
  // Round x / ln 2 by adding 1.5 * 2^23: the integer stands in the low bits.
  std::string clamped = w.select(w.compare("ogt", x, w.fc(most)), w.fc(most), x);
  if (least) clamped = w.select(w.compare("olt", clamped, w.fc(*least)), w.fc(*least), clamped);
  const double magic = 12582912.0 + bias;
  std::string t = w.fma(clamped, w.fc(1.44269504088896341), w.fc(magic));
  std::string whole = w.sub(t, w.fc(magic));
  std::string r = w.fma(whole, w.fc(-0.693359375), clamped);
  return {w.to_int(t), w.fma(whole, w.fc(2.12194440e-4), r)};
}

/// The number whose exponent field is in the low bits.
std::string power_code(Writer& w, const std::string& n) {
  return w.to_float(w.iop("shl", n, w.ic(23)));
}

/// exp(r) - 1.
std::string small_exponential_code(Writer& w, const std::string& r) {
  std::string p = w.poly(r, {1.9845910758e-4, 1.3940893995e-3, 8.3333899339e-3, 4.1666357757e-2,
                             1.6666666366e-1, 5.0000000448e-1});
  return w.fma(p, w.mul(r, r), r);
}

std::string sign_code(Writer& w, const std::string& x) {
  return w.iop("and", w.to_int(x), w.ic(-2147483648LL));
}
std::string magnitude_code(Writer& w, const std::string& x) {
  return w.to_float(w.iop("and", w.to_int(x), w.ic(0x7fffffff)));
}
/// The magnitude `of` with the sign of x.
std::string signed_code(Writer& w, const std::string& of, const std::string& x) {
  return w.to_float(w.iop("or", w.to_int(magnitude_code(w, of)), sign_code(w, x)));
}

std::string exp_code(Writer& w, const std::string& x) {
  const auto [n, r] = split_code(w, x, -104.0, 89.0, 254);
  std::string y = w.add(small_exponential_code(w, r), w.fc(1.0));
  // Two steps of scaling, so that subnormal results come out: the last nine bits of a half of
  // n + 254 + 1.5 * 2^23 are an exponent field.
  std::string half = w.iop("ashr", n, w.ic(1)), rest = w.iop("sub", n, half);
  for (const std::string& k : {half, rest}) y = w.mul(y, power_code(w, k));
  return y;
}

std::string expm1_code(Writer& w, const std::string& x) {
  const auto [n, r] = split_code(w, x, -18.0, 89.0, 126);
  std::string e = small_exponential_code(w, r);
  std::string scale = power_code(w, n);  // half of 2^n, which may lie above the range
  std::string y = w.mul(w.fma(e, scale, w.sub(scale, w.fc(0.5))), w.fc(2.0));
  return signed_code(w, y, x);
}

std::string erf_code(Writer& w, const std::string& x) {
  std::string m = magnitude_code(w, x);
  m = w.select(w.compare("ogt", m, w.fc(3.95f)), w.fc(3.95f), m);
  std::string p = w.poly(w.mul(m, m), {-5.8620761180e-4, 4.9675054746e-3, -2.6748863219e-2,
                                       1.1281320655e-1, -3.7612445932e-1, 1.2837914231e-1});
  std::string small = w.fma(p, m, m);
  std::string q = w.poly(m, {-2.1445685173e-5, 4.3853124322e-4, -4.1908617580e-3, 2.5171823697e-2,
                             -1.0836157442e-1, -6.3327239471e-1, -1.1295520504, 1.8246196453e-4});
  std::string large = w.sub(w.fc(1.0), exp_code(w, q));
  return signed_code(w, w.select(w.compare("olt", m, w.fc(0.95f)), small, large), x);
}

/// An exponent e and f from -0.3 to 0.42 with x = 2^e (1 + f), of a normal number's bits.
struct Mantissa {
  std::string e, f;
};
Mantissa mantissa_code(Writer& w, const std::string& bits) {
  std::string e = w.iop("ashr", w.iop("sub", bits, w.ic(0x3f3504f3)), w.ic(23));
  std::string m = w.to_float(w.iop("sub", bits, w.iop("shl", e, w.ic(23))));
  return {e, w.sub(m, w.fc(1.0))};
}

/// log of 2^exponent (1 + f); for x that is not positive or not finite the limits and NaN.
std::string log_parts_code(Writer& w, const std::string& x, const std::string& f,
                           const std::string& exponent) {
  std::string z = w.mul(f, f), zz = w.mul(z, z);
  auto pair = [&](double a, double c) { return w.fma(w.fc(a), f, w.fc(c)); };
  std::string low =
      w.fma(pair(-1.6668057665e-1, 2.0000714765e-1), z, pair(-2.4999993993e-1, 3.3333331174e-1));
  std::string high =
      w.fma(pair(-1.1514610310e-1, 1.1676998740e-1), z, pair(-1.2420140846e-1, 1.4249322787e-1));
  high = w.fma(zz, w.fc(7.0376836292e-2), high);
  std::string p = w.fma(high, zz, low);
  std::string y = w.mul(w.mul(p, f), z);
  y = w.fma(exponent, w.fc(-2.12194440e-4), y);
  y = w.fma(z, w.fc(-0.5), y);
  std::string r = w.fma(exponent, w.fc(0.693359375), w.add(f, y));
  r = w.select(w.compare("oeq", x, w.fc(HUGE_VAL)), x, r);
  r = w.select(w.compare("oeq", x, w.fc(0.0)), w.fc(-HUGE_VAL), r);
  return w.select(w.compare("uge", x, w.fc(0.0)), w.select(w.compare("uno", x, x), x, r),
                  w.fc(std::bit_cast<double>(0x7ff8000000000000ull)));
}

std::string number_code(Writer& w, const std::string& e) {
  return w.let(cat("sitofp ", w.i(), " ", e, " to ", w.f()));
}

std::string log_code(Writer& w, const std::string& x) {
  std::string tiny = w.compare("olt", x, w.fc(1.17549435e-38));
  std::string scaled = w.select(tiny, w.mul(x, w.fc(8388608.0)), x);
  std::string shift = w.select(tiny, w.fc(-23.0), w.fc(0.0));
  const auto [e, f] = mantissa_code(w, w.to_int(scaled));
  return log_parts_code(w, x, f, w.add(number_code(w, e), shift));
}

std::string log1p_code(Writer& w, const std::string& x) {
  std::string u = w.add(x, w.fc(1.0)), lost = w.sub(x, w.sub(u, w.fc(1.0)));
  const auto [e, f] = mantissa_code(w, w.to_int(u));
  // Below 0 only where nothing was lost.
  std::string scale = w.iop("sub", w.ic(0x3f800000), w.iop("shl", e, w.ic(23)));
  scale = w.iop("and", scale, w.iop("xor", w.iop("ashr", scale, w.ic(31)), w.ic(-1)));
  std::string r = log_parts_code(w, u, w.fma(lost, w.to_float(scale), f), number_code(w, e));
  return signed_code(w, r, x);
}

std::string tanh_code(Writer& w, const std::string& x) {
  std::string z = w.mul(x, x);
  std::string p = w.poly(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                             1.33314422036e-1, -3.33332819422e-1});
  std::string m = magnitude_code(w, x), small = w.fma(w.mul(p, z), m, m);
  const auto [n, r] = split_code(w, w.add(m, m), std::nullopt, 18.2, 126);
  std::string e = small_exponential_code(w, r), scale = power_code(w, n);  // half of 2^n
  std::string below = w.fma(e, scale, w.add(scale, w.fc(0.5)));
  std::string q = w.let(cat("fdiv ", w.f(), " ", w.fc(1.0), ", ", below));
  std::string large = w.sub(w.fc(1.0), q);
  return signed_code(w, w.select(w.compare("olt", m, w.fc(0.625)), small, large), x);
}

}  // namespace

namespace {

using Code = std::string (*)(Writer&, const std::string&);
const std::map<std::string, Code>& codes() {
  static const std::map<std::string, Code> all = {{"exp", exp_code},     {"log", log_code},
                                                  {"log1p", log1p_code}, {"tanh", tanh_code},
                                                  {"expm1", expm1_code}, {"erf", erf_code}};
  return all;
}

}  // namespace

bool has_math_helper(const std::string& op, DType t) {
  return t.element() == dtypes::float32 && codes().count(op);
}

std::string math_helper(ModuleText& module, const std::string& op, DType t) {
  std::string name = cat("weft.", op, ".", t.lanes, module.contract ? "" : ".exact");
  if (!module.helpers.insert(name).second) return name;
  Writer w(t.lanes, module.contract);
  const std::string r = codes().at(op)(w, "%x");
  module.declarations.insert(
      cat("declare ", w.f(), " @", w.fused(), "(", w.f(), ", ", w.f(), ", ", w.f(), ")"));
  module.helper_text += cat("define internal ", w.f(), " @", name, "(", w.f(),
                            " %x) alwaysinline {\n", w.text, "  ret ", w.f(), " ", r, "\n}\n\n");
  return name;
}

}  // namespace weft::cpu
