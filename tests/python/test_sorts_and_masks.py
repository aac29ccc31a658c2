# SPDX-License-Identifier: Apache-2.0
"""Sorting, masks, positions, copies and reductions at the sizes where their code changes, beside NumPy, bit for bit."""

import numpy as np
import pytest

import weft

SEED = 20261122
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
# Below and above: comparisons and digits, one block of a mask, one chunk, what threads share.
SIZES = (1, 2, 63, 127, 129, 300, 4097, 140_001)


def _rng(*more):
    print("seed", SEED, *more)
    return np.random.default_rng(SEED)


def _numbers(rng, dtype, *shape):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        x = rng.standard_normal(shape).astype(dtype)
        x[rng.random(shape) < 0.02] = np.nan
        x[rng.random(shape) < 0.02] = -0.0
        x[rng.random(shape) < 0.02] = 0.0
        x[rng.random(shape) < 0.01] = np.inf
        x[rng.random(shape) < 0.01] = -np.inf
        return x
    kind = np.iinfo(dtype)
    few = rng.random() < 0.5  # many equal ones
    low, high = (max(kind.min, -50), 50) if few else (kind.min, kind.max)
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


def _bits(x):
    x = np.ascontiguousarray(x.numpy() if hasattr(x, "numpy") else x)
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "f" else x


def _equal(got, want):
    got, want = _bits(got), _bits(np.asarray(want))
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = weft.get_threads()
    weft.set_threads(request.param)
    yield request.param
    weft.set_threads(before)


def _order(x, descending):
    """Positions of a stable sort, NaN last in both directions."""
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    real, last = np.flatnonzero(~nan), np.flatnonzero(nan)
    if not descending:
        return np.concatenate([real[np.argsort(x[real], kind="stable")], last])
    back = real[::-1]
    return np.concatenate([back[np.argsort(x[back], kind="stable")][::-1], last])


@pytest.mark.parametrize("dtype", TYPES)
def test_sorting_is_stable_and_keeps_every_bit(dtype, threads):
    rng = _rng(dtype)
    for n in SIZES:
        x = _numbers(rng, dtype, n)
        for descending in (False, True):
            order = _order(x, descending)
            w = weft.asarray(x)
            _equal(weft.argsort(w, descending=descending), order.astype("int64"))
            _equal(weft.sort(w, descending=descending), x[order])
            _equal(w, x)  # untouched


@pytest.mark.parametrize("dtype", TYPES)
def test_sorting_short_rows(dtype):
    """Sizes about those from which vector instructions sort, with and without zeros, infinities and NaN."""
    rng = _rng("short", dtype)
    for n in (3, 19, 20, 21, 64, 130, 257, 5000):
        for special in ("all", "infinities", "none"):
            x = _numbers(rng, dtype, 9, n)
            if special != "all" and x.dtype.kind == "f":
                x = np.where(np.isfinite(x) & (x != 0), x, x.dtype.type(1.5))
            if special == "infinities" and x.dtype.kind == "f":
                x[0, :2], x[1, 1], x[2, :] = np.inf, -np.inf, np.inf
            for descending in (False, True):
                order = np.stack([_order(row, descending) for row in x])
                w = weft.asarray(x)
                _equal(weft.argsort(w, descending=descending), order.astype("int64"))
                _equal(weft.sort(w, descending=descending), np.take_along_axis(x, order, 1))
                if descending and n > 3 and x.dtype.kind != "b":
                    # The first of the order that has NaN last.
                    _equal(weft.topk(w, 3).indices, order[:, :3].astype("int64"))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_sorting_lines(axis):
    rng = _rng(axis)
    for shape in ((3, 200, 5), (150, 3, 301)):
        x = rng.standard_normal(shape).astype("float32")
        _equal(weft.sort(weft.asarray(x), axis=axis), np.sort(x, axis))
        _equal(
            weft.argsort(weft.asarray(x), axis=axis),
            np.argsort(x, axis, kind="stable").astype("int64"),
        )


@pytest.mark.parametrize("dtype", TYPES)
def test_masks(dtype, threads):
    rng = _rng(dtype)
    for shape in ((1,), (4097,), (140_001,), (70, 61), (3, 5, 7)):
        x = _numbers(rng, dtype, *shape)
        for share in (0.0, 0.5, 1.0):
            k = rng.random(shape) < share
            w, m = weft.asarray(x), weft.asarray(k)
            _equal(w[m], x[k])
            for got, want in zip(weft.nonzero(m), np.nonzero(k)):
                _equal(got, want.astype("int64"))
            assert int(weft.count_nonzero(m)) == np.count_nonzero(k)
            one = np.ones((), dtype)
            y, v = x.copy(), w.copy()
            y[k], v[m] = one, weft.asarray(one)
            _equal(v, y)
            if len(shape) > 1:  # a mask of the leading axes
                lead = k.any(-1)
                _equal(w[weft.asarray(lead)], x[lead])
                y[lead], v[weft.asarray(lead)] = 0, 0
                _equal(v, y)
    view, plain = weft.asarray(x)[:, ::-1, 1:], x[:, ::-1, 1:]
    _equal(view[weft.asarray(k[:, :, 1:])], plain[k[:, :, 1:]])
    held = x.copy()
    target = weft.asarray(held, copy=True)
    target[:, ::2][weft.asarray(k[:, ::2])] = 1
    held[:, ::2][k[:, ::2]] = 1
    _equal(target, held)


def test_a_mask_over_itself_and_truth_that_is_not_one():
    k = np.arange(100) % 3 == 0
    m = weft.asarray(k, copy=True)
    m[m] = False
    assert not m.numpy().any()
    odd = weft.from_dlpack(np.full(100, 2, "uint8").view("bool").view("uint8")).astype("bool")
    assert int(weft.count_nonzero(odd)) == 100


def test_masks_that_do_not_fit_are_refused():
    x, m = weft.zeros((4, 5)), weft.ones((4, 4), dtype=weft.bool)
    for act in (lambda: x[m], lambda: x.__setitem__(m, 0), lambda: x.__setitem__(m, weft.ones(16))):
        with pytest.raises(weft.Error) as e:
            act()
        assert e.value.code == "array.index.mask" and "(4, 4)" in str(e.value)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "complex128"])
def test_positions(dtype, threads):
    rng = _rng(dtype)
    x = (rng.standard_normal((41, 30, 7)) * 9).astype(dtype)
    w = weft.asarray(x)
    for axis in range(3):
        n = x.shape[axis]
        i = rng.integers(-n, n, (11, 3))
        _equal_plain(weft.take(w, weft.asarray(i), axis=axis), np.take(x, i, axis))
        _equal_plain(
            weft.take(w[::-1], weft.asarray(i[0]), axis=axis), np.take(x[::-1], i[0], axis)
        )
        shape = list(x.shape)
        shape[axis] = 2 * n
        at = rng.integers(0, n, shape)
        _equal_plain(
            weft.take_along_axis(w, weft.asarray(at), axis=axis), np.take_along_axis(x, at, axis)
        )
        with pytest.raises(weft.Error) as e:
            at[0, 0, 0] = n
            weft.take_along_axis(w, weft.asarray(at), axis=axis)
        assert e.value.code == "array.index.range" and f"index {n} is outside" in str(e.value)
        with pytest.raises(weft.Error) as e:
            weft.take(w, weft.asarray([0, -n - 1]), axis=axis)
        assert e.value.code == "array.index.range" and f"legal: {-n} to {n - 1}" in str(e.value)
    flat = x.reshape(-1)
    k = rng.integers(-flat.size, flat.size, 50_000)
    _equal_plain(weft.asarray(flat)[weft.asarray(k)], flat[k])
    i, j = rng.integers(-41, 41, (5, 1)), rng.integers(-30, 30, 6).astype("int32")
    _equal_plain(w[weft.asarray(i), weft.asarray(j)], x[i, j])


def _equal_plain(got, want):
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


def test_assignment_at_positions_keeps_the_last_and_checks_first():
    rng = _rng()
    x = np.zeros(1000, "float32")
    k, v = rng.integers(-1000, 1000, 5000), rng.random(5000, dtype="float32")
    w = weft.asarray(x, copy=True)
    w[weft.asarray(k)] = weft.asarray(v)
    for i, value in zip(k, v):
        x[i] = value
    _equal(w, x)
    before = w.copy()
    with pytest.raises(weft.Error):
        w[weft.asarray([1, 2, 1000])] = 7.0
    _equal(w, before)
    line = weft.arange(10)
    line[weft.asarray([1, 2, 3])] = line[:3]  # reads what it writes
    assert line.tolist() == [0, 0, 1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("dtype", [t for t in TYPES if t != "bool"] + ["bool"])
def test_positions_of_extremes(dtype, threads):
    rng = _rng(dtype)
    for n in (1, 65, 4096, 4097, 300_001):
        x = _numbers(rng, dtype, n)
        if x.dtype.kind == "f":
            for keep_nan in (True, False):
                y = x if keep_nan else np.nan_to_num(x)
                assert int(weft.argmax(weft.asarray(y))) == np.argmax(y)
                assert int(weft.argmin(weft.asarray(y))) == np.argmin(y)
        else:
            assert int(weft.argmax(weft.asarray(x))) == np.argmax(x)
            assert int(weft.argmin(weft.asarray(x))) == np.argmin(x)
    for shape in ((9, 5, 7), (70, 1030), (3, 40, 33)):
        x = _numbers(rng, dtype, *shape)
        for axis in range(len(shape)):
            _equal(weft.argmax(weft.asarray(x), axis=axis), np.argmax(x, axis).astype("int64"))
            _equal(weft.argmin(weft.asarray(x), axis=axis), np.argmin(x, axis).astype("int64"))
            back = weft.permute_dims(weft.asarray(x), tuple(range(len(shape)))[::-1])
            _equal(weft.argmax(back, axis=axis), np.argmax(x.T, axis).astype("int64"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_a_nan_anywhere_is_the_extreme(dtype, name, threads):
    rng = _rng(dtype, name)
    f, g = getattr(weft, name), getattr(np, name)
    for n in (1, 31, 64, 130, 1000, 4096, 5000):
        x = rng.standard_normal(n).astype(dtype)
        assert float(f(weft.asarray(x))) == g(x)
        for at in {i for i in (0, 1, n // 3, n // 2, n - 2, n - 1) if 0 <= i < n}:
            y = x.copy()
            y[at] = np.nan
            assert np.isnan(float(f(weft.asarray(y)))), (n, at)
            y[at] = np.inf if name == "max" else -np.inf
            assert float(f(weft.asarray(y))) == y[at]
    m = rng.standard_normal((23, 70)).astype(dtype)
    for r in range(23):
        y = m.copy()
        y[r, r], y[r, r + 1] = np.nan, -np.inf
        for axis in (0, 1):
            np.testing.assert_array_equal(f(weft.asarray(y), axis=axis).numpy(), g(y, axis))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_reductions_are_the_same_on_any_number_of_threads(dtype):
    rng = _rng(dtype)
    for shape in ((700_001,), (3000, 300), (300, 3001), (60, 50, 200)):
        x = (rng.standard_normal(shape) * 50).astype(dtype)
        w = weft.asarray(x)
        for name in ("sum", "max", "prod"):
            for axis in (None, *range(len(shape))):
                got = []
                for n in (1, 2):
                    weft.set_threads(n)
                    got.append(getattr(weft, name)(w, axis=axis).numpy())
                _equal(got[0], got[1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "float16", "complex64"])
def test_running_sums_along_every_axis(dtype, threads):
    rng = _rng(dtype)
    for shape in ((5000,), (40, 50), (7, 300, 9), (2, 3, 5000)):
        x = (rng.standard_normal(shape) * 5).astype("int8").astype(dtype)
        for axis in range(len(shape)):
            for w, y in ((weft.asarray(x), x), (weft.asarray(x)[::-1], x[::-1])):
                got = weft.cumulative_sum(w, axis=axis).numpy()
                want = np.cumsum(
                    y.astype("complex128" if dtype == "complex64" else "float64"), axis
                )
                np.testing.assert_allclose(got, want, rtol=2e-2 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_copies_between_layouts(dtype, threads):
    rng = _rng(dtype)
    x = (rng.standard_normal((70, 90, 11)) * 50).astype(dtype)
    views = [
        (slice(None, None, 2),),
        (slice(None, None, -1),),
        (slice(3, 60, 3), slice(None, None, -2)),
        (Ellipsis, slice(None, None, -1)),
        (Ellipsis, slice(1, None, 2)),
        (slice(None), 5),
        (slice(None), slice(None), 3),
        (4,),
        (slice(0, 0),),
    ]
    for key in views:
        _equal_plain(weft.asarray(x)[key].copy(), x[key])
        w, y = weft.asarray(x, copy=True), x.copy()
        v = (rng.standard_normal(y[key].shape) * 50).astype(dtype)
        w[key], y[key] = weft.asarray(v), v
        _equal_plain(w, y)
        w[key], y[key] = weft.asarray(v)[..., :1], v[..., :1]
        _equal_plain(w, y)
    long = (rng.standard_normal(200_003) * 50).astype(dtype)
    for key in (slice(None, None, 2), slice(None, None, -1), slice(1, None, 3)):
        _equal_plain(weft.asarray(long)[key].copy(), long[key])
        w, y = weft.asarray(long, copy=True), long.copy()
        n = y[key].size
        w[key], y[key] = weft.asarray(long)[:n], long[:n]
        _equal_plain(w, y)


@pytest.mark.parametrize("dtype", [t for t in TYPES if t != "bool"])
def test_evenly_spaced(dtype):
    for args in ((7,), (3, 100, 7), (100, 3, -9), (0, 70_000, 1)):
        if np.dtype(dtype).kind in "iu" and max(args) > np.iinfo(dtype).max:
            with pytest.raises(weft.Error) as e:
                weft.arange(*args, dtype=dtype)
            assert e.value.code == "array.scalar.range" and "does not fit" in str(e.value)
            continue
        if dtype == "float16" and max(args) > 2048:
            continue
        _equal(weft.arange(*args, dtype=dtype), np.arange(*args).astype(dtype))


def test_rolling_by_nothing_is_a_copy_of_an_array_and_the_tensor_itself():
    x = weft.arange(5)
    y = weft.roll(x, 0)
    y[0] = 7
    assert x.tolist() == [0, 1, 2, 3, 4] and weft.roll(x, 7).tolist() == [3, 4, 0, 1, 2]
    t = weft.Tensor([1.0, 2.0, 3.0])
    assert weft.roll(t, 3).numpy().tolist() == [1.0, 2.0, 3.0]
    assert int(weft.count_nonzero(t)) == 3


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_reduced_four_at_a_time(dtype):
    rng = _rng(dtype)
    for rows, columns in (
        (4, 1),
        (5, 63),
        (7, 64),
        (6, 65),
        (9, 1000),
        (5, 4097),
        (3, 16_500),
        (1, 70_001),
    ):
        x = _numbers(rng, dtype, rows, columns)
        w = weft.asarray(x)
        at = rng.integers(columns)
        for value in (x, np.roll(x, at, 1)):  # what is rare at every place of a vector
            w = weft.asarray(value)
            for name in ("max", "min"):
                _equal(getattr(weft, name)(w, axis=1), getattr(np, name)(value, 1))
                _equal(getattr(weft, name)(w.T, axis=0), getattr(np, name)(value, 1))
                columnwise = weft.asarray(np.ascontiguousarray(value.T))
                _equal(getattr(weft, name)(columnwise, axis=0), getattr(np, name)(value, 1))
            _equal(weft.argmax(w, axis=1), np.argmax(value, 1))
            _equal(weft.argmin(w, axis=1), np.argmin(value, 1))
        if dtype.startswith("float"):
            x = rng.standard_normal((rows, columns)).astype(dtype)
            wide = x.astype("float64")
            bound = (
                2 * np.abs(wide).sum(1) * np.finfo(np.float32 if dtype == "float16" else dtype).eps
            )
            got = weft.sum(
                weft.asarray(x), axis=1, dtype=weft.float64 if dtype == "float64" else weft.float32
            )
            assert np.all(np.abs(got.numpy() - wide.sum(1)) <= bound * 8)
        else:
            _equal(weft.sum(weft.asarray(x), axis=1), x.sum(1))
        same = weft.asarray(
            np.repeat(x[:1], rows, 0)
        )  # equal rows have equal sums, wherever they stand
        sums = _bits(weft.sum(same, axis=1))
        assert np.all(sums == sums[0])


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
def test_assignment_by_masks_of_every_layout(dtype):
    rng = _rng("marked", dtype)
    wide = "complex128" if dtype.startswith("complex") else "float64"
    for shape in ((0,), (1,), (1023,), (5000,), (70, 61), (3, 5, 700)):
        back = tuple(range(len(shape)))[::-1]
        for share in (0.0, 0.001, 0.5, 1.0):
            for view in (
                lambda a: a,
                lambda a: (
                    weft.permute_dims(a, back) if isinstance(a, weft.NDArray) else a.transpose()
                ),
                lambda a: a[::2],
                lambda a: a[::-1],
            ):
                x = weft.asarray(rng.standard_normal(shape) * 5).astype(dtype)
                want = x.astype(wide).numpy().copy()
                mask = rng.random(view(want).shape) < share
                turned = weft.permute_dims(weft.asarray(np.ascontiguousarray(mask.T)), back)
                for m in (weft.asarray(mask), turned):
                    view(x)[m] = 1
                    view(want)[mask] = 1
                    np.testing.assert_array_equal(x.astype(wide).numpy(), want)
    x = weft.asarray([True, False, True])
    x[x] = False
    assert x.tolist() == [False] * 3
