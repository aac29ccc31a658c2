# SPDX-License-Identifier: Apache-2.0
"""Operands, options and comparisons that test_standard_draws.py and test_standard_numbers.py draw. WEFT_TEST_DRAWS=200 draws so often."""

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
SPECIAL = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -1.5,
    2.5,
    1e-310,
    -1e-42,
    1e-30,
    3.0e38,
    -7.0,
    1e6,
]


class Draw:
    """Choices of one call; `x`, `w` make an operand of NumPy and the same of weft."""

    def __init__(self, rng, device):
        self.rng, self.device = rng, device

    def of(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def shape(self, least=0, most=4, extents=EXTENTS):
        while (
            math.prod(shape := tuple(self.of(extents) for _ in range(self.int(least, most)))) > 4000
        ):
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
            x = np.where(
                self.rng.random(shape) < special, ends[self.rng.integers(0, len(ends), shape)], x
            )
        return np.asarray(x, dtype)

    def tame(self, shape, dtype):
        return self.values(shape, dtype, special=0)

    def ties(self, shape, dtype):
        """Many equal elements."""
        return (
            np.asarray(self.rng.integers(0, 4, shape)) > 1
            if dtype == "bool"
            else np.asarray(self.rng.integers(0, 4, shape)).astype(dtype)
        )

    def axis(self, ndim):
        return self.int(-ndim, ndim - 1)

    def axes(self, ndim):
        """None, one axis or several."""
        return self.of(
            [
                None,
                *([self.axis(ndim)] if ndim else []),
                tuple(a - ndim * self.int(0, 1) for a in range(ndim) if self.int(0, 1)),
            ]
        )

    def w(self, *operands):
        """The same on the device; most as a view: another order of axes, backwards, or with a step."""
        out = []
        for x in operands:
            given, view = weft.asarray(x, device=self.device), self.int(0, 3)
            if view == 1 and x.ndim:
                given = weft.flip(
                    weft.asarray(np.ascontiguousarray(np.flip(x)), device=self.device)
                )
            elif view == 2 and x.ndim:
                apart = weft.asarray(np.repeat(x, 3, axis=-1), device=self.device)
                given = apart[..., 1::3]
            elif view == 3 and x.ndim > 1:
                order = tuple(self.rng.permutation(x.ndim).tolist())
                given = weft.permute_dims(
                    weft.asarray(np.ascontiguousarray(x.transpose(order)), device=self.device),
                    tuple(np.argsort(order).tolist()),
                )
            out.append(given)
        return out[0] if len(out) == 1 else out


def same(found, wanted, what, loose=0.0):
    """Equal type, shape, NaN, infinities and integers; floats to their type's precision."""
    wanted = np.asarray(wanted)
    assert isinstance(found, weft.NDArray) and found.dtype.name == wanted.dtype.name, (
        what,
        found.dtype,
        wanted.dtype,
    )
    assert tuple(found.shape) == wanted.shape, (what, found.shape, wanted.shape)
    got = found.numpy()
    if wanted.dtype.kind in "fc":
        close = max(loose, 3e-6 if wanted.dtype.name in ("float32", "complex64") else 1e-12)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0) if loose else 0.0
        np.testing.assert_allclose(
            got, wanted, rtol=close, atol=close * min(scale, 1e30), err_msg=str(what)
        )
        if wanted.dtype.kind == "f" and not loose:
            zero = wanted == 0
            assert (np.signbit(got) == np.signbit(wanted))[zero].all(), (what, "sign of zero")
    else:
        np.testing.assert_array_equal(got, wanted, err_msg=str(what))


IN_NUMPY = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "bitwise_invert": "bitwise_not",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "pow": "power",
}


def broadcast(d):
    """Two shapes that fit each other."""
    whole = d.shape(0, 3)
    cut = [
        tuple(n if d.int(0, 2) else 1 for n in whole)[d.int(0, len(whole)) if d.int(0, 1) else 0 :]
        for _ in range(2)
    ]
    return cut if d.int(0, 1) else [whole, cut[1]]


def table():
    """(cases by name, a decorator that adds one under several names)."""
    cases = {}

    def case(*names):
        def put(f):
            for name in names:
                assert name not in cases, name
                cases[name] = f
            return f

        return put

    return cases, case


def run(f, name, device, draws, rng):
    with np.errstate(all="ignore"):
        for _ in range(draws):
            f(name, Draw(rng, device))
