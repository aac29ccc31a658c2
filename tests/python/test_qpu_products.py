# SPDX-License-Identifier: Apache-2.0
"""Products on the QPUs by the default schedule: tiles whose rows share vectors, and words that all lanes want as vectors of
sixteen steps. Sizes that divide nothing, both layouts of both operands, batches, integers, masks."""

import numpy as np
import pytest

import weft
from weft import te

rng = np.random.default_rng(7)


def product(m, n, k, layout, dtype, batch=None, start=None):
    """The program of a @ b (+ start), its arrays and the exact result."""
    lead = () if batch is None else (batch,)
    shape_a = lead + ((k, m) if layout[0] == "T" else (m, k))
    shape_b = lead + ((n, k) if layout[1] == "T" else (k, n))
    A, B = te.placeholder(shape_a, dtype, name="A"), te.placeholder(shape_b, dtype, name="B")
    r = te.reduce_axis(k, name="r")

    def term(*i):
        at, (i, j) = i[:-2], i[-2:]
        a = A[at + ((r, i) if layout[0] == "T" else (i, r))]
        return te.sum(a * B[at + ((j, r) if layout[1] == "T" else (r, j))], axis=r)

    C = te.compute(lead + (m, n), term, name="C")
    values = (
        (lambda s: rng.standard_normal(s).astype("f4"))
        if dtype == "float32"
        else lambda s: rng.integers(-9, 9, s).astype("i4")
    )
    a, b = values(shape_a), values(shape_b)
    wide = "f8" if dtype == "float32" else "i8"
    x = a.astype(wide).swapaxes(-1, -2) if layout[0] == "T" else a.astype(wide)
    y = b.astype(wide).swapaxes(-1, -2) if layout[1] == "T" else b.astype(wide)
    return [A, B, C], [a, b], x @ y


def run(tensors, arrays, want, target="qpu"):
    module = weft.build(te.create_prim_func(tensors), target=target, tuned=False)
    device = weft.device(target)
    held = [weft.asarray(a, device=device) for a in arrays]
    out = weft.full(want.shape, 77, dtype=str(arrays[0].dtype), device=device)
    cycles = module.time_evaluator("main", number=1)(*held, out).cycles
    tolerance = 0 if arrays[0].dtype.kind == "i" else 1e-4
    np.testing.assert_allclose(out.numpy(), want, rtol=tolerance, atol=tolerance * 10)
    return cycles


SIZES = [
    (1, 16, 16), (8, 16, 16), (8, 16, 17), (3, 5, 33), (9, 33, 31), (17, 40, 64), (31, 1, 20),
    (64, 16, 100), (100, 100, 15), (23, 47, 129), (2, 300, 48), (300, 2, 48),
]  # fmt: skip


# As many tiles as no grid of QPUs divides well: they go in turns, with rows of tiles that are empty.
UNEVEN = [(38, 105, 49), (85, 40, 18), (37, 261, 65), (43, 81, 20), (11, 209, 7)]


@pytest.mark.parametrize("size", UNEVEN, ids=str)
@pytest.mark.parametrize("target", ["qpu", "qpu:qpus=5"])
def test_tiles_that_no_grid_divides(size, target):
    for dtype in ("float32", "int32"):
        run(*product(*size, "NN", dtype), target=target)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("layout", ["NN", "TN", "NT", "TT"])
def test_every_layout_and_tail(size, layout):
    for dtype in ("float32", "int32"):
        run(*product(*size, layout, dtype))


@pytest.mark.parametrize("batch", [1, 3, 13])
def test_batches(batch):
    run(*product(10, 35, 37, "NN", "float32", batch))
    run(*product(10, 35, 37, "TN", "float32", batch))


@pytest.mark.parametrize("qpus", [1, 5, 12])
def test_any_number_of_qpus(qpus):
    run(*product(20, 50, 40, "NN", "float32"), target=f"qpu:qpus={qpus},reads=fault")


def test_words_side_by_side_in_one_step():
    """The rows of a tile lie side by side, the steps of the sum do not."""
    A, B = te.placeholder((50, 24), name="A"), te.placeholder((50, 70), name="B")
    r = te.reduce_axis(50, name="r")
    C = te.compute((24, 70), lambda i, j: te.sum((A[r, i] + 1.0) * B[r, j], axis=r), name="C")
    a, b = (rng.standard_normal(s).astype("f4") for s in ((50, 24), (50, 70)))
    run([A, B, C], [a, b], (a.T.astype("f8") + 1) @ b)


def test_largest_instead_of_sum():
    A, B = te.placeholder((30, 40), name="A"), te.placeholder((40, 70), name="B")
    r = te.reduce_axis(40, name="r")
    C = te.compute((30, 70), lambda i, j: te.max(A[i, r] + B[r, j], axis=r), name="C")
    a, b = (rng.standard_normal(s).astype("f4") for s in ((30, 40), (40, 70)))
    run([A, B, C], [a, b], (a[:, :, None] + b[None]).max(1))


def test_a_word_for_all_lanes_costs_no_vector():
    """Clocks are exact: 128 x 128 x 128 took 574,412 while each word was a request of its own."""
    assert run(*product(128, 128, 128, "NN", "float32")) < 160_000
    assert run(*product(128, 128, 128, "TN", "float32")) < 220_000


def test_ragged_sizes_cost_about_what_even_ones_do():
    """Tiles whose rows or columns do not divide, in simulated cycles (exact)."""
    even = run(*product(40, 240, 32, "NN", "float32"))
    for size in [(41, 240, 32), (40, 241, 32), (41, 251, 32), (37, 233, 32)]:
        assert run(*product(*size, "NN", "float32")) < 2.5 * even, size
    assert run(*product(107, 16, 40, "NN", "float32")) < 1.5 * run(
        *product(96, 16, 40, "NN", "float32")
    )


# Terms in which iterators stand beside what is read: a(i, r), b(r, j), the iterators.
TERMS = {
    "weight of the term": lambda a, b, i, j, r: a * b * r,
    "weight first": lambda a, b, i, j, r: (r * 3 + 1) * a * b,
    "weight of an operand": lambda a, b, i, j, r: a * ((r - 5) * b),
    "weight of row and column": lambda a, b, i, j, r: a * b * (i - j),
    "added": lambda a, b, i, j, r: a * b + r,
    "subtracted from an operand": lambda a, b, i, j, r: (a - r) * b,
    "all": lambda a, b, i, j, r: (a + i) * (b - j) * (r + 2),
}


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("layout", ["NN", "TN", "NT", "TT"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_terms_that_know_where_they_are(term, layout, dtype):
    for m, n, k in ((4, 16, 32), (1, 64, 100), (5, 48, 70), (17, 33, 20)):
        (A, B, _), arrays, _ = product(m, n, k, layout, dtype)
        arrays = [np.round(x).astype(dtype) for x in arrays]
        s = te.reduce_axis(k, name="r")

        def made(i, j, A=A, B=B, s=s):
            a = A[(s, i) if layout[0] == "T" else (i, s)]
            b = B[(j, s) if layout[1] == "T" else (s, j)]
            places = [(x + 0).astype(dtype) for x in (i, j, s)]
            return te.sum(TERMS[term](a, b, *places), axis=s)

        a, b = (x.astype("int64") for x in arrays)
        a, b = a.T if layout[0] == "T" else a, b.T if layout[1] == "T" else b
        i, j, r = np.ogrid[:m, :n, :k]
        want = TERMS[term](a[:, None, :], b.T[None], i, j, r).sum(-1)
        run([A, B, te.compute((m, n), made, name="C")], arrays, want)


@pytest.mark.parametrize("layout", ["NN", "TN", "NT", "TT"])
@pytest.mark.parametrize("open_ones", ["k", "mk", "nk", "mnk"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_sums_whose_length_is_known_when_they_run(layout, open_ones, dtype):
    """Whole rounds of sixteen steps, then the rest in steps of their own."""
    fixed = {"m": 5, "n": 40, "k": 33}
    size = {x: te.var(x) if x in open_ones else fixed[x] for x in "mnk"}
    shapes = ["km" if layout[0] == "T" else "mk", "nk" if layout[1] == "T" else "kn"]
    A, B = (te.placeholder(tuple(size[x] for x in s), dtype, name=n) for s, n in zip(shapes, "AB"))
    r = te.reduce_axis((0, size["k"]), name="r")

    def term(i, j):
        a, b = A[(r, i) if layout[0] == "T" else (i, r)], B[(j, r) if layout[1] == "T" else (r, j)]
        return te.sum(a * b, axis=r)

    C = te.compute((size["m"], size["n"]), term, name="C")
    module = weft.build(te.create_prim_func([A, B, C]), target="qpu", tuned=False)
    for m, n, k in ((5, 40, 1), (5, 40, 15), (5, 40, 16), (5, 40, 33), (1, 17, 31), (7, 16, 64), (3, 100, 50)):  # fmt: skip
        now = {x: v if x in open_ones else fixed[x] for x, v in zip("mnk", (m, n, k))}
        a, b = (rng.integers(-9, 9, [now[x] for x in s]).astype(dtype) for s in shapes)
        want = (a.T if layout[0] == "T" else a) @ (b.T if layout[1] == "T" else b)
        out = weft.full(want.shape, 77, dtype=dtype, device="qpu")
        module(*(weft.asarray(x, device="qpu") for x in (a, b)), out)
        np.testing.assert_array_equal(out.numpy(), want, str(now))
