# SPDX-License-Identifier: Apache-2.0
"""Means, deviations and integrals of 16-bit floats whose sums are beyond the type, beside NumPy in float64."""

import numpy as np
import pytest
import weft


def drawn(shape, dtype):
    """Numbers that the type holds exactly, with NaN among them."""
    x = np.random.default_rng(len(shape)).uniform(100, 300, shape)
    x = np.asarray(weft.asarray(x).astype(dtype).astype(weft.float64))
    return x, np.where(np.random.default_rng(1).random(shape) < 0.3, np.nan, x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize(("shape", "axis"), [((4099,), None), ((3, 2051), 1), ((2051, 3), 0)])
def test_statistics_without_nan(name, dtype, shape, axis):
    _, holes = drawn(shape, dtype)
    got = getattr(weft, name)(weft.asarray(holes).astype(dtype), axis=axis)
    assert got.dtype.name == dtype
    want = getattr(np, name)(holes, axis=axis)
    error = 2.0**-8 if dtype == "bfloat16" else 2.0**-10
    np.testing.assert_allclose(np.asarray(got.astype(weft.float64)), want, rtol=error)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("positions", [None, "float32"])
def test_integrals(dtype, positions):
    y, _ = drawn((5, 2051), dtype)
    at = None if positions is None else np.linspace(0, 1, 2051).astype(positions)
    given = {"dx": 0.01} if at is None else {"x": weft.asarray(at)}
    got = weft.trapezoid(weft.asarray(y).astype(dtype), **given)
    assert got.dtype.name == (dtype if at is None else positions)
    integral = lambda y, at: np.sum((y[:, 1:] + y[:, :-1]) * np.diff(at) / 2, axis=-1)  # noqa: E731
    want = integral(y, np.arange(2051) * 0.01 if at is None else at.astype("float64"))
    error = 2.0**-8 if dtype == "bfloat16" else 2.0**-10
    np.testing.assert_allclose(np.asarray(got.astype(weft.float64)), want, rtol=error)
