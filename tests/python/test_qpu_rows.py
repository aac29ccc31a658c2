# SPDX-License-Identifier: Apache-2.0
"""Rows on the QPU: reductions along them and what is made of these run as one launch, registers in between."""

import numpy as np
import pytest

import weft
from weft import te

pytestmark = pytest.mark.targets("qpu")
rng = np.random.default_rng(2)


def softmax(rows, columns):
    X = te.placeholder((rows, columns), name="X")
    k, m = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="m")
    M = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="M")
    E = te.compute((rows, columns), lambda i, j: te.exp(X[i, j] - M[i]), name="E")
    Z = te.compute((rows,), lambda i: te.sum(E[i, m], axis=m), name="Z")
    Y = te.compute((rows, columns), lambda i, j: E[i, j] / Z[i], name="Y")
    x = rng.standard_normal((rows, columns)).astype("f4")
    e = np.exp(x - x.max(1, keepdims=True))
    return [X, Y], [x], e / e.sum(1, keepdims=True)


def layer_norm(rows, columns):
    """Mean and deviation by blocks over rows alone between the reductions; two more operands."""
    X, G, B = (
        te.placeholder((rows, columns), name="X"),
        te.placeholder((columns,), name="G"),
        te.placeholder((columns,), name="B"),
    )
    k, m = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="m")
    S = te.compute((rows,), lambda i: te.sum(X[i, k], axis=k), name="S")
    U = te.compute((rows,), lambda i: S[i] / columns, name="U")
    V = te.compute((rows,), lambda i: te.sum((X[i, m] - U[i]) * (X[i, m] - U[i]), axis=m), name="V")
    R = te.compute((rows,), lambda i: 1.0 / te.sqrt(V[i] / columns + 1e-5), name="R")
    Y = te.compute((rows, columns), lambda i, j: (X[i, j] - U[i]) * R[i] * G[j] + B[j], name="Y")
    x, g, b = (rng.standard_normal(s).astype("f4") for s in ((rows, columns), columns, columns))
    u = x.astype("f8").mean(1, keepdims=True)
    v = ((x - u) ** 2).mean(1, keepdims=True)
    return [X, G, B, Y], [x, g, b], (x - u) / np.sqrt(v + 1e-5) * g + b


def batches(rows, columns):
    """Rows of two axes, the sum of the largest only by way of another sum."""
    X = te.placeholder((3, rows, columns), name="X")
    k, m = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="m")
    M = te.compute((3, rows), lambda b, i: te.max(X[b, i, k], axis=k), name="M")
    Z = te.compute((3, rows), lambda b, i: te.sum(te.exp(X[b, i, m] - M[b, i]), axis=m), name="Z")
    Y = te.compute((3, rows, columns), lambda b, i, j: X[b, i, j] * Z[b, i], name="Y")
    x = rng.standard_normal((3, rows, columns)).astype("f4")
    return [X, Y], [x], x * np.exp(x - x.max(2, keepdims=True)).sum(2, keepdims=True)


def integers(rows, columns):
    X, k = te.placeholder((rows, columns), "int32", name="X"), te.reduce_axis(columns, name="k")
    S = te.compute((rows,), lambda i: te.sum(X[i, k], axis=k), name="S")
    Y = te.compute((rows, columns), lambda i, j: X[i, j] * S[i], name="Y")
    x = rng.integers(-99, 99, (rows, columns)).astype("i4")
    return [X, Y], [x], x * x.sum(1, keepdims=True, dtype="i4")


def run(tensors, arrays, want, target):
    device = weft.device(target)
    held = [weft.asarray(a, device=device) for a in arrays]
    out = weft.asarray(np.full(want.shape, 7, arrays[0].dtype), device=device)
    module = weft.build(te.create_prim_func(tensors), target=target, tuned=False)
    before = device.stats().get("launches", 0)
    module["main"](*held, out)
    np.testing.assert_allclose(out.numpy(), want, rtol=2e-4, atol=2e-4)
    return device.stats()["launches"] - before


@pytest.mark.parametrize("make", [softmax, layer_norm, batches, integers])
@pytest.mark.parametrize("rows, columns", [(12, 16), (13, 37), (40, 100), (24, 17)])
def test_one_launch(make, rows, columns):
    # Rows of two axes that QPUs do not divide are not placed as one loop: a launch for each reduction.
    apart = make is batches and 3 * rows % 12
    assert run(*make(rows, columns), "qpu") == (3 if apart else 1)


@pytest.mark.parametrize("make", [softmax, layer_norm, integers])
@pytest.mark.parametrize("rows, columns", [(1, 40), (5, 33), (30, 7), (30, 1)])
def test_few_or_short_rows_are_right_too(make, rows, columns):
    assert run(*make(rows, columns), "qpu") >= 1


@pytest.mark.parametrize("make", [softmax, layer_norm])
def test_few_rows_are_one_launch_until_they_are_long(make):
    """A stage over all QPUs costs a launch and a way through memory."""
    for rows, columns in ((5, 279), (6, 632), (3, 130), (1, 100)):
        assert run(*make(rows, columns), "qpu") == 1, (rows, columns)
    for rows, columns in ((1, 20000), (3, 9000)):
        assert run(*make(rows, columns), "qpu") > 1, (rows, columns)


def test_fewer_qpus():
    assert run(*softmax(3, 50), "qpu:qpus=3") == 1


def test_a_reduction_that_others_read_stays_in_memory():
    """The largest of a row is a result too: it is stored, and the rest is right."""
    rows, columns = 20, 40
    X, k = te.placeholder((rows, columns), name="X"), te.reduce_axis(columns, name="k")
    M = te.compute((rows,), lambda i: te.max(X[i, k], axis=k), name="M")
    Y = te.compute((rows, columns), lambda i, j: X[i, j] - M[i], name="Y")
    x = rng.standard_normal((rows, columns)).astype("f4")
    device = weft.device("qpu")
    m, y = (weft.zeros(s, dtype="float32", device=device) for s in (rows, (rows, columns)))
    module = weft.build(te.create_prim_func([X, M, Y]), target="qpu", tuned=False)
    module["main"](weft.asarray(x, device=device), m, y)
    np.testing.assert_array_equal(m.numpy(), x.max(1))
    np.testing.assert_allclose(y.numpy(), x - x.max(1, keepdims=True), rtol=1e-6)


def test_rows_read_by_other_rows_are_kept_apart():
    """Row i reads the sum of row n - 1 - i: no register of its own has it."""
    rows, columns = 24, 32
    X, k = te.placeholder((rows, columns), name="X"), te.reduce_axis(columns, name="k")
    S = te.compute((rows,), lambda i: te.sum(X[i, k], axis=k), name="S")
    Y = te.compute((rows, columns), lambda i, j: X[i, j] + S[rows - 1 - i], name="Y")
    x = rng.standard_normal((rows, columns)).astype("f4")
    assert run([X, Y], [x], x + x.astype("f8").sum(1)[::-1, None], "qpu") == 2


def test_a_value_of_one_lane_is_still_no_value_of_all():
    """Each lane keeps its own element; another lane's cannot be read from a register."""
    X = te.placeholder((24, 16), name="X")
    A = te.compute((24, 16), lambda i, j: X[i, j] * 2.0, name="A")
    B = te.compute((24, 16), lambda i, j: A[i, 15 - j] + 1.0, name="B")
    sch = weft.Schedule(te.create_prim_func([X, B]))
    i, j = sch.get_loops(sch.get_block("B"))
    sch.set_scope(sch.get_block("A"), 0, "local")
    sch.compute_at(sch.get_block("A"), i)
    sch.bind(sch.get_loops(sch.get_block("A"))[-1], "lane")
    sch.bind(j, "lane")
    with pytest.raises(weft.Error) as caught:
        weft.build(sch, target="qpu")
    assert caught.value.code == "lower.private.exchanged" and '"A"' in str(caught.value)


@pytest.mark.parametrize(
    "rows, columns, depth", [(48, 40, 32), (64, 40, 17), (13, 33, 20), (37, 50, 16), (36, 90, 40)]
)
def test_products_of_any_width_use_lanes_and_qpus(rows, columns, depth):
    """One point after the other takes more than 20 clocks a product."""
    A, B = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    k = te.reduce_axis(depth, name="k")
    C = te.compute((rows, columns), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    a, b = (rng.standard_normal(s).astype("f4") for s in ((rows, depth), (depth, columns)))
    device = weft.device("qpu")
    module = weft.build(te.create_prim_func([A, B, C]), target="qpu", tuned=False)
    held = [weft.asarray(x, device=device) for x in (a, b)]
    out = weft.zeros((rows, columns), dtype="float32", device=device)
    before = device.stats().get("cycles", 0)
    module["main"](*held, out)
    cycles = device.stats()["cycles"] - before
    np.testing.assert_allclose(out.numpy(), a.astype("f8") @ b, rtol=1e-4, atol=1e-4)
    assert cycles < 3 * rows * columns * depth  # simulated, the same in every run


def reduction(n):
    X, r = te.placeholder((n,), name="X"), te.reduce_axis(n, name="r")
    Y = te.compute((1,), lambda i: te.sum(X[r], axis=r), name="Y")
    x = np.random.default_rng(n).standard_normal(n).astype("f4")
    device = weft.device("qpu")
    out = weft.zeros((1,), dtype="float32", device=device)
    module = weft.build(te.create_prim_func([X, Y]), target="qpu", tuned=False)
    cycles = module.time_evaluator("main", number=1)(weft.asarray(x, device=device), out).cycles
    np.testing.assert_allclose(out.numpy()[0], x.astype("f8").sum(), atol=1e-3 * n**0.5)
    return cycles


def test_a_reduction_of_any_length_is_divided_among_the_qpus():
    even = reduction(48576)
    for n in (48569, 48577, 48571):  # a prime, and what divides badly
        assert reduction(n) < 1.2 * even, n
    for n in (523, 1118, 997, 2 * 1009):
        reduction(n)


def test_short_windows_are_sums_of_one_lane():
    def window(n, size):
        X, r = te.placeholder((n,), name="X"), te.reduce_axis(size, name="r")
        Y = te.compute((n - size + 1,), lambda i: te.sum(X[i + r], axis=r), name="Y")
        x = np.random.default_rng(n).standard_normal(n).astype("f4")
        device = weft.device("qpu")
        out = weft.zeros((n - size + 1,), dtype="float32", device=device)
        module = weft.build(te.create_prim_func([X, Y]), target="qpu", tuned=False)
        cycles = module.time_evaluator("main", number=1)(weft.asarray(x, device=device), out).cycles
        want = np.lib.stride_tricks.sliding_window_view(x, size).sum(1)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-4, atol=1e-4)
        return cycles

    assert window(1099, 12) < 2 * window(1099, 8)
