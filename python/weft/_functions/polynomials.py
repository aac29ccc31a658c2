# SPDX-License-Identifier: Apache-2.0
"""Polynomials as vectors of coefficients, the highest power first, as NumPy's poly functions have them."""

from __future__ import annotations

import weft

from .common import beside, refused, value


def _vector(p):
    if isinstance(p, poly1d):
        return p.coef
    p = weft.atleast_1d(value(p))
    if p.ndim != 1:
        raise refused("array.poly.shape", f"coefficients of shape {tuple(p.shape)}", "a vector")
    return p


def _pair(a, b):
    a, b = _vector(a), _vector(b)
    n = max(a.shape[0], b.shape[0])
    return [
        weft.concat([weft.zeros((n - p.shape[0],), dtype=p.dtype, device=p.device), p], axis=0)
        if p.shape[0] < n
        else p
        for p in (a, b)
    ]


def _as(given, out):
    return poly1d(out) if any(isinstance(p, poly1d) for p in given) else out


def polyadd(a1, a2):
    """The sum of two polynomials; vectors (n,) and (m,) give (max(n, m),)."""
    a, b = _pair(a1, a2)
    return _as((a1, a2), a + b)


def polysub(a1, a2):
    """The difference of two polynomials."""
    a, b = _pair(a1, a2)
    return _as((a1, a2), a - b)


def polymul(a1, a2):
    """The product of two polynomials; vectors (n,) and (m,) give (n + m - 1,)."""
    return _as((a1, a2), weft.convolve(*(_without_leading(_vector(a)) for a in (a1, a2))))


def _without_leading(a):
    """From the first coefficient on that is not 0; the last one stays."""
    for k in range(a.shape[0] - 1):
        if bool(a[k] != 0):
            return a[k:]
    return a[-1:] if a.shape[0] else weft.zeros((1,), dtype=a.dtype, device=a.device)


def polydiv(u, v):
    """(quotient, rest) of a division of polynomials, in floats. Raises ArgumentError for a leading coefficient of 0."""
    a, b = _vector(u), _vector(v)
    kind = weft.result_type(a.dtype, b.dtype, 1.0)
    a, b = a.astype(kind), b.astype(kind)
    n, m = a.shape[0], b.shape[0]
    if bool(b[0] == 0):
        raise refused("array.polydiv.lead", "a divisor whose first coefficient is 0", "a first coefficient that is not 0")  # fmt: skip
    if n < m:
        return _as((u, v), weft.zeros((1,), dtype=kind)), _as((u, v), a)
    rest, quotient = [a[k] for k in range(n)], []
    for k in range(n - m + 1):
        factor = rest[k] / b[0]
        quotient.append(factor)
        for j in range(m):
            rest[k + j] = rest[k + j] - factor * b[j]
    rest = weft.stack(rest[n - m + 1 :] or [a[0] * 0], axis=0)
    # The rest loses leading coefficients that are 0 up to rounding, as NumPy's does.
    first = 0
    while first < rest.shape[0] - 1 and bool(weft.abs(rest[first]) <= 1e-14):
        first += 1
    return _as((u, v), weft.stack(quotient, axis=0)), _as((u, v), rest[first:])


def polyder(p, m=1):
    """The m-th derivative of a polynomial."""
    if m < 0:
        raise refused("array.polyder.order", f"derivative {m}", "orders from 0 on")
    out = _vector(p)
    for _ in range(min(m, out.shape[0])):  # then nothing is left
        n = out.shape[0]
        powers = weft.arange(n - 1, 0, -1, device=out.device).astype(out.dtype)
        out = out[: n - 1] * powers
    return _as((p,), out)


def polyint(p, m=1, k=None):
    """The m-th integral of a polynomial; k: its constants, the first one integrated most often (one number, or m of them)."""
    out = _vector(p)
    if m < 0:
        raise refused("array.polyint.order", f"integral {m}", "orders from 0 on")
    constants = [0.0] * m if k is None else list(weft.atleast_1d(value(k)).tolist())
    constants = constants * m if len(constants) == 1 else constants
    if len(constants) < m:
        raise refused("array.polyint.constants", f"{len(constants)} constants of {m}", "one, or as many as integrals")  # fmt: skip
    out = out if out.dtype.kind in "fc" else out.astype("float64")
    for c in constants[:m]:
        powers = weft.arange(out.shape[0], 0, -1, device=out.device).astype(out.dtype)
        last = weft.full((1,), c, dtype=out.dtype, device=out.device)
        out = weft.concat([out / powers, beside(last, out)], axis=0)
    return _as((p,), out)


class poly1d:
    """A polynomial as an object: poly1d([1, 2, 3]) is x**2 + 2 x + 3; with r=True the numbers are its zeros.

    p(x), +, -, *, /, **, ==, p[k] (the coefficient of x**k), coef, order, roots, deriv(m), integ(m, k).
    """

    def __init__(self, c_or_r, r=False, variable=None):
        c = weft.poly(value(c_or_r)) if r else _vector(c_or_r)
        first = 0
        while first < c.shape[0] - 1 and bool(c[first] == 0):
            first += 1
        self.coef, self.variable = c[first:], variable or "x"

    coeffs = c = coefficients = property(lambda self: self.coef)
    order = o = property(lambda self: self.coef.shape[0] - 1)
    roots = r = property(lambda self: weft.roots(self.coef))

    def __call__(self, x):
        return weft.polyval(self.coef, x)

    def __len__(self):
        return self.order

    def __getitem__(self, k):
        return self.coef[self.order - k] if 0 <= k <= self.order else self.coef[0] * 0

    def __add__(self, other):
        return polyadd(self, other)

    def __sub__(self, other):
        return polysub(self, other)

    def __rsub__(self, other):
        return polysub(poly1d(other), self)

    def __mul__(self, other):
        return polymul(self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return poly1d(-self.coef)

    def __pos__(self):
        return self

    def __truediv__(self, other):
        if isinstance(other, (int, float, complex)):
            return poly1d(self.coef / other)
        return polydiv(self, other)

    def __pow__(self, n):
        out = poly1d([1.0])
        for _ in range(n):
            out = out * self
        return out

    def __eq__(self, other):
        return isinstance(other, poly1d) and weft.array_equal(self.coef, other.coef)

    __hash__ = None

    def deriv(self, m=1):
        """The m-th derivative."""
        return polyder(self, m)

    def integ(self, m=1, k=0):
        """The m-th integral."""
        return polyint(self, m, k)

    def __repr__(self):
        return f"poly1d({self.coef.tolist()})"
