# SPDX-License-Identifier: Apache-2.0
"""Decisions of array operations that no program holds: recorded, tried in the call that makes them, kept and used."""

import json

import numpy as np
import pytest
from present import present
from weft.tuning import best, decisions
from weft.tuning.database import Database, Trial

import weft
from weft import _core, tuning

DEVICE = "opencl:0"


@pytest.fixture(scope="module")
def device():
    return present(DEVICE)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An empty database of the user's own; decisions are looked up anew before and after."""
    monkeypatch.setenv("WEFT_TUNE_DB", str(tmp_path / "own.db"))
    monkeypatch.delenv("WEFT_TUNED", raising=False)
    best._read.clear()
    tuning.notes(clear=True)
    _core.forget_programs()
    yield tmp_path / "own.db"
    _core.forget_programs()


def operands(m, n, k, device, seed=4):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    return a.astype(np.float64) @ b, weft.asarray(a, device=device), weft.asarray(b, device=device)


def close(got, want):
    assert np.linalg.norm(got.numpy() - want) <= 1e-5 * np.linalg.norm(want)


def planted(path, decided, numbers, seconds=1e-9):
    trial = Trial({"sketch": "decision", "knobs": {"numbers": list(numbers)}}, seconds)
    trial.trace = numbers if isinstance(numbers, str) else json.dumps(list(numbers))
    file = Database(path)
    file.add(decided.workload, decided.device, 0, trial)
    file.close()
    _core.forget_programs()


def sources():
    return {source for name, _, where, source in _core.built_programs() if where == DEVICE}


def test_products_say_what_they_decide(device, own):
    want, a, b = operands(70, 45, 301, device)
    (found,) = decisions.recorded(lambda: a @ b)
    assert found.operation == "product.tile" and found.device == DEVICE
    assert found.facts[:5] == (4, 1, 70, 45, 301) and len(set(found.options)) == len(found.options)
    # Every legal option computes the product, by another kernel where the tile is another.
    for option in found.options[:: max(len(found.options) // 6, 1)]:
        planted(own, found, option)
        close(a @ b, want)
    assert decisions.recorded(lambda: a + a) == []


def test_a_planted_decision_changes_the_kernel(device, own):
    want, a, b = operands(70, 45, 301, device)
    close(a @ b, want)
    before = sources()
    (found,) = decisions.recorded(lambda: a @ b)
    other = next(o for o in found.options if o[0] != found.options[0][0])
    planted(own, found, other)
    close(a @ b, want)
    assert sources() != before
    (note,) = tuning.notes()
    assert note.startswith("product.tile 4,1,70,45,301") and str(own) in note
    # Of other extents nothing is known.
    want, a, b = operands(71, 45, 301, device)
    close(a @ b, want)
    assert len(tuning.notes()) == 1


@pytest.mark.parametrize(
    "numbers", ["garbage", "[1, 2", "[]", "{}", '["x"]', "[9999, 1, 1]", "[0, -1, 1]", "[0]"]
)
def test_what_is_not_legal_is_not_used(device, own, numbers):
    want, a, b = operands(70, 45, 301, device)
    close(a @ b, want)
    before = sources()
    (found,) = decisions.recorded(lambda: a @ b)
    planted(own, found, numbers)
    close(a @ b, want)
    assert sources() == before


def test_the_environment_switches_it_off(device, own, monkeypatch):
    want, a, b = operands(70, 45, 301, device)
    (found,) = decisions.recorded(lambda: a @ b)
    _core.forget_programs()
    close(a @ b, want)
    before = sources()
    planted(own, found, next(o for o in found.options if o[0] != found.options[0][0]))
    monkeypatch.setenv("WEFT_TUNED", "0")
    _core.forget_programs()
    close(a @ b, want)
    assert sources() == before and tuning.notes() == []


def test_a_call_looks_once_for_each_product(device, own, monkeypatch):
    asked, whole = [], best.array_decision
    monkeypatch.setattr(best, "array_decision", lambda *r: asked.append(r) or whole(*r))
    _, a, b = operands(33, 17, 29, device)
    for _ in range(20):
        a @ b
    assert len(asked) == 1
    b.T @ a.T
    assert len(asked) == 2


def test_decisions_are_tuned_and_used(device, own):
    want, a, b = operands(130, 70, 150, device)
    ((operation, where, numbers),) = tuning.tune_operations(lambda: a @ b, trials=3)
    assert (operation, where) == ("product.tile", DEVICE)
    file = Database(own, exists=True)
    rows = file.rows()
    file.close()
    assert len(rows) == 3 and all(r[4] for r in rows)
    least = min(rows, key=lambda r: r[4])
    assert json.loads(least[7]) == list(numbers)
    close(a @ b, want)
    # What was measured is not measured again.
    assert tuning.tune_operations(lambda: a @ b, trials=3) == [(operation, where, numbers)]
    # Copied into another database it serves there.
    tuning.export(own.with_name("shipped.db"))
    assert tuning.merge(own.with_name("shipped.db"), own.with_name("third.db")) == 3


def test_an_option_that_computes_something_else_is_reported(device, own):
    want, a, b = operands(64, 64, 64, device)
    calls = []

    def strange():
        calls.append(1)
        return a @ b if not best.tried or len(calls) < 4 else (a @ b) * 2

    with pytest.warns(RuntimeWarning, match="computes another result"):
        tuning.tune_operations(strange, trials=3)
    file = Database(own, exists=True)
    rows = file.rows()
    file.close()
    assert {r[6] for r in rows} == {None, "tune.wrong"}
