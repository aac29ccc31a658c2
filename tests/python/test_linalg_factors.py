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
