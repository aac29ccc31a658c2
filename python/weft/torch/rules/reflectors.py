# SPDX-License-Identifier: Apache-2.0
"""Orthogonal matrices as products of reflectors: householder_product, ormqr, geqrf.

k reflectors are I - V T V' with a triangular T of k rows, so that they are applied by products of matrices.
"""

from __future__ import annotations

import weft

from ... import _core
from .common import array, complex_too
from .factorisations import _conj, _need_elements


def _compact(a, tau):
    """(V, T): the product of the reflectors that lie below the diagonal of a is I - V T V'."""
    k = tau.shape[-1]
    v = weft.tril(a[..., :k], k=-1) + weft.eye(a.shape[-2], k, dtype=a.dtype)
    # T is the inverse of diag(1 / tau) + the part of V'V above the diagonal, without the quotients by tau.
    products = weft.triu(_conj(v.mT) @ v, k=1)
    scale = tau[..., None] * weft.eye(k, dtype=a.dtype)
    unit = weft.eye(k, dtype=a.dtype) + tau[..., None] * products
    return v, _core._solve_triangular(unit, scale, True, True)


def _applied(v, t, x, adjoint):
    """The product of the reflectors, or its adjoint, with x."""
    return x - v @ ((_conj(t.mT) if adjoint else t) @ (_conj(v.mT) @ x))


@array("linalg_householder_product.default")
def _product(c, a, tau):
    _need_elements(a, tau)
    one = weft.eye(a.shape[-2], a.shape[-1], dtype=a.dtype).broadcast_to(a.shape)
    return _applied(*_compact(a, tau), one, False)


@array("ormqr.default")
def _multiplied(c, a, tau, other, left=True, transpose=False):
    _need_elements(a, tau, other)
    v, t = _compact(a, tau)
    if left:
        return _applied(v, t, other, transpose)
    return _conj(_applied(v, t, _conj(other.mT), not transpose).mT)


complex_too("linalg_householder_product.default", "ormqr.default")
