# SPDX-License-Identifier: Apache-2.0
"""Borders of arrays beside NumPy: any axes, layouts, types and widths, nothing among them."""

import numpy as np
import pytest
import weft

TYPES = ["bool", "int8", "int16", "float32", "float64", "complex64", "complex128", "float16"]
CASES = [  # shape, widths
    ((5,), [(2, 3)]), ((0,), [(2, 1)]), ((7, 9), [(1, 2), (3, 4)]), ((7, 9), [(0, 0), (0, 5)]), ((7, 9), [(2, 0), (0, 0)]),
    ((3, 0, 4), [(1, 1), (0, 2), (1, 0)]), ((3, 5, 4), [(0, 1), (2, 0), (0, 0)]), ((2, 3, 5, 7), [(0, 0), (0, 0), (1, 1), (2, 1)]),
    ((2, 3, 5, 7), [(1, 0), (0, 0), (0, 0), (0, 0)]), ((1, 1), [(3, 0), (0, 3)]), ((4, 1, 6), [(0, 0), (1, 1), (0, 0)]), ((3, 4), [(0, 0), (0, 0)]),
]  # fmt: skip


def drawn(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return (rng.standard_normal(shape) * 20).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, widths", CASES)
def test_constant_borders(dtype, shape, widths):
    x = drawn(shape, dtype)
    value = True if dtype == "bool" else 3
    got = weft.pad(weft.asarray(x), widths, value=value)
    want = np.pad(x, widths, constant_values=value)
    assert got.dtype == getattr(weft, dtype)
    np.testing.assert_array_equal(got.numpy(), want)
    tensor = weft.Tensor(weft.asarray(x)) if dtype == "float32" else None
    if tensor is not None:
        np.testing.assert_array_equal(weft.pad(tensor, widths).numpy(), np.pad(x, widths))


@pytest.mark.parametrize("view", ["transposed", "stepped", "reversed", "broadcast", "part"])
def test_borders_of_views(view):
    def seen(m, broadcast):
        return {
            "transposed": lambda: m.T,
            "stepped": lambda: m[1:, ::3],
            "reversed": lambda: m[::-1, ::-1],
            "broadcast": lambda: broadcast(m[:1], (5, m.shape[1])),
            "part": lambda: m[2:9, 3:8],
        }[view]()

    x = drawn((37, 41), "float32")
    for widths in ([(1, 2), (3, 0)], [(0, 0), (2, 2)], [(4, 0), (0, 0)]):
        got = weft.pad(seen(weft.asarray(x), weft.broadcast_to), widths, value=-2.5)
        want = np.pad(seen(x, np.broadcast_to), widths, constant_values=-2.5)
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("shape", [(300, 401), (19, 31, 211), (5, 7, 17, 190)])
def test_threads_share_rows(shape):
    x = drawn(shape, "float64")
    widths = [(3, 5), (2, 0), (0, 4), (0, 7)][-len(shape) :]
    before = weft.get_num_threads()
    try:
        weft.set_threads(3)
        got = weft.pad(weft.asarray(x), widths, value=weft.asarray(1.5))
    finally:
        weft.set_threads(before)
    np.testing.assert_array_equal(got.numpy(), np.pad(x, widths, constant_values=1.5))


def test_values_that_the_type_does_not_hold():
    with pytest.raises(weft.ArgumentError, match="300"):
        weft.pad(weft.asarray(np.zeros(3, "int8")), [(1, 1)], value=300)
