# SPDX-License-Identifier: Apache-2.0
"""Factors that report a failure in place of raising it, and systems solved with them: what torch.compile's rules call."""

import numpy as np
import pytest

import weft
from weft import _core

KINDS = {"float32": 2e-4, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-11}


def drawn(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    x = x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def near(got, want, dtype):
    np.testing.assert_allclose(got.numpy(), want, rtol=KINDS[dtype], atol=KINDS[dtype])


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (2, 3, 1, 1), (2, 4, 5)])
def test_rows_exchanged_and_two_triangles(rng, dtype, shape):
    a = drawn(rng, dtype, *shape)
    lu, pivots, info = _core._lu(weft.asarray(a))
    assert not info.numpy().any() and pivots.shape == (*shape[:-2], min(shape[-2:]))
    k = min(shape[-2:])
    product = (np.tril(lu.numpy()[..., :k], -1) + np.eye(shape[-2], k)) @ np.triu(lu.numpy()[..., :k, :])  # fmt: skip
    rows = np.broadcast_to(np.arange(shape[-2]), shape[:-1]).copy()
    for at in np.ndindex(shape[:-2]):
        for i, p in enumerate(pivots.numpy()[at]):
            rows[at][[i, p - 1]] = rows[at][[p - 1, i]]
    near(weft.asarray(product), np.take_along_axis(a, rows[..., None], -2), dtype)


@pytest.mark.parametrize("dtype", KINDS)
def test_systems(rng, dtype):
    a, b = drawn(rng, dtype, 2, 1, 5, 5), drawn(rng, dtype, 1, 3, 5, 4)
    lu, pivots, _ = _core._lu(weft.asarray(a))
    near(_core._lu_solve(lu, pivots, weft.asarray(b), False), np.linalg.solve(a, b), dtype)
    near(_core._lu_solve(lu, pivots, weft.asarray(b), True), np.linalg.solve(adjoint(a), b), dtype)
    a = a + 3 * np.eye(5, dtype=dtype)
    for upper in (False, True):
        triangle = np.triu(a) if upper else np.tril(a)
        for unit in (False, True):
            one = triangle.copy()
            if unit:
                one[..., range(5), range(5)] = 1
            got = _core._solve_triangular(weft.asarray(a), weft.asarray(b), upper, unit)
            want = np.linalg.solve(one, b)
            np.testing.assert_allclose(got.numpy(), want, rtol=50 * KINDS[dtype], atol=50 * KINDS[dtype])  # fmt: skip


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("n, k", [(47, 16), (48, 15), (48, 16), (49, 17), (65, 33), (131, 130)])
def test_systems_of_many_rows_and_right_sides(rng, dtype, n, k):
    eps = np.finfo(dtype).eps

    def residual(a, x, b):
        """Beside what rounding the operands changes: the backward error of elimination is a few n of it."""
        x = np.asarray(x)
        sizes = np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(x, axis=(-2, -1))
        assert x.dtype == dtype and x.shape == b.shape
        wrong = np.linalg.norm(a.astype("complex128") @ x - b, axis=(-2, -1))
        assert (wrong <= 8 * eps * np.sqrt(n) * sizes).all()

    a, b = drawn(rng, dtype, 2, n, n), drawn(rng, dtype, 2, n, k)
    given, right = weft.asarray(a), weft.asarray(b)
    residual(a, weft.linalg.solve(given, right), b)
    residual(a[1:], weft.linalg.solve(given, weft.asarray(b[:1]))[1:], b[:1])  # broadcast
    turned = weft.asarray(np.ascontiguousarray(np.swapaxes(a, -1, -2))).mT
    residual(a, weft.linalg.solve(turned, right), b)
    ones = np.broadcast_to(np.eye(n, dtype=dtype), a.shape)
    inverse = weft.linalg.inv(given)
    residual(a, inverse, ones)
    lu, pivots, _ = _core._lu(given)
    residual(a, _core._lu_solve(lu, pivots, right, False), b)
    residual(adjoint(a), _core._lu_solve(lu, pivots, right, True), b)
    for upper in (False, True):
        for unit in (False, True):
            # What lies beyond the triangle, and the diagonal that counts as 1, is not looked at.
            triangle = (np.triu if upper else np.tril)(a, 1 if upper else -1) / n
            triangle = triangle + np.eye(n) * (1 if unit else a + 3)
            triangle = triangle.astype(dtype)
            held = np.where(triangle == 0, np.nan, triangle).astype(dtype)
            if unit:
                held[:, range(n), range(n)] = np.nan
            got = _core._solve_triangular(weft.asarray(held), right, upper, unit)
            residual(triangle, got, b)
    np.testing.assert_array_equal(given.numpy(), a)
    np.testing.assert_array_equal(right.numpy(), b)
    a[1, :, n // 2] = 0
    for refused in (lambda x: weft.linalg.solve(x, right), weft.linalg.inv):
        with pytest.raises(weft.ArgumentError) as refusal:
            refused(weft.asarray(a))
        assert refusal.value.code.endswith(".singular") and "matrix 1" in str(refusal.value)


@pytest.mark.parametrize("dtype", KINDS)
def test_small_numbers_on_the_diagonal_of_a_triangle(dtype):
    n, tiny = 64, np.finfo(dtype).smallest_subnormal
    a, b = np.eye(n, dtype=dtype), np.full((n, 20), 8 * tiny, dtype)
    a[5, 5], a[7, 7] = 2 * tiny, 0
    got = _core._solve_triangular(weft.asarray(a), weft.asarray(b), False, False).numpy()
    np.testing.assert_array_equal(got[5], np.full(20, 4, dtype))
    assert not np.isfinite(got[7]).any()
    np.testing.assert_array_equal(got[[0, 6]], b[:2])


@pytest.mark.parametrize("dtype", KINDS)
def test_what_has_no_factor_is_said_by_a_number(rng, dtype):
    x = drawn(rng, dtype, 3, 4, 6)
    a = x @ adjoint(x)
    for upper in (False, True):
        factor, info = _core._try_cholesky(weft.asarray(a), upper)
        f = factor.numpy()
        near(weft.asarray(adjoint(f) @ f if upper else f @ adjoint(f)), a, dtype)
        assert not info.numpy().any()
    a[1, 2, 2] = -1.0
    assert _core._try_cholesky(weft.asarray(a), False)[1].tolist() == [0, 3, 0]
    a[:] = 0
    assert _core._lu(weft.asarray(a))[2].tolist() == [1, 1, 1]


def test_refusals():
    lu, pivots, _ = _core._lu(weft.eye(3))
    with pytest.raises(weft.Error, match="a pivot is 9, legal: 1 to 3") as e:
        _core._lu_solve(lu, pivots + 8, weft.eye(3), False)
    assert e.value.code == "array.lu_solve.pivot"
    with pytest.raises(weft.ShapeError, match="matrices of 3 rows are needed") as e:
        _core._solve_triangular(weft.eye(3), weft.ones((2, 3)), True, False)
    assert e.value.code == "array.solve_triangular.extent"
    with pytest.raises(weft.Error, match="no kernel of lu for") as e:
        _core._lu(weft.eye(3, dtype="float32").to("qpu"))
    assert e.value.code == "array.lu.kernel"
