# SPDX-License-Identifier: Apache-2.0
"""What random faults (tools/mutate) once survived in the texts of targets: words of C and Metal, prefetches."""

import numpy as np
import pytest
import weft
from weft import script as T

HOST = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float64"), n: T.int32):
    for b in T.serial(64):
        T.prefetch({address})
        A[b] = A[b] // n
        X[b] = {value}
        Y[b] = T.exp(Y[b])
"""
CARD = """
@T.prim_func
def main(X: T.Buffer((64,), "float32"), n: T.int64, Y: T.Buffer((64,), "float32"), Z: T.Buffer((64,), "int64")):
    W = T.alloc_buffer((4,), "float32", scope="local")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for u in T.unroll(4):
                W[u] = X[b * 32 + t] + T.Cast("float32", u)
            for u in T.unroll(4):
                Y[b * 32 + t] = Y[b * 32 + t] + {value}
            Z[b * 32 + t] = Z[b * 32 + t] // (n + T.int64(5000000000))
"""


def text(source, target):
    return weft.build(T.from_source(source), target).source()


def test_words_of_c():
    said = text(HOST.format(address="X[b], 0, 3", value="T.exp(X[b])"), "c")
    for word in (
        "WEFT_PREFETCH(&X[b], 0, 3);",
        "static inline int32_t weft_floordiv_any_i32(",
        "X[b] = expf(X[b]);",
        "Y[b] = exp(Y[b]);",
    ):
        assert word in said, f"{word}\n{said}"


@pytest.mark.parametrize("address", ["X[b]", "X[b], 1", "X[b], 0, 0", "T.address_of(X[b]), 1, 3"])
@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_prefetches_of_elements(target, address):
    out = weft.ones((64,), dtype="float32")
    built = weft.build(
        T.from_source(HOST.format(address=address, value="X[b] + T.float32(1)")), target
    )
    built(weft.ones((64,), dtype="int32"), out, weft.ones((64,), dtype="float64"), 3)
    assert (out.numpy() == 2).all()


@pytest.mark.parametrize(
    "address",
    [
        "X[b], 2, 3",
        "X[b], 0, 4",
        "X[b], 0, -1",
        "X[b], 0, b",
        "3",
        "X[b] + T.float32(1)",
        "X[b], 0, 1, 1",
    ],
)
def test_refused_prefetches(address):
    with pytest.raises(weft.Error, match="locality from 0 to 3") as caught:
        weft.build(T.from_source(HOST.format(address=address, value="X[b]")), "c")
    assert caught.value.code == "verify.types"


def test_words_of_metal():
    said = text(CARD.format(value="T.exp(W[3 - u]) + T.pow(W[u], X[t])"), "metal")
    for word in (
        "(device const float* X [[buffer(0)]], device float* Y [[buffer(1)]], device long* Z",
        "  thread float W[4];\n  #pragma unroll\n  for (int u = 0; u < 4; ++u) {",
        "exp(W[3 - u_1])",
        "pow(W[u_1], X[(int)threadIdx.x])",
        "(n + 5000000000L)",
        "static inline long weft_floordiv_any_i64(",
    ):
        assert word in said, f"{word}\n{said}"


@pytest.mark.parametrize("target", ["c", "metal"])
def test_messages_name_the_target(target):
    lane = "T.vector_extract(T.broadcast(X[{0}], 4), {0} % 4)"
    source = (
        HOST.format(address="X[b]", value=lane.format("b"))
        if target == "c"
        else CARD.format(value=lane.format("t"))
    )
    with pytest.raises(weft.Error, match=f"needs a constant lane on {target}\n"):
        text(source, target)


@pytest.mark.parametrize(
    "target, dtype", [("wse:4x4", "float32"), ("vta", "int32"), ("qpu", "float32")]
)
@pytest.mark.parametrize("least", [0, 3])
def test_quotients_of_fused_loops_on_machines(target, dtype, least):
    source = f"""
@T.prim_func
def main(A: T.Buffer((5, 16), "{dtype}"), B: T.Buffer((5, 16), "{dtype}")):
    for f in range({least}, {least + 80}):
        with T.block("b"):
            vi = T.axis.spatial(5, (f - {least}) // 16)
            vj = T.axis.spatial(16, (f - {least}) % 16)
            B[vi, vj] = A[vi, vj] + T.{dtype}(1)
"""
    a = np.random.default_rng(4).integers(-50, 50, (5, 16)).astype(dtype)
    device = weft.device(target)
    out = weft.zeros((5, 16), dtype=dtype).to(device)
    weft.build(T.from_source(source), target)(weft.asarray(a).to(device), out)
    assert (out.numpy() == a + 1).all()


def test_notes_of_qpu_assembly():
    for line, legal in (("mov ra0, 99", "r0..r5, ra0..ra31"), ("mov ra0, #99", "#-16 to #15"), ("mov.zz ra0, r1", "never, always")):  # fmt: skip
        with pytest.raises(weft.ParseError, match=f"x.s:1.*\n(.*\n)* = legal: {legal}"):
            weft._core.assemble("qpu", line, "x.s")
    with pytest.raises(weft.ParseError, match="only one small immediate") as caught:
        weft._core.assemble("qpu", "add ra0, #1, #2", "x.s")
    assert " = \n" not in str(caught.value) and " = legal" not in str(caught.value)


MEETING = """
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            B[t] = A[t] * 2.0
        for u in T.thread_binding(32, thread="threadIdx.x"):
            C[u] = B[31 - u]
"""


@pytest.mark.parametrize(
    "target, barrier",
    [
        ("metal", "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)"),
        ("opencl", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"),
        ("cuda", "__syncthreads()"),
    ],
)
def test_threads_that_meet_in_global_memory_wait_for_it(target, barrier):
    text = weft.build(weft.script.from_source(MEETING), target=target).source()
    stored, read = text.index("B["), text.rindex("B[")
    assert barrier in text[stored:read], text


TIES = """
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            B[t] = T.round(A[t])
"""


@pytest.mark.parametrize(
    "target, word", [("metal", "rint("), ("opencl", "rint("), ("cuda", "rintf(")]
)
def test_ties_are_rounded_to_even_by_name(target, word):
    """round() of these languages rounds them away from zero."""
    text = weft.build(weft.script.from_source(TIES), target=target).source()
    assert word in text and "round" not in text, text
