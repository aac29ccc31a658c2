// SPDX-License-Identifier: Apache-2.0
#pragma once
// The transform of a few numbers that stand in variables, as statements of T-script: what programs
// for grids (fft.cpp) and for the host's vectors (host/generate/fourier.cpp) have in common.

#include <cmath>
#include <cstdio>
#include <numbers>
#include <string>
#include <vector>

#include "weft/base/text.h"

namespace weft::operators {

/// Statements of a transform of a few numbers in registers, by halves while the length is even.
class Butterfly {
 public:
  struct Number {
    std::string re, im;
  };
  Butterfly(std::string real, bool inverse, std::string indent)
      : real_(std::move(real)), inverse_(inverse), indent_(std::move(indent)) {}
  std::string text;

  std::vector<Number> transform(const std::vector<Number>& x) {
    const std::size_t n = x.size();
    if (n == 1) return x;
    return n % 2 == 0 ? halves(x) : sums(x);
  }
  Number named(const std::string& re, const std::string& im) {
    const Number out = {cat("r", count_), cat("i", count_)};
    ++count_;
    text += cat(indent_, out.re, ": T.", real_, " = ", re, "\n", indent_, out.im, ": T.",
                real_, " = ", im, "\n");
    return out;
  }

 private:
  std::vector<Number> halves(const std::vector<Number>& x) {
    std::vector<Number> even, odd;
    for (std::size_t k = 0; k < x.size(); ++k) (k % 2 ? odd : even).push_back(x[k]);
    even = transform(even), odd = transform(odd);
    std::vector<Number> out(x.size());
    for (std::size_t k = 0; k < even.size(); ++k) {
      const Number turned = product(odd[k], k, x.size());
      out[k] = named(cat(even[k].re, " + ", turned.re), cat(even[k].im, " + ", turned.im));
      out[k + even.size()] =
          named(cat(even[k].re, " - ", turned.re), cat(even[k].im, " - ", turned.im));
    }
    return out;
  }
  /// An odd length: numbers at equal distances from the first meet conjugate factors.
  std::vector<Number> sums(const std::vector<Number>& x) {
    const std::size_t n = x.size(), half = n / 2;
    std::vector<Number> plus, minus, out(n);
    Number total = x[0];
    for (std::size_t k = 1; k <= half; ++k) {
      const Number &a = x[k], &b = x[n - k];
      plus.push_back(named(cat(a.re, " + ", b.re), cat(a.im, " + ", b.im)));
      minus.push_back(named(cat(a.re, " - ", b.re), cat(a.im, " - ", b.im)));
      total = named(cat(total.re, " + ", plus.back().re), cat(total.im, " + ", plus.back().im));
    }
    out[0] = total;
    for (std::size_t j = 1; j <= half; ++j) {
      Number even = x[0], odd;
      for (std::size_t k = 1; k <= half; ++k) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
        const Number &p = plus[k - 1], &m = minus[k - 1];
        const std::string c = number(std::cos(angle)), s = number(inverse_ ? -std::sin(angle) : std::sin(angle));
        even = named(cat(even.re, " + ", p.re, " * ", c), cat(even.im, " + ", p.im, " * ", c));
        odd = k == 1 ? named(cat(m.im, " * ", s), cat(m.re, " * ", s))
                     : named(cat(odd.re, " + ", m.im, " * ", s), cat(odd.im, " + ", m.re, " * ", s));
      }
      out[j] = named(cat(even.re, " + ", odd.re), cat(even.im, " - ", odd.im));
      out[n - j] = named(cat(even.re, " - ", odd.re), cat(even.im, " + ", odd.im));
    }
    return out;
  }
  /// x exp(-+ 2 pi i k / n).
  Number product(const Number& x, std::size_t k, std::size_t n) {
    const std::size_t quarters = 4 * k % n == 0 ? 4 * k / n : 4;
    const bool back = inverse_;
    const Number minus = {cat("(", number(-1), " * ", x.re, ")"),
                         cat("(", number(-1), " * ", x.im, ")")};
    if (quarters == 0) return x;
    if (quarters == 2) return minus;
    if (quarters == 1 || quarters == 3)
      return (quarters == 1) == back ? Number{minus.im, x.re} : Number{x.im, minus.re};
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    const double c = std::cos(angle), s = back ? std::sin(angle) : -std::sin(angle);
    return named(cat(x.re, " * ", number(c), " - ", x.im, " * ", number(s)),
                 cat(x.re, " * ", number(s), " + ", x.im, " * ", number(c)));
  }
  std::string number(double v) const {
    char text[40];
    std::snprintf(text, sizeof text, "T.%s(%.17g)", real_.c_str(), v);
    return text;
  }
  std::string real_;
  bool inverse_;
  std::string indent_;
  int count_ = 0;
};

}  // namespace weft::operators
