# SPDX-License-Identifier: Apache-2.0
"""Distances between the rows of two matrices."""

from __future__ import annotations

import weft

from .. import _core
from .._core import NDArray, Tensor
from .common import beside, real, refused

__all__ = ["cdist"]


def _program(name, *operands):
    """An operator of src/weft/operators/plain, in the common type of its operands."""
    dtype = weft.result_type(*(x.dtype for x in operands))
    tensors = [x if isinstance(x, Tensor) else Tensor(x, requires_grad=False) for x in operands]
    out = _core._plain_operator(name, [t.astype(dtype) for t in tensors])
    return out if any(isinstance(x, Tensor) for x in operands) else out.data


def cdist(x1, x2, p=2.0):
    """The p-norms of the differences of all rows (..., n, d) and (..., m, d): (..., n, m)."""
    a = real(x1)
    b = real(beside(x2, a))
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise refused(
            "array.cdist.shape",
            f"cdist of shapes {tuple(a.shape)} and {tuple(b.shape)}",
            "matrices whose rows are equally long",
        )
    # Values of transforms are composed, so that they can be traced, batched and differentiated again.
    if p == 2 and all(isinstance(x, (NDArray, Tensor)) and x.dtype.kind == "f" for x in (a, b)):
        if a.shape[:-2] != b.shape[:-2]:
            batch = weft.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            a, b = (weft.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
        return _program("cdist", a, b)
    away = weft.abs(weft.expand_dims(a, axis=-2) - weft.expand_dims(b, axis=-3))
    if p == 2:
        return weft.sqrt(weft.sum(away * away, axis=-1))
    if p == float("inf"):
        return weft.max(away, axis=-1)
    if p == 0:
        return weft.sum((away != 0).astype(a.dtype), axis=-1)
    return weft.sum(away**p, axis=-1) ** (1.0 / p) if p != 1 else weft.sum(away, axis=-1)
