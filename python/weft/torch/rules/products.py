# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and vectors."""

from __future__ import annotations

from ... import _core
from .common import Unsupported, array

_product = _core._matmul


def _checked(c, *arrays):
    if any(str(a.dtype) == "bool" for a in arrays):
        raise Unsupported("products of booleans")
    return arrays


@array("mm.default", "bmm.default", "mv.default", "dot.default", "vdot.default", "matmul.default")
def _mm(c, a, b):
    return _product(*_checked(c, a, b))


def _accumulated(c, start, product, beta, alpha):
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    start = start if beta == 1 else start * beta
    return (product + start).astype(c.dtype)


@array("addmm.default", "baddbmm.default", "addmv.default")
def _addmm(c, start, a, b, *, beta=1, alpha=1):
    return _accumulated(c, start, _product(*_checked(c, a, b)), beta, alpha)
