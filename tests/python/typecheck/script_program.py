# SPDX-License-Identifier: Apache-2.0
"""Programs written as functions: what pyright must accept in strict mode. Never run."""

from typing import assert_type

import weft
from weft import script as T
from weft.script import tir


@T.prim_func
def double(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def any_size(a: T.handle, n: T.int32) -> None:
    A = T.match_buffer(a, (n,), "float32")
    for i in T.serial(n):
        A[i] = T.if_then_else(A[i] > 0, A[i], T.float32(0))


@T.ir_module
class Both:
    @T.prim_func
    def main(A: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("A"):
                v, w = T.axis.remap("SS", [i, j])
                A[v, w] = T.float32(1)

    @T.prim_func
    def other(A: T.Buffer((8,), "int32")):
        A[0] = 1


@tir.prim_func
def as_in_tvm(A: tir.Buffer((4,), "int32")):
    A[0] = 1


weft.build(double, target="cpu")["main"](weft.zeros(64), weft.zeros(64))
weft.build(any_size)
weft.build(Both)
weft.build(as_in_tvm)
assert_type(double, weft.PrimFunc)
double.show()
assert_type(weft.accepts(double, "qpu"), Exception | None)
assert_type(Both, weft.IRModule)
Both["main"].show()
schedule = weft.Schedule(double)
loops = schedule.get_loops(schedule.get_block("B"))
schedule.vectorize(loops[0])
