# SPDX-License-Identifier: Apache-2.0
"""Of `max` and `min` a NaN on either side is the result, on every machine that has one."""

import numpy as np
import pytest
import weft
from weft import te

N = 8
NAN = np.float32("nan")
LEFT = np.array([NAN, 1, NAN, 2, -0.5, np.inf, NAN, 3], "float32")
RIGHT = np.array([1, NAN, NAN, 1, 7, NAN, -np.inf, 3], "float32")


@pytest.mark.parametrize(
    "target",
    [
        "ref",
        "c",
        "cpu",
        pytest.param("opencl", marks=pytest.mark.targets("opencl")),
        pytest.param("cuda", marks=pytest.mark.targets("cuda")),
        pytest.param("wse:2x1", marks=pytest.mark.targets("wse")),
    ],
)
def test_extremes_keep_nan(target):
    device = weft.device(target)
    if not device.available:
        pytest.skip(f"{target} is not here")
    a, b = (te.placeholder((N,), "float32", name=n) for n in "ab")
    high = te.compute((N,), lambda i: te.max(a[i], b[i]), name="high")
    low = te.compute((N,), lambda i: te.min(a[i], b[i]), name="low")
    for out, numpy in ((high, np.maximum), (low, np.minimum)):
        module = weft.build(te.create_prim_func([a, b, out]), target=target)
        x, y = weft.asarray(LEFT, device=device), weft.asarray(RIGHT, device=device)
        got = weft.empty((N,), dtype="float32", device=device)
        module(x, y, got)
        np.testing.assert_array_equal(got.numpy(), numpy(LEFT, RIGHT))
