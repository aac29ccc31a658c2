# SPDX-License-Identifier: Apache-2.0
"""weft.tune: better than the plain program, right, resumable, repeatable, and its refusals."""

import pathlib
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
import weft
from candidate_numbers import plant
from weft import script as T
from weft import te
from weft.tuning import search
from weft.tuning.measure import Measurer

OPENCL = weft.device("opencl").available


class Inside:
    """In place of a process of its own: what a test plants is seen."""

    def __init__(self, program, name, target, device, seed, limit):
        self._measurer = Measurer(program, name, target, device, seed)
        self.device = self._measurer.device

    def measure(self, schedule, best, allowed=None):
        return self._measurer.measure(schedule, best)

    def close(self):
        pass

    stop = close


@pytest.fixture
def inside(monkeypatch):
    monkeypatch.setattr(search, "Apart", Inside)


def matmul(n, m, k):
    a = te.placeholder((n, k), "float32", name="A")
    b = te.placeholder((k, m), "float32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def total(n):
    a = te.placeholder((n,), "int32", name="A")
    r = te.reduce_axis((0, n), name="r")
    return te.create_prim_func([a, te.compute((1,), lambda _: te.sum(a[r], axis=r), name="B")])


def chain(n):
    """Two elementwise stages: the first can be inlined."""
    a = te.placeholder((n, 7), "float32", name="A")
    b = te.compute((n, 7), lambda i, j: a[i, j] * 2.0, name="B")
    return te.create_prim_func([a, te.compute((n, 7), lambda i, j: b[i, j] + 1.0, name="C")])


def rows(database):
    return sqlite3.connect(database).execute("select * from trials order by rowid").fetchall()


PROGRAMS = {"matmul": matmul(24, 32, 20), "total": total(1000), "chain": chain(50)}
DTYPES = {"matmul": "float32", "total": "int32", "chain": "float32"}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "target",
    [
        "cpu",
        pytest.param("opencl", marks=pytest.mark.skipif(not OPENCL, reason="no OpenCL device")),
    ],
)
def test_every_candidate_is_right_and_the_best_is_returned(tmp_path, rng, name, target):
    program, database = PROGRAMS[name], tmp_path / "t.db"
    trials = 8 if target == "cpu" else 3
    sch = weft.tune(program, target=target, trials=trials, database=database, seed=3)
    seen = rows(database)
    assert len(seen) == trials and len({r[2] for r in seen}) == trials
    assert not [r for r in seen if r[6] == "tune.wrong"]
    good = [r for r in seen if r[4]]
    assert len(good) >= 2, [r[6] for r in seen]
    best = min(good, key=lambda r: r[4])
    replayed = weft.Schedule.replay(program, best[7])
    assert weft.ir.structural_equal(sch.mod, replayed.mod)
    # The schedule computes what the program means.
    ours, plain = weft.build(sch, target=target), weft.build(program, target="ref")
    dev, dtype = weft.device(target), DTYPES[name]
    shapes = [[c[0] for c in p["shape"]] for p in plain.plan(program.name)["params"]]
    values = [(rng.random(s) * 5).astype(dtype) for s in shapes]
    got = [weft.asarray(v, device=dev) for v in values]
    want = [weft.asarray(v, device=weft.device("ref")) for v in values]
    ours[program.name](*got)
    plain[program.name](*want)
    assert np.allclose(got[-1].numpy(), want[-1].numpy(), rtol=1e-4)


def test_a_search_goes_on_where_it_stopped(tmp_path):
    program, database = PROGRAMS["matmul"], tmp_path / "t.db"
    weft.tune(program, trials=3, database=database, seed=5)
    first = rows(database)
    assert first[0][2] == '{"knobs": {}, "sketch": "plain"}'
    weft.tune(program, trials=6, database=database, seed=5)
    # The same candidates; the time of the fastest is measured once more.
    assert [r[2:4] for r in rows(database)][:3] == [r[2:4] for r in first]
    assert len(rows(database)) == 6
    weft.tune(program, trials=6, database=database, seed=5)  # nothing left to do
    assert len(rows(database)) == 6
    # Another program and another target do not share rows.
    weft.tune(PROGRAMS["chain"], trials=2, database=database)
    weft.tune(program, target="c", trials=2, database=database)
    assert len(rows(database)) == 10


def test_the_seed_fixes_the_candidates_for_given_times(tmp_path, monkeypatch, inside):
    monkeypatch.setattr(
        Measurer, "measure", lambda self, schedule, best: (1e-6 * len(str(schedule.trace)), 0)
    )
    program = PROGRAMS["matmul"]
    lists = []
    for run, seed in enumerate((1, 1, 2)):
        weft.tune(program, trials=4, database=tmp_path / f"{run}.db", seed=seed)
        lists.append([r[2] for r in rows(tmp_path / f"{run}.db")])
    assert lists[0] == lists[1] != lists[2]


def test_wrong_candidates_are_seen(tmp_path, monkeypatch, inside):
    """A schedule that computes something else is reported, kept as a failure, and never wins."""
    other = te.placeholder((50, 7), "float32", name="A")
    wrong = te.create_prim_func([other, te.compute((50, 7), lambda i, j: other[i, j], name="C")])

    def sketch(draw, sch):
        draw("way", list(range(100)))
        sch._core = weft.Schedule(wrong)._core

    monkeypatch.setattr(search, "sketches_for", lambda target: {"wrong": sketch})
    with pytest.warns(RuntimeWarning, match="computes another result"):
        sch = weft.tune(chain(50), trials=3, database=tmp_path / "t.db")
    assert [r[6] for r in rows(tmp_path / "t.db")] == [None, "tune.wrong", "tune.wrong"]
    assert weft.ir.structural_equal(sch.func, chain(50))


@pytest.mark.targets("qpu", "vta")
def test_refusals(tmp_path):
    database = tmp_path / "t.db"

    def refused(*args, **kwargs):
        with pytest.raises(weft.Error) as caught:
            weft.tune(*args, **{"database": database, "trials": 1, **kwargs})
        return caught.value

    program = PROGRAMS["chain"]
    assert refused(program, trials=0).code == "tune.trials"
    assert refused("text").code == "tune.program"
    assert refused(weft.IRModule({"main": program}), function="f").code == "tune.function"
    assert isinstance(refused(program, device="qpu:hw", target="cpu"), weft.DeviceError)
    n = te.var("n")
    a = te.placeholder((n,), "float32", name="A")
    symbolic = te.create_prim_func([a, te.compute((n,), lambda i: a[i] + 1.0, name="B")])
    assert refused(symbolic).code == "tune.symbolic"
    assert refused(program, target="vta").code == "tune.nothing"
    database.write_bytes(b"this is no database at all, but long enough to be read as one" * 50)
    damaged = refused(program)
    assert damaged.code == "tune.database.damaged" and isinstance(damaged, weft.IOError)
    old = tmp_path / "old.db"
    file = sqlite3.connect(old)
    file.execute("create table meta(key text primary key, value text)")
    file.execute("insert into meta values('version', '0')")
    file.commit()
    file.close()
    assert refused(program, database=old).code == "tune.database.version"


def test_importing_weft_does_not_load_the_tuner():
    code = "import weft, sys; assert 'sqlite3' not in sys.modules; weft.tune; assert 'sqlite3' in sys.modules"
    path = pathlib.Path(weft.__file__).resolve().parents[1]
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(path)})


@T.prim_func
def softmax_like(A: T.Buffer((16, 24), "float32"), B: T.Buffer((16, 24), "float32")):
    total = T.alloc_buffer((16,), "float32")
    for i, j in T.grid(16, 24):
        with T.block("total"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + A[vi, vj]
    for i, j in T.grid(16, 24):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] / total[vi]


def test_several_blocks(tmp_path):
    sch = weft.tune(softmax_like, trials=8, database=tmp_path / "t.db", seed=1)
    x = np.random.default_rng(0).random((16, 24), np.float32)
    a, b = weft.asarray(x), weft.zeros((16, 24), dtype="float32")
    weft.build(sch)["softmax_like"](a, b)
    assert np.allclose(b.numpy(), x / x.sum(1, keepdims=True), rtol=1e-5)


# ---- budgets, limits, ranking


def test_a_budget_of_time_ends_the_search(tmp_path, monkeypatch, inside):
    now = iter(range(0, 10000, 10))  # every look at the clock is ten seconds later
    monkeypatch.setattr(search, "_clock", lambda: float(next(now)))
    database = tmp_path / "t.db"
    sch = weft.tune(PROGRAMS["matmul"], trials=1000, database=database, seconds=95, seed=5)
    count = len(rows(database))  # draws that were seen before look at the clock too
    assert 2 <= count <= 3 and isinstance(sch, weft.Schedule)
    weft.tune(PROGRAMS["matmul"], trials=1000, database=database, seconds=15, seed=5)
    assert count <= len(rows(database)) <= count + 1  # gone on with
    other = tmp_path / "other.db"  # spent before it began: one candidate all the same
    weft.tune(PROGRAMS["matmul"], trials=1000, database=other, seconds=1, seed=5)
    assert len(rows(other)) == 1


def test_what_stops_a_search_loses_nothing(tmp_path, monkeypatch, inside):
    calls, whole = [], Measurer.measure

    def measure(self, schedule, best):
        calls.append(schedule)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return whole(self, schedule, best)

    monkeypatch.setattr(Measurer, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        weft.tune(PROGRAMS["matmul"], trials=9, database=tmp_path / "t.db", seed=5)
    kept = rows(tmp_path / "t.db")
    assert len(kept) == 3
    weft.tune(PROGRAMS["matmul"], trials=5, database=tmp_path / "t.db", seed=5)
    after = rows(tmp_path / "t.db")
    assert [r[2:4] for r in after][:3] == [r[2:4] for r in kept] and len(after) == 5


def test_candidates_are_measured_apart(tmp_path):
    """The same candidates, seen as right, in a process of their own."""
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    for database, limit in ((here, None), (there, 60.0)):
        # Not ranked: a ranking follows from the times that were measured.
        sch = weft.tune(
            PROGRAMS["matmul"], trials=4, database=database, seed=7, limit=limit, ranked=False
        )
        assert isinstance(sch, weft.Schedule)
    assert [r[2] for r in rows(here)] == [r[2] for r in rows(there)]
    assert all(r[4] for r in rows(there))


SLOW = """
whole = measure.Measurer.timed
def slow(self, module, schedule, best):
    if (number := place(schedule)) == 0:
        time.sleep(1000)
    if number == 1:
        os.abort()
    return whole(self, module, schedule, best)
apart.Measurer.timed = slow
"""


def test_a_candidate_over_the_limit_is_ended(tmp_path, monkeypatch):
    """The first candidate never returns, the second ends its process: the others are measured all the same."""
    plant(monkeypatch, tmp_path, SLOW)
    weft.tune(PROGRAMS["matmul"], trials=5, database=tmp_path / "t.db", limit=8)
    failures = [r[6] for r in rows(tmp_path / "t.db")]
    assert failures == [None, "tune.limit", "tune.ended", None, None]


def test_budgets_are_refused(tmp_path):
    for options, text in [
        ({"seconds": 0}, "seconds is 0"),
        ({"limit": -1.0}, "limit is -1.0"),
    ]:
        with pytest.raises(weft.Error, match=text) as caught:
            weft.tune(PROGRAMS["matmul"], trials=1, database=tmp_path / "t.db", **options)
        assert caught.value.code == "tune.budget"


def test_a_ranking_is_learnt_from_trials():
    """Of unseen candidates the estimate orders most pairs as their times do; failures come last."""
    from weft.tuning.database import Trial
    from weft.tuning.rank import Ranking

    rng = np.random.default_rng(8)

    def candidate():
        a, b = (int(2 ** rng.integers(0, 7)) for _ in range(2))
        word = str(rng.choice(["tile", "rfactor"]))
        # A valley at a b = 128, worse with the one word; noise of 10 %.
        cost = 1e-3 * np.exp(0.3 * (np.log2(a * b) - 7) ** 2) * (3 if word == "tile" else 1)
        trial = Trial({"sketch": "s", "knobs": {"a": a, "b": b, "way": word}})
        trial.seconds = None if a == 64 else cost * float(rng.uniform(0.95, 1.05))
        return trial

    ranking = Ranking([candidate() for _ in range(40)])
    fresh = [candidate() for _ in range(60)]
    good = [t for t in fresh if t.seconds]
    right = total = 0
    for x in good:
        for y in good:
            if x.seconds < 0.7 * y.seconds:
                total += 1
                right += ranking.seconds(x.decisions) < ranking.seconds(y.decisions)
    assert total > 500 and right > 0.85 * total, (right, total)
    failed = np.mean([np.log(ranking.seconds(t.decisions)) for t in fresh if not t.seconds])
    assert failed > np.mean([np.log(ranking.seconds(t.decisions)) for t in good])


def test_the_best_ranked_candidate_is_measured(tmp_path, monkeypatch, inside):
    """With measured times that follow one knob, later candidates are faster than drawn ones would be."""

    def sketch(draw, sch):
        loop = sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[-1]
        v = draw("v", list(range(1, 200)))
        draw("w", list(range(50)))
        sch.split(loop, [None, v])

    def measure(self, schedule, best):
        steps = schedule.trace.as_python()
        v = (
            int(steps.split("split(")[1].split("None, ")[1].split("]")[0])
            if "split(" in steps
            else 200
        )
        return 1e-3 * (1 + abs(np.log2(v / 16))), 0

    monkeypatch.setattr(search, "sketches_for", lambda target: {"one": sketch})
    monkeypatch.setattr(Measurer, "measure", measure)
    late = {}
    for ranked in (True, False):
        times = []
        for seed in range(4):
            database = tmp_path / f"{ranked}{seed}.db"
            weft.tune(total(4096), trials=30, database=database, seed=seed, ranked=ranked)
            times += [r[4] for r in rows(database)[10:]]
        late[ranked] = np.median(times)
    assert late[True] < 0.8 * late[False], late


def test_a_winner_by_chance_is_not_returned(tmp_path, monkeypatch):
    """A candidate that looked faster alone, and is slower when the two are sampled in turns, loses its place; a faster one stays."""
    for ratio, wins in (((0.9, 1.2), False), ((1.1, 0.9), False), ((0.9, 0.9), True)):

        class Turns(Inside):
            first = None

            def measure(self, schedule, best, allowed=None):
                seconds, cycles = super().measure(schedule, best)
                Turns.first = Turns.first or seconds
                return (
                    seconds if schedule.trace.as_python().count("\n") < 1 else Turns.first / 2
                ), cycles

            def beside(self, schedules, ratio=ratio):
                return [(1e-3, 2e-3), (1e-3 * ratio[0], 2e-3 * ratio[1])]

        monkeypatch.setattr(search, "Apart", Turns)
        database = tmp_path / f"{ratio}.db"
        sch = weft.tune(PROGRAMS["matmul"], trials=5, database=database, seed=1)
        assert (len(sch.trace.as_python()) > 1) == wins, ratio


def test_two_schedules_are_sampled_in_turns():
    program = PROGRAMS["matmul"]
    measurer = Measurer(program, program.name, "cpu", None, 0)
    slow = weft.Schedule(program)
    slow.unroll(
        slow.get_loops(slow.get_child_blocks(slow.get_block("root"))[0])[-1]
    )  # no rule's schedule
    found = measurer.beside([weft.Schedule(program), slow])
    assert all(0 < least <= middle for least, middle in found)
