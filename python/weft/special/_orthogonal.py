# SPDX-License-Identifier: Apache-2.0
"""Orthogonal polynomials under torch.special's names, by their recurrences."""

from __future__ import annotations

import weft

from .._functions.common import beside, plain, real, refused

#: name -> (p1 from x, p[k + 1] from (x, k, p[k], p[k - 1])); p0 is 1.
_TWICE = lambda x, k, p, before: 2.0 * x * p - before  # noqa: E731
_RULES = {
    "chebyshev_polynomial_t": (lambda x: x, _TWICE),
    "chebyshev_polynomial_u": (lambda x: 2.0 * x, _TWICE),
    "chebyshev_polynomial_v": (lambda x: 2.0 * x - 1.0, _TWICE),
    "chebyshev_polynomial_w": (lambda x: 2.0 * x + 1.0, _TWICE),
    "hermite_polynomial_h": (
        lambda x: 2.0 * x,
        lambda x, k, p, before: 2.0 * x * p - (2.0 * k) * before,
    ),
    "hermite_polynomial_he": (lambda x: x, lambda x, k, p, before: x * p - float(k) * before),
    "laguerre_polynomial_l": (
        lambda x: 1.0 - x,
        lambda x, k, p, before: ((2.0 * k + 1.0 - x) * p - float(k) * before) / (k + 1.0),
    ),
    "legendre_polynomial_p": (
        lambda x: x,
        lambda x, k, p, before: ((2.0 * k + 1.0) * x * p - float(k) * before) / (k + 1.0),
    ),
}
_MOST = 1 << 16  # degrees, each of which is some operations


def _values(name, x, n, shifted):
    x = real(x)
    x = 2.0 * x - 1.0 if shifted else x
    several = getattr(plain(n), "ndim", 0) > 0
    degrees = plain(beside(n, x)) if several else int(n)
    most = (int(weft.max(degrees)) if degrees.size else -1) if several else degrees
    if most > _MOST:
        raise refused("special.degree", f"{name} of degree {most}", f"degrees up to {_MOST}")
    first, following = _RULES[name]
    before, now = None, x * 0.0 + 1.0
    out = x * 0.0 * weft.ones_like(degrees).astype(x.dtype) if several else x * 0.0
    for k in range(most + 1):
        if several:
            out = weft.where(degrees == k, now, out)
        elif k == most:
            return now
        before, now = now, first(x) if k == 0 else following(x, k, now, before)
    return out  # of negative degrees 0


def _function(name, shifted=False):
    def polynomial(input, n):
        return _values(name, input, n, shifted)

    own = f"shifted_{name}" if shifted else name
    family, letter = name.split("_polynomial_")
    polynomial.__name__ = polynomial.__qualname__ = own
    polynomial.__doc__ = (
        f"{family.capitalize()}'s polynomial {letter.capitalize()} of degree n, a number or an array of integers, at "
        f"{'2 input - 1' if shifted else 'input'}; 0 of negative degrees."
    )
    return polynomial


for _name in _RULES:
    globals()[_name] = _function(_name)
    if _name.startswith("chebyshev"):
        globals()["shifted_" + _name] = _function(_name, shifted=True)
NAMES = " ".join([*_RULES, *("shifted_" + n for n in _RULES if n.startswith("chebyshev"))])
