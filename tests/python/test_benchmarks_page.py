# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks.md is made of records: what a benchmark keeps, and what the page says of it."""

import json
import pathlib
import runpy
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools/benchmarks"), run_name="benchmarks")

PROGRAM = """
import sys
sys.path.insert(0, {bench!r})
from recording import Record
record = Record("turns", "cpu", {{"": {{"least": 0.8, "mean": 1.0}}, "odd": {{"mean": 3.0}}}})
record.row("even", "two", 2.00004e-6, {{"a": 3e-6, "b": 1e-6}})
record.row("even", "four", 1e-6, {{"a": 4e-6}})
record.row("odd", "three", 1e-3, {{"a": 2e-3}}, factor=7)
record.row("odd", "five", absent="no | such call")
{end}
"""


def recorded(tmp_path, end="", name="turns.json"):
    environment = {"WEFT_RECORD": str(tmp_path / name), "WEFT_COMMIT": "0123abcd"}
    source = PROGRAM.format(bench=str(ROOT / "bench"), end=end)
    return subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True
    )


def test_a_row_has_the_better_rival_and_facts(tmp_path):
    done = recorded(tmp_path)
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "turns.json").read_text())
    assert run["commit"] == "0123abcd" and len(run["date"]) == 10 and "cores" in run["machine"]
    two, four, three, five = run["rows"]
    assert two == dict(group="even", name="two", ours=2e-6, rival=dict(a=3e-6, b=1e-6), ratio=0.5)
    assert four["ratio"] == 4.0 and three["factor"] == 7 and three["ratio"] == 2.0
    assert "ratio" not in five and five["absent"]


def test_a_run_that_is_ended_keeps_its_rows(tmp_path):
    done = recorded(tmp_path, end="import os; os._exit(9)")
    assert done.returncode == 9
    assert len(json.loads((tmp_path / "turns.json").read_text())["rows"]) == 4
    assert [p.name for p in tmp_path.iterdir()] == ["turns.json"]


def test_without_the_variable_nothing_is_written(tmp_path):
    source = PROGRAM.format(bench=str(ROOT / "bench"), end="record.write()")
    done = subprocess.run(
        [sys.executable, "-c", source], env={}, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


def test_the_page_says_what_is_short_and_the_distribution(tmp_path):
    recorded(tmp_path)
    figures = [
        dict(
            subject="Parts",
            line="a | b",
            asked="1",
            measured="2",
            command="`c`",
            date="2026-11-30",
            machine="m",
        )
    ]
    (tmp_path / "figures.json").write_text(json.dumps(figures))
    lines = TOOL["page"](tmp_path).splitlines()
    # Of 0.5, 4 and 2 the mean is 1.587, which is enough; the least is not. Of the odd group the mean is 2.
    assert "| even | 2 | 1.41 | 0.5 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |  |  |" in lines
    assert "| odd | 1 | 2 | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 1 | mean 3 | **short** (mean) |" in lines
    assert (
        "| all | 3 | 1.59 | 0.5 | 0 | 1 | 0 | 0 | 0 | 0 | 2 | least 0.8, mean 1 | **short** (least) |"
        in lines
    )
    assert "| two | even | 2 | a 3, b 1 | 0.5 |" in lines
    assert "Absent: five (no | such call)." in lines
    assert any(line.startswith("| a \\| b | 1 | 2 |") for line in lines)
    assert any("commit 0123abcd" in line for line in lines)


def test_the_page_is_what_the_records_make():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/benchmarks"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_every_record_names_its_run():
    for path in sorted((ROOT / "bench/results").glob("*.json")):
        run = json.loads(path.read_text("utf8"))
        rows = run if path.name == "figures.json" else [run]
        for row in rows:
            assert all(row[k] for k in ("command", "date", "machine")), (path.name, row)
        if path.name != "figures.json":
            assert run["commit"] and run["rows"], path.name
            assert not [r for r in run["rows"] if "wrong" in r], path.name


def test_the_first_page_says_what_the_records_say():
    """The chart and the lines below it count the rows that are recorded now."""
    chart = runpy.run_path(str(ROOT / "bench/chart.py"), run_name="chart")
    picture = (ROOT / "docs/images/sweep.svg").read_text("utf8")
    page = (ROOT / "README.md").read_text("utf8")
    assert len(chart["PANELS"]) == 3
    for title, records in chart["PANELS"]:
        groups, said, date = chart["panel"](records)
        assert len(groups) > 1 and f"{said} ({date})" in picture, (title, said)
        assert f"{said}." in page and date in page, (title, said)
    tuned = chart["panel"](["te_beside_tvm"])[0]["tuned"]
    assert f"The tuned programs alone: mean {chart['mean'](tuned):.3g}." in page
