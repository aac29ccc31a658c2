# SPDX-License-Identifier: Apache-2.0
"""Array operations use tuned schedules without being asked; what cannot be used is said and left alone."""

import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from present import present
from weft.tuning import best, operations
from weft.tuning.database import Database, Trial

import weft
from weft import _core, tuning

DEVICE = "opencl:0"


@pytest.fixture(scope="module")
def device():
    return present(DEVICE)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An empty database of the user's own; programs are built anew before and after."""
    monkeypatch.setenv("WEFT_TUNE_DB", str(tmp_path / "own.db"))
    monkeypatch.delenv("WEFT_TUNED", raising=False)
    best._read.clear()
    tuning.notes(clear=True)
    _core.forget_programs()
    yield tmp_path / "own.db"
    _core.forget_programs()


def array(shape, device, dtype="float32"):
    x = np.random.default_rng(9).integers(-50, 50, shape).astype(dtype)
    return x, weft.asarray(x, device=device)


def planted(path, call, answers, seconds=1e-9, trace=None):
    """A record of the call's first program, with a schedule in which the rules' questions get other answers."""
    (found,) = operations.recorded(call)
    made = _core.open_schedule(
        found.program._core,
        found.device,
        lambda name, options: next(
            (v for k, v in answers.items() if name.endswith(k) and v in options), options[0]
        ),
    )
    trial = Trial({"sketch": "rules", "knobs": dict(answers)}, seconds, 0.0)
    trial.trace = str(made.trace.as_json()) if trace is None else trace
    file = Database(path)
    file.add(f"{_core.structural_hash(found.program._core):x}", found.device, 0, trial)
    file.close()


def sources():
    return {source for _, _, where, source in _core.built_programs() if where == DEVICE}


CALLS = {
    "sum of rows": (lambda x: x.sum(1), lambda x: x.sum(1), {".sharing": 2, ".beside": 4}),
    "sum of columns": (lambda x: x.sum(0), lambda x: x.sum(0), {".sharing": 1, ".accumulators": 2}),
    "map": (lambda x: x * 3, lambda x: x * 3, {".threads": 64}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_planted_record_changes_the_kernel(device, own, name):
    ours, numpys, answers = CALLS[name]
    x, a = array((301, 70), device)
    assert np.array_equal(ours(a).numpy(), numpys(x))
    before = sources()
    recorded = operations.recorded(lambda: ours(a).numpy())
    _core.forget_programs()
    for each in recorded:
        made = _core.open_schedule(
            each.program._core,
            each.device,
            lambda q, options: next(
                (v for k, v in answers.items() if q.endswith(k) and v in options), options[0]
            ),
        )
        trial = Trial({"sketch": "rules", "knobs": {}}, 1e-9, 0.0, None, str(made.trace.as_json()))
        file = Database(own)
        file.add(f"{_core.structural_hash(each.program._core):x}", each.device, 0, trial)
        file.close()
    assert np.array_equal(ours(a).numpy(), numpys(x))
    assert sources() != before and len(sources()) == len(before)
    said = tuning.notes()
    assert len(said) == len(recorded)
    assert all(f"on {DEVICE}: a tuned schedule of {own} is used" in note for note in said), said
    # Other lengths of the same order are the same program; another order of size is not.
    assert np.array_equal(ours(a[:290]).numpy(), numpys(x[:290])) and tuning.notes() == said


def test_the_environment_switches_it_off(device, own, monkeypatch):
    x, a = array((301, 70), device)
    planted(own, lambda: a.sum(1), {".sharing": 2, ".beside": 4})
    monkeypatch.setenv("WEFT_TUNED", "0")
    _core.forget_programs()
    assert np.array_equal(a.sum(1).numpy(), x.sum(1)) and tuning.notes() == []
    plain = sources()
    monkeypatch.delenv("WEFT_TUNED")
    _core.forget_programs()
    assert np.array_equal(a.sum(1).numpy(), x.sum(1)) and len(tuning.notes()) == 1
    assert sources() != plain


@pytest.mark.parametrize(
    "trace, reason",
    [
        ("garbage", "does not replay"),
        ('{"format": "weft.trace", "version": 99, "steps": []}', "does not replay"),
        ("foreign", "does not replay"),
        ("unbuildable", "does not build"),
    ],
)
def test_a_record_that_cannot_be_used_is_said(device, own, trace, reason):
    x, a = array((301, 70), device)
    call = lambda: a.sum(1)
    if trace == "foreign":  # steps of another program
        (other,) = operations.recorded(lambda: (a * 3).numpy())
        made = _core.open_schedule(other.program._core, DEVICE, lambda _, options: options[0])
        trace = str(made.trace.as_json())
    elif trace == "unbuildable":  # legal steps; no device has that much shared memory
        (found,) = operations.recorded(call)
        sch = weft.Schedule(found.program)
        for block in sch.get_child_blocks(sch.get_block("root")):
            sch.cache_read(block, 0, "shared")  # of an extent that nobody knows
            sch.bind(sch.get_loops(block)[0], "blockIdx.x")
        trace = str(sch.trace.as_json())
    planted(own, call, {}, trace=trace)
    _core.forget_programs()
    assert np.array_equal(a.sum(1).numpy(), x.sum(1))
    (note,) = tuning.notes()
    assert note.startswith("reduce") and reason in note and str(own) in note, note


def test_a_damaged_database_is_said(device, own):
    x, a = array((301, 70), device)
    for content in (b"no database" * 500, b"SQLite format 3\0" + b"\xff" * 5000):
        own.write_bytes(content)
        tuning.notes(clear=True)
        _core.forget_programs()
        assert np.array_equal(a.sum(1).numpy(), x.sum(1))
        (note,) = tuning.notes()
        assert note.startswith(f"the tuning database {own} is not used"), note
    own.unlink()
    file = sqlite3.connect(own)
    file.execute("create table songs(name text)")
    file.close()
    tuning.notes(clear=True)
    _core.forget_programs()
    assert np.array_equal(a.sum(1).numpy(), x.sum(1))
    assert "is not used" in tuning.notes()[0]


def test_a_call_looks_once_for_each_program(device, own, monkeypatch):
    """The launch path never asks: after the first call of a program nobody looks into the database."""
    asked = []
    whole = best.array_program

    def counted(*request):
        asked.append(request[0])
        return whole(*request)

    monkeypatch.setattr(best, "array_program", counted)
    _, a = array((13, 7), device)
    for _ in range(50):
        a.sum(1)
    assert len(asked) == 1
    for rows in (12, 13):
        a[:rows].sum(1)
    assert len(asked) == 1


def test_operations_are_tuned_and_used(device, own):
    x, a = array((500, 200), device)
    found = tuning.tune_operations(lambda: a.sum(1), trials=3, seed=2)
    assert [(o, d) for o, d, _ in found] == [("reduce", DEVICE)] and isinstance(
        found[0][2], weft.Schedule
    )
    file = Database(own, exists=True)
    rows = file.rows()
    file.close()
    assert (
        len(rows) == 3 and any(r[4] for r in rows) and not [r for r in rows if r[6] == "tune.wrong"]
    )
    assert np.array_equal(a.sum(1).numpy(), x.sum(1))
    with pytest.raises(weft.Error) as caught:
        tuning.tune_operations(lambda: None)
    assert caught.value.code == "tune.operations" and "ran no program" in str(caught.value)


def test_arguments_must_fit(device, own):
    _, a = array((30, 20), device)
    (found,) = operations.recorded(lambda: a.sum(1))
    with pytest.raises(weft.Error) as caught:
        weft.tune(found.program, target=DEVICE, trials=1, arguments=[1])
    assert caught.value.code == "tune.arguments" and "1 arguments were given" in str(caught.value)


def test_importing_does_not_load_sqlite(device):
    code = (
        "import weft, sys; x = weft.ones((5, 6), device='opencl:0').sum(1).numpy(); "
        "assert 'sqlite3' not in sys.modules"
    )
    environment = {**os.environ, "WEFT_TUNE_DB": "/nonexistent/tune.db"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=500)
