# SPDX-License-Identifier: Apache-2.0
"""Tails, cut and merged loops, layouts of iterators, padding and rolling buffers, on devices beside NumPy."""

import numpy as np
import pytest

import weft
from weft import te


def devices():
    return ["cpu", "c", "ref"]


def product(m, n, k, dtype="float32"):
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return weft.Schedule(te.create_prim_func([a, b, c]))


def run(sch, target, *arrays, out):
    arguments = [weft.asarray(x) for x in arrays] + [weft.asarray(np.zeros(*out))]
    weft.build(sch, target=target)(*arguments)
    return arguments[-1].numpy()


def whole(rng, shape, dtype):
    return rng.integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("target", devices())
@pytest.mark.parametrize("tail", ["guard", "peel", "shift_inwards"])
@pytest.mark.parametrize("size", [(9, 17, 5), (16, 16, 16), (7, 33, 3)])
def test_tails_of_a_product(target, tail, size):
    m, n, k = size
    rng = np.random.default_rng(3)
    sch = product(m, n, k)
    c = sch.get_block("C")
    i, j, r = sch.get_loops(c)
    i0, i1 = sch.split(i, [None, 4], tail=tail)
    a, b = whole(rng, (m, k), "float32"), whole(rng, (k, n), "float32")
    inner = sch.get_loops(sch.get_block("C"))
    j0, j1 = sch.split(inner[2], [None, 8], tail="guard" if tail == "shift_inwards" else tail)
    sch.unroll(i1)
    np.testing.assert_array_equal(run(sch, target, a, b, out=((m, n), "float32")), a @ b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
@pytest.mark.parametrize("n", [1, 3, 8, 15, 16, 17, 1000])
def test_guards_of_vectors_on_the_host(dtype, n):
    """The pass that moves guards out of tiles: every remainder, several types, against NumPy."""
    x = te.placeholder((n,), dtype, name="X")
    y = te.compute((n,), lambda i: x[i] + x[i] * te.const(3, dtype), name="Y")
    sch = weft.Schedule(te.create_prim_func([x, y]))
    (i,) = sch.get_loops(sch.get_block("Y"))
    outer, middle, inner = sch.split(i, [None, 3, 8])
    sch.vectorize(inner)
    sch.parallel(outer)
    data = np.random.default_rng(n).integers(-9, 9, n).astype(dtype)
    want = (data + data * np.array(3, dtype)).astype(dtype)
    for target in ("cpu", "c"):
        np.testing.assert_array_equal(run(sch, target, data, out=((n,), dtype)), want)


@pytest.mark.parametrize("target", devices())
@pytest.mark.parametrize("size", [(6, 16, 8), (13, 37, 11), (25, 33, 9)])
def test_register_tiles_of_any_size(target, size):
    m, n, k = size
    sch = product(m, n, k)
    c = sch.get_block("C")
    i, j, r = sch.get_loops(c)
    i0, i1, i2 = sch.split(i, [None, 2, 6])
    j0, j1 = sch.split(j, [None, 16])
    r0, r1 = sch.split(r, [None, 4])
    sch.reorder(i0, j0, r0, i1, r1, i2, j1)
    sch.decompose_reduction(c, r0)
    sch.vectorize(j1)
    sch.unroll(i2)
    sch.parallel(i0)
    rng = np.random.default_rng(m)
    a, b = whole(rng, (m, k), "float32"), whole(rng, (k, n), "float32")
    np.testing.assert_array_equal(run(sch, target, a, b, out=((m, n), "float32")), a @ b)


def windows(m, n):
    a = te.placeholder((m + 2, n), "float32", name="A")
    b = te.compute((m + 2, n), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((m, n), lambda i, j: b[i, j] + b[i + 1, j] + b[i + 2, j], name="C")
    return weft.Schedule(te.create_prim_func([a, c]), check="run")


@pytest.mark.parametrize("target", devices())
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_rolling_buffer_on_devices(target, rows):
    sch = windows(12, 5)
    i, _ = sch.get_loops(sch.get_block("C"))
    outer, _ = sch.split(i, [None, rows])
    sch.compute_at(sch.get_block("B"), outer)
    sch.rolling_buffer(sch.get_block("B"), 0)
    assert sch.checked[0] > 0
    x = whole(np.random.default_rng(1), (14, 5), "float32")
    want = 2 * (x[:-2] + x[1:-1] + x[2:])
    np.testing.assert_array_equal(run(sch, target, x, out=((12, 5), "float32")), want)


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_an_unrolled_rolling_buffer_keeps_what_iterations_hand_on(target):
    """The window is declared around the loop, not in each copy of its body."""
    sch = windows(12, 5)
    i, _ = sch.get_loops(sch.get_block("C"))
    outer, _ = sch.split(i, [None, 2])
    sch.compute_at(sch.get_block("B"), outer)
    sch.rolling_buffer(sch.get_block("B"), 0)
    sch.unroll(outer)
    x = whole(np.random.default_rng(1), (14, 5), "float32")
    want = 2 * (x[:-2] + x[1:-1] + x[2:])
    np.testing.assert_array_equal(run(sch, target, x, out=((12, 5), "float32")), want)


@pytest.mark.parametrize("target", devices())
@pytest.mark.parametrize("multiples", [False, True])
def test_an_einsum_is_padded_and_tiled_without_guards(target, multiples):
    m, n, k = 5, 14, 7
    sch = product(m, n, k)
    sch.pad_einsum(sch.get_block("C"), [3, 8, 4] if multiples else [1, 2, 1], multiples)
    i, j, r = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 3], disable_predication=True)
    _, inner = sch.split(j, [None, 8], disable_predication=True)
    r0, _ = sch.split(r, [None, 4], disable_predication=True)
    rng = np.random.default_rng(0)
    a, b = whole(rng, (m, k), "float32"), whole(rng, (k, n), "float32")
    np.testing.assert_array_equal(run(sch, target, a, b, out=((m, n), "float32")), a @ b)


@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_a_shifted_factor_leaves_the_sums_as_they_are(target, which, dtype):
    m, n, k = 5, 9, 7
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (m, n), lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), name="C"
    )  # fmt: skip
    sch = weft.Schedule(te.create_prim_func([a, b, c]), check="run")
    assert len(sch.shift_factor(sch.get_block("C"), which)) == 3
    assert f'"u{dtype}"' in sch.script()
    info, rng = np.iinfo(dtype), np.random.default_rng(which)
    x, y = (rng.integers(info.min, info.max + 1, s).astype(dtype) for s in ((m, k), (k, n)))
    x[0], y[:, 0] = info.min, info.min
    want = (x.astype("int64") @ y.astype("int64")).astype("int32")
    np.testing.assert_array_equal(run(sch, target, x, y, out=((m, n), "int32")), want)


def test_factors_that_cannot_be_shifted_are_refused():
    def of(a_type, b_type, value, twice=False):
        a, b = te.placeholder((4, 5), a_type, name="A"), te.placeholder((4, 5), b_type, name="B")
        r = te.reduce_axis((0, 5), name="k")
        c = te.compute((4,), lambda i: te.sum(value(a[i, r], (a if twice else b)[i, r]), axis=r), name="C")  # fmt: skip
        return weft.Schedule(te.create_prim_func([a, b, c]))

    def product(x, y):
        return x.astype("int32") * y.astype("int32")

    for sch, code in (
        (of("uint8", "int8", product), "schedule.shift_factor.dtype"),
        (of("int8", "int8", product, True), "schedule.shift_factor.pattern"),
        (
            of("int8", "int8", lambda x, y: x.astype("int32") + y.astype("int32")),
            "schedule.shift_factor.pattern",
        ),
        (of("float32", "float32", lambda x, y: x * y), "schedule.shift_factor.pattern"),
    ):
        with pytest.raises(weft.ScheduleError) as caught:
            sch.shift_factor(sch.get_block("C"), 0)
        assert caught.value.code == code
    sch = of("int8", "int8", product)
    sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 2])
    with pytest.raises(weft.ScheduleError) as caught:
        sch.shift_factor(sch.get_block("C"), 0)
    assert caught.value.code == "schedule.shift_factor.nest"
    with pytest.raises(weft.ScheduleError) as caught:
        sch.shift_factor(sch.get_block("C"), 7)
    assert caught.value.code == "schedule.shift_factor.index"


@pytest.mark.parametrize("target", devices())
def test_im2col_by_reindex(target):
    n, k = 11, 3
    a, w = (
        te.placeholder((n + k - 1,), "float32", name="A"),
        te.placeholder((k,), "float32", name="W"),
    )
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n,), lambda i: te.sum(a[i + r] * w[r], axis=r), name="C")
    sch = weft.Schedule(te.create_prim_func([a, w, c]), check="run")
    block = sch.get_block("C")
    columns = sch.reindex(block, ("read", 0))
    sch.reindex_cache_write(block, 0, "global", lambda i, r: (i,))
    sch.transform_block_layout(columns, lambda i, r: (r, i))
    rng = np.random.default_rng(2)
    x, y = whole(rng, n + k - 1, "float32"), whole(rng, k, "float32")
    want = np.convolve(x, y[::-1], "valid")
    np.testing.assert_array_equal(run(sch, target, x, y, out=((n,), "float32")), want)


def test_partition_and_epilogue_replay():
    m, n, k = 6, 5, 9
    a, b = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    d = te.placeholder((n,), "float32", name="D")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    e = te.compute((m, n), lambda i, j: c[i, j] + d[j], name="E")
    func = te.create_prim_func([a, b, d, e])
    sch = weft.Schedule(func, check="run")
    sch.fuse_reduction_epilogue(sch.get_block("C"), sch.get_block("E"))
    i, j, r = sch.get_loops(sch.get_block("C"))
    sch.loop_partition(r, [4, None])
    again = weft.Schedule.replay(func, sch.trace.as_json())
    assert weft.ir.structural_equal(again.mod, sch.mod)
    rng = np.random.default_rng(5)
    x, y, z = (whole(rng, s, "float32") for s in ((m, k), (k, n), (n,)))
    np.testing.assert_array_equal(run(sch, "cpu", x, y, z, out=((m, n), "float32")), x @ y + z)


def test_stages_share_their_loops():
    sch = windows(6, 5)
    b, c = sch.get_block("B"), sch.get_block("C")
    rows = sch.loop_partition(sch.get_loops(b)[0], [6, None])
    with pytest.raises(weft.ScheduleError) as caught:
        sch.merge(rows[1], sch.get_loops(c)[0])
    assert caught.value.code == "schedule.merge.extent"
    x = te.placeholder((6, 5), "float32", name="A")
    y = te.compute((6, 5), lambda i, j: x[i, j] * 2.0, name="B")
    z = te.compute((6, 5), lambda i, j: y[i, j] + 1.0, name="C")
    both = weft.Schedule(te.create_prim_func([x, z]), check="run")
    b, c = both.get_block("B"), both.get_block("C")
    both.merge(both.get_loops(b)[0], both.get_loops(c)[0])
    both.merge(both.get_loops(b)[1], both.get_loops(c)[1])
    assert both.get_loops(b) == both.get_loops(c)
    data = whole(np.random.default_rng(6), (6, 5), "float32")
    np.testing.assert_array_equal(run(both, "cpu", data, out=((6, 5), "float32")), data * 2 + 1)


def test_padding_is_filled_apart():
    x = te.placeholder((6,), "float32", name="A")
    y = te.compute(
        (9,),
        lambda i: te.if_then_else(te.all(i >= 2, i < 8), x[i - 2], te.const(0, "float32")),
        name="B",
    )
    sch = weft.Schedule(te.create_prim_func([x, y]), check="run")
    sch.decompose_padding(sch.get_block("B"), sch.get_loops(sch.get_block("B"))[0])
    assert "if_then_else" not in sch.script()
    data = whole(np.random.default_rng(4), 6, "float32")
    np.testing.assert_array_equal(
        run(sch, "cpu", data, out=((9,), "float32")), np.pad(data, (2, 1))
    )


def test_refusals_reach_python_with_their_code():
    sch = product(5, 6, 7)
    i, j, r = sch.get_loops(sch.get_block("C"))
    for step, code in (
        (lambda: sch.split(i, [None, 4], tail="none"), "schedule.split.tail"),
        (lambda: sch.merge(i, j), "schedule.merge.neighbours"),
        (lambda: sch.pad_einsum(sch.get_block("C"), [1]), "schedule.pad_einsum.padding"),
        (
            lambda: sch.pad_einsum(sch.get_block("C"), [1, 0, 1], multiples=True),
            "schedule.pad_einsum.padding",
        ),
        (lambda: sch.rolling_buffer(sch.get_block("C"), 0), "schedule.rolling_buffer.parameter"),
    ):
        with pytest.raises(weft.ScheduleError) as caught:
            step()
        assert caught.value.code == code


@pytest.mark.parametrize("step", ["cache_read", "cache_write"])
def test_a_copy_comes_before_the_reader_that_shares_a_loop(step):
    """Of two readers one shares the writer's loop: it read the copy's target before the copy was made."""
    text = """
@T.prim_func
def main(A: T.Buffer((6, 7), "int32"), C: T.Buffer((6, 7), "int32"), D: T.Buffer((6, 7), "int32")):
    B = T.alloc_buffer((6, 7), "int32")
    for i in range(6):
        for j in range(7):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2
        for j in range(7):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1
    for i, j in T.grid(6, 7):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] * 3
"""
    sch = weft.Schedule(weft.script.from_source(text))
    sch.cache_write(sch.get_block("B"), 0, "global") if step == "cache_write" else sch.cache_read(
        sch.get_block("C"), 0, "global", [sch.get_block("C"), sch.get_block("D")]
    )
    a = np.arange(42, dtype="int32").reshape(6, 7)
    given = [weft.asarray(x) for x in (a, np.zeros_like(a), np.zeros_like(a))]
    weft.build(sch, target="ref")["main"](*given)
    np.testing.assert_array_equal(given[1].numpy(), a * 2 + 1)
    np.testing.assert_array_equal(given[2].numpy(), a * 6)


def test_show_prints_the_program(capsys):
    A = te.placeholder((4,), name="A")
    sch = weft.Schedule(te.create_prim_func([A, te.compute((4,), lambda i: A[i] + 1.0, name="B")]))
    sch.split(sch.get_loops(sch.get_block("B"))[0], [2, 2])
    assert sch.show() is None
    assert capsys.readouterr().out == sch.script() + "\n"


@pytest.mark.parametrize("lengths", [[5, 6], [11], [4, None, 7], [3, 4, 4], [10, None], [None, 10]])
def test_parts_that_are_longer_than_their_loop_are_refused(lengths):
    A = te.placeholder((10,), name="A")
    sch = weft.Schedule(te.create_prim_func([A, te.compute((10,), lambda i: A[i] + 1.0, name="B")]))
    with pytest.raises(weft.ScheduleError) as caught:
        sch.loop_partition(sch.get_loops(sch.get_block("B"))[0], lengths)
    assert caught.value.code == "schedule.loop_partition.lengths"
