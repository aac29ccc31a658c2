# SPDX-License-Identifier: Apache-2.0
"""Gradients of factorisations beside finite differences of float64 and PyTorch's, and what follows from them: derivatives of
higher order, forward derivatives, vmap, compiled functions."""

import numpy as np
import pytest
from present import present
from refusal import refused

import weft

L = weft.linalg
NEAR = {"float32": 3e-4, "float64": 1e-9, "complex64": 3e-4, "complex128": 1e-9}


def drawn(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def squares(x):
    return weft.real(x * weft.conj(x)) if x.dtype.kind == "c" else x * x


def symmetric(x):
    return (x + weft.adjoint(x)) * 0.5


def positive(x):
    return x @ weft.adjoint(x) + weft.eye(x.shape[-2], dtype=x.dtype, device=x.device) * 0.5


def weighed(parts):
    """One number that does not depend on the phases of vectors and is another for each element."""
    total = 0
    for k, part in enumerate(parts):
        weights = np.sin(np.arange(part.size) * 0.7 + k).reshape(part.shape)
        kind = {"complex64": "float32", "complex128": "float64"}.get(
            str(part.dtype), str(part.dtype)
        )
        weights = weft.asarray(weights.astype(kind), device=part.device)
        total = total + (squares(part) * weights).sum()
    return total


def phased(part):
    """One number that depends on the phases of elements, too."""
    weights = np.exp(0.7j * np.arange(part.size)).reshape(part.shape)
    weights = (weights if part.dtype.kind == "c" else weights.real).astype(str(part.dtype))
    return weft.real(part * weft.asarray(weights, device=part.device)).sum()


def pairs(factors):
    """Each left vector times its right one, which no phase of a pair changes."""
    return weft.expand_dims(factors.U, axis=-1) * weft.expand_dims(factors.Vh, axis=-3)


def mixed(values, vectors):
    """Of eigenvalues in any order and their vectors."""
    kind = {"complex64": "float32", "complex128": "float64"}[str(vectors.dtype)]
    row = np.sin(np.arange(vectors.shape[-2]) * 0.7 + 0.3).reshape(-1, 1).astype(kind)
    along = (vectors * weft.asarray(row)).sum(-2)
    return (squares(along) * squares(values) * weft.real(values)).sum()


SQUARE = {
    "cholesky": lambda x: weighed([L.cholesky(positive(x))]),
    "cholesky_upper": lambda x: weighed([L.cholesky(positive(x), upper=True)]),
    "cholesky_phases": lambda x: phased(L.cholesky(positive(x))),
    "cholesky_upper_phases": lambda x: phased(L.cholesky(positive(x), upper=True)),
    "eigh": lambda x: weighed(L.eigh(symmetric(x))),
    "eigvalsh": lambda x: weighed([L.eigvalsh(symmetric(x))]),
    "eig": lambda x: mixed(*L.eig(x)),
    "eigvals": lambda x: (squares(L.eigvals(x)) ** 1.5).sum(),
    "slogdet": lambda x: L.slogdet(x).logabsdet.sum(),
    "matrix_power": lambda x: weighed([L.matrix_power(x, 3)]),
    "matrix_power_negative": lambda x: weighed([L.matrix_power(positive(x), -2)]),
    "triangular": lambda x: weighed([L.solve_triangular(positive(x), x, upper=True)]),
    "triangular_right": lambda x: weighed(
        [L.solve_triangular(positive(x), x, upper=False, left=False, unitriangular=True)]
    ),
}
ANY = {
    "qr": lambda x: weighed(L.qr(x)),
    "svd": lambda x: weighed(L.svd(x, full_matrices=False)),
    "svd_pairs": lambda x: phased(pairs(L.svd(x, full_matrices=False))),
    "svd_whole": lambda x: weighed([L.svd(x).S, L.svd(x).U[..., : min(x.shape[-2:])]]),
    "svdvals": lambda x: weighed([L.svdvals(x)]),
    "pinv": lambda x: weighed([L.pinv(x)]),
    "lstsq": lambda x: weighed([L.lstsq(x, x[..., :2] * 0.5 + 1.0).solution]),
    "lu": lambda x: weighed(L.lu(x)[1:]),
    "lu_factor": lambda x: weighed([L.lu_factor(x).LU]),
    "nuclear": lambda x: L.matrix_norm(x, ord="nuc").sum(),
    "spectral": lambda x: L.matrix_norm(x, ord=2).sum(),
}
CASES = [
    (name, f, shape) for name, f in SQUARE.items() for shape in ((5, 5), (2, 3, 3), (1, 1))
] + [(name, f, shape) for name, f in ANY.items() for shape in ((5, 5), (2, 7, 3), (3, 5))]
NAMES = [f"{name}-{'x'.join(map(str, shape))}" for name, _, shape in CASES]


def value(f, x):
    return f(weft.Tensor(x, requires_grad=False)).item()


def differences(f, x, step=1e-6):
    """dL/dRe + i dL/dIm by differences."""
    out = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            ahead, behind = x.copy(), x.copy()
            ahead[at] += step * unit
            behind[at] -= step * unit
            out[at] += unit * (value(f, ahead) - value(f, behind)) / (2 * step)
    return out


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name, f, shape", CASES, ids=NAMES)
def test_differences(rng, name, f, shape, dtype):
    x = drawn(rng, dtype, *shape)
    t = weft.Tensor(x)
    f(t).backward()
    want = differences(f, x)
    np.testing.assert_allclose(
        t.grad.numpy(), want, rtol=2e-5, atol=2e-6 * (1 + np.abs(want).max())
    )


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name, f, shape", CASES, ids=NAMES)
def test_single_precision(rng, name, f, shape, dtype):
    """The gradient of float32 is that of float64 of the same numbers."""
    x = drawn(rng, dtype, *shape)
    x[..., range(min(shape[-2:])), range(min(shape[-2:]))] += 3 * np.arange(1, 1 + min(shape[-2:]))
    wide = weft.Tensor(x.astype({"float32": "float64", "complex64": "complex128"}[dtype]))
    narrow = weft.Tensor(x)
    f(wide).backward()
    f(narrow).backward()
    assert narrow.grad.dtype == dtype
    want = wide.grad.numpy()
    np.testing.assert_allclose(narrow.grad.numpy(), want, rtol=2e-3, atol=2e-4 * np.abs(want).max())


@pytest.mark.parametrize("name, f, shape", CASES, ids=NAMES)
def test_second_and_forward_derivatives(rng, name, f, shape):
    x, v = drawn(rng, "float64", *shape), drawn(rng, "float64", *shape)
    step = 1e-6
    _, along = weft.jvp(f, (weft.asarray(x),), (weft.asarray(v),))
    want = (value(f, x + step * v) - value(f, x - step * v)) / (2 * step)
    np.testing.assert_allclose(along.item(), want, rtol=1e-5, atol=1e-6)
    first = weft.grad(f)
    second = weft.grad(lambda x: (first(x) * weft.asarray(v)).sum())(weft.asarray(x)).numpy()
    ahead, behind = (first(weft.asarray(x + s * v)).numpy() for s in (step, -step))
    want = (ahead - behind) / (2 * step)
    np.testing.assert_allclose(second, want, rtol=1e-4, atol=1e-5 * (1 + np.abs(want).max()))


@pytest.mark.parametrize("name, f, shape", CASES, ids=NAMES)
def test_vmap_and_compile(rng, name, f, shape):
    x = drawn(rng, "float64", 3, *shape)
    each = np.stack([weft.grad(f)(weft.asarray(one)).numpy() for one in x])
    np.testing.assert_allclose(weft.vmap(weft.grad(f))(weft.asarray(x)).numpy(), each, rtol=1e-9, atol=1e-11)  # fmt: skip
    compiled = weft.compile(f)
    for one, want in zip(x, each):
        t = weft.Tensor(one)
        compiled(t).backward()
        np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh", "slogdet", "triangular", "qr", "svd", "svdvals", "pinv", "lstsq"])  # fmt: skip
def test_on_a_grid_device(rng, name):
    present("opencl:0")
    f = {**SQUARE, **ANY}[name]
    x = drawn(rng, "float32", 2, 5, 5) + 3 * np.diag(np.arange(1.0, 6.0)).astype("float32")
    host, device = weft.Tensor(x), weft.Tensor(x, device="opencl:0")
    with weft.use("opencl:0"):
        f(device).backward()
    f(host).backward()
    want = host.grad.numpy()
    np.testing.assert_allclose(device.grad.numpy(), want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def test_gradients_like_those_of_pytorch(rng):
    torch = pytest.importorskip("torch")
    for dtype in NEAR:
        for name in ("svd", "qr", "eigh", "pinv", "cholesky"):
            x = (
                drawn(rng, dtype, 2, 5, 3)
                if name in ("svd", "qr", "pinv")
                else drawn(rng, dtype, 2, 5, 5)
            )
            if name == "eigh":
                x = x + np.conj(np.swapaxes(x, -1, -2))
            if name == "cholesky":
                x = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(5, dtype=dtype)
            options = {"full_matrices": False} if name == "svd" else {}
            ours, theirs = weft.Tensor(x), torch.tensor(x, requires_grad=True)
            parts = getattr(L, name)(ours, **options)
            others = getattr(torch.linalg, name)(theirs, **options)
            single = name in ("pinv", "cholesky")
            loss = 0
            for k, part in enumerate([others] if single else others):
                weights = torch.tensor(np.sin(np.arange(part.numel()) * 0.7 + k)).reshape(
                    part.shape
                )
                loss = loss + ((part * part.conj()).real * weights.to(part.real.dtype)).sum()
            loss.backward()
            weighed([parts] if single else parts).backward()
            want = theirs.grad.numpy()
            np.testing.assert_allclose(
                ours.grad.numpy(), want, rtol=NEAR[dtype], atol=NEAR[dtype] * np.abs(want).max(), err_msg=f"{name} {dtype}"
            )  # fmt: skip


def test_what_has_no_gradient(rng):
    x = drawn(rng, "float64", 5, 3)
    error = refused(weft.ArgumentError, "array.qr.gradient", lambda: L.qr(weft.Tensor(x), mode="complete"))  # fmt: skip
    assert "(5, 3)" in str(error) and "reduced" in error.help
    t = weft.Tensor(x)
    u = L.svd(t).U
    error = refused(weft.ArgumentError, "array.svd.gradient", lambda: (u[:, 4] ** 2 * weft.arange(5.0)).sum().backward())  # fmt: skip
    assert "columns of U" in str(error) and "full_matrices=False" in error.help
    error = refused(weft.ArgumentError, "array.svd.gradient", lambda: (L.svd(weft.Tensor(x.T)).Vh[3] ** 2 * weft.arange(5.0)).sum().backward())  # fmt: skip
    assert "rows of Vh" in str(error)
    # Vectors that the factorisation determines have one, whatever else it gives.
    (u[:, :3] ** 2 * weft.asarray(x)).sum().backward()
    whole = t.grad.numpy()
    t.grad = None
    (L.svd(t, full_matrices=False).U ** 2 * weft.asarray(x)).sum().backward()
    np.testing.assert_allclose(whole, t.grad.numpy(), rtol=1e-12)
    _, along = weft.jvp(lambda x: L.svd(x).U, (weft.asarray(x),), (weft.asarray(x),))
    assert np.isnan(along.numpy()[:, 3:]).all() and np.isfinite(along.numpy()[:, :3]).all()


def test_equal_values(rng):
    """Values have gradients where vectors have none."""
    t = weft.Tensor(np.eye(3))
    L.eigh(t).eigenvectors[0, 0].backward()
    assert not np.isfinite(t.grad.numpy()).all()
    t = weft.Tensor(np.eye(3))
    L.svdvals(t).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), np.eye(3), atol=1e-12)
    t = weft.Tensor(2 * np.eye(3))
    L.eigvalsh(t).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), np.eye(3), atol=1e-12)


def test_ranks_that_stay(rng):
    """pinv of a matrix of rank 2 along others of rank 2."""
    a, b = drawn(rng, "float64", 5, 2), drawn(rng, "float64", 2, 4)
    f = lambda a: weighed([L.pinv(a @ weft.asarray(b), rtol=1e-10)])  # noqa: E731
    t = weft.Tensor(a)
    f(t).backward()
    np.testing.assert_allclose(t.grad.numpy(), differences(f, a), rtol=1e-4, atol=1e-5)


def test_lstsq_of_many(rng):
    a, b = drawn(rng, "float64", 3, 6, 4), drawn(rng, "float64", 3, 6, 2)
    got = L.lstsq(weft.asarray(a), weft.asarray(b))
    for k in range(3):
        x, sums, rank, s = np.linalg.lstsq(a[k], b[k], rcond=None)
        np.testing.assert_allclose(got.solution.numpy()[k], x, rtol=1e-9)
        np.testing.assert_allclose(got.residuals.numpy()[k], sums, rtol=1e-9)
        np.testing.assert_allclose(got.singular_values.numpy()[k], s, rtol=1e-9)
        assert got.rank.numpy()[k] == rank
    vectors = L.lstsq(weft.asarray(a), weft.asarray(b[..., 0])).solution
    np.testing.assert_allclose(vectors.numpy(), got.solution.numpy()[..., 0], rtol=1e-9)
    refused(weft.ArgumentError, "array.lstsq.shape", L.lstsq, weft.asarray(a), weft.asarray(b[:, :5]))  # fmt: skip
