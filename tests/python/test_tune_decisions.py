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
    # It serves extents of the same order of size, not others.
    for m in (71, 200):
        want, a, b = operands(m, 45, 301, device)
        close(a @ b, want)
    (_, note) = tuning.notes()
    assert note.startswith("product.tile 4,1,71,45,301") and " for 4,1,70,45,301" in note


def test_the_nearest_of_an_order_of_size_decides(own):
    """Also where the rule was the fastest there; kinds (the last fact) are never mixed."""
    for m, numbers in ((70, [1, 1, 1]), (90, [2, 1, 1]), (200, [3, 1, 1])):
        found = decisions.Decided("product.tile", (4, m, 0), "there", [(9, 1, 1)])
        planted(own, found, numbers)
    file = Database(own)
    plain = Trial({"sketch": "plain", "knobs": {}}, 1e-9)
    plain.trace = "[9, 1, 1]"
    file.add(best.decision_workload("product.tile", (4, 110, 0)), "there", 0, plain)
    file.close()

    def decided(*facts, extents=0b10):
        return best.array_decision("product.tile", facts, "there", extents)

    assert decided(4, 70, 0) == [1, 1, 1] and decided(4, 72, 0) == [1, 1, 1]
    assert decided(4, 89, 0) == [2, 1, 1] and decided(4, 128, 0) is None
    assert decided(4, 64, 0) is None and decided(4, 250, 0) == [3, 1, 1]
    assert decided(4, 72, 1) is None and decided(8, 72, 0) is None
    assert decided(4, 72, 0, extents=0) is None
    assert best.array_decision("product.tile", (4, 70, 0), "elsewhere", 0b10) is None
    assert best.array_decision("product.tile", (4, 72, 0), "elsewhere", 0b10) is None
    # What is written later is read.
    planted(own, decisions.Decided("product.tile", (4, 72, 0), "there", [(9, 1, 1)]), [5, 1, 1])
    assert decided(4, 72, 0) == [5, 1, 1]


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


def attention(shape, device, seed=3):
    rng = np.random.default_rng(seed)
    q, k, v = (rng.standard_normal(shape, np.float32) for _ in range(3))
    scores = q.astype(np.float64) @ k.transpose(0, 1, 3, 2) / np.sqrt(shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    want = e / e.sum(-1, keepdims=True) @ v
    return want, [weft.asarray(x, device=device) for x in (q, k, v)]


def test_attention_decides_its_tiles(device, own):
    """Forward and for both gradients, each of its own; every legal tile computes the same."""
    want, operands = attention((1, 2, 70, 33), device)
    q, k, v = (weft.Tensor(x, requires_grad=True) for x in operands)

    def gradients():
        for x in (q, k, v):
            x.grad = None
        out = weft.nn.functional.scaled_dot_product_attention(q, k, v)
        out.sum().backward()
        return [out, q.grad, k.grad, v.grad]

    found = [d for d in decisions.recorded(gradients) if d.operation == "attention.tile"]
    assert [d.facts[-1] for d in found] == [0, 1, 2]
    expected = [x.numpy() for x in gradients()]
    close(gradients()[0], want)
    before = sources()
    for each in found:
        assert len(each.options) > 2
        for option in each.options[1:]:
            planted(own, each, option)
            for got, was in zip(gradients(), expected):
                close(got, was)
        assert sources() != before
        before = sources()
    assert any(n.startswith("attention.tile 2,70,70,") for n in tuning.notes())


def test_attention_is_tuned_and_used(device, own):
    want, (q, k, v) = attention((2, 1, 40, 16), device)

    def call():
        return weft.nn.functional.scaled_dot_product_attention(q, k, v)

    ((operation, where, numbers),) = tuning.tune_operations(call, trials=2)
    assert (operation, where) == ("attention.tile", DEVICE) and len(numbers) == 2
    close(call(), want)
