# SPDX-License-Identifier: Apache-2.0
"""Functions of the array API standard 2024.12 that create, compare, move, find and sort with drawn types, odd shapes, options and special values,
against NumPy or against what the standard says of the result. What is fixed: test_standard.py."""

import itertools

import numpy as np
import pytest
import weft
from standard_draws import (
    ALL,
    BOOL,
    COMPLEX,
    DEVICES,
    FLOAT,
    INT,
    IN_NUMPY,
    NUMERIC,
    REAL,
    broadcast,
    run,
    same,
    table,
)

CASES, case = table()


# ---- creation


@case("arange")
def _(name, d):
    dtype, step = d.of(INT[:4] + REAL), d.of([1, 2, 3, -1, -2, 5])
    start, stop = d.int(-9, 9), d.int(-20, 20)
    same(
        weft.arange(start, stop, step, dtype=dtype, device=d.device),
        np.arange(start, stop, step, dtype=dtype),
        (start, stop, step, dtype),
    )


@case("linspace")
def _(name, d):
    dtype, n, end = d.of(REAL), d.int(0, 9), bool(d.int(0, 1))
    a, b = d.int(-9, 9), d.int(-9, 9)
    same(
        weft.linspace(a, b, n, dtype=dtype, endpoint=end, device=d.device),
        np.linspace(a, b, n, dtype=dtype, endpoint=end),
        (a, b, n, end, dtype),
        1e-6,
    )


@case("eye", "full", "zeros", "ones", "empty")
def _(name, d):
    dtype, shape = d.of(ALL), d.shape()
    if name == "eye":
        n, m, k = d.int(0, 6), d.of([None, 0, 1, 4, 7]), d.int(-8, 8)
        same(
            weft.eye(n, m, k=k, dtype=dtype, device=d.device),
            np.eye(n, m, k, dtype=dtype),
            (n, m, k, dtype),
        )
    elif name == "full":
        value = d.values((), dtype).item()
        same(
            weft.full(shape, value, dtype=dtype, device=d.device),
            np.full(shape, value, dtype),
            (shape, value, dtype),
        )
    else:
        found = getattr(weft, name)(shape, dtype=dtype, device=d.device)
        same(
            found * 0 if name == "empty" and dtype in INT else found,
            np.asarray(getattr(np, name)(shape, dtype))
            if name != "empty"
            else (np.zeros(shape, dtype) if dtype in INT else found.numpy()),
            (shape, dtype),
        )


@case("zeros_like", "ones_like", "full_like", "tril", "triu")
def _(name, d):
    dtype = d.of(ALL)
    x = d.values(d.shape(2 if name in ("tril", "triu") else 0), dtype)
    more = {"full_like": (d.values((), dtype).item(),)}.get(name, ())
    options = {"k": d.int(-9, 9)} if name in ("tril", "triu") else {}
    same(
        getattr(weft, name)(d.w(x), *more, **options),
        getattr(np, name)(x, *more, **options),
        (x.shape, dtype, more, options),
    )


@case("meshgrid")
def _(name, d):
    dtype, indexing = d.of(NUMERIC), d.of(["xy", "ij"])
    given = [d.values((d.int(0, 4),), dtype) for _ in range(d.int(1, 3))]
    found = weft.meshgrid(*(weft.asarray(x, device=d.device) for x in given), indexing=indexing)
    for f, w in zip(found, np.meshgrid(*given, indexing=indexing), strict=True):
        same(f, w, (indexing, dtype))


# ---- types


@case("astype")
def _(name, d):
    a, b = d.of(ALL), d.of(ALL)
    if a in COMPLEX and b not in COMPLEX:
        a = "float64"
    x = d.tame(d.shape(), a)
    if b.startswith("u"):
        x = np.abs(x)
    same(weft.astype(d.w(x), b), x.astype(b), (a, b, x.shape))


@case("result_type", "can_cast")
def _(name, d):
    kinds = [INT, REAL + COMPLEX, BOOL]
    a, b = (d.of(k) for k in [d.of(kinds)] * 2)
    if name == "can_cast":
        assert weft.can_cast(getattr(weft, a), getattr(weft, b)) == np.can_cast(a, b), (a, b)
    elif not (a in INT and b in INT and np.result_type(a, b).kind == "f"):
        assert (
            weft.result_type(getattr(weft, a), getattr(weft, b)).name == np.result_type(a, b).name
        ), (a, b)


# ---- element by element

# fmt: skip
UNARY = {
    **dict.fromkeys("acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh tan tanh sqrt reciprocal".split(), REAL),
    **dict.fromkeys("ceil floor trunc".split(), INT + REAL), **dict.fromkeys("negative positive round square".split(), INT + FLOAT),
    **dict.fromkeys("sign abs".split(), INT + REAL), **dict.fromkeys("isfinite isinf isnan".split(), NUMERIC), "signbit": REAL,
    **dict.fromkeys("conj real imag".split(), COMPLEX), "bitwise_invert": BOOL + INT, "logical_not": BOOL,
}  # fmt: skip
BINARY = {
    **dict.fromkeys("add subtract multiply".split(), NUMERIC), **dict.fromkeys("maximum minimum".split(), INT + REAL),
    **dict.fromkeys("floor_divide remainder".split(), INT + REAL), **dict.fromkeys("atan2 copysign hypot logaddexp nextafter divide pow".split(), REAL),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), BOOL + INT), **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), INT),
    **dict.fromkeys("equal not_equal".split(), ALL), **dict.fromkeys("less less_equal greater greater_equal".split(), INT + REAL),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), BOOL),
}  # fmt: skip
# Of these NumPy computes another kind or an error on whole numbers.
LOOSE = {
    "reciprocal": 0.0,
    "pow": 1e-5,
    "logaddexp": 1e-5,
    "tan": 1e-5,
    "sinh": 1e-5,
    "cosh": 1e-5,
    "exp": 1e-5,
    "expm1": 1e-5,
}


def rounded(name, dtype):
    return 0.0 if dtype not in FLOAT else max(LOOSE.get(name, 0.0), 0.0)


@case(*UNARY)
def _(name, d):
    dtype = d.of(UNARY[name])
    x = d.values(d.shape(), dtype, special=0.5)
    if name in (
        "sin",
        "cos",
        "tan",
    ):  # the range over which a function of float32 is reduced is another test's subject
        x = np.where(np.isfinite(x) & (np.abs(x) > 1e7), np.asarray(3, dtype), x)
    wanted = np.asarray(getattr(np, IN_NUMPY.get(name, name))(x))
    if name in ("ceil", "floor", "trunc") and dtype in INT:
        wanted = x
    if name == "sign" and dtype in REAL:
        wanted = wanted + np.asarray(0, dtype)  # no sign of zero
    if name == "round" and dtype in COMPLEX:
        wanted = (np.round(x.real) + 1j * np.round(x.imag)).astype(dtype)
        x, wanted = x[np.isfinite(x)], wanted[np.isfinite(x)]
    if (
        dtype in COMPLEX and name == "square"
    ):  # products of infinities: the standard asks for no certain result
        keep = np.isfinite(wanted)
        x, wanted = x[keep], wanted[keep]
    same(getattr(weft, name)(d.w(x)), wanted, (name, dtype, x.shape), rounded(name, dtype))


@case(*BINARY)
def _(name, d):
    a_type, b_type = d.of(BINARY[name]), d.of(BINARY[name])
    kinds = [next(k for k in (BOOL, INT, REAL, COMPLEX) if t in k) for t in (a_type, b_type)]
    if (
        kinds[0] is not kinds[1]
        or np.result_type(a_type, b_type).kind != np.dtype(a_type).kind
        and kinds[0] is INT
    ):
        if not (
            kinds[0] is INT and kinds[1] is INT and np.result_type(a_type, b_type).kind in "iu"
        ):
            b_type = a_type
    left, right = broadcast(d)
    a, b = d.values(left, a_type, 0.5), d.values(right, b_type, 0.5)
    both = np.result_type(a_type, b_type)
    if name in ("floor_divide", "remainder"):
        b = np.where(b == 0, np.asarray(3, b_type), b)
        if both.kind == "i":
            b = np.where(b == -1, np.asarray(2, b_type), b)
        else:  # of an infinity the standard leaves the quotient open
            a, b = (
                np.where(
                    np.isinf(v) | (np.abs(v) > 1e6) | (np.abs(v) < 1e-3) & (v != 0),
                    np.asarray(1.5, v.dtype),
                    v,
                )
                for v in (a, b)
            )
    if "shift" in name:
        b = np.asarray(np.abs(b) % min(np.iinfo(a_type).bits, np.iinfo(b_type).bits, 7), b_type)
        b_type = str(b.dtype)
    if name == "multiply" and both.kind == "c":
        a, b = d.tame(left, a_type), d.tame(right, b_type)
    wanted = np.asarray(getattr(np, IN_NUMPY.get(name, name))(a.astype(both), b.astype(both)))
    x, y = d.w(a), d.w(b)
    what = (name, a_type, b_type, left, right)
    found = getattr(weft, name)(x, y)
    loose = max(
        rounded(name, str(both)),
        1e-6 if both.kind == "c" or name in ("remainder", "hypot", "atan2") else 0.0,
    )
    same(found, wanted, what, loose)
    operator = {
        "add": "__add__",
        "subtract": "__sub__",
        "multiply": "__mul__",
        "less": "__lt__",
        "bitwise_xor": "__xor__",
        "remainder": "__mod__",
        "pow": "__pow__",
    }.get(name)
    if operator:
        same(getattr(x, operator)(y), wanted, (operator, *what), loose)


@case("clip")
def _(name, d):
    dtype, shape = d.of(INT + REAL), d.shape()
    x, low = d.values(shape, dtype), d.tame((), dtype).item()
    high = low + 3
    low, high = d.of([(low, high), (None, high), (low, None), (None, None)])
    wanted = x if low is None and high is None else np.clip(x, low, high).astype(dtype)
    if dtype in INT and (high or 0) > np.iinfo(dtype).max:
        return
    same(weft.clip(d.w(x), low, high), wanted, (dtype, shape, low, high))


@case("where")
def _(name, d):
    dtype = d.of(ALL)
    left, right = broadcast(d)
    c, a, b = d.values(left, "bool"), d.values(right, dtype), d.values((), dtype)
    same(weft.where(*d.w(c, a, b)), np.where(c, a, b), (dtype, left, right))


# ---- manipulation


@case("broadcast_to", "broadcast_arrays")
def _(name, d):
    dtype = d.of(ALL)
    left, right = broadcast(d)
    a, b = d.values(left, dtype), d.values(right, dtype)
    shape = np.broadcast_shapes(left, right)
    if name == "broadcast_to":
        same(weft.broadcast_to(d.w(a), shape), np.broadcast_to(a, shape), (dtype, left, shape))
    else:
        for f, w in zip(weft.broadcast_arrays(*d.w(a, b)), np.broadcast_arrays(a, b), strict=True):
            same(f, w, (dtype, left, right))


@case("concat", "stack")
def _(name, d):
    dtype, shape = d.of(ALL), d.full(1)
    axis = (
        d.of([None, d.axis(len(shape))]) if name == "concat" else d.int(-len(shape) - 1, len(shape))
    )
    shapes = [list(shape) for _ in range(d.int(1, 4))]
    if name == "concat" and axis is not None:
        for s in shapes:
            s[axis] = d.int(0, 4)
    given = [d.values(tuple(s), dtype) for s in shapes]
    wanted = (np.concatenate if name == "concat" else np.stack)(given, axis=axis)
    same(getattr(weft, name)([d.w(x) for x in given], axis=axis), wanted, (dtype, shapes, axis))


@case(
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "tile",
    "unstack",
    "matrix_transpose",
)
def _(name, d):
    dtype, shape = d.of(ALL), d.shape(2 if name == "matrix_transpose" else 1)
    x, ndim = d.values(shape, dtype), len(shape)
    given, axis = d.w(x), d.axis(ndim)
    what = (dtype, shape)
    if name == "expand_dims":
        axis = d.int(-ndim - 1, ndim)
        pairs = [(weft.expand_dims(given, axis), np.expand_dims(x, axis))]
    elif name == "flip":
        axis = d.axes(ndim)
        pairs = [(weft.flip(given, axis=axis), np.flip(x, axis))]
    elif name == "moveaxis":
        to = d.axis(ndim)
        pairs = [(weft.moveaxis(given, axis, to), np.moveaxis(x, axis, to))]
    elif name == "permute_dims":
        order = tuple(d.rng.permutation(ndim).tolist())
        pairs = [(weft.permute_dims(given, order), x.transpose(order))]
    elif name == "repeat":
        counts = d.of([d.int(0, 3), d.rng.integers(0, 4, shape[axis])])
        pairs = [
            (
                weft.repeat(given, counts if isinstance(counts, int) else d.w(counts), axis=axis),
                np.repeat(x, counts, axis),
            )
        ]
        what += (counts, axis)
    elif name == "reshape":
        to = (-1,) if x.size else (0, 3)
        pairs = [
            (weft.reshape(given, to), x.reshape(to)),
            (weft.reshape(given, shape[::-1]), x.reshape(shape[::-1])),
        ]
    elif name == "roll":
        axis = d.of([None, axis, (axis, d.axis(ndim))])
        shift = d.int(-40, 40) if not isinstance(axis, tuple) else (d.int(-40, 40), d.int(-40, 40))
        pairs = [(weft.roll(given, shift, axis=axis), np.roll(x, shift, axis))]
        what += (shift, axis)
    elif name == "squeeze":
        x = x[:, None]
        pairs = [(weft.squeeze(weft.expand_dims(given, 1), 1), x.squeeze(1))]
    elif name == "tile":
        counts = tuple(d.int(0, 3) for _ in range(d.int(0, 4)))
        pairs = [(weft.tile(given, counts), np.tile(x, counts))]
        what += (counts,)
    elif name == "unstack":
        pairs = list(zip(weft.unstack(given, axis=axis), np.moveaxis(x, axis, 0), strict=True))
    else:
        pairs = [
            (weft.matrix_transpose(given), np.swapaxes(x, -1, -2)),
            (given.mT, np.swapaxes(x, -1, -2)),
        ]
    for found, wanted in pairs:
        same(found, wanted, (name, axis, *what))


# ---- indexing, searching, sorting, sets


@case("getitem", "setitem")
def _(name, d):
    dtype, shape = d.of(ALL), d.full(1)
    x = d.values(shape, dtype)
    if d.int(0, 4) == 0:
        key = d.rng.integers(0, 2, shape).astype(bool)
        ours = d.w(key)
    else:
        key = tuple(
            d.of(
                [
                    d.int(-n, n - 1),
                    slice(
                        d.of([None, d.int(-n - 1, n)]),
                        d.of([None, d.int(-n - 1, n)]),
                        d.of([None, 1, 2, -1, -3]),
                    ),
                ]
            )
            for n in shape[: d.int(0, len(shape))]
        )
        key = (
            key + d.of([(), (Ellipsis,), (None,)]) if len(key) < len(shape) or d.int(0, 1) else key
        )
        ours = key
    what = (dtype, shape, key)
    if name == "getitem":
        same(d.w(x)[ours], x[key], what)
        return
    given, wanted = weft.asarray(x, device=d.device, copy=True), x.copy()
    value = d.values(() if isinstance(key, np.ndarray) else np.shape(x[key]), dtype)
    given[ours] = d.w(value)
    wanted[key] = value
    same(given, wanted, what)


@case("take", "take_along_axis")
def _(name, d):
    dtype, shape = d.of(ALL), d.full(1)
    x, axis = d.values(shape, dtype), d.axis(len(shape))
    if name == "take":
        places = d.rng.integers(-shape[axis], shape[axis], d.int(0, 5)).astype(
            d.of(["int32", "int64"])
        )
        same(weft.take(*d.w(x, places), axis=axis), np.take(x, places, axis), (dtype, shape, axis))
    else:
        wide = list(shape)
        wide[axis] = d.int(1, 4)
        places = d.rng.integers(0, shape[axis], wide)
        same(
            weft.take_along_axis(*d.w(x, places), axis=axis),
            np.take_along_axis(x, places, axis),
            (dtype, shape, axis),
        )


@case("argmax", "argmin", "count_nonzero", "nonzero", "searchsorted")
def _(name, d):
    dtype, shape = d.of(INT + REAL), d.full(1)
    x, axis, keep = (
        d.of([d.values, d.ties])(shape, dtype),
        d.of([None, d.axis(len(shape))]),
        bool(d.int(0, 1)),
    )
    what = (dtype, shape, axis, keep)
    if name == "nonzero":
        for f, w in zip(weft.nonzero(d.w(x)), np.nonzero(x), strict=True):
            same(f, w, what)
    elif name == "searchsorted":
        line, side = np.sort(d.ties((shape[0],), dtype)), d.of(["left", "right"])
        order = d.rng.permutation(shape[0])
        shuffled = np.empty_like(line)
        shuffled[order] = line
        wanted = np.searchsorted(line, x, side)
        same(weft.searchsorted(*d.w(line, x), side=side), wanted, what)
        same(
            weft.searchsorted(*d.w(shuffled, x), side=side, sorter=d.w(order)),
            wanted,
            ("sorter", *what),
        )
    else:
        wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep)).astype("int64")
        same(getattr(weft, name)(d.w(x), axis=axis, keepdims=keep), wanted, what)


@case("sort", "argsort")
def _(name, d):
    dtype, shape = d.of(INT + REAL), d.shape(1)
    x, axis, down = d.of([d.values, d.ties])(shape, dtype), d.axis(len(shape)), bool(d.int(0, 1))
    x = np.where(np.isnan(x), np.asarray(1, dtype), x) + np.asarray(
        0, dtype
    )  # where NaN goes is not said
    key = (
        x
        if not down
        else np.where(
            x == x,
            -x.astype("float64")
            if dtype in REAL
            else np.iinfo(dtype).max - (x.astype("int64") if dtype != "uint64" else x),
            x,
        )
    )
    wanted = (
        np.argsort(key, axis=axis, kind="stable")
        if dtype not in ("int64", "uint64", "float64")
        else stable(x, axis, down)
    )
    found = getattr(weft, name)(d.w(x), axis=axis, descending=down)
    same(
        found,
        wanted if name == "argsort" else np.take_along_axis(x, wanted, axis),
        (dtype, shape, axis, down),
    )


def stable(x, axis, down):
    """Python's own sort, which is stable in both directions."""
    lines = np.moveaxis(x, axis, -1)
    out = np.empty(lines.shape, "int64")
    for at in itertools.product(*map(range, lines.shape[:-1])):
        out[at] = (
            sorted(range(lines.shape[-1]), key=lines[at].tolist().__getitem__, reverse=down)
            if not down
            else sorted(range(lines.shape[-1]), key=lambda k, v=lines[at].tolist(): -v[k])
        )
    return np.moveaxis(out, -1, axis)


@case("unique_all", "unique_counts", "unique_inverse", "unique_values")
def _(name, d):
    dtype = d.of(ALL)
    x = d.ties(d.shape(), dtype)
    if dtype in COMPLEX:
        x = x + np.asarray(1j * d.ties(x.shape, "int8"), dtype)
    values, first, inverse, counts = np.unique(x, True, True, True)
    wanted = {
        "values": values,
        "indices": first,
        "inverse_indices": inverse.reshape(x.shape),
        "counts": counts,
    }
    found = getattr(weft, name)(d.w(x))
    for field in getattr(found, "_fields", ["values"]):
        same(
            getattr(found, field) if hasattr(found, "_fields") else found,
            wanted[field],
            (name, field, dtype, x.shape),
        )


@pytest.mark.parametrize("device,draws", DEVICES, ids=[d for d, _ in DEVICES])
@pytest.mark.parametrize("name", sorted(CASES))
def test_drawn(name, device, draws, rng):
    run(CASES[name], name, device, draws, rng)
