# SPDX-License-Identifier: Apache-2.0
"""The tour's table and report: each column means one thing, wrong rows are marked, files go where --output says."""

import argparse
import json
import math
import pathlib

import pytest
import weft
from weft.cli import demo

ROW = dict(program="p", device="d", seconds=0.00123456, rate=0.02471, unit="GFLOP/s", error=1e-7)


def test_columns():
    row = demo.Row(**ROW, limit=1e-6, note="n")
    assert row.cells() == ["p", "d", "1.23 ms", "0.0247 GFLOP/s", "1e-07", "ok", "n"]
    assert len(demo.HEAD) == len(row.cells()) and all(demo.HEAD)
    absent = demo.Row("p", "d", 0, 0, "", None, 0)
    assert absent.cells()[2:6] == ["n/a", "n/a", "n/a", "ok"]


@pytest.mark.parametrize(
    "error, limit, loss, good",
    [
        (1e-7, 1e-6, None, True),
        (1e-5, 1e-6, None, False),
        (math.nan, 1e-6, None, False),
        (math.inf, 0, None, False),
        (None, 0.5, 0.4, True),
        (None, 0.5, 0.6, False),
        (None, 0.5, math.nan, False),
        (None, 0, None, True),
    ],
)
def test_what_is_wrong(error, limit, loss, good):
    row = demo.Row("p", "d", 1, 1, "u", error, limit, loss=loss)
    assert row.good == good and row.cells()[5] == ("ok" if good else "WRONG")


def program(folder, body):
    (folder / "examples/loom").mkdir(parents=True)
    text = f"def demo(quick=False, progress=None, output='out'):\n    {body}\n"
    (folder / "examples/loom/demo.py").write_text(text)


ITEM = "{'program': '<p>', 'device': 'd', 'seconds': 1, 'rate': 0, 'unit': '', 'error': %s, 'limit': 0}"


def test_the_report_goes_where_it_is_asked_for(tmp_path, monkeypatch, capsys):
    write = "import pathlib; pathlib.Path(output, 'x.txt').write_text('x')"
    program(tmp_path, f"{write}; yield {ITEM % 0}; yield ('Loss', '<svg></svg>')")
    monkeypatch.chdir(tmp_path)
    assert demo.run(argparse.Namespace(output="a/b", quick=True)) == 0
    assert "1 runs, 0 wrong, 0 programs failed" in capsys.readouterr().out
    names = sorted(p.name for p in (tmp_path / "a/b").iterdir())
    assert names == ["loss.svg", "report.html", "trace.json", "x.txt"]
    assert not (tmp_path / "out").exists()
    page = (tmp_path / "a/b/report.html").read_text()
    assert "&lt;p&gt;" in page and "<svg>" in page and "name=viewport" in page
    assert "prefers-color-scheme:dark" in page and "http" not in page.replace("http-equiv", "")
    json.loads((tmp_path / "a/b/trace.json").read_text())


@pytest.mark.parametrize(
    "body, said",
    [
        (f"yield {ITEM % 1}", "1 wrong"),
        ("raise ImportError('no loom'); yield", "loom failed:\nno loom"),
        ("return; yield", "0 runs"),
    ],
)
def test_wrong_failing_and_empty_tours_end_with_status_1(tmp_path, monkeypatch, capsys, body, said):
    program(tmp_path, body)
    monkeypatch.chdir(tmp_path)
    assert demo.run(argparse.Namespace(output="o", quick=True)) == 1
    assert said in capsys.readouterr().out


def test_an_installation_brings_its_examples(tmp_path, monkeypatch):
    package = tmp_path / "site-packages/weft"
    (package / "examples/loom").mkdir(parents=True)
    (package / "examples/loom/demo.py").write_text("")
    monkeypatch.setattr(weft, "__file__", str(package / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    assert demo.examples_folder() == package / "examples"
    rule = (pathlib.Path(__file__).parents[2] / "python/bindings/CMakeLists.txt").read_text()
    assert "foreach(folder examples compat/needle)" in rule
