# SPDX-License-Identifier: Apache-2.0
"""Short lines sorted side by side, positions of keys of 8 bytes, and plain calls that go straight to the core."""

import numpy as np
import pytest

import weft

TYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 bool".split()


def drawn(rng, shape, dtype):
    return (
        rng.random(shape) > 0.5
        if dtype == "bool"
        else (rng.standard_normal(shape) * 50).astype(dtype)
    )


def places(x, axis, descending):
    """Stable positions by NumPy; NaN last."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis)


@pytest.mark.parametrize("dtype", TYPES)
def test_lines_of_all_lengths_along_all_axes(dtype):
    rng = np.random.default_rng(31)
    for shape in (
        (7, 2),
        (100, 10),
        (33, 257),
        (256, 70),
        (3, 40, 5),
        (2, 3, 17, 4),
        (64, 64),
        (1, 30),
        (19, 1),
        (5, 0),
    ):
        x = drawn(rng, shape, dtype)
        a = weft.asarray(x)
        for axis in range(x.ndim):
            for descending in (False, True):
                want = np.sort(x, axis=axis)
                want = np.flip(want, axis) if descending else want
                got = weft.sort(a, axis=axis, descending=descending).numpy()
                assert np.array_equal(got, want), (shape, axis, descending)
                got = weft.argsort(a, axis=axis, descending=descending).numpy()
                assert np.array_equal(got, places(x, axis, descending)), (shape, axis, descending)
        turned = weft.permute_dims(a, tuple(reversed(range(x.ndim))))
        assert np.array_equal(weft.sort(turned, axis=0).numpy(), np.sort(x.T, axis=0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_of_two_forms_keep_theirs(dtype):
    x = np.random.default_rng(5).standard_normal((40, 30)).astype(dtype)
    x[3, 4], x[5, 7:9], x[6], x[9, 2] = np.nan, (-0.0, 0.0), np.inf, -np.inf
    for axis in (0, 1):
        got = weft.sort(weft.asarray(x), axis=axis).numpy()
        assert np.array_equal(got, np.sort(x, axis=axis, kind="stable"), equal_nan=True)
        assert np.array_equal(
            np.signbit(got[5, :]), np.signbit(np.sort(x, axis=axis, kind="stable")[5, :])
        )
        got = weft.argsort(weft.asarray(x), axis=axis).numpy()
        assert np.array_equal(got, np.argsort(x, axis=axis, kind="stable"))


@pytest.mark.parametrize("n", [2, 19, 100, 300, 5000])
def test_equal_upper_halves(n):
    """Keys of 8 bytes are sorted by upper halves first: all equal, few of each, none equal."""
    rng = np.random.default_rng(n)
    low = rng.integers(-3, 3, n)
    for x in (
        low,
        low + (rng.integers(0, 5, n) << 40),
        rng.integers(-(2**62), 2**62, n),
        low.astype("float64"),
        low * 1e-300,
    ):
        for shape in ((n,), (3, n)):
            y = np.broadcast_to(x, shape).copy()
            assert np.array_equal(
                weft.argsort(weft.asarray(y)).numpy(), np.argsort(y, kind="stable")
            )
    x = rng.integers(0, 2**63, n).astype("uint64") * 2
    assert np.array_equal(weft.argsort(weft.asarray(x)).numpy(), np.argsort(x, kind="stable"))


def test_permutations_are_those_of_their_numbers():
    key = weft.random.key(9)
    words = weft._core._random_pairs(key.seed, key.offset, 5000, weft.device("cpu")).numpy()
    assert np.array_equal(
        weft.random.permutation(5000, key=key).numpy(), np.argsort(words, kind="stable")
    )
    weft.random.seed(4)
    first = weft.random.permutation(7).numpy()
    weft.random.seed(4)
    assert np.array_equal(
        weft.random.permutation(n=7).numpy(), first
    )  # not a plain call: the same numbers
    assert sorted(first) == list(range(7))


def test_plain_calls_and_others_agree():
    """The first of each pair goes straight to the core, the second through the Python function."""
    x = weft.asarray(np.random.default_rng(0).standard_normal((5, 6)))
    for plain, other in (
        (weft.arange(5), weft.arange(5, dtype=None)),
        (weft.arange(1, 8, 3), weft.arange(1, stop=8, step=3, dtype="int64")),
        (weft.arange(0.5, 2.0, device="cpu"), weft.arange(0.5, 2.0, dtype="float32")),
        (weft.sort(x), weft.sort(x, stable=True)),
        (weft.sort(x, axis=0), weft.sort(x, dim=0)),
        (weft.argsort(x, axis=-2), weft.argsort(x, axis=-2, kind="stable")),
        (weft.clip(x, -0.5, 1), weft.minimum(weft.maximum(x, -0.5), 1)),
        (weft.clip(x, max=0.3), weft.clip(x, None, weft.asarray(0.3, dtype=x.dtype))),
    ):
        assert plain.dtype == other.dtype and np.array_equal(plain.numpy(), other.numpy())
    for call, names in (
        (weft.random.uniform, ("low", "high")),
        (weft.random.normal, ("mean", "std")),
    ):
        for dtype in ("float32", "float64"):
            weft.random.seed(11)
            plain = call((3, 2), 1.0, 2.0, dtype=dtype).numpy()
            weft.random.seed(11)
            other = call([3, 2], **dict(zip(names, (1.0, 2.0))), dtype=dtype).numpy()
            assert plain.dtype == other.dtype and np.array_equal(plain, other)
    for wrong in (lambda: weft.sort(x, axis=2), lambda: weft.sort(x, axis=2**70), lambda: weft.arange(), lambda: weft.arange(1, 2, 3, 4, 5),
                  lambda: weft.arange("4"), lambda: weft.random.uniform((-1,)), lambda: weft.clip(x, "a", 1)):  # fmt: skip
        with pytest.raises(weft.Error):
            wrong()
    wide = weft.asarray(
        np.linspace(-4, 4, 9001), dtype=weft.bfloat16
    )  # one pass, and by rows of few elements
    assert np.array_equal(
        weft.clip(wide, 0.3, 1.7).astype("float32").numpy()[:4000],
        weft.clip(wide[:4000], 0.3, 1.7).astype("float32").numpy(),
    )
