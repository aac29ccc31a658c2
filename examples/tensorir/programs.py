# SPDX-License-Identifier: Apache-2.0
"""The programs of the GPU-acceleration tour: vector add, window sum, and the ladder of GEMM schedules."""

import weft
from weft import script as T


@T.ir_module
class VectorAdd:
    @T.prim_func
    def main(
        A: T.Buffer[(1024,), "float32"],
        B: T.Buffer[(1024,), "float32"],
        C: T.Buffer[(1024,), "float32"],
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in T.grid(1024):
            with T.block("C"):
                vi = T.axis.spatial((0, 1024), i)
                C[vi] = A[vi] + B[vi]


@T.ir_module
class WindowSum:
    @T.prim_func
    def main(A: T.Buffer[(1026,), "float32"], B: T.Buffer[(1024,), "float32"]):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in T.grid(1024):
            with T.block("B"):
                vi = T.axis.spatial((0, 1024), i)
                B[vi] = A[vi] + A[vi + 1] + A[vi + 2]


def matmul(m, n, k):
    """C[m, n] = A[m, k] @ B[k, n], float32."""

    @T.prim_func
    def main(
        A: T.Buffer((m, k), "float32"),
        B: T.Buffer((k, n), "float32"),
        C: T.Buffer((m, n), "float32"),
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, r in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    return main


def vector_add():
    """Blocks of 128 threads."""
    sch = weft.Schedule(VectorAdd)
    (i,) = sch.get_loops(sch.get_block("C", "main"))
    i0, i1 = sch.split(i, [None, 128])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    return sch


def window_sum(shared=False, cooperative=False):
    """Without and with the input's 130 floats in shared memory; with cooperative fetch each thread brings its part."""
    sch = weft.Schedule(WindowSum)
    block = sch.get_block("B", "main")
    (i,) = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 128])
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.x")
    if shared:
        cached = sch.cache_read(block, 0, "shared")
        sch.compute_at(cached, i1)
        if cooperative:
            ax = sch.get_loops(cached)[-1]
            _, ax1 = sch.split(ax, [None, 128])
            sch.bind(ax1, "threadIdx.x")
    return sch


def gemm_1(n=1024):
    """One thread an element."""
    sch = weft.Schedule(matmul(n, n, n))
    i, j, _ = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, [None, 16])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, i1, j1)
    sch.bind(i0, "blockIdx.x")
    sch.bind(j0, "blockIdx.y")
    sch.bind(i1, "threadIdx.x")
    sch.bind(j1, "threadIdx.y")
    return sch


def gemm_2(n=1024, unroll=False, tile=8, tile_k=4):
    """Each thread computes tile x tile elements in registers."""
    sch = weft.Schedule(matmul(n, n, n))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, 8, tile])
    j0, j1, j2 = sch.split(j, [None, 8, tile])
    k0, k1 = sch.split(k, [None, tile_k])
    if unroll:
        sch.unroll(k1)
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    sch.reverse_compute_at(local, j1)
    sch.bind(i0, "blockIdx.x")
    sch.bind(j0, "blockIdx.y")
    sch.bind(i1, "threadIdx.x")
    sch.bind(j1, "threadIdx.y")
    sch.decompose_reduction(block, k0)
    return sch


def gemm_3(n=1024):
    """As gemm_2 with the inner reduction loop unrolled."""
    return gemm_2(n, unroll=True)


def cooperative_fetch(sch, block, index, at, threads, vector):
    """Brings a tile of operand `index` to shared memory with all threads of the block, `vector` floats at once."""
    cached = sch.cache_read(block=block, read_buffer_index=index, storage_scope="shared")
    sch.compute_at(cached, at, preserve_unit_loops=True)
    i, j = sch.get_loops(cached)[-2:]
    _, tx, vec = sch.split(sch.fuse(i, j), [None, threads, vector])
    sch.bind(tx, "threadIdx.x")
    sch.vectorize(vec)


def gemm_4(
    n=1024, block_x=8, block_y=8, thread_x=8, thread_y=8, tile_k=8, decompose=False, unroll=False
):
    """Tiles of both operands in shared memory, fetched together as float4."""
    sch = weft.Schedule(matmul(n, n, n))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1, i2 = sch.split(i, [None, block_x, thread_x])
    j0, j1, j2 = sch.split(j, [None, block_y, thread_y])
    k0, k1 = sch.split(k, [None, tile_k])
    sch.reorder(i0, j0, i1, j1, k0, k1, i2, j2)
    tx = sch.fuse(i1, j1)
    sch.reverse_compute_at(local, tx)
    sch.bind(i0, "blockIdx.x")
    sch.bind(j0, "blockIdx.y")
    sch.bind(tx, "threadIdx.x")
    cooperative_fetch(sch, block, 0, k0, block_x * block_y, 4)
    cooperative_fetch(sch, block, 1, k0, block_x * block_y, 4)
    if unroll:
        sch.unroll(k1)
    if decompose:
        sch.decompose_reduction(block, k0)
    return sch


def gemm_host(n=512, rows=4, columns=64):
    """For the host: register tiles of rows x columns, vectors along j."""
    sch = weft.Schedule(matmul(n, n, n))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, rows])
    j0, j1 = sch.split(j, [None, columns])
    sch.reorder(i0, j0, k, i1, j1)
    sch.reverse_compute_at(local, j0)
    sch.unroll(i1)
    sch.vectorize(j1)
    ci, cj = sch.get_loops(local)[-2:]
    sch.unroll(ci)
    sch.vectorize(cj)
    init = sch.decompose_reduction(block, k)
    ii, ij = sch.get_loops(init)[-2:]
    sch.unroll(ii)
    sch.vectorize(ij)
    return sch


def gemm_host_packed(n=1024, rows=None, columns=None, panel=64):
    """For the host: B packed into panels of `columns` that stay in the second-level cache, accumulators of rows x columns in
    registers, A read in place. n is a multiple of rows, columns and panel. The tile follows the registers: rows * vectors
    accumulators, a row of B and a broadcast must fit."""
    wide = weft.target_limits("cpu")["registers"] >= 32
    rows, columns = rows or (8 if wide else 4), columns or (32 if wide else 16)
    sch = weft.Schedule(matmul(n, n, n))
    block = sch.get_block("C")
    packed = sch.cache_read(block, 1, "global")
    sch.transform_layout(block, ("read", 1), lambda k, j: (j // columns, k, j % columns))
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    jc, j0, j1 = sch.split(j, [None, panel // columns, columns])
    i0, i1 = sch.split(i, [None, rows])
    sch.reorder(jc, i0, j0, k, i1, j1)
    sch.compute_at(packed, jc)
    sch.vectorize(sch.get_loops(packed)[-1])
    sch.reverse_compute_at(local, j0)
    ci, cj = sch.get_loops(local)[-2:]
    init = sch.decompose_reduction(block, k)
    ii, ij = sch.get_loops(init)[-2:]
    for outer, inner in ((i1, j1), (ci, cj), (ii, ij)):
        sch.unroll(outer)
        sch.vectorize(inner)
    return sch
