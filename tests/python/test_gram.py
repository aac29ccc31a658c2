# SPDX-License-Identifier: Apache-2.0
"""Products of a matrix with its own transpose, of which the host computes half, beside NumPy in float64."""

import numpy as np
import pytest

import weft

SHAPES = [
    (33, 5),
    (40, 64),
    (47, 1001),
    (77, 3001),
    (131, 65),
    (257, 301),
    (501, 33),
    (1031, 20),
    (64, 256),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, k", SHAPES)
def test_by_its_transpose(n, k, dtype):
    rng = np.random.default_rng(n * k)
    a = rng.standard_normal((n, k)).astype(dtype)
    wide = a.astype("float64")
    want = wide @ wide.T
    near = (
        dict(rtol=2e-5, atol=3e-5 * np.sqrt(k))
        if dtype == "float32"
        else dict(rtol=1e-12, atol=1e-11)
    )
    x, tall = weft.asarray(a), weft.asarray(a.T.copy())
    gaps = weft.asarray(np.repeat(a, 2, axis=1))[:, ::2]
    for got in (x @ x.T, tall.T @ tall, gaps @ gaps.T, x[::-1] @ x[::-1].T[:, :]):
        got = np.asarray(got)
        assert got.dtype == dtype and (got == got.T).all()
        np.testing.assert_allclose(
            got, want if got[0, 0] == np.asarray(x @ x.T)[0, 0] else want[::-1, ::-1], **near
        )
    stack = weft.asarray(np.stack([a, 2 * a]))
    both = np.asarray(stack @ stack.mT)
    np.testing.assert_allclose(both[0], want, **near)
    np.testing.assert_allclose(both[1], 4 * want, rtol=near["rtol"], atol=4 * near["atol"])


def test_threads_change_nothing():
    x = weft.asarray(np.random.default_rng(1).standard_normal((700, 311)).astype("float32"))
    before = weft.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            weft.set_threads(threads)
            results.append(np.asarray(x @ x.T))
    finally:
        weft.set_threads(before)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_other_operands_of_the_same_memory():
    a = np.random.default_rng(2).standard_normal((90, 90)).astype("float32")
    x = weft.asarray(a)
    for got, want in (
        (x @ x, a @ a),
        (x[:50] @ x[:60].T, a[:50] @ a[:60].T),
        (x.T @ x[:, :70], a.T @ a[:, :70]),
    ):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-4)
