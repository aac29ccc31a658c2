# SPDX-License-Identifier: Apache-2.0
"""Sums on the QPU whose cheapest accesses are not the fastest placement: few terms, few results, operands that lie across the
lanes, products side by side. The default schedule is right, and no placement of the lanes given by hand is far ahead of it."""

import math
import random

import numpy as np
import pytest

import weft
from weft import te

pytestmark = pytest.mark.targets("qpu")
QPUS, LANES = 12, 16


def product(m, n, depth, turned=False, kind="float32"):
    A = te.placeholder((m, depth), kind, name="A")
    B = te.placeholder((n, depth) if turned else (depth, n), kind, name="B")
    k = te.reduce_axis(depth, name="k")
    C = te.compute(
        (m, n), lambda i, j: te.sum(A[i, k] * (B[j, k] if turned else B[k, j]), axis=k), name="C"
    )
    return [A, B, C], lambda a, b: a @ (b.T if turned else b)


def matrix_vector(m, n):
    A, x, k = (
        te.placeholder((m, n), name="A"),
        te.placeholder((n,), name="x"),
        te.reduce_axis(n, name="k"),
    )
    return [
        A,
        x,
        te.compute((m,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="C"),
    ], lambda a, v: a @ v


def batch(b, m, n, depth):
    A, B = te.placeholder((b, m, depth), name="A"), te.placeholder((b, depth, n), name="B")
    k = te.reduce_axis(depth, name="k")
    C = te.compute((b, m, n), lambda g, i, j: te.sum(A[g, i, k] * B[g, k, j], axis=k), name="C")
    return [A, B, C], lambda x, y: x @ y


def sums(h, w, columns):
    X, k = te.placeholder((h, w), name="X"), te.reduce_axis(h if columns else w, name="k")
    if columns:
        return [X, te.compute((w,), lambda j: te.sum(X[k, j], axis=k), name="C")], lambda x: x.sum(
            0
        )
    return [X, te.compute((h,), lambda i: te.sum(X[i, k], axis=k), name="C")], lambda x: x.sum(1)


ROWS = {
    "few terms": matrix_vector(1021, 13),
    "few terms of sums": sums(1009, 11, False),
    "few results": product(5, 7, 601),
    "few columns": sums(1009, 13, True),
    "turned": product(67, 71, 73, turned=True),
    "turned, integers": product(19, 37, 41, turned=True, kind="int32"),
    "turned, one row": product(1, 1201, 29, turned=True),
    "side by side": batch(3, 65, 33, 19),
    "side by side, small": batch(7, 13, 11, 17),
    "long": matrix_vector(37, 1201),
    "product": product(67, 71, 73),
    "three columns": product(24, 3, 128),
    "four columns, turned": product(24, 4, 128, turned=True),
    "few results, long": product(6, 7, 235),
    "two columns, long": product(31, 2, 325),
    "few results, few terms, turned": product(5, 8, 27, turned=True),
}


def convolution(ci, co, h, w, size):
    X, W = te.placeholder((ci, h, w), name="X"), te.placeholder((co, ci, size, size), name="W")
    c, p, q = (te.reduce_axis(e, name=n) for e, n in ((ci, "c"), (size, "p"), (size, "q")))
    shape = (co, h - size + 1, w - size + 1)
    C = te.compute(
        shape, lambda o, y, x: te.sum(X[c, y + p, x + q] * W[o, c, p, q], axis=[c, p, q]), name="C"
    )
    return [X, W, C], lambda x, k: np.einsum(
        "cyxpq,ocpq->oyx", np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2)), k
    )


def stencil(h, w):
    X = te.placeholder((h, w), name="X")
    C = te.compute(
        (h - 2, w - 2), lambda i, j: X[i, j + 1] + X[i + 2, j + 1] + X[i + 1, j], name="C"
    )
    return [X, C], lambda x: x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2]


def shape_of(tensor):
    return tuple(int(d) for d in tensor.shape)


def arrays_of(tensors):
    rng = np.random.default_rng(3)
    for t in tensors:
        integers = rng.integers(-9, 9, shape_of(t))
        yield (integers if "int" in t.dtype else rng.standard_normal(shape_of(t))).astype(t.dtype)


def run(program, tensors):
    """The result and the clocks."""
    held = [weft.asarray(a, device="qpu") for a in arrays_of(tensors)]
    module = weft.build(program, target="qpu", tuned=False)
    clocks = module.time_evaluator(module.functions[0], number=1)(*held).cycles
    return held[-1].numpy(), int(clocks)


def given(tensors, lane, rows):
    """Lanes along loop number `lane`; of a spatial one in tiles of `rows` along the loop before."""
    shape, sch = shape_of(tensors[-1]), weft.Schedule(te.create_prim_func(tensors))
    loops = sch.get_loops(sch.get_block("C"))
    others = [k for k in range(len(shape)) if k != lane]
    outer, inner = [loops[k] for k in others], []
    count = math.prod(shape[k] for k in others)
    chunk, vector = sch.split(loops[lane], [None, LANES])
    if rows > 1:
        outer[-1], within = sch.split(outer[-1], [None, rows])
        inner, count = [within], count // shape[others[-1]] * math.ceil(shape[others[-1]] / rows)
    sums = [loops[k] for k in range(len(shape), len(loops)) if k != lane]
    if lane < len(shape):
        outer, count = [*outer, chunk], count * math.ceil(shape[lane] / LANES)
        sch.reorder(*outer, *inner, vector, *sums)
    else:
        sch.reorder(*outer, *inner, *sums, chunk, vector)
    whole = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    turns, qpu = sch.split(whole, [None, min(QPUS, count)])
    sch.reorder(qpu, turns)
    sch.bind(qpu, "qpu")
    sch.bind(vector, "lane")
    return sch


@pytest.mark.parametrize("seed", range(8))
def test_random_thin_products(seed):
    r = random.Random(seed)
    long, few = r.choice([r.randint(1, 40), r.randint(41, 250)]), r.randint(1, 9)
    m, n = (long, few) if r.random() < 0.5 else (few, long)
    depth = r.choice([r.randint(8, 130), r.randint(131, 400)])
    near_the_best(*product(m, n, depth, turned=r.random() < 0.5))


@pytest.mark.parametrize(
    "program",
    [(2, 8, 14, 38, 3), (3, 8, 6, 44, 3), (2, 2, 16, 24, 3), (1, 3, 28, 58, 3), (8, 2, 6, 52, 3), (34, 23)],
    ids=str,
)  # fmt: skip
def test_no_way_to_share_results_out_is_far_ahead(program):
    """Lanes along the columns; rows or chunks of 16 columns to the QPUs, side by side or one after the other."""
    tensors, reference = (convolution if len(program) == 5 else stencil)(*program)
    got, clocks = run(te.create_prim_func(tensors), tensors)
    operands = [a.astype("float64") for a in list(arrays_of(tensors))[:-1]]
    np.testing.assert_allclose(got, reference(*operands), rtol=1e-3, atol=1e-2)
    placed = []
    for chunks in (False, True):
        for near in (False, True):
            sch = weft.Schedule(te.create_prim_func(tensors))
            loops, dims = sch.get_loops(sch.get_block("C")), len(tensors[-1].shape)
            chunk, vector = sch.split(loops[dims - 1], [None, LANES])
            outer, inner = (
                [*loops[: dims - 1], chunk][: dims - 1 + chunks],
                [] if chunks else [chunk],
            )
            sch.reorder(*outer, *inner, vector, *loops[dims:])
            try:
                whole = sch.fuse(*outer) if len(outer) > 1 else outer[0]
                shares = sch.split(whole, [QPUS, None] if near else [None, QPUS])
                if not near:
                    sch.reorder(shares[1], shares[0])
                sch.bind(shares[0 if near else 1], "qpu")
                sch.bind(vector, "lane")
                placed.append(run(sch, tensors)[1])
            except weft.Error as refusal:  # the guard of columns that 16 do not divide, say
                assert refusal.code.startswith(("schedule.", "qpu.")), refusal
    assert placed and clocks <= 1.1 * min(placed), (clocks, placed)


@pytest.mark.parametrize("name", ROWS)
def test_the_default_is_right_and_near_the_best_placement(name):
    near_the_best(*ROWS[name])


def near_the_best(tensors, reference):
    got, clocks = run(te.create_prim_func(tensors), tensors)
    operands = [a.astype("float64") for a in list(arrays_of(tensors))[:-1]]
    np.testing.assert_allclose(got, reference(*operands), rtol=1e-3, atol=1e-2)
    dims, placed = len(tensors[-1].shape), []
    for lane in range(dims + 1):
        for rows in [1, 8] if lane < dims > 1 else [1]:
            try:
                placed.append(run(given(tensors, lane, rows), tensors)[1])
            except weft.Error as refusal:  # a tile's guard, say
                assert refusal.code.startswith(("schedule.", "qpu.")), refusal
    assert len(placed) >= 2 and clocks <= 1.1 * min(placed), (clocks, placed)
