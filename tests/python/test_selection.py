# SPDX-License-Identifier: Apache-2.0
"""Selection instead of sorting (median, quantiles, partition), counts, short convolutions and functions that leave NaN out, on the
host, beside NumPy."""

import warnings

import numpy as np
import pytest
import weft

RNG = np.random.default_rng(152)
TYPES = ("int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64", "bool")


def rows(kind, n, dtype):
    """Rows whose order is hard to guess from a few of their elements."""
    x = {
        "random": lambda: RNG.standard_normal(n) * 1e4,
        "few values": lambda: RNG.integers(-2, 3, n) * 1.0,
        "one value": lambda: np.full(n, 7.0),
        "ascending": lambda: np.arange(n) * 1.0,
        "descending": lambda: -np.arange(n) * 1.0,
        "one large": lambda: np.where(np.arange(n) == n // 3, 1e4, 0.0),
        "infinite": lambda: RNG.choice([-np.inf, 0.0, -0.0, 1.5, np.inf], n),
        "nan": lambda: np.where(RNG.random(n) < 0.3, np.nan, RNG.standard_normal(n)),
    }[kind]()
    if np.dtype(dtype).kind != "f":
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(np.clip(x, -(10**4), 10**4)).astype("int64").astype(dtype)
    return x.astype(dtype)


KINDS = "random,few values,one value,ascending,descending,one large,infinite,nan".split(",")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 19, 301, 2049, 20011])
def test_partition(kind, n):
    for dtype in TYPES:
        x = rows(kind, n, dtype)
        for kth in (0, n // 3, n - 1, -1, [n // 2, n // 5, n // 2]):
            got = weft.partition(weft.asarray(x), kth).numpy()
            order = np.sort(x)
            np.testing.assert_array_equal(np.sort(got), order)
            at = weft.argpartition(weft.asarray(x), kth).numpy()
            np.testing.assert_array_equal(np.sort(at), np.arange(n))
            for k in np.atleast_1d(kth) % n:
                for found in (got, x[at]):
                    np.testing.assert_array_equal(found[k], order[k])
                    if not np.isnan(np.float64(order[k])):
                        assert (
                            not (found[:k] > order[k]).any()
                            and not np.isnan(found[:k].astype("f8")).any()
                        )
                        assert not (found[k + 1 :] < order[k]).any()


def test_partition_along_axes():
    x = RNG.standard_normal((5, 2111, 3)).astype("float32")
    for axis, k in ((0, 2), (1, 1000), (2, 1), (-3, 4)):
        order = np.sort(x, axis).take(k, axis)
        for w, y in ((weft.asarray(x), x), (weft.asarray(x.T.copy()).permute(2, 1, 0), x)):
            np.testing.assert_array_equal(weft.partition(w, k, axis).numpy().take(k, axis), order)
            at = weft.argpartition(w, k, axis).numpy()
            np.testing.assert_array_equal(np.take_along_axis(y, at, axis).take(k, axis), order)
            np.testing.assert_array_equal(y, x)  # the operand stays
    np.testing.assert_array_equal(
        weft.partition(weft.asarray(x), 7, None).numpy()[7], np.sort(x, None)[7]
    )
    square = RNG.standard_normal((4, 6, 6))
    np.testing.assert_array_equal(
        weft.partition(weft.asarray(square), 3, 1).numpy().take(3, 1), np.sort(square, 1).take(3, 1)
    )
    wide = weft.asarray(x).astype(weft.bfloat16)
    np.testing.assert_array_equal(
        weft.partition(wide, 1000, 1).astype("float32").numpy().take(1000, 1), np.sort(wide.astype("float32").numpy(), 1).take(1000, 1)
    )  # fmt: skip


def test_places_beyond_the_ends():
    for name in ("partition", "argpartition"):
        for kth in (5, -6, [0, 9]):
            with pytest.raises(weft.ArgumentError, match="from -5 to 4") as caught:
                getattr(weft, name)(weft.arange(5), kth)
            assert caught.value.code == f"array.{name}.place"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1,), (4,), (777,), (7003,), (5, 2601), (2601, 3), (3, 50, 3)])
def test_quantiles(kind, shape):
    for dtype in ("float32", "float64"):
        x = rows(kind, int(np.prod(shape)), dtype).reshape(shape)
        atol = 1e-6 * np.max(np.abs(x), initial=0, where=np.isfinite(x))
        w, close = (
            weft.asarray(x),
            {
                "rtol": 1e-5 if dtype == "float32" else 1e-13,
                "atol": atol if dtype == "float32" else atol * 1e-8,
            },
        )
        for axis in (None, *range(x.ndim)):
            for keepdims in (False, True):
                np.testing.assert_allclose(
                    weft.median(w, axis, keepdims).numpy(),
                    np.median(x, axis, keepdims=keepdims),
                    **close,
                )
                np.testing.assert_allclose(
                    weft.nanmedian(w, axis, keepdims).numpy(),
                    np.nanmedian(x, axis, keepdims=keepdims),
                    **close,
                )
                for method in ("linear", "lower", "higher", "midpoint", "nearest"):
                    q = [30.0, 0, 100, 99.9]
                    got = weft.percentile(w, q, axis, keepdims, method=method).numpy()
                    if kind == "infinite" and method in ("linear", "midpoint"):
                        continue  # NumPy has NaN between two infinities of one sign
                    np.testing.assert_allclose(got, np.percentile(x.astype("f8"), q, axis, keepdims=keepdims, method=method), rtol=1e-5, atol=atol)  # fmt: skip
        np.testing.assert_array_equal(w.numpy(), x)


def test_kthvalue_is_the_first_of_equal_ones():
    for n in (40, 5003):
        x = RNG.integers(0, 9, n).astype("float32")
        order = np.argsort(x, kind="stable")
        for k in (1, n // 2, n):
            value, at = weft.Tensor(weft.asarray(x)).kthvalue(k)
            assert value.item() == x[order[k - 1]] and at.item() == order[k - 1]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint32", "int32", "int64", "uint64"])
def test_bincount(dtype):
    for n in (0, 1, 5, 1003):
        x = RNG.integers(0, 100, n).astype(dtype)
        for least in (0, 7, 300):
            got = weft.bincount(weft.asarray(x), minlength=least)
            assert got.dtype == "int64"
            np.testing.assert_array_equal(
                got.numpy(), np.bincount(x.astype("int64"), minlength=least)
            )
    x = RNG.integers(0, 9, (31, 2)).astype(dtype)[:, 1]
    np.testing.assert_array_equal(
        weft.bincount(weft.asarray(x)).numpy(), np.bincount(x.astype("int64"))
    )


def test_bincount_of_numbers_below_zero():
    for dtype in ("int8", "int32", "int64"):
        with pytest.raises(weft.ArgumentError, match="bincount of -3") as caught:
            weft.bincount(weft.asarray(np.array([4, -3, 2], dtype)))
        assert caught.value.code == "array.bincount.negative"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "float16"])
@pytest.mark.parametrize("n", [1, 6, 4099])
def test_histogram(dtype, n):
    x = (RNG.standard_normal(n) * 30).astype("int64").astype(dtype)  # many on an end of a bin
    for bins in (1, 7, 600):
        for bounds in (None, (-20, 40)):
            got, edges = weft.histogram(weft.asarray(x), bins, bounds)
            np.testing.assert_array_equal(
                got.numpy(), np.histogram(x.astype("f8"), edges.numpy())[0]
            )
            assert got.dtype == "int64" and edges.shape == (bins + 1,)
    if n > 5 and dtype.startswith("f"):
        y = np.array([0, np.nan, 1, np.inf, -np.inf, 0.5], dtype)
        np.testing.assert_array_equal(
            weft.histogram(weft.asarray(y), 4, (0, 1))[0].numpy(), [1, 0, 1, 1]
        )


@pytest.mark.parametrize(
    "dtype", ["int16", "int64", "float32", "float64", "complex64", "complex128"]
)
def test_convolve(dtype):
    for n, m in ((1, 1), (5, 1), (7, 3), (1001, 64), (1001, 65), (9001, 5), (2, 9)):
        a, v = ((RNG.standard_normal(k) * 5).astype(dtype) for k in (n, m))
        for mode in ("full", "same", "valid"):
            got = weft.convolve(weft.asarray(a), weft.asarray(v), mode).numpy()
            want = np.convolve(a.astype("c16"), v.astype("c16"), mode)
            assert got.dtype == dtype and got.shape == want.shape
            scale = {"float32": 1e-4, "complex64": 1e-4}.get(dtype, 1e-10)
            np.testing.assert_allclose(got.astype("c16"), want, rtol=scale, atol=scale * 30)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_functions_without_nan(dtype):
    x = rows("nan", 1013 * 3, dtype).reshape(1013, 3)
    if dtype != "int32":
        x[4], x[5] = np.nan, (np.nan, -np.inf, np.nan)
    w = weft.asarray(x)
    for name in "nansum nanmax nanmin nanmean".split():
        for axis in (None, 0, 1):
            np.testing.assert_allclose(
                getattr(weft, name)(w, axis).numpy(),
                getattr(np, name)(x, axis),
                rtol=1e-4,
                atol=1e-5,
            )
    np.testing.assert_array_equal(weft.nan_to_num(w).numpy(), np.nan_to_num(x))
    if dtype != "int32":
        nothing = weft.asarray(np.full(5, np.nan, dtype))
        assert (
            np.isnan(weft.nanmax(nothing).item())
            and np.isnan(weft.nanmin(nothing).item())
            and weft.nansum(nothing).item() == 0
        )
        assert weft.nanmax(weft.asarray(np.array([-np.inf, np.nan], dtype))).item() == -np.inf


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_the_mean_of_two_in_the_middle_of_which_one_is_infinite(dtype):
    inf = np.inf
    for line in (
        [-inf, -inf, 0, 1],
        [0, 1, inf, inf],
        [-inf] * 4,
        [3, -inf, 0, -inf, 2, 5],
        [1, 2, 3, 4],
    ):
        x = np.array(line, dtype)
        np.testing.assert_array_equal(weft.median(weft.asarray(x)).numpy(), np.median(x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "shape", [(1,), (9,), (4099,), (70001,), (7, 33), (300, 129), (2049, 3), (64, 5, 9)]
)
def test_extremes_of_numbers(shape, dtype):
    rng = np.random.default_rng(len(shape) + shape[0])
    a = (rng.standard_normal(shape) * 9).astype(dtype)
    a[rng.random(shape) < 0.3] = np.nan
    a.reshape(-1)[-1:] = 0.5
    if len(shape) > 1:
        a[2] = np.nan
        a[3] = -np.inf
    axes = [None, *range(len(shape)), -1, *([(0, 1)] if len(shape) > 1 else [])]
    views = [
        (a, weft.asarray(a)),
        (a.T, weft.permute_dims(weft.asarray(a), tuple(range(a.ndim))[::-1])),
        (a[::-2], weft.asarray(a)[::-2]),
    ]
    for view, x in views:
        for axis in axes:
            for name in ("nanmax", "nanmin"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    want = getattr(np, name)(view, axis=axis)
                got = getattr(weft, name)(x, axis=axis)
                assert got.dtype == dtype and got.shape == np.shape(want)
                np.testing.assert_array_equal(np.asarray(got), want)
