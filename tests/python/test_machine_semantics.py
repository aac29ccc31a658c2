# SPDX-License-Identifier: Apache-2.0
"""Every kind of condition, binding, loop and annotation through every target that runs here: the reference interpreter's
numbers, or a refusal that names the construct. Nothing is dropped."""

import numpy as np
import pytest

import weft
from weft import _core

TARGETS = ["cpu", "c", "opencl", "qpu", "vta", "wse:4x4"]
N = 24

# name, words of which a refusal has one, and the loops with the block's body; Y is full of 77 before.
ROWS = [
    ("all", "", "for i in range(24):", ["v = T.axis.spatial(24, i)", "{S}"]),
    ("where below", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i < 5)", "{S}"]),
    ("where above", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i >= 9)", "{S}"]),
    ("where equal", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i == 7)", "{S}"]),
    ("where not equal", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i != 7)", "{S}"]),
    ("where odd", "where condition predicate modulo", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i % 2 == 1)", "{S}"]),
    ("where between", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i >= 3 and i < 17)", "{S}"]),
    ("where either", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i < 3 or i >= 17)", "{S}"]),
    ("where of a tail", "where condition predicate", "for i, j in T.grid(4, 7):", ["v = T.axis.spatial(24, i * 7 + j)", "T.where(i * 7 + j < 24)", "{S}"]),
    ("where of data", "where condition predicate data", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(X[i] < 0)", "{S}"]),
    ("where beyond a number", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i > 9)", "{S}"]),
    ("where up to a number", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i <= 9)", "{S}"]),
    ("where two ends", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i < 5 and i < 9 and i <= 6)", "{S}"]),
    ("where two beginnings", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i >= 9 and i > 4 and 12 > i)", "{S}"]),
    ("truncated quotient", "binding division", "for i in range(24):", ["v = T.axis.spatial(24, T.truncdiv(i - 11, 2) + 6)", "{S}"]),
    ("truncated remainder", "binding division modulo", "for i in range(24):", ["v = T.axis.spatial(24, T.truncmod(i - 11, 4) + 5)", "{S}"]),
    ("where never", "where condition predicate", "for i in range(24):", ["v = T.axis.spatial(24, i)", "T.where(i < 0)", "{S}"]),
    ("split", "binding", "for i, j in T.grid(4, 6):", ["v = T.axis.spatial(24, i * 6 + j)", "{S}"]),
    ("shifted", "binding offset shift", "for i in range(19):", ["v = T.axis.spatial((0, 24), i + 5)", "{S}"]),
    ("scaled", "binding scale stride", "for i in range(12):", ["v = T.axis.spatial(24, i * 2)", "{S}"]),
    ("reversed", "binding stride", "for i in range(24):", ["v = T.axis.spatial(24, 23 - i)", "{S}"]),
    ("shorter", "binding extent loop", "for i in range(5):", ["v = T.axis.spatial(24, i)", "{S}"]),
    ("begins later", "binding loop begin", "for i in range(3, 20):", ["v = T.axis.spatial(24, i)", "{S}"]),
    ("repeated", "repeat loop binding", "for r, i in T.grid(3, 24):", ["v = T.axis.spatial(24, i)", "{S}"]),
    ("if around", "if condition", "for i in range(24):\n        if i < 5:", ["v = T.axis.spatial(24, i)", "{S}"]),
    ("parallel", "parallel", "for i in T.parallel(24):", ["v = T.axis.spatial(24, i)", "{S}"]),
    ("unrolled", "unroll", "for i in T.unroll(24):", ["v = T.axis.spatial(24, i)", "{S}"]),
    ("vectorized", "vector", "for i in T.vectorized(24):", ["v = T.axis.spatial(24, i)", "{S}"]),
    ("block axis", "blockIdx.x bind axis", 'for i in T.thread_binding(24, thread="blockIdx.x"):', ["v = T.axis.spatial(24, i)", "{S}"]),
    ("thread axis", "threadIdx.x bind axis", 'for i in T.thread_binding(24, thread="threadIdx.x"):', ["v = T.axis.spatial(24, i)", "{S}"]),
    ("pe axis", "pe.x bind axis", 'for i in T.thread_binding(4, thread="pe.x"):\n        for j in range(6):', ["v = T.axis.spatial(24, i * 6 + j)", "{S}"]),
    ("qpu axis", "qpu bind axis", 'for i in T.thread_binding(4, thread="qpu"):\n        for j in range(6):', ["v = T.axis.spatial(24, i * 6 + j)", "{S}"]),
    ("vthread axis", "vthread binding axis", 'for i in T.thread_binding(4, thread="vthread"):\n        for j in range(6):', ["v = T.axis.spatial(24, i * 6 + j)", "{S}"]),
    ("unknown annotation", "", 'for i in T.serial(24, annotations={"nobody.knows": 1}):', ["v = T.axis.spatial(24, i)", "{S}"]),
    ("pragma", "", 'for i in T.serial(24, annotations={"pragma_unroll_explicit": 1}):', ["v = T.axis.spatial(24, i)", "{S}"]),
    ("block annotation", "", "for i in range(24):", ["v = T.axis.spatial(24, i)", 'T.block_attr({"nobody.knows": 1})', "{S}"]),
]  # fmt: skip


def text(loops, body, dtype, statement):
    depth = loops.count("\n")
    lines = [
        "@T.prim_func",
        f'def main(X: T.Buffer(({N},), "{dtype}"), Y: T.Buffer(({N},), "{dtype}")):',
        "    " + loops,
        " " * (8 + 4 * depth) + 'with T.block("y"):',
    ]
    return "\n".join(lines + [" " * (12 + 4 * depth) + x.replace("{S}", statement) for x in body])


def dtype_of(target):
    return "int32" if target.startswith("vta") else "float32"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("row", ROWS, ids=[r[0] for r in ROWS])
def test_right_numbers_or_a_refusal_by_name(target, row):
    name, words, loops, body = row
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    if target == "opencl" and not weft.device("opencl:0").available:
        pytest.skip(weft.device("opencl:0").reason)
    dtype = dtype_of(target)
    program = weft.script.from_source(text(loops, body, dtype, "Y[v] = X[v] * 2 + 3"))
    given = (np.arange(N) * 5 % 17 - 8).astype(dtype)
    wanted = np.full(N, 77, dtype)
    reference = [weft.asarray(a, device="ref") for a in (given, wanted)]
    try:
        weft.build(program, target="ref")["main"](*reference)
    except weft.Error as error:
        pytest.fail(f"the reference refuses: {error}")
    wanted = reference[1].numpy()
    try:
        module = weft.build(program, target=target)
    except weft.Error as error:
        assert words, f"{name} on {target}: {error}"
        assert any(w in str(error) for w in words.split()), f"{name} on {target}: {error}"
        return
    arrays = [
        weft.asarray(a, device="opencl:0" if target == "opencl" else target)
        for a in (given, np.full(N, 77, dtype))
    ]
    module["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), wanted, err_msg=f"{name} on {target}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("condition", ["v < 5", "v != 7", "X[v] > {zero}"])
def test_both_branches_of_an_if(target, condition):
    """Both stores run, or the block is refused: none is left out."""
    dtype = dtype_of(target)
    zero = f"T.{dtype}(0)"
    program = weft.script.from_source(f"""
@T.prim_func
def main(X: T.Buffer((24,), "{dtype}"), Y: T.Buffer((24,), "{dtype}")):
    for i in range(24):
        with T.block("Y"):
            v = T.axis.spatial(24, i)
            if {condition.format(zero=zero)}:
                Y[v] = X[v] * T.{dtype}(2) + T.{dtype}(3)
            else:
                Y[v] = X[v] - T.{dtype}(1)
""")
    x, v = (np.arange(24) * 5 % 17 - 8).astype(dtype), np.arange(24)
    holds = {"v < 5": v < 5, "v != 7": v != 7}.get(condition, x > 0)
    try:
        module = weft.build(program, target=target)
    except weft.Error as error:
        assert target in ("vta", "wse:4x4") and error.code == "stages.body", error
        return
    device = "opencl:0" if target == "opencl" else target
    arrays = [weft.asarray(a, device=device) for a in (x, 0 * x)]
    module["main"](*arrays)
    np.testing.assert_array_equal(arrays[1].numpy(), np.where(holds, x * 2 + 3, x - 1))
