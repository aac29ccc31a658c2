# SPDX-License-Identifier: Apache-2.0
"""Memory that each iteration of a parallel loop has for itself is not joined with that of other nests."""

import numpy as np
import pytest

import weft
from weft import script as T
from weft import te


@T.prim_func
def private_rows(a: T.Buffer((8, 2048), "float32"), b: T.Buffer((8, 2048), "float32")):
    for i in T.parallel(8):
        with T.block("own"):
            vi = T.axis.spatial(8, i)
            row = T.alloc_buffer((2048,), "float32")
            for j in range(2048):
                row[j] = a[vi, j] + 1.0
            for j in range(2048):
                b[vi, j] = row[2047 - j]
    for i in range(8):
        with T.block("after"):
            vi = T.axis.spatial(8, i)
            line = T.alloc_buffer((2048,), "float32")
            for j in range(2048):
                line[j] = b[vi, j] * 2.0
            for j in range(2048):
                b[vi, j] = line[2047 - j]


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_rows_of_iterations_stay_their_own(target):
    x = np.random.default_rng(3).random((8, 2048), "float32")
    module = weft.build(private_rows, target=target)
    assert not any("also holds" in note for note in module.notes), module.notes
    for _ in range(20):
        out = weft.zeros((8, 2048))
        module["private_rows"](weft.asarray(x), out)
        np.testing.assert_array_equal(out.numpy(), (x + np.float32(1)) * np.float32(2))


def test_products_and_rows_of_many_heads():
    """Packed operands of a parallel product, then maps that need memory of the same size."""
    h, n, d = 16, 512, 64
    q, k, v = (te.placeholder((h, n, d), name=name) for name in "QKV")
    c, r, s, t = (te.reduce_axis((0, e)) for e in (d, n, n, n))
    score = te.compute(
        (h, n, n), lambda b, i, j: te.sum(q[b, i, c] * k[b, j, c], axis=c), name="score"
    )
    top = te.compute((h, n), lambda b, i: te.max(score[b, i, r], axis=r), name="top")
    e = te.compute((h, n, n), lambda b, i, j: te.exp(score[b, i, j] - top[b, i]), name="e")
    total = te.compute((h, n), lambda b, i: te.sum(e[b, i, s], axis=s), name="total")
    p = te.compute((h, n, n), lambda b, i, j: e[b, i, j] / total[b, i], name="p")
    y = te.compute((h, n, d), lambda b, i, j: te.sum(p[b, i, t] * v[b, t, j], axis=t), name="Y")
    module = weft.build(te.create_prim_func([q, k, v, y]), target="cpu", tuned=False)
    rng = np.random.default_rng(5)
    x = [rng.standard_normal((h, n, d)).astype("float32") * 0.3 for _ in range(3)]
    out = weft.zeros((h, n, d))
    module["main"](*map(weft.asarray, x), out)
    a, b, w = (m.astype("float64") for m in x)
    score = a @ b.swapaxes(1, 2)
    p = np.exp(score - score.max(-1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), p / p.sum(-1, keepdims=True) @ w, rtol=2e-4, atol=2e-5)
