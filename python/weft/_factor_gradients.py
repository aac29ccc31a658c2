# SPDX-License-Identifier: Apache-2.0
"""Gradients of factorisations, written in operations that have gradients themselves.

With <X, Y> = Re tr(X^H Y) each rule takes the gradient of one factor to the gradient of the matrix. Where a
factorisation leaves something open (the phase of a singular vector, the order of equal eigenvalues) only functions that do
not depend on the choice have a gradient; equal eigenvalues or singular values give infinities and NaN, as in PyTorch.
"""

from __future__ import annotations

import math

from . import _core
from ._core import Tensor
from ._errors import error as _error


def _weft():
    import weft

    return weft


def adjoint(x):
    """Matrices transposed and conjugated."""
    return _core.operations["conj"](x.mT) if x.dtype.kind == "c" else x.mT


def _one(x):
    """The unit matrix for the last axis of x."""
    real = {"complex64": "float32", "complex128": "float64"}.get(str(x.dtype), x.dtype)
    return _weft().eye(x.shape[-1], dtype=real, device=x.device)


def _columns(x, scale):
    return x * scale[..., None, :]


def _rows(x, scale):
    return x * scale[..., :, None]


def _gaps(values):
    """values[j] - values[i] at (i, j), 1 on the diagonal."""
    return values[..., None, :] - values[..., :, None] + _one(values)


def _lower_half(x):
    """The lower triangle with half of the diagonal."""
    return _weft().tril(x) - x * (_one(x) * 0.5)


def link(name, x, found, pulls, again):
    """The arrays of a factorisation of x as nodes of the graph: pull(g, *factors) is the gradient of x for that of one factor.

    A gradient of the gradient needs the factors' own graph: again(x) makes it.
    """
    kept = [Tensor(a, requires_grad=False) for a in found]

    def rule_of(pull):
        def rule(xs, result, g):
            factors = again(xs[0]) if _core.grad_enabled() else kept
            found = pull(g, *factors)
            return [found if found is None or isinstance(found, Tensor) else Tensor(found, requires_grad=False)]  # fmt: skip

        return rule

    return [
        _core._function_tensor(name, a, [x], rule_of(pull), [0], False)
        for a, pull in zip(found, pulls)
    ]


def cholesky(g, factor, upper):
    """Of L, or of L^H where upper."""
    low, g = (adjoint(factor), adjoint(g)) if upper else (factor, g)
    half = _lower_half(adjoint(low) @ g)
    solve = _weft().linalg.solve_triangular
    left = solve(adjoint(low), half + adjoint(half), upper=True)
    return adjoint(solve(adjoint(low), adjoint(left), upper=True)) * 0.5


def eigh_values(g, values, vectors):
    return _columns(vectors, g) @ adjoint(vectors)


def eigh_vectors(g, values, vectors):
    turn = adjoint(vectors) @ g
    turn = (turn - adjoint(turn)) * 0.5 * (1.0 - _one(g)) / _gaps(values)
    return vectors @ turn @ adjoint(vectors)


def of_real(x, like):
    """The gradient of a real matrix from that of complex factors."""
    return _weft().real(x) if like.dtype.kind != "c" else x


def eig_values(g, values, vectors):
    return _weft().linalg.solve(adjoint(vectors), _rows(adjoint(vectors), g))


def eig_vectors(g, values, vectors):
    turn = adjoint(vectors) @ g
    along = _weft().real(_weft().linalg.diagonal(turn))
    turn = turn - adjoint(vectors) @ _columns(vectors, along)
    gaps = _core.operations["conj"](_gaps(values))
    turn = turn * (1.0 - _one(vectors)) / gaps
    return _weft().linalg.solve(adjoint(vectors), turn @ adjoint(vectors))


def svd_values(g, u, s, vh):
    return _columns(u, g) @ vh


def _turned(x, s):
    """Half turns in the planes of two singular vectors, over the gaps of the squares; and the turn of each phase."""
    skew = x - adjoint(x)
    one = _one(x)
    phase = skew * one / (s[..., None, :] * 4.0) if x.dtype.kind == "c" else None
    return skew * (1.0 - one) / _gaps(s * s), phase


def svd_left(g, u, s, vh):
    turn, phase = _turned(adjoint(u) @ g, s)
    turn = _columns(turn, s)
    out = u @ (turn if phase is None else turn + phase)
    if u.shape[-2] > u.shape[-1]:
        out = out + _columns(g - u @ (adjoint(u) @ g), 1.0 / s)
    return out @ vh


def svd_right(g, u, s, vh):
    turn, phase = _turned(vh @ adjoint(g), s)
    turn = _rows(turn, s)
    out = (turn if phase is None else turn - phase) @ vh
    if vh.shape[-1] > vh.shape[-2]:
        out = out + _rows(g - (g @ adjoint(vh)) @ vh, 1.0 / s)
    return u @ out


def open_vectors(what, shape):
    """The rule of singular vectors beyond the smaller extent: any turn among them gives as good ones."""

    def unknown(xs, result, g):
        return [Tensor(_weft().full_like(x.data, math.nan), requires_grad=False) for x in xs]

    def pull(g, *_):
        if bool(_weft().any(g.data != 0)):
            raise _error(
                _core.ArgumentError,
                "array.svd.gradient",
                f"the gradient of {what} beyond the smaller extent of matrices of shape {tuple(shape)}",
                ["the factorisation does not determine these vectors, so they have no gradient"],
                help="full_matrices=False, or use the first min(m, n) vectors",
            )
        if not g.requires_grad:
            return None
        # Forward derivatives and those of higher order of these vectors are no numbers; most programs never look at them.
        zeros = _weft().zeros(tuple(shape), dtype=g.dtype, device=g.device)
        return _core._function_tensor("svd", zeros, [g], unknown, [0], False)

    return pull


def _qr_tall(gq, gr, q, r):
    """With at least as many rows as columns; a gradient that is None is 0."""
    middle = None if gr is None else gr @ adjoint(r)
    if gq is not None:
        own = adjoint(q) @ gq
        middle = -own if middle is None else middle - own
    half = _weft().triu(middle) - middle * (_one(middle) * 0.5)
    out = q @ (half + adjoint(half))
    out = out if gq is None else out + gq
    return adjoint(_weft().linalg.solve_triangular(r, adjoint(out), upper=True))


def _qr_wide(gq, gr, q, r):
    """The first square of columns makes q; the others are in r alone."""
    m = q.shape[-1]
    if gr is None:
        return _weft().concat([_qr_tall(gq, None, q, r[..., :m]), r[..., m:] * 0], axis=-1)
    behind = gr[..., m:]
    # What r has behind its square is q^H times those columns of the matrix, so q gets a gradient from there, too.
    more = q @ (r[..., m:] @ adjoint(behind))
    first = _qr_tall(more, gr[..., :m], q, r[..., :m])
    return _weft().concat([first, q @ behind], axis=-1)


def qr_orthogonal(g, q, r):
    tall = r.shape[-2] == r.shape[-1]
    return _qr_tall(g, None, q, r) if tall else _qr_wide(g, None, q, r)


def qr_triangular(g, q, r):
    tall = r.shape[-2] == r.shape[-1]
    return _qr_tall(None, g, q, r) if tall else _qr_wide(None, g, q, r)


def pinv(g, x, y):
    """Of the generalised inverse y of x, where the rank stays (Golub and Pereyra)."""
    yh, gh = adjoint(y), adjoint(g)
    right, left = gh @ y @ yh, yh @ y @ gh
    return right - x @ (y @ right) + left - (left @ y) @ x - yh @ g @ yh
