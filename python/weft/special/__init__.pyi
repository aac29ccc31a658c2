# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

def bessel_j0(x: _ArrayLike) -> Any:
    """The Bessel function of the first kind, of order 0."""
def bessel_j1(x: _ArrayLike) -> Any:
    """The Bessel function of the first kind, of order 1."""
def bessel_y0(x: _ArrayLike) -> Any:
    """The Bessel function of the second kind, of order 0; NaN below 0."""
def bessel_y1(x: _ArrayLike) -> Any:
    """The Bessel function of the second kind, of order 1; NaN below 0."""
def chebyshev_polynomial_t(input: Any, n: int) -> Any:
    """Chebyshev's polynomial T of degree n, a number or an array of integers, at input; 0 of negative degrees."""
def chebyshev_polynomial_u(input: Any, n: int) -> Any:
    """Chebyshev's polynomial U of degree n, a number or an array of integers, at input; 0 of negative degrees."""
def chebyshev_polynomial_v(input: Any, n: int) -> Any:
    """Chebyshev's polynomial V of degree n, a number or an array of integers, at input; 0 of negative degrees."""
def chebyshev_polynomial_w(input: Any, n: int) -> Any:
    """Chebyshev's polynomial W of degree n, a number or an array of integers, at input; 0 of negative degrees."""
def digamma(x: _ArrayLike) -> Any:
    """The derivative of lgamma; NaN at negative whole numbers, -infinity at 0 and infinity at -0."""
def entr(x: _ArrayLike) -> Any:
    """-x log(x): 0 at 0, -infinity below."""
def erf(x: _ArrayLike, /) -> Any:
    """Error function."""
def erfc(x: _ArrayLike) -> Any:
    """1 - erf(x), with all digits where erf is near 1."""
def erfcx(x: _ArrayLike) -> Any:
    """exp(x * x) * (1 - erf(x)), without underflow."""
def erfinv(x: _ArrayLike) -> Any:
    """The number whose error function is x; infinite at 1 and -1, NaN beyond."""
def exp2(x: _ArrayLike, /) -> Any:
    """2 to the power x."""
def expit(x: _ArrayLike, /) -> Any:
    """1 / (1 + exp(-x))."""
def expm1(x: _ArrayLike, /) -> Any:
    """exp(x) - 1, accurate near 0."""
def gammainc(a: Any, x: _ArrayLike) -> Any:
    """The regularised lower incomplete gamma function: the integral of t^(a - 1) exp(-t) up to x, over gamma(a)."""
def gammaincc(a: Any, x: _ArrayLike) -> Any:
    """The regularised upper incomplete gamma function: 1 - gammainc(a, x), with all digits where that vanishes."""
def gammaln(x: _ArrayLike) -> Any:
    """The logarithm of |gamma(x)|; infinite at 0 and at negative whole numbers."""
def hermite_polynomial_h(input: Any, n: int) -> Any:
    """Hermite's polynomial H of degree n, a number or an array of integers, at input; 0 of negative degrees."""
def hermite_polynomial_he(input: Any, n: int) -> Any:
    """Hermite's polynomial He of degree n, a number or an array of integers, at input; 0 of negative degrees."""
def i0(x: _ArrayLike) -> Any:
    """The modified Bessel function of the first kind, of order 0."""
def i0e(x: _ArrayLike) -> Any:
    """exp(-|x|) i0(x)."""
def i1(x: _ArrayLike) -> Any:
    """The modified Bessel function of the first kind, of order 1."""
def i1e(x: _ArrayLike) -> Any:
    """exp(-|x|) i1(x)."""
def j0(x: _ArrayLike) -> Any:
    """The Bessel function of the first kind, of order 0."""
def j1(x: _ArrayLike) -> Any:
    """The Bessel function of the first kind, of order 1."""
def k0(x: _ArrayLike) -> Any:
    """The modified Bessel function of the second kind, of order 0; NaN below 0."""
def k0e(x: _ArrayLike) -> Any:
    """exp(x) k0(x)."""
def k1(x: _ArrayLike) -> Any:
    """The modified Bessel function of the second kind, of order 1; NaN below 0."""
def k1e(x: _ArrayLike) -> Any:
    """exp(x) k1(x)."""
def laguerre_polynomial_l(input: Any, n: int) -> Any:
    """Laguerre's polynomial L of degree n, a number or an array of integers, at input; 0 of negative degrees."""
def legendre_polynomial_p(input: Any, n: int) -> Any:
    """Legendre's polynomial P of degree n, a number or an array of integers, at input; 0 of negative degrees."""
def log1p(x: _ArrayLike, /) -> Any:
    """log(1 + x), accurate near 0."""
def log_ndtr(x: _ArrayLike) -> Any:
    """The logarithm of ndtr, with all digits where ndtr vanishes."""
def log_softmax(x: _ArrayLike, /, *, axis: int = -1, dtype: _DType | None = None) -> Any:
    """x - log(sum(exp(x))) along an axis, without overflow, computed in `dtype`. Real floats."""
def logit(input: Any, eps: float | None = None) -> Any:
    """log(x / (1 - x)), x held between eps and 1 - eps."""
def logsumexp(x: _ArrayLike, /, *, axis: int | Sequence[int] | None = None, keepdims: _bool = False) -> Any:
    """log(sum(exp(x))) along axes, without overflow. Real floats."""
def modified_bessel_i0(x: _ArrayLike) -> Any:
    """The modified Bessel function of the first kind, of order 0."""
def modified_bessel_i1(x: _ArrayLike) -> Any:
    """The modified Bessel function of the first kind, of order 1."""
def modified_bessel_k0(x: _ArrayLike) -> Any:
    """The modified Bessel function of the second kind, of order 0; NaN below 0."""
def modified_bessel_k1(x: _ArrayLike) -> Any:
    """The modified Bessel function of the second kind, of order 1; NaN below 0."""
def multigammaln(x: _ArrayLike, p: float) -> Any:
    """The logarithm of the multivariate gamma function of dimension p; x above (p - 1) / 2."""
def ndtr(x: _ArrayLike) -> Any:
    """The normal distribution: the probability of a value below x."""
def ndtri(p: float) -> Any:
    """The x with ndtr(x) = p; infinite at 0 and 1, NaN beyond."""
def polygamma(n: int, x: _ArrayLike) -> Any:
    """The n-th derivative of digamma, n a whole number from 0."""
def psi(x: _ArrayLike) -> Any:
    """The derivative of lgamma; NaN at negative whole numbers, -infinity at 0 and infinity at -0."""
def round(x: _ArrayLike, /) -> Any:
    """Nearest integer, ties to even."""
def scaled_modified_bessel_k0(x: _ArrayLike) -> Any:
    """exp(x) k0(x)."""
def scaled_modified_bessel_k1(x: _ArrayLike) -> Any:
    """exp(x) k1(x)."""
def shifted_chebyshev_polynomial_t(input: Any, n: int) -> Any:
    """Chebyshev's polynomial T of degree n, a number or an array of integers, at 2 input - 1; 0 of negative degrees."""
def shifted_chebyshev_polynomial_u(input: Any, n: int) -> Any:
    """Chebyshev's polynomial U of degree n, a number or an array of integers, at 2 input - 1; 0 of negative degrees."""
def shifted_chebyshev_polynomial_v(input: Any, n: int) -> Any:
    """Chebyshev's polynomial V of degree n, a number or an array of integers, at 2 input - 1; 0 of negative degrees."""
def shifted_chebyshev_polynomial_w(input: Any, n: int) -> Any:
    """Chebyshev's polynomial W of degree n, a number or an array of integers, at 2 input - 1; 0 of negative degrees."""
def sinc(input: Any) -> Any:
    """sin(pi x) / (pi x), 1 at 0."""
def softmax(x: _ArrayLike, /, *, axis: int = -1, dtype: _DType | None = None) -> Any:
    """exp(x) / sum(exp(x)) along an axis, without overflow, computed in `dtype`. Real floats."""
def spherical_bessel_j0(x: _ArrayLike) -> Any:
    """sin(x) / x: the spherical Bessel function of the first kind, of order 0."""
def spherical_j0(x: _ArrayLike) -> Any:
    """sin(x) / x: the spherical Bessel function of the first kind, of order 0."""
def xlog1py(x: _ArrayLike, y: Any) -> Any:
    """x log(1 + y), 0 where x is 0 and the logarithm no number."""
def xlogy(input: Any, other: Any) -> Any:
    """self * log(other), 0 where self is 0 and the logarithm no number."""
def y0(x: _ArrayLike) -> Any:
    """The Bessel function of the second kind, of order 0; NaN below 0."""
def y1(x: _ArrayLike) -> Any:
    """The Bessel function of the second kind, of order 1; NaN below 0."""
def zeta(s: Sequence[int] | None, q: Any) -> Any:
    """The sum of (q + k)^-s over k >= 0. Infinite at s = 1 and where a term is; NaN below s = 1, and for q below 0 with fractional s."""
