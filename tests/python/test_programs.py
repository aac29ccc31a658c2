# SPDX-License-Identifier: Apache-2.0
"""Programs, schedules and compiled modules from Python: the tour of the GPU chapter, te, errors."""

import importlib.util
import pathlib

import numpy as np
import pytest
import weft
from weft import script as T
from weft import te

_path = pathlib.Path(__file__).resolve().parents[2] / "examples/tensorir/programs.py"
_spec = importlib.util.spec_from_file_location("tour_programs", _path)
programs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(programs)

RNG = np.random.default_rng(7)
LADDER = {
    "GEMM-1": lambda n: programs.gemm_1(n),
    "GEMM-2": lambda n: programs.gemm_2(n),
    "GEMM-3": lambda n: programs.gemm_3(n),
    "GEMM-4": lambda n: programs.gemm_4(n),
    "GEMM-4 decomposed": lambda n: programs.gemm_4(n, decompose=True),
}


def run(program, target, *inputs, shape, dtype="float32", device=None):
    device = weft.device(device or target)
    arrays = [weft.asarray(x, device=device) for x in inputs]
    out = weft.zeros(shape, dtype=dtype, device=device)
    weft.build(program, target=target)["main"](*arrays, out)
    return out.numpy()


def gpu_targets():
    return [t for t in ("opencl", "cuda") if weft.device(t).available]


def test_the_printed_text_reads_back():
    for program in (
        programs.VectorAdd,
        programs.WindowSum,
        programs.matmul(5, 6, 7),
        programs.gemm_4(64).mod,
    ):
        again = T.from_source(program.script())
        assert weft.ir.structural_equal(program, again)


@pytest.mark.parametrize("target", ["c", "cpu", "ref"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 3), (16, 16, 16), (33, 65, 17)])
def test_matmul_without_a_schedule(target, shape):
    m, n, k = shape
    a, b = RNG.random((m, k), np.float32), RNG.random((k, n), np.float32)
    assert np.allclose(run(programs.matmul(m, n, k), target, a, b, shape=(m, n)), a @ b, rtol=1e-5)


@pytest.mark.parametrize("target", ["c", "cpu", "ref"])
@pytest.mark.parametrize("n", [64, 70])
def test_matmul_tiled_for_the_host(target, n):
    if n % 4:
        n = 68
    a, b = RNG.random((n, n), np.float32), RNG.random((n, n), np.float32)
    sch = programs.gemm_host(n, rows=4, columns=n // 2 if n == 68 else 64)
    assert np.allclose(run(sch, target, a, b, shape=(n, n)), a @ b, rtol=1e-5)


@pytest.mark.parametrize("target", ["c", "cpu", "ref"])
def test_matmul_with_packed_panels(target):
    n = 64
    a, b = RNG.random((n, n), np.float32), RNG.random((n, n), np.float32)
    for rows, columns in ((4, 16), (8, 32), (2, 8)):
        assert np.allclose(
            run(programs.gemm_host_packed(n, rows, columns, 64), target, a, b, shape=(n, n)),
            a @ b,
            rtol=1e-5,
        )


@pytest.mark.parametrize("name", LADDER)
def test_the_ladder_runs_where_barriers_run(name):
    targets = gpu_targets()
    assert targets, "no OpenCL or CUDA device: PoCL is part of tools/packages.txt"
    n = 128
    a, b = RNG.random((n, n), np.float32), RNG.random((n, n), np.float32)
    for target in targets:
        assert np.allclose(
            run(LADDER[name](n), target, a, b, shape=(n, n), device=f"{target}:0"), a @ b, rtol=1e-4
        )


@pytest.mark.parametrize("n", [13, 40, 100, 127])
@pytest.mark.parametrize("name", LADDER)
def test_the_ladder_takes_extents_that_its_tiles_do_not_divide(name, n):
    """13: fewer elements than threads; 40: less than a tile; 100: whole rows of threads have nothing to do; 127: the
    last threads lack one element."""
    a, b = RNG.random((n, n), np.float32), RNG.random((n, n), np.float32)
    sch = LADDER[name](n)
    assert np.allclose(run(sch, "ref", a, b, shape=(n, n)), a @ b, rtol=1e-4)
    if n < 100 or (n == 127 and name in ("GEMM-2", "GEMM-3")):
        return  # the interpreter has seen the program; compiling each for a device takes seconds
    for target in gpu_targets():
        assert np.allclose(
            run(sch, target, a, b, shape=(n, n), device=f"{target}:0"), a @ b, rtol=1e-4
        )


@pytest.mark.parametrize(
    "name, n", [("GEMM-2", 40), ("GEMM-4", 40), ("GEMM-4", 1000), ("GEMM-4 decomposed", 1000)]
)
def test_tiles_of_64_do_not_have_to_divide(name, n):
    a, b = RNG.random((n, n), np.float32), RNG.random((n, n), np.float32)
    for target in gpu_targets():
        assert np.allclose(
            run(LADDER[name](n), target, a, b, shape=(n, n), device=f"{target}:0"), a @ b, rtol=1e-4
        )


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("name", [*LADDER, "host"])
def test_the_ladder_takes_matrices_smaller_than_any_tile(name, n):
    """A tile of which only the first element, or only the first few, exist."""
    a, b = RNG.random((n, n), np.float32), RNG.random((n, n), np.float32)
    sch = programs.gemm_host(n) if name == "host" else LADDER[name](n)
    for target in ["ref", "cpu", "c"] if name == "host" else ["ref", *gpu_targets()]:
        assert np.allclose(run(sch, target, a, b, shape=(n, n)), a @ b, rtol=1e-4)


def test_the_ladder_can_be_scheduled_for_every_extent():
    for n in [*range(1, 9), *range(9, 72, 5), 128, 257, 513, 1000, 1001]:
        for make in LADDER.values():
            make(n)


def test_threads_whose_whole_tile_lies_outside_write_nothing():
    n = 40  # one thread of 64 has all elements of its tile of 64
    a, b = RNG.random((n, n), np.float32), RNG.random((n, n), np.float32)
    sch = programs.gemm_2(n, tile=64)
    assert np.allclose(run(sch, "ref", a, b, shape=(n, n)), a @ b, rtol=1e-4)


@pytest.mark.parametrize("name", LADDER)
def test_the_ladder_compiles_to_a_cubin_without_a_card(name):
    module = weft.build(LADDER[name](1024), target="cuda:arch=sm_90")
    assert module.bytes()[:4] == b"\x7fELF"
    assert "__launch_bounds__" in module.source()


def test_the_window_sum_keeps_130_floats():
    for target, word in (
        ("cuda:arch=sm_90", "__shared__ "),
        ("metal", "threadgroup "),
    ):
        source = weft.build(programs.window_sum(True, True), target=target).source()
        line = next(s for s in source.splitlines() if "float A_shared[130]" in s)
        assert word in line, source
    w = RNG.random(1026, np.float32)
    for target in gpu_targets():
        for variant in (
            programs.window_sum(),
            programs.window_sum(True),
            programs.window_sum(True, True),
        ):
            assert np.allclose(
                run(variant, target, w, shape=(1024,), device=f"{target}:0"),
                w[:-2] + w[1:-1] + w[2:],
                rtol=1e-6,
            )


def test_the_trace_replays():
    sch = programs.gemm_4(64)
    again = weft.Schedule.replay(programs.matmul(64, 64, 64), sch.trace)
    assert weft.ir.structural_equal(sch.mod, again.mod)
    scope = {"sch": weft.Schedule(programs.matmul(64, 64, 64)), "T": T}
    exec(sch.trace.as_python(), scope)
    assert weft.ir.structural_equal(sch.mod, scope["sch"].mod)


def test_a_refused_step_changes_nothing_and_says_why():
    sch = weft.Schedule(programs.matmul(8, 8, 8))
    before = weft.ir.structural_hash(sch.mod)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    with pytest.raises(weft.ScheduleError) as caught:
        sch.vectorize(k)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code.startswith("schedule.vectorize") and "unchanged" in str(caught.value)
    with pytest.raises(weft.ScheduleError, match="did you mean|legal|blocks"):
        sch.get_block("D")
    assert weft.ir.structural_hash(sch.mod) == before


@pytest.mark.targets("qpu")
def test_calls_check_their_arguments():
    m = weft.build(programs.VectorAdd, target="c")["main"]
    good = weft.zeros((1024,), dtype="float32", device="c")
    for bad, kind in (
        (weft.zeros((1000,), dtype="float32", device="c"), weft.ShapeError),
        (weft.zeros((1024,), dtype="float64", device="c"), weft.DTypeError),
        (weft.zeros((1024,), dtype="float32", device="qpu"), weft.DeviceError),
        (3, weft.Error),
    ):
        with pytest.raises(kind, match="argument 2"):
            m(good, bad, good)
    with pytest.raises(weft.Error, match="takes 3 arguments"):
        m(good, good)


def test_modules_save_and_load(tmp_path):
    path = tmp_path / "add.weft-mod"
    weft.build(programs.VectorAdd, target="c").save(path)
    a, b = RNG.random(1024, np.float32), RNG.random(1024, np.float32)
    c = weft.zeros((1024,), dtype="float32", device="c")
    weft.load(path)["main"](weft.asarray(a, device="c"), weft.asarray(b, device="c"), c)
    assert np.array_equal(c.numpy(), a + b)
    data = path.read_bytes()
    for cut in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(weft.Error, match="module|file"):
            weft.load(path)


def test_unknown_targets_and_absent_devices():
    with pytest.raises(weft.Error, match='did you mean "cuda"'):
        weft.build(programs.VectorAdd, target="cudda")
    for d in weft.devices():
        assert d.available or d.reason
    absent = weft.device("cuda:99")
    assert not absent.available
    with pytest.raises(weft.DeviceError):
        weft.zeros((2,), device=absent)


def test_unparsable_text_shows_the_place():
    with pytest.raises(weft.ParseError) as caught:
        T.from_source('@T.prim_func\ndef main(A: T.Buffer((4,), "float32")):\n    A[0] = A[1] +\n')
    assert ":3:" in str(caught.value) and "^" in str(caught.value)


def _te(program, inputs, shape, dtype="float32"):
    return run(program, "cpu", *inputs, shape=shape, dtype=dtype)


def test_te_elementwise_and_reductions():
    n, m = 13, 7
    x = RNG.random((n, m), np.float32)
    A = te.placeholder((n, m), "float32", name="A")
    k = te.reduce_axis(m, name="k")
    for reduce, reference in (
        (te.sum, np.sum),
        (te.max, np.max),
        (te.min, np.min),
        (te.prod, np.prod),
    ):
        R = te.compute((n,), lambda i: reduce(A[i, k], axis=k), name="R")
        assert np.allclose(
            _te(te.create_prim_func([A, R]), (x,), (n,)), reference(x, axis=1), rtol=1e-5
        )
    B = te.compute(
        (n, m), lambda i, j: te.exp(A[i, j]) * 2.0 + te.if_then_else(j < 3, A[i, j], 0.0), name="B"
    )
    D = te.compute((n, m), lambda i, j: B[i, j] - A[i, j], name="D")
    expected = np.exp(x) * 2 + np.where(np.arange(m) < 3, x, 0) - x
    assert np.allclose(_te(te.create_prim_func([A, D]), (x,), (n, m)), expected, rtol=1e-5)


def test_te_symbolic_extents_and_own_reducers():
    n = te.var("n")
    A = te.placeholder((n,), "float32", name="A")
    C = te.compute((n,), lambda i: A[i] * A[i], name="C")
    f = weft.build(te.create_prim_func([A, C]), target="cpu")["main"]
    for size in (1, 5, 64, 1000):
        x = RNG.random(size, np.float32)
        out = weft.zeros((size,), dtype="float32")
        f(weft.asarray(x), out)
        assert np.allclose(out.numpy(), x * x)
    largest = te.comm_reducer(
        lambda x, y: te.if_then_else(x > y, x, y), lambda t: te.const(-1e30, t), name="largest"
    )
    B = te.placeholder((4, 9), "float32", name="B")
    k = te.reduce_axis(9, name="k")
    R = te.compute((4,), lambda i: largest(B[i, k], axis=k), name="R")
    y = RNG.random((4, 9), np.float32)
    assert np.allclose(_te(te.create_prim_func([B, R]), (y,), (4,)), y.max(axis=1))


def test_passes_can_be_watched():
    seen = []
    weft.build(
        programs.window_sum(True, True),
        target="cuda:arch=sm_90",
        after=lambda name, function, seconds: seen.append((name, function.script())),
    )
    names = [name for name, _ in seen]
    assert "compact_buffers" in names and "unify_thread_binding" in names
    assert any("130" in text for _, text in seen)


def test_a_profile_shows_passes_and_calls(tmp_path):
    import json

    a = weft.zeros((1024,), dtype="float32", device="c")
    with weft.profile() as p:
        f = weft.build(programs.VectorAdd, target="c")["main"]
        for _ in range(3):
            f(a, a, weft.zeros((1024,), dtype="float32", device="c"))
    names = [span[2] for span in p.spans]
    assert names.count("main") == 3 and "flatten_buffers" in names and "build c" in names
    assert "flatten_buffers" in p.table()
    p.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(e["ph"] == "X" for e in events) == len(p.spans) and all(
        e["dur"] >= 0 for e in events if e["ph"] == "X"
    )
    assert [x.name for x in tmp_path.iterdir()] == ["trace.json"]
    f(a, a, weft.zeros((1024,), dtype="float32", device="c"))
    assert len(p.spans) == len(names)


@pytest.mark.parametrize("columns", [96, 128])
@pytest.mark.parametrize("threads", [1, 8, 32])
def test_the_first_largest_element_is_found_across_threads(threads, columns, rng):
    """A reduction of pairs, spread over the threads of a block."""
    device = weft.device("opencl:0")
    if not device.available:
        pytest.skip(device.reason)

    @T.prim_func
    def argmax(
        A: T.Buffer((64, columns), "float32"),
        I: T.Buffer((64,), "int32"),  # noqa: E741
        V: T.Buffer((64,), "float32"),
    ):
        for i, k in T.grid(64, columns):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    I[vi] = -1
                    V[vi] = T.min_value("float32")
                i0: T.int32 = T.Select(V[vi] >= A[vi, vk], I[vi], T.Cast("int32", vk))
                v0: T.float32 = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
                I[vi] = i0
                V[vi] = v0

    sch = weft.Schedule(argmax)
    i, k = sch.get_loops(sch.get_block("argmax"))
    sch.bind(i, "blockIdx.x")
    _, thread = sch.split(k, [None, threads])
    sch.bind(thread, "threadIdx.x")
    module = weft.build(sch, target="opencl")
    values = rng.standard_normal((64, columns)).astype("float32")
    where, largest = (weft.zeros((64,), dtype=t, device=device) for t in ("int32", "float32"))
    module["argmax"](weft.asarray(values, device=device), where, largest)
    np.testing.assert_array_equal(where.numpy(), values.argmax(1))
    np.testing.assert_array_equal(largest.numpy(), values.max(1))


@pytest.mark.parametrize("rows, columns", [(72, 96), (70, 91), (65, 81), (9, 17)])
def test_a_halo_fetched_by_one_loop_takes_its_own_size(rows, columns):
    f = T.from_source(f"""
@T.prim_func
def main(A: T.Buffer(({rows + 4}, {columns + 4}), "float32"), C: T.Buffer(({rows}, {columns}), "float32")):
    for i, j in T.grid({rows}, {columns}):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + A[vi + 4, vj + 4]
""")
    sch = weft.Schedule(f)
    c = sch.get_block("c")
    i, j = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, 8])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, i1, j1)
    fetch = sch.cache_read(c, 0, "shared")
    sch.compute_at(fetch, j0)
    _, y, x = sch.split(sch.fuse(*sch.get_loops(fetch)[-2:]), [None, 8, 16])  # 240 in turns of 128
    for loop, axis in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x"),
                       (y, "threadIdx.y"), (x, "threadIdx.x")):  # fmt: skip
        sch.bind(loop, axis)
    if rows > 64:  # 12 x 20
        assert "A_shared[240]" in weft.build(sch, target="metal").source()
    a = RNG.standard_normal((rows + 4, columns + 4)).astype(np.float32)
    expected = a[:rows, :columns] + a[4:, 4:]
    np.testing.assert_array_equal(run(sch, "ref", a, shape=(rows, columns)), expected)
    for target in gpu_targets():
        np.testing.assert_array_equal(
            run(sch, target, a, shape=(rows, columns), device=f"{target}:0"), expected
        )


@pytest.mark.parametrize("count, why", [(240, None), (239, "not_covered")])
def test_a_halo_fetched_over_an_edge_must_be_whole(count, why):
    """What an edge cuts off nobody reads; one element less than the halo is refused."""
    f = T.from_source(f"""
@T.prim_func
def main(A: T.Buffer((74, 95), "float32"), C: T.Buffer((70, 91), "float32")):
    S = T.alloc_buffer((74, 95), "float32", scope="shared")
    for i0, j0 in T.grid(9, 6):
        for x, y in T.grid(16, 16):
            with T.block("S"):
                v0 = T.axis.spatial(74, i0 * 8 + (x * 16 + y) // 20)
                v1 = T.axis.spatial(95, j0 * 16 + (x * 16 + y) % 20)
                T.where(i0 * 8 + (x * 16 + y) // 20 < 74 and j0 * 16 + (x * 16 + y) % 20 < 95 and x * 16 + y < {count})
                S[v0, v1] = A[v0, v1]
        for i1, j1 in T.grid(8, 16):
            with T.block("c"):
                vi = T.axis.spatial(70, i0 * 8 + i1)
                vj = T.axis.spatial(91, j0 * 16 + j1)
                T.where(i0 * 8 + i1 < 70 and j0 * 16 + j1 < 91)
                C[vi, vj] = S[vi, vj] + S[vi + 4, vj + 4]
""")
    sch = weft.Schedule(f)
    i0, j0, *_ = sch.get_loops("c")
    if why:
        with pytest.raises(weft.ScheduleError) as refused:
            sch.bind(i0, "blockIdx.y")
        assert refused.value.code == f"schedule.bind.{why}"
        return
    sch.bind(i0, "blockIdx.y")
    sch.bind(j0, "blockIdx.x")
    a = RNG.standard_normal((74, 95)).astype(np.float32)
    expected = a[:70, :91] + a[4:, 4:]
    np.testing.assert_array_equal(run(sch, "ref", a, shape=(70, 91)), expected)
