// SPDX-License-Identifier: Apache-2.0
#pragma once
// Complex numbers as pairs of real expressions: the functions that table rows are written in, over
// them. Parts are float32 or float64; what needs more than products and quotients is computed in
// float64, and results of float32 are rounded once, unless a number is `quick`. Nothing branches:
// cases are selected.
//
// Expressions share what they use more than once; with_shared (generate/builder.h) gives it names.

#include <vector>

#include "weft/ir/build.h"

namespace weft::complex_ir {

using ir::Expr;

struct Complex {
  Expr re, im;
  /// Of float32 parts: exponentials, logarithms, sines, hyperbolic sines and their like ask
  /// functions of float32, a few units in the last place. Cards compute those of float64 many times
  /// as long.
  bool quick = false;
};

Complex one_(const Complex& x);
Complex add_(const Complex& x, const Complex& y);
Complex sub_(const Complex& x, const Complex& y);
Complex mul_(const Complex& x, const Complex& y);
/// Smith's method: no overflow in between. By zero: each part divided by it.
Complex divide_(const Complex& x, const Complex& y);
Complex neg_(const Complex& x);
Complex conj_(const Complex& x);
Complex round_(const Complex& x);
/// x / |x|, and 0 of 0.
Complex sign_(const Complex& x);
Expr abs_(const Complex& x);
Expr real_(const Complex& x);
Expr imag_(const Complex& x);
Expr eq_(const Complex& x, const Complex& y);
Expr ne_(const Complex& x, const Complex& y);
Expr isnan_(const Complex& x);
Expr isinf_(const Complex& x);
Expr isfinite_(const Complex& x);

// Branch cuts, signs of zeros, infinities and NaN as the array API standard's table of special
// cases has them (C99, Annex G).
Complex sqrt_(const Complex& x);
Complex exp_(const Complex& x);
Complex expm1_(const Complex& x);
Complex log_(const Complex& x);
Complex log1p_(const Complex& x);
Complex log2_(const Complex& x);
Complex log10_(const Complex& x);
Complex pow_(const Complex& x, const Complex& y);
Complex sin_(const Complex& x);
Complex cos_(const Complex& x);
Complex tan_(const Complex& x);
Complex sinh_(const Complex& x);
Complex cosh_(const Complex& x);
Complex tanh_(const Complex& x);
Complex asin_(const Complex& x);
Complex acos_(const Complex& x);
Complex atan_(const Complex& x);
Complex asinh_(const Complex& x);
Complex acosh_(const Complex& x);
Complex atanh_(const Complex& x);

}  // namespace weft::complex_ir
