# SPDX-License-Identifier: Apache-2.0
"""Running extremes, common divisors, assignment and reading at positions on a grid, against NumPy; and how many kernels they take."""

import numpy as np
import pytest
from present import present

import weft
from weft import _core

SEED = 20261130
REALS = ("float16", "float32", "float64")
WHOLE = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")


@pytest.fixture(scope="module")
def grid():
    return present("opencl:0")


def launches(grid, work):
    work()
    return _core._record(_core.MemoryPool(grid), work)[0].launches


def drawn(rng, shape, dtype):
    """Few different values, so that equal ones meet; zeros of both signs, infinities and NaN among floats."""
    if np.dtype(dtype).kind != "f":
        info = np.iinfo(dtype)
        return rng.choice(np.array([info.min, info.max, 0, 1, 2, 3, 5, 7], dtype), shape)
    x = rng.integers(-5, 6, shape).astype(dtype)
    x[x == 5] = -0.0
    x[rng.random(shape) < 0.02] = np.inf
    x[rng.random(shape) < 0.01] = -np.inf
    x[rng.random(shape) < 0.003] = np.nan
    return x


def running(x, axis, largest):
    """Values and positions, one element after the other: the last of equals, NaN once it is met."""
    lines = np.moveaxis(x, axis, -1)
    at = np.zeros(lines.shape, np.int64)
    for line in np.ndindex(lines.shape[:-1]):
        best = 0
        for i, v in enumerate(lines[line]):
            held = lines[line][best]
            if v != v or (held == held and (v >= held if largest else v <= held)):
                best = i
            at[line][i] = best
    at = np.moveaxis(at, -1, axis)
    return np.take_along_axis(x, at, axis), at


@pytest.mark.parametrize("dtype", (*REALS, *WHOLE, "bool"))
@pytest.mark.parametrize(
    "shape,axis",
    [((1,), 0), ((1099,), 0), ((5, 37), 1), ((301, 5), 0), ((3, 200, 4), 1), ((2, 3, 7), 0)],
)
def test_running_extremes(grid, dtype, shape, axis):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    x = rng.random(shape) < 0.5 if dtype == "bool" else drawn(rng, shape, dtype)
    w = weft.asarray(x, device=grid)
    for f, largest in ((weft.cummax, True), (weft.cummin, False)):
        values, at = running(x, axis, largest)
        got = f(w, axis)
        assert str(got.indices.dtype) == "int64" and got.values.dtype == w.dtype
        np.testing.assert_array_equal(got.indices.numpy(), at)
        assert got.values.numpy().tobytes() == np.ascontiguousarray(values).tobytes()


@pytest.mark.parametrize("dtype", ("float32", "float64", "int64"))
def test_running_extremes_of_long_lines(grid, dtype):
    """Lines that several blocks share, along memory and across it, and the host's answer."""
    rng = np.random.default_rng(SEED)
    for shape, axis in (((70001,), 0), ((3, 20011), 1), ((9001, 3), 0)):
        x = (
            drawn(rng, shape, dtype)
            if dtype == "int64"
            else rng.standard_normal(shape).astype(dtype)
        )
        for f in (weft.cummax, weft.cummin):
            got, want = f(weft.asarray(x, device=grid), axis), f(weft.asarray(x), axis)
            np.testing.assert_array_equal(got.values.numpy(), want.values.numpy())
            np.testing.assert_array_equal(got.indices.numpy(), want.indices.numpy())


def test_running_extremes_of_views_and_gradients(grid):
    rng = np.random.default_rng(SEED)
    x = drawn(rng, (40, 31), "float32")
    w = weft.asarray(x, device=grid)
    values, at = running(x.T[::-2], 1, True)
    got = weft.cummax(w.T[::-2], 1)
    np.testing.assert_array_equal(got.indices.numpy(), at)
    np.testing.assert_array_equal(got.values.numpy(), values)
    clean = rng.integers(-4, 5, (6, 17)).astype("float32")
    t = weft.Tensor(weft.asarray(clean, device=grid), requires_grad=True)
    g = rng.standard_normal((6, 17)).astype("float32")
    (weft.cummax(t, 1).values * weft.asarray(g, device=grid)).sum().backward()
    want = np.zeros_like(clean)
    _, at = running(clean, 1, True)
    for row in range(6):
        np.add.at(want[row], at[row], g[row])
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", WHOLE)
def test_common_divisors_and_multiples(grid, dtype):
    rng = np.random.default_rng(SEED)
    info = np.iinfo(dtype)
    edge = np.array([info.min, info.max, 0, 0, 1, 2, info.max // 3, info.max - 1], dtype)
    x, y = (v.reshape(-1) for v in np.meshgrid(edge, edge))
    x = np.concatenate([x, rng.integers(info.min, info.max, 3001, dtype, endpoint=True)])
    y = np.concatenate([y, rng.integers(info.min, info.max, 3001, dtype, endpoint=True)])
    # Consecutive Fibonacci numbers take the most steps of all.
    a, b = 1, 2
    while a + b <= info.max:
        a, b = b, a + b
    x[-1], y[-1] = b, a
    wx, wy = weft.asarray(x, device=grid), weft.asarray(y, device=grid)
    np.testing.assert_array_equal(weft.gcd(wx, wy).numpy(), np.gcd(x, y))
    assert str(weft.gcd(wx, wy).dtype) == dtype
    few = (rng.integers(0, 12, (13, 1)).astype(dtype), rng.integers(0, 12, 9).astype(dtype))
    there = [weft.asarray(v, device=grid) for v in few]
    np.testing.assert_array_equal(weft.lcm(*there).numpy(), np.lcm(*few))
    np.testing.assert_array_equal(weft.gcd(*there).numpy(), np.gcd(*few))
    six = weft.asarray(np.array(6, dtype), device=grid)
    np.testing.assert_array_equal(weft.gcd(wx, six).numpy(), np.gcd(x, np.array(6, dtype)))
    narrow = np.dtype(dtype).itemsize < 4  # computed in 32 bits
    assert (
        launches(grid, lambda: weft.gcd(wx, wy))
        == launches(grid, lambda: weft.lcm(wx, wy))
        == (4 if narrow else 1)
    )


def test_multiples_wrap_as_numpy_has_them(grid):
    rng = np.random.default_rng(SEED)
    for dtype in ("int32", "int64", "uint64"):
        x, y = (rng.integers(1, np.iinfo(dtype).max, 999, dtype) for _ in range(2))
        got = weft.lcm(weft.asarray(x, device=grid), weft.asarray(y, device=grid)).numpy()
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(got, x // np.gcd(x, y) * y)


def assigned(grid, x, key, value):
    """x with the value at the key, there and in NumPy."""
    there = weft.asarray(x, device=grid, copy=True)
    move = lambda v: weft.asarray(v, device=grid) if isinstance(v, np.ndarray) else v  # noqa: E731
    there[tuple(map(move, key)) if isinstance(key, tuple) else move(key)] = move(value)
    want = x.copy()
    want[key] = value
    np.testing.assert_array_equal(there.numpy(), want)


@pytest.mark.parametrize("dtype", ("int8", "float16", "float32", "float64", "complex64"))
def test_the_last_of_equal_positions_stands(grid, dtype):
    """Many tuples for each place, few, none; rows of odd and even width; positions for several axes, in the middle, turned."""
    rng = np.random.default_rng(SEED)
    new = lambda *shape: rng.integers(0, 99, shape).astype(dtype)  # noqa: E731
    at = lambda n, *shape: rng.integers(-n, n, shape)  # noqa: E731
    assigned(grid, new(1), at(1, 1000), new(1000))
    assigned(grid, new(1000), at(1000, 5000), new(5000))
    assigned(grid, new(1000), rng.permutation(1000), new(1000))
    assigned(grid, new(5000), at(5000, 40), new(40))
    for width in (1, 3, 8):
        assigned(grid, new(30, width), at(30, 100), new(100, width))
        assigned(grid, new(300, width), at(300, 20), new(20, width))
    assigned(grid, new(9, 7), (at(9, 200), at(7, 200)), new(200))
    assigned(grid, new(9, 7, 4), (at(9, 5, 8), at(7, 8)), new(5, 8, 4))
    assigned(grid, new(4, 9, 5), (slice(None), at(9, 30)), new(4, 30, 5))
    assigned(grid, new(9, 4, 5), (at(9, 30), slice(None), at(5, 30)), new(30, 4))
    x = new(12, 10)
    there = weft.asarray(x, device=grid, copy=True)
    i, v = at(5, 40), new(40, 12)
    there.T[::2][weft.asarray(i, device=grid)] = weft.asarray(v, device=grid)
    x.T[::2][i] = v
    np.testing.assert_array_equal(there.numpy(), x)


@pytest.mark.parametrize("dtype", ("uint8", "float32", "float64", "complex64"))
def test_one_value_for_all_positions(grid, dtype):
    rng = np.random.default_rng(SEED)
    new = lambda *shape: rng.integers(0, 99, shape).astype(dtype)  # noqa: E731
    at = lambda n, *shape: rng.integers(-n, n, shape)  # noqa: E731
    for width in (1, 3, 8):
        assigned(grid, new(33, width), at(33, 100), 7)
        assigned(grid, new(33, width), at(33, 100), new(width))
        assigned(grid, new(33, width), at(33, 100), new(1, width))
    assigned(grid, new(500), at(500, 3), np.array(5, dtype))
    assigned(grid, new(4, 9, 5), (slice(None), at(9, 30)), 3)
    assigned(grid, new(4, 9, 5), (slice(None), at(9, 30)), new(5))
    assigned(
        grid, new(4, 9, 5), (slice(None), at(9, 30)), new(4, 1, 1)
    )  # differs between the outer ones
    assigned(grid, new(4, 9, 5), (slice(None), at(9, 30)), np.broadcast_to(new(5), (4, 30, 5)))
    assigned(grid, new(9), at(9, 0), 1)


def test_assignments_at_positions_raise_before_they_write(grid):
    x = np.arange(12, dtype="float32").reshape(4, 3)
    for value in (0, np.zeros((2, 3), "float32"), np.zeros(3, "float32")):
        for bad in (4, -5):
            there = weft.asarray(x, device=grid, copy=True)
            v = weft.asarray(value, device=grid) if isinstance(value, np.ndarray) else value
            with pytest.raises(IndexError, match=f"index {bad} is outside axis 0"):
                there[weft.asarray(np.array([1, bad]), device=grid)] = v
            np.testing.assert_array_equal(there.numpy(), x)
    there = weft.asarray(x, device=grid, copy=True)
    five = weft.asarray(np.array([0, 1, 2, 3, 1]), device=grid)
    with pytest.raises(weft.Error):
        there[five] = weft.broadcast_to(weft.asarray(1.0, device=grid), (7, 3))
    np.testing.assert_array_equal(there.numpy(), x)


def test_assignments_at_positions_sort_nothing(grid):
    rng = np.random.default_rng(SEED)
    x = weft.zeros((1000,), device=grid)
    i, v = weft.asarray(rng.integers(0, 1000, 3000), device=grid), weft.ones((3000,), device=grid)

    def number():
        x[i] = 0

    def many():
        x[i] = v

    assert launches(grid, many) <= 3
    assert launches(grid, number) <= 4


@pytest.mark.parametrize("dtype", ("int8", "float16", "float32", "float64", "complex64"))
def test_columns_at_positions(grid, dtype):
    """Read where they are wanted: one kernel and no transpose."""
    rng = np.random.default_rng(SEED)
    x = rng.integers(0, 99, (7, 30, 5)).astype(dtype)
    w = weft.asarray(x, device=grid)
    i, j = rng.integers(-30, 30, (4, 6)), rng.integers(-5, 5, 6)
    wi, wj = weft.asarray(i, device=grid), weft.asarray(j, device=grid)
    for theirs, ours in (
        (x[:, i], w[:, wi]),
        (x[..., j], w[..., wj]),
        (x[:, i, j], w[:, wi, wj]),
        (x[2:, i, ::-1], w[2:, wi, ::-1]),
        (np.moveaxis(x, 0, 2)[:, j % 5], weft.moveaxis(w, 0, 2)[:, wj % 5]),
        (x[None, :, i], w[None, :, wi]),
    ):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    if not dtype.startswith("complex"):
        assert launches(grid, lambda: w[:, wi]) == 1 and launches(grid, lambda: w[..., wj]) == 1
    with pytest.raises(IndexError):
        w[:, weft.asarray(np.array([0, 30]), device=grid)].numpy()


@pytest.mark.parametrize("dtype", ("bool", "int16", "float32", "float64", "complex64"))
@pytest.mark.parametrize(
    "shape,axis",
    [((9,), 0), ((6, 8), 1), ((6, 8), 0), ((3, 5, 4), 1), ((3, 5, 4), 0), ((1, 5, 1), 1)],
)
def test_elements_along_an_axis(grid, dtype, shape, axis):
    rng = np.random.default_rng(SEED)
    x = rng.integers(0, 99, shape).astype(dtype)
    wide = tuple(11 if k == axis else n for k, n in enumerate(shape))
    i = rng.integers(-shape[axis], shape[axis], wide)
    w, at = weft.asarray(x, device=grid), weft.asarray(i, device=grid)
    np.testing.assert_array_equal(
        weft.take_along_axis(w, at, axis=axis).numpy(), np.take_along_axis(x, i, axis)
    )
    narrow = i.astype("int32")
    got = weft.take_along_axis(w, weft.asarray(narrow, device=grid), axis=axis).numpy()
    np.testing.assert_array_equal(got, np.take_along_axis(x, i, axis))
    turned = x[..., ::-1]
    got = weft.take_along_axis(w[..., ::-1], at, axis=axis).numpy()
    np.testing.assert_array_equal(got, np.take_along_axis(turned, i, axis))
    if not dtype.startswith("complex"):
        assert launches(grid, lambda: weft.take_along_axis(w, at, axis=axis)) == 1
    with pytest.raises(IndexError, match=f"is outside axis {axis}"):
        weft.take_along_axis(w, at + shape[axis], axis=axis).numpy()


@pytest.mark.parametrize("rows", (1, 7, 64, 65, 300, 4739))
def test_reductions_whose_terms_fill_no_step(grid, rows):
    """Columns of a number of rows that no number of threads divides: sums, extremes, positions, means."""
    rng = np.random.default_rng(SEED)
    for columns, dtype in ((59, "float64"), (67, "float32"), (33, "int16"), (131, "int64")):
        x = rng.integers(-50, 50, (rows, columns)).astype(dtype)
        w = weft.asarray(x, device=grid)
        np.testing.assert_array_equal(weft.argmax(w, axis=0).numpy(), x.argmax(0))
        np.testing.assert_array_equal(weft.max(w, axis=0).numpy(), x.max(0))
        np.testing.assert_array_equal(weft.sum(w, axis=0).numpy(), x.sum(0))
        if dtype.startswith("f"):
            np.testing.assert_allclose(
                weft.mean(w, axis=0).numpy(), x.mean(0), rtol=1e-5, atol=1e-6
            )
            np.testing.assert_allclose(weft.std(w, axis=0).numpy(), x.std(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ("int32", "float32", "complex64"))
def test_vector_products(grid, dtype):
    rng = np.random.default_rng(SEED)
    for one, two, axis in (
        ((5, 3), (5, 3), -1),
        ((3, 7), (3, 1), 0),
        ((4, 3), (3,), -1),
        ((4, 2), (4, 3), -1),
    ):
        a, b = rng.integers(-9, 9, one).astype(dtype), rng.integers(-9, 9, two).astype(dtype)
        there = [weft.asarray(v, device=grid) for v in (a, b)]
        full = [
            np.concatenate([v, np.zeros((*v.shape[:-1], 1), dtype)], -1)
            if v.shape[axis] == 2
            else v
            for v in (a, b)
        ]
        np.testing.assert_array_equal(
            weft.linalg.cross(*there, axis=axis).numpy(), np.cross(*full, axis=axis)
        )
    if dtype != "complex64":
        x = weft.asarray(rng.integers(-9, 9, (50, 3)).astype(dtype), device=grid)
        assert launches(grid, lambda: weft.linalg.cross(x, x)) <= 3
