# SPDX-License-Identifier: Apache-2.0
"""Vectors, prefetches and register transposes in the text of target c, and the transposes on cpu."""

import re

import numpy as np
import pytest

import weft
from weft import script as T
from weft import te

SIDES = {8: (16,), 16: (8,), 32: (4, 8), 64: (2, 4)}
TYPES = {
    "f32": "float32",
    "i32": "int32",
    "u32": "uint32",
    "f64": "float64",
    "i64": "int64",
    "u64": "uint64",
    "f16": "float16",
    "i16": "int16",
    "u16": "uint16",
    "i8": "int8",
    "u8": "uint8",
}
ROWS = [
    (f"transpose.{side}x{side}.{short}", side, dtype)
    for short, dtype in TYPES.items()
    for side in SIDES[np.dtype(dtype).itemsize * 8]
]


def _func(text):
    """A program written down with numbers filled in."""
    return T.from_source(text)


def _transposed(rows, columns, dtype, step=0):
    """B[i, j] = A[j, i]; with a step, A's rows lie further apart than they are long."""
    of = f", strides=({columns + step}, 1)" if step else ""
    return _func(f"""
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, ({rows}, {columns}), "{dtype}"{of})
    B = T.match_buffer(b, ({columns}, {rows}), "{dtype}")
    for i, j in T.grid({columns}, {rows}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
""")


def _tiled(func, row, side):
    sch = weft.Schedule(func)
    i, j = sch.get_loops(sch.get_block("B"))
    i0, i1 = sch.split(i, [None, side])
    j0, j1 = sch.split(j, [None, side])
    sch.reorder(i0, j0, i1, j1)
    sch.tensorize(i1, row)
    return sch


def _numbers(rng, shape, dtype):
    bits = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), dtype=np.uint8)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return bits.view(dtype).reshape(shape)


@pytest.mark.parametrize("target", ["c", "cpu", "ref", "c:vector_bytes=32"])
def test_every_transpose_row(target):
    """The instruction gives NumPy's transpose, in tiles inside larger matrices."""
    rng = np.random.default_rng(7)
    rows = ROWS if target in ("cpu", "ref") else ROWS[::2]  # each build runs a compiler
    for row, side, dtype in rows:
        m, n = side * int(rng.integers(1, 4)), side * int(rng.integers(1, 4))
        x = _numbers(rng, (m, n), dtype)
        y = weft.asarray(np.zeros((n, m), dtype))
        module = weft.build(_tiled(_transposed(m, n, dtype), row, side), target=target)
        module["main"](weft.asarray(x), y)
        assert np.array_equal(y.numpy(), x.T), f"{row} on {target}, {m} x {n}"
        if target != "ref":
            assert f"weft_transpose_{side}x{side}_b" in module.source()


def test_transposes_under_random_schedules():
    """Rows apart, tiles read or written through local memory, sides chosen at random."""
    seed = 20_261_122
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for trial in range(24):
        row, side, dtype = ROWS[int(rng.integers(len(ROWS)))]
        target = "c" if trial % 4 == 0 else "cpu"
        m, n = side * int(rng.integers(1, 4)), side * int(rng.integers(1, 4))
        step = int(rng.integers(0, 2)) * int(rng.integers(1, 9))
        sch = weft.Schedule(_transposed(m, n, dtype, step))
        block = sch.get_block("B")
        i, j = sch.get_loops(block)
        i0, i1 = sch.split(i, [None, side])
        j0, j1 = sch.split(j, [None, side])
        sch.reorder(*((i0, j0) if rng.integers(2) else (j0, i0)), i1, j1)
        outer = sch.get_loops(block)[1]
        if rng.integers(2):
            copy = sch.cache_write(block, 0, "local")
            sch.reverse_compute_at(copy, outer)
            sch.vectorize(sch.get_loops(copy)[-1])
        if rng.integers(2):
            copy = sch.cache_read(block, 0, "local")
            sch.compute_at(copy, outer)
        sch.tensorize(sch.get_loops(block)[2], row)
        held = _numbers(rng, (m, n + step), dtype)
        x = weft.asarray(held)[:, :n]
        y = weft.asarray(np.zeros((n, m), dtype))
        module = weft.build(sch, target=target)
        module["main"](x, y)
        story = f"trial {trial}: {row} on {target}, {m} x {n}, step {step}\n{sch.mod}"
        assert np.array_equal(y.numpy(), held[:, :n].T), story
        assert "weft_transpose" in module.source(), story


def test_rows_that_are_not_contiguous_stay_loops():
    """A matrix with gaps in its rows cannot move as vectors: the text says so and is right."""
    func = _func("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8, 8), "float32", strides=(16, 2))
    B = T.match_buffer(b, (8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
""")
    sch = weft.Schedule(func)
    sch.tensorize(sch.get_loops(sch.get_block("B"))[0], "transpose.8x8.f32")
    held = np.arange(128, dtype="float32").reshape(8, 16)
    for target in ("c", "cpu"):
        module = weft.build(sch, target=target)
        y = weft.asarray(np.zeros((8, 8), "float32"))
        module["main"](weft.asarray(held)[:, ::2], y)
        assert np.array_equal(y.numpy(), held[:, ::2].T)
        assert "weft_transpose" not in module.source()
    assert 'rows of "A" are not contiguous' in weft.build(sch, target="c").source()


def test_tensorize_refuses_what_is_no_transpose():
    func = _func("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8, 8), "float32")
    B = T.match_buffer(b, (8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")
    sch = weft.Schedule(func)
    loop = sch.get_loops(sch.get_block("B"))[0]
    with pytest.raises(weft.ScheduleError, match="indexed differently") as caught:
        sch.tensorize(loop, "transpose.8x8.f32")
    assert caught.value.code == "schedule.tensorize.mismatch"
    with pytest.raises(weft.ScheduleError, match="transpose.8x8.f32"):
        sch.tensorize(loop, "transpose.8x8.g32")


def _product(rows, columns, depth, lanes, dtype="float32"):
    """A register tile by public steps, with prefetches of the result."""
    sch = weft.Schedule(
        _func(f"""
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, ({rows}, {depth}), "{dtype}")
    B = T.match_buffer(b, ({depth}, {columns}), "{dtype}")
    C = T.match_buffer(c, ({rows}, {columns}), "{dtype}")
    S = T.alloc_buffer(({rows}, {columns}), "{dtype}")
    for i in T.serial({rows}):
        with T.block("hint"):
            vi = T.axis.spatial({rows}, i)
            T.evaluate(T.prefetch(T.address_of(C[vi, 0]), 1, 3))
    for i, j, p in T.grid({rows}, {columns}, {depth}):
        with T.block("sum"):
            vi, vj, vp = T.axis.remap("SSR", [i, j, p])
            with T.init():
                S[vi, vj] = T.{dtype}(0)
            S[vi, vj] = S[vi, vj] + A[vi, vp] * B[vp, vj]
    for i, j in T.grid({rows}, {columns}):
        with T.block("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = S[vi, vj]
""")
    )
    block, out = sch.get_block("sum"), sch.get_block("out")
    sch.set_scope(block, 0, "local")
    i, j, p = sch.get_loops(block)
    j0, j1 = sch.split(j, [None, lanes])
    sch.reorder(p, i, j0, j1)
    sch.annotate(p, "unroll_factor", 4)
    init = sch.decompose_reduction(block, p)
    sch.split(sch.get_loops(out)[1], [None, lanes])
    for each in (init, block, out):
        loops = sch.get_loops(each)
        sch.vectorize(loops[-1])
        sch.unroll(loops[-2])
        sch.unroll(loops[-3])
    return sch


@pytest.mark.parametrize("bytes_", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_sums_are_vectors_of_the_language(bytes_, dtype):
    """The accumulator becomes an array of vectors, a factor a spread, the loop is unrolled."""
    rng = np.random.default_rng(3)
    lanes = bytes_ // np.dtype(dtype).itemsize
    sch = _product(5, 3 * lanes, 37, lanes, dtype)
    module = weft.build(sch, target=f"c:vector_bytes={bytes_}")
    a, b = (_numbers(rng, s, dtype) for s in ((5, 37), (37, 3 * lanes)))
    c = weft.asarray(np.zeros((5, 3 * lanes), dtype))
    module["main"](weft.asarray(a), weft.asarray(b), c)
    want = a.astype("float64") @ b.astype("float64")
    assert np.abs(c.numpy() - want).max() < (1e-4 if dtype == "float32" else 1e-12)
    text = module.source()
    name = f"weft_f{np.dtype(dtype).itemsize * 8}x{lanes}"
    assert re.search(rf"{name} S\[15\];", text), text
    assert f"weft_spread_{name[5:]}(" in text and "WEFT_PREFETCH(&C[" in text
    assert "#pragma GCC unroll 4\n" in text
    plain = weft.build(sch, target="c:vector_bytes=0").source()
    assert "vector_size" not in plain and "WEFT_PREFETCH(&C[" in plain


VALUES = {
    "arithmetic": ("x + y * T.float32(3) - x / (y * y + T.float32(1))", lambda x, y: x + y * 3 - x / (y * y + 1)),
    "extremes": ("T.max(T.min(x, y), T.float32(0.25))", lambda x, y: np.maximum(np.minimum(x, y), 0.25)),
    "choice": ("T.Select(T.And(x < y, T.Not(x == y)), x, y * T.float32(2))", lambda x, y: np.where(x < y, x, 2 * y)),
    "library": ("T.sqrt(T.abs(x)) + y", lambda x, y: np.sqrt(np.abs(x)) + y),
    "bits": (
        'T.reinterpret("float32", T.bitwise_and(T.reinterpret("int32", x), T.int32(2147483647))) + y',
        lambda x, y: np.abs(x) + y,
    ),
    "conversion": (
        'T.cast(T.cast(x * T.float32(100), "int32"), "float32") + y',
        lambda x, y: np.trunc(x * np.float32(100)) + y,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_values_in_vectors(case):
    """Whole vectors and, where C has no operator for them, lanes."""
    text, value = VALUES[case]
    rng = np.random.default_rng(5)
    n = 96
    sch = weft.Schedule(
        _func(f"""
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, ({n},), "float32")
    B = T.match_buffer(b, ({n},), "float32")
    C = T.match_buffer(c, ({n},), "float32")
    for i in T.serial({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            x: T.float32 = A[vi]
            y: T.float32 = B[vi]
            C[vi] = {text}
""")
    )
    sch.vectorize(sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 8])[1])
    x, y = (_numbers(rng, (n,), "float32") for _ in range(2))
    with np.errstate(all="ignore"):
        want = value(x, y).astype("float32")
    for target in ("c:vector_bytes=32", "c:vector_bytes=16", "ref"):
        c = weft.asarray(np.zeros(n, "float32"))
        module = weft.build(sch, target=target)
        module["main"](weft.asarray(x), weft.asarray(y), c)
        assert np.allclose(c.numpy(), want, rtol=1e-6, atol=1e-6), f"{case} on {target}"
        if target.endswith("32"):
            assert "weft_f32x8" in module.source()


def test_extremes_of_nan_in_vectors():
    """NaN wins, as in scalars."""
    sch = weft.Schedule(
        _func("""
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (8,), "float32")
    B = T.match_buffer(b, (8,), "float32")
    C = T.match_buffer(c, (8,), "float32")
    for i in T.serial(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = T.max(A[vi], B[vi])
""")
    )
    sch.vectorize(sch.get_loops(sch.get_block("C"))[0])
    nan = float("nan")
    a = np.array([nan, 1, nan, -1, 0, 5, nan, 2], "float32")
    b = np.array([1, nan, nan, 3, 0, 4, -1, 2], "float32")
    for target in ("c:vector_bytes=32", "c:vector_bytes=16", "c"):
        c = weft.asarray(np.zeros(8, "float32"))
        weft.build(sch, target=target)["main"](weft.asarray(a), weft.asarray(b), c)
        assert np.array_equal(np.isnan(c.numpy()), np.isnan(np.maximum(a, b))), target
        assert np.nanmax(np.abs(np.nan_to_num(c.numpy() - np.maximum(a, b)))) == 0


@pytest.mark.parametrize("promise", [False, True])
@pytest.mark.parametrize("skip", [0, 1, 8])
def test_stores_past_the_caches_in_vectors(skip, promise):
    """Addresses are looked at, unless the program promises that its arguments are aligned."""
    attr = 'T.func_attr({"aligned_arguments": True})' if promise else ""
    sch = weft.Schedule(
        _func(f"""
@T.prim_func
def main(a: T.handle, b: T.handle):
    {attr}
    A = T.match_buffer(a, (64,), "float32")
    B = T.match_buffer(b, ({64 + skip},), "float32", align=32)
    for i in T.serial(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi + {skip}] = A[vi] * T.float32(2)
""")
    )
    outer, inner = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 8])
    sch.vectorize(inner)
    sch.annotate(outer, "nontemporal", True)
    module = weft.build(sch, target="c:vector_bytes=32")
    sure = promise and skip != 1
    assert ("weft_stream_aligned_f32x8(" if sure else "weft_stream_f32x8(") in module.source()
    for at in (0,) if promise else range(8):  # elements behind a multiple of 64 bytes
        held = weft.zeros(80 + at, dtype="float32")
        x, y = np.arange(64, dtype="float32"), held[at : at + 64 + skip]
        module["main"](weft.asarray(x), y)
        assert np.array_equal(y.numpy()[skip:], 2 * x) and not y.numpy()[:skip].any()


def test_bounds_of_loops_that_are_masks():
    """n % 2 is written n & 1, which binds less closely than <."""
    module = weft.build(
        _func("""
@T.prim_func
def main(a: T.handle, n: T.int64):
    A = T.match_buffer(a, (n,), "float32")
    for i in T.serial(n // 4 % 2):
        A[i] = A[i] + T.float32(1)
"""),
        target="c",
    )
    for n in (3, 4, 7, 8, 12, 13):
        x = weft.asarray(np.zeros(n, "float32"))
        module["main"](x, n)
        assert x.numpy().sum() == n // 4 % 2, n


def test_vector_bytes_that_no_machine_has():
    with pytest.raises(weft.Error, match="vector_bytes") as caught:
        weft.build(_transposed(8, 8, "float32"), target="c:vector_bytes=48")
    assert caught.value.code == "target.option.range"
    assert "16, 32 and 64" in str(caught.value)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("target", ["cuda:arch=sm_90", "metal", "opencl"])
def test_arguments_are_aligned_as_their_widest_move_needs(target, lanes, dtype):
    """Vectors of CUDA and Metal are moved at once, 16 bytes at most; OpenCL loads and stores them at any element."""
    a = te.placeholder((64,), dtype, name="A")
    sch = weft.Schedule(
        te.create_prim_func([a, te.compute((64,), lambda i: a[i] + a[i], name="B")])
    )
    block, thread, lane = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 2, lanes])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    if lanes > 1:
        sch.vectorize(lane)
    params = weft.build(sch, target=target).plan("main")["params"]
    size = np.dtype(dtype).itemsize
    most = {"cuda": 16, "metal": min(16, 4 * size), "opencl": size}[target.partition(":")[0]]
    assert [p["align"] for p in params] == [min(lanes * size, most)] * 2


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("op", ["add", "max", "min"])
def test_lanes_of_a_vector_are_reduced(op, lanes, dtype):
    func = _func(f"""
@T.prim_func
def main(A: T.Buffer((3, {lanes}), "{dtype}"), B: T.Buffer((3,), "{dtype}")):
    for i in range(3):
        B[i] = T.vector_reduce_{op}(A[i, T.ramp(0, 1, {lanes})])
""")
    x = np.random.default_rng(3).integers(-50, 50, (3, lanes)).astype(dtype)
    want = {"add": np.sum, "max": np.max, "min": np.min}[op](x, axis=1)
    for target in ("c", "cpu", "ref"):
        b = weft.asarray(np.zeros(3, dtype))
        weft.build(func, target=target)["main"](weft.asarray(x), b)
        np.testing.assert_array_equal(b.numpy(), want, err_msg=target)


@pytest.mark.parametrize(("bytes_", "level", "width"), [(16, "__SSE__", "movntps("), (32, "__AVX__", "movntps256("), (64, "__AVX512F__", "movntps512(")])  # fmt: skip
def test_instructions_of_stores_past_the_caches(bytes_, level, width):
    """Of GCC each vector's own; Clang has one name for all."""
    sch = weft.Schedule(
        _func("""
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in T.serial(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)
""")
    )
    outer, inner = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, bytes_ // 4])
    sch.vectorize(inner)
    sch.annotate(outer, "nontemporal", True)
    text = weft.build(sch, target=f"c:vector_bytes={bytes_}").source()
    assert f"defined({level})" in text and f"__builtin_ia32_{width}" in text
