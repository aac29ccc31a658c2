# SPDX-License-Identifier: Apache-2.0
"""Programs that bring their own schedule to the simulated machines: what `weft.accepts` takes builds and computes what
the reference interpreter computes of the program without schedule; what it refuses, `weft.build` refuses with the same
code. Random steps, and the small programs that they found."""

import re

import numpy as np
import pytest

import weft
from random_programs import random_program
from random_schedules import random_schedule
from weft import _core

# target, least number of 100 programs that are accepted
ROWS = [("qpu", 55), ("vta", 12), ("wse:4x4", 60)]


def results(program, target, given):
    held = [weft.asarray(a, device=target) for a in given]
    weft.build(program, target=target)["main"](*held)
    return [a.numpy() for a in held]


def right_or_refused(scheduled, program, target, given, where):
    """None, or the code of the refusal."""
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    refusal = weft.accepts(scheduled, target)
    if refusal is not None:
        assert not refusal.code.startswith("internal"), f"{where}: {refusal}"
        with pytest.raises(weft.Error) as caught:
            weft.build(scheduled, target=target)
        assert caught.value.code == refusal.code, where
        return refusal.code
    for want, got in zip(results(program, "ref", given), results(scheduled, target, given)):
        if want.dtype.kind == "f":
            near = 2e-2 if any(a.dtype == np.float16 for a in given) else 1e-3
            want, got = want.astype("float64"), got.astype("float64")
            np.testing.assert_allclose(got, want, rtol=near, atol=near, err_msg=where)
        else:
            np.testing.assert_array_equal(got, want, err_msg=where)
    return None


@pytest.mark.parametrize("target, least", ROWS)
def test_random_schedules(target, least):
    machine, accepted = target.split(":")[0], 0
    for seed in range(1100, 1200):
        text, params = random_program(seed, machine)
        program = weft.script.from_source(text)
        scheduled = random_schedule(program, re.findall(r'T.block\("(\w+)"\)', text), seed, machine)
        random = np.random.default_rng(seed)
        given = [
            random.integers(0 if t[0] == "u" else -4, 6, shape).astype(t) for _, shape, t in params
        ]
        code = right_or_refused(scheduled, program, target, given, f"seed {seed}\n{text}")
        accepted += code is None
    assert accepted >= least, accepted


REGISTERS = """
@T.prim_func
def main(A: T.Buffer(({m}, 19), "int32"), B: T.Buffer((19, {n}), "int32"), C: T.Buffer(({m}, {n}), "int32"), D: T.Buffer((18, 19), "int32")):
    L = T.alloc_buffer(({m}, {n}), "int32", scope="local")
    for i in range(18):
        for j in T.parallel(19):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = 3
    for i, j, k in T.grid({m}, {n}, 19):
        with T.block("L"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                L[vi, vj] = T.int32(0)
            L[vi, vj] = L[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid({m}, {n}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = L[vi, vj]
"""
COPIED = """
@T.prim_func
def main(A: T.Buffer((11, 15), "float32"), B: T.Buffer((11, 15), "float32"), C: T.Buffer((11, 15), "float32")):
    L = T.alloc_buffer((11, 15), "float32", scope="local")
    for i, j in T.grid(11, 15):
        with T.block("L"):
            vi, vj = T.axis.remap("SS", [i, j])
            L[vi, vj] = A[vi, vj]
    for i, j in T.grid(11, 15):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = L[vi, vj]
    for i in T.thread_binding(11, thread="lane"):
        for j in range(15):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]
"""


@pytest.mark.parametrize("m, n", [(2, 3), (18, 9), (15, 11), (31, 9)])
def test_registers_of_one_kernel(m, n):
    """Loops that are written out inside each other, and more values than the files hold: 171 to 279."""
    program = weft.script.from_source(REGISTERS.format(m=m, n=n))
    random = np.random.default_rng(3)
    shapes = [(m, 19), (19, n), (m, n), (18, 19)]
    given = [random.integers(-9, 9, s).astype("int32") for s in shapes]
    code = right_or_refused(program, program, "qpu", given, f"{m} x {n}")
    assert code == (None if m * n <= 256 else "qpu.lower.local")


def test_many_values_in_registers():
    given = [np.arange(165, dtype="float32").reshape(11, 15)] * 3
    program = weft.script.from_source(COPIED)
    assert right_or_refused(program, program, "qpu", given, "165 values") is None


SPILLED = """
@T.prim_func
def main(A: T.Buffer((3, 32), "int32"), C: T.Buffer((3, 1), "int32")):
    B = T.alloc_buffer((3, 32), "int32")
    P = T.alloc_buffer((3, 1), "int32")
    L = T.alloc_buffer((3, 32), "int32", scope="local")
    for i, j in T.grid(3, 32):
        with T.block("L"):
            vi, vj = T.axis.remap("SS", [i, j])
            L[vi, vj] = A[vi, vj] // 4
    for i, j in T.grid(3, 32):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = L[vi, vj]
    for i, o, k in T.grid(4, 1, 32):
        with T.block("P"):
            vi = T.axis.spatial(3, i)
            vo, vk = T.axis.remap("SR", [o, k])
            T.where(i < 3)
            with T.init():
                P[vi, vo] = T.int32(1)
            P[vi, vo] = P[vi, vo] * B[vi, vk]
    for i in T.parallel(3):
        with T.block("C"):
            vi = T.axis.spatial(3, i)
            C[vi, 0] = T.int32(5)
"""


def test_an_address_that_is_spilled():
    """Its load set up another DMA, which then read 16 words where one was asked for."""
    given = [np.arange(96, dtype="int32").reshape(3, 32), np.zeros((3, 1), "int32")]
    program = weft.script.from_source(SPILLED)
    assert right_or_refused(program, program, "qpu", given, "96 values") is None


PADDED = """
@T.prim_func
def main(A: T.Buffer((8, {n}), "int32"), B: T.Buffer(({m}, 5), "int32"), C: T.Buffer((14, 5), "int32")):
    S = T.alloc_buffer((8, {n}), "int32")
    for i, j in T.grid(8, {n}):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = A[vi, vj] * 2
    for i, j, k in T.grid(14, 5, {m}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.int32(0)
            C[vi, vj] = C[vi, vj] + T.if_then_else(vk < {n}, S[vi // 2, vk], {other}) * B[vk, vj]
"""


@pytest.mark.parametrize("other", [0, 1])
@pytest.mark.parametrize("n, m", [(11, 14), (12, 13), (5, 40), (16, 16), (16, 9)])
@pytest.mark.parametrize("target", ["qpu", "wse:4x4", "wse:3x5", "wse:8x8"])
def test_sums_over_more_steps_than_their_operand_has(target, n, m, other):
    """The wafer ended such a sum with the parts of the intermediate."""
    if m < n:
        text = PADDED.replace("vk < {n}", "vk < {m}")
    else:
        text = PADDED
    program = weft.script.from_source(text.format(n=n, m=m, other=other))
    random = np.random.default_rng(4)
    given = [random.integers(-9, 9, s).astype("int32") for s in [(8, n), (m, 5), (14, 5)]]
    assert right_or_refused(program, program, target, given, f"{n} of {m}") is None
