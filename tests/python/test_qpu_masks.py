# SPDX-License-Identifier: Apache-2.0
"""Lanes of a QPU that take no part in a read, and rows that are computed from rows before them."""

import numpy as np
import pytest

import weft
from weft import te

pytestmark = pytest.mark.targets("qpu")


def run(program, *arrays):
    """The last array after a call; the device faults at reads outside arrays."""
    held = [weft.asarray(a, device="qpu") for a in arrays]
    weft.build(program, target="qpu")["main"](*held)
    return held[-1].numpy()


@pytest.mark.parametrize("n", [16, 21, 40])
def test_lanes_that_are_out_read_nothing(n):
    """Their positions lie far outside: once behind, once before the array."""
    A = te.placeholder((7,), "int32", name="A")
    X = te.placeholder((n,), "int32", name="X")
    B = te.compute(
        (n,),
        lambda i: te.if_then_else(te.all(X[i] >= 0, X[i] < 7), A[X[i]] * 3, te.const(-1, "int32")),
        name="B",
    )
    rng = np.random.default_rng(n)
    for wild in (1 << 28, -(1 << 28)):
        for share in (0.0, 0.3, 1.0):  # of lanes that are out
            x = np.where(rng.random(n) < share, wild, rng.integers(0, 7, n)).astype("int32")
            a = rng.integers(-99, 99, 7).astype("int32")
            got = run(te.create_prim_func([A, X, B]), a, x, np.zeros(n, "int32"))
            inside = (x >= 0) & (x < 7)
            np.testing.assert_array_equal(got, np.where(inside, a[np.where(inside, x, 0)] * 3, -1))


ROWS = """
@T.prim_func
def main(W: T.Buffer(({k}, 16), "int32"), A: T.Buffer(({rows}, {k}, 16), "int32")):
    for lane in T.thread_binding(16, thread="lane"):
        for i in T.serial({rows} - 1):
            S = T.allocate((1,), "int32", scope="local")
            S[0] = 0
            for j in T.serial({k}):
                S[0] = S[0] + A[i, j, lane] * W[j, lane]
            A[i + 1, {to}, lane] = S[0]
"""


@pytest.mark.parametrize("rows, k, to", [(9, 5, 0), (6, 40, 39), (2, 7, 3), (4, 3, 1)])
def test_rows_that_follow_from_the_row_before(rows, k, to):
    """Rows whose sums share a factor are computed side by side only where none reads what another stores."""
    rng = np.random.default_rng(rows)
    w, a = (rng.integers(-3, 4, s).astype("int32") for s in ((k, 16), (rows, k, 16)))
    got = run(weft.script.from_source(ROWS.format(rows=rows, k=k, to=to)), w, a)
    for i in range(rows - 1):
        a[i + 1, to] = (a[i] * w).sum(0)
    np.testing.assert_array_equal(got, a)


def test_branches_of_a_loop_that_is_written_out():
    program = weft.script.from_source("""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for i in range(64):
        L = T.allocate((3,), "int32", scope="local")
        for j in range(3):
            if j == 0:
                L[j] = A[i] * 2
            else:
                L[j] = A[i] + T.Cast("int32", j)
        B[i] = L[0] * 100 + L[1] * 10 - L[2]
""")
    x = np.arange(-20, 44, dtype="int32")
    np.testing.assert_array_equal(run(program, x, 0 * x), x * 200 + (x + 1) * 10 - (x + 2))
