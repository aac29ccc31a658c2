# SPDX-License-Identifier: Apache-2.0
"""Random numbers and ranges that a card makes itself: the host's numbers for equal keys."""

import numpy as np
import pytest
from present import present

import weft
from weft import random

GRID = "opencl:0"
present(GRID)

SIZES = [0, 1, 2, 3, 4, 5, 1023, 1025, 100_003]
KEY = random.key(1234567890123456789)


def host(x):
    assert x.device.name == GRID
    return x.to("cpu").numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_equal_keys_give_equal_numbers(n, dtype):
    got = random.uniform(n, dtype=dtype, device=GRID, key=KEY)
    assert np.array_equal(host(got), random.uniform(n, dtype=dtype, key=KEY).numpy())
    got = host(random.normal(n, dtype=dtype, device=GRID, key=KEY))
    want = random.normal(n, dtype=dtype, key=KEY).numpy()
    np.testing.assert_allclose(got, want, atol=1e-5 if dtype == "float32" else 1e-13, rtol=0)


def test_streams_beyond_32_bits():
    key = random.Key(2**63 + 5, 2**33 - 1)
    got = random.uniform(999, device=GRID, key=key)
    assert np.array_equal(host(got), random.uniform(999, key=key).numpy())


def test_integers_choices_and_permutations():
    for make in (
        lambda device: random.integers(-5, 100, (33, 5), device=device, key=KEY),
        lambda device: random.permutation(1000, device=device, key=KEY),
        lambda device: random.bernoulli(0.3, (100, 3), device=device, key=KEY),
        lambda device: random.choice(weft.arange(7, device=device) * 3, (9, 2), key=KEY),
    ):
        assert np.array_equal(host(make(GRID)), make("cpu").numpy())


def test_the_distribution():
    x = host(random.normal(400_001, device=GRID, key=KEY)).astype("float64")
    assert abs(x.mean()) < 0.01 and abs(x.std() - 1) < 0.01 and abs((x**3).mean()) < 0.03
    u = host(random.uniform(400_001, 2.0, 5.0, device=GRID, key=KEY))
    assert u.min() >= 2 and u.max() <= 5 and abs(u.mean() - 3.5) < 0.01


def test_dropout_and_initial_values_stay_on_the_card():
    x = weft.ones((300, 70), device=GRID)
    kept = host(weft.nn.Dropout(0.25)(weft.Tensor(x, requires_grad=False)).data)
    assert set(np.unique(kept).round(5)) == {0.0, np.float32(4 / 3).round(5)}
    assert 0.7 < (kept > 0).mean() < 0.8
    assert weft.init.randn(3, 5, device=GRID).device.name == GRID


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_ranges(dtype):
    for start, stop, step in ((0, 0, 1), (0, 100, 3), (100, 3, -7), (2, 3, 1)):
        got = weft.arange(start, stop, step, dtype=dtype, device=GRID)
        want = weft.arange(start, stop, step, dtype=dtype)
        assert got.dtype == want.dtype
        assert np.array_equal(host(got.astype("float64")), want.astype("float64").numpy())
