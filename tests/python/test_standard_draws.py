# SPDX-License-Identifier: Apache-2.0
"""Each function of the array API standard 2024.12 with drawn types, odd shapes, options and special values, against NumPy or against what
the standard says of the result. WEFT_TEST_DRAWS=200 draws so often; WEFT_TEST_SEED draws others. What is fixed: test_standard.py."""

import itertools
import math
import os

import numpy as np
import pytest
import weft

DRAWS = int(os.environ.get("WEFT_TEST_DRAWS", "0"))
# A card compiles a kernel for most draws.
DEVICES = [(d, DRAWS or n) for d, n in (("cpu", 12), ("opencl:0", 2)) if weft.device(d).available]
INT = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REAL, COMPLEX, BOOL = ["float32", "float64"], ["complex64", "complex128"], ["bool"]
FLOAT, NUMERIC, ALL = REAL + COMPLEX, INT + REAL + COMPLEX, BOOL + INT + REAL + COMPLEX
EXTENTS = (0, 1, 1, 2, 3, 3, 5, 7, 13, 33)
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 1e-310, -1e-42, 1e-30, 3.0e38, -7.0, 1e6]


class Draw:
    """Choices of one call; `x`, `w` make an operand of NumPy and the same of weft."""

    def __init__(self, rng, device):
        self.rng, self.device = rng, device

    def of(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def shape(self, least=0, most=4, extents=EXTENTS):
        while math.prod(shape := tuple(self.of(extents) for _ in range(self.int(least, most)))) > 4000:
            pass
        return shape

    def full(self, least=0, most=3):
        return self.shape(least, most, EXTENTS[1:])

    def values(self, shape, dtype, special=0.3):
        """Small numbers, so that sums and products stay near; some of SPECIAL or the ends of the type."""
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            x = self.rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
            ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1], dtype)
        else:
            x = self.rng.normal(0, 2, shape)
            if dtype.kind == "c":
                x = x + 1j * self.rng.normal(0, 2, shape)
            x, ends = np.asarray(x, dtype), np.array(SPECIAL).astype(dtype)
        if special:
            x = np.where(self.rng.random(shape) < special, ends[self.rng.integers(0, len(ends), shape)], x)
        return np.asarray(x, dtype)

    def tame(self, shape, dtype):
        return self.values(shape, dtype, special=0)

    def ties(self, shape, dtype):
        """Many equal elements."""
        return (np.asarray(self.rng.integers(0, 4, shape)) > 1 if dtype == "bool" else np.asarray(self.rng.integers(0, 4, shape)).astype(dtype))

    def axis(self, ndim):
        return self.int(-ndim, ndim - 1)

    def axes(self, ndim):
        """None, one axis or several."""
        return self.of([None, *([self.axis(ndim)] if ndim else []), tuple(a - ndim * self.int(0, 1) for a in range(ndim) if self.int(0, 1))])

    def w(self, *operands):
        """The same on the device; most as a view: another order of axes, backwards, or with a step."""
        out = []
        for x in operands:
            given, view = weft.asarray(x, device=self.device), self.int(0, 3)
            if view == 1 and x.ndim:
                given = weft.flip(weft.asarray(np.ascontiguousarray(np.flip(x)), device=self.device))
            elif view == 2 and x.ndim:
                apart = weft.asarray(np.repeat(x, 3, axis=-1), device=self.device)
                given = apart[..., 1::3]
            elif view == 3 and x.ndim > 1:
                order = tuple(self.rng.permutation(x.ndim).tolist())
                given = weft.permute_dims(weft.asarray(np.ascontiguousarray(x.transpose(order)), device=self.device), tuple(np.argsort(order).tolist()))
            out.append(given)
        return out[0] if len(out) == 1 else out


def same(found, wanted, what, loose=0.0):
    """Equal type, shape, NaN, infinities and integers; floats to their type's precision."""
    wanted = np.asarray(wanted)
    assert isinstance(found, weft.NDArray) and found.dtype.name == wanted.dtype.name, (what, found.dtype, wanted.dtype)
    assert tuple(found.shape) == wanted.shape, (what, found.shape, wanted.shape)
    got = found.numpy()
    if wanted.dtype.kind in "fc":
        close = max(loose, 3e-6 if wanted.dtype.name in ("float32", "complex64") else 1e-12)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0) if loose else 0.0
        np.testing.assert_allclose(got, wanted, rtol=close, atol=close * min(scale, 1e30), err_msg=str(what))
        if wanted.dtype.kind == "f" and not loose:
            zero = wanted == 0
            assert (np.signbit(got) == np.signbit(wanted))[zero].all(), (what, "sign of zero")
    else:
        np.testing.assert_array_equal(got, wanted, err_msg=str(what))


CASES = {}


def case(*names):
    def put(f):
        for name in names:
            assert name not in CASES, name
            CASES[name] = f
        return f

    return put


# ---- creation


@case("arange")
def _(name, d):
    dtype, step = d.of(INT[:4] + REAL), d.of([1, 2, 3, -1, -2, 5])
    start, stop = d.int(-9, 9), d.int(-20, 20)
    same(weft.arange(start, stop, step, dtype=dtype, device=d.device), np.arange(start, stop, step, dtype=dtype), (start, stop, step, dtype))


@case("linspace")
def _(name, d):
    dtype, n, end = d.of(REAL), d.int(0, 9), bool(d.int(0, 1))
    a, b = d.int(-9, 9), d.int(-9, 9)
    same(weft.linspace(a, b, n, dtype=dtype, endpoint=end, device=d.device), np.linspace(a, b, n, dtype=dtype, endpoint=end), (a, b, n, end, dtype), 1e-6)


@case("eye", "full", "zeros", "ones", "empty")
def _(name, d):
    dtype, shape = d.of(ALL), d.shape()
    if name == "eye":
        n, m, k = d.int(0, 6), d.of([None, 0, 1, 4, 7]), d.int(-8, 8)
        same(weft.eye(n, m, k=k, dtype=dtype, device=d.device), np.eye(n, m, k, dtype=dtype), (n, m, k, dtype))
    elif name == "full":
        value = d.values((), dtype).item()
        same(weft.full(shape, value, dtype=dtype, device=d.device), np.full(shape, value, dtype), (shape, value, dtype))
    else:
        found = getattr(weft, name)(shape, dtype=dtype, device=d.device)
        same(found * 0 if name == "empty" and dtype in INT else found, np.asarray(getattr(np, name)(shape, dtype)) if name != "empty" else (np.zeros(shape, dtype) if dtype in INT else found.numpy()), (shape, dtype))


@case("zeros_like", "ones_like", "full_like", "tril", "triu")
def _(name, d):
    dtype = d.of(ALL)
    x = d.values(d.shape(2 if name in ("tril", "triu") else 0), dtype)
    more = {"full_like": (d.values((), dtype).item(),)}.get(name, ())
    options = {"k": d.int(-9, 9)} if name in ("tril", "triu") else {}
    same(getattr(weft, name)(d.w(x), *more, **options), getattr(np, name)(x, *more, **options), (x.shape, dtype, more, options))


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
        assert weft.result_type(getattr(weft, a), getattr(weft, b)).name == np.result_type(a, b).name, (a, b)


# ---- element by element

IN_NUMPY = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "atan2": "arctan2",
            "bitwise_invert": "bitwise_not", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "pow": "power"}  # fmt: skip
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
LOOSE = {"reciprocal": 0.0, "pow": 1e-5, "logaddexp": 1e-5, "tan": 1e-5, "sinh": 1e-5, "cosh": 1e-5, "exp": 1e-5, "expm1": 1e-5}


def rounded(name, dtype):
    return 0.0 if dtype not in FLOAT else max(LOOSE.get(name, 0.0), 0.0)


@case(*UNARY)
def _(name, d):
    dtype = d.of(UNARY[name])
    x = d.values(d.shape(), dtype, special=0.5)
    if name in ("sin", "cos", "tan"):  # the range over which a function of float32 is reduced is another test's subject
        x = np.where(np.isfinite(x) & (np.abs(x) > 1e7), np.asarray(3, dtype), x)
    wanted = np.asarray(getattr(np, IN_NUMPY.get(name, name))(x))
    if name in ("ceil", "floor", "trunc") and dtype in INT:
        wanted = x
    if name == "sign" and dtype in REAL:
        wanted = wanted + np.asarray(0, dtype)  # no sign of zero
    if name == "round" and dtype in COMPLEX:
        wanted = (np.round(x.real) + 1j * np.round(x.imag)).astype(dtype)
        x, wanted = x[np.isfinite(x)], wanted[np.isfinite(x)]
    if dtype in COMPLEX and name == "square":  # products of infinities: the standard asks for no certain result
        keep = np.isfinite(wanted)
        x, wanted = x[keep], wanted[keep]
    same(getattr(weft, name)(d.w(x)), wanted, (name, dtype, x.shape), rounded(name, dtype))


def broadcast(d):
    """Two shapes that fit each other."""
    whole = d.shape(0, 3)
    cut = [tuple(n if d.int(0, 2) else 1 for n in whole)[d.int(0, len(whole)) if d.int(0, 1) else 0 :] for _ in range(2)]
    return cut if d.int(0, 1) else [whole, cut[1]]


@case(*BINARY)
def _(name, d):
    a_type, b_type = d.of(BINARY[name]), d.of(BINARY[name])
    kinds = [next(k for k in (BOOL, INT, REAL, COMPLEX) if t in k) for t in (a_type, b_type)]
    if kinds[0] is not kinds[1] or np.result_type(a_type, b_type).kind != np.dtype(a_type).kind and kinds[0] is INT:
        if not (kinds[0] is INT and kinds[1] is INT and np.result_type(a_type, b_type).kind in "iu"):
            b_type = a_type
    left, right = broadcast(d)
    a, b = d.values(left, a_type, 0.5), d.values(right, b_type, 0.5)
    both = np.result_type(a_type, b_type)
    if name in ("floor_divide", "remainder"):
        b = np.where(b == 0, np.asarray(3, b_type), b)
        if both.kind == "i":
            b = np.where(b == -1, np.asarray(2, b_type), b)
        else:  # of an infinity the standard leaves the quotient open
            a, b = (np.where(np.isinf(v) | (np.abs(v) > 1e6) | (np.abs(v) < 1e-3) & (v != 0), np.asarray(1.5, v.dtype), v) for v in (a, b))
    if "shift" in name:
        b = np.asarray(np.abs(b) % min(np.iinfo(a_type).bits, np.iinfo(b_type).bits, 7), b_type)
        b_type = str(b.dtype)
    if name == "multiply" and both.kind == "c":
        a, b = d.tame(left, a_type), d.tame(right, b_type)
    wanted = np.asarray(getattr(np, IN_NUMPY.get(name, name))(a.astype(both), b.astype(both)))
    x, y = d.w(a), d.w(b)
    what = (name, a_type, b_type, left, right)
    found = getattr(weft, name)(x, y)
    loose = max(rounded(name, str(both)), 1e-6 if both.kind == "c" or name in ("remainder", "hypot", "atan2") else 0.0)
    same(found, wanted, what, loose)
    operator = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "less": "__lt__", "bitwise_xor": "__xor__", "remainder": "__mod__", "pow": "__pow__"}.get(name)
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
    axis = d.of([None, d.axis(len(shape))]) if name == "concat" else d.int(-len(shape) - 1, len(shape))
    shapes = [list(shape) for _ in range(d.int(1, 4))]
    if name == "concat" and axis is not None:
        for s in shapes:
            s[axis] = d.int(0, 4)
    given = [d.values(tuple(s), dtype) for s in shapes]
    wanted = (np.concatenate if name == "concat" else np.stack)(given, axis=axis)
    same(getattr(weft, name)([d.w(x) for x in given], axis=axis), wanted, (dtype, shapes, axis))


@case("expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "tile", "unstack", "matrix_transpose")
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
        pairs = [(weft.repeat(given, counts if isinstance(counts, int) else d.w(counts), axis=axis), np.repeat(x, counts, axis))]
        what += (counts, axis)
    elif name == "reshape":
        to = (-1,) if x.size else (0, 3)
        pairs = [(weft.reshape(given, to), x.reshape(to)), (weft.reshape(given, shape[::-1]), x.reshape(shape[::-1]))]
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
        pairs = [(weft.matrix_transpose(given), np.swapaxes(x, -1, -2)), (given.mT, np.swapaxes(x, -1, -2))]
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
        key = tuple(d.of([d.int(-n, n - 1), slice(d.of([None, d.int(-n - 1, n)]), d.of([None, d.int(-n - 1, n)]), d.of([None, 1, 2, -1, -3]))]) for n in shape[: d.int(0, len(shape))])
        key = key + d.of([(), (Ellipsis,), (None,)]) if len(key) < len(shape) or d.int(0, 1) else key
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
        places = d.rng.integers(-shape[axis], shape[axis], d.int(0, 5)).astype(d.of(["int32", "int64"]))
        same(weft.take(*d.w(x, places), axis=axis), np.take(x, places, axis), (dtype, shape, axis))
    else:
        wide = list(shape)
        wide[axis] = d.int(1, 4)
        places = d.rng.integers(0, shape[axis], wide)
        same(weft.take_along_axis(*d.w(x, places), axis=axis), np.take_along_axis(x, places, axis), (dtype, shape, axis))


@case("argmax", "argmin", "count_nonzero", "nonzero", "searchsorted")
def _(name, d):
    dtype, shape = d.of(INT + REAL), d.full(1)
    x, axis, keep = d.of([d.values, d.ties])(shape, dtype), d.of([None, d.axis(len(shape))]), bool(d.int(0, 1))
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
        same(weft.searchsorted(*d.w(shuffled, x), side=side, sorter=d.w(order)), wanted, ("sorter", *what))
    else:
        wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep)).astype("int64")
        same(getattr(weft, name)(d.w(x), axis=axis, keepdims=keep), wanted, what)


@case("sort", "argsort")
def _(name, d):
    dtype, shape = d.of(INT + REAL), d.shape(1)
    x, axis, down = d.of([d.values, d.ties])(shape, dtype), d.axis(len(shape)), bool(d.int(0, 1))
    x = np.where(np.isnan(x), np.asarray(1, dtype), x) + np.asarray(0, dtype)  # where NaN goes is not said
    key = x if not down else np.where(x == x, -x.astype("float64") if dtype in REAL else np.iinfo(dtype).max - (x.astype("int64") if dtype != "uint64" else x), x)
    wanted = np.argsort(key, axis=axis, kind="stable") if dtype not in ("int64", "uint64", "float64") else stable(x, axis, down)
    found = getattr(weft, name)(d.w(x), axis=axis, descending=down)
    same(found, wanted if name == "argsort" else np.take_along_axis(x, wanted, axis), (dtype, shape, axis, down))


def stable(x, axis, down):
    """Python's own sort, which is stable in both directions."""
    lines = np.moveaxis(x, axis, -1)
    out = np.empty(lines.shape, "int64")
    for at in itertools.product(*map(range, lines.shape[:-1])):
        out[at] = sorted(range(lines.shape[-1]), key=lines[at].tolist().__getitem__, reverse=down) if not down else sorted(range(lines.shape[-1]), key=lambda k, v=lines[at].tolist(): -v[k])
    return np.moveaxis(out, -1, axis)


@case("unique_all", "unique_counts", "unique_inverse", "unique_values")
def _(name, d):
    dtype = d.of(ALL)
    x = d.ties(d.shape(), dtype)
    if dtype in COMPLEX:
        x = x + np.asarray(1j * d.ties(x.shape, "int8"), dtype)
    values, first, inverse, counts = np.unique(x, True, True, True)
    wanted = {"values": values, "indices": first, "inverse_indices": inverse.reshape(x.shape), "counts": counts}
    found = getattr(weft, name)(d.w(x))
    for field in getattr(found, "_fields", ["values"]):
        same(getattr(found, field) if hasattr(found, "_fields") else found, wanted[field], (name, field, dtype, x.shape))


# ---- statistics


@case("sum", "prod", "max", "min", "all", "any", "mean", "std", "var")
def _(name, d):
    dtype = d.of({"all": ALL, "any": ALL, "sum": NUMERIC, "prod": NUMERIC, "max": INT + REAL, "min": INT + REAL}.get(name, REAL))
    exact = name in ("max", "min", "all", "any") or dtype in INT
    x = (d.values if exact else d.tame)((d.full if name not in ("sum", "prod", "all", "any") else d.shape)(0, 4), dtype)
    axis, keep = d.axes(x.ndim), bool(d.int(0, 1))
    options = {}
    if name in ("std", "var"):
        options = {"correction": d.of([0, 1, 0.5])}
        n = x.size if axis is None else math.prod(x.shape[a] for a in (axis if isinstance(axis, tuple) else (axis,)))
        if n <= options["correction"]:
            return
    wanted_options = {"ddof": options["correction"]} if options else {}
    if name in ("sum", "prod"):
        options = {"dtype": d.of([None, *([dtype] if dtype in INT else REAL + COMPLEX if dtype in REAL else COMPLEX)])}
        wide = {"i": "int64", "u": "uint64"}.get(np.dtype(dtype).kind, dtype)
        wanted_options = {"dtype": options["dtype"] or wide}
        options = {k: v for k, v in options.items() if v}
    wanted = getattr(np, name)(x, axis=axis, keepdims=keep, **wanted_options)
    same(getattr(weft, name)(d.w(x), axis=axis, keepdims=keep, **options), wanted, (name, dtype, x.shape, axis, keep, options), 0.0 if exact else 3e-5 if "float64" != dtype and "complex128" != dtype or options.get("dtype") in ("float32", "complex64") else 1e-10)


@case("cumulative_sum", "cumulative_prod")
def _(name, d):
    dtype, shape = d.of(NUMERIC), d.full(1)
    x, axis, initial = (d.values if dtype in INT else d.tame)(shape, dtype), d.axis(len(shape)), bool(d.int(0, 1))
    wide = {"i": "int64", "u": "uint64"}.get(np.dtype(dtype).kind, dtype)
    wanted = (np.cumsum if name == "cumulative_sum" else np.cumprod)(x, axis, dtype=wide)
    if initial:
        edge = list(shape)
        edge[axis] = 1
        wanted = np.concatenate([np.full(edge, name == "cumulative_prod", wide), wanted], axis)
    same(getattr(weft, name)(d.w(x), axis=axis, include_initial=initial), wanted, (dtype, shape, axis, initial), 0.0 if dtype in INT else 3e-5 if dtype in ("float32", "complex64") else 1e-10)


@case("diff")
def _(name, d):
    dtype, shape = d.of(NUMERIC), d.full(1)
    x, axis, n = d.tame(shape, dtype), d.axis(len(shape)), d.int(0, 3)
    edge = list(shape)
    edge[axis] = d.int(1, 3)
    more = {k: d.tame(tuple(edge), dtype) for k in ("prepend", "append") if n and d.int(0, 1)}
    same(weft.diff(d.w(x), axis=axis, n=n, **{k: d.w(v) for k, v in more.items()}), np.diff(x, n, axis, **more), (dtype, shape, axis, n), 0.0 if dtype in INT else 1e-5)


# ---- products


@case("matmul", "tensordot", "vecdot", "outer")
def _(name, d):
    dtype = d.of(NUMERIC)
    n, k, m = (d.of((1, 2, 3, 5, 17)) for _ in range(3))
    left, right = broadcast(d)
    if math.prod(np.broadcast_shapes(left, right)) > 200:
        left, right = (3,), (1,)
    loose = 0.0 if dtype in INT else 3e-5 if dtype in ("float32", "complex64") else 1e-10
    if name == "matmul":
        a, b = d.of([((*left, n, k), (*right, k, m)), ((k,), (*right, k, m)), ((*left, n, k), (k,)), ((k,), (k,))])
        a, b = d.tame(a, dtype), d.tame(b, dtype)
        same(weft.matmul(*d.w(a, b)), np.matmul(a, b), (dtype, a.shape, b.shape), loose)
    elif name == "tensordot":
        a, b = d.tame((n, k, m), dtype), d.tame((m, k, 2), dtype)
        axes = d.of([0, ((1,), (1,)), ((1, 2), (1, 0)), ((-1,), (0,)), ((), ())])
        same(weft.tensordot(*d.w(a, b), axes=axes), np.tensordot(a, b, axes), (dtype, axes), loose)
    elif name == "vecdot":
        axis = d.of([-1, -2])
        a, b = d.tame((n, k, m), dtype), d.tame((1, k, m), dtype)
        same(weft.vecdot(*d.w(a, b), axis=axis), np.sum(np.conj(a) * b, axis=axis, dtype=dtype), (dtype, axis), loose)
    else:
        a, b = d.tame((n,), dtype), d.tame((m,), dtype)
        same(weft.linalg.outer(*d.w(a, b)), np.outer(a, b), (dtype, n, m), loose)


# ---- factors and transforms

STACKS = [(), (), (2,), (3, 1), (0,)]


def drawn_matrix(d, square=True):
    """Numbers of one type, well away from singular."""
    dtype, stack, n = d.of(FLOAT), d.of(STACKS), d.of((1, 2, 3, 5, 8))
    m = n if square else d.of((1, 2, 3, 5, 8))
    x = d.tame((*stack, n, m), dtype)
    return (x + np.asarray(6 * np.eye(n, m), dtype) if square else x), dtype, 3e-4 if dtype in ("float32", "complex64") else 1e-9


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


@case("linalg.det", "linalg.inv", "linalg.slogdet", "linalg.trace", "linalg.diagonal", "linalg.matrix_power", "linalg.pinv", "linalg.matrix_rank")
def _(name, d):
    square = name not in ("linalg.pinv", "linalg.matrix_rank", "linalg.trace", "linalg.diagonal")
    x, dtype, loose = drawn_matrix(d, square)
    f, given, what = getattr(weft.linalg, name[7:]), d.w(x), (name, dtype, x.shape)
    if name == "linalg.slogdet":
        for found, wanted in zip(f(given), np.linalg.slogdet(x), strict=True):
            same(found, wanted, what, loose)
    elif name in ("linalg.trace", "linalg.diagonal"):
        k = d.int(-4, 4)
        same(f(given, offset=k), getattr(np, name[7:])(x, k, -2, -1), (*what, k), loose)
    elif name == "linalg.matrix_power":
        n = d.int(-2, 4)
        same(f(given, n), np.linalg.matrix_power(x, n), (*what, n), loose)
    elif name == "linalg.matrix_rank":
        same(f(given), np.asarray(np.linalg.matrix_rank(x)).astype("int64"), what)
    else:
        same(f(given), getattr(np.linalg, name[7:])(x).astype(dtype), what, loose * 30)


@case("linalg.cholesky", "linalg.eigh", "linalg.eigvalsh", "linalg.qr", "linalg.svd", "linalg.svdvals", "linalg.solve")
def _(name, d):
    x, dtype, loose = drawn_matrix(d, name not in ("linalg.qr", "linalg.svd", "linalg.svdvals"))
    what, f = (name, dtype, x.shape), getattr(weft.linalg, name[7:])
    if name in ("linalg.cholesky", "linalg.eigh", "linalg.eigvalsh"):
        x = (x + adjoint(x) if name != "linalg.cholesky" else x @ adjoint(x) + np.asarray(np.eye(x.shape[-1]), dtype)).astype(dtype)
    given = d.w(x)
    if name == "linalg.cholesky":
        upper = bool(d.int(0, 1))
        wanted = np.linalg.cholesky(x)
        same(f(given, upper=upper), adjoint(wanted) if upper else wanted, (*what, upper), loose)
    elif name == "linalg.eigh":
        values, vectors = (v.numpy() for v in f(given))
        np.testing.assert_allclose((vectors * values[..., None, :]) @ adjoint(vectors), x, rtol=loose * 10, atol=loose * 30, err_msg=str(what))
        assert values.dtype == x.real.dtype and (np.diff(values, axis=-1) >= 0).all(), what
    elif name == "linalg.eigvalsh":
        same(f(given), np.linalg.eigvalsh(x), what, loose)
    elif name == "linalg.qr":
        mode = d.of(["reduced", "complete"])
        q, r = (v.numpy() for v in f(given, mode=mode))
        n, m = x.shape[-2:]
        assert q.shape[-2:] == (n, min(n, m) if mode == "reduced" else n) and (np.tril(r, -1) == 0).all(), (what, mode)
        np.testing.assert_allclose(q @ r, x, rtol=loose * 10, atol=loose * 10, err_msg=str(what))
        np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])), atol=loose * 10)
    elif name == "linalg.svd":
        full = bool(d.int(0, 1))
        u, s, v = (v.numpy() for v in f(given, full_matrices=full))
        k = min(x.shape[-2:])
        assert u.shape[-1] == (x.shape[-2] if full else k) and v.shape[-2] == (x.shape[-1] if full else k) and (np.diff(s, axis=-1) <= 0).all(), (what, full)
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x, rtol=loose * 10, atol=loose * 30, err_msg=str(what))
    elif name == "linalg.svdvals":
        same(f(given), np.linalg.svd(x, compute_uv=False), what, loose)
    else:
        b = d.tame((*x.shape[:-1], d.int(1, 3)), dtype) if d.int(0, 1) or x.ndim > 2 else d.tame((x.shape[-1],), dtype)
        same(f(given, d.w(b)), np.linalg.solve(x, b), (*what, b.shape), loose)


@case("linalg.vector_norm", "linalg.matrix_norm", "linalg.cross")
def _(name, d):
    dtype, keep = d.of(FLOAT if name != "linalg.cross" else NUMERIC), bool(d.int(0, 1))
    loose = 0.0 if dtype in INT else 3e-5 if dtype in ("float32", "complex64") else 1e-10
    if name == "linalg.cross":
        left, right = broadcast(d)
        a, b = d.tame((*left, 3), dtype), d.tame((*right, 3), dtype)
        same(weft.linalg.cross(*d.w(a, b)), np.cross(a, b).astype(dtype), (dtype, left, right), loose)
    elif name == "linalg.matrix_norm":
        x, kind = d.tame((*d.full(0, 1), *d.full(2, 2)), dtype), d.of(["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
        wanted = np.linalg.norm(x, kind, (-2, -1), keep)
        same(weft.linalg.matrix_norm(d.w(x), ord=kind, keepdims=keep), wanted, (dtype, x.shape, kind, keep), loose * 10)
    else:
        x, kind = d.tame(d.full(1), dtype), d.of([0, 1, 2, 3, -1, -2, 0.5, math.inf, -math.inf])
        axis = d.of([None, d.axis(x.ndim)])
        wanted = np.linalg.norm(x.reshape(-1) if axis is None else x, kind, 0 if axis is None else axis)
        wanted = np.asarray(wanted).reshape([1] * x.ndim if axis is None else np.expand_dims(wanted, axis).shape) if keep else wanted
        same(weft.linalg.vector_norm(d.w(x), ord=kind, axis=axis, keepdims=keep), np.asarray(wanted).astype(x.real.dtype), (dtype, x.shape, kind, axis, keep), loose)


@case(*(f"fft.{n}" for n in "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fftshift ifftshift fftfreq rfftfreq".split()))
def _(name, d):
    f, reference, norm = getattr(weft.fft, name[4:]), getattr(np.fft, name[4:]), d.of(["backward", "ortho", "forward"])
    if "freq" in name:
        n, step = d.int(1, 12), d.of([1.0, 0.25, 3.0])
        return same(f(n, d=step, device=d.device), reference(n, step).astype("float32"), (n, step), 1e-6)
    dtype = d.of(REAL if name in ("fft.rfft", "fft.rfftn", "fft.ihfft") else COMPLEX)
    x = d.tame(d.shape(1, 3, (2, 3, 5, 7, 8, 12, 13)), dtype)
    loose, axis = 3e-5 if dtype in ("float32", "complex64") else 1e-10, d.axis(x.ndim)
    if "shift" in name:
        axes = d.axes(x.ndim)
        return same(f(d.w(x), axes=axes), reference(x, axes), (dtype, x.shape, axes))
    if name.endswith("n"):
        axes = d.of([None, (axis,), tuple(range(x.ndim))])
        sizes = None if axes is None or d.int(0, 1) else tuple(d.int(2, 9) for _ in axes)
        options = {"s": sizes, "axes": axes}
    else:
        options = {"n": d.of([None, d.int(2, 15)]), "axis": axis}
    wanted = reference(x, norm=norm, **options)
    wanted = wanted.astype({"float32": {"c": "complex64", "f": "float32"}, "complex64": {"c": "complex64", "f": "float32"}}.get(dtype, {}).get(wanted.dtype.kind, wanted.dtype))
    same(f(d.w(x), norm=norm, **options), wanted, (dtype, x.shape, options, norm), loose)


# ---- complex numbers: the standard's tables are those of C's annex G, which NumPy follows

PARTS = [0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan]
COMPLEX_FUNCTIONS = "abs acos acosh asin asinh atan atanh cos cosh exp expm1 log sin sinh sqrt tan tanh".split()


@pytest.mark.parametrize("device", [d for d, _ in DEVICES])
@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
def test_special_complex_numbers(name, device):
    """Which parts are NaN, infinite or zero; a part whose sign the table leaves open is compared by its size."""
    x = np.array([complex(a, b) for a in PARTS for b in PARTS])
    with np.errstate(all="ignore"):
        wanted = np.exp(x) if name == "expm1" else np.asarray(getattr(np, IN_NUMPY.get(name, name))(x))
        wanted.real -= name == "expm1"  # of which NumPy makes NaN
    found = getattr(weft, name)(weft.asarray(x, device=device)).numpy()
    wrong = []
    for at, got, want in zip(x, found, wanted, strict=True):
        for part in ("real", "imag") if wanted.dtype.kind == "c" else ("real",):
            g, w = float(getattr(got, part)), float(getattr(want, part))
            fits = math.isnan(g) if math.isnan(w) else math.isclose(abs(g), abs(w), rel_tol=1e-9, abs_tol=1e-12)
            if not fits:
                wrong.append((at, part, g, w))
    assert not wrong, (name, len(wrong), wrong[:12])


@pytest.mark.parametrize("device,draws", DEVICES, ids=[d for d, _ in DEVICES])
@pytest.mark.parametrize("name", sorted(CASES) or ["none"])
def test_drawn(name, device, draws, rng):
    with np.errstate(all="ignore"):
        for _ in range(draws):
            CASES[name](name, Draw(rng, device))
