# SPDX-License-Identifier: Apache-2.0
"""A product with a schedule of its own, written in te and as a T-script function, timed beside NumPy."""

from __future__ import annotations

import time

import numpy as np
import weft
from weft import script as T
from weft import te


@T.prim_func
def scaled(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def product(n: int, m: int, k: int) -> weft.PrimFunc:
    a = te.placeholder((n, k), "float32", name="A")
    b = te.placeholder((k, m), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def tiled(program: weft.PrimFunc, tile: int) -> weft.Schedule:
    sch = weft.Schedule(program)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, [None, tile])
    jo, ji = sch.split(j, [None, tile])
    sch.reorder(io, jo, k, ii, ji)
    sch.vectorize(ji)
    sch.parallel(io)
    return sch


def measure(module: weft.Module, n: int) -> float:
    x = np.random.default_rng(0).random((n, n), dtype=np.float32)
    a, b = weft.asarray(x), weft.asarray(x)
    c = weft.zeros((n, n), dtype="float32")
    module["main"](a, b, c)
    assert np.allclose(c.numpy(), x @ x, rtol=1e-4)
    return module.time_evaluator("main", number=1, repeat=3)(a, b, c).median


def main() -> None:
    scaled.show()
    sch = tiled(product(64, 64, 64), 16)
    print(sch.trace.as_python().count("split"))
    start = time.perf_counter()
    module = weft.build(sch, target="cpu")
    print(measure(module, 64) > 0, time.perf_counter() - start > 0)
    try:
        weft.Schedule(scaled).split(weft.Schedule(scaled).get_loops(sch.get_block("C"))[0], [3, 7])
    except weft.Error as refusal:
        print(refusal.code)
    print(len(weft.build(scaled, target="c").source()) > 0, weft.accepts(scaled, "vta") is not None)


if __name__ == "__main__":
    main()
