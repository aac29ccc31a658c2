# SPDX-License-Identifier: Apache-2.0
"""Products over an axis of extent 1, which are no sums, beside NumPy."""

import numpy as np
import pytest
import weft

TYPES = [
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int8",
    "int32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("shapes", [((5, 1), (1, 7)), ((2, 1), (1, 2)), ((1, 1), (1, 9)), ((3, 4, 1), (1, 5)), ((6, 3, 1), (1, 1, 4)),
                                    ((2, 1, 3, 1), (5, 1, 2)), ((0, 1), (1, 3)), ((4, 1), (1,)), ((1,), (1, 4)), ((1,), (1,))])  # fmt: skip
def test_extent_one(left, shapes):
    rng = np.random.default_rng(3)
    wide = "float32" if left == "bfloat16" else left

    def drawn(shape):
        x = rng.integers(0, 9, shape).astype(wide)
        return x + (1j * rng.integers(0, 9, shape)).astype(wide) if left[0] == "c" else x

    a, b = (drawn(s) for s in shapes)
    got = weft.asarray(a).astype(left) @ weft.asarray(b).astype(left)
    assert got.dtype == getattr(weft, left) and got.device.name == "cpu"
    np.testing.assert_array_equal(got.astype(wide).numpy(), a @ b)


def test_types_and_layouts_are_mixed():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((6, 8)), rng.standard_normal((8, 9)).astype("float32")
    wa, wb = weft.asarray(a), weft.asarray(b)
    for left, right, x, y in ((wa[::2, 3:4], wb[2:3, ::-2], a[::2, 3:4], b[2:3, ::-2]), (wa.T[:, 1:2], wb.T[1:2], a.T[:, 1:2], b.T[1:2])):  # fmt: skip
        got = left @ right
        assert got.dtype == weft.float64
        np.testing.assert_allclose(got.numpy(), x @ y, rtol=1e-15)
