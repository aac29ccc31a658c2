# SPDX-License-Identifier: Apache-2.0
"""Statements of NumPy programs beside NumPy: lists in operators, rarer arguments, methods of operations, other libraries' memory."""

import ctypes
import gc
import io
import weakref

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(29)
X, Y = RNG.standard_normal((6, 7)), RNG.standard_normal((6, 7))
N = RNG.integers(-9, 9, (4, 5))
NAN = np.where(X > 0.7, np.nan, X)
UP = np.sort(RNG.standard_normal(7))

# Each is evaluated with xp = numpy and with xp = weft, whose X, Y, N are weft's arrays.
STATEMENTS = """
N + [1, 2, 3, 4, 5]
[1, 2, 3, 4, 5] + N
N * (1, 2, 3, 4, 5)
X - [[0.1] * 7] * 6
[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7] - X
[[2, 3]] ** abs(N[:1, :2]), 2 ** abs(N)
[1] * 5 @ N.T
N @ [1, 2, 3, 4, 5]
N == [1, 2, 3, 4, 5]
N < (0, 1, 0, 1, 0)
[0.5, 0.1, 0, 1, 0] >= N
N // [1, 2, 3, 4, 5], N % [2, 3, 4, 5, 6], N & [1, 3, 1, 3, 1]
xp.add(X, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
xp.pad(X, 2, constant_values=(0, 1)), xp.pad(X, (3,), "wrap"), xp.pad(X, [(1, 0), (0, 2)], constant_values=[(1, 2), (3, 4)])
xp.quantile(X, [0.1, 0.5], method="lower"), xp.percentile(X, 33, method="nearest"), xp.quantile(X, 0.3, axis=1, method="midpoint"), xp.quantile(X, 0.2, method="higher")
xp.nanquantile(NAN, [0.2, 0.8], axis=1), xp.median(X, axis=(0, 1)), xp.percentile(X, 40, axis=(0, 1), keepdims=True)
xp.sort(X, axis=None), xp.argsort(X, axis=None), X.argsort(kind="stable"), X.argsort(0)
xp.allclose(NAN, NAN, equal_nan=True), xp.allclose(NAN, NAN)
xp.mean(X, where=X > 0), xp.std(X, axis=0, where=X > -9), xp.var(X, where=X > 0, ddof=1), xp.max(X, where=X < 0, initial=-9)
xp.unique(N % 2, axis=0), xp.unique(N % 2, axis=1, return_index=True, return_inverse=True, return_counts=True)[1:]
xp.intersect1d(N, [1, 2, 3, 4], return_indices=True)
xp.average(X, axis=0, weights=Y[:, 0] ** 2, returned=True), xp.average(N)
xp.polyfit(UP, UP**3 + 1, 2, w=UP**2), xp.polyfit(UP, UP**3, 1, cov=True)
xp.interp(UP * 9, UP, UP**2, period=3)
xp.meshgrid(UP, UP[:3], sparse=True), xp.linspace([0, 1], [2, 5], 4), xp.linspace(0, 1, 5, retstep=True)
xp.einsum(X, [0, 1], Y, [2, 1], [0, 2]), xp.einsum("ij,kj->ik", X, Y, optimize=True), xp.einsum(X, [0, 1], [1, 0])
xp.cumsum(N, axis=1, dtype=xp.float64), xp.clip(N, a_min=-1, a_max=3), xp.zeros_like(X, shape=(2, 2)), xp.diag([1, 2], k=1)
xp.diff(X, axis=0, prepend=0), xp.diff(N, append=5), xp.diff(X, 2), xp.diff(N, 1, 0), xp.eye(3, 4, 1), xp.eye(3, k=-1), xp.tensordot(X, Y, 2), xp.trace(X, offset=1)
xp.fft.fft(UP, 10), xp.fft.irfft(UP, 9), xp.fft.fft(X, 4, 0)
xp.add.reduceat(UP, [0, 2, 2, 5]), xp.maximum.reduceat(X, [1, 3], axis=0), xp.logical_and.reduce(X > -9), xp.logical_or.reduce(X > 1, axis=1)
X.ravel("F"), X.flatten("F"), X.reshape(7, -1, order="F"), X.item(3), X.item((1, 2)), N.round(1), X.view(xp.int64)
xp.finfo(xp.float64).tiny, xp.linalg.lstsq(X, Y[:, 0], rcond=None)[0]
xp.nanmean(NAN, axis=0, where=X > -1), xp.nansum(NAN, axis=1, where=X > 0), xp.nansum(NAN, initial=3.0), xp.nansum(N, where=N > 0, axis=0)
xp.nanprod(NAN, where=X > 0.5, initial=2.0), xp.nanmax(NAN, axis=0, where=X > 0, initial=0.5), xp.nanmin(NAN, where=X > 0, initial=9.0)
xp.nanstd(NAN, axis=0, where=X > -1), xp.nanvar(NAN, axis=1, dtype=xp.float64, ddof=1), xp.nanstd(NAN, axis=0, dtype=xp.float64, ddof=0)
xp.nancumsum(NAN, axis=0, dtype=xp.float64), xp.nancumprod(N % 3, axis=1), xp.nanprod(N.astype(xp.int8) % 3, axis=1, dtype=xp.int64)
xp.nanmedian(NAN, axis=0, overwrite_input=False), xp.median(X, axis=1, overwrite_input=False), xp.percentile(X, 30, axis=0, overwrite_input=False)
xp.nanquantile(NAN, 0.3, axis=0, method="higher"), xp.nanpercentile(NAN, [30, 60], axis=1, method="nearest"), xp.nanquantile(NAN, 0.3, method="midpoint")
xp.nanpercentile(NAN, 30, axis=(0, 1), method="lower"), xp.nanquantile(NAN, [0.0, 1.0], axis=1)
xp.isin(N, [1, 2], True), xp.isin(N, [1, 2], invert=True), xp.average(X, axis=0, keepdims=True), xp.average(X, axis=1, weights=UP**2, keepdims=True)
xp.cov(X, fweights=[1, 2, 1, 1, 3, 1, 2]), xp.cov(X, aweights=UP**2), xp.cov(X, Y, fweights=[1, 2, 1, 1, 3, 1, 2], aweights=UP**2, ddof=2)
xp.take(N, [27, -3, 4], mode="wrap"), xp.take(N, [9, -3, 2], 1, mode="clip"), N.take([7, 1], axis=0, mode="wrap")
xp.cross(X[:, :3], X[:, 1:4], axisa=1, axisb=-1), xp.cross(X[:3], X[1:4], axisa=0, axisb=0, axisc=0), xp.cross(X[:2], X[2:4], axisa=0, axisb=0)
xp.diagonal(N, 1, axis1=1, axis2=0), xp.trace(N, 1, axis1=1, axis2=0), xp.tri(N=2, M=3), xp.vander(UP, N=3), xp.eye(3, M=4, k=-1)
xp.linspace([0.0, 1.0], [2.0, 5.0], 4, axis=-1), xp.geomspace([1, -2], [10, -20], 4, axis=1), xp.logspace([0, 1], [1, 2], 3, axis=1)
xp.indices((2, 3), sparse=True), xp.amax(X, axis=0, initial=9, where=X > 0), xp.amin(X, where=X > 0, initial=9)
xp.ravel_multi_index(([5], [-1]), (3, 4), mode="wrap"), xp.ravel_multi_index(([5], [-1]), (3, 4), mode="clip"), xp.ravel_multi_index(([5], [1]), (3, 4), mode=("wrap", "raise"))
xp.ravel_multi_index(([1], [2]), (3, 4), order="F"), xp.unravel_index([5, 7], (3, 4), order="F")
xp.unique(NAN, True, False, True, equal_nan=True), xp.unique(NAN, equal_nan=True), xp.unique(NAN, equal_nan=False), xp.unique(X, True, equal_nan=True)
xp.mean(X.astype(xp.float32), dtype=xp.float64), xp.var(X.astype(xp.float32), axis=1, dtype=xp.float64), xp.std(X.astype(xp.float32), dtype=xp.float64, ddof=1)
""".strip().splitlines()


def host(x):
    if isinstance(x, (tuple, list)):
        return [host(v) for v in x]
    return x.numpy() if isinstance(x, weft.NDArray) else np.asarray(x)


def compare(got, want):
    if isinstance(want, list):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            compare(a, b)
        return
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
    else:
        tight = 1e-12 if got.dtype.itemsize == want.dtype.itemsize else 1e-6
        np.testing.assert_allclose(got, want, rtol=tight, atol=tight, equal_nan=True)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statement(statement):
    names = {"X": X, "Y": Y, "N": N, "NAN": NAN, "UP": UP}
    want = eval(statement, {"xp": np, **names})
    got = eval(statement, {"xp": weft, **{k: weft.asarray(v.copy()) for k, v in names.items()}})
    compare(host(got), host(want))


def test_lists_in_place():
    for xp in (np, weft):
        v = xp.arange(3)
        v += [1, 1, 1]
        v *= (2, 3, 4)
        assert v.tolist() == [2, 6, 12]
    x = weft.asarray(X)
    with pytest.raises(weft.ShapeError):
        x + [1, 2]
    assert (x == ["a"]) is False and (weft.Tensor([1.0, 2.0]) + [0.5, 1.0]).tolist() == [1.5, 3.0]
    third = weft.asarray(np.array([1 / 3])) - [1 / 3]  # a list is as exact as the array beside it
    assert third.dtype == weft.float64 and third.item() == 0.0


@pytest.mark.parametrize("name", ["maximum", "minimum", "multiply", "divide", "add", "subtract"])
def test_operations_at_positions(name):
    at, values = np.array([0, 3, 0, 2, 0]), np.array([2.0, 3.0, -4.0, 5.0, 0.5])
    want, got = UP.copy(), weft.asarray(UP.copy())
    getattr(np, name).at(want, at, values)
    getattr(weft, name).at(got, weft.asarray(at), weft.asarray(values))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)


def test_parts_of_complex_numbers_are_written():
    for xp in (np, weft):
        z = xp.asarray([1 + 2j, 3 - 1j])
        z.real = [5, 6]
        z.imag = -1
        assert z.tolist() == [5 - 1j, 6 - 1j]
    with pytest.raises(weft.DTypeError) as refusal:
        weft.ones(2).imag = 1
    assert refusal.value.code == "array.imag.dtype"


def test_numpy_functions_of_arrays():
    x, n = weft.asarray(X), Y
    for f in (np.exp, np.isnan, np.negative, np.arctan):
        got = f(x)
        assert isinstance(got, weft.NDArray)
        np.testing.assert_allclose(got.numpy(), f(X), rtol=1e-14)
    for got, want in ((np.add(n, x), n + X), (n - x, n - X), (np.hypot(x, n), np.hypot(X, n)), (np.float64(2) ** x, 2**X)):  # fmt: skip
        assert isinstance(got, weft.NDArray)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    assert np.add.reduce(x, axis=0).shape == (7,) and np.multiply.outer(x[0], n[0]).shape == (7, 7)
    place = np.empty(X.shape)
    assert np.add(x, n, out=place) is place and np.array_equal(place, X + n)
    ours = weft.zeros(X.shape, dtype="float64")
    assert np.add(X, n, out=ours) is ours and np.array_equal(ours.numpy(), X + n)
    t = weft.Tensor(UP, requires_grad=True)
    (UP * np.sin(t)).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), UP * np.cos(UP), rtol=1e-12)
    assert np.dtype(x.dtype) == np.float64 and np.zeros(2, dtype=weft.int8).dtype == np.int8


def test_memory_of_others():
    assert weft.asarray((ctypes.c_double * 3)(1, 2, 3)).tolist() == [1, 2, 3]

    class Image:
        def __init__(self):
            self.pixels = np.arange(6, dtype="uint8").reshape(2, 3)

        @property
        def __array_interface__(self):
            return self.pixels.__array_interface__

    assert weft.asarray(Image()).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert weft.ones((2, 3)).__array_interface__["shape"] == (2, 3)
    x = weft.ones(3)
    seen = weakref.ref(x)
    assert seen() is x
    del x
    gc.collect()
    assert seen() is None
    file = io.BytesIO()
    weft.save(file, weft.arange(3))
    file.seek(0)
    assert weft.load(file).tolist() == [0, 1, 2]


def test_a_processor_that_llvm_does_not_know():
    from weft import te

    a = te.placeholder((4,), name="A")
    f = te.create_prim_func(
        [a, te.compute((4,), lambda i: np.exp(a[i]) * np.float32(2) + np.int64(1))]
    )
    x, y = weft.arange(4.0), weft.zeros(4)
    weft.build(f, target="cpu:mcpu=generic")(x, y)
    np.testing.assert_allclose(y.numpy(), 2 * np.exp(x.numpy()) + 1, rtol=1e-6)
    with pytest.raises(weft.ArgumentError) as refusal:
        weft.build(f, target="cpu:mcpu=haswel")
    assert (
        refusal.value.code == "cpu.option.processor"
        and 'did you mean "haswell"' in refusal.value.help
    )
    with pytest.raises(weft.ArgumentError) as refusal:
        te.compute((4,), lambda i: float(a[i]))
    assert refusal.value.code == "python.truth"
    with pytest.raises(weft.DTypeError) as refusal:
        te.compute((4,), lambda i: np.heaviside(a[i], 1.0))
    assert refusal.value.code == "te.ufunc"


@pytest.mark.parametrize(
    "call, code, text",
    [
        (lambda: weft.interp([1.0], [0.0, 1.0], [0.0, 1.0], period=0), "array.interp.period", "period 0"),
        (lambda: weft.polyfit([0.0, 1, 2], [0.0, 1, 4], 1, full=True), "array.polyfit.argument", "full"),
        (lambda: weft.add.reduceat(weft.ones(3), [0, 3]), "array.reduceat.index", "extent 3"),
        (lambda: weft.ones(3).resize(2), "array.resize.inplace", "shape (3,)"),
        (lambda: weft.quantile(weft.ones(3), 0.5, method="strange"), "array.quantile.method", "weibull"),
        (lambda: weft.greater.accumulate(weft.ones(3)), "array.operation.method", "logical_and"),
    ],
)  # fmt: skip
def test_refusals(call, code, text):
    with pytest.raises(weft.ArgumentError) as refusal:
        call()
    assert refusal.value.code == code and text in str(refusal.value)


def test_memory_that_is_not_given_away():
    torch = pytest.importorskip("torch")
    with pytest.raises(weft.DTypeError) as refusal:
        weft.asarray(torch.ones(2, requires_grad=True))
    assert refusal.value.code == "array.asarray.export" and "detach" in str(refusal.value)
