# SPDX-License-Identifier: Apache-2.0
"""Public steps make of a product with extents as arguments what a kernel by hand does: tiles in registers, wide reads of shared
memory, copies two tiles ahead."""

import re

import numpy as np
import pytest
from present import present

import weft

PROGRAM = """
from weft import script as T
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, n: T.int64):
    T.func_attr({{"global_symbol": "main", "tir.noalias": True, "narrow_positions": True}})
    m, k = T.int64(), T.int64()
    A = T.match_buffer(a, (m, k), "float32")
    B = T.match_buffer(b, (k, n * 4), "float32", align=16)
    C = T.match_buffer(c, (m, n * 4), "float32", align=16)
    A_tile = T.alloc_buffer(((m + {rows} - 1) // {rows} * {rows}, (k + 15) // 16 * 16), "float32")
    B_tile = T.alloc_buffer(((k + 15) // 16 * 16, (n * 4 + {columns} - 1) // {columns} * {columns}), "float32")
    S = T.alloc_buffer(((m + {rows} - 1) // {rows} * {rows}, (n * 4 + {columns} - 1) // {columns} * {columns}), "float32")
    for i, j in T.grid((m + {rows} - 1) // {rows} * {rows}, (k + 15) // 16 * 16):
        with T.block("a_tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            A_tile[vi, vj] = T.if_then_else(vi < m and vj < k, A[vi, vj], T.float32(0))
    for i, j in T.grid((k + 15) // 16 * 16, (n * 4 + {columns} - 1) // {columns} * {columns}):
        with T.block("b_tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            B_tile[vi, vj] = T.if_then_else(vi < k and vj < n * 4, B[vi, vj], T.float32(0))
    for i, j, l in T.grid((m + {rows} - 1) // {rows} * {rows}, (n * 4 + {columns} - 1) // {columns} * {columns}, (k + 15) // 16 * 16):
        with T.block("product"):
            vi, vj, vl = T.axis.remap("SSR", [i, j, l])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + A_tile[vi, vl] * B_tile[vl, vj]
    for i, j in T.grid(m, n * 4):
        with T.block("store"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = S[vi, vj]
"""


def scheduled(warps, each, lanes=(8, 4)):
    """A warp is lanes[0] x lanes[1] threads, a group warps[0] x warps[1] warps, a thread has each[0] x each[1] results in fours."""
    groups = [e // 4 for e in each]
    near = [lane * 4 for lane in lanes]  # rows of a warp that lie together
    wide = [n * g for n, g in zip(near, groups)]  # of a warp
    tile = [x * w for x, w in zip(wide, warps)]
    sch = weft.Schedule(weft.script.from_source(PROGRAM.format(rows=tile[0], columns=tile[1])))
    product, store = sch.get_block("product"), sch.get_block("store")
    copies = [sch.get_block("a_tile"), sch.get_block("b_tile")]
    sch.set_scope(product, 0, "local")
    (t, u), (w, x), (n, o) = tile, wide, near
    digits = lambda i, j, k: (  # noqa: E731
        *(i // t, i % t // w, i % w // n, i % n // 4, i % 4),
        *(j // u, j % u // x, j % x // o, j % o // 4, j % 4),
        *(k // 16, k % 16),
    )
    sch.transform_block_layout(product, digits)
    loops = sch.get_loops(product)
    rows, columns, (step, term) = loops[:5], loops[5:10], loops[10:]
    threads = [rows[1], columns[1], rows[3], columns[3]]
    own = [rows[2], rows[4], columns[2], columns[4]]
    sch.reorder(rows[0], columns[0], *threads, step, term, *own)
    sch.bind(rows[0], "blockIdx.y")
    sch.bind(columns[0], "blockIdx.x")
    sch.bind(sch.fuse(*threads), "threadIdx.x")
    sch.reverse_compute_at(store, columns[0])
    own_digits = [
        lambda i, wi, gi, li, vi, j, wj, gj, lj, vj, k, l: (k, l, i, wi, li, gi, vi),
        lambda i, wi, gi, li, vi, j, wj, gj, lj, vj, k, l: (k, l, j, wj, lj, gj, vj),
    ]
    for side, copy in enumerate(copies):
        sch.set_scope(copy, 0, "shared")
        fragment = sch.reindex_cache_read(product, side, "local", own_digits[side])
        sch.compute_at(fragment, term)
        group, four = sch.get_loops(fragment)[5:]
        sch.unroll(group)
        sch.vectorize(four)
        sch.compute_at(copy, step)
        if side == 0:
            sch.transform_layout(copy, ("write", 0), lambda i, k: (k, i))
        sch.storage_align(copy, 0, 0, 8, 4)
        vector = 4 if side == 1 else 1
        moves, thread, lane = sch.split(
            sch.fuse(*sch.get_loops(copy)[4:]), [None, 32 * warps[0] * warps[1], vector]
        )
        sch.bind(thread, "threadIdx.x")
        sch.unroll(moves)
        if vector > 1:
            sch.vectorize(lane)
    for loop in (term, *own):
        sch.unroll(loop)
    first = sch.decompose_reduction(product, step)
    for loop in sch.get_loops(first)[3:]:
        sch.unroll(loop)
    sch.annotate(step, "software_pipeline_stage", [0, 0, 2])
    sch.annotate(step, "software_pipeline_async_stages", [0])
    i, j = sch.get_loops(store)[-2:]
    rows, columns = (
        sch.split(i, [warps[0], groups[0], lanes[0], 4]),
        sch.split(j, [warps[1], groups[1], lanes[1], 4]),
    )
    sch.reorder(rows[0], columns[0], rows[2], columns[2], rows[1], rows[3], columns[1], columns[3])
    sch.bind(sch.fuse(rows[0], columns[0], rows[2], columns[2]), "threadIdx.x")
    sch.vectorize(columns[3])
    for loop in (rows[1], rows[3], columns[1]):
        sch.unroll(loop)
    sch.transform_layout(
        product,
        ("write", 0),
        lambda i, j: (
            i // t,
            j // u,
            i % t // w,
            j % u // x,
            i % n // 4,
            j % o // 4,
            i % w // n,
            i % 4,
            j % x // o,
            j % 4,
        ),
    )
    return sch


def loop_of(text):
    """The text of the loop over steps."""
    start = text.index("wait_group 1")
    return text[start : text.index("wait_group 0", start)]


@pytest.mark.parametrize("warps,each", [((2, 4), (8, 8)), ((2, 2), (8, 8))])
def test_inner_loops_are_those_of_a_kernel_by_hand(warps, each):
    """Sixteen summands: every operand of a thread once, four at a time, from shared memory; copies of 16 bytes where rows allow them."""
    text = weft.build(scheduled(warps, each).mod, target="cuda:arch=sm_90").source()
    body = loop_of(text)
    reads = re.findall(r"\*\(float4\*\)\(\w+_local \+ .*= \*\(float4\*\)", body)
    assert len(reads) == 2, body  # inside unrolled loops: groups of each side
    assert len(re.findall(r"S\[\w+\] = S\[\w+\] \+ ", text)) == 1  # and at no end of the loop
    assert "weft_copy_16(" in body and "weft_copy_if_4(" in body


def test_odd_extents():
    device = present("opencl:0")
    rng = np.random.default_rng(20261123)
    built = weft.build(scheduled((2, 2), (8, 8)).mod, target="opencl")
    for m, n, k in ((1, 4, 1), (65, 36, 17), (130, 132, 49)):
        a, b = rng.standard_normal((m, k), "float32"), rng.standard_normal((k, n), "float32")
        x, y, z = (
            weft.asarray(v, device=device) for v in (a, b, np.full((m, n), np.nan, "float32"))
        )
        built(x, y, z, n // 4)
        want = a.astype("float64") @ b.astype("float64")
        scale = np.abs(a).astype("float64") @ np.abs(b)
        assert (np.abs(z.numpy() - want) <= 1e-6 * (scale + 1e-3)).all(), (m, n, k)
