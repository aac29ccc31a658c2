# SPDX-License-Identifier: Apache-2.0
"""Candidates that fail: sketches that raise, builds that hang or crash, devices that go away; and what is returned."""

import pickle
import random
import sqlite3
import threading
import warnings

import pytest
from candidate_numbers import plant
from present import present
import weft
from weft import te
from weft.tuning import search
from weft.tuning import sketches


def matmul(n, m, k):
    a = te.placeholder((n, k), "float32", name="A")
    b = te.placeholder((k, m), "float32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def softmax(n, m):
    x = te.placeholder((n, m), "float32", name="X")
    r, s = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, m), name="s")
    most = te.compute((n,), lambda i: te.max(x[i, r], axis=r), name="M")
    e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - most[i]), name="E")
    total = te.compute((n,), lambda i: te.sum(e[i, s], axis=s), name="S")
    return te.create_prim_func([x, te.compute((n, m), lambda i, j: e[i, j] / total[i], name="Y")])


def rows(database):
    found = sqlite3.connect(database).execute(
        "select candidate, seconds, failure from trials order by rowid"
    )
    return found.fetchall()


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 1), (5, 1, 3), (16, 24, 32)])
def test_no_draw_is_refused(target, shape):
    """Products of extent 1 and softmax: every draw gives a schedule; what is shorter than a vector leaves a host no decision."""
    programs = matmul(*shape), softmax(*shape[:2])
    space = sketches.sketches_for(target)
    for start in map(weft.Schedule, programs):
        for seed in range(60):
            decisions, _ = search._propose(random.Random(seed), start, space, [])
            assert decisions["knobs"] or (target == "cpu" and max(shape) < 8)


def test_a_sketch_that_raises_is_a_failed_candidate(tmp_path, monkeypatch):
    def sketch(draw, sch):
        v = draw("v", [1, 2, 3, 4])
        [][v]

    monkeypatch.setattr(search, "sketches_for", lambda target: {"bad": sketch})
    with pytest.warns(RuntimeWarning, match=r"tune.sketch.*sketch \"bad\" raised IndexError"):
        sch = weft.tune(matmul(4, 4, 4), trials=3, database=tmp_path / "t.db")
    assert isinstance(sch, weft.Schedule)
    assert [r[2] for r in rows(tmp_path / "t.db")] == [None, "tune.sketch", "tune.sketch"]


def test_steps_that_nobody_could_repeat_are_a_failed_candidate(tmp_path, monkeypatch):
    def sketch(draw, sch):
        draw("v", [1, 2, 3, 4])
        other = weft.Schedule(sch.func)  # the trace does not know what this one returns
        sch.unroll(other.get_loops(other.get_block("C"))[0])

    monkeypatch.setattr(search, "sketches_for", lambda target: {"bad": sketch})
    with pytest.warns(RuntimeWarning, match="a loop that no step of this schedule returned"):
        sch = weft.tune(matmul(4, 4, 4), trials=3, database=tmp_path / "t.db")
    assert isinstance(sch, weft.Schedule)
    assert [r[2] for r in rows(tmp_path / "t.db")] == [None, *2 * ["schedule.trace.foreign"]]


def test_measuring_that_raises_is_a_failed_candidate(tmp_path, monkeypatch):
    whole = search.Apart.measure

    def measure(self, schedule, best, allowed=None):
        if len(schedule.trace):
            raise ZeroDivisionError("planted")
        return whole(self, schedule, best, allowed)

    monkeypatch.setattr(search.Apart, "measure", measure)
    with pytest.warns(RuntimeWarning, match="tune.failed.*ZeroDivisionError: planted"):
        weft.tune(matmul(4, 4, 4), trials=3, database=tmp_path / "t.db")
    assert [r[2] for r in rows(tmp_path / "t.db")] == [None, "tune.failed", "tune.failed"]


BUILD = """
whole = weft.build
def build(program, target="cpu", **options):
    number = place(program) if isinstance(program, weft.Schedule) else None
    if number == 0:
        os.abort()
    if number == 1:
        time.sleep(1000)
    return whole(program, target=target, **options)
weft.build = build
"""


@pytest.mark.parametrize("options", [{}, {"seconds": 6}])
def test_a_build_that_does_not_end_is_ended(tmp_path, monkeypatch, options):
    """Without limit=, too: ended by the limit of builds, or by the budget; remembered, and not tried again."""
    from weft.tuning import apart

    plant(monkeypatch, tmp_path, BUILD)
    if not options:
        monkeypatch.setattr(apart, "BUILD_LIMIT", 6)
    database, failures = tmp_path / "t.db", set()
    for more in range(6):  # a slow machine spends the budget on the candidates before
        weft.tune(matmul(8, 8, 8), trials=4 + more, database=database, **options)
        failures = {r[2] for r in rows(database)}
        if {"tune.limit", "tune.ended"} <= failures:
            break
    assert {None, "tune.limit", "tune.ended"} == failures
    assert len({r[0] for r in rows(database)}) == len(rows(database))


class Planted:
    """Times by what the schedule is; `late`: how a candidate does when it is measured again."""

    late = 1.0
    seen: list = []

    def __init__(self, program, name, target, device, seed, limit):
        self.device, self._measured = weft.device(device or target), set()

    def measure(self, schedule, best, allowed=None):
        steps = str(schedule.trace.as_json())
        seconds = 2e-3 if not len(schedule.trace) else 1e-3
        if steps in self._measured and len(schedule.trace):
            seconds *= self.late
        self._measured.add(steps)
        return seconds, 0

    def close(self):
        pass

    stop = close


@pytest.mark.parametrize("late, default", [(1.0, False), (1.5, False), (9.0, True)])
def test_nothing_slower_than_the_default_schedule_is_returned(tmp_path, monkeypatch, late, default):
    """A candidate that looked fast once is measured again beside the default schedule."""
    monkeypatch.setattr(search, "Apart", type("Late", (Planted,), {"late": late}))
    sch = weft.tune(matmul(8, 8, 8), trials=3, database=tmp_path / "t.db", seed=1)
    assert (len(sch.trace) == 0) == default
    assert rows(tmp_path / "t.db")[0][0] == '{"knobs": {}, "sketch": "plain"}'
    if default:
        assert min(r[1] for r in rows(tmp_path / "t.db")) == 2e-3


def test_a_default_schedule_that_was_slow_once_is_not_beaten_by_all(tmp_path, monkeypatch):
    """Measured slowly at first: every candidate looks faster, none is, and the database says so, too."""

    class Once(Planted):
        def measure(self, schedule, best, allowed=None):
            if len(schedule.trace):
                return 2e-3, 0
            self._measured.add(schedule)
            return (9e-3 if len(self._measured) == 1 else 1e-3), 0

    monkeypatch.setattr(search, "Apart", Once)
    sch = weft.tune(matmul(16, 16, 16), trials=7, database=tmp_path / "t.db", seed=1)
    found = rows(tmp_path / "t.db")
    assert len(sch.trace) == 0 and len(found) == 7
    assert found[0][0] == '{"knobs": {}, "sketch": "plain"}' and found[0][1] == 1e-3
    assert min(r[1] for r in found) == 1e-3


def test_several_devices_measure_at_once(tmp_path, monkeypatch):
    """One of three goes away: its candidate is measured on another; when all are gone, the error is raised."""
    used, begun, left, turn, closed = {}, {}, {}, threading.Condition(), []

    class Device(Planted):
        def __init__(self, *args):
            super().__init__(*args)
            self.number = len(used)
            used[self.number] = begun[self.number] = 0

        def measure(self, schedule, best, allowed=None):
            with turn:  # the first three of each are measured side by side, however the threads run
                begun[self.number] = mine = begun[self.number] + 1
                turn.notify_all()
                assert mine > 3 or turn.wait_for(lambda: min(begun.values()) >= mine, 60)
            if used[self.number] >= left.get(self.number, 99):
                reason = weft.Error("error[rpc.closed]: gone")
                reason.code = "rpc.closed"
                raise reason
            used[self.number] += 1
            return super().measure(schedule, best, allowed)

        def close(self):
            closed.append(self.number)
            super().close()

    monkeypatch.setattr(search, "Apart", Device)
    left[1] = 2
    with pytest.warns(RuntimeWarning, match="is left out of the search"):
        weft.tune(matmul(16, 16, 16), trials=14, device=["cpu"] * 3, database=tmp_path / "t.db")
    found = rows(tmp_path / "t.db")
    assert len(found) == 14 and all(r[1] for r in found)
    assert used[1] == 2 and used[0] > 2 and used[2] > 2
    assert closed[0] == 1 and sorted(closed) == [0, 1, 2]  # the one that went away at once
    used.clear(), begun.clear(), left.update({0: 1, 1: 1})
    with pytest.raises(weft.Error) as caught, pytest.warns(RuntimeWarning, match="left out"):
        weft.tune(matmul(16, 16, 8), trials=9, device=["cpu"] * 2, database=tmp_path / "u.db")
    assert caught.value.code == "rpc.closed" and len(rows(tmp_path / "u.db")) == 2
    with pytest.raises(weft.Error, match="the list of devices is empty") as caught:
        weft.tune(matmul(4, 4, 4), device=[], database=tmp_path / "t.db")
    assert caught.value.code == "tune.devices"


def test_several_processes_of_one_host(tmp_path):
    weft.tune(matmul(8, 8, 8), trials=6, device=["cpu", "cpu"], database=tmp_path / "t.db", seed=3)
    found = rows(tmp_path / "t.db")
    assert len(found) == 6 and sum(1 for r in found if r[1]) >= 5, found


def test_progress_is_told(tmp_path):
    said = []
    weft.tune(
        matmul(4, 4, 4), trials=3, database=tmp_path / "t.db", progress=lambda *a: said.append(a)
    )
    assert [s[:2] for s in said] == [(1, 3), (2, 3), (3, 3)] and said[-1][2] <= said[0][2]


PLANTED = """
build, timed = weft.build, measure.Measurer.timed
def planted_build(program, *args, **kwargs):
    if isinstance(program, weft.Schedule) and place(program) == 0:
        raise ValueError("planted")
    return build(program, *args, **kwargs)
def planted(self, module, schedule, best):
    number = place(schedule)
    if number == 1:
        os.abort()
    if number == 2:
        raise KeyError("planted")
    if number == 3:
        time.sleep(1000)
    return timed(self, module, schedule, best)
weft.build, apart.Measurer.timed = planted_build, planted
"""


def test_candidates_built_side_by_side_fail_alone(tmp_path, monkeypatch):
    """Of those that are built at once, each that raises, ends the process or hangs is a failure of its own; the rest is measured."""
    present("opencl:0")
    plant(monkeypatch, tmp_path, PLANTED)
    monkeypatch.setattr(search.os, "cpu_count", lambda: 5)
    database = tmp_path / "t.db"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        weft.tune(
            matmul(24, 32, 20),
            "opencl",
            trials=11,
            database=database,
            limit=25,
            progress=False,
        )
    found = rows(database)
    assert len(found) == 11 and found[0][1]
    assert all((seconds is None) != (failure is None) for _, seconds, failure in found)
    failures = sorted(failure for _, _, failure in found if failure)
    assert failures == ["tune.ended", "tune.failed", "tune.failed", "tune.limit"]


def test_an_error_of_another_process_keeps_its_fields():
    from weft.tuning.apart import _plain

    with pytest.raises(weft.Error) as caught:
        weft.zeros((2, 3)) @ weft.zeros((4, 5))
    caught.value._reason = threading.Lock()  # what it came from cannot be sent
    got = pickle.loads(pickle.dumps(_plain(caught.value)))
    for name in ("code", "kind", "message", "help", "notes", "places"):
        assert getattr(got, name) == getattr(caught.value, name), name
    assert str(got) == str(caught.value) and got.notes
