# SPDX-License-Identifier: Apache-2.0
"""Operands of several parts: lengths at which the host's kernels cut their work, with remainders, and values that need a wider type on the way."""

import numpy as np
import pytest
import weft


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("parts", [1, 2, 3, 5, 6, 7, 11])
def test_products_of_long_vectors(parts, dtype, rng):
    """Sums of whole numbers are exact: a part that is lost or counted twice shows."""
    for n in (8192 * parts, 8192 * parts - 1, 8192 * parts + 1):
        a, b = (rng.integers(-3, 4, n).astype(dtype) for _ in range(2))
        assert (weft.asarray(a) @ weft.asarray(b)).item() == a @ b, n
        assert weft.vecdot(weft.asarray(a), weft.asarray(b)).item() == a @ b, n


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 2500, 5), 1), ((2, 1100, 300), 1), ((4000, 300), 0), ((2, 3, 9001), 2), ((5, 66000), 1)],
)
def test_variances_of_several_parts(shape, axis, dtype, rng):
    """Each part has another mean, so that reading one for another shows."""
    x = rng.normal(0, 1, shape)
    x += np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))]) / 100
    x += np.arange(shape[0]).reshape([-1] + [1] * (len(shape) - 1))
    x = x.astype(dtype)
    for name in ("var", "std", "mean"):
        wanted = getattr(np, name)(x.astype("float64"), axis=axis)
        found = getattr(weft, name)(weft.asarray(x), axis=axis).numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-5 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int32", "int64"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes_at_the_ends_of_a_type(name, dtype, rng):
    ends = np.iinfo(dtype)
    for n in (1, 5, 200, 1000):
        x = rng.choice(
            np.array([ends.min, ends.max, ends.max // 2 + 1, ends.max // 2, 1], dtype), n
        )
        found = getattr(weft, name)(weft.Tensor(weft.asarray(x)), 0)
        wanted = (np.maximum if name == "cummax" else np.minimum).accumulate(x)
        np.testing.assert_array_equal(found[0].numpy(), wanted)
        np.testing.assert_array_equal(x[found[1].numpy()], wanted)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "int16"])
def test_least_multiples_whose_product_overflows(dtype):
    most = np.iinfo(dtype).max // 6
    a, b = np.array([most * 2, most * 3, 0, 6], dtype), np.array([most * 3, most * 2, 5, 4], dtype)
    np.testing.assert_array_equal(weft.lcm(weft.asarray(a), weft.asarray(b)).numpy(), np.lcm(a, b))
    np.testing.assert_array_equal(weft.gcd(weft.asarray(a), weft.asarray(b)).numpy(), np.gcd(a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_interpolation_at_its_points(dtype):
    points, values = np.array([0.0, 1.0, 2.0, 5.0]), np.array([3.0, np.inf, -1.0, 7.0])
    x = np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.5, 5.0, 6.0, np.nan])
    given = [weft.asarray(v.astype(dtype)) for v in (x, points, values)]
    for options in ({}, {"left": -9.0, "right": 9.0}):
        with np.errstate(invalid="ignore"):
            wanted = np.interp(x, points, values, **options)
        np.testing.assert_allclose(weft.interp(*given, **options).numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1537,), 0), ((5000,), 0), ((3, 1700), 1), ((2, 5, 40003), 1), ((700, 33), 0), ((2, 2049, 3), 1)],
)  # fmt: skip
def test_running_sums_of_several_parts(shape, axis, dtype, rng):
    """Sums of whole numbers are exact: a part before that is lost shows, and so does a column that is read for another."""
    x = rng.integers(-3, 4, shape)
    if dtype == "float16":
        x[:] = np.where(np.arange(x.size).reshape(shape) % 2 == 0, 1, -1)
    for name, numpys in (("cumulative_sum", "cumsum"), ("cummax", "maximum.accumulate"), ("cumulative_prod", "cumprod")):  # fmt: skip
        given = x if name != "cumulative_prod" else np.sign(x) + (x == 0)
        f = np.maximum.accumulate if name == "cummax" else getattr(np, numpys)
        found = getattr(weft, name)(weft.asarray(given.astype(dtype)), **{"dim" if name == "cummax" else "axis": axis})  # fmt: skip
        found = found[0] if isinstance(found, tuple) else found
        np.testing.assert_array_equal(found.numpy().astype("float64"), f(given, axis=axis).astype("float64"), err_msg=name)  # fmt: skip
