# SPDX-License-Identifier: Apache-2.0
"""The arrays part of the demo: both networks learn, the curve is a picture; a net that does not learn is seen."""

import importlib.util
import pathlib

import pytest
import weft
from weft.cli.demo import relative_error

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("arrays_demo", ROOT / "examples/arrays/demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judged(row):
    return row["loss"] if "loss" in row else relative_error(row["got"], row["wanted"])


def test_both_networks_learn(program):
    items = list(program.demo(quick=True))
    rows, curves = [i for i in items if "program" in i], [i for i in items if "chart" in i]
    assert len(curves) == 2 and len(rows) >= 2
    assert all(judged(r) <= r["limit"] for r in rows), rows
    devices = {r["device"] for r in rows}  # one curve for each; rows also compare them
    for curve in curves:
        assert set(curve["series"]) == devices
        for losses in curve["series"].values():
            assert len(losses) > 10 and losses[-1] < losses[0] / 2


def test_a_net_that_does_not_learn_is_seen(program, monkeypatch):
    monkeypatch.setattr(weft.optim.Adam, "step", lambda self: None)
    rows = [i for i in program.demo(quick=True) if "program" in i]
    bad = [r["program"] for r in rows if judged(r) > r["limit"]]
    assert any("MLP" in name for name in bad)
