# SPDX-License-Identifier: Apache-2.0
"""Places that data chooses, checked while a program runs ("cpu:check_bounds=1"), and loops that are too long to be written out."""

import numpy as np
import pytest
import weft
from weft import script as T

HOSTS = ["cpu:check_bounds=1", "c:check_bounds=1"]
HEAD = """
@T.prim_func
def main(A: T.Buffer((7,), "float32"), X: T.Buffer((5,), "{t}"), Y: T.Buffer((5,), "int32"), O: T.Buffer((5,), "float32")):
    for i in {loop}:
        with T.block("O"):
            v = T.axis.{axis}(5, i)
            {body}
"""
# name: (statement, what it means for each place of the result in order)
BODIES = {
    "gather": ("O[v] = A[X[v]]", lambda a, x, y, o, v: o.__setitem__(v, a[x[v]])),
    "gather of a gather": ("O[v] = A[X[Y[v]]]", lambda a, x, y, o, v: o.__setitem__(v, a[x[y[v]]])),
    "scatter": ("O[X[v]] = A[v]", lambda a, x, y, o, v: o.__setitem__(x[v], a[v])),
    "sum": ("O[v] = A[X[v] + Y[v]]", lambda a, x, y, o, v: o.__setitem__(v, a[x[v] + y[v]])),
    "lazy": (
        'O[v] = T.if_then_else(X[v] >= 0 and X[v] < 7, A[X[v]], T.float32(-1))',
        lambda a, x, y, o, v: o.__setitem__(v, a[x[v]] if 0 <= x[v] < 7 else -1),
    ),
    "condition": (
        "if A[X[v]] > T.float32(0):\n                O[v] = A[X[v]]",
        lambda a, x, y, o, v: o.__setitem__(v, a[x[v]] if a[x[v]] > 0 else o[v]),
    ),
}  # fmt: skip


def program(body, t="int32", loop="range(5)", axis="opaque"):
    return T.from_source(HEAD.format(body=body, t=t, loop=loop, axis=axis))


def run(module, a, x, y):
    out = weft.zeros(5, dtype="float32")
    module["main"](weft.asarray(a), weft.asarray(x), weft.asarray(y), out)
    return out.numpy()


@pytest.mark.parametrize("target", HOSTS)
@pytest.mark.parametrize("name", BODIES)
def test_places_inside_and_outside(name, target):
    body, meaning = BODIES[name]
    rng = np.random.default_rng(5)
    a = rng.standard_normal(7).astype("float32")
    module = weft.build(program(body), target)
    most = 5 if name in ("scatter", "gather of a gather") else 7
    for _ in range(3):
        y = rng.integers(0, 1 if name == "sum" else 5, 5).astype("int32")
        x = rng.integers(0, most, 5).astype("int32")
        wanted = np.zeros(5, "float32")
        for v in range(5):
            meaning(a, x, y, wanted, v)
        np.testing.assert_array_equal(run(module, a, x, y), wanted)
    for bad in (-1, 7, 2**31 - 1, -(2**31)):
        x = np.array([0, 1, bad, 2, 3], "int32")
        y = np.arange(5, dtype="int32") * (name != "sum")
        if name == "lazy":
            wanted = np.where((x >= 0) & (x < 7), a[np.clip(x, 0, 6)], np.float32(-1))
            np.testing.assert_array_equal(run(module, a, x, y), wanted)
            continue
        with pytest.raises(weft.Fault) as fault:
            run(module, a, x, y)
        assert fault.value.code == "kernel.assertion"
        buffer, extent = ("O", 5) if name == "scatter" else ("A", 7)
        assert f'is outside of "{buffer}", whose extent is {extent}' in str(fault.value)


@pytest.mark.parametrize("target", HOSTS)
@pytest.mark.parametrize("t, bad", [("int64", 2**40), ("int64", -(2**63)), ("uint32", 2**32 - 1), ("uint64", 2**64 - 1), ("int8", -128)])  # fmt: skip
def test_types_of_places(t, bad, target):
    module = weft.build(program("O[v] = A[X[v]]", t), target)
    a, y = np.arange(7, dtype="float32"), np.zeros(5, "int32")
    x = np.array([6, 0, 3, 2, 1], t)
    np.testing.assert_array_equal(run(module, a, x, y), a[x.astype("int64")])
    x[4] = bad
    with pytest.raises(weft.Fault, match='outside of "A"'):
        run(module, a, x, y)


ROWS = """
@T.prim_func
def main(A: T.Buffer((256, 100), "float32"), X: T.Buffer((5,), "{t}"), O: T.Buffer((5, 100), "float32")):
    for i, j in T.grid(5, 100):
        with T.block("O"):
            v, w = T.axis.remap("SS", [i, j])
            O[v, w] = A[X[v], w]
"""


@pytest.mark.parametrize("target", ["cpu", "c", "opencl", "ref"])
@pytest.mark.parametrize(
    "t", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_every_type_of_numbers_is_a_place(t, target):
    """200 rows of 100 are more than 8 and 16 bits count."""
    if target == "opencl":
        from present import present

        present("opencl:0")
    device = "opencl:0" if target == "opencl" else target
    a = np.arange(25600, dtype="float32").reshape(256, 100)
    x = np.array([0, 1, 100, 126, min(np.iinfo(t).max, 255)], t)
    out = weft.zeros((5, 100), device=device)
    given = [weft.asarray(v, device=device) for v in (a, x)]
    weft.build(T.from_source(ROWS.format(t=t)), target)["main"](*given, out)
    np.testing.assert_array_equal(out.numpy(), a[x.astype("int64")])


@pytest.mark.parametrize("target", HOSTS)
@pytest.mark.parametrize("loop", ["T.parallel(5)", "T.vectorized(5)", "T.unroll(5)"])
def test_kinds_of_loops(loop, target):
    module = weft.build(program("O[v] = A[X[v]]", loop=loop, axis="spatial"), target)
    a, y = np.arange(7, dtype="float32"), np.zeros(5, "int32")
    x = np.array([6, 0, 3, 2, 1], "int32")
    np.testing.assert_array_equal(run(module, a, x, y), a[x])
    x[2] = 7
    with pytest.raises(weft.Fault, match='outside of "A"'):
        run(module, a, x, y)


@pytest.mark.parametrize("target", HOSTS)
def test_a_while_loop_that_walks_off(target):
    text = """
@T.prim_func
def main(X: T.Buffer((6,), "int32"), O: T.Buffer((1,), "int32")):
    O[0] = 0
    while X[O[0]] != 0:
        O[0] = X[O[0]]
"""
    module = weft.build(T.from_source(text), target)
    out = weft.zeros(1, dtype="int32")
    module["main"](weft.asarray(np.array([3, 0, 1, 2, 9, 9], "int32")), out)
    assert out.numpy()[0] == 1
    with pytest.raises(weft.Fault, match='outside of "X", whose extent is 6'):
        module["main"](weft.asarray(np.array([3, 0, 6, 2, 9, 9], "int32")), out)


@pytest.mark.parametrize("target", HOSTS)
def test_extents_that_a_call_decides(target):
    text = """
@T.prim_func
def main(a: T.handle, x: T.handle, o: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, 3), "float32")
    X = T.match_buffer(x, (m,), "int32")
    O = T.match_buffer(o, (m, 3), "float32")
    for i, j in T.grid(m, 3):
        with T.block("O"):
            v, w = T.axis.remap("SS", [i, j])
            O[v, w] = A[X[v], w]
"""
    module = weft.build(T.from_source(text), target)
    a = np.arange(33, dtype="float32").reshape(11, 3)
    x = np.array([10, 0, 4], "int32")
    out = weft.zeros((3, 3))
    module["main"](weft.asarray(a), weft.asarray(x), out)
    np.testing.assert_array_equal(out.numpy(), a[x])
    with pytest.raises(weft.Fault, match='index 0 of A.* is outside of "A", whose extent is n'):
        module["main"](weft.asarray(a[:10]), weft.asarray(x), out)


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_what_is_certain_is_not_asked(target):
    from weft import te

    m, k, n = 13, 9, 7
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    gemm = te.create_prim_func([A, B, C])
    assert (
        weft.build(gemm, f"{target}:check_bounds=1").source() == weft.build(gemm, target).source()
    )


def test_targets_whose_kernels_cannot_end_with_an_error_say_so():
    for target in ("opencl", "cuda:arch=sm_80", "metal"):
        with pytest.raises(weft.Error, match='has no option "check_bounds"'):
            weft.build(
                program("O[v] = A[X[v]]"),
                target + (",check_bounds=1" if ":" in target else ":check_bounds=1"),
            )


NEST = """
@T.prim_func
def main(A: T.Buffer(({n}, {n}), "int32"), B: T.Buffer(({n}, {n}), "int32")):
    for i in T.unroll({n}):
        for j in T.unroll({n}):
            with T.block("B"):
                v, w = T.axis.remap("SS", [i, j])
                B[v, w] = A[v, w] * 3 + T.int32(v)
"""


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_a_nest_too_long_to_be_written_out_stays_a_loop(target):
    n = 3000
    module = weft.build(T.from_source(NEST.format(n=n)), target)
    notes = [note for note in module.notes if "not unrolled" in note]
    assert len(notes) == 2, module.notes
    assert '"j" is not unrolled: 3000 iterations of 1 statement are more than the 1024' in notes[1]
    a = np.random.default_rng(1).integers(-1000, 1000, (n, n)).astype("int32")
    b = weft.zeros((n, n), dtype="int32")
    module["main"](weft.asarray(a), b)
    np.testing.assert_array_equal(b.numpy(), a * 3 + np.arange(n, dtype="int32")[:, None])


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_the_inner_loop_is_written_out_first(target):
    n = 40
    module = weft.build(T.from_source(NEST.format(n=n)), target)
    notes = [note for note in module.notes if "not unrolled" in note]
    assert len(notes) == 1 and '"i" is not unrolled: 40 iterations of 40 statements' in notes[0]
    a = np.random.default_rng(2).integers(-1000, 1000, (n, n)).astype("int32")
    b = weft.zeros((n, n), dtype="int32")
    module["main"](weft.asarray(a), b)
    np.testing.assert_array_equal(b.numpy(), a * 3 + np.arange(n, dtype="int32")[:, None])
    assert not [
        x for x in weft.build(T.from_source(NEST.format(n=30)), target).notes if "unrolled" in x
    ]


def test_cards_have_more_room():
    bound = NEST.replace("(({n}, {n})", "((32, {n}, {n})").replace(
        "B[v, w] = A[v, w] * 3", "B[u, v, w] = A[u, v, w] * 3"
    )
    bound = bound.replace(
        "    for i in", '    for t in T.thread_binding(32, thread="threadIdx.x"):\n     for i in'
    )
    bound = bound.replace(
        'v, w = T.axis.remap("SS", [i, j])', 'u, v, w = T.axis.remap("SSS", [t, i, j])'
    )
    for n, marks in ((120, 2), (130, 1)):
        text = weft.build(T.from_source(bound.format(n=n)), "metal").source()
        assert text.count("#pragma unroll") == marks, text
