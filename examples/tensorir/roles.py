# SPDX-License-Identifier: Apache-2.0
"""A product of 16-bit floats whose threads have roles, written out as a program.

One warp starts bulk copies into a ring of tiles in shared memory; groups of 128 threads multiply. They meet at tokens:
``full[s]`` counts the bytes that have come into slot s, ``empty[s]`` the warps that are done with it. The program is an
ordinary ``PrimFunc``: ``target="ref"`` runs it (late where nobody waits, so that a missing wait shows), ``target="cuda"``
builds it for sm_90. What the calls mean: docs/design/roles.md.
"""

from weft import script as T


def product(m, n, k, dtype="bfloat16", groups=2, columns=256, stages=4, blocks=132, together=16):
    """C[m, n] = A[m, k] @ B[k, n], operands and result of 16 bits, sums float32.

    Tiles of 64 * groups rows and `columns` columns, 64 of k at a time through a ring of `stages`; `blocks` blocks stay
    and take one tile after another, `together` rows of tiles following one another. n and k: multiples of 8."""
    rows, threads = 64 * groups, 128 * (groups + 1)
    tiles_m, tiles_n, steps = -(-m // rows), -(-n // columns), -(-k // 64)
    total, slot_bytes = tiles_m * tiles_n, (rows + columns) * 128
    quarters, registers, sums = columns // 64, columns // 8, 232 if groups > 1 else 168
    copying = 40 if groups > 1 else 168

    @T.prim_func
    def main(
        A: T.Buffer((m, k), dtype),
        B: T.Buffer((k, n), dtype),
        C: T.Buffer((m, n), dtype),
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for block in T.thread_binding(blocks, thread="blockIdx.x"):
            with T.block("block"):
                A_ring = T.alloc_buffer((stages, rows, 64), dtype, scope="shared")
                B_ring = T.alloc_buffer((stages, quarters, 64, 64), dtype, scope="shared")
                staged = T.alloc_buffer((groups, 2, 64, 64), dtype, scope="shared")
                full = T.alloc_buffer((stages,), "uint64", scope="shared")
                empty = T.alloc_buffer((stages,), "uint64", scope="shared")
                C_local = T.alloc_buffer((registers, 2, 2), "float32", scope="local")
                for thread in T.thread_binding(threads, thread="threadIdx.x"):
                    if thread == 0:
                        for s in T.serial(stages):
                            T.token_init(full[s], 1)
                            T.token_init(empty[s], 4 * groups)
                    T.evaluate(T.sync("shared"))
                    with T.block("copy"):
                        T.execution("threadIdx.x", 0, 128)
                        T.block_attr({"registers": copying})
                        if thread == 0:
                            for turn in T.serial((total - block + blocks - 1) // blocks):
                                place: T.int64 = block + turn * blocks
                                band: T.int64 = place // (tiles_n * together)
                                inside: T.int64 = place % (tiles_n * together)
                                high: T.int64 = T.min(together, tiles_m - band * together)
                                m0: T.int64 = (band * together + inside % high) * rows
                                n0: T.int64 = inside // high * columns
                                for step in T.serial(steps):
                                    slot: T.int64 = (turn * steps + step) % stages
                                    T.token_wait(
                                        empty[slot], 1 - (turn * steps + step) // stages % 2
                                    )
                                    T.token_expect(full[slot], slot_bytes)
                                    T.bulk_load(
                                        A_ring[slot, 0, 0], A[m0, step * 64], full[slot], rows, 64
                                    )
                                    for q in T.unroll(quarters):
                                        T.bulk_load(
                                            B_ring[slot, q, 0, 0],
                                            B[step * 64, n0 + q * 64],
                                            full[slot],
                                            64,
                                            64,
                                        )
                    with T.block("multiply"):
                        T.execution("threadIdx.x", 128, threads)
                        T.block_attr({"registers": sums})
                        group: T.int64 = thread // 128 - 1
                        for turn in T.serial((total - block + blocks - 1) // blocks):
                            place: T.int64 = block + turn * blocks
                            band: T.int64 = place // (tiles_n * together)
                            inside: T.int64 = place % (tiles_n * together)
                            high: T.int64 = T.min(together, tiles_m - band * together)
                            m0: T.int64 = (band * together + inside % high) * rows + group * 64
                            n0: T.int64 = inside // high * columns
                            for step in T.serial(steps):
                                now: T.int64 = turn * steps + step
                                T.token_wait(full[now % stages], now // stages % 2)
                                with T.async_("wgmma", multiplied):
                                    T.tile_multiply(
                                        C_local[0, 0, 0],
                                        A_ring[now % stages, group * 64, 0],
                                        B_ring[now % stages, 0, 0, 0],
                                        columns,
                                        0,
                                        1,
                                        step > 0,
                                    )
                                T.wait(multiplied, 1)
                                # The step before is read: its slot goes back to the copies.
                                if step > 0 and thread % 32 == 0:
                                    T.token_signal(empty[(now + stages - 1) % stages])
                            T.wait(multiplied, 0)
                            if thread % 32 == 0:
                                T.token_signal(empty[(turn * steps + steps - 1) % stages])
                            for q in T.unroll(quarters):
                                if thread % 128 == 0:
                                    T.wait(sent, 1)
                                T.meet(1 + group, 128)
                                T.tile_store(
                                    staged[group, (turn * quarters + q) % 2, 0, 0],
                                    C_local[q * 8, 0, 0],
                                )
                                T.bulk_fence()
                                T.meet(1 + group, 128)
                                if thread % 128 == 0:
                                    with T.async_("bulk", sent):
                                        T.bulk_store(
                                            C[m0, n0 + q * 64],
                                            staged[group, (turn * quarters + q) % 2, 0, 0],
                                            64,
                                            64,
                                        )
                        if thread % 128 == 0:
                            T.wait(sent, 0)

    return main
