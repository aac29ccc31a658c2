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


def convolution(channels_last, n, ci, co, h, w, kh, kw, step, dilation, groups, dtype, pad):
    """Tensors of a convolution, its weights' shape, and NumPy's result of arrays in the same layout."""
    cg, og = ci // groups, co // groups
    ih, iw = ((e - 1) * step + (k - 1) * dilation + 1 - 2 * pad for e, k in ((h, kh), (w, kw)))
    sums = "int32" if dtype == "int8" else dtype

    def at(b, c, i, j):
        return (b, i, j, c) if channels_last else (b, c, i, j)

    X = te.placeholder(at(n, ci, ih, iw), dtype, name="X")
    W = te.placeholder((kh, kw, cg, co) if channels_last else (co, cg, kh, kw), dtype, name="W")
    c, p, q = (te.reduce_axis(e, name=s) for e, s in ((cg, "c"), (kh, "p"), (kw, "q")))

    def value(*index):
        b, o, i, j = (index[0], index[3], index[1], index[2]) if channels_last else index
        y, z = i * step + p * dilation - pad, j * step + q * dilation - pad
        x = X[at(b, c if groups == 1 else o // og * cg + c, y, z)]
        if pad:
            inside = te.all(y >= 0, y < ih, z >= 0, z < iw)
            x = te.if_then_else(inside, x, te.const(0, dtype))
        wide = (lambda e: e.astype(sums)) if sums != dtype else (lambda e: e)
        return te.sum(
            wide(x) * wide(W[(p, q, c, o) if channels_last else (o, c, p, q)]), axis=[c, p, q]
        )

    Y = te.compute(at(n, co, h, w), value, name="Y")

    def reference(x, weights):
        x, weights = x.astype("float64"), weights.astype("float64")
        if channels_last:
            x, weights = x.transpose(0, 3, 1, 2), weights.transpose(3, 2, 0, 1)
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        out = np.zeros((n, co, h, w))
        for g in range(groups):
            for a in range(kh):
                for e in range(kw):
                    part = x[:, g * cg : (g + 1) * cg, a * dilation :, e * dilation :][
                        :, :, ::step, ::step
                    ][:, :, :h, :w]
                    out[:, g * og : (g + 1) * og] += np.einsum(
                        "bcij,oc->boij", part, weights[g * og : (g + 1) * og, :, a, e]
                    )
        return out.transpose(0, 2, 3, 1) if channels_last else out

    return [X, W, Y], sums, reference


CONVOLUTIONS = {  # n, ci, co, h, w, kh, kw, step, dilation, groups, dtype, pad
    "odd channels": (1, 7, 21, 9, 27, 3, 3, 1, 1, 1, "float32", 0),
    "three results": (2, 16, 3, 6, 29, 3, 2, 1, 1, 1, "float32", 0),
    "step and dilation": (1, 5, 18, 7, 13, 3, 3, 2, 2, 1, "float64", 0),
    "groups": (2, 12, 30, 5, 7, 3, 3, 1, 1, 3, "float32", 0),
    "a condition": (1, 6, 17, 11, 14, 3, 3, 1, 1, 1, "float32", 1),
    "groups and a condition": (1, 8, 12, 6, 23, 5, 3, 1, 1, 4, "float32", 1),
    "one by one": (1, 33, 20, 5, 7, 1, 1, 1, 1, 1, "float32", 0),
    "bytes": (1, 9, 19, 8, 15, 3, 3, 1, 1, 1, "int8", 0),
}  # fmt: skip


@pytest.mark.parametrize("target", ["cpu", "c"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_of_every_layout(name, channels_last, target):
    tensors, sums, reference = convolution(channels_last, *CONVOLUTIONS[name])
    a, b = (draw(*[int(n) for n in t.shape], dtype=t.dtype) for t in tensors[:2])
    wanted = reference(a, b)
    got, notes = run(te.create_prim_func(tensors), [a, b], wanted.shape, target, sums)
    if sums == "int32":
        np.testing.assert_array_equal(got, wanted)
    else:
        close(got, wanted, 300)
    assert rules_of(notes) == ["host_product"] and "refused" not in notes, notes


def test_results_of_a_tile_lie_along_channels():
    """Where images are stored by channels the window's weights are packed along the results' channels, at any plane."""
    tensors, _, _ = convolution(False, 1, 16, 32, 5, 5, 3, 3, 1, 1, 1, "float32", 0)
    text = scheduled(tensors)
    assert "W_global = T.alloc_buffer((2, 16, 3, 3, 16)" in text and "T.vectorized(16)" in text, (
        text
    )


@pytest.mark.parametrize("form", ["axes 0 and 2", "turned", "everything"])
def test_sums_of_any_axes(form):
    x = draw(11, 23, 65)
    X = te.placeholder(x.shape, name="X")
    r, s, t = (te.reduce_axis(n, name=m) for n, m in zip(x.shape, "rst"))
    shape, value, wanted, rule = {
        "axes 0 and 2": ((23,), lambda i: te.sum(X[r, i, t], axis=[t, r]), x.sum((0, 2), dtype="float64"), "host_rows"),
        "turned": ((65, 11), lambda j, i: te.sum(X[i, s, j], axis=s), x.sum(1, dtype="float64").T, "host_tile"),
        "everything": ((1,), lambda _: te.sum(X[r, s, t], axis=[r, s, t]), x.sum(dtype="float64").reshape(1), "host_rows"),
    }[form]  # fmt: skip
    for target in ("cpu", "c"):
        got, notes = run(
            te.create_prim_func([X, te.compute(shape, value, name="Z")]), [x], shape, target
        )
        close(got, wanted, x.size)
        assert (
            rules_of(notes) == [rule] and "scalar" not in notes and "not vectorized" not in notes
        ), notes


def test_a_chain_is_one_loop():
    """Stages that are read in place are joined, unless a function would be computed twice; functions get vectors of their own."""
    x = draw(37, 45)
    X = te.placeholder(x.shape, name="X")
    A = te.compute(x.shape, lambda i, j: te.tanh(X[i, j]), name="A")
    Z = te.compute(x.shape, lambda i, j: A[i, j] * A[i, j] + X[i, j], name="Z")
    got, notes = run(te.create_prim_func([X, Z]), [x], x.shape)
    np.testing.assert_allclose(got, np.tanh(x) ** 2 + x, rtol=2e-6, atol=1e-6)
    assert "stages of maps were joined; Z: host_map" in notes
    assert "alloc_buffer" not in scheduled([X, Z])
    moved = te.compute(
        (37, 44), lambda i, j: A[i, j] + A[i, j + 1], name="Z"
    )  # a neighbour: A stays
    got, notes = run(te.create_prim_func([X, moved]), [x], (37, 44))
    np.testing.assert_allclose(got, np.tanh(x[:, :-1]) + np.tanh(x[:, 1:]), rtol=2e-6, atol=1e-6)
    assert "joined" not in notes and "A: host_map" in notes


@pytest.mark.parametrize("target", ["cpu", "c"])
@pytest.mark.parametrize("m, edge", [(30, 1), (65, 1), (65, 3), (33, 2)])
def test_loads_under_conditions_of_lanes(target, m, edge):
    """Zeros around an image, whether a stage or a condition in the sum: lanes that lie outside load nothing."""
    x, w = draw(3, 9, m), draw(3, 2 * edge + 1)
    X, W = te.placeholder(x.shape, name="X"), te.placeholder(w.shape, name="W")
    q = te.reduce_axis(2 * edge + 1, name="q")
    zero = te.const(0, "float32")

    def inside(c, i, j):
        return te.if_then_else(te.all(j >= edge, j < m + edge), X[c, i, j - edge], zero)

    P = te.compute((3, 9, m + 2 * edge), inside, name="P")
    staged = te.compute(x.shape, lambda c, i, j: te.sum(P[c, i, j + q] * W[c, q], axis=q), name="Y")
    direct = te.compute(
        x.shape, lambda c, i, j: te.sum(inside(c, i, j + q) * W[c, q], axis=q), name="Y"
    )
    padded = np.pad(x, ((0, 0), (0, 0), (edge, edge))).astype("float64")
    wanted = sum(padded[:, :, k : k + m] * w[:, None, k : k + 1] for k in range(2 * edge + 1))
    for Y in (staged, direct):
        got, notes = run(te.create_prim_func([X, W, Y]), [x, w], x.shape, target)
        close(got, wanted, 7)
        assert "Y: host_tile" in notes and "not vectorized" not in notes, notes
