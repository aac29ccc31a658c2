# SPDX-License-Identifier: Apache-2.0
"""Compiled functions have eager's values where the formula of one operation changes with its operands: powers of infinities and zeros, choices between types,
ties of rounding."""

import numpy as np
import pytest

import weft

INF = float("inf")


def same(got, want):
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    a, b = (x.to("cpu").astype("float64").numpy() for x in (got, want))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a[a == a]), np.signbit(b[b == b]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("power", [0.5, -0.5, 2, 3, -1, 1, 0])
def test_powers(dtype, power):
    x = weft.asarray([-INF, INF, -0.0, 0.0, float("nan"), -1.0, 4.0, 2.25, 1e-30], dtype=dtype)
    found = weft.compile(lambda a: a**power + 0)(x)
    same(found, x**power + 0)
    with np.errstate(all="ignore"):
        want = np.power(x.numpy(), np.dtype(dtype).type(power)) + 0
    np.testing.assert_allclose(found.numpy(), want, rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "first, second", [("float16", "float32"), ("float32", "float64"), ("int8", "int32"), ("bool", "float32")]
)  # fmt: skip
def test_choices_between_types(first, second):
    c = weft.asarray([True, False, True, False])
    a = weft.asarray([1, 0, 0, 1]).astype(first)
    b = weft.asarray([100_000.5, 3, 2, 70_000.25]).astype(second)
    for x, y in ((a, b), (b, a)):
        want = weft.where(c, x, y)
        assert want.dtype == b.dtype
        same(weft.compile(lambda c, x, y: weft.where(c, x, y))(c, x, y), want)


@pytest.mark.parametrize("device", ["cpu", "c", "opencl:0"])
def test_ties_are_rounded_to_even(device):
    if not weft.device(device).available:
        pytest.skip(weft.device(device).reason)
    ties = np.arange(-6, 7) + np.float32(0.5)
    for dtype in ("float32", "float64"):
        x = weft.asarray(ties.astype(dtype), device=device)
        same(weft.round(x), weft.asarray(np.rint(ties).astype(dtype)))
        same(
            weft.compile(lambda a: weft.round(a) + 0)(x),
            weft.asarray(np.rint(ties).astype(dtype) + 0),
        )


def test_functions_without_arguments_run_at_each_call():
    calls = []

    @weft.compile
    def made():
        calls.append(len(calls))
        return weft.full((3,), float(len(calls)))

    found = [made() for _ in range(4)]
    assert [float(x[0]) for x in found] == [1.0, 2.0, 3.0, 4.0]
    with weft.autocast():
        assert float(made()[0]) == 5.0


@pytest.mark.parametrize("n", [7, 1024, 1025, 8192, 8193, 100_003])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_short_expressions_of_any_length(n, dtype):
    x = np.random.default_rng(n).standard_normal(n).astype(dtype)
    x[::5], x[1::11] = np.nan, np.inf
    w = weft.asarray(x)
    for f in (lambda a: weft.clip(a, -0.5, 0.5), weft.nan_to_num, lambda a: weft.maximum(a, 0.0) * 2.0 + 1.0):  # fmt: skip
        fused = weft.compile(f)
        for _ in range(3):  # traced, remembered, served
            np.testing.assert_array_equal(np.asarray(fused(w)), np.asarray(f(w)))


@pytest.mark.parametrize("shape", [(5, 7), (77, 7), (300, 200)])
def test_repeated_rows_and_columns(shape):
    x = np.random.default_rng(2).standard_normal(shape)
    w = weft.asarray(x)
    for f in (
        lambda a: weft.broadcast_to(a[:1], a.shape).copy(),
        lambda a: weft.broadcast_to(a[:, :1], a.shape).copy(),
        lambda a: (weft.broadcast_to(a[:1], a.shape), weft.broadcast_to(a[0], (2, *a.shape)) + 1.0),
        lambda a: weft.broadcast_to(weft.sum(a, axis=0), a.shape),
    ):
        got, want = weft.compile(f)(w), f(w)
        for g, e in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):  # fmt: skip
            np.testing.assert_allclose(np.asarray(g), np.asarray(e), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", ["abs", "relu", "sqrt", "positive", "negative", "sign"])
def test_zeros_with_a_sign_in_compiled_functions(name, dtype):
    """A block of nothing but zeros and larger numbers is not one of positive numbers."""
    f = getattr(weft, name, None) or getattr(weft.nn.functional, name)
    for first in (-0.0, 0.0):
        x = weft.asarray(np.where(np.arange(5000) % 7 == 3, first, 2.0), dtype=dtype)
        found = weft.compile(lambda v: f(f(v) * 1.0))(x)
        wanted = f(f(x) * 1.0)
        np.testing.assert_array_equal(np.signbit(found.numpy()), np.signbit(wanted.numpy()))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("power", [0.5, -0.5, 2, 3, -1, 1.5, 2.0, 0.0])
def test_powers_are_those_of_eager_operations(power, dtype):
    """At infinities, zeros of both signs and numbers below zero, too."""
    x = weft.asarray([-np.inf, -2.0, -0.0, 0.0, 1e-3, 0.7, 3.0, 200.0, np.inf, np.nan] * 3).astype(
        dtype
    )
    found = weft.compile(lambda v: (v * 1.0) ** power + 0.0)(x)
    wanted = (x * 1.0) ** power + 0.0
    np.testing.assert_array_equal(found.astype("float64").numpy(), wanted.astype("float64").numpy())
