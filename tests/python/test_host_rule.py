# SPDX-License-Identifier: Apache-2.0
"""Programs without a schedule on processors: reductions get one from rules; results beside NumPy, at sizes that no vector divides."""

import numpy as np
import pytest
import weft
from weft import te
from weft import script as T

SIZES = [(5, 7, 3), (33, 50, 129), (1, 100, 100), (100, 1, 300), (17, 8, 9), (200, 37, 64)]


def run(program, arguments, shape, target="cpu", dtype="float32"):
    module = weft.build(program, target=target, tuned=False)
    out = weft.zeros(shape, dtype=dtype)
    module["main"](*[weft.asarray(a) for a in arguments], out)
    return out.numpy(), " ".join(module.notes)


def rules_of(notes):
    return [
        word for word in ("host_map", "host_rows", "host_tile", "host_product") if word in notes
    ]


def draw(*shape, dtype="float32"):
    rng = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-9, 9, shape).astype(dtype)


def close(got, wanted, terms):
    assert np.abs(got - wanted).max() <= 4e-7 * terms**0.5 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("target", ["cpu", "c"])
@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize("turned", [False, True])
def test_products(target, m, n, k, turned):
    a, b = draw(m, k), draw(n, k) if turned else draw(k, n)
    A, B = te.placeholder(a.shape, name="A"), te.placeholder(b.shape, name="B")
    r = te.reduce_axis(k, name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * (B[j, r] if turned else B[r, j]), axis=r), name="C")  # fmt: skip
    got, _ = run(te.create_prim_func([A, B, C]), [a, b], (m, n), target)
    close(got, a.astype("float64") @ (b.T if turned else b).astype("float64"), k)


@pytest.mark.parametrize("target", ["cpu", "c"])
@pytest.mark.parametrize("m, k", [(7, 1000), (129, 33), (1, 4096), (64, 80)])
def test_rows_and_columns(target, m, k):
    a, x = draw(m, k), draw(k)
    A, X = te.placeholder((m, k), name="A"), te.placeholder((k,), name="x")
    r, s = te.reduce_axis(k, name="r"), te.reduce_axis(m, name="s")
    cases = [
        ([A, X, te.compute((m,), lambda i: te.sum(A[i, r] * X[r], axis=r), name="y")], [a, x], a @ x.astype("float64"), "host_rows"),
        ([A, te.compute((m,), lambda i: te.max(A[i, r], axis=r), name="y")], [a], a.max(1), "host_rows"),
        ([A, te.compute((k,), lambda j: te.sum(A[s, j], axis=s), name="y")], [a], a.sum(0, dtype="float64"), "host_tile"),
    ]  # fmt: skip
    for arguments, values, wanted, rule in cases:
        got, notes = run(te.create_prim_func(arguments), values, wanted.shape, target)
        close(got, wanted, max(m, k))
        assert rules_of(notes) == [rule], notes


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_other_types(dtype):
    a, b = draw(19, 45, dtype=dtype), draw(45, 27, dtype=dtype)
    A, B = te.placeholder(a.shape, dtype, name="A"), te.placeholder(b.shape, dtype, name="B")
    r = te.reduce_axis(45, name="k")
    C = te.compute((19, 27), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    got, notes = run(te.create_prim_func([A, B, C]), [a, b], (19, 27), dtype=dtype)
    assert rules_of(notes) == ["host_product"]
    np.testing.assert_allclose(got, a @ b, rtol=1e-12)


def test_a_net_has_vectors_everywhere():
    """Beside a scheduled reduction the compiler gives plain loops no vectors, so they get their own."""
    x, w, v = draw(20, 45), draw(45, 70), draw(70, 40)
    X, W, V = (te.placeholder(d.shape, name=n) for d, n in ((x, "X"), (w, "W"), (v, "V")))
    r, s = te.reduce_axis(45, name="r"), te.reduce_axis(70, name="s")
    H = te.compute((20, 70), lambda i, j: te.sum(X[i, r] * W[r, j], axis=r), name="H")
    R = te.compute((20, 70), lambda i, j: te.max(H[i, j], te.const(0, "float32")), name="R")
    Y = te.compute((20, 40), lambda i, j: te.sum(R[i, s] * V[s, j], axis=s), name="Y")
    got, notes = run(te.create_prim_func([X, W, V, Y]), [x, w, v], (20, 40))
    close(got, np.maximum(x.astype("float64") @ w, 0) @ v, 115)
    assert "H: host_product; R: host_map; Y: host_product" in notes


def product():
    A, B = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="B")
    r = te.reduce_axis(32, name="k")
    return te.create_prim_func([A, B, te.compute((32, 32), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")])  # fmt: skip


@pytest.mark.parametrize("step", ["split", "reorder", "unroll", "annotate"])
def test_a_scheduled_program_stays(step):
    sch = weft.Schedule(product())
    i, j, k = sch.get_loops(sch.get_block("C"))
    {
        "split": lambda: sch.split(i, [None, 8]),
        "reorder": lambda: sch.reorder(i, k, j),
        "unroll": lambda: sch.unroll(k),
        "annotate": lambda: sch.annotate(i, "pragma", 1),
    }[step]()
    assert not weft.build(sch.func, target="cpu", tuned=False).notes


def test_loops_in_an_order_of_their_own_stay():
    @T.prim_func
    def main(A: T.Buffer((8, 64), "float32"), y: T.Buffer((8,), "float32")):
        for k, i in T.grid(64, 8):
            with T.block("y"):
                v_k, v_i = T.axis.remap("RS", [k, i])
                with T.init():
                    y[v_i] = T.float32(0)
                y[v_i] = y[v_i] + A[v_i, v_k]

    a = draw(8, 64)
    got, notes = run(main, [a], (8,))
    close(got, a.sum(1, dtype="float64"), 64)


def test_the_rules_steps_keep_the_meaning():
    """The interpreter runs what the rules made."""
    a, b = draw(9, 21), draw(21, 11)
    A, B = te.placeholder(a.shape, name="A"), te.placeholder(b.shape, name="B")
    r = te.reduce_axis(21, name="k")
    program = te.create_prim_func([A, B, te.compute((9, 11), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")])  # fmt: skip
    module = weft.build(program, target="cpu", tuned=False, validate=True)
    out = weft.zeros((9, 11), dtype="float32")
    module["main"](weft.asarray(a), weft.asarray(b), out)
    close(out.numpy(), a.astype("float64") @ b, 21)


@pytest.mark.parametrize("dtype, lanes", [("float32", 8), ("float64", 4), ("int32", 8)])
def test_products_of_target_c_are_vectors(dtype, lanes):
    """Without an option the running sums of a tile are an array of vectors; vector_bytes=0 leaves plain C."""
    a, b = draw(23, 45, dtype=dtype), draw(45, 70, dtype=dtype)
    A, B = te.placeholder(a.shape, dtype, name="A"), te.placeholder(b.shape, dtype, name="B")
    r = te.reduce_axis(45, name="k")
    program = te.create_prim_func(
        [A, B, te.compute((23, 70), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")]
    )
    module = weft.build(program, target="c", tuned=False)
    text = module.source()
    kind = "i" if dtype == "int32" else "f"
    assert f"weft_{kind}{a.itemsize * 8}x{lanes} C_pad[" in text, text
    assert "float lanes[" not in text
    assert "vector_size" not in weft.build(program, "c:vector_bytes=0", tuned=False).source()
    got, _ = run(program, [a, b], (23, 70), "c", dtype)
    np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("m, k", [(256, 256), (33, 250), (5, 64), (1, 1000)])
def test_rows_end_in_halves(m, k):
    """Partial sums of a row are joined pairwise, by vectors of half the width each time."""
    a, x = draw(m, k), draw(k)
    A, X = te.placeholder((m, k), name="A"), te.placeholder((k,), name="x")
    r = te.reduce_axis(k, name="r")
    program = te.create_prim_func(
        [A, X, te.compute((m,), lambda i: te.sum(A[i, r] * X[r], axis=r), name="y")]
    )
    text = weft.build(program, target="c", tuned=False).source()
    assert "weft_f32x4 " in text and "weft_f32x2 " in text, text
    for target in ("cpu", "c"):
        got, notes = run(program, [a, x], (m,), target)
        assert rules_of(notes) == ["host_rows"]
        close(got, a @ x.astype("float64"), k)


def scheduled(tensors):
    """The program that the rules make for vectors of 32 bytes, as text."""
    seen = []
    weft.build(te.create_prim_func(tensors), "c:vector_bytes=32", after=lambda _, f, __: seen.append(str(f)), tuned=False)  # fmt: skip
    return seen[0]


def test_steps_of_products():
    """Threads share panels of columns from eight panels on, else rows; the second operand is packed; what follows takes 32 lanes."""
    for n, shared in ((512, "for j_0 in T.parallel(8):"), (448, "for i_0 in T.parallel(22):")):
        A, B = te.placeholder((128, 64), name="A"), te.placeholder((64, n), name="B")
        r = te.reduce_axis(64, name="k")
        C = te.compute((128, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")  # noqa: B023
        D = te.compute((128, n), lambda i, j: C[i, j] + 1.0, name="D")  # noqa: B023
        text = scheduled([A, B, D])
        assert text.count("T.parallel(") == 1 and shared in text, text
        assert f"B_global = T.alloc_buffer(({n // 16}, 64, 16)" in text
        assert "T.vectorized(32)" in text[: text.index('T.block("D")')].rsplit("\n", 2)[-2]


@pytest.mark.parametrize("rows", [(), (7,)])
def test_steps_of_rows(rows):
    """Sums in 32 lanes, halved four times: each half starts as a vector too, and a sum of everything has a loop to stand in."""
    A, r = te.placeholder((*rows, 1000), name="A"), te.reduce_axis(1000, name="r")
    text = scheduled([A, te.compute(rows, lambda *i: te.sum(A[(*i, r)], axis=r), name="y")])
    outer = "    for i0 in range(7):\n" if rows else "    for u in range(1):\n"
    assert outer in text
    for lanes in (32, 16, 8, 4, 2):
        assert f"        for ax0_init in T.vectorized({lanes}):\n" in text
        assert f"            for ax0 in T.vectorized({lanes}):\n" in text
