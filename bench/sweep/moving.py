# SPDX-License-Identifier: Apache-2.0
"""Sorting, selection, indices, layout, creation, random numbers."""

import functools
import sys

import numpy as np
from case import FLAT, REALS, Case, draw, same

SIZES = ("4", "1e3", "1e5", "1e7")


def indexed(shape, count, dtype_shape=None):
    def inputs(rng, dtype):
        return [draw(rng, shape, dtype), rng.integers(0, shape[0], count)]

    return inputs


def sorting():
    out = []
    for axis, layouts in (
        (-1, (*SIZES, "mid2d", "odd", "tall", "batched")),
        (0, ("mid2d", "odd", "tall")),
    ):
        out += [
            Case("sort", f"sort axis {axis}", *2 * [lambda m, x, a=axis: m.sort(x, axis=a)],
                 lambda m, x, a=axis: m.sort(x, dim=a)[0], layouts=layouts, dtypes=("float32", "float64", "int32")),
            Case("sort", f"argsort axis {axis}", lambda m, x, a=axis: m.argsort(x, axis=a),
                 lambda m, x, a=axis: m.argsort(x, axis=a, kind="stable"),
                 lambda m, x, a=axis: m.sort(x, dim=a, stable=True)[1], layouts=layouts, dtypes=("float32", "int32")),
        ]  # fmt: skip
    out += [
        Case("topk", "topk 5", lambda m, x: m.topk(x, 5).values,
             lambda m, x: np.sort(np.partition(x, -5, -1)[..., -5:], -1)[..., ::-1],
             lambda m, x: m.topk(x, 5)[0], layouts=("1e3", "1e5", "1e7", "mid2d", "square", "tall"), dtypes=("float32",)),
        Case("unique", "unique_values", lambda m, x: m.unique_values(x), lambda m, x: m.unique(x),
             lambda m, x: m.unique(x), layouts=SIZES, dtypes=("float32", "int32")),
        Case("unique", "unique_counts", lambda m, x: m.unique_counts(x).counts,
             lambda m, x: m.unique(x, return_counts=True)[1], lambda m, x: m.unique(x, return_counts=True)[1],
             layouts=SIZES, dtypes=("int32",)),
        Case("sort", "searchsorted", *3 * [lambda m, x, y: m.searchsorted(x, y)],
             layouts=("1e5",), dtypes=("float32",),
             inputs=lambda rng, t: [np.sort(draw(rng, (100_000,), t)), draw(rng, (1_000_000,), t)]),
    ]  # fmt: skip
    return out


def indices():
    out = []
    for label, shape, count in (
        ("1e3", (1000,), 1000),
        ("1e7", (10**7,), 10**7),
        ("rows", (50_000, 256), 8192),
    ):
        for dtype in ("float32", "bfloat16", "int32"):
            common = {"layouts": (label,), "dtypes": (dtype,), "inputs": indexed(shape, count)}
            out += [
                Case("gather", f"x[index] {label}", *3 * [lambda m, x, i: x[i]], **common),
                Case("gather", f"take {label}", *2 * [lambda m, x, i: m.take(x, i, axis=0)],
                     lambda m, x, i: m.index_select(x, 0, i), **common),
            ]  # fmt: skip
    out += [
        Case("select", "x[mask]", *3 * [lambda m, x: x[x > 1]], dtypes=("float32", "int32"), layouts=FLAT),
        Case("select", "nonzero", lambda m, x: m.nonzero(x > 1)[0], lambda m, x: m.nonzero(x > 1)[0],
             lambda m, x: m.nonzero(x > 1)[:, 0], dtypes=("float32",), layouts=FLAT),
        Case("gather", "take_along_axis", *2 * [lambda m, x: m.take_along_axis(x, m.argsort(x, axis=-1), axis=-1)],
             lambda m, x: m.gather(x, -1, m.argsort(x, -1)), layouts=("mid2d",), dtypes=("float32",)),
        Case("scatter", "x[index] = v", *3 * [assign_index], layouts=("1e7",), dtypes=("float32",),
             inputs=lambda rng, t: [draw(rng, (10**7,), t), rng.permutation(10**7), draw(rng, (10**7,), t)]),
        Case("scatter", "x[2:, 1:] = y", *3 * [assign_slice], layouts=("mid2d", "square", "odd"), dtypes=REALS),
        Case("scatter", "x[mask] = 0", *3 * [assign_mask], layouts=FLAT, dtypes=("float32",)),
    ]  # fmt: skip
    return out


def assign_index(m, x, i, v):
    x[i] = v
    return x


def assign_slice(m, x):
    x[1:, 1:] = x[:-1, :-1] * 0
    return x


def assign_mask(m, x):
    x[x > 1.5] = 0
    return x


def layout():
    t = ("float32", "int32")
    return [
        Case("manipulation", "x.T copied", lambda m, x: x.T.copy(), lambda m, x: x.T.copy(), lambda m, x: x.T.contiguous(),
             layouts=("small2d", "mid2d", "square", "tall", "odd"), dtypes=REALS),
        Case("manipulation", "permute copied", lambda m, x: m.permute_dims(x, (2, 0, 1)).copy(),
             lambda m, x: m.transpose(x, (2, 0, 1)).copy(), lambda m, x: x.permute(2, 0, 1).contiguous(),
             layouts=("mid3d", "batched"), dtypes=t),
        Case("manipulation", "concat", lambda m, x, y: m.concat([x, y], axis=0), lambda m, x, y: m.concatenate([x, y], 0),
             lambda m, x, y: m.cat([x, y], 0), inputs=2, layouts=(*FLAT, "batched"), dtypes=t),
        Case("manipulation", "stack", *2 * [lambda m, x, y: m.stack([x, y], axis=-1)],
             lambda m, x, y: m.stack([x, y], -1), inputs=2, dtypes=t),
        Case("manipulation", "flip", lambda m, x: m.flip(x, axis=0).copy(), lambda m, x: m.flip(x, 0).copy(),
             lambda m, x: m.flip(x, (0,)), dtypes=t),
        Case("manipulation", "roll", *3 * [lambda m, x: m.roll(x, 3, 0)], dtypes=t),
        Case("manipulation", "tile", *3 * [lambda m, x: m.tile(x, (2, 3))], layouts=("small2d", "mid2d", "square"), dtypes=t),
        Case("manipulation", "repeat", lambda m, x: m.repeat(x, 3, axis=0), lambda m, x: m.repeat(x, 3, 0),
             lambda m, x: m.repeat_interleave(x, 3, 0), layouts=("4", "1e3", "1e5", "mid2d"), dtypes=t),
        Case("manipulation", "pad", lambda m, x: m.pad(x, ((1, 2), (3, 4))), lambda m, x: m.pad(x, ((1, 2), (3, 4))),
             lambda m, x: m.nn.functional.pad(x, (3, 4, 1, 2)), layouts=("small2d", "mid2d", "square"), dtypes=t),
        same("tril", "manipulation", layouts=("small2d", "mid2d", "square", "odd"), dtypes=t),
        Case("manipulation", "diff", *3 * [lambda m, x: m.diff(x)], layouts=("1e3", "1e7", "mid2d", "odd"), dtypes=t),
        Case("views", "reshape", *3 * [lambda m, x: m.reshape(x, (-1,))], layouts=("4", "1e3", "small2d", "square"), dtypes=t),
        Case("views", "slice", *3 * [lambda m, x: x[1:-1]], layouts=("4", "1e7", "square"), dtypes=t),
        Case("views", "diagonal", lambda m, x: m.linalg.diagonal(x), lambda m, x: m.diagonal(x),
             lambda m, x: m.diagonal(x), layouts=("small2d", "square"), dtypes=t),
        Case("views", "unstack", lambda m, x: m.unstack(x)[0], None, lambda m, x: m.unbind(x)[0],
             layouts=("small2d", "mid2d"), dtypes=t),
    ]  # fmt: skip


def created():
    none = {"inputs": lambda rng, t: [], "dtypes": ("float32",)}
    out = []
    for n in (4, 1000, 10**7):
        label = {4: "4", 1000: "1e3"}.get(n, "1e7")
        out += [
            Case("creation", f"zeros {label}", lambda m, n=n: m.zeros((n,), dtype=m.float32, **where(m)),
                 lambda m, n=n: m.full((n,), 0, "float32"), lambda m, n=n: m.zeros(n, **where(m)), layouts=(label,), **none),
            Case("creation", f"arange {label}", lambda m, n=n: m.arange(n, **where(m)), lambda m, n=n: m.arange(n),
                 lambda m, n=n: m.arange(n, **where(m)), layouts=(label,), **none),
            Case("random", f"uniform {label}", lambda m, n=n: m.random.uniform((n,), 0.0, 1.0, **where(m)),
                 lambda m, n=n: RNG.random(n, dtype="float32"), lambda m, n=n: m.rand(n, **where(m)),
                 layouts=(label,), check=False, **none),
            Case("random", f"normal {label}", lambda m, n=n: m.random.normal((n,), 0.0, 1.0, **where(m)),
                 lambda m, n=n: RNG.standard_normal(n, dtype="float32"), lambda m, n=n: m.randn(n, **where(m)),
                 layouts=(label,), check=False, **none),
        ]  # fmt: skip
    return out


RNG = np.random.default_rng(1)


@functools.cache
@functools.cache
def where(m):
    """The device of creation functions: the sweep's. Kept, since looking at the arguments takes longer than a small array."""
    device = sys.argv[sys.argv.index("--device") + 1] if "--device" in sys.argv else "cpu"
    if m.__name__ == "torch":
        return {"device": "cuda" if device == "cuda" else "cpu"}
    return {"device": "cuda:0" if device == "cuda" else device}


def cases():
    return [*sorting(), *indices(), *layout(), *created()]
