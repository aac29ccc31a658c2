# SPDX-License-Identifier: Apache-2.0
"""What users of other tensor compilers reported, as programs of our own: docs/design/complaints.md names each test."""

import numpy as np
import pytest

import weft
from weft import script as T
from weft import te

RNG = np.random.default_rng(21)


def _run(program, target, arguments, shape, dtype="float32"):
    device = weft.device(target)
    if not device.available:
        pytest.skip(device.reason.splitlines()[0])
    out = weft.zeros(shape, dtype=dtype, device=device)
    weft.build(program, target=target)(*(weft.asarray(a, device=device) for a in arguments), out)
    return out.numpy()


def _sum_of_rows(rows, columns, name="B"):
    a = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis(columns, name="k")
    return te.create_prim_func(
        [a, te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name=name)]
    )


def _chain(n):
    """Two stages, so that one can be moved to the other."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    return te.create_prim_func([a, te.compute((n,), lambda i: b[i] + 1.0, name="C")])


@pytest.mark.parametrize("n, factor", [(37, 8), (64, 16), (5, 7)])
def test_consumers_move_under_uneven_loops(n, factor):
    sch = weft.Schedule(_chain(n), check="run")
    outer, _ = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, factor])
    sch.reverse_compute_at(sch.get_block("C"), outer)
    a = RNG.standard_normal(n).astype("float32")
    assert np.array_equal(_run(sch, "cpu", (a,), (n,)), a * 2 + 1)


def test_inlining_a_consumer_keeps_the_producer_s_condition():
    sch = weft.Schedule(_chain(37), check="run")
    sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 8])
    sch.reverse_compute_inline(sch.get_block("C"))
    assert "T.where" in sch.script()
    a = RNG.standard_normal(37).astype("float32")
    assert np.array_equal(_run(sch, "c", (a,), (37,)), a * 2 + 1)


def test_inlining_into_a_reduction_is_refused():
    a = te.placeholder((8, 9), name="A")
    k = te.reduce_axis(9, name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    sch = weft.Schedule(
        te.create_prim_func([a, te.compute((8,), lambda i: te.exp(b[i]), name="C")])
    )
    before = sch.script()
    with pytest.raises(weft.ScheduleError):
        sch.reverse_compute_inline(sch.get_block("C"))
    assert sch.script() == before


@pytest.mark.parametrize("factor", [4, 7])
def test_rfactor_of_an_uneven_reduction(factor):
    sch = weft.Schedule(_sum_of_rows(5, 30), check="run")
    _, k = sch.get_loops(sch.get_block("B"))
    outer, inner = sch.split(k, [None, factor])
    sch.rfactor(inner, 0)
    a = RNG.integers(-9, 9, (5, 30)).astype("float32")
    assert np.array_equal(_run(sch, "cpu", (a,), (5,)), a.sum(1))


@pytest.mark.parametrize(
    "tx, ty, axis", [(8, 4, "threadIdx.x"), (4, 8, "threadIdx.y"), (6, 5, "threadIdx.y")]
)
def test_trees_across_one_of_two_thread_axes(tx, ty, axis):
    other = "threadIdx.y" if axis == "threadIdx.x" else "threadIdx.x"
    sch = weft.Schedule(_sum_of_rows(13, 50))
    i, k = sch.get_loops(sch.get_block("B"))
    i0, i1 = sch.split(i, [None, ty])
    k0, k1 = sch.split(k, [None, tx])
    sch.reorder(i0, i1, k1, k0)
    for loop, name in ((i0, "blockIdx.x"), (i1, other), (k1, axis)):
        sch.bind(loop, name)
    a = RNG.integers(-9, 9, (13, 50)).astype("float32")
    assert np.array_equal(_run(sch, "opencl", (a,), (13,)), a.sum(1))


def test_a_tree_in_a_loop_does_not_overtake_itself():
    """The scratch of one row's tree is written again for the next: barriers stand between, on any number of threads."""
    for threads in (32, 48, 33):
        sch = weft.Schedule(_sum_of_rows(6, 100))
        i, k = sch.get_loops(sch.get_block("B"))
        _, k1 = sch.split(k, [None, threads])
        sch.bind(k1, "threadIdx.x")
        sch.bind(sch.add_unit_loop(i), "blockIdx.x")  # the rows' loop stands inside the kernel
        a = RNG.integers(-9, 9, (6, 100)).astype("float32")
        assert np.array_equal(_run(sch, "opencl", (a,), (6,)), a.sum(1))
        text = weft.build(sch, target="cuda:arch=sm_90a").source()
        assert text.count("__syncthreads") > 1 and f"__launch_bounds__({threads})" in text


def test_a_barrier_in_a_guard_of_some_threads():
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        S = T.alloc_buffer((64,), "float32", scope="shared")
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("work"):
                vt = T.axis.opaque(64, t)
                if vt < 40:
                    S[vt] = A[vt]
                    B[vt] = S[39 - vt]

    a = RNG.standard_normal(64).astype("float32")
    got = _run(main, "opencl", (a,), (64,))
    assert np.array_equal(got[:40], a[39::-1])
    text = weft.build(main, target="cuda:arch=sm_90a").source()
    lines = [line.strip() for line in text.splitlines()]
    barrier = lines.index("__syncthreads();")
    assert (
        sum(line.startswith("if (") for line in lines[:barrier]) == 1 and "}" in lines[barrier - 1]
    )


@pytest.mark.parametrize("target", ["cpu", "c", "opencl"])
def test_vectors_at_odd_places(target):
    a = te.placeholder((67,), "float16", name="A")
    f = te.create_prim_func([a, te.compute((64,), lambda i: a[i + 3] + a[i], name="B")])
    sch = weft.Schedule(f)
    outer, inner = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 4])
    sch.vectorize(inner)
    if target == "opencl":
        sch.bind(outer, "threadIdx.x")
    x = RNG.standard_normal(80).astype("float16")
    device = weft.device(target)
    if not device.available:
        pytest.skip(device.reason.splitlines()[0])
    whole = weft.asarray(x, device=device)
    out = weft.zeros((66,), dtype="float16", device=device)
    weft.build(sch, target=target)(whole[5:72], out[1:65])  # views that begin at odd elements
    assert np.array_equal(out.numpy()[1:65], x[8:72] + x[5:69]) and out.numpy()[65] == 0


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_moving_under_a_vectorized_loop_keeps_the_result(target):
    sch = weft.Schedule(_chain(64), check="run")
    outer, inner = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 8])
    sch.vectorize(inner)
    sch.compute_at(sch.get_block("B"), inner)
    a = RNG.standard_normal(64).astype("float32")
    assert np.array_equal(_run(sch, target, (a,), (64,)), a * 2 + 1)


def test_a_refusal_shows_the_program_as_it_is_now():
    sch = weft.Schedule(_chain(64))
    outer, inner = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 8])
    before = sch.script()
    with pytest.raises(weft.ScheduleError) as refused:
        sch.compute_at(sch.get_block("C"), inner)
    text = str(refused.value)
    assert "i_0" in text and "^" in text and refused.value.code.startswith("schedule.compute_at.")
    assert sch.script() == before


def test_a_loop_that_does_not_become_vectors_is_said():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.vectorized(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
                while B[vi] > T.float32(1):
                    B[vi] = B[vi] * T.float32(0.5)

    module = weft.build(main, target="cpu")
    assert any('loop "i"' in note and "vector" in note for note in module.notes), module.notes


@pytest.mark.parametrize("columns", [1, 31, 33, 100, 1000])
def test_widths_that_no_number_of_threads_divides(columns):
    a = RNG.integers(-9, 9, (7, columns)).astype("float32")
    assert np.array_equal(_run(_sum_of_rows(7, columns), "opencl", (a,), (7,)), a.sum(1))


def test_one_schedule_for_every_extent():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    f = te.create_prim_func([a, te.compute((n,), lambda i: te.exp(a[i]), name="B")])
    sch = weft.Schedule(f)
    outer, inner = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 64])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    device = weft.device("opencl")
    if not device.available:
        pytest.skip(device.reason.splitlines()[0])
    module = weft.build(sch, target="opencl")
    for size in (1, 63, 64, 65, 1000):
        x = RNG.random(size).astype("float32")
        out = weft.zeros((size,), device=device)
        module(weft.asarray(x, device=device), out)
        np.testing.assert_allclose(out.numpy(), np.exp(x), rtol=1e-5)


def test_a_search_ends(tmp_path):
    """Whatever the candidates do: a hang shows, a slow machine does not, and which candidate wins is nobody's promise."""
    a, b = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="B")
    k = te.reduce_axis(64, name="k")
    f = te.create_prim_func(
        [a, b, te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]
    )
    done = []
    best = weft.tune(
        f,
        target="cpu",
        trials=8,
        database=str(tmp_path / "t.db"),
        seed=1,
        progress=lambda *a: done.append(a[0]),
    )
    assert done == list(range(1, 9))
    x, y = RNG.random((2, 64, 64)).astype("float32")
    np.testing.assert_allclose(_run(best, "cpu", (x, y), (64, 64)), x @ y, rtol=1e-4)


def test_float32_stays_float32():
    a, b = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="B")
    k = te.reduce_axis(32, name="k")
    f = te.create_prim_func(
        [a, b, te.compute((32, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]
    )
    text = weft.build(f, target="cuda:arch=sm_90a").source()
    assert "tf32" not in text and "mma" not in text


def test_references_end_with_what_they_name():
    sch = weft.Schedule(_chain(16))
    b = sch.get_block("B")
    loop = sch.get_loops(b)[0]
    sch.split(loop, [4, 4])
    with pytest.raises(weft.ScheduleError) as refused:
        sch.unroll(loop)
    assert refused.value.code.startswith("schedule.")
    sch.compute_inline(b)
    with pytest.raises(weft.ScheduleError) as refused:
        sch.get_loops(b)
    assert refused.value.code.startswith("schedule.")


def test_what_a_block_says_it_touches_is_checked():
    with pytest.raises(weft.Error) as refused:

        @T.prim_func
        def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    T.reads()
                    T.writes(B[vi])
                    B[vi] = A[vi]

        weft.ir.verify(main)
    assert refused.value.code.startswith("verify.")


def test_calls_that_fit_no_signature_raise_weft_s_error():
    x = weft.Tensor([1.0])
    for call, name in (
        (lambda: weft._core.conv2d(1, 2), "conv2d"),
        (lambda: weft._core.conv2d(), "conv2d"),
        (lambda: weft.Tensor(1, 2, 3, 4, 5, 6), "__init__"),
        (lambda: x.backward(1, 2, 3, 4, 5), "backward"),
    ):
        with pytest.raises(weft.DTypeError) as refused:
            call()
        assert refused.value.code == "python.arguments"
        assert f"{name}() does not take" in refused.value.message
        assert any("accepted: " in note for note in refused.value.notes)
    # What a user's own function raises stays what it is.
    with pytest.raises(TypeError) as raised:
        weft.te.compute((4,), lambda i: len(5))
    assert not isinstance(raised.value, weft.Error)
