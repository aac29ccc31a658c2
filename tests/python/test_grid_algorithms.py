# SPDX-License-Identifier: Apache-2.0
"""Algorithms on devices with a grid (scans, sorting, selection, gather and scatter) beside NumPy."""

import numpy as np
import pytest
from cover import cover
from present import present

import weft

GRID = "opencl:0"
present(GRID)

SIZES = [0, 1, 31, 257, 2049, 100_003]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]


def device(x):
    return weft.asarray(x, device=GRID)


def turned(x):
    return weft.permute_dims(x, tuple(range(x.ndim))[::-1])


def draw(rng, dtype, shape, distinct=None):
    """Random values of a type; few distinct ones where asked."""
    if dtype == "bool":
        return rng.random(shape) < 0.4
    if distinct:
        return rng.integers(0, distinct, shape).astype(dtype)
    if dtype in ("float32", "float64"):
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def same(got, want):
    got = got.numpy()
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.shape)
    np.testing.assert_array_equal(got, want)


# ---- scans


@cover("n", SIZES, "dtype", ["int32", "int64", "uint8", "float32", "float64"])
def test_running_sums(n, dtype):
    x = draw(np.random.default_rng(n), dtype, n, distinct=7)
    got = weft.cumulative_sum(device(x)).numpy()
    want = np.cumsum(x)
    np.testing.assert_allclose(got, want.astype(got.dtype), rtol=1e-6)


@pytest.mark.parametrize(
    "shape",
    [
        (3, 5000),
        (5000, 3),
        (7, 300, 5),
        (300, 1, 2),
        (2, 70_001),
        (70_001, 2),
        (1000, 9),
        (2, 0, 3),
    ],
)
def test_running_sums_along_every_axis(shape):
    x = np.random.default_rng(1).integers(-9, 9, shape).astype("int64")
    for axis in range(-len(shape), len(shape)):
        same(weft.cumulative_sum(device(x), axis=axis), np.cumsum(x, axis=axis))
    same(weft.cumulative_sum(turned(device(x)[::-1]), axis=0), np.cumsum(x[::-1].T, axis=0))


def test_running_products_and_dtypes():
    x = np.random.default_rng(2).uniform(0.999, 1.001, 10_007).astype("float32")
    got = weft.cumulative_prod(device(x)).numpy()
    np.testing.assert_allclose(got, np.cumprod(x.astype("float64")), rtol=1e-4)
    b = x > 1
    same(weft.cumulative_sum(device(b), dtype=weft.int32), np.cumsum(b, dtype="int32"))
    h = device(x).astype("float16")
    assert weft.cumulative_sum(h).dtype == weft.float16


@pytest.mark.parametrize("where", ["cpu", GRID])
@pytest.mark.parametrize("shape, axis", [((3_000_000,), 0), ((300_000, 2), 0)])
def test_long_sums_of_floats_stay_near_the_sum(where, shape, axis):
    x = weft.full(shape, 0.1, dtype=weft.float32, device=where)
    last = weft.cumulative_sum(x, axis=axis)[-1]
    np.testing.assert_allclose(
        last.numpy(), shape[0] * np.float32(0.1).astype("float64"), rtol=1e-5
    )


def test_what_is_not_finite_stays_in_its_place():
    x = np.ones(10_000, "float32")
    x[6000], x[7000] = np.inf, np.nan
    got = weft.cumulative_sum(device(x)).numpy()
    np.testing.assert_array_equal(got, np.cumsum(x))


# ---- selection


@cover("n", SIZES, "dtype", ["bool", "int8", "float32", "int64"])
def test_masks_and_positions(n, dtype):
    rng = np.random.default_rng(n)
    x, mask = draw(rng, dtype, n), rng.random(n) < 0.3
    same(device(x)[device(mask)], x[mask])
    same(weft.nonzero(device(mask))[0], np.nonzero(mask)[0])
    for full in (np.zeros(n, bool), np.ones(n, bool)):
        same(device(x)[device(full)], x[full])


@pytest.mark.parametrize("shape", [(70, 300), (5, 0, 3), (3, 17, 129), (1, 1)])
def test_masks_of_views_and_of_fewer_axes(shape):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape).astype("float32")
    mask = rng.random(shape) < 0.5
    dx, dm = device(x), device(mask)
    same(dx[dm], x[mask])
    same(turned(dx)[turned(dm)], x.T[mask.T])
    same(dx[::-1][dm[::-1]], x[::-1][mask[::-1]])
    for got, want in zip(weft.nonzero(dm), np.nonzero(mask)):
        same(got, want)
    rows = rng.random(shape[0]) < 0.5
    same(dx[device(rows)], x[rows])
    dx[dm] = 7.0
    x[mask] = 7.0
    same(dx, x)
    new = rng.standard_normal(x[rows].shape).astype("float32")
    dx[device(rows)] = device(new)
    x[rows] = new
    same(dx, x)
    vals = rng.standard_normal(x[mask].shape).astype("float32")
    dx[dm] = device(vals)
    x[mask] = vals
    same(dx, x)


# ---- sorting


@pytest.mark.parametrize(
    "dtype, n",
    [(dtype, 20_003) for dtype in ("bool", *INTS, *FLOATS)]
    + [(dtype, n) for dtype in ("int16", "float32", "int64") for n in SIZES],
)
def test_sorting(n, dtype):
    rng = np.random.default_rng(n)
    for x in (draw(rng, dtype, n), draw(rng, dtype, n, distinct=2 if dtype == "bool" else 5)):
        same(weft.sort(device(x)), np.sort(x))
        same(weft.argsort(device(x)), np.argsort(x, kind="stable"))
    if dtype != "bool":
        flipped = n - 1 - np.argsort(x[::-1], kind="stable")[::-1]
        same(weft.argsort(device(x), descending=True), flipped)
        same(weft.sort(device(x), descending=True), np.sort(x)[::-1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [300, 9000])
def test_zeros_and_nan_keep_their_bits(dtype, n):
    rng = np.random.default_rng(5)
    x = rng.choice(np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, -1], dtype), n)
    for descending in (False, True):
        got = weft.argsort(device(x), descending=descending).numpy()
        key = np.where(np.isnan(x), np.inf, -x if descending else x)
        want = np.lexsort((np.arange(n), key + 0.0, np.isnan(x)))
        np.testing.assert_array_equal(got, want)
        word = f"uint{8 * x.itemsize}"
        np.testing.assert_array_equal(
            weft.sort(device(x), descending=descending).numpy().view(word), x[want].view(word)
        )


@pytest.mark.parametrize(
    "shape", [(3, 5000), (200, 70), (50, 3, 9), (5, 1), (0, 4), (4, 0), (2, 4097)]
)
def test_sorting_along_every_axis(shape):
    x = np.random.default_rng(4).integers(-50, 50, shape).astype("int32")
    for axis in range(-len(shape), len(shape)):
        same(weft.sort(device(x), axis=axis), np.sort(x, axis=axis))
        same(weft.argsort(device(x), axis=axis), np.argsort(x, axis=axis, kind="stable"))
    same(weft.sort(turned(device(x)), axis=0), np.sort(x.T, axis=0))


def test_bfloat16_sorts_as_float32():
    x = weft.asarray(np.random.default_rng(6).standard_normal(5000).astype("float32")).astype(
        "bfloat16"
    )
    got = weft.sort(x.to(GRID)).astype("float32").numpy()
    np.testing.assert_array_equal(got, np.sort(x.astype("float32").numpy()))


@pytest.mark.parametrize("n", [1, 31, 2047, 2048, 4096, 10_007])
@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_arrays(n, side):
    rng = np.random.default_rng(n)
    for dtype in ("float32", "int64", "uint8"):
        for distinct in (20, 200):
            x, v = (draw(rng, dtype, s, distinct=distinct + k) for k, s in ((0, n), (2, (75, 33))))
            x.sort()
            got = weft.searchsorted(device(x), device(v), side=side)
            same(got, np.searchsorted(x, v, side=side))
    x = np.sort(np.array([np.nan, 1, 0, -0.0, np.inf], "float32"))
    same(weft.searchsorted(device(x), device(x), side=side), np.searchsorted(x, x, side=side))
    empty = np.zeros(0, "float32")
    same(
        weft.searchsorted(device(empty), device(x), side=side), np.searchsorted(empty, x, side=side)
    )


@pytest.mark.parametrize("dtype", ["float64", "float16", "int16", "uint64"])
@pytest.mark.parametrize("count", [1, 2049, 70_001, 131_073])
def test_more_places_than_blocks_take_at_once(count, dtype):
    rng = np.random.default_rng(count)
    x, v = (draw(rng, "float64" if "float" in dtype else dtype, s).astype(dtype) for s in (100_003, count))  # fmt: skip
    x.sort()
    for side in ("left", "right"):
        same(weft.searchsorted(device(x), device(v), side=side), np.searchsorted(x, v, side=side))


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.parametrize("n", [9000, 50_001])
def test_sorting_numbers_whose_digits_are_nearly_all_equal(n, dtype):
    """One number, few, and numbers beside each other: every counter of a digit but some is empty."""
    rng = np.random.default_rng(n)
    for low, high in ((7, 8), (1, 4), (-1, 2), (1000, 1300)):
        x = rng.integers(low, high, n).astype(dtype)
        same(weft.sort(device(x)), np.sort(x))
        same(weft.argsort(device(x)), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("n", [1, 257, 50_001])
def test_distinct_elements(n):
    x = np.random.default_rng(n).integers(0, n // 3 + 1, n)
    got = weft.unique_all(device(x))
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for g, w in zip(got, want):
        same(g, w.astype("int64"))


def test_largest_elements():
    x = np.random.default_rng(8).standard_normal((37, 1000)).astype("float32")
    got = weft.topk(device(x), 9)
    order = np.argsort(-x, axis=1, kind="stable")[:, :9]
    same(got.indices, order)
    same(got.values, np.take_along_axis(x, order, 1))


# ---- gather and scatter


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "int64"])
def test_gathering(dtype):
    rng = np.random.default_rng(9)
    x = draw(rng, "float32", (40, 6, 10)).astype(dtype)
    i = rng.integers(-40, 40, (13, 5))
    j = rng.integers(-6, 6, (13, 1))
    dx = device(x)
    for t in ("int32", "int64", "int8"):
        same(dx[device(i.astype(t))], x[i])
    same(dx[device(i), device(j)], x[i, j])
    same(dx[device(i), device(j), 3], x[i, j, 3])
    same(dx[:, device(j)], x[:, j])
    same(turned(dx)[device(j[:, 0]), ...], x.T[j[:, 0]])
    same(dx[::2, ::-1, 1::3][device(i % 20)], x[::2, ::-1, 1::3][i % 20])
    same(weft.take(dx, device(i.reshape(-1) % 6), axis=1), np.take(x, i.reshape(-1) % 6, axis=1))
    none = np.zeros(0, "int64")
    same(dx[device(none)], x[none])


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    "dtype, deterministic",
    [(t, False) for t in ("int8", "int64", "uint32", "float16", "float32", "float64")]
    + [
        (t, True) for t in ("int8", "float16", "float32")
    ],  # one way for all types: few of each size
)
def test_scattering(accumulate, deterministic, dtype):
    rng = np.random.default_rng(10)
    weft.use_deterministic(deterministic)
    try:
        for shape, count in (
            ((50, 7), 4000),
            ((50,), 300),
            ((3, 5, 11), 40),
            ((9, 4), 0),
            ((5, 1), 1),
        ):
            x = rng.integers(0, 3, shape).astype(dtype)
            i = rng.integers(-shape[0], shape[0], count)
            v = (
                rng.integers(0, 3, (count, *shape[1:])).astype(dtype)
                if dtype != "int8"
                else rng.integers(-1, 2, (count, *shape[1:])).astype(dtype)
            )
            want = x.copy()
            if accumulate:
                np.add.at(want, i, v)
            else:
                for k in range(count):
                    want[i[k]] = v[k]
            same(weft.scatter(device(x), device(i), device(v), accumulate=accumulate), want)
        if not accumulate:
            x = np.zeros((6, 8), dtype)
            a, b, v = rng.integers(0, 6, 100), rng.integers(0, 8, 100), np.arange(100).astype(dtype)
            view = device(x)[::-1, ::2]
            view[device(a), device(b % 4)] = device(v)
            want = x[::-1, ::2]
            for k in range(100):
                want[a[k], b[k] % 4] = v[k]
            same(view, want)
    finally:
        weft.use_deterministic(False)


def test_positions_outside_raise_and_write_nothing():
    x = np.arange(20, dtype="float32").reshape(10, 2)
    dx = device(x)
    for bad in (10, -11, 2**40):
        i = np.array([1, bad, 2])
        for attempt in (
            lambda: dx[device(i)].numpy(),
            lambda: dx.__setitem__(device(i), 5.0),
            lambda: weft.take(dx, device(i), axis=0).numpy(),
            lambda: weft.scatter(
                dx, device(i), device(np.ones((3, 2), "float32")), accumulate=True
            ),
        ):
            with pytest.raises(IndexError, match=f"index {bad} is outside axis 0") as e:
                attempt()
            assert e.value.code == "array.index.range"
    same(dx, x)
    same(dx[device(np.array([1]))], x[[1]])  # the flag is clean again
    with pytest.raises(IndexError, match="outside axis 0"):
        device(np.zeros((0, 3)))[device(np.array([0]))]


@pytest.mark.parametrize("wait", ["copy", "synchronize", "element", "other"])
def test_reading_outside_is_told_when_the_host_waits(wait):
    dx, other = device(np.arange(20.0)), device(np.ones(3))
    made = dx[device(np.array([3, 20]))]  # the host does not wait
    also = dx[device(np.array([1, 2]))] + made
    with pytest.raises(IndexError, match="index 20 is outside axis 0 of float64"):
        {
            "copy": also.numpy,
            "synchronize": weft.device(GRID).synchronize,
            "element": lambda: float(made[0]),
            "other": other.numpy,
        }[wait]()
    assert float(made[0]) == 3.0 and float(made[1]) == 0.0  # told once
    weft.device(GRID).synchronize()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("case", ["random", "ties", "nan", "equal", "int32", "uint8"])
def test_the_largest_of_a_long_row(case, largest):
    rng, n = np.random.default_rng(5), 70_001
    x = {
        "random": lambda: rng.standard_normal(n).astype("float32"),
        "ties": lambda: rng.integers(0, 9, n).astype("float32"),
        "nan": lambda: np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n)),
        "equal": lambda: np.ones(n, "float32"),
        "int32": lambda: rng.integers(-(2**31), 2**31 - 1, n, dtype="int32"),
        "uint8": lambda: rng.integers(0, 255, n).astype("uint8"),
    }[case]()
    host = weft.argsort(weft.asarray(x), descending=largest).numpy()
    for k in (1, 5, 300):
        values, places = weft.topk(device(x), k, largest=largest)
        np.testing.assert_array_equal(places.numpy(), host[:k])
        np.testing.assert_array_equal(values.numpy(), x[host[:k]])
    row = device(x.reshape(1, n))
    np.testing.assert_array_equal(weft.topk(row, 2, largest=largest)[1].numpy(), [host[:2]])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8", "int64"])
@pytest.mark.parametrize("shape, axis", [((2, 3, 1500), -1), ((5000, 2), 0), ((1, 20_000), 1)])
def test_the_first_of_rows(shape, axis, dtype, largest):
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape) * 100 if "float" in dtype else rng.integers(0, 100, shape)
    if "float" in dtype:
        x[rng.random(shape) < 0.1] = np.nan
    host = weft.asarray(x.astype("float32" if "float" in dtype else "int64")).astype(dtype)
    order = weft.argsort(host, axis=axis, descending=largest).numpy()
    for k in (1, 7, 128, 129):
        want = np.take(order, range(k), axis=axis)
        got = weft.topk(device(host), k, axis=axis, largest=largest)
        np.testing.assert_array_equal(got.indices.numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64"])
@pytest.mark.parametrize("n", [1, 3, 17, 129, 2048])
@pytest.mark.parametrize("descending", [False, True])
def test_short_rows(n, dtype, descending):
    rng = np.random.default_rng(n)
    x = rng.integers(-9, 9, (5, n)) if dtype != "uint64" else rng.integers(0, 9, (5, n))
    if "float" in dtype:
        x = x.astype("float32")
        x[x == 3], x[(x == 0) & (rng.random(x.shape) < 0.5)] = np.nan, -0.0
    host = weft.asarray(x).astype(dtype)
    for sort in (weft.sort, weft.argsort):
        a, b = (sort(y, descending=descending).to("cpu") for y in (host, device(host)))
        if dtype == "bfloat16" and sort is weft.sort:
            a, b = a.astype("float32"), b.astype("float32")
        a, b = a.numpy(), b.numpy()
        np.testing.assert_array_equal(a, b)
        some = ~np.isnan(a) if a.dtype.kind == "f" else slice(0)
        np.testing.assert_array_equal(np.signbit(a[some]), np.signbit(b[some]))


@pytest.mark.parametrize("labels", [[0, 4, 2], [0, -1, 2]])
def test_labels_outside_the_classes_are_reported_when_the_host_waits(labels):
    logits = weft.Tensor(weft.ones((3, 4), device=GRID), requires_grad=True)
    loss = weft.nn.functional.cross_entropy(logits, weft.asarray(labels, device=GRID))
    loss.backward()
    with pytest.raises(weft.IndexError, match=r"outside \[0, 4\)") as e:
        loss.item()
    assert e.value.code == "nn.cross_entropy.label"
    right = weft.nn.functional.cross_entropy(logits, weft.asarray([0, 3, 2], device=GRID))
    assert abs(right.item() - np.log(4)) < 1e-6


def test_the_gradient_of_a_gather_adds_up_what_repeats():
    x = np.random.default_rng(3).standard_normal((7, 5)).astype("float32")
    at = np.array([6, -1, 0, 6, 3])
    t = weft.Tensor(weft.asarray(x, device=GRID), requires_grad=True)
    weft.take(t, weft.asarray(at, device=GRID), axis=0).sum().backward()
    want = np.zeros_like(x)
    np.add.at(want, at, 1.0)
    np.testing.assert_array_equal(t.grad.numpy(), want)
    wrong = weft.take(t, weft.asarray(at + 2, device=GRID), axis=0).sum()
    wrong.backward()  # element 0 stands for what lies outside until the host waits
    with pytest.raises(weft.IndexError, match="outside axis 0"):
        wrong.item()


def test_many_pending_checks_are_looked_at_in_between():
    dx, i = device(np.arange(5.0)), device(np.array([7]))
    with pytest.raises(IndexError, match="index 7 is outside axis 0"):
        for _ in range(300):
            dx[i]
        raise AssertionError("300 reads outside went unnoticed")
    try:
        weft.device(GRID).synchronize()
    except IndexError:
        pass
    np.testing.assert_array_equal(dx[device(np.array([4]))].numpy(), [4.0])


def test_equal_runs_give_equal_sums_where_asked():
    rng = np.random.default_rng(11)
    i, v = (
        device(rng.integers(0, 4, 20_000)),
        device(rng.standard_normal((20_000, 3)).astype("float32")),
    )
    x = weft.zeros((4, 3), device=GRID)
    weft.use_deterministic(True)
    try:
        first = weft.scatter(x, i, v, accumulate=True).numpy()
        for _ in range(3):
            np.testing.assert_array_equal(weft.scatter(x, i, v, accumulate=True).numpy(), first)
    finally:
        weft.use_deterministic(False)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (2,), (0, 2)])
@pytest.mark.parametrize("dtype", ["float32", "int16", "float64"])
def test_turned_and_reversed_copies(axes, dtype):
    rng = np.random.default_rng(2)
    x = rng.integers(-99, 99, (3, 170, 190)).astype(dtype)
    turned = weft.flip(weft.permute_dims(device(x), (0, 2, 1)), axis=axes)
    same(turned.copy(), np.flip(x.transpose(0, 2, 1), axes))


@pytest.mark.parametrize("bins", [1, 200, 256, 257, 1000, 1024, 2047, 2048, 4096, 5000])
def test_counts_of_every_bin(bins, rng):
    """The first and the last one, however many fit into a block's memory."""
    x = np.concatenate([rng.integers(0, bins, 3000), [0, bins - 1, bins - 1]])
    found = weft.bincount(weft.asarray(x, device="opencl:0"), minlength=bins)
    np.testing.assert_array_equal(found.numpy(), np.bincount(x, minlength=bins))


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_running_extremes_of_nothing_but_the_end_of_a_type(dtype, device, rng):
    ends = (-np.inf, np.inf) if np.dtype(dtype).kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)  # fmt: skip
    for n in (3, 700, 5000):
        for f, name, end in ((np.maximum, "cummax", ends[0]), (np.minimum, "cummin", ends[1])):
            x = np.full((2, n), end, dtype)
            x[1, n // 2 :] = rng.integers(0, 9, n - n // 2)
            found = getattr(weft, name)(weft.asarray(x, device=device), 1)
            np.testing.assert_array_equal(found[0].numpy(), f.accumulate(x, axis=1), err_msg=name)
