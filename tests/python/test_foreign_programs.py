# SPDX-License-Identifier: Apache-2.0
"""Whole programs as visitors write them, against NumPy: conditions on reduction axes, state kept in rows, scans."""

import numpy as np
import pytest

import weft
from weft import script as T
from weft import te

HOSTS = ["ref", "cpu", "c"]
ALL = [*HOSTS, "opencl"]


def _run(program, target, arguments, *results):
    """Builds for a target, calls, gives the results as NumPy arrays."""
    device = weft.device(target)
    if not device.available:
        pytest.skip(device.reason.splitlines()[0])
    arrays = [weft.asarray(a, device=device) for a in arguments]
    outs = [weft.zeros(shape, dtype=dtype, device=device) for shape, dtype in results]
    weft.build(program, target=target)(*arrays, *outs)
    return [out.numpy() for out in outs]


def _constant(matrix, i, j):
    """The element (i, j) of a matrix known when the program is written."""
    out = te.const(0.0)
    for a in range(matrix.shape[0]):
        for b in range(matrix.shape[1]):
            if matrix[a, b]:
                out = te.if_then_else(te.all(i == a, j == b), float(matrix[a, b]), out)
    return out


BT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], "float32")
G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], "float32")
AT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]], "float32")


def winograd(ci, co, h, w):
    """A 3 x 3 convolution by Winograd's F(2 x 2, 3 x 3), its constant matrices written as conditions."""
    th, tw = -(-(h - 2) // 2), -(-(w - 2) // 2)
    x, f = te.placeholder((ci, h, w), name="X"), te.placeholder((co, ci, 3, 3), name="F")
    r, s = te.reduce_axis(3, "r"), te.reduce_axis(3, "s")
    u = te.compute(
        (4, 4, co, ci),
        lambda a, b, o, c: te.sum(
            _constant(G, a, r) * _constant(G, b, s) * f[o, c, r, s], axis=[r, s]
        ),
        name="U",
    )
    padded = te.compute(
        (ci, 2 * th + 2, 2 * tw + 2),
        lambda c, y, z: te.if_then_else(te.all(y < h, z < w), x[c, y, z], 0.0),
        name="padded",
    )
    p, q = te.reduce_axis(4, "p"), te.reduce_axis(4, "q")
    v = te.compute(
        (4, 4, ci, th, tw),
        lambda a, b, c, t, g: te.sum(
            _constant(BT, a, p) * _constant(BT, b, q) * padded[c, t * 2 + p, g * 2 + q],
            axis=[p, q],
        ),
        name="V",
    )
    k = te.reduce_axis(ci, "k")
    m = te.compute(
        (4, 4, co, th, tw),
        lambda a, b, o, t, g: te.sum(u[a, b, o, k] * v[a, b, k, t, g], axis=k),
        name="M",
    )
    n, l = te.reduce_axis(4, "n"), te.reduce_axis(4, "l")
    y = te.compute(
        (co, h - 2, w - 2),
        lambda o, i, j: te.sum(
            _constant(AT, i % 2, n) * _constant(AT, j % 2, l) * m[n, l, o, i // 2, j // 2],
            axis=[n, l],
        ),
        name="Y",
    )
    return te.create_prim_func([x, f, y])


@pytest.mark.parametrize("target", ["cpu", "opencl", "qpu"])
def test_a_winograd_convolution(target):
    ci, co, h, w = 3, 5, 9, 12
    rng = np.random.default_rng(3)
    x = rng.standard_normal((ci, h, w)).astype("float32")
    f = rng.standard_normal((co, ci, 3, 3)).astype("float32")
    (got,) = _run(winograd(ci, co, h, w), target, (x, f), ((co, h - 2, w - 2), "float32"))
    expected = sum(
        np.einsum("oc,chw->ohw", f[:, :, a, b], x[:, a : a + h - 2, b : b + w - 2])
        for a in range(3)
        for b in range(3)
    )
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@T.prim_func
def largest(
    A: T.Buffer((9, 100), "float32"), V: T.Buffer((9, 5), "float32"), I: T.Buffer((9, 5), "int32")
):
    for r in range(9):
        with T.block("row"):
            vr = T.axis.spatial(9, r)
            for k in range(5):
                V[vr, k] = T.min_value("float32")
                I[vr, k] = -1
            for j in range(100):
                if A[vr, j] > V[vr, 4]:
                    V[vr, 4] = A[vr, j]
                    I[vr, 4] = T.Cast("int32", j)
                    for s in range(4):
                        if V[vr, 4 - s] > V[vr, 3 - s]:
                            v: T.float32 = V[vr, 4 - s]
                            i: T.int32 = I[vr, 4 - s]
                            V[vr, 4 - s] = V[vr, 3 - s]
                            I[vr, 4 - s] = I[vr, 3 - s]
                            V[vr, 3 - s] = v
                            I[vr, 3 - s] = i


@pytest.mark.parametrize("target", ALL)
def test_the_largest_five_of_each_row_by_insertion(target):
    a = np.random.default_rng(4).standard_normal((9, 100)).astype("float32")
    values, places = _run(largest, target, (a,), ((9, 5), "float32"), ((9, 5), "int32"))
    expected = np.argsort(-a, 1)[:, :5]
    assert np.array_equal(places, expected)
    assert np.array_equal(values, np.take_along_axis(a, expected, 1))


N = 128


@T.prim_func
def scan(A: T.Buffer((5, N), "float32"), B: T.Buffer((5, N), "float32")):
    for r in T.thread_binding(5, thread="blockIdx.x"):
        with T.block("row"):
            vr = T.axis.spatial(5, r)
            S = T.alloc_buffer((2, N), "float32", scope="shared")
            for t in T.thread_binding(N, thread="threadIdx.x"):
                with T.block("load"):
                    vt = T.axis.spatial(N, t)
                    S[0, vt] = A[vr, vt]
            for k in range(7):
                for t in T.thread_binding(N, thread="threadIdx.x"):
                    with T.block("step"):
                        vk, vt = T.axis.remap("CS", [k, t])
                        S[1 - vk % 2, vt] = S[vk % 2, vt] + T.if_then_else(
                            vt >= (1 << vk), S[vk % 2, vt - (1 << vk)], T.float32(0)
                        )
            for t in T.thread_binding(N, thread="threadIdx.x"):
                with T.block("store"):
                    vt = T.axis.spatial(N, t)
                    B[vr, vt] = S[1, vt]


@pytest.mark.parametrize("target", ["ref", "opencl"])
def test_a_running_sum_by_doubling_in_shared_memory(target):
    a = np.random.default_rng(5).integers(-50, 50, (5, N)).astype("float32")
    (got,) = _run(scan, target, (a,), ((5, N), "float32"))
    assert np.array_equal(got, a.cumsum(1))
    text = weft.build(scan, target="cuda:arch=sm_90a").source()
    steps = text[text.index("for (") :]
    assert steps.count("__syncthreads") >= 2  # one between steps, one before the result


ROWS, ENTRIES = 17, 60


@T.prim_func
def sparse_product(
    start: T.Buffer((ROWS + 1,), "int32"),
    column: T.Buffer((ENTRIES,), "int32"),
    value: T.Buffer((ENTRIES,), "float32"),
    x: T.Buffer((ROWS,), "float32"),
    y: T.Buffer((ROWS,), "float32"),
):
    for i in range(ROWS):
        with T.block("row"):
            vi = T.axis.spatial(ROWS, i)
            y[vi] = T.float32(0)
            for p in range(start[vi + 1] - start[vi]):
                y[vi] = y[vi] + value[start[vi] + p] * x[column[start[vi] + p]]


@pytest.mark.parametrize("target", [*ALL, "qpu"])
def test_a_sparse_product_with_an_empty_row(target):
    rng = np.random.default_rng(6)
    counts = rng.multinomial(ENTRIES, np.ones(ROWS) / ROWS)
    counts[3] += counts[4]
    counts[4] = 0
    start = np.concatenate([[0], counts.cumsum()]).astype("int32")
    column = rng.integers(0, ROWS, ENTRIES).astype("int32")
    value, x = (rng.standard_normal(n).astype("float32") for n in (ENTRIES, ROWS))
    (got,) = _run(sparse_product, target, (start, column, value, x), ((ROWS,), "float32"))
    dense = np.zeros((ROWS, ROWS))
    np.add.at(dense, (np.repeat(np.arange(ROWS), counts), column), value)
    np.testing.assert_allclose(got, dense @ x, rtol=1e-5, atol=1e-5)
    if target == "cpu":
        sch = weft.Schedule(sparse_product)
        sch.parallel(sch.get_loops(sch.get_block("row"))[0])
        (again,) = _run(sch, target, (start, column, value, x), ((ROWS,), "float32"))
        assert np.array_equal(again, got)


def four_bits(rows, columns, group):
    """A matrix-vector product whose weights are two to a byte, with a scale for each group of columns."""
    w = te.placeholder((rows, columns // 2), "uint8", name="W")
    scale = te.placeholder((rows, columns // group), "float16", name="scale")
    x = te.placeholder((columns,), "float16", name="x")
    k = te.reduce_axis(columns, name="k")
    plain = te.compute(
        (rows, columns),
        lambda i, j: (
            (
                ((w[i, j // 2] >> ((j % 2) * 4).astype("uint8")) & te.const(15, "uint8")).astype(
                    "int8"
                )
                - te.const(8, "int8")
            ).astype("float16")
            * scale[i, j // group]
        ),
        name="plain",
    )
    y = te.compute(
        (rows,),
        lambda i: te.sum(plain[i, k].astype("float32") * x[k].astype("float32"), axis=k),
        name="y",
    )
    return te.create_prim_func([w, scale, x, y])


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("scheduled", [False, True])
def test_weights_of_four_bits(target, scheduled):
    rows, columns, group = 37, 256, 32
    rng = np.random.default_rng(7)
    w = rng.integers(0, 256, (rows, columns // 2)).astype("uint8")
    scale = rng.random((rows, columns // group)).astype("float16")
    x = rng.standard_normal(columns).astype("float16")
    program = four_bits(rows, columns, group)
    if scheduled:
        program = weft.Schedule(program)
        program.compute_inline(program.get_block("plain"))
        i, k = program.get_loops(program.get_block("y"))
        k0, k1, k2 = program.split(k, [None, 32, 4])
        if target in HOSTS:
            program.reorder(i, k1, k0, k2)
            program.rfactor(k1, 0)
        else:  # one line of threads for each row
            i0, i1 = program.split(i, [None, 4])
            program.reorder(i0, i1, k1, k0, k2)
            for loop, axis in ((i0, "blockIdx.x"), (i1, "threadIdx.y"), (k1, "threadIdx.x")):
                program.bind(loop, axis)
    (got,) = _run(program, target, (w, scale, x), ((rows,), "float32"))
    signed = np.stack([w & 15, w >> 4], -1).reshape(rows, columns).astype("int8") - 8
    plain = signed.astype("float16") * np.repeat(scale, group, 1)
    expected = plain.astype("float32") @ x.astype("float32")
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)


def test_threads_that_keep_to_their_rows_need_no_barrier():
    """The rows of different threads never meet, however the loops inside run; with rows one shorter they do."""

    def program(width):
        @T.prim_func
        def main(A: T.Buffer((64, 65), "float32"), B: T.Buffer((64, 65), "float32")):
            S = T.alloc_buffer((64 * width + 8,), "float32", scope="shared")
            for b in T.thread_binding(2, thread="blockIdx.x"):
                for g in range(2):
                    for t in T.thread_binding(16, thread="threadIdx.x"):
                        with T.block("work"):
                            vb, vg, vt = T.axis.remap("SOO", [b, g, t])
                            for j in range(65):
                                S[(vg * 16 + vt) * width + 64 - j] = A[vb * 32 + vg * 16 + vt, j]
                            for j in range(64):
                                S[(vg * 16 + vt) * width + j] = S[(vg * 16 + vt) * width + j + 1]
                            for j in range(65):
                                B[vb * 32 + vg * 16 + vt, j] = S[(vg * 16 + vt) * width + j]

        return main

    a = np.random.default_rng(8).standard_normal((64, 65)).astype("float32")
    expected = np.concatenate([a[:, 63::-1], a[:, :1]], 1)
    (got,) = _run(program(65), "opencl", (a,), ((64, 65), "float32"))
    assert np.array_equal(got, expected)
    assert "__syncthreads" not in weft.build(program(65), target="cuda:arch=sm_90a").source()
    with pytest.raises(weft.Error) as refused:  # the last element of a row is the next row's first
        weft.build(program(64), target="cuda:arch=sm_90a")
    assert refused.value.code == "verify.race"


def test_shared_memory_of_threads_without_blocks():
    """Loops bound to threads alone are one group: what they share keeps them in one kernel."""

    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((64,), "float32", scope="shared")
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("S"):
                vt = T.axis.spatial(64, t)
                S[vt] = A[vt] * T.float32(2)
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vt = T.axis.spatial(64, t)
                B[vt] = S[63 - vt]

    a = np.random.default_rng(9).standard_normal(64).astype("float32")
    (got,) = _run(main, "opencl", (a,), ((64,), "float32"))
    assert np.array_equal(got, a[::-1] * 2)
    text = weft.build(main, target="cuda:arch=sm_90a").source()
    assert text.count("__global__") == 1 and text.count("__syncthreads") == 1
