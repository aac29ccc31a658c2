# SPDX-License-Identifier: Apache-2.0
"""Factorisations on a card, composed of array operations, by what they promise; refusals; the open fallback."""

import numpy as np
import pytest
from cover import cover
from present import present

import weft
from weft import linalg

GRID = "opencl:0"
present(GRID)

TYPES = {"float32": 2e-4, "float64": 1e-10, "complex64": 2e-4, "complex128": 1e-10}
SQUARE = [(1, 1), (2, 2), (5, 5), (2, 3, 4, 4), (17, 17)]
OTHER = [(1, 1), (5, 3), (3, 5), (2, 4, 7), (1, 6), (6, 1)]


@pytest.fixture
def rng():
    return np.random.default_rng(20261122)


def draw(rng, shape, dtype):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def host(x):
    assert x.device.name == GRID
    return x.to("cpu").numpy()


def near(got, want, tolerance):
    assert np.abs(got - want).max(initial=0) <= tolerance * max(1.0, np.abs(want).max(initial=0))


@cover("shape", SQUARE, "dtype", [*TYPES])
def test_square_matrices(rng, shape, dtype):
    eps, n = TYPES[dtype], shape[-1]
    a = draw(rng, shape, dtype)
    d = weft.asarray(a, device=GRID)
    definite = (a @ adjoint(a) + n * np.eye(n)).astype(dtype)
    factor = host(linalg.cholesky(weft.asarray(definite, device=GRID)))
    near(factor @ adjoint(factor), definite, eps)
    assert not np.triu(factor, 1).any()
    factor = host(linalg.cholesky(weft.asarray(definite, device=GRID), upper=True))
    near(adjoint(factor) @ factor, definite, eps)
    b = draw(rng, (*shape[:-1], 3), dtype)
    near(a @ host(linalg.solve(d, weft.asarray(b, device=GRID))), b, 100 * eps)
    v = draw(rng, (n,), dtype)
    x = host(linalg.solve(d, weft.asarray(v, device=GRID)))
    near((a @ x[..., None])[..., 0], v, 100 * eps)
    near(a @ host(linalg.inv(d)), np.eye(n), 100 * eps)
    sign, log = linalg.slogdet(d)
    want = np.linalg.slogdet(a)
    near(host(sign), want[0], 20 * eps)
    near(host(log), want[1], 20 * eps)
    near(host(linalg.det(d)), np.linalg.det(a), 50 * eps)
    hermitian = ((a + adjoint(a)) / 2).astype(dtype)
    values, vectors = (host(x) for x in linalg.eigh(weft.asarray(hermitian, device=GRID)))
    near(hermitian @ vectors, vectors * values[..., None, :], 10 * eps)
    near(adjoint(vectors) @ vectors, np.eye(n), eps)
    near(values, np.linalg.eigvalsh(hermitian), 10 * eps)


@cover("shape", OTHER, "dtype", [*TYPES])
def test_other_matrices(rng, shape, dtype):
    eps, (m, n) = TYPES[dtype], shape[-2:]
    k = min(m, n)
    a = draw(rng, shape, dtype)
    low = a.copy()  # of lower rank
    low[..., -1, :], low[..., :, -1] = low[..., 0, :], low[..., :, 0]
    for mode, wide in (("reduced", k), ("complete", m)):
        q, r = (host(x) for x in linalg.qr(weft.asarray(a, device=GRID), mode=mode))
        assert q.shape[-1] == wide and r.shape[-2:] == (wide, n) and not np.tril(r, -1).any()
        near(q @ r, a, 5 * eps)
        near(adjoint(q) @ q, np.eye(wide), eps)
    for x in (a, low):
        d = weft.asarray(x, device=GRID)
        for full in (True, False):
            u, s, vh = (host(t) for t in linalg.svd(d, full_matrices=full))
            assert u.shape[-1] == (m if full else k) and vh.shape[-2] == (n if full else k)
            near((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, 5 * eps)
            near(s, np.linalg.svd(x, compute_uv=False), 5 * eps)
            near(adjoint(u) @ u, np.eye(u.shape[-1]), 2 * eps)
            near(vh @ adjoint(vh), np.eye(vh.shape[-2]), 2 * eps)
        near(host(linalg.svdvals(d)), np.linalg.svd(x, compute_uv=False), 5 * eps)
        near(x @ host(linalg.pinv(d)) @ x, x, 20 * eps)
        assert np.array_equal(host(linalg.matrix_rank(d)), np.linalg.matrix_rank(x))


def test_views_and_no_matrices(rng):
    a = draw(rng, (8, 8, 3), "float64")
    d = weft.permute_dims(weft.asarray(a, device=GRID)[::2, 1::2], (2, 1, 0))
    near(host(linalg.inv(d)), np.linalg.inv(a[::2, 1::2].transpose(2, 1, 0)), 1e-9)
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        x = weft.zeros(shape, device=GRID)
        assert linalg.inv(x).shape == linalg.cholesky(x).shape == shape
        assert linalg.det(x).shape == shape[:-2] and (host(linalg.det(x)) == 1).all()
        assert linalg.svdvals(x).shape == shape[:-1]


@pytest.mark.parametrize(
    "f,a,code",
    [
        (lambda x: linalg.solve(x, x), np.zeros((3, 3)), "array.solve.singular"),
        (linalg.inv, np.stack([np.eye(3), np.ones((3, 3))]), "array.inv.singular"),
        (linalg.cholesky, -np.eye(3), "array.cholesky.indefinite"),
        (linalg.eigh, np.full((2, 2), np.nan), "array.eigh.finite"),
        (linalg.svd, np.full((2, 2), np.inf), "array.svd.finite"),
        (linalg.eig, np.eye(3), "array.eig.kernel"),
    ],
)
def test_refusals_are_the_hosts(f, a, code):
    with pytest.raises(weft.Error) as caught:
        f(weft.asarray(a, device=GRID))
    assert caught.value.code == code
    if code == "array.inv.singular":
        assert "matrix 1 of" in str(caught.value)
    if code == "array.eig.kernel":
        assert "devices that have it: cpu" in str(caught.value)


def test_a_fallback_is_open():
    a = weft.asarray(np.array([[2.0, 1.0], [0.0, 3.0]]), device=GRID)
    weft.fallbacks(clear=True)
    with weft.use(GRID, fallback="cpu"):
        values = linalg.eig(a).eigenvalues
        assert sorted(host(values).real) == [2, 3]
        with weft.use(GRID), pytest.raises(weft.DeviceError):
            linalg.eig(a)
        linalg.eigvals(a)
        linalg.inv(a)  # the device has it
    with pytest.raises(weft.DeviceError):
        linalg.eig(a)
    assert weft.fallbacks(clear=True) == [("eig", GRID, 2)]
    assert weft.fallbacks() == []


def test_other_fallbacks_are_refused():
    with pytest.raises(weft.ArgumentError) as caught, weft.use(GRID, fallback="qpu"):
        pass
    assert caught.value.code == "device.fallback" and "legal: 'cpu'" in str(caught.value)


LARGER = [((3, 40, 40), 7), ((2, 64, 64), 70), ((1, 100, 100), 3)]


@cover("shape, columns", LARGER, "dtype", ["float32", "float64", "complex64"], times=1)
def test_larger_matrices_of_a_block(rng, shape, columns, dtype):
    matrices_of_a_block(rng, shape, columns, dtype)


def test_larger_matrices_of_two_doubles(rng):
    matrices_of_a_block(rng, (2, 64, 64), 70, "complex128")  # of more, the block has no room


def matrices_of_a_block(rng, shape, columns, dtype):
    eps, n = TYPES[dtype], shape[-1]
    a = draw(rng, shape, dtype)
    a = (a + n * np.eye(n)).astype(dtype)
    wide = a.astype("complex128" if dtype[0] == "c" else "float64")
    d = weft.asarray(a, device=GRID)
    b = draw(rng, (*shape[:-1], columns), dtype)
    near(host(linalg.solve(d, weft.asarray(b, device=GRID))), np.linalg.solve(wide, b), eps)
    near(host(linalg.inv(d)), np.linalg.inv(wide), eps)
    sign, log = np.linalg.slogdet(wide)
    near(host(linalg.slogdet(d)[0]), sign, 20 * eps)
    near(host(linalg.slogdet(d)[1]), log, eps)
    definite = (a @ adjoint(a)).astype(dtype)
    for upper in (False, True):
        c = host(linalg.cholesky(weft.asarray(definite, device=GRID), upper=upper))
        near(adjoint(c) @ c if upper else c @ adjoint(c), definite, eps)
        assert not (np.tril(c, -1) if upper else np.triu(c, 1)).any()


@pytest.mark.parametrize("dtype", TYPES)
def test_orthogonal_factors_of_larger_matrices(rng, dtype):
    eps = TYPES[dtype]
    a = draw(rng, (2, 40, 33), dtype)
    d = weft.asarray(a, device=GRID)
    q, r = (host(x) for x in linalg.qr(d))
    near(q @ r, a, eps)
    near(adjoint(q) @ q, np.eye(33), eps)
    u, s, vh = (host(x) for x in linalg.svd(d, full_matrices=False))
    near((u * s[..., None, :]) @ vh, a, eps)
    near(adjoint(u) @ u, np.eye(33), eps)
    h = (a[..., :33, :] + adjoint(a[..., :33, :])).astype(dtype)
    values, vectors = (host(x) for x in linalg.eigh(weft.asarray(h, device=GRID)))
    near(h @ vectors, vectors * values[..., None, :], eps)
    near(values, np.linalg.eigvalsh(h), eps)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_far_from_one(rng, dtype, size):
    """Squares of the elements are no numbers of the type, or only just."""
    eps = TYPES[dtype]
    a = (draw(rng, (3, 6, 6), dtype) * size).astype(dtype)
    d = weft.asarray(a, device=GRID)
    q, r = (host(x) for x in linalg.qr(d))
    near(q @ (r / size), a / size, eps)
    near(adjoint(q) @ q, np.eye(6), eps)
    near(host(linalg.svdvals(d)) / size, np.linalg.svd(a / size, compute_uv=False), eps)
    h = (a + adjoint(a)).astype(dtype)
    near(
        host(linalg.eigh(weft.asarray(h, device=GRID))[0]) / size,
        np.linalg.eigvalsh(h / size),
        10 * eps,
    )
    near(a / size @ (host(linalg.inv(d)) * size), np.eye(6), 100 * eps)


def test_special_values():
    nan = weft.asarray(np.full((1, 3, 3), np.nan), device=GRID)
    assert np.isnan(host(linalg.det(nan))).all()
    zero = weft.zeros((2, 4, 4), device=GRID)
    sign, log = linalg.slogdet(zero)
    assert (
        not host(sign).any() and (host(log) == -np.inf).all() and not host(linalg.det(zero)).any()
    )
    q, r = linalg.qr(zero)
    near(host(q), np.broadcast_to(np.eye(4), (2, 4, 4)), 0)
    assert not host(r).any() and not host(linalg.svdvals(zero)).any()
    values, vectors = linalg.eigh(zero)
    assert not host(values).any()
    near(host(vectors), np.broadcast_to(np.eye(4), (2, 4, 4)), 0)


@pytest.mark.parametrize("shape", [(2, 3), (1, 5), (3, 3), (20, 7), (33, 40)])
@pytest.mark.parametrize("value", [1e-5, 3e4, 1e-20])
def test_matrices_of_equal_elements(shape, value):
    """More columns than the rank: all but one are rounding errors, which are never all orthogonal."""
    x = np.full(shape, value, "float32")
    u, s, vh = (host(y) for y in linalg.svd(weft.asarray(x, device=GRID), full_matrices=False))
    np.testing.assert_allclose(s[0], value * np.sqrt(x.size), rtol=1e-5)
    assert abs(s[1:]).max(initial=0) <= 1e-5 * s[0]
    np.testing.assert_allclose(u @ np.diag(s) @ vh, x, atol=1e-5 * value, rtol=1e-5)
    np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-5)
