# SPDX-License-Identifier: Apache-2.0
"""Factorisations and Fourier transforms beside NumPy's: odd sizes, none, batches, all real and complex types."""

import os

import numpy as np
import pytest

import weft
from weft import linalg

TYPES = ("float32", "float64", "complex64", "complex128")
BATCHES = ((), (3,), (2, 1, 3), (0,))


@pytest.fixture
def rng():
    seed = int(os.environ.get("WEFT_SEED", "20261122"))
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def narrow(dtype):
    return dtype in ("float32", "complex64")


def draw(rng, shape, dtype):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in dtype else x).astype(dtype)


def close(ours, theirs, dtype, scale=1.0):
    ours = np.asarray(ours)
    tolerance = scale * (2e-4 if narrow(dtype) else 1e-10)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_rectangular_matrices(rng, batch, dtype):
    for n in (0, 1, 2, 7, 33):
        for m in {n, n + 3, max(n - 2, 0)}:
            x = draw(rng, (*batch, m, n), dtype)
            w = weft.asarray(x)
            for full in (False, True):
                u, s, vh = map(np.asarray, linalg.svd(w, full_matrices=full))
                k = min(m, n)
                side = (m, n) if full else (k, k)
                assert (u.shape[-1], vh.shape[-2]) == side
                close(((u[..., :k] * s[..., None, :]) @ vh[..., :k, :]).astype(dtype), x, dtype)
                ones = np.broadcast_to(np.eye(side[0], dtype=dtype), (*batch, side[0], side[0]))
                close(adjoint(u) @ u, ones, dtype)
            close(linalg.svdvals(w), np.linalg.svd(x, compute_uv=False), dtype)
            for mode in ("reduced", "complete"):
                q, r = map(np.asarray, linalg.qr(w, mode=mode))
                assert q.shape[-1] == (m if mode == "complete" else min(m, n))
                close(q @ r, x, dtype)
                assert not np.tril(r, -1).any()
            if m and n:
                close(linalg.pinv(w), np.linalg.pinv(x), dtype, 10)
                rank = np.linalg.matrix_rank(x)
                np.testing.assert_array_equal(np.asarray(linalg.matrix_rank(w)), rank)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_square_matrices(rng, batch, dtype):
    for n in (0, 1, 2, 7, 33):
        one = np.eye(n, dtype=dtype)
        x = draw(rng, (*batch, n, n), dtype) + (2 * np.sqrt(n + 1) * one).astype(dtype)
        h = (x @ adjoint(x) + one).astype(dtype)
        w, hw = weft.asarray(x), weft.asarray(h)
        close(linalg.inv(w), np.linalg.inv(x), dtype)
        sign, log = linalg.slogdet(w)
        want_sign, want_log = np.linalg.slogdet(x)
        close(sign, np.asarray(want_sign), dtype)
        close(log, np.asarray(want_log), dtype)
        det = np.asarray(np.linalg.det(x))
        np.testing.assert_allclose(
            np.asarray(linalg.det(w)), det, rtol=1e-3 if narrow(dtype) else 1e-9
        )
        right = x[..., : min(n, 3)]
        close(linalg.solve(w, weft.asarray(right)), np.linalg.solve(x, right), dtype)
        if n and 0 not in batch:
            vector = draw(rng, n, dtype)
            want = np.linalg.solve(x, np.broadcast_to(vector[:, None], (*batch, n, 1)))[..., 0]
            close(linalg.solve(w, weft.asarray(vector)), want, dtype)
        factor = np.asarray(linalg.cholesky(hw))
        close(factor, np.linalg.cholesky(h), dtype, n + 1)
        close(linalg.cholesky(hw, upper=True), adjoint(factor), dtype, n + 1)
        values, vectors = map(np.asarray, linalg.eigh(hw))
        close(values, np.linalg.eigvalsh(h), dtype, n + 1)
        close(((vectors * values[..., None, :]) @ adjoint(vectors)).astype(dtype), h, dtype, n + 1)
        close(linalg.matrix_power(w, 3), np.linalg.matrix_power(x, 3), dtype, n + 1)
        if n:
            inverse = np.linalg.matrix_power(x, -2)
            close(linalg.matrix_power(w, -2), inverse, dtype, n + 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms(rng, name, dtype):
    real_in, real = name in ("rfft", "ihfft"), "float" in dtype
    if real_in and not real:
        with pytest.raises(weft.DTypeError):
            getattr(weft.fft, name)(weft.asarray(draw(rng, (8,), dtype)))
        return
    checked = 0
    for shape in ((1,), (7,), (2, 9), (3, 1, 13), (5, 4, 6), (0, 5)):
        x = draw(rng, shape, dtype)
        for n in (None, 4, 11):
            for norm in ("backward", "ortho", "forward"):
                if name in ("irfft", "hfft") and n is None and shape[-1] == 1:
                    continue  # no points
                want = getattr(np.fft, name)(x, n, norm=norm)
                got = np.asarray(getattr(weft.fft, name)(weft.asarray(x), n=n, norm=norm))
                tolerance = 1e-4 if narrow(dtype) else 1e-10
                np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
                widened = np.lib.NumpyVersion(np.__version__) < "2.0.0" and narrow(dtype)
                assert got.itemsize == want.itemsize // (2 if widened else 1)
                checked += 1
    assert checked >= 51
