# SPDX-License-Identifier: Apache-2.0
"""Distances between the rows of two matrices."""

from __future__ import annotations

import weft

from .common import beside, real, refused

__all__ = ["cdist"]


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
    away = weft.abs(weft.expand_dims(a, axis=-2) - weft.expand_dims(b, axis=-3))
    if p == 2:
        return weft.sqrt(weft.sum(away * away, axis=-1))
    if p == float("inf"):
        return weft.max(away, axis=-1)
    if p == 0:
        return weft.sum((away != 0).astype(a.dtype), axis=-1)
    return weft.sum(away**p, axis=-1) ** (1.0 / p) if p != 1 else weft.sum(away, axis=-1)
