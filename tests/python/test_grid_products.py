# SPDX-License-Identifier: Apache-2.0
"""Products on a device with a grid beside NumPy: random sizes, types, layouts, batches and views. Numbers are small integers,
so that every sum is exact."""

import numpy as np
import pytest
from present import present

import weft

SEED = 20261123
TYPES = ["float32", "float64", "float16", "int32", "int64", "uint8", "complex64"]


@pytest.fixture(scope="module")
def device():
    return present("opencl:0")


def operand(rng, device, batch, rows, columns, dtype, turned, gap, step):
    """An array of NumPy and one of the device, of these rows and columns; `gap` elements between rows, every `step`-th one."""
    if turned:
        rows, columns = columns, rows
    shape = (*batch, rows, columns * step + gap)
    x = rng.integers(0 if dtype == "uint8" else -3, 4, shape).astype(dtype)
    if dtype == "complex64":
        x = x + 1j * rng.integers(-3, 4, shape).astype("float32")
    view = (Ellipsis, slice(0, columns * step, step))
    x, y = x[view], weft.asarray(x.astype(dtype), device=device)[view]
    return (x.swapaxes(-1, -2), weft.matrix_transpose(y)) if turned else (x, y)


def compare(device, rng, batches, m, n, k, dtype, turned=(False, False), gap=0, step=1):
    a, x = operand(rng, device, batches[0], m, k, dtype, turned[0], gap, step)
    b, y = operand(rng, device, batches[1], k, n, dtype, turned[1], gap, step)
    got = (x @ y).numpy()
    if dtype == "float16":  # sums beyond 2048 are rounded once
        want = (a.astype("float32") @ b.astype("float32")).astype("float16")
    else:
        want = np.matmul(a, b).astype(got.dtype)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", TYPES)
def test_random_products(device, dtype):
    print("seed", SEED)
    rng = np.random.default_rng([SEED, TYPES.index(dtype)])
    for _ in range(3):
        m, n, k = (int(300 ** rng.random()) for _ in range(3))
        compare(device, rng, ((), ()), m, n, k, dtype, rng.integers(0, 2, 2).astype(bool))


@pytest.mark.parametrize("turned", [(a, b) for a in (False, True) for b in (False, True)])
def test_layouts_gaps_and_steps(device, turned):
    rng = np.random.default_rng(SEED)
    compare(device, rng, ((), ()), 68, 72, 20, "float32", turned)  # vectors of 16 bytes
    compare(device, rng, ((), ()), 37, 41, 33, "float32", turned, gap=3)
    compare(device, rng, ((), ()), 9, 70, 150, "float32", turned, step=2)


@pytest.mark.parametrize(
    "batches",
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((2, 1, 3), (2, 4, 1)),
        ((), (5,)),
        ((2, 3, 1, 2), (1, 3, 2, 1)),
    ],
)
def test_batches_broadcast(device, batches):
    compare(device, np.random.default_rng(SEED), batches, 11, 13, 7, "float32")


@pytest.mark.parametrize("batches", [((), ()), ((2,), (2,))])
def test_long_sums_are_divided(device, batches):
    compare(device, np.random.default_rng(SEED), batches, 33, 35, 1001, "float32")


def test_more_planes_and_rows_than_other_axes_of_the_grid_have(device):
    rng = np.random.default_rng(SEED)
    compare(device, rng, ((65537,), (65537,)), 5, 6, 3, "float32")
    compare(device, rng, ((), ()), 65536 * 33, 6, 2, "uint8")
