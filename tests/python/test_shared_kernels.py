# SPDX-License-Identifier: Apache-2.0
"""Host kernels whose code serves several rows (host/generate): unsigned integers, comparisons the other way round."""

import numpy as np
import pytest

import weft

INTEGERS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
SIZES = (1, 7, 63, 64, 130, 1001)


def values(dtype, n, seed=0):
    """Random numbers of the whole range, its ends among them."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng([seed, n])
    x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    x[:: max(1, n // 5)] = info.max
    x[1 :: max(1, n // 4)] = info.min
    return x


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("n", SIZES)
def test_rows_of_two_operands(dtype, n):
    x, y = values(dtype, n), values(dtype, n, 1)
    y[::3] = x[::3]
    a, b, one = weft.array(x), weft.array(y), y[n // 2 : n // 2 + 1]
    names = [
        "add",
        "subtract",
        "multiply",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "maximum",
        "minimum",
    ]
    names += ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
    for name in names:
        ours, theirs = getattr(weft, name), getattr(np, name)
        for left, right in ((a, b), (a, weft.array(one)), (weft.array(one), b)):
            found, wanted = ours(left, right).numpy(), theirs(left.numpy(), right.numpy())
            assert found.dtype == wanted.dtype, name
            np.testing.assert_array_equal(found, wanted, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_comparisons_of_floats(dtype):
    rng = np.random.default_rng(3)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], dtype)
    x, y = rng.choice(special, 1001), rng.choice(special, 1001)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        ours, theirs = getattr(weft, name), getattr(np, name)
        np.testing.assert_array_equal(
            ours(weft.array(x), weft.array(y)).numpy(), theirs(x, y), err_msg=name
        )
        for value in special:
            one = np.array([value], dtype)
            np.testing.assert_array_equal(
                ours(weft.array(x), weft.array(one)).numpy(), theirs(x, one), err_msg=name
            )
            np.testing.assert_array_equal(
                ours(weft.array(one), weft.array(x)).numpy(), theirs(one, x), err_msg=name
            )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_products_and_places(dtype):
    for n in SIZES:
        x = values(dtype, 4 * n).reshape(4, n)
        a = weft.array(x)
        # Sums wrap in the type that is asked for.
        for name in ("sum", "prod", "cumsum"):
            found = getattr(weft, name)(a, axis=1, dtype=dtype).numpy()
            np.testing.assert_array_equal(
                found, getattr(np, name)(x, axis=1, dtype=dtype), err_msg=name
            )
            found = getattr(weft, name)(a, axis=0, dtype=dtype).numpy()
            np.testing.assert_array_equal(
                found, getattr(np, name)(x, axis=0, dtype=dtype), err_msg=name
            )
        for name in ("max", "min", "argmax", "argmin"):
            for axis in (0, 1):
                found = getattr(weft, name)(a, axis=axis).numpy()
                np.testing.assert_array_equal(found, getattr(np, name)(x, axis=axis), err_msg=name)


@pytest.mark.parametrize("source", ["bool", *INTEGERS])
def test_conversions_between_integers(source):
    for n in SIZES:
        x = values("uint8", n) > 99 if source == "bool" else values(source, n)
        for target in ["bool", *INTEGERS]:
            found = weft.array(x).astype(target).numpy()
            np.testing.assert_array_equal(found, x.astype(target), err_msg=target)


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "complex64", "complex128"])
def test_conversions_of_floats_to_narrow_integers(source):
    x = np.arange(-127, 128).astype(source)
    for target in ("int8", "uint8", "int16", "uint16"):
        wanted = x.real.astype("int32").astype(target)  # by way of int32, as in C
        np.testing.assert_array_equal(weft.array(x).astype(target).numpy(), wanted, err_msg=target)
