# SPDX-License-Identifier: Apache-2.0
"""Means and variances of arrays on the host, beside NumPy in float64."""

import itertools

import numpy as np
import pytest

import weft

SHAPES = [(1,), (7,), (5000,), (70001,), (3, 5), (300, 7), (7, 300), (4099, 3), (2, 70000), (6, 5, 4), (3, 257, 9), (2, 3, 4, 5)]  # fmt: skip


def axes_of(ndim):
    yield None
    for count in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), count)


VIEWS = {
    "plain": lambda x: x,
    "turned": lambda x: x.swapaxes(-1, -2),
    "backwards": lambda x: x[..., ::-1],
    "stepped": lambda x: x[:, ::2],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
def test_moments_over_any_axes(dtype, view):
    rng = np.random.default_rng(3)
    tolerance = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 1e-2, "int32": 2e-5}[dtype]
    for shape in SHAPES:
        if len(shape) < 2 and view != "plain":
            continue
        values = rng.standard_normal(shape) * 3 + (0 if dtype == "bfloat16" else 40)
        x = weft.asarray(values * 10).astype(getattr(weft, dtype))
        base = VIEWS[view](x.astype(weft.float64).numpy())
        x = VIEWS[view](x)
        for axis in axes_of(base.ndim):
            count = base.size if axis is None else np.prod([base.shape[i] for i in axis])
            pairs = [
                (weft.mean(x, axis=axis), np.mean(base, axis=axis)),
                (weft.std(x, axis=axis, keepdims=True), np.std(base, axis=axis, keepdims=True)),
                (weft.var(x, axis=axis), np.var(base, axis=axis)),
            ]
            if count > 1:
                pairs.append(
                    (weft.var(x, axis=axis, correction=1), np.var(base, axis=axis, ddof=1))
                )
            for got, want in pairs:
                assert got.shape == want.shape
                got = got.astype(weft.float64).numpy()
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=10 * tolerance)


def test_a_small_spread_about_a_large_mean():
    x = np.random.default_rng(1).standard_normal((3, 40000)) + 1e4
    got = weft.var(weft.asarray(x.astype("float32")), axis=1).numpy()
    np.testing.assert_allclose(
        got, np.var(x.astype("float32").astype("float64"), axis=1), rtol=1e-3
    )


def test_special_numbers():
    x = np.ones((4, 5000), "float32")
    x[1, 7], x[2, 4000] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        for axis in (0, 1, None):
            np.testing.assert_array_equal(
                np.isnan(weft.var(weft.asarray(x), axis=axis).numpy()),
                np.isnan(np.var(x, axis=axis)),
            )
    assert np.isnan(weft.var(weft.asarray(np.ones(1, "float32")), correction=1).numpy())
    assert np.isnan(weft.var(weft.zeros((0, 3))).numpy())


def test_results_do_not_depend_on_threads():
    x = weft.asarray(np.random.default_rng(2).standard_normal((3, 90000)).astype("float32"))
    before = weft.get_threads()
    found = []
    for count in (1, 2):
        weft.set_threads(count)
        found.append([weft.var(x, axis=a).numpy().tobytes() for a in (0, 1, None)])
    weft.set_threads(before)
    assert found[0] == found[1]
