# SPDX-License-Identifier: Apache-2.0
"""A case of the sweep: one function. Layouts and types are drawn from the names below."""

from __future__ import annotations

import dataclasses
import random
import typing

import numpy as np

# name: shape, and the view of it that is handed to the function
LAYOUTS = {
    "4": ((4,), None),
    "1e3": ((1000,), None),
    "1e5": ((100_000,), None),
    "1e7": ((10_000_000,), None),
    "square": ((3163, 3163), None),
    "tall": ((156_250, 64), None),
    "wide": ((64, 156_250), None),
    "odd": ((1013, 9871), None),
    "batched": ((64, 397, 394), None),
    "transposed": ((3163, 3163), "T"),
    "stepped": ((5_000_000, 4), "step"),
    "small2d": ((2, 2), None),
    "mid2d": ((100, 10), None),
    "mid3d": ((10, 10, 10), None),
    "matrix": ((317, 313), None),
    "cube": ((46, 47, 45), None),
}
FLAT = ("4", "1e3", "1e5", "1e7", "odd", "transposed", "stepped")
MATRICES = ("small2d", "mid2d", "square", "tall", "wide", "odd", "batched", "transposed")
LARGE = ("1e7", "square", "tall", "wide", "odd", "batched", "transposed")
FLOATS = ("float32", "bfloat16", "float64")
REALS = (*FLOATS, "int32")
ALL = (*REALS, "bool", "complex64")


_random = None


def vary(seed):
    """From now on the tables have other extents of the same classes. Called before the tables are imported."""
    global _random
    _random = random.Random(seed)
    for name, (shape, view) in LAYOUTS.items():
        LAYOUTS[name] = (varied(shape)[0], view)


def varied(*shapes):
    """The shapes, or ones with every extent above 8 drawn from half to one and a half of it: equal ones stay equal."""
    if _random is None:
        return shapes
    new = {n: _random.randint(n // 2 + 1, n * 3 // 2) for s in shapes for n in s if n > 8}
    return tuple(tuple(new.get(n, n) for n in s) for s in shapes)


def view_of(array, view):
    if view == "T":
        return array.T
    if view == "step":
        return array[:, ::2]
    return array


def draw(rng, shape, dtype, low=0.1, high=2.0):
    """Random numbers of a type; bfloat16 is drawn as float32 and rounded by each library."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        return rng.integers(1, 100, shape).astype(dtype)
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    out = rng.random(shape, dtype="float32") * np.float32(high - low) + np.float32(low)
    return out.astype("float32" if dtype == "bfloat16" else dtype)


@dataclasses.dataclass
class Case:
    """`ours`, `numpy`, `torch`: functions of (module, operands...); None where the library has no such function."""

    kind: str
    name: str
    ours: typing.Callable
    numpy: typing.Callable | None = None
    torch: typing.Callable | None = None
    layouts: tuple = FLAT
    dtypes: tuple = FLOATS
    inputs: int | typing.Callable = 1  # how many of the layout's shape, or (rng, dtype) -> arrays
    check: bool = True
    tolerance: str = ""
    domain: tuple = (0.1, 2.0)

    def operands(self, rng, layout, dtype):
        if callable(self.inputs):
            return self.inputs(rng, dtype)
        return [draw(rng, LAYOUTS[layout][0], dtype, *self.domain) for _ in range(self.inputs)]

    def function(self, library, layout, dtype, arrays, compiled=None):
        """A call without arguments; `compiled`: what makes a compiled function of one of operands."""
        f = getattr(self, {"weft": "ours"}.get(library.name, library.name))
        if f is None or (dtype == "bfloat16" and library.name == "numpy"):
            return None
        view = None if callable(self.inputs) else LAYOUTS[layout][1]
        operands = [view_of(library.take(a, dtype), view) for a in arrays]
        if compiled:
            whole = compiled(lambda *a: f(library.module, *a))
            return lambda: whole(*operands)
        prepared = getattr(f, "prepare", None)
        if prepared:
            return prepared(library.module, *operands)
        return lambda: f(library.module, *operands)


def same(name, kind="", numpy=None, torch=None, **options):
    """A function with one name everywhere, or with the names given; "-" where there is none."""

    def call(other):
        if other == "-":
            return None
        return lambda m, *a: getattr(m, other or name)(*a)

    return Case(kind, name, call(name), call(numpy), call(torch), **options)
