# SPDX-License-Identifier: Apache-2.0
"""Iterators that do not begin at 0 and results that are stored backwards, on the simulated machines."""

import numpy as np
import pytest

import weft
from weft import _core, te

MACHINES = ["qpu", "vta", "wse:4x4", "wse:3x5"]

PART = """
@T.prim_func
def main(A: T.Buffer(({m}, {n}), "int32"), B: T.Buffer(({m}, {n}), "int32")):
    for i, j in T.grid({m} - {first}, {n}):
        with T.block("B"):
            vi = T.axis.spatial(({first}, {m}), {first} + i)
            vj = T.axis.spatial({n}, j)
            B[vi, vj] = A[vi, vj] * 2 + 1
"""
BACKWARDS = """
@T.prim_func
def main(A: T.Buffer(({m}, {n}), "int32"), B: T.Buffer(({m}, {n}), "int32")):
    for i, j in T.grid({m}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[{m} - 1 - vi, {n} - 1 - vj] = A[vi, vj] * 2
"""


def run(program, machine, *given):
    """The last array; None where the program is refused."""
    if machine.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {machine} target")
    refusal = weft.accepts(program, machine)
    if refusal is not None:
        assert refusal.code.startswith(("vta.accepts.", "stages.", "wse.lower.")), refusal
        return None
    held = [weft.asarray(a, device=machine) for a in given]
    weft.build(program, target=machine)["main"](*held)
    return held[-1].numpy()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("m, n, first", [(5, 9, 2), (17, 20, 1), (3, 40, 39), (33, 16, 7)])
def test_sums_from_a_later_element_on(machine, m, n, first):
    a = te.placeholder((m, n), "int32", name="A")
    k = te.reduce_axis((first, n), name="k")
    rows = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), name="C")
    x = np.random.default_rng(n).integers(-99, 99, (m, n)).astype("int32")
    got = run(te.create_prim_func([a, rows]), machine, x, np.zeros(m, "int32"))
    np.testing.assert_array_equal(got, x[:, first:].sum(1))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("m, n, first", [(5, 9, 2), (17, 3, 1), (40, 7, 39)])
def test_results_from_a_later_element_on(machine, m, n, first):
    x = np.random.default_rng(m).integers(-99, 99, (m, n)).astype("int32")
    program = weft.script.from_source(PART.format(m=m, n=n, first=first))
    got = run(program, machine, x, np.full((m, n), 7, "int32"))
    if machine == "vta":  # computes all elements of a result
        assert got is None
        return
    np.testing.assert_array_equal(got[first:], x[first:] * 2 + 1)
    np.testing.assert_array_equal(got[:first], 7)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("m, n", [(13, 7), (1, 13), (5, 1), (9, 10), (48, 33)])
def test_results_stored_backwards(machine, m, n):
    """Parts that do not divide: the last PE's, the last vector's."""
    x = np.random.default_rng(m).integers(-99, 99, (m, n)).astype("int32")
    program = weft.script.from_source(BACKWARDS.format(m=m, n=n))
    got = run(program, machine, x, x * 0)
    if machine == "vta":
        assert got is None
        return
    np.testing.assert_array_equal(got, x[::-1, ::-1] * 2)
