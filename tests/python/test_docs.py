# SPDX-License-Identifier: Apache-2.0
"""The documentation is true: its Python runs, its links lead somewhere, every flag of the command line is named."""

import argparse
import pathlib
import re
import subprocess
import sys

import pytest
import weft
from weft.cli import parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    ):
        if "://" not in target and not target.startswith("#"):
            assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("page", ["README.md", "docs/guide/laptop.md"])
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    namespace = {}
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)  # noqa: S102  (our own documentation)
    assert capsys.readouterr().out


def test_every_flag_is_documented():
    page = (ROOT / "docs/guide/command-line.md").read_text()
    verbs = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    for name, verb in verbs.items():
        assert f"`weft {name}" in page, name
        for action in verb._actions:
            for option in action.option_strings:
                if option not in ("-h", "--help"):
                    assert f"{option}" in page, f"weft {name} {option}"
            assert action.help or not action.option_strings or action.dest == "output", (
                name,
                action.dest,
            )


def test_the_version_is_one():
    assert f'version = "{weft.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"VERSION {weft.__version__}" in (ROOT / "CMakeLists.txt").read_text()


@pytest.mark.targets("qpu", "vta", "wse")  # their tables fill pages too
def test_the_generated_pages_are_the_tables():
    done = subprocess.run(
        [sys.executable, ROOT / "tools/reference.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
