# SPDX-License-Identifier: Apache-2.0
"""The tour's table and report: each column means one thing, wrong rows are marked, files go where --output says."""

import argparse
import json
import math
import pathlib
import re
import types

import numpy as np
import pytest
import weft
from weft._core import Error
from weft._errors import error
from weft.cli import charts, demo, manual, report

import chromium

ROW = dict(program="p", device="d", seconds=0.00123456, rate=0.02471, unit="GFLOP/s")


def test_columns():
    row = demo.Row(**ROW, got=[1, 4 + 1e-6], wanted=[1, 4], limit=1e-6, note="n")
    assert row.cells() == ["p", "d", "1.23 ms", "0.0247 GFLOP/s", "2.5e-07", "1e-06", "ok", "n"]
    times = (3.97e-7, 8.68e-5, 0.114, 2.5)
    cells = [demo.Row(**{**ROW, "seconds": s}).cells()[2] for s in times]
    assert cells == ["397 ns", "86.8 us", "114 ms", "2.5 s"]
    assert len(report.HEAD) == len(row.cells()) and all(report.HEAD)
    assert set(report.NUMBERS) == set(report.MEANINGS) < set(report.HEAD)
    absent = demo.Row("p", "d", 0, 0, "")
    assert absent.cells()[2:7] == ["n/a", "n/a", "n/a", "n/a", "ok"]
    assert demo.Row("p", "d", 0, 0, "", passed=False).cells()[6] == "WRONG"


@pytest.mark.parametrize("size", [1, 37, 10007])
def test_the_error_does_not_grow_with_the_values(size):
    rng = np.random.default_rng(size)
    wanted = rng.standard_normal(size)
    got = wanted * (1 + 1e-6 * rng.uniform(-1, 1, size))
    small, large = (demo.relative_error(scale * got, scale * wanted) for scale in (1, 2.0**40))
    assert small == large and 0 < small <= 1e-6
    assert demo.relative_error(np.float32(got), np.float32(got)) == 0
    assert math.isnan(demo.relative_error([math.nan, 1], [1, 1]))
    assert demo.relative_error([0, 1e-9], [0, 0]) == math.inf
    assert demo.relative_error([], []) == demo.relative_error([0], [0]) == 0
    with pytest.raises(Error, match=r"\(1,\).*\(2,\)") as refusal:
        demo.relative_error([1], [1, 1])
    assert refusal.value.code == "cli.demo.shape"


@pytest.mark.parametrize(
    "got, limit, loss, good",
    [
        (2 + 1e-7, 1e-6, None, True),
        (2 + 1e-5, 1e-6, None, False),
        (math.nan, 1e-6, None, False),
        (math.inf, 0, None, False),
        (2, 0, None, True),
        (None, 0.5, 0.4, True),
        (None, 0.5, 0.6, False),
        (None, 0.5, math.nan, False),
        (None, 0, None, True),
    ],
)
def test_what_is_wrong(got, limit, loss, good):
    row = demo.Row("p", "d", 1, 1, "u", got, 2, limit, loss=loss)
    assert row.good == good and row.cells()[6] == ("ok" if good else "WRONG")


def program(folder, body):
    (folder / "examples/loom").mkdir(parents=True)
    text = f"def demo(quick=False, progress=None, output='out'):\n    {body}\n"
    (folder / "examples/loom/demo.py").write_text(text)


ITEM = (
    "{'program': '<p>', 'device': 'd', 'seconds': 1, 'rate': 0, 'unit': '', 'got': %s, 'wanted': 0}"
)


def test_the_report_goes_where_it_is_asked_for(tmp_path, monkeypatch, capsys):
    write = "import pathlib; pathlib.Path(output, 'x.txt').write_text('x')"
    program(tmp_path, f"{write}; yield {ITEM % 0}; yield ('Loss', '<svg></svg>')")
    monkeypatch.chdir(tmp_path)
    assert demo.run(argparse.Namespace(output="a/b", quick=True)) == 0
    printed = capsys.readouterr().out
    assert "1 runs, 0 wrong, 0 programs failed" in printed and "error: the largest diff" in printed
    names = sorted(p.name for p in (tmp_path / "a/b").iterdir())
    assert names == ["report.html", "trace.json", "x.txt"]
    assert not (tmp_path / "out").exists()
    page = (tmp_path / "a/b/report.html").read_text()
    assert (
        "&lt;p&gt;" in page
        and '<svg role=img aria-label="Loss" class=plain>' in page
        and 'name="viewport"' in page
    )
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


def test_the_table_fits_a_terminal(capsys, monkeypatch):
    rows = [
        demo.Row("GEMV 256 x 256", "cpu", 1e-3, 2.5, "Gop/s", 1, 1, 0.1, "a note of many words")
    ]
    rows += [demo.Row(f"a program with a long name {'of words ' * 9}", "wse", 1, 0, "", 3, 1, 0.1)]
    rows += [
        demo.Row("torch", "cpu", 0, 0, "", absent="torch is old; this needs torch 2.4 or newer")
    ]
    monkeypatch.delenv("COLUMNS", raising=False)
    demo._print(rows)
    whole = capsys.readouterr().out.splitlines()
    assert len(whole) == 4 and "a note of many words" in whole[1] and len(whole[0]) > 120
    for columns in (60, 80, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        demo._print(rows)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= columns and "WRONG" in lines[2]
        assert f"Left out at {columns} columns" in " ".join(
            lines
        ) and "needs torch 2.4" in " ".join(lines)
    monkeypatch.setenv("COLUMNS", "300")
    demo._print(rows)
    assert capsys.readouterr().out.splitlines() == whole


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
    row = demo.Row(**ROW, absent="torch is 1.13")
    assert row.cells()[-2:] == ["not run", "torch is 1.13"] and row.good


def test_rows_that_need_what_is_not_installed_say_so():
    def rows(code):
        yield "a row"
        raise said(code)

    def said(code):
        return error("emit", code, "compiling needs libLLVM", help="install libllvm19")

    far = said("jit.llvm.absent")
    far.message = far.help = ""  # as one of another process
    assert manual.not_installed(far) == "compiling needs libLLVM"
    first, second = demo.unless_absent("GEMM", "cpu", lambda: rows("jit.llvm.absent"))
    row = demo.Row(**second)
    assert first == "a row" and row.good and row.cells()[:2] == ["GEMM", "cpu"]
    assert row.cells()[-2:] == ["not run", "compiling needs libLLVM: install libllvm19"]
    with pytest.raises(Error, match="compiling"):
        list(demo.unless_absent("GEMM", "cpu", lambda: rows("jit.compile")))


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


@pytest.mark.parametrize("count", [1, 2, 5, 10])
def test_names_of_a_roofline_lie_below_its_axis(count):
    pytest.importorskip("matplotlib", reason="charts need matplotlib")
    points = [(f"p{i}", 10, 20, 10.0 ** -(i % 4) / (i + 1)) for i in range(count)]
    item = {"chart": "roofline", "title": "Roof", "roof": (1e3, 1e3), "points": points}
    svg = charts.draw(item)
    texts = re.findall(r'<text [^>]*? y="([\d.]+)"[^>]*>(.*?)</text>', svg)
    where = {name: y for y, name in texts}
    axis = float(where["operations for each byte of the arguments"])
    names = {name: float(y) for name, y in where.items() if re.match(r"p\d", name)}
    assert len(names) == count and min(names.values()) > axis + 5, where
    assert all("%" in n or n.endswith(": above") for n in names)
    assert not any(int(n.split()[1][:-1]) > 105 for n in names if "%" in n)


def test_no_rate_lies_above_the_level_line_of_a_roofline():
    """On opencl a program reached thirty times the rate that was taken for the device's limit."""
    work = dict(flop=1e6, bytes=1e4)
    rows = [
        demo.Row(**{**ROW, "device": d, "seconds": s}, **work)
        for d, s in (("a", 1e-3), ("b", 1e-6))
    ]
    roofs = [{"device": d, "flop": 2e9, "bytes": 1e9, "source": "Measured."} for d in "ab"]
    low, high = report._roofs(rows, roofs)
    assert low["roof"] == (2e9, 1e9) and low["note"] == "Measured."
    assert high["roof"] == (1e12, 1e9) and "p was faster" in high["note"]


def test_a_chart_that_does_not_exist():
    with pytest.raises(Error, match="lines, bars, roofline, frames, stages") as refusal:
        charts.draw({"chart": "pie", "title": "x"})
    assert refusal.value.code == "cli.demo.chart"


def test_without_matplotlib_the_report_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    said = report.write(tmp_path / "r.html", [demo.Row(**ROW)], CHARTS[:1])
    assert "pip install matplotlib" in said and said in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("width, dark", [(1200, False), (390, True)])
def test_the_report_in_a_browser(tmp_path, width, dark):
    if chromium.program() is None:
        pytest.skip("Chromium is not installed")
    pytest.importorskip("matplotlib", reason="charts need matplotlib")
    rows = [demo.Row(**{**ROW, "device": d}, rivals={"NumPy": 1e-3}) for d in ("cpu", "vta")]
    items = [*CHARTS, {"title": "GEMV", "panes": {"CUDA": "__global__", "CSL": "task", "C": "for"}}]
    report.write(tmp_path / "r.html", rows, items)
    with chromium.Page(f"file://{tmp_path}/r.html", tmp_path / "profile", width, dark=dark) as page:
        ask = page.ask
        assert ask("document.documentElement.scrollWidth") <= width
        # No column lies behind the edge, on a telephone neither.
        right = "Math.max(...[...document.querySelectorAll('#results td')].map(c => c.getBoundingClientRect().right))"
        assert ask(right) <= width
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


@pytest.mark.parametrize(
    "rivals, title",
    [
        ({"NumPy": 1e-3}, "Times beside NumPy"),
        ({"NumPy": 1e-3, "PyTorch": 2e-3}, "Times beside NumPy and PyTorch"),
        ({"weft's default schedule": 1e-3}, "Times beside other schedules"),
    ],
)
def test_the_chart_of_rivals_names_those_that_ran(rivals, title):
    row = types.SimpleNamespace(program="GEMV", device="cpu", seconds=1e-3, rivals=rivals)
    (chart,) = report._rivals([row])
    assert chart["title"] == title
