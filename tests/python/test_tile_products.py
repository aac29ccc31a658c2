# SPDX-License-Identifier: Apache-2.0
"""Products of bfloat16 arrays and of few rows on the host, beside sums in float64 of the same rounded numbers."""

import numpy as np
import pytest

import weft

SIZES = [(1, 1, 1), (3, 5, 7), (16, 16, 32), (17, 31, 33), (33, 47, 65), (64, 70, 129), (1, 300, 500), (257, 3, 1100), (70, 1030, 40), (37, 33, 8300)]  # fmt: skip


def turned(x, way):
    return x.T.contiguous().T if way == "turned" else x


@pytest.mark.parametrize("ways", [("plain", "plain"), ("turned", "plain"), ("plain", "turned"), ("turned", "turned")])  # fmt: skip
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_layouts_and_odd_sizes(dtype, ways):
    rng = np.random.default_rng(11)
    kind = getattr(weft, dtype)
    tolerance = {"bfloat16": 2**-8, "float32": 1e-5, "float64": 1e-13}[dtype]
    for m, n, k in SIZES:
        a = weft.asarray(rng.standard_normal((m, k))).astype(kind)
        b = weft.asarray(rng.standard_normal((k, n))).astype(kind)
        left, right = (x.astype(weft.float64).numpy() for x in (a, b))
        want, scale = left @ right, np.abs(left) @ np.abs(right)
        got = (turned(a, ways[0]) @ turned(b, ways[1])).astype(weft.float64).numpy()
        assert (np.abs(got - want) <= tolerance * np.abs(want) + 1e-6 * scale).all(), (m, n, k)


def test_stacks_and_steps_of_bfloat16():
    rng = np.random.default_rng(12)
    a = weft.asarray(rng.standard_normal((5, 1, 40, 70))).astype(weft.bfloat16)
    b = weft.asarray(rng.standard_normal((3, 70, 24))).astype(weft.bfloat16)
    a, b = a[:, :, ::2], b[..., ::-1]
    want = a.astype(weft.float64).numpy() @ b.astype(weft.float64).numpy()
    got = (a @ b).astype(weft.float64).numpy()
    np.testing.assert_allclose(got, want, rtol=2**-8, atol=1e-2)


def test_special_numbers_of_bfloat16():
    a = np.ones((20, 40), "float32")
    a[3, 5], a[7, 8], a[9, 2] = np.nan, np.inf, -np.inf
    x = weft.asarray(a).astype(weft.bfloat16)
    got = (x @ weft.ones((40, 18), dtype=weft.bfloat16)).astype(weft.float32).numpy()
    np.testing.assert_array_equal(got, np.repeat(a.sum(1, keepdims=True), 18, 1))
    assert (x[:0] @ weft.ones((40, 18), dtype=weft.bfloat16)).shape == (0, 18)
    zero = x[:, :0] @ weft.ones((0, 18), dtype=weft.bfloat16)
    assert zero.dtype == weft.bfloat16 and not zero.astype(weft.float32).numpy().any()
