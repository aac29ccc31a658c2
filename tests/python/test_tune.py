# SPDX-License-Identifier: Apache-2.0
"""weft.tune: better than the plain program, right, resumable, repeatable, and its refusals."""

import pathlib
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
import weft
from weft import script as T
from weft import te

OPENCL = weft.device("opencl").available


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
    assert rows(database)[:3] == first and len(rows(database)) == 6
    weft.tune(program, trials=6, database=database, seed=5)  # nothing left to do
    assert len(rows(database)) == 6
    # Another program and another target do not share rows.
    weft.tune(PROGRAMS["chain"], trials=2, database=database)
    weft.tune(program, target="c", trials=2, database=database)
    assert len(rows(database)) == 10


def test_the_seed_fixes_the_first_candidates(tmp_path):
    program = PROGRAMS["matmul"]
    lists = []
    for run, seed in enumerate((1, 1, 2)):
        weft.tune(program, trials=4, database=tmp_path / f"{run}.db", seed=seed)
        lists.append([r[2] for r in rows(tmp_path / f"{run}.db")])
    assert lists[0] == lists[1] != lists[2]


def test_wrong_candidates_are_seen(tmp_path, monkeypatch):
    """A schedule that computes something else is reported, kept as a failure, and never wins."""
    from weft.tuning import search

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
