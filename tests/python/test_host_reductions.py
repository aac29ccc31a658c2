# SPDX-License-Identifier: Apache-2.0
"""Reductions of the host by where the reduced axes lie: rows of every length, middle axes, views, beside NumPy in float64."""

import numpy as np
import pytest
import weft

OPS = ("sum", "prod", "max", "min", "mean", "any", "all")
SHAPES = [
    ((3, 7, 45), (1,)),
    ((5, 1, 33), (1,)),
    ((2, 9, 5, 67), (1, 2)),
    ((2, 9, 5, 67), (0, 2)),
    ((4, 70, 3), (1,)),
    ((6, 5, 4, 3, 40), (1, 3)),
    ((70, 63), (1,)),
    ((70, 64), (1,)),
    ((9, 127), (1,)),
    ((9, 131), (1,)),
    ((300, 2, 2100), (0,)),
]


def draw(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype == "int32":
        return rng.integers(-3, 4, shape).astype(dtype)
    return rng.uniform(0.95, 1.06, shape).astype(dtype)


def check(a, x, axes):
    for op in OPS:
        if a.dtype == bool and op in ("prod", "max", "min", "mean"):
            continue
        if a.dtype == np.int32 and op == "mean":
            continue
        wide = a.astype("float64") if a.dtype.kind == "f" else a
        want = getattr(np, op)(wide, axis=axes)
        got = getattr(weft, op)(x, axis=axes).numpy()
        assert got.shape == want.shape
        if a.dtype.kind == "f" and got.dtype != bool:
            tolerance = 2e-4 if a.dtype == np.float32 else 1e-10
            np.testing.assert_allclose(got, want, rtol=tolerance, err_msg=op)
        else:
            np.testing.assert_array_equal(got, want, err_msg=op)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("shape, axes", SHAPES)
def test_reductions_of_any_axes(shape, axes, dtype):
    a = draw(shape, dtype)
    x = weft.asarray(a)
    check(a, x, axes)
    last = len(shape) - 1
    check(a[..., 1:], x[..., 1:], axes)
    check(a.swapaxes(0, last), x.swapaxes(0, last), axes)
    check(a[::2], x[::2], axes)
    check(a[..., ::2], x[..., ::2], axes)
    check(a[..., ::-3], x[..., ::-3], axes)


@pytest.mark.parametrize("shape, axes", SHAPES[:6])
def test_reductions_of_half_precision(shape, axes):
    """Runs of another type are converted on the way; the result is rounded once."""
    a = draw(shape, "float32").astype("float16")
    got = weft.sum(weft.asarray(a), axis=axes).numpy()
    np.testing.assert_allclose(got, a.astype("float64").sum(axis=axes), rtol=2e-3)
