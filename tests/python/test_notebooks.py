# SPDX-License-Identifier: Apache-2.0
"""The tutorial as notebooks: made from its pages, run by a kernel, with the output that the pages show."""

import importlib.machinery
import importlib.util
import json
import os
import sys

import pytest
from test_docs import NAMES, NEEDS, ROOT, blocks, like, marks

PAGES = [n for n in NAMES if n.startswith("docs/tutorial/")]


def tool():
    loader = importlib.machinery.SourceFileLoader("notebooks", str(ROOT / "tools/notebooks"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("notebooks", loader))
    loader.exec_module(module)
    return module


def test_every_block_is_in_its_notebook():
    cells = tool().cells
    for page in PAGES:
        made = list(cells((ROOT / page).read_text()))
        code = [source for kind, source in made if kind == "code"]
        assert code == [c.rstrip() for words, c in blocks(page) if words == "python"], page
        text = "\n".join(source for kind, source in made if kind == "text")
        assert text.startswith("# ") and "```python" not in text
        for words, block in blocks(page):
            if words not in ("python", "text"):
                assert block in text


def test_output_is_left_out_and_other_text_stays():
    page = "# A\n\n```text\npicture\n```\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nEnd.\n"
    assert list(tool().cells(page)) == [
        ("text", "# A\n\n```text\npicture\n```"),
        ("code", "print(1)"),
        ("text", "End."),
    ]


# A kernel differs from `exec` (test_docs runs all pages by it) in where a function's source is found and what a cell prints: the
# page with the most programs shows both. WEFT_TEST_WHOLE=1 runs all.
SHOWN = max(PAGES, key=lambda n: (ROOT / n).read_text().count("@T.prim_func"))
RUN = PAGES if os.environ.get("WEFT_TEST_WHOLE") == "1" else [SHOWN]


@pytest.mark.parametrize("page", [pytest.param(n, marks=marks(n)) for n in RUN])
def test_a_notebook_prints_what_its_page_shows(page, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="notebooks are run by nbclient")
    pytest.importorskip("ipykernel", reason="notebooks are run by ipykernel")
    kernel = tmp_path / "jupyter/kernels/python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(p for p in sys.path if p))
    made = tool().notebook(ROOT / page)
    (tmp_path / "work").mkdir()
    where = {"metadata": {"path": str(tmp_path / "work")}}
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3", resources=where).execute()
    printed = [
        "".join(o["text"] for o in cell.outputs if o.get("name") == "stdout")
        for cell in made.cells
        if cell.cell_type == "code"
    ]
    ran = 0
    for words, code in blocks(page):
        if words == "python":
            ran += 1
        elif words == "text" and ran:
            assert like(code, printed[ran - 1]), f"{page}: {code}\n!=\n{printed[ran - 1]}"
    assert ran == len(printed) and (ran or page in NEEDS)
