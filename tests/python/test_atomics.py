# SPDX-License-Identifier: Apache-2.0
"""Additions that many points make to one place: refused as a race, or made atomic with T.atomic_add."""

import itertools

import numpy as np
import pytest
from refusal import refused

import weft
from weft import script as T

SEED = 20261122
TARGETS = ["ref", "cpu", "c", "opencl"]
DTYPES = ["int32", "int64", "uint32", "uint64", "float32", "float64"]
CUDA = "cuda:arch=sm_90a"


def histogram(n, bins, dtype="int32"):
    return T.from_source(f"""
@T.prim_func
def main(X: T.Buffer(({n},), "int32"), W: T.Buffer(({n},), "{dtype}"), H: T.Buffer(({bins},), "{dtype}")):
    for i in range({n}):
        with T.block("h"):
            vi = T.axis.spatial({n}, i)
            T.atomic_add(H[X[vi]], W[vi])
""")


def scheduled(f, target, width=64):
    sch = weft.Schedule(f)
    (i,) = sch.get_loops(sch.get_block("h"))
    if target in ("cpu", "c"):
        sch.parallel(i)
    elif target != "ref":
        outer, inner = sch.split(i, [None, width])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
    return sch


@pytest.mark.parametrize("target,dtype", list(itertools.product(TARGETS, DTYPES)))
def test_histogram_on_every_target(target, dtype):
    rng = np.random.default_rng(SEED)
    for n, bins in ((1, 1), (1000, 7)) if DTYPES.index(dtype) % 2 else ((63, 5), (4097, 1)):
        x = rng.integers(0, bins, n).astype("int32")
        w = rng.integers(0, 9, n).astype(dtype)  # whole numbers: floats add them exactly
        if dtype.startswith("int"):
            w -= np.array(4, dtype)
        start = np.arange(bins).astype(dtype)
        m = weft.build(scheduled(histogram(n, bins, dtype), target), target=target)
        h = weft.asarray(start, device=target, copy=True)
        m["main"](weft.asarray(x, device=target), weft.asarray(w, device=target), h)
        expected = start.copy()
        np.add.at(expected, x, w)
        np.testing.assert_array_equal(h.numpy(), expected, err_msg=f"{n} {bins} seed {SEED}")


@pytest.mark.parametrize("target,dtype", list(itertools.product(TARGETS, ("int32", "uint32"))))
def test_the_largest_of_many_points_stays(target, dtype):
    rng = np.random.default_rng(SEED)
    source = str(histogram(3001, 7, dtype)).replace("T.atomic_add", "T.atomic_max")
    f = T.from_source(source)
    assert "T.atomic_max(" in str(f) and str(T.from_source(str(f))) == str(f)
    info = np.iinfo(dtype)
    x, w = (
        rng.integers(0, 6, 3001).astype("int32"),
        rng.integers(info.min, info.max, 3001, dtype, endpoint=True),
    )
    start = np.zeros(7, dtype)
    m = weft.build(scheduled(f, target), target=target)
    h = weft.asarray(start, device=target, copy=True)
    m["main"](weft.asarray(x, device=target), weft.asarray(w, device=target), h)
    np.maximum.at(start, x, w)
    np.testing.assert_array_equal(h.numpy(), start, err_msg=f"seed {SEED}")


def test_maxima_are_of_integers_of_32_bits():
    assert (
        "atomicMax(&"
        in weft.build(
            scheduled(T.from_source(str(histogram(99, 3)).replace("_add", "_max")), CUDA),
            target=CUDA,
        ).source()
    )
    for dtype in ("float32", "int64"):
        text = str(histogram(99, 3, dtype)).replace("atomic_add", "atomic_max")
        error = refused(weft.ParseError, "parse.types", T.from_source, text)
        assert f'an atomic maximum in "H" is one of {dtype}' in error.message


@pytest.mark.parametrize("target", TARGETS)
def test_rows_are_scattered_and_added(target):
    rows, columns, out_rows = 37, 5, 6
    f = T.from_source(f"""
@T.prim_func
def main(I: T.Buffer(({rows},), "int64"), A: T.Buffer(({rows}, {columns}), "float32"),
         B: T.Buffer(({out_rows}, {columns}), "float32")):
    for i, j in T.grid({rows}, {columns}):
        with T.block("h"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.atomic_add(B[I[vi], vj], A[vi, vj] * T.float32(2))
""")
    sch = weft.Schedule(f)
    i, j = sch.get_loops(sch.get_block("h"))
    fused = sch.fuse(i, j)
    if target == "opencl":
        outer, inner = sch.split(fused, [None, 16])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
    elif target != "ref":
        sch.parallel(fused)
    rng = np.random.default_rng(SEED)
    index = rng.integers(0, out_rows, rows)
    a = rng.integers(-8, 8, (rows, columns)).astype("float32")
    expected = np.ones((out_rows, columns), "float32")
    b = weft.asarray(expected, device=target, copy=True)
    np.add.at(expected, index, 2 * a)
    weft.build(sch, target=target)["main"](
        weft.asarray(index, device=target), weft.asarray(a, device=target), b
    )
    np.testing.assert_array_equal(b.numpy(), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_group_counts_in_its_own_memory_first(dtype):
    n, bins, width = 1000, 8, 64
    f = T.from_source(f"""
@T.prim_func
def main(X: T.Buffer(({n},), "int32"), H: T.Buffer(({bins},), "{dtype}")):
    for b in T.thread_binding({(n + width - 1) // width}, thread="blockIdx.x"):
        with T.block("group"):
            vb = T.axis.spatial({(n + width - 1) // width}, b)
            T.reads(X[0:{n}])
            T.writes(H[0:{bins}])
            S = T.alloc_buffer(({bins},), "{dtype}", scope="shared")
            for t in T.thread_binding({width}, thread="threadIdx.x"):
                with T.block("zero"):
                    vt = T.axis.spatial({width}, t)
                    T.where(t < {bins})
                    S[vt] = T.{dtype}(0)
            for t in T.thread_binding({width}, thread="threadIdx.x"):
                with T.block("count"):
                    vt = T.axis.spatial({width}, t)
                    T.where(vb * {width} + t < {n})
                    T.atomic_add(S[X[vb * {width} + vt]], T.{dtype}(1))
            for t in T.thread_binding({width}, thread="threadIdx.x"):
                with T.block("join"):
                    vt = T.axis.spatial({width}, t)
                    T.where(t < {bins})
                    T.atomic_add(H[vt], S[vt])
""")
    x = np.random.default_rng(SEED).integers(0, bins, n).astype("int32")
    h = weft.zeros((bins,), dtype=dtype, device="opencl")
    m = weft.build(f, target="opencl")
    assert m.source().count("barrier(") == 2
    m["main"](weft.asarray(x, device="opencl"), h)
    np.testing.assert_array_equal(h.numpy(), np.bincount(x, minlength=bins).astype(dtype))
    text = weft.build(f, target=CUDA).source()
    assert text.count("(&S[") == 1 and text.count("(&H[") == 1


def test_a_reduction_is_spread_over_groups():
    rows, terms = 5, 640
    f = T.from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows}, {terms}), "float32"), C: T.Buffer(({rows},), "float32")):
    for i, k in T.grid({rows}, {terms}):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.atomic_add(C[vi], A[vi, vk])
""")
    sch = weft.Schedule(f)
    i, k = sch.get_loops(sch.get_block("sum"))
    outer, inner = sch.split(k, [None, 64])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    assert weft.ir.structural_equal(weft.Schedule.replay(f, sch.trace.as_json()).mod, sch.mod)
    a = np.random.default_rng(SEED).integers(-4, 5, (rows, terms)).astype("float32")
    c = weft.zeros((rows,), dtype="float32", device="opencl")
    weft.build(sch, target="opencl")["main"](weft.asarray(a, device="opencl"), c)
    np.testing.assert_array_equal(c.numpy(), a.sum(axis=1))


def test_text_is_read_and_printed():
    f = histogram(8, 3)
    assert "T.atomic_add(H[X[vi]], W[vi])" in f.script()
    assert weft.ir.structural_equal(T.from_source(f.script()), f)
    with_address = f.script().replace(
        "T.atomic_add(H[X[vi]]", "T.atomic_add(T.address_of(H[X[vi]])"
    )
    assert weft.ir.structural_equal(T.from_source(with_address), f)
    head = '@T.prim_func\ndef f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float16")):\n'
    for line, code, part in (
        ("T.atomic_add(A, T.float32(1))", "parse.atomic", "one element of a buffer"),
        ("T.atomic_add(B[0], T.float16(1))", "parse.types", "is one of float16"),
        ("T.atomic_add(A[0], A[0] > 0.0)", "parse.types", "bool is added"),
        ("A[0] = T.atomic_add(A[1], T.float32(1))", "parse.place", "is no expression"),
        ("T.atomic_add(A[0])", "parse.arity", '"value"'),
    ):
        assert part in refused(weft.ParseError, code, T.from_source, f"{head}    {line}\n").message


def test_text_for_cuda_and_metal():
    for dtype in DTYPES:
        m = weft.build(scheduled(histogram(1000, 7, dtype), "cuda"), target=CUDA)
        assert "weft_atomic_add_int64" in m.source() or "atomicAdd(&H[" in m.source()
        if dtype in ("int32", "uint32", "float32"):
            text = weft.build(
                scheduled(histogram(1000, 7, dtype), "metal"), target="metal"
            ).source()
            assert "atomic_fetch_add_explicit" in text
        elif dtype != "float64":  # which metal does not have
            error = refused(
                weft.Error,
                "emit.atomic",
                weft.build,
                scheduled(histogram(1000, 7, dtype), "metal"),
                target="metal",
            )
            assert dtype in error.message and "float32, int32, uint32" in str(error)


def test_steps_that_would_add_twice_are_refused():
    sch = weft.Schedule(histogram(64, 4))
    block = sch.get_block("h")
    before = sch.mod
    error = refused(
        weft.ScheduleError, "schedule.cache_write.accumulates", sch.cache_write, block, 0, "local"
    )
    assert "what" in error.message and weft.ir.structural_equal(sch.mod, before)
    f = T.from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    H = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("zero"):
            vi = T.axis.spatial(8, i)
            H[vi] = T.float32(0)
    for i in range(8):
        with T.block("add"):
            vi = T.axis.spatial(8, i)
            T.atomic_add(H[vi], A[vi])
    for i in range(8):
        with T.block("out"):
            vi = T.axis.spatial(8, i)
            B[vi] = H[vi] + H[7 - vi]
""")
    sch = weft.Schedule(f)
    (loop,) = sch.get_loops(sch.get_block("out"))
    for step in (
        lambda: sch.compute_inline(sch.get_block("add")),
        lambda: sch.compute_at(sch.get_block("add"), loop),
        lambda: sch.compute_inline(sch.get_block("zero")),
    ):
        with pytest.raises(weft.ScheduleError):
            step()
    assert weft.ir.structural_equal(sch.mod, weft.Schedule(f).mod)
    a, b = np.arange(8, dtype="float32"), weft.zeros(8, dtype="float32")
    weft.build(sch, target="cpu")["main"](weft.asarray(a), b)
    np.testing.assert_array_equal(b.numpy(), np.full(8, 7, "float32"))


# ---- races on memory that every point sees


def race(f, target):
    error = refused(weft.Error, "verify.race", weft.build, f, target=target)
    text = str(error)
    assert "verify.race" in text
    return text


SUM = """
@T.prim_func
def main(A: T.Buffer((64, 256), "float32"), C: T.Buffer((64,), "float32")):
    for k in {outer}:
        for i in {inner}:
            with T.block("s"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
"""


@pytest.mark.parametrize("target", ["opencl", "metal", CUDA])
def test_groups_that_add_to_one_place_are_refused(target):
    bound = 'T.thread_binding({}, thread="{}")'
    f = T.from_source(
        SUM.format(outer=bound.format(256, "blockIdx.x"), inner=bound.format(64, "threadIdx.x"))
    )
    text = race(f, target)
    assert '"C"' in text and "blockIdx.x = 0" in text and "T.atomic_add(C" in text
    assert text.count("C[threadIdx_x] + A[") >= 2  # both accesses
    f = T.from_source(SUM.format(outer=bound.format(256, "blockIdx.x"), inner="range(64)"))
    race(f, target)


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_parallel_iterations_that_add_to_one_place_are_refused(target):
    text = race(T.from_source(SUM.format(outer="T.parallel(256)", inner="range(64)")), target)
    assert "k = 0" in text and "k = 1" in text
    weft.build(T.from_source(SUM.format(outer="range(256)", inner="T.parallel(64)")), target=target)


def test_other_ways_to_meet():
    head = '@T.prim_func\ndef main(A: T.Buffer((300,), "float32"), N: T.Buffer((1,), "int32")):\n'
    for body, target in (
        # an element that the next iteration writes
        ("for i in T.parallel(299):\n  A[i] = A[i + 1]", "cpu"),
        # two groups apart by more than one
        (
            'for b in T.thread_binding(8, thread="blockIdx.x"):\n'
            '  for t in T.thread_binding(32, thread="threadIdx.x"):\n'
            "    A[b % 4 * 32 + t] = T.Cast('float32', b)",
            "opencl",
        ),
        # halves of neighbouring groups
        (
            'for b in T.thread_binding(4, thread="blockIdx.x"):\n'
            '  for t in T.thread_binding(32, thread="threadIdx.x"):\n'
            "    A[b * 31 + t] = T.Cast('float32', b)",
            "opencl",
        ),
        # whether it happens is decided by data
        ("for i in T.parallel(300):\n  if A[i] > T.float32(0):\n    N[0] = N[0] + 1", "c"),
        # all at once, without a reduction in sight
        (
            'for t in T.thread_binding(32, thread="threadIdx.x"):\n  A[0] = A[0] + A[t + 1]',
            "opencl",
        ),
    ):
        race(T.from_source(head + "".join(f"    {x}\n" for x in body.split("\n"))), target)
    for body, target in (
        # several points write one value
        ("for i in T.parallel(300):\n  N[0] = 5", "cpu"),
        ('for t in T.thread_binding(32, thread="threadIdx.x"):\n  A[0] = A[1]', "opencl"),
        # points of one group, ordered by a barrier between two loops
        (
            'for t in T.thread_binding(32, thread="threadIdx.x"):\n'
            "  A[t] = T.Cast('float32', t)\n"
            'for u in T.thread_binding(32, thread="threadIdx.x"):\n  A[u + 64] = A[31 - u]',
            "opencl",
        ),
        ("for i in T.parallel(150):\n  A[i * 2] = A[i * 2 + 1]", "c"),
    ):
        text = head + "".join(f"    {x}\n" for x in body.split("\n"))
        weft.build(T.from_source(text), target=target)


def test_elements_that_data_chooses():
    text = """
@T.prim_func
def main(I: T.Buffer((100,), "int32"), A: T.Buffer((100,), "float32")):{vouch}
    for i in T.parallel(100):
        with T.block("b"):
            vi = T.axis.spatial(100, i)
            A[I[vi]] = A[I[vi]] + T.float32(1)
"""
    said = race(T.from_source(text.format(vouch="")), "cpu")
    assert "data chooses" in said and "weft.distinct_elements" in said
    vouched = text.format(vouch='\n    T.func_attr({"weft.distinct_elements": True})')
    index = np.random.default_rng(SEED).permutation(100).astype("int32")
    a = weft.zeros((100,), dtype="float32")
    weft.build(T.from_source(vouched), target="cpu")["main"](weft.asarray(index), a)
    np.testing.assert_array_equal(a.numpy(), np.ones(100, "float32"))


STORE = """
@T.prim_func
def main(I: T.Buffer((100,), "int32"), V: T.Buffer((100,), "float32"), A: T.Buffer((100,), "float32")):{vouch}
    for i in T.{kind}(100):
        with T.block("b"):
            vi = T.axis.spatial(100, i)
            A[I[vi]] = {value}
"""
VOUCH = '\n    T.func_attr({"weft.distinct_elements": True})'


@pytest.mark.parametrize("target", ["cpu", "c", "opencl"])
def test_stores_to_elements_that_data_chooses(target):
    text = STORE.format(vouch="", kind="parallel", value="V[vi]")
    said = race(T.from_source(text), target)
    assert "store to an element that data chooses" in said
    assert "weft.distinct_elements" in said and "serially" in said
    # Points that store one value agree, whatever elements they store to.
    weft.build(
        T.from_source(STORE.format(vouch="", kind="parallel", value="T.float32(1)")), target=target
    )
    weft.build(
        T.from_source(STORE.format(vouch=VOUCH, kind="parallel", value="V[vi]")), target=target
    )


def test_the_reference_checks_that_elements_are_distinct():
    module = weft.build(
        T.from_source(STORE.format(vouch=VOUCH, kind="parallel", value="V[vi]")), target="ref"
    )
    index = np.random.default_rng(SEED).permutation(100).astype("int32")
    values = np.arange(100, dtype="float32")

    def call():
        a = weft.zeros((100,), dtype="float32", device="ref")
        module["main"](weft.asarray(index, device="ref"), weft.asarray(values, device="ref"), a)
        return a.numpy()

    np.testing.assert_array_equal(call()[index], values)
    np.testing.assert_array_equal(call()[index], values)  # calls do not disturb each other
    index[70] = index[3]
    with pytest.raises(weft.Fault) as caught:
        call()
    assert caught.value.code == "interpret.distinct"
    said = str(caught.value)
    assert f'"A"[{index[3]}]' in said and "i = 3 and i = 70" in said
    values[70] = values[3]  # one value: no order shows
    call()


def test_sizes_known_only_at_run_time():
    text = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, n), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for {first} in T.parallel(n):
        for {second} in range(n):
            with T.block("s"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
"""
    race(T.from_source(text.format(first="k", second="i")), "c")
    m = weft.build(T.from_source(text.format(first="i", second="k")), target="c")
    for n in (0, 1, 7):
        a = np.random.default_rng(SEED).integers(0, 9, (n, n)).astype("float32")
        c = weft.zeros((n,), dtype="float32")
        m["main"](weft.asarray(a), c)
        np.testing.assert_array_equal(c.numpy(), a.sum(axis=1))


def test_a_loop_of_the_host_around_a_launch_moves_the_elements():
    def program(index):
        return T.from_source(f"""
@T.prim_func
def main(A: T.Buffer((7, 4), "float32"), C: T.Buffer((7, 4), "float32")):
    for i in range(7):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            for k in range(3):
                with T.block("c"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, {index}] = C[vi, {index}] + A[vi, vj]
""")

    assert "kernel void" in weft.build(program("vj"), target="metal").source()
    assert '"C"' in race(program("vj // 2"), "metal")


WITHIN = """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((6, 4), "float32")):
    for i in {outer}:
        with T.block("row"):
            v = T.axis.spatial(4, i)
            for j in {inner}:
                {store}
"""


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_parallel_loops_around_and_inside_blocks(target):
    """The check knows iterators of blocks and all dimensions of a buffer, also where functions stay whole."""
    loops = (("T.parallel(4)", "range(6)"), ("range(4)", "T.parallel(6)"))
    a = np.random.default_rng(SEED).random((4, 6), "float32")
    for outer, inner in loops:
        program = T.from_source(WITHIN.format(outer=outer, inner=inner, store="B[j, v] = A[v, j]"))
        b = weft.zeros((6, 4), device=target)
        weft.build(program, target=target)["main"](weft.asarray(a, device=target), b)
        np.testing.assert_array_equal(b.numpy(), a.T)
    for (outer, inner), store in zip(loops, ("B[j, 3 * (v // 4)] = A[v, j]", "B[0, v] = A[v, j]"), strict=True):  # fmt: skip
        race(T.from_source(WITHIN.format(outer=outer, inner=inner, store=store)), target)
