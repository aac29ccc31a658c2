# SPDX-License-Identifier: Apache-2.0
"""weft.compile of 16-bit floats: comparisons, choices and extremes beside NumPy's in float32, and compositions that are rounded
once, as of arrays."""

import numpy as np
import pytest
import weft

HALVES = ("float16", "bfloat16")
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 6.1e-5, -3.1e-6)


def _numbers(seed, n, dtype):
    rng = np.random.default_rng(seed)
    a = (rng.standard_normal(n) * 3).astype("float32")
    a[rng.integers(0, n, n // 5)] = rng.choice(SPECIAL, n // 5)
    x = weft.asarray(a).astype(dtype)
    return x, x.astype("float32").numpy()


def _wide(x):
    return x.astype("float32").numpy()


CASES = {
    "less": lambda m, x, y: x < y,
    "greater or equal": lambda m, x, y: x >= y,
    "equal": lambda m, x, y: x == y,
    "not equal": lambda m, x, y: x != y,
    "isnan": lambda m, x, y: m.isnan(x),
    "isfinite": lambda m, x, y: m.isfinite(x),
    "where": lambda m, x, y: m.where(x > y, x, y),
    "maximum": lambda m, x, y: m.maximum(x, y),
    "minimum": lambda m, x, y: m.minimum(x, y),
    "limits": lambda m, x, y: m.minimum(m.maximum(x, -0.5), 1.5),
    "limit of 0": lambda m, x, y: m.maximum(0.0, x),
    "as truth": lambda m, x, y: x.astype("bool"),
}


@pytest.mark.parametrize("n", [5, 1031, 4099])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", HALVES)
def test_comparisons(dtype, name, n):
    (x, a), (y, b) = (_numbers(seed, n, dtype) for seed in (n, n + 1))
    f = CASES[name]
    # A step before, so that what is compared is a value of a kernel.
    got = weft.compile(lambda x, y: f(weft, x * 1.0, y + 0.0))(x, y)
    want = f(np, a * np.float32(1), b + np.float32(0))
    if got.dtype == weft.bool:
        np.testing.assert_array_equal(got.numpy(), want)
    else:
        assert got.dtype == weft.dtype(dtype)
        np.testing.assert_array_equal(_wide(got), want.astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_limits(dtype):
    """Extremes beside a number: NaN stays, equal zeros and infinities are those of the eager operation."""
    x, _ = _numbers(7, 2053, "float32")
    x = x.astype(dtype)
    for low, high in ((-0.5, 1.5), (0.0, float("inf")), (float("-inf"), -0.0)):
        f = lambda v, low=low, high=high: weft.minimum(weft.maximum(v * 2.0, low), high)  # noqa: E731
        got, want = weft.compile(f)(x).numpy(), f(x).numpy()
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))


COMPOSED = {
    "addcmul": lambda x, y, z: weft.addcmul(x, y, z, value=0.3),
    "addcdiv": lambda x, y, z: weft.addcdiv(x, y, z, value=0.3),
    "lerp": lambda x, y, z: weft.lerp(x, y, z),
    "deg2rad": lambda x, y, z: weft.deg2rad(x),
    "frac": lambda x, y, z: weft.frac(x),
    "nan_to_num": lambda x, y, z: weft.nan_to_num(x),
}


@pytest.mark.parametrize("n", [3, 1500])
@pytest.mark.parametrize("name", COMPOSED)
@pytest.mark.parametrize("dtype", HALVES)
def test_compositions_are_rounded_once(dtype, name, n):
    rng = np.random.default_rng(n)
    x, y, z = (
        weft.asarray(rng.random(n, dtype="float32") + np.float32(0.25)).astype(dtype)
        for _ in range(3)
    )
    f = COMPOSED[name]
    got, want = weft.compile(f)(x, y, z), f(x, y, z)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(_wide(got), _wide(want))


@pytest.mark.parametrize("dtype", HALVES)
def test_gradient_of_a_composition(dtype):
    x, y, z = (weft.Tensor(weft.asarray(a).astype(dtype), requires_grad=True) for a in np.random.default_rng(1).random((3, 40), dtype="float32") + 0.5)  # fmt: skip
    weft.compile(lambda x, y, z: weft.addcmul(x, y, z, value=0.5))(x, y, z).sum().backward()
    np.testing.assert_allclose(_wide(x.grad), np.ones(40))
    np.testing.assert_allclose(_wide(y.grad), _wide(z.data) / 2, rtol=2**-7)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float16"])
@pytest.mark.parametrize("name", ["any", "all"])
def test_truth_ends_early(name, dtype):
    """any and all of numbers are one eager step, which reads them itself."""
    f = getattr(weft, name)
    rng = np.random.default_rng(5)
    for shape, axis in (((5,), None), ((1301,), None), ((23, 71), 0), ((23, 71), 1)):
        for a in (np.zeros(shape), np.ones(shape), rng.integers(0, 2, shape)):
            x = weft.asarray(a.astype(dtype))
            compiled = weft.compile(lambda x, axis=axis: f(x, axis=axis))
            np.testing.assert_array_equal(
                compiled(x).numpy(), getattr(np, name)(a.astype(bool), axis=axis)
            )
            assert "fused" not in compiled.describe()


@pytest.mark.parametrize("n", [1, 4, 67, 1024])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_few_elements(dtype, n):
    """Two or three operations over few elements give what they give one by one."""
    rng = np.random.default_rng(n)
    x, y = (weft.asarray((rng.random(n) * 20 - 10).astype(dtype)) for _ in range(2))
    for f in (
        lambda x, y: x * y + x,
        lambda x, y: weft.where(x > y, x, y - x),
        lambda x, y: (x - 3) * (y + 2),
        lambda x, y: (x * 2 > y).astype("float32"),
    ):
        got, want = weft.compile(f)(x, y), f(x, y)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    turned = weft.compile(lambda x, y: x[::-1] * y + 1)  # another layout than the first call's
    np.testing.assert_array_equal(turned(x, y).numpy(), (x[::-1] * y + 1).numpy())
    if n > 1:
        with pytest.raises(weft.Error):
            weft.compile(lambda x, y: x * y + x)(x, weft.zeros(n + 1, dtype=dtype))
