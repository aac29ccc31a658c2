# SPDX-License-Identifier: Apache-2.0
"""The host's sketches: each decision is a real one, whatever is drawn computes what NumPy does; and how the search draws."""

import random

import numpy as np
import pytest

import weft
from weft import te
from weft.tuning import search, sketches
from weft.tuning.database import Trial


def product(m, n, k):
    a, b = te.placeholder((m, k), "int32", name="A"), te.placeholder((k, n), "int32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def scaled(m, n):
    a = te.placeholder((m, n), "int32", name="A")
    return te.create_prim_func([a, te.compute((m, n), lambda i, j: a[i, j] * 3, name="C")])


def total(m, n):
    a = te.placeholder((m, n), "int32", name="A")
    r, s = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, n), name="s")
    return te.create_prim_func([a, te.compute((1,), lambda _: te.sum(a[r, s], axis=[r, s]))])


CASES = {
    "map": (sketches.host_map, scaled, (24, 48), lambda a: a * 3),
    "tile": (sketches.host_tile, product, (24, 64, 96), lambda a, b: a @ b),
    "packed": (sketches.host_packed, product, (24, 64, 96), lambda a, b: a @ b),
    "rfactor": (sketches.host_rfactor, total, (24, 96), lambda a: a.sum(keepdims=True)[0]),
}
ODD = {"map": [(7, 13), (1, 1)], "tile": [(7, 13, 5), (1, 17, 1)], "packed": [(7, 13, 5)], "rfactor": [(7, 13), (1, 1)]}  # fmt: skip


def steps(sketch, program, given):
    """The steps that a sketch takes with these answers, else its first choices; and the choices that it gave."""
    sch, asked = weft.Schedule(program), {}

    def draw(name, choices):
        asked[name] = list(choices)
        return given.get(name, choices[0])

    sketch(draw, sch, sketches.blocks_of(sch)[0], "b")
    return str(sch.trace.as_json()), asked, sch


@pytest.mark.parametrize("name", CASES)
def test_every_answer_makes_a_schedule_of_its_own(name):
    sketch, make, shape, _ = CASES[name]
    first, asked, _ = steps(sketch, make(*shape), {})
    assert asked
    for decision, choices in asked.items():
        assert len(choices) > 1, decision
        made = [steps(sketch, make(*shape), {decision: choice})[0] for choice in choices]
        assert made[0] == first and len(set(made)) == len(choices), decision


@pytest.mark.parametrize("name", CASES)
def test_whatever_is_drawn_is_right(name):
    sketch, make, shape, reference = CASES[name]
    rng, numbers = random.Random(name), np.random.default_rng(len(name))
    for size in [shape, *ODD[name]] * 2:
        program = make(*size)
        given = {d: rng.choice(c) for d, c in steps(sketch, program, {})[1].items()}
        sch = steps(sketch, program, given)[2]
        module = weft.build(sch, target="cpu", tuned=False)
        shapes = [[c[0] for c in p["shape"]] for p in module.plan(program.name)["params"]]
        values = [numbers.integers(-9, 10, s).astype("int32") for s in shapes]
        out = weft.asarray(values[-1])
        module(*[weft.asarray(v) for v in values[:-1]], out)
        want = np.reshape(reference(*values[:-1]), shapes[-1])
        np.testing.assert_array_equal(out.numpy(), want, err_msg=f"{size} {given}")


def loops(sch, kind):
    return sch.mod.script().count(f"T.{kind}(")


def test_vectors_are_wide_and_rows_of_accumulators_few():
    asked = steps(sketches.host_tile, product(96, 96, 96), {})[1]
    assert max(asked["b.s1"]) == 48 and max(asked["b.s0"]) == 8
    few = steps(sketches.host_tile, product(7, 7, 7), {})[1]
    assert few["b.s0"] == few["b.s1"] == [1, 2, 4, 7]


@pytest.mark.parametrize("name", ["tile", "packed"])
@pytest.mark.parametrize("parallel", [1, 0])
def test_loops_are_parallel_vectors_and_unrolled_as_drawn(name, parallel):
    sketch, make, shape, _ = CASES[name]
    given = {"b.parallel": parallel, "b.unroll": 0, "b.s0": 4, "b.s1": 16}
    sch = steps(sketch, make(*shape), given)[2]
    assert loops(sch, "parallel") == parallel
    # The product, what it begins with and what it writes; of the packed form the panel too.
    assert loops(sch, "vectorized") == (4 if name == "packed" else 3)
    assert loops(sch, "unroll") == (3 if name == "packed" else 0)


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


def text(body, extent="(24, 48)"):
    return weft.script.from_source(
        "from weft import script as T\n\n@T.prim_func\n"
        f'def main(A: T.Buffer({extent}, "int32"), B: T.Buffer({extent}, "int32")):\n{body}\n'
    )


def symbolic():
    n = te.var("n")
    a = te.placeholder((n, 8), "int32", name="A")
    return te.create_prim_func([a, te.compute((n, 8), lambda i, j: a[i, j] * 3, name="C")])


NOT_PLAIN = {
    "an extent that is known when it runs": symbolic,
    "one loop for two iterators": lambda: text(
        """    for f in range(24 * 48):
        with T.block("B"):
            i = T.axis.spatial(24, f // 48)
            j = T.axis.spatial(48, f % 48)
            B[i, j] = A[i, j] * 3"""
    ),
    "an iterator of another extent than its loop": lambda: text(
        """    for i, j in T.grid(24, 24):
        with T.block("B"):
            vi = T.axis.spatial(24, i)
            vj = T.axis.spatial(48, j * 2)
            B[vi, vj] = A[vi, vj] * 3"""
    ),
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_blocks_that_are_not_plain_stay_as_they_are(name):
    program = NOT_PLAIN[name]()
    (block,) = sketches.blocks_of(weft.Schedule(program))
    assert not block.plain
    assert sketches.blocks_of(weft.Schedule(scaled(24, 48)))[0].plain
    for seed in range(5):
        sch = weft.Schedule(program)
        draw = search._Draw(random.Random(seed))
        sketches.sketches_for("cpu")["host"](draw, sch)
        assert weft.ir.structural_equal(sch.func, program) and not draw.made
