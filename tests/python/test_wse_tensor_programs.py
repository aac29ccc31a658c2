# SPDX-License-Identifier: Apache-2.0
"""Tensor programs on rectangles of PEs against NumPy: products whose operands travel, vector operations, stencils,
gathers, at sizes that do not divide."""

import importlib.util
import math
import pathlib
import sys

import numpy as np
import pytest

import weft
from weft import _core, te

pytestmark = pytest.mark.skipif("wse" not in _core.targets(), reason="built without the wse target")

RECTANGLES = ["1x1", "1x4", "4x1", "3x5", "8x8", "2x2,arch=wse3", "5x3,arch=wse3"]


def random_array(rng, shape, dtype):
    if np.issubdtype(np.dtype(dtype), np.integer):
        return rng.integers(-9, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def run(tensors, target, *arrays):
    """The last tensor's values, and the module."""
    module = weft.build(te.create_prim_func(tensors), target=target)
    held = [weft.asarray(a, device=target) for a in arrays]
    out = weft.zeros(
        tuple(int(e) for e in tensors[-1].shape), dtype=str(tensors[-1].dtype), device=target
    )
    module["main"](*held, out)
    module["main"](*held, out)  # switches and tasks are as before the first call
    return out.numpy(), module


def product(m, n, k, dtype, transposed=False):
    A = te.placeholder((k, m) if transposed else (m, k), dtype, name="A")
    B = te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis(k, name="k")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum((A[r, i] if transposed else A[i, r]) * B[r, j], axis=r),
        name="C",
    )
    return [A, B, C]


@pytest.mark.parametrize("rectangle", RECTANGLES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "int32"])
@pytest.mark.parametrize("size", [(8, 8, 8), (17, 13, 29), (3, 40, 5), (64, 7, 33)])
def test_products(size, dtype, rectangle):
    m, n, k = size
    rng = np.random.default_rng(m)
    a, b = random_array(rng, (m, k), dtype), random_array(rng, (k, n), dtype)
    got, module = run(product(m, n, k, dtype), f"wse:{rectangle}", a, b)
    if dtype.startswith("int"):
        np.testing.assert_array_equal(got, a @ b)
    else:
        near = 1e-4 if dtype == "float32" else 0.1
        np.testing.assert_allclose(got, a.astype("f8") @ b.astype("f8"), rtol=near, atol=near)
    assert ("panel_step" in module.source()) == (rectangle != "1x1")


BOX = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1)]
STENCILS = {
    "star": [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)],
    "box": BOX,
    "wide": [(0, 2), (0, -2), (2, 0), (-2, 0)],
    "south-east": [(0, 0), (1, 2)],
}


@pytest.mark.parametrize("rectangle", RECTANGLES)
@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "int32"])
def test_stencils_of_values_on_the_wafer(name, rectangle, dtype):
    """Two steps: the second needs the borders of the first, which neighbours have."""
    points = STENCILS[name]
    m, n, r = 33, 29, 2
    A = te.placeholder((m, n), dtype, name="A")
    two = te.const(2, dtype)
    B = te.compute((m, n), lambda i, j: A[i, j] + two, name="B")

    def at(i, j):
        total = B[i + r + points[0][0], j + r + points[0][1]]
        for di, dj in points[1:]:
            total = total + B[i + r + di, j + r + dj]
        return total

    C = te.compute((m - 2 * r, n - 2 * r), at, name="C")
    a = random_array(np.random.default_rng(3), (m, n), dtype)
    got, module = run([A, C], f"wse:{rectangle}", a)
    b = a + np.dtype(dtype).type(2)
    want = sum(b[r + i : m - r + i, r + j : n - r + j].astype("f8") for i, j in points)
    np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "float16" else 1e-5, atol=0.05 if dtype == "float16" else 1e-4)  # fmt: skip
    if rectangle != "1x1":
        assert "come from the neighbours" in module.source()


def test_stencils_in_three_dimensions_and_one():
    rng = np.random.default_rng(5)
    A = te.placeholder((9, 11, 7), name="A")
    B = te.compute((9, 11, 7), lambda i, j, k: A[i, j, k] * te.const(3, "float32"), name="B")
    C = te.compute(
        (7, 9, 5),
        lambda i, j, k: B[i, j + 1, k + 1] - B[i + 2, j + 1, k + 1] + B[i + 1, j, k] * B[i + 1, j + 2, k + 2],
        name="C",
    )  # fmt: skip
    a = rng.standard_normal((9, 11, 7), np.float32)
    b = a * 3
    want = b[:-2, 1:-1, 1:-1] - b[2:, 1:-1, 1:-1] + b[1:-1, :-2, :-2] * b[1:-1, 2:, 2:]
    for rectangle in RECTANGLES:
        np.testing.assert_allclose(
            run([A, C], f"wse:{rectangle}", a)[0], want, rtol=1e-4, atol=1e-4
        )
    A = te.placeholder((61,), name="A")
    B = te.compute((61,), lambda i: A[i] * A[i], name="B")
    C = te.compute((57,), lambda i: B[i] + B[i + 2] - B[i + 4], name="C")
    a = rng.standard_normal(61).astype("f4")
    for rectangle in RECTANGLES:
        got, _ = run([A, C], f"wse:{rectangle}", a)
        np.testing.assert_allclose(
            got, a[:57] ** 2 + a[2:59] ** 2 - a[4:] ** 2, rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("rectangle", ["1x1", "4x1", "3x5", "4x4,arch=wse3"])
def test_largest_values_keep_nan(rectangle):
    """The operation for maxima of descriptors drops NaN; a chain of PEs must not use it."""
    A = te.placeholder((5, 23), name="A")
    k = te.reduce_axis(23, name="k")
    C = te.compute((5,), lambda i: te.max(A[i, k], axis=k), name="C")
    a = np.random.default_rng(1).standard_normal((5, 23)).astype("f4")
    a[1, 22] = a[2, 0] = a[3, 11] = np.nan
    np.testing.assert_array_equal(run([A, C], f"wse:{rectangle}", a)[0], a.max(1))


@pytest.mark.parametrize("rectangle", RECTANGLES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "uint16", "int32"])
def test_vector_operations(rectangle, dtype):
    """Values of several operations, with conditions that cut the iterators."""
    A, B = (te.placeholder((13, 22), dtype, name=n) for n in "AB")
    c = lambda v: te.const(v, dtype)  # noqa: E731

    def value(i, j):
        inner = A[i, j] * c(3) - B[i, j] + (A[i, j] + B[i, j]) * (B[i, j] - A[i, 0])
        return te.if_then_else(te.all(i >= 2, j < 17), inner, te.if_then_else(j == 20, A[i, j], B[i, j]))  # fmt: skip

    C = te.compute((13, 22), value, name="C")
    rng = np.random.default_rng(7)
    a, b = (np.abs(random_array(rng, (13, 22), dtype)) for _ in range(2))
    f = a.astype("f8"), b.astype("f8")
    if not dtype.startswith("float"):
        f = a, b
    inner = f[0] * np.asarray(3, f[0].dtype) - f[1] + (f[0] + f[1]) * (f[1] - f[0][:, :1])
    i, j = np.ogrid[:13, :22]
    want = np.where((i >= 2) & (j < 17), inner, np.where(j == 20, f[0], f[1]))
    near = {"float32": 1e-4, "float16": 5e-2}.get(dtype, 0)
    np.testing.assert_allclose(
        run([A, B, C], f"wse:{rectangle}", a, b)[0], want, rtol=near, atol=near
    )


@pytest.mark.parametrize("rectangle", RECTANGLES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int16"])
@pytest.mark.parametrize("index", ["int32", "int16"])
def test_gathers(index, dtype, rectangle):
    """Rows that data choose, of a table from the host and of values that are on the wafer."""
    rng = np.random.default_rng(11)
    T, I = te.placeholder((19, 11), dtype, name="T"), te.placeholder((14,), index, name="I")
    C = te.compute((14, 11), lambda i, j: T[I[i], j] + T[I[i], 3], name="C")
    t, i = random_array(rng, (19, 11), dtype), rng.integers(0, 19, 14).astype(index)
    np.testing.assert_array_equal(
        run([T, I, C], f"wse:{rectangle}", t, i)[0], t[i] + t[i, 3][:, None]
    )
    B = te.compute((19, 11), lambda i, j: T[i, j] + T[i, j], name="B")
    C = te.compute((14, 11), lambda i, j: B[I[i], 10 - j], name="C")
    np.testing.assert_array_equal(run([T, I, C], f"wse:{rectangle}", t, i)[0], (t + t)[i][:, ::-1])
    D = te.compute((14,), lambda i: T[I[I[i]], I[i] - 5], name="D")
    i = rng.integers(5, 14, 14).astype(index)
    np.testing.assert_array_equal(run([T, I, D], f"wse:{rectangle}", t, i)[0], t[i[i], i - 5])


def test_positions_outside_are_faults():
    T, I = te.placeholder((8,), name="T"), te.placeholder((4,), "int32", name="I")
    C = te.compute((4,), lambda i: T[I[i]], name="C")
    for wrong in (8, -1):
        with pytest.raises(weft.Error, match="assert"):
            run([T, I, C], "wse:2x2", np.ones(8, "f4"), np.array([0, 1, wrong, 7], "i4"))


def test_a_program_stays_on_its_pes_between_calls():
    """Parts that a PE was sent are not sent again, and changed ones are."""
    A, x = te.placeholder((24, 40), name="A"), te.placeholder((40,), name="x")
    k = te.reduce_axis(40, name="k")
    y = te.compute((24,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
    module = weft.build(te.create_prim_func([A, x, y]), target="wse:4x4")
    device = weft.device("wse:4x4")
    rng = np.random.default_rng(2)
    a = rng.standard_normal((24, 40)).astype("f4")
    held, out = weft.asarray(a, device=device), weft.zeros((24,), device=device)
    cycles = []
    for _ in range(3):
        v = rng.standard_normal(40).astype("f4")
        module["main"](held, weft.asarray(v, device=device), out)
        np.testing.assert_allclose(out.numpy(), a @ v, rtol=1e-4, atol=1e-4)
        cycles.append(device.stats()["fabric.cycles"])
    assert cycles[1] == cycles[2] < cycles[0]
    b = a + 1
    module["main"](weft.asarray(b, device=device), weft.asarray(v, device=device), out)
    np.testing.assert_allclose(out.numpy(), b @ v, rtol=1e-4, atol=1e-4)
    assert device.stats()["fabric.cycles"] > cycles[2]


@pytest.mark.parametrize("rectangle", ["1x2", "4x4", "3x5", "8x2,arch=wse3"])
def test_decode_step_of_a_block(rectangle):
    folder = pathlib.Path(__file__).resolve().parents[2] / "examples/wse"
    spec = importlib.util.spec_from_file_location("llama_decode", folder / "llama_decode.py")
    example = importlib.util.module_from_spec(spec)
    sys.modules["llama_decode"] = example
    spec.loader.exec_module(example)
    error, _, _ = example.run_block(example.Shape(32, 4, 2, 8, 40, 17), f"wse:{rectangle}")
    assert error < 5e-3  # activations travel in 16 bits


@pytest.mark.parametrize("seed", range(40))
def test_random_products(seed):
    """Random extents, also 1, on random rectangles, both machines and several host threads; int32 is exact."""
    rng = np.random.default_rng(seed)
    m, n, k = (int(v) for v in rng.integers(1, 50, 3))
    w, h = (int(v) for v in rng.integers(1, 7, 2))
    target = f"wse:{w}x{h},arch={rng.choice(['wse2', 'wse3'])},threads={rng.choice([1, 2, 8])}"
    dtype = rng.choice(["int32", "uint16", "float32"])
    a, b = (np.abs(random_array(rng, s, "int16")).astype(dtype) for s in ((m, k), (k, n)))
    np.testing.assert_array_equal(run(product(m, n, k, str(dtype)), target, a, b)[0], a @ b)


def test_chained_products_stay_on_the_wafer():
    A, B, D = (te.placeholder((16, 16), name=n) for n in "ABD")
    k, r = te.reduce_axis(16, name="k"), te.reduce_axis(16, name="r")
    C = te.compute((16, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    E = te.compute((16, 16), lambda i, j: te.sum(C[i, r] * D[r, j], axis=r), name="E")
    rng = np.random.default_rng(4)
    a, b, d = (rng.standard_normal((16, 16)).astype("f4") for _ in range(3))
    got, module = run([A, B, D, E], "wse:4x4", a, b, d)
    np.testing.assert_allclose(got, a @ b @ d, rtol=1e-4, atol=1e-4)
    assert "// C stays in" in module.source()


def test_code_of_many_stages_has_room():
    """A program that is accepted loads: the code of its stages is counted beside the arrays."""
    at = A = te.placeholder((380,), name="A")
    for s in range(24):
        at = te.compute(
            (380,), lambda i, at=at: at[i] * at[i] - te.const(0.25, "float32"), name=f"S{s}"
        )
    program = te.create_prim_func([A, at])
    refusal = weft.accepts(program, "wse:1x1")
    assert refusal is not None and refusal.code == "wse.lower.capacity"
    a = np.random.default_rng(6).random(380).astype("f4")
    want = a
    for _ in range(24):
        want = want * want - np.float32(0.25)
    np.testing.assert_allclose(run([A, at], "wse:2x1", a)[0], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rectangle", RECTANGLES)
def test_borders_beside_chains_and_gathers(rectangle):
    """Borders travel while a stage goes on; a sum or a gather of the same stage must not mix with them."""
    A = te.placeholder((9, 37), name="A")
    B = te.compute((9, 37), lambda i, j: A[i, j] * te.const(2, "float32"), name="B")
    k = te.reduce_axis(36, name="k")
    C = te.compute((9,), lambda i: te.sum(B[i, k] * B[i, k + 1], axis=k), name="C")
    D = te.compute((7, 35), lambda i, j: B[i, j + 2] + B[i + 2, j] * B[8 - i, 36 - j], name="D")
    a = np.random.default_rng(8).standard_normal((9, 37)).astype("f4")
    b = a * 2
    np.testing.assert_allclose(run([A, C], f"wse:{rectangle}", a)[0], (b[:, :-1] * b[:, 1:]).sum(1), rtol=1e-4, atol=1e-4)  # fmt: skip
    want = b[:7, 2:] + b[2:, :35] * b[::-1, ::-1][:7, :35]
    np.testing.assert_allclose(run([A, D], f"wse:{rectangle}", a)[0], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rectangle", RECTANGLES)
def test_stencils_with_conditions_at_the_edges(rectangle):
    """Borders of the whole grid by conditions, in divided and undivided dimensions."""
    m, n, z = 7, 9, 6
    A = te.placeholder((m, n, z), name="A")
    B = te.compute((m, n, z), lambda i, j, k: A[i, j, k] + te.const(1, "float32"), name="B")
    zero = te.const(0, "float32")

    def value(i, j, k):
        total = B[i, j, k]
        for d, extent in ((0, m), (1, n), (2, z)):
            for step in (-1, 1):
                at = [i, j, k]
                inside = at[d] > 0 if step < 0 else at[d] < extent - 1
                at[d] = at[d] + step
                total = total + te.if_then_else(inside, B[tuple(at)], zero)
        return total

    C = te.compute((m, n, z), value, name="C")
    a = np.random.default_rng(9).standard_normal((m, n, z)).astype("f4")
    b = np.pad(a + 1, 1)
    c = slice(1, -1)
    want = (
        b[c, c, c]
        + b[:-2, c, c]
        + b[2:, c, c]
        + b[c, :-2, c]
        + b[c, 2:, c]
        + b[c, c, :-2]
        + b[c, c, 2:]
    )
    got, module = run([A, C], f"wse:{rectangle}", a)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    if rectangle not in ("1x1", "8x8"):
        assert "come from the neighbours" in module.source()


@pytest.mark.parametrize("kind, near", [("float32", 3e-7), ("float16", 4e-4)])
def test_error_function(kind, near):
    """PEs have none: near 0 a series keeps small results exact, far out nothing overflows."""
    x = np.concatenate([np.linspace(-5, 5, 201), [1e-4, -1e-3, 0, 6e4, -6e4, np.inf, -np.inf]])
    x = x.astype(kind)
    got = weft.erf(weft.asarray(x, device="wse:4x4")).numpy().astype("f8")
    want = np.array([math.erf(v) for v in x])
    np.testing.assert_allclose(got, want, rtol=max(near, 1e-6), atol=near)
    assert np.isnan(
        weft.erf(weft.asarray(np.array([np.nan], kind), device="wse:4x4")).numpy()
    ).all()
