# SPDX-License-Identifier: Apache-2.0
"""lstsq of one matrix on the host, beside NumPy: shapes, ranks, layouts."""

import numpy as np
import pytest

import weft


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "m, n, k", [(1, 1, 1), (7, 3, 2), (101, 6, 1), (5, 5, 3), (3, 9, 4), (200, 40, 7)]
)
@pytest.mark.parametrize("short", [False, True])
def test_beside_numpy(m, n, k, short, dtype):
    rng = np.random.default_rng(m + n + k)
    a = rng.standard_normal((m, n))
    if short:  # not of full rank
        a[:, n // 2 :] = a[:, : n - n // 2]
    a, b = a.astype(dtype), rng.standard_normal((m, k)).astype(dtype)
    near = dict(rtol=2e-3, atol=2e-4) if dtype == "float32" else dict(rtol=1e-9, atol=1e-10)
    want = np.linalg.lstsq(a, b, rcond=1e-5)
    for x, y in (
        (weft.asarray(a), weft.asarray(b)),
        (weft.asarray(a.T.copy()).T, weft.asarray(b[::-1].copy())[::-1]),
    ):
        got = weft.linalg.lstsq(x, y, rcond=1e-5)
        assert got[2] == want[2] and got[0].dtype == dtype
        for g, w in zip((got[0], got[1], got[3]), (want[0], want[1], want[3])):
            assert np.shape(g) == w.shape
            np.testing.assert_allclose(np.asarray(g), w, **near)
        np.testing.assert_array_equal(np.asarray(x), a)
        np.testing.assert_array_equal(np.asarray(y), b)
    one = weft.linalg.lstsq(weft.asarray(a), weft.asarray(b[:, 0]), rcond=1e-5)
    assert one[0].shape == (n,)
    np.testing.assert_allclose(np.asarray(one[0]), want[0][:, 0], **near)
