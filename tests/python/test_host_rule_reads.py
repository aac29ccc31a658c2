# SPDX-License-Identifier: Apache-2.0
"""Programs without a schedule on processors whose reads are no plain rows: steps between neighbours, planes, places that are
looked up, one array read twice, several operands, several values of a reduction, symbols; beside NumPy at odd sizes."""

import numpy as np
import pytest
import weft
from weft import te

TARGETS = ["cpu", "c"]


def run(tensors, arguments, shape, target, dtype="float32"):
    module = weft.build(te.create_prim_func(tensors), target=target, tuned=False)
    out = weft.zeros(shape, dtype=dtype)
    module["main"](*[weft.asarray(a) for a in arguments], out)
    return out.numpy(), " ".join(module.notes)


def draw(*shape, dtype="float32", low=-9, high=9):
    rng = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(low, high, shape).astype(dtype)


def close(got, wanted, scale=None):
    limit = 1e-5 * max(1.0, np.abs(wanted).max() if scale is None else scale)
    assert got.shape == wanted.shape and np.abs(got - wanted).max() <= limit


def windows(x, k, step):
    view = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(-2, -1))
    return view[..., ::step, ::step, :, :]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("step", [2, 3, 4, 5])
@pytest.mark.parametrize("width", [9, 16, 29, 40])
def test_windows_with_steps(target, step, width):
    """Largest of windows, and depthwise sums: lanes are a few elements apart, none beyond the last one is read."""
    k, c, h = 3, 5, 6
    x, w = draw(c, (h - 1) * step + k, (width - 1) * step + k), draw(c, k, k)
    X, W = te.placeholder(x.shape, name="X"), te.placeholder(w.shape, name="W")
    p, q = te.reduce_axis((0, k), name="p"), te.reduce_axis((0, k), name="q")
    shape = (c, h, width)
    most = te.compute(shape, lambda f, i, j: te.max(X[f, i * step + p, j * step + q], axis=[p, q]), name="Y")  # fmt: skip
    got, notes = run([X, most], [x], shape, target)
    assert np.array_equal(got, windows(x, k, step).max((-1, -2)))
    assert ("Y: host_tile" in notes) == (step <= 4), notes
    sums = te.compute(shape, lambda f, i, j: te.sum(X[f, i * step + p, j * step + q] * W[f, p, q], axis=[p, q]), name="Y")  # fmt: skip
    got, notes = run([X, W, sums], [x, w], shape, target)
    close(got, np.einsum("fijpq,fpq->fij", windows(x, k, step).astype("float64"), w))
    assert ("Y: host_tile" in notes) == (step <= 4), notes


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "float16"])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_lanes_a_few_elements_apart(dtype, step):
    """Loads by vectors of neighbours, of which each gives its share: the array ends with the last lane."""
    for width in (4, 8, 16, 32, 64):
        x = draw((width - 1) * step + 1, dtype=dtype)
        X = te.placeholder(x.shape, dtype, name="X")
        sch = weft.Schedule(te.create_prim_func([X, te.compute((width,), lambda i: X[i * step] + X[i * step], name="Y")]))  # fmt: skip
        sch.vectorize(sch.get_loops(sch.get_block("Y"))[0])
        out = weft.zeros((width,), dtype=dtype)
        weft.build(sch, target="cpu", tuned=False)(weft.asarray(x), out)
        assert np.array_equal(out.numpy(), x[::step] + x[::step]), width


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(7, 13, 11), (3, 5, 7), (4, 40, 3), (2, 9, 64), (5, 33, 33)])
def test_means_of_planes(target, shape):
    """Planes whose lines are shorter than a vector are rows of their own."""
    x = draw(*shape)
    X = te.placeholder(shape, name="X")
    p, q = te.reduce_axis((0, shape[1]), name="p"), te.reduce_axis((0, shape[2]), name="q")
    Y = te.compute(shape[:1], lambda f: te.sum(X[f, p, q], axis=[p, q]), name="Y")
    got, notes = run([X, Y], [x], shape[:1], target)
    close(got, x.sum((1, 2), dtype="float64"), 30)
    assert "Y: host_rows" in notes, notes


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [5, 16, 77])
def test_rows_that_are_looked_up(target, columns):
    table, index = draw(101, columns), draw(33, 9, dtype="int32", low=0, high=101)
    T, I = te.placeholder(table.shape, name="T"), te.placeholder(index.shape, "int32", name="I")
    r = te.reduce_axis((0, 9), name="r")
    rows = te.compute((33, columns), lambda i, j: T[I[i, 4], j], name="Y")
    got, notes = run([T, I, rows], [table, index], (33, columns), target)
    assert np.array_equal(got, table[index[:, 4]])
    assert ("Y: host_map" in notes) == (columns >= 16), notes
    bags = te.compute((33, columns), lambda i, j: te.sum(T[I[i, r], j], axis=r), name="Y")
    got, notes = run([T, I, bags], [table, index], (33, columns), target)
    close(got, table[index].sum(1, dtype="float64"), 10)
    if columns > 5:
        assert "Y: host_tile" in notes and "not vectorized" not in notes, notes


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("m, k", [(5, 700), (33, 65), (1, 4000), (9, 17)])
def test_positions_of_the_largest(target, m, k):
    """The first of equals, whatever vector its element lies in."""
    x = draw(m, k).round(1)
    X, r = te.placeholder(x.shape, name="X"), te.reduce_axis((0, k), name="r")
    for find, wanted in ((te.argmax, x.argmax(1)), (te.argmin, x.argmin(1))):
        found = te.compute((m,), lambda i, find=find: find(te.cast("int32", r), X[i, r], axis=r), name="A")  # fmt: skip
        Y = te.compute((m,), lambda i, found=found: found[0][i], name="Y")
        got, notes = run([X, Y], [x], (m,), target, "int32")
        assert np.array_equal(got, wanted)
        assert "A: host_rows" in notes or k < 32, notes


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n, k", [(33, 70), (64, 5), (7, 129), (100, 16)])
def test_an_array_with_itself(target, n, k):
    """X X' and X' X: of two reads of one array the one along the columns is packed."""
    x = draw(n, k)
    X = te.placeholder(x.shape, name="X")
    r, s = te.reduce_axis((0, k), name="r"), te.reduce_axis((0, n), name="s")
    rows = te.compute((n, n), lambda i, j: te.sum(X[i, r] * X[j, r], axis=r), name="C")
    columns = te.compute((k, k), lambda i, j: te.sum(X[s, i] * X[s, j], axis=s), name="C")
    wide = x.astype("float64")
    for C, wanted in ((rows, wide @ wide.T), (columns, wide.T @ wide)):
        got, notes = run([X, C], [x], wanted.shape, target)
        close(got, wanted, n + k)
        assert "C: host_product" in notes and "refused" not in notes, notes


def test_a_copy_of_one_of_two_reads():
    """reindex_cache_read takes the read that is made of the map's iterators, and refuses a map that names none or several."""
    x = draw(6, 5)
    X, r = te.placeholder(x.shape, name="X"), te.reduce_axis((0, 5), name="r")
    program = te.create_prim_func([X, te.compute((6, 6), lambda i, j: te.sum(X[i, r] * X[j, r], axis=r), name="C")])  # fmt: skip
    for index_map in ("lambda i, j, r: (r, j)", "lambda i, j, r: (i, r)"):
        sch = weft.Schedule(program, check="run")
        sch.reindex_cache_read(sch.get_block("C"), 0, "global", index_map)
        assert "X_global" in sch.mod.script()
        out = weft.zeros((6, 6), dtype="float32")
        weft.build(sch, target="cpu", tuned=False)(weft.asarray(x), out)
        close(out.numpy(), x.astype("float64") @ x.T)
    sch = weft.Schedule(program)
    for index_map in ("lambda i, j, r: (i, j)", "lambda i, j, r: (r,)"):
        with pytest.raises(weft.ScheduleError, match=r"schedule.reindex_cache_read.access.*several indices"):  # fmt: skip
            sch.reindex_cache_read(sch.get_block("C"), 0, "global", index_map)
    same = te.placeholder((6, 6), name="S")
    k = te.reduce_axis((0, 6), name="k")
    twice = te.compute((6,), lambda i: te.sum(same[i, k] * same[k, i], axis=k), name="C")
    sch = weft.Schedule(te.create_prim_func([same, twice]))
    with pytest.raises(weft.ScheduleError, match="several indices"):
        sch.reindex_cache_read(sch.get_block("C"), 0, "global", "lambda i, k: (i, k)")


FORMS = {  # value of (a, b, s, t, i, j, r), and NumPy's result
    "scaled terms": (lambda a, b, s, t, i, j, r: a[i, r] * s[r] * b[r, j], lambda a, b, s, t: (a * s) @ b),
    "rows less their mean": (lambda a, b, s, t, i, j, r: (a[i, r] - t[i]) * b[r, j], lambda a, b, s, t: (a - t[:, None]) @ b),
    "squared distances": (lambda a, b, s, t, i, j, r: (a[i, r] - b[r, j]) * (a[i, r] - b[r, j]), lambda a, b, s, t: ((a[:, :, None] - b) ** 2).sum(1)),
    "a triangle": (lambda a, b, s, t, i, j, r: te.if_then_else(r <= i, a[i, r], te.const(0, "float32")) * b[r, j], lambda a, b, s, t: np.tril(a) @ b),
    "chosen terms": (lambda a, b, s, t, i, j, r: te.if_then_else(s[r] > t[i], b[r, j], te.const(0, "float32")), lambda a, b, s, t: (s > t[:, None]) @ b),
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("m, n, k", [(33, 50, 19), (6, 32, 64), (13, 7, 90)])
def test_operands_beside_two(target, form, m, n, k):
    value, reference = FORMS[form]
    arrays = draw(m, k), draw(k, n), draw(k), draw(m)
    a, b, s, t = (te.placeholder(x.shape, name=name) for x, name in zip(arrays, "ABST"))
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(value(a, b, s, t, i, j, r), axis=r), name="C")
    got, notes = run([a, b, s, t, C], arrays, (m, n), target)
    wide = [x.astype("float64") for x in arrays]
    close(got, reference(*wide), 4 * k)
    assert "C: host_product" in notes, notes


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("m", [1, 15, 64, 129, 1000])
def test_extents_that_are_symbols(target, m):
    """Softmax along an axis of unknown length."""
    n = te.var("n")
    X = te.placeholder((5, n), name="X")
    r, s = te.reduce_axis((0, n), name="r"), te.reduce_axis((0, n), name="s")
    t = te.compute((5,), lambda i: te.max(X[i, r], axis=r), name="T")
    e = te.compute((5, n), lambda i, j: te.exp(X[i, j] - t[i]), name="E")
    z = te.compute((5,), lambda i: te.sum(e[i, s], axis=s), name="Z")
    x = draw(5, m)
    got, notes = run([X, te.compute((5, n), lambda i, j: e[i, j] / z[i], name="Y")], [x], x.shape, target)  # fmt: skip
    wide = np.exp(x.astype("float64") - x.max(1, keepdims=True))
    close(got, wide / wide.sum(1, keepdims=True))
    assert "T: host_rows; E: host_map; Z: host_rows; Y: host_map" in notes, notes
