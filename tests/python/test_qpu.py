# SPDX-License-Identifier: Apache-2.0
"""The emulated QPUs from Python: tensor programs against `ref`, arrays, torch, what is refused."""

import math

import numpy as np
import pytest

import weft
from weft import te

pytestmark = pytest.mark.targets("qpu")

SIZES = [0, 1, 15, 16, 17, 33, 100, 191, 193]


def on(function, inputs, out, target="qpu"):
    """out filled by the function's module for target; the module too."""
    module = weft.build(function, target=target)
    device = weft.device(target)
    result = weft.asarray(out, device=device)
    module["main"](*[weft.asarray(x, device=device) for x in inputs], result)
    return result.numpy(), module


def agrees(function, inputs, out, target="qpu", rtol=2e-6, atol=2e-6):
    want, _ = on(function, inputs, out, "ref")
    got, module = on(function, inputs, out, target)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    return module


def chain(n, dtype="float32"):
    """Two stages through an intermediate: a shifted read with a predicate, then a choice."""
    A = te.placeholder((n,), dtype, name="A")
    B = te.placeholder((n,), dtype, name="B")
    zero = te.const(0, dtype)
    C = te.compute((n,), lambda i: te.if_then_else(i >= 1, A[i - 1], zero) + B[i] * 3, name="C")
    D = te.compute((n,), lambda i: te.if_then_else(C[i] > A[i], C[i] - A[i], A[i] * B[i]), name="D")
    return te.create_prim_func([A, B, D])


def matvec(rows, columns, dtype="float32"):
    A = te.placeholder((rows, columns), dtype, name="A")
    x = te.placeholder((columns,), dtype, name="x")
    k = te.reduce_axis(columns, name="k")
    y = te.compute((rows,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
    return te.create_prim_func([A, x, y])


def matmul_bias_relu(m, n, k_extent):
    A = te.placeholder((m, k_extent), "float32", name="A")
    B = te.placeholder((k_extent, n), "float32", name="B")
    b = te.placeholder((n,), "float32", name="b")
    k = te.reduce_axis(k_extent, name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute(
        (m, n),
        lambda i, j: te.if_then_else(C[i, j] + b[j] > 0.0, C[i, j] + b[j], te.const(0.0)),
        name="D",
    )
    return te.create_prim_func([A, B, b, D])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_chains(n, dtype, rng):
    x, y = (rng.integers(-99, 99, n).astype(dtype) for _ in range(2))
    agrees(chain(n, dtype), [x, y], np.full(n, 7, dtype))


@pytest.mark.parametrize("qpus", range(1, 13))
def test_every_number_of_qpus(qpus, rng):
    target = f"qpu:qpus={qpus},memory=16"
    x, y = rng.standard_normal((2, 331)).astype("float32")
    agrees(chain(331), [x, y], np.zeros(331, "float32"), target)
    a, v = (
        rng.standard_normal((13, 37)).astype("float32"),
        rng.standard_normal(37).astype("float32"),
    )
    agrees(matvec(13, 37), [a, v], np.zeros(13, "float32"), target, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "rows,columns", [(1, 1), (1, 17), (17, 1), (3, 15), (16, 16), (5, 100), (40, 33)]
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_matrix_vector(rows, columns, dtype, rng):
    a = rng.integers(-9, 9, (rows, columns)).astype(dtype)
    x = rng.integers(-9, 9, columns).astype(dtype)
    agrees(matvec(rows, columns, dtype), [a, x], np.full(rows, 5, dtype))


@pytest.mark.parametrize("rows", [48, 24, 100, 37, 13])
@pytest.mark.parametrize("columns", [640, 643])
def test_rows_share_what_they_read(rows, columns, rng):
    """A QPU's rows run together, four at most, and ask once for the vector; the rest of them one by one."""
    device = weft.device("qpu")
    a = rng.integers(-9, 9, (rows, columns)).astype("float32")
    x = rng.integers(-9, 9, columns).astype("float32")
    before = device.stats()["tmu.requests"]
    got, _ = on(matvec(rows, columns), [a, x], np.full(rows, 5, "float32"))
    asked = device.stats()["tmu.requests"] - before
    np.testing.assert_array_equal(got, a @ x)
    vectors = -(-columns // 16)
    alone = rows * vectors * 2
    assert asked >= rows * vectors
    if rows % 12 == 0:
        together = min(rows // 12, 4)
        tail = rows if columns % 16 else 0  # the masked step asks again
        assert asked <= rows * vectors + rows * vectors // together + tail < alone
    else:
        assert asked <= alone


@pytest.mark.parametrize("m,n,k", [(1, 1, 1), (3, 17, 5), (16, 16, 16), (20, 50, 30), (33, 15, 17)])
def test_matmul_bias_relu(m, n, k, rng):
    a, b, c = (rng.integers(-9, 9, s).astype("float32") for s in ((m, k), (k, n), (n,)))
    agrees(matmul_bias_relu(m, n, k), [a, b, c], np.full((m, n), 3, "float32"))


def softmax(m, n):
    A = te.placeholder((m, n), "float32", name="A")
    k, r = te.reduce_axis(n, name="k"), te.reduce_axis(n, name="r")
    top = te.compute((m,), lambda i: te.max(A[i, k], axis=k), name="top")
    e = te.compute((m, n), lambda i, j: te.exp(A[i, j] - top[i]), name="e")
    total = te.compute((m,), lambda i: te.sum(e[i, r], axis=r), name="total")
    out = te.compute((m, n), lambda i, j: e[i, j] / total[i], name="out")
    return te.create_prim_func([A, out])


def convolution(h, w, channels):
    A = te.placeholder((channels, h, w), "float32", name="A")
    W = te.placeholder((2, channels, 3, 3), "float32", name="W")
    P = te.compute(
        (channels, h + 2, w + 2),
        lambda c, y, x: te.if_then_else(
            (y >= 1) & (y < h + 1) & (x >= 1) & (x < w + 1), A[c, y - 1, x - 1], te.const(0.0)
        ),
        name="P",
    )
    c, dy, dx = (te.reduce_axis(n, name=s) for n, s in ((channels, "c"), (3, "dy"), (3, "dx")))
    C = te.compute(
        (2, h, w),
        lambda o, y, x: te.sum(P[c, y + dy, x + dx] * W[o, c, dy, dx], axis=[c, dy, dx]),
        name="C",
    )
    return te.create_prim_func([A, W, C])


@pytest.mark.parametrize("m,n", [(1, 1), (3, 17), (14, 40)])
def test_softmax(m, n, rng):
    x = rng.standard_normal((m, n)).astype("float32") * 4
    agrees(softmax(m, n), [x], np.zeros((m, n), "float32"), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("h,w", [(1, 1), (5, 18), (16, 16)])
def test_padded_convolution(h, w, rng):
    a, f = (rng.integers(-9, 9, s).astype("float32") for s in ((3, h, w), (2, 3, 3, 3)))
    agrees(convolution(h, w, 3), [a, f], np.zeros((2, h, w), "float32"))


@pytest.mark.parametrize("n", [1, 16, 37])
def test_pairs_and_minima(n, rng):
    A = te.placeholder((5, n), "float32", name="A")
    k, r = te.reduce_axis(n, name="k"), te.reduce_axis(n, name="r")
    at, top = te.compute(
        (5,),
        lambda i: te.argmax((te.const(0, "int64") + k).astype("int32"), A[i, k], axis=k),
        name="best",
    )
    low = te.compute((5,), lambda i: te.min(A[i, r], axis=r), name="low")
    out = te.compute((5,), lambda i: at[i].astype("float32") + top[i] * low[i], name="out")
    x = rng.integers(-99, 99, (5, n)).astype("float32")
    agrees(te.create_prim_func([A, out]), [x], np.zeros(5, "float32"))


def test_symbolic_shapes(rng):
    n = te.var("n")
    A = te.placeholder((n,), "float32", name="A")
    k = te.reduce_axis(n, name="k")
    s = te.compute((1,), lambda i: te.max(A[k], axis=k), name="s")
    B = te.compute((n,), lambda i: A[i] - s[0], name="B")
    module = weft.build(te.create_prim_func([A, B]), target="qpu")
    for size in (1, 15, 17, 500):
        x = rng.standard_normal(size).astype("float32")
        out = weft.zeros(size, dtype="float32", device="qpu")
        module["main"](weft.asarray(x, device="qpu"), out)
        np.testing.assert_allclose(out.numpy(), x - x.max(), rtol=1e-6, atol=1e-6)


def test_integers_wrap_and_divide(rng):
    n = 50
    A, B = (te.placeholder((n,), "int32", name=x) for x in "AB")
    C = te.compute((n,), lambda i: A[i] * B[i] + A[i] // (B[i] * B[i] + 1) - A[i] % 7, name="C")
    x, y = (rng.integers(-(2**31), 2**31, n).astype("int32") for _ in range(2))
    x[:4], y[:4] = [-(2**31), 2**31 - 1, -1, 0], [-1, 3, 2**31 - 1, 5]
    y[4:] %= 1000
    agrees(te.create_prim_func([A, B, C]), [x, y], np.zeros(n, "int32"))


def test_unsigned(rng):
    n = 60
    A, B = (te.placeholder((n,), "uint32", name=x) for x in "AB")
    C = te.compute((n,), lambda i: A[i] // (B[i] % 1000 + 1) + A[i] * B[i], name="C")
    D = te.compute((n,), lambda i: te.if_then_else(A[i] > B[i], A[i], C[i]), name="D")
    x, y = rng.integers(0, 2**32, (2, n), dtype="uint32")
    agrees(te.create_prim_func([A, B, D]), [x, y], np.zeros(n, "uint32"))
    E = te.compute((n,), lambda i: A[i].astype("float32") * 0.5, name="E")
    agrees(te.create_prim_func([A, E]), [x], np.zeros(n, "float32"))
    F = te.placeholder((n,), "float32", name="F")
    G = te.compute((n,), lambda i: F[i].astype("uint32"), name="G")
    f = rng.uniform(0, 2**32 - 1000, n).astype("float32")
    agrees(te.create_prim_func([F, G]), [f], np.zeros(n, "uint32"))


def test_sums_to_few_points_use_every_qpu(rng):
    A = te.placeholder((3, 6000), "float32", name="A")
    k = te.reduce_axis(6000, name="k")
    s = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="s")
    x = rng.standard_normal((3, 6000)).astype("float32")
    got, module = on(te.create_prim_func([A, s]), [x], np.zeros(3, "float32"))
    np.testing.assert_allclose(got, x.astype("float64").sum(1), atol=2e-2)
    assert module.source().count("// kernel") == 2


def test_run_time_strides_choose_a_version(rng):
    a = weft.asarray(rng.standard_normal((40, 50)).astype("float32"), device="qpu")
    h = a.numpy()
    for axis in (0, 1):
        np.testing.assert_allclose(weft.sum(a, axis=axis).numpy(), h.sum(axis), atol=1e-4)
        np.testing.assert_allclose(weft.sum(a.T, axis=axis).numpy(), h.T.sum(axis), atol=1e-4)
    b = weft.asarray(rng.standard_normal((50, 33)).astype("float32"), device="qpu")
    np.testing.assert_allclose(weft.matmul(a, b).numpy(), h @ b.numpy(), atol=2e-4)
    np.testing.assert_allclose(weft.matmul(b.T, a.T).numpy(), b.numpy().T @ h.T, atol=2e-4)


def test_in_place(rng):
    x, y = rng.standard_normal((2, 100)).astype("float32")
    a = weft.asarray(x, device="qpu")
    a += weft.asarray(y, device="qpu")
    a *= 2.0
    np.testing.assert_allclose(a.numpy(), (x + y) * 2, rtol=1e-6, atol=1e-6)


def test_schedule_is_respected(rng):
    f = matvec(24, 64)
    sch = weft.Schedule(f)
    y = sch.get_block("y")
    i, _k = sch.get_loops(y)
    i0, i1 = sch.split(i, [None, 16])
    sch.bind(i0, "qpu")
    sch.bind(i1, "lane")
    a, x = (
        rng.integers(-9, 9, (24, 64)).astype("float32"),
        rng.integers(-9, 9, 64).astype("float32"),
    )
    out = weft.zeros(24, dtype="float32", device="qpu")
    module = weft.build(sch, target="qpu")
    module["main"](weft.asarray(a, device="qpu"), weft.asarray(x, device="qpu"), out)
    np.testing.assert_array_equal(out.numpy(), a @ x)
    default = weft.build(f, target="qpu")
    assert "kernel main_kernel0" in module.source() and module.source() != default.source()


def test_marked_loops_become_lanes_and_qpus(rng):
    f = chain(100)
    sch = weft.Schedule(f)
    for name in "CD":
        (i,) = sch.get_loops(sch.get_block(name))
        o, v = sch.split(i, [None, 16])
        sch.parallel(o)
        sch.vectorize(v)
    x, y = rng.standard_normal((2, 100)).astype("float32")
    out = weft.zeros(100, dtype="float32", device="qpu")
    weft.build(sch, target="qpu")["main"](
        weft.asarray(x, device="qpu"), weft.asarray(y, device="qpu"), out
    )
    want, _ = on(f, [x, y], np.zeros(100, "float32"), "ref")
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6, atol=1e-6)


FUNCTIONS = {
    "exp": (np.exp, -20, 20), "log": (np.log, 1e-6, 1e6), "sqrt": (np.sqrt, 0, 1e6), "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-3, 1e6),
    "tanh": (np.tanh, -8, 8), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -20, 20), "sin": (np.sin, -50, 50), "cos": (np.cos, -50, 50),
    "floor": (np.floor, -1e3, 1e3), "ceil": (np.ceil, -1e3, 1e3), "trunc": (np.trunc, -1e3, 1e3), "round": (np.round, -1e3, 1e3),
    "exp2": (np.exp2, -20, 20), "log2": (np.log2, 1e-6, 1e6), "abs": (np.abs, -9, 9),
    "tan": (np.tan, -1.5, 1.5), "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "atan": (np.arctan, -50, 50),
    "sinh": (np.sinh, -20, 20), "cosh": (np.cosh, -20, 20), "asinh": (np.arcsinh, -1e3, 1e3), "acosh": (np.arccosh, 1.01, 1e3),
    "atanh": (np.arctanh, -0.99, 0.99), "expm1": (np.expm1, -3, 3), "log1p": (np.log1p, -0.99, 9),
    "erf": (np.vectorize(math.erf), -4, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions(name, rng):
    f, low, high = FUNCTIONS[name]
    x = rng.uniform(low, high, 400).astype("float32")
    A = te.placeholder((400,), "float32", name="A")
    B = te.compute((400,), lambda i: getattr(te, name)(A[i]), name="B")
    got, _ = on(te.create_prim_func([A, B]), [x], np.zeros(400, "float32"))
    np.testing.assert_allclose(got, f(x.astype("float64")), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "name", ["asin", "asinh", "atan", "atanh", "erf", "expm1", "log1p", "sinh"]
)
def test_functions_keep_their_digits_near_zero(name, rng):
    x = (rng.uniform(-1, 1, 100) * 10.0 ** -rng.integers(1, 6, 100)).astype("float32")
    A = te.placeholder((100,), "float32", name="A")
    B = te.compute((100,), lambda i: getattr(te, name)(A[i]), name="B")
    got, _ = on(te.create_prim_func([A, B]), [x], np.zeros(100, "float32"))
    np.testing.assert_allclose(got, FUNCTIONS[name][0](x.astype("float64")), rtol=2e-5)


def test_angle_of_every_quadrant(rng):
    y, x = rng.uniform(-3, 3, (2, 200)).astype("float32")
    y[:9], x[:9] = [0, 0, 1, -1, 1, -1, 0, 1e-20, 5], [1, -1, 0, 0, 1, -1, 0, 1e20, 5e-9]
    Y, X = (te.placeholder((200,), "float32", name=n) for n in "YX")
    B = te.compute((200,), lambda i: te.atan2(Y[i], X[i]), name="B")
    got, _ = on(te.create_prim_func([Y, X, B]), [y, x], np.zeros(200, "float32"))
    np.testing.assert_allclose(got, np.arctan2(y, x), rtol=2e-5, atol=2e-6)


def test_time_and_statistics(rng):
    f = matvec(60, 64)
    module = weft.build(f, target="qpu")
    device = weft.device("qpu")
    a = weft.asarray(rng.standard_normal((60, 64)).astype("float32"), device=device)
    x = weft.asarray(rng.standard_normal(64).astype("float32"), device=device)
    r = module.time_evaluator("main", number=2, repeat=2)(
        a, x, weft.zeros(60, dtype="float32", device=device)
    )
    assert r.cycles > 1000 and r.mean == pytest.approx(r.cycles / 300e6) and r.wall > 0
    stats = device.stats()
    assert stats["cycles"] > 0 and stats["instructions"] > 0


def test_saved_module_runs(tmp_path, rng):
    f = chain(40)
    weft.build(f, target="qpu").save(tmp_path / "chain.weft-mod")
    x, y = rng.standard_normal((2, 40)).astype("float32")
    out = weft.zeros(40, dtype="float32", device="qpu")
    weft.load(tmp_path / "chain.weft-mod")["main"](
        weft.asarray(x, device="qpu"), weft.asarray(y, device="qpu"), out
    )
    want, _ = on(f, [x, y], np.zeros(40, "float32"), "ref")
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6, atol=1e-6)


def refused(make, code, *texts):
    with pytest.raises(weft.Error) as e:
        make()
    assert e.value.code == code
    for text in texts:
        assert text in str(e.value)


def test_refusals_name_statement_and_rule():
    def unary(dtype, f):
        A = te.placeholder((8,), dtype, name="A")
        return te.create_prim_func([A, te.compute((8,), lambda i: f(A[i]), name="Z")])

    refused(
        lambda: weft.build(unary("float64", lambda x: x + 1), "qpu"),
        "qpu.accepts.dtype",
        '"A"',
        "float64",
        '.astype("float32")',
    )
    refused(
        lambda: weft.build(unary("int8", lambda x: x + 1), "qpu"),
        "qpu.accepts.dtype",
        "int8",
        '.astype("int32")',
    )
    refused(
        lambda: weft.build(unary("float32", lambda x: te.nextafter(x, x)), "qpu"),
        "qpu.accepts.intrinsic", '"nextafter"', 'block "Z"',
    )  # fmt: skip
    refused(
        lambda: weft.build(unary("float32", lambda x: x.astype("float16").astype("float32")), "qpu"),
        "qpu.accepts.dtype", "float16", 'block "Z"',
    )  # fmt: skip


def test_calls_are_checked_and_the_device_lives_on(rng):
    module = weft.build(matvec(4, 8), target="qpu")
    a = weft.zeros((4, 8), dtype="float32", device="qpu")
    y = weft.zeros(4, dtype="float32", device="qpu")
    for bad in (weft.zeros(9, dtype="float32", device="qpu"), weft.zeros(8, dtype="int32", device="qpu"), weft.zeros(8, dtype="float32", device="cpu")):  # fmt: skip
        with pytest.raises(weft.Error):
            module["main"](a, bad, y)
    x = weft.ones(8, dtype="float32", device="qpu")
    module["main"](a + 1.0, x, y)
    np.testing.assert_array_equal(y.numpy(), np.full(4, 8, "float32"))
    with pytest.raises(weft.Error) as e:
        weft.device("qpu:qpus=13")
    assert e.value.code == "qpu.device.option"


ARRAY_CASES = [
    ("add", lambda a, b: a + b, (5,), (5,)),
    ("broadcast", lambda a, b: a * b, (5, 1), (1, 100)),
    ("strided", lambda a: a[1::2, ::-1] - 1.5, (8, 33)),
    ("transposed", lambda a: a.T + 0.5, (8, 33)),
    ("quotient", lambda a, b: a / (b * b + 1.0), (7, 40), (7, 40)),
    ("negative", lambda a: -a, (17,)),
    ("empty", lambda a: a + 1.0, (0, 4)),
]  # fmt: skip


@pytest.mark.parametrize("case", ARRAY_CASES, ids=lambda c: c[0])
def test_arrays(case, rng):
    _, f, *shapes = case
    xs = [rng.standard_normal(s).astype("float32") for s in shapes]
    got = f(*[weft.asarray(x, device="qpu") for x in xs])
    assert got.device.name == "qpu"
    np.testing.assert_allclose(got.numpy(), f(*xs), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["sum", "max", "min", "prod"])
def test_array_reductions(name, axis, rng):
    x = rng.uniform(0.5, 1.5, (9, 35)).astype("float32")
    got = getattr(weft, name)(weft.asarray(x, device="qpu"), axis=axis)
    np.testing.assert_allclose(got.numpy(), getattr(np, name)(x, axis=axis), rtol=1e-4)


def test_torch_on_the_qpu():
    torch = pytest.importorskip("torch")
    import weft.torch as wt

    g = torch.Generator().manual_seed(4)
    for name, sa, sb in (
        ("add", (3, 40), (40,)),
        ("mul", (100,), (100,)),
        ("mv", (13, 37), (37,)),
        ("matmul", (9, 20), (20, 17)),
        ("matmul", (2, 5, 8), (8, 3)),
    ):
        a, b = torch.randn(sa, generator=g), torch.randn(sb, generator=g)
        a0 = a.clone()
        got = getattr(wt, name)(a, b, device="qpu")
        torch.testing.assert_close(got, getattr(torch, name)(a, b), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(getattr(torch.ops.weft, name)(a, b, "qpu"), got)
        assert torch.equal(a, a0)
    a = torch.randn((6, 7), generator=g, requires_grad=True)
    x = torch.randn(7, generator=g, requires_grad=True)
    wt.mv(a, x, device="qpu").sum().backward()
    torch.testing.assert_close(a.grad, x.detach().expand(6, 7), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(x.grad, a.detach().sum(0), rtol=1e-4, atol=1e-5)
    i = torch.randint(-50, 50, (33,), generator=g, dtype=torch.int32)
    assert torch.equal(wt.mul(i, i, device="qpu"), i * i)
