# SPDX-License-Identifier: Apache-2.0
"""Tensor programs on the simulated machines: the packed product on VTA, a matrix-vector product on a wafer."""

import numpy as np
import weft
from weft import te


def packed_matmul(o, m, n, block=16):
    """C[o, m, 1, b] = int8(A[o, n, 1, b] @ B[m, n, b, b]^T): the machine's own layout."""
    A = te.placeholder((o, n, 1, block), "int8", name="A")
    B = te.placeholder((m, n, block, block), "int8", name="B")
    ko, ki = te.reduce_axis(n, name="ko"), te.reduce_axis(block, name="ki")
    full = te.compute(
        (o, m, 1, block),
        lambda bo, co, bi, ci: te.sum(
            A[bo, ko, bi, ki].astype("int32") * B[co, ko, ci, ki].astype("int32"), axis=[ko, ki]
        ),
        name="C_buf",
    )
    C = te.compute(
        (o, m, 1, block), lambda bo, co, bi, ci: full[bo, co, bi, ci].astype("int8"), name="C"
    )
    return te.create_prim_func([A, B, C])


def matvec(rows, columns):
    A = te.placeholder((rows, columns), "float32", name="A")
    x = te.placeholder((columns,), "float32", name="x")
    k = te.reduce_axis(columns, name="k")
    y = te.compute((rows,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
    return te.create_prim_func([A, x, y])


def _measure(program, function, target, inputs, expected, operations, limit):
    module = weft.build(function, target=target)
    device = weft.device(target)
    arrays = [weft.asarray(x, device=device) for x in inputs]
    out = weft.zeros(expected.shape, dtype=str(expected.dtype), device=device)
    result = module.time_evaluator("main", number=1, repeat=1)(*arrays, out)
    return dict(
        program=program,
        device=target,
        seconds=result.median,
        rate=operations / result.median / 1e9,
        unit="Gop/s",
        got=out.numpy(),
        wanted=expected,
        limit=limit,
        note=f"{result.cycles:,.0f} simulated cycles",
    )


def demo(quick=False, progress=lambda text: None, output="out"):
    rng = np.random.default_rng(3)
    for o, m, n in ((1, 4, 4), (1, 16, 16)):
        progress(f"packed product {m}x{n} on vta")
        a = rng.integers(-128, 128, (o, n, 1, 16)).astype("int8")
        b = rng.integers(-128, 128, (m, n, 16, 16)).astype("int8")
        want = np.einsum("onbk,mnck->ombc", a.astype("int32"), b.astype("int32")).astype("int8")
        yield _measure(
            f"int8 product {m * 16}x{n * 16}",
            packed_matmul(o, m, n),
            "vta",
            (a, b),
            want,
            2 * o * m * n * 256,
            0,
        )
    for size, target in ((32, "wse:4x4"), (128, "wse:8x8")):
        progress(f"matrix-vector {size} on {target}")
        a, x = rng.random((size, size), np.float32), rng.random(size, np.float32)
        yield _measure(
            f"matrix-vector {size}",
            matvec(size, size),
            target,
            (a, x),
            a @ x,
            2 * size * size,
            1e-5,
        )
