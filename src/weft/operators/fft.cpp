// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/fft.h"

#include <cmath>
#include <numbers>

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

struct Names {
  std::string re, im;
};

/// Statements of a transform of a few numbers in registers, by halves while the length is even.
class Butterfly {
 public:
  Butterfly(const FftSpec& spec, std::string indent) : spec_(spec), indent_(std::move(indent)) {}
  std::string text;

  std::vector<Names> transform(const std::vector<Names>& x) {
    const std::size_t n = x.size();
    if (n == 1) return x;
    return n % 2 == 0 ? halves(x) : sums(x);
  }
  Names named(const std::string& re, const std::string& im) {
    const Names out = {cat("r", count_), cat("i", count_)};
    ++count_;
    text += cat(indent_, out.re, ": T.", spec_.real, " = ", re, "\n", indent_, out.im, ": T.",
                spec_.real, " = ", im, "\n");
    return out;
  }

 private:
  std::vector<Names> halves(const std::vector<Names>& x) {
    std::vector<Names> even, odd;
    for (std::size_t k = 0; k < x.size(); ++k) (k % 2 ? odd : even).push_back(x[k]);
    even = transform(even), odd = transform(odd);
    std::vector<Names> out(x.size());
    for (std::size_t k = 0; k < even.size(); ++k) {
      const Names turned = product(odd[k], k, x.size());
      out[k] = named(cat(even[k].re, " + ", turned.re), cat(even[k].im, " + ", turned.im));
      out[k + even.size()] =
          named(cat(even[k].re, " - ", turned.re), cat(even[k].im, " - ", turned.im));
    }
    return out;
  }
  std::vector<Names> sums(const std::vector<Names>& x) {
    std::vector<Names> out;
    for (std::size_t j = 0; j < x.size(); ++j) {
      Names sum = x[0];
      for (std::size_t k = 1; k < x.size(); ++k) {
        const Names term = product(x[k], j * k % x.size(), x.size());
        sum = named(cat(sum.re, " + ", term.re), cat(sum.im, " + ", term.im));
      }
      out.push_back(sum);
    }
    return out;
  }
  /// x exp(-+ 2 pi i k / n).
  Names product(const Names& x, std::size_t k, std::size_t n) {
    const std::size_t quarters = 4 * k % n == 0 ? 4 * k / n : 4;
    const bool back = spec_.inverse;
    const Names minus = {cat("(", number(-1), " * ", x.re, ")"),
                         cat("(", number(-1), " * ", x.im, ")")};
    if (quarters == 0) return x;
    if (quarters == 2) return minus;
    if (quarters == 1 || quarters == 3)
      return (quarters == 1) == back ? Names{minus.im, x.re} : Names{x.im, minus.re};
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    const double c = std::cos(angle), s = back ? std::sin(angle) : -std::sin(angle);
    return named(cat(x.re, " * ", number(c), " - ", x.im, " * ", number(s)),
                 cat(x.re, " * ", number(s), " + ", x.im, " * ", number(c)));
  }
  std::string number(double v) const {
    char text[40];
    std::snprintf(text, sizeof text, "T.%s(%.17g)", spec_.real.c_str(), v);
    return text;
  }
  const FftSpec& spec_;
  std::string indent_;
  int count_ = 0;
};

}  // namespace

std::vector<int> fft_radices(std::int64_t n) {
  std::vector<int> out;
  if (n < 1) return out;
  for (const int radix : {8, 13, 11, 7, 5, 4, 3, 2}) {
    for (; n % radix == 0; n /= radix) out.push_back(radix);
  }
  if (n > 1) out.clear();
  return out;
}

ir::PrimFunc fft_pass(const FftSpec& spec) {
  const std::string indent(16, ' ');
  Butterfly b(spec, indent);
  std::vector<Names> x;
  for (int k = 0; k < spec.radix; ++k) {
    const std::string at = cat("2 * (row * n + u + ", k, " * m * stride)");
    x.push_back(b.named(cat("x[", at, "]"), cat("x[", at, " + 1]")));
  }
  x = b.transform(x);
  std::string stores;
  for (int j = 0; j < spec.radix; ++j) {
    Names y = x[static_cast<std::size_t>(j)];
    if (j > 0) {
      const std::string at = cat("2 * (p * ", j, " * stride)");
      const Names w = b.named(cat("table[", at, "]"),
                              spec.inverse ? cat("T.", spec.real, "(-1) * table[", at, " + 1]")
                                           : cat("table[", at, " + 1]"));
      y = b.named(cat(y.re, " * ", w.re, " - ", y.im, " * ", w.im),
                  cat(y.re, " * ", w.im, " + ", y.im, " * ", w.re));
    }
    stores += cat(indent, "Y[", 2 * j, "] = ", y.re, " * scale\n", indent, "Y[", 2 * j + 1,
                  "] = ", y.im, " * scale\n");
  }
  return ProgramText("fft.pass")
      .buffer("x", spec.real)
      .buffer("table", spec.real)
      .buffer("out", spec.real)
      .scalar("blocks", "int64")
      .scalar("count", "int64")
      .scalar("n", "int64")
      .scalar("stride", "int64")
      .scalar("scale", spec.real)
      .distinct()
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
            Y = T.allocate(({parts},), "{real}", scope="local")
            at: T.int64 = b * {threads} + t
            if at < count // {radix}:
                part: T.int64 = n // {radix}
                m: T.int64 = part // stride
                row: T.int64 = at // part
                u: T.int64 = at % part
                q: T.int64 = u % stride
                p: T.int64 = u // stride
{body}{stores}                for k in T.serial({parts}):
                    out[2 * (row * n + q + stride * ({radix} * p + k // 2)) + k % 2] = Y[k]
)",
             {{"threads", cat(kFftThreads)},
              {"radix", cat(spec.radix)},
              {"parts", cat(2 * spec.radix)},
              {"real", spec.real},
              {"body", b.text},
              {"stores", stores}});
}

}  // namespace weft::operators
