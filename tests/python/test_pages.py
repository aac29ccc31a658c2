# SPDX-License-Identifier: Apache-2.0
"""What pages point to exists: links, anchors of this tree's pages, files by name, tests by name."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
# Made by the reader of the page, or by the build.
ELSEWHERE = {"bench/qpu/qpu_bench", "docs/targets/toy.md"}


def _prose(page):
    """The page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf8"), flags=re.M | re.S)


def _anchors(page):
    titles = re.findall(r"^#+ (.*)$", _prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_it_names_is_there(page):
    text, wrong = _prose(page), []
    spoken = re.sub(r"`[^`\n]*`", "", text)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", spoken):
        if "://" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists():
            wrong.append(target)
        elif anchor and anchor not in _anchors(there):
            wrong.append(f"{target}#{anchor}")
    folders = "src|tools|tests|bench|examples|python|compat|docs|cmake"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*\w)`", text):
        if name not in ELSEWHERE and not (ROOT / name).exists():
            wrong.append(name)
    assert not wrong


def test_the_page_of_complaints_names_tests_that_exist():
    text = (ROOT / "docs/design/complaints.md").read_text("utf8")
    here = (ROOT / "tests/python/test_complaints.py").read_text("utf8")
    names = re.findall(r"`(test_\w+)`", text)
    assert len(names) > 12
    assert [n for n in names if f"def {n}(" not in here] == []
    files = re.findall(r"`(test_\w+\.py)`", text)
    assert files and all((ROOT / "tests/python" / f).exists() for f in files)
    written = re.findall(r"^def (test_\w+)", here, flags=re.M)
    assert set(written) <= set(names)  # and every one of them is somebody's answer
