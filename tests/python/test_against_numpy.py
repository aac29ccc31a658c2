# SPDX-License-Identifier: Apache-2.0
"""Functions of the array namespace against NumPy on random arrays: options, views and types that the other tests leave out."""

import math

import numpy as np
import pytest
import weft

RNG = np.random.default_rng(7)
F = RNG.standard_normal((3, 4, 5)).astype(np.float32)
D = RNG.standard_normal((4, 4))
I = RNG.integers(-9, 9, (3, 4)).astype(np.int32)  # noqa: E741


def check(ours, theirs, rtol=2e-5):
    theirs = np.asarray(theirs)
    got = np.asarray(ours.numpy() if hasattr(ours, "numpy") else ours)
    assert got.shape == theirs.shape
    np.testing.assert_allclose(got, theirs, rtol=rtol, atol=rtol)


def layouts(a):
    """The same numbers: dense, transposed twice, every second of a wider array, reversed twice."""
    x = weft.asarray(a)
    yield x
    yield weft.permute_dims(weft.asarray(np.ascontiguousarray(a.T)), tuple(range(a.ndim))[::-1])
    wide = np.repeat(a, 2, axis=-1)
    yield weft.asarray(wide)[..., ::2]
    yield weft.asarray(np.ascontiguousarray(a[..., ::-1]))[..., ::-1]


@pytest.mark.parametrize("ord", [1, 2, 3, 0, 0.5, math.inf, -math.inf])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_vector_norms(ord, axis, keepdims):
    want = np.linalg.norm(F, ord, axis, keepdims)
    for x in layouts(F):
        check(weft.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord), want)


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_matrix_norms(ord, keepdims):
    want = np.linalg.norm(F, ord, (-2, -1), keepdims)
    for x in layouts(F):
        check(weft.linalg.matrix_norm(x, keepdims=keepdims, ord=ord), want)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cross_products(axis):
    a, b = RNG.standard_normal((2, 3, 3, 3))
    for x, y in zip(layouts(a), layouts(b)):
        check(weft.linalg.cross(x, y, axis=axis), np.cross(a, b, axis=axis))


@pytest.mark.parametrize("offset", [-5, -4, -3, -1, 0, 1, 2, 4, 5, 6])
def test_diagonals(offset):
    want = np.diagonal(F, offset, -2, -1)
    for x in layouts(F):
        check(weft.linalg.diagonal(x, offset=offset), want)
        check(weft.linalg.trace(x, offset=offset), np.trace(F, offset, -2, -1))


@pytest.mark.parametrize("n", [None, 1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms(name, n, norm):
    a = F if name in ("rfft", "ihfft") else F + 1j * F[::-1]
    for axis in (-1, 0):
        want = getattr(np.fft, name)(a, n, axis, norm)
        for x in layouts(a):
            check(getattr(weft.fft, name)(x, n=n, axis=axis, norm=norm), want, 2e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("d", [1.0, 0.5, 3.0])
def test_frequencies(n, d):
    check(weft.fft.fftfreq(n, d=d), np.fft.fftfreq(n, d))
    check(weft.fft.rfftfreq(n, d=d), np.fft.rfftfreq(n, d))


def test_shifts():
    for axes in (None, 0, (0, 2)):
        for name in ("fftshift", "ifftshift"):
            check(
                getattr(weft.fft, name)(weft.asarray(F), axes=axes), getattr(np.fft, name)(F, axes)
            )


@pytest.mark.parametrize("num", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("ends", [(1.5, 4.0), (2, 2), (3, -1), (1 + 1j, 2 - 3j), (-5, 5)])
def test_linspace(num, endpoint, ends):
    dtypes = ["complex128"] if isinstance(ends[0], complex) else ["float32", "float64", "int32"]
    for dtype in dtypes:
        got = weft.linspace(*ends, num, dtype=dtype, endpoint=endpoint)
        want = np.linspace(*ends, num, endpoint=endpoint)
        check(got, np.trunc(want).astype(dtype) if dtype == "int32" else want.astype(dtype), 1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        (7,), (2, 7), (2, 7, 2), (7, 2, -2), (0,), (3, 3), (0.5, 3.0, 0.75),
        (2**53, 2**53 + 5, 2), (-(2**60), -(2**60) - 9, -3), (2**62, 2**62 + 3),
    ],
)  # fmt: skip
def test_arange(arguments):
    want = np.arange(*arguments)
    got = weft.arange(*arguments, dtype=str(want.dtype))
    assert got.numpy().tolist() == want.tolist()


@pytest.mark.parametrize("invert", [False, True])
def test_isin(invert):
    for first, second in ((I, I[0]), (I, 3), (3, I), (I, np.zeros(0, np.int32)), (100, I)):
        want = np.isin(first, second, invert=invert)
        a, b = (weft.asarray(x) if isinstance(x, np.ndarray) else x for x in (first, second))
        check(weft.isin(a, b, invert=invert), want)


def test_products_of_tensors_and_arrays():
    a, b = F[0], F[1].T
    want = a @ b
    for x in (weft.asarray(a), weft.Tensor(weft.asarray(a))):
        for y in (weft.asarray(b), weft.Tensor(weft.asarray(b))):
            check(weft.matmul(x, y), want)
            is_tensor = isinstance(x, weft.Tensor) or isinstance(y, weft.Tensor)
            assert isinstance(weft.matmul(x, y), weft.Tensor) == is_tensor


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sum", {}), ("prod", {}), ("max", {}), ("min", {}), ("mean", {}),
        ("var", {"correction": 0}), ("var", {"correction": 1}), ("std", {"correction": 1}),
        ("argmax", {}), ("argmin", {}), ("all", {}), ("any", {}), ("cumulative_sum", {}),
        ("cumulative_prod", {}), ("sort", {}), ("argsort", {}), ("count_nonzero", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_an_axis(name, options, axis):
    a = np.round(F, 1)
    a[0, 1] = 0
    if name == "argsort":
        options = {"stable": True}
    numpy_name = {"cumulative_sum": "cumsum", "cumulative_prod": "cumprod"}.get(name, name)
    theirs = {"ddof": options["correction"]} if "correction" in options else {}
    if name == "argsort":
        theirs = {"kind": "stable"}
    want = getattr(np, numpy_name)(a, axis=axis, **theirs)
    for x in layouts(a):
        check(getattr(weft, name)(x, axis=axis, **options), want)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    row = np.sort(I[0])
    check(
        weft.searchsorted(weft.asarray(row), weft.asarray(I), side=side),
        np.searchsorted(row, I, side),
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32", "float64", "bool"])
def test_rearrangements(dtype):
    a = (F * 3).astype(dtype)
    for x in layouts(a):
        check(weft.roll(x, 2), np.roll(a, 2))
        check(weft.roll(x, (1, -2), axis=(0, 2)), np.roll(a, (1, -2), (0, 2)))
        check(weft.flip(x, axis=1), np.flip(a, 1))
        check(weft.flip(x), np.flip(a))
        check(weft.repeat(x, 3, axis=1), np.repeat(a, 3, 1))
        check(weft.repeat(x, weft.asarray([0, 2, 1]), axis=0), np.repeat(a, [0, 2, 1], 0))
        check(weft.tile(x, (2, 1, 3)), np.tile(a, (2, 1, 3)))
        check(weft.moveaxis(x, 0, -1), np.moveaxis(a, 0, -1))
        check(weft.concat([x, x], axis=1), np.concatenate([a, a], 1))
        check(weft.stack([x, x], axis=1), np.stack([a, a], 1))
        check(weft.take(x, weft.asarray([2, 0, 2]), axis=1), np.take(a, [2, 0, 2], 1))
        check(weft.tril(x, k=1), np.tril(a, 1))
        check(weft.triu(x, k=-1), np.triu(a, -1))
        if dtype != "bool":
            check(weft.diff(x, axis=1), np.diff(a, axis=1))
            check(weft.diff(x, axis=0, n=2), np.diff(a, 2, 0))


@pytest.mark.parametrize(
    "equation",
    ["ij,jk->ik", "ij,ij->", "ij->ji", "ij,kj->ik", "ii->i", "ii->", "ij,jk,kl->il", "ij,j->i", "i,j->ij", "...i,...i->..."],
)  # fmt: skip
def test_einsum(equation):
    count = equation.split("->")[0].count(",") + 1
    shapes = {"ij,j->i": [(4, 4), (4,)], "i,j->ij": [(4,), (3,)]}.get(equation)
    operands = [RNG.standard_normal(s) for s in shapes or [(4, 4)] * count]
    want = np.einsum(equation, *operands)
    check(weft.einsum(equation, *map(weft.asarray, operands)), want)
    if shapes is None:
        turned = [weft.asarray(x).T for x in operands]
        check(weft.einsum(equation, *turned), np.einsum(equation, *[x.T for x in operands]))


@pytest.mark.parametrize("axes", [0, 1, 2, ([0, 1], [1, 0]), (0, 1)])
def test_tensordot(axes):
    check(weft.tensordot(weft.asarray(D), weft.asarray(D.T), axes=axes), np.tensordot(D, D.T, axes))
