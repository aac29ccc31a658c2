# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and vectors."""

from __future__ import annotations

import math

import weft

from ... import _core
from .common import HALVES, Unsupported, array, as_type

_product = _core._matmul


def _checked(c, *arrays):
    if any(str(a.dtype) == "bool" for a in arrays):
        raise Unsupported("products of booleans")
    return arrays


def _on_host(x):
    """Whether products of float32 cost as much as those of 16-bit floats, which is not so on cards."""
    return x.device.host_accessible


def _added(product, x):
    """The sum in the memory of a product that nothing else knows."""
    if str(x.dtype) != str(product.dtype):
        return product + x
    product += x
    return product


@array("mm.default", "bmm.default", "mv.default", "dot.default", "matmul.default")
def _mm(c, a, b):
    return _product(*_checked(c, a, b))


@array("vdot.default")
def _vdot(c, a, b):
    a, b = _checked(c, a, b)
    return _product(a.conj(), b)


@array("addmm.default", "baddbmm.default", "addmv.default")
def _addmm(c, start, a, b, *, beta=1, alpha=1):
    _checked(c, a, b)
    if "float" not in c.dtype and not (isinstance(beta, int) and isinstance(alpha, int)):
        raise Unsupported("integers scaled by a fraction")
    wide = c.dtype in HALVES and (
        _on_host(a) or not beta == alpha == 1
    )  # rounded once, as in torch
    if wide:
        start, a, b = (v.astype("float32") for v in (start, a, b))
    product = _product(a, b)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return as_type(product, c.dtype)
    return as_type(_added(product, start if beta == 1 else start * beta), c.dtype)


@array("addbmm.default")
def _addbmm(c, start, a, b, *, beta=1, alpha=1):
    n, rows, inner = a.shape
    if not n * inner:
        raise Unsupported("a product without elements")
    # The sum over the batch as one product: rows x (batch and inner) by (batch and inner) x columns.
    joined = a.permute((1, 0, 2)).reshape((rows, n * inner)), b.reshape((n * inner, b.shape[2]))
    return _addmm(c, start, *joined, beta=beta, alpha=alpha)


@array("linear.default")
def _linear(c, x, weight, bias=None):
    _checked(c, x, weight)
    if bias is not None and c.dtype in HALVES and _on_host(x):  # rounded once, as in torch
        x, weight, bias = (v.astype("float32") for v in (x, weight, bias))
    product = _product(x.reshape((math.prod(x.shape[:-1]), x.shape[-1])), weight.T)
    product = product if bias is None else _added(product, bias)
    return as_type(product, c.dtype).reshape(c.shape)


@array("_trilinear.default")
def _trilinear(c, a, b, d, expand_a, expand_b, expand_d, summed, unroll_dim=1):
    """The product of three arrays, each with axes of one element put in, summed over some axes."""
    _checked(c, a, b, d)
    parts = []
    for x, axes in ((a, expand_a), (b, expand_b), (d, expand_d)):
        for axis in sorted(axes):
            x = _core._expand_dims(x, axis)
        parts.append(x)
    if any(not x.size for x in parts):
        raise Unsupported("a product without elements")
    out = parts[0] * parts[1] * parts[2]
    return as_type(weft.sum(out, axis=tuple(summed)) if summed else out, c.dtype)


def _bounds(ends, rows):
    """(first, last) of each group's rows, by where the groups end."""
    ends = [min(max(int(e), 0), rows) for e in ends.tolist()]
    return list(zip([0, *ends[:-1]], ends))


def _with_rest(parts, rows, columns, x):
    """Parts of rows beside each other, zeros behind the last group."""
    missing = rows - sum(p.shape[0] for p in parts)
    if missing or not parts:
        parts = [*parts, weft.zeros((missing, columns), dtype=x.dtype, device=x.device)]
    return parts[0] if len(parts) == 1 else weft.concat(parts, axis=0)


@array("grouped_mm_fallback.default", space="transformers")
def _grouped(c, x, weight, ends):
    """Rows in the order of their groups (experts), each group with a matrix of its own."""
    _checked(c, x, weight)
    parts = [x[a:b] @ weight[i] for i, (a, b) in enumerate(_bounds(ends, x.shape[0])) if a < b]
    return _with_rest(parts, x.shape[0], weight.shape[2], x)


@array("grouped_mm_fallback_backward.default", space="transformers")
def _grouped_backward(c, x, weight, ends, g):
    _checked(c, x, weight)
    bounds = _bounds(ends, x.shape[0])
    of_x = [g[a:b] @ weight[i].T for i, (a, b) in enumerate(bounds) if a < b]
    nothing = weft.zeros(tuple(weight.shape[1:]), dtype=weight.dtype, device=weight.device)
    of_weight = [x[a:b].T @ g[a:b] if a < b else nothing for a, b in bounds]
    return _with_rest(of_x, x.shape[0], x.shape[1], x), weft.stack(of_weight)
