# SPDX-License-Identifier: Apache-2.0
"""The largest singular value of a matrix by power iterations, as both kinds of spectral norm keep it."""

from __future__ import annotations

import weft


def _unit(x, eps):
    return x / weft.maximum(weft.sqrt(weft.sum(x * x)), eps)


def start(matrix, eps):
    """Random unit vectors by the names that modules keep them under: left and right."""
    made = {"dtype": matrix.dtype, "device": matrix.device}
    for name, size in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
        yield name, _unit(weft.random.normal((size,), **made), eps)


def renewed(matrix, u, v, rounds, eps):
    """Both vectors after `rounds` iterations."""
    for _ in range(rounds):
        v = _unit(matrix.T @ u, eps)
        u = _unit(matrix @ v, eps)
    return u, v


def value(matrix, u, v):
    """u' matrix v, differentiable in the matrix."""
    return (matrix * (u.reshape(-1, 1) * v.reshape(1, -1))).sum()
