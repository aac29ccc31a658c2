# SPDX-License-Identifier: Apache-2.0
"""Calls that go straight to the core, and the calls beside them that do not: NumPy's results over types, shapes and layouts."""

import itertools
import warnings

import numpy as np
import pytest
import weft

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def draw(rng, shape, dtype):
    x = rng.standard_normal(shape) * 9
    if dtype == "bool":
        return x > 0
    return (x + 1j * x[::-1]).astype(dtype) if dtype.startswith("complex") else np.asarray(x).astype(dtype)  # fmt: skip


def close(got, want, dtype):
    got = got.astype("complex128" if dtype.startswith("complex") else "float64").numpy()
    rtol = 1e-2 if dtype == "float16" else 1e-4
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * 20)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("n", [1, 3, 50, 5003])
def test_bincount(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.integers(0, 120, n).astype(dtype)
    x, wide = weft.asarray(a), a.astype("int64")
    np.testing.assert_array_equal(weft.bincount(x).numpy(), np.bincount(wide))
    np.testing.assert_array_equal(weft.bincount(x, minlength=300).numpy(), np.bincount(wide, minlength=300))  # fmt: skip
    gaps = weft.asarray(np.repeat(a, 2))[::2]
    np.testing.assert_array_equal(weft.bincount(gaps).numpy(), np.bincount(wide))
    for kind in ("float32", "float64", "int32"):
        by = (rng.standard_normal(n) * 9).astype(kind)
        np.testing.assert_allclose(weft.bincount(x, weft.asarray(by)).numpy(), np.bincount(wide, by), rtol=1e-4, atol=1e-4)  # fmt: skip
    if dtype.startswith("int"):
        a[n // 2] = -1
        with pytest.raises(weft.ArgumentError, match="negative"):
            weft.bincount(weft.asarray(a))


def test_bincount_of_too_large_numbers():
    with pytest.raises(weft.ArgumentError):
        weft.bincount(weft.asarray(np.array([1, 2**64 - 1], "uint64")))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("name", ["nansum", "nanmax", "nanmin", "nanmean"])
@pytest.mark.parametrize("holes", [0, 0.3, 1])
def test_what_leaves_nan_out(name, dtype, holes):
    rng = np.random.default_rng(3)
    for shape, axis in itertools.product([(5,), (4, 7), (3, 4, 301)], [None, 0, -1]):
        a = draw(rng, shape, dtype)
        if a.dtype.kind == "f":
            a[rng.random(shape) < holes] = np.nan
            if holes == 0.3:
                a.reshape(-1)[0] = np.inf
        x = weft.asarray(a)
        got = getattr(weft, name)(x) if axis is None else getattr(weft, name)(x, axis=axis)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of axes of nothing but NaN
            want = getattr(np, name)(a.astype("float64") if dtype == "float16" else a, axis=axis)
        close(got, want, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "complex64"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 3), -1), ((3, 7), 0), ((4, 3, 9), 1), ((501, 3), -1), ((3,), 0), ((0, 3), -1)]
)  # fmt: skip
def test_cross(shape, axis, dtype):
    rng = np.random.default_rng(1)
    a, b = draw(rng, shape, dtype), draw(rng, shape, dtype)
    wide = "complex128" if dtype.startswith("complex") else "float64"
    want = np.cross(a.astype(wide), b.astype(wide), axis=axis)
    for f in (lambda x, y: weft.linalg.cross(x, y, axis=axis), lambda x, y: weft.cross(x, y, axis)):
        for run in (f, weft.compile(f)):
            got = run(weft.asarray(a), weft.asarray(b))
            assert got.shape == want.shape
            got = got.astype(wide).numpy()
            np.testing.assert_allclose(got, want, rtol=1e-2, atol=0.5 if dtype == "float16" else 1e-2)  # fmt: skip
    if len(a) > 1:
        got = weft.linalg.cross(weft.asarray(a)[::-1], weft.asarray(b), axis=axis)
        close(got if axis else got[:0], np.cross(a[::-1].astype(wide), b.astype(wide), axis=axis) if axis else want[:0], dtype)  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "bool", "float32", "float64", "complex64"])  # fmt: skip
def test_running_sums(dtype):
    rng = np.random.default_rng(2)
    for shape, axis in (((4, 5, 6), 0), ((4, 5, 6), 1), ((4, 5, 6), -1), ((7,), 0), ((3, 0), 0)):
        a = draw(rng, shape, dtype) if dtype == "bool" else rng.integers(0, 4, shape).astype(dtype)
        x = weft.asarray(a)
        for short, long in (("cumsum", "cumulative_sum"), ("cumprod", "cumulative_prod")):
            want = getattr(weft, long)(x, axis=axis)
            for got in (getattr(weft, short)(x, axis), getattr(weft, short)(x, dim=axis)):
                assert got.dtype == want.dtype
                np.testing.assert_array_equal(got.numpy(), want.numpy())
        np.testing.assert_array_equal(weft.cumsum(x).numpy(), np.cumsum(a).astype(weft.cumsum(x).numpy().dtype))  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "float32", "float64", "float16"])  # fmt: skip
@pytest.mark.parametrize("shape", [(10,), (301,), (1130,), (9001,), (40, 301), (5, 33, 7)])
def test_partition_at_one_place(shape, dtype):
    a = draw(np.random.default_rng(4), shape, dtype)
    for axis in range(-1, len(shape)):
        for k in (0, shape[axis] // 2, -1):
            got = weft.partition(weft.asarray(a), k, axis).numpy()
            np.testing.assert_array_equal(np.sort(got, axis), np.sort(a, axis))
            middle = np.take(got, [k], axis)
            np.testing.assert_array_equal(middle, np.take(np.sort(a, axis), [k], axis))
            first, last = np.split(got, [k % shape[axis]], axis)
            assert (first <= middle).all() and (last >= middle).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64", "bool"])
@pytest.mark.parametrize(
    "spec", "ii-> ijj->i ijj-> iji->j ijk->ki iij->j nchw,c->nhw c,nchw->nhw ij,i->j i,ij->j ij,j->i bij,i->bj ijk,j->ik ijk,j->ki ij,i-> ijk,k->ij ij,i->ij ijk,i->jk".split()
)  # fmt: skip
def test_einsum_of_diagonals_and_by_vectors(spec, dtype):
    extent = dict(zip("ijklnchwb", (5, 5, 3, 6, 2, 7, 3, 5, 4), strict=True))
    rng = np.random.default_rng(5)
    arrays = [draw(rng, [extent[c] for c in t], dtype) for t in spec.split("->")[0].split(",")]
    got, want = weft.einsum(spec, *map(weft.asarray, arrays)), np.einsum(spec, *arrays)
    assert got.dtype == want.dtype.name
    close(got, want, dtype)
    got = weft.einsum(spec, *(weft.asarray(a)[::-1] for a in arrays))
    close(got, np.einsum(spec, *(a[::-1] for a in arrays)), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "bool", "complex64"])
def test_reductions_of_views_with_gaps(dtype):
    """No axis has neighbours in memory, or a kept one runs backwards; large ones are copied by parts."""
    rng = np.random.default_rng(6)
    for shape in ((70, 33), (130, 9, 31), (3001, 67)):
        a = draw(rng, shape, dtype)
        steps = [slice(None, None, s) for s in (2, 3, -1, -2, 1)]
        for index in itertools.product(steps, repeat=len(shape)) if a.size < 5000 else [steps[:1] * len(shape), steps[1:4][: len(shape)], steps[2:3] * len(shape)]:  # fmt: skip
            view, x = a[tuple(index)], weft.asarray(a)[tuple(index)]
            axis = int(rng.integers(len(shape)))
            for axes in (axis, None, tuple(range(len(shape)))[1:]):
                keep = bool(rng.integers(2))
                for name in ("sum", "any") if a.dtype.kind in "bc" else ("sum", "max"):
                    got = getattr(weft, name)(x, axis=axes, keepdims=keep)
                    want = getattr(np, name)(view.astype("complex128") if a.dtype.kind == "c" else view, axis=axes, keepdims=keep)  # fmt: skip
                    assert got.shape == want.shape
                    close(got, want, "complex64" if a.dtype.kind == "c" and name == "sum" else "float64")  # fmt: skip


@pytest.mark.parametrize("n", [1, 7, 8, 15, 16, 17, 1003])
def test_square_roots_are_the_nearest_numbers(n):
    special = [0.0, -0.0, np.inf, np.nan, 5e-324, 2.3e-308, 1.7e308, -1.0, 1e-310, 9.0, 2.0, 1e-40]
    rng = np.random.default_rng(n)
    for dtype in ("float32", "float64"):
        sets = [rng.random(n) * 3 + 1, np.square(rng.random(n) + 1), np.exp(rng.standard_normal(n) * 30)]  # fmt: skip
        with np.errstate(all="ignore"):
            sets = [s.astype(dtype) for s in (*sets, np.array((special * n)[:n]))]
            sets += [np.nextafter(sets[1], np.array(0, dtype))]
            for a in sets:
                want = np.sqrt(a)
                got = weft.sqrt(weft.asarray(a)).numpy()
                np.testing.assert_array_equal(got, want)
                np.testing.assert_array_equal(np.signbit(got)[a == 0], np.signbit(a)[a == 0])


def test_magnitudes_of_complex_numbers():
    rng = np.random.default_rng(8)
    z = (rng.standard_normal(1003) + 1j * rng.standard_normal(1003)).astype("complex64")
    with np.errstate(all="ignore"):
        z[:10] = [0, 1e38 + 1e38j, complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(np.nan, 1), 1e-45, 1e-40 + 1e-40j, 3 + 4j, complex(-np.inf, 0), 3e38 + 3e38j]  # fmt: skip
        for n in (*range(1, 20), 1003):
            want = np.abs(z[:n].astype("complex128")).astype("float32")
            np.testing.assert_allclose(weft.abs(weft.asarray(z[:n])).numpy(), want, rtol=6e-8)


def test_short_calls_of_views_and_vectors():
    rng = np.random.default_rng(9)
    a = rng.standard_normal((3, 1, 4)).astype("float32")
    x = weft.asarray(a)
    for got, want in (
        (weft.ravel(x), a.ravel()),
        (weft.ravel(x[::-1]), a[::-1].ravel()),
        (weft.squeeze(x), a.squeeze()),
        (weft.swapaxes(x, 0, -1), a.swapaxes(0, -1)),
        (weft.inner(x[0, 0], x[1, 0]), np.inner(a[0, 0], a[1, 0])),
        (weft.inner(x[:, 0], x[:2, 0]), np.inner(a[:, 0], a[:2, 0])),
        (weft.inner(x, x[:2, 0]), np.inner(a, a[:2, 0])),
        (weft.outer(x[0, 0], x[1, 0]), np.outer(a[0, 0], a[1, 0])),
        (weft.convolve(x[0, 0], x[1, 0, :3]), np.convolve(a[0, 0], a[1, 0, :3])),
        (weft.convolve(x[0, 0, :2], x[1, 0]), np.convolve(a[0, 0, :2], a[1, 0])),
        (weft.convolve(x[0, 0], x[1, 0], "same"), np.convolve(a[0, 0], a[1, 0], "same")),
        (weft.insert(x[0, 0], 1, 7), np.insert(a[0, 0], 1, 7)),
        (weft.insert(x[0, 0], -1, 7.5), np.insert(a[0, 0], -1, 7.5)),
        (weft.insert(x, 4, 2, axis=2), np.insert(a, 4, 2, axis=2)),
        (weft.delete(x, -1, axis=0), np.delete(a, -1, axis=0)),
        (weft.delete(x, 3), np.delete(a, 3)),
    ):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
    for call in (
        lambda: weft.swapaxes(x, 0, 3),
        lambda: weft.inner(x[0, 0], x[0, 0, :3]),
        lambda: weft.insert(x[0, 0], 6, 1),
        lambda: weft.delete(x[0, 0], 4),
        lambda: weft.cumsum(x, 5),
        lambda: weft.partition(x, 9),
    ):
        with pytest.raises(weft.Error):
            call()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(9, 9, 9), (3, 9, 17), (40, 5, 4), (2, 70, 30), (7, 3, 130), (2, 3, 5, 6)])  # fmt: skip
def test_softmax_along_a_middle_axis(shape, dtype):
    a = draw(np.random.default_rng(10), shape, dtype)
    wide = a.astype("float64") - a.astype("float64").max(1, keepdims=True)
    log = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    x = weft.asarray(a)
    close(weft.softmax(x, axis=1), np.exp(log), dtype)
    close(weft.log_softmax(x, axis=1), log, dtype)
    close(weft.logsumexp(x, axis=1), np.log(np.exp(a.astype("float64")).sum(1)), dtype)
    t, g = weft.Tensor(x, requires_grad=True), draw(np.random.default_rng(11), shape, dtype)
    (t.softmax(1) * weft.Tensor(weft.asarray(g), requires_grad=False)).sum().backward()
    y, g = np.exp(log), g.astype("float64")
    close(t.grad, y * (g - (g * y).sum(1, keepdims=True)), dtype)


@pytest.mark.parametrize("n", [4, 64, 65, 1023, 1025, 8193])
def test_compositions_and_compiled_expressions_of_few_elements(n):
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal(n).astype("float32"), (rng.random(n) + 0.5).astype("float32")
    a[::7] = np.nan
    x, y = weft.asarray(a), weft.asarray(b)
    for f, want in (
        (weft.fmax, np.fmax(a, b)),
        (weft.fmin, np.fmin(a, b)),
        (weft.fmod, np.fmod(a, b)),
        (weft.heaviside, np.heaviside(a, b)),
        (lambda x, y: weft.logaddexp2(x, y) * 2 + weft.exp(y) - weft.sin(x), np.logaddexp2(a, b) * 2 + np.exp(b) - np.sin(a)),
    ):  # fmt: skip
        for run in (f, weft.compile(f)):
            np.testing.assert_allclose(run(x, y).numpy(), want, rtol=2e-5, atol=1e-5)
            np.testing.assert_allclose(run(x[::-1], y[::-1]).numpy(), want[::-1], rtol=2e-5, atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("axis", [2**32, 2**32 - 1, -(2**32), 2**31, 2**64])
@pytest.mark.parametrize(
    "name", ["cummax", "cummin", "cumsum", "cumprod", "nanmax", "sum", "argmax"]
)
def test_an_axis_beyond_32_bits_is_none_of_the_array(name, axis):
    with pytest.raises(weft.Error) as caught:
        getattr(weft, name)(weft.asarray([[3.0, 1.0], [2.0, 4.0]]), axis)
    assert "axis" in str(caught.value), caught.value
