# SPDX-License-Identifier: Apache-2.0
"""einsum by pairwise contraction: each step is a batched matrix product."""

from __future__ import annotations

import math

from . import _core
from ._errors import error as _error


def _refuse(code, text):
    raise _error(_core.ShapeError, f"array.einsum.{code}", f"{text}")


def _parse(spec, operands):
    spec = spec.replace(" ", "")
    left, arrow, right = spec.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        _refuse(
            "operands", f"einsum {spec!r} names {len(terms)} operands, {len(operands)} were given"
        )
    used = {c for c in spec if c.isalpha()}
    spare = [c for c in map(chr, range(0x3B1, 0x3B1 + 64)) if c not in used]
    wide = 0
    for term, x in zip(terms, operands):
        if "..." in term:
            wide = max(wide, x.ndim - len(term.replace("...", "")))
    dots = "".join(spare[:wide])
    out = []
    for term, x in zip(terms, operands):
        if "..." in term:
            n = x.ndim - len(term.replace("...", ""))
            term = term.replace("...", dots[len(dots) - n :] if n else "")
        if len(term) != x.ndim:
            _refuse(
                "rank", f"einsum term {term!r} names {len(term)} axes, the operand has {x.ndim}"
            )
        out.append(term)
    if arrow:
        right = right.replace("...", dots)
    else:
        letters = "".join(out)
        right = dots + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots)
        )
    for c in right:
        if not any(c in term for term in out):
            _refuse("output", f"einsum output letter {c!r} is in no operand of {spec!r}")
    return out, right


def _diagonal(x, term):
    """Repeated letters inside one operand become one axis."""
    for c in set(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            if x.shape[i] != x.shape[j]:
                _refuse("extent", f"einsum letter {c!r} has extents {x.shape[i]} and {x.shape[j]}")
            if isinstance(x, _core.Tensor):
                x, term = _tensor_diagonal(x, term, i, j)
                continue
            shape = [n for k, n in enumerate(x.shape) if k != j]
            strides = [s for k, s in enumerate(x.strides) if k != j]
            strides[i] = x.strides[i] + x.strides[j]
            x = x.as_strided(shape, strides)
            term = term[:j] + term[j + 1 :]
    return x, term


def _tensor_diagonal(x, term, i, j):
    """The diagonal of axes i < j first, the other axes after it."""
    n = x.shape[i]
    rest = [k for k in range(x.ndim) if k not in (i, j)]
    flat = x.permute(i, j, *rest).reshape(n * n, *(x.shape[k] for k in rest))
    return flat[:: n + 1], term[i] + "".join(term[k] for k in rest)


def _contract(a, ta, b, tb, keep):
    import weft

    batch = [c for c in ta if c in tb and c in keep]
    gone = [c for c in ta if c in tb and c not in keep]
    only_a = [c for c in ta if c not in tb]
    only_b = [c for c in tb if c not in ta]
    size = {}
    for t, x in ((ta, a), (tb, b)):
        for c, n in zip(t, x.shape):
            if size.get(c, 1) != 1 and n != 1 and size[c] != n:
                _refuse("extent", f"einsum letter {c!r} has extents {size[c]} and {n}")
            size[c] = max(size.get(c, 1), n) if n != 0 and size.get(c, 1) != 0 else 0

    def arrange(x, t, groups):
        x = weft.permute_dims(x, tuple(t.index(c) for g in groups for c in g))
        x = weft.broadcast_to(x, tuple(size[c] for g in groups for c in g))
        return weft.reshape(x, tuple(math.prod(size[c] for c in g) for g in groups))

    product = weft.matmul(
        arrange(a, ta, (batch, only_a, gone)), arrange(b, tb, (batch, gone, only_b))
    )
    letters = "".join(batch + only_a + only_b)
    return weft.reshape(product, tuple(size[c] for c in letters)), letters


def einsum(spec, *operands):
    import weft

    operands = [
        x if isinstance(x, (_core.NDArray, _core.Tensor)) else weft.asarray(x) for x in operands
    ]
    terms, right = _parse(spec, operands)
    pairs = [_diagonal(x, t) for x, t in zip(operands, terms)]

    def reduce_unused(x, t, others):
        drop = tuple(
            i for i, c in enumerate(t) if c not in right and not any(c in o for o in others)
        )
        if drop:
            x = weft.sum(x, axis=drop, dtype=x.dtype)
            t = "".join(c for i, c in enumerate(t) if i not in drop)
        return x, t

    while len(pairs) > 1:
        (a, ta), (b, tb) = pairs.pop(0), pairs.pop(0)
        rest = [t for _, t in pairs]
        a, ta = reduce_unused(a, ta, [tb, *rest])
        b, tb = reduce_unused(b, tb, [ta, *rest])
        keep = set(right).union(*rest) if rest else set(right)
        pairs.insert(0, _contract(a, ta, b, tb, keep))
    x, t = reduce_unused(*pairs[0], [])
    if t:
        x = weft.permute_dims(x, tuple(t.index(c) for c in right))
    return x if isinstance(x, _core.Tensor) or not t else x.copy()
