# SPDX-License-Identifier: Apache-2.0
"""Products of 16-bit floats on tensor cores, as schedules of ordinary steps.

The layout of the accumulators (which thread holds which element) is a ``transform_layout`` of a buffer in scope
"local"; the instruction is a ``tensorize``. Everything stays an ordinary program: ``weft.build(..., target="ref")``
runs it, ``sch.trace`` prints it.
"""

import weft
from weft import te


def product(m, n, k, dtype="float16"):
    """C[m, n] = A[m, k] @ B[k, n], operands of 16 bits, sums and result float32."""
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r),
        name="C",
    )
    return te.create_prim_func([A, B, C])


def _pipeline(s, loop, stages):
    if stages > 1:
        s.annotate(loop, "software_pipeline_stage", [0, 0, stages - 1])
        s.annotate(loop, "software_pipeline_order", [0, 1, 2])
        s.annotate(loop, "software_pipeline_async_stages", [0])


def _lanes(s, rows, columns, warps):
    """Loops over a tile in the order of an accumulator's fragment: lane, then what it holds.

    The tile's rows are warps * 16 or, with warps = 1, multiples of 16."""
    if warps > 1:
        w, h, g = s.split(rows, [warps, 2, 8])
    else:
        h, g = s.split(rows, [None, 8])
    j, t, e = s.split(columns, [None, 4, 2])
    if warps > 1:
        s.reorder(w, g, t, j, h, e)
        lane = s.fuse(w, g, t)
    else:
        s.reorder(g, t, h, j, e)
        lane = s.fuse(g, t)
    s.bind(lane, "threadIdx.x")
    for loop in (h, j):
        s.unroll(loop)
    return e


def _start(f):
    """The schedule, its block, what fetches A and B into shared memory and what writes the registers out."""
    s = weft.Schedule(f)
    C = s.get_block("C")
    fetches = (s.cache_read(C, operand, "shared") for operand in (0, 1))
    return s, C, *fetches, s.cache_write(C, 0, "local")


def _finish(s, C, ko, rows, columns, warps, tile, instruction, stages, layouts=()):
    s.vectorize(_lanes(s, rows, columns, warps))
    init = s.decompose_reduction(C, ko)
    s.unroll(_lanes(s, *s.get_loops(init)[-2:], warps))
    for operand, layout in enumerate(layouts, 1):  # the sum reads C, A, B
        s.transform_layout(C, ("read", operand), layout)
    s.tensorize(tile, instruction)
    _pipeline(s, ko, stages)
    return s


def wgmma(f, block=(128, 128, 64), columns=128, stages=4, dtype="float16", together=1):
    """For sm_90a: groups of 128 threads, each with 64 rows of the block and `columns` of it.

    `together` rows of blocks follow one another, so that what they read stays in the cache.

    Tiles lie in rows of 128 bytes whose pieces of 16 bytes are swizzled (``^``) by the row, so that neither copies nor
    the tensor cores meet in a bank."""
    bm, bn, bk = block
    groups = bm // 64
    s, C, a, b, c = _start(f)
    s.transform_layout(
        C,
        ("write", 0),
        lambda i, j: (
            i // 64,
            j // columns,
            i % 64 // 16 * 32 + i % 8 * 4 + j % 8 // 2,
            j % columns // 8,
            i % 16 // 8,
            j % 2,
        ),
    )
    i, j, k = s.get_loops(C)
    outer, inner, wi, ti = s.split(i, [None, together, groups, 64])
    bj, wj, tj = s.split(j, [None, bn // columns, columns])
    ko, ki, kk = s.split(k, [None, bk // 64, 64])
    s.reorder(outer, bj, inner, ko, wi, wj, ki, ti, tj, kk)
    grid = s.fuse(outer, bj, inner)
    s.bind(grid, "blockIdx.x")
    s.bind(wi, "threadIdx.y")
    for cache in (a, b):  # neighbouring threads fetch neighbouring 16 bytes
        s.compute_at(cache, ko)
        x, y = s.get_loops(cache)[-2:]
        y0, y1 = s.split(y, [None, 8])
        steps, ty, tx = s.split(s.fuse(x, y0), [None, groups, 128])
        s.bind(ty, "threadIdx.y")
        s.bind(tx, "threadIdx.x")
        s.vectorize(y1)
        s.unroll(steps)
    s.reverse_compute_at(c, grid)
    rows, cols = s.get_loops(c)[-2:]
    group, rows = s.split(rows, [None, 64])
    s.bind(group, "threadIdx.y")
    layouts = (
        lambda i, k: (k // 64, i, k % 64 // 8 ^ i % 8, k % 8),
        lambda k, j: (j // 64, k, j % 64 // 8 ^ k % 8, j % 8),
    )
    name = f"cuda.wgmma.m64n{columns}k64.{dtype}"
    return _finish(s, C, ko, rows, cols, 4, ti, name, stages, layouts)


def mma(f, block=(128, 128, 32), warp=(64, 64), stages=4, dtype="float16"):
    """From sm_80 on: warps of 32 threads, each with a tile of `warp`."""
    (bm, bn, bk), (wm, wn) = block, warp
    s, C, a, b, c = _start(f)
    s.transform_layout(
        C,
        ("write", 0),
        lambda i, j: (
            i // wm,
            j // wn,
            i % 8 * 4 + j % 8 // 2,
            i % wm // 8,
            j % wn // 8,
            j % 2,
        ),
    )
    i, j, k = s.get_loops(C)
    bi, wi, ti = s.split(i, [None, bm // wm, wm])
    bj, wj, tj = s.split(j, [None, bn // wn, wn])
    ko, ki, kk = s.split(k, [None, bk // 16, 16])
    s.reorder(bi, bj, ko, wi, wj, ki, ti, tj, kk)
    s.bind(bi, "blockIdx.y")
    s.bind(bj, "blockIdx.x")
    s.bind(wi, "threadIdx.z")
    s.bind(wj, "threadIdx.y")
    s.unroll(ki)
    for cache in (a, b):
        s.compute_at(cache, ko)
        fused = s.fuse(*s.get_loops(cache)[-2:])
        steps, tz, ty, tx, lanes = s.split(fused, [None, bm // wm, bn // wn, 32, 8])
        for loop, axis in ((tz, "threadIdx.z"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
            s.bind(loop, axis)
        s.vectorize(lanes)
        s.unroll(steps)
        s.storage_align(cache, 0, 0, 32, 8)  # rows begin 16 bytes further in the banks
    s.reverse_compute_at(c, bj)
    rows, cols = s.get_loops(c)[-2:]
    tz, rows = s.split(rows, [None, wm])
    ty, cols = s.split(cols, [None, wn])
    s.reorder(tz, ty, rows, cols)
    s.bind(tz, "threadIdx.z")
    s.bind(ty, "threadIdx.y")
    return _finish(s, C, ko, rows, cols, 1, ti, f"cuda.mma.m{wm}n{wn}k16.{dtype}", stages)
