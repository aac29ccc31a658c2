# SPDX-License-Identifier: Apache-2.0
"""The order of einsum's products, and products of matrices with vectors in the last axes."""

from __future__ import annotations

import math

import weft

from .common import beside, refused, value


def einsum_path(subscripts, *operands, optimize="greedy", einsum_call=False):
    """(['einsum_path', (i, j), ...], a text): the pairs that einsum contracts, in order, as positions in the list that remains, whose end each
    result goes to; and what it saves. `optimize` as in NumPy: False contracts all at once, a list is taken as it is; True, "greedy" and
    "optimal" give the order that weft.einsum takes.
    """
    from .._einsum import _extents, _parse, contraction_path

    shapes = [tuple(value(x).shape) for x in operands]
    if not isinstance(subscripts, str):
        raise refused("array.einsum.operands", f"einsum_path of a {type(subscripts).__name__}", "the letters first: einsum_path('ij,jk->ik', a, b)")  # fmt: skip
    terms, right = _parse(subscripts, tuple(len(s) for s in shapes))
    sizes = _extents(list(zip(shapes, terms)))
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        path = [tuple(p) for p in optimize[1:]]
    elif optimize is False or len(terms) < 3:
        path = [tuple(range(len(terms)))]
    else:
        path = list(contraction_path(tuple(terms), right, tuple(sorted(sizes.items()))))
    return ["einsum_path", *path], _report(terms, right, sizes, path)


def _report(terms, right, sizes, path):
    def volume(letters):
        return math.prod(sizes[c] for c in letters)

    whole = volume(set("".join(terms)))
    left, lines, total, largest = list(terms), [], 0, volume(right)
    for pair in path:
        taken = [left[k] for k in pair]
        for k in sorted(pair, reverse=True):
            del left[k]
        rest = set("".join(left)) | set(right)
        kept = "".join(sorted(c for c in set("".join(taken)) if c in rest)) if left else right
        left.append(kept)
        total += volume(set("".join(taken))) * max(1, len(taken) - 1)
        largest = max(largest, volume(kept))
        lines.append(f"  {','.join(taken)}->{kept}")
    head = [
        f"  {','.join(terms)}->{right}",
        f"  multiplications at once: {whole * max(1, len(terms) - 1):.3e}",
        f"  multiplications in this order: {total:.3e}",
        f"  largest intermediate result: {largest:.3e} elements",
    ]
    return "\n".join([*head, *lines])


def matvec(x1, x2):
    """Matrices (..., m, n) times vectors (..., n)."""
    x1 = value(x1)
    x2 = beside(x2, x1)
    return weft.matmul(x1, weft.expand_dims(x2, axis=-1))[..., 0]


def vecmat(x1, x2):
    """Vectors (..., m), conjugated, times matrices (..., m, n)."""
    x1 = value(x1)
    x2 = beside(x2, x1)
    x1 = weft.conj(x1) if x1.dtype.kind == "c" else x1
    return weft.matmul(weft.expand_dims(x1, axis=-2), x2)[..., 0, :]
