# SPDX-License-Identifier: Apache-2.0
"""Polynomials by the names of numpy.polynomial: coefficients of ascending powers, and Polynomial, which fits in a window of x.

>>> p = weft.polynomial.Polynomial.fit(x, y, 3); p(2.0), p.deriv().roots()
"""

from __future__ import annotations

import sys as _sys

import weft

from ._core import shown as _shown
from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from ._core import NDArray, Tensor
from ._errors import error as _error

__all__ = [
    "Polynomial",
    "polyadd",
    "polycompanion",
    "polyder",
    "polydiv",
    "polyfit",
    "polyfromroots",
    "polyint",
    "polymul",
    "polypow",
    "polyroots",
    "polysub",
    "polyval",
    "polyvander",
]


def _row(c):
    """Coefficients as floats."""
    given = isinstance(c, (NDArray, Tensor)) or hasattr(c, "dtype")
    c = c if isinstance(c, (NDArray, Tensor)) else weft.asarray(c)
    c = c if given or c.dtype.kind != "f" else c.astype("float64")
    c = c.reshape(-1) if c.ndim == 0 else c
    if c.ndim != 1 or not c.shape[0]:
        raise _error(
            weft.ShapeError,
            "polynomial.coefficients",
            f"coefficients of shape {tuple(c.shape)}",
            ["legal: a vector of one number and more, of ascending powers"],
        )
    return c if c.dtype.kind in "fc" else c.astype("float64")


def _reversed(c):
    return weft.flip(c, axis=0)


def _trimmed(c):
    """Without zeros at the end; the first stays."""
    n = c.shape[0]
    while n > 1 and bool(getattr(c, "data", c)[n - 1] == 0):
        n -= 1
    return c[:n]


def polyval(x, c):
    """The polynomial with coefficients c of ascending powers at x."""
    c = _row(c)
    return weft.polyval(_reversed(c), _places(x, c))


def _places(x, c):
    """x as values; numbers and lists in the type of the coefficients."""
    if hasattr(x, "__weft_tensor__") or isinstance(x, NDArray) or hasattr(x, "dtype"):
        return x if hasattr(x, "__weft_tensor__") or isinstance(x, NDArray) else weft.asarray(x)
    return weft.asarray(x, dtype=None if isinstance(x, complex) else c.dtype)


_MOST_POWERS = 1 << 16


def polyvander(x, deg):
    """Powers 0 to deg of x along a new last axis."""
    x = x if isinstance(x, (NDArray, Tensor)) else weft.asarray(x)
    x = x if x.dtype.kind in "fc" else x.astype("float64")
    if deg > _MOST_POWERS:
        raise _error(
            weft.ArgumentError,
            "polynomial.degree",
            f"polyvander of degree {deg}",
            [f"legal: 0 to {_MOST_POWERS}"],
            help="take a lower degree: floats have no more powers that differ",
        )
    powers = [x * 0 + 1]
    for _ in range(deg):
        powers.append(powers[-1] * x)
    return weft.stack(powers, axis=-1)


def polyfit(x, y, deg, rcond=None, full=False, w=None):
    """Coefficients of ascending powers with the least sum of squares through the points; deg: the degree, or the powers to use."""
    if full:
        raise _error(
            weft.ArgumentError,
            "polynomial.fit.full",
            "polyfit with full=True",
            help="weft.linalg.lstsq(polyvander(x, deg), y) gives residuals, rank and singular values",
        )
    powers = list(range(deg + 1)) if isinstance(deg, int) else sorted(int(d) for d in deg)
    if not powers or powers[0] < 0:
        raise _error(
            weft.ArgumentError, "polynomial.fit.degree", f"polyfit of degree {deg}", ["legal: 0 and more"]
        )  # fmt: skip
    matrix = polyvander(x, powers[-1])
    y = y if isinstance(y, (NDArray, Tensor)) else weft.asarray(y)
    y = y.astype(matrix.dtype)
    if tuple(y.shape[:1]) != tuple(matrix.shape[:1]):
        raise _error(
            weft.ShapeError,
            "polynomial.fit.shape",
            f"{matrix.shape[0]} places and values of shape {tuple(y.shape)}",
            ["rule: as many values as places"],
        )
    matrix = weft.stack([matrix[:, k] for k in powers], axis=1)
    if w is not None:
        w = weft.asarray(getattr(w, "data", w)).astype(matrix.dtype)
        matrix, y = matrix * w.reshape(-1, 1), y * (w if y.ndim == 1 else w.reshape(-1, 1))
    scale = weft.sqrt(weft.sum(matrix * matrix, axis=0))
    scale = weft.where(getattr(scale, "data", scale) == 0, 1.0, scale)
    found = weft.linalg.lstsq(matrix / scale, y, rcond)[0]
    found = found / (scale if y.ndim == 1 else scale.reshape(-1, 1))
    rows = dict(zip(powers, weft.unstack(found, axis=0)))
    return weft.stack([rows[k] if k in rows else found[0] * 0 for k in range(powers[-1] + 1)])


def polyroots(c):
    """The zeros, ascending; complex where one is."""
    found = weft.roots(_reversed(_trimmed(_row(c))))
    order = sorted(range(found.shape[0]), key=lambda k: (float(weft.real(found[k])), float(weft.imag(found[k]))))  # fmt: skip
    found = weft.take(found, weft.asarray(order, dtype="int64"), axis=0)
    return weft.real(found) if not bool(weft.any(weft.imag(found) != 0)) else found


def polyfromroots(roots):
    """Coefficients of the polynomial with these zeros and 1 at the highest power."""
    return _reversed(weft.poly(roots))


def polycompanion(c):
    """The companion matrix, whose eigenvalues are the zeros."""
    c = _trimmed(_row(c))
    n = c.shape[0] - 1
    if n < 1:
        raise _error(
            weft.ArgumentError, "polynomial.companion", "the companion matrix of a constant", ["legal: degree 1 and more"]
        )  # fmt: skip
    last = -(c[:n] / c[n]).reshape(n, 1)
    below = weft.eye(n, n - 1, k=-1, dtype=c.dtype, device=c.device)
    return weft.concat([below, last], axis=1)


def _by_powers(function):
    def call(*rows):
        found = function(*(_reversed(_row(c)) for c in rows))
        return _trimmed(_reversed(found))

    return call


def polyadd(c1, c2):
    """The sum."""
    return _by_powers(weft.polyadd)(c1, c2)


def polysub(c1, c2):
    """The difference."""
    return _by_powers(weft.polysub)(c1, c2)


def polymul(c1, c2):
    """The product."""
    return _by_powers(weft.polymul)(c1, c2)


def polydiv(c1, c2):
    """(quotient, rest)."""
    quotient, rest = weft.polydiv(_reversed(_trimmed(_row(c1))), _reversed(_trimmed(_row(c2))))
    return _trimmed(_reversed(quotient)), _trimmed(_reversed(rest))


def polypow(c, pow, maxpower=16):
    """The polynomial to a whole power."""
    if not isinstance(pow, int) or pow < 0 or (maxpower is not None and pow > maxpower):
        raise _error(
            weft.ArgumentError, "polynomial.power", f"the power {_shown(pow)} of a polynomial", [f"legal: 0 to {maxpower}"]
        )  # fmt: skip
    out = _row(c)[:1] * 0 + 1
    for _ in range(pow):
        out = polymul(out, c)
    return out


def polyder(c, m=1, scl=1):
    """The m-th derivative, times scl for each."""
    out = _reversed(_row(c))
    for _ in range(min(m, out.shape[0])):  # then 0 is left
        out = weft.polyder(out) * scl if out.shape[0] > 1 else out * 0
    return _reversed(out)


_MOST_INTEGRALS = 4096  # of the 170th on float64 holds no coefficient but 0


def polyint(c, m=1, k=(), lbnd=0, scl=1):
    """The m-th integral from lbnd on, times scl for each; k: its constants."""
    constants = list(k) if isinstance(k, (list, tuple)) else [k]
    if len(constants) > m:
        raise _error(
            weft.ArgumentError, "polynomial.constants", f"{len(constants)} constants of {m} integrals", ["legal: one for each at most"]
        )  # fmt: skip
    if m > _MOST_INTEGRALS:
        raise _error(
            weft.ArgumentError, "polynomial.integrals", f"{m} integrals of a polynomial", [f"legal: 0 to {_MOST_INTEGRALS}"]
        )  # fmt: skip
    out = _row(c)
    for step in range(m):
        out = _reversed(weft.polyint(_reversed(out * scl)))
        first = constants[step] if step < len(constants) else 0.0
        out = weft.concat([(out[:1] + first - polyval(lbnd, out)).reshape(-1), out[1:]])
    return out


class Polynomial:
    """A polynomial with coefficients of ascending powers: p(x), +, -, *, //, %, **, deriv, integ, roots, degree.

    `domain` is mapped to `window` before powers are taken, which keeps fits of far x exact; by themselves both are [-1, 1].
    Coefficients of tensors keep their graph. Raises ArgumentError (polynomial.domain) for arithmetic of two with other domains.
    """

    def __init__(self, coef, domain=None, window=None, symbol="x"):
        self.coef, self.symbol = _row(coef), symbol
        self.domain = weft.asarray([-1.0, 1.0] if domain is None else domain, dtype="float64")
        self.window = weft.asarray([-1.0, 1.0] if window is None else window, dtype="float64")

    def mapparms(self):
        """(offset, scale) with which x is taken from the domain to the window."""
        (a, b), (c, d) = self.domain.tolist(), self.window.tolist()
        return (b * c - a * d) / (b - a), (d - c) / (b - a)

    def __call__(self, x):
        offset, scale = self.mapparms()
        x = _places(x, self.coef)
        return polyval(x if (offset, scale) == (0.0, 1.0) else offset + scale * x, self.coef)

    @classmethod
    def fit(cls, x, y, deg, domain=None, rcond=None, full=False, w=None, window=None, symbol="x"):
        """The least sum of squares through the points; the domain is from the least x to the largest."""
        x = x if isinstance(x, (NDArray, Tensor)) else weft.asarray(x)
        x = x if x.dtype.kind in "fc" else x.astype("float64")
        if domain is None:
            low, high = float(weft.min(x)), float(weft.max(x))
            domain = [low, high] if low != high else [low - 1, high + 1]
        out = cls([0.0], domain, window, symbol)
        offset, scale = out.mapparms()
        out.coef = polyfit(offset + scale * x, y, deg, rcond, full, w)
        return out

    @classmethod
    def fromroots(cls, roots, domain=None, window=None, symbol="x"):
        """With these zeros."""
        out = cls([0.0], domain, window, symbol)
        offset, scale = out.mapparms()
        roots = roots if isinstance(roots, (NDArray, Tensor)) else weft.asarray(roots)
        roots = roots if roots.dtype.kind in "fc" else roots.astype("float64")
        out.coef = polyfromroots(offset + scale * roots) / scale ** roots.shape[0]
        return out

    @classmethod
    def identity(cls, domain=None, window=None, symbol="x"):
        """p(x) = x."""
        out = cls([0.0, 1.0], domain, window, symbol)
        offset, scale = out.mapparms()
        out.coef = weft.asarray([-offset / scale, 1 / scale], dtype="float64")
        return out

    @classmethod
    def basis(cls, deg, domain=None, window=None, symbol="x"):
        """The power deg alone."""
        return cls([0.0] * deg + [1.0], domain, window, symbol)

    def _like(self, coef):
        return type(self)(coef, self.domain, self.window, self.symbol)

    def degree(self):
        """The highest power."""
        return self.coef.shape[0] - 1

    def copy(self):
        """The same polynomial."""
        return self._like(self.coef)

    def trim(self, tol=0):
        """Without last coefficients of magnitude up to tol."""
        c, n = getattr(self.coef, "data", self.coef), self.coef.shape[0]
        while n > 1 and bool(weft.abs(c[n - 1]) <= tol):
            n -= 1
        return self._like(self.coef[:n])

    def truncate(self, size):
        """The first coefficients."""
        return self._like(self.coef[:size])

    def convert(self, domain=None, kind=None, window=None):
        """The same function in another domain and window, by themselves [-1, 1]."""
        kind = type(self) if kind is None else kind
        line = kind.identity(domain, window, self.symbol)
        offset, scale = self.mapparms()
        inner = polyadd([offset], line.coef * scale)
        out = self.coef[-1:]
        for k in range(self.coef.shape[0] - 2, -1, -1):
            out = polyadd(polymul(out, inner), self.coef[k : k + 1])
        line.coef = out
        return line

    def deriv(self, m=1):
        """The m-th derivative."""
        return self._like(polyder(self.coef, m, self.mapparms()[1]))

    def integ(self, m=1, k=(), lbnd=None):
        """The m-th integral, from lbnd on (0 of the domain by itself)."""
        offset, scale = self.mapparms()
        start = 0.0 if lbnd is None else offset + scale * lbnd
        return self._like(polyint(self.coef, m, k, start, 1 / scale))

    def roots(self):
        """The zeros, ascending; complex where one is."""
        offset, scale = self.mapparms()
        return (polyroots(self.coef) - offset) / scale

    def linspace(self, n=100, domain=None):
        """(x, p(x)) at n places of the domain."""
        low, high = (self.domain if domain is None else weft.asarray(domain)).tolist()
        x = weft.linspace(low, high, n, dtype="float64")
        return x, self(x)

    def _other(self, other):
        if not isinstance(other, Polynomial):
            return other
        if not weft.array_equal(self.domain, other.domain) or not weft.array_equal(self.window, other.window):  # fmt: skip
            raise _error(
                weft.ArgumentError,
                "polynomial.domain",
                f"polynomials of the domains {self.domain.tolist()} and {other.domain.tolist()}",
                ["rule: arithmetic of one domain and one window"],
                help="p.convert() brings both to [-1, 1]",
            )
        return other.coef

    def __add__(self, other):
        return self._like(polyadd(self.coef, self._other(other)))

    def __sub__(self, other):
        return self._like(polysub(self.coef, self._other(other)))

    def __rsub__(self, other):
        return self._like(polysub(other, self.coef))

    def __mul__(self, other):
        return self._like(polymul(self.coef, self._other(other)))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other):
        return self._like(self.coef / other)

    def __floordiv__(self, other):
        return self._like(polydiv(self.coef, self._other(other))[0])

    def __mod__(self, other):
        return self._like(polydiv(self.coef, self._other(other))[1])

    def __divmod__(self, other):
        quotient, rest = polydiv(self.coef, self._other(other))
        return self._like(quotient), self._like(rest)

    def __pow__(self, n):
        return self._like(polypow(self.coef, n, None))

    def __neg__(self):
        return self._like(-self.coef)

    def __pos__(self):
        return self

    def __len__(self):
        return self.coef.shape[0]

    def __iter__(self):
        return iter(self.coef)

    def __eq__(self, other):
        return (
            isinstance(other, Polynomial)
            and weft.array_equal(self.domain, other.domain)
            and weft.array_equal(self.window, other.window)
            and weft.array_equal(self.coef, other.coef)
        )

    __hash__ = None

    def __repr__(self):
        return f"Polynomial({self.coef.tolist()}, domain={self.domain.tolist()}, window={self.window.tolist()}, symbol={self.symbol!r})"

    def __str__(self):
        terms = [
            f"{c}" if k == 0 else f"{c}·{self.symbol}" + (f"**{k}" if k > 1 else "")
            for k, c in enumerate(self.coef.tolist())
        ]
        return " + ".join(terms).replace("+ -", "- ")


_publish(__name__)
_publish_classes(__name__)
# numpy.polynomial.polynomial has the functions, numpy.polynomial the class.
polynomial = _sys.modules[__name__]
_sys.modules.setdefault(f"{__name__}.polynomial", polynomial)
