# SPDX-License-Identifier: Apache-2.0
"""te's functions come from the table of intrinsics: each one on each device that runs here, against NumPy."""

import math

import numpy as np
import pytest
import weft
import weft._core as core
from weft import script, te

INTEGER = {"shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
INTEGER |= {"popcount", "clz", "mulhi"}
PREDICATES = {"isnan", "isinf", "isfinite", "signbit"}
REFERENCE = {
    "erf": np.vectorize(math.erf),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "round": np.round,
    "pow": np.power,
    "atan2": np.arctan2,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "exp2_flush": np.exp2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "bitwise_not": np.invert,
    "popcount": np.vectorize(lambda x: bin(int(x) & 0xFFFFFFFF).count("1")),
    "clz": np.vectorize(lambda x: 32 - (int(x) & 0xFFFFFFFF).bit_length()),
    "mulhi": lambda x, y: ((x.astype("int64") * y) >> 32).astype("int32"),
}
DEVICES = [d for d in ("cpu", "c", "ref", "opencl") if weft.device(d).available]


def arguments(row, rng):
    n = 37
    if row["name"] in INTEGER:
        x = rng.integers(-1000, 1000, n).astype("int32")
        y = rng.integers(0, 31, n).astype("int32")
        return (x, y)[: row["arity"]]
    low, high = {"acosh": (1.0, 4.0), "atanh": (-0.9, 0.9)}.get(row["name"], (0.01, 0.99))
    if row["name"] in PREDICATES:
        return (rng.choice(np.array([0.0, -0.0, 1.5, -2, np.nan, np.inf, -np.inf], "float32"), n),)
    return tuple(
        (rng.random(n) * (high - low) + low).astype("float32") for _ in range(row["arity"])
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", core.intrinsic_rows, ids=lambda r: r["name"])
def test_function(row, device):
    rng = np.random.default_rng(5)
    values = arguments(row, rng)
    reference = REFERENCE.get(row["name"]) or getattr(np, row["name"])
    expected = reference(*values)
    placeholders = [
        te.placeholder(v.shape, str(v.dtype), name=f"A{i}") for i, v in enumerate(values)
    ]
    function = getattr(te, row["name"])
    assert function.__doc__
    out = te.compute(
        values[0].shape,
        lambda i: (
            te.if_then_else(function(*(p[i] for p in placeholders)), 1, 0)
            if expected.dtype == bool
            else function(*(p[i] for p in placeholders))
        ),
        name="C",
    )
    module = weft.build(te.create_prim_func([*placeholders, out]), target=device)
    arrays = [weft.asarray(v, device=device) for v in values]
    dtype = "int32" if row["name"] in INTEGER else "float32"
    result = weft.zeros(expected.shape, dtype=dtype, device=device)
    module["main"](*arrays, result)
    if row["name"] in INTEGER or expected.dtype == bool:
        assert np.array_equal(result.numpy(), expected)
    else:
        np.testing.assert_allclose(result.numpy(), expected, rtol=4e-6, atol=1e-6)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def integer_reference(name, bits, signed, x, y):
    """On Python's integers, from the definitions; the result wraps."""
    pattern = x & (2**bits - 1)
    out = {
        "shift_left": lambda: x << y if 0 <= y < bits else 0,
        "shift_right": lambda: x >> y if 0 <= y < bits else -(x < 0),
        "bitwise_and": lambda: x & y,
        "bitwise_or": lambda: x | y,
        "bitwise_xor": lambda: x ^ y,
        "bitwise_not": lambda: ~x,
        "popcount": lambda: bin(pattern).count("1"),
        "clz": lambda: bits - pattern.bit_length(),
        "mulhi": lambda: (x * y) >> bits,
        "abs": lambda: abs(x),
    }[name]() & (2**bits - 1)
    return out - 2**bits if signed and out >> (bits - 1) else out


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers_of_every_width(dtype, device):
    """At the ends of the type and around each power of two; counts of shifts that are negative or too large, too."""
    info = np.iinfo(dtype)
    few = {info.min, info.max, info.min + 1, info.max - 1, 0, 1, 3, info.max // 3, info.min // 3}
    few |= {v for k in (7, 8, 15, 16, 31, 32, 33, 63) for v in (2**k, 2**k - 1, -(2**k), 1 - 2**k)}
    few |= {info.bits, info.bits - 1, -1, 5}
    few = sorted(v for v in few if info.min <= v <= info.max)
    x, y = (np.array(v, dtype).ravel() for v in np.meshgrid(few, few))
    names = ["popcount", "clz", "mulhi", "abs", *sorted(INTEGER - {"popcount", "clz", "mulhi"})]
    unary = {"popcount", "clz", "abs", "bitwise_not"}
    a, b = (te.placeholder(x.shape, dtype, name=n) for n in "AB")

    def value(name):
        function = abs if name == "abs" else getattr(te, name)
        return lambda i: function(a[i]) if name in unary else function(a[i], b[i])

    outs = [te.compute(x.shape, value(name), name=f"C{k}") for k, name in enumerate(names)]
    module = weft.build(te.create_prim_func([a, b, *outs]), target=device)
    results = [weft.zeros(x.shape, dtype=dtype, device=device) for _ in names]
    module["main"](*(weft.asarray(v, device=device) for v in (x, y)), *results)
    for name, got in zip(names, results):
        want = [
            integer_reference(name, info.bits, info.min < 0, int(p), int(q)) for p, q in zip(x, y)
        ]
        wrong = np.flatnonzero(got.numpy() != np.array(want, dtype))
        assert not len(wrong), (name, [(x[w], y[w], got.numpy()[w], want[w]) for w in wrong[:5]])


CONSTANTS = [0.1, -1 / 3, 1e-40, 5e-324, 2.0**-126, 65504.0, 16777217.0, 2.0**53 + 2, 1e300, 1.5e-310, -0.0, 7, 1e22, 3.4028234663852886e38]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.filterwarnings("ignore")
def test_constants_have_every_bit_of_their_type(dtype, device):
    """Also as factors: a product with a constant is one of that type."""
    a = np.random.default_rng(3).standard_normal(101).astype(dtype)
    x = te.placeholder(a.shape, dtype, name="A")
    constants = [*CONSTANTS, np.inf, -np.inf, np.nan]
    values = [te.const(c, dtype) for c in constants]
    held = [te.compute(a.shape, lambda i, v=v: v, name=f"B{k}") for k, v in enumerate(values)]
    times = [
        te.compute(a.shape, lambda i, v=v: x[i] * v, name=f"C{k}") for k, v in enumerate(values)
    ]
    module = weft.build(te.create_prim_func([x, *held, *times]), target=device)
    results = [weft.zeros(a.shape, dtype=dtype, device=device) for _ in (*held, *times)]
    module["main"](weft.asarray(a, device=device), *results)
    for k, constant in enumerate(constants):
        got, product = results[k].numpy(), results[k + len(held)].numpy()
        want = np.full(a.shape, constant, dtype)
        np.testing.assert_array_equal(got, want, str(constant))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want) & ~np.isnan(want))
        np.testing.assert_array_equal(product, a * want, str(constant))


def test_two_values_or_a_reduction():
    a = np.array([3.0, -1.0, 2.0], "float32")
    A = te.placeholder((3,), "float32", name="A")
    k = te.reduce_axis(3, name="k")
    both = te.compute((3,), lambda i: te.max(te.min(A[i], 2.5), 0.0), name="B")
    largest = te.compute((1,), lambda i: te.max(A[k], axis=k), name="C")
    module = weft.build(te.create_prim_func([A, both, largest]), target="cpu")
    B, C = weft.zeros((3,), dtype="float32"), weft.zeros((1,), dtype="float32")
    module["main"](weft.asarray(a), B, C)
    assert B.numpy().tolist() == [2.5, 0.0, 2.0] and C.numpy().tolist() == [3.0]


def rows(reduce):
    """One value per row of an (n, k) matrix, both extents known at run time only."""
    n, k = te.var("n"), te.var("k")
    a = te.placeholder((n, k), "float32", name="A")
    r = te.reduce_axis((0, k), "r")
    return te.create_prim_func([a, te.compute((n,), lambda i: reduce(a[i, r], r), name="B")])


def fused(f):
    sch = weft.Schedule(f)
    sch.fuse(*sch.get_loops(sch.get_block("B")))
    return sch


def tiled(f):
    sch = weft.Schedule(f)
    i, r = sch.get_loops(sch.get_block("B"))
    o, _ = sch.split(r, [None, 4])
    sch.reorder(o, i)
    return sch


def cached(f):
    sch = weft.Schedule(f)
    block = sch.get_block("B")
    out = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(out, sch.get_loops(block)[0])
    return sch


def decomposed(f):
    sch = weft.Schedule(f)
    block = sch.get_block("B")
    sch.decompose_reduction(block, sch.get_loops(block)[1])
    return sch


def on_a_grid(f, form):
    sch = weft.Schedule(f)
    block = sch.get_block("B")
    i, r = sch.get_loops(block)
    if form == "reordered":
        o, t = sch.split(i, [None, 32])
        sch.reorder(o, r, t)
    else:
        o, t = sch.split(i, [None, 32])
    sch.bind(o, "blockIdx.x")
    sch.bind(t, "threadIdx.x")
    return sch


FORMS = {
    "plain": lambda f: f,
    "fused": fused,
    "tiled": tiled,
    "cached": cached,
    "decomposed": decomposed,
}
SHAPES = [(5, 0), (1, 0), (37, 0), (5, 3), (0, 0), (0, 4), (33, 9)]
REDUCTIONS = {
    "sum": (lambda x, r: te.sum(x, axis=r), lambda a: a.sum(1)),
    "max": (lambda x, r: te.max(x, axis=r), lambda a: a.max(1, initial=-np.inf)),
}


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("device", [d for d in DEVICES if d != "opencl"])
def test_a_reduction_over_nothing_is_its_identity(device, name, form):
    build, reference = REDUCTIONS[name]
    f = rows(build)
    module = weft.build(FORMS[form](f), target=device)
    check_rows(module, device, reference)


@pytest.mark.parametrize("form", ["plain", "reordered"])
def test_a_reduction_over_nothing_on_a_grid(form):
    build, reference = REDUCTIONS["sum"]
    f = on_a_grid(rows(build), form)
    assert "if (k <= 0)" in weft.build(f, target="cuda:arch=sm_90").source()
    check_rows(weft.build(f, target="opencl"), "opencl:0", reference)


def check_rows(module, device, reference):
    rng = np.random.default_rng(5)
    for shape in SHAPES:
        a = rng.random(shape).astype("float32")
        out = weft.asarray(np.full(shape[0], 7, "float32"), device=device)
        module["main"](weft.asarray(a, device=device), out)
        assert np.allclose(out.numpy(), reference(a), rtol=1e-5), shape


def test_a_reduction_that_has_steps_for_certain_gets_no_second_init():
    n = te.var("n")
    a = te.placeholder((n, 8), "float32", name="A")
    r = te.reduce_axis((0, 8), "r")
    f = te.create_prim_func([a, te.compute((n,), lambda i: te.sum(a[i, r], axis=r), name="B")])
    assert "<= 0" not in weft.build(f, target="c").source()


def test_functions_that_users_of_tvm_expect():
    A, B = te.placeholder((8,), "int32", name="A"), te.placeholder((8,), "float32", name="B")
    results = [
        te.compute((8,), f, name=f"r{n}")
        for n, f in enumerate(
            [
                lambda i: te.Select(A[i] > 0, te.floordiv(A[i], 3), te.truncdiv(A[i], 3)),
                lambda i: te.floormod(A[i], 3) * 10 + te.truncmod(A[i], 3),
                lambda i: (7 & A[i]) | (1 << (A[i] & 3)) ^ (64 | A[i]) + (2000 >> (A[i] & 3)),
                lambda i: te.max(te.min(A[i], te.max_value("int8").astype("int32")), te.cast("int32", te.min_value("int8"))),
                lambda i: te.cast("int32", abs(B[i]) ** 2 + 2 ** B[i] + te.power(B[i], 2.0)),
                lambda i: te.cast("int32", te.if_then_else(B[i] < te.infinity(), +B[i], -B[i])),
            ]
        )
    ]  # fmt: skip
    m = weft.build(te.create_prim_func([A, B, *results]), target="ref")
    a = np.array([-200, -7, -3, -1, 0, 2, 7, 300], dtype="int32")
    b = np.array([-2, -1, 0, 1, 2, 3, -3, 1], dtype="float32")
    out = [weft.zeros(8, dtype="int32") for _ in results]
    m["main"](weft.asarray(a), weft.asarray(b), *out)
    trunc = np.trunc(a / 3).astype("int32")
    for got, want in zip(
        out,
        [
            np.where(a > 0, a // 3, trunc),
            a % 3 * 10 + (a - 3 * trunc),
            (7 & a) | (1 << (a & 3)) ^ (64 | a) + (2000 >> (a & 3)),
            np.clip(a, -128, 127),
            np.trunc(b * b + 2.0**b + b * b),
            b,
        ],
    ):
        np.testing.assert_array_equal(got.numpy(), want)


def test_an_expression_too_deep_is_refused():
    A = te.placeholder((4,), "float32", name="A")

    def body(n):
        def f(i):
            e = A[i]
            for _ in range(n):
                e = e + 1.0
            return e

        return f

    with pytest.raises(weft.Error) as caught:
        te.compute((4,), body(1500), name="C")
    assert caught.value.code == "te.compute.depth" and '"C"' in str(caught.value)
    for target in ("ref", "c"):
        m = weft.build(te.create_prim_func([A, te.compute((4,), body(990), name="C")]), target)
        out = weft.zeros(4, dtype="float32")
        m["main"](weft.zeros(4, dtype="float32"), out)
        assert out.tolist() == [990.0] * 4


def test_an_axis_to_reduce_over_is_its_variable():
    r, i = te.reduce_axis(7, "r"), te.var("i")
    written = [
        r == 3,
        3 == r,
        r != i,
        i == r,
        r < 3,
        r // 2,
        7 // r,
        r % 2,
        r >> 1,
        r & 1,
        -r,
        abs(r),
        ~r,
    ]
    assert [repr(e) for e in written[:7]] == [
        *("r == 3", "r == 3", "r != i", "i == r", "r < 3", "r // 2", "7 // r")
    ]
    assert all(type(e) is weft._core.Expr for e in written)
    assert r.dtype == "int64" and repr(r.astype("float32")) == 'T.Cast("float32", r)'
    with pytest.raises(weft.ArgumentError) as refused:
        bool(r == 3 or r == 4)
    assert refused.value.code == "python.truth"

    A = te.placeholder((7,), "int32", name="A")
    B = te.compute((1,), lambda j: te.sum(te.if_then_else(r == 3, A[r], 0), axis=r), name="B")
    out = weft.zeros((1,), dtype="int32")
    weft.build(te.create_prim_func([A, B]))(
        weft.asarray([1, 2, 3, 40, 5, 6, 7], dtype="int32"), out
    )
    assert out.tolist() == [40]


def test_tensors_are_not_sequences_and_take_whole_indices():
    A = te.placeholder((4,), name="A")
    assert A.ndim == 1
    with pytest.raises(weft.DTypeError, match='not a sequence: "A"') as refused:
        list(A)
    assert refused.value.code == "te.tensor.iterate"
    with pytest.raises(weft.ArgumentError, match='index 0 of "A" is .*0.5.*no integer') as refused:
        A[0.5]
    assert refused.value.code == "te.index"
    for shape, body in (((4,), lambda i, j: A[i]), ((2, 2), lambda i: A[i]), ((4,), lambda: 1.0)):
        with pytest.raises(weft.ShapeError, match="dimensions, its function takes") as refused:
            te.compute(shape, body, name="C")
        assert refused.value.code == "te.compute.indices"
    for body in (lambda *i: A(*i), lambda i, scale=2.0: A[i] * scale, lambda i, *rest: A[i]):
        assert te.compute((4,), body).shape == (4,)


def test_limits_are_finite_in_both_languages():
    from weft import script as T

    for dtype in ("float16", "bfloat16", "float32", "float64", "int8", "uint32", "int64"):

        @T.prim_func
        def f(A: T.Buffer((2,), dtype)):
            A[0] = T.min_value(dtype)
            A[1] = T.max_value(dtype)

        out = weft.zeros((2,), dtype=dtype)
        weft.build(f, target="ref")(out)
        of = (weft.finfo if "float" in dtype else weft.iinfo)(dtype)
        assert [out[0].item(), out[1].item()] == [of.min, of.max]


def test_expressions_have_a_limit_of_levels():
    """A loop that grows an expression without end is told so; it does not end the process."""
    a = te.placeholder((8,), "float32", name="A")
    i = te.var("i")
    steps = {
        "add": lambda x: x + a[i],
        "reflected": lambda x: 1.5 - x,
        "function": te.exp,
        "select": lambda x: te.Select(i > 3, x, a[i]),
        "if": lambda x: te.if_then_else(i > 3, x, a[i]),
        "unary": lambda x: te.abs(x) - 1.0,
        "cast": lambda x: x.astype("float64").astype("float32") * 3.0,
        "index": lambda x: a[x.astype("int64")],
        "shared": lambda x: x + x,
    }
    for name, step in steps.items():
        with pytest.raises(weft.Error) as caught:
            x = a[i]
            for _ in range(10**6):
                x = step(x)
        assert caught.value.code == "python.expression.depth", name
        assert "deeper than 2000 levels" in caught.value.message
    x = i
    for _ in range(10**4):  # nothing grows: builders fold
        x = (x + 0) * 1
    assert str(x) == str(i)


# ---- parts that occur many times

TIMES = {
    "doubled": (20, lambda x: x + x),
    "halved again": (300, lambda x: (x + x) * 0.5),
    "both arms": (40, lambda x: te.Select(x > 100.0, x * 0.5, x + x)),
    "through a function": (30, lambda x: te.exp(x * 0.0) + x * x * 0.001),
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("target", ["ref", "c", "cpu"])
def test_what_is_written_twice_is_computed_once(name, target):
    """x = x + x twenty times is a tree of a million places and twenty-one values."""
    times, step = TIMES[name]
    a = te.placeholder((8,), "float32", name="A")

    def body(i):
        x = a[i]
        for _ in range(times):
            x = step(x)
        return x

    f = te.create_prim_func([a, te.compute((8,), body, name="C")])
    text = f.script()
    assert len(text) < 200 * times + 2000 and "part1: T.float32" in text
    assert weft.ir.structural_equal(script.from_source(text), f)
    sch = weft.Schedule(f)
    (i,) = sch.get_loops("C")
    _, inner = sch.split(i, [None, 4])
    sch.vectorize(inner)
    device = weft.device("ref" if target == "ref" else "cpu")
    x = np.arange(1, 9, dtype=np.float32) / 8
    given, got = weft.asarray(x, device=device), weft.zeros((8,), device=device)
    weft.build(sch, target=target)["main"](given, got)
    numpy_step = {
        "both arms": lambda v: np.where(v > 100, v * np.float32(0.5), v + v),
        "through a function": lambda v: 1 + v * v * np.float32(0.001),
    }.get(name, step)
    for _ in range(times):
        x = numpy_step(x)
    np.testing.assert_allclose(got.numpy(), x, rtol=1e-5)


def test_sums_of_what_is_written_twice():
    a = te.placeholder((4, 8), "float32", name="A")
    k = te.reduce_axis((0, 8), name="k")

    def body(i):
        x = a[i, k]
        for _ in range(50):
            x = (x + x) * 0.5
        return te.sum(x, axis=k)

    f = te.create_prim_func([a, te.compute((4,), body, name="C")])
    sch = weft.Schedule(f)
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    x, got = np.random.default_rng(3).random((4, 8), np.float32), weft.zeros((4,))
    weft.build(sch, target="cpu")["main"](weft.asarray(x), got)
    np.testing.assert_allclose(got.numpy(), x.sum(1), rtol=1e-5)
    sch = weft.Schedule(f)
    with pytest.raises(weft.ScheduleError) as refused:
        sch.rfactor(sch.get_loops("C")[1], 0)
    assert refused.value.code == "schedule.rfactor.combiner"


def test_what_only_an_arm_needs_stays_there():
    """Parts of an arm are not computed early: there they would read outside the buffer. Too many are refused."""

    def program(times):
        a = te.placeholder((8,), "float32", name="A")

        def body(i):
            x = a[i - 1]
            for _ in range(times):
                x = x + x
            return te.if_then_else(i > 0, x, a[i])

        return te.create_prim_func([a, te.compute((8,), body, name="C")])

    x, got = np.arange(1, 9, dtype=np.float32), weft.zeros((8,))
    weft.build(program(10), target="cpu")["main"](weft.asarray(x), got)
    np.testing.assert_array_equal(got.numpy(), [1, *(x[:-1] * 1024)])
    with pytest.raises(weft.Error, match="a tree of more than 10\\^12 expressions") as refused:
        program(60)
    assert refused.value.code == "te.compute.size" and "Select" in refused.value.help


def test_reinterpret_keeps_the_bits():
    a = te.placeholder((5,), "float32", name="A")
    f = te.create_prim_func(
        [a, te.compute((5,), lambda i: te.reinterpret("int32", a[i]), name="C")]
    )
    x, got = np.float32([0, -1, 1.5, np.inf, 1e-40]), weft.zeros((5,), dtype="int32")
    weft.build(f, target="cpu")["main"](weft.asarray(x), got)
    np.testing.assert_array_equal(got.numpy(), x.view(np.int32))
    with pytest.raises(weft.DTypeError, match="reinterpret of float32 as int64") as refused:
        te.reinterpret("int64", te.const(1))
    assert refused.value.code == "te.reinterpret"


def test_ends_of_bool_in_programs():
    assert str(te.max_value("bool")) == str(te.const(True, "bool"))
    assert str(te.min_value("bool")) == str(te.const(False, "bool"))
