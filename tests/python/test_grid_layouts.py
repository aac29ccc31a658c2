# SPDX-License-Identifier: Apache-2.0
"""Copies of turned, permuted and reversed arrays, and maps over them, on a device with a grid beside NumPy."""

import itertools

import numpy as np
import pytest
from present import present

import weft

GRID = present("opencl")
TYPES = ("uint8", "int16", "float32", "float64")


def numbers(shape, dtype):
    return (np.arange(np.prod(shape)) % 251).astype(dtype).reshape(shape)


def copied(x, view):
    """The copy of a view, on the device and by NumPy."""
    ours = view(weft.asarray(x, device=GRID)).copy()
    np.testing.assert_array_equal(ours.to("cpu").numpy(), view(x))


def turned(order, backwards):
    def view(x):
        y = x.transpose(order) if isinstance(x, np.ndarray) else weft.permute_dims(x, order)
        return y[
            tuple(slice(None, None, -1 if axis in backwards else 1) for axis in range(len(order)))
        ]

    return view


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(300, 257), (70_000, 8), (9, 8191), (1031, 64), (33, 2050)])
def test_matrices(shape, dtype):
    x = numbers(shape, dtype)
    for backwards in ((), (0,), (1,), (0, 1)):
        copied(x, turned((1, 0), backwards))


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[1:])
def test_every_permutation(order):
    x = numbers((7, 34, 6, 66), "float32")
    copied(x, turned(order, ()))
    copied(x, turned(order, (order[0], 3)))


@pytest.mark.parametrize("shape", [(40, 56, 52), (3, 5, 64, 96), (2, 3, 2, 70, 130)])
@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_words_of_narrow_elements(shape, dtype):
    rank = len(shape)
    order = (*range(rank - 2), rank - 1, rank - 2)
    copied(numbers(shape, dtype), turned(order, ()))
    copied(numbers(shape, dtype), turned(order[::-1], ()))


@pytest.mark.parametrize("dtype", [*TYPES, "bool"])
@pytest.mark.parametrize("shape", [(4096,), (4099,), (64, 1000), (3, 5, 128)])
def test_reversed(shape, dtype):
    x = numbers(shape, dtype)
    copied(x, lambda a: a[..., ::-1])
    copied(x, lambda a: a[::-1])
    copied(x, lambda a: a[..., 1::-1])
    copied(x, lambda a: a[..., :-4][..., ::-1])


@pytest.mark.parametrize("size", [4096, 4093])
def test_maps_of_reversed_arrays(size):
    x, y = numbers((2, size), "float32")
    a, b = (weft.asarray(v, device=GRID) for v in (x, y))
    np.testing.assert_array_equal((a[::-1] * 2 + b).to("cpu").numpy(), x[::-1] * 2 + y)
    np.testing.assert_array_equal((a[::-1] - b[::-1]).to("cpu").numpy(), x[::-1] - y[::-1])
    half = a.astype("bfloat16")
    np.testing.assert_array_equal(half[::-1].copy().astype("float32").to("cpu").numpy(), x[::-1])
    a[::-1] += b
    np.testing.assert_array_equal(a.to("cpu").numpy(), x + y[::-1])


ROLLED = [
    ((1,), 0),
    ((100_003,), 0),
    ((7, 33), 0),
    ((7, 33), 1),
    ((5, 16, 6), 1),
    ((3, 4, 1), 2),
    ((0, 5), 1),
]


@pytest.mark.parametrize("dtype", [*TYPES, "bool", "complex64", "complex128"])
@pytest.mark.parametrize("shape, axis", ROLLED)
def test_rolled(shape, axis, dtype):
    x = numbers(shape, dtype)
    ours = weft.asarray(x, device=GRID)
    for shift in (0, 1, -1, 3, 8, 1000):
        got = weft.roll(ours, shift, axis=axis)
        np.testing.assert_array_equal(got.to("cpu").numpy(), np.roll(x, shift, axis))
        turned = weft.roll(ours[::-1], shift, axis=axis)
        np.testing.assert_array_equal(turned.to("cpu").numpy(), np.roll(x[::-1], shift, axis))


@pytest.mark.parametrize("dtype", [*TYPES, "bfloat16", "complex128"])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 20])
def test_side_by_side(count, dtype):
    """Parts of many widths, some empty, with and without steps, along every axis; more than one launch holds."""
    rng = np.random.default_rng(count)
    wide = "float32" if dtype == "bfloat16" else dtype
    for axis in range(3):
        shapes = [[6, 10, 8] for _ in range(count)]
        for shape in shapes:
            shape[axis] = int(rng.integers(0, 9))
        parts = [numbers(s, wide) for s in shapes]
        ours = [weft.asarray(p, device=GRID).astype(dtype) for p in parts]
        for f in (lambda xs: xs, lambda xs: [x[::2] if axis else x[:, ::2] for x in xs]):
            got, want = weft.concat(f(ours), axis=axis), np.concatenate(f(parts), axis)
            np.testing.assert_array_equal(got.astype(wide).to("cpu").numpy(), want)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_stacked(axis, dtype):
    x = numbers((4, 1031, 5), dtype)[0]
    ours = weft.asarray(x, device=GRID)
    parts, own = [x, x[::-1], x * 2], [ours, ours[::-1], ours * 2]
    got = weft.stack(own, axis=axis)
    np.testing.assert_array_equal(got.to("cpu").numpy(), np.stack(parts, axis))


def test_types_that_differ_are_joined_in_the_wider_one():
    x, y = numbers((5, 7), "int16"), numbers((5, 3), "float32")
    got = weft.concat([weft.asarray(v, device=GRID) for v in (x, y)], axis=1)
    np.testing.assert_array_equal(got.to("cpu").numpy(), np.concatenate([x, y], 1))


def test_what_is_repeated_is_not_laid_out():
    x = numbers((300, 1), "float32")
    copied(x, lambda a: (np if isinstance(a, np.ndarray) else weft).broadcast_to(a, (300, 400)))
    ours = weft.asarray(x, device=GRID)
    got = weft.broadcast_to(ours, (300, 400)) + weft.asarray(
        numbers((300, 400), "float32"), device=GRID
    )
    np.testing.assert_array_equal(got.to("cpu").numpy(), x + numbers((300, 400), "float32"))
