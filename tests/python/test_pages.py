# SPDX-License-Identifier: Apache-2.0
"""What pages point to exists: links, anchors of this tree's pages, files by name, tests by name."""

import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
# Made by the reader of the page, or by the build.
SUGGESTIONS = {"bench/qpu/qpu_bench", "docs/targets/toy.md"}


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
        if name not in SUGGESTIONS and not (ROOT / name).exists():
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


def test_fences_of_the_site_name_a_language_only(tmp_path):
    """What tests read after the language would make the site's Markdown take the block for a paragraph."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    before = [p.read_text("utf8") for p in sorted(tmp_path.rglob("*.md"))]
    subprocess.run([sys.executable, ROOT / "tools/site_pages.py", tmp_path / "docs"], check=True)
    after = [p.read_text("utf8") for p in sorted(tmp_path.rglob("*.md"))]
    marked = re.compile(r"^```\w+ .*", re.M)
    assert sum(len(marked.findall(text)) for text in before) > 10
    assert [found for text in after for found in marked.findall(text)] == []
    assert [text.count("\n```") for text in before] == [text.count("\n```") for text in after]
    # A bar in code of a table needs no backslash there.
    code = [re.findall(r"^\|.*?`([^`]*)`", text, re.M) for text in (*before, *after)]
    barred = [any("\\|" in part for part in parts) for parts in code]
    assert any(barred[: len(before)]) and not any(barred[len(before) :])


def test_the_site_begins_with_the_tutorial():
    """The hook of mkdocs knows every folder of docs/, and puts pages of the top before them."""
    names = runpy.run_path(str(ROOT / "tools/site_order.py"))
    folders = {p.name.capitalize() for p in (ROOT / "docs").iterdir() if p.is_dir()} - {"Images"}
    assert set(names["ORDER"]) == folders and names["ORDER"][0] == "Tutorial"

    def item(title, section=True):
        return types.SimpleNamespace(title=title, is_section=section, children=[])

    items = [item(name) for name in sorted(folders)] + [item("weft", False)]
    nav = names["on_nav"](types.SimpleNamespace(items=items), config=None, files=None)
    assert [i.title for i in nav.items] == ["weft", *names["ORDER"]]
    pages = sorted(p.name for p in (ROOT / "docs/guide").glob("*.md"))
    assert sorted(names["guides"]()) == pages and names["guides"]()[0] == "install.md"
    guide = next(i for i in items if i.title == "Guide")
    guide.children[:] = [
        types.SimpleNamespace(file=types.SimpleNamespace(src_uri=f"guide/{name}")) for name in pages
    ]
    names["on_nav"](nav, config=None, files=None)
    assert [c.file.src_uri[6:] for c in guide.children] == names["guides"]()
    settings = (ROOT / "mkdocs.yml").read_text("utf8")
    assert "tools/site_order.py" in settings and "site.css" in settings


def test_claims_name_what_shows_them():
    """tools/check_claims reads sentences, rows and points; it finds commands that are not there."""
    import runpy

    tool = runpy.run_path(str(ROOT / "tools/check_claims"), run_name="claims")
    tests = tool["Tests"]()
    command = tests.command
    assert command("tests/python/test_pages.py") == "pytest tests/python/test_pages.py"
    assert (
        command("test_claims_name_what_shows_them")
        == "pytest tests/python/test_pages.py::test_claims_name_what_shows_them"
    )
    assert command("tests/unit/schedule_steps_test.cpp") == "ctest -R ^schedule_test$"
    assert command("tools/check_sizes.py") == "tools/check_sizes.py"
    for absent in ("test_nothing.py", "test_that_nobody_wrote", "moon_test", "tools/check_moon"):
        assert command(absent) is None
    assert command("weft.ones") == command("bench/sweep.py") == ""
    text = "One holds. Every two (`a`) do.\n\n| no | row |\n|---|---|\n```\nall code\n```\n- none\n- All"
    found = list(tool["sentences"](text))
    assert found == ["One holds.", "Every two (`a`) do.", "| no | row |", "|---|---|", "- none", "- All"]  # fmt: skip
    every = list(tool["claims"]())
    assert len(every) > 30 and all(not absent for *_, absent in every)
