# SPDX-License-Identifier: Apache-2.0
"""Schedules that weft.build and array operations get from rules: results beside NumPy, and which rule was applied."""

import numpy as np
import pytest
from cover import cover
from present import present
import weft
from weft import te

SEED = 20261124


@pytest.fixture(scope="module")
def device():
    return present("opencl:0")


def _reduction(shape, axes, op, dtype="float32", symbolic=False):
    dims = [te.var(f"d{i}") for i in range(len(shape))] if symbolic else list(shape)
    x = te.placeholder(tuple(dims), dtype=dtype, name="X")
    ks = {a: te.reduce_axis(dims[a], name=f"k{a}") for a in axes}
    kept = [i for i in range(len(shape)) if i not in axes]

    def body(*at):
        where = dict(zip(kept, at))
        index = tuple(ks[i] if i in ks else where[i] for i in range(len(shape)))
        if op == "argmax":
            return te.argmax(ks[axes[0]], x[index], axis=list(ks.values()))
        return getattr(te, op)(x[index], axis=list(ks.values()))

    out = te.compute(tuple(dims[i] for i in kept), body, name="R")
    return te.create_prim_func([x, *(out if isinstance(out, (tuple, list)) else [out])])


def _run(module, device, x, results):
    got = [weft.zeros(r.shape, dtype=str(r.dtype), device=device) for r in results]
    module["main"](weft.asarray(x, device=device), *got)
    for a, b in zip(got, results):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-5)


@cover(
    "shape, axes",
    [
        ((1,), (0,)),
        ((37, 53), (0,)),
        ((37, 53), (1,)),
        ((3, 20001), (1,)),
        ((20001, 3), (0,)),
        ((5, 64, 7, 9), (0, 2, 3)),
        ((3000, 64), (0,)),
        ((3000, 65), (1,)),
        ((4, 6, 8), (1,)),
        ((2, 3, 4, 5), (0, 1, 2, 3)),
    ],
    "symbolic",
    [False, True],
    times=5,
)
def test_reductions_of_weft_build(device, shape, axes, symbolic):
    print("seed", SEED)
    x = np.random.default_rng(SEED).integers(-9, 9, shape).astype("float32")
    for op in ("sum", "max") + (("argmax",) if len(axes) == 1 else ()):
        module = weft.build(_reduction(shape, axes, op, symbolic=symbolic), target="opencl:0")
        want = [x.argmax(axes[0]), x.max(axes)] if op == "argmax" else [getattr(x, op)(axis=axes)]
        _run(module, device, x, [np.asarray(w) for w in want])


def _rule(f, target="cuda:arch=sm_90"):
    return weft.build(f, target=target).notes[0].rsplit("(", 1)[1].rstrip(")")


def test_a_long_reduction_is_cut_into_two_kernels_and_columns_stay_neighbours():
    long = weft.build(_reduction((1 << 22,), (0,), "sum"), target="cuda:arch=sm_90")
    assert "R: reduce" in long.notes[0] and long.source().count("__global__") == 2
    rows = weft.build(_reduction((1 << 16, 1024), (1,), "sum"), target="cuda:arch=sm_90")
    assert rows.source().count("__global__") == 1 and "threadIdx.y" in rows.source()
    columns = weft.build(_reduction((1024, 1 << 16), (0,), "sum"), target="cuda:arch=sm_90")
    assert "(const float4*)(X + " in columns.source() and "threadIdx.x) * 4" in columns.source()


LONG = [((1024, 520), (1,)), ((1024, 520), (0,)), ((40, 512, 64), (0, 2))]


@cover("shape, axes", LONG, "dtype", ["float32", "float16", "float64", "int8", "int32"])
def test_reductions_read_vectors(device, dtype, shape, axes):
    x = np.random.default_rng(SEED).integers(-3, 3, shape).astype(dtype)
    f = _reduction(shape, axes, "max", dtype)
    assert "vload" in weft.build(f, target="opencl:0").source()
    assert "*(const " in weft.build(f, target="cuda:arch=sm_90").source()
    _run(weft.build(f, target="opencl:0"), device, x, [x.max(axis=axes)])
    if dtype != "int8":
        x = np.abs(x) // 2
        _run(
            weft.build(_reduction(shape, axes, "sum", dtype), target="opencl:0"),
            device,
            x,
            [x.sum(axis=axes, dtype=dtype)],
        )


@pytest.mark.parametrize("rows, columns", [(3000, 64), (64, 3000), (4, 100001)])
@pytest.mark.parametrize("axis", [0, 1])
def test_element_wise_work_on_results_stays_with_the_reduction(device, rows, columns, axis):
    x = te.placeholder((rows, columns), name="X")
    k = te.reduce_axis((rows, columns)[axis], name="k")
    total = te.compute(
        ((rows, columns)[1 - axis],),
        lambda i: te.sum(x[(i, k) if axis else (k, i)], axis=k),
        name="R",
    )
    f = te.create_prim_func(
        [x, te.compute(total.shape, lambda i: te.sqrt(total[i]) + 1.0, name="E")]
    )
    module = weft.build(f, target="opencl:0")
    assert "E: with R" in module.notes[0]
    value = np.random.default_rng(SEED).random((rows, columns), "float32")
    _run(module, device, value, [np.sqrt(value.sum(axis)) + 1])


def test_a_product_is_no_reduction_of_one_stream():
    a = te.placeholder((64, 96), name="A")
    b = te.placeholder((96, 80), name="B")
    k = te.reduce_axis(96, name="k")
    c = te.compute((64, 80), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    assert (
        _rule(te.create_prim_func([a, b, c])) == "C: gemm_registers"
    )  # no tile divides 80 columns
    whole = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    assert _rule(te.create_prim_func([a, b, whole])) == "C: gemm_registers"


@pytest.mark.parametrize(
    "m, n, k, turned, batch, dtype, finish",
    [
        (65, 37, 19, (False, False), (), "float32", True),
        (64, 100, 33, (True, True), (), "float32", False),
        (33, 20, 40, (False, True), (3,), "float32", True),
        (17, 300, 8, (False, True), (), "int32", False),
        (130, 130, 48, (True, False), (), "float64", False),
    ],
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_products_that_no_tile_divides(device, m, n, k, turned, batch, dtype, finish, symbolic):
    """Tiles reach beyond every edge; what is read there counts 0, and nothing is written."""
    extents = batch, m, n, k
    if symbolic:
        batch, m, n, k = batch and (te.var("z"),), te.var("m"), te.var("n"), te.var("k")
    a = te.placeholder((*batch, *((k, m) if turned[0] else (m, k))), dtype, name="A")
    b = te.placeholder((*batch, *((n, k) if turned[1] else (k, n))), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")

    def term(*at):
        *lead, i, j = at
        x = a[(*lead, r, i) if turned[0] else (*lead, i, r)]
        return te.sum(x * b[(*lead, j, r) if turned[1] else (*lead, r, j)], axis=r)

    out = te.compute((*batch, m, n), term, name="C")
    if finish:
        sums = out
        out = te.compute(sums.shape, lambda *at: te.max(sums[at], te.const(0, dtype)), name="D")
    module = weft.build(te.create_prim_func([a, b, out]), target="opencl:0", tuned=False)
    assert "C: gemm_registers" in module.notes[0] and ("D: with C" in module.notes[0]) == finish
    batch, m, n, k = extents
    rng = np.random.default_rng(SEED)
    x = rng.integers(-3, 4, (*batch, *((k, m) if turned[0] else (m, k)))).astype(dtype)
    y = rng.integers(-3, 4, (*batch, *((n, k) if turned[1] else (k, n)))).astype(dtype)
    got = weft.full((*batch, m, n), -7, dtype=dtype, device=device)
    module["main"](weft.asarray(x, device=device), weft.asarray(y, device=device), got)
    want = (x.swapaxes(-1, -2) if turned[0] else x) @ (y.swapaxes(-1, -2) if turned[1] else y)
    np.testing.assert_array_equal(got.numpy(), np.maximum(want, 0) if finish else want)


@pytest.mark.parametrize("n", [1 << 16, (1 << 16) + 3, 300007])
def test_vectors_and_a_tail(device, n):
    x = te.placeholder((n,), "float32", name="X")
    f = te.create_prim_func([x, te.compute((n,), lambda i: x[i] * 2.0 + 1.0, name="C")])
    assert _rule(f) == "C: elementwise"
    assert "float4" in weft.build(f, target="cuda:arch=sm_90").source()
    value = np.random.default_rng(SEED).standard_normal(n).astype("float32")
    _run(weft.build(f, target="opencl:0"), device, value, [value * np.float32(2) + np.float32(1)])


def test_size_hints_choose_between_schedules():
    f = _reduction((7, 9), (1,), "sum", symbolic=True)
    few, many = (
        weft.build(f.with_attr("size_hints", {"d0": rows, "d1": 1 << 20}), target="cuda:arch=sm_90")
        for rows in (1, 1 << 16)
    )
    assert few.source().count("__global__") == 2 and many.source().count("__global__") == 1


DTYPES = ["float32", "float16", "float64", "int8", "uint64", "bool"]


REDUCED = [
    ((70001,), None),
    ((300, 7), 0),
    ((5000, 65), 0),
    ((7, 3000), 1),
    ((4, 5, 6), 1),
    # few elements, and reductions that are cut into few parts or none
    ((2, 2), 0),
    ((3, 2), 1),
    ((1, 5), 0),
    ((500, 20), 0),
    ((900, 40), 0),
    ((20, 16000), 1),
]


@cover("shape, axis", REDUCED, "dtype", DTYPES, times=3)
def test_positions_of_extremes(device, shape, axis, dtype):
    x = np.random.default_rng(SEED).standard_normal(shape) * 40
    if dtype == "bool":
        x = x > 0
    else:
        x = (np.abs(x) if dtype[0] == "u" else x).astype(dtype)
    w = weft.asarray(x, device=device)
    np.testing.assert_array_equal(weft.argmax(w, axis=axis).numpy(), x.argmax(axis))
    np.testing.assert_array_equal(weft.argmin(w, axis=axis).numpy(), x.argmin(axis))


def test_positions_in_views(device):
    x = np.random.default_rng(SEED).standard_normal((40, 50)).astype("float32")
    w = weft.asarray(x, device=device)
    for view in (
        lambda a: a.T,
        lambda a: a[::2, 1::3],
        lambda a: a[::-1, ::-1],
        lambda a: a[3:, 5:].T,
    ):
        for axis in (None, 0, 1):
            np.testing.assert_array_equal(
                weft.argmax(view(w), axis=axis).numpy(), view(x).argmax(axis)
            )
    row = np.arange(5, dtype="float32")
    spread = weft.broadcast_to(weft.asarray(row, device=device), (300, 5))
    assert (weft.argmax(spread, axis=0).numpy() == 0).all()
    assert (weft.argmax(spread, axis=1).numpy() == 4).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_nan_infinity_and_ties(device, dtype):
    inf, nan = np.inf, np.nan
    for values in (
        [inf, nan, 3, nan],
        [-inf] * 5,
        [-0.0, 0.0, -0.0],
        [1, -inf, nan],
        [0.0, -0.0],
        [-nan, inf],
    ):
        x = np.tile(np.array(values, dtype), (3, 700))
        w = weft.asarray(x, device=device)
        for name in ("argmax", "argmin"):
            np.testing.assert_array_equal(
                getattr(weft, name)(w, axis=1).numpy(), getattr(np, name)(x, axis=1)
            )
            np.testing.assert_array_equal(
                getattr(weft, name)(w, axis=0).numpy(), getattr(np, name)(x, axis=0)
            )
    edge = np.full((9,), np.iinfo("int64").min)
    assert weft.argmax(weft.asarray(edge, device=device)).numpy() == 0


@pytest.mark.parametrize("batches", [(), (3,), (2, 3)])
@pytest.mark.parametrize("shared", [False, True])
def test_products_of_16_bits_go_to_tensor_cores(batches, shared):
    """Rows and columns are found whatever batches there are; `shared`: the second operand is the same for all of them."""
    m, n, k = 200, 136, 96
    a = te.placeholder((*batches, m, k), "float16", name="A")
    b = te.placeholder((k, n) if shared else (*batches, k, n), "float16", name="B")
    r = te.reduce_axis((0, k), name="r")

    def body(*at):
        *batch, i, j = at
        second = b[r, j] if shared else b[(*batch, r, j)]
        return te.sum(a[(*batch, i, r)].astype("float32") * second.astype("float32"), axis=r)

    f = te.create_prim_func([a, b, te.compute((*batches, m, n), body, name="C")])
    built = weft.build(f, target="cuda:arch=sm_90", tuned=False)
    assert "gemm_tensor_core" in str(built.notes)
    assert "weft_tile_multiply_" in built.source()


@pytest.mark.parametrize(("n", "vectors"), [(1000, False), (8000, False), (1 << 20, True)])
def test_elementwise_takes_vectors_where_all_processors_have_threads(n, vectors):
    x = te.placeholder((n,), "float32", name="X")
    f = te.create_prim_func([x, te.compute((n,), lambda i: x[i] * 2, name="Y")])
    assert ("float4" in weft.build(f, target="cuda:arch=sm_90", tuned=False).source()) == vectors


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("target", ["cuda:arch=sm_90", "metal", "opencl"])
def test_a_thread_of_an_elementwise_program_moves_sixteen_bytes(target, dtype):
    a = te.placeholder((1 << 20,), dtype, name="A")
    program = te.create_prim_func([a, te.compute(a.shape, lambda i: a[i] + a[i], name="B")])
    lanes = 16 // np.dtype(dtype).itemsize
    assert weft.target_limits(target)["vector_bytes"] == 16
    thread = "get_local_id(0)" if target == "opencl" else "threadIdx.x"
    assert f"((int){thread}) * {lanes})" in weft.build(program, target=target).source()


@pytest.mark.parametrize(
    "images, channels, results, size, window, step, spread, groups",
    [
        (2, 6, 20, (28, 28), 3, 1, 1, 1),  # divisors: 28 = 14 x 2 or 7 x 4
        (1, 5, 19, (23, 31), 3, 1, 1, 1),  # primes: tiles reach beyond the edges
        (3, 4, 24, (17, 37), 5, 2, 1, 1),
        (2, 3, 16, (21, 26), 3, 1, 2, 1),
        (1, 12, 12, (20, 50), 3, 1, 1, 12),  # a channel a result
        (17, 9, 33, (7, 7), 3, 1, 1, 1),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_convolutions_that_no_tile_divides(
    device, images, channels, results, size, window, step, spread, groups, dtype
):
    inner = [(window - 1) * spread + 1 + (e - 1) * step for e in size]
    each = channels // groups
    x = te.placeholder((images, channels, *inner), dtype, name="X")
    w = te.placeholder((results, each, window, window), dtype, name="W")
    c, p, q = (
        te.reduce_axis((0, e), name=s) for e, s in ((each, "c"), (window, "p"), (window, "q"))
    )
    per = results // groups

    def body(b, o, i, j):
        place = x[
            b,
            o // per * each + c if groups > 1 else c,
            i * step + p * spread,
            j * step + q * spread,
        ]
        return te.sum(place * w[o, c, p, q], axis=[c, p, q])

    y = te.compute((images, results, *size), body, name="Y")
    z = te.compute(y.shape, lambda *at: te.max(y[at], te.const(0, dtype)), name="Z")
    module = weft.build(te.create_prim_func([x, w, z]), target="opencl:0", tuned=False)
    assert groups > 1 or "Y: gemm_registers" in module.notes[0]
    rng = np.random.default_rng(SEED)
    a = rng.integers(-3, 4, (images, channels, *inner)).astype(dtype)
    k = rng.integers(-3, 4, (results, each, window, window)).astype(dtype)
    got = weft.full((images, results, *size), -7, dtype=dtype, device=device)
    module["main"](weft.asarray(a, device=device), weft.asarray(k, device=device), got)
    reach = (window - 1) * spread + 1
    parts = np.lib.stride_tricks.sliding_window_view(a, (reach, reach), axis=(2, 3))
    parts = parts[:, :, ::step, ::step, ::spread, ::spread].reshape(
        images, groups, each, *size, window, window
    )
    want = np.einsum("ngcijpq,gocpq->ngoij", parts, k.reshape(groups, per, each, window, window))
    np.testing.assert_array_equal(got.numpy(), np.maximum(want.reshape(got.shape), 0))
