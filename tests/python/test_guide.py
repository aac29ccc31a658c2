# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/guide that are about arrays: their code runs, the files they name exist, the rows they quote stand."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "compat" / "needle"))
PAGES = ["one-call.md"]


@pytest.mark.targets("qpu", "vta", "wse")
def test_the_page_about_torch_runs():
    pytest.importorskip("torch")
    test_code_runs("torch.md")


@pytest.mark.parametrize("page", PAGES)
def test_code_runs(page):
    text = (ROOT / "docs" / "guide" / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 5
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number + 1}", "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_files_and_rows_are_there(page):
    text = (ROOT / "docs" / "guide" / page).read_text()
    paths = set(re.findall(r"`((?:src|python|tests|compat|tools|docs)/[\w./-]+)`", text))
    assert len(paths) > 8
    assert [p for p in paths if not (ROOT / p).exists()] == []
    table = (ROOT / "src/weft/elements/elementwise.def").read_text()
    rows = re.findall(r"^```def\n(.*?)^```", text, re.M | re.S)
    assert rows and all(row.strip() in table for row in rows)
