# SPDX-License-Identifier: Apache-2.0
"""The decisions of the host's rules, left to a tuner: each is a real one, whatever is drawn computes what NumPy does; and how the search draws."""

import random

import numpy as np
import pytest

import weft
from weft import _core, te
from weft.tuning import search, sketches
from weft.tuning.database import Trial


def product(m, n, k):
    a, b = te.placeholder((m, k), "int32", name="A"), te.placeholder((k, n), "int32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def batched(h, m, n, k):
    """Of batches, the right operand turned."""
    a, b = (
        te.placeholder((h, m, k), "int32", name="A"),
        te.placeholder((h, n, k), "int32", name="B"),
    )
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((h, m, n), lambda z, i, j: te.sum(a[z, i, r] * b[z, j, r], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def scaled(m, n):
    a = te.placeholder((m, n), "int32", name="A")
    return te.create_prim_func([a, te.compute((m, n), lambda i, j: a[i, j] * 3, name="C")])


def total(m, n):
    a = te.placeholder((m, n), "int32", name="A")
    r, s = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, n), name="s")
    return te.create_prim_func([a, te.compute((1,), lambda _: te.sum(a[r, s], axis=[r, s]))])


def columns(m, n):
    a, r = te.placeholder((m, n), "int32", name="A"), te.reduce_axis((0, m), name="r")
    return te.create_prim_func([a, te.compute((n,), lambda j: te.sum(a[r, j], axis=r))])


def chain(m, n):
    """Stages that can be joined, and a sum of rows beside them."""
    a = te.placeholder((m, n), "int32", name="A")
    b = te.compute((m, n), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((m, n), lambda i, j: b[i, j] * 2, name="C")
    r = te.reduce_axis((0, n), name="r")
    return te.create_prim_func([a, te.compute((m,), lambda i: te.sum(c[i, r], axis=r), name="D")])


def distances(m, n, k):
    a, b = te.placeholder((m, k), "int32", name="A"), te.placeholder((n, k), "int32", name="B")
    r = te.reduce_axis((0, k), name="r")

    def square(i, j):
        return te.sum((a[i, r] - b[j, r]) * (a[i, r] - b[j, r]), axis=r)

    return te.create_prim_func([a, b, te.compute((m, n), square, name="C")])


CASES = {
    "map": (scaled, (24, 129), lambda a: a * 3),
    "product": (product, (24, 64, 96), lambda a, b: a @ b),
    "batched": (batched, (3, 24, 37, 40), lambda a, b: a @ b.transpose(0, 2, 1)),
    "distances": (distances, (24, 37, 40), lambda a, b: ((a[:, None] - b) ** 2).sum(-1)),
    "rows": (chain, (5, 64), lambda a: (2 * (a + 1)).sum(1)),
    "total": (total, (24, 196), lambda a: a.sum(keepdims=True)[0]),
    "columns": (columns, (24, 196), lambda a: a.sum(0)),
    "chain": (chain, (24, 196), lambda a: (2 * (a + 1)).sum(1)),
}
ODD = {
    "map": [(7, 13), (1, 1)], "product": [(7, 13, 5), (1, 17, 1)], "batched": [(2, 7, 13, 5), (1, 1, 5, 1)],
    "distances": [(7, 13, 5)], "rows": [(3, 32), (1, 128)], "total": [(7, 13), (1, 1)], "columns": [(7, 13), (300, 33)], "chain": [(7, 13), (3, 65)],
}  # fmt: skip


def made(program, given, rng=None):
    """The schedule with these answers, else with the first or drawn ones; and the choices that were given."""
    asked = {}

    def draw(name, choices):
        asked[name] = list(choices)
        return given.get(name, rng.choice(choices) if rng else choices[0])

    return weft.Schedule(_core.open_schedule(program._core, "cpu", draw)), asked


def result(program, sch, values):
    module = weft.build(sch, target="cpu", tuned=False)
    shape = [c[0] for c in module.plan(program.name)["params"][-1]["shape"]]
    out = weft.asarray(np.full(shape, -7, "int32"))
    module(*[weft.asarray(v) for v in values], out)
    return out.numpy()


@pytest.mark.parametrize("name", CASES)
def test_every_answer_makes_a_schedule_of_its_own(name):
    make, shape, _ = CASES[name]
    program = make(*shape)
    first, asked = made(program, {})
    assert asked
    for decision, choices in asked.items():
        assert len(choices) > 1 and len(set(choices)) == len(choices), decision
        traces = [str(made(program, {decision: c})[0].trace.as_json()) for c in choices]
        assert traces[0] == str(first.trace.as_json()), decision
        assert len(set(traces)) == len(choices), decision


@pytest.mark.parametrize("name", CASES)
def test_whatever_is_drawn_is_right(name):
    make, shape, reference = CASES[name]
    rng, numbers = random.Random(name), np.random.default_rng(len(name))
    for size in [shape, *ODD[name]] * 4:
        program = make(*size)
        shapes = [[c[0] for c in p["shape"]] for p in weft.build(program, target="cpu", tuned=False).plan(program.name)["params"]]  # fmt: skip
        values = [numbers.integers(-9, 10, s).astype("int32") for s in shapes[:-1]]
        sch, asked = made(program, {}, rng)
        want = np.reshape(reference(*values), shapes[-1])
        np.testing.assert_array_equal(result(program, sch, values), want, err_msg=f"{size} {asked}")


def lowered(program):
    """What the last pass leaves, without the notes of the rules."""
    seen = []
    weft.build(program, target="cpu", after=lambda _, f, __: seen.append(str(f)), tuned=False)
    return [line for line in seen[-1].splitlines() if "T.func_attr" not in line]


@pytest.mark.parametrize("name", CASES)
def test_the_first_answers_are_the_default_schedule(name):
    make, shape, _ = CASES[name]
    program = make(*shape)
    assert lowered(program) == lowered(made(program, {})[0])


def loops(sch, kind):
    return sch.mod.script().count(f"T.{kind}(")


@pytest.mark.parametrize("parallel", [1, 0])
def test_tiles_are_as_drawn(parallel):
    given = {"b0.parallel": parallel, "b0.rows": 4, "b0.vectors": 1, "b0.pack": 0, "b0.rule": "host_product"}  # fmt: skip
    sch, asked = made(product(96, 96, 96), given)
    assert loops(sch, "parallel") == parallel
    assert loops(sch, "vectorized") == 3 and loops(sch, "unroll") == 3  # begun, added to, stored
    assert asked["b0.rule"] == ["host_product", "host_tile", "host_rows", "none"]


def vectors_at_once(rows, columns, value):
    """Of the default schedule of a gather whose elements are `value`."""
    a, where = te.placeholder((50, columns), name="A"), te.placeholder((rows,), "int32", name="I")
    o = te.compute((rows, columns), lambda i, j: value(a[where[i], j]), name="O")
    _, asked = made(te.create_prim_func([a, where, o]), {})
    return next(choices[0] for name, choices in asked.items() if name.endswith(".vectors"))


@pytest.mark.parametrize("columns, copied, computed", [(1003, 1, 4), (1024, 4, 4)])
def test_lines_that_vectors_do_not_divide_repeat_few_elements(columns, copied, computed):
    """The last vectors of a line repeat elements of those before: nothing that only moves takes several at once."""
    assert vectors_at_once(60, columns, lambda x: x) == copied
    assert vectors_at_once(60, columns, lambda x: x + 1) == copied
    assert vectors_at_once(60, columns, te.exp) == computed
    assert vectors_at_once(60, 33, te.exp) < 4


def test_a_program_that_is_scheduled_has_no_decisions():
    sch = weft.Schedule(product(8, 8, 8))
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    assert _core.open_schedule(sch.func._core, "cpu", lambda _, options: options[0]) is None


def test_a_child_takes_knobs_of_two_parents():
    trials = []
    for k in range(8):
        trials.append(Trial({"sketch": "s", "knobs": {f"x{i}": k for i in range(10)}}))
        trials[-1].seconds = 1.0 + k
    children = [search._child(random.Random(seed), trials) for seed in range(200)]
    made = [knobs for sketch, knobs in children if sketch == "s"]
    assert 100 < len(made) < 200  # the others are drawn afresh
    assert {len(knobs) for knobs in made} == {8, 9}
    origins = [len(set(knobs.values())) for knobs in made]
    assert set(origins) == {1, 2} and 20 < origins.count(2) < len(made) // 2
    fast = [min(knobs.values()) for knobs in made]
    assert fast.count(0) > fast.count(7)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_best_ranked_of_those_drawn_is_taken(monkeypatch, count):
    drawn = iter(range(1000))
    best = random.Random(count).randrange(count)

    def propose(*_):
        return {"sketch": "s", "knobs": {"x": next(drawn) % count}}, None

    class Ranking:
        def __init__(self, *_):
            pass

        def seconds(self, decisions, schedule):
            return (decisions["knobs"]["x"] - best) % count

    class Model:
        knows = True

    monkeypatch.setattr(search, "_propose", propose)
    monkeypatch.setattr(search, "Ranking", Ranking)
    taken = {
        s: search._best_of(random.Random(s), None, {}, [], set(), Model, False) for s in range(9)
    }
    many = [found[0]["knobs"]["x"] for found, wasted in taken.values() if wasted or count > 24]
    assert many and set(many) == {best}
    assert {wasted for _, wasted in taken.values()} == {0, 24 - count}
    known = {Trial({"sketch": "s", "knobs": {"x": x}}).key for x in range(count)}
    assert all(search._best_of(random.Random(s), None, {}, [], known, Model, False)[0] is None for s in range(9))  # fmt: skip
