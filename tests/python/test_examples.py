# SPDX-License-Identifier: Apache-2.0
"""The arrays part of the demo: both networks learn, the curve is a picture; a net that does not learn is seen."""

import importlib.util
import pathlib
from xml.etree import ElementTree

import numpy as np
import pytest

import weft

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("arrays_demo", ROOT / "examples/arrays/demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judged(row):
    return row["loss"] if row["error"] is None else row["error"]


def test_both_networks_learn(program):
    items = list(program.demo(quick=True))
    rows = [i for i in items if isinstance(i, dict)]
    pictures = [i for i in items if isinstance(i, tuple)]
    assert len(pictures) == 2 and len(rows) >= 2
    assert all(judged(r) <= r["limit"] for r in rows), rows
    for _, svg in pictures:
        lines = ElementTree.fromstring(svg).findall("{http://www.w3.org/2000/svg}polyline")
        points = np.array(
            [[float(v) for v in p.split(",")] for p in lines[0].get("points").split()]
        )
        devices = {r["device"] for r in rows}  # one curve for each; rows also compare them
        assert len(lines) == len(devices) and len(points) > 10
        assert points[-1, 1] > points[0, 1] + 50  # downward on the page: the loss fell


def test_a_net_that_does_not_learn_is_seen(program, monkeypatch):
    monkeypatch.setattr(weft.optim.Adam, "step", lambda self: None)
    rows = [i for i in program.demo(quick=True) if isinstance(i, dict)]
    bad = [r["program"] for r in rows if judged(r) > r["limit"]]
    assert any("MLP" in name for name in bad)
