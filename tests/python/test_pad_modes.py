# SPDX-License-Identifier: Apache-2.0
"""Every mode of pad beside NumPy: widths beyond the axis, axes of one entry, whole numbers, gradients."""

import itertools

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(812)
ENDS = [{"end_values": 3}, {"end_values": (-2, 5)}]
LENGTHS = [{}, {"stat_length": 2}, {"stat_length": (1, 3)}]
OPTIONS = {
    "constant": [{}, {"constant_values": (1, 2)}],
    "edge": [{}],
    "linear_ramp": [{}, *ENDS],
    "maximum": LENGTHS,
    "mean": LENGTHS,
    "median": LENGTHS,
    "minimum": LENGTHS,
    "reflect": [{}, {"reflect_type": "odd"}],
    "symmetric": [{}, {"reflect_type": "odd"}],
}


def wrapped(x, width):
    """By positions: NumPy before 1.25 wraps otherwise where the width is beyond the axis."""
    return np.take(x, np.arange(-width, x.shape[0] + width) % x.shape[0], axis=0)


@pytest.mark.parametrize("mode", OPTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
def test_mode(mode, dtype):
    for shape in [(3, 4), (5,), (1, 3), (2, 3, 4)]:
        x = (RNG.standard_normal(shape) * 20).astype(dtype)
        widths = [1, (2, 3), [(0, 1)] * len(shape), [(4, 7)] * len(shape)]
        for width, options in itertools.product(widths, OPTIONS[mode]):
            want = np.pad(x, width, mode, **options)
            got = weft.pad(weft.asarray(x), width, mode, **options)
            assert got.dtype.name == dtype
            # Odd reflections add edges several times: the error is that of the largest number.
            near = 1e-6 * max(1.0, float(np.abs(want).max())) if dtype == "float32" else 1e-11
            np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=near)


def test_wrap_beyond_the_axis():
    x = RNG.standard_normal((5, 2))
    got = weft.pad(weft.asarray(x), [(7, 7), (0, 0)], "wrap")
    np.testing.assert_array_equal(got.numpy(), wrapped(x, 7))


@pytest.mark.parametrize("mode,options", [("linear_ramp", {}), ("mean", {}), ("maximum", {}), ("reflect", {"reflect_type": "odd"})])  # fmt: skip
def test_gradient(mode, options):
    x, weights = RNG.standard_normal(5), RNG.standard_normal(14)
    t = weft.Tensor(weft.asarray(x))
    (weft.pad(t, [(3, 6)], mode, **options) * weft.asarray(weights)).sum().backward()
    unit = np.eye(5) * 1e-6
    f = lambda v: float(np.pad(v, (3, 6), mode, **options) @ weights)  # noqa: E731
    want = [(f(x + e) - f(x - e)) / 2e-6 for e in unit]
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-6, atol=1e-8)
