# SPDX-License-Identifier: Apache-2.0
"""All methods of quantiles beside NumPy: odd counts, ties, NaN, axes, tensors, weights."""

import numpy as np
import pytest
from present import present

import weft

RNG = np.random.default_rng(27)
METHODS = [
    "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
]  # fmt: skip
SHARES = [0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 1.0]
CASES = [RNG.standard_normal(n) for n in (1, 2, 3, 4, 5, 8, 20, 33)] + [
    RNG.integers(0, 4, 24) * 1.0
]


@pytest.mark.parametrize("method", METHODS)
def test_method(method):
    for x in CASES:
        want = np.quantile(x, SHARES, method=method)
        w = weft.asarray(x)
        np.testing.assert_allclose(
            weft.quantile(w, SHARES, method=method).numpy(), want, rtol=1e-12, atol=1e-13
        )
        percent = weft.percentile(weft.Tensor(w), [100 * q for q in SHARES], method=method)
        np.testing.assert_allclose(percent.numpy(), want, rtol=1e-12, atol=1e-13)
    grid = RNG.standard_normal((5, 6, 7))
    want = np.quantile(grid, 0.37, axis=(0, 2), keepdims=True, method=method)
    got = weft.quantile(weft.asarray(grid), 0.37, axis=(0, 2), keepdims=True, method=method)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_method_beside_nan(method):
    x = np.where(RNG.random((9, 11)) < 0.3, np.nan, RNG.standard_normal((9, 11)))
    for share in (0.0, 0.4, 1.0):
        lines = [line[~np.isnan(line)] for line in x]
        want = [np.quantile(line, share, method=method) for line in lines]
        got = weft.nanquantile(weft.asarray(x), share, axis=1, method=method)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-13)
    assert np.isnan(weft.quantile(weft.asarray(x), 0.5, method=method).item())


def test_weights_repeat_entries():
    x, often = RNG.standard_normal((4, 9)), RNG.integers(0, 5, (4, 9))
    often[:, 0] = 2
    for share in (0.0, 0.2, 0.5, 0.81, 1.0):
        want = [
            np.quantile(np.repeat(a, n), share, method="inverted_cdf") for a, n in zip(x, often)
        ]
        got = weft.quantile(
            weft.asarray(x), share, axis=1, method="inverted_cdf", weights=weft.asarray(often)
        )
        np.testing.assert_array_equal(got.numpy(), want)
    all_of = weft.percentile(
        weft.asarray(x), [20, 50], method="inverted_cdf", weights=weft.asarray(often)
    )
    whole = np.repeat(x.ravel(), often.ravel())
    np.testing.assert_array_equal(
        all_of.numpy(), np.quantile(whole, [0.2, 0.5], method="inverted_cdf")
    )


def test_moments_about_a_given_mean():
    x = RNG.standard_normal((5, 8))
    about = RNG.standard_normal((5, 1))
    want = ((x - about) ** 2).sum(1) / 7
    got = weft.var(weft.asarray(x), axis=1, ddof=1, mean=weft.asarray(about))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    deviation = weft.std(weft.asarray(x), axis=1, ddof=1, mean=weft.asarray(about), keepdims=True)
    np.testing.assert_allclose(deviation.numpy(), np.sqrt(want)[:, None], rtol=1e-12)


def test_refused():
    x = weft.asarray(RNG.standard_normal((3, 4)))
    for call, code, text in (
        (lambda: weft.quantile(x, 0.5, method="strange"), "array.quantile.method", "'hazen'"),
        (lambda: weft.quantile(x, 0.5, weights=x), "array.quantile.method", "'inverted_cdf'"),
        (
            lambda: weft.percentile(x, 5, axis=0, method="inverted_cdf", weights=[1, 2]),
            "array.percentile.weights",
            "(2,)",
        ),
        (lambda: weft.unravel_index([1], (2, 3), order="K"), "array.unravel.order", "'K'"),
        (lambda: weft.ravel_multi_index(([1], [1]), (2, 3), order="K"), "array.ravel.order", "'K'"),
    ):
        with pytest.raises(weft.ArgumentError) as refused:
            call()
        assert refused.value.code == code and text in str(refused.value)


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
def test_the_nearest_of_two_neighbours(device):
    present(device)
    x = weft.asarray([10.0, 20.0, 30.0, 40.0, 50.0, 60.0], device=device, dtype="float16")
    for q in np.arange(0, 101, 5):
        wanted = np.percentile(x.numpy().astype("float64"), q, method="nearest")
        for given in (x, x.astype("float32")):
            assert float(weft.percentile(given, float(q), method="nearest")) == wanted, q
