# SPDX-License-Identifier: Apache-2.0
"""Warp-specialized products of 16-bit floats (Hopper), as schedules of ordinary steps.

The schedule tiles the product, caches tiles of both operands in shared memory, pipelines the loop over the sum and
binds tiles to blocks; ``specialize_warps`` then gives one warp group the copies and the others the products. The result
is an ordinary program: ``target="ref"`` runs it, ``target="cuda"`` builds it for sm_90.
"""

import weft
from weft import te


def product(m, n, k, dtype="bfloat16", layout="NN", result=None, epilogue=None):
    """D[m, n] = epilogue(A @ B): operands of 16 bits or, in layout "NT", float8, sums float32, `result` the type of D (that of the operands).

    layout: "T" where an operand is stored transposed, A as [k, m] and B as [n, k]. epilogue: None, or the name "bias"
    (D = product + bias[n]) or "residual" (D = max(product + bias[n], 0) * 0.5 + residual[m, n])."""
    across, along = layout[0] == "T", layout[1] == "T"
    A = te.placeholder((k, m) if across else (m, k), dtype, name="A")
    B = te.placeholder((n, k) if along else (k, n), dtype, name="B")
    bias = te.placeholder((n,), "float32", name="bias")
    residual = te.placeholder((m, n), dtype, name="residual")
    r = te.reduce_axis((0, k), name="k")

    def term(i, j):
        a, b = A[r, i] if across else A[i, r], B[j, r] if along else B[r, j]
        return a.astype("float32") * b.astype("float32")

    C = te.compute((m, n), lambda i, j: te.sum(term(i, j), axis=r), name="C")

    def value(i, j):
        x = C[i, j]
        if epilogue is not None:
            x = x + bias[j]
        if epilogue == "residual":
            x = te.if_then_else(x > 0.0, x, te.const(0, "float32")) * te.const(0.5, "float32")
            x = x + residual[i, j].astype("float32")
        return x.astype(result or dtype)

    D = te.compute((m, n), value, name="D")
    more = {None: [], "bias": [bias], "residual": [bias, residual]}[epilogue]
    return te.create_prim_func([A, B, *more, D])


def schedule(
    f,
    rows=128,
    columns=256,
    stages=4,
    blocks=132,
    group_rows=16,
    step=64,
    cluster=1,
    promote=0,
    cluster_columns=1,
    **options,
):
    """The schedule: tiles of `rows` (64, 128 or 192) by `columns`, a ring of `stages` slots of `step` terms of the sum: 64 of
    16-bit operands, 128 of float8 ones.

    blocks: stay on the card and take one tile after another; 0: a block for each tile. group_rows: rows of tiles that
    follow one another. cluster, cluster_columns: blocks that share the tiles of B, and of A. promote: steps that tile instructions, which cut off
    what a sum does not hold, add up before their sum is added to the tile's, rounded to nearest; 0: all. More options
    are those of weft.Schedule."""
    s = weft.Schedule(f, **options)
    C, D = s.get_block("C"), s.get_block("D")
    a, b = (s.cache_read(C, operand, "shared") for operand in (0, 1))
    s.set_scope(C, 0, "local")
    i, j, k = s.get_loops(C)
    bi, ti = s.split(i, [None, rows])
    bj, tj = s.split(j, [None, columns])
    ko, kk = s.split(k, [None, step])
    s.reorder(bi, bj, ko, ti, tj, kk)
    for cache in (a, b):
        s.compute_at(cache, ko)
    s.reverse_compute_at(D, bj)
    s.bind(bi, "blockIdx.y")
    s.bind(bj, "blockIdx.x")
    s.annotate(ko, "software_pipeline_stage", [0, 0, stages - 1])
    registers = [32, 160] if rows > 128 else [40, 232]
    s.specialize_warps(ko, blocks, group_rows, registers, cluster, promote, cluster_columns)
    return s
