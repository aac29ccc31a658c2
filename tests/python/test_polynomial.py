# SPDX-License-Identifier: Apache-2.0
"""weft.polynomial beside numpy.polynomial, einsum_path beside NumPy's, and eigenvalues of real matrices, which zeros are found by."""

import numpy as np
import pytest
from numpy.polynomial import Polynomial as Theirs
from numpy.polynomial import polynomial as P
from refusal import refused

import weft
from weft import polynomial as W
from weft.polynomial import Polynomial


def near(want, got, tolerance=1e-8):
    got = got.numpy() if hasattr(got, "numpy") else got
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-8)


def test_fits(rng):
    x = rng.uniform(3, 9, 20)
    y = np.sin(x)
    a, b = Theirs.fit(x, y, 5), Polynomial.fit(x, y, 5)
    near(a.coef, b.coef)
    near(a.domain, b.domain)
    near(a(x), b(x))
    near(a(4.5), b(4.5))
    near(a.deriv(2)(x), b.deriv(2)(x))
    near(a.integ(2, k=[1, 2], lbnd=1)(x), b.integ(2, k=[1, 2], lbnd=1)(x))
    near(a.roots(), b.roots(), 1e-6)
    near(a.convert().coef, b.convert().coef, 1e-6)
    near(P.polyfit(x, y, [0, 2, 3]), W.polyfit(x, y, [0, 2, 3]))
    both = np.stack([y, y * 2], 1)
    near(P.polyfit(x, both, 2, w=x), W.polyfit(x, both, 2, w=x))


def test_functions(rng):
    p, q = rng.standard_normal(5), rng.standard_normal(3)
    for name in ("polyadd", "polysub", "polymul"):
        near(getattr(P, name)(p, q), getattr(W, name)(p, q))
    for a, b in zip(P.polydiv(p, q), W.polydiv(p, q)):
        near(a, b)
    near(P.polypow(q, 3), W.polypow(q, 3))
    near(P.polyroots(p), W.polyroots(p))
    near(P.polyfromroots([1, 2, 3]), W.polyfromroots([1, 2, 3]))
    near(P.polycompanion(p)[:, -1], W.polycompanion(p)[:, -1])
    near(P.polyder(p, 2, 3), W.polyder(p, 2, 3))
    near(P.polyint(p, 2, [1, 2], 1.5, 2), W.polyint(p, 2, [1, 2], 1.5, 2))
    near(P.polyval(0.3, p), W.polyval(0.3, p))
    near(P.polyvander(p, 3), W.polyvander(p, 3))


def test_arithmetic(rng):
    p, q, x = rng.standard_normal(5), rng.standard_normal(3), rng.uniform(0, 2, 7)
    a, b, c, d = Theirs(p, [0, 2]), Polynomial(p, [0, 2]), Theirs(q, [0, 2]), Polynomial(q, [0, 2])
    for f in (
        lambda u, v: u + v, lambda u, v: u - v, lambda u, v: u * v, lambda u, v: u // v, lambda u, v: u % v, lambda u, v: u**2,
        lambda u, v: -u, lambda u, v: u + 3, lambda u, v: 3 - u, lambda u, v: u / 2, lambda u, v: u.trim(), lambda u, v: u.truncate(2),
    ):  # fmt: skip
        near(f(a, c).coef, f(b, d).coef)
        near(f(a, c)(x), f(b, d)(x))
    near(Theirs.fromroots([1, 2, 3], domain=[0, 4]).coef, Polynomial.fromroots([1, 2, 3], domain=[0, 4]).coef)  # fmt: skip
    near(Theirs.identity([0, 4]).coef, Polynomial.identity([0, 4]).coef)
    near(Theirs.basis(3).coef, Polynomial.basis(3).coef)
    near(a.linspace(5)[1], b.linspace(5)[1])
    assert b.degree() == 4 and len(b) == 5 and b == b.copy() and b != d
    assert "x**4" in str(b) and repr(b).startswith("Polynomial([")
    t = weft.Tensor(p)
    Polynomial(t)(weft.asarray(x)).sum().backward()
    near(P.polyvander(x, 4).sum(0), t.grad)


def test_refusals():
    a, b = Polynomial([1.0, 2.0], [0, 1]), Polynomial([1.0])
    error = refused(weft.ArgumentError, "polynomial.domain", lambda: a + b)
    assert "convert" in error.help
    refused(weft.ShapeError, "polynomial.coefficients", Polynomial, [[1.0], [2.0]])
    refused(weft.ArgumentError, "polynomial.fit.full", W.polyfit, [1.0], [1.0], 0, full=True)
    refused(weft.ArgumentError, "polynomial.fit.degree", W.polyfit, [1.0], [1.0], -1)
    refused(weft.ShapeError, "polynomial.fit.shape", W.polyfit, [1.0, 2.0], [1.0], 1)
    refused(weft.ArgumentError, "polynomial.power", W.polypow, [1.0], -1)
    refused(weft.ArgumentError, "polynomial.integrals", W.polyint, [1.0], 2**64)
    assert (
        weft.polynomial.polyder([1.0, 2.0, 3.0], 2**64).tolist()
        == [0]
        == np.polynomial.polynomial.polyder([1.0, 2, 3], 9).tolist()
    )
    assert weft.polyder([1.0, 2.0, 3.0], 2**64).tolist() == np.polyder([1.0, 2, 3], 9).tolist()
    assert weft.diff(weft.ones(5), 2**64).shape == np.diff(np.ones(5), 9).shape
    refused(weft.ArgumentError, "polynomial.companion", W.polycompanion, [1.0])
    refused(weft.ArgumentError, "polynomial.constants", W.polyint, [1.0], 1, [1, 2])


@pytest.mark.parametrize("spec", ["ij,jk,kl,lm->im", "ab,bc,cd,de,ef", "ijk,jkl,lm->im", "i,i->"])
def test_orders_of_products(rng, spec):
    sizes = dict(zip("abcdefijklm", (3, 40, 5, 60, 2, 7, 3, 20, 5, 30, 4)))
    terms = spec.partition("->")[0].split(",")
    arrays = [rng.standard_normal([sizes[c] for c in t]) for t in terms]
    path, text = weft.einsum_path(spec, *arrays)
    near(np.einsum(spec, *arrays), np.einsum(spec, *arrays, optimize=path))
    near(np.einsum(spec, *arrays), weft.einsum(spec, *arrays))
    assert path[0] == "einsum_path" and "multiplications" in text
    assert weft.einsum_path(spec, *arrays, optimize=False)[0] == [
        "einsum_path",
        tuple(range(len(terms))),
    ]
    assert weft.einsum_path(spec, *arrays, optimize=path)[0] == path


def test_products_with_vectors(rng):
    a, v = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4)) + 1j
    near(np.einsum("bij,bj->bi", a, v), weft.matvec(weft.asarray(a), weft.asarray(v)))
    near(np.einsum("bi,bij->bj", v.conj(), a.mT if hasattr(a, "mT") else a.swapaxes(1, 2)), weft.vecmat(weft.asarray(v), weft.asarray(a).mT))  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (2, 3, 6, 6), (0, 3, 3)])
def test_eigenvalues_of_real_matrices(rng, dtype, shape):
    """In NumPy's order; those that are not real in pairs of conjugates, to the last bit."""
    a = rng.standard_normal(shape).astype(dtype)
    values, vectors = (x.numpy() for x in weft.linalg.eig(weft.asarray(a)))
    if dtype == "float64":
        np.testing.assert_allclose(values, np.linalg.eigvals(a), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(a @ vectors, vectors * values[..., None, :], atol=1e-4 if dtype == "float32" else 1e-12)  # fmt: skip
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), np.ones(values.shape), rtol=1e-5)
    for row in values.reshape(-1, shape[-1]):
        assert sorted(row[row.imag != 0].tolist(), key=str) == sorted(row[row.imag != 0].conj().tolist(), key=str)  # fmt: skip
