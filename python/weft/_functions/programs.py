# SPDX-License-Identifier: Apache-2.0
"""Operators that are one program for every device (src/weft/operators/plain.def)."""

from __future__ import annotations

import weft

from .. import _core
from .._core import NDArray, Tensor
from .common import beside, real, value

__all__ = ["cdist"]


def _run(name, composed, *operands):
    """The program on arrays and tensors, in their common type; `composed` on values of transforms."""
    first = value(operands[0])
    operands = [first, *(beside(x, first) for x in operands[1:])]
    if not all(isinstance(x, (NDArray, Tensor)) for x in operands):
        return composed(*operands)
    operands = [real(x) for x in operands]
    dtype = weft.result_type(*(x.dtype for x in operands))
    tensors = [x if isinstance(x, Tensor) else Tensor(x, requires_grad=False) for x in operands]
    out = _core._plain_operator(name, [t.astype(dtype) for t in tensors])
    return out if any(isinstance(x, Tensor) for x in operands) else out.data


def cdist(x1, x2):
    """Euclidean distances between rows: out[..., i, j] is that of x1[..., i, :] and x2[..., j, :]."""
    return _run("cdist", _distances, x1, x2)


def _distances(x, y):
    difference = weft.expand_dims(x, axis=-2) - weft.expand_dims(y, axis=-3)
    return weft.sqrt(weft.sum(difference * difference, axis=-1))
