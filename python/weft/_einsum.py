# SPDX-License-Identifier: Apache-2.0
"""einsum by pairwise contraction in a cheap order: each step is a batched product or an elementwise one."""

from __future__ import annotations

import functools
import math

from ._core import shown as _shown
from . import _core
from ._errors import error as _error


#: Terms of sums from which on a product of matrices is faster, and types that sums keep.
_LEAST_SUM = 64
_SUMMED = ("float32", "float64")

_DIAGONALS = frozenset(f"{c}{c}->{c}" for c in map(chr, range(ord("a"), ord("z") + 1)))


@functools.lru_cache(maxsize=256)
def _view_of(spec, ndim):
    """The order of axes where spec is a permutation of one operand, else None."""
    term, arrow, right = spec.replace(" ", "").partition("->")
    plain = arrow and term.isalpha() and len(term) == ndim == len(set(term))
    return tuple(term.index(c) for c in right) if plain and sorted(term) == sorted(right) else None


def _refuse(code, text):
    raise _error(
        _core.ShapeError,
        f"array.einsum.{code}",
        f"{text}",
        help='write one letter for each axis: "ij,jk->ik"; one letter has one extent',
    )


@functools.lru_cache(maxsize=256)
def _parse(spec, ranks):
    """(the letters of each operand, those of the result) for operands of these ranks."""
    spec = spec.replace(" ", "")
    left, arrow, right = spec.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        _refuse(
            "operands",
            f"einsum {_shown(spec)} names {len(terms)} operands, {len(ranks)} were given",
        )
    used = {c for c in spec if c.isalpha()}
    spare = [c for c in map(chr, range(0x3B1, 0x3B1 + 64)) if c not in used]
    wide = 0
    for term, rank in zip(terms, ranks):
        if "..." in term:
            wide = max(wide, rank - len(term.replace("...", "")))
    dots = "".join(spare[:wide])
    out = []
    for term, rank in zip(terms, ranks):
        if "..." in term:
            n = rank - len(term.replace("...", ""))
            term = term.replace("...", dots[len(dots) - n :] if n else "")
        if len(term) != rank:
            _refuse(
                "rank", f"einsum term {_shown(term)} names {len(term)} axes, the operand has {rank}"
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
            _refuse(
                "output", f"einsum output letter {_shown(c)} is in no operand of {_shown(spec)}"
            )
        if right.count(c) > 1:
            _refuse("output", f"einsum output letter {_shown(c)} stands twice in {_shown(spec)}")
    return out, right


def _diagonals(term, shape):
    """Pairs of axes that become one, which goes to the end, until no letter repeats; the letters of the axes that are left."""
    size, pairs = list(shape), []
    for c in dict.fromkeys(term):
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            if size[i] != size[j]:
                _refuse("extent", f"einsum letter {_shown(c)} has extents {size[i]} and {size[j]}")
            pairs.append((i, j))
            term = "".join(term[k] for k in range(len(term)) if k not in (i, j)) + c
            size = [size[k] for k in range(len(size)) if k not in (i, j)] + [size[i]]
    return pairs, term


def _diagonal(x, i, j):
    return _tensor_diagonal(x, i, j) if isinstance(x, _core.Tensor) else _core._diagonal(x, i, j)


def _tensor_diagonal(x, i, j):
    """The diagonal of axes i < j last, the other axes before it."""
    n = x.shape[i]
    rest = [k for k in range(x.ndim) if k not in (i, j)]
    flat = x.permute(i, j, *rest).reshape(n * n, *(x.shape[k] for k in rest))[:: n + 1]
    return flat.permute(*range(1, flat.ndim), 0) if rest else flat


@functools.lru_cache(maxsize=256)
def contraction_path(terms, right, sizes):
    """Pairs to contract, each of positions (i, j), i < j, in the list that remains; the result goes to its end.

    Greedy: the pair whose product adds least to what is stored, then the one with fewest multiplications; pairs
    without a common letter wait until nothing else is left. `sizes` are (letter, extent) pairs.
    """
    size = dict(sizes)

    def volume(letters):
        return math.prod(size[c] for c in letters)

    left, path = [frozenset(t) for t in terms], []
    while len(left) > 2:
        names = [c for t in left for c in t]
        count = {c: names.count(c) for c in set(names)}
        best = None
        for j in range(1, len(left)):
            for i in range(j):
                a, b = left[i], left[j]
                both = a | b
                kept = frozenset(c for c in both if c in right or count[c] > (c in a) + (c in b))
                grows = volume(kept) - volume(a) - volume(b)
                cost = (not a & b, grows, volume(both), i, j)
                if best is None or cost < best[0]:
                    best = cost, kept
        (_, _, _, i, j), kept = best
        path.append((i, j))
        del left[j], left[i]
        left.append(kept)
    return (*path, (0, 1)) if len(left) == 2 else ()


def _extents(pairs):
    """(letter, extent) of all operands; an extent of one is spread."""
    size = {}
    for shape, t in pairs:
        for c, n in zip(t, shape):
            old = size.setdefault(c, n)
            if old != n and old != 1 and n != 1:
                _refuse("extent", f"einsum letter {_shown(c)} has extents {old} and {n}")
            if old == 1:
                size[c] = n
    return size


@functools.lru_cache(maxsize=256)
def _step(ta, shape_a, tb, shape_b, keep, sizes):
    """How two operands are contracted: (order of axes, spread to, shape) of both, None where nothing changes, whether they are multiplied element
    by element (the orders of their axes, summed ones last, where they may be), whether the result has to be brought into its shape, this and its letters."""
    size = dict(sizes)
    batch = [c for c in ta if c in tb and c in keep]
    gone = [c for c in ta if c in tb and c not in keep]
    only_a = [c for c in ta if c not in tb]
    only_b = [c for c in tb if c not in ta]
    letters = "".join(batch + only_a + only_b)
    result = tuple(size[c] for c in letters)

    def order(t, wanted):
        at = tuple(t.index(c) for c in wanted)
        return None if at == tuple(range(len(at))) else at

    def way(shape, order, spread, wanted):
        return (
            None
            if order is None and spread in (None, shape) and wanted == shape
            else (order, spread, wanted)
        )

    def volumes(groups):
        return tuple(math.prod(size[c] for c in g) for g in groups)

    if not gone:  # nothing is summed: one elementwise product over all letters
        ways, spread = [], []
        for t, shape in ((ta, shape_a), (tb, shape_b)):
            full = tuple(shape[t.index(c)] if c in t else 1 for c in letters)
            ways.append(way(shape, order(t, [c for c in letters if c in t]), None, full))
            spread.append(full)
        return (*ways, True, tuple(map(max, *spread)) != result, result, letters)

    def arranged(t, shape, groups):
        wanted = [c for g in groups for c in g]
        return way(shape, order(t, wanted), tuple(size[c] for c in wanted), volumes(groups))

    alone = len(ta) == len(tb) == 1 and not batch and ta == tb  # a vector with a vector
    stack = [batch] if batch else []
    first, second = ([*stack, only_a, gone], [*stack, gone, only_b]) if not alone else ([gone],) * 2
    # Many short sums, or sums that do not run along memory: one product element by element, then sums.
    apart = batch and not only_a and not only_b
    if apart and shape_a == tuple(size[c] for c in ta) and shape_b == tuple(size[c] for c in tb):
        brief = math.prod(size[c] for c in gone) < _LEAST_SUM or not {ta[-1], tb[-1]} & set(gone)
        apart = brief and (order(ta, batch + gone), order(tb, batch + gone))
    else:
        apart = False
    turned = not alone and volumes([*stack, only_a, only_b]) != result
    return (
        arranged(ta, shape_a, first),
        arranged(tb, shape_b, second),
        apart,
        turned,
        result,
        letters,
    )


def _by_vector(ta, shape_a, tb, shape_b, right):
    """A vector by an axis that is not the last, whose other axes stay in order: (is the vector first?, shape of a stack of matrices, shape of the
    result), which is the vector's product with them and moves nothing; else None."""
    first = len(ta) == 1
    (v, n), (t, shape) = (
        ((ta, shape_a[0]), (tb, shape_b))
        if first
        else ((tb, shape_b[:1] and shape_b[0]), (ta, shape_a))
    )
    at = t.find(v) if len(v) == 1 else -1
    if not 0 <= at < len(t) - 1 or len(set(t)) < len(t) or right != t[:at] + t[at + 1 :]:
        return None
    if shape[at] != n or not math.prod(shape):
        return None
    stack = math.prod(shape[:at]), n, math.prod(shape[at + 1 :])
    return first, stack if at else stack[1:], shape[:at] + shape[at + 1 :]


@functools.lru_cache(maxsize=256)
def _pair(spec, shape_a, shape_b):
    """(the step of two operands, the order of its result's axes), or None where an operand is changed before; (None, `_by_vector`'s)."""
    (ta, tb), right = _parse(spec, (len(shape_a), len(shape_b)))
    if (plain := _by_vector(ta, shape_a, tb, shape_b, right)) is not None:
        return None, plain
    alone = set(ta) ^ set(tb)
    if len(set(ta)) < len(ta) or len(set(tb)) < len(tb) or not alone <= set(right):
        return None
    sizes = tuple(sorted(_extents(((shape_a, ta), (shape_b, tb))).items()))
    step = _step(ta, shape_a, tb, shape_b, frozenset(right), sizes)
    order = tuple(step[-1].index(c) for c in right)
    return step, None if order == tuple(range(len(order))) else order


def _arranged(x, order, spread, shape):
    import weft

    x = x if order is None else weft.permute_dims(x, order)
    x = x if spread is None or tuple(x.shape) == spread else weft.broadcast_to(x, spread)
    return x if tuple(x.shape) == shape else weft.reshape(x, shape)


def _contract(a, b, step):
    way_a, way_b, elementwise, turned, result, _ = step
    arrays = type(a) is type(b) is _core.NDArray
    if elementwise and elementwise is not True:
        if arrays and a.dtype == b.dtype and a.dtype in _SUMMED:
            a, b = (x if o is None else x.permute(o) for x, o in zip((a, b), elementwise))
            product = a * b
            axes = tuple(range(len(result), product.ndim))
            return _core._reduce("sum", product, axes, False, None)
        elementwise = False
    a = a if way_a is None else _arranged(a, *way_a)
    b = b if way_b is None else _arranged(b, *way_b)
    if arrays and not elementwise:
        product = a @ b
        return product.reshape(result) if turned else product
    import weft

    if elementwise:
        product = weft.logical_and(a, b) if a.dtype == b.dtype == "bool" else a * b
        return weft.broadcast_to(product, result) if turned else product
    product = weft.matmul(a, b)
    return weft.reshape(product, result) if turned else product


@functools.lru_cache(maxsize=256)
def _plan(spec, shapes):
    """Of operands with these shapes: (pairs of axes of each that become one, axes of each that are summed before any product,
    pairs of operands with their steps, the order of the result's axes)."""
    terms, right = _parse(spec, tuple(len(s) for s in shapes))
    size = _extents(zip(shapes, terms))
    pairs, apart = zip(*map(_diagonals, terms, shapes))
    drops, left = [], []
    for k, t in enumerate(apart):
        others = apart[:k] + apart[k + 1 :]
        drop = tuple(i for i, c in enumerate(t) if c not in right and not any(c in o for o in others))  # fmt: skip
        drops.append(drop)
        extent = dict(zip(terms[k], shapes[k]))
        t = "".join(c for i, c in enumerate(t) if i not in drop)
        left.append((tuple(extent[c] for c in t), t))
    sizes = tuple(sorted(size.items()))
    steps = []
    for i, j in contraction_path(tuple(t for _, t in left), right, sizes):
        (shape_b, tb), (shape_a, ta) = left.pop(j), left.pop(i)
        keep = frozenset(right).union(*(t for _, t in left))
        step = _step(ta, shape_a, tb, shape_b, keep, sizes)
        steps.append((i, j, step))
        left.append((step[-2], step[-1]))
    order = tuple(left[0][1].index(c) for c in right)
    return pairs, drops, steps, None if order == tuple(range(len(order))) else order


def _over(x, axes):
    """The sum over axes in the operand's type; of truth values whether any is true."""
    if not axes:
        return x
    if isinstance(x, _core.NDArray) and x.dtype in _SUMMED:
        return _core._reduce("sum", x, axes, False, None)
    import weft

    return weft.any(x, axis=axes) if x.dtype == "bool" else weft.sum(x, axis=axes, dtype=x.dtype)


_HELD = (_core.NDArray, _core.Tensor)


def einsum(spec, *operands):
    if len(operands) == 2 and isinstance(operands[0], _HELD) and isinstance(operands[1], _HELD):
        a, b = operands
        found = _pair(spec, tuple(a.shape), tuple(b.shape)) if "," in spec else None
        if found is not None and found[0] is None:
            first, stack, result = found[1]
            vector, matrices = (a, b) if first else (b, a)
            return (vector @ matrices.reshape(stack)).reshape(result)
        if found is not None:
            x = _contract(a, b, found[0])
            return x if found[1] is None else x.permute(found[1])
    import weft

    if len(operands) == 1 and isinstance(operands[0], _core.NDArray):
        x = operands[0]
        if spec in _DIAGONALS and x.ndim == 2 and x.shape[0] == x.shape[1]:
            return _core._diagonal(x, 0, 1)
        order = _view_of(spec, x.ndim)
        if order is not None:
            return x.permute(order)
        (axes,), (drop,), _, order = _plan(spec, (tuple(x.shape),))
        for i, j in axes:
            x = _core._diagonal(x, i, j)
        x = _over(x, drop)
        return x if order is None else x.permute(order)
    operands = [
        x if isinstance(x, (_core.NDArray, _core.Tensor)) else weft.asarray(x) for x in operands
    ]
    pairs, drops, steps, order = _plan(spec, tuple([tuple(x.shape) for x in operands]))
    left = []
    for x, axes, drop in zip(operands, pairs, drops):
        for i, j in axes:
            x = _diagonal(x, i, j)
        # What only one operand names is summed before any product.
        left.append(_over(x, drop))
    for i, j, step in steps:
        b, a = left.pop(j), left.pop(i)
        left.append(_contract(a, b, step))
    return left[0] if order is None else weft.permute_dims(left[0], order)
