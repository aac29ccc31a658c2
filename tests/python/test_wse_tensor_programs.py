# SPDX-License-Identifier: Apache-2.0
"""Tensor programs on rectangles of PEs against NumPy: products whose operands travel, vector operations, stencils,
gathers, at sizes that do not divide."""

import numpy as np
import pytest

import weft
from weft import _core, te

pytestmark = pytest.mark.skipif("wse" not in _core.targets(), reason="built without the wse target")

RECTANGLES = ["1x1", "1x4", "4x1", "3x5", "8x8", "2x2,arch=wse3", "5x3,arch=wse3"]


def random_array(rng, shape, dtype):
    if np.issubdtype(np.dtype(dtype), np.integer):
        return rng.integers(-9, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def run(tensors, target, *arrays):
    """The last tensor's values, and the module."""
    module = weft.build(te.create_prim_func(tensors), target=target)
    held = [weft.asarray(a, device=target) for a in arrays]
    out = weft.zeros(
        tuple(int(e) for e in tensors[-1].shape), dtype=str(tensors[-1].dtype), device=target
    )
    module["main"](*held, out)
    module["main"](*held, out)  # switches and tasks are as before the first call
    return out.numpy(), module


def product(m, n, k, dtype, transposed=False):
    A = te.placeholder((k, m) if transposed else (m, k), dtype, name="A")
    B = te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis(k, name="k")
    C = te.compute(
        (m, n), lambda i, j: te.sum((A[r, i] if transposed else A[i, r]) * B[r, j], axis=r), name="C"
    )
    return [A, B, C]


@pytest.mark.parametrize("rectangle", RECTANGLES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "int32"])
@pytest.mark.parametrize("size", [(8, 8, 8), (17, 13, 29), (3, 40, 5), (64, 7, 33)])
def test_products(size, dtype, rectangle):
    m, n, k = size
    rng = np.random.default_rng(m)
    a, b = random_array(rng, (m, k), dtype), random_array(rng, (k, n), dtype)
    got, module = run(product(m, n, k, dtype), f"wse:{rectangle}", a, b)
    if dtype.startswith("int"):
        np.testing.assert_array_equal(got, a @ b)
    else:
        near = 1e-4 if dtype == "float32" else 0.1
        np.testing.assert_allclose(got, a.astype("f8") @ b.astype("f8"), rtol=near, atol=near)
    assert ("panel_step" in module.source()) == (rectangle != "1x1")
