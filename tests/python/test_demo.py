# SPDX-License-Identifier: Apache-2.0
"""The tour's table and report: each column means one thing, wrong rows are marked, files go where --output says."""

import argparse
import json
import math
import pathlib

import pytest
import weft
from weft._core import Error
from weft.cli import charts, demo, report

import chromium

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
    assert names == ["report.html", "trace.json", "x.txt"]
    assert not (tmp_path / "out").exists()
    page = (tmp_path / "a/b/report.html").read_text()
    assert "&lt;p&gt;" in page and "<svg class=plain>" in page and 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page and "http" not in page
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


def test_what_was_not_run_says_why():
    row = demo.Row(**{**ROW, "error": None}, limit=0, absent="torch is 1.13")
    assert row.cells()[-2:] == ["not run", "torch is 1.13"] and row.good


CHARTS = [
    {"chart": "lines", "title": "Loss", "series": {"cpu": [3.0, 1.0], "cuda:0": [3.0, 2.0]}, "log": True},
    {"chart": "bars", "title": "Bars", "groups": {"<p>": {"NumPy": 1e-6, "weft cpu": 2e-3}}},
    {"chart": "roofline", "title": "Roof", "roof": (1e9, 1e9), "points": [("p", 10, 20, 1e-6)]},
    {"chart": "frames", "title": "Frames", "pictures": [[[0, 1], [2, 3]]] * 3, "labels": ["a", "b", "c"]},
    {
        "chart": "stages",
        "title": "Stages",
        "spans": [("load", "inp", 0, 5), ("compute", "gemm", 3, 9)],
        "colours": {"inp": "#111111", "gemm": "#222222"},
    },
]  # fmt: skip


@pytest.mark.parametrize("item", CHARTS, ids=lambda item: item["chart"])
def test_charts_take_the_colours_of_the_page(item):
    pytest.importorskip("matplotlib", reason="charts need matplotlib")
    svg = charts.draw(item)
    assert svg.startswith("<svg") and "currentColor" in svg and "#000000" not in svg
    assert "<text" in svg and "DejaVu" not in svg
    if item["chart"] == "bars":
        assert "NumPy 1 us" in svg and "weft cpu 2 ms" in svg and "&lt;p&gt;" in svg


def test_a_chart_that_does_not_exist():
    with pytest.raises(Error, match="lines, bars, roofline, frames, stages") as refusal:
        charts.draw({"chart": "pie", "title": "x"})
    assert refusal.value.code == "cli.demo.chart"


def test_without_matplotlib_the_report_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    said = report.write(tmp_path / "r.html", demo.HEAD, [demo.Row(**ROW, limit=1)], CHARTS[:1])
    assert "pip install matplotlib" in said and said in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("width, dark", [(1200, False), (390, True)])
def test_the_report_in_a_browser(tmp_path, width, dark):
    if chromium.program() is None:
        pytest.skip("Chromium is not installed")
    pytest.importorskip("matplotlib", reason="charts need matplotlib")
    rows = [
        demo.Row(**{**ROW, "device": d}, limit=1, rivals={"NumPy": 1e-3}) for d in ("cpu", "vta")
    ]
    items = [*CHARTS, {"title": "GEMV", "panes": {"CUDA": "__global__", "CSL": "task", "C": "for"}}]
    report.write(tmp_path / "r.html", demo.HEAD, rows, items)
    with chromium.Page(f"file://{tmp_path}/r.html", tmp_path / "profile", width, dark=dark) as page:
        ask = page.ask
        assert ask("document.documentElement.scrollWidth") <= width
        back = "getComputedStyle(document.body).backgroundColor"
        black, white = "rgb(20, 24, 29)", "rgb(255, 255, 255)"
        assert ask(back) == (black if dark else white)
        colour = "getComputedStyle(document.querySelector('figure svg text')).fill"
        before = ask(colour)
        page.click("#theme")
        assert ask(back) == (white if dark else black) and ask(colour) != before
        assert ask("document.querySelectorAll('figure svg').length") == len(CHARTS) + 1
        shown = "[...document.querySelectorAll('.panes pre')].filter(p => !p.hidden).map(p => p.textContent).join()"
        assert ask(shown) == "__global__,task"
        page.click(".panes select")
        page.key("ArrowDown")
        page.key("ArrowDown")
        page.key("Enter")
        assert ask(shown) == "for,task"
        rest = "[...document.querySelectorAll('#results tbody tr')].filter(r => !r.hidden).length"
        assert ask(rest) == 2
        page.click("#device")
        page.key("ArrowDown")
        page.key("Enter")
        assert ask(rest) == 1
        page.click("nav a[href='#trace']")
        assert ask("location.hash") == "#trace"
        assert page.errors == []
