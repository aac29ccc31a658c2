# SPDX-License-Identifier: Apache-2.0
"""Programs that say themselves which loops run side by side (bound, parallel, vectorized), and sums in unusual forms, on the
simulated machines: what `weft.accepts` takes builds and computes what the reference interpreter computes; what it refuses,
`weft.build` refuses with the same code."""

import numpy as np
import pytest

import weft
from weft import _core

SUM = """
@T.prim_func
def main(A: T.Buffer((5, {n}, {m}), "int32"), C: T.Buffer((5,), "int32")):
    for i in range(5):
        for z in {kind}:
            for j in range({m}):
                with T.block("s"):
                    v = T.axis.spatial(5, i)
                    k0 = T.axis.reduce({n}, z)
                    k = T.axis.reduce({m}, {inner})
                    with T.init():
                        C[v] = T.int32(0)
                    C[v] = C[v] + A[v, k0, k]
"""
NESTED = """
@T.prim_func
def main(A: T.Buffer((6, 4), "int32"), C: T.Buffer((6, 4), "int32")):
    for i in {outer}:
        for j in {inner}:
            with T.block("s"):
                v, w = T.axis.remap("SS", [i, j])
                C[v, w] = A[v, w] * 3 + 1
"""
UNIT_INSIDE = """
@T.prim_func
def main(A: T.Buffer((1, 40), "int32"), C: T.Buffer((1,), "int32")):
    for k in range(40):
        for i in range(1):
            with T.block("s"):
                v = T.axis.spatial(1, i)
                r = T.axis.reduce(40, k)
                with T.init():
                    C[v] = T.int32(0)
                C[v] = C[v] + A[v, r]
"""
CONSTANT_TERM = """
@T.prim_func
def main(A: T.Buffer((1,), "int32"), C: T.Buffer((1,), "int32")):
    for i in range(1):
        for k in range(20):
            with T.block("s"):
                v = T.axis.spatial(1, i)
                r = T.axis.reduce(20, k)
                with T.init():
                    C[v] = T.int32(4)
                C[v] = C[v] + T.int32({term})
"""
NO_STEP = """
@T.prim_func
def main(A: T.Buffer((1,), "int32"), C: T.Buffer((0, 3), "int32")):
    for i in range(0):
        for j in T.thread_binding(3, thread="qpu"):
            with T.block("s"):
                v, w = T.axis.remap("SS", [i, j])
                C[v, w] = A[0]
"""
SKIPPED = """
@T.prim_func
def main(A: T.Buffer((3, 8), "int32"), C: T.Buffer((3,), "int32")):
    for i in range(3):
        for k in T.vectorized(8):
            with T.block("s"):
                v = T.axis.spatial(3, i)
                r = T.axis.reduce(8, k)
                T.where({c})
                with T.init():
                    C[v] = T.int32(100)
                C[v] = T.min(C[v], A[v, r])
"""
NO_LANES = """
@T.prim_func
def main(A: T.Buffer((3, 0), "int32"), C: T.Buffer((3, 0), "int32")):
    for i in range(3):
        for j in {kind}:
            with T.block("s"):
                v, w = T.axis.remap("SS", [i, j])
                C[v, w] = A[v, w]
"""
SYMBOLIC_LANES = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for i in T.thread_binding(n, thread="lane"):
        with T.block("s"):
            v = T.axis.spatial(n, i)
            C[v] = A[v]
"""
DATA_DECIDE = """
@T.prim_func
def main(P: T.Buffer((7,), "int32"), A: T.Buffer((7,), "int32"), D: T.Buffer((5,), "int32")):
    for i in range(5):
        with T.block("picked"):
            u = T.axis.spatial(5, i)
            D[u] = A[T.max(T.min(P[{index}], {last}), 0)]
"""


def bound(n, axis):
    return f'T.thread_binding({n}, thread="{axis}")'


def right_or_refused(text, target, shapes):
    """None, or the code of the refusal."""
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    program = weft.script.from_source(text)
    refusal = weft.accepts(program, target)
    if refusal is not None:
        with pytest.raises(weft.Error) as caught:
            weft.build(program, target=target)
        assert caught.value.code == refusal.code
        return refusal.code
    given = [np.arange(int(np.prod(s)), dtype="int32").reshape(s) % 13 - 5 for s in shapes]
    results = []
    for device in ("ref", target):
        arrays = [weft.asarray(a, device=device) for a in given]
        weft.build(program, target=device)["main"](*arrays)
        results.append([a.numpy() for a in arrays])
    for want, got in zip(*results):
        np.testing.assert_array_equal(got, want)
    return None


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17])
@pytest.mark.parametrize("m", [1, 50])
def test_sums_over_lanes(n, m):
    """Of one point too: lanes beyond it do not join."""
    for kind in (f"T.vectorized({n})", bound(n, "lane")):
        code = right_or_refused(
            SUM.format(n=n, m=m, kind=kind, inner="j"), "qpu", [(5, n, m), (5,)]
        )
        assert code == ("lower.axis.limit" if n > 16 and "thread" in kind else None)


@pytest.mark.parametrize("n", [1, 4])
def test_sums_that_begin_with_another_term(n):
    """A result begins anew at its first term, so terms in another order are no sum of all."""
    text = SUM.format(n=n, m=9, kind=f"T.vectorized({n})", inner="8 - j")
    assert right_or_refused(text, "qpu", [(5, n, 9), (5,)]) == "lower.cross_thread.first"
    text = SUM.format(n=n, m=9, kind=f"range({n})", inner="8 - j")
    assert right_or_refused(text, "qpu", [(5, n, 9), (5,)]) is None


@pytest.mark.parametrize(
    "outer, inner",
    [
        ("T.vectorized(6)", bound(4, "lane")),
        (bound(6, "lane"), "T.vectorized(4)"),
        ("T.vectorized(6)", "T.vectorized(4)"),
        ("T.parallel(6)", "T.parallel(4)"),
        ("T.parallel(6)", bound(4, "qpu")),
        (bound(6, "qpu"), "T.parallel(4)"),
        ("T.parallel(6)", "T.vectorized(4)"),
    ],
)
def test_an_axis_is_bound_once_in_a_nest(outer, inner):
    text = NESTED.format(outer=outer, inner=inner)
    assert right_or_refused(text, "qpu", [(6, 4), (6, 4)]) is None


@pytest.mark.parametrize(
    "text, shapes, code",
    [
        (SUM.format(n=2, m=3, kind=bound(2, "qpu"), inner="j"), [(5, 2, 3), (5,)], "verify.race"),
        (NESTED.format(outer=bound(6, "lane"), inner=bound(4, "lane")), [], "qpu.accepts.axis"),
        (NESTED.format(outer=bound(4, "qpu"), inner=bound(4, "qpu")), [], "qpu.accepts.axis"),
        (SUM.format(n=13, m=3, kind=bound(13, "qpu"), inner="j"), [], "lower.axis.limit"),
        (SYMBOLIC_LANES, [], "qpu.accepts.lanes"),
        (SKIPPED.format(c="k > 0"), [(3, 8), (3,)], "lower.cross_thread.first"),
        (SKIPPED.format(c="k < 5"), [(3, 8), (3,)], None),
        (NO_STEP, [(1,), (0, 3)], None),
        (NO_STEP.replace('"qpu"', '"lane"'), [(1,), (0, 3)], None),
        (NO_LANES.format(kind="T.vectorized(0)"), [(3, 0), (3, 0)], None),
        (NO_LANES.format(kind=bound(0, "lane")), [(3, 0), (3, 0)], "qpu.accepts.lanes"),
        (UNIT_INSIDE, [(1, 40), (1,)], None),
        (CONSTANT_TERM.format(term=0), [(1,), (1,)], None),
        (CONSTANT_TERM.format(term=2), [(1,), (1,)], None),
    ],
    ids="""race nested equal limit symbolic skipped tail nothing nothing-lane no-vector no-lane unit
    constant-0 constant-2""".split(),
)
def test_accepts_is_exact(text, shapes, code):
    assert right_or_refused(text, "qpu", shapes) == code


@pytest.mark.parametrize("target", ["qpu", "vta", "wse:4x4"])
@pytest.mark.parametrize(
    "index", ["u", "u + 2", "T.min(u, 3)", "u // 2", "P[u] % 7", "T.max(u - 2, 0)"]
)
@pytest.mark.parametrize("last", [6, 0])
def test_data_that_decide_an_index_are_read_anywhere(target, index, last):
    """With `last` 0 the outer index is a constant after all; the wafer's planner ended the process."""
    text = DATA_DECIDE.format(index=index, last=last)
    code = right_or_refused(text, target, [(7,), (7,), (5,)])
    assert target == "vta" or code is None, code
